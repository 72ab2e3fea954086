"""What a walk knows of one directory, and what it leaves out there."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from operator import attrgetter
from typing import NamedTuple

from agentfs.fs import Directory, DirEntry
from agentfs.tree.gitignore import IgnoreRule, IgnoreRules

entry_name = attrgetter("name")
_NO_ENTRIES: list[DirEntry] = []  # of every visit until its directory is scanned


class Visit:
    """A directory that a walk is inside of, and a run of its files with no directory between them.

    There is one for each directory. The walk yields it again for each run: `files`, `child` and `more`
    change then.
    """

    child: DirEntry | None = None  # the directory behind the run, if the walk has `directories`
    more = 0  # files behind the run that were not kept
    closed = False
    memory = 0
    unkept = 0  # files beyond `keep`
    first_file = next_directory = 0  # what comes next
    deciding: frozenset[str] | None = frozenset()  # those of `DECIDING`; None if unknown
    steps: Iterator[DirEntry | None]  # what `runs` yields

    def __init__(self, directory: Directory, below: str, depth: int, rules: IgnoreRules) -> None:
        self.directory = directory  # open while this visit is the current one
        self.path = directory.path  # relative to the root; "" for the root
        self.below = below  # relative to the start of the walk, with a `/` at its end; "" for the start
        self.depth = depth  # 1 for the start of the walk, 2 for the directories in it
        self.rules = rules  # those of its parent, until it is scanned
        # Those of the run; with links and special files if the walk has `others`.
        self.files = self.all_files = self.directories = _NO_ENTRIES

    def entries(self, *, directories_first: bool) -> list[DirEntry]:
        """Return the files and the directory in the order of the walk."""
        if self.child is None:
            return self.files
        return [self.child, *self.files] if directories_first else [*self.files, self.child]

    def runs(self, *, descends: bool, directories_first: bool) -> Iterator[DirEntry | None]:
        """Take the files run by run, and yield the directory behind each run; None behind the last."""
        files, first, count = self.all_files, 0, len(self.all_files)
        for child in self.directories if descends else ():
            self.next_directory += 1
            self.files = _NO_ENTRIES
            if first < count and not directories_first and files[first].name < child.name:
                self.first_file = bisect_left(files, child.name, first, key=entry_name)
                self.files = files[first : self.first_file]
                first = self.first_file
            yield child
        self.first_file = len(files)
        self.files, self.more = files[first:] if first else files, self.unkept
        yield None


class Excluded(NamedTuple):
    """A name that a walk left out because it is hidden or ignored."""

    path: str  # relative to the root
    below: str  # relative to the start of the walk
    entry: DirEntry


@dataclass(slots=True)
class LeftOut:
    """Counts of the names that were left out, and the first names that are hidden or ignored."""

    counts: Counter[str] = field(default_factory=Counter[str])
    rules: Counter[IgnoreRule] = field(default_factory=Counter["IgnoreRule"])
    excluded: list[Excluded] = field(default_factory=list[Excluded])


NOTHING = LeftOut()


class KeptContents(NamedTuple):
    """What a walk takes from a directory, kept with a listing for as long as that does not change."""

    deciding: frozenset[str] | None
    rules: IgnoreRules
    files: list[DirEntry]
    directories: list[DirEntry]
    looked_at: int  # names
    left_out: LeftOut
