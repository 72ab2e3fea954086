"""Paths and searches in a transaction give the same answers as on disk after its commit."""

import tempfile
from pathlib import Path

import pytest

from agentfs import AgentFSError, Policy, Workspace
from agentfs.errors import OutsideWorkspaceError
from tests import kit
from tests.history.judges import snapshot
from tests.kit import put


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
            with pytest.raises(OutsideWorkspaceError):
                tx.read(path)
            with pytest.raises(OutsideWorkspaceError):
                tx.write(path, "x", overwrite=True)
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


def shape(result):
    """Return a search result without its times."""
    plain = result.to_dict()
    for listed in (plain.get("entries"), plain.get("files")):
        for entry in listed if isinstance(listed, list) else ():
            if isinstance(entry, dict):
                entry.pop("mtime", None)
    plain.pop("elapsed_ms", None)
    return str(result), plain


SEARCHES = {
    "ls all": lambda ws: ws.ls(depth=0, include_ignored=True),
    "glob by size": lambda ws: ws.glob("*", sort="size"),
    "find": lambda ws: kit.find(ws, types="fdle", hidden=True),
    "grep": lambda ws: ws.grep("in|new", context=0),
    "read link": lambda ws: ws.read("l/x"),
    "replace": lambda ws: ws.replace("e", "E", preview=True),
}
ACTS = {
    "write": lambda ws: ws.write("d/new.py", "new\n"),
    "write deep": lambda ws: ws.write("d/e/f/g", "new e\n"),
    "write hidden": lambda ws: ws.write(".hidden/a", "new e\n"),
    "write ignored": lambda ws: ws.write("ignored/a", "new e\n"),
    "ignore": lambda ws: ws.write(".gitignore", "d/*.py\n", overwrite=True),
    "ignore more": lambda ws: ws.write("d/.gitignore", "x\n"),
    "edit": lambda ws: ws.edit("d/x", "in", "new in"),
    "edit by a link": lambda ws: ws.edit("l/x", "d", "d in e"),
    "delete": lambda ws: ws.delete("f"),
    "delete ignore rules": lambda ws: ws.delete(".gitignore"),
    "delete all below": lambda ws: (ws.delete("d/x"), ws.delete("d/a.py")),
    "delete the directory": lambda ws: ws.delete("d"),
    "delete link": lambda ws: ws.delete("l"),
    "move": lambda ws: ws.move("f", "d/f"),
    "move back": lambda ws: ws.move("d/f", "f"),
    "move link": lambda ws: ws.move("l", "m"),
    "move away": lambda ws: ws.move("d/x", "x"),
    "undo": lambda ws: ws.undo(),
    "undo more": lambda ws: ws.undo(2),
    "redo": lambda ws: ws.redo(),
    "replace": lambda ws: ws.replace("in", "within"),
    "move directory": lambda ws: ws.move("d", "moved"),
    "move directory deep": lambda ws: ws.move("d", "more/d"),
    "move directory back": lambda ws: ws.move("moved", "d"),
}


def sample(top):
    put(
        top,
        {"d/x": "in d\n", "d/a.py": "one\n", "f": "f in\n", ".gitignore": "ignored\n", "ignored/b": "e\n"},
    )
    put(top, {"binary": "\0", "d/.h": "e\n", "run": "e\n", ".git/config": ""})
    (top / "run").chmod(0o755)
    (top / "empty").mkdir()
    (top / "l").symlink_to("d")
    (top / "dangling").symlink_to("nowhere")
    return top


def attempt(act, ws):
    """Return the text of a result, or the code of an error."""
    try:
        result = act(ws)
    except AgentFSError as error:
        return error.code
    return shape(result) if hasattr(result, "to_dict") else ""


def compare(names):
    """Make the same changes in a transaction and on disk; compare their answers after each step."""
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
        tops = [sample(Path(directory) / "root") for directory in (one, two)]
        always = Policy(overwrite="always")
        with Workspace(tops[0], policy=always) as ws, Workspace(tops[1], policy=always) as disk:
            with ws.transaction() as tx:
                for name in names:
                    # An undo on disk also names the directories that are removed with a file.
                    said = [attempt(ACTS[name], each) for each in (tx, disk)]
                    codes = {each for each in said if isinstance(each, str)}
                    assert not codes or codes == {*map(str, said)}, (names, name, codes)
                    for asked, search in SEARCHES.items():
                        assert attempt(search, tx) == attempt(search, disk), (names, name, asked)
            assert snapshot(tops[0]) == snapshot(tops[1])
            if names:
                assert sample_of(ws) == sample_of(disk)


def sample_of(ws):
    return sorted((file.path, file.action) for file in ws.changes().files)


@pytest.mark.parametrize("names", [
    ["edit by a link"], ["write deep", "undo"], ["write", "move directory", "write"],
    ["move directory", "write", "write deep", "undo more"],
    *([name] for name in ACTS),
])  # fmt: skip
def test_regression_a_search_in_a_transaction_finds_the_staged_tree(names):
    compare(names)


def test_a_transaction_of_a_view_starts_in_its_directory(tree):
    with Workspace(tree) as ws:
        with ws.view(workdir="d").transaction() as tx:
            tx.edit("x", "in d", "changed")
            tx.write("y", "y\n")
            assert [entry.path for entry in tx.ls().entries] == ["x", "y"]
            assert [match.path for match in tx.grep(".").matches] == ["x", "y"]
        assert (tree / "d/x").read_text() == "changed\n"
        assert (tree / "d/y").read_text() == "y\n"
