"""The kept tree of a watched root: listings and texts, brought up to date at the beginning of each search.

A directory is watched before it is listed, and listed before its files are read, so that what changes after
that is among the events of a later search. Where no event can come, a directory is listed again by each
search, and the text of a file is used only while the file has the status with which it was read; where a
status may come from a cache too, no text is kept.
"""

import errno
import os
import struct
import sys
import threading
import time
import weakref
from collections import Counter
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any, TypeVar

from agentfs import call_context
from agentfs.errors import AccessError, AgentFSError
from agentfs.fs import inotify, syscalls
from agentfs.fs.context import TIME_RESOLUTION, RootContext
from agentfs.fs.file import read_start
from agentfs.fs.ignore_files import RULE_FILES
from agentfs.fs.kept import UNKNOWN, KeptDirectory, KeptEntry, KeptFile, KeptOther, Memo, WatchedDirectory
from agentfs.fs.mounts import Mounts, without_events
from agentfs.fs.path import ParsedPath
from agentfs.fs.resolve import ResolvedPath
from agentfs.fs.texts import TextStore
from agentfs.results import WatchReport

_NAME_BYTES = 320  # of memory, for a name and what is known of its content
_LISTS = 6  # of all names, in what is derived from them
_MAX_PATH = 1024  # characters of a directory's, which are kept too
_MAX_HANDLES = 32  # directories that are open at a time
_WAIT_SECONDS = 0.05  # for another thread's search, between two checks
_FILES_PER_CHECK = 32
_TOO_MANY = "too many names"
_STATUS = struct.Struct("QQqqqqq")

_O = TypeVar("_O")


