"""Reading a file that is too large to be held: one pass counts its lines, another takes the page."""

import codecs
import os
from collections.abc import Iterator
from typing import NamedTuple

from agentfs.reading.page import Stretch
from agentfs.results import Newline
from agentfs.text import UNKNOWN_8BIT, bom_of, line_start

_CHUNK = 1024 * 1024
MOST_HELD = 4 * 1024 * 1024  # characters of one page; a longer line is not held whole


class Survey(NamedTuple):
    """What one pass over a file tells.

    Attributes:
        encoding: The codec of the text.
        bom: The byte order mark, or b"".
        total: Lines in the file.
        newline: The line end of the file, "mixed", or None.
    """

    encoding: str
    bom: bytes
    total: int
    newline: Newline | None

    @property
    def end(self) -> str:
        r"""The character that ends lines: `\r` only in a file without `\n`."""
        return "\r" if self.newline == "\r" else "\n"


def survey(fd: int, head: bytes) -> Survey | None:
    """Count the lines of a file.

    Args:
        fd: A descriptor of the file; its position is moved.
        head: The first 8 KiB of the file.

    Returns:
        What there is to know before a page is taken, or None for a binary file.
    """
    bom, marked = bom_of(head)
    if marked is not None:
        counted = _count(fd, marked, bom)
        if counted is not None:
            return counted
    if b"\x00" in head:
        return None
    return _count(fd, "utf-8", b"") or _count(fd, UNKNOWN_8BIT, b"")


def take(fd: int, told: Survey, first: int, count: int) -> Stretch:
    """Take lines out of a file, no more than one page can need.

    Args:
        fd: A descriptor of the file; its position is moved.
        told: What `survey` told of it.
        first: The number of the first line.
        count: How many lines at most.

    Returns:
        The lines; fewer than `count` when they are very long, none when the file has become shorter.
    """
    end = told.end
    ahead = first - 1
    pieces: list[str] = []
    held = ends = unheld = 0
    whole = False
    chunks = _chunks(fd, told.encoding, told.bom)
    for chunk in chunks:
        text = chunk
        if ahead:
            found = text.count(end)
            if found < ahead:
                ahead -= found
                continue
            text = text[line_start(text, ahead + 1, end) :]
            ahead = 0
        pieces.append(text)
        held += len(text)
        ends += text.count(end)
        if ends >= count or held >= MOST_HELD:
            break
    else:
        whole = True
    if ends == 0 and held >= MOST_HELD:
        unheld = _length_to(end, chunks)
    parts = "".join(pieces).split(end, count)
    rest = parts.pop()
    if len(parts) < count and rest and (whole or not ends):
        return Stretch(first, [*parts, rest], end, ended=False, unheld=unheld)
    return Stretch(first, parts, end)


def _count(fd: int, encoding: str, bom: bytes) -> Survey | None:
    feeds = pairs = returns = 0
    last = ""
    try:
        for text in _chunks(fd, encoding, bom):
            feeds += text.count("\n")
            if "\r" in text:
                pairs += text.count("\r\n")
                returns += text.count("\r")
            if last == "\r" and text[0] == "\n":
                pairs += 1
            last = text[-1]
    except UnicodeDecodeError:
        return None
    end = "\n" if feeds else "\r"
    total = (feeds or returns) + (last not in ("", end))
    return Survey(encoding, bom, total, _newline(feeds, pairs, returns))


def _newline(feeds: int, pairs: int, returns: int) -> Newline | None:
    if not feeds:
        return "\r" if returns else None
    if pairs == 0:
        return "\n"
    return "\r\n" if pairs == feeds else "mixed"


def _chunks(fd: int, encoding: str, bom: bytes) -> Iterator[str]:
    """Decode a file piece by piece; no piece is empty."""
    codec = "latin-1" if encoding == UNKNOWN_8BIT else encoding
    decoder = codecs.getincrementaldecoder(codec)("strict")
    os.lseek(fd, len(bom), os.SEEK_SET)
    while raw := os.read(fd, _CHUNK):
        if text := decoder.decode(raw):
            yield text
    if text := decoder.decode(b"", final=True):
        yield text


def _length_to(end: str, chunks: Iterator[str]) -> int:
    length = 0
    for text in chunks:
        position = text.find(end)
        if position >= 0:
            return length + position
        length += len(text)
    return length
