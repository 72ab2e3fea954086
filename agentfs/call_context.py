"""The call under way in this thread: its cancellation, deadline and progress, and when it begins to change.

`current` is set while a tool runs, and is None when a program calls a method itself. The deadline is set by
whichever is called first, the tool or the method, and applies to all that is called within; long work calls
`check` again and again.
"""

import inspect
import math
import signal
import threading
import time
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar, Token
from typing import Any, TypeVar

from agentfs.errors import DeadlineExceededError

_R = TypeVar("_R")
# How many entries a search looks at between two reports of its progress.
_REPORT_EVERY = 500


class Cancelled(BaseException):
    """Raised in a cancelled call; a BaseException, so that `except Exception` does not swallow it."""


class Execution:
    """One run of a tool, shared by the thread that runs it and whoever waits for it.

    `tool` is None where a program called a method; `loop` is the event loop on which questions are asked, or
    None; the call takes one of `slots`, except while a question waits for its answer; `on_progress` is called
    from its thread with the entries seen.
    """

    def __init__(
        self,
        tool: str | None,
        *,
        loop: Any = None,
        slots: threading.Semaphore | None = None,
        on_progress: Callable[[int], None] | None = None,
    ) -> None:
        self.tool = tool
        self.loop = loop
        self._slots = slots
        self._on_progress = on_progress
        self._entries = self._reported = 0
        self._lock = threading.Lock()
        self._abandoned = False
        self._changing = False
        self._question: Any = None
        self._forward: Callable[[], bool] | None = None

    @property
    def reports_progress(self) -> bool:
        """True if anyone is given the number of entries seen."""
        return self._on_progress is not None

    def abandon(self) -> bool:
        """Cancel the call; return False if a change has begun, which is completed."""
        with self._lock:
            if self._changing:
                return False
            self._abandoned = True
            question, forward = self._question, self._forward
        if question is not None:
            question.cancel()
        return forward is None or forward()

    @contextmanager
    def forwarding(self, cancel: Callable[[], bool], *, changes: bool) -> Generator[None]:
        """Let another process do the work in the block; raise `Cancelled` if the call was abandoned before.

        If it is abandoned meanwhile, `cancel` is called, which returns True if nobody need wait for that
        process. Work that `changes` something has begun when the block has ended.
        """
        with self._lock:
            if self._abandoned:
                raise Cancelled
            self._forward = cancel
        try:
            yield
            self._changing = self._changing or changes
        finally:
            self._forward = None

    def begin_change(self) -> None:
        """Note that from now on the call changes something; raise `Cancelled` if it was abandoned before."""
        with self._lock:
            if self._abandoned:
                raise Cancelled
            self._changing = True

    def step(self, entries: int = 1) -> None:
        """Note that a search has seen more entries; raise `Cancelled` if the call was abandoned."""
        if self._abandoned:
            raise Cancelled
        self._entries += entries
        if self._on_progress is not None and self._entries >= self._reported + _REPORT_EVERY:
            self._reported = self._entries
            self._on_progress(self._entries)

    def wait_for(self, start: Callable[[], Any]) -> Any:
        """Return the result of the future that `start` returns; raise `Cancelled` with the call."""
        with self._lock:
            if self._abandoned:
                raise Cancelled
            question = self._question = start()
        if self._slots is not None:
            self._slots.release()
        try:
            return question.result()
        except Exception:
            if question.cancelled():
                raise Cancelled from None
            raise
        finally:
            if self._slots is not None:
                self._slots.acquire()
            self._question = None


class _Deadline:
    """When a call has to end, by `time.monotonic()`, and the seconds that it was given."""

    __slots__ = ("at", "seconds")

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.at = time.monotonic() + seconds


current: ContextVar[Execution | None] = ContextVar("agentfs_call", default=None)
_deadline: ContextVar[_Deadline | None] = ContextVar("agentfs_deadline", default=None)


