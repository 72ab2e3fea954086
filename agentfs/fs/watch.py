"""The kept tree of a watched root: listings and texts, brought up to date at the beginning of each search.

A directory is watched before it is listed, and listed before its files are read, so that what changes after
that is among the events of a later search. Where no event can come, a directory is listed again by each
search, and the text of a file is used only while the file has the status with which it was read.
"""

import errno
import os
import select
import struct
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from agentfs import call_context
from agentfs.errors import AccessError, AgentFSError
from agentfs.fs import inotify, syscalls
from agentfs.fs.context import TIME_RESOLUTION, RootContext
from agentfs.fs.directory import Directory
from agentfs.fs.file import BINARY, read_start
from agentfs.fs.ignore_files import RULE_FILES
from agentfs.fs.path import ParsedPath
from agentfs.fs.resolve import ResolvedPath
from agentfs.fs.texts import Block, TextStore
from agentfs.results import WatchReport

_MAX_NAMES = 1_000_000
_MAX_HANDLES = 32  # directories that are open at a time
_WAIT_SECONDS = 0.05  # for another thread's search, between two checks
_FILES_PER_CHECK = 32
_MOUNTS = "/proc/self/mountinfo"
# File systems, by the type that statfs reports, in which every change comes through this kernel: ext, XFS,
# Btrfs, tmpfs, ramfs, F2FS, ZFS, overlay, bcachefs, JFS, SquashFS, EROFS.
_LOCAL = frozenset({
    0xEF53, 0x58465342, 0x9123683E, 0x01021994, 0x858458F6, 0xF2F52010, 0x2FC12FC1, 0x794C7630, 0xCA451A4E,
    0x3153464A, 0x73717368, 0xE0F5E1E2,
})  # fmt: skip
_SIGNATURE = struct.Struct("QQQqqq")
_UNKNOWN = (0, 0)  # the device and inode of a directory that has not been opened

_O = TypeVar("_O")


class KeptEntry:
    """A name in a kept directory, as `os.DirEntry`, and what is kept of its content."""

    __slots__ = ("block", "content", "directory", "index", "name", "signature", "type")

    def __init__(self, name: str, type_: str, directory: "KeptDirectory") -> None:
        self.name = name
        self.type = type_  # one of "fdlo", or "?" where the system did not tell
        self.directory = directory
        self.block: Block | None = None  # where its text is
        self.index = 0
        self.content = ""  # what a search has found its text to be
        self.signature = b""  # the status with which it was read; b"" when nothing is kept

    def is_file(self, *, follow_symlinks: bool = False) -> bool:
        """Return whether it is a regular file."""
        del follow_symlinks
        return self._type() == "f"

    def is_dir(self, *, follow_symlinks: bool = False) -> bool:
        """Return whether it is a directory."""
        del follow_symlinks
        return self._type() == "d"

    def is_symlink(self) -> bool:
        """Return whether it is a link."""
        return self._type() == "l"

    def stat(self, *, follow_symlinks: bool = False) -> os.stat_result:
        """Return its status as it is now."""
        del follow_symlinks
        return syscalls.lstat(self.directory.tree.handle(self.directory), self.name)

    def _type(self) -> str:
        if self.type == "?":
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), self.name)
        return self.type

    @property
    def is_kept(self) -> bool:
        """Whether its text is kept, or that it is binary."""
        return self.block is not None or self.content == BINARY

    def keep_as_binary(self) -> None:
        """Drop the text, and keep that it is binary."""
        self.directory.tree.texts.discard(self)
        self.content = BINARY

    @property
    def text(self) -> memoryview:
        """The kept text."""
        return self.directory.tree.texts.view(self)


class KeptDirectory:
    """A directory of the kept tree."""

    __slots__ = (
        "children",
        "entries",
        "identity",
        "parent",
        "prefix",
        "real_path",
        "reason",
        "tree",
        "watch",
    )

    def __init__(self, tree: "Watch", real_path: str, parent: "KeptDirectory | None") -> None:
        self.tree = tree
        self.real_path = real_path
        self.prefix = f"{real_path}/" if real_path else ""
        self.parent = parent
        self.children: dict[str, KeptDirectory] = {}
        self.entries: dict[str, KeptEntry] | None = None  # in the system's order; None before it is listed
        self.watch = -1  # the number of its watch; -1 for none
        self.reason = ""  # why there is none
        self.identity: tuple[int, int] = _UNKNOWN


