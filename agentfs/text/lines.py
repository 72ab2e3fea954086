r"""Split texts into lines, and map positions between a text and its view with LF line ends.

Lines end only at `\n` and `\r\n`, for example not at form feed or U+2028. A lone `\r` ends a line only if the
whole text has no `\n`, so functions take full texts. No line follows a final line end, and an empty text has
no lines.
"""

import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import AnyStr, NamedTuple

from agentfs.base import call_context
from agentfs.results import Newline

_STEP = 8192  # characters in which line ends are looked for at once
_CHECK_EVERY = 4096
_CRLF = re.compile("\r\n")


def bodies_of(text: str) -> list[str]:
    """Return the lines of a text without their ends."""
    lines = lf_view(text).split("\n")
    return lines if lines[-1] else lines[:-1]


def count_lines(text: str) -> int:
    """Return the number of lines of a text."""
    end = end_of(text)
    return text.count(end) + (text != "" and not text.endswith(end))


def newline_of(text: str) -> Newline | None:
    r"""Return the line end of a text: "mixed" for both `\n` and `\r\n`, None without line ends."""
    if "\r" not in text:
        return "\n" if "\n" in text else None
    feeds, pairs = text.count("\n"), text.count("\r\n")
    if feeds == 0:
        return "\r"
    if pairs == 0:
        return "\n"
    return "\r\n" if pairs == feeds else "mixed"


def lf_view(text: str) -> str:
    r"""Return a text with each line end as `\n`. Any other `\r` stays."""
    if "\r" not in text:
        return text
    return text.replace("\r\n", "\n") if "\n" in text else text.replace("\r", "\n")


def without_end(line: str, *, lone: bool) -> str:
    r"""Return a line without its end; `lone` is True if a lone `\r` ends lines in its text."""
    if line.endswith("\n"):
        return line[:-2] if line.endswith("\r\n") else line[:-1]
    return line[:-1] if lone and line.endswith("\r") else line


def end_of(text: str) -> str:
    r"""Return the character that ends the lines of a text: `\n`, or `\r` if it has no `\n`."""
    return "\n" if "\n" in text else "\r"


def line_start(text: AnyStr, number: int, end: AnyStr, position: int = 0) -> int:
    """Return the position of a line, or the end of a text with fewer lines.

    Args:
        text: The text, or its bytes.
        number: The line, from 1.
        end: The character that ends the lines.
        position: The start of line 1.
    """
    ahead = number - 1
    while ahead and position < len(text):
        found = text.count(end, position, position + _STEP)
        if found >= ahead:
            piece = text[position : position + _STEP]
            return position + len(piece) - len(piece.split(end, ahead)[-1])
        ahead -= found
        position += _STEP
    return len(text) if ahead else position


def common_ends(one: Sequence[str], other: Sequence[str]) -> tuple[int, int]:
    """Return how many characters (or lines of two lists) both have in common at the start, and at the end.

    The two parts do not overlap.
    """
    head = tail = 0
    # Bisecting compares each item about twice, but slices are compared fast.
    most = high = min(len(one), len(other))
    while head < high:
        middle = (head + high + 1) // 2
        head, high = (middle, high) if one[head:middle] == other[head:middle] else (head, middle - 1)
    first, second, high = len(one), len(other), most - head
    while tail < high:
        middle = (tail + high + 1) // 2
        is_equal = one[first - middle : first - tail] == other[second - middle : second - tail]
        tail, high = (middle, high) if is_equal else (tail, middle - 1)
    return head, tail


class Replacement(NamedTuple):
    """A range of a text, from offset `start` to `end`, and the text to put there."""

    start: int
    end: int
    new: str


