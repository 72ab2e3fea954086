"""The deadline, cancellation and progress of the call in this thread; a change also delays Ctrl-C.

`current` is set while a tool runs; it is None if a program calls a method. The outermost tool or method sets
the deadline. Long work must call `check` repeatedly.
"""

import inspect
import math
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar, Token
from typing import Any, TypeVar

from agentfs.base.lazy import asyncio, signal
from agentfs.errors import DeadlineExceededError, InvalidArgumentError

_R = TypeVar("_R")
POLL = 0.1  # seconds between two looks at the time left, because a question to the user adds time
GRACE = 1.0  # seconds for a cancelled coroutine to end
_REPORT_EVERY = 500  # entries between two reports of progress


class Interruption(BaseException):
    """Raised to leave a call. It is a BaseException, so that `except Exception` does not swallow it."""


class Cancelled(Interruption):
    """Raised in a cancelled call."""


class BusyLoopError(InvalidArgumentError):
    """An asynchronous callback or tool cannot be awaited: the thread of the call runs an event loop."""


class OverTimeError(Exception):
    """The time of a tool of the program's own is over."""


class Execution:
    """One run of a tool, shared by the thread that runs it and the code that waits for it.

    Args:
        tool: The name of the tool, or None if a program called a method.
        start: Starts a coroutine on the event loop that waits for the call; None if no loop does.
        slots: The semaphore whose slot the call holds. The slot is released while the user is asked.
        on_progress: Called with the number of entries seen, in the thread of the call.
    """

    def __init__(
        self,
        tool: str | None,
        *,
        start: Callable[[Coroutine[Any, Any, Any]], Any] | None = None,
        slots: threading.Semaphore | None = None,
        on_progress: Callable[[int], None] | None = None,
    ) -> None:
        self.tool = tool
        self.start = start
        self._slots = slots
        self.on_progress = on_progress
        self._entries = self._reported = 0
        self._lock = threading.Lock()
        self.is_abandoned = False  # True if the call was cancelled
        self.is_done = False  # True if a cancellation comes too late, and the call returns its result
        self._changing = False
        self._question: Any = None
        self._forward: Callable[[], bool] | None = None

    def abandon(self) -> bool:
        """Cancel the call. Return False if a change has begun, which will then be completed."""
        with self._lock:
            if self._changing:
                return False
            self.is_abandoned = True
            question, forward = self._question, self._forward
        if question is not None:
            question.cancel()
            return False  # what waits on the event loop ends soon
        return forward is None or forward()

    @contextmanager
    def forwarding(self, cancel: Callable[[], bool], *, changes: bool) -> Generator[None]:
        """Mark the block as work done by another process; raise `Cancelled` if the call is already abandoned.

        Args:
            cancel: Called if the call is abandoned during the block. It returns False if the caller must
                still wait for the other process.
            changes: True if the work is a change. When the block ends, it counts as begun.
        """
        with self._lock:
            if self.is_abandoned:
                raise Cancelled
            self._forward = cancel
        try:
            yield
            self._changing = self._changing or changes
        finally:
            self._forward = None

    def begin_change(self) -> None:
        """Mark the start of a change; raise `Cancelled` if the call is already abandoned."""
        with self._lock:
            if self.is_abandoned:
                raise Cancelled
            self._changing = True

    def step(self, entries: int = 1) -> None:
        """Count entries that a search has seen; raise `Cancelled` if the call was abandoned."""
        if self.is_abandoned:
            raise Cancelled
        self._entries += entries
        if self.on_progress is not None and self._entries >= self._reported + _REPORT_EVERY:
            self._reported = self._entries
            self.on_progress(self._entries)

    def wait_for(self, start: Callable[[], Any]) -> Any:
        """Wait for the future that `start` returns; raise `Cancelled` if the call is cancelled."""
        with self._lock:
            if self.is_abandoned:
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
    """The time by `time.monotonic()` when a call must end, and the seconds that it was given.

    `outer` is the deadline of the program's own tool that made the call, if any.
    """

    __slots__ = ("at", "outer", "seconds")

    def __init__(self, seconds: float, outer: "_Deadline | None" = None) -> None:
        self.seconds = seconds
        self.at: float = min(time.monotonic() + seconds, math.inf if outer is None else outer.at)
        self.outer = outer


current: ContextVar[Execution | None] = ContextVar("agentfs_call", default=None)
# The kind and the name of the author of the changes that are made now; see `results.Origin`.
author: ContextVar[tuple[str, str]] = ContextVar("agentfs_author", default=("program", ""))
_deadline: ContextVar[_Deadline | None] = ContextVar("agentfs_deadline", default=None)
# The deadline of the program's own tool that runs. Methods that it calls get deadlines of their own.
_tool_deadline: ContextVar[_Deadline | None] = ContextVar("agentfs_tool_deadline", default=None)


class limited:  # noqa: N801 - used as a function, like contextlib.suppress
    """Set a deadline for the block, unless an enclosing call has set one.

    A timeout that a program requests also extends an enclosing deadline. A model cannot extend one. `apart`,
    the block has its own deadline within the enclosing one, so a change that it begins ends only its own.
    """

    __slots__ = ("_apart", "_requested", "_seconds", "_token")

    def __init__(self, seconds: float, requested: float | None = None, *, apart: bool = False) -> None:
        self._seconds, self._requested, self._apart = seconds, requested, apart
        self._token: Token[_Deadline | None] | None = None

    def __enter__(self) -> None:
        enclosing = _deadline.get()
        if enclosing is None or self._apart:
            requested = self._requested
            seconds = self._seconds if requested is None else granted(requested, self._seconds)
            self._token = _deadline.set(_Deadline(seconds, enclosing or _tool_deadline.get()))
        elif self._requested is not None and not is_models_call():
            enclosing.at = max(enclosing.at, time.monotonic() + self._requested)

    def __exit__(self, *_: object) -> None:
        if self._token is not None:
            _deadline.reset(self._token)


