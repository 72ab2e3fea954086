"""The data of a walk: visits, counts of left-out names, and a record for the next walk."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, NamedTuple

from agentfs.fs import Directory, DirEntry
from agentfs.tree.gitignore import IgnoreRule, IgnoreRules

MAX_EXCLUDED = 1000  # excluded names that are kept
_MAX_DERIVED = 4  # searches whose derived results are kept
entry_name = attrgetter("name")
_NO_ENTRIES: list[DirEntry] = []


class Mark(NamedTuple):
    """The state of a walk when it entered a directory."""

    log: int
    rules: int
    entries_left: int
    unwatched: int
    outer_rules: IgnoreRules


class Visit:
    """A directory that a walk has entered, with its next files.

    A walk yields the object again if directories come between the files.
    """

    __slots__ = (
        *("below", "child", "closed", "depth", "directories", "directory", "files", "listed", "mark"),
        *("memory", "more", "next_file", "rules", "unkept"),
    )

    def __init__(self, directory: Directory, below: str, depth: int, rules: IgnoreRules) -> None:
        self.directory = directory  # open while this visit is the current one
        self.below = below  # relative to the start of the walk, with a trailing `/`; "" for the start
        self.depth = depth  # 1 for the start of the walk, 2 for the directories in it
        # The next files, with links and special files if the walk has `others`.
        self.files: list[DirEntry] = _NO_ENTRIES
        self.child: DirEntry | None = None  # the directory after them, if the walk has `directories`
        self.more = 0  # number of files after these that were not kept
        # The state of the walk:
        self.rules = rules  # the rules of the parent, until the directory is scanned
        self.listed: list[DirEntry] = _NO_ENTRIES  # all files
        self.next_file = 0
        self.directories: list[DirEntry] = _NO_ENTRIES  # the directories that are left, the next one last
        self.unkept = 0  # files beyond `keep`
        self.closed = False
        self.memory = 0
        self.mark: Mark | None = None  # set if the walk can be kept

    @property
    def path(self) -> str:
        """The path of the directory, relative to the root; "" for the root."""
        return self.directory.path

    def entries(self, *, directories_first: bool) -> list[DirEntry]:
        """Return the files and the directory in the order of the walk."""
        if self.child is None:
            return self.files
        return [self.child, *self.files] if directories_first else [*self.files, self.child]

    def having(self, files: list[DirEntry], child: DirEntry | None) -> "Visit":
        """Return a visit of the same directory with other entries."""
        visit = Visit(self.directory, self.below, self.depth, self.rules)
        visit.files, visit.child, visit.more = files, child, self.more
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


class RulesInside(NamedTuple):
    """The rules of a directory with rule files."""

    directory: Directory
    outer: IgnoreRules
    deciding: frozenset[str] | None
    rules: IgnoreRules


@dataclass(slots=True)
class KeptWalk:
    """A recorded walk below a directory; it is valid while no listing and no rule changes."""

    outer_rules: IgnoreRules
    rules: tuple[RulesInside, ...]
    log: tuple[Visit | LeftOut, ...]  # visits before `select` and left-out names, in order
    looked_at: int  # number of names
    _derived: dict[Hashable, Any] | None = None  # results that searches derived

    @property
    def visits(self) -> Iterator[Visit]:
        """The visits that were yielded."""
        return (item for item in self.log if isinstance(item, Visit))

    def get(self, key: Hashable) -> Any:
        """Return a result that a search derived from the visits; None if it is not kept."""
        return None if self._derived is None else self._derived.get(key)

    def keep(self, key: Hashable, value: Any) -> None:
        """Keep a result that a search derived from the visits; only the last few are kept."""
        if self._derived is None or len(self._derived) >= _MAX_DERIVED:
            self._derived = {}
        self._derived[key] = value
