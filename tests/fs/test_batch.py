"""Several changes as one: the modes of directories come back, whatever way leads back."""

import errno
import os
import stat
from pathlib import Path

import pytest

from agentfs import AgentFSError, Policy, Workspace
from agentfs.errors import FileIOError, StaleError
from agentfs.fs import Change, DirectoryNode, FileNode, Root


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def private(tmp_path: Path) -> Path:
    """A root with a file and an empty directory that only its owner may enter."""
    top = tmp_path / "root"
    (top / "empty").mkdir(parents=True)
    (top / "empty").chmod(0o700)
    (top / "f").write_text("f\n")
    return top


@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize(
    "refill",
    [lambda ws: ws.write("empty/in", "x"), lambda ws: ws.move("f", "empty/in")],
    ids=["write", "move"],
)
@pytest.mark.parametrize(
    "back", [lambda ws: ws.undo(2), lambda ws: (ws.undo(), ws.undo()), lambda ws: ws.rollback("start")]
)
def test_a_directory_that_was_deleted_and_made_again_gets_its_mode_back(
    private, tmp_path, back, refill, persistent
):
    """Undone at once, the two steps leave a directory in place of a directory, whose mode has changed."""
    with Workspace(private, state=tmp_path / "state" if persistent else None) as ws:
        ws.checkpoint("start")
        ws.delete("empty")
        refill(ws)
        made = mode_of(private / "empty")
        assert made != 0o700
        back(ws)
        assert os.listdir(private / "empty") == []
        assert mode_of(private / "empty") == 0o700
        ws.redo(2)
        assert os.listdir(private / "empty") == ["in"]
        assert mode_of(private / "empty") == made


def test_the_mode_of_a_directory_is_part_of_what_changed(private):
    with Workspace(private) as ws:
        ws.delete("empty")
        ws.write("empty/in", "x")
        ws.delete("empty/in")
        assert [(file.path, file.action) for file in ws.changes().files] == [("empty", "changed")]
        assert ws.changes().patch == b""


def conflict(change: Change, _: object) -> AgentFSError:
    return StaleError(change.path)


def test_a_batch_that_fails_brings_the_mode_of_a_removed_directory_back(private, monkeypatch):
    real = os.rmdir

    def rmdir(path, **options):
        real(path, **options)
        raise OSError(errno.EIO, "broken after it was done")

    monkeypatch.setattr(os, "rmdir", rmdir)
    changes = [Change("empty", DirectoryNode(0o700), None), Change("g", None, FileNode.of(0o644, b"g\n"))]
    with Root(private, Policy()) as root, pytest.raises(FileIOError):
        root.apply(changes, max_bytes=100, conflict=conflict)
    assert mode_of(private / "empty") == 0o700
    assert sorted(os.listdir(private)) == ["empty", "f"]


def test_a_directory_that_somebody_else_has_made_again_keeps_its_mode(private):
    with Workspace(private) as ws:
        ws.delete("empty")
        (private / "empty").mkdir(mode=0o750)
        (private / "empty").chmod(0o750)
        ws.undo()
    assert mode_of(private / "empty") == 0o750
