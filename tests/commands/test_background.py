"""Commands in the background and over `connect`, and programs that are killed during a command."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from agentfs import Limits, Policy, connect
from tests.commands.conftest import PID, running, wait_for_stages
from tests.history.judges import snapshot
from tests.kit import refused, wait_for
from tests.remote.over_pipe import open_pipe


def test_a_command_runs_on_and_its_output_is_read_by_offset(recorded):
    result = recorded.run(f"echo ready; sleep 41.{PID}; echo never", background=True)
    assert result.exit_status is None
    assert not result.timed_out
    assert result.id in result.text
    wait_for(lambda: b"ready" in recorded.output(result.id).text.encode())
    first = recorded.output(result.id)
    assert (first.offset, first.running, first.exit_status) == (6, True, None)
    assert "ready" not in recorded.output(result.id, first.offset).text
    stopped = recorded.stop(result.id)
    assert stopped.stdout == b"ready\n"
    assert not stopped.timed_out
    assert not running(f"sleep 41.{PID}")
    after = recorded.output(result.id)
    assert (after.running, after.exit_status) == (False, 143)


def test_its_changes_are_one_step_and_those_of_other_tools_keep_their_own(recorded, tree):
    before = snapshot(tree)
    line = "echo one > one; while [ ! -e go ]; do sleep .05; done; echo two > two"
    command = recorded.run(line, background=True)
    wait_for((tree / "one").exists)
    recorded.write("mine", "text")
    (tree / "go").touch()
    wait_for(lambda: not recorded.output(command.id).running)
    result = recorded.stop(command.id)
    assert sorted(change.path for change in result.changes.files) == ["go", "one", "two"]
    labels = {change.path: change.label for change in recorded.changes().files}
    assert labels["one"].startswith("background")
    assert labels["mine"] == ""
    recorded.undo(2)
    assert snapshot(tree) == before


def test_commands_end_with_the_workspace(opened):
    ws = opened("recorded")
    ws.run(f"sleep 42.{PID}", background=True)
    wait_for(lambda: running(f"sleep 42.{PID}"))
    ws.close()
    assert not running(f"sleep 42.{PID}")


def test_a_staged_command_cannot_run_in_the_background(staged):
    error = refused(lambda: staged.run("true", background=True), "unsupported")
    assert "applied when it ends" in str(error)


def test_unknown_ids_are_not_found(recorded):
    refused(lambda: recorded.output("c9"), "not_found")
    refused(lambda: recorded.stop("c9"), "not_found")


def all_output(ws, name):
    """Return the output of a command that has ended, from its pages."""
    wait_for(lambda: not ws.output(name).running)
    lines, part = [], ws.output(name, 0)
    while True:
        shown = part.text.partition("\n")[2]
        lines.append(shown.rpartition("\n[")[0] if part.next else shown)
        if part.next is None:
            return lines
        offset, part = part.offset, ws.output(name, part.offset)
        assert part.offset > offset


def test_long_output_is_read_in_parts(recorded):
    command = recorded.run("seq 1 50000", background=True)
    assert "\n".join(all_output(recorded, command.id)).split() == [str(n) for n in range(1, 50_001)]


def test_regression_pages_of_output_end_at_characters(recorded):
    command = recorded.run("echo -n x; yes é€𝄞 | head -9000 | tr -d '\\n'", background=True)
    assert "".join(all_output(recorded, command.id)) == "x" + "é€𝄞" * 9000
    command = recorded.run(
        r"printf 'a\xe2\x82'; while [ ! -e go ]; do sleep .05; done; printf '\xac'", background=True
    )
    wait_for(lambda: "a" in recorded.output(command.id).text.partition("\n")[2])
    assert recorded.output(command.id).offset == 1
    recorded.run("touch go")
    assert all_output(recorded, command.id) == ["a€"]


PROGRAM = f"""
import sys
from agentfs import Policy, Workspace
Workspace(sys.argv[1], policy=Policy(run="staged")).run("touch made; rm -r src; sleep 51.{PID}")
"""


def test_a_killed_program_leaves_no_process_and_no_change_and_the_next_run_no_temporary(staged, tree):
    before = snapshot(tree)
    program = subprocess.Popen([sys.executable, "-c", PROGRAM, tree])
    wait_for(lambda: running(f"sleep 51.{PID}"))
    program.send_signal(signal.SIGKILL)
    program.wait()
    wait_for(lambda: not running(f"sleep 51.{PID}"))
    assert snapshot(tree) == before
    assert str(tree) not in Path("/proc/self/mountinfo").read_text()
    staged.run("true")
    wait_for_stages()
    assert snapshot(tree) == before


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
    wait_for(lambda: not running(f"sleep 49.{PID}"))
