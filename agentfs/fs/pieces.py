"""Decode the text of an open file piece by piece, for files that are too large to load."""

import codecs
import math
from collections.abc import Iterator

from agentfs.fs.file import OpenFile
from agentfs.text.decoding import UNKNOWN_8BIT

BLOCK = 256 * 1024  # bytes read at once, which fit into a processor's cache


def text_pieces(
    file: OpenFile, encoding: str, position: int, stop: float = math.inf, errors: str = "strict"
) -> Iterator[tuple[int, str]]:
    """Decode a file from a position on; yield each piece of text with the position after it."""
    decoder = incremental_decoder(encoding, errors)
    last = False
    while not last and position < stop:
        raw = file.read_at(position, int(min(BLOCK, stop - position)))
        position += len(raw)
        last = len(raw) < BLOCK and position < stop
        yield position, decoder.decode(raw, last)


def incremental_decoder(encoding: str, errors: str = "strict") -> codecs.IncrementalDecoder:
    """Return a decoder for a codec name of `agentfs.text`."""
    name = "latin-1" if encoding == UNKNOWN_8BIT else encoding
    return codecs.getincrementaldecoder(name)(errors)


def join_returns(texts: Iterator[str]) -> Iterator[str]:
    r"""Yield the text in pieces that do not split `\r\n`."""
    pending = ""
    for piece in texts:
        text = pending + piece
        pending = "\r" if text.endswith("\r") else ""
        if text != pending:
            yield text.removesuffix("\r")
    if pending:
        yield pending
