"""Open files, their content and metadata, and the temporaries that are to replace them."""

import errno
import os
import re
import stat
import time
import unicodedata
from collections.abc import Hashable, Sequence
from contextlib import suppress
from typing import Final, Protocol, Self

from agentfs import call_context
from agentfs.errors import NotDirectoryError, NotFoundError, RefusedError
from agentfs.fs import oserrors, syscalls
from agentfs.fs.context import RootContext
from agentfs.fs.node import DirectoryNode, FileNode, LinkNode, Metadata, Node
from agentfs.fs.path import display_name, quote
from agentfs.fs.resolve import ResolvedPath, resolve_real

BINARY: Final = "binary"  # the content of a file whose text is not kept, as it is never searched
_MAX_ATTEMPTS = 20  # to open what others swap meanwhile
_CHUNK = 64 * 1024  # read at once: a slow file is left after no more than this
# Attributes that hold for the old content only, or that give it power: they go as the setuid bit does.
_DROPPED_ATTRIBUTES = {"security.capability", "security.ima", "security.evm"}
_BUFFER_SIZE = 256 * 1024
STALE = 3600.0  # seconds after which a temporary is nobody's: a change takes a fraction of one
_TEMPORARY = re.compile(r"\.agentfs-[0-9a-f]{16}\.tmp")
_MAX_CLEANED = 10_000
_ACLS = {"system.posix_acl_access", "system.posix_acl_default"}
_FATAL = {errno.ENOSPC, errno.EDQUOT, errno.EIO}


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


def node_at(context: RootContext, real_path: str, max_bytes: int) -> Node | None:
    """Return what is at a path whose links are resolved, but for the last; None where nothing is."""
    try:
        with resolve_real(context, real_path) as resolved:
            return node_in(context, resolved, max_bytes)
    except (NotFoundError, NotDirectoryError):
        return None


def node_in(context: RootContext, resolved: ResolvedPath, max_bytes: int) -> Node | None:
    """Return what is at a resolved path, as `node_at`; TooLargeError for more than `max_bytes`."""
    staged, real_path = context.staged, resolved.real_path
    if staged is not None and real_path in staged.nodes:
        return staged.nodes[real_path]
    found = None if resolved.missing else _node_on_disk(context, resolved, max_bytes)
    if found is None and staged is not None and staged.is_directory(real_path):
        return DirectoryNode()
    return found


def _node_on_disk(context: RootContext, resolved: ResolvedPath, max_bytes: int) -> Node | None:
    parent, name, real_path = resolved.parent, resolved.name, resolved.real_path
    for _ in range(_MAX_ATTEMPTS):
        try:
            status = syscalls.lstat(parent, name)
            if stat.S_ISLNK(status.st_mode):
                return LinkNode(syscalls.readlink(parent, name))
            if stat.S_ISDIR(status.st_mode):
                return _directory_node(parent, name)
            if not stat.S_ISREG(status.st_mode):
                raise oserrors.not_regular(resolved.display_path, status.st_mode)
            fd = syscalls.open_file(parent, name)
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno in {errno.ELOOP, errno.ENOTDIR, errno.EINVAL}:
                continue  # swapped between lstat and open
            raise resolved.error(error) from None
        file = open_regular(context, fd, resolved.display_path, real_path)
        try:
            data = file.read_whole(max_bytes)
            return FileNode.of(file.stat.st_mode, data, metadata_of(fd, file.stat))
        finally:
            file.close()
    raise RefusedError(f"{quote(real_path)} keeps changing.", details={"path": display_name(real_path)})


def _directory_node(parent: int, name: str) -> DirectoryNode:
    fd = syscalls.enter(parent, name)
    try:
        status = os.fstat(fd)
        mode = stat.S_IMODE(status.st_mode)
        try:
            readable = syscalls.open_directory(fd, ".")
        except PermissionError:
            return DirectoryNode(mode, Metadata(mode, (status.st_uid, status.st_gid)))
        try:
            return DirectoryNode(mode, metadata_of(readable, status)._replace(mode=mode))
        finally:
            syscalls.close(readable)
    finally:
        syscalls.close(fd)


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


