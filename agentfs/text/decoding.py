"""Decode the bytes of a file to text and encode it again, without losing a byte."""

import codecs
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from agentfs.base.advice import Advice, ParameterName
from agentfs.base.visible import literal
from agentfs.errors import BinaryError, EncodingError, InvalidArgumentError
from agentfs.text.lines import count_lines

UNKNOWN_8BIT = "unknown-8bit"  # each byte becomes the character with its number
HEAD = 8192  # a NUL among so many first bytes makes a file binary

# UTF-32 comes first, because its mark begins with the mark of UTF-16.
_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# Only so many characters at either end are searched for a coding line, as in editors and browsers.
_DECLARED_IN = 1024
_NAME = r"[ \t]*[\"']?([-\w.]+)"
_DECLARED = (  # compiled on first use
    rf"\A(?:[ \t\f]*(?:#[^\r\n]*)?(?:\r\n?|\n))?[ \t\f]*#[^\r\n]*?coding[:=]{_NAME}"  # PEP 263
    rf"|\A(?:[^\r\n]*(?:\r\n?|\n))?[^\r\n]*-\*-[^\r\n]*?\bcoding:{_NAME}"  # Emacs
    rf"|\bvim?:[^\r\n]*\b(?:fileencoding|fenc)={_NAME}"
    rf"|\A\s*<\?xml\b[^>]*\sencoding\s*={_NAME}"
    rf"|\A\s*<(?s:.)*?<meta\b[^>]*\bcharset\s*={_NAME}"
    rf"|\A\s*<meta\b[^>]*\bcharset\s*={_NAME}"
    rf"|\A@charset{_NAME}"  # CSS
)
_ASCII = "\t\n\r" + "".join(map(chr, range(32, 127)))
# Python lists these as text encodings, but they escape the text instead of encoding it.
_NOT_PLAIN = {"idna", "punycode", "unicode-escape", "raw-unicode-escape"}
# These codecs handle the byte order mark themselves. We handle it, so we use the plain codecs.
_PLAIN = {"utf-8-sig": "utf-8", "utf-16": "utf-16-le", "utf-32": "utf-32-le"}


# Frequent codecs; the last one decodes every file.
_LIKELY = ("gb18030", "shift_jis", "euc_kr", "big5", "cp1252", "latin-1")
_PYTHON_CODECS = {UNKNOWN_8BIT: "latin-1"}


class Decoded(NamedTuple):
    """The exact text of a file, its codec or UNKNOWN_8BIT, and its byte order mark."""

    text: str
    encoding: str
    bom: bytes

    def encode(self, text: str) -> bytes:
        """Encode a text in the encoding of this file, without a byte order mark.

        If the encoding is unknown, only characters that the file already has can be encoded. The error names
        the first character that the codec lacks.
        """
        if self.encoding == UNKNOWN_8BIT and not text.isascii():
            unknown = {each for each in set(text) if each > "\x7f" and each not in self.text}
            if unknown:
                raise _cannot_hold(text, min(map(text.index, unknown)), self.encoding)
        try:
            return text.encode(_PYTHON_CODECS.get(self.encoding, self.encoding))
        except UnicodeEncodeError as error:
            raise _cannot_hold(text, error.start, self.encoding) from None


def _cannot_hold(text: str, position: int, encoding: str) -> EncodingError:
    character, line = text[position], count_lines(text[:position] + "x")
    number = f"U+{ord(character):04X}"
    named = "unknown 8-bit encoding" if encoding == UNKNOWN_8BIT else f"encoding {encoding}"
    return EncodingError(
        f"The {named} of the file may not have the character {literal(character)} ({number})"
        f" in line {line} of the text.",
        hint="Use only ASCII, characters that the file already has, or escapes of the file's own language.",
        details={"encoding": encoding, "character": number, "line": line},
    )


def declared_encoding(text: str) -> str | None:
    """Return the codec that a text declares for Python, Emacs, Vim, XML, HTML or CSS.

    Returns None if it declares none, or one that is unknown or encodes ASCII differently.
    """
    head = text if len(text) <= 2 * _DECLARED_IN else f"{text[:_DECLARED_IN]}\n{text[-_DECLARED_IN:]}"
    lowered = head.lower()
    may_declare = any(each in lowered for each in ("coding", "charset", "fenc"))
    found = re.search(_DECLARED, head, re.IGNORECASE) if may_declare else None
    if found is None:
        return None
    name = re.sub(r"-(?:unix|dos|mac)$", "", next(filter(None, found.groups())).lower())
    try:
        codec = codec_name(name)
        return codec if codec != UNKNOWN_8BIT and _ASCII.encode().decode(codec) == _ASCII else None
    except (InvalidArgumentError, UnicodeError):
        return None


