"""`LineSlice`: the lines that a page may show, cut out of a text that comes in pieces."""

import math
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from agentfs.fs import join_returns
from agentfs.results import Image


class LineSlice(NamedTuple):
    """Consecutive lines of a file.

    Attributes:
        first: The number of the first line.
        bodies: The lines, without the character that ends them.
        end: The character that ends lines.
        ended: True if the last line has a line end.
        not_loaded: If the slice is one long line, how many of its characters were not loaded.
        ids: The line ids, or ().
        placed: The images that belong to the text, each with its line.
    """

    first: int
    bodies: Sequence[str]
    end: str
    ended: bool = True
    not_loaded: int = 0
    ids: Sequence[str] = ()
    placed: Sequence[tuple[int, Image]] = ()

    @property
    def last(self) -> int:
        """The number of the last line."""
        return self.first + len(self.bodies) - 1

    @property
    def content(self) -> str:
        """The exact text."""
        return self.end.join(self.bodies) + (self.end if self.ended else "")

    @property
    def images(self) -> Sequence[Image]:
        """The images of these lines."""
        return [image for line, image in self.placed if self.first <= line <= self.last]

    def head(self, count: int) -> "LineSlice":
        """Return the first `count` of the lines."""
        if count >= len(self.bodies):
            return self
        return self._replace(bodies=self.bodies[:count], ids=self.ids[:count], ended=True, not_loaded=0)


def slice_lines(
    texts: Iterator[str], end: str, first: int, count: int, column: int, most: float = math.inf
) -> LineSlice:
    r"""Return up to `count` lines of a text that comes in pieces.

    Args:
        texts: The pieces; the first begins with the first line.
        end: The character that ends lines.
        first: The number of the first line.
        count: The number of lines.
        column: The first character to return of the first line, from 1. The `\r` of a `\r\n` always stays.
        most: After this many characters, no further piece is loaded.
    """
    if column > 1:
        texts = _skip_columns(texts, column - 1, end)
    pieces: list[str] = []
    ends = size = 0
    complete = False
    for text in texts:
        pieces.append(text)
        size += len(text)
        ends += text.count(end)
        if ends >= count or size >= most:
            break
    else:
        complete = True
    text = "".join(pieces)
    if column > 1 and not text:  # the last line ends before the column, and without a line end
        return LineSlice(first, [""], end, ended=False)
    bodies = text.split(end, count)
    rest = bodies.pop()
    if len(bodies) == count or not rest or not (complete or not ends):
        return LineSlice(first, bodies, end)
    not_loaded = 0 if complete else _rest_of_line(texts, end)
    return LineSlice(first, [*bodies, rest], end, ended=False, not_loaded=not_loaded)


def _skip_columns(texts: Iterator[str], count: int, end: str) -> Iterator[str]:
    """Skip up to `count` characters of the first line, but not its line end."""
    texts = join_returns(texts)
    for text in texts:
        found = text.find(end)
        inside = min(count, found if found >= 0 else len(text))
        # The `\r` before a `\n` belongs to the line end.
        if 0 < inside == found and text[inside - 1] == "\r":
            inside -= 1
        count -= inside
        if count == 0 or found >= 0:
            return chain([text[inside:]] if inside < len(text) else [], texts)
    return iter(())


def _rest_of_line(texts: Iterator[str], end: str) -> int:
    """Return the number of characters before the next line end."""
    length = 0
    for text in texts:
        position = text.find(end)
        if position >= 0:
            return length + position
        length += len(text)
    return length
