"""A state directory in the wrong place, of another, or damaged: an error with a hint, and no wrong undo."""

import errno
import fcntl
import os
import random
import shutil
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing

import pytest

from agentfs import AgentFSError, Workspace
from agentfs.cli import main
from agentfs.errors import BusyError, FileIOError, InvalidArgumentError, RefusedError
from agentfs.history import database
from agentfs.history.database import DATABASE_VERSION, stored_json
from agentfs.history.rows import step_to_json
from tests.conftest import part_or_all
from tests.faults.tracing import needs_tracing, run_traced
from tests.history.judges import snapshot, standing
from tests.kit import put


@pytest.fixture
def root(tmp_path):
    put(tmp_path, {"root/a.txt": "one\n"})
    return tmp_path / "root"


@pytest.fixture
def state(tmp_path):
    return tmp_path / "state"


def refused(root, state, error=InvalidArgumentError):
    before = snapshot(root)
    with pytest.raises(error) as caught:
        Workspace(root, state=state)
    assert snapshot(root) == before, "nothing is made where it does not belong"
    assert caught.value.hint
    return str(caught.value)


def linked(path, target):
    path.symlink_to(target)
    return path


# Where the state directory is to lie, what is there, and why it is refused.
WRONG_PLACES = {
    "the root": (lambda top: top / "root", "outside the workspace"),
    "in it": (lambda top: top / "root/state", "outside the workspace"),
    "deep in it": (lambda top: top / "root/deep/er/state", "outside the workspace"),
    "a link to it": (lambda top: linked(top / "link", top / "root") / "state", "outside the workspace"),
    "a dangling link": (lambda top: linked(top / "link", top / "root/there/in"), "outside the workspace"),
    "above it": (lambda top: top, "not contain it"),
    "a link above it": (lambda top: linked(top / "up", top), "not contain it"),
    "a file": (lambda top: put(top, {"file": "x"}) / "file", "is not a directory of agentfs"),
    "below a file": (lambda top: put(top, {"file": "x"}) / "file/state", "Not a directory"),
    "with other entries": (lambda top: put(top / "state", {"mine": "precious"}), 'it contains "mine".'),
    "of an older version": (
        lambda top: put(top / "state", dict.fromkeys(["format", "journal", "shown", "agentfs.lock"], "x")),
        '"format"',
    ),
}


@pytest.mark.parametrize("place", WRONG_PLACES)
def test_a_wrong_place_is_refused_and_nothing_is_made_there(root, tmp_path, place):
    where, said = WRONG_PLACES[place]
    state = where(tmp_path)
    before = snapshot(tmp_path)
    assert said in refused(root, state, FileIOError if place == "below a file" else InvalidArgumentError)
    assert snapshot(tmp_path) == before


def test_a_link_in_the_tree_may_lead_to_a_state_outside(root, tmp_path):
    with Workspace(root, state=linked(root / "out", tmp_path / "elsewhere")) as ws:
        ws.write("b", "x\n")
    assert (tmp_path / "elsewhere" / "history.db").exists()


def sql(state, *statements):
    with closing(sqlite3.connect(state / "history.db")) as database, database:
        for statement in statements:
            database.execute(*((statement,) if isinstance(statement, str) else statement))


@pytest.mark.parametrize(
    "content", [b"x", b"{}", b"\xff\xfe" * 5000, b"SQLite format 3\0" + b"\0" * 5000, b""]
)
def test_a_file_that_is_not_a_database(root, state, content):
    Workspace(root, state=state).close()
    (state / "history.db").write_bytes(content)
    if not content:  # a log without its database
        (state / "history.db-wal").write_bytes(b"x" * 100)
    assert "damaged" in refused(root, state, FileIOError)
    assert (state / "history.db").read_bytes() == content


def test_a_newer_version_and_one_in_which_others_may_write(root, state):
    Workspace(root, state=state).close()
    state.chmod(0o770)
    assert "chmod 700" in refused(root, state, RefusedError)
    state.chmod(0o700)
    sql(state, f"PRAGMA user_version = {DATABASE_VERSION + 1}")
    assert f"has version {DATABASE_VERSION + 1}" in refused(root, state)


