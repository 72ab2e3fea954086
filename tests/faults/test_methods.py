"""Each method, while one system call fails: the old or the new state, and a typed error."""

import contextlib
import errno
import gc
import itertools
import os
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentfs import AgentFSError, Workspace
from agentfs.errors import FileIOError
from agentfs.fs import lock, syscalls
from tests import kit
from tests.conftest import part_or_all
from tests.faults.calls import CHANGES, CountedCalls, LeftOut, descriptors, fail_with, fresh
from tests.history.judges import snapshot

ERRNOS = [
    *(errno.EIO, errno.ENOSPC, errno.EMFILE, errno.EACCES, errno.EDQUOT, errno.EXDEV, errno.EPERM),
    *(errno.EBUSY, errno.EROFS, errno.ESTALE, errno.ENOMEM, errno.ENFILE),
]
LOOKING = {"fstat", "stat", "lstat", "close", "open", "listdir", "scandir", "unlink"}


READS: dict[str, Callable[[Workspace], Any]] = {
    "read": lambda ws: ws.read("f"),
    "read missing": lambda ws: ws.read("ff"),
    "read directory": lambda ws: ws.read("."),
    "ls": lambda ws: ws.ls(depth=0, include_ignored=True),
    "glob": lambda ws: ws.glob("**", include_ignored=True),
    "find": lambda ws: kit.find(ws, size="+0", follow_symlinks=True),
    "grep": lambda ws: ws.grep("old"),
    "grep one": lambda ws: ws.grep("old", "f"),
    "grep none": lambda ws: ws.grep("nowhere"),
    "preview": lambda ws: ws.edit("f", "old", "new", preview=True),
    "changes": lambda ws: ws.changes(),
    "containment": lambda ws: ws.containment,
}


def run(top: Path, seam: CountedCalls, before, call, at: int) -> str:
    """Make the calls while one system call fails; return the code of the error, or "ok"."""
    with Workspace(top) as ws:
        before(ws)
        held = descriptors()
        seam.names.clear()
        seam.at, seam.hit = at, ""
        try:
            call(ws)
        except AgentFSError as error:
            code = error.code
        except LeftOut:
            code = "left out"
        else:
            code = "ok"
        seam.at = -1
        assert descriptors() <= held, "a descriptor was left open"
    assert not lock._locks.held
    return code


@pytest.fixture
def seam(monkeypatch):
    """Makes a system call fail. A close that fails closes all the same."""
    gc.collect()  # do not count descriptors of other tests
    return CountedCalls(monkeypatch, fail_with(0), after={"close"})


def points(total: int, every: bool) -> list[tuple[int, int]]:
    """Return pairs of a system call and an errno: some calls with one errno, or each with each."""
    if every:
        return [(at, number) for at in range(1, total + 1) for number in ERRNOS]
    step = 1 + total // 25
    return [(at, ERRNOS[at % len(ERRNOS)]) for at in range(1, total + 1, step)]


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.long)])
@pytest.mark.parametrize("name", list(CHANGES))
def test_a_change_with_a_failing_call_is_made_or_not_made(tmp_path, seam, name, every):
    before, call = CHANGES[name]
    top = fresh(tmp_path / "root")
    with Workspace(top) as ws:
        before(ws)
    old = snapshot(top)
    top = fresh(top)
    assert run(top, seam, before, call, -1) == "ok"
    new, total = snapshot(top), seam.count
    assert old != new
    failed, faults = 0, points(total, every)
    for at, number in faults:
        seam.act = fail_with(number)
        outcome = run(fresh(top), seam, before, call, at)
        state = snapshot(top)
        where = f"{name}: {seam.hit} {errno.errorcode[number]} at {at} of {total}: {outcome}"
        strays = {path for path in state if ".agentfs-" in path}
        # A second name stays only if its removal failed.
        assert not strays or seam.hit in LOOKING, (where, strays)
        state = {path: what for path, what in state.items() if path not in strays}
        assert outcome == "left out" or state == (new if outcome == "ok" else old), (where, sorted(state))
        failed += outcome != "ok"
        with Workspace(top) as ws:
            assert not ws.recovery_notes, where
    assert failed > len(faults) / 6


@part_or_all(4)
@pytest.mark.parametrize("name", list(READS))
def test_a_read_with_a_failing_call_raises_a_typed_error_or_says_what_it_left_out(
    tmp_path, seam, name, every
):
    top = fresh(tmp_path / "root")
    whole = snapshot(top)
    run(top, seam, lambda ws: None, READS[name], -1)
    total = seam.count
    faults = itertools.product(range(1, total + 1), (errno.EIO, errno.EMFILE, errno.EACCES))
    for at, number in itertools.islice(faults, 0, None, every):
        seam.act = fail_with(number)
        run(top, seam, lambda ws: None, READS[name], at)
    assert snapshot(top) == whole


def test_a_root_that_cannot_be_opened_fails_with_a_typed_error(tmp_path, seam):
    top = fresh(tmp_path / "root")
    seam.names.clear()
    Workspace(top).close()
    for at in range(1, seam.count + 1):
        held = descriptors()
        seam.names.clear()
        seam.at, seam.act = at, fail_with(errno.EMFILE)
        with contextlib.suppress(FileIOError):
            Workspace(top).close()
        seam.at = -1
        assert descriptors() <= held


@pytest.mark.parametrize("name", list(CHANGES))
def test_short_reads_and_writes_are_completed(tmp_path, monkeypatch, name):
    """Reads and writes return at most three bytes."""
    before, call = CHANGES[name]
    with Workspace(fresh(tmp_path / "whole")) as ws:
        before(ws)
        call(ws)
    write, pread, preadv = os.write, os.pread, os.preadv
    monkeypatch.setattr(os, "write", lambda fd, content: write(fd, bytes(content)[:3]))
    monkeypatch.setattr(os, "pread", lambda fd, size, at: pread(fd, min(size, 3), at))
    monkeypatch.setattr(syscalls, "read_at", lambda fd, into, at: preadv(fd, [into[0][:3]], at))
    with Workspace(fresh(tmp_path / "short")) as ws:
        before(ws)
        call(ws)
    assert snapshot(tmp_path / "short") == snapshot(tmp_path / "whole")


def test_a_file_size_limit_leaves_the_old_file(tmp_path):
    (tmp_path / "f").write_text("old\n")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with Workspace(tmp_path) as ws:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
        try:
            kit.refused(lambda: ws.edit("f", "old", "new" * 100_000), "io")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert os.listdir(tmp_path) == ["f"]
    assert (tmp_path / "f").read_text() == "old\n"
