"""The wheel, with its metadata, which the package index shows; and the source distribution."""

import email
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email.message import Message
from pathlib import Path

import pytest
from trove_classifiers import classifiers

import agentfs
from tests.conftest import program

ROOT = Path(__file__).parents[1]
NAME = "agentfs-workspace"
PAGE = f"https://pypi.org/project/{NAME}/"
LINK = re.compile(
    r"\]\(([^)\s]+)|(?:src|href)=[\"']([^\"']+)|^\[[^\]]+\]:\s*(\S+)|<(https?://[^>]+)>", re.MULTILINE
)


def built(kind: str, target: Path) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(target)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    [made] = target.iterdir()
    return made


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    return zipfile.ZipFile(built("wheel", tmp_path_factory.mktemp("wheel")))


@pytest.fixture(scope="module")
def metadata(wheel: zipfile.ZipFile) -> Message:
    return email.message_from_bytes(wheel.read(f"agentfs_workspace-{agentfs.__version__}.dist-info/METADATA"))


def links_of(text: str) -> list[str]:
    return ["".join(found) for found in LINK.findall(text)]


@pytest.mark.full
def test_each_link_of_the_description_is_an_address_and_none_is_a_file_of_the_repository(metadata):
    """The index resolves no relative link. README has them, so another file is the description."""
    described = metadata.get_payload()
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert described.startswith("# agentfs\n")
    assert [link for link in links_of(described) if not link.startswith((PAGE, "#"))] == []
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    code = re.findall(r"```python\n.*?```", described, re.DOTALL)
    assert code
    assert all(block in readme for block in code)


def test_the_index_gets_a_summary_keywords_and_known_classifiers(metadata):
    assert (metadata["Name"], metadata["Version"]) == (NAME, agentfs.__version__)
    assert 40 < len(metadata["Summary"]) <= 100
    keywords = metadata["Keywords"].split(",")
    assert len(keywords) == len({*keywords})
    assert {"agent", "llm", "tools", "mcp", "shell", "undo"} <= {*keywords}
    named = metadata.get_all("Classifier")
    assert {*named} <= classifiers
    assert named == sorted(named)
    minors = [each.rpartition(".")[2] for each in named if re.search(r":: 3\.\d+$", each)]
    assert metadata["Requires-Python"] == f">=3.{minors[0]}"


def test_the_wheel_has_the_package_its_license_and_both_commands_and_nothing_else(wheel):
    names = wheel.namelist()
    information = f"agentfs_workspace-{agentfs.__version__}.dist-info/"
    assert {name.partition("/")[0] for name in names} == {"agentfs", information.rstrip("/")}
    assert {"agentfs/py.typed", information + "licenses/LICENSE"} <= {*names}
    sources = {path.relative_to(ROOT).as_posix() for path in (ROOT / "agentfs").rglob("*.py")}
    assert sources == {name for name in names if name.endswith(".py")}
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["scripts"]
    for name in scripts:
        assert f"\n{name} = " in wheel.read(information + "entry_points.txt").decode()


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    with tarfile.open(built("sdist", tmp_path_factory.mktemp("sdist"))) as archive:
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
