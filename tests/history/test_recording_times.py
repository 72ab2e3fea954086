"""Recordings beside the clock: deadlines, cancelled calls, failing ends, busy writers, coarse file times."""

import asyncio
import functools
import gc
import inspect
import mmap
import os
import sqlite3
import subprocess
import threading
import time
from contextlib import ExitStack, suppress

import pytest

import agentfs
from agentfs import AgentFSError, Limits, Policy, Toolset, Workspace
from agentfs.errors import DeadlineExceededError, FileIOError
from agentfs.history import scan as scan_module
from agentfs.history.database import Database
from agentfs.history.recording import recordings_of
from agentfs.history.scan import Status
from tests.history.judges import standing
from tests.kit import in_threads, wait_for
from tests.remote.over_pipe import open_pipe


@pytest.fixture
def root(tmp_path):
    top = tmp_path / "root"
    (top / "src").mkdir(parents=True)
    for number in range(30):
        (top / "src" / f"{number:02}.py").write_text(f"{number}\n")
    return top


@pytest.fixture
def slow(monkeypatch):
    """Makes each look at a directory slow while it is set."""
    reads, look = threading.Event(), scan_module.Scan._take

    def take(scan, *arguments):
        for _ in range(100):
            if not reads.is_set():
                break
            time.sleep(0.01)
            scan_module.call_context.check()
        return look(scan, *arguments)

    monkeypatch.setattr(scan_module.Scan, "_take", take)
    return reads


def paths(result):
    return [file.path for file in result.files]


# Deadlines


@pytest.mark.full
def test_line_6_a_recording_ends_with_its_deadline_and_blocks_nobody(root, slow):
    with Workspace(root, limits=Limits(timeout=0.3)) as ws:
        slow.set()
        began = time.monotonic()
        with pytest.raises(DeadlineExceededError), ws.recording("x"):
            pass
        assert time.monotonic() - began < 1
        assert not recordings_of(ws._journal)._open


@pytest.mark.full
@pytest.mark.parametrize("phase", ["begin", "end"])
def test_changes_of_other_threads_wait_for_a_scan_and_are_their_own_steps(root, slow, phase):
    with Workspace(root) as ws:

        def edit():
            time.sleep(0.2)
            ws.edit("src/03.py", "3", "own")
            ws.write("own.txt", "own\n")

        thread = threading.Thread(target=edit)
        if phase == "begin":
            slow.set()
            thread.start()
        with ws.recording("x") as recorded:
            if phase == "begin":  # the two programs must not write the file at once
                slow.clear()
                thread.join()
            (root / "src" / "04.py").write_text("outside\n")
            (root / "src" / "03.py").write_text((root / "src" / "03.py").read_text() + "outside\n")
            if phase == "end":
                slow.set()
                thread.start()
                threading.Timer(0.5, slow.clear).start()
        slow.clear()
        thread.join()
        assert paths(recorded.result) == ["src/03.py", "src/04.py"]
        assert (root / "src" / "03.py").read_text() == "own\noutside\n"
        ws.undo(len(standing(ws)))
    assert (root / "src" / "03.py").read_text() == "3\n"
    assert (root / "src" / "04.py").read_text() == "4\n"
    assert not (root / "own.txt").exists()


def test_an_end_without_time_is_made_up_for(root, slow):
    with Workspace(root, limits=Limits(timeout=0.3)) as ws:
        with pytest.raises(DeadlineExceededError) as caught, ws.recording("x") as recorded:  # noqa: PT012 - its end raises
            (root / "src" / "new").write_text("new\n")
            slow.set()
        assert recorded.result is None
        assert "nothing was changed" not in str(caught.value).lower()
        assert "kept" in caught.value.hint
        with pytest.raises(DeadlineExceededError):
            ws.undo()
        slow.clear()
        assert ws.changes().files[0].label == "x"
        ws.undo()
    assert not (root / "src" / "new").exists()


# Ends that fail


