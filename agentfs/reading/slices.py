"""The lines that a page may show: lines of a text, or those of sections such as the cells of a notebook."""

import math
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import NamedTuple, Self

from agentfs.fs import join_returns
from agentfs.results import Image
from agentfs.text import first_names

_MAX_NAMED = 5  # lines that were cut and are named in the footer


class Section(NamedTuple):
    """A cell, page or row, or a part of it.

    Attributes:
        title: The line above it, or "".
        lines: Its lines, with marks.
        images: Its images, which belong to its last part.
        skipped: The number of its lines before this part.
        more: The number of its lines after this part.
    """

    title: str
    lines: Sequence[str]
    images: Sequence[Image] = ()
    skipped: int = 0
    more: int = 0

    @property
    def shown(self) -> Sequence[str]:
        """The title and the lines."""
        return [self.title, *self.lines] if self.title else self.lines

    @property
    def end(self) -> int:
        """The number of the last line."""
        return self.skipped + len(self.lines)

    def head(self, count: int) -> "Section":
        """Return the first `count` lines, at least one."""
        lines = self.lines[: max(count, 1)]
        more = self.more + len(self.lines) - len(lines)
        return self._replace(lines=lines, more=more, images=() if more else self.images)


class LineSlice(NamedTuple):
    """Consecutive lines of a file.

    Attributes:
        first: The number of the first line or section.
        bodies: The lines, without the character that ends them; with sections, also their titles.
        end: The character that ends lines.
        ended: True if the last line has a line end.
        not_loaded: If the slice is one long line, how many of its characters were not loaded.
        ids: The line ids, or ().
        sections: The sections that have these lines; () for a text. Only the first may be a part.
    """

    first: int
    bodies: Sequence[str]
    end: str
    ended: bool = True
    not_loaded: int = 0
    ids: Sequence[str] = ()
    sections: Sequence[Section] = ()

    @classmethod
    def of(cls, first: int, sections: Sequence[Section]) -> Self:
        """Return the lines of sections; `first` is the number of the first section."""
        bodies = [*chain.from_iterable(section.shown for section in sections)]
        return cls(first, bodies, "\n", sections=sections)

    @property
    def least(self) -> int:
        """The fewest lines that a page shows: the title of a section is not enough."""
        return min(len(self.sections[0].shown), 2) if self.sections else 1

    @property
    def items(self) -> int:
        """The number of lines of a text, or of sections."""
        return len(self.sections or self.bodies)

    @property
    def last(self) -> int:
        """The number of the last line or section."""
        return self.first + self.items - 1

    @property
    def part(self) -> Section | None:
        """The last section, if it is not shown to its end."""
        return self.sections[-1] if self.sections and self.sections[-1].more else None

    @property
    def images(self) -> Sequence[Image]:
        """The images of the sections."""
        return [*chain.from_iterable(section.images for section in self.sections)]

    def content(self, formatted: Sequence[str]) -> str:
        """Return the exact text, or the formatted lines of the sections without the titles."""
        if not self.sections:
            return self.end.join(self.bodies) + (self.end if self.ended else "")
        lines: list[str] = []
        at = 0
        for section in self.sections:
            end = at + len(section.shown)
            lines += formatted[end - len(section.lines) : end]
            at = end
        return "".join(f"{line}\n" for line in lines)

    def head(self, count: int) -> "LineSlice":
        """Return the first `count` of the lines; of sections, those that fit, or a part of the first."""
        if not self.sections:
            if count >= len(self.bodies):
                return self
            return self._replace(bodies=self.bodies[:count], ids=self.ids[:count], ended=True, not_loaded=0)
        kept: list[Section] = []
        for section in self.sections:
            if len(section.shown) > count or (kept and section.more):
                break
            kept.append(section)
            count -= len(section.shown)
        first = self.sections[0]
        return LineSlice.of(self.first, kept or [first.head(count - bool(first.title))])

    def names(self, indexes: Sequence[int], noun: str) -> str:
        """Name lines by their indexes; `noun` is the word for a section."""
        if not self.sections:
            numbers = first_names([str(self.first + index) for index in indexes], _MAX_NAMED)
            return f"line{'s' if len(indexes) > 1 else ''} {numbers}"
        places = [
            f"{noun} {number}, line {section.end - len(section.shown) + line}"
            for number, section in enumerate(self.sections, self.first)
            for line in range(1, len(section.shown) + 1)
        ]
        return first_names([places[index] for index in indexes], _MAX_NAMED)


def slice_lines(
    texts: Iterator[str], end: str, first: int, count: int, column: int, most: float = math.inf
) -> LineSlice:
    r"""Return up to `count` lines of a text that comes in pieces.

    Args:
        texts: The pieces; the first begins with the first line.
        end: The character that ends lines.
        first: The number of the first line.
        count: The number of lines.
        column: The first character to return of each line, from 1. The `\r` of a `\r\n` always stays.
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
    ended, not_loaded = True, 0
    if len(bodies) < count and rest and (complete or not ends):
        bodies, ended = [*bodies, rest], False
        not_loaded = 0 if complete else _rest_of_line(texts, end)
    if column > 1:
        bodies = [*bodies[:1], *_drop_columns(bodies[1:], column, end, ended=ended)]
    return LineSlice(first, bodies, end, ended=ended, not_loaded=not_loaded)


def _drop_columns(bodies: Sequence[str], column: int, end: str, *, ended: bool) -> list[str]:
    start = column - 1
    rest = [body[start:] for body in bodies]
    if end == "\n":
        for index in range(len(bodies) if ended else len(bodies) - 1):
            if not rest[index] and bodies[index].endswith("\r"):
                rest[index] = "\r"
    return rest


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
