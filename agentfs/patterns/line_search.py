"""Find the lines of a text that match a pattern, with few calls of the engine.

The tail of the pattern finds candidate lines, and the line regex runs over them together. Without a tail, it
runs over the full text.
"""

import re
import sys
import time
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice, repeat
from operator import contains
from typing import Any

from agentfs.base import call_context
from agentfs.patterns.compile import Pattern

_MATCHES_PER_CHECK = 1024  # matches between two checks of the clock
_CHUNK = 32 * 1024  # characters of a text that are matched at once
# The timeout of `regex` is processor time of all threads, and a search cannot be cancelled. So a search gets
# slices of time, each twice as long as the last, and checks the clock and cancellation after each.
_FIRST_SLICE = 0.25
_SHORT_LINE = 512  # characters
# The engine looks at its clock after 256 steps, and one step may pass a long run of characters.
_RUN = 32 * 1024
_RUN_SECONDS = 0.8e-6 * _RUN  # measured for 256 steps
_Span = tuple[int, int]


@dataclass(slots=True)
class LineMatch:
    """A matching line; with `multiline`, the lines of adjoining matches."""

    start: int  # start of the first line in the text
    end: int  # end of the last line, without its line end
    spans: list[_Span]  # matches, relative to `start`; only the first if there are very many
    matches: int = 0


class LineSearch:
    """The search for one pattern in one text after another.

    Args:
        pattern: The pattern.
        deadline: The `time.monotonic()` at which searches raise TimeoutError.
        window: Spans are kept up to this distance from the first match of a line, in characters.
    """

    def __init__(self, pattern: Pattern, deadline: float, *, window: int = sys.maxsize) -> None:
        self._pattern = pattern
        self._deadline = deadline
        self._window = window
        self.too_long = 0  # number of lines (with `multiline`: texts) that were too long to search

    def hits(self, text: str) -> Iterator[LineMatch]:
        r"""Yield the matching lines of a text with `\n` for every line end."""
        hit = LineMatch(-1, -1, [])
        try:
            for number, (first, last) in enumerate(self._spans(text), 1):
                if not number % _MATCHES_PER_CHECK:
                    seconds_left(self._deadline)
                if first > hit.end:
                    if hit.spans:
                        yield hit
                    hit = LineMatch(text.rfind("\n", 0, first) + 1, _line_end(text, first), [])
                if last > hit.end:
                    # A match that ends with a line end does not reach into the next line.
                    inside = last - 1 if text.startswith("\n", last - 1) else last
                    hit.end = max(hit.end, _line_end(text, inside))
                hit.matches += 1
                start = first - hit.start
                if not hit.spans or start - hit.spans[0][0] <= self._window:
                    hit.spans.append((start, min(last, hit.end) - hit.start))
        except TimeoutError:
            if hit.spans:
                yield hit
            raise
        if hit.spans:
            yield hit

    def count(self, text: str) -> tuple[int, int, bool]:
        """Return the numbers of `hits` and of their matches, and True if the time ran out.

        This is faster than `hits`, but only for patterns without `multiline`.
        """
        lines = matches = 0
        plan, expression = self._pattern.plan, self._pattern.expression
        is_quick = plan.is_literal or (plan.is_quick and _has_short_lines(text))
        try:
            for part, _ in self._candidates(text) if is_quick else ():
                seconds_left(self._deadline)
                if plan.is_literal and (folded := self._folded(part)) is not None:
                    pieces = folded.split(plan.literals[0])
                else:
                    pieces = expression.split(part, concurrent=True)
                matches += len(pieces) - 1
                # The first match of a part is in a new line, and so is each that a line end precedes.
                lines += sum(map(contains, pieces[1:-1], repeat("\n"))) + (len(pieces) > 1)
            for hit in () if is_quick else self.hits(text):
                lines += 1
                matches += hit.matches
        except TimeoutError:
            return lines, matches, True
        return lines, matches, False

    def matches(self, text: str) -> Iterator[tuple[int, "re.Match[str]"]]:
        """Yield each match in the lines of `hits`, with the offset of the searched part of the text."""
        parts: Iterable[tuple[int, str]] = ((hit.start, text[hit.start : hit.end]) for hit in self.hits(text))
        if self._pattern.multiline:
            parts = [(0, text)] if len(text) <= self._pattern.longest else []
        for offset, part in parts:
            for match in self._timed(self._pattern.expression, part):
                yield offset, match

    def _spans(self, text: str) -> Iterator[_Span]:
        """Yield the matches in order."""
        pattern, plan = self._pattern, self._pattern.plan
        folded = self._folded(text) if plan.is_literal and not pattern.multiline else None
        if folded is not None:
            return _found(folded, plan.literals[0])
        end = len(text) + (text[-1:] not in {"", "\n"})  # no line begins after the last line end
        return (span for span in self._matched(text) if span[0] < end)

    def _matched(self, text: str) -> Iterator[_Span]:
        for part, lines in self._candidates(text):
            places = [0, *accumulate(last - first + 1 for first, last in lines)]
            for match in self._timed(self._pattern.expression, part):
                first, last = match.span()
                index = bisect_right(places, first) - 1
                shift = lines[index][0] - places[index]
                yield first + shift, last + shift

    def _candidates(self, text: str) -> Iterator[tuple[str, Sequence[_Span]]]:
        """Yield the candidate lines of each part of a text, joined and as places in the text."""
        pattern, plan = self._pattern, self._pattern.plan
        by_line = pattern.by_line or len(text) > pattern.longest
        parts = [(0, len(text))] if pattern.multiline else _chunks(text, 1 if by_line else _CHUNK)
        for start, end in parts:
            part = text[start:end]
            if len(part) > pattern.longest:
                self.too_long += 1
                continue
            lines = [(0, len(part))]
            folded = self._folded(part) if plan.has_rare_literals and not pattern.multiline else None
            if pattern.tail is not None:
                tails = self._timed(pattern.tail, part)
                lines = [(part.rfind("\n", 0, each.start()) + 1, each.end()) for each in tails]
            elif folded is not None:
                lines = [*_lines_with(folded, plan.literals)]
            if lines:
                joined = "\n".join([part[first:last] for first, last in lines])
                yield joined, [(start + first, start + last) for first, last in lines]

    def _folded(self, text: str) -> str | None:
        """Return the text in which literals are found; None if it has other forms of letters."""
        if self._pattern.plan.ignore_case:
            return text.lower() if text.isascii() else None
        return text

    def _timed(self, expression: Any, text: str) -> Iterator["re.Match[str]"]:
        """Match in slices of time until the deadline. This is the only search with a timeout.

        As in rg, an empty match does not follow another match at once, such as the second match of `.*`.
        """
        seconds, done, behind = _FIRST_SLICE, 0, -1
        overrun = self._overrun(text)
        while True:
            timeout = min(seconds, seconds_left(self._deadline, overrun))
            found = expression.finditer(text, timeout=timeout, concurrent=True)
            try:
                for match in islice(found, done, None):
                    done += 1
                    first, last = match.span()
                    if first != last or first != behind:
                        yield match
                    behind = last
            except TimeoutError:
                seconds *= 2
            else:
                return

    def _overrun(self, text: str) -> float:
        """Return the seconds that the engine may need beyond its timeout."""
        starts = range(0, len(text) - 2 * _RUN, _RUN)
        runs = (self._pattern.run.fullmatch(text, start, start + _RUN) for start in starts)
        return _RUN_SECONDS * sum(run is not None for run in runs)


