"""`review`: what has changed in which lines and who wrote them, without what was accepted before."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, cached_property
from typing import Literal, NamedTuple, cast

from agentfs.base import call_context
from agentfs.base.lazy import hashlib
from agentfs.errors import AgentFSError
from agentfs.fs import Change, DirectoryNode, FileNode, LinkNode, Node, Root, quote
from agentfs.fs.path import is_in
from agentfs.history.journal import Journal
from agentfs.history.renames import renames
from agentfs.history.report import name_paths, paired
from agentfs.history.take_back import read_node
from agentfs.history.timeline import Acceptance, AcceptedFile, Step, moved_to_hidden
from agentfs.history.traced_lines import (
    OTHER,
    Author,
    TracedFile,
    Version,
    by_another,
    is_text,
    spliced,
    text_of,
)
from agentfs.history.undo import RequestedPaths, real_paths
from agentfs.limits import Limits
from agentfs.results import FileReview, Hunk, Origin, Review
from agentfs.shown.workspace_context import Context
from agentfs.text import ReplacedLines, bounded_lines, decode, one_line, plural
from agentfs.text.diff import git_line_changes, split_lines

_ID_BYTES = 5
_MOST_LONGER = 10  # times the length of a line whose characters are all made visible
_UNDONE: Author = ("tool", "undo")
_Kind = Literal["created", "changed", "deleted", "renamed", "mode", "binary"]


class ReviewedHunk(NamedTuple):
    """A hunk as it is shown, and the line ranges that it stands for; None if it is not about lines."""

    shown: Hunk
    lines: ReplacedLines | None
    is_mode: bool = False


class ReviewedFile(NamedTuple):
    """The change of one file since the base, with its hunks; `old_path` is "" if it is not renamed."""

    change: Change
    old_path: str
    kind: _Kind
    hunks: tuple[ReviewedHunk, ...]

    @property
    def is_whole(self) -> bool:
        """True if its hunks can only be decided together."""
        return self.kind != "changed" or any(each.lines is None and not each.is_mode for each in self.hunks)

    @property
    def ids(self) -> list[str]:
        """The ids of its hunks."""
        return [each.shown.id for each in self.hunks]


class FoundChanges(NamedTuple):
    """Everything that has changed since a base: files, directories, and notes on what is not shown."""

    files: tuple[ReviewedFile, ...]
    directories: tuple[Change, ...]
    notes: tuple[str, ...]

    @property
    def name(self) -> str:
        """A name for these changes, which no others have."""
        return _digest(repr([(file.change.path, file.kind, file.ids) for file in self.files]))


class ChangeHistory:
    """The files that some steps have changed, each with its base and its traced lines."""

    def __init__(self, steps: Sequence[Step], accepted: Sequence[Acceptance]) -> None:
        self.bases: dict[str, Node | None] = {}
        self.directories: dict[str, Node | None] = {}
        self._traced: dict[str, TracedFile] = {}
        self.homes: dict[str, str] = {}  # the path whose base a renamed file is compared with
        self.accepted = set[str]()  # the paths that nothing has changed since they were accepted
        left = list(reversed(accepted))
        for step in steps:
            call_context.check()
            while left and left[-1].time < step.time:
                self._accept(left.pop())
            self._take(step)
        while left:
            self._accept(left.pop())

    def file(self, path: str) -> TracedFile:
        """Return the traced file at a path."""
        if path not in self._traced:
            self._traced[path] = TracedFile(self.bases.get(path))
        return self._traced[path]

    def _take(self, step: Step) -> None:
        author = ("command", step.label) if step.label else step.author
        version = Version(author, repr(step.time))
        sources = renames(step.changes)
        gone = set(sources.values())
        by_path = {change.path: change for change in step.changes}
        for path, change in by_path.items():
            if change.of_directory:
                self.directories.setdefault(path, change.before)
            before = None if isinstance(change.before, DirectoryNode) else change.before
            after = None if isinstance(change.after, DirectoryNode) else change.after
            if change.of_directory and (before or after) is None:
                continue
            self.bases.setdefault(path, before)
            self.accepted.discard(path)
            if path in sources:
                source = by_path[sources[path]]
                self.bases.setdefault(source.path, source.before)
                moved = self.file(source.path)
                moved.advance(source.before, by_another(source.before))
                if self.bases[path] is None:
                    self._traced[path] = moved
                    self.homes[path] = self.homes.pop(source.path, source.path)
                    self._traced[source.path] = TracedFile(self.bases[source.path])
                else:
                    self.file(path).advance(before, by_another(before))
                self.file(source.path).advance(None, version)
            elif path in gone:
                continue
            else:
                self.file(path).advance(before, by_another(before))
            others = [(each.start, each.end, each.author) for each in step.by_others if each.path == path]
            self.file(path).advance(after, version, others)

    def _accept(self, acceptance: Acceptance) -> None:
        for accepted in acceptance.files:
            path, now = accepted.path, accepted.now
            self.accepted.add(path)
            if path not in self.bases:
                self.bases[path] = accepted.base
            file = self.file(path)
            file.advance(now, by_another(now))
            home = self.homes.get(path, path)
            if self.bases[home] != file.base:
                home = path
                file = self._traced[path] = TracedFile(self.bases[path])
                file.advance(now, by_another(now))
            if accepted.whole or not (is_text(file.base, file.base_text) and is_text(now, file.text)):
                if accepted.whole or (now is not None and file.base is None and _covers(accepted, file)):
                    file.rest_on(now)
                    self.homes.pop(path, None)
                    self.bases[path] = now
                continue
            base = with_accepted(file, accepted)
            self.bases[home] = base
            file.accept(base, _accepted(accepted, file))


def _covers(accepted: AcceptedFile, file: TracedFile) -> bool:
    changes = file.changes()
    return bool(changes) and len(_accepted(accepted, file)) == len(changes)


def _accepted(accepted: AcceptedFile, file: TracedFile) -> list[ReplacedLines]:
    """Return the changes of a file all of whose new lines were accepted, or whose deletion was."""
    lines = {line for start, end in accepted.ranges for line in range(start, end)}
    gaps = {start for start, end in accepted.ranges if start == end}
    return [
        each
        for each in file.changes()
        if (
            each.new_start in gaps
            if each.new_start == each.new_end
            else lines.issuperset(range(each.new_start, each.new_end))
        )
    ]


def with_accepted(file: TracedFile, accepted: AcceptedFile) -> Node | None:
    """Return the base of a traced text file with the accepted changes."""
    base, now = file.base, accepted.now
    if not (isinstance(base, FileNode) and isinstance(now, FileNode)):
        return base
    new = split_lines(text_of(now))
    changes = [(each, "".join(new[each.new_start : each.new_end])) for each in _accepted(accepted, file)]
    ranges = [(each.old_start, each.old_end, text) for each, text in changes]
    return with_lines(base, ranges, now if accepted.mode else None)


def with_lines(
    node: FileNode, ranges: Iterable[tuple[int, int, str]], mode_of: FileNode | None = None
) -> FileNode:
    """Return a text file with other lines, and optionally with the mode of another one."""
    text = spliced(text_of(node), ranges).encode("latin-1")
    return FileNode.of(mode_of.mode if mode_of else node.mode, text, node.metadata)


def changed_files(
    journal: Journal, root: Root, limits: Limits, since: str | None, scope: Sequence[str] | None
) -> FoundChanges:
    """Return what has changed since a checkpoint and is not accepted."""
    journal.end_late_recordings()
    with journal.exclusive():
        steps, _ = journal.steps_since(since)
        is_all = since is None and not journal.timeline.dropped
        accepted = journal.accepted_since(None if is_all else steps[0]) if steps or is_all else ()
        undone = {each.path: each for step in journal.timeline.undone_steps for each in step.changes}
    history = ChangeHistory(steps, accepted)
    changes: list[Change] = []
    unknown: list[str] = []
    for path in [path for path in history.bases if root.is_usable(path)]:
        call_context.check()
        try:
            now = read_node(root, path, limits.file_bytes)
        except AgentFSError:
            unknown.append(path)
            continue
        file = history.file(path)
        taken_back = path in history.accepted and path in undone and file.node == undone[path].after
        file.advance(now, by_another(now, _UNDONE if taken_back else OTHER))
        change = Change(path, history.bases[path], now, history.homes.get(path, ""))
        if not change.changes_nothing:
            changes.append(change)
    may_show = cache(root.may_show_recorded)
    hidden = moved_to_hidden(steps, lambda path: not may_show(path))
    taken = set[str]()
    files: list[ReviewedFile] = []
    closed: list[str] = []
    for change, old_path in paired(changes):
        paths = [path for path in (change.path, old_path) if path]
        if scope is not None and not any(is_in(path, each) for path in paths for each in scope):
            continue
        if shows := not any(path in hidden or not may_show(path) for path in paths):
            call_context.check()
        else:
            closed += paths
        made = _Hunks(root, history, change, old_path, taken)
        files.append(ReviewedFile(change, old_path, made.kind, tuple(made.hunks()) if shows else ()))
    notes = [
        f"{reason}: {name_paths([*map(root.display_path, paths)])}"
        for reason, paths in (
            ("not shown, because it cannot be read or is too large", unknown),
            ("not shown, because reading is not allowed", closed),
        )
        if paths
    ]
    return FoundChanges(tuple(files), tuple(_directories(root, history, scope)), tuple(notes))


def _directories(root: Root, history: ChangeHistory, scope: Sequence[str] | None) -> Iterator[Change]:
    for path, before in history.directories.items():
        if root.is_usable(path) and (scope is None or any(is_in(path, each) for each in scope)):
            now = read_node(root, path, 0) if root.may_show(path) else before
            change = Change(path, before, now)
            if change.of_directory and not change.changes_nothing:
                yield change


class _Hunks:
    """Makes the hunks of one file."""

    def __init__(
        self, root: Root, history: ChangeHistory, change: Change, old_path: str, taken: set[str]
    ) -> None:
        self._root, self._change, self._old_path = root, change, old_path
        self._file, self._taken = history.file(change.path), taken
        self._base = history.bases[old_path] if old_path else change.before
        self.kind: _Kind = self._kind()

    @cached_property
    def _counts(self) -> Counter[str]:
        """The number of times each line is in the file now."""
        return Counter(self._shown(self._change.after))

    def _kind(self) -> _Kind:
        before, after = self._base, self._change.after
        if self._old_path:
            return "renamed"
        if before is None:
            return "created"
        if after is None or isinstance(after, DirectoryNode):
            return "deleted"
        if not (isinstance(before, FileNode) and isinstance(after, FileNode)):
            return "changed"
        if before.digest == after.digest:
            return "mode"
        texts = self._is_text(before) and self._is_text(after)
        return "changed" if texts else "binary"

    def hunks(self) -> Iterator[ReviewedHunk]:
        """Yield the hunks, first the one that is not about lines."""
        before, after = self._base, self._change.after
        lines = self._line_changes()
        note = self._note(before, after)
        if note or not lines:
            mode = bool(note) and self.kind == "changed" and isinstance(before, FileNode)
            yield ReviewedHunk(self._hunk(ReplacedLines(0, 0, 0, 0), (), (), note or self.kind), None, mode)
        old, new = self._shown(before), self._shown(after)
        for change in lines:
            a, b, c, d = change
            yield ReviewedHunk(self._hunk(change, old[a:b], new[c:d], ""), change)

    def _line_changes(self) -> Sequence[ReplacedLines]:
        before, after = self._base, self._change.after
        if any(node is not None and not self._is_text(node) for node in (before, after)):
            return ()
        if self._file.base == before or (before is None and self._file.base_text == ""):
            return self._file.changes()
        return git_line_changes(self._file.text_of(before), self._file.text_of(after))

    def _shown(self, node: Node | None) -> list[str]:
        """Return the lines of a text file as people read them."""
        text = self._file.text_of(node)
        plain = split_lines(text)
        if text.isascii():
            return plain
        try:
            decoded = decode(text.encode("latin-1"))
        except AgentFSError:
            return plain
        lines = split_lines(("\ufeff" if decoded.bom else "") + decoded.text)
        return lines if len(lines) == len(plain) else plain

    def _is_text(self, node: Node | None) -> bool:
        return is_text(node, self._file.text_of(node))

    def _note(self, before: Node | None, after: Node | None) -> str:
        if self._old_path:
            return f"renamed from {quote(self._root.display_path(self._old_path))}"
        if isinstance(before, FileNode) and isinstance(after, FileNode):
            if before.mode != after.mode:
                return f"mode {before.mode:03o} to {after.mode:03o}"
            return "binary" if self.kind == "binary" else ""
        if isinstance(after, DirectoryNode):
            return "a directory now"
        kinds = ["link" if isinstance(each, LinkNode) else "" for each in (before, after)]
        if any(kinds):
            target = after.target if isinstance(after, LinkNode) else ""
            return f"link to {quote(target)}" if target else "a link before"
        return ""

    def _hunk(self, lines: ReplacedLines, old: Sequence[str], new: Sequence[str], note: str) -> Hunk:
        a, b, c, d = lines
        births = [*self._file.births(c, d)]
        if not births:
            births = [self._file.death(a, b if self._file.base == self._base else a)]
        keys = [
            # Its versions are known only when they are read, so a line with its own text has no other name.
            "" if version.author == OTHER and self._counts[text] == 1 else key
            for (version, key), text in zip(births, new or [""], strict=True)
        ]
        path = self._change.path
        is_whole = not (old or new) and self.kind not in ("changed", "mode")
        nodes = (self._base, self._change.after) if is_whole else ()
        facts = repr((path, self._old_path, old, new, keys, note, nodes))
        number = 0
        while (name := _digest(f"{facts}{number}")) in self._taken:
            number += 1
        self._taken.add(name)
        return Hunk(
            id=name,
            path=self._root.display_path(path),
            old_start=a + (b > a),
            old_lines=tuple(old),
            new_start=c + (d > c),
            new_lines=tuple(new),
            origins=tuple(
                Origin(*cast("tuple[Literal['tool'], str]", version.author)) for version, _ in births
            ),
            note=note,
        )


def _digest(text: str) -> str:
    data = text.encode("utf-8", "surrogatepass")
    return hashlib.blake2b(data, digest_size=_ID_BYTES).hexdigest()


def review_lines(file: FileReview) -> Iterator[str]:
    """Yield the lines of a text about a file: its kind and path, and each hunk."""
    origin = f" from {quote(file.old_path)}" if file.old_path else ""
    yield f"{file.kind} {quote(file.path)}{origin}"
    for hunk in file.hunks:
        yield f"@@ {hunk.id} @@ {one_line(hunk.where)}, by {one_line(hunk.by)}"
        yield from hunk_lines(hunk)


def hunk_lines(hunk: Hunk) -> list[str]:
    """Return the lines of a hunk as in a diff, bounded, and with every character visible."""
    lines = [
        f"{mark}{line}" for mark, many in (("-", hunk.old_lines), ("+", hunk.new_lines)) for line in many
    ]
    ended = [line.removesuffix("\n") for line in lines]
    return bounded_lines(ended, sum(map(len, ended)) * _MOST_LONGER + len(ended))


def review(journal: Journal, context: Context, since: str | None, paths: RequestedPaths) -> Review:
    """Return what has changed since a checkpoint and is not accepted, for a person."""
    root = context.root
    found = changed_files(journal, root, context.limits, since, real_paths(root, paths))
    files = tuple(
        FileReview(
            root.display_path(file.change.path),
            file.kind,
            tuple(each.shown for each in file.hunks),
            root.display_path(file.old_path) if file.old_path else None,
        )
        for file in found.files
    )
    given = None
    if paths is not None:
        named = [paths] if isinstance(paths, str | os.PathLike) else paths
        given = tuple(os.fspath(each) for each in named)
    where = f"since the checkpoint {quote(since)}" if since else "since the opening"
    counts = f"{plural(len(files), 'file')}, {plural(sum(len(file.hunks) for file in files), 'hunk')}"
    head = f"{counts} changed {where}." if files else f"Nothing to review {where}."
    text = "\n".join([head, *found.notes, *(line for file in files for line in review_lines(file))])
    return Review(files, since, given, found.name, notes=found.notes, text=text)
