"""OpenAI Agents: its own patch tool, shell and sandbox on a workspace."""

import asyncio
import io
import warnings
from pathlib import Path
from types import SimpleNamespace

import pytest

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from agents import ApplyPatchOperation
    from agents.apply_diff import apply_diff
    from agents.sandbox import Manifest
    from agents.sandbox.errors import (
        ExecTimeoutError,
        InvalidManifestPathError,
        WorkspaceArchiveWriteError,
        WorkspaceIOError,
        WorkspaceReadNotFoundError,
    )
    from agents.sandbox.sandboxes.unix_local import UnixLocalSandboxClient

from agentfs import Limits, Policy, Workspace
from agentfs.errors import UnknownToolError
from agentfs.frameworks.openai_agents import editor, sandbox, shell
from agentfs.providers.openai import patch_of
from tests.commands.conftest import SECRET, running


@pytest.fixture
def ws(tmp_path):
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    (tmp_path / ".env").write_text(SECRET)
    with Workspace(tmp_path, policy=Policy(run="recorded"), limits=Limits(file_bytes=100_000)) as ws:
        yield ws


@pytest.mark.parametrize("operation", [
    ApplyPatchOperation("update_file", "a.txt", "@@\n-one\n+1\n*** Delete File: b.txt\n"),
    ApplyPatchOperation("update_file", "a.txt", "*** Move to: c.txt\n@@\n-one\n+1\n"),
    ApplyPatchOperation("update_file", "a.txt\n*** Move to: c.txt", "@@\n-one\n+1\n"),
    ApplyPatchOperation("delete_file", "a.txt\n*** Delete File: b.txt"),
    ApplyPatchOperation("create_file", "c.txt", "+c\n*** Update File: b.txt\n@@\n-b\n+B\n"),
], ids=range(5))  # fmt: skip
async def test_an_operation_that_was_approved_for_one_file_changes_no_other(ws, tmp_path, operation):
    (tmp_path / "b.txt").write_text("b\n")
    before = {path: path.read_text() for path in tmp_path.iterdir()}
    result = await getattr(editor(ws), operation.type)(operation)
    assert result.status == "failed"
    assert {path: path.read_text() for path in tmp_path.iterdir()} == before
    # Without the check of the editor, the text is a valid patch of several files or names.
    smuggled = await ws.tools(dialect="apply-patch").acall("apply_patch", {"input": patch_of(operation)})
    assert smuggled.success


async def test_the_editor_creates_moves_deletes_and_explains(ws, tmp_path):
    changed = editor(ws)
    for made in (
        await changed.create_file(ApplyPatchOperation("create_file", "new/b.txt", "+b\n")),
        await changed.update_file(
            ApplyPatchOperation("update_file", "a.txt", "@@\n-two\n+2\n", move_to="c.txt")
        ),
        await changed.delete_file(ApplyPatchOperation("delete_file", "new/b.txt")),
    ):
        assert made.status == "completed"
    assert (tmp_path / "c.txt").read_text() == apply_diff("one\ntwo\n", "@@\n-two\n+2\n")
    failed = await changed.update_file(ApplyPatchOperation("update_file", "c.txt", "@@\n-three\n+3\n"))
    assert failed.status == "failed"
    assert "its lines are not in the file" in failed.output
    assert "No such" not in (await changed.delete_file(ApplyPatchOperation("delete_file", "../x"))).output


async def test_the_shell_cuts_times_out_and_refuses(tmp_path):
    policy = Policy(run="recorded", deny=["run(rm*)"])
    with Workspace(tmp_path, policy=policy) as ws:
        commands = ["seq 1000", "echo out; echo err >&2; exit 3", "sleep 5", "rm -rf .", ""]
        action = SimpleNamespace(commands=commands, timeout_ms=600, max_output_length=100)
        request = SimpleNamespace(ctx_wrapper=None, data=SimpleNamespace(action=action))
        done = await shell(ws)(request)
    cut, both, late, refused, empty = done.output
    assert done.max_output_length == 100
    assert cut.stdout.startswith("1\n2\n")
    assert cut.stdout.endswith("left out]\n" + "".join(f"{n}\n" for n in range(989, 1001)))
    assert (both.stdout, both.stderr, both.exit_code) == ("out\n", "err\n", 3)
    assert (late.outcome.type, late.exit_code) == ("timeout", None)
    assert (refused.exit_code, empty.exit_code) == (126, 126)
    assert "rule" in refused.stderr


async def test_a_workspace_without_commands_says_so(tmp_path):
    with Workspace(tmp_path) as ws:
        with pytest.raises(UnknownToolError):
            shell(ws)
        assert (await sandbox(ws).exec("ls")).exit_code == 126


async def test_the_files_of_the_sandbox(ws, tmp_path):
    async with sandbox(ws) as session:
        await session.write(Path("new/b.bin"), io.BytesIO(b"\0\xff"))
        assert (await session.read(Path(f"{ws.root}/new/b.bin"))).read() == b"\0\xff"
        await session.mkdir("d/e", parents=True)
        await session.mv("new/b.bin", "d/b.bin")
        assert {Path(each.path).name for each in await session.ls("d")} >= {"e", "b.bin"}
        await session.rm("d", recursive=True)
        assert not (tmp_path / "d").exists()
        with pytest.raises(WorkspaceReadNotFoundError):
            await session.read(Path("missing"))
        with pytest.raises(WorkspaceIOError, match="is protected"):
            await session.read(Path(".env"))
        with pytest.raises(WorkspaceArchiveWriteError, match="is protected"):
            await session.write(Path(".env"), io.BytesIO(b"x"))
        with pytest.raises((WorkspaceIOError, InvalidManifestPathError)):
            await session.read(Path("../outside"))
        with pytest.raises(ExecTimeoutError):
            await session.exec("sleep 5", timeout=0.2)
        assert (await session.exec("echo $((6 * 7)); exit 4")).exit_code == 4
        assert b"[output cut]" in (await session.exec("seq 100000")).stderr
        archive = await session.persist_workspace()
        (tmp_path / "a.txt").unlink()
        await session.hydrate_workspace(archive)
        assert (tmp_path / "a.txt").read_text() == "one\ntwo\n"
        assert await session.running()
    assert ws.exists("a.txt"), "the workspace stays open"
    ws.close()
    assert not await session.running()
    with pytest.raises(WorkspaceIOError):
        await session.read(Path("a.txt"))


async def test_a_cancelled_command_ends(ws):
    session = sandbox(ws)
    waiting = asyncio.ensure_future(session.exec("sleep 321"))
    await asyncio.sleep(0.3)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    for _ in range(100):
        if not running("sleep 321"):
            break
        await asyncio.sleep(0.05)
    assert not running("sleep 321")


async def test_the_sdks_own_sandbox_shows_what_ours_hides(tmp_path):
    """The attack works on the plain session that runs commands on this machine."""
    (tmp_path / ".env").write_text(SECRET)
    theirs = await UnixLocalSandboxClient().create(manifest=Manifest(root=str(tmp_path)), options=None)
    await theirs.start()
    assert SECRET in (await theirs.exec("cat .env")).stdout.decode()
    with Workspace(tmp_path, policy=Policy(run="staged")) as ws:
        assert SECRET not in (await sandbox(ws).exec("cat .env")).stdout.decode()
