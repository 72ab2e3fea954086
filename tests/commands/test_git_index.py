"""Indexes of every version: maintenance is applied, and a hidden file is not added as empty."""

import os
import shlex
import sys
from functools import partial

import pytest

from tests.commands.conftest import NAMES, SECRET, git, snapshot
from tests.conftest import needs

PYTHON = shlex.quote(sys.executable)  # as a word of a command line


pytestmark = needs("git")


@pytest.fixture(params=["sha1", pytest.param("sha256", marks=pytest.mark.long)])
def repository(tree, request):
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
def test_maintenance_is_applied(staged, tree, repository, command):
    result = staged.run(command, env=NAMES)
    assert result.exit_status == 0, result.text
    assert result.changes.lost == (".git",)
    repository("fsck", "--strict")
    assert "conf/server.key" not in repository("status", "--short")
    assert repository("show", "HEAD:conf/server.key") == SECRET


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
def test_a_hidden_file_is_not_added_as_empty(staged, tree, repository, command, path):
    os.utime(tree / path, (2_000_000_000, 2_000_000_000))  # then git compares contents
    before = snapshot(tree)
    command = f"echo more >> conf/some-configuration-7; {command.format(path)}"
    assert staged.run(command, env=NAMES).exit_status == 0
    changed = {each for each, now in snapshot(tree).items() if before.get(each) != now and ".git" not in each}
    assert changed - {"new"} == {"conf/some-configuration-7"}
    assert repository("show", ":conf/server.key") == SECRET


def test_an_index_that_git_cannot_read_is_applied(staged, tree, repository):
    assert staged.run("head -c 100 .git/index > x; cat x > .git/index; rm x").exit_status == 0
