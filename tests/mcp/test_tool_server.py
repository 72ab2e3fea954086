"""The MCP server, driven by the official client over standard input and output."""

# ruff: noqa: E501 - a row of a table is one line

import asyncio
import base64
from unittest import mock

import pytest
from PIL import Image as Pillow

from agentfs import Workspace
from tests.commands.conftest import PID, running
from tests.history.judges import snapshot
from tests.mcp.servers import client, fresh, process_client, served, told

ARGUMENTS = {
    "read": {"path": "a.txt"}, "write": {"path": "new/b.txt", "content": "b\n"},
    "edit": {"path": "a.txt", "old_string": "one", "new_string": "1"},
    "multi_edit": {"path": "a.txt", "edits": [{"old_string": "two", "new_string": "2"}]},
    "ls": {"depth": 2}, "glob": {"pattern": "*.txt"}, "grep": {"pattern": "three"},
    "delete": {"path": "sub/c.txt"}, "move": {"path": "other/d.txt", "to": "moved.txt"},
    "undo": {"steps": 2}, "replace": {"old_string": "three", "new_string": "3"},
}  # fmt: skip


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_client_uses_every_tool(tree, tmp_path_factory, mode):
    async with process_client(tree, mode=mode) as connected:
        assert "`grep`" in connected.instructions
        tools = (await connected.list_tools()).tools
        assert [tool.name for tool in tools] == list(ARGUMENTS)
        for tool in tools:
            result = await connected.call_tool(tool.name, ARGUMENTS[tool.name])
            assert result.is_error is False, result.content
            assert result.content[0].text
            assert (tool.output_schema, result.structured_content) == (None, None)
            assert tool.annotations.read_only_hint is (tool.name in ("read", "ls", "glob", "grep"))
    assert (tree / "a.txt").read_text() == "1\n2\n3\n"
    assert (tree / "new" / "b.txt").read_text() == "b\n"
    assert (tree / "sub" / "c.txt").read_text() == "3\n"
    assert (tree / "other" / "d.txt").read_text() == "3\n"
    assert not (tree / "moved.txt").exists()


THREES = {"old_string": "three", "new_string": "3"}


@pytest.mark.parametrize(("name", "arguments", "said"), [
    ("replace", {**THREES, "expect": 3}, "3 occurrences in 3 files"), ("replace", {**THREES, "glob": "*.txt"}, "a.txt: 1\nother/d.txt: 1"),
    ("move", {"path": "sub", "to": "new/sub"}, '"sub" to "new/sub" (directory, 1 file)'),
])  # fmt: skip
async def test_a_change_across_files_and_a_moved_directory_are_taken_back_by_one_undo(
    tree, name, arguments, said
):
    before = snapshot(tree)
    async with client(tree) as connected:
        assert said in told(await connected.call_tool(name, arguments))
        assert snapshot(tree) != before
        assert (await connected.call_tool("undo", {})).is_error is False
        assert snapshot(tree) == before


async def test_images_are_sent_beside_the_text(tree):
    Pillow.new("RGB", (3, 2)).save(tree / "dot.png")
    async with client(tree) as connected:
        text, image = (await connected.call_tool("read", {"path": "dot.png"})).content
    assert "3" in text.text
    assert base64.b64decode(image.data)[:4] == b"\x89PNG"


async def test_failures_are_results_that_the_model_sees(tree):
    """The SDK's own server ignores an unknown argument, and takes `True` for 1."""
    async with client(tree) as connected:
        for name, arguments, said in (
            ("read", {"path": "missing"}, "does not exist"), ("nothing", {}, "no tool"),
            ("grep", {"patern": "x"}, "did you mean `pattern`"),
            ("read", {"path": "a.txt", "lines": 1}, "lines"),
            ("read", {"path": "a.txt", "limit": True}, "limit"),
        ):  # fmt: skip
            result = await connected.call_tool(name, arguments)
            assert (result.is_error, said in told(result)) == (True, True), told(result)
        read = told(await connected.call_tool("read", {"file_path": "a.txt", "limit": "1"}))
        assert read.startswith("1|one\n[")


async def test_a_hundred_calls_at_once_get_the_right_answers(tree):
    for number in range(100):
        (tree / f"{number}.txt").write_text(f"this is {number}\n")
    async with client(tree) as connected:
        calls = [connected.call_tool("read", {"path": f"{number}.txt"}) for number in range(100)]
        answers = await asyncio.gather(*calls)
    assert [answer.content[0].text for answer in answers] == [f"1|this is {number}" for number in range(100)]


