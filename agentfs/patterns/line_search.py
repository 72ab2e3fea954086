"""The search of one text: past most of it unseen, and line by line through the rest.

It works on text, and on the bytes of ASCII text, which is several times faster and means the same. A needle
of the plan, or its sweep, nominates lines; which of the two is cheaper depends on how often the needle stands
in the files, so both are timed on the first files that have it, and the cheaper one goes on.
"""

import re
import sys
import time
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Generic

from agentfs import call_context
from agentfs.patterns.compile import (
    LARGEST_FOLDED,
    MOST_FOLDED,
    Compiled,
    CompiledPattern,
    Found,
    Pattern,
    S,
    in_either_case,
)
from agentfs.patterns.line_matches import (
    Counts,
    LineMatch,
    all_lines,
    count_among,
    joined,
    lines_holding,
    lines_with,
    pieces,
    rest_of_line,
)
from agentfs.patterns.substring import finder

# A search without a timeout is five times cheaper. It is used where the steps cannot exceed this.
_FREE_STEPS = 50_000
_LINES_PER_LOOK = 64  # lines between two looks at the clock
# Both ways are timed on this much before one is chosen; a text that is larger is not used for it.
_TRIAL_BYTES = 48 * 1024
_LARGEST_TRIAL = 256 * 1024
_WARM = 1.25  # the sweep finds the text in the processor's cache, where the needles have brought it
_FEW = 2500  # characters for each match, where counting these one by one is cheaper than in bulk
_COUNTED_AT_ONCE = 256 * 1024  # of a larger text not all lines are held at once
_PIECE = 1024 * 1024  # a larger text is searched in pieces, so that what is held meanwhile is bounded
_MATCHES_PER_LOOK = 4096  # the same for the matches of one line
# The engine's timeout is processor time of the process, other threads' too, and it cannot be called off.
# So it is given out in slices, each twice the one before, and after each the clock and the caller are asked;
# no slice is longer than what is left until the deadline at the pace of the one before.
_FIRST_SLICE = 0.25
_SWEPT_PER_SECOND = 1_000_000  # a sweep that is slower is stuck on a line, and no longer trusted


@dataclass(slots=True)
class _Trial:
    """What the needles have gained over the sweep, on the first texts that have one.

    Attributes:
        size: What has been searched both ways.
        gain: The seconds that were less.
        over: Whether that is enough to know.
    """

    size: int = 0
    gain: float = 0.0
    over: bool = False

    def add(self, size: int, by_needle: float, by_sweep: float) -> None:
        self.size += size
        self.gain += _WARM * by_sweep - by_needle
        self.over = self.size >= _TRIAL_BYTES


