"""A full disk under the state directory: a change is made and written down, or not made; never only made."""

import errno
import json
import shutil
import sqlite3
import subprocess
import sys

import pytest

from agentfs import AgentFSError, Workspace
from agentfs.errors import FileIOError
from agentfs.history import database
from tests.conftest import part_or_all
from tests.faults.tracing import needs_tracing, run_traced
from tests.history.judges import can_mount, snapshot, standing
from tests.kit import put


def fresh(root):
    shutil.rmtree(root, ignore_errors=True)
    return put(root, {"a.txt": "old\n", "b.txt": "old\n"})


@pytest.fixture
def root(tmp_path):
    return fresh(tmp_path / "root")


def act(ws, root):
    """Steps of every kind; those that fail are left out."""
    failed = []
    for name, call in {
        "edit": lambda: ws.edit("a.txt", "old", "new"),
        "write": lambda: ws.write("new/c.txt", "c\n"),
        "checkpoint": lambda: ws.checkpoint("here"),
        "move": lambda: ws.move("b.txt", "d.txt"),
        "undo": ws.undo,
        "again": lambda: ws.edit("a.txt", "new", "newer"),
        "rollback": lambda: ws.rollback("here"),
        "last": lambda: ws.write("last.txt", "last\n"),
    }.items():
        before = snapshot(root)
        steps = list(standing(ws))
        try:
            call()
        except AgentFSError as error:
            failed.append((name, error))
            assert snapshot(root) == before, name
            assert list(standing(ws)) == steps, name
    return failed


FULL = sqlite3.OperationalError("database or disk is full")
FULL.sqlite_errorcode = 13
FAILS = sqlite3.OperationalError("disk I/O error")
FAILS.sqlite_errorcode = 10


@pytest.fixture
def statements(monkeypatch):
    """Counts the statements of all databases, and acts before or after one of them."""

    class Statements:
        count, at, before, after = 0, -1, None, None
        kinds = ("",)  # only those that begin so are counted

    class Connection(sqlite3.Connection):
        def execute(self, sql, *values):
            counted = sql.startswith(found.kinds)
            found.count += counted
            if counted and found.before and (found.at < 0 or found.count == found.at):
                found.before(sql)
            result = super().execute(sql, *values)
            if counted and found.after and found.count == found.at:
                found.after()
            return result

    found, connect = Statements(), sqlite3.connect
    monkeypatch.setattr(
        database.sqlite3, "connect", lambda *args, **more: connect(*args, factory=Connection, **more)
    )
    return found


def raises(error):
    def fail(sql):
        raise error

    return fail


def test_regression_a_full_disk_separates_no_rejection_from_an_acceptance(root, tmp_path, statements):
    """The bases were stored after the step, so a rejection could stand without its acceptance."""
    statements.kinds = ("BEGIN IMMEDIATE", "INSERT", "UPDATE", "DELETE", "COMMIT")
    outcomes = set()
    for at in range(1, 12):
        statements.count, statements.before = 0, None
        with Workspace(root, state=tmp_path / f"state {at}") as ws:
            (root / "a.txt").write_text("old\n")
            for name in ("a.txt", "b.txt"):
                ws.write(name, f"new {at}\n", overwrite=True)
            one, two = ws.review().hunks
            statements.count, statements.at, statements.before = 0, at, raises(FULL)
            try:
                ws.apply_review(accept=[two.id], reject=[one.id])
                decided = True
            except FileIOError:
                decided = False
            statements.before = None
            assert ((root / "a.txt").read_text() == f"new {at}\n") is not decided
            assert len(ws.review().hunks) == (0 if decided else 2)
        outcomes.add(decided)
        with Workspace(root, state=tmp_path / f"state {at}") as ws:
            assert len(ws.review().hunks) == (0 if decided else 2)
    assert outcomes == {False, True}


@part_or_all(16, full=4)
@pytest.mark.parametrize("error", [FULL, FAILS], ids=["full", "fails"])
@pytest.mark.parametrize("undoing", ["undone", "not undone"])
def test_each_statement_of_the_database_fails(root, tmp_path, statements, error, undoing, every):
    original, state = snapshot(root), tmp_path / "state"
    statements.kinds = ("BEGIN IMMEDIATE", "INSERT", "UPDATE", "DELETE", "COMMIT")
    with Workspace(root, state=state) as ws:
        start = statements.count
        assert act(ws, root) == []
        total = statements.count - start
    assert total >= 40

    def fail(sql):
        if undoing != "undone":  # the next statement is the rollback
            statements.at += 1
            statements.kinds = (*statements.kinds, "ROLLBACK")
            if sql == "ROLLBACK":
                statements.at = 0
        raise error

    failed = []
    for at in range(1, total + 1, every):
        shutil.rmtree(state)
        fresh(root)
        statements.before, statements.kinds = None, statements.kinds[:5]
        with Workspace(root, state=state) as ws:
            statements.at, statements.before = statements.count + at, fail
            failed += act(ws, root)
            statements.before = None
        with Workspace(root, state=state) as ws:
            assert ws.recovery_notes == ()
            if standing(ws):
                ws.undo(len(standing(ws)))
        assert snapshot(root) == original
    # What one failure leads to are calls that find something else than they meant.
    assert {error.code for _, error in failed} <= {"io", "not_found", "invalid_argument", "no_match"}
    assert len({name for name, _ in failed}) > 3
    assert all(error.hint for _, error in failed if error.code == "io")
    assert all("state/" not in str(error) for _, error in failed), "where it lies is not for a model to know"


