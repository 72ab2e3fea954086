"""System calls fail by the injection of strace, also those that Python and the C library make themselves."""

import os
import re
from pathlib import Path

import pytest

from tests.faults.tracing import needs_tracing, numbered, run_traced

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


def test_an_interrupted_call_is_repeated(tmp_path):
    tree = fresh(tmp_path, "tree")
    inject = [f"{call}:error=EINTR:when=1" for call in ("write", "fsync", "flock", "openat", "fchmod")]
    assert change_under(tree, "f", tmp_path / "log", *inject) == "done"
    assert state_of(tree, "f") == "new"


@pytest.mark.parametrize(("numbers", "every"), [
    (("EINTR", "EMFILE", "EIO", "EXDEV"), 9),
    *(
        pytest.param((number,), 1, marks=pytest.mark.long)
        for number in ("EINTR", "EMFILE", "EIO", "EXDEV", "ENOSPC", "EDQUOT", "EACCES")
    ),
])  # fmt: skip
@pytest.mark.parametrize("path", ["f", "new/x"])
def test_calls_of_a_change_fail_in_turn(tmp_path, path, numbers, every):
    names = calls_of(fresh(tmp_path, "whole"), path, tmp_path / "log")
    # The last `close` unlocks the file; the write after it is the message "done".
    points = numbered(names[: len(names) - names[::-1].index("close")])
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
