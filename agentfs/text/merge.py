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


def merge_texts(base: str, ours: str, theirs: str, *, once: bool = False) -> Merge:
    r"""Merge the changes from `base` to `ours` and from `base` to `theirs`. Lines end only at `\n`.

    Changes of the same or neighbouring lines conflict, unless both sides made the same change. With
    `once`, the same change conflicts too.
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
    our_shift = their_shift = 0  # a line's number in each side, minus the number of the same line in the base
    for start, end, our_growth, their_growth in _touching(
        changed_lines(old, mine), changed_lines(old, other)
    ):
        first, last = start + their_shift, end + their_shift + their_growth
        our_lines, their_lines = mine[start + our_shift : end + our_shift + our_growth], other[first:last]
        our_shift, their_shift = our_shift + our_growth, their_shift + their_growth
        before = old[start:end]
        merged += old[position:start]
        position = end
        if our_lines == before or (our_lines == their_lines and not once):
            merged += their_lines
        elif their_lines == before:
            merged += our_lines
        else:
            conflicts.append((first + 1, last) if last > first else (max(first, 1), max(first, 1)))
    if conflicts:
        return Merge(None, tuple(conflicts))
    return Merge("".join([*merged, *old[position:]]))


def _touching(
    ours: Sequence[ChangedRange], theirs: Sequence[ChangedRange]
) -> list[tuple[int, int, int, int]]:
    """Group the changes of both sides that overlap or touch in the base.

    Return of each group its lines in the base, and how many lines longer it is in each side.
    """
    groups: list[tuple[int, int, int, int]] = []
    for start, end, new_start, new_end, is_theirs in sorted(
        [(*each, False) for each in ours] + [(*each, True) for each in theirs]
    ):
        if not groups or start > groups[-1][1]:
            groups.append((start, end, 0, 0))
        first, last, our_growth, their_growth = groups[-1]
        growth = new_end - new_start - (end - start)
        our_growth, their_growth = our_growth + growth * (not is_theirs), their_growth + growth * is_theirs
        groups[-1] = first, max(last, end), our_growth, their_growth
    return groups
