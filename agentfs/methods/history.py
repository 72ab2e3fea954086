"""The methods of a workspace that take back, make again, and tell what was done."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from copy import copy
from typing import TYPE_CHECKING, Self

from agentfs import call_context
from agentfs.enforcement import gated
from agentfs.errors import InvalidArgumentError
from agentfs.interrupts import run_to_end
from agentfs.methods.held import Held
from agentfs.results import ChangesResult, CheckpointResult, UndoResult

if TYPE_CHECKING:  # loaded when a tree is opened
    from agentfs.history import Move
    from agentfs.history.state import StateSession

_MAX_NAME = 200


class History(Held):
    """What was changed through a workspace, and the way back."""

    _state: "StateSession | None" = None

    @gated("change")
    def undo(self, steps: int = 1) -> UndoResult:
        """Take back your last changes to files, all of them or none.

        Args:
            steps: How many changes to take back.

        Returns:
            What became of each file.

        Raises:
            AgentFSError: `stale` for a file that somebody else has changed since, with the diff;
                `invalid_argument` when there are fewer steps.
        """
        move = self._journal.undo(self._root, steps, max_bytes=self.limits.file_bytes)
        return self._moved("Undid", move)

    @gated("change")
    def redo(self, steps: int = 1) -> UndoResult:
        """Make changes again that were undone.

        Args:
            steps: How many changes to make again.

        Returns:
            What became of each file.

        Raises:
            AgentFSError: `stale` for a file that somebody else has changed since, with the diff;
                `invalid_argument` when fewer steps were undone.
        """
        move = self._journal.redo(self._root, steps, max_bytes=self.limits.file_bytes)
        return self._moved("Redid", move)

    def checkpoint(self, name: str | None = None) -> CheckpointResult:
        """Name the present state of the files, so that rollback can return to it.

        Args:
            name: The name; by default a number. A name given again is moved here.

        Returns:
            The name.

        Raises:
            AgentFSError: `invalid_argument` for an empty name or one over 200 characters.
        """
        if name is not None and not 0 < len(name) <= _MAX_NAME:
            raise InvalidArgumentError(
                f"A checkpoint's name has 1 to {_MAX_NAME} characters.", details={"parameter": "name"}
            )
        from agentfs.fs import quote

        made, moved = self._journal.checkpoint(name)
        text = f"Checkpoint {quote(made)}" + (", moved here from an earlier state." if moved else ".")
        return CheckpointResult(made, self._journal.position, text=text)

    @gated("change")
    def rollback(self, to: str) -> UndoResult:
        """Take the files back to a checkpoint, all of them or none; redo makes the changes again.

        Args:
            to: The name of the checkpoint.

        Returns:
            What became of each file.

        Raises:
            AgentFSError: `not_found` for an unknown checkpoint, with those there are; `stale` for a file that
                somebody else has changed since, with the diff.
        """
        from agentfs.fs import quote

        move = self._journal.rollback(self._root, to, max_bytes=self.limits.file_bytes)
        return self._moved(f"Went to checkpoint {quote(to)}:", move)

    def forget(self) -> None:
        """Forget what was shown, as when the loop cuts the model's history.

        `write` and `edit_lines` ask for a read again, and no name of a line is given a second time. The
        journal stays.
        """
        self._shown.forget()

    @contextmanager
    def transaction(self) -> Generator[Self]:
        """Make several changes as one: all of them when the block ends, or none when it raises.

        What is called on the transaction sees what was changed through it before: `read`, `write`, `edit` and
        the other changes of files, `delete`, `move`, `undo`, `changes`. Nothing is on disk before the end, so
        that it neither lists nor searches. What is called on the workspace meanwhile takes no part. All
        together is one step of the journal.

        Yields:
            The transaction, to be used as the workspace is.

        Raises:
            AgentFSError: `stale` at the end, with the diff, for a file that somebody else has changed since
                the transaction first changed it; nothing is changed then.
        """
        from agentfs.fs.overlay import OverlayRoot
        from agentfs.history import Journal, Timeline
        from agentfs.history.report import conflict_error

        staged = OverlayRoot(self._root)
        journal = staged.recorder = Journal(timeline=Timeline(bounded=False))
        shown = self._shown.fork(staged.is_staged)
        inner = copy(self)
        inner.__dict__.update(_root=staged, _journal=journal, _shown=shown, _state=None)
        committed = False

        def commit() -> None:
            nonlocal committed
            changes = journal.since(None).changes
            if changes:
                with call_context.limited(self.limits.timeout):
                    self._root.apply(changes, max_bytes=self.limits.file_bytes, conflict=conflict_error)
            committed = True

        try:
            yield inner
            run_to_end(commit)
        finally:
            shown.join(committed=committed)
            staged.close()
            journal.close()

    @gated("read")
    def changes(self, since: str | None = None) -> ChangesResult:
        """Show all that you changed, as one patch.

        Args:
            since: A checkpoint; by default everything.

        Returns:
            The files, and the patch in git's format.

        Raises:
            AgentFSError: `not_found` for an unknown checkpoint, with those there are; `refused`.
        """
        from agentfs.history.report import changes_result

        net = self._journal.since(since)
        changes = tuple(change for change in net.changes if self._root.is_usable(change.path))
        external = tuple(path for path in net.external if self._root.is_usable(path))
        return changes_result(
            net._replace(changes=changes, external=external), since, self._root.may_show_recorded
        )

    def _begin(self, state: str | os.PathLike[str] | None) -> None:
        """Begin the journal and the memory, or go on with those of a state directory."""
        if state is None:
            from agentfs.history import Journal, node_reader
            from agentfs.read_tracker import ReadTracker

            self._journal, self._shown = Journal(read_node=node_reader(self._root)), ReadTracker()
        else:
            from agentfs.history.state import open_state

            try:
                self._state = open_state(state, self._root, self.policy.durability)
            except BaseException:
                self._root.close()
                raise
            self._journal, self._shown = self._state.journal, self._state.read_tracker
            self._root.recovery_notes += self._state.messages
        self._root.recorder = self._journal

    def _end(self) -> None:
        self._journal.close()
        if self._state is not None:
            self._state.close()

    def _moved(self, done: str, move: "Move") -> UndoResult:
        from agentfs.fs import FileNode, revision_of
        from agentfs.history.report import undo_result

        for change in move.changes:
            if isinstance(change.after, FileNode) and self._shown.knows(change.path):
                self._shown.record_return(change.path, revision_of(change.after.load()))
        return undo_result(done, move, len(self._journal.steps), len(self._journal.undone_steps))
