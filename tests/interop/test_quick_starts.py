"""The programs of README and of the pages, run with the providers' packages against stand-ins of the APIs."""

import os
import subprocess

import pytest

from scripts.pages import NO_PROGRAMS, TUTORIAL, blocks_of, sessions
from tests.interop.calls_in_frameworks import programs
from tests.interop.test_frameworks import ROOT, python_of, stand_ins

pytestmark = pytest.mark.network
__all__ = ["python_of"]  # a fixture

# Those of frameworks are run by test_frameworks.py; README may have one that a page has too.
PROGRAMS = {
    block.content: str(block)
    for pages in sessions()
    for page in pages
    if str(page.relative_to(ROOT)) not in NO_PROGRAMS
    for block in blocks_of(page)
    if block.language == "py" and block.content not in programs().values()
}


def run(python, directory, *command):
    (directory / "marker.txt").write_text("x")
    agentfs = directory / "bin" / "agentfs"
    agentfs.parent.mkdir()
    agentfs.write_text(f"#!/bin/sh\nPYTHONPATH='{ROOT}' exec {python} -m agentfs \"$@\"\n")
    agentfs.chmod(0o755)
    with stand_ins() as environment:
        environment["PATH"] = f"{agentfs.parent}{os.pathsep}{environment['PATH']}"
        done = subprocess.run(
            [python, *command], cwd=directory, env=environment,
            capture_output=True, text=True, check=False, timeout=120,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("code", PROGRAMS, ids=PROGRAMS.values())
def test_a_program_runs(code, python_of, tmp_path):
    printed = run(python_of("frameworks.txt"), tmp_path, "-c", code)
    assert printed.startswith("It holds:"), printed
    assert "marker.txt" in printed


def test_the_tutorials_agent_asks_a_real_model(python_of, tmp_path):
    for block in blocks_of(TUTORIAL / "index.md"):
        if block.title:
            (tmp_path / block.title).parent.mkdir(exist_ok=True)
            (tmp_path / block.title).write_text(block.content)
    printed = run(python_of("frameworks.txt"), tmp_path, "agent.py")
    assert "It holds: cart.py" in printed
