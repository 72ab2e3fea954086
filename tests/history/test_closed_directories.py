"""Directories whose mode forbids their owner to change, list or enter them; only root does not notice.

A build makes its outputs read-only, and so does `go mod download`. Undo failed with "Permission denied".
"""

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agentfs import AgentFSError, Workspace
from agentfs.fs import lock
from tests.conftest import public_directory
from tests.history.judges import snapshot
from tests.kit import refused

AS_ROOT = os.geteuid() == 0
SOMEBODY = 4242


OPEN = "chmod 755 closed closed/deep; "
COMMANDS = {
    "made read-only": "chmod 555 d",
    "closed with all its entries": "chmod 0 d",
    "no longer entered": "chmod 600 d",
    "no longer listed": "chmod 300 d",
    "closed after a change of its entries": "echo x > d/f; rm d/e/g; touch d/new; chmod 500 d/e; chmod 555 d",
    "created and closed": "mkdir -p out/deep; echo x > out/deep/x; chmod 555 out/deep out",
    "opened and removed": f"{OPEN} rm -r closed",
    "a file in its place": f"{OPEN} rm -r closed; echo file > closed",
    "opened and changed": "chmod 755 closed; echo new > closed/one",
    "moved": f"{OPEN} mv closed d/moved; chmod 555 d/moved/deep d/moved",
}


@pytest.fixture
def root(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A tree of an ordinary user, as whom the test runs; one directory is read-only."""
    with public_directory() as place:
        top = place / "root"
        for path in ("d/e", "closed/deep", "../locks"):
            (top / path).mkdir(parents=True)
        for path in ("d/f", "d/e/g", "closed/one", "closed/deep/two"):
            (top / path).write_text(f"{path}\n")
        for path in ("closed/deep", "closed"):
            (top / path).chmod(0o555)
        monkeypatch.setattr(lock, "lock_directories", lambda _: [str(place / "locks")])
        if AS_ROOT:
            with Workspace(top, state=place / "warm") as ws:  # maybe only root can read the modules
                with ws.recording("x"):
                    (top / "d/f").write_text("warm\n")
                ws.undo()
            for path in (place, *place.rglob("*")):
                os.chown(path, SOMEBODY, SOMEBODY)
            os.setegid(SOMEBODY)
            os.seteuid(SOMEBODY)
        try:
            yield top
        finally:
            if AS_ROOT:
                os.seteuid(0)
                os.setegid(0)
            for path in (top, *top.rglob("*")):
                if path.is_dir():
                    path.chmod(0o755)


def run(command: str, root: Path) -> None:
    """Run a command as this user; `subprocess` would be root again."""
    child = os.fork()
    if child == 0:
        os.chdir(root)
        if AS_ROOT:
            os.seteuid(0)
            os.setresgid(SOMEBODY, SOMEBODY, SOMEBODY)
            os.setresuid(SOMEBODY, SOMEBODY, SOMEBODY)
        os.execv("/bin/sh", ["sh", "-ec", command])
    assert os.waitpid(child, 0)[1] == 0


def modes(top: Path) -> dict[str, int]:
    return {name: stat.S_IMODE((top / name).lstat().st_mode) for name in sorted(os.listdir(top))}


@pytest.mark.parametrize("state", [False, True], ids=["memory", "state"])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_closed_directory_is_undone_and_redone(root: Path, command: str, *, state: bool) -> None:
    before = snapshot(root)
    with Workspace(root, state=root.parent / "state" if state else None) as ws:
        with ws.recording(command):
            run(COMMANDS[command], root)
        after = modes(root)
        assert ws.undo().steps == 1
        assert snapshot(root) == before
        ws.redo()
        assert modes(root) == after
        ws.undo()
        assert snapshot(root) == before


CALLS: dict[str, Callable[[Workspace], object]] = {
    "delete": lambda ws: ws.delete("closed", recursive=True),
    "move": lambda ws: ws.move("closed/one", "d/one"),
    "write": lambda ws: ws.write("closed/new", "x"),
    "edit": lambda ws: ws.edit("closed/one", "one", "two"),
}


@pytest.mark.parametrize("tool", CALLS)
def test_no_tool_opens_a_read_only_directory(root: Path, tool: str) -> None:
    """Its owner has closed it for this; undo opens only what was closed within the step."""
    before = snapshot(root)
    with Workspace(root) as ws, pytest.raises(AgentFSError, match="Permission denied") as caught:
        CALLS[tool](ws)
    assert "could not be restored" not in str(caught.value)
    assert snapshot(root) == before


@pytest.mark.skipif(not AS_ROOT, reason="only root gives files away")
def test_a_mode_that_may_not_be_changed_is_not_reported_as_a_failed_repair(root: Path) -> None:
    """The mode had not changed, yet the error said "could not be restored; opening the workspace …"."""
    with Workspace(root) as ws:
        with ws.recording("somebody else's"):
            (root / "d").chmod(0o711)
        os.seteuid(0)
        os.chown(root / "d", 0, 0)
        os.seteuid(SOMEBODY)
        caught = refused(ws.undo)
    assert "could not be restored" not in str(caught)
    assert modes(root)["d"] == 0o711
