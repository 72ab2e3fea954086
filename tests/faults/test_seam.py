"""Each system call of a change fails: the old or the new file is whole, without leftovers or leaks."""

import contextlib
import errno
import os
import resource

import pytest

from agentfs import AgentFSError, Policy
from agentfs.fs import Root, lock
from tests.faults.calls import CountedCalls, fail_with
from tests.fs.mechanisms import change

ERRNOS = [errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EACCES, errno.EXDEV, errno.EMFILE, errno.EPERM]
# System calls of a change, by their names in `os`. Each of their calls fails in turn.
CALLS = ["open", "write", "pread", "fstat", "fchmod", "fsync", "close", "replace", "mkdir", "stat"]
OLD, NEW = b"old content\n", b"new content, and longer\n"


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def attempt(root: Root, path: str) -> str:
    try:
        change(root, path, lambda _: NEW, max_bytes=999)
    except AgentFSError as error:
        return error.code
    return "ok"


@pytest.mark.parametrize("path", ["f", "new/deep/x"])
@pytest.mark.parametrize("call", CALLS)
def test_a_failure_of_any_call_leaves_old_or_new(tmp_path, monkeypatch, call, path):
    outcomes = set()
    for number in ERRNOS:
        for at in range(1, 40):
            tree = tmp_path / f"{number}-{at}"
            tree.mkdir()
            (tree / "f").write_bytes(OLD)
            with Root(tree, Policy()) as root:
                before = descriptors()
                # A close that fails closes all the same.
                calls = CountedCalls(monkeypatch, fail_with(number), [call], after={"close"})
                calls.at = at
                outcome = attempt(root, path)
                monkeypatch.undo()
                assert descriptors() <= before, (number, at)
            outcomes.add(outcome)
            names = sorted(name for _, _, names in os.walk(tree) for name in names)
            content = (tree / path).read_bytes() if (tree / path).exists() else None
            if outcome == "ok":
                assert content == NEW
                assert names == (["f"] if path == "f" else ["f", "x"])
            else:
                assert content in ({OLD, NEW} if path == "f" else {None, NEW})
                assert names in (["f"], ["f", "x"]), (call, at, names)
            if calls.at > 0:  # there are fewer calls
                break
    assert not lock._locks.held
    assert "ok" in outcomes
    # Only a file that may not be opened for writing is refused.
    assert outcomes <= {"ok", "io", "busy"} | ({"refused"} if call == "open" else set())


def test_short_writes_and_interrupted_calls_are_repeated(tmp_path, monkeypatch):
    real = os.write
    (tmp_path / "f").write_bytes(OLD)
    monkeypatch.setattr(os, "write", lambda fd, view: real(fd, view[:3]))
    with Root(tmp_path, Policy()) as root:
        assert attempt(root, "f") == "ok"
    monkeypatch.undo()
    assert (tmp_path / "f").read_bytes() == NEW


def test_a_file_size_limit_leaves_the_old_file(tmp_path):
    (tmp_path / "f").write_bytes(OLD)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with Root(tmp_path, Policy()) as root:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
        try:
            with pytest.raises(AgentFSError) as caught:
                change(root, "f", lambda _: bytes(100_000), max_bytes=999)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert caught.value.code == "io"
    assert os.listdir(tmp_path) == ["f"]
    assert (tmp_path / "f").read_bytes() == OLD


def test_a_lack_of_descriptors_leaves_the_old_file(tmp_path):
    (tmp_path / "f").write_bytes(OLD)
    with Root(tmp_path, Policy()) as root:
        change(root, "g", lambda _: b"", max_bytes=9)
        held = []
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors() + 20, hard))
        try:
            with contextlib.suppress(OSError):
                while True:
                    held.append(os.open("/", os.O_RDONLY))
            outcomes = []
            while held:
                outcomes.append(attempt(root, "f"))
                os.close(held.pop())
                if outcomes[-1] == "ok":
                    break
        finally:
            for fd in held:
                os.close(fd)
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert set(outcomes[:-1]) <= {"io"}
    assert sorted(os.listdir(tmp_path)) == ["f", "g"]
    assert (tmp_path / "f").read_bytes() == (NEW if outcomes[-1] == "ok" else OLD)
