"""Transactions: changes are staged, and reach the tree together at the end, or not at all."""

import os

from agentfs.base import call_context
from agentfs.errors import AgentFSError, RefusedError
from agentfs.fs import Change, FileNode, Node, Root
from agentfs.fs.overlay import OverlayRoot
from agentfs.history.journal import Journal
from agentfs.history.operations import record_restored
from agentfs.history.report import changed_meanwhile
from agentfs.history.timeline import Timeline, effective_changes
from agentfs.limits import Limits
from agentfs.shown.read_tracker import ReadTracker


class Transaction:
    """Staged changes, with a separate journal until `commit`.

    Files that are read within the transaction count as read, except versions that were never committed.
    """

    def __init__(self, root: Root, journal: Journal, read_tracker: ReadTracker, limits: Limits) -> None:
        self.root = OverlayRoot(root)
        self.journal = self.root.recorder = Journal(timeline=Timeline(bounded=False))
        self._read_tracker = read_tracker
        self._outer_root, self._outer_journal = root, journal
        self._limits = limits
        self._process = os.getpid()
        self._committed = False

    def commit(self) -> tuple[str, ...]:
        """Make all changes, or none; return notes on metadata that could not be kept."""
        return call_context.run_to_end(self._apply)

    def _apply(self) -> tuple[str, ...]:
        if os.getpid() != self._process:
            raise RefusedError(
                "This transaction belongs to the process from which this one was forked.",
                hint="Nothing was changed. Begin a transaction in this process.",
            )
        notes: tuple[str, ...] = ()
        if changes := self._changes():
            with call_context.limited(self._limits.timeout):
                notes = self._outer_root.apply(
                    changes, max_bytes=self._limits.file_bytes, conflict=self._conflict
                ).notes
        self._committed = True
        return notes

    def _changes(self) -> list[Change]:
        return effective_changes(self.journal.timeline.done_steps)

    def _conflict(self, change: Change, found: Node | None) -> AgentFSError:
        return changed_meanwhile(change, found, self._outer_root)

    def close(self) -> None:
        """End the transaction; drop changes that are not committed."""
        if not self._committed:
            changes = self._changes()
            for change in changes:
                path, before, after = change.path, change.before, change.after
                if after is None or isinstance(after, FileNode):
                    revision = None if after is None else after.digest
                    self._read_tracker.record_rollback(path, revision, is_new=before is None)
            record_restored(self._read_tracker, ((change.path, change.before) for change in changes))
        self._outer_journal.flush()
        self.root.close()
        self.journal.close()
