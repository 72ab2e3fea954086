"""The one walk under `ls`, `glob`, `find` and `grep`: in order, inside the root, counting what it skips."""

import math
import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
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
_WALK_SHARE = 0.9  # of the time left, for a walk that is made as a whole before its entries are used
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
class _LeftOut:
    """Counts of the names that were left out, and the names that need a second look."""

    counts: Counter[str] = field(default_factory=Counter[str])
    rules: Counter[Rule] = field(default_factory=Counter["Rule"])
    excluded: list[Excluded] = field(default_factory=list[Excluded])  # the first that are hidden or ignored
    # Whether each link leads to a directory, which decides about the order of a listing.
    links: list[tuple[DirEntry, bool]] = field(default_factory=list[tuple[DirEntry, bool]])

    room: int = MAX_EXCLUDED  # how many excluded names there may be
    is_cut: bool = False  # whether there were more

    def __bool__(self) -> bool:
        return bool(self.counts or self.rules or self.excluded or self.links or self.is_cut)

    def add(self, other: "_LeftOut") -> None:
        """Add what was left out in another part of the walk."""
        self.counts.update(other.counts)
        self.rules.update(other.rules)
        self.excluded += other.excluded[: self.room - len(self.excluded)]
        self.links += other.links


class _Piece(NamedTuple):
    """The part of a kept walk that lies in one directory."""

    rules: IgnoreRules  # that apply in it
    entries: list[Any]  # in the order of the walk
    has_directories: bool
    left_out: _LeftOut


_NOTHING = _LeftOut()
_PIECE_SIZE = 10  # names in a list that take as much memory as a usual piece