@pytest.mark.parametrize("code", [sqlite3.SQLITE_BUSY, sqlite3.SQLITE_FULL])
def test_line_8_a_recording_whose_end_fails_is_kept(root, tmp_path, monkeypatch, code):
    write, state = Database.write, tmp_path / "state"

    def failing(database, statements):
        statements = [*statements]
        if any("INTO steps" in sql for sql, _ in statements):
            error = sqlite3.OperationalError("fails")
            error.sqlite_errorcode = code
            with database._typed_errors():
                raise error
        return write(database, statements)

    with Workspace(root, state=state) as ws:
        with pytest.raises(FileIOError) as caught, ws.recording("make") as recorded:  # noqa: PT012 - its end raises
            (root / "new").write_text("new\n")
            monkeypatch.setattr(Database, "write", failing)
        assert "Nothing was changed" not in str(caught.value)
        assert '"make" has no step yet' in str(caught.value)
        assert recorded.result is None
        monkeypatch.undo()
        ws.undo()
        assert not (root / "new").exists()
        ws.redo()
        monkeypatch.setattr(Database, "write", failing)
        with suppress(FileIOError), ws.recording("again"):
            (root / "new").write_text("newer\n")
        monkeypatch.undo()
    with Workspace(root, state=state) as ws:
        assert 'recording "again" was open' in ws.recovery_notes[0]
        ws.undo()
    assert (root / "new").read_text() == "new\n"


def test_regression_two_threads_that_end_the_same_late_recording_make_one_step(root, tmp_path, monkeypatch):
    """The second one failed with `ValueError: list.remove(x): x not in list`."""

    def failing(*_, **__):
        raise FileIOError("The disk is full.")

    with Workspace(root, state=tmp_path / "state") as ws:
        with suppress(FileIOError), ws.recording("make"):
            (root / "new").write_text("new\n")
            monkeypatch.setattr(Database, "write", failing)
        monkeypatch.undo()
        with ExitStack() as stack, ws._journal.lock:
            stack.enter_context(in_threads(*[ws.changes] * 3))
            time.sleep(0.2)  # all of them wait to look at the tree
        assert [step.label.partition(" ")[0] for step in standing(ws)] == ["make"]
        ws.undo()
    assert not (root / "new").exists()


def test_regression_a_recording_that_ends_is_not_taken_for_one_whose_end_has_failed(root, slow):
    """A call of another thread ended it in its place, with the time of that call in its label."""
    with Workspace(root) as ws:
        with ws.recording("make"):
            (root / "new").write_text("new\n")
            slow.set()
            others = threading.Thread(target=ws.changes)
            threading.Timer(0.2, others.start).start()
            threading.Timer(0.5, slow.clear).start()
        others.join()
        assert [step.label for step in standing(ws)] == ["make"]


# Cancelled calls


async def cancelled_after(start, delay):
    task = asyncio.create_task(start())
    await asyncio.sleep(delay)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


@pytest.mark.parametrize("delay", [0, 0.001, 0.003, 0.01, 0.05])
@pytest.mark.parametrize("is_slow", [True, False])
def test_line_7_a_cancelled_begin_leaves_no_recording_open(root, slow, is_slow, delay, monkeypatch):
    blocks, block_of = [], Workspace.recording

    def kept_block(*arguments):  # a program may keep it, for example in a traceback
        blocks.append(block_of(*arguments))
        return blocks[-1]

    monkeypatch.setattr(Workspace, "recording", kept_block)
    with Workspace(root) as ws:
        if is_slow:
            slow.set()

        @ws.recorded
        async def work():
            await asyncio.sleep(30)

        asyncio.run(cancelled_after(work, delay))
        slow.clear()
        recordings, idle, deadline = recordings_of(ws._journal), 0, time.monotonic() + 10
        while idle < 10 and time.monotonic() < deadline:  # the thread of the call may be late
            with ws._journal.lock:
                idle = 0 if recordings._open else idle + 1
            time.sleep(0.01)
        (root / "person").write_text("x\n")
        with ws.recording("later"):
            pass
        with suppress(AgentFSError):
            ws.undo()
        assert (root / "person").exists()
        assert not recordings_of(ws._journal)._open


