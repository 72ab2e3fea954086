"""The journal of one workspace: its steps and checkpoints."""

import time
from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from threading import RLock
from typing import TYPE_CHECKING

from agentfs import history
from agentfs.base import call_context
from agentfs.base.advice import Advice, Joined, ToolName
from agentfs.base.forks import watch_forks
from agentfs.errors import AgentFSError, InvalidArgumentError, NotFoundError
from agentfs.fs import Change, DirectoryNode, LinesBy, Node, Root, quote
from agentfs.history.storage.contents import Contents
from agentfs.history.storage.step_log import StepLog
from agentfs.history.timeline import MAX_STEPS, Acceptance, AcceptedFile, PendingRewind, Step, Timeline
from agentfs.limits import Limits
from agentfs.text import plural

if TYPE_CHECKING:
    from agentfs.history.recordings.recording import OpenRecording, Recordings
    from agentfs.history.report import Display
    from agentfs.history.take_back import NodeReader

MAX_FILE_BYTES = 200 * 1024 * 1024  # the largest file that any workspace changes
_NAMES_SHOWN = 20
BY_REVIEW = ("program", "review")  # the author of the steps of reviews


class Overtaken(Exception):  # noqa: N818 - a signal within this package
    """The journal has changed since an undo or redo was computed."""


