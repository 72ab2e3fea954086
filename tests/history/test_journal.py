"""Undo, redo, checkpoints, rollback and changes, one by one."""

import os
import sys
import tracemalloc

import pytest

from agentfs import Workspace
from agentfs.errors import FileIOError
from agentfs.fs import Change, FileNode, quote
from agentfs.history import database, operations, report
from agentfs.history.database import Contents
from tests.history.judges import snapshot
from tests.kit import put, refused


def test_undo_takes_back_and_redo_makes_again(ws, tmp_path):
    ws.write("new/deep/a.txt", "one\n")
    ws.edit("new/deep/a.txt", "one", "two")
    after = snapshot(tmp_path)
    result = ws.undo()
    assert (result.steps, result.undoable, result.redoable) == (1, 1, 1)
    assert [(f.path, f.action) for f in result.files] == [("new/deep/a.txt", "changed")]
    assert (tmp_path / "new/deep/a.txt").read_text() == "one\n"
    assert ws.undo().text == (
        'Undid 1 step.\ndeleted directory "new"\ndeleted directory "new/deep"\ndeleted "new/deep/a.txt"'
    )
    assert snapshot(tmp_path) == {}
    assert ws.redo(2).redoable == 0
    assert snapshot(tmp_path) == after


def test_a_file_that_somebody_else_changed_is_not_undone_and_the_diff_is_shown(ws, tmp_path):
    ws.write("a.txt", "one\n")
    ws.write("b.txt", "mine\n")
    (tmp_path / "a.txt").write_text("one\ntheirs\n")
    before = snapshot(tmp_path)
    caught = refused(lambda: ws.undo(2), "conflict")
    assert "+theirs" in str(caught)
    assert 'undo(paths=["b.txt"]) for the other paths' in str(caught)
    assert "+theirs" in caught.details["diff"]
    assert snapshot(tmp_path) == before, "all of it, or none"
    assert ws.undo().steps == 1, "the step that does not touch it can still be undone"


@pytest.mark.parametrize(
    ("act", "code"),
    [
        (lambda ws: ws.undo(), "invalid_argument"),
        (lambda ws: ws.undo(0), "invalid_argument"),
        (lambda ws: ws.undo(-1), "invalid_argument"),
        (lambda ws: ws.redo(), "invalid_argument"),
        (lambda ws: ws.rollback("nowhere"), "not_found"),
        (lambda ws: ws.rollback(""), "not_found"),
        (lambda ws: ws.changes(since="nowhere"), "not_found"),
        (lambda ws: ws.checkpoint(""), "invalid_argument"),
        (lambda ws: ws.checkpoint("x" * 201), "invalid_argument"),
    ],
)
def test_bad_input_is_a_typed_error(ws, act, code):
    ws.checkpoint("2")
    assert [ws.checkpoint().name for _ in range(2)] == ["3", "4"], "none that is taken"
    refused(lambda: act(ws), code)


def test_regression_a_checkpoint_stays_whatever_is_done_after_it(ws, tmp_path):
    ws.checkpoint("start")
    ws.write("a", "1\n")
    ws.checkpoint("late")
    late = snapshot(tmp_path)
    ws.rollback("start")
    assert ws.rollback("late").steps == 1
    ws.rollback("start")
    ws.write("b", "1\n")
    ws.rollback("late")
    assert snapshot(tmp_path) == late


def test_regression_a_rollback_after_a_partial_undo_keeps_what_came_before_the_checkpoint(ws, tmp_path):
    ws.write("a", "1\n")
    ws.write("b", "1\n")
    ws.checkpoint("B")
    before = snapshot(tmp_path)
    ws.write("c", "1\n")
    ws.undo(paths="b")
    ws.rollback("B")
    assert snapshot(tmp_path) == before


def test_regression_a_rollback_over_a_step_that_was_undone_leaves_what_others_wrote(ws, tmp_path):
    """Each step after the checkpoint was reversed alone, and the file of the others was in the way."""
    ws.checkpoint("c")
    ws.write("a", "1\n")
    ws.undo()
    (tmp_path / "a").write_text("theirs\n")
    assert ws.rollback("c").files == ()
    assert (tmp_path / "a").read_text() == "theirs\n"


def test_regression_what_was_undone_can_be_redone_after_a_new_change(ws, tmp_path):
    ws.write("a", "1\n")
    ws.undo()
    with ws.recording("report"):
        (tmp_path / "report.md").write_text("long\n")
    ws.undo()
    ws.write("b", "2\n")
    assert ws.redo(2).redoable == 0
    assert sorted(snapshot(tmp_path)) == ["a", "b", "report.md"]


