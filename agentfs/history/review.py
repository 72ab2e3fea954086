"""`review` and `apply_review`: changes against the accepted base of each path, in hunks with authors.

Who wrote each line comes from replaying the versions in the journal, by position.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import groupby
from typing import Literal, NamedTuple, cast

from agentfs.base import call_context
from agentfs.base.advice import plural
from agentfs.base.lazy import hashlib
from agentfs.base.visible import one_line
from agentfs.errors import AgentFSError, ConflictError, InvalidArgumentError
from agentfs.fs import Change, DirectoryNode, FileNode, LinkNode, MovedNode, Node, quote
from agentfs.fs.apply import Applied, directories_above
from agentfs.fs.node import EntryNode, begin_again, reverse
from agentfs.history.database import Contents
from agentfs.history.journal import Journal
from agentfs.history.log import Author, Step, file_moves, is_in_scope, net_changes, with_contents
from agentfs.history.report import paired, path_notes, paths_of
from agentfs.history.step_merge import Disk, read_node
from agentfs.history.undo import RequestedPaths, real_paths, record_restored, retried
from agentfs.results import FileReview, Hunk, Origin, Review, ReviewedPlace, ReviewedResult, reviewed_text
from agentfs.shown.workspace_context import Context
from agentfs.text.decoding import UNKNOWN_8BIT, Decoded, decode, decode_in
from agentfs.text.diff import ReplacedLines, bounded_lines, git_line_changes, line_count, split_lines
from agentfs.text.git_patch import Blob
from agentfs.text.lines import newline_of

OTHER: Author = ("other", "")


class Trace(NamedTuple):
    """The addition or removal of a line.

    `name` is the step and the index in its version, "" for another program. `touches_other` is True for lines
    of other programs, and for lines in their place.
    """

    author: Author
    name: str = ""
    touches_other: bool = False


BY_OTHERS = Trace(OTHER, touches_other=True)


class TracedHunk(NamedTuple):
    """Lines that differ from the base, with the origin of each new line, or of the deletion."""

    place: ReplacedLines
    origins: tuple[Trace, ...]
    note: str = ""  # more about the change, if it is not of lines alone

    @property
    def touches_other(self) -> bool:
        """True if it is not only of this workspace."""
        return any(each.touches_other for each in self.origins)

    def is_after(self, position: int) -> bool:
        """Return True if it has lines of a step after a position, or of another program."""
        numbers = (each.name.partition(":")[0] for each in self.origins)
        return any(not number or int(number) > position for number in numbers)


def text_of(node: Node | None) -> str | None:
    """Return the text of a file, one character for each byte; "" without a file, None if it is binary."""
    blob = Blob("", node.load() if isinstance(node, FileNode) else b"")
    return None if blob.is_binary else blob.text


class TracedFile(NamedTuple):
    """One version of a file, with the origin of each line and of each removal; None for the first version."""

    node: Node | None
    text: str
    first: str  # the text of the first version
    slots: tuple[Trace | None, ...]  # of what was removed before the first line, of this line, and so on
    last: Trace = BY_OTHERS  # the origin of the last change
    restored: Trace | None = None  # that of an undo that came back to an earlier version

    @classmethod
    def of(cls, node: Node | None, last: Trace = BY_OTHERS) -> "TracedFile":
        """Return the first version of a file."""
        text = text_of(node) or ""
        return cls(node, text, text, (None,) * (2 * line_count(text) + 1), last)

    def advanced(
        self, node: Node | None, origin: Trace, births: Mapping[int, Author] | None = None
    ) -> "TracedFile":
        """Return the next version; `births` has the authors of lines that are not by its author."""
        if node == self.node:
            return self
        text = text_of(node) or ""
        slots: list[Trace | None] = []
        done = 0
        for start, end, new_start, new_end in () if text == self.text else git_line_changes(self.text, text):
            replaced = self.slots[2 * start : 2 * end + 1]
            lines, marks = replaced[1::2], [*filter(None, replaced[::2])]
            touches = origin.author == OTHER or any(each.touches_other for each in filter(None, replaced))
            slots += self.slots[done : 2 * start]
            for at in range(new_start, new_end):
                author = (births or {}).get(at, origin.author)
                slots += None, Trace(author, f"{origin.name}:{at}", touches)
            # Whoever removed a line of the base is still named if another removes what is in its place.
            if None in lines or (lines and not marks):
                marks = [Trace(origin.author, f"{origin.name}:{start}-")]
            slots.append(marks[-1]._replace(touches_other=touches) if marks else None)
            done = 2 * end + 1
        slots += self.slots[done:]
        return TracedFile(node, text, self.first, tuple(slots), origin)

    def hunks(self, base_text: str) -> Iterator[TracedHunk]:
        """Yield the changes from a base to the present text, with the lines of each author apart."""
        # A line of the first version that differs from an accepted base was brought back.
        unknown = (self.restored if base_text != self.first else None) or self.last
        for a, b, c, d in git_line_changes(base_text, self.text):
            if c == d:
                yield TracedHunk(ReplacedLines(a, b, c, d), (self.slots[2 * c] or unknown,))
                continue
            origins = self.origins(c, d, unknown)
            runs = [[*run] for _, run in groupby(origins, key=lambda each: each.author)]
            # If others have lines among these, reversing any of them would also reverse lines of others.
            touches = any(each.touches_other for each in origins)
            start, old = c, a
            for run in runs:
                end = start + len(run)
                old_end = b if len(runs) == 1 or b - a != d - c else old + len(run)
                marked = tuple([each._replace(touches_other=True) for each in run] if touches else run)
                yield TracedHunk(ReplacedLines(old, old_end, start, end), marked)
                start, old = end, old_end

    def origins(self, start: int, end: int, unknown: Trace) -> list[Trace]:
        """Return the origins of some lines; those of the first version have the origin `unknown`."""
        return [each or unknown for each in self.slots[2 * start + 1 : 2 * end : 2]]


def replay(steps: Sequence[Step], first_number: int) -> dict[str, TracedFile]:
    """Return the files that some steps have changed, by path, as the last of them left each."""
    files: dict[str, TracedFile] = {}
    restored = {change.after for step in steps if step.toggles is not None for change in step.changes}
    versions: dict[tuple[str, Node | None], TracedFile] = {}  # those that an undo restores

    def put(path: str, file: TracedFile) -> None:
        files[path] = file
        if file.node in restored:
            versions[path, file.node] = file

    for number, step in enumerate(steps, first_number):
        author = ("command", step.label) if step.label else step.author
        origin = Trace(author, str(number))
        births: dict[str, dict[int, Author]] = {}
        for path, start, end, other in step.by_others:
            births.setdefault(path, {}).update(dict.fromkeys(range(start, end), other))
        changed = [each for each in step.changes if has_file(each) or each.path in files]
        for each in changed:
            known = files.get(each.path) or TracedFile.of(each.before)
            put(each.path, known.advanced(each.before, BY_OTHERS))
        moved = {path: files[source] for path, source in file_moves(step.changes).items()}
        for path, file in moved.items():
            files[path] = file._replace(first=files[path].first, last=origin, restored=None)
        for each in changed:
            path, version = each.path, versions.get((each.path, each.after))
            if step.toggles is not None and version is not None:
                put(path, version._replace(restored=origin))
            else:
                put(path, files[path].advanced(each.after, origin, births.get(path)))
    return files


def has_file(change: Change) -> bool:
    """Return True if a change is not only of a directory."""
    return any(isinstance(node, EntryNode) for node in (change.before, change.after))


def with_lines(node: FileNode, ranges: Sequence[tuple[int, int, str]], mode: int) -> FileNode:
    """Return a text file with ranges of its lines replaced, which are in order, and with a mode."""
    lines = split_lines(text_of(node) or "")
    for start, end, new in reversed(ranges):
        lines[start:end] = [new]
    return FileNode.of(mode, "".join(lines).encode("latin-1"), node.metadata)


_ID_BYTES = 5
_MOST_LONGER = 10  # times the length of a line whose characters are all made visible
_NO_LINES = ReplacedLines(0, 0, 0, 0)
_Kind = Literal["created", "changed", "deleted", "renamed", "mode", "binary"]


class FoundFile(NamedTuple):
    """The change of one file since its base."""

    change: Change
    shown: FileReview
    traced: Sequence[TracedHunk]  # of each hunk
    by_lines: bool  # False if its only hunk is the whole change
    encoding: str | None

    @property
    def hunks(self) -> Iterator[tuple[Hunk, TracedHunk]]:
        """Its hunks with their places."""
        return zip(self.shown.hunks, self.traced, strict=True)


class FoundChanges(NamedTuple):
    """Everything that has changed since its base: files, directories, and notes on what is not shown."""

    files: tuple[FoundFile, ...]
    directories: tuple[Change, ...]
    notes: tuple[str, ...]


def changed_files(
    journal: Journal, context: Context, since: str | None = None, scope: Sequence[str] | None = None
) -> FoundChanges:
    """Return what has changed and is not accepted, and with `since` has lines of steps after a checkpoint."""
    journal.settle_recordings()
    root, max_bytes, groups = context.root, context.limits.file_bytes, journal.groups
    with journal.lock:
        position = journal.position_of(since) if since else 0
        kept, dropped, accepted = journal.log.after(0), journal.log.dropped, {**journal.accepted}
    steps = with_contents(kept, Disk(root, max_bytes, Contents().keep_node).node)
    traced = replay(steps, dropped + 1)
    own = (step for step in steps if step.groups[: len(groups)] == groups)
    net = {each.path: each for each in net_changes(own)}
    bases = {path: each.before for path, each in net.items()} | accepted
    changes: list[Change] = []
    directories: list[Change] = []
    unknown: list[str] = []
    for path, base in bases.items():
        if not root.is_usable(path):
            continue
        call_context.check()
        try:
            now = read_node(root, path, max_bytes)
        except AgentFSError:
            now = MovedNode("other")
        known = net.get(path)
        change = Change(path, base, now, known.moved_from if known and base is None else "")
        if change.changes_nothing:
            continue
        if not has_file(change):
            directories += [change] if known and known.of_directory and root.may_show(path) else []
        elif isinstance(base, MovedNode) or isinstance(now, MovedNode):  # others have deleted what was moved
            unknown.append(path)
        else:
            traced[path] = (traced.get(path) or TracedFile.of(base)).advanced(now, BY_OTHERS)
            changes.append(change)
    files: list[FoundFile] = []
    closed: list[str] = []
    may_show = cache(root.may_show)
    for change in paired(changes):
        if not any(is_in_scope(path, scope) for path in paths_of(change)):
            continue
        call_context.check()
        encoding = journal.encodings.get(change.path) or journal.encodings.get(change.moved_from)
        old_name = root.display_path(change.moved_from) if change.moved_from else None
        kind, by_lines, hunks = _compared(change, old_name, traced[change.path])
        if not all(map(may_show, paths_of(change))):
            closed += paths_of(change)
            hunks = []
        elif since and not (hunks := [each for each in hunks if each.is_after(position)]):
            continue
        shown = FileReview(root.display_path(change.path), kind, (), old_name)
        shown = replace(shown, hunks=tuple(_hunks(shown, change, hunks, encoding, by_lines=by_lines)))
        files.append(FoundFile(change, shown, hunks, by_lines, encoding))
    reasons = {"it cannot be read or is too large": unknown, "reading is not allowed": closed}
    notes = path_notes(root.display_path, {f"not shown, because {why}": reasons[why] for why in reasons})
    return FoundChanges(tuple(files), tuple(directories), tuple(notes))


def _compared(
    change: Change, old_name: str | None, version: TracedFile
) -> tuple[_Kind, bool, list[TracedHunk]]:
    """Return the kind of a change, True if it is decided by lines, and its hunks, else the only one."""
    base, now = text_of(change.before), text_of(change.after)
    are_texts = base is not None and now is not None
    kind, note = _kind_and_note(change, old_name, are_texts=are_texts)
    hunks = [*version.hunks(base or "")] if are_texts else []
    if kind != "changed" or not all(isinstance(each, FileNode) for each in (change.before, change.after)):
        whole = _whole(hunks, version)
        return kind, False, [whole._replace(note=note or ("" if any(whole.place) else kind))]
    if note:
        hunks.insert(0, TracedHunk(_NO_LINES, (version.last,), note))
    return kind, True, hunks


def _whole(parts: Sequence[TracedHunk], version: TracedFile) -> TracedHunk:
    """Return one hunk from the first of some parts to the last."""
    if not parts:
        return TracedHunk(_NO_LINES, (version.last,))
    (a, _, c, _), (_, b, _, d) = parts[0].place, parts[-1].place
    touches = any(each.touches_other for each in parts)
    lines = [each._replace(touches_other=touches) for each in version.origins(c, d, version.last)]
    return TracedHunk(ReplacedLines(a, b, c, d), tuple(lines) or parts[0].origins)


def _hunks(
    file: FileReview, change: Change, traced: Sequence[TracedHunk], encoding: str | None, *, by_lines: bool
) -> Iterator[Hunk]:
    """Yield the hunks of a file as they are shown."""
    old, new = (_shown(text_of(node) or "", encoding) for node in (change.before, change.after))
    nodes = () if by_lines or file.kind == "mode" else (change.before, change.after)
    equal = Counter[str]()
    for place, traces, note in traced:
        a, b, c, d = place
        names = [each.name for each in traces]
        facts = repr((file.path, file.old_path, old[a:b], new[c:d], names, note, nodes))
        data = f"{facts}{equal[facts]}".encode("utf-8", "surrogatepass")
        equal[facts] += 1
        yield Hunk(
            id=hashlib.blake2b(data, digest_size=_ID_BYTES).hexdigest(),
            path=file.path,
            old_start=a + (b > a),
            old_lines=tuple(old[a:b]),
            new_start=c + (d > c),
            new_lines=tuple(new[c:d]),
            origins=tuple(Origin(*cast("tuple[Literal['tool'], str]", each.author)) for each in traces),
            note=note,
        )


def _kind_and_note(change: Change, old_name: str | None, *, are_texts: bool) -> tuple[_Kind, str]:
    """Return what has changed, and more about it if it is not lines."""
    before, after = change.before, change.after
    if old_name:
        return "renamed", f"renamed from {quote(old_name)}"
    note = f"link to {quote(after.target)}" if isinstance(after, LinkNode) else ""
    if before is None:
        return "created", note
    if isinstance(after, DirectoryNode):
        return "deleted", "a directory now"
    if not note and not isinstance(before, FileNode):
        note = f"a {'link' if isinstance(before, LinkNode) else 'directory'} before"
    if after is None:
        return "deleted", note
    if not (isinstance(before, FileNode) and isinstance(after, FileNode)):
        return "changed", note
    note = f"mode {before.mode:03o} to {after.mode:03o}" if before.mode != after.mode else ""
    return ("mode" if before.digest == after.digest else "changed" if are_texts else "binary"), note


def _decoded(data: bytes, encoding: str | None) -> Decoded:
    """Decode a file. ASCII may also be text in a 7-bit encoding that a call has named."""
    return decode_in(data, encoding) if encoding and data.isascii() else decode(data, encoding)


def _shown(text: str, encoding: str | None) -> list[str]:
    """Return the lines of a text with one character for each byte as people read them."""
    plain = split_lines(text)
    if text.isascii() and encoding is None:
        return plain
    try:
        decoded = _decoded(text.encode("latin-1"), encoding)
    except AgentFSError:
        decoded = None
    if decoded is None or decoded.encoding == UNKNOWN_8BIT:  # in no encoding that is known
        return [line.encode("latin-1").decode("utf-8", "backslashreplace") for line in plain]
    lines = split_lines(("\ufeff" if decoded.bom else "") + decoded.text)
    return lines if len(lines) == len(plain) else plain


def review(journal: Journal, context: Context, since: str | None, paths: RequestedPaths) -> Review:
    """Return what has changed since a checkpoint and is not accepted, for a person."""
    found = changed_files(journal, context, since, real_paths(context.root, paths))
    files = tuple(file.shown for file in found.files)
    where = f"since the checkpoint {quote(since)}" if since else "since the opening"
    counts = f"{plural(len(files), 'file')}, {plural(sum(len(file.hunks) for file in files), 'hunk')}"
    lines = [f"{counts} changed {where}." if files else f"Nothing to review {where}.", *found.notes]
    for file in files:
        lines.append(
            f"{file.kind} {quote(file.path)}" + (f" from {quote(file.old_path)}" if file.old_path else "")
        )
        for hunk in file.hunks:
            lines.append(f"@@ {hunk.id} @@ {one_line(hunk.where)}, by {one_line(hunk.by)}")
            changed = [f"-{line}" for line in hunk.old_lines] + [f"+{line}" for line in hunk.new_lines]
            ended = [line.removesuffix("\n") for line in changed]
            lines += bounded_lines(ended, sum(map(len, ended)) * _MOST_LONGER + len(ended))
    return Review(files, since, notes=found.notes, text="\n".join(lines))


Decision = str | bool  # True accepts a hunk, False rejects it, and a text replaces it


class _Decided(NamedTuple):
    """The outcome of the decisions about one file: changes of the disk and of its bases, by path."""

    changes: Sequence[Change] = ()
    places: Sequence[ReviewedPlace] = ()
    bases: Mapping[str, Node | None] = {}


def apply_review(
    journal: Journal, context: Context, accept: Sequence[str], reject: Sequence[str], edit: Mapping[str, str]
) -> ReviewedResult:
    """Carry out the decisions of a review, or raise an error and do nothing."""
    root, tracker, limits, _ = context
    ids = Counter([*accept, *reject, *edit])
    if twice := [each for each, count in ids.items() if count > 1]:
        raise InvalidArgumentError(
            f"The hunk {twice[0]!r} is given twice.", details={"parameter": "ids", "id": twice[0]}
        )
    decisions: dict[str, Decision] = {**dict.fromkeys(accept, True), **dict.fromkeys(reject, False), **edit}

    def carry_out() -> tuple[Sequence[_Decided], Applied]:
        found = changed_files(journal, context)
        _check(found, decisions)
        decided = [_decide(file, decisions) for file in found.files]
        changes = [change for each in decided for change in each.changes if not change.changes_nothing]
        # The directories of these files come and go with them.
        above = {path for change in changes for path in directories_above(change.path)}
        changes += reverse([each for each in found.directories if each.path in above])
        bases = {path: node for each in decided for path, node in each.bases.items()}
        record = partial(journal.logging_step, accepted=bases, author=("program", "review"))
        if not changes:
            with record(()):
                return decided, Applied()
        applied = root.apply(
            changes, max_bytes=limits.file_bytes, conflict=begin_again, log_step=record, undoing=True
        )
        record_restored(tracker, changes)
        return decided, applied

    decided, applied = retried(carry_out)
    places = tuple(place for each in decided for place in each.places)
    text = reviewed_text(places) if places else f"Accepted {plural(len(accept), 'hunk')}."
    return ReviewedResult(len(accept), places, notes=applied.notes, text=text)


def _check(found: FoundChanges, decisions: Mapping[str, Decision]) -> None:
    """Raise an error if a decision names no hunk, or rejects lines of another program."""
    hunks = {hunk.id: (hunk, traced) for file in found.files for hunk, traced in file.hunks}
    if missing := sorted(decisions.keys() - hunks.keys()):
        raise ConflictError(
            f"{plural(len(missing), 'hunk')} changed since the review, or decided already:"
            f" {', '.join(map(repr, missing[:5]))}; nothing was done.",
            hint="Make a new review, and decide again.",
            details={"ids": missing},
        )
    others = [
        key for key, (_, traced) in hunks.items() if decisions.get(key) is False and traced.touches_other
    ]
    if others:
        hunk = hunks[others[0]][0]
        raise ConflictError(
            f"{quote(hunk.path)} ({hunk.where}) has changes by another program there; nothing was done.",
            hint="Pass the text that you want in `edit`, or reject the other hunks only.",
            details={"ids": others, "path": hunk.path},
        )


def _decide(file: FoundFile, decisions: Mapping[str, Decision]) -> _Decided:
    """Return what to do with one file."""
    change, path = file.change, file.shown.path
    decided = [(each, decisions[each[0].id]) for each in file.hunks if each[0].id in decisions]
    if not decided:
        return _Decided()
    edited = [hunk for (hunk, _), decision in decided if isinstance(decision, str)]
    if any(hunk.note for hunk in edited) or (edited and not isinstance(change.after, FileNode)):
        raise InvalidArgumentError(
            f"{quote(path)} has no lines there that can be edited.",
            hint="Accept it or take it back.",
            details={"parameter": "id"},
        )
    if file.by_lines or edited:
        return _decide_lines(file, decided)
    whole: tuple[Change, ...] = (change,)
    if origin := change.moved_from:
        whole = (Change(origin, change.before, None), replace(change, before=None))
    ((hunk, _), accepts), *_ = decided
    if accepts:
        return _Decided(bases={each.path: each.after for each in whole})
    note = hunk.note or f"it was {file.shown.kind}"
    return _Decided(reverse(whole), [ReviewedPlace(path, 0, 0, 0, "taken back", note)])


def _decide_lines(file: FoundFile, decided: Sequence[tuple[tuple[Hunk, TracedHunk], Decision]]) -> _Decided:
    """Return what to do with a text file whose hunks are decided one by one."""
    path, before = file.change.path, file.change.before
    after = cast("FileNode", file.change.after)
    old, new = (split_lines(text_of(node) or "") for node in (before, after))
    base = before if isinstance(before, FileNode) else FileNode.of(after.mode, b"", after.metadata)
    mode, base_mode = after.mode, base.mode
    replaced: list[tuple[int, int, str]] = []  # lines of the present text
    rebased: list[tuple[int, int, str]] = []  # lines of the base
    places: list[ReviewedPlace] = []
    shift = 0
    for (hunk, traced), decision in decided:
        a, b, c, d = traced.place
        if decision is True:
            rebased.append((a, b, "".join(new[c:d])))
            base_mode = after.mode if hunk.note else base_mode
            continue
        text = "".join(old[a:b])
        if isinstance(decision, str):
            text = _typed(decision, after, file.encoding, is_last=d == len(new))
        replaced.append((c, d, text))
        mode = base.mode if hunk.note else mode
        line, count = 0 if hunk.note else c + shift + 1, line_count(text)
        action: Literal["edited", "taken back"] = "taken back" if decision is False else "edited"
        places.append(ReviewedPlace(hunk.path, line, count, d - c, action, hunk.note))
        shift += count - (d - c)
    bases = {path: with_lines(base, rebased, base_mode)} if rebased else {}
    return _Decided([Change(path, after, with_lines(after, replaced, mode))], places, bases)


def _typed(text: str, node: FileNode, encoding: str | None, *, is_last: bool) -> str:
    """Return a text with the line ends and the encoding of a file, with one character for each byte."""
    data = node.load()
    decoded = _decoded(data, encoding)
    newline = "\r\n" if newline_of(decoded.text) == "\r\n" else "\n"
    if text and not text.endswith("\n") and (not is_last or data.endswith(b"\n")):
        text += "\n"
    return decoded.encode(text.replace("\r\n", "\n").replace("\n", newline)).decode("latin-1")
