"""The merge of the changes of steps with the present tree, three ways, as in `git revert`; it only reads."""

import os
from collections.abc import Callable, Container, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

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
)
from agentfs.history.log import UndoPlan, file_moves, is_same_node
from agentfs.text.git_patch import Blob
from agentfs.text.merge import merge_texts


class Clash(NamedTuple):
    """A path that cannot be changed, because another change has touched the same part of it."""

    path: str
    expected: Node | None  # the node that should be there
    found: Node | None  # the present node
    # First and last line, from 1, of each range of `found` that both changes touched, if it is a text.
    lines: tuple[tuple[int, int], ...] = ()


class Outcome(NamedTuple):
    """The changes that carry out a plan, or the clashes that prevent it."""

    changes: tuple[Change, ...]  # from the present state
    merged: tuple[str, ...]  # paths that also keep other changes
    clashes: tuple[Clash, ...]
    remaining: tuple[str, ...] = ()  # directories that are not removed because they have other entries


Merged = tuple[Node | None, Clash | None]  # the result of a three-way merge, or why it failed


class Disk(NamedTuple):
    """The tree on disk, whose contents `keep` takes out of memory."""

    root: Root
    max_bytes: int
    keep: Callable[[Node | None], Node | None]

    def node(self, path: str, *, unread: bool = False) -> Node | None:
        """Return the node at a real path; a file or link to be moved may stay unread, as a `MovedNode`."""
        return self.keep(read_node(self.root, path, self.max_bytes, unread=unread))

    def names(self, directory: str) -> list[str]:
        """Return the names in a directory, or none if it cannot be read."""
        with suppress(AgentFSError), self.root.open_directory(display_name(directory)) as opened:
            return [name for name, _ in opened.typed_names()]
        return []


def read_node(root: Root, path: str, max_bytes: int, *, unread: bool = False) -> Node | None:
    """Return the node at a real path; None also if a directory above it was replaced by a link."""
    try:
        return root.node(path, max_bytes=max_bytes, unread=unread, is_kept=False)
    except AgentFSError:
        for above in directories_above(path):
            with suppress(AgentFSError):
                if isinstance(root.node(above, max_bytes=max_bytes), LinkNode):
                    return None
        raise


def merge_plan(plan: UndoPlan, disk: Disk) -> Outcome:
    """Compute how to make the changes of a plan, in this order."""
    tree = _Tree(disk, plan.left)
    for changes in plan.changes:
        tree.make(changes)
    remaining = tree.keep_directories()
    clashes = [tree.clashes[path] for path in sorted(tree.clashes)]
    return Outcome(tree.changes(), tuple(tree.merged), tuple(clashes), remaining)


