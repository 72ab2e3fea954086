"""An undo of a recording never deletes the only copy of a content that the recording did not keep."""

import os
import subprocess
import time

import pytest

from agentfs import Limits, Workspace
from agentfs.fs import syscalls
from agentfs.history.recordings import recording

SECRET, LARGE = "TOKEN=secret\n", "large\n" * 1000
OVERLAY, NFS = 0x794C7630, 0x6969


@pytest.fixture
def root(tmp_path):
    top = tmp_path / "root"
    (top / "build" / "deep").mkdir(parents=True)
    (top / "a.txt").write_text("one\n")
    (top / ".env").write_text(SECRET)
    (top / "large").write_text(LARGE)
    (top / "x.log").write_text("log\n")
    (top / "build" / "deep" / "out").write_text("built\n")
    (top / ".gitignore").write_text("build/\n*.log\n*.tmp\n")
    (tmp_path / "outside").write_text("outside\n")
    subprocess.run(["git", "init", "-q", top], check=True)
    (top / ".git" / "kept").write_text("commits\n")
    return top


def contents(top):
    """Return the content of each file, with those of `.git`."""
    return {path.read_bytes() for path in top.rglob("*") if path.is_file() and not path.is_symlink()}


def run(command, root):
    subprocess.run(command, shell=True, cwd=root, check=True)


ARRIVALS = {
    "protected": ("mv .env shown", "shown", SECRET),
    "over an old file": ("mv .env a.txt", "a.txt", SECRET),
    "repository": ("mv .git repository", "repository", "commits\n"),
    "over the limit": ("mv large small", "small", LARGE),
    "ignored": ("mv x.log shown", "shown", "log\n"),
    "ignored directory": ("mv build shown", "shown", "built\n"),
    "in an ignored directory": ("mv build/deep/out shown", "shown", "built\n"),
    "directory in it": ("mv build/deep shown", "shown", "built\n"),
    "into a new directory": ("mkdir -p new/er; mv build/deep/out new/er/x", "new/er/x", "built\n"),
    "from outside": ("mv ../outside shown", "shown", "outside\n"),
    "copied": ("cp .env shown; rm .env", "shown", SECRET),
    "copied and emptied": ("cp .env shown; : > .env", "shown", SECRET),
    "packed": ("tr a-z A-Z < x.log > shown; rm x.log", "shown", "LOG\n"),
    "a directory copied": ("cp -r .git repository; rm -r .git", "repository/kept", "commits\n"),
    "linked": ("ln x.log shown; rm x.log", "shown", "log\n"),
    "grown and moved": ("echo more >> build/deep/out; mv build/deep/out shown", "shown", "built\nmore\n"),
    "shown by a rule": ("echo more >> x.log; echo build/ > .gitignore", "x.log", "log\nmore\n"),
    "all shown": ("echo more >> build/deep/out; rm .gitignore", "build/deep/out", "built\nmore\n"),
    "shown and moved": ("rm .gitignore; mv build/deep/out shown", "shown", "built\n"),
}


@pytest.mark.parametrize("watch", [False, True])
@pytest.mark.parametrize("name", ARRIVALS)
def test_line_1_what_may_come_from_an_unrecorded_place_is_left_and_named(root, name, watch):
    command, path, content = ARRIVALS[name]
    with Workspace(root, watch=watch, limits=Limits(snapshot_bytes=2000)) as ws:
        with ws.recording("mv") as recorded:
            run(f"{command}; echo new >> made", root)
        lost = recorded.result.lost
        assert any(path == each or path.startswith(f"{each}/") for each in lost), lost
        assert all(f'"{each}"' in recorded.result.text for each in lost[:5])
        if recorded.result.files:
            undone = ws.undo()
            assert f'"{lost[0]}"' in "".join(undone.notes)
        assert content.encode() in contents(root)


@pytest.mark.parametrize("file_system", [OVERLAY, NFS])
@pytest.mark.parametrize("name", [name for name in ARRIVALS if name != "grown and moved"])
def test_without_trusted_birth_times_it_is_left_too(root, name, file_system, monkeypatch):
    command, _, content = ARRIVALS[name]
    monkeypatch.setattr(syscalls, "file_system", lambda _: file_system)
    with Workspace(root, limits=Limits(snapshot_bytes=2000)) as ws:
        with ws.recording("mv"):
            run(f"{command}; echo new > a.txt", root)
        while ws._journal.timeline.done_steps:
            ws.undo()
        assert content.encode() in contents(root) or name == "over an old file"