TRACED = """
import sys
from agentfs import AgentFSError, Workspace
ws = Workspace(sys.argv[1], state=sys.argv[2])
print("ready", flush=True)
sys.stdin.readline()
failed = []
for name, call in {
    "edit": lambda: ws.edit("a.txt", "old", "new"),
    "write": lambda: ws.write("new/c.txt", "c\\n" * 5000),
    "undo": ws.undo,
    "last": lambda: ws.write("last.txt", "x"),
}.items():
    try: call()
    except AgentFSError as error: failed.append(f"{name} {error.code}")
ws.close()
print("failed", ", ".join(failed), flush=True)
sys.stdin.readline()
"""


@needs_tracing
@part_or_all(29)
@pytest.mark.parametrize("fault", ["pwrite64:error=ENOSPC", "pwrite64:error=EIO", "fdatasync:error=EIO"])
def test_writes_of_the_database_fail_in_the_kernel(root, tmp_path, fault, every):
    original, state, log = snapshot(root), tmp_path / "state", tmp_path / "log"
    name = fault.partition(":")[0]
    outcomes = set()
    total, at = 0, 0
    while at <= total:
        shutil.rmtree(state, ignore_errors=True)
        fresh(root)
        Workspace(root, state=state).close()
        outcomes.add(run_traced(TRACED, [root, state], log, *([f"{fault}:when={at}"] if at else [])))
        if not total:
            total = sum(line.split()[1].startswith(name + "(") for line in log.read_text().splitlines())
            assert total
        with Workspace(root, state=state) as ws:
            # A transaction whose sync failed may be in the log all the same: then it was begun, and not made.
            assert all("was not made" in text for text in ws.recovery_notes)
            if standing(ws):
                ws.undo(len(standing(ws)))
        assert snapshot(root) == original, f"{fault} {at}"
        at += 1 if not at else every
    assert "failed" in outcomes, "without a fault nothing fails"
    assert len(outcomes) > 1, "a fault is told"
    assert all("io" in text for text in outcomes - {"failed"})


ON_A_SMALL_DISK = """
import json, os, sys
from pathlib import Path
from agentfs import AgentFSError, Workspace
root, state = map(Path, sys.argv[1:])
made, refused = [], []
with Workspace(root, state=state) as ws:
    for number in range(200):
        try:
            ws.write(f"{number}.txt", os.urandom(1500).hex())
            made.append(f"{number}.txt")
        except AgentFSError as error:
            refused.append((error.code, error.details.get("errno")))
assert sorted(os.listdir(root)) == sorted(made)
with Workspace(root, state=state) as ws:
    assert len(ws.recovery_notes) <= 1
    log = ws._journal.log
    assert [change.path for step in log.after(0) for change in step.changes] == made
    left = len(made)
    while left:  # to go back takes room too: a little, which the last of the journal may not find
        try:
            ws.undo()
            left -= 1
        except AgentFSError as error:
            assert error.code == "io"
            break
assert len(os.listdir(root)) == left
print(json.dumps([len(made), refused[0]]))
"""


@pytest.mark.full
@pytest.mark.skipif(not can_mount(), reason="only a user who may mount has a small disk")
def test_a_disk_that_is_full(root, tmp_path):
    for path in root.iterdir():
        path.unlink()
    (tmp_path / "small").mkdir()
    script = (
        f"mount -t tmpfs -o size=440k none {tmp_path}/small &&"
        f" exec {sys.executable} - {root} {tmp_path}/small/state"
    )
    command = ["unshare", "-m", "sh", "-c", script]
    done = subprocess.run(command, input=ON_A_SMALL_DISK, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    made, first = json.loads(done.stdout)
    assert 5 < made < 200
    assert first == ["io", errno.ENOSPC]


def test_beginning_a_state_directory_without_room(root, tmp_path):
    code = (
        "import resource, signal, sys; from agentfs import Workspace, AgentFSError\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))\n"
        "try: Workspace(sys.argv[1], state=sys.argv[2])\n"
        "except AgentFSError as error: print(error.code)"
    )
    command = [sys.executable, "-c", code, root, tmp_path / "state"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "io\n"
    Workspace(root, state=tmp_path / "state").close()


@part_or_all(3)
@pytest.mark.parametrize("when", ["before", "after"])
def test_an_interrupt_while_it_is_written_down_changes_nothing(root, tmp_path, statements, when, every):
    original = snapshot(root)

    def interrupt(*_):
        setattr(statements, when, None)
        raise KeyboardInterrupt

    for at in range(1, 26, every):
        with Workspace(root, state=tmp_path / "state") as ws:
            steps = len(standing(ws))
            statements.at = statements.count + at
            setattr(statements, when, interrupt)
            with pytest.raises(KeyboardInterrupt):
                [ws.write(f"{at}-{number}", "x\n") for number in range(5)]
            ws.write(f"after-{at}", "x\n")
            done = len(standing(ws))
            assert done > steps
        with Workspace(root, state=tmp_path / "state") as ws:
            assert ws.recovery_notes == ()
            assert len(standing(ws)) == done
    with Workspace(root, state=tmp_path / "state") as ws:
        ws.undo(len(standing(ws)))
    assert snapshot(root) == original


def test_one_that_is_removed_in_use_is_told_before_anything_is_changed(root, tmp_path):
    before = snapshot(root)
    with Workspace(root, state=tmp_path / "state") as ws:
        shutil.rmtree(tmp_path / "state")
        with pytest.raises(FileIOError, match="was removed"):
            ws.edit("a.txt", "old", "new")
        assert ws.read("a.txt").content == "old\n"
    assert snapshot(root) == before
