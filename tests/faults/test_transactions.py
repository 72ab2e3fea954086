"""A transaction over five files: a kill at a system call, and changes that cannot be undone at once."""

import errno
import os
import shutil
from pathlib import Path

import pytest

from agentfs import AgentFSError, Workspace
from tests.faults.tracing import needs_tracing, numbered, run_traced
from tests.history.judges import snapshot

TRANSACTION = """
def transaction(ws):
    with ws.transaction() as tx:
        tx.edit("a", "old", "new", True)
        tx.write("made/b", "new\\n")
        tx.move("c", "moved/c")
        tx.read("d")
        tx.delete("d")
        tx.edit("deep/e", "old", "new", True)
"""
exec(TRANSACTION)  # the traced process runs the same text


def fresh(top: Path) -> Path:
    shutil.rmtree(top, ignore_errors=True)
    (top / "deep").mkdir(parents=True)
    for name in ("a", "c", "d", "deep/e"):
        (top / name).write_text(f"old {name}\n")
        os.utime(top / name, (1, 1))  # long ago, so that a second name looks stale
    (top / "a").chmod(0o755)
    return top


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    top = fresh(tmp_path_factory.mktemp("model") / "root")
    old = snapshot(top)
    with Workspace(top) as ws:
        ws.read("d")
        transaction(ws)  # noqa: F821 - from TRANSACTION
        new = snapshot(top)
        ws.undo()
        assert snapshot(top) == old
    assert new != old
    return old, new


TRACED = (
    TRANSACTION
    + """
import sys
from agentfs import Workspace
with Workspace(sys.argv[1]) as ws:
    ws.read("d")
    with ws.transaction() as tx:
        tx.write("warm", "x")
        tx.write("warm2", "x")
    ws.undo()
    print("ready", flush=True)
    sys.stdin.readline()
    transaction(ws)
    print("done", flush=True)
    sys.stdin.readline()
"""
)


def kill_at(tmp_path, both, step):
    import re

    top = fresh(tmp_path / "root")
    log = tmp_path / "log"
    assert run_traced(TRACED, [top], log) == "done"
    names = re.findall(r"^\d+ +(\w+)\(", log.read_text(), re.MULTILINE)
    points = numbered(names[names.index("read") + 1 :])
    points = [point for point in points if point[0] not in {"brk", "mmap", "munmap", "futex", "mremap"}]
    assert len(points) > 150
    for name, at in points[::step]:
        fresh(top)
        assert run_traced(TRACED, [top], log, f"{name}:signal=KILL:when={at}") in {"killed", "done"}
        with Workspace(top) as ws:
            state = snapshot(top)
            assert state in both, f"killed at {name} {at}: {sorted(state)} {ws.recovery_notes}"


@pytest.mark.full
@needs_tracing
def test_a_kill_at_some_system_calls_leaves_all_old_or_all_new(tmp_path, both):
    kill_at(tmp_path, both, 97)


@pytest.mark.long
@needs_tracing
def test_a_kill_at_every_system_call_leaves_all_old_or_all_new(tmp_path, both):
    kill_at(tmp_path, both, 1)


def both_edited(ws):
    with ws.transaction() as tx:
        tx.edit("a", "old", "new")
        tx.edit("c", "old", "new")


def test_changes_that_cannot_be_undone_now_are_undone_when_the_root_is_opened_again(tmp_path, monkeypatch):
    from agentfs.fs import batch

    top = fresh(tmp_path / "root")
    old = snapshot(top)
    renames = []
    real = os.replace

    def failing(*args, **options):
        renames.append(args)
        if len(renames) > 1:  # the second one, and all that would undo the first
            raise OSError(errno.EIO, "broken")
        return real(*args, **options)

    monkeypatch.setattr(batch, "_RETRY_SECONDS", 0.0)
    with Workspace(top) as ws:
        monkeypatch.setattr(os, "replace", failing)
        with pytest.raises(AgentFSError) as caught:
            both_edited(ws)
        assert '"a" could not be restored' in caught.value.hint
        assert snapshot(top) != old
        with Workspace(top) as still_broken:
            assert "could not be undone" in still_broken.recovery_notes[0]
        monkeypatch.setattr(os, "replace", real)
    with Workspace(top) as ws:
        assert "was undone" in ws.recovery_notes[0]
        assert snapshot(top) == old
    with Workspace(top) as ws:
        assert not ws.recovery_notes


