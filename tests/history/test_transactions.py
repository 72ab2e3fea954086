"""Transactions: several changes that are one step, and are taken back if the block raises."""

import contextlib
import shutil
import time

import pytest

from agentfs import AgentFSError, LineChange, Workspace
from agentfs.errors import ClosedError
from tests import kit
from tests.history.judges import snapshot
from tests.kit import in_threads, put, refused

LINES = "".join(f"line {number}\n" for number in range(9))


def fails_in_a_transaction(ws, act):
    with pytest.raises(RuntimeError) as caught, ws.transaction() as tx:  # noqa: PT012 - the block is tested
        act(tx)
        raise RuntimeError
    return caught.value


def test_its_changes_are_on_disk_at_once_and_one_step_afterwards(ws, tmp_path):
    (tmp_path / "a").write_text("one\n")
    (tmp_path / "link").symlink_to("a")
    before = snapshot(tmp_path)
    with ws.transaction() as tx:
        tx.edit("a", "one", "two")
        tx.edit("link", "two", "three")
        assert ws.read("a").content == (tmp_path / "a").read_text() == "three\n"
        tx.write("new/b", "x\n")
        tx.move("new/b", "c")
    after = snapshot(tmp_path)
    result = ws.undo()
    assert (result.steps, result.undoable, result.redoable) == (1, 0, 1), "all together is one step"
    assert snapshot(tmp_path) == before
    assert ws.redo().steps == 1
    assert snapshot(tmp_path) == after
    assert ws.undo().steps == 1
    assert snapshot(tmp_path) == before


def test_whoever_raises_changes_nothing(ws, tmp_path):
    (tmp_path / "a").write_text("one\n")
    (tmp_path / "gone").write_text("x\n")
    before = snapshot(tmp_path)

    def act(tx):
        tx.edit("a", "one", "two")
        tx.write("new/b", "1\n")
        tx.delete("gone")
        tx.move("a", "moved")
        tx.view().edit("moved", "two", "three")  # a view of it takes part
        tx.host.write("c", "new\n")

    fails_in_a_transaction(ws, act)
    assert snapshot(tmp_path) == before
    with pytest.raises(AgentFSError), ws.transaction() as tx:  # noqa: PT012 - a call in it fails
        act(tx)
        tx.edit("moved", "nowhere", "x")
    assert snapshot(tmp_path) == before
    assert not ws.changes().files
    with pytest.raises(AgentFSError, match="nothing to undo"):
        ws.undo()
    with pytest.raises(AgentFSError, match="nothing to redo"):
        ws.redo()


def test_what_others_changed_meanwhile_is_kept_and_named(ws, tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).write_text(LINES)

    def act(tx):
        for name in ("a", "b"):
            tx.edit(name, "line 1\n", "first\n")
        (tmp_path / "a").write_text(LINES.replace("line 1", "theirs"))
        (tmp_path / "b").write_text((tmp_path / "b").read_text().replace("line 7", "seventh"))

    error = fails_in_a_transaction(ws, act)
    assert (tmp_path / "a").read_text() == LINES.replace("line 1", "theirs")
    assert (tmp_path / "b").read_text() == LINES.replace("line 7", "seventh"), "merged by lines"
    assert error.__notes__ == ['Changed by others meanwhile, so not taken back: "a"']


@pytest.mark.parametrize(("act", "theirs", "left"), [
    # The moved file was deleted.
    (lambda tx: tx.move("d/b", "e"), "d/b", {"e": "x\n"}),
    (lambda tx: tx.move("d", "e"), "d/b", {"e/b": "x\n"}),
    (lambda tx: (tx.edit("d/b", "x", "y"), tx.move("d/b", "e")), "e", {}),
    # The other path was not taken back either.
    (lambda tx: tx.move("d/b", "e"), "d", {"e": "x\n"}),
    (lambda tx: tx.delete("d", recursive=True), "d", {}),
    (lambda tx: tx.delete("d/b"), "d", {}),
])  # fmt: skip
def test_regression_what_depends_on_what_others_changed_is_kept_too(ws, tmp_path, act, theirs, left):
    put(tmp_path, {"a": LINES, "d/b": "x\n"})

    def changed(tx):
        tx.edit("a", "line 1\n", "first\n")
        act(tx)
        shutil.rmtree(tmp_path / theirs, ignore_errors=True)
        put(tmp_path, {theirs: "theirs\n"})

    error = fails_in_a_transaction(ws, changed)
    found = {name: data.decode() for name, (_, _, data) in snapshot(tmp_path, directories=False).items()}
    assert found == {"a": LINES, theirs: "theirs\n", **left}
    assert "Changed by others meanwhile, so not taken back:" in error.__notes__[0]


def test_calls_on_the_workspace_take_no_part(ws, tmp_path):
    def act(tx):
        tx.write("mine", "x\n")
        ws.write("apart", "y\n")

    fails_in_a_transaction(ws, act)
    assert sorted(snapshot(tmp_path)) == ["apart"]
    with ws.transaction() as tx:
        act(tx)
    ws.undo()
    assert sorted(snapshot(tmp_path)) == ["apart"], "the last step is the transaction"


