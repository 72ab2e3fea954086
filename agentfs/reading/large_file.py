"""Pages of a file that is too large to be loaded.

One pass over the file counts its lines and notes how many end before each block; the index is kept while the
file stays as it is. A page is then read from the block of its first line on, and no further than it needs.
"""

import codecs
import math
import time
from array import array
from bisect import bisect_left
from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

from agentfs.fs import OpenFile
from agentfs.limits import Limits
from agentfs.reading.page import LineSlice, drop_columns
from agentfs.results import Newline
from agentfs.text import UNKNOWN_8BIT, bom_of, codec_of, line_start

BLOCK = 256 * 1024  # bytes between two entries of the index, which fit a processor's cache
MAX_PAGE_CHARS = 1024 * 1024  # of a longer line only the start is loaded
_COUNTED_IN_BYTES = {"utf-8", "iso8859-1", UNKNOWN_8BIT}  # a byte 0A in these is always a line feed

DecoderState = tuple[bytes, int]


class LineIndex(NamedTuple):
    """What one pass over a file finds.

    `ends` has the number of lines that end before each block, `states` the state of the decoder there where
    lines cannot be counted in bytes. Without `exact` the pass ended early, and no more than `size` is read.
    """

    encoding: str
    bom: bytes
    newline: Newline | None
    total: int
    ended: bool
    size: int
    ends: "array[int]"
    states: list[DecoderState] | None
    exact: bool = True

    @property
    def end(self) -> str:
        r"""The character that ends lines: `\r` only in a file without `\n`."""
        return "\r" if self.newline == "\r" else "\n"

    def start_of(self, file: OpenFile, number: int) -> int:
        """Return the position of a line, or of the end of the file; only where lines are counted in bytes."""
        ahead = number - 1
        if ahead <= 0:
            return len(self.bom)
        block = max(bisect_left(self.ends, ahead) - 1, 0)
        position = len(self.bom) + block * BLOCK
        raw = file.read_at(position, BLOCK)
        return position + line_start(raw, number - self.ends[block], self.end.encode())

    def length_of(self, file: OpenFile, number: int) -> int:
        """Return the bytes of a line without the character that ends it; as for `start_of`."""
        after = self.start_of(file, number + 1) if number < self.total else self.size
        ended = number < self.total or self.ended
        return after - ended - self.start_of(file, number)

    def texts_from(self, file: OpenFile, number: int) -> Iterator[str]:
        """Decode the file piece by piece from a line on; UnicodeDecodeError if it is no longer the same."""
        stop = None if self.exact else self.size
        decoder = _decoder(self.encoding)
        if self.states is None:
            yield from _decode(file, decoder, self.start_of(file, number), stop)
            return
        ahead = number - 1
        block = max(bisect_left(self.ends, ahead) - 1, 0)
        decoder.setstate(self.states[block])
        ahead -= self.ends[block]
        for chunk in _decode(file, decoder, len(self.bom) + block * BLOCK, stop):
            found = chunk.count(self.end) if ahead else 0
            if found < ahead:
                ahead -= found
                continue
            text = chunk[line_start(chunk, ahead + 1, self.end) :]
            ahead = 0
            if text:
                yield text


def build_index(
    file: OpenFile, head: bytes, encoding: str | None = None, timeout: float = math.inf
) -> LineIndex | None:
    """Count the lines of a file, for `timeout` seconds at most: some files have no end.

    None is returned for a binary file, and for one that is not text in the encoding that was requested.
    """
    deadline = time.monotonic() + timeout
    if encoding is not None:
        bom, codec = codec_of(head, encoding)
        return _count(file, bom, codec, deadline)
    bom, marked = bom_of(head)
    index = None if marked is None else _count(file, bom, marked, deadline)
    if index is not None or b"\x00" in head:
        return index
    return _count(file, b"", "utf-8", deadline, fallback=UNKNOWN_8BIT)


def read_lines(
    file: OpenFile, index: LineIndex, first: int, count: int, limits: Limits, column: int = 1
) -> LineSlice:
    """Return up to `count` lines, as many as may fill a page; none where the file has shrunk."""
    end = index.end
    texts = index.texts_from(file, first)
    pieces: list[str] = []
    ends = size = used = 0
    skipped: int | None = 0
    complete = False
    if column > 1:
        skipped, texts = _skip_columns(texts, column - 1, end, index)
    for text in texts:
        pieces.append(text)
        size += len(text)
        ends += text.count(end)
        if ends >= count or size >= MAX_PAGE_CHARS:
            break
        used += _min_formatted_size(text, end, limits.line_chars, column)
        if used > limits.read_bytes:
            break
    else:
        complete = True
    text = "".join(pieces)
    bodies = text.split(end, count)
    rest = bodies.pop()
    ended, not_loaded = True, ""
    if column > 1 and not text and skipped is not None:
        return LineSlice(first, [""], end, ended=False)  # the last line is shorter, and nothing ends it
    if len(bodies) < count and rest and (complete or not ends):
        bodies, ended = [*bodies, rest], False
        not_loaded = "" if complete else _rest_of_line(file, index, first, skipped or 0, text, texts)
    if column > 1:
        bodies = [*bodies[:1], *drop_columns(bodies[1:], column, end, ended=ended)]
    return LineSlice(first, bodies, end, ended=ended, not_loaded=not_loaded)