class WatchedDirectory(Directory):
    """A directory whose listing and texts are taken from a kept tree, during one call."""

    __slots__ = ("kept",)

    def __init__(self, context: RootContext, path: str, kept: KeptDirectory) -> None:
        super().__init__(context, -1, path, kept.real_path)
        self.kept = kept

    @property
    def is_watched(self) -> bool:
        """Whether every change of the listing is noticed."""
        return self.kept.watch >= 0

    @property
    def handle(self) -> int:
        """A descriptor of the directory, which the tree closes."""
        return self.kept.tree.handle(self.kept)

    def scan_parts(self, size: int) -> Iterator[list[Any]]:
        """Yield what is in the directory in parts."""
        entries = list(self.kept.tree.entries(self.kept).values())
        for first in range(0, len(entries), size):
            yield entries if len(entries) <= size else entries[first : first + size]

    def enter(self, name: str) -> Directory:
        """Open a directory in this one to walk through it; a link is not followed."""
        child = self.kept.tree.child(self.kept, name)
        if child is None:
            return self.open_directory(name)
        return WatchedDirectory(self._context, self._child(name), child)

    def read_files(
        self, names: Sequence[str], read: Callable[[Any], _O | None], *, linked: bool = True
    ) -> Iterator[tuple[str, _O | OSError | AccessError]]:
        """Read one regular file after the other, as `Directory`; `read` is given a kept entry, or an fd."""
        del linked
        kept = self.kept
        entries = [(kept.entries or {}).get(name) or KeptEntry(name, "f", kept) for name in names]
        found = kept.tree.read(self._context, entries, read)
        for entry, outcome in found:
            yield entry.name, outcome

    def read_new(self, entry: KeptEntry, read: Callable[[Any], _O | None]) -> _O | None:
        """Read a file of which nothing is kept, and keep its text if that is possible."""
        name = entry.name
        if self._context.unreadable.covers(self._real_child(name)):
            raise self._protected(name)
        if self._context.access is not None:
            self._context.access.check_read(self._real_child(name))
        fd = syscalls.open_file(self.handle, name)
        try:
            status = self._check_readable(fd, name)
            outcome = read(entry if self.kept.tree.load(entry, fd, status) else fd)
            if outcome is not None:
                self._check_readable(fd, name)
        finally:
            syscalls.close(fd)
        return outcome

    def close(self) -> None:
        """Leave the directory open for the rest of the call."""


