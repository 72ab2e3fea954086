"""Bytes and directories for programs, and the deletion of trees that hold more than files."""

import os
import shutil
import socket
import stat
from pathlib import Path

import pytest

from agentfs import AgentFSError, Limits, Policy, Workspace, connect
from tests import kit
from tests.conftest import public_directory
from tests.kit import put, refused
from tests.remote.over_pipe import open_pipe

SOMEBODY = 65_534
AS_ROOT = os.geteuid() == 0

DATA = bytes(range(256)) + b"\r\n\0"


def tree(top: Path) -> dict[str, tuple[int, bytes]]:
    """Return type, mode and content of everything below a directory, as root or its owner sees it."""
    found = {}
    for path in sorted(top.rglob("*")):
        mode = path.lstat().st_mode
        content = path.read_bytes() if stat.S_ISREG(mode) and mode & 0o400 else b""
        found[str(path)] = mode, os.readlink(path).encode() if path.is_symlink() else content
    return found


def opened(top: Path, way: str, **given):
    if way == "connect":
        return connect(open_pipe(), top, **given)
    ws = Workspace(top, watch=way == "watched", **given)
    return ws.host if way == "host" else ws


@pytest.mark.parametrize("way", ["plain", "host", "watched", "connect"])
def test_bytes_come_back_as_they_were_written_and_undo_takes_each_write_back(tmp_path, way):
    (tmp_path / "old").write_bytes(b"old\0")
    (tmp_path / "old").chmod(0o751)
    (tmp_path / "link").symlink_to("old")
    (tmp_path / "b").symlink_to("a/b")
    before = tree(tmp_path)
    with opened(tmp_path, way) as ws:
        assert ws.write_bytes("new/data", DATA).created
        written = ws.write_bytes("link", DATA)
        assert (written.created, written.bytes_written, written.diff) == (False, len(DATA), "")
        assert ws.read_bytes("old") == ws.read_bytes("link") == (tmp_path / "old").read_bytes() == DATA
        assert (tmp_path / "link").is_symlink()
        assert stat.S_IMODE((tmp_path / "old").stat().st_mode) == 0o751
        for text in ('Created the directory "a/b".', '"a/b" exists.'):
            made = ws.mkdir("a/b")
            assert (made.text, made.created) == (text, text.startswith("Created"))
        assert ws.undo(3).steps == 3
    assert tree(tmp_path) == before


@pytest.mark.parametrize("name", ["read_bytes", "write_bytes", "mkdir", "stat"])
def test_a_model_gets_none_of_them(ws, name):
    assert name not in ws.tools("all").names
    refused(lambda: ws.tools([name]), "unknown_tool")


@pytest.mark.parametrize(("act", "code", "python"), [
    (lambda ws: ws.read_bytes("none"), "not_found", FileNotFoundError),
    (lambda ws: ws.read_bytes("d"), "not_a_file", IsADirectoryError),
    (lambda ws: ws.read_bytes("fifo"), "not_regular", OSError),
    (lambda ws: ws.read_bytes(".env"), "protected", PermissionError),
    (lambda ws: ws.read_bytes("out/passwd"), "outside_workspace", PermissionError),
    (lambda ws: ws.write_bytes("new/.mcp.json", b""), "protected", PermissionError),
    (lambda ws: ws.write_bytes("big", b"x" * 2001), "too_large", AgentFSError),
    (lambda ws: ws.read_bytes("large"), "too_large", AgentFSError),
    (lambda ws: ws.mkdir("f"), "already_exists", FileExistsError),
    (lambda ws: ws.mkdir("f/below"), "not_a_directory", NotADirectoryError),
    (lambda ws: ws.mkdir("out/x"), "outside_workspace", PermissionError),
    (lambda ws: ws.mkdir("dangling"), "already_exists", FileExistsError),
    (lambda ws: ws.mkdir(""), "invalid_path", ValueError),
])  # fmt: skip
def test_a_refused_call_is_the_error_of_python_too_and_changes_nothing(tmp_path, act, code, python):
    top = put(tmp_path / "root", {"d/x": "", "f": "f\n", "large": "x" * 2001, ".env": "KEY=1\n"})
    os.mkfifo(top / "fifo")
    (top / "out").symlink_to("/etc")
    (top / "dangling").symlink_to("nothing")
    before = tree(tmp_path)
    with Workspace(top, limits=Limits(file_bytes=2000)) as ws:
        assert isinstance(refused(lambda: act(ws), code), python)
        assert not ws.changes().files
    assert tree(tmp_path) == before


@pytest.mark.parametrize("policy", [
    Policy(deny=["write"]), Policy(deny=["write_bytes", "mkdir"]), Policy(deny=["*(src/**)", "*(src)"]),
    Policy(mode="plan"), Policy(read_only=True), Policy(on_ask=lambda _: False),
], ids=["deny write", "deny bytes", "deny src", "plan", "read-only", "asked"])  # fmt: skip
def test_rules_and_modes_hold_but_not_for_the_program_itself(tmp_path, policy):
    with Workspace(tmp_path, policy=policy) as ws:
        for act in (lambda ws: ws.write_bytes("src/a", b"\0"), lambda ws: ws.mkdir("src/b")):
            with pytest.raises(PermissionError):
                act(ws)
            if not policy.read_only:
                act(ws.host)
    assert [*tmp_path.rglob("*")] == (
        [] if policy.read_only else [tmp_path / "src", *(tmp_path / "src").iterdir()]
    )


