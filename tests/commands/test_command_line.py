"""`agentfs run`."""

import subprocess
import sys

import pytest


@pytest.fixture
def agentfs(tree):
    def run(*arguments):
        command = [sys.executable, "-m", "agentfs", "run", *arguments]
        return subprocess.run(command, cwd=tree, capture_output=True, check=False, timeout=120)

    return run


def test_the_status_and_the_output_are_those_of_the_command(agentfs, tree):
    ran = agentfs("--", "bash", "-c", "echo out; echo err >&2; touch made; exit 7")
    assert (ran.returncode, ran.stdout) == (7, b"out\n")
    assert ran.stderr.startswith(b"err\n")
    assert b'created "made"' in ran.stderr
    assert (tree / "made").exists()


def test_a_preview_prints_the_patch(agentfs, tree):
    ran = agentfs("--preview", "--", "sed", "-i", "s/two/TWO/", "src/a.py")
    assert ran.returncode == 0
    assert b"-two\n+TWO\n" in ran.stdout
    assert "two" in (tree / "src/a.py").read_text()


def test_the_mode(agentfs, tree):
    assert agentfs("--mode", "recorded", "echo $((1 + 2)) > made").returncode == 0
    assert (tree / "made").read_text() == "3\n"


@pytest.mark.full
def test_own_failures_end_with_125_and_a_timeout_with_124(agentfs):
    assert agentfs().returncode == 125
    assert agentfs("--mode", "other", "true").returncode == 125
    assert agentfs("--root", "gone", "true").returncode == 125
    assert agentfs("--", "mkdir", ".vscode").returncode == 125
    assert agentfs("--timeout", "0.5", "--", "sleep", "30").returncode == 124
