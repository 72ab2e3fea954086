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
_RE2_MEMORY = 64 * 1024 * 1024

SkipReason = Literal["binary", "too_large", "undecodable"]
# Given the length of the buffer (-1: over its limit): the content that may match, why it is skipped, or None.
Classify: TypeAlias = Callable[[int], bytes | SkipReason | None]
Finder: TypeAlias = Callable[[bytearray, int, int], int]  # where it is between two positions, or -1
_Contains: TypeAlias = Callable[[int], bool]  # whether so many bytes of the buffer contain it


def classifier(contents: ReadBuffer, pattern: Pattern, encoding: str | None = None) -> Classify:
    """Return the test of the file in a buffer, of which an `encoding` is as in `decode_content`."""
    if encoding is None or _is_strict(encoding):
        classify = _by_literals(contents, pattern) if pattern.plan.literals else _by_re2(contents, pattern)
    else:  # bytes of any meaning, and its text may have NULs
        return lambda length: "too_large" if length < 0 else contents.copy()
    if encoding is None:
        return classify

    def strict(length: int) -> bytes | SkipReason | None:
        found = classify(length)
        if found is None and decode_content(contents.copy(), encoding) is None:
            return "undecodable"
        return found

    return strict


def _by_literals(contents: ReadBuffer, pattern: Pattern) -> Classify:
    data, find = contents.data, contents.data.find
    make = _contains_folded if pattern.ignore_case else _contains
    tests = [make(contents, literal.encode()) for literal in pattern.plan.literals]
    tests += [_contains_rare(contents, each.encode()) for each in pattern.plan.case_fold_extras]
    contains = tests[0] if len(tests) == 1 else _any_of(tests)

    def classify(length: int) -> bytes | SkipReason | None:
        if length < 0:
            return "too_large"
        nul = find(0, 0, length)
        if 0 <= nul < HEAD and is_binary(_head(contents)):
            return "binary"
        if contains(length) or (data[0] in _WIDE_BOM_STARTS and _is_wide(_head(contents))):
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


def is_plain(contents: ReadBuffer) -> bool:
    """Return whether the bytes of a file show that it has no match: neither binary nor in a wide encoding."""
    head = _head(contents)
    return b"\0" not in head and not (head and head[0] in _WIDE_BOM_STARTS)


def finders(pattern: Pattern) -> list[Finder]:
    """Return functions of which one finds something in every plain text with a match; [] for no such."""
    make = _find_folded if pattern.ignore_case else _find
    found = [make(literal.encode()) for literal in pattern.plan.literals]
    return found and found + [_find(each.encode()) for each in pattern.plan.case_fold_extras]


def _find(literal: bytes) -> Finder:
    find: Any = (_stringzilla_find() if len(literal) <= _MAX_LITERAL else None) or bytearray.find

    def found(data: bytearray, start: int, end: int) -> int:
        at: int = find(data, literal, start, end)
        return at

    return found


def _find_folded(literal: bytes) -> Finder:
    folded = literal[:_MAX_FOLDED_LITERAL]
    search = compile_folded(folded).search

    def find(data: bytearray, start: int, end: int) -> int:
        while start < end:
            found = search(data, start, min(start + _MAX_FOLDED_TEXT, end))
            if found is not None:
                return int(found.start())
            start += _MAX_FOLDED_TEXT - len(folded)
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
    fast = _stringzilla_find() if text.isascii() and max(map(len, literals)) <= _MAX_LITERAL else None
    return fast or str.find


@cache
def _stringzilla_find() -> Any:
    try:
        return import_module("stringzilla").find
    except ImportError:  # a platform for which it could not be built
        return None


def _contains(contents: ReadBuffer, literal: bytes) -> _Contains:
    data = contents.data
    find = (_stringzilla_find() if len(literal) <= _MAX_LITERAL else None) or bytearray.find
    return lambda length: find(data, literal, 0, length) >= 0


def _contains_rare(contents: ReadBuffer, literal: bytes) -> _Contains:
    """Return a test for what hardly any file has: its first byte alone is found ten times as fast."""
    find, first = contents.data.find, literal[0]
    return lambda length: find(first, 0, length) >= 0 and find(literal, 0, length) >= 0


def _contains_folded(contents: ReadBuffer, literal: bytes) -> _Contains:
    data, search = contents.data, compile_folded(literal[:_MAX_FOLDED_LITERAL]).search

    def contains(length: int) -> bool:
        if length > _MAX_FOLDED_TEXT:
            return literal in contents.copy().lower()
        return search(data, 0, length) is not None

    return contains


def _any_of(tests: list[_Contains]) -> _Contains:
    def contains(length: int) -> bool:
        for each in tests:  # noqa: SIM110 - `any` over a generator takes twice as long
            if each(length):
                return True
        return False

    return contains


def _head(contents: ReadBuffer) -> bytes:
    return bytes(contents.data[: min(contents.length, HEAD)])


def _re2_search(pattern: Pattern) -> Callable[[bytes], Any] | None:
    r"""Return RE2's search in ASCII text without `\r`; None if not installed, or other than `regex`."""
    source = None if pattern.multiline else rust_syntax(pattern.pattern, ignore_case=pattern.ignore_case)
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
