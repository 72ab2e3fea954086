"""The texts of a kept tree, and the checks that they are current.

The watch of a directory reports changes through the names in that directory. A kept file also gets its own
watch, because only that watch reports a new hard link, through which the file can be changed by another name.
A file without its own watch is compared by status when it may have changed without an event.
"""

import os
import struct
import time
from collections.abc import Callable, Iterable

from agentfs.fs import syscalls
from agentfs.fs.context import TIME_RESOLUTION, RootContext, file_clock, is_settled
from agentfs.watch import inotify
from agentfs.watch.kept_entries import NO_WATCH, KeptFile
from agentfs.watch.text_blocks import TextBlocks

_FIRST_KEPT = 1000  # directories and texts that the first call may keep
_FILE_WATCHES_SHARE = 4  # file watches take at most this part (one fourth) of the user's limit
_STATUS = struct.Struct("QQqqqqq")


class KeptTexts:
    """The kept texts of one tree."""

    def __init__(
        self,
        context: RootContext,
        max_bytes: int,
        max_file: int,
        queue: inotify.Inotify | None,
        table: inotify.MountTable | None,
    ) -> None:
        self.max_file = max_file  # size of the largest text that is kept
        self.blocks = TextBlocks(max_bytes)
        self.containing = self.blocks.containing
        self._context = context
        self._queue = queue
        self._table = table
        self._began = time.time_ns()
        self._max_watches = 0 if queue is None else inotify.watch_limit() // _FILE_WATCHES_SHARE
        self._by_watch: dict[int, KeptFile] = {}
        # Kept files with several links, without their own watch, and unsettled ones: these were read so soon
        # after a change that a second change may have left the same status.
        self._linked: set[KeptFile] = set()
        self._unwatched: set[KeptFile] = set()
        self._unsettled: set[KeptFile] = set()
        self._kept = 0  # how many directories and texts earlier calls have kept
        self._allowed = self.budget = 0  # how many this call may keep, in total and from now on
        self.names_changed = False  # an unwatched file may have got another name
        self.events_lost = False  # any file may have changed

    def begin_call(self) -> None:
        """Begin a call. It keeps no more than all earlier calls, so it is not much slower than a cold one."""
        self._kept += self._allowed - self.budget
        self._allowed = self.budget = max(_FIRST_KEPT, self._kept)
        self.blocks.begin_search()

    def is_kept_or_wanted(self, file: KeptFile) -> bool:
        """Return True if a file is kept, or if this call may keep it and it may fit."""
        return file.is_kept or (self.budget > 0 and file.previous_use > self.blocks.full_for)

    def mark_used(self, entries: Iterable[object]) -> None:
        """Note that this search needed the texts of some files."""
        for entry in entries:
            if isinstance(entry, KeptFile):
                self.blocks.mark_used(entry)

    def changed(self, watch: int) -> None:
        """Drop the cached content of the file with this watch."""
        if (file := self._by_watch.get(watch)) is not None:
            self.discard(file)

    def compare(self, every: Callable[[], Iterable[KeptFile]]) -> None:
        """Drop cached files that may have changed without an event, if their status differs."""
        suspected = self.events_lost or self.names_changed
        files = set(every()) if self.events_lost else set(self._linked)
        if suspected:
            files |= self._unwatched
        for file in files:
            if file.signature and ((suspected and file in self._unsettled) or not self.is_current(file)):
                self.discard(file)
        self.names_changed = self.events_lost = False

    def load(self, file: KeptFile, fd: int, status: os.stat_result) -> bool:
        """Keep the text of an open file; return False if it cannot be kept now."""
        size, linked = status.st_size, status.st_nlink > 1
        # Events of a file that the system has mounted have its name elsewhere.
        table, real_path = self._table, file.real_path
        is_mounted = table is not None and table.covers(real_path)
        if size > self.max_file or is_mounted:
            return False
        changed = max(status.st_mtime_ns, status.st_ctime_ns)
        # It may be a hard link to another kept file, made while the tree was watched.
        self.names_changed |= linked and changed > self._began - TIME_RESOLUTION
        settled = is_settled(changed, file_clock())
        if linked and not settled:
            return False
        self.budget -= 1
        block = self.blocks.reserve(size, file.previous_use)
        if block is None:
            return False
        signature = signature_of(status)
        if not linked:
            self._watch(file, fd)
        # One byte more than the size is read to detect a file that grows. The second status detects changes
        # and links before the watch began.
        read = syscalls.read_at(fd, (memoryview(block.data)[block.end : block.end + size + 1],), 0)
        if read != size or (file.watch != NO_WATCH and signature_of(os.fstat(fd)) != signature):
            self._end_watch(file)
            return False
        self.blocks.add(file, block, size)
        file.signature, file.size = signature, size
        if linked:
            self._linked.add(file)
        elif file.watch == NO_WATCH:
            self._unwatched.add(file)
        if not settled:
            self._unsettled.add(file)
        return True

    def discard(self, file: KeptFile) -> None:
        """Drop the cached content of a file."""
        if file.signature:
            file.drop_text()
            file.signature = 0
            self._end_watch(file)
            for some in (self._linked, self._unwatched, self._unsettled):
                some.discard(file)

    def is_current(self, file: KeptFile) -> bool:
        """Return True if a file still has the status that it had when it was read."""
        try:  # a link on the way may lead outside, but the status is only compared
            status = self._context.trees.status(file.real_path)
        except OSError:
            return False
        return signature_of(status) == file.signature

    def give_watches_back(self) -> bool:
        """End all file watches, to leave them to directories; return False if there are none."""
        if not self._by_watch:
            return False
        for file in [*self._by_watch.values()]:
            self._end_watch(file)
            self._unwatched.add(file)
        self._max_watches = 0
        self.names_changed = True  # so that these files are compared
        return True

    def _watch(self, file: KeptFile, fd: int) -> None:
        """Watch an open file, unless there are too many watches."""
        if self._queue is None or len(self._by_watch) >= self._max_watches:
            return
        try:
            watch = self._queue.add_file(fd)
        except OSError:
            return
        # If the file was moved after it was kept, its old entry has this watch.
        if self._by_watch.setdefault(watch, file) is file:
            file.watch = watch

    def _end_watch(self, file: KeptFile) -> None:
        if self._by_watch.pop(file.watch, None) is not None and self._queue:
            self._queue.remove(file.watch)
        file.watch = NO_WATCH


def signature_of(status: os.stat_result) -> int:
    """Return a hash of a status; any change of the file changes it, even a new hard link."""
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
