"""Undo, redo and rollback: steps that take back earlier ones, merged with what others have changed since."""

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain
from typing import NamedTuple

from agentfs.base import call_context
from agentfs.base.advice import Advice, NextCall, ParameterName, call
from agentfs.errors import BusyError, InvalidArgumentError, RefusedError
from agentfs.fs import Change, FileNode, Node, Root, quote
from agentfs.fs.apply import Applied
from agentfs.fs.node import ConcurrentChange, begin_again
from agentfs.history.journal import Journal, Overtaken
from agentfs.history.log import Log, Scope, Step, effective_changes
from agentfs.history.report import clash_error, file_changes, file_lines, name_paths, rest_of_call
from agentfs.history.step_merge import Clash, Outcome, list_unread, read_node, take_steps
from agentfs.results import UndoResult
from agentfs.shown.read_tracker import ReadTracker
from agentfs.shown.workspace_context import Context
from agentfs.text import plural, with_text

_RETRY_SECONDS = 5.0  # how long undo and redo retry while other calls change the journal

RequestedPaths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None
# The changes to make, by the number of the step that each takes back, the latest step first.
Wanted = Mapping[int, tuple[Change, ...]]
Choose = Callable[[Log], Wanted]


def undo(journal: Journal, context: Context, steps: int, paths: RequestedPaths) -> UndoResult:
    """Undo the last steps, or with `paths` the last changes of these paths; all of them or none."""
    scope = real_paths(context.root, paths)

    def choose(log: Log) -> Wanted:
        groups = _first(log.to_undo(scope, journal.groups), steps, "undo", journal.out_of_reach)
        return _reversals(log, groups, scope)

    return _result(journal, context, choose, "Undid", "undone", call("undo"))


def redo(journal: Journal, context: Context, steps: int) -> UndoResult:
    """Redo the steps that were undone last, all of them or none; raises as `undo`."""

    def choose(log: Log) -> Wanted:
        return _reversals(log, _first(log.to_redo(journal.groups), steps, "redo"))

    return _result(journal, context, choose, "Redid", "redone", None)


def rollback(journal: Journal, context: Context, checkpoint: str, paths: RequestedPaths) -> UndoResult:
    """Take back all steps after a checkpoint; raises as `undo`, and not_found for the checkpoint."""
    scope = real_paths(context.root, paths)

    def choose(log: Log) -> Wanted:
        return log.rollback(journal.position_of(checkpoint), scope)

    done = f"Went to checkpoint {quote(checkpoint)}:"
    return _result(journal, context, choose, done, "undone", call("rollback", to=checkpoint))


def roll_back_transaction(journal: Journal, context: Context) -> Sequence[Clash]:
    """Take back the steps of a transaction; return the paths that others have changed."""

    def choose(log: Log) -> Wanted:
        return _reversals(log, log.to_undo(None, journal.groups))

    return _retried(partial(_revert, journal, context, choose, except_clashes=True)).outcome.clashes


def _reversals(log: Log, groups: Iterable[Sequence[int]], scope: Scope = None) -> Wanted:
    return {each: log.reversal(each, scope) for each in sorted(chain(*groups), reverse=True)}


class _Reverted(NamedTuple):
    """Steps that were taken back, in groups as `undo` counts them, and what this changed."""

    wanted: Wanted
    steps: Sequence[Step]
    groups: Sequence[Sequence[int]]
    outcome: Outcome
    applied: Applied

    @property
    def changes(self) -> Iterator[list[Change]]:
        """The changes of each step; those that others have made already as they were wanted."""
        for wanted, made in zip(self.wanted.values(), self.outcome.steps, strict=True):
            now = {each.path: each for each in made}
            yield [each if now[each.path].changes_nothing else now[each.path] for each in wanted]


def _retried(revert: Callable[[], _Reverted]) -> _Reverted:
    """Call a function again while others change files or the journal."""
    deadline = time.monotonic() + _RETRY_SECONDS
    while time.monotonic() < deadline:
        with suppress(Overtaken, ConcurrentChange):
            return revert()
    raise BusyError(
        f"Files kept changing for {_RETRY_SECONDS:g} seconds; nothing was done.",
        hint="Try the same call again.",
    )


