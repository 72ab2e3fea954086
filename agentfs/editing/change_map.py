"""What several splices in a row have changed, as lines of the file before and after.

The file is kept as pieces: stretches of the text before, and stretches that came in. Each splice cuts them;
what lies between two stretches of the old text is what has changed.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate
from operator import itemgetter
from typing import NamedTuple

from agentfs.editing.splicing import Splice
from agentfs.line_ranges import Hunk
from agentfs.text import count_lines


class Piece(NamedTuple):
    """A stretch of the present text.

    Attributes:
        length: Its characters.
        origin: Where it stands in the text before, or None when it came in.
    """

    length: int
    origin: int | None

    def part(self, start: int, end: int) -> "Piece":
        """Return the part between two offsets in this piece."""
        return Piece(end - start, None if self.origin is None else self.origin + start)


def cut(pieces: Sequence[Piece], splices: Sequence[Splice]) -> list[Piece]:
    """Apply splices to pieces.

    Args:
        pieces: The pieces of the present text.
        splices: Stretches by offsets in the present text, in order and apart.

    Returns:
        The pieces of the text after.
    """
    if not splices:
        return list(pieces)
    ends = list(accumulate(map(itemgetter(0), pieces)))
    # Only the pieces from the first splice to the last are gone through one by one.
    index = bisect_right(ends, splices[0].start)
    rest = bisect_left(ends, splices[-1].end) + 1
    after = list(pieces[:index])
    position = ends[index - 1] if index else 0  # in the present text: the start of the piece at `index`
    used = 0  # how much of that piece has been taken or dropped

    def take(until: int, *, keep: bool) -> None:
        nonlocal position, index, used
        while position + used < until:
            piece = pieces[index]
            stop = min(piece.length, until - position)
            if keep:
                after.append(piece.part(used, stop))
            if stop == piece.length:
                position, index, used = position + piece.length, index + 1, 0
            else:
                used = stop

    for splice in splices:
        take(splice.start, keep=True)
        take(splice.end, keep=False)
        if splice.new:
            after.append(Piece(len(splice.new), None))
    if rest <= len(ends):
        take(ends[rest - 1], keep=True)
    return after + list(pieces[rest:])


class _Lines:
    """Counts lines from the start of a text on; offsets must not go back."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._end = "\n" if "\n" in text else "\r"
        self._offset = self._line = 0

    def at(self, offset: int) -> int:
        """Return the line that an offset lies in, from 0."""
        self._line += self._text.count(self._end, self._offset, offset)
        self._offset = offset
        return self._line

    def starts(self, offset: int) -> bool:
        """Tell whether a line starts at an offset, or would."""
        return offset == 0 or self._text[offset - 1] == self._end


def hunks(before: str, after: str, pieces: Sequence[Piece]) -> list[Hunk]:
    """Say which lines have changed.

    Args:
        before: The text before.
        after: The text that the pieces make.
        pieces: The pieces of the text after.

    Returns:
        The lines replaced, in order, those that touch put together.
    """
    found: list[Hunk] = []
    old_lines, new_lines = _Lines(before), _Lines(after)
    old_total, new_total = count_lines(before), count_lines(after)
    old = new = new_end = 0
    for piece in (*pieces, Piece(0, len(before))):
        if piece.origin is None:
            new_end += piece.length
            continue
        if piece.origin > old or new_end > new:
            hunk = _hunk(old_lines, new_lines, (old, piece.origin), (new, new_end))
            if found and (hunk.old_start <= found[-1].old_end or hunk.new_start <= found[-1].new_end):
                first = found.pop()
                hunk = Hunk(first.old_start, hunk.old_end, first.new_start, hunk.new_end)
            found.append(
                hunk._replace(old_end=min(hunk.old_end, old_total), new_end=min(hunk.new_end, new_total))
            )
        old = piece.origin + piece.length
        new = new_end = new_end + piece.length
    return found


def _hunk(old_lines: _Lines, new_lines: _Lines, old: tuple[int, int], new: tuple[int, int]) -> Hunk:
    whole = old_lines.starts(old[1]) and new_lines.starts(new[1])
    rest = 0 if whole else 1  # otherwise the line in which the change ends has changed too
    old_start, new_start = old_lines.at(old[0]), new_lines.at(new[0])
    return Hunk(old_start, old_lines.at(old[1]) + rest, new_start, new_lines.at(new[1]) + rest)


def changed_ranges(found: Sequence[Hunk], total: int) -> tuple[tuple[int, int], ...]:
    """Return first and last line of each change in the file as it is now.

    Args:
        found: The lines replaced.
        total: Lines in the file now.

    Returns:
        The ranges, from 1; where lines were only taken out, the line that stands there now.
    """
    ranges: list[tuple[int, int]] = []
    for hunk in found:
        first = min(hunk.new_start + 1, total)
        ranges.append((first, max(first, min(hunk.new_end, total))))
    return tuple(ranges)
