"""From paths to a page of entries: a walk, filtered, put in order and cut, for `ls`, `glob` and `find`."""

import os
import re
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any, TypeAlias, TypeVar

from agentfs import call_context
from agentfs.errors import AgentFSError, InvalidArgumentError, OutsideWorkspaceError, past_end
from agentfs.fs import Directory, DirEntry, Root, display_name
from agentfs.limits import Limits
from agentfs.messages import Message, ParameterName
from agentfs.results import Entry, Skipped
from agentfs.search.options import FindOptions, GlobOptions
from agentfs.tree.ignore_sources import with_slash
from agentfs.tree.walk import MAX_BATCH, Visit, Walk, path_order
from agentfs.visible import literal

PAGE_BYTES = 64 * 1024 * 1024  # of the typed data of one page
ENTRY_BYTES = 560  # of an entry, at least, and of what is kept of it meanwhile, as measured
_BYTES_PER_TOKEN = 1024  # of a page, for each token that a model can be shown
_MAX_SORTED = 500_000  # paths that are kept with their sort keys, of some 300 bytes each
_PATH = ParameterName("path", quoted=True)
_LITERAL_START = re.compile(r"/+([^*?\[\]{}\\/]+)/")

# Some names, what gives the entry of each, and how many more follow that are only counted.
Names: TypeAlias = tuple[Callable[[Any], Entry], list[Any], int]
_T = TypeVar("_T")


