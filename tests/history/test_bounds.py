"""The journal's memory is bounded by number too: the oldest steps are dropped; undo and changes say so."""

import gc
import os
import shutil
import time
import tracemalloc

import pytest

from agentfs import Policy, Workspace
from agentfs.cli import main
from agentfs.errors import InvalidArgumentError, NotFoundError
from agentfs.history import timeline

POLICY = Policy(overwrite="always")


@pytest.fixture
def few(monkeypatch):
    """A journal that keeps 10 steps, or 11 until some are dropped."""
    monkeypatch.setattr(timeline, "MAX_STEPS", 10)


@pytest.fixture(params=[False, True], ids=["memory", "state"])
def opened(request, tmp_path):
    """Returns what opens the workspace, again too; with a state directory the journal goes on."""
    top = tmp_path / "root"
    top.mkdir()
    (top / "old").write_text("old\n")
    (top / "kept").write_text("kept\n")
    shutil.copytree(top, tmp_path / "original")
    state = tmp_path / "state" if request.param else None
    current = []

    def reopen():
        if current and state is None:
            return current[0]
        if current:
            current.pop().close()
        current.append(Workspace(top, policy=POLICY, state=state))
        return current[0]

    yield reopen
    current[0].close()


@pytest.mark.full
def test_memory_does_not_grow_with_the_number_of_steps(tmp_path, monkeypatch):
    monkeypatch.setattr(timeline, "MAX_STEPS", 50)
    with Workspace(tmp_path, policy=POLICY) as ws:
        held = []
        tracemalloc.start()
        try:
            for number in range(275):
                ws.write("a", f"{number}\n")
                ws.checkpoint("here")
                if number in (74, 274):
                    gc.collect()
                    held.append(tracemalloc.get_traced_memory()[0])
        finally:
            tracemalloc.stop()
    assert held[1] - held[0] < 50_000, "1.6 kB and more for each of 200 steps before"


def test_a_step_of_many_changes_counts_as_many(tmp_path, monkeypatch):
    monkeypatch.setattr(timeline, "MAX_CHANGES", 20)
    with Workspace(tmp_path, policy=POLICY) as ws:
        for number in range(5):
            with ws.transaction() as tx:
                for name in range(9):
                    tx.write(f"{name}", f"{number}\n")
        for number in (3, 2):
            ws.undo()
            assert {(tmp_path / f"{name}").read_text() for name in range(9)} == {f"{number}\n"}
        with pytest.raises(InvalidArgumentError, match="The first 3 steps can no longer be undone"):
            ws.undo()
        with ws.transaction() as tx:
            for name in range(50):
                tx.write(f"many{name}", "x\n")
        ws.undo()  # however many changes the last step has, it can be undone
        assert not (tmp_path / "many0").exists()


