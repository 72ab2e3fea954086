"""Windows, which opens nothing relative to a directory: names are looked at, then opened by path.

Between the look and the open another process may swap a directory for a link, so that this is no defence
against races; against every path and link that stands still it is.
"""

import errno
import os
import stat

_BINARY = getattr(os, "O_BINARY", 0) | getattr(os, "O_NOINHERIT", 0)
_FILE = os.O_RDONLY | _BINARY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY
# The tags of what redirects a path; others (cloud files, deduplication) stay where they are.
_REDIRECTING = {0xA000000C, 0xA0000003}  # symbolic link, junction


def open_root(path: str) -> str:
    """Return the path of the root when a directory stands there."""
    if not stat.S_ISDIR(os.stat(path).st_mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
    return path


def enter(handle: str, name: str) -> str:
    """Return the path of a directory."""
    if name == ".":
        return handle
    found = _look(handle, name)
    if not stat.S_ISDIR(found.st_mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), name)
    return os.path.join(handle, name)


open_directory = enter


def close(handle: str) -> None:
    """Do nothing: a path holds nothing open."""


def open_beneath(handle: str, path: str, *, directory: bool = False) -> int:  # noqa: ARG001
    """Open nothing: there is no such call here."""
    return -1


def open_file(handle: str, name: str) -> int:
    """Open a file for reading."""
    if stat.S_ISDIR(_look(handle, name).st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
    return os.open(os.path.join(handle, name), _FILE)


def create_file(handle: str, name: str, mode: int) -> int:
    """Create a file."""
    return os.open(os.path.join(handle, name), _CREATE, mode)


def check_writable(handle: str, name: str) -> None:
    """Open the file for writing, and close it again."""
    _look(handle, name)
    os.close(os.open(os.path.join(handle, name), os.O_WRONLY | _BINARY))


def lstat(handle: str, name: str) -> os.stat_result:
    """Return what stands there."""
    return os.lstat(os.path.join(handle, name))


def readlink(handle: str, name: str) -> str:
    """Return the target of a link or junction."""
    return os.readlink(os.path.join(handle, name))


def make_directory(handle: str, name: str) -> None:
    """Make a directory."""
    os.mkdir(os.path.join(handle, name))


def remove_directory(handle: str, name: str) -> None:
    """Remove an empty directory."""
    os.rmdir(os.path.join(handle, name))


def replace(handle: str, source: str, name: str) -> None:
    """Rename within the directory."""
    os.replace(os.path.join(handle, source), os.path.join(handle, name))


def link(handle: str, source: str, name: str) -> None:
    """Link within the directory."""
    os.link(os.path.join(handle, source), os.path.join(handle, name))


def remove(handle: str, name: str) -> None:
    """Remove a name."""
    os.unlink(os.path.join(handle, name))


def _look(handle: str, name: str) -> os.stat_result:
    found = os.lstat(os.path.join(handle, name))
    if stat.S_ISLNK(found.st_mode) or getattr(found, "st_reparse_tag", 0) in _REDIRECTING:
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name)
    return found
