"""The decisions of a review: hunks are accepted, taken back or edited, all of them or none."""

import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Literal, NamedTuple

from agentfs.base import call_context
from agentfs.errors import ConflictError, InvalidArgumentError, RefusedError
from agentfs.fs import Change, DirectoryNode, FileNode, Node, Root, quote
from agentfs.fs.node import ConcurrentChange, begin_again
from agentfs.fs.oserrors import kept_changing, read_only
from agentfs.fs.overlay import OverlayRoot
from agentfs.history.journal import BY_REVIEW, Journal
from agentfs.history.report import clash_error, name_paths
from agentfs.history.review import FoundChanges, ReviewedFile, ReviewedHunk, changed_files, with_lines
from agentfs.history.take_back import read_node, take_steps
from agentfs.history.timeline import AcceptedFile
from agentfs.history.undo import real_paths, record_restored
from agentfs.results import ReviewedPlace, ReviewedResult, reviewed_text
from agentfs.shown.workspace_context import Context
from agentfs.text import decode, newline_of, plural
from agentfs.text.diff import line_count, split_lines

_RETRY_SECONDS = 5.0  # while others change the files
_NAMES = {"review": str, "since": str, "paths": list, "accept": list, "reject": list, "edit": dict}


class _Marks(NamedTuple):
    """The decisions: ids of hunks to accept and to take back, and the new texts of others."""

    accept: Sequence[str]
    reject: Sequence[str]
    edit: Mapping[str, str]
    review: str | None
    since: str | None
    paths: Sequence[str] | None

    @property
    def ids(self) -> list[str]:
        """All ids."""
        return [*self.accept, *self.reject, *self.edit]


def read_marks(given: Mapping[str, Any]) -> _Marks:
    """Return decisions as data; raise `invalid_argument` for anything that is not one."""
    known = {name: given.get(name) for name in _NAMES}
    wrong = [name for name in given if name not in _NAMES]
    wrong += [name for name, kind in _NAMES.items() if not isinstance(known[name], kind | None)]
    edits: Mapping[Any, Any] = {} if wrong else known["edit"] or {}
    texts = [
        *(known["paths"] or ()),
        *(known["accept"] or ()),
        *(known["reject"] or ()),
        *edits,
        *edits.values(),
    ]
    if wrong or not all(isinstance(each, str) for each in texts):
        raise InvalidArgumentError(
            f"These are not the decisions of a review{f': {wrong[0]!r} is wrong' if wrong else ''}.",
            hint="Its keys are review, since, paths, accept, reject (lists of ids) and edit (texts by id).",
            details={"parameter": "marks"},
        )
    marks = _Marks(
        *(known["accept"] or (), known["reject"] or (), edits),
        *(known["review"], known["since"], known["paths"]),
    )
    twice = [each for number, each in enumerate(marks.ids) if each in marks.ids[:number]]
    if twice:
        raise InvalidArgumentError(
            f"The hunk {twice[0]!r} is given twice.", details={"parameter": "ids", "id": twice[0]}
        )
    return marks


def apply_review(journal: Journal, context: Context, given: Mapping[str, Any]) -> ReviewedResult:
    """Carry out the decisions of a review, or raise an error and do nothing."""
    root, tracker, limits, _ = context
    marks = read_marks(given)
    if (marks.reject or marks.edit) and root.policy.read_only:
        raise read_only()
    if marks.accept and isinstance(root, OverlayRoot):
        raise RefusedError(
            "A transaction may still be dropped, so its changes cannot be accepted.",
            hint="Review the workspace itself after the transaction.",
        )
    scope = real_paths(root, marks.paths)
    author = call_context.author.set(BY_REVIEW)
    deadline = time.monotonic() + _RETRY_SECONDS
    try:
        while True:
            with suppress(ConcurrentChange):
                found = changed_files(journal, root, limits, marks.since, scope)
                chosen = _chosen(found, marks, root)
                plan = _Plan(root, found, chosen, marks)
                applied = _apply(journal, root, limits.file_bytes, plan)
                break
            if time.monotonic() > deadline:
                raise kept_changing(".")
    finally:
        call_context.author.reset(author)
    if marks.accept:
        journal.accept([*plan.accepted()])
    record_restored(tracker, ((change.path, change.after) for change in plan.changes))
    text = reviewed_text(plan.places) if plan.places else f"Accepted {plural(len(marks.accept), 'hunk')}."
    return ReviewedResult(len(marks.accept), tuple(plan.places), notes=applied, text=text)


