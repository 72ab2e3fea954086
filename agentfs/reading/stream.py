"""Taking one page out of a file that is too large to be held."""

from collections.abc import Iterator
from itertools import chain

from agentfs.fs import OpenFile
from agentfs.limits import Limits
from agentfs.reading.line_index import LineIndex
from agentfs.reading.page import LineSlice, from_column

MOST_HELD = 1024 * 1024  # characters of one page; a longer line is not held whole


def take(
    file: OpenFile, index: LineIndex, first: int, count: int, limits: Limits, column: int = 1
) -> LineSlice:
    """Take lines out of a file, no more than one page can need.

    Args:
        file: The file.
        index: What is known of it.
        first: The number of the first line.
        count: How many lines at most.
        limits: What is taken fills a page of `read_bytes`, and no more is read than that needs.
        column: The first character of each line that is taken, from 1.

    Returns:
        The lines; fewer than `count` when they fill the page, none when the file has become shorter.

    Raises:
        UnicodeDecodeError: The file is no longer what it was.
    """
    end = index.end
    texts = index.texts_from(file, first)
    pieces: list[str] = []
    ends = held = filled = 0
    dropped: int | None = 0
    whole = False
    if column > 1:
        dropped, texts = _skip(texts, column - 1, end, index)
    for text in texts:
        pieces.append(text)
        held += len(text)
        ends += text.count(end)
        if ends >= count or held >= MOST_HELD:
            break
        filled += _least_shown(text, end, limits.line_chars, column)
        if filled > limits.read_bytes:
            break
    else:
        whole = True
    text = "".join(pieces)
    parts = text.split(end, count)
    rest = parts.pop()
    ended, unheld = True, ""
    if column > 1 and not text and dropped is not None:
        return LineSlice(first, [""], end, ended=False)  # the last line is shorter, and nothing ends it
    if len(parts) < count and rest and (whole or not ends):
        parts, ended = [*parts, rest], False
        unheld = "" if whole else _beyond(file, index, first, dropped or 0, text, texts)
    if column > 1:
        parts = [*parts[:1], *from_column(parts[1:], column, end, ended=ended)]
    return LineSlice(first, parts, end, ended=ended, unheld=unheld)


def _least_shown(text: str, end: str, most: int, column: int) -> int:
    r"""Return what the whole lines within a piece take of a page at the least.

    Each line has a digit, a mark and a line feed besides its characters, of which a `\r` may not count. The
    first and the last line may go on in another piece, and are left out.
    """
    start = column - 1
    lines = [line[start : start + most] for line in text.split(end)[1:-1]]
    return len("".join(lines).encode()) + 2 * len(lines)


def _skip(texts: Iterator[str], count: int, end: str, index: LineIndex) -> tuple[int | None, Iterator[str]]:
    """Drop characters of the line that begins here, but not its end.

    Returns:
        How many bytes they were, None where no line begins; and the rest of the text.
    """
    dropped: int | None = None
    texts = _pairs_whole(texts)
    for text in texts:
        found = text.find(end)
        inside = min(count, found if found >= 0 else len(text))
        # The `\r` before a `\n` belongs to the line end.
        if 0 < inside == found and text[inside - 1] == "\r":
            inside -= 1
        dropped = (dropped or 0) + _bytes_in(text[:inside], index)
        count -= inside
        if count == 0 or found >= 0:
            return dropped, chain([text[inside:]] if inside < len(text) else [], texts)
    return dropped, iter(())


def _pairs_whole(texts: Iterator[str]) -> Iterator[str]:
    r"""Give the same text, no piece of which ends between `\r` and `\n`."""
    held = ""
    for piece in texts:
        text = held + piece
        held = "\r" if text.endswith("\r") else ""
        if text != held:
            yield text.removesuffix("\r")
    if held:
        yield held


def _beyond(
    file: OpenFile, index: LineIndex, line: int, dropped: int, held: str, texts: Iterator[str]
) -> str:
    """Say how much a line has beyond what is held of it."""
    if index.states is None:
        return f"{index.length_of(file, line) - dropped - _bytes_in(held, index)} bytes"
    length = 0
    for text in texts:
        position = text.find(index.end)
        length += len(text) if position < 0 else position
        if position >= 0:
            break
    return f"{length} characters"


def _bytes_in(text: str, index: LineIndex) -> int:
    return len(text.encode()) if index.encoding == "utf-8" else len(text)
