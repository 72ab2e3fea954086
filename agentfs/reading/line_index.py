"""Where the lines of a large file are: one pass counts them, and is kept while the file stays as it is."""

import codecs
import math
import time
from array import array
from bisect import bisect_left
from collections.abc import Iterator
from typing import NamedTuple

from agentfs.fs import OpenFile
from agentfs.results import Newline
from agentfs.text import UNKNOWN_8BIT, bom_of, codec_of, line_start

BLOCK = 256 * 1024  # the distance of the places that are remembered, and what fits a processor's cache
_STEP = 8192
_IN_BYTES = {"utf-8", "iso8859-1", UNKNOWN_8BIT}  # a byte 0A in these is always a line feed

State = tuple[bytes, int]


class LineIndex(NamedTuple):
    """What one pass over a file tells.

    Attributes:
        encoding: The codec of the text.
        bom: The byte order mark, or b"".
        newline: The line end of the file, "mixed", or None.
        total: Lines in the file.
        ended: Whether the last of them has a line end.
        size: Bytes in the file.
        first: Where the first block begins, in bytes.
        ends: How many lines end before each block.
        states: For text that is not counted in bytes, the state of its decoder before each block.
        exact: Whether the pass came to the end of the file. If not, what lies behind is not there.
    """

    encoding: str
    bom: bytes
    newline: Newline | None
    total: int
    ended: bool
    size: int
    first: int
    ends: "array[int]"
    states: list[State] | None
    exact: bool = True

    @property
    def end(self) -> str:
        r"""The character that ends lines: `\r` only in a file without `\n`."""
        return "\r" if self.newline == "\r" else "\n"

    def start_of(self, file: OpenFile, number: int) -> int:
        """Find where a line begins; only for text that is counted in bytes.

        Args:
            file: The file.
            number: The line, from 1, or the one after the last.

        Returns:
            The position in bytes; behind the end when the file has become shorter.
        """
        ahead = number - 1
        if ahead <= 0:
            return len(self.bom)
        block = max(bisect_left(self.ends, ahead) - 1, 0)
        position = self.first + block * BLOCK
        ahead -= self.ends[block]
        raw = file.read_at(position, BLOCK)
        return position + _after(raw, self.end.encode(), ahead)

    def length_of(self, file: OpenFile, number: int) -> int:
        """Return the bytes of a line without the character that ends it; as for `start_of`."""
        behind = self.start_of(file, number + 1) if number < self.total else self.size
        ended = number < self.total or self.ended
        return behind - ended - self.start_of(file, number)

    def texts_from(self, file: OpenFile, number: int) -> Iterator[str]:
        """Decode the file piece by piece from the start of a line on.

        Args:
            file: The file.
            number: The line, from 1.

        Yields:
            Text, never empty.

        Raises:
            UnicodeDecodeError: The file is no longer what it was.
        """
        most = None if self.exact else self.size
        if self.states is None:
            yield from _decoded(file, _decoder(self.encoding), self.start_of(file, number), most)
            return
        ahead = number - 1
        block = max(bisect_left(self.ends, ahead) - 1, 0)
        decoder = _decoder(self.encoding)
        decoder.setstate(self.states[block])
        ahead -= self.ends[block]
        for chunk in _decoded(file, decoder, self.first + block * BLOCK, most):
            text = chunk
            if ahead:
                found = text.count(self.end)
                if found < ahead:
                    ahead -= found
                    continue
                text = text[line_start(text, ahead + 1, self.end) :]
                ahead = 0
            if text:
                yield text


def build_index(
    file: OpenFile, head: bytes, encoding: str | None = None, timeout: float = math.inf
) -> LineIndex | None:
    """Count the lines of a file.

    Args:
        file: The file.
        head: Its first 8 KiB.
        encoding: The codec to take, or None to tell it from the bytes.
        timeout: Seconds after which it is left at what was counted: some files have no end.

    Returns:
        What there is to know before a page is taken; None for a binary file, or one that is not text in the
        encoding that was asked for.
    """
    end = time.monotonic() + timeout
    if encoding is not None:
        bom, codec = codec_of(head, encoding)
        return _count(file, bom, codec, end)
    bom, marked = bom_of(head)
    counted = None if marked is None else _count(file, bom, marked, end)
    if counted is not None or b"\x00" in head:
        return counted
    return _count_bytes(file, b"", end)


def _count(file: OpenFile, bom: bytes, codec: str, end: float) -> LineIndex | None:
    if codec not in _IN_BYTES:
        return _count_text(file, bom, codec, end)
    counted = _count_bytes(file, bom, end)
    if codec in {"iso8859-1", UNKNOWN_8BIT}:
        return counted._replace(encoding=codec)
    return counted if counted.encoding == "utf-8" else None


