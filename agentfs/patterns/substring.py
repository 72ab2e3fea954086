"""Where a text has a string, told as fast as Python can.

The C library's `strstr`, which stops at a NUL, is asked where it is known to be several times as fast as
`bytearray.find`: glibc's compares 16 to 64 bytes at a time. It is called with the interpreter's lock held, as
`find` is, so that nothing moves the buffer meanwhile.
"""

import os
from collections.abc import Callable
from functools import cache
from typing import Any, TypeAlias, cast

from agentfs.fs import ReadBuffer

# Of a longer string `find` skips most bytes anyway, and it stays linear whatever the text.
_LONGEST = 64
_WORTHWHILE = 4096  # bytes of a text for which the call is cheaper than what it saves

Has: TypeAlias = Callable[[int], bool]  # whether the first so many bytes of the buffer have something


def has_string(contents: ReadBuffer, string: bytes) -> Has:
    """Return a test whether a file has a string.

    Args:
        contents: Where the file is.
        string: What it must have.
    """
    find = contents.data.find
    return lambda length: find(string, 0, length) >= 0


def has_string_before_nul(contents: ReadBuffer, string: bytes) -> Has:
    """Return a test whether a file has a string, for files without a NUL.

    Args:
        contents: Where the file is.
        string: What it must have.
    """
    strstr = _strstr()
    if strstr is None or not _is_usual(string):
        return has_string(contents, string)
    contents.locate()
    return lambda _: strstr(contents.address, string) is not None


def finder(text: Any, strings: tuple[Any, ...]) -> Callable[[Any, int], int]:
    """Return what finds some strings in a text, as its own `find` does: the next from a place on, or -1.

    Args:
        text: The text, as `str` or `bytes`.
        strings: What will be looked for, of the same sort.
    """
    strstr = _strstr() if isinstance(text, bytes) and len(text) >= _WORTHWHILE else None
    if strstr is None or 0 in text or not all(map(_is_usual, strings)):
        return text.find  # type: ignore[no-any-return]
    import ctypes  # noqa: PLC0415 - as below

    begin: int = ctypes.cast(cast("Any", text), ctypes.c_void_p).value or 0

    # While it is held, the text stays where it is.
    def find(string: Any, start: int, _held: Any = text) -> int:
        at = strstr(begin + start, string)
        return -1 if at is None else at - begin

    return find


def _is_usual(string: Any) -> bool:
    return 1 < len(string) <= _LONGEST and 0 not in string


@cache
def _strstr() -> Callable[[int, bytes], int | None] | None:
    try:
        known = (os.confstr("CS_GNU_LIBC_VERSION") or "").startswith("glibc")
    except (AttributeError, ValueError, OSError):  # Windows has no confstr, others not this name
        known = False
    if not known:
        return None
    import ctypes  # noqa: PLC0415 - it takes longer to load than all of agentfs

    try:
        strstr = ctypes.PyDLL(None).strstr
    except (OSError, AttributeError):
        return None
    strstr.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
    strstr.restype = ctypes.c_void_p
    return strstr
