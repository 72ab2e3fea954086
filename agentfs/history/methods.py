"""The methods of a workspace over its journal: undo, redo, rollback, checkpoint and changes."""

from collections.abc import Iterable

from agentfs.errors import InvalidArgumentError
from agentfs.fs import FileNode, Node, Root, quote, revision_of
from agentfs.history.journal import Journal
from agentfs.history.report import changes_result, undo_result
from agentfs.history.timeline import Move
from agentfs.read_tracker import ReadTracker
from agentfs.results import ChangesResult, CheckpointResult, UndoResult

_MAX_NAME = 200


def undo(journal: Journal, root: Root, tracker: ReadTracker, steps: int, max_bytes: int) -> UndoResult:
    """Take back steps."""
    return _result("Undid", journal.undo(root, steps, max_bytes=max_bytes), journal, tracker)


def redo(journal: Journal, root: Root, tracker: ReadTracker, steps: int, max_bytes: int) -> UndoResult:
    """Make steps again that were undone."""
    return _result("Redid", journal.redo(root, steps, max_bytes=max_bytes), journal, tracker)


def rollback(journal: Journal, root: Root, tracker: ReadTracker, name: str, max_bytes: int) -> UndoResult:
    """Take the files back to a checkpoint."""
    move = journal.rollback(root, name, max_bytes=max_bytes)
    return _result(f"Went to checkpoint {quote(name)}:", move, journal, tracker)


def _result(done: str, move: Move, journal: Journal, tracker: ReadTracker) -> UndoResult:
    record_restored(tracker, ((change.path, change.after) for change in move.changes))
    timeline = journal.timeline
    return undo_result(done, move, len(timeline.done_steps), len(timeline.undone_steps))


def record_restored(tracker: ReadTracker, nodes: Iterable[tuple[str, Node | None]]) -> None:
    """Record that the files at some paths are versions from before again."""
    for path, node in nodes:
        if isinstance(node, FileNode) and tracker.knows(path):
            tracker.record_restore(path, revision_of(node.load()))


def checkpoint(journal: Journal, name: str | None) -> CheckpointResult:
    """Name the present state of the files."""
    if name is not None and not 0 < len(name) <= _MAX_NAME:
        raise InvalidArgumentError(
            f"A checkpoint's name has 1 to {_MAX_NAME} characters.", details={"parameter": "name"}
        )
    made, moved = journal.checkpoint(name)
    text = f"Checkpoint {quote(made)}" + (", moved here from an earlier state." if moved else ".")
    return CheckpointResult(made, journal.timeline.position, text=text)


def changes(journal: Journal, root: Root, since: str | None) -> ChangesResult:
    """Return the changes since a checkpoint that this root may show."""
    net = journal.since(since)
    usable = tuple(change for change in net.changes if root.is_usable(change.path))
    external = tuple(path for path in net.external if root.is_usable(path))
    may_show = journal.visible_since(since, root.may_show_recorded)
    return changes_result(net._replace(changes=usable, external=external), since, may_show)
