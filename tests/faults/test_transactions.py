"""A transaction over five files: a kill at a system call, and changes that cannot be undone at once."""

import errno
import os
import shutil
from pathlib import Path

import pytest

from agentfs import AgentFSError, Workspace
from agentfs.fs import apply
from tests.faults.calls import without_temporaries
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
with Workspace(sys.argv[1], state=sys.argv[1] + "-state") as ws:
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
        shutil.rmtree(f"{top}-state")
        assert run_traced(TRACED, [top], log, f"{name}:signal=KILL:when={at}") in {"killed", "done"}
        with Workspace(top, state=f"{top}-state") as ws:
            state = without_temporaries(snapshot(top))
            if state not in both:  # a begun step
                assert ws.recovery_notes
                ws.undo()
                state = without_temporaries(snapshot(top))
                assert state == both[0], f"killed at {name} {at}: {sorted(state)} {ws.recovery_notes}"


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


def test_changes_that_cannot_be_reversed_are_named(tmp_path, monkeypatch):
    top = fresh(tmp_path / "root")
    renames = []
    real = os.replace

    def failing(*args, **options):
        renames.append(args)
        if len(renames) > 1:  # the second one, and all that would reverse the first
            raise OSError(errno.EIO, "broken")
        return real(*args, **options)

    monkeypatch.setattr(apply, "_RETRY_SECONDS", 0.0)
    with Workspace(top) as ws:
        monkeypatch.setattr(os, "replace", failing)
        with pytest.raises(AgentFSError) as caught:
            both_edited(ws)
    assert '"a" could not be restored' in caught.value.hint
