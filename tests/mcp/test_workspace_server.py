"""The MCP server, driven by the official client over standard input and output."""

import asyncio
import base64
import json
import os
import sys
import time
from pathlib import Path

import pytest
from mcp import types
from PIL import Image as Pillow

from agentfs import Allow, Policy, Workspace
from agentfs.mcp import WorkspaceServer, questions
from tests.history.judges import snapshot
from tests.mcp.servers import client, fresh, made, process_client, roots_of, served, told

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


async def test_read_many_is_a_tool_that_reads(tree):
    async with client(tree, "--read-only", "--tools", "read_many,find,write") as connected:
        tools = (await connected.list_tools()).tools
        assert [(tool.name, tool.annotations.read_only_hint) for tool in tools] == [
            ("read_many", True), ("find", True),
        ]  # fmt: skip
        assert "1|one" in (await connected.call_tool("read_many", {"paths": ["a.txt"]})).content[0].text


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


async def test_two_hundred_calls_at_once_get_the_right_answers(tree):
    for number in range(200):
        (tree / f"{number}.txt").write_text(f"this is {number}\n")
    async with client(tree) as connected:
        calls = [connected.call_tool("read", {"path": f"{number}.txt"}) for number in range(200)]
        answers = await asyncio.gather(*calls)
    assert [answer.content[0].text for answer in answers] == [f"1|this is {number}" for number in range(200)]


async def test_read_only_offers_and_does_nothing_else(tree):
    async with client(tree, "--read-only") as connected:
        assert [tool.name for tool in (await connected.list_tools()).tools] == ["read", "ls", "glob", "grep"]
    async with client(tree, "--read-only", "--tools", "write") as connected:
        assert (await connected.call_tool("write", ARGUMENTS["write"])).is_error
    assert not (tree / "new").exists()


