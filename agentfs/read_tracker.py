"""What a workspace has read: which versions of which files, and which of their lines.

Pure memory, no disk. A file is named by its real path, so that one with two names is one file; a version is a
revision. Memory is bounded: the files used longest ago are forgotten first, and texts before records. What is
forgotten counts as never read, which makes `write` ask for a read: the safe side.
"""

import sys
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from threading import Lock
from typing import NamedTuple

from agentfs.forks import watch_forks
from agentfs.text import bodies_of, carry_line_ids, count_lines, new_line_ids

MAX_FILES = 4096
MAX_VERSIONS = 16
MAX_TEXT_BYTES = 32 * 1024 * 1024
MAX_ONE_TEXT_BYTES = MAX_TEXT_BYTES // 4
MAX_LINES_WITH_IDS = 250_000
_ENTRY_BYTES = 400  # of one cached text, beside the text itself

MAX_RANGES = 1000

Key = tuple[str, str]  # a real path and a revision
Range = tuple[int, int]  # first and last line, from 1


class Hunk(NamedTuple):
    """Lines that a change replaced: 0-based, the end exclusive, in the file before and after."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int


class ReadRecord(NamedTuple):
    """What has been read of one version of a file: ranges in order and apart, its text where it is cached.

    `whole` is set where all lines have been read, or this workspace wrote the file.
    """

    revision: str
    ranges: tuple[Range, ...]
    total: int
    whole: bool
    text: str | None = None

    def missing(self) -> tuple[Range, ...]:
        """Return the ranges that have not been read."""
        if self.whole:
            return ()
        starts = [1, *(last + 1 for _, last in self.ranges)]
        ends = [*(first - 1 for first, _ in self.ranges), self.total]
        return tuple((start, end) for start, end in zip(starts, ends, strict=True) if start <= end)


class VersionWithIds(NamedTuple):
    """One version of a file: its lines without their ends, their ids, and the ranges that were read."""

    revision: str
    lines: tuple[str, ...]
    ids: tuple[str, ...]
    ranges: tuple[Range, ...]


Records = OrderedDict[str, OrderedDict[str, ReadRecord]]  # by path and revision, the latest used last


class TextCache:
    """Texts of versions with the ids of their lines, which are dropped together, the oldest first.

    Ids made after some were dropped have another salt, so that an id that is still known elsewhere never
    comes to mean another line. `latest_ids` has the revision of each file whose ids a model was given last.
    """

    def __init__(self) -> None:
        self.texts: OrderedDict[Key, str] = OrderedDict()
        self.ids: dict[str, dict[str, str]] = {}  # by path and revision, joined by blanks
        self.latest_ids: dict[str, str] = {}
        self.generation = 0  # how often ids were dropped
        self.size = 0

    def ids_of(self, key: Key) -> str | None:
        """Return the ids of a version, joined by blanks."""
        return self.ids.get(key[0], {}).get(key[1])

    def add(self, key: Key, text: str) -> list[Key]:
        """Cache a text, unless it is too large, and return the keys that were dropped."""
        size = _size_of(text)
        if size > MAX_ONE_TEXT_BYTES:
            return self.drop(key)
        if key in self.texts:
            self.texts.move_to_end(key)
            return []
        self.texts[key] = text
        self.size += size
        return self._drop_oldest()

    def add_ids(self, key: Key, ids: Sequence[str]) -> list[Key]:
        """Cache the ids of a text that is cached, and return the keys that were dropped."""
        path, revision = key
        versions = self.ids.setdefault(path, {})
        versions[revision] = " ".join(ids)
        self.size += _size_of(versions[revision])
        dropped: list[Key] = []
        while len(versions) > MAX_VERSIONS or (
            len(versions) > 1
            and sum(each.count(" ") + 1 for each in versions.values()) > 2 * MAX_LINES_WITH_IDS
        ):
            dropped += self.drop((path, next(iter(versions))))
        return dropped + self._drop_oldest()

    def make_ids(
        self, path: str, text: str, before: str | None = None, changes: Sequence[Hunk] | None = None
    ) -> list[str]:
        """Return line ids; lines that stayed since `before`, or since the latest version, keep theirs."""
        versions = self.ids.get(path, {})
        taken = {name for ids in versions.values() for name in ids.split()}
        salt = str(self.generation) if self.generation else ""
        if not versions:
            return new_line_ids(bodies_of(text), taken, salt)
        before = before or next(reversed(versions))
        old = bodies_of(self.texts[path, before])
        return carry_line_ids(old, versions[before].split(), bodies_of(text), taken, salt, changes)

    def drop(self, key: Key) -> list[Key]:
        """Drop a text and its ids; return its key if it was there."""
        text = self.texts.pop(key, None)
        if text is None:
            return []
        self.size -= _size_of(text)
        path, revision = key
        ids = self.ids.get(path, {}).pop(revision, None)
        if ids is not None:
            self.size -= _size_of(ids)
            self.generation += 1
            if self.latest_ids.get(path) == revision:
                del self.latest_ids[path]
            if not self.ids[path]:
                del self.ids[path]
        return [key]

    def _drop_oldest(self) -> list[Key]:
        dropped: list[Key] = []
        while self.size > MAX_TEXT_BYTES:
            dropped += self.drop(next(iter(self.texts)))
        return dropped


class ReadTracker:
    """The read history of one workspace; thread-safe and bounded."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._records: Records = OrderedDict()
        self._cache = TextCache()
        self._said: OrderedDict[tuple[str, ...], str] = OrderedDict()
        watch_forks(self)

    def after_fork(self) -> None:
        """Replace the lock, which a thread of the parent may hold."""
        self._lock = Lock()

    def record_read(
        self, real_path: str, revision: str, text: str | None, first: int, last: int, total: int
    ) -> None:
        """Record that the lines from `first` to `last` were read; none where `last` is the smaller one."""
        with self._updating():
            added = ((max(first, 1), min(last, total)),) if first <= last else ()
            self._keep(real_path, self._united(real_path, revision, added, total), text)

    def record_write(self, real_path: str, revision: str, text: str | None) -> None:
        """Record that this workspace wrote the file, which counts as having read all of it."""
        with self._updating():
            self._set_latest_ids(real_path, None)
            self._keep(real_path, ReadRecord(revision, (), 0, whole=True), text)

    def record_edit(
        self, real_path: str, before: str, after: str, text: str | None, *, hunks: Sequence[Hunk], total: int
    ) -> None:
        """Carry what was read of one version over to the version that an edit made of it.

        An edit neither gives nor takes: lines that were read stay so, and a file never read stays unread.
        """
        with self._updating():
            self._set_latest_ids(real_path, None)
            if (
                text is not None
                and self._cache.ids_of((real_path, before)) is not None
                and self._cache.ids_of((real_path, after)) is None
                and text.count("\n") <= MAX_LINES_WITH_IDS
            ):
                ids = self._cache.make_ids(real_path, text, before, hunks)
                self._add_ids((real_path, after), text, ids)
            known = self._record(real_path, before)
            if known is None:
                return
            # An edit can bring an earlier version back.
            record = self._united(real_path, after, ranges_after_edit(known.ranges, hunks, total), total)
            self._keep(real_path, record._replace(whole=record.whole or known.whole), text)

    def record_external_change(self, real_path: str, revision: str, text: str, hunks: Sequence[Hunk]) -> None:
        """Record that a model was shown what differs from the version read last; the rest stays read."""
        with self._updating():
            versions = self._records.get(real_path)
            if not versions or revision in versions:
                return
            last = next(reversed(versions.values()))
            total = count_lines(text)
            ranges = ((1, sys.maxsize),) if last.whole else last.ranges
            record = record_of(revision, unchanged_ranges(ranges, hunks, total), total)
            self._keep(real_path, record._replace(whole=False), text)

    def record_restore(self, real_path: str, revision: str) -> None:
        """Record that an undo or a redo brought a version back, which counts as the one read last."""
        with self._updating():
            self._set_latest_ids(real_path, None)
            known = self._record(real_path, revision)
            if known is not None:
                self._keep(real_path, known, self._cache.texts.get((real_path, revision)))

    def record_rollback(self, real_path: str, revision: str) -> None:
        """Record that a version was only staged and never came to be."""
        with self._updating():
            versions = self._records.get(real_path, OrderedDict[str, ReadRecord]())
            if versions.pop(revision, None) is not None:
                self._changed(real_path, revision)
                self._dropped(self._cache.drop((real_path, revision)))
                if not versions:
                    del self._records[real_path]

    def record_move(self, real_path: str, to: str) -> None:
        """Record that a file has a new path, for which what was read of it holds too."""
        with self._updating():
            for revision, record in self._versions(real_path):
                self._keep(to, record, self._cache.texts.get((real_path, revision)))

    def line_ids(
        self, real_path: str, revision: str, text: str, *, to_model: bool = False
    ) -> tuple[str, ...]:
        """Return an id for each line of a version; none where the text is too large to be cached."""
        with self._updating():
            key = (real_path, revision)
            if self._cache.ids_of(key) is None:
                if _size_of(text) > MAX_ONE_TEXT_BYTES or text.count("\n") > MAX_LINES_WITH_IDS:
                    return ()
                self._add_ids(key, text, self._cache.make_ids(real_path, text))
            ids = self._cache.ids_of(key)
            if to_model and ids is not None:
                self._set_latest_ids(real_path, revision)
            return tuple((ids or "").split())

    def latest_ids(self, real_path: str) -> str | None:
        """Return the revision whose line ids a model was given last; None once the file was changed here."""
        with self._lock:
            return self._cache.latest_ids.get(real_path)

    def versions_with_ids(self, real_path: str) -> list[VersionWithIds]:
        """Return the versions of a file whose lines have ids, the latest last."""
        with self._lock:
            return [
                VersionWithIds(
                    revision,
                    tuple(bodies_of(self._cache.texts[real_path, revision])),
                    tuple(ids.split()),
                    _read_ranges(self._record(real_path, revision)),
                )
                for revision, ids in self._cache.ids.get(real_path, {}).items()
            ]

    def versions_with_text(self, real_path: str) -> list[ReadRecord]:
        """Return the versions of a file whose texts are cached, the latest first."""
        with self._lock:
            records = reversed(self._versions(real_path))
            found = [self._with_text(real_path, record) for _, record in records]
            return [record for record in found if record.text is not None]

    def other_texts(self, real_path: str) -> list[tuple[str, str]]:
        """Return the path and the latest text of each other file, as far as cached; the latest used first."""
        with self._lock:
            latest = [(path, next(reversed(self._records[path]))) for path in reversed(self._records)]
            texts = self._cache.texts
            return [(key[0], texts[key]) for key in latest if key in texts and key[0] != real_path]

    def fully_read(self, real_path: str, revision: str) -> bool:
        """Return whether a version was read from the first to the last line, or written here."""
        with self._lock:
            known = self._record(real_path, revision)
            return known is not None and known.whole

    def last(self, real_path: str) -> ReadRecord | None:
        """Return the version of a file that was read or written last, with its text if it is cached."""
        with self._lock:
            versions = self._records.get(real_path)
            return self._with_text(real_path, next(reversed(versions.values()))) if versions else None

    def knows(self, real_path: str) -> bool:
        """Return whether anything is recorded of a file."""
        with self._lock:
            return real_path in self._records or real_path in self._cache.ids

    def was_said(self, subject: tuple[str, ...], text: str) -> bool:
        """Return True if this text was the last one said of a subject; otherwise it is from now on."""
        with self._lock:
            repeated = self._said.get(subject) == text
            self._said[subject] = text
            while len(self._said) > MAX_FILES:
                self._said.popitem(last=False)
            return repeated

    def forget(self) -> None:
        """Forget everything, as after the model's context was cut."""
        with self._updating():
            self._said.clear()
            self._records.clear()
            for key in list(self._cache.texts):
                self._cache.drop(key)

    def _updating(self) -> AbstractContextManager[object]:
        """Return what holds the lock for one change of the history."""
        return self._lock

    def _changed(self, path: str, revision: str) -> None:
        """Note that what is known of a version has changed, for subclasses that copy the history."""

    def _record(self, real_path: str, revision: str) -> ReadRecord | None:
        versions = self._records.get(real_path)
        return versions.get(revision) if versions is not None else None

    def _united(self, real_path: str, revision: str, ranges: Sequence[Range], total: int) -> ReadRecord:
        """Return the record of a version of which some more ranges have been read."""
        record = self._record(real_path, revision)
        if record is not None and record.whole:
            return record
        return record_of(revision, (*(record.ranges if record else ()), *ranges), total)

    def _versions(self, real_path: str) -> list[tuple[str, ReadRecord]]:
        return list((self._records.get(real_path) or OrderedDict[str, ReadRecord]()).items())

    def _with_text(self, real_path: str, record: ReadRecord) -> ReadRecord:
        return record._replace(text=self._cache.texts.get((real_path, record.revision)))

    def _keep(self, real_path: str, record: ReadRecord, text: str | None) -> None:
        versions = self._records.setdefault(real_path, OrderedDict())
        versions[record.revision] = record
        versions.move_to_end(record.revision)
        self._records.move_to_end(real_path)
        self._changed(real_path, record.revision)
        if text is not None:
            self._add_text((real_path, record.revision), text)
        forgotten: list[Key] = []
        while len(versions) > MAX_VERSIONS:
            forgotten.append((real_path, versions.popitem(last=False)[0]))
        while len(self._records) > MAX_FILES:
            path, revisions = self._records.popitem(last=False)
            forgotten += [(path, revision) for revision in revisions]
        for key in forgotten:
            self._changed(*key)
            self._dropped(self._cache.drop(key))

    def _add_text(self, key: Key, text: str) -> None:
        if key not in self._cache.texts:
            self._changed(*key)
        self._dropped(self._cache.add(key, text))

    def _add_ids(self, key: Key, text: str, ids: Sequence[str]) -> None:
        self._add_text(key, text)
        if key in self._cache.texts:
            self._changed(*key)
            self._dropped(self._cache.add_ids(key, ids))

    def _set_latest_ids(self, real_path: str, revision: str | None) -> None:
        before = self._cache.latest_ids.pop(real_path, None)
        if revision is not None:
            self._cache.latest_ids[real_path] = revision
        if before != revision:
            for each in filter(None, (before, revision)):
                self._changed(real_path, each)

    def _dropped(self, keys: Sequence[Key]) -> None:
        for key in keys:
            self._changed(*key)


