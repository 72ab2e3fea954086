"""The kept tree of a watched root: listings and texts, updated at the beginning of each search.

A directory is watched before it is listed, and listed before its files are read. So every later change is
among the events that a later search receives. A directory that cannot report events is not kept: a search
reads it from the disk.
"""

import errno
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from itertools import islice

from agentfs.base import call_context
from agentfs.base.forks import watch_forks
from agentfs.errors import AgentFSError
from agentfs.fs import syscalls
from agentfs.fs.context import RootContext
from agentfs.fs.resolve import resolve_real
from agentfs.results import WatchReport
from agentfs.watch import inotify
from agentfs.watch.keeper import Keeper
from agentfs.watch.kept_entries import NO_WATCH, KeptDirectory, KeptEntry, KeptFile, KeptOther
from agentfs.watch.kept_texts import KeptTexts
from agentfs.watch.watched_directory import WatchedDirectory

_NAME_BYTES = 384  # memory for a name and its cached facts
_MAX_PATH = 1024  # characters of a directory's path, which is kept too
_MAX_HANDLES = 32  # directories open at a time
_WAIT_SECONDS = 0.05  # between two checks for the end of another thread's search
_TOO_MANY = "too many names"
_LATER = "kept by a later call"


class WatchedTree:
    """The kept tree of a root. Its methods are called within `call`."""

    def __init__(
        self, context: RootContext, max_bytes: int, max_file: int, keeper: Keeper | None = None
    ) -> None:
        self._context = context
        self._keeper = keeper
        self._max_file = max_file
        self._lock = threading.RLock()
        self._depth = 0
        self._closed = self._broken = self._ready = False
        self._resets = -1
        self._max_bytes = max_bytes
        self._max_names = max_bytes // (2 * _NAME_BYTES)
        self._inotify: inotify.Inotify | None = None
        self._table: inotify.MountTable | None = None
        self._handles: dict[KeptDirectory, int] = {}
        self._reset()
        watch_forks(self)

    @contextmanager
    def call(self) -> Generator[bool]:
        """Bring the tree up to date and keep other threads out; yield False if there is no time for it."""
        lock, keeper = self._lock, self._keeper
        if keeper is not None:
            keeper.interrupt()
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
            # The error may have interrupted a change of the kept tree.
            harmless = isinstance(error, (Exception, call_context.Cancelled))
            self._broken |= self._depth == depth or not harmless or isinstance(error, MemoryError)
            raise
        finally:
            self._depth = depth
            if not depth:
                self._close_handles()
                if keeper is not None and self._ready and self.texts.budget <= 0 and not self._closed:
                    keeper.start()
            lock.release()
            if self._closed or self._broken:  # another thread may have closed it meanwhile
                self.forget()

    def after_fork(self) -> None:
        """Start empty in a forked process: queues and locks belong to the parent."""
        self._lock = threading.RLock()
        self._depth = 0
        self._broken = True
        self._close_queues()

    def close(self) -> None:
        """Release everything; a call under way still completes."""
        self._closed = True
        if self._keeper is not None:
            self._keeper.stop()
        self.forget()

    def forget(self) -> None:
        """Drop the kept tree; it is read again when needed."""
        self._broken = True
        if self._lock.acquire(blocking=False):
            try:
                if not self._depth:
                    self._drop_all()
            finally:
                self._lock.release()

    def _close_queues(self) -> None:
        for queue in (self._inotify, self._table):
            if queue is not None:
                queue.close()

    def _drop_all(self) -> None:
        self._close_handles()
        self._close_queues()
        self._inotify = self._table = None
        self._by_watch: dict[int, KeptDirectory] = {}
        self._stale: set[KeptDirectory] = set()
        self._suspect: set[KeptDirectory] = set()  # may have become inaccessible
        self._names = 0
        self._top = KeptDirectory("", None, self)
        self.texts = KeptTexts(self._context, self._max_bytes, self._max_file, None, None)

    def _reset(self) -> None:
        """Drop everything, and open new event queues."""
        self._broken = False
        self._drop_all()
        self._resets += 1
        self._user = _user()
        self._cause = ""
        try:
            self._table = inotify.MountTable(self._context.trees.root.handle.fd)
            self._inotify = inotify.Inotify()
        except OSError as error:
            on_linux = sys.platform == "linux"
            self._cause = f"no events: {error.strerror}" if on_linux else "no events on this system"
        self.texts = KeptTexts(self._context, self._max_bytes, self._max_file, self._inotify, self._table)

    @property
    def report(self) -> WatchReport:
        """Counts of the kept directories, names and texts, and why other directories are not watched."""
        known = list(self._top.below())  # safe during another thread's search, which only replaces lists
        blocks = self.texts.blocks
        return WatchReport(
            directories=sum(each.watch != NO_WATCH for each in known),
            names=self._names,
            texts=blocks.count,
            text_bytes=blocks.text_bytes,
            kept_bytes=blocks.kept_bytes,
            max_bytes=self._max_bytes,
            resets=self._resets,
            not_watched=dict(Counter(each.reason for each in known if each.reason)),
        )

    # Bringing the tree up to date

    def _refresh(self) -> bool:
        if self._broken or self._user != _user() or (self._table is not None and self._table.changed()):
            self._reset()
        self.texts.begin_call()
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
                    self._list_again(directory)
                except OSError:
                    self._drop(directory)
            self._stale.discard(directory)
        self.texts.compare(self._files)
        self.texts.blocks.compact()
        return True

    def _take_events(self, changes: inotify.Changes, lost: bool) -> None:
        """Drop changed entries; `lost` is True if the event queue overflowed."""
        if lost:  # list every directory again, and compare every file
            self.texts.events_lost = True
            self._stale.update(self._by_watch.values())
            self._suspect.update(self._by_watch.values())
        for watch, names in changes.items():
            if (directory := self._by_watch.get(watch)) is not None:
                self._apply(directory, names)
            else:
                self.texts.changed(watch)

    def _apply(self, directory: KeptDirectory, names: inotify.EventMasks) -> None:
        """Drop changed entries of a directory."""
        by_name = {entry.name: entry for entry in directory.entries or ()}
        for raw_name, events in names.items():
            name = os.fsdecode(raw_name)
            if not name:
                if events & inotify.ENDS:
                    self._drop(directory)
                else:
                    self._suspect.add(directory)
                continue
            renamed = events & inotify.RENAMES
            if renamed:
                self.texts.names_changed = True
                self._stale.add(directory)
            if (entry := by_name.get(name)) is not None:
                if renamed or isinstance(entry, KeptFile):
                    self._drop_entry(entry)
            elif not renamed and not events & inotify.IS_DIRECTORY:
                # The event may have the name in another case, or the name was removed from an open file.
                self.texts.events_lost = True

    def _is_listed(self, directory: KeptDirectory) -> bool:
        """Return True if a directory is still in the tree."""
        return self._by_watch.get(directory.watch) is directory

    def _is_accessible(self, directory: KeptDirectory) -> bool:
        try:
            status = syscalls.lstat(self.handle(directory), ".")  # needs read and search permission
        except OSError:
            return False
        return (status.st_dev, status.st_ino) == (directory.device, directory.inode)

    def _files(self) -> Iterator[KeptFile]:
        """Yield the files of the tree."""
        for directory in self._top.below():
            for entry in directory.entries or ():
                if isinstance(entry, KeptFile):
                    yield entry

    def _drop(self, directory: KeptDirectory) -> None:
        """Drop the entries below a directory; it is listed again when needed."""
        directory.forget_derived()
        for each in list(directory.below()):
            for entry in each.entries or ():
                if isinstance(entry, KeptFile):
                    self.texts.discard(entry)
            self._names -= len(each.entries or ())
            each.entries = None
            each.derived.clear()
            if self._by_watch.pop(each.watch, None) is not None and self._inotify:
                self._inotify.remove(each.watch)
            each.watch, each.reason = NO_WATCH, ""
            self._stale.discard(each)
            if each in self._handles:
                syscalls.close(self._handles.pop(each))

    def _drop_entry(self, entry: KeptEntry) -> None:
        """Drop the cached data of a name, but keep the name."""
        if isinstance(entry, KeptDirectory):
            self._drop(entry)
        elif isinstance(entry, KeptFile):
            self.texts.discard(entry)

    # Listings

    def open(self, context: RootContext, path: str, real_path: str) -> WatchedDirectory | None:
        """Return the directory at a real path, displayed as `path`; None if it cannot be kept."""
        directory: KeptEntry | None = self._top
        try:
            for name in real_path.split("/") if real_path else ():
                if not isinstance(directory, KeptDirectory) or not self.enter(directory):
                    return None
                directory = directory.find(name)
            if not isinstance(directory, KeptDirectory) or not self.enter(directory):
                return None
        except OSError:
            return None
        return WatchedDirectory.at_start(context, path, directory, self.texts)

    def enter(self, directory: KeptDirectory) -> bool:
        """Watch a directory, then list it; return False if it cannot be kept. Raises OSError."""
        if directory.watch != NO_WATCH:
            return True
        if directory.reason == _LATER:
            directory.reason = ""
        if self._names > self._max_names:
            directory.reason = _TOO_MANY
        elif len(directory.prefix) > _MAX_PATH:
            directory.reason = "a long path"
        elif not directory.reason and self.texts.budget <= 0:
            directory.reason = _LATER
        elif not directory.reason:
            self.texts.budget -= 1
            directory.reason = self._watch(directory, self.handle(directory))
        if directory.reason:
            return False
        try:
            return self._list(directory, self.handle(directory))
        except OSError:
            self._drop(directory)
            raise

    def _watch(self, directory: KeptDirectory, handle: int) -> str:
        """Add a watch, or return why there is none. Raises OSError."""
        status = os.fstat(handle)
        if reason := self._cause or inotify.without_events(handle):
            return reason
        try:
            watch = self._add_watch(handle)
        except OSError as error:
            return "no watches left" if error.errno == errno.ENOSPC else f"no watch: {error.strerror}"
        if self._by_watch.setdefault(watch, directory) is not directory:
            return "the same directory under two paths"
        directory.watch, directory.device, directory.inode = watch, status.st_dev, status.st_ino
        return ""

    def _add_watch(self, handle: int) -> int:
        """Watch a directory; if no watches are left, end those of files. Raises OSError."""
        if self._inotify is None:
            return NO_WATCH
        try:
            return self._inotify.add(handle)
        except OSError as error:
            if error.errno != errno.ENOSPC or not self.texts.give_watches_back():
                raise
        return self._inotify.add(handle)

    def _list_again(self, directory: KeptDirectory) -> None:
        handle = self.handle(directory)
        status = os.fstat(handle)
        same = (status.st_dev, status.st_ino) == (directory.device, directory.inode)
        # A directory that was deleted and created again may have its old inode, but not its old watch.
        if not same or self._add_watch(handle) != directory.watch:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        self._list(directory, handle)

    def _list(self, directory: KeptDirectory, handle: int) -> bool:
        """List a directory; reuse entries with the same name and type. Return False for too many."""
        before = directory.entries or []
        room = self._max_names + len(before) - self._names
        names = self._context.trees.typed_names(handle, directory.real_path)
        listed = list(islice(names, max(room, 0) + 1))
        if len(listed) > room:
            self._drop(directory)
            directory.reason = _TOO_MANY
            return False
        if directory.entries is None:
            entries = [_new_entry(name, type_, directory) for name, type_ in listed]
        else:
            old = {(entry.name, entry.type): entry for entry in before}
            entries = [old.get(each) or _new_entry(*each, directory) for each in listed]
            if before != entries:
                directory.forget_derived()
                for entry in set(before).difference(entries):
                    self._drop_entry(entry)
        directory.entries = entries
        self._names += len(entries) - len(before)
        self.texts.blocks.resize(self._max_bytes - self._names * _NAME_BYTES)
        return True

    def handle(self, directory: KeptDirectory) -> int:
        """Return a descriptor of a directory, until the end of the call. Raises OSError."""
        handles = self._handles
        handle = handles.get(directory)
        if handle is None:
            parent = handles.pop(directory.directory, None)
            if parent is not None:
                handles[directory.directory] = parent  # now the last in the order of closing
                above = directory.directory.real_path
                handle = self._context.trees.call(syscalls.open_directory, parent, above, directory.name)
            else:
                handle = self._open(directory.real_path)
            if len(handles) >= _MAX_HANDLES:
                syscalls.close(handles.pop(next(iter(handles))))
            handles[directory] = handle
        return handle

    def status(self, directory: KeptDirectory, name: str) -> os.stat_result:
        """Return the status of a name in a directory. Raises OSError."""
        handle = self.handle(directory)
        return self._context.trees.call(syscalls.lstat, handle, directory.real_path, name)

    def _open(self, real_path: str) -> int:
        try:
            with resolve_real(self._context, real_path) as resolved:
                return resolved.open(syscalls.open_directory)
        except OSError:
            raise
        except AgentFSError as error:
            raise OSError(errno.EIO, str(error)) from None

    def _close_handles(self) -> None:
        while self._handles:
            syscalls.close(self._handles.popitem()[1])


def _user() -> tuple[int, int, int, list[int]]:
    """Return the process id and the ids that decide which files may be read."""
    return os.getpid(), os.geteuid(), os.getegid(), os.getgroups()


def _half_of_time_left() -> float:
    return max(call_context.deadline(10.0) - time.monotonic(), 0) / 2


def _new_entry(name: str, type_: str, directory: KeptDirectory) -> KeptEntry:
    if type_ == "f":
        return KeptFile(name, directory)
    if type_ == "d":
        return KeptDirectory(name, directory, directory.tree)
    return KeptOther(name, directory, type_)
