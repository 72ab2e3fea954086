"""A process is killed as it enters, leaves or undoes a recording: no change is lost, and no step is wrong."""

import os

import pytest

from agentfs import Workspace
from tests.conftest import part_or_all
from tests.faults.calls import kills
from tests.faults.test_state_kills import files_of, fresh, judge, killing


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
    with Workspace(root) as ws:
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

    told = set()
    top = tmp_path / "top"
    for where, root, state in kills(
        calls, every, lambda: fresh(top), lambda ws: act(ws, top / "root", uncounted)
    ):
        told |= {text.partition(" ")[0] for text in judge(root, state, had, where)[1]}
    assert "recording" in told
