"""`Directory`: an open directory that lists its entries and reads its files."""

import errno
import os
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any, Self, TypeAlias, TypeVar

from agentfs.errors import AccessError, AgentFSError, LinkLoopError, NotFoundError
from agentfs.fs import oserrors, syscalls
from agentfs.fs.context import RootContext
from agentfs.fs.file import OpenFile, open_regular
from agentfs.fs.node import type_of
from agentfs.fs.path import ParsedPath, display_name
from agentfs.fs.resolve import ResolvedPath
from agentfs.results import Entry

_Outcome = TypeVar("_Outcome")


DirEntry: TypeAlias = os.DirEntry[str]  # or another object with these methods, such as a kept entry


def entry_of(context: RootContext, path: str, real_path: str, name: str, status: os.stat_result) -> Entry:
    """Return the `Entry` of a path, made from its status."""
    kind = type_of(status.st_mode)
    is_dir, target = kind == "directory", None
    size = status.st_size if kind == "file" else None
    protected = context.unreadable.covers(real_path)
    if kind == "symlink":
        target, found, leads_through = link_target(context, real_path)
        if context.follow and found is not None:
            is_dir = stat.S_ISDIR(found.st_mode)
            size = found.st_size if stat.S_ISREG(found.st_mode) else None
        protected = protected or any(map(context.unreadable.covers, leads_through))
    displayed = display_name(name)
    _, dot, extension = displayed.lstrip(".").rpartition(".")
    ext = extension.lower() if dot else ""
    mount = context.trees.mark(real_path) if context.trees.others else None
    return Entry(path, displayed, kind, is_dir, size, status.st_mtime, ext, target, protected, mount)


def link_target(context: RootContext, real_path: str) -> tuple[str | None, os.stat_result | None, list[str]]:
    """Follow a link to its end. No directory in `real_path` may be a link.

    Returns the target as written, or None if it leads out of the root; and, if its final file lies inside the
    root, the status, and the real path with those of all links.
    """
    target: str | None = None
    resolved = ResolvedPath(context, real_path, ParsedPath(tuple(real_path.split("/"))), follow=True)
    try:
        with resolved:
            written = resolved.target()
            if written is None:  # another program has replaced the link
                return None, None, []
            target = display_name(written)
            resolved.follow_last_link()
            return target, resolved.stat(), [resolved.real_path, *resolved.through_links]
    except (NotFoundError, LinkLoopError):
        return target, None, []
    except (AgentFSError, OSError):
        return None, None, []


def regular_status(fd: int, name: str) -> os.stat_result:
    """Return the status of an open file. Raises OSError for a special file."""
    status = os.fstat(fd)
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "not a regular file", name)
    return status


