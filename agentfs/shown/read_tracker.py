"""The read history of a workspace: the lines shown of each revision of a file, and the ids of lines.

A file is named by its real path, so that two links to it share its history. Memory is bounded: the least
recently used files are forgotten first, and their texts before their records. A forgotten file counts as
unread, so that `write` asks for a read.
"""

import sys
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from threading import Lock
from typing import NamedTuple

from agentfs.base.forks import watch_forks
from agentfs.base.lazy import hashlib
from agentfs.fs.path import is_in
from agentfs.text.compare import changed_lines
from agentfs.text.diff import DIFF_CONTEXT, ReplacedLines
from agentfs.text.lines import bodies_of, count_lines

MAX_KNOWN_FILES = 4096
MAX_VERSIONS = 16
MAX_TEXT_BYTES = 32 * 1024 * 1024
MAX_ONE_TEXT_BYTES = MAX_TEXT_BYTES // 4
MAX_LINES_WITH_IDS = 250_000
MAX_RANGES = 1000
MIN_DIGITS = 6  # hex digits of the shortest line id
MAX_IDS_OF_FILE = 2 * MAX_LINES_WITH_IDS * (MIN_DIGITS + 1)  # characters of the ids of all its revisions
_ENTRY_BYTES = 400  # memory that a cached text takes besides the text itself

Key = tuple[str, str]  # a real path and a revision
Range = tuple[int, int]  # first and last line, from 1


class ReadRecord(NamedTuple):
    """One revision of a file.

    Attributes:
        revision: The hash of the content.
        ranges: The lines that were read, as ascending ranges that do not touch.
        total: The number of lines.
        whole: True if all lines were read, or if this workspace wrote the file.
        is_read: False if only line ids were made.
        text: The text while it is cached. That of a notebook is the text that `read` shows.
        ids: The ids of the lines, joined by blanks, or None.
    """

    revision: str
    ranges: tuple[Range, ...] = ()
    total: int = 0
    whole: bool = False
    is_read: bool = True
    text: str | None = None
    ids: str | None = None

    def missing(self) -> tuple[Range, ...]:
        """Return the lines that have not been read."""
        if self.whole:
            return ()
        starts = [1, *(last + 1 for _, last in self.ranges)]
        ends = [*(first - 1 for first, _ in self.ranges), self.total]
        return tuple((start, end) for start, end in zip(starts, ends, strict=True) if start <= end)

    @property
    def read_ranges(self) -> tuple[Range, ...]:
        """The ranges that were read; a range without end if all lines were read."""
        return ((1, sys.maxsize),) if self.whole else self.ranges


_NOTHING = OrderedDict[str, ReadRecord]()


class VersionWithIds(NamedTuple):
    """The lines of one revision without their ends, the line ids, and the ranges that were read."""

    lines: list[str]
    ids: list[str]
    ranges: tuple[Range, ...]


