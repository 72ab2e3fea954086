"""Events of directories from Linux's inotify, by its system calls alone."""

import errno
import os
import struct

from agentfs.fs import syscalls

MODIFY, ATTRIB, CLOSE_WRITE = 0x2, 0x4, 0x8
MOVED_FROM, MOVED_TO, CREATE, DELETE, DELETE_SELF = 0x40, 0x80, 0x100, 0x200, 0x400
UNMOUNT, OVERFLOW, IGNORED, IS_DIRECTORY = 0x2000, 0x4000, 0x8000, 0x40000000
_ONLY_DIRECTORIES = 0x01000000
_MASK = (
    MODIFY | ATTRIB | CLOSE_WRITE | MOVED_FROM | MOVED_TO | CREATE | DELETE | DELETE_SELF | _ONLY_DIRECTORIES
)
ARRIVES = MOVED_TO | CREATE
RENAMES = ARRIVES | MOVED_FROM | DELETE
ENDS = DELETE_SELF | UNMOUNT | IGNORED
_HEADER, _LENGTH = struct.Struct("iII"), struct.Struct("I")  # of an event, before its name
_NAME = _HEADER.size + _LENGTH.size
_BUFFER_SIZE = 64 * 1024

# What happened to each name of a directory, b"" for itself: the mask and cookie of each event, in order. Both
# sides of a rename have the same cookie. All that changes a file, and no name, is one `MODIFY`.
Names = dict[bytes, list[tuple[int, int]]]
Changes = dict[int, Names]  # by the number of the watch


class Inotify:
    """A queue of events; OSError where the system has none, or no more of them."""

    def __init__(self) -> None:
        self._fd = -1
        self._fd = _call("inotify_init1", os.O_NONBLOCK | os.O_CLOEXEC)

    def add(self, directory: int) -> int:
        """Watch an open directory, whatever its path leads to by now; the same one has the same number."""
        return _call("inotify_add_watch", self._fd, b"/proc/self/fd/%d" % directory, _MASK)

    def remove(self, watch: int) -> None:
        """End a watch, if it has not ended by itself."""
        try:
            _call("inotify_rm_watch", self._fd, watch)
        except OSError:
            return

    def drain(self) -> tuple[Changes, bool]:
        """Return the events that are there now, and whether there were more than the queue holds."""
        changes: Changes = {}
        seen: set[bytes] = set()  # since a name changed: a later write is one to the same file
        remaining = self._waiting()  # not those that come meanwhile, of which there may be no end
        while remaining > 0:
            try:
                data = os.read(self._fd, _BUFFER_SIZE)
            except BlockingIOError:
                break
            remaining -= len(data)
            at = 0
            while at < len(data):
                (length,) = _LENGTH.unpack_from(data, at + _HEADER.size)
                event = data[at : at + _NAME + length]
                at += len(event)
                if event in seen:
                    continue
                watch, mask, cookie = _HEADER.unpack_from(event)
                name = event[_NAME:].rstrip(b"\0")
                if mask & RENAMES:
                    seen.clear()
                else:
                    seen.add(event)
                    mask = mask if not name else MODIFY | mask & IS_DIRECTORY
                events = changes.setdefault(watch, {}).setdefault(name, [])
                if not events or events[-1] != (mask, cookie):
                    events.append((mask, cookie))
        lost = any(mask & OVERFLOW for mask, _ in changes.pop(-1, {}).get(b"", ()))
        return changes, lost

    def _waiting(self) -> int:
        import fcntl  # noqa: PLC0415 - agentfs can be imported on Windows too
        import termios  # noqa: PLC0415 - as above

        size: int
        (size,) = struct.unpack("i", fcntl.ioctl(self._fd, termios.FIONREAD, bytes(4)))
        return size

    def close(self) -> None:
        """End all watches."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            syscalls.close(fd)

    def __del__(self) -> None:
        self.close()


def _call(name: str, *arguments: object) -> int:
    function = syscalls.c_function(name)
    if function is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS), name)
    result = function(*arguments)
    if result < 0:
        import ctypes  # noqa: PLC0415 - it takes longer to load than all of agentfs

        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), name)
    return result
