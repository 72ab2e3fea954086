"""Threads on one workspace, and processes that take turns: the journal and the disk agree, and lead back."""

import os
import random
import shutil
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from agentfs import AgentFSError, Policy, Workspace
from agentfs.errors import BusyError
from tests.conftest import needs
from tests.history.judges import FILES, as_git_sees, git_applied, original, random_call, snapshot, standing

THREADS = 16
DIRECTORIES = ["d/e", "new/y", "new", "empty"]
POLICY = Policy(overwrite="always")
# What a call may make of a binary file, and of what others do at the same time. Anything else is a fault.
EXPECTED = {
    *("already_exists", "ambiguous", "binary", "busy", "invalid_argument", "no_change", "no_match"),
    *("not_a_directory", "not_a_file", "not_found", "overlap", "refused", "stale", "unknown_line", "unread"),
    "conflict",  # of a transaction, at its end
}


def call_at_random(ws: Workspace, draw: random.Random, calls: float, end: float) -> Counter[str]:
    """Make calls until the end, and count what came of them."""
    counts: Counter[str] = Counter()
    while counts.total() < calls and time.monotonic() < end:
        try:
            random_call(ws, draw, FILES, DIRECTORIES)
            counts["done"] += 1
        except KeyError:
            counts["raised by the block"] += 1
        except AgentFSError as error:
            if error.code not in EXPECTED:
                raise
            counts[error.code] += 1
    return counts


def files_of(tree: dict[str, Any]) -> dict[str, Any]:
    """Leave out directories: one that a thread removes while another writes in it stays, and is named."""
    return {path: entry for path, entry in tree.items() if entry[0] != "directory"}


def check_whole(ws: Workspace, top: Path, first: Path) -> int:
    """Check that the journal says what the disk holds, undo all of it, and make it again."""
    before = snapshot(top)
    assert not [name for name in before if ".agentfs-" in name]
    changes = ws.changes()
    assert changes.notes == ()
    scratch = first.with_name("scratch")
    assert as_git_sees(git_applied(first, changes.patch, scratch)) == as_git_sees(before)
    ws.checkpoint("last")
    steps = ws.rollback("first").steps
    assert files_of(snapshot(top)) == files_of(snapshot(first))
    ws.rollback("last")
    assert files_of(snapshot(top)) == files_of(before)
    return steps


@pytest.mark.full
@needs("git")
@pytest.mark.parametrize("kept", [False, True], ids=["memory", "state"])
@pytest.mark.parametrize(("seconds", "calls"), [(60, 25), pytest.param(150, 10**9, marks=pytest.mark.long)])
def test_a_journal_that_many_threads_write_can_be_undone_to_the_beginning(tmp_path, kept, seconds, calls):
    top, first = original(tmp_path / "root"), original(tmp_path / "first")
    state, end = tmp_path / "state" if kept else None, time.monotonic() + seconds
    with Workspace(top, policy=POLICY, state=state) as ws, ThreadPoolExecutor(THREADS) as threads:
        ws.checkpoint("first")
        draws = [random.Random(number) for number in range(THREADS)]
        counted = list(threads.map(lambda draw: call_at_random(ws, draw, calls, end), draws))
        known = [len(steps) for steps in ws._journal.log.units()]
        if not kept:
            counted.append(Counter({"steps undone": check_whole(ws, top, first)}))
    if kept:
        with Workspace(top, policy=POLICY, state=state) as ws:
            assert ws.recovery_notes == ()
            assert [len(steps) for steps in ws._journal.log.units()] == known
            check_whole(ws, top, first)
    total = sum(counted, Counter())
    print(dict(total))  # noqa: T201 - the figures, with -s
    assert total["done"] > 100


def take_turns(top: Path, state: Path, draw: random.Random) -> None:
    """Open the workspace several times; another process may hold the state."""
    for _ in range(4):
        try:
            with Workspace(top, policy=POLICY, state=state) as ws:
                call_at_random(ws, draw, draw.randint(1, 3), time.monotonic() + 60)
        except BusyError:
            continue


@pytest.mark.full
@pytest.mark.parametrize("seeds", [range(10), pytest.param(range(500), marks=pytest.mark.long)], ids=len)
def test_two_processes_leave_a_journal_that_leads_back(tmp_path, seeds):
    for seed in seeds:
        top, state = original(tmp_path / "root"), tmp_path / "state"
        first, children = snapshot(top), []
        for which in (1, 2):
            children.append(os.fork())
            if children[-1] == 0:
                try:
                    take_turns(top, state, random.Random(2 * seed + which))
                    os._exit(0)
                finally:
                    os._exit(1)
        assert [os.waitpid(child, 0)[1] for child in children] == [0, 0]
        with Workspace(top, policy=POLICY, state=state) as ws:
            assert ws.recovery_notes == ()
            if steps := len(standing(ws)):
                ws.undo(steps)
            assert snapshot(top) == first
        for place in (top, state):
            shutil.rmtree(place)
