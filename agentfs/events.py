"""Events of tool calls, for a callback and the standard logging."""

import itertools
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias, cast

from agentfs.errors import AccessError, AgentFSError, ArgumentError, OutsideWorkspaceError
from agentfs.results import Coercion, ToolResult
from agentfs.text import estimate_tokens


@dataclass(frozen=True)
class Event:
    """The start or the end of a tool call.

    Attributes:
        kind: "started", and then "finished", "refused" (the call was wrong or not allowed) or "failed" (an
            operation or the tool failed).
        tool: The name that the model called.
        call: A number shared by the events of one call.
        code: The code of the error, "cancelled" for a cancelled call, or "".
        elapsed_ms: Milliseconds since the start.
        sent_chars: Characters of the arguments if they were sent as text.
        content_chars: Characters of the answer.
        tokens: An estimate of the tokens of the answer.
        skipped: The number of skipped files, by reason.
        coercions: The arguments that were not sent as the schema requires.
        format: The format of the answer if the tool has several, or "".
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


OnEvent: TypeAlias = Callable[[Event], object]

# The errors of calls that were wrong or not allowed.
_REFUSALS: list[type[AgentFSError]] = [
    *ArgumentError.__subclasses__(), *AccessError.__subclasses__(), OutsideWorkspaceError
]  # fmt: skip
_REFUSAL_CODES = {error.code for error in _REFUSALS}
_numbers = itertools.count(1)


class EventEmitter:
    """Reports calls to a callback and the logger "agentfs"; exceptions of the callback are logged."""

    def __init__(self, on_event: OnEvent | None) -> None:
        self._on_event = on_event

    @property
    def active(self) -> bool:
        """True if there is a callback or the logger writes details."""
        return self._on_event is not None or _is_debugging()

    def report_start(self, name: Any, arguments: Any) -> Event:
        """Report the start of a call, with its name and arguments as they were sent."""
        sent = len(arguments) if isinstance(arguments, str) else 0
        started = Event("started", str(name)[:100], next(_numbers), sent_chars=sent)
        self._emit(started)
        return started

    def report_end(self, started: Event, seconds: float, result: ToolResult) -> None:
        """Report the end of a call."""
        code = str(result.error["code"]) if result.error else ""
        data = _as_mapping(result.data)
        counts = _as_mapping(data.get("skipped"))
        kind: Literal["finished", "refused", "failed"] = "refused" if code in _REFUSAL_CODES else "failed"
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
            )
        )

    def log_exception(self, name: str, error: Exception) -> None:
        """Log an unexpected exception in a call, or in the callback."""
        import logging  # noqa: PLC0415 - rarely needed, and takes a quarter of the import of agentfs

        logging.getLogger("agentfs").error("tool %s failed unexpectedly", name, exc_info=error)

    def _emit(self, event: Event) -> None:
        if _is_debugging():
            line = "%s %s #%d %s %.1f ms, %d characters, about %d tokens, %d coercions"
            sizes = (event.elapsed_ms, event.content_chars, event.tokens, len(event.coercions))
            logger = sys.modules["logging"].getLogger("agentfs")
            logger.debug(line, event.kind, event.tool, event.call, event.code, *sizes)
        if self._on_event is None:
            return
        try:
            self._on_event(event)
        except Exception as error:  # noqa: BLE001 - a callback must not stop the call
            self.log_exception(f"on_event for {event.tool}", error)


def _as_mapping(value: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _is_debugging() -> bool:
    """Return True if the logger writes details; before logging is imported nobody can enable that."""
    logging = sys.modules.get("logging")
    return logging is not None and logging.getLogger("agentfs").isEnabledFor(logging.DEBUG)
