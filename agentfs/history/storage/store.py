"""Storage of a journal in a database, with the contents that its steps need.

A change is written down before it is made, and its outcome afterwards. A content stays as long as its
`Content` is referenced, or the snapshot has it.
"""

import json
import zlib
from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from threading import Lock
from typing import Any, NamedTuple, Protocol
from weakref import WeakSet, ref

from agentfs.errors import AgentFSError, FileIOError
from agentfs.fs import Change, FileNode, Node, node_from_json, node_to_json, revision_of
from agentfs.history.storage.database import (
    Damage,
    Database,
    Statement,
    checksum,
    from_bytes,
    put_meta,
    stored_json,
    to_bytes,
)
from agentfs.history.timeline import Order, PendingMove, Step, Timeline

_UNCOMPRESSED = 512  # bytes; smaller contents are not compressed
_UNWRITTEN_BYTES = 8 * 1024 * 1024  # bytes of contents in memory before they are written
_BEGUN = 0  # the number of the step that is under way
_META_KEYS = {"root", "position", "dropped", "move", "generation"}
_DROP_BEGUN: Statement = ("DELETE FROM steps WHERE number = ?", (_BEGUN,))
_END_MOVE: Statement = ("DELETE FROM meta WHERE key = 'move'", ())
_DROP_UNDONE = (  # only while a step is under way, because after an interrupt this may run twice
    "DELETE FROM steps WHERE number > ? AND EXISTS (SELECT 1 FROM steps WHERE number = 0)",
    "DELETE FROM checkpoints WHERE position > ? AND EXISTS (SELECT 1 FROM steps WHERE number = 0)",
)
_READ_JOURNAL = (
    "SELECT key, value, checksum FROM meta",
    "SELECT number, payload, checksum FROM steps ORDER BY number",
    "SELECT name, position, checksum FROM checkpoints ORDER BY number",
    "SELECT digest FROM contents",
    "SELECT max(number) FROM checkpoints",
    "SELECT digest FROM snapshot WHERE digest IS NOT NULL",
)
_DROP_CONTENT = (
    "DELETE FROM contents WHERE digest = ? AND NOT EXISTS (SELECT 1 FROM snapshot WHERE digest = ?)"
)


class Ledger(Protocol):
    """Records the outcome of each change, in the same transactions as the journal."""

    def begun(self) -> Sequence[Statement]:
        """Return the statements that record a change before it is made."""
        ...

    def settled(self, whole: bool | None) -> Sequence[Statement]:
        """Return the statements that record the outcome: made (True), not made (False), or a part (None)."""
        ...


class Loaded(NamedTuple):
    """A journal loaded from a database, with its unfinished step, undo or redo."""

    timeline: Timeline
    begun: Step | None
    move: PendingMove | None
    unneeded: set[str]  # digests of contents that no step needs


class Content:
    """A content that is kept as long as this object is referenced; calling it returns the bytes."""

    __slots__ = ("__weakref__", "_store", "digest", "unwritten")

    def __init__(self, store: "Store", digest: str) -> None:
        self._store = store
        self.digest = digest
        self.unwritten: bytes | None = None  # the packed bytes, until they are in the database

    def __call__(self) -> bytes:
        """Return the bytes; raises FileIOError if they are damaged."""
        return self._store.read(self)


