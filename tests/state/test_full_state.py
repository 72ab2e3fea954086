"""A full disk under the state directory: a change is made and written down, or not made; never only made."""

import errno
import json
import os
import shutil
import signal
import subprocess
import sys

import pytest

from agentfs import AgentFSError, Policy, Workspace
from agentfs.errors import FileIOError
from agentfs.fs import log_file, state_directory
from tests.journal.judges import can_mount, snapshot


@pytest.fixture
def root(tmp_path):
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "a.txt").write_text("old\n")
    (tmp_path / "root" / "b.txt").write_text("old\n")
    return tmp_path / "root"


def act(ws, root):
    """Steps of every kind; those that fail are left out."""
    failed = []
    for name, call in {
        "edit": lambda: ws.edit("a.txt", "old", "new"),
        "write": lambda: ws.write("new/c.txt", "c\n"),
        "checkpoint": lambda: ws.checkpoint("here"),
        "move": lambda: ws.move("b.txt", "d.txt"),
        "undo": ws.undo,
        "again": lambda: ws.edit("a.txt", "new", "newer"),
        "rollback": lambda: ws.rollback("here"),
        "last": lambda: ws.write("last.txt", "last\n"),
    }.items():
        before = snapshot(root)
        steps = list(ws._journal.steps)
        try:
            call()
        except AgentFSError as error:
            failed.append((name, error))
            assert snapshot(root) == before, name
            assert list(ws._journal.steps) == steps, name
    return failed


