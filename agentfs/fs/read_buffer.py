"""A buffer that is reused to read one file after the other."""

import errno
import os
import stat
from collections.abc import Sequence

_FIRST_SIZE = 256 * 1024
_FORMAT = 0o170000
_REGULAR = stat.S_IFREG


def not_regular(status: os.stat_result) -> bool:
    """Tell whether something is no regular file."""
    return status.st_mode & _FORMAT != _REGULAR


def size_of(fd: int) -> int:
    """Return the size that the system claims for an open file."""
    return os.fstat(fd).st_size


class ReadBuffer:
    """The bytes of the file that was read last.

    Attributes:
        data: The bytes of the file, a NUL, then stale bytes of earlier files. It stays the same object.
        length: How many they are.
        limit: The most bytes of a file that are read.
        address: Where in memory `data` begins, until the next file is read; 0 before `locate`.
    """

    __slots__ = ("_view", "_whole", "address", "data", "length", "limit")

    def __init__(self, limit: int) -> None:
        """Make the buffer.

        Args:
            limit: The most bytes of a file that are read.
        """
        self.limit = limit
        self.length = 0
        self.data = bytearray(min(_FIRST_SIZE, limit + 1))
        self._view = memoryview(self.data)
        self._whole = (self._view,)
        self.address = 0

    def locate(self) -> None:
        """From now on have `address`, for a function of the C library."""
        import ctypes  # noqa: PLC0415 - it takes longer to load than all of agentfs

        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.data))

    def copy(self) -> bytes:
        """Return the bytes."""
        return bytes(self._view[: self.length])

    def fill(self, fd: int) -> int:
        """Read a whole file.

        Args:
            fd: The file. Its offset makes no difference: it is read by position, which refuses a FIFO,
                a socket or a terminal before a byte of it is gone.

        Returns:
            How many bytes it has; -1 for more than the limit.

        Raises:
            OSError: What the system says; EINVAL for a device that has more than a buffer.
        """
        length = _read_at(fd, self._whole, 0)
        # Only a read of nothing is the end: a read may give less, and the size that is claimed may be none.
        if length and (length == len(self.data) or _byte_at(fd, 1, length)):
            length = self._read_on(fd, length)
        self.length = length
        if length >= 0:
            self.data[length] = 0
        return length

    def _read_on(self, fd: int, length: int) -> int:
        status = os.fstat(fd)
        if not_regular(status):
            raise OSError(errno.EINVAL, "not a regular file")
        if status.st_size > self.limit:
            return -1
        self._grow(status.st_size + 1)
        while True:
            if length == len(self.data):
                if length > self.limit:
                    return -1
                self._grow(min(4 * length, self.limit + 1))
            with self._view[length:] as rest:
                got = _read_at(fd, (rest,), length)
            if not got:
                return length
            length += got

    def _grow(self, size: int) -> None:
        if size <= len(self.data):
            return
        self._view.release()
        self.data.extend(bytes(size - len(self.data)))
        self._view = memoryview(self.data)
        self._whole = (self._view,)
        if self.address:
            self.locate()


def _by_copy(fd: int, views: Sequence[memoryview], position: int) -> int:
    content = _seeking(fd, len(views[0]), position)
    views[0][: len(content)] = content
    return len(content)


def _seeking(fd: int, size: int, position: int) -> bytes:
    os.lseek(fd, position, os.SEEK_SET)
    return os.read(fd, size)


_read_at = getattr(os, "preadv", _by_copy)
_byte_at = getattr(os, "pread", _seeking)
