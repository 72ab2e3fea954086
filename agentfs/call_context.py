"""The call under way in this thread: whether it may go on, when it has to end, whether a change may begin.

A leaf: nothing here knows what is called. `current` is set while a tool runs, and is None when a program
calls a method itself. The deadline is set by whichever is called first, the tool or the method, and holds for
all that is called within; long work asks `check` again and again.
"""

import math
import threading
import time
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from agentfs.errors import DeadlineExceededError

# How many entries a search looks at between two reports of its progress.
_REPORT_EVERY = 500


class Cancelled(BaseException):
    """Nobody waits for this call any more; no `except Exception` on the way is to hold it up."""


class Call:
    """One call of a tool, shared by the thread that runs it and whoever waits for it.

    Attributes:
        tool: The name by which the tool was called.
        loop: The event loop on which questions are asked, or None.
    """

    def __init__(
        self,
        tool: str,
        *,
        loop: Any = None,
        slots: threading.Semaphore | None = None,
        on_progress: Callable[[int], None] | None = None,
    ) -> None:
        """Describe a call that is about to run.

        Args:
            tool: The name by which the tool was called.
            loop: The running event loop of whoever waits, or None.
            slots: Of which the call holds one, except while somebody is asked.
            on_progress: What is told, from the thread of the call, how many entries a search has seen.
        """
        self.tool = tool
        self.loop = loop
        self._slots = slots
        self._on_progress = on_progress
        self._seen = self._reported = 0
        self._lock = threading.Lock()
        self._abandoned = False
        self._changing = False
        self._question: Any = None

    def abandon(self) -> bool:
        """Give the call up.

        Returns:
            Whether it will change nothing any more; otherwise a change has begun and is brought to its end.
        """
        with self._lock:
            if self._changing:
                return False
            self._abandoned = True
            question = self._question
        if question is not None:
            question.cancel()
        return True

    def begin_change(self) -> None:
        """Declare that from now on the call changes something.

        Raises:
            Abandoned: It was given up before.
        """
        with self._lock:
            if self._abandoned:
                raise Cancelled
            self._changing = True

    def step(self, entries: int = 1) -> None:
        """Declare that a search goes on.

        Args:
            entries: How many more entries it has seen.

        Raises:
            Abandoned: It was given up.
        """
        if self._abandoned:
            raise Cancelled
        self._seen += entries
        if self._on_progress is not None and self._seen >= self._reported + _REPORT_EVERY:
            self._reported = self._seen
            self._on_progress(self._seen)

    def wait_for(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Return what a coroutine returns that runs on the loop of whoever waits for the call.

        Args:
            coroutine: What is awaited there; it is cancelled when the call is given up.

        Raises:
            Abandoned: The call was given up.
        """
        import asyncio  # noqa: PLC0415 - most programs that import agentfs never await it
        from concurrent.futures import CancelledError  # noqa: PLC0415 - as above

        if self.loop is None:
            return _run_apart(coroutine)
        with self._lock:
            if self._abandoned:
                coroutine.close()
                raise Cancelled
            self._question = asyncio.run_coroutine_threadsafe(coroutine, self.loop)
        if self._slots is not None:
            self._slots.release()
        try:
            return self._question.result()
        except CancelledError:
            raise Cancelled from None
        finally:
            if self._slots is not None:
                self._slots.acquire()
            self._question = None


current: ContextVar[Call | None] = ContextVar("agentfs_call", default=None)


class _Deadline:
    """When a call has to end: until a first file is replaced it is refused then, and afterwards completed."""

    __slots__ = ("at", "seconds")

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.at = time.monotonic() + seconds


_deadline: ContextVar[_Deadline | None] = ContextVar("agentfs_deadline", default=None)


@contextmanager
def limited(seconds: float, asked: float | None = None) -> Generator[None]:
    """Give what runs within a deadline, unless the call that it is part of has one.

    Args:
        seconds: How long it may take from now on.
        asked: How long the caller lets it take, where that was said: then it may take no less.
    """
    deadline = _deadline.get()
    if deadline is not None:
        if asked is not None:
            deadline.at = max(deadline.at, time.monotonic() + asked)
        yield
        return
    token = _deadline.set(_Deadline(seconds if asked is None else asked))
    try:
        yield
    finally:
        _deadline.reset(token)


def deadline(seconds: float = math.inf) -> float:
    """Return the `time.monotonic()` at which work has to end that may take some seconds from now on.

    Args:
        seconds: How many; the call under way may have fewer left.
    """
    found = _deadline.get()
    at = time.monotonic() + seconds
    return at if found is None else min(at, found.at)


def check() -> None:
    """Declare that the call goes on; to be called again and again in what may take long.

    Raises:
        DeadlineExceededError: `timeout`: its deadline has passed.
        Abandoned: It was given up.
    """
    call = current.get()
    if call is not None:
        call.step(0)
    found = _deadline.get()
    if found is not None and time.monotonic() > found.at:
        raise DeadlineExceededError(
            f"The call did not end within {found.seconds:g} seconds, and nothing was changed.",
            hint="Ask for less at once.",
            details={"seconds": found.seconds},
        )


def complete() -> None:
    """Declare that the first file is about to be replaced: from here on the call is brought to its end.

    Raises:
        DeadlineExceededError: `timeout`: the deadline has passed.
        Abandoned: It was given up.
    """
    check()
    begin_change()
    found = _deadline.get()
    if found is not None:
        found.at = math.inf


@contextmanager
def uncounted() -> Generator[None]:
    """Leave the time of what runs within, such as waiting for an answer, out of the deadline."""
    found = _deadline.get()
    if found is None:
        yield
        return
    began, at = time.monotonic(), found.at
    found.at = math.inf
    try:
        yield
    finally:
        found.at = at + time.monotonic() - began


def begin_change() -> None:
    """Declare that the call under way, if there is one, changes something from now on."""
    call = current.get()
    if call is not None:
        call.begin_change()


def step(entries: int = 1) -> None:
    """Declare that the search of the call under way, if there is one, goes on.

    Args:
        entries: How many more entries it has seen.
    """
    call = current.get()
    if call is not None:
        call.step(entries)


def wait_for(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Return what a coroutine returns, from code that is not asynchronous itself.

    Args:
        coroutine: It runs on the loop of whoever awaits the call under way; without one, on a loop of its own
            in a thread of its own.
    """
    call = current.get()
    return call.wait_for(coroutine) if call is not None else _run_apart(coroutine)


def _run_apart(coroutine: Coroutine[Any, Any, Any]) -> Any:
    import asyncio  # noqa: PLC0415 - as above
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - as above

    with ThreadPoolExecutor(1, "agentfs-question") as thread:  # this thread may have a running loop already
        return thread.submit(asyncio.run, coroutine).result()
