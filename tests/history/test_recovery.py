"""A change that was begun and never settled: the tree tells what was made of it."""

import json
import shutil
import sqlite3
from contextlib import closing
from zlib import crc32

import pytest

from agentfs import Policy, Workspace
from tests.history.judges import snapshot


def unfinish(state, going_from=None):
    """Make the last step of a database one that was begun and not finished; or the last undo or redo."""
    with closing(sqlite3.connect(state / "history.db")) as database, database:
        (position,) = database.execute(
            "SELECT CAST(value AS TEXT) FROM meta WHERE key = 'position'"
        ).fetchone()
        position = int(position)
        if going_from is None:
            database.execute("UPDATE steps SET number = 0 WHERE number = ?", (position,))
            put(database, "position", position - 1)
        else:
            (first,) = database.execute("SELECT max(number) + 1 FROM steps").fetchone()
            changes = changes_between(database, going_from, position)
            put(database, "rewind", [changes, first, [], position, None])
            put(database, "position", going_from)


def changes_between(database, start, end):
    """The net changes that lead from one position to another."""
    low, high = sorted((start, end))
    query = "SELECT payload FROM steps WHERE number BETWEEN ? AND ? ORDER BY number"
    net = {}
    for (payload,) in database.execute(query, (low + 1, high)):
        for path, before, after in json.loads(payload)["changes"]:
            net[path] = (net[path][0] if path in net else before, after)
    return [[path, *(sides if end > start else sides[::-1])] for path, sides in net.items()]


def put(database, key, value):
    data = json.dumps(value).encode()
    check = crc32(data, crc32(f"{key}\0".encode()))
    database.execute("INSERT OR REPLACE INTO meta VALUES (?, ?, ?)", (key, data, check))


@pytest.fixture
def begun(tmp_path):
    """Returns what makes a change and drops the note that it was made; with a copy of the tree before."""
    root, state = tmp_path / "root", tmp_path / "state"
    root.mkdir()
    for name in ("a", "b"):
        (root / name).write_text(f"old {name}\n")

    def begin(act, going_from=None):
        old = tmp_path / "old"
        with Workspace(root, state=state) as ws:
            ws.edit("a", "old", "older")
            shutil.copytree(root, old, symlinks=True)
            act(ws)
        unfinish(state, going_from)
        return root, state, old

    return begin


def change_both(ws):
    with ws.transaction() as tx:
        tx.edit("a", "older", "new")
        tx.edit("b", "old", "new")
        tx.write("made/deep/c", "c\n")


def copy_back(old, root, name):
    shutil.copyfile(old / name, root / name)


def test_one_that_was_made_is_a_step(begun):
    root, state, old = begun(change_both)
    with Workspace(root, state=state) as ws:
        assert ws.recovery_notes == (
            'a change of "a", "b", "made/deep/c" was complete when a process died, and is now in the journal',
        )
        assert len(ws._journal.timeline.done_steps) == 2
        ws.undo()
        assert snapshot(root) == snapshot(old)
    with Workspace(root, state=state) as ws:
        assert ws.recovery_notes == (), "it is settled for good"
        assert ws.redo().steps == 1


def test_one_that_was_not_made_is_none_and_its_directories_go(begun):
    root, state, old = begun(change_both)
    copy_back(old, root, "a")
    copy_back(old, root, "b")
    (root / "made" / "deep" / "c").unlink()
    with Workspace(root, state=state) as ws:
        assert "was not made" in ws.recovery_notes[0]
        assert snapshot(root) == snapshot(old)
        assert len(ws._journal.timeline.done_steps) == 1
        ws.undo()
    assert Workspace(root, state=state).recovery_notes == ()


def test_a_directory_with_something_else_in_it_stays(begun):
    root, state, _ = begun(lambda ws: ws.write("made/deep/c", "c\n"))
    (root / "made" / "deep" / "c").unlink()
    (root / "made" / "theirs").write_text("theirs\n")
    with Workspace(root, state=state) as ws:
        assert len(ws._journal.timeline.done_steps) == 1
    assert sorted(snapshot(root)) == ["a", "b", "made", "made/theirs"]


