"""What `glob` and `find` share: a walk, filtered, put in order, and cut to a page."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from agentfs.errors import AgentFSError
from agentfs.fs import Directory, Root, display_name
from agentfs.policy import NO_DIALECT, DialectOptions
from agentfs.results import Entry, Skipped
from agentfs.search.filters import Filter
from agentfs.search.paging import ENTRY_BYTES, Page
from agentfs.tree.gitignore import Listed
from agentfs.tree.ignore_sources import slashed
from agentfs.tree.walk import PART, Visit, Walk, path_order

_MOST_KEYED = 500_000  # paths that are held with their keys to be put in order, of some 300 bytes each
_BETWEEN_LOOKS = 256  # entries between two looks at the clock

Sort = Literal["path", "modified", "size"]


@dataclass(frozen=True)
class FindQuery:
    """What is looked for.

    Attributes:
        paths: The directories to search.
        matches: A test of the path of a file below the directory that is searched, or None.
        matches_directory: The same for a directory, or None.
        filter: What an entry must be.
        sort: The order.
        hidden: Whether hidden names are searched, or a test of such a name.
        ignored: Whether ignored names are searched.
        follow: Whether links are followed.
        enter: Which directories may be entered, given the path below the directory that is searched.
        exclude: What is excluded, given that path and whether it is a directory.
        min_depth: The first level that counts; 1 is the directory itself.
        max_depth: The last level, or 0 for all.
        count_others: Whether links and special files that match but for their type count as left out.
        dialect: What a dialect asks for besides.
    """

    paths: list[str]
    matches: Callable[[str], bool] | None
    matches_directory: Callable[[str], bool] | None
    filter: Filter
    sort: Sort = "path"
    hidden: bool | Callable[[str], bool] = False
    ignored: bool = False
    follow: bool = False
    enter: Callable[[str], bool] | None = None
    exclude: Callable[[str, bool], bool] | None = None
    min_depth: int = 1
    max_depth: int = 0
    count_others: bool = False
    dialect: DialectOptions = NO_DIALECT


@dataclass
class Collection:
    """What was found.

    Attributes:
        total: How many entries.
        page: Those of the page.
        skipped: What was left out.
    """

    total: int = 0
    page: list[Entry] = field(default_factory=list[Entry])
    skipped: Skipped = field(default_factory=Skipped)


def add_entries(
    entries: list[Entry], page: Page, directory: Directory, listed: list[Listed], number: int, deadline: float
) -> int:
    """Add those of some names of a directory that are of the page, and return how many of them have vanished.

    Args:
        entries: The entries of the page so far.
        page: The page, which ends when memory or time does.
        directory: The directory.
        listed: The names, in order.
        number: The number of the first.
        deadline: The `time.monotonic()` at which the page ends.
    """
    vanished = 0
    for at, each in enumerate(page.part(listed, number), max(number, page.first)):
        if at % _BETWEEN_LOOKS == 0 and at > page.first and time.monotonic() > deadline:
            page.end_before(at)
        if at >= page.end:
            break
        try:
            entries.append(directory.entry(each))
        except AgentFSError:
            vanished += 1
        else:
            page.take(at, ENTRY_BYTES + 2 * len(entries[-1].path))
    return vanished


def collect(root: Root, wanted: FindQuery, page: Page, *, max_entries: int, deadline: float) -> Collection:
    """Search and return one page of what is found.

    Args:
        root: The confined root.
        wanted: What is looked for.
        page: The page, which ends when memory or time does.
        max_entries: Names to look at.
        deadline: The `time.monotonic()` at which the search ends early.

    Raises:
        AgentFSError: Those of the paths: not_found, not_a_directory, outside_workspace, …
    """
    return _Collector(root, wanted, page, deadline).run(max_entries)


class _Collector:
    def __init__(self, root: Root, wanted: FindQuery, page: Page, deadline: float) -> None:
        self.root = root
        self.wanted = wanted
        self.page = page
        self.deadline = deadline
        # One walk in path order meets the page in its order; else all must be known before the first.
        once, plain_order = wanted.dialect.unique_files, wanted.dialect.plain_order
        self.streams = wanted.sort == "path" and len(wanted.paths) == 1 and not once and not plain_order
        self.found = Collection()
        self.keyed: list[tuple[Any, str]] = []  # where all must be known before the first
        self.seen: set[str] = set()
        self.links = self.special = self.vanished = 0
        kinds = wanted.filter.kinds
        self.directories = "d" in kinds
        self.plain_files = wanted.filter == Filter(types=frozenset("f"), links_as_files=True)

    def run(self, max_entries: int) -> Collection:
        wanted = self.wanted
        walk = Walk(
            self.root,
            wanted.paths,
            max_entries=max_entries,
            deadline=self.deadline,
            hidden=wanted.hidden,
            ignored=wanted.ignored,
            depth=wanted.max_depth,
            others=True,
            directories=self.directories,
            follow=wanted.follow,
            enter=wanted.enter,
            exclude=wanted.exclude,
            select=self._select,
            keep=self.page.end if self.streams else None,
        )
        reached: str | None = None
        try:
            for visit in walk:
                if self.streams:
                    self._stream(visit)
                elif visit.child is not None and self._takes_child(visit):
                    self._keep(visit.directory, [visit.child], files=False)
        except TimeoutError:
            reached = "timeout"
        except MemoryError:
            reached = "memory"
        self._cut()
        skipped = walk.skipped
        self.found.skipped = replace(
            skipped,
            symlink=skipped.symlink + self.links,
            special=skipped.special + self.special,
            unreadable=skipped.unreadable + self.vanished,
            reached=skipped.reached or reached,
        )
        return self.found

    def _select(self, directory: Directory, below: str, files: list[Listed]) -> list[Listed]:
        """Return the files of a directory that are wanted, or keep them where all are sorted at the end."""
        wanted = self.wanted
        if wanted.min_depth > 1 and below.count("/") + 1 < wanted.min_depth:
            return []
        matches = wanted.matches
        if matches is not None:
            files = [listed for listed in files if matches(below + listed.name)]
        taken: list[Listed] = []
        for listed in files:
            if (self.plain_files and listed.is_file(follow_symlinks=False)) or wanted.filter.takes(
                directory, listed
            ):
                taken.append(listed)
            elif wanted.count_others and not listed.is_file(follow_symlinks=False):
                self.links += listed.is_symlink()
                self.special += not listed.is_symlink()
        if self.streams:
            return taken
        self._keep(directory, taken)
        return []

    def _takes_child(self, visit: Visit) -> bool:
        wanted, child = self.wanted, visit.child
        matches = wanted.matches_directory
        return (
            child is not None
            and visit.depth >= wanted.min_depth
            and (matches is None or matches(visit.below + child.name))
            and wanted.filter.takes(visit.directory, child)
        )

    def _stream(self, visit: Visit) -> None:
        found = self.found
        files = visit.files
        if visit.child is not None and self._takes_child(visit):
            files = [*files, visit.child]
        self.vanished += add_entries(
            found.page, self.page, visit.directory, files, found.total, self.deadline
        )
        found.total += len(files) + visit.more

    def _keep(self, directory: Directory, found: list[Listed], *, files: bool = True) -> None:
        """Keep the paths of what was found in a directory, each with what it is sorted by."""
        wanted = self.wanted
        prefix, real = slashed(directory.path), slashed(directory.real_path)
        once = wanted.dialect.unique_files
        for listed in found:
            if once or len(wanted.paths) > 1:
                follows = once and files
                found_as = directory.real_path_of(listed) if follows else real + listed.name
                if found_as in self.seen:
                    continue
                self.seen.add(found_as)
            self.found.total += 1
            path = prefix + display_name(listed.name)
            key: Any = path if wanted.dialect.plain_order else path_order(path)
            if wanted.sort in ("modified", "size"):
                try:
                    status = listed.stat(follow_symlinks=False)
                except OSError:
                    self.found.total -= 1
                    self.vanished += 1
                    continue
                key = (-(status.st_mtime if wanted.sort == "modified" else status.st_size), key)
            self.keyed.append((key, path))
        if len(self.keyed) > min(2 * self.page.end + PART, _MOST_KEYED):
            self._keep_first()
            if len(self.keyed) + len(self.seen) > _MOST_KEYED - PART:
                raise MemoryError

    def _keep_first(self) -> None:
        """Drop what comes after the page."""
        self.keyed.sort()
        del self.keyed[self.page.end :]

    def _cut(self) -> None:
        self._keep_first()
        page = self.page
        for number, (_, path) in enumerate(self.keyed[page.first :], page.first):
            if number % _BETWEEN_LOOKS == 0 and number > page.first and time.monotonic() > self.deadline:
                page.end_before(number)
            if number >= page.end:
                break
            try:
                self.found.page.append(self.root.entry(path))
            except AgentFSError:
                self.vanished += 1
            else:
                page.take(number, ENTRY_BYTES + 2 * len(path))
