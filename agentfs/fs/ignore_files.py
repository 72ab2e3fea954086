"""Ignore rules from outside the root: those of an enclosing repository, and the user's global excludes.

No other files outside the root are read. Their content is only used to match names and is never displayed.
Git configuration inside the root, or reached through it, is not followed: otherwise a program that writes in
the tree could name any file as a rule file.
"""

import os
import re
import stat
from collections.abc import Callable, Container, Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache

from agentfs.fs.settings_file import resolve_outside
from agentfs.fs.trees import OpenTree

RULE_FILES = (".gitignore", ".ignore")
REPOSITORY = ("HEAD", "objects", "refs")  # names in the `.git` of each repository
MAX_RULE_BYTES = 1024 * 1024
_MAX_CONFIG_BYTES = 1024 * 1024
_SECTION = re.compile(r'\s*\[\s*([^\]\s"]+)\s*(?:"[^"]*")?\s*\](.*)')
_EXCLUDES_FILE = re.compile(r"\s*excludesfile\s*=(.*)", re.IGNORECASE)
_VALUE = re.compile(r'"((?:[^"\\]|\\.)*)"|([^"#;]+)')


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
    try:
        excludes = _global_excludes(_tops(trees))
    except OSError:
        shared.unreadable += 1
    else:
        shared.excludes = None if excludes is None else shared.read(excludes)
    is_top = cache(_is_top)  # most trees lie side by side
    return {tree.path: _with_those_above(tree, replace(shared, directories=[]), is_top) for tree in trees}


def _tops(trees: Iterable[OpenTree]) -> set[tuple[int, int]]:
    """Return the device and inode of the top of each tree; a mounted file may be gone. Raises OSError."""
    found: set[tuple[int, int]] = set()
    for tree in trees:
        with suppress(FileNotFoundError):
            status = tree.status()
            found.add((status.st_dev, status.st_ino))
    return found


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
        git: str | None = None
        with suppress(OSError):
            git = resolve_outside(os.path.join(top, ".git"), _tops([tree]))
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


def _config(path: str, *, follow: bool = True) -> bytes | None:
    try:
        return _read_bounded(path, _MAX_CONFIG_BYTES, follow=follow)
    except (OSError, ValueError):
        return None


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
    return is_git_file(_config(git, follow=follow) or b"")


def _global_excludes(tops: Container[tuple[int, int]]) -> str | None:
    """Return the path of the user's global excludes: `core.excludesFile` or git's default."""
    environment = os.environ
    home = environment.get("HOME") or os.path.expanduser("~")
    base = os.path.join(environment.get("XDG_CONFIG_HOME") or os.path.join(home, ".config"), "git")
    named = environment.get("GIT_CONFIG_GLOBAL")
    configs = [os.path.join(base, "config"), os.path.join(home, ".gitconfig")] if named is None else [named]
    path: str | None = os.path.join(base, "ignore")
    for config in filter(None, (_if_outside(config, tops) for config in configs)):
        for value in _excludes_values(os.fsdecode(_config(config, follow=False) or b"")):
            path = os.path.join(home, value[2:]) if value.startswith("~/") else value
            path = path if os.path.isabs(path) else None
    return path and resolve_outside(path, tops)


def _if_outside(path: str, tops: Container[tuple[int, int]]) -> str | None:
    try:
        return resolve_outside(path, tops)
    except OSError:
        return None


def _excludes_values(config: str) -> list[str]:
    """Return the values of `core.excludesFile`; includes are not followed."""
    values: list[str] = []
    section = ""
    for line in config.split("\n"):
        rest = line
        if opening := _SECTION.match(line):
            section, rest = opening[1].lower(), opening[2]
        if section == "core" and (assigned := _EXCLUDES_FILE.match(rest)):
            values.append(_value(assigned[1]))
    return values


def _value(text: str) -> str:
    pieces: list[str] = []
    at = 0
    text = text.strip()
    while found := _VALUE.match(text, at):
        pieces.append(re.sub(r"\\(.)", r"\1", found[1]) if found[1] is not None else found[2])
        at = found.end()
    return "".join(pieces).rstrip()
