r"""The text of a file, in windows that are searched one after the other.

A small file is one window. A window of a large file ends at a line end. Windows overlap by the lines that are
shown around a match, and by the length of a match that no cut may hide. A line longer than a window is
searched up to its first match, and a multiline match longer than a quarter of a window may be missed.
"""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from agentfs.fs import OpenFile, incremental_decoder, join_returns, text_pieces
from agentfs.patterns.line_search import LineMatch
from agentfs.patterns.literals import SkipReason
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
    size: int,
    around: tuple[int, int],
    first_match: Callable[[str, int, int], tuple[int, int] | None],
    *,
    multiline: bool,
) -> Iterator[Window]:
    r"""Cut a text with `\n` for every line end into windows.

    Args:
        pieces: The text.
        size: The number of characters of the largest window.
        around: The numbers of lines before and after a match that the same window has.
        first_match: Finds the first match in a part of a line that begins between two positions.
        multiline: Whether a match may span lines.
    """
    overlap, (before, after) = size // _OVERLAP if multiline else 0, around
    source, text = _Source(pieces), ""
    start = context = dropped = 0
    number = 1
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
    file: OpenFile, encoding: str | None, check: Callable[[], None]
) -> Iterator[str] | SkipReason:
    r"""Return the text of a file in pieces with `\n` for every line end, or why it is not searched.

    The first MiB decides. After it, bytes that do not fit the encoding are replaced.

    Args:
        file: The file.
        encoding: As for `decode_content`.
        check: Called before each piece is read.
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
            return _lines_of(file, codec, len(bom), check, lone=lone)
    return "undecodable"


def _decoded(data: bytes, codec: str) -> str | None:
    """Return the text of the first bytes of a file, or None if they are not text in the codec."""
    try:
        return incremental_decoder(codec).decode(data, final=len(data) < _HEAD // 2)
    except UnicodeError:
        return None


def _lines_of(
    file: OpenFile, codec: str, position: int, check: Callable[[], None], *, lone: bool
) -> Iterator[str]:
    pieces = (text for _, text in text_pieces(file, codec, position, errors="replace"))
    for piece in join_returns(pieces):
        check()
        text = piece.replace("\r\n", "\n") if "\r" in piece else piece
        yield text.replace("\r", "\n") if lone else text