@pytest.mark.parametrize("cancelled", [True, False])
def test_a_tool_call_that_is_cancelled_or_takes_too_long_ends_its_recording(root, cancelled):
    with Workspace(root, limits=Limits() if cancelled else Limits(timeout=0.2)) as ws:
        began, go_on = threading.Event(), threading.Event()

        def bash(command: str) -> str:
            """Run a command.

            Args:
                command: A shell command.
            """
            (root / "new").write_text(command)
            began.set()
            go_on.wait(10)
            return "done"

        async def main():
            task = asyncio.create_task(Toolset([ws.recorded(bash)]).acall("bash", {"command": "x"}))
            await asyncio.to_thread(began.wait, 10)
            await asyncio.sleep(0 if cancelled else 0.4)
            task.cancel() if cancelled else None
            go_on.set()
            with suppress(asyncio.CancelledError):
                assert 'created "new"' in (await task).content

        asyncio.run(main())
        wait_for(lambda: not recordings_of(ws._journal)._open)
        ws.undo()
    assert not (root / "new").exists()


# Kinds of functions


def kinds(root):
    """Return functions that write a file and say so, each with True if it is awaited."""

    def touch(name):
        time.sleep(0.01)
        (root / name).write_text("x\n")
        return "said"

    async def later(name):
        await asyncio.sleep(0.01)
        return touch(name)

    class Async:
        async def __call__(self, name):
            return await later(name)

    def future(name):
        made = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_later(0.01, lambda: made.set_result(touch(name)))
        return made

    return {
        "function": (touch, False),
        "async function": (later, True),
        "async object": (Async(), True),
        "partial": (functools.partial(later), True),
        "partial of an object": (functools.partial(Async()), True),
        "plain wrapper": (lambda name: later(name), True),  # noqa: PLW0108 - it is none itself
        "task": (lambda name: asyncio.ensure_future(later(name)), True),
        "future": (future, True),
    }


@pytest.mark.parametrize("kind", kinds(None))
@pytest.mark.parametrize("far", [False, True])
def test_line_10_every_kind_of_function_is_recorded(root, kind, far):
    function, is_awaited = kinds(root)[kind]

    async def call(recorded):
        said = recorded("new")
        return await said if is_awaited else said

    with agentfs.connect(open_pipe(), root) if far else Workspace(root) as ws:
        recorded = ws.recorded(function)
        if inspect.isfunction(function):
            assert inspect.iscoroutinefunction(recorded) == inspect.iscoroutinefunction(function)
        said = asyncio.run(call(recorded))
        assert 'created "new"' in said
        assert "said" in said
        ws.undo()
        assert not (root / "new").exists()


def test_a_generator_is_refused_because_its_recording_would_end_before_it(root):
    def generate():
        yield 1

    async def stream():
        yield 1

    with Workspace(root) as ws:
        for function in (generate, stream):
            with pytest.raises(AgentFSError) as caught:
                ws.recorded(function)
            assert caught.value.code == "invalid_argument"
            with pytest.raises(AgentFSError, match="generator"):
                ws.recorded(lambda function=function: function())()
        assert not recordings_of(ws._journal)._open


@pytest.mark.filterwarnings("ignore:coroutine")
def test_what_is_never_awaited_ends_its_recording(root):
    with Workspace(root) as ws:

        async def later():
            (root / "never").write_text("x\n")

        def wrapper():
            return later()

        async def main():
            ws.recorded(wrapper)()
            gc.collect()

        asyncio.run(main())
        assert not recordings_of(ws._journal)._open
        assert not (root / "never").exists()


# Busy trees


BUSY = "while :; do mkdir d; touch d/f f; ln -s x l; rm -r d f l; done"


@pytest.mark.full
@pytest.mark.parametrize("watch", [False, True])
def test_line_10_names_that_vanish_during_a_scan_raise_nothing(root, watch):
    with Workspace(root, watch=watch) as ws, subprocess.Popen(["sh", "-c", BUSY], cwd=root) as busy:
        end = time.monotonic() + 3
        try:
            while time.monotonic() < end:
                with ws.recording("beside a busy writer"):
                    pass
        finally:
            busy.kill()


def test_line_10_directories_that_are_too_deep_are_counted(root):
    here = os.open(root, os.O_RDONLY)
    for _ in range(20):
        os.mkdir("n" * 250, dir_fd=here)
        here, last = os.open("n" * 250, os.O_RDONLY, dir_fd=here), here
        os.close(last)
    os.close(here)
    with Workspace(root) as ws:
        for _ in range(2):
            with ws.recording("deep") as recorded:
                (root / "new").write_text(str(time.time()))
            assert recorded.result.not_covered == {"too deep": 1}
            assert "1 too deep" in recorded.result.text


