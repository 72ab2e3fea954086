"""The lines of one text, by where they begin and end; what is found in them, and how much of it."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from agentfs.patterns.compile import S
from agentfs.patterns.substring import finder


@dataclass(slots=True)
class LineMatch:
    """A line that matches, or with `multiline` the lines of matches that touch.

    Attributes:
        start: Where it begins in the text.
        end: Where it ends in the text, before the last line end.
        spans: Start and end of the matches, relative to `start`; of very many only the first.
        matches: How many matches there are.
    """

    start: int
    end: int
    spans: list[tuple[int, int]]
    matches: int = 0

    def add(self, first: int, last: int, window: int) -> None:
        """Count a match, and keep its span if it begins within some characters of the first.

        Args:
            first: Where it begins, relative to `start`.
            last: Where it ends.
            window: The characters.
        """
        self.matches += 1
        if not self.spans or first - self.spans[0][0] <= window:
            self.spans.append((first, last))


@dataclass(slots=True)
class Counts:
    """What has been counted in one file.

    Attributes:
        hits: Hits, as many as lines without `multiline`.
        lines: Lines in them.
        matches: Matches in them.
    """

    hits: int = 0
    lines: int = 0
    matches: int = 0

    def add(self, hit: LineMatch, line_ends: int) -> None:
        """Count a hit.

        Args:
            hit: The hit.
            line_ends: The line ends inside it.
        """
        self.hits += 1
        self.lines += 1 + line_ends
        self.matches += hit.matches


def as_text(text: str | bytes) -> str:
    """Return the text, or ASCII bytes as text.

    Args:
        text: What was searched.
    """
    return text if isinstance(text, str) else str(text, "ascii")


def lines_within(text: str | bytes, hit: LineMatch) -> int:
    """Count the line ends inside a hit.

    Args:
        text: What was searched.
        hit: What was found in it.
    """
    if isinstance(text, str):
        return text.count("\n", hit.start, hit.end)
    return text.count(b"\n", hit.start, hit.end)


def all_lines(text: S, newline: S, start: int = 0) -> Iterator[tuple[int, int]]:
    """Find where each line begins and ends.

    Args:
        text: The text.
        newline: A line feed.
        start: The beginning of the first.
    """
    while start < len(text):
        end = text.find(newline, start)
        end = len(text) if end < 0 else end
        yield start, end
        start = end + 1


def pieces(text: S, newline: S, size: int) -> Iterator[tuple[int, int]]:
    """Cut a text at line ends into pieces of a size, or longer where a line is.

    Args:
        text: The text.
        newline: A line feed.
        size: The least size of a piece but the last.
    """
    start = 0
    while start < len(text):
        end = text.find(newline, start + size - 1)
        end = len(text) if end < 0 else end + 1
        yield start, end
        start = end


def lines_holding(text: S, needle: S, lines: Iterator[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Leave out the lines that do not have a needle.

    Args:
        text: The text that they stand in.
        needle: What they must have.
        lines: Where each begins and ends.
    """
    for start, end in lines:
        if text.find(needle, start, end) >= 0:
            yield start, end


def joined(text: S, lines: Iterable[tuple[int, int]]) -> S:
    """Return some lines as a text of their own, with no line end after the last.

    Args:
        text: The text that they stand in.
        lines: Where each begins and ends.
    """
    if isinstance(text, str):
        return "\n".join([text[start:end] for start, end in lines])
    return b"\n".join([text[start:end] for start, end in lines])


def count_among(pieces: list[Any], needle: S) -> int:
    """Count a needle in all of some pieces.

    Args:
        pieces: Parts of lines, of the sort of the needle.
        needle: A plain text without line ends.
    """
    if isinstance(needle, str):
        return "\n".join(pieces).count(needle)
    return b"\n".join(pieces).count(needle)


def rest_of_line(needle: S) -> re.Pattern[S]:
    """Return a pattern that finds as many strings as there are lines with a needle.

    Args:
        needle: A plain text.
    """
    if isinstance(needle, str):
        return re.compile(re.escape(needle) + "[^\\n]*")
    return re.compile(re.escape(needle) + b"[^\\n]*")


def lines_with(text: S, needles: tuple[S, ...], newline: S) -> Iterator[tuple[int, int]]:
    """Find the lines that have one of some needles.

    Args:
        text: The text.
        needles: What they must have one of.
        newline: A line feed.
    """
    find, none = finder(text, needles), len(text) + 1
    if len(needles) == 1:
        at = find(needles[0], 0)
        while at >= 0:
            end = text.find(newline, at)
            end = len(text) if end < 0 else end
            yield text.rfind(newline, 0, at) + 1, end
            at = find(needles[0], end)
        return
    coming = [none if (at := find(needle, 0)) < 0 else at for needle in needles]
    while (at := min(coming)) < none:
        start = text.rfind(newline, 0, at) + 1
        end = text.find(newline, at)
        end = len(text) if end < 0 else end
        yield start, end
        for index, place in enumerate(coming):
            if place <= end:
                further = find(needles[index], end)
                coming[index] = none if further < 0 else further