class Page:
    """The entries of a search that are returned, by number: those before memory or time runs out."""

    def __init__(self, first: int, size: int, max_bytes: int) -> None:
        self._bytes_left = max_bytes
        self.first = first
        self.end = first + min(size, max_bytes // ENTRY_BYTES)

    def part(self, entries: list[_T], number: int) -> list[_T]:
        """Return those of consecutive entries that are on the page, given the number of the first."""
        return entries[max(self.first - number, 0) : max(self.end - number, 0)]

    def take(self, number: int, size: int) -> None:
        """Count the bytes of an entry, after which the page ends if none are left."""
        self._bytes_left -= size
        if self.is_full:
            self.end_before(number + 1)

    @property
    def is_full(self) -> bool:
        """Whether there is no memory left for more."""
        return self._bytes_left <= 0

    def end_before(self, number: int) -> None:
        """End the page before an entry, if it does not end sooner."""
        self.end = min(self.end, max(number, self.first))


def page_of(limit: int | None, offset: int, default: int, limits: Limits) -> Page:
    """Return the page of a call; a call from a model gets no more entries than it can be shown."""
    size = default if limit is None else limit
    call = call_context.current.get()
    if call is None or call.tool is None:
        return Page(offset, size, PAGE_BYTES)
    tokens = limits.output_tokens
    return Page(offset, min(size, tokens), min(_BYTES_PER_TOKEN * tokens, PAGE_BYTES))


def check_offset(offset: int, total: int, noun: str) -> None:
    """Raise `past_end` for an offset behind the last entry; 0 is always a start."""
    if offset and offset >= total:
        raise past_end(f"The result has {total} {noun}", offset, 0, total - 1, total=total)


def bind_globs(root: Root, globs: list[str], paths: Sequence[str], argument: str = "glob") -> list[str]:
    """Make absolute globs inside the root relative to the directories that are searched."""
    bound = [[_bound(root, glob, path) for glob in globs] for path in paths]
    if any(each != bound[0] for each in bound):
        raise InvalidArgumentError(
            "An absolute glob means something else for each of several paths.",
            hint="Make it relative.",
            details={"argument": argument},
        )
    return bound[0] if bound else globs


def _bound(root: Root, glob: str, path: str) -> str:
    negation = "!" if glob.startswith("!") else ""
    rest = glob.removeprefix("!")
    top = root.path.rstrip("/")
    if rest.startswith(f"{top}/"):
        with root.top.open_directory(root.path_from_top(path)) as directory:
            base = f"/{directory.path}/" if directory.path else "/"
        if not rest.startswith(top + base):
            message = f"The glob {literal(rest)} does not lie in the search directory {literal(path)}."
            hint = Message("Leave out ", _PATH, ", or make the glob relative to it.")
            raise OutsideWorkspaceError(message, hint=hint, details={"pattern": rest})
        return negation + rest[len(top + base) - 1 :]
    start = None if negation else _LITERAL_START.match(rest)
    if start and start[1] != ".." and not _exists(root, f"{path}/{start[1]}"):
        message = f"The glob {literal(glob)} begins with '/', which means the search directory, "
        message += f"and there is no {literal(start[1])} in it."
        advice = "Only the workspace can be searched: leave out the '/', and put a directory in "
        raise OutsideWorkspaceError(message, hint=Message(advice, _PATH, "."), details={"pattern": glob})
    return glob


def _exists(root: Root, path: str) -> bool:
    try:
        return root.exists(path)
    except AgentFSError:
        return False


@dataclass(frozen=True, slots=True)
class Filter:
    """What an entry must be; the parts that are not set let everything through."""

    types: frozenset[str] = frozenset()  # letters of `ENTRY_TYPES`
    sizes: tuple[Callable[[int], bool], ...] = ()  # tests of a regular file
    after: float | None = None  # changed after this moment
    before: float | None = None
    follow: bool = False  # a link counts as what it leads to
    links_as_files: bool = False  # a link that leads to no directory counts as a file

    @property
    def kinds(self) -> frozenset[str]:
        """The letters of `f d l` that may pass; "o" is any other kind."""
        kinds = self.types & {"f", "d", "l"}
        if "x" in self.types:
            kinds |= {"f"}
        return kinds or frozenset("fd" if "e" in self.types else "fdlo")

    def takes(self, directory: Directory, listed: DirEntry) -> bool:
        """Return whether an entry of an open directory passes; one that vanished does not."""
        try:
            return self._takes(directory, listed)
        except (AgentFSError, OSError):
            return False

    def _takes(self, directory: Directory, listed: DirEntry) -> bool:
        status: os.stat_result | None = None
        kind = "o"
        if listed.is_file(follow_symlinks=False):
            kind = "f"
        elif listed.is_dir(follow_symlinks=False):
            kind = "d"
        elif listed.is_symlink():
            kind = "l"
            if self.follow and (status := directory.target_status(listed)) is not None:
                mode = status.st_mode
                kind = "f" if stat.S_ISREG(mode) else "d" if stat.S_ISDIR(mode) else "o"
            elif self.links_as_files and "l" not in self.types and not directory.entry(listed).is_dir:
                kind = "f"
        if kind not in self.kinds:
            return False
        if not (self.sizes or self.types & {"x", "e"} or self.after is not None or self.before is not None):
            return True
        if status is None:
            status = listed.stat(follow_symlinks=False)
        return not (
            ("x" in self.types and not status.st_mode & 0o111)
            or ("e" in self.types and not _is_empty(directory, listed, kind, status))
            or (self.sizes and (kind != "f" or not all(fits(status.st_size) for fits in self.sizes)))
            or (self.after is not None and status.st_mtime <= self.after)
            or (self.before is not None and status.st_mtime >= self.before)
        )


def _is_empty(directory: Directory, listed: DirEntry, kind: str, status: os.stat_result) -> bool:
    if kind != "d" or listed.is_symlink():
        return kind == "f" and status.st_size == 0
    with directory.open_directory(listed.name) as opened:
        return not any(opened.scan_parts(1))


@dataclass(frozen=True)
class Query:
    """What `glob` and `find` look for; tests are given the path below the directory that is searched."""

    options: GlobOptions | FindOptions
    paths: list[str]
    filter: Filter
    matches: Callable[[str], bool] | None  # of a file
    matches_directory: Callable[[str], bool] | None
    hidden: bool | Callable[[str], bool]  # whether hidden names are searched, or a test of one
    ignored: bool
    enter: Callable[[str], bool] | None
    exclude: Callable[[str, bool], bool] | None  # the second argument says whether it is a directory


@dataclass
class Found:
    """One page of entries, how many there are in all, how many of the page vanished, and what was skipped."""

    entries: list[Entry] = field(default_factory=list[Entry])
    total: int = 0
    vanished: int = 0
    skipped: Skipped = field(default_factory=Skipped)
    reached: str | None = None

    def add_skipped(self, skipped: Skipped, **more: int) -> None:
        """Set what was skipped: what the walk counted, what vanished, and more by reason."""
        counts = {**more, "unreadable": self.vanished}
        summed = {name: getattr(skipped, name) + count for name, count in counts.items()}
        self.skipped = replace(skipped, reached=skipped.reached or self.reached, **summed)


def collect_in_order(names: Iterable[Names], page: Page, deadline: float) -> Found:
    """Collect a page of names that come in order."""
    found = Found()
    try:
        for entry_of, listed, more in names:
            start = max(found.total, page.first)
            for number, each in enumerate(page.part(listed, found.total), start):
                if number > page.first and time.monotonic() > deadline:
                    page.end_before(number)
                if number >= page.end:
                    break
                try:
                    entry = entry_of(each)
                except (AgentFSError, OSError):
                    found.vanished += 1
                else:
                    found.entries.append(entry)
                    page.take(number, ENTRY_BYTES + 2 * len(entry.path))
            found.total += len(listed) + more
    except TimeoutError:
        found.reached = "timeout"
    return found


def collect(root: Root, query: Query, page: Page, *, max_entries: int, deadline: float) -> Found:
    """Search, and return one page of what is found; memory and time can end the page early."""
    collector = _Collector(query, page)
    walk = Walk(
        root,
        query.paths,
        max_entries=max_entries,
        deadline=deadline,
        hidden=query.hidden,
        ignored=query.ignored,
        depth=query.options.max_depth or 0,
        others=True,
        directories="d" in query.filter.kinds,
        follow=query.options.follow_symlinks,
        enter=query.enter,
        exclude=query.exclude,
        select=collector.select,
        keep=page.end if collector.in_order else None,
    )
    if collector.in_order:
        found = collect_in_order(collector.names(walk), page, deadline)
    else:
        found = collector.collect_sorted(root, walk, deadline)
    found.add_skipped(walk.skipped, symlink=collector.links, special=collector.special)
    return found


class _Collector:
    """The filter of one walk, and the paths found by it where all must be known before the first."""

    def __init__(self, query: Query, page: Page) -> None:
        self.query = query
        self.page = page
        self.unique = query.options.unique
        # One walk in path order meets the page in its order; otherwise all is collected, then sorted.
        self.in_order = query.options.sort == "path" and len(query.paths) == 1 and not self.unique
        self.links = self.special = self.total = self.vanished = 0
        self.keyed: list[tuple[Any, str]] = []
        self.seen: set[str] = set()
        self.min_depth = query.options.min_depth or 1
        self.plain_files = query.filter == Filter(types=frozenset("f"), links_as_files=True)

    def select(self, directory: Directory, below: str, files: list[DirEntry]) -> list[DirEntry]:
        """Return the files of a directory that are wanted, or keep them where all is sorted at the end."""
        query = self.query
        if self.min_depth > 1 and below.count("/") + 1 < self.min_depth:
            return []
        if (matches := query.matches) is not None:
            files = [listed for listed in files if matches(below + listed.name)]
        taken = [listed for listed in files if self._takes(directory, listed)]
        if self.in_order:
            return taken
        self._keep(directory, taken)
        return []

    def _takes(self, directory: Directory, listed: DirEntry) -> bool:
        """Return whether an entry passes the filter; count a link or special file that is no file."""
        is_file = listed.is_file(follow_symlinks=False)
        if (self.plain_files and is_file) or self.query.filter.takes(directory, listed):
            return True
        if self.query.filter.links_as_files and not is_file:
            self.links += listed.is_symlink()
            self.special += not listed.is_symlink()
        return False

    def names(self, walk: Walk) -> Iterator[Names]:
        """Yield what is found in each directory."""
        for visit in walk:
            yield visit.directory.entry, [*visit.files, *self._child(visit)], visit.more

    def _child(self, visit: Visit) -> list[DirEntry]:
        """Return the child directory of a visit, if it is wanted."""
        query, child = self.query, visit.child
        if child is None or visit.depth < self.min_depth:
            return []
        matches = query.matches_directory
        wanted = matches is None or matches(visit.below + child.name)
        return [child] if wanted and query.filter.takes(visit.directory, child) else []

    def collect_sorted(self, root: Root, walk: Walk, deadline: float) -> Found:
        """Collect all paths, put them in order, and return the entries of the page."""
        reached: str | None = None
        try:
            for visit in walk:
                self._keep(visit.directory, self._child(visit), files=False)
        except TimeoutError:
            reached = "timeout"
        except MemoryError:
            reached = "memory"
        self._keep_first()
        paths = [path for _, path in self.keyed]
        found = collect_in_order([(root.entry, paths, self.total - len(paths))], self.page, deadline)
        found.vanished += self.vanished
        found.reached = reached
        return found

    def _keep(self, directory: Directory, found: list[DirEntry], *, files: bool = True) -> None:
        """Keep the paths of what was found in a directory, each with its sort key."""
        sort, unique = self.query.options.sort, self.unique
        may_repeat = unique or len(self.query.paths) > 1
        prefix, real_prefix = with_slash(directory.path), with_slash(directory.real_path)
        # Of several names of one file the first counts, whatever the order of the system.
        for listed in sorted(found, key=attrgetter("name")) if unique else found:
            path = prefix + display_name(listed.name)
            key: Any = path_order(path)
            if may_repeat:
                real_path = real_prefix + listed.name
                if unique and files:
                    real_path = directory.real_path_of(listed)
                if real_path in self.seen:
                    continue
                self.seen.add(real_path)
            if sort != "path":
                try:
                    status = listed.stat(follow_symlinks=False)
                except OSError:
                    self.vanished += 1
                    continue
                key = (-(status.st_mtime if sort == "modified" else status.st_size), key)
            self.total += 1
            self.keyed.append((key, path))
        if len(self.keyed) > min(2 * self.page.end + MAX_BATCH, _MAX_SORTED):
            self._keep_first()
            if len(self.keyed) + len(self.seen) > _MAX_SORTED - MAX_BATCH:
                raise MemoryError

    def _keep_first(self) -> None:
        """Drop what comes after the page."""
        self.keyed.sort()
        del self.keyed[self.page.end :]
