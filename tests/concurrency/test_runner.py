"""Calls off the event loop: cancellation, bounds, order, and events."""

import asyncio
import logging
import os
import threading
import time

import pytest

from agentfs import Event, Policy, Toolset, Workspace
from agentfs.errors import InvalidArgumentError
from agentfs.results import ReadResult, WriteResult
from agentfs.tools.tool import Tool, tool
from tests import kit
from tests.kit import described


def call(name, **arguments):
    return {"type": "tool_use", "id": f"{name}-{arguments}", "name": name, "input": arguments}


async def test_at_most_concurrency_calls_run_at_once():
    most = [0, 0]
    lock = threading.Lock()

    @described
    def slow() -> str:
        with lock:
            most[0] += 1
            most[1] = max(most)
        time.sleep(0.01)
        with lock:
            most[0] -= 1
        return "done"

    tools = Toolset([slow], concurrency=3)
    results = await asyncio.gather(*(tools.acall("slow") for _ in range(30)))
    assert {result.content for result in results} == {"done"}
    assert most[1] == 3


async def test_a_cancellation_waits_for_a_change_that_has_begun(tmp_path):
    begun, go_on = threading.Event(), threading.Event()

    @described
    def change() -> str:
        begun.set()
        go_on.wait(5)
        (tmp_path / "done").touch()
        return "done"

    task = asyncio.create_task(Toolset([change]).acall("change"))
    await asyncio.to_thread(begun.wait, 5)
    task.cancel()
    await asyncio.sleep(0.05)
    assert not task.done()
    task.cancel()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (tmp_path / "done").exists()


async def test_a_call_that_waits_for_an_answer_releases_its_slot(tmp_path):
    """Twelve calls wait for an answer while two may run; the callback reads with the same tools."""
    (tmp_path / "a.txt").write_text("one\n")

    async def ask(request):
        return request.method == "ls" or (await tools.acall("ls")).success

    with Workspace(tmp_path, policy=Policy(on_ask=ask)) as ws:
        tools = Toolset([ws.read, ws.ls], concurrency=2)
        async with asyncio.timeout(20):
            results = await asyncio.gather(*(tools.acall("read", {"path": "a.txt"}) for _ in range(12)))
    assert all(result.success for result in results)


def recorder():
    log: list[tuple[str, str]] = []

    @tool(effect="read")
    @described
    def look(path: str) -> ReadResult:
        log.append(("in", path))
        time.sleep(0.03)
        log.append(("out", path))
        return ReadResult(path, "text", "", 0, 0, 0, 0, "x", text=path)

    @described
    def put(path: str) -> WriteResult:
        log.append(("put", path))
        return WriteResult(path, True, 0, "", "x", text=path)

    return log, Toolset([look, Tool(function=put, name="store")])


@pytest.mark.parametrize("asynchronous", [False, True])
def test_reads_run_in_parallel_and_changes_in_their_place(asynchronous):
    log, tools = recorder()
    calls = [call("look", path="a"), call("look", path="b"), call("store", path="a"), call("store", path="b"),
             call("look", path="a")]  # fmt: skip
    messages = asyncio.run(tools.aanswer(calls)) if asynchronous else tools.answer(calls)
    assert sorted(log[:2]) == [("in", "a"), ("in", "b")]
    assert log[4:] == [("put", "a"), ("put", "b"), ("in", "a"), ("out", "a")]
    assert [block["tool_use_id"] for block in messages[0]["content"]] == [each["id"] for each in calls]
    assert [block["content"][0]["text"] for block in messages[0]["content"]] == ["a", "b", "a", "b", "a"]


def test_the_callback_gets_the_events_of_each_call(tmp_path):
    events: list[Event] = []
    (tmp_path / ".hidden").touch()
    with Workspace(tmp_path, on_event=events.append) as ws:
        tools = ws.tools()
        tools.call("write", '{"file_path": "a.txt", "content": "one"}')
        tools.call("glob", {"pattern": "*", "limit": "5"})
        tools.call("read", {"path": "missing"})
        tools.call("nothing", {})
    assert [event.kind for event in events] == [
        "started", "finished", "started", "finished", "started", "failed", "started", "refused",
    ]  # fmt: skip
    wrote, found, missed, unknown = events[1::2]
    (coercion,) = wrote.outcome.coercions
    assert (coercion.parameter, coercion.rule) == ("path", 'alias "file_path"')
    assert found.outcome.to_dict()["coercions"] == [{"parameter": "limit", "rule": '"5" as integer'}]
    assert found.outcome.data["skipped"]["hidden"] == 1
    assert (kit.code(missed), kit.code(unknown)) == ("not_found", "unknown_tool")
    assert wrote.elapsed_ms > 0
    assert [event.call for event in events[::2]] == [event.call for event in events[1::2]]


