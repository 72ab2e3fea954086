"""The search of `ls` and `glob`: walk, filter, sort, and cut to a page of entries."""

import os
import stat
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial
from operator import itemgetter
from typing import Any, TypeAlias, TypeVar

from agentfs.base import call_context
from agentfs.base.advice import plural
from agentfs.errors import AgentFSError, past_end
from agentfs.fs import Directory, DirEntry, Root, display_name
from agentfs.limits import Limits
from agentfs.results import Entry, Skipped
from agentfs.search.names import NameFilter
from agentfs.search.options import (
    GlobOptions,
    ListOptions,
    as_list,
    opens_hidden,
    parse_moment,
    parse_size,
    parse_types,
    paths_of,
)
from agentfs.shown.workspace_context import Context
from agentfs.text.display import most_characters
from agentfs.tree.globs import compile_exclude
from agentfs.tree.ignore_sources import with_slash
from agentfs.tree.walk import Excluded, Visit, entry_name, path_order
from agentfs.watch.kept_walk import SearchWalk, search_walk

PAGE_BYTES = 64 * 1024 * 1024  # size of the typed data of one page
ENTRY_BYTES = 560  # measured minimum for an entry and its bookkeeping
_BYTES_PER_TOKEN = 1024  # bytes of a page for each token of `Limits.output_tokens`
_MAX_SORTED = 500_000  # paths to sort; each takes about 300 bytes

Noun: TypeAlias = tuple[str, str]  # for one and for several
NamedEntries: TypeAlias = tuple[Callable[[Any], Entry], list[Any]]  # an entry factory and its arguments
_T = TypeVar("_T")


