"""Every test ends: one that hangs fails after its time, and its processes and the rest of the run go on."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import SECONDS, child_processes

HANGING = """
import subprocess, sys, threading
import pytest

COMMAND = [sys.executable, "-c", "import time; print('ready', flush=True); time.sleep(600)"]

@pytest.mark.timeout(2)
def test_waits_for_a_process(record_property):
    with subprocess.Popen(COMMAND, stdout=subprocess.PIPE) as process:
        record_property("process", process.pid)
        process.stdout.readline()
        process.communicate()

@pytest.mark.timeout(2)
def test_waits_for_a_lock():
    lock = threading.Lock()
    with lock:
        lock.acquire()

def test_after_them():
    pass
"""


@pytest.mark.full
def test_a_test_that_hangs_fails_and_leaves_no_process(tmp_path):
    """It hung until the run was stopped, and the process that it had started ran on."""
    (tmp_path / "test_hanging.py").write_text(HANGING)
    conftest = Path(__file__).parent / "conftest.py"
    (tmp_path / "conftest.py").write_text(
        f"import runpy\nhooks = runpy.run_path({str(conftest)!r})\n"
        "pytest_timeout_set_timer = hooks['pytest_timeout_set_timer']\n"
    )
    report = tmp_path / "report.xml"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}", "."]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)
    assert "2 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    assert done.stdout.count("Timeout (>2.0s) from pytest-timeout.") >= 2
    process = int(report.read_text().partition('name="process" value="')[2].partition('"')[0])
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


def test_every_test_has_a_time(request):
    """60 s in the first tier, and more with the marks of the others."""
    assert float(request.config.getini("timeout")) == 60
    assert SECONDS == {"long": 24 * 3600, "full": 600}


def test_children_are_seen():
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        if sys.platform == "linux":
            assert process.pid in child_processes()
        process.communicate(b"\n")
