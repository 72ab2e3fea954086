"""The kept tree of a watched root: listings and texts, brought up to date at the beginning of each search.

A directory is watched before it is listed, and listed before its files are read, so that what changes after
that is among the events of a later search. Where no event can come, a directory is listed again by each
search, and the text of a file is used only while the file has the status with which it was read; where a
status may come from a cache too, no text is kept.

The watch of a directory tells of changes by the names in it. A kept file has a watch of its own too, because
only that tells of a new hard link, through which the file can be changed under any name.
"""

import errno
import os
import struct
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any, TypeVar

from agentfs import call_context
from agentfs.errors import AccessError, AgentFSError
from agentfs.forks import watch_forks
from agentfs.fs import inotify, syscalls
from agentfs.fs.context import TIME_RESOLUTION, RootContext
from agentfs.fs.file import read_start
from agentfs.fs.ignore_files import RULE_FILES
from agentfs.fs.kept import (
    UNKNOWN,
    KeptDirectory,
    KeptEntry,
    KeptFile,
    KeptOther,
    Key,
    Memo,
    WatchedDirectory,
)
from agentfs.fs.mounts import Mounts, without_events
from agentfs.fs.path import ParsedPath
from agentfs.fs.resolve import ResolvedPath
from agentfs.fs.texts import TextStore
from agentfs.results import WatchReport

_NAME_BYTES = 384  # of memory, for a name and what is known of its content
_LISTS = 18  # of all names, in what is derived from them
_MAX_PATH = 1024  # characters of a directory's, which are kept too
_MAX_HANDLES = 32  # directories that are open at a time
_WAIT_SECONDS = 0.05  # for another thread's search, between two checks
_FILES_PER_CHECK = 32
_FILE_WATCHES_SHARE = 4  # files take at most one part in so many of the watches that a user may have
_COARSE_CLOCK = 5  # Linux's CLOCK_REALTIME_COARSE, from which the times of files are taken
_TICK = 20_000_000  # nanoseconds, longer than one step of that clock
_TOO_MANY = "too many names"
_DECIDING = {*RULE_FILES, ".git"}  # names that decide which others are ignored
_STATUS = struct.Struct("QQqqqqq")

_O = TypeVar("_O")


