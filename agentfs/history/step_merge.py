"""Computation of the changes that undo or redo steps, even if other programs have changed the files since.

Each step is merged with the present files by a three-way merge, as in `git revert`. The tree is only read.
"""

import os
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple, Protocol

from agentfs.base import call_context
from agentfs.errors import AgentFSError
from agentfs.fs import (
    Change,
    DirectoryNode,
    FileNode,
    LinkNode,
    MovedNode,
    Node,
    Root,
    directories_above,
    display_name,
    entry_type,
)
from agentfs.history.log import Step, file_moves
from agentfs.text import line_changes
from agentfs.text.git_patch import Blob
from agentfs.text.merge import merge_texts


class NodeReader(Protocol):
    """Reads the node at a path; with `unread`, what a move takes along becomes a `MovedNode`."""

    def __call__(self, path: str, *, unread: bool = False) -> Node | None:
        """Return the node, or None."""
        ...


_MOST_LISTED = 20_000  # as many as `move` takes
Lines = tuple[tuple[int, int], ...]  # first and last line of each range, from 1


class Clash(NamedTuple):
    """A path that cannot be restored, because another change has touched the same part of it."""

    path: str
    expected: Node | None  # the node that the step left there
    found: Node | None  # the present node
    lines: Lines = ()  # lines of `found` that both changes touched, if it is a text


class Outcome(NamedTuple):
    """The changes that undo or redo steps, or the clashes that prevent it."""

    changes: tuple[Change, ...]  # from the present state
    steps: tuple[tuple[Change, ...], ...]  # the changes of each step after the merge, in the given order
    merged: tuple[str, ...]  # paths that also keep other changes
    clashes: tuple[Clash, ...]


class Merged(NamedTuple):
    """The result of a three-way merge; `clash` is set if the merge failed."""

    node: Node | None
    clash: Clash | None = None


def take_steps(
    steps: Sequence[Sequence[Change]],
    read: NodeReader,
    list_below: Callable[[str], Iterable[tuple[str, Node]]],
    keep: Callable[[Node], Node],
) -> Outcome:
    """Compute how to make the changes of some steps, in this order, in the tree that `read` reads.

    `list_below` returns the paths and unread nodes below a directory. `keep` returns a node whose content is
    not held in memory.
    """
    tree = _Tree(read, list_below, keep, is_alone=len(steps) == 1)
    made = [tuple(tree.take(changes)) for changes in steps]
    clashes = [tree.clashes[path] for path in sorted(tree.clashes)]
    return Outcome(tree.changes, tuple(made), tuple(tree.merged), tuple(clashes))


def read_node(root: Root, path: str, max_bytes: int, *, unread: bool = False) -> Node | None:
    """Return the node at a real path; None also if a directory above it was replaced by a link."""
    try:
        return root.node(path, max_bytes=max_bytes, unread=unread)
    except AgentFSError:
        for above in directories_above(path):
            with suppress(AgentFSError):
                if isinstance(root.node(above, max_bytes=max_bytes), LinkNode):
                    return None
        raise


def list_unread(root: Root, directory: str) -> Iterable[tuple[str, Node]]:
    """Yield each path below a directory that may be changed, and its node as a move takes it along."""
    stack, count = [directory], 0
    while stack and count < _MOST_LISTED:
        call_context.check()
        directory = stack.pop()
        with suppress(AgentFSError), root.open_directory(display_name(directory)) as opened:
            names = [name for name, _ in opened.typed_names()]
            guarded = root.unchangeable_names(directory, names)
            for path in (f"{directory}/{name}" for name in names):
                with suppress(AgentFSError):
                    if path.rpartition("/")[2] in guarded:
                        root.check_may_change(path)
                    if (node := root.node(path, max_bytes=0, unread=True)) is not None:
                        count += 1
                        stack += [path] if isinstance(node, DirectoryNode) else []
                        yield path, node


