"""Pages of a file that is too large to be loaded: one pass counts its lines, another reads up to the page."""

import codecs
import math
import time
from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

from agentfs.fs import OpenFile
from agentfs.reading.page import LineSlice, drop_columns
from agentfs.results import Newline
from agentfs.text import UNKNOWN_8BIT, bom_of, codec_of, line_start

BLOCK = 256 * 1024  # bytes read at once, which fit a processor's cache
MAX_PAGE_CHARS = 1024 * 1024  # of a longer line only the start is loaded


class LineCount(NamedTuple):
    """What one pass over a file finds; unless `exact` it ended early, and no more than `size` is read."""

    encoding: str
    bom: bytes
    newline: Newline | None
    total: int
    size: int
    exact: bool

    @property
    def end(self) -> str:
        r"""The character that ends lines: `\r` only in a file without `\n`."""
        return "\r" if self.newline == "\r" else "\n"

    def texts_from(self, file: OpenFile, number: int) -> Iterator[str]:
        """Decode the file piece by piece from a line on; UnicodeDecodeError if it is no longer the same."""
        ahead = number - 1
        for _, text in _decode(file, self.encoding, len(self.bom), math.inf if self.exact else self.size):
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
    """Count the lines of a file, for `timeout` seconds at most: some files have no end.

    None is returned for a binary file, and for one that is not text in the encoding that was requested.
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
    """Return up to `count` lines, as many as may fill a page; none if the file has shrunk."""
    end = counted.end
    texts = counted.texts_from(file, first)
    if column > 1:
        texts = _skip_columns(texts, column - 1, end)
    pieces: list[str] = []
    ends = size = 0
    complete = False
    for text in texts:
        pieces.append(text)
        size += len(text)
        ends += text.count(end)
        if ends >= count or size >= MAX_PAGE_CHARS:
            break
    else:
        complete = True
    text = "".join(pieces)
    if column > 1 and not text:  # the last line is shorter, and nothing ends it
        return LineSlice(first, [""], end, ended=False)
    bodies = text.split(end, count)
    rest = bodies.pop()
    ended, not_loaded = True, 0
    if len(bodies) < count and rest and (complete or not ends):
        bodies, ended = [*bodies, rest], False
        not_loaded = 0 if complete else _rest_of_line(texts, end)
    if column > 1:
        bodies = [*bodies[:1], *drop_columns(bodies[1:], column, end, ended=ended)]
    return LineSlice(first, bodies, end, ended=ended, not_loaded=not_loaded)


def _skip_columns(texts: Iterator[str], count: int, end: str) -> Iterator[str]:
    """Skip characters of the first line, but not its end."""
    texts = _join_returns(texts)
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


def _rest_of_line(texts: Iterator[str], end: str) -> int:
    """Return how many characters a line has beyond those that are loaded."""
    length = 0
    for text in texts:
        position = text.find(end)
        if position >= 0:
            return length + position
        length += len(text)
    return length


def _count(file: OpenFile, bom: bytes, codec: str, deadline: float) -> LineCount | None:
    """Count the lines until the deadline; None if the file is not text in the codec."""
    feeds = pairs = returns = 0
    size, last, exact = len(bom), "", True
    try:
        for position, text in _decode(file, codec, len(bom)):
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
    # Unless it is the only one, the last line of a file that was not counted to its end is not counted.
    total = feeds or returns
    ended = last == ("\n" if feeds else "\r") or (not exact and total > 0)
    return LineCount(codec, bom, newline, total + (not ended and last != ""), size, exact)


def _decode(
    file: OpenFile, encoding: str, position: int, stop: float = math.inf
) -> Iterator[tuple[int, str]]:
    """Decode the file from a position on, piece by piece; yield the position behind each and its text."""
    name = "latin-1" if encoding == UNKNOWN_8BIT else encoding
    decoder = codecs.getincrementaldecoder(name)("strict")
    last = False
    while not last and position < stop:
        raw = file.read_at(position, int(min(BLOCK, stop - position)))
        position += len(raw)
        last = len(raw) < BLOCK and position < stop
        yield position, decoder.decode(raw, last)
