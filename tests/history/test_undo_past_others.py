"""Undo, redo, rollback and changes when other programs, or other calls, have changed the files since."""

import pytest

from agentfs.errors import AlreadyExistsError, InvalidArgumentError, StaleError
from tests.history.judges import reopening, snapshot
from tests.kit import in_threads, put, refused

TEN = "".join(f"{number}\n" for number in range(1, 11))


@pytest.fixture(params=["memory", "state"])
def reopened(request, tmp_path):
    put(tmp_path, {"root/a": TEN})
    yield from reopening(request.param, tmp_path)


def replace(path, old, new):
    path.write_text(path.read_text().replace(old, new))


def test_our_change_is_taken_out_and_theirs_stays(reopened, tmp_path):
    file = tmp_path / "root" / "a"
    reopened().edit("a", "2\n", "two\n")
    replace(file, "9\n", "nine, theirs\n")
    both = file.read_text()
    result = reopened().undo()
    assert file.read_text() == TEN.replace("9\n", "nine, theirs\n")
    assert result.notes == ('merged with changes by another program: "a"',)
    reopened().redo()
    assert file.read_text() == both
    file.chmod(0o600)  # the mode stays
    reopened().undo()
    assert (file.read_text(), file.stat().st_mode & 0o777) == (TEN.replace("9\n", "nine, theirs\n"), 0o600)
    reopened().edit("a", "2\n", "two\n")
    file.write_bytes(file.read_bytes() + b"\0")  # binary files are not merged
    refused(lambda: reopened().undo(), "conflict")


def test_several_steps_with_changes_of_others_between_them_are_undone_at_once(reopened, tmp_path):
    file = tmp_path / "root" / "a"
    reopened().edit("a", "1\n", "one\n")
    replace(file, "5\n", "five, theirs\n")
    reopened().edit("a", "9\n", "nine\n")
    replace(file, "7\n", "seven, theirs\n")
    assert reopened().undo(2).steps == 2
    theirs = TEN.replace("5\n", "five, theirs\n").replace("7\n", "seven, theirs\n")
    assert file.read_text() == theirs
    reopened().redo(2)
    assert file.read_text() == theirs.replace("1\n", "one\n", 1).replace("9\n", "nine\n")


def test_rollback_merges_in_both_directions(reopened, tmp_path):
    file = tmp_path / "root" / "a"
    reopened().checkpoint("start")
    reopened().edit("a", "1\n2", "one\n2")
    reopened().edit("a", "3\n", "three\n")
    reopened().checkpoint("end")
    replace(file, "8\n", "eight\n")
    reopened().rollback("start")
    assert file.read_text() == TEN.replace("8\n", "eight\n")
    replace(file, "6\n", "six\n")
    reopened().rollback("end")
    theirs = TEN.replace("8\n", "eight\n").replace("6\n", "six\n")
    assert file.read_text() == theirs.replace("1\n2", "one\n2").replace("3\n", "three\n")


def test_a_conflict_names_path_and_lines_and_offers_the_rest(reopened, tmp_path):
    top = tmp_path / "root"
    put(top, {"b": TEN, "c": TEN})
    with reopened().transaction() as tx:
        for name in "abc":
            tx.edit(name, "4\n5\n", "x\ny\n")
    replace(top / "a", "x\n", "theirs\n")
    (top / "b").unlink()
    before = snapshot(top)
    caught = refused(lambda: reopened().undo(), "conflict")
    error = caught
    assert error.code == "conflict"
    assert '"a" was changed (lines 4-5) by another program' in str(error)
    assert '"b" was deleted by another program' in str(error)
    assert error.details["conflicts"] == [{"path": "a", "lines": [[4, 5]]}, {"path": "b", "lines": []}]
    assert error.details["suggested_calls"][0] == {"name": "undo", "arguments": {"paths": ["c"]}}
    assert snapshot(top) == before
    assert reopened().undo(paths=["c"]).undoable == 1
    assert (top / "c").read_text() == TEN
    replace(top / "a", "theirs\n", "x\n")
    (top / "b").write_text(TEN)
    assert reopened().undo().undoable == 0
    assert {(top / name).read_text() for name in "abc"} == {TEN}
    assert reopened().redo(2).redoable == 0
    assert (top / "c").read_text() == TEN.replace("4\n5\n", "x\ny\n")


