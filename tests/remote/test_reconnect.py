"""Lost connections: a change is made once and `made` is right, whenever and however the connection ends."""

import os
import re
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from agentfs import Workspace, connect
from agentfs.errors import BusyError, DisconnectedError
from agentfs.remote.server import Options
from tests.faults.tracing import needs_tracing
from tests.remote.over_pipe import PipeStream

PATIENCE = 20.0


class Fault:
    """Ends or silences a stream after some bytes in one direction, once it is armed."""

    def __init__(self, direction: str, after: int, *, silent: bool = False) -> None:
        self.direction, self.left, self.silent = direction, after, silent
        self.armed, self.happened = False, threading.Event()
        self.passed = {"to_far": 0, "from_far": 0}

    def pass_on(self, direction: str, data: bytes) -> bytes:
        """Return the part of the data that passes."""
        if not self.armed:
            return data
        if self.happened.is_set():
            return b""
        self.passed[direction] += len(data)
        if direction == self.direction:
            passes, self.left = data[: self.left], self.left - len(data)
            if self.left < 0:
                self.happened.set()
            return passes
        return data


class FaultyStream(PipeStream):
    """A pipe to a server, with a fault."""

    def __init__(self, options, fault: Fault) -> None:
        super().__init__(options)
        self.fault = fault

    def write(self, data: bytes) -> None:
        super().write(self.fault.pass_on("to_far", data))
        self._end_if_faulty()

    def readline(self, limit: int = -1) -> bytes:
        line = super().readline(limit)
        passes = self.fault.pass_on("from_far", line)
        if passes != line and self.fault.silent:
            self._ended.wait()
        self._end_if_faulty()
        return passes

    def _end_if_faulty(self) -> None:
        if self.fault.happened.is_set() and not self.fault.silent:
            self.close()


def opener(*faults: Fault):
    left = [*faults]

    def open_stream(_):
        fault = left.pop(0) if left else Fault("", 0)
        return FaultyStream(Options(root="/", any_policy=True), fault)

    return open_stream


def transaction(ws) -> None:
    with ws.transaction() as changes:
        changes.splice("a.txt", [(0, 0, "x")])
        changes.write("new.txt", "n\n")


# Each one changes the tree, and would change it again if it was made twice.
METHODS = {
    "write": lambda ws: ws.write("dir/new.txt", "n\n"),
    "edit": lambda ws: ws.edit("a.txt", "one", "one one"),
    "multi_edit": lambda ws: ws.multi_edit("a.txt", [{"old_string": "one", "new_string": "one one"}]),
    "splice": lambda ws: ws.splice("a.txt", lambda text: [(0, 0, "x")]),
    "edit_lines": lambda ws: ws.edit_lines("a.txt", [{"line_id": ws.line_id, "new_content": "one\none"}]),
    "replace": lambda ws: ws.replace("one", "one one"),
    "delete": lambda ws: ws.delete("b.txt"),
    "move": lambda ws: ws.move("b.txt", "dir/c.txt"),
    "undo": lambda ws: ws.undo(),
    "redo": lambda ws: ws.redo(),
    "rollback": lambda ws: ws.rollback("first"),
    "transaction": transaction,
}


def prepare(ws) -> None:
    ws.write("a.txt", "one\ntwo\n")
    ws.checkpoint("first")
    ws.write("b.txt", "one\n")
    for _ in range(3):
        ws.splice("a.txt", [(0, 0, "u")])
    ws.undo()
    ws.line_id = ws.read("a.txt", line_ids=True).line_ids[0]


def tree(root: Path) -> dict[str, bytes]:
    """Return the files, without leftovers of a killed process, which a later change removes."""
    files = [path for path in root.rglob("*") if path.is_file() and not path.name.startswith(".agentfs-")]
    return {str(path.relative_to(root)): path.read_bytes() for path in files}


def once(tmp_path: Path, name: str) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """Return the tree before and after one call of a method."""
    root = tmp_path / f"once-{name}"
    root.mkdir()
    with Workspace(root) as ws:
        prepare(ws)
        before = tree(root)
        METHODS[name](ws)
        return before, tree(root)


