"""The steps of a journal in the database of a state directory.

A change is written down before it is made, and its outcome afterwards.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Protocol

from agentfs.fs import Change, FileNode, LinesBy, node_to_json
from agentfs.history.storage.contents import Content, Contents
from agentfs.history.storage.database import (
    Damage,
    Statement,
    checksum,
    from_bytes,
    put_meta,
    stored_json,
    to_bytes,
)
from agentfs.history.timeline import Acceptance, AcceptedFile, Order, PendingRewind, Step, Timeline

_BEGUN = 0  # the number of the step that is under way
_META_KEYS = {"root", "position", "dropped", "rewind", "processes"}
_DROP_BEGUN: Statement = ("DELETE FROM steps WHERE number = ?", (_BEGUN,))
_END_REWIND: Statement = ("DELETE FROM meta WHERE key = 'rewind'", ())
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
    "SELECT payload, checksum FROM accepted ORDER BY number",
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
    rewind: PendingRewind | None
    accepted: tuple[Acceptance, ...]


class StepLog:
    """Writes the steps of a journal, undo and redo to the database that has their contents.

    Under the lock of the journal, each step or rewind is finished before the next one begins.
    """

    def __init__(self, contents: Contents) -> None:
        self.contents, self._database = contents, contents.database
        self._checkpoint_number = 0
        self._was_rewound = True  # an undo or redo came after the last step, so undone steps may be stored
        self.ledger: Ledger | None = None

    def load(self) -> Loaded:
        """Read the journal; raises FileIOError (io) if it is damaged."""
        try:
            meta_rows, step_rows, checkpoint_rows, digest_rows, last, in_snapshot, accepted_rows = (
                self._database.read_checked(
                    ("meta", "steps", "checkpoints", "snapshot", "recordings", "accepted"), *_READ_JOURNAL
                )
            )
            self._checkpoint_number = last[0][0] or 0
            digests, seen = ({bytes(row[0]).hex() for row in rows} for rows in (digest_rows, in_snapshot))
            loaded = self._from_rows(meta_rows, step_rows, checkpoint_rows, accepted_rows)
            self.contents.restore(digests, seen)
        except Damage as damage:
            raise self._database.damaged(str(damage)) from None
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise self._database.damaged("a row of the journal is invalid") from None
        return loaded

    def _from_rows(self, meta_rows: Any, step_rows: Any, checkpoint_rows: Any, accepted_rows: Any) -> Loaded:
        meta: dict[str, Any] = {}
        for key, value, check in meta_rows:
            if key not in _META_KEYS or (key != "root" and check != checksum(key, value)):
                raise Damage(f'the row {key!r} of "meta" is invalid')
            meta[key] = json.loads(value)
        dropped = int(meta.get("dropped", 0))
        steps: list[Step] = []
        begun: Step | None = None
        for number, payload, check in step_rows:
            if check != checksum(payload) or (number != _BEGUN and number != dropped + len(steps) + 1):
                raise Damage(f"step {number} has a wrong checksum, or steps before it are missing")
            step = self.step_from_json(json.loads(payload))
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
        order, rewind = Order(tuple(steps), position, checkpoints), None
        if "rewind" in meta:
            changes, first, tail, target, moved_checkpoints = meta["rewind"]
            kept = int(first) - dropped - 1
            moved = (*steps[:kept], *(self.step_from_json(step) for step in tail))
            if not dropped <= target <= dropped + len(moved):
                raise Damage("it has an undo or redo without steps")
            if moved_checkpoints is not None:
                checkpoints = {str(name): int(at) for name, at in moved_checkpoints.items()}
            after = Order(moved, target, checkpoints)
            rewind = PendingRewind(tuple(self._change(each) for each in changes), after, kept, first)
        timeline = Timeline()
        timeline.restore(dropped, order)
        accepted: list[Acceptance] = []
        for payload, check in accepted_rows:
            if check != checksum(payload):
                raise Damage("an acceptance has a wrong checksum")
            seconds, files = json.loads(payload)
            accepted.append(Acceptance(float(seconds), tuple(self._accepted_file(each) for each in files)))
        return Loaded(timeline, begun, rewind, tuple(accepted))

    def _accepted_file(self, plain: Any) -> AcceptedFile:
        path, base, now, ranges, mode, whole = plain
        base, now = map(self.contents.node_from_json, (base, now))
        ranges = tuple((int(start), int(end)) for start, end in ranges)
        return AcceptedFile(str(path), base, now, ranges, bool(mode), bool(whole))

    def accept(self, added: Acceptance, kept: int) -> None:
        """Write what a review has accepted; only so many of the latest are kept. Raises as `begin_step`."""
        files = [
            (path, node_to_json(base), node_to_json(now), *rest) for path, base, now, *rest in added.files
        ]
        payload = stored_json((added.time, files))
        statements: list[Statement] = [
            ("INSERT INTO accepted (payload, checksum) VALUES (?, ?)", (payload, checksum(payload))),
            ("DELETE FROM accepted WHERE number <= (SELECT max(number) FROM accepted) - ?", (kept,)),
        ]
        statements += [*self._begun(), *self._settled(whole=True)]
        self.contents.write(self.contents.unwritten(), statements, sync=True)

    def begin_step(self, step: Step) -> None:
        """Write a step with its contents before it is made; raises FileIOError if that fails."""
        statements: list[Statement] = [_END_REWIND] if self._was_rewound else []
        statements.append(("INSERT OR REPLACE INTO steps VALUES (?, ?, ?)", (_BEGUN, *_step_row(step))))
        statements += self._begun()
        self.contents.write(_contents(step.changes), statements, sync=True)

    def begin_rewind(self, rewind: PendingRewind) -> None:
        """Write an undo or redo before it is made; raises as `begin_step`."""
        self._was_rewound = True
        steps = [step_to_json(step) for step in rewind.rewritten]
        checkpoints = rewind.order.checkpoints if steps else None
        plain = [_changes_to_json(rewind.changes), rewind.first, steps, rewind.order.position, checkpoints]
        changes = [*rewind.changes, *(change for step in rewind.rewritten for change in step.changes)]
        self.contents.write(
            _contents(changes), [_DROP_BEGUN, put_meta("rewind", plain), *self._begun()], sync=True
        )

    def finish_step(self, made: Step | None, position: int, *, whole: bool | None) -> None:
        """Write, in the next transaction, the changes of a step that were made.

        If the process dies before that, recovery learns them from the tree. `whole` is True if all changes
        were made, False if none; None for a part, or if that is unknown.
        """
        statements = [*self._settled(whole)]
        if made is None:
            statements.append(_DROP_BEGUN)
        else:
            if not whole:
                update = "UPDATE steps SET payload = ?, checksum = ? WHERE number = 0"
                statements.append((update, _step_row(made)))
            if self._was_rewound:
                statements += [(sql, (position,)) for sql in _DROP_UNDONE]
            statements.append(("UPDATE steps SET number = ? WHERE number = ?", (position + 1, _BEGUN)))
            statements.append(put_meta("position", position + 1))
            self._was_rewound = False
        self._database.defer(statements)

    def finish_rewind(self, rewind: PendingRewind | None, *, whole: bool | None) -> None:
        """Write, in the next transaction, the order after an undo or redo; None if it was not made."""
        statements = [*self._settled(whole), _END_REWIND]
        if rewind is not None:
            statements.append(put_meta("position", rewind.order.position))
            if rewind.rewritten:
                statements.append(("DELETE FROM steps WHERE number >= ?", (rewind.first,)))
                statements += [
                    ("INSERT INTO steps VALUES (?, ?, ?)", (number, *_step_row(step)))
                    for number, step in enumerate(rewind.rewritten, rewind.first)
                ]
                statements.append(("DELETE FROM checkpoints", ()))
                statements += [self._put_checkpoint(*each) for each in rewind.order.checkpoints.items()]
        self._database.defer(statements)

    def add_recorded(self, step: Step | None, position: int, statements: Sequence[Statement]) -> None:
        """Write a recorded step, with the statements for the snapshot and the recordings.

        If `step` is None, only the statements are run. Raises as `begin_step`.
        """
        if step is not None:
            statements = [
                *([_END_REWIND] if self._was_rewound else ()),
                *statements,
                ("DELETE FROM steps WHERE number > ?", (position,)),
                ("DELETE FROM checkpoints WHERE position > ?", (position,)),
                ("INSERT INTO steps VALUES (?, ?, ?)", (position + 1, *_step_row(step))),
                put_meta("position", position + 1),
            ]
            self._was_rewound = False
        if statements:
            self.contents.write(self.contents.unwritten(), statements, sync=step is not None)

    def set_checkpoint(self, name: str, position: int) -> None:
        """Write a checkpoint; the next step flushes it to the disk."""
        add = self._put_checkpoint(name, position)
        self._database.write([add, *self._begun(), *self._settled(whole=True)])

    def _put_checkpoint(self, name: str, position: int) -> Statement:
        self._checkpoint_number += 1
        key = to_bytes(name)
        row = (key, position, self._checkpoint_number, checksum(key, position))
        return "INSERT OR REPLACE INTO checkpoints VALUES (?, ?, ?, ?)", row

    def drop_steps(self, dropped: int) -> None:
        """Write, in the next transaction, that the oldest steps were dropped."""
        self._database.defer(
            [
                put_meta("dropped", dropped),
                ("DELETE FROM steps WHERE number BETWEEN 1 AND ?", (dropped,)),
                ("DELETE FROM checkpoints WHERE position < ?", (dropped,)),
            ]
        )

    def _begun(self) -> Sequence[Statement]:
        return self.ledger.begun() if self.ledger is not None else ()

    def _settled(self, whole: bool | None) -> Sequence[Statement]:
        return self.ledger.settled(whole) if self.ledger is not None else ()

    def step_from_json(self, plain: Any) -> Step:
        """Return the step for the JSON values of `step_to_json`."""
        changes = tuple(self._change(change) for change in plain["changes"])
        lost = tuple(map(str, plain.get("lost", ())))
        kind, name = map(str, plain.get("author", ("tool", "")))
        others = tuple(
            LinesBy(str(path), int(start), int(end), (str(by), str(called)))
            for path, start, end, (by, called) in plain.get("by_others", ())
        )
        return Step(changes, float(plain["time"]), str(plain.get("label", "")), lost, (kind, name), others)

    def _change(self, plain: Any) -> Change:
        path, before, after, *moved_from = plain
        if "\0" in path or {"", ".", ".."} & set(path.split("/")):
            raise ValueError(path)
        before, after = map(self.contents.node_from_json, (before, after))
        return Change(path, before, after, str(moved_from[0]) if moved_from else "")


def _changes_to_json(changes: Iterable[Change]) -> list[Any]:
    return [
        [each.path, node_to_json(each.before), node_to_json(each.after), *filter(None, [each.moved_from])]
        for each in changes
    ]


def step_to_json(step: Step) -> dict[str, Any]:
    """Return a step as JSON values."""
    plain: dict[str, Any] = {"time": step.time, "changes": _changes_to_json(step.changes)}
    if step.author[1]:
        plain["author"] = step.author
    if step.by_others:
        plain["by_others"] = step.by_others
    if step.label:
        plain |= {"label": step.label, "lost": list(step.lost)}
    return plain


def _step_row(step: Step) -> tuple[bytes, int]:
    payload = stored_json(step_to_json(step))
    return payload, checksum(payload)


def _contents(changes: Iterable[Change]) -> list[Content]:
    nodes = (node for change in changes for node in (change.before, change.after))
    loads = (node.load for node in nodes if isinstance(node, FileNode))
    return [load for load in loads if isinstance(load, Content)]