def _read_ranges(record: ReadRecord | None) -> tuple[tuple[int, int], ...]:
    if record is None:
        return ()
    return ((1, sys.maxsize),) if record.whole else record.ranges


def _size_of(text: str) -> int:
    return sys.getsizeof(text) + _ENTRY_BYTES


def record_of(revision: str, ranges: Iterable[Range], total: int) -> ReadRecord:
    """Return the record of a version of which some ranges, in any order, have been read."""
    united: list[Range] = []
    for first, last in sorted(ranges):
        if united and first <= united[-1][1] + 1:
            united[-1] = (united[-1][0], max(united[-1][1], last))
        else:
            united.append((first, last))
    whole = total == 0 or united == [(1, total)]
    # A reader of every second line could fill the memory; the ranges beyond the bound count as not read.
    return ReadRecord(revision, tuple(united[:MAX_RANGES]), total, whole)


def ranges_after_edit(ranges: Sequence[Range], hunks: Sequence[Hunk], total: int) -> list[Range]:
    """Return where lines that were read are after an edit; new lines count where all old ones were read."""
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


def unchanged_ranges(ranges: Sequence[Range], hunks: Sequence[Hunk], total: int) -> list[Range]:
    """Return where lines that were read, and that no hunk replaced, are now."""
    moved: list[Range] = []
    old = new = 0  # where the unchanged lines before the next hunk begin
    for hunk in (*hunks, Hunk(sys.maxsize, 0, 0, 0)):
        for first, last in ranges:
            start, end = max(first - 1, old), min(last, hunk.old_start)
            if start < end and start - old + new < total:
                moved.append((start - old + new + 1, min(end - old + new, total)))
        old, new = hunk.old_end, hunk.new_end
    return moved
