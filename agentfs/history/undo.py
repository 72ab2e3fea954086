"""Undo, redo and rollback: steps that take back earlier ones, merged with what others have changed since."""

import os
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain
from typing import NamedTuple

from agentfs.base.advice import Advice, NextCall, ParameterName, call, plural
from agentfs.errors import BusyError, InvalidArgumentError, RefusedError
from agentfs.fs import Change, FileNode, Node, Root, quote
from agentfs.fs.apply import Applied
from agentfs.fs.node import ConcurrentChange, begin_again
from agentfs.history.journal import Journal, Overtaken
from agentfs.history.log import Portion, Step, UndoPlan, net_changes
from agentfs.history.report import clash_error, file_changes, file_lines, name_paths, rest_of_call
from agentfs.history.step_merge import Clash, Outcome, list_unread, merge_plan, read_node
from agentfs.results import UndoResult
from agentfs.shown.read_tracker import ReadTracker
from agentfs.shown.workspace_context import Context
from agentfs.text.display import with_text

_RETRY_SECONDS = 5.0  # how long undo and redo retry while other calls change the journal

RequestedPaths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None


def undo(journal: Journal, context: Context, steps: int, paths: RequestedPaths) -> UndoResult:
    """Undo the last steps, or with `paths` the last changes of these paths; all of them or none."""
    scope, log = real_paths(context.root, paths), journal.log

    def plan() -> UndoPlan:
        units = _first(log.to_undo(scope, journal.groups), steps, "undo", journal.out_of_reach)
        return log.plan(chain(*units), scope)

    return _result(journal, context, plan, "Undid", "undone", call("undo"))


def redo(journal: Journal, context: Context, steps: int) -> UndoResult:
    """Redo the steps that were undone last, all of them or none; raises as `undo`."""
    log = journal.log

    def plan() -> UndoPlan:
        return log.plan(chain(*_first(log.to_redo(journal.groups), steps, "redo")))

    return _result(journal, context, plan, "Redid", "redone", None)


def rollback(journal: Journal, context: Context, checkpoint: str, paths: RequestedPaths) -> UndoResult:
    """Take back all steps after a checkpoint; raises as `undo`, and not_found for the checkpoint."""
    scope = real_paths(context.root, paths)

    def plan() -> UndoPlan:
        return journal.log.rollback(journal.position_of(checkpoint), scope)

    done = f"Went to checkpoint {quote(checkpoint)}:"
    return _result(journal, context, plan, done, "undone", call("rollback", to=checkpoint))


def roll_back_transaction(journal: Journal, context: Context) -> Sequence[Clash]:
    """Take back the steps of a transaction; return the paths that others have changed."""

    def plan() -> UndoPlan:
        return journal.log.plan(chain(*journal.log.to_undo(None, journal.groups)))

    return _retried(partial(_carry_out, journal, context, plan, except_clashes=True)).outcome.clashes


class _Done(NamedTuple):
    """A plan that was carried out: the steps that it toggled as `undo` counts them, and what this changed."""

    plan: UndoPlan
    steps: Sequence[Sequence[Step]]
    outcome: Outcome
    applied: Applied


def _retried(carry_out: Callable[[], _Done]) -> _Done:
    """Call a function again while others change files or the journal."""
    deadline = time.monotonic() + _RETRY_SECONDS
    while time.monotonic() < deadline:
        with suppress(Overtaken, ConcurrentChange):
            return carry_out()
    raise BusyError(
        f"Files kept changing for {_RETRY_SECONDS:g} seconds; nothing was done.",
        hint="Try the same call again.",
    )


