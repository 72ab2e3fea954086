"""The search of one file: into one buffer, past most of it unseen, and hit by hit through the rest.

Most files have no match, so the way to "no" is what counts: the bytes are read into a buffer that is made
once, and `bytearray.find` looks for the plan's needles in place. Only a file that has one becomes text, and
only lines that have one are shown to the regular expression.
"""

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from agentfs.errors import BinaryError
from agentfs.search.pattern import Found, Pattern
from agentfs.text import decode, is_binary, lf_view

_FIRST_BUFFER = 256 * 1024
_HEAD = 8192
_UTF8_BOM = b"\xef\xbb\xbf"
_WIDE_BOM_STARTS = (0xFF, 0xFE, 0x00)  # how the marks of UTF-16 and UTF-32 begin
# A search without a timeout is five times cheaper. It is used where the steps cannot exceed this.
_FREE_STEPS = 50_000
_LINES_PER_LOOK = 64  # lines between two looks at the clock


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
    spans: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])


class Reader:
    """One buffer for the files of one search.

    Args:
        limit: The most bytes of a file that are searched.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._buffer = bytearray(min(_FIRST_BUFFER, limit + 1))
        self._view = memoryview(self._buffer)
        self._length = 0

    def read(self, fd: int) -> bool:
        """Read a whole file into the buffer.

        Args:
            fd: The file, at its beginning.

        Returns:
            False for a file over the limit.

        Raises:
            OSError: The system fails to read.
        """
        length = 0
        # Only a read of nothing is the end: file systems may give less than there is.
        while got := _read_into(fd, self._view[length:] if length else self._view):
            length += got
            if length == len(self._buffer):
                if length > self._limit:
                    return False
                self._grow(min(4 * length, self._limit + 1))
        self._length = length
        return True

    def _grow(self, size: int) -> None:
        self._view.release()
        self._buffer.extend(bytes(size - len(self._buffer)))
        self._view = memoryview(self._buffer)

    def is_binary(self) -> bool:
        """Tell whether the file is no text: a NUL in its first 8 KiB and no byte order mark."""
        return self._buffer.find(0, 0, min(self._length, _HEAD)) >= 0 and is_binary(
            bytes(self._buffer[: min(self._length, _HEAD)])
        )

    def may_match(self, pattern: Pattern) -> bool:
        """Tell whether the plan leaves a match possible.

        Args:
            pattern: What is searched for.

        Returns:
            False only when there is certainly no match.
        """
        needles = pattern.plan.needles
        if not needles or self._is_wide():
            return True
        buffer, length = self._buffer, self._length
        if not pattern.ignore_case:
            return any(buffer.find(needle.encode(), 0, length) >= 0 for needle in needles)
        content = bytes(self._view[:length])
        if not content.isascii() and any(each.encode() in content for each in pattern.plan.strangers):
            return True
        content = content.lower()
        return any(needle.encode() in content for needle in needles)

    def text(self) -> str | None:
        r"""Return the text of the file with `\n` for every line end, or None when it cannot be decoded."""
        if self._is_wide():
            try:
                return lf_view(decode(bytes(self._view[: self._length])).text)
            except BinaryError:
                return None
        start = len(_UTF8_BOM) if self._buffer.startswith(_UTF8_BOM, 0, self._length) else 0
        with self._view[start : self._length] as content:
            try:
                return lf_view(str(content, "utf-8"))
            except UnicodeDecodeError:
                return lf_view(str(content, "latin-1"))

    def _is_wide(self) -> bool:
        """Tell whether the file begins as UTF-16 or UTF-32 does; the rest is for `decode` to judge."""
        return (
            self._length >= 2
            and self._buffer[0] in _WIDE_BOM_STARTS
            and not is_binary(bytes(self._buffer[: min(self._length, 4)]) + b"\x00")
        )


def _read_into(fd: int, view: memoryview) -> int:
    if hasattr(os, "readv"):
        return os.readv(fd, (view,))
    content = os.read(fd, len(view))
    view[: len(content)] = content
    return len(content)


class Search:
    """The search for one pattern, under one deadline.

    Args:
        pattern: What is searched for.
        deadline: The `time.monotonic()` at which it ends.
    """

    def __init__(self, pattern: Pattern, deadline: float) -> None:
        self._pattern = pattern
        self._deadline = deadline
        self._until_look = 0
        repeats = pattern.plan.repeats
        # With n repeats of varying length the steps grow at most with the length to the power n + 1.
        # One character is in too many lines to nominate them; it only tells files apart.
        self._nominates = bool(pattern.plan.needles) and min(map(len, pattern.plan.needles)) > 1
        self._free_length = 0 if repeats is None else int(_FREE_STEPS ** (1 / (repeats + 1)))

    def hits(self, text: str) -> Iterator[Hit]:
        r"""Find the lines that match.

        Args:
            text: The text of a file, with `\n` for every line end.

        Yields:
            Each line that matches, in order.

        Raises:
            TimeoutError: The deadline has passed; what was yielded before stands.
        """
        if self._pattern.multiline:
            return self._blocks(text)
        if self._pattern.plan.whole and (text.isascii() or not self._pattern.ignore_case):
            return self._literal_lines(text)
        return self._lines(text)

    def _lines(self, text: str) -> Iterator[Hit]:
        for start, end in self._candidates(text):
            spans = self._spans(text[start:end])
            if spans:
                yield Hit(start, end, spans)

    def _spans(self, line: str) -> list[tuple[int, int]]:
        expression = self._pattern.expression
        if len(line) > self._free_length:
            found = expression.finditer(line, timeout=self._left(), concurrent=True)
        else:
            self._look_sometimes()
            found = expression.finditer(line)
        return [match.span() for match in found]

    def _candidates(self, text: str) -> Iterator[tuple[int, int]]:
        plan = self._pattern.plan
        if self._nominates and not self._pattern.ignore_case:
            return _lines_with(text, plan.needles)
        if self._nominates and text.isascii():
            return _lines_with(text.lower(), plan.needles)
        if self._pattern.sweep is not None:
            return self._swept(text)
        return _all_lines(text)

    def _swept(self, text: str) -> Iterator[tuple[int, int]]:
        sweep = self._pattern.sweep
        found: Iterator[Found] = (
            sweep.finditer(text, timeout=self._left(), concurrent=True) if sweep is not None else iter(())
        )
        done = 0  # what lies before it has been nominated
        for match in found:
            at = match.span()[0]
            if at < done:
                continue
            if at == len(text) and (at == 0 or text[-1] == "\n"):
                return
            start = text.rfind("\n", 0, at) + 1
            end = text.find("\n", at)
            end = len(text) if end < 0 else end
            yield start, end
            done = end + 1

    def _literal_lines(self, text: str) -> Iterator[Hit]:
        needle = self._pattern.plan.needles[0]
        folded = text.lower() if self._pattern.ignore_case else text
        for start, end in _lines_with(folded, (needle,)):
            self._look_sometimes()
            spans: list[tuple[int, int]] = []
            at = folded.find(needle, start, end)
            while at >= 0:
                spans.append((at - start, at - start + len(needle)))
                at = folded.find(needle, at + len(needle), end)
            yield Hit(start, end, spans)

    def _blocks(self, text: str) -> Iterator[Hit]:
        hit: Hit | None = None
        for match in self._pattern.expression.finditer(text, timeout=self._left(), concurrent=True):
            first, last = match.span()
            if first == len(text) and (first == 0 or text[-1] == "\n"):
                break  # after the last line end there is no line
            if hit is None or first > hit.end:
                if hit is not None:
                    yield hit
                start = text.rfind("\n", 0, first) + 1
                hit = Hit(start, start)
            # A match that ends with a line end does not reach into the next line.
            inside = last - 1 if last > first and text[last - 1] == "\n" else last
            end = text.find("\n", max(inside, hit.end))
            hit.end = len(text) if end < 0 else end
            hit.spans.append((first - hit.start, min(last, hit.end) - hit.start))
        if hit is not None:
            yield hit

    def _left(self) -> float:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left

    def _look_sometimes(self) -> None:
        self._until_look -= 1
        if self._until_look <= 0:
            self._until_look = _LINES_PER_LOOK
            self._left()


def _all_lines(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    while start < len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        yield start, end
        start = end + 1


def _lines_with(text: str, needles: tuple[str, ...]) -> Iterator[tuple[int, int]]:
    """Find the lines that have one of the needles."""
    coming = {needle: text.find(needle) for needle in needles}
    coming = {needle: at for needle, at in coming.items() if at >= 0}
    while coming:
        at = min(coming.values())
        start = text.rfind("\n", 0, at) + 1
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        yield start, end
        for needle, place in list(coming.items()):
            if place <= end:
                further = text.find(needle, end + 1)
                if further < 0:
                    del coming[needle]
                else:
                    coming[needle] = further
