"""The matches of a file as they are shown: cut lines, and the lines around them."""

from collections.abc import Sequence

from agentfs.patterns.line_search import LineMatch
from agentfs.results import Match
from agentfs.search.large import TextBlock, start_of_lines
from agentfs.text.display import cut_line, cut_mark

BLOCK_LINES = 10  # a match over several lines may be as long as this many lines


def excerpt(
    path: str, block: TextBlock, hit: LineMatch, number: int, around: tuple[int, int], line_chars: int
) -> Match:
    """Return a line match, which begins in the line `number`, with the lines around it."""
    text = block.text
    shown, spans, cut = _cut_around(text[hit.start : hit.end], hit.spans, line_chars, block.beyond)
    before = text[start_of_lines(text, hit.start, around[0]) : hit.start]
    behind = end = hit.end + 1
    for _ in range(around[1]):
        end = text.find("\n", end) + 1 or len(text) + 1
    return Match(
        path=path,
        line=number,
        text=shown,
        spans=tuple(spans),
        before=_cut_lines(before, line_chars),
        after=_cut_lines(text[behind:end], line_chars),
        cut=cut,
    )


def _cut_lines(text: str, line_chars: int) -> tuple[str, ...]:
    return tuple(cut_line(line, line_chars) for line in text.removesuffix("\n").split("\n")) if text else ()


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
