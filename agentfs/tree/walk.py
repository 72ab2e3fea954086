"""The one walk under `ls`, `glob`, `find` and `grep`: in order, confined to the root, counting skips."""

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import nsmallest
from operator import attrgetter
from typing import Any, NamedTuple

from agentfs import call_context
from agentfs.errors import AgentFSError
from agentfs.fs import MAX_NAME_BYTES, MAX_PARTS, MAX_PATH_BYTES, Directory, Root, display_name
from agentfs.results import Skipped
from agentfs.tree.gitignore import OUTSIDE, IgnoreRules, Listed, Rule
from agentfs.tree.ignore_sources import RuleReader, slashed

VCS_NAMES = frozenset({".git", ".hg", ".svn", ".jj", ".bzr"})
MAX_OPEN = 64
PART = 20_000  # entries of one directory that are taken at a time
_MOST_HELD = (
    192 * 1024 * 1024
)  # bytes of the names that a walk holds, of all directories that it is inside of
_ENTRY_BYTES = 160  # of what a scan says of a name, without the name

MOST_LEFT_OUT = 1000  # of what was left out that is kept by name

Select = Callable[[Directory, str, list[Listed]], list[Listed]]

_by_name = attrgetter("name")


@dataclass(slots=True)
class Visit:
    """A run of files of one directory, with no directory between them in the order of the walk.

    Attributes:
        directory: The directory, open for as long as this visit is the current one.
        path: Its path relative to the root; "" for the root.
        below: Its path relative to the start of the walk with a `/` at its end; "" for the start.
        depth: 1 for the start of the walk, 2 for the directories in it.
        files: The files of this run in order; links and special files too if the walk was asked for them.
        child: The directory in it that comes next in order, if the walk was asked for directories; the
            visits of that one follow, if it is entered.
        more: Files behind these that were not kept.
    """

    directory: Directory
    path: str
    below: str
    depth: int
    files: list[Listed]
    child: Listed | None = None
    more: int = 0


class Excluded(NamedTuple):
    """A name that a walk left out because it is hidden or ignored.

    Attributes:
        path: Its path relative to the root.
        below: Its path below the start of the walk.
        listed: What the scan said of it.
    """

    path: str
    below: str
    listed: Listed


@dataclass(slots=True)
class _Frame:
    """A directory that the walk is inside of."""

    directory: Directory | None
    path: str
    below: str
    real: str
    rules: IgnoreRules
    directories: list[Listed] = field(default_factory=list[Listed])
    files: list[Listed] = field(default_factory=list[Listed])
    more: int = 0
    held: int = 0
    next_directory: int = 0
    next_file: int = 0