class limited:  # noqa: N801 - used as a function, like contextlib.suppress
    """Set a deadline for the block, unless an enclosing call has set one.

    A time that a program requests wins, even over an enclosing deadline; a model cannot raise it.
    """

    __slots__ = ("_requested", "_seconds", "_token")

    def __init__(self, seconds: float, requested: float | None = None) -> None:
        self._seconds, self._requested = seconds, requested
        self._token: Token[_Deadline | None] | None = None

    def __enter__(self) -> None:
        enclosing = _deadline.get()
        if enclosing is None:
            self._token = _deadline.set(_Deadline(granted(self._requested, self._seconds)))
        elif self._requested is not None and not _is_models():
            enclosing.at = max(enclosing.at, time.monotonic() + self._requested)

    def __exit__(self, *_: object) -> None:
        if self._token is not None:
            _deadline.reset(self._token)


def granted(requested: float | None, limit: float) -> float:
    """Return the seconds that a call gets: a program as many as it requests, a model up to the limit."""
    if requested is None:
        return limit
    return min(requested, limit) if _is_models() else requested


def _is_models() -> bool:
    """Return True if a model made the call under way, and not a program."""
    execution = current.get()
    return execution is not None and execution.tool is not None


@contextmanager
def uncounted() -> Generator[None]:
    """Stop the clock while the block runs, for example while a user is asked."""
    deadline = _deadline.get()
    if deadline is None:
        yield
        return
    began, at = time.monotonic(), deadline.at
    deadline.at = math.inf
    try:
        yield
    finally:
        deadline.at = at + time.monotonic() - began


def deadline(seconds: float = math.inf) -> float:
    """Return the `time.monotonic()` at which work of some seconds has to end, or before it the call."""
    found = _deadline.get()
    at = time.monotonic() + seconds
    return at if found is None else min(at, found.at)


def check() -> None:
    """Raise `timeout` if the deadline has passed, and `Cancelled` if the call was abandoned."""
    execution = current.get()
    if execution is not None:
        execution.step(0)
    found = _deadline.get()
    if found is not None and time.monotonic() > found.at:
        raise DeadlineExceededError(
            f"The call did not end within {found.seconds:g} seconds, and nothing was changed.",
            hint="Ask for less at once.",
            details={"seconds": found.seconds},
        )


def complete() -> None:
    """Check for the last time: the first file is about to be replaced, and the call will be completed."""
    check()
    begin_change()
    found = _deadline.get()
    if found is not None:
        found.at = math.inf


def begin_change() -> None:
    """Note that the call under way, if there is one, changes something from now on."""
    execution = current.get()
    if execution is not None:
        execution.begin_change()


def step(entries: int = 1) -> None:
    """Note that the search of the call under way, if there is one, has seen more entries."""
    execution = current.get()
    if execution is not None:
        execution.step(entries)


def ask(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function of the program with the clock stopped; an awaitable answer is awaited.

    It is awaited on the loop of whoever awaits the call under way, or on one of its own.
    """
    with uncounted():
        answer = function(*arguments)
        if not inspect.isawaitable(answer):
            return answer
        import asyncio  # noqa: PLC0415 - most programs that import agentfs never await it
        from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - as above; it loads logging

        question = _awaited(answer)
        execution = current.get()
        if execution is not None and (loop := execution.loop) is not None:
            return execution.wait_for(lambda: asyncio.run_coroutine_threadsafe(question, loop))
        with ThreadPoolExecutor(1, "agentfs-question") as thread:  # this thread may have a running loop
            return thread.submit(asyncio.run, question).result()


async def _awaited(awaitable: Awaitable[Any]) -> Any:
    return await awaitable


def run_to_end(work: Callable[[], _R]) -> _R:
    """Return what `work` returns; handlers of signals that arrive meanwhile are called after it.

    Python runs them in the main thread, between any two of its steps. One that raises, as that of Ctrl-C,
    would leave open or locked what was just acquired.
    """
    if threading.get_ident() != threading.main_thread().ident:
        return work()  # handlers run in the main thread only
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
                try:
                    signal.signal(number, lambda number, _: arrived.append(number))
                except ValueError:  # in a subinterpreter, which runs no handlers
                    handlers.clear()
                    break
        return work()
    finally:
        restore()