class Directory:
    """An open directory with its displayed path and its real path; "" is the root."""

    __slots__ = ("_context", "_handle", "path", "real_path")

    # A cache for walks, cleared when the listing changes; None if the directory is not watched.
    derived: dict[Any, Any] | None = None

    def __init__(self, context: RootContext, handle: int, path: str, real_path: str) -> None:
        self._context = context
        self._handle = handle
        self.path = path
        self.real_path = real_path

    def is_in_view(self, context: RootContext) -> bool:
        """Return True if it reads and names each path as a view of the root does."""
        return self._context.is_like(context)

    @property
    def handle(self) -> int:
        """The descriptor; -1 if it is closed."""
        return self._handle

    def scan(self) -> list[DirEntry]:
        """Return the entries in the system's order."""
        return [entry for part in self.scan_parts(sys.maxsize) for entry in part]

    def scan_parts(self, size: int) -> Iterator[list[DirEntry]]:
        """Yield the entries in lists of up to `size`, so that a huge directory need not fit in memory."""
        try:
            with self._context.trees.scan(self._handle, self.real_path) as entries:
                while True:
                    part: list[DirEntry] = list(islice(entries, size))
                    if part:
                        yield part
                    if len(part) < size:
                        return
        except OSError as error:
            raise oserrors.from_oserror(error, self.path or ".") from None

    def typed_names(self) -> list[tuple[str, str]]:
        """Return the names with their types, one of "fdlo", or "?" if unknown."""
        try:
            return [*self._context.trees.typed_names(self.handle, self.real_path)]
        except OSError as error:
            raise oserrors.from_oserror(error, self.path or ".") from None

    def has(self, name: str) -> bool:
        """Return True if a name exists in the directory, without listing it."""
        with suppress(OSError):
            self._call(syscalls.lstat, name)
            return True
        return False

    def target_status(self, listed: DirEntry) -> os.stat_result | None:
        """Return the status of a link's target; None if it is outside the root or links are not followed."""
        if not self._context.follow:
            return None
        return link_target(self._context, self._real_child(listed.name))[1]

    def path_of(self, listed: DirEntry) -> str:
        """Return the displayed path of an entry."""
        return self._child(listed.name)

    def real_path_of(self, listed: DirEntry) -> str:
        """Return the real path of an entry, following a link that stays inside the root."""
        own = self._real_child(listed.name)
        if not listed.is_symlink() or not self._context.follow:
            return own
        return next(iter(link_target(self._context, own)[2]), own)

    def entry(self, listed: DirEntry) -> Entry:
        """Return the `Entry` of a listed entry."""
        name = listed.name
        try:
            status = listed.stat(follow_symlinks=False)
        except OSError as error:
            raise oserrors.from_oserror(error, self._child(name)) from None
        return entry_of(self._context, self._child(name), self._real_child(name), name, status)

    def open_directory(self, name: str) -> "Directory":
        """Open a directory in this one; links are not followed."""
        handle = self._open(syscalls.open_directory, name)
        return Directory(self._context, handle, self._child(name), self._real_child(name))

    def enter(self, listed: DirEntry) -> "Directory":
        """Open a directory in this one for a walk; links are not followed."""
        return self.open_directory(listed.name)

    def open_file(self, name: str) -> OpenFile:
        """Open a regular file such as a rule file; links are not followed.

        Permission rules that deny a path apply. Rules that allow paths are not needed, because rule files may
        lie above these paths.
        """
        fd = self._open(syscalls.open_file, name)
        path, real_path = self._child(name), self._real_child(name)
        file = open_regular(self._context, fd, path, real_path, check_access=False)
        if not self._context.may_read(real_path):
            file.close()
            raise oserrors.protected(path, real_path)
        return file

    def _open(self, open_name: Callable[[int, str], int], name: str) -> int:
        # The kernel follows links in all parts except the last, and `..` leaves the directory.
        if "/" in name or "\0" in name or name in {"", "..", "."}:
            msg = f"{name!r} is not a single name"
            raise ValueError(msg)
        try:
            return self._call(open_name, name)
        except OSError as error:
            raise oserrors.from_oserror(error, self._child(name)) from None

    def read_files(
        self, entries: Sequence[DirEntry], read: Callable[[Any], _Outcome | None]
    ) -> Iterator[tuple[DirEntry, _Outcome | OSError | AccessError]]:
        """Read files one after the other; yield each outcome that is not None, or the error of the file.

        Special files have no outcome, even if another program puts one in place of a regular file.

        Args:
            entries: The files to read.
            read: Gets a descriptor, or a text in memory, and returns the outcome.
        """
        protected = self._context.unreadable.covered(self.real_path, [entry.name for entry in entries])
        access = self._context.access
        for entry in entries:
            name = entry.name
            outcome: _Outcome | OSError | AccessError | None
            try:
                if name in protected:
                    raise self._protected(name)
                if access is not None:
                    access.check_read(self._real_child(name))
                if "/" in name:
                    raise OSError(errno.EINVAL, "not a single name", name)  # noqa: TRY301 - as above
                fd = self._call(syscalls.open_file, name)
                try:
                    outcome = read(fd)
                    if outcome is not None:
                        regular_status(fd, name)
                finally:
                    os.close(fd)
            except (OSError, AccessError) as error:
                outcome = error
            if outcome is not None:
                yield entry, outcome

    def _call(self, function: Callable[[int, str], _Outcome], name: str) -> _Outcome:
        """Call a function with this directory and a name in it."""
        return self._context.trees.call(function, self.handle, self.real_path, name)

    def _protected(self, name: str) -> AccessError:
        return oserrors.protected(self._child(name), self._context.displayed(self._real_child(name)))

    def close(self) -> None:
        """Close the directory. It may be closed twice."""
        handle, self._handle = self._handle, syscalls.CLOSED
        syscalls.close(handle)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _child(self, name: str) -> str:
        displayed = display_name(name)
        return f"{self.path}/{displayed}" if self.path else displayed

    def _real_child(self, name: str) -> str:
        return f"{self.real_path}/{name}" if self.real_path else name
