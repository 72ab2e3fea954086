"""The program or its sandbox is killed at system calls, while a command is staged and its effects applied."""

import os
from collections import Counter
from pathlib import Path

import pytest

from agentfs import Policy, Workspace
from tests.commands.conftest import wait_for_stages
from tests.conftest import part_or_all
from tests.faults.tracing import calls_in, needs_tracing, numbered, run_traced
from tests.history.judges import Snapshot, snapshot
from tests.kit import wait_for

POLICY = Policy(run="staged")
COMMAND = "echo new > made; rm old/b; mkdir d; mv old/a d/a; ln -s d link; chmod 700 c; echo 2 >> c"
PROGRAM = """
import sys
from agentfs import AgentFSError, Policy, Workspace
policy = Policy(run="staged")
with Workspace(sys.argv[2], policy=policy) as ws:
    ws.run(sys.argv[3])  # loads all modules
with Workspace(sys.argv[1], policy=policy) as ws:
    ws.run("true")
    print("ready", flush=True)
    sys.stdin.readline()
    try:
        ws.run(sys.argv[3])
    except AgentFSError as error:
        print(error.code, flush=True)
    else:
        print("done", flush=True)
    sys.stdin.readline()
"""
OF_THE_SANDBOX = ("execve", "mount", "pivot_root", "prctl", "exit_group")

pytestmark = needs_tracing


def fresh(root: Path) -> Path:
    (root / "old").mkdir(parents=True)
    for name in ("old/a", "old/b", "c"):
        (root / name).write_text(f"{name}\n")
    return root


def processes_in(root: Path) -> list[str]:
    """Return the processes whose arguments or mounts name a tree."""
    found: list[str] = []
    for each in Path("/proc").glob("[0-9]*"):
        try:
            if int(each.name) != os.getpid() and any(
                os.fsencode(root) in (each / name).read_bytes() for name in ("cmdline", "mountinfo")
            ):
                found.append(each.name)
        except OSError:
            continue
    return found


def run_in(root: Path, log: Path, *inject: str, follow: bool = False) -> str:
    warm = fresh(root.with_name(f"{root.name}-warm"))
    return run_traced(PROGRAM, [fresh(root), warm, COMMAND], log, *inject, follow=follow)


def states(top: Path) -> list[Snapshot]:
    with Workspace(fresh(top), policy=POLICY) as ws:
        before = snapshot(top)
        ws.run(COMMAND)
        return [before, snapshot(top)]


def check_after(root: Path, both: list[Snapshot], point: str) -> str:
    """Check that all processes end, and that each file is whole; return which files the next command finds.

    Without `state=`, a kill in the middle of a batch may leave some old files and some new ones.
    """
    wait_for(lambda: not processes_in(root))
    with Workspace(root, policy=POLICY) as ws:
        ws.run("true", preview=True)
    state, (old, new) = snapshot(root), both
    if state in both:
        return ("old", "new")[both.index(state)]
    assert all(state.get(path) in (old.get(path), new.get(path)) for path in {*state, *old, *new}), point
    return "part"


@pytest.mark.full
@part_or_all(80)
def test_the_program_is_killed_at_its_calls(tmp_path, every):
    both = states(tmp_path / "model")
    assert run_in(tmp_path / "counted", tmp_path / "log") == "done"
    names = Counter(calls_in(tmp_path / "log"))
    assert sum(names.values()) > 300
    assert {"vfork", "pidfd_open", "openat", "unlinkat", "mkdirat", "flock", "fsync"} <= {*names}
    points = numbered(names.elements())
    seen: Counter[tuple[str, str]] = Counter()
    for number, (name, at) in enumerate(points[::every]):
        root, point = tmp_path / f"tree{number}", f"{name}:signal=KILL:when={at}"
        said = run_in(root, tmp_path / "log", point)
        seen[said, check_after(root, both, point)] += 1
    print(dict(seen))  # noqa: T201 - the figures, with -s
    assert {*seen} >= {("killed", "old"), ("killed", "new")}
    assert {*seen} <= {("killed", "old"), ("killed", "part"), ("killed", "new"), ("done", "new")}
    wait_for_stages()


@pytest.mark.full
@part_or_all(16)
def test_the_sandbox_is_killed_at_its_calls(tmp_path, every):
    both = states(tmp_path / "model")
    assert run_in(tmp_path / "counted", tmp_path / "log", follow=True) == "done"
    names = Counter(calls_in(tmp_path / "log"))
    points = [(name, at + 1) for name in OF_THE_SANDBOX for at in range(names[name])]
    seen: Counter[str] = Counter()
    for number, (name, at) in enumerate(points[::every]):
        root, point = tmp_path / f"tree{number}", f"{name}:signal=KILL:when={at}"
        said = run_in(root, tmp_path / "log", point, follow=True)
        state = check_after(root, both, point)
        assert state == ("new" if said == "done" else "old"), point
        seen[said] += 1
    assert {*seen} == {"io", "done"}
    wait_for_stages()


@pytest.mark.parametrize("at", range(8, 14))
def test_a_sandbox_that_is_not_finished_ends_with_its_program(tmp_path, at):
    """The program is killed while bubblewrap starts, whose child would wait for it forever."""
    root = tmp_path / "tree"
    assert run_in(root, tmp_path / "log", f"close:signal=KILL:when={at}") == "killed"
    wait_for(lambda: not processes_in(root))


@pytest.mark.full
@pytest.mark.parametrize("at", range(1, 12))
def test_regression_a_call_ends_if_bubblewrap_is_killed_while_it_starts(tmp_path, at):
    """A process of it waited for ever, with the pipe open from which the call read."""
    root = tmp_path / "tree"
    assert run_in(root, tmp_path / "log", f"prctl:signal=KILL:when={at}", follow=True) in {"io", "done"}
    wait_for(lambda: not processes_in(root))
