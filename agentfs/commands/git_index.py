"""Hidden files that a command has added to git's index: it sees their masks, and would commit these.

The format is described in `gitformat-index`.
"""

import hashlib
import struct
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress

from agentfs.fs import Change, FileNode

_EXTENDED = 0x4000  # a flag of an entry of the index that has two more bytes of flags


def masks_in_index(changes: Iterable[Change], masks: Mapping[str, bytes]) -> set[str]:
    """Return the hidden files whose masks a command has added to an index, given the content of each mask."""
    names = {path.rpartition("/")[2].encode("utf-8", "surrogateescape"): path for path in masks}
    found: set[str] = set()
    for change in changes if names else ():
        in_git = ".git" in change.path.split("/")
        if in_git and change.path.endswith("/index") and isinstance(change.after, FileNode):
            with suppress(struct.error, LookupError, ValueError):  # git cannot read it either
                for path, identity in index_entries(change.after.load()):
                    hidden = names.get(path.rpartition(b"/")[2])
                    if hidden is not None and identity == _blob(masks[hidden], len(identity)):
                        found.add(hidden)
    return found


def _blob(content: bytes, size: int) -> bytes:
    """Return git's id of a content, of 20 or 32 bytes."""
    return hashlib.new("sha1" if size == 20 else "sha256", b"blob %d\0" % len(content) + content).digest()


def index_entries(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield path and id of the files in an index, of version 2, 3 or 4."""
    version, count = struct.unpack_from(">4xII", data)
    size = 20 if hashlib.sha1(data[:-20], usedforsecurity=False).digest() == data[-20:] else 32
    at, path = 12, b""
    for _ in range(count):
        begin, at = at, at + 40 + size
        identity = data[at - size : at]
        (flags,) = struct.unpack_from(">H", data, at)
        at += 4 if flags & _EXTENDED else 2
        kept = 0
        if version == 4:  # the path begins as the one before, without this many bytes of its end
            left_out, at = _offset(data, at)
            kept = len(path) - left_out
        end = data.index(b"\0", at)
        path = path[:kept] + data[at:end]
        at = end + 1 if version == 4 else begin + (end - begin) // 8 * 8 + 8
        yield path, identity


def _offset(data: bytes, at: int) -> tuple[int, int]:
    """Return the number of variable length at a position, and the position after it."""
    value = data[at] & 0x7F
    while data[at] & 0x80:
        at += 1
        value = (value + 1) << 7 | data[at] & 0x7F
    return value, at + 1
