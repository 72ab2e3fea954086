"""Bytes to text and back, without losing a byte."""

import codecs
from typing import NamedTuple

from agentfs.errors import BinaryError, EncodingError, InvalidArgumentError
from agentfs.messages import Message, ParameterName
from agentfs.text.lines import count_lines
from agentfs.visible import literal

UNKNOWN_8BIT = "unknown-8bit"
HEAD = 8192  # the bytes at the start of a file that tell whether it is binary

# The longer marks first: the one of UTF-32 begins with the one of UTF-16.
_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# These codecs write a mark of their own, or read one as no text; without a mark they mean the plain form.
_PLAIN = {"utf-8-sig": "utf-8", "utf-16": "utf-16-le", "utf-32": "utf-32-le"}


class Decoded(NamedTuple):
    """The text of a file and what it takes to write it again.

    Attributes:
        text: The exact text: line ends included, the byte order mark not.
        encoding: The codec, such as "utf-8" or "utf-16-le"; "unknown-8bit" where each byte stands for the
            character of the same number.
        bom: The byte order mark at the start of the file, or b"".
    """

    text: str
    encoding: str
    bom: bytes

    def encode(self, text: str) -> bytes:
        """Encode a text as this file is encoded.

        Args:
            text: The text, line ends as they shall be.

        Returns:
            The bytes, without a byte order mark.

        Raises:
            EncodingError: `encoding`: the file's encoding cannot hold a character.
        """
        return encode(text, self.encoding)


def encode(text: str, encoding: str) -> bytes:
    """Encode a text strictly.

    Args:
        text: The text.
        encoding: A codec's name, or "unknown-8bit".

    Returns:
        The bytes, without a byte order mark.

    Raises:
        EncodingError: `encoding`: the codec cannot hold a character; the message names it and its line.
    """
    try:
        return text.encode("latin-1" if encoding == UNKNOWN_8BIT else encoding)
    except UnicodeEncodeError as error:
        character = text[error.start]
        line = count_lines(text[: error.start] + "x")
        shown = f"{literal(character)} (U+{ord(character):04X})"
        raise EncodingError(
            f"The encoding {encoding} cannot hold the character {shown} in line {line} of the text.",
            hint="Use only characters that the file's encoding has, or escapes of the file's own language.",
            details={"encoding": encoding, "character": f"U+{ord(character):04X}", "line": line},
        ) from None


def decode(data: bytes, encoding: str | None = None) -> Decoded:
    """Decode the whole content of a file: by its byte order mark, as UTF-8, as `encoding`, else byte by byte.

    Args:
        data: The bytes of the whole file.
        encoding: The codec to take where there is no mark and the bytes are not UTF-8, or None.

    Returns:
        The text; `bom + encode(text)` are the bytes again.

    Raises:
        BinaryError: `binary`: a NUL in the first 8 KiB and no byte order mark.
        EncodingError: `encoding`: the bytes are not text in the given encoding.
        InvalidArgumentError: `invalid_argument`: no codec has that name.
    """
    named = None if encoding is None else codec_name(encoding)
    bom, marked = bom_of(data)
    if marked is not None:
        text = _strictly(data[len(bom) :], marked)
        if text is not None:
            return Decoded(text, marked, bom)
    if named is None and b"\x00" in data[:HEAD]:
        raise BinaryError(
            f"The file is binary: it has a NUL byte at position {data.index(0)}.",
            details={"position": data.index(0)},
        )
    # ASCII with NULs, and every 7-bit codec, is valid UTF-8 too: a named codec is only second to plain UTF-8.
    if named is None or b"\x00" not in data[:HEAD]:
        text = _strictly(data, "utf-8")
        if text is not None:
            return Decoded(text, "utf-8", b"")
    if named is None:
        return Decoded(data.decode("latin-1"), UNKNOWN_8BIT, b"")
    text = _strictly(data, named)
    if text is None:
        raise EncodingError(f"The file is not text in {named}.", details={"encoding": named})
    return Decoded(text, named, b"")


