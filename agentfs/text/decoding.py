"""Bytes to text and back, without losing a byte."""

import codecs
import re
from typing import NamedTuple

from agentfs.advice import Advice, ParameterName
from agentfs.errors import BinaryError, EncodingError, InvalidArgumentError
from agentfs.text.lines import count_lines
from agentfs.visible import literal

UNKNOWN_8BIT = "unknown-8bit"  # each byte is the character of the same number
HEAD = 8192  # the bytes at the start of a file that decide whether it is binary

# The longer marks first: the one of UTF-32 begins with the one of UTF-16.
_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# Where a coding line is looked for: this many characters at either end, as editors and browsers do.
_DECLARED_IN = 1024
_NAME = r"[ \t]*[\"']?([-\w.]+)"
_DECLARED = (  # compiled when it is first searched for
    rf"\A(?:[ \t\f]*(?:#[^\r\n]*)?(?:\r\n?|\n))?[ \t\f]*#[^\r\n]*?coding[:=]{_NAME}"  # PEP 263
    rf"|\A(?:[^\r\n]*(?:\r\n?|\n))?[^\r\n]*-\*-[^\r\n]*?\bcoding:{_NAME}"  # Emacs
    rf"|\bvim?:[^\r\n]*\b(?:fileencoding|fenc)={_NAME}"
    rf"|\A\s*<\?xml\b[^>]*\sencoding\s*={_NAME}"
    rf"|\A\s*<(?s:.)*?<meta\b[^>]*\bcharset\s*={_NAME}"
    rf"|\A\s*<meta\b[^>]*\bcharset\s*={_NAME}"
    rf"|\A@charset{_NAME}"  # CSS
)
_ASCII = "\t\n\r" + "".join(map(chr, range(32, 127)))
# Text to bytes for Python, but what they make of a text is an escaped form of it.
_NOT_PLAIN = {"idna", "punycode", "unicode-escape", "raw-unicode-escape"}
# These codecs write a mark of their own, or read one as no text; without a mark they mean the plain form.
_PLAIN = {"utf-8-sig": "utf-8", "utf-16": "utf-16-le", "utf-32": "utf-32-le"}


_PYTHON_CODECS = {UNKNOWN_8BIT: "latin-1"}


class Decoded(NamedTuple):
    """The exact text of a file without its byte order mark; the codec, which may be UNKNOWN_8BIT."""

    text: str
    encoding: str
    bom: bytes

    def encode(self, text: str) -> bytes:
        """Encode a text as this file is encoded, without a mark; EncodingError as for `encode`.

        Of an unknown encoding the bytes of those characters are known that the file has.
        """
        if self.encoding == UNKNOWN_8BIT and not text.isascii():
            unknown = {each for each in set(text) if each > "\x7f" and each not in self.text}
            if unknown:
                raise _cannot_hold(text, min(map(text.index, unknown)), self.encoding)
        return encode(text, self.encoding)


def encode(text: str, encoding: str) -> bytes:
    """Encode a text strictly; EncodingError (encoding) names a character that the codec does not have."""
    try:
        return text.encode(_PYTHON_CODECS.get(encoding, encoding))
    except UnicodeEncodeError as error:
        raise _cannot_hold(text, error.start, encoding) from None


def _cannot_hold(text: str, position: int, encoding: str) -> EncodingError:
    character = text[position]
    line = count_lines(text[:position] + "x")
    number = f"U+{ord(character):04X}"
    allowed = "characters that the file's encoding has"
    message = f"The encoding {encoding} cannot hold the character"
    if encoding == UNKNOWN_8BIT:
        allowed = "ASCII and characters that the file has already"
        message = "The file is in an unknown 8-bit encoding, so no byte is known for the character"
    return EncodingError(
        f"{message} {literal(character)} ({number}) in line {line} of the text.",
        hint=f"Use only {allowed}, or escapes of the file's own language.",
        details={"encoding": encoding, "character": number, "line": line},
    )