class _Tree:
    """The nodes of a tree after the steps that were taken so far."""

    def __init__(
        self,
        read: NodeReader,
        list_below: Callable[[str], Iterable[tuple[str, Node]]],
        keep: Callable[[Node], Node],
        *,
        is_alone: bool,
    ) -> None:
        self._read, self._list_below, self._keep, self._is_alone = read, list_below, keep, is_alone
        self._unread = set[str]()  # both paths of each node that the present step moves unread
        self._present: dict[str, Node | None] = {}
        self._nodes: dict[str, Node | None] = {}
        self._moved: dict[str, str] = {}  # where the nodes were moved from
        self.merged: dict[str, None] = {}
        self.clashes: dict[str, Clash] = {}

    @property
    def changes(self) -> tuple[Change, ...]:
        """The changes from the present state."""
        nodes, moved = self._nodes.items(), self._moved
        changes = (Change(path, self._present[path], node, moved.get(path, "")) for path, node in nodes)
        return tuple(each for each in changes if not each.changes_nothing)

    def take(self, changes: Sequence[Change]) -> Iterable[Change]:
        """Apply the changes of a step to these nodes, and yield each change after its merge."""
        changes = [*changes, *self._taken_along(changes)]
        by_path = {change.path: change for change in changes}
        sources = file_moves(changes)
        moved_away = {old: new for new, old in sources.items()}
        unread = {each.path for each in changes if isinstance(each.before or each.after, MovedNode)}
        self._unread = unread.intersection((*sources, *moved_away))
        if self._is_alone:
            self._assume(changes, by_path)
        for change in changes:
            call_context.check()
            path = change.path
            if change.before is None:
                self._moved[path] = self._moved.get(change.moved_from) or change.moved_from
            if path in moved_away:
                continue
            if change.after is not None and self._node(change) is None:
                yield from self._directories_for(path, by_path)
            if path in sources:
                yield from self._move(by_path[sources[path]], change)
            else:
                yield self._put(path, change, self._merged(change))

    def _taken_along(self, changes: Sequence[Change]) -> Iterable[Change]:
        """Yield the moves of entries that came into a moved directory since: the rename takes them along."""
        known = {each.path for each in changes}
        for top in changes:
            if not (top.of_directory and top.before is None and top.moved_from):
                continue
            below = f"{top.moved_from}/"
            there = {**dict(self._list_below(top.moved_from)), **self._nodes}
            for old, node in there.items():
                new = f"{top.path}/{old.removeprefix(below)}"
                if node is not None and old.startswith(below) and known.isdisjoint((old, new)):
                    known.update((old, new))
                    unread = node if isinstance(node, DirectoryNode) else MovedNode(entry_type(node))
                    yield Change(new, None, unread, old)
                    yield Change(old, unread, None)

    def _assume(self, changes: Sequence[Change], own: Mapping[str, Change]) -> None:
        """Take the entries of a moved directory as known: the rename takes along what is there."""
        new = [each for each in changes if each.of_directory and each.before is None]
        if any(self._node(each) is not None for each in new):
            return  # a directory that exists may have entries of the same names
        for each in changes:
            above = own.get(os.path.dirname(each.path))
            if each.path in self._unread and above is not None and above.of_directory:
                self._present[each.path] = self._nodes[each.path] = each.before

    def _merged(self, change: Change) -> Merged:
        path, before, after, present = change.path, change.before, change.after, self._node(change)
        if isinstance(after, MovedNode) and before is None:  # nothing can be moved here
            return Merged(None, Clash(path, before, present))
        return merge_nodes(path, before, after, present)

    def _directories_for(self, path: str, own: Container[str]) -> Iterable[Change]:
        """Create the directories above a path that are missing, also those that earlier steps removed."""
        for above in directories_above(path):
            with suppress(AgentFSError):  # one that cannot be read exists
                if above not in own and self._node(Change(above, None, None)) is None:
                    present = self._present[above]
                    node = present if isinstance(present, DirectoryNode) else DirectoryNode()
                    self._nodes[above] = node
                    yield Change(above, None, node)

    def _move(self, source: Change, target: Change) -> Iterable[Change]:
        """Move a file, and keep other changes of its content."""
        there, here = self._node(source), self._node(target)
        removal = Change(source.path, source.before, None)
        was_there = None if isinstance(target.after, MovedNode) else source.before
        if is_same_node(here, target.after) and there in (None, was_there):  # it is moved already
            yield self._put(source.path, removal, Merged(None))
            yield self._put(target.path, target, Merged(here))
            self._moved.pop(target.path, None)
        elif there is None:
            self.clashes[source.path] = Clash(source.path, source.before, None)
        elif here is not None:
            self.clashes[target.path] = Clash(target.path, None, here)
        else:
            merged = merge_nodes(source.path, source.before, target.after, there)
            if merged.clash is None:
                yield self._put(source.path, removal, Merged(None))
            yield self._put(target.path, target, merged)

    def _put(self, path: str, change: Change, merged: Merged) -> Change:
        if merged.clash is not None:
            self.clashes[path] = merged.clash
            return change
        before, after = self._nodes[path], merged.node
        if after is not None and after is not change.after:
            after = self._keep(after)
        self._nodes[path] = after
        is_as_wanted = is_same_node(before, change.before) or before == change.after
        if after is not None and not (is_as_wanted and is_same_node(after, change.after)):
            self.merged[path] = None
        return replace(change, before=before, after=after)

    def _node(self, change: Change) -> Node | None:
        """Return the node at the path of a change after the steps so far."""
        path, unread = change.path, change.path in self._unread
        if path not in self._nodes:
            self._present[path] = self._nodes[path] = self._known(change, self._read(path, unread=unread))
        elif isinstance(self._nodes[path], MovedNode) and not unread:
            origin = self._moved.get(path) or path  # where an earlier step took it from
            node = self._known(change, self._read(origin))
            self._present[origin] = self._nodes[path] = node
        return self._nodes[path]

    def _known(self, change: Change, node: Node | None) -> Node | None:
        """Return a node of the disk with its content in the store, where that of the change is already."""
        for known in (change.before, change.after):
            if isinstance(known, FileNode) and isinstance(node, FileNode) and node == known:
                return replace(known, metadata=node.metadata)
        return node and self._keep(node)


