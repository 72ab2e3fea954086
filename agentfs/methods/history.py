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
from agentfs.messages import Message, ParameterName, call
from agentfs.methods.held import Held
from agentfs.results import ChangesResult, CheckpointResult, UndoResult

if TYPE_CHECKING:  # loaded when a tree is opened
    from agentfs.journal import Travel
    from agentfs.state import Opened

_MAX_NAME = 200


class History(Held):
    """What was changed through a workspace, and the way back."""

    _state: "Opened | None" = None

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
        _check_steps(steps)
        travel = self._journal.go(
            self._root,
            lambda line: line.at - _within(line.at - line.first, steps, "undo", line.first),
            max_bytes=self.limits.file_bytes,
        )
        return self._told("Undid", travel)

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
        _check_steps(steps)
        travel = self._journal.go(
            self._root,
            lambda line: line.at + _within(line.end - line.at, steps, "redo"),
            max_bytes=self.limits.file_bytes,
        )
        return self._told("Redid", travel)

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
        return CheckpointResult(made, self._journal.at, text=text)

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

        travel = self._journal.go(self._root, to, max_bytes=self.limits.file_bytes)
        return self._told(f"Went to checkpoint {quote(to)}:", travel)

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
        from agentfs.journal import Journal, Timeline
        from agentfs.journal.report import conflict_error

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
        from agentfs.journal.report import changes_result

        total = self._journal.since(since)
        usable = tuple(change for change in total.changes if self._root.is_usable(change.path))
        named = tuple(path for path in total.foreign if self._root.is_usable(path))
        return changes_result(
            total._replace(changes=usable, foreign=named), since, self._root.may_show_recorded
        )

    def _begin(self, state: str | os.PathLike[str] | None) -> None:
        """Begin the journal and the memory, or go on with those of a state directory."""
        if state is None:
            from agentfs.journal import Journal, Ledger, looking
            from agentfs.read_tracker import ReadTracker

            self._journal, self._shown = Journal(ledger=Ledger(looking(self._root))), ReadTracker()
        else:
            from agentfs.state import open_state

            try:
                self._state = open_state(state, self._root)
            except BaseException:
                self._root.close()
                raise
            self._journal, self._shown = self._state.journal, self._state.shown
            self._root.recovery_notes += self._state.told
        self._root.recorder = self._journal

    def _end(self) -> None:
        self._journal.close()
        if self._state is not None:
            self._state.close()

    def _told(self, done: str, travel: "Travel") -> UndoResult:
        from agentfs.fs import FileNode, quote, revision_of
        from agentfs.journal.report import file_changes, file_lines

        for change in travel.changes:
            if isinstance(change.after, FileNode) and self._shown.knows(change.path):
                self._shown.record_return(change.path, revision_of(change.after.load()))
        files = file_changes(travel.changes, counted=False)
        notes = tuple(f"the directory {quote(path)} stays: something else is in it" for path in travel.left)
        count = abs(travel.steps)
        way = " back" if travel.steps < 0 and done.startswith("Went") else ""
        head = f"{done} {_count(count, 'step')}{way}." if count else f"{done} nothing to do."
        return UndoResult(
            count,
            files,
            len(self._journal.steps),
            self._journal.undone,
            notes,
            text="\n".join([head, *notes, *file_lines(files)]),
        )


def _check_steps(steps: int) -> None:
    if steps < 1:
        raise InvalidArgumentError(
            Message(ParameterName("steps"), f" must be 1 or more, not {steps}."),
            details={"parameter": "steps"},
        )


def _within(there: int, steps: int, verb: str, put_together: int = 0) -> int:
    if steps > there:
        message = f"Only {_count(there, 'step')} can be {verb}ne."
        if not there:
            message = f"There is nothing to {verb}."
        if put_together:
            message += f" The first {_count(put_together, 'step')} are too long ago: they were put together."
        raise InvalidArgumentError(
            message,
            hint=Message("Call ", call(verb, steps=there), ".") if there else "",
            details={"parameter": "steps", "steps": there},
        )
    return steps


def _count(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
