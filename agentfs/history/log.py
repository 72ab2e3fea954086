"""The steps of a journal, which are only appended to, and the part of each that still stands. Pure.

A step that takes back an earlier one names its number in `reverts`. Steps are numbered from 1, and a position
is the number of the last step before it. The number of steps is bounded: the oldest are dropped.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, cast

from agentfs.fs import Change, LinesBy, MovedNode, Node, entry_type
from agentfs.fs.node import moves, reverse
from agentfs.fs.path import is_in
from agentfs.results import RecordedResult

MAX_STEPS = 10_000
MAX_CHANGES = 50_000  # of all kept steps together
MAX_CHECKPOINTS = 10_000
_SPARE = 8  # steps are dropped when there are an eighth more than the maximum

Author = tuple[str, str]  # kind and name, as `call_context.author`
Scope = Sequence[str] | None  # the paths at or below which something is about, or None for all


class Step(NamedTuple):
    """The changes of one call or one recording, at most one for each path."""

    changes: tuple[Change, ...]
    time: float = 0.0  # in seconds since 1970
    label: str = ""  # label of the recording; "" for a call
    lost: tuple[str, ...] = ()  # changed paths whose content a recording did not keep
    author: Author = ("tool", "")  # of a recording, its label counts
    by_others: tuple[LinesBy, ...] = ()  # for example by a formatter
    reverts: int = 0  # the number of the step that this one takes back, or 0
    groups: tuple[int, ...] = ()  # the transactions that it is part of, the outermost first


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


def effective_changes(steps: Iterable[Sequence[Change]]) -> list[Change]:
    """Return the net changes of some steps without paths that have their old node again."""
    return [each for each in net_changes(map(Step, map(tuple, steps))) if not each.changes_nothing]


def file_moves(changes: Iterable[Change]) -> dict[str, str]:
    """Return the old path of each moved file and link, by its new path."""
    return moves([each for each in changes if not each.of_directory])


def is_in_scope(path: str, scope: Scope) -> bool:
    """Return True if a path is at or below one of a scope."""
    return scope is None or any(is_in(path, each) for each in scope)


def _in_scope(step: Step, paths: Collection[str], scope: Scope) -> set[str]:
    """Return the paths in a scope, the other path of each moved file, and the directories of these files."""
    taken = {path for path in paths if is_in_scope(path, scope)}
    for pair in file_moves(step.changes).items():
        if not taken.isdisjoint(pair):
            taken.update(pair)
    files = [each.path for each in step.changes if not each.of_directory]
    for each in step.changes:
        if each.of_directory and each.path not in taken:
            below = [path for path in files if is_in(path, each.path)]
            if below and taken.issuperset(below):
                taken.add(each.path)
    return taken.intersection(paths)


class Log:
    """Steps and checkpoints. Only the oldest steps are ever removed."""

    def __init__(self) -> None:
        self._steps: list[Step] = []
        self._left: list[set[str]] = []  # for each step, the paths that no step has taken back
        self._takes_back: list[bool] = []  # for each step
        self._change_count = 0
        self.dropped = 0  # the number of the oldest steps, which are no longer kept
        self.last_group = 0
        self.checkpoints: dict[str, int] = {}  # position by name; the last set comes last

    @property
    def position(self) -> int:
        """The number of the last step."""
        return self.dropped + len(self._steps)

    def step(self, number: int) -> Step:
        """Return the step with a number."""
        return self._steps[number - self.dropped - 1]

    def first(self, number: int) -> Step:
        """Return the kept step that a step redoes or takes back in the end, or the step itself."""
        while (step := self.step(number)).reverts > self.dropped:
            number = step.reverts
        return step

    def after(self, position: int) -> Sequence[Step]:
        """Return the kept steps after a position."""
        return self._steps[max(position - self.dropped, 0) :]

    def last_step_that_left(self, path: str, node: Node | None) -> Step | None:
        """Return the last step that changed a path, or None if it did not leave this node there."""
        for step in reversed(self._steps):
            for change in step.changes:
                if change.path == path:
                    unread = node and MovedNode(entry_type(node))  # as a move leaves it
                    return step if change.after in (node, unread) else None
        return None

    def add(self, step: Step) -> None:
        """Append a step."""
        paths = {change.path for change in step.changes}
        if step.reverts > self.dropped:
            self._left[step.reverts - self.dropped - 1] -= paths
        # A redo takes back an undo, so it does not count as an undo itself.
        self._takes_back.append(step.reverts > 0 and not self.takes_back(step.reverts))
        self._steps.append(step)
        self._left.append(paths)
        self._change_count += len(step.changes)
        self.last_group = max(self.last_group, *step.groups, 0)

    def remove_last(self, count: int) -> None:
        """Remove the last steps: no change of theirs was made."""
        steps = self._steps[: len(self._steps) - count]
        self._steps, self._left, self._takes_back, self._change_count = [], [], [], 0
        for step in steps:
            self.add(step)

    def new_group(self) -> int:
        """Return a number for steps that belong together."""
        self.last_group += 1
        return self.last_group

    def reversal(self, number: int, scope: Scope = None) -> tuple[Change, ...]:
        """Return the changes that take back what is left of a step, at or below some paths.

        A step that took back another may have found a path as it should be. Its reversal then is that of the
        other step.
        """
        step = self.step(number)
        taken = _in_scope(step, self._left[number - self.dropped - 1], scope)
        back = reverse([each for each in step.changes if each.path in taken])
        if not any(each.changes_nothing for each in back):
            return back
        first = step
        while first.reverts > self.dropped:
            first = self.step(first.reverts)
        wanted = first.changes if self.takes_back(number) else reverse(first.changes)
        known = {} if first.reverts else {each.path: each for each in wanted}
        return tuple(known.get(each.path, each) if each.changes_nothing else each for each in back)

    def rollback(self, position: int, scope: Scope) -> dict[int, tuple[Change, ...]]:
        """Return the changes that take the tree back to a position, by the number of each later step.

        The latest step comes first. A step and the one that took it back cancel out for each path that no
        other step has changed in between, unless one of them has made or removed what the other has not.
        """
        stacks: dict[str, list[tuple[int, Change]]] = {}
        for number, step in enumerate(self.after(position), max(position, self.dropped) + 1):
            for change in step.changes:
                stack = stacks.setdefault(change.path, [])
                last, reverted = stack[-1] if stack else (0, change)
                is_back = (reverted.before is None) is (change.after is None)
                if last and last == step.reverts and is_back:
                    stack.pop()
                else:
                    stack.append((number, change))
        paths: dict[int, set[str]] = {}
        for path, stack in stacks.items():
            for number, _ in stack:
                paths.setdefault(number, set()).add(path)
        found: dict[int, tuple[Change, ...]] = {}
        for number in sorted(paths, reverse=True):
            step = self.step(number)
            if taken := _in_scope(step, paths[number], scope):
                found[number] = reverse([each for each in step.changes if each.path in taken])
        return found

    def to_undo(self, scope: Scope = None, within: tuple[int, ...] = ()) -> list[list[int]]:
        """Return the numbers of the steps that `undo` can take back, the latest first.

        `within` is the `groups` of the transaction that asks, which takes back only its own.
        """
        return self._left_over(scope, within, undone=False)

    def to_redo(self, within: tuple[int, ...] = ()) -> list[list[int]]:
        """Return the numbers of the steps that took back others, and can be redone, as `to_undo`."""
        return self._left_over(None, within, undone=True)

    def in_groups(self, numbers: Iterable[int], within: tuple[int, ...]) -> list[list[int]]:
        """Return some numbers with those of each transaction together, as seen in a transaction."""
        found: dict[int | tuple[int, ...], list[int]] = {}
        for number in numbers:
            groups = self.step(number).groups
            depth = len(within) if groups[: len(within)] == within else 0
            found.setdefault(groups[depth : depth + 1] or number, []).append(number)
        return [*found.values()]

    def _left_over(self, scope: Scope, within: tuple[int, ...], *, undone: bool) -> list[list[int]]:
        kept = zip(self._steps, self._left, self._takes_back, strict=True)
        found = [
            number
            for number, (step, left, takes_back) in enumerate(kept, self.dropped + 1)
            if takes_back is undone and left and step.groups[: len(within)] == within
        ]
        if scope is not None:
            found = [number for number in found if self.stands(number, scope)]
        if undone:  # an undo within another transaction is a part of what that did
            found = [number for number in found if not self._is_inner(number, len(within))]
        return self.in_groups(reversed(found), within)

    def _is_inner(self, number: int, depth: int) -> bool:
        """Return True if a step takes back one of the same transaction, which is seen from outside."""
        step = self.step(number)
        is_in_one = len(step.groups) > depth and step.reverts > self.dropped
        return is_in_one and self.step(step.reverts).groups[: depth + 1] == step.groups[: depth + 1]

    def takes_back(self, number: int) -> bool:
        """Return True for an undo; False for any other step, also for a redo, which takes back an undo."""
        return number > self.dropped and self._takes_back[number - self.dropped - 1]

    def stands(self, number: int, scope: Scope = None) -> bool:
        """Return True if something of a step is not taken back, at or below some paths."""
        return any(is_in_scope(each, scope) for each in self._left[number - self.dropped - 1])

    def set_checkpoint(self, name: str) -> bool:
        """Name the position; return True if the name had another position before."""
        moved = self.checkpoints.pop(name, self.position) != self.position
        self.checkpoints[name] = self.position
        while len(self.checkpoints) > MAX_CHECKPOINTS:
            del self.checkpoints[next(iter(self.checkpoints))]
        return moved

    @property
    def is_too_long(self) -> bool:
        """True if there are more steps or changes than are kept, and some to spare."""
        spare = 1 + 1 / _SPARE
        return len(self._steps) > MAX_STEPS * spare or self._change_count > MAX_CHANGES * spare

    def drop(self, count: int) -> None:
        """Drop the oldest steps, and the checkpoints before them."""
        self._change_count -= sum(len(step.changes) for step in self._steps[:count])
        del self._steps[:count], self._left[:count], self._takes_back[:count]
        self.dropped += count
        self.checkpoints = {name: at for name, at in self.checkpoints.items() if at >= self.dropped}
