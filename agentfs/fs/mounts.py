"""What is mounted in a directory, and in which file systems every change comes through this kernel."""

import os
import re
import select
from typing import NamedTuple

from agentfs.fs import syscalls

_MOUNTS = "/proc/self/mountinfo"
_ESCAPE = re.compile(rb"\\([0-3][0-7]{2})")
# By the type that statfs reports: ext, XFS, Btrfs, tmpfs, ramfs, F2FS, ZFS, overlay, bcachefs, JFS, SquashFS,
# EROFS.
_LOCAL = frozenset({
    0xEF53, 0x58465342, 0x9123683E, 0x01021994, 0x858458F6, 0xF2F52010, 0x2FC12FC1, 0x794C7630, 0xCA451A4E,
    0x3153464A, 0x73717368, 0xE0F5E1E2,
})  # fmt: skip


class Mount(NamedTuple):
    """A line of the mount table."""

    number: str
    parent: str  # the number of the mount that it lies on
    device: str
    part: str  # the directory or file of the device that is mounted
    point: str  # the path where it is mounted


def mount_table() -> list[Mount]:
    """Return the mounts that this process sees. Raises OSError if the system does not tell."""
    fd = os.open(_MOUNTS, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return _read(fd)
    finally:
        syscalls.close(fd)


class Mounts:
    """The mounts in an open directory. Raises OSError if the system does not tell."""

    def __init__(self, directory: int) -> None:
        self._directory = directory
        self._fd = -1
        self._fd = os.open(_MOUNTS, os.O_RDONLY | os.O_CLOEXEC)
        self._poll = select.poll()
        self._poll.register(self._fd, select.POLLPRI)
        self._mounts = self._below()

    def changed(self) -> bool:
        """Return True if a mount came or went since the last call."""
        if not self._poll.poll(0):
            return False
        before = self._mounts
        try:
            self._mounts = self._below()
        except OSError:
            return True
        return before != self._mounts

    def covers(self, real_path: str) -> bool:
        """Return True if a path below the directory is a mount point."""
        return any(mount.point == real_path for mount in self._mounts)

    def _below(self) -> list[Mount]:
        """Return the mounts in the directory by their path below it, wherever it was moved to."""
        top = os.readlink(f"/proc/self/fd/{self._directory}").rstrip("/") + "/"
        found = [mount for mount in _read(self._fd) if f"{mount.point}/".startswith(top)]
        return [mount._replace(point=mount.point[len(top) :]) for mount in found]

    def close(self) -> None:
        """Stop observing the mounts."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            syscalls.close(fd)

    def __del__(self) -> None:
        self.close()


def without_events(handle: int) -> str:
    """Return why events of a directory's file system may not reach us; "" where all do."""
    type_ = syscalls.file_system(handle)
    return "" if type_ in _LOCAL else f"a file system without events (type {type_:#x})"


def _read(fd: int) -> list[Mount]:
    os.lseek(fd, 0, os.SEEK_SET)
    with open(fd, "rb", closefd=False) as file:
        lines = file.read().split(b"\n")  # a name may have any other line end
    return [Mount(*map(_decoded, line.split(b" ")[:5])) for line in lines if line]


def _decoded(field: bytes) -> str:
    return os.fsdecode(_ESCAPE.sub(lambda escape: bytes([int(escape[1], 8)]), field))
