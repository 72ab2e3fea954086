"""Comparison of the disk with the files that the steps of a journal left there."""

import time
from collections.abc import Sequence
from dataclasses import replace

from agentfs.base import call_context
from agentfs.errors import AgentFSError
from agentfs.fs import Change, FileNode, Node, Root
from agentfs.fs.node import LinesBy
from agentfs.history.report import name_paths
from agentfs.history.storage.contents import Contents
from agentfs.history.take_back import Lines, is_same_node, read_node
from agentfs.history.traced_lines import OTHER, TracedFile, Version

_OURS = "workspace", ""  # the author of lines that are not by another program


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
    file = TracedFile(None, "")
    for number, (node, by_others) in enumerate(versions):
        file.advance(node, Version(OTHER if by_others else _OURS, str(number)))
    births = [OTHER if birth and birth.version.author == OTHER else None for birth in file.births()]
    return tuple((each.start + 1, each.end) for each in LinesBy.of("", births))
