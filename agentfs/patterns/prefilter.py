"""The sieve that most files of a search fall through: their bytes are passed over in place, unseen as text.

Most files have no match, so the way to "no" is what counts: a file is read into a buffer that is made once,
and is looked through for the plan's needles there (where case is ignored, by the literal search of `regex`).
Only a file that has them is looked at more.
"""

from collections.abc import Callable
from typing import Any, Literal, TypeAlias, cast

from agentfs.errors import BinaryError, EncodingError
from agentfs.fs import ReadBuffer
from agentfs.patterns.compile import LARGEST_FOLDED, MOST_FOLDED, Pattern, in_either_case
from agentfs.patterns.re2_filter import re2_filter
from agentfs.patterns.substring import Has, has_string, has_string_before_nul
from agentfs.text import codec_name, decode, is_binary, lf_view

_HEAD = 8192
_UTF8_BOM = b"\xef\xbb\xbf"
_WIDE_BOM_STARTS = (0xFF, 0xFE, 0x00)  # how the marks of UTF-16 and UTF-32 begin

Verdict = Literal["may_match", "binary", "too_large", "undecodable"]
Classify: TypeAlias = Callable[[int], Verdict | None]


class Prefilter:
    """What of one file after the other may have a match, and what that is as text."""

    def __init__(self, contents: ReadBuffer, encoding: str | None = None) -> None:
        """Name the buffer.

        Args:
            contents: Where each file is read to.
            encoding: The codec of files that have no byte order mark and are not UTF-8, or None. UTF-8 means
                that such a file is none to be searched.
        """
        self._contents = contents
        self._strict = encoding is not None and codec_name(encoding) == "utf-8"
        self._encoding = None if self._strict else encoding

    def judge_of(self, pattern: Pattern) -> Classify:
        """Return the judge of a pattern.

        It is not kept here: a circle would keep the buffer, too, until the garbage collector comes round.

        Args:
            pattern: What is searched for.

        Returns:
            A function that, given the length of what is in the buffer (-1 for more than its limit), tells
            what is to be done with the file; None only when there is certainly no match.
        """
        if self._encoding is not None:  # bytes of any meaning, and its text may have NULs
            return lambda length: "too_large" if length < 0 else "may_match"
        judge = self._by_needles(pattern) if pattern.plan.needles else self._by_content(re2_filter(pattern))
        return self._strictly(judge) if self._strict else judge

    def _by_needles(self, pattern: Pattern) -> Classify:
        contents, data, find = self._contents, self._contents.data, self._contents.data.find
        has = self._has(pattern, has_string_before_nul)
        has_besides_nul = has if pattern.ignore_case else self._has(pattern, has_string)

        def judge(length: int) -> Verdict | None:
            if length < 0:
                return "too_large"
            nul = find(0, 0, length)
            if nul >= 0:
                if nul < _HEAD and is_binary(_head(contents)):
                    return "binary"
                if has_besides_nul(length):
                    return "may_match"
            elif has(length):
                return "may_match"
            return "may_match" if data[0] in _WIDE_BOM_STARTS and self._is_wide() else None

        return judge

    def _has(self, pattern: Pattern, test_for: Callable[[ReadBuffer, bytes], Has]) -> Has:
        """Return a test for what a match must have.

        Args:
            pattern: What is searched for.
            test_for: Makes a test for one string in the case in which it is written.
        """
        contents = self._contents
        needles = tuple(needle.encode() for needle in pattern.plan.needles)
        also = tuple(needle.encode() for needle in pattern.plan.also)
        if pattern.ignore_case:
            strangers = tuple(_has_rare(contents, each.encode()) for each in pattern.plan.strangers)
            one, others = ([_has_folded(contents, each) for each in some] for some in (needles, also))
            return _either((_one_and_all(tuple(one), tuple(others)), *strangers))
        one, others = ([test_for(contents, each) for each in some] for some in (needles, also))
        return _one_and_all(tuple(one), tuple(others))

    def _by_content(self, search: Callable[[bytes], object] | None) -> Classify:
        contents = self._contents

        def judge(length: int) -> Verdict | None:
            if length < 0:
                return "too_large"
            if is_binary(_head(contents)):
                return "binary"
            if search is None:
                return "may_match"
            content = contents.copy()
            plain = content.isascii() and b"\r" not in content
            return None if plain and search(content) is None else "may_match"

        return judge

    def _strictly(self, judge: Classify) -> Classify:
        def strict(length: int) -> Verdict | None:
            verdict = judge(length)
            return "undecodable" if verdict is None and not self._is_utf8() else verdict

        return strict

    def ascii(self) -> bytes | None:
        r"""Return the content of an ASCII file with `\n` for every line end, or None for any other file."""
        content = self._contents.copy()
        if self._encoding is not None or not content.isascii():
            return None
        if b"\r" in content:
            return lf_view(str(content, "ascii")).encode()
        return content

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
        """Tell whether the file is UTF-8, or says by its mark what else it is."""
        content = self._contents.copy()
        return content.isascii() or self.text() is not None

    def _is_wide(self) -> bool:
        """Tell whether the file begins as UTF-16 or UTF-32 does; the rest is for `decode` to judge."""
        head = bytes(self._contents.data[: min(self._contents.length, 4)])
        return len(head) >= 2 and head[0] in _WIDE_BOM_STARTS and not is_binary(head + b"\x00")


def _either(tests: tuple[Has, ...]) -> Has:
    if len(tests) == 1:
        return tests[0]

    def has(length: int) -> bool:
        for each in tests:  # noqa: SIM110 - `any` over a generator takes twice as long
            if each(length):
                return True
        return False

    return has


def _one_and_all(one: tuple[Has, ...], others: tuple[Has, ...]) -> Has:
    """Return a test that one of some tests, and all of others, must pass."""
    either = _either(one)
    if not others:
        return either

    def has(length: int) -> bool:
        if not either(length):
            return False
        for each in others:  # noqa: SIM110 - as above
            if not each(length):
                return False
        return True

    return has


def _has_rare(contents: ReadBuffer, string: bytes) -> Has:
    """Return a test for what hardly any file has: its first byte alone is found ten times as fast."""
    find, first = contents.data.find, string[0]
    return lambda length: find(first, 0, length) >= 0 and find(string, 0, length) >= 0


def _has_folded(contents: ReadBuffer, string: bytes) -> Has:
    data, search = contents.data, cast("Any", in_either_case(string[:MOST_FOLDED])).search

    def has(length: int) -> bool:
        if length > LARGEST_FOLDED:
            return string in contents.copy().lower()
        return search(data, 0, length) is not None

    return has


def _head(contents: ReadBuffer) -> bytes:
    return bytes(contents.data[: min(contents.length, _HEAD)])
