"""The journal of one workspace: what it changed, step by step, and the way back and forth."""

import time
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from threading import RLock
from typing import NamedTuple

from agentfs.errors import AgentFSError, BusyError, InvalidArgumentError, NotFoundError, StaleError
from agentfs.fs import Change, Root, quote
from agentfs.journal.ledger import Ledger
from agentfs.journal.steps import Step, Sum, summed, taken_back
from agentfs.journal.store import Store
from agentfs.journal.timeline import Timeline
from agentfs.messages import Joined, Message, ToolName

_PATIENCE = 5.0  # seconds that a way is looked for anew while other calls change the journal
_NAMES_SHOWN = 20


class Travel(NamedTuple):
    """A way through the journal that was gone.

    Attributes:
        changes: What it changed.
        steps: How many steps it went, less than 0 for back.
        left: Directories that stay because something else is in them.
    """

    changes: tuple[Change, ...]
    steps: int
    left: tuple[str, ...] = ()


class _MovedOn(Exception):  # noqa: N818 - a signal within this module
    """A step was recorded while the way was looked for."""


class Journal:
    """The steps of one workspace. Thread-safe.

    It is told of every change just before it is made, and keeps what is needed to take it back. A step that
    is taken back can be made again, until another step takes its place.

    Args:
        store: Keeps the contents; by default for as long as the journal is there.
        ledger: Is told of all that the journal comes to hold.
        timeline: The steps it begins with.
    """

    def __init__(
        self, store: Store | None = None, ledger: Ledger | None = None, timeline: Timeline | None = None
    ) -> None:
        self.store = store or Store()
        self._ledger = ledger or Ledger()
        # Taken after the locks of files, never before.
        self._lock = RLock()
        self._timeline = timeline or Timeline()
        self._put_together()

    @property
    def put_together(self) -> int:
        """How many of the first steps were put together, so that no undo goes into them."""
        return self._timeline.first

    @property
    def base(self) -> Sum:
        """What these steps come to."""
        with self._lock:
            return self._timeline.base.sum()

    @property
    def at(self) -> int:
        """How many steps are done, from the beginning on."""
        return self._timeline.at

    @property
    def steps(self) -> Sequence[Step]:
        """The steps that are done and can be undone, from the first to the last."""
        with self._lock:
            return self._timeline.between(self._timeline.first, self._timeline.at)

    @property
    def ahead(self) -> Sequence[Step]:
        """The steps that were undone and can be done again, from the first to the last."""
        with self._lock:
            return self._timeline.between(self._timeline.at, self._timeline.end)

    @property
    def undone(self) -> int:
        """How many steps can be done again."""
        with self._lock:
            return self._timeline.end - self._timeline.at

    @property
    def checkpoints(self) -> dict[str, int]:
        """How many steps were done at each checkpoint, by its name."""
        with self._lock:
            return dict(self._timeline.checkpoints)

    def close(self) -> None:
        """Let go of all."""
        with self._lock:
            self._ledger.close()
        self.store.close()

    def alone(self) -> AbstractContextManager[object]:
        """Return what keeps other changes, and ways through the journal, out while it is entered."""
        return self._lock

    @contextmanager
    def recording(self, changes: tuple[Change, ...]) -> Generator[None]:
        """Record changes as one step, unless they fail.

        Args:
            changes: What is about to be changed.

        Raises:
            FileIOError: io: there is no room to keep what is needed to take it back.
        """
        kept = tuple(self.store.keep(change) for change in changes)
        with self._lock:
            if not kept:
                yield
                return
            step = Step(kept, time.time())
            self._ledger.begin_step(step)
            made = kept
            try:
                yield
            except BaseException as error:
                made = self._made(error, kept)
                raise
            finally:
                # In this order: an interrupt may come between them, and what is not settled yet is later.
                if made:
                    self._timeline.add(Step(made, step.time))
                self._ledger.settle(made, whole=len(made) == len(kept))
                self._put_together()

    @contextmanager
    def travelling(self, known: int, end: int, changes: tuple[Change, ...]) -> Generator[None]:
        """Go to another place among the steps, unless the changes that it takes fail.

        Args:
            known: The generation of the journal when the way was looked for.
            end: How many steps are to stand.
            changes: What is about to be changed.

        Raises:
            FileIOError: As `recording`.
        """
        with self._lock:
            if self._timeline.generation != known:
                raise _MovedOn
            self._ledger.begin_travel(self._timeline.at, end)
            arrived = True
            try:
                yield
            except BaseException as error:
                arrived = bool(changes) and len(self._made(error, changes)) == len(changes)
                raise
            finally:
                if arrived:
                    self._timeline.go(end)
                self._ledger.settle((), whole=arrived)

    def checkpoint(self, name: str | None = None) -> tuple[str, bool]:
        """Give the present place a name.

        Args:
            name: The name; by default a number.

        Returns:
            The name, and whether it was that of another place before.
        """
        with self._lock:
            if name is None:
                number = len(self._timeline.checkpoints) + 1
                while str(number) in self._timeline.checkpoints:
                    number += 1
                name = str(number)
            self._ledger.checkpoint(name, self._timeline.at)
            return name, self._timeline.name(name)

    def since(self, checkpoint: str | None) -> Sum:
        """Return what the steps since a checkpoint come to.

        Args:
            checkpoint: Its name; None for the beginning.

        Raises:
            NotFoundError: not_found: there is no such checkpoint.
            InvalidArgumentError: invalid_argument: it lies ahead, among steps that were taken back.
        """
        with self._lock:
            start = 0 if checkpoint is None else self._place(checkpoint)
            if start > self._timeline.at:
                raise InvalidArgumentError(
                    f"The checkpoint {quote(str(checkpoint))} lies ahead, among steps that were undone.",
                    hint=Message(
                        "Call ", Joined(" or ", ToolName("redo"), ToolName("rollback")), " to go there."
                    ),
                    details={"parameter": "since"},
                )
            return self._timeline.since(start)

    def go(self, root: Root, target: Callable[[Timeline], int] | str, *, max_bytes: int) -> Travel:
        """Take steps back, or make them again, as one change: all of it, or nothing.

        Args:
            root: The tree.
            target: A checkpoint, or what returns the place to go to.
            max_bytes: The largest file.

        Returns:
            What was done.

        Raises:
            StaleError: stale: somebody else has changed one of the files since.
            BusyError: busy: other threads keep changing the journal.
            NotFoundError: not_found: there is no such checkpoint.
            AgentFSError: What `target` and `Root.apply` raise.
        """
        from agentfs.journal.report import conflict_error  # noqa: PLC0415 - loaded when the way is first gone

        patient_until = time.monotonic() + _PATIENCE
        while True:
            with self._lock:
                line = self._timeline
                start, known = line.at, line.generation
                end = self._place(target) if isinstance(target, str) else target(line)
                steps = line.between(min(start, end), max(start, end))
            way = taken_back(steps) if end < start else summed(steps)
            if way.foreign:
                raise self._between(way)
            try:
                left = root.apply(
                    way.changes,
                    max_bytes=max_bytes,
                    conflict=lambda change, found: conflict_error(change, found, back=end < start),  # noqa: B023 - called within the round
                    recorder=_Pointer(self, known, end),
                    keep_non_empty=True,
                )
            except (_MovedOn, AgentFSError):
                # What is in the way may be what another thread has done meanwhile: then the way is another.
                if self._is_at(known):
                    raise
                if time.monotonic() > patient_until:
                    raise BusyError(
                        f"Other calls have been changing files for {_PATIENCE:g} seconds; nothing was done.",
                        hint="Try the same call again.",
                    ) from None
                continue
            return Travel(way.changes, end - start, left)

    def _is_at(self, generation: int) -> bool:
        with self._lock:
            return self._timeline.generation == generation

    def _place(self, checkpoint: str) -> int:
        line = self._timeline
        place = line.checkpoints.get(checkpoint)
        if place is None:
            names = list(line.checkpoints)[-_NAMES_SHOWN:]
            there = f"There are {', '.join(map(quote, names))}." if names else "There is none yet."
            if line.first:
                there += f" The first {line.first} steps were put together; checkpoints among them are gone."
            raise NotFoundError(
                f"There is no checkpoint {quote(checkpoint)}.", hint=there, details={"checkpoints": names}
            )
        return place

    def _made(self, error: BaseException, changes: tuple[Change, ...]) -> tuple[Change, ...]:
        """Return what was made before an error: nothing, but that an interrupt may come at any moment."""
        return () if isinstance(error, Exception) else self._ledger.standing(changes)

    def _put_together(self) -> None:
        place = self._timeline.due()
        if place > self._timeline.first:
            self._timeline.put_together(place)
            self._ledger.put_together(place)

    @staticmethod
    def _between(way: Sum) -> StaleError:
        paths = ", ".join(map(quote, way.foreign[:_NAMES_SHOWN]))
        return StaleError(
            f"Somebody else changed {paths} between these steps, and that would be lost; nothing was done.",
            hint="Go fewer steps at once, or edit the file.",
            details={"paths": list(way.foreign)},
        )


class _Pointer:
    """The recorder of a way through the journal: no new step, only another place."""

    def __init__(self, journal: Journal, known: int, end: int) -> None:
        self._journal = journal
        self._known = known
        self._end = end

    def recording(self, changes: tuple[Change, ...]) -> AbstractContextManager[None]:
        return self._journal.travelling(self._known, self._end, changes)

    def alone(self) -> AbstractContextManager[object]:
        return self._journal.alone()
