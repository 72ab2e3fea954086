"""The journal of one workspace: its steps, checkpoints and accepted bases, and a change under way."""

import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from copy import copy
from functools import partial
from itertools import count
from threading import RLock
from typing import TYPE_CHECKING, Any, Protocol

from agentfs import history
from agentfs.base import call_context
from agentfs.base.forks import watch_forks
from agentfs.errors import AgentFSError, ClosedError, NotFoundError
from agentfs.fs import Change, FileNode, LinesBy, MovedNode, Node, Root, entry_type, node_to_json, quote
from agentfs.fs.node import NotRestoredError
from agentfs.history import log as bounds
from agentfs.history.database import Contents, Statement, put_meta, stored_json
from agentfs.history.log import Log, Step
from agentfs.limits import Limits
from agentfs.text import plural

if TYPE_CHECKING:
    from agentfs.history.report import Display
    from agentfs.history.step_merge import NodeReader

MAX_FILE_BYTES = 200 * 1024 * 1024  # the largest file that any workspace changes
_NAMES_SHOWN = 20
_SPARE = 8  # contents are dropped to an eighth below their bound
_END_BEGUN: Statement = ("UPDATE steps SET begun = 0 WHERE begun", ())
_DROP_BEGUN: Statement = ("DELETE FROM steps WHERE begun", ())

Bases = Mapping[str, Node | None]  # the accepted nodes, by path


class Recordings(Protocol):
    """The open recordings, which must not take the changes of the workspace for those of others."""

    def settle(self, changes: Sequence[Change]) -> None:
        """Store what others have changed so far, if the workspace is about to make changes that follow it."""

    def observe(self, changes: Iterable[Change]) -> None:
        """Take note of changes that the workspace has made."""

    def needed(self, *, forget_unused: bool) -> Iterable[Node | None]:
        """Return the nodes whose contents are needed; optionally forget what only saves time."""
        ...

    def end_failed(self) -> None:
        """End the recordings whose end has failed before."""


class Overtaken(Exception):  # noqa: N818 - a signal within this package
    """The journal has changed since an undo or redo was computed."""


