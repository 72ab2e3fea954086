"""Random changes by other processes within recordings, mixed with own edits, undone step by step."""

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from agentfs import AgentFSError, Policy, Workspace
from tests.faults.calls import CountedCalls, kill_itself
from tests.history.judges import Snapshot, snapshot, standing

PROCESSES = 4
NAMES = ["a", "b.txt", "c.py", "d/e", "d/f/g", "h/i", "h/j.txt", "k", "Upper", "l/m/n/o"]
# For each line of input, a directory and seeds: one process for each seed, all at the same time.
OPERATIONS = """
import json, os, random, shutil, sys
from contextlib import suppress

def above(path):
    with suppress(OSError):
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)

def act(number, one, other, draw):
    text = "".join(f"{draw.randrange(5)}\\n" for _ in range(draw.randrange(12)))
    match number:
        case 0: above(one); open(one, "w").write(text)
        case 1: above(one); open(one, "a").write(text)
        case 2: above(one); open(one, "wb").write(draw.randbytes(40))
        case 3: os.truncate(one, draw.randrange(20))
        case 4: os.unlink(one)
        case 5: above(other); os.rename(one, other)
        case 6: os.rename(os.path.dirname(one) or "d", "moved")
        case 7: os.rename("moved", os.path.dirname(one) or "d")
        case 8:
            mode = draw.choice([0o600, 0o644, 0o755])
            closes = os.geteuid() and os.path.isdir(one)  # only root could compare what is in it
            os.chmod(one, mode | (0o700 if closes else 0))
        case 9: above(one); os.symlink(other, one)
        case 10: os.unlink(one); os.symlink(os.path.basename(other), one)
        case 11: above(other); os.link(one, other)
        case 12: shutil.rmtree(os.path.dirname(one) or "d")
        case 13: os.makedirs(one)
        case 14: os.rename(one, one.swapcase())
        case 15: data = open(one).read(); open(one, "w").write(data.replace("1", "one"))
        case 16: above(other); shutil.copy2(one, other)
        case 17: os.unlink(one); os.makedirs(one); open(one + "/in", "w").write(text)
        case 18: os.chmod(os.path.dirname(one) or "d", draw.choice([0o700, 0o755]))
        case 19:
            data = open(one).read(); status = os.stat(one)
            open(one, "w").write(data[::-1]); os.utime(one, ns=(status.st_atime_ns, status.st_mtime_ns))
        case 20: os.unlink(one); os.mkdir(one)
        case 21: os.rmdir(one); open(one, "w").write(text)

def outside(seed):
    draw, names = random.Random(seed), sys.argv[1:]
    for _ in range(draw.randrange(1, 6)):
        with suppress(OSError, UnicodeDecodeError):
            act(draw.randrange(22), draw.choice(names), draw.choice(names), draw)
    os._exit(0)

for line in sys.stdin:
    directory, seeds = json.loads(line)
    os.chdir(directory)
    children = []
    for seed in seeds:
        children.append(os.fork())
        if children[-1] == 0:
            outside(seed)
    print([os.waitpid(child, 0)[1] for child in children], flush=True)
"""


@pytest.fixture
def others() -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-S", "-E", "-c", OPERATIONS, *NAMES]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process


def outside(others: subprocess.Popen[str], root: Path, draw: random.Random) -> None:
    seeds = [draw.randrange(10**9) for _ in range(draw.randrange(1, PROCESSES + 1))]
    assert others.stdin is not None
    assert others.stdout is not None
    others.stdin.write(json.dumps([str(root), seeds]) + "\n")
    others.stdin.flush()
    assert json.loads(others.stdout.readline()) == [0] * len(seeds)


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


def work(others: subprocess.Popen[str], root: Path, ws: Workspace, draw: random.Random, calls: Any) -> None:
    """Record changes of others and of the workspace; `calls` counts only the calls of this process."""
    for _ in range(draw.randrange(1, 4)):
        with ws.recording("outside"):
            for _ in range(draw.randrange(6)):
                if draw.random() < 0.5:
                    at, calls.at = calls.at, 0
                    outside(others, root, draw)
                    calls.at = at
                else:
                    with suppress(AgentFSError):
                        own_change(ws, draw)


def check_steps(others: subprocess.Popen[str], root: Path, draw: random.Random, settings: Any) -> None:
    """Each step leads to the tree before it."""
    states = [snapshot(root)]
    with Workspace(root, **settings) as ws:
        for _ in range(draw.randrange(1, 6)):
            if draw.random() < 0.5:
                with ws.recording("outside"):
                    outside(others, root, draw)
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


def check_mixed(others: subprocess.Popen[str], root: Path, draw: random.Random, settings: Any) -> None:
    """All steps together lead back and forth; a state directory is opened again before."""
    before = snapshot(root)
    with Workspace(root, **settings) as ws:
        work(others, root, ws, draw, SimpleNamespace(at=0))
        if settings["state"] is None:
            lead_back_and_forth(ws, root, before)
    if settings["state"] is not None:
        with Workspace(root, **settings) as ws:
            lead_back_and_forth(ws, root, before)


def check_killed(others: subprocess.Popen[str], root: Path, draw: random.Random, settings: Any) -> None:
    """A process is killed within a recording; the next one completes it."""
    before, settings = snapshot(root), {**settings, "state": root.parent / "state"}
    child = os.fork()
    if child == 0:
        with suppress(Exception):
            calls = CountedCalls(pytest.MonkeyPatch(), kill_itself)
            with Workspace(root, **settings) as ws:
                calls.at = calls.count + draw.randrange(draw.choice([30, 100, 300, 1000]))
                work(others, root, ws, draw, calls)
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
def test_each_step_back_gives_the_tree_before_it(others, check, count):
    for seed in range(count):
        top, draw = Path(tempfile.mkdtemp(prefix="agentfs-test-")), random.Random(seed)
        (top / "root").mkdir()
        settings = {"policy": Policy(overwrite="always"), "watch": draw.random() < 0.5}
        settings["state"] = top / "state" if draw.random() < 0.5 else None
        try:
            outside(others, top / "root", draw)
            check(others, top / "root", draw, settings)
            assert not list((top / "root").rglob(".agentfs-*"))
        except Exception as error:
            error.add_note(f"seed {seed}")
            raise
        finally:
            for directory, _, _ in os.walk(top):
                os.chmod(directory, 0o700)
            shutil.rmtree(top)
