"""The decisions of a review: hunks are accepted, taken back or edited, all of them or none."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

from agentfs.base import call_context
from agentfs.base.advice import plural
from agentfs.errors import ConflictError, InvalidArgumentError
from agentfs.fs import Change, DirectoryNode, FileNode, Node, Root, quote
from agentfs.fs.apply import Applied
from agentfs.fs.node import begin_again, reverse
from agentfs.fs.oserrors import read_only
from agentfs.fs.path import is_in
from agentfs.history.authors import text_of, with_lines
from agentfs.history.journal import Journal
from agentfs.history.review import FoundChanges, FoundFile, changed_files
from agentfs.history.step_merge import merge_nodes
from agentfs.history.undo import record_restored, retried
from agentfs.results import FileReview, ReviewedPlace, ReviewedResult, reviewed_text
from agentfs.shown.workspace_context import Context
from agentfs.text.decoding import decode
from agentfs.text.diff import line_count, split_lines
from agentfs.text.lines import newline_of


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
    since = {each.partition("@")[2] for each in ids}
    if len(since) > 1:
        raise InvalidArgumentError(
            "These hunks belong to reviews since several checkpoints.",
            hint="Decide about the hunks of one review at a time.",
            details={"checkpoints": sorted(since)},
        )

    def carry_out() -> tuple[Sequence[_Decided], Applied]:
        found = changed_files(journal, context, next(iter(since), "") or None, None)
        _check(found, ids, (accept, reject), root)
        decided = [
            _decide(file, {*accept}, {*reject}, edit, journal.encodings.get(file.change.path))
            for file in found.files
        ]
        changes = [change for each in decided for change in each.changes if not change.changes_nothing]
        changes += _directories(found, changes, {*reject})
        record = partial(journal.logging_step, accepted=_bases(journal, found, decided))
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


def _bases(journal: Journal, found: FoundChanges, decided: Sequence[_Decided]) -> dict[str, Node | None]:
    """Return the accepted bases since the opening, given those since the checkpoint of the review."""
    bases: dict[str, Node | None] = {}
    for path, before, after in ((c.path, c.before, c.after) for file in decided for c in file.accepted):
        known = journal.accepted[path] if path in journal.accepted else found.origins.get(path)
        merged = merge_nodes(path, before, after, known)
        if merged.clash is not None:
            raise ConflictError(
                f"{quote(path)} has earlier changes of these lines that are not accepted; nothing was done.",
                hint="Accept it in a review since the opening.",
                details={"path": path},
            )
        bases[path] = merged.node
    return bases


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
