"""A workspace with a state is killed at its calls, also in a recording or review: journal and tree agree."""

import os
import random
import re
import shutil
import sqlite3
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from agentfs import AgentFSError, Policy, Workspace
from agentfs.history import database
from tests.conftest import part_or_all
from tests.faults.calls import CountedCalls, kill_itself, kills
from tests.faults.tracing import calls_in, needs_tracing, numbered, run_traced
from tests.history.judges import Snapshot, random_call, snapshot, standing, undone

STEPS = """
def act(ws):
    ws.edit("a", "old", "new")
    ws.write("made/deep/b", "new\\n")
    ws.checkpoint("here")
    with ws.transaction() as tx:
        tx.move("c", "moved/c")
        tx.edit("a", "new", "newer")
    ws.undo()
    ws.read("d")
    ws.delete("d")
    ws.rollback("here")
"""
exec(STEPS)  # the traced process runs the same text


def fresh(top: Path) -> tuple[Path, Path]:
    shutil.rmtree(top, ignore_errors=True)
    root = top / "root"
    root.mkdir(parents=True)
    for name in ("a", "c", "d"):
        (root / name).write_text(f"old {name}\n")
    return root, top / "state"


def files_of(root: Path) -> Snapshot:
    """Return the files. Empty directories created just before a kill belong to no step yet."""
    for path in root.rglob(".agentfs-*.tmp"):
        path.unlink()  # of the killed change; agentfs removes it after an hour
    return snapshot(root, directories=False)


def judge(root: Path, state: Path, had: list[Snapshot], where: str) -> tuple[int, tuple[str, ...]]:
    """Open the workspace again: undo must lead to the original and redo back.

    The tree is as it was between two steps, or in the middle of one that the workspace names.
    """
    with Workspace(root, state=state) as ws:
        present, is_named = files_of(root), any("undo takes it back" in note for note in ws.recovery_notes)
        assert present in had or is_named, f"killed at {where}: {sorted(present)} {ws.recovery_notes}"
        steps = len(standing(ws))
        if steps:
            ws.undo(steps)
        assert files_of(root) == had[0], f"killed at {where}: undo of {steps} steps"
        if steps:
            ws.redo(steps)
        assert files_of(root) == present, f"killed at {where}: redo of {steps} steps"
        return steps, ws.recovery_notes


def states_of(top: Path) -> list[Snapshot]:
    """Return the tree at the start and after each step, also of a transaction."""
    root, state = fresh(top)
    found = [files_of(root)]
    body = STEPS.replace("def act(ws):\n", "")
    blocks = re.split(r"\n(?=    \S)", body.strip("\n"))
    scope = {"note": lambda: found.append(files_of(root))}
    with Workspace(root, state=state) as ws:
        scope["ws"] = ws
        for block in blocks:
            exec("if True:\n" + block.replace("    tx.", "    note(); tx."), scope)
            found.append(files_of(root))
    return found


def killing(monkeypatch) -> CountedCalls:
    """Counts system calls and database statements, and kills the process before one of them."""
    calls, connect = CountedCalls(monkeypatch, kill_itself), sqlite3.connect

    class Connection(sqlite3.Connection):
        execute = calls.wrap(sqlite3.Connection.execute)

    monkeypatch.setattr(database.sqlite3, "connect", partial(connect, factory=Connection))
    return calls


@pytest.mark.full
@part_or_all(120)
def test_a_kill_before_a_call_leaves_journal_and_tree_agreeing(tmp_path, monkeypatch, every):
    had, seen, told = states_of(tmp_path / "model"), set(), set()
    for where, root, state in kills(killing(monkeypatch), every, lambda: fresh(tmp_path / "top"), act):  # noqa: F821 - as above
        steps, repaired = judge(root, state, had, where)
        seen.add(steps)
        told |= {text.partition(" ")[0] for text in repaired}
    assert {0, 1, 2} <= seen
    assert told, "what was under way is told"


def change_outside(root: Path) -> None:
    (root / "c").unlink()
    (root / "d").write_text("outside\n")
    (root / "d").chmod(0o755)
    os.makedirs(root / "new" / "deep")
    (root / "new" / "deep" / "x").write_text("x\n")


