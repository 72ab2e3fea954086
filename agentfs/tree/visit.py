"""The data of a walk: visits, and records of left-out names."""

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field
from operator import attrgetter
from typing import NamedTuple

from agentfs.fs import Directory, DirEntry
from agentfs.tree.gitignore import IgnoreRule, IgnoreRules

MAX_EXCLUDED = 1000  # excluded names that are kept
entry_name = attrgetter("name")


class Visit(NamedTuple):
    """The next files of a directory; a walk gives several if directories come between the files."""

    directory: Directory  # open until the next visit
    below: str  # relative to the start of the walk, with a trailing `/`; "" for the start
    depth: int  # 1 for the start of the walk, 2 for the directories in it
    files: list[DirEntry]  # with links and special files if the walk has `others`
    child: DirEntry | None  # the directory after them, if the walk has `directories`

    @property
    def path(self) -> str:
        """The path of the directory, relative to the root; "" for the root."""
        return self.directory.path

    def entries(self, *, directories_first: bool) -> list[DirEntry]:
        """Return the files and the directory in the order of the walk."""
        if self.child is None:
            return self.files
        return [self.child, *self.files] if directories_first else [*self.files, self.child]


@dataclass(eq=False, slots=True)
class Level:
    """A directory that a walk has entered."""

    directory: Directory
    below: str
    depth: int
    rules: IgnoreRules  # the rules of the parent, until the directory is scanned
    files: list[DirEntry] = field(default_factory=list[DirEntry])
    directories: list[DirEntry] = field(default_factory=list[DirEntry])  # those left, the next one last
    next_file: int = 0
    held: int = 0  # entries in memory

    def advance(self, *, descends: bool, first: bool) -> tuple[list[DirEntry], DirEntry | None]:
        """Return the files up to the next directory, and that directory; None at the end.

        With `first`, directories come before all files.
        """
        start, end, child = self.next_file, len(self.files), None
        if descends and self.directories:
            child = self.directories.pop()
            end = start if first else bisect_left(self.files, child.name, start, key=entry_name)
        self.next_file = end
        return self.files[start:end], child


class Excluded(NamedTuple):
    """A name that a walk left out because it is hidden or ignored."""

    path: str  # relative to the root
    below: str  # relative to the start of the walk
    entry: DirEntry
    rule: IgnoreRule | None = None  # None if it is hidden


@dataclass(slots=True)
class LeftOut:
    """The names that were left out: the first hidden and ignored ones, and counts of all others."""

    excluded: list[Excluded] = field(default_factory=list[Excluded])
    more: Counter[IgnoreRule | None] = field(default_factory=Counter["IgnoreRule | None"])
    counts: Counter[str] = field(default_factory=Counter[str])  # by other reasons
