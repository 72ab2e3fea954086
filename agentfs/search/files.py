"""Which files a search of contents opens, and in which order."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from agentfs import call_context
from agentfs.errors import AgentFSError, InvalidArgumentError
from agentfs.fs import Directory, Root, display_name
from agentfs.limits import Limits
from agentfs.patterns.prefilter import Classify, Verdict
from agentfs.results import GlobResult, Skipped
from agentfs.search.find import bind_to_search
from agentfs.search.paging import as_list
from agentfs.search.request import Request
from agentfs.tree.globs import compile_exclude, compile_globs, compile_pruning, hidden_names
from agentfs.tree.ignore_sources import slashed
from agentfs.tree.types import compile_types
from agentfs.tree.walk import Excluded, Walk, path_order

Outcome = Verdict | OSError | AgentFSError


@dataclass(slots=True)
class FileBatch:
    """Files to be read one after the other in the same way.

    Attributes:
        prefix: What stands before each name in its path.
        names: Their names, as the system spells them.
        sift: Reads those of some names, and yields what is not passed over; see `Directory.read_files`.
        named: Whether it is the one file that was asked for, so that failing to open it is the answer.
        directory: The directory that the names are of; None where they are paths.
    """

    prefix: str
    names: list[str]
    sift: Callable[[Sequence[str], Callable[[int], int], Classify], Iterator[tuple[str, Outcome]]]
    named: bool = False
    directory: Directory | None = None


class SearchFiles:
    """The files of one search: iterate `runs` once, then ask what was left out.

    Args:
        root: The confined root.
        limits: The bounds of the walk.
        request: What was asked for.
        deadline: The `time.monotonic()` at which the walk ends.
        left_out: What an earlier walk left out, to search just that; None for the usual.
    """

    def __init__(
        self,
        root: Root,
        limits: Limits,
        request: Request,
        deadline: float,
        *,
        left_out: Sequence[Excluded] | None = None,
    ) -> None:
        self._root = root
        self._limits = limits
        self._request = request
        self._deadline = deadline
        self._left_out = left_out
        self._walk: Walk | None = None
        self._seen: set[str] | None = None

    @property
    def left_out(self) -> list[Excluded]:
        """The first hidden and ignored names that have been left out."""
        return [] if self._walk is None else self._walk.left_out

    @property
    def skipped(self) -> Skipped:
        """What has been left out so far."""
        return Skipped() if self._walk is None else self._walk.skipped

    def runs(self) -> Iterator[FileBatch]:
        """Find the files, in the order that was asked for.

        Yields:
            Runs of files.

        Raises:
            AgentFSError: A path cannot be searched.
        """
        request = self._request
        if request.listed is not None:
            yield from self._listed(request.listed)
            return
        if self._left_out is not None:
            yield from self._among(self._left_out)
            return
        directories: list[str] = []
        files: list[str] = []
        for path in request.paths:
            (directories if self._root.entry(path).is_dir else files).append(path)
        if len(request.paths) > 1 or request.follow_symlinks or request.dialect.unique_files:
            self._seen = set()
        if request.sort == "path":
            yield from self._single(files)
            if directories:
                yield from self._tree(directories)
            return
        found = list(files)
        for run in self._tree(directories) if directories else ():
            found += [display_name(run.prefix + name) for name in run.names]
        for path in self._ordered(list(dict.fromkeys(found))):
            yield FileBatch("", [path], self._sift)

    def directories(self) -> list[str]:
        """Return the directories to search, links resolved, relative to the root."""
        found: list[str] = []
        for path in self._request.paths:
            if self._root.entry(path).is_dir:
                with self._root.open_directory(path) as directory:
                    found.append(directory.real_path)
        return found

    def _ordered(self, paths: list[str]) -> list[str]:
        keyed: list[tuple[float, list[str], str]] = []
        for path in paths:
            call_context.step(0)
            if time.monotonic() > self._deadline:
                raise TimeoutError
            try:
                key = self._sort_key(path)
            except AgentFSError:
                continue  # gone since it was listed
            keyed.append((key if self._request.sort == "oldest" else -key, path.split("/"), path))
        return [path for _, _, path in sorted(keyed)]

    def _listed(self, files: list[str]) -> Iterator[FileBatch]:
        """Find the files that were asked for one by one; what `find` has found may be gone since."""
        request = self._request
        globs, exclude, types = as_list(request.glob), as_list(request.exclude), as_list(request.type)
        if isinstance(request.files, GlobResult):
            runs = iter([FileBatch("", files, self._sift)])
        else:
            self._seen = set()
            runs = self._single(files)
        fits = compile_globs(self._bound(globs, ["."])) if globs else None
        excluded = compile_exclude(self._bound(exclude, ["."])) if exclude else None
        is_of_type = compile_types(types) if types else None
        for run in runs:
            run.names = [
                name
                for name in run.names
                if (fits is None or fits(name))
                and (excluded is None or not _lies_in_excluded(name, excluded))
                and (is_of_type is None or is_of_type(name[name.rfind("/") + 1 :]))
            ]
            yield run

    def _sort_key(self, path: str) -> float:
        entry = self._root.entry(path)
        size, mtime = entry.size, entry.mtime
        if entry.type == "symlink":  # what counts is what it leads to
            with self._root.open_file(path) as opened:
                size, mtime = opened.stat.st_size, opened.stat.st_mtime
        return float(size or 0) if self._request.sort == "size" else (mtime or 0.0)

    def _single(self, paths: list[str]) -> Iterator[FileBatch]:
        for path in paths:
            entry = self._root.entry(path)
            shown = entry.path
            if entry.type == "symlink" and entry.target is None:
                with self._root.open_file(path):  # it leads outside, which this raises
                    pass
            if self._seen is not None:
                found_as = self._real_path(shown) if self._request.dialect.unique_files else shown
                if found_as in self._seen:
                    continue
                self._seen.add(found_as)
            yield FileBatch("", [shown], self._sift, named=len(paths) == len(self._request.paths) == 1)

    def _real_path(self, path: str) -> str:
        try:
            with self._root.open_file(path) as opened:
                return opened.real_path
        except AgentFSError:
            return path  # what is wrong with it is said when it is searched

    def _sift(
        self, paths: Sequence[str], fill: Callable[[int], int], judge: Classify
    ) -> Iterator[tuple[str, Outcome]]:
        for path in paths:
            try:
                with self._root.open_file(path) as opened:
                    outcome = judge(fill(opened.fd))
            except (OSError, AgentFSError) as error:
                yield path, error
            else:
                if outcome is not None:
                    yield path, outcome

    def _tree(self, directories: list[str]) -> Iterator[FileBatch]:
        request = self._request
        globs = self._bound(as_list(request.glob), directories)
        exclude = self._bound(as_list(request.exclude), directories)
        types = as_list(request.type)
        opens_hidden = request.opens_hidden
        fits = compile_globs(globs, hidden=opens_hidden) if globs else None
        is_of_type = compile_types(types) if types else None
        self._walk = walk = Walk(
            self._root,
            directories,
            max_entries=self._limits.walk_entries,
            deadline=self._deadline,
            hidden=opens_hidden or hidden_names(globs) or False,
            ignored=request.include_ignored,
            depth=request.max_depth or 0,
            follow=request.follow_symlinks,
            enter=_not(compile_pruning(globs)),
            exclude=compile_exclude(exclude) if exclude else None,
        )
        linked = self._root.has_linked_secrets()
        for visit in walk:
            prefix = f"{visit.path}/" if visit.path else ""
            names = [listed.name for listed in visit.files]
            if is_of_type is not None:
                names = [name for name in names if is_of_type(name)]
            if fits is not None:
                below = visit.below
                names = [name for name in names if fits(below + name)]
            if self._seen is not None:
                seen = self._seen
                found_as = {name: prefix + name for name in names}
                if request.dialect.unique_files:
                    wanted = (listed for listed in visit.files if listed.name in found_as)
                    found_as = {listed.name: visit.directory.real_path_of(listed) for listed in wanted}
                first: dict[str, str] = {}
                for name, real_path in found_as.items():
                    if real_path not in seen:
                        first.setdefault(real_path, name)
                seen.update(first)
                names = list(first.values())
            if not request.follow_symlinks:
                sift = partial(visit.directory.read_files, linked=linked)
                yield FileBatch(prefix, names, sift, directory=visit.directory)
                continue
            for name in names:
                yield FileBatch("", [display_name(prefix + name)], self._sift)

    def _among(self, left_out: Sequence[Excluded]) -> Iterator[FileBatch]:
        """Find the files among what an earlier walk left out, by the globs and types of that one."""
        request = self._request
        directories = [path for path in request.paths if self._root.entry(path).is_dir]
        globs = self._bound(as_list(request.glob), directories)
        exclude = self._bound(as_list(request.exclude), directories)
        types = as_list(request.type)
        is_of_type = compile_types(types) if types else None
        fits = compile_globs(globs, hidden=True) if globs else None
        excluded = compile_exclude(exclude) if exclude else None
        pruned = compile_pruning(globs)

        def leaves_out(below: str, is_dir: bool) -> bool:
            return (excluded is not None and excluded(below, is_dir)) or (
                is_dir and pruned is not None and pruned(below)
            )

        def wanted(below: str, name: str) -> bool:
            return (is_of_type is None or is_of_type(name)) and (fits is None or fits(below + name))

        for path, below, listed in sorted(left_out, key=lambda each: path_order(each.path)):
            is_dir = listed.is_dir(follow_symlinks=False)
            if leaves_out(below, is_dir):
                continue
            if listed.is_file(follow_symlinks=False):
                if wanted(below[: -len(listed.name)], listed.name):
                    yield FileBatch("", [display_name(path)], self._sift)
            elif is_dir and (request.max_depth or 0) == 0:
                yield from self._below(path, f"{below}/", wanted, leaves_out)
                if self.skipped.reached is not None:
                    return

    def _below(
        self,
        path: str,
        start: str,
        wanted: Callable[[str, str], bool],
        leaves_out: Callable[[str, bool], bool],
    ) -> Iterator[FileBatch]:
        self._walk = walk = Walk(
            self._root,
            [display_name(path)],
            max_entries=self._limits.walk_entries,
            deadline=self._deadline,
            hidden=True,
            ignored=True,
            exclude=lambda below, is_dir: leaves_out(start + below, is_dir),
        )
        for visit in walk:
            below = start + visit.below
            names = [listed.name for listed in visit.files if wanted(below, listed.name)]
            yield FileBatch(slashed(visit.path), names, partial(visit.directory.read_files, linked=True))

    def _bound(self, globs: list[str], directories: list[str]) -> list[str]:
        bound = [bind_to_search(self._root, globs, path) for path in directories]
        if not bound:
            return globs  # what was a directory is none any more, so they apply to nothing
        if any(each != bound[0] for each in bound):
            raise InvalidArgumentError(
                "An absolute glob means something else for each of several paths.",
                hint="Make it relative.",
                details={"argument": "glob"},
            )
        return bound[0]


def _not(test: Callable[[str], bool] | None) -> Callable[[str], bool] | None:
    return None if test is None else lambda path: not test(path)


def _lies_in_excluded(path: str, excluded: Callable[[str, bool], bool]) -> bool:
    parts = path.split("/")
    return excluded(path, False) or any(
        excluded("/".join(parts[:count]), True) for count in range(1, len(parts))
    )
