"""Random changes by other processes within recordings, mixed with own edits, undone step by step."""

import os
import random
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from agentfs import AgentFSError, Policy, Workspace
from tests.faults.calls import CountedCalls, kill_itself
from tests.history.judges import Snapshot, snapshot, standing
from tests.other_programs import start

NAMES = ["a", "b.txt", "c.py", "d/e", "d/f/g", "h/i", "h/j.txt", "k", "Upper", "l/m/n/o"]
CONTENTS = [b"", b"1\n2\n3\n", b"0\n1\n1\n4\n2\n", b"4\n3\n2\n1\n0\n4\n", b"\0\xff binary", b"caf\xe9\n"]


def outside(root: Path, draw: random.Random) -> None:
    for child in start(root, draw, NAMES, CONTENTS):
        assert os.waitpid(child, 0)[1] == 0


def own_change(ws: Workspace, draw: random.Random) -> None:
    name, other = draw.choice(NAMES), draw.choice(NAMES)
    match draw.randrange(4):
        case 0:
            ws.write(name, f"own {draw.randrange(100)}\n" * draw.randrange(5))
        case 1:
            ws.edit(name, "1\n", "own\n", replace_all=True)
        case 2:
            ws.delete(name)
        case 3:
            ws.move(name, other)


def work(root: Path, ws: Workspace, draw: random.Random, calls: Any) -> None:
    """Record changes of others and of the workspace; `calls` counts only the calls of this process."""
    for _ in range(draw.randrange(1, 4)):
        with ws.recording("outside"):
            for _ in range(draw.randrange(6)):
                if draw.random() < 0.5:
                    at, calls.at = calls.at, 0
                    outside(root, draw)
                    calls.at = at
                else:
                    with suppress(AgentFSError):
                        own_change(ws, draw)


def check_steps(root: Path, draw: random.Random, settings: Any) -> None:
    """Each step leads to the tree before it."""
    states = [snapshot(root)]
    with Workspace(root, **settings) as ws:
        for _ in range(draw.randrange(1, 6)):
            if draw.random() < 0.5:
                with ws.recording("outside"):
                    outside(root, draw)
            else:
                with suppress(AgentFSError):
                    own_change(ws, draw)
            if snapshot(root) != states[-1]:
                states.append(snapshot(root))
        for _ in range(2):
            for act, wanted in ((ws.undo, states[-2::-1]), (ws.redo, states[1:])):
                for state in wanted:
                    act()
                    assert snapshot(root) == state
        if len(states) > 1:
            ws.undo(len(states) - 1)
        assert snapshot(root) == states[0]


def check_mixed(root: Path, draw: random.Random, settings: Any) -> None:
    """All steps together lead back and forth; a state directory is opened again before."""
    before = snapshot(root)
    with Workspace(root, **settings) as ws:
        work(root, ws, draw, SimpleNamespace(at=0))
        if settings["state"] is None:
            lead_back_and_forth(ws, root, before)
    if settings["state"] is not None:
        with Workspace(root, **settings) as ws:
            lead_back_and_forth(ws, root, before)


def check_killed(root: Path, draw: random.Random, settings: Any) -> None:
    """A process is killed within a recording; the next one completes it."""
    before, settings = snapshot(root), {**settings, "state": root.parent / "state"}
    child = os.fork()
    if child == 0:
        with suppress(Exception):
            calls = CountedCalls(pytest.MonkeyPatch(), kill_itself)
            with Workspace(root, **settings) as ws:
                calls.at = calls.count + draw.randrange(draw.choice([30, 100, 300, 1000]))
                work(root, ws, draw, calls)
        os._exit(0)
    os.waitpid(child, 0)
    with Workspace(root, **settings) as ws:
        for left in root.rglob(".agentfs-*.tmp"):
            left.unlink()  # of the killed change; agentfs removes it after an hour
        lead_back_and_forth(ws, root, before)


def lead_back_and_forth(ws: Workspace, root: Path, before: Snapshot) -> None:
    after, steps = snapshot(root), len(standing(ws))
    for _ in range(2):
        for act, wanted in ((ws.undo, before), (ws.redo, after)):
            for _ in range(steps):
                act()
            assert snapshot(root) == wanted, ws.recovery_notes


@pytest.mark.full
@pytest.mark.parametrize("count", [12, pytest.param(2000, marks=pytest.mark.long)])
@pytest.mark.parametrize("check", [check_steps, check_mixed, check_killed])
def test_each_step_back_gives_the_tree_before_it(check, count):
    for seed in range(count):
        top, draw = Path(tempfile.mkdtemp(prefix="agentfs-test-")), random.Random(seed)
        (top / "root").mkdir()
        settings = {"policy": Policy(overwrite="always"), "watch": draw.random() < 0.5}
        settings["state"] = top / "state" if draw.random() < 0.5 else None
        try:
            outside(top / "root", draw)
            check(top / "root", draw, settings)
            assert not list((top / "root").rglob(".agentfs-*"))
        except Exception as error:
            error.add_note(f"seed {seed}")
            raise
        finally:
            for directory, _, _ in os.walk(top):
                os.chmod(directory, 0o700)
            shutil.rmtree(top)