def _revert(
    journal: Journal,
    context: Context,
    choose: Choose,
    done: str = "undone",
    rest: NextCall | None = None,
    *,
    except_clashes: bool = False,
) -> _Reverted:
    """Take back the chosen steps, and append the steps that do so; all or none.

    An error about a conflict says that nothing was `done`, and suggests the call `rest` for other paths.

    Raises:
        AgentFSError: `conflict` if others have changed the same lines, unless these paths are left out;
            `refused`, `busy`.
    """
    journal.settle_recordings()
    root, log = context.root, journal.log
    together: dict[int, tuple[int, ...]] = {}
    with journal.exclusive():
        position, wanted = log.position, choose(log)
        groups, steps = log.in_groups(wanted, journal.groups), [log.step(each) for each in wanted]
        for group in groups:
            together |= dict.fromkeys(group, (log.new_group(),) if len(group) > 1 else ())
    if not all(root.is_usable(each.path) for changes in wanted.values() for each in changes):
        raise RefusedError(
            "These steps changed paths outside the directories of this view; nothing was done.",
            hint="Undo or redo fewer steps, or edit the files.",
        )
    max_bytes = max(context.limits.file_bytes, _largest(wanted.values()))
    # A command may delete a directory with protected files in it, and so may its undo.
    of_commands = [changes for number, changes in wanted.items() if log.first(number).label]
    free = root.exempting({each.path for changes in of_commands for each in changes})
    read = partial(read_node, free, max_bytes=max_bytes)
    given = read, partial(list_unread, root), journal.contents.keep_node
    outcome = take_steps([*wanted.values()], *given)
    if clashes := outcome.clashes:
        if log.position != position:  # another thread has just recorded a step
            raise Overtaken
        if not except_clashes:
            changes = [tuple(chain(*(log.step(each).changes for each in group))) for group in groups]
            other_paths = rest and rest_of_call(rest, changes, clashes, root.display_path)
            raise clash_error(clashes, journal.origin, root, other_paths, done)
        clashing = {each.path for each in clashes}
        left = [[each for each in changes if each.path not in clashing] for changes in wanted.values()]
        outcome = take_steps(left, *given)._replace(clashes=clashes)
    appended = [
        Step(
            tuple(map(journal.contents.keep, changes)),
            time.time(),
            author=call_context.author.get(),
            reverts=number,
            groups=journal.groups + together[number],
        )
        for number, changes in zip(wanted, outcome.steps, strict=True)
    ]
    applied = free.apply(
        outcome.changes,
        max_bytes=max_bytes,
        conflict=begin_again,
        log_step=partial(journal.appending, appended, at=position),
        undoing=True,
    )
    restored = ((each.path, each.after) for each in effective_changes(outcome.steps))
    record_restored(context.tracker, restored)
    return _Reverted(wanted, steps, groups, outcome, applied)


def _result(
    journal: Journal, context: Context, choose: Choose, head: str, done: str, rest: NextCall | None
) -> UndoResult:
    """Take back the chosen steps, as `_revert` does. The result begins with `head`."""
    reverted = _retried(partial(_revert, journal, context, choose, done, rest))
    root, applied, log = context.root, reverted.applied, journal.log
    changes = effective_changes(reverted.changes)
    files = file_changes(
        [each for each in changes if each.path not in applied.remaining],
        count_lines=False,
        display=root.display_path,
    )
    count = len(reverted.groups)
    head = f"{head} {plural(count, 'step')}." if count else f"{head} nothing to do."
    notes = (*_notes(root, reverted), *applied.notes)
    with journal.exclusive():
        undoable, redoable = len(log.to_undo(None, journal.groups)), len(log.to_redo(journal.groups))
    result = UndoResult(count, files, undoable, redoable, notes=notes)
    return with_text(result, head, below=file_lines(files))


def _notes(root: Root, reverted: _Reverted) -> list[str]:
    """Return notes on paths that are not as they were before the steps."""
    lost = dict.fromkeys(path for step in reverted.steps for path in step.lost)
    remaining, merged, left = (
        [*map(root.display_path, paths)]
        for paths in (reverted.applied.remaining, sorted(reverted.outcome.merged), lost)
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
    groups: Sequence[Sequence[int]], steps: int, verb: str, out_of_reach: str = ""
) -> Sequence[Sequence[int]]:
    """Return the first groups; raise if `steps` is below 1 or over their number."""
    if steps < 1:
        raise InvalidArgumentError(
            Advice(ParameterName("steps"), f" must be 1 or more, not {steps}."),
            details={"parameter": "steps"},
        )
    if steps > (count := len(groups)):
        message = (
            f"Only {plural(count, 'step')} can be {verb}ne." if count else f"There is nothing to {verb}."
        )
        raise InvalidArgumentError(
            message + out_of_reach,
            hint=Advice("Call ", call(verb, steps=count), ".") if count else "",
            details={"parameter": "steps", "steps": count},
        )
    return groups[:steps]


def _largest(steps: Iterable[Sequence[Change]]) -> int:
    """Return the size of the largest file in some steps: commands write larger ones than other tools."""
    nodes = (node for changes in steps for each in changes for node in (each.before, each.after))
    return max((node.size for node in nodes if isinstance(node, FileNode)), default=0)