def _count_bytes(file: OpenFile, bom: bytes, end: float) -> LineIndex:
    """Count in bytes, and tell UTF-8 from other text on the way.

    Nothing is decoded as long as all is ASCII, which one look at a block tells.
    """
    buffer = bytearray(BLOCK)
    position = len(bom)
    counts = _Counts()
    decoder: codecs.IncrementalDecoder | None = _decoder("utf-8")
    last = late = False
    while not last and not late:
        got = file.read_into(position, memoryview(buffer))
        position += got
        late = time.monotonic() > end
        if got < BLOCK:
            last, buffer = True, buffer[:got]
        counts.add_bytes(buffer)
        if decoder is not None and (last or decoder.getstate()[0] or not buffer.isascii()):
            try:
                decoder.decode(buffer, last)
            except UnicodeDecodeError:
                decoder = None
    if decoder is None:
        return counts.index(UNKNOWN_8BIT, b"", position, len(bom), None, exact=last)
    return counts.index("utf-8", bom, position, len(bom), None, exact=last)


def _count_text(file: OpenFile, bom: bytes, codec: str, end: float) -> LineIndex | None:
    counts = _Counts()
    decoder = _decoder(codec)
    states: list[State] = []
    position, last, late = len(bom), False, False
    try:
        while not last and not late:
            raw = file.read_at(position, BLOCK)
            position += len(raw)
            late = time.monotonic() > end
            last = len(raw) < BLOCK
            states.append(decoder.getstate())
            counts.add_text(decoder.decode(raw, last))
    except UnicodeError:
        return None
    return counts.index(codec, bom, position, len(bom), states, exact=last)


class _Counts:
    """The line ends of a file, as far as it has been looked at."""

    def __init__(self) -> None:
        self.feeds = self.pairs = self.returns = 0
        self.feeds_before = array("Q")
        self.returns_before = array("Q")
        self.last = ""

    def add_bytes(self, block: bytearray) -> None:
        """Count the next block of a text in which a byte 0A is always a line feed."""
        self._next_block()
        if not block:
            return
        # The commonest byte of the three alone is counted in most files; finding none costs next to nothing.
        self.feeds += block.count(10)
        if block.find(13) >= 0:
            self.pairs += block.count(b"\r\n")
            self.returns += block.count(13)
        self.pairs += self.last == "\r" and block[0] == 10
        self.last = chr(block[-1])

    def add_text(self, text: str) -> None:
        """Count the next block of any text."""
        self._next_block()
        if not text:
            return
        self.feeds += text.count("\n")
        if "\r" in text:
            self.pairs += text.count("\r\n")
            self.returns += text.count("\r")
        self.pairs += self.last == "\r" and text[0] == "\n"
        self.last = text[-1]

    def index(
        self, encoding: str, bom: bytes, size: int, first: int, states: list[State] | None, *, exact: bool
    ) -> LineIndex:
        """Put the index together."""
        end = "\n" if self.feeds else "\r"
        # Of a file that goes on, the line that was begun is not counted unless it is the only one.
        ended = self.last == end or (not exact and bool(self.feeds or self.returns))
        return LineIndex(
            encoding,
            bom,
            self._newline(),
            # Where the mark turned out to be text, there is text without any block that has it.
            (self.feeds or self.returns) + (not ended and size > len(bom)),
            ended,
            size,
            first,
            self.feeds_before if self.feeds else self.returns_before,
            states,
            exact,
        )

    def _next_block(self) -> None:
        self.feeds_before.append(self.feeds)
        self.returns_before.append(self.returns)

    def _newline(self) -> Newline | None:
        if not self.feeds:
            return "\r" if self.returns else None
        if self.pairs == 0:
            return "\n"
        return "\r\n" if self.pairs == self.feeds else "mixed"


def _decoder(encoding: str) -> codecs.IncrementalDecoder:
    return codecs.getincrementaldecoder("latin-1" if encoding == UNKNOWN_8BIT else encoding)("strict")


def _decoded(
    file: OpenFile, decoder: codecs.IncrementalDecoder, position: int, most: int | None
) -> Iterator[str]:
    """Decode the file from a position on, to its end or only as far as `most`."""
    size = max(BLOCK // 4, 1)  # most pages need no more
    last = False
    while not last and (most is None or position < most):
        raw = file.read_at(position, size if most is None else min(size, most - position))
        position += len(raw)
        last = len(raw) < size and (most is None or position < most)
        size = BLOCK
        if text := decoder.decode(raw, last):
            yield text


def _after(raw: bytes, end: bytes, ahead: int) -> int:
    """Return the position after a number of line ends."""
    position = 0
    while ahead:
        found = raw.count(end, position, position + _STEP)
        if found < ahead:
            if position >= len(raw):
                return len(raw)
            ahead -= found
            position += _STEP
            continue
        for _ in range(ahead):
            position = raw.index(end, position) + 1
        break
    return position
