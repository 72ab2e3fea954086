"""asyncio, as far as calls in threads need it."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from agentfs.base import call_context

_GRACE = 1.0  # seconds that a cancelled coroutine gets to end


class AsyncioLoop:
    """The event loop of asyncio that runs in this thread; raises RuntimeError without one."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()

    def start(self, coroutine: Coroutine[Any, Any, Any]) -> "Future[Any]":
        """Run a coroutine on this loop; called from another thread."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    async def wait_for(self, work: "Future[Any]", cancel: Callable[[], bool]) -> Any:
        """Return the result of work in a thread.

        Args:
            work: The future of the work.
            cancel: Called if the wait is cancelled. If it returns False, the wait ends at once; otherwise it
                ends with the work.
        """
        done: asyncio.Future[Any] = asyncio.wrap_future(work, loop=self._loop)
        try:
            return await asyncio.shield(done)
        except asyncio.CancelledError:
            waits = cancel()
            # Nobody gets an error of the work, so asyncio would log it.
            done.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
            while waits and not done.done():
                with suppress(asyncio.CancelledError):  # cancelled again
                    await asyncio.wait([done])
            raise

    async def run_until(self, seconds_left: Callable[[], float], coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Await a coroutine; if its time is over, cancel it and raise call_context.OverTimeError."""
        task = asyncio.ensure_future(coroutine)
        try:
            while not task.done():
                await asyncio.wait([task], timeout=min(max(seconds_left(), 0), call_context.POLL))
                if seconds_left() <= 0 and not task.done():
                    raise call_context.OverTimeError
            return task.result()
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait([task], timeout=_GRACE)

    async def run_tasks(self, functions: Sequence[Callable[[], Coroutine[Any, Any, Any]]]) -> list[Any]:
        """Await several coroutine functions at the same time; return ordered results."""
        async with asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(function()) for function in functions]
        return [task.result() for task in running]


def running() -> AsyncioLoop | None:
    """Return the event loop that runs in this thread, or None."""
    with suppress(RuntimeError):
        return AsyncioLoop()
    return None
