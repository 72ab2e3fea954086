"""Find the lines of a text that match a pattern, with few calls of the engine.

A literal that every match contains finds candidate lines, and the line regex runs over them together. Without
a literal, it runs over the full text.
"""

import re
import string
import sys
import time
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate, islice

from agentfs.base import call_context
from agentfs.patterns.compile import Pattern
from agentfs.patterns.prefilter import OTHER_FORMS

_MATCHES_PER_CHECK = 1024  # matches between two checks of the clock
_CHUNK = 64 * 1024  # characters of a text without candidate lines that are matched at once
_LINES_AT_ONCE = 1024  # candidate lines that are matched at once
_FREQUENT = frozenset(string.ascii_letters + string.digits + " _.,")
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
        window: Spans are kept up to this distance from the first match of a line, in characters.
    """

    def __init__(self, pattern: Pattern, deadline: float, *, window: int = sys.maxsize) -> None:
        self._pattern = pattern
        self._deadline = deadline
        self._window = window
        self.too_long = 0  # number of lines (with `multiline`: texts) that were too long to search
        plan = pattern.plan
        # A frequent character is in too many lines. A literal at the beginning is found faster by the engine.
        head = re.sub(r"\A(?:\^|\\b)+|\\(?=\W)", "", plan.line_regex or "").lower()
        is_apart = all(each not in _FREQUENT and not head.startswith(each.lower()) for each in plan.literals)
        self._finds_lines = bool(plan.literals) and (plan.is_literal or is_apart)

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
                    end = _line_end(text, first)
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
            return (span for span in self._matched(text, [(0, len(text))], 1) if span[0] < end)
        folded = self._folded(text) if self._finds_lines else None
        if folded is not None:
            found = _found(folded, plan.literals, lines=not plan.is_literal)
            return found if plan.is_literal else self._matched(text, found, _LINES_AT_ONCE)
        if pattern.by_line or len(text) > pattern.longest:
            return self._matched(text, _chunks(text, 1), _LINES_AT_ONCE)
        return self._matched(text, _chunks(text, _CHUNK), 1)

    def _folded(self, text: str) -> str | None:
        """Return a text in which the literals are found, or None if they may have other forms in it."""
        if not self._pattern.plan.ignore_case:
            return text
        return None if not text.isascii() and any(each in text for each in OTHER_FORMS) else text.lower()

    def _matched(self, text: str, parts: Iterable[_Span], at_once: int) -> Iterator[_Span]:
        """Yield the matches in parts of a text, which are lines or chunks of lines.

        As in rg, an empty match does not follow another match at once, such as the second match of `.*`.
        """
        pattern, rest = self._pattern, iter(parts)
        while batch := list(islice(rest, 1 if pattern.by_line else at_once)):
            searched = [(start, end) for start, end in batch if end - start <= pattern.longest]
            self.too_long += len(batch) - len(searched)
            places = [0, *accumulate(end - start + 1 for start, end in searched)]
            behind = -1
            joined = "\n".join([text[start:end] for start, end in searched])
            for match in self._timed(joined) if searched else ():
                first, last = match.span()
                if first != last or first != behind:
                    index = bisect_right(places, first) - 1
                    shift = searched[index][0] - places[index]
                    yield first + shift, last + shift
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


def _found(text: str, literals: tuple[str, ...], *, lines: bool) -> Iterator[_Span]:
    """Yield the places of literals, or with `lines` the lines that contain one; the first literal wins."""
    literal = literals[0]
    search = re.compile("|".join(map(re.escape, literals))).search if len(literals) > 1 else None
    end = 0
    while True:
        if search is None:
            start = text.find(literal, end)
            end = start + len(literal)
        else:
            found = search(text, end)
            start, end = found.span() if found else (-1, -1)
        if start < 0:
            return
        if lines:
            start, end = text.rfind("\n", 0, start) + 1, _line_end(text, end)
        yield start, end
