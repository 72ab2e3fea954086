"""Events of calls, for a callback and the standard logging."""

import itertools
import sys
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field, replace
from functools import cached_property, wraps
from inspect import signature
from os import PathLike, fspath
from typing import Any, Literal, TypeAlias, TypeVar, cast

from agentfs.base import call_context
from agentfs.base.frozen_data import frozen
from agentfs.base.lazy import logging
from agentfs.base.visible import one_line, quoted
from agentfs.errors import AccessError, AgentFSError, ArgumentError, OutsideWorkspaceError
from agentfs.results import Coercion, ReadResult, Result, Skipped, ToolResult
from agentfs.text import estimate_tokens

_F = TypeVar("_F", bound=Callable[..., Any])
_MOST_SUMMARY = 120  # characters


@frozen
class Event:
    """The start or the end of a call: of a tool by a model, or of a method by the program.

    Attributes:
        kind: "started", and then "finished", "refused" (the call was wrong or not allowed) or "failed" (an
            operation or the tool failed).
        tool: Our own name of the tool: the method, or the name of the function.
        call: A number shared by the events of one call.
        code: The code of the error, "cancelled" for a cancelled call, or "".
        elapsed_ms: Milliseconds since the start.
        sent_chars: Characters of the arguments if they were sent as text.
        content_chars: Characters of the answer.
        tokens: An estimate of the tokens of the answer.
        skipped: The number of skipped files, by reason.
        coercions: The arguments that were not sent as the schema requires.
        format: The format of the answer if the tool has several, or "".
        path: The file of the call, or None.
        arguments: The arguments by name, as they were sent. `redacting` hides some of them.
        summary: One line on the result, or the message of the error.
        bytes: Bytes of the answer in UTF-8, images included.
        direct: True if the program called the method itself, False for a tool call.
        call_id: The provider's id of a tool call that came by `Toolset.answer` or `aanswer`, or "".
        called_as: The name that the model called, or "" if the program called the method itself.
        exception: The exception that the tool or the permission callback raised, or None. Models never see
            it.
    """

    kind: Literal["started", "finished", "refused", "failed"]
    tool: str
    call: int
    code: str = ""
    elapsed_ms: float = 0.0
    sent_chars: int = 0
    content_chars: int = 0
    tokens: int = 0
    skipped: Mapping[str, int] = field(default_factory=dict[str, int])
    coercions: tuple[Coercion, ...] = ()
    format: str = ""
    path: str | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])
    summary: str = ""
    bytes: int = 0
    direct: bool = False
    call_id: str = ""
    called_as: str = ""
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


