"""Many threads on one workspace: the journal and the disk agree, and all of it can be undone."""

import random
import shutil
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from agentfs import AgentFSError, Policy, Workspace
from tests.conftest import needs
from tests.history.judges import as_git_sees, git_applied, random_call, snapshot
from tests.kit import put

THREADS = 16
FILES = ["a", "b", "run.sh", "d/one", "d/two", "d/e/deep", "link", "new/x", "new/y/z", "new/y/w", "other/q"]
DIRECTORIES = ["d/e", "new/y", "new", "other", "empty"]
# What one call may make of what others do at the same time. Anything else is a fault.
EXPECTED = {
    *("already_exists", "ambiguous", "busy", "invalid_argument", "no_change", "no_match", "not_a_directory"),
    *("not_a_file", "not_found", "overlap", "refused", "stale", "unknown_line", "unread"),
    "conflict",  # of a transaction, at its end
}


def original(top: Path) -> None:
    (top / "d" / "e").mkdir(parents=True)
    (top / "empty").mkdir(mode=0o700)
    (top / "a").write_bytes(b"one\ntwo\nthree\n")
    (top / "run.sh").write_bytes(b"#!/bin/sh\necho\n")
    (top / "run.sh").chmod(0o755)
    put(top, {"d/one": b"caf\xe9\nlatin\n", "d/e/deep": b""})
    (top / "link").symlink_to("d/one")


def round_of_calls(ws: Workspace, seconds: float, calls: int | None, seed: int) -> Counter[str]:
    """Let all threads call at random, and count what came of it."""
    end = time.monotonic() + seconds
    counts: Counter[str] = Counter()
    faults: list[BaseException] = []

    def work(number: int) -> None:
        draw = random.Random(seed * 1000 + number)
        made = 0
        while time.monotonic() < end and not faults and made != calls:
            made += 1
            try:
                random_call(ws, draw, FILES, DIRECTORIES)
            except KeyError:
                counts["raised by the block"] += 1
            except AgentFSError as error:
                counts[error.code] += 1
                if error.code not in EXPECTED:
                    faults.append(error)
            except BaseException as error:  # noqa: BLE001 - handed to the test below
                faults.append(error)
            else:
                counts["done"] += 1

    threads = [threading.Thread(target=work, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if faults:
        raise faults[0]
    return counts


def steps_of(ws: Workspace) -> tuple[int, int]:
    """Return how many steps can be undone, and redone."""
    ws.checkpoint("count")
    undone = ws.rollback("count")
    return undone.undoable, undone.redoable


def check_whole(ws: Workspace, top: Path, first: Path, scratch: Path) -> int:
    """Check that the journal says what the disk holds, undo all of it, and make it again."""
    before = snapshot(top)
    assert not [name for name in before if ".agentfs-" in name]
    changes = ws.changes()
    assert changes.notes == ()
    assert as_git_sees(git_applied(first, changes.patch, scratch)) == as_git_sees(before)
    ws.checkpoint("last")
    steps = ws.rollback("first").steps
    # A directory that one thread removes while another writes in it stays, and is named.
    assert files_of(snapshot(top)) == files_of(snapshot(first))
    ws.rollback("last")
    assert files_of(snapshot(top)) == files_of(before)
    return steps


def files_of(tree: dict[str, Any]) -> dict[str, Any]:
    return {path: entry for path, entry in tree.items() if entry[0] != "directory"}


def soak(
    tmp_path: Path, *, rounds: int | None, seconds: float, calls: int | None, state: bool
) -> Counter[str]:
    top, first = tmp_path / "root", tmp_path / "original"
    top.mkdir()
    original(top)
    shutil.copytree(top, first, symlinks=True)
    policy = Policy(overwrite="always")
    total: Counter[str] = Counter()
    end, seed, kept = time.monotonic() + seconds, 0, tmp_path / "state" if state else None
    while rounds != seed and time.monotonic() < end:
        seed += 1
        ws = Workspace(top, policy=policy, state=kept)
        ws.checkpoint("first")
        total += round_of_calls(ws, min(5.0, seconds), calls, seed)
        if state:
            known = steps_of(ws), snapshot(top)
            ws.close()
            ws = Workspace(top, policy=policy, state=kept)
            assert ws.recovery_notes == ()
            assert (steps_of(ws), snapshot(top)) == known
        total["steps undone"] += check_whole(ws, top, first, tmp_path / "scratch")
        ws.close()
        total["rounds"] += 1
    return total


@pytest.mark.full
@needs("git")
@pytest.mark.parametrize("state", [False, True], ids=["memory", "state"])
@pytest.mark.parametrize(
    ("rounds", "seconds", "calls"), [(1, 60, 25), pytest.param(None, 150, None, marks=pytest.mark.long)]
)
def test_a_journal_that_many_threads_write_can_be_undone_to_the_beginning(
    tmp_path, state, rounds, seconds, calls
):
    total = soak(tmp_path, rounds=rounds, seconds=seconds, calls=calls, state=state)
    print(dict(total))  # noqa: T201 - the figures, with -s
    assert total["rounds"] >= 1
    assert total["done"] > 100