@pytest.mark.parametrize(("options", "names"), [
    (["--tools", "write,read,edit"], ["read"]),
    (["--tools", "write"], []),
    (["--tools", "edit,find", "--prefix", "fs_"], ["fs_find"]),
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


@pytest.mark.parametrize(("roots", "sees"), [
    (["."], ["a.txt", "sub/c.txt", "other/d.txt"]),
    (["..", "sub"], ["a.txt", "sub/c.txt", "other/d.txt"]),
    (["sub"], ["c.txt"]),
    (["sub", "other"], ["sub/c.txt", "other/d.txt"]),
    (["/nowhere/else"], []),
    (["sub/../../elsewhere"], []),
    ([], []),
])  # fmt: skip
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_clients_roots_only_narrow(tree, roots, sees, mode):
    listed = roots_of(tree, *roots)
    async with client(tree, mode=mode, list_roots_callback=listed) as connected:
        seen = []
        for path in ("a.txt", "sub/c.txt", "other/d.txt", "c.txt"):
            if not (await connected.call_tool("read", {"path": path})).is_error:
                seen.append(path)
        assert seen == sees
        assert (await connected.call_tool("read", {"path": "../secret"})).is_error


@pytest.mark.parametrize(("roots", "sees"), [
    (["."], ["a.txt", "sub/c.txt", "other/d.txt"]),
    (["sub"], ["c.txt"]),
    (["sub", "other"], ["sub/c.txt", "other/d.txt"]),
    (["/nowhere/else"], []),
])  # fmt: skip
async def test_a_clients_roots_narrow_a_workspace_with_a_journal_too(tree, tmp_path_factory, roots, sees):
    state, listed = tmp_path_factory.mktemp("outside") / "state", roots_of(tree, *roots)
    options = {"mode": "legacy", "list_roots_callback": listed}
    async with client(tree, "--state", str(state), **options) as connected:
        seen = []
        for path in ("a.txt", "sub/c.txt", "other/d.txt", "c.txt"):
            text = {"path": path, "content": "new\n"}
            reading = await connected.call_tool("read", {"path": path})
            if not reading.is_error:
                assert not (await connected.call_tool("write", text)).is_error
                seen.append(path)
        assert seen == sees
        assert (await connected.call_tool("read", {"path": "../secret"})).is_error
    with Workspace(tree, state=state) as ws:
        changed = [path for path in ("a.txt", "other/d.txt", "sub/c.txt") if Path(path).name in str(sees)]
        assert [file.path for file in ws.changes().files] == changed
        if sees:
            ws.undo(len(sees))
    assert (tree / "sub" / "c.txt").read_text() != "new\n"


async def test_a_client_that_does_not_list_its_roots_may_use_nothing(tree):
    """Attack: a client has roots but fails to list them; nothing outside them may be reached."""
    answers = [False, False, True]

    async def roots(context):
        if not answers.pop(0):
            return types.ErrorData(code=-32603, message="not now")
        return types.ListRootsResult(roots=[types.Root(uri=(tree / "sub").as_uri())])

    async with client(tree, mode="legacy", list_roots_callback=roots) as connected:
        for name in ("read", "write"):
            refused = await connected.call_tool(name, ARGUMENTS[name])
            assert refused.is_error
            assert "did not list them" in refused.content[0].text
        assert (await connected.call_tool("read", {"path": "a.txt"})).is_error
        assert not (await connected.call_tool("read", {"path": "c.txt"})).is_error
    assert answers == []
    assert not (tree / "new").exists()


@pytest.mark.parametrize("roots", [["lib"], ["lib", "other"], ["lib/deep"], ["lib/../lib"], ["lib", "src"]])
async def test_narrowed_roots_do_not_lift_an_allow_rule(tmp_path, roots):
    """Attack: rules were matched against paths from the narrowed root; a question replaced allow rules."""
    for name in ("lib/deep/src", "src", "other"):
        (tmp_path / name).mkdir(parents=True)
    files = ["lib/a.txt", "lib/deep/a.txt", "lib/deep/src/a.txt", "other/a.txt"]
    for name in [*files, "src/a.txt"]:
        (tmp_path / name).write_text("old\n")
    server = WorkspaceServer(str(tmp_path), policy=Policy(allow=["edit(src/**)"]))
    async with served(server, mode="legacy", list_roots_callback=roots_of(tmp_path, *roots)) as connected:
        for name in files:
            for path in (name, str(tmp_path / name), "a.txt", "deep/a.txt", "src/a.txt", "../src/a.txt"):
                arguments = {"path": path, "old_string": "old", "new_string": "new"}
                await connected.call_tool("edit", arguments)
    assert [(tmp_path / name).read_text() for name in files] == ["old\n"] * 4
    assert (tmp_path / "src/a.txt").read_text() == ("new\n" if "src" in roots else "old\n")


@pytest.mark.parametrize("settings", [
    {"policy": Policy(deny=["*(lib/**)"])}, {"policy": Policy(mode="plan")},
    {"policy": Policy(read_only=True)},
    {"policy": Policy(on_ask=lambda request: not request.changes)},
    {"policy": Policy(on_ask=lambda request: Allow({"path": "other/a.txt"}))},
])  # fmt: skip
async def test_narrowed_roots_do_not_lift_other_refusals(tmp_path, settings):
    for name in ("lib", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.txt").write_text("old\n")
    server = WorkspaceServer(str(tmp_path), names=["edit"], **settings)
    async with served(server, mode="legacy", list_roots_callback=roots_of(tmp_path, "lib")) as connected:
        arguments = {"path": "a.txt", "old_string": "old", "new_string": "new"}
        assert (await connected.call_tool("edit", arguments)).is_error
    assert {(tmp_path / name / "a.txt").read_text() for name in ("lib", "other")} == {"old\n"}


async def test_narrowed_roots_do_not_lift_the_protection_of_files_in_a_protected_directory(tmp_path):
    """Attack: inside `.aws`, file names matched no protected pattern."""
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws/config").write_text("key = secret\n")
    server = WorkspaceServer(str(tmp_path))
    async with served(server, mode="legacy", list_roots_callback=roots_of(tmp_path, ".aws")) as connected:
        for name, arguments in (("read", {"path": "config"}), ("grep", {"pattern": "key"})):
            assert "secret" not in told(await connected.call_tool(name, arguments))


@pytest.mark.parametrize("roots", [["sub"], ["sub", "third"]])
async def test_nothing_outside_narrowed_roots_is_named_or_reached(tree, roots):
    """Attack: suggestions, links and the history reveal names outside the roots, or lead there."""
    (tree / "third").mkdir()
    (tree / "other/subway.txt").write_text("three\n")
    (tree / "other/lynx.txt").write_text("three\n")
    (tree / "subs").mkdir()
    (tree / ".gitignore").write_text("*.hush\n")
    (tree / "sub/x.hush").touch()
    (tree / "sub/file").symlink_to("../other/d.txt")
    (tree / "sub/away").symlink_to("../other")
    (tree / "sub/fresh").symlink_to("../other/fresh.txt")
    names = ["read", "write", "edit", "ls", "glob", "grep", "find", "read_many", "delete", "move", "undo"]
    server = WorkspaceServer(str(tree), names=[*names, "changes"], policy=Policy(overwrite="always"))
    server._workspace.edit("other/d.txt", "three", "thr33")
    before = {path: path.read_bytes() for path in (tree / "other").iterdir()}
    at = "" if len(roots) == 1 else "sub/"
    texts = []
    async with served(server, mode="legacy", list_roots_callback=roots_of(tree, *roots)) as connected:
        for path in (
            "d.txt", "subway.txt", "away/d.txt", "file", "fresh", "../other/d.txt", "../other/none", "away",
            "../subs", "../a.txt", str(tree / "other/d.txt"), str(tree / "other/none"), str(tree), "..",
        ):  # fmt: skip
            for place in {path if path.startswith(("/", "..")) else at + path, path.removeprefix("../")}:
                calls = [
                    ("read", {"path": place}), ("write", {"path": place, "content": "new\n"}),
                    ("edit", {"path": place, "old_string": "thr33", "new_string": "x"}),
                    ("ls", {"path": place}),
                    ("glob", {"pattern": "**/d.txt", "path": place}), ("find", {"path": place}),
                    ("grep", {"pattern": "thr", "path": place}), ("read_many", {"paths": [place]}),
                    ("delete", {"path": place + "/d.txt"}), ("move", {"path": place, "to": at + "here"}),
                    ("move", {"path": at + "c.txt", "to": place + "/c.txt"}),
                ]  # fmt: skip
                for name, arguments in calls:
                    if name == "write" and "/" not in place.removeprefix(at):
                        continue  # it may create a file inside the roots
                    result = await connected.call_tool(name, arguments)
                    texts.append((name, arguments, told(result)))
        for name, arguments in (
            ("ls", {}), ("ls", {"path": at or ".", "include_ignored": True}), ("undo", {}), ("changes", {}),
            ("glob", {"pattern": "**", "include_ignored": True}), ("grep", {"pattern": "thr33"}),
            ("read_many", {"paths": ["**/*.txt", "../other/*.txt"]}),
        ):  # fmt: skip
            texts.append((name, arguments, told(await connected.call_tool(name, arguments))))
    assert {path: path.read_bytes() for path in (tree / "other").iterdir()} == before
    for name, arguments, text in texts:
        sent = json.dumps(arguments)
        for outside in ("lynx", "subway", "subs", "thr33", "*.hush"):
            assert outside not in text or outside in sent, (name, arguments, text)
    outwards = "../" if len(roots) == 1 else ""
    for name in names:
        there, not_there = (
            [text.replace("none", "d.txt") for called, arguments, text in texts if called == name
             and str(arguments.get("path")).startswith((f"{tree}/other/{last}", f"{outwards}other/{last}"))]
            for last in ("d.txt", "none")
        )  # fmt: skip
        assert set(there) == set(not_there), "whether something is there is not told"


@pytest.mark.filterwarnings("ignore:The roots capability is deprecated")
async def test_a_change_of_roots_keeps_the_read_history_and_the_journal_and_leaks_no_descriptor(tree):
    """Each change of roots opened another workspace on the tree."""
    lists = []

    async def roots(context):
        return types.ListRootsResult(roots=[types.Root(uri=(tree / lists[-1]).resolve().as_uri())])

    server = WorkspaceServer(str(tree), names=["read", "write", "undo", "ls"])
    async with served(server, mode="legacy", list_roots_callback=roots) as connected:

        async def change(name):
            lists.append(name)
            await connected.session.send_roots_list_changed()
            assert not (await connected.call_tool("ls")).is_error

        lists.append(".")
        assert not (await connected.call_tool("read", {"path": "sub/c.txt"})).is_error
        await change("sub")
        assert not (await connected.call_tool("write", {"path": "c.txt", "content": "new\n"})).is_error
        opened = len(os.listdir("/dev/fd"))
        for _ in range(20):
            await change("other")
            await change("sub")
        assert len(os.listdir("/dev/fd")) <= opened + 1
        assert not (await connected.call_tool("undo", {})).is_error
    assert (tree / "sub/c.txt").read_text() == "three\n"


@pytest.mark.filterwarnings("ignore:The roots capability is deprecated")
async def test_roots_that_change_while_they_are_listed_are_listed_again(tree):
    """The notification was lost, and the old roots stayed in use."""
    lists = [["."], ["sub"]]

    async def roots(context):
        listed = lists.pop(0)
        if lists:
            await connected.session.send_roots_list_changed()
        return await roots_of(tree, *listed)(context)

    async with served(WorkspaceServer(str(tree)), mode="legacy", list_roots_callback=roots) as connected:
        for path in ("a.txt", "../a.txt", str(tree / "a.txt")):
            assert (await connected.call_tool("read", {"path": path})).is_error
        assert told(await connected.call_tool("read", {"path": "c.txt"})) == "1|three"
    assert lists == []


async def test_a_client_that_never_lists_its_roots_does_not_delay_calls_for_long(tree, monkeypatch):
    monkeypatch.setattr(questions, "ROOTS_SECONDS", 0.5)

    async def roots(context):
        await asyncio.sleep(3600)

    async with served(WorkspaceServer(str(tree)), mode="legacy", list_roots_callback=roots) as connected:
        started = time.monotonic()
        calls = [connected.call_tool("read", {"path": "a.txt"}) for _ in range(20)]
        for result in await asyncio.gather(*calls):
            assert result.is_error
            assert "did not list them" in told(result)
        assert time.monotonic() - started < 8


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


def test_the_server_offers_the_tools_of_schemas(tree):
    server = WorkspaceServer(str(tree))
    with Workspace(tree) as ws:
        offered = asyncio.run(server._list(None, None)).tools
        assert [tool.model_dump(by_alias=True, exclude_none=True) for tool in offered] == ws.tools(
            [*ws.tools().names, "delete", "move", "undo", "replace"]
        ).schemas("mcp")
    server._workspace.close()


@pytest.mark.parametrize(("options", "kept"), [
    ([], 128 * 2**20), (["--watch-bytes", "4096"], 4096), (["--no-watch"], None)
])  # fmt: skip
async def test_the_server_watches_its_workspace(tmp_path, options, kept):
    server = made(tmp_path, *options)
    async with served(server):
        watch = server._workspace.watch
        assert (None if watch is None else watch.max_bytes) == kept