def test_undo_and_changes_are_those_of_the_transaction(ws, tmp_path):
    ws.write("before", "x\n")
    with ws.transaction() as tx:
        tx.write("a", "1\n")
        tx.write("b", "2\n")
        tx.undo()
        assert [f.path for f in tx.changes().files] == ["a"]
        with pytest.raises(AgentFSError, match="Only 1 step"):
            tx.undo(5)
        tx.redo()
        assert [f.path for f in tx.changes().files] == ["a", "b"]
    assert sorted(snapshot(tmp_path)) == ["a", "b", "before"]
    assert ws.undo().undoable == 1


def test_it_changes_nothing_after_its_end(ws):
    with ws.transaction() as tx:
        tx.write("a", "1\n")
        view = tx.view()
    for act in (lambda: tx.write("b", "2\n"), lambda: tx.delete("a"), lambda: view.write("c", "x\n")):
        with pytest.raises(ClosedError, match="has ended"):
            act()


def test_a_transaction_within_a_transaction_is_taken_back_alone(ws, tmp_path):
    (tmp_path / "a").write_text("one\n")
    (tmp_path / "gone").write_text("x\n")
    before = snapshot(tmp_path)
    with ws.transaction() as tx:
        tx.edit("a", "one", "two")
        tx.move("gone", "d/moved")
        with tx.view().transaction() as inner, inner.transaction() as innermost:
            innermost.write("d/new", innermost.read("a").content)
        within = snapshot(tmp_path)
        with contextlib.suppress(ZeroDivisionError), tx.transaction() as inner:
            inner.edit("a", "two", "four")
            tx.write("beside", "x\n")
            raise ZeroDivisionError
        tx.delete("beside")
        assert snapshot(tmp_path) == within
    assert ws.undo().undoable == 0
    assert snapshot(tmp_path) == before


def test_a_recording_within_a_transaction_is_a_part_of_it(ws, tmp_path):
    before = snapshot(tmp_path)

    def act(tx):
        tx.write("a", "1\n")
        with tx.recording("shell"):
            (tmp_path / "b").write_text("x\n")
            tx.write("c", "1\n")

    fails_in_a_transaction(ws, act)
    assert snapshot(tmp_path) == before


def test_what_was_read_before_and_in_a_failed_transaction_counts(ws, tmp_path):
    (tmp_path / "a").write_text("one\ntwo\n")
    found = []
    fails_in_a_transaction(ws, lambda tx: found.append(tx.read("a", line_ids=True).line_ids))
    ws.edit_lines("a", [LineChange(line_id=found[0][1], new_content="zwei")])
    fails_in_a_transaction(ws, lambda tx: tx.edit("a", "one", "eins"))
    ws.write("a", LINES)
    ws.forget()
    ws.read("a", 1, 3)
    fails_in_a_transaction(ws, lambda tx: tx.edit("a", "line 5", "five"))
    assert refused(lambda: ws.write("a", "x\n"), "unread").details["unread_lines"] == [[4, 9]]


def test_threads_lose_no_change_in_a_transaction(ws, tmp_path):
    (tmp_path / "a").write_text("\n")

    def at_the_start(_):
        time.sleep(0.001)
        return [(0, 0, "one more\n")], ()

    def add():
        for _ in range(5):
            kit.splice(tx, "a", at_the_start)

    with ws.transaction() as tx:
        with in_threads(*[add] * 4):
            pass
        assert tx.undo(20).undoable == 0
        tx.redo(20)
    assert len((tmp_path / "a").read_text().split()) == 2 * 20


@pytest.mark.parametrize("killed", [False, True])
def test_a_transaction_is_one_step_for_a_later_process(tmp_path, killed):
    top, state = tmp_path / "root", tmp_path / "state"
    top.mkdir()
    ws = Workspace(top, state=state)
    with contextlib.ExitStack() as stack:
        tx = stack.enter_context(ws.transaction())
        tx.write("a", "1\n")
        tx.write("b", "2\n")
        alive = stack.pop_all() if killed else None
        ws._journal.flush()
    ws.close()
    with Workspace(top, state=state) as again:
        assert again.undo().undoable == 0
    assert snapshot(top) == {}
    del alive


def test_regression_a_transaction_within_another_is_one_step_of_it(ws, tmp_path):
    """Undo in the outer one took back only the last change of the inner one, such as half a patch."""
    (tmp_path / "a").write_text("one\n")
    with ws.transaction() as outer:
        outer.write("b", "1\n")
        outer.checkpoint("here")
        with outer.transaction() as inner:
            inner.edit("a", "one", "two")
            inner.move("a", "c")
            inner.undo()
            inner.redo()
        outer.write("d", "1\n")
        assert outer.rollback("here").steps == 2
        assert sorted(snapshot(tmp_path)) == ["a", "b"]
        assert outer.redo(2).steps == 2
        outer.undo()
        result = outer.undo()
        assert (result.steps, result.undoable) == (1, 1)
        assert (tmp_path / "a").read_text() == "one\n"
        assert [file.path for file in outer.changes().files] == ["b"]
    assert (ws.undo().steps, snapshot(tmp_path).keys()) == (1, {"a"})


def test_regression_transactions_of_two_threads_are_two_steps(ws, tmp_path):
    """They were one, if both began at the same position."""
    with ws.transaction() as one, ws.transaction() as two:
        one.write("a", "1\n")
        two.write("b", "1\n")
        one.write("c", "1\n")
        with pytest.raises(AgentFSError, match="nothing to redo"):
            two.redo()
    assert ws.undo().undoable == 1
    assert snapshot(tmp_path).keys() == {"b"}
