"""Recordings: the changes that any process makes during a block become one step of the journal."""

import json
import os
import time
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from agentfs.base import call_context
from agentfs.base.advice import Advice, Joined, call
from agentfs.errors import AgentFSError, ClosedError, DeadlineExceededError, RefusedError
from agentfs.fs import Change, DirectoryNode, Root, quote
from agentfs.fs.context import file_clock
from agentfs.history.recordings.snapshot import Difference, Snapshot
from agentfs.history.renames import with_moves
from agentfs.history.report import MayShow, bounded_patches, file_changes, file_lines, name_paths, patch_notes
from agentfs.history.storage.contents import Contents
from agentfs.history.storage.database import Damage, Statement, checksum, stored_json
from agentfs.history.storage.step_log import StepLog, step_to_json
from agentfs.history.take_back import is_same_node, merge_nodes
from agentfs.history.timeline import Step, Timeline, first_path, moved_to_hidden
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
    parts: list[Step] = field(default_factory=list[Step])
    lost: dict[str, None] = field(default_factory=dict[str, None])
    not_covered: Mapping[str, int] = field(default_factory=dict[str, int])


class Recordings:
    """The open recordings of one journal, and the snapshot that they compare with.

    Each change belongs to one recording. When a recording ends, it gets all changes since the last begin or
    end of any recording. When another one begins, the innermost open recording gets them, as a step. So it
    does before the workspace itself changes one of the same paths: changes by the workspace are steps of
    their own.

    One thread at a time scans the tree. It does not hold the lock of the journal, so that other threads can
    change files. The changes by the workspace during a scan are excluded afterwards.
    """

    def __init__(
        self,
        contents: Contents,
        log: StepLog | None,
        timeline: Timeline,
        lock: AbstractContextManager[object],
    ) -> None:
        self._contents, self._log, self._timeline, self._lock = contents, log, timeline, lock
        self._snapshot = Snapshot(contents)
        self._open: list[OpenRecording] = []
        self._scan_lock = Lock()
        self._own: set[str] | None = None  # paths that the workspace changes during a scan; None: no scan

    def begin(self, root: Root, limits: Limits, label: str, *, ignored: bool) -> OpenRecording:
        """Open a recording; end the step of the innermost open one before."""
        with self._scanning():
            number = max((each.number for each in self._open), default=0) + 1
            opened = OpenRecording(number, label, root.unrecorded, limits, ignored)
            if self._open:
                self._settle(self._open[-1])
            if any(each.ignored >= ignored for each in self._open):
                # The scan just done covers enough. What others change since then, a second one would hide.
                with self._lock:
                    self._add(opened)
            else:
                with self._scanned(opened, None) as difference:
                    self._add(opened, difference.statements)
                    self._snapshot.take_over(difference)
        while file_clock() <= opened.began:  # then every file of the block is younger than all others
            time.sleep(_CLOCK_STEP)
        return opened

    def _add(self, opened: OpenRecording, statements: Sequence[Statement] = ()) -> None:
        # The file clock lags behind this one, from which Linux 6.13 may take times too.
        opened.began = time.time_ns()
        self._write(None, [*statements, self._row(opened)])
        self._open.append(opened)

    def end(self, opened: OpenRecording) -> Step | None:
        """End a recording, and add its step to the timeline. If this fails, the recording is late."""
        if opened not in self._open:
            raise RefusedError(
                "This recording belongs to the process from which this one was forked.", hint="It ends there."
            )
        label = opened.label
        if opened.is_late:
            label = f"{label} (recorded until {time.strftime('%Y-%m-%d %H:%M:%S')})"
        try:
            with self._scanning():
                if opened not in self._open:
                    return None  # another thread has ended it since
                with self._scanned(opened, self._since) as difference:
                    opened.not_covered = difference.not_covered
                    step = self._end_part(opened, difference, label, (_DROP, (opened.number,)))
                    self._open.remove(opened)
        except BaseException as error:
            opened.is_late = True
            if isinstance(error, AgentFSError) and not isinstance(error, ClosedError | RefusedError):
                raise _late_error(opened, error) from None
            raise
        return step

    def end_late(self) -> list[tuple[OpenRecording, Step | None]]:
        """End the recordings whose end has failed before, the innermost first; return their steps."""
        return [(each, self.end(each)) for each in self._open[::-1] if each.is_late]

    def settle_before(self, changes: Sequence[Change]) -> None:
        """Settle if these changes by the workspace follow changes by others of the same paths."""
        if not self._open or not self._follow_others(changes):
            return
        # The caller may hold the lock of the journal, so it cannot wait for the scan of another thread.
        if not self._scan_lock.acquire(blocking=False):
            self._settle_known(changes)
            return
        try:
            self._settle(self._open[-1])
        finally:
            self._scan_lock.release()

    def _settle_known(self, changes: Sequence[Change]) -> None:
        """Store, without a scan, what others have changed in known files of these changes."""
        others: list[Change] = []
        for path, present in ((each.path, each.before) for each in changes):
            seen = self._snapshot.paths.get(path)
            if seen is not None and seen.node is not None and not is_same_node(seen.node, present):
                others.append(Change(path, seen.node, present and self._contents.keep_node(present)))
        if others:
            opened = self._open[-1]
            step = Step(tuple(others), time.time(), opened.label)
            stored = [each for change in others for each in self._snapshot.put(change.path, change.after)]
            self._write(step, stored)
            opened.parts.append(step)
            self._timeline.add(step)

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
            if parent and seen.get(parent) is None and parent not in paths:
                return True
            if isinstance(before, DirectoryNode) and not isinstance(after, DirectoryNode):
                removed.add(path)
        return any(f"{each}/{name}" not in paths for each in removed for name in seen.entries(each))

    def observe(self, changes: Iterable[Change]) -> None:
        """Exclude changes by the workspace itself from the open recordings."""
        if not self._open and self._own is None:
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
            statements += self._snapshot.put(path, node and self._contents.keep_node(node))
            parent = os.path.dirname(path)
            is_kept = not parent or self._snapshot.paths.get(parent) is not None
            if node is not None and not is_kept:  # in an ignored directory
                statements += self._snapshot.put(parent, DirectoryNode())
            if self._own is not None:
                self._own.add(path)
        if self._log is not None:
            if self._open:
                statements.append(self._row(self._open[-1], self._snapshot.own_inodes))
            self._contents.database.defer(statements)

    def restore(self, log: StepLog, root: Root, limits: Limits) -> None:
        """Open the recordings that a dead process left open; they are late."""
        (rows,) = self._contents.database.read(_READ)
        for number, payload, check in rows:
            if check != checksum(payload):
                raise Damage("a recording has a wrong checksum")
            plain: dict[str, Any] = json.loads(payload)
            step = log.step_from_json(plain["step"])
            given = root.unrecorded, limits, plain["ignored"], plain["began"]
            opened = OpenRecording(number, step.label, *given, is_late=True)
            opened.lost = dict.fromkeys(step.lost)
            self._open.append(opened)
            self._snapshot.own_inodes.update(plain.get("own", ()))

    @property
    def _since(self) -> int:
        """The time since which a new file belongs to one of the open recordings."""
        return min(each.began for each in self._open)

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
        """Scan the tree for a recording, then run the block with the difference and the journal's lock."""
        with self._lock:
            old = self._snapshot.paths.copy()
            self._own = set()
        try:
            ignored = any(each.ignored for each in (*self._open, opened))
            found = self._snapshot.difference(old, opened.root, opened.limits, ignored=ignored, since=since)
            with self._lock:
                if self._own:
                    found = self._snapshot.amended(found, opened.root, opened.limits, self._own)
                yield found
        finally:
            self._own = None

    def _settle(self, opened: OpenRecording) -> None:
        """Store what was recorded so far as a step of an open recording."""
        with self._scanned(opened, self._since) as difference:
            self._end_part(opened, difference, opened.label)

    def _end_part(
        self, opened: OpenRecording, difference: Difference, label: str, drop: Statement | None = None
    ) -> Step | None:
        """Store a difference as a step, unless it is empty; with `drop`, the recording is not kept."""
        opened.lost |= dict.fromkeys(difference.lost)
        step: Step | None = None
        if difference.changes:
            step = Step(tuple(with_moves(difference.changes)), time.time(), label, tuple(opened.lost))
        self._write(step, [*difference.statements, drop or self._row(opened)])
        self._snapshot.take_over(difference)
        if step is not None:
            opened.parts.append(step)
            self._timeline.add(step)
        return step

    def _row(self, opened: OpenRecording, own_inodes: Iterable[int] = ()) -> Statement:
        step, own = Step((), 0.0, opened.label, tuple(opened.lost)), sorted(own_inodes)
        plain = {"began": opened.began, "ignored": opened.ignored, "step": step_to_json(step), "own": own}
        payload = stored_json(plain)
        return _PUT, (opened.number, payload, checksum(payload))

    def _write(self, step: Step | None, statements: Sequence[Statement]) -> None:
        if self._log is not None:
            self._log.add_recorded(step, self._timeline.position, statements)