@dataclass(slots=True)
class KeptWalk:
    """A whole walk of a watched tree; after a change only pieces are made again."""

    key: tuple[Any, ...]
    reader: RuleReader
    checked: int  # the call in which it was last known to hold
    _: KW_ONLY
    path: str  # of the start
    start: int  # characters of a real path that come before the part below the start
    direct: bool  # whether paths are displayed as they are
    # By kept directory: a piece, or where its entries begin if these are all, and the rules are its parent's.
    pieces: dict[Any, _Piece | int] = field(default_factory=dict[Any, "_Piece | int"])
    entries: list[Any] = field(default_factory=list[Any])  # of the kept tree, in the order of the walk
    looked_at: int = 0  # how many names
    left_out: _LeftOut = field(default_factory=_LeftOut)
    lacks_excluded: bool = False  # whether a piece has more excluded names, which were not kept
    changes: int = 0  # of listings, before it was made
    reached: str | None = None  # what ended it early; then it is not kept

    @property
    def size(self) -> int:
        """How many names in a list take as much memory."""
        return len(self.entries) + _PIECE_SIZE * len(self.pieces)

    def add(self, directory: Any, piece: _Piece, rules: IgnoreRules | None) -> None:
        """Add the piece of a directory, without its entries, given the rules of its parent."""
        is_plain = piece.rules is rules and piece.left_out is _NOTHING and not piece.has_directories
        self.pieces[directory] = len(self.entries) if is_plain else piece
        self.looked_at += len(directory.entries)
        if piece.left_out:
            self.left_out.add(piece.left_out)
            self.lacks_excluded |= piece.left_out.is_cut and len(self.left_out.excluded) < MAX_EXCLUDED

    def add_plain(self, directory: Any, before: "KeptWalk") -> bool:
        """Add a directory of an earlier walk with its entries, if it was plain and has not changed."""
        first = before.pieces.get(directory)
        if not isinstance(first, int) or directory.entries is None or directory.changed > before.changes:
            return False
        count = len(directory.entries)
        self.pieces[directory] = len(self.entries)
        self.looked_at += count
        self.entries += before.entries[first : first + count]
        return True

    def paths_of(self, directory: Any) -> tuple[str, str]:
        """Return the path of a kept directory below the start, with a `/` at its end, and its path."""
        below = directory.prefix[self.start :]
        return below, (with_slash(self.path) + display_name(below)).removesuffix("/")

    def once(self, root: Root, key: Hashable, make: Callable[[], list[Any]]) -> list[Any]:
        """Return what is made of the entries, which is kept under a key if there is one."""
        tree = root.tree
        if tree is None or key is None or self.reached:
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
        self._left_out = _LeftOut()
        self._counted: set[str] = set()  # with several starts: the directories whose names have been counted
        self._counting = True
        self._reader = RuleReader(self.root, self.deadline)
        self._reached: str | None = None
        self._memory = 0
        self._pieces: dict[Any, _Piece] = {}  # of the directories that were visited, by kept directory
        # Whether the walk can be kept, as it is before `select`, and whether this one still may be.
        filtered = self.enter or self.exclude or self.follow or callable(self.hidden)
        self._keepable = not (filtered or self.stops or len(self._starts) > 1) and self.key is entry_name
        self._recording = self._keepable and not self.select and not self.keep

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
        if (kept := self.whole() if self.select or self.keep else self.kept()) is not None:
            yield from self._replay(kept)
            return
        stack: list[_Frame] = []
        try:
            for start in self._starts:
                yield from self._visits(stack, start)
            if self.root.tree is not None and self._keepable and not self.select and not self.keep:
                counts = self._left_out.counts
                failed = not self._recording or counts["unreadable"] or counts["too_deep"]
                self._keep(None if failed else self.assembled())
        finally:
            for frame in stack:
                if frame.directory is not None:
                    frame.directory.close()

    def _replay(self, kept: KeptWalk) -> Iterator[Visit]:
        for kept_directory, entries in groupby(kept.entries, _directory_of):
            below, path = kept.paths_of(kept_directory)
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
        kept = tree.memo.get(self._key())
        if not isinstance(kept, KeptWalk) or kept.looked_at > self.max_entries:
            return None
        if kept.checked != tree.calls:
            if not kept.reader.is_current() or not all(map(self._is_same, kept.left_out.links)):
                tree.memo.clear()
                return None
            kept.checked = tree.calls
        if kept.changes != tree.changes:
            tree.memo.drop_made_of(kept.key)
            changed = replace(self, select=None, keep=None)
            kept = changed.assembled(kept)
            if kept is None or kept.reached or kept.looked_at > self.max_entries:
                return None
            self._keep(kept)
        self._left_out = kept.left_out
        call_context.step(kept.looked_at)
        return kept

    def _is_same(self, link: tuple[Any, bool]) -> bool:
        try:
            return self.root.kept_entry(link[0]).is_dir == link[1]
        except (AgentFSError, OSError):
            return False

    def whole(self, *, only_again: bool = False) -> KeptWalk | None:
        """Return the kept walk, made now if it can be; if the time runs out, as far as it came.

        With `only_again` it is made if it was kept before: most of what it needs then still is.
        """
        kept = self.kept()
        tree = self.root.tree
        if kept is not None or tree is None or not self._keepable:
            return kept
        key = self._key()
        if tree.memo.get(key) != tree.changes and (tree.memo.had(key) or not only_again):
            now, share = time.monotonic(), 0.5 if only_again else _WALK_SHARE
            whole = replace(self, select=None, keep=None, deadline=now + (self.deadline - now) * share)
            kept = whole.assembled()
            self._keep(kept)
            if kept is None or (only_again and kept.reached):
                return None
            self._left_out, self._reached, self._reader = kept.left_out, kept.reached, kept.reader
        return kept

    def _keep(self, kept: KeptWalk | None) -> None:
        """Keep a walk, or that it cannot be kept until a listing changes."""
        tree = self.root.tree
        if tree is not None and self._reached is None and (kept is None or not kept.reached):
            tree.keep(self._key(), tree.changes if kept is None else kept, kept.size if kept else 1)

    def assembled(self, before: KeptWalk | None = None) -> KeptWalk | None:
        """Put a kept walk together; make the pieces that are missing or have changed since `before`.

        Returns None if the walk cannot be kept because a directory is not watched or cannot be read.
        """
        tree = self.root.tree
        key = self._key()
        _, path, real_path, display_path, *_ = key
        with self.root.enter_directory(self._starts[0]) as start:
            top: Any = getattr(start, "kept", None)
        if tree is None or top is None:
            return None
        is_direct = path == ("" if display_path == "." else display_path)
        start_length = len(with_slash(real_path))
        kept = KeptWalk(key, self._reader, tree.calls, path=path, start=start_length, direct=is_direct)
        stack: list[tuple[Any, _Piece, Iterator[Any]]] = []
        directory, piece = top, self._piece_of(kept, top, before)
        while piece is not None:
            kept.add(directory, piece, stack[-1][1].rules if stack else None)
            if piece.has_directories:
                stack.append((directory, piece, iter(piece.entries)))
            else:
                kept.entries += piece.entries
            child: Any = None
            while stack and child is None:
                goes_below = self._reached is None and (self.depth == 0 or len(stack) < self.depth)
                for entry in stack[-1][2]:
                    is_directory = entry.type == "d"
                    if self.directories or not is_directory:
                        kept.entries.append(entry)
                    if is_directory and goes_below and (before is None or not kept.add_plain(entry, before)):
                        child = entry
                        break
                else:
                    stack.pop()
            if child is None:
                break
            directory, piece = child, self._piece_of(kept, child, before, stack[-1])
        if before is not None:
            kept.reader = before.reader
            kept.reader.add(self._reader)
        if piece is None or not kept.reader.is_complete or kept.lacks_excluded:
            return None
        kept.changes, kept.reached = tree.changes, self._reached
        return kept

    def _piece_of(
        self,
        kept: KeptWalk,
        directory: Any,
        before: KeptWalk | None,
        parent: tuple[Any, _Piece, Iterator[Any]] | None = None,
    ) -> _Piece | None:
        """Return the piece of a directory, made again if it has changed; None if there can be none."""
        if before is None and (made := self._pieces.get(directory)) is not None:
            return made
        self._memory = 0
        old = None if before is None else before.pieces.get(directory)
        is_listed = directory.entries is not None
        if before is not None and old is not None and is_listed and directory.entered <= before.changes:
            if isinstance(old, int):  # its listing has changed
                old = _Piece(parent[1].rules if parent else IgnoreRules(), [], False, _NOTHING)
            elif directory.changed <= before.changes:
                return old
            self._fill(self._kept_frame(kept, directory, old.rules), rules_known=True)
        elif parent is not None:
            above, around, _ = parent
            frame = self._kept_frame(kept, above, around.rules)
            self._enter([frame], self.root.kept_directory(above, frame.path), directory)
        else:
            rules = IgnoreRules() if self.ignored else self._rules_above(directory.real_path)
            self._fill(self._kept_frame(kept, directory, rules))
        return self._pieces.get(directory) if self._recording else None

    def _kept_frame(self, kept: KeptWalk, directory: Any, rules: IgnoreRules) -> _Frame:
        below, path = kept.paths_of(directory)
        opened = self.root.kept_directory(directory, path)
        return _Frame(opened, path, below, directory.real_path, rules, [], [])

    def _key(self) -> tuple[Any, ...]:
        with self.root.enter_directory(self._starts[0]) as start:
            paths = start.path, start.real_path, self.root.display_path(start.real_path)
        flags = self.hidden, self.ignored, self.others, self.directories, self.listing
        return "walk", *paths, self.depth, *flags

    def _visits(self, stack: list[_Frame], path: str) -> Iterator[Visit]:
        start = self.root.enter_directory(path)
        stack.append(_Frame(start, start.path, "", start.real_path, IgnoreRules(), [], []))
        if not self.ignored:
            stack[0].rules = self._rules_above(start.real_path)
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
            self._left_out.counts[reason] += count

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
            entered.rules = self._rules_above(opened.real_path)
        self._fill(entered)
        self._recording &= opened.is_watched
        return entered

    def _rules_above(self, real_path: str) -> IgnoreRules:
        """Return the rules of the directories above one that is not entered from its parent."""
        try:
            return self._reader.above(real_path)
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
                self._left_out.counts["unreadable"] += len(remaining) + frame.more
            else:
                self._left_out.counts["unreadable"] += len(remaining) - len(found)
                for entries, start in (
                    (frame.files, frame.next_file),
                    (frame.directories, frame.next_directory),
                ):
                    entries[start:] = [found[each.name] for each in entries[start:] if each.name in found]
        return frame.directory

    def _fill(self, frame: _Frame, *, rules_known: bool = False) -> None:
        """Scan the directory of a frame and leave out what the walk leaves out."""
        directory = frame.directory
        if self._reached is not None or directory is None:
            return
        if not self._recording or not directory.is_watched:
            self._scan(frame, directory, rules_known=rules_known)
            return
        around = self._left_out
        self._left_out = own = _LeftOut(room=around.room - len(around.excluded))
        self._scan(frame, directory, rules_known=rules_known)
        around.add(own)
        self._left_out = around
        if own.counts["unreadable"]:
            self._recording = False
            return
        directories, entries = frame.directories, [*frame.files]
        if directories:
            entries = (
                [*directories, *entries] if self.listing else sorted(directories + entries, key=entry_name)
            )
        kept: Any = getattr(directory, "kept", None)
        self._pieces[kept] = _Piece(frame.rules, entries, bool(directories), own or _NOTHING)

    def _scan(self, frame: _Frame, directory: Directory, *, rules_known: bool) -> None:
        if len(self._starts) > 1:
            self._counting = directory.real_path not in self._counted
            self._counted.add(directory.real_path)
        first = not rules_known
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
                self._left_out.rules.update(rules)
        return kept

    def _add_excluded(self, frame: _Frame, entries: list[DirEntry]) -> None:
        if self._counting:
            path, below = with_slash(frame.path), frame.below
            left_out = self._left_out
            room = left_out.room - len(left_out.excluded)
            left_out.is_cut |= len(entries) > room
            for entry in entries[:room]:
                left_out.excluded.append(Excluded(path + entry.name, below + entry.name, entry))

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
                        self._left_out.links.append((entry, is_dir))
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
