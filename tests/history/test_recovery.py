"""A process that dies during a change: the next opening names its step, and undo takes it back."""

import shutil
import time

import pytest

from agentfs import Policy, Workspace
from agentfs.history.journal import Journal
from tests.history.judges import snapshot, standing
from tests.kit import put


class Killed(BaseException):
    """Stands for the death of the process."""


@pytest.fixture
def dies(tmp_path, monkeypatch):
    """Returns what makes a change whose process dies just after its step was begun; and the state then."""
    top, state = tmp_path / "root", tmp_path / "state"
    top.mkdir()
    for name in ("a", "b"):
        (top / name).write_text("one\n")

    def change(act):
        with Workspace(top, state=state) as ws:
            ws.write("earlier", "x\n")
            store = Journal._write

            def stored(journal, statements):
                store(journal, statements)
                if not any("INTO steps" in text for text, _ in statements):
                    return  # a recording begins
                shutil.copytree(state, tmp_path / "copy")
                raise Killed

            monkeypatch.setattr(Journal, "_write", stored)
            with pytest.raises(Killed):
                act(ws)
            monkeypatch.undo()
        shutil.rmtree(state)
        (tmp_path / "copy").rename(state)
        return top, state

    return change


def change_both(ws):
    ws.replace("one", "two", ".", glob="[ab]")


def test_a_step_that_was_not_made_is_none(dies):
    top, state = dies(change_both)
    before = snapshot(top)
    with Workspace(top, state=state) as ws:
        (note,) = ws.recovery_notes
        assert note == 'a change of "a", "b" was under way when a process died; it was not made'
        assert len(standing(ws)) == 1
    assert snapshot(top) == before
    with Workspace(top, state=state) as ws:
        assert ws.recovery_notes == ()


def test_a_step_that_was_made_stands(dies):
    top, state = dies(change_both)
    for name in ("a", "b"):
        (top / name).write_text("two\n")
    with Workspace(top, state=state) as ws:
        (note,) = ws.recovery_notes
        assert note.endswith('died; the change of "a", "b" was made, and undo takes it back')
        ws.undo()
    assert (top / "a").read_text() == (top / "b").read_text() == "one\n"


@pytest.mark.parametrize("name", ["a", "b"])
def test_a_step_that_was_made_in_part_is_named_and_undo_takes_it_back(dies, name):
    top, state = dies(change_both)
    before = snapshot(top)
    (top / name).write_text("two\n")
    with Workspace(top, state=state) as ws:
        (note,) = ws.recovery_notes
        assert note.endswith(f'; the change of "{name}" was made, and undo takes it back')
        ws.undo()
    assert snapshot(top) == before
    with Workspace(top, state=state) as ws:
        assert ws.recovery_notes == ()
        ws.redo()
    assert {each: (top / each).read_text() == "two\n" for each in "ab"} == {
        each: each == name for each in "ab"
    }


@pytest.mark.parametrize("made", [[], ["a"], ["b"], ["a", "b"]], ids=str)
def test_an_undo_that_was_under_way_can_be_made_to_its_end_or_taken_back(tmp_path, dies, made):
    top, state = tmp_path / "root", tmp_path / "state"
    with Workspace(top, state=state) as ws:
        change_both(ws)
        ws.checkpoint("changed")
    dies(lambda ws: ws.undo(2))
    after = snapshot(top)
    for name in made:
        (top / name).write_text("one\n")
    with Workspace(top, state=state) as ws:
        assert len(ws.recovery_notes) == 1
        if made:
            assert ws.recovery_notes[0].endswith("was made, and undo takes it back")
            ws.undo()
            assert snapshot(top) == after
            ws.redo()
        ws.undo(len(standing(ws)))
        assert sorted(snapshot(top)) == ["a", "b"]
        assert (top / "a").read_text() == (top / "b").read_text() == "one\n"


def make_new(top):
    put(top, {"new/file": "x\n"})