def merge_nodes(path: str, base: Node | None, ours: Node | None, theirs: Node | None) -> Merged:
    """Return `theirs` with the changes from `base` to `ours`."""
    if isinstance(ours, MovedNode) and theirs is not None:
        return Merged(theirs)
    if is_same_node(theirs, base):
        return Merged(ours)
    if is_same_node(theirs, ours) or is_same_node(ours, base):
        return Merged(theirs)
    if isinstance(base, DirectoryNode) and ours is None and isinstance(theirs, DirectoryNode):
        return Merged(None)  # only the mode was changed
    if base is None and isinstance(ours, DirectoryNode) and isinstance(theirs, DirectoryNode):
        return Merged(theirs)
    if isinstance(base, FileNode) and isinstance(ours, FileNode) and isinstance(theirs, FileNode):
        return _merge_files(path, base, ours, theirs)
    lines: Lines = ()
    if isinstance(base, FileNode) and isinstance(theirs, FileNode):
        lines = changed_lines_of(base, theirs)
    return Merged(None, Clash(path, base, theirs, lines))


def _merge_files(path: str, base: FileNode, ours: FileNode, theirs: FileNode) -> Merged:
    mode = theirs.mode if ours.mode in (base.mode, theirs.mode) else ours.mode
    if theirs.mode not in (mode, base.mode):
        return Merged(None, Clash(path, base, theirs))
    if ours.digest in (base.digest, theirs.digest):
        return Merged(replace(theirs, mode=mode))
    if theirs.digest == base.digest:
        return Merged(replace(ours, mode=mode, metadata=theirs.metadata))
    blobs = [Blob("100644", node.load()) for node in (base, ours, theirs)]
    if any(blob.is_binary for blob in blobs):
        return Merged(None, Clash(path, base, theirs))
    text, conflicts = merge_texts(*(blob.text for blob in blobs))
    if text is None:
        return Merged(None, Clash(path, base, theirs, conflicts))
    return Merged(FileNode.of(mode, text.encode("latin-1"), theirs.metadata))


def changed_lines_of(before: FileNode, after: FileNode) -> Lines:
    """Return the lines of a file that differ from an earlier version; for a removal, the line before it."""
    old, new = Blob("100644", before.load()), Blob("100644", after.load())
    if old.is_binary or new.is_binary:
        return ()
    return tuple(
        (start + 1, end) if end > start else (start, start)
        for _, _, start, end in line_changes(old.text, new.text)
    )


def alike_clash(change: Change, present: Node | None) -> Clash | None:
    """Return a clash if others have changed something in the same way.

    Two programs that count up a number make the same change twice. Merged, one of the two would be lost.
    """
    before, after = change.before, change.after
    if change.of_directory or present == before:
        return None
    lines: Lines = ()
    if isinstance(before, FileNode) and isinstance(after, FileNode) and isinstance(present, FileNode):
        lines = changed_lines_of(before, present)
        if present != after and _replaced(before, after).isdisjoint(_replaced(before, present)):
            return None
    elif present != after:
        return None
    return Clash(change.path, before, present, lines)


def _replaced(before: FileNode, after: FileNode) -> set[tuple[int, int, str]]:
    """Return the replaced ranges of lines with the new lines."""
    old, new = (node.load().decode("latin-1") for node in (before, after))
    lines = new.split("\n")
    return {
        (each.old_start, each.old_end, "\n".join(lines[each.new_start : each.new_end]))
        for each in line_changes(old, new)
    }


def is_same_node(one: Node | None, other: Node | None) -> bool:
    """Return True if nodes are equal.

    Of directories, compare only modes, and take None as any mode. A moved node equals any of its type.
    """
    if isinstance(one, MovedNode) or isinstance(other, MovedNode):
        return None not in (one, other) and entry_type(one) == entry_type(other)
    if isinstance(one, DirectoryNode) and isinstance(other, DirectoryNode):
        return one.mode == other.mode or None in (one.mode, other.mode)
    return one == other


def kept_reader(root: Root, max_bytes: int, keep: Callable[[Node], Node]) -> Callable[[str], Node | None]:
    """Return a function that reads the node at a path, with its content out of memory."""

    def read(path: str) -> Node | None:
        node = read_node(root, path, max_bytes)
        return node and keep(node)

    return read


def with_contents(steps: Iterable[Step], read: Callable[[str], Node | None]) -> list[Step]:
    """Return steps with the contents that moves took along unread.

    A later step that changes a moved file knows its content; otherwise `read` reads it from its new path.
    """
    later: dict[str, Node | None] = {}  # the nodes between a step and the next
    found: list[Step] = []
    for step in reversed([*steps]):
        filled = filled_changes(step.changes, lambda change: later.get(change.path) or read(change.path))
        later.update((each.path, each.before) for each in filled)
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
