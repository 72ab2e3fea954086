"""The decisions of a review: hunks are accepted, taken back or edited, all of them or none."""

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

from agentfs.base import call_context
from agentfs.errors import ConflictError, InvalidArgumentError, RefusedError
from agentfs.fs import Change, DirectoryNode, FileNode, Root, quote
from agentfs.fs.node import ConcurrentChange, begin_again, reverse
from agentfs.fs.oserrors import kept_changing, read_only
from agentfs.fs.overlay import OverlayRoot
from agentfs.fs.path import is_in
from agentfs.history.journal import BY_REVIEW, Journal
from agentfs.history.review import FoundChanges, FoundFile, changed_files
from agentfs.history.timeline import AcceptedFile
from agentfs.history.traced_lines import text_of, with_lines
from agentfs.history.undo import real_paths, record_restored
from agentfs.results import FileReview, Hunk, ReviewedPlace, ReviewedResult, reviewed_text
from agentfs.shown.workspace_context import Context
from agentfs.text import ReplacedLines, decode, newline_of, plural
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
            found = changed_files(journal, root, limits, marks.since, scope)
            _check(found, marks, root)
            decided = [_decide(file, marks) for file in found.files]
            changes = [change for each in decided for change in each.changes if not change.changes_nothing]
            changes += _directories(found, changes, {*marks.reject})
            with suppress(ConcurrentChange):
                applied = root.apply(changes, max_bytes=limits.file_bytes, conflict=begin_again, undoing=True)
                break
            if time.monotonic() > deadline:
                raise kept_changing(".")
    finally:
        call_context.author.reset(author)
    if marks.accept:
        journal.accept([file for each in decided for file in each.accepted])
    record_restored(tracker, ((change.path, change.after) for change in changes))
    places = tuple(place for each in decided for place in each.places)
    text = reviewed_text(places) if places else f"Accepted {plural(len(marks.accept), 'hunk')}."
    return ReviewedResult(len(marks.accept), places, notes=applied.notes, text=text)


def _check(found: FoundChanges, marks: _Marks, root: Root) -> None:
    """Raise an error if a decision names no hunk, or a part of a file that can only be decided as a whole."""
    if marks.review not in (None, found.name):
        raise ConflictError(
            "The files have changed since this review was made; nothing was done.",
            hint="Make a new review, and decide again.",
            details={"review": found.name},
        )
    known = {each: file for file in found.files for each in file.ids}
    if missing := sorted({*marks.ids} - known.keys()):
        raise ConflictError(
            f"{plural(len(missing), 'hunk')} changed since the review or are decided already:"
            f" {', '.join(map(repr, missing[:5]))}; nothing was done.",
            hint="Make a new review, and decide again.",
            details={"ids": missing},
        )
    for group in (marks.accept, marks.reject):
        for file in [known[each] for each in group]:
            if file.is_whole and not {*file.ids} <= {*group}:
                raise InvalidArgumentError(
                    f"{quote(root.display_path(file.change.path))} was {file.shown.kind}, so its change can"
                    " only be decided as a whole.",
                    hint=f"Pass all of its ids: {', '.join(file.ids)}.",
                    details={"parameter": "ids", "ids": file.ids},
                )


class _Decided(NamedTuple):
    """The outcome of the decisions about one file."""

    changes: tuple[Change, ...] = ()
    places: tuple[ReviewedPlace, ...] = ()
    accepted: tuple[AcceptedFile, ...] = ()


def _decide(file: FoundFile, marks: _Marks) -> _Decided:
    """Return what to do with one file."""
    path, before, after = file.change.path, file.change.before, file.change.after
    old_path, shown = file.old_path, file.shown
    taken, kept = ({*file.ids} & {*ids} for ids in (marks.reject, marks.accept))
    edited = {*file.ids} & marks.edit.keys()
    place = partial(ReviewedPlace, shown.path)
    if (taken or edited) and isinstance(after, DirectoryNode):
        raise ConflictError(
            f"{quote(shown.path)} is a directory now; nothing was done.",
            hint="Move or delete the directory first.",
            details={"path": shown.path},
        )
    if file.is_whole and taken:
        note = shown.hunks[0].note or f"it was {shown.kind}"
        back = [Change(path, after, before)]
        if old_path:
            back = [Change(path, after, None), Change(old_path, None, before, path)]
        return _Decided(tuple(back), (place(0, 0, 0, "taken back", note),))
    if file.is_whole and kept:
        gone = [AcceptedFile(old_path, None, None, whole=True)] if old_path else []
        return _Decided(accepted=(*gone, AcceptedFile(path, after, after, whole=True)))
    if not (taken or edited or kept):
        return _Decided()
    if not isinstance(after, FileNode):
        raise _not_lines(shown)
    old, new = split_lines(text_of(before)), split_lines(text_of(after))
    mode, accepts_mode = after.mode, False
    replaced: list[tuple[int, int, str]] = []  # lines of the present text
    rebased: list[tuple[int, int, str]] = []  # lines of the base
    places: list[ReviewedPlace] = []
    ranges: list[tuple[int, int]] = []
    shift = 0
    for hunk in shown.hunks:
        a, b, c, d = _place(hunk)
        if hunk.id in kept:
            accepts_mode |= bool(hunk.note)
            rebased.append((a, b, "".join(new[c:d])))
            ranges += [] if hunk.note else [(c + shift, d + shift)]
        elif hunk.note and hunk.id in edited:
            raise _not_lines(shown)
        elif hunk.note and hunk.id in taken:
            mode = before.mode if isinstance(before, FileNode) else mode
            places.append(place(0, 0, 0, "taken back", hunk.note))
        elif hunk.id in taken or hunk.id in edited:
            text = "".join(old[a:b])
            if hunk.id in edited:
                text = _typed(marks.edit[hunk.id], after, is_last=d == len(new))
            count = line_count(text)
            replaced.append((c, d, text))
            places.append(place(c + shift + 1, count, d - c, "edited" if hunk.id in edited else "taken back"))
            shift += count - (d - c)
    now = with_lines(after, replaced, mode)
    accepted: list[AcceptedFile] = []
    if kept and isinstance(before, FileNode):
        base = with_lines(before, rebased, after.mode if accepts_mode else before.mode)
        accepted.append(AcceptedFile(path, base, now, tuple(ranges), accepts_mode))
    return _Decided((Change(path, after, now),), tuple(places), tuple(accepted))


def _place(hunk: Hunk) -> ReplacedLines:
    """Return the ranges of lines that a hunk replaces."""
    old, new = hunk.old_start - bool(hunk.old_lines), hunk.new_start - bool(hunk.new_lines)
    return ReplacedLines(old, old + len(hunk.old_lines), new, new + len(hunk.new_lines))


def _typed(text: str, node: FileNode, *, is_last: bool) -> str:
    """Return a text with the line ends and the encoding of a file, with one character for each byte."""
    if "\0" in text:
        raise InvalidArgumentError("The text contains a NUL character.", details={"parameter": "text"})
    data = node.load()
    decoded = decode(data)
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


def _directories(found: FoundChanges, changes: Sequence[Change], rejected: set[str]) -> Sequence[Change]:
    """Return the directories to restore or remove with the files in them, or with everything."""
    is_all = bool(rejected) and rejected.issuperset(each for file in found.files for each in file.ids)
    return reverse(
        [
            directory
            for directory in found.directories
            if is_all or any(is_in(change.path, directory.path) for change in changes)
        ]
    )
