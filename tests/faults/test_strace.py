"""System calls fail, or the process is killed at each of them, by the injection of strace."""

import os
import re
from collections import Counter
from pathlib import Path

import pytest

from agentfs import Policy
from agentfs.fs import Root
from tests.conftest import part_or_all
from tests.faults.tracing import needs_tracing, numbered, run_traced
from tests.fs.mechanisms import change

OLD, NEW = b"old content\n" * 400, b"new content, and longer\n" * 400
CHANGE = """
import sys
from agentfs.fs import Root
from agentfs.errors import AgentFSError
from agentfs.policy import Policy
new = b"new content, and longer\\n" * 400
with Root(sys.argv[1], Policy()) as root:
    # Change once before, so that all modules are loaded.
    for content in (b"1", b"2"):
        root.update("warm", lambda now: (content, None), max_bytes=9999)
    print("ready", flush=True)
    sys.stdin.readline()
    try:
        root.update(sys.argv[2], lambda now: (new, None), max_bytes=9999)
    except (AgentFSError, OSError) as error:
        print(type(error).__name__, flush=True)
    else:
        print("done", flush=True)
    sys.stdin.readline()
"""


pytestmark = needs_tracing


def change_under(tree: Path, path: str, log: Path, *inject: str) -> str:
    """Run one change under strace; return its output, or "killed"."""
    return run_traced(CHANGE, [tree, path], log, *inject)


def calls_of(tree: Path, path: str, log: Path) -> list[str]:
    """Return the calls of one change, in order."""
    assert change_under(tree, path, log) == "done"
    # From the reply to `go`, which is not always traced, to the message "done".
    *_, calls = log.read_text().split('read(0, "go')
    return re.findall(r"^\d+ +(\w+)\(", calls, re.MULTILINE)


def fresh(tmp_path: Path, name: str) -> Path:
    tree = tmp_path / name
    tree.mkdir()
    (tree / "f").write_bytes(OLD)
    return tree


def state_of(tree: Path, path: str) -> str:
    if not (tree / path).exists():
        return "none"
    return {OLD: "old", NEW: "new"}.get((tree / path).read_bytes(), "TORN")


@pytest.mark.full
@part_or_all(3)
@pytest.mark.parametrize("path", ["f", "new/x"])
def test_a_kill_at_a_call_tears_nothing(tmp_path, path, every):
    points = numbered(calls_of(fresh(tmp_path, "whole"), path, tmp_path / "log"))
    points = [point for point in points if point[0] not in {"brk", "mmap", "munmap", "futex"}]
    assert {"write", "fsync", "flock"} <= {name for name, _ in points}

    points = points[::every]
    outcomes: Counter[tuple[str, str, int]] = Counter()
    for number, (name, at) in enumerate(points):
        tree = fresh(tmp_path, str(number))
        said = change_under(tree, path, tmp_path / "log", f"{name}:signal=KILL:when={at}")
        strays = list(tree.rglob("*.tmp"))
        with Root(tree, Policy()) as root:
            assert not list(tree.rglob("*.tmp"))
            state = state_of(tree, path)
            change(root, path, lambda _: NEW + b"2", max_bytes=1 << 20)
        outcomes[said, state, len(strays)] += 1
    allowed = {"old", "new"} if path == "f" else {"none", "new"}
    assert {state for _, state, _ in outcomes} == allowed, outcomes
    assert {strays for _, _, strays in outcomes} <= {0, 1}, outcomes
    assert sum(count for (said, _, _), count in outcomes.items() if said == "killed") > len(points) * 0.8


FAILURES = [
    *(("write", name) for name in ("ENOSPC", "EIO", "EDQUOT")),
    *(("fsync", name) for name in ("EIO", "ENOSPC")),
    *(("fchmod", name) for name in ("EPERM", "EIO")),
    *(("rename,renameat,renameat2", name) for name in ("EACCES", "EXDEV", "EBUSY")),
]


@pytest.mark.parametrize(("call", "number"), FAILURES)
def test_a_failing_call_leaves_the_old_file_and_no_temporary(tmp_path, call, number):
    tree = fresh(tmp_path, "tree")
    # The first `write` and `fsync` are those of the temporary. Only the rename follows.
    said = change_under(tree, "f", tmp_path / "log", f"{call}:error={number}:when=1")
    assert said in {"FileIOError", "DeniedError", "RefusedError"}
    assert state_of(tree, "f") == "old"
    assert sorted(os.listdir(tree)) == ["f", "warm"]


def test_an_interrupted_call_is_repeated(tmp_path):
    tree = fresh(tmp_path, "tree")
    inject = [f"{call}:error=EINTR:when=1" for call in ("write", "fsync", "flock", "openat", "fchmod")]
    assert change_under(tree, "f", tmp_path / "log", *inject) == "done"
    assert state_of(tree, "f") == "new"


@pytest.mark.parametrize(
    ("numbers", "every"),
    [
        (("EINTR", "EMFILE", "EIO", "EXDEV"), 9),
        *(
            pytest.param((number,), 1, marks=pytest.mark.long)
            for number in ("EINTR", "EMFILE", "EIO", "EXDEV", "ENOSPC", "EDQUOT", "EACCES")
        ),
    ],
)
@pytest.mark.parametrize("path", ["f", "new/x"])
def test_calls_of_a_change_fail_in_turn(tmp_path, path, numbers, every):
    """Unlike the other tests, this also fails calls that Python and the C library make themselves."""
    names = calls_of(fresh(tmp_path, "whole"), path, tmp_path / "log")
    # The last `close` unlocks the file; the write after it is the message "done".
    points = numbered(names[: len(names) - names[::-1].index("close")])
    points = [point for point in points if point[0] not in {"brk", "mmap", "munmap", "futex", "mremap"}]
    before, after = ("old", "new") if path == "f" else ("none", "new")
    for number, (name, at) in enumerate(points[::every]):
        tree = fresh(tmp_path, str(number))
        fault = f"{name}:error={numbers[number % len(numbers)]}:when={at}"
        said = change_under(tree, path, tmp_path / "log", fault)
        assert state_of(tree, path) == (after if said == "done" else before), (fault, said)
        assert said in {"done", "FileIOError", "DeniedError", "RefusedError", "NotFoundError", "BusyError"}, (
            fault
        )
        if name not in {"unlink", "unlinkat"}:
            assert not [name for name in os.listdir(tree) if ".agentfs-" in name], fault


def test_a_change_is_kept_if_its_directory_cannot_be_synced(tmp_path):
    tree = fresh(tmp_path, "tree")
    assert change_under(tree, "f", tmp_path / "log", "fsync:error=EIO:when=2") == "done"
    assert state_of(tree, "f") == "new"
