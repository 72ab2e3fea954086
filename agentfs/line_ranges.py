"""Which lines of a version of a file have been read, and where they are after a change. Pure."""

import sys
from collections.abc import Iterable, Sequence
from typing import NamedTuple

MAX_RANGES = 1000

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
