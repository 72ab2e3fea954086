"""The repository of a root whose directory of git lies outside: a linked worktree, or a part of one."""

import os
from copy import copy
from typing import NamedTuple

from agentfs.commands.system import contents, from_git
from agentfs.fs import Root
from agentfs.fs.path import is_in
from agentfs.fs.trees import OpenTree, open_top

_QUESTIONS = ("--show-toplevel", "--absolute-git-dir", "--git-common-dir")


class Repository(NamedTuple):
    """The places of a repository.

    Attributes:
        top: The top of its work tree, which is or contains the root.
        git: Its directory of git, which all its worktrees share.
        index_path: The index of the work tree, below `git`.
    """

    top: str
    git: str
    index_path: str = "index"


def repository_of(root: str) -> Repository:
    """Return the repository of a root, as git names it; what lies in the root if that is none of it."""
    own = Repository(root, os.path.join(root, ".git"))
    top: str = root
    while not os.path.lexists(os.path.join(top, ".git")) and top != "/":
        top = os.path.dirname(top)
    home = os.path.realpath(os.environ.get("HOME", "/"))
    if top == "/" or is_in(home, top) or os.path.isdir(own.git):
        return own
    answer = from_git(home, "-C", root, "rev-parse", "--path-format=absolute", *_QUESTIONS)
    found = [os.path.realpath(os.fsdecode(each)) for each in answer.split(b"\n")[:-1]]
    if len(found) != len(_QUESTIONS) or found[0] != top:
        return own
    _, directory, common = found
    back = os.fsdecode(contents(os.path.join(directory, "gitdir")).strip())
    is_linked = os.path.realpath(back) == os.path.join(top, ".git")
    # A file `.git` of the tree could name the repository of another project.
    is_above = is_in(top, common.partition("/.git")[0])
    if is_in(common, root) or not (is_linked or is_above):
        return own
    return Repository(top, common, os.path.relpath(os.path.join(directory, "index"), common))


def with_git(root: Root, repository: Repository) -> Root:
    """Return a view of the root in which `.git` is the directory of git, wherever that lies."""
    if is_in(repository.git, root.path):
        return root
    trees = copy(root.trees)
    handle = open_top(repository.git, "The directory of git", "")
    trees.others = {**trees.others, ".git": OpenTree(".git", repository.git, handle)}
    return root.view(trees=trees)
