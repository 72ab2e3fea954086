"""Recordings: the changes that any process makes during a block become one step of the journal."""

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from agentfs.base import call_context
from agentfs.base.advice import Advice, Joined, call, plural, shortened
from agentfs.errors import AgentFSError, ClosedError, InvalidArgumentError, RefusedError
from agentfs.fs import Change, DirectoryNode, MovedNode, Node, Root, quote
from agentfs.fs.oserrors import read_only
from agentfs.history.database import Statement, put_meta
from agentfs.history.journal import Journal, nodes_of
from agentfs.history.log import Step, add_changes, is_same_node
from agentfs.history.report import (
    MayShow,
    bounded_patches,
    file_changes,
    file_lines,
    name_paths,
    new_caches,
    patch_notes,
)
from agentfs.history.rows import node_from_json, node_to_json
from agentfs.history.scan import UNSEEN, Basis, Scan, Seen, Status, with_moves
from agentfs.history.step_merge import merge_nodes
from agentfs.limits import Limits
from agentfs.results import RecordedResult
from agentfs.text.display import fitted, footer

MAX_LABEL = 200  # characters
_DROP: Statement = ("DELETE FROM meta WHERE key = 'recordings'", ())


@dataclass
class OpenRecording:
    """A recording whose step is not in the journal yet."""

    label: str
    root: Root
    limits: Limits
    journal: Journal  # that of the transaction in which it was begun, or of the workspace
    ignored: bool = False  # True if it includes ignored files
    has_failed: bool = False  # True if its block has ended, but its end failed
    parts: list[Step] = field(default_factory=list[Step])
    lost: dict[str, None] = field(default_factory=dict[str, None])
    touched: dict[str, None] = field(default_factory=dict[str, None])  # only their times were changed
    not_covered: Mapping[str, int] = field(default_factory=dict[str, int])


