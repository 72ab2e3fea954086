"""Commands over `connect`. The matrix compares their answers; here is what takes time."""

import time

import pytest

from agentfs import Limits, Policy, connect
from tests.commands.conftest import PID, running
from tests.remote.over_pipe import open_pipe


@pytest.fixture(params=["staged", "recorded"])
def ws(request, tree):
    policy = Policy(run=request.param)
    with connect(open_pipe(policy=policy), tree, policy=policy, limits=Limits(timeout=3.0)) as connected:
        yield connected


def test_a_command_may_take_longer_than_other_calls_and_no_longer_than_its_timeout(ws):
    assert ws.run("sleep 4; echo end").stdout == b"end\n"
    result = ws.run(f"echo begun; sleep 46.{PID}", timeout=0.7)
    assert (result.timed_out, result.exit_status, result.stdout) == (True, None, b"begun\n")
    assert not running(f"sleep 46.{PID}")


def test_commands_end_with_the_connection(ws):
    if ws.policy.run == "recorded":
        ws.run(f"sleep 49.{PID}", background=True)
        ws.close()
        end = time.monotonic() + 10
        while running(f"sleep 49.{PID}") and time.monotonic() < end:
            time.sleep(0.05)
    assert not running(f"sleep 49.{PID}")
