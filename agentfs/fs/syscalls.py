"""System calls on one name in an open directory; none follows a link at that name.

Names are opened relative to a descriptor, so that no directory swapped above them can lead elsewhere. All
raise OSError; for a link in the way that is ELOOP or ENOTDIR.
"""

import errno
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Literal

from agentfs.fs import openat2

# What systems say where there are no hard links, or none between two places.
NO_HARD_LINKS = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK, errno.EXDEV}
_LIST_SECONDS = 0.1


def open_flags(*names: str) -> int:
    """Return flags of `os.open` together; those that the system does not have are left out."""
    # By name: agentfs can be imported on Windows too, which has few of them.
    return sum(getattr(os, name, 0) for name in names)


_FILE = open_flags("O_RDONLY", "O_NOFOLLOW", "O_NONBLOCK", "O_NOCTTY")
_WRITE = open_flags("O_WRONLY", "O_NOFOLLOW", "O_NONBLOCK", "O_NOCTTY")
_CREATE = open_flags("O_WRONLY", "O_CREAT", "O_EXCL", "O_NOFOLLOW")
_ROOT = open_flags("O_RDONLY", "O_DIRECTORY")
_SCAN = open_flags("O_RDONLY", "O_NOFOLLOW", "O_DIRECTORY")
# O_PATH opens a directory that may be passed through but not listed, too.
_ENTER = open_flags("O_PATH" if hasattr(os, "O_PATH") else "O_RDONLY", "O_NOFOLLOW", "O_DIRECTORY")


def mechanism(handle: int) -> Literal["openat2", "fd-walk"]:
    """Try whether the kernel confines an open."""
    fd = open_beneath(handle, ".", directory=True)
    if fd < 0:
        return "fd-walk"
    close(fd)
    return "openat2"


def open_root(path: str) -> int:
    """Open the root, links in its own path followed."""
    return os.open(path, _ROOT)


def enter(handle: int, name: str) -> int:
    """Open a directory to go on from."""
    return os.open(name, _ENTER, dir_fd=handle)


def open_directory(handle: int, name: str) -> int:
    """Open a directory to scan."""
    return os.open(name, _SCAN, dir_fd=handle)


def close(handle: int) -> None:
    """Close a directory; it is closed whatever the system says, and has nothing that could be lost."""
    try:
        os.close(handle)
    except OSError:
        return


def open_beneath(handle: int, path: str, *, directory: bool = False) -> int:
    """Open a file or directory for reading by `openat2`, with no link on the way; -1 when that fails."""
    return openat2.open_beneath(handle, path, _SCAN if directory else _FILE)


def open_file(handle: int, name: str) -> int:
    """Open whatever is there for reading."""
    return os.open(name, _FILE, dir_fd=handle)


def first_names(handle: int) -> Iterator[str]:
    """Yield names in a directory, as many as the system gives in a tenth of a second."""
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


def names_refused(handle: int) -> int:
    """Return the errno with which a new name in the directory would be refused; 0 where it would not."""
    effective = os.access in os.supports_effective_ids
    if os.access(".", os.W_OK | os.X_OK, dir_fd=handle, effective_ids=effective):
        return 0
    return errno.EROFS if os.fstatvfs(handle).f_flag & os.ST_RDONLY else errno.EACCES


def create_file(handle: int, name: str, mode: int) -> int:
    """Create a file."""
    return os.open(name, _CREATE, mode, dir_fd=handle)


def check_writable(handle: int, name: str) -> None:
    """Open the file for writing, and close it again."""
    close(open_writing(handle, name))  # nothing was written: a close that fails says nothing of permissions


def open_writing(handle: int, name: str) -> int:
    """Open a file that is there for writing."""
    return os.open(name, _WRITE, dir_fd=handle)


def lstat(handle: int, name: str) -> os.stat_result:
    """Return the status of what is there."""
    return os.stat(name, dir_fd=handle, follow_symlinks=False)


def readlink(handle: int, name: str) -> str:
    """Return the target of a link."""
    return os.readlink(name, dir_fd=handle)


def make_directory(handle: int, name: str) -> None:
    """Make a directory."""
    os.mkdir(name, dir_fd=handle)


def remove_directory(handle: int, name: str) -> None:
    """Remove an empty directory."""
    os.rmdir(name, dir_fd=handle)


def replace(handle: int, source: str, name: str) -> None:
    """Rename within the directory."""
    os.replace(source, name, src_dir_fd=handle, dst_dir_fd=handle)


def rename_new(handle: int, source: str, name: str) -> None:
    """Rename within the directory to a name that must be free."""
    number = openat2.rename_new(handle, source, name)
    if number == 0:
        return
    if number == errno.EEXIST:
        raise FileExistsError(number, os.strerror(number), name)
    try:
        os.link(source, name, src_dir_fd=handle, dst_dir_fd=handle, follow_symlinks=False)
    except OSError as error:
        if error.errno not in NO_HARD_LINKS:
            raise
        _rename_over_placeholder(handle, source, name)
        return
    with suppress(OSError):  # the file has its name; what is left of the old one is swept
        os.unlink(source, dir_fd=handle)


def _rename_over_placeholder(handle: int, source: str, name: str) -> None:
    """Rename over nothing where there are no hard links: an empty file takes the name, and is replaced."""
    fd = create_file(handle, name, 0o600)
    try:
        os.replace(source, name, src_dir_fd=handle, dst_dir_fd=handle)
    except BaseException:
        with suppress(OSError):
            found = lstat(handle, name)
            if os.path.samestat(found, os.fstat(fd)) and found.st_size == 0:
                os.unlink(name, dir_fd=handle)
        raise
    finally:
        os.close(fd)


def remove(handle: int, name: str) -> None:
    """Remove a name."""
    os.unlink(name, dir_fd=handle)


def rename(handle: int, source: str, to: int, name: str) -> None:
    """Rename into another directory."""
    os.replace(source, name, src_dir_fd=handle, dst_dir_fd=to)


def link_into(handle: int, source: str, to: int, name: str) -> None:
    """Link into another directory."""
    os.link(source, name, src_dir_fd=handle, dst_dir_fd=to, follow_symlinks=False)


def symlink(handle: int, target: str, name: str) -> None:
    """Make a link."""
    os.symlink(target, name, dir_fd=handle)


def set_mode(handle: int, name: str, mode: int) -> None:
    """Open the file or directory, and set its permissions."""
    fd = os.open(name, _FILE, dir_fd=handle)
    try:
        os.fchmod(fd, mode)
    finally:
        os.close(fd)
