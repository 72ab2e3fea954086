"""Lost connections: each waiting call ends, `applied` is right, and the next call opens a new connection."""

import sys
import threading
import time
from contextlib import suppress
from types import SimpleNamespace

import pytest

from agentfs import Limits, Policy, Workspace, connect
from agentfs.errors import ClosedError, DisconnectedError, UnsupportedSystemError
from tests.kit import in_a_fork
from tests.remote.over_pipe import PipeServer

PATIENCE = 5.0


class Fault:
    """Ends or silences a stream after some bytes in one direction, once it is armed."""

    def __init__(self, direction: str = "", after: int = 0, *, silent: bool = False) -> None:
        self.direction, self.left, self.silent = direction, after, silent
        self.armed = self.happened = False
        self.passed = {"to_far": 0, "from_far": 0}

    def pass_on(self, direction: str, data: bytes) -> bytes:
        """Return the part of the data that passes."""
        if not self.armed or self.happened:
            return b"" if self.armed else data
        self.passed[direction] += len(data)
        if direction != self.direction:
            return data
        passes, self.left = data[: self.left], self.left - len(data)
        self.happened = self.left < 0
        return passes


class FaultyStreams:
    def __init__(self, options, fault: Fault) -> None:
        self._input, self._output = PipeServer(options).streams
        self._fault = fault
        self._closed = threading.Event()

    def write(self, data: bytes) -> None:
        passes = self._fault.pass_on("to_far", bytes(data))
        if not self._output.closed:
            self._output.write(passes)
        self._end_if_faulty()

    def flush(self) -> None:
        pass

    def readline(self, limit: int = -1) -> bytes:
        line = self._input.readline(limit)
        passes = self._fault.pass_on("from_far", line)
        if passes != line and self._fault.silent:
            self._closed.wait()
        self._end_if_faulty()
        return passes

    def close_input(self) -> None:
        self._input.close()

    def close(self) -> None:
        self._closed.set()
        self._output.close()

    def _end_if_faulty(self) -> None:
        if self._fault.happened and not self._fault.silent:
            self.close()


def opener(*faults: Fault, **options):
    left = [*faults]

    def streams():
        opened = FaultyStreams({"root": "/", **options}, left.pop(0) if left else Fault())
        return SimpleNamespace(readline=opened.readline, close=opened.close_input), opened

    return streams


def transaction(ws) -> None:
    with ws.transaction() as changes:
        changes.append("a.txt", "x\n")
        changes.write("new.txt", "n\n")


# Each one changes the tree, and would change it again if it was made twice.
METHODS = {
    "append": lambda ws: ws.append("a.txt", "x\n"),
    "edit": lambda ws: ws.edit("a.txt", "one", "one one"),
    "undo": lambda ws: ws.undo(),
    "transaction": transaction,
}


def prepare(ws) -> None:
    ws.write("a.txt", "one\ntwo\n")
    ws.append("a.txt", "three\n")


def tree(root) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def once(top, name: str) -> tuple[dict[str, int], list[dict[str, bytes]]]:
    """Return the bytes of one call in each direction, and the tree before and after it."""
    root, whole = top / "once", Fault()
    root.mkdir()
    with Workspace(root) as ws:
        prepare(ws)
        known = [tree(root)]
        METHODS[name](ws)
        known.append(tree(root))
    assert run_with(top / "whole", name, whole, *known) == "done"
    return whole.passed, known


def run_with(root, name: str, fault: Fault, before, after) -> object:
    """Call a method on a faulty connection; return "done" or `applied` of the error."""
    root.mkdir()
    with connect(opener(fault), root, patience=PATIENCE) as ws:
        prepare(ws)
        fault.armed = True
        outcome: object = "done"
        try:
            METHODS[name](ws)
        except DisconnectedError as error:
            outcome = error.details["applied"]
        fault.armed = fault.happened
        end = time.monotonic() + 5
        while (found := tree(root)) not in (before, after) and time.monotonic() < end:
            time.sleep(0.01)  # the server still completes the change, or takes it back
        assert found in (before, after)
        if outcome is not None:
            assert found == (before if outcome is False else after)
        with suppress(DisconnectedError):  # if no call was waiting, the next one says it
            ws.ls()
        assert ws.ls().total >= 1
        assert ws.append("b.txt", "again\n").created
        return outcome


