"""The one thing outside of the root that is read: the rule files that git reads for a tree that lies there.

They come from the directories of a repository above the root, from the repository that a worktree belongs to,
and from the user's global excludes. Their content is for matching names only and must never be shown. The
configuration of a repository is not followed, because whoever may write in the tree may write it.
"""

import errno
import os
import re
import stat
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field

from agentfs.fs import syscalls

MAX_RULE_BYTES = 1024 * 1024
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
class OuterRules:
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


def read_outer_rules(root: str) -> OuterRules:
    """Read the rule files that hold in a root from outside."""
    found = OuterRules()
    reader = _Reader()
    found.excludes = reader.read(_global_excludes(), follow=True)
    top = _repository_above(root)
    directory = os.path.dirname(root)
    while top is not None:
        below = os.path.relpath(root, directory)
        above = Above(f"{below}/")
        above.gitignore = reader.read(os.path.join(directory, ".gitignore"))
        above.ignore = reader.read(os.path.join(directory, ".ignore"))
        found.directories.insert(0, above)
        if directory == top:
            above.exclude = _exclude_of(top, root, reader)
            break
        directory = os.path.dirname(directory)
    found.unreadable = reader.unreadable
    return found


def worktree_exclude(root: str, top: str, named: str) -> bytes | None:
    """Read the `info/exclude` of the repository outside of a root that a worktree belongs to.

    Args:
        root: The absolute path of the root, links resolved.
        top: The absolute path of the worktree, links resolved.
        named: The directory that its `.git` file names, as `git_directory` returns it.

    Returns:
        The bytes; None when there is none, when a link is on the way, or when the directory lies in the root
        or does not name this worktree in turn: whoever writes in the tree must not be able to choose what is
        read.
    """
    try:
        with _opened(named, root) as handle:
            back = os.path.join(named, _name_in(handle, "gitdir"))
            if os.path.realpath(back) != os.path.join(top, ".git"):
                return None
            try:
                common = _name_in(handle, "commondir")
            except FileNotFoundError:
                common = "."
        info = os.path.normpath(os.path.join(named, common, "info"))
        with _opened(info, root) as handle:
            return _content(syscalls.open_file(handle, "exclude"), MAX_RULE_BYTES)
    except (OSError, ValueError):
        return None


def git_directory(top: str, pointer: bytes) -> str | None:
    """Return the absolute path that a `.git` file names, without `..`; None where it names none."""
    text = os.fsdecode(pointer[:8192])
    named = text[8:].rstrip("\r\n") if text.startswith("gitdir: ") else ""
    return os.path.normpath(os.path.join(top, named)) if named and "\0" not in named else None


@contextmanager
def _opened(path: str, root: str) -> Generator[int]:
    """Open a directory outside of a root; OSError for one inside, and for a link on the way."""
    here = os.stat(root)
    handle = syscalls.open_root("/")
    try:
        for name in filter(None, path.split("/")):
            above, handle = handle, syscalls.enter(handle, name)
            syscalls.close(above)
            # The root may have other names: those of a second mount, or in other case.
            if os.path.samestat(syscalls.lstat(handle, "."), here):
                raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), path)
        yield handle
    finally:
        syscalls.close(handle)


def _name_in(handle: int, name: str) -> str:
    return os.fsdecode(_content(syscalls.open_file(handle, name), _MAX_CONFIG_BYTES)).rstrip("\r\n")


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
    """Read a small regular file by path."""
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | (0 if follow else os.O_NOFOLLOW)
    return _content(os.open(path, flags), limit)


def _content(fd: int, limit: int) -> bytes:
    """Return the content of a small regular file, which is closed."""
    with os.fdopen(fd, "rb") as opened:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise ValueError("no regular file")
        content = opened.read(limit + 1)
    if len(content) > limit:
        raise ValueError("too large")
    return content


def _small(path: str, *, follow: bool = True) -> bytes | None:
    try:
        return read_bounded(path, _MAX_CONFIG_BYTES, follow=follow)
    except (OSError, ValueError):
        return None


def _repository_above(root: str) -> str | None:
    """Return the top of the repository that the root lies below; None when it is itself the top of one."""
    if _is_top(root, follow=False):  # whoever writes in the tree may have put the link there
        return None
    directory = os.path.dirname(root)
    while not _is_top(directory):
        above = os.path.dirname(directory)
        if above == directory:
            return None
        directory = above
    return directory


def _exclude_of(top: str, root: str, reader: "_Reader") -> bytes | None:
    """Return the `info/exclude` of the repository that begins in a directory above the root."""
    git = os.path.join(top, ".git")
    if os.path.isdir(git):
        return reader.read(os.path.join(git, "info", "exclude"))
    named = git_directory(top, _small(git) or b"")
    return None if named is None else worktree_exclude(root, top, named)


def _is_top(directory: str, *, follow: bool = True) -> bool:
    git = os.path.join(directory, ".git")
    try:
        mode = os.stat(git, follow_symlinks=follow).st_mode
    except OSError:
        return False
    if stat.S_ISDIR(mode):
        return all(os.path.lexists(os.path.join(git, name)) for name in ("HEAD", "objects", "refs"))
    return git_directory(directory, _small(git, follow=follow) or b"") is not None


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