def test_an_event_callback_that_raises_does_not_stop_the_call_and_is_logged(tmp_path, caplog):
    def watch(event):
        raise ZeroDivisionError

    with caplog.at_level(logging.DEBUG, "agentfs"), Workspace(tmp_path, on_event=watch) as ws:
        assert ws.tools().call("ls").success
    assert "on_event" in caplog.text
    said = [record.message.split()[:2] for record in caplog.records if "on_event" not in record.message]
    assert said == [["started", "ls"], ["finished", "ls"]]


@pytest.mark.parametrize("wrong", [0, -1, True, "8"])
def test_concurrency_is_a_positive_integer(wrong):
    with pytest.raises(InvalidArgumentError):
        Toolset([], concurrency=wrong)


async def test_a_change_cancelled_before_it_replaces_a_file_ends_soon(tmp_path, monkeypatch):
    """A change counted as begun at once, so that a cancellation waited until it had read everything."""
    (tmp_path / "a.txt").write_bytes(b"line\n" * 100_000)
    read, slow = os.pread, threading.Event()

    def slowly(fd, size, position):
        if slow.is_set():
            time.sleep(0.02)
            size = min(size, 512)
        return read(fd, size, position)

    monkeypatch.setattr(os, "pread", slowly)

    arguments = {"path": "a.txt", "old_string": "line", "new_string": "other", "replace_all": True}
    with Workspace(tmp_path) as ws:
        slow.set()
        call = asyncio.create_task(ws.tools().acall("edit", arguments))
        await asyncio.sleep(0.5)
        began = time.monotonic()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        slow.clear()
        assert time.monotonic() - began < 5  # the deadline is ten seconds
        await asyncio.sleep(0.5)  # the thread notices the cancellation
        assert (tmp_path / "a.txt").read_bytes() == b"line\n" * 100_000
        assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]
        assert not ws.changes().files


def texts(replies):
    return [part["content"][0]["text"] for reply in replies for part in reply["content"]]


def in_time(function, *arguments):
    """Call a function in a thread that may hang, so that a deadlock is a failure."""
    answer = []
    thread = threading.Thread(target=lambda: answer.append(function(*arguments)), daemon=True)
    thread.start()
    thread.join(10)
    assert answer, "it waits for itself"
    return answer[0]


@pytest.mark.parametrize("concurrency", [1, 2])
@pytest.mark.parametrize("inner", ["answer", "aanswer", "acall"])
def test_a_tool_may_call_the_tools_of_its_own_toolset(concurrency, inner):
    """Otherwise each inner call would wait for a slot that the outer calls hold."""

    @tool(effect="read")
    @described
    def leaf(number: int) -> str:
        return str(number)

    @tool(effect="read")
    @described
    def several(depth: int) -> str:
        leaves = [call("leaf", number=number) for number in range(3)]
        calls = [call("several", depth=depth - 1)] * 2 if depth else leaves
        if inner == "acall":
            return " ".join(asyncio.run(tools.acall(each["name"], each["input"])).content for each in calls)
        return " ".join(
            texts(tools.answer(calls) if inner == "answer" else asyncio.run(tools.aanswer(calls)))
        )

    tools = Toolset([leaf, several], concurrency=concurrency)
    calls = [call("several", depth=2) for _ in range(3)]
    replies = in_time(tools.answer, calls)
    assert texts(replies) == [" ".join(["0 1 2"] * 4)] * 3
    again = in_time(lambda: asyncio.run(tools.aanswer(calls)))
    assert texts(again) == texts(replies)


def test_an_interrupted_call_has_an_end_event():
    @described
    def stop() -> str:
        raise KeyboardInterrupt

    events: list[Event] = []
    with pytest.raises(KeyboardInterrupt):
        Toolset([stop], on_event=events.append).call("stop")
    assert [(event.kind, kit.code(event)) for event in events] == [("started", ""), ("failed", "cancelled")]
