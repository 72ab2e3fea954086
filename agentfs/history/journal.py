"""The journal of one workspace: its steps, undo, redo and checkpoints."""

import time
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from copy import copy
from functools import partial
from threading import RLock
from typing import NamedTuple

from agentfs import call_context
from agentfs.advice import Advice, Joined, ParameterName, ToolName, call
from agentfs.errors import (
    AgentFSError,
    BusyError,
    InvalidArgumentError,
    NotFoundError,
    RefusedError,
    StaleError,
)
from agentfs.forks import watch_forks
from agentfs.fs import Change, DirectoryNode, Node, Root, quote
from agentfs.history.report import MayShow, conflict_error, name_paths
from agentfs.history.store import Store
from agentfs.history.timeline import Move, NetChanges, Step, Timeline
from agentfs.text import plural

MAX_FILE_BYTES = 200 * 1024 * 1024  # the largest file that any workspace changes
_RETRY_SECONDS = 5.0  # while other calls change the journal
_NAMES_SHOWN = 20

NodeReader = Callable[[str], Node | None]


class _Overtaken(Exception):  # noqa: N818 - a signal within this module
    """The journal has changed since the changes of a move were computed."""


class Journal:
    """The steps of one workspace; each change is recorded just before it is made. Thread-safe.

    `timeline` is for others to look at. `read_node` finds out what an interrupted change has made; None where
    one makes nothing.
    """

    def __init__(
        self,
        store: Store | None = None,
        read_node: NodeReader | None = None,
        timeline: Timeline | None = None,
    ) -> None:
        self.store = store or Store()
        self._read_node = read_node
        self._lock = RLock()  # taken after the locks of files, never before
        self._forked = False
        self.timeline = timeline or Timeline()
        self._merge()
        watch_forks(self)

    def after_fork(self) -> None:
        """Begin anew in a forked child; with a state directory every use of it is refused there."""
        self._lock = RLock()
        if self.store.database.temporary:
            self.store, self.timeline, self._forked = Store(), Timeline(), True
        else:
            self.store = Store(self.store.database)

    def close(self) -> None:
        """Drop or release everything that is kept."""
        with self._lock:
            self.store.close()

    def flush(self) -> None:
        """Write down what is left of the changes of a call at its end."""
        self.store.database.flush()

    def alone(self) -> AbstractContextManager[object]:
        """Return a context in which no other thread makes a recorded change."""
        return self._lock

    @contextmanager
    def recording(self, changes: tuple[Change, ...]) -> Generator[tuple[Change, ...]]:
        """Record the changes that the block makes as one step; none if it fails."""
        kept = tuple(self.store.keep(change) for change in changes)
        with self._lock:
            if not kept:
                yield kept
                return
            timeline, made = self.timeline, Step(kept, time.time())
            self.store.begin_step(made)
            try:
                yield kept
            except BaseException as error:
                made = Step(self._made_before(error, kept), made.time)
                raise
            finally:
                # In this order: an interrupt may come in between, and what is not finished yet is later.
                position = timeline.position
                if made.changes:
                    timeline.add(made)
                whole = len(made.changes) == len(kept) or (None if made.changes else False)
                self.store.finish_step(made if made.changes else None, position, whole=whole)
                self._merge()

    @contextmanager
    def moving(self, generation: int, end: int, changes: tuple[Change, ...]) -> Generator[tuple[Change, ...]]:
        """Make `end` the position once the block has made the changes; not if it fails.

        `generation` is that of the timeline from which the changes were computed.
        """
        with self._lock:
            if self.timeline.generation != generation:
                raise _Overtaken
            self.store.begin_move(self.timeline.position, end)
            moved = True
            try:
                yield changes
            except BaseException as error:
                moved = bool(changes) and len(self._made_before(error, changes)) == len(changes)
                raise
            finally:
                if moved:
                    self.timeline.move_to(end)
                self.store.finish_move(self.timeline.position, whole=moved)

    def checkpoint(self, name: str | None = None) -> tuple[str, bool]:
        """Name the current position; return the name, and whether it was that of another position.

        The default name is a number.
        """
        with self._lock:
            known = self.timeline.checkpoints
            if name is None:
                number = len(known) + 1
                while str(number) in known:
                    number += 1
                name = str(number)
            self.store.set_checkpoint(name, self.timeline.position)
            return name, self.timeline.set_checkpoint(name)

    def since(self, checkpoint: str | None) -> NetChanges:
        """Return the net changes since a checkpoint; of all steps for None."""
        with self._lock:
            return self.timeline.since(self._start(checkpoint))

    def visible_since(self, checkpoint: str | None, may_show: MayShow) -> MayShow:
        """Return a test of the paths whose recorded contents may be shown.

        `may_show` judges a path. A file that was moved since is judged by the path where it is now.
        """
        with self._lock:
            hidden = self.timeline.moved_to_hidden(self._start(checkpoint), lambda path: not may_show(path))
        return lambda path: path not in hidden and may_show(path)

    def _start(self, checkpoint: str | None) -> int:
        start = 0 if checkpoint is None else self._position_of(checkpoint)
        if start > self.timeline.position:
            raise InvalidArgumentError(
                f"The checkpoint {quote(str(checkpoint))} lies ahead, among steps that were undone.",
                hint=Advice("Call ", Joined(" or ", ToolName("redo"), ToolName("rollback")), " to go there."),
                details={"parameter": "since"},
            )
        return start

    def undo(self, root: Root, steps: int, *, max_bytes: int) -> Move:
        """Undo the last steps, all of them or none."""

        def target() -> int:
            position = self.timeline.position
            count = position - self.timeline.merged
            return position - _available(count, steps, "undo", self._out_of_reach)

        return self._move(root, target, max_bytes)

    def redo(self, root: Root, steps: int, *, max_bytes: int) -> Move:
        """Redo steps that were undone, all of them or none; raises as `undo`."""

        def target() -> int:
            position = self.timeline.position
            return position + _available(self.timeline.end - position, steps, "redo")

        return self._move(root, target, max_bytes)

    def rollback(self, root: Root, checkpoint: str, *, max_bytes: int) -> Move:
        """Undo or redo the steps up to a checkpoint; raises as `undo`, and not_found for the checkpoint."""
        return self._move(root, lambda: self._position_of(checkpoint), max_bytes)

    def _move(self, root: Root, target: Callable[[], int], max_bytes: int) -> Move:
        deadline = time.monotonic() + _RETRY_SECONDS
        while True:
            with self._lock:
                start, generation = self.timeline.position, self.timeline.generation
                end = target()
                net = self.timeline.net_to(end)
            undoing = end < start
            _check_usable(root, net)
            if net.external:
                raise _changed_between(net)
            try:
                applied = root.apply(
                    net.changes,
                    max_bytes=max_bytes,
                    conflict=partial(conflict_error, undoing=undoing, may_show=root.may_show_recorded),
                    recorder=_MoveRecorder(self, generation, end),
                    undoing=True,
                )
            except (_Overtaken, AgentFSError):
                # The conflict may be what another thread has just recorded: then the changes are others.
                with self._lock:
                    if self.timeline.generation == generation:
                        raise
                if time.monotonic() > deadline:
                    raise BusyError(
                        f"Other calls have been changing files for {_RETRY_SECONDS:g} seconds;"
                        " nothing was done.",
                        hint="Try the same call again.",
                    ) from None
                continue
            return Move(net.changes, end - start, applied.remaining, applied.notes)

    def _position_of(self, checkpoint: str) -> int:
        position = self.timeline.checkpoints.get(checkpoint)
        if position is None:
            names = list(self.timeline.checkpoints)[-_NAMES_SHOWN:]
            hint = f"There are {', '.join(map(quote, names))}." if names else "There is none yet."
            raise NotFoundError(
                f"There is no checkpoint {quote(checkpoint)}.",
                hint=hint + self._out_of_reach,
                details={"checkpoints": names},
            )
        return position

    @property
    def _out_of_reach(self) -> str:
        """A sentence about the steps that cannot be undone, if there are any."""
        if self._forked:
            return " What was changed before this process was forked, only the parent process can undo."
        if merged := self.timeline.merged:
            return (
                f" The first {plural(merged, 'step')} are too long ago: they were merged,"
                " and checkpoints among them are gone."
            )
        return ""

    def _made_before(self, error: BaseException, changes: tuple[Change, ...]) -> tuple[Change, ...]:
        """Return the changes that were made before an error: none, unless it is an interrupt."""
        if isinstance(error, Exception | call_context.Cancelled) or self._read_node is None:
            return ()
        return RecoveryState(changes, self._read_node).made

    def _merge(self) -> None:
        position = self.timeline.merge_due()
        if position > self.timeline.merged:
            self.timeline.merge(position)
            self.store.merge(self.timeline)


