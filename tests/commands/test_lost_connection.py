"""A command over a connection that is lost: it runs once, its changes are made once, and `made` is right."""

import os
import signal
import sys
import threading
import time
from pathlib import Path

import pytest

from agentfs import Policy, connect
from agentfs.errors import DisconnectedError
from tests.remote.test_reconnect import Fault, opener

SERVE = [sys.executable, "-m", "agentfs", "serve", "--any-policy", "--root"]
COMMAND = "echo x >> inside; echo x >> {outside}; exit 3"


@pytest.fixture(params=["staged", "recorded"])
def way(request):
    return request.param


def outcome_of(call):
    """Return "done", or whether the lost call was made, if that is known."""
    try:
        call()
    except DisconnectedError as error:
        return error.details["made"]
    return "done"


def lines(path: Path) -> int:
    return len(path.read_text().splitlines()) if path.exists() else 0


def run_once(ws, root: Path, outside: Path, way: str) -> str:
    """Run the command, and compare the outcome with the number of times that it has run."""
    try:
        result = ws.run(COMMAND.format(outside=outside))
    except DisconnectedError as error:
        made, ran = error.details["made"], lines(root / "inside")
        assert made is None or made == ran
        assert ran <= 1
        outcome = f"made {made}"
    else:
        assert (result.exit_status, lines(root / "inside")) == (3, 1)
        assert [change.path for change in result.changes.files] == ["inside"]
        outcome = "done"
    assert lines(outside) <= (way == "recorded")
    return outcome


@pytest.mark.parametrize("direction", ["to_far", "from_far"])
def test_a_command_runs_once_if_the_exchange_is_cut(tmp_path, way, direction):
    size, outcomes = 0, set()
    for number, part in enumerate([None, 0, 0.3, 0.6, 0.9]):
        root, outside = tmp_path / f"root-{number}", tmp_path / f"outside-{number}"
        root.mkdir()
        fault = Fault("" if part is None else direction, int(size * (part or 0)))
        with connect(opener(fault), root, push=False, policy=Policy(run=way), patience=20) as ws:
            ws.exists("inside")
            fault.armed = True
            outcomes.add(run_once(ws, root, outside, way))
            assert ws.remote.reconnects == (part is not None)
            size = size or fault.passed[direction]
            assert [each.path for each in ws.changes().files] == ["inside"] * lines(root / "inside")
    assert "done" in outcomes


def test_a_killed_server_does_not_run_a_command_again(tmp_path, way):
    root, outside = tmp_path / "root", tmp_path / "outside"
    root.mkdir()
    command = f"echo x >> inside; echo x >> {outside}; sleep 2"
    with connect([*SERVE, str(root)], ".", push=False, policy=Policy(run=way), patience=20) as ws:
        ws.exists("inside")
        timer = threading.Thread(target=kill_when, args=(ws.remote.pid, way, root))
        timer.start()
        # Nobody sees that a staged command was run before, so it is run again.
        assert outcome_of(lambda: ws.run(command)) == ("done" if way == "staged" else None)
        timer.join()
        assert ws.remote.reconnects == 1
        assert lines(root / "inside") == 1
        assert lines(outside) == (way == "recorded")


def kill_when(server: int, way: str, root: Path) -> None:
    """Kill the server while the command sleeps."""
    end = time.monotonic() + 20
    while time.monotonic() < end and not sleeping(way, root):
        time.sleep(0.02)
    os.kill(server, signal.SIGKILL)


def sleeping(way: str, root: Path) -> bool:
    """Return True if the command has written; nothing shows it of a staged one, which gets a second."""
    if way == "staged":
        time.sleep(1)
        return True
    return lines(root / "inside") == 1


def test_a_background_command_is_started_once(tmp_path):
    for after in (0, 100):
        root, fault = tmp_path / f"root-{after}", Fault("from_far", after)
        root.mkdir()
        with connect(opener(fault), root, push=False, policy=Policy(run="recorded"), patience=20) as ws:
            ws.exists("inside")
            fault.armed = True
            outcome = outcome_of(lambda ws=ws: ws.run("echo x >> inside; sleep 5", background=True))
            assert outcome in ("done", None)
            time.sleep(0.5)
            assert lines(root / "inside") <= 1
