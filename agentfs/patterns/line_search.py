"""Find the lines of a text that match a pattern, with few calls of the engine.

A literal that every match contains finds candidate lines, and the pattern runs on each of them alone. Without
a literal, the line regex runs over the full text.
"""

import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from agentfs.base import call_context
from agentfs.patterns.compile import Pattern

# How many parts of a text, and matches, come between two checks of the clock; long parts are checked each.
_PARTS_PER_CHECK, _MATCHES_PER_CHECK, _LONG_PART = 64, 1024, 1024
_OTHER_FORMS = "\u0130\u0131\u017f\u212a"  # ignoring case, they match the ASCII letters i, s or k
# The timeout of `regex` is processor time of all threads, and a search cannot be cancelled. So a search gets
# slices of time, each twice as long as the last, and checks the clock and cancellation after each.
_FIRST_SLICE = 0.25
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
        window: Distance from the first match of a line, in characters, up to which spans are kept.
    """

    def __init__(self, pattern: Pattern, deadline: float, *, window: int = sys.maxsize) -> None:
        self._pattern = pattern
        self._deadline = deadline
        self._window = window
        self.too_long = 0  # number of lines (with `multiline`: texts) that were too long to search
        literals = pattern.plan.literals
        # A literal of one character is in too many lines to be useful.
        self._finds_lines = bool(literals) and (pattern.plan.is_literal or min(map(len, literals)) > 1)

    def hits(self, text: str) -> Iterator[LineMatch]:
        r"""Yield the matching lines of a text with `\n` for every line end."""
        hit = LineMatch(-1, -1, [])
        try:
            for number, (first, last) in enumerate(self._spans(text), 1):
                if not number % _MATCHES_PER_CHECK:
                    self._seconds_left()
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
        end = -1
        try:
            for matches, (first, _) in enumerate(self._spans(text), 1):
                if first > end:
                    lines += 1
                    end = text.find("\n", first)
                    if end < 0:
                        end = len(text)
                if not matches % _MATCHES_PER_CHECK:
                    self._seconds_left()
        except TimeoutError:
            return lines, matches, True
        return lines, matches, False

    def matches(self, text: str) -> Iterator[tuple[int, "re.Match[str]"]]:
        """Yield each match in the lines of `hits`, with the offset of the searched part of the text."""
        parts: Iterable[tuple[int, str]] = ((hit.start, text[hit.start : hit.end]) for hit in self.hits(text))
        if self._pattern.multiline:
            parts = [(0, text)] if len(text) <= self._pattern.longest else []
        for offset, part in parts:
            behind = -1
            for match in self._timed(part):
                first, last = match.span()
                if first != last or first != behind:
                    yield offset, match
                behind = last

    def _spans(self, text: str) -> Iterator[_Span]:
        """Yield the matches in order."""
        pattern, plan = self._pattern, self._pattern.plan
        if pattern.multiline:
            end = len(text) + (text[-1:] not in {"", "\n"})  # no line begins after the last line end
            return (span for span in self._matched(text, [(0, len(text))], 0) if span[0] < end)
        folded = self._folded(text) if self._finds_lines else None
        if folded is not None and plan.is_literal:
            return _occurrences(folded, plan.literals)
        if folded is not None:
            parts = _lines_with(folded, plan.literals)
        elif pattern.by_line or (len(text) > pattern.longest and _longest(text) > pattern.longest):
            parts = _chunks(text, 1)
        else:
            parts = _chunks(text, plan.untimed_chunk or len(text))
        return self._matched(text, parts, plan.longest_untimed)

    def _folded(self, text: str) -> str | None:
        """Return a text in which the literals are found, or None if they may have other forms in it."""
        if not self._pattern.plan.ignore_case:
            return text
        return None if not text.isascii() and any(each in text for each in _OTHER_FORMS) else text.lower()

    def _matched(self, text: str, parts: Iterable[_Span], untimed: int) -> Iterator[_Span]:
        """Yield the matches in parts of a text; lines of up to `untimed` characters need no timeout.

        As in rg, an empty match does not follow another match at once, such as the second match of `.*`.
        """
        pattern = self._pattern
        finditer = ((pattern.in_ascii if text.isascii() else None) or pattern.expression).finditer
        for number, (start, end) in enumerate(parts):
            part, size = text[start:end], end - start
            if size > _LONG_PART or not number % _PARTS_PER_CHECK:
                self._seconds_left()
            if size > pattern.longest and (pattern.multiline or _longest(part) > pattern.longest):
                self.too_long += 1
                continue
            if size <= untimed or (untimed and _longest(part) <= untimed):
                found = finditer(part)
            else:
                found = self._timed(part)
            behind = -1
            for match in found:
                first, last = match.span()
                if first != last or first != behind:
                    yield start + first, start + last
                behind = last

    def _timed(self, text: str) -> Iterator["re.Match[str]"]:
        """Match in slices of time until the deadline. This is the only search with a timeout."""
        seconds, done = _FIRST_SLICE, 0
        while True:
            timeout = min(seconds, self._seconds_left())
            found = self._pattern.expression.finditer(text, timeout=timeout, concurrent=True)
            try:
                for number, match in enumerate(found):
                    if number >= done:
                        done += 1
                        yield match
            except TimeoutError:
                seconds *= 2
            else:
                return

    def _seconds_left(self) -> float:
        call_context.step(0)
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left


def _longest(text: str) -> int:
    return max(map(len, text.split("\n")))


def _line_end(text: str, position: int) -> int:
    end = text.find("\n", position)
    return len(text) if end < 0 else end


def _chunks(text: str, size: int) -> Iterator[_Span]:
    """Cut a text at line ends into chunks of at least `size` characters, without their last line end."""
    start = 0
    while start < len(text):
        end = text.find("\n", start + size - 1)
        if end < 0:
            end = len(text) - text.endswith("\n")
        yield start, end
        start = end + 1


def _occurrences(text: str, literals: tuple[str, ...]) -> Iterator[_Span]:
    """Yield the places of literals; at the same place, the first one wins."""
    return _found(text, literals, lambda at, literal: (at, at + len(literal)))


def _lines_with(text: str, literals: tuple[str, ...]) -> Iterator[_Span]:
    """Yield the lines that contain a literal."""
    return _found(text, literals, lambda at, _: (text.rfind("\n", 0, at) + 1, _line_end(text, at)))


def _found(text: str, literals: tuple[str, ...], extent: Callable[[int, str], _Span]) -> Iterator[_Span]:
    """Yield the extent of each literal that does not begin in the extent before it."""
    if len(literals) == 1:
        [literal] = literals
        at = text.find(literal)
        while at >= 0:
            start, end = extent(at, literal)
            yield start, end
            at = text.find(literal, end)
        return
    places = [text.find(each) for each in literals]
    while found := [at for at in places if at >= 0]:
        at = min(found)
        start, end = extent(at, literals[places.index(at)])
        yield start, end
        for index, place in enumerate(places):
            if 0 <= place < end:
                places[index] = text.find(literals[index], end)
