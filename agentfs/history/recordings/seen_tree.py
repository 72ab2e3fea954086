"""`SeenTree`: the paths of a tree as a recording has last seen them, by directory."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from typing import NamedTuple, Self

from agentfs.fs import FileNode, Node
from agentfs.tree.ignore_sources import with_slash

_LARGEST_INTEGER = 2**63 - 1  # that SQLite stores


class Status(NamedTuple):
    """The `lstat` fields of a path."""

    mode: int
    user: int
    group: int
    size: int = 0
    modified: int = 0
    changed: int = 0
    inode: int = 0
    links: int = 1

    @classmethod
    def of(cls, found: os.stat_result) -> Self:
        """Return the fields of a result of `lstat`."""
        return cls(
            found.st_mode,
            found.st_uid,
            found.st_gid,
            found.st_size,
            found.st_mtime_ns,
            found.st_ctime_ns,
            found.st_ino & _LARGEST_INTEGER,
            found.st_nlink,
        )


class Seen(NamedTuple):
    """A path as it was last seen."""

    node: Node | None  # None if its content is not kept
    status: Status | None  # None if it must be read again
    young: bool = False  # a later change may have left the status as it was
    reason: str = ""  # why its content is not kept


class SeenTree:
    """The paths of a tree as they were last seen, by directory and name; "" is the root.

    A copy shares its directories until they are changed, so that the cost of a scan follows the change.
    """

    def __init__(self) -> None:
        self.directories: dict[str, dict[str, Seen]] = {}
        self.changed = set[str]()  # directories that may differ from the tree from which this one was made
        self.size = 0  # bytes of the kept contents
        self.count = 0  # paths
        self.reasons = Counter[str]()  # numbers of paths without kept content, by reason

    def copy(self) -> "SeenTree":
        """Return a copy."""
        other = copy(self)
        other.directories, other.reasons = self.directories.copy(), self.reasons.copy()
        self.changed, other.changed = set[str](), set[str]()
        return other

    def get(self, path: str) -> Seen | None:
        """Return a path as it was last seen, or None."""
        directory, _, name = path.rpartition("/")
        return self.entries(directory).get(name)

    def entries(self, directory: str) -> Mapping[str, Seen]:
        """Return the entries of a directory by name."""
        return self.directories.get(directory, {})

    def items(self, directories: Iterable[str] | None = None) -> Iterator[tuple[str, Seen]]:
        """Yield the entries of some directories, by default of all."""
        for directory in self.directories if directories is None else directories:
            base = with_slash(directory)
            for name, seen in self.entries(directory).items():
                yield base + name, seen

    def put(self, path: str, seen: Seen | None) -> None:
        """Add, replace or, with None, remove a path."""
        directory, _, name = path.rpartition("/")
        entries = self._own(directory)
        before = entries.pop(name, None)
        if before is not None:
            self._add_up(before, -1)
        if seen is not None:
            self._add_up(seen, 1)
            entries[name] = seen

    def clear(self, directory: str) -> None:
        """Remove the entries of a directory, but not those below them."""
        entries = self._own(directory)
        for seen in entries.values():
            self._add_up(seen, -1)
        entries.clear()

    def changed_since(self, old: "SeenTree") -> list[str]:
        """Return the paths that differ from the tree from which this one was made."""
        found: list[str] = []
        for directory in self.changed:
            base, before, now = with_slash(directory), old.entries(directory), self.entries(directory)
            names = before.keys() | now.keys()
            found += [base + name for name in names if before.get(name) is not now.get(name)]
        return sorted(found)

    def _own(self, directory: str) -> dict[str, Seen]:
        if directory not in self.changed:
            self.changed.add(directory)
            self.directories[directory] = {**self.entries(directory)}
        return self.directories.setdefault(directory, {})

    def _add_up(self, seen: Seen, count: int) -> None:
        self.count += count
        if isinstance(seen.node, FileNode):
            self.size += count * seen.node.size
        elif seen.reason:
            self.reasons[seen.reason] += count
