"""The data of a walk: visits, and counts of left-out names."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from operator import attrgetter
from typing import NamedTuple

from agentfs.fs import Directory, DirEntry
from agentfs.tree.gitignore import IgnoreRule, IgnoreRules

MAX_EXCLUDED = 1000  # excluded names that are kept
entry_name = attrgetter("name")
_NO_ENTRIES: list[DirEntry] = []


class Visit:
    """A directory that a walk has entered, with its next files.

    A walk yields the object again if directories come between the files.
    """

    def __init__(self, directory: Directory, below: str, depth: int, rules: IgnoreRules) -> None:
        self.directory = directory  # open while this visit is the current one
        self.below = below  # relative to the start of the walk, with a trailing `/`; "" for the start
        self.depth = depth  # 1 for the start of the walk, 2 for the directories in it
        # The next files, with links and special files if the walk has `others`.
        self.files: list[DirEntry] = _NO_ENTRIES
        self.child: DirEntry | None = None  # the directory after them, if the walk has `directories`
        # The state of the walk:
        self.rules = rules  # the rules of the parent, until the directory is scanned
        self.listed: list[DirEntry] = _NO_ENTRIES  # all files
        self.next_file = 0
        self.directories: list[DirEntry] = _NO_ENTRIES  # the directories that are left, the next one last
        self.held = 0  # entries in memory

    @property
    def path(self) -> str:
        """The path of the directory, relative to the root; "" for the root."""
        return self.directory.path

    def entries(self, *, directories_first: bool) -> list[DirEntry]:
        """Return the files and the directory in the order of the walk."""
        if self.child is None:
            return self.files
        return [self.child, *self.files] if directories_first else [*self.files, self.child]

    def with_entries(self, files: list[DirEntry], child: DirEntry | None) -> "Visit":
        """Return a visit of the same directory with other entries."""
        visit = Visit(self.directory, self.below, self.depth, self.rules)
        visit.files, visit.child = files, child
        return visit

    def advance(self, *, descends: bool, first: bool) -> DirEntry | None:
        """Set `files` to the files up to the next directory, and return that directory; None at the end.

        With `first`, directories come before all files.
        """
        listed, start = self.listed, self.next_file
        if not descends or not self.directories:
            self.next_file = len(listed)
            self.files = listed[start:] if start else listed
            return None
        child = self.directories.pop()
        self.files = _NO_ENTRIES
        if not first and start < len(listed) and listed[start].name < child.name:
            self.next_file = bisect_left(listed, child.name, start, key=entry_name)
            self.files = listed[start : self.next_file]
        return child


class Excluded(NamedTuple):
    """A name that a walk left out because it is hidden or ignored."""

    path: str  # relative to the root
    below: str  # relative to the start of the walk
    entry: DirEntry
    rule: IgnoreRule | None = None  # None if it is hidden


@dataclass(slots=True)
class LeftOut:
    """Counts of the names that were left out, and the first of the hidden and ignored ones."""

    counts: Counter[str] = field(default_factory=Counter[str])
    rules: Counter[IgnoreRule] = field(default_factory=Counter["IgnoreRule"])
    excluded: list[Excluded] = field(default_factory=list[Excluded])

    @classmethod
    def sum(cls, parts: Iterable["LeftOut"]) -> "LeftOut":
        """Return the counts of several records together."""
        total = cls()
        for part in parts:
            total.counts.update(part.counts)
            total.rules.update(part.rules)
        return total
