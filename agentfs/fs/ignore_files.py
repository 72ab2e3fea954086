"""Ignore rules from outside the root: those of an enclosing repository, and the user's global excludes.

No other files outside the root are read. Their content is only used to match names and is never displayed.
Git configuration inside the root, or reached through it, is not followed: otherwise a program that writes in
the tree could name any file as a rule file.
"""

import os
import stat
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache

from agentfs.base.lazy import subprocess
from agentfs.fs.path import is_in
from agentfs.fs.settings_file import link_chain, system_program
from agentfs.fs.trees import OpenTree

RULE_FILES = (".gitignore", ".ignore")
REPOSITORY = ("HEAD", "objects", "refs")  # names in the `.git` of each repository
MAX_RULE_BYTES = 64 * 1024
_MOST_SECONDS = 2.0  # how long git may take to read its configuration
# The variables that decide where git finds the user's configuration, and what it holds.
_SETTINGS = (
    *("HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM"),
    *("GIT_CONFIG_PARAMETERS", "GIT_CONFIG_COUNT", "GIT_CONFIG_KEY_0", "GIT_CONFIG_VALUE_0"),
)


@dataclass(slots=True)
class Above:
    """The rule files of one directory above the root."""

    below: str  # the path from the directory to the root, ending in `/`
    gitignore: bytes | None = None
    ignore: bytes | None = None
    exclude: bytes | None = None  # `info/exclude`, if the directory is the top of the repository


@dataclass(slots=True)
class OuterRules:
    """The rule files outside a root that apply to its files."""

    # From the top of the repository down; empty if the root is the top, or is not in a repository.
    directories: list[Above] = field(default_factory=list[Above])
    excludes: bytes | None = None  # the user's global excludes
    unreadable: int = 0

    def read(self, path: str) -> bytes | None:
        """Return the content of a rule file, or None if it is missing or unreadable."""
        try:
            return _read_bounded(path, MAX_RULE_BYTES, follow=False)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, ValueError):
            self.unreadable += 1
            return None


def read_outer_rules(trees: Iterable[OpenTree]) -> dict[str, OuterRules]:
    """Read the rule files outside some trees that apply to their files; return those of each by its path."""
    shared, trees = OuterRules(), [*trees]
    sources = tuple(tree.source for tree in trees)
    excludes = _global_excludes(sources)
    shared.excludes = None if excludes is None else shared.read(excludes)
    is_top = cache(_is_top)  # most trees lie side by side
    return {tree.path: _with_those_above(tree, replace(shared, directories=[]), is_top) for tree in trees}


def _with_those_above(tree: OpenTree, rules: OuterRules, is_top: Callable[[str], bool]) -> OuterRules:
    """Add the rule files of the repository around a tree."""
    root = tree.source
    top = _repository_above(root, is_top)
    directory = root
    while top is not None and directory != top:
        directory = os.path.dirname(directory)
        above = Above(f"{os.path.relpath(root, directory)}/")
        above.gitignore = rules.read(os.path.join(directory, ".gitignore"))
        above.ignore = rules.read(os.path.join(directory, ".ignore"))
        rules.directories.insert(0, above)
    if top is not None:
        git = _outside(os.path.join(top, ".git"), (root,))
        if git is not None and os.path.isdir(git):
            rules.directories[0].exclude = rules.read(os.path.join(git, "info", "exclude"))
    return rules


def is_git_file(content: bytes) -> bool:
    """Return True if a `.git` file belongs to a worktree or a submodule."""
    named = content[:8192].removeprefix(b"gitdir: ").rstrip(b"\r\n")
    return content.startswith(b"gitdir: ") and named != b"" and b"\0" not in named


def _read_bounded(path: str, limit: int, *, follow: bool) -> bytes:
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | (0 if follow else os.O_NOFOLLOW)
    with open(path, "rb", opener=lambda name, _: os.open(name, flags)) as opened:
        if not stat.S_ISREG(os.fstat(opened.fileno()).st_mode):
            raise ValueError("not a regular file")
        content = opened.read(limit + 1)
    if len(content) > limit:
        raise ValueError("too large")
    return content


def _repository_above(root: str, is_top: Callable[[str], bool]) -> str | None:
    """Return the top of the repository around the root; None if the root is the top or is not in one."""
    if _is_top(root, follow=False):  # a `.git` link may have been made by any program that writes in the tree
        return None
    directory = os.path.dirname(root)
    while not is_top(directory):
        parent = os.path.dirname(directory)
        if parent == directory:
            return None
        directory = parent
    return directory


def _is_top(directory: str, *, follow: bool = True) -> bool:
    git = os.path.join(directory, ".git")
    try:
        mode = os.stat(git, follow_symlinks=follow).st_mode
    except OSError:
        return False
    if stat.S_ISDIR(mode):
        return all(os.path.lexists(os.path.join(git, name)) for name in REPOSITORY)
    with suppress(OSError, ValueError):
        return is_git_file(_read_bounded(git, MAX_RULE_BYTES, follow=follow))
    return False


def _global_excludes(trees: tuple[str, ...]) -> str | None:
    """Return the canonical path of the user's global excludes: `core.excludesFile` or git's default."""
    values = {name: value for name in _SETTINGS if (value := os.environ.get(name)) is not None}
    home = values.get("HOME") or os.path.expanduser("~")
    base = os.path.join(values.get("XDG_CONFIG_HOME") or os.path.join(home, ".config"), "git")
    named = values.get("GIT_CONFIG_GLOBAL")
    configs = [os.path.join(base, "config"), os.path.join(home, ".gitconfig")] if named is None else [named]
    return _find_excludes(trees, base, tuple(values.items()), tuple(map(_times, configs)))


@lru_cache  # each walk asks; git and the links of the paths are slow
def _find_excludes(trees: tuple[str, ...], base: str, _values: object, _times: object) -> str | None:
    """Find the excludes file; the values and times are those that the answer depends on."""
    git, origin, path = system_program("git"), "", os.path.join(base, "ignore")
    if git is not None and _outside(git, trees) is not None:
        origin, path = _configured(git) or ("", path)
    if not os.path.isabs(path) or (origin and _outside(origin, trees) is None):
        return None
    return _outside(path, trees)


def _configured(git: str) -> tuple[str, str] | None:
    """Ask git for `core.excludesFile` outside any repository; return the file that sets it, and the value."""
    command = [git, "config", "--show-origin", "--null", "--type=path", "--get", "core.excludesFile"]
    environment = {**os.environ, "GIT_DIR": os.devnull}
    try:
        answer = subprocess.run(
            command, cwd="/", env=environment, capture_output=True, check=True, timeout=_MOST_SECONDS
        )
    except (OSError, subprocess.SubprocessError):
        return None
    origin, value, _ = os.fsdecode(answer.stdout).split("\0")
    return origin.removeprefix("file:") if origin.startswith("file:") else "", value


def _times(path: str) -> tuple[int, int]:
    with suppress(OSError):
        status = os.stat(path)
        return status.st_mtime_ns, status.st_size
    return 0, 0


def _outside(path: str, trees: Iterable[str]) -> str | None:
    """Return the canonical path of a file; None if the file, or a link to it, lies in one of the trees."""
    inside = any(is_in(place, tree.rstrip("/")) for place in link_chain(path) for tree in trees)
    return None if inside else os.path.realpath(path)
