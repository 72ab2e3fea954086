"""Recordings: the changes that any process makes during a block become one step of the journal."""

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agentfs.advice import Advice, Joined, call
from agentfs.errors import RefusedError
from agentfs.fs import Change, Node, Root
from agentfs.history.database import Damage, Statement, checksum, to_json
from agentfs.history.report import MayShow, bounded_patches, file_changes, file_lines, name_paths, patch_notes
from agentfs.history.snapshot import Difference, Snapshot
from agentfs.history.store import Store
from agentfs.history.take_back import is_same_node, merge_nodes
from agentfs.history.timeline import Step, net_changes
from agentfs.limits import Limits
from agentfs.results import RecordedResult
from agentfs.text import Shrink, fitted, footer, plural

MAX_LABEL = 200  # characters
_READ = "SELECT number, payload, checksum FROM recordings ORDER BY number"
_PUT = "INSERT OR REPLACE INTO recordings VALUES (?, ?, ?)"
_DROP = "DELETE FROM recordings WHERE number = ?"


@dataclass
class OpenRecording:
    """A recording whose block is still running."""

    number: int
    label: str
    began: int  # in nanoseconds since 1970
    ignored: bool  # True if it includes ignored files
    changes: dict[str, Change] = field(default_factory=dict[str, Change])
    earlier: list[Step] = field(default_factory=list[Step])  # ended by the begin of another recording
    lost: dict[str, None] = field(default_factory=dict[str, None])
    not_covered: Mapping[str, int] = field(default_factory=dict[str, int])

    def step(self, label: str) -> Step | None:
        """Return the recorded changes as a step; None if nothing can be undone."""
        if not self.changes:
            return None
        return Step(tuple(self.changes.values()), time.time(), label, tuple(self.lost))


