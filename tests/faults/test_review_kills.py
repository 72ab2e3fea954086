"""A process is killed before each system call of `apply_review`: undo takes back what was made of it."""

from pathlib import Path

import pytest

from agentfs import Workspace
from tests.conftest import part_or_all
from tests.faults.calls import kills
from tests.faults.test_state_kills import files_of, fresh, killing


def prepared(top: Path) -> tuple[Path, Path]:
    root, state = fresh(top)
    with Workspace(root, state=state) as ws:
        ws.edit("a", "old", "new")
        ws.write("made/deep/b", "new\n")
        ws.move("c", "moved")
        ws.delete("d")
    return root, state


def reject(ws: Workspace) -> None:
    ws.apply_review(reject=[hunk.id for hunk in ws.review().hunks])


@pytest.mark.full
@part_or_all(12)
def test_a_kill_before_a_call_of_reject_leaves_a_step_that_undo_takes_back(
    tmp_path: Path, monkeypatch, every
):
    root, state = prepared(tmp_path / "model")
    old, seen = files_of(root), set()
    with Workspace(root, state=state) as ws:
        reject(ws)
    new = files_of(root)
    assert sorted(new) == ["a", "c", "d"]
    for where, root, state in kills(killing(monkeypatch), every, lambda: prepared(tmp_path / "top"), reject):
        with Workspace(root, state=state) as ws:
            present = files_of(root)
            assert (ws.review().files == ()) == (present == new)
            assert present in (old, new) or "undo takes it back" in ws.recovery_notes[0]
            if present != old:
                ws.undo()
            assert files_of(root) == old, f"killed at {where}: {sorted(present)}"
        seen.add(present == new)
    assert seen == {False, True}
