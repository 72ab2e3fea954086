"""Changes that Ctrl-C does not cut in two.

Python raises KeyboardInterrupt in the main thread, between any two of its steps: what was just opened, locked
or made is then known to nobody, and stays. So what changes files runs in a thread of its own, where none is
raised.
"""

import threading
from _thread import allocate_lock, start_new_thread
from collections.abc import Callable
from contextvars import copy_context
from typing import Generic, TypeVar

_R = TypeVar("_R")


def run_to_end(work: Callable[[], _R]) -> _R:
    """Do work that no interrupt falls into: one that comes meanwhile is raised when the work is done.

    Another one that comes before that is raised at once, and the work goes on to its end by itself.

    Args:
        work: What to do.

    Returns:
        What it returns.
    """
    if threading.get_ident() != threading.main_thread().ident:
        return work()
    task = _Task(work)
    try:
        try:
            start_new_thread(copy_context().run, (task.run,))
        except RuntimeError:  # there are no more threads to be had
            task.run()
        task.wait()
    except BaseException:
        if not task.drop():
            task.wait()
        raise
    return task.result()


class _Task(Generic[_R]):
    """Work in another thread.

    It is waited for with locks alone: an interrupt may leave what `threading` makes of them locked for ever.
    """

    def __init__(self, work: Callable[[], _R]) -> None:
        self._work = work
        self._begun = allocate_lock()
        self._running = allocate_lock()
        self._running.acquire()
        self._done = False
        self._results: list[_R] = []
        self._error: BaseException | None = None

    def run(self) -> None:
        """Do the work, unless it was dropped."""
        if not self._begun.acquire(blocking=False):
            return
        try:
            self._results.append(self._work())
        except BaseException as error:  # noqa: BLE001 - it is raised where the work is waited for
            self._error = error
        finally:
            self._done = True
            self._running.release()

    def drop(self) -> bool:
        """Tell whether the work has not begun; then it never will."""
        return self._begun.acquire(blocking=False)

    def wait(self) -> None:
        """Wait until the work is done."""
        while not self._done:
            self._running.acquire()

    def result(self) -> _R:
        """Return what the work returned, or raise what it raised."""
        error, self._error = self._error, None
        if error is not None:
            try:
                raise error
            finally:
                del error  # it would hold this frame, and this frame it
        return self._results.pop()
