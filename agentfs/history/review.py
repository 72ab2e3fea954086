"""`review` and `apply_review`: changes against the accepted base of each path, in hunks with authors.

Who wrote each line comes from replaying the versions in the journal, by position.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import groupby
from typing import Literal, NamedTuple, cast

from agentfs.base import call_context
from agentfs.base.advice import plural
from agentfs.base.lazy import hashlib
from agentfs.base.visible import one_line
from agentfs.errors import AgentFSError, ConflictError, InvalidArgumentError
from agentfs.fs import Change, DirectoryNode, FileNode, LinkNode, MovedNode, Node, Root, quote
from agentfs.fs.apply import Applied
from agentfs.fs.node import EntryNode, begin_again, reverse
from agentfs.fs.oserrors import read_only
from agentfs.fs.path import is_in
from agentfs.history.database import Contents
from agentfs.history.journal import Journal
from agentfs.history.log import Author, Step, file_moves, is_in_scope, net_changes, with_contents
from agentfs.history.report import paired, path_notes
from agentfs.history.step_merge import Disk, read_node
from agentfs.history.undo import RequestedPaths, real_paths, record_restored, retried
from agentfs.results import FileReview, Hunk, Origin, Review, ReviewedPlace, ReviewedResult, reviewed_text
from agentfs.shown.workspace_context import Context
from agentfs.text.decoding import UNKNOWN_8BIT, decode
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

    @property
    def touches_other(self) -> bool:
        """True if it is not only of this workspace."""
        return any(each.touches_other for each in self.origins)

    def is_after(self, position: int) -> bool:
        """Return True if it has lines of a step after a position, or of another program."""
        numbers = (each.name.partition(":")[0] for each in self.origins)
        return any(not number or int(number) > position for number in numbers)


def is_text(node: Node | None, text: str) -> bool:
    """Return True for a file that git treats as text, or for none; `text` is its `text_of`."""
    return node is None or (isinstance(node, FileNode) and (text != "" or not node.size))


def text_of(node: Node | None) -> str:
    """Return the text of a file with one character for each byte, or "" if git does not treat it as text."""
    blob = Blob("", node.load() if isinstance(node, FileNode) else b"")
    return "" if blob.is_binary else blob.text


class TracedFile(NamedTuple):
    """One version of a file, with the origin of each line; None for a line of the first version."""

    node: Node | None
    text: str
    first: str  # the text of the first version
    lines: tuple[Trace | None, ...]
    removals: tuple[Trace | None, ...]  # of lines before each line, and at the end
    last: Trace = BY_OTHERS  # the origin of the last change
    restored: Trace | None = None  # that of an undo that came back to an earlier version

    @classmethod
    def of(cls, node: Node | None, last: Trace = BY_OTHERS) -> "TracedFile":
        """Return the first version of a file."""
        text = text_of(node)
        lines = (None,) * line_count(text)
        return cls(node, text, text, lines, (*lines, None), last)

    def advanced(
        self, node: Node | None, origin: Trace, births: Mapping[int, Author] | None = None
    ) -> "TracedFile":
        """Return the next version; `births` has the authors of lines that are not by its author."""
        if node == self.node:
            return self
        text = text_of(node)
        lines: list[Trace | None] = []
        removals: list[Trace | None] = []
        before, done = [*self.removals], 0
        for start, end, new_start, new_end in () if text == self.text else git_line_changes(self.text, text):
            gone, marks = self.lines[start:end], [*filter(None, before[start : end + 1])]
            touches = any(each.touches_other for each in (*filter(None, gone), *marks))
            touches = touches or origin.author == OTHER
            added = [
                Trace((births or {}).get(at, origin.author), f"{origin.name}:{at}", touches)
                for at in range(new_start, new_end)
            ]
            lines += [*self.lines[done:start], *added]
            removals += [*before[done:start], *[None] * len(added)]
            # Whoever removed a line of the base is still named if another removes what is in its place.
            if None in gone or (gone and not marks):
                marks = [Trace(origin.author, f"{origin.name}:{start}-")]
            before[end], done = marks[-1]._replace(touches_other=touches) if marks else None, end
        lines += self.lines[done:]
        removals += before[done:]
        return TracedFile(node, text, self.first, tuple(lines), tuple(removals), origin)

    def hunks(self, base_text: str) -> Iterator[TracedHunk]:
        """Yield the changes from a base to the present text, with the lines of each author apart."""
        # A line of the first version that differs from an accepted base was brought back.
        unknown = (self.restored if base_text != self.first else None) or self.last
        for a, b, c, d in git_line_changes(base_text, self.text):
            if c == d:
                yield TracedHunk(ReplacedLines(a, b, c, d), (self.removals[c] or unknown,))
                continue
            origins = [self.lines[at] or unknown for at in range(c, d)]
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
        changed = [each for each in step.changes if has_file(each)]
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
    nodes = change.before, change.after
    return not change.of_directory or any(isinstance(node, EntryNode) for node in nodes)


def with_lines(node: FileNode, ranges: Sequence[tuple[int, int, str]], mode: int) -> FileNode:
    """Return a text file with ranges of its lines replaced, which are in order, and with a mode."""
    lines = split_lines(text_of(node))
    for start, end, new in reversed(ranges):
        lines[start:end] = [new]
    return FileNode.of(mode, "".join(lines).encode("latin-1"), node.metadata)


_ID_BYTES = 5
_MOST_LONGER = 10  # times the length of a line whose characters are all made visible


class FoundFile(NamedTuple):
    """The change of one file since its base; `old_path` is "" if it is not renamed."""

    change: Change
    old_path: str
    shown: FileReview
    is_whole: bool  # True if its hunks can only be decided together
    places: tuple[tuple[Hunk, TracedHunk], ...]

    @property
    def ids(self) -> list[str]:
        """The ids of its hunks."""
        return [hunk.id for hunk in self.shown.hunks]


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
    root, max_bytes = context.root, context.limits.file_bytes
    with journal.exclusive():
        steps, _ = journal.steps_since(None)
        position = journal.position_of(since) if since else 0
        every, dropped, accepted = journal.log.after(0), journal.log.dropped, {**journal.accepted}
    read = Disk(root, max_bytes, Contents().keep_node).node
    traced = replay(with_contents(every, read), dropped + 1)
    net = {each.path: each for each in net_changes(with_contents(steps, read))}
    changes: list[Change] = []
    unknown: list[str] = []
    for path in dict.fromkeys((*net, *accepted)):
        call_context.check()
        known = net.get(path)
        if not root.is_usable(path) or not (known is None or has_file(known)):
            continue
        base = accepted[path] if path in accepted or known is None else known.before
        try:
            now = read_node(root, path, max_bytes)
        except AgentFSError:
            now = MovedNode("other")
        if isinstance(base, MovedNode) or isinstance(now, MovedNode):  # others have deleted what was moved
            unknown.append(path)
            continue
        traced[path] = (traced.get(path) or TracedFile.of(base)).advanced(now, BY_OTHERS)
        moved_from = known.moved_from if known is not None and base is None else ""
        changes.append(Change(path, base, now, moved_from))
    may_show = cache(root.may_show)
    files: list[FoundFile] = []
    closed: list[str] = []
    for change, old_path in paired(each for each in changes if not each.changes_nothing):
        paths = [path for path in (change.path, old_path) if path]
        if any(is_in_scope(path, scope) for path in paths):
            call_context.check()
            shows, encoding = all(map(may_show, paths)), journal.encodings.get(change.path)
            kind = _kind(change, old_path, text_of(change.before), traced[change.path].text)
            by_lines = all(isinstance(node, FileNode) for node in (change.before, change.after))
            is_whole = not by_lines or kind != "changed"
            shown = [path and root.display_path(path) for path in (change.path, old_path)]
            file = FileReview(shown[0], kind, (), shown[1] or None)
            hunks = [*_hunks(change, file, traced[change.path], encoding)] if shows else []
            if since and shows:
                later = [each for each in hunks if each[1].is_after(position)]
                if not later:
                    continue
                hunks = hunks if is_whole else later
            closed += [] if shows else paths
            file = replace(file, hunks=tuple(hunk for hunk, _ in hunks))
            files.append(FoundFile(change, old_path, file, is_whole, tuple(hunks)))
    reasons = {"it cannot be read or is too large": unknown, "reading is not allowed": closed}
    notes = path_notes(root.display_path, {f"not shown, because {why}": reasons[why] for why in reasons})
    return FoundChanges(tuple(files), tuple(_directories(root, net.values(), scope)), tuple(notes))


def _directories(root: Root, net: Iterable[Change], scope: Sequence[str] | None) -> Iterator[Change]:
    for each in net:
        path, before = each.path, each.before
        if each.of_directory and root.is_usable(path) and is_in_scope(path, scope):
            change = Change(path, before, read_node(root, path, 0) if root.may_show(path) else before)
            if change.of_directory and not change.changes_nothing:
                yield change


def _hunks(
    change: Change, file: FileReview, version: TracedFile, encoding: str | None
) -> Iterator[tuple[Hunk, TracedHunk]]:
    """Yield the hunks of one file with their places."""
    base = text_of(change.before)
    are_texts = is_text(change.before, base) and is_text(change.after, version.text)
    traced = [*version.hunks(base)] if are_texts else []
    note = f"renamed from {quote(file.old_path)}" if file.old_path else _note(change)
    if note or not traced:
        note = note or file.kind
        traced.insert(0, TracedHunk(ReplacedLines(0, 0, 0, 0), (version.last,)))
    old, new = _shown(base, encoding), _shown(version.text, encoding)
    equal = Counter[str]()
    for each in traced:
        a, b, c, d = each.place
        this, note = note, ""
        names = [trace.name for trace in each.origins]
        nodes = (change.before, change.after) if this and file.kind not in {"changed", "mode"} else ()
        facts = repr((change.path, file.old_path, old[a:b], new[c:d], names, this, nodes))
        data = f"{facts}{equal[facts]}".encode("utf-8", "surrogatepass")
        equal[facts] += 1
        origins = (Origin(*cast("tuple[Literal['tool'], str]", trace.author)) for trace in each.origins)
        shown = Hunk(
            id=hashlib.blake2b(data, digest_size=_ID_BYTES).hexdigest(),
            path=file.path,
            old_start=a + (b > a),
            old_lines=tuple(old[a:b]),
            new_start=c + (d > c),
            new_lines=tuple(new[c:d]),
            origins=tuple(origins),
            note=this,
        )
        yield shown, each


def _note(change: Change) -> str:
    """Return what has changed apart from lines, or ""."""
    match change.before, change.after:
        case _, LinkNode() as after:
            return f"link to {quote(after.target)}"
        case _, DirectoryNode():
            return "a directory now"
        case LinkNode(), _:
            return "a link before"
        case FileNode() as before, FileNode() as after if before.mode != after.mode:
            return f"mode {before.mode:03o} to {after.mode:03o}"
        case _:
            return ""


def _kind(
    change: Change, old_path: str, old: str, new: str
) -> Literal["created", "changed", "deleted", "renamed", "mode", "binary"]:
    before, after = change.before, change.after
    if old_path:
        return "renamed"
    if before is None:
        return "created"
    if after is None or isinstance(after, DirectoryNode):
        return "deleted"
    if not (isinstance(before, FileNode) and isinstance(after, FileNode)):
        return "changed"
    if before.digest == after.digest:
        return "mode"
    return "changed" if is_text(before, old) and is_text(after, new) else "binary"


def _shown(text: str, encoding: str | None) -> list[str]:
    """Return the lines of a text with one character for each byte as people read them."""
    plain = split_lines(text)
    if text.isascii():
        return plain
    data = text.encode("latin-1")
    try:
        decoded = decode(data, encoding)
    except AgentFSError:
        decoded = None
    if decoded is None or decoded.encoding == UNKNOWN_8BIT:  # in no encoding that is known
        return [line.encode("latin-1").decode("utf-8", "backslashreplace") for line in plain]
    lines = split_lines(("\ufeff" if decoded.bom else "") + decoded.text)
    return lines if len(lines) == len(plain) else plain


def review_lines(file: FileReview) -> Iterator[str]:
    """Yield the lines of a text about a file: its kind and path, and each hunk."""
    origin = f" from {quote(file.old_path)}" if file.old_path else ""
    yield f"{file.kind} {quote(file.path)}{origin}"
    for hunk in file.hunks:
        yield f"@@ {hunk.id} @@ {one_line(hunk.where)}, by {one_line(hunk.by)}"
        lines = [f"-{line}" for line in hunk.old_lines] + [f"+{line}" for line in hunk.new_lines]
        ended = [line.removesuffix("\n") for line in lines]
        yield from bounded_lines(ended, sum(map(len, ended)) * _MOST_LONGER + len(ended))


def review(journal: Journal, context: Context, since: str | None, paths: RequestedPaths) -> Review:
    """Return what has changed since a checkpoint and is not accepted, for a person."""
    found = changed_files(journal, context, since, real_paths(context.root, paths))
    files = tuple(file.shown for file in found.files)
    where = f"since the checkpoint {quote(since)}" if since else "since the opening"
    counts = f"{plural(len(files), 'file')}, {plural(sum(len(file.hunks) for file in files), 'hunk')}"
    head = f"{counts} changed {where}." if files else f"Nothing to review {where}."
    text = "\n".join([head, *found.notes, *(line for file in files for line in review_lines(file))])
    return Review(files, since, notes=found.notes, text=text)


class _Decided(NamedTuple):
    """The outcome of the decisions about one file: changes of the disk and of its bases, by path."""

    changes: tuple[Change, ...] = ()
    places: tuple[ReviewedPlace, ...] = ()
    accepted: tuple[Change, ...] = ()


def apply_review(
    journal: Journal, context: Context, accept: Sequence[str], reject: Sequence[str], edit: Mapping[str, str]
) -> ReviewedResult:
    """Carry out the decisions of a review, or raise an error and do nothing."""
    root, tracker, limits, _ = context
    ids = [*accept, *reject, *edit]
    if twice := [each for number, each in enumerate(ids) if each in ids[:number]]:
        raise InvalidArgumentError(
            f"The hunk {twice[0]!r} is given twice.", details={"parameter": "ids", "id": twice[0]}
        )
    if (reject or edit) and root.policy.read_only:
        raise read_only()

    def carry_out() -> tuple[Sequence[_Decided], Applied]:
        found = changed_files(journal, context)
        _check(found, ids, (accept, reject), root)
        decided = [
            _decide(file, {*accept}, {*reject}, edit, journal.encodings.get(file.change.path))
            for file in found.files
        ]
        changes = [change for each in decided for change in each.changes if not change.changes_nothing]
        changes += _directories_back(found, changes, {*reject})
        bases = {change.path: change.after for each in decided for change in each.accepted}
        record = partial(journal.logging_step, accepted=bases)
        if not changes:
            with record(()):
                return decided, Applied()
        applied = root.apply(
            changes, max_bytes=limits.file_bytes, conflict=begin_again, log_step=record, undoing=True
        )
        record_restored(tracker, changes)
        return decided, applied

    author = call_context.author.set(("program", "review"))
    try:
        decided, applied = retried(carry_out)
    finally:
        call_context.author.reset(author)
    places = tuple(place for each in decided for place in each.places)
    text = reviewed_text(places) if places else f"Accepted {plural(len(accept), 'hunk')}."
    return ReviewedResult(len(accept), places, notes=applied.notes, text=text)


def _check(found: FoundChanges, ids: Sequence[str], groups: Sequence[Sequence[str]], root: Root) -> None:
    """Raise an error if a decision names no hunk, lines of another program, or part of a whole change.

    The groups are the hunks to accept and those to reject.
    """
    hunks = {hunk.id: (hunk, traced) for file in found.files for hunk, traced in file.places}
    if missing := sorted({*ids} - hunks.keys()):
        raise ConflictError(
            f"{plural(len(missing), 'hunk')} changed since the review or are decided already:"
            f" {', '.join(map(repr, missing[:5]))}; nothing was done.",
            hint="Make a new review, and decide again.",
            details={"ids": missing},
        )
    if others := [each for each in groups[1] if hunks[each][1].touches_other]:
        hunk = hunks[others[0]][0]
        raise ConflictError(
            f"{quote(hunk.path)} ({hunk.where}) has changes by another program there; nothing was done.",
            hint="Pass the text that you want in `edit`, or reject the other hunks only.",
            details={"ids": others, "path": hunk.path},
        )
    for file in found.files:
        own = {*file.ids}
        for group in map(set, groups):
            if file.is_whole and own & group and not own <= group:
                raise InvalidArgumentError(
                    f"{quote(root.display_path(file.change.path))} was {file.shown.kind}, so its change can"
                    " only be decided as a whole.",
                    hint=f"Pass all of its ids: {', '.join(file.ids)}.",
                    details={"parameter": "ids", "ids": file.ids},
                )


def _decide(
    file: FoundFile, accept: set[str], reject: set[str], edit: Mapping[str, str], encoding: str | None
) -> _Decided:
    """Return what to do with one file."""
    ids, change = {*file.ids}, file.change
    is_changed = not ids.isdisjoint(reject | edit.keys())
    if not is_changed and ids.isdisjoint(accept):
        return _Decided()
    if is_changed and isinstance(change.after, DirectoryNode):
        raise ConflictError(
            f"{quote(file.shown.path)} is a directory now; nothing was done.",
            hint="Move or delete the directory first.",
            details={"path": file.shown.path},
        )
    if not file.is_whole or not ids.isdisjoint(edit):
        return _decide_lines(file, accept, reject, edit, encoding)
    whole: tuple[Change, ...] = (change,)
    if file.old_path:
        moved = Change(change.path, None, change.after, file.old_path)
        whole = (Change(file.old_path, change.before, None), moved)
    if not is_changed:
        return _Decided(accepted=whole)
    note = file.shown.hunks[0].note or f"it was {file.shown.kind}"
    return _Decided(reverse(whole), (ReviewedPlace(file.shown.path, 0, 0, 0, "taken back", note),))


def _decide_lines(
    file: FoundFile, accept: set[str], reject: set[str], edit: Mapping[str, str], encoding: str | None
) -> _Decided:
    """Return what to do with one file whose hunks are decided one by one."""
    path, before, after = file.change.path, file.change.before, file.change.after
    if not isinstance(after, FileNode):
        raise _not_lines(file.shown)
    old, new = split_lines(text_of(before)), split_lines(text_of(after))
    base = before if isinstance(before, FileNode) else FileNode.of(after.mode, b"", after.metadata)
    mode, base_mode = after.mode, base.mode
    replaced: list[tuple[int, int, str]] = []  # lines of the present text
    rebased: list[tuple[int, int, str]] = []  # lines of the base
    places: list[ReviewedPlace] = []
    place = partial(ReviewedPlace, file.shown.path)
    shift = 0
    for hunk, traced in file.places:
        a, b, c, d = traced.place
        id_, note = hunk.id, hunk.note
        if note and id_ in edit:
            raise _not_lines(file.shown)
        if note and id_ in reject:
            mode = base.mode
            places.append(place(0, 0, 0, "taken back", note))
        elif note and id_ in accept:
            base_mode = after.mode
        elif id_ in accept:
            rebased.append((a, b, "".join(new[c:d])))
        elif id_ in reject or id_ in edit:
            is_edited = id_ in edit
            text = (
                _typed(edit[id_], after, encoding, is_last=d == len(new)) if is_edited else "".join(old[a:b])
            )
            replaced.append((c, d, text))
            count = line_count(text)
            places.append(place(c + shift + 1, count, d - c, "edited" if is_edited else "taken back"))
            shift += count - (d - c)
    rebased_node = with_lines(base, rebased, base_mode)
    accepted = (Change(path, before, rebased_node),) if rebased or base_mode != base.mode else ()
    return _Decided((Change(path, after, with_lines(after, replaced, mode)),), tuple(places), accepted)


def _typed(text: str, node: FileNode, encoding: str | None, *, is_last: bool) -> str:
    """Return a text with the line ends and the encoding of a file, with one character for each byte."""
    if "\0" in text:
        raise InvalidArgumentError("The text contains a NUL character.", details={"parameter": "edit"})
    data = node.load()
    decoded = decode(data, encoding)
    newline = "\r\n" if newline_of(decoded.text) == "\r\n" else "\n"
    if text and not text.endswith("\n") and (not is_last or data.endswith(b"\n")):
        text += "\n"
    return decoded.encode(text.replace("\r\n", "\n").replace("\n", newline)).decode("latin-1")


def _not_lines(file: FileReview) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"{quote(file.path)} has no lines there that can be edited.",
        hint="Accept it or take it back.",
        details={"parameter": "id"},
    )


def _directories_back(found: FoundChanges, changes: Sequence[Change], rejected: set[str]) -> Sequence[Change]:
    """Return the directories to restore or remove with the files in them, or with everything."""
    is_all = bool(rejected) and rejected.issuperset(each for file in found.files for each in file.ids)
    return reverse(
        [
            directory
            for directory in found.directories
            if is_all or any(is_in(change.path, directory.path) for change in changes)
        ]
    )
