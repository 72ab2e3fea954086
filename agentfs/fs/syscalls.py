"""System calls on a name in an open directory. None of them follows a link at that name.

Names are relative to a descriptor, so that a replaced directory above them cannot lead elsewhere. The calls
raise OSError, with ELOOP or ENOTDIR for a link. `renameat2` of Linux is called through the C library. It is
tried each time, because a filter of system calls may be installed at any time.
"""

import errno
import os
import re
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from typing import NamedTuple

from agentfs.base.lazy import ctypes
from agentfs.fs.path import is_temporary_name

if sys.platform != "win32":  # on Windows, agentfs can be imported but no workspace can be opened
    import fcntl
    import pwd

    read_at = os.preadv  # reads from a position into buffers

# Errors of a hard link that is impossible, in general or for a directory.
_NO_HARD_LINKS = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK, errno.EXDEV}
_NO_RENAMEAT2 = {errno.ENOSYS, errno.EINVAL, errno.EPERM}  # it is missing, denied, or lacks the flag
_LIST_SECONDS = 0.1
CLOSED = -1  # a descriptor that is closed, or was never open
_fstat = os.fstat  # its failure does no harm, so tests that replace `os.fstat` leave this one
_RENAME_NOREPLACE = 1
MOUNTS = "/proc/self/mountinfo"
_ESCAPE = re.compile(rb"\\([0-3][0-7]{2})")


def open_flags(*names: str) -> int:
    """Combine flags of `os.open`. Flags that the system lacks, as Windows does, are left out."""
    return sum(getattr(os, name, 0) for name in names)


_FILE = open_flags("O_RDONLY", "O_NOFOLLOW", "O_NONBLOCK", "O_NOCTTY")
_CREATE = open_flags("O_WRONLY", "O_CREAT", "O_EXCL", "O_NOFOLLOW")
_ROOT = open_flags("O_RDONLY", "O_DIRECTORY")
_SCAN = open_flags("O_RDONLY", "O_NOFOLLOW", "O_DIRECTORY")
# O_PATH also opens a directory that may be entered but not listed.
_ENTER = open_flags("O_PATH" if hasattr(os, "O_PATH") else "O_RDONLY", "O_NOFOLLOW", "O_DIRECTORY")


def open_root(path: str) -> int:
    """Open the root, following links in its path."""
    return os.open(path, _ROOT)


def was_removed(handle: int) -> bool:
    """Return True if an open directory has no name any more; False if the system does not tell."""
    with suppress(OSError):
        return _fstat(handle).st_nlink == 0
    return False


def enter(handle: int, name: str) -> int:
    """Open a directory to walk through it. It need not be readable."""
    return os.open(name, _ENTER, dir_fd=handle)


def open_directory(handle: int, name: str) -> int:
    """Open a directory to list it."""
    return os.open(name, _SCAN, dir_fd=handle)


def set_mode(handle: int, name: str, mode: int) -> None:
    """Set the mode of a directory."""
    try:
        os.chmod(name, mode, dir_fd=handle, follow_symlinks=False)
    except ValueError:  # it has just become a link, or the system can change modes only through links
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), name) from None


def open_file(handle: int, name: str) -> int:
    """Open a file of any type for reading."""
    return os.open(name, _FILE, dir_fd=handle)


def create_file(handle: int, name: str, mode: int) -> int:
    """Create a file."""
    return os.open(name, _CREATE, mode, dir_fd=handle)


def write_all(fd: int, content: bytes) -> None:
    """Write all bytes, however few the system accepts at a time."""
    view = memoryview(content)
    while view:
        view = view[os.write(fd, view) :]


def sync_file_system(handle: int) -> None:
    """Write all data of the file system of an open file or directory to its disk."""
    call = c_function("syncfs")
    if call is None or call(handle):
        os.sync()


def close(handle: int) -> None:
    """Close a descriptor that was not written to, or `CLOSED`. A failure loses no data and is ignored."""
    try:  # `suppress` would take longer than the call
        os.close(handle)
    except OSError:
        return


def lstat(handle: int, name: str) -> os.stat_result:
    """Return the status of a name."""
    return os.stat(name, dir_fd=handle, follow_symlinks=False)


def readlink(handle: int, name: str) -> str:
    """Return the target of a link."""
    return os.readlink(name, dir_fd=handle)


def names_in_time(handle: int) -> Iterator[str]:
    """Yield the names that the system lists within a tenth of a second."""
    end = time.monotonic() + _LIST_SECONDS
    directory = open_directory(handle, ".")
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                yield entry.name
                if time.monotonic() > end:
                    return
    finally:
        close(directory)


