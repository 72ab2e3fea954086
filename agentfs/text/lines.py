r"""Where lines end: the one rule that reads, searches, line ids and diffs share.

Lines end at `\n` and `\r\n`; a lone `\r` ends a line only in a text that has no `\n`, so functions take
whole texts; nothing else ends one (not form feed, not U+2028). A final line end starts no further line, and
an empty text has no lines.
"""

import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from typing import AnyStr

from agentfs import call_context
from agentfs.results import Newline

_STEP = 8192  # counting ends in a part this long costs far less than finding each


def bodies_of(text: str) -> list[str]:
    """Return the lines of a text without their ends."""
    lines = lf_view(text).split("\n")
    return lines if lines[-1] else lines[:-1]


def count_lines(text: str) -> int:
    """Return how many lines a text has."""
    end = end_of(text)
    return text.count(end) + (text != "" and not text.endswith(end))


def newline_of(text: str) -> Newline | None:
    r"""Return the line end of a text, "mixed" for both `\n` and `\r\n`, or None where no line ends."""
    if "\r" not in text:
        return "\n" if "\n" in text else None
    feeds, pairs = text.count("\n"), text.count("\r\n")
    if feeds == 0:
        return "\r"
    if pairs == 0:
        return "\n"
    return "\r\n" if pairs == feeds else "mixed"


def lf_view(text: str) -> str:
    r"""Return a text with each line end as `\n`; a `\r` that ends no line stays."""
    if "\r" not in text:
        return text
    return text.replace("\r\n", "\n") if "\n" in text else text.replace("\r", "\n")


def without_end(line: str, *, lone: bool) -> str:
    r"""Return a line without its end; `lone` is whether a lone `\r` ends a line in its text."""
    if line.endswith("\n"):
        return line[:-2] if line.endswith("\r\n") else line[:-1]
    return line[:-1] if lone and line.endswith("\r") else line


def end_of(text: str) -> str:
    r"""Return the character that ends the lines of a text: `\n` where there is one, else `\r`."""
    return "\n" if "\n" in text else "\r"


def line_start(text: AnyStr, number: int, end: AnyStr) -> int:
    """Return the position of a line, from 1; the end of a text that has fewer lines."""
    ahead, position = number - 1, 0
    while ahead and position < len(text):
        found = text.count(end, position, position + _STEP)
        if found < ahead:
            ahead -= found
            position += _STEP
            continue
        for _ in range(ahead):
            position = text.index(end, position) + 1
        return position
    return min(position, len(text))


_CHECK_EVERY = 4096


class View:
    """The text that a source becomes when each match of a pattern is replaced.

    A caller that has a faster way to make `text` passes it.
    """

    def __init__(
        self,
        source: str,
        pattern: re.Pattern[str],
        replace: Callable[[re.Match[str]], str],
        text: str | None = None,
    ) -> None:
        self.source = source
        self.text = pattern.sub(replace, source) if text is None else text
        self._pattern, self._replace = pattern, replace
        self._points: tuple[array[int], array[int]] | None = None

    def start(self, position: int) -> int:
        """Return the offset in the source of the character at a position."""
        if len(self.source) == len(self.text):
            return position
        here, there = self._ends()
        point = bisect_right(here, position) - 1
        return there[point] + position - here[point]

    def end(self, position: int) -> int:
        """Return the offset in the source behind the character before a position."""
        if len(self.source) == len(self.text):
            return position
        here, there = self._ends()
        point = bisect_left(here, position)
        if point < len(here) and here[point] == position:
            return there[point]
        return there[point - 1] + position - here[point - 1]

    def span(self, start: int, length: int) -> tuple[int, int]:
        """Return start and end in the source of so many characters from a position on."""
        return self.start(start), self.end(start + length)

    def _ends(self) -> "tuple[array[int], array[int]]":
        """Return where each replaced stretch begins and ends, in the text and in the source."""
        if self._points is None:
            here, there = array("I", [0]), array("I", [0])
            for number, found in enumerate(self._pattern.finditer(self.source)):
                if number % _CHECK_EVERY == 0:
                    call_context.check()
                start, end = found.span()
                first = here[-1] + start - there[-1]
                here.extend((first, first + len(self._replace(found))))
                there.extend((start, end))
            self._points = here, there
        return self._points
