"""Recordings: the changes that any process makes during a block become one step of the journal."""

import json
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from agentfs.advice import Advice, Joined, call
from agentfs.errors import AgentFSError, RefusedError
from agentfs.fs import Change, DirectoryNode, Root, directories_above
from agentfs.history.database import Damage, Statement, checksum, to_json
from agentfs.history.report import bounded_patch, file_changes, file_lines, name_paths, patch_notes
from agentfs.history.snapshot import Difference, Snapshot
from agentfs.history.store import Store
from agentfs.history.take_back import is_same_node, merge_nodes
from agentfs.history.timeline import Step
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
    root: Root
    limits: Limits
    parts: list[Step] = field(default_factory=list[Step])
    lost: dict[str, None] = field(default_factory=dict[str, None])
    not_covered: Mapping[str, int] = field(default_factory=dict[str, int])


class Recordings:
    """The open recordings of one journal, and the snapshot that they compare with.

    Used under the lock of the journal. Each change belongs to one recording. When a recording ends, it gets
    all changes since the last begin or end of any recording. When another one begins, the innermost open
    recording gets them, as a step. So it does before the workspace itself changes one of the same paths:
    changes by the workspace are steps of their own.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._snapshot = Snapshot(store)
        self._open: list[OpenRecording] = []

    def settle(self, position: int) -> Step | None:
        """Store what was recorded so far as a step of the innermost open recording; None without changes."""
        if not self._open:
            return None
        opened = self._open[-1]
        difference = self._difference(opened, opened.began)
        step = self._end_part(opened, difference, opened.label)
        self._write(step, position, [*difference.statements, self._row(opened)])
        self._snapshot.take_over(difference)
        return step

    def settle_before(self, changes: Sequence[Change], position: int) -> Step | None:
        """Settle if these changes by the workspace follow changes by others of the same paths."""
        return self.settle(position) if self._open and self._follow_others(changes) else None

    def _follow_others(self, changes: Sequence[Change]) -> bool:
        """Return True if a path, or its directory, is not as it was last seen, or an entry below is gone."""
        seen, paths = self._snapshot.paths, {change.path for change in changes}
        removed: set[str] = set()
        for path, before, after in ((each.path, each.before, each.after) for each in changes):
            known = seen.get(path)
            if known is None:
                if before is not None:
                    return True
            elif known.node is not None and not is_same_node(known.node, before):
                return True
            parent = os.path.dirname(path)
            if parent and parent not in seen and parent not in paths:
                return True
            if isinstance(before, DirectoryNode) and not isinstance(after, DirectoryNode):
                removed.add(path)
        return bool(removed) and any(
            path not in paths and not removed.isdisjoint(directories_above(path)) for path in seen
        )

    def begin(self, root: Root, limits: Limits, label: str, *, ignored: bool) -> OpenRecording:
        """Open a recording, after `settle`."""
        number = max((each.number for each in self._open), default=0) + 1
        opened = OpenRecording(number, label, time.time_ns(), ignored, root.unrecorded, limits)
        self._open.append(opened)
        try:
            difference = self._difference(opened, None)
            self._write(None, 0, [*difference.statements, self._row(opened)])
        except BaseException:
            self._open.remove(opened)
            raise
        self._snapshot.take_over(difference)
        return opened

    def end(self, opened: OpenRecording, position: int, label: str) -> Step | None:
        """End a recording, and write its step down for a position of the timeline."""
        if opened not in self._open:
            raise RefusedError(
                "This recording belongs to the process from which this one was forked.", hint="It ends there."
            )
        try:
            difference = self._difference(opened, opened.began)
            opened.not_covered = difference.not_covered
            step = self._end_part(opened, difference, label)
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
        for path, before, after in ((each.path, each.before, each.after) for each in changes):
            seen = self._snapshot.paths.get(path)
            # An undo may change a file that others have changed too; their part stays to be recorded.
            merged = merge_nodes(path, before, after, None if seen is None else seen.node)
            node = after if merged.clash is not None else merged.node
            if isinstance(node, DirectoryNode) and node.mode is None:  # the system has decided the mode
                with suppress(AgentFSError):
                    node = self._open[-1].root.node(path, max_bytes=0)
            statements += self._snapshot.put(path, node and self._store.keep_node(node))
            parent = os.path.dirname(path)
            if node is not None and parent and parent not in self._snapshot.paths:  # an ignored directory
                statements += self._snapshot.put(parent, DirectoryNode())
        if not self._store.database.temporary:
            self._store.database.defer(statements)

    def restore(self, root: Root, limits: Limits) -> list[OpenRecording]:
        """Reopen the recordings that a dead process left open; return them, the innermost first."""
        (rows,) = self._store.database.read(_READ)
        for number, payload, check in rows:
            if check != checksum(payload):
                raise Damage("a recording has a wrong checksum")
            plain: dict[str, Any] = json.loads(payload)
            step = self._store.step_from_json(plain["step"])
            opened = OpenRecording(
                number, step.label, plain["began"], plain["ignored"], root.unrecorded, limits
            )
            opened.lost = dict.fromkeys(step.lost)
            self._open.append(opened)
        return self._open[::-1]

    def _difference(self, opened: OpenRecording, since: int | None) -> Difference:
        ignored = any(each.ignored for each in self._open)
        return self._snapshot.difference(opened.root, opened.limits, ignored=ignored, since=since)

    def _end_part(self, opened: OpenRecording, difference: Difference, label: str) -> Step | None:
        opened.lost |= dict.fromkeys(difference.lost)
        if not difference.changes:
            return None
        step = Step(difference.changes, time.time(), label, tuple(opened.lost))
        opened.parts.append(step)
        return step

    def _row(self, opened: OpenRecording) -> Statement:
        step = Step((), 0.0, opened.label, tuple(opened.lost))
        plain = {"began": opened.began, "ignored": opened.ignored, "step": self._store.step_to_json(step)}
        payload = to_json(plain)
        return _PUT, (opened.number, payload, checksum(payload))

    def _write(self, step: Step | None, position: int, statements: Sequence[Statement]) -> None:
        self._store.add_recorded(step, position, statements)


def _total(parts: Iterable[Step]) -> list[Change]:
    """Return the net changes of a recording, without lines that the workspace itself changed in between."""
    total: dict[str, Change] = {}
    for change in (each for part in parts for each in part.changes):
        path, known = change.path, total.get(change.path)
        before = change.before if known is None else known.before
        if known is not None and not is_same_node(known.after, change.before):
            merged = merge_nodes(path, known.after, known.before, change.before)
            before = known.before if merged.clash is not None else merged.node
        total[path] = Change(path, before, change.after)
    return [change for change in total.values() if not change.changes_nothing]


def recorded_result(opened: OpenRecording, root: Root, limits: Limits) -> RecordedResult:
    """Return the result of a recording that has ended."""
    changes, may_show = _total(opened.parts), root.may_show_recorded
    patch, missing = bounded_patch(changes, may_show)
    files = file_changes(changes, count_lines=True, may_show=may_show, display=root.display_path)
    notes = patch_notes(files, missing)
    lost = tuple(map(root.display_path, sorted(opened.lost)))
    if lost:
        notes.append(f"also changed, but undo cannot restore it, as no content is kept: {name_paths(lost)}")
    not_covered = {reason: count for reason, count in opened.not_covered.items() if count}
    left_out = ", ".join(f"{count} {reason}" for reason, count in sorted(not_covered.items()))
    advice = Advice("undo takes it back: ", call("undo")) if len(opened.parts) == 1 else ""
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
