"""A forked child never uses what belongs to its parent: databases, locks, threads."""

import asyncio
import contextlib
import multiprocessing
import os
import subprocess
import sys
import threading

import pytest

from agentfs import AgentFSError, Policy, Workspace
from agentfs.history import database
from tests.kit import in_a_fork

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not copied here")


@pytest.fixture
def ws(tmp_path):
    with Workspace(tmp_path, policy=Policy(overwrite="always")) as workspace:
        yield workspace


@pytest.fixture(autouse=True)
def _nothing_in_memory(monkeypatch):
    """Let each content go to the database at once."""
    monkeypatch.setattr(database, "_MEMORY_BYTES", 0)


def error_of(act) -> str:
    try:
        return str(act())
    except AgentFSError as error:
        return f"{error.code}: {error}"


def random_text() -> str:
    return os.urandom(30_000).hex()


def test_each_process_undoes_only_what_it_changed_itself(ws, tmp_path):
    """Both go on after the fork, with more than stays in memory."""
    versions = {name: [random_text() for _ in range(20)] for name in ("parent", "child")}
    go, told = os.pipe(), os.pipe()
    for text in versions["parent"][:10]:
        ws.write("parent.txt", text)
    ws.checkpoint("before")

    def child():
        said = [error_of(ws.undo), error_of(lambda: ws.rollback("before"))]
        for text in versions["child"]:
            ws.write("child.txt", text)
        os.write(told[1], b"x")
        os.read(go[0], 1)  # the parent has written and undone meanwhile
        for text in reversed(versions["child"][:-1]):
            ws.undo()
            assert (tmp_path / "child.txt").read_text() == text
        ws.undo()
        return "\n".join([*said, error_of(ws.undo), ws.changes().text])

    def parent():
        os.read(told[0], 1)
        for text in versions["parent"][10:]:
            ws.write("parent.txt", text)
        for text in reversed(versions["parent"][:-1]):
            ws.undo()
            assert (tmp_path / "parent.txt").read_text() == text
        os.write(go[1], b"x")

    thread = threading.Thread(target=parent)
    thread.start()
    said = in_a_fork(child)
    thread.join()
    assert said.split("\n") == [
        "invalid_argument: There is nothing to undo.",
        'not_found: There is no checkpoint "before".',
        "There is none yet.",
        "invalid_argument: There is nothing to undo.",
        "Nothing is changed.",
    ]


@pytest.mark.parametrize("kept", [False, True])
def test_a_child_that_ends_leaves_the_history_of_its_parent_alone(tmp_path, kept):
    """It ends as multiprocessing does, and by the interpreter's own end, which closes what is left."""
    root, state = tmp_path / "root", tmp_path / "state"
    root.mkdir()
    with Workspace(root, policy=Policy(overwrite="always"), state=state if kept else None) as ws:
        texts = [random_text() for _ in range(20)]
        for text in texts:
            ws.write("a.txt", text)
        process = multiprocessing.get_context("fork").Process(target=ws.close)
        process.start()
        process.join()
        assert process.exitcode == 0
        said = in_a_fork(ws.undo)
        assert ("nothing to undo" in said) is not kept
        assert ("from which this one was forked" in said) is kept
        for text in reversed(texts[:-1]):
            ws.undo()
            assert (root / "a.txt").read_text() == text


def test_a_child_does_not_hold_the_lock_of_a_state_directory(tmp_path):
    (tmp_path / "root").mkdir()
    (hold, held), (begun, beginning) = os.pipe(), os.pipe()
    with Workspace(tmp_path / "root", state=tmp_path / "state"):
        child = os.fork()
        if child == 0:
            os.write(beginning, b"1")
            os.close(held)
            os.read(hold, 1)
            os._exit(0)
        os.read(begun, 1)  # the child closes its copy of the lock before its first statement
    Workspace(tmp_path / "root", state=tmp_path / "state").close()
    for fd in (hold, held, begun, beginning):
        os.close(fd)
    os.waitpid(child, 0)


def test_a_state_directory_is_free_when_it_is_closed_even_if_a_child_has_not_begun(tmp_path):
    (tmp_path / "root").mkdir()
    code = """
import os, sys
os.register_at_fork(after_in_child=lambda: os.read(hold, 1))  # runs before the hook of agentfs
from agentfs import AgentFSError, Workspace
hold, held = os.pipe()
with Workspace("root", state="state"):
    child = os.fork()
    if child == 0:
        try:  # the child must not release the lock of another workspace of its parent
            Workspace("root", state="state")
        except AgentFSError as error:
            os._exit(error.code == "busy")
        os._exit(2)
with Workspace("root", state="state"):
    os.write(held, b"1")
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    command = [sys.executable, "-c", code]
    printed = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (printed.stdout, printed.stderr) == ("1\n", "")


def test_a_transaction_belongs_to_its_own_process(ws, tmp_path):
    with contextlib.ExitStack() as stack:
        tx = stack.enter_context(ws.transaction())
        tx.write("new.txt", "one\n")
        in_a_fork(stack.close)
        assert "has ended" in in_a_fork(lambda: tx.write("b.txt", "x\n"))
        assert (tmp_path / "new.txt").exists(), "only its own process takes it back"
    assert (tmp_path / "new.txt").read_text() == "one\n"


def test_a_child_does_not_wait_for_threads_and_locks_of_its_parent(ws):
    tools = ws.tools("all")
    ws.write("a.txt", "one\n")
    asyncio.run(tools.acall("read", {"path": "a.txt"}))
    with ws._journal.lock, ws._read_tracker._lock, ws._outputs._lock:
        done = threading.Event()

        def child():
            result = asyncio.run(tools.acall("write", {"path": "b.txt", "content": "two\n"}))
            return f"{result.success} {ws.undo().steps}"

        def fork():
            said.append(in_a_fork(child))
            done.set()

        said: list[str] = []
        threading.Thread(target=fork).start()
        assert done.wait(20)
    assert said == ["True 1"]


SET = (
    "CAST('-' || substr(data, 2) AS BLOB)",
    "x'2d00'",
    "'x' || CAST(data AS TEXT)",
    "CAST(x'ff41' AS TEXT)",
    "5",
)


@pytest.mark.parametrize(
    "damage", [*(f"UPDATE contents SET data = {each}" for each in SET), "DELETE FROM contents"]
)
def test_a_content_that_changed_in_the_temporary_file_is_never_written(ws, tmp_path, damage):
    texts = [random_text() for _ in range(3)]
    (tmp_path / "a.txt").write_text(random_text())  # what `changes` compares with
    for text in texts:
        ws.write("a.txt", text)
    database = ws._journal.contents.database
    database.write([(damage, ())])
    for act in (ws.undo, ws.changes):
        with pytest.raises(AgentFSError, match="A content of the journal in the temporary file is damaged"):
            act()
    assert (tmp_path / "a.txt").read_text() == texts[-1]
