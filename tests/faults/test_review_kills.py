"""A process is killed before each system call of `apply_review`: undo takes back what was made of it."""

import os
import signal
from pathlib import Path

import pytest

from agentfs import Workspace
from tests.conftest import part_or_all
from tests.faults.calls import some_of
from tests.faults.test_state_kills import files_of, fresh, killing


def prepared(top: Path) -> tuple[Path, Path]:
    root, state = fresh(top)
    with Workspace(root, state=state) as ws:
        ws.edit("a", "old", "new")
        ws.write("made/deep/b", "new\n")
        ws.move("c", "moved")
        ws.delete("d")
    return root, state


@pytest.mark.full
@part_or_all(12)
def test_a_kill_before_a_call_of_reject_leaves_a_step_that_undo_takes_back(
    tmp_path: Path, monkeypatch, every
):
    calls = killing(monkeypatch)
    root, state = prepared(tmp_path / "top")
    old = files_of(root)
    with Workspace(root, state=state) as ws:
        review = ws.review()
        start = calls.count
        ws.apply_review(reject=[hunk.id for hunk in review.hunks])
        names = calls.names[start:]
    new = files_of(root)
    assert sorted(new) == ["a", "c", "d"]
    seen = set()
    for number in some_of(names, every):
        root, state = prepared(tmp_path / "top")
        child = os.fork()
        if child == 0:
            ws = Workspace(root, state=state)
            review = ws.review()
            calls.at = calls.count + number
            ws.apply_review(reject=[hunk.id for hunk in review.hunks])
            os._exit(0)
        assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
        with Workspace(root, state=state) as ws:
            present = files_of(root)
            assert (ws.review().files == ()) == (present == new)
            assert present in (old, new) or "undo takes it back" in ws.recovery_notes[0]
            if present != old:
                ws.undo()
            assert files_of(root) == old, f"killed at call {number} of {len(names)}: {sorted(present)}"
        seen.add(present == new)
    assert seen == {False, True}
    print(f"{len([*some_of(names, every)])} kills of {len(names)} calls")  # noqa: T201 - the figure of the campaign
