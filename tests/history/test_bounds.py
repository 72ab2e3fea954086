"""The journal's memory is bounded by number too: the oldest steps are dropped; undo and changes say so."""

import gc
import os
import random
import tracemalloc

import pytest

from agentfs import Limits, Policy, Workspace
from agentfs.cli import main
from agentfs.errors import InvalidArgumentError, NotFoundError
from agentfs.history import journal, log
from tests.history.judges import reopening, snapshot, standing
from tests.kit import put, refused

POLICY = Policy(overwrite="always")


@pytest.fixture
def few(monkeypatch):
    """A journal that keeps 10 steps, or 11 until some are dropped."""
    monkeypatch.setattr(log, "MAX_STEPS", 10)


@pytest.fixture(params=["memory", "state"])
def opened(request, tmp_path):
    put(tmp_path / "root", {"old": "old\n", "kept": "kept\n"})
    yield from reopening(request.param, tmp_path, policy=POLICY)


def test_memory_does_not_grow_with_the_number_of_steps(tmp_path, monkeypatch):
    monkeypatch.setattr(log, "MAX_STEPS", 15)
    with Workspace(tmp_path, policy=POLICY) as ws:
        held = []
        tracemalloc.start()
        try:
            for number in range(60):
                ws.write("a", f"{number}\n")
                ws.checkpoint("here")
                if number in (19, 59):
                    gc.collect()
                    held.append(tracemalloc.get_traced_memory()[0])
        finally:
            tracemalloc.stop()
    assert held[1] - held[0] < 20_000, "1.6 kB and more for each of 40 steps before"


def test_a_step_of_many_changes_counts_as_many(tmp_path, monkeypatch):
    monkeypatch.setattr(log, "MAX_CHANGES", 20)
    with Workspace(tmp_path, policy=POLICY) as ws:
        for number in range(5):
            with ws.recording("shell"):
                for name in range(9):
                    (tmp_path / f"{name}").write_text(f"{number}\n" * (number + 1))
        ws.undo(2)
        assert {(tmp_path / f"{name}").read_text() for name in range(9)} == {"2\n" * 3}
        with ws.recording("shell"):
            for name in range(50):
                (tmp_path / f"many{name}").write_text("x\n")
        ws.undo()  # however many changes the last step has, it can be undone
        assert not (tmp_path / "many0").exists()


def test_a_transaction_is_dropped_as_a_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(log, "MAX_STEPS", 8)
    with Workspace(tmp_path, policy=POLICY) as ws:
        for number in range(5):
            with ws.transaction() as tx:
                for name in range(3):
                    with tx.transaction() as inner:
                        inner.write(f"{name}", f"{number}\n")
        ws.undo(refused(lambda: ws.undo(99), "invalid_argument").details["steps"])
        assert len({(tmp_path / f"{name}").read_text() for name in range(3)}) == 1


