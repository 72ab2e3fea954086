"""Events: each call is reported once, with what it was about, and nothing is spent if nobody listens."""

import asyncio
import logging
from functools import partial

import pytest

from agentfs import Event, Policy, Toolset, Workspace, connect
from tests import kit
from tests.remote.over_pipe import open_pipe


@pytest.fixture
def seen():
    return list[Event]()


@pytest.fixture(params=["local", "remote"])
def ws(request, tmp_path, seen):
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    given = (Workspace,) if request.param == "local" else (connect, open_pipe())
    with partial(*given)(tmp_path, on_event=seen.append) as opened:
        yield opened


def brief(events):
    return [(event.kind, event.tool, not event.called_as) for event in events]


def test_a_direct_call_is_reported_with_its_path_and_arguments(ws, seen):
    ws.edit("a.txt", "one", "1", expect=1)
    started, finished = seen
    assert brief(seen) == [("started", "edit", True), ("finished", "edit", True)]
    assert started.call == finished.call
    for event in seen:
        assert event.arguments == {"path": "a.txt", "old_string": "one", "new_string": "1", "expect": 1}
    assert finished.outcome.path == "a.txt"
    assert (finished.elapsed_ms > 0, finished.exception) == (True, None)
    assert "two" not in repr(finished), "an outcome has contents of files"


def test_a_tool_call_is_reported_once_and_not_as_direct(ws, seen):
    ws.tools().call("read", '{"path": "a.txt"}')
    assert brief(seen) == [("started", "read", False), ("finished", "read", False)]
    assert seen[1].arguments == {"path": "a.txt"}
    assert seen[1].outcome.file_path == "a.txt"
    assert seen[0].outcome is None


def test_a_dialect_reports_the_tool_of_the_model_alone(ws, seen):
    ws.tools(dialect="wave").call("Read", {"file_path": "a.txt"})
    Toolset([ws.read]).call("read", {"path": "a.txt"})  # a toolset without events of its own
    assert [(event.tool, event.called_as) for event in seen[::2]] == [("read", "Read"), ("read", "read")]


def test_a_failed_call_is_reported_with_its_code(ws, seen):
    gone = kit.error_of(ws.read, "gone.txt")
    assert (seen[1].kind, seen[1].outcome, seen[1].exception) == ("failed", None, gone)
    seen.clear()
    kit.error_of(ws.view(policy=Policy(mode="plan")).delete, "a.txt")
    assert (seen[1].kind, kit.code(seen[1])) == ("refused", "refused")


def test_every_declared_method_is_reported(ws, seen):
    ws.append("b.txt", "x\n")
    ws.move("a.txt", "c.txt")
    ws.stat("c.txt")
    ws.checkpoint("here")
    ws.undo()
    with ws.transaction() as tx:
        tx.write("d.txt", "x\n")
    names = [event.tool for event in seen if event.kind == "finished"]
    assert names == ["append", "move", "stat", "checkpoint", "undo", "write"]


def test_awaited_methods_are_reported(ws, seen):
    async def main() -> None:
        await asyncio.to_thread(ws.grep, "one")
        await ws.tools().acall("grep", {"pattern": "one"})

    asyncio.run(main())
    assert brief(seen)[::2] == [("started", "grep", True), ("started", "grep", False)]


def test_events_have_the_id_of_the_call_of_the_provider(ws, seen):
    def call(number):
        function = {"name": "read", "arguments": '{"path": "a.txt"}'}
        return {"id": f"call_{number}", "type": "function", "function": function}

    tools = ws.tools()
    tools.answer([call(1)])[0]
    tools.answer([call(2), call(3)])
    asyncio.run(tools.aanswer([call(4)]))
    asyncio.run(tools.aanswer([call(5), call(6)]))
    ws.read("a.txt")
    ids = [event.call_id for event in seen if event.kind == "finished"]
    assert sorted(ids) == ["", *(f"call_{number}" for number in range(1, 7))]


def test_the_logger_has_direct_calls_without_their_arguments(tmp_path, caplog):
    with caplog.at_level(logging.DEBUG, logger="agentfs"), Workspace(tmp_path) as ws:
        ws.write("a.txt", "secret\n")
        ws.tools().call("read", {"path": "a\n.txt"})
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == 4
    assert lines[0].startswith("started write #")
    assert "a.txt" in lines[1]
    assert not [line for line in lines if "secret" in line or "\n" in line]


def test_without_a_listener_no_event_is_made(tmp_path, monkeypatch):
    from agentfs import events

    def never(*_args, **_named):
        raise AssertionError

    monkeypatch.setattr(events, "Event", never)
    with Workspace(tmp_path) as ws:
        ws.write("a.txt", "x\n")
        assert ws.tools().call("read", {"path": "a.txt"}).success


def test_a_callback_may_call_methods_itself(tmp_path, seen):
    """Each call of the callback was reported to the callback, without end."""

    def on_event(event):
        seen.append(event)
        ws.ls()

    with Workspace(tmp_path, on_event=on_event) as ws:
        ws.write("a.txt", "x\n")
        ws.tools().call("read", {"path": "a.txt"})
    assert [event.tool for event in seen] == ["write", "write", "read", "read"]
