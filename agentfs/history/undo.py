"""Undo, redo and rollback: the changes that take the tree to another position of the journal."""

import os
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from agentfs.base.advice import Advice, NextCall, ParameterName, call
from agentfs.errors import BusyError, ConflictError, InvalidArgumentError, RefusedError
from agentfs.fs import Change, FileNode, Node, Root, quote
from agentfs.fs.node import ConcurrentChange, begin_again
from agentfs.fs.path import is_in
from agentfs.history.journal import Journal, Overtaken
from agentfs.history.report import clash_error, file_changes, file_lines, name_paths, rest_of_call
from agentfs.history.take_back import read_node, take_steps
from agentfs.history.timeline import Step, Timeline, UndoPlan, effective_changes
from agentfs.results import UndoResult
from agentfs.shown.read_tracker import ReadTracker
from agentfs.shown.workspace_context import Context
from agentfs.text import plural, with_text

_RETRY_SECONDS = 5.0  # how long undo and redo retry while other calls change the journal

RequestedPaths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None
_Chosen = Callable[[Timeline, list[str] | None], Sequence[int]]


def undo(journal: Journal, context: Context, steps: int, paths: RequestedPaths) -> UndoResult:
    """Undo the last steps, or with `paths` the last changes of these paths; all of them or none."""

    def chosen(timeline: Timeline, scope: list[str] | None) -> Sequence[int]:
        touching = _touching(timeline.done_steps, scope)
        count = _available(len(touching), steps, "undo", journal.out_of_reach)
        return touching[-count:]

    return _rewind(journal, context, "Undid", chosen, paths, again=call("undo"))


def redo(journal: Journal, context: Context, steps: int) -> UndoResult:
    """Redo steps that were undone, all of them or none; raises as `undo`."""

    def chosen(timeline: Timeline, _: list[str] | None) -> Sequence[int]:
        return range(_available(len(timeline.undone_steps), steps, "redo"))

    return _rewind(journal, context, "Redid", chosen, None, undoing=False)


def rollback(journal: Journal, context: Context, checkpoint: str, paths: RequestedPaths) -> UndoResult:
    """Undo or redo the steps up to a checkpoint; raises as `undo`, and not_found for the checkpoint."""
    journal.end_late_recordings()
    with journal.exclusive():
        undoing = journal.position_of(checkpoint) <= journal.timeline.position

    def chosen(timeline: Timeline, scope: list[str] | None) -> Sequence[int]:
        target = journal.position_of(checkpoint)
        if undoing:
            done = _touching(timeline.done_steps, scope)
            return [number for number in done if number >= target - timeline.dropped]
        undone = _touching(timeline.undone_steps, scope)
        return [number for number in undone if number < target - timeline.position]

    done = f"Went to checkpoint {quote(checkpoint)}:"
    again = call("rollback", to=checkpoint)
    return _rewind(journal, context, done, chosen, paths, undoing=undoing, again=again)