class _MoveRecorder(NamedTuple):
    """The recorder of an undo or redo, which adds no step."""

    journal: Journal
    generation: int
    end: int

    def recording(self, changes: tuple[Change, ...]) -> AbstractContextManager[tuple[Change, ...]]:
        return self.journal.moving(self.generation, self.end, changes)

    def alone(self) -> AbstractContextManager[object]:
        return self.journal.alone()


class RecoveryState:
    """Which of the changes that were begun the tree shows to be made."""

    def __init__(self, changes: tuple[Change, ...], read_node: NodeReader) -> None:
        self.made: tuple[Change, ...] = ()
        self.unmade: tuple[Change, ...] = ()
        self.conflicting: tuple[Change, ...] = ()  # the path is neither as before nor as after
        self.stray: tuple[Change, ...] = ()  # directories that were created for files that were not
        for change in changes:
            try:
                present = read_node(change.path)
            except AgentFSError:
                self.conflicting += (change,)
                continue
            if present == change.after:
                self.made += (change,)
            elif present == change.before:
                self.unmade += (change,)
            else:
                self.conflicting += (change,)
        if all(_prepares_directory(change) for change in self.made) and not self.complete:
            # Directories are created on the way to a file; without the file nothing was made.
            self.stray = self.made
            self.unmade += self.made
            self.made = ()
        if self.made:
            # A directory stays where something else is in it.
            self.made += tuple(change for change in self.unmade if _removes_directory(change))
            self.unmade = tuple(change for change in self.unmade if not _removes_directory(change))

    @property
    def complete(self) -> bool:
        """Whether all was made."""
        return not self.unmade and not self.conflicting

    @property
    def whole(self) -> bool | None:
        """Whether all was made, or nothing; None for a part, or if others have changed it since."""
        return self.complete or (None if self.made or self.conflicting else False)