def test_changes_puts_several_changes_of_one_file_into_one(ws, tmp_path):
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    ws.edit("a.txt", "one", "1")
    ws.checkpoint("c")
    ws.edit("a.txt", "two", "2")
    ws.write("gone", "x\n")
    ws.delete("gone")
    total = ws.changes()
    assert [(f.path, f.action, f.added, f.removed) for f in total.files] == [("a.txt", "changed", 2, 2)]
    assert total.patch.count(b"@@") == 2
    assert b"-two\n+2\n" in ws.changes(since="c").patch
    assert b"-one" not in ws.changes(since="c").patch
    assert total.to_dict()["patch"] == total.patch.decode()
    ws.undo(4)
    assert ws.changes().text == "Nothing is changed."
    assert ws.changes(since="c").files[0].path == "a.txt", "what was undone since is a change too"


def test_a_new_directory_with_other_entries_stays(ws, tmp_path):
    ws.write("d/mine", "x\n")
    (tmp_path / "d" / "theirs").write_text("y\n")
    result = ws.undo()
    assert result.notes == ('not removed, because it is not empty: "d"',)
    assert sorted(snapshot(tmp_path)) == ["d", "d/theirs"]
    ws.redo()
    assert (tmp_path / "d" / "mine").read_text() == "x\n"


def test_a_link_put_in_the_way_is_not_followed_by_undo(tmp_path):
    top, out = tmp_path / "root", tmp_path / "out"
    out.mkdir()
    top.mkdir()
    with Workspace(top) as ws:
        ws.write("d/a", "x\n")
        (out / "a").write_text("x\n")
        (top / "d").rename(tmp_path / "away")
        (top / "d").symlink_to(out)
        refused(ws.undo)
    assert (out / "a").read_text() == "x\n"


def test_contents_go_to_the_disk_when_they_are_many():
    kept_in = Contents()
    tracemalloc.start()
    kept = [kept_in.keep(Change(str(i), None, FileNode.of(0o644, os.urandom(300_000)))) for i in range(36)]
    assert tracemalloc.get_traced_memory()[0] < 9_000_000
    tracemalloc.stop()
    for change in kept:
        assert FileNode.of(0o644, change.after.load()) == change.after
    kept_in.close()


def test_regression_no_finalizer_of_small_contents_swallows_an_interrupt():
    kept_in, calls = Contents(), []
    kept_in.keep(Change("a", None, FileNode.of(0o644, b"x\n")))
    sys.setprofile(
        lambda frame, event, _: calls.append(frame.f_code.co_qualname) if event == "call" else None
    )
    try:
        del kept_in
    finally:
        sys.setprofile(None)
    assert not calls


def test_nothing_is_changed_if_nothing_can_be_kept(ws, tmp_path, monkeypatch):
    monkeypatch.setattr(database, "_MEMORY_BYTES", 0)
    put(tmp_path, {"a": "old\n" * 100, "large": os.urandom(100000).hex().encode()})
    ws.edit("a", "old", "older", replace_all=True)
    before = snapshot(tmp_path)
    pages = "PRAGMA max_page_count"
    ((most,),) = ws._journal.contents.database.read(pages)[0]
    ws._journal.contents.database.read(f"{pages}=20")
    for _ in range(2):
        with pytest.raises(FileIOError, match=r"temporary file .* failed: database or disk is full"):
            ws.delete("large")
    assert snapshot(tmp_path) == before
    ws._journal.contents.database.read(f"{pages}={most}")
    ws.write("b", "small\n")
    ws.delete("large")
    ws.undo(3)
    assert (tmp_path / "a").read_text() == "old\n" * 100
    assert sorted(snapshot(tmp_path)) == ["a", "large"]


def test_undo_and_redo_leave_what_was_read_as_it_is(ws, tmp_path):
    (tmp_path / "a").write_text("".join(f"{number}\n" for number in range(1, 11)))
    ws.read("a", 1, 3)
    ws.edit("a", "5\n", "five\n")
    for back, first_unread in ((ws.undo, 4), (ws.redo, 9)):  # the diff of the edit has shown 2 to 8
        back()
        error = refused(lambda: ws.write("a", "x\n"), "unread")
        assert error.details["unread_lines"] == [[first_unread, 10]]
        assert not ws.edit("a", "9\n", "nine\n", preview=True).notes


def test_a_patch_over_its_bound_counts_the_missing_paths(ws, monkeypatch):
    monkeypatch.setattr(report, "_PATCH_BYTES", 10)
    for name in "abc":
        ws.write(name, f"{name}\n")
    changes = ws.changes()
    assert changes.patch.count(b"diff --git") == 1
    assert changes.notes == ("not in the patch, because it would be too large or take too long: 2 paths",)
    assert [file.path for file in changes.files] == ["a", "b", "c"]


