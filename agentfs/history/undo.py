"""Undo, redo and rollback: steps that take back earlier ones, merged with what others have changed since."""

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from agentfs.base import call_context
from agentfs.base.advice import Advice, NextCall, ParameterName, call
from agentfs.errors import BusyError, ConflictError, InvalidArgumentError, RefusedError
from agentfs.fs import Change, FileNode, Node, Root, quote
from agentfs.fs.node import ConcurrentChange, begin_again
from agentfs.history.journal import Journal, Overtaken
from agentfs.history.log import Log, Step, effective_changes
from agentfs.history.report import clash_error, file_changes, file_lines, name_paths, rest_of_call
from agentfs.history.take_back import Clash, Outcome, read_node, take_steps
from agentfs.results import UndoResult
from agentfs.shown.read_tracker import ReadTracker
from agentfs.shown.workspace_context import Context
from agentfs.text import plural, with_text

_RETRY_SECONDS = 5.0  # how long undo and redo retry while other calls change the journal

RequestedPaths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None


class Wanted(NamedTuple):
    """The changes to make, by the number of the step that each takes back, the latest step first."""

    groups: Sequence[Sequence[int]]  # the numbers, those of a transaction together
    changes: Mapping[int, tuple[Change, ...]]


Choose = Callable[[Log], Wanted]


def undo(journal: Journal, context: Context, steps: int, paths: RequestedPaths) -> UndoResult:
    """Undo the last steps, or with `paths` the last changes of these paths; all of them or none."""
    scope = real_paths(context.root, paths)

    def choose(log: Log) -> Wanted:
        groups = _first(log.to_undo(scope, journal.own), steps, "undo", journal.out_of_reach)
        return Wanted(groups, {each: log.reversal(each, scope) for each in _descending(groups)})

    return _take_back(journal, context, choose, "Undid", "undone", call("undo"))


def redo(journal: Journal, context: Context, steps: int) -> UndoResult:
    """Redo the steps that were undone last, all of them or none; raises as `undo`."""

    def choose(log: Log) -> Wanted:
        groups = _first(log.to_redo(journal.own), steps, "redo")
        return Wanted(groups, {each: log.reversal(each) for each in _descending(groups)})

    return _take_back(journal, context, choose, "Redid", "redone", None)


def rollback(journal: Journal, context: Context, checkpoint: str, paths: RequestedPaths) -> UndoResult:
    """Take back all steps after a checkpoint; raises as `undo`, and not_found for the checkpoint."""
    scope = real_paths(context.root, paths)

    def choose(log: Log) -> Wanted:
        changes = log.rollback(journal.position_of(checkpoint), scope)
        return Wanted(log.in_groups(changes), changes)

    done = f"Went to checkpoint {quote(checkpoint)}:"
    return _take_back(journal, context, choose, done, "undone", call("rollback", to=checkpoint))


def roll_back_transaction(journal: Journal, context: Context) -> Sequence[Clash]:
    """Take back the steps of a transaction; return the paths that others have changed."""

    def choose(log: Log) -> Wanted:
        groups = log.to_undo(None, journal.own)
        return Wanted(groups, {each: log.reversal(each) for each in _descending(groups)})

    reverted = Reverted(journal, context, except_clashes=True)
    reverted.run(choose, "undone", None)
    return reverted.outcome.clashes


def _descending(groups: Sequence[Sequence[int]]) -> list[int]:
    return sorted((each for group in groups for each in group), reverse=True)


