"""Compare two texts by lines, nearly always with the same result as git."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from agentfs.text.lines import common_ends

ChangedRange = tuple[int, int, int, int]  # start and end in old, start and end in new

# Half the removed and added lines of the longest edit script that is searched for. The search takes
# the square of it, in steps; all searches for two texts take `_MAX_STEPS` together.
_MAX_EDITS = 256
_MAX_STEPS = 1_000_000


def changed_lines(old: Sequence[str], new: Sequence[str]) -> list[ChangedRange]:
    """Return the line ranges that differ, as `git diff --no-indent-heuristic` does.

    The ranges are not always git's if a line has many copies, or if hundreds of lines that both texts have
    were moved.
    """
    head, tail = common_ends(old, new)
    old_end, new_end = len(old) - tail, len(new) - tail
    old_same: list[int] = []
    new_same: list[int] = []
    if not set(old[head:old_end]).isdisjoint(new[head:new_end]):
        # Lines that the other text does not have need no comparison.
        olds, news = set(old), set(new)
        old_kept = [at for at in range(head, old_end) if old[at] in news]
        new_kept = [at for at in range(head, new_end) if new[at] in olds]
        for old_at, new_at, count in _same_lines([old[at] for at in old_kept], [new[at] for at in new_kept]):
            old_same += old_kept[old_at : old_at + count]
            new_same += new_kept[new_at : new_at + count]
    removed, added = _groups(old_same, head, old_end), _groups(new_same, head, new_end)
    removed = _moved_down(removed, old, added)
    added = _moved_down(added, new, removed)
    changes: list[ChangedRange] = []
    old_shift = new_shift = 0
    for above in sorted(removed.keys() | added.keys()):
        old_start, new_start = above + old_shift, above + new_shift
        old_shift += removed.get(above, 0)
        new_shift += added.get(above, 0)
        changes.append((old_start, above + old_shift, new_start, above + new_shift))
    return changes


def _groups(same: Sequence[int], start: int, end: int) -> dict[int, int]:
    """Return the sizes of the groups of changed lines, each by the number of unchanged lines above it."""
    groups: dict[int, int] = {}
    for above, at in enumerate([*same, end], start):
        if at > start:
            groups[above] = at - start
        start = at + 1
    return groups


def _moved_down(groups: Mapping[int, int], lines: Sequence[str], others: Mapping[int, int]) -> dict[int, int]:
    """Move each group of changed lines down while the line above it can take its last line's place.

    Return the groups after that. A group stays beside a group of the other text if it passes one.
    """
    below = sorted(groups, reverse=True)
    moved: list[tuple[int, int]] = []
    shift = 0  # changed lines above the group
    while below:
        above = below.pop()
        count = groups[above]
        place: int | None = None
        grown = True
        while grown:
            grown = False
            while above and lines[above + shift - 1] == lines[above + shift + count - 1]:
                above -= 1
                if moved and moved[-1][0] == above:
                    joined = moved.pop()[1]
                    count, shift, grown = count + joined, shift - joined, True
            place = above if above in others else None
            while above + shift + count < len(lines) and lines[above + shift] == lines[above + shift + count]:
                above += 1
                if below and below[-1] == above:
                    count, grown = count + groups[below.pop()], True
                if above in others:
                    place = above
        moved.append((above if place is None else place, count))
        shift += count
    return dict(moved)


def _same_lines(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[int, int, int]]:
    """Yield the runs of lines that a shortest edit script keeps: the start in each text, and the length."""
    left = _MAX_STEPS
    parts = [(0, len(old), 0, len(new))]
    while parts:
        old_start, old_end, new_start, new_end = parts.pop()
        before, after = old[old_start:old_end], new[new_start:new_end]
        head, tail = common_ends(before, after)
        if head:
            yield old_start, new_start, head
        before, after = before[head : len(before) - tail], after[head : len(after) - tail]
        if tail:
            parts.append((old_end - tail, old_end, new_end - tail, new_end))
        if before and after and left > 0:
            middle, steps = _middle(before, after, left)
            left -= steps
            points = [middle] if middle else _unique_common_lines(before, after)
            if points:
                old_start, new_start = old_start + head, new_start + head
                ends = pairwise([(0, 0), *points, (len(before), len(after))])
                inner = [
                    (old_start + a, old_start + c, new_start + b, new_start + d) for (a, b), (c, d) in ends
                ]
                parts += inner[::-1]


def _middle(old: Sequence[str], new: Sequence[str], most_steps: int) -> tuple[tuple[int, int] | None, int]:
    """Return a point that divides a shortest edit script in two, or None, and the steps that this took.

    This is the linear-space refinement of Myers, "An O(ND) difference algorithm and its variations" (1986).
    Among several shortest scripts, the order of the diagonals decides. Git tries the highest one first.
    """
    rows, columns = len(old), len(new)
    delta, steps = rows - columns, 0
    most = min(_MAX_EDITS, (rows + columns + 1) // 2)
    # The search from the start, and from the end in the reversed texts. For each diagonal (row - column), the
    # last row reached. A negative diagonal is an index from the end of the list.
    searches = [(old, new, [-1] * (2 * most + 3)), (old[::-1], new[::-1], [-1] * (2 * most + 3))]
    for _, _, reached in searches:
        reached[1] = 0
    for edits in range(most + 1):
        if steps > most_steps:
            break
        for backward, (one, other, reached) in enumerate(searches):
            opposite = searches[not backward][2]
            diagonals = range(edits, -edits - 1, -2)
            for diagonal in diagonals[::-1] if backward else diagonals:
                row = max(reached[diagonal - 1] + 1, reached[diagonal + 1])
                column = row - diagonal
                steps += 1
                if row > rows or not 0 <= column <= columns:
                    continue
                steps -= row
                while row < rows and column < columns and one[row] == other[column]:
                    row += 1
                    column += 1
                steps += row
                reached[diagonal] = row
                met = delta - diagonal  # the same diagonal in the other search
                if delta % 2 != backward and abs(met) < edits + backward and opposite[met] >= rows - row:
                    return (rows - row, columns - column) if backward else (row, column), steps
    return None, steps


def _unique_common_lines(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """Pair the lines that occur once in each text; return the longest ascending sequence of index pairs."""
    old_counts, new_counts = Counter(old), Counter(new)
    indexes = {line: index for index, line in enumerate(new) if new_counts[line] == 1}
    pairs = [(at, indexes[line]) for at, line in enumerate(old) if old_counts[line] == 1 and line in indexes]
    # For each length, the ascending sequence with the least last index, as a pair and the sequence before it.
    last: list[int] = []
    sequences: list[Any] = []
    for pair in pairs:
        length = bisect_left(last, pair[1])
        last[length : length + 1] = [pair[1]]
        sequences[length : length + 1] = [(pair, sequences[length - 1] if length else None)]
    rising: list[tuple[int, int]] = []
    left = sequences[-1] if sequences else None
    while left:
        pair, left = left
        rising.append(pair)
    return rising[::-1]
