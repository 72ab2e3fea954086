"""Git works as outside, also in a linked worktree, a submodule and a root below its repository.

A staged command changes only data in a directory of git, which is recognised by what it holds. An index of
any version is applied, and a hidden file is not added as empty.
"""

import os
import shlex
import shutil
import subprocess
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from agentfs import Policy, Workspace
from agentfs.errors import ProtectedError
from tests.commands.conftest import NAMES, SECRET, git
from tests.conftest import needs
from tests.history.judges import snapshot
from tests.kit import put, refused

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


@pytest.mark.parametrize("change", [
    "echo x > store/hooks/post-update", "git -C store config core.fsmonitor 'touch owned'",
    "mkdir x; cd x; mkdir objects refs; cp ../store/HEAD ../store/config .; git config core.fsmonitor x",
])  # fmt: skip
def test_regression_a_directory_of_git_has_protected_settings_whatever_its_name(staged, repository, change):
    git(repository, "clone", "-q", "--bare", ".", "store")
    before = snapshot(repository)
    assert refused(lambda: staged.run(change)).code == "protected"
    assert snapshot(repository) == before
    pushed = staged.run(
        "git push -q store main:topic && git clone -q --bare --no-hardlinks store copy", env=NAMES
    )
    assert pushed.exit_status == 0, pushed.text
    assert git(repository / "copy", "branch", "--format=%(refname:short)") == "main\ntopic\n"


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
LOSING += ["for each in $(find .git/objects -type f); do chmod u+w $each; : > $each; done"]
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


def test_a_branch_named_like_the_objects_can_be_deleted(staged, repository):
    git(repository, "branch", "objects/topic")
    assert staged.run("git branch -q -d objects/topic").exit_status == 0
    assert git(repository, "branch", "--format=%(refname:short)") == "main\n"


PYTHON = shlex.quote(sys.executable)  # as a word of a command line


@pytest.fixture(params=["sha1", pytest.param("sha256", marks=pytest.mark.long)])
def indexed(tree, request):
    """Return a function that runs git in a tree with a hidden file among many, some of them empty."""
    for number in range(60):  # a tree that a pack holds as a change of another, with copied parts
        (tree / f"conf/some-configuration-{number}").write_text("" if number % 9 == 0 else f"{number}\n")
    (tree / "conf/server.conf").write_text("x\n")  # version 4 leaves out what the next path begins with too
    git(tree, "init", "-q", f"--object-format={request.param}")
    git(tree, "add", "-f", ".")
    git(tree, "commit", "-qm", "first")
    return partial(git, tree)


@pytest.mark.parametrize("command", [
    "git gc -q && git gc -q --prune=now",
    "git update-index --index-version 4 && git gc -q",
    "echo more >> conf/server.conf; git commit -qm more -- conf/server.conf && git gc -q",
    "touch conf/empty; git add conf/empty && git update-index --index-version 4",
    "git repack -q -a && git pack-refs --all",
])  # fmt: skip
def test_maintenance_is_applied(staged, tree, indexed, command):
    result = staged.run(command, env=NAMES)
    assert result.exit_status == 0, result.text
    assert result.changes.lost == (".git",)
    indexed("fsck", "--strict")
    assert "conf/server.key" not in indexed("status", "--short")
    assert indexed("show", "HEAD:conf/server.key") == SECRET


@pytest.mark.parametrize("path", ["conf/some-configuration-7", "conf/server.key"])
@pytest.mark.parametrize(
    "command",
    [
        "git update-index --index-version 2; git add -f {}",
        "git update-index --index-version 4; git add -f {}",
        "echo x > new; git add -N new; git add -f {}",  # version 3
    ],
    ids=["version 2", "version 4", "version 3"],
)
def test_a_hidden_file_is_not_added_as_empty(staged, tree, indexed, command, path):
    os.utime(tree / path, (2_000_000_000, 2_000_000_000))  # then git compares contents
    before = snapshot(tree)
    command = f"echo more >> conf/some-configuration-7; {command.format(path)}"
    assert staged.run(command, env=NAMES).exit_status == 0
    changed = {each for each, now in snapshot(tree).items() if before.get(each) != now and ".git" not in each}
    assert changed - {"new"} == {"conf/some-configuration-7"}
    assert indexed("show", ":conf/server.key") == SECRET


def test_an_index_that_git_cannot_read_is_applied(staged, tree, indexed):
    assert staged.run("head -c 100 .git/index > x; cat x > .git/index; rm x").exit_status == 0
