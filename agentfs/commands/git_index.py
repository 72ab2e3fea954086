"""Hidden files that a command has added to git's index: it sees them as empty, and would commit them so.

The format is described in `gitformat-index`.
"""

import hashlib
import struct
from collections.abc import Iterable, Iterator
from contextlib import suppress

from agentfs.fs import Change, FileNode

# The ids of an empty file, by the size of an id.
_EMPTY = {
    len(each): each for each in (hashlib.new(name, b"blob 0\0").digest() for name in ("sha1", "sha256"))
}
_EXTENDED = 0x4000  # a flag of an entry of the index that has two more bytes of flags


def added_as_empty(changes: Iterable[Change], hidden: Iterable[str]) -> set[str]:
    """Return the hidden files that a command has added to an index."""
    names = {path.rpartition("/")[2].encode("utf-8", "surrogateescape"): path for path in hidden}
    found: set[str] = set()
    for change in changes if names else ():
        in_git = ".git" in change.path.split("/")
        if in_git and change.path.endswith("/index") and isinstance(change.after, FileNode):
            with suppress(struct.error, LookupError, ValueError):  # git cannot read it either
                added = (path.rpartition(b"/")[2] for path in _empty_files(change.after.load()))
                found.update(names[name] for name in added if name in names)
    return found


def _empty_files(data: bytes) -> Iterator[bytes]:
    """Yield the paths of the empty files in an index, of version 2, 3 or 4."""
    version, count = struct.unpack_from(">4xII", data)
    size = 20 if hashlib.sha1(data[:-20], usedforsecurity=False).digest() == data[-20:] else 32
    at, path = 12, b""
    for _ in range(count):
        begin, at = at, at + 40 + size
        is_empty = data[at - size : at] == _EMPTY[size]
        (flags,) = struct.unpack_from(">H", data, at)
        at += 4 if flags & _EXTENDED else 2
        kept = 0
        if version == 4:  # the path begins as the one before, without this many bytes of its end
            left_out, at = _offset(data, at)
            kept = len(path) - left_out
        end = data.index(b"\0", at)
        path = path[:kept] + data[at:end]
        at = end + 1 if version == 4 else begin + (end - begin) // 8 * 8 + 8
        if is_empty:
            yield path


def _offset(data: bytes, at: int) -> tuple[int, int]:
    """Return the number of variable length at a position, and the position after it."""
    value = data[at] & 0x7F
    while data[at] & 0x80:
        at += 1
        value = (value + 1) << 7 | data[at] & 0x7F
    return value, at + 1
