"""Programs that are killed while a staged command runs."""

import os
import runpy
import signal
import subprocess
import sys
import time
from pathlib import Path

from agentfs.fs.lock import lock_directories

_here = runpy.run_path(str(Path(__file__).parent / "conftest.py"))
snapshot = _here["snapshot"]
running = runpy.run_path(str(Path(__file__).parent / "test_run.py"))["running"]
PROGRAM = """
import sys
from agentfs import Policy, Workspace
Workspace(sys.argv[1], policy=Policy(run="staged")).run("touch made; rm -r src; sleep 51")
"""


def no_stage_stays() -> bool:
    """Return True at a moment without a stage; other tests of this user may have some meanwhile."""
    places = [*map(Path, lock_directories(os.geteuid()))]
    end = time.monotonic() + 30
    while any(path for place in places for path in place.glob("stage-*")):
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def test_a_killed_program_leaves_no_process_and_no_change_and_the_next_run_no_temporary(staged, tree):
    before = snapshot(tree)
    program = subprocess.Popen([sys.executable, "-c", PROGRAM, tree])
    end = time.monotonic() + 30
    while not running("sleep 51"):
        assert time.monotonic() < end
        time.sleep(0.02)
    program.send_signal(signal.SIGKILL)
    program.wait()
    while running("sleep 51"):
        assert time.monotonic() < end
        time.sleep(0.02)
    assert snapshot(tree) == before
    assert str(tree) not in Path("/proc/self/mountinfo").read_text()
    staged.run("true")
    assert no_stage_stays()
    assert snapshot(tree) == before


def test_kills_at_many_moments_leave_all_old_or_all_new(tree):
    before = snapshot(tree)
    script = PROGRAM.replace("sleep 51", "true")
    for moment in range(12):
        program = subprocess.Popen([sys.executable, "-c", script, tree])
        time.sleep(0.15 + moment * 0.03)
        program.kill()
        program.wait()
        subprocess.run([sys.executable, "-c", script.replace("touch made; rm -r src;", ""), tree], check=True)
        now = snapshot(tree)
        if now != before:
            assert "made" in now
            assert not any(path.startswith("src") for path in now)
            break
        assert now == before
    assert no_stage_stays()
