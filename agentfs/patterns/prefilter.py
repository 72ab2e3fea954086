"""The test of a file's bytes, in the buffer that they were read to, that most files of a search fail.

A file without the literals that every match contains, or in which RE2 finds no match, is not decoded.
"""

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any, Literal, TypeAlias

from agentfs.errors import BinaryError, EncodingError
from agentfs.fs import ReadBuffer
from agentfs.patterns.compile import Pattern, compile_folded
from agentfs.patterns.rust_syntax import rust_syntax
from agentfs.text import codec_name, decode, is_binary, lf_view

_HEAD = 8192
_UTF8_BOM = b"\xef\xbb\xbf"
_WIDE_BOM_STARTS = (0xFF, 0xFE, 0x00)  # how the marks of UTF-16 and UTF-32 begin
# A longer literal goes to `find`, which then skips most bytes, and takes linear time whatever the text.
_MAX_LITERAL = 64
# The search of a literal in either case takes at worst the product of both lengths, and cannot be stopped.
_MAX_FOLDED_LITERAL = 24
_MAX_FOLDED_TEXT = 2 * 1024 * 1024
_RE2_MEMORY = 64 * 1024 * 1024

Verdict = Literal["may_match", "binary", "too_large", "undecodable"]
Classify: TypeAlias = Callable[[int], Verdict | None]
_Contains: TypeAlias = Callable[[int], bool]  # whether so many bytes of the buffer contain it


class Prefilter:
    """Classifies the files that are read to a buffer one after the other, and decodes those that may match.

    `encoding` is for files without a byte order mark that are not UTF-8; with UTF-8 none are searched.
    """

    def __init__(self, contents: ReadBuffer, encoding: str | None = None) -> None:
        self._contents = contents
        self._strict = encoding is not None and codec_name(encoding) == "utf-8"
        self._encoding = None if self._strict else encoding

    def classifier(self, pattern: Pattern) -> Classify:
        """Return a function of the length in the buffer (-1: over its limit); None from it: no match."""
        if self._encoding is not None:  # bytes of any meaning, and its text may have NULs
            return lambda length: "too_large" if length < 0 else "may_match"
        classify = self._by_literals(pattern) if pattern.plan.literals else self._by_re2(pattern)
        if not self._strict:
            return classify

        def strict(length: int) -> Verdict | None:
            verdict = classify(length)
            return "undecodable" if verdict is None and not self._is_utf8() else verdict

        return strict

    def _by_literals(self, pattern: Pattern) -> Classify:
        contents, data, find = self._contents, self._contents.data, self._contents.data.find
        make = _contains_folded if pattern.ignore_case else _contains
        tests = [make(contents, literal.encode()) for literal in pattern.plan.literals]
        tests += [_contains_rare(contents, each.encode()) for each in pattern.plan.case_fold_extras]
        contains = tests[0] if len(tests) == 1 else _any_of(tests)

        def classify(length: int) -> Verdict | None:
            if length < 0:
                return "too_large"
            nul = find(0, 0, length)
            if 0 <= nul < _HEAD and is_binary(_head(contents)):
                return "binary"
            if contains(length):
                return "may_match"
            return "may_match" if data[0] in _WIDE_BOM_STARTS and self._is_wide() else None

        return classify

    def _by_re2(self, pattern: Pattern) -> Classify:
        contents, search = self._contents, _re2_search(pattern)

        def classify(length: int) -> Verdict | None:
            if length < 0:
                return "too_large"
            if is_binary(_head(contents)):
                return "binary"
            if search is None:
                return "may_match"
            content = contents.copy()
            plain = content.isascii() and b"\r" not in content
            return None if plain and search(content) is None else "may_match"

        return classify

    def text(self) -> str | None:
        r"""Return the text of the file with `\n` for every line end, or None when it cannot be decoded."""
        content = self._contents.copy()
        if self._encoding is not None or self._is_wide():
            try:
                return lf_view(decode(content, self._encoding).text)
            except (BinaryError, EncodingError):
                return None
        try:
            return lf_view(str(content.removeprefix(_UTF8_BOM), "utf-8"))
        except UnicodeDecodeError:
            # What is not UTF-8 has no mark of it either: its first bytes are text, as `read` shows them.
            return None if self._strict else lf_view(str(content, "latin-1"))

    def _is_utf8(self) -> bool:
        """Return whether the file is UTF-8, or has the mark of another encoding."""
        return self._contents.copy().isascii() or self.text() is not None

    def _is_wide(self) -> bool:
        """Return whether the file begins as UTF-16 or UTF-32 does; `decode` checks the rest."""
        head = bytes(self._contents.data[: min(self._contents.length, 4)])
        return len(head) >= 2 and head[0] in _WIDE_BOM_STARTS and not is_binary(head + b"\x00")


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
    return bytes(contents.data[: min(contents.length, _HEAD)])


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
