"""Ignore rules from outside the root: those of an enclosing repository, and the user's global excludes.

No other files outside the root are read. Their content is only used to match names and is never displayed.
Git configuration inside the root, or reached through it, is not followed: otherwise a program that writes in
the tree could name any file as a rule file.
"""

import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache

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


class OuterRules:
    """The rule files outside a root that apply to its files."""

    def __init__(self, root: str, excludes: str | None) -> None:
        """Read them; `excludes` is the path of the user's global excludes."""
        self.unreadable = 0
        self.excludes = None if excludes is None else self._read(excludes)
        # For each directory from the top of the repository down: the path from there to the root, ending in
        # `/`, and its `Sources`. Empty if the root is the top, or is not in a repository.
        self.directories: list[tuple[str, tuple[bytes | None, bytes | None, bool, bytes | None]]] = []
        directory, top = root, _repository_above(root)
        while top is not None and directory != top:
            directory = os.path.dirname(directory)
            gitignore, ignore = (self._read(os.path.join(directory, name)) for name in RULE_FILES)
            git = _outside(os.path.join(top, ".git"), (root,)) if directory == top else None
            is_directory = git is not None and os.path.isdir(git)
            exclude = self._read(f"{git}/info/exclude") if is_directory else None
            sources = gitignore, ignore, directory == top, exclude
            self.directories.insert(0, (f"{os.path.relpath(root, directory)}/", sources))

    def _read(self, path: str) -> bytes | None:
        """Return the content of a rule file, or None if it is missing or unreadable."""
        try:
            return _read_bounded(path, follow=False)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, ValueError):
            self.unreadable += 1
            return None


def read_outer_rules(trees: Iterable[OpenTree]) -> dict[str, OuterRules]:
    """Read the rule files outside some trees that apply to their files; return those of each by its path."""
    sources = {tree.path: tree.source for tree in trees}
    excludes = _global_excludes(tuple(sources.values()), *map(os.environ.get, _SETTINGS))
    return {path: OuterRules(source, excludes) for path, source in sources.items()}


def is_git_file(content: bytes) -> bool:
    """Return True if a `.git` file belongs to a worktree or a submodule."""
    named = content[:8192].removeprefix(b"gitdir: ").rstrip(b"\r\n")
    return content.startswith(b"gitdir: ") and named != b"" and b"\0" not in named


def _read_bounded(path: str, *, follow: bool) -> bytes:
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | (0 if follow else os.O_NOFOLLOW)
    with open(path, "rb", opener=lambda name, _: os.open(name, flags)) as opened:
        content = opened.read(MAX_RULE_BYTES + 1) if stat.S_ISREG(os.fstat(opened.fileno()).st_mode) else None
    if content is None or len(content) > MAX_RULE_BYTES:
        raise ValueError("not a regular file, or too large")
    return content


def _repository_above(root: str) -> str | None:
    """Return the top of the repository around the root; None if the root is the top or is not in one."""
    if _is_top(root, follow=False):  # a `.git` link may have been made by any program that writes in the tree
        return None
    while root != (root := os.path.dirname(root)):
        if _is_top(root):
            return root
    return None


def _is_top(directory: str, *, follow: bool = True) -> bool:
    git = os.path.join(directory, ".git")
    try:
        mode = os.stat(git, follow_symlinks=follow).st_mode
    except OSError:
        return False
    if stat.S_ISDIR(mode):
        return all(os.path.lexists(os.path.join(git, name)) for name in REPOSITORY)
    with suppress(OSError, ValueError):
        return is_git_file(_read_bounded(git, follow=follow))
    return False


@lru_cache  # each walk asks; git and the links of the paths are slow
def _global_excludes(trees: tuple[str, ...], *environment: str | None) -> str | None:
    """Return the canonical path of the user's global excludes: `core.excludesFile` or git's default.

    `environment` are the values of `_SETTINGS`.
    """
    git, (home, base, *_) = system_program("git"), environment
    configured = _configured(git) if git is not None and _outside(git, trees) is not None else None
    base = base or os.path.join(home or os.path.expanduser("~"), ".config")
    origin, path = configured or ("", os.path.join(base, "git", "ignore"))
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


def _outside(path: str, trees: Iterable[str]) -> str | None:
    """Return the canonical path of a file; None if the file, or a link to it, lies in one of the trees."""
    inside = any(is_in(place, tree.rstrip("/")) for place in link_chain(path) for tree in trees)
    return None if inside else os.path.realpath(path)