@pytest.mark.full
@part_or_all(120)
def test_a_kill_as_a_recording_is_entered_left_or_undone_loses_no_change(tmp_path, monkeypatch, every):
    calls, top = killing(monkeypatch), tmp_path / "top"
    root, _ = fresh(top)
    had = [files_of(root)]
    (root / "a").write_text("new a\n")
    had.append(files_of(root))
    change_outside(root)
    had.append(files_of(root))
    (root / "a").write_text("others\n")
    had.append(files_of(root))

    def by_others(change):
        at, calls.at, count = calls.at, 0, calls.count
        change()
        calls.at = at
        del calls.names[count:]

    def record(ws):
        with ws.recording("first"):
            ws.edit("a", "old", "new")
            by_others(lambda: change_outside(top / "root"))
        ws.undo()
        ws.redo()
        with ws.recording("second"):
            by_others(lambda: (top / "root" / "a").write_text("others\n"))
        ws.undo(2)

    told = set()
    for where, root, state in kills(calls, every, lambda: fresh(top), record):
        told |= {text.partition(" ")[0] for text in judge(root, state, had, where)[1]}
    assert "recording" in told


@pytest.mark.full
@part_or_all(12)
def test_a_kill_before_a_call_of_reject_leaves_a_step_that_undo_takes_back(tmp_path, monkeypatch, every):
    def prepared():
        root, state = fresh(tmp_path / "top")
        with Workspace(root, state=state) as ws:
            ws.edit("a", "old", "new")
            ws.write("made/deep/b", "new\n")
            ws.move("c", "moved")
            ws.delete("d")
        return root, state

    def reject(ws):
        ws.apply_review(reject=[hunk.id for hunk in ws.review().hunks])

    root, state = prepared()
    old, seen = files_of(root), set()
    with Workspace(root, state=state) as ws:
        reject(ws)
    new = files_of(root)
    assert sorted(new) == ["a", "c", "d"]
    for where, root, state in kills(killing(monkeypatch), every, prepared, reject):
        with Workspace(root, state=state) as ws:
            present = files_of(root)
            assert (ws.review().files == ()) == (present == new)
            assert present in (old, new) or "undo takes it back" in ws.recovery_notes[0]
            if present != old:
                ws.undo()
            assert files_of(root) == old, f"killed at {where}: {sorted(present)}"
        seen.add(present == new)
    assert seen == {False, True}


TRACED = (
    STEPS
    + """
import sys
from agentfs import Workspace
ws = Workspace(sys.argv[1], state=sys.argv[2])
with ws.transaction() as tx:
    tx.write("warm", "x")
    tx.write("warm2", "x")
ws.undo()
print("ready", flush=True)
sys.stdin.readline()
act(ws)
print("done", flush=True)
sys.stdin.readline()
"""
)


@pytest.mark.full
@needs_tracing
@part_or_all(149)
def test_a_kill_at_some_system_calls_leaves_journal_and_tree_agreeing(tmp_path, every):
    had = states_of(tmp_path / "model")
    root, state = fresh(tmp_path / "top")
    log = tmp_path / "log"
    assert run_traced(TRACED, [root, state], log) == "done"
    points = numbered(calls_in(log))
    assert len(points) > 300
    for name, at in points[::every]:
        root, state = fresh(tmp_path / "top")
        assert run_traced(TRACED, [root, state], log, f"{name}:signal=KILL:when={at}") in {"killed", "done"}
        judge(root, state, had, f"{name} {at}")


FILES = ["a", "c", "d", "made/deep/b", "made/x", "sp ace"]


@pytest.mark.parametrize(("seed", "count"), [
    *(pytest.param(seed, 12, marks=pytest.mark.full) for seed in (1, 2)),
    *(pytest.param(seed, 40, marks=pytest.mark.long) for seed in range(100, 130)),
])  # fmt: skip
def test_journal_and_tree_agree_after_random_kills(tmp_path, monkeypatch, seed, count):
    chance = random.Random(seed)
    root, state = fresh(tmp_path / "top")
    original = files_of(root)
    policy = Policy(overwrite="always")
    calls = killing(monkeypatch)
    for _ in range(count):
        child = os.fork()
        if child == 0:
            calls.at = calls.count + chance.randint(1, 400)  # opening is included
            with Workspace(root, state=state, policy=policy) as ws:
                for _ in range(20):
                    with suppress(AgentFSError, KeyError):
                        random_call(ws, chance, FILES)
            os._exit(0)
        os.waitpid(child, 0)
        chance = random.Random(chance.random())
        with Workspace(root, state=state, policy=policy) as ws:
            present = files_of(root)
            steps, ahead = len(standing(ws)), len(undone(ws))
            if steps:
                ws.undo(steps)
            assert files_of(root) == original, f"{ws.recovery_notes}"
            if steps:
                ws.redo(steps)
            assert files_of(root) == present, f"{ws.recovery_notes}"
            assert len(undone(ws)) == ahead
            assert ws.changes().files or files_of(root) == original
