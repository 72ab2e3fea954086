"""Recovery logs: only the directory that a batch was made in is repaired, and nothing that is protected."""

import json
import os
import shutil
from pathlib import Path

import pytest

from agentfs import AgentFSError, Policy, Workspace
from agentfs.fs import lock, recovery_log, syscalls
from tests.history.judges import snapshot

NEW = {"made/x": "one\n", "made/y": "two\n", "z": "three\n"}


def identity(path: Path) -> str:
    status = path.stat()
    return f"{status.st_dev:x}-{status.st_ino:x}"


def locks() -> Path:
    return Path(lock.lock_directory("/nowhere") or "")


def logs_of(top: Path) -> list[Path]:
    return list(locks().glob(f"repair-{identity(top)}-*"))


def killed_after_creating(top: Path) -> Path:
    """A process creates three files as one, and dies before it says that it is done; return its log."""
    top.mkdir()
    child = os.fork()
    if child == 0:
        recovery_log.RecoveryLog.note_left = lambda *_: os._exit(9)
        with Workspace(top) as ws, ws.transaction() as tx:
            for path, text in NEW.items():
                tx.write(path, text)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    (log,) = logs_of(top)
    return log


def put(top: Path, files: dict[str, str]) -> None:
    for path, text in files.items():
        (top / path).parent.mkdir(parents=True, exist_ok=True)
        (top / path).write_text(text)


def give_log_to(top: Path, log: Path) -> None:
    """Do what the reuse of an inode does: the log has the name for another directory."""
    log.rename(log.with_name(f"repair-{identity(top)}-0"))


@pytest.mark.parametrize("name", ["root", "other"])
@pytest.mark.parametrize("birth_time", [True, False])
def test_a_recovery_log_of_a_directory_that_is_gone_deletes_nothing_in_the_next(
    tmp_path, monkeypatch, name, birth_time
):
    if not birth_time:  # as on some network file systems; then the path decides, and the second names
        monkeypatch.setattr(syscalls, "birth_time", lambda _: None)
    log = killed_after_creating(tmp_path / "root")
    shutil.rmtree(tmp_path / "root")
    top = tmp_path / name
    top.mkdir()
    (top / "empty").mkdir()
    put(top, NEW)
    give_log_to(top, log)
    before = snapshot(top)
    for _ in range(2):
        with Workspace(top):
            assert snapshot(top) == before


def test_files_that_a_killed_batch_created_are_removed(tmp_path):
    top = tmp_path / "root"
    killed_after_creating(top)
    assert (top / "z").exists()
    with Workspace(top) as ws:
        assert "was taken back" in ws.recovery_notes[0]
        assert not snapshot(top)
    assert not logs_of(top)


def test_a_batch_is_taken_back_although_its_directory_has_another_path_now(tmp_path):
    killed_after_creating(tmp_path / "root")
    (tmp_path / "root").rename(tmp_path / "renamed")
    with Workspace(tmp_path / "renamed"):
        assert not snapshot(tmp_path / "renamed")


def test_a_file_that_replaced_one_of_a_killed_batch_is_kept_although_its_content_is_the_same(tmp_path):
    top = tmp_path / "root"
    killed_after_creating(top)
    (top / "z").unlink()
    (top / "z").write_text(NEW["z"])
    with Workspace(top) as ws:
        assert any('changed "z"' in note for note in ws.recovery_notes)
        assert snapshot(top).keys() == {"z"}
