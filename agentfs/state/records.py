"""Records one after the other, each with its length and checksums. Pure.

A process that is killed while it writes leaves a part of the last record: that one was never finished, and is
dropped. Whatever else does not fit together is damage, and is never passed over.
"""

from collections.abc import Callable, Iterator, Mapping
from struct import Struct
from typing import NamedTuple
from zlib import crc32

_HEAD = Struct("<BII")  # kind, bytes of the payload, their checksum
_SEAL = Struct("<I")  # the checksum of the head
HEAD_BYTES = _HEAD.size + _SEAL.size
_WINDOW = 1 << 15  # many small records come with one read, and of a large content little is read in vain

Read = Callable[[int, int], bytes]


class Damage(Exception):  # noqa: N818 - it becomes an error that says what to do
    """Something that nobody has written stands in a file.

    Attributes:
        place: Where.
        what: What is wrong.
    """

    def __init__(self, place: int, what: str) -> None:
        super().__init__(place, what)
        self.place = place
        self.what = what


class Record(NamedTuple):
    """One record.

    Attributes:
        kind: What it is.
        start: Where its payload begins.
        size: Bytes of its payload.
        payload: The payload, or its beginning where the rest was to be passed over.
    """

    kind: int
    start: int
    size: int
    payload: bytes

    @property
    def place(self) -> int:
        """Where the record begins."""
        return self.start - HEAD_BYTES

    @property
    def end(self) -> int:
        """Where the next one begins."""
        return self.start + self.size


def record(kind: int, payload: bytes = b"") -> bytes:
    """Return a record.

    Args:
        kind: What it is, 1 to 255.
        payload: What it holds.
    """
    head = _HEAD.pack(kind, len(payload), crc32(payload))
    return head + _SEAL.pack(crc32(head)) + payload


def records(read: Read, size: int, *, passing: Mapping[int, int] | None = None) -> Iterator[Record]:
    """Go through records.

    Args:
        read: Returns bytes: where they begin, how many.
        size: Where the records end.
        passing: The kinds whose payload is not checked, and how many bytes of it are wanted.

    Yields:
        Each record that is whole. Where the last one yielded ends, `size` is reached or an unfinished one
        begins.

    Raises:
        Damage: What stands there was not written so.
    """
    place, window, window_start = 0, b"", 0

    def take(start: int, count: int) -> bytes:
        nonlocal window, window_start
        if not window_start <= start <= start + count <= window_start + len(window):
            window, window_start = read(start, max(count, _WINDOW)), start
        return window[start - window_start : start - window_start + count]

    while size - place >= HEAD_BYTES:
        head = take(place, HEAD_BYTES)
        kind, length, checksum = _HEAD.unpack_from(head)
        if _SEAL.unpack_from(head, _HEAD.size)[0] != crc32(head[: _HEAD.size]):
            if _is_blank(read, place, size):
                return
            raise Damage(place, "the head of a record is not as it was written")
        start = place + HEAD_BYTES
        if start + length > size:
            return
        passed = (passing or {}).get(kind)
        payload = take(start, length if passed is None else min(passed, length))
        if passed is None and crc32(payload) != checksum:
            raise Damage(place, "a record is not as it was written")
        yield Record(kind, start, length, payload)
        place = start + length


def _is_blank(read: Read, start: int, size: int) -> bool:
    """Tell whether nothing was written from a place on, as after a power cut."""
    while start < size:
        part = read(start, min(_WINDOW, size - start))
        if not part or part.count(0) != len(part):
            return False
        start += len(part)
    return True
