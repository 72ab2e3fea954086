"""`review`: what has changed in which lines and who wrote them, without what was accepted before."""

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
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
from agentfs.history.timeline import Acceptance, Step, moved_to_hidden
from agentfs.history.traced_lines import OTHER, Author, LineEvent, TracedFile, Version, by_another, is_text
from agentfs.history.undo import RequestedPaths, real_paths
from agentfs.limits import Limits
from agentfs.results import FileReview, Hunk, Origin, Review
from agentfs.shown.workspace_context import Context
from agentfs.text import ReplacedLines, bounded_lines, decode, one_line, plural
from agentfs.text.diff import split_lines

_ID_BYTES = 5
_MOST_LONGER = 10  # times the length of a line whose characters are all made visible
_UNDONE: Author = ("tool", "undo")


class FoundFile(NamedTuple):
    """The change of one file since the base, and how it is shown; `old_path` is "" if it is not renamed."""

    change: Change
    old_path: str
    shown: FileReview

    @property
    def is_whole(self) -> bool:
        """True if its hunks can only be decided together."""
        nodes = self.change.before, self.change.after
        return self.shown.kind != "changed" or not all(isinstance(node, FileNode) for node in nodes)

    @property
    def ids(self) -> list[str]:
        """The ids of its hunks."""
        return [hunk.id for hunk in self.shown.hunks]


class FoundChanges(NamedTuple):
    """Everything that has changed since a base: files, directories, and notes on what is not shown."""

    files: tuple[FoundFile, ...]
    directories: tuple[Change, ...]
    notes: tuple[str, ...]

    @property
    def name(self) -> str:
        """A name for these changes, which no others have."""
        return _digest(repr([(file.change.path, file.shown.kind, file.ids) for file in self.files]))


class ChangeHistory:
    """The files that some steps have changed, each with its base and its traced lines."""

    def __init__(self, steps: Sequence[Step], accepted: Sequence[Acceptance]) -> None:
        self.bases: dict[str, Node | None] = {}
        self.directories: dict[str, Node | None] = {}
        self.accepted = set[str]()  # the paths that nothing has changed since they were accepted
        self._traced: dict[str, TracedFile] = {}
        left = [*accepted]
        for step in steps:
            call_context.check()
            while left and left[0].time < step.time:
                self._accept(left.pop(0))
            self._take(step)
        for each in left:
            self._accept(each)

    def file(self, path: str) -> TracedFile:
        """Return the traced file at a path."""
        if path not in self._traced:
            self._traced[path] = TracedFile(self.bases.get(path), path)
        return self._traced[path]

    def _take(self, step: Step) -> None:
        version = Version(("command", step.label) if step.label else step.author, repr(step.time))
        births: dict[str, dict[int, LineEvent]] = {}
        for path, start, end, author in step.by_others:
            by = version._replace(author=author)
            births.setdefault(path, {}).update((at, LineEvent(by, at)) for at in range(start, end))
        files: list[tuple[str, Node | None]] = []
        for change in step.changes:
            path = change.path
            before, after = (
                None if isinstance(node, DirectoryNode) else node for node in (change.before, change.after)
            )
            if change.of_directory:
                self.directories.setdefault(path, change.before)
            if (before, after) != (None, None):
                self.bases.setdefault(path, before)
                self.accepted.discard(path)
                self.file(path).advance(before, by_another(before))
                files.append((path, after))
        for path, source in renames(step.changes).items():
            if self.bases[path] is None:
                self._traced[path] = self._traced[source]
                self._traced[source] = TracedFile(self.bases[source], source)
                self._traced[path].last = LineEvent(version)
        for path, node in files:
            self.file(path).advance(node, version, births.get(path))

    def _accept(self, acceptance: Acceptance) -> None:
        for accepted in acceptance.files:
            path, now = accepted.path, accepted.now
            self.accepted.add(path)
            self.bases.setdefault(path, accepted.base)
            file = self.file(path)
            file.advance(now, by_another(now))
            if accepted.whole:
                self.bases[path] = now
                self._traced[path] = TracedFile(now, path)
                continue
            if self.bases[file.home] != file.base:
                file = self._traced[path] = file.against(self.bases[path], path)
            file.accept(accepted.ranges, mode=accepted.mode)
            self.bases[file.home] = file.base


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
    may_show = cache(root.may_show)
    hidden = moved_to_hidden(steps, lambda path: not may_show(path))
    changes: list[Change] = []
    unknown: list[str] = []
    for path in filter(root.is_usable, history.bases):
        call_context.check()
        try:
            now = read_node(root, path, limits.file_bytes)
        except AgentFSError:
            unknown.append(path)
            continue
        file = history.file(path)
        taken_back = path in history.accepted and path in undone and file.node == undone[path].after
        file.advance(now, by_another(now, _UNDONE if taken_back else OTHER))
        changes.append(Change(path, history.bases[path], now, file.home if file.home != path else ""))
    files: list[FoundFile] = []
    closed: list[str] = []
    taken = set[str]()
    for change, old_path in paired(each for each in changes if not each.changes_nothing):
        paths = [path for path in (change.path, old_path) if path]
        if any(_is_in_scope(path, scope) for path in paths):
            call_context.check()
            shown = _FileHunks(root, history, change, old_path, taken)
            shows = all(path not in hidden and may_show(path) for path in paths)
            closed += [] if shows else paths
            files.append(FoundFile(change, old_path, shown.review(*(shown.hunks() if shows else ()))))
    notes = [
        f"{reason}: {name_paths([*map(root.display_path, paths)])}"
        for reason, paths in (
            ("not shown, because it cannot be read or is too large", unknown),
            ("not shown, because reading is not allowed", closed),
        )
        if paths
    ]
    return FoundChanges(tuple(files), tuple(_directories(root, history, scope)), tuple(notes))


