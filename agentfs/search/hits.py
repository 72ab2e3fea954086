"""The search of one text: past most of it unseen, and line by line through the rest.

It works on text, and on the bytes of ASCII text, which is several times faster and means the same. A needle
of the plan, or its sweep, nominates lines; which of the two is cheaper depends on how often the needle stands
in the files, so both are timed on the first files that have it, and the cheaper one goes on.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Generic

from agentfs.calls import calling
from agentfs.search.pattern import Compiled, Form, Found, Pattern, S

# A search without a timeout is five times cheaper. It is used where the steps cannot exceed this.
_FREE_STEPS = 50_000
_LINES_PER_LOOK = 64  # lines between two looks at the clock
# Each way is timed on this much before one is chosen; a text that is larger is not used for it.
_TRIAL_BYTES = 48 * 1024
_LARGEST_TRIAL = 256 * 1024
# The engine's timeout is processor time of the process, other threads' too, and it cannot be called off.
# So it is given out in slices, each twice the one before, and after each the clock and the caller are asked.
_FIRST_SLICE = 0.25
_SWEPT_PER_SECOND = 1_000_000  # a sweep that is slower is stuck on a line, and no longer trusted


@dataclass(slots=True)
class Hit:
    """A line that matches, or with `multiline` the lines of matches that touch.

    Attributes:
        start: Where it begins in the text.
        end: Where it ends in the text, before the last line end.
        spans: Start and end of each match, relative to `start`.
    """

    start: int
    end: int
    spans: list[tuple[int, int]]


@dataclass(slots=True)
class Tally:
    """What has been counted in one file.

    Attributes:
        hits: Hits, as many as lines without `multiline`.
        lines: Lines in them.
        matches: Matches in them.
    """

    hits: int = 0
    lines: int = 0
    matches: int = 0

    def add(self, hit: Hit, line_ends: int) -> None:
        """Count a hit.

        Args:
            hit: The hit.
            line_ends: The line ends inside it.
        """
        self.hits += 1
        self.lines += 1 + line_ends
        self.matches += len(hit.spans)


class Search(Generic[S]):
    """The search for one pattern, under one deadline.

    Args:
        pattern: What is searched for.
        form: The pattern as it is compiled for the texts that will come.
        deadline: The `time.monotonic()` at which it ends.
    """

    def __init__(self, pattern: Pattern, form: Form[S], deadline: float) -> None:
        plan = pattern.plan
        self._form: Form[S] = form
        self._sweep: Compiled[S] | None = form.sweep
        self._newline: S = form.newline
        self._exact = plan.exact
        self._ignore_case = pattern.ignore_case
        self._multiline = pattern.multiline
        self._whole = plan.whole
        self._deadline = deadline
        self._until_look = 0
        # One character is in too many lines to nominate them; it only tells files apart.
        self._nominates = bool(form.needles) and min(map(len, form.needles)) > 1
        # With n repeats of varying length the steps grow at most with the length to the power n + 1.
        repeats = plan.repeats
        self._free_length = 0 if repeats is None else int(_FREE_STEPS ** (1 / (repeats + 1)))
        self._trial = {True: (0, 0.0), False: (0, 0.0)} if self._nominates and form.sweep else {}
        self._by_needle = self._nominates

    def hits(self, text: S) -> Iterator[Hit]:
        r"""Find the lines that match.

        Args:
            text: The text of a file, with `\n` for every line end.

        Yields:
            Each line that matches, in order.

        Raises:
            TimeoutError: The deadline has passed; what was yielded before stands.
        """
        if self._multiline:
            return self._blocks(text)
        if self._whole and (not self._ignore_case or text.isascii()):
            return self._literal_lines(text)
        if self._ignore_case and self._nominates and not text.isascii():
            return self._by_sweep(text)
        if self._trial and len(text) <= _LARGEST_TRIAL:
            return self._timed(text)
        return self._lines_by_needle(text) if self._by_needle else self._by_sweep(text)

    def _timed(self, text: S) -> Iterator[Hit]:
        """Search one of the first texts, and see what it costs."""
        by_needle = self._trial[True][0] <= self._trial[False][0]
        began = time.perf_counter()
        found: list[Hit] = []
        failed: TimeoutError | None = None
        try:
            for hit in self._lines_by_needle(text) if by_needle else self._by_sweep(text):
                found.append(hit)  # noqa: PERF402 - what was found before a timeout stands
        except TimeoutError as error:
            failed = error
        size, seconds = self._trial[by_needle]
        self._trial[by_needle] = (size + len(text), seconds + time.perf_counter() - began)
        if all(size >= _TRIAL_BYTES for size, _ in self._trial.values()):
            cost = {way: seconds / size for way, (size, seconds) in self._trial.items()}
            self._by_needle = cost[True] <= cost[False]
            self._trial.clear()
        yield from found
        if failed is not None:
            raise failed

    def _lines_by_needle(self, text: S) -> Iterator[Hit]:
        folded = text.lower() if self._ignore_case else text
        return self._confirmed(text, _lines_with(folded, self._form.needles, self._newline))

    def _by_sweep(self, text: S) -> Iterator[Hit]:
        if self._sweep is None:
            return self._confirmed(text, _all_lines(text, self._newline))
        seconds = min(self._left(), _FIRST_SLICE + len(text) / _SWEPT_PER_SECOND)
        found = self._sweep.finditer(text, timeout=seconds, concurrent=True)
        if self._exact:
            return self._gathered(text, found)
        return self._confirmed(text, self._swept(text, found))

    def _patiently(self, expression: Compiled[S], text: S) -> Iterator[Found]:
        """Find all matches, for as long as there is time and somebody waits."""
        seconds, seen = _FIRST_SLICE, 0
        while True:
            found = expression.finditer(text, timeout=min(seconds, self._left()), concurrent=True)
            try:
                for number, match in enumerate(found):
                    if number >= seen:
                        seen += 1
                        yield match
            except TimeoutError:
                seconds *= 2
            else:
                return

    def _confirmed(self, text: S, candidates: Iterator[tuple[int, int]]) -> Iterator[Hit]:
        expression, free = self._form.expression, self._free_length
        for start, end in candidates:
            line = text[start:end]
            if end - start > free:
                yield from self._in_long_line(line, start, end)
                continue
            self._look_sometimes()
            spans = [match.span() for match in expression.finditer(line)]
            if spans:
                yield Hit(start, end, spans)

    def _in_long_line(self, line: S, start: int, end: int) -> Iterator[Hit]:
        hit = Hit(start, end, [])
        try:
            hit.spans.extend(match.span() for match in self._patiently(self._form.expression, line))
        except TimeoutError:
            if hit.spans:  # what was found stands
                yield hit
            raise
        if hit.spans:
            yield hit

    def _gathered(self, text: S, found: Iterator[Found]) -> Iterator[Hit]:
        """Turn the matches of an exact sweep into hits."""
        newline, length = self._newline, len(text)
        start = end = -1
        spans: list[tuple[int, int]] = []
        try:
            for match in found:
                first, last = match.span()
                if first > end:
                    if first == length and (first == 0 or text.endswith(newline)):
                        break  # after the last line end there is no line
                    if spans:
                        yield Hit(start, end, spans)
                    start = text.rfind(newline, 0, first) + 1
                    end = text.find(newline, first)
                    end = length if end < 0 else end
                    spans = []
                spans.append((first - start, last - start))
        except TimeoutError:
            self._sweep = None  # go on line by line from now on: alone, no line may take long
            if time.monotonic() >= self._deadline:
                if spans:
                    yield Hit(start, end, spans)
                raise
            yield from self._confirmed(text, _all_lines(text, newline, max(start, 0)))
            return
        if spans:
            yield Hit(start, end, spans)

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
            yield from _all_lines(text, newline, done)

    def _literal_lines(self, text: S) -> Iterator[Hit]:
        needle, newline = self._form.needles[0], self._newline
        width = len(needle)
        folded = text.lower() if self._ignore_case else text
        at = folded.find(needle)
        while at >= 0:
            self._look_sometimes()
            start = text.rfind(newline, 0, at) + 1
            end = text.find(newline, at)
            end = len(text) if end < 0 else end
            spans: list[tuple[int, int]] = []
            while 0 <= at < end:
                spans.append((at - start, at - start + width))
                at = folded.find(needle, at + width)
            yield Hit(start, end, spans)

    def count(self, text: S, tally: Tally) -> None:
        r"""Count what matches, where the matches themselves are not wanted.

        Args:
            text: The text of a file, with `\n` for every line end.
            tally: What the lines and matches are added to, as they are found.

        Raises:
            TimeoutError: The deadline has passed.
        """
        if self._whole and not self._multiline and (not self._ignore_case or text.isascii()):
            needle, newline = self._form.needles[0], self._newline
            folded = text.lower() if self._ignore_case else text
            at = folded.find(needle)
            while at >= 0:
                tally.matches += 1
                self._look_sometimes()
                further = folded.find(needle, at + len(needle))
                if further < 0 or folded.find(newline, at, further) >= 0:
                    tally.hits += 1
                    tally.lines += 1
                at = further
            return
        for hit in self.hits(text):
            tally.add(hit, text.count(self._newline, hit.start, hit.end) if self._multiline else 0)

    def _blocks(self, text: S) -> Iterator[Hit]:
        newline = self._newline
        hit: Hit | None = None
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
                hit = Hit(start, start, [])
            # A match that ends with a line end does not reach into the next line.
            inside = last - 1 if last > first and text.startswith(newline, last - 1) else last
            end = text.find(newline, max(inside, hit.end))
            hit.end = len(text) if end < 0 else end
            hit.spans.append((first - hit.start, min(last, hit.end) - hit.start))
        if hit is not None:
            yield hit
        if failed is not None:
            raise failed

    def _left(self) -> float:
        calling.step(0)
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left

    def _look_sometimes(self) -> None:
        self._until_look -= 1
        if self._until_look <= 0:
            self._until_look = _LINES_PER_LOOK
            self._left()


def as_text(text: str | bytes) -> str:
    """Return the text, or ASCII bytes as text.

    Args:
        text: What was searched.
    """
    return text if isinstance(text, str) else str(text, "ascii")


def lines_within(text: str | bytes, hit: Hit) -> int:
    """Count the line ends inside a hit.

    Args:
        text: What was searched.
        hit: What was found in it.
    """
    if isinstance(text, str):
        return text.count("\n", hit.start, hit.end)
    return text.count(b"\n", hit.start, hit.end)


def _all_lines(text: S, newline: S, start: int = 0) -> Iterator[tuple[int, int]]:
    while start < len(text):
        end = text.find(newline, start)
        end = len(text) if end < 0 else end
        yield start, end
        start = end + 1


def _lines_with(text: S, needles: tuple[S, ...], newline: S) -> Iterator[tuple[int, int]]:
    """Find the lines that have one of the needles."""
    coming = {needle: text.find(needle) for needle in needles}
    coming = {needle: at for needle, at in coming.items() if at >= 0}
    while coming:
        at = min(coming.values())
        start = text.rfind(newline, 0, at) + 1
        end = text.find(newline, at)
        end = len(text) if end < 0 else end
        yield start, end
        for needle, place in list(coming.items()):
            if place <= end:
                further = text.find(needle, end + 1)
                if further < 0:
                    del coming[needle]
                else:
                    coming[needle] = further
