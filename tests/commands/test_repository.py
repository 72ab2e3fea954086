"""Git works in a linked worktree, a submodule, and a root below its repository, as it does outside."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from agentfs import Policy, Workspace
from tests.commands.conftest import NAMES, SECRET, git, snapshot
from tests.conftest import needs
from tests.kit import put

pytestmark = needs("git")

ROOTS = {
    "worktree": "wt", "part": "main/pkg/app", "submodule": "main/lib", "part of a worktree": "wt/pkg/app",
}  # fmt: skip
COMMANDS = [
    "git log --oneline --all; git status --short; git diff; git ls-files; git rev-parse --show-prefix",
    "echo 2 > a; echo new > new; git add -A; git commit -qm two; git status --short",
    "rm a; git commit -qam two; git tag v1; git branch other",
    "git checkout -qb topic; echo 3 > a; git commit -qam three; git stash list",
    "echo 2 > a; git stash -q; git stash pop -q; git diff",
]


@pytest.fixture(scope="module")
def make(tmp_path_factory):
    """Return a function that copies a repository into an empty directory: git takes longer to build one."""
    built = tmp_path_factory.mktemp("built")
    build(built)

    def make(top: Path) -> None:
        shutil.copytree(built, top, symlinks=True, dirs_exist_ok=True)
        for pointer in (top / "wt/.git", top / "main/.git/worktrees/wt/gitdir"):
            pointer.write_text(pointer.read_text().replace(str(built), str(top)))

    return make


def build(top: Path) -> None:
    """Create a repository with a linked worktree, a submodule, and protected files everywhere."""
    put(
        top, dict.fromkeys(["library/a", "main/pkg/app/a", "main/pkg/b"], "1\n") | {"main/pkg/.npmrc": SECRET}
    )
    for name in ("library", "main"):
        git(top / name, "init", "-q", "-b", "main")
        git(top / name, "add", "-A")
        git(top / name, "commit", "-qm", "one")
    git(top / "main", "submodule", "--quiet", "add", "../library", "lib")
    git(top / "main", "commit", "-qm", "lib")
    git(top / "main", "worktree", "add", "-q", "../wt")
    (top / "wt/a").write_text("1\n")
    git(top / "wt", "add", "a")
    git(top / "wt", "commit", "-qm", "a")
    put(top, dict.fromkeys(["main/.env", "main/pkg/app/.env", "wt/.env", "main/lib/.env"], SECRET))
    for path in ("main/.git/info/exclude", "main/.git/modules/lib/info/exclude"):
        with (top / path).open("a") as file:
            file.write(".env\n")


@pytest.fixture(scope="module")
def outside(tmp_path_factory, make):
    """Return the outcome of a command in a root, run without a sandbox; each once."""
    found: dict[tuple[str, str], object] = {}

    def run(root: str, command: str) -> object:
        if (root, command) not in found:
            top = tmp_path_factory.mktemp("outside")
            make(top)
            shell = ["bash", "-c", command]
            given = {"cwd": top / root, "env": os.environ | NAMES}
            ran = subprocess.run(shell, capture_output=True, check=True, **given)
            found[root, command] = ran.stdout, outcome(top, root)
        return found[root, command]

    return run


def outcome(top: Path, root: str) -> object:
    """Return what git and the disk say after a command."""
    questions = (["for-each-ref"], ["ls-files", "-s", "-v"], ["status", "--short"], ["log", "--format=%H %s"])
    files = {path: node for path, node in snapshot(top).items() if ".git" not in path}
    git(top / root, "fsck", "--strict")
    return [git(top / root, *each) for each in questions], files


@pytest.mark.parametrize(
    "command", [*COMMANDS[:2], *(pytest.param(each, marks=pytest.mark.full) for each in COMMANDS[2:])]
)
@pytest.mark.parametrize("root", ROOTS.values(), ids=ROOTS)
def test_regression_git_works_as_outside(tmp_path, make, outside, root, command):
    """Their directory of git was not there, or on another file system."""
    make(tmp_path)
    with Workspace(tmp_path / root, policy=Policy(run="staged")) as ws:
        result = ws.run(command, env=NAMES)
    assert result.exit_status == 0, result.text
    assert "not applied" not in result.text
    assert (result.stdout, outcome(tmp_path, root)) == outside(root, command)


@pytest.mark.parametrize("root", ROOTS.values(), ids=ROOTS)
def test_nothing_but_the_root_and_data_of_git_changes(tmp_path, make, root):
    make(tmp_path)
    before = snapshot(tmp_path)
    with Workspace(tmp_path / root, policy=Policy(run="staged")) as ws:
        command = "top=$(git rev-parse --show-toplevel); common=$(git rev-parse --git-common-dir)"
        result = ws.run(
            f"{command}; cat $top/.env $top/pkg/.npmrc .env $common/config; echo x > $top/new;"
            " echo x > $common/../new; echo x > $common/hooks/post-checkout; echo x >> $common/config;"
            " echo x > new"
        )
        assert SECRET not in result.text
    after = snapshot(tmp_path)
    assert {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)} <= {
        f"{root}/new",
        root,
    }
    assert "hooks/post-checkout" in result.text


def test_a_file_of_the_tree_cannot_name_the_repository_of_another_project(tmp_path, make):
    make(tmp_path)
    put(tmp_path, {"hostile/.git": f"gitdir: {tmp_path}/main/.git\n"})
    for name in (".git", ".git/worktrees/wt"):
        (tmp_path / "hostile/.git").write_text(f"gitdir: {tmp_path}/main/{name}\n")
        with Workspace(tmp_path / "hostile", policy=Policy(run="staged")) as ws:
            assert ws.run("git log").exit_status == 128


def test_a_worktree_that_a_command_adds_works_outside(staged, tree):
    git(tree, "init", "-q", "-b", "main")
    git(tree, "add", "src")
    git(tree, "commit", "-qm", "one")
    result = staged.run("git worktree add -q -b topic wt", env=NAMES)
    assert "not applied" not in result.text
    assert git(tree / "wt", "log", "--format=%s") == "one\n"
    for other in (tree / "../other", tree / ".git/worktrees/../../src", tree / ".git"):
        result = staged.run(f"mkdir new; echo gitdir: {other} > new/.git")
        assert 'not applied: everything in "new/.git"' in result.text
        assert not (tree / "new/.git").exists()
        (tree / "new").rmdir()