def _min_formatted_size(text: str, end: str, most: int, column: int) -> int:
    r"""Return what the lines that begin and end in a piece take of a page at the least.

    Each has a line feed besides its characters, of which a `\r` may not count.
    """
    start = column - 1
    lines = [line[start : start + most] for line in text.split(end)[1:-1]]
    return len("".join(lines).encode()) + len(lines)


def _skip_columns(
    texts: Iterator[str], count: int, end: str, index: LineIndex
) -> tuple[int | None, Iterator[str]]:
    """Skip characters of the first line, but not its end; return their bytes (None: no line) and the rest."""
    skipped: int | None = None
    texts = _join_returns(texts)
    for text in texts:
        found = text.find(end)
        inside = min(count, found if found >= 0 else len(text))
        # The `\r` before a `\n` belongs to the line end.
        if 0 < inside == found and text[inside - 1] == "\r":
            inside -= 1
        skipped = (skipped or 0) + _size_in(text[:inside], index)
        count -= inside
        if count == 0 or found >= 0:
            return skipped, chain([text[inside:]] if inside < len(text) else [], texts)
    return skipped, iter(())


def _join_returns(texts: Iterator[str]) -> Iterator[str]:
    r"""Yield the same text, no piece of which ends between `\r` and `\n`."""
    pending = ""
    for piece in texts:
        text = pending + piece
        pending = "\r" if text.endswith("\r") else ""
        if text != pending:
            yield text.removesuffix("\r")
    if pending:
        yield pending


def _rest_of_line(
    file: OpenFile, index: LineIndex, line: int, skipped: int, loaded: str, texts: Iterator[str]
) -> str:
    """Return how much a line has beyond what is loaded of it."""
    if index.states is None:
        return f"{index.length_of(file, line) - skipped - _size_in(loaded, index)} bytes"
    length = 0
    for text in texts:
        position = text.find(index.end)
        length += len(text) if position < 0 else position
        if position >= 0:
            break
    return f"{length} characters"


def _size_in(text: str, index: LineIndex) -> int:
    return len(text.encode()) if index.encoding == "utf-8" else len(text)


def _count(
    file: OpenFile, bom: bytes, codec: str, deadline: float, *, fallback: str | None = None
) -> LineIndex | None:
    """Count the lines in a codec, or in `fallback` where the bytes are not UTF-8."""
    counter = _LineCounter()
    states: list[DecoderState] | None = None if codec in _COUNTED_IN_BYTES else []
    decoder = _decoder(codec) if states is not None or codec == "utf-8" else None
    buffer = bytearray(BLOCK)
    position, last, late = len(bom), False, False
    while not last and not late:
        got = file.read_into(position, memoryview(buffer))
        position += got
        late = time.monotonic() > deadline
        last = got < BLOCK
        block: bytes | bytearray = buffer[:got] if last else buffer
        try:
            if decoder is not None and states is not None:
                states.append(decoder.getstate())
                # In UTF-8 every line end is one byte, and no other character has it.
                block = decoder.decode(block, last).encode("utf-8", "surrogatepass")
            elif decoder is not None and (last or decoder.getstate()[0] or not block.isascii()):
                decoder.decode(block, last)
        except UnicodeError:
            if fallback is None:
                return None
            codec, decoder = fallback, None
        counter.add(block)
    return counter.index(codec, bom, position, states, exact=last)


class _LineCounter:
    """The line ends of a file, as far as it has been read."""

    def __init__(self) -> None:
        self.feeds = self.pairs = self.returns = self.last = 0
        self.feeds_before = array("Q")
        self.returns_before = array("Q")

    def add(self, block: bytes | bytearray) -> None:
        """Count the next block of a text in which a byte 0A is always a line feed."""
        self.feeds_before.append(self.feeds)
        self.returns_before.append(self.returns)
        if not block:
            return
        # The commonest byte of the three alone is counted in most files; finding none costs next to nothing.
        self.feeds += block.count(10)
        if block.find(13) >= 0:
            self.pairs += block.count(b"\r\n")
            self.returns += block.count(13)
        self.pairs += self.last == 13 and block[0] == 10
        self.last = block[-1]

    def index(
        self, codec: str, bom: bytes, size: int, states: list[DecoderState] | None, *, exact: bool
    ) -> LineIndex:
        """Return the index of what was counted."""
        if self.feeds:
            newline: Newline | None = "mixed" if self.pairs else "\n"
            newline = "\r\n" if self.pairs == self.feeds else newline
            end, count, before = 10, self.feeds, self.feeds_before
        else:
            newline = "\r" if self.returns else None
            end, count, before = 13, self.returns, self.returns_before
        # Unless it is the only one, the last line of a file that was not counted to its end is not counted.
        ended = self.last == end or (not exact and count > 0)
        total = count + (not ended and size > len(bom))
        return LineIndex(codec, bom, newline, total, ended, size, before, states, exact)


def _decoder(encoding: str) -> codecs.IncrementalDecoder:
    return codecs.getincrementaldecoder("latin-1" if encoding == UNKNOWN_8BIT else encoding)("strict")


def _decode(
    file: OpenFile, decoder: codecs.IncrementalDecoder, position: int, stop: int | None
) -> Iterator[str]:
    """Decode the file from a position on, to its end or only as far as `stop`."""
    size = max(BLOCK // 4, 1)  # most pages need no more
    last = False
    while not last and (stop is None or position < stop):
        raw = file.read_at(position, size if stop is None else min(size, stop - position))
        position += len(raw)
        last = len(raw) < size and (stop is None or position < stop)
        size = BLOCK
        if text := decoder.decode(raw, last):
            yield text
