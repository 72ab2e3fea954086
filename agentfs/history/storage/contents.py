"""Contents of files, kept in memory while they are few, and in a database otherwise."""

import zlib
from collections import deque
from collections.abc import Iterable, Sequence
from threading import Lock
from typing import Any
from weakref import WeakSet, ref

from agentfs.base.frozen_data import with_values
from agentfs.errors import FileIOError
from agentfs.fs import Change, FileNode, Node, node_from_json, revision_of
from agentfs.history.storage.database import Damage, Database, Statement

_UNCOMPRESSED = 512  # bytes; smaller contents are not compressed
_UNWRITTEN_BYTES = 8 * 1024 * 1024  # bytes of contents in memory before they are written
_DROP = "DELETE FROM contents WHERE digest = ?"
_DROP_UNSEEN = (
    "DELETE FROM contents WHERE digest = ?"
    " AND NOT EXISTS (SELECT 1 FROM snapshot WHERE digest = contents.digest)"
)


class Content:
    """A content that is kept as long as this object is referenced; calling it returns the bytes."""

    __slots__ = ("__weakref__", "_contents", "digest", "unwritten")

    def __init__(self, contents: "Contents", digest: str) -> None:
        self._contents = contents
        self.digest = digest
        self.unwritten: bytes | None = None  # the packed bytes, until they are in the database

    def __call__(self) -> bytes:
        """Return the bytes; raises FileIOError if they are damaged."""
        return self._contents.read(self)


class Contents:
    """Keeps contents as long as their `Content` is referenced, or the snapshot has them. Thread-safe.

    Without the database of a state directory, many contents go to a temporary one.
    """

    def __init__(self, database: Database | None = None) -> None:
        self.database = database or Database()
        self._lock = Lock()
        self._contents: dict[str, ref[Content]] = {}
        self._unneeded = deque[str]()  # digests of contents without a reference
        self._stored = set[str]()  # digests of contents in the database
        self._unwritten = WeakSet[Content]()
        self._unwritten_bytes = 0  # a lower bound

    def keep(self, change: Change) -> Change:
        """Keep the contents of a change, and return the change with contents that load from here."""
        before = change.before and self.keep_node(change.before)
        return with_values(change, before=before, after=change.after and self.keep_node(change.after))

    def keep_node(self, node: Node, *, compressed: bool = False) -> Node:
        """Keep the content of a node, and return the node with content that loads from here.

        Contents in a state directory are always compressed.
        """
        return self.keep_file(node, compressed=compressed) if isinstance(node, FileNode) else node

    def keep_file(self, node: FileNode, *, compressed: bool = False) -> FileNode:
        """Keep the content of a file, as `keep_node` does."""
        with self._lock:
            content = self._known(node.digest)
            if content is None:
                data = node.load()
                content = self._add(node.digest)
                content.unwritten = _pack(data, compressed or not self.database.temporary)
                self._unwritten.add(content)
                self._unwritten_bytes += len(content.unwritten)
                if self._unwritten_bytes > _UNWRITTEN_BYTES:
                    try:
                        self.write(self.unwritten())
                    except BaseException:  # the error may refer to the content, which must not count as kept
                        del self._contents[node.digest]
                        self._unwritten.discard(content)
                        raise
                    self._unwritten_bytes = 0
        return with_values(node, load=content)

    def node_from_json(self, plain: Any) -> Node | None:
        """Return the node for the JSON values of `node_to_json`; raises ValueError."""
        match plain:
            case None:
                return None
            case (
                ["link" | "moved", str(), *_]
                | ["directory", int() | None, *_]
                | ["file", int(), str(), int(), *_]
            ):
                node = node_from_json(list(plain))
            case _:
                raise ValueError(plain)
        if not isinstance(node, FileNode):
            return node
        return with_values(node, load=self._known(node.digest) or self._add(node.digest))

    def read(self, content: Content) -> bytes:
        """Return the bytes of a content; raises FileIOError if they are damaged."""
        packed = content.unwritten
        if packed is not None:  # in memory, so the digest need not be checked
            return _unpack(packed)
        (rows,) = self.database.read(
            ("SELECT data FROM contents WHERE digest = ?", (bytes.fromhex(content.digest),))
        )
        packed = rows[0][0] if rows and isinstance(rows[0][0], bytes) else b""
        try:
            data = _unpack(packed)
        except zlib.error:
            data = b""
        if revision_of(data) != content.digest:
            where = "temporary file" if self.database.temporary else "state directory"
            raise FileIOError(
                f"A content of the journal in the {where} is damaged; nothing was done.",
                hint="Undo fewer steps, or edit the file.",
                details={"digest": content.digest},
            )
        return data

    def write(
        self, contents: Iterable[Content], statements: Sequence[Statement] = (), *, sync: bool = False
    ) -> None:
        """Write those contents that are new, then run the statements, in one transaction."""
        new = [content for content in contents if content.unwritten is not None]
        add = "INSERT OR IGNORE INTO contents VALUES (?, ?)"
        rows: list[Statement] = [(add, (bytes.fromhex(each.digest), each.unwritten)) for each in new]
        self.database.write([*rows, *statements], sync=sync)
        for content in new:
            self._stored.add(content.digest)
            content.unwritten = None
            self._unwritten.discard(content)

    def unwritten(self) -> list[Content]:
        """Return the contents that are not in the database yet."""
        return list(self._unwritten)

    def restore(self, stored: set[str], seen: set[str]) -> None:
        """Take over the contents in the database after nodes were loaded; raises Damage if one is missing.

        `seen` are those that the snapshot has.
        """
        needed = {digest for digest in self._contents if self._known(digest) is not None}
        if not needed <= stored:
            raise Damage("a content that a step needs is missing")
        self._stored = stored
        self._unneeded.extend(stored - needed - seen)

    def drop_unneeded(self) -> None:
        """Delete contents without a reference, after the deferred deletion of their steps."""
        drop = _DROP if self.database.temporary else _DROP_UNSEEN
        with self._lock:  # if the content is kept again, its write must follow the delete
            while self._unneeded:
                digest = self._unneeded.popleft()
                if self._known(digest) is not None:
                    continue
                self._contents.pop(digest, None)
                if digest in self._stored:
                    self._stored.discard(digest)
                    self.database.defer([(drop, (bytes.fromhex(digest),))])

    def close(self) -> None:
        """Run the deferred statements, and close the database; a temporary one is deleted."""
        self.database.flush()
        self.database.close()
        for content in self.unwritten():
            content.unwritten = None

    def _known(self, digest: str) -> Content | None:
        found = self._contents.get(digest)
        return None if found is None else found()

    def _add(self, digest: str) -> Content:
        content, unneeded = Content(self, digest), self._unneeded
        self._contents[digest] = ref(content, lambda _: unneeded.append(digest))
        return content


def _pack(data: bytes, compressed: bool) -> bytes:
    packed = zlib.compress(data, 1) if compressed and len(data) > _UNCOMPRESSED else data
    return b"z" + packed if len(packed) < len(data) else b"-" + data


def _unpack(packed: bytes) -> bytes:
    return zlib.decompress(packed[1:]) if packed[:1] == b"z" else packed[1:]
