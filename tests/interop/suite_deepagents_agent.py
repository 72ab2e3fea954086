"""The answers of a backend to an agent of deepagents; `test_backends.py` runs this."""

import os

import pytest
from deepagents.backends import CompositeBackend

from agentfs.frameworks.deepagents import Backend
from tests.commands.conftest import SECRET
from tests.frameworks.scenario import TEST, WRONG
from tests.interop.suite_agents import told_by_deepagents as told
from tests.kit import put

FILES = {"app.py": WRONG, "test_app.py": TEST, ".env": SECRET}


@pytest.fixture
def tree(tmp_path):
    return put(tmp_path, FILES)


def test_an_evicted_result_stays_readable(tree):
    backend = Backend(tree, run="recorded")
    below = CompositeBackend(default=backend, routes={}, artifacts_root=str(tree))
    [evicted] = told(below, [("execute", {"command": "seq 100000"})])
    assert f"{tree}/large_tool_results/" in evicted
    [saved] = (tree / "large_tool_results").iterdir()
    assert backend.read(str(saved), 99_000, 10).file_data["content"].startswith("99001\n")


def test_what_a_search_left_out_is_in_the_log(tree, caplog):
    caplog.set_level("INFO", "agentfs.frameworks.deepagents")
    found = Backend(tree).grep("add")
    assert {each["path"] for each in found.matches} == {f"{tree}/app.py", f"{tree}/test_app.py"}
    assert not found.truncated
    assert "left out: 1 hidden" in caplog.text
    assert Backend(tree).grep("a", max_count=1).truncated


def test_the_model_is_told_of_files_that_could_not_be_searched(tree):
    above = os.open(tree, os.O_RDONLY)
    for _ in range(25):  # more than the longest path of the system
        os.mkdir("d" * 200, dir_fd=above)
        above, closed = os.open("d" * 200, os.O_RDONLY, dir_fd=above), above
        os.close(closed)
    os.close(above)
    backend = Backend(tree)
    [found] = told(backend, [("grep", {"pattern": "def add", "path": str(tree), "output_mode": "content"})])
    assert "1 too deep" in found
    assert "def add(a, b):" in found
    assert backend.glob("*.py").truncation_reason == "unreadable"


def test_the_words_of_paths_that_are_refused(tree):
    backend = Backend(tree)
    for path in ("/etc/passwd", "../x", f"{tree}/../x"):
        assert "workspace" in backend.read(path).error
        assert backend.download_files([path])[0].error in {"permission_denied", "invalid_path"}
    assert {each["path"] for each in backend.ls("/").entries} == {f"{tree}/{name}" for name in FILES}
    assert backend.download_files([f"{tree}/.env"])[0].error == "permission_denied"
