"""A change of many files is killed, or fails, at each of its calls: all is old or all is new."""

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from agentfs import AgentFSError, Workspace
from agentfs.errors import ConflictError
from agentfs.fs import apply, syscalls
from tests.conftest import part_or_all
from tests.editing import test_move_directory
from tests.faults.calls import RepeatedChange, check_kills, count_failures, fail_with
from tests.history.judges import snapshot


def files_to_replace(top: Path) -> None:
    for name, text in {"a": "old a\n", "d/b": "old\nold\n", "d/e/c": "x\nold\n", "f": "nothing\n"}.items():
        path = top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        os.utime(path, (1, 1))  # long ago, so that a second name looks stale


def ten_files(top: Path) -> None:
    for number in range(10):
        path = top / f"d{number % 3}" / f"{number}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"old {number}\nkept\n")


PATCH = "".join(
    [
        "*** Begin Patch\n",
        *(f"*** Update File: d{each % 3}/{each}\n@@\n-old {each}\n+new {each}\n" for each in range(8)),
        "*** Delete File: d2/8\n*** Add File: new/9\n+new\n*** End Patch\n",
    ]
)


def patch(ws: Workspace) -> None:
    result = ws.tools(dialect="apply-patch").call("apply_patch", {"input": PATCH})
    if not result.success:
        raise ConflictError(result.content)


class Case(NamedTuple):
    """A change, and the errors with which its calls fail."""

    fresh: Callable[[Path], object]  # creates the tree before the change
    change: Callable[[Workspace], object]
    failures: tuple[int, ...]
    share: float = 1 / 3  # more of these calls make the change fail
    before: Callable[[Workspace], object] = lambda ws: None
    left_out: Callable[[Any], object] = lambda done: False
    back: Callable[[Workspace], object] = lambda ws: ws.undo()  # takes the change back
    is_named: bool = True

    def at(self, top: Path) -> RepeatedChange:
        given = self.fresh, self.change, self.before, self.left_out, self.back, self.is_named
        return RepeatedChange(top, *given)


CASES = {
    "edit": Case(files_to_replace, lambda ws: ws.edit("d/e/c", "old", "new"), (errno.EIO, errno.ENOSPC)),
    "write": Case(files_to_replace, lambda ws: ws.write("x/y/new", "new\n"), (errno.EIO, errno.ENOSPC)),
    "patch": Case(ten_files, patch, (errno.ENOSPC,), is_named=False),
    "undo": Case(ten_files, lambda ws: ws.undo(), (errno.EIO,), before=patch, back=lambda ws: ws.redo()),
    "delete": Case(test_move_directory.fresh, lambda ws: ws.delete("d", recursive=True), (errno.EIO,)),
    "move": Case(test_move_directory.fresh, lambda ws: ws.move("d", "x/new"), (errno.EIO,)),
    "replace": Case(
        files_to_replace,
        lambda ws: ws.replace("old", "new"),
        (errno.ENOSPC,),
        left_out=lambda done: done.skipped.unreadable,
    ),
}


@pytest.fixture(
    params=[
        pytest.param(name, marks=[pytest.mark.full] * (name in {"patch", "undo", "replace"}))
        for name in CASES
    ]
)
def case(request):
    return CASES[request.param]


@pytest.fixture
def change(case, tmp_path):
    return case.at(tmp_path / "root")


@pytest.fixture
def both(case, tmp_path):
    """Snapshots of the tree before the change and after it."""
    change = case.at(tmp_path / "model")
    change.fresh(change.top)
    with Workspace(change.top) as ws:
        change.before(ws)
        old = snapshot(change.top)
        change.change(ws)
        new = snapshot(change.top)
        change.back(ws)
        assert snapshot(change.top) == old
    assert new != old
    return old, new


@part_or_all(9000, full=200)
def test_a_kill_before_a_call_leaves_all_old_or_all_new(change, both, monkeypatch, every):
    check_kills(change, both, monkeypatch, every)


@part_or_all(25, full=9)
def test_a_failure_of_a_call_leaves_all_old_or_all_new(case, change, both, monkeypatch, every):
    for number in case.failures:
        with monkeypatch.context() as patch:
            assert count_failures(change, both, patch, number, every) > case.share


def test_regression_a_change_that_cannot_be_reversed_stays_in_the_journal(tmp_path, monkeypatch):
    """The journal dropped its step, so nothing could take back what was made of it."""
    top, renamed, rename = tmp_path / "root", [], syscalls.replace
    files_to_replace(top)
    old = snapshot(top)

    def fail(*_, **__):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    def fail_third(handle, source, name, *, to=None):
        renamed.append(name)
        if len(renamed) == 3:
            monkeypatch.setattr(apply, "create_temporary", fail)  # the reversal cannot write the old content
            fail()
        rename(handle, source, name, to=to)

    monkeypatch.setattr(syscalls, "replace", fail_third)
    with Workspace(top, state=tmp_path / "state") as ws:
        with pytest.raises(AgentFSError, match="could not be restored") as caught:
            ws.replace("old", "new")
        assert caught.value.code == "io"
        assert len(caught.value.details["not_restored"]) == 2
        assert len(ws.changes().files) == 2
    monkeypatch.undo()
    with Workspace(top, state=tmp_path / "state") as ws:
        assert len(ws.changes().files) == 2
        ws.undo()
    assert snapshot(top) == old


@pytest.fixture
def across(monkeypatch):
    """Refuse renames of files and directories that are not temporaries, as between two file systems."""
    rename = syscalls.rename_new

    def refused(handle, source, name, *, to=None):
        if ".agentfs-" not in source:
            fail_with(errno.EXDEV)()
        rename(handle, source, name, to=to)

    monkeypatch.setattr(syscalls, "rename_new", refused)


@pytest.mark.usefixtures("across")
def test_a_file_written_while_it_is_copied_to_another_file_system_is_not_lost(tmp_path, monkeypatch):
    top, copy = tmp_path / "root", apply.create_temporary
    files_to_replace(top)

    def write(*arguments, **options):
        notes = copy(*arguments, **options)
        (top / "f").write_text("theirs\n")
        return notes

    monkeypatch.setattr(apply, "create_temporary", write)
    with Workspace(top) as ws, pytest.raises(AgentFSError) as caught:
        ws.move("f", "g")
    assert caught.value.code == "stale"
    assert (top / "f").read_text() == "theirs\n"
    assert not (top / "g").exists()


@pytest.mark.usefixtures("across")
def test_a_failed_copy_to_another_file_system_is_taken_back(tmp_path, monkeypatch):
    top = test_move_directory.fresh(tmp_path / "root")
    old = snapshot(top)
    with Workspace(top) as ws:
        with monkeypatch.context() as patch:
            rmdir = os.rmdir
            refuse = fail_with(errno.EIO)
            patch.setattr(os, "rmdir", lambda name, **at: refuse() if name == "d" else rmdir(name, **at))
            with pytest.raises(AgentFSError):
                ws.move("d", "new")
            assert snapshot(top) == old
        ws.move("d", "new")
        assert not (top / "d").exists()
        ws.undo()
    assert snapshot(top) == old
