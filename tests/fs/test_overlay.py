"""Paths in a transaction lead where they will lead once it is on disk."""

from pathlib import Path

import pytest

from agentfs import AgentFSError, Workspace
from agentfs.errors import NotDirectoryError, NotFoundError, OutsideWorkspaceError


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A root with a directory, a link to it, and links that are absolute, dangling and lead out."""
    top = tmp_path / "root"
    (top / "d").mkdir(parents=True)
    (top / "d" / "x").write_text("in d\n")
    (top / "f").write_text("f\n")
    (top / "l").symlink_to("d")
    (top / "absolute").symlink_to(top / "d")
    (top / "up").symlink_to("../d")
    (top / "out").symlink_to("/etc")
    return top


def test_links_that_were_moved_are_followed_from_where_they_are_now(tree):
    with Workspace(tree) as ws, ws.transaction() as tx:
        tx.move("l", "new/l")
        with pytest.raises(NotFoundError):
            tx.read("new/l/x")  # relative: there is no new/d
        tx.move("absolute", "new/deep/absolute")
        assert tx.read("new/deep/absolute/x").content == "in d\n"
        assert tx.read("new/deep/absolute/../f").content == "f\n"
        tx.move("up", "new/up")
        assert tx.read("new/up/x").content == "in d\n"
        tx.edit("new/up/x", "in d", "changed")
        assert tx.read("d/x").content == "changed\n"
        tx.move("out", "new/out")
        with pytest.raises(OutsideWorkspaceError):
            tx.read("new/out/passwd")
    assert (tree / "new/up/x").read_text() == "changed\n"


def test_a_directory_that_is_only_staged_is_left_by_two_dots(tree):
    with Workspace(tree) as ws, ws.transaction() as tx:
        tx.write("new/deep/file", "staged\n")
        assert tx.read("new/deep/../deep/file").content == "staged\n"
        assert tx.read("new/../f").content == "f\n"
        with pytest.raises(NotFoundError):
            tx.read("new/none/../deep/file")
        with pytest.raises(OutsideWorkspaceError):
            tx.read("new/../../f")


def test_what_is_staged_hides_what_is_on_disk(tree):
    with Workspace(tree) as ws, ws.transaction() as tx:
        tx.delete("l")
        with pytest.raises(NotFoundError):
            tx.read("l/x")
        with pytest.raises(AgentFSError, match="was removed in this transaction"):
            tx.write("l/x", "below what was a link")
        tx.write("l", "a file now\n")
        with pytest.raises(NotDirectoryError):
            tx.read("l/x")
        assert tx.read("l").content == "a file now\n"
        assert tx.read("d/x").content == "in d\n"
    assert (tree / "l").read_text() == "a file now\n"
    assert not (tree / "l").is_symlink()


def test_a_transaction_of_a_view_stays_where_the_view_may_go(tree):
    (tree / "only").mkdir()
    (tree / "only" / "up").symlink_to("../d")
    (tree / "only" / "a").write_text("a\n")
    with Workspace(tree) as ws, ws.view(only=["only"]).transaction() as tx:
        tx.move("only/up", "only/moved")
        for path in ("only/moved/x", "d/x", "only/../f"):
            with pytest.raises(OutsideWorkspaceError):
                tx.read(path)
            with pytest.raises(OutsideWorkspaceError):
                tx.write(path, "x", overwrite=True)
        tx.edit("only/a", "a", "b")
    assert (tree / "only" / "a").read_text() == "b\n"
