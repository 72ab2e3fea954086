"""Which files a search of contents opens, and in which order."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from typing import Any, Final, Literal, TypeAlias

from agentfs import call_context
from agentfs.errors import AgentFSError
from agentfs.fs import DirEntry, Root, display_name
from agentfs.limits import Limits
from agentfs.patterns.prefilter import SkipReason
from agentfs.results import Entry, GlobResult, Skipped
from agentfs.search.collect import bind_globs
from agentfs.search.options import GrepOptions, as_list, opens_hidden, paths_of
from agentfs.tree.globs import compile_exclude, compile_globs, compile_pruning, hidden_names
from agentfs.tree.ignore_sources import with_slash
from agentfs.tree.types import compile_types
from agentfs.tree.walk import Excluded, KeptWalk, Visit, Walk, path_order

Skipping = SkipReason | Literal["timeout"]
COUNTED: Final = "counted"  # of a kept text in which matches are only counted
# What reading a descriptor comes to: the content that may match, or why not.
Reading = bytes | Skipping | Literal["counted"]
ReadFile: TypeAlias = Callable[
    [Any], Reading | None
]  # given a descriptor or a kept entry; None passes over a file without a match
Outcome = Reading | OSError | AgentFSError


@dataclass(slots=True)
class FileBatch:
    """Files to be read one after the other in the same way; see `Directory.read_files`."""

    prefix: str  # what precedes each name in its path
    names: list[Any]  # as the system spells them; entries for files of the kept tree
    read: Callable[[Sequence[Any], ReadFile], Iterator[tuple[Any, Outcome]]]
    named: bool = False  # whether it is the one file that was asked for: an error of it is one of the call
    kept_path: Callable[[Any], str] | None = None  # for files of the kept tree, the path of one

    def path(self, name: Any) -> str:
        """Return the path of a file."""
        return display_name(self.prefix + name) if self.kept_path is None else self.kept_path(name)


class _Filter:
    """The globs and types of a search, bound to the directories that it searches."""

    def __init__(self, root: Root, options: GrepOptions, directories: list[str], *, hidden: bool) -> None:
        self.globs = globs = bind_globs(root, as_list(options.glob), directories)
        exclude = bind_globs(root, as_list(options.exclude), directories)
        types = as_list(options.type)
        self.excludes = compile_exclude(exclude) if exclude else None
        self.prunes = compile_pruning(globs)
        self._has_type = compile_types(types) if types else None
        self._fits = compile_globs(globs, hidden=hidden) if globs else None

    def names(self, below: str, names: list[str]) -> list[str]:
        """Return those of the names in a directory, given by its path below the start, that are searched."""
        if (has_type := self._has_type) is not None:
            names = [name for name in names if has_type(name)]
        if (fits := self._fits) is not None:
            names = [name for name in names if fits(below + name)]
        return names

    def takes_path(self, path: str) -> bool:
        """Return whether a file is searched that was given by its path from the root."""
        parts = path.split("/")
        if self.excludes is not None and (
            self.excludes(path, False)
            or any(self.excludes("/".join(parts[:count]), True) for count in range(1, len(parts)))
        ):
            return False
        return bool(self.names("".join(f"{part}/" for part in parts[:-1]), parts[-1:]))

    def skips(self, below: str, is_dir: bool) -> bool:
        """Return whether an entry is left out by `exclude`, or a directory by a glob."""
        return (self.excludes is not None and self.excludes(below, is_dir)) or (
            is_dir and self.prunes is not None and self.prunes(below)
        )


@dataclass(eq=False)
class FileSource:
    """The files of one search: iterate `batches` once, then ask what was skipped."""

    _root: Root
    _limits: Limits
    _options: GrepOptions
    _deadline: float
    _among: Sequence[Excluded] | None  # names that an earlier search excluded, to search just those

    def __post_init__(self) -> None:
        self._paths = paths_of(self._options.path)
        self._walk: Walk | None = None
        self._seen: set[str] | None = None
        if self._options.follow_symlinks or self._options.unique or len(self._paths) > 1:
            self._seen = set()

    @property
    def excluded(self) -> list[Excluded]:
        """The first hidden and ignored names that were skipped."""
        return [] if self._walk is None else self._walk.excluded

    @property
    def skipped(self) -> Skipped:
        """What has been skipped so far."""
        return Skipped() if self._walk is None else self._walk.skipped

    def batches(self) -> Iterator[FileBatch]:
        """Find the files, in the order that was asked for."""
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
            (directories if self._root.entry(path).is_dir else files).append(path)
        if self._options.sort == "path" or len(files) == len(self._paths) == 1:
            yield from self._single(files)
            yield from self._tree(directories)
        else:
            found = [*files]
            for batch in self._tree(directories):
                if (path_of := batch.kept_path) is not None:  # it is the only one
                    batch.names = self._sorted(batch.names, path_of, self._root.kept_entry)
                    yield batch
                    return
                found += map(batch.path, batch.names)
            for path in self._sorted(found, str, self._root.entry):
                yield FileBatch("", [path], self._read)

    def _sorted(
        self, files: list[Any], path_of: Callable[[Any], str], entry_of: Callable[[Any], Entry]
    ) -> list[Any]:
        """Return files in order of their size or time, and of their path where that is the same."""
        keyed: list[tuple[float, list[str], Any]] = []
        for file in dict.fromkeys(files):
            call_context.step(0)
            if time.monotonic() > self._deadline:
                raise TimeoutError
            try:
                key = self._sort_key(entry_of(file))
            except (AgentFSError, OSError):
                continue  # gone since it was listed
            keyed.append((key if self._options.sort == "oldest" else -key, path_of(file).split("/"), file))
        return [file for _, _, file in sorted(keyed, key=itemgetter(0, 1))]

    def _sort_key(self, entry: Entry) -> float:
        size, mtime = entry.size, entry.mtime
        if entry.type == "symlink":  # what counts is what it leads to
            with self._root.open_file(entry.path) as opened:
                size, mtime = opened.stat.st_size, opened.stat.st_mtime
        return float(size or 0) if self._options.sort == "size" else (mtime or 0.0)

    def _listed(self, files: list[str]) -> Iterator[FileBatch]:
        """Find the files that were asked for one by one; what `find` has found may be gone since."""
        filter_ = _Filter(self._root, self._options, ["."], hidden=False)
        if isinstance(self._options.files, GlobResult):
            batches = iter([FileBatch("", files, self._read)])
        else:
            self._seen = set()
            batches = self._single(files)
        for batch in batches:
            batch.names = [path for path in batch.names if filter_.takes_path(path)]
            yield batch

    def _single(self, paths: list[str]) -> Iterator[FileBatch]:
        named = len(paths) == len(self._paths) == 1
        for path in paths:
            entry = self._root.entry(path)
            shown = entry.path
            if entry.type == "symlink" and entry.target is None:
                with self._root.open_file(path):  # it leads outside, which this raises
                    pass
            if self._seen is not None:
                found_as = self._real_path(shown) if self._options.unique else shown
                if found_as in self._seen:
                    continue
                self._seen.add(found_as)
            yield FileBatch("", [shown], self._read, named=named)

    def _real_path(self, path: str) -> str:
        try:
            with self._root.open_file(path) as opened:
                return opened.real_path
        except AgentFSError:
            return path  # what is wrong with it is reported when it is searched

    def _read(self, paths: Sequence[str], read: ReadFile) -> Iterator[tuple[str, Outcome]]:
        for path in paths:
            try:
                with self._root.open_file(path) as opened:
                    outcome = read(opened.fd)
            except (OSError, AgentFSError) as error:
                yield path, error
            else:
                if outcome is not None:
                    yield path, outcome

    def _tree(self, directories: list[str]) -> Iterator[FileBatch]:
        if not directories:
            return
        options = self._options
        hidden = opens_hidden(options)
        filter_ = _Filter(self._root, options, directories, hidden=hidden)
        prunes = filter_.prunes
        self._walk = walk = Walk(
            self._root,
            directories,
            max_entries=self._limits.walk_entries,
            deadline=self._deadline,
            hidden=hidden or hidden_names(filter_.globs) or False,
            ignored=options.include_ignored,
            depth=options.max_depth or 0,
            follow=options.follow_symlinks,
            enter=None if prunes is None else lambda below: not prunes(below),
            exclude=filter_.excludes,
            stops=options.stops_when_full,
        )
        if self._seen is None and (kept := walk.whole(only_again=True)) is not None and kept.direct:
            entries = self._kept_entries(kept, filter_)
            root = self._root
            yield FileBatch(
                "",
                entries,
                lambda some, read: root.read_kept(some, read),  # noqa: PLW0108 - mypy binds its type so
                kept_path=root.kept_path,
            )
            return
        linked = self._root.has_linked_secrets()
        for visit in walk:
            prefix = with_slash(visit.path)
            names = filter_.names(visit.below, [listed.name for listed in visit.files])
            if self._seen is not None:
                names = self._unseen(visit, names, self._seen)
            if not (options.follow_symlinks and any(listed.is_symlink() for listed in visit.files)):
                read = partial(visit.directory.read_files, linked=linked)
                yield FileBatch(prefix, names, read)
                continue
            for name in names:
                yield FileBatch("", [display_name(prefix + name)], self._read)

    def _kept_entries(self, kept: KeptWalk, filter_: _Filter) -> list[Any]:
        """Return the files of a kept walk that are searched; the same globs and types have the same ones."""
        types = as_list(self._options.type)
        if not filter_.globs and not types:
            return kept.entries

        def choose(below: str, files: list[DirEntry]) -> list[DirEntry]:
            by_name = {listed.name: listed for listed in files}
            return [by_name[name] for name in filter_.names(below, [*by_name])]

        return kept.once(self._root, (*filter_.globs, None, *types), lambda: kept.choose(choose))

    def _unseen(self, visit: Visit, names: list[str], seen: set[str]) -> list[str]:
        """Return the names of files that were not met by another path, or by another link to them."""
        prefix = with_slash(visit.path)
        found_as = {name: prefix + name for name in names}
        if self._options.unique:
            wanted = (listed for listed in visit.files if listed.name in found_as)
            found_as = {listed.name: visit.directory.real_path_of(listed) for listed in wanted}
        first: dict[str, str] = {}
        for name, path in found_as.items():
            if path not in seen:
                first.setdefault(path, name)
        seen.update(first)
        return list(first.values())

    def _excluded(self, among: Sequence[Excluded]) -> Iterator[FileBatch]:
        """Find the files among what an earlier walk excluded, by the globs and types of that one."""
        directories = [path for path in self._paths if self._root.entry(path).is_dir]
        filter_ = _Filter(self._root, self._options, directories, hidden=True)
        for path, below, listed in sorted(among, key=lambda each: path_order(each.path)):
            is_dir = listed.is_dir(follow_symlinks=False)
            if filter_.skips(below, is_dir):
                continue
            if listed.is_file(follow_symlinks=False):
                if filter_.names(below[: -len(listed.name)], [listed.name]):
                    yield FileBatch("", [display_name(path)], self._read)
            elif is_dir and (self._options.max_depth or 0) == 0:
                yield from self._excluded_tree(path, f"{below}/", filter_)
                if self.skipped.reached is not None:
                    return

    def _excluded_tree(self, path: str, start: str, filter_: _Filter) -> Iterator[FileBatch]:
        self._walk = walk = Walk(
            self._root,
            [display_name(path)],
            max_entries=self._limits.walk_entries,
            deadline=self._deadline,
            hidden=True,
            ignored=True,
            exclude=lambda below, is_dir: filter_.skips(start + below, is_dir),
        )
        for visit in walk:
            names = filter_.names(start + visit.below, [listed.name for listed in visit.files])
            yield FileBatch(with_slash(visit.path), names, partial(visit.directory.read_files, linked=True))
