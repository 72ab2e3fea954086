"""A function of a test can be called with the package of another commit, to compare old and new code."""

import os
import subprocess
from pathlib import Path

import pytest

import agentfs
from scripts.other_version import OtherVersion, unpack
from tests.conftest import needs

ROOT = Path(__file__).parents[1]
pytestmark = [
    needs("git"),
    pytest.mark.skipif(not (ROOT / ".git").exists(), reason="the tests run in an unpacked distribution"),
]


def place() -> str:
    return os.path.dirname(agentfs.__file__)


def edited(content: str, old: str, new: str) -> str:
    print("a message that is not an answer")  # noqa: T201
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as root, agentfs.Workspace(root) as ws:
        ws.write("a.txt", content)
        ws.edit("a.txt", old, new)
        return ws.read("a.txt").text


@pytest.fixture(scope="module")
def other():
    with OtherVersion("HEAD") as version:
        yield version


def test_a_function_runs_with_the_package_of_the_other_commit(other):
    assert other.call(place) != place() == str(ROOT / "agentfs")


def test_outcomes_of_both_versions_are_compared(other):
    arguments = "one\ntwo\n", "two", "drei"
    assert other.call(edited, *arguments) == edited(*arguments)


def test_an_error_of_the_other_version_is_raised(other):
    with pytest.raises(RuntimeError, match=r"^NoMatchError: old_string is not in"):
        other.call(edited, "one\n", "three", "drei")
    assert other.call(place)


def test_an_unknown_commit_is_an_error(tmp_path, capfd):
    with pytest.raises((ValueError, subprocess.CalledProcessError)):
        unpack("no-such-commit", tmp_path)
