"""The three-way merge of two texts by lines, as `git merge-file` does it."""

from collections.abc import Sequence
from typing import NamedTuple

from agentfs.text.compare import ChangedRange, changed_lines
from agentfs.text.diff import MOST_LINES, split_lines


class Merge(NamedTuple):
    """A merged text, or the lines that both sides changed."""

    text: str | None  # None for a conflict
    # First and last line in `theirs`; for removed lines, the line before them.
    conflicts: tuple[tuple[int, int], ...] = ()


class _Hunk(NamedTuple):
    """A group of changes that touch: the range of lines in the base, in ours and in theirs."""

    base: tuple[int, int]
    ours: tuple[int, int]
    theirs: tuple[int, int]


def merge_texts(base: str, ours: str, theirs: str) -> Merge:
    r"""Merge the changes from `base` to `ours` and from `base` to `theirs`. Lines end only at `\n`.

    Changes of the same or neighbouring lines conflict, unless both sides made the same change.
    """
    if ours in (base, theirs):
        return Merge(theirs)
    if theirs == base:
        return Merge(ours)
    texts = (base, ours, theirs)
    if any(text.count("\n") > MOST_LINES for text in texts):
        return Merge(None, ((1, theirs.count("\n") + 1),))
    old, mine, other = map(split_lines, texts)
    merged: list[str] = []
    conflicts: list[tuple[int, int]] = []
    position = 0
    for hunk in _touching(changed_lines(old, mine), changed_lines(old, other)):
        (start, end), our_range, their_range = hunk
        before, our_lines, their_lines = old[start:end], mine[slice(*our_range)], other[slice(*their_range)]
        merged += old[position:start]
        position = end
        if our_lines in (before, their_lines):
            merged += their_lines
        elif their_lines == before:
            merged += our_lines
        else:
            first, last = their_range
            conflicts.append((first + 1, last) if last > first else (max(first, 1), max(first, 1)))
    if conflicts:
        return Merge(None, tuple(conflicts))
    return Merge("".join([*merged, *old[position:]]))


def _touching(ours: Sequence[ChangedRange], theirs: Sequence[ChangedRange]) -> list[_Hunk]:
    """Group the changes of both sides that overlap or touch in the base."""
    hunks: list[_Hunk] = []
    # The number of a line in each side, minus the number of the same line in the base.
    our_shift = their_shift = 0
    our_next = their_next = 0
    while our_next < len(ours) or their_next < len(theirs):
        starts = [side[at][0] for side, at in ((ours, our_next), (theirs, their_next)) if at < len(side)]
        start = end = min(starts)
        our_start, their_start = start + our_shift, start + their_shift
        grown = True
        while grown:
            grown = False
            while our_next < len(ours) and ours[our_next][0] <= end:
                _, our_end, _, our_new = ours[our_next]
                end, our_shift, our_next, grown = max(end, our_end), our_new - our_end, our_next + 1, True
            while their_next < len(theirs) and theirs[their_next][0] <= end:
                _, their_end, _, their_new = theirs[their_next]
                end, their_shift = max(end, their_end), their_new - their_end
                their_next, grown = their_next + 1, True
        hunks.append(_Hunk((start, end), (our_start, end + our_shift), (their_start, end + their_shift)))
    return hunks
