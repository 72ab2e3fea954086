r"""The text of a file, in windows that are searched one after the other.

A small file is one window. A window of a large file ends at a line end. Windows overlap by the lines that are
shown around a match, and by the length of a match that no cut may hide. A line longer than a window is
searched up to its first match, and a multiline match longer than a quarter of a window may be missed.
"""

import sys
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from agentfs.fs import OpenFile, incremental_decoder, join_returns
from agentfs.fs import pieces as reading
from agentfs.patterns.line_search import LineMatch
from agentfs.patterns.literals import Prefilter, SkipReason, count_bytes
from agentfs.text import HEAD, UNKNOWN_8BIT, bom_of, codec_name, codec_of, declared_encoding

WINDOW = 1024 * 1024  # characters
_HEAD = 1024 * 1024  # bytes that decide about encoding and line ends
_OVERLAP = 4  # a match of up to one part in so many of a window is found, wherever it lies


@dataclass(slots=True)
class Window:
    """A piece of the text of a file, and the part of it to search.

    Attributes:
        text: The piece.
        start: Where the search begins; the text before it is context.
        stop: Where it ends: a match that begins here or later belongs to the next window.
        resume: Where the next window begins to search; set it behind the last match.
        number: The number of the line at the start of the text.
        context: Where the lines begin that may be shown before a match.
        dropped: How many characters of the previous window are not in this one.
        hit: The match, if the text is a part of a line that is longer than a window.
        beyond: How many characters of this line come before and after the text.
    """

    text: str
    start: int
    stop: int
    resume: int = 0
    number: int = 1
    context: int = 0
    dropped: int = 0
    hit: LineMatch | None = None
    beyond: tuple[int, int] = (0, 0)


def one_window(text: str) -> Iterator[Window]:
    """Return a text as one window."""
    return iter((Window(text, 0, len(text) + 1),))


class _Source:
    """The rest of a text that comes in pieces."""

    def __init__(self, pieces: Iterator[str]) -> None:
        self._pieces = pieces
        self.complete = False

    def extend(self, text: str, size: int) -> str:
        """Return a text with more of the source, until it is longer than `size`."""
        parts, length = [text], len(text)
        while length <= size and not self.complete:
            piece = next(self._pieces, None)
            self.complete = piece is None
            parts.append(piece or "")
            length += len(piece or "")
        return "".join(parts)