class Watch:
    """The kept tree of a root. Its methods are called within `call`."""

    def __init__(self, context: RootContext, path: str, max_bytes: int, max_file: int) -> None:
        self._context = context
        self._path = path
        self.max_file = max_file  # bytes of the largest text that is kept
        self._lock = threading.RLock()
        self._depth = 0
        self._closed = self._broken = self._ready = False
        self._inotify: inotify.Inotify | None = None
        self._mounts: Mounts | None = None
        self.calls = 0
        self._resets = -1
        self._max_bytes = max_bytes
        self._max_names = max_bytes // (2 * _NAME_BYTES)
        self.texts = TextStore(max_bytes)
        self._reset()
        _watches.add(self)

    @contextmanager
    def call(self) -> Generator[bool]:
        """Bring the tree up to date and keep other threads out; False where there is no time for it."""
        lock = self._lock
        until = time.monotonic() + _half_of_time_left()
        while not lock.acquire(timeout=_WAIT_SECONDS):
            call_context.step(0)
            if time.monotonic() > until:
                yield False
                return
        depth = self._depth
        try:
            if not depth:
                self._ready = not self._closed and self._refresh()
            self._depth = depth + 1
            yield self._ready
        except BaseException as error:
            # It may have come in the middle of a change of the tree.
            harmless = isinstance(error, (Exception, call_context.Cancelled))
            self._broken |= self._depth == depth or not harmless or isinstance(error, MemoryError)
            raise
        finally:
            self._depth = depth
            if not depth:
                self._close_handles()
            lock.release()
            if self._closed or self._broken:  # perhaps meanwhile, by another thread
                self.forget()

    def begin_in_child(self) -> None:
        """Begin anew in a forked process, in which the thread that has the lock may not be."""
        self._lock = threading.RLock()
        self._depth = 0
        self._broken = True

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
        self.memo = Memo()
        if self._inotify is not None:
            self._inotify.close()
        if self._mounts is not None:
            self._mounts.close()
        self._inotify = self._mounts = None
        self._handles: dict[KeptDirectory, int] = {}
        self._by_watch: dict[int, KeptDirectory] = {}
        self._stale: set[KeptDirectory] = set()
        self._suspect: set[KeptDirectory] = set()  # may have become inaccessible
        self._linked: set[KeptFile] = set()  # those with several links, of which something is kept
        self._appeared: set[tuple[KeptDirectory, str]] = set()  # new names
        self._compares_texts = False  # whether a text may have changed without an event
        self._remote: dict[int, str] = {}  # why a device cannot be watched; "" where it can
        self._names = 0
        self._top = KeptDirectory("", None, self)

    def _reset(self) -> None:
        """Begin anew."""
        self._broken = False
        self._drop_all()
        self._resets += 1
        self._user = _user()
        self._began = time.time_ns()
        self._cause = ""
        try:
            self._mounts = Mounts(self._path)
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
            known = list(self._top.below())
            directories = [each for each in known if each.device != UNKNOWN]
            return WatchReport(
                current_by="status" if self._inotify is None else "events",
                directories=len(directories),
                watched=sum(each.watch >= 0 for each in directories),
                names=self._names,
                texts=self.texts.count,
                text_bytes=self.texts.text_bytes,
                kept_bytes=self.texts.kept_bytes,
                max_bytes=self._max_bytes,
                resets=self._resets,
                not_watched=dict(Counter(each.reason for each in known if each.reason)),
            )

    # Bringing the tree up to date

    def _refresh(self) -> bool:
        mounts_changed = self._mounts is not None and self._mounts.changed()
        if self._broken or mounts_changed or self._user != _user():
            self._reset()
        self.calls += 1
        self.texts.search += 1
        until = time.monotonic() + _half_of_time_left()
        if self._inotify is not None:
            self._take_events(*self._inotify.drain())
        for directory in self._suspect:
            if self._is_listed(directory) and not self._is_accessible(directory):
                self._drop(directory)
        self._suspect.clear()
        while self._stale:
            if time.monotonic() > until:
                return False
            directory = next(iter(self._stale))
            if self._is_listed(directory):
                try:
                    self._list(directory)
                except OSError:
                    self._drop(directory)
            self._stale.discard(directory)
        self._check_new_names()
        self._compare_texts()
        self.texts.compact()
        return True

    def _take_events(self, changes: inotify.Changes, lost: bool) -> None:
        """Drop what has changed; `lost` is whether there were more events."""
        if lost:  # list every directory again, and compare every file
            self._compares_texts = True
            self._appeared.clear()
            known = list(self._top.below())
            self._stale.update(each for each in known if each.entries is not None)
            self._suspect.update(known)
        watched = [(self._by_watch[each], names) for each, names in changes.items() if each in self._by_watch]
        events = [event for _, names in watched for each in names.values() for event in each]
        arrived = {cookie for mask, cookie in events if mask & inotify.MOVED_TO}
        for directory, names in watched:
            self._apply(directory, names, arrived)

    def _apply(self, directory: KeptDirectory, names: inotify.Names, arrived: set[int]) -> None:
        """Drop what has changed in a directory, given the cookies of what has arrived in watched ones."""
        by_name = {entry.name: entry for entry in directory.entries or ()}
        for raw_name, events in names.items():
            name = os.fsdecode(raw_name)
            every = 0
            for mask, _ in events:
                every |= mask
            if not name:
                self.memo.clear()
                if every & inotify.ENDS:
                    self._drop(directory)
                else:
                    self._suspect.add(directory)
                continue
            renamed = every & inotify.RENAMES
            if name in RULE_FILES or (every & inotify.IS_DIRECTORY and not renamed):
                self.memo.clear()
            if renamed and directory.entries is not None:
                self._stale.add(directory)
            # What came with a directory may be second names of known files.
            self._compares_texts |= bool(renamed & inotify.ARRIVES and every & inotify.IS_DIRECTORY)
            if (entry := by_name.get(name)) is not None:
                if renamed or isinstance(entry, KeptFile):
                    self._drop_entry(entry)
            elif not renamed and not every & inotify.IS_DIRECTORY and (directory, name) not in self._appeared:
                # The system may know the name in another case, or it was removed from a file that is open.
                self._compares_texts = True
            for mask, cookie in events:
                if mask & inotify.ARRIVES and not mask & inotify.IS_DIRECTORY:
                    self._appeared.add((directory, name))
                elif mask & inotify.RENAMES and (directory, name) in self._appeared:
                    self._appeared.remove((directory, name))
                    # It may have been one of any file.
                    self._compares_texts |= cookie not in arrived

    def _check_new_names(self) -> None:
        """Find out whether a new name leads to a known file, which may be, or have been, changed by it."""
        listed = {each: {entry.name for entry in each.entries or ()} for each, _ in self._appeared}
        for directory, name in list(self._appeared):
            status = self._lstat(directory.prefix + name)
            if status is None and self._is_listed(directory):
                continue  # what becomes of it is among the events that are still to come
            # One that is not listed may be known in another case.
            self._compares_texts |= status is None or status.st_nlink > 1 or name not in listed[directory]
            self._appeared.remove((directory, name))

    def _compare_texts(self) -> None:
        """Drop the files that have another status, of which no event may have told."""
        changed = list(self._linked)
        if self._compares_texts:
            self.memo.clear()  # a rule file may have changed so
            changed = self._all_kept()
        for file in changed:
            if not self.is_current(file, certainly=self._compares_texts):
                self.discard(file)
        self._compares_texts = False

    def _is_listed(self, directory: KeptDirectory) -> bool:
        """Return whether a directory is still in the tree."""
        return self._by_watch.get(directory.watch) is directory

    def _is_accessible(self, directory: KeptDirectory) -> bool:
        try:
            status = syscalls.lstat(self.handle(directory), ".")  # both permissions are needed for that
        except OSError:
            return False
        return (status.st_dev, status.st_ino) == (directory.device, directory.inode)

    def _all_kept(self) -> list[KeptFile]:
        return [
            entry
            for directory in self._top.below()
            for entry in directory.entries or ()
            if isinstance(entry, KeptFile) and entry.signature
        ]

    def _drop(self, directory: KeptDirectory) -> None:
        """Drop what is in a directory, and all below it; it is entered again when it is needed."""
        self.memo.clear()
        for each in list(directory.below()):
            for entry in each.entries or ():
                if isinstance(entry, KeptFile):
                    self.discard(entry)
            self._names -= len(each.entries or ())
            each.entries = None
            if each.watch >= 0 and self._by_watch.pop(each.watch, None) is not None and self._inotify:
                self._inotify.remove(each.watch)
            each.watch, each.device, each.reason = -1, UNKNOWN, ""
            self._stale.discard(each)
            if each in self._handles:
                syscalls.close(self._handles.pop(each))

    def _drop_entry(self, entry: KeptEntry) -> None:
        """Drop what is kept about a name, but for the name."""
        if isinstance(entry, KeptDirectory):
            self._drop(entry)
        elif isinstance(entry, KeptFile):
            self.discard(entry)

    # Listings

    def keep(self, key: Hashable, value: Any, size: int) -> None:
        """Keep what was derived from listings and has so many names, until one changes."""
        self.memo.keep(key, value, size, self._names * _LISTS)

    def open(self, context: RootContext, path: str, real_path: str) -> WatchedDirectory | None:
        """Return the directory at a real path, to be displayed by `path`; None where none can be kept."""
        try:
            found = self._find(real_path)
        except OSError:
            return None
        return None if found is None else WatchedDirectory(context, path, found)

    def _find(self, real_path: str) -> KeptDirectory | None:
        directory = self._top
        if not self.enter(directory):
            return None
        for name in real_path.split("/") if real_path else ():
            entry = directory.find(name)
            if not isinstance(entry, KeptDirectory) or not self.enter(entry):
                return None
            directory = entry
        return directory

    def enter(self, directory: KeptDirectory) -> bool:
        """Watch a directory, then list it; False where it cannot be kept. Raises OSError."""
        if directory.device == UNKNOWN:
            if self._names > self._max_names:
                directory.reason = _TOO_MANY
            elif len(directory.prefix) > _MAX_PATH:
                directory.reason = "a long path"
            if directory.reason:
                return False
            handle = self.handle(directory)
            status = os.fstat(handle)
            directory.reason, directory.watch = self._watch(directory, handle, status)
            directory.device, directory.inode = status.st_dev, status.st_ino
        return (directory.entries is not None and directory.watch >= 0) or self._list(directory)

    def _watch(self, directory: KeptDirectory, handle: int, status: os.stat_result) -> tuple[str, int]:
        """Add a watch, and return its number, or why there is none."""
        if self._inotify is None:
            return self._cause, -1
        reason = self._remote.get(status.st_dev)
        if reason is None:
            reason = self._remote[status.st_dev] = without_events(handle)
        if reason:
            return reason, -1
        parent = directory.directory
        if parent is not directory and parent.watch < 0:
            return "below a directory that is not watched", -1
        try:
            watch = self._inotify.add(handle)
        except OSError as error:
            return "no watches left" if error.errno == errno.ENOSPC else f"no watch: {error.strerror}", -1
        if self._by_watch.setdefault(watch, directory) is not directory:
            return "the same directory under two paths", -1
        return "", watch

    def _list(self, directory: KeptDirectory) -> bool:
        """List a directory; entries of the same name and type stay the same. False for too many."""
        handle = self.handle(directory)
        if directory.watch >= 0:
            status = os.fstat(handle)
            if (status.st_dev, status.st_ino) != (directory.device, directory.inode):
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        before = directory.entries or []
        old = {(entry.name, entry.type): entry for entry in before}
        room = self._max_names + len(before) - self._names
        entries: list[KeptEntry] = []
        with os.scandir(handle) as scanned:
            for found in islice(scanned, max(room, 0) + 1):
                name, type_ = found.name, _type_of(found)
                entries.append(old.get((name, type_)) or _new_entry(name, type_, directory))
        if len(entries) > room:
            self._drop(directory)
            directory.reason = _TOO_MANY
            return False
        if directory.entries is not None and before != entries:
            self.memo.clear()
            for entry in set(before).difference(entries):
                self._drop_entry(entry)
        directory.entries = entries
        self._names += len(entries) - len(before)
        self.texts.resize(self._max_bytes - self._names * _NAME_BYTES)
        return True

    def handle(self, directory: KeptDirectory) -> int:
        """Return a descriptor of a directory, until the end of the call. Raises OSError."""
        handles = self._handles
        handle = handles.get(directory, -1)
        if handle < 0:
            parent = handles.pop(directory.directory, -1)
            if parent >= 0:
                handles[directory.directory] = parent  # now the last to be closed
                handle = syscalls.open_directory(parent, directory.name)
            else:
                handle = self._open(directory.real_path)
            if len(handles) >= _MAX_HANDLES:
                syscalls.close(handles.pop(next(iter(handles))))
            handles[directory] = handle
        return handle

    def _open(self, real_path: str) -> int:
        root = self._context.handle
        handle = syscalls.open_beneath(root.fd, real_path or ".", directory=True)
        if handle >= 0:
            return handle
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
        self, context: RootContext, files: Iterable[KeptFile], read: Callable[[Any], _O | None]
    ) -> Iterator[tuple[KeptFile, _O | OSError | AccessError]]:
        """Read one file after the other, and yield each that is not passed over, or its error.

        `read` is given the file where its text, or that it is binary, is kept, and else a descriptor. What
        was found in a kept text is yielded only if the file still has the status with which it was read.
        """
        opened: WatchedDirectory | None = None
        access = context.access
        for number, file in enumerate(files):
            if number % _FILES_PER_CHECK == 0:
                call_context.step(0)
            directory = file.directory
            outcome: _O | OSError | AccessError | None
            try:
                if access is not None and file.is_kept:
                    access.check_read(directory.prefix + file.name)
                if file.is_kept and (directory.watch >= 0 or self.is_current(file)):
                    outcome = read(file)
                    if outcome is None or file.block is None or self.is_current(file):
                        if outcome is not None:
                            yield file, outcome
                        continue
                self.discard(file)
                if opened is None or opened.kept is not directory:
                    path = context.display_path(directory.real_path)
                    opened = WatchedDirectory(context, path, directory)
                outcome = opened.read_new(file, read)
            except (OSError, AccessError) as error:
                outcome = error
            if outcome is not None:
                yield file, outcome

    def load(self, file: KeptFile, fd: int, status: os.stat_result) -> bool:
        """Keep the text of an open file; False where that is not possible now."""
        size, linked = status.st_size, status.st_nlink > 1
        if size > self.max_file or self._remote.get(file.directory.device):
            return False
        changed = max(status.st_mtime_ns, status.st_ctime_ns)
        # It may be a second name, since then, of another kept file.
        self._compares_texts |= linked and changed > self._began - TIME_RESOLUTION
        compared = linked or file.directory.watch < 0
        if compared and time.time_ns() - changed < TIME_RESOLUTION:
            return False
        block = self.texts.reserve(size)
        if block is None:
            return False
        # One byte more than the size that is claimed: a file that grows is noticed.
        if read_start(fd, memoryview(block.data)[block.end : block.end + size + 1]) != size:
            return False
        self.texts.add(file, block, size)
        file.signature = _signature(status)
        if linked:
            self._linked.add(file)
        return True

    def discard(self, entry: KeptFile) -> None:
        """Drop what is kept of a file's content."""
        if not entry.signature:
            return
        self.texts.discard(entry)
        entry.signature = 0
        self._linked.discard(entry)

    def is_current(self, entry: KeptFile, *, certainly: bool = False) -> bool:
        """Return whether a file has the status with which it was read.

        `certainly` is False for one that may have been changed again at the time of that status, unnoticed.
        """
        status = self._lstat(entry.directory.prefix + entry.name)
        if status is None or _signature(status) != entry.signature:
            return False
        return not certainly or max(status.st_mtime_ns, status.st_ctime_ns) < self._began - TIME_RESOLUTION

    def _lstat(self, real_path: str) -> os.stat_result | None:
        """Return a status only to compare it: a link on the way may lead outside."""
        root = self._context.handle
        try:
            return syscalls.lstat(root.fd, real_path)
        except OSError:
            return None