def may_write(handle: int, name: str, mode: int) -> bool:
    """Return True if a file may be written. One that nobody may write is protected from the superuser too.

    Nothing is opened: closing a file that was open for writing is an event for programs that watch it.
    """
    effective, no_follow = os.access in os.supports_effective_ids, os.access in os.supports_follow_symlinks
    return mode & 0o222 != 0 and os.access(
        name, os.W_OK, dir_fd=handle, effective_ids=effective, follow_symlinks=not no_follow
    )


def remove_all(handle: int, name: str) -> None:
    """Remove a file, or a directory with all its entries."""
    if not stat.S_ISDIR(lstat(handle, name).st_mode):
        os.unlink(name, dir_fd=handle)
        return
    set_mode(handle, name, 0o700)
    directory = open_directory(handle, name)
    try:
        for each in os.listdir(directory):
            remove_all(directory, each)
    finally:
        close(directory)
    os.rmdir(name, dir_fd=handle)


def replace(handle: int, source: str, name: str, *, to: int) -> None:
    """Rename a file to a name in a directory; a file at the new name is replaced."""
    os.replace(source, name, src_dir_fd=handle, dst_dir_fd=to)


def rename_new(handle: int, source: str, name: str, *, to: int) -> None:
    """Rename to a name in a directory. Raises FileExistsError unless the new name is free."""
    number = rename_no_replace(handle, source, name, to=to)
    if number == 0:
        return
    if number not in _NO_RENAMEAT2:
        raise OSError(number, os.strerror(number), name)
    try:
        os.link(source, name, src_dir_fd=handle, dst_dir_fd=to, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _NO_HARD_LINKS:
            raise
    else:
        try:
            os.unlink(source, dir_fd=handle)
        except OSError:
            if not is_temporary_name(source):  # the file has its new name; temporaries are removed later
                os.unlink(name, dir_fd=to)
                raise
        return
    with suppress(FileNotFoundError):
        lstat(to, name)
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name)
    os.rename(source, name, src_dir_fd=handle, dst_dir_fd=to)


def rename_no_replace(handle: int, source: str, name: str, *, to: int) -> int:
    """Rename to a free name by `renameat2`; return its errno: 0 for success, ENOSYS if it is missing."""
    call = c_function("renameat2")
    if call is None:
        return errno.ENOSYS
    failed = call(handle, os.fsencode(source), to, os.fsencode(name), _RENAME_NOREPLACE)
    return ctypes.get_errno() if failed else 0


def try_lock(fd: int, *, shared: bool = False) -> bool:
    """Lock an open file against other openings of it without waiting; return True for success."""
    try:
        fcntl.flock(fd, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def unlock(fd: int) -> None:
    """Release the lock of an open file, also for the copies of the descriptor in other processes."""
    fcntl.flock(fd, fcntl.LOCK_UN)


@cache
def home_of(user: int) -> str | None:
    """Return the home directory of a user from the user database, or None."""
    try:
        return pwd.getpwuid(user).pw_dir
    except KeyError:
        return None


def file_system(handle: int) -> int:
    """Return the type of the file system of an open directory on Linux, or 0."""
    call = c_function("fstatfs")
    if call is None:
        return 0
    status = (ctypes.c_long * 64)()  # struct statfs; the type is the first field
    return status[0] & 0xFFFFFFFF if call(handle, status) == 0 else 0


@cache
def c_function(name: str) -> Callable[..., int] | None:
    """Return a function of the C library on Linux, or None."""
    if sys.platform != "linux":
        return None
    try:
        return ctypes.CDLL(None, use_errno=True)[name]
    except (OSError, AttributeError):
        return None


class MountLine(NamedTuple):
    """A line of the mount table."""

    number: str
    parent: str  # the number of the mount above it
    device: str
    part: str  # the mounted directory or file of the device
    point: str  # the path where it is mounted


def mount_table(fd: int | None = None) -> list[MountLine]:
    """Return the mounts that this process sees; `fd` is an open mount table. Raises OSError without one."""
    with open(MOUNTS if fd is None else fd, "rb", closefd=fd is None) as table:
        table.seek(0)
        lines = table.read().split(b"\n")  # file names may contain other line ends
    return [MountLine(*map(_decoded, line.split(b" ")[:5])) for line in lines if line]


def _decoded(field: bytes) -> str:
    return os.fsdecode(_ESCAPE.sub(lambda escape: bytes([int(escape[1], 8)]), field))