def test_regression_a_conflict_offers_only_paths_that_can_be_undone(reopened, tmp_path):
    """It offered entries of a directory that is a file now, and the other path of a moved file."""
    top = tmp_path / "root"
    put(top, {"b": TEN, "d/c": TEN})
    with reopened().transaction() as tx:
        tx.edit("a", "4\n", "x\n")
        tx.move("b", "e")
        tx.delete("d", recursive=True)
    put(top, {"b": "theirs\n", "d": "theirs\n"})
    (rest, *_) = refused(lambda: reopened().undo(), "conflict").details["suggested_calls"]
    assert rest == {"name": "undo", "arguments": {"paths": ["a"]}}
    reopened().undo(**rest["arguments"])
    assert ((top / "a").read_text(), (top / "e").read_text()) == (TEN, TEN)


def test_paths_take_back_their_own_last_steps(reopened, tmp_path):
    top = tmp_path / "root"
    ws = reopened()
    ws.edit("a", "1\n2\n", "one\n2\n")
    ws.write("d/b", "b\n")
    ws.write("d/c", "c\n")
    ws.edit("a", "3\n", "three\n")
    for paths, code in (("../x", "outside_workspace"), ([], "invalid_argument"), ("b", "invalid_argument")):
        refused(lambda: ws.undo(paths=paths), code)  # noqa: B023 - called at once
    assert [file.path for file in ws.changes(paths=["d"]).files] == ["d", "d/b", "d/c"]
    assert [file.path for file in ws.changes(paths="a").files] == ["a"]
    assert reopened().undo(paths="d").steps == 1
    assert sorted(snapshot(top)) == ["a", "d", "d/b"]
    assert reopened().undo(2, paths=["a"]).steps == 2
    assert (top / "a").read_text() == TEN
    assert reopened().undo().files[-1].path == "d/b"
    assert sorted(snapshot(top)) == ["a"]
    with pytest.raises(InvalidArgumentError, match="nothing to undo"):
        reopened().undo()
    assert reopened().redo(4).redoable == 0
    assert (top / "a").read_text() == TEN.replace("1\n2", "one\n2").replace("3\n", "three\n")
    assert sorted(snapshot(top)) == ["a", "d", "d/b", "d/c"]


def test_checkpoints_keep_their_place_when_steps_are_divided(reopened, tmp_path):
    top = tmp_path / "root"
    ws = reopened()
    ws.checkpoint("start")
    ws.write("b", "1\n")
    ws.checkpoint("one")
    ws.edit("a", "1\n2", "one\n2")
    ws.checkpoint("two")
    ws.edit("b", "1", "2")
    ws.checkpoint("three")
    after = snapshot(top)
    reopened().undo(paths=["a"])
    assert reopened().rollback("one").steps == 1
    assert ((top / "a").read_text(), (top / "b").read_text()) == (TEN, "1\n")
    reopened().rollback("three")
    assert snapshot(top) == after
    reopened().rollback("start", paths=["b"])
    assert not (top / "b").exists()
    assert (top / "a").read_text().startswith("one\n")
    reopened().rollback("start")
    assert sorted(snapshot(top)) == ["a"]
    assert (top / "a").read_text() == TEN


def test_a_moved_file_is_moved_back_with_the_changes_of_another_program(reopened, tmp_path):
    top = tmp_path / "root"
    reopened().move("a", "d/b")
    replace(top / "d" / "b", "7\n", "seven\n")
    reopened().undo()
    assert sorted(snapshot(top)) == ["a"]
    assert (top / "a").read_text() == TEN.replace("7\n", "seven\n")
    reopened().redo()
    assert sorted(snapshot(top)) == ["d", "d/b"]
    assert reopened().undo(paths=["a"]).files[0].moved_from == "d/b"