class Watch:
    """The kept tree of a root. Its methods are called within `call`."""

    def __init__(self, context: RootContext, path: str, max_bytes: int, max_file: int) -> None:
        self._context = context
        self._path = path
        self.max_file = max_file  # bytes of the largest text that is kept
        self._lock = threading.RLock()
        self._depth = 0
        self._closed = self._broken = self._ready = False
        self._process = -1, -1
        self._inotify: inotify.Inotify | None = None
        self._mounts: _Mounts | None = None
        self.calls = 0
        self._resets = -1
        self.texts = TextStore(max_bytes)
        self.memo: dict[Hashable, Any] = {}  # what callers derived from listings; dropped when one changes
        self._reset()

    @contextmanager
    def call(self) -> Generator[bool]:
        """Bring the tree up to date and keep other threads out; False where there is no time for it."""
        if not self._acquire():
            yield False
            return
        try:
            if not self._depth:
                self._ready = not self._closed and self._refresh()
            self._depth += 1
            try:
                yield self._ready
            except BaseException as error:
                # It may have come in the middle of a change of the tree.
                self._broken |= not isinstance(error, (Exception, call_context.Cancelled))
                self._broken |= isinstance(error, MemoryError)
                raise
            finally:
                self._depth -= 1
                if not self._depth:
                    self._close_handles()
                    if self._closed:
                        self._drop_all()
        finally:
            self._lock.release()

    def _acquire(self) -> bool:
        until = time.monotonic() + _half_of_time_left()
        while not self._lock.acquire(timeout=_WAIT_SECONDS):
            call_context.step(0)
            if time.monotonic() > until:
                return False
        return True

    def close(self) -> None:
        """Give everything back; a call under way ends in peace."""
        self._closed = True
        self.forget()

    def forget(self) -> None:
        """Drop all that is kept; it is read again when it is needed."""
        self._broken = True
        if self._lock.acquire(blocking=False):
            try:
                if not self._depth:
                    self._drop_all()
            finally:
                self._lock.release()

    def _drop_all(self) -> None:
        self._close_handles()
        self.texts.clear()
        self.memo.clear()
        if self._inotify is not None:
            self._inotify.close()
        if self._mounts is not None:
            self._mounts.close()
        self._inotify = self._mounts = None
        self._handles: dict[KeptDirectory, int] = {}
        self._by_watch: dict[int, KeptDirectory] = {}
        self._stale: set[KeptDirectory] = set()
        self._suspect: set[KeptDirectory] = set()  # may have become inaccessible
        self._linked: set[KeptEntry] = set()  # files with several links, of which something is kept
        self._appeared: dict[tuple[KeptDirectory, str], bool] = {}  # new names, and whether written to since
        self._moving: dict[int, bool] = {}  # new names that were renamed away, by cookie
        self._compares_texts = False  # whether a text may have changed without an event
        self._local: dict[int, str] = {}  # why a device cannot be watched; "" where it can
        self._names = 0
        self._top = KeptDirectory(self, "", None)

    def _reset(self) -> None:
        """Begin anew."""
        self._drop_all()
        self._broken = False
        self._resets += 1
        self._process = os.getpid(), os.geteuid()
        self._cause = ""
        try:
            self._mounts = _Mounts(self._path)
            self._inotify = inotify.Inotify()
        except OSError as error:
            self._inotify = None
            self._cause = (
                f"no events: {error.strerror}" if sys.platform == "linux" else "no events on this system"
            )

    @property
    def report(self) -> WatchReport:
        """What is kept, and how it is kept current."""
        with self._lock:
            directories = [each for each in _below(self._top) if each.identity != _UNKNOWN]
            return WatchReport(
                current_by="status" if self._inotify is None else "events",
                directories=len(directories),
                watched=sum(each.watch >= 0 for each in directories),
                names=sum(len(each.entries or ()) for each in directories),
                texts=self.texts.count,
                text_bytes=self.texts.text_bytes,
                kept_bytes=self.texts.kept_bytes,
                max_bytes=self.texts.max_bytes,
                resets=self._resets,
                not_watched=dict(Counter(each.reason for each in directories if each.reason)),
            )

    # Bringing the tree up to date

    def _refresh(self) -> bool:
        mounts_changed = self._mounts is not None and self._mounts.changed()
        if self._broken or mounts_changed or self._process != (os.getpid(), os.geteuid()):
            self._reset()
        self._broken = True
        self.calls += 1
        self.texts.search += 1
        until = time.monotonic() + _half_of_time_left()
        for event in self._inotify.drain() if self._inotify is not None else ():
            self._apply(event)
        self._find_new_links()
        for directory in self._suspect:
            if self._is_listed(directory) and not self._is_accessible(directory):
                self._drop(directory)
        self._suspect.clear()
        changed = self._all_kept() if self._compares_texts else list(self._linked)
        for entry in changed:
            if not self.is_current(entry):
                self.discard(entry)
        self._compares_texts = False
        while self._stale:
            if time.monotonic() > until:
                self._broken = False
                return False
            directory = next(iter(self._stale))
            if self._is_listed(directory):
                try:
                    self._list(directory)
                except OSError:
                    self._drop(directory)
            self._stale.discard(directory)
        self.texts.compact()
        self._broken = False
        return True

    def _apply(self, event: inotify.Event) -> None:
        """Drop what an event says has changed."""
        _, mask, cookie, name = event
        if mask & inotify.OVERFLOW:
            self._suspect_all()
            return
        directory = self._by_watch.get(event.watch)
        if directory is None:
            return
        if not name:
            self.memo.clear()
            if mask & (inotify.IGNORED | inotify.UNMOUNT | inotify.DELETE_SELF):
                self._drop(directory)
            else:
                self._suspect.add(directory)
            return
        if name in RULE_FILES:
            self.memo.clear()
        key = directory, name
        if mask & (inotify.CREATE | inotify.DELETE | inotify.MOVED_FROM | inotify.MOVED_TO):
            if directory.entries is not None:
                self._stale.add(directory)
            self._drop_name(directory, name)
            if mask & inotify.IS_DIRECTORY:
                return
            if mask & (inotify.CREATE | inotify.MOVED_TO):
                self._moving.pop(cookie, None)
                self._appeared[key] = False
            elif key in self._appeared:
                written = self._appeared.pop(key)
                if mask & inotify.MOVED_FROM:
                    self._moving[cookie] = written
                else:
                    self._compares_texts |= written
        elif mask & inotify.IS_DIRECTORY:
            self.memo.clear()
        elif key in self._appeared:
            self._appeared[key] = True
            self._drop_name(directory, name)
        elif directory.entries is not None and name not in directory.entries:
            # The system may know the name in another case.
            for entry in directory.entries.values():
                self.discard(entry)
        else:
            self._drop_name(directory, name)

    def _find_new_links(self) -> None:
        """Drop the texts of files to which a new name leads: they may be, or have been, changed by it.

        A new name that was written to and is gone may have been one of any file.
        """
        self._compares_texts |= any(self._moving.values())
        self._moving.clear()
        for (directory, name), written in list(self._appeared.items()):
            status = self._lstat(directory.prefix + name)
            if status is None:  # what becomes of it is among the events that are still to come
                continue
            if status.st_nlink > 1:
                inode = status.st_ino
                for entry in self._all_kept():
                    if _SIGNATURE.unpack(entry.signature)[1] == inode:
                        self.discard(entry)
            del self._appeared[directory, name], written

    def _suspect_all(self) -> None:
        """Events were lost: list every directory again and compare every file."""
        self.memo.clear()
        self._compares_texts = True
        self._appeared.clear()
        self._moving.clear()
        listed = list(_below(self._top))
        self._stale.update(each for each in listed if each.entries is not None)
        self._suspect.update(listed)

    def _is_listed(self, directory: KeptDirectory) -> bool:
        """Return whether a directory is still in the tree."""
        return self._by_watch.get(directory.watch) is directory

    def _is_accessible(self, directory: KeptDirectory) -> bool:
        try:
            handle = self.handle(directory)
            status = os.fstat(handle)
            if (status.st_dev, status.st_ino) != directory.identity:
                return False
            effective = os.access in os.supports_effective_ids
            return os.access(".", os.R_OK | os.X_OK, dir_fd=handle, effective_ids=effective)
        except OSError:
            return False

    def _all_kept(self) -> list[KeptEntry]:
        return [
            entry
            for directory in _below(self._top)
            for entry in (directory.entries or {}).values()
            if entry.signature
        ]

    def _drop(self, directory: KeptDirectory) -> None:
        """Drop a directory and all below it; it is entered again when it is needed."""
        self.memo.clear()
        for each in list(_below(directory)):
            for entry in (each.entries or {}).values():
                self.discard(entry)
            self._names -= len(each.entries or ())
            each.entries = None
            if each.watch >= 0 and self._by_watch.pop(each.watch, None) is not None and self._inotify:
                self._inotify.remove(each.watch)
            each.watch, each.identity = -1, _UNKNOWN
            each.children = {}
            self._stale.discard(each)
            if each in self._handles:
                syscalls.close(self._handles.pop(each))
        if directory.parent is not None:
            directory.parent.children.pop(directory.real_path.rpartition("/")[2], None)

    def _drop_name(self, directory: KeptDirectory, name: str) -> None:
        """Drop what is kept about a name, but for the name."""
        child = directory.children.get(name)
        if child is not None:
            self._drop(child)
        entry = (directory.entries or {}).get(name)
        if entry is not None:
            self.discard(entry)

    # Listings

    def open(self, context: RootContext, path: str, real_path: str) -> WatchedDirectory | None:
        """Return the directory at a real path, to be displayed by `path`; None where none can be kept."""
        try:
            found = self._find(real_path)
        except OSError:
            return None
        return None if found is None else WatchedDirectory(context, path, found)

    def view(self, context: RootContext, directory: Directory) -> Directory:
        """Return a directory that was opened in an earlier call, for this one."""
        kept = directory.kept if isinstance(directory, WatchedDirectory) else None
        return directory if kept is None else WatchedDirectory(context, directory.path, kept)

    def _find(self, real_path: str) -> KeptDirectory | None:
        directory = self._top
        if directory.identity == _UNKNOWN:
            self._enter(directory, None)
        for name in real_path.split("/") if real_path else ():
            child = self.child(directory, name)
            if child is None:
                return None
            directory = child
        return directory

    def child(self, parent: KeptDirectory, name: str) -> KeptDirectory | None:
        """Return a directory in another one; None where it cannot be kept. Raises OSError."""
        child = parent.children.get(name)
        if child is not None:
            if child.watch < 0:
                self.handle(child)
            return child
        if self._names > _MAX_NAMES:
            return None
        child = KeptDirectory(self, parent.prefix + name, parent)
        self._enter(child, parent)
        parent.children[name] = child
        return child

    def _enter(self, directory: KeptDirectory, parent: KeptDirectory | None) -> None:
        """Watch a directory, before it is listed."""
        handle = self.handle(directory)
        status = os.fstat(handle)
        directory.identity = status.st_dev, status.st_ino
        if self._inotify is None or (parent is not None and parent.watch < 0):
            directory.reason = self._cause or "below a directory that is not watched"
            return
        reason = self._local.get(status.st_dev)
        if reason is None:
            type_ = syscalls.file_system(handle)
            reason = "" if type_ in _LOCAL else f"a file system without events (type {type_:#x})"
            self._local[status.st_dev] = reason
        if not reason:
            try:
                watch = self._inotify.add(handle)
            except OSError as error:
                reason = "no watches left" if error.errno == errno.ENOSPC else f"no watch: {error.strerror}"
            else:
                if self._by_watch.setdefault(watch, directory) is directory:
                    directory.watch = watch
                    return
                reason = "the same directory under two paths"
        directory.reason = reason

    def entries(self, directory: KeptDirectory) -> dict[str, KeptEntry]:
        """Return what is in a directory, by name. Raises OSError."""
        entries = directory.entries
        if entries is None or directory.watch < 0:
            entries = self._list(directory)
        return entries

    def _list(self, directory: KeptDirectory) -> dict[str, KeptEntry]:
        """List a directory; entries of the same name and type stay the same."""
        handle = self.handle(directory)
        if directory.watch >= 0:
            status = os.fstat(handle)
            if (status.st_dev, status.st_ino) != directory.identity:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        old = directory.entries or {}
        entries: dict[str, KeptEntry] = {}
        with os.scandir(handle) as scanned:
            for found in scanned:
                name, type_ = found.name, _type_of(found)
                kept = old.get(name)
                same = kept is not None and kept.type == type_
                entries[name] = kept if same and kept else KeptEntry(name, type_, directory)
        if directory.entries is not None:
            if list(old.values()) != list(entries.values()):
                self.memo.clear()
            for entry in old.values():
                if entries.get(entry.name) is not entry:
                    self._drop_name(directory, entry.name)
        directory.entries = entries
        self._names += len(entries) - len(old)
        return entries

    def handle(self, directory: KeptDirectory) -> int:
        """Return a descriptor of a directory, until the end of the call. Raises OSError."""
        handle = self._handles.get(directory, -1)
        if handle < 0:
            root = self._context.handle
            handle = syscalls.open_beneath(root.fd, directory.real_path or ".", directory=True)
            if handle < 0:
                handle = self._walk_to(directory.real_path)
            if len(self._handles) >= _MAX_HANDLES:
                syscalls.close(self._handles.pop(next(iter(self._handles))))
            self._handles[directory] = handle
        return handle

    def _walk_to(self, real_path: str) -> int:
        parsed = ParsedPath(tuple(real_path.split("/")) if real_path else ())
        try:
            with ResolvedPath(self._context, real_path or ".", parsed, follow=False) as resolved:
                return resolved.open(syscalls.open_directory)
        except OSError:
            raise
        except AgentFSError as error:
            raise OSError(errno.EIO, str(error)) from None

    def _close_handles(self) -> None:
        handles = getattr(self, "_handles", {})
        while handles:
            syscalls.close(handles.popitem()[1])

    # Texts

    def read(
        self, context: RootContext, entries: Iterable[KeptEntry], read: Callable[[Any], _O | None]
    ) -> Iterator[tuple[KeptEntry, _O | OSError | AccessError]]:
        """Read one file after the other, and yield each that is not passed over, or its error.

        `read` is given the entry where its text, or that it is binary, is kept, and else a descriptor. What
        was found in a kept text is yielded only if the file still has the status with which it was read.
        """
        opened: WatchedDirectory | None = None
        access = context.access
        for number, entry in enumerate(entries):
            if number % _FILES_PER_CHECK == 0:
                call_context.step(0)
            directory = entry.directory
            outcome: _O | OSError | AccessError | None
            try:
                if access is not None and entry.is_kept:
                    access.check_read(directory.prefix + entry.name)
                if entry.is_kept and (directory.watch >= 0 or self.is_current(entry)):
                    outcome = read(entry)
                    if outcome is None or entry.block is None or self.is_current(entry):
                        if outcome is not None:
                            yield entry, outcome
                        continue
                self.discard(entry)
                if opened is None or opened.kept is not directory:
                    path = context.display_path(directory.real_path)
                    opened = WatchedDirectory(context, path, directory)
                outcome = opened.read_new(entry, read)
            except (OSError, AccessError) as error:
                outcome = error
            if outcome is not None:
                yield entry, outcome

    def load(self, entry: KeptEntry, fd: int, status: os.stat_result) -> bool:
        """Keep the text of an open file; False where that is not possible now."""
        size = status.st_size
        compared = entry.directory.watch < 0 or status.st_nlink > 1
        changed = max(status.st_mtime_ns, status.st_ctime_ns)
        if size > self.max_file or (compared and time.time_ns() - changed < TIME_RESOLUTION):
            return False
        block = self.texts.reserve(size)
        if block is None:
            return False
        # One byte more than the size that is claimed: a file that grows is noticed.
        if read_start(fd, block.view[block.end : block.end + size + 1]) != size:
            return False
        self.texts.add(entry, block, size)
        entry.signature = _signature(status)
        if status.st_nlink > 1:
            self._linked.add(entry)
        return True

    def discard(self, entry: KeptEntry) -> None:
        """Drop what is kept of a file's content."""
        self.texts.discard(entry)
        entry.signature = b""
        self._linked.discard(entry)

    def is_current(self, entry: KeptEntry) -> bool:
        """Return whether a file has the status with which it was read."""
        status = self._lstat(entry.directory.prefix + entry.name)
        return status is not None and _signature(status) == entry.signature

    def _lstat(self, real_path: str) -> os.stat_result | None:
        """Return a status only to compare it: a link on the way may lead outside."""
        root = self._context.handle
        try:
            return syscalls.lstat(root.fd, real_path)
        except OSError:
            return None


