"""A change says where its file was moved from: a move is what a call did, not what equal contents suggest."""

import os
import shutil
import time
from pathlib import Path

import pytest

from agentfs import Workspace
from agentfs.errors import ConflictError
from agentfs.fs import Change, DirectoryNode, LinkNode
from agentfs.history.log import Log, Step
from tests.faults.calls import CHANGING, CountedCalls, kill_itself, kills, without_temporaries
from tests.history.judges import snapshot
from tests.kit import put, refused

TEXT = "one\ntwo\nthree\n"


def actions(ws: Workspace) -> set[tuple[str, str, str | None]]:
    return {(file.path, file.action, file.moved_from) for file in ws.changes().files}


@pytest.fixture
def top(tmp_path: Path) -> Path:
    return put(tmp_path / "tree", {"a": TEXT})


def in_a_transaction(ws: Workspace) -> None:
    with ws.transaction() as inner:
        inner.move("c", "e")
        inner.move("d", "f")


def recorded(ws: Workspace) -> None:
    with ws.recording("make"):
        os.rename(f"{ws.root}/a", f"{ws.root}/d")


# Calls on the files `a` and `b`, which are equal, and what `changes` says after each line.
SAID = {
    "a new file like a deleted one": [
        (lambda ws: (ws.delete("a"), ws.write("x", TEXT)), {("a", "deleted", None), ("x", "created", None)})
    ],
    "two equal files": [
        (lambda ws: (ws.move("b", "c"), ws.move("a", "d")), {("c", "moved", "b"), ("d", "moved", "a")}),
        (in_a_transaction, {("e", "moved", "b"), ("f", "moved", "a")}),
    ],
    "a file that comes back": [
        (lambda ws: (ws.move("a", "x"), ws.move("x", "a")), set()),
        (
            lambda ws: (ws.move("a", "x"), ws.write("a", "new\n")),
            {("a", "changed", None), ("x", "created", None)},
        ),
        (lambda ws: (ws.move("x", "c"), ws.delete("a")), {("c", "moved", "a")}),
    ],
    "a file that was created": [
        (lambda ws: (ws.write("x", "new\n"), ws.move("x", "c")), {("c", "created", None)}),
        (recorded, {("c", "created", None), ("d", "moved", "a")}),
    ],
}


@pytest.mark.parametrize("case", SAID)
def test_a_change_says_where_its_file_was_moved_from(top: Path, case: str):
    (top / "b").write_text(TEXT)
    with Workspace(top) as ws:
        for act, expected in SAID[case]:
            act(ws)
            assert actions(ws) == expected


def test_a_moved_file_without_a_common_line_is_still_moved(top: Path, tmp_path: Path):
    with Workspace(top, state=tmp_path / "state") as ws:
        ws.move("a", "b")
        ws.write("b", "other\n", overwrite=True)
        ws.move("b", "c")
        assert actions(ws) == {("c", "moved", "a")}
    with Workspace(top, state=tmp_path / "state") as ws:
        assert actions(ws) == {("c", "moved", "a")}
        ws.undo()
        assert actions(ws) == {("b", "moved", "a")}
        ws.redo()
        assert actions(ws) == {("c", "moved", "a")}
        ws.undo(3)
        assert actions(ws) == set()
        assert [path.name for path in top.iterdir()] == ["a"]


def test_regression_undo_of_a_moved_directory_sees_what_others_have_put_in_its_place(top: Path):
    """The undo was recorded, but it changed nothing: the entries of the directory counted as moved."""
    put(top, {"d/a": "first\n"})
    with Workspace(top) as ws:
        ws.move("d", "e")
        put(top, {"d/a": "second\n"})
        with pytest.raises(ConflictError, match="nothing was undone"):
            ws.undo()
        assert (top / "e" / "a").read_text() == "first\n"
        (top / "d" / "a").rename(top / "d" / "b")
        ws.undo()
    assert ((top / "d/a").read_text(), (top / "d/b").read_text()) == ("first\n", "second\n")


def test_regression_a_file_of_another_step_does_not_pass_for_the_moved_one(tmp_path):
    """A redo of the move then changed nothing, and its undo moved the other file."""
    (tmp_path / "a").write_text("moved\n")
    with Workspace(tmp_path) as ws:
        ws.move("a", "b")
        ws.undo()
        ws.delete("a")
        ws.write("b", "another\n")
        refused(ws.redo, "conflict")
        assert (tmp_path / "b").read_text() == "another\n"


