"""Transactions: several changes as one, that see one another and nobody else sees."""

import os

import pytest

from agentfs import AgentFSError, Policy, ReadOnlyError, StaleError, Workspace
from tests.journal.judges import snapshot


def test_calls_see_one_another_and_the_disk_sees_them_at_the_end(ws, tmp_path):
    (tmp_path / "a").write_text("one\n")
    (tmp_path / "link").symlink_to("a")
    before = snapshot(tmp_path)
    with ws.transaction() as tx:
        tx.edit("a", "one", "two")
        tx.edit("link", "two", "three")
        assert tx.read("a").content == "three\n"
        assert ws.read("a").content == "one\n"
        tx.write("new/b", "x\n")
        tx.move("new/b", "c")
        with pytest.raises(AgentFSError):
            tx.read("new/b")
        assert snapshot(tmp_path) == before
    assert (tmp_path / "a").read_text() == "three\n"
    assert (tmp_path / "c").read_text() == "x\n"
    assert not (tmp_path / "new").exists()
    assert ws.undo().steps == 1, "all together is one step"
    assert snapshot(tmp_path) == before


def test_whoever_raises_changes_nothing(ws, tmp_path):
    def fail():
        with ws.transaction() as tx:
            tx.write("a", "1\n")
            tx.edit("a", "nowhere", "x")

    with pytest.raises(AgentFSError):
        fail()
    assert snapshot(tmp_path) == {}
    assert not ws.changes().files


def test_a_file_that_somebody_else_changes_meanwhile_stops_all_of_it(ws, tmp_path):
    (tmp_path / "a").write_text("one\n")
    (tmp_path / "b").write_text("one\n")

    def change():
        with ws.transaction() as tx:
            tx.edit("a", "one", "two")
            tx.edit("b", "one", "two")
            (tmp_path / "b").write_text("theirs\n")

    with pytest.raises(StaleError) as caught:
        change()
    assert "+theirs" in str(caught.value)
    assert (tmp_path / "a").read_text() == "one\n"


def test_calls_on_the_workspace_take_no_part(ws, tmp_path):
    with pytest.raises(RuntimeError), ws.transaction() as tx:  # noqa: PT012 - the block is what is tested
        tx.write("mine", "x\n")
        ws.write("apart", "y\n")
        raise RuntimeError
    assert sorted(snapshot(tmp_path)) == ["apart"]


def test_undo_and_changes_are_those_of_the_transaction(ws, tmp_path):
    ws.write("before", "x\n")
    with ws.transaction() as tx:
        tx.write("a", "1\n")
        tx.write("b", "2\n")
        tx.undo()
        assert [f.path for f in tx.changes().files] == ["a"]
        with pytest.raises(AgentFSError, match="Only 1 step"):
            tx.undo(5)
    assert sorted(snapshot(tmp_path)) == ["a", "before"]


def test_a_transaction_that_comes_to_nothing_is_no_step(ws):
    with ws.transaction() as tx:
        tx.write("a", "1\n")
        tx.read("a")
        tx.delete("a")
    with pytest.raises(AgentFSError, match="nothing to undo"):
        ws.undo()


@pytest.mark.parametrize(
    ("act", "code"),
    [
        (lambda tx: tx.ls(), "refused"),
        (lambda tx: tx.glob("*"), "refused"),
        (lambda tx: tx.grep("x"), "refused"),
        (lambda tx: tx.write("../out", "x"), "outside_workspace"),
        (lambda tx: tx.write("d", "x"), "not_a_file"),
        (lambda tx: tx.write(".", "x"), "not_a_file"),
        (lambda tx: tx.write("f/below", "x"), "not_a_directory"),
        (lambda tx: tx.write("away/x", "x"), "outside_workspace"),
        (lambda tx: tx.write(".git/hooks/x", "x"), "protected"),
        (lambda tx: tx.move("f", ".env"), "protected"),
        (lambda tx: tx.write("f", "x"), "unread"),
        (lambda tx: tx.delete("f"), "unread"),
        (lambda tx: tx.delete("d"), "refused"),
        (lambda tx: tx.edit("shut", "x", "y"), "refused"),
        (lambda tx: tx.write("loop", "x"), "link_loop"),
    ],
)
def test_what_is_refused_on_disk_is_refused_in_a_transaction(tmp_path, act, code):
    top = tmp_path / "root"
    (top / "d").mkdir(parents=True)
    (top / "f").write_text("x\n")
    (top / "shut").write_text("x\n")
    (top / "shut").chmod(0o444)
    (top / "away").symlink_to(tmp_path)
    (top / "loop").symlink_to("loop")
    before = snapshot(tmp_path)
    with Workspace(top) as ws:
        with ws.transaction() as tx, pytest.raises(AgentFSError) as caught:
            act(tx)
        assert caught.value.code == code
        assert snapshot(tmp_path) == before


def test_it_cannot_be_used_after_its_end(ws):
    with ws.transaction() as tx:
        tx.write("a", "1\n")
    for act in (lambda: tx.write("b", "2\n"), lambda: tx.read("a"), lambda: tx.delete("a")):
        with pytest.raises(AgentFSError, match="has ended"):
            act()


def test_a_root_that_is_only_read_has_none(tmp_path):
    only_read = Workspace(tmp_path, policy=Policy(read_only=True))
    with only_read as ws, ws.transaction() as tx, pytest.raises(ReadOnlyError):
        tx.write("a", "1\n")


def test_a_link_swapped_in_before_the_end_leads_nowhere(tmp_path):
    top, out = tmp_path / "root", tmp_path / "out"
    (top / "d").mkdir(parents=True)
    out.mkdir()

    def change(ws):
        with ws.transaction() as tx:
            tx.write("d/a", "x\n")
            tx.write("b", "x\n")
            os.rename(top / "d", top / "e")
            (top / "d").symlink_to(out)

    with Workspace(top) as ws, pytest.raises(AgentFSError):
        change(ws)
    assert snapshot(out) == {}
    assert not (top / "b").exists()
