"""The tests of small projects have the same outcome in `run` as outside; staged, without network."""

import re
import shlex
import shutil
import subprocess
import sys

import pytest

from agentfs import Limits
from tests.kit import put

PYTHON = shlex.quote(sys.executable)  # as a word of a command line

COMMAND = "python3 -m unittest -q"
TESTS = "import unittest\nclass T(unittest.TestCase):\n    def test(self): assert VALUE\nVALUE = {}\n"


@pytest.mark.parametrize("value", [0, 1], ids=["fails", "passes"])
def test_a_suite_has_the_outcome_of_outside(opened, ws, tmp_path, value):
    """tests/commands/test_daily_work.py has npm and make."""
    root, copy = (put(tmp_path / top, {"test_x.py": TESTS.format(value)}) for top in ("project", "outside"))
    outside = subprocess.run(["bash", "-c", COMMAND], cwd=copy, capture_output=True, check=False)
    result = opened(ws.policy.run, root=root).run(COMMAND)
    assert (outside.returncode == 0) == value, outside.stderr.decode()
    assert result.exit_status == outside.returncode, result.text


@pytest.mark.long
def test_the_utils_tests_of_django_have_the_outcome_of_outside(opened, ws, django_source, tmp_path):
    """641 tests, with subprocesses, temporary files, file locks and time zones; staged, without network."""
    root, copy = tmp_path / "project", tmp_path / "outside"
    shutil.copytree(django_source, root, symlinks=True)
    install = [sys.executable, "-m", "pip", "install", "-q", "--target", str(root / "needed")]
    subprocess.run([*install, "asgiref", "sqlparse"], check=True)
    shutil.copytree(root, copy, symlinks=True)
    command = f"cd tests && {PYTHON} runtests.py utils_tests --parallel 1"

    def env(top):
        return {"PYTHONPATH": f"{top}:{top}/needed"}

    outside = subprocess.run(
        ["bash", "-c", command], cwd=copy, env=env(copy), capture_output=True, check=False
    )
    limits = Limits(snapshot_bytes=1_000_000_000, timeout=120)  # the first recording keeps 7,000 files
    result = opened(ws.policy.run, root=root, limits=limits).run(command, timeout=600, env=env(root))
    assert outside.returncode == 0, outside.stderr.decode()
    assert result.exit_status == 0, result.text
    counted = [re.findall(rb"Ran (\d+) tests|OK \((.*)\)", each) for each in (outside.stderr, result.stderr)]
    assert counted[0] == counted[1]
    assert int(counted[0][0][0]) > 500
