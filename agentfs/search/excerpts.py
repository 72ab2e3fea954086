"""The matches of a file as they are shown: cut lines, and the lines around them."""

import sys
from collections.abc import Sequence

from agentfs.patterns.line_search import LineMatch
from agentfs.results import Match
from agentfs.search.large import TextBlock
from agentfs.text import cut_line, cut_mark

BLOCK_LINES = 10  # a match over several lines may be as long as this many lines


class Excerpts:
    """Converts line matches of a file to matches in order; without `overlap`, no line is in two matches."""

    def __init__(self, path: str, around: tuple[int, int], line_chars: int, *, overlap: bool) -> None:
        self._path = path
        self._before, self._after = around
        self._line_chars = line_chars
        self._overlap = overlap
        self._free = 0  # number of the first line that is in no match yet
        self._waiting: tuple[TextBlock, LineMatch, int] | None = None
        self._counted: tuple[TextBlock | None, int, int] = (
            None,
            0,
            0,
        )  # a block, a place, and its line number

    def add(self, block: TextBlock, hit: LineMatch, *, keep: bool) -> Match | None:
        """Return the previous match, whose last line around it is now known; with `keep`, hold this one."""
        if not keep and self._waiting is None:
            return None
        counted, place, number = self._counted
        if counted is not block:
            place, number = 0, block.number
        number += block.text.count("\n", place, hit.start)
        self._counted = block, hit.start, number
        match = self.end(number)
        self._waiting = (block, hit, number) if keep else None
        return match

    def end(self, following: int = sys.maxsize) -> Match | None:
        """Return the last match; `following` is the line of the next one."""
        if self._waiting is None:
            return None
        (block, hit, number), self._waiting = self._waiting, None
        text, line_chars = block.text, self._line_chars
        lines = text[hit.start : hit.end]
        shown, spans, cut = _cut_around(lines, hit.spans, line_chars, block.beyond or (0, 0))
        before = _lines_before(text, hit.start, min(self._before, number - self._free))
        behind = number + lines.count("\n") + 1  # the line behind the match
        most = self._after if self._overlap else min(self._after, following - behind)
        after = _lines_after(text, hit.end + 1, most)
        self._free = 0 if self._overlap else behind + len(after)
        return Match(
            path=self._path,
            line=number,
            text=shown,
            spans=tuple(spans),
            before=tuple([cut_line(line, line_chars) for line in before]),
            after=tuple([cut_line(line, line_chars) for line in after]),
            cut=cut,
        )


def _lines_before(text: str, end: int, count: int) -> list[str]:
    lines: list[str] = []
    while len(lines) < count and end > 0:
        begin = text.rfind("\n", 0, end - 1) + 1
        lines.append(text[begin : end - 1])
        end = begin
    return lines[::-1]


def _lines_after(text: str, start: int, count: int) -> list[str]:
    lines: list[str] = []
    while len(lines) < count and start < len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        lines.append(text[start:end])
        start = end + 1
    return lines


def without_marks(match: Match) -> tuple[str, list[tuple[int, int]]]:
    """Return the text of a match without its cut marks, and the spans relative to that text."""
    ahead, behind = map(cut_mark, match.cut)
    text = match.text[len(ahead) : len(match.text) - len(behind)]
    return text, [(start - len(ahead), end - len(ahead)) for start, end in match.spans]


def _cut_around(
    text: str, spans: Sequence[tuple[int, int]], line_chars: int, beyond: tuple[int, int]
) -> tuple[str, list[tuple[int, int]], tuple[int, int]]:
    """Cut a long text around its first match; return it with moved spans and the cut lengths.

    `beyond` are the numbers of characters that the text lacks already.
    """
    limit = line_chars * BLOCK_LINES if "\n" in text else line_chars
    if len(text) <= limit and beyond == (0, 0):
        return text, list(spans), (0, 0)
    first = spans[0][0] if spans else 0
    start = max(0, min(first - limit // 4, len(text) - limit))
    end = min(start + limit, len(text))
    ahead, rest = beyond[0] + start, beyond[1] + len(text) - end
    mark = cut_mark(ahead)
    shift = len(mark) - start
    kept = [(max(a, start) + shift, min(b, end) + shift) for a, b in spans if a <= end and b >= start]
    return f"{mark}{text[start:end]}{cut_mark(rest)}", kept, (ahead, rest)
