"""The methods of a workspace that look at its journal or record in it: checkpoint, changes, recording."""

import time

from agentfs.base import call_context
from agentfs.errors import AgentFSError, DeadlineExceededError, InvalidArgumentError, RefusedError
from agentfs.fs import Change, FileNode, Node, Root, quote
from agentfs.fs.oserrors import read_only
from agentfs.fs.path import is_in
from agentfs.history.journal import Journal
from agentfs.history.log import net_changes
from agentfs.history.recordings.recording import MAX_LABEL, OpenRecording, recorded_result, recordings_of
from agentfs.history.report import MayShow, changes_result, name_paths
from agentfs.history.storage.contents import Contents
from agentfs.history.take_back import is_same_node, read_node
from agentfs.history.undo import RequestedPaths, real_paths
from agentfs.limits import Limits
from agentfs.results import ChangesResult, CheckpointResult, RecordedResult
from agentfs.shown.workspace_context import Context

_MAX_NAME = 200


def checkpoint(journal: Journal, name: str | None) -> CheckpointResult:
    """Name the present state of the files."""
    if name is not None and not 0 < len(name) <= _MAX_NAME:
        raise InvalidArgumentError(
            f"A checkpoint's name has 1 to {_MAX_NAME} characters.", details={"parameter": "name"}
        )
    journal.settle_recordings()
    made, moved = journal.checkpoint(name)
    text = f"Checkpoint {quote(made)}" + (", moved here from an earlier state." if moved else ".")
    return CheckpointResult(made, journal.log.position, text=text)


def begin_recording(
    journal: Journal, root: Root, limits: Limits, label: str, *, include_ignored: bool
) -> OpenRecording:
    """Open a recording, unless nothing may be changed here."""
    if not 0 < len(label) <= MAX_LABEL:
        raise InvalidArgumentError(
            f"A label has 1 to {MAX_LABEL} characters, not {len(label)}.", details={"parameter": "label"}
        )
    if root.policy.read_only:
        raise read_only()
    if root.usable_directories != ["."]:
        raise RefusedError(
            "A view of some directories cannot record, because a recording covers the whole tree.",
            hint="Start the recording on the workspace itself.",
        )
    try:
        with call_context.limited(limits.timeout):
            opened = OpenRecording(label, root.unrecorded, limits, journal, include_ignored)
            recordings_of(journal).begin(opened)
            return opened
    except DeadlineExceededError as error:
        error.hint = "Open the workspace on a smaller directory, or raise Limits.timeout."
        raise


def end_recording(
    journal: Journal, root: Root, limits: Limits, opened: OpenRecording, may_show: MayShow
) -> RecordedResult:
    """End a recording and return what changed."""
    with call_context.detached(), call_context.limited(limits.timeout):
        recordings_of(journal).end(opened)
    with call_context.limited(limits.timeout):
        return recorded_result(opened, root, may_show, limits)


def changes(journal: Journal, context: Context, since: str | None, paths: RequestedPaths) -> ChangesResult:
    """Return how the tree differs from its state at a checkpoint."""
    root, _, limits, _ = context
    journal.settle_recordings()
    steps, dropped = journal.steps_since(since)
    scope = real_paths(root, paths)
    present = _Present(root, limits)
    found = [
        present.change(each)
        for each in net_changes(steps)
        if root.is_usable(each.path) and (scope is None or any(is_in(each.path, path) for path in scope))
    ]
    notes = present.notes()
    if dropped:
        began = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(steps[0].time if steps else None))
        gone = "step 1 is no longer kept" if dropped == 1 else f"steps 1 to {dropped} are no longer kept"
        notes.append(f"changes since {began}: {gone}")
    labels = {each.path: step.label for step in steps if step.label for each in step.changes}
    shown = [each for each in found if not each.changes_nothing]
    return changes_result(shown, since, root.may_show, labels, notes, root.display_path)


class _Present:
    """Compares net changes with the disk."""

    def __init__(self, root: Root, limits: Limits) -> None:
        self._root, self._max_bytes = root, limits.file_bytes
        self._contents = Contents()  # keeps contents that other programs wrote out of memory
        self._others: list[str] = []
        self._unknown: list[str] = []

    def change(self, net: Change) -> Change:
        """Return a net change that ends with the node on the disk."""
        now = self._node(net)
        if not net.of_directory and not is_same_node(net.after, now):
            self._others.append(net.path)
        return Change(net.path, net.before, now, net.moved_from)

    def notes(self) -> list[str]:
        """Return notes on paths that the steps alone do not explain."""
        reasons = {
            "changed since by another program": self._others,
            "not compared with the disk": self._unknown,
        }
        return [
            f"{reason}: {name_paths([self._root.display_path(path) for path in paths])}"
            for reason, paths in reasons.items()
            if paths
        ]

    def _node(self, net: Change) -> Node | None:
        try:
            if time.monotonic() > call_context.deadline():
                raise DeadlineExceededError("")
            found = read_node(self._root, net.path, self._max_bytes)
        except AgentFSError:  # protected, too large, a special file, or too late
            self._unknown += [net.path] if self._root.may_show(net.path) else []
            return net.after
        for known in (net.after, net.before):
            if isinstance(known, FileNode) and known == found:
                return known
        return found and self._contents.keep_node(found)