class Journal:
    """The steps of one workspace; each is begun just before its changes are made. Thread-safe.

    With a state directory, a step that was begun and not ended names itself at the next opening.
    """

    def __init__(
        self,
        read_node: "NodeReader | None" = None,
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
        self._read_node, self._most_bytes = read_node, most_bytes
        self._lock = RLock()  # always taken after the locks of files
        self._forked = False
        self.recordings: Recordings | None = None  # until the first recording
        self._main: Journal | None = None  # set in a journal for one transaction
        watch_forks(self)

    def after_fork(self) -> None:
        """Start empty in a forked child; with a state directory, its database refuses every use there."""
        self._lock = RLock()
        self.recordings, self.ended = None, bool(self.groups)
        if not self.is_kept:
            self.contents, self.log, self.accepted, self._forked = Contents(), Log(), {}, True

    def close(self) -> None:
        """Release the kept contents and close the database."""
        with self._lock:
            self.contents.close()

    def flush(self) -> None:
        """At the end of a call, write the outcomes that are not yet in the database."""
        self.contents.database.flush()

    def exclusive(self) -> AbstractContextManager[object]:
        """Return a context in which no other thread makes a recorded change."""
        return self._lock

    @property
    def main(self) -> "Journal":
        """The journal to which a transaction belongs, or itself."""
        return self._main or self

    def in_group(self) -> "Journal":
        """Return this journal for a transaction: its steps belong together."""
        other = copy(self)
        other._main = self.main  # noqa: SLF001 - its own
        with self._lock:
            other.groups = (*self.groups, self.log.new_group())
        watch_forks(other)
        return other

    def logging_step(
        self,
        changes: tuple[Change, ...],
        *,
        label: str = "",
        lost: tuple[str, ...] = (),
        by_others: tuple[LinesBy, ...] = (),
        accepted: Bases | None = None,
    ) -> AbstractContextManager[tuple[Change, ...]]:
        """Begin a step with the changes that the block makes, and end it, as `appending`.

        A command gives the step a label, and the changed paths whose contents are not kept. The author is
        that of the present call, also of all lines that `by_others` does not name.
        """
        kept = tuple(map(self.contents.keep, changes))
        author = call_context.author.get()
        step = Step(kept, time.time(), label, lost, author, by_others, groups=self.groups)
        return self.appending([step] if kept else [], kept, accepted=accepted)

    @contextmanager
    def appending(
        self,
        steps: Sequence[Step],
        changes: tuple[Change, ...],
        *,
        at: int | None = None,
        accepted: Bases | None = None,
    ) -> Generator[tuple[Change, ...]]:
        """Begin steps, which together make these changes, and end them; drop them if the block fails.

        At their end, the nodes of `accepted` become bases. Raises Overtaken unless the position is `at`.
        """
        with self._lock:
            if self.ended:
                raise ClosedError("This transaction has ended.")
            if at is not None and at != self.log.position:
                raise Overtaken
            bases = self._kept(accepted or {})
            recordings = self.main.recordings
            all_changes = [change for step in steps for change in step.changes]
            if recordings is not None:
                recordings.settle(all_changes)
            self._store(steps, begun=True)
            made = steps
            try:
                yield changes
            except BaseException as error:
                # A failed change was taken back. If that failed, or after an interrupt, the tree must tell.
                is_reversed = isinstance(error, Exception | call_context.Cancelled)
                is_reversed = is_reversed and not isinstance(error, NotRestoredError)
                made = [] if is_reversed else self.made(steps)
                raise
            finally:
                # Order matters: after an interrupt here, the step must still be recorded as begun.
                if made == steps:
                    self._add(steps)
                    self.accepted.update(bases)
                    if self.is_kept and steps:
                        ends = [_END_BEGUN, *([self._accepted_row()] if bases else [])]
                        self.contents.database.defer(ends)
                else:
                    self.replace_begun(made)
                if recordings is not None:
                    recordings.observe(change for step in made for change in step.changes)
                self._bound()

    def record(self, step: Step | None, statements: Sequence[Statement] = ()) -> None:
        """Append a step that others have made already, and run statements in the same transaction."""
        steps = [] if step is None else [step._replace(groups=self.groups)]
        with self._lock:
            self._store(steps, begun=False, statements=statements)
            self._add(steps)
            self._bound()

    def made(self, steps: Sequence[Step]) -> list[Step]:
        """Return steps with only the changes that the tree shows as made; none if nothing was changed."""
        net: dict[str, Change] = {}
        for change in (each for step in steps for each in step.changes):
            known = net.get(change.path, change)
            net[change.path] = Change(change.path, known.before, change.after)
        made = {path for path, change in net.items() if self._is_made(change)}
        if all(net[path].changes_nothing for path in made):
            return []
        kept = [
            step._replace(changes=tuple(each for each in step.changes if each.path in made)) for step in steps
        ]
        return [step for step in kept if step.changes]

    def _is_made(self, change: Change) -> bool:
        before, after, read = change.before, change.after, self._read_node
        unread = isinstance(after or before, MovedNode) and not isinstance(before, FileNode)
        with suppress(AgentFSError):
            if read is None:
                return False
            node = read(change.path, unread=unread)
            if node is None or not isinstance(after, MovedNode):
                return node == after
            return node != before and entry_type(node) == after.kind
        return False

    def replace_begun(self, steps: Sequence[Step]) -> None:
        """Store what was made of the steps that were begun in their place."""
        if self.is_kept:  # on a full disk, the next transaction does it
            self.contents.database.defer([_DROP_BEGUN, *self._rows(steps, begun=False)])
            self.contents.database.flush()
        self._add(steps)

    def _add(self, steps: Iterable[Step]) -> None:
        for step in steps:
            self.log.add(step)

    def _store(self, steps: Sequence[Step], *, begun: bool, statements: Sequence[Statement] = ()) -> None:
        if not self.is_kept or not (steps or statements):
            return
        self.contents.write([*self._rows(steps, begun=begun), *statements])

    def _rows(self, steps: Sequence[Step], *, begun: bool) -> list[Statement]:
        insert = "INSERT OR REPLACE INTO steps VALUES (?, ?, ?)"
        return [
            (insert, (number, begun, stored_json(step_to_json(step))))
            for number, step in enumerate(steps, self.log.position + 1)
        ]

    def settle_recordings(self) -> None:
        """End the recordings whose end has failed before."""
        if self.main.recordings is not None:
            self.main.recordings.end_failed()

    def checkpoint(self, name: str | None) -> tuple[str, bool]:
        """Name the current position; return the name, and True if it named another position before.

        The default name is a number.
        """
        with self._lock:
            known = self.log.checkpoints
            if name is None:
                name = next(name for name in map(str, count(len(known) + 1)) if name not in known)
            after = {**{each: at for each, at in known.items() if each != name}, name: self.log.position}
            self._store([], begun=False, statements=[put_meta("checkpoints", after)])
            return name, self.log.set_checkpoint(name)

    def steps_since(self, checkpoint: str | None) -> tuple[Sequence[Step], int]:
        """Return the kept steps since a checkpoint, by default all, and how many before them were dropped.

        The default in a transaction are its own steps.
        """
        with self._lock:
            if checkpoint is None and self.groups:
                depth = len(self.groups)
                return [step for step in self.log.after(0) if step.groups[:depth] == self.groups], 0
            start = 0 if checkpoint is None else self.position_of(checkpoint)
            return self.log.after(start), max(self.log.dropped - start, 0)

    def accept(self, bases: Bases) -> None:
        """Keep what a review has accepted as the bases of these paths."""
        with self._lock:
            before = {**self.accepted}
            self.accepted.update(self._kept(bases))
            try:
                self._store([], begun=False, statements=[self._accepted_row()])
            except BaseException:
                self.accepted = before
                raise

    def _kept(self, bases: Bases) -> Bases:
        return {path: node and self.contents.keep_node(node) for path, node in bases.items()}

    def _accepted_row(self) -> Statement:
        return put_meta("accepted", {path: node_to_json(node) for path, node in self.accepted.items()})

    def name_encoding(self, path: str, encoding: str) -> None:
        """Take note of the encoding that a call has named for a file, for its review."""
        if self.encodings.get(path) != encoding:
            self.encodings[path] = encoding
            if self.is_kept:
                self.contents.database.defer([put_meta("encodings", self.encodings)])

    def origin(self, path: str, node: Node | None, display: "Display") -> str:
        """Return a text that names the author of a node at a path."""
        with self._lock:
            step = self.log.last_step_that_left(path, node)
        if step is None or step.label:
            return "another program"
        return f"another call of this workspace ({history.report.describe_step(step, display)})"

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
        if self._forked:
            return " Only the parent process can undo changes that were made before the fork."
        if dropped := self.log.dropped:
            return (
                f" The first {plural(dropped, 'step')} can no longer be undone: only the latest are kept,"
                " with their checkpoints."
            )
        return ""

    def _bound(self) -> None:
        """Drop the oldest steps if there are too many, or if their contents take too many bytes."""
        most, is_full = self._most_bytes, self.contents.total_bytes > self._most_bytes
        if not (is_full or self.log.is_too_long):
            return
        needed = digests_of(self.accepted.values())
        if self.main.recordings is not None:
            needed |= digests_of(self.main.recordings.needed(forget_unused=is_full))
        size, changes, kept, steps = self.contents.size_of(needed), 0, 0, self.log.after(0)
        for step in reversed(steps):
            nodes = (node for change in step.changes for node in (change.before, change.after))
            new = digests_of(nodes) - needed
            size += self.contents.size_of(new)
            changes += len(step.changes)
            is_long = kept >= bounds.MAX_STEPS or changes > bounds.MAX_CHANGES
            if kept and (is_long or (is_full and size > most - most // _SPARE)):
                break
            needed |= new
            kept += 1
        while 1 < kept < len(steps) and steps[-kept].groups[:1] == steps[-kept - 1].groups[:1] != ():
            kept -= 1  # no part of a transaction is dropped alone
        self.log.drop(len(steps) - kept)
        self.contents.collect(needed)
        if self.is_kept:
            drop = ("DELETE FROM steps WHERE number <= ?", (self.log.dropped,))
            checkpoints = put_meta("checkpoints", self.log.checkpoints)
            self.contents.database.defer([put_meta("dropped", self.log.dropped), drop, checkpoints])


def digests_of(nodes: Iterable[Node | None]) -> set[str]:
    """Return the digests of the files among some nodes."""
    return {node.digest for node in nodes if isinstance(node, FileNode)}


def node_reader(root: Root) -> "NodeReader":
    """Return a function that reads the node at a path of the tree."""
    return partial(root.unrecorded.node, max_bytes=MAX_FILE_BYTES)


def step_to_json(step: Step) -> dict[str, Any]:
    """Return a step as JSON values."""
    changes = [
        (each.path, node_to_json(each.before), node_to_json(each.after), each.moved_from)
        for each in step.changes
    ]
    return {**step._asdict(), "changes": changes}


def step_from_json(plain: Any, to_node: Callable[[Any], Node | None]) -> Step:
    """Return the step from its JSON values; raises an error of Python if they have another form."""
    changes: list[Change] = []
    for path, before, after, moved_from in plain["changes"]:
        if "\0" in path or {"", ".", ".."} & set(path.split("/")):
            raise ValueError(path)
        changes.append(Change(path, to_node(before), to_node(after), str(moved_from)))
    by_others = [
        LinesBy(str(path), int(start), int(end), _author(by)) for path, start, end, by in plain["by_others"]
    ]
    return Step(
        tuple(changes),
        float(plain["time"]),
        str(plain["label"]),
        tuple(map(str, plain["lost"])),
        _author(plain["author"]),
        tuple(by_others),
        int(plain["reverts"]),
        tuple(map(int, plain["groups"])),
    )


def _author(plain: Any) -> tuple[str, str]:
    kind, name = plain
    return str(kind), str(name)
