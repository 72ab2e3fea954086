"""Ctrl-C during a change: the change is made or not made, and nothing stays open, locked or half done."""

import gc
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress

import pytest

from agentfs import Workspace
from tests import kit
from tests.conftest import part_or_all
from tests.faults import calls
from tests.faults.calls import CALLS, CountedCalls, descriptors, fresh, transaction
from tests.history.judges import snapshot

# Outside a change, an interrupt can come between `os.open` and the assignment of the descriptor, which leaks.
CHANGES = {**calls.CHANGES, "transaction": (lambda ws: None, lambda ws: transaction(ws, reads=False))}


@pytest.fixture
def interrupting(monkeypatch: pytest.MonkeyPatch) -> CountedCalls:
    """Sends SIGINT to this process right after a system call."""
    gc.collect()  # do not count descriptors of other tests
    counted = {*CALLS} - {"fstat", "lstat", "lseek", "listdir"}
    return CountedCalls(monkeypatch, lambda: os.kill(os.getpid(), signal.SIGINT), counted, after=counted)


@part_or_all(193)
@pytest.mark.parametrize("name", list(CHANGES))
def test_a_change_interrupted_after_some_calls_is_whole_and_leaves_nothing(
    tmp_path, interrupting, name, every
):
    before, call = CHANGES[name]
    top = tmp_path / "root"
    for _ in range(2):  # the first time also imports modules
        with Workspace(fresh(top)) as ws:
            before(ws)
            old, start = snapshot(top), interrupting.count
            call(ws)
            names = interrupting.names[start:]
            new = snapshot(top)
    assert len(names) > 5
    for at, interrupted in enumerate(names[::every]):
        with Workspace(fresh(top)) as ws:
            before(ws)
            gc.collect()
            held = descriptors()
            interrupting.at = interrupting.count + at * every + 1
            try:
                with suppress(KeyboardInterrupt):
                    call(ws)
                    # A file that was written a moment ago is read again, so a later run may make fewer calls.
                    assert interrupting.count < interrupting.at, f"{name}: {interrupted} was not interrupted"
            finally:
                interrupting.at = -1
            where = f"{name}: after {interrupted}, {at * every + 1} of {len(names)}"
            gc.collect()
            assert descriptors() <= held, where
            assert snapshot(top) in (old, new), where
            ws.write("after", "x\n")  # no lock is held
            for path in ("f", "g"):
                ws.write(path, "y\n", overwrite=True)


def test_an_interrupt_waits_for_the_end_of_the_change(tmp_path):
    (tmp_path / "f").write_text("old\n")
    steps = []

    def spans(text):
        for _ in range(2):  # an impatient user
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.01)
            steps.append("after an interrupt")
        return [(0, 3, "new")], ()

    handler = signal.getsignal(signal.SIGINT)
    with Workspace(tmp_path) as ws:
        with pytest.raises(KeyboardInterrupt):
            kit.splice(ws, "f", spans)
        assert steps == ["after an interrupt"] * 2
        assert (tmp_path / "f").read_text() == "new\n"
        assert signal.getsignal(signal.SIGINT) is handler
        ws.undo()
    assert (tmp_path / "f").read_text() == "old\n"


def test_the_handlers_of_several_signals_run_after_the_change_even_if_each_raises(tmp_path):
    called = []

    def handler(number, frame):
        called.append((number, (tmp_path / "f").exists()))
        raise ConnectionError(number)

    numbers = (signal.SIGTERM, signal.SIGALRM, signal.SIGHUP)
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        with Workspace(tmp_path) as ws:
            ws.write("g", "old\n")

            def spans(text):
                for number in numbers:
                    os.kill(os.getpid(), number)
                    time.sleep(0.01)
                ws.write("f", "x\n")
                return [(0, 3, "new")], ()

            with pytest.raises(ConnectionError):
                kit.splice(ws, "g", spans)
            assert all(signal.getsignal(number) is handler for number in numbers)
    finally:
        for number, old in before.items():
            signal.signal(number, old)
    assert sorted(called) == [(number, True) for number in sorted(numbers)]
    assert (tmp_path / "g").read_text() == "new\n"


SOAK = """
import gc, os, random, signal, sys, threading, time
from pathlib import Path
from agentfs import AgentFSError, Policy, Workspace
from agentfs.errors import BusyError
top, count = Path(sys.argv[1]), int(sys.argv[2])
armed = threading.Event()
def shoot():
    while True:
        armed.wait()
        time.sleep(random.random() * 0.005)
        if armed.is_set():
            armed.clear()
            os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=shoot, daemon=True).start()
ws = Workspace(top, policy=Policy(overwrite="always"))
ws.write("a", "0")
before, hits, number = len(os.listdir("/proc/self/fd")), 0, 0
while hits < count:
    number += 1
    try:
        armed.set()
        while True:
            ws.write("a", f"{number}\\\\n" * 50)
            with ws.transaction() as tx:
                tx.write("b", f"{number}\\\\n")
                tx.write(f"made{number}/c", "x")
                tx.delete("a")
            ws.undo()
    except KeyboardInterrupt:
        hits += 1
    except BusyError:
        print("busy")
        break
    except AgentFSError:
        armed.clear()
        time.sleep(0.006)
armed.clear()
time.sleep(0.1)
gc.collect()
print(len(os.listdir("/proc/self/fd")) - before, len(list(top.rglob(".agentfs-*"))))
"""


@pytest.mark.long
def test_500_interrupts_at_any_moment_leave_nothing(tmp_path):
    command = [sys.executable, "-c", SOAK.replace("\\\\n", "\\n"), str(tmp_path), "500"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "0 0\n"