def declared_encoding(text: str) -> str | None:
    """Return the codec that a text itself names, for Python, Emacs, Vim, XML, HTML or CSS.

    None without such a line, and for what is no codec here or has other bytes for ASCII.
    """
    head = text if len(text) <= 2 * _DECLARED_IN else f"{text[:_DECLARED_IN]}\n{text[-_DECLARED_IN:]}"
    folded = head.lower()
    if "coding" not in folded and "charset" not in folded and "fenc" not in folded:
        return None
    found = re.search(_DECLARED, head, re.IGNORECASE)
    if found is None:
        return None
    name = re.sub(r"-(?:unix|dos|mac)$", "", next(filter(None, found.groups())).lower())
    try:
        codec = codec_name(name)
        return codec if codec != UNKNOWN_8BIT and _ASCII.encode().decode(codec) == _ASCII else None
    except (InvalidArgumentError, UnicodeError):
        return None


def decode(data: bytes, encoding: str | None = None) -> Decoded:
    """Decode a file by its byte order mark, as UTF-8, as it was named or names itself, else byte by byte.

    Raises BinaryError for a NUL in the first 8 KiB without a mark, EncodingError for what is not text in the
    encoding.
    """
    named = None if encoding is None else codec_name(encoding)
    bom, marked = bom_of(data)
    if marked is not None and (text := _strictly(data[len(bom) :], marked)) is not None:
        return Decoded(text, marked, bom)
    has_nul = b"\x00" in data[:HEAD]
    if named is None and has_nul:
        position = data.index(0)
        raise BinaryError(
            f"The file is binary: it has a NUL byte at position {position}.", details={"position": position}
        )
    # ASCII with NULs, and every 7-bit codec, is valid UTF-8 too: a named codec is only second to plain UTF-8.
    if not has_nul and (text := _strictly(data, "utf-8")) is not None:
        # ASCII says nothing of what a character would be that comes in.
        declared = declared_encoding(text) if named is None and text.isascii() else None
        return Decoded(text, declared or "utf-8", b"")
    if named is None:
        text = data.decode("latin-1")
        declared = declared_encoding(text)
        exact = None if declared is None else _exactly(data, declared)
        if declared is None or exact is None:
            return Decoded(text, UNKNOWN_8BIT, b"")
        return Decoded(exact, declared, b"")
    return decode_in(data, named)


def decode_in(data: bytes, encoding: str, *, exact: bool = False) -> Decoded:
    """Decode a file in the encoding that was named and in no other.

    Args:
        data: The bytes of the file.
        encoding: The encoding.
        exact: Also refuse bytes that the encoding would write differently.

    Returns:
        The text, its codec, and the byte order mark.

    Raises:
        AgentFSError: `encoding` if the bytes are not text in it.
    """
    bom, named = codec_of(data, encoding)
    text = (_exactly if exact else _strictly)(data[len(bom) :], named)
    if text is None:
        raise EncodingError(
            f"The file is not text in {named}.",
            hint=Advice("Leave out ", ParameterName("encoding"), ", or pass the one that the file has."),
            details={"encoding": named},
        )
    return Decoded(text, named, bom)


def codec_of(head: bytes, encoding: str) -> tuple[bytes, str]:
    """Return the mark and the codec of a file whose encoding was named; a mark of another one is text."""
    named = codec_name(encoding)
    bom, marked = bom_of(head)
    if marked is not None and marked[:6] == named[:6]:
        return bom, marked
    return b"", named


def is_binary(head: bytes) -> bool:
    """Return whether a file has a NUL in its first 8 KiB and no byte order mark."""
    return b"\x00" in head[:HEAD] and bom_of(head)[1] is None


def bom_of(head: bytes) -> tuple[bytes, str | None]:
    """Return the byte order mark at the start of a file and its codec, or b"" and None."""
    for bom, encoding in _BOMS:
        if head.startswith(bom):
            return bom, encoding
    return b"", None


def codec_name(encoding: str) -> str:
    """Return the canonical name of a text codec, of the form without a mark.

    InvalidArgumentError (invalid_argument) is raised where there is no such codec.
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
            details={"argument": "encoding", "encoding": encoding[:200]},
        )
    return _PLAIN.get(name, name)


def _strictly(data: bytes, encoding: str) -> str | None:
    try:
        return data.decode(_PYTHON_CODECS.get(encoding, encoding))
    except UnicodeError:  # the plain form too: some codecs raise nothing finer
        return None


def _exactly(data: bytes, encoding: str) -> str | None:
    """Decode what the codec encodes to the same bytes again."""
    text = _strictly(data, encoding)
    try:
        same = text is not None and text.encode(_PYTHON_CODECS.get(encoding, encoding)) == data
    except UnicodeError:
        same = False
    return text if same else None
