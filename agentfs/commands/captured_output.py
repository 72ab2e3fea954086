"""`CapturedOutput`: the bytes that a command has written, bounded, in order of arrival."""

from threading import Lock

_TAIL_BYTES = 256 * 1024


class CapturedOutput:
    """The standard output and standard error of one command. Thread-safe.

    Of each stream, and of both joined, the first `limit` bytes are kept, and of the joined output also its
    end. The position of a byte in the joined output is its offset.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lock = Lock()
        self._streams = {"stdout": bytearray(), "stderr": bytearray()}
        self._head, self._tail = bytearray(), bytearray()
        self.total = 0  # bytes of both streams
        self.truncated = False  # True if a stream was longer than the limit

    def add(self, stream: str, data: bytes) -> None:
        """Add bytes that have just arrived on a stream."""
        with self._lock:
            kept = self._streams[stream]
            room = self._limit - len(kept)
            kept += data[:room]
            self.truncated |= len(data) > room
            self.total += len(data)
            room = self._limit - len(self._head)
            self._head += data[:room]
            self._tail += data[room:]
            if len(self._tail) > 2 * _TAIL_BYTES:
                del self._tail[:-_TAIL_BYTES]

    def stream(self, name: str) -> bytes:
        """Return the kept bytes of "stdout" or "stderr"."""
        with self._lock:
            return bytes(self._streams[name])

    def read(self, offset: int = 0) -> tuple[int, bytes]:
        """Return the first kept offset of the joined output from an offset on, and the output from there."""
        with self._lock:
            if offset < len(self._head):
                return offset, bytes(self._head[offset:])
            kept_from = self.total - len(self._tail)
            return max(offset, kept_from), bytes(self._tail[max(offset - kept_from, 0) :])
