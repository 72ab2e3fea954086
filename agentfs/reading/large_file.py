"""Read slices of lines from files that are too large to load."""

import math
import time
from collections.abc import Iterator

from agentfs.fs import OpenFile, revision_of_stat, text_pieces
from agentfs.reading.page import FileInfo
from agentfs.reading.slices import LineSlice, slice_lines
from agentfs.results import Newline
from agentfs.text.decoding import candidates, codec_of, not_text_in
from agentfs.text.lines import line_start

MAX_PAGE_CHARS = 1024 * 1024  # the most characters of a long line that are loaded


def count_large_file(
    file: OpenFile, head: bytes, encoding: str | None = None, timeout: float = math.inf
) -> FileInfo:
    """Count the lines of a file for at most `timeout` seconds, because some files have no end.

    Unless the count is exact, `size` is the number of bytes that were counted.

    Raises:
        AgentFSError: `binary`, or `encoding` if the file is not text in the requested encoding.
    """
    deadline = time.monotonic() + timeout
    for bom, codec in candidates(head) if encoding is None else [codec_of(head, encoding)]:
        if (counted := _count(file, bom, codec, deadline)) is not None:
            return counted
    raise not_text_in(encoding or "")


def read_lines(file: OpenFile, counted: FileInfo, first: int, count: int, column: int = 1) -> LineSlice:
    """Return up to `count` lines, fewer if they fill a page, none if the file has shrunk."""
    end = "\r" if counted.newline == "\r" else "\n"
    return slice_lines(_texts_from(file, counted, first, end), end, first, count, column, MAX_PAGE_CHARS)


def _texts_from(file: OpenFile, counted: FileInfo, number: int, end: str) -> Iterator[str]:
    """Decode the file from a line on, in pieces. Raises UnicodeDecodeError if it is no longer text."""
    ahead, stop = number - 1, math.inf if counted.exact else counted.size
    for _, text in text_pieces(file, counted.encoding or "", len(counted.bom), stop):
        found = text.count(end) if ahead else 0
        if found < ahead:
            ahead -= found
            continue
        rest = text[line_start(text, ahead + 1, end) :]
        ahead = 0
        if rest:
            yield rest


def _count(file: OpenFile, bom: bytes, codec: str, deadline: float) -> FileInfo | None:
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
    total += not ended and last != ""
    return FileInfo(file.path, revision_of_stat(file.stat), size, total, codec, newline, bom, exact)