def redacting(on_event: OnEvent, redact: Callable[[Event], Mapping[str, Any]]) -> OnEvent:
    """Return a callback that gets events without some of their arguments.

    Args:
        on_event: The callback that gets the events.
        redact: Returns the arguments to show for an event.

    Returns:
        The callback to pass as `on_event`. If `redact` raises an exception, the event is not passed on.
    """

    def report(event: Event) -> None:
        on_event(replace(event, arguments=redact(event)))

    return report


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
    def reporting(
        self, name: Any, arguments: Any, *, sent_chars: int = 0, direct: bool = False, called_as: Any = ""
    ) -> "Generator[_Outcome]":
        """Report the start and the end of the call that the block makes. The block sets the outcome."""
        given = _as_mapping(arguments)
        started = Event(
            "started",
            str(name)[:100],
            next(_numbers),
            sent_chars=sent_chars,
            path=_path_of(given),
            arguments=given,
            direct=direct,
            call_id="" if direct else _call_id.get(),
            called_as=str(called_as)[:100],
        )
        outcome = _Outcome()
        # Calls that the callback itself makes are not reported either, or it would be called without end.
        token = _reported_to.set((*_reported_to.get(), self._on_event))
        try:
            self._emit(started)
            began = time.perf_counter()
            try:
                yield outcome
            except BaseException as error:
                outcome.value = error
                outcome.exception = error.__cause__ if isinstance(error, AgentFSError) else error
                raise
            finally:
                self._report_end(started, time.perf_counter() - began, outcome)
        finally:
            _reported_to.reset(token)

    def _report_end(self, started: Event, seconds: float, outcome: "_Outcome") -> None:
        result = outcome.result
        code = str(result.error["code"]) if result.error else ""
        data = _as_mapping(result.data)
        counts = _as_mapping(data.get("skipped"))
        kind: Literal["finished", "refused", "failed"] = "refused" if code in _REFUSAL_CODES else "failed"
        images = sum(len(image.data) for image in result.images)
        self._emit(
            replace(
                started,
                kind="finished" if result.success else kind,
                code=code,
                elapsed_ms=seconds * 1000,
                content_chars=len(result.content),
                tokens=estimate_tokens(result.content),
                skipped={reason: count for reason, count in counts.items() if type(count) is int and count},
                coercions=result.coercions,
                format=data["format"] if isinstance(data.get("format"), str) else "",
                path=result.file_path or started.path,
                summary=result.short_result,
                bytes=len(result.content.encode(errors="replace")) + images,
                exception=outcome.exception,
            )
        )

    def log_exception(self, name: str, error: BaseException) -> None:
        """Log an unexpected exception in a call, or in the callback."""
        logging.getLogger("agentfs").error("tool %s failed unexpectedly", name, exc_info=error)

    def _emit(self, event: Event) -> None:
        if is_debugging():
            line = "%s %s #%d %s %s %.1f ms, %d characters, about %d tokens, %d coercions"
            path = "" if event.path is None else one_line(event.path)
            sizes = (event.elapsed_ms, event.content_chars, event.tokens, len(event.coercions))
            logger = sys.modules["logging"].getLogger("agentfs")
            logger.debug(line, event.kind, event.tool, event.call, path, event.code, *sizes)
        if self._on_event is None:
            return
        try:
            self._on_event(event)
        except Exception as error:  # noqa: BLE001 - a callback must not stop the call
            self.log_exception(f"on_event for {event.tool}", error)


class _Outcome:
    """The outcome of a reported call: a `ToolResult`, what a method returned, or what it raised."""

    value: Any = None
    exception: BaseException | None = None

    @cached_property
    def result(self) -> ToolResult:
        match self.value:
            case ToolResult():
                return self.value
            case Result() as result:
                images = result.images if isinstance(result, ReadResult) else ()
                path = getattr(result, "path", None)
                found = getattr(result, "skipped", None)
                skipped: dict[str, Any] = {"skipped": vars(found)} if isinstance(found, Skipped) else {}
                summary = result.summary or first_line(result.text)
                return ToolResult(True, result.text, summary, images=images, file_path=path, data=skipped)
            case AgentFSError() as error:
                failure = {"code": error.code, "message": str(error.message)}
                return ToolResult(False, str(error), first_line(error.message), error=failure)
            case Exception() as error:
                name = type(error).__name__
                return ToolResult(False, "", name, error={"code": "internal", "message": name})
            case BaseException():
                cancelled = {"code": "cancelled", "message": "The call was cancelled."}
                return ToolResult(False, "", "cancelled", error=cancelled)
            case other:
                return ToolResult(True, "", first_line(str(other)))


def _path_of(arguments: Mapping[str, Any]) -> str | None:
    path: str | PathLike[str] | None = arguments.get("path")
    found: Any = fspath(path) if isinstance(path, PathLike) else path
    return found if isinstance(found, str) else None


def first_line(text: str) -> str:
    """Return the first line of a text that is not blank, shortened for a person."""
    line = quoted(next((line.strip() for line in text[:10_000].split("\n") if line.strip()), ""))
    return line if len(line) <= _MOST_SUMMARY else f"{line[: _MOST_SUMMARY - 1]}…"


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
        direct = execution is None or execution.tool is None
        given = _given(method, args, kwargs)
        with EventEmitter(on_event).reporting(method.__name__, given, direct=direct) as outcome:
            outcome.value = method(self, *args, **kwargs)
            return outcome.value

    return cast("_F", reported)


def _given(method: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call by name."""
    _, *names = signature(method).parameters
    return {**dict(zip(names, args, strict=False)), **kwargs}


def _as_mapping(value: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def is_debugging() -> bool:
    """Return True if the logger writes details; before logging is imported nobody can enable that."""
    logging = sys.modules.get("logging")
    return logging is not None and logging.getLogger("agentfs").isEnabledFor(logging.DEBUG)
