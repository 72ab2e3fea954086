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

import pytest

from agentfs import AgentFSError, Policy, Workspace
from tests.faults.calls import CountedCalls, kill_itself
from tests.history.judges import snapshot, standing

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


def check_round(others: subprocess.Popen[str], top: Path, seed: int) -> None:
    draw = random.Random(seed)
    root, state = top / "root", top / "state"
    root.mkdir()
    outside(others, root, draw)
    policy = Policy(overwrite="always")
    kept = state if draw.random() < 0.5 else None
    states = [snapshot(root)]
    with Workspace(root, policy=policy, state=kept, watch=draw.random() < 0.5) as ws:
        for _ in range(draw.randrange(1, 6)):
            if draw.random() < 0.5:
                with ws.recording("outside"):
                    outside(others, root, draw)
            else:
                try:
                    own_change(ws, draw)
                except AgentFSError:
                    continue
            if snapshot(root) != states[-1]:
                states.append(snapshot(root))
        for back, forth in ((ws.undo, ws.redo),) * 2:
            for wanted in states[-2::-1]:
                back()
                assert snapshot(root) == wanted, seed
            for wanted in states[1:]:
                forth()
                assert snapshot(root) == wanted, seed
        if len(states) > 1:
            ws.undo(len(states) - 1)
        assert snapshot(root) == states[0], seed
    assert not list(root.rglob(".agentfs-*"))


def check_mixed_round(others: subprocess.Popen[str], top: Path, seed: int) -> None:
    draw = random.Random(seed)
    root, state = top / "root", top / "state"
    root.mkdir()
    outside(others, root, draw)
    before = snapshot(root)
    policy = Policy(overwrite="always")
    kept = state if draw.random() < 0.5 else None
    with Workspace(root, policy=policy, state=kept, watch=draw.random() < 0.5) as ws:
        with ws.recording("outside"):
            for _ in range(draw.randrange(2, 8)):
                if draw.random() < 0.5:
                    outside(others, root, draw)
                else:
                    with suppress(AgentFSError):
                        own_change(ws, draw)
        after = snapshot(root)
        steps = len(standing(ws))
        for _ in range(2):
            for _ in range(steps):
                ws.undo()
            assert snapshot(root) == before
            for _ in range(steps):
                ws.redo()
            assert snapshot(root) == after
    assert not list(root.rglob(".agentfs-*"))


def check_killed_round(others: subprocess.Popen[str], top: Path, seed: int) -> None:
    """A process is killed within a recording; the next one completes it."""
    draw = random.Random(seed)
    root, state = top / "root", top / "state"
    root.mkdir()
    outside(others, root, draw)
    before = snapshot(root)
    policy = Policy(overwrite="always")
    watch = draw.random() < 0.5
    child = os.fork()
    if child == 0:
        with suppress(Exception):
            calls = CountedCalls(pytest.MonkeyPatch(), kill_itself)
            with Workspace(root, policy=policy, state=state, watch=watch) as ws:
                at = draw.choice([30, 100, 300, 1000])
                calls.at = calls.count + draw.randrange(at)
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
        os._exit(0)
    os.waitpid(child, 0)
    with Workspace(root, policy=policy, state=state, watch=watch) as ws:
        for left in root.rglob(".agentfs-*.tmp"):
            left.unlink()  # of the killed change; agentfs removes it after an hour
        after = snapshot(root)
        steps = len(standing(ws))
        for _ in range(2):
            for _ in range(steps):
                ws.undo()
            assert snapshot(root) == before, ws.recovery_notes
            for _ in range(steps):
                ws.redo()
            assert snapshot(root) == after, ws.recovery_notes
    assert not list(root.rglob(".agentfs-*"))


@pytest.mark.full
@pytest.mark.parametrize("count", [12, pytest.param(2000, marks=pytest.mark.long)])
@pytest.mark.parametrize("check", [check_round, check_mixed_round, check_killed_round])
def test_each_step_back_gives_the_tree_before_it(others, check, count, monkeypatch):
    for seed in range(count):
        # 0 lists only changed directories even in a small tree.
        top = Path(tempfile.mkdtemp(prefix="agentfs-test-"))
        try:
            check(others, top, seed)
        except Exception as error:
            error.add_note(f"seed {seed}")
            raise
        finally:
            for directory, _, _ in os.walk(top):
                os.chmod(directory, 0o700)
            shutil.rmtree(top)
