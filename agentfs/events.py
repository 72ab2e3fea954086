"""Events of calls, for a callback and the standard logging."""

import itertools
import sys
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import cache, wraps
from inspect import signature
from os import PathLike, fspath
from typing import Any, Literal, TypeAlias, TypeVar, cast

from agentfs.base import call_context
from agentfs.base.lazy import logging
from agentfs.base.visible import one_line
from agentfs.errors import AccessError, AgentFSError, ArgumentError, OutsideWorkspaceError
from agentfs.results import ToolResult

_F = TypeVar("_F", bound=Callable[..., Any])
_MOST_NAME = 100  # characters


@dataclass(frozen=True)
class Event:
    """The start or the end of a call: of a tool by a model, or of a method by the program.

    The arguments and the outcome can have contents of files: record only what should leave the machine.

    Attributes:
        kind: "started", and then "finished", "refused" (the call was wrong or not allowed) or "failed" (an
            operation or the tool failed).
        tool: Our own name of the tool: the method, or the name of the function.
        call: A number shared by the events of one call.
        arguments: The arguments by name, as they were sent.
        called_as: The name that the model called, or "" if the program called the method itself.
        call_id: The provider's id of a tool call that came by `Toolset.answer` or `aanswer`, or "".
        elapsed_ms: Milliseconds since the start.
        outcome: At the end, the `ToolResult` of a tool call, or what the method returned.
        exception: What ended the call early, or None: an error, or the exception of a tool. The exception of
            a permission callback is its `__cause__`. Models never see it.
    """

    kind: Literal["started", "finished", "refused", "failed"]
    tool: str
    call: int
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])
    called_as: str = ""
    call_id: str = ""
    elapsed_ms: float = 0.0
    outcome: Any = field(default=None, repr=False)
    exception: BaseException | None = None


OnEvent: TypeAlias = Callable[[Event], object]

# The errors of calls that were wrong or not allowed.
_REFUSALS: list[type[AgentFSError]] = [
    *ArgumentError.__subclasses__(), *AccessError.__subclasses__(), OutsideWorkspaceError
]  # fmt: skip
_REFUSAL_CODES = {error.code for error in _REFUSALS}
_numbers = itertools.count(1)
# The callbacks to which the calls around the current one are reported.
_reported_to: ContextVar[tuple[OnEvent | None, ...]] = ContextVar("agentfs_reported_to", default=())
_call_id: ContextVar[str] = ContextVar("agentfs_call_id", default="")


@contextmanager
def provider_call(call_id: str | None) -> Generator[None]:
    """Set the provider's id of the tool call that the block runs."""
    token = _call_id.set(call_id or "")
    try:
        yield
    finally:
        _call_id.reset(token)


def current_call_id() -> str:
    """Return the provider's id of the call that runs, or ""."""
    return _call_id.get()


class EventEmitter:
    """Reports calls to a callback and the logger "agentfs"; exceptions of the callback are logged."""

    def __init__(self, on_event: OnEvent | None) -> None:
        self._on_event = on_event

    @property
    def active(self) -> bool:
        """True if there is a callback or the logger writes details."""
        return self._on_event is not None or is_debugging()

    @contextmanager
    def reporting(self, name: Any, arguments: Any, called_as: Any = "") -> "Generator[_End]":
        """Report the start and the end of the call that the block makes. The block says how it ended."""
        given: Mapping[str, Any] = (
            cast("Mapping[str, Any]", arguments) if isinstance(arguments, Mapping) else {}
        )
        call_id = _call_id.get() if called_as else ""
        tool = str(name)[:_MOST_NAME]
        started = Event("started", tool, next(_numbers), given, str(called_as)[:_MOST_NAME], call_id)
        end = _End()
        # Calls that the callback itself makes are not reported either, or it would be called without end.
        token = _reported_to.set((*_reported_to.get(), self._on_event))
        try:
            self._emit(started)
            began = time.perf_counter()
            try:
                yield end
            except BaseException as error:
                end.exception = error
                raise
            finally:
                took = (time.perf_counter() - began) * 1000
                ended = {"outcome": end.outcome, "exception": end.exception}
                self._emit(replace(started, kind=end.kind, elapsed_ms=took, **ended))
        finally:
            _reported_to.reset(token)

    def log_exception(self, name: str, error: BaseException) -> None:
        """Log an unexpected exception in a call, or in the callback."""
        _logger().error("tool %s failed unexpectedly", name, exc_info=error)

    def _emit(self, event: Event) -> None:
        if is_debugging():
            path = event.arguments.get("path", "")
            about = one_line(fspath(path)) if isinstance(path, str | PathLike) else ""
            _logger().debug(
                "%s %s #%d %s %.1f ms", event.kind, event.tool, event.call, about, event.elapsed_ms
            )
        if self._on_event is None:
            return
        try:
            self._on_event(event)
        except Exception as error:  # noqa: BLE001 - a callback must not stop the call
            self.log_exception(f"on_event for {event.tool}", error)


class _End:
    """The end of a reported call: a `ToolResult`, what a method returned, or an exception."""

    outcome: Any = None
    exception: BaseException | None = None

    @property
    def kind(self) -> Literal["finished", "refused", "failed"]:
        match self.outcome, self.exception:
            case ToolResult(error={"code": str(code)}), _:
                return "refused" if code in _REFUSAL_CODES else "failed"
            case ToolResult(success=True), _:
                return "finished"
            case _, None:
                return "finished"
            case _, AgentFSError(code=code) if code in _REFUSAL_CODES:
                return "refused"
            case _:
                return "failed"


def reports_calls(method: _F) -> _F:
    """Make a method of a workspace report its calls to the `on_event` of the workspace.

    The calls of a tool, or of another method, that is reported to the same callback are not reported again.
    """

    @wraps(method)
    def reported(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        on_event: OnEvent | None = self.on_event
        if on_event is None and not is_debugging():
            return method(self, *args, **kwargs)
        if on_event in _reported_to.get():
            return method(self, *args, **kwargs)
        execution = call_context.current.get()
        called_as = "" if execution is None else execution.tool or ""
        given = _given(method, args, kwargs)
        with EventEmitter(on_event).reporting(method.__name__, given, called_as) as end:
            end.outcome = method(self, *args, **kwargs)
            return end.outcome

    return cast("_F", reported)


def _given(method: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call by name."""
    _, *names = signature(method).parameters
    return {**dict(zip(names, args, strict=False)), **kwargs}


def is_debugging() -> bool:
    """Return True if the logger writes details; before logging is imported nobody can enable that."""
    return "logging" in sys.modules and _logger().isEnabledFor(logging.DEBUG)


@cache
def _logger() -> Any:
    return logging.getLogger("agentfs")