def create_temporary(
    context: RootContext,
    handle: int,
    name: str,
    node: FileNode,
    replaced: os.stat_result | None,
    metadata: Metadata | None,
) -> list[str]:
    """Create a temporary; return notes on what it does not have of the file that it replaces.

    Without `metadata` the system decides which permissions of the node it gets. After a failure the
    temporary may be there.
    """
    fd = syscalls.create_file(handle, name, node.mode if metadata is None else 0o600)
    try:
        write_all(fd, node.load())
        notes = [] if replaced is None else _notes_on(replaced)
        notes += [] if metadata is None else apply_metadata(fd, metadata._replace(mode=node.mode))
        if context.durability != "fast":
            syscalls.sync(fd, to_medium=context.durability == "full")
    except BaseException:
        syscalls.close(fd)
        raise
    os.close(fd)
    return notes


def _notes_on(replaced: os.stat_result) -> list[str]:
    """Return notes on what a replacement does not have of the file that it replaces."""
    notes: list[str] = []
    if replaced.st_nlink > 1:
        notes.append(f"the file had {replaced.st_nlink} hard links; the other names keep the old content")
    if replaced.st_mode & (stat.S_ISUID | stat.S_ISGID):
        notes.append("the setuid and setgid bits were dropped")
    return notes


def unicode_duplicate_notes(directory: int, name: str) -> list[str]:
    """Return a note if a new name in an open directory looks like another one there."""
    if name.isascii():
        return []
    normal = unicodedata.normalize("NFC", name)
    with suppress(OSError):
        for other in syscalls.first_names(directory):
            if other != name and unicodedata.normalize("NFC", other) == normal:
                return ["another name in its directory looks the same: it has another Unicode form"]
    return []


def sync_directory(handle: int) -> list[str]:
    """Bring the names in a directory to the disk; a failure is only noted, as the change is done."""
    try:
        opened = syscalls.open_directory(handle, ".")
        try:
            os.fsync(opened)
        finally:
            syscalls.close(opened)
    except OSError as error:
        return [f"durability_unconfirmed: the directory could not be brought to the disk ({error.strerror})"]
    return []


def remove_stale_temporaries(context: RootContext, handle: int) -> None:
    """Remove temporaries that a killed process has left in a directory, when it is first changed."""
    names: list[str] = []
    with suppress(OSError):
        here = syscalls.lstat(handle, ".")
        if (here.st_dev, here.st_ino) in context.cleaned:
            return
        if len(context.cleaned) >= _MAX_CLEANED:
            context.cleaned.clear()
        context.cleaned.add((here.st_dev, here.st_ino))
        names = [name for name in syscalls.first_names(handle) if _TEMPORARY.fullmatch(name)]
    for name in names:
        with suppress(OSError):  # another process may have removed it just now
            if time.time() - syscalls.lstat(handle, name).st_mtime > STALE:
                os.unlink(name, dir_fd=handle)


def apply_metadata(fd: int, metadata: Metadata) -> list[str]:
    """Give a file or directory an owner, mode and attributes; return notes on what could not be kept."""
    notes: list[str] = []
    mode, owner, attributes = metadata
    if owner is not None:
        now = os.fstat(fd)
        if (now.st_uid, now.st_gid) != owner:
            notes, mode = _change_owner(fd, owner, mode)
    os.fchmod(fd, mode)
    if attributes is None or not hasattr(os, "setxattr"):
        return notes
    with suppress(OSError):
        for name in _ACLS.intersection(os.listxattr(fd)) - attributes.keys():
            os.removexattr(fd, name)  # inherited from the directory
    lost: list[str] = []
    for name, value in attributes.items():
        if name in _ACLS and mode != metadata.mode:  # it would give the rights to another group
            lost.append(name)
            continue
        try:
            os.setxattr(fd, name, value)
        except OSError as error:
            if error.errno in _FATAL:
                raise
            lost.append(name)
    if lost:
        notes.append(f"extended attributes could not be kept: {', '.join(lost)}")
    return notes


def _change_owner(fd: int, owner: tuple[int, int], mode: int) -> tuple[list[str], int]:
    user, group = owner
    try:
        os.fchown(fd, user, group)
    except PermissionError:
        notes = [f"the owner could not be kept: it was {user}"]
        try:
            os.fchown(fd, -1, group)
        except PermissionError:
            # What one group was allowed is not for another.
            return [*notes, f"the group could not be kept: it was {group}"], mode & ~(stat.S_ISGID | 0o070)
        return notes, mode
    return [], mode
