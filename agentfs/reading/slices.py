"""The lines that a page may show: lines of a text, or those of sections such as the cells of a notebook."""

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple, Self

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