class Watch:
    """The kept tree of a root. Its methods are called within `call`."""

    def __init__(self, context: RootContext, max_bytes: int, max_file: int) -> None:
        self._context = context
        self.max_file = max_file  # bytes of the largest text that is kept
        self._lock = threading.RLock()
        self._depth = 0
        self._closed = self._broken = self._ready = False
        self._inotify: inotify.Inotify | None = None
        self._mounts: Mounts | None = None
        self.calls = 0
        self.changes = 0  # of listings
        self._resets = -1
        self._max_bytes = max_bytes
        self._max_names = max_bytes // (2 * _NAME_BYTES)
        self.texts = TextStore(max_bytes)
        self._reset()
        watch_forks(self)

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

    def after_fork(self) -> None:
        """Begin anew in a forked process, in which the thread that has the lock may not be.

        Both queues of events belong to the parent.
        """
        self._lock = threading.RLock()
        self._depth = 0
        self._broken = True
        self._close_queues()

    def _close_queues(self) -> None:
        for queue in (self._inotify, self._mounts):
            if queue is not None:
                queue.close()

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
        self._close_queues()
        self._inotify = self._mounts = None
        self._handles: dict[KeptDirectory, int] = {}
        self._by_watch: dict[int, KeptDirectory] = {}
        self._file_by_watch: dict[int, KeptFile] = {}
        self._stale: set[KeptDirectory] = set()
        self._suspect: set[KeptDirectory] = set()  # may have become inaccessible
        # Files of which something is kept: with several links; without a watch of their own; read so soon
        # after a change that a second change may have left the status as it was.
        self._linked: set[KeptFile] = set()
        self._unwatched: set[KeptFile] = set()
        self._unsettled: set[KeptFile] = set()
        self._rule_files: dict[str, int] = {}  # the signature of each rule file, or 0 if it is unsettled
        self._names_changed = False  # so an unwatched file may have had another name
        self._events_lost = False  # so any file may have changed
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
            self._mounts = Mounts(self._context.handle.fd)
            self._inotify = inotify.Inotify()
            self._max_file_watches = inotify.watch_limit() // _FILE_WATCHES_SHARE
        except OSError as error:
            self._inotify = None
            self._cause = (
                f"no events: {error.strerror}" if sys.platform == "linux" else "no events on this system"
            )

    @property
    def report(self) -> WatchReport:
        """What is kept, and how it is kept current."""
        known = list(self._top.below())  # while another thread searches: no lists of the tree are changed
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
        if self._broken or self._user != _user() or (self._mounts is not None and self._mounts.changed()):
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
        self._compare_files()
        self.texts.compact()
        return True

    def _take_events(self, changes: inotify.Changes, lost: bool) -> None:
        """Drop what has changed; `lost` is whether there were more events."""
        if lost:  # list every directory again, and compare every file
            self._events_lost = True
            for each in list(self._top.below()):
                if each.entries is None:
                    self._drop(each)
                else:
                    self._stale.add(each)
                    self._suspect.add(each)
        for watch, names in changes.items():
            if (directory := self._by_watch.get(watch)) is not None:
                self._apply(directory, names)
            elif (file := self._file_by_watch.get(watch)) is not None:
                self.discard(file)

    def _apply(self, directory: KeptDirectory, names: inotify.Names) -> None:
        """Drop what has changed in a directory."""
        by_name = {entry.name: entry for entry in directory.entries or ()}
        for raw_name, events in names.items():
            name = os.fsdecode(raw_name)
            if not name and events & inotify.ENDS:
                self._drop(directory)
                continue
            if not name:
                self.memo.clear()
                self._suspect.add(directory)
                continue
            renamed = events & inotify.RENAMES
            if name in RULE_FILES or (events & inotify.IS_DIRECTORY and not renamed):
                self.memo.clear()
            if renamed:
                self._names_changed = True
                if directory.entries is not None:
                    self._stale.add(directory)
            if (entry := by_name.get(name)) is not None:
                if renamed or isinstance(entry, KeptFile):
                    self._drop_entry(entry)
            elif not renamed and not events & inotify.IS_DIRECTORY:
                # The system may know the name in another case, or it was removed from a file that is open.
                self._events_lost = True

    def _compare_files(self) -> None:
        """Drop the files that have another status, if there may have been no event of their change."""
        suspected = self._events_lost or self._names_changed
        files = set(self._all_kept()) if self._events_lost else set(self._linked)
        if suspected:
            files |= self._unwatched
        for file in files:
            if (suspected and file in self._unsettled) or not self.is_current(file):
                self.discard(file)
        if suspected and any(self._signature_of(path) != known for path, known in self._rule_files.items()):
            self._rule_files.clear()
            self.memo.clear()
        self._events_lost = self._names_changed = False

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
        self.changes += 1
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

    def keep(self, key: Key, value: Any, size: int) -> None:
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
            watch = self._add_watch(handle)
        except OSError as error:
            return "no watches left" if error.errno == errno.ENOSPC else f"no watch: {error.strerror}", -1
        if self._by_watch.setdefault(watch, directory) is not directory:
            return "the same directory under two paths", -1
        return "", watch

    def _add_watch(self, handle: int) -> int:
        """Watch a directory; watches of files give way if none is left. Raises OSError."""
        if self._inotify is None:
            return -1
        try:
            return self._inotify.add(handle)
        except OSError as error:
            if error.errno != errno.ENOSPC or not self._file_by_watch:
                raise
        for file in [*self._file_by_watch.values()]:
            self._end_watch(file)
            self._unwatched.add(file)
        self._max_file_watches = 0
        self._names_changed = True  # the events of these watches are lost
        return self._inotify.add(handle)

    def _list(self, directory: KeptDirectory) -> bool:
        """List a directory; entries of the same name and type stay the same. False for too many."""
        handle = self.handle(directory)
        if directory.watch >= 0:
            status = os.fstat(handle)
            same = (status.st_dev, status.st_ino) == (directory.device, directory.inode)
            # One that was deleted and made again may have the same inode, but not the same watch.
            if not same or (directory.entries is not None and self._add_watch(handle) != directory.watch):
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
        if directory.entries is None or before != entries:
            self.changes += 1
            directory.changed = self.changes
            if directory.entries is None:
                directory.entered = self.changes
            elif any(entry.name in _DECIDING for entry in set(before).symmetric_difference(entries)):
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
        size, linked, directory = status.st_size, status.st_nlink > 1, file.directory
        if size > self.max_file or self._remote.get(directory.device):
            return False
        if self.has_no_events(directory.prefix + file.name):
            return False
        changed = max(status.st_mtime_ns, status.st_ctime_ns)
        # It may be a second name, since then, of another kept file.
        self._names_changed |= linked and changed > self._began - TIME_RESOLUTION
        settled = self._is_settled(status)
        if not settled and (linked or directory.watch < 0):
            return False
        block = self.texts.reserve(size)
        if block is None:
            return False
        signature = _signature(status)
        if not linked and directory.watch >= 0:
            self._watch_file(file, fd)
        # One byte more than the size that is claimed: a file that grows is noticed. One that was changed or
        # linked before it was watched has another status.
        read = read_start(fd, memoryview(block.data)[block.end : block.end + size + 1])
        if read != size or (file.watch >= 0 and _signature(os.fstat(fd)) != signature):
            self._end_watch(file)
            return False
        self.texts.add(file, block, size)
        file.signature = signature
        if linked:
            self._linked.add(file)
        elif file.watch < 0:
            self._unwatched.add(file)
        if not settled:
            self._unsettled.add(file)
        return True

    def _watch_file(self, file: KeptFile, fd: int) -> None:
        """Watch an open file, unless there are too many watches."""
        if self._inotify is None or len(self._file_by_watch) >= self._max_file_watches:
            return
        try:
            watch = self._inotify.add_file(fd)
        except OSError:
            return
        # Another entry has the watch if the file was moved after that entry was read.
        if self._file_by_watch.setdefault(watch, file) is file:
            file.watch = watch

    def _end_watch(self, file: KeptFile) -> None:
        if file.watch >= 0 and self._file_by_watch.pop(file.watch, None) is not None and self._inotify:
            self._inotify.remove(file.watch)
        file.watch = -1

    def has_no_events(self, real_path: str) -> bool:
        """Return True if a file is a mount point: its events have the name of the mounted file."""
        return self._mounts is not None and self._mounts.covers(real_path)

    def keep_rule_file(self, real_path: str, status: os.stat_result) -> None:
        """Note the status of a rule file before it is read."""
        self._rule_files[real_path] = _signature(status) if self._is_settled(status) else 0

    def discard(self, entry: KeptFile) -> None:
        """Drop what is kept of a file's content."""
        if not entry.signature:
            return
        self.texts.discard(entry)
        entry.signature = 0
        self._end_watch(entry)
        for some in (self._linked, self._unwatched, self._unsettled):
            some.discard(entry)

    def is_current(self, entry: KeptFile) -> bool:
        """Return True if a file has the status with which it was read."""
        return self._signature_of(entry.directory.prefix + entry.name) == entry.signature

    def _is_settled(self, status: os.stat_result) -> bool:
        """Return True if a later change of a file will give it another time than this status has."""
        changed = max(status.st_mtime_ns, status.st_ctime_ns)
        if self._inotify is not None and changed % 1_000_000:  # the file system has more than milliseconds
            return time.clock_gettime_ns(_COARSE_CLOCK) - changed >= min(_TICK, TIME_RESOLUTION)
        return time.time_ns() - changed >= TIME_RESOLUTION

    def _signature_of(self, real_path: str) -> int:
        """Return the signature of a path; -1, which no signature is, if nothing is there."""
        status = self._lstat(real_path)
        return -1 if status is None else _signature(status)

    def _lstat(self, real_path: str) -> os.stat_result | None:
        """Return a status only to compare it: a link on the way may lead outside."""
        root = self._context.handle
        try:
            return syscalls.lstat(root.fd, real_path)
        except OSError:
            return None


def _user() -> tuple[int, int, int, list[int]]:
    """Return the process, whose events are its own, and what decides what may be read."""
    return os.getpid(), os.geteuid(), os.getegid(), os.getgroups()


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
    return abs(hash(packed)) or 1


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
