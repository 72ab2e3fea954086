"""Containers may deny `renameat2`: all works without it, with the same outcome."""

import errno
from pathlib import Path

import pytest

from agentfs import AgentFSError, Workspace
from agentfs.fs import syscalls
from tests.history.judges import snapshot
from tests.kit import put


def work(top: Path) -> list[object]:
    """Make a change of each kind; return the trees after each."""
    put(top, {"d/f": "one\n", "d/e/g": "two\n"})
    (top / "link").symlink_to("d/f")
    found: list[object] = []
    with Workspace(top) as ws:
        for act in (
            lambda: ws.write("new/deep/x", "x\n"),
            lambda: ws.edit("link", "one", "1"),
            lambda: ws.move("d/f", "d/h"),
            lambda: ws.move("d", "new/d"),
            lambda: ws.replace("two", "2"),
            lambda: ws.move("new/deep/x", "new/d/h"),
            lambda: ws.delete("new", recursive=True),
            lambda: ws.undo(3),
            lambda: ws.undo(3),
        ):
            try:
                act()
            except AgentFSError as error:
                found.append(error.code)
            found.append(snapshot(top))
        found.append([match.path for match in ws.grep("o").matches])
    return found


@pytest.mark.parametrize("how", ["missing", "denied"])
def test_all_works_without_renameat2(tmp_path, monkeypatch, how):
    expected = work(tmp_path / "with")
    if how == "missing":
        monkeypatch.setattr(syscalls, "c_function", lambda _: None)
    else:
        monkeypatch.setattr(syscalls, "rename_no_replace", lambda *_, **__: errno.EPERM)
    assert work(tmp_path / "without") == expected
    assert "already_exists" in expected
