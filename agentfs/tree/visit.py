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
_NO_ENTRIES: list[DirEntry] = []  # the files of each level before the scan


class Visit:
    """Successive files of one directory, and the directory that follows them in the walk."""

    __slots__ = ("below", "child", "depth", "directory", "files", "more", "path")

    def __init__(
        self, level: "Level | Visit", files: list[DirEntry], child: DirEntry | None, more: int
    ) -> None:
        self.directory: Directory = level.directory  # open while this visit is the current one
        self.path = self.directory.path  # relative to the root; "" for the root
        # Relative to the start of the walk, with a trailing `/`; "" for the start.
        self.below: str = level.below
        self.depth: int = level.depth  # 1 for the start of the walk, 2 for the directories in it
        self.files = files  # with links and special files if the walk has `others`
        self.child = child  # the directory after the files, if the walk has `directories`
        self.more = more  # number of files after these that were not kept

    def entries(self, *, directories_first: bool) -> list[DirEntry]:
        """Return the files and the directory in the order of the walk."""
        if self.child is None:
            return self.files
        return [self.child, *self.files] if directories_first else [*self.files, self.child]


class Mark(NamedTuple):
    """The state of a walk when it entered a directory."""

    log: int
    rules: int
    entries_left: int
    unwatched: int
    outer_rules: IgnoreRules


class Level:
    """A directory that a walk has entered and not yet left."""

    __slots__ = (
        *("below", "closed", "depth", "directories", "directory", "files", "mark", "memory"),
        *("next_directory", "next_file", "rules", "unkept"),
    )

    def __init__(self, directory: Directory, below: str, depth: int, rules: IgnoreRules) -> None:
        self.directory = directory
        self.below = below
        self.depth = depth
        self.rules = rules  # the rules of the parent, until the directory is scanned
        self.files = self.directories = _NO_ENTRIES
        self.unkept = 0  # files beyond `keep`
        self.next_file = self.next_directory = 0
        self.closed = False
        self.memory = 0
        self.mark: Mark | None = None  # set if the walk can be kept

    def take_run(self, *, descends: bool, first: bool) -> tuple[list[DirEntry], DirEntry | None]:
        """Remove and return the files up to the next directory, and that directory; None at the end.

        With `first`, directories come before all files.
        """
        files, start = self.files, self.next_file
        if not descends or self.next_directory == len(self.directories):
            self.next_file = len(files)
            return (files[start:] if start else files), None
        child = self.directories[self.next_directory]
        self.next_directory += 1
        if first or start == len(files) or files[start].name > child.name:
            return _NO_ENTRIES, child
        self.next_file = bisect_left(files, child.name, start, key=entry_name)
        return files[start : self.next_file], child


class Excluded(NamedTuple):
    """A name that a walk left out because it is hidden or ignored."""

    path: str  # relative to the root
    below: str  # relative to the start of the walk
    entry: DirEntry


@dataclass(slots=True)
class LeftOut:
    """Counts of the names that were left out, and the first of the hidden and ignored ones."""

    counts: Counter[str] = field(default_factory=Counter[str])
    rules: Counter[IgnoreRule] = field(default_factory=Counter["IgnoreRule"])
    excluded: list[Excluded] = field(default_factory=list[Excluded])

    @classmethod
    def sum(cls, parts: Iterable["LeftOut"]) -> "LeftOut":
        """Return the sum of several records."""
        total = cls()
        for part in parts:
            total.counts.update(part.counts)
            total.rules.update(part.rules)
            total.excluded += part.excluded[: MAX_EXCLUDED - len(total.excluded)]
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
