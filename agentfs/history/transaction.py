"""Transactions: changes are staged, and reach the tree together at the end, or not at all."""

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache, partial

from agentfs.base import call_context
from agentfs.errors import AgentFSError, RefusedError
from agentfs.fs import Change, FileNode, LinesBy, Node, Root
from agentfs.fs.lock import ATTEMPTS
from agentfs.fs.node import ConcurrentChange, begin_again
from agentfs.fs.overlay import OverlayRoot
from agentfs.history.journal import Journal
from agentfs.history.report import changed_meanwhile, clash_error, name_paths
from agentfs.history.review import ChangeHistory
from agentfs.history.take_back import alike_clash, read_node, take_steps
from agentfs.history.timeline import Timeline, effective_changes
from agentfs.history.traced_lines import by_another
from agentfs.history.undo import record_restored
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
        if changes := self.changes:
            with call_context.limited(self._limits.timeout):
                notes = self._merge(changes)
        self._committed = True
        return notes

    def _merge(self, changes: Sequence[Change]) -> tuple[str, ...]:
        """Make the changes, merged by lines with what others have changed since the transaction began."""
        root, max_bytes = self._outer_root, self._limits.file_bytes
        for attempt in range(1, ATTEMPTS + 1):
            read = cache(partial(read_node, root, max_bytes=max_bytes))  # one state of each file
            outcome = take_steps([changes], read, lambda node: node)
            clashes = outcome.clashes or tuple(
                filter(None, (alike_clash(each, read(each.path)) for each in changes))
            )
            if clashes:
                raise clash_error(clashes, self._origin, root, None, "changed")
            conflict = self._conflict if attempt == ATTEMPTS else begin_again
            with suppress(ConcurrentChange):
                author, by_others = self._authors(outcome.changes)
                token = call_context.author.set(author)
                try:
                    applied = root.apply(
                        outcome.changes, max_bytes=max_bytes, conflict=conflict, by_others=by_others
                    )
                finally:
                    call_context.author.reset(token)
                merged = name_paths([*map(root.display_path, outcome.merged)])
                return (*([f"merged with later changes: {merged}"] if merged else []), *applied.notes)
        raise AssertionError("the last attempt raises the conflict")

    def _authors(self, changes: Sequence[Change]) -> tuple[tuple[str, str], tuple[LinesBy, ...]]:
        """Return the author of the first staged step, and the lines by each author."""
        steps = self.journal.timeline.done_steps
        history = ChangeHistory(steps, ())
        found: list[LinesBy] = []
        for change in changes:
            if isinstance(change.after, FileNode):
                file = history.file(change.path)
                file.advance(change.after, by_another(change.after))
                authors = (event and event.version.author for event in file.births())
                found += LinesBy.of(change.path, authors)
        return steps[0].author, tuple(found)

    def _origin(self, path: str, node: Node | None, display: Callable[[str], str]) -> str:
        recorder = self._outer_root.recorder
        return "another program" if recorder is None else recorder.origin(path, node, display)

    @property
    def changes(self) -> list[Change]:
        """The changes that the commit would make."""
        return effective_changes(self.journal.timeline.done_steps)

    def _conflict(self, change: Change, found: Node | None) -> AgentFSError:
        return changed_meanwhile(change, found, self._outer_root)

    def close(self) -> None:
        """End the transaction; drop changes that are not committed."""
        if not self._committed:
            changes = self.changes
            for change in changes:
                path, before, after = change.path, change.before, change.after
                if after is None or isinstance(after, FileNode):
                    revision = None if after is None else after.digest
                    self._read_tracker.record_rollback(path, revision, is_new=before is None)
            record_restored(self._read_tracker, ((change.path, change.before) for change in changes))
        self._outer_journal.flush()
        self.root.close()
        self.journal.close()
