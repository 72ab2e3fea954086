"""asyncio and trio, as far as calls in threads need them; anyio runs on one of the two."""

import asyncio
import sys
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from typing import Any, TypeAlias

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


class TrioLoop:
    """The event loop of trio that runs in this thread; raises RuntimeError without one."""

    def __init__(self) -> None:
        self._trio: Any = sys.modules.get("trio")
        if self._trio is None:
            raise RuntimeError("trio is not imported")
        self._trio.lowlevel.current_task()
        self._token = self._trio.lowlevel.current_trio_token()

    def start(self, coroutine: Coroutine[Any, Any, Any]) -> "Future[Any]":
        """Run a coroutine on this loop; called from another thread."""
        answer: Future[Any] = Future()
        scope = self._trio.CancelScope()

        async def run() -> None:
            finish: Callable[[], object] = answer.cancel
            with scope:
                try:
                    finish = partial(answer.set_result, await coroutine)
                except Exception as error:  # noqa: BLE001 - raised in the thread that waits
                    finish = partial(answer.set_exception, error)
            if answer.set_running_or_notify_cancel():
                finish()

        def stop(_: object) -> None:
            if answer.cancelled():
                self._soon(scope.cancel)

        answer.add_done_callback(stop)
        spawn = partial(self._trio.lowlevel.spawn_system_task, context=copy_context())
        self._token.run_sync_soon(spawn, run)
        return answer

    async def wait_for(self, work: "Future[Any]", cancel: Callable[[], bool]) -> Any:
        """Return the result of work in a thread, as `AsyncioLoop.wait_for` does."""
        done = self._trio.Event()
        work.add_done_callback(lambda _: self._soon(done.set))
        try:
            await done.wait()
        except BaseException:  # cancelled, or Ctrl-C
            if cancel():
                with self._trio.CancelScope(shield=True):
                    await done.wait()
            raise
        return work.result()

    async def run_until(self, seconds_left: Callable[[], float], coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Await a coroutine; if its time is over, cancel it and raise call_context.OverTimeError."""
        scope, failure, result = self._trio.CancelScope(), None, None
        async with self._trio.open_nursery() as nursery:

            async def watch() -> None:
                while (seconds := seconds_left()) > 0:
                    await self._trio.sleep(min(seconds, call_context.POLL))
                scope.cancel()

            nursery.start_soon(watch)
            with scope:
                try:
                    result = await coroutine
                except Exception as error:  # noqa: BLE001 - raised below, because a nursery makes a group of it
                    failure = error
            nursery.cancel_scope.cancel()
        if scope.cancelled_caught:
            raise call_context.OverTimeError
        if failure is not None:
            raise failure
        return result

    async def run_tasks(self, functions: Sequence[Callable[[], Coroutine[Any, Any, Any]]]) -> list[Any]:
        """Await several coroutine functions at the same time; return ordered results."""
        results: list[Any] = [None] * len(functions)

        async def run(index: int) -> None:
            results[index] = await functions[index]()

        async with self._trio.open_nursery() as nursery:
            for index in range(len(functions)):
                nursery.start_soon(run, index)
        return results

    def _soon(self, function: Callable[[], object]) -> None:
        with suppress(self._trio.RunFinishedError):
            self._token.run_sync_soon(function)


EventLoop: TypeAlias = AsyncioLoop | TrioLoop


def running() -> EventLoop | None:
    """Return the event loop that runs in this thread, or None."""
    for library in (TrioLoop, AsyncioLoop):
        with suppress(RuntimeError):
            return library()
    return None
