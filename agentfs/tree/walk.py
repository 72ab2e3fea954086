"""The one walk under `ls`, `glob`, `find` and `grep`: in order, inside the root, counting what it skips."""

import math
import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from heapq import nsmallest
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple

from agentfs import call_context
from agentfs.errors import AgentFSError
from agentfs.fs import MAX_NAME_BYTES, MAX_PARTS, MAX_PATH_BYTES, Directory, DirEntry, Root, display_name
from agentfs.results import Skipped
from agentfs.tree.gitignore import OUTSIDE, IgnoreRules, Rule
from agentfs.tree.ignore_sources import RuleReader, with_slash

VCS_NAMES = frozenset({".git", ".hg", ".svn", ".jj", ".bzr"})
MAX_OPEN = 64  # directories that are open at a time
MAX_BATCH = 1000  # entries of one directory that are taken at a time
MAX_EXCLUDED = 1000  # of what was left out that is kept by name
_MAX_MEMORY = 192 * 1024 * 1024  # bytes of the names of all directories that a walk is inside of
_ENTRY_BYTES, _NAME_BYTES = 160, 32  # of an entry without its name, and of a usual name
_KEEP_SECONDS = 4.0  # for a walk that is to be kept, before the one that was asked for
_SAFE_LENGTH = min(2 * (MAX_PARTS - 3), MAX_PATH_BYTES // 4 - 2 * MAX_NAME_BYTES)

Select = Callable[[Directory, str, list[DirEntry]], list[DirEntry]]

entry_name = attrgetter("name")
_directory_of = attrgetter("directory")


@dataclass(slots=True)
class Visit:
    """A run of files of one directory, with no directory between them in the order of the walk."""

    directory: Directory  # open for as long as this visit is the current one
    path: str  # of the directory, relative to the root; "" for the root
    below: str  # the same relative to the start of the walk, with a `/` at its end; "" for the start
    depth: int  # 1 for the start of the walk, 2 for the directories in it
    files: list[DirEntry]  # in order; with links and special files where the walk has `others`
    child: DirEntry | None = None  # the directory in it that comes next, where the walk has `directories`
    more: int = 0  # files behind these that were not kept

    def entries(self, *, directories_first: bool) -> list[DirEntry]:
        """Return the files and the directory in the order of the walk."""
        if self.child is None:
            return self.files
        return [self.child, *self.files] if directories_first else [*self.files, self.child]


class Excluded(NamedTuple):
    """A name that a walk left out because it is hidden or ignored."""

    path: str  # relative to the root
    below: str  # relative to the start of the walk
    entry: DirEntry


@dataclass(slots=True)
class KeptWalk:
    """A whole walk of a watched tree, which holds until a listing or a rule changes."""

    key: Hashable
    entries: list[Any]  # of the kept tree, in the order of the walk
    looked_at: int  # how many names
    counts: Counter[str]
    rules: Counter[Rule]
    excluded: list[Excluded]
    links: list[tuple[Any, bool]]  # whether each leads to a directory, which decides about the order
    reader: RuleReader
    checked: int  # the call in which it was last known to hold
    path: str  # of the start
    start: int  # characters of a real path that come before the part below the start
    direct: bool  # whether paths are displayed as they are

    def once(self, root: Root, key: Hashable, make: Callable[[], list[Any]]) -> list[Any]:
        """Return what is made of the entries, which is kept under a key if there is one."""
        tree = root.tree
        if tree is None or key is None:
            return make()
        made: list[Any] | None = tree.memo.get((self.key, key))
        if made is None:
            made = make()
            tree.keep((self.key, key), made, len(made))
        return made

    def choose(self, choose: Callable[[str, list[Any]], list[Any]]) -> list[Any]:
        """Return what is chosen of the entries of each directory, given its path below the start."""
        groups = groupby(self.entries, _directory_of)
        return [each for top, names in groups for each in choose(top.prefix[self.start :], [*names])]


@dataclass(slots=True)
class _Frame:
    """A directory that the walk is inside of."""

    directory: Directory | None
    path: str
    below: str
    real_path: str
    rules: IgnoreRules
    directories: list[DirEntry]
    files: list[DirEntry]
    more: int = 0
    memory: int = 0
    next_directory: int = 0
    next_file: int = 0

    @property
    def remaining(self) -> list[DirEntry]:
        """What has not been visited yet."""
        return self.files[self.next_file :] + self.directories[self.next_directory :]

    def files_before(self, child: DirEntry | None, *, directories_first: bool) -> list[DirEntry]:
        """Take the files that come before a directory, or the rest."""
        first, files = self.next_file, self.files
        end = len(files)
        if child is not None:
            end = first
            while not directories_first and end < len(files) and files[end].name < child.name:
                end += 1
        self.next_file = end
        return files if end - first == len(files) else files[first:end]


@dataclass(eq=False)
class Walk:
    """One walk below a directory, or below several: iterate it once, then ask what it left out.

    Where several starts overlap, a file is visited from each, and what is left out counts once. A start that
    cannot be opened as a directory raises when the iteration begins.
    """

    root: Root
    path: str | Sequence[str]  # where to start; entered even if it is hidden or ignored
    _: KW_ONLY
    max_entries: int  # names to look at before the walk ends early
    deadline: float = math.inf  # the `time.monotonic()` at which it ends early
    hidden: bool | Callable[[str], bool] = False  # whether to walk names that begin with a dot, or which
    ignored: bool = False  # whether to walk ignored names
    depth: int = 0  # levels to list, or 0 for all
    others: bool = False  # whether visits have links and special files; otherwise they count as skipped
    directories: bool = False  # whether visits have directories
    listing: bool = False  # directories, and links to them, before files; else all in the order of paths
    follow: bool = False  # whether links are followed where they lead inside, and not in a circle
    enter: Callable[[str], bool] | None = None  # which directories to enter, by the path below the start
    exclude: Callable[[str, bool], bool] | None = None  # what is left out uncounted: path below, is_dir
    select: Select | None = None  # which files of a directory (and its path below the start) to keep
    keep: int | None = None  # the most files to keep of one directory; the others are only counted
    stops: bool = False  # whether what it leaves out counts only as far as it is iterated
    key: Callable[[DirEntry], Any] = entry_name  # the order of the names of a directory, with `listing`

    def __post_init__(self) -> None:
        self._starts = [self.path] if isinstance(self.path, str) else self.path
        self._entries_left = self.max_entries
        self._counts: Counter[str] = Counter()
        self._rules: Counter[Rule] = Counter()
        self._counted: set[str] = set()  # with several starts: the directories whose names have been counted
        self._counting = True
        self._reader = RuleReader(self.root, self.deadline)
        self._reached: str | None = None
        self._memory = 0
        self.excluded: list[Excluded] = []  # the first that are hidden or ignored
        self._links: list[tuple[DirEntry, bool]] = []  # whether each leads to a directory, with `listing`
        # Whether the walk can be kept, as it is before `select`, and whether this one still may be.
        filtered = self.enter or self.exclude or self.follow or callable(self.hidden)
        self._keepable = not (filtered or self.stops or len(self._starts) > 1) and self.key is entry_name
        self._recording = self._keepable and not self.select and not self.keep

    @property
    def skipped(self) -> Skipped:
        """What the walk has left out so far."""
        display = self.root.display_path_if_usable
        rules: Counter[str] = Counter()
        for rule, count in self._rules.items():
            rules[rule.text(display)] += count
        counts = dict(self._counts)
        counts["unreadable"] = counts.get("unreadable", 0) + self._reader.unreadable
        unread = tuple((file and display(file)) or OUTSIDE for file in self._reader.unread)
        return Skipped(**counts, rules=dict(rules), unread_rules=unread, reached=self._reached)

    def __iter__(self) -> Iterator[Visit]:
        if (kept := self.whole() if self.select or self.keep else self.kept()) is not None:
            yield from self._replay(kept)
            return
        stack: list[_Frame] = []
        entries: list[DirEntry] = []
        try:
            for start in self._starts:
                for visit in self._visits(stack, start):
                    if self._recording:
                        entries += visit.entries(directories_first=self.listing)
                    yield visit
            if not self.select and not self.keep:
                self._keep(entries)
        finally:
            for frame in stack:
                if frame.directory is not None:
                    frame.directory.close()

    def _replay(self, kept: KeptWalk) -> Iterator[Visit]:
        top = with_slash(kept.path)
        for kept_directory, entries in groupby(kept.entries, _directory_of):
            below = kept_directory.prefix[kept.start :]
            path = (top + display_name(below)).removesuffix("/")
            directory = self.root.kept_directory(kept_directory, path)
            files: list[DirEntry] = []
            for entry in (*entries, None):
                if entry is not None and (self.listing or entry.type != "d"):
                    files.append(entry)
                    continue
                if self.select is not None and files:
                    files = self.select(directory, below, files)
                if files or entry is not None:
                    yield Visit(directory, path, below, below.count("/") + 1, files, entry)
                files = []

    def kept(self) -> KeptWalk | None:
        """Return this walk as it was kept before `select`, if it is and still holds."""
        tree = self.root.tree
        if tree is None or not self._keepable:
            return None
        kept: KeptWalk | None = tree.memo.get(self._key())
        if not kept or kept.looked_at > self.max_entries:
            return None
        if kept.checked != tree.calls:
            if not kept.reader.is_current() or not all(map(self._is_same, kept.links)):
                tree.memo.clear()
                return None
            kept.checked = tree.calls
        self._counts, self._rules, self.excluded = kept.counts, kept.rules, kept.excluded
        call_context.step(kept.looked_at)
        return kept

    def _is_same(self, link: tuple[Any, bool]) -> bool:
        try:
            return self.root.kept_entry(link[0]).is_dir == link[1]
        except (AgentFSError, OSError):
            return False

    def whole(self, *, only_again: bool = False) -> KeptWalk | None:
        """Return the kept walk, made now where it can be, unless that takes too long.

        With `only_again` it is made if it was kept before: most of what it needs then still is.
        """
        kept = self.kept()
        tree = self.root.tree
        if kept is not None or tree is None or not self._keepable:
            return kept
        key = self._key()
        if tree.memo.get(key) is None and (tree.memo.had(key) or not only_again):
            now = time.monotonic()
            deadline = now + min(_KEEP_SECONDS, (self.deadline - now) / 2)
            for _ in replace(self, select=None, keep=None, deadline=deadline):
                pass
            kept = self.kept()
        return kept

    def _keep(self, entries: list[Any]) -> None:
        """Keep the walk, if all of it is watched and could be read; else that it cannot be kept."""
        tree, reader = self.root.tree, self._reader
        if tree is None or not self._keepable or self._reached is not None:
            return
        key = self._key()
        kept: KeptWalk | None = None
        if self._recording and reader.is_complete and not self._counts["unreadable"]:
            _, path, real_path, display_path, *_ = key
            kept = KeptWalk(
                key,
                [*entries],
                self.max_entries - self._entries_left,
                self._counts,
                self._rules,
                self.excluded,
                self._links,
                reader,
                tree.calls,
                path,
                len(with_slash(real_path)),
                path == ("" if display_path == "." else display_path),
            )
        tree.keep(key, kept or False, len(entries))

    def _key(self) -> tuple[Any, ...]:
        with self.root.enter_directory(self._starts[0]) as start:
            paths = start.path, start.real_path, self.root.display_path(start.real_path)
        flags = self.hidden, self.ignored, self.others, self.directories, self.listing
        return "walk", *paths, self.depth, *flags

    def _visits(self, stack: list[_Frame], path: str) -> Iterator[Visit]:
        start = self.root.enter_directory(path)
        stack.append(_Frame(start, start.path, "", start.real_path, IgnoreRules(), [], []))
        if not self.ignored:
            stack[0].rules = self._rules_above(start)
        self._fill(stack[0])
        self._recording &= start.is_watched
        while stack:
            frame = stack[-1]
            directory = frame.directory or self._reopened(frame)
            if directory is None:
                self._memory -= stack.pop().memory
                continue
            depth = len(stack)
            goes_below = self._reached is None and (self.depth == 0 or depth < self.depth)
            child: DirEntry | None = None
            if frame.next_directory < len(frame.directories) and (self.directories or goes_below):
                child = frame.directories[frame.next_directory]
            files = frame.files_before(child, directories_first=self.listing)
            visible = child if self.directories else None
            if files or visible is not None or (child is None and frame.more):
                more = 0 if child else frame.more
                yield Visit(directory, frame.path, frame.below, depth, files, visible, more)
            if child is None:
                self._memory -= stack.pop().memory
                directory.close()
                continue
            frame.next_directory += 1
            entered = self._enter(stack, directory, child) if goes_below else None
            if entered is not None:
                stack.append(entered)
                if len(stack) > MAX_OPEN and (farthest := stack[-1 - MAX_OPEN]).directory is not None:
                    farthest.directory.close()
                    farthest.directory = None

    def _skip(self, reason: str, count: int = 1) -> None:
        """Count names that are left out."""
        if self._counting:
            self._counts[reason] += count

    def _enter(self, stack: list[_Frame], directory: Directory, child: DirEntry) -> _Frame | None:
        frame, name = stack[-1], child.name
        if self.enter is not None and not self.enter(frame.below + name):
            return None
        if len(frame.path) + len(frame.real_path) > _SAFE_LENGTH and _too_deep(frame, name):
            self._skip("too_deep")
            return None
        try:
            if not child.is_symlink():
                opened = directory.enter(child)
            elif not self.follow:
                return None
            else:
                opened = self.root.enter_directory(with_slash(frame.path) + display_name(name))
                if any(each.real_path == opened.real_path for each in stack):
                    opened.close()
                    self._skip("symlink")
                    return None
        except (AgentFSError, OSError):
            self._skip("unreadable")
            return None
        entered = _Frame(opened, opened.path, f"{frame.below}{name}/", opened.real_path, frame.rules, [], [])
        if child.is_symlink() and not self.ignored:
            entered.rules = self._rules_above(opened)
        self._fill(entered)
        self._recording &= opened.is_watched
        return entered

    def _rules_above(self, directory: Directory) -> IgnoreRules:
        """Return the rules of the directories above one that is not entered from its parent."""
        try:
            return self._reader.above(directory.real_path)
        except TimeoutError:
            self._reached = "timeout"
            return IgnoreRules()

    def _reopened(self, frame: _Frame) -> Directory | None:
        """Return the directory of a frame, opened again where it was closed; None when nothing is left."""
        if frame.directory is None:
            remaining = {each.name for each in frame.remaining}
            if not remaining and not frame.more:
                return None
            try:
                frame.directory = self.root.enter_directory(frame.path)
                self._recording &= frame.directory.is_watched
                # An entry is looked up where it was scanned from, so what is left is scanned again.
                found = {
                    each.name: each
                    for part in frame.directory.scan_parts(MAX_BATCH)
                    for each in part
                    if each.name in remaining
                }
            except (AgentFSError, OSError):
                self._counts["unreadable"] += len(remaining) + frame.more
            else:
                self._counts["unreadable"] += len(remaining) - len(found)
                for entries, start in (
                    (frame.files, frame.next_file),
                    (frame.directories, frame.next_directory),
                ):
                    entries[start:] = [found[each.name] for each in entries[start:] if each.name in found]
        return frame.directory

    def _fill(self, frame: _Frame) -> None:
        """Scan the directory of a frame and leave out what the walk leaves out."""
        directory = frame.directory
        if self._reached is not None or directory is None:
            return
        if len(self._starts) > 1:
            self._counting = directory.real_path not in self._counted
            self._counted.add(directory.real_path)
        first = True
        try:
            for part in directory.scan_parts(MAX_BATCH):
                call_context.step(len(part))
                if time.monotonic() > self.deadline:
                    self._reached = "timeout"
                    break
                entries = part
                if len(part) > self._entries_left:
                    self._reached = "walk_entries"
                    entries = sorted(part, key=entry_name)[: self._entries_left]
                self._entries_left -= len(entries)
                before = len(frame.files) + len(frame.directories)
                self._take(frame, directory, entries, first=first)
                taken = len(frame.files) + len(frame.directories) - before
                name_bytes = _NAME_BYTES
                if len(entries) > 1000:  # the memory of less is little, whatever its names
                    name_bytes = sum([len(entry.name) for entry in entries]) // len(entries)
                frame.memory += taken * (_ENTRY_BYTES + name_bytes)
                self._memory += taken * (_ENTRY_BYTES + name_bytes)
                if self._memory > _MAX_MEMORY:
                    self._reached = "memory"
                if self._reached is not None:
                    break
                first = False
        except TimeoutError:  # of a test of names, or of reading rules
            self._reached = "timeout"
        except (AgentFSError, OSError):
            self._skip("unreadable")
        frame.directories.sort(key=self.key)
        frame.files.sort(key=self.key)
        self._keep_first(frame)

    def _take(self, frame: _Frame, directory: Directory, entries: list[DirEntry], *, first: bool) -> None:
        """Take what the walk is to visit of a part of a directory's entries."""
        kept = [entry for entry in entries if entry.name[0] != "."]
        dotted: dict[str, DirEntry] = {}
        if len(kept) != len(entries):
            dotted = {entry.name: entry for entry in entries if entry.name[0] == "."}
        if not self.ignored and first:
            if len(entries) == MAX_BATCH:  # the rule files may be among what comes later
                frame.rules = self._reader.inside(directory, frame.rules)
            elif dotted:
                frame.rules = self._reader.inside(directory, frame.rules, dotted)
        if dotted:
            kept += self._visible_dotted(frame, dotted)
        if kept and frame.rules.active and not self.ignored:
            kept = self._unignored(frame, directory, kept)
        files = self._divide(frame, directory, kept)
        if self.select is not None and files:
            files = self.select(directory, frame.below, files)
        frame.files += files
        if self.keep is not None and len(frame.files) > self.keep + MAX_BATCH:
            self._keep_first(frame)

    def _keep_first(self, frame: _Frame) -> None:
        if self.keep is not None and len(frame.files) > self.keep:
            frame.more += len(frame.files) - self.keep
            frame.files = nsmallest(self.keep, frame.files, key=self.key)

    def _visible_dotted(self, frame: _Frame, dotted: dict[str, DirEntry]) -> list[DirEntry]:
        visible: list[DirEntry] = []
        for name, entry in dotted.items():
            if name.lower() in VCS_NAMES:
                self._skip("vcs")
            elif self.hidden is True or (self.hidden and self.hidden(name)):
                visible.append(entry)
            else:
                self._skip("hidden")
                self._add_excluded(frame, [entry])
        return visible

    def _unignored(self, frame: _Frame, directory: Directory, entries: list[DirEntry]) -> list[DirEntry]:
        kept, rules, decided = frame.rules.partition(with_slash(directory.real_path), entries, self.deadline)
        if decided < len(entries):
            self._reached = "timeout"
        if rules:
            stay = set(map(id, kept))
            self._add_excluded(frame, [entry for entry in entries[:decided] if id(entry) not in stay])
            self._skip("ignored", len(rules))
            if self._counting:
                self._rules.update(rules)
        return kept

    def _add_excluded(self, frame: _Frame, entries: list[DirEntry]) -> None:
        if self._counting:
            path, below = with_slash(frame.path), frame.below
            for entry in entries[: MAX_EXCLUDED - len(self.excluded)]:
                self.excluded.append(Excluded(path + entry.name, below + entry.name, entry))

    def _divide(self, frame: _Frame, directory: Directory, entries: list[DirEntry]) -> list[DirEntry]:
        """Add the directories to the frame and return the files."""
        exclude, below = self.exclude, frame.below
        files: list[DirEntry] = []
        if exclude is None:
            try:
                files = [entry for entry in entries if entry.is_file(follow_symlinks=False)]
            except OSError:
                files = []
            if len(files) == len(entries):
                return files
            files = []
        for entry in entries:
            try:
                if entry.is_file(follow_symlinks=False):
                    if exclude is None or not exclude(below + entry.name, False):
                        files.append(entry)
                    continue
                is_dir = entry.is_dir(follow_symlinks=False)
                if exclude is not None and exclude(below + entry.name, is_dir):
                    continue
                is_link = not is_dir and entry.is_symlink()
                if is_link and (self.listing or self.follow):
                    is_dir = directory.entry(entry).is_dir
                    if self._recording:
                        self._links.append((entry, is_dir))
                if is_dir:
                    frame.directories.append(entry)
                elif self.others or (is_link and self.follow and directory.target_status(entry) is not None):
                    files.append(entry)
                else:
                    self._skip("symlink" if is_link else "special")
            except (AgentFSError, OSError):
                self._skip("unreadable")
        return files


def _too_deep(frame: _Frame, name: str) -> bool:
    """Return whether what is in a directory could not be named by a path."""
    paths = [path.encode("utf-8", "surrogatepass") for path in (frame.path, frame.real_path)]
    parts = 2 + max(path.count(b"/") for path in paths)
    size = len(name.encode("utf-8", "surrogatepass")) + max(map(len, paths))
    return parts >= MAX_PARTS or size + MAX_NAME_BYTES + 2 > MAX_PATH_BYTES


def path_order(path: str) -> str:
    """Return the key that sorts paths as a walk visits them: part by part."""
    return path.replace("/", "\0")