def windows(
    pieces: Iterator[str],
    number: int,
    size: int,
    around: tuple[int, int],
    first_match: Callable[[str, int, int], tuple[int, int] | None],
    *,
    multiline: bool,
) -> Iterator[Window]:
    r"""Cut a text with `\n` for every line end into windows.

    Args:
        pieces: The text.
        number: The number of its first line.
        size: The number of characters of the largest window.
        around: The numbers of lines before and after a match that the same window has.
        first_match: Finds the first match in a part of a line that begins between two positions.
        multiline: Whether a match may span lines.
    """
    overlap, (before, after) = size // _OVERLAP if multiline else 0, around
    source, text = _Source(pieces), ""
    start = context = 0
    dropped = sys.maxsize  # what was searched before is another part of the file
    while True:
        text = source.extend(text, size)
        length = len(text)
        if start >= length:
            return
        is_last = length <= size
        end = length if is_last else text.rfind("\n", start, size) + 1
        if not end:
            number += text.count("\n", 0, start)
            window, text = _long_line(source, text[start:], size, first_match)
            if window is not None:
                window.number = number
                yield window
            number, start, context, dropped = number + 1, 0, 0, length
            continue
        stop = length + 1 if is_last else _stop(text, start, end, after, overlap)
        window = Window(
            text[:end] if end < length else text, start, stop, min(stop, length), number, context, dropped
        )
        yield window
        start = context = window.resume
        dropped = max(0, start - (overlap or 1))
        if before:
            context = _lines_back(text, start, before, max(window.context, start - size // _OVERLAP))
            dropped = min(dropped, context)
        number += text.count("\n", 0, dropped)
        text = text[dropped:]
        start, context = start - dropped, context - dropped


def _long_line(
    source: _Source, text: str, size: int, first_match: Callable[[str, int, int], tuple[int, int] | None]
) -> tuple[Window | None, str]:
    """Search a line that is longer than a window, in parts that overlap.

    Returns the part with the first match, and the text after the line.
    """
    found: Window | None = None
    ahead = start = shown = 0
    while True:
        text = source.extend(text, size)
        end = text.find("\n", 0, size)
        is_last = end >= 0 or len(text) <= size
        part = text[: end if end >= 0 else size]
        stop = len(part) + 1 if is_last else size - size // _OVERLAP
        span = None if found is not None else first_match(part, start, stop)
        if span is not None:
            hit, shown = LineMatch(0, len(part), [span], 1), ahead + len(part)
            found = Window(part, 0, stop, dropped=sys.maxsize, hit=hit, beyond=(ahead, 0))
        if is_last:
            if found is not None:
                found.beyond = found.beyond[0], ahead + len(part) - shown
            return found, text[len(part) + 1 :]
        start = size // _OVERLAP  # before it is text that a lookbehind may need
        ahead += stop - start
        text = text[stop - start :]


def _stop(text: str, start: int, end: int, after: int, overlap: int) -> int:
    """Return the last line start with enough text behind it, or the end if that is not after `start`."""
    stop = _lines_back(text, end, after, start)
    if overlap:
        stop = min(stop, text.rfind("\n", start, max(start, end - overlap)) + 1)
    return stop if stop > start else end


def _lines_back(text: str, position: int, lines: int, least: int) -> int:
    """Return the start of the line so many lines before a line start, or of the first from `least` on."""
    for _ in range(lines):
        if position <= least:
            break
        begin = text.rfind("\n", 0, position - 1) + 1
        if begin < least:
            break
        position = begin
    return position


def text_of_large(
    file: OpenFile,
    encoding: str | None,
    prefilter: Prefilter | None,
    around: tuple[int, int],
    check: Callable[[], None],
) -> Iterator[tuple[int, Iterator[str]]] | SkipReason:
    r"""Return the parts of a file that may match, or why it is not searched.

    The first MiB decides. After it, bytes that do not fit the encoding are replaced.

    Args:
        file: The file.
        encoding: As for `decode_content`.
        prefilter: Leaves out parts of the file; None if matches may span lines.
        around: The numbers of lines before and after a match that its part has.
        check: Called before each block is read.

    Returns:
        The number of the first line of each part, and its text in pieces with `\n` for every line end.
    """
    head = file.read_at(0, _HEAD)
    bom, marked = bom_of(head)
    is_utf8 = encoding is None or codec_name(encoding) == "utf-8"
    codecs: list[str | None] = [marked]
    if encoding is not None and not is_utf8:
        bom, named = codec_of(head, encoding)
        codecs = [named]
    elif b"\0" in head[:HEAD]:
        if marked is None:
            return "binary"
    elif encoding is not None:
        codecs = [marked or "utf-8"]
    else:
        codecs = [marked or "utf-8", declared_encoding(head.decode("latin-1")), UNKNOWN_8BIT]
    for codec in codecs:
        text = None if codec is None else _decoded(head[len(bom) :], codec)
        if codec is not None and text is not None:
            lone = "\n" not in text and "\r" in text[:-1]
            if prefilter is not None and (
                lone or codec not in {"utf-8", UNKNOWN_8BIT} or not prefilter.is_useful
            ):
                prefilter.found_in_any_case = True  # it does not see this file
                prefilter = None
            parts = _Parts(file, len(bom), prefilter, around, check)
            return ((number, _text_of(blocks, codec, lone=lone)) for number, blocks in parts)
    return "undecodable"


def _decoded(data: bytes, codec: str) -> str | None:
    """Return the text of the first bytes of a file, or None if they are not text in the codec."""
    try:
        return incremental_decoder(codec).decode(data, final=len(data) < _HEAD // 2)
    except UnicodeError:
        return None


def _text_of(blocks: Iterator[bytes], codec: str, *, lone: bool) -> Iterator[str]:
    decoder = incremental_decoder(codec, "replace")
    texts = (decoder.decode(block, not block) for block in blocks)
    for piece in join_returns(texts):
        text = piece.replace("\r\n", "\n") if "\r" in piece else piece
        yield text.replace("\r", "\n") if lone else text


class _Parts:
    """The parts of a file that may match, found in its bytes. A part begins and ends at a line end.

    Iterate over the blocks of a part before the next part. The last block is empty.
    """

    def __init__(
        self,
        file: OpenFile,
        position: int,
        prefilter: Prefilter | None,
        around: tuple[int, int],
        check: Callable[[], None],
    ) -> None:
        self._file = file
        self._size = file.stat.st_size  # what is written meanwhile is not searched, or a search may not end
        self._position = position
        self._prefilter = prefilter
        self._before, self._after = around
        self._check = check
        self._number = 1  # of the line at the position
        self._kept = 0 if prefilter is None else prefilter.longest  # bytes kept of the block before
        self._data = bytearray(b"\n") * (self._kept + reading.BLOCK)
        self._length = 0
        self._complete = False

    def __iter__(self) -> Iterator[tuple[int, Iterator[bytes]]]:
        starts = deque([(self._position, 1)])  # of a line in each block, with its number
        while not self._complete:
            position, number = self._position, self._number
            if self._read():
                yield starts[0][1], self._blocks(starts[0][0])
                starts = deque([(self._position, self._number)])
                continue
            if self._number > number:
                starts.append((position + self._first_line(), number + 1))
            while len(starts) > 1 and starts[1][1] + self._before <= self._number:
                starts.popleft()

    def _blocks(self, start: int) -> Iterator[bytes]:
        """Yield the part that begins at a position and has the last block that was read."""
        while start < self._position and (
            block := self._file.read_at(start, min(reading.BLOCK, self._position - start))
        ):
            self._check()
            start += len(block)
            yield block
        lines = 0  # since the last block that may match
        while not self._complete:
            position, number = self._position, self._number
            if self._read():
                lines = 0
            elif lines >= self._after and self._number - number > self._before:
                # The lines after the first line end are enough to be shown before the next match.
                self._length = self._first_line()
                self._position, self._number, self._complete = position + self._length, number + 1, False
                self._data[: self._kept] = b"\n" * self._kept
                yield bytes(memoryview(self._data)[self._kept : self._kept + self._length])
                break
            else:
                lines += self._number - number
            yield bytes(memoryview(self._data)[self._kept : self._kept + self._length])
        yield b""

    def _read(self) -> bool:
        """Read the next block; return True if it may match."""
        self._check()
        data, kept = self._data, self._kept
        data[:kept] = data[self._length : self._length + kept]
        with memoryview(data)[kept : kept + max(self._size - self._position, 0)] as block:
            self._length = self._file.read_into(self._position, block)
        end = kept + self._length
        self._complete = end < len(data)
        self._position += self._length
        if self._prefilter is None:
            return True
        self._number += count_bytes(data, b"\n", kept, end)
        return self._prefilter.may_match(data, end)

    def _first_line(self) -> int:
        """Return where the first line begins in the block."""
        return self._data.index(b"\n", self._kept) - self._kept + 1
