"""The order of steps in a journal, its checkpoints, and net changes of several steps. Pure: no disk access.

The number of steps is bounded: the oldest are dropped.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, cast

from agentfs.fs import Change, FileNode, LinesBy, Node
from agentfs.fs.node import reverse
from agentfs.fs.path import is_in
from agentfs.history.renames import renames
from agentfs.results import RecordedResult

MAX_STEPS = 10_000
MAX_CHANGES = 20_000  # of all kept steps together
MAX_CHECKPOINTS = 10_000
_SPARE = 8  # steps are dropped when there are an eighth more than the maximum


class Step(NamedTuple):
    """The changes of one call or one recording, at most one for each path."""

    changes: tuple[Change, ...]
    time: float  # in seconds since 1970
    label: str = ""  # label of the recording; "" for a call
    lost: tuple[str, ...] = ()  # changed paths whose content a recording did not keep
    author: tuple[str, str] = ("tool", "")  # as `call_context.author`; of a recording, its label counts
    by_others: tuple[LinesBy, ...] = ()  # for example by a formatter

    def divided(self, paths: Sequence[str]) -> "tuple[Step | None, Step | None]":
        """Return the part of the step at or below some paths, and the rest; None for an empty part.

        Both paths of a moved file go together. A directory is in the part if all its files are.
        """
        taken = {each.path for each in self.changes if any(is_in(each.path, path) for path in paths)}
        for new, old in renames(self.changes).items():
            if new in taken or old in taken:
                taken |= {new, old}
        files = [each.path for each in self.changes if not each.of_directory]
        for each in self.changes:
            if each.of_directory and each.path not in taken:
                below = [path for path in files if is_in(path, each.path)]
                if below and taken.issuperset(below):
                    taken.add(each.path)
        parts = [
            tuple(each for each in self.changes if (each.path in taken) is wanted) for wanted in (True, False)
        ]
        inside, outside = (self._replace(changes=part) if part else None for part in parts)
        return inside, outside


class AcceptedFile(NamedTuple):
    """The part of one file's changes that a review has accepted.

    `ranges` are lines of `now`, from 0 and without the end; an empty range is the place of a deletion.
    """

    path: str
    base: Node | None  # what the review compared with, with the accepted changes
    now: Node | None
    ranges: tuple[tuple[int, int], ...] = ()
    mode: bool = False  # the mode was accepted
    whole: bool = False  # everything was accepted, such as a creation


class Acceptance(NamedTuple):
    """The changes that one call of a review has accepted."""

    time: float
    files: tuple[AcceptedFile, ...]


@dataclass
class Recording:
    """The recording that `Workspace.recording` yields.

    Attributes:
        label: The label.
        result: The changes. It is None until the block ends, and then never, so its type does not say so.
    """

    label: str
    result: RecordedResult = field(default=cast("RecordedResult", None), init=False, repr=False)


class Order(NamedTuple):
    """The kept steps, the position among them, and the checkpoints."""

    steps: tuple[Step, ...]
    position: int
    checkpoints: Mapping[str, int]


class PendingRewind(NamedTuple):
    """An undo or redo that is under way: its changes, and the order of steps after it."""

    changes: tuple[Change, ...]
    order: Order
    kept: int  # the number of steps at the start of `order` that do not change
    first: int  # the number of the first step that changes

    @property
    def rewritten(self) -> tuple[Step, ...]:
        """The steps that are new or have a new number."""
        return self.order.steps[self.kept :]


def net_changes(steps: Iterable[Step]) -> list[Change]:
    """Return one change for each path of some steps, even if a path has its old node again."""
    total: dict[str, Change] = {}
    for change in (each for step in steps for each in step.changes):
        known, origin = total.get(change.path, change), first_path(change, total)
        total[change.path] = Change(change.path, known.before, change.after, origin)
    return [*total.values()]


def first_path(change: Change, earlier: Mapping[str, Change]) -> str:
    """Return where the node of a change was moved from, as of the start of the net changes before it."""
    moved_from = change.moved_from if change.before is None else change.path
    known = earlier.get(moved_from)
    return known.moved_from if known is not None and known.moved_from else change.moved_from


def effective_changes(steps: Iterable[Step]) -> list[Change]:
    """Return the net changes of some steps without paths that have their old node again."""
    return [change for change in net_changes(steps) if not change.changes_nothing]


def moved_to_hidden(steps: Sequence[Step], is_hidden: Callable[[str], bool]) -> set[str]:
    """Return the paths whose files some steps have moved to paths that are hidden now.

    One step may edit a file, move it, and write another file in its place. So if a step creates a hidden
    file with new content, any file that the step changed may be its source.
    """
    hidden: dict[str, bool] = {}

    def ends_hidden(path: str) -> bool:
        return hidden[path] if path in hidden else is_hidden(path)

    for step in reversed(steps):
        changed = [each for each in step.changes if isinstance(each.before, FileNode)]
        created = [each for each in step.changes if isinstance(each.after, FileNode) and each.before is None]
        if not changed or not created:
            continue
        targets: dict[Node | None, list[str]] = {}
        for each in created:
            targets.setdefault(each.after, []).append(each.path)
        removed = {each.before for each in changed if each.after is None}
        new_hidden = any(ends_hidden(each.path) for each in created if each.after not in removed)
        hidden |= {
            each.path: any(map(ends_hidden, targets[each.before])) if moved else new_hidden
            for each in changed
            if (moved := each.after is None and each.before in targets) or new_hidden
        }
    return {path for path, is_so in hidden.items() if is_so}


class Timeline:
    """Steps, and the current position among them, which is the number of steps that are done."""

    def __init__(self, *, bounded: bool = True) -> None:
        self._bounded = bounded
        self._steps: list[Step] = []
        self._change_count = 0
        self.dropped = 0  # the number of the oldest steps, which are no longer kept
        self.position = 0
        self.checkpoints: dict[str, int] = {}  # position by name; the last set comes last
        self.generation = 0  # counts changes of steps or position

    @property
    def done_steps(self) -> Sequence[Step]:
        """The steps that are done and can be undone, from the first to the last."""
        return self.between(self.dropped, self.position)

    @property
    def undone_steps(self) -> Sequence[Step]:
        """The steps that were undone and can be redone, from the first to the last."""
        return self.between(self.position, self.end)

    @property
    def end(self) -> int:
        """The position after the last step, undone steps included."""
        return self.dropped + len(self._steps)

    @property
    def order(self) -> Order:
        """The steps, position and checkpoints as they are now."""
        return Order(tuple(self._steps), self.position, self.checkpoints)

    def between(self, start: int, end: int) -> Sequence[Step]:
        """Return the steps between two positions, neither before `dropped`."""
        return self._steps[start - self.dropped : end - self.dropped]

    def last_step_that_left(self, path: str, node: Node | None) -> Step | None:
        """Return the last done step that changed a path, or None if it did not leave this node there."""
        for step in reversed(self.done_steps):
            for change in step.changes:
                if change.path == path:
                    return step if change.after == node else None
        return None

    def add(self, step: Step) -> None:
        """Add a step at the current position; drop the undone steps."""
        done = self.position - self.dropped
        for dropped in self._steps[done:]:
            self._change_count -= len(dropped.changes)
        del self._steps[done:]
        self.checkpoints = {name: at for name, at in self.checkpoints.items() if at <= self.position}
        self._steps.append(step)
        self._change_count += len(step.changes)
        self.position += 1
        self.generation += 1

    def reorder(self, order: Order) -> None:
        """Replace steps, position and checkpoints after an undo or redo."""
        self._steps = list(order.steps)
        self._change_count = sum(len(step.changes) for step in order.steps)
        self.position, self.checkpoints = order.position, dict(order.checkpoints)
        self.generation += 1

    def set_checkpoint(self, name: str) -> bool:
        """Name the current position; return True if the name had another position before."""
        moved = self.checkpoints.pop(name, self.position) != self.position
        self.checkpoints[name] = self.position
        while len(self.checkpoints) > MAX_CHECKPOINTS:
            del self.checkpoints[next(iter(self.checkpoints))]
        return moved

    def drop_oldest(self) -> bool:
        """Drop the oldest done steps beyond the bounds; return True if there were any."""
        too_many = len(self._steps) > MAX_STEPS + MAX_STEPS // _SPARE
        if not self._bounded or (not too_many and self._change_count <= MAX_CHANGES + MAX_CHANGES // _SPARE):
            return False
        count, most = 0, self.position - self.dropped - 1
        while count < most and (len(self._steps) - count > MAX_STEPS or self._change_count > MAX_CHANGES):
            self._change_count -= len(self._steps[count].changes)
            count += 1
        del self._steps[:count]
        self.dropped += count
        self.checkpoints = {name: at for name, at in self.checkpoints.items() if at >= self.dropped}
        return count > 0

    def restore(self, dropped: int, order: Order) -> None:
        """Replace everything with the contents of a stored timeline."""
        self.dropped = dropped
        self.reorder(order._replace(checkpoints=dict(list(order.checkpoints.items())[-MAX_CHECKPOINTS:])))


class UndoPlan:
    """The steps that one undo or redo takes, or their parts at some paths, and the order of steps after it.

    `numbers` are indexes of done steps for an undo, and of undone steps for a redo.
    """

    def __init__(
        self, timeline: Timeline, numbers: Sequence[int], paths: Sequence[str] | None, *, undoing: bool
    ) -> None:
        self._order, self._dropped = timeline.order, timeline.dropped
        self._done, self._undone = timeline.done_steps, timeline.undone_steps
        self._undoing = undoing
        chosen, pool = set(numbers), self._done if undoing else self._undone
        self._taken: list[Step | None] = []
        self._rests: list[Step | None] = []
        for number, step in enumerate(pool):
            inside, rest = (None, step) if number not in chosen else (step, None)
            if number in chosen and paths is not None:
                inside, rest = step.divided(paths)
            self._taken.append(step if rest is None else inside)
            self._rests.append(step if inside is None else rest)

    @property
    def taken(self) -> list[Step]:
        """The steps to undo or redo, in the order in which they were first made."""
        return [step for step in self._taken if step is not None]

    @property
    def paths(self) -> list[str]:
        """The paths in `taken`."""
        return [change.path for step in self.taken for change in step.changes]

    @property
    def changes(self) -> list[tuple[Change, ...]]:
        """The changes to make, step by step."""
        if not self._undoing:
            return [step.changes for step in self.taken]
        return [reverse(step.changes) for step in reversed(self.taken)]

    def rewind(self, changes: tuple[Change, ...], made: Sequence[tuple[Change, ...]]) -> PendingRewind:
        """Return the rewind with these changes; `made` has the changes of each step after the merge."""
        if self._undoing:
            made = [reverse(step) for step in reversed(made)]
        now = iter(made)
        taken = [
            None
            if step is None
            else step
            if (changed := next(now)) == step.changes
            else step._replace(changes=changed)
            for step in self._taken
        ]
        parts = (self._rests, taken) if self._undoing else (taken, self._rests)
        moved = [step for part in parts for step in part if step is not None]
        done = () if self._undoing else tuple(self._done)
        steps = (*done, *moved, *(self._undone if self._undoing else ()))
        before = self._dropped + len(done)
        position = before + sum(step is not None for step in parts[0])
        checkpoints = {
            name: self._checkpoint_at(at, before, parts) for name, at in self._order.checkpoints.items()
        }
        old = self._order.steps
        replaced = (
            number for number, step in enumerate(steps) if number >= len(old) or step is not old[number]
        )
        kept = next(replaced, len(steps))
        return PendingRewind(changes, Order(steps, position, checkpoints), kept, self._dropped + kept + 1)

    def _checkpoint_at(self, at: int, before: int, parts: Sequence[Sequence[Step | None]]) -> int:
        """Return the new position of a checkpoint; among divided steps, after the steps that stay done."""
        ahead, length = at - before, len(self._taken)
        if ahead <= 0:
            return at
        first, second = ([step is not None for step in part] for part in parts)
        if ahead > length:
            return at + sum(first) + sum(second) - length
        if any(first[ahead:]):
            return before + sum(first[:ahead])
        return before + sum(first) + sum(second[:ahead])
