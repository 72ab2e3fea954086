"""Find the lines of a text that match a pattern, with few calls of the engine.

An automaton, or a literal that every match contains, finds candidate lines, and the pattern runs on each of
them alone. Without either, the line regex runs over the full text.
"""

import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from agentfs.base import call_context
from agentfs.patterns.automaton import Automaton
from agentfs.patterns.compile import Expression, Pattern
from agentfs.patterns.engine import UNTIMED_STEPS
from agentfs.patterns.literals import Plan, count_literal, substring_finder

_Matches = Callable[[Iterable[re.Match[str]]], Iterator[re.Match[str]]]
_LINES_PER_CHECK = 64  # lines between two checks of the clock
_MATCHES_PER_CHECK = 4096  # matches of one line between two checks of the clock
_MANY_LINES = 2  # a literal of so many characters is in many lines
_CHUNK = 1024 * 1024  # larger texts are searched in chunks, to bound the memory
_OTHER_FORMS = "\u0130\u0131\u017f\u212a"  # ignoring case, they match the ASCII letters i, s or k
# The timeout of `regex` is processor time of all threads, and a search cannot be cancelled. So a search gets
# slices of time, each twice as long as the last, and checks the clock and cancellation after each.
_FIRST_SLICE = 0.25
_CHARACTERS_PER_SECOND = 1_000_000  # a slower line regex is stuck in a line and is given up


@dataclass(slots=True)
class LineMatch:
    """A matching line; with `multiline`, the lines of adjoining matches."""

    start: int  # start of the first line in the text
    end: int  # end of the last line, without its line end
    spans: list[tuple[int, int]]  # matches, relative to `start`; only the first if there are very many
    matches: int = 0

    def add(self, first: int, last: int, window: int) -> None:
        """Count a match; keep its span if it starts at most `window` characters after the first."""
        self.matches += 1
        if not self.spans or first - self.spans[0][0] <= window:
            self.spans.append((first, last))


@dataclass(slots=True)
class Counts:
    """Numbers of line matches (`hits`), of their lines and of matches."""

    hits: int = 0
    lines: int = 0
    matches: int = 0

    def add(self, hit: LineMatch, line_ends: int) -> None:
        """Count a line match with this number of line ends inside."""
        self.add_lines(1, hit.matches)
        self.lines += line_ends

    def add_lines(self, lines: int, matches: int) -> None:
        """Count line matches of a line each."""
        self.hits += lines
        self.lines += lines
        self.matches += matches