# What `changes` tells of now


def test_changes_compares_with_the_disk_of_now(reopened, tmp_path):
    top = tmp_path / "root"
    ws = reopened()
    for name in ("back", "gone", "edited"):
        (top / name).write_text(TEN)
        ws.edit(name, "2\n", "two\n")
    ws.write("new", "x\n")
    (top / "back").write_text(TEN)
    (top / "gone").unlink()
    (top / "new").unlink()
    replace(top / "edited", "6\n7\n", "six\n")
    changes = reopened().changes()
    assert [(file.path, file.action) for file in changes.files] == [
        ("edited", "changed"),
        ("gone", "deleted"),
    ]
    assert changes.notes == ('changed since by another program: "back", "gone", "edited", "new"',)
    assert b"+six\n" in changes.patch
    assert b"back" not in changes.patch


def test_regression_changes_that_a_later_step_took_back_are_not_those_of_another_program(reopened, tmp_path):
    top = tmp_path / "root"
    put(top, {"d/x": "x\n"})
    ws = reopened()
    ws.edit("a", "2\n", "two\n")
    ws.edit("a", "two\n", "2\n")
    ws.delete("d", recursive=True)
    ws.write("d/x", "x\n")
    ws.write("new", "x\n")
    ws.delete("new")
    assert (ws.changes().files, ws.changes().notes) == ((), ())
    assert (reopened().changes().files, reopened().changes().notes) == ((), ())


def test_a_move_with_an_edit_is_one_entry(reopened):
    ws = reopened()
    ws.edit("a", "2\n", "two\n")
    ws.move("a", "b")
    (file,) = reopened().changes().files
    assert (file.path, file.action, file.moved_from, file.added, file.removed) == ("b", "moved", "a", 1, 1)
    assert b"rename from a\nrename to b\n--- a/a\n+++ b/b\n" in reopened().changes().patch


# Another call or another program


def test_a_move_onto_a_target_that_has_just_come_into_being_says_so(ws, tmp_path, monkeypatch):
    (tmp_path / "a").write_text("x\n")
    check = type(ws._root).check_may_move

    def create(root, path):
        check(root, path)
        (tmp_path / "b").write_text("theirs\n")

    monkeypatch.setattr(type(ws._root), "check_may_move", create)
    with pytest.raises(AlreadyExistsError, match='"b" already exists'):
        ws.move("a", "b")


@pytest.mark.parametrize("who", ["another call of this workspace", "another program"])
def test_a_delete_beside_an_edit_blames_who_made_it(ws, tmp_path, monkeypatch, who):
    (tmp_path / "a").write_text("one\n")
    node = type(ws._root).node

    def edit(root, path, **more):
        monkeypatch.undo()
        found = node(root, path, **more)
        if who == "another program":
            (tmp_path / "a").write_text("theirs\n")
        else:
            with in_threads(lambda: ws.edit("a", "one", "two")):
                pass
        return found

    monkeypatch.setattr(type(ws._root), "node", edit)
    with pytest.raises(StaleError, match=f"by {who}"):
        ws.delete("a")


def test_a_move_takes_along_an_edit_beside_it(ws, tmp_path, monkeypatch):
    (tmp_path / "a").write_text("one\n")
    check = type(ws._root).check_may_move

    def edit(root, path):
        check(root, path)
        (tmp_path / "a").write_text("theirs\n")

    with monkeypatch.context() as patch:
        patch.setattr(type(ws._root), "check_may_move", edit)
        ws.move("a", "b")
    assert (tmp_path / "b").read_text() == "theirs\n"
    ws.undo()
    assert (tmp_path / "a").read_text() == "theirs\n"
