"""Read open files, whole or by pieces of text, copy their metadata, and write temporaries."""

import codecs
import errno
import math
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Self

from agentfs.base import call_context
from agentfs.errors import ConflictError, NotDirectoryError, NotFoundError
from agentfs.fs import oserrors, syscalls
from agentfs.fs.context import RootContext, file_clock, is_settled, is_unchanged
from agentfs.fs.node import (
    DirectoryNode,
    FileNode,
    LinkNode,
    Metadata,
    MovedNode,
    Node,
    checked_pieces,
    revision_and_size,
    revision_of,
    type_of,
)
from agentfs.fs.path import quote
from agentfs.fs.resolve import Place, resolve_real
from agentfs.text.decoding import UNKNOWN_8BIT

_MAX_ATTEMPTS = 20  # at opening a path that other programs keep replacing
BLOCK = 256 * 1024  # bytes read at once, which fit into a processor's cache
_CHUNK = 64 * 1024  # bytes in each read; deadlines are checked between reads


class OpenFile:
    """An open regular file, with its displayed and real path, and its status when it was opened."""

    __slots__ = ("fd", "path", "real_path", "stat")

    def __init__(self, fd: int, status: os.stat_result, path: str, real_path: str) -> None:
        self.fd = fd
        self.stat = status
        self.path = path
        self.real_path = real_path

    def read(self, limit: int) -> bytes:
        """Return the first bytes of the file."""
        return self.read_at(0, limit)

    def read_at(self, position: int, size: int) -> bytes:
        """Return up to `size` bytes from a position."""
        return b"".join(self._chunks(position, size))

    def pieces(self, max_bytes: int) -> Iterator[bytes]:
        """Yield the whole content. Raises TooLargeError if it has more than `max_bytes`."""
        size = self.stat.st_size
        if size <= max_bytes:
            size = 0
            for chunk in self._chunks(0, max_bytes + 1):
                size += len(chunk)
                yield chunk
        if size > max_bytes:
            raise oserrors.too_large(self.path, size, max_bytes)

    def read_whole(self, max_bytes: int) -> bytes:
        """Return the whole content. Raises TooLargeError if it has more than `max_bytes`."""
        return b"".join(self.pieces(max_bytes))

    def _chunks(self, position: int, left: int) -> Iterator[bytes]:
        # One byte more than the reported size, to notice a file that grows or reports no size.
        size = min(max(self.stat.st_size + 1 - position, 1), _CHUNK)
        try:
            while left > 0 and (chunk := os.pread(self.fd, min(left, size), position)):
                yield chunk
                call_context.check()
                position, left, size = position + len(chunk), left - len(chunk), _CHUNK
        except OSError as error:
            raise oserrors.from_oserror(error, self.path) from None

    def changed(self) -> bool:
        """Return True if the size or times have changed since the file was opened."""
        return not is_unchanged(self.stat, os.fstat(self.fd))

    def close(self) -> None:
        """Close the file. It may be closed twice."""
        fd, self.fd = self.fd, syscalls.CLOSED
        syscalls.close(fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def text_pieces(
    file: OpenFile, encoding: str, position: int, stop: float = math.inf, errors: str = "strict"
) -> Iterator[tuple[int, str]]:
    """Decode a file from a position on; yield each piece of text with the position after it."""
    decoder = incremental_decoder(encoding, errors)
    last = False
    while not last and position < stop:
        raw = file.read_at(position, int(min(BLOCK, stop - position)))
        position += len(raw)
        last = len(raw) < BLOCK and position < stop
        yield position, decoder.decode(raw, last)


def incremental_decoder(encoding: str, errors: str = "strict") -> codecs.IncrementalDecoder:
    """Return a decoder for a codec name of `agentfs.text`."""
    name = "latin-1" if encoding == UNKNOWN_8BIT else encoding
    return codecs.getincrementaldecoder(name)(errors)


def join_returns(texts: Iterator[str]) -> Iterator[str]:
    r"""Yield the text in pieces that do not split `\r\n`."""
    pending = ""
    for piece in texts:
        text = pending + piece
        pending = "\r" if text.endswith("\r") else ""
        if text != pending:
            yield text.removesuffix("\r")
    if pending:
        yield pending


def open_regular(
    context: RootContext,
    fd: int,
    path: str,
    real_path: str,
    *,
    links: Sequence[str] = (),
    check_access: bool = True,
) -> OpenFile:
    """Make an `OpenFile` that owns a descriptor; close the descriptor if the file may not be read.

    `links` are the paths of the links that led to the file. A protected name counts for them too.
    """
    try:
        status = os.fstat(fd)
        context.check_readable(status, path, (real_path, *links))
        if check_access and context.access is not None:
            context.access.check_read(real_path)
    except BaseException as error:
        syscalls.close(fd)
        if isinstance(error, OSError):
            raise oserrors.from_oserror(error, path) from None
        raise
    return OpenFile(fd, status, path, real_path)


def node_at(
    context: RootContext, real_path: str, max_bytes: int | None, *, is_kept: bool = True
) -> Node | None:
    """Return the node at a real path, or None if it does not exist; see `node_in`."""
    try:
        with resolve_real(context, real_path, create_parents=True) as resolved:  # no error if missing
            return None if resolved.missing else node_in(context, resolved, max_bytes, is_kept=is_kept)
    except (NotFoundError, NotDirectoryError):
        return None


def node_in(
    context: RootContext, place: Place, max_bytes: int | None, *, is_kept: bool = True
) -> Node | None:
    """Return the node at a place, or None if it does not exist. A link is not followed.

    With `max_bytes` None, nothing is read: what is not a directory becomes a `MovedNode`. A content that is
    not kept in memory is read from the disk again when it is needed, and must then be the same.

    Raises `too_large` for a file of more than `max_bytes`, and `not_regular` for a FIFO, socket or device.
    """
    parent, name = place.parent, place.name
    for _ in range(_MAX_ATTEMPTS):
        try:
            status = syscalls.lstat(parent, name)
            if stat.S_ISDIR(status.st_mode):
                mode = stat.S_IMODE(status.st_mode)
                return DirectoryNode(mode, Metadata(mode, (status.st_uid, status.st_gid)))
            if max_bytes is None:
                return MovedNode(type_of(status.st_mode))
            if stat.S_ISLNK(status.st_mode):
                return LinkNode(syscalls.readlink(parent, name))
            if not stat.S_ISREG(status.st_mode):
                raise oserrors.not_regular(place.display_path, status.st_mode)
            fd = syscalls.open_file(parent, name)
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno in {errno.ELOOP, errno.ENOTDIR, errno.EINVAL}:
                continue  # replaced between lstat and open
            raise oserrors.from_oserror(error, place.display_path) from None
        clock = file_clock()
        with open_regular(context, fd, place.display_path, place.real_path) as file:
            seen = file.stat
            mode = seen.st_mode & 0o777  # a replacement does not get the setuid and setgid bits
            if is_kept:
                data = file.read_whole(max_bytes)
                facts = revision_of(data), len(data)
                pieces: Callable[[], Iterator[bytes]] = partial(iter, (data,))
            else:
                facts = revision_and_size(file.pieces(max_bytes))
                pieces = read_again(context, place.real_path, max_bytes, facts[0])
        is_same = (seen.st_ino, seen.st_mtime_ns) == (status.st_ino, status.st_mtime_ns)
        settled = is_same and is_settled(seen.st_ctime_ns, clock)
        return FileNode(mode, *facts, pieces, Metadata(mode, (seen.st_uid, seen.st_gid)), seen, settled)
    raise oserrors.kept_changing(place.display_path)


def read_again(
    context: RootContext, real_path: str, max_bytes: int, digest: str
) -> Callable[[], Iterator[bytes]]:
    """Return a function that reads a file; it raises ConflictError if the content is another by then."""

    def pieces() -> Iterator[bytes]:
        shown = context.displayed(real_path)
        message = f"{quote(shown)} was changed by another program during the call; nothing was applied."
        error = ConflictError(message, hint="Try again.", details={"path": shown})
        try:
            with resolve_real(context, real_path) as resolved:
                fd = syscalls.open_file(resolved.parent, resolved.name)
        except (NotFoundError, OSError):
            raise error from None
        with open_regular(context, fd, shown, real_path) as file:
            yield from checked_pieces(file.pieces(max_bytes), digest, lambda _: error)

    return pieces


def create_temporary(
    handle: int, name: str, node: FileNode, metadata: Metadata | None, *, is_synced: bool = True
) -> list[str]:
    """Create a temporary for a node; return notes if its owner could not be kept.

    Without `metadata` the umask decides its permissions. If this fails, the temporary may exist.
    """
    fd = syscalls.create_file(handle, name, node.mode if metadata is None else 0o600)
    try:
        for piece in node.pieces():
            syscalls.write_all(fd, piece)
        notes = [] if metadata is None else apply_metadata(fd, metadata._replace(mode=node.mode))
        if is_synced:
            os.fsync(fd)
    except BaseException:
        syscalls.close(fd)
        raise
    os.close(fd)
    return notes


def notes_on_replacing(replaced: os.stat_result) -> list[str]:
    """Return notes on what of a file its replacement does not have."""
    notes: list[str] = []
    if replaced.st_nlink > 1:
        notes.append(f"the file had {replaced.st_nlink} hard links; the other names keep the old content")
    if replaced.st_mode & (stat.S_ISUID | stat.S_ISGID):
        notes.append("the setuid and setgid bits were dropped")
    return notes


def apply_metadata(fd: int, metadata: Metadata) -> list[str]:
    """Set owner and mode of a file or directory; return notes if the owner could not be kept."""
    notes: list[str] = []
    mode, owner = metadata
    if owner is not None:
        now = os.fstat(fd)
        if (now.st_uid, now.st_gid) != owner:
            notes, mode = _change_owner(fd, owner, mode)
    os.fchmod(fd, mode)
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
            # Another group must not get the rights of the old one.
            return [*notes, f"the group could not be kept: it was {group}"], mode & ~(stat.S_ISGID | 0o070)
        return notes, mode
    return [], mode
