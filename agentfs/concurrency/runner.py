"""The threads that run tool calls for `acall` and `answer`, and tools as plain functions for frameworks."""

import inspect
import sys
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Sequence
from contextlib import AbstractContextManager, asynccontextmanager
from contextvars import Context, ContextVar, copy_context
from functools import partial, reduce
from importlib import import_module
from operator import or_
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin

from agentfs import call_context, concurrency
from agentfs.arguments.kinds import Parameter
from agentfs.errors import InvalidArgumentError
from agentfs.forks import watch_forks
from agentfs.lazy import futures
from agentfs.tools.declaration import write_docstring
from agentfs.tools.spec import Tool

_R = TypeVar("_R")
# How the hints of a function describe its parameters: as `Annotated` with a text or a `Field`, or not at all.
Hints = Literal["text", "field", "plain"]
# More threads than slots, because a call that waits for a permission answer keeps its thread.
_THREADS_PER_SLOT = 8
# The runners whose slots are held by the current call and the calls around it.
_slot_owners: ContextVar[frozenset["Runner"]] = ContextVar("agentfs_slot_owners", default=frozenset())


class Runner:
    """Threads for the calls of one toolset, made on first use; at most `concurrency` calls run at once."""

    def __init__(self, concurrency: int) -> None:
        if type(concurrency) is not int or concurrency < 1:
            raise InvalidArgumentError(f"`concurrency` must be a positive integer, not {concurrency!r}.")
        self._concurrency = concurrency
        self.after_fork()
        watch_forks(self)

    def after_fork(self) -> None:
        """Start with free slots and no threads, because a forked child has none of the parent's."""
        self._slots = threading.Semaphore(self._concurrency)
        self._lock = threading.Lock()
        self._pool: futures.ThreadPoolExecutor | None = None

    @property
    def _threads(self) -> "futures.ThreadPoolExecutor":
        with self._lock:
            if self._pool is None:
                self._pool = futures.ThreadPoolExecutor(self._concurrency * _THREADS_PER_SLOT, "agentfs")
            return self._pool

    async def run_off_loop(
        self,
        function: Callable[..., _R],
        *arguments: Any,
        tool: str | None,
        on_progress: Callable[[int], None] | None = None,
    ) -> _R:
        """Call a function in a thread and wait for it on the event loop; `tool` is None for a program."""
        loop = _event_loop()
        slots = None if self._has_slot else self._slots
        call = call_context.Execution(tool, start=loop.start, slots=slots, on_progress=on_progress)
        context = copy_context()
        context.run(call_context.current.set, call)
        work = self._submit(context, function, *arguments)
        # A change that has begun is completed.
        result: _R = await loop.wait_for(work, lambda: not work.cancel() and not call.abandon())
        return result

    @asynccontextmanager
    async def entered(
        self, block: AbstractContextManager[_R], *, tool: str | None = None
    ) -> AsyncGenerator[_R]:
        """Enter and leave a block in threads; if entering it is cancelled, it is left again."""
        inside: list[_R] = []

        def enter() -> None:
            entered = block.__enter__()
            try:
                call_context.begin_change()  # now a cancelled wait lasts until this call has ended
            except BaseException:
                block.__exit__(*sys.exc_info())
                raise
            inside.append(entered)

        run = partial(self.run_off_loop, tool=tool)
        try:
            await run(enter)
            yield inside[0]
        except Exception:
            if not inside or not await run(block.__exit__, *sys.exc_info()):
                raise
        except BaseException:  # cancelled: nothing can be awaited
            if inside:
                block.__exit__(*sys.exc_info())
            raise
        else:
            await run(block.__exit__, None, None, None)

    async def run_tasks(
        self, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]
    ) -> list[Any]:
        """Await a coroutine function with each of several tuples of arguments; return ordered results."""
        return await _event_loop().run_tasks([partial(function, *each) for each in arguments])

    def run_side_by_side(self, function: Callable[..., _R], arguments: Sequence[tuple[Any, ...]]) -> list[_R]:
        """Call a function in threads with each of several tuples of arguments; return ordered results."""
        if self._has_slot:
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
            return self._threads.submit(context.run, self._run_in_slot, function, *arguments)
        thread = futures.ThreadPoolExecutor(
            1, "agentfs-inner"
        )  # all threads of the pool may wait for inner calls
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


