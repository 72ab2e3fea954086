"""Type checkers in strict mode accept a loop for each provider, and the adapters, with the real packages."""

import json
import os
import subprocess
import sys

import pytest

from tests.interop.conftest import ROOT

pytestmark = [pytest.mark.network, pytest.mark.full]

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
    """Return the lines of a type checker with errors."""
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
