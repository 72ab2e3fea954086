"""Computation of the changes that undo or redo steps, even if other programs have changed the files since.

Each step is merged with the present files by a three-way merge, as in `git revert`. The tree is only read.
"""

from collections.abc import Callable, Container, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

from agentfs.base import call_context
from agentfs.errors import AgentFSError, SpecialFileError, TooLargeError
from agentfs.fs import (
    Change,
    DirectoryNode,
    FileNode,
    LinkNode,
    MovedNode,
    Node,
    Root,
    directories_above,
    entry_type,
)
from agentfs.history.log import file_moves
from agentfs.text import line_changes
from agentfs.text.git_patch import Blob
from agentfs.text.merge import merge_texts

NodeReader = Callable[[str], Node | None]
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


def take_steps(steps: Iterable[Sequence[Change]], read: NodeReader, keep: Callable[[Node], Node]) -> Outcome:
    """Compute how to make the changes of some steps, in this order, in the tree that `read` reads.

    `keep` returns a node whose content is not held in memory.
    """
    tree = _Tree(read, keep)
    made = [tuple(tree.take(changes)) for changes in steps]
    clashes = [tree.clashes[path] for path in sorted(tree.clashes)]
    return Outcome(tree.changes, tuple(made), tuple(tree.merged), tuple(clashes))


def read_node(root: Root, path: str, max_bytes: int) -> Node | None:
    """Return the node at a real path; None also if a directory above it was replaced by a link."""
    try:
        return root.node(path, max_bytes=max_bytes)
    except AgentFSError:
        for above in directories_above(path):
            with suppress(AgentFSError):
                if isinstance(root.node(above, max_bytes=max_bytes), LinkNode):
                    return None
        raise


class _Tree:
    """The nodes of a tree after the steps that were taken so far."""

    def __init__(self, read: NodeReader, keep: Callable[[Node], Node]) -> None:
        self._read, self._keep = read, keep
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
        by_path = {change.path: change for change in changes}
        sources = file_moves(changes)
        moved_away = {old: new for new, old in sources.items()}
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
                yield self._put(
                    path, change, merge_nodes(path, change.before, change.after, self._node(change))
                )

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
        if here == target.after and there in (None, source.before):
            yield self._put(source.path, removal, Merged(None))
            yield self._put(target.path, target, Merged(here))
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
        path = change.path
        if path not in self._nodes:
            node = self._present_node(change)
            for known in (change.before, change.after):
                if isinstance(known, FileNode) and isinstance(node, FileNode) and node == known:
                    node = replace(known, metadata=node.metadata)
            if node is not None and not (
                isinstance(node, FileNode) and node in (change.before, change.after)
            ):
                node = self._keep(node)
            self._present[path] = self._nodes[path] = node
        return self._nodes[path]

    def _present_node(self, change: Change) -> Node | None:
        unread = change.before if isinstance(change.before, MovedNode) else change.after
        if not isinstance(unread, MovedNode):
            return self._read(change.path)
        try:
            node = self._read(change.path)
        except (TooLargeError, SpecialFileError):
            return unread
        return node and MovedNode(entry_type(node))


def merge_nodes(path: str, base: Node | None, ours: Node | None, theirs: Node | None) -> Merged:
    """Return `theirs` with the changes from `base` to `ours`."""
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
    """Return True if nodes are equal; of directories, compare only modes, and take None as any mode."""
    if isinstance(one, DirectoryNode) and isinstance(other, DirectoryNode):
        return one.mode == other.mode or None in (one.mode, other.mode)
    return one == other
