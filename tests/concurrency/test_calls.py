"""Calls off the event loop, and `async` functions as tools: cancellation, bounds, order and events."""
# ruff: noqa: ASYNC110 - events are told from a thread

import asyncio
import inspect
import logging
import os
import threading
import time
from contextvars import ContextVar

import anyio
import pytest

from agentfs import Event, Policy, Toolset, Workspace
from agentfs.errors import InvalidArgumentError, NotFoundError
from agentfs.results import ReadResult, WriteResult
from agentfs.tools.tool import Tool, tool
from tests import kit
from tests.kit import described


@tool(effect="none")
@described
async def double(text: str, times: int = 2) -> str:
    await anyio.sleep(0.001)
    if not text:
        raise NotFoundError("There is no text.")
    return text * times


def call(name, **arguments):
    return {"type": "tool_use", "id": f"{name}-{arguments}", "name": name, "input": arguments}


def texts(replies):
    return [part["content"][0]["text"] for reply in replies for part in reply["content"]]


async def test_an_async_function_is_awaited_by_acall_and_arun():
    tools = Toolset([double])
    assert (await tools.acall("double", '{"text": "ab", "times": "3"}')).content == "ababab"
    assert (await tools.acall("double", {"text": ""})).error["code"] == "not_found"
    assert (await tools.acall("double", {})).error["code"] == "invalid_argument"
    assert texts(await tools.aanswer([call("double", text="a"), call("double", text="b")])) == ["aa", "bb"]
    assert texts(await tools.aanswer([call("double", text="a")])) == ["aa"]


def test_call_and_run_give_an_async_function_its_own_event_loop():
    @described
    async def here() -> str:
        return f"{threading.current_thread() is threading.main_thread()}"

    assert Toolset([here]).call("here").content == "True"
    assert texts(Toolset([double]).answer([call("double", text="a"), call("double", text="b")])) == [
        "aa",
        "bb",
    ]


async def test_call_within_an_event_loop_is_an_error():
    tools = Toolset([double])
    for act in (
        lambda: tools.call("double", {"text": "a"}),
        lambda: tools.answer([call("double", text="a"), call("double", text="b")]),
    ):
        assert "acall" in str(kit.refused(act, "invalid_argument"))
    assert tools.call("missing").error["code"] == "unknown_tool"


async def test_an_async_function_keeps_the_context_and_the_thread_of_the_loop():
    user = ContextVar("user", default="")

    @described
    async def whose() -> str:
        seen = user.get()
        user.set("changed")
        return f"{seen} {threading.current_thread() is threading.main_thread()}"

    user.set("ada")
    assert (await Toolset([whose]).acall("whose")).content == "ada True"


async def test_a_misnamed_async_tool_is_awaited_on_the_loop_of_the_caller():
    @described
    async def countWords(text: str) -> str:  # noqa: N802 - a name that is translated
        await anyio.sleep(0.001)
        return f"{text} {threading.current_thread() is threading.main_thread()}"

    result = await Toolset([countWords]).acall("count_words", {"text": "a"})
    assert result.content == "a True"


async def test_a_cancelled_async_function_cleans_up_and_has_an_end_event():
    log = []

    @described
    async def wait() -> str:
        try:
            await anyio.sleep(60)
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.sleep(0.01)
            log.append("cleaned")
        return ""

    tools = Toolset([wait], on_event=log.append)
    with anyio.move_on_after(0.05) as scope:
        await tools.acall("wait")
    assert scope.cancelled_caught
    found = [each if isinstance(each, str) else (each.kind, kit.code(each)) for each in log]
    assert found == [("started", ""), "cleaned", ("failed", "cancelled")]


async def test_an_async_function_calls_the_tools_of_its_own_toolset(tmp_path):
    (tmp_path / "a.txt").write_text("one\n")

    @described
    async def twice(path: str) -> str:
        results = [await tools.acall("read", {"path": path}) for _ in range(2)]
        return " ".join(result.content for result in results)

    with Workspace(tmp_path) as ws:
        tools = Toolset([ws.read, twice], concurrency=1)
        assert (await tools.acall("twice", {"path": "a.txt"})).content == "1|one 1|one"


