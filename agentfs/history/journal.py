"""The journal of one workspace: its steps, checkpoints and accepted bases, and a change under way."""

import os
import time
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from copy import copy
from itertools import chain, count
from threading import RLock
from typing import Any

from agentfs.base import call_context
from agentfs.base.advice import plural
from agentfs.base.forks import watch_forks
from agentfs.errors import AgentFSError, ClosedError, NotFoundError
from agentfs.fs import Change, FileNode, MovedNode, Node, Root, entry_type, expanded, quote
from agentfs.fs.node import ConcurrentChange, NotRestoredError
from agentfs.history.database import Contents, Statement, put_meta, stored_json
from agentfs.history.log import Author, LinesBy, Log, Step, Toggle
from agentfs.history.rows import node_to_json, step_to_json
from agentfs.history.state_directory import StateDirectory
from agentfs.limits import Limits

MAX_FILE_BYTES = 200 * 1024 * 1024  # the largest file that any workspace changes
MAX_CHECKPOINTS = 10_000
_NAMES_SHOWN = 20
_END_BEGUN: Statement = ("UPDATE steps SET begun = 0 WHERE begun", ())
_DROP_BEGUN: Statement = ("DELETE FROM steps WHERE begun", ())

Bases = Mapping[str, Node | None]  # the accepted nodes, by path