def seconds_left(deadline: float, overrun: float = 0.0) -> float:
    """Return the seconds before a deadline without an overrun.

    Raises TimeoutError if there are none, and `Cancelled` if the call was abandoned.
    """
    call_context.step(0)
    left = deadline - time.monotonic() - overrun
    if left <= 0:
        raise TimeoutError
    return left


def _has_short_lines(text: str) -> bool:
    end = 0
    while len(text) - end > _SHORT_LINE:
        # `end` is 0 if no line ends within this distance.
        if not (end := text.rfind("\n", end, end + _SHORT_LINE) + 1):
            return False
    return True


def _line_end(text: str, position: int) -> int:
    end = text.find("\n", position)
    return len(text) if end < 0 else end


def _chunks(text: str, size: int) -> Iterator[_Span]:
    """Cut a text at line ends into chunks of at least `size` characters, without their last line end."""
    start, last = 0, len(text) - text.endswith("\n")
    while start < len(text):
        end = min(_line_end(text, start + size - 1), last)
        yield start, end
        start = end + 1


def _found(text: str, literal: str) -> Iterator[_Span]:
    start = text.find(literal)
    while start >= 0:
        end = start + len(literal)
        yield start, end
        start = text.find(literal, end)


def _lines_with(text: str, literals: Sequence[str]) -> Iterator[_Span]:
    """Yield the lines that have one of several literals."""
    places = {literal: text.find(literal) for literal in literals}
    while places := {literal: at for literal, at in places.items() if at >= 0}:
        first = min(places.values())
        end = _line_end(text, first)
        yield text.rfind("\n", 0, first) + 1, end
        places = {literal: at if at > end else text.find(literal, end) for literal, at in places.items()}
