"""The content store: contents of files by digest, in memory while they are few, else in a database."""

import zlib
from collections.abc import Collection, Sequence
from functools import partial
from threading import RLock
from typing import TypeVar

from agentfs.base.frozen_data import with_values
from agentfs.errors import AgentFSError, FileIOError
from agentfs.fs import Change, FileNode, Node, revision_of
from agentfs.history.storage.database import Database, Statement

_UNCOMPRESSED = 512  # bytes; smaller contents are not compressed
_MEMORY_BYTES = 8 * 1024 * 1024  # bytes of contents in memory before they are written

_N = TypeVar("_N", bound=Node)


class Contents:
    """Keeps contents until `collect` drops those that are not needed. Thread-safe.

    Without the database of a state directory, many contents go to a temporary one.
    """

    def __init__(self, database: Database | None = None) -> None:
        self.database = database or Database()
        self._lock = RLock()
        self._unwritten: dict[str, bytes] = {}
        self._sizes: dict[str, int] = {}  # of all contents, as they are stored, by digest
        if database is not None:
            (rows,) = database.read("SELECT digest, length(data) FROM contents")
            self._sizes = {bytes(digest).hex(): size for digest, size in rows}
        self.total_bytes = sum(self._sizes.values())
        self._memory_bytes = 0

    def keep(self, change: Change) -> Change:
        """Keep the contents of a change, and return the change with contents that load from here."""
        before = change.before and self.keep_node(change.before)
        return with_values(change, before=before, after=change.after and self.keep_node(change.after))

    def keep_node(self, node: _N) -> _N:
        """Keep the content of a node, and return the node with content that loads from here."""
        if not isinstance(node, FileNode):
            return node
        digest = node.digest
        with self._lock:
            if digest not in self._sizes:
                self._unwritten[digest] = data = node.load()
                self._sizes[digest] = len(data)
                self.total_bytes += len(data)
                self._memory_bytes += len(data)
                if self._memory_bytes > _MEMORY_BYTES:
                    try:
                        self.write()
                    except AgentFSError:
                        self._forget(digest)
                        raise
        return self.stored(node)  # type: ignore[return-value]

    def stored(self, node: FileNode) -> FileNode:
        """Return a node whose content loads from here, where it is already."""
        return with_values(node, load=partial(self.read, node.digest))

    def read(self, digest: str) -> bytes:
        """Return a content; raises FileIOError if it is damaged."""
        data = self._unwritten.get(digest)
        if data is not None:
            return data
        query = ("SELECT data FROM contents WHERE digest = ?", (bytes.fromhex(digest),))
        (rows,) = self.database.read(query)
        try:
            data = _unpack(bytes(rows[0][0]))
        except (IndexError, TypeError, ValueError, zlib.error):
            data = b""
        if revision_of(data) != digest:
            where = "temporary file" if self.database.temporary else "state directory"
            raise FileIOError(
                f"A content of the journal in the {where} is damaged; nothing was done.",
                hint="Undo fewer steps, or edit the file.",
                details={"digest": digest},
            )
        return data

    def write(self, statements: Sequence[Statement] = ()) -> None:
        """Write the contents in memory, then run the statements, in one transaction."""
        with self._lock:
            packed = {digest: _pack(data) for digest, data in self._unwritten.items()}
            add = "INSERT OR IGNORE INTO contents VALUES (?, ?)"
            rows = [(add, (bytes.fromhex(digest), data)) for digest, data in packed.items()]
            self.database.write([*rows, *statements])
            for digest, data in packed.items():
                self.total_bytes += len(data) - self._sizes[digest]
                self._sizes[digest] = len(data)
            self._unwritten.clear()
            self._memory_bytes = 0

    def size_of(self, digests: Collection[str]) -> int:
        """Return how many bytes some contents take."""
        return sum(self._sizes.get(digest, 0) for digest in digests)

    def collect(self, needed: Collection[str]) -> None:
        """Drop all contents that are not needed; those on disk with the next transaction."""
        with self._lock:
            for digest in [each for each in self._sizes if each not in needed]:
                if digest not in self._unwritten:
                    drop = "DELETE FROM contents WHERE digest = ?"
                    self.database.defer([(drop, (bytes.fromhex(digest),))])
                self._forget(digest)

    def _forget(self, digest: str) -> None:
        self.total_bytes -= self._sizes.pop(digest)
        self._memory_bytes -= len(self._unwritten.pop(digest, b""))

    def close(self) -> None:
        """Run the deferred statements, and close the database; a temporary one is deleted."""
        self.database.flush()
        self.database.close()
        self._unwritten.clear()


def _pack(data: bytes) -> bytes:
    packed = zlib.compress(data, 1) if len(data) > _UNCOMPRESSED else data
    return b"z" + packed if len(packed) < len(data) else b"-" + data


def _unpack(packed: bytes) -> bytes:
    return zlib.decompress(packed[1:]) if packed[:1] == b"z" else packed[1:]
