"""`review`: what has changed against the accepted base of each path, in hunks, with who wrote them."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Literal, NamedTuple, cast

from agentfs.base import call_context
from agentfs.base.advice import plural
from agentfs.base.lazy import hashlib
from agentfs.base.visible import one_line
from agentfs.errors import AgentFSError
from agentfs.fs import Change, DirectoryNode, FileNode, LinkNode, Node, Root, quote
from agentfs.history.authors import BY_OTHERS, TracedFile, TracedHunk, has_file, is_text, replay, text_of
from agentfs.history.database import Contents
from agentfs.history.journal import Journal
from agentfs.history.log import is_in_scope, net_changes, with_contents
from agentfs.history.report import paired, path_notes
from agentfs.history.step_merge import Disk, merge_nodes, read_node
from agentfs.history.undo import RequestedPaths, real_paths
from agentfs.results import FileReview, Hunk, Origin, Review
from agentfs.shown.workspace_context import Context
from agentfs.text.decoding import UNKNOWN_8BIT, decode
from agentfs.text.diff import ReplacedLines, bounded_lines, split_lines

_ID_BYTES = 5
_MOST_LONGER = 10  # times the length of a line whose characters are all made visible


class FoundFile(NamedTuple):
    """The change of one file since its base; `old_path` is "" if it is not renamed.

    `traced` has the places of the hunks that `shown` has.
    """

    change: Change
    old_path: str
    shown: FileReview
    traced: tuple[TracedHunk, ...]

    @property
    def is_whole(self) -> bool:
        """True if its hunks can only be decided together."""
        nodes = self.change.before, self.change.after
        by_lines = all(isinstance(node, FileNode) for node in nodes)
        return not by_lines or self.shown.kind != "changed"

    @property
    def places(self) -> list[tuple[Hunk, TracedHunk]]:
        """Its hunks with their places."""
        return [*zip(self.shown.hunks, self.traced, strict=True)]

    @property
    def ids(self) -> list[str]:
        """The ids of its hunks."""
        return [hunk.id for hunk in self.shown.hunks]


class FoundChanges(NamedTuple):
    """Everything that has changed since a base: files, directories, and notes on what is not shown."""

    files: tuple[FoundFile, ...]
    directories: tuple[Change, ...]
    origins: dict[str, Node | None]  # the first node of each path in the journal
    notes: tuple[str, ...]


def changed_files(
    journal: Journal, context: Context, since: str | None, scope: Sequence[str] | None
) -> FoundChanges:
    """Return what has changed since a checkpoint and is not accepted."""
    journal.settle_recordings()
    root, max_bytes = context.root, context.limits.file_bytes
    with journal.exclusive():
        steps, _ = journal.steps_since(since)
        every, dropped, accepted = journal.log.after(0), journal.log.dropped, {**journal.accepted}
    read = Disk(root, max_bytes, Contents().keep_node).node
    steps, every = with_contents(steps, read), with_contents(every, read)
    traced = replay(every, dropped + 1)
    net = {each.path: each for each in net_changes(steps)}
    origins = {each.path: each.before for each in net_changes(every)}
    changes: list[Change] = []
    unknown: list[str] = []
    for path in dict.fromkeys((*net, *(accepted if since is None else ()))):
        call_context.check()
        known = net.get(path)
        if not root.is_usable(path) or not (known is None or has_file(known)):
            continue
        base = known.before if known else accepted.get(path)
        if path in accepted:
            # Since a checkpoint, the base is what was there then, with what was accepted since the opening.
            merged = merge_nodes(path, origins.get(path), accepted[path], base)
            is_all = since is None or origins.get(path) is None
            base = accepted[path] if is_all else base if merged.clash else merged.node
        try:
            now = read_node(root, path, max_bytes)
        except AgentFSError:
            unknown.append(path)
            continue
        traced[path] = (traced.get(path) or TracedFile.of(base)).advanced(now, BY_OTHERS)
        moved_from = known.moved_from if known is not None and base is None else ""
        changes.append(Change(path, base, now, moved_from))
    may_show, suffix = cache(root.may_show), f"@{since}" if since else ""
    files: list[FoundFile] = []
    closed: list[str] = []
    for change, old_path in paired(each for each in changes if not each.changes_nothing):
        paths = [path for path in (change.path, old_path) if path]
        if any(is_in_scope(path, scope) for path in paths):
            call_context.check()
            shows, encoding = all(map(may_show, paths)), journal.encodings.get(change.path)
            closed += [] if shows else paths
            kind = _kind(change, old_path, text_of(change.before), traced[change.path].text)
            shown = [path and root.display_path(path) for path in (change.path, old_path)]
            file = FileReview(shown[0], kind, (), shown[1] or None)
            hunks = tuple(_hunks(change, file, traced[change.path], encoding, suffix)) if shows else ()
            file = replace(file, hunks=tuple(hunk for hunk, _ in hunks))
            files.append(FoundFile(change, old_path, file, tuple(place for _, place in hunks)))
    reasons = {"it cannot be read or is too large": unknown, "reading is not allowed": closed}
    notes = path_notes(root.display_path, {f"not shown, because {why}": reasons[why] for why in reasons})
    return FoundChanges(tuple(files), tuple(_directories(root, net.values(), scope)), origins, tuple(notes))


def _directories(root: Root, net: Iterable[Change], scope: Sequence[str] | None) -> Iterator[Change]:
    for each in net:
        path, before = each.path, each.before
        if each.of_directory and root.is_usable(path) and is_in_scope(path, scope):
            change = Change(path, before, read_node(root, path, 0) if root.may_show(path) else before)
            if change.of_directory and not change.changes_nothing:
                yield change


def _hunks(
    change: Change, file: FileReview, version: TracedFile, encoding: str | None, suffix: str
) -> Iterator[tuple[Hunk, TracedHunk]]:
    """Yield the hunks of one file with their places. Ids of a review since a checkpoint end in `suffix`."""
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
            id=hashlib.blake2b(data, digest_size=_ID_BYTES).hexdigest() + suffix,
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
