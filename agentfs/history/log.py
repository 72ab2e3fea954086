"""The steps of a journal, which are only appended to, and the part of each that is made or taken back. Pure.

Undo, redo and rollback append a step whose `toggles` name what it takes back or makes again of earlier steps.
Steps are numbered from 1, and a position is the number of the last step before it. The number of steps is
bounded: the oldest are dropped.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, NamedTuple, cast

from agentfs.base import call_context
from agentfs.errors import AgentFSError, FileIOError
from agentfs.fs import (
    Change,
    DirectoryNode,
    FileNode,
    LinesBy,
    LinkNode,
    MovedNode,
    MovedTree,
    Node,
    entry_type,
    expanded,
)
from agentfs.fs.node import Metadata, moves, reverse
from agentfs.fs.path import is_in
from agentfs.results import RecordedResult


def node_to_json(node: Node | None) -> list[Any] | None:
    """Return the JSON form of a node, without the content of a file."""
    match node:
        case None:
            return None
        case FileNode():
            return ["file", node.mode, node.digest, node.size, *_metadata_to_json(node.metadata)]
        case LinkNode():
            return ["link", node.target]
        case MovedNode():
            return ["moved", node.kind]
        case DirectoryNode():
            return ["directory", node.mode, *_metadata_to_json(node.metadata)]
        case MovedTree():
            return ["tree", *[[below, node_to_json(each), names] for below, each, names in node.listing]]


def node_from_json(plain: list[Any] | None) -> Node | None:
    """Return the node from its JSON form. A file node comes without content: `load` raises an error."""
    match plain or []:
        case ["file", mode, digest, size, *metadata]:
            return FileNode(mode, digest, size, _content_missing, _metadata_from_json(mode, metadata))
        case ["link", target]:
            return LinkNode(target)
        case ["moved", kind]:
            return MovedNode(kind)
        case ["directory", mode, *metadata]:
            return DirectoryNode(mode, _metadata_from_json(mode, metadata))
        case ["tree", *listing]:
            found: Any = tuple((below, node_from_json(each), names) for below, each, names in listing)
            return MovedTree(found)
        case _:
            return None


def _metadata_to_json(metadata: Metadata | None) -> list[Any]:
    return [] if metadata is None else [metadata.owner]


def _metadata_from_json(mode: int, plain: list[Any]) -> Metadata | None:
    try:
        (owner,) = plain
        return Metadata(mode, owner and (int(owner[0]), int(owner[1])))
    except (ValueError, TypeError):  # absent, or written by another version
        return None


def _content_missing() -> Iterator[bytes]:
    raise FileIOError("The content of this file was not kept.")


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


class Portion(NamedTuple):
    """Paths of a step that are made or taken back."""

    order: tuple[int, int]  # the step that did so, and the index of its toggle: the greatest was the last
    is_made: bool
    number: int
    groups: Groups  # of the step
    paths: Sequence[str]


class UndoPlan(NamedTuple):
    """Changes that undo, redo or rollback makes one after another, and the paths that they toggle.

    `left` has the nodes that later steps left: one that is as wanted was not made so by others.
    """

    changes: tuple[tuple[Change, ...], ...]
    toggles: tuple[Toggle, ...]
    left: Mapping[str, Node | None] = {}

    def without(self, paths: Collection[str]) -> "UndoPlan":
        """Return this plan for all other paths."""
        changes = (tuple(each for each in step if each.path not in paths) for step in self.changes)
        toggles = (
            each._replace(paths=tuple(path for path in each.paths if path not in paths))
            for each in self.toggles
        )
        return UndoPlan(tuple(changes), tuple(toggles), self.left)


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


def file_moves(changes: Iterable[Change]) -> dict[str, str]:
    """Return the old path of each moved file and link, by its new path."""
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
        for each in step.changes:
            if each.of_directory and (below := [path for path in files if is_in(path, each.path)]):
                taken |= {each.path} if taken.issuperset(below) else set()
        taken.intersection_update(paths)
    return tuple(each for each in step.changes if each.path in taken)


class Standing:
    """The portions of each step at a position, and the units that `undo` and `redo` take.

    A unit has the portions of a step or of a transaction; to redo, those that one step took back. With
    `within`, the `groups` of a transaction, there are only steps of this transaction.
    """

    def __init__(self, within: Groups = ()) -> None:
        self._within, self._depth = within, len(within)
        self.portions: dict[int, list[Portion]] = {}  # by step
        self.made: dict[object, list[Portion]] = {}  # by unit; the latest comes last, also in `back`
        self.back: dict[object, list[Portion]] = {}

    def add(self, number: int, step: Step) -> None:
        """Go to the position after a step."""
        if step.groups[: self._depth] != self._within:
            return
        if step.toggles is None and step.changes:
            paths = [each.path for each in step.changes]
            self._put(Portion((number, 0), True, number, step.groups, paths), step)
        for index, (of, takes_back, toggled) in enumerate(step.toggles or ()):
            known, gone = self.portions.pop(of, []), {*toggled}  # none, if the step was dropped
            for portion in known:
                rest = [path for path in portion.paths if path not in gone]
                self._replace(portion, [portion._replace(paths=rest)] if rest else [])
            for portion in known[:1]:
                self._put(Portion((number, index), not takes_back, of, portion.groups, toggled), step)

    def paths(self, *, made: bool) -> set[tuple[int, str]]:
        """Return the numbers of steps and their paths that are made, or taken back."""
        every = (each for portions in self.portions.values() for each in portions)
        return {(each.number, path) for each in every if each.is_made is made for path in each.paths}

    @property
    def latest(self) -> set[int]:
        """The numbers of the steps that have left a portion as it is."""
        return {each.order[0] for portions in self.portions.values() for each in portions}

    def _place(self, portion: Portion) -> tuple[dict[object, list[Portion]], object]:
        unit = portion.groups[self._depth : self._depth + 1] or portion.number
        return (self.made, unit) if portion.is_made else (self.back, (unit, portion.order[0]))

    def _put(self, portion: Portion, by: Step) -> None:
        self.portions.setdefault(portion.number, []).append(portion)
        groups = portion.groups[: self._depth + 1]
        # An undo within a transaction is a part of the transaction, and not offered alone.
        if portion.is_made or len(groups) == self._depth or by.groups[: self._depth + 1] != groups:
            units, unit = self._place(portion)
            units[unit] = [*units.pop(unit, ()), portion]

    def _replace(self, portion: Portion, rest: list[Portion]) -> None:
        if rest:
            self.portions.setdefault(portion.number, []).extend(rest)
        units, unit = self._place(portion)
        if portion in units.get(unit, ()):
            units[unit] = [*(each for each in units[unit] if each is not portion), *rest]
            if not units[unit]:
                del units[unit]


class Log:
    """Steps and checkpoints. Only the oldest steps are ever removed."""

    def __init__(self) -> None:
        self._kept: list[Step] = []
        self._collapsed = set[int]()  # the numbers of kept steps with a moved tree
        self._change_count = 0
        self._standing = Standing()  # at the position `_replayed`
        self._replayed = 0
        self.dropped = 0  # the number of the oldest steps, which are no longer kept
        self.checkpoints: dict[str, int] = {}  # position by name; the last set comes last

    @property
    def position(self) -> int:
        """The number of the last step."""
        return self.dropped + len(self._kept)

    @property
    def _steps(self) -> list[Step]:
        """The kept steps, with one change for each entry of a moved tree."""
        for number in [*self._collapsed]:  # other threads may do the same
            at = number - self.dropped - 1
            step = self._kept[at]
            self._kept[at] = step._replace(changes=expanded(step.changes))
            self._change_count += len(self._kept[at].changes) - len(step.changes)
            self._collapsed.discard(number)
        return self._kept

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
                    unread = node and MovedNode(entry_type(node))  # as a move leaves it
                    return step if change.after in (node, unread) else None
        return None

    def add(self, step: Step) -> None:
        """Append a step."""
        self._kept.append(step)
        if len(step.changes) > 1 and any(isinstance(each.after, MovedTree) for each in step.changes):
            self._collapsed.add(self.position)
        self._change_count += len(step.changes)

    def standing(self, within: Groups = (), position: int | None = None) -> Standing:
        """Return what is made or taken back at a position; for the last one, the journal must be locked."""
        last = self.position if position is None else position
        standing, done = Standing(within), 0
        if not within and position is None:
            standing, done, self._replayed = self._standing, self._replayed, last
        for number in range(max(done, self.dropped) + 1, last + 1):
            standing.add(number, self.step(number))
        return standing

    def unit_of(self, number: int, within: Groups) -> object:
        """Return what a step is a unit of: itself or a transaction."""
        return self.step(number).groups[len(within) :][:1] or number

    def plan(self, portions: Iterable[Portion], scope: Scope = None) -> UndoPlan:
        """Return how to take back what is made of some portions, and to make again what is not."""
        steps: list[tuple[Change, ...]] = []
        toggles: list[Toggle] = []
        last = 0
        for (by, _), is_made, number, _, paths in sorted(portions, reverse=True):
            if changes := _changes_in(self.step(number), paths, scope):
                toggles.append(Toggle(number, is_made, tuple(change.path for change in changes)))
                steps.append(reverse(changes) if is_made else _with_modes(changes, self.step(by)))
                last = max(last, by)
        later = (change for step in self.after(last) for change in step.changes)
        left = {each.path: each.after for each in later if not each.of_directory} if steps else {}
        return UndoPlan(tuple(steps), tuple(toggles), left)

    def rollback(self, position: int, scope: Scope) -> UndoPlan:
        """Return how to go back to a position: reverse later steps, the latest first.

        A file that has its node of then again, and was not moved, is left to whoever has changed it since.
        """
        then = self.standing(position=position).paths(made=True)
        toggled: list[Portion] = []
        for each in chain(*self.standing().portions.values()):
            paths = [path for path in each.paths if ((each.number, path) in then) != each.is_made]
            toggled.append(each._replace(paths=paths))
        later = self.after(position)
        same = {each.path for each in net_changes(later) if each.changes_nothing}
        same -= {path for step in later for each in step.changes for path in _entangled(each)}
        back: list[tuple[Change, ...]] = []
        for step in reversed(later):
            paths = [each.path for each in step.changes if each.path not in same]
            back.append(reverse(_changes_in(step, paths, scope)))
        return UndoPlan(tuple(back), self.plan(toggled, scope).toggles)

    @property
    def is_too_long(self) -> bool:
        """True if there are more steps or changes than are kept."""
        return len(self._kept) > MAX_STEPS or self._change_count > MAX_CHANGES

    def drop_oldest(self) -> None:
        """Drop the oldest eighth of the steps, and the checkpoints before them; a transaction stays whole."""
        steps, count = self._steps, max(len(self._steps) // 8, 1)
        while count < len(steps) - 1 and steps[count - 1].groups[:1] == steps[count].groups[:1] != ():
            count += 1
        self._change_count -= sum(len(step.changes) for step in steps[:count])
        self._kept = steps[count:]
        self.dropped += count
        self._standing, self._replayed = Standing(), 0
        self.checkpoints = {name: at for name, at in self.checkpoints.items() if at >= self.dropped}


def _entangled(change: Change) -> tuple[str, ...]:
    """Return the paths of a move or of a directory, on which other paths depend."""
    nodes = change.before, change.after
    depends = change.moved_from or any(isinstance(node, MovedNode | DirectoryNode) for node in nodes)
    return (change.path, change.moved_from) if depends else ()


def _with_modes(changes: Sequence[Change], back: Step) -> tuple[Change, ...]:
    """Return changes with the modes that the system gave to directories, which another step has removed."""
    seen = {each.path: each.before for each in back.changes if isinstance(each.before, DirectoryNode)}
    return tuple(
        replace(each, after=seen.get(each.path, each.after))
        if isinstance(each.after, DirectoryNode) and each.after.mode is None
        else each
        for each in changes
    )


def step_to_json(step: Step) -> dict[str, Any]:
    """Return a step as JSON values."""
    changes = [
        (each.path, node_to_json(each.before), node_to_json(each.after), each.moved_from)
        for each in step.changes
    ]
    return {**step._asdict(), "changes": changes}


def step_from_json(plain: Any, to_node: Callable[[Any], Node | None]) -> Step:
    """Return the step from its JSON values; raises an error of Python if they have another form."""

    def author(plain: Any) -> Author:
        kind, name = plain
        return str(kind), str(name)

    def changes() -> Iterator[Change]:
        for path, before, after, moved_from in plain["changes"]:
            for each in expanded([Change(path, to_node(before), to_node(after), str(moved_from))]):
                if "\0" in each.path or {"", ".", ".."} & set(each.path.split("/")):
                    raise ValueError(each.path)
                yield each

    toggles = plain["toggles"]
    return Step(
        tuple(changes()),
        float(plain["time"]),
        str(plain["label"]),
        tuple(map(str, plain["lost"])),
        author(plain["author"]),
        tuple(LinesBy(str(path), int(a), int(b), author(by)) for path, a, b, by in plain["by_others"]),
        tuple(map(int, plain["groups"])),
        toggles and tuple(Toggle(int(of), bool(back), tuple(map(str, paths))) for of, back, paths in toggles),
    )
