"""Events of Linux: `Inotify` of watched directories and files, `MountTable` of mounts."""

import errno
import os
import select
import struct
import sys

from agentfs.base.lazy import ctypes
from agentfs.fs import syscalls

if sys.platform != "win32":  # agentfs can be imported there
    import fcntl
    import termios

MODIFY, ATTRIB, CLOSE_WRITE = 0x2, 0x4, 0x8
MOVED_FROM, MOVED_TO, CREATE, DELETE, DELETE_SELF = 0x40, 0x80, 0x100, 0x200, 0x400
UNMOUNT, OVERFLOW, _IGNORED, IS_DIRECTORY = 0x2000, 0x4000, 0x8000, 0x40000000
_ONLY_DIRECTORIES = 0x01000000
_MASK = (
    MODIFY | ATTRIB | CLOSE_WRITE | MOVED_FROM | MOVED_TO | CREATE | DELETE | DELETE_SELF | _ONLY_DIRECTORIES
)
RENAMES = MOVED_TO | CREATE | MOVED_FROM | DELETE
ENDS = DELETE_SELF | UNMOUNT | _IGNORED
_HEADER = struct.Struct("iIII")  # the start of an event: watch, mask, cookie, length of the name
# Local file systems, by their type in statfs: ext, XFS, Btrfs, tmpfs, ramfs, F2FS, ZFS, overlay, bcachefs,
# JFS, SquashFS, EROFS.
_LOCAL = frozenset({
    0xEF53, 0x58465342, 0x9123683E, 0x01021994, 0x858458F6, 0xF2F52010, 0x2FC12FC1, 0x794C7630, 0xCA451A4E,
    0x3153464A, 0x73717368, 0xE0F5E1E2,
})  # fmt: skip
_BUFFER_SIZE = 64 * 1024
_USUAL_LIMIT = 8192

EventMasks = dict[bytes, int]  # the event mask of each name in a directory; b"" is the directory itself
Changes = dict[int, EventMasks]  # by watch number


class _Descriptor:
    """An object with a descriptor of its own."""

    _fd = syscalls.CLOSED

    def close(self) -> None:
        """Close the descriptor, which ends all watches."""
        fd, self._fd = self._fd, syscalls.CLOSED
        syscalls.close(fd)

    def __del__(self) -> None:
        self.close()


class Inotify(_Descriptor):
    """A queue of events. Raises OSError if the system has no inotify or no queue left."""

    def __init__(self) -> None:
        self._fd = _call("inotify_init1", os.O_NONBLOCK | os.O_CLOEXEC)

    def add(self, directory: int) -> int:
        """Watch an open directory, also after a rename; return the number of the watch."""
        return _call("inotify_add_watch", self._fd, b"/proc/self/fd/%d" % directory, _MASK)

    def add_file(self, fd: int) -> int:
        """Watch the attributes of an open file, for example its link count."""
        return _call("inotify_add_watch", self._fd, b"/proc/self/fd/%d" % fd, ATTRIB)

    def remove(self, watch: int) -> None:
        """End a watch. It may have ended already."""
        try:
            _call("inotify_rm_watch", self._fd, watch)
        except OSError:
            return

    def drain(self) -> tuple[Changes, bool]:
        """Return the waiting events, and True if the queue overflowed."""
        changes: Changes = {}
        remaining = self._waiting()  # read no more than this, because new events may arrive without end
        while remaining > 0:
            try:
                data = os.read(self._fd, _BUFFER_SIZE)
            except BlockingIOError:
                break
            remaining -= len(data)
            at = 0
            while at < len(data):
                watch, mask, _, length = _HEADER.unpack_from(data, at)
                at += _HEADER.size
                name = data[at : at + length].rstrip(b"\0")
                at += length
                names = changes.setdefault(watch, {})
                names[name] = names.get(name, 0) | mask
        lost = bool(changes.pop(-1, {}).get(b"", 0) & OVERFLOW)
        return changes, lost

    def _waiting(self) -> int:
        size: int
        (size,) = struct.unpack("i", fcntl.ioctl(self._fd, termios.FIONREAD, bytes(4)))
        return size


class MountTable(_Descriptor):
    """The mounts in an open directory. Raises OSError if there is no mount table."""

    def __init__(self, directory: int) -> None:
        self._directory = directory
        self._fd = os.open(syscalls.MOUNTS, os.O_RDONLY | os.O_CLOEXEC)
        self._poll = select.poll()
        self._poll.register(self._fd, select.POLLPRI)
        self._mounts = self._below()

    def changed(self) -> bool:
        """Return True if a mount was added or removed since the last call."""
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

    def _below(self) -> list[syscalls.MountLine]:
        """Return the mounts in the directory, with points relative to it, even if it was moved."""
        top = os.readlink(f"/proc/self/fd/{self._directory}").rstrip("/") + "/"
        found = [mount for mount in syscalls.mount_table(self._fd) if f"{mount.point}/".startswith(top)]
        return [mount._replace(point=mount.point[len(top) :]) for mount in found]


def watch_limit() -> int:
    """Return how many watches all processes of the user may have together."""
    try:
        with open("/proc/sys/fs/inotify/max_user_watches", "rb") as setting:
            return int(setting.read())
    except (OSError, ValueError):
        return _USUAL_LIMIT


def _call(name: str, *arguments: object) -> int:
    function = syscalls.c_function(name)
    if function is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS), name)
    result = function(*arguments)
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), name)
    return result


def without_events(handle: int) -> str:
    """Return why inotify may miss changes in an open directory, or "" if it reports all."""
    type_ = syscalls.file_system(handle)
    return "" if type_ in _LOCAL else f"a file system without events (type {type_:#x})"
