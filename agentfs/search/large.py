r"""The text of a file in blocks that end at a line end; a small file is one block.

Blocks without a required literal are not decoded. A line longer than a block is counted once, by its first
match, and then totals are not exact.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from agentfs.fs import OpenFile, incremental_decoder
from agentfs.patterns.line_search import LineMatch, LineSearch
from agentfs.patterns.prefilter import Prefilter
from agentfs.text import HEAD, UNKNOWN_8BIT, bom_of, codec_name, codec_of, declared_encoding

BLOCK_BYTES = 1024 * 1024
_OVERLAP = 4  # the last quarter of a part of a long line is repeated in the next part
_WIDE = ("utf-16", "utf-32")


@dataclass(frozen=True)
class TextBlock:
    r"""A part of a text with `\n` for every line end.

    Attributes:
        text: The text, with some lines around the part to search.
        start: Where the part to search begins.
        stop: Where it ends.
        number: The number of the line at the start of `text`.
        beyond: If `text` is a part of a line longer than a block: how many characters of the line come before
            and after it.
        has_more: `text` is a part of such a line, and another part follows.
    """

    text: str
    start: int
    stop: int
    number: int = 1
    beyond: tuple[int, int] | None = None
    has_more: bool = False


def hits_in(blocks: Iterator[TextBlock], search: LineSearch) -> Iterator[tuple[TextBlock, LineMatch]]:
    """Yield the line matches with their blocks."""
    found: tuple[TextBlock, LineMatch] | None = None  # the first match in a long line
    behind = 0  # characters of the line behind the block of this match
    for block in blocks:
        if block.beyond is None:
            for hit in search.hits(block.text[block.start : block.stop]):
                hit.start += block.start
                hit.end += block.start
                yield block, hit
            continue
        if found is None:
            found, behind = _first_hit(block, search), 0
        else:
            behind += block.beyond[1]
        if not block.has_more and found is not None:
            first, hit = found
            ahead, _ = first.beyond or (0, 0)
            yield replace(first, beyond=(ahead, behind)), hit
            found = None


def _first_hit(block: TextBlock, search: LineSearch) -> tuple[TextBlock, LineMatch] | None:
    """Return the first match in a part of a line that no end of the part can have made."""
    ahead, _ = block.beyond or (0, 0)
    for hit in search.hits(block.text):
        for start, end in hit.spans:
            if (start > block.start or not ahead) and (end < len(block.text) or not block.has_more):
                return block, LineMatch(0, len(block.text), [(start, end)], 1)
    return None


def codec_of_large(file: OpenFile, encoding: str | None) -> tuple[bytes, str] | None:
    """Return the byte order mark and the codec of a file; its start decides. None if it is binary.

    Args:
        file: The file.
        encoding: As for `decode_content`.

    Raises:
        UnicodeError: If the start is not text in the encoding.
    """
    head = file.read_at(0, BLOCK_BYTES)
    is_all = len(head) < BLOCK_BYTES
    bom, marked = bom_of(head)
    if encoding is not None and codec_name(encoding) != "utf-8":
        bom, codec = codec_of(head, encoding)
        incremental_decoder(codec).decode(head[len(bom) :], is_all)
        return bom, codec
    if marked is None and b"\0" in head[:HEAD]:
        return None
    declared = None if encoding is not None else declared_encoding(head.decode("latin-1"))
    # ASCII does not tell how the rest is encoded.
    codecs = [marked, declared, "utf-8"] if head.isascii() else [marked, "utf-8", declared]
    for codec in filter(None, codecs):
        try:
            incremental_decoder(codec).decode(head[len(bom) :], is_all)
        except UnicodeError:
            if encoding is not None:
                raise
        else:
            return bom, codec
    return b"", UNKNOWN_8BIT


@dataclass(frozen=True)
class BlockReader:
    """Reads the blocks of one file; after its start, bytes that do not fit the encoding are replaced.

    Attributes:
        file: The file.
        bom: Its byte order mark.
        codec: Its encoding.
        prefilter: Leaves out blocks.
        around: The numbers of lines before and after the part to search that each block has.
        check: Called before each block is read; it may raise to stop.
    """

    file: OpenFile
    bom: bytes
    codec: str
    prefilter: Prefilter
    around: tuple[int, int]
    check: Callable[[], None]

    def blocks(self) -> Iterator[TextBlock]:
        """Yield the blocks that may match, and all parts of lines that are longer than a block."""
        head = self._decoded(self.file.read_at(len(self.bom), BLOCK_BYTES))
        end = b"\r" if "\n" not in head and "\r" in head[:-1] else b"\n"
        before, after = self.around
        previous, number, ahead = b"", 1, 0
        waiting: TextBlock | None = None  # the lines that follow it are not read yet
        for data, repeated, is_part, has_more in self._parts(end):
            if waiting is not None:
                follows = "" if is_part else self._text(_first_lines(data, end, after), end)
                yield replace(waiting, text=waiting.text + follows)
                waiting = None
            if is_part:
                text = self._text(data, end).removesuffix("\n")
                shared = len(self._text(data[:repeated], end))
                yield TextBlock(text, 0, len(text), number, (ahead - shared, len(text) - shared), has_more)
                ahead = ahead + len(text) - shared if has_more else 0
            elif self.prefilter.may_match(data, len(data)):
                text, context = self._text(data, end), self._text(_last_lines(previous, end, before), end)
                start, lines = len(context), context.count("\n")
                waiting = TextBlock(context + text, start, start + len(text), number - lines)
            previous = b"" if is_part else data
            number += data.count(end)
        if waiting is not None:
            yield waiting

    def _parts(self, end: bytes) -> Iterator[tuple[bytes, int, bool, bool]]:
        """Yield bytes that end at a line end, or the parts of a line that is longer than a block.

        With them comes how many bytes the part before had too, whether they are a part, and whether another
        part of the line follows.
        """
        rest, repeated, is_inside = b"", 0, False
        for piece in self._pieces():
            rest += piece
            if is_inside and (stop := rest.find(end, repeated) + 1):
                yield rest[:stop], repeated, True, False
                rest, repeated, is_inside = rest[stop:], 0, False
            if not is_inside and (stop := rest.rfind(end) + 1):
                yield rest[:stop], 0, False, False
                rest = rest[stop:]
            if len(rest) > BLOCK_BYTES:
                stop = self._boundary(rest, len(rest) - 3)
                start = self._boundary(rest, stop - BLOCK_BYTES // _OVERLAP)
                yield rest[:stop], repeated, True, True
                rest, repeated, is_inside = rest[start:], stop - start, True
        if rest:
            yield rest, repeated, is_inside, False

    def _boundary(self, data: bytes, position: int) -> int:
        """Return the start of the character at a position."""
        while self.codec == "utf-8" and data[position] & 0xC0 == 0x80 and position > 0:
            position -= 1
        return position

    def _pieces(self) -> Iterator[bytes]:
        """Yield the bytes of the file; those in UTF-16 and UTF-32 as UTF-8."""
        position = len(self.bom)
        size = self.file.stat.st_size  # what is written meanwhile is not searched, or a search may not end
        decoder = incremental_decoder(self.codec, "replace") if self.codec.startswith(_WIDE) else None
        while position < size:
            self.check()
            data = self.file.read_at(position, min(BLOCK_BYTES, size - position))
            if not data:
                return
            position += len(data)
            yield data if decoder is None else decoder.decode(data).encode("utf-8", "surrogatepass")

    def _text(self, data: bytes, end: bytes) -> str:
        codec = "utf-8" if self.codec.startswith(_WIDE) else self.codec
        text = str(data, "latin-1" if codec == UNKNOWN_8BIT else codec, "replace")
        return text.replace("\r\n", "\n") if end == b"\n" else text.replace("\r", "\n")

    def _decoded(self, data: bytes) -> str:
        return incremental_decoder(self.codec, "replace").decode(data)


def _first_lines(data: bytes, end: bytes, count: int) -> bytes:
    position = 0
    for _ in range(count):
        position = data.find(end, position) + 1
        if not position:
            return data
    return data[:position]


def _last_lines(data: bytes, end: bytes, count: int) -> bytes:
    position = len(data)
    for _ in range(count):
        if not position:
            break
        position = data.rfind(end, 0, position - 1) + 1
    return data[position:]
