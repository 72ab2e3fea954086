"""The source distribution contains the files that README's lines need."""

import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from tests.conftest import program

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    """The names of the files in the source distribution."""
    target = tmp_path_factory.mktemp("sdist")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(target)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    with tarfile.open(next(target.iterdir())) as archive:
        return {name.partition("/")[2] for name in archive.getnames()}


@pytest.mark.full
def test_commands_in_the_readme_find_their_files(packed):
    needed = {"README.md", "CONTRIBUTING.md", "CHANGELOG.md", "LICENSE", "pyproject.toml", ".ci/run"}
    assert needed | {"scripts/check.py", "examples/agent_loop.py", "tests/conftest.py"} <= packed
    assert not [name for name in packed if name.startswith((".venv/", ".git/", ".pytest_cache/"))]


def test_everything_in_the_repository_is_packed(packed):
    if program("git") is None or not (ROOT / ".git").exists():
        pytest.skip("this is not a git repository")
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    tracked = {name for name in listed.split("\0") if name and (ROOT / name).exists()}
    assert packed == tracked | {"PKG-INFO"}