_watches: "weakref.WeakSet[Watch]" = weakref.WeakSet()


def _begin_in_child() -> None:
    for each in _watches:
        each.begin_in_child()


if hasattr(os, "register_at_fork"):  # agentfs can be imported on Windows too
    os.register_at_fork(after_in_child=_begin_in_child)


def _user() -> tuple[int, int, list[int]]:
    """Return what decides what may be read."""
    return os.geteuid(), os.getegid(), os.getgroups()


def _half_of_time_left() -> float:
    return max(call_context.deadline(10.0) - time.monotonic(), 0) / 2


def _signature(status: os.stat_result) -> int:
    """Return a hash of a status, with a random key, which takes little memory; more names change it too."""
    packed = _STATUS.pack(
        status.st_dev,
        status.st_ino,
        status.st_mode,
        status.st_nlink,
        status.st_size,
        status.st_mtime_ns,
        status.st_ctime_ns,
    )
    return hash(packed) or 1


def _new_entry(name: str, type_: str, directory: KeptDirectory) -> KeptEntry:
    if type_ == "f":
        return KeptFile(name, directory)
    if type_ == "d":
        return KeptDirectory(name, directory, directory.tree)
    return KeptOther(name, directory, type_)


def _type_of(found: os.DirEntry[str]) -> str:
    try:
        if found.is_file(follow_symlinks=False):
            return "f"
        if found.is_dir(follow_symlinks=False):
            return "d"
        return "l" if found.is_symlink() else "o"
    except OSError:
        return "?"
