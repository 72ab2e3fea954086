"""System calls fail by the injection of strace, also those that Python and the C library make themselves."""

import os
from pathlib import Path

import pytest

from tests.faults.tracing import calls_in, needs_tracing, numbered, run_traced

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


SAID = {"done", "FileIOError", "DeniedError", "RefusedError", "NotFoundError", "BusyError"}
pytestmark = needs_tracing


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
    assert run_traced(CHANGE, [tree, "f"], tmp_path / "log", *inject) == "done"
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
    log = tmp_path / "log"
    assert run_traced(CHANGE, [fresh(tmp_path, "whole"), path], log) == "done"
    names = calls_in(log)
    # The last `close` unlocks the file; the write after it is the message "done".
    points = numbered(names[: len(names) - names[::-1].index("close")])
    before, after = ("old", "new") if path == "f" else ("none", "new")
    for number, (name, at) in enumerate(points[::every]):
        tree = fresh(tmp_path, str(number))
        fault = f"{name}:error={numbers[number % len(numbers)]}:when={at}"
        said = run_traced(CHANGE, [tree, path], log, fault)
        assert state_of(tree, path) == (after if said == "done" else before), (fault, said)
        assert said in SAID, fault
        if name not in {"unlink", "unlinkat"}:
            assert not [name for name in os.listdir(tree) if ".agentfs-" in name], fault
