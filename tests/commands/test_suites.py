"""The tests of small projects have the same outcome in `run` as outside; staged, without network."""

import re
import shlex
import shutil
import subprocess
import sys

import pytest

from agentfs import Limits

PYTHON = shlex.quote(sys.executable)  # as a word of a command line

PROJECTS = {
    "npm test": {
        "package.json": '{"name": "x", "version": "1.0.0", "scripts": {"test": "node --test"}}',
        "x.test.js": 'require("node:test")("fine", () => {});\n',
    },
    "cargo test --offline": {
        "Cargo.toml": '[package]\nname = "x"\nversion = "0.1.0"\nedition = "2021"\n',
        "src/lib.rs": "#[test]\nfn fine() { assert_eq!(2 + 2, 4); }\n",
        ".gitignore": "target\n",
    },
    "python3 -m unittest -q": {
        "test_x.py": "import unittest\nclass T(unittest.TestCase):\n    def test(self): assert VALUE\n"
        "VALUE = 1\n"
    },
}


@pytest.mark.parametrize("fails", [False, True], ids=["passes", "fails"])
@pytest.mark.parametrize(
    "command",
    [each if "python" in each else pytest.param(each, marks=pytest.mark.long) for each in PROJECTS],
    ids=str,
)
def test_a_suite_has_the_outcome_of_outside(opened, ws, tmp_path, command, fails):
    program = command.split()[0]
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    root, copy = tmp_path / "project", tmp_path / "outside"
    for name, text in PROJECTS[command].items():
        changed = text.replace("() => {}", "() => { throw 1 }").replace("2 + 2, 4", "1, 4")
        for top in (root, copy):
            (top / name).parent.mkdir(parents=True, exist_ok=True)
            (top / name).write_text(changed.replace("VALUE = 1", "VALUE = 0") if fails else text)
    outside = subprocess.run(["bash", "-c", command], cwd=copy, capture_output=True, check=False)
    result = opened(ws.policy.run, root=root).run(command)
    assert (outside.returncode != 0) == fails, outside.stderr.decode()
    assert result.exit_status == outside.returncode, result.text


@pytest.mark.long
def test_the_utils_tests_of_django_have_the_outcome_of_outside(opened, ws, django_source, tmp_path):
    """641 tests, with subprocesses, temporary files, file locks and time zones; staged, without network."""
    root, copy = tmp_path / "project", tmp_path / "outside"
    shutil.copytree(django_source, root, symlinks=True)
    install = [sys.executable, "-m", "pip", "install", "-q", "--target", str(root / "needed")]
    subprocess.run([*install, "asgiref", "sqlparse"], check=True)
    shutil.copytree(root, copy, symlinks=True)
    command = f"cd tests && {PYTHON} runtests.py utils_tests --parallel 1"

    def env(top):
        return {"PYTHONPATH": f"{top}:{top}/needed"}

    outside = subprocess.run(
        ["bash", "-c", command], cwd=copy, env=env(copy), capture_output=True, check=False
    )
    limits = Limits(snapshot_bytes=1_000_000_000, timeout=120)  # the first recording keeps 7,000 files
    result = opened(ws.policy.run, root=root, limits=limits).run(command, timeout=600, env=env(root))
    assert outside.returncode == 0, outside.stderr.decode()
    assert result.exit_status == 0, result.text
    counted = [re.findall(rb"Ran (\d+) tests|OK \((.*)\)", each) for each in (outside.stderr, result.stderr)]
    assert counted[0] == counted[1]
    assert int(counted[0][0][0]) > 500