def test_the_completed_part_of_a_change_is_a_step(begun):
    root, state, old = begun(change_both)
    copy_back(old, root, "b")
    (root / "made" / "deep" / "c").write_text("c, and theirs\n")
    with Workspace(root, state=state) as ws:
        assert ws.recovery_notes == (
            'a change of "a", "b", "made/deep/c" was under way when a process died',
            'the change of "a", "made", "made/deep" was made, and is in the journal',
            'the change of "b" was not made',
            '"made/deep/c" has neither its old content nor the new one: look at it',
        )
    with Workspace(root, state=state) as ws:
        assert ws.recovery_notes == ()
        before = snapshot(root)
        ws.undo()
        assert (root / "a").read_text() == "older a\n"
        assert (root / "made" / "deep" / "c").read_text() == "c, and theirs\n"
        ws.redo()
        assert snapshot(root) == before


@pytest.mark.parametrize("going", ["undo", "rollback"])
def test_a_way_back_that_was_gone_or_not(begun, going):
    def act(ws):
        change_both(ws)
        ws.checkpoint("here")
        ws.undo() if going == "undo" else ws.undo(2)
        if going == "rollback":
            ws.rollback("here")

    root, state, _ = begun(act, 2 if going == "undo" else 0)
    at = 1 if going == "undo" else 2
    with Workspace(root, state=state) as ws:
        assert ws.recovery_notes[0].startswith("undoing or redoing ")
        assert "is now in the journal" in ws.recovery_notes[0]
        assert len(ws._journal.timeline.done_steps) == at
    shutil.copytree(root, root.with_name("gone"))
    with Workspace(root, state=state) as ws:
        ws.redo() if going == "undo" else ws.undo(2)
    unfinish(state, at)
    shutil.rmtree(root)
    shutil.move(root.with_name("gone"), root)
    with Workspace(root, state=state) as ws:
        assert "was not made" in ws.recovery_notes[0]
        assert len(ws._journal.timeline.done_steps) == at


def test_a_way_back_that_was_gone_in_part_is_told_and_can_be_gone_to_its_end(begun):
    def act(ws):
        change_both(ws)
        ws.undo()

    root, state, old = begun(act, 2)
    (root / "b").write_text("new b\n")
    with Workspace(root, state=state) as ws:
        assert (
            'the change of "a", "made", "made/deep", "made/deep/c" was made, and is not in the journal'
            in ws.recovery_notes
        )
        ws.undo()
        assert snapshot(root) == snapshot(old)
        ws.redo()
        assert (root / "a").read_text() == "new a\n"


def test_a_workspace_that_may_only_read_settles_it_too_and_touches_nothing(begun):
    root, state, _ = begun(lambda ws: ws.write("made/deep/c", "c\n"))
    (root / "made" / "deep" / "c").unlink()
    before = snapshot(root)
    with Workspace(root, state=state, policy=Policy(read_only=True)) as ws:
        assert "was not made" in ws.recovery_notes[0]
    assert snapshot(root) == before


def test_it_is_recovered_even_where_the_database_shrinks(begun):
    def act(ws):
        ws.write("large", "x\n" * 500_000)
        ws.undo()
        change_both(ws)

    root, state, old = begun(act)
    size = (state / "history.db").stat().st_size
    with Workspace(root, state=state) as ws:
        assert "is now in the journal" in ws.recovery_notes[0]
        ws.undo()
        assert snapshot(root) == snapshot(old)
    assert (state / "history.db").stat().st_size <= size
    with Workspace(root, state=state) as ws:
        assert (len(ws._journal.timeline.done_steps), len(ws._journal.timeline.undone_steps)) == (1, 1)
        ws.redo()
        ws.undo(2)