@pytest.mark.parametrize("written", ["long before", "just before"])
@pytest.mark.parametrize("times", range(10))
def test_line_2_a_file_that_was_written_just_before_is_not_deleted(root, written, times):
    with Workspace(root) as ws:
        (root / "build" / "new").write_text("just now\n")
        if written == "long before":
            time.sleep(0.05)
        with ws.recording("mv") as recorded:
            os.rename(root / "build" / "new", root / "shown")
            (root / "made").write_text("made\n")
        assert recorded.result.lost == ("shown",)
        assert [file.path for file in recorded.result.files] == ["made"]
        ws.undo()
    assert (root / "shown").read_text() == "just now\n"
    assert not (root / "made").exists()


def test_line_2_the_file_clock_may_lag_behind_the_times_of_files(root, monkeypatch):
    """From Linux 6.13 on, a file may get a time that is later than the coarse clock."""
    monkeypatch.setattr(recording, "file_clock", lambda: time.time_ns() - 12_000_000)
    with Workspace(root) as ws:
        (root / "build" / "new").write_text("just now\n")
        with ws.recording("mv") as recorded:
            os.rename(root / "build" / "new", root / "shown")
            (root / "made").write_text("made\n")
        assert recorded.result.lost == ("shown",)
        assert [file.path for file in recorded.result.files] == ["made"]


@pytest.mark.parametrize("times", range(10))
def test_what_is_created_at_once_is_created(root, times):
    with Workspace(root) as ws:
        with ws.recording("new") as recorded:
            (root / "made").write_text("made\n")
            os.mkdir(root / "directory")
            os.rename(root / "a.txt", root / "directory" / "b.txt")
            (root / "build" / "made").write_text("x\n")
            os.rename(root / "build" / "made", root / "from build")
        assert recorded.result.lost == ()
        ws.undo()
    assert sorted(os.listdir(root)) == [".env", ".git", ".gitignore", "a.txt", "build", "large", "x.log"]


def test_names_that_are_rotated_among_ignored_ones_change_nothing(root):
    with Workspace(root) as ws:
        with ws.recording("rotate") as recorded:
            run("mv x.log y.log; echo next > x.log; echo new > made", root)
        assert [file.path for file in recorded.result.files] == ["made"]
        ws.undo()
    assert not (root / "made").exists()


def test_a_directory_with_ignored_names_moves_as_one(root):
    (root / "src").mkdir()
    (root / "src" / "one.py").write_text("one\n")
    (root / "src" / "one.tmp").write_text("cache\n")
    with Workspace(root) as ws:
        with ws.recording("mv"):
            run("mv src lib; echo new > lib/two.py", root)
        ws.undo()
    assert (root / "src" / "one.py").read_text() == "one\n"
    assert (root / "lib" / "one.tmp").read_text() == "cache\n"
    assert not (root / "lib" / "two.py").exists()


def test_what_the_workspace_moved_counts_as_known(root):
    with Workspace(root) as ws:
        with ws.recording("mv") as recorded:
            ws.move("a.txt", "b.txt")
            run("mv b.txt c.txt", root)
        assert recorded.result.lost == ()
        ws.undo(2)
    assert (root / "a.txt").read_text() == "one\n"
    assert not (root / "c.txt").exists()


def test_a_moved_file_that_a_command_then_changes_is_known_after_a_crash(root, tmp_path):
    """The inode of the moved file was forgotten: its change counted as lost, and undo ended in a conflict."""
    before = contents(root)
    child = os.fork()
    if child == 0:
        with Workspace(root, state=tmp_path / "state") as ws, ws.recording("killed"):
            ws.move("a.txt", "b.txt")
            (root / "b.txt").write_text("two\n")  # the same inode
            os._exit(0)
    os.waitpid(child, 0)
    with Workspace(root, state=tmp_path / "state") as ws:
        ws.undo(2)
        assert contents(root) == before
        assert not (root / "b.txt").exists()
        ws.redo(2)
        assert (root / "b.txt").read_text() == "two\n"


def test_a_secret_that_replaces_a_moved_file_is_not_overwritten_after_a_crash(root, tmp_path):
    child = os.fork()
    if child == 0:
        with Workspace(root, state=tmp_path / "state") as ws, ws.recording("killed"):
            ws.move("a.txt", "b.txt")
            (root / ".env").rename(root / "b.txt")
            os._exit(0)
    os.waitpid(child, 0)
    with Workspace(root, state=tmp_path / "state") as ws:
        ws.undo()
        assert SECRET.encode() in contents(root)
