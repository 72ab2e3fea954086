"""The one walk under `ls`, `glob`, `find` and `grep`: in order, inside the root, counting what it skips."""

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from heapq import nsmallest
from typing import Any

from agentfs import call_context
from agentfs.errors import AgentFSError
from agentfs.fs import MAX_NAME_BYTES, MAX_PARTS, MAX_PATH_BYTES, Directory, DirEntry, Root, display_name
from agentfs.results import Skipped
from agentfs.tree.gitignore import OUTSIDE, IgnoreRules
from agentfs.tree.ignore_sources import DECIDING, RuleReader, with_slash
from agentfs.tree.visit import NOTHING, Excluded, KeptContents, LeftOut, Visit, entry_name

VCS_NAMES = frozenset({".git", ".hg", ".svn", ".jj", ".bzr"})
MAX_OPEN = 64  # directories that are open at a time
MAX_BATCH = 1000  # entries of one directory that are taken at a time
MAX_EXCLUDED = 1000  # excluded names that are kept
_MAX_KEYS = 8  # sets of options for which a directory keeps its contents
_MAX_MEMORY = 192 * 1024 * 1024  # bytes of the names of all directories that a walk is inside of
_ENTRY_BYTES, _NAME_BYTES = 160, 32  # of an entry without its name, and of a usual name
_SAFE_LENGTH = min(2 * (MAX_PARTS - 3), MAX_PATH_BYTES // 4 - 2 * MAX_NAME_BYTES)

Select = Callable[[Directory, str, list[DirEntry]], list[DirEntry]]

_NO_RULES = IgnoreRules()


@dataclass(eq=False)
class Walk:
    """One walk below a directory, or below several: iterate it once, then ask what it left out.

    If several starts overlap, a file is visited from each, and what is left out counts once. A start that
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
    follow: bool = False  # whether links are followed if they lead inside, and not in a circle
    enter: Callable[[str], bool] | None = None  # which directories to enter, by the path below the start
    exclude: Callable[[str, bool], bool] | None = None  # what is left out uncounted: path below, is_dir
    select: Select | None = None  # which files of a directory (and its path below the start) to keep
    keep: int | None = None  # the most files to keep of one directory; the others are only counted
    key: Callable[[DirEntry], Any] = entry_name  # the order of the names of a directory, with `listing`

    def __post_init__(self) -> None:
        self._starts = [self.path] if isinstance(self.path, str) else self.path
        self._entries_left = self.max_entries
        self._unchecked = 0  # names that the clock does not know yet
        self._left_out = LeftOut()
        self._counted: set[str] = set()  # with several starts: the directories whose names have been counted
        self._counting = True
        self._reader = RuleReader(self.root, self.deadline)
        self._reached: str | None = None
        self._memory = 0
        self._resolves_links = self.follow or self.listing
        self._depends_on_target = False  # whether a link was followed to take the names of a directory
        options = self.hidden, self.ignored, self.others, self.listing
        is_plain = not (self.exclude or self.follow or callable(self.hidden)) and self.key is entry_name
        self._options = f"{options}" if is_plain else None

    @property
    def excluded(self) -> list[Excluded]:
        """The first names that are hidden or ignored."""
        return self._left_out.excluded

    @property
    def skipped(self) -> Skipped:
        """What the walk has left out so far."""
        display = self.root.display_path_if_usable
        rules: Counter[str] = Counter()
        for rule, count in self._left_out.rules.items():
            rules[rule.text(display)] += count
        counts = dict(self._left_out.counts)
        counts["unreadable"] = counts.get("unreadable", 0) + self._reader.unreadable
        unread = tuple((file and display(file)) or OUTSIDE for file in self._reader.unread)
        return Skipped(**counts, rules=dict(rules), unread_rules=unread, reached=self._reached)

    def __iter__(self) -> Iterator[Visit]:
        stack: list[Visit] = []
        try:
            for start in self._starts:
                yield from self._visits(stack, start)
        finally:
            for visit in stack:
                visit.directory.close()

    def _visits(self, stack: list[Visit], path: str) -> Iterator[Visit]:
        start = self.root.enter_directory(path)
        stack.append(Visit(start, "", 1, _NO_RULES))
        if not self.ignored:
            stack[0].rules = self._rules_above(start.real_path)
        self._fill(stack[0])
        self._begin(stack[0])
        while stack:
            visit = stack[-1]
            if visit.closed and not self._reopen(visit):
                self._memory -= stack.pop().memory
                continue
            child = next(visit.steps)
            if self.directories:
                visit.child = child
            if visit.files or visit.child is not None or visit.more:
                yield visit
            if child is None:
                self._memory -= stack.pop().memory
                visit.steps = iter(())  # the generator refers to the visit, which refers to the open root
                visit.directory.close()
            elif (
                self._reached is None
                and (self.depth == 0 or visit.depth < self.depth)
                and (entered := self._enter(stack, child)) is not None
            ):
                if entered.directories:
                    self._begin(entered)
                    stack.append(entered)
                    if len(stack) > MAX_OPEN:
                        farthest = stack[-1 - MAX_OPEN]
                        farthest.directory.close()
                        farthest.closed = True
                    continue
                entered.files, entered.more = entered.all_files, entered.unkept
                try:
                    if entered.files or entered.more:
                        yield entered
                finally:
                    self._memory -= entered.memory
                    entered.directory.close()

    def _begin(self, visit: Visit) -> None:
        """Begin to visit the files and directories that were found."""
        below = self._reached is None and (self.depth == 0 or visit.depth < self.depth)
        descends = self.directories or below
        visit.steps = visit.runs(descends=descends, directories_first=self.listing)

    def _skip(self, reason: str, count: int = 1) -> None:
        """Count names that are left out."""
        if self._counting:
            self._left_out.counts[reason] += count

    def _enter(self, stack: list[Visit], child: DirEntry) -> Visit | None:
        visit, name = stack[-1], child.name
        directory, is_link = visit.directory, self._resolves_links and child.is_symlink()
        if self.enter is not None and not self.enter(visit.below + name):
            return None
        if len(visit.path) + len(directory.real_path) > _SAFE_LENGTH and _too_deep(directory, name):
            self._skip("too_deep")
            return None
        try:
            if not is_link:
                opened = directory.enter(child)
            elif not self.follow:
                return None
            else:
                opened = self.root.enter_directory(with_slash(visit.path) + display_name(name))
                if any(each.directory.real_path == opened.real_path for each in stack):
                    opened.close()
                    self._skip("symlink")
                    return None
        except (AgentFSError, OSError):
            self._skip("unreadable")
            return None
        entered = Visit(opened, f"{visit.below}{name}/", visit.depth + 1, visit.rules)
        if is_link and not self.ignored:
            entered.rules = self._rules_above(opened.real_path)
        self._fill(entered)
        return entered

    def _rules_above(self, real_path: str) -> IgnoreRules:
        """Return the rules of the directories above one that is not entered from its parent."""
        try:
            return self._reader.above(real_path)
        except TimeoutError:
            self._reached = "timeout"
            return _NO_RULES

    def _reopen(self, visit: Visit) -> bool:
        """Open the directory of a visit again; return False if nothing is left to visit in it."""
        files = visit.all_files[visit.first_file :]
        directories = visit.directories[visit.next_directory :]
        remaining = {each.name for each in (*files, *directories)}
        if not remaining and not visit.unkept:
            return False
        try:
            visit.directory = self.root.enter_directory(visit.path)
            # An entry is looked up where it was scanned from, so what is left is scanned again.
            found = {
                each.name: each
                for part in visit.directory.scan_parts(MAX_BATCH)
                for each in part
                if each.name in remaining
            }
        except (AgentFSError, OSError):
            visit.directory.close()
            self._left_out.counts["unreadable"] += len(remaining) + visit.unkept
            return False
        self._left_out.counts["unreadable"] += len(remaining) - len(found)
        visit.all_files = [found[each.name] for each in files if each.name in found]
        visit.directories = [found[each.name] for each in directories if each.name in found]
        visit.first_file = visit.next_directory = 0
        visit.closed = False
        self._begin(visit)
        return True

    def _fill(self, visit: Visit) -> None:
        """Take the names of a directory, from what an earlier walk has kept or by a scan."""
        directory = visit.directory
        if self._reached is not None:
            return
        if len(self._starts) > 1:
            self._counting = directory.real_path not in self._counted
            self._counted.add(directory.real_path)
        derived = directory.derived if self._options is not None and self._counting else None
        contents: KeptContents | None = derived.get(self._options) if derived is not None else None
        try:
            if contents is None:
                self._scan(visit, derived, rules_known=False)
                return
            deciding, rules, files, directories, count, left_out = contents
            if deciding or deciding is None:
                visit.rules = self._reader.inside(directory, visit.rules, deciding)
                visit.deciding = deciding
            if visit.rules is not rules or count > self._entries_left:
                self._scan(visit, derived, rules_known=True)
                return
            self._entries_left -= count
            self._unchecked += count
            if self._unchecked >= MAX_BATCH:
                self._look_at(self._unchecked)
                self._unchecked = 0
            visit.directories = directories
            if left_out is not NOTHING:
                self._add_left_out(visit, left_out)
            if self.select is not None and files:
                files = self.select(directory, visit.below, files)
            visit.all_files = files
        except TimeoutError:  # of a test of names, or of reading rules
            self._reached = "timeout"
        except (AgentFSError, OSError):
            self._skip("unreadable")
        finally:
            if self.keep is not None and len(visit.all_files) > self.keep:
                self._keep_first(visit, self.keep)

    def _scan(self, visit: Visit, derived: dict[Any, Any] | None, *, rules_known: bool) -> None:
        """Take the names of a directory; keep them with the listing if only that and the rules decide."""
        if derived is None:
            self._scan_parts(visit, None, rules_known=rules_known)
            return
        files: list[DirEntry] = []
        around, before = self._left_out, self._entries_left
        self._left_out = own = LeftOut()
        self._depends_on_target = False
        try:
            self._scan_parts(visit, files, rules_known=rules_known)
        finally:
            self._left_out = around
            self._add_left_out(visit, own)
        if self._reached is None and not self._depends_on_target and not own.counts["unreadable"]:
            files.sort(key=entry_name)
            if len(derived) >= _MAX_KEYS:
                derived.clear()
            derived[self._options] = KeptContents(
                visit.deciding,
                visit.rules,
                files,
                visit.directories,
                before - self._entries_left,
                own if any(own.counts.values()) else NOTHING,
            )

    def _scan_parts(self, visit: Visit, every: list[DirEntry] | None, *, rules_known: bool) -> None:
        """Take the names of a directory part by part, and add the files to `every` before any is chosen."""
        directory, decides = visit.directory, not (self.ignored or rules_known)
        visit.all_files, visit.directories = list[DirEntry](), list[DirEntry]()
        try:
            for part in directory.scan_parts(MAX_BATCH):
                self._look_at(len(part))
                entries = part
                if len(part) > self._entries_left:
                    self._reached = "walk_entries"
                    entries = sorted(part, key=entry_name)[: self._entries_left]
                self._entries_left -= len(entries)
                files = self._take(visit, entries, decides=decides)
                if every is not None:
                    every += files
                self._choose(visit, files)
                name_bytes = _NAME_BYTES
                if len(entries) == MAX_BATCH:  # the memory of less is little, whatever its names
                    name_bytes = sum([len(entry.name) for entry in entries]) // MAX_BATCH
                count = len(visit.all_files) + len(visit.directories)
                self._memory -= visit.memory
                visit.memory = count * (_ENTRY_BYTES + name_bytes)
                self._memory += visit.memory
                if self._memory > _MAX_MEMORY:
                    self._reached = "memory"
                if self._reached is not None:
                    break
                decides = False
        finally:
            visit.directories.sort(key=self.key)
            visit.all_files.sort(key=self.key)

    def _look_at(self, count: int) -> None:
        """Note that the walk looks at more names; raise TimeoutError if there is no time for it."""
        call_context.step(count)
        if time.monotonic() > self.deadline:
            raise TimeoutError

    def _take(self, visit: Visit, entries: list[DirEntry], *, decides: bool) -> list[DirEntry]:
        """Take the directories of a part of a directory's entries, and return the files to visit."""
        kept = [entry for entry in entries if entry.name[0] != "."]
        dotted: dict[str, DirEntry] = {}
        if len(kept) != len(entries):
            dotted = {entry.name: entry for entry in entries if entry.name[0] == "."}
        if decides:
            if len(entries) == MAX_BATCH:  # the rule files may be among what comes later
                visit.deciding = None
            elif dotted:
                visit.deciding = DECIDING & dotted.keys()
            if visit.deciding is None or visit.deciding:
                visit.rules = self._reader.inside(visit.directory, visit.rules, visit.deciding)
        if dotted:
            kept += self._visible_dotted(visit, dotted)
        if kept and visit.rules.active and not self.ignored:
            kept = self._unignored(visit, kept)
        return self._divide(visit, kept)

    def _choose(self, visit: Visit, files: list[DirEntry]) -> None:
        """Add the files of a directory that are selected; of a giant one, keep those that come first."""
        if self.select is not None and files:
            files = self.select(visit.directory, visit.below, files)
        visit.all_files += files
        keep = self.keep
        if keep is not None and len(visit.all_files) > 2 * keep + MAX_BATCH:
            self._keep_first(visit, keep)

    def _keep_first(self, visit: Visit, keep: int) -> None:
        visit.unkept += len(visit.all_files) - keep
        visit.all_files = nsmallest(keep, visit.all_files, key=self.key)

    def _visible_dotted(self, visit: Visit, dotted: dict[str, DirEntry]) -> list[DirEntry]:
        visible: list[DirEntry] = []
        for name, entry in dotted.items():
            if name.lower() in VCS_NAMES:
                self._skip("vcs")
            elif self.hidden is True or (self.hidden and self.hidden(name)):
                visible.append(entry)
            else:
                self._skip("hidden")
                self._exclude(visit, [entry])
        return visible

    def _unignored(self, visit: Visit, entries: list[DirEntry]) -> list[DirEntry]:
        base = with_slash(visit.directory.real_path)
        kept, rules, decided = visit.rules.partition(base, entries, self.deadline)
        if decided < len(entries):
            self._reached = "timeout"
        if rules:
            stay = set(map(id, kept))
            self._exclude(visit, [entry for entry in entries[:decided] if id(entry) not in stay])
            self._skip("ignored", len(rules))
            if self._counting:
                self._left_out.rules.update(rules)
        return kept

    def _exclude(self, visit: Visit, entries: list[DirEntry]) -> None:
        """Note hidden or ignored names, for a second look at them."""
        if self._counting:
            path, below, excluded = with_slash(visit.path), visit.below, self._left_out.excluded
            for entry in entries[: MAX_EXCLUDED - len(excluded)]:
                excluded.append(Excluded(path + entry.name, below + entry.name, entry))

    def _add_left_out(self, visit: Visit, left_out: LeftOut) -> None:
        """Add what was left out in one directory."""
        self._left_out.counts.update(left_out.counts)
        self._left_out.rules.update(left_out.rules)
        self._exclude(visit, [each.entry for each in left_out.excluded])

    def _divide(self, visit: Visit, entries: list[DirEntry]) -> list[DirEntry]:
        """Add the directories to the visit and return the files."""
        exclude, below = self.exclude, visit.below
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
                if is_link and self._resolves_links:
                    is_dir = visit.directory.entry(entry).is_dir
                    self._depends_on_target = True
                if is_dir:
                    visit.directories.append(entry)
                elif self.others or (
                    is_link and self.follow and visit.directory.target_status(entry) is not None
                ):
                    files.append(entry)
                else:
                    self._skip("symlink" if is_link else "special")
            except (AgentFSError, OSError):
                self._skip("unreadable")
        return files


def _too_deep(directory: Directory, name: str) -> bool:
    """Return True if what is in a directory could not be named by a path."""
    paths = [path.encode("utf-8", "surrogatepass") for path in (directory.path, directory.real_path)]
    parts = 2 + max(path.count(b"/") for path in paths)
    size = len(name.encode("utf-8", "surrogatepass")) + max(map(len, paths))
    return parts >= MAX_PARTS or size + MAX_NAME_BYTES + 2 > MAX_PATH_BYTES


def path_order(path: str) -> str:
    """Return the key that sorts paths as a walk visits them: part by part."""
    return path.replace("/", "\0")