class Reverted:
    """Steps that were taken back, and what this changed."""

    def __init__(self, journal: Journal, context: Context, *, except_clashes: bool = False) -> None:
        self._journal, self._context, self._except_clashes = journal, context, except_clashes
        self.wanted = Wanted((), {})
        self.steps: list[Step] = []  # those that were taken back
        self.outcome = Outcome((), (), (), ())
        self.remaining: Sequence[str] = ()
        self.notes: Sequence[str] = ()

    def run(self, choose: Choose, done: str, rest: NextCall | None) -> None:
        """Take back the chosen steps, and append the steps that do so; all or none.

        An error about a conflict says that nothing was `done`, and suggests the call `rest` for other paths.

        Raises:
            AgentFSError: `conflict` if others have changed the same lines; `refused`, `busy`.
        """
        journal = self._journal
        journal.settle_recordings()
        deadline = time.monotonic() + _RETRY_SECONDS
        while True:
            with journal.exclusive():
                position = journal.log.position
                self.wanted = choose(journal.log)
                self.steps = [journal.log.step(number) for number in self.wanted.changes]
            try:
                self._apply(position, rest, done)
            except (Overtaken, ConcurrentChange, ConflictError) as error:
                # If another thread has just recorded a step, compute the changes again.
                if isinstance(error, ConflictError) and journal.log.position == position:
                    raise
                if time.monotonic() > deadline:
                    raise BusyError(
                        f"Files kept changing for {_RETRY_SECONDS:g} seconds; nothing was done.",
                        hint="Try the same call again.",
                    ) from None
                continue
            changes = effective_changes(Step(changes, 0.0) for changes in self.outcome.steps)
            record_restored(self._context.tracker, ((each.path, each.after) for each in changes))
            return

    @property
    def shown(self) -> Iterator[tuple[Change, ...]]:
        """The changes of each step; those that others have made already as they were wanted."""
        for wanted, made in zip(self.wanted.changes.values(), self.outcome.steps, strict=True):
            now = {each.path: each for each in made}
            yield tuple(each if now[each.path].changes_nothing else now[each.path] for each in wanted)

    def _apply(self, position: int, rest: NextCall | None, done: str) -> None:
        journal, root, wanted = self._journal, self._context.root, [*self.wanted.changes.values()]
        _check_usable(root, [change.path for changes in wanted for change in changes])
        max_bytes = max(self._context.limits.file_bytes, _largest(wanted))
        read = partial(read_node, root, max_bytes=max_bytes)
        outcome = take_steps(wanted, read, journal.contents.keep_node)
        clashes = outcome.clashes
        if clashes and self._except_clashes:
            clashing = {each.path for each in clashes}
            left = [tuple(each for each in changes if each.path not in clashing) for changes in wanted]
            outcome = take_steps(left, read, journal.contents.keep_node)._replace(clashes=clashes)
        elif clashes:
            groups = [Step(_changes_of(journal.log, group), 0.0) for group in self.wanted.groups]
            other_paths = rest and rest_of_call(rest, groups, clashes, root.display_path)
            raise clash_error(clashes, journal.origin, root, other_paths, done)
        self.outcome = outcome
        applied = root.apply(
            outcome.changes,
            max_bytes=max_bytes,
            conflict=begin_again,
            log_step=partial(journal.reverting, self._new_steps(position), position),
            undoing=True,
        )
        self.remaining, self.notes = applied.remaining, applied.notes

    def _new_steps(self, position: int) -> list[Step]:
        """Return the steps to append; those that take back a transaction belong together."""
        journal = self._journal
        numbers = {number: at for at, number in enumerate(self.wanted.changes, position + 1)}
        together = {
            each: numbers[group[0]] for group in self.wanted.groups if len(group) > 1 for each in group
        }
        return [
            Step(
                tuple(map(journal.contents.keep, changes)),
                time.time(),
                author=call_context.author.get(),
                reverts=number,
                group=journal.group or together.get(number, 0),
            )
            for number, changes in zip(numbers, self.outcome.steps, strict=True)
        ]


def _take_back(
    journal: Journal, context: Context, choose: Choose, head: str, done: str, rest: NextCall | None
) -> UndoResult:
    """Take back the chosen steps, as `Reverted.run` does. The result begins with `head`."""
    root = context.root
    reverted = Reverted(journal, context)
    reverted.run(choose, done, rest)
    changes = effective_changes(Step(changes, 0.0) for changes in reverted.shown)
    files = file_changes(
        [change for change in changes if change.path not in reverted.remaining],
        count_lines=False,
        display=root.display_path,
    )
    count = len(reverted.wanted.groups)
    head = f"{head} {plural(count, 'step')}." if count else f"{head} nothing to do."
    notes = (*_notes(root, reverted), *reverted.notes)
    with journal.exclusive():
        undoable, redoable = journal.log.to_undo(None, journal.own), journal.log.to_redo(journal.own)
    result = UndoResult(count, files, len(undoable), len(redoable), notes=notes)
    return with_text(result, head, below=file_lines(files))


def _notes(root: Root, reverted: Reverted) -> list[str]:
    """Return notes on paths that are not as they were before the steps."""
    lost = dict.fromkeys(path for step in reverted.steps for path in step.lost)
    remaining, merged, left = (
        [*map(root.display_path, paths)] for paths in (reverted.remaining, reverted.outcome.merged, lost)
    )
    notes = [f"the directory {quote(path)} stays, because it is not empty" for path in remaining]
    if merged:
        notes.append(f"merged with changes by another program: {name_paths(sorted(merged))}")
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


def _changes_of(log: Log, group: Sequence[int]) -> tuple[Change, ...]:
    return tuple(change for number in group for change in log.step(number).changes)


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
