"""Hidden files that a command has added to git's index: it sees their masks, and would commit these.

The format is described in `gitformat-index`.
"""

import hashlib
import struct
from collections.abc import Collection, Iterable
from contextlib import suppress
from functools import lru_cache
from typing import NamedTuple

from agentfs.fs import Change, FileNode

_EXTENDED = 0x40  # in the first byte of flags: there are two more bytes of flags
_EMPTY = {hashlib.new(name, b"blob 0\0").digest() for name in ("sha1", "sha256")}  # ids of an empty file
ASSUMED = 0x80  # in the first byte of flags: git takes the file as unchanged


class IndexEntry(NamedTuple):
    """A file in an index, with its id, and the position of its flags, such as `ASSUMED`."""

    path: bytes
    identity: bytes
    flags_at: int


def masks_in_index(changes: Iterable[Change], hidden: Iterable[str]) -> dict[str, str]:
    """Return the indexes to which a command has added masks, which are empty, each with one hidden path."""
    names = {path.rpartition("/")[2].encode("utf-8", "surrogateescape"): path for path in hidden}
    found: dict[str, str] = {}
    for change in changes if names else ():
        in_git = ".git" in change.path.split("/")
        if in_git and change.path.endswith("/index") and isinstance(change.after, FileNode):
            for path, identity, _ in index_entries(change.after.load()):
                name = path.rpartition(b"/")[2]
                if name in names and identity in _EMPTY:
                    found[change.path] = names[name]
    return found


def with_assumed(data: bytes, paths: Collection[bytes], *, assumed: bool) -> bytes:
    """Return an index in which git takes some files as unchanged, or compares them again."""
    found = bytearray(data)
    for entry in index_entries(data):
        if entry.path in paths:
            found[entry.flags_at] = found[entry.flags_at] & ~ASSUMED | (ASSUMED if assumed else 0)
    if bytes(found) != data:
        size = _hash_size(data)
        found[-size:] = hashlib.new("sha1" if size == 20 else "sha256", found[:-size]).digest()
    return bytes(found)


def _hash_size(data: bytes) -> int:
    return 20 if hashlib.sha1(data[:-20], usedforsecurity=False).digest() == data[-20:] else 32


@lru_cache(maxsize=2)
def index_entries(data: bytes) -> Collection[IndexEntry]:
    """Return the files in an index of version 2, 3 or 4, as far as it can be read."""
    found: list[IndexEntry] = []
    with suppress(struct.error, LookupError, ValueError):
        version, count = struct.unpack_from(">4xII", data)
        size = _hash_size(data)
        at, path = 12, b""
        for _ in range(count):
            begin, at = at, at + 40 + size
            identity = data[at - size : at]
            flags_at = at
            at += 4 if data[at] & _EXTENDED else 2
            kept = 0
            if version == 4:  # the path begins as the one before, without this many bytes of its end
                left_out, at = _offset(data, at)
                kept = len(path) - left_out
            end = data.index(b"\0", at)
            path = path[:kept] + data[at:end]
            at = end + 1 if version == 4 else begin + (end - begin) // 8 * 8 + 8
            found.append(IndexEntry(path, identity, flags_at))
    return found


def _offset(data: bytes, at: int) -> tuple[int, int]:
    """Return the number of variable length at a position, and the position after it."""
    value = data[at] & 0x7F
    while data[at] & 0x80:
        at += 1
        value = (value + 1) << 7 | data[at] & 0x7F
    return value, at + 1
