"""Which changes take steps back, or make them again, in a tree that other programs have changed since.

Each step is merged three ways with what is there, as `git revert` does. The tree itself is only read.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

from agentfs import call_context
from agentfs.errors import AgentFSError
from agentfs.fs import Change, DirectoryNode, FileNode, LinkNode, Node, Root, directories_above
from agentfs.history.renames import renames
from agentfs.text import Blob, line_changes, merge_texts

NodeReader = Callable[[str], Node | None]
Lines = tuple[tuple[int, int], ...]  # first and last line of ranges, from 1


class Clash(NamedTuple):
    """A path that cannot be taken back, because something else has changed the same part of it."""

    path: str
    expected: Node | None  # what the step left there
    found: Node | None  # what is there now
    lines: Lines = ()  # those of `found` that both have changed, if it is a text


class Outcome(NamedTuple):
    """What taking steps back does, or why it cannot be done."""

    changes: tuple[Change, ...]  # from what is there now
    steps: tuple[tuple[Change, ...], ...]  # each step as it is made now, in the order given
    merged: tuple[str, ...]  # paths that keep what something else has changed
    clashes: tuple[Clash, ...]


class Merged(NamedTuple):
    """What a three-way merge makes of a path; `clash` says why it makes nothing."""

    node: Node | None
    clash: Clash | None = None


def take_steps(steps: Iterable[Sequence[Change]], read: NodeReader, keep: Callable[[Node], Node]) -> Outcome:
    """Return what makes the changes of steps, in this order, in the tree that `read` reads.

    `keep` returns a node whose content takes no memory.
    """
    tree = _Tree(read, keep)
    made = [tuple(tree.take(changes)) for changes in steps]
    return Outcome(tree.changes, tuple(made), tuple(tree.merged), tuple(tree.clashes.values()))


def read_node(root: Root, path: str, max_bytes: int) -> Node | None:
    """Return the node at a real path; None also if a link has taken the place of a directory above it."""
    try:
        return root.node(path, max_bytes=max_bytes)
    except AgentFSError:
        for above in directories_above(path):
            with suppress(AgentFSError):
                if isinstance(root.node(above, max_bytes=max_bytes), LinkNode):
                    return None
        raise


class _Tree:
    """The nodes of a tree as the steps so far would leave them."""

    def __init__(self, read: NodeReader, keep: Callable[[Node], Node]) -> None:
        self._read, self._keep = read, keep
        self._present: dict[str, Node | None] = {}
        self._nodes: dict[str, Node | None] = {}
        self.merged: dict[str, None] = {}
        self.clashes: dict[str, Clash] = {}

    @property
    def changes(self) -> tuple[Change, ...]:
        """The changes from what is there."""
        changes = (Change(path, self._present[path], node) for path, node in self._nodes.items())
        return tuple(each for each in changes if not each.changes_nothing)

    def take(self, changes: Sequence[Change]) -> Iterable[Change]:
        """Make the changes of a step, and yield each as it is made."""
        by_path = {change.path: change for change in changes}
        sources = renames(changes)
        moved_away = {old: new for new, old in sources.items()}
        for change in changes:
            call_context.check()
            path = change.path
            if path in moved_away:
                continue
            if path in sources:
                yield from self._move(by_path[sources[path]], change)
            else:
                yield self._put(
                    path, change, merge_nodes(path, change.before, change.after, self._node(change))
                )

    def _move(self, source: Change, target: Change) -> Iterable[Change]:
        """Move a file with what something else has changed in it."""
        there, here = self._node(source), self._node(target)
        removal = Change(source.path, source.before, None)
        if here == target.after and there in (None, source.before):
            yield self._put(source.path, removal, Merged(None))
            yield target
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
        if before == change.after or (
            is_same_node(before, change.before) and is_same_node(after, change.after)
        ):
            return change
        if after is not None:
            self.merged[path] = None
        return Change(path, before, after)

    def _node(self, change: Change) -> Node | None:
        """Return what is at the path of a change, as the steps so far leave it."""
        path = change.path
        if path not in self._nodes:
            node = self._read(path)
            for known in (change.before, change.after):
                if isinstance(known, FileNode) and isinstance(node, FileNode) and node == known:
                    node = replace(known, metadata=node.metadata)
            if node is not None and not (
                isinstance(node, FileNode) and node in (change.before, change.after)
            ):
                node = self._keep(node)
            self._present[path] = self._nodes[path] = node
        return self._nodes[path]


def merge_nodes(path: str, base: Node | None, ours: Node | None, theirs: Node | None) -> Merged:
    """Return `theirs` with the changes from `base` to `ours`."""
    if is_same_node(theirs, base):
        return Merged(ours)
    if is_same_node(theirs, ours) or is_same_node(ours, base):
        return Merged(theirs)
    if isinstance(base, DirectoryNode) and ours is None and isinstance(theirs, DirectoryNode):
        return Merged(None)  # only its mode has changed
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
    """Return the lines of a file that differ from an earlier version; a removal is the line before it."""
    old, new = Blob("100644", before.load()), Blob("100644", after.load())
    if old.is_binary or new.is_binary:
        return ()
    return tuple(
        (start + 1, end) if end > start else (start, start)
        for _, _, start, end in line_changes(old.text, new.text)
    )


def is_same_node(one: Node | None, other: Node | None) -> bool:
    """Return True for equal nodes; directories must have equal modes, unless one leaves it to the system."""
    if isinstance(one, DirectoryNode) and isinstance(other, DirectoryNode):
        return one.mode == other.mode or None in (one.mode, other.mode)
    return one == other