class ReadTracker:
    """The read history of one workspace; thread-safe and bounded. Its line ids depend on `salt`."""

    def __init__(self, salt: str = "") -> None:
        self._lock = Lock()
        # By path, then by revision; the most recently used are last.
        self._files = OrderedDict[str, OrderedDict[str, ReadRecord]]()
        self._texts = OrderedDict[Key, int]()  # sizes of cached texts, the oldest first
        self._size = 0
        self._latest_ids = dict[str, str]()  # by path: the revision whose ids a model saw last
        # Grows when ids are dropped, and salts new ids, so that a dropped id never names another line.
        self._salt, self._generation = salt, 0
        watch_forks(self)

    def after_fork(self) -> None:
        """Replace the lock, which a thread of the parent may hold."""
        self._lock = Lock()

    def record_read(
        self, real_path: str, revision: str, text: str | None, first: int, last: int, total: int
    ) -> None:
        """Record that the lines from `first` to `last` were read; none if `last` < `first`."""
        first, last = max(first, 1), min(last, total)
        with self._lock:
            added = ((first, last),) if first <= last else ()
            self._put(real_path, self._united(real_path, revision, added, total, text))

    def record_write(self, real_path: str, revision: str, text: str | None) -> None:
        """Record that this workspace wrote the file. All of it then counts as read."""
        with self._lock:
            self._latest_ids.pop(real_path, None)
            self._put(real_path, ReadRecord(revision, whole=True, text=text))

    def record_edit(
        self,
        real_path: str,
        before: str,
        after: str,
        text: str,
        hunks: Sequence[ReplacedLines],
        *,
        seen: bool = False,
    ) -> None:
        """Carry the read lines of the revision `before` an edit over to the revision `after` it.

        Read lines stay read, and a file that was never read stays unread. If the diff was `seen`, its lines
        count as read.
        """
        with self._lock:
            self._latest_ids.pop(real_path, None)
            known, present = self._get(real_path, before), self._get(real_path, after)
            if known is None:
                return
            record = present or ReadRecord(after, is_read=False)
            if known.is_read:
                # An edit can restore an earlier revision, so unite the ranges of both.
                total = count_lines(text)
                ranges = ranges_after_edit(known.ranges, hunks, total)
                ranges += ranges_of_diff(hunks, total) if seen else ()
                record = self._united(real_path, after, ranges, total, text)
                record = record._replace(whole=record.whole or known.whole)
            if known.ids is not None and record.ids is None and text.count("\n") <= MAX_LINES_WITH_IDS:
                record = record._replace(ids=self._make_ids(real_path, text, known))
            self._put(real_path, record._replace(text=text))

    def record_external_change(
        self, real_path: str, revision: str, text: str, hunks: Sequence[ReplacedLines]
    ) -> None:
        """Record that a file has changed since its last read. Unchanged lines stay read."""
        with self._lock:
            versions = self._read_versions(real_path)
            if not versions or any(version.revision == revision for version in versions):
                return
            total = count_lines(text)
            ranges = unchanged_ranges(versions[-1].read_ranges, hunks, total)
            self._put(real_path, record_of(revision, ranges, total, text=text))

    def record_restore(self, real_path: str, revision: str) -> None:
        """Record that an undo or redo restored a revision. It then counts as the last one read."""
        with self._lock:
            self._latest_ids.pop(real_path, None)
            if (known := self._get(real_path, revision)) is not None:
                self._put(real_path, known)

    def record_copy(self, real_path: str, to: str) -> None:
        """Copy the read history of a moved file, or of the files below a directory, to the new path."""
        with self._lock:
            for path in [each for each in self._files if is_in(each, real_path)]:
                for record in self._read_versions(path):
                    self._put(to + path[len(real_path) :], record._replace(ids=None))

    def line_ids(
        self, real_path: str, revision: str, text: str, *, to_model: bool = False
    ) -> tuple[str, ...]:
        """Return an id for each line of a revision; none for a text that is too large to cache.

        Set `to_model` if a model will see the ids.
        """
        with self._lock:
            record = self._get(real_path, revision)
            if record is None or record.ids is None:
                if _size_of(text) > MAX_ONE_TEXT_BYTES or text.count("\n") > MAX_LINES_WITH_IDS:
                    return ()
                record = record or ReadRecord(revision, is_read=False)
                self._put(real_path, record._replace(text=text, ids=self._make_ids(real_path, text)))
                record = self._get(real_path, revision)
            if record is None or record.ids is None:
                return ()
            if to_model:
                self._latest_ids[real_path] = revision
            return tuple(record.ids.split())

    def latest_ids(self, real_path: str) -> str | None:
        """Return the revision whose line ids a model last saw; None after a change by this workspace."""
        with self._lock:
            return self._latest_ids.get(real_path)

    def versions_with_ids(self, real_path: str) -> list[VersionWithIds]:
        """Return the revisions of a file that have line ids, the latest last."""
        with self._lock:
            return [
                VersionWithIds(bodies_of(record.text or ""), record.ids.split(), record.read_ranges)
                for record in self._versions(real_path)
                if record.ids is not None
            ]

    def versions_with_text(self, real_path: str) -> list[ReadRecord]:
        """Return the read revisions of a file whose texts are cached, the latest first."""
        with self._lock:
            return [record for record in self._read_versions(real_path)[::-1] if record.text is not None]

    def other_texts(self, real_path: str) -> list[tuple[str, str]]:
        """Return the path and the latest cached text of each other file, the most recently used first."""
        with self._lock:
            latest = [
                (path, self._read_versions(path)) for path in reversed(self._files) if path != real_path
            ]
            return [(path, versions[-1].text) for path, versions in latest if versions and versions[-1].text]

    def fully_read(self, real_path: str, revision: str) -> bool:
        """Return True if all lines of a revision were read, or this workspace wrote it."""
        with self._lock:
            known = self._get(real_path, revision)
            return known is not None and known.whole

    def last(self, real_path: str) -> ReadRecord | None:
        """Return the last revision of a file that was read or written."""
        with self._lock:
            return next(reversed(self._read_versions(real_path)), None)

    def knows(self, real_path: str) -> bool:
        """Return True if anything is recorded of a file."""
        with self._lock:
            return real_path in self._files

    def forget(self) -> None:
        """Forget everything, for example because the model's context was cut."""
        with self._lock:
            for path in [*self._files]:
                self._drop_file(path)

    def _get(self, path: str, revision: str) -> ReadRecord | None:
        return self._files.get(path, _NOTHING).get(revision)

    def _versions(self, path: str) -> list[ReadRecord]:
        return [*self._files.get(path, _NOTHING).values()]

    def _read_versions(self, path: str) -> list[ReadRecord]:
        return [record for record in self._versions(path) if record.is_read]

    def _united(
        self, path: str, revision: str, ranges: Sequence[Range], total: int, text: str | None
    ) -> ReadRecord:
        """Return the record of a revision after more ranges were read."""
        known = self._get(path, revision)
        if known is None:
            return record_of(revision, ranges, total, text)
        if known.whole:
            return known._replace(text=text)
        return record_of(revision, (*known.ranges, *ranges), total, text, known.ids)

    def _make_ids(self, path: str, text: str, before: ReadRecord | None = None) -> str:
        """Return ids for the lines of a text; lines of `before`, or of the latest revision, keep theirs."""
        versions = [record for record in self._versions(path) if record.ids is not None]
        taken = {name for record in versions for name in (record.ids or "").split()}
        salt = f"{self._salt}{self._generation or ''}"
        if not versions:
            return " ".join(new_line_ids(bodies_of(text), taken, salt))
        before = before or versions[-1]
        old, ids = bodies_of(before.text or ""), (before.ids or "").split()
        return " ".join(carry_line_ids(old, ids, bodies_of(text), taken, salt))

    def _put(self, path: str, record: ReadRecord) -> None:
        """Store a record as the most recently used. If it has no text or ids, keep those stored before."""
        known = self._get(path, record.revision)
        if known is not None:
            text = known.text if record.text is None else record.text
            record = record._replace(text=text, ids=record.ids or known.ids)
        self._size -= self._texts.pop((path, record.revision), 0)
        size = 0 if record.text is None else _size_of(record.text)
        if size > MAX_ONE_TEXT_BYTES:
            size, record = 0, record._replace(text=None, ids=None)
        if size:
            self._texts[path, record.revision] = size = size + (_size_of(record.ids) if record.ids else 0)
            self._size += size
        versions = self._files.setdefault(path, OrderedDict())
        versions[record.revision] = record
        versions.move_to_end(record.revision)
        self._files.move_to_end(path)
        while len(versions) > MAX_VERSIONS:
            self._drop(path, next(iter(versions)))
        while len(self._files) > MAX_KNOWN_FILES:
            self._drop_file(next(iter(self._files)))
        ids = [(each.revision, len(each.ids)) for each in versions.values() if each.ids]
        while len(ids) > 1 and sum(size for _, size in ids) > MAX_IDS_OF_FILE:
            self._drop(path, ids.pop(0)[0], keep_record=True)
        while self._size > MAX_TEXT_BYTES:
            self._drop(*next(iter(self._texts)), keep_record=True)

    def _drop(self, path: str, revision: str, *, keep_record: bool = False) -> None:
        """Drop a revision with its text and line ids. With `keep_record`, keep the record of a read."""
        record = self._files[path][revision]
        self._size -= self._texts.pop((path, revision), 0)
        if record.ids is not None:
            self._generation += 1
            if self._latest_ids.get(path) == revision:
                del self._latest_ids[path]
        if keep_record and record.is_read:
            self._files[path][revision] = record._replace(text=None, ids=None)
        else:
            del self._files[path][revision]
            if not self._files[path]:
                del self._files[path]

    def _drop_file(self, path: str) -> None:
        for revision in [*self._files[path]]:
            self._drop(path, revision)


