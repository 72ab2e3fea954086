"""Paths and searches in a transaction give the same answers as on disk after its commit."""

import shutil
from pathlib import Path

import pytest

from agentfs import Workspace
from tests import kit
from tests.history.judges import snapshot
from tests.kit import put, refused


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A root with a directory, a link to it, and links that are absolute, dangling and lead out."""
    top = tmp_path / "root"
    put(top, {"d/x": "in d\n", "f": "f\n"})
    (top / "l").symlink_to("d")
    (top / "absolute").symlink_to(top / "d")
    (top / "up").symlink_to("../d")
    (top / "out").symlink_to("/etc")
    return top


def test_a_transaction_of_a_view_keeps_the_restrictions_of_the_view(tree):
    (tree / "only").mkdir()
    (tree / "only" / "up").symlink_to("../d")
    (tree / "only" / "a").write_text("a\n")
    with Workspace(tree) as ws, ws.view(only=["only"]).transaction() as tx:
        tx.move("only/up", "only/moved")
        for path in ("only/moved/x", "d/x", "only/../f"):
            refused(lambda: tx.read(path), "outside_workspace")  # noqa: B023 - called at once
            refused(lambda: tx.write(path, "x", overwrite=True), "outside_workspace")  # noqa: B023 - called at once
        tx.edit("only/a", "a", "b")
    assert (tree / "only" / "a").read_text() == "b\n"


def test_a_directory_takes_the_path_of_a_link_or_file_that_was_removed(tree):
    with Workspace(tree) as ws:
        with ws.transaction() as tx:
            for path in ("l", "f"):
                tx.delete(path)
                tx.write(f"{path}/x", "below\n")
                assert [entry.path for entry in tx.ls(path).entries] == [f"{path}/x"]
        assert (tree / "l/x").read_text() == (tree / "f/x").read_text() == "below\n"
        assert (tree / "d/x").read_text() == "in d\n"
        ws.undo()
    assert (tree / "l").is_symlink()
    assert (tree / "f").read_text() == "f\n"


@pytest.mark.parametrize("acts", [
    lambda ws: ws.edit("l/x", "d", "d in e"),
    lambda ws: (ws.write("d/e/f/g", "new e\n"), ws.undo()),
    lambda ws: (ws.write("d/n.py", "new\n"), ws.move("d", "moved"), ws.write("d/n.py", "new\n")),
    lambda ws: (ws.move("d", "m/d"), ws.write("d/n", "n\n"), ws.write("d/e/g", "e\n"), ws.undo(2)),
    lambda ws: (ws.write(".gitignore", "d/*\n"), ws.delete("l"), ws.replace("f", "F")),
])  # fmt: skip
def test_regression_a_search_in_a_transaction_finds_the_staged_tree(tree, tmp_path, acts):
    """The answers are those of the same changes on disk; the matrix has the other calls."""
    (tree / "absolute").unlink()  # it leads into one of the trees
    other = shutil.copytree(tree, tmp_path / "other", symlinks=True)
    with Workspace(tree) as ws, Workspace(other) as disk, ws.transaction() as tx:
        for each in (tx, disk):
            acts(each)
        for search in (
            lambda ws: ws.ls(depth=0, include_ignored=True).text,
            lambda ws: ws.glob("*", include_ignored=True).text,
            lambda ws: ws.grep("in|new|e", context=0).text,
            lambda ws: kit.find(ws, types="fdle", hidden=True).text,
        ):
            assert search(tx) == search(disk)
        assert snapshot(tree) == snapshot(other)


def test_a_transaction_of_a_view_starts_in_its_directory(tree):
    with Workspace(tree) as ws:
        with ws.view(workdir="d").transaction() as tx:
            tx.edit("x", "in d", "changed")
            tx.write("y", "y\n")
            assert [entry.path for entry in tx.ls().entries] == ["x", "y"]
            assert [match.path for match in tx.grep(".").matches] == ["x", "y"]
        assert (tree / "d/x").read_text() == "changed\n"
        assert (tree / "d/y").read_text() == "y\n"
