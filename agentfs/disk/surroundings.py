"""The one thing outside of the root that is read: the rule files that git reads for a tree that lies there.

They come from the directories of a repository above the root, from the repository that a worktree belongs to,
and from the user's global excludes. Their content is for matching names only and must never be shown. The
configuration of a repository is not followed, because whoever may write in the tree may write it.
"""

import os
import re
import stat
from dataclasses import dataclass, field

MAX_RULE_BYTES = 4 * 1024 * 1024
_MAX_CONFIG_BYTES = 1024 * 1024
_SECTION = re.compile(r'\s*\[\s*([^\]\s"]+)\s*(?:"[^"]*")?\s*\](.*)')
_EXCLUDES_FILE = re.compile(r"\s*excludesfile\s*=(.*)", re.IGNORECASE)
_VALUE = re.compile(r'"((?:[^"\\]|\\.)*)"|([^"#;]+)')


@dataclass(slots=True)
class Above:
    """The rule files of one directory above the root.

    Attributes:
        below: The path from that directory to the root, with a `/` at its end.
        gitignore: The bytes of its `.gitignore`, or None.
        ignore: The bytes of its `.ignore`, or None.
        exclude: The bytes of `info/exclude` of the repository that begins there, or None.
    """

    below: str
    gitignore: bytes | None = None
    ignore: bytes | None = None
    exclude: bytes | None = None


@dataclass(slots=True)
class Surroundings:
    """What holds in a root from outside.

    Attributes:
        directories: From the top of the repository down to the directory above the root; empty when the root
            lies in no repository, or is the top of one.
        excludes: The bytes of the user's global excludes, or None.
        unreadable: Rule files that are there and could not be read.
    """

    directories: list[Above] = field(default_factory=list[Above])
    excludes: bytes | None = None
    unreadable: int = 0


def surroundings_of(root: str) -> Surroundings:
    """Read the rule files that hold in a root from outside.

    Args:
        root: The absolute path of the root, links resolved.
    """
    found = Surroundings()
    reader = _Reader()
    found.excludes = reader.read(_global_excludes(), follow=True)
    top = _repository_above(root)
    directory = os.path.dirname(root)
    while top is not None:
        below = os.path.relpath(root, directory).replace(os.sep, "/")
        above = Above(f"{below}/")
        above.gitignore = reader.read(os.path.join(directory, ".gitignore"))
        above.ignore = reader.read(os.path.join(directory, ".ignore"))
        found.directories.insert(0, above)
        if directory == top:
            above.exclude = reader.read(_exclude_file(top))
            break
        directory = os.path.dirname(directory)
    found.unreadable = reader.unreadable
    return found


def worktree_exclude(top: str, pointer: bytes) -> bytes | None:
    """Read the `info/exclude` of the repository that a worktree belongs to.

    Args:
        top: The absolute path of the worktree.
        pointer: The content of its `.git` file.

    Returns:
        The bytes; None when there is none, or when the repository does not name this worktree in turn: who
        writes a `.git` file must not be able to choose what is read.
    """
    return _Reader().read(_exclude_of_pointer(top, pointer))


def pointed_at(pointer: bytes) -> str | None:
    """Return the directory that a `.git` file names, or None."""
    text = os.fsdecode(pointer[:8192])
    return text[8:].rstrip("\r\n") or None if text.startswith("gitdir: ") else None


class _Reader:
    def __init__(self) -> None:
        self.unreadable = 0

    def read(self, path: str | None, *, follow: bool = False) -> bytes | None:
        if path is None:
            return None
        try:
            return read_bounded(path, MAX_RULE_BYTES, follow=follow)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, ValueError):
            self.unreadable += 1
            return None


def read_bounded(path: str, limit: int, *, follow: bool) -> bytes:
    """Read a small regular file by path.

    Args:
        path: Its absolute path.
        limit: The most bytes that it may have.
        follow: Whether it may be a link.

    Raises:
        OSError: The system refuses.
        ValueError: It is no regular file, or is too large.
    """
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
    fd = os.open(path, flags | (0 if follow else getattr(os, "O_NOFOLLOW", 0)))
    with os.fdopen(fd, "rb") as opened:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise ValueError("no regular file")
        content = opened.read(limit + 1)
    if len(content) > limit:
        raise ValueError("too large")
    return content


def _small(path: str) -> bytes | None:
    try:
        return read_bounded(path, _MAX_CONFIG_BYTES, follow=True)
    except (OSError, ValueError):
        return None


def _repository_above(root: str) -> str | None:
    """Return the top of the repository that the root lies below; None when it is itself the top of one."""
    if _is_top(root):
        return None
    directory = os.path.dirname(root)
    while not _is_top(directory):
        above = os.path.dirname(directory)
        if above == directory:
            return None
        directory = above
    return directory


def _is_top(directory: str) -> bool:
    git = os.path.join(directory, ".git")
    if os.path.isdir(git):
        return all(os.path.exists(os.path.join(git, name)) for name in ("HEAD", "objects", "refs"))
    return os.path.isfile(git) and pointed_at(_small(git) or b"") is not None


def _exclude_file(top: str) -> str | None:
    git = os.path.join(top, ".git")
    if os.path.isdir(git):
        return os.path.join(git, "info", "exclude")
    return _exclude_of_pointer(top, _small(git) or b"")


def _exclude_of_pointer(top: str, pointer: bytes) -> str | None:
    named = pointed_at(pointer)
    if named is None or "\0" in named:
        return None
    directory = os.path.join(top, named)
    back = _small(os.path.join(directory, "gitdir"))
    if back is None:
        return None
    path = os.path.join(directory, os.fsdecode(back).rstrip("\r\n"))
    if "\0" in path or os.path.realpath(path) != os.path.realpath(os.path.join(top, ".git")):
        return None
    common = os.fsdecode(_small(os.path.join(directory, "commondir")) or b".").rstrip("\r\n")
    return None if "\0" in common else os.path.join(directory, common, "info", "exclude")


def _global_excludes() -> str | None:
    """Return the path of the user's global excludes: what their configuration names, or git's default."""
    environment = os.environ
    home = environment.get("HOME") or os.path.expanduser("~")
    base = os.path.join(environment.get("XDG_CONFIG_HOME") or os.path.join(home, ".config"), "git")
    named = environment.get("GIT_CONFIG_GLOBAL")
    configs = [os.path.join(base, "config"), os.path.join(home, ".gitconfig")] if named is None else [named]
    path: str | None = os.path.join(base, "ignore")
    for config in configs:
        for value in _excludes_values(os.fsdecode(_small(config) or b"")):
            path = os.path.join(home, value[2:]) if value.startswith("~/") else value
            path = path if os.path.isabs(path) and "\0" not in path else None
    return path


def _excludes_values(config: str) -> list[str]:
    """Return the values of `core.excludesFile` in a git configuration; includes are not followed."""
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
