"""The one walk under `ls`, `glob` and `grep`: in path order, through the door, and counting what it skips."""

import time
from collections import Counter
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass, field
from operator import attrgetter

from agentfs.disk import Directory, Root, show_name
from agentfs.errors import AgentFSError
from agentfs.results import Skipped
from agentfs.search.ignore import IgnoreRules, Listed, Rule

VCS_NAMES = frozenset({".git", ".hg", ".svn", ".jj", ".bzr"})
MAX_RULE_BYTES = 4 * 1024 * 1024
MAX_OPEN = 64

_by_name = attrgetter("name")


@dataclass(slots=True)
class Visit:
    """A run of files of one directory, with no directory between them in path order.

    A directory has one visit for each of its subdirectories that the walk enters, and one more.

    Attributes:
        directory: The directory, open for as long as this visit is the current one.
        path: Its path relative to the root; "" for the root.
        below: Its path relative to the start of the walk with a `/` at its end; "" for the start.
        depth: 1 for the start of the walk, 2 for the directories in it.
        directories: All directories in it that are not left out, by name; in its first visit only.
        files: The files of this run by name; links and special files too if the walk was asked for them.
    """

    directory: Directory
    path: str
    below: str
    depth: int
    directories: list[Listed]
    files: list[Listed]


@dataclass(slots=True)
class _Frame:
    """A directory that the walk is inside of."""

    directory: Directory | None
    path: str
    below: str
    rules: IgnoreRules
    directories: list[Listed] = field(default_factory=list[Listed])
    files: list[Listed] = field(default_factory=list[Listed])
    next_directory: int = 0
    next_file: int = 0


class Walk:
    """One walk below a directory: iterate it once, then ask what it left out.

    Args:
        root: The door to the disk.
        path: Where to start; entered even if it is hidden or ignored.
        max_entries: Names to look at before the walk ends early.
        deadline: The `time.monotonic()` at which it ends early, or None.
        hidden: Whether names that begin with a dot are walked, or a test of such a name.
        ignored: Whether ignored names are walked.
        depth: Levels to list, or 0 for all.
        others: Whether visits have links and special files too; otherwise they count as left out.

    Raises:
        AgentFSError: `path` cannot be opened as a directory: not_found, not_a_directory, outside_workspace, …
            (when the iteration begins).
    """

    def __init__(
        self,
        root: Root,
        path: str,
        *,
        max_entries: int,
        deadline: float | None,
        hidden: bool | Callable[[str], bool] = False,
        ignored: bool = False,
        depth: int = 0,
        others: bool = False,
    ) -> None:
        self._root = root
        self._start = path
        self._room = max_entries
        self._deadline = deadline
        self._hidden = hidden
        self._ignored = ignored
        self._depth = depth
        self._others = others
        self._counts: Counter[str] = Counter()
        self._rules: Counter[Rule] = Counter()
        self._reader = RuleReader(root)
        self._reached: str | None = None

    @property
    def skipped(self) -> Skipped:
        """What the walk has left out so far."""
        rules: Counter[str] = Counter()
        for rule, count in self._rules.items():
            rules[str(rule)] += count
        counts = self._counts
        return Skipped(
            hidden=counts["hidden"],
            ignored=counts["ignored"],
            vcs=counts["vcs"],
            unreadable=counts["unreadable"] + self._reader.unreadable,
            symlink=counts["symlink"],
            special=counts["special"],
            rules=dict(rules),
            reached=self._reached,
        )

    def __iter__(self) -> Iterator[Visit]:
        stack: list[_Frame] = []
        try:
            yield from self._visits(stack)
        finally:
            for frame in stack:
                if frame.directory is not None:
                    frame.directory.close()

    def _visits(self, stack: list[_Frame]) -> Iterator[Visit]:
        start = self._root.open_directory(self._start)
        stack.append(_Frame(start, start.path, "", IgnoreRules()))
        if not self._ignored:
            stack[0].rules = self._reader.above(start.real_path)
        self._fill(stack[0])
        while stack:
            frame = stack[-1]
            directory = self._opened(frame)
            if directory is None:
                stack.pop()
                continue
            depth = len(stack)
            descend = self._depth == 0 or depth < self._depth
            child = frame.directories[frame.next_directory] if self._has_child(frame, descend) else None
            run = self._run(frame, child)
            if run or frame.next_directory == 0:
                directories = frame.directories if frame.next_directory == 0 else []
                yield Visit(directory, frame.path, frame.below, depth, directories, run)
            if child is None:
                stack.pop()
                directory.close()
                continue
            frame.next_directory += 1
            entered = self._enter(frame, directory, child.name)
            if entered is not None:
                stack.append(entered)
                self._park(stack)

    def _has_child(self, frame: _Frame, descend: bool) -> bool:
        return descend and self._reached is None and frame.next_directory < len(frame.directories)

    @staticmethod
    def _run(frame: _Frame, child: Listed | None) -> list[Listed]:
        """Take the files that come before `child`."""
        first, files = frame.next_file, frame.files
        end = len(files)
        if child is not None:
            end = first
            while end < len(files) and files[end].name < child.name:
                end += 1
        frame.next_file = end
        return files if end - first == len(files) else files[first:end]

    def _enter(self, frame: _Frame, directory: Directory, name: str) -> _Frame | None:
        try:
            opened = directory.open_directory(name)
        except (AgentFSError, OSError):
            self._counts["unreadable"] += 1
            return None
        entered = _Frame(opened, opened.path, f"{frame.below}{name}/", frame.rules)
        self._fill(entered)
        return entered

    def _park(self, stack: list[_Frame]) -> None:
        """Keep the number of open directories bounded, however deep the tree is."""
        if len(stack) > MAX_OPEN:
            frame = stack[-1 - MAX_OPEN]
            if frame.directory is not None:
                frame.directory.close()
                frame.directory = None

    def _opened(self, frame: _Frame) -> Directory | None:
        if frame.directory is None:
            if frame.next_file == len(frame.files) and frame.next_directory == len(frame.directories):
                return None
            try:
                frame.directory = self._root.open_directory(frame.path)
            except (AgentFSError, OSError):
                left = len(frame.files) + len(frame.directories) - frame.next_file - frame.next_directory
                self._counts["unreadable"] += left
        return frame.directory

    def _fill(self, frame: _Frame) -> None:
        """Scan the directory of a frame and leave out what the walk leaves out."""
        directory = frame.directory
        if self._reached is not None or directory is None:
            return
        if self._deadline is not None and time.monotonic() > self._deadline:
            self._reached = "timeout"
            return
        try:
            entries = directory.scan()
        except (AgentFSError, OSError):
            self._counts["unreadable"] += 1
            return
        if len(entries) > self._room:
            self._reached = "walk_entries"
            entries = sorted(entries, key=_by_name)[: self._room]
        self._room -= len(entries)
        plain = [entry for entry in entries if entry.name[0] != "."]
        if len(plain) != len(entries):
            dotted = {entry.name: entry for entry in entries if entry.name[0] == "."}
            if not self._ignored:
                frame.rules = self._reader.inside(directory, frame.rules, dotted)
            plain += self._wanted_hidden(dotted)
        if frame.rules.active and not self._ignored:
            plain, rules = frame.rules.sift(slashed(directory.real_path), plain)
            self._counts["ignored"] += len(rules)
            self._rules.update(rules)
        plain.sort(key=_by_name)
        frame.directories, frame.files = self._sorted_out(plain)

    def _wanted_hidden(self, dotted: dict[str, Listed]) -> list[Listed]:
        wanted: list[Listed] = []
        for name, entry in dotted.items():
            if name.lower() in VCS_NAMES:
                self._counts["vcs"] += 1
            elif self._hidden is True or (self._hidden and self._hidden(name)):
                wanted.append(entry)
            else:
                self._counts["hidden"] += 1
        return wanted

    def _sorted_out(self, entries: list[Listed]) -> tuple[list[Listed], list[Listed]]:
        directories: list[Listed] = []
        files: list[Listed] = []
        for entry in entries:
            try:
                if entry.is_file(follow_symlinks=False):
                    files.append(entry)
                elif entry.is_dir(follow_symlinks=False):
                    directories.append(entry)
                elif self._others:
                    files.append(entry)
                else:
                    self._counts["symlink" if entry.is_symlink() else "special"] += 1
            except OSError:
                self._counts["unreadable"] += 1
        return directories, files


