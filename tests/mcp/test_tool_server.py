"""The MCP server, driven by the official client over standard input and output."""

import asyncio
import base64
import json
import os
import sys
import time
from pathlib import Path
from unittest import mock

import pytest
from PIL import Image as Pillow

from agentfs import Workspace
from tests.history.judges import snapshot
from tests.mcp.servers import client, fresh, process_client, served, told

ARGUMENTS = {
    "read": {"path": "a.txt"},
    "write": {"path": "new/b.txt", "content": "b\n"},
    "edit": {"path": "a.txt", "old_string": "one", "new_string": "1"},
    "multi_edit": {"path": "a.txt", "edits": [{"old_string": "two", "new_string": "2"}]},
    "ls": {"depth": 2},
    "glob": {"pattern": "*.txt"},
    "grep": {"pattern": "three"},
    "delete": {"path": "sub/c.txt"},
    "move": {"path": "other/d.txt", "to": "moved.txt"},
    "undo": {"steps": 2},
    "replace": {"old_string": "three", "new_string": "3"},
}


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


async def test_a_change_across_files_and_a_moved_directory_are_taken_back_by_one_undo_each(tree):
    before = snapshot(tree)
    async with client(tree) as connected:
        for name, arguments, said in (
            ("replace", {"old_string": "three", "new_string": "3", "expect": 3}, "3 occurrences in 3 files"),
            (
                "replace",
                {"old_string": "three", "new_string": "3", "glob": "*.txt"},
                "a.txt: 1\nother/d.txt: 1",
            ),
            ("move", {"path": "sub", "to": "new/sub"}, '"sub" to "new/sub" (directory, 1 file)'),
        ):
            done = await connected.call_tool(name, arguments)
            assert said in done.content[0].text
            assert snapshot(tree) != before
            undone = await connected.call_tool("undo", {})
            assert undone.is_error is False
            assert snapshot(tree) == before


async def test_images_are_sent_beside_the_text(tree):
    Pillow.new("RGB", (3, 2)).save(tree / "dot.png")
    async with client(tree) as connected:
        text, image = (await connected.call_tool("read", {"path": "dot.png"})).content
    assert "3" in text.text
    assert base64.b64decode(image.data)[:4] == b"\x89PNG"


async def test_failures_are_results_that_the_model_sees(tree):
    async with client(tree) as connected:
        missed = await connected.call_tool("read", {"path": "missing"})
        wrong = await connected.call_tool("grep", {"patern": "x"})
        assert missed.is_error
        assert "does not exist" in missed.content[0].text
        assert wrong.is_error
        assert "did you mean `pattern`" in wrong.content[0].text
        unknown = await connected.call_tool("nothing", {})
        assert unknown.is_error
        assert "no tool" in unknown.content[0].text


async def test_a_hundred_calls_at_once_get_the_right_answers(tree):
    for number in range(100):
        (tree / f"{number}.txt").write_text(f"this is {number}\n")
    async with client(tree) as connected:
        calls = [connected.call_tool("read", {"path": f"{number}.txt"}) for number in range(100)]
        answers = await asyncio.gather(*calls)
    assert [answer.content[0].text for answer in answers] == [f"1|this is {number}" for number in range(100)]


async def test_read_only_offers_and_does_nothing_else(tree):
    async with client(tree, "--read-only") as connected:
        assert [tool.name for tool in (await connected.list_tools()).tools] == ["read", "ls", "glob", "grep"]
    async with client(tree, "--read-only", "--tools", "write") as connected:
        assert (await connected.call_tool("write", ARGUMENTS["write"])).is_error
    assert not (tree / "new").exists()


@pytest.mark.parametrize(("options", "names"), [
    (["--tools", "write,read,edit"], ["read"]), (["--tools", "write"], []),
    (["--tools", "edit,glob", "--prefix", "fs_"], ["fs_glob"]),
    (["--dialect", "wave"], ["Read", "LS", "Glob", "Grep"]),
    (["--dialect", "wave", "--tools", "Write,Grep"], ["Grep"]),
    (["--dialect", "text-editor"], ["str_replace_based_edit_tool"]),
])  # fmt: skip
async def test_read_only_lists_no_tool_that_is_always_refused(tree, options, names):
    async with client(tree, "--read-only", *options) as connected:
        assert [tool.name for tool in (await connected.list_tools()).tools] == names


async def test_a_tool_that_reads_and_changes_is_listed_read_only_and_changes_nothing(tree):
    async with client(tree, "--read-only", "--dialect", "text-editor") as connected:
        name = "str_replace_based_edit_tool"
        viewed = await connected.call_tool(name, {"command": "view", "path": "a.txt"})
        made = await connected.call_tool(name, {"command": "create", "path": "b.txt", "file_text": "x"})
    assert (viewed.is_error, made.is_error) == (False, True)
    assert not (tree / "b.txt").exists()