def candidates(head: bytes, encoding: str | None = None) -> Iterator[tuple[bytes, str]]:
    """Yield each byte order mark and codec to try for a file. The first in which the file is text is right.

    Args:
        head: The first bytes of the file, or all of them.
        encoding: The codec of files that have no mark and are not UTF-8, or None for the one they declare.

    Raises:
        AgentFSError: `binary` for a NUL in the first 8 KiB, unless a mark or the encoding accounts for it.
    """
    bom, marked = bom_of(head)
    if marked is not None:
        yield bom, marked
    named = None if encoding is None else codec_of(head, encoding)
    has_nul = b"\x00" in head[:HEAD]
    if has_nul and (named is None or named[1] == "utf-8"):
        position = head.index(0)
        raise BinaryError(
            f"The file is binary: it has a NUL byte at position {position}.", details={"position": position}
        )
    if named is not None:
        # UTF-8 comes first. It also decodes text in 7-bit codecs such as UTF-7.
        yield from [named] if has_nul else [(b"", "utf-8"), named]
        return
    declared = declared_encoding(head.decode("latin-1"))
    # ASCII does not tell how to encode a non-ASCII character that follows or is added.
    order = [declared, "utf-8"] if head.isascii() else ["utf-8", declared]
    yield from ((b"", codec) for codec in (*order, UNKNOWN_8BIT) if codec is not None)


def decode(data: bytes, encoding: str | None = None) -> Decoded:
    """Decode a file in the first of its `candidates` that fits; a codec that it declares must fit exactly.

    Raises:
        AgentFSError: `binary`, as for `candidates`, or `encoding` if the bytes are not text in `encoding`.
    """
    for bom, codec in candidates(data, encoding):
        is_declared = encoding is None and not bom and codec not in {"utf-8", UNKNOWN_8BIT}
        # ASCII counts as text also in a 7-bit codec, as for `grep`.
        read_as = "ascii" if is_declared and data.isascii() else codec
        if (text := _decoded(data[len(bom) :], read_as, exact=is_declared)) is not None:
            return Decoded(text, codec, bom)
    raise not_text_in(codec_name(encoding or UNKNOWN_8BIT))


def decode_in(data: bytes, encoding: str, *, exact: bool = False) -> Decoded:
    """Decode a file in one encoding only.

    Args:
        data: The bytes of the file.
        encoding: The name of the encoding.
        exact: Also refuse bytes that the encoding would write differently.

    Returns:
        The text, its codec, and the byte order mark.

    Raises:
        AgentFSError: `encoding` if the bytes are not text in that encoding.
    """
    bom, named = codec_of(data, encoding)
    text = _decoded(data[len(bom) :], named, exact=exact)
    if text is None:
        raise not_text_in(named)
    return Decoded(text, named, bom)


def not_text_in(codec: str) -> EncodingError:
    """Return the error for a file that is not text in the requested codec."""
    return EncodingError(
        f"The file is not text in {codec}.",
        hint=Advice("Leave out ", ParameterName("encoding"), ", or pass the one that the file has."),
        details={"encoding": codec},
    )


def codec_of(head: bytes, encoding: str) -> tuple[bytes, str]:
    """Return the byte order mark and the codec of a file in a named encoding. Other marks count as text."""
    named = codec_name(encoding)
    bom, marked = bom_of(head)
    if marked is not None and marked[:6] == named[:6]:
        return bom, marked
    return b"", named


def is_binary(head: bytes) -> bool:
    """Return True if a file has a NUL in its first 8 KiB and no byte order mark."""
    return b"\x00" in head[:HEAD] and bom_of(head)[1] is None


def bom_of(head: bytes) -> tuple[bytes, str | None]:
    """Return the byte order mark at the start of a file and its codec, or b"" and None."""
    for bom, encoding in _BOMS:
        if head.startswith(bom):
            return bom, encoding
    return b"", None


def codec_name(encoding: str) -> str:
    """Return the canonical name of a text codec, for example utf-16-le, which writes no byte order mark.

    Raises:
        AgentFSError: `invalid_argument` if the codec does not exist.
    """
    if encoding == UNKNOWN_8BIT:
        return encoding
    try:
        name = codecs.lookup(encoding).name
        "".encode(name)
    except (LookupError, ValueError, TypeError):
        name = ""
    if not name or name in _NOT_PLAIN:
        raise InvalidArgumentError(
            f"No text encoding is called {literal(encoding)}.",
            hint="Pass a name such as utf-8, latin-1 or shift_jis.",
            details={"parameter": "encoding", "encoding": encoding[:200]},
        )
    return _PLAIN.get(name, name)


def likely_encoding(data: bytes) -> str:
    """Return a codec in which the bytes of a file in an unknown 8-bit encoding are text."""
    return next(name for name in _LIKELY if _decoded(data, name, exact=True) is not None)


def _decoded(data: bytes, encoding: str, *, exact: bool) -> str | None:
    """Return the text of bytes, or None; if `exact`, the codec must encode it to the same bytes again."""
    codec = _PYTHON_CODECS.get(encoding, encoding)
    with suppress(UnicodeError):  # some codecs raise it instead of UnicodeDecodeError
        text = data.decode(codec)
        if not exact or text.encode(codec) == data:
            return text
    return None
