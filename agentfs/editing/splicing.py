"""From a place in the LF view to a splice of the exact text: trimmed, with the line ends of its spot."""

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from agentfs.editing.exact_match import Place
from agentfs.text import lf_view


@dataclass(frozen=True)
class Splice:
    """A stretch of a text and what comes in its place.

    Attributes:
        start: Offset in the text.
        end: Offset behind it; equal to `start` when nothing goes.
        new: What comes in, line ends as they shall be.
    """

    start: int
    end: int
    new: str


class View:
    """A text with every line end as LF, and the way back from its offsets."""

    def __init__(self, exact: str) -> None:
        self.exact = exact
        self.text = lf_view(exact)
        # Whether lines end at a lone CR.
        self.lone = "\r" in exact and "\n" not in exact
        self._paired = len(exact) - len(self.text)
        # Where every line end is CRLF, it is enough to count those before an offset; most come in order.
        self._all_paired = 0 < self._paired == self.text.count("\n")
        self._position = self._before = 0

    @property
    def line_end(self) -> str | None:
        """The one line end of the text, or None where it has several."""
        if not self._paired:
            return "\r" if self.lone else "\n"
        return "\r\n" if self._all_paired else None

    @cached_property
    def _pairs(self) -> "array[int]":
        """The offsets in the view of the line ends that are CRLF in the text."""
        pairs = array("Q")
        found = self.exact.find("\r\n")
        while found >= 0:
            pairs.append(found - len(pairs))
            found = self.exact.find("\r\n", found + 2)
        return pairs

    def offset(self, position: int) -> int:
        """Return the offset in the exact text of an offset in the view; never inside a CRLF."""
        if not self._paired:
            return position
        if not self._all_paired:
            return position + bisect_left(self._pairs, position)
        low, high = sorted((self._position, position))
        between = self.text.count("\n", low, high)
        self._before += between if position > self._position else -between
        self._position = position
        return position + self._before


def shared_start(one: str, other: str) -> int:
    """Return how many characters two texts share at their start."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def shared_end(one: str, other: str, at_most: int) -> int:
    """Return how many characters two texts share at their end, up to a number."""
    low, high = 0, min(len(one), len(other), at_most)
    while low < high:
        middle = (low + high + 1) // 2
        if one[len(one) - middle : len(one) - low] == other[len(other) - middle : len(other) - low]:
            low = middle
        else:
            high = middle - 1
    return low


def newline_at(exact: str, offset: int) -> str:
    """Return the line end of the line that an offset lies in.

    Args:
        exact: The text as it is.
        offset: An offset in it.

    Returns:
        The end of that line; where it has none, of the line before; where there is none either, the file's,
        which for a text of one line is LF.
    """
    end = exact.find("\n", offset)
    if end < 0:
        end = exact.rfind("\n", 0, offset)
    if end < 0:
        return "\r" if "\r" in exact else "\n"
    return "\r\n" if exact[end - 1 : end] == "\r" else "\n"


def splices(view: View, places: Iterable[Place]) -> Iterator[Splice]:
    """Turn places in a view into splices of the exact text.

    What a place and its new text share at either end is left out. Line ends that come in follow the first
    line replaced, and where whole lines are only added, the line that they are added to.

    Args:
        view: The view in which the places were found.
        places: The places, in order and apart.

    Yields:
        The splices, in order and apart.
    """
    ends: dict[tuple[str, str], tuple[int, int]] = {}  # the places of one edit are mostly the same text
    for place in places:
        old = view.text[place.start : place.end]
        shared = ends.get((old, place.new))
        if shared is None:
            head = shared_start(old, place.new)
            tail = shared_end(old, place.new, min(len(old), len(place.new)) - head)
            shared = ends[old, place.new] = (head, tail)
        head, tail = shared
        new = place.new[head : len(place.new) - tail]
        start, end = place.start + head, place.end - tail
        if "\n" in new:
            # An insertion replaces no line: it continues the one that stands before it in the old text.
            spot = start - 1 if start == end and head else start
            new = new.replace("\n", newline_at(view.exact, view.offset(spot)))
        yield Splice(view.offset(start), view.offset(end), new)


def replaced_everywhere(view: View, old: str, new: str) -> str | None:
    """Replace each occurrence of a text, from left to right, without an object for each.

    Args:
        view: The view of the text.
        old: What is replaced, line ends as LF.
        new: What comes in its place, likewise.

    Returns:
        The exact text after; None where each place may need another line end.
    """
    end = view.line_end
    if end == "\n":
        return view.exact.replace(old, new)
    if "\r" in old:  # it could be taken for a part of a line end
        return None
    if end is None and "\n" in old + new:
        return None
    return view.exact.replace(old.replace("\n", end or ""), new.replace("\n", end or ""))