def _chosen(found: FoundChanges, marks: _Marks, root: Root) -> set[str]:
    """Return the ids of the decisions; raise an error if one names no hunk, or a part of a rename."""
    known = {each: file for file in found.files for each in file.ids}
    if marks.review is not None and marks.review != found.name:
        raise ConflictError(
            "The files have changed since this review was made; nothing was done.",
            hint="Make a new review, and decide again.",
            details={"review": found.name},
        )
    chosen = set(marks.ids)
    if missing := sorted(chosen - known.keys()):
        raise ConflictError(
            f"{plural(len(missing), 'hunk')} changed since the review or are decided already:"
            f" {', '.join(map(repr, missing[:5]))}; nothing was done.",
            hint="Make a new review, and decide again.",
            details={"ids": missing},
        )
    for group in (marks.accept, marks.reject):
        for file in {id(known[each]): known[each] for each in group}.values():
            if file.is_whole and not {*file.ids} <= {*group}:
                raise InvalidArgumentError(
                    f"{quote(root.display_path(file.change.path))} was {file.kind}, so its change can only be"
                    " decided as a whole.",
                    hint=f"Pass all of its ids: {', '.join(file.ids)}.",
                    details={"parameter": "ids", "ids": file.ids},
                )
    return chosen


class _Plan:
    """The changes to make on disk, and those to accept."""

    def __init__(self, root: Root, found: FoundChanges, chosen: set[str], marks: _Marks) -> None:
        self._root, self._marks = root, marks
        self._reject, self._accept = {*marks.reject}, {*marks.accept}
        self.files = [file for file in found.files if not chosen.isdisjoint(file.ids)]
        self.places: list[ReviewedPlace] = []
        self._now: dict[str, Node | None] = {}
        self._places_of: dict[str, list[tuple[int, int, int]]] = {}  # replaced lines, old and new counts
        self.changes: list[Change] = []
        for file in self.files:
            if not {*file.ids}.isdisjoint(self._reject | marks.edit.keys()):
                self.changes += self._taken_back(file)
        all_taken = {each for file in found.files for each in file.ids} <= self._reject
        self.changes += self._directories(found, every=all_taken)

    def _taken_back(self, file: ReviewedFile) -> Iterable[Change]:
        path, before, after = file.change.path, file.change.before, file.change.after
        if isinstance(after, DirectoryNode):
            raise ConflictError(
                f"{quote(self._root.display_path(path))} is a directory now; nothing was done.",
                hint="Move or delete the directory first.",
                details={"path": self._root.display_path(path)},
            )
        if file.is_whole and {*file.ids} <= self._reject:
            self._note(file, file.hunks[0].shown.note or f"it was {file.kind}")
            if file.old_path:
                return Change(path, after, None), Change(file.old_path, None, before, path)
            return [Change(path, after, before)]
        if not isinstance(after, FileNode):
            raise self._not_lines(file)
        ranges: list[tuple[int, int, str]] = []
        shift = 0
        mode_of: FileNode | None = None
        for hunk in file.hunks:
            name, lines = hunk.shown.id, hunk.lines
            if name in self._reject and lines is None:
                mode_of = before if isinstance(before, FileNode) else None
                self._note(file, hunk.shown.note)
            elif lines is not None and (name in self._reject or name in self._marks.edit):
                text = self._text(file, hunk, before, after)
                count, was = line_count(text), lines.new_end - lines.new_start
                ranges.append((lines.new_start, lines.new_end, text))
                action: Literal["taken back", "edited"] = "taken back" if name in self._reject else "edited"
                place = lines.new_start + shift + 1
                shift += count - was
                shown = self._root.display_path(path)
                self.places.append(ReviewedPlace(shown, place, count, was, action))
                self._places_of.setdefault(path, []).append((lines.new_start, was, count))
            elif name in self._marks.edit:
                raise self._not_lines(file)
        return [Change(path, after, with_lines(after, ranges, mode_of))]

    def _text(self, file: ReviewedFile, hunk: ReviewedHunk, before: Node | None, after: FileNode) -> str:
        """Return the text in place of a hunk, with one character for each byte."""
        lines = hunk.lines
        if lines is None:
            raise self._not_lines(file)
        if hunk.shown.id in self._reject:
            old = "" if not isinstance(before, FileNode) else before.load().decode("latin-1")
            return "".join(split_lines(old)[lines.old_start : lines.old_end])
        text = self._marks.edit[hunk.shown.id]
        if "\0" in text:
            raise InvalidArgumentError("The text contains a NUL character.", details={"parameter": "text"})
        data = after.load()
        decoded = decode(data)
        if newline_of(decoded.text) == "\r\n":
            text = text.replace("\r\n", "\n").replace("\n", "\r\n")
        ended = lines.new_end < line_count(data.decode("latin-1")) or data.endswith(b"\n")
        if text and ended and not text.endswith("\n"):
            text += "\r\n" if newline_of(decoded.text) == "\r\n" else "\n"
        return decoded.encode(text).decode("latin-1")

    def _not_lines(self, file: ReviewedFile) -> InvalidArgumentError:
        return InvalidArgumentError(
            f"{quote(self._root.display_path(file.change.path))} has no lines there that can be edited.",
            hint="Accept it or take it back.",
            details={"parameter": "id"},
        )

    def _note(self, file: ReviewedFile, note: str) -> None:
        self.places.append(
            ReviewedPlace(self._root.display_path(file.change.path), 0, 0, 0, "taken back", note)
        )

    def _directories(self, found: FoundChanges, *, every: bool) -> Iterable[Change]:
        """Return the directories to restore or remove with the files in them."""
        touched = [change.path for change in self.changes]
        for change in found.directories:
            below = any(path.startswith(f"{change.path}/") for path in touched)
            if (every and self._reject) or (below and change.before is not change.after):
                yield Change(change.path, change.after, change.before)

    def accepted(self) -> Iterable[AcceptedFile]:
        """Yield what was accepted, with line numbers after the other decisions."""
        for file in self.files:
            hunks = [hunk for hunk in file.hunks if hunk.shown.id in self._accept]
            if not hunks:
                continue
            path, before, after = file.change.path, file.change.before, file.change.after
            now = next((each.after for each in self.changes if each.path == path), after)
            if file.is_whole:
                if file.old_path:
                    yield AcceptedFile(file.old_path, None, None, whole=True)
                yield AcceptedFile(path, now, now, whole=True)
                continue
            if not (isinstance(before, FileNode) and isinstance(after, FileNode)):
                continue
            mode = any(hunk.lines is None for hunk in hunks)
            new = split_lines(after.load().decode("latin-1"))
            lines = [hunk.lines for hunk in hunks if hunk.lines is not None]
            ranges = [(a, b, "".join(new[c:d])) for a, b, c, d in lines]
            base = with_lines(before, ranges, after if mode else None)
            moved = tuple((self._moved(path, c), self._moved(path, d)) for _, _, c, d in lines)
            yield AcceptedFile(path, base, now, moved, mode)

    def _moved(self, path: str, line: int) -> int:
        places = self._places_of.get(path, ())
        return line + sum(count - was for start, was, count in places if start < line)


def _apply(journal: Journal, root: Root, max_bytes: int, plan: _Plan) -> tuple[str, ...]:
    """Make the changes as one step, merged with what others have changed meanwhile; return notes."""
    changes = [change for change in plan.changes if not change.changes_nothing]
    if not changes:
        return ()
    outcome = take_steps([changes], partial(read_node, root, max_bytes=max_bytes), journal.contents.keep_node)
    if outcome.clashes:
        raise clash_error(outcome.clashes, journal.origin, root, None, "taken back")
    applied = root.apply(outcome.changes, max_bytes=max_bytes, conflict=begin_again, undoing=True)
    merged = name_paths([*map(root.display_path, outcome.merged)])
    return (*([f"merged with later changes: {merged}"] if merged else []), *applied.notes)
