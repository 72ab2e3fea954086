"""The files that `grep` searches, in order, and their contents; most files are left out by their bytes.

In a watched tree, one pass over all kept texts leaves out most of them.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Any, Final, NamedTuple, TypeAlias

from agentfs.errors import AgentFSError
from agentfs.fs import BINARY, Directory, DirEntry, KeptText, ReadBuffer, Root, display_name
from agentfs.patterns.line_search import seconds_left
from agentfs.patterns.prefilter import ASCII, NOT_SEARCHED, UTF8, Prefilter, kind_of_text
from agentfs.results import GlobResult
from agentfs.search.entries import new_names, sorted_paths
from agentfs.search.names import NameFilter
from agentfs.search.options import GlobOptions, GrepOptions, paths_of
from agentfs.shown.workspace_context import Context
from agentfs.text.decoding import HEAD, codec_name, is_binary
from agentfs.text.notebook import is_named_notebook
from agentfs.tree.walk import Excluded, path_order
from agentfs.watch.kept_walk import search_walk

_SEARCHED = frozenset({ASCII, UTF8})  # kinds of kept texts that one pass over all kept texts tests
_NOTEBOOK = "notebook"
_FEW_FILES = 30  # fewer files are searched one by one, not by one pass over all kept texts
LARGE: Final = "large"  # the outcome for a file that does not fit into the buffer


class NamedFile(NamedTuple):
    """A file given by its displayed path, or a kept output with its text."""

    name: str
    text: bytes | None = None


@dataclass(frozen=True)
class NamedFiles:
    """Reads files by their paths."""

    root: Root

    def path_of(self, listed: NamedFile) -> str:
        """Return the path of a file as it is displayed."""
        return listed.name

    def read_files(
        self, entries: Sequence[NamedFile], read: Callable[[Any], Any]
    ) -> Iterator[tuple[NamedFile, Any]]:
        """Read files, and the texts of kept outputs."""
        for file in entries:
            if file.text is not None:
                yield file, file.text
                continue
            try:
                with self.root.open_file(file.name) as opened:
                    outcome = read(opened.fd)
            except (OSError, AgentFSError) as error:
                outcome = error
            if outcome is not None:
                yield file, outcome


Reader: TypeAlias = Directory | NamedFiles
FileBatch: TypeAlias = tuple[Reader, Sequence[Any]]  # files that one reader reads


@dataclass(eq=False)
class FileSource:
    """The files of one search: iterate `batches` once, then read `skipped`."""

    context: Context
    options: GrepOptions
    deadline: float

    def __post_init__(self) -> None:
        options, self._root = self.options, self.context.root
        self._paths = paths_of(options.path)
        self._named = NamedFiles(self._root)
        self._names = NameFilter(options)
        self.stops_when_full = options.output_mode == "files_with_matches" and options.limit is not None
        self.is_one_file = False  # the call is for one file, so an error of the file is raised
        # It knows what was skipped.
        self.walk = self._names.walk(self._root, [], self.context.limits, self.deadline)
        self.reached: str | None = None  # the limit that ended the walk of a sorted search

    def batches(self) -> Iterator[FileBatch]:
        """Find the files in the requested order."""
        if (listed := self.options.listed) is not None:
            yield self._named, self._listed(listed)
            return
        directories: list[str] = []
        once: dict[str, NamedFile] = {}
        for path in self._paths:
            file = None if path == "." else self._file(path)
            if file is None:
                directories.append(path)
            else:
                once[file.name] = file
        files = [*once.values()]
        self.is_one_file = len(files) == len(self._paths) == 1
        tree, sort, unique = self._tree(directories, set(once)), self.options.sort, self.options.unique
        if sort != "path" or unique:
            paths, self.reached = sorted_paths(tree, sort, unique=unique)
            files += map(NamedFile, paths)
            tree = iter(())  # not the rest of a walk that ended early
        yield self._named, files
        for directory, entries in tree:
            if self.walk.follow and any(file.is_symlink() for file in entries):
                yield self._named, [NamedFile(directory.path_of(file)) for file in entries]
            else:
                yield directory, entries

    def _file(self, given: str) -> NamedFile | None:
        """Return the file or the kept output of a path or name, or None for a directory."""
        text, path = self.context.outputs.resolve(given, self._root)
        if path is None:
            return NamedFile(given, text.encode("utf-8", "surrogatepass"))
        entry = self._root.entry(path)
        if entry.type == "symlink" and entry.target is None:
            with self._root.open_file(path):  # raises, because the link leads outside
                pass
        return None if entry.is_dir else NamedFile(entry.path)

    def _listed(self, files: Sequence[str]) -> list[NamedFile]:
        """Return the files that were passed by path; those of an earlier result may be gone."""
        named: list[NamedFile] = [NamedFile(path) for path in files]
        if not isinstance(self.options.files, GlobResult):
            named = [self._file(path) or NamedFile(path) for path in files]
            self.is_one_file = len(named) == 1
        names = NameFilter(self.options, unseen=True)
        once: dict[str, NamedFile] = {}  # with `unique` by real path
        for file in named:
            is_real = self.options.unique and file.text is None
            once.setdefault(self._root.resolve(file.name)[1] if is_real else file.name, file)
        return [file for file in once.values() if names.takes_path(file.name)]

    def _tree(self, directories: list[str], seen: set[str]) -> Iterator[tuple[Directory, Sequence[DirEntry]]]:
        """Yield the files in directories, which may overlap; `seen` are the real paths of known files."""
        if not directories:
            return
        stops = self.stops_when_full
        self.walk = self._names.walk(self._root, directories, self.context.limits, self.deadline, stops=stops)
        for visit in self._names.visits(self.walk):
            is_alone = len(self._paths) == 1
            files = visit.files if is_alone else new_names(seen, visit.directory, visit.files)
            yield visit.directory, files


@dataclass(eq=False)
class ExcludedNames:
    """The files among names that an earlier walk left out: iterate `batches` once, then read `reached`."""

    context: Context
    options: GrepOptions | GlobOptions
    deadline: float
    among: Sequence[Excluded]
    reached: str | None = None  # a limit that ended the search of an excluded directory

    def batches(self) -> Iterator[FileBatch]:
        """Find the files, with the globs and types of the options."""
        root, limits = self.context.root, self.context.limits
        names, named = NameFilter(self.options, unseen=True), NamedFiles(root)
        # Each directory gets its share, so that a huge one does not hide the others.
        count = sum(each.entry.is_dir(follow_symlinks=False) for each in self.among)
        share = max(limits.walk_entries // max(count, 1), 1)
        for path, below, entry, _ in sorted(self.among, key=lambda each: path_order(each.path)):
            is_dir = entry.is_dir(follow_symlinks=False)
            if names.skips(below, is_dir=is_dir):
                continue
            if is_dir:
                walk = search_walk(root)(
                    root,
                    [display_name(path)],
                    max_entries=share,
                    deadline=self.deadline,
                    hidden=True,
                    ignored=True,
                    exclude=partial(names.skips, start=f"{below}/"),
                )
                for visit in walk:
                    yield visit.directory, names.of(f"{below}/{visit.below}", visit.files)
                self.reached = walk.skipped.reached or self.reached
            elif entry.is_file(follow_symlinks=False) and names.of(below[: -len(entry.name)], [entry]):
                yield named, [NamedFile(display_name(path))]


class FileReader:
    """Reads files, one after the other.

    Args:
        root: The root; only a watched one keeps texts.
        prefilter: The test of the search.
        limit: The size of the largest file to read, in bytes.
        encoding: As for `decode_content`.
        deadline: The `time.monotonic()` after which reading a file gives TimeoutError.
    """

    def __init__(
        self, root: Root, prefilter: Prefilter, limit: int, encoding: str | None, deadline: float
    ) -> None:
        kept = root.texts
        self._prefilter = prefilter
        self._buffer = ReadBuffer(limit)
        self._may_have_nul = encoding is not None and codec_name(encoding) != "utf-8"
        self.check = partial(seconds_left, deadline)
        self._texts: Any = kept if prefilter.is_useful else None
        self._scarce_texts: Any = kept if kept is not None and kept.blocks.is_scarce else None
        self._with_literal: set[Any] | None = None  # the kept texts that contain a required literal
        self._seen = 0

    def of(self, reader: Reader, entries: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
        """Yield files that may match: the bytes, `BINARY`, `LARGE`, or the exception."""
        self._seen += len(entries)
        for kind, group in groupby(self._that_may_match(entries), _kind_by_name):
            files: Sequence[Any] = list(group)
            if kind == BINARY:
                yield from ((file, LARGE if file.size > self._buffer.limit else BINARY) for file in files)
            else:
                yield from reader.read_files(files, partial(self._read, is_notebook=kind == _NOTEBOOK))
        if self._scarce_texts is not None:
            self._scarce_texts.mark_used(entries)

    def _that_may_match(self, entries: Sequence[Any]) -> Sequence[Any]:
        """Leave out kept texts without a required literal, if the search has many files."""
        found = self._with_literal
        if found is None:
            if self._texts is None or self._seen < _FEW_FILES:
                return entries
            search = partial(self._prefilter.texts, check=self.check)
            found = self._with_literal = self._texts.containing(search)
        try:
            return [file for file in entries if file.content not in _SEARCHED or file in found]
        except AttributeError:  # some are not in a kept tree
            return entries

    def _read(self, source: int | KeptText, *, is_notebook: bool) -> bytes | str | None:
        self.check()
        buffer = self._buffer
        if not isinstance(source, int):
            if not source.content and is_binary(bytes(source.text[:HEAD])):
                source.keep_as_binary()
                return LARGE if source.size > buffer.limit else BINARY
            source.content = source.content or (NOT_SEARCHED if is_notebook else kind_of_text(source.text))
            if source in (self._with_literal or ()) and source.size <= buffer.limit:
                return bytes(source.text)
        length = buffer.fill(source)
        if length < 0:
            return LARGE
        has_nul = not self._may_have_nul and buffer.data.find(0, 0, min(HEAD, length)) >= 0
        if has_nul and is_binary(bytes(buffer.data[:HEAD])):
            return BINARY
        # The text of a notebook has other characters than its bytes.
        return buffer.copy() if is_notebook or self._prefilter.may_match(buffer.data, length) else None


def _kind_by_name(file: Any) -> str:
    """Return the kind of a file that is known before it is read, or ""."""
    if is_named_notebook(file.name):
        return _NOTEBOOK
    return BINARY if getattr(file, "content", "") == BINARY else ""
