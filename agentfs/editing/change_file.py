"""`change_file`: edit one text file. Decode it, change a draft, replace it, record and render."""

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

from agentfs.base import call_context
from agentfs.base.advice import Advice, Joined
from agentfs.editing.draft import Draft, Edited
from agentfs.editing.finish import Finished, Finisher, finish, new_findings
from agentfs.editing.match import NEW, OLD
from agentfs.editing.rendering import is_shown, with_diff
from agentfs.editing.shown_change import ExternalChanges, external_changes
from agentfs.errors import AgentFSError
from agentfs.fs import Changed, Current, LinesBy, quote
from agentfs.results import EditResult, Result
from agentfs.shown.read_tracker import ReadTracker
from agentfs.shown.workspace_context import Context
from agentfs.text import (
    Decoded,
    ReplacedLines,
    count_lines,
    declared_encoding,
    line_changes,
    line_ranges,
    newline_of,
    plural,
    unified_diff,
)

R = TypeVar("R", bound=Result)

_FOUND_BY = {
    "trailing_whitespace": Advice(OLD, " was found by ignoring white space at line ends"),
    "indentation": Advice(OLD, " was found at another indentation, and ", NEW, " was shifted to it"),
    "typography": Advice(OLD, " was found by reading typographic characters as plain ones"),
    "visible_escapes": Advice(OLD, " was found by reading ⟦U+…⟧ as the character it stands for"),
}
_PLAIN = {"exact", "line_id", "offset"}


class EditTarget(NamedTuple):
    """The file to change, and the terms of the change.

    Attributes:
        context: The root, the read history and the limits.
        path: The file.
        encoding: Its codec, or None to detect it.
        preview: Write nothing.
        raw: Edit a notebook as its JSON. Allow a change that breaks a notebook, an image or a PDF.
        creates: Begin a missing file.
        finisher: Runs formatters and checks, or None.
    """

    context: Context
    path: str
    encoding: str | None = None
    preview: bool = False
    raw: bool = False
    creates: bool = False
    finisher: Finisher | None = None


class FileEdit(NamedTuple):
    """An edit of one file that is not yet written, and its diff as a program and as a model sees it."""

    draft: Draft
    edited: Edited
    external: ExternalChanges | None
    diff: str
    shown: str
    changed: Sequence[tuple[int, int]]  # first and last line of each change, before the formatters
    finished: Finished | None = None  # after formatters and checks
    sent: str = ""  # the text before the formatters
    finish_notes: tuple[str, ...] = ()

    @property
    def formatted(self) -> list[str]:
        """The lines of a result about what the formatters changed."""
        return [] if self.finished is None else self.finished.shown(self.format_diff)

    @property
    def format_diff(self) -> str:
        """The diff of the formatters, or ""."""
        current = self.draft.current
        if self.finished is None or (current.data is None and not self.draft.is_new):
            return ""
        return self.finished.diff(current.real_path, self.sent, current.path)

    @property
    def notes(self) -> tuple[str, ...]:
        """The notes of the result."""
        return (
            *self.edited.notes,
            *_encoding_notes(self.draft.decoded, self.edited.text),
            *([self.external.note] if self.external else ()),
            *self.finish_notes,
        )


def compute_edit(target: EditTarget, current: Current, compute: Callable[[Draft], Edited]) -> FileEdit:
    """Edit the content of a file in memory.

    Args:
        target: The file and the terms.
        current: The file as it is.
        compute: Changes the draft and returns the edit.
    """
    _, tracker, limits, _ = target.context
    draft = Draft(current, limits, encoding=target.encoding, raw=target.raw, creates=target.creates)
    edited = compute(draft)
    # Do all slow work now: once the file is being replaced, the deadline no longer ends the call.
    call_context.check()
    external = None if draft.is_new else external_changes(tracker, current, draft.before[1])
    old = None if draft.is_new else draft.decoded.text
    known = None if draft.is_new or draft.is_notebook else edited.hunks
    diff = unified_diff(old, edited.text, current.path, changes=known)
    return FileEdit(draft, edited, external, diff, draft.shown_diff(edited, diff), edited.changed)


def _finished(finisher: Finisher, made: FileEdit) -> FileEdit:
    """Run the formatters on an edit; it stays as it is if the file cannot hold what they make of it."""
    draft, edited, path = made.draft, made.edited, made.draft.current.real_path
    before = None if draft.is_new else draft.decoded.text
    finished = finish(finisher, {} if before is None else {path: before}, {path: edited.text})
    if (text := finished.texts[path]) != edited.text:
        try:
            edited = draft.with_text(edited, text)
        except AgentFSError as error:
            finished = finished.without_formats(edited.text, error)
        else:
            diff = unified_diff(before, text, draft.path)
            return made._replace(edited=edited, diff=diff, finished=finished, sent=made.edited.text)
    return made._replace(finished=finished, sent=edited.text)