class Store:
    """Keeps a journal and its contents in a database; a temporary one has only the contents. Thread-safe.

    Under the lock of the journal, each step or move is finished before the next one begins.
    """

    def __init__(self, database: Database | None = None) -> None:
        self.database = database or Database()
        self._lock = Lock()
        self._contents: dict[str, ref[Content]] = {}
        self._unneeded = deque[str]()  # digests of contents without a reference
        self._stored = set[str]()  # digests of contents in the database
        self._unwritten = WeakSet[Content]()
        self._unwritten_bytes = 0  # a lower bound
        self._checkpoint_number = 0
        self._was_moved = True  # an undo or redo came after the last step, so undone steps may be stored
        self.ledger: Ledger | None = None

    def keep(self, change: Change) -> Change:
        """Keep the contents of a change, and return the change with contents that load from this store."""
        before = change.before and self.keep_node(change.before)
        return Change(change.path, before, change.after and self.keep_node(change.after))

    def load(self) -> Loaded:
        """Read the journal; raises FileIOError (io) if it is damaged."""
        try:
            meta_rows, step_rows, checkpoint_rows, digest_rows, last, in_snapshot = (
                self.database.read_checked(
                    ("meta", "steps", "checkpoints", "snapshot", "recordings"), *_READ_JOURNAL
                )
            )
            self._checkpoint_number = last[0][0] or 0
            loaded = self._from_rows(
                meta_rows, step_rows, checkpoint_rows, {bytes(row[0]) for row in digest_rows}
            )
        except Damage as damage:
            raise self.database.damaged(str(damage)) from None
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise self.database.damaged("a row of the journal is invalid") from None
        self._unneeded.extend(loaded.unneeded.difference(bytes(row[0]).hex() for row in in_snapshot))
        return loaded

    def _from_rows(self, meta_rows: Any, step_rows: Any, checkpoint_rows: Any, digests: set[bytes]) -> Loaded:
        meta: dict[str, Any] = {}
        for key, value, check in meta_rows:
            if key not in _META_KEYS or (key != "root" and check != checksum(key, value)):
                raise Damage(f'the row {key!r} of "meta" is invalid')
            meta[key] = json.loads(value)
        needed: set[str] = set()
        dropped = int(meta.get("dropped", 0))
        steps: list[Step] = []
        begun: Step | None = None
        for number, payload, check in step_rows:
            if check != checksum(payload) or (number != _BEGUN and number != dropped + len(steps) + 1):
                raise Damage(f"step {number} has a wrong checksum, or steps before it are missing")
            step = self._step(json.loads(payload), needed)
            if number == _BEGUN:
                begun = step
            else:
                steps.append(step)
        position, end = int(meta["position"]), dropped + len(steps)
        checkpoints: dict[str, int] = {}
        for name, at, check in checkpoint_rows:
            if check != checksum(name, at) or not dropped <= at <= end:
                raise Damage("a checkpoint has a wrong checksum or position")
            checkpoints[from_bytes(name)] = at
        if not dropped <= position <= end:
            raise Damage("it has a position without steps")
        order, move = Order(tuple(steps), position, checkpoints), None
        if "move" in meta:
            changes, first, tail, target, moved_checkpoints = meta["move"]
            kept = int(first) - dropped - 1
            moved = (*steps[:kept], *(self._step(step, needed) for step in tail))
            if not dropped <= target <= dropped + len(moved):
                raise Damage("it has an undo or redo without steps")
            if moved_checkpoints is not None:
                checkpoints = {str(name): int(at) for name, at in moved_checkpoints.items()}
            after = Order(moved, target, checkpoints)
            move = PendingMove(tuple(self._change(each, needed) for each in changes), after, kept, first)
        if not {bytes.fromhex(digest) for digest in needed} <= digests:
            raise Damage("a content that a step needs is missing")
        self._stored = {digest.hex() for digest in digests}
        timeline = Timeline()
        timeline.restore(dropped, order)
        return Loaded(timeline, begun, move, self._stored - needed)

    def remove_unneeded(self) -> None:
        """Delete the contents that no step of the loaded journal needs, and shrink the file."""
        self._drop_unneeded()
        self.database.flush()
        with suppress(AgentFSError):  # the file only stays too large
            self.database.truncate_log()

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

    def begin_step(self, step: Step) -> None:
        """Write a step with its contents before it is made; raises FileIOError if that fails."""
        if self.database.temporary:
            return
        statements: list[Statement] = [_END_MOVE] if self._was_moved else []
        statements.append(("INSERT OR REPLACE INTO steps VALUES (?, ?, ?)", (_BEGUN, *_step_row(step))))
        statements += self._begun()
        self._write(_contents(step.changes), statements, sync=True)

    def begin_move(self, move: PendingMove) -> None:
        """Write an undo or redo before it is made; raises as `begin_step`."""
        if self.database.temporary:
            return
        self._was_moved = True
        steps = [_plain_step(step) for step in move.rewritten]
        checkpoints = move.order.checkpoints if steps else None
        plain = [_plain(move.changes), move.first, steps, move.order.position, checkpoints]
        changes = [*move.changes, *(change for step in move.rewritten for change in step.changes)]
        self._write(_contents(changes), [_DROP_BEGUN, put_meta("move", plain), *self._begun()], sync=True)

    def finish_step(self, made: Step | None, position: int, *, whole: bool | None) -> None:
        """Write, in the next transaction, the changes of a step that were made.

        If the process dies before that, recovery learns them from the tree. `whole` is True if all changes
        were made, False if none; None for a part, or if that is unknown.
        """
        if self.database.temporary:
            self._drop_unneeded()
            return
        statements = [*self._settled(whole)]
        if made is None:
            statements.append(_DROP_BEGUN)
        else:
            if not whole:
                update = "UPDATE steps SET payload = ?, checksum = ? WHERE number = 0"
                statements.append((update, _step_row(made)))
            if self._was_moved:
                statements += [(sql, (position,)) for sql in _DROP_UNDONE]
            statements.append(("UPDATE steps SET number = ? WHERE number = ?", (position + 1, _BEGUN)))
            statements.append(put_meta("position", position + 1))
            self._was_moved = False
        self.database.defer(statements)
        self._drop_unneeded()

    def finish_move(self, move: PendingMove | None, *, whole: bool | None) -> None:
        """Write, in the next transaction, the order after an undo or redo; None if it was not made."""
        if self.database.temporary:
            self._drop_unneeded()
            return
        statements = [*self._settled(whole), _END_MOVE]
        if move is not None:
            statements.append(put_meta("position", move.order.position))
            if move.rewritten:
                statements.append(("DELETE FROM steps WHERE number >= ?", (move.first,)))
                statements += [
                    ("INSERT INTO steps VALUES (?, ?, ?)", (number, *_step_row(step)))
                    for number, step in enumerate(move.rewritten, move.first)
                ]
                statements.append(("DELETE FROM checkpoints", ()))
                statements += [self._put_checkpoint(*each) for each in move.order.checkpoints.items()]
        self.database.defer(statements)
        self._drop_unneeded()

    def add_recorded(self, step: Step | None, position: int, statements: Sequence[Statement]) -> None:
        """Write a recorded step, with the statements for the snapshot and the recordings.

        If `step` is None, only the statements are run. Raises as `begin_step`.
        """
        if self.database.temporary:
            return
        if step is not None:
            statements = [
                *([_END_MOVE] if self._was_moved else ()),
                *statements,
                ("DELETE FROM steps WHERE number > ?", (position,)),
                ("DELETE FROM checkpoints WHERE position > ?", (position,)),
                ("INSERT INTO steps VALUES (?, ?, ?)", (position + 1, *_step_row(step))),
                put_meta("position", position + 1),
            ]
            self._was_moved = False
        if statements:
            self._write(list(self._unwritten), statements, sync=step is not None)

    def step_to_json(self, step: Step) -> dict[str, Any]:
        """Return a step as JSON values."""
        return _plain_step(step)

    def step_from_json(self, plain: Any) -> Step:
        """Return the step for the JSON values of `step_to_json`."""
        return self._step(plain, set())

    def node_from_json(self, plain: Any) -> Node | None:
        """Return the node for the JSON values of `node_to_json`."""
        return self._node(plain, set())

    def set_checkpoint(self, name: str, position: int) -> None:
        """Write a checkpoint; the next step flushes it to the disk."""
        if self.database.temporary:
            return
        add = self._put_checkpoint(name, position)
        self.database.write([add, *self._begun(), *self._settled(whole=True)])

    def _put_checkpoint(self, name: str, position: int) -> Statement:
        self._checkpoint_number += 1
        key = to_bytes(name)
        row = (key, position, self._checkpoint_number, checksum(key, position))
        return "INSERT OR REPLACE INTO checkpoints VALUES (?, ?, ?, ?)", row

    def drop_steps(self, dropped: int) -> None:
        """Write, in the next transaction, that the oldest steps were dropped."""
        if not self.database.temporary:
            self.database.defer(
                [
                    put_meta("dropped", dropped),
                    ("DELETE FROM steps WHERE number BETWEEN 1 AND ?", (dropped,)),
                    ("DELETE FROM checkpoints WHERE position < ?", (dropped,)),
                ]
            )
        self._drop_unneeded()

    def close(self) -> None:
        """Run the deferred statements, and close the database; a temporary one is deleted."""
        self.database.flush()
        self.database.close()
        for content in list(self._unwritten):
            content.unwritten = None

    def _begun(self) -> Sequence[Statement]:
        return self.ledger.begun() if self.ledger is not None else ()

    def _settled(self, whole: bool | None) -> Sequence[Statement]:
        return self.ledger.settled(whole) if self.ledger is not None else ()

    def keep_node(self, node: Node, *, compressed: bool = False) -> Node:
        """Keep the content of a node, and return the node with content that loads from this store.

        Contents in a state directory are always compressed.
        """
        if not isinstance(node, FileNode):
            return node
        with self._lock:
            content = self._known(node.digest)
            if content is None:
                data = node.load()
                content = self._add(node.digest)
                content.unwritten = _pack(data, compressed or not self.database.temporary)
                self._unwritten.add(content)
                self._unwritten_bytes += len(content.unwritten)
                if self._unwritten_bytes > _UNWRITTEN_BYTES:
                    self._write_or_forget(content)
                    self._unwritten_bytes = 0
        return replace(node, load=content)

    def _write_or_forget(self, newest: Content) -> None:
        try:
            self._write(list(self._unwritten), [])
        except BaseException:  # the error may refer to the content, which must not count as kept
            del self._contents[newest.digest]
            self._unwritten.discard(newest)
            raise

    def _known(self, digest: str) -> Content | None:
        found = self._contents.get(digest)
        return None if found is None else found()

    def _add(self, digest: str) -> Content:
        content, unneeded = Content(self, digest), self._unneeded
        self._contents[digest] = ref(content, lambda _: unneeded.append(digest))
        return content

    def _write(
        self, contents: Iterable[Content], statements: Sequence[Statement], *, sync: bool = False
    ) -> None:
        """Write new contents, then run the statements, in one transaction."""
        new = [content for content in contents if content.unwritten is not None]
        add = "INSERT OR IGNORE INTO contents VALUES (?, ?)"
        rows: list[Statement] = [(add, (bytes.fromhex(each.digest), each.unwritten)) for each in new]
        self.database.write([*rows, *statements], sync=sync)
        for content in new:
            self._stored.add(content.digest)
            content.unwritten = None
            self._unwritten.discard(content)

    def _drop_unneeded(self) -> None:
        """Delete contents without a reference, after the deferred deletion of their steps."""
        with self._lock:  # if the content is kept again, its write must follow the delete
            while self._unneeded:
                digest = self._unneeded.popleft()
                if self._known(digest) is not None:
                    continue
                self._contents.pop(digest, None)
                if digest in self._stored:
                    self._stored.discard(digest)
                    self.database.defer([(_DROP_CONTENT, (bytes.fromhex(digest),) * 2)])

    def _step(self, plain: Any, needed: set[str]) -> Step:
        changes = tuple(self._change(change, needed) for change in plain["changes"])
        lost = tuple(map(str, plain.get("lost", ())))
        return Step(changes, float(plain["time"]), str(plain.get("label", "")), lost)

    def _change(self, plain: Any, needed: set[str]) -> Change:
        path, before, after = plain
        if "\0" in path or {"", ".", ".."} & set(path.split("/")):
            raise ValueError(path)
        return Change(path, self._node(before, needed), self._node(after, needed))

    def _node(self, plain: Any, needed: set[str]) -> Node | None:
        match plain:
            case None:
                return None
            case ["link", str(), *_] | ["directory", int() | None, *_] | ["file", int(), str(), int(), *_]:
                node = node_from_json(list(plain))
            case _:
                raise ValueError(plain)
        if not isinstance(node, FileNode):
            return node
        needed.add(node.digest)
        return replace(node, load=self._known(node.digest) or self._add(node.digest))


def _pack(data: bytes, compressed: bool) -> bytes:
    packed = zlib.compress(data, 1) if compressed and len(data) > _UNCOMPRESSED else data
    return b"z" + packed if len(packed) < len(data) else b"-" + data


def _unpack(packed: bytes) -> bytes:
    return zlib.decompress(packed[1:]) if packed[:1] == b"z" else packed[1:]


def _plain(changes: Iterable[Change]) -> list[Any]:
    return [[change.path, node_to_json(change.before), node_to_json(change.after)] for change in changes]


def _plain_step(step: Step) -> dict[str, Any]:
    plain: dict[str, Any] = {"time": step.time, "changes": _plain(step.changes)}
    if step.label:
        plain |= {"label": step.label, "lost": list(step.lost)}
    return plain


def _step_row(step: Step) -> tuple[bytes, int]:
    payload = stored_json(_plain_step(step))
    return payload, checksum(payload)


def _contents(changes: Iterable[Change]) -> list[Content]:
    nodes = (node for change in changes for node in (change.before, change.after))
    loads = (node.load for node in nodes if isinstance(node, FileNode))
    return [load for load in loads if isinstance(load, Content)]