def _is_in_scope(path: str, scope: Sequence[str] | None) -> bool:
    return scope is None or any(is_in(path, each) for each in scope)


def _directories(root: Root, history: ChangeHistory, scope: Sequence[str] | None) -> Iterator[Change]:
    for path, before in history.directories.items():
        if root.is_usable(path) and _is_in_scope(path, scope):
            change = Change(path, before, read_node(root, path, 0) if root.may_show(path) else before)
            if change.of_directory and not change.changes_nothing:
                yield change


class _FileHunks:
    """Makes the hunks of one file."""

    def __init__(
        self, root: Root, history: ChangeHistory, change: Change, old_path: str, taken: set[str]
    ) -> None:
        self._root, self._change, self._old_path, self._taken = root, change, old_path, taken
        self._file = history.file(change.path).against(change.before, old_path)
        self._texts = self._file.base_text, self._file.text
        nodes = change.before, change.after
        self._are_texts = all(map(is_text, nodes, self._texts))

    def review(self, *hunks: Hunk) -> FileReview:
        """Return the file with its hunks."""
        shown = [path and self._root.display_path(path) for path in (self._change.path, self._old_path)]
        return FileReview(shown[0], self._kind(), hunks, shown[1] or None)

    def _kind(self) -> Literal["created", "changed", "deleted", "renamed", "mode", "binary"]:
        before, after = self._change.before, self._change.after
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
        return "changed" if self._are_texts else "binary"

    def _note(self) -> str:
        """Return what has changed apart from lines, or ""."""
        before, after = self._change.before, self._change.after
        if self._old_path:
            return f"renamed from {quote(self._root.display_path(self._old_path))}"
        if isinstance(after, LinkNode):
            return f"link to {quote(after.target)}"
        if isinstance(after, DirectoryNode):
            return "a directory now"
        if isinstance(before, LinkNode):
            return "a link before"
        if isinstance(before, FileNode) and isinstance(after, FileNode) and before.mode != after.mode:
            return f"mode {before.mode:03o} to {after.mode:03o}"
        return ""

    def hunks(self) -> Iterator[Hunk]:
        """Yield the hunks, first the one that is not about lines."""
        traced = self._file.hunks() if self._are_texts else []
        if (note := self._note()) or not traced:
            is_whole = self._kind() not in ("changed", "mode")
            nodes = (self._change.before, self._change.after) if is_whole else ()
            yield self._hunk(
                ReplacedLines(0, 0, 0, 0), (), (), [self._file.last], note or self._kind(), nodes
            )
        old, new = map(_shown, self._texts)
        counts = Counter(new)
        for place, removed, added in traced:
            events = [each.added for each in added if each.added] or [
                each.removed for each in removed[-1:] if each.removed
            ]
            a, b, c, d = place
            yield self._hunk(place, old[a:b], new[c:d], events, counts=counts)

    def _hunk(
        self,
        place: ReplacedLines,
        old: Sequence[str],
        new: Sequence[str],
        events: Sequence[LineEvent],
        note: str = "",
        nodes: Sequence[Node | None] = (),
        counts: Mapping[str, int] = {},
    ) -> Hunk:
        keys = [
            # Its versions are known only when they are read, so a line with its own text has no other name.
            "" if event.version.author == OTHER and counts.get(text) == 1 else event.name
            for event, text in zip(events, new or [""], strict=True)
        ]
        facts = repr((self._change.path, self._old_path, old, new, keys, note, nodes))
        number = 0
        while (name := _digest(f"{facts}{number}")) in self._taken:
            number += 1
        self._taken.add(name)
        a, b, c, d = place
        return Hunk(
            id=name,
            path=self._root.display_path(self._change.path),
            old_start=a + (b > a),
            old_lines=tuple(old),
            new_start=c + (d > c),
            new_lines=tuple(new),
            origins=tuple(
                Origin(*cast("tuple[Literal['tool'], str]", event.version.author)) for event in events
            ),
            note=note,
        )


def _shown(text: str) -> list[str]:
    """Return the lines of a text with one character for each byte as people read them."""
    plain = split_lines(text)
    if text.isascii():
        return plain
    try:
        decoded = decode(text.encode("latin-1"))
    except AgentFSError:
        return plain
    lines = split_lines(("\ufeff" if decoded.bom else "") + decoded.text)
    return lines if len(lines) == len(plain) else plain


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
    files = tuple(file.shown for file in found.files)
    given = None
    if paths is not None:
        named = [paths] if isinstance(paths, str | os.PathLike) else paths
        given = tuple(os.fspath(each) for each in named)
    where = f"since the checkpoint {quote(since)}" if since else "since the opening"
    counts = f"{plural(len(files), 'file')}, {plural(sum(len(file.hunks) for file in files), 'hunk')}"
    head = f"{counts} changed {where}." if files else f"Nothing to review {where}."
    text = "\n".join([head, *found.notes, *(line for file in files for line in review_lines(file))])
    return Review(files, since, given, found.name, notes=found.notes, text=text)
