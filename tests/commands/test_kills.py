"""Programs that are killed while a staged command runs."""

import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.commands.conftest import PID, no_stage_stays, running, snapshot

PROGRAM = f"""
import sys
from agentfs import Policy, Workspace
Workspace(sys.argv[1], policy=Policy(run="staged")).run("touch made; rm -r src; sleep 51.{PID}")
"""


def test_a_killed_program_leaves_no_process_and_no_change_and_the_next_run_no_temporary(staged, tree):
    before = snapshot(tree)
    program = subprocess.Popen([sys.executable, "-c", PROGRAM, tree])
    end = time.monotonic() + 30
    while not running(f"sleep 51.{PID}"):
        assert time.monotonic() < end
        time.sleep(0.02)
    program.send_signal(signal.SIGKILL)
    program.wait()
    while running(f"sleep 51.{PID}"):
        assert time.monotonic() < end
        time.sleep(0.02)
    assert snapshot(tree) == before
    assert str(tree) not in Path("/proc/self/mountinfo").read_text()
    staged.run("true")
    assert no_stage_stays()
    assert snapshot(tree) == before