def test_the_question_about_bytes_names_the_file(tmp_path):
    asked = []
    with Workspace(tmp_path, policy=Policy(on_ask=lambda request: asked.append(request) or True)) as ws:
        ws.write_bytes("a", b"one\n")
        ws.write_bytes("a", b"\0")
        ws.mkdir("b/c")
    found = [(request.method, *request.paths) for request in asked]
    assert found == [("write_bytes", "a"), ("write_bytes", "a"), ("mkdir", "b/c")]
    assert "+one" in asked[0].diff


def test_a_file_that_policy_keeps_is_not_replaced_and_what_was_written_counts_as_seen(ws, tmp_path):
    with Workspace(tmp_path, policy=Policy(overwrite="never")) as never:
        assert never.write_bytes("b", b"2").created
        assert not never.write_bytes("b", b"2").created
        with pytest.raises(FileExistsError):
            never.write_bytes("b", b"3")
    ws.write_bytes("a", b"one\n")
    assert not ws.write("a", "two\n").created


def fill(top: Path) -> None:
    """Make a tree with a FIFO, a socket, a link and files that their modes close to their owner."""
    put(top, {"d/e/f": "f\n", "d/closed": "closed\n", "d/write-only": "only\n"})
    (top / "d/closed").chmod(0)
    (top / "d/write-only").chmod(0o200)
    (top / "d/link").symlink_to("closed")
    os.mkfifo(top / "d/fifo", 0o640)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.path.relpath(top / "d/e/socket"))


@pytest.mark.parametrize("way", ["plain", "transaction", "connect"])
def test_a_tree_with_a_fifo_is_not_deleted_and_the_fifo_is_named(tmp_path, monkeypatch, way):
    """Nothing could bring a FIFO or a socket back."""
    monkeypatch.chdir(tmp_path)  # the path of a socket must be short
    fill(tmp_path)
    before = tree(tmp_path)
    with opened(tmp_path, way) as ws, ws.transaction() as tx:
        used = tx if way == "transaction" else ws
        error = refused(lambda: used.delete("d", recursive=True), "not_regular")
    assert "d/fifo" in str(error)
    assert "d/e/socket" in str(error)
    assert tree(tmp_path) == before


@pytest.fixture
def theirs(monkeypatch):
    """A directory of a user whom modes hold back, as whom the test runs; root gives it away."""
    with public_directory() as top:
        monkeypatch.chdir(top)
        if AS_ROOT:
            with Workspace(top) as ws:  # maybe only root can read the modules
                ws.write("warm", "")
                ws.delete("warm", recursive=True)
                ws.undo(2)
            os.chown(top, SOMEBODY, SOMEBODY)
            os.seteuid(SOMEBODY)
        yield top
        if AS_ROOT:
            os.seteuid(0)


@pytest.mark.skipif(not AS_ROOT, reason="only root makes files of others")
def test_what_only_another_user_may_read_keeps_its_directory(theirs):
    """It could not come back."""
    (theirs / "d").mkdir()
    os.seteuid(0)
    (theirs / "d/theirs").write_text("theirs\n")
    (theirs / "d/theirs").chmod(0o600)
    os.seteuid(SOMEBODY)
    with Workspace(theirs) as ws, pytest.raises(PermissionError, match="theirs"):
        ws.delete("d", recursive=True)
    assert (theirs / "d/theirs").exists()


@pytest.mark.parametrize("way", ["plain", "watched", "connect"])
def test_a_root_that_was_removed_is_gone_for_every_call(tmp_path, way):
    top = tmp_path / "root"
    top.mkdir()
    (top / "a").write_text("1\n")
    with opened(top, way) as ws:
        ws.read("a")
        tools = ws.tools()
        shutil.rmtree(top)
        for _ in range(2):
            for act in (
                lambda: ws.read("a"), ws.ls, lambda: ws.grep("1"),
                lambda: ws.write("a", ""), lambda: ws.host.mkdir("b"), ws.undo,
            ):  # fmt: skip
                refused(act, "root_gone")
            assert tools.call("ls").error["code"] == "root_gone"
            top.mkdir(exist_ok=True)  # another directory of the same name is not the root
        assert not [*top.iterdir()]


@pytest.mark.parametrize("way", ["plain", "watched", "connect"])
def test_unlimited_limits_cut_nothing(tmp_path, way):
    (tmp_path / "a").write_text("x\n" * 2_500)
    for number in range(520):
        (tmp_path / f"{number}.txt").write_text("y\n")
    limits = Limits.unlimited()
    with opened(tmp_path, way, limits=limits) as ws:
        assert ws.limits == limits
        assert ws.read("a").content == "x\n" * 2_500
        assert len(ws.grep("x", context=2).matches) == 2_500
        assert len(ws.ls().entries) == len(ws.glob("*").files) == len(kit.find(ws, types="f").files) == 521
        ws.edit("a", "x", "z", replace_all=True)
        assert ws.undo().steps == 1
    refused(lambda: Limits(file_bytes=limits.file_bytes + 1))