def granted(requested: float | None, limit: float) -> float:
    """Return the seconds for a call: those that a program requests; for a model, at most the limit."""
    if requested is None:
        return limit
    return min(requested, limit) if is_models_call() else requested


def is_models_call() -> bool:
    """Return True if a model made the current call, and False if a program did."""
    execution = current.get()
    return execution is not None and execution.tool is not None


@contextmanager
def tool_limited(seconds: float) -> Generator[Callable[[], float]]:
    """Give a tool of the program's own its time; the block gets a function that returns the seconds left."""
    enclosing = _tool_deadline.get()
    limit = _Deadline(seconds, enclosing)
    token = _tool_deadline.set(limit)
    shadowed = _deadline.set(None)
    try:
        yield lambda: limit.at - time.monotonic()
    finally:
        _deadline.reset(shadowed)
        _tool_deadline.reset(token)


@contextmanager
def uncounted() -> Generator[None]:
    """Stop the clock while the block runs, for example while a user is asked."""
    began = time.monotonic()
    stopped: list[tuple[_Deadline, float]] = []
    each = _deadline.get() or _tool_deadline.get()
    while each is not None:
        stopped.append((each, each.at))
        each.at = math.inf
        each = each.outer
    try:
        yield
    finally:
        for each, at in stopped:
            each.at = at + time.monotonic() - began


@contextmanager
def waited_for() -> Generator[None]:
    """Make a cancelled wait for this call last until the block has ended, for example until a process has."""
    call = current.get()
    with nullcontext() if call is None else call.forwarding(lambda: False, changes=False):
        yield


def deadline(seconds: float = math.inf) -> float:
    """Return the `time.monotonic()` in some seconds, or that of the end of the call if it is earlier."""
    found = _deadline.get() or _tool_deadline.get()
    at = time.monotonic() + seconds
    return at if found is None else min(at, found.at)


def check() -> None:
    """Raise `timeout` if the deadline has passed, and `Cancelled` if the call was abandoned."""
    execution, found = current.get(), _deadline.get()
    if execution is not None and execution.is_abandoned:
        raise Cancelled
    if found is not None and time.monotonic() > found.at:
        raise DeadlineExceededError(
            f"The call did not end within {found.seconds:g} seconds, and nothing was changed.",
            hint="Ask for less at once.",
            details={"seconds": found.seconds},
        )


@contextmanager
def detached() -> Generator[None]:
    """Run the block as a call of its own, even if the current call is cancelled or has no time left."""
    execution, enclosing = current.set(None), _deadline.set(None)
    try:
        yield
    finally:
        _deadline.reset(enclosing)
        current.reset(execution)


def begin_commit() -> None:
    """Check the deadline and mark the start of a change. From here on, no deadline stops the change."""
    check()
    begin_change()
    found = _deadline.get()
    if found is not None:
        found.at = math.inf


def begin_change() -> None:
    """Mark the start of a change in the current call, if any."""
    execution = current.get()
    if execution is not None:
        execution.begin_change()


def step(entries: int = 1) -> None:
    """Count entries that a search has seen in the current call, if any."""
    execution = current.get()
    if execution is not None:
        execution.step(entries)


def call_back(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a callback with the clock stopped, and await its answer if it is awaitable."""
    with uncounted():
        return awaited(function(*arguments))


def awaited(outcome: Any) -> Any:
    """Return an outcome, or what it becomes if it is awaitable."""
    return run_awaitable(outcome) if inspect.isawaitable(outcome) else outcome


def run_awaitable(awaitable: Awaitable[Any]) -> Any:
    """Await an object on the event loop that waits for the current call, or on a new loop."""
    begun, ended = threading.Event(), threading.Event()

    async def awaited() -> Any:
        begun.set()
        try:
            return await awaitable
        finally:
            ended.set()

    coroutine = awaited()
    execution = current.get()
    if execution is not None and (start := execution.start) is not None:
        try:
            return execution.wait_for(lambda: start(coroutine))
        except Cancelled:
            if begun.is_set():
                ended.wait(GRACE)  # it cleans up on the event loop
            raise
    if not has_event_loop():
        return asyncio.run(coroutine)
    coroutine.close()
    if inspect.iscoroutine(awaitable):
        awaitable.close()
    raise BusyLoopError(
        "A callback or tool is an async function, and this thread runs an event loop.",
        hint="Await `acall` or `aanswer` instead, or call the method in a thread.",
    )


def has_event_loop() -> bool:
    """Return True if an event loop runs in this thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def run_to_end(work: Callable[[], _R]) -> _R:
    """Run a function, and delay the handlers of signals until it has ended.

    Python may run a handler in the main thread between any two instructions. If it raises, as for Ctrl-C, a
    file that was just opened or locked would stay open or locked.
    """
    if threading.get_ident() != threading.main_thread().ident:
        return work()
    handlers: dict[int, Callable[..., object]] = {}
    arrived: list[int] = []

    def restore() -> None:
        number, handler = handlers.popitem()
        try:
            signal.signal(number, handler)
            if number in arrived:
                handler(number, None)
        finally:  # the handler may raise
            if handlers:
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
        if handlers:
            restore()