class _Tree:
    """The nodes of a tree after the steps that were made so far."""

    def __init__(self, disk: Disk, left: Mapping[str, Node | None]) -> None:
        self._disk, self._left = disk, left
        self._present: dict[str, Node | None] = {}
        self._nodes: dict[str, Node | None] = {}
        self._moved: dict[str, str] = {}  # where the nodes were moved from
        self.merged: dict[str, None] = {}
        self.clashes: dict[str, Clash] = {}

    def keep_directories(self) -> tuple[str, ...]:
        """Keep the directories that would be removed with other entries in them; return their paths."""
        above = {os.path.dirname(path) for path, node in self._nodes.items() if node is not None}
        kept: list[str] = []
        for path in sorted(self._nodes, reverse=True):  # a directory comes after those in it
            present = self._present[path]
            if not isinstance(present, DirectoryNode) or self._nodes[path] is not None:
                continue
            if path in above or any(f"{path}/{name}" not in self._nodes for name in self._disk.names(path)):
                self._nodes[path] = present
                above.add(os.path.dirname(path))
                kept.append(path)
        return tuple(kept)

    def changes(self) -> tuple[Change, ...]:
        """Return the changes from the present state; an unread node is moved from one path to another."""
        if any(isinstance(node, MovedNode) for node in self._present.values()):
            moved = file_moves(self._net())
            back = {path for path, origin in self._moved.items() if path == origin and self._nodes[path]}
            for path in self._nodes.keys() - {*moved, *moved.values(), *back}:
                self._node(path)
                if isinstance(self._present[path], MovedNode):
                    self._present[path] = self._disk.node(path)
        return self._net()

    def _net(self) -> tuple[Change, ...]:
        present, moved = self._present, self._moved
        changes = [
            Change(path, present[path], node, moved.get(path, "")) for path, node in self._nodes.items()
        ]
        return tuple([each for each in changes if not each.changes_nothing])

    def make(self, changes: Sequence[Change]) -> None:
        """Make the changes of a step in these nodes."""
        by_path = {each.path: each for each in changes}
        sources = file_moves(changes)
        away = set(sources.values())
        for path, change in by_path.items():
            call_context.check()
            is_target, unread = path in sources, isinstance(change.after, MovedNode)
            if change.before is None:
                self._moved[path] = self._moved.get(change.moved_from) or change.moved_from
            if path in away:
                continue
            present = self._node(path, unread=unread and is_target)
            if change.after is not None and present is None:
                self._make_directories(path, by_path)
            if is_target:
                self._move(by_path[sources[path]], change, unread=unread)
            elif unread and change.before is None:  # nothing can be moved here
                self.clashes[path] = Clash(path, None, self._node(path))
            else:
                self._put(change, self._merged(change, present))

    def _merged(self, change: Change, present: Node | None) -> Merged:
        """Return the merge of a change; it clashes if a later step of ours has done the same."""
        path, before, after = change.path, change.before, change.after
        is_made = path in self._left and is_same_node(self._left[path], present)
        if is_made and is_same_node(present, after) and not is_same_node(present, before):
            return None, Clash(path, before, present)
        return merge_nodes(path, before, after, present)

    def _make_directories(self, path: str, own: Container[str]) -> None:
        """Make the directories above a path that are missing, also those that earlier steps removed.

        A file or link in place of one clashes.
        """
        for above in directories_above(path):
            with suppress(AgentFSError):  # one that cannot be read exists
                node = DirectoryNode() if above in own else self._node(above)
                if node is None:
                    present = self._present[above]
                    self._nodes[above] = present if isinstance(present, DirectoryNode) else DirectoryNode()
                elif not isinstance(node, DirectoryNode):
                    self.clashes[above] = Clash(above, DirectoryNode(), node)

    def _move(self, source: Change, target: Change, *, unread: bool) -> None:
        """Move a file, and keep other changes of its content."""
        there, here = (self._node(each.path, unread=unread) for each in (source, target))
        was_there = None if unread else source.before
        if is_same_node(here, target.after) and there in (None, was_there):  # it is moved already
            self._put(source, (None, None))
            self._put(target, self._merged(target, here))
            self._moved.pop(target.path, None)
        elif there is None:
            self.clashes[source.path] = Clash(source.path, source.before, None)
        elif here is not None:
            self.clashes[target.path] = Clash(target.path, None, here)
        else:
            merged = merge_nodes(source.path, source.before, target.after, there)
            if merged[1] is None:
                self._put(source, (None, None))
            self._put(target, merged)

    def _put(self, change: Change, merged: Merged) -> None:
        """Set the node at the path of a change, and take note if it also keeps other changes."""
        path, (after, clash) = change.path, merged
        if clash is not None:
            self.clashes[path] = clash
            return
        before, self._nodes[path] = self._nodes[path], after
        if after is None:
            return
        if after is not change.after:
            self._nodes[path] = self._disk.keep(after)
        is_as_wanted = is_same_node(before, change.before) or before == change.after
        if not (is_as_wanted and is_same_node(after, change.after)):
            self.merged[path] = None

    def _node(self, path: str, *, unread: bool = False) -> Node | None:
        """Return the node at a path after the steps so far."""
        if path not in self._nodes:
            self._present[path] = self._nodes[path] = self._disk.node(path, unread=unread)
        elif isinstance(self._nodes[path], MovedNode) and not unread:
            origin = self._moved.get(path) or path  # where an earlier step took it from
            self._present[origin] = self._nodes[path] = self._disk.node(origin)
        return self._nodes[path]


def merge_nodes(
    path: str, base: Node | None, ours: Node | None, theirs: Node | None, *, once: bool = False
) -> Merged:
    """Return `theirs` with the changes from `base` to `ours`.

    With `once`, the same change by both clashes: of two programs that count up a number, one would be lost.
    """
    is_directory = isinstance(theirs, DirectoryNode)
    if isinstance(ours, MovedNode) and theirs is not None:
        return theirs, None
    if is_same_node(theirs, base):
        return ours, None
    if is_same_node(ours, base):
        return theirs, None
    if is_same_node(theirs, ours) and (not once or isinstance(ours or base, DirectoryNode)):
        return theirs, None
    if is_directory and isinstance(base, DirectoryNode) and ours is None:
        return None, None  # only the mode was changed
    if is_directory and isinstance(ours, DirectoryNode) and base is None:
        return theirs, None
    if isinstance(base, FileNode) and isinstance(ours, FileNode) and isinstance(theirs, FileNode):
        return _merge_files(path, base, ours, theirs, once=once)
    return None, Clash(path, base, theirs)


def _merge_files(path: str, base: FileNode, ours: FileNode, theirs: FileNode, *, once: bool) -> Merged:
    mode = theirs.mode if ours.mode in (base.mode, theirs.mode) else ours.mode
    if theirs.mode not in (mode, base.mode) or (once and ours == theirs):
        return None, Clash(path, base, theirs)
    if ours.digest in (base.digest, theirs.digest):
        return replace(theirs, mode=mode), None
    if theirs.digest == base.digest:
        return replace(ours, mode=mode, metadata=theirs.metadata), None
    blobs = [Blob("100644", node.load()) for node in (base, ours, theirs)]
    if any(blob.is_binary for blob in blobs):
        return None, Clash(path, base, theirs)
    text, conflicts = merge_texts(*(blob.text for blob in blobs), once=once)
    if text is None:
        return None, Clash(path, base, theirs, conflicts)
    return FileNode.of(mode, text.encode("latin-1"), theirs.metadata), None
