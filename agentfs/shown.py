"""What a workspace has shown to its model: which versions of which files, and which lines of them.

Pure memory, no disk. Keys are real paths, so that a file known under two names is one file. A version is a
revision; lines shown in several reads of one version are united. Memory is bounded: the versions of the files
used longest ago are forgotten first, and the texts of versions before the versions themselves. What is
forgotten counts as never shown, which makes `write` ask for a read: the safe side.
"""

import sys
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from threading import Lock

MAX_FILES = 4096
MAX_VERSIONS = 16
MAX_RANGES = 1000
MAX_TEXT_BYTES = 32 * 1024 * 1024
MAX_ONE_TEXT_BYTES = MAX_TEXT_BYTES // 4


@dataclass(frozen=True)
class Hunk:
    """Lines that a change replaced: 0-based, the end exclusive, in the file before and after.

    Attributes:
        old_start: The first line replaced.
        old_end: The line after the last one replaced; equal to `old_start` when lines were only added.
        new_start: The first line that stands there now.
        new_end: The line after the last one that stands there now.
    """

    old_start: int
    old_end: int
    new_start: int
    new_end: int


@dataclass(frozen=True)
class ShownVersion:
    """One version of a file, as far as it has been shown.

    Attributes:
        revision: The version.
        ranges: First and last line of each range shown, from 1, in order and apart.
        total: Lines in the file.
        whole: Whether all of it has been shown, or was written by this workspace.
        text: The whole text of the version, or None when it was not at hand, too large, or dropped.
    """

    revision: str
    ranges: tuple[tuple[int, int], ...]
    total: int
    whole: bool
    text: str | None = None

    def missing(self) -> tuple[tuple[int, int], ...]:
        """Return first and last line of each range that has not been shown."""
        if self.whole:
            return ()
        gaps: list[tuple[int, int]] = []
        following = 1
        for first, last in self.ranges:
            if first > following:
                gaps.append((following, first - 1))
            following = last + 1
        if following <= self.total:
            gaps.append((following, self.total))
        return tuple(gaps)