@pytest.mark.parametrize("application", [0, 7])
def test_the_database_of_another_program(root, state, application):
    state.mkdir(mode=0o700)
    sql(state, "CREATE TABLE mine (x)", f"PRAGMA application_id = {application}")
    assert "belongs to another program" in refused(root, state)


def test_the_state_directory_of_another_tree(root, state, tmp_path):
    Workspace(root, state=state).close()
    (tmp_path / "other").mkdir()
    said = refused(tmp_path / "other", state)
    assert "belongs to another workspace" in said
    assert str(root) in said
    (tmp_path / "link").symlink_to(root)
    Workspace(tmp_path / "link", state=state).close()


def test_one_workspace_at_a_time(root, state):
    with Workspace(root, state=state):
        assert "in use by another workspace" in refused(root, state, BusyError)
        code = "import sys; from agentfs import Workspace; Workspace(sys.argv[1], state=sys.argv[2])"
        command = [sys.executable, "-c", code, root, state]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert "BusyError" in done.stderr
    Workspace(root, state=state).close()


def test_only_its_owner_may_look(root, state):
    state.mkdir(mode=0o755)
    with Workspace(root, state=state) as ws:
        ws.read("a.txt")
        ws.write("b", "x\n")
    assert stat.S_IMODE(state.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in state.iterdir()} == {0o600}


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP])
def test_a_file_system_without_locks(root, state, monkeypatch, number):
    def flock(fd, operation):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", flock)
    said = refused(root, state, FileIOError)
    assert "cannot be locked" in said
    assert "local disk" in said


NO_SQLITE_LOCKS = """
import sys
from agentfs import AgentFSError, Workspace
print("ready", flush=True)
sys.stdin.readline()
try: Workspace(*sys.argv[1:2], state=sys.argv[2])
except AgentFSError as error: print(type(error).__name__, error.message.replace(chr(10), " "), flush=True)
else: print("opened", flush=True)
sys.stdin.readline()
"""


@needs_tracing
@pytest.mark.parametrize(
    "number", ["ENOLCK", *(pytest.param(each, marks=pytest.mark.long) for each in ("EIO", "EINVAL"))]
)
def test_a_file_system_without_the_locks_of_sqlite(root, state, tmp_path, number):
    Workspace(root, state=state).close()
    inject = f"fcntl:error={number}:when=1+"
    said = run_traced(NO_SQLITE_LOCKS, [root, state], tmp_path / "log", inject)
    assert said.startswith("FileIOError ")
    assert "cannot be locked" in said


