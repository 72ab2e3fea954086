"""A view with `only` returns no content and no name of other directories, even after earlier calls there."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from agentfs import AgentFSError, Edit, Policy, Workspace
from tests import kit

NAME, TEXT = "hiddenname", "hiddentext"


@pytest.fixture
def ws(tmp_path) -> Iterator[Workspace]:
    """A workspace with steps inside and outside of `in`, one step in both, and an interrupted change."""
    kit.put(tmp_path, {
        "in/a.txt": "shown\nlines of a text\n", "in/large.txt": "a line of a large file\n" * 9000,
        f"out/{NAME}.txt": f"{TEXT}\nanother {TEXT} of some length\n",
    })  # fmt: skip
    with Workspace(tmp_path, policy=Policy(overwrite="always")) as workspace:
        workspace._root.recovery_notes = (f'a change of "out/{NAME}.txt" was undone',)
        workspace.read(f"out/{NAME}.txt")
        workspace.edit("in/a.txt", "shown", "seen")
        workspace.edit(f"out/{NAME}.txt", TEXT, f"{TEXT} changed", replace_all=True)
        workspace.checkpoint("start")
        with workspace.transaction() as tx:
            tx.edit("in/a.txt", "seen", "shown")
            tx.write(f"out/{NAME}/new.txt", f"{TEXT}\n")
        workspace.move(f"out/{NAME}.txt", f"out/{NAME}2.txt")
        yield workspace


def said_by(act: Callable[[], Any]) -> str:
    """Return the result or the error of a call as text."""
    try:
        result = act()
    except AgentFSError as error:
        return f"{error} {error.message} {error.hint} {json.dumps(error.details, default=str)}"
    facts = json.dumps(result.to_dict(), default=str) if hasattr(result, "to_dict") else ""
    return f"{result} {facts}"


def calls(ws: Workspace, view: Workspace) -> dict[str, Callable[[], Any]]:
    whole, page = kit.keep(ws, f"{TEXT}\n"), kit.keep(ws, ws.read(f"out/{NAME}2.txt", limit=1))
    found = kit.keep(ws, ws.grep(TEXT))
    return {
        "read a kept text": lambda: view.read(whole),
        "read a kept page": lambda: view.read(page),
        "read a kept result": lambda: view.read(found),
        "grep a kept text": lambda: view.grep("h.dden", whole),
        "grep a kept page": lambda: view.grep("h.dden", page),
        "undo": view.undo,
        "undo more": lambda: view.undo(3),
        "undo too many": lambda: view.undo(100),
        "redo": view.redo,
        "rollback": lambda: view.rollback("start"),
        "rollback nowhere": lambda: view.rollback("nowhere"),
        "changes": view.changes,
        "changes since": lambda: view.changes("start"),
        "changes since nowhere": lambda: view.changes("nowhere"),
        "checkpoint": view.checkpoint,
        "recovery notes": lambda: view.recovery_notes,
        "notes of a view of it": lambda: view.view().recovery_notes,
        "miss": lambda: view.edit("in/a.txt", f"another {TEXT[:-4]}text of some length", "x"),
        "miss of several": lambda: view.multi_edit("in/a.txt", [Edit("another h", "x")]),
        "missing": lambda: view.read(f"{NAME[:-1]}.txt"),
        "missing below": lambda: view.read(f"out/{NAME[:-2]}.txt"),
        "move": lambda: view.move("in/a.txt", "out/a.txt"),
        "glob": lambda: view.glob("**/*", include_ignored=True),
        "find": lambda: kit.find(view, ".", types="f"),
        "ls": lambda: view.ls(".", depth=0),
        "grep": lambda: view.grep("h.dden"),
        "replace": lambda: view.replace("h.dden", "x", regex=True),
        "watch": lambda: view.watch,
        "transaction": lambda: _transaction(view),
        "instructions": lambda: view.tools("all").instructions(),
    }


def _transaction(view: Workspace) -> str:
    with view.transaction() as tx:
        return f"{tx.recovery_notes} {said_by(tx.undo)} {said_by(tx.changes)}"


@pytest.mark.parametrize("way", ["only", "view of a view", "workdir"])
def test_a_restricted_view_returns_nothing_of_other_directories(ws, way):
    view = ws.view(only=["in"], workdir="in" if way == "workdir" else None)
    view = view.view(policy=view.policy) if way == "view of a view" else view
    for name, act in calls(ws, view).items():
        said = said_by(act)
        for hidden in (NAME, TEXT):
            mine = {"missing": NAME[:-1], "missing below": NAME[:-2]}.get(name, "\0")
            assert hidden not in said.replace(mine + ".txt", ""), f"{name}: {said}"


def test_conflicts_outside_of_a_restricted_view_are_not_shown(ws, tmp_path):
    (tmp_path / "out" / f"{NAME}2.txt").write_text(f"theirs {TEXT}\n")
    view = ws.view(only=["in"])
    for act in (view.undo, lambda: view.undo(2), lambda: view.rollback("start")):
        said = said_by(act)
        assert ("outside" in said, NAME in said, TEXT in said) == (True, False, False)
    assert (tmp_path / "out" / f"{NAME}2.txt").read_text() == f"theirs {TEXT}\n"


def test_a_restricted_view_undoes_its_own_steps_and_keeps_its_own_outputs(ws, tmp_path):
    view = ws.view(only=["in"])
    view.write("in/new/deep/b.txt", "x\n")
    assert view.undo().steps == 1
    assert not (tmp_path / "in" / "new").exists()
    view.redo()
    assert view.read(kit.keep(view, "kept\n")).content == "kept\n"
    assert view.view(policy=view.policy).read(kit.keep(view, "kept\n")).content == "kept\n"


def test_regression_a_directory_whose_name_begins_like_that_of_a_view_is_outside_of_it(tmp_path):
    kit.put(tmp_path, ["in/a.txt", "inner/a.txt"], "one\n")
    with Workspace(tmp_path) as ws:
        view = ws.view(only=["in"])
        assert view.read("in/a.txt").content == "one\n"
        kit.error_of(view.read, "inner/a.txt")
        kit.error_of(view.edit, "inner/a.txt", "one", "two")
