"""Commands in the background."""

import time

from tests.commands.conftest import PID, running, snapshot
from tests.kit import refused


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


def test_long_output_is_read_in_parts(recorded):
    command = recorded.run("seq 1 50000", background=True)
    wait_for(lambda: not recorded.output(command.id).running)
    text, part = "", recorded.output(command.id, 0)
    while True:
        lines = part.text.partition("\n")[2]
        text += f"{lines.rpartition(chr(10) + '[')[0] if part.next else lines}\n"
        if part.next is None:
            break
        offset, part = part.offset, recorded.output(command.id, part.offset)
        assert part.offset > offset
    assert text.split() == [str(n) for n in range(1, 50_001)]
