"""A change of many files is killed, or fails, at each of its calls: all is old or all is new."""

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from agentfs import Workspace
from tests.conftest import part_or_all
from tests.editing import test_move_directory
from tests.faults.calls import RepeatedChange, check_kills, count_failures
from tests.history.judges import snapshot


def files_to_replace(top: Path) -> None:
    for name, text in {"a": "old a\n", "d/b": "old\nold\n", "d/e/c": "x\nold\n", "f": "nothing\n"}.items():
        path = top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        os.utime(path, (1, 1))  # long ago, so that a second name looks stale


class Case(NamedTuple):
    """A change, and the errors with which its calls fail."""

    fresh: Callable[[Path], object]  # creates the tree before the change
    change: Callable[[Workspace], object]
    failures: tuple[int, ...]
    share: float = 1 / 3  # more of these calls make the change fail
    before: Callable[[Workspace], object] = lambda ws: None
    left_out: Callable[[Any], object] = lambda done: False

    def at(self, top: Path) -> RepeatedChange:
        return RepeatedChange(top, self.fresh, self.change, self.before, self.left_out)


CASES = {
    "delete": Case(test_move_directory.fresh, lambda ws: ws.delete("d", recursive=True), (errno.EIO,)),
    "move": Case(test_move_directory.fresh, lambda ws: ws.move("d", "x/new"), (errno.EIO,)),
    "replace": Case(
        files_to_replace,
        lambda ws: ws.replace("old", "new"),
        (errno.ENOSPC,),
        left_out=lambda done: done.skipped.unreadable,
    ),
}


@pytest.fixture(params=CASES)
def case(request):
    return CASES[request.param]


@pytest.fixture
def change(case, tmp_path):
    return case.at(tmp_path / "root")


@pytest.fixture
def both(case, tmp_path):
    """Snapshots of the tree before the change and after it."""
    change = case.at(tmp_path / "model")
    change.fresh(change.top)
    old = snapshot(change.top)
    with Workspace(change.top) as ws:
        change.before(ws)
        change.change(ws)
        new = snapshot(change.top)
        ws.undo()
        assert snapshot(change.top) == old
    assert new != old
    return old, new


@part_or_all(1500, full=200)
def test_a_kill_before_a_call_leaves_all_old_or_all_new(change, both, monkeypatch, every):
    check_kills(change, both, monkeypatch, every)


@part_or_all(25, full=9)
def test_a_failure_of_a_call_leaves_all_old_or_all_new(case, change, both, monkeypatch, every):
    for number in case.failures:
        with monkeypatch.context() as patch:
            assert count_failures(change, both, patch, number, every) > case.share
