"""The walk of `ls`, `glob` and `grep`: in order, inside the root, with counts of skipped names."""

import math
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field
from itertools import chain, islice
from operator import attrgetter
from typing import Any, NamedTuple

from agentfs.base import call_context
from agentfs.errors import AgentFSError
from agentfs.fs import MAX_NAME_BYTES, MAX_PARTS, MAX_PATH_BYTES, Directory, DirEntry, Root, display_name
from agentfs.results import Skipped
from agentfs.tree.gitignore import OUTSIDE, IgnoreRule, IgnoreRules, Sources
from agentfs.tree.ignore_sources import DECIDING, RuleReader, with_slash

VCS_NAMES = frozenset({".git", ".hg", ".svn", ".jj", ".bzr"})
MAX_LEVELS = 100  # directories that are open at a time, one in the other
MAX_LISTED = 200_000  # entries of one directory
_PART = 512  # entries between two looks at the clock: a slow file system takes a millisecond for each
_MAX_HELD = 500_000  # entries of all directories that are open

MAX_EXCLUDED = 1000  # excluded names that are kept

_NO_RULES = IgnoreRules()
entry_name = attrgetter("name")


class Visit(NamedTuple):
    """The next files of a directory; a walk gives several if directories come between the files."""

    directory: Directory  # open until the next visit
    below: str  # relative to the start of the walk, with a trailing `/`; "" for the start
    depth: int  # 1 for the start of the walk, 2 for the directories in it
    files: list[DirEntry]  # with links and special files if the walk has `others`
    child: DirEntry | None  # the directory after them, if the walk has `directories`

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