class LineSearch:
    """The search for one pattern in one text after another.

    Args:
        pattern: The pattern.
        deadline: The `time.monotonic()` at which searches raise TimeoutError.
        window: Distance from the first match of a line, in characters, up to which spans are kept.
    """

    def __init__(self, pattern: Pattern, deadline: float, *, window: int = sys.maxsize) -> None:
        self._pattern = pattern
        self._plan = plan = pattern.plan
        self._line_regex = pattern.line_regex
        self._as_in_rg: _Matches = _without_repeats if plan.may_be_empty else iter
        self._deadline = deadline
        self._window = window
        self.too_long = 0  # number of lines (with `multiline`: texts) that were too long to search
        self._until_check = 0
        # A literal of one character is in too many lines to be useful.
        self._has_literals = bool(plan.literals) and min(map(len, plan.literals)) > 1
        # Without an automaton, literals are found faster, unless the engine would run on many lines in vain.
        longest = max(map(len, plan.literals), default=0) if len(plan.literals) == 1 else 0
        is_simple = longest > _MANY_LINES or (longest > 1 and plan.growth == (1, 1))
        self.automaton = None if plan.is_literal or is_simple else Automaton.of(pattern.byte_pattern)
        self._untimed_length = plan.longest_line(UNTIMED_STEPS)
        # A longer line than `_untimed_length` is searched without a timeout after a check of the clock.
        self._longest_untimed = min(plan.longest_line(_LINES_PER_CHECK * UNTIMED_STEPS), pattern.max_length)

    def hits(self, text: str, position: int = 0) -> Iterator[LineMatch]:
        r"""Yield the matching lines of a text with `\n` for every line end, from a line start on."""
        if self._pattern.multiline:
            if self._is_bounded(text):
                yield from self._grouped(text, _spans(self._sliced(text, position)))
            return
        for start, end in _chunks(text, position):
            for hit in self._hits_in(text if end - start == len(text) else text[start:end]):
                hit.start += start
                hit.end += start
                yield hit

    def first_in_part(self, part: str, start: int, stop: int) -> tuple[int, int] | None:
        """Return the first match in a part of one line that begins between two positions, or None."""
        if self._has_candidates(part) and next(self._candidates(part), None) is None:
            return None
        match = next(self._sliced(part, start), None)
        return match.span() if match is not None and match.start() < stop else None

    def matches(self, text: str) -> Iterator[tuple[int, re.Match[str]]]:
        """Yield each match in the lines of `hits`, with the offset of the searched part of the text."""
        if self._pattern.multiline:
            yield from ((0, match) for match in (self._sliced(text) if self._is_bounded(text) else ()))
            return
        for hit in self.hits(text):
            for match in self._matches_in(text[hit.start : hit.end]):
                yield hit.start, match

    def count(self, text: str, counts: Counts) -> None:
        """Count the hits and matches in single lines, faster than `hits`.

        After a TimeoutError, the counts so far remain.
        """
        for start, end in _chunks(text):
            self._count_in(text if end - start == len(text) else text[start:end], counts)

    def _hits_in(self, text: str) -> Iterator[LineMatch]:
        is_short = len(text) <= self._pattern.max_length
        if is_short and self._is_literal(text):
            folded = text.lower() if self._plan.ignore_case else text
            return self._grouped(text, _occurrences(folded, self._plan.literals))
        if self._has_candidates(text):
            return self._confirmed(text, self._candidates(text))
        if is_short and self._line_regex is not None:
            return self._grouped(text, self._line_regex_spans(text, self._line_regex))
        return self._confirmed(text, _lines(text))

    def _count_in(self, text: str, counts: Counts) -> None:
        line_regex = self._line_regex
        if self._pattern.counters is not None and text.isascii() and not self._is_literal(text):
            self._check_sometimes()
            matches, lines = (len(each.findall(text)) for each in self._pattern.counters)
            counts.add_lines(lines, matches)
            return
        if len(text) <= self._pattern.max_length:
            if self._is_literal(text):
                self._count_literals(text, counts)
                return
            if line_regex is not None and not self._has_candidates(text):
                self._count_spans(text, self._line_regex_spans(text, line_regex), counts)
                return
        self._count_lines(
            text, self._candidates(text) if self._has_candidates(text) else _lines(text), counts
        )

    def _is_bounded(self, text: str) -> bool:
        """Return True if a line or text can be searched in bounded memory; else count it as too long."""
        bounded = len(text) <= self._pattern.max_length
        self.too_long += not bounded
        return bounded

    def _is_literal(self, text: str) -> bool:
        return self._plan.is_literal and self._can_fold(text)

    def _can_fold(self, text: str) -> bool:
        """Return True if a search for literals in the text, or in its lower case, finds every match."""
        return not self._plan.ignore_case or text.isascii() or not any(each in text for each in _OTHER_FORMS)

    def _has_candidates(self, text: str) -> bool:
        return (self.automaton is not None and "\0" not in text) or (
            self._has_literals and self._can_fold(text)
        )

    def _candidates(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield start and end of the lines that may match."""
        if self.automaton is not None and "\0" not in text:
            return self.automaton.lines(text)
        folded = text.lower() if self._plan.ignore_case else text
        lines = _occurrences(folded, self._plan.literals, lines=True)
        for extra in self._plan.extra_literals:
            lines = _lines_with(folded, extra, lines)
        return lines

    def _line_regex_spans(self, text: str, line_regex: Expression) -> Iterator[tuple[int, int]]:
        """Yield the matches of the line regex; if it takes too long, continue with each line alone."""
        longest = max(map(len, text.split("\n")))
        part = _untimed_part(self._plan, longest)
        if longest < part:
            for start, end in _chunks(text, size=part):
                self._seconds_left()
                # Without the line end, so that a match at the start of the next line does not count twice.
                stop = end - text.startswith("\n", end - 1)
                for match in self._as_in_rg(line_regex.finditer(text, start, stop)):
                    yield match.span()
            return
        seconds = min(self._seconds_left(), _FIRST_SLICE + len(text) / _CHARACTERS_PER_SECOND)
        span: tuple[int, int] | None = None
        try:
            for match in self._as_in_rg(line_regex.finditer(text, timeout=seconds)):
                span = match.span()
                yield span
        except TimeoutError:
            self._line_regex = None
            yield from self._spans_of_each_line(text, span)

    def _spans_of_each_line(
        self, text: str, behind: tuple[int, int] | None = None
    ) -> Iterator[tuple[int, int]]:
        for start, end in _lines(text, 0 if behind is None else text.rfind("\n", 0, behind[0]) + 1):
            for first, last in _spans(self._matches_in(text[start:end])):
                if behind is None or (start + first, start + last) > behind:
                    yield start + first, start + last

    def _sliced(self, text: str, position: int = 0) -> Iterator[re.Match[str]]:
        """Yield all matches from a position on, searching in slices of time until the deadline."""
        seconds, done, pace = _FIRST_SLICE, 0, 1.0
        while True:
            began, used = time.monotonic(), time.process_time()
            timeout = min(seconds, self._seconds_left() * pace)
            found = self._pattern.expression.finditer(text, position, timeout=timeout)
            try:
                for number, match in enumerate(self._as_in_rg(found)):
                    if number >= done:
                        done += 1
                        yield match
            except TimeoutError:
                seconds *= 2
                pace = (time.process_time() - used) / max(time.monotonic() - began, 1e-3)
            else:
                return

    def _matches_in(self, line: str) -> Iterator[re.Match[str]]:
        """Yield the matches of the pattern in one line."""
        if len(line) > self._longest_untimed:
            return self._sliced(line) if self._is_bounded(line) else iter(())
        if len(line) > self._untimed_length:
            self._seconds_left()  # the line may take as long as many others
        else:
            self._check_sometimes()
        return self._as_in_rg(self._pattern.expression.finditer(line))

    def _confirmed(self, text: str, candidates: Iterable[tuple[int, int]]) -> Iterator[LineMatch]:
        """Match the pattern on each candidate line alone."""
        untimed, window = self._untimed_length, self._window
        for start, end in candidates:
            line = text[start:end]
            if end - start > untimed:
                for hit in self._grouped(line, _spans(self._matches_in(line))):
                    yield LineMatch(start, end, hit.spans, hit.matches)
                continue
            spans = [match.span() for match in self._matches_in(line)]
            if spans:
                matches = len(spans)
                if spans[-1][0] - spans[0][0] > window:
                    spans = [span for span in spans if span[0] - spans[0][0] <= window]
                yield LineMatch(start, end, spans, matches)

    def _grouped(self, text: str, spans: Iterable[tuple[int, int]]) -> Iterator[LineMatch]:
        """Group matches by line; at a TimeoutError, yield the last line with its matches so far."""
        window = self._window
        hit = LineMatch(-1, -1, [])
        try:
            for first, last in spans:
                if first > hit.end:
                    self._check_sometimes()
                    if _is_behind_last_line(text, first):
                        break
                    if hit.spans:
                        yield hit
                    hit = LineMatch(*_line_at(text, first), [])
                elif not hit.matches % _MATCHES_PER_CHECK:
                    self._seconds_left()
                if last > hit.end:
                    # A match that ends with a line end does not reach into the next line.
                    inside = last - 1 if text.startswith("\n", last - 1) else last
                    if inside > hit.end:
                        hit.end = _line_at(text, inside)[1]
                hit.add(first - hit.start, min(last, hit.end) - hit.start, window)
        except TimeoutError:
            if hit.spans:
                yield hit
            raise
        if hit.spans:
            yield hit

    def _count_literals(self, text: str, counts: Counts) -> None:
        literals = self._plan.literals
        if len(literals) == 1:
            self._check_sometimes()
            counts.add_lines(*count_literal(text, literals[0], ignore_case=self._plan.ignore_case))
        else:
            folded = text.lower() if self._plan.ignore_case else text
            self._count_spans(text, _occurrences(folded, literals), counts)

    def _count_lines(self, text: str, candidates: Iterable[tuple[int, int]], counts: Counts) -> None:
        """Count the matches in each candidate line alone."""
        untimed, find_all = self._untimed_length, self._pattern.expression.findall
        may_be_empty = self._plan.may_be_empty
        for start, end in candidates:
            if end - start > untimed:
                for hit in self._confirmed(text, [(start, end)]):
                    counts.add(hit, 0)
                continue
            self._check_sometimes()
            line = text[start:end]
            if matches := len(find_all(line)):
                counts.add_lines(1, sum(1 for _ in self._matches_in(line)) if may_be_empty else matches)

    def _count_spans(self, text: str, spans: Iterable[tuple[int, int]], counts: Counts) -> None:
        """Count matches that do not span lines."""
        end = -1
        for first, _ in spans:
            if not counts.matches % _MATCHES_PER_CHECK:
                self._seconds_left()
            if first > end:
                self._check_sometimes()
                if _is_behind_last_line(text, first):
                    return
                counts.add_lines(1, 0)
                end = text.find("\n", first)
                end = len(text) if end < 0 else end
            counts.matches += 1

    def _seconds_left(self) -> float:
        call_context.step(0)
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left

    def _check_sometimes(self) -> None:
        self._until_check -= 1
        if self._until_check <= 0:
            self._until_check = _LINES_PER_CHECK
            self._seconds_left()


def _untimed_part(plan: Plan, longest: int) -> int:
    """Return how much text without longer lines is searched between two checks of the clock."""
    if plan.growth is None:
        return 0
    power, factor = plan.growth
    return int(_LINES_PER_CHECK * UNTIMED_STEPS / (factor * max(longest, 1) ** (power - 1)))


def _without_repeats(matches: Iterable[re.Match[str]]) -> Iterator[re.Match[str]]:
    """Leave out each empty match at the end of the match before it, such as the second one of `.*`."""
    behind = -1
    for match in matches:
        start, end = match.span()
        if start != end or start != behind:
            yield match
        behind = end


def _spans(matches: Iterable[re.Match[str]]) -> Iterator[tuple[int, int]]:
    return (match.span() for match in matches)


def _line_at(text: str, position: int) -> tuple[int, int]:
    end = text.find("\n", position)
    return text.rfind("\n", 0, position) + 1, len(text) if end < 0 else end


def _is_behind_last_line(text: str, position: int) -> bool:
    """Return True if a position is the end of a text and follows the last line end."""
    return position == len(text) and (position == 0 or text.endswith("\n"))


def _lines(text: str, start: int = 0) -> Iterator[tuple[int, int]]:
    while start < len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        yield start, end
        start = end + 1


def _lines_with(text: str, literal: str, lines: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    return ((start, end) for start, end in lines if text.find(literal, start, end) >= 0)


def _chunks(text: str, start: int = 0, size: int = _CHUNK) -> Iterator[tuple[int, int]]:
    """Cut a text at line ends into chunks of at least `size` characters."""
    while start < len(text):
        end = text.find("\n", start + size - 1)
        end = len(text) if end < 0 else end + 1
        yield start, end
        start = end


def _occurrences(text: str, literals: tuple[str, ...], *, lines: bool = False) -> Iterator[tuple[int, int]]:
    """Yield the places of literals, or the lines that contain one; at the same place, the first one wins."""
    find, end_of_text = substring_finder(text, literals), len(text) + 1
    following = [find(text, each, 0) for each in literals]
    if len(literals) == 1:
        literal, at, start, end = literals[0], following[0], 0, 0
        while at >= 0:
            if lines:
                start, end = text.rfind("\n", end, at) + 1 or end, text.find("\n", at)
                if end < 0:
                    end = len(text)
            else:
                start, end = at, at + len(literal)
            yield start, end
            at = find(text, literal, end)
        return
    following = [end_of_text if at < 0 else at for at in following]
    while (at := min(following)) < end_of_text:
        start, end = _line_at(text, at) if lines else (at, at + len(literals[following.index(at)]))
        yield start, end
        for index, position in enumerate(following):
            if position < end:
                following[index] = end_of_text if (at := find(text, literals[index], end)) < 0 else at
