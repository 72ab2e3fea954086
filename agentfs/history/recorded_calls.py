"""Functions that record each of their calls, such as the shell tool of a loop."""

import asyncio
import functools
import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, TypeVar, cast

from agentfs.errors import InvalidArgumentError
from agentfs.history.recording import MAX_LABEL
from agentfs.history.timeline import Recording
from agentfs.results import RecordedResult, ToolResult
from agentfs.text import cut_line, cut_mark, one_line

F = TypeVar("F", bound=Callable[..., Any])


def record_calls(function: F, recording: Callable[[str], AbstractContextManager[Recording]]) -> F:
    """Return a function that records each call, and appends the changes to a returned text."""
    if not callable(function):
        raise InvalidArgumentError(
            f"`function` must be a function, not {type(function).__name__}.",
            details={"parameter": "function"},
        )

    @functools.wraps(function)
    def recorded(*args: Any, **kwargs: Any) -> Any:
        with recording(_label_of(function, args, kwargs)) as done:
            value = function(*args, **kwargs)
        return _with_changes(value, done.result)

    @functools.wraps(function)
    async def recorded_async(*args: Any, **kwargs: Any) -> Any:
        context = recording(_label_of(function, args, kwargs))
        done = await asyncio.to_thread(context.__enter__)
        try:
            value = await function(*args, **kwargs)
        finally:
            await asyncio.to_thread(context.__exit__, None, None, None)
        return _with_changes(value, done.result)

    return cast("F", recorded_async if inspect.iscoroutinefunction(function) else recorded)


def _label_of(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    values = [value for value in (*args, *kwargs.values()) if isinstance(value, str)]
    name = getattr(function, "__name__", "tool")
    return cut_line(one_line(f"{name}: {values[0]}" if values else name), MAX_LABEL - len(cut_mark(10**9)))


def _with_changes(value: Any, result: RecordedResult | None) -> Any:
    if result is None or not (result.files or result.lost):
        return value
    if isinstance(value, ToolResult):
        return replace(value, notes=(*value.notes, result.text))
    return f"{value}\n{result.text}" if isinstance(value, str) else value