@pytest.mark.parametrize("every_byte", [False, pytest.param(True, marks=pytest.mark.long)])
@pytest.mark.parametrize("name", METHODS)
def test_an_exchange_that_is_cut_ends_with_the_known_outcome(tmp_path, name, every_byte):
    passed, known = once(tmp_path, name)
    outcomes = set()
    for direction, size in passed.items():
        for after in range(size) if every_byte else (0, size // 2, size - 1):
            root = tmp_path / f"{direction}-{after}"
            outcomes.add(run_with(root, name, Fault(direction, after), *known))
    assert None in outcomes


@pytest.mark.parametrize("direction", ["from_far", "to_far"])
def test_a_far_side_that_falls_silent_is_given_up(tmp_path, direction):
    fault = Fault(direction, 10, silent=True)
    with connect(opener(fault), tmp_path, limits=Limits(timeout=0.2), patience=1.0) as ws:
        prepare(ws)
        fault.armed = True
        began = time.monotonic()
        with pytest.raises(DisconnectedError, match="did not answer in time") as caught:
            ws.append("a.txt", "x\n")
        assert time.monotonic() - began < 10
        assert caught.value.details == {"applied": None}
        assert ws.read("a.txt").total_lines >= 3


def test_every_waiting_call_ends(tmp_path):
    """A call that asks waits for its answer, and others wait meanwhile."""
    asked, lost = threading.Event(), threading.Event()

    def permission(_):
        asked.set()
        return lost.wait(20)

    fault = Fault("to_far", 0)
    outcomes = []
    with connect(opener(fault), tmp_path, policy=Policy(on_ask=permission), patience=PATIENCE) as ws:

        def write(name):
            with pytest.raises(DisconnectedError) as caught:
                ws.write(name, "x\n")
            outcomes.append(caught.value.details["applied"])

        threads = [threading.Thread(target=write, args=(f"{number}.txt",)) for number in range(8)]
        for each in threads:
            each.start()
        assert asked.wait(20)
        fault.armed = True
        with pytest.raises(DisconnectedError) as caught:
            ws.read("a.txt")
        assert caught.value.details["applied"] is False
        lost.set()
        for each in threads:
            each.join()
        assert outcomes == [None] * 8
        assert ws.view(policy=Policy(mode="bypass")).write("new.txt", "x\n").created
        assert [*tree(tmp_path)] == ["new.txt"]


class Servers(list[PipeServer]):
    """The servers that a workspace has opened, one after another."""

    def __call__(self):
        self.append(PipeServer({"root": "/"}))
        return self[-1].streams

    def end(self):
        """End the last server, and with it its stream."""
        incoming, outgoing = self[-1].streams
        outgoing.close()
        for _ in range(100):
            if incoming.closed:
                break
            time.sleep(0.02)


def test_a_loss_between_two_calls_is_said_once(tmp_path):
    """Without that, the journal would be empty and nobody would know why."""
    servers = Servers()
    with connect(servers, tmp_path, patience=PATIENCE) as ws:
        ws.write("a.txt", "one\n")
        view = ws.view(limits=Limits(read_lines=1))
        servers.end()
        with pytest.raises(DisconnectedError, match="opens a new connection") as caught:
            ws.undo()
        assert caught.value.details["applied"] is False
        assert len(servers) == 1
        assert view.read("a.txt").content == "one\n"  # a view is made again
        assert len(servers) == 2


def test_regression_a_block_that_loses_its_connection_may_have_changed_files(tmp_path):
    """Its last call was not sent, so `applied` was False, and a patch said that nothing was changed."""
    servers = Servers()
    with connect(servers, tmp_path, patience=PATIENCE) as ws:
        with pytest.raises(DisconnectedError) as caught, ws.transaction() as changes:  # noqa: PT012 - as below
            changes.write("a.txt", "one\n")
            servers.end()
            changes.write("b.txt", "two\n")
        assert caught.value.details == {"applied": None}
        assert "may have changed files" in caught.value.hint


def test_a_block_ends_with_its_connection(tmp_path):
    fault = Fault("to_far", 0)
    with connect(opener(fault), tmp_path, patience=PATIENCE) as ws:
        with pytest.raises(ClosedError), ws.transaction() as changes:  # noqa: PT012 - of the block
            changes.write("a.txt", "one\n")
            fault.armed = True
            with pytest.raises(DisconnectedError):
                changes.write("b.txt", "two\n")
            with pytest.raises(ClosedError, match="has ended"):
                changes.write("c.txt", "three\n")
        assert ws.write("d.txt", "x\n").created
        assert [*tree(tmp_path)] == ["d.txt"]


@pytest.mark.full
def test_a_remote_side_of_another_version_is_named(tmp_path):
    script = "import agentfs; agentfs.__version__ = '0.0.1'; from agentfs.cli import main; main()"
    with pytest.raises(UnsupportedSystemError, match=r"remote side has agentfs 0\.0\.1, not") as caught:
        connect([sys.executable, "-c", script, "serve", "--root", str(tmp_path)], tmp_path)
    assert "same version on both sides" in caught.value.hint


def test_a_forked_process_opens_a_connection_of_its_own(tmp_path):
    with connect(opener(), tmp_path) as remote:
        assert in_a_fork(lambda: remote.write("child.txt", "x\n").created) == "True"
        assert remote.write("a.txt", "one\n").created
        assert remote.ls().total == 2
