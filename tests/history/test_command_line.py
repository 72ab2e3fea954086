"""`agentfs log`, `undo`, `redo`, `diff`, `checkpoint` and `rollback` over a state directory."""

import io
import json
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from typing import Any, NamedTuple

import pytest

from agentfs import Workspace
from agentfs.cli import main
from tests.conftest import needs
from tests.history.judges import git_applied, snapshot
from tests.kit import put


class Done(NamedTuple):
    returncode: int
    stdout: Any
    stderr: str


def run(*arguments, text=True):
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    with redirect_stdout(out), redirect_stderr(io.StringIO()) as errors:
        try:
            status = main([str(argument) for argument in arguments])
        except SystemExit as stop:
            status = stop.code
        out.flush()
    printed = out.buffer.getvalue()
    return Done(status, printed.decode() if text else printed, errors.getvalue())


@pytest.fixture
def root(tmp_path):
    put(tmp_path, {"root/a.txt": "one\ntwo\n"})
    return tmp_path / "root"


@pytest.fixture
def over(root, tmp_path):
    """Return a function that runs a command on the tree and its state directory."""
    return "--root", root, "--state", tmp_path / "state"


@pytest.fixture
def session(root, tmp_path):
    with Workspace(root, state=tmp_path / "state") as ws:
        ws.checkpoint("start")
        ws.edit("a.txt", "two", "zwei")
        ws.checkpoint("turn 1")
        with ws.recording("make fmt"):
            put(root, {"new/b.txt": "x\n"})
        ws.move("a.txt", "c.txt")
        ws.undo()
    return "--state", tmp_path / "state"


def test_log_lists_the_steps_the_latest_first(session):
    done = run("log", *session)
    assert (done.returncode, done.stderr) == (0, "")
    lines = [line[:1] + line[22:] if line[:1].isdigit() else line for line in done.stdout.splitlines()]
    assert lines == [
        '4  takes back step 3: moved "c.txt" to "a.txt"',
        '3  undone: moved "a.txt" to "c.txt"',
        '2  "make fmt": created "new/b.txt"',
        '   checkpoint "turn 1"',
        '1  changed "a.txt"',
        '   checkpoint "start"',
    ]
    rows = json.loads(run("log", "--json", *session).stdout)
    assert [(row["step"], row["undone"], row["label"], row["checkpoints"]) for row in rows] == [
        (4, False, "", []),
        (3, True, "", []),
        (2, False, "make fmt", []),
        (1, False, "", ["turn 1"]),
        (0, False, "", ["start"]),
    ]
    assert run("log", "--limit", "1", *session).stdout.count("\n") == 1


@needs("git")
def test_diff_is_a_patch_that_git_takes(session, root, tmp_path):
    put(tmp_path, {"original/a.txt": "one\ntwo\n"})
    done = run("diff", *session, text=False)
    assert done.returncode == 0
    assert git_applied(tmp_path / "original", done.stdout, tmp_path / "scratch") == snapshot(root)
    since = run("diff", "--since", "turn 1", *session).stdout
    assert "b.txt" in since
    assert "a.txt" not in since
    files = json.loads(run("diff", "--json", *session).stdout)["files"]
    assert [(file["path"], file["label"]) for file in files][::2] == [
        ("a.txt", ""),
        ("new/b.txt", "make fmt"),
    ]


def test_undo_redo_and_rollback(session, root):
    last = snapshot(root)
    done = run("call", "undo", *session)
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, "Undid 1 step.")
    assert run("call", "undo", *session).returncode == 0
    assert sorted(snapshot(root)) == ["a.txt"]
    assert (root / "a.txt").read_text() == "one\ntwo\n"
    assert json.loads(run("call", "redo", "steps=2", "--json", *session).stdout)["data"]["redoable"] == 1
    assert snapshot(root) == last
    assert run("call", "checkpoint", "name=here", *session).stdout == 'Checkpoint "here".\n'
    assert run("call", "rollback", "to=start", *session).returncode == 0
    assert run("call", "rollback", "to=here", *session).returncode == 0
    assert snapshot(root) == last


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["call", "undo", "steps=9"], "Only 2 steps can be undone"),
        (["call", "undo", "steps=0"], "must be 1 or more"),
        (["call", "redo", "steps=9"], "Only 1 step can be redone"),
        (["call", "rollback", "to=nowhere"], 'There are "start"'),
        (["diff", "--since", "nowhere"], 'There are "start"'),
        (["call", "undo", "steps=many"], "must be an integer"),
        (["log", "--limit=x"], "invalid int value"),
        (["log", "--root", "/"], "belongs to another workspace"),
        (["call", "undo", "--root", "/"], "outside the workspace"),
    ],
)
def test_a_failure_is_2_and_on_standard_error(session, root, arguments, said):
    before = snapshot(root)
    done = run(*arguments, *session)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert snapshot(root) == before


def test_undo_prints_notes_and_footers(root, over):
    with Workspace(root, state=over[-1]) as ws, ws.transaction() as tx:
        for number in range(60):
            tx.write(f"new/{number:02}.txt", "x\n")
    (root / "new/mine.txt").write_text("mine\n")
    done = run("call", "undo", *over)
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert (lines[0], lines[-1]) == ("Undid 1 step.", "[10 more]")
    assert {'not removed, because it is not empty: "new"', 'deleted "new/00.txt"'} < {*lines}


@pytest.mark.parametrize("command", ["log", "review", "diff"])
def test_without_a_state_directory(tmp_path, command):
    assert "--state" in run(command).stderr
    for path in (tmp_path, tmp_path / "missing"):
        done = run(command, "--state", path)
        assert (done.returncode, done.stdout) == (2, "")
        assert "is not a state directory" in done.stderr
    assert not (tmp_path / "missing").exists()


def test_one_may_look_while_a_loop_works_and_not_meddle(session, root, tmp_path):
    with Workspace(root, state=tmp_path / "state") as ws:
        ws.write("later.txt", "x\n")
        assert 'created "later.txt"' in run("log", *session).stdout
        assert "+++ b/later.txt" in run("diff", *session).stdout
        done = run("call", "undo", *session)
        assert done.returncode == 2
        assert "in use by another workspace" in done.stderr
        ws.undo()
    assert "undone: created" in run("log", *session).stdout


def test_tools_are_called_with_a_journal(root, over):
    done = run("call", "write", '{"path": "a.txt", "content": "new\\n"}', *over)
    assert "has not been read" in done.stderr, "a command does not know what another has read"
    assert run("call", "edit", "path=a.txt", "old_string=one\ntwo", "new_string=new", *over).returncode == 0
    assert run("call", "edit", "path=a.txt", "old_string=new", "new_string=newer", *over).returncode == 0
    assert run("call", "undo", "steps=2", "--state", over[-1]).returncode == 0
    assert (root / "a.txt").read_text() == "one\ntwo\n"


def test_repairs_are_reported(root, over):
    code = (
        "import os, sys; from agentfs import Workspace\n"
        "ws = Workspace(sys.argv[1], state=sys.argv[2])\n"
        "rename = os.replace\n"
        "os.replace = lambda *names, **more: (rename(*names, **more), os._exit(9))\n"
        "ws.edit('a.txt', 'two', 'zwei')"
    )
    assert subprocess.run([sys.executable, "-c", code, root, over[-1]], check=False).returncode == 9
    done = run("call", "undo", "--state", over[-1])
    assert done.returncode == 0
    assert done.stderr == (
        'agentfs: a change of "a.txt" was under way when a process died; the change of "a.txt" was'
        " made, and undo takes it back\n"
    )
    assert (root / "a.txt").read_text() == "one\ntwo\n"