def _size_of(text: str) -> int:
    return sys.getsizeof(text) + _ENTRY_BYTES


def united(ranges: Iterable[Range]) -> tuple[Range, ...]:
    """Return ranges in order, and join those that touch."""
    joined: list[Range] = []
    for first, last in sorted(ranges):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(joined[-1][1], last))
        else:
            joined.append((first, last))
    return tuple(joined)


def record_of(
    revision: str, ranges: Iterable[Range], total: int, text: str | None = None, ids: str | None = None
) -> ReadRecord:
    """Return the record of a revision with the ranges that were read, in any order."""
    read = united(ranges)
    whole = total == 0 or read == ((1, total),)
    # A reader of every second line would need a range for each line. Further ranges count as unread.
    return ReadRecord(revision, read[:MAX_RANGES], total, whole, True, text, ids)


def ranges_after_edit(ranges: Sequence[Range], hunks: Sequence[ReplacedLines], total: int) -> list[Range]:
    """Return the read lines after an edit. New lines count as read if all lines that they replace were."""
    replaced = [
        (hunk.new_start + 1, hunk.new_end)
        for hunk in hunks
        if hunk.new_end > hunk.new_start
        and (
            hunk.old_start == hunk.old_end
            or any(first - 1 <= hunk.old_start and hunk.old_end <= last for first, last in ranges)
        )
    ]
    return [*unchanged_ranges(ranges, hunks, total), *replaced]