def test_dropped_steps_are_not_undone_and_changes_says_since_when(few, opened, tmp_path, capsys):
    top = tmp_path / "root"
    ws = opened()
    ws.checkpoint("start")
    ws.edit("old", "old", "new")
    ws.write("d/gone", "x\n")
    ws.delete("d/gone")
    ws.move("kept", "moved")
    for number in range(20):
        ws.write("a", f"{number}\n")
        ws.checkpoint(f"turn-{number}")
    for _ in range(2):
        kept = ws._journal.timeline.done_steps
        changes = ws.changes()
        assert [(file.path, file.action) for file in changes.files] == [("a", "changed")]
        assert f"-{19 - len(kept)}\n+19\n".encode() in changes.patch
        began = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(kept[0].time))
        gone = f"steps 1 to {24 - len(kept)} are no longer kept"
        assert changes.notes == (f"changes since {began}: {gone}",)
        assert changes.notes[0] in changes.text
        assert ws.changes("turn-18").notes == ()
        ws = opened()
    with pytest.raises(NotFoundError) as caught:
        ws.rollback("start")
    assert "only the latest are kept, with their checkpoints" in str(caught.value)
    with pytest.raises(InvalidArgumentError) as refused:
        ws.undo(24)
    there = refused.value.details["steps"]
    assert 10 <= there <= 11
    said = str(refused.value)
    assert f"Only {there} steps can be undone. The first {24 - there} steps can no longer be undone" in said
    assert f"undo(steps={there})" in said
    assert ws.undo(there).undoable == 0
    assert (top / "a").read_text() == f"{19 - there}\n"
    with pytest.raises(InvalidArgumentError, match=f"nothing to undo. The first {24 - there} steps"):
        ws.undo()
    assert ws.redo(there).steps == there
    ws.rollback("turn-12")
    assert (top / "a").read_text() == "12\n"
    ws.rollback("turn-19")
    if (tmp_path / "state").exists():
        arguments = ["--state", str(tmp_path / "state")]
        assert main(["log", *arguments]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert lines[0].endswith('checkpoint "turn-19"')
        assert lines[1].startswith("24  ")
        assert lines[-1].startswith(f"{24 - there}  earlier")
        assert lines[-1].endswith("  earlier steps, no longer kept")


def test_dropped_steps_take_no_room_in_the_database(few, tmp_path):
    top, state = tmp_path / "root", tmp_path / "state"
    top.mkdir()
    for turn in range(4):
        with Workspace(top, policy=POLICY, state=state) as ws:
            ws.write(f"turn{turn}", "x\n")
            for number in range(30):
                ws.write("a", f"{turn} {number}\n" * 200)
    assert (state / "history.db").stat().st_size < 150_000
    with Workspace(top, policy=POLICY, state=state) as ws:
        ws.undo(10)
        assert (top / "a").read_text() == "3 19\n" * 200
        (note,) = ws.changes().notes
        assert note.endswith("are no longer kept")


def test_a_journal_written_before_there_was_a_bound_is_opened(tmp_path, monkeypatch):
    top, state = tmp_path / "root", tmp_path / "state"
    top.mkdir()
    with Workspace(top, policy=POLICY, state=state) as ws:
        for number in range(30):
            ws.write("a", f"{number}\n")
        ws.undo(25)
        ws.redo(20)
    monkeypatch.setattr(timeline, "MAX_STEPS", 10)
    for _ in range(2):
        with Workspace(top, policy=POLICY, state=state) as ws:
            ws.undo(5)
            assert (top / "a").read_text() == "19\n"
            ws.redo(10)
            assert (top / "a").read_text() == "29\n"
            ws.undo(5)
    with Workspace(top, policy=POLICY, state=state) as ws, pytest.raises(InvalidArgumentError) as refused:
        ws.undo(10)
    assert "The first 20 steps" in str(refused.value)


def test_checkpoints_are_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(timeline, "MAX_CHECKPOINTS", 100)
    with Workspace(tmp_path) as ws:
        for number in range(150):
            ws.checkpoint(f"turn-{number}")
        ws.rollback("turn-149")
        with pytest.raises(NotFoundError):
            ws.rollback("turn-1")


@pytest.mark.full
def test_contents_that_no_step_needs_leave_the_database_while_it_is_open(tmp_path):
    """The steps are undone, and the next one takes their place; both the file and its log stay small."""
    root, state = tmp_path / "root", tmp_path / "state"
    root.mkdir()
    most: dict[str, int] = {}
    with Workspace(root, policy=POLICY, state=state) as ws:
        for _ in range(40):
            (root / "a").write_bytes(last := os.urandom(300_000))
            ws.delete("a")
            ws.undo()
            for path in state.iterdir():
                most[path.name] = max(most.get(path.name, 0), path.stat().st_size)
        assert most["history.db"] < 2_500_000, "40 contents of 300,000 bytes"
        assert most["history.db-wal"] <= 4 * 1024 * 1024 + 100_000
        ((count,),) = ws._journal.contents.database.read("SELECT count(*) FROM contents")[0]
        assert count == 1, "that of the step that can be redone"
        ws.redo()
        ws.undo()
        assert (root / "a").read_bytes() == last


def test_the_temporary_database_reuses_the_pages_of_contents_that_no_step_needs(tmp_path):
    with Workspace(tmp_path, policy=POLICY) as ws:
        for _ in range(40):
            (tmp_path / "a").write_bytes(os.urandom(300_000))
            ws.delete("a")
            ws.undo()
        ((pages,),) = ws._journal.contents.database.read("PRAGMA page_count")[0]
        assert pages * 4096 < 2_500_000


def test_a_content_that_is_kept_again_while_it_is_dropped_stays(tmp_path):
    """The step that had it is replaced by one that has it too."""
    content = os.urandom(300_000)
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "a").write_bytes(content)
    for kept in (tmp_path / "state", None):
        with Workspace(tmp_path / "root", policy=POLICY, state=kept) as ws:
            for _ in range(3):
                ws.move("a", "b")
                ws.undo()
                ws.delete("a")
                ws.undo()
            assert (tmp_path / "root" / "a").read_bytes() == content
