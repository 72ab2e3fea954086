"""The steps of a journal in order, the net changes of several of them, and the checkpoints. Pure.

Memory is bounded by number: the oldest steps are merged into one base, which keeps only their net changes and
cannot be undone.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from agentfs.fs import Change, DirectoryNode, FileNode, Node

MAX_STEPS = 10_000
MAX_CHANGES = 20_000  # of all steps that are kept, and of the base
MAX_CHECKPOINTS = 10_000
_SPARE = 8  # an eighth more than the maximum is kept, so that many steps are merged at a time


class Move(NamedTuple):
    """Steps that were undone or redone."""

    changes: tuple[Change, ...]
    steps: int  # less than 0 when they were undone
    remaining: tuple[str, ...] = ()  # directories with something else in them
    notes: tuple[str, ...] = ()  # what was not restored, such as an owner


class Step(NamedTuple):
    """What one call changed: at most one change for each path, and when, in seconds since 1970."""

    changes: tuple[Change, ...]
    time: float


class NetChanges(NamedTuple):
    """The net changes of several steps, one for each path that differs."""

    changes: tuple[Change, ...]
    external: tuple[str, ...]  # the paths that something else changed between two of the steps
    omitted: int = 0  # how many paths are left out, because their first state is no longer kept


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
        """Drop paths that do not differ, and the oldest beyond a maximum."""
        self._changes = {path: change for path, change in self._changes.items() if not change.changes_nothing}
        for kept in (self._changes, self._external):
            while len(kept) > maximum:
                del kept[next(iter(kept))]
                self._omitted += 1

    def total(self) -> NetChanges:
        changed = (change for change in self._changes.values() if not change.changes_nothing)
        return NetChanges(tuple(changed), tuple(self._external), self._omitted)


def moved_file(step: Step) -> tuple[str, str] | None:
    """Return the old and new path of the file that a step moved; None if it did anything else."""
    files = [
        c
        for c in step.changes
        if not isinstance(c.before, DirectoryNode) and not isinstance(c.after, DirectoryNode)
    ]
    deleted = [c for c in files if c.after is None]
    created = [c for c in files if c.before is None]
    if len(files) == 2 and len(deleted) == len(created) == 1 and deleted[0].before == created[0].after:
        return deleted[0].path, created[0].path
    return None


class Timeline:
    """Steps, and the current position among them, which is the number of steps that are done."""

    def __init__(self, *, bounded: bool = True) -> None:
        self._bounded = bounded
        self._base = _Accumulator()
        self._steps: list[Step] = []
        self._change_count = 0
        self.merged = 0  # how many of the first steps were merged into the base
        self.position = 0
        self.checkpoints: dict[str, int] = {}  # the position of each by its name, the one set last at the end
        self.generation = 0  # how often steps or position have changed: equal positions may differ in steps

    @property
    def base(self) -> NetChanges:
        """The net changes of the merged steps."""
        return self._base.total()

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

    def between(self, start: int, end: int) -> Sequence[Step]:
        """Return the steps between two positions, neither before `merged`."""
        return self._steps[start - self.merged : end - self.merged]

    def left(self, path: str, node: Node | None) -> bool:
        """Return whether the last done step that changed a path left this there."""
        for step in reversed(self.done_steps):
            for change in step.changes:
                if change.path == path:
                    return change.after == node
        return False

    def since(self, start: int) -> NetChanges:
        """Return the net changes since a position: 0, or one that is not before `merged`."""
        return self._net(start, self.position)

    def net_to(self, end: int) -> NetChanges:
        """Return the net changes that lead from the current position to another."""
        net = self._net(min(self.position, end), max(self.position, end))
        if end >= self.position:
            return net
        return net._replace(changes=tuple(change.reversed() for change in net.changes))

    def moved_to_hidden(self, start: int, is_hidden: Callable[[str], bool]) -> set[str]:
        """Return the paths whose files were moved, since a position, to where they are hidden now.

        One step may edit a file, move it and write another in its place. So if a step creates a hidden file
        whose content is new, each file that it changed may be that one.
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

    def _net(self, start: int, end: int) -> NetChanges:
        total = _Accumulator(self.base if start < self.merged else None)
        for step in self.between(max(start, self.merged), end):
            total.add(step.changes)
        return total.total()

    def add(self, step: Step) -> None:
        """Add a step at the current position, in place of the steps that were undone."""
        for dropped in self.between(self.position, self.end):
            self._change_count -= len(dropped.changes)
        del self._steps[self.position - self.merged :]
        self.checkpoints = {name: at for name, at in self.checkpoints.items() if at <= self.position}
        self._steps.append(step)
        self._change_count += len(step.changes)
        self.move_to(self.position + 1)

    def move_to(self, position: int) -> None:
        """Make another position the current one."""
        self.position = position
        self.generation += 1

    def set_checkpoint(self, name: str) -> bool:
        """Name the current position; return whether the name was that of another one."""
        moved = self.checkpoints.pop(name, self.position) != self.position
        self.checkpoints[name] = self.position
        while len(self.checkpoints) > MAX_CHECKPOINTS:
            del self.checkpoints[next(iter(self.checkpoints))]
        return moved

    def merge_due(self) -> int:
        """Return the position before which steps are to be merged; `merged` where none are."""
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

    def restore(
        self,
        base: NetChanges,
        merged: int,
        steps: Sequence[Step],
        position: int,
        checkpoints: Mapping[str, int],
    ) -> None:
        """Take over what was kept of an earlier timeline."""
        self._base, self.merged = _Accumulator(base), merged
        self._steps = list(steps)
        self._change_count = sum(len(step.changes) for step in steps)
        self.checkpoints = dict(list(checkpoints.items())[-MAX_CHECKPOINTS:])
        self.position = position