def ranges_of_diff(hunks: Sequence[ReplacedLines], total: int) -> list[Range]:
    """Return the lines of the new text that a diff shows."""
    around = [(max(hunk.new_start + 1 - DIFF_CONTEXT, 1), hunk.new_end + DIFF_CONTEXT) for hunk in hunks]
    return [(first, min(last, total)) for first, last in around if first <= total]


def unchanged_ranges(ranges: Sequence[Range], hunks: Sequence[ReplacedLines], total: int) -> list[Range]:
    """Return the read lines that no hunk replaced, by their new numbers."""
    moved: list[Range] = []
    old = new = 0  # where the unchanged lines before the next hunk start
    for hunk in (*hunks, ReplacedLines(sys.maxsize, 0, 0, 0)):
        for first, last in ranges:
            start, end = max(first - 1, old), min(last, hunk.old_start)
            if start < end and start - old + new < total:
                moved.append((start - old + new + 1, min(end - old + new, total)))
        old, new = hunk.old_end, hunk.new_end
    return moved


def new_line_ids(lines: Iterable[str], taken: set[str], salt: str = "") -> list[str]:
    """Return an id of six or more hex digits for each line, and add the ids to `taken`.

    An id is the beginning of a hash, made from the line and the number of equal lines above it.
    """
    ids: list[str] = []
    above: dict[str, int] = {}
    for line in lines:
        number = above.get(line, 0)
        size, line_id = MIN_DIGITS, ""
        while not line_id or line_id in taken:
            content = f"{salt}:{number}:{line}".encode("utf-8", "surrogatepass")
            line_id = hashlib.blake2b(content, digest_size=16).hexdigest()[:size]
            number += 1
            # After some collisions only a longer id is likely to be free.
            size = min(size + (number % 4 == 0), 32)
        above[line] = number
        taken.add(line_id)
        ids.append(line_id)
    return ids


def carry_line_ids(
    old: Sequence[str], ids: Sequence[str], new: Sequence[str], taken: set[str], salt: str = ""
) -> list[str]:
    """Return ids for the lines of a changed file. Unchanged lines keep their ids."""
    carried: list[str | None] = [None] * len(new)
    old_at = new_at = 0
    for old_start, old_end, new_start, new_end in changed_lines(old, new):
        carried[new_at:new_start] = ids[old_at:old_start]
        old_at, new_at = old_end, new_end
    carried[new_at:] = ids[old_at:]
    missing = [line for line, line_id in zip(new, carried, strict=True) if line_id is None]
    made = iter(new_line_ids(missing, taken, salt))
    return [next(made) if line_id is None else line_id for line_id in carried]
