"""Contents by their hash: the latest in memory, the others in a file that has no name."""

import zlib
from collections import OrderedDict
from dataclasses import replace
from functools import partial
from threading import Lock

from agentfs.disk import Change, FileState, Spool, State

MEMORY = 8 * 1024 * 1024
_SMALL = 512


class Store:
    """Keeps the contents that a journal needs. Thread-safe.

    Args:
        memory: Bytes to hold in memory; what is more goes to the disk.
    """

    def __init__(self, memory: int = MEMORY) -> None:
        self._lock = Lock()
        self._memory = memory
        self._held: OrderedDict[str, bytes] = OrderedDict()
        self._held_bytes = 0
        self._places: dict[str, tuple[int, int]] = {}
        self._spool = Spool()

    @property
    def bytes_in_memory(self) -> int:
        """Bytes of the contents held in memory."""
        return self._held_bytes

    @property
    def bytes_on_disk(self) -> int:
        """Bytes of the file."""
        return self._spool.size

    def keep(self, change: Change) -> Change:
        """Keep the contents of a change.

        Args:
            change: A change whose contents may be in memory.

        Returns:
            The same change; its contents are loaded from here.

        Raises:
            InputOutputError: io: the disk is full, or fails.
        """
        return Change(change.path, self._kept(change.before), self._kept(change.after))

    def get(self, digest: str) -> bytes:
        """Return a content that was kept.

        Args:
            digest: Its hash.
        """
        with self._lock:
            held = self._held.get(digest)
            if held is not None:
                self._held.move_to_end(digest)
                return held
            start, size = self._places[digest]
        return zlib.decompress(self._spool.read(start, size))

    def close(self) -> None:
        """Drop all."""
        with self._lock:
            self._held.clear()
            self._places.clear()
            self._held_bytes = 0
        self._spool.close()

    def _kept(self, state: State | None) -> State | None:
        if not isinstance(state, FileState):
            return state
        with self._lock:
            known = state.digest in self._held or state.digest in self._places
        if not known:
            self._put(state.digest, state.load())
        return replace(state, load=partial(self.get, state.digest))

    def _put(self, digest: str, data: bytes) -> None:
        with self._lock:
            if digest in self._held:
                return
            self._held[digest] = data
            self._held_bytes += len(data)
            try:
                while self._held_bytes > self._memory:
                    self._spill(next(iter(self._held)))
            except BaseException:
                if self._held.pop(digest, None) is not None:
                    self._held_bytes -= len(data)
                raise

    def _spill(self, digest: str) -> None:
        data = self._held[digest]
        packed = zlib.compress(data, 1 if len(data) > _SMALL else 0)
        self._places[digest] = (self._spool.append(packed), len(packed))
        del self._held[digest]
        self._held_bytes -= len(data)