def make_change(
    target: EditTarget, compute: Callable[[Draft], Edited], render: Callable[[Changed, FileEdit], R]
) -> R:
    """Change a text file, render the result, and record the change in the read history.

    Args:
        target: The file and the terms.
        compute: Changes the draft and returns the edit. It is called again if another program changes the
            file meanwhile.
        render: Returns the result.
    """
    root, tracker, limits, _ = target.context

    def change(current: Current) -> tuple[bytes, FileEdit]:
        made = compute_edit(target, current, compute)
        if finisher is not None:
            made = _finished(finisher, made)
        return made.edited.data, made

    finisher = None if target.preview else target.finisher
    changed, made = root.update(
        target.path, change, max_bytes=limits.file_bytes, preview=target.preview, by_others=_by_others
    )
    if made.finished is not None:
        made = made._replace(finish_notes=new_findings(finisher, made.finished))
    result = render(changed, made)
    draft, external, format_diff = made.draft, made.external, made.format_diff
    after = (changed.revision, made.edited.shown)
    if format_diff:
        after = draft.revision_of(made.sent), made.sent
    if target.encoding is not None and root.recorder is not None and not target.preview:
        root.recorder.name_encoding(changed.real_path, target.encoding)
    if not target.preview and draft.is_new:
        tracker.record_write(changed.real_path, *after)
    elif not target.preview and tracker.knows(changed.real_path):
        hunks = line_changes(draft.decoded.text, after[1]) if format_diff else made.edited.hunks
        record_edit(
            *(tracker, changed.real_path, draft.before, after, hunks, external),
            seen=is_shown(made.shown, result.text),
            seen_external=external is not None
            and external.complete
            and "\n".join(external.diff) in result.text,
        )
    if format_diff:
        formatted = changed.revision, made.edited.text
        record_format(tracker, changed.real_path, after, formatted, is_shown(format_diff, result.text))
    return result


def _by_others(made: FileEdit) -> tuple[LinesBy, ...]:
    return () if made.finished is None else made.finished.by_others


def record_format(
    tracker: ReadTracker, real_path: str, sent: tuple[str, str], made: tuple[str, str], seen: bool
) -> None:
    """Record what formatters have made of a text; `sent` and `made` are each a revision and its text."""
    if tracker.knows(real_path):
        tracker.record_edit(real_path, sent[0], *made, line_changes(sent[1], made[1]), seen=seen)


def change_file(
    target: EditTarget, compute: Callable[[Draft], Edited], *, unit: str, diff_if_many: bool = True
) -> EditResult:
    """Change a text file and render the result.

    Args:
        target: The file and the terms.
        compute: As in `make_change`.
        unit: The noun for one replacement.
        diff_if_many: Show the diff even if there are several replacements.
    """
    limits, preview = target.context.limits, target.preview

    def render(changed: Changed, made: FileEdit) -> EditResult:
        draft, edited, external, diff, shown, *_ = made
        result = EditResult(
            path=changed.path,
            replacements=edited.replacements,
            applied_via=edited.applied_via,
            diff=diff,
            changed=edited.changed,
            revision=changed.revision,
            newline=newline_of(draft.decoded.text),
            notes=(*changed.notes, *made.notes),
            lines_changed=edited.lines,
            created=draft.is_new,
        )
        if draft.is_new:
            done = "Preview, nothing was written: would create" if preview else "Created"
            lines = plural(count_lines(edited.text), "line")
            return with_diff(result, limits, f"{done} {quote(changed.path)}: {lines}.", "", made.formatted)
        done = "Preview, nothing was written: would edit" if preview else "Edited"
        count = f": {edited.replacements} {unit}s" if edited.replacements > 1 else ""
        head = f"{done} {line_ranges(made.changed)}{count}"
        if edited.applied_via not in _PLAIN:
            found_by = map(_FOUND_BY.__getitem__, edited.applied_via.split(", "))
            head = Advice(Joined("; ", head, *found_by), ".")
        else:
            head += "."
        hides_diff = edited.replacements > 1 and not diff_if_many and not preview
        shown_diff = "" if hides_diff else shown
        after = [*made.formatted, *(external.diff if external else ())]
        return with_diff(result, limits, head, shown_diff, after)

    return make_change(target, compute, render)


def record_edit(
    tracker: ReadTracker,
    real_path: str,
    before: tuple[str, str],
    after: tuple[str, str],
    hunks: Sequence[ReplacedLines],
    external: ExternalChanges | None,
    *,
    seen: bool = False,
    seen_external: bool = False,
) -> None:
    """Record an edit in the read history. `before` and `after` are each a revision and its text.

    `seen` and `seen_external` are True if the answer shows the diff of the edit, and that of the external
    changes.
    """
    if external is not None:
        tracker.record_external_change(real_path, *before, external.hunks, seen=seen_external)
    tracker.record_edit(real_path, before[0], *after, hunks, seen=seen)


def _encoding_notes(before: Decoded, text: str) -> list[str]:
    """Return a warning if the new text declares an encoding that the file does not have."""
    if text.isascii() or (named := declared_encoding(text)) in {None, before.encoding}:
        return []
    if named == declared_encoding(before.text):
        return []
    kept = f"but is still in {before.encoding}; to convert it, write the whole file"
    return [f"warning: the file now names the encoding {named} {kept}"]
