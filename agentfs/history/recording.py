"""Recordings: the changes that any process makes during a block become one step of the journal."""

import json
import time
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from agentfs import call_context
from agentfs.advice import Advice, Joined, call
from agentfs.errors import AgentFSError, ClosedError, DeadlineExceededError, RefusedError
from agentfs.fs import Change, Node, Root, quote
from agentfs.fs.context import file_clock
from agentfs.history.database import Damage, Statement, checksum, to_json
from agentfs.history.report import MayShow, bounded_patch, file_changes, file_lines, name_paths, patch_notes
from agentfs.history.snapshot import Difference, Snapshot
from agentfs.history.store import Store
from agentfs.history.take_back import is_same_node, merge_nodes
from agentfs.history.timeline import Step, Timeline
from agentfs.limits import Limits
from agentfs.results import RecordedResult
from agentfs.text import Shrink, fitted, footer, plural

MAX_LABEL = 200  # characters
_WAIT_SECONDS = 0.05  # between two checks for the end of another thread's scan
_CLOCK_STEP = 0.0005  # seconds, less than one step of the file clock
_READ = "SELECT number, payload, checksum FROM recordings ORDER BY number"
_PUT = "INSERT OR REPLACE INTO recordings VALUES (?, ?, ?)"
_DROP = "DELETE FROM recordings WHERE number = ?"


