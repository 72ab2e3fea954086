"""The files that `grep` searches, in order."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from operator import itemgetter
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

from agentfs.base import call_context
from agentfs.errors import AgentFSError
from agentfs.fs import Directory, DirEntry, Root, display_name
from agentfs.limits import Limits
from agentfs.patterns.literals import SkipReason
from agentfs.results import GlobResult, Skipped
from agentfs.search.first_paths import FirstPaths
from agentfs.search.names import NameFilter
from agentfs.search.options import GrepOptions, paths_of
from agentfs.shown.outputs import Output
from agentfs.tree.ignore_sources import with_slash
from agentfs.tree.visit import Excluded, Visit
from agentfs.tree.walk import path_order
from agentfs.watch.kept_walk import SearchWalk, search_walk

Skipping = SkipReason | Literal["timeout"]
# The result of reading a file: content that may match, or the reason why the file is skipped.
FileBytes = bytes | Skipping
Attempt = FileBytes | Output | OSError | AgentFSError


class Named(NamedTuple):
    """A file that is given by its path from the root, or a kept text by its name."""

    name: str


class Reader(Protocol):
    """A directory, or a `FileSource`, which reads files by their paths."""

    def path_of(self, listed: Any) -> str:
        """Return the path of a file as it is displayed."""
        ...

    def read_files(self, entries: Sequence[Any], read: Callable[[Any], Any]) -> Iterator[tuple[Any, Any]]:
        """Read one file after the other; see `Directory.read_files`."""
        ...


Found: TypeAlias = tuple[Reader, Any]  # a file, after its reader


@dataclass(eq=False)
class FileSource:
    """The files of one search: iterate `batches` once, then read `skipped`."""

    _root: Root
    _limits: Limits
    _options: GrepOptions
    _deadline: float
    _among: Sequence[Excluded] | None  # if given, search only these names, which an earlier search excluded
    _texts: Mapping[str, str]  # kept texts by name

    def __post_init__(self) -> None:
        self._paths = paths_of(self._options.path)
        self._walk: SearchWalk | None = None
        self._reached: str | None = None  # a limit that ended the search of an excluded directory
        self.stops_when_full = (
            self._options.output_mode == "files_with_matches" and self._options.limit is not None
        )
        self.is_one_file = False  # the call is for one file, so an error of the file is raised
        self._first: FirstPaths[tuple[str, str]] | None = None  # if several paths may lead to a file
        if self._options.follow_symlinks or self._options.unique or len(self._paths) > 1:
            self._first = FirstPaths()

    @property
    def excluded(self) -> list[Excluded]:
        """The first hidden and ignored names that were skipped."""
        return [] if self._walk is None else self._walk.excluded

    @property
    def skipped(self) -> Skipped:
        """Counts of what has been skipped so far."""
        skipped = Skipped() if self._walk is None else self._walk.skipped
        return skipped if self._reached is None else replace(skipped, reached=self._reached)

    def batches(self) -> Iterator[list[Found]]:
        """Find the files in the requested order."""
        listed = self._options.listed
        if listed is not None:
            yield from self._listed(listed)
            return
        if self._among is not None:
            yield from self._excluded(self._among)
            return
        directories: list[str] = []
        files: list[str] = []
        for path in self._paths:
            is_dir = path not in self._texts and (path == "." or self._root.entry(path).is_dir)
            (directories if is_dir else files).append(path)
        in_order = self._options.sort == "path" and not self._options.unique
        if in_order or len(files) == len(self._paths) == 1:
            yield from self._single(files)
            yield from self._tree(directories)
        else:
            found: dict[str, Found | None] = {file.name: None for ((_, file),) in self._single(files)}
            for batch in self._tree(directories):
                for reader, entry in batch:
                    is_kept = hasattr(entry, "content")  # then its directory need not be open
                    found.setdefault(reader.path_of(entry), (reader, entry) if is_kept else None)
            if self._first is not None:
                found.update((path, None) for _, path in self._first.only_linked())
            for path in self._sorted(found):
                yield [found[path] or self._file(path)]

    def _sorted(self, files: Iterable[str]) -> list[str]:
        """Return files in the requested order; files with equal keys in order of path."""
        if self._options.sort in {"path", "reverse"}:
            return sorted(files, key=path_order, reverse=self._options.sort == "reverse")
        keyed: list[tuple[float, list[str], str]] = []
        for path in files:
            call_context.step(0)
            if time.monotonic() > self._deadline:
                raise TimeoutError
            try:
                key = self._sort_key(path)
            except (AgentFSError, OSError):
                continue  # the file was deleted after it was listed
            keyed.append((key if self._options.sort == "oldest" else -key, path.split("/"), path))
        return [path for _, _, path in sorted(keyed, key=itemgetter(0, 1))]

    def _sort_key(self, path: str) -> float:
        if path in self._texts:
            return float(len(self._texts[path])) if self._options.sort == "size" else 0.0
        entry = self._root.entry(path)
        size, mtime = entry.size, entry.mtime
        if entry.type == "symlink":  # use the size and time of its target
            with self._root.open_file(path) as opened:
                size, mtime = opened.stat.st_size, opened.stat.st_mtime
        return float(size or 0) if self._options.sort == "size" else (mtime or 0.0)

    def _listed(self, files: list[str]) -> Iterator[list[Found]]:
        """Find the files that were passed by path; results of `glob` may no longer exist."""
        filter_ = NameFilter(self._root, self._options, ["."], unseen=True)
        if isinstance(self._options.files, GlobResult):
            yield [self._file(path) for path in files if filter_.takes_path(path)]
            return
        self._first = FirstPaths()
        for ((_, file),) in self._single(files):
            if filter_.takes_path(file.name):
                yield [(self, file)]

    def _single(self, paths: list[str]) -> Iterator[list[Found]]:
        self.is_one_file = len(paths) == len(self._paths) == 1
        for path in paths:
            if path in self._texts:
                yield [self._file(path)]
                continue
            entry = self._root.entry(path)
            shown = entry.path
            if entry.type == "symlink" and entry.target is None:
                with self._root.open_file(path):  # raises, because the link leads outside
                    pass
            if self._first is not None:
                found_as = self._real_path(shown) if self._options.unique else shown
                if not self._first.add(found_as, found_as, (path_order(shown), shown)):
                    continue
            yield [self._file(shown)]

    def _file(self, path: str) -> Found:
        return self, Named(path)

    def _real_path(self, path: str) -> str:
        try:
            with self._root.open_file(path) as opened:
                return opened.real_path
        except AgentFSError:
            return path  # the error is reported when the file is searched

    def path_of(self, listed: Named) -> str:
        """Return the path of a file as it is displayed."""
        return display_name(listed.name)

    def read_files(self, entries: Sequence[Named], read: Callable[[Any], Any]) -> Iterator[tuple[Named, Any]]:
        """Read files by their paths, and kept texts by their names."""
        for file in entries:
            if file.name in self._texts:
                yield file, Output(self._texts[file.name])
                continue
            try:
                with self._root.open_file(file.name) as opened:
                    outcome = read(opened.fd)
            except (OSError, AgentFSError) as error:
                yield file, error
            else:
                if outcome is not None:
                    yield file, outcome

    def _tree(self, directories: list[str]) -> Iterator[list[Found]]:
        if not directories:
            return
        options = self._options
        filter_ = NameFilter(self._root, options, directories)
        walk = search_walk(self._root)(
            self._root,
            directories,
            max_entries=self._limits.walk_entries,
            deadline=self._deadline,
            hidden=filter_.hidden,
            ignored=options.include_ignored,
            depth=options.max_depth or 0,
            follow=options.follow_symlinks,
            enter=filter_.enter,
            reaches=filter_.reaches,
            exclude=filter_.excludes,
            stops=self.stops_when_full,
            filters=filter_.key,
        )
        yield from self._walked(walk, filter_)

    def _walked(self, walk: SearchWalk, filter_: NameFilter, start: str = "") -> Iterator[list[Found]]:
        """Find the files of a walk; `start` is the prefix of its paths for globs."""
        self._walk = walk
        if self._first is None and (kept := walk.replayable()) is not None:

            def files_of(visits: Iterable[Visit]) -> list[Found]:
                return [
                    (visit.directory, entry)
                    for visit in visits
                    for entry in filter_.of(start + visit.below, visit.files)
                ]

            yield kept.derived(filter_.key, files_of)
            return
        for visit in walk:
            directory, entries = visit.directory, filter_.of(start + visit.below, visit.files)
            if self._first is not None:
                entries = self._unseen(directory, entries, self._first)
            if walk.follow and any(entry.is_symlink() for entry in entries):
                yield from ([self._file(directory.path_of(entry))] for entry in entries)
            else:
                yield list(zip(repeat(directory), entries))

    def _unseen(
        self, directory: Directory, entries: Sequence[DirEntry], first: FirstPaths[tuple[str, str]]
    ) -> list[DirEntry]:
        """Return the files that the search has not found by another path; keep those that links lead to."""
        unseen: list[DirEntry] = []
        prefix = with_slash(directory.path)
        for entry in entries:
            path = prefix + entry.name
            real_path = directory.real_path_of(entry) if self._options.unique else path
            if first.add(real_path, path, (path_order(path), display_name(path))):
                unseen.append(entry)
        return unseen

    def _excluded(self, among: Sequence[Excluded]) -> Iterator[list[Found]]:
        """Find the files among names that an earlier walk excluded, with the same globs and types.

        `Limits.walk_entries` bounds all of them together. Each directory gets its share.
        """
        directories = [path for path in self._paths if self._root.entry(path).is_dir]
        filter_ = NameFilter(self._root, self._options, directories, unseen=True)
        ordered = sorted(among, key=lambda each: path_order(each.path))
        kinds = [each.entry.is_dir(follow_symlinks=False) for each in ordered]
        left, directories_left = self._limits.walk_entries, sum(kinds)
        for (path, below, entry, _), is_dir in zip(ordered, kinds, strict=True):
            directories_left -= is_dir
            if filter_.skips(below, is_dir=is_dir):
                continue
            if entry.is_file(follow_symlinks=False):
                if filter_.of(below[: -len(entry.name)], [entry]):
                    yield [self._file(display_name(path))]
            elif is_dir and (self._options.max_depth or 0) == 0:
                walk = self._below(path, f"{below}/", filter_, max(left // (directories_left + 1), 1))
                yield from self._walked(walk, filter_, f"{below}/")
                left -= walk.looked_at
                self._reached = walk.skipped.reached or self._reached
                if self._reached == "timeout":
                    return

    def _below(self, path: str, start: str, filter_: NameFilter, max_entries: int) -> SearchWalk:
        """Return a walk of everything in an excluded directory."""
        return search_walk(self._root)(
            self._root,
            [display_name(path)],
            max_entries=max_entries,
            deadline=self._deadline,
            hidden=True,
            ignored=True,
            exclude=lambda below, is_dir: filter_.skips(start + below, is_dir=is_dir),
        )