class _Mounts:
    """What is mounted in a directory; OSError where the system does not tell."""

    def __init__(self, path: str) -> None:
        self._path = path.rstrip("/") + "/"
        self._fd = os.open(_MOUNTS, os.O_RDONLY | os.O_CLOEXEC)
        self._poll = select.poll()
        self._poll.register(self._fd, select.POLLPRI)
        self._below = self._read()

    def changed(self) -> bool:
        """Return whether that has changed since it was asked last."""
        if not self._poll.poll(0):
            return False
        before, self._below = self._below, self._read()
        return before != self._below

    def _read(self) -> list[str]:
        with open(_MOUNTS, encoding="utf-8", errors="surrogateescape") as lines:
            return [line for line in lines if f"{_unescaped(line.split(' ')[4])}/".startswith(self._path)]

    def close(self) -> None:
        syscalls.close(self._fd)


def _half_of_time_left() -> float:
    return max(call_context.deadline(10.0) - time.monotonic(), 0) / 2


def _unescaped(path: str) -> str:
    for escape, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        path = path.replace(escape, character)
    return path


def _below(directory: KeptDirectory) -> Iterator[KeptDirectory]:
    """Yield a directory and all that are kept below it."""
    pending = [directory]
    while pending:
        each = pending.pop()
        yield each
        pending += each.children.values()


def _signature(status: os.stat_result) -> bytes:
    return _SIGNATURE.pack(
        status.st_dev, status.st_ino, status.st_mode, status.st_size, status.st_mtime_ns, status.st_ctime_ns
    )


def _type_of(found: os.DirEntry[str]) -> str:
    try:
        if found.is_file(follow_symlinks=False):
            return "f"
        if found.is_dir(follow_symlinks=False):
            return "d"
        return "l" if found.is_symlink() else "o"
    except OSError:
        return "?"