class Recordings:
    """The open recordings of one journal, and the snapshot that they compare with.

    Used under the lock of the journal. Each change belongs to one recording. When a recording ends, it gets
    all changes since the last begin or end of any recording. When another one begins, the innermost open
    recording gets them, as a step. Changes by the workspace itself belong to no recording.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._snapshot = Snapshot(store)
        self._open: list[OpenRecording] = []

    def settle(self, root: Root, limits: Limits, position: int) -> Step | None:
        """End the step of the innermost open recording before another one begins, and store it."""
        if not self._open:
            return None
        opened = self._open[-1]
        difference = self._difference(root, limits, opened.began)
        self._absorb(opened, difference)
        if (step := opened.step(opened.label)) is not None:
            opened.changes.clear()
            opened.earlier.append(step)
        self._write(step, position, [*difference.statements, self._row(opened)])
        self._snapshot.take_over(difference)
        return step

    def begin(self, root: Root, limits: Limits, label: str, *, ignored: bool) -> OpenRecording:
        """Open a recording, after `settle`."""
        number = max((each.number for each in self._open), default=0) + 1
        opened = OpenRecording(number, label, time.time_ns(), ignored)
        self._open.append(opened)
        try:
            difference = self._difference(root, limits, None)
            self._write(None, 0, [*difference.statements, self._row(opened)])
        except BaseException:
            self._open.remove(opened)
            raise
        self._snapshot.take_over(difference)
        return opened

    def end(
        self, opened: OpenRecording, root: Root, limits: Limits, position: int, label: str
    ) -> Step | None:
        """End a recording, and write its step down for a position of the timeline."""
        if opened not in self._open:
            raise RefusedError(
                "This recording belongs to the process from which this one was forked.", hint="It ends there."
            )
        try:
            difference = self._difference(root, limits, opened.began)
            self._absorb(opened, difference)
            opened.not_covered = difference.not_covered
            step = opened.step(label)
            drop: Statement = (_DROP, (opened.number,))
            self._write(step, position, [*difference.statements, drop])
            self._snapshot.take_over(difference)
        finally:
            self._open.remove(opened)
        return step

    def observe(self, changes: Iterable[Change]) -> None:
        """Exclude changes by the workspace itself from the open recordings."""
        if not self._open:
            return
        statements: list[Statement] = []
        for change in changes:
            seen = self._snapshot.paths.get(change.path)
            before = None if seen is None else seen.node
            if (seen is None or before is not None) and not is_same_node(before, change.before):
                self._add(self._open[-1], Change(change.path, before, change.before))
                statements.append(self._row(self._open[-1]))
            statements += self._snapshot.put(change.path, change.after)
        if not self._store.database.temporary:
            self._store.database.defer(statements)

    def restore(self) -> list[OpenRecording]:
        """Reopen the recordings that a dead process left open; return them, the innermost first."""
        (rows,) = self._store.database.read(_READ)
        for number, payload, check in rows:
            if check != checksum(payload):
                raise Damage("a recording has a wrong checksum")
            plain: dict[str, Any] = json.loads(payload)
            step = self._store.step_from_json(plain["step"])
            opened = OpenRecording(number, step.label, plain["began"], plain["ignored"])
            opened.changes = {change.path: change for change in step.changes}
            opened.lost = dict.fromkeys(step.lost)
            self._open.append(opened)
        return self._open[::-1]

    def _difference(self, root: Root, limits: Limits, since: int | None) -> Difference:
        ignored = any(each.ignored for each in self._open)
        return self._snapshot.difference(root, limits, ignored=ignored, since=since)

    def _absorb(self, opened: OpenRecording, difference: Difference) -> None:
        for change in difference.changes:
            self._add(opened, change)
        opened.lost |= dict.fromkeys(difference.lost)

    def _add(self, opened: OpenRecording, change: Change) -> None:
        """Add a later change, without the lines that the workspace itself changed in between."""
        path, known = change.path, opened.changes.get(change.path)
        if known is not None:
            before: Node | None = known.before
            if not is_same_node(known.after, change.before):
                merged = merge_nodes(path, known.after, known.before, change.before)
                if merged.clash is None:
                    before = merged.node and self._store.keep_node(merged.node)
            change = Change(path, before, change.after)
        opened.changes[path] = change
        if change.changes_nothing:
            del opened.changes[path]

    def _row(self, opened: OpenRecording) -> Statement:
        step = Step(tuple(opened.changes.values()), 0.0, opened.label, tuple(opened.lost))
        plain = {"began": opened.began, "ignored": opened.ignored, "step": self._store.step_to_json(step)}
        payload = to_json(plain)
        return _PUT, (opened.number, payload, checksum(payload))

    def _write(self, step: Step | None, position: int, statements: Sequence[Statement]) -> None:
        self._store.add_recorded(step, position, statements)


def recorded_result(
    opened: OpenRecording, step: Step | None, may_show: MayShow, limits: Limits
) -> RecordedResult:
    """Return the result of a recording that has ended."""
    steps = [each.changes for each in (*opened.earlier, step) if each is not None]
    changes = net_changes(steps).effective
    patches, missing = bounded_patches(changes, may_show)
    patch = b"".join(patches.values())
    files = file_changes(changes, count_lines=True, may_show=may_show)
    notes = patch_notes(files, missing)
    lost = tuple(sorted(opened.lost))
    if lost:
        notes.append(f"also changed, but undo cannot restore it, as no content is kept: {name_paths(lost)}")
    not_covered = {reason: count for reason, count in opened.not_covered.items() if count}
    left_out = ", ".join(f"{count} {reason}" for reason, count in sorted(not_covered.items()))
    advice = Advice("undo takes it back: ", call("undo")) if step is not None and len(steps) == 1 else ""
    ending = footer(advice, f"not recorded: {left_out}" if left_out else "")
    head = f"{plural(len(files), 'path')} changed." if files else "Nothing was changed."
    lines = file_lines(files)

    def answer(count: int) -> RecordedResult:
        more = footer(plural(len(lines) - count, "more line")) if count < len(lines) else ""
        text = Joined("\n", *filter(None, [head, *lines[:count], more, *notes, ending]))
        return RecordedResult(
            files, patch, None, opened.label, lost, not_covered, notes=tuple(notes), text=text
        )

    return fitted(limits, Shrink(len(lines), answer))