class Page:
    """The numbers of the entries to return; the page ends early if memory or time runs out."""

    def __init__(self, first: int, size: int, max_bytes: int, max_characters: int = sys.maxsize) -> None:
        self._bytes_left, self._characters_left = max_bytes, max_characters
        self.first = first
        self.end = first + min(size, max_bytes // ENTRY_BYTES)

    def part(self, entries: list[_T], number: int) -> list[_T]:
        """Return the entries that are on the page; `number` is the number of the first entry."""
        return entries[max(self.first - number, 0) : max(self.end - number, 0)]

    def take(self, number: int, size: int, characters: int = 0) -> None:
        """Count the bytes of an entry and the characters that are shown; end the page if none are left."""
        self._bytes_left -= size
        self._characters_left -= characters
        if self.is_full:
            self.end_before(number + 1)

    @property
    def is_full(self) -> bool:
        """True if more entries fit neither into the memory nor into the text."""
        return self._bytes_left <= 0 or self._characters_left <= 0

    def end_before(self, number: int) -> None:
        """End the page before this entry, unless it already ends sooner."""
        self.end = min(self.end, max(number, self.first))


def page_of(limit: int | None, offset: int, default: int, limits: Limits) -> Page:
    """Return the page of a call; a model gets no more entries than fit into `Limits.output_tokens`."""
    size = default if limit is None else limit
    call = call_context.current.get()
    if call is None or call.tool is None:
        return Page(offset, size, PAGE_BYTES)
    tokens = limits.output_tokens
    max_bytes = min(_BYTES_PER_TOKEN * tokens, PAGE_BYTES)
    return Page(offset, min(size, tokens), max_bytes, most_characters(limits))


def check_offset(offset: int, total: int, noun: Noun) -> None:
    """Raise `past_end` for an offset after the last entry; 0 is always valid."""
    if offset and offset >= total:
        raise past_end(f"The result has {plural(total, *noun)}", offset, 0, total - 1, total=total)


class _StatusFilter:
    """The filters of `glob` other than names: type, size and time."""

    def __init__(self, options: GlobOptions) -> None:
        within, before, sizes = options.changed_within, options.changed_before, options.size or ()
        self.types = parse_types(options.types)  # letters of `ENTRY_TYPES`
        self._sizes = [parse_size(size) for size in ([sizes] if isinstance(sizes, str) else sizes)]
        self._after = None if within is None else parse_moment(within, "changed_within")
        self._before = None if before is None else parse_moment(before, "changed_before")
        self._follow = options.follow_symlinks
        self._links_as_files = options.links_as_files
        kinds = self.types & frozenset("fdl") | frozenset("f" if "x" in self.types else "")
        # The kinds that pass: letters of `f d l`, and "o" for any other kind.
        self.kinds = kinds or frozenset("fd" if "e" in self.types else "fdlo")
        moments = within, before
        self._tests_status = bool(self._sizes or self.types & {"x", "e"}) or moments != (None, None)

    def takes(self, directory: Directory, listed: DirEntry) -> bool:
        """Return True if an entry of an open directory passes; a vanished entry does not."""
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
            if self._follow and (status := directory.target_status(listed)) is not None:
                mode = status.st_mode
                kind = "f" if stat.S_ISREG(mode) else "d" if stat.S_ISDIR(mode) else "o"
            elif self._links_as_files and "l" not in self.types and not directory.entry(listed).is_dir:
                kind = "f"
        if kind not in self.kinds:
            return False
        if not self._tests_status:
            return True
        if status is None:
            status = listed.stat(follow_symlinks=False)
        return not (
            ("x" in self.types and not status.st_mode & 0o111)
            or ("e" in self.types and not _is_empty(directory, listed, kind, status))
            or (self._sizes and (kind != "f" or not all(fits(status.st_size) for fits in self._sizes)))
            or (self._after is not None and status.st_mtime <= self._after)
            or (self._before is not None and status.st_mtime >= self._before)
        )


def _is_empty(directory: Directory, listed: DirEntry, kind: str, status: os.stat_result) -> bool:
    if kind != "d" or listed.is_symlink():
        return kind == "f" and status.st_size == 0
    with directory.open_directory(listed.name) as opened:
        return not any(opened.scan_parts(1))


@dataclass
class FoundEntries:
    """One page of entries, with the total and the counts of vanished and skipped entries."""

    page: Page
    entries: list[Entry] = field(default_factory=list[Entry])
    total: int = 0
    vanished: int = 0
    skipped: Skipped = field(default_factory=Skipped)
    reached: str | None = None
    depth: int = 0  # for `ls(depth=0)`: how many levels were listed, if not all
    excluded: list[Excluded] = field(default_factory=list[Excluded])  # if nothing was found

    @property
    def exact(self) -> bool:
        """True if the total is exact."""
        return self.skipped.reached is None


def with_counts(skipped: Skipped, more: Mapping[str, int], reached: str | None) -> Skipped:
    """Add counts by reason to those of a walk; `reached` is the limit that ended the search, if any."""
    summed = {name: getattr(skipped, name) + count for name, count in more.items()}
    return replace(skipped, reached=reached or skipped.reached, **summed)


def find_entries(
    context: Context,
    options: ListOptions | GlobOptions,
    *,
    page: Page | None = None,
    seconds: float | None = None,
) -> FoundEntries:
    """Return one page of entries for `ls` or `glob`; it can end early for memory or time."""
    root, _, limits, _ = context
    given = call_context.granted(options.timeout, limits.timeout) if seconds is None else seconds
    deadline = call_context.deadline(given)
    default = limits.list_entries if isinstance(options, ListOptions) else limits.glob_results
    page = page or page_of(options.limit, options.offset, default, limits)
    if isinstance(options, ListOptions):
        return _list(root, limits, options, page, deadline)
    return _GlobSearch(root, limits, options, deadline).collect(page)


def _list(root: Root, limits: Limits, options: ListOptions, page: Page, deadline: float) -> FoundEntries:
    """List directories in order; with `depth=0`, only as many levels as fit on a usual page."""
    paths, exclude = paths_of(options.path), as_list(options.ignore)
    levels: Counter[int] = Counter()  # numbers of entries

    def collect(page: Page, depth: int) -> FoundEntries:
        walk = search_walk(root)(
            root,
            paths,
            max_entries=limits.walk_entries,
            deadline=deadline,
            hidden=opens_hidden(options),
            ignored=options.include_ignored,
            depth=depth,
            others=True,
            directories=True,
            listing=True,
            exclude=compile_exclude(exclude) if exclude else None,
            key=entry_name if options.sort == "name" else partial(_sort_key, sort=options.sort),
            filters=tuple(exclude),
        )
        found = _collect_in_order(_listed_names(walk, levels, several=len(paths) > 1), page, deadline)
        found.skipped = with_counts(walk.skipped, {"unreadable": found.vanished}, found.reached)
        return found

    found = collect(copy(page), options.depth)
    if options.depth or found.total <= limits.list_entries:
        return found
    depth = 1
    while sum(levels[each] for each in range(1, depth + 2)) <= limits.list_entries:
        depth += 1
    shallow = collect(page, depth)
    shallow.depth = depth
    return shallow


def _listed_names(walk: SearchWalk, levels: Counter[int], *, several: bool) -> Iterator[NamedEntries]:
    """Yield the names in each directory and count them by level; with `several` paths, each name once."""
    kept, seen = walk.replayable(), set[str]()
    for visit in walk if kept is None else kept.visits:
        names = visit.entries(directories_first=True)
        if several:
            names = new_names(seen, visit.directory, names)
        levels[visit.depth] += len(names)
        yield visit.directory.entry, names


def new_names(seen: set[str], directory: Directory, names: Sequence[DirEntry]) -> list[DirEntry]:
    """Return the names whose real paths are not in `seen`, and add these paths to it."""
    prefix = with_slash(directory.real_path)
    new = [listed for listed in names if prefix + listed.name not in seen]
    seen.update(prefix + listed.name for listed in new)
    return new


def _sort_key(listed: DirEntry, sort: str) -> tuple[float, str]:
    """Return the key that sorts the newest, the oldest or the largest first; 0 if that does not matter."""
    number = 0.0
    with suppress(OSError):
        if sort in {"modified", "oldest"}:
            number = listed.stat(follow_symlinks=False).st_mtime
        elif sort == "size" and not listed.is_dir(follow_symlinks=False):
            number = listed.stat(follow_symlinks=False).st_size
    return number if sort == "oldest" else -number, listed.name


def _collect_in_order(names: Iterable[NamedEntries], page: Page, deadline: float) -> FoundEntries:
    """Collect a page of names that come in order."""
    found = FoundEntries(page)
    try:
        for entry_of, listed in names:
            on_page = page.part(listed, found.total) if found.total < page.end else ()
            for number, each in enumerate(on_page, max(found.total, page.first)):
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
            found.total += len(listed)
    except TimeoutError:
        found.reached = "timeout"
    return found


class _GlobSearch:
    """One search of `glob`."""

    def __init__(self, root: Root, limits: Limits, options: GlobOptions, deadline: float) -> None:
        self._root, self._options, self._deadline = root, options, deadline
        self._status = _StatusFilter(options)
        self._left_out: Counter[str] = Counter()
        paths = paths_of(options.path)
        self._is_several = len(paths) > 1
        self._names = NameFilter(options, directories="d" in self._status.kinds, deadline=deadline)
        self._walk = self._names.walk(root, paths, limits, deadline, others=True)

    def collect(self, page: Page) -> FoundEntries:
        """Walk, and return the page."""
        # One walk in path order yields the page directly; otherwise all entries are collected, then sorted.
        sort, unique, reached = self._options.sort, self._options.unique, None
        batches = ((visit.directory, self._taken(visit)) for visit in self._names.visits(self._walk))
        names: Iterable[NamedEntries] = ((directory.entry, taken) for directory, taken in batches)
        if sort != "path" or unique or self._is_several:
            paths, reached = sorted_paths(batches, sort, unique=unique)
            names = [(self._root.entry, paths)]
        found = _collect_in_order(names, page, self._deadline)
        self._left_out["unreadable"] += found.vanished
        found.skipped = with_counts(self._walk.skipped, self._left_out, found.reached or reached)
        found.excluded = [] if found.total else self._walk.excluded
        return found

    def _taken(self, visit: Visit) -> list[DirEntry]:
        """Return the entries that pass all tests; count links and special files that do not."""
        directory, left_out = visit.directory, self._left_out
        counts_links = self._options.links_as_files
        taken: list[DirEntry] = []
        for listed in visit.files:
            if listed.is_symlink() and not self._names.passes(visit, listed):
                left_out["symlink"] += counts_links and directory.entry(listed).is_dir
            elif self._status.takes(directory, listed):
                taken.append(listed)
            elif counts_links and not listed.is_file(follow_symlinks=False):
                left_out["symlink" if listed.is_symlink() else "special"] += 1
        if visit.child is not None and self._status.takes(directory, visit.child):
            taken.append(visit.child)
        return taken


def sorted_paths(
    batches: Iterable[tuple[Directory, Sequence[DirEntry]]], sort: str, *, unique: bool
) -> tuple[list[str], str | None]:
    """Return the sorted paths of entries, each once, and the limit that ended the walk, if any.

    Args:
        batches: Open directories, each with some of its entries.
        sort: The order, as for `grep`; the path decides between entries that are equal in it.
        unique: Take a file with several links once: by its own path, or by the first link to it.
    """
    first: dict[str, tuple[bool, Any, float, str]] = {}
    reached: str | None = None
    try:
        for real_path, found in _located(batches, sort, unique=unique):
            if len(first) == _MAX_SORTED:
                reached = "memory"
                break
            first[real_path] = min(first.get(real_path, found), found)
    except TimeoutError:
        reached = "timeout"
    in_order = sorted(first.values(), key=itemgetter(1), reverse=sort == "reverse")
    return [path for *_, path in sorted(in_order, key=itemgetter(2))], reached


def _located(
    batches: Iterable[tuple[Directory, Sequence[DirEntry]]], sort: str, *, unique: bool
) -> Iterator[tuple[str, tuple[bool, Any, float, str]]]:
    """Yield the real path of each entry, whether a link leads to it, its two sort keys, and its path."""
    for directory, entries in batches:
        prefix, real_prefix = with_slash(directory.path), with_slash(directory.real_path)
        for listed in entries:
            path, own = prefix + display_name(listed.name), real_prefix + listed.name
            real_path = directory.real_path_of(listed) if unique else own
            is_link = real_path != own or own != prefix + listed.name
            yield real_path, (is_link, path_order(path), _sort_key(listed, sort)[0], path)
