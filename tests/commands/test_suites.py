"""The tests of small projects have the same outcome in `run` as outside; staged, without network."""

import shutil
import subprocess

import pytest

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