@pytest.mark.parametrize(
    ("act", "make"),
    [
        (lambda ws: ws.write("new/file", "x\n"), make_new),
        (lambda ws: ws.write("new/file", "x\n"), lambda top: (top / "new").mkdir()),
        (change_both, lambda top: (top / "b").write_text("two\n")),
        (lambda ws: ws.delete("a"), lambda top: (top / "a").unlink()),
        (lambda ws: ws.move("d", "e"), lambda top: (top / "d").rename(top / "e")),
        (lambda ws: ws.move("d", "e"), lambda _: None),
    ],
    ids=["new", "new in part", "in part", "deleted", "moved", "not made"],
)
def test_regression_a_step_under_way_in_a_recording_is_not_recorded_again(tmp_path, dies, act, make):
    put(tmp_path, {"root/d/inner": "in\n"})

    def record(ws):
        with ws.recording("others"):
            act(ws)

    top, state = dies(record)
    before = snapshot(top)
    make(top)
    after = snapshot(top)
    with Workspace(top, state=state) as ws:
        assert ws.recovery_notes[1].endswith("recorded until now: 0 paths")
        steps = len(standing(ws)) - 1
        assert steps == (before != after)
        for _ in range(2 * steps):
            ws.undo()
            assert snapshot(top) == before
            ws.redo()
            assert snapshot(top) == after


def test_a_workspace_that_may_only_read_settles_it_too_and_touches_nothing(dies):
    top, state = dies(change_both)
    (top / "a").write_text("two\n")
    before = snapshot(top)
    with Workspace(top, state=state, policy=Policy(read_only=True)) as ws:
        assert 'the change of "a" was made' in ws.recovery_notes[0]
    assert snapshot(top) == before
    with Workspace(top, state=state) as ws:
        assert ws.recovery_notes == ()
        ws.undo()
    assert (top / "a").read_text() == "one\n"


@pytest.mark.parametrize(
    "before",
    [
        lambda ws, _: None,
        lambda ws, _: ws.edit("a", "one", "own"),
        lambda ws, top: (top / "a").write_text("other\n"),
        lambda ws, top: (top / "new").write_text("other\n"),
        lambda ws, _: ws.delete("a"),
    ],
    ids=["nothing", "own", "other", "new", "deleted"],
)
@pytest.mark.parametrize("inside", [False, True])
def test_a_recording_that_was_open_begins_with_the_tree_after_earlier_recordings(tmp_path, before, inside):
    top, state = tmp_path / "root", tmp_path / "state"
    put(top, {"a": "one\n", "b": "one\n"})
    with Workspace(top, state=state) as ws:
        for _ in range(2):
            with ws.recording("without a change"):
                pass
        if inside:
            with ws.recording("earlier"):
                before(ws, top)
        else:
            before(ws, top)
        with ws.recording("open"):
            begun = snapshot(top)
            shutil.copytree(state, tmp_path / "copy")
        (top / "b").write_text("two\n")
    shutil.rmtree(state)
    (tmp_path / "copy").rename(state)
    with Workspace(top, state=state) as ws:
        assert ws.recovery_notes[0].endswith("recorded until now: 1 path")
        ws.undo()
    assert snapshot(top) == begun


def test_regression_a_recording_of_an_unchanged_tree_is_stored_by_its_name_only(tmp_path):
    """Each recorded command wrote the whole tree into the database."""
    put(tmp_path, {f"root/{number:03}": "x\n" for number in range(500)})
    with Workspace(tmp_path / "root", state=tmp_path / "state") as ws:
        with ws.recording("first"):
            pass
        time.sleep(0.1)  # a file that has just been written could change again without another time
        with ws.recording("second"):
            pass
        log = tmp_path / "state" / "history.db-wal"
        sizes = [log.stat().st_size]
        for _ in range(3):
            with ws.recording("later"):
                pass
            sizes.append(log.stat().st_size)
    assert sizes[-1] - sizes[0] < 50_000