def died_between_two_renames(top):
    """Let a process that edits a/x and b/y as one die after the first rename."""
    shutil.rmtree(top, ignore_errors=True)
    for name in ("a/x", "b/y"):
        (top / name).parent.mkdir(parents=True)
        (top / name).write_text("old\n")
    child = os.fork()
    if child == 0:
        real, renames = os.replace, []

        def replace(*args, **options):
            renames.append(args)
            if len(renames) == 2:
                os._exit(9)
            return real(*args, **options)

        os.replace = replace
        with Workspace(top) as ws, ws.transaction() as tx:
            tx.edit("a/x", "old", "new")
            tx.edit("b/y", "old", "new")
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    assert {(top / "a/x").read_text(), (top / "b/y").read_text()} == {"old\n", "new\n"}


def as_a_link(path):
    path.symlink_to("moved")


@pytest.mark.parametrize(
    "put", [as_a_link, Path.touch, os.mkfifo, lambda _: None], ids=["link", "file", "fifo", "gone"]
)
@pytest.mark.parametrize("name", ["a", "b"])
def test_a_root_opens_even_if_a_directory_of_an_unfinished_change_was_replaced(tmp_path, put, name):
    top = tmp_path / "root"
    died_between_two_renames(top)
    (top / name).rename(top / "moved")
    put(top / name)
    file, other = ("a/x", "b/y") if name == "a" else ("b/y", "a/x")
    with Workspace(top) as ws:
        assert any(f'"{file}"' in line for line in ws.recovery_notes), "not reported"
        assert (top / other).read_text() == "old\n", "the rest of the change was not undone"
        ws.write("works", "x\n")
    if put is not as_a_link:
        with Workspace(top) as ws:
            assert not ws.recovery_notes
        return
    with Workspace(top) as ws:
        assert len(ws.recovery_notes) == 1
        assert f'an unfinished change of "{file}" could not be undone' in ws.recovery_notes[0]
    (top / name).unlink()
    (top / "moved").rename(top / name)
    with Workspace(top):
        assert (top / file).read_text() == "old\n"
    with Workspace(top) as ws:
        assert not ws.recovery_notes
        assert not [path for path in snapshot(top) if ".agentfs-" in path]


def test_a_root_opens_even_if_the_lock_of_an_unfinished_change_fails(tmp_path, monkeypatch):
    from agentfs.fs import lock

    top = tmp_path / "root"
    died_between_two_renames(top)
    with monkeypatch.context() as patch:
        patch.setattr(lock, "open_locked", lambda *_: (_ for _ in ()).throw(OSError(28, "No space")))
        with Workspace(top) as ws:
            assert len(ws.recovery_notes) == 2
            assert all("could not be undone: [Errno 28] No space" in line for line in ws.recovery_notes)
    with Workspace(top) as ws:
        assert "was undone" in ws.recovery_notes[0]
        assert (top / "a/x").read_text() == (top / "b/y").read_text() == "old\n"


def test_changes_that_were_undone_are_not_undone_again_with_the_others(tmp_path):
    """A file that the change had created, and that another program creates again, is kept."""
    top = tmp_path / "root"
    (top / "z").mkdir(parents=True)
    (top / "z/x").write_text("old\n")
    child = os.fork()
    if child == 0:
        real = os.replace
        os.replace = lambda *args, **options: os._exit(9) if args[1] == "x" else real(*args, **options)
        with Workspace(top) as ws, ws.transaction() as tx:
            tx.write("made", "new\n")
            tx.edit("z/x", "old", "new")
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    assert (top / "made").exists()
    (top / "z").rename(top / "moved")
    (top / "z").symlink_to("moved")
    with Workspace(top):
        assert not (top / "made").exists()
    (top / "made").write_text("new\n")
    with Workspace(top):
        assert (top / "made").exists(), "a file of another program was removed"
