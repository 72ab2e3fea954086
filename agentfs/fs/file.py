"""An open file, and a buffer that is reused to read one file after the other."""

import errno
import os
import stat
from collections.abc import Sequence
from typing import Self

from agentfs import call_context
from agentfs.fs import oserrors, syscalls
from agentfs.fs.context import RootContext

_CHUNK = 64 * 1024  # read at once: a slow file is left after no more than this
_BUFFER_SIZE = 256 * 1024
_FORMAT = 0o170000
_REGULAR = stat.S_IFREG


class OpenFile:
    """A regular file, open for reading, with its status when it was opened and its paths as `Directory`."""

    __slots__ = ("fd", "path", "real_path", "stat")

    def __init__(self, fd: int, status: os.stat_result, path: str, real_path: str) -> None:
        self.fd = fd
        self.stat = status
        self.path = path
        self.real_path = real_path

    def read(self, limit: int) -> bytes:
        """Return the first bytes of the file."""
        chunks: list[bytes] = []
        length = 0
        # One byte more than the size that is claimed: a file that grows, or claims nothing, is noticed.
        size = min(self.stat.st_size + 1, _CHUNK)
        try:
            os.lseek(self.fd, 0, os.SEEK_SET)
            while length < limit:
                call_context.check()
                chunk = os.read(self.fd, min(limit - length, size))
                if not chunk:
                    break
                chunks.append(chunk)
                length += len(chunk)
                size = _CHUNK
        except OSError as error:
            raise oserrors.from_oserror(error, self.path) from None
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    def read_whole(self, max_bytes: int) -> bytes:
        """Return the content of a file that is to be changed; TooLargeError for more than `max_bytes`."""
        size = self.stat.st_size
        data = self.read(max_bytes + 1) if size <= max_bytes else b""
        size = max(size, len(data))
        if size > max_bytes:
            raise oserrors.too_large(self.path, size, max_bytes)
        return data

    def read_at(self, position: int, size: int) -> bytes:
        """Return bytes from anywhere in the file."""
        buffer = bytearray(size)
        return bytes(memoryview(buffer)[: self.read_into(position, memoryview(buffer))])

    def read_into(self, position: int, buffer: memoryview) -> int:
        """Fill a buffer with bytes from anywhere in the file."""
        length = 0
        try:
            while length < len(buffer):
                call_context.check()
                count = _read_at(self.fd, (buffer[length : length + _CHUNK],), position + length)
                if not count:
                    break
                length += count
        except OSError as error:
            raise oserrors.from_oserror(error, self.path) from None
        return length

    def changed(self) -> bool:
        """Return whether the file has changed since it was opened, by its size and times."""
        now, facts = os.fstat(self.fd), ("st_size", "st_mtime_ns", "st_ctime_ns")
        return any(getattr(now, fact) != getattr(self.stat, fact) for fact in facts)

    def close(self) -> None:
        """Close the file; again is harmless."""
        fd, self.fd = self.fd, -1
        if fd >= 0:
            syscalls.close(fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_regular(
    context: RootContext, fd: int, path: str, real_path: str, *, check_access: bool = True
) -> OpenFile:
    """Return an open file around a descriptor, or close it and raise when its content is protected."""
    try:
        status = os.fstat(fd)
        _check_regular(status, path)
        context.check_readable(status, path, real_path)
        if check_access and context.access is not None:
            context.access.check_read(real_path)
    except BaseException as error:
        os.close(fd)
        if isinstance(error, OSError):
            raise oserrors.from_oserror(error, path) from None
        raise
    return OpenFile(fd, status, path, real_path)


def _check_regular(status: os.stat_result, path: str) -> None:
    if not_regular(status):
        raise oserrors.not_regular(path, status.st_mode)


def not_regular(status: os.stat_result) -> bool:
    """Return whether something is no regular file."""
    return status.st_mode & _FORMAT != _REGULAR


def size_of(fd: int) -> int:
    """Return the size that the system claims for an open file."""
    return os.fstat(fd).st_size


class ReadBuffer:
    """The bytes of the file that was read last.

    `data` has its `length` bytes, a NUL, then stale bytes of earlier files. It stays the same object.
    """

    __slots__ = ("_view", "_whole", "data", "length", "limit")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.length = 0
        self.data = bytearray(min(_BUFFER_SIZE, limit + 1))
        self._view = memoryview(self.data)
        self._whole = (self._view,)

    def copy(self) -> bytes:
        """Return the bytes."""
        return bytes(self._view[: self.length])

    def fill(self, fd: int) -> int:
        """Read a whole file, and return how many bytes it has; -1 for more than the limit.

        It is read by position, which refuses a FIFO, a socket or a terminal before a byte of it is gone.
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
                count = _read_at(fd, (rest,), length)
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


def _seek_and_read_into(fd: int, views: Sequence[memoryview], position: int) -> int:
    content = _seek_and_read(fd, len(views[0]), position)
    views[0][: len(content)] = content
    return len(content)


def _seek_and_read(fd: int, size: int, position: int) -> bytes:
    os.lseek(fd, position, os.SEEK_SET)
    return os.read(fd, size)


_read_at = getattr(os, "preadv", _seek_and_read_into)
_byte_at = getattr(os, "pread", _seek_and_read)
