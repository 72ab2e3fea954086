"""Windows, which opens nothing relative to a directory: names are looked at, then opened by path.

Between the look and the open another process may swap a directory for a link. What was opened is therefore
asked for its own path before a byte is read or written. A listing is not; an empty file may be made outside,
and what is removed or renamed may be a file of that name there.
"""

import errno
import os
import stat
import sys
from typing import Literal

_BINARY = getattr(os, "O_BINARY", 0) | getattr(os, "O_NOINHERIT", 0)
_FILE = os.O_RDONLY | _BINARY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY
# The tags of what redirects a path; others (cloud files, deduplication) stay where they are.
_REDIRECTING = {0xA000000C, 0xA0000003}  # symbolic link, junction


class _Place(str):
    """The path of a directory, which knows the root that it lies in."""

    __slots__ = ("root",)

    root: str

    @classmethod
    def of(cls, path: str, root: str) -> "_Place":
        """Return a path in a root."""
        place = cls(path)
        place.root = root
        return place


def open_root(path: str) -> str:
    """Return the path of the root when a directory stands there."""
    if not stat.S_ISDIR(os.stat(path).st_mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
    return _Place.of(path, path)


def mechanism(handle: str) -> Literal["verify-after-open"]:  # noqa: ARG001 - as the other backends have it
    """Name the one mechanism there is."""
    return "verify-after-open"


def enter(handle: str, name: str) -> str:
    """Return the path of a directory."""
    if name == ".":
        return handle
    found = _look(handle, name)
    if not stat.S_ISDIR(found.st_mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), name)
    return _Place.of(os.path.join(handle, name), getattr(handle, "root", ""))


open_directory = enter


def close(handle: str) -> None:
    """Do nothing: a path holds nothing open."""


def open_beneath(handle: str, path: str, *, directory: bool = False) -> int:  # noqa: ARG001 - as above
    """Open nothing: there is no such call here."""
    return -1


def open_file(handle: str, name: str) -> int:
    """Open a file for reading."""
    if stat.S_ISDIR(_look(handle, name).st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
    return _verified(os.open(os.path.join(handle, name), _FILE), handle)


def names_refused(handle: str) -> int:
    """Return the errno with which a new name in the directory would be refused; 0 where it would not."""
    return 0 if os.access(handle, os.W_OK | os.X_OK) else errno.EACCES


def create_file(handle: str, name: str, mode: int) -> int:
    """Create a file."""
    return _verified(os.open(os.path.join(handle, name), _CREATE, mode), handle)


def check_writable(handle: str, name: str) -> None:
    """Open the file for writing, and close it again."""
    os.close(open_writing(handle, name))


def open_writing(handle: str, name: str) -> int:
    """Open a file that is there for writing."""
    _look(handle, name)
    return _verified(os.open(os.path.join(handle, name), os.O_WRONLY | _BINARY), handle)


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


def place(handle: str, source: str, name: str) -> None:
    """Rename within the directory, over nothing."""
    if sys.platform == "win32":  # where a rename replaces nothing
        os.rename(os.path.join(handle, source), os.path.join(handle, name))
        return
    os.link(os.path.join(handle, source), os.path.join(handle, name))
    os.unlink(os.path.join(handle, source))


def remove(handle: str, name: str) -> None:
    """Remove a name."""
    os.unlink(os.path.join(handle, name))


def rename(handle: str, source: str, to: str, name: str) -> None:
    """Rename into another directory."""
    os.replace(os.path.join(handle, source), os.path.join(to, name))


def link_into(handle: str, source: str, to: str, name: str) -> None:
    """Link into another directory."""
    os.link(os.path.join(handle, source), os.path.join(to, name), follow_symlinks=False)


def symlink(handle: str, target: str, name: str) -> None:
    """Make a link."""
    os.symlink(target, os.path.join(handle, name))


def set_mode(handle: str, name: str, mode: int) -> None:
    """Set the permissions of a file or directory."""
    _look(handle, name)
    os.chmod(os.path.join(handle, name), mode)


def _verified(fd: int, handle: str) -> int:
    """Return a descriptor if what it is on lies in the root, by whatever way it was come to."""
    final = _final_path(fd)
    root = os.path.normcase(getattr(handle, "root", "")).rstrip("\\/") + os.sep
    if final is not None and not os.path.normcase(final).startswith(root):
        os.close(fd)
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), handle)
    return fd


def _final_path(fd: int) -> str | None:
    """Return the path of what is open, links resolved, as the system tells it; None where it does not."""
    if sys.platform == "win32":
        import ctypes  # noqa: PLC0415 - a third of the time of an import
        import msvcrt  # noqa: PLC0415 - Windows only

        buffer = ctypes.create_unicode_buffer(32768)
        handle = ctypes.c_void_p(msvcrt.get_osfhandle(fd))
        length = ctypes.windll.kernel32.GetFinalPathNameByHandleW(handle, buffer, len(buffer), 0)
        final = buffer.value if 0 < length < len(buffer) else "?"
        return final.replace("\\\\?\\UNC\\", "\\\\", 1).removeprefix("\\\\?\\")
    try:  # where another system stands in for Windows, as the tests do on Linux
        return os.readlink(f"/proc/self/fd/{fd}")
    except OSError:
        return None


def _look(handle: str, name: str) -> os.stat_result:
    found = os.lstat(os.path.join(handle, name))
    if stat.S_ISLNK(found.st_mode) or getattr(found, "st_reparse_tag", 0) in _REDIRECTING:
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name)
    return found