@dataclass
class OpenRecording:
    """A recording whose step is not in the journal yet.

    It is late if its block has ended, but its end failed.
    """

    number: int
    label: str
    root: Root
    limits: Limits
    ignored: bool  # True if it includes ignored files
    began: int = 0  # by the file clock
    is_late: bool = False
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

    Each change belongs to one recording. When a recording ends, it gets all changes since the last begin or
    end of any recording. When another one begins, the innermost open recording gets them, as a step. Changes
    by the workspace itself belong to no recording.

    One thread at a time scans the tree. It does not hold the lock of the journal, so that other threads can
    change files. The changes by the workspace during a scan are excluded afterwards.
    """

    def __init__(self, store: Store, timeline: Timeline, lock: AbstractContextManager[object]) -> None:
        self._store, self._timeline, self._lock = store, timeline, lock
        self._snapshot = Snapshot(store)
        self._open: list[OpenRecording] = []
        self._scan_lock = Lock()
        self._own: set[str] | None = None  # paths that the workspace changes during a scan; None: no scan

    def begin(self, root: Root, limits: Limits, label: str, *, ignored: bool) -> OpenRecording:
        """Open a recording; end the step of the innermost open one before."""
        with self._scanning():
            if self._open:
                self._settle(self._open[-1])
            number = max((each.number for each in self._open), default=0) + 1
            opened = OpenRecording(number, label, root, limits, ignored)
            with self._scanned(opened, None) as difference:
                opened.began = file_clock()
                self._write(None, [*difference.statements, self._row(opened)])
                self._snapshot.take_over(difference)
                self._open.append(opened)
        while file_clock() <= opened.began:  # then every file of the block is younger than all others
            time.sleep(_CLOCK_STEP)
        return opened

    def end(self, opened: OpenRecording) -> Step | None:
        """End a recording, and add its step to the timeline. If this fails, the recording is late."""
        if opened not in self._open:
            raise RefusedError(
                "This recording belongs to the process from which this one was forked.", hint="It ends there."
            )
        label = opened.label
        if opened.is_late:
            label = f"{label} (recorded until {time.strftime('%Y-%m-%d %H:%M:%S')})"
        opened.is_late = True
        try:
            with self._scanning(), self._scanned(opened, opened.began) as difference:
                self._absorb(opened, difference)
                opened.not_covered = difference.not_covered
                step = opened.step(label)
                self._write(step, [*difference.statements, (_DROP, (opened.number,))])
                self._snapshot.take_over(difference)
                self._open.remove(opened)
                if step is not None:
                    self._timeline.add(step)
        except (ClosedError, RefusedError):
            raise
        except AgentFSError as error:
            raise _late_error(opened, error) from None
        return step

    def end_late(self) -> list[tuple[OpenRecording, Step | None]]:
        """End the recordings whose end has failed before, the innermost first; return their steps."""
        return [(each, self.end(each)) for each in self._open[::-1] if each.is_late]

    def observe(self, changes: Iterable[Change]) -> None:
        """Exclude changes by the workspace itself from the open recordings."""
        if not self._open and self._own is None:
            return
        statements: list[Statement] = []
        for change in changes:
            seen = self._snapshot.paths.get(change.path)
            before = None if seen is None else seen.node
            if (seen is None or before is not None) and not is_same_node(before, change.before):
                if self._open:
                    self._add(self._open[-1], Change(change.path, before, change.before))
                    statements.append(self._row(self._open[-1]))
            statements += self._snapshot.put(change.path, change.after)
            if self._own is not None:
                self._own.add(change.path)
        if not self._store.database.temporary:
            self._store.database.defer(statements)

    def restore(self, root: Root, limits: Limits) -> None:
        """Open the recordings that a dead process left open; they are late."""
        (rows,) = self._store.database.read(_READ)
        for number, payload, check in rows:
            if check != checksum(payload):
                raise Damage("a recording has a wrong checksum")
            plain: dict[str, Any] = json.loads(payload)
            step = self._store.step_from_json(plain["step"])
            opened = OpenRecording(number, step.label, root, limits, plain["ignored"], plain["began"], True)
            opened.changes = {change.path: change for change in step.changes}
            opened.lost = dict.fromkeys(step.lost)
            self._open.append(opened)

    @contextmanager
    def _scanning(self) -> Generator[None]:
        """Keep other scans out of the block, until the deadline of the call."""
        while not self._scan_lock.acquire(timeout=_WAIT_SECONDS):
            call_context.check()
        try:
            yield
        finally:
            self._scan_lock.release()

    @contextmanager
    def _scanned(self, opened: OpenRecording, since: int | None) -> Generator[Difference]:
        """Scan the tree for a recording, then run the block with its difference and the lock of the journal."""
        with self._lock:
            old = self._snapshot.paths.copy()
            self._own = set()
        try:
            ignored = any(each.ignored for each in (*self._open, opened))
            found = self._snapshot.difference(old, opened.root, opened.limits, ignored=ignored, since=since)
            with self._lock:
                yield (
                    self._snapshot.amended(found, opened.root, opened.limits, self._own)
                    if self._own
                    else found
                )
        finally:
            self._own = None

    def _settle(self, opened: OpenRecording) -> None:
        """End the step of an open recording before another one begins."""
        with self._scanned(opened, opened.began) as difference:
            self._absorb(opened, difference)
            step = opened.step(opened.label)
            if step is not None:
                opened.changes.clear()
                opened.earlier.append(step)
            self._write(step, [*difference.statements, self._row(opened)])
            self._snapshot.take_over(difference)
            if step is not None:
                self._timeline.add(step)

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

    def _write(self, step: Step | None, statements: Sequence[Statement]) -> None:
        self._store.add_recorded(step, self._timeline.position, statements)


def _late_error(opened: OpenRecording, error: AgentFSError) -> AgentFSError:
    """Return the error for a recording that could not be ended."""
    reason = error.message
    if isinstance(error, DeadlineExceededError):
        reason = f"looking at the tree takes longer than {error.details['seconds']:g} seconds."
    return type(error)(
        f"The recording {quote(opened.label)} has no step yet: {reason}",
        hint="Its changes are kept. The next recording, undo, rollback, checkpoint or changes makes the step.",
        details=error.details,
    )


def recorded_result(
    opened: OpenRecording, step: Step | None, may_show: MayShow, limits: Limits
) -> RecordedResult:
    """Return the result of a recording that has ended."""
    steps = [each for each in (*opened.earlier, step) if each is not None]
    timeline = Timeline(bounded=False)
    for each in steps:
        timeline.add(each)
    changes = timeline.since(0).effective
    may_show = timeline.visible_since(0, may_show)
    patch, missing = bounded_patch(changes, may_show)
    files = file_changes(changes, count_lines=True, may_show=may_show)
    notes = patch_notes(files, missing)
    lost = tuple(sorted(opened.lost))
    if lost:
        notes.append(
            "also changed; undo leaves it, because its content is not kept or may be older than the"
            f" recording: {name_paths(lost)}"
        )
    not_covered = {reason: count for reason, count in opened.not_covered.items() if count}
    left_out = ", ".join(f"{count} {reason}" for reason, count in sorted(not_covered.items()))
    advice = Advice("undo takes it back: ", call("undo")) if step is not None and len(steps) == 1 else ""
    ending = footer(advice, f"not recorded: {left_out}" if left_out else "")
    head = f"{plural(len(files), 'path')} changed." if files else "Nothing was changed."
    if lost and not files:
        head = "Nothing was changed that undo takes back."
    lines = file_lines(files)

    def answer(count: int) -> RecordedResult:
        more = footer(plural(len(lines) - count, "more line")) if count < len(lines) else ""
        text = Joined("\n", *filter(None, [head, *lines[:count], more, *notes, ending]))
        return RecordedResult(
            files, patch, None, opened.label, lost, not_covered, notes=tuple(notes), text=text
        )

    return fitted(limits, Shrink(len(lines), answer))