def has_event_loop() -> bool:
    """Return True if an event loop runs in this thread."""
    return concurrency.event_loops.running() is not None


def _event_loop() -> "concurrency.event_loops.EventLoop":
    loop = concurrency.event_loops.running()
    if loop is None:
        raise RuntimeError("No event loop of asyncio or trio runs in this thread.")
    return loop


def complete(work: Coroutine[Any, Any, _R]) -> _R:
    """Return the result of a coroutine that never waits for an event loop."""
    try:
        work.send(None)
    except StopIteration as end:
        result: _R = end.value
        return result
    raise AssertionError("the coroutine waits")


def plain_function(
    tool: Tool,
    run: Callable[[str, dict[str, Any]], str],
    run_async: Callable[[str, dict[str, Any]], Awaitable[str]],
    hints: Hints,
) -> Callable[..., Any]:
    """Return a function with the tool's name, parameters and description that calls `run(name, arguments)`.

    The function is `async` and awaits `run_async(name, arguments)` if the tool is.

    Frameworks read `__name__`, `__doc__`, the signature and the annotations, and each fails on some richer
    type. So no hint is a union, except with None.
    """
    parameters = sorted(tool.parameters, key=lambda parameter: not parameter.required)
    names = [parameter.identifier for parameter in parameters]
    if len(set(names)) < len(names):
        raise InvalidArgumentError(
            f"{tool.name} cannot be a function: two of its parameters become the same identifier."
        )

    declared = [_declared(parameter, hints) for parameter in parameters]
    signature = inspect.Signature(declared, return_annotation=str)

    def given(args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        known = {name: kwargs.pop(name) for name in names if name in kwargs}
        # Raises TypeError like any function.
        return {**signature.bind_partial(*args, **known).arguments, **kwargs}

    def call(*args: Any, **kwargs: Any) -> str:
        return run(tool.name, given(args, kwargs))

    async def acall(*args: Any, **kwargs: Any) -> str:
        return await run_async(tool.name, given(args, kwargs))

    function: Callable[..., Any] = acall if tool.is_async else call
    descriptions = {
        each.identifier: each.full_description(choices=hints == "plain", formats=True) for each in parameters
    }
    returns = "The result as text, or the error."
    function.__name__ = function.__qualname__ = tool.name
    function.__annotations__ = {**{each.name: each.annotation for each in declared}, "return": str}
    function.__doc__ = write_docstring(tool.description, descriptions, returns)
    function.__dict__["__signature__"] = signature  # `inspect.signature` reads it
    return function


class _Description(str):
    """The description of a parameter in `Annotated`: a text, which Pydantic puts into its schema."""

    __slots__ = ()

    def __get_pydantic_json_schema__(self, core: Any, handler: Callable[[Any], dict[str, Any]]) -> Any:
        return {**handler(core), "description": str(self)}


def _declared(parameter: Parameter, hints: Hints) -> inspect.Parameter:
    hint = _without_literals(parameter.kind.hint) if hints == "plain" else parameter.kind.hint
    default = parameter.default if isinstance(parameter.default, (str, int, float, bool)) else None
    if not parameter.required and default is None and hint is not Any:
        hint = hint | None
    text = _Description(parameter.full_description(formats=True))
    described = import_module("pydantic").Field(description=text) if hints == "field" else text
    return inspect.Parameter(
        parameter.identifier,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        default=inspect.Parameter.empty if parameter.required else default,
        annotation=hint if hints == "plain" else Annotated[hint, described],
    )


def _without_literals(hint: Any) -> Any:
    origin, args = get_origin(hint), get_args(hint)
    if origin is Literal:
        return type(args[0])
    if origin in (list, dict):
        return origin[tuple(map(_without_literals, args))]
    return reduce(or_, map(_without_literals, args)) if args else hint