@dataclass(eq=False)
class Walk:
    """One walk below one or several directories: iterate it once, then read `skipped`.

    If several starts overlap, files are visited from each start, but left-out names count once. A start that
    cannot be opened as a directory raises when the iteration begins.
    """

    root: Root
    path: str | Sequence[str]  # the starts, which are entered even if they are hidden or ignored
    _: KW_ONLY
    max_entries: int  # the walk ends early after this many names
    deadline: float = math.inf  # the `time.monotonic()` at which the walk ends early
    hidden: bool | Callable[[str], bool] = False  # walk names that begin with a dot: all, none, or some
    ignored: bool = False  # walk ignored names too
    depth: int = 0  # levels to list, or 0 for all
    others: bool = False  # visit links and special files, which otherwise count as skipped
    directories: bool = False  # visit directories
    listing: bool = False  # directories and links to them before files; else in order of paths
    follow: bool = False  # follow links that lead inside the root, except in a loop
    enter: Callable[[str], bool] | None = None  # test of directories to enter, by path below the start
    exclude: Callable[[str, bool], bool] | None = None  # names to leave out uncounted: path below, is_dir
    reaches: Callable[[Excluded], bool] | None = None  # test of the hidden and ignored names to count
    key: Callable[[DirEntry], Any] = entry_name  # sort key within a directory, with `listing`
    # Gets the ignored names and the version control directories that are left out.
    on_left_out: Callable[[Directory, list[DirEntry]], None] | None = None

    def __post_init__(self) -> None:
        self._starts = [self.path] if isinstance(self.path, str) else self.path
        self._trees = self.root.trees
        self._entries_left: int = self.max_entries
        self._left_out: list[LeftOut] = [LeftOut()]
        self._counted: set[str] = set()  # with several starts: directories that were counted
        self._counting = True
        self._reader = RuleReader(self.root)
        self._reached: str | None = None  # the limit that ended the walk
        self._crowded = False  # True if a directory has more than MAX_LISTED entries
        self._held = 0
        self._resolves_links = self.follow or self.listing
        self._unsteady = 0  # counts what may change while no listing changes, such as the target of a link

    @property
    def excluded(self) -> list[Excluded]:
        """The first names that are hidden or ignored."""
        return list(islice(chain.from_iterable(part.excluded for part in self._left_out), MAX_EXCLUDED))

    @property
    def skipped(self) -> Skipped:
        """The counts of names that the walk has left out so far."""
        display = self.root.display_path_if_usable
        counts, found = Counter[str](), Counter[IgnoreRule | None]()
        for part in self._left_out:
            counts.update(part.counts)
            found.update(part.more)
            found.update(each.rule for each in part.excluded if self._is_reached(each))
        counts["hidden"], counts["ignored"] = found.pop(None, 0), found.total()
        rules = Counter[str]()
        for rule, count in found.items():
            rules[rule.text(display) if rule else ""] += count
        counts["unreadable"] += self._reader.unreadable
        unread = tuple((file and display(file)) or OUTSIDE for file in self._reader.unread)
        reached = self._reached or ("directory_entries" if self._crowded else None)
        return Skipped(**counts, rules=dict(rules), unread_rules=unread, reached=reached)

    def _is_reached(self, each: Excluded) -> bool:
        """Return True if a hidden or ignored name could have been a result."""
        exclude, reaches = self.exclude, self.reaches
        with suppress(TimeoutError, OSError):  # raised by the test of a name, or of its type
            if exclude is not None and exclude(each.below, each.entry.is_dir(follow_symlinks=False)):
                return False
            return reaches is None or reaches(each)
        return True

    def __iter__(self) -> Iterator[Visit]:
        stack: list[Level] = []
        try:
            for start in self._starts:
                yield from self._walk(stack, start)
        finally:
            for level in stack:
                level.directory.close()

    def _walk(self, stack: list[Level], path: str) -> Iterator[Visit]:
        entered: Level | None = self._start(path)
        while True:
            if entered is not None:
                stack.append(entered)
                yield from self._enter(entered)
            if not stack:
                return
            level, entered = stack[-1], None
            descends = self._reached is None and (self.depth == 0 or level.depth < self.depth)
            files, child = level.advance(descends=descends or self.directories, first=self.listing)
            shown = child if self.directories else None
            if files or shown is not None:
                yield self._found(Visit(level.directory, level.below, level.depth, files, shown))
            if child is None:
                self._leave(stack.pop())
            elif descends:
                entered = self._open(stack, child)

    def _start(self, path: str) -> Level:
        opened = self.root.enter_directory(path)
        try:
            return Level(opened, "", 1, _NO_RULES if self.ignored else self._rules_above(opened.real_path))
        except BaseException:
            opened.close()
            raise

    def _found(self, visit: Visit) -> Visit:
        """Return the visit to yield."""
        return visit

    def _enter(self, level: Level) -> Iterable[Visit]:
        """Scan a directory that was entered, or return all visits in it and below."""
        if self._reached is not None:
            return ()
        if len(self._starts) > 1:
            self._counting = level.directory.real_path not in self._counted
            self._counted.add(level.directory.real_path)
        try:
            self._scan(level)
        except (AgentFSError, OSError):
            self._skip("unreadable")
        return ()

    def _leave(self, level: Level) -> None:
        """Close a directory."""
        self._held -= level.held
        level.directory.close()

    def _skip(self, reason: str) -> None:
        """Count a name that is left out."""
        if self._counting:
            self._part().counts[reason] += 1
            self._unsteady += reason == "unreadable"

    def _part(self) -> LeftOut:
        """Return the record for names that are left out in the current directory."""
        return self._left_out[-1]

    def _open(self, stack: list[Level], child: DirEntry) -> Level | None:
        """Open a subdirectory of the current directory; return None if the walk does not enter it."""
        level, name = stack[-1], child.name
        directory, is_link = level.directory, self._resolves_links and child.is_symlink()
        if self.enter is not None and not self.enter(level.below + name):
            return None
        if level.depth >= MAX_LEVELS or _is_too_long(directory, name):
            self._skip("too_deep")
            return None
        try:
            if not is_link:
                opened = directory.enter(child)
            elif not self.follow:
                return None
            else:
                opened = self.root.enter_directory(with_slash(directory.path) + display_name(name))
                if any(each.directory.real_path == opened.real_path for each in stack):
                    opened.close()
                    self._skip("symlink")
                    return None
        except (AgentFSError, OSError):
            self._skip("unreadable")
            return None
        rules = level.rules
        if not self.ignored and (is_link or opened.real_path in self._trees.others):
            rules = self._rules_above(opened.real_path)
        return Level(opened, f"{level.below}{name}/", level.depth + 1, rules)

    def _rules_above(self, real_path: str) -> IgnoreRules:
        """Return the rules above a directory that is not entered from its parent."""
        return self._reader.above(real_path)

    def _scan(self, level: Level) -> None:
        """Read the names of a directory."""
        entries: list[DirEntry] = []
        for part in level.directory.scan_parts(_PART):
            entries += part
            if self._is_late(len(part)):
                return
            if len(entries) > MAX_LISTED:
                break
        is_crowded = len(entries) > MAX_LISTED
        if is_crowded:
            del entries[MAX_LISTED:]
            self._crowded = True
            self._unsteady += 1
        if len(entries) > self._entries_left:
            self._reached = "walk_entries"
            entries = sorted(entries, key=entry_name)[: self._entries_left]
        self._entries_left -= len(entries)
        kept = [entry for entry in entries if entry.name[0] != "."]
        if len(kept) != len(entries) or is_crowded:
            kept += self._visible_dotted(level, entries, is_crowded=is_crowded)
        if kept and level.rules.active and not self.ignored:
            kept = self._unignored(level, kept)
        level.files = self._divide(level, kept)
        level.directories.sort(key=self.key, reverse=True)
        level.files.sort(key=self.key)
        level.held = len(level.files) + len(level.directories)
        self._held += level.held
        if self._held > _MAX_HELD:
            self._reached = "memory"

    def _is_late(self, count: int) -> bool:
        """Count names that were looked at; return True, and end the walk, after the deadline."""
        call_context.step(count)
        if time.monotonic() > self.deadline:
            self._reached = "timeout"
        return self._reached == "timeout"

    def _visible_dotted(self, level: Level, entries: list[DirEntry], *, is_crowded: bool) -> list[DirEntry]:
        """Return the entries that begin with a dot and are visited; if they decide rules, read the rules."""
        dotted = {entry.name: entry for entry in entries if entry.name[0] == "."}
        # In a crowded directory, rule files may be among the names that were not listed.
        deciding = DECIDING if is_crowded else DECIDING.intersection(dotted)
        if deciding and not self.ignored:
            sources = self._sources(level, deciding)
            level.rules = self._reader.inside(level.directory.real_path, level.rules, sources)
        visible: list[DirEntry] = []
        for name, entry in dotted.items():
            if name.lower() in VCS_NAMES:
                self._skip("vcs")
                if self.on_left_out is not None:
                    self.on_left_out(level.directory, [entry])
            elif self.hidden is True or (self.hidden and self.hidden(name)):
                visible.append(entry)
            else:
                self._exclude(level, [(entry, None)])
        return visible

    def _sources(self, level: Level, deciding: frozenset[str]) -> Sources:
        """Return the contents of the rule files in a directory, which has `deciding` among its names."""
        return self._reader.sources(level.directory, deciding)

    def _unignored(self, level: Level, entries: list[DirEntry]) -> list[DirEntry]:
        base = with_slash(level.directory.real_path)
        leading = () if level.directory.real_path else self._trees.others.keys()
        pinned = [entry for entry in entries if entry.name in leading] if leading else []
        if pinned:  # the rules of this tree do not apply to mounts
            entries = [entry for entry in entries if entry.name not in leading]
        kept, ignored = level.rules.partition(base, entries, self.deadline)
        if len(kept) + len(ignored) < len(entries):
            self._reached = "timeout"
        if ignored:
            self._exclude(level, ignored)
            if self.on_left_out is not None:
                self.on_left_out(level.directory, [entry for entry, _ in ignored])
        return [*kept, *pinned] if pinned else kept

    def _exclude(self, level: Level, entries: Sequence[tuple[DirEntry, IgnoreRule | None]]) -> None:
        """Record hidden or ignored names, so that a later search can include them."""
        if self._counting:
            path, below, part = with_slash(level.directory.path), level.below, self._part()
            room = MAX_EXCLUDED - len(part.excluded)
            for entry, rule in entries[:room]:
                part.excluded.append(Excluded(path + entry.name, below + entry.name, entry, rule))
            part.more.update(rule for _, rule in entries[room:])

    def _divide(self, level: Level, entries: list[DirEntry]) -> list[DirEntry]:
        """Add the directories to the level and return the files."""
        exclude, below = self.exclude, level.below
        files: list[DirEntry] = []
        for entry in entries:
            try:
                is_file = entry.is_file(follow_symlinks=False)
                if is_file and exclude is None:
                    files.append(entry)
                    continue
                is_dir = not is_file and entry.is_dir(follow_symlinks=False)
                if exclude is not None and exclude(below + entry.name, is_dir):
                    continue
                is_link = not is_file and not is_dir and entry.is_symlink()
                if is_link and self._resolves_links:
                    is_dir = level.directory.entry(entry).is_dir
                    self._unsteady += 1
                if is_dir:
                    level.directories.append(entry)
                elif (
                    is_file
                    or self.others
                    or (is_link and self.follow and level.directory.target_status(entry) is not None)
                ):
                    files.append(entry)
                else:
                    self._skip("symlink" if is_link else "special")
            except (AgentFSError, OSError):
                self._skip("unreadable")
        return files


def _is_too_long(directory: Directory, name: str) -> bool:
    """Return True if the paths of entries in a subdirectory could be too long to be used."""
    path = f"{max(directory.path, directory.real_path, key=len)}/{name}".encode("utf-8", "surrogatepass")
    return path.count(b"/") + 2 > MAX_PARTS or len(path) + MAX_NAME_BYTES + 1 > MAX_PATH_BYTES


def path_order(path: str) -> str:
    """Return the key that sorts paths as a walk visits them: part by part."""
    return path.replace("/", "\0")
