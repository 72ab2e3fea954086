"""A text seen with some stretches replaced, and the way back from its offsets to those of the text."""

import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable

from agentfs import call_context

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