@pytest.mark.parametrize(("options", "names"), [
    ([], [*ARGUMENTS]), (["--tools", "read,grep", "--prefix", "fs_"], ["fs_read", "fs_grep"]),
    *((["--read-only", *options], names) for options, names in (
        ([], ["read", "ls", "glob", "grep"]),
        (["--tools", "write,read,edit"], ["read"]), (["--tools", "write"], []),
        (["--tools", "edit,glob", "--prefix", "fs_"], ["fs_glob"]),
        (["--dialect", "wave"], ["Read", "LS", "Glob", "Grep"]),
        (["--dialect", "wave", "--tools", "Write,Grep"], ["Grep"]),
        (["--dialect", "text-editor"], ["str_replace_based_edit_tool"]))),
])  # fmt: skip
async def test_tools_are_chosen_and_read_only_lists_no_tool_that_is_always_refused(tree, options, names):
    async with client(tree, *options) as connected:
        assert [tool.name for tool in (await connected.list_tools()).tools] == names
        if "--read-only" in options and "write" in options:
            assert (await connected.call_tool("write", ARGUMENTS["write"])).is_error
    assert not (tree / "new").exists()


async def test_a_tool_that_reads_and_changes_is_listed_read_only_and_changes_nothing(tree):
    async with client(tree, "--read-only", "--dialect", "text-editor") as connected:
        name = "str_replace_based_edit_tool"
        viewed = await connected.call_tool(name, {"command": "view", "path": "a.txt"})
        made = await connected.call_tool(name, {"command": "create", "path": "b.txt", "file_text": "x"})
    assert (viewed.is_error, made.is_error) == (False, True)
    assert not (tree / "b.txt").exists()


async def test_the_server_offers_the_tools_of_schemas(tree):
    with Workspace(tree) as ws:
        async with served(ws) as connected:
            listed = (await connected.list_tools()).tools
        expected = ws.tools([*ws.tools().names, "delete", "move", "undo", "replace"]).schemas("mcp")
    assert [tool.model_dump(by_alias=True, exclude_none=True) for tool in listed] == expected


@pytest.mark.parametrize(("options", "kept"), [([], 128 * 2**20), (["--no-watch"], None)])
async def test_the_server_watches_its_workspace(tree, options, kept):
    opened = []
    real = Workspace.tools

    def tools(ws, *given, **more):
        opened.append(ws)
        return real(ws, *given, **more)

    with mock.patch.object(Workspace, "tools", tools):
        async with client(tree, *options) as connected:
            await connected.list_tools()
            watch = opened[0].watch
            assert (None if watch is None else watch.max_bytes) == kept


@pytest.fixture(params=["staged", "recorded"])
def way(request):
    return request.param


def policy_file(directory, way):
    file = directory.parent / f"{directory.name}.toml"
    file.write_text(f'run = "{way}"\n')
    return ["--policy", str(file)]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_command_runs_and_is_undone(tree, way, mode):
    before = snapshot(tree)
    async with process_client(tree, *policy_file(tree, way), mode=mode) as connected:
        tools = {tool.name: tool for tool in (await connected.list_tools()).tools}
        assert ("output" in tools, "stop" in tools) == ((way == "recorded"),) * 2
        assert tools["run"].annotations.read_only_hint is False
        result = await connected.call_tool("run", {"command": "echo said; echo 1 >> a.txt; mkdir n; exit 3"})
        assert result.is_error is False  # an exit status is a result
        assert "said" in told(result)
        assert "Exit status 3" in told(result)
        assert "a.txt" in told(result)
        assert snapshot(tree) != before
        assert not (await connected.call_tool("undo")).is_error
    assert snapshot(tree) == before


async def until_running(command, *, begun):
    """Wait until a command has begun, or has ended."""
    async with asyncio.timeout(20):
        while await asyncio.to_thread(running, command) is not begun:  # noqa: ASYNC110 - a process tells nobody
            await asyncio.sleep(0.05)


@pytest.mark.full
async def test_a_cancelled_call_ends_its_command(tree, way):
    sleep = f"sleep 51.{PID}"
    async with process_client(tree, *policy_file(tree, way), command=fresh) as connected:
        call = asyncio.create_task(connected.call_tool("run", {"command": f"touch made; {sleep}"}))
        await until_running(sleep, begun=True)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        await until_running(sleep, begun=False)
        assert not (await connected.call_tool("ls")).is_error
    assert (tree / "made").exists() == (way == "recorded")


async def test_a_command_in_the_background_ends_with_the_server(tree):
    sleep = f"sleep 52.{PID}"
    async with process_client(tree, *policy_file(tree, "recorded")) as connected:
        started = await connected.call_tool("run", {"command": f"echo ready; {sleep}", "background": True})
        assert "c1" in told(started)
        await until_running(sleep, begun=True)
        assert "ready" in told(await connected.call_tool("output", {"id": "c1"}))
        assert not (await connected.call_tool("stop", {"id": "c1"})).is_error
        assert not running(sleep)
        await connected.call_tool("run", {"command": sleep, "background": True})
        await until_running(sleep, begun=True)
    await until_running(sleep, begun=False)