async def test_tools_are_chosen_and_prefixed(tree):
    async with client(tree, "--tools", "read,grep", "--prefix", "fs_") as connected:
        assert [tool.name for tool in (await connected.list_tools()).tools] == ["fs_read", "fs_grep"]


async def test_a_dialect_is_served(tree):
    async with client(tree, "--dialect", "wave") as connected:
        assert "Grep" in [tool.name for tool in (await connected.list_tools()).tools]
        result = await connected.call_tool("Grep", {"pattern": "three", "-n": True, "output_mode": "content"})
        assert "a.txt" in result.content[0].text


async def test_a_long_search_reports_its_progress(tree):
    for number in range(40):
        (tree / f"d{number}").mkdir()
        for other in range(40):
            (tree / f"d{number}" / f"{other}.txt").write_text("x\n")
    told = []

    async def progress(entries, total, message):
        told.append(entries)

    async with client(tree) as connected:
        await connected.call_tool("grep", {"pattern": "nothing"}, progress_callback=progress)
        await connected.call_tool("ls")
    assert told == sorted(told)
    assert told[0] >= 500


@pytest.mark.full
async def test_a_client_that_dies_leaves_nothing_behind(tree):
    command = [sys.executable, "-m", "agentfs", "mcp", "--root", str(tree)]
    process = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    for message in (
        {"method": "initialize", "id": 1, "params": {"protocolVersion": "2025-06-18", "capabilities": {},
                                                     "clientInfo": {"name": "x", "version": "1"}}},
        {"method": "notifications/initialized"},
        {"method": "tools/call", "id": 2, "params": {"name": "edit", "arguments": ARGUMENTS["edit"]}},
        {"method": "tools/call", "id": 3, "params": {"name": "grep", "arguments": {"pattern": "x"}}},
    ):  # fmt: skip
        process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
    await process.stdin.drain()
    await process.stdout.readline()
    process.stdin.close()
    started = time.monotonic()
    await asyncio.wait_for(process.wait(), 20)
    assert time.monotonic() - started < 15
    assert (tree / "a.txt").read_text() in ("one\ntwo\nthree\n", "1\ntwo\nthree\n")
    names = {path.name for path in tree.rglob("*")}
    assert names == {"a.txt", "sub", "c.txt", "other", "d.txt"}


def processor_seconds(tree):
    """Return the processor time of the server on a tree."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            if str(tree).encode() in (stat.parent / "cmdline").read_bytes().split(b"\0"):
                user, system = stat.read_text().rpartition(")")[2].split()[11:13]
                return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")
        except OSError:
            continue
    raise AssertionError("there is no server")


@pytest.mark.full
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads the kernel's count from /proc")
async def test_a_cancelled_request_ends_the_work_in_the_server(tree):
    """A search of many seconds stops working when it is cancelled."""
    (tree / "long.txt").write_text("\n".join("x" * 100 for _ in range(1500)))
    for number in range(600):
        os.link(tree / "long.txt", tree / "sub" / f"{number}.txt")
    async with process_client(tree, command=fresh) as connected:
        slow = {"pattern": r"x+(?!x|$)", "path": "sub"}
        search = asyncio.create_task(connected.call_tool("grep", slow))
        await asyncio.sleep(0.5)
        working = processor_seconds(tree)
        await asyncio.sleep(1.5)
        working = processor_seconds(tree) - working
        assert not search.done()
        search.cancel()
        await asyncio.gather(search, return_exceptions=True)
        assert not (await connected.call_tool("ls")).is_error
        for _ in range(3):  # it would go on for another eight seconds
            resting = processor_seconds(tree)
            await asyncio.sleep(1.5)
            resting = processor_seconds(tree) - resting
            if resting < working / 4:
                break
    assert working > 0.2
    assert resting < working / 4


async def test_the_server_offers_the_tools_of_schemas(tree):
    with Workspace(tree) as ws:
        async with served(ws) as connected:
            listed = (await connected.list_tools()).tools
        expected = ws.tools([*ws.tools().names, "delete", "move", "undo", "replace"]).schemas("mcp")
    assert [tool.model_dump(by_alias=True, exclude_none=True) for tool in listed] == expected


async def test_arguments_are_ours_to_check(tree):
    """The SDK's own server ignores an unknown argument, and takes `True` for 1."""
    async with client(tree) as connected:
        for arguments in ({"path": "a.txt", "lines": 1}, {"path": "a.txt", "limit": True}):
            assert (await connected.call_tool("read", arguments)).is_error
        assert told(await connected.call_tool("read", {"file_path": "a.txt", "limit": "1"})).startswith(
            "1|one\n["
        )


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