def _rewind(
    journal: Journal,
    context: Context,
    done: str,
    chosen: _Chosen,
    paths: RequestedPaths,
    *,
    undoing: bool = True,
    again: NextCall | None = None,
) -> UndoResult:
    """Undo or redo the chosen steps. The result begins with `done`; `again` is the call without its paths."""
    journal.end_late_recordings()
    root = context.root
    scope = real_paths(root, paths)
    deadline = time.monotonic() + _RETRY_SECONDS
    while True:
        with journal.exclusive():
            generation = journal.timeline.generation
            numbers = chosen(journal.timeline, scope)
            plan = UndoPlan(journal.timeline, numbers, scope, undoing=undoing)
        _check_usable(root, plan.paths)
        max_bytes = max(context.limits.file_bytes, _largest(plan.changes))
        read = partial(read_node, root, max_bytes=max_bytes)
        outcome = take_steps(plan.changes, read, journal.contents.keep_node)
        try:
            if outcome.clashes:
                rest = again and rest_of_call(again, plan.taken, outcome.clashes, root.display_path)
                raise clash_error(
                    outcome.clashes, journal.origin, root, rest, "undone" if undoing else "redone"
                )
            rewind = plan.rewind(outcome.changes, outcome.steps)
            applied = root.apply(
                rewind.changes,
                max_bytes=max_bytes,
                conflict=begin_again,
                log_step=partial(journal.rewinding, rewind, generation),
                undoing=True,
            )
        except (Overtaken, ConcurrentChange, ConflictError):
            # If another thread has just recorded a step, compute the changes again.
            with journal.exclusive():
                is_final = outcome.clashes and journal.timeline.generation == generation
            if is_final:
                raise
            if time.monotonic() > deadline:
                raise BusyError(
                    f"Files kept changing for {_RETRY_SECONDS:g} seconds; nothing was done.",
                    hint="Try the same call again.",
                ) from None
            continue
        changes = effective_changes(Step(changes, 0.0) for changes in outcome.steps)
        record_restored(context.tracker, ((change.path, change.after) for change in changes))
        lost = dict.fromkeys(path for step in plan.taken for path in step.lost)
        back = " back" if undoing and done.startswith("Went") else ""
        head = f"{done} {plural(len(numbers), 'step')}{back}." if numbers else f"{done} nothing to do."
        changed = [change for change in changes if change.path not in applied.remaining]
        files = file_changes(changed, count_lines=False, display=root.display_path)
        undoable, redoable = len(journal.timeline.done_steps), len(journal.timeline.undone_steps)
        notes = (*_notes(root, applied.remaining, outcome.merged, [*lost]), *applied.notes)
        result = UndoResult(len(numbers), files, undoable, redoable, notes=notes)
        return with_text(result, head, below=file_lines(files))


def _notes(root: Root, remaining: Sequence[str], merged: Sequence[str], lost: Sequence[str]) -> list[str]:
    """Return notes on paths that are not as they were before the steps."""
    remaining, merged, lost = ([*map(root.display_path, paths)] for paths in (remaining, merged, lost))
    notes = [f"the directory {quote(path)} stays, because it is not empty" for path in remaining]
    if merged:
        notes.append(f"merged with changes by another program: {name_paths(sorted(merged))}")
    if lost:
        notes.append(
            "left as it is, because the recording did not keep its content, or it may be older than the"
            f" recording: {name_paths(lost)}"
        )
    return notes


def real_paths(root: Root, paths: RequestedPaths) -> list[str] | None:
    """Return the real paths of some paths; for a link, its own path and that of its target."""
    if paths is None:
        return None
    named = [paths] if isinstance(paths, str | os.PathLike) else paths
    found = [
        root.resolve(os.fspath(path), follow_last=follow)[1] for path in named for follow in (False, True)
    ]
    if not found:
        raise InvalidArgumentError("`paths` is empty.", details={"parameter": "paths"})
    return list(dict.fromkeys(found))


def record_restored(tracker: ReadTracker, nodes: Iterable[tuple[str, Node | None]]) -> None:
    """Record that the files at some paths have an earlier version again."""
    for path, node in nodes:
        if isinstance(node, FileNode) and tracker.knows(path):
            tracker.record_restore(path, node.digest)


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


def _touching(steps: Sequence[Step], scope: Sequence[str] | None) -> list[int]:
    """Return the indexes of the steps with a change at or below one of the paths."""
    if scope is None:
        return list(range(len(steps)))
    return [
        number
        for number, step in enumerate(steps)
        if any(is_in(change.path, path) for change in step.changes for path in scope)
    ]


def _largest(steps: Iterable[Sequence[Change]]) -> int:
    """Return the size of the largest file in some steps: commands write larger ones than other tools."""
    nodes = (node for changes in steps for each in changes for node in (each.before, each.after))
    return max((node.size for node in nodes if isinstance(node, FileNode)), default=0)


def _check_usable(root: Root, paths: Sequence[str]) -> None:
    if not all(map(root.is_usable, paths)):
        raise RefusedError(
            "These steps changed paths outside the directories of this view; nothing was done.",
            hint="Undo or redo fewer steps, or edit the files.",
        )
