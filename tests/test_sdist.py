"""The source distribution contains the files that README's lines need."""

import re
import subprocess
import sys
import tarfile
import tomllib
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


INSTALLING = ["README.md", "DESCRIPTION.md", "docs/index.md", "docs/tutorial/index.md", "docs/how-to/mcp.md"]


@pytest.mark.parametrize("page", INSTALLING)
def test_pages_that_install_warn_of_the_other_project(page):
    text = " ".join((ROOT / page).read_text(encoding="utf-8").split())
    assert "`pip install agentfs` fetches another project, which has the same import name." in text


def test_no_page_installs_a_package_that_the_index_lacks():
    for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "agentfs").rglob("*.py")]:
        assert not re.search("pip install '?agentfs-workspace", path.read_text(encoding="utf-8")), path


def test_all_pages_say_the_same_of_macos():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert not [each for each in project["classifiers"] if "MacOS" in each]
    pages = ["README.md", "DESCRIPTION.md", "docs/tutorial/index.md", "docs/questions.md"]
    for page in [*pages, "docs/explanation/promises.md", "docs/explanation/security.md"]:
        text = " ".join((ROOT / page).read_text(encoding="utf-8").split())
        assert "expected to work, not run by us" in text
        assert re.search(r"on Linux (and|or) macOS", text) is None, page
    for path in [*ROOT.glob("*.md"), *(ROOT / "agentfs").rglob("*.py"), *(ROOT / "docs").rglob("*.md")]:
        text = " ".join(path.read_text(encoding="utf-8").split())
        for claim in re.findall(r"macOS[^.;|]* (?:work|works|run|runs|tested|supported)\b[^.;|]*", text):
            assert "expected to work, not run by us" in claim, path
