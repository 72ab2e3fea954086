"""Directories whose mode forbids their owner to change, list or enter them; only root does not notice.

A build makes its outputs read-only, and so does `go mod download`. Undo failed with "Permission denied".
"""

import os
import shutil
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agentfs import AgentFSError, Workspace
from agentfs.fs import lock
from tests.conftest import public_directory
from tests.history.judges import snapshot
from tests.kit import put, refused

AS_ROOT = os.geteuid() == 0
SOMEBODY = 4242


def read_only(top: Path) -> None:
    (top / "d").chmod(0o555)


def change_and_close(top: Path) -> None:
    (top / "d/f").write_text("new\n")
    (top / "d/e/g").unlink()
    (top / "d/new").write_text("made\n")
    (top / "d/e").chmod(0o500)
    (top / "d").chmod(0o555)


def make_closed(top: Path) -> None:
    put(top, {"out/deep/x": "x\n"})
    (top / "out/deep").chmod(0o555)
    (top / "out").chmod(0o555)


def remove_closed(top: Path) -> None:
    for each in ("closed", "closed/deep"):
        (top / each).chmod(0o755)
    shutil.rmtree(top / "closed")


def replace_closed_by_a_file(top: Path) -> None:
    remove_closed(top)
    (top / "closed").write_text("a file\n")


def open_and_change(top: Path) -> None:
    (top / "closed").chmod(0o755)
    (top / "closed/one").write_text("new\n")


def move_what_is_closed(top: Path) -> None:
    for each in ("closed", "closed/deep"):
        (top / each).chmod(0o755)
    (top / "closed").rename(top / "d/moved")
    for each in ("d/moved/deep", "d/moved"):
        (top / each).chmod(0o555)


def close(mode: int) -> Callable[[Path], None]:
    return lambda top: (top / "d").chmod(mode)


COMMANDS = {
    "made read-only": read_only,
    "closed with all its entries": close(0),
    "no longer entered": close(0o600),
    "no longer listed": close(0o300),
    "closed after a change of its entries": change_and_close,
    "created and closed": make_closed,
    "opened and removed": remove_closed,
    "a file in its place": replace_closed_by_a_file,
    "opened and changed": open_and_change,
    "moved": move_what_is_closed,
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


def modes(top: Path) -> dict[str, int]:
    return {name: stat.S_IMODE((top / name).lstat().st_mode) for name in sorted(os.listdir(top))}


@pytest.mark.parametrize("state", [False, True], ids=["memory", "state"])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_closed_directory_is_undone_and_redone(root: Path, command: str, *, state: bool) -> None:
    before = snapshot(root)
    with Workspace(root, state=root.parent / "state" if state else None) as ws:
        with ws.recording(command):
            COMMANDS[command](root)
        after = modes(root)
        assert ws.undo().steps == 1
        assert snapshot(root) == before
        ws.redo()
        assert modes(root) == after
        ws.undo()
        assert snapshot(root) == before


@pytest.mark.parametrize("tool", ["delete", "move", "write", "edit"])
def test_no_tool_opens_a_read_only_directory(root: Path, tool: str) -> None:
    """Its owner has closed it for this; undo opens only what was closed within the step."""
    before = snapshot(root)
    with Workspace(root) as ws:
        calls: dict[str, Callable[[], object]] = {
            "delete": lambda: ws.delete("closed", recursive=True),
            "move": lambda: ws.move("closed/one", "d/one"),
            "write": lambda: ws.write("closed/new", "x"),
            "edit": lambda: ws.edit("closed/one", "one", "two"),
        }
        with pytest.raises(AgentFSError, match="Permission denied") as caught:
            calls[tool]()
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
