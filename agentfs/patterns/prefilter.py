"""The test of a file's bytes, in the buffer that they were read to, that most files of a search fail.

A file without the literals that every match contains is not even copied.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any, Literal, TypeAlias

from agentfs.errors import BinaryError, EncodingError
from agentfs.fs import ReadBuffer
from agentfs.patterns.compile import Pattern
from agentfs.text import HEAD, codec_name, decode, is_binary, lf_view

try:
    stringzilla: Any = import_module("stringzilla")  # it has no type hints
except ImportError:  # a platform for which it cannot be built, and the remote side of `connect`
    stringzilla = None

_UTF8_BOM = b"\xef\xbb\xbf"
_WIDE_BOM_STARTS = (0xFF, 0xFE, 0x00)  # how the marks of UTF-16 and UTF-32 begin
# A longer literal goes to `bytearray.find`, which then skips most bytes, and takes linear time on any text.
_MAX_LITERAL = 64
_MAX_FOLDED_LITERAL = 24  # the search in any case takes at worst the product of both lengths

SkipReason = Literal["binary", "too_large", "undecodable"]
# Given the length of the buffer (-1: over its limit): the content that may match, why it is skipped, or None.
Classify: TypeAlias = Callable[[int], bytes | SkipReason | None]
Finder: TypeAlias = Callable[[bytearray, int, int], int]  # where it is between two positions, or -1


class Literals:
    """The search in bytes for what every match of a pattern contains."""

    def __init__(self, pattern: Pattern) -> None:
        literals = [literal.encode() for literal in pattern.plan.literals]
        # False only if no searched file contains a literal in any case.
        self.found_in_any_case = pattern.ignore_case or not literals or stringzilla is None
        self.finders: list[Finder] = []  # one of them finds something in every file with a match
        if not pattern.ignore_case:
            self.finders = [self._exact(literal) for literal in literals]
        elif stringzilla is not None:
            # It does not know that an I with a dot equals an i, so a part without an i is searched for.
            parts = [max(literal.split(b"i"), key=len) for literal in literals]
            self.finders = [_folded(part) for part in parts] if all(parts) else []

    def _exact(self, literal: bytes) -> Finder:
        find, find_folded = _find_exact(literal), _folded(literal)

        def found(data: bytearray, start: int, end: int) -> int:
            if not self.found_in_any_case:
                start = find_folded(data, start, end)
                if start < 0:
                    return -1
                self.found_in_any_case = True
            at: int = find(data, literal, start, end)
            return at

        return found


def _find_exact(literal: bytes) -> Any:
    is_short = len(literal) <= _MAX_LITERAL
    return stringzilla.find if stringzilla is not None and is_short else bytearray.find


def _folded(literal: bytes) -> Finder:
    search: Any = stringzilla and stringzilla.utf8_uncased_search
    part = literal[:_MAX_FOLDED_LITERAL]
    return lambda data, start, end: search(data, part, start, end)


def classifier(
    contents: ReadBuffer, pattern: Pattern, encoding: str | None = None, literals: Literals | None = None
) -> Classify:
    """Return the test of the file in a buffer; `encoding` is the one of `decode_content`."""
    literals = literals or Literals(pattern)
    data, find_byte, finders = contents.data, contents.data.find, literals.finders
    # In other encodings a text may contain NUL bytes, and a literal consists of other bytes.
    is_utf8 = encoding is None or _is_strict(encoding)
    if encoding is not None:
        finders, literals.found_in_any_case = [], True

    def classify(length: int) -> bytes | SkipReason | None:
        if length < 0:
            return "too_large"
        if is_utf8 and 0 <= find_byte(0, 0, length) < HEAD and is_binary(_head(contents)):
            return "binary"
        for find in finders:
            if find(data, 0, length) >= 0:
                return contents.copy()
        if finders:
            if data[0] not in _WIDE_BOM_STARTS or not _is_wide(_head(contents)):
                return None
            literals.found_in_any_case = True
        return contents.copy()

    return classify


def is_plain(contents: ReadBuffer) -> bool:
    """Return whether the bytes of a file show that it has no match: neither binary nor in a wide encoding."""
    head = _head(contents)
    return b"\0" not in head and not (head and head[0] in _WIDE_BOM_STARTS)


def decode_content(content: bytes, encoding: str | None = None) -> str | None:
    r"""Return the text of a file with `\n` for every line end, or None when it cannot be decoded.

    `encoding` is for files without a byte order mark that are not UTF-8; with UTF-8 none of these is decoded.
    """
    strict = encoding is not None and _is_strict(encoding)
    if (encoding is not None and not strict) or _is_wide(content):
        try:
            return lf_view(decode(content, None if strict else encoding).text)
        except (BinaryError, EncodingError):
            return None
    try:
        return lf_view(str(content.removeprefix(_UTF8_BOM), "utf-8"))
    except UnicodeDecodeError:
        # What is not UTF-8 has no mark of it either: its first bytes are text, as `read` shows them.
        return None if strict else lf_view(decode(content).text)


def _is_strict(encoding: str) -> bool:
    return codec_name(encoding) == "utf-8"


def _is_wide(content: bytes) -> bool:
    """Return whether a file begins as UTF-16 or UTF-32 does; `decode` checks the rest."""
    return len(content) >= 2 and content[0] in _WIDE_BOM_STARTS and not is_binary(content[:4] + b"\x00")


def substring_finder(text: str, literals: tuple[str, ...]) -> Callable[[str, str, int], int]:
    """Return the fastest `find(text, literal, start)`: stringzilla's counts bytes, so in ASCII only."""
    if stringzilla is not None and text.isascii() and max(map(len, literals)) <= _MAX_LITERAL:
        find: Callable[[str, str, int], int] = stringzilla.find
        return find
    return str.find


def _head(contents: ReadBuffer) -> bytes:
    return bytes(contents.data[: min(contents.length, HEAD)])
