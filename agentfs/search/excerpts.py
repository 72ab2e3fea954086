"""The matches of a file as they are shown: cut lines, and the lines around them."""

from collections.abc import Iterator, Sequence

from agentfs.patterns.line_search import LineMatch
from agentfs.results import Match
from agentfs.search.windows import Window
from agentfs.text import cut_line, cut_mark

BLOCK_LINES = 10  # a match over several lines may be as long as this many lines


class Excerpts:
    """Converts line matches of a file to matches in order; without `overlap`, no line is in two matches."""

    def __init__(self, path: str, around: tuple[int, int], line_chars: int, *, overlap: bool) -> None:
        self._path = path
        self._before, self._after = around
        self._line_chars = line_chars
        self._overlap = overlap
        self._free = 0  # start of the first line that is in no match yet

    def enter(self, window: Window) -> None:
        """Go on with the next window."""
        self._text = window.text
        self._context, self._beyond = window.context, window.beyond
        self._number, self._counted = window.number, 0  # of the line that begins there
        self._free = max(self._context, self._free - window.dropped)

    def take(self, line_matches: Sequence[LineMatch], following: int | None) -> Iterator[Match]:
        """Yield a match for each line match; `following` is the start of the next line match, if any."""
        text, line_chars = self._text, self._line_chars
        ends = [*(each.start for each in line_matches[1:]), following]
        for found, end in zip(line_matches, ends, strict=True):
            self._number += text.count("\n", self._counted, found.start)
            self._counted = found.start
            lines_before = _lines_before(text, self._free, found.start, self._before)
            end = len(text) if end is None or self._overlap else end  # noqa: PLW2901 - the default for None
            lines_after, taken = _lines_after(text, found.end + 1, end, self._after)
            self._free = self._context if self._overlap else taken
            lines = text[found.start : found.end]
            shown, spans, cut = _cut_around(lines, found.spans, line_chars, self._beyond)
            yield Match(
                path=self._path,
                line=self._number,
                text=shown,
                spans=tuple(spans),
                before=tuple(cut_line(line, line_chars) for line in lines_before),
                after=tuple(cut_line(line, line_chars) for line in lines_after),
                cut=cut,
            )


def _lines_before(text: str, start: int, end: int, count: int) -> list[str]:
    lines: list[str] = []
    while len(lines) < count and end > start:
        begin = text.rfind("\n", 0, end - 1) + 1
        lines.append(text[begin : end - 1])
        end = begin
    return lines[::-1]


def _lines_after(text: str, start: int, stop: int, count: int) -> tuple[list[str], int]:
    lines: list[str] = []
    while len(lines) < count and start < stop:
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        lines.append(text[start:end])
        start = end + 1
    return lines, start


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
