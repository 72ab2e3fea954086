"""Open files, a buffer that is reused to read one file after the other, and a spool for bytes."""

import errno
import os
import stat
from collections.abc import Hashable, Sequence
from typing import Final, Protocol, Self

from agentfs import call_context
from agentfs.fs import oserrors, syscalls
from agentfs.fs.context import RootContext
from agentfs.fs.node import FileNode, Metadata

BINARY: Final = "binary"  # the content of a file whose text is not kept, as it is never searched
_CHUNK = 64 * 1024  # read at once: a slow file is left after no more than this
# Attributes that hold for the old content only, or that give it power: they go as the setuid bit does.
_DROPPED_ATTRIBUTES = {"security.capability", "security.ima", "security.evm"}
_BUFFER_SIZE = 256 * 1024


class KeptText(Hashable, Protocol):
    """A file whose text is in memory, or of which it is known to be binary."""

    content: str  # what a search has found its text to be, such as BINARY; "" for nothing yet

    def keep_as_binary(self) -> None:
        """Drop the text, and keep that it is binary."""
        ...

    def stat(self) -> os.stat_result:
        """Return its status as it is now."""
        ...

    @property
    def text(self) -> memoryview:
        """Its bytes."""
        ...


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
                if length:
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
        context.check_readable(status, path, real_path)
        if check_access and context.access is not None:
            context.access.check_read(real_path)
    except BaseException as error:
        os.close(fd)
        if isinstance(error, OSError):
            raise oserrors.from_oserror(error, path) from None
        raise
    return OpenFile(fd, status, path, real_path)


def read_node(context: RootContext, fd: int, path: str, real_path: str, max_bytes: int) -> FileNode:
    """Return the node of an open file, and close it; TooLargeError for more than `max_bytes`."""
    file = open_regular(context, fd, path, real_path)
    try:
        data = file.read_whole(max_bytes)
        return FileNode.of(file.stat.st_mode, data, metadata_of(fd, file.stat))
    finally:
        file.close()


def metadata_of(fd: int, status: os.stat_result) -> Metadata:
    """Return the metadata to copy to the replacement of an open file; of its mode only the permissions."""
    attributes: dict[str, bytes] = {}
    if hasattr(os, "listxattr"):
        try:
            for name in os.listxattr(fd):
                if name not in _DROPPED_ATTRIBUTES:
                    attributes[name] = os.getxattr(fd, name)
        except OSError:
            attributes = {}
    return Metadata(status.st_mode & 0o777, (status.st_uid, status.st_gid), attributes)


def read_start(fd: int, view: memoryview) -> int:
    """Fill a buffer with the first bytes of an open file, by one call; return how many there were."""
    return _read_at(fd, (view,), 0)


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

    def fill(self, source: int | KeptText) -> int:
        """Read a whole open file or kept text, and return how many bytes it has; -1 for more than the limit.

        A file is read by position, which refuses a FIFO, a socket or a terminal before a byte of it is gone.
        """
        if not isinstance(source, int):
            return self._copy(source.text)
        fd = source
        length = _read_at(fd, self._whole, 0)
        # A read may give less than there is, and the size that is claimed may be none.
        if length and (length == len(self.data) or _claimed_size(fd) != length):
            length = self._read_on(fd, length)
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


def _claimed_size(fd: int) -> int:
    """Return the size of a file, half as fast as by its status again; -1 where only reading tells."""
    try:
        return os.lseek(fd, 0, os.SEEK_END)
    except OSError:  # a file of procfs
        return -1


def write_all(fd: int, content: bytes) -> None:
    """Write a content to its last byte, however little the system takes at once."""
    view = memoryview(content)
    while view:
        view = view[os.write(fd, view) :]


def _pread_into(fd: int, views: Sequence[memoryview], position: int) -> int:
    content = os.pread(fd, len(views[0]), position)
    views[0][: len(content)] = content
    return len(content)


_read_at = getattr(os, "preadv", _pread_into)
