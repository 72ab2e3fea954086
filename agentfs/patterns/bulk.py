"""The count of lines and matches in many texts of which nothing is shown."""

import sys
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from agentfs.patterns.compile import Pattern
from agentfs.patterns.line_search import Counts, LineSearch
from agentfs.patterns.prefilter import Literals

_BATCH = 16 * 1024  # bytes of candidate lines that are searched together
_SHORT = 195  # bytes of a line, of which so many may be searched without a timeout for one varying repeat


@dataclass
class _Batch:
    """Candidate lines that are searched together."""

    texts: list[str] = field(default_factory=list[str])  # the lines of each text
    size: int = 0
    longest: int = 0  # of the lines


class BulkCount:
    r"""Counts what `LineSearch.count` counts, in texts in UTF-8 with `\n` for every line end.

    Where case is ignored they must be in ASCII.
    """

    def __init__(self, pattern: Pattern, literals: Literals, line_search: LineSearch) -> None:
        plan = pattern.plan
        self._line_search = line_search
        self._finds = literals.finds
        self._extras = [] if pattern.ignore_case else [each.encode() for each in plan.extra_literals]
        literals_found = tuple(literal.decode() for _, literal in self._finds)
        self._is_literal = plan.is_literal and literals_found == plan.literals
        self.is_possible = (
            bool(self._finds)
            and not pattern.multiline
            and pattern.max_length == sys.maxsize
            and (self._is_literal or (line_search.is_exact and min(map(len, plan.literals)) > 1))
        )
        self.needs_ascii = pattern.ignore_case
        self.files = 0  # those with a match
        self.counts = Counts()
        self._batches = _Batch(), _Batch()  # the second of short lines in ASCII, which are searched faster

    def add(self, data: bytearray, start: int, end: int) -> None:
        """Count in a text between two positions."""
        if self._is_literal:
            self._count_literal(data, start, end)
            return
        lines = self._candidates(data, start, end)
        if lines:
            longest = max(map(len, lines))
            text = b"\n".join(lines)
            batch = self._batches[longest <= _SHORT and text.isascii()]
            batch.texts.append(text.decode())
            batch.size += len(text)
            batch.longest = max(batch.longest, longest)
            if batch.size > _BATCH:
                self._search(batch)

    def flush(self) -> None:
        """Count in what was added; TimeoutError where the time ends."""
        for batch in self._batches:
            self._search(batch)

    def _search(self, batch: "_Batch") -> None:
        if not batch.texts:
            return
        counts = self.counts
        joined, longest = "\n".join(batch.texts), batch.longest
        ends = list(accumulate(len(text) + 1 for text in batch.texts))
        batch.texts, batch.size, batch.longest = [], 0, 0
        line_end = text_end = -1
        for first, _ in self._line_search.spans_in_lines(joined, longest):
            if first > line_end:
                line_end = joined.find("\n", first)
                line_end = len(joined) if line_end < 0 else line_end
                counts.lines += 1
                if first >= text_end:
                    text_end = ends[bisect_right(ends, first)]
                    self.files += 1
            counts.matches += 1
        counts.hits = counts.lines

    def _count_literal(self, data: bytearray, start: int, end: int) -> None:
        lines = matches = 0
        line_end = -1
        for at in _occurrences(self._finds, data, start, end):
            matches += 1
            if at > line_end:
                lines += 1
                line_end = data.find(b"\n", at, end)
                if line_end < 0:
                    line_end = end
        self.files += lines > 0
        self.counts.hits += lines
        self.counts.lines += lines
        self.counts.matches += matches

    def _candidates(self, data: bytearray, start: int, end: int) -> list[bytearray]:
        """Return the lines that have a literal, and all the others that a match requires."""
        finds = self._finds
        if len(finds) == 1:
            lines = [data[first:last] for first, last in _lines_with(*finds[0], data, start, end)]
        else:
            found = {line for each in finds for line in _lines_with(*each, data, start, end)}
            lines = [data[first:last] for first, last in sorted(found)]
        for extra in self._extras:
            lines = [line for line in lines if extra in line]
        return lines


def _occurrences(finds: list[tuple[Any, bytes]], data: bytearray, start: int, end: int) -> Iterator[int]:
    """Yield where one of some literals is, from the end of the one before; the first given wins."""
    following: list[int] = [find(data, literal, start, end) for find, literal in finds]
    if len(finds) == 1:
        find, literal = finds[0]
        at, size = following[0], len(literal)
        while at >= 0:
            yield at
            at = find(data, literal, at + size, end)
        return
    following = [end if at < 0 else at for at in following]
    while (at := min(following)) < end:
        yield at
        start = at + len(finds[following.index(at)][1])
        for index, position in enumerate(following):
            if position < start:
                find, literal = finds[index]
                found: int = find(data, literal, start, end)
                following[index] = end if found < 0 else found


def _lines_with(
    find: Any, literal: bytes, data: bytearray, start: int, end: int
) -> Iterator[tuple[int, int]]:
    find_end, find_start = data.find, data.rfind
    at: int = find(data, literal, start, end)
    while at >= 0:
        last = find_end(b"\n", at, end)
        if last < 0:
            last = end
        yield find_start(b"\n", start, at) + 1 or start, last
        at = find(data, literal, last, end)
