"""Comparison of the disk with the files that the steps of a journal left there."""

import time
from collections.abc import Sequence
from dataclasses import replace

from agentfs.base import call_context
from agentfs.errors import AgentFSError
from agentfs.fs import Change, FileNode, Node, Root
from agentfs.history.report import name_paths
from agentfs.history.storage.contents import Contents
from agentfs.history.take_back import Lines, is_same_node, read_node
from agentfs.text import line_changes
from agentfs.text.git_patch import Blob


class Present:
    """Compares net changes with the disk, and collects the changes by other programs."""

    def __init__(self, root: Root, max_bytes: int) -> None:
        self._root, self._max_bytes = root, max_bytes
        self._contents = Contents()  # keeps contents that other programs wrote out of memory
        self.others: dict[str, Lines] = {}
        self._restored: list[str] = []
        self._gone: list[str] = []
        self._unknown: list[str] = []

    def change(self, net: Change, history: Sequence[Change]) -> Change:
        """Return a net change that ends with the node on the disk; `history` has the changes it sums up."""
        path = net.path
        now = self._node(net)
        change = replace(net, after=now)
        if change.changes_nothing:
            if not is_same_node(net.after, now):
                (self._gone if now is None else self._restored).append(path)
            return change
        versions: list[tuple[Node | None, bool]] = [(net.before, False)]
        for each in history:
            versions += [(each.before, each.before != versions[-1][0]), (each.after, False)]
        versions.append((now, now != versions[-1][0]))
        if any(by_others for _, by_others in versions):
            self.others[path] = _lines_of_others(versions)
            if now is None:
                self._gone.append(path)
        return change

    def notes(self) -> list[str]:
        """Return notes on paths that the changes alone do not explain."""
        notes: list[str] = []
        if self._restored:
            notes.append(f"changed back by another program: {self._names(self._restored)}")
        if self._gone:
            notes.append(f"deleted by another program: {self._names(self._gone)}")
        if self._unknown:
            notes.append(f"not compared with the disk: {self._names(self._unknown)}")
        return notes

    def _names(self, paths: Sequence[str]) -> str:
        return name_paths([self._root.display_path(path) for path in paths])

    def _node(self, net: Change) -> Node | None:
        if time.monotonic() < call_context.deadline():
            try:
                found = read_node(self._root, net.path, self._max_bytes)
            except AgentFSError:
                found = net.after  # protected, too large or a special file
                self._unknown += [net.path] if self._root.may_show(net.path) else []
            for known in (net.after, net.before):
                if isinstance(known, FileNode) and found == known:
                    return known
            return None if found is None else self._contents.keep_node(found)
        self._unknown.append(net.path)
        return net.after


def _lines_of_others(versions: Sequence[tuple[Node | None, bool]]) -> Lines:
    """Return the lines of the last version that come from another program.

    Each version comes with True if another program wrote it.
    """
    text, owned = "", list[bool]()  # for each line of the text, True if another program wrote it
    for node, by_others in versions:
        blob = Blob("100644", node.load()) if isinstance(node, FileNode) else Blob("", b"")
        if blob.is_binary:
            return ()
        lines: list[bool] = []
        end = 0
        for start, old_end, new_start, new_end in line_changes(text, blob.text):
            lines += [*owned[end:start], *[by_others] * (new_end - new_start)]
            end = old_end
        text, owned = blob.text, [*lines, *owned[end:]]
    ranges: list[tuple[int, int]] = []
    for number, is_theirs in enumerate(owned, 1):
        if is_theirs and ranges and ranges[-1][1] == number - 1:
            ranges[-1] = ranges[-1][0], number
        elif is_theirs:
            ranges.append((number, number))
    return tuple(ranges)
