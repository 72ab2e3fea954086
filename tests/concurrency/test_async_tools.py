"""`async` functions as tools, and calls under asyncio and anyio."""
# ruff: noqa: ASYNC110 - events are told from a thread

import inspect
import threading
from contextvars import ContextVar

import anyio
import pytest

from agentfs import Policy, Toolset, Workspace
from agentfs.errors import NotFoundError
from agentfs.tools.tool import tool
from tests import kit
from tests.kit import described


@tool(effect="none")
@described
async def double(text: str, times: int = 2) -> str:
    await anyio.sleep(0.001)
    if not text:
        raise NotFoundError("There is no text.")
    return text * times


def sent(text):
    return {"type": "tool_use", "id": text, "name": "double", "input": {"text": text}}


def texts(messages):
    return [block["content"][0]["text"] for block in messages[0]["content"]]


async def test_an_async_function_is_awaited_by_acall_and_arun():
    tools = Toolset([double])
    assert (await tools.acall("double", '{"text": "ab", "times": "3"}')).content == "ababab"
    assert (await tools.acall("double", {"text": ""})).error["code"] == "not_found"
    assert (await tools.acall("double", {})).error["code"] == "invalid_argument"
    assert texts(await tools.aanswer([sent("a"), sent("b")])) == ["aa", "bb"]
    assert texts(await tools.aanswer([sent("a")])) == ["aa"]


def test_call_and_run_give_an_async_function_its_own_event_loop():
    @described
    async def here() -> str:
        return f"{threading.current_thread() is threading.main_thread()}"

    assert Toolset([here]).call("here").content == "True"
    assert texts(Toolset([double]).answer([sent("a"), sent("b")])) == ["aa", "bb"]


async def test_call_within_an_event_loop_is_an_error():
    tools = Toolset([double])
    for act in (lambda: tools.call("double", {"text": "a"}), lambda: tools.answer([sent("a"), sent("b")])):
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