class Shown:
    """The memory of one workspace; thread-safe and bounded.

    Keys are real paths (`OpenFile.real_path`, `Changed.real_path`).
    """

    def __init__(self) -> None:
        self._lock = Lock()
        # Both from the longest unused to the latest; the texts apart, because they are dropped earlier.
        self._files: OrderedDict[str, OrderedDict[str, ShownVersion]] = OrderedDict()
        self._texts: OrderedDict[tuple[str, str], str] = OrderedDict()
        self._text_bytes = 0

    def record_read(
        self, real_path: str, revision: str, text: str | None, first: int, last: int, total: int
    ) -> None:
        """Remember that lines were shown.

        Args:
            real_path: The file.
            revision: Its version.
            text: The whole decoded text if at hand, with its line ends.
            first: The first line shown in full, from 1; 0 for an empty file.
            last: The last line shown in full; less than `first` when none was.
            total: Lines in the file; when not counted to the end, any number above `last`.
        """
        with self._lock:
            known = self._version(real_path, revision)
            if known is not None and known.whole:
                version = known
            else:
                before = known.ranges if known is not None else ()
                added = ((max(first, 1), min(last, total)),) if first <= last else ()
                version = _version_of(revision, (*before, *added), total)
            self._keep(real_path, version, text)

    def record_write(self, real_path: str, revision: str, text: str | None) -> None:
        """Remember that this workspace wrote the file, which shows it whole.

        Args:
            real_path: The file.
            revision: Its version now.
            text: The text written, as the file has it (line ends kept, no byte order mark).
        """
        with self._lock:
            self._keep(real_path, ShownVersion(revision, (), 0, whole=True), text)

    def record_edit(
        self, real_path: str, before: str, after: str, text: str | None, *, hunks: Sequence[Hunk], total: int
    ) -> None:
        """Carry what was seen of one version over to the version that an edit made of it.

        An edit neither gives nor takes: a whole version stays whole, of a part the same lines stay seen
        wherever they stand now, and a file never shown stays so. Lines that replace others are seen where
        all of the old ones were.

        Args:
            real_path: The file.
            before: The version that was edited.
            after: The version that the edit made.
            text: The whole decoded text now.
            hunks: What was replaced, in order and apart.
            total: Lines in the file now.
        """
        with self._lock:
            known = self._version(real_path, before)
            if known is None:
                return
            version = self._version(real_path, after)
            if version is None or not version.whole:
                # The version after may be known already: an edit can bring an earlier version back.
                ranges = version.ranges if version is not None else ()
                version = _version_of(after, (*ranges, *_carried(known.ranges, hunks, total)), total)
            if known.whole:
                version = replace(version, whole=True)
            self._keep(real_path, version, text)

    def seen(self, real_path: str, revision: str) -> bool:
        """Tell whether this version was shown from the first to the last line, or written here."""
        with self._lock:
            known = self._version(real_path, revision)
            return known is not None and known.whole

    def last(self, real_path: str) -> ShownVersion | None:
        """Return the version of the file that was shown or written last, with its text if still at hand."""
        with self._lock:
            versions = self._files.get(real_path)
            if not versions:
                return None
            version = next(reversed(versions.values()))
            return replace(version, text=self._texts.get((real_path, version.revision)))

    def forget(self) -> None:
        """Forget everything, as after the model's context was cut."""
        with self._lock:
            self._files.clear()
            self._texts.clear()
            self._text_bytes = 0

    def _version(self, real_path: str, revision: str) -> ShownVersion | None:
        versions = self._files.get(real_path)
        return versions.get(revision) if versions is not None else None

    def _keep(self, real_path: str, version: ShownVersion, text: str | None) -> None:
        versions = self._files.setdefault(real_path, OrderedDict())
        versions[version.revision] = version
        versions.move_to_end(version.revision)
        self._files.move_to_end(real_path)
        if text is not None:
            self._keep_text((real_path, version.revision), text)
        while len(versions) > MAX_VERSIONS:
            oldest, _ = versions.popitem(last=False)
            self._drop_text((real_path, oldest))
        while len(self._files) > MAX_FILES:
            path, dropped = self._files.popitem(last=False)
            for revision in dropped:
                self._drop_text((path, revision))

    def _keep_text(self, key: tuple[str, str], text: str) -> None:
        self._drop_text(key)
        size = sys.getsizeof(text)
        if size > MAX_ONE_TEXT_BYTES:
            return
        self._texts[key] = text
        self._text_bytes += size
        while self._text_bytes > MAX_TEXT_BYTES:
            self._drop_text(next(iter(self._texts)))

    def _drop_text(self, key: tuple[str, str]) -> None:
        text = self._texts.pop(key, None)
        if text is not None:
            self._text_bytes -= sys.getsizeof(text)


def _version_of(revision: str, ranges: Iterable[tuple[int, int]], total: int) -> ShownVersion:
    united = _united(ranges)
    whole = total == 0 or united == ((1, total),)
    # A reader of every second line could fill the memory; the ranges beyond the bound count as not shown.
    return ShownVersion(revision, united[:MAX_RANGES], total, whole)


def _united(ranges: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    united: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if united and first <= united[-1][1] + 1:
            united[-1] = (united[-1][0], max(united[-1][1], last))
        else:
            united.append((first, last))
    return tuple(united)


def _carried(
    ranges: Sequence[tuple[int, int]], hunks: Sequence[Hunk], total: int
) -> tuple[tuple[int, int], ...]:
    """Return where the lines shown stand after the change; `ranges` from 1 with the last included."""
    carried: list[tuple[int, int]] = []
    old = new = 0  # the start of the untouched stretch before the next hunk
    for hunk in (*hunks, None):
        stretch_end = hunk.old_start if hunk is not None else sys.maxsize
        for first, last in ranges:
            start, end = max(first - 1, old), min(last, stretch_end)
            if start < end:
                carried.append((start - old + new + 1, min(end - old + new, total)))
        if hunk is not None:
            if hunk.new_end > hunk.new_start and _covers(ranges, hunk.old_start, hunk.old_end):
                carried.append((hunk.new_start + 1, hunk.new_end))
            old, new = hunk.old_end, hunk.new_end
    return tuple(carried)


def _covers(ranges: Sequence[tuple[int, int]], start: int, end: int) -> bool:
    return start == end or any(first - 1 <= start and end <= last for first, last in ranges)
