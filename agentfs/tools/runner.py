"""Calls in threads: a bounded number at once, given up cleanly when nobody waits any more."""

import threading
from collections.abc import Callable, Sequence
from contextvars import copy_context
from typing import Any, TypeVar

from agentfs import call_context
from agentfs.errors import InvalidArgumentError

_R = TypeVar("_R")
# Threads may be more than the calls at work: one that waits for an answer holds a thread, and no slot.
_THREADS_PER_SLOT = 8


class Runner:
    """Threads for the calls of one toolset, made when the first is needed."""

    def __init__(self, concurrency: int) -> None:
        """Prepare for calls.

        Args:
            concurrency: How many may be under way at once.

        Raises:
            InvalidArgumentError: It is no positive integer (`invalid_argument`).
        """
        if type(concurrency) is not int or concurrency < 1:
            raise InvalidArgumentError(f"`concurrency` must be a positive integer, not {concurrency!r}.")
        self._concurrency = concurrency
        self._slots = threading.Semaphore(concurrency)
        self._lock = threading.Lock()
        self._made: Any = None

    @property
    def _threads(self) -> Any:
        from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - most programs need no threads

        with self._lock:
            if self._made is None:
                self._made = ThreadPoolExecutor(self._concurrency * _THREADS_PER_SLOT, "agentfs")
            return self._made

    async def run_off_loop(
        self,
        function: Callable[..., _R],
        name: str,
        *arguments: Any,
        on_progress: Callable[[int], None] | None,
    ) -> _R:
        """Call a function in a thread and wait for it on the event loop.

        Args:
            function: What to call.
            name: Its first argument: the name of the tool.
            arguments: Its further arguments.
            on_progress: What is told of the progress of a search.

        Returns:
            What it returns.
        """
        import asyncio  # noqa: PLC0415 - most programs that import agentfs never await it

        loop = asyncio.get_running_loop()
        call = call_context.Call(name, loop=loop, slots=self._slots, on_progress=on_progress)
        context = copy_context()
        context.run(call_context.current.set, call)
        work = self._threads.submit(context.run, self._in_slot, function, name, *arguments)
        waited: asyncio.Future[Any] = asyncio.wrap_future(work, loop=loop)
        try:
            return await asyncio.shield(waited)
        except asyncio.CancelledError:
            if not work.cancel() and not call.abandon():
                await _until_done(waited)
            raise

    def run_side_by_side(self, work: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Call several functions at once and wait for all.

        Args:
            work: For each, the function and its arguments.

        Returns:
            What each returns, in order.
        """
        running = [self._threads.submit(self._in_slot, *each) for each in work]
        return [each.result() for each in running]

    def _in_slot(self, function: Callable[..., _R], *arguments: Any) -> _R | None:
        with self._slots:
            try:
                return function(*arguments)
            except call_context.Cancelled:
                return None  # nobody looks at it


async def _until_done(waited: Any) -> None:
    """Wait until a change is done, however often that is cancelled; it will not take long."""
    import asyncio  # noqa: PLC0415 - as above

    while not waited.done():
        try:
            await asyncio.shield(waited)
        except asyncio.CancelledError:
            continue
