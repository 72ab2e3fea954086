"""Telling whoever watches what happens to calls: a callback, and the standard logging."""

import itertools
import sys
import time
from collections.abc import Mapping
from typing import Any, NamedTuple, cast

from agentfs.events import Event, OnEvent
from agentfs.results import ToolResult
from agentfs.text.tokens import estimate_tokens

_REFUSALS = frozenset(
    {"invalid_argument", "invalid_pattern", "unknown_tool", "refused", "read_only", "protected"}
    | {"outside_workspace"}
)
_numbers = itertools.count(1)


class CallHandle(NamedTuple):
    """A call that has been told of as started."""

    tool: str
    call: int
    at: float
    sent_chars: int


class EventEmitter:
    """Tells a callback and the logger "agentfs" of calls; what goes wrong in the callback stays there."""

    def __init__(self, on_event: OnEvent | None) -> None:
        """Remember whom to tell.

        Args:
            on_event: The callback, or None.
        """
        self._on_event = on_event

    @property
    def watched(self) -> bool:
        """Whether anyone is to be told."""
        return self._on_event is not None or _debugging()

    def started(self, name: Any, arguments: Any) -> CallHandle:
        """Tell that a call has started.

        Args:
            name: The name of the tool, as it was sent.
            arguments: Its arguments, as they were sent.
        """
        sent = len(arguments) if isinstance(arguments, str) else 0
        started = CallHandle(str(name)[:100], next(_numbers), time.perf_counter(), sent)
        self._tell(Event("started", started.tool, started.call, sent_chars=sent))
        return started

    def ended(self, started: CallHandle, result: ToolResult) -> None:
        """Tell how a call has ended.

        Args:
            started: What `started` returned for it.
            result: What it came to.
        """
        code = str(result.error["code"]) if result.error else ""
        self._tell(
            Event(
                "finished" if result.success else "refused" if code in _REFUSALS else "failed",
                started.tool,
                started.call,
                code=code,
                elapsed_ms=(time.perf_counter() - started.at) * 1000,
                sent_chars=started.sent_chars,
                content_chars=len(result.content),
                tokens=estimate_tokens(result.content),
                skipped=_skipped(result.data),
                coercions=result.coercions,
                format=_format(result.data),
            )
        )

    def unexpected(self, name: str, error: Exception) -> None:
        """Log an exception that nobody foresaw.

        Args:
            name: The name of the tool, fit to show.
            error: The exception.
        """
        import logging  # noqa: PLC0415 - costs a quarter of the import of agentfs, and is rarely needed

        logging.getLogger("agentfs").error("tool %s failed unexpectedly", name, exc_info=error)

    def _tell(self, event: Event) -> None:
        if _debugging():
            line = "%s %s #%d %s %.1f ms, %d characters, about %d tokens, %d coercions"
            facts = (event.elapsed_ms, event.content_chars, event.tokens, len(event.coercions))
            sys.modules["logging"].getLogger("agentfs").debug(
                line, event.kind, event.tool, event.call, event.code, *facts
            )
        if self._on_event is None:
            return
        try:
            self._on_event(event)
        except Exception as error:  # noqa: BLE001 - a watcher must not stop what it watches
            self.unexpected(f"on_event for {event.tool}", error)


def _debugging() -> bool:
    """Tell whether the logger writes details; who has not imported logging cannot have asked for them."""
    logging = sys.modules.get("logging")
    return logging is not None and logging.getLogger("agentfs").isEnabledFor(logging.DEBUG)


def _skipped(data: Any) -> dict[str, int]:
    found: Any = cast("Mapping[str, Any]", data).get("skipped") if isinstance(data, Mapping) else None
    if not isinstance(found, Mapping):
        return {}
    counts = cast("Mapping[str, Any]", found)
    return {reason: count for reason, count in counts.items() if type(count) is int and count}


def _format(data: Any) -> str:
    name: Any = cast("Mapping[str, Any]", data).get("format") if isinstance(data, Mapping) else None
    return name if isinstance(name, str) else ""
