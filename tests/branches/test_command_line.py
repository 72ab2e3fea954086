"""`agentfs branch`: a command in a branch, from the command line."""

import os

import pytest

from agentfs.cli import main


@pytest.fixture
def branch(tree, tmp_path, capfd):
    def call(*words: str) -> tuple[int, str]:
        status = main(["branch", "one", "--root", str(tree), "--state", str(tmp_path / "state"), *words])
        captured = capfd.readouterr()
        return status, captured.out + captured.err

    return call


def test_a_branch_is_kept_between_commands_until_it_is_discarded(branch, tree, tmp_path):
    status, shown = branch("--", "echo new > n; echo said")
    assert (status, shown.splitlines()[0]) == (0, "said")
    assert "agentfs: " in shown
    assert branch("--", "cat", "n")[1].startswith("new\n")
    assert "+new" in branch("--merge", "--preview")[1]
    assert not (tree / "n").exists()
    assert branch("--merge", "--discard", "--", "true")[0] == 0
    assert (tree / "n").read_text() == "new\n"
    assert os.listdir(tmp_path / "state/branches") == []


def test_a_failed_command_merges_nothing(branch, tree):
    assert branch("--merge", "--", "echo new > n; exit 3")[0] == 3
    assert not (tree / "n").exists()
    assert branch()[0] == 125
