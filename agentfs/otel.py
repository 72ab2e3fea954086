"""Spans of OpenTelemetry for calls, by its semantic conventions for generative AI (extra `otel`)."""

import threading
from collections import OrderedDict
from typing import Any

from opentelemetry import trace
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer

from agentfs.base.visible import to_json
from agentfs.events import Event, OnEvent

_MOST_OPEN = 10_000  # spans of calls that have not ended; a killed thread never ends its call


class _SpanRecorder:
    """Starts a span with a call, and ends it with the call."""

    def __init__(self, tracer: Tracer, *, arguments: bool) -> None:
        self._tracer = tracer
        self._arguments = arguments
        self._open: OrderedDict[int, Span] = OrderedDict()
        self._lock = threading.Lock()

    def __call__(self, event: Event) -> None:
        if event.kind == "started":
            span = self._tracer.start_span(
                f"agentfs {event.tool}" if event.direct else f"execute_tool {event.tool}",
                kind=SpanKind.INTERNAL,
                attributes=self._at_start(event),
            )
            with self._lock:
                self._open[event.call] = span
                lost = self._open.popitem(last=False)[1] if len(self._open) > _MOST_OPEN else None
            if lost is not None:
                lost.end()
            return
        with self._lock:
            found = self._open.pop(event.call, None)
        if found is None:
            return
        found.set_attributes(_at_end(event))
        if event.kind != "finished":
            found.set_status(Status(StatusCode.ERROR, event.summary))
        found.end()

    def _at_start(self, event: Event) -> dict[str, Any]:
        attributes: dict[str, Any] = {}
        if not event.direct:
            attributes |= {
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": event.tool,
                "gen_ai.tool.type": "function",
            }
        if event.call_id:
            attributes["gen_ai.tool.call.id"] = event.call_id
        if self._arguments:
            attributes["gen_ai.tool.call.arguments"] = to_json(dict(event.arguments), default=str)
        return attributes


def _at_end(event: Event) -> dict[str, Any]:
    attributes: dict[str, Any] = {
        "agentfs.summary": event.summary,
        "agentfs.answer.bytes": event.bytes,
        "agentfs.answer.tokens": event.tokens,
        "agentfs.coercions": len(event.coercions),
    }
    if event.path is not None:
        attributes["agentfs.path"] = event.path
    if event.code:
        attributes["error.type"] = event.code
    for reason, count in event.skipped.items():
        attributes[f"agentfs.skipped.{reason}"] = count
    return attributes


def record_spans(tracer: Tracer | None = None, *, arguments: bool = False) -> OnEvent:
    """Return a callback that records a span for each call.

    The span of a tool call is named `execute_tool`, with the name of the tool. The span of a method that the
    program calls is named `agentfs`, with the name of the method. A span is a child of the span that is
    current in the thread of the call.

    Args:
        tracer: Makes the spans; by default the tracer "agentfs" of the global provider.
        arguments: Add the arguments as JSON. They can have contents of files: `redacting` hides them.

    Returns:
        The callback to pass as `on_event`.
    """
    return _SpanRecorder(tracer or trace.get_tracer("agentfs"), arguments=arguments)