@pytest.mark.parametrize(
    ("what", "number"),
    [("write", errno.ENOSPC), ("ftruncate", errno.ENOSPC), ("fsync", errno.EIO), ("fsync", errno.ENOSPC)],
)
def test_each_write_into_the_state_directory_fails(root, tmp_path, monkeypatch, what, number):
    original, state = snapshot(root), tmp_path / "state"
    count, failing = 0, 0
    write_all, sync_file = log_file.write_all, state_directory.sync_file

    def fail_here():
        nonlocal count
        count += 1
        return count == failing

    def failing_write(fd, content):
        if fail_here():
            os.write(fd, bytes(content)[: len(content) // 2])  # a part of it comes through
            raise OSError(number, os.strerror(number))
        write_all(fd, content)

    def failing_sync(base, fd):
        if fail_here():
            raise OSError(number, os.strerror(number))
        sync_file(base, fd)

    def failing_truncate(fd, size):
        raise OSError(number, os.strerror(number))

    if what == "fsync":
        monkeypatch.setattr(state_directory, "sync_file", failing_sync)
    else:
        monkeypatch.setattr(log_file, "write_all", failing_write)
    with Workspace(root, state=state) as ws:
        start = count
        assert act(ws, root) == []
        total = count - start
    assert total >= 6
    failed = []
    for at in range(1, total + 1):
        shutil.rmtree(state)
        shutil.rmtree(root)
        root.mkdir()
        for name in ("a.txt", "b.txt"):
            (root / name).write_text("old\n")
        failing = 0
        with Workspace(root, state=state) as ws:
            failing = count + at
            with monkeypatch.context() as patched:
                if what == "ftruncate":  # not even what came through can be taken back at once
                    patched.setattr(log_file.os, "ftruncate", failing_truncate)
                failed += act(ws, root)
        with Workspace(root, state=state) as ws:
            assert ws.recovery_notes == ()
            if ws._journal.steps:
                ws.undo(len(ws._journal.steps))
        assert snapshot(root) == original
    # What one failure leads to are calls that find something else than they meant.
    assert {error.code for _, error in failed} <= {"io", "not_found", "invalid_argument", "no_match"}
    assert {"edit", "undo"} <= {name for name, _ in failed}
    assert all(error.hint for _, error in failed if error.code == "io")
    assert all("state/" not in str(error) for _, error in failed), "where it lies is not for a model to know"


LIMITED = """
import json, resource, signal, sys
from agentfs import AgentFSError, Workspace
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
made = []
with Workspace(sys.argv[1], state=sys.argv[2]) as ws:
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]), resource.RLIM_INFINITY))
    for number in range(200):
        try:
            ws.write(f"{number}.txt", f"{number}\\n")
            made.append(number)
        except AgentFSError as error:
            print(json.dumps({"made": made, "code": error.code, "errno": error.details.get("errno")}))
            break
    # What only looks goes on.
    assert ws.read("0.txt").content == "0\\n"
"""


@pytest.mark.skipif(not hasattr(signal, "SIGXFSZ"), reason="there is no limit on the size of files here")
def test_the_kernel_takes_no_more(root, tmp_path):
    original = snapshot(root)
    command = [sys.executable, "-c", LIMITED, root, tmp_path / "state", "4000"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    said = json.loads(done.stdout)
    assert (said["code"], said["errno"]) == ("io", errno.EFBIG)
    assert 3 < len(said["made"]) < 100
    with Workspace(root, state=tmp_path / "state") as ws:
        assert ws.recovery_notes == ()
        assert [change.path for step in ws._journal.steps for change in step.changes] == [
            f"{number}.txt" for number in said["made"]
        ]
        assert sorted(set(snapshot(root)) - set(original)) == sorted(
            f"{number}.txt" for number in said["made"]
        )
        ws.undo(len(said["made"]))
    assert snapshot(root) == original


ON_A_SMALL_DISK = """
import json, os, sys
from pathlib import Path
from agentfs import AgentFSError, Workspace
root, state = map(Path, sys.argv[1:])
made, refused = [], []
with Workspace(root, state=state) as ws:
    for number in range(60):
        try:
            ws.write(f"{number}.txt", os.urandom(1500).hex())
            made.append(f"{number}.txt")
        except AgentFSError as error:
            refused.append((error.code, error.details.get("errno")))
assert sorted(os.listdir(root)) == sorted(made)
with Workspace(root, state=state) as ws:
    assert ws.recovery_notes == ()
    assert [change.path for step in ws._journal.steps for change in step.changes] == made
    left = len(made)
    while left:  # to go back takes room too: a little, which the last of the journal may not find
        try:
            ws.undo()
            left -= 1
        except AgentFSError as error:
            assert error.code == "io"
            break
assert len(os.listdir(root)) == left
print(json.dumps([len(made), refused[0]]))
"""


@pytest.mark.skipif(not can_mount(), reason="only a user who may mount has a small disk")
def test_a_disk_that_is_full(root, tmp_path):
    for path in root.iterdir():
        path.unlink()
    (tmp_path / "small").mkdir()
    script = (
        f"mount -t tmpfs -o size=64k none {tmp_path}/small &&"
        f" exec {sys.executable} - {root} {tmp_path}/small/state"
    )
    command = ["unshare", "-m", "sh", "-c", script]
    done = subprocess.run(command, input=ON_A_SMALL_DISK, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    made, first = json.loads(done.stdout)
    assert 5 < made < 60
    assert first == ["io", errno.ENOSPC]


def test_beginning_a_state_directory_without_room(root, tmp_path):
    code = (
        "import resource, signal, sys; from agentfs import Workspace, AgentFSError\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))\n"
        "try: Workspace(sys.argv[1], state=sys.argv[2])\n"
        "except AgentFSError as error: print(error.code)"
    )
    command = [sys.executable, "-c", code, root, tmp_path / "state"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "io\n"
    Workspace(root, state=tmp_path / "state").close()


def test_what_was_shown_is_written_again_when_there_is_room(root, tmp_path, monkeypatch):
    from agentfs.state import memory

    monkeypatch.setattr(memory, "_PAUSE", -1.0)

    def full(fd, content):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with Workspace(root, state=tmp_path / "state") as ws:
        with monkeypatch.context() as patched:
            patched.setattr(log_file, "write_all", full)
            assert ws.read("a.txt").content == "old\n", "what only looks does not fail for it"
        ws.read("b.txt")
    with Workspace(root, state=tmp_path / "state", policy=Policy(durability="fast")) as ws:
        ws.write("a.txt", "seen\n")
        ws.write("b.txt", "seen\n")


def test_a_disk_that_stays_full_to_the_end_means_that_it_was_not_seen(root, tmp_path, monkeypatch):
    with Workspace(root, state=tmp_path / "state") as ws:
        before = (tmp_path / "state" / "shown").read_bytes()

        def full(fd, content):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr(log_file, "write_all", full)
        ws.read("a.txt")
        with pytest.raises(FileIOError, match="No space left"):
            ws.write("a.txt", "x\n")
        monkeypatch.undo()
        assert (tmp_path / "state" / "shown").read_bytes() == before


def test_an_interrupt_while_it_is_written_down_changes_nothing(root, tmp_path, monkeypatch):
    original = snapshot(root)
    write_all, count = log_file.write_all, 0

    def interrupted(fd, content):
        nonlocal count
        write_all(fd, content)
        count += 1
        if count == at:
            raise KeyboardInterrupt

    monkeypatch.setattr(log_file, "write_all", interrupted)
    for at in range(1, 6):
        with Workspace(root, state=tmp_path / "state") as ws:
            steps, count = len(ws._journal.steps), 0
            with pytest.raises(KeyboardInterrupt):
                [ws.write(f"{at}-{number}", "x\n") for number in range(5)]
            ws.write(f"after-{at}", "x\n")
            stand = len(ws._journal.steps)
            assert stand > steps
        with Workspace(root, state=tmp_path / "state") as ws:
            assert ws.recovery_notes == ()
            assert len(ws._journal.steps) == stand
    with Workspace(root, state=tmp_path / "state") as ws:
        ws.undo(len(ws._journal.steps))
    assert snapshot(root) == original


def test_one_that_is_removed_in_use_is_told_before_anything_is_changed(root, tmp_path):
    before = snapshot(root)
    with Workspace(root, state=tmp_path / "state") as ws:
        shutil.rmtree(tmp_path / "state")
        with pytest.raises(FileIOError, match="was removed"):
            ws.edit("a.txt", "old", "new")
        assert ws.read("a.txt").content == "old\n"
    assert snapshot(root) == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not copied here")
def test_a_copy_of_the_process_writes_nothing_into_it(root, tmp_path):
    with Workspace(root, state=tmp_path / "state") as ws:
        ws.edit("a.txt", "old", "new")
        child = os.fork()
        if child == 0:
            try:
                ws.read("b.txt")
                ws.forget()
                ws.edit("a.txt", "new", "newer")
            except FileIOError as error:
                os._exit("is a copy of" in str(error))
            finally:
                os._exit(9)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
        ws.write("c.txt", "c\n")
    with Workspace(root, state=tmp_path / "state") as ws:
        assert ws.recovery_notes == ()
        assert ws.undo(2).steps == 2
