"""Contents that may not be read are in no answer of the history, also after their file was moved."""

import json

import pytest

from agentfs import AgentFSError, Policy, Workspace
from agentfs.cli import main
from agentfs.policy import Protect
from tests.kit import put

OLD, NEW = "the hidden old text", "the hidden new text"
LOOSE = Policy(overwrite="always", protect=Protect(read=[], write=[]))
STRICT = Policy(overwrite="always", deny=["read(private/**)"])
HIDDEN = {"denied": "private/f", "protected": ".env"}


def edit_and_move(ws, to):
    ws.edit("f", OLD, NEW)
    ws.move("f", to)


def in_one_step(ws, to):
    with ws.transaction() as tx:
        edit_and_move(tx, to)


WAYS = [lambda ws, to: ws.move("f", to), edit_and_move, in_one_step]


def everything(result) -> str:
    if isinstance(result, AgentFSError):
        return f"{result} {json.dumps(result.details)}"
    return f"{result.text} {json.dumps(result.to_dict())}"


def answer_of(act):
    try:
        return act()
    except AgentFSError as error:
        return error


@pytest.fixture
def tree(tmp_path):
    root = tmp_path / "root"
    (root / "private").mkdir(parents=True)
    (root / "f").write_text(f"{OLD}\n")
    return root


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", HIDDEN)
def test_a_file_that_was_moved_to_where_it_is_hidden_is_not_shown(tree, tmp_path, capsys, kind, way):
    with Workspace(tree, policy=LOOSE, state=tmp_path / "state") as ws:
        ws.checkpoint("start")
        way(ws, HIDDEN[kind])
        assert OLD in ws.changes().text or "rename from f" in ws.changes().text
    with Workspace(tree, state=tmp_path / "state", policy=STRICT) as ws:
        about_f = [file for file in ws.changes().files if "f" in (file.path, file.moved_from)]
        assert {file.protected for file in about_f} == {True}
        for act in (ws.changes, lambda: ws.changes("start"), ws.undo, ws.redo):
            assert "hidden" not in everything(answer_of(act))
    if kind == "protected":
        assert main(["diff", "--state", str(tmp_path / "state")]) == 0
        printed = capsys.readouterr()
        assert "hidden" not in printed.out + printed.err
        assert '"f"' in printed.err


def changes_shown(tree, state):
    with Workspace(tree, policy=STRICT, state=state) as ws:
        return ws.changes()


def test_a_file_that_was_moved_back_is_shown_again(tree, tmp_path):
    state = tmp_path / "state"
    with Workspace(tree, policy=LOOSE, state=state) as ws:
        edit_and_move(ws, "private/f")
    assert OLD not in changes_shown(tree, state).text
    with Workspace(tree, policy=LOOSE, state=state) as ws:
        ws.move("private/f", "f")
    assert f"-{OLD}\n+{NEW}" in changes_shown(tree, state).text


def test_only_the_file_that_was_moved_is_hidden(tree, tmp_path):
    put(tree, {"g": "another\n", "h": f"{OLD} of h\n"})
    with Workspace(tree, policy=LOOSE, state=tmp_path / "state") as ws:
        ws.delete("g")
        ws.move("f", "private/f")
        ws.move("h", "i")
    shown = changes_shown(tree, tmp_path / "state")
    assert {(file.moved_from, file.path) for file in shown.files if file.protected} == {("f", "private/f")}
    assert "-another" in shown.text
    assert "rename from h\nrename to i" in shown.text


@pytest.mark.parametrize("deleted", [False, True])
@pytest.mark.parametrize("kind", HIDDEN)
@pytest.mark.parametrize("method", ["undo", "rollback"])
def test_a_conflict_in_a_hidden_file_shows_nothing_of_it(tree, tmp_path, kind, method, deleted):
    path = HIDDEN[kind]
    with Workspace(tree, policy=LOOSE, state=tmp_path / "state") as ws:
        ws.write(path, "ours, hidden\n")
        ws.checkpoint("start")
        ws.edit(path, "ours", "ours again")
    if deleted:
        (tree / path).unlink()
    else:
        (tree / path).write_text("theirs, hidden\n")
    with Workspace(tree, policy=STRICT, state=tmp_path / "state") as ws:
        error = answer_of(lambda: ws.undo() if method == "undo" else ws.rollback("start"))
        assert isinstance(error, AgentFSError)
        assert "hidden" not in everything(error)
    assert (tree / path).exists() is not deleted


@pytest.mark.parametrize("rule", ["read(src/closed.txt)", "read(via/closed.txt)"])
def test_a_file_that_a_command_moved_from_where_it_is_closed_is_not_shown(tmp_path, rule):
    (tmp_path / "src").mkdir()
    (tmp_path / "via").symlink_to("src")
    (tmp_path / "src/closed.txt").write_text("secret line\n")
    with Workspace(tmp_path, policy=Policy(deny=[rule])) as ws:
        with ws.recording("mv") as recorded:
            (tmp_path / "src/closed.txt").rename(tmp_path / "src/open.txt")
        for result in (recorded.result, ws.changes()):
            assert [file.moved_from for file in result.files] == ["src/closed.txt"]
            assert b"secret line" not in result.patch
            assert "secret line" not in f"{result.text} {result.to_dict()}"