class OpenRecordings:
    """The open recordings of one journal, and the tree as it was last seen.

    Each change belongs to one recording. When a recording ends, it gets all changes since the last begin or
    end of any recording. When another one begins, the innermost open recording gets them, as a step. So it
    does before the workspace itself changes one of the same paths: changes by the workspace are steps of
    their own. The lock of the journal is held during a scan, so the workspace changes nothing meanwhile.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._seen: dict[str, Seen] = {}
        self._stored: dict[str, Seen] | None = None  # `_seen`, if the database has it
        self._basis: Basis | None = None  # of `_seen`, if a scan has found it
        self._open: list[OpenRecording] = []

    def begin(self, opened: OpenRecording) -> None:
        """Open a recording; end the step of the innermost open one before."""
        self.end_failed()
        with self._journal.lock:
            if self._open:
                self._settle(self._open[-1])
            if not any(each.ignored >= opened.ignored for each in self._open):
                scan = self._scan(opened)
                self._seen, self._basis = scan.paths, scan.basis
            self._journal.record(None, self._rows([*self._open, opened][0]))
            self._stored = self._seen
            self._open.append(opened)
            self._journal.bound()

    def end(self, opened: OpenRecording) -> None:
        """End a recording, and add its step to the journal. If this fails, it is tried again later."""
        if opened not in self._open:
            raise RefusedError(
                "This recording belongs to the process from which this one was forked.", hint="It ends there."
            )
        try:
            with self._journal.lock:
                if opened not in self._open:
                    return  # another thread has ended it since
                self._settle(opened, [_DROP] if len(self._open) == 1 else [])
                self._open.remove(opened)
        except BaseException as error:
            opened.has_failed = True
            if isinstance(error, AgentFSError) and not isinstance(error, ClosedError | RefusedError):
                message = f"The recording {quote(opened.label)} has no step yet ({error.code})."
                hint = "Its changes are kept: the next recording, undo, rollback or changes makes it."
                raise type(error)(message, hint=hint, details=error.details) from None
            raise

    def end_failed(self) -> None:
        """End the recordings whose end has failed before, the innermost first."""
        for each in self._open[::-1]:
            if each.has_failed:
                self.end(each)

    def settle(self, changes: Sequence[Change]) -> None:
        """Before the workspace makes these changes, store what others changed, if the changes follow it."""
        if self._open and self._follow_others(changes):
            self._settle(self._open[-1])

    def observe(self, changes: Sequence[Change]) -> None:
        """Take note of changes that the workspace itself has made, so that no recording has them."""
        if not self._open:
            return
        self._stored = None
        moved = {each.path: self._seen.pop(each.path, None) for each in changes if each.after is None}
        root = self._open[-1].root
        for path, node, source in ((each.path, each.after, each.moved_from) for each in changes):
            seen: Seen | None = None
            if isinstance(node, MovedNode):
                seen = moved.get(source)
                if seen is not None and seen.node is None:  # a rename changes a time of the status
                    with suppress(OSError):
                        seen = seen._replace(status=Status.of(root.trees.status(path)))
            elif node is not None:
                if isinstance(node, DirectoryNode) and node.mode is None:  # the system has decided the mode
                    with suppress(AgentFSError):
                        seen = Seen(root.node(path, max_bytes=0))
                else:
                    seen = Seen(self._journal.contents.keep_node(node))
            if seen is not None:
                self._seen[path] = seen

    def needed(self) -> Iterable[Node | None]:
        """Return the nodes whose contents are needed; forget what only saves time."""
        if not self._open:
            self._seen, self._stored, self._basis = {}, None, None
        parts = [part for each in self._open for part in each.parts]
        return [*nodes_of(parts), *(seen.node for seen in self._seen.values())]

    def restore(self, plain: Any, seen: Any, root: Root, limits: Limits) -> None:
        """Open the recording that was open when a process died; raises Python errors for a wrong form."""
        for path, node, reason, status in seen:
            self._seen[str(path)] = Seen(
                node_from_json(node, self._journal.contents), status and Status(*status), reason=str(reason)
            )
        label, ignored = str(plain["label"]), bool(plain["ignored"])
        self._open.append(OpenRecording(label, root.view(recorder=None), limits, self._journal, ignored))
        for step in self._journal.log.after(int(plain["position"])):
            self.observe(step.changes)

    def end_restored(self) -> str:
        """End the restored recording; return a message."""
        (opened,) = self._open
        opened.has_failed = True
        self.end(opened)
        count = plural(sum(len(step.changes) for step in opened.parts), "path")
        return f"recording {quote(opened.label)} was open when a process died; recorded until now: {count}"

    def _follow_others(self, changes: Sequence[Change]) -> bool:
        """Return True if a path or its directory is not as it was last seen, or an entry below is gone."""
        own = {change.path for change in changes}
        gone = tuple(f"{each.path}/" for each in changes if each.of_directory and each.after is None)
        for change in changes:
            path, known = change.path, self._seen.get(change.path)
            is_kept = known is None or known.node is not None
            if is_kept and not is_same_node(known and known.node, change.before):
                return True
            parent = os.path.dirname(path)
            if parent and parent not in self._seen and parent not in own:
                return True
        return bool(gone) and any(path.startswith(gone) and path not in own for path in self._seen)

    def _scan(self, opened: OpenRecording) -> Scan:
        ignored = any(each.ignored for each in (*self._open, opened))
        opened.root.check_open()
        given = self._journal.contents, self._seen, opened.root, opened.limits, self._basis
        return Scan(*given, ignored=ignored)

    def _settle(self, opened: OpenRecording, statements: Sequence[Statement] = ()) -> None:
        """Store what others have changed since the last scan as a step of an open recording."""
        scan = self._scan(opened)
        changes, lost = scan.difference()
        opened.lost |= dict.fromkeys(lost)
        opened.touched |= dict.fromkeys(scan.touched)
        opened.not_covered = scan.not_covered
        author, found = ("command", opened.label), tuple(with_moves(changes))
        step = Step(found, time.time(), opened.label, tuple(opened.lost), author)
        opened.journal.record(step if changes else None, statements)
        self._seen, self._basis = scan.paths, scan.basis
        opened.parts += [step] if changes else []

    def _rows(self, first: OpenRecording) -> list[Statement]:
        """Return the statements that store the first open recording, in case that this process dies."""
        facts = {"label": first.label, "ignored": first.ignored, "position": self._journal.log.position}
        rows = [put_meta("recordings", facts)]
        if self._journal.is_kept and self._stored is not self._seen:
            seen = [
                (path, node_to_json(each.node), each.reason, None if each.node else each.status)
                for path, each in self._seen.items()
            ]
            rows.append(put_meta("seen", seen))
        return rows


def check_whole(root: Root) -> None:
    """Raise an error for a view that must not change the whole tree."""
    if root.policy.read_only:
        raise read_only()
    if root.usable_directories != ["."]:
        message = "A view of some directories cannot run or record what changes the whole tree."
        raise RefusedError(message, hint="Use the workspace itself.")


def begin_recording(
    journal: Journal, root: Root, limits: Limits, label: str, *, include_ignored: bool
) -> OpenRecording:
    """Open a recording, unless nothing may be changed here."""
    if not 0 < len(label) <= MAX_LABEL:
        raise InvalidArgumentError(
            f"A label has 1 to {MAX_LABEL} characters, not {len(label)}.", details={"parameter": "label"}
        )
    check_whole(root)
    opened = OpenRecording(label, root.view(recorder=None), limits, journal, include_ignored)
    with call_context.limited(limits.timeout):
        recordings_of(journal).begin(opened)
    return opened


def end_recording(opened: OpenRecording, may_show: MayShow) -> RecordedResult:
    """End a recording and return what changed."""
    with call_context.detached(), call_context.limited(opened.limits.timeout):
        recordings_of(opened.journal).end(opened)
    try:
        with call_context.limited(opened.limits.timeout):
            return recorded_result(opened, may_show)
    finally:
        opened.journal.bound()


def recordings_of(journal: Journal) -> OpenRecordings:
    """Return the recordings of a journal."""
    main = journal.main
    if not isinstance(main.recordings, OpenRecordings):
        main.recordings = OpenRecordings(main)
    return main.recordings


def _total(parts: Sequence[Step]) -> list[Change]:
    """Return the net changes of a recording, without lines that the workspace itself changed in between."""
    total: dict[str, Change] = {}
    for change in (each for part in parts for each in part.changes):
        known = total.get(change.path)
        if known is not None and not is_same_node(known.after, change.before):
            node, clash = merge_nodes(change.path, known.after, known.before, change.before)
            if clash is None:
                total[change.path] = Change(change.path, node, change.before, known.moved_from)
        add_changes(total, [change])
    return [each for each in total.values() if not each.changes_nothing]


def recorded_result(
    opened: OpenRecording, may_show: MayShow, *, more_notes: Sequence[str] = (), can_undo: bool = True
) -> RecordedResult:
    """Return the result of a recording that has ended."""
    changes, display = _total(opened.parts), opened.root.display_path
    patches, missing = bounded_patches(changes, may_show)
    patch = b"".join(patches.values())
    files = file_changes(changes, patches=patches, may_show=may_show, display=display)
    notes = patch_notes(files, missing)
    lost = tuple(map(display, sorted(opened.lost)))
    if lost:
        notes.append(f"changed, but not kept for undo: {name_paths(lost)}")
    not_covered = {reason: count for reason, count in opened.not_covered.items() if count}
    unseen = [f"{count} {reason}" for reason, count in sorted(not_covered.items()) if reason in UNSEEN]
    touched = sorted(opened.touched.keys() - {*opened.lost, *(each.path for each in changes)})
    if touched:
        notes.append(f"only the time was changed: {name_paths([*map(display, touched)])}")
    notes += more_notes
    advice = Advice("undo takes it back: ", call("undo")) if can_undo and len(opened.parts) == 1 else ""
    ending = footer(advice, f"not recorded: {', '.join(unseen)}" if unseen else "")
    head = f"{plural(len(files), 'path')} changed." if files else "Nothing was changed."
    if (lost or touched) and not files:
        head = "Nothing that undo takes back was changed."
    lines = file_lines(files, [*map(display, new_caches(changes))])

    def answer(count: int) -> RecordedResult:
        text = Joined("\n", *filter(None, [head, *shortened(lines, count, "line"), *notes, ending]))
        return RecordedResult(
            files, patch, None, opened.label, lost, not_covered, notes=tuple(notes), text=text
        )

    return fitted(opened.limits, (len(lines), answer))