def test_a_database_that_another_program_has_locked(root, state, monkeypatch, capsys):
    Workspace(root, state=state).close()
    monkeypatch.setattr(database, "_TIMEOUT", 0.0)
    with closing(sqlite3.connect(state / "history.db")) as other:
        other.execute("PRAGMA locking_mode=EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        assert "cannot be locked" in refused(root, state, FileIOError)
        assert main(["log", "--state", str(state)]) == 2
    assert f'"{state}" failed: database is locked.' in capsys.readouterr().err


def test_an_error_leaves_the_lock_and_no_descriptor(root, state):
    Workspace(root, state=state).close()
    whole = (state / "history.db").read_bytes()
    (state / "history.db").write_bytes(b"x" * 100)
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    for _ in range(3):
        refused(root, state, FileIOError)
    if before:
        assert len(os.listdir("/proc/self/fd")) == before
    (state / "history.db").write_bytes(whole)
    Workspace(root, state=state).close()


def test_beginning_one_that_was_never_finished(root, state):
    state.mkdir()
    for name in ("agentfs.lock", "history.db", "history.db-journal"):
        (state / name).write_bytes(b"")
    with Workspace(root, state=state) as ws:
        ws.write("b", "x\n")
    assert sorted(os.listdir(state)) == ["agentfs.lock", "history.db"]


@pytest.fixture(scope="module")
def history(tmp_path_factory):
    """A tree, its state directory, and every state that the tree had: steps, a journey back, a checkpoint."""
    top = tmp_path_factory.mktemp("history")
    root, state = top / "root", top / "state"
    root.mkdir()
    (root / "a.txt").write_text("one\n")
    had = [files(root)]
    with Workspace(root, state=state) as ws:
        for act in (
            lambda: ws.edit("a.txt", "one", "two"),
            lambda: ws.write("d/b.bin", "x\n" * 50),
            lambda: ws.checkpoint("here"),
            lambda: ws.move("a.txt", "c.txt"),
            ws.undo,
            lambda: ws.delete("d/b.bin"),
        ):
            act()
            had.append(files(root))
    return root, state, had


def files(top):
    """A step that the journal has lost may leave behind a directory that it made."""
    return snapshot(top, directories=False)


def used(history, tmp_path, damage):
    """Open a damaged copy, undo all that can be, and judge."""
    root, state, had = history
    top = tmp_path / "copy"
    shutil.rmtree(top, ignore_errors=True)
    top.mkdir()
    (top / "state").mkdir(mode=0o700)
    prepared = tmp_path / "history.db"
    if not prepared.exists():
        shutil.copyfile(state / "history.db", top / "state" / "history.db")
        sql(
            top / "state", ("UPDATE meta SET value = ? WHERE key = 'root'", (stored_json(str(top / "root")),))
        )
        shutil.copyfile(top / "state" / "history.db", prepared)
    shutil.copyfile(prepared, top / "state" / "history.db")
    damage(top / "state")
    shutil.copytree(root, top / "root", symlinks=True)
    refusal = None
    try:
        ws = Workspace(top / "root", state=top / "state")
    except AgentFSError as error:
        refusal = error
    if refusal is not None:
        assert refusal.code in {"io", "invalid_argument"}
        assert refusal.hint
        assert files(top / "root") == had[-1]
        return "refused"
    outcome = "opened"
    with ws:
        try:
            while standing(ws):
                before = files(top / "root")
                ws.undo()
                assert files(top / "root") in had
        except AgentFSError:
            outcome = "stopped"
            assert files(top / "root") == before
        else:
            outcome = "undone" if files(top / "root") == had[0] else "opened"
            assert files(top / "root") in had
        ws.ls()
    return outcome


@part_or_all(16, full=4)
def test_a_database_that_ends_anywhere_is_refused_or_does_no_harm(history, tmp_path, every):
    size = (history[1] / "history.db").stat().st_size
    outcomes = set()
    pages = {page + near for page in range(4096, size, 4096) for near in (-1, 0, 1)}
    for length in sorted({*range(size - 1, 0, -101 * every), *pages}, reverse=True):
        outcomes.add(used(history, tmp_path, lambda state: os.truncate(state / "history.db", length)))  # noqa: B023 - used at once
    assert "refused" in outcomes
    assert "opened" not in outcomes, "nothing is passed over in silence"


@part_or_all(12, full=2)
def test_a_byte_that_is_another_is_told_or_does_no_harm(history, tmp_path, every):
    used(history, tmp_path, lambda _: None)
    data = (tmp_path / "history.db").read_bytes()
    places = [place for place, byte in enumerate(data) if byte][::9] + list(range(0, len(data), 997))
    outcomes = []
    for place in places[::every]:

        def flip(state, place=place):
            damaged = bytearray(data)
            damaged[place] ^= 0x21
            (state / "history.db").write_bytes(damaged)

        outcomes.append(used(history, tmp_path, flip))
    assert "opened" not in outcomes, "nothing is passed over in silence"
    # A content that only redo would need is found out when it is asked for.
    assert outcomes.count("refused") > len(outcomes) / 3


@pytest.fixture(scope="module")
def unfinished(tmp_path_factory):
    """The tree and state of a process that died in a recording, with most of it still in the log."""
    top = tmp_path_factory.mktemp("unfinished")
    put(top, {"root/a.txt": "one\n"})
    child = os.fork()
    if child == 0:
        ws = Workspace(top / "root", state=top / "state")
        ws.edit("a.txt", "one", "two")
        ws.apply_review(accept=[hunk.id for file in ws.review().files for hunk in file.hunks])
        ws.write("b", "b\n" * 2000)
        with ws.recording("shell"):
            (top / "root" / "c").write_text("c\n")
            os.kill(os.getpid(), 9)
    os.waitpid(child, 0)
    assert (top / "state" / "history.db-wal").stat().st_size
    return top


@pytest.mark.parametrize("seeds", [range(8), pytest.param(range(8, 600), marks=pytest.mark.full)], ids=len)
def test_any_damage_of_database_and_log_is_a_typed_error_or_does_no_harm(unfinished, seeds):
    root, state = unfinished / "root", unfinished / "state"
    before, whole = snapshot(root), {path: path.read_bytes() for path in sorted(state.iterdir())}
    outcomes = set()
    for seed in seeds:
        chance = random.Random(seed)
        for path in state.iterdir():
            path.unlink()
        for path, data in whole.items():
            damaged = bytearray(data)
            if path.name.startswith("history.db") and not path.name.endswith("-shm"):
                for _ in range(chance.choice([0, 1, 3, 50])):
                    damaged[chance.randrange(len(damaged))] = chance.randrange(256)
                if chance.random() < 0.3:
                    del damaged[chance.randrange(len(damaged)) :]
            path.write_bytes(damaged)
        try:
            with Workspace(root, state=state) as ws:
                outcomes.add("opened")
                ws.changes()
                ws.review()
        except AgentFSError as error:
            outcomes.add(error.code)
        assert snapshot(root) == before
    assert "opened" in outcomes
    assert outcomes <= {"opened", "io", "invalid_argument"}


def test_transactions_lost_in_a_power_cut_are_dropped(history, tmp_path):
    def lengthen(state):
        with (state / "history.db").open("ab") as file:
            file.write(bytes(5000))

    assert used(history, tmp_path, lengthen) == "undone"


@pytest.mark.parametrize("damaged", ["steps", "meta"])
def test_regression_a_damaged_row_is_a_typed_error_at_each_opening(root, state, damaged):
    with Workspace(root, state=state) as ws:
        with ws.recording("shell"):
            (root / "b").write_text("x\n")
        ws.checkpoint("c")
    before = snapshot(root)
    column = "payload" if damaged == "steps" else "value"
    sql(state, f"UPDATE {damaged} SET {column} = CAST({column} || 'x' AS BLOB)")
    for _ in range(2):
        refused(root, state, FileIOError)
    assert snapshot(root) == before


def test_a_forged_journal_leads_nowhere(root, state, tmp_path):
    with Workspace(root, state=state) as ws:
        ws.write("b", "x\n")
        step = step_to_json(ws._journal.log.step(1))
    whole = (state / "history.db").read_bytes()

    def forge(table, *values):
        (state / "history.db").write_bytes(whole)
        marks = ", ".join("?" * len(values))
        sql(state, (f"INSERT OR REPLACE INTO {table} VALUES ({marks})", values))
        refused(root, state, FileIOError)

    link = ["link", "target"]
    for path in ("../out", "/out", "", "a/../../out", ".", "a\0b"):
        forge("steps", 2, 0, stored_json({**step, "changes": [[path, None, link, ""]]}))
    bad = {**step, "changes": [["x", ["file", 420, "not hex", 2], None, ""]]}
    toggles = [{**step, "toggles": [[number, True, []]]} for number in (0, 2)]
    for payload in ([], {}, 1, bad, *toggles):
        forge("steps", 2, 0, stored_json(payload))
    forge("steps", 3, 0, stored_json(step))
    forge("steps", 2, 0, b"\xff")
    forge("meta", "checkpoints", stored_json({"c": 9}))
    forge("meta", "dropped", stored_json("x"))
    for recording in ([1], {"label": "x", "ignored": False, "position": 0}):  # without its tree
        forge("meta", "recordings", stored_json(recording))
    assert sorted(os.listdir(tmp_path)) == ["root", "state"]
