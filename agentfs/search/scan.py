"""The bytes of one file: into one buffer, and past most of them unseen.

Most files have no match, so the way to "no" is what counts: the bytes are read into a buffer that is made
once, and `bytearray.find` looks for the plan's needles in place. Only a file that has one is looked at more.
"""

import os
from collections.abc import Callable
from typing import Literal

from agentfs.errors import BinaryError, EncodingError
from agentfs.search.linear import linear_filter
from agentfs.search.pattern import Pattern
from agentfs.text import codec_name, decode, is_binary, lf_view

_FIRST_BUFFER = 256 * 1024
_HEAD = 8192
_UTF8_BOM = b"\xef\xbb\xbf"
_WIDE_BOM_STARTS = (0xFF, 0xFE, 0x00)  # how the marks of UTF-16 and UTF-32 begin
_SHORTEST_SHARED = 3  # needles that share so many characters are looked for by these first

Verdict = Literal["may_match", "no_match", "binary", "too_large", "undecodable"]


class Reader:
    """One buffer for the files of one search.

    Args:
        limit: The most bytes of a file that are searched.
        pattern: What is searched for.
        encoding: The codec of files that have no byte order mark and are not UTF-8, or None. UTF-8 means that
            such a file is none to be searched.
    """

    def __init__(self, limit: int, pattern: Pattern, encoding: str | None = None) -> None:
        self._limit = limit
        self._strict = encoding is not None and codec_name(encoding) == "utf-8"
        self._encoding = encoding = None if self._strict else encoding
        self._buffer = bytearray(min(_FIRST_BUFFER, limit + 1))
        self._view = memoryview(self._buffer)
        self._whole = (self._view,)
        self._length = 0
        self._needles = tuple(needle.encode() for needle in pattern.plan.needles)
        self._filter = shared_part(self._needles)
        self._others = () if self._needles == (self._filter,) else self._needles
        self._also = tuple(needle.encode() for needle in pattern.plan.also)
        self._ignore_case = pattern.ignore_case
        self._linear = linear_filter(pattern) if encoding is None else None
        self._strangers = tuple(each.encode() for each in pattern.plan.strangers)

    def read(self, fd: int, size: int = -1) -> Verdict:
        """Read a whole file into the buffer, and tell whether the plan leaves a match possible.

        Args:
            fd: The file, at its beginning.
            size: Its size, where the system has told it.

        Returns:
            `no_match` only when there is certainly none.

        Raises:
            OSError: The system fails to read.
        """
        verdict = self._read(fd, size)
        if self._strict and verdict == "no_match" and not self._is_utf8():
            return "undecodable"
        return verdict

    def _read(self, fd: int, size: int) -> Verdict:
        if size > self._limit:
            return "too_large"
        buffer = self._buffer
        length = _read_into(fd, self._whole)
        # Only a read of nothing is the end, or having read what there is: a read may give less.
        if (length != size or length == len(buffer)) and length > 0:
            length = self._read_on(fd, length)
            if length < 0:
                return "too_large"
            buffer = self._buffer
        self._length = length
        if self._encoding is not None:
            return "may_match"  # its bytes may be no ASCII, and its text may have NULs
        if buffer.find(0, 0, min(_HEAD, length)) >= 0 and is_binary(bytes(buffer[: min(length, _HEAD)])):
            return "binary"
        if not self._needles:
            return "may_match" if self._linear is None else self._judge_linear(self._linear)
        if buffer[0] in _WIDE_BOM_STARTS and self._is_wide():
            return "may_match"
        if self._ignore_case:
            return self._judge_folded()
        if buffer.find(self._filter, 0, length) < 0:
            return "no_match"
        for needle in self._others:
            if buffer.find(needle, 0, length) >= 0:
                break
        else:
            if self._others:
                return "no_match"
        for needle in self._also:
            if buffer.find(needle, 0, length) < 0:
                return "no_match"
        return "may_match"

    def _read_on(self, fd: int, length: int) -> int:
        while True:
            if length == len(self._buffer):
                if length > self._limit:
                    return -1
                self._grow(min(4 * length, self._limit + 1))
            with self._view[length:] as rest:
                got = _read_into(fd, (rest,))
            if not got:
                return length
            length += got

    def _judge_linear(self, search: Callable[[bytes], object]) -> Verdict:
        content = bytes(self._view[: self._length])
        if content.isascii() and b"\r" not in content and search(content) is None:
            return "no_match"
        return "may_match"

    def _judge_folded(self) -> Verdict:
        content = bytes(self._view[: self._length])
        if self._strangers and not content.isascii():
            for each in self._strangers:
                if each in content:
                    return "may_match"
        content = content.lower()
        if self._filter not in content or (
            self._others and not any([needle in content for needle in self._others])  # noqa: C419 - faster for a few
        ):
            return "no_match"
        for needle in self._also:
            if needle not in content:
                return "no_match"
        return "may_match"

    def _grow(self, size: int) -> None:
        self._view.release()
        self._buffer.extend(bytes(size - len(self._buffer)))
        self._view = memoryview(self._buffer)
        self._whole = (self._view,)

    def ascii(self) -> bytes | None:
        r"""Return the content of an ASCII file with `\n` for every line end, or None for any other file."""
        content = bytes(self._view[: self._length])
        if self._encoding is not None or not content.isascii():
            return None
        if b"\r" in content:
            return lf_view(str(content, "ascii")).encode()
        return content

    def text(self) -> str | None:
        r"""Return the text of the file with `\n` for every line end, or None when it cannot be decoded."""
        if self._encoding is not None or self._is_wide():
            try:
                return lf_view(decode(bytes(self._view[: self._length]), self._encoding).text)
            except (BinaryError, EncodingError):
                return None
        start = len(_UTF8_BOM) if self._buffer.startswith(_UTF8_BOM, 0, self._length) else 0
        with self._view[start : self._length] as content:
            try:
                return lf_view(str(content, "utf-8"))
            except UnicodeDecodeError:
                return None if self._strict else lf_view(str(content, "latin-1"))

    def _is_utf8(self) -> bool:
        """Tell whether the file is UTF-8, or says by its mark what else it is."""
        content = bytes(self._view[: self._length])
        return content.isascii() or self.text() is not None

    def _is_wide(self) -> bool:
        """Tell whether the file begins as UTF-16 or UTF-32 does; the rest is for `decode` to judge."""
        return (
            self._length >= 2
            and self._buffer[0] in _WIDE_BOM_STARTS
            and not is_binary(bytes(self._buffer[: min(self._length, 4)]) + b"\x00")
        )


def shared_part(needles: tuple[bytes, ...]) -> bytes:
    """Return the longest string that all of the needles have; b"" when it is too short to tell files apart.

    Args:
        needles: Strings of which one must stand in a file.

    Returns:
        A part of each of them; the needle itself when there is one.
    """
    if len(needles) <= 1:
        return needles[0] if needles else b""
    shortest = min(needles, key=len)
    for size in range(len(shortest), _SHORTEST_SHARED - 1, -1):
        for start in range(len(shortest) - size + 1):
            part = shortest[start : start + size]
            if all(part in needle for needle in needles):
                return part
    return b""


def _read_by_copy(fd: int, views: tuple[memoryview]) -> int:
    content = os.read(fd, len(views[0]))
    views[0][: len(content)] = content
    return len(content)


_read_into = getattr(os, "readv", _read_by_copy)
