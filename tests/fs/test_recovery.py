"""Recovery logs: a batch is undone only in its own root, and protected files are not changed."""

import json
import os
import shutil
from pathlib import Path

import pytest

from agentfs import AgentFSError, Policy, Workspace
from agentfs.fs import lock, recovery_log, revision_of, syscalls
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
    """Let a process die after it creates three files as one, before it notes the end; return its log."""
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
    """Rename a log to that of another directory, as if the inode were reused."""
    log.rename(log.with_name(f"repair-{identity(top)}-0"))


@pytest.mark.parametrize("name", ["root", "other"])
@pytest.mark.parametrize("birth_time", [True, False])
def test_a_recovery_log_of_a_directory_that_is_gone_deletes_nothing_in_the_next(
    tmp_path, monkeypatch, name, birth_time
):
    if not birth_time:  # as on some network file systems: then the path and the second names decide
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
        assert "was undone" in ws.recovery_notes[0]
        assert not snapshot(top)
    assert not logs_of(top)


def test_the_only_copy_of_a_file_is_kept_while_its_directory_cannot_be_restored(tmp_path):
    top = tmp_path / "root"
    put(top, {"d/e/f": "the only copy\n"})
    before = snapshot(top)
    child = os.fork()
    if child == 0:
        recovery_log.RecoveryLog.note_left = lambda *_: os._exit(9)
        with Workspace(top) as ws:
            ws.delete("d", recursive=True)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    put(top, {"d": "another program's\n"})
    for _ in range(2):
        with Workspace(top) as ws:
            assert any('"d/e/f" could not be undone' in note for note in ws.recovery_notes)
        assert b"the only copy\n" in [path.read_bytes() for path in top.rglob(".agentfs-*") if path.is_file()]
    (top / "d").unlink()
    (top / "d").mkdir()
    with Workspace(top) as ws:
        assert any('"d/e/f" was undone' in note for note in ws.recovery_notes), ws.recovery_notes
        assert snapshot(top).keys() == before.keys()
        assert (top / "d/e/f").read_text() == "the only copy\n"
    assert not logs_of(top)
    assert not list(top.rglob(".agentfs-*"))


def test_a_killed_replacement_of_a_file_by_a_directory_with_entries_is_undone_at_once(tmp_path):
    """The first repair left an empty directory, because it restored the file before it removed the entry."""
    top, state = tmp_path / "root", tmp_path / "state"
    put(top, {"d/e": "entry\n"})
    with Workspace(top, state=state) as ws, ws.recording("a command"):
        shutil.rmtree(top / "d")
        put(top, {"d": "a file\n"})
    child = os.fork()
    if child == 0:
        recovery_log.RecoveryLog.note_left = lambda *_: os._exit(9)
        with Workspace(top, state=state) as ws:
            ws.undo()
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    assert (top / "d/e").exists()
    with Workspace(top, state=state) as ws:
        assert 'an unfinished change of "d", "d/e" was undone' in ws.recovery_notes
    assert (top / "d").read_text() == "a file\n"
    assert [*snapshot(top)] == ["d"]


def test_a_batch_is_undone_even_if_its_directory_was_renamed(tmp_path):
    killed_after_creating(tmp_path / "root")
    (tmp_path / "root").rename(tmp_path / "renamed")
    with Workspace(tmp_path / "renamed"):
        assert not snapshot(tmp_path / "renamed")


