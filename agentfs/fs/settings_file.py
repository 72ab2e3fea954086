"""Files of the user that no workspace should change: a policy, a token, git's configuration."""

import errno
import os
import stat
from collections.abc import Container, Iterator

from agentfs.errors import FileIOError, InvalidArgumentError
from agentfs.fs.path import quote

_MAX_BYTES = 1024 * 1024
_MAX_LINKS = 40


def read_settings(path: str | os.PathLike[str]) -> bytes:
    """Return the content of a file of at most 1 MiB."""
    try:
        with open(path, "rb") as file:
            data = file.read(_MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from None
    if len(data) > _MAX_BYTES:
        raise InvalidArgumentError(f"{quote(os.fspath(path))} is over {_MAX_BYTES:,} bytes.")
    return data


def places_inside(root: str | os.PathLike[str], path: str | os.PathLike[str]) -> list[str]:
    """Return the places in a directory, relative to it, that decide what a path leads to.

    These are the file, and every link on the way to it. Raises `io` if there is no such file.
    """
    found: list[str] = []
    top: str | None = None
    try:
        directory = os.stat(root)
    except OSError:
        return []  # nothing is in it
    try:
        for here, status in _steps_to(os.fspath(path)):
            if os.path.samestat(status, directory):
                top = here
            elif not stat.S_ISDIR(status.st_mode) and top and os.path.commonpath([top, here]) == top:
                found.append(os.path.relpath(here, top))
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from None
    return found


def resolve_outside(path: str, tops: Container[tuple[int, int]]) -> str | None:
    """Return a path with its links resolved; None if it does not exist or goes through one of the trees.

    `tops` has the device and inode of the top of each tree.
    """
    resolved = ""
    try:
        for here, status in _steps_to(path):
            if (status.st_dev, status.st_ino) in tops:
                return None
            resolved = here
    except (FileNotFoundError, NotADirectoryError, ValueError):  # ValueError: a NUL in the path
        return None
    return resolved


def _steps_to(path: str) -> Iterator[tuple[str, os.stat_result]]:
    """Yield each directory and link on the way to a file, and the file: its real path and its status.

    Raises OSError if one of them does not exist, or at a circle of links, and ValueError for a NUL.
    """
    names: list[str] = []
    pending = (path if path.startswith("/") else os.path.join(os.getcwd(), path)).split("/")[::-1]
    links = 0
    yield "/", os.lstat("/")
    while pending:
        name = pending.pop()
        if name in {"", "."}:
            continue
        found = names[:-1] if name == ".." else [*names, name]
        here = f"/{'/'.join(found)}"
        status = os.lstat(here)
        yield here, status
        if not stat.S_ISLNK(status.st_mode):
            names = found
            continue
        links += 1
        if links > _MAX_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
        target = os.readlink(here)
        names = [] if target.startswith("/") else names
        pending += target.split("/")[::-1]


def _unreadable(path: str | os.PathLike[str], error: OSError | ValueError) -> FileIOError:
    reason = getattr(error, "strerror", None) or str(error)  # ValueError: a NUL in the path
    return FileIOError(f"{quote(os.fspath(path))} cannot be read: {reason}.")
