"""Spans of calls, as an exporter of OpenTelemetry gets them."""

import asyncio
import json

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from agentfs import Workspace
from agentfs.errors import NotFoundError
from agentfs.events import redacting
from agentfs.otel import record_spans


@pytest.fixture
def exporter():
    return InMemorySpanExporter()


@pytest.fixture
def tracer(exporter):
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return provider.get_tracer("test")


@pytest.fixture
def ws(tmp_path, tracer):
    (tmp_path / "a.txt").write_text("one\n")
    with Workspace(tmp_path, on_event=record_spans(tracer)) as opened:
        yield opened


def test_a_tool_call_is_a_span_by_the_conventions(ws, exporter):
    function = {"name": "read", "arguments": '{"path": "a.txt"}'}
    ws.tools().answer([{"id": "call_1", "type": "function", "function": function}])
    (span,) = exporter.get_finished_spans()
    assert (span.name, span.kind, span.status.status_code) == (
        "execute_tool read",
        SpanKind.INTERNAL,
        StatusCode.UNSET,
    )
    assert dict(span.attributes) == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "read",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": "call_1",
        "agentfs.path": "a.txt",
        "agentfs.summary": "Read a.txt: lines 1-1 of 1",
        "agentfs.answer.bytes": 5,
        "agentfs.answer.tokens": span.attributes["agentfs.answer.tokens"],
        "agentfs.coercions": 0,
    }
    assert span.end_time >= span.start_time


def test_a_failed_call_is_an_error_with_its_code(ws, exporter):
    ws.tools().call("read", {"path": "gone.txt"})
    ws.tools().call("nothing")
    with pytest.raises(NotFoundError):
        ws.read("gone.txt")
    spans = exporter.get_finished_spans()
    assert [span.attributes["error.type"] for span in spans] == ["not_found", "unknown_tool", "not_found"]
    assert {span.status.status_code for span in spans} == {StatusCode.ERROR}
    assert "gone.txt" in spans[0].status.description


def test_a_method_of_the_program_is_a_span_of_its_own(ws, exporter):
    ws.grep("one")
    (span,) = exporter.get_finished_spans()
    assert span.name == "agentfs grep"
    assert not [name for name in span.attributes if name.startswith("gen_ai.")]


def test_spans_are_children_of_the_current_span(ws, exporter, tracer):
    with tracer.start_as_current_span("turn") as turn:
        ws.tools().call("ls")
        asyncio.run(ws.tools().acall("ls"))
        ws.ls()
    *spans, _ = exporter.get_finished_spans()
    assert len(spans) == 3
    assert {span.parent.span_id for span in spans} == {turn.get_span_context().span_id}


def test_arguments_are_recorded_only_on_request_and_can_be_redacted(tmp_path, exporter, tracer):
    sent = {"path": "a.txt", "content": "secret \u202e\n"}
    hidden = redacting(
        record_spans(tracer, arguments=True), lambda event: {**event.arguments, "content": "…"}
    )
    for callback in (record_spans(tracer), hidden, record_spans(tracer, arguments=True)):
        (tmp_path / "a.txt").unlink(missing_ok=True)
        with Workspace(tmp_path, on_event=callback) as ws:
            assert ws.tools().call("write", sent).success
    names = [span.attributes.get("gen_ai.tool.call.arguments") for span in exporter.get_finished_spans()]
    assert names[0] is None
    assert json.loads(names[1]) == {"path": "a.txt", "content": "…"}
    assert json.loads(names[2]) == sent


def test_calls_in_threads_end_their_own_spans(ws, exporter):
    tools = ws.tools()
    calls = [
        {"id": f"{number}", "type": "function", "function": {"name": "ls", "arguments": "{}"}}
        for number in range(20)
    ]
    tools.answer(calls)
    spans = exporter.get_finished_spans()
    assert sorted(int(span.attributes["gen_ai.tool.call.id"]) for span in spans) == list(range(20))