class RuleReader:
    """Reads the rule files of directories and counts those that it cannot read."""

    def __init__(self, root: Root) -> None:
        self._root = root
        self.unreadable = 0

    def above(self, real_path: str, *, through: bool = False) -> IgnoreRules:
        """Return the rules of the directories from the root down to the one above a directory.

        Args:
            real_path: The path of the directory, links resolved.
            through: Whether to take its own rules too.
        """
        rules = IgnoreRules()
        parts = real_path.split("/") if real_path else []
        for count in range(len(parts) + through):
            try:
                with self._root.open_directory(show_name("/".join(parts[:count]))) as directory:
                    dotted = {entry.name for entry in directory.scan() if entry.name[0] == "."}
                    rules = self.inside(directory, rules, dotted)
            except (AgentFSError, OSError):
                self.unreadable += 1
        return rules

    def inside(self, directory: Directory, rules: IgnoreRules, dotted: Container[str]) -> IgnoreRules:
        """Return the rules that hold in an open directory.

        Args:
            directory: The directory.
            rules: Those of the directory above.
            dotted: At least the names in it that begin with a dot.
        """
        repository = ".git" in dotted
        if not repository and ".gitignore" not in dotted and ".ignore" not in dotted:
            return rules
        return rules.enter(
            slashed(directory.real_path),
            gitignore=self._content(directory, ".gitignore") if ".gitignore" in dotted else None,
            ignore=self._content(directory, ".ignore") if ".ignore" in dotted else None,
            repository=repository,
            exclude=self._exclude(directory) if repository else None,
        )

    def _content(self, directory: Directory, name: str) -> bytes | None:
        """Return a rule file; a link, a FIFO or a giant is no rule file and counts as unreadable."""
        try:
            with directory.open_file(name) as opened:
                content = opened.read(MAX_RULE_BYTES + 1)
        except (AgentFSError, OSError):
            content = None
        if content is None or len(content) > MAX_RULE_BYTES:
            self.unreadable += 1
            return None
        return content

    @staticmethod
    def _exclude(directory: Directory) -> bytes | None:
        # A worktree's `.git` is a file that names a place outside; rules from there are not ours to read.
        try:
            with (
                directory.open_directory(".git") as git,
                git.open_directory("info") as info,
                info.open_file("exclude") as opened,
            ):
                return opened.read(MAX_RULE_BYTES)
        except (AgentFSError, OSError):
            return None


def rules_for(root: Root, real_path: str) -> IgnoreRules:
    """Return the rules that hold in a directory.

    Args:
        root: The door to the disk.
        real_path: The path of the directory, links resolved.
    """
    return RuleReader(root).above(real_path, through=True)


def slashed(path: str) -> str:
    """Return a path with a `/` at its end; "" stays."""
    return f"{path}/" if path else ""


def path_order(path: str) -> list[str]:
    """Return the key that sorts paths as a walk meets them: part by part.

    Args:
        path: A path with `/`.
    """
    return path.split("/")
