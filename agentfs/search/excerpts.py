"""Hits of one file as the matches of a result: numbered, with lines around them, and cut when very long."""

from collections.abc import Iterator, Sequence
from sys import getsizeof

from agentfs.patterns.line_search import LineMatch
from agentfs.results import Match
from agentfs.text import cut_line

_MATCH_BYTES, _SPAN_BYTES = 320, 120  # as measured
_BLOCK_LINES = 10  # a match over several lines may be as long as this many lines


class Excerpts:
    r"""The matches of one file, made from its hits in order; unless asked for, no line is in two of them.

    Args:
        path: The path that the matches name.
        text: The text of the file, with `\n` for every line end.
        before: Lines to take before each.
        after: Lines to take after each.
        line_chars: Characters after which a line is cut.
        whole_context: Whether each has all lines around it, also those of another.
    """

    def __init__(
        self, path: str, text: str, *, before: int, after: int, line_chars: int, whole_context: bool
    ) -> None:
        self._path = path
        self._text = text
        self._before = before
        self._after = after
        self._line_chars = line_chars
        self._whole_context = whole_context
        self._number, self._counted = 1, 0  # of the line that begins there
        self._free = 0  # where the lines begin that no match has taken

    def take(self, hits: Sequence[LineMatch], following: int | None = None) -> Iterator[Match]:
        """Yield a match for each of some hits.

        Args:
            hits: The hits, behind those that were taken before.
            following: Where the hit behind them begins, or None where there is none.
        """
        text, line_chars = self._text, self._line_chars
        for index, hit in enumerate(hits):
            self._number += text.count("\n", self._counted, hit.start)
            self._counted = hit.start
            above = _lines_before(text, self._free, hit.start, self._before)
            ceiling = hits[index + 1].start if index + 1 < len(hits) else following
            if ceiling is None or self._whole_context:
                ceiling = len(text)
            below, taken = _lines_after(text, hit.end + 1, ceiling, self._after)
            self._free = 0 if self._whole_context else taken
            shown, spans, cut = _cut_around(text[hit.start : hit.end], hit.spans, line_chars)
            yield Match(
                path=self._path,
                line=self._number,
                text=shown,
                spans=tuple(spans),
                before=tuple(cut_line(line, line_chars) for line in above),
                after=tuple(cut_line(line, line_chars) for line in below),
                cut=cut,
            )


def spans_window(line_chars: int) -> int:
    """Return how many characters behind its first match of a hit a match can still be shown.

    Args:
        line_chars: Characters after which a line is cut.
    """
    return line_chars * _BLOCK_LINES


def bytes_of(match: Match) -> int:
    """Estimate the memory that a match takes.

    Args:
        match: The match.
    """
    lines = (match.text, *match.before, *match.after)
    return _MATCH_BYTES + _SPAN_BYTES * len(match.spans) + sum(map(getsizeof, lines))


def _lines_before(text: str, floor: int, end: int, count: int) -> list[str]:
    lines: list[str] = []
    while len(lines) < count and end > floor:
        start = text.rfind("\n", 0, end - 1) + 1
        lines.append(text[start : end - 1])
        end = start
    return lines[::-1]


def _lines_after(text: str, start: int, ceiling: int, count: int) -> tuple[list[str], int]:
    lines: list[str] = []
    while len(lines) < count and start < ceiling:
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        lines.append(text[start:end])
        start = end + 1
    return lines, start


def without_marks(match: Match) -> tuple[str, list[tuple[int, int]]]:
    """Return what a match shows of its line without saying in it what was cut.

    Args:
        match: As a search returns it.

    Returns:
        The characters of the line, and the spans in them.
    """
    ahead, behind = map(_mark, match.cut)
    text = match.text[len(ahead) : len(match.text) - len(behind)]
    return text, [(start - len(ahead), end - len(ahead)) for start, end in match.spans]


def _mark(left: int) -> str:
    return f"⟦+{left} character{'s' if left > 1 else ''}⟧" if left else ""


def _cut_around(
    text: str, spans: Sequence[tuple[int, int]], line_chars: int
) -> tuple[str, list[tuple[int, int]], tuple[int, int]]:
    """Cut what is too long around its first match, say by how much, and move the spans along."""
    limit = line_chars * _BLOCK_LINES if "\n" in text else line_chars
    if len(text) <= limit:
        return text, list(spans), (0, 0)
    first = spans[0][0] if spans else 0
    start = max(0, min(first - limit // 4, len(text) - limit))
    end = start + limit
    ahead = _mark(start)
    left = len(text) - end
    shift = len(ahead) - start
    kept = [(max(a, start) + shift, min(b, end) + shift) for a, b in spans if a <= end and b >= start]
    return f"{ahead}{text[start:end]}{_mark(left)}", kept, (start, left)
