"""An open file and an open directory."""

import errno
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from types import TracebackType
from typing import Self, TypeVar

from agentfs import call_context
from agentfs.errors import AccessError, TooLargeError
from agentfs.fs import oserrors, syscalls
from agentfs.fs.context import RootContext
from agentfs.fs.entry import entry_of, link_target
from agentfs.fs.path import display_name, quote
from agentfs.fs.read_buffer import not_regular
from agentfs.results import Entry

# Asked of the system at once: a slow file is left after no more than this.
_CHUNK = 64 * 1024

Verdict = TypeVar("Verdict")


class OpenFile:
    """A regular file, open for reading. A context manager.

    Attributes:
        fd: The descriptor.
        stat: What the system says of it, taken from the descriptor.
        path: The path as it was requested, from the root on, fit to show.
        real_path: The path of the file itself, links resolved, as the system spells it.
    """

    __slots__ = ("fd", "path", "real_path", "stat")

    def __init__(self, fd: int, found: os.stat_result, path: str, real_path: str) -> None:
        self.fd = fd
        self.stat = found
        self.path = path
        self.real_path = real_path

    def read(self, limit: int) -> bytes:
        """Return the first bytes of the file."""
        chunks: list[bytes] = []
        got = 0
        # One byte more than the size that is claimed: a file that grows, or claims nothing, shows itself so.
        want = min(self.stat.st_size + 1, _CHUNK)
        try:
            os.lseek(self.fd, 0, os.SEEK_SET)
        except OSError as error:
            raise oserrors.from_oserror(error, self.path) from None
        while got < limit:
            call_context.check()
            try:
                chunk = os.read(self.fd, min(limit - got, want))
            except OSError as error:
                raise oserrors.from_oserror(error, self.path) from None
            if not chunk:
                break
            chunks.append(chunk)
            got += len(chunk)
            want = _CHUNK
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    def read_whole(self, max_bytes: int) -> bytes:
        """Return the content of a file that is to be changed; TooLargeError for more than `max_bytes`."""
        size = self.stat.st_size
        data = self.read(max_bytes + 1) if size <= max_bytes else b""
        size = max(size, len(data))
        if size > max_bytes:
            raise TooLargeError(
                f"{quote(self.path)} has {size} bytes, and {max_bytes} is the most that a file to be changed"
                " may have.",
                details={"path": self.path, "size": size, "limit": max_bytes},
            )
        return data

    def read_at(self, position: int, size: int) -> bytes:
        """Return bytes from anywhere in the file."""
        buffer = bytearray(size)
        return bytes(memoryview(buffer)[: self.read_into(position, memoryview(buffer))])

    def read_into(self, position: int, buffer: memoryview) -> int:
        """Fill a buffer with bytes from anywhere in the file."""
        got = 0
        while got < len(buffer):
            call_context.check()
            try:
                count = _read_at(self.fd, position + got, buffer[got : got + _CHUNK])
            except OSError as error:
                raise oserrors.from_oserror(error, self.path) from None
            if not count:
                break
            got += count
        return got

    def changed(self) -> bool:
        """Tell whether the file has changed since it was opened, by its size and times."""
        return _facts(os.fstat(self.fd)) != _facts(self.stat)

    def close(self) -> None:
        """Close the file; again is harmless."""
        fd, self.fd = self.fd, -1
        if fd >= 0:
            with suppress(OSError):  # nothing was written that could be lost
                os.close(fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Directory:
    """An open directory. A context manager.

    Attributes:
        path: The path as it was requested, from the root on, fit to show; "" for the root.
        real_path: The path of the directory itself, links resolved, as the system spells it; "" for the root.
        handle: The descriptor.
    """

    __slots__ = ("_context", "handle", "path", "real_path")

    def __init__(self, context: RootContext, handle: int, path: str, real_path: str) -> None:
        self._context = context
        self.handle = handle
        self.path = path
        self.real_path = real_path

    def scan(self) -> list[os.DirEntry[str]]:
        """Return what is in the directory, in the system's order."""
        try:
            with os.scandir(self.handle) as found:
                return list(found)
        except OSError as error:
            raise oserrors.from_oserror(error, self.path or ".") from None

    def scan_parts(self, size: int) -> Iterator[list[os.DirEntry[str]]]:
        """Yield what is in the directory in parts, so that a giant one need not be in memory whole."""
        try:
            with os.scandir(self.handle) as found:
                while part := list(islice(found, size)):
                    yield part
                    if len(part) < size:
                        return
        except OSError as error:
            raise oserrors.from_oserror(error, self.path or ".") from None

    def target_status(self, found: os.DirEntry[str]) -> os.stat_result | None:
        """Return the status of a link's target; None where that is not inside, or no link is followed."""
        return (
            link_target(self._context, self._real_child(found.name)).status if self._context.follow else None
        )

    def real_path_of(self, found: os.DirEntry[str]) -> str:
        """Return the real path of a name, links inside resolved."""
        own = self._real_child(found.name)
        if not found.is_symlink() or not self._context.follow:
            return own
        return link_target(self._context, own).real_path or own

    def entry(self, found: os.DirEntry[str]) -> Entry:
        """Return the typed entry of what a scan found."""
        name = found.name
        try:
            status = found.stat(follow_symlinks=False)
        except OSError as error:
            raise oserrors.from_oserror(error, self._child(name)) from None
        return entry_of(self._context, self._child(name), self._real_child(name), name, status)

    def open_directory(self, name: str) -> "Directory":
        """Open a directory in this one; a link is not followed."""
        _check_name(name)
        try:
            handle = syscalls.open_directory(self.handle, name)
        except OSError as error:
            raise oserrors.from_oserror(error, self._child(name)) from None
        return Directory(self._context, handle, self._child(name), self._real_child(name))

    def open_file(self, name: str) -> OpenFile:
        """Open a regular file such as a rule file; a link is not followed.

        Rules that deny reading apply. What the call was allowed to show does not: rule files lie above too.
        """
        _check_name(name)
        try:
            fd = syscalls.open_file(self.handle, name)
        except OSError as error:
            raise oserrors.from_oserror(error, self._child(name)) from None
        opened = open_regular(
            self._context, fd, self._child(name), self._real_child(name), check_access=False
        )
        access = self._context.access
        if access is not None and access.denies_reading(opened.real_path):
            opened.close()
            raise oserrors.protected(opened.path, opened.real_path)
        return opened

    def read_files(
        self,
        names: Sequence[str],
        fill: Callable[[int], int],
        judge: Callable[[int], Verdict | None],
        *,
        linked: bool = True,
    ) -> Iterator[tuple[str, Verdict | OSError | AccessError]]:
        """Read one regular file of this directory after the other, and yield those that are not passed over.

        Links are not followed. What a scan called a regular file is one when it is yielded, whatever was
        there while it was read.

        Args:
            names: Single names, as `scan` gave them for regular files.
            fill: Given a descriptor, reads what is wanted of the file, and returns a number for `judge`; such
                as `Contents.fill`.
            judge: Given that number, returns None to pass the file over, or what to yield for it.
            linked: Whether a protected file may have a second name, so that each file is identified
                before it is read; see `Root.has_linked_secrets`.

        Yields:
            The name, and what was judged; or the error for a file that cannot or must not be read.
        """
        handle, open_file, close = self.handle, syscalls.open_file, os.close
        unreadable = self._context.unreadable.within(self.real_path)
        covers = None if unreadable.none_covered(names) else unreadable.covers
        access = self._context.access
        for name in names:
            outcome: Verdict | OSError | AccessError | None
            try:
                if covers is not None and covers(name):
                    raise oserrors.protected(
                        self._child(name), self._context.display_path(self._real_child(name))
                    )
                if access is not None:
                    access.check_read(self._real_child(name))
                if "/" in name:
                    raise OSError(errno.EINVAL, "not a single name", name)  # noqa: TRY301 - a call takes longer
                fd = open_file(handle, name)
                try:
                    if linked:
                        self._check_shown(fd, name)
                    outcome = judge(fill(fd))
                    if outcome is not None:
                        self._check_shown(fd, name)
                finally:
                    close(fd)
            except (OSError, AccessError) as error:
                outcome = error
            if outcome is not None:
                yield name, outcome

    def _protected(self, name: str) -> AccessError:
        return oserrors.protected(self._child(name), self._context.display_path(self._real_child(name)))

    def _check_shown(self, fd: int, name: str) -> None:
        """Raise for what is no regular file, or a protected one under another name."""
        status = os.fstat(fd)
        if not_regular(status):
            raise OSError(errno.EINVAL, "not a regular file", name)
        if status.st_nlink > 1 and self._context.is_hard_link_to(status, self._context.unreadable):
            raise self._protected(name)

    def close(self) -> None:
        """Close the directory; again is harmless."""
        handle, self.handle = self.handle, -1
        if handle != -1:
            syscalls.close(handle)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _child(self, name: str) -> str:
        displayed = display_name(name)
        return f"{self.path}/{displayed}" if self.path else displayed

    def _real_child(self, name: str) -> str:
        return f"{self.real_path}/{name}" if self.real_path else name


def open_regular(
    context: RootContext, fd: int, path: str, real_path: str, *, check_access: bool = True
) -> OpenFile:
    """Return an open file around a descriptor, or close it and raise when its content is protected."""
    try:
        found = os.fstat(fd)
    except OSError as error:
        os.close(fd)
        raise oserrors.from_oserror(error, path) from None
    if not_regular(found):
        os.close(fd)
        raise oserrors.not_regular(path, found.st_mode)
    if context.unreadable.covers(real_path) or (
        found.st_nlink > 1 and context.is_hard_link_to(found, context.unreadable)
    ):
        os.close(fd)
        raise oserrors.protected(path, context.display_path(real_path))
    if check_access and context.access is not None:
        try:
            context.access.check_read(real_path)
        except BaseException:
            os.close(fd)
            raise
    return OpenFile(fd, found, path, real_path)


def _facts(found: os.stat_result) -> tuple[int, int, int]:
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _read_at(fd: int, position: int, buffer: memoryview) -> int:
    if hasattr(os, "preadv"):
        return os.preadv(fd, [buffer], position)
    os.lseek(fd, position, os.SEEK_SET)
    chunk = os.read(fd, len(buffer))
    buffer[: len(chunk)] = chunk
    return len(chunk)


def _check_name(name: str) -> None:
    # The kernel follows links in all but the last part of a name, and `..` would leave the directory.
    if "/" in name or "\0" in name or name in {"", "..", "."}:
        msg = f"{name!r} is not a single name"
        raise ValueError(msg)


def revision_of(data: bytes) -> str:
    """Return the revision of a content: 12 hex digits of its hash."""
    from hashlib import blake2b  # noqa: PLC0415 - it loads OpenSSL, which an import of agentfs should not

    return blake2b(data, digest_size=6).hexdigest()


def revision_of_stat(found: os.stat_result) -> str:
    """Return the revision of a file too large to hash, made from what the system says of it."""
    facts = f"{found.st_dev}:{found.st_ino}:{found.st_size}:{found.st_mtime_ns}:{found.st_ctime_ns}"
    return "~" + revision_of(facts.encode())


def digest_of(data: bytes) -> str:
    """Return the name of a content: 32 hex digits of its hash."""
    from hashlib import blake2b  # noqa: PLC0415 - it loads OpenSSL, which an import of agentfs should not

    return blake2b(data, digest_size=16).hexdigest()