async def test_methods_run_off_every_event_loop(tmp_path):
    (tmp_path / "a.txt").write_text("one\n")
    asked = []

    async def ask(request):
        await anyio.sleep(0.001)
        asked.append((request.method, threading.current_thread() is threading.main_thread()))
        return request.method == "read"

    with Workspace(tmp_path, policy=Policy(on_ask=ask, ask=["*"])) as ws:
        tools = ws.tools()
        assert (await tools.acall("read", {"path": "a.txt"})).content == "1|one"
        assert (await tools.acall("ls")).error["code"] == "refused"
        calls = [{"type": "tool_use", "id": "1", "name": "read", "input": {"path": "a.txt"}}] * 5
        assert texts(await tools.aanswer(calls)) == ["1|one"] * 5
    assert asked == [("read", True), ("ls", True), *[("read", True)] * 5]


async def test_a_cancelled_call_that_asks_ends_with_an_end_event(tmp_path):
    (tmp_path / "a.txt").write_text("one\n")
    events, asked, cleaned = [], [], []

    async def ask(request):
        asked.append(request)
        try:
            await anyio.sleep(60)
        finally:
            cleaned.append(True)

    with Workspace(tmp_path, policy=Policy(on_ask=ask), on_event=events.append) as ws:
        tools = ws.tools()
        edit = {"path": "a.txt", "old_string": "one", "new_string": "two"}
        async with anyio.create_task_group() as group:
            group.start_soon(tools.acall, "edit", edit)
            with anyio.fail_after(30):
                while not asked:
                    await anyio.sleep(0.01)
            group.cancel_scope.cancel()
        with anyio.fail_after(30):
            while len(events) < 2 or not cleaned:
                await anyio.sleep(0.01)
    assert [(event.kind, kit.code(event)) for event in events] == [("started", ""), ("failed", "cancelled")]
    assert (tmp_path / "a.txt").read_text() == "one\n"


async def test_a_cancelled_search_ends_soon(tmp_path):
    for number in range(100):
        (tmp_path / f"{number}").mkdir()
        for each in range(15):
            (tmp_path / f"{number}" / f"{each}.txt").touch()
    seen, events, before = [], [], threading.active_count()

    def slow(entries):
        seen.append(entries)
        threading.Event().wait(0.05)

    with Workspace(tmp_path, on_event=events.append) as ws:
        tools = ws.tools()
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: tools.acall("grep", {"pattern": "nothing"}, on_progress=slow))
            while not seen:
                await anyio.sleep(0.01)
            group.cancel_scope.cancel()
        with anyio.fail_after(5):
            while len(events) < 2:
                await anyio.sleep(0.01)
        assert (await tools.acall("ls")).success
        assert threading.active_count() <= before + 2
        assert seen[-1] < 1250
    found = [(event.kind, kit.code(event), event.call == events[0].call) for event in events[:2]]
    assert found == [("started", "", True), ("failed", "cancelled", True)]


def test_acall_outside_an_event_loop_is_an_error(tmp_path):
    with Workspace(tmp_path) as ws:
        work = ws.tools().acall("ls")
        with pytest.raises(RuntimeError, match="no running event loop"):
            work.send(None)


async def test_functions_of_async_tools_are_async():
    (repeat,) = Toolset([double]).functions()
    assert inspect.iscoroutinefunction(repeat)
    assert repeat.__name__ == "double"
    assert "times: Some times. Default 2." in repeat.__doc__
    assert await repeat("a", times="3") == "aaa"
    assert await repeat("") == "There is no text."


def test_async_functions_have_schemas_like_others():
    @described
    async def look(path: str) -> str:
        return path

    @described
    def plain(path: str) -> str:
        return path

    first, second = Toolset([look, plain]).schemas("anthropic")
    assert {**first, "name": ""} == {**second, "name": ""}


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
