"""The steps of a journal, which are only appended to, and the part of each that still stands. Pure.

A step that takes back an earlier one names its number in `reverts`. Steps are numbered from 1, and a position
is the number of the last step before it. The number of steps is bounded: the oldest are dropped.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, cast

from agentfs.fs import Change, LinesBy, Node
from agentfs.fs.node import reverse
from agentfs.fs.path import is_in
from agentfs.history.renames import renames
from agentfs.results import RecordedResult

MAX_STEPS = 10_000
MAX_CHANGES = 20_000  # of all kept steps together
MAX_CHECKPOINTS = 10_000
_SPARE = 8  # steps are dropped when there are an eighth more than the maximum

Author = tuple[str, str]  # kind and name, as `call_context.author`


class Step(NamedTuple):
    """The changes of one call or one recording, at most one for each path."""

    changes: tuple[Change, ...]
    time: float  # in seconds since 1970
    label: str = ""  # label of the recording; "" for a call
    lost: tuple[str, ...] = ()  # changed paths whose content a recording did not keep
    author: Author = ("tool", "")  # of a recording, its label counts
    by_others: tuple[LinesBy, ...] = ()  # for example by a formatter
    reverts: int = 0  # the number of the step that this one takes back, or 0
    group: int = 0  # the number of the first step of its transaction, or 0


@dataclass
class Recording:
    """The recording that `Workspace.recording` yields.

    Attributes:
        label: The label.
        result: The changes. It is None until the block ends, and then never, so its type does not say so.
    """

    label: str
    result: RecordedResult = field(default=cast("RecordedResult", None), init=False, repr=False)


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


def _with_partners(step: Step, paths: Collection[str]) -> set[str]:
    """Return paths of a step with the other path of each moved file, and directories whose files they are."""
    taken = set(paths)
    for new, old in renames(step.changes).items():
        if new in taken or old in taken:
            taken |= {new, old}
    files = [each.path for each in step.changes if not each.of_directory]
    for each in step.changes:
        if each.of_directory and each.path not in taken:
            below = [path for path in files if is_in(path, each.path)]
            if below and taken.issuperset(below):
                taken.add(each.path)
    return taken


class Log:
    """Steps and checkpoints. Only the oldest steps are ever removed."""

    def __init__(self) -> None:
        self._steps: list[Step] = []
        self._left: list[set[str]] = []  # for each step, the paths that no step has taken back
        self._change_count = 0
        self.dropped = 0  # the number of the oldest steps, which are no longer kept
        self.checkpoints: dict[str, int] = {}  # position by name; the last set comes last

    @property
    def position(self) -> int:
        """The number of the last step."""
        return self.dropped + len(self._steps)

    def step(self, number: int) -> Step:
        """Return the step with a number."""
        return self._steps[number - self.dropped - 1]

    def after(self, position: int) -> Sequence[Step]:
        """Return the kept steps after a position."""
        return self._steps[max(position - self.dropped, 0) :]

    def last_step_that_left(self, path: str, node: Node | None) -> Step | None:
        """Return the last step that changed a path, or None if it did not leave this node there."""
        for step in reversed(self._steps):
            for change in step.changes:
                if change.path == path:
                    return step if change.after == node else None
        return None

    def add(self, step: Step) -> None:
        """Append a step."""
        paths = {change.path for change in step.changes}
        if step.reverts > self.dropped:
            self._left[step.reverts - self.dropped - 1] -= paths
        self._steps.append(step)
        self._left.append(paths)
        self._change_count += len(step.changes)

    def remove_last(self, count: int) -> None:
        """Remove the last steps: no change of theirs was made."""
        steps = self._steps[: len(self._steps) - count]
        self._steps, self._left, self._change_count = [], [], 0
        for step in steps:
            self.add(step)

    def reversal(self, number: int, scope: Sequence[str] | None = None) -> tuple[Change, ...]:
        """Return the changes that take back what is left of a step, at or below some paths.

        A step that took back another may have found a path as it should be. Its reversal then is that of the
        other step.
        """
        step, taken = self.step(number), self._left[number - self.dropped - 1]
        if scope is not None:
            inside = [each for each in taken if any(is_in(each, path) for path in scope)]
            taken = _with_partners(step, inside) & taken
        back = reverse([each for each in step.changes if each.path in taken])
        if not any(each.changes_nothing for each in back):
            return back
        first = step
        while first.reverts > self.dropped:
            first = self.step(first.reverts)
        wanted = first.changes if self.takes_back(number) else reverse(first.changes)
        known = {} if first.reverts else {each.path: each for each in wanted}
        return tuple(known.get(each.path, each) if each.changes_nothing else each for each in back)

    def rollback(self, position: int, scope: Sequence[str] | None) -> dict[int, tuple[Change, ...]]:
        """Return the changes that take the tree back to a position, by the number of each later step.

        The latest step comes first. A step and the one that took it back cancel out for each path that no
        other step has changed in between.
        """
        stacks: dict[str, list[int]] = {}
        for number, step in enumerate(self.after(position), max(position, self.dropped) + 1):
            for change in step.changes:
                stack = stacks.setdefault(change.path, [])
                if stack and stack[-1] == step.reverts:
                    stack.pop()
                else:
                    stack.append(number)
        paths: dict[int, set[str]] = {}
        for path, numbers in stacks.items():
            for number in numbers:
                paths.setdefault(number, set()).add(path)
        found: dict[int, tuple[Change, ...]] = {}
        for number in sorted(paths, reverse=True):
            step, taken = self.step(number), paths[number]
            if scope is not None:
                inside = [each for each in taken if any(is_in(each, path) for path in scope)]
                taken &= _with_partners(step, inside)
            if taken:
                found[number] = reverse([each for each in step.changes if each.path in taken])
        return found

    def to_undo(self, scope: Sequence[str] | None, own: Collection[int] | None = None) -> list[list[int]]:
        """Return the numbers of the steps that `undo` can take back, the latest first.

        The steps of a transaction go together, except in the transaction itself, whose steps are `own`.
        """
        return self.in_groups(self._left_over(scope, undone=False), own)

    def to_redo(self, own: Collection[int] | None = None) -> list[list[int]]:
        """Return the numbers of the steps that took back others, and can be redone, as `to_undo`."""
        return self.in_groups(self._left_over(None, undone=True), own)

    def in_groups(self, numbers: Iterable[int], own: Collection[int] | None = None) -> list[list[int]]:
        """Return some numbers with those of each transaction together."""
        if own is not None:
            return [[number] for number in numbers if number in own]
        found: dict[int, list[int]] = {}
        for number in numbers:
            found.setdefault(self.step(number).group or number, []).append(number)
        return [*found.values()]

    def _left_over(self, scope: Sequence[str] | None, *, undone: bool) -> Iterator[int]:
        for number in range(self.position, self.dropped, -1):
            if self.takes_back(number) is undone and self.stands(number, scope):
                yield number

    def takes_back(self, number: int) -> bool:
        """Return True for an undo; False for any other step, also for a redo, which takes back an undo."""
        takes_back = False
        while number > self.dropped and (number := self.step(number).reverts):
            takes_back = not takes_back
        return takes_back

    def stands(self, number: int, scope: Sequence[str] | None = None) -> bool:
        """Return True if something of a step is not taken back, at or below some paths."""
        left = self._left[number - self.dropped - 1]
        return bool(left) if scope is None else any(is_in(each, path) for each in left for path in scope)

    def set_checkpoint(self, name: str, position: int) -> bool:
        """Name a position; return True if the name had another position before."""
        moved = self.checkpoints.pop(name, position) != position
        self.checkpoints[name] = position
        while len(self.checkpoints) > MAX_CHECKPOINTS:
            del self.checkpoints[next(iter(self.checkpoints))]
        return moved

    def too_many(self) -> int:
        """Return how many of the oldest steps are over the bounds; the last step is always kept."""
        most_steps, most_changes = MAX_STEPS, MAX_CHANGES
        few_steps = len(self._steps) <= most_steps + most_steps // _SPARE
        if few_steps and self._change_count <= most_changes + most_changes // _SPARE:
            return 0
        count, changes = 0, self._change_count
        while count < len(self._steps) - 1 and (
            len(self._steps) - count > most_steps or changes > most_changes
        ):
            changes -= len(self._steps[count].changes)
            count += 1
        return count

    def drop(self, count: int) -> None:
        """Drop the oldest steps, and the checkpoints before them."""
        self._change_count -= sum(len(step.changes) for step in self._steps[:count])
        del self._steps[:count]
        del self._left[:count]
        self.dropped += count
        self.checkpoints = {name: at for name, at in self.checkpoints.items() if at >= self.dropped}