class Journal:
    """The steps of one workspace; each change is recorded just before it is made. Thread-safe.

    Others may read `timeline`. After an interrupt, `read_node` shows which changes were made. Without it, an
    interrupted change counts as not made.
    """

    def __init__(
        self,
        log: StepLog | None = None,
        read_node: "NodeReader | None" = None,
        timeline: Timeline | None = None,
        accepted: Sequence[Acceptance] = (),
    ) -> None:
        self.contents = Contents() if log is None else log.contents
        self.log = log  # None without a state directory
        self._read_node = read_node
        self._lock = RLock()  # always taken after the locks of files
        self._forked = False
        self.timeline = timeline or Timeline()
        self._recordings: Recordings | None = None  # until the first recording
        self._accepted = (*accepted,)
        self._drop_oldest()
        watch_forks(self)

    def after_fork(self) -> None:
        """Start empty in a forked child; with a state directory, refuse every use there."""
        self._lock = RLock()
        if self.log is None:
            self.contents, self.timeline, self._forked = Contents(), Timeline(), True
            self._accepted = ()
        else:
            self.contents = Contents(self.contents.database)
            self.log = StepLog(self.contents)
        self._recordings = None

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

    def prepare(self, changes: Sequence[Change]) -> None:
        """Store what others have changed within a recording, if these changes follow it."""
        if self._recordings is not None:
            with self._lock:
                self._recordings.settle_before(changes)
                self._drop_oldest()

    @contextmanager
    def logging_step(
        self,
        changes: tuple[Change, ...],
        *,
        label: str = "",
        lost: tuple[str, ...] = (),
        by_others: tuple[LinesBy, ...] = (),
    ) -> Generator[tuple[Change, ...]]:
        """Record the changes that the block makes as one step; none if it fails.

        A command gives the step a label, and the changed paths whose contents are not kept. The author is
        that of the present call, also of all lines that `by_others` does not name.
        """
        kept = tuple(map(self.contents.keep, changes))
        with self._lock:
            if not kept:
                yield kept
                return
            author = call_context.author.get()
            timeline, made = self.timeline, Step(kept, time.time(), label, lost, author, by_others)
            if self.log is not None:
                self.log.begin_step(made)
            try:
                yield kept
            except BaseException as error:
                made = made._replace(changes=self._made_before(error, kept))
                raise
            finally:
                # Order matters: after an interrupt here, the step must still be recorded as begun.
                position = timeline.position
                if made.changes:
                    timeline.add(made)
                    if self._recordings is not None:
                        self._recordings.observe(made.changes)
                whole = len(made.changes) == len(kept) or (None if made.changes else False)
                if self.log is not None:
                    self.log.finish_step(made if made.changes else None, position, whole=whole)
                self.contents.drop_unneeded()
                self._drop_oldest()

    @contextmanager
    def rewinding(
        self, rewind: PendingRewind, generation: int, _: tuple[Change, ...]
    ) -> Generator[tuple[Change, ...]]:
        """Adopt the new order of steps when the block has made the changes of an undo or redo.

        `generation` is the generation of the timeline from which the changes were computed. The changes that
        are made are those of `rewind`, except directories that exist already.
        """
        with self._lock:
            if self.timeline.generation != generation:
                raise Overtaken
            if self.log is not None:
                self.log.begin_rewind(rewind)
            made = True
            try:
                yield rewind.changes
            except BaseException as error:
                made = len(self._made_before(error, rewind.changes)) == len(rewind.changes) > 0
                raise
            finally:
                if made:
                    self.timeline.reorder(rewind.order)
                    if self._recordings is not None:
                        self._recordings.observe(rewind.changes)
                if self.log is not None:
                    self.log.finish_rewind(rewind if made else None, whole=made)
                self.contents.drop_unneeded()

    @property
    def recordings(self) -> "Recordings":
        """The open recordings, and their snapshot."""
        if self._recordings is None:
            self._recordings = history.recordings.recording.Recordings(
                self.contents, self.log, self.timeline, self._lock
            )
        return self._recordings

    def begin_recording(self, root: Root, limits: Limits, label: str, *, ignored: bool) -> "OpenRecording":
        """Open a recording of changes that any process makes in the tree."""
        self.end_late_recordings()
        return self.recordings.begin(root, limits, label, ignored=ignored)

    def end_recording(self, opened: "OpenRecording") -> Step | None:
        """End a recording; return its step, or None if nothing can be undone."""
        step = self.recordings.end(opened)
        with self._lock:
            self._drop_oldest()
        return step

    def end_late_recordings(self) -> "list[tuple[OpenRecording, Step | None]]":
        """End the recordings whose end has failed before; return their steps."""
        return [] if self._recordings is None else self._recordings.end_late()

    def checkpoint(self, name: str | None = None) -> tuple[str, bool]:
        """Name the current position; return the name, and True if it named another position before.

        The default name is a number.
        """
        with self._lock:
            known = self.timeline.checkpoints
            if name is None:
                number = len(known) + 1
                while str(number) in known:
                    number += 1
                name = str(number)
            if self.log is not None:
                self.log.set_checkpoint(name, self.timeline.position)
            return name, self.timeline.set_checkpoint(name)

    def steps_since(self, checkpoint: str | None) -> tuple[list[Step], int]:
        """Return the kept steps since a checkpoint, by default all, and how many before them were dropped."""
        with self._lock:
            start = self._start(checkpoint)
            return self.steps_after(start), max(self.timeline.dropped - start, 0)

    def steps_after(self, position: int) -> list[Step]:
        """Return the kept steps that were made after a position."""
        with self._lock:
            timeline = self.timeline
            return [*timeline.between(max(position, timeline.dropped), timeline.position)]

    def accepted_since(self, first: Step | None) -> tuple[Acceptance, ...]:
        """Return what reviews have accepted after a step, or ever."""
        with self._lock:
            return tuple(each for each in self._accepted if first is None or each.time >= first.time)

    def accept(self, files: Sequence[AcceptedFile]) -> None:
        """Keep what a review has accepted, as long as the steps since then are kept."""
        with self._lock:
            steps = self.timeline.done_steps
            first = steps[0] if steps and self.timeline.dropped else None
            kept = [each._replace(base=self._kept(each.base), now=self._kept(each.now)) for each in files]
            latest = max([time.time(), *(step.time for step in steps[-1:])])
            added = Acceptance(latest, tuple(kept))
            accepted = (*self.accepted_since(first), added)[-MAX_STEPS:]
            if self.log is not None:
                self.log.accept(added, len(accepted))
            self._accepted = accepted

    def _kept(self, node: Node | None) -> Node | None:
        return node and self.contents.keep_node(node)

    def reviewed(self, path: str) -> list[Change]:
        """Return how reviews have changed a path, the latest first."""
        with self._lock:
            steps = [step for step in reversed(self.timeline.done_steps) if step.author == BY_REVIEW]
            return [change for step in steps for change in step.changes if change.path == path]

    def origin(self, path: str, node: Node | None, display: "Display") -> str:
        """Return a text that names the author of a node at a path."""
        with self._lock:
            step = self.timeline.last_step_that_left(path, node)
        if step is None or step.label:
            return "another program"
        return f"another call of this workspace ({history.report.describe_step(step, display)})"

    def _start(self, checkpoint: str | None) -> int:
        start = 0 if checkpoint is None else self.position_of(checkpoint)
        if start > self.timeline.position:
            raise InvalidArgumentError(
                f"The checkpoint {quote(str(checkpoint))} lies ahead, among undone steps.",
                hint=Advice("Call ", Joined(" or ", ToolName("redo"), ToolName("rollback")), " to go there."),
                details={"parameter": "since"},
            )
        return start

    def position_of(self, checkpoint: str) -> int:
        """Return the position of a checkpoint; raises NotFoundError."""
        position = self.timeline.checkpoints.get(checkpoint)
        if position is None:
            names = list(self.timeline.checkpoints)[-_NAMES_SHOWN:]
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
        if dropped := self.timeline.dropped:
            return (
                f" The first {plural(dropped, 'step')} can no longer be undone: only the latest are kept,"
                " with their checkpoints."
            )
        return ""

    def _made_before(self, error: BaseException, changes: tuple[Change, ...]) -> tuple[Change, ...]:
        """Return the changes that were made before an error: none, unless it is an interrupt."""
        if isinstance(error, Exception | call_context.Cancelled) or self._read_node is None:
            return ()
        return RecoveryState(changes, self._read_node).made

    def _drop_oldest(self) -> None:
        if self.timeline.drop_oldest():
            if self.log is not None:
                self.log.drop_steps(self.timeline.dropped)
            self.contents.drop_unneeded()


