"""Undo, redo and rollback: the changes that take the tree to another position of the journal."""

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import NamedTuple

from agentfs.base.advice import Advice, NextCall, ParameterName, call
from agentfs.errors import BusyError, ConflictError, InvalidArgumentError, RefusedError
from agentfs.fs import Change, Node, Root
from agentfs.fs.node import ConcurrentChange
from agentfs.history.journal import Journal, Overtaken
from agentfs.history.report import Move, clash_error, rest_of_call
from agentfs.history.take_back import read_node, take_steps
from agentfs.history.timeline import PendingMove, Step, Timeline, Way, effective_changes, is_in
from agentfs.text import plural

_RETRY_SECONDS = 5.0  # how long undo and redo retry while other calls change the journal

_Paths = Sequence[str] | None


def undo_steps(journal: Journal, root: Root, steps: int, paths: _Paths, *, max_bytes: int) -> Move:
    """Undo the last steps, or with `paths` the last changes of these paths; all of them or none."""

    def chosen(timeline: Timeline) -> Sequence[int]:
        touching = _touching(timeline.done_steps, paths)
        count = _available(len(touching), steps, "undo", journal.out_of_reach)
        return touching[-count:]

    return _move(journal, root, chosen, paths, max_bytes, undoing=True, again=call("undo"))


def redo_steps(journal: Journal, root: Root, steps: int, *, max_bytes: int) -> Move:
    """Redo steps that were undone, all of them or none; raises as `undo_steps`."""

    def chosen(timeline: Timeline) -> Sequence[int]:
        return range(_available(len(timeline.undone_steps), steps, "redo"))

    return _move(journal, root, chosen, None, max_bytes, undoing=False)


def roll_back(journal: Journal, root: Root, checkpoint: str, paths: _Paths, *, max_bytes: int) -> Move:
    """Undo or redo the steps up to a checkpoint; raises as `undo_steps`, and not_found for the checkpoint."""
    with journal.alone():
        undoing = journal.position_of(checkpoint) <= journal.timeline.position

    def chosen(timeline: Timeline) -> Sequence[int]:
        target = journal.position_of(checkpoint)
        if undoing:
            done = _touching(timeline.done_steps, paths)
            return [number for number in done if number >= target - timeline.dropped]
        undone = _touching(timeline.undone_steps, paths)
        return [number for number in undone if number < target - timeline.position]

    again = call("rollback", to=checkpoint)
    return _move(journal, root, chosen, paths, max_bytes, undoing=undoing, again=again)


def _move(
    journal: Journal,
    root: Root,
    chosen: Callable[[Timeline], Sequence[int]],
    paths: _Paths,
    max_bytes: int,
    *,
    undoing: bool,
    again: NextCall | None = None,
) -> Move:
    deadline = time.monotonic() + _RETRY_SECONDS
    while True:
        with journal.alone():
            generation = journal.timeline.generation
            numbers = chosen(journal.timeline)
            way = Way(journal.timeline, numbers, paths, undoing=undoing)
        _check_usable(root, way.paths)
        read = partial(read_node, root, max_bytes=max_bytes)
        outcome = take_steps(way.changes, read, journal.contents.keep_node)
        try:
            if outcome.clashes:
                rest = again and rest_of_call(again, way.taken, outcome.clashes, root.display_path)
                raise clash_error(
                    outcome.clashes, journal.origin, root, rest, "undone" if undoing else "redone"
                )
            move = way.move(outcome.changes, outcome.steps)
            applied = root.apply(
                move.changes,
                max_bytes=max_bytes,
                conflict=_begin_again,
                recorder=_MoveRecorder(journal, move, generation),
                undoing=True,
            )
        except (Overtaken, ConcurrentChange, ConflictError):
            # If another thread has just recorded a step, compute the changes again.
            with journal.alone():
                is_final = outcome.clashes and journal.timeline.generation == generation
            if is_final:
                raise
            if time.monotonic() > deadline:
                raise BusyError(
                    f"Files kept changing for {_RETRY_SECONDS:g} seconds; nothing was done.",
                    hint="Try the same call again.",
                ) from None
            continue
        changed = tuple(effective_changes(Step(changes, 0.0) for changes in outcome.steps))
        lost = tuple(dict.fromkeys(path for step in way.taken for path in step.lost))
        return Move(changed, len(numbers), undoing, outcome.merged, applied.remaining, lost, applied.notes)


class _MoveRecorder(NamedTuple):
    """The recorder of an undo or redo, which adds no step."""

    journal: Journal
    move: PendingMove
    generation: int

    def prepare(self, changes: Sequence[Change]) -> None:
        """Do nothing: an undo is not a step, so none comes before it."""

    def recording(self, changes: tuple[Change, ...]) -> AbstractContextManager[tuple[Change, ...]]:
        del changes  # the changes of `move`, except directories that exist already
        return self.journal.moving(self.move, self.generation)

    def alone(self) -> AbstractContextManager[object]:
        return self.journal.alone()

    def origin(self, path: str, node: Node | None, display: Callable[[str], str]) -> str:
        return self.journal.origin(path, node, display)


def _available(count: int, steps: int, verb: str, out_of_reach: str = "") -> int:
    """Return `steps`; raise if it is below 1 or over the number of available steps."""
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


def _touching(steps: Sequence[Step], paths: _Paths) -> list[int]:
    """Return the indexes of the steps with a change at or below one of the paths."""
    if paths is None:
        return list(range(len(steps)))
    return [
        number
        for number, step in enumerate(steps)
        if any(is_in(change.path, path) for change in step.changes for path in paths)
    ]


def _check_usable(root: Root, paths: Sequence[str]) -> None:
    if not all(map(root.is_usable, paths)):
        raise RefusedError(
            "These steps changed paths outside the directories of this view; nothing was done.",
            hint="Undo or redo fewer steps, or edit the files.",
        )


def _begin_again(_change: Change, _found: Node | None) -> ConcurrentChange:
    return ConcurrentChange()