class Journal:
    """The steps of one workspace; each is begun just before its changes are made. Thread-safe.

    With a state directory, a step that was begun and not ended names itself at the next opening.
    """

    def __init__(
        self,
        root: Root | None = None,
        contents: Contents | None = None,
        most_bytes: int = Limits().snapshot_bytes,
    ) -> None:
        self.contents = contents or Contents()
        self.log = Log()
        self.accepted: dict[str, Node | None] = {}  # the accepted bases
        self.encodings: dict[str, str] = {}  # those that calls have named, by path
        self.groups: tuple[int, ...] = ()  # in the journal of a transaction, the `groups` of its steps
        self.ended = False  # True after the end of a transaction, in its journal
        self.is_kept = not self.contents.database.temporary
        self.directory: StateDirectory | None = None  # closed with the journal
        self._root, self._most_bytes = root and root.view(recorder=None), most_bytes
        # While it is held, no other thread makes a recorded change. Always taken after the locks of files.
        self.lock = RLock()
        # The `OpenRecordings` of the module that imports this one, from the first recording on.
        self.recordings: Any = None
        self._main: Journal | None = None  # set in a journal for one transaction
        watch_forks(self)

    def after_fork(self) -> None:
        """Start empty in a forked child; with a state directory, its database refuses every use there."""
        self.lock = RLock()
        self.recordings, self.ended = None, bool(self.groups)
        if not self.is_kept:
            self.contents, self.log, self.accepted = Contents(), Log(), {}

    def close(self) -> None:
        """Release the kept contents, close the database and unlock the state directory."""
        with self.lock:
            self.contents.close()
            if self.directory is not None:
                self.directory.close()

    @property
    def private_paths(self) -> tuple[str, ...]:
        """The state directory, if there is one."""
        return () if self.directory is None else (self.directory.path,)

    def flush(self) -> None:
        """At the end of a call, write the outcomes that are not yet in the database."""
        self.contents.database.flush()

    @property
    def main(self) -> "Journal":
        """The journal to which a transaction belongs, or itself."""
        return self._main or self

    def in_group(self) -> "Journal":
        """Return this journal for a transaction: its steps belong together."""
        other = copy(self)
        other._main, other.directory = self.main, None  # noqa: SLF001 - its own
        other.groups = (*self.groups, int.from_bytes(os.urandom(6)))
        watch_forks(other)
        return other

    @contextmanager
    def logging_step(
        self,
        changes: tuple[Change, ...],
        *,
        label: str = "",
        lost: tuple[str, ...] = (),
        by_others: tuple[LinesBy, ...] = (),
        toggles: tuple[Toggle, ...] | None = None,
        accepted: Bases | None = None,
        author: Author | None = None,
        at: int | None = None,
    ) -> Generator[tuple[Change, ...]]:
        """Begin a step with the changes that the block makes, and end it; drop it if the block fails.

        Gives the changes with contents loaded from the store.

        Args:
            changes: The changes.
            label: That of a command.
            lost: Paths that a command has changed, whose contents are not kept.
            by_others: Lines by other authors.
            toggles: What an undo, redo or rollback takes back or makes again.
            accepted: Nodes that become bases at the end of the step.
            author: The author of all lines that `by_others` does not name, by default of the present call.
            at: The position at which the changes were computed; raises ConcurrentChange at another.
        """
        with self.lock:
            if self.ended:
                raise ClosedError("This transaction has ended.")
            if at is not None and at != self.log.position:
                raise ConcurrentChange
            if (recordings := self.main.recordings) is not None:
                recordings.settle(expanded(changes))
            kept, author = tuple(map(self.contents.keep, changes)), author or call_context.author.get()
            made = step = Step(kept, time.time(), label, lost, author, by_others, self.groups, toggles)
            bases = {path: self.contents.keep_node(node) for path, node in (accepted or {}).items()}
            accepting = [_accepted_row({**self.accepted, **bases})] if bases else []
            is_step = bool(step.changes or toggles)
            self._write(self._row(step, begun=True) if is_step else accepting)
            try:
                yield step.changes
            except BaseException as error:
                # A failed change was taken back. If that failed, or after an interrupt, the tree must tell.
                is_reversed = isinstance(error, Exception | call_context.Cancelled)
                is_reversed = is_reversed and not isinstance(error, NotRestoredError)
                made = step._replace(changes=(), toggles=None) if is_reversed else self.made(step)
                raise
            finally:
                # Order matters: after an interrupt here, the step must still be recorded as begun.
                if made is not step:
                    self.replace_begun(made)
                else:
                    self.accepted.update(bases)
                    if is_step:
                        self.log.add(step)
                        self._defer([_END_BEGUN, *accepting])
                if recordings is not None:
                    recordings.observe(expanded(made.changes))
                self.bound()

    def record(self, step: Step | None, statements: Sequence[Statement] = ()) -> None:
        """Append a step that others have made already, and run statements in the same transaction.

        Then call `bound`, when all contents that are still needed belong to steps or open recordings.
        """
        with self.lock:
            step = step and step._replace(groups=self.groups)
            self._write([*statements, *(self._row(step, begun=False) if step else ())])
            if step is not None:
                self.log.add(step)

    def made(self, step: Step) -> Step:
        """Return a step with only the changes that the tree shows as made.

        Part of an undo takes back no step, so it becomes a step of its own.
        """
        every = expanded(step.changes)
        changes = tuple(filter(self._is_made, every))
        return step if changes == every else step._replace(changes=changes, toggles=None)

    def _is_made(self, change: Change) -> bool:
        before, after = change.before, change.after
        unread = isinstance(after or before, MovedNode) and not isinstance(before, FileNode)
        with suppress(AgentFSError):
            if self._root is None:
                return False
            node = self._root.node(change.path, max_bytes=MAX_FILE_BYTES, unread=unread)
            if node is None or not isinstance(after, MovedNode):
                return node == after
            return node != before and entry_type(node) == after.kind
        return False

    def replace_begun(self, made: Step) -> None:
        """Store what was made of the step that was begun in its place."""
        self._defer([_DROP_BEGUN, *(self._row(made, begun=False) if made.changes else ())])
        self.flush()
        if made.changes:
            self.log.add(made)

    def _write(self, statements: Sequence[Statement]) -> None:
        if self.is_kept and statements:
            self.contents.write(statements)

    def _defer(self, statements: Sequence[Statement]) -> None:
        if self.is_kept:
            self.contents.database.defer(statements)

    def _row(self, step: Step, *, begun: bool) -> list[Statement]:
        """Return the statement that stores the next step, if there is a state directory."""
        if not self.is_kept:
            return []
        values = self.log.position + 1, begun, stored_json(step_to_json(step))
        return [("INSERT OR REPLACE INTO steps VALUES (?, ?, ?)", values)]

    def settle_recordings(self) -> None:
        """End the recordings whose end has failed before."""
        if self.main.recordings is not None:
            self.main.recordings.end_failed()

    def checkpoint(self, name: str | None) -> str:
        """Name the current position, and return the name; the default is a number."""
        with self.lock:
            known, position = self.log.checkpoints, self.log.position
            if name is None:
                name = next(name for name in map(str, count(len(known) + 1)) if name not in known)
            others = [(each, at) for each, at in known.items() if each != name]
            after = dict([*others, (name, position)][-MAX_CHECKPOINTS:])
            self._write([put_meta("checkpoints", after)])
            self.log.checkpoints = after
            return name

    def steps_since(self, checkpoint: str | None) -> tuple[Sequence[Step], int]:
        """Return the kept steps since a checkpoint, by default all, and how many before them were dropped.

        The default in a transaction are its own steps.
        """
        with self.lock:
            if checkpoint is None and self.groups:
                depth = len(self.groups)
                return [step for step in self.log.after(0) if step.groups[:depth] == self.groups], 0
            start = 0 if checkpoint is None else self.position_of(checkpoint)
            return self.log.after(start), max(self.log.dropped - start, 0)

    def name_encoding(self, path: str, encoding: str) -> None:
        """Take note of the encoding that a call has named for a file, for its review."""
        if self.encodings.get(path) != encoding:
            self.encodings[path] = encoding
            self._defer([put_meta("encodings", self.encodings)])

    def origin(self, path: str, node: Node | None) -> str:
        """Return a text that names the author of a node at a path."""
        with self.lock:
            step = self.log.last_step_that_left(path, node)
        own = "run: ", "background: ", "merge: "  # the labels of commands and of merged branches
        is_own = step is not None and (not step.label or step.label.startswith(own))
        return "another call of this workspace" if is_own else "another program"

    def position_of(self, checkpoint: str) -> int:
        """Return the position of a checkpoint; raises NotFoundError."""
        position = self.log.checkpoints.get(checkpoint)
        if position is None:
            names = list(self.log.checkpoints)[-_NAMES_SHOWN:]
            hint = f"There are {', '.join(map(quote, names))}." if names else "There is none yet."
            raise NotFoundError(
                f"There is no checkpoint {quote(checkpoint)}.",
                hint=hint + self.out_of_reach,
                details={"checkpoints": names},
            )
        return position

    @property
    def out_of_reach(self) -> str:
        """A sentence about steps that can no longer be undone, or ""."""
        if dropped := self.log.dropped:
            return (
                f" The first {plural(dropped, 'step')} can no longer be undone: only the latest are kept,"
                " with their checkpoints."
            )
        return ""

    def bound(self) -> None:
        """Drop contents that nothing needs, then the oldest steps, until they are few enough and fit."""
        with self.lock:
            contents, log = self.contents, self.log
            if contents.total_bytes <= self._most_bytes and not log.is_too_long:
                return
            self._collect()
            while len(log.after(0)) > 1 and (log.is_too_long or contents.total_bytes > self._most_bytes):
                log.drop_oldest()
                self._collect()
            drop = ("DELETE FROM steps WHERE number <= ?", (log.dropped,))
            self._defer([put_meta("dropped", log.dropped), drop, put_meta("checkpoints", log.checkpoints)])

    def _collect(self) -> None:
        """Drop the contents that no step, accepted base or open recording needs."""
        recordings = self.main.recordings
        others = recordings.needed() if recordings else ()
        self.contents.collect(digests_of(chain(nodes_of(self.log.after(0)), self.accepted.values(), others)))


def _accepted_row(bases: Bases) -> Statement:
    return put_meta("accepted", {path: node_to_json(node) for path, node in bases.items()})


def digests_of(nodes: Iterable[Node | None]) -> set[str]:
    """Return the digests of the files among some nodes."""
    return {node.digest for node in nodes if isinstance(node, FileNode)}


def nodes_of(steps: Iterable[Step]) -> list[Node | None]:
    """Return the nodes before and after the changes of some steps."""
    return [node for step in steps for each in step.changes for node in (each.before, each.after)]