class Search(Generic[S]):
    """The search for one pattern, under one deadline.

    Args:
        pattern: What is searched for.
        form: The pattern as it is compiled for the texts that will come.
        deadline: The `time.monotonic()` at which it ends.
        window: Characters behind the first match of a hit in which the spans of others are kept.

    Attributes:
        too_long: Lines, or with `multiline` texts, that were not searched, as matching them could take more
            memory than there is for a search.
    """

    def __init__(
        self, pattern: Pattern, form: CompiledPattern[S], deadline: float, *, window: int = sys.maxsize
    ) -> None:
        plan = pattern.plan
        self._form: CompiledPattern[S] = form
        self._sweep: Compiled[S] | None = form.sweep
        self._newline: S = form.newline
        self._exact = plan.exact
        self._ignore_case = pattern.ignore_case
        self._multiline = pattern.multiline
        self._whole = plan.whole
        self._never_empty = bool(plan.needles)
        self._rest_of_line: re.Pattern[S] | None = (
            rest_of_line(form.needles[0]) if plan.whole and len(form.needles) == 1 else None
        )
        self._folded_literal: Compiled[S] | None = (
            in_either_case(form.needles[0])
            if self._rest_of_line is not None and pattern.ignore_case and len(form.needles[0]) <= MOST_FOLDED
            else None
        )
        self._deadline = deadline
        self._window = window
        self._longest = sys.maxsize if pattern.longest is None else pattern.longest
        self.too_long = 0
        self._until_look = 0
        self._are_many = False  # whether the text before had the literal many times
        # One character is in too many lines to nominate them; it only tells files apart.
        self._nominates = bool(form.needles) and min(map(len, form.needles)) > 1
        # With n repeats of varying length the steps grow at most with the length to the power n + 1.
        repeats = plan.repeats
        self._free_length = 0 if repeats is None else int(_FREE_STEPS ** (1 / (repeats + 1)))
        self._trial = _Trial(over=not (self._nominates and form.sweep))

    def hits(self, text: S) -> Iterator[LineMatch]:
        r"""Find the lines that match.

        Args:
            text: The text of a file, with `\n` for every line end.

        Yields:
            Each line that matches, in order.

        Raises:
            TimeoutError: The deadline has passed; what was yielded before stands.
        """
        if self._multiline:
            return self._blocks(text) if self._is_bounded(text) else iter(())
        return self._hits_in(text) if len(text) <= _PIECE else self._in_pieces(text)

    def _in_pieces(self, text: S) -> Iterator[LineMatch]:
        for begin, stop in pieces(text, self._newline, _PIECE):
            for hit in self._hits_in(text[begin:stop]):
                hit.start += begin
                hit.end += begin
                yield hit

    def _is_bounded(self, text: S) -> bool:
        """Tell whether a line or text can be searched in bounded memory, and count those that cannot."""
        bounded = len(text) <= self._longest
        self.too_long += not bounded
        return bounded

    def _hits_in(self, text: S) -> Iterator[LineMatch]:
        if len(text) > self._longest:
            by_needle = self._form.needles and (not self._ignore_case or text.isascii())
            lines = self._nominated(text) if by_needle else all_lines(text, self._newline)
            return self._confirmed(text, lines)
        if self._is_literal(text):
            return self._gathered(text, self._places(text))
        if self._ignore_case and self._nominates and not text.isascii():
            return self._by_sweep(text)
        if not self._trial.over and len(text) <= _LARGEST_TRIAL:
            return self._timed(text)
        return self._lines_by_needle(text) if self._goes_by_needle else self._by_sweep(text)

    @property
    def _goes_by_needle(self) -> bool:
        return self._nominates and self._trial.gain >= 0

    def _is_literal(self, text: S) -> bool:
        return self._whole and not self._multiline and (not self._ignore_case or text.isascii())

    def _timed(self, text: S) -> Iterator[LineMatch]:
        """Search one of the first texts both ways, and see what each costs."""
        found: list[LineMatch] = []
        failed: TimeoutError | None = None
        began = time.perf_counter()
        try:
            for hit in self._lines_by_needle(text):
                found.append(hit)  # noqa: PERF402 - what was found before a timeout stands
        except TimeoutError as error:
            failed = error
        between = time.perf_counter()
        if failed is None:
            with suppress(TimeoutError):
                deque(self._by_sweep(text), maxlen=0)
        self._trial.add(len(text), between - began, time.perf_counter() - between)
        yield from found
        if failed is not None:
            raise failed

    def _lines_by_needle(self, text: S) -> Iterator[LineMatch]:
        if not self._exact or self._sweep is None:
            return self._confirmed(text, self._nominated(text))
        return self._among(text, list(self._nominated(text)))

    def _nominated(self, text: S) -> Iterator[tuple[int, int]]:
        folded = text.lower() if self._ignore_case else text
        lines = lines_with(folded, self._form.needles, self._newline)
        for needle in self._form.also:
            lines = lines_holding(folded, needle, lines)
        return lines

    def _among(self, text: S, lines: list[tuple[int, int]]) -> Iterator[LineMatch]:
        """Sweep nominated lines, which none of is empty, as if they were all of a text."""
        number = passed = 0
        for hit in self._by_sweep(joined(text, lines), quick=self._are_quick(lines)):
            start, end = lines[number]
            while passed + end - start < hit.start:
                passed += end - start + 1
                number += 1
                start, end = lines[number]
            yield LineMatch(start, end, hit.spans, hit.matches)

    def _are_quick(self, lines: list[tuple[int, int]]) -> bool:
        """Tell whether these lines are so few and short that searching them needs no timeout."""
        free = self._free_length
        return len(lines) <= _LINES_PER_LOOK and all([end - start <= free for start, end in lines])  # noqa: C419 - faster for a few

    def _by_sweep(self, text: S, *, quick: bool = False) -> Iterator[LineMatch]:
        if self._sweep is None:
            return self._confirmed(text, all_lines(text, self._newline))
        found = self._swept_matches(text, self._sweep, quick=quick)
        if self._exact:
            return self._gathered(text, (match.span() for match in found))
        return self._confirmed(text, self._swept(text, found))

    def _swept_matches(self, text: S, sweep: Compiled[S], *, quick: bool) -> Iterator[Found]:
        if quick:
            return sweep.finditer(text)
        seconds = min(self._left(), _FIRST_SLICE + len(text) / _SWEPT_PER_SECOND)
        return sweep.finditer(text, timeout=seconds, concurrent=True)

    def _patiently(self, expression: Compiled[S], text: S) -> Iterator[Found]:
        """Find all matches, for as long as there is time and somebody waits."""
        seconds, seen, pace = _FIRST_SLICE, 0, 1.0
        while True:
            began, used = time.monotonic(), time.process_time()
            timeout = min(seconds, self._left() * pace)
            found = expression.finditer(text, timeout=timeout, concurrent=True)
            try:
                for number, match in enumerate(found):
                    if number >= seen:
                        seen += 1
                        yield match
            except TimeoutError:
                seconds *= 2
                pace = (time.process_time() - used) / max(time.monotonic() - began, 1e-3)
            else:
                return

    def _confirmed(self, text: S, candidates: Iterator[tuple[int, int]]) -> Iterator[LineMatch]:
        expression, free = self._form.expression, self._free_length
        for start, end in candidates:
            line = text[start:end]
            if end - start > free:
                if not self._is_bounded(line):
                    continue
                yield from self._in_long_line(line, start, end)
                continue
            self._look_sometimes()
            spans = [match.span() for match in expression.finditer(line)]
            if spans:
                hit = LineMatch(start, end, spans, len(spans))
                if spans[-1][0] - spans[0][0] > self._window:
                    hit.spans = [span for span in spans if span[0] - spans[0][0] <= self._window]
                yield hit

    def _in_long_line(self, line: S, start: int, end: int) -> Iterator[LineMatch]:
        hit = LineMatch(start, end, [])
        try:
            for match in self._patiently(self._form.expression, line):
                hit.add(*match.span(), self._window)
        except TimeoutError:
            if hit.spans:  # what was found stands
                yield hit
            raise
        if hit.spans:
            yield hit

    def _gathered(self, text: S, places: Iterator[tuple[int, int]]) -> Iterator[LineMatch]:
        """Turn the matches of an exact sweep, or of needles, into hits."""
        newline, length, window = self._newline, len(text), self._window
        hit = LineMatch(-1, -1, [])
        try:
            for first, last in places:
                if first > hit.end:
                    self._look_sometimes()
                    if first == length and (first == 0 or text.endswith(newline)):
                        break  # after the last line end there is no line
                    if hit.spans:
                        yield hit
                    start = text.rfind(newline, 0, first) + 1
                    end = text.find(newline, first)
                    hit = LineMatch(start, length if end < 0 else end, [])
                elif not hit.matches % _MATCHES_PER_LOOK:
                    self._left()
                hit.add(first - hit.start, last - hit.start, window)
        except TimeoutError:
            self._sweep = None  # go on line by line from now on: alone, no line may take long
            found = hit if hit.spans else None
            try:
                for other in self._confirmed(text, all_lines(text, newline, max(hit.start, 0))):
                    found = None
                    yield other
            except TimeoutError:
                if found is not None:  # what was found stands, though it may not be all of its line
                    yield found
                raise
            return
        if hit.spans:
            yield hit

    def _swept(self, text: S, found: Iterator[Found]) -> Iterator[tuple[int, int]]:
        newline = self._newline
        done = 0  # what lies before it has been nominated
        try:
            for match in found:
                at = match.span()[0]
                if at < done:
                    continue
                if at == len(text) and (at == 0 or text.endswith(newline)):
                    return
                start = text.rfind(newline, 0, at) + 1
                end = text.find(newline, at)
                end = len(text) if end < 0 else end
                yield start, end
                done = end + 1
        except TimeoutError:
            self._sweep = None
            self._left()
            yield from all_lines(text, newline, done)

    def _places(self, text: S) -> Iterator[tuple[int, int]]:
        """Find the needles where the pattern is nothing but these: of two in one place, the first written."""
        if self._folded_literal is not None and len(text) <= LARGEST_FOLDED:
            yield from (match.span() for match in self._folded_literal.finditer(text))
            return
        folded = text.lower() if self._ignore_case else text
        needles, none = self._form.needles, len(text) + 1
        find = finder(folded, needles)
        if len(needles) == 1:
            needle, width = needles[0], len(needles[0])
            at = find(needle, 0)
            while at >= 0:
                yield at, at + width
                at = find(needle, at + width)
            return
        coming = [none if (at := find(needle, 0)) < 0 else at for needle in needles]
        while (at := min(coming)) < none:
            end = at + len(needles[coming.index(at)])
            yield at, end
            for index, place in enumerate(coming):
                if place < end:
                    further = find(needles[index], end)
                    coming[index] = none if further < 0 else further

    def count(self, text: S, tally: Counts) -> None:
        r"""Count what matches, where the matches themselves are not wanted.

        Args:
            text: The text of a file, with `\n` for every line end.
            tally: What the lines and matches are added to, as they are found.

        Raises:
            TimeoutError: The deadline has passed.
        """
        if self._multiline or len(text) <= _PIECE:
            self._count_in(text, tally)
            return
        for begin, stop in pieces(text, self._newline, _PIECE):
            self._count_in(text[begin:stop], tally)

    def _count_in(self, text: S, tally: Counts) -> None:
        if self._is_literal(text):
            if self._rest_of_line is not None and len(text) <= _COUNTED_AT_ONCE:
                self._count_literal(text, self._rest_of_line, tally)
            else:
                self._count_places(text, self._places(text), tally)
        elif (
            self._exact
            and self._never_empty
            and self._sweep is not None
            and self._trial.over
            and len(text) <= self._longest
        ):
            quick = False
            if self._goes_by_needle and not (self._ignore_case and not text.isascii()):
                lines = list(self._nominated(text))
                text, quick = joined(text, lines), self._are_quick(lines)
            self._count_swept(text, self._sweep, tally, quick=quick)
        else:
            for hit in self.hits(text):
                tally.add(hit, text.count(self._newline, hit.start, hit.end) if self._multiline else 0)

    def _count_literal(self, text: S, rest_of_line: re.Pattern[S], tally: Counts) -> None:
        """Count one literal, by each match where they are few, and in bulk where they are many."""
        most = 1 + len(text) // _FEW
        if not self._are_many:
            places = list(islice(self._places(text), most + 1))
            if len(places) <= most:
                self._count_places(text, iter(places), tally)
                return
        rests = rest_of_line.findall(text.lower() if self._ignore_case else text)
        self._are_many = len(rests) > most
        tally.hits += len(rests)
        tally.lines += len(rests)
        tally.matches += count_among(rests, self._form.needles[0])

    def _count_swept(self, text: S, sweep: Compiled[S], tally: Counts, *, quick: bool) -> None:
        before = tally.hits, tally.lines, tally.matches
        found = self._swept_matches(text, sweep, quick=quick)
        try:
            self._count_places(text, (match.span() for match in found), tally)
        except TimeoutError:
            self._sweep = None  # from now on line by line, this text from its beginning
            until_now = tally.hits, tally.lines, tally.matches
            tally.hits, tally.lines, tally.matches = before
            try:
                self.count(text, tally)
            except TimeoutError:
                if tally.matches < until_now[2]:
                    tally.hits, tally.lines, tally.matches = until_now
                raise

    def _count_places(self, text: S, places: Iterator[tuple[int, int]], tally: Counts) -> None:
        """Count matches none of which is empty or spans lines."""
        newline, end = self._newline, -1
        for first, _ in places:
            if not tally.matches % _MATCHES_PER_LOOK:
                self._left()
            if first > end:
                self._look_sometimes()
                tally.hits += 1
                tally.lines += 1
                end = text.find(newline, first)
                end = len(text) if end < 0 else end
            tally.matches += 1

    def _blocks(self, text: S) -> Iterator[LineMatch]:
        newline = self._newline
        hit: LineMatch | None = None
        failed: TimeoutError | None = None
        found = self._patiently(self._form.expression, text)
        while True:
            try:
                match = next(found, None)
            except TimeoutError as error:
                match, failed = None, error
            if match is None:
                break
            first, last = match.span()
            if first == len(text) and (first == 0 or text.endswith(newline)):
                break  # after the last line end there is no line
            if hit is None or first > hit.end:
                if hit is not None:
                    yield hit
                start = text.rfind(newline, 0, first) + 1
                hit = LineMatch(start, start, [])
            # A match that ends with a line end does not reach into the next line.
            inside = last - 1 if last > first and text.startswith(newline, last - 1) else last
            end = text.find(newline, max(inside, hit.end))
            hit.end = len(text) if end < 0 else end
            hit.add(first - hit.start, min(last, hit.end) - hit.start, self._window)
        if hit is not None:
            yield hit
        if failed is not None:
            raise failed

    def _left(self) -> float:
        call_context.step(0)
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left

    def _look_sometimes(self) -> None:
        self._until_look -= 1
        if self._until_look <= 0:
            self._until_look = _LINES_PER_LOOK
            self._left()
