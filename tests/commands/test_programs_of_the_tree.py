"""Nothing that a model writes into the tree is run or imported outside a sandbox."""

import json
import os
import shutil
import subprocess
import sys

import pytest

from agentfs import Policy, Workspace

HELPERS = ("bash", "bwrap", "chmod", "flock", "git", "kill", "nsenter", "rm", "sh")
MODULES = ("bracex", "difflib", "regex", "wcmatch")


@pytest.fixture
def root(tmp_path):
    root = tmp_path / "root"
    root.mkdir()
    (root / "a.txt").write_text("hello\n")
    return root


@pytest.mark.parametrize("mode", ["staged", "recorded"])
def test_regression_programs_of_a_path_in_the_tree_are_not_run_as_helpers(root, tmp_path, monkeypatch, mode):
    """An activated `.venv` in the tree is in `PATH`; `shutil.which` finds the program of the model."""
    proof, programs = tmp_path / "proof", root / ".venv" / "bin"
    programs.mkdir(parents=True)
    for name in HELPERS:
        (programs / name).write_text(f'#!/bin/sh\necho {name} >> {proof}\nexec /bin/{name} "$@"\n')
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    assert shutil.which("bwrap") == str(programs / "bwrap")  # the naive way is open
    script = (
        "import sys\nfrom agentfs import Policy, Workspace\n"
        f"with Workspace({str(root)!r}, policy=Policy(run={mode!r})) as ws:\n"
        "    ws.grep('hello')\n"
        "    print(ws.run('mkdir -p x/y; /bin/chmod 000 x/y; /bin/echo hi').stdout)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=50, cwd="/"
    )
    assert done.stdout == "b'hi\\n'\n"
    assert not proof.exists() or proof.read_text() == ""


@pytest.mark.parametrize("way", ["-m", pytest.param("a program in the root", marks=pytest.mark.full)])
def test_regression_modules_of_the_tree_are_not_imported(root, tmp_path, way):
    proof = tmp_path / "proof"
    text = f"open({str(proof)!r}, 'a').write(__name__)\n"
    writes = [("write", {"path": f"{name}.py", "content": text}) for name in MODULES]
    calls = [
        ("edit", {"path": "a.txt", "old_string": "helo", "new_string": "x"}),
        ("grep", {"pattern": "h(i|e)+", "glob": "*.{py,txt}"}),
    ]
    if way == "-m":
        for _, each in writes:
            (root / each["path"]).write_text(each["content"])
        for name, arguments in calls[:1]:
            command = [sys.executable, "-m", "agentfs", "call", name, json.dumps(arguments)]
            subprocess.run(command, cwd=root, capture_output=True, check=False, timeout=50)
    else:
        program = root / "agent.py"
        program.write_text(
            "from agentfs import Workspace\n"
            "from contextlib import suppress\nfrom agentfs.errors import AgentFSError\n"
            f"with Workspace({str(root)!r}) as ws:\n"
            f"    for name, arguments in {writes + calls!r}:\n"
            "        with suppress(AgentFSError):\n            getattr(ws, name)(**arguments)\n"
        )
        subprocess.run([sys.executable, program], cwd="/", capture_output=True, check=True, timeout=50)
    assert (root / "difflib.py").exists()
    assert not proof.exists(), f"imported from the tree: {proof.read_text()}"


def test_regression_caches_of_a_recorded_command_are_those_of_the_user(root, monkeypatch):
    """Another user can make `/tmp/.cache` first, and fill it with programs."""
    for name in ("TMPDIR", "XDG_CACHE_HOME", "npm_config_cache"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/home/of/the/user/.cache")
    with Workspace(root, policy=Policy(run="recorded")) as ws:
        printed = ws.run("env").stdout.decode()
    variables = dict(line.partition("=")[::2] for line in printed.splitlines())
    assert variables["XDG_CACHE_HOME"] == "/home/of/the/user/.cache"
    assert {"TMPDIR", "npm_config_cache"}.isdisjoint(variables)
