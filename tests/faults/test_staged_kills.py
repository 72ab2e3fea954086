"""A process is killed at each system call while it stages a command and applies its effects."""

import os
import time
from pathlib import Path

import pytest

from agentfs import Policy, Workspace
from agentfs.fs.lock import lock_directories
from tests.conftest import part_or_all
from tests.faults.calls import CountedCalls, kill_itself, some_of
from tests.history.judges import snapshot

COMMAND = "echo new > made; rm old/b; mkdir d; mv old/a d/a; ln -s d link; chmod 700 c; echo 2 >> c"
POLICY = Policy(run="staged", durability="fast")


def fresh(root: Path) -> None:
    (root / "old").mkdir(parents=True)
    for name in ("old/a", "old/b", "c"):
        (root / name).write_text(f"{name}\n")


def stages() -> set[Path]:
    return {path for place in lock_directories(os.geteuid()) for path in Path(place).glob("stage-*")}


def processes_below(root: Path) -> list[str]:
    """Return the processes whose directory or arguments name a tree."""
    found: list[str] = []
    for each in Path("/proc").glob("[0-9]*"):
        try:
            if int(each.name) != os.getpid() and os.fsencode(root) in (each / "cmdline").read_bytes():
                found.append(each.name)
        except OSError:
            continue
    return found


@pytest.mark.skipif(os.name != "posix" or not Path("/proc/self/ns").exists(), reason="needs Linux")
@part_or_all(80)
def test_a_kill_leaves_the_old_tree_or_the_new_and_nothing_else(tmp_path, monkeypatch, every):
    both = []
    with Workspace(make(tmp_path / "model"), policy=POLICY) as ws:
        both.append(snapshot(tmp_path / "model"))
        ws.run(COMMAND)  # also finds out how this system stages commands
        both.append(snapshot(tmp_path / "model"))
    calls = CountedCalls(monkeypatch, kill_itself)
    with Workspace(make(tmp_path / "counted"), policy=POLICY) as ws:
        start = calls.count
        ws.run(COMMAND)
        names = calls.names[start:]
    assert len(names) > 150
    seen = set()
    before = stages()
    for number in some_of(names, every):
        root = make(tmp_path / f"tree{number}")
        child = os.fork()
        if child == 0:
            status = 1
            try:
                ws = Workspace(root, policy=POLICY)
                calls.at = calls.count + number
                ws.run(COMMAND)
                status = 0
            finally:
                os._exit(status)
        os.waitpid(child, 0)
        with Workspace(root, policy=POLICY) as ws:
            state = snapshot(root)
            assert state in both, f"killed at call {number}, {names[number - 1]}: {sorted(state)}"
            seen.add(both.index(state))
            # The next command removes the stage, and what is left of its sandbox, or the one after it, if the
            # copy of the killed process that becomes the sandbox has held the lock until now.
            end = time.monotonic() + 10
            ws.run("true", preview=True)
            while processes_below(root):
                assert time.monotonic() < end, f"killed at call {number}, {names[number - 1]}"
                ws.run("true", preview=True)
        assert str(root) not in Path("/proc/self/mountinfo").read_text()
    assert seen == {0, 1}
    left = stages() - before
    while left & stages():  # other tests have some meanwhile
        assert time.monotonic() < end + 30
        time.sleep(0.05)


def make(root: Path) -> Path:
    fresh(root)
    return root
