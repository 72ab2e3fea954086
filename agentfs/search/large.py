"""The text of a large file in blocks that end at a line end, and the matches in them.

A line longer than a block is searched in parts that overlap. It counts once, by its first match, and then
totals are not exact.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain

from agentfs.errors import EncodingError
from agentfs.fs import OpenFile, incremental_decoder, join_returns, text_pieces
from agentfs.patterns.line_search import LineMatch, LineSearch
from agentfs.text.decoding import candidates, codec_name, codec_of

LONGEST_LINE = 1024 * 1024  # characters; the text of a longer line comes in parts
_START = 1024 * 1024  # bytes that decide about the encoding
_OVERLAP = 4  # the last quarter of a part is repeated in the next part


@dataclass(frozen=True)
class TextBlock:
    r"""A part of a text with `\n` for every line end.

    Attributes:
        text: The text, with some lines around the part to search.
        start: Where the part to search begins.
        stop: Where it ends.
        number: The number of the line at the start of `text`.
        is_part: `text` is a part of a line longer than `LONGEST_LINE`.
        beyond: How many characters of that line come before and after it.
        has_more: Another part of that line follows.
    """

    text: str
    start: int
    stop: int
    number: int = 1
    is_part: bool = False
    beyond: tuple[int, int] = (0, 0)
    has_more: bool = False


def hits_in(blocks: Iterator[TextBlock], search: LineSearch) -> Iterator[tuple[TextBlock, LineMatch]]:
    """Yield the line matches with their blocks."""
    found: tuple[TextBlock, LineMatch] | None = None  # the first match in a long line
    for block in blocks:
        if not block.is_part:
            for hit in search.hits(block.text[block.start : block.stop]):
                hit.start += block.start
                hit.end += block.start
                yield block, hit
            continue
        found = found or _first_hit(block, search)
        if found is not None and not block.has_more:
            first, hit = found
            ahead, length = first.beyond[0], block.beyond[0] + len(block.text)
            yield replace(first, beyond=(ahead, length - ahead - len(first.text))), hit
            found = None


def _first_hit(block: TextBlock, search: LineSearch) -> tuple[TextBlock, LineMatch] | None:
    """Return the first match in a part of a line that no end of the part can have made."""
    for hit in search.hits(block.text):
        for start, end in hit.spans:
            if (start > 0 or not block.beyond[0]) and (end < len(block.text) or not block.has_more):
                return block, LineMatch(0, len(block.text), [(start, end)], 1)
        search.too_long += 1  # nobody knows whether the line has this match
    return None


def codec_of_large(file: OpenFile, encoding: str | None) -> tuple[bytes, str]:
    """Return the byte order mark and the codec of a file; its start decides.

    Args:
        file: The file.
        encoding: As for `decode_content`.

    Raises:
        AgentFSError: `binary`, or `encoding` if the start is not text in the encoding.
    """
    head = file.read_at(0, _START)
    detects = encoding is None or codec_name(encoding) == "utf-8"
    for bom, codec in candidates(head, encoding) if detects else [codec_of(head, encoding or "")]:
        with suppress(UnicodeError):
            incremental_decoder(codec).decode(head[len(bom) :], len(head) < _START)
            return bom, codec
    raise EncodingError("The file is not text in this encoding.")


def blocks_of(
    file: OpenFile, bom: bytes, codec: str, around: tuple[int, int], check: Callable[[], object]
) -> Iterator[TextBlock]:
    """Yield the blocks of a file; after its start, bytes that do not fit the encoding are replaced.

    Args:
        file: The file.
        bom: Its byte order mark.
        codec: Its encoding.
        around: The numbers of lines that a block has before and after the part to search.
        check: Called before each block is read; it may raise to stop.
    """
    before, after = around
    rest, context, number = "", "", 1
    ahead: int | None = None  # in a long line: how many of its characters come before `rest`
    for piece in chain(_pieces(file, bom, codec), [None]):
        check()
        rest += piece or ""
        is_last = piece is None
        if ahead is not None:
            stop = rest.find("\n") + 1 or len(rest) * is_last
            part = (rest[:stop] if stop else rest).removesuffix("\n")
            yield TextBlock(part, 0, len(part), number, True, (ahead, 0), has_more=not stop)
            if not stop:
                shift = len(rest) - len(rest) // _OVERLAP
                ahead, rest = ahead + shift, rest[shift:]
                continue
            ahead, rest, context, number = None, rest[stop:], "", number + 1
        complete = len(rest) if is_last else rest.rfind("\n") + 1
        stop = complete if is_last else start_of_lines(rest, complete, after)
        if not stop and len(rest) > LONGEST_LINE:
            stop = complete  # the lines after the block are too long to wait for
        if stop:
            text, start = context + rest[:complete], len(context)
            yield TextBlock(text, start, start + stop, number - context.count("\n"))
            context = text[start_of_lines(text, start + stop, before) : start + stop]
            number += rest.count("\n", 0, stop)
            rest = rest[stop:]
        if len(rest) > LONGEST_LINE and "\n" not in rest:
            ahead = 0


def _pieces(file: OpenFile, bom: bytes, codec: str) -> Iterator[str]:
    r"""Yield the text of a file with `\n` for every line end; the first piece tells the kind of line ends."""
    size = file.stat.st_size  # what is written meanwhile is not searched, or a search may not end
    ends = ""
    for text in join_returns(text for _, text in text_pieces(file, codec, len(bom), size, "replace")):
        ends = ends or ("\r" if "\r" in text and "\n" not in text else "\r\n")
        yield text.replace(ends, "\n") if "\r" in text else text


def start_of_lines(text: str, position: int, count: int) -> int:
    """Return the start of the line that is `count` lines before the line that starts at a position."""
    for _ in range(count):
        if not position:
            break
        position = text.rfind("\n", 0, position - 1) + 1
    return position