def test_dropped_steps_are_not_undone_and_changes_says_so(few, opened, tmp_path, capsys):
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
        refused(lambda: ws.undo(100), "invalid_argument")
    for _ in range(2):
        kept = standing(ws)
        changes = ws.changes()
        assert [(file.path, file.action) for file in changes.files] == [("a", "changed")]
        assert f"-{19 - len(kept)}\n+19\n".encode() in changes.patch
        gone = f"without the first {24 - len(kept)} steps, which are no longer kept"
        assert changes.notes == (gone,)
        assert changes.notes[0] in changes.text
        assert ws.changes("turn-18").notes == ()
        ws = opened()
    caught = refused(lambda: ws.rollback("start"), "not_found")
    assert "only the latest are kept, with their checkpoints" in str(caught)
    few = refused(lambda: ws.undo(24), "invalid_argument")
    there = few.details["steps"]
    assert 10 <= there <= 11
    said = str(few)
    assert f"Only {there} steps can be undone. The first {24 - there} steps can no longer be undone" in said
    assert f"undo(steps={there})" in said
    ws.rollback("turn-18")
    assert (top / "a").read_text() == "18\n"
    if (tmp_path / "state").exists():
        arguments = ["--state", str(tmp_path / "state")]
        assert main(["log", *arguments]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert lines[0].startswith("25  ")
        assert lines[1].endswith('checkpoint "turn-19"')
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


def test_checkpoints_are_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(journal, "MAX_CHECKPOINTS", 100)
    with Workspace(tmp_path) as ws:
        for number in range(150):
            ws.checkpoint(f"turn-{number}")
        ws.rollback("turn-149")
        refused(lambda: ws.rollback("turn-1"), "not_found")


@pytest.mark.parametrize("kept", [False, True], ids=["memory", "state"])
def test_regression_contents_are_bounded_and_what_was_dropped_is_said(tmp_path, kept):
    """30 one-line edits of a file of 2 MB took 51 MB, and the checkpoint was gone without a word."""
    root, state = tmp_path / "root", tmp_path / "state" if kept else None
    root.mkdir()
    lines = [f"{os.urandom(40).hex()}\n" for _ in range(2_500)]
    (root / "a").write_text("".join(lines))
    with Workspace(root, policy=POLICY, state=state, limits=Limits(snapshot_bytes=1_500_000)) as ws:
        ws.checkpoint("start")
        for number in range(30):
            ws.edit("a", lines[number], f"{number}\n")
            ws.checkpoint("last")
        assert ws._journal.contents.total_bytes <= 1_500_000
        ((size,),) = ws._journal.contents.database.read("SELECT total(length(data)) FROM contents")[0]
        assert size <= 1_500_000
        with pytest.raises(NotFoundError, match=r"The first \d+ steps can no longer be undone"):
            ws.rollback("start")
        with pytest.raises(InvalidArgumentError, match=r"The first \d+ steps can no longer be undone"):
            ws.undo(30)
        assert "are no longer kept" in ws.changes().notes[-1]
        ws.rollback("last")
        ws.undo(2)
        assert (root / "a").read_text() == "".join([*(f"{n}\n" for n in range(28)), *lines[28:]])


def test_a_content_that_is_kept_again_while_it_is_dropped_stays(tmp_path):
    """The step that had it is replaced by one that has it too."""
    content = os.urandom(300_000)
    put(tmp_path, {"root/a": content})
    for kept in (tmp_path / "state", None):
        with Workspace(tmp_path / "root", policy=POLICY, state=kept) as ws:
            for _ in range(3):
                ws.move("a", "b")
                ws.undo()
                ws.delete("a")
                ws.undo()
            assert (tmp_path / "root" / "a").read_bytes() == content


@pytest.mark.parametrize("kept", [False, True], ids=["memory", "state"])
@pytest.mark.parametrize("seed", range(6))
def test_regression_a_full_store_keeps_what_open_recordings_and_calls_need(tmp_path, kept, seed):
    """All files were reported as new, and `undo` deleted them; an own write in a recording lost its step."""
    top, state, choose = tmp_path / "root", tmp_path / "state" if kept else None, random.Random(seed)
    names = ["a", "b", "c"]
    put(top, {name: f"{os.urandom(500).hex()}\n" for name in names})
    limits = Limits(snapshot_bytes=choose.choice([3500, 4500, 6500]))
    with Workspace(top, state=state, limits=limits, policy=POLICY) as ws:
        for _ in range(8):
            for _ in range(choose.randint(0, 3)):
                ws.write(choose.choice([*names, "own"]), f"{os.urandom(500).hex()}\n")
            own, before = choose.random() < 0.5, snapshot(top)
            with ws.recording("others") as recorded:
                for name in choose.sample(names, 2):
                    (top / name).write_text(f"{os.urandom(500).hex()}\n")
                after = snapshot(top)
                if own:
                    ws.write(name, f"{os.urandom(500).hex()}\n")
            if own:
                ws.undo()
                assert snapshot(top) == after
            elif not recorded.result.lost:
                assert {file.path for file in recorded.result.files} == {
                    name for name in names if before[name] != after[name]
                }
                ws.undo()
                assert snapshot(top) == before
