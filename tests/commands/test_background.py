"""Commands in the background."""

import runpy
import time
from pathlib import Path

import pytest

from agentfs import AgentFSError

_here = runpy.run_path(str(Path(__file__).parent / "conftest.py"))
code_of, snapshot = _here["code_of"], _here["snapshot"]
PID, running = _here["PID"], _here["running"]


def wait_for(found, seconds=10.0):
    end = time.monotonic() + seconds
    while not found():
        assert time.monotonic() < end
        time.sleep(0.02)


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
    command = recorded.start("echo one > one; while [ ! -e go ]; do sleep .05; done; echo two > two")
    wait_for((tree / "one").exists)
    recorded.write("mine", "text")
    (tree / "go").touch()
    result = command.wait(20)
    assert sorted(change.path for change in result.changes.files) == ["go", "one", "two"]
    labels = {change.path: change.label for change in recorded.changes().files}
    assert labels["one"].startswith("background")
    assert labels["mine"] == ""
    recorded.undo(2)
    assert snapshot(tree) == before


def test_programs_wait_for_a_command(recorded):
    command = recorded.start("sleep .3; exit 5")
    assert code_of(lambda: command.wait(0.01)) == "timeout"
    assert command.wait().exit_status == 5
    assert command.stop().exit_status == 5
    assert recorded.stop(command.id).exit_status == 5


def test_commands_end_with_the_workspace_unless_detached(opened, tree):
    ws = opened("recorded")
    ws.run(f"sleep 42.{PID}", background=True)
    kept = ws.start(f"sleep 43.{PID}; touch later", detach=True)
    wait_for(lambda: running(f"sleep 42.{PID}") and running(f"sleep 43.{PID}"))
    ws.close()
    assert not running(f"sleep 42.{PID}")
    assert running(f"sleep 43.{PID}")
    assert kept.running
    kept.stop()
    assert not running(f"sleep 43.{PID}")


@pytest.mark.parametrize("argument", ["background", "keep_running"])
def test_a_staged_command_cannot_run_in_the_background(staged, argument):
    with pytest.raises(AgentFSError) as raised:
        staged.run("true", **{argument: True})
    assert raised.value.code == "unsupported"
    assert "applied when it ends" in str(raised.value)


def test_unknown_ids_name_the_known_ones(recorded):
    with pytest.raises(AgentFSError) as raised:
        recorded.output("c9")
    assert raised.value.code == "not_found"
    assert code_of(lambda: recorded.stop("c9")) == "not_found"


def test_long_output_is_read_in_parts(recorded):
    command = recorded.start("seq 1 50000")
    command.wait()
    text, offset = "", 0
    while True:
        part = command.output(offset)
        text += (
            part.text.partition("\n")[2].rpartition("\n[")[0] if part.next else part.text.partition("\n")[2]
        )
        text += "\n"
        if part.next is None:
            break
        assert part.offset > offset
        offset = part.offset
    assert [line for line in text.split("\n") if line] == [str(n) for n in range(1, 50_001)]


def test_what_a_command_leaves_runs_on_under_an_id_and_its_changes_are_undone(recorded, tree):
    before, start = snapshot(tree), recorded.checkpoint().name
    done = recorded.run(
        f"(touch one; while [ ! -e go ]; do sleep .05; done; touch two) & setsid sleep 44.{PID} & echo ready",
        keep_running=True,
    )
    assert (done.exit_status, done.stdout) == (0, b"ready\n")
    assert done.next == {"name": "output", "arguments": {"id": done.id}}
    shown = recorded.output(done.id)
    assert (shown.running, shown.exit_status) == (True, 0)
    wait_for((tree / "one").exists)
    assert running(f"sleep 44.{PID}")
    (tree / "go").touch()
    wait_for((tree / "two").exists)
    assert [change.path for change in recorded.stop(done.id).changes.files][-1:] == ["two"]
    assert not running(f"sleep 44.{PID}")
    recorded.host.rollback(start)
    assert snapshot(tree) == before


def test_nothing_runs_on_if_a_command_leaves_nothing_or_is_stopped(recorded):
    assert recorded.run("true & wait", keep_running=True).id is None
    late = recorded.run(f"setsid sleep 45.{PID} & wait", 0.3, keep_running=True)
    assert (late.timed_out, late.id) == (True, None)
    assert not running(f"sleep 45.{PID}")
