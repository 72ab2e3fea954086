"""`ReadBuffer`: searches read files, and texts of a watched tree, into one buffer."""

import errno
import os
import stat
from collections.abc import Hashable
from typing import Final, Protocol

from agentfs.fs import syscalls

BINARY: Final = "binary"  # the `KeptText.content` of a binary file, which no search reads
_BUFFER_SIZE = 256 * 1024


class KeptText(Hashable, Protocol):
    """A file of a watched tree whose text is kept in memory, or which is known to be binary."""

    content: str  # the kind of content that a search found, such as BINARY; "" before the first search
    size: int  # bytes of the file

    def keep_as_binary(self) -> None:
        """Drop the text and remember that it is binary."""
        ...

    @property
    def text(self) -> memoryview:
        """The bytes of the file."""
        ...


def read_start(fd: int, view: memoryview) -> int:
    """Fill a buffer from the start of a file by one system call; return the number of bytes read."""
    return syscalls.read_at(fd, (view,), 0)


class ReadBuffer:
    """A buffer into which files are read, one after the other.

    `data` always stays the same object. It holds the `length` bytes of the current file, a NUL, and then old
    bytes of earlier files.
    """

    __slots__ = ("_view", "_whole", "data", "length", "limit")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.length = 0
        self.data = bytearray(min(_BUFFER_SIZE, limit + 1))
        self._view = memoryview(self.data)
        self._whole = (self._view,)

    def copy(self) -> bytes:
        """Return the bytes of the current file."""
        return bytes(self._view[: self.length])

    def fill(self, source: int | KeptText) -> int:
        """Read a whole file or kept text; return its length in bytes, or -1 if that exceeds the limit.

        The file is read by position, so that the system refuses FIFOs, sockets and terminals without taking
        a byte from them.
        """
        if not isinstance(source, int):
            return self._copy(source.text)
        length = syscalls.read_at(source, self._whole, 0)
        if length:
            try:
                size = os.lseek(source, 0, os.SEEK_END)  # takes half the time of `fstat`
            except OSError:  # for example a file in procfs
                size = -1
            # A read may return less than the whole file, and some files report no size.
            if length != size or length == len(self.data):
                length = self._read_on(source, length)
        self.length = length
        if length >= 0:
            self.data[length] = 0
        return length

    def _copy(self, text: memoryview) -> int:
        length = len(text)
        if length > self.limit:
            self.length = -1
            return -1
        self._grow(length + 1)
        self._view[:length] = text
        self.length = length
        self.data[length] = 0
        return length

    def _read_on(self, fd: int, length: int) -> int:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
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
                count = syscalls.read_at(fd, (rest,), length)
            if not count:
                return length
            length += count

    def _grow(self, size: int) -> None:
        if size <= len(self.data):
            return
        self._view.release()
        self.data.extend(bytes(size - len(self.data)))
        self._view = memoryview(self.data)
        self._whole = (self._view,)