def _carry_out(
    journal: Journal,
    context: Context,
    make_plan: Callable[[], UndoPlan],
    done: str = "undone",
    rest: NextCall | None = None,
    *,
    except_clashes: bool = False,
) -> _Done:
    """Merge a plan with the present tree, and make its changes as one step; all or nothing.

    An error about a conflict says that nothing was `done`, and suggests the call `rest` for other paths.

    Raises:
        AgentFSError: `conflict` if others have changed the same lines, unless these paths are left out;
            `refused`, `busy`.
    """
    journal.settle_recordings()
    root, log = context.root, journal.log
    with journal.exclusive():
        position, plan = log.position, make_plan()
        steps = log.in_units(plan.toggles, journal.groups)
    if not all(root.is_usable(each.path) for changes in plan.changes for each in changes):
        raise RefusedError(
            "These steps changed paths outside the directories of this view; nothing was done.",
            hint="Undo or redo fewer steps, or edit the files.",
        )
    max_bytes = max(context.limits.file_bytes, _largest(plan.changes))
    # A command may delete a directory with protected files in it, and so may its undo.
    free = root.exempting({path for of, _, paths in plan.toggles if log.step(of).label for path in paths})
    read = partial(read_node, free, max_bytes=max_bytes)
    merge = partial(
        merge_plan, read=read, list_below=partial(list_unread, root), keep=journal.contents.keep_node
    )
    outcome = merge(plan)
    if clashes := outcome.clashes:
        if log.position != position:  # another thread has just recorded a step
            raise Overtaken
        if not except_clashes:
            changes = [tuple(change for step in unit for change in step.changes) for unit in steps]
            other_paths = rest and rest_of_call(rest, changes, clashes, root.display_path)
            raise clash_error(clashes, journal.origin, root, other_paths, done)
        plan = _without(plan, {each.path for each in clashes})
        outcome = merge(plan)._replace(clashes=clashes)
    applied = free.apply(
        outcome.changes,
        max_bytes=max_bytes,
        conflict=begin_again,
        log_step=partial(journal.logging_step, toggles=plan.toggles, at=position),
        undoing=True,
    )
    record_restored(context.tracker, ((each.path, each.after) for each in outcome.changes))
    return _Done(plan, steps, outcome, applied)


def _without(plan: UndoPlan, paths: set[str]) -> UndoPlan:
    changes = tuple(tuple(each for each in step if each.path not in paths) for step in plan.changes)
    toggles = [
        each._replace(paths=tuple(path for path in each.paths if path not in paths)) for each in plan.toggles
    ]
    return plan._replace(changes=changes, toggles=tuple(toggles))


def _result(
    journal: Journal,
    context: Context,
    make_plan: Callable[[], UndoPlan],
    head: str,
    done: str,
    rest: NextCall | None,
) -> UndoResult:
    """Carry out a plan, as `_carry_out` does. The result begins with `head`."""
    carried = _retried(partial(_carry_out, journal, context, make_plan, done, rest))
    root, applied, log = context.root, carried.applied, journal.log
    # A wanted change that another program has made already is shown too.
    wanted = {each.path: each for each in net_changes(map(Step, carried.plan.changes))}
    made = wanted | {each.path: each for each in carried.outcome.changes}
    remaining = {*carried.outcome.remaining, *applied.remaining}
    changes = [each for each in made.values() if not each.changes_nothing and each.path not in remaining]
    files = file_changes(changes, count_lines=False, display=root.display_path)
    count = len(carried.steps)
    head = f"{head} {plural(count, 'step')}." if count else f"{head} nothing to do."
    with journal.exclusive():
        undoable, redoable = len(log.to_undo(None, journal.groups)), len(log.to_redo(journal.groups))
    notes = (*_notes(root, carried), *applied.notes)
    return with_text(UndoResult(count, files, undoable, redoable, notes=notes), head, below=file_lines(files))


def _notes(root: Root, done: _Done) -> list[str]:
    """Return notes on paths that are not as they were before the steps."""
    lost = dict.fromkeys(path for step in chain(*done.steps) for path in step.lost)
    remaining, merged, left = (
        [*map(root.display_path, paths)]
        for paths in ((*done.outcome.remaining, *done.applied.remaining), sorted(done.outcome.merged), lost)
    )
    notes = [f"the directory {quote(path)} stays, because it is not empty" for path in remaining]
    if merged:
        notes.append(f"merged with changes by another program: {name_paths(merged)}")
    if left:
        notes.append(f"left as it is, because its content was not kept: {name_paths(left)}")
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


def _first(
    units: Sequence[Sequence[Portion]], steps: int, verb: str, out_of_reach: str = ""
) -> Sequence[Sequence[Portion]]:
    """Return the first units; raise if `steps` is below 1 or over their number."""
    if steps < 1:
        raise InvalidArgumentError(
            Advice(ParameterName("steps"), f" must be 1 or more, not {steps}."),
            details={"parameter": "steps"},
        )
    if steps > (count := len(units)):
        message = (
            f"Only {plural(count, 'step')} can be {verb}ne." if count else f"There is nothing to {verb}."
        )
        raise InvalidArgumentError(
            message + out_of_reach,
            hint=Advice("Call ", call(verb, steps=count), ".") if count else "",
            details={"parameter": "steps", "steps": count},
        )
    return units[:steps]


def _largest(steps: Iterable[Sequence[Change]]) -> int:
    """Return the size of the largest file in some steps: commands write larger ones than other tools."""
    nodes = (node for changes in steps for each in changes for node in (each.before, each.after))
    return max((node.size for node in nodes if isinstance(node, FileNode)), default=0)
