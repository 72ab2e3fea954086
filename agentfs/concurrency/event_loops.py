"""asyncio and trio, as far as calls in threads need them; anyio runs on one of the two."""

import asyncio
import sys
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from typing import Any, TypeAlias


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
            while waits and not done.done():
                with suppress(asyncio.CancelledError):  # cancelled again
                    await asyncio.shield(done)
            raise

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