def test_regression_what_a_later_step_did_does_not_pass_for_the_redo_of_an_earlier_one(tmp_path):
    """A redo of a deletion found that a move had taken the file away; then nothing could be undone."""
    (tmp_path / "a").write_text("text\n")
    with Workspace(tmp_path) as ws:
        ws.delete("a")
        ws.undo()
        ws.move("a", "b")
        with pytest.raises(ConflictError, match="another call of this workspace"):
            ws.redo()
        ws.undo()
        assert (tmp_path / "a").read_text() == "text\n"


def test_regression_an_undo_past_a_move_keeps_what_was_written_at_the_old_path(tmp_path):
    """A rollback to before the undo ended in a conflict, or kept the wrong content."""
    (tmp_path / "a").write_text("moved\n")
    with Workspace(tmp_path) as ws:
        ws.move("a", "b")
        ws.write("a", "new\n")
        ws.checkpoint("here")
        before = snapshot(tmp_path)
        ws.undo(2)
        assert (tmp_path / "a").read_text() == "moved\n"
        ws.rollback("here")
        assert snapshot(tmp_path) == before


@pytest.mark.full
def test_regression_an_undo_of_a_move_over_a_deleted_file_is_taken_back_after_a_kill(tmp_path, monkeypatch):
    """Half of the undo was a step that named a move without its source."""

    top, state, seen = tmp_path / "top", tmp_path / "state", set()

    def prepared():
        for each in (top, state):
            shutil.rmtree(each, ignore_errors=True)
        top.mkdir()
        for name in ("a", "c"):
            (top / name).write_text(f"{name}\n")
        with Workspace(top, state=state) as ws:
            ws.delete("c")
            ws.move("a", "c")
        return top, state

    prepared()
    old = snapshot(top)
    for _ in kills(CountedCalls(monkeypatch, kill_itself, CHANGING), 1, prepared, lambda ws: ws.undo(2)):
        with Workspace(top, state=state) as ws:
            found = without_temporaries(snapshot(top))
            if ws.recovery_notes and found != old:
                ws.undo()
                assert without_temporaries(snapshot(top)) == old
            seen.add("old" if found == old else "begun" if ws.recovery_notes else "new")
    assert {"old", "begun"} <= seen


def test_regression_a_directory_that_an_undo_leaves_is_not_recorded_as_removed(tmp_path):
    """The rollback to a time before the directory left it."""
    with Workspace(tmp_path) as ws:
        ws.checkpoint("empty")
        ws.write("d/a", "a\n")
        ws.write("d/b", "b\n")
        assert any("not empty" in note for note in ws.undo(paths="d/a").notes)
        ws.rollback("empty")
        assert snapshot(tmp_path) == {}


def test_regression_a_file_of_others_in_a_new_directory_does_not_pass_for_a_moved_one(top: Path):
    """The undo recorded a move that it had not made."""
    (top / "d").mkdir()
    (top / "a").rename(top / "d" / "a")
    with Workspace(top) as ws:
        ws.move("d", "f")
        ws.write("d/b", "new\n")
        (top / "d" / "a").write_text("of another program\n")
        before = snapshot(top)
        with pytest.raises(ConflictError, match='"d/a" was created by another program'):
            ws.undo(2)
        assert snapshot(top) == before


def test_regression_the_redo_of_a_new_directory_has_the_mode_of_its_own_step(tmp_path):
    """It had the mode that a later step gave it, because both were undone at once."""
    with Workspace(tmp_path) as ws:
        with ws.recording("make"):
            (tmp_path / "d").mkdir(mode=0o755)
        with ws.recording("close"):
            (tmp_path / "d").chmod(0o700)
        ws.undo(2)
        ws.redo()
        assert (tmp_path / "d").stat().st_mode & 0o777 == 0o755


def test_regression_a_large_step_is_divided_by_paths_in_linear_time():
    """The undo of a moved directory by its path did not end within a call's time."""
    nodes = {f"d/{number}": DirectoryNode() for number in range(1000)}
    nodes |= {f"d/{number}/{name}": LinkNode("x") for number in range(1000) for name in "abcdef"}
    log = Log()
    log.add(Step(tuple([Change(path, node, None) for path, node in nodes.items()])))
    before = time.process_time()
    plan = log.plan(log.standing.parts, ["d"])
    assert time.process_time() - before < 1
    assert [len(step) for step in plan.changes] == [len(nodes)]
    (part,) = log.plan(log.standing.parts, ["d/1/a"]).parts
    assert part.paths == ["d/1/a"]
    (part,) = log.plan(log.standing.parts, ["d/1"]).parts
    assert part.paths == ["d/1", *[f"d/1/{name}" for name in "abcdef"]]