class RecoveryState:
    """Tells from the tree which changes were made before an interrupt or crash."""

    def __init__(self, changes: tuple[Change, ...], read_node: "NodeReader") -> None:
        self.made: tuple[Change, ...] = ()
        self.unmade: tuple[Change, ...] = ()
        self.conflicting: tuple[Change, ...] = ()  # the path has neither the old nor the new node
        self.stray: tuple[Change, ...] = ()  # directories that were created for a file that was not written
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
            # Directories are created before their file; without the file, the change was not made.
            self.stray = self.made
            self.unmade += self.made
            self.made = ()
        if self.made:
            # A directory that is not empty is not removed, and the change still counts as made.
            self.made += tuple(change for change in self.unmade if _removes_directory(change))
            self.unmade = tuple(change for change in self.unmade if not _removes_directory(change))

    @property
    def complete(self) -> bool:
        """True if all changes were made."""
        return not self.unmade and not self.conflicting

    @property
    def whole(self) -> bool | None:
        """True if all changes were made, False if none; None for a part, or if a path has changed since."""
        return self.complete or (None if self.made or self.conflicting else False)


def node_reader(root: Root) -> "NodeReader":
    """Return a function that reads the node at a path of the tree."""
    return partial(root.unrecorded.node, max_bytes=MAX_FILE_BYTES)


def _prepares_directory(change: Change) -> bool:
    return isinstance(change.after, DirectoryNode) and isinstance(change.before, DirectoryNode | None)


def _removes_directory(change: Change) -> bool:
    return isinstance(change.before, DirectoryNode) and change.after is None
