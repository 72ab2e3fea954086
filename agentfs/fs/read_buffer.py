"""`ReadBuffer`: searches read files, and texts of a watched tree, into one buffer."""

import os
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
        if isinstance(source, int):
            length = self._read(source)
        elif (length := source.size) <= self.limit:
            self._grow(length + 1)
            self._view[:length] = source.text
        self.length = length = length if length <= self.limit else -1
        if length >= 0:
            self._grow(length + 1)
            self.data[length] = 0
        return length

    def _read(self, fd: int) -> int:
        """Read to the end of a file; return its size, or any number above the limit."""
        length = syscalls.read_at(fd, self._whole, 0)
        # A read may return less than the whole file, and some files report no size.
        while 0 < length <= self.limit and os.pread(fd, 1, length):
            if length == len(self.data):
                size = os.fstat(fd).st_size
                if size > self.limit:
                    return size
                self._grow(min(max(size, 4 * length), self.limit) + 1)
            with self._view[length:] as rest:
                length += syscalls.read_at(fd, (rest,), length)
        return length

    def _grow(self, size: int) -> None:
        if size > len(self.data):
            self._view.release()
            self.data.extend(bytes(size - len(self.data)))
            self._view = memoryview(self.data)
            self._whole = (self._view,)