def node_reader(root: Root) -> NodeReader:
    """Return a function that returns what is at a path of the tree."""
    # Of a copy: the root references its journal, and a cycle would keep both until the collector runs.
    unrecorded = copy(root)
    unrecorded.recorder = None
    return lambda path: unrecorded.node(path, max_bytes=MAX_FILE_BYTES)


def _prepares_directory(change: Change) -> bool:
    return isinstance(change.after, DirectoryNode) and isinstance(change.before, DirectoryNode | None)


def _removes_directory(change: Change) -> bool:
    return isinstance(change.before, DirectoryNode) and change.after is None


def _available(count: int, steps: int, verb: str, out_of_reach: str = "") -> int:
    """Return the number of steps; raise if it is below 1 or over the count that there is."""
    if steps < 1:
        raise InvalidArgumentError(
            Advice(ParameterName("steps"), f" must be 1 or more, not {steps}."),
            details={"parameter": "steps"},
        )
    if steps > count:
        message = (
            f"Only {plural(count, 'step')} can be {verb}ne." if count else f"There is nothing to {verb}."
        )
        raise InvalidArgumentError(
            message + out_of_reach,
            hint=Advice("Call ", call(verb, steps=count), ".") if count else "",
            details={"parameter": "steps", "steps": count},
        )
    return steps


def _check_usable(root: Root, net: NetChanges) -> None:
    if not all(map(root.is_usable, (*(change.path for change in net.changes), *net.external))):
        raise RefusedError(
            "These steps changed something outside of what may be used here; nothing was done.",
            hint="Undo or redo fewer steps, or edit the files.",
        )


def _changed_between(net: NetChanges) -> StaleError:
    return StaleError(
        f"Somebody else changed {name_paths(net.external, _NAMES_SHOWN)} between these steps,"
        " and that would be lost; nothing was done.",
        hint="Go fewer steps at once, or edit the file.",
        details={"paths": list(net.external)},
    )
