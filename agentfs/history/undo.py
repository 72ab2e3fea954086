"""Undo, redo and rollback: steps that take back earlier ones, merged with what others have changed since."""

import os
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import chain
from typing import TypeVar

from agentfs.base.advice import Advice, NextCall, call, plural
from agentfs.errors import BusyError, InvalidArgumentError, RefusedError, must_be
from agentfs.fs import Change, FileNode, Root, collapsed, quote
from agentfs.fs.apply import Applied
from agentfs.fs.node import ConcurrentChange, begin_again
from agentfs.history.journal import Journal
from agentfs.history.log import Part, Toggle, UndoPlan, is_in_scope
from agentfs.history.report import MOST_OFFERED, clash_error, file_changes, file_lines, path_notes
from agentfs.history.step_merge import Clash, Disk, Outcome, merge_plan
from agentfs.results import UndoResult
from agentfs.shown.read_tracker import ReadTracker
from agentfs.shown.workspace_context import Context
from agentfs.text.display import with_text

_RETRY_SECONDS = 5.0  # how long undo and redo retry while other calls change the journal

_T = TypeVar("_T")
RequestedPaths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None


def undo(journal: Journal, context: Context, steps: int, paths: RequestedPaths) -> UndoResult:
    """Undo the last steps, or with `paths` the last changes of these paths; all of them or none."""
    scope, log = real_paths(context.root, paths), journal.log
    missing = " No step that can be undone has changed these paths." if scope else ""

    def plan() -> UndoPlan:
        units = [
            unit
            for unit in log.units(journal.groups)[0]
            if scope is None or any(is_in_scope(path, scope) for part in unit for path in part.paths)
        ]
        return log.plan(_first(units, steps, "undo", missing + journal.out_of_reach), scope)

    return _result(journal, context, plan, "Undid", call("undo"))


def redo(journal: Journal, context: Context, steps: int) -> UndoResult:
    """Redo the steps that were undone last, all of them or none; raises as `undo`."""

    def plan() -> UndoPlan:
        return journal.log.plan(_first(journal.log.units(journal.groups)[1], steps, "redo"))

    return _result(journal, context, plan, "Redid", None)


def rollback(journal: Journal, context: Context, checkpoint: str, paths: RequestedPaths) -> UndoResult:
    """Take back all steps after a checkpoint; raises as `undo`, and not_found for the checkpoint."""
    scope = real_paths(context.root, paths)

    def plan() -> UndoPlan:
        return journal.log.rollback(journal.position_of(checkpoint), scope)

    head = f"Went to checkpoint {quote(checkpoint)}:"
    return _result(journal, context, plan, head, call("rollback", to=checkpoint))


def roll_back_transaction(journal: Journal, context: Context) -> Sequence[Clash]:
    """Take back the steps of a transaction; return the paths that others have changed."""

    def plan() -> UndoPlan:
        return journal.log.plan(chain(*journal.log.units(journal.groups)[0]))

    return retried(partial(_carry_out, journal, context, plan, partly=True))[1].clashes


def retried(make: Callable[[], _T]) -> _T:
    """Call a function again while others change files or the journal."""
    deadline = time.monotonic() + _RETRY_SECONDS
    while time.monotonic() < deadline:
        try:
            return make()
        except ConcurrentChange:
            continue
    raise BusyError(
        f"Files kept changing for {_RETRY_SECONDS:g} seconds; nothing was done.",
        hint="Try the same call again.",
    )


