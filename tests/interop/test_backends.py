"""The backends pass the suites of their frameworks, which run where the frameworks are installed."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.interop.conftest import ROOT
from tests.newer_package import imported_with_newer_package

HERE = Path(__file__).parent

pytestmark = [pytest.mark.network, pytest.mark.full]


def outcome(python_of, tmp_path, suite, way, *options):
    """Return what pytest counted in a suite, and the names of the tests that failed."""
    runs = [python_of("backends.txt"), "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    place = ["--noconftest", "--rootdir", tmp_path, "-c", os.devnull, "--basetemp", tmp_path / "t"]
    done = subprocess.run(
        [*runs, *place, HERE / suite, *options], check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT), "AGENTFS_RUN": way}, cwd=tmp_path,
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    counts = {what: int(count) for count, what in re.findall(r"(\d+) (passed|skipped|failed)", done.stdout)}
    return counts, set(re.findall(r"^FAILED \S+::(\w+)", done.stdout, re.MULTILINE)), done.stdout


def test_the_recorded_backend_passes_the_whole_suite_of_pydantic_ai(python_of, tmp_path):
    counts, failed, printed = outcome(python_of, tmp_path, "suite_pydantic_ai.py", "recorded")
    assert not failed, printed
    # As root, the test of denied permissions is skipped.
    assert counts == ({"passed": 37, "skipped": 1} if os.geteuid() == 0 else {"passed": 38})


@pytest.mark.long
def test_the_staged_backend_fails_only_the_tests_that_watch_a_running_command(python_of, tmp_path):
    _, failed, printed = outcome(python_of, tmp_path, "suite_pydantic_ai.py", "staged")
    assert failed == {
        "test_cancellation_stops_foreground_work",
        "test_destroying_environment_during_command_raises_unavailable",
    }, printed


def test_the_backend_fails_only_the_tests_of_deepagents_that_contradict_its_protocol(python_of, tmp_path):
    """The protocol wants absolute paths and files from `glob`, and `write` to overwrite."""
    counts, failed, printed = outcome(
        python_of, tmp_path, "suite_deepagents.py", "recorded", "-o", "asyncio_mode=auto"
    )
    assert failed == {
        "test_glob", "test_glob_basic_pattern", "test_glob_hidden_files_explicitly",
        "test_glob_with_character_class", "test_glob_with_directories", "test_glob_with_question_mark",
        "test_write_existing_file_fails",
    }, printed  # fmt: skip
    assert counts == {"passed": 79, "failed": 7}


@pytest.mark.parametrize(("suite", "passed"), [
    ("suite_agents.py", 3), ("suite_backends.py", 8), ("suite_deepagents_agent.py", 4),
])  # fmt: skip
def test_the_agents_do_the_task_and_the_backends_meet_bad_input(python_of, tmp_path, suite, passed):
    counts, _, printed = outcome(python_of, tmp_path, suite, "recorded", "-o", "asyncio_mode=auto")
    assert counts == {"passed": passed}, printed


@pytest.mark.parametrize(("listed", "name", "use"), [
    ("backends.txt", "deepagents", "module.Backend(root).read('a.txt').file_data['content']"),
    ("backends.txt", "langchain", "module.tools(ws.tools(['read']))[0].invoke({'path': 'a.txt'})"),
    ("backends.txt", "pydantic_ai",
     "asyncio.run(module.WorkspaceBackend(root).read_bytes('a.txt')).decode()"),
    ("frameworks.txt", "openai_agents",
     "[ws.read('a.txt').text for each in module.tools(ws.tools()) if each.name == 'read'][0]"),
])  # fmt: skip
def test_an_adapter_of_a_newer_framework_warns_once_and_works(python_of, tmp_path, listed, name, use):
    (tmp_path / "a.txt").write_text("text\n")
    warned, used = imported_with_newer_package(python_of(listed), tmp_path, name, use)
    assert warned == 1
    assert "text" in used


LOOPS = sorted((ROOT / "tests/interop/typed_loops").glob("*.py"))
TYPED = [ROOT / "agentfs/tools/toolset.py"]
# deepagents needs other versions than the frameworks of the first environment.
ELSEWHERE = ROOT / "agentfs/frameworks/deepagents.py"
ADAPTERS = sorted({*(ROOT / "agentfs/frameworks").glob("*.py")} - {ELSEWHERE})


@pytest.fixture
def wrong(tmp_path):
    """A loop with a function that a strict mode refuses."""
    file = tmp_path / "wrong.py"
    file.write_text(f"{LOOPS[0].read_text()}\ndef untyped(value):\n    return value\n")
    return file


def complaints(*command):
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 1, done.stdout + done.stderr
    return [line for line in done.stdout.splitlines() if " error: " in line]


@pytest.mark.parametrize(("requirements", "accepted"), [
    ("frameworks.txt", [*LOOPS, *TYPED, *ADAPTERS]), ("backends.txt", [ELSEWHERE]),
])  # fmt: skip
def test_pyright_accepts_the_loops_and_the_adapters(python_of, wrong, tmp_path, requirements, accepted):
    # A configuration of its own, because the project's leaves out adapters even if the command names them.
    files = [os.path.relpath(each, tmp_path) for each in (*accepted, wrong)]
    settings = {"include": files, "extraPaths": [str(ROOT)], "typeCheckingMode": "strict"}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps({**settings, "pythonVersion": "3.11"}))
    pyright = [sys.executable, "-m", "pyright", "--pythonpath", python_of(requirements)]
    found = complaints(*pyright, "--project", tmp_path)
    assert [line for line in found if str(wrong) not in line] == []
    assert any("reportMissingParameterType" in line for line in found)


def test_mypy_accepts_the_loops(python_of, wrong, request):
    cache = request.config.cache.mkdir("mypy")
    mypy = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", f"--cache-dir={cache}"]
    found = complaints(*mypy, f"--python-executable={python_of('frameworks.txt')}", *LOOPS, *TYPED, wrong)
    assert all("wrong.py" in line for line in found), found
    assert any("[no-untyped-def]" in line for line in found)
