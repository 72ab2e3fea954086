"""Changes that no signal handler cuts in two.

Python runs signal handlers in the main thread, between any two of its steps. One that raises, as that of
Ctrl-C does, would leave open or locked what was just acquired. So handlers wait until the change has ended.
"""

import threading
from collections.abc import Callable
from typing import TypeVar

_R = TypeVar("_R")


def run_to_end(work: Callable[[], _R]) -> _R:
    """Return what `work` returns; handlers of signals that arrive meanwhile are called after it."""
    if threading.get_ident() != threading.main_thread().ident:
        return work()  # handlers run in the main thread only
    import signal  # noqa: PLC0415 - not needed before something is changed

    handlers: dict[int, Callable[..., object]] = {}
    arrived: list[int] = []

    def restore() -> None:
        if handlers:
            number, handler = handlers.popitem()
            try:
                signal.signal(number, handler)
                if number in arrived:
                    handler(number, None)
            finally:  # a handler may raise
                restore()

    try:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM):
            handler = signal.getsignal(number)
            if callable(handler):
                handlers[number] = handler
                signal.signal(number, lambda number, _: arrived.append(number))
        return work()
    finally:
        restore()
