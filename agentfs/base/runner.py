"""Threads and event loops: calls off the loop, several at once, in their time."""

import os
import sys
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, asynccontextmanager, suppress
from contextvars import Context, ContextVar, copy_context
from functools import cache, partial
from typing import Any, TypeVar

from agentfs.base import call_context
from agentfs.base.forks import watch_forks
from agentfs.base.lazy import asyncio, futures
from agentfs.errors import InvalidArgumentError

_R = TypeVar("_R")
_MOST_THREADS = 256  # of all toolsets; a call that waits for a permission answer keeps its thread
# The runners whose slots are held by the current call and the calls around it.
_slot_owners: ContextVar[frozenset["Runner"]] = ContextVar("agentfs_slot_owners", default=frozenset())


@cache
def _threads() -> "futures.ThreadPoolExecutor":
    """Return the threads of all toolsets, made on first use."""
    return futures.ThreadPoolExecutor(_MOST_THREADS, "agentfs")


if hasattr(os, "register_at_fork"):  # agentfs can be imported on Windows too
    os.register_at_fork(after_in_child=_threads.cache_clear)  # a child has none of the parent's threads


class Runner:
    """The slots of one toolset: at most `concurrency` of its calls run at once."""

    def __init__(self, concurrency: int) -> None:
        if type(concurrency) is not int or concurrency < 1:
            raise InvalidArgumentError(f"`concurrency` must be a positive integer, not {concurrency!r}.")
        self._concurrency = concurrency
        self.after_fork()
        watch_forks(self)

    def after_fork(self) -> None:
        """Start with free slots, because the threads that hold them are not in a forked child."""
        self._slots = threading.Semaphore(self._concurrency)

    async def run_off_loop(
        self,
        function: Callable[..., _R],
        *arguments: Any,
        tool: str | None,
        on_progress: Callable[[int], None] | None = None,
    ) -> _R:
        """Call a function in a thread and wait for it on the event loop; `tool` is None for a program."""
        start = partial(asyncio.run_coroutine_threadsafe, loop=asyncio.get_running_loop())
        slots = None if self._has_slot else self._slots
        call = call_context.Execution(tool, start=start, slots=slots, on_progress=on_progress)
        context = copy_context()
        context.run(call_context.current.set, call)
        work = self._submit(context, function, *arguments)
        done: asyncio.Future[_R] = asyncio.wrap_future(work)
        try:
            return await asyncio.shield(done)
        except asyncio.CancelledError:
            # A change that has begun is completed.
            waits = not work.cancel() and not call.abandon()
            # Nobody gets an error of the work, so asyncio would log it.
            done.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
            while waits and not done.done():
                with suppress(asyncio.CancelledError):  # cancelled again
                    await asyncio.wait([done])
            if call.is_done and done.done():
                return done.result()
            raise

    @asynccontextmanager
    async def entered(self, block: AbstractContextManager[_R]) -> AsyncGenerator[_R]:
        """Enter and leave a block in threads; if entering it is cancelled, it is left again."""
        inside, run = ExitStack(), partial(self.run_off_loop, tool=None)

        def enter() -> _R:
            with ExitStack() as entering:
                entered = entering.enter_context(block)
                call_context.begin_change()  # now a cancelled wait lasts until this call has ended
                inside.push(entering.pop_all())
            return entered

        with inside:  # if it is cancelled, nothing can be awaited
            entered = await run(enter)
            try:
                yield entered
            except Exception:
                if not await run(inside.__exit__, *sys.exc_info()):
                    raise
            else:
                await run(inside.__exit__, None, None, None)

    async def run_tasks(
        self, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]
    ) -> list[Any]:
        """Await a coroutine function with each of several tuples of arguments; return ordered results."""
        return await asyncio.gather(*(function(*each) for each in arguments))

    def run_side_by_side(self, function: Callable[..., _R], arguments: Sequence[tuple[Any, ...]]) -> list[_R]:
        """Call a function in threads with each of several tuples of arguments; return ordered results."""
        if self._has_slot or len(arguments) == 1:
            return [function(*each) for each in arguments]
        running = [self._submit(copy_context(), function, *each) for each in arguments]
        return [each.result() for each in running]

    @property
    def _has_slot(self) -> bool:
        """True within a call that holds a slot; waiting for another slot could deadlock."""
        return self in _slot_owners.get()

    def _submit(self, context: Context, function: Callable[..., Any], *arguments: Any) -> Any:
        """Run a function in a thread, within a context; a call that holds a slot takes no second one."""
        if not self._has_slot:
            return _threads().submit(context.run, self._run_in_slot, function, *arguments)
        # All threads of the pool may wait for inner calls.
        thread = futures.ThreadPoolExecutor(1, "agentfs-inner")
        work = thread.submit(context.run, _unless_cancelled, function, *arguments)
        thread.shutdown(wait=False)
        return work

    def _run_in_slot(self, function: Callable[..., _R], *arguments: Any) -> _R | None:
        with self._slots:
            _slot_owners.set(_slot_owners.get() | {self})
            return _unless_cancelled(function, *arguments)


def _unless_cancelled(function: Callable[..., _R], *arguments: Any) -> _R | None:
    try:
        return function(*arguments)
    except call_context.Cancelled:
        return None  # nobody uses the result


def run_until(seconds_left: Callable[[], float], function: Callable[[], _R]) -> _R:
    """Run a function in a thread of its own; after its time leave it running and raise OverTimeError."""
    context = copy_context()
    outcome: futures.Future[_R] = futures.Future()

    def work() -> None:
        try:
            outcome.set_result(context.run(function))
        except BaseException as error:  # noqa: BLE001 - raised in the thread that waits
            outcome.set_exception(error)

    threading.Thread(target=work, name="agentfs-tool", daemon=True).start()
    while not futures.wait([outcome], min(max(seconds_left(), 0), call_context.POLL)).done:
        call_context.step(0)
        if seconds_left() <= 0 and not outcome.done():
            raise call_context.OverTimeError
    return outcome.result()


async def run_until_on_loop(seconds_left: Callable[[], float], awaitable: Awaitable[Any]) -> Any:
    """Await an object on the event loop of this thread; after its time, cancel it and raise OverTimeError."""
    task = asyncio.ensure_future(awaitable)
    try:
        while not task.done():
            await asyncio.wait([task], timeout=min(max(seconds_left(), 0), call_context.POLL))
            if seconds_left() <= 0 and not task.done():
                raise call_context.OverTimeError
        return task.result()
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait([task], timeout=call_context.GRACE)
