"""A staged command changes only data in a directory of git, which is recognised by what it holds."""

import os
import subprocess
from contextlib import suppress

import pytest

from agentfs.errors import ProtectedError
from tests.commands.conftest import NAMES, git, snapshot
from tests.conftest import needs

pytestmark = needs("git")

REFUSED = 'everything in ".git", because a command may not change'


@pytest.fixture
def repository(tree):
    git(tree, "init", "-q", "-b", "main")
    git(tree, "add", "src")
    git(tree, "commit", "-qm", "one")
    return tree


@pytest.mark.parametrize("name", ["info", "logs", "objects", "refs", "lfs"])
def test_regression_a_submodule_has_protected_hooks_whatever_its_name(staged, repository, tmp_path, name):
    library = tmp_path / "library"
    library.mkdir()
    git(library, "init", "-q")
    git(library, "commit", "-q", "--allow-empty", "-m", "one")
    git(repository, "submodule", "--quiet", "add", str(library), f"libs/{name}")
    hook = f".git/modules/libs/{name}/hooks/post-checkout"
    proof = tmp_path / "ran"
    plant = f"printf '#!/bin/sh\\ntouch {proof}\\n' > {hook}; chmod +x {hook}"
    assert (
        f'not applied: everything in ".git", because a command may not change: "{hook}"'
        in staged.run(plant).text
    )
    git(repository / "libs" / name, "checkout", "-q", "-b", "other")
    assert not proof.exists()
    subprocess.run(plant, shell=True, cwd=repository, check=True)
    git(repository / "libs" / name, "checkout", "-q", "-b", "another")
    assert proof.exists(), "the naive way runs it"


@pytest.mark.parametrize("name", ["COMMIT_EDITMSG", "logs/HEAD", "refs/heads/main", "index", "ORIG_HEAD"])
def test_regression_links_in_a_git_directory_are_refused(staged, repository, tmp_path, name):
    """Git writes through a link: the next commit would put its message into the user's file."""
    mine = tmp_path / "bashrc"
    mine.write_text("# mine\n")
    assert f'because a command may not change: ".git/{name}"' in staged.run(f"ln -sf {mine} .git/{name}").text
    (repository / "src" / "new").write_text("new")
    git(repository, "add", "src")
    git(repository, "commit", "-qm", "touch owned")
    assert mine.read_text() == "# mine\n"


LOSING = [
    "rm -rf .git/objects .git/refs .git/logs", "rm -rf .git/refs", "rm -rf .git/objects", "rm -f .git/HEAD",
]  # fmt: skip
LOSING += ["find .git/objects -type f -delete", "rm -rf .git", "mv .git/objects .git/other"]


@pytest.mark.parametrize("command", LOSING)
def test_regression_no_command_loses_a_commit(staged, repository, command):
    commit = git(repository, "rev-parse", "HEAD")
    with suppress(ProtectedError):  # what only removes objects is applied without that
        staged.run(command)
    assert git(repository, "rev-parse", "HEAD") == commit
    git(repository, "fsck", "--strict")
    assert git(repository, "show", "--format=%s", "--no-patch") == "one\n"


@pytest.mark.parametrize(
    "path", ["objects/info/alternates", "info/attributes", "rebase-merge/git-rebase-todo", "config.worktree"]
)
def test_what_git_obeys_is_not_written(staged, repository, path):
    full = f".git/{path}"
    before = snapshot(repository)
    command = (
        f"mkdir -p {os.path.dirname(full)}; echo x > {full}; git commit -q --allow-empty -m two; echo x > new"
    )
    result = staged.run(command, env=NAMES)
    assert f"not applied: {REFUSED}: " in result.text
    after = snapshot(repository)
    assert after.pop("new")
    assert after == before


@pytest.mark.parametrize("command", ["rm -rf lib", "rm -rf lib; echo > lib", "mv lib other"])
def test_a_repository_below_is_not_removed_with_its_directory(staged, repository, command):
    git(repository, "init", "-q", "lib")
    git(repository / "lib", "commit", "-q", "--allow-empty", "-m", "one")
    (repository / "lib/a").write_text("1")
    result = staged.run(f"{command}; echo x > new")
    assert 'not applied: everything in "lib/.git", because' in result.text
    assert git(repository / "lib", "log", "--format=%s") == "one\n"
    assert (repository / "new").exists()
    assert not (repository / "lib/a").exists()


@pytest.mark.parametrize("command", [
    "git checkout -q -b topic && echo 2 > src/two && git add src && git commit -qm two",
    "echo 2 > src/main.py; git stash -q; git tag v1; git branch other && git branch -q -d other",
    "git checkout -qb a; git commit -qm a --allow-empty; git checkout -q main; git merge -q -m m a",
    "git gc -q && git gc -q --prune=now", "git pack-refs --all && git repack -qad",
    "echo 2 > src/new; git add src; git commit -qm b; git revert --no-edit HEAD && git reset -q HEAD~1",
    "git worktree add -q wt && git worktree remove wt",
])  # fmt: skip
def test_daily_work_with_git_has_the_same_outcome_as_outside(staged, repository, tmp_path, command):
    other = tmp_path / "other"
    subprocess.run(["cp", "-a", repository, other], check=True)
    result = staged.run(command, env=NAMES)
    assert result.exit_status == 0, result.text
    given = {"cwd": other, "env": os.environ | NAMES, "capture_output": True}
    subprocess.run(["bash", "-c", command], check=True, **given)
    for arguments in (["for-each-ref"], ["status", "--short"], ["log", "--all", "--format=%H"], ["fsck"]):
        assert git(repository, *arguments) == git(other, *arguments)


def test_a_branch_named_like_the_objects_can_be_deleted(staged, repository):
    git(repository, "branch", "objects/topic")
    assert staged.run("git branch -q -d objects/topic").exit_status == 0
    assert git(repository, "branch", "--format=%(refname:short)") == "main\n"
