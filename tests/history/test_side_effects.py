"""Tasks with hidden side effects beside a second agent; tests/commands runs them alone."""

import hashlib
import os
import shlex
import shutil
import subprocess
import sys

import pytest

from agentfs import Workspace
from tests import kit
from tests.conftest import needs
from tests.kit import put

FORMATTER = """
import pathlib
for path in pathlib.Path(".").rglob("*.py"):
    text = path.read_text()
    path.write_text("\\n".join(line.rstrip().replace("'", '"') for line in text.splitlines()) + "\\n")
"""
INSTALL = """
import json, pathlib
lock = json.loads(pathlib.Path("package-lock.json").read_text())
lock["packages"]["left-pad"] = "1.3.0"
pathlib.Path("package-lock.json").write_text(json.dumps(lock, indent=2))
pathlib.Path("node_modules/left-pad").mkdir(parents=True)
pathlib.Path("node_modules/left-pad/index.js").write_text("module.exports = 1\\n")
"""
TASKS = {
    "a build that deletes sources": "mkdir build && cat src/*.py > build/all.py && rm -r src/gen src/app.py",
    "sed over a tree": "grep -rl value . --include=*.py | xargs sed -i s/value/VALUE/g",
    "a test run that rewrites fixtures": "for f in tests/fixtures/*.json; do echo '{\"new\": 1}' > $f; done",
    "git checkout": "git checkout -q . && git checkout -q HEAD~1 -- src",
    "git stash": "git stash -q -u",
    "a formatter": f"{shlex.quote(sys.executable)} -SE - <<'END'{FORMATTER}END",
    "a directory that is moved": "mv src lib && mv lib/gen gen",
    # A directory that its own user may not enter is in `test_closed_directories.py`.
    "chmod -R": "chmod -R go-rwx . && find tools -type f -exec chmod a-x {} +",
    "an install that edits a lock file": f"{shlex.quote(sys.executable)} -SE - <<'END'{INSTALL}END",
    "a log and a source that are truncated": ": > run.log && : > src/app.py",
    "a link that is swapped": "ln -sfn src/gen current && rm tools/link && echo file > tools/link",
    "a rename that changes only case": "mv readme.md README.md && mv src/app.py src/App.py",
}


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    top = tmp_path_factory.mktemp("repository")
    lines = "".join(f"value_{number} = '{number}'  \n" for number in range(30))
    put(top, {name: f"# {name}\n{lines}" for name in ("src/app.py", "src/util.py", "src/gen/made.py")})
    put(top, {f"tests/fixtures/{number}.json": f'{{"old": {number}}}\n' for number in range(5)})
    put(top, {"tools/run.sh": "#!/bin/sh\necho\n", "readme.md": "# read\n", "run.log": "line\n" * 1000})
    put(top, {"data.bin": bytes(range(256)) * 10, "package-lock.json": '{"packages": {}}'})
    (top / "tools/run.sh").chmod(0o755)
    (top / "tools/link").symlink_to("run.sh")
    (top / "current").symlink_to("src")
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(top)]
    subprocess.run([*git, "init", "-q", "--template="], check=True)
    for message in ("one", "two"):
        subprocess.run([*git, "add", "-A"], check=True)
        subprocess.run([*git, "commit", "-q", "-m", message], check=True)
        (top / "src/util.py").write_text(f"# changed after {message}\n{lines}")
    (top / "untracked.txt").write_text("not in git\n")
    return top


@pytest.fixture
def root(repository, tmp_path):
    return shutil.copytree(repository, tmp_path / "root", symlinks=True)


def tree_hash(top):
    """A hash of the names, types, modes and contents of a tree, without .git."""
    whole = hashlib.sha256()
    for directory, names, files in os.walk(top):
        names[:] = sorted(name for name in names if name != ".git")
        for name in sorted([*names, *files]):
            path = os.path.join(directory, name)
            facts = os.lstat(path)
            content = b""
            if os.path.islink(path):
                content = os.fsencode(os.readlink(path))
            elif os.path.isfile(path):
                with open(path, "rb") as file:
                    content = file.read()
            whole.update(f"{os.path.relpath(path, top)} {facts.st_mode:o} ".encode() + content + b"\0")
    return whole.hexdigest()


def run(task, root):
    environment = {**os.environ, "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b"}
    environment |= {"GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b"}
    subprocess.run(["sh", "-c", TASKS[task]], cwd=root, check=True, env=environment, capture_output=True)


def second_agent(root, task):
    """Write a file, and a line of another file that the task has not changed."""
    with Workspace(root) as ws:
        ws.write("theirs.txt", "theirs\n")
        file = "lib/util.py" if (root / "lib").exists() else "src/util.py"
        text = (root / file).read_text()
        kit.splice(ws, file, [(len(text) if task.startswith("git") else 0,) * 2 + ("# theirs\n",)])


@needs("git")
@pytest.mark.parametrize("task", TASKS)
def test_a_second_agents_edit_in_between_survives(root, tmp_path, task):
    expected = tmp_path / "expected"
    shutil.copytree(root, expected, symlinks=True)
    second_agent(expected, task)
    with Workspace(root) as ws:
        with ws.recording(task):
            run(task, root)
        second_agent(root, task)
        undone = ws.undo()
    assert (root / "src/util.py").read_text() == (expected / "src/util.py").read_text()
    assert tree_hash(root) == tree_hash(expected), undone.text
