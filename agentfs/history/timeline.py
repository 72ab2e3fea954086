"""The order of steps in a journal, its checkpoints, and net changes of several steps. Pure: no disk access.

The number of steps is bounded: the oldest are merged into one base, which keeps only their net changes and
cannot be undone.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from agentfs.fs import Change, FileNode, Node
from agentfs.history.renames import renames
from agentfs.results import RecordedResult

MAX_STEPS = 10_000
MAX_CHANGES = 20_000  # of all kept steps together, and of the base
MAX_CHECKPOINTS = 10_000
_SPARE = 8  # steps are merged when there are an eighth more than the maximum


class Step(NamedTuple):
    """The changes of one call or one recording, at most one for each path."""

    changes: tuple[Change, ...]
    time: float  # in seconds since 1970
    label: str = ""  # label of the recording; "" for a call
    lost: tuple[str, ...] = ()  # changed paths whose content a recording did not keep

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


@dataclass
class Recording:
    """The recording that `Workspace.recording` yields.

    Attributes:
        label: The label.
        result: The changes; set when the block ends.
    """

    label: str
    result: RecordedResult = field(init=False, repr=False)


class Order(NamedTuple):
    """The kept steps, the position among them, and the checkpoints."""

    steps: tuple[Step, ...]
    position: int
    checkpoints: Mapping[str, int]


class PendingMove(NamedTuple):
    """An undo or redo that is under way: its changes, and the order of steps after it."""

    changes: tuple[Change, ...]
    order: Order
    kept: int  # the number of steps at the start of `order` that do not change
    first: int  # the number of the first step that changes

    @property
    def rewritten(self) -> tuple[Step, ...]:
        """The steps that are new or have a new number."""
        return self.order.steps[self.kept :]


class NetChanges(NamedTuple):
    """The net changes of several steps, one for each path."""

    changes: tuple[Change, ...]
    external: tuple[str, ...]  # paths that also changed between the steps
    omitted: int = 0  # number of paths left out, because their oldest node is no longer kept

    @property
    def effective(self) -> tuple[Change, ...]:
        """The changes without paths that have their old node again."""
        return tuple(change for change in self.changes if not change.changes_nothing)


class _Accumulator:
    """Net changes of steps that are added one after the other."""

    def __init__(self, start: NetChanges | None = None) -> None:
        self._changes = {change.path: change for change in start.changes} if start else {}
        self._external = dict.fromkeys(start.external) if start else {}
        self._omitted = start.omitted if start else 0

    def add(self, changes: Iterable[Change]) -> None:
        for change in changes:
            known = self._changes.get(change.path)
            if known is None:
                self._changes[change.path] = change
                continue
            if known.after != change.before:
                self._external[change.path] = None
            self._changes[change.path] = Change(change.path, known.before, change.after)

    def trim(self, maximum: int) -> None:
        """Drop changes without effect, and the oldest changes beyond a maximum."""
        self._changes = {path: change for path, change in self._changes.items() if not change.changes_nothing}
        for kept in (self._changes, self._external):
            while len(kept) > maximum:
                del kept[next(iter(kept))]
                self._omitted += 1

    def total(self) -> NetChanges:
        return NetChanges(tuple(self._changes.values()), tuple(self._external), self._omitted)


def net_changes(steps: Iterable[Iterable[Change]], base: NetChanges | None = None) -> NetChanges:
    """Return the net changes of steps, including paths that have their old node again."""
    total = _Accumulator(base)
    for changes in steps:
        total.add(changes)
    return total.total()


def is_in(path: str, directory: str) -> bool:
    """Return True if a path is a directory, or lies below it; "" is the root."""
    return not directory or path == directory or path.startswith(f"{directory}/")


class Timeline:
    """Steps, and the current position among them, which is the number of steps that are done."""

    def __init__(self, *, bounded: bool = True) -> None:
        self._bounded = bounded
        self._base = _Accumulator()
        self._steps: list[Step] = []
        self._change_count = 0
        self.merged = 0  # the number of steps that were merged into the base
        self.position = 0
        self.checkpoints: dict[str, int] = {}  # position by name; the last set comes last
        self.generation = 0  # counts changes of steps or position

    @property
    def base(self) -> NetChanges:
        """The net changes of the merged steps."""
        base = self._base.total()
        return base._replace(changes=base.effective)

    @property
    def done_steps(self) -> Sequence[Step]:
        """The steps that are done and can be undone, from the first to the last."""
        return self.between(self.merged, self.position)

    @property
    def undone_steps(self) -> Sequence[Step]:
        """The steps that were undone and can be redone, from the first to the last."""
        return self.between(self.position, self.end)

    @property
    def end(self) -> int:
        """The position after the last step, undone steps included."""
        return self.merged + len(self._steps)

    @property
    def order(self) -> Order:
        """The steps, position and checkpoints as they are now."""
        return Order(tuple(self._steps), self.position, self.checkpoints)

    def between(self, start: int, end: int) -> Sequence[Step]:
        """Return the steps between two positions, neither before `merged`."""
        return self._steps[start - self.merged : end - self.merged]

    def last_step_that_left(self, path: str, node: Node | None) -> Step | None:
        """Return the last done step that changed a path, or None if it did not leave this node there."""
        for step in reversed(self.done_steps):
            for change in step.changes:
                if change.path == path:
                    return step if change.after == node else None
        return None

    def since(self, start: int) -> NetChanges:
        """Return the net changes since a position: 0, or one that is not before `merged`."""
        steps = [step.changes for step in self.between(max(start, self.merged), self.position)]
        return net_changes(steps, self.base if start < self.merged else None)

    def moved_to_hidden(self, start: int, is_hidden: Callable[[str], bool]) -> set[str]:
        """Return the paths whose files were moved, since a position, to paths that are hidden now.

        One step may edit a file, move it, and write another file in its place. So if a step creates a hidden
        file with new content, any file that the step changed may be its source.
        """
        hidden: dict[str, bool] = {}

        def ends_hidden(path: str) -> bool:
            return hidden[path] if path in hidden else is_hidden(path)

        steps = [step.changes for step in self.between(max(start, self.merged), self.position)]
        for changes in reversed([self.base.changes, *steps] if start < self.merged else steps):
            changed = [each for each in changes if isinstance(each.before, FileNode)]
            created = [each for each in changes if isinstance(each.after, FileNode) and each.before is None]
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

    def add(self, step: Step) -> None:
        """Add a step at the current position; drop the undone steps."""
        done = self.position - self.merged
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

    def merge_due(self) -> int:
        """Return the position up to which steps must be merged; `merged` if there are none."""
        too_many = len(self._steps) > MAX_STEPS + MAX_STEPS // _SPARE
        if not self._bounded or (not too_many and self._change_count <= MAX_CHANGES + MAX_CHANGES // _SPARE):
            return self.merged
        position, steps, changes = self.merged, len(self._steps), self._change_count
        while position < self.position - 1 and (steps > MAX_STEPS or changes > MAX_CHANGES):
            changes -= len(self._steps[position - self.merged].changes)
            steps -= 1
            position += 1
        return position

    def merge(self, position: int) -> None:
        """Merge the steps before a position into the base."""
        for step in self.between(self.merged, position):
            self._base.add(step.changes)
            self._change_count -= len(step.changes)
        self._base.trim(MAX_CHANGES)
        del self._steps[: position - self.merged]
        self.merged = position
        self.checkpoints = {name: at for name, at in self.checkpoints.items() if at >= position}

    def restore(self, base: NetChanges, merged: int, order: Order) -> None:
        """Replace everything with the contents of a stored timeline."""
        self._base, self.merged = _Accumulator(base), merged
        self.reorder(order._replace(checkpoints=dict(list(order.checkpoints.items())[-MAX_CHECKPOINTS:])))


class Way:
    """The steps that one undo or redo takes, or their parts at some paths, and the order of steps after it.

    `numbers` are indexes of done steps for an undo, and of undone steps for a redo.
    """

    def __init__(
        self, timeline: Timeline, numbers: Sequence[int], paths: Sequence[str] | None, *, undoing: bool
    ) -> None:
        self._order, self._merged = timeline.order, timeline.merged
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
        return [tuple(change.reversed() for change in step.changes) for step in reversed(self.taken)]

    def move(self, changes: tuple[Change, ...], made: Sequence[tuple[Change, ...]]) -> PendingMove:
        """Return the move with these changes; `made` has the changes of each step after the merge."""
        if self._undoing:
            made = [tuple(change.reversed() for change in step) for step in reversed(made)]
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
        before = self._merged + len(done)
        position = before + sum(step is not None for step in parts[0])
        checkpoints = {
            name: self._checkpoint_at(at, before, parts) for name, at in self._order.checkpoints.items()
        }
        old = self._order.steps
        replaced = (
            number for number, step in enumerate(steps) if number >= len(old) or step is not old[number]
        )
        kept = next(replaced, len(steps))
        return PendingMove(changes, Order(steps, position, checkpoints), kept, self._merged + kept + 1)

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
