"""Functions that record each of their calls, such as the shell tool of a loop."""

import functools
import inspect
from collections.abc import Awaitable, Callable, Generator
from contextlib import AbstractAsyncContextManager, AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from typing import Any, TypeVar, cast

from agentfs.base.visible import one_line
from agentfs.errors import InvalidArgumentError
from agentfs.history.log import Recording
from agentfs.history.recording import MAX_LABEL
from agentfs.results import RecordedResult, ToolResult
from agentfs.text.display import cut_line, cut_mark

F = TypeVar("F", bound=Callable[..., Any])
RecordingBlock = AbstractContextManager[Recording]
EnterOffLoop = Callable[[RecordingBlock], AbstractAsyncContextManager[Recording]]


def record_calls(function: F, recording: Callable[[str], RecordingBlock], enter_off_loop: EnterOffLoop) -> F:
    """Return a function that records each call, and appends the changes to a returned text.

    The recording of an awaitable that a call returns lasts until the awaitable has ended. `enter_off_loop`
    enters and leaves a block without blocking the event loop.

    Raises:
        InvalidArgumentError: `function` is a generator, or not a function.
    """
    given: Any = function  # which need not be as its type says
    kinds = (function, type(function).__call__) if callable(given) else ()
    is_generator = any(map(inspect.isgeneratorfunction, kinds)) or any(map(inspect.isasyncgenfunction, kinds))
    if is_generator or not kinds:
        raise _not_recordable(function)

    def block_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> RecordingBlock:
        return recording(_label_of(function, args, kwargs))

    async def awaited(block: RecordingBlock, start: Callable[[], Awaitable[Any]]) -> Any:
        async with enter_off_loop(block) as done:
            value = await start()
        return _with_changes(value, done.result)

    @functools.wraps(function)
    def recorded(*args: Any, **kwargs: Any) -> Any:
        with ExitStack() as stack:
            done = stack.enter_context(block_of(args, kwargs))
            value = function(*args, **kwargs)
            if inspect.isgenerator(value) or inspect.isasyncgen(value):
                raise _not_recordable(value)
            if inspect.isawaitable(value):
                return awaited(_kept_open(stack.pop_all(), done), lambda: value)
        return _with_changes(value, done.result)

    @functools.wraps(function)
    async def recorded_async(*args: Any, **kwargs: Any) -> Any:
        return await awaited(block_of(args, kwargs), lambda: function(*args, **kwargs))

    return cast("F", recorded_async if any(map(inspect.iscoroutinefunction, kinds)) else recorded)


def _not_recordable(value: object) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"The calls of a {type(value).__name__} cannot be recorded, only those of functions.",
        details={"parameter": "function"},
    )


@contextmanager
def _kept_open(stack: ExitStack, done: Recording) -> Generator[Recording]:
    """Close a block that was entered before. Without a reference, the block ends too."""
    with stack:
        yield done


def _label_of(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    values = [value for value in (*args, *kwargs.values()) if isinstance(value, str)]
    named = function.func if isinstance(function, functools.partial) else function
    name = getattr(named, "__name__", type(named).__name__)
    return cut_line(one_line(f"{name}: {values[0]}" if values else name), MAX_LABEL - len(cut_mark(10**9)))


def _with_changes(value: Any, result: RecordedResult | None) -> Any:
    if result is None or not (result.files or result.lost):
        return value
    if isinstance(value, ToolResult):
        return replace(value, notes=(*value.notes, result.text))
    return f"{value}\n{result.text}" if isinstance(value, str) else value
