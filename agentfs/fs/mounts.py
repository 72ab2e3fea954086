"""What is mounted in a directory, and in which file systems every change comes through this kernel."""

import os
import re
import select

from agentfs.fs import syscalls

_MOUNTS = "/proc/self/mountinfo"
# By the type that statfs reports: ext, XFS, Btrfs, tmpfs, ramfs, F2FS, ZFS, overlay, bcachefs, JFS, SquashFS,
# EROFS.
_LOCAL = frozenset({
    0xEF53, 0x58465342, 0x9123683E, 0x01021994, 0x858458F6, 0xF2F52010, 0x2FC12FC1, 0x794C7630, 0xCA451A4E,
    0x3153464A, 0x73717368, 0xE0F5E1E2,
})  # fmt: skip


class Mounts:
    """What is mounted in a directory; OSError where the system does not tell."""

    def __init__(self, path: str) -> None:
        self._path = path.rstrip("/") + "/"
        self._fd = -1
        self._fd = os.open(_MOUNTS, os.O_RDONLY | os.O_CLOEXEC)
        self._poll = select.poll()
        self._poll.register(self._fd, select.POLLPRI)
        self._below = self._read()

    def changed(self) -> bool:
        """Return whether that has changed since it was asked last."""
        if not self._poll.poll(0):
            return False
        before, self._below = self._below, self._read()
        return before != self._below

    def _read(self) -> list[str]:
        os.lseek(self._fd, 0, os.SEEK_SET)
        with open(self._fd, encoding="utf-8", errors="surrogateescape", closefd=False) as lines:
            return [line for line in lines if f"{_unescaped(line.split(' ')[4])}/".startswith(self._path)]

    def close(self) -> None:
        """Ask no more."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            syscalls.close(fd)

    def __del__(self) -> None:
        self.close()


def without_events(handle: int) -> str:
    """Return why events of a directory's file system may not reach us; "" where all do."""
    type_ = syscalls.file_system(handle)
    return "" if type_ in _LOCAL else f"a file system without events (type {type_:#x})"


def _unescaped(path: str) -> str:
    return re.sub(r"\\(\d{3})", lambda escape: chr(int(escape[1], 8)), path)
