"""The test of a file's bytes, in the buffer that they were read to, that most files of a search fail.

A file without the literals that every match contains, or in which RE2 finds no match, is not even copied.
"""

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any, Literal, TypeAlias

from agentfs.errors import BinaryError, EncodingError
from agentfs.fs import ReadBuffer
from agentfs.patterns.compile import Pattern, compile_folded
from agentfs.patterns.rust_syntax import rust_syntax
from agentfs.text import HEAD, codec_name, decode, is_binary, lf_view

_UTF8_BOM = b"\xef\xbb\xbf"
_WIDE_BOM_STARTS = (0xFF, 0xFE, 0x00)  # how the marks of UTF-16 and UTF-32 begin
# A longer literal goes to `find`, which then skips most bytes, and takes linear time whatever the text.
_MAX_LITERAL = 64
# The search of a literal in either case takes at worst the product of both lengths, and cannot be stopped.
_MAX_FOLDED_LITERAL = 24
_MAX_FOLDED_TEXT = 2 * 1024 * 1024
_MIN_FOLDED_PART = 3
_DOTTED_I = "\u0130".encode()
_RE2_MEMORY = 64 * 1024 * 1024

SkipReason = Literal["binary", "too_large", "undecodable"]
PlainKind = Literal["ascii", "utf-8", "mixed"]
# Given the length of the buffer (-1: over its limit): the content that may match, why it is skipped, or None.
Classify: TypeAlias = Callable[[int], bytes | SkipReason | None]
Finder: TypeAlias = Callable[[bytearray, int, int], int]  # where it is between two positions, or -1


class Literals:
    """The search in bytes for what every match of a pattern contains."""

    def __init__(self, pattern: Pattern) -> None:
        literals = [literal.encode() for literal in pattern.plan.literals]
        # Whether a literal was found in any case, or may be in what was not searched for it.
        known = not pattern.ignore_case and literals and _stringzilla("utf8_uncased_search")
        self.found_in_any_case = not known
        self.finders: list[Finder] = []  # of which one finds something wherever there is a match
        # Functions as `find`, and what to find by one of them in each line in ASCII with a match.
        self.finds: list[tuple[Any, bytes]] = []
        if not pattern.ignore_case:
            self.finds = [(_exact_find(literal), literal) for literal in literals]
            self.finders = [self._find(literal) for literal in literals]
        elif literals:
            if (search := _stringzilla("utf8_uncased_search")) is not None:
                self.finds = [(search, literal[:_MAX_FOLDED_LITERAL]) for literal in literals]
            extras = pattern.plan.case_fold_extras
            self.finders = [find for literal in literals for find in _find_folded(literal, extras)]

    def _find(self, literal: bytes) -> Finder:
        find, folded = _exact_find(literal), literal[:_MAX_FOLDED_LITERAL]
        find_folded = _stringzilla("utf8_uncased_search")

        def found(data: bytearray, start: int, end: int) -> int:
            if not self.found_in_any_case and find_folded is not None:
                start = find_folded(data, folded, start, end)
                if start < 0:
                    return -1
                self.found_in_any_case = True
            at: int = find(data, literal, start, end)
            return at

        return found


def classifier(
    contents: ReadBuffer, pattern: Pattern, encoding: str | None = None, literals: Literals | None = None
) -> Classify:
    """Return the test of the file in a buffer, of which an `encoding` is as in `decode_content`."""
    literals = literals or Literals(pattern)
    if encoding is None or _is_strict(encoding):
        classify = _by_literals(contents, literals) if literals.finders else _by_re2(contents, pattern)
    else:  # bytes of any meaning, and its text may have NULs
        literals.found_in_any_case = True
        return lambda length: "too_large" if length < 0 else contents.copy()
    if encoding is None:
        return classify

    def strict(length: int) -> bytes | SkipReason | None:
        found = classify(length)
        if found is None and decode_content(contents.copy(), encoding) is None:
            return "undecodable"
        return found

    return strict


