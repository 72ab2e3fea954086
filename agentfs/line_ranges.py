"""Versions of files as far as they have been shown, and where their lines stand after a change. Pure."""

import sys
from collections.abc import Iterable, Sequence
from typing import NamedTuple

MAX_RANGES = 1000


class Hunk(NamedTuple):
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


class ReadRecord(NamedTuple):
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


class NamedVersion(NamedTuple):
    """One version of a file whose lines have been named.

    Attributes:
        revision: The version.
        lines: Its lines, without their ends.
        ids: Their names.
        ranges: First and last line of each range shown, from 1.
    """

    revision: str
    lines: tuple[str, ...]
    ids: tuple[str, ...]
    ranges: tuple[tuple[int, int], ...]


def version_of(revision: str, ranges: Iterable[tuple[int, int]], total: int) -> ReadRecord:
    """Put together what is known of a version.

    Args:
        revision: The version.
        ranges: First and last line of each range shown, from 1, in any order.
        total: Lines in the file.

    Returns:
        The version; without ranges over the bound, which count as not shown.
    """
    united = _united(ranges)
    whole = total == 0 or united == ((1, total),)
    # A reader of every second line could fill the memory; the ranges beyond the bound count as not shown.
    return ReadRecord(revision, united[:MAX_RANGES], total, whole)


def _united(ranges: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    united: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if united and first <= united[-1][1] + 1:
            united[-1] = (united[-1][0], max(united[-1][1], last))
        else:
            united.append((first, last))
    return tuple(united)


def carried_ranges(
    ranges: Sequence[tuple[int, int]], hunks: Sequence[Hunk], total: int
) -> tuple[tuple[int, int], ...]:
    """Return where the lines shown stand after an edit: those replaced are seen where all old ones were.

    Args:
        ranges: First and last line of each range shown, from 1.
        hunks: What was replaced, in order and apart.
        total: Lines in the file now.
    """
    replaced = [
        (hunk.new_start + 1, hunk.new_end)
        for hunk in hunks
        if hunk.new_end > hunk.new_start and _covers(ranges, hunk.old_start, hunk.old_end)
    ]
    return (*untouched_ranges(ranges, hunks, total), *replaced)


def untouched_ranges(
    ranges: Sequence[tuple[int, int]], hunks: Sequence[Hunk], total: int
) -> list[tuple[int, int]]:
    """Return where the lines shown that no hunk replaced stand now.

    Args:
        ranges: First and last line of each range shown, from 1.
        hunks: What was replaced, in order and apart.
        total: Lines in the file now.
    """
    carried: list[tuple[int, int]] = []
    old = new = 0  # the start of the untouched stretch before the next hunk
    for hunk in (*hunks, None):
        stretch_end = hunk.old_start if hunk is not None else sys.maxsize
        for first, last in ranges:
            start, end = max(first - 1, old), min(last, stretch_end)
            if start < end and start - old + new < total:
                carried.append((start - old + new + 1, min(end - old + new, total)))
        if hunk is not None:
            old, new = hunk.old_end, hunk.new_end
    return carried


def _covers(ranges: Sequence[tuple[int, int]], start: int, end: int) -> bool:
    return start == end or any(first - 1 <= start and end <= last for first, last in ranges)