def _carry_out(
    journal: Journal, context: Context, make_plan: Callable[[], UndoPlan], *, partly: bool = False
) -> tuple[UndoPlan, Outcome, Applied]:
    """Merge a plan with the present tree, and make its changes as one step.

    If others have changed the same lines, nothing is done; with `partly`, these paths are left out. Raises
    `refused` and `busy`.
    """
    journal.settle_recordings()
    root, log = context.root, journal.log
    with journal.lock:
        position, plan = log.position, make_plan()
    changes = [each for step in plan.changes for each in step]
    if not all(root.is_usable(each.path) for each in changes):
        raise RefusedError(
            "These steps changed paths outside the directories of this view; nothing was done.",
            hint="Undo or redo fewer steps, or edit the files.",
        )
    sizes = [
        node.size for each in changes for node in (each.before, each.after) if isinstance(node, FileNode)
    ]
    max_bytes = max([context.limits.file_bytes, *sizes])  # commands write larger files than other tools
    if exempt := {path for part in plan.parts if part.step.label for path in part.paths}:
        # A command may delete a directory with protected files in it, and so may its undo.
        root = root.view(exempt=exempt)
    disk = Disk(root, max_bytes, journal.contents.keep_node)
    outcome = merge_plan(plan, disk)
    if clashes := outcome.clashes:
        if log.position != position:  # another thread has just recorded a step
            raise ConcurrentChange
        if not partly:
            return plan, outcome, Applied()
        plan = plan.without(each.path for each in clashes)
        outcome = merge_plan(plan, disk)._replace(clashes=clashes)
    toggles = tuple([Toggle(part.number, part.is_made, tuple(part.paths)) for part in plan.parts])
    applied = root.apply(
        collapsed(outcome.changes),
        max_bytes=max_bytes,
        conflict=begin_again,
        log_step=partial(journal.logging_step, toggles=toggles, at=position),
        undoing=True,
    )
    record_restored(context.tracker, outcome.changes)
    return plan, outcome, applied


def _result(
    journal: Journal, context: Context, make_plan: Callable[[], UndoPlan], head: str, again: NextCall | None
) -> UndoResult:
    """Carry out a plan. The result begins with `head`, and a conflict suggests `again` for other paths."""
    root, groups = context.root, journal.groups
    plan, outcome, applied = retried(partial(_carry_out, journal, context, make_plan))
    if outcome.clashes:
        possible = plan.without(each.path for each in outcome.clashes)
        others = {each.path for step in possible.changes for each in step if not each.of_directory}
        rest: NextCall | None = None
        if again is not None and 0 < len(others) <= MOST_OFFERED:
            fewer = len({part.unit(groups) for part in plan.parts if not others.isdisjoint(part.paths)})
            steps = {"steps": fewer} if again["name"] == "undo" and fewer > 1 else {}
            shown = [*map(root.display_path, sorted(others))]
            rest = call(again["name"], **again["arguments"], **steps, paths=shown)
        raise clash_error(outcome.clashes, root, done="undone" if again else "redone", rest=rest)
    with journal.lock:
        left = map(len, journal.log.units(groups))
    remaining = (*outcome.remaining, *applied.remaining)
    changes = [each for each in outcome.changes if each.path not in remaining]
    files = file_changes(changes, display=root.display_path)
    lost = {path for part in plan.parts for path in part.step.lost}
    reasons = {
        "not removed, because it is not empty": sorted(remaining),
        "merged with changes by another program": sorted(outcome.merged),
        "left as it is, because its content was not kept": sorted(lost),
    }
    notes = path_notes(root.display_path, reasons)
    count = len({part.unit(groups) for part in plan.parts})
    head = f"{head} {plural(count, 'step')}." if count else f"{head} nothing to do."
    result = UndoResult(count, files, *left, notes=(*notes, *applied.notes))
    return with_text(result, head, below=file_lines(files))


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


def record_restored(tracker: ReadTracker, changes: Iterable[Change]) -> None:
    """Record that some files have an earlier version again."""
    for each in changes:
        if isinstance(each.after, FileNode) and tracker.knows(each.path):
            tracker.record_restore(each.path, each.after.digest)


def _first(units: Sequence[Sequence[Part]], steps: int, verb: str, missing: str = "") -> Iterable[Part]:
    """Return the parts of the first units; raise if `steps` is below 1 or over their number."""
    count = len(units)
    if 1 <= steps <= count:
        return chain(*units[:steps])
    if steps < 1:
        raise must_be("steps", "1 or more", steps, "")
    message = f"Only {plural(count, 'step')} can be {verb}ne." if count else f"There is nothing to {verb}."
    hint = Advice("Call ", call(verb, steps=count), ".") if count else ""
    raise InvalidArgumentError(message + missing, hint=hint, details={"parameter": "steps", "steps": count})