def check(root: Path, call, before, after) -> str:
    """Make a call on a faulty connection and return its outcome."""
    try:
        call()
    except DisconnectedError as error:
        made = error.details["made"]
        found = tree(root)
        assert found in (before, after)
        assert made is None or found == (after if made else before)
        return f"made {made}"
    assert tree(root) == after
    return "done"


def run_with(tmp_path: Path, name: str, fault: Fault, known, *, patience=PATIENCE) -> str:
    root = tmp_path / f"{name}-{fault.direction}-{fault.left}-{fault.silent}"
    root.mkdir()
    with connect(opener(fault), root, push=False, patience=patience) as ws:
        prepare(ws)
        fault.armed = True
        outcome = check(root, lambda: METHODS[name](ws), *known)
        assert ws.ls().total >= 1  # the workspace still works
        assert ws.changes().files  # and has its journal
        assert ws.remote.reconnects >= fault.happened.is_set()
        return outcome


def sizes(tmp_path: Path, name: str, known) -> dict[str, int]:
    fault = Fault("", 0)
    run_with(tmp_path, name, fault, known)
    return fault.passed


@pytest.mark.parametrize("name", ["splice", "undo", "transaction"])
def test_a_change_is_made_once_if_the_exchange_is_cut(tmp_path, name):
    known = once(tmp_path, name)
    for direction, size in sizes(tmp_path, name, known).items():
        for after in (0, size // 2, size - 1):
            assert run_with(tmp_path, name, Fault(direction, after), known) in ("done", "made False")


@pytest.mark.long
@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("direction", ["to_far", "from_far"])
def test_a_change_is_made_once_if_it_is_cut_at_every_byte(tmp_path, name, direction):
    known = once(tmp_path, name)
    outcomes = [
        run_with(tmp_path, name, Fault(direction, after), known)
        for after in range(sizes(tmp_path, name, known)[direction])
    ]
    print(name, direction, len(outcomes), {each: outcomes.count(each) for each in outcomes})  # noqa: T201 - the figures of the campaign


@pytest.mark.parametrize("direction", ["from_far", pytest.param("to_far", marks=pytest.mark.long)])
def test_a_proxy_that_swallows_bytes_is_detected(tmp_path, direction):
    known = once(tmp_path, "splice")
    fault = Fault(direction, 10, silent=True)
    assert run_with(tmp_path, "splice", fault, known, patience=9.0) == "done"


def test_running_out_of_patience_is_an_error_with_the_known_outcome(tmp_path):
    (tmp_path / "a.txt").write_text("one\n")
    fault = Fault("from_far", 0)
    streams = [opener(fault)]

    def open_stream(argv):
        if not streams:
            raise OSError("no route to host")
        return streams.pop()(argv)

    ws = connect(open_stream, tmp_path, push=False, patience=0.7)
    ws.edit("a.txt", "one", "1")  # the first call loads modules, so its answer may come after a ping
    fault.armed = True
    with pytest.raises(DisconnectedError) as caught:
        ws.edit("a.txt", "1", "two")
    assert caught.value.details["made"] is None
    for call in (lambda: ws.read("a.txt"), lambda: ws.edit("a.txt", "one", "two")):
        with pytest.raises(DisconnectedError) as caught:
            call()
        assert caught.value.details["made"] is False
    assert (tmp_path / "a.txt").read_text() == "two\n"
    result = ws.tools().call("ls", {})
    assert not result.success
    assert result.error["code"] == "disconnected"


SERVE = [sys.executable, "-m", "agentfs", "serve", "--any-policy", "--root"]


def has_ended(process: int) -> bool:
    """Return True if a process has ended, even if its parent has not reaped it."""
    shown = subprocess.run(
        ["ps", "-o", "stat=", "-p", str(process)], capture_output=True, text=True, check=False
    )
    return shown.stdout.strip()[:1] in ("", "Z")


def test_the_newest_client_of_a_session_ends_the_older_one(tmp_path):
    command = [*SERVE, str(tmp_path)]
    older = connect(command, ".", push=False, session="agent", patience=10)
    older.write("a.txt", "one\n")
    process = older.remote.pid
    newer = connect(command, ".", push=False, session="agent", patience=10)
    assert has_ended(process)
    assert newer.undo().steps == 1  # the journal belongs to the session
    with pytest.raises(DisconnectedError, match="Another client has taken over"):
        older.ls()
    newer.write("b.txt", "two\n")
    assert newer.remote.reconnects == 0
    newer.close()
    older.close()


@pytest.mark.parametrize("kind", [signal.SIGKILL, pytest.param(signal.SIGSTOP, marks=pytest.mark.long)])
def test_a_killed_or_stopped_server_is_replaced(tmp_path, kind):
    (tmp_path / "a.txt").write_text("one\n")
    with connect([*SERVE, str(tmp_path)], ".", push=False, patience=20) as ws:
        ws.read("a.txt")
        os.kill(ws.remote.pid, kind)
        ws.write("a.txt", "two\n")  # the read history outlives the process
        assert ws.remote.reconnects == 1
        assert len(ws.changes().files) == 1


def test_a_transaction_ends_with_its_connection(tmp_path):
    with connect([*SERVE, str(tmp_path)], ".", push=False) as ws:

        def change() -> None:
            with ws.transaction() as changes:
                changes.write("a.txt", "one\n")
                os.kill(ws.remote.pid, signal.SIGKILL)
                changes.write("b.txt", "two\n")

        with pytest.raises(DisconnectedError) as caught:
            change()
        assert caught.value.details["made"] is False
        assert not list(tmp_path.iterdir())


@contextmanager
def traced(process: int, log: Path, *inject: str) -> Iterator[None]:
    """Record the system calls of a process during the block, and make one of them fail."""
    command = ["strace", "-f", "-p", str(process), "-o", str(log), *inject]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as tracer:
        assert "attached" in tracer.stderr.readline()
        yield
        tracer.terminate()
        with suppress(subprocess.TimeoutExpired):
            tracer.wait(5)
        tracer.kill()  # strace hangs if it still traces a thread of a killed process


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:subprocess .* is still running")  # strace still traces it
@needs_tracing
@pytest.mark.parametrize("name", METHODS)
def test_a_change_is_made_once_with_a_kill_at_every_system_call(tmp_path, name):
    before, after = once(tmp_path, name)
    outcomes: list[str] = []

    def run(directory: str, *inject: str) -> list[str]:
        root, log = tmp_path / directory, tmp_path / f"{directory}.log"
        root.mkdir()
        with connect([*SERVE, str(root)], ".", push=False) as ws:
            prepare(ws)
            with traced(ws.remote.pid, log, *inject):
                outcomes.append(check(root, lambda: METHODS[name](ws), before, after))
            assert ws.ls().total >= 1
        return re.findall(r"^\d+ +(\w+)\(", log.read_text(), re.MULTILINE)

    calls = Counter(run("whole"))
    for call, count in calls.items():
        for number in range(1, count + 1):  # per name, as strace counts them
            run(f"{call}-{number}", "-e", f"inject={call}:signal=KILL:when={number}")
    print(name, sum(calls.values()), {each: outcomes.count(each) for each in outcomes})  # noqa: T201 - as above


@pytest.mark.long
def test_two_clients_lose_none_of_10000_edits_while_their_servers_are_killed(tmp_path):
    (tmp_path / "log.txt").write_text("begin\n")
    ended, kills = threading.Event(), 0
    results_lost: list[bool | None] = []

    def edit(ws, who: str) -> None:
        for number in range(5000):
            while True:
                try:
                    ws.splice("log.txt", [(0, 0, f"{who} {number}\n")])
                except BusyError:
                    continue  # the file was locked for too long: nothing was changed
                except DisconnectedError as error:
                    made = error.details["made"]
                    results_lost.append(made)
                    if made is None:  # the other client changed the file before it could be examined
                        made = ws.grep(f"^{who} {number}$", limit=1).total_lines == 1
                    if not made:
                        continue
                break

    command = [*SERVE, str(tmp_path)]
    with connect(command, ".", push=False) as one, connect(command, ".", push=False) as two:
        threads = [threading.Thread(target=edit, args=each) for each in ((one, "one"), (two, "two"))]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            ended.wait(3)
            with suppress(ProcessLookupError):
                os.kill((one, two)[kills % 2].remote.pid, signal.SIGKILL)
            kills += 1
    lines = (tmp_path / "log.txt").read_text().splitlines()
    print(kills, "kills, results lost:", Counter(results_lost))  # noqa: T201 - as above
    assert sorted(lines) == sorted(["begin", *(f"{who} {n}" for who in ("one", "two") for n in range(5000))])
