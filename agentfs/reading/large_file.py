"""Read slices of lines from loaded texts and from files that are too large to load."""

import math
import time
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from agentfs.fs import OpenFile, join_returns, text_pieces
from agentfs.reading.slices import LineSlice
from agentfs.results import Newline
from agentfs.text import UNKNOWN_8BIT, bom_of, codec_of, line_start

MAX_PAGE_CHARS = 1024 * 1024  # the most characters of a long line that are loaded


class LineCount(NamedTuple):
    """Facts from one pass over a file. Unless `exact`, the pass stopped early, after `size` bytes."""

    encoding: str
    bom: bytes
    newline: Newline | None
    total: int
    size: int
    exact: bool

    @property
    def end(self) -> str:
        r"""The character that ends lines: `\n`, or `\r` in a file without `\n`."""
        return "\r" if self.newline == "\r" else "\n"

    def texts_from(self, file: OpenFile, number: int) -> Iterator[str]:
        """Decode the file from a line on, in pieces. Raises UnicodeDecodeError if it is no longer text."""
        ahead = number - 1
        for _, text in text_pieces(file, self.encoding, len(self.bom), math.inf if self.exact else self.size):
            found = text.count(self.end) if ahead else 0
            if found < ahead:
                ahead -= found
                continue
            rest = text[line_start(text, ahead + 1, self.end) :]
            ahead = 0
            if rest:
                yield rest


def count_large_file(
    file: OpenFile, head: bytes, encoding: str | None = None, timeout: float = math.inf
) -> LineCount | None:
    """Count the lines of a file for at most `timeout` seconds, because some files have no end.

    Returns None for a binary file, and for a file that is not text in the requested encoding.
    """
    deadline = time.monotonic() + timeout
    if encoding is not None:
        bom, codec = codec_of(head, encoding)
        return _count(file, bom, codec, deadline)
    bom, marked = bom_of(head)
    counted = None if marked is None else _count(file, bom, marked, deadline)
    if counted is not None or b"\x00" in head:
        return counted
    return _count(file, b"", "utf-8", deadline) or _count(file, b"", UNKNOWN_8BIT, deadline)


def read_lines(file: OpenFile, counted: LineCount, first: int, count: int, column: int = 1) -> LineSlice:
    """Return up to `count` lines, fewer if they fill a page, none if the file has shrunk."""
    texts = counted.texts_from(file, first)
    return slice_lines(texts, counted.end, first, count, column, MAX_PAGE_CHARS)


def slice_lines(
    texts: Iterator[str], end: str, first: int, count: int, column: int, most: float = math.inf
) -> LineSlice:
    r"""Return up to `count` lines of a text that comes in pieces.

    Args:
        texts: The pieces; the first begins with the first line.
        end: The character that ends lines.
        first: The number of the first line.
        count: The number of lines.
        column: The first character to return of each line, from 1. The `\r` of a `\r\n` always stays.
        most: After this many characters, no further piece is loaded.
    """
    if column > 1:
        texts = _skip_columns(texts, column - 1, end)
    pieces: list[str] = []
    ends = size = 0
    complete = False
    for text in texts:
        pieces.append(text)
        size += len(text)
        ends += text.count(end)
        if ends >= count or size >= most:
            break
    else:
        complete = True
    text = "".join(pieces)
    if column > 1 and not text:  # the last line ends before the column, and without a line end
        return LineSlice(first, [""], end, ended=False)
    bodies = text.split(end, count)
    rest = bodies.pop()
    ended, not_loaded = True, 0
    if len(bodies) < count and rest and (complete or not ends):
        bodies, ended = [*bodies, rest], False
        not_loaded = 0 if complete else _rest_of_line(texts, end)
    if column > 1:
        bodies = [*bodies[:1], *_drop_columns(bodies[1:], column, end, ended=ended)]
    return LineSlice(first, bodies, end, ended=ended, not_loaded=not_loaded)


def _drop_columns(bodies: Sequence[str], column: int, end: str, *, ended: bool) -> list[str]:
    start = column - 1
    rest = [body[start:] for body in bodies]
    if end == "\n":
        for index in range(len(bodies) if ended else len(bodies) - 1):
            if not rest[index] and bodies[index].endswith("\r"):
                rest[index] = "\r"
    return rest


def _skip_columns(texts: Iterator[str], count: int, end: str) -> Iterator[str]:
    """Skip up to `count` characters of the first line, but not its line end."""
    texts = join_returns(texts)
    for text in texts:
        found = text.find(end)
        inside = min(count, found if found >= 0 else len(text))
        # The `\r` before a `\n` belongs to the line end.
        if 0 < inside == found and text[inside - 1] == "\r":
            inside -= 1
        count -= inside
        if count == 0 or found >= 0:
            return chain([text[inside:]] if inside < len(text) else [], texts)
    return iter(())


def _rest_of_line(texts: Iterator[str], end: str) -> int:
    """Return the number of characters before the next line end."""
    length = 0
    for text in texts:
        position = text.find(end)
        if position >= 0:
            return length + position
        length += len(text)
    return length


def _count(file: OpenFile, bom: bytes, codec: str, deadline: float) -> LineCount | None:
    """Count lines until the deadline; return None if the file is not text in the codec."""
    feeds = pairs = returns = 0
    size, last, exact = len(bom), "", True
    try:
        for position, text in text_pieces(file, codec, len(bom)):
            size = position
            feeds += text.count("\n")
            if "\r" in text:
                pairs += text.count("\r\n")
                returns += text.count("\r")
            pairs += last == "\r" and text.startswith("\n")
            last = text[-1:] or last
            if time.monotonic() > deadline:
                exact = False
                break
    except UnicodeError:
        return None
    newline: Newline | None = "\r" if returns else None
    if feeds:
        newline = "\r\n" if pairs == feeds else "mixed" if pairs else "\n"
    # If counting stopped early, the last line may be incomplete. It only counts if there is no other.
    total = feeds or returns
    ended = last == ("\n" if feeds else "\r") or (not exact and total > 0)
    return LineCount(codec, bom, newline, total + (not ended and last != ""), size, exact)
