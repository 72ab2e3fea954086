"""Hidden files that a command has added to git: it sees them as empty, and so would commit them as empty.

The entries are looked for in the index, in new loose trees and in the new trees of packs. Git's formats are
described in `gitformat-index` and `gitformat-pack`.
"""

import hashlib
import re
import struct
import zlib
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress

from agentfs.base import call_context
from agentfs.fs import Change, FileNode, Node

# The ids of an empty file, by the size of an id.
_EMPTY = {
    len(each): each for each in (hashlib.new(name, b"blob 0\0").digest() for name in ("sha1", "sha256"))
}
_LOOSE_OBJECT = re.compile(r".*/([0-9a-f]{2})/([0-9a-f]{38,62})")
_EXTENDED = 0x4000  # a flag of an entry of the index that has two more bytes of flags
_MOST_BYTES = 2**25  # of an object; a tree is smaller
_TREE, _BY_OFFSET, _BY_ID = 2, 6, 7  # kinds of objects in a pack; the last two are changes of another object


def kept_as_empty(changes: Iterable[Change], hidden: Iterable[str]) -> set[str]:
    """Return the hidden files that a command has added to an index or to a tree."""
    found: set[str] = set()
    names = {path.rpartition("/")[2].encode("utf-8", "surrogateescape"): path for path in hidden}
    if not names:
        return found
    files = {each.path: each for each in changes if "/.git/" in f"/{each.path}"}
    either = b"|".join(map(re.escape, names))
    in_tree = re.compile(rb"(?s)\d{5,6} (%b)\0(?:%b)" % (either, b"|".join(map(re.escape, _EMPTY.values()))))
    known = {each for change in files.values() for each in _ids_of(change.path, change.before)}
    for path, change in files.items():
        call_context.check()
        if not isinstance(change.after, FileNode):
            continue
        with suppress(zlib.error, struct.error, LookupError, ValueError):  # git cannot read it either
            if path.endswith("/index"):
                entries = _index_entries(change.after.load())
                found.update(names[name] for name in map(_last_part, entries) if name in names)
            trees: Iterable[bytes] = ()
            if _LOOSE_OBJECT.fullmatch(path):
                data = _inflated(change.after.load())
                trees = [data] if data.startswith(b"tree ") else []
            elif path.endswith(".pack") and isinstance(index := _after(files, path[:-4] + "idx"), FileNode):
                trees = _Pack(change.after.load(), index.load()).trees(known)
            found.update(names[name] for tree in trees for name in in_tree.findall(tree))
    return found


def _after(files: dict[str, Change], path: str) -> Node | None:
    return files[path].after if path in files else None


def _last_part(path: bytes) -> bytes:
    return path.rpartition(b"/")[2]


def _ids_of(path: str, node: Node | None) -> Iterable[bytes]:
    """Return the ids of the objects in a file of a repository: a loose object, or the index of a pack."""
    if isinstance(node, FileNode):
        if loose := _LOOSE_OBJECT.fullmatch(path):
            return [bytes.fromhex(loose[1] + loose[2])]
        if path.endswith(".idx"):
            with suppress(struct.error, ValueError):  # a damaged one has no known objects
                return _positions(node.load())
    return []


def _index_entries(data: bytes) -> Iterator[bytes]:
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


def _positions(index: bytes) -> dict[bytes, int]:
    """Return the positions in a pack of its objects, by id, from its index of version 2."""
    (count,) = struct.unpack_from(">I", index, 1028)
    size = 20 if hashlib.sha1(index[:-20], usedforsecurity=False).digest() == index[-20:] else 32
    ids = (index[1032 + number * size :][:size] for number in range(count))
    return dict(zip(ids, struct.unpack_from(f">{count}I", index, 1032 + count * (size + 4)), strict=True))


class _Pack:
    """A pack with its index."""

    def __init__(self, data: bytes, index: bytes) -> None:
        self._data, self._positions = data, _positions(index)
        self._sorted = [*sorted(self._positions.values()), len(data)]

    def trees(self, known: Collection[bytes]) -> Iterator[bytes]:
        """Yield the trees, except those with known ids."""
        for each, at in self._positions.items():
            if each not in known:
                kind, data = self._read(at)
                if kind == _TREE:
                    yield data

    def _read(self, at: int) -> tuple[int, bytes]:
        """Return the kind and the content of the object at a position."""
        changes: list[bytes] = []
        while sum(map(len, changes)) < _MOST_BYTES:
            call_context.check()
            start, kind = at, self._data[at] >> 4 & 7
            while self._data[at] & 0x80:
                at += 1
            at += 1
            base = start
            if kind == _BY_OFFSET:
                back, at = _offset(self._data, at)
                base -= back
            elif kind == _BY_ID:
                size = len(next(iter(self._positions)))
                base, at = self._positions[self._data[at : at + size]], at + size
            end = self._sorted[bisect_right(self._sorted, start)]
            data = _inflated(memoryview(self._data)[at:end])
            if kind not in (_BY_OFFSET, _BY_ID):
                for each in reversed(changes):
                    data = _changed(data, each)
                return kind, data
            changes.append(data)
            at = base
        raise ValueError


def _inflated(data: bytes | memoryview) -> bytes:
    return zlib.decompressobj().decompress(data, _MOST_BYTES)


def _changed(base: bytes, delta: bytes) -> bytes:
    """Apply a delta: copies of parts of the base, and new bytes."""
    at, made = 0, bytearray()
    for _ in range(2):  # the sizes before and after
        while delta[at] & 0x80:
            at += 1
        at += 1
    while at < len(delta) and len(made) < _MOST_BYTES:
        step = delta[at]
        at += 1
        if step & 0x80:
            numbers = list[int]()
            for bit in range(7):  # four bytes of the position and three of the size, those that are not 0
                numbers.append(delta[at] if step >> bit & 1 else 0)
                at += step >> bit & 1
            begin = int.from_bytes(numbers[:4], "little")
            made += base[begin : begin + (int.from_bytes(numbers[4:], "little") or 0x10000)]
        else:
            made += delta[at : at + step]
            at += step
    return bytes(made)