class Walk:
    """One walk below a directory, or below several: iterate it once, then ask what it left out.

    Args:
        root: The confined root.
        path: Where to start; entered even if it is hidden or ignored. Where several overlap, a file is
            visited from each, and what is left out counts once.
        max_entries: Names to look at before the walk ends early.
        deadline: The `time.monotonic()` at which it ends early, or None.
        hidden: Whether names that begin with a dot are walked, or a test of such a name.
        ignored: Whether ignored names are walked.
        depth: Levels to list, or 0 for all.
        others: Whether visits have links and special files too; otherwise they count as left out.
        directories: Whether visits have directories.
        listing: Whether the directories of a directory come before its files, links to directories among
            them; otherwise all names are in one order, which makes that of the paths.
        follow: Whether links are followed where they lead inside, and not in a circle.
        enter: A test which directories may be entered, given the path below the start.
        exclude: A test of what is left out uncounted, given the path below the start and whether it is a
            directory.
        select: What to keep of files of one directory (with its path below the start), in their order.
        keep: The most files to keep of one directory; the others are only counted.
        key: What each directory's names are ordered by, with `listing`.

    Raises:
        AgentFSError: `path` cannot be opened as a directory: not_found, not_a_directory, outside_workspace, …
            (when the iteration begins).
    """

    def __init__(
        self,
        root: Root,
        path: str | Sequence[str],
        *,
        max_entries: int,
        deadline: float | None,
        hidden: bool | Callable[[str], bool] = False,
        ignored: bool = False,
        depth: int = 0,
        others: bool = False,
        directories: bool = False,
        listing: bool = False,
        follow: bool = False,
        enter: Callable[[str], bool] | None = None,
        exclude: Callable[[str, bool], bool] | None = None,
        select: Select | None = None,
        keep: int | None = None,
        key: Callable[[Listed], Any] = _by_name,
    ) -> None:
        self._root = root
        self._starts = [path] if isinstance(path, str) else list(path)
        self._room = max_entries
        self._deadline = deadline
        self._hidden = hidden
        self._ignored = ignored
        self._depth = depth
        self._others = others
        self._directories = directories
        self._listing = listing
        self._follow = follow
        self._may_enter = enter
        self._exclude = exclude
        self._select = select
        self._keep = keep
        self._key = key
        self._counts: Counter[str] = Counter()
        self._rules: Counter[Rule] = Counter()
        self._seen: set[str] = set()  # with several starts: the directories whose names have been counted
        self._counting = True
        self._until = math.inf if deadline is None else deadline
        self._reader = RuleReader(root, self._until)
        self._reached: str | None = None
        self._held = 0
        self.left_out: list[Excluded] = []  # the first that are hidden or ignored

    @property
    def skipped(self) -> Skipped:
        """What the walk has left out so far."""
        rules: Counter[str] = Counter()
        for rule, count in self._rules.items():
            rules[rule.text(self._root.display_path_if_usable)] += count
        counts = self._counts
        return Skipped(
            hidden=counts["hidden"],
            ignored=counts["ignored"],
            vcs=counts["vcs"],
            unreadable=counts["unreadable"] + self._reader.unreadable,
            symlink=counts["symlink"],
            special=counts["special"],
            too_deep=counts["too_deep"],
            rules=dict(rules),
            unread_rules=tuple(map(self._name_of_rules, self._reader.unread)),
            reached=self._reached,
        )

    def _name_of_rules(self, file: str) -> str:
        return (file and self._root.display_path_if_usable(file)) or OUTSIDE

    def __iter__(self) -> Iterator[Visit]:
        stack: list[_Frame] = []
        try:
            for start in self._starts:
                yield from self._visits(stack, start)
        finally:
            for frame in stack:
                if frame.directory is not None:
                    frame.directory.close()

    def _visits(self, stack: list[_Frame], path: str) -> Iterator[Visit]:
        start = self._root.open_directory(path)
        stack.append(_Frame(start, start.path, "", start.real_path, IgnoreRules()))
        if not self._ignored:
            stack[0].rules = self._rules_above(start)
        self._fill(stack[0])
        while stack:
            frame = stack[-1]
            directory = self._opened(frame)
            if directory is None:
                self._held -= stack.pop().held
                continue
            depth = len(stack)
            child: Listed | None = None
            if frame.next_directory < len(frame.directories) and (
                self._directories or self._goes_below(depth)
            ):
                child = frame.directories[frame.next_directory]
            run = self._run(frame, child)
            if run or (child is not None and self._directories) or (child is None and frame.more):
                shown = child if self._directories else None
                yield Visit(directory, frame.path, frame.below, depth, run, shown, 0 if child else frame.more)
            if child is None:
                self._held -= stack.pop().held
                directory.close()
                continue
            frame.next_directory += 1
            entered = self._enter(stack, directory, child) if self._goes_below(depth) else None
            if entered is not None:
                stack.append(entered)
                self._park(stack)

    def _goes_below(self, depth: int) -> bool:
        return self._reached is None and (self._depth == 0 or depth < self._depth)

    def _run(self, frame: _Frame, child: Listed | None) -> list[Listed]:
        """Take the files that come before `child`."""
        first, files = frame.next_file, frame.files
        end = len(files)
        if child is not None:
            end = first
            while not self._listing and end < len(files) and files[end].name < child.name:
                end += 1
        frame.next_file = end
        return files if end - first == len(files) else files[first:end]

    def _enter(self, stack: list[_Frame], directory: Directory, child: Listed) -> _Frame | None:
        frame, name = stack[-1], child.name
        if self._may_enter is not None and not self._may_enter(frame.below + name):
            return None
        if len(frame.path) + len(frame.real) > _SAFE_LENGTH and _too_deep(frame, name):
            self._counts["too_deep"] += self._counting
            return None
        try:
            if child.is_symlink():
                opened = self._behind_link(stack, name)
                if opened is None:
                    return None
            else:
                opened = directory.open_directory(name)
        except (AgentFSError, OSError):
            self._counts["unreadable"] += self._counting
            return None
        entered = _Frame(opened, opened.path, f"{frame.below}{name}/", opened.real_path, frame.rules)
        if child.is_symlink() and not self._ignored:
            entered.rules = self._rules_above(opened)
        self._fill(entered)
        return entered

    def _rules_above(self, directory: Directory) -> IgnoreRules:
        """Return the rules of the directories above one that is not come to from its parent."""
        try:
            return self._reader.above(directory.real_path)
        except TimeoutError:
            self._reached = "timeout"
            return IgnoreRules()

    def _behind_link(self, stack: list[_Frame], name: str) -> Directory | None:
        """Open the directory that a link leads to, unless the walk is inside of it already."""
        if not self._follow:
            return None
        frame = stack[-1]
        opened = self._root.open_directory(slashed(frame.path) + display_name(name))
        if any(each.real == opened.real_path for each in stack):
            opened.close()
            self._counts["symlink"] += self._counting
            return None
        return opened

    def _park(self, stack: list[_Frame]) -> None:
        """Keep the number of open directories bounded, however deep the tree is."""
        if len(stack) > MAX_OPEN:
            frame = stack[-1 - MAX_OPEN]
            if frame.directory is not None:
                frame.directory.close()
                frame.directory = None

    def _opened(self, frame: _Frame) -> Directory | None:
        if frame.directory is None:
            if (
                frame.next_file == len(frame.files)
                and frame.next_directory == len(frame.directories)
                and not frame.more
            ):
                return None
            try:
                frame.directory = self._root.open_directory(frame.path)
                self._refresh(frame, frame.directory)
            except (AgentFSError, OSError):
                left = len(frame.files) + len(frame.directories) - frame.next_file - frame.next_directory
                self._counts["unreadable"] += left + frame.more
        return frame.directory

    def _refresh(self, frame: _Frame, directory: Directory) -> None:
        """Look up what is left of a frame again: an entry is looked up where it was scanned from."""
        left = {each.name for each in frame.files[frame.next_file :]}
        left.update(each.name for each in frame.directories[frame.next_directory :])
        found = {each.name: each for part in directory.scan_parts(PART) for each in part if each.name in left}
        self._counts["unreadable"] += len(left) - len(found)
        for listed, start in ((frame.files, frame.next_file), (frame.directories, frame.next_directory)):
            listed[start:] = [found[each.name] for each in listed[start:] if each.name in found]

    def _fill(self, frame: _Frame) -> None:
        """Scan the directory of a frame and leave out what the walk leaves out."""
        directory = frame.directory
        if self._reached is not None or directory is None:
            return
        if len(self._starts) > 1:
            self._counting = directory.real_path not in self._seen
            self._seen.add(directory.real_path)
        known = False
        try:
            for part in directory.scan_parts(PART):
                call_context.step(len(part))
                if self._deadline is not None and time.monotonic() > self._deadline:
                    self._reached = "timeout"
                    break
                if len(part) > self._room:
                    self._reached = "walk_entries"
                    part = sorted(part, key=_by_name)[: self._room]  # noqa: PLW2901 - what is left of it
                self._room -= len(part)
                before = len(frame.files) + len(frame.directories)
                self._take(frame, directory, part, known=known)
                self._hold(frame, part, len(frame.files) + len(frame.directories) - before)
                if self._reached is not None:
                    break
                known = True
        except TimeoutError:  # of a test of names, or of reading rules
            self._reached = "timeout"
        except (AgentFSError, OSError):
            self._counts["unreadable"] += self._counting
        frame.directories.sort(key=self._key)
        frame.files.sort(key=self._key)
        self._keep_first(frame)

    def _hold(self, frame: _Frame, part: list[Listed], more: int) -> None:
        """Count the memory of what a frame holds of a part, and stop the walk where it is too much."""
        size = more * (_ENTRY_BYTES + sum([len(entry.name) for entry in part]) // max(len(part), 1))
        frame.held += size
        self._held += size
        if self._held > _MOST_HELD:
            self._reached = "memory"

    def _take(self, frame: _Frame, directory: Directory, entries: list[Listed], *, known: bool) -> None:
        plain = [entry for entry in entries if entry.name[0] != "."]
        dotted: dict[str, Listed] = {}
        if len(plain) != len(entries):
            dotted = {entry.name: entry for entry in entries if entry.name[0] == "."}
        if not self._ignored and not known:
            if len(entries) == PART:  # the rule files may be among what comes later
                frame.rules = self._reader.inside(directory, frame.rules)
            elif dotted:
                frame.rules = self._reader.inside(directory, frame.rules, dotted)
        if dotted:
            plain += self._wanted_hidden(frame, dotted)
        if frame.rules.active and not self._ignored:
            entries = plain
            plain, rules, decided = frame.rules.sift(slashed(directory.real_path), plain, self._until)
            if decided < len(entries):
                self._reached, entries = "timeout", entries[:decided]
            if rules:
                stay = set(map(id, plain))
                self._note_left_out(frame, [entry for entry in entries if id(entry) not in stay])
            if rules and self._counting:
                self._counts["ignored"] += len(rules)
                self._rules.update(rules)
        files = self._sort_out(frame, directory, plain)
        if self._select is not None and files:
            files = self._select(directory, frame.below, files)
        frame.files += files
        if self._keep is not None and len(frame.files) > self._keep + PART:
            self._keep_first(frame)

    def _keep_first(self, frame: _Frame) -> None:
        if self._keep is not None and len(frame.files) > self._keep:
            frame.more += len(frame.files) - self._keep
            frame.files = nsmallest(self._keep, frame.files, key=self._key)

    def _wanted_hidden(self, frame: _Frame, dotted: dict[str, Listed]) -> list[Listed]:
        wanted: list[Listed] = []
        for name, entry in dotted.items():
            if name.lower() in VCS_NAMES:
                self._counts["vcs"] += self._counting
            elif self._hidden is True or (self._hidden and self._hidden(name)):
                wanted.append(entry)
            else:
                self._counts["hidden"] += self._counting
                self._note_left_out(frame, [entry])
        return wanted

    def _note_left_out(self, frame: _Frame, entries: list[Listed]) -> None:
        room = MOST_LEFT_OUT - len(self.left_out)
        for entry in entries[:room] if self._counting else ():
            self.left_out.append(Excluded(slashed(frame.path) + entry.name, frame.below + entry.name, entry))

    def _sort_out(self, frame: _Frame, directory: Directory, entries: list[Listed]) -> list[Listed]:
        """Put the directories where they belong and return the files."""
        files: list[Listed] = []
        exclude, below = self._exclude, frame.below
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
                if is_dir:
                    frame.directories.append(entry)
                elif entry.is_symlink():
                    self._sort_link(frame, directory, entry, files)
                elif self._others:
                    files.append(entry)
                else:
                    self._counts["special"] += self._counting
            except (AgentFSError, OSError):
                self._counts["unreadable"] += self._counting
        return files

    def _sort_link(self, frame: _Frame, directory: Directory, link: Listed, files: list[Listed]) -> None:
        if (self._listing or self._follow) and directory.entry(link).is_dir:
            frame.directories.append(link)
        elif self._others or (self._follow and directory.target_status(link) is not None):
            files.append(link)
        else:
            self._counts["symlink"] += self._counting


_SAFE_LENGTH = min(2 * (MAX_PARTS - 3), MAX_PATH_BYTES // 4 - 2 * MAX_NAME_BYTES)


def _too_deep(frame: _Frame, name: str) -> bool:
    """Tell whether what lies in a directory could not be named by a path."""
    paths = (frame.path, frame.real)
    parts = 2 + max(path.count("/") for path in paths)
    size = len(name.encode("utf-8", "surrogatepass")) + max(
        len(path.encode("utf-8", "surrogatepass")) for path in paths
    )
    return parts >= MAX_PARTS or size + MAX_NAME_BYTES + 2 > MAX_PATH_BYTES


def path_order(path: str) -> str:
    """Return the key that sorts paths as a walk meets them: part by part.

    Args:
        path: A path with `/`.
    """
    return path.replace("/", "\0")
