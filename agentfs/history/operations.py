"""The methods of a workspace that look at its journal or record in it: checkpoint, changes, recording."""

import time

from agentfs.base import call_context
from agentfs.errors import DeadlineExceededError, InvalidArgumentError, RefusedError
from agentfs.fs import Change, Root, quote
from agentfs.fs.oserrors import read_only
from agentfs.fs.overlay import OverlayRoot
from agentfs.fs.path import is_in
from agentfs.history.compare_disk import Present
from agentfs.history.journal import Journal
from agentfs.history.recordings.recording import MAX_LABEL, OpenRecording, recorded_result
from agentfs.history.report import Marks, MayShow, changes_result
from agentfs.history.timeline import moved_to_hidden, net_changes
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
    journal.end_late_recordings()
    made, moved = journal.checkpoint(name)
    text = f"Checkpoint {quote(made)}" + (", moved here from an earlier state." if moved else ".")
    return CheckpointResult(made, journal.timeline.position, text=text)


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
    if isinstance(root, OverlayRoot):
        raise RefusedError(
            "A transaction changes nothing on disk, so nothing can be recorded within it.",
            hint="Start the recording outside the transaction.",
        )
    if root.usable_directories != ["."]:
        raise RefusedError(
            "A view of some directories cannot record, because a recording covers the whole tree.",
            hint="Start the recording on the workspace itself.",
        )
    try:
        with call_context.limited(limits.timeout):
            return journal.begin_recording(root, limits, label, ignored=include_ignored)
    except DeadlineExceededError as error:
        error.hint = "Open the workspace on a smaller directory, or raise Limits.timeout."
        raise


def end_recording(
    journal: Journal, root: Root, limits: Limits, opened: OpenRecording, may_show: MayShow
) -> RecordedResult:
    """End a recording and return what changed."""
    with call_context.detached(), call_context.limited(limits.timeout):
        journal.end_recording(opened)
    with call_context.limited(limits.timeout):
        return recorded_result(opened, root, may_show, limits)


def changes(journal: Journal, context: Context, since: str | None, paths: RequestedPaths) -> ChangesResult:
    """Return how the tree differs from its state at a checkpoint."""
    root, _, limits, _ = context
    journal.end_late_recordings()
    steps, dropped = journal.steps_since(since)
    scope = real_paths(root, paths)
    history: dict[str, list[Change]] = {}
    for change in (each for step in steps for each in step.changes):
        history.setdefault(change.path, []).append(change)
    present = Present(root, limits.file_bytes)
    now = [
        present.change(each, history[each.path])
        for each in net_changes(steps)
        if root.is_usable(each.path) and (scope is None or any(is_in(each.path, path) for path in scope))
    ]
    labels = {each.path: step.label for step in steps if step.label for each in step.changes}
    marks = Marks(present.others, labels)
    notes = present.notes()
    if dropped:
        began = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(steps[0].time if steps else None))
        gone = "step 1 is no longer kept" if dropped == 1 else f"steps 1 to {dropped} are no longer kept"
        notes.append(f"changes since {began}: {gone}")
    hidden = moved_to_hidden(steps, lambda path: not root.may_show(path))
    shown = [each for each in now if not each.changes_nothing]

    def may_show(path: str) -> bool:
        return path not in hidden and root.may_show(path)

    return changes_result(shown, since, may_show, marks, notes, root.display_path)