class View:
    """A text made from a source by replacing each match of a pattern. It maps its positions to the source.

    Pass the outcome as `text` if there is a faster way to make it.
    """

    def __init__(self, source: str, pattern: re.Pattern[str], new: str, text: str | None = None) -> None:
        self.source = source
        self.text = pattern.sub(lambda _: new, source) if text is None else text
        self._pattern, self._new = pattern, new

    def start(self, position: int) -> int:
        """Return the source offset of the character at a position."""
        here, there = self._ends
        point = bisect_right(here, position) - 1
        return there[point] + position - here[point]

    def end(self, position: int) -> int:
        """Return the source offset after the character before a position."""
        here, there = self._ends
        point = bisect_left(here, position)
        if point < len(here) and here[point] == position:
            return there[point]
        return there[point - 1] + position - here[point - 1]

    def span(self, start: int, length: int) -> tuple[int, int]:
        """Return the source range of the `length` characters at a position."""
        return self.start(start), self.end(start + length)

    @cached_property
    def _ends(self) -> "tuple[array[int], array[int]]":
        """Two lists of the starts and ends of all replaced pieces: in the text and in the source."""
        here, there = array("I", [0]), array("I", [0])
        for number, found in enumerate(self._pattern.finditer(self.source)):
            if number % _CHECK_EVERY == 0:
                call_context.check()
            first = here[-1] + found.start() - there[-1]
            here.extend((first, first + len(self._new)))
            there.extend(found.span())
        return here, there


def spliced(source: str, pieces: Iterable[Replacement]) -> str:
    """Return a text after replacements, which are in order and do not overlap."""
    parts: list[str] = []
    position = 0
    for start, end, new in pieces:
        parts += (source[position:start], new)
        position = end
    return "".join([*parts, source[position:]])


class EditView:
    """A view with LF line ends in which an old text is found; its replacements are made in the source."""

    source: str
    text: str
    lone = False  # True if lines end at a lone CR

    def __init__(self, source: str) -> None:
        self.source = source

    def lf(self, text: str) -> str:
        """Convert a text from the caller to LF line ends."""
        if "\r" not in text:
            return text
        text = text.replace("\r\n", "\n")
        return text.replace("\r", "\n") if self.lone else text

    def is_editable(self, start: int, end: int) -> bool:
        """Return True if a range of the view can be replaced."""
        del start, end
        return True

    def replaced(self, replacements: Iterable[Replacement]) -> str:
        """Return the source after replacements in the view, which are in order and do not overlap."""
        raise NotImplementedError

    def after(self, source: str) -> "EditView":
        """Return the same view of the source after replacements."""
        return type(self)(source)

    def replaced_everywhere(self, old: str, new: str) -> str | None:
        """Return the source with every occurrence replaced; None if each needs its own replacement."""
        del old, new
        return None


class LfView(EditView):
    """A text with every line end as LF."""

    def __init__(self, source: str) -> None:
        super().__init__(source)
        self.text = lf_view(source)
        self.lone = "\r" in source and "\n" not in source

    def replaced(self, replacements: Iterable[Replacement]) -> str:
        """Return the exact text after replacements.

        New line ends are those of the first replaced line, or of the line after which lines are added.
        """
        return spliced(self.source, (self._splice(*each) for each in replacements))

    def _splice(self, start: int, end: int, new: str) -> Replacement:
        first, stop, inserted = self._changed_part(start, end, new)
        if "\n" in inserted and "\r" in self.source:
            # Inserted text gets the line ends of the line before it.
            line = first - 1 if first == stop and first > start else first
            inserted = inserted.replace("\n", self._newline_at(self._view.start(line)))
        return Replacement(self._view.start(first), self._view.end(stop), inserted)

    def _changed_part(self, start: int, end: int, new: str) -> Replacement:
        """Leave out the characters that the old and the new text share at either end."""
        old = self.text[start:end]
        head, tail = common_ends(old, new)
        return Replacement(start + head, end - tail, new[head : len(new) - tail])

    @cached_property
    def _view(self) -> View:
        return View(self.source, _CRLF, "\n", self.text)

    def _newline_at(self, offset: int) -> str:
        """Return the line end of the line at an offset, or else of the line before, or else LF."""
        end = self.source.find("\n", offset)
        if end < 0:
            end = self.source.rfind("\n", 0, offset)
        if end < 0:
            return "\r" if "\r" in self.source else "\n"
        return "\r\n" if self.source[end - 1 : end] == "\r" else "\n"

    def replaced_everywhere(self, old: str, new: str) -> str | None:
        """Return the exact text with every occurrence replaced; None if their line ends may differ."""
        newline = newline_of(self.source) or "\n"
        if newline != "\n" and ("\r" in old or (newline == "mixed" and "\n" in old + new)):
            return None  # a CR could match half of a line end
        return self.source.replace(old.replace("\n", newline), new.replace("\n", newline))