def _late_error(opened: OpenRecording, error: AgentFSError) -> AgentFSError:
    """Return the error for a recording that could not be ended."""
    reason = error.message
    if isinstance(error, DeadlineExceededError):
        reason = f"looking at the tree takes longer than {error.details['seconds']:g} seconds."
    return type(error)(
        f"The recording {quote(opened.label)} has no step yet: {reason}",
        hint="Its changes are kept: the next recording, undo, rollback, checkpoint or changes makes it.",
        details=error.details,
    )


def _total(parts: Iterable[Step]) -> list[Change]:
    """Return the net changes of a recording, without lines that the workspace itself changed in between."""
    total: dict[str, Change] = {}
    for change in (each for part in parts for each in part.changes):
        path, known = change.path, total.get(change.path)
        before = change.before if known is None else known.before
        if known is not None and not is_same_node(known.after, change.before):
            merged = merge_nodes(path, known.after, known.before, change.before)
            before = known.before if merged.clash is not None else merged.node
        total[path] = Change(path, before, change.after, first_path(change, total))
    return [change for change in total.values() if not change.changes_nothing]


def recorded_result(
    opened: OpenRecording, root: Root, may_show: MayShow, limits: Limits, *, can_undo: bool = True
) -> RecordedResult:
    """Return the result of a recording that has ended."""
    changes = _total(opened.parts)
    hidden = moved_to_hidden(opened.parts, lambda path: not may_show(path))

    def may_show_now(path: str) -> bool:
        return path not in hidden and may_show(path)

    patches, missing = bounded_patches(changes, may_show_now)
    patch = b"".join(patches.values())
    files = file_changes(changes, count_lines=True, may_show=may_show_now, display=root.display_path)
    notes = patch_notes(files, missing)
    lost = tuple(map(root.display_path, sorted(opened.lost)))
    if lost:
        notes.append(
            "also changed; undo leaves it, because its content is not kept or may be older than the"
            f" recording: {name_paths(lost)}"
        )
    not_covered = {reason: count for reason, count in opened.not_covered.items() if count}
    left_out = ", ".join(f"{count} {reason}" for reason, count in sorted(not_covered.items()))
    advice = Advice("undo takes it back: ", call("undo")) if can_undo and len(opened.parts) == 1 else ""
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
