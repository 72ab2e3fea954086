"""The texts of a kept tree, and what shows that they are current.

The watch of a directory reports changes that are made through the names in it. A kept file gets its own watch
too, because only that reports a new hard link, through which the file can be changed under any name. A file
without its own watch is compared by status when it may have changed without an event.
"""

import os
import struct
import time
from collections.abc import Callable, Iterable

from agentfs.fs import inotify, syscalls
from agentfs.fs.context import TIME_RESOLUTION, RootContext
from agentfs.fs.file import read_start
from agentfs.fs.syscalls import Mounts
from agentfs.watch.kept_entries import KeptFile
from agentfs.watch.text_blocks import TextBlocks

_FILE_WATCHES_SHARE = 4  # files take at most one part in so many of the watches that a user may have
_COARSE_CLOCK = 5  # Linux's CLOCK_REALTIME_COARSE, from which the times of files are taken
_TICK = 20_000_000  # nanoseconds, longer than one step of that clock
_STATUS = struct.Struct("QQqqqqq")


class KeptTexts:
    """The kept texts of one tree."""

    def __init__(
        self,
        context: RootContext,
        max_bytes: int,
        max_file: int,
        queue: inotify.Inotify | None,
        mounts: Mounts | None,
    ) -> None:
        self.max_file = max_file  # bytes of the largest text that is kept
        self.blocks = TextBlocks(max_bytes)
        self.mark_used, self.containing = self.blocks.mark_used, self.blocks.containing
        self._context = context
        self._queue = queue
        self._mounts = mounts
        self._began = time.time_ns()
        self._max_watches = 0 if queue is None else inotify.watch_limit() // _FILE_WATCHES_SHARE
        self._by_watch: dict[int, KeptFile] = {}
        # Kept files: those with several links; those without their own watch; those that were read so soon
        # after a change that a second change may have left the status unchanged.
        self._linked: set[KeptFile] = set()
        self._unwatched: set[KeptFile] = set()
        self._unsettled: set[KeptFile] = set()
        self.names_changed = False  # an unwatched file may have had another name
        self.events_lost = False  # any file may have changed

    def changed(self, watch: int) -> None:
        """Drop what is kept of the file that an event is about."""
        if (file := self._by_watch.get(watch)) is not None:
            self.discard(file)

    def compare(self, every: Callable[[], Iterable[KeptFile]]) -> None:
        """Drop the files whose status differs, among those that may have changed without an event."""
        suspected = self.events_lost or self.names_changed
        files = set(every()) if self.events_lost else set(self._linked)
        if suspected:
            files |= self._unwatched
        for file in files:
            if file.signature and ((suspected and file in self._unsettled) or not self.is_current(file)):
                self.discard(file)
        self.names_changed = self.events_lost = False

    def load(self, file: KeptFile, fd: int, status: os.stat_result) -> bool:
        """Keep the text of an open file; return False if that is not possible now."""
        size, linked = status.st_size, status.st_nlink > 1
        # The events of a mounted file have the name that it has elsewhere.
        if size > self.max_file or (self._mounts is not None and self._mounts.covers(file.real_path)):
            return False
        changed = max(status.st_mtime_ns, status.st_ctime_ns)
        # It may be a hard link to another kept file, made since the tree is watched.
        self.names_changed |= linked and changed > self._began - TIME_RESOLUTION
        settled = _is_settled(changed)
        if linked and not settled:
            return False
        block = self.blocks.reserve(size)
        if block is None:
            return False
        signature = signature_of(status)
        if not linked:
            self._watch(file, fd)
        # One byte more than the size in the status shows a file that grows. A file that was changed or linked
        # before it was watched has another status.
        read = read_start(fd, memoryview(block.data)[block.end : block.end + size + 1])
        if read != size or (file.watch >= 0 and signature_of(os.fstat(fd)) != signature):
            self._end_watch(file)
            return False
        self.blocks.add(file, block, size)
        file.signature = signature
        if linked:
            self._linked.add(file)
        elif file.watch < 0:
            self._unwatched.add(file)
        if not settled:
            self._unsettled.add(file)
        return True

    def discard(self, file: KeptFile) -> None:
        """Drop what is kept of a file's content."""
        if file.signature:
            file.drop_text()
            file.signature = 0
            self._end_watch(file)
            for some in (self._linked, self._unwatched, self._unsettled):
                some.discard(file)

    def is_current(self, file: KeptFile) -> bool:
        """Return True if a file has the status with which it was read."""
        try:  # only compared: a link on the way may lead outside
            status = syscalls.lstat(self._context.shared_handle.handle.fd, file.real_path)
        except OSError:
            return False
        return signature_of(status) == file.signature

    def give_watches_back(self) -> bool:
        """Give up the watches of files in favor of directories; return False if there are none."""
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
        # Another entry has the watch if the file was moved after that entry was read.
        if self._by_watch.setdefault(watch, file) is file:
            file.watch = watch

    def _end_watch(self, file: KeptFile) -> None:
        if file.watch >= 0 and self._by_watch.pop(file.watch, None) is not None and self._queue:
            self._queue.remove(file.watch)
        file.watch = -1


def _is_settled(changed: int) -> bool:
    """Return True if a later change of the file will give it a later time."""
    if changed % 1_000_000:  # the file system has more than milliseconds
        return time.clock_gettime_ns(_COARSE_CLOCK) - changed >= min(_TICK, TIME_RESOLUTION)
    return time.time_ns() - changed >= TIME_RESOLUTION


def signature_of(status: os.stat_result) -> int:
    """Return a hash of a status that any change of the file changes, a new hard link too."""
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
