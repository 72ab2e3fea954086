"""No workspace changes the directories of agentfs itself: locks and states."""

from pathlib import Path

import pytest

from agentfs import AgentFSError, Policy, Workspace
from agentfs.fs import syscalls
from tests.history.judges import snapshot
from tests.kit import code_of, refused


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A home directory that contains a project."""
    top = tmp_path / "home"
    (top / "project" / ".git" / "hooks").mkdir(parents=True)
    monkeypatch.setattr(syscalls, "home_of", lambda _: str(top))
    monkeypatch.setenv("HOME", str(top))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    return top


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
            code = code_of(attack)
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
    refused(lambda: Workspace(top), "refused")
    Workspace(top, policy=Policy(read_only=True)).close()
