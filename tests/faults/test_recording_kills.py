"""A process is killed as it enters, leaves or undoes a recording: no change is lost, and no step is wrong."""

import os
import shutil
from contextlib import suppress

import pytest

from agentfs import Policy, Workspace
from tests.conftest import part_or_all
from tests.faults.calls import some_of
from tests.faults.test_state_kills import files_of, fresh, judge, killing, was_killed

POLICY = Policy()


def outside(root):
    """Change files, as another process does."""
    (root / "c").unlink()
    (root / "d").write_text("outside\n")
    (root / "d").chmod(0o755)
    os.makedirs(root / "new" / "deep")
    (root / "new" / "deep" / "x").write_text("x\n")


def act(ws, root, uncounted):
    """Record changes of others twice, with an own edit in the first block; undo and redo them."""
    with ws.recording("first"):
        ws.edit("a", "old", "new")
        uncounted(outside, root)
    ws.undo()
    ws.redo()
    with ws.recording("second"):
        uncounted((root / "a").write_text, "others\n")
    ws.undo(2)


def states_of(top):
    """Return the tree at the start and after each step of `act`."""
    root, _ = fresh(top)
    found = [files_of(root)]
    with Workspace(root, policy=POLICY) as ws:
        ws.edit("a", "old", "new")
        found.append(files_of(root))
        outside(root)
        found.append(files_of(root))
        (root / "a").write_text("others\n")
        found.append(files_of(root))
    return found


@pytest.mark.full
@part_or_all(120)
def test_a_kill_before_a_call_loses_no_change(tmp_path, monkeypatch, every):
    had = states_of(tmp_path / "model")
    calls = killing(monkeypatch)

    def uncounted(change, *arguments):
        at, calls.at = calls.at, 0
        count = calls.count
        change(*arguments)
        calls.at = at
        del calls.names[count:]

    root, state = fresh(tmp_path / "top")
    with Workspace(root, state=state, policy=POLICY) as ws:
        start = calls.count
        act(ws, root, uncounted)
        names = calls.names[start:]
    total = len(names)
    assert total > 300
    told = set()
    for number in some_of(names, every):
        root, state = fresh(tmp_path / "top")
        child = os.fork()
        if child == 0:
            status = 1
            with suppress(Exception):
                ws = Workspace(root, state=state, policy=POLICY)
                calls.at = calls.count + number
                act(ws, root, uncounted)
                status = 0
            os._exit(status)
        if not was_killed(child, number, total):
            break
        _, repaired = judge(root, state, had, f"call {number} of {total}")
        told |= {text.partition(" ")[0] for text in repaired}
        shutil.rmtree(tmp_path / "top")
    assert "recording" in told