def test_a_file_that_replaced_one_of_a_killed_batch_is_kept_even_with_equal_content(tmp_path):
    top = tmp_path / "root"
    killed_after_creating(top)
    (top / "z").unlink()
    (top / "z").write_text(NEW["z"])
    with Workspace(top) as ws:
        assert any('later changes of "z" by another program were kept' in note for note in ws.recovery_notes)
        assert snapshot(top).keys() == {"z"}


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A home directory that contains a project."""
    top = tmp_path / "home"
    (top / "project" / ".git" / "hooks").mkdir(parents=True)
    monkeypatch.setattr(syscalls, "home_of", lambda _: str(top))
    monkeypatch.setenv("HOME", str(top))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    return top


HOOK = "#!/bin/sh\ntouch planted\n"


def forged_log(project: Path) -> str:
    """A forged log that restores a git hook from a second name, which the model wrote."""
    second, node = ".agentfs-0123456789abcdef.part", ["file", 0o755, revision_of(HOOK.encode()), len(HOOK)]
    (project / second).write_text(HOOK)
    (project / second).chmod(0o755)
    rows = [[".git/hooks/pre-commit", node, None, "", second, "", 0]]
    log = {"version": recovery_log._VERSION, "root": str(project), "rows": rows}
    handle = os.open(project, os.O_RDONLY)
    log["born"] = syscalls.birth_time(handle)
    os.close(handle)
    return json.dumps(log)


def test_a_forged_recovery_log_plants_no_hook(home):
    project = home / "project"
    log = home / ".cache" / "agentfs" / "locks" / f"repair-{identity(project)}-0123456789abcdef"
    content = forged_log(project)
    with Workspace(home, policy=Policy(overwrite="always")) as ws, pytest.raises(AgentFSError) as refused:
        ws.write(str(log), content)
    assert refused.value.code == "protected"
    assert not log.exists()
    log.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    log.write_text(content)  # forged
    with Workspace(project) as ws:
        assert "is protected" in ws.recovery_notes[0]
    assert not (project / ".git/hooks/pre-commit").exists()


def test_a_log_with_foreign_second_names_is_ignored(home):
    """A log with another file as a second name would remove that file."""
    project = home / "project"
    (project / "precious").write_text("x")
    log = json.loads(forged_log(project))
    log["rows"] = [["a", None, ["link", "b"], "precious", "", "", 0]]
    place = home / ".cache" / "agentfs" / "locks" / f"repair-{identity(project)}-0"
    place.parent.mkdir(parents=True, mode=0o700)
    place.write_text(json.dumps(log))
    with Workspace(project):
        assert (project / "precious").exists()


OWN = (".cache/agentfs/locks", "kept/state")


@pytest.mark.parametrize("own", OWN)
def test_no_workspace_changes_the_directories_of_agentfs(home, own):
    state = home / "kept" / "state"
    with Workspace(home / "project", state=state) as ws:
        ws.write("a", "x\n")
    (home / OWN[0] / "sessions").mkdir()
    above = Path(own).parts[0]
    (home / "alias").symlink_to(own)
    with Workspace(home, policy=Policy(overwrite="always")) as ws:
        before = snapshot(home / own)
        ws.write("made/agentfs/locks/repair-1", "{}")
        attacks = {
            "write": lambda: ws.write(f"{own}/x", "x"),
            "deeper": lambda: ws.write(f"{OWN[0]}/sessions/named/x", "x"),
            "link": lambda: ws.write("alias/x", "x"),
            "move": lambda: ws.move(own, "moved"),
            "move what is above": lambda: ws.move(above, "moved"),
            "move into it": lambda: ws.move("made", f"{own}/made"),
            "delete": lambda: ws.delete(own),
            "another case": lambda: ws.write("made/AgentFS.lock", "x"),
        }
        for name, attack in attacks.items():
            with pytest.raises(AgentFSError) as refused:
                attack()
            code = refused.value.code
            assert code == "protected" or (name == "delete" and code == "not_a_file"), name
        with ws.transaction() as tx, pytest.raises(AgentFSError):
            tx.write(f"{own}/x", "x")
        assert snapshot(home / own) == before
        for each in before:
            with pytest.raises(AgentFSError):
                ws.delete(f"{own}/{each}")
    assert snapshot(home / own) == before


@pytest.mark.parametrize("inner", ["", "sessions"])
def test_a_root_in_a_directory_of_agentfs_must_be_read_only(home, inner):
    top = home / ".cache" / "agentfs" / "locks" / inner
    top.mkdir(parents=True, mode=0o700)
    with pytest.raises(AgentFSError) as refused:
        Workspace(top)
    assert refused.value.code == "refused"
    Workspace(top, policy=Policy(read_only=True)).close()