def _by_literals(contents: ReadBuffer, literals: Literals) -> Classify:
    data, find_byte, finders = contents.data, contents.data.find, literals.finders

    def classify(length: int) -> bytes | SkipReason | None:
        if length < 0:
            return "too_large"
        nul = find_byte(0, 0, length)
        if 0 <= nul < HEAD and is_binary(_head(contents)):
            return "binary"
        for find in finders:
            if find(data, 0, length) >= 0:
                return contents.copy()
        if data[0] in _WIDE_BOM_STARTS and _is_wide(_head(contents)):
            literals.found_in_any_case = True
            return contents.copy()
        return None

    return classify


def _by_re2(contents: ReadBuffer, pattern: Pattern) -> Classify:
    search = _re2_search(pattern)

    def classify(length: int) -> bytes | SkipReason | None:
        if length < 0:
            return "too_large"
        if is_binary(_head(contents)):
            return "binary"
        content = contents.copy()
        passes = search is None or not content.isascii() or b"\r" in content or search(content) is not None
        return content if passes else None

    return classify


def plain_kind(content: bytes) -> PlainKind:
    r"""Return how the lines of a plain text can be found: "ascii" and "utf-8" have only `\n` as line ends."""
    if b"\r" in content:
        return "mixed"
    if content.isascii():
        return "ascii"
    try:
        content.decode()
    except UnicodeDecodeError:
        return "mixed"
    return "mixed" if content.startswith(_UTF8_BOM) else "utf-8"


def is_plain(contents: ReadBuffer) -> bool:
    """Return whether the bytes of a file show that it has no match: neither binary nor in a wide encoding."""
    head = _head(contents)
    return b"\0" not in head and not (head and head[0] in _WIDE_BOM_STARTS)


def _exact_find(literal: bytes) -> Any:
    return (_stringzilla("find") if len(literal) <= _MAX_LITERAL else None) or bytearray.find


def _find_exact(literal: bytes) -> Finder:
    find = _exact_find(literal)
    return lambda data, start, end: find(data, literal, start, end)


def _find_folded(literal: bytes, extras: str) -> list[Finder]:
    """Return functions of which one finds something wherever a literal is, in either case."""
    search = _stringzilla("utf8_uncased_search")
    if search is None:
        rare = [_find_exact(each.encode()) for each in extras]
        return [_find_by_regex(literal[:_MAX_FOLDED_LITERAL]), *rare]
    # It knows the Kelvin sign and the long s, but not the I with a dot: what is around an i may do.
    part, found = max(literal.split(b"i"), key=len)[:_MAX_FOLDED_LITERAL], list[Finder]()
    if len(part) < _MIN_FOLDED_PART and part != literal:
        part, found = literal[:_MAX_FOLDED_LITERAL], [_find_exact(_DOTTED_I)]
    return [lambda data, start, end: search(data, part, start, end), *found]


def _find_by_regex(literal: bytes) -> Finder:
    search = compile_folded(literal).search

    def find(data: bytearray, start: int, end: int) -> int:
        while start < end:
            found = search(data, start, min(start + _MAX_FOLDED_TEXT, end))
            if found is not None:
                return int(found.start())
            start += _MAX_FOLDED_TEXT - len(literal)
        return -1

    return find


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
    fast = _stringzilla("find") if text.isascii() and max(map(len, literals)) <= _MAX_LITERAL else None
    return fast or str.find


@cache
def _stringzilla(name: str) -> Any:
    try:
        return getattr(import_module("stringzilla"), name)
    except ImportError:  # a platform for which it could not be built
        return None


def _head(contents: ReadBuffer) -> bytes:
    return bytes(contents.data[: min(contents.length, HEAD)])


def _re2_search(pattern: Pattern) -> Callable[[bytes], Any] | None:
    r"""Return RE2's search in ASCII text without `\r`; None if not installed, or other than `regex`."""
    source = None if pattern.multiline else rust_syntax(pattern.syntax, ignore_case=pattern.ignore_case)
    if source is None:
        return None
    try:
        re2 = import_module("re2")
    except ImportError:
        return None
    options: Any = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.max_mem = _RE2_MEMORY
    options.log_errors = False
    try:
        search: Callable[[bytes], Any] = re2.compile(source.encode(), options=options).search
    except re2.error:
        return None
    return search