# File times


@pytest.mark.parametrize("pause", [0, 0.1, 1])
def test_line_9_a_file_system_with_times_of_one_second_hides_no_change(root, monkeypatch, pause):
    status = Status.of

    def coarse(found):
        seen, second = status(found), 10**9
        times = {"modified": seen.modified // second * second, "changed": seen.changed // second * second}
        return seen._replace(**times)

    monkeypatch.setattr(Status, "of", coarse)
    with Workspace(root) as ws:
        for number in range(3):
            (root / "src" / "03.py").write_text(f"a{number}\n")
            time.sleep(pause)
            with ws.recording("same size") as recorded:
                (root / "src" / "03.py").write_text(f"b{number}\n")
            assert paths(recorded.result) == ["src/03.py"]


@pytest.mark.parametrize("watch", [False, True])
@pytest.mark.parametrize(
    "way", ["hard link", "new hard link", "mapped", "mapped before", "still mapped", "open before"]
)
def test_line_9_writes_without_events_are_recorded(root, tmp_path, watch, way):
    path, other = root / "src" / "03.py", tmp_path / "outside"
    if way == "hard link":
        os.link(path, other)
    with Workspace(root, watch=watch) as ws:
        ws.grep("3")
        with ws.recording("first"):
            pass
        file = path.open("r+b")
        mapped = mmap.mmap(file.fileno(), 0)
        time.sleep(0.1)
        with ws.recording("write") as recorded:
            match way:
                case "hard link":
                    other.write_text("x\n")
                case "new hard link":
                    os.link(path, other)
                    other.write_text("x\n")
                case "mapped":
                    with path.open("r+b") as again, mmap.mmap(again.fileno(), 0) as fresh:
                        fresh[0:1] = b"x"
                case "mapped before":
                    mapped[0:1] = b"x"
                    file.close()
                    mapped.close()
                case "still mapped":
                    mapped[0:1] = b"x"
                case "open before":
                    file.write(b"x")
                    file.flush()
        mapped.close()
        file.close()
        assert paths(recorded.result) == ["src/03.py"]
        ws.undo()
        assert path.read_text() == "3\n"


def test_regression_a_tree_without_changes_is_not_walked_again(root, monkeypatch):
    """Each recorded command walked the tree twice."""
    time.sleep(0.1)  # a file that has just been written could change again without another time
    with Workspace(root) as ws:
        with ws.recording("first"):
            pass
        monkeypatch.setattr(scan_module, "Walk", None)
        for _ in range(2):
            with ws.recording("second") as recorded:
                pass
            assert paths(recorded.result) == []
        monkeypatch.undo()
        with ws.recording("third") as recorded:
            (root / "new").write_text("x\n")
        assert paths(recorded.result) == ["new"]


# Rules


@pytest.mark.parametrize("far", [False, True])
@pytest.mark.parametrize(
    "policy",
    [
        Policy(deny=["read(src/**)"]),
        Policy(deny=["changes(src/**)"]),
        Policy(ask=["read(src/**)"], on_ask=lambda _: True),
        Policy(ask=["read"], on_ask=lambda _: True),
        Policy(deny=["read"]),
    ],
)
def test_line_5_the_result_shows_nothing_that_rules_close(root, far, policy):
    with agentfs.connect(open_pipe(), root, policy=policy) if far else Workspace(root, policy=policy) as ws:
        with ws.recording("x") as recorded:
            (root / "src" / "03.py").write_text("hidden\nhidden\n")
            (root / "moved").write_text("hidden\n")
            os.rename(root / "moved", root / "src" / "moved")
            (root / "src" / "04.py").unlink()
        result = recorded.result
        assert paths(result) == ["src/03.py", "src/04.py", "src/moved"]
        assert {(file.added, file.removed, file.protected) for file in result.files} == {(None, None, True)}
        assert b"hidden" not in result.patch
        assert b"-4" not in result.patch
        assert "hidden" not in result.text
