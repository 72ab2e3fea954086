"""The steps of a journal, which are only appended to, and the part of each that is made or taken back. Pure.

Undo, redo and rollback append a step whose `toggles` name what it takes back or makes again of earlier steps.
Steps are numbered from 1, and a position is the number of the last step before it. The number of steps is
bounded: the oldest are dropped.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import NamedTuple, cast

from agentfs.base import call_context
from agentfs.errors import AgentFSError
from agentfs.fs import Change, DirectoryNode, MovedNode, MovedTree, Node, entry_type, expanded
from agentfs.fs.apply import directories_above
from agentfs.fs.node import moves, reverse
from agentfs.fs.path import is_in
from agentfs.results import RecordedResult

MAX_STEPS = 10_000
MAX_CHANGES = 50_000  # of all kept steps together

Author = tuple[str, str]  # kind and name, as `call_context.author`
Groups = tuple[int, ...]  # the enclosing transactions, the outermost first
Scope = Sequence[str] | None  # the paths at or below which something is about, or None for all


class Toggle(NamedTuple):
    """Paths of a step that a later step takes back, or makes again."""

    number: int
    takes_back: bool
    paths: tuple[str, ...]


class LinesBy(NamedTuple):
    """Lines of a file, from 0 and without the end, that are not by the author of their step."""

    path: str
    start: int
    end: int
    author: tuple[str, str]


class Step(NamedTuple):
    """The changes of one call or one recording, at most one for each path."""

    changes: tuple[Change, ...]
    time: float = 0.0  # in seconds since 1970
    label: str = ""  # label of the recording; "" for a call
    lost: tuple[str, ...] = ()  # changed paths whose content a recording did not keep
    author: Author = ("tool", "")  # of a recording, its label counts
    by_others: tuple[LinesBy, ...] = ()  # for example by a formatter
    groups: Groups = ()  # the transactions that it is part of
    toggles: tuple[Toggle, ...] | None = None  # of an undo, redo or rollback; None for any other step


class Part(NamedTuple):
    """Paths of a step that were made, or taken back, together."""

    order: tuple[int, int]  # the step that did so, and the place of its toggle: the greatest was the last
    is_made: bool
    number: int
    step: Step
    paths: Sequence[str]

    def unit(self, within: Groups) -> object:
        """Return the unit of undo that it belongs to: its step, or a transaction in that of `within`."""
        groups = self.step.groups
        return self.number if groups == within else groups[: len(within) + 1]


class Standing:
    """The parts of all steps at a position."""

    def __init__(self) -> None:
        self._parts: dict[int, list[Part]] = {}  # by the number of their step

    def add(self, number: int, step: Step) -> None:
        """Go to the position after a step."""
        if step.toggles is None:
            self._parts[number] = [
                Part((number, 0), True, number, step, [each.path for each in step.changes])
            ]
            return
        for place, (of, takes_back, paths) in enumerate(step.toggles):
            if known := self._parts.get(of):  # else the step was dropped
                toggled = Part((number, place), not takes_back, of, known[0].step, paths)
                self._parts[of] = [*_without(known, {*paths}), toggled]

    def drop(self, last: int) -> None:
        """Forget the steps up to a number."""
        self._parts = {number: parts for number, parts in self._parts.items() if number > last}

    @property
    def parts(self) -> list[Part]:
        """The parts, the latest first."""
        return sorted(chain(*self._parts.values()), reverse=True)

    def paths(self, *, made: bool) -> set[tuple[int, str]]:
        """Return the numbers of steps, each with a path that is made, or taken back."""
        return {(part.number, path) for part in self.parts if part.is_made is made for path in part.paths}


def _without(parts: Iterable[Part], paths: Collection[str]) -> list[Part]:
    """Return parts without some paths; one that has no others is left out."""
    left = ((part, [path for path in part.paths if path not in paths]) for part in parts)
    return [part._replace(paths=rest) for part, rest in left if rest]


class UndoPlan(NamedTuple):
    """Changes that undo, redo or rollback makes one after another, and the parts that they toggle.

    `left` has the nodes that later steps left: one that is as wanted was not made so by others.
    """

    changes: Sequence[Sequence[Change]]
    parts: Sequence[Part]
    left: Mapping[str, Node | None] = {}

    def without(self, paths: Iterable[str]) -> "UndoPlan":
        """Return this plan without some paths, all below them, and the other paths of files moved there."""
        every = {each.path for step in self.changes for each in step}
        moved = [{*pair} for step in self.changes for pair in file_moves(step).items()]
        left_out, more = {*paths}, every
        while more:
            more = {path for path in every - left_out if not left_out.isdisjoint(directories_above(path))}
            more |= set[str]().union(*[pair for pair in moved if not pair.isdisjoint(left_out)]) - left_out
            left_out |= more
        changes = [[each for each in step if each.path not in left_out] for step in self.changes]
        return UndoPlan(changes, _without(self.parts, left_out), self.left)


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
    for step in steps:
        add_changes(total, step.changes)
    return [*total.values()]


def add_changes(total: dict[str, Change], changes: Iterable[Change]) -> None:
    """Add changes to net changes by path; `moved_from` is a path of before all of them."""
    for change in changes:
        known = total.get(change.path, change)
        origin = total.get(change.path if change.before else change.moved_from, change).moved_from
        total[change.path] = Change(change.path, known.before, change.after, origin or change.moved_from)


def with_contents(steps: Sequence[Step], read: Callable[[str], Node | None]) -> list[Step]:
    """Return steps with the contents that moves took along unread.

    A later step that changes a moved file knows its content; otherwise `read` reads it from its new path.
    """
    known: dict[str, Node | None] = {}  # the nodes between a step and the next
    found: list[Step] = []
    for step in reversed(steps):
        filled = filled_changes(step.changes, lambda change: known.get(change.path) or read(change.path))
        known.update((each.path, each.before) for each in filled)
        found.append(step._replace(changes=tuple(filled)))
    return found[::-1]


def filled_changes(changes: Sequence[Change], read: Callable[[Change], Node | None]) -> Sequence[Change]:
    """Return changes with contents that moves take along unread; `read` gets the change of each new path."""
    nodes: dict[str, Node | None] = {}
    for change in changes:
        if isinstance(change.after, MovedNode):
            nodes[change.moved_from] = change.after
            with suppress(AgentFSError):  # it is too large, special or protected, or it is too late
                call_context.check()
                nodes[change.moved_from] = read(change) or change.after
    if not nodes:
        return changes
    return [
        replace(each, after=nodes[each.moved_from])
        if isinstance(each.after, MovedNode)
        else replace(each, before=nodes.get(each.path, each.before))
        for each in changes
    ]


def file_moves(changes: Collection[Change]) -> dict[str, str]:
    """Return the old path of each moved file and link, by its new path."""
    if not any(each.moved_from for each in changes):
        return {}
    return moves([each for each in changes if not each.of_directory])


def is_same_node(one: Node | None, other: Node | None) -> bool:
    """Return True if nodes are equal.

    Of directories, compare only modes, and take None as any mode. A moved node equals any of its type.
    """
    if isinstance(one, MovedNode) or isinstance(other, MovedNode):
        return None not in (one, other) and entry_type(one) == entry_type(other)
    if isinstance(one, DirectoryNode) and isinstance(other, DirectoryNode):
        return one.mode == other.mode or None in (one.mode, other.mode)
    return one == other


def is_in_scope(path: str, scope: Scope) -> bool:
    """Return True if a path is at or below one of a scope."""
    return scope is None or any(is_in(path, each) for each in scope)


def _changes_in(step: Step, paths: Collection[str], scope: Scope) -> tuple[Change, ...]:
    """Return the changes of those paths that are in a scope.

    The other path of a moved file is in the scope too, and a directory if all its changed files are.
    """
    taken = {path for path in paths if is_in_scope(path, scope)}
    if scope is not None:
        for pair in file_moves(step.changes).items():
            if not taken.isdisjoint(pair):
                taken.update(pair)
        files = [each.path for each in step.changes if not each.of_directory]
        whole = {above for path in files for above in directories_above(path)}
        whole -= {above for path in files if path not in taken for above in directories_above(path)}
        taken |= whole
        taken.intersection_update(paths)
    return tuple(each for each in step.changes if each.path in taken)


class Log:
    """Steps and checkpoints. Only the oldest steps are ever removed."""

    def __init__(self) -> None:
        self._kept: list[Step] = []
        self._expanded = 0  # how many of them have one change for each entry of a moved tree
        self._change_count = 0
        self._standing, self._stood = Standing(), 0  # and its position
        self.dropped = 0  # the number of the oldest steps, which are no longer kept
        self.checkpoints: dict[str, int] = {}  # position by name; the last set comes last

    @property
    def position(self) -> int:
        """The number of the last step."""
        return self.dropped + len(self._kept)

    @property
    def _steps(self) -> list[Step]:
        """The kept steps, expanded only now: a move need not wait for it."""
        for at in range(self._expanded, len(self._kept)):  # other threads may do the same
            step = self._kept[at]
            if any(isinstance(each.before, MovedTree) for each in step.changes):
                self._kept[at] = step._replace(changes=expanded(step.changes))
                self._change_count += len(self._kept[at].changes) - len(step.changes)
            self._expanded = at + 1
        return self._kept

    @property
    def standing(self) -> Standing:
        """The parts of all steps at the last position; the journal must be locked."""
        position = self.position
        for number in range(max(self._stood, self.dropped) + 1, position + 1):
            self._standing.add(number, self.step(number))
        self._stood = position
        return self._standing

    def step(self, number: int) -> Step:
        """Return the step with a number."""
        return self._steps[number - self.dropped - 1]

    def after(self, position: int) -> list[Step]:
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
        self._kept.append(step)
        self._change_count += len(step.changes)

    def units(self, within: Groups = ()) -> tuple[list[list[Part]], list[list[Part]]]:
        """Return the parts that undo can take back, and those that redo can make again, the latest first.

        They are grouped by unit; to redo, that is what one step took back of a unit. `within` has the
        `groups` of a transaction whose steps are the only ones.
        """
        made, undone = dict[object, list[Part]](), dict[object, list[Part]]()
        depth = len(within)
        for part in self.standing.parts:
            groups, by = part.step.groups, part.order[0]
            if groups != within and groups[:depth] != within:
                continue
            unit = part.unit(within)
            if part.is_made:
                made.setdefault(unit, []).append(part)
            # An undo within a transaction is a part of the transaction, and not offered alone.
            elif groups == within or self.step(by).groups[: depth + 1] != groups[: depth + 1]:
                undone.setdefault((unit, by), []).append(part)
        return [*made.values()], [*undone.values()]

    def plan(self, parts: Iterable[Part], scope: Scope = None) -> UndoPlan:
        """Return how to take back what is made of some parts, and to make again what is not."""
        steps: list[Sequence[Change]] = []
        planned: list[Part] = []
        for part in sorted(parts, reverse=True):
            order, is_made, number, step, paths = part
            if changes := _changes_in(step, paths, scope):
                planned.append(Part(order, is_made, number, step, [change.path for change in changes]))
                steps.append(reverse(changes) if is_made else self._with_modes(changes, order[0]))
        later = self.after(planned[0].order[0]) if planned else ()
        left = {each.path: each.after for step in later for each in step.changes if not each.of_directory}
        return UndoPlan(steps, planned, left)

    def _with_modes(self, changes: Sequence[Change], back: int) -> Sequence[Change]:
        """Return changes whose new directories have the modes that they had when a step took them back."""
        seen = {each.path: each.before for each in self.step(back).changes}
        return [
            replace(each, after=seen[each.path])
            if isinstance(each.after, DirectoryNode)
            and each.after.mode is None
            and isinstance(seen.get(each.path), DirectoryNode)
            else each
            for each in changes
        ]

    def rollback(self, position: int, scope: Scope) -> UndoPlan:
        """Return how to go back to a position: reverse later steps, the latest first.

        A file that has its node of then again, and was not moved, is left to whoever has changed it since.
        """
        then = Standing()
        for number, step in enumerate(self._steps[: position - self.dropped], self.dropped + 1):
            then.add(number, step)
        made = then.paths(made=True)
        other = [
            part._replace(
                paths=[path for path in part.paths if ((part.number, path) in made) != part.is_made]
            )
            for part in self.standing.parts
        ]
        later = self.after(position)
        same = {each.path for each in net_changes(later) if each.changes_nothing}
        same -= {path for step in later for each in step.changes for path in _entangled(each)}
        back = [_changes_in(step, {each.path for each in step.changes} - same, scope) for step in later]
        return UndoPlan([*map(reverse, reversed(back))], self.plan(other, scope).parts)

    @property
    def is_too_long(self) -> bool:
        """True if there are more steps or changes than are kept."""
        return len(self._kept) > MAX_STEPS or self._change_count > MAX_CHANGES

    def drop_oldest(self) -> None:
        """Drop the oldest eighth of the steps, and the checkpoints before them; a transaction stays whole."""
        steps, count = self._steps, max(len(self._kept) // 8, 1)
        while count < len(steps) - 1 and steps[count - 1].groups[:1] == steps[count].groups[:1] != ():
            count += 1
        self._kept = steps[count:]
        self._expanded = len(self._kept)
        self._change_count -= sum(len(step.changes) for step in steps[:count])
        self.dropped += count
        self._standing.drop(self.dropped)
        self.checkpoints = {name: at for name, at in self.checkpoints.items() if at >= self.dropped}


def _entangled(change: Change) -> tuple[str, ...]:
    """Return the paths of a move or of a directory, on which other paths depend."""
    nodes = change.before, change.after
    depends = change.moved_from or any(isinstance(node, MovedNode | DirectoryNode) for node in nodes)
    return (change.path, change.moved_from) if depends else ()
