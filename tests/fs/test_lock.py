import asyncio
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial

import pytest

from agentfs import Limits, Policy, Toolset, Workspace
from agentfs.errors import BusyError, ConflictError, StaleError
from agentfs.fs import Current, Root, lock, syscalls
from tests import kit
from tests.fs.mechanisms import change
from tests.kit import in_a_fork, in_threads

APPEND = """
import sys
from agentfs import Limits, Workspace
from agentfs.fs import lock
lock.WAIT = 600  # a slow machine must not end the test
with Workspace(sys.argv[1], limits=Limits(timeout=600)) as ws:
    for number in range(int(sys.argv[2])):
        ws.append("log", f"{sys.argv[3]} {number}\\n")
"""
HOLD = """
import os, sys, time
from agentfs.fs import Root
from agentfs.policy import Policy
def hold(now):
    if FORKS and os.fork() == 0:
        time.sleep(60)
    print("held", flush=True)
    time.sleep(60)
with Root(sys.argv[1], Policy()) as root:
    root.update("n", hold, max_bytes=99)
"""


@contextmanager
def held(tree, forks=False):
    """Give a process that holds a lock; kill it, and those that it started, at the end."""
    (tree / "n").write_bytes(b"0")
    command = [sys.executable, "-c", f"FORKS = {forks}{HOLD}", str(tree)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        try:
            yield holder
        finally:
            with suppress(ProcessLookupError):
                os.killpg(holder.pid, 9)


@pytest.mark.full
@pytest.mark.parametrize("times", [100, pytest.param(2000, marks=pytest.mark.long)])
def test_two_processes_on_one_file_lose_nothing(tree, times):
    command = [sys.executable, "-c", APPEND, str(tree), str(times)]
    running = [subprocess.Popen([*command, name]) for name in "ab"]
    assert [each.wait() for each in running] == [0, 0]
    lines = (tree / "log").read_text().splitlines()
    assert sorted(lines) == sorted(f"{name} {number}" for name in "ab" for number in range(times))


@pytest.mark.parametrize("forks", [False, True])
def test_a_lock_is_freed_by_a_kill(tree, monkeypatch, forks):
    """A process that forked while it held a lock, and was killed, left the lock to its child."""
    monkeypatch.setattr(lock, "WAIT", 0.1)
    with held(tree, forks) as holder, Root(tree, Policy()) as root:
        with pytest.raises(BusyError):
            change(root, "n", lambda _: b"1", max_bytes=99)
        holder.kill()
        holder.wait()
        change(root, "n", lambda _: b"1", max_bytes=99)
        assert (tree / "n").read_bytes() == b"1"


@pytest.mark.parametrize(("other", "waits"), [
    *(("root", True), ("", True), ("root/a", True), ("root/a/b", True), ("alias", True)),
    *(("out", False), ("rootevil", False)),
])  # fmt: skip
@pytest.mark.parametrize("has_directory", [True, False])
def test_a_change_waits_for_changes_in_its_tree_around_it_and_inside_it(
    tree, tmp_path, monkeypatch, other, waits, has_directory
):
    (tmp_path / "alias").symlink_to(tree)
    monkeypatch.setattr(lock, "WAIT", 0.02)
    if not has_directory:  # the threads of this process wait for each other
        monkeypatch.setattr(lock, "usable_directories", lambda _: iter(()))
    codes = []

    def write(root):
        try:
            change(root, "x", lambda _: b"x", max_bytes=9)
        except BusyError as error:
            codes.append(error.code)

    def meanwhile(_):
        with in_threads(partial(write, second)):
            pass
        return b"x"

    with Root(tree, Policy()) as first, Root(tmp_path / other, Policy()) as second:
        for root in (first, second):
            change(root, "y", lambda _: b"y", max_bytes=9)
        change(first, "f", meanwhile, max_bytes=9)
        write(second)
    assert codes == ["busy"] * (waits or not has_directory)
    assert not lock._locks.held
    assert not lock._locks.without_directory.locked()


@pytest.mark.parametrize(
    ("inner", "outer", "refused"), [("root", "", True), ("", "root", False), ("root", "out", False)]
)
def test_a_change_in_the_middle_of_one_inside_its_tree_is_busy(
    tree, tmp_path, monkeypatch, inner, outer, refused
):
    """The thread holds the outer lock only shared, so another program may be changing the same file."""
    monkeypatch.setattr(lock, "WAIT", 0.02)
    codes = []

    def write(root):
        try:
            change(root, "x", lambda _: b"x", max_bytes=9)
        except BusyError as error:
            codes.append(error.code)
        return b"f"

    with Root(tmp_path / inner, Policy()) as first, Root(tmp_path / outer, Policy()) as second:
        change(first, "f", lambda _: write(second), max_bytes=9)
        assert codes == ["busy"] * refused
        write(second)  # now it may
    assert codes == ["busy"] * refused
    assert not lock._locks.held


def test_the_number_of_lock_files_is_bounded(monkeypatch):
    monkeypatch.setattr(lock, "_NAME_DIGITS", 2)
    files = lock.lock_keys(map(str, range(500)), map(str, range(500, 2000)))
    assert 250 < len(files) <= 256
    assert [*files] == sorted(files)


def test_the_locks_lie_outside_the_workspace(tmp_path, monkeypatch):
    monkeypatch.setattr(syscalls, "home_of", lambda _: str(tmp_path))
    inside = next(lock.usable_directories("/elsewhere"))
    assert inside == str(tmp_path / ".cache" / "agentfs" / "locks")
    assert os.stat(inside).st_mode & 0o777 == 0o700
    assert next(lock.usable_directories(str(tmp_path))) == f"/tmp/agentfs-{os.geteuid()}"
    os.chmod(inside, 0o777)
    assert next(lock.usable_directories("/elsewhere")) != inside, "others may write there"


def lines(count: int) -> str:
    return "".join(f"<{number}:0>\n" for number in range(count))


async def test_30_tasks_edit_one_file_and_lose_nothing(tmp_path, patient):
    (tmp_path / "f").write_text(lines(30))
    with Workspace(tmp_path) as ws:
        tools = ws.tools()

        async def work(number: int) -> None:
            for step in range(5):
                old, new = f"<{number}:{step}>", f"<{number}:{step + 1}>"
                done = await tools.acall("edit", {"path": "f", "old_string": old, "new_string": new})
                assert done.success, done.content

        await asyncio.gather(*(work(number) for number in range(30)))
    assert (tmp_path / "f").read_text() == lines(30).replace(":0", ":5")


@pytest.mark.full
@pytest.mark.parametrize("has_links", [True, False])
def test_a_batch_and_single_changes_of_its_files_exclude_one_another(
    tmp_path, monkeypatch, has_links, patient
):
    """In three processes, where only the lock files keep them apart."""
    for name in "ab":
        (tmp_path / name).write_bytes(b"0")
    monkeypatch.setattr(lock, "WAIT", 600)
    if not has_links:
        monkeypatch.setattr(os, "link", lambda *_, **__: (_ for _ in ()).throw(PermissionError(1, "no")))

    def add_one(text):
        return [(0, len(text), str(int(text) + 1))], ()

    def add_to_both(ws):
        while True:
            with suppress(StaleError, ConflictError):
                with ws.transaction() as tx:
                    for name in "ab":
                        kit.splice(tx, name, add_one)
                return

    def count(kind):
        with Workspace(tmp_path, policy=Policy(overwrite="always")) as ws:
            for _ in range(60):
                if kind == "both":
                    add_to_both(ws)
                else:
                    kit.splice(ws, "a", add_one)

    with ThreadPoolExecutor() as pool:  # each waits for a process
        assert [*pool.map(lambda kind: in_a_fork(lambda: count(kind)), ("both", "one", "both"))] == [
            "None"
        ] * 3
    assert ((tmp_path / "a").read_text(), (tmp_path / "b").read_text()) == ("180", "120")


def test_a_call_waits_for_a_lock_until_its_deadline(tree):
    with held(tree), Workspace(tree, limits=Limits(timeout=0.3)) as ws:
        began = time.monotonic()
        with pytest.raises(BusyError):
            ws.write("n", "1", overwrite=True)
        with pytest.raises(BusyError):
            ws.edit("n", "0", "1")
        assert time.monotonic() - began < lock.WAIT / 2


async def test_a_cancelled_call_no_longer_waits_for_a_lock(tree):
    began = time.monotonic()
    with held(tree), Workspace(tree) as ws:
        arguments = {"path": "n", "old_string": "0", "new_string": "1"}
        tools = Toolset([ws.edit, ws.read], concurrency=1)
        call = asyncio.create_task(tools.acall("edit", arguments))
        await asyncio.sleep(0.2)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert (await tools.acall("read", {"path": "n"})).success  # once the thread is free
    assert time.monotonic() - began < lock.WAIT / 2


def test_a_forked_process_does_not_wait_for_locks_of_its_parent(tree):
    begun, finish = threading.Event(), threading.Event()

    def hold(now: Current) -> bytes:
        begun.set()
        finish.wait()
        return now.data or b""

    with Root(tree, Policy()) as root:
        holder = threading.Thread(target=lambda: change(root, "f", hold, max_bytes=99))
        holder.start()
        begun.wait()
        try:
            assert lock._locks.held
            assert in_a_fork(lambda: len(lock._locks.held)) == "0"
            threading.Timer(0.2, finish.set).start()
            assert in_a_fork(lambda: change(root, "a/t", lambda _: b"mine", max_bytes=99).path) == "a/t"
        finally:
            finish.set()
            holder.join()


def test_a_fork_that_leaves_the_block_of_a_lock_keeps_the_lock_of_its_parent(tree):
    def fork(now: Current) -> bytes:
        exclusive = next(fd for fd, shared in lock._locks.own.files.values() if not shared)
        file = os.readlink(f"/proc/self/fd/{exclusive}")
        child = os.fork()
        if child == 0:
            raise SystemExit
        os.waitpid(child, 0)
        assert lock.open_locked(file) is None, "the child has released the lock"
        return now.data or b""

    with Root(tree, Policy()) as root:
        try:
            change(root, "f", fork, max_bytes=99)
        except SystemExit:
            os._exit(0)


def test_edits_through_two_hard_links_lose_nothing(tree):
    """With "break" each name gets its own file, so each file has the edits of its name."""
    (tree / "n").write_text("start\n")
    os.link(tree / "n", tree / "m")

    def append(name: str) -> None:
        for number in range(20):
            change(
                root, name, lambda now, number=number: (now.data or b"") + b"%d\n" % number, max_bytes=9999
            )

    with Root(tree, Policy()) as root, in_threads(partial(append, "n"), partial(append, "m")):
        pass
    wanted = "start\n" + "".join(f"{number}\n" for number in range(20))
    assert (tree / "n").read_text() == (tree / "m").read_text() == wanted
