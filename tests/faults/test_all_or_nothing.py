"""A change is killed before each of its calls, or cannot be made or reversed: all is old or all is new."""

import errno
import os
import shutil

import pytest

from agentfs import Workspace
from agentfs.fs import apply
from tests.conftest import part_or_all
from tests.faults.calls import (
    CHANGES,
    CHANGING,
    CountedCalls,
    fail_with,
    fresh,
    kill_itself,
    kills,
    refuse_renames,
    without_temporaries,
)
from tests.history.judges import snapshot
from tests.kit import refused

READ = {"write", "write through"}
COSTLY = {"redo", "patch", "undo", "replace", "transaction"}


@part_or_all(9000, full=200)
@pytest.mark.parametrize(
    "name",
    # What was read is not known after the preparation, which another workspace makes.
    [pytest.param(each, marks=[pytest.mark.full] * (each in COSTLY)) for each in CHANGES if each not in READ],
)
def test_a_kill_before_a_call_leaves_all_old_or_all_new(tmp_path, monkeypatch, name, every):
    """The next workspace sees all old, all new, or a begun step that it names and `undo` takes back."""
    before, act = CHANGES[name]
    top, state = tmp_path / "root", tmp_path / "state"

    def prepared():
        shutil.rmtree(state, ignore_errors=True)
        with Workspace(fresh(top), state=state) as ws:
            before(ws)
        return top, state

    prepared()
    old, seen = snapshot(top), set()
    with Workspace(top, state=state) as ws:
        act(ws)
    new = snapshot(top)
    assert new != old
    calls = CountedCalls(monkeypatch, kill_itself, CHANGING)  # before another call, the tree is the same
    for where, *_ in kills(calls, every, prepared, act):
        with Workspace(top, state=state) as ws:
            found = without_temporaries(snapshot(top))
            if found not in (old, new):
                # The finished steps of a transaction are not named.
                assert ws.recovery_notes or name in {"transaction", "patch"}, (where, sorted(found))
                ws.undo()
                assert without_temporaries(snapshot(top)) == old, (where, ws.recovery_notes)
            seen.add(found == old)
    assert True in seen


def test_regression_a_change_that_cannot_be_reversed_stays_in_the_journal(tmp_path, monkeypatch):
    """The journal dropped its step, so nothing could take back what was made of it."""
    top, renamed, rename = tmp_path / "root", [], os.replace
    fresh(top)
    old = snapshot(top)

    fail = fail_with(errno.EIO)

    def fail_third(source, name, **directories):
        renamed.append(name)
        if len(renamed) == 3:  # and the reversal cannot write the old content
            monkeypatch.setattr(apply, "create_temporary", lambda *_, **__: fail())
            fail()
        rename(source, name, **directories)

    monkeypatch.setattr(os, "replace", fail_third)
    with Workspace(top, state=tmp_path / "state") as ws:
        error = refused(lambda: ws.replace("old", "new"), "io")
        assert "could not be restored" in error.message
        assert len(error.details["not_restored"]) == len(ws.changes().files) == 2
    monkeypatch.undo()
    with Workspace(top, state=tmp_path / "state") as ws:
        assert len(ws.changes().files) == 2
        ws.undo()
    assert snapshot(top) == old


def test_a_file_written_while_it_is_copied_to_another_file_system_is_not_lost(tmp_path, monkeypatch):
    top, copy = tmp_path / "root", apply.create_temporary
    fresh(top)

    def write(*arguments, **options):
        notes = copy(*arguments, **options)
        (top / "f").write_text("theirs\n")
        return notes

    refuse_renames(monkeypatch)
    monkeypatch.setattr(apply, "create_temporary", write)
    with Workspace(top) as ws:
        refused(lambda: ws.move("f", "new"), "stale")
    assert (top / "f").read_text() == "theirs\n"
    assert not (top / "new").exists()


def test_a_failed_copy_to_another_file_system_is_taken_back(tmp_path, monkeypatch):
    top = fresh(tmp_path / "root")
    old = snapshot(top)
    refuse_renames(monkeypatch)
    with Workspace(top) as ws:
        with monkeypatch.context() as patch:
            rmdir = os.rmdir
            refuse = fail_with(errno.EIO)
            patch.setattr(os, "rmdir", lambda name, **at: refuse() if name == "d" else rmdir(name, **at))
            refused(lambda: ws.move("d", "new"))
            assert snapshot(top) == old
        ws.move("d", "new")
        assert not (top / "d").exists()
        ws.undo()
    assert snapshot(top) == old


def test_regression_a_special_file_or_a_failing_rmdir_does_not_stop_a_reversal(tmp_path, monkeypatch):
    """Changes that were made stayed, and the journal knew nothing of them."""
    top = fresh(tmp_path / "root")
    old, rename, rmdir = snapshot(top), os.replace, os.rmdir

    def others_put_a_fifo(source, name, **directories):
        rename(source, name, **directories)
        if name == "c":  # after the first change, before the second one
            (top / "f").unlink()
            os.mkfifo(top / "f")

    def fail_once(*_, **__):
        monkeypatch.setattr(os, "rmdir", rmdir)
        fail_with(errno.EIO)()

    with Workspace(top) as ws:
        with monkeypatch.context() as patch:
            patch.setattr(os, "replace", others_put_a_fifo)
            refused(lambda: ws.replace("old", "new"), "not_regular")
        assert (top / "d" / "c").read_text() == "x\nold\n"
        (top / "f").unlink()
        (top / "f").write_text("old\n")
        refuse_renames(monkeypatch)
        monkeypatch.setattr(os, "rmdir", fail_once)
        ws.move("g", "new/deep/g")
        ws.undo()
    assert sorted(snapshot(top)) == sorted(old)