def changed_in_one_step(ws, tmp_path):
    """Change, create, delete and move a file in one step."""
    put(tmp_path, {"changed": "changed\n", "deleted": "deleted\n", "moved": "moved\n"})
    with ws.transaction() as tx:
        tx.edit("changed", "changed", "now")
        tx.write("d/created", "new\n")
        tx.delete("deleted")
        tx.move("moved", "to")


BACK = {
    "changed": lambda top: (top / "changed").write_text("changed\n"),
    "created": lambda top: (top / "d" / "created").unlink(),
    "deleted": lambda top: (top / "deleted").write_text("deleted\n"),
    "moved": lambda top: (top / "to").rename(top / "moved"),
}
AGAIN = {
    "changed": lambda top: (top / "changed").write_text("now\n"),
    "created": lambda top: put(top, {"d/created": "new\n"}),
    "deleted": lambda top: (top / "deleted").unlink(),
    "moved": lambda top: (top / "moved").rename(top / "to"),
}


@pytest.mark.parametrize("names", [*([name] for name in BACK), list(BACK)], ids=" ".join)
@pytest.mark.parametrize("way", ["undo", "rollback"])
def test_a_file_that_is_already_as_before_counts_as_undone(ws, tmp_path, names, way):
    ws.checkpoint("start")
    changed_in_one_step(ws, tmp_path)
    after = snapshot(tmp_path)
    for name in names:
        BACK[name](tmp_path)
    result = ws.rollback("start") if way == "rollback" else ws.undo()
    assert result.steps == 1
    done = {"d/created" if name == "created" else name for name in names}
    assert done.isdisjoint(file.path for file in result.files)
    before = {f"{name}": f"{name}\n" for name in ("changed", "deleted", "moved")}
    assert {path.name: path.read_text() for path in tmp_path.iterdir() if path.is_file()} == before
    for name in names:  # as after the step
        AGAIN[name](tmp_path)
    assert ws.redo().steps == 1
    assert snapshot(tmp_path) == after


@pytest.mark.parametrize("workdir", ["d", "d/e", "."])
def test_every_path_in_a_view_can_be_passed_back_to_it(ws, tmp_path, workdir):
    """Results, errors and suggestions of the history name paths from the directory of the view."""
    (tmp_path / "d/e").mkdir(parents=True)
    for path in ("top", "d/f", "d/e/g"):
        (tmp_path / path).write_text("old\n")
    view = ws.view(workdir=workdir)
    with view.transaction() as tx:
        for path in ("top", "d/f", "d/e/g"):
            tx.edit(os.path.relpath(path, workdir), "old", "new")
    (tmp_path / "d/f").write_text("other\n")
    shown = {file.path for file in view.changes().files}
    assert sorted(view.read(path).content for path in shown) == ["new\n", "new\n", "other\n"]
    caught = refused(view.undo, "conflict")
    error = caught
    rest, read = error.details["suggested_calls"]
    assert view.read(**read["arguments"]).content == "other\n"
    assert quote(read["arguments"]["path"]) in error.message
    assert error.details["path"] == error.details["conflicts"][0]["path"] == read["arguments"]["path"]
    undone = view.undo(**rest["arguments"])
    assert {view.read(file.path).content for file in undone.files} == {"old\n"}
    with view.recording("shell") as recorded:
        (tmp_path / "d/e/g").write_text("shell\n")
    assert view.read(recorded.result.files[0].path).content == "shell\n"


def test_changes_looks_at_the_journal_once(ws, tmp_path, monkeypatch):
    """A step that another thread makes meanwhile is in all parts of the answer or in none."""
    (tmp_path / "f").write_text("old\n")
    ws.edit("f", "old", "one")
    real_paths = operations.real_paths

    def with_step_in_between(*arguments):
        monkeypatch.undo()
        ws.edit("f", "one", "two")
        ws.write("g", "new\n")
        return real_paths(*arguments)

    monkeypatch.setattr(operations, "real_paths", with_step_in_between)
    assert [file.path for file in ws.changes().files] == ["f"]
    assert [file.path for file in ws.changes().files] == ["f", "g"]


def test_regression_changes_shows_a_model_the_text_and_names_the_binary_files(ws, tmp_path):
    """Sixteen databases took the whole budget as base85, and the change of the source was cut."""
    ws.write("src/a.py", "x = 2\n")
    for number in range(16):
        ws.write_bytes(f"cache/{number}.db", os.urandom(20_000))
    result = ws.changes()
    assert "+x = 2" in result.text
    assert "16 binary files without a patch here" in result.text
    assert "GIT binary patch" not in result.text
    assert result.patch.count(b"GIT binary patch") == 16