def decode_in(data: bytes, encoding: str) -> Decoded:
    """Decode the whole content of a file in the codec that was named, and in no other.

    Args:
        data: The bytes of the whole file.
        encoding: The codec; it stands above what the bytes look like.

    Returns:
        The text.

    Raises:
        EncodingError: `encoding`: the bytes are not text in that codec.
        InvalidArgumentError: `invalid_argument`: no codec has that name.
    """
    bom, named = codec_of(data, encoding)
    text = _strictly(data[len(bom) :], named)
    if text is None:
        raise _not_in(named)
    return Decoded(text, named, bom)


def codec_of(head: bytes, encoding: str) -> tuple[bytes, str]:
    """Find the mark and the codec of a file whose encoding was named.

    Args:
        head: The first bytes of the file.
        encoding: The name; it wins over everything but the byte order of a mark of the same family.

    Returns:
        The mark, or b"" where it is none of that encoding and so part of the text; and the codec.

    Raises:
        InvalidArgumentError: `invalid_argument`: no text codec has that name.
    """
    named = codec_name(encoding)
    bom, marked = bom_of(head)
    if marked is not None and marked[:6] == named[:6]:
        return bom, marked
    return b"", named


def decode_as(data: bytes, encoding: str) -> Decoded:
    """Decode the whole content of a file in the codec that its owner names, and in no other.

    Args:
        data: The bytes of the whole file.
        encoding: The codec; it stands above what the bytes look like.

    Returns:
        The text; `bom + encode(text)` are the bytes again.

    Raises:
        EncodingError: `encoding`: the bytes are not text in that codec, or would not come back the same.
        InvalidArgumentError: `invalid_argument`: no codec has that name.
    """
    decoded = decode_in(data, encoding)
    if _encoded(decoded.text, decoded.encoding) != data[len(decoded.bom) :]:
        raise _not_in(decoded.encoding)
    return decoded


def is_binary(head: bytes) -> bool:
    """Tell whether a file is binary by its first bytes.

    Args:
        head: The first bytes of the file; those after 8 KiB are not looked at.

    Returns:
        True for a NUL in the first 8 KiB of a file without a byte order mark.
    """
    return b"\x00" in head[:HEAD] and bom_of(head)[1] is None


def bom_of(head: bytes) -> tuple[bytes, str | None]:
    """Find the byte order mark at the start of a file.

    Args:
        head: The first bytes of the file.

    Returns:
        The mark and the codec that it stands for, or b"" and None.
    """
    for bom, encoding in _BOMS:
        if head.startswith(bom):
            return bom, encoding
    return b"", None


def codec_name(encoding: str) -> str:
    """Give the plain name of a text codec.

    Args:
        encoding: A name that `codecs.lookup` knows.

    Returns:
        Its canonical name; for a codec that writes a byte order mark, the one that does not.

    Raises:
        InvalidArgumentError: `invalid_argument`: no text codec has that name.
    """
    if encoding == UNKNOWN_8BIT:
        return encoding
    try:
        name = codecs.lookup(encoding).name
        "".encode(name)
    except (LookupError, ValueError, TypeError):
        raise InvalidArgumentError(
            f"No text encoding is called {literal(encoding)}.",
            hint="Pass a name such as utf-8, latin-1 or shift_jis.",
            details={"argument": "encoding", "encoding": encoding},
        ) from None
    return _PLAIN.get(name, name)


def _not_in(encoding: str) -> EncodingError:
    return EncodingError(
        f"The file is not text in {encoding}.",
        hint=Message("Leave out ", ParameterName("encoding"), ", or pass the one that the file has."),
        details={"encoding": encoding},
    )


def _encoded(text: str, encoding: str) -> bytes | None:
    try:
        return text.encode("latin-1" if encoding == UNKNOWN_8BIT else encoding)
    except UnicodeError:
        return None


def _strictly(data: bytes, encoding: str) -> str | None:
    try:
        return data.decode("latin-1" if encoding == UNKNOWN_8BIT else encoding)
    except UnicodeError:  # the plain form too: some codecs raise nothing finer
        return None
