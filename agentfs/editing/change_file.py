"""`change_file`: edit one text file. Decode it, change a draft, replace it, record and render."""

import re
import sys
from collections.abc import Callable, Iterable, Sequence
from io import StringIO
from typing import NamedTuple, TypeVar

from agentfs.base import call_context
from agentfs.base.advice import Advice, Joined, ParameterName, ToolName, call
from agentfs.editing.finish import Finished, Finisher, finish, new_findings
from agentfs.editing.match import NEW, OLD
from agentfs.editing.rendering import diff_lines, is_shown, placeholder_notes, with_diff
from agentfs.errors import (
    AgentFSError,
    BinaryError,
    EncodingError,
    InvalidArgumentError,
    NoChangeError,
    NotFoundError,
    StaleError,
    TooLargeError,
)
from agentfs.fs import Changed, Current, LinesBy, quote, revision_of
from agentfs.limits import Limits
from agentfs.reading.media import check_content
from agentfs.reading.notebook import CellView, is_named_notebook, notebook_problem
from agentfs.results import EditResult, Result
from agentfs.shown.read_tracker import ReadTracker
from agentfs.shown.workspace_context import Context
from agentfs.text import (
    UNKNOWN_8BIT,
    Decoded,
    EditView,
    LfView,
    ReplacedLines,
    Replacement,
    count_lines,
    declared_encoding,
    decode,
    decode_in,
    first_names,
    footer,
    lf_view,
    likely_encoding,
    line_changes,
    line_ranges,
    newline_of,
    plural,
    styled_diff,
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
SINCE_SHOWN = "changed since it was shown"
_EXTERNAL_DIFF_LINES = 40
_CHECK_EVERY = 1000
_MOST_CELLS = 20  # cells that a note names
_HUNK_HEADER = re.compile(r"^@@ .*@@$", re.MULTILINE)
# These codecs encode every text exactly; others may replace a character by a similar one.
_EXACT = {UNKNOWN_8BIT, "utf-8", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"}


class EditTarget(NamedTuple):
    """The file to change, and the terms of the change.

    Attributes:
        context: The root, the read history and the limits.
        path: The file.
        encoding: Its codec, or None to detect it.
        expect_revision: The only revision to change, or None for any.
        preview: Write nothing.
        raw: Edit a notebook as its JSON. Allow a change that breaks a notebook, an image or a PDF.
        by_cell: Edit a notebook by its cells.
        creates: Begin a missing file.
        finisher: Runs formatters and checks, or None.
    """

    context: Context
    path: str
    encoding: str | None = None
    expect_revision: str | None = None
    preview: bool = False
    raw: bool = False
    by_cell: bool = False
    creates: bool = False
    finisher: Finisher | None = None


class Edited(NamedTuple):
    """The new content of a file and facts about the edit; `lines` is `EditResult.lines_changed`."""

    data: bytes
    text: str
    replacements: int
    applied_via: str
    hunks: tuple[ReplacedLines, ...]
    changed: tuple[tuple[int, int], ...]  # first and last line of each change, in the new text
    lines: int | None = None
    notes: tuple[str, ...] = ()


class ShownChange(NamedTuple):
    """A change as a model sees it: the names of the changed lines, the diff, and notes."""

    where: str
    diff: str
    notes: tuple[str, ...] = ()


def cell_change(before: CellView, after: CellView, path: str) -> ShownChange:
    """Return what changed in the text of each cell; the lines of a hunk count in the cell that it names."""
    names: list[str] = []
    diffs = ["\n"]
    with_outputs: list[str] = []
    for number, (old, new) in enumerate(zip(before.texts, after.texts, strict=True), 1):
        if old == new:
            continue
        lines = line_changes(f"{old}\n", f"{new}\n")
        diff = unified_diff(f"{old}\n", f"{new}\n", path, changes=lines)
        names.append(f"cell {number}, {line_ranges(changed_ranges(lines, count_lines(new)))}")
        diffs.append(_HUNK_HEADER.sub(rf"\g<0> cell {number}", diff[diff.index("\n@@ ") + 1 :]))
        if after.has_outputs(number - 1):
            with_outputs.append(str(number))
    many = len(names) - _MOST_CELLS
    where = " and ".join([*names[:_MOST_CELLS], *([f"{many} more"] if many > 0 else [])])
    return ShownChange(where, "".join(diffs), _output_notes(with_outputs))


def _output_notes(cells: Sequence[str]) -> tuple[str, ...]:
    kept = "cell {} keeps its outputs" if len(cells) == 1 else "cells {} keep their outputs"
    named = first_names(cells, _MOST_CELLS)
    return (f"{kept.format(named)}, which are from before this edit",) if cells else ()


class Draft:
    """The text of a file during an edit; it never grows beyond `Limits.file_bytes`."""

    def __init__(
        self,
        current: Current,
        limits: Limits,
        *,
        encoding: str | None = None,
        raw: bool = False,
        by_cell: bool = False,
        creates: bool = False,
    ) -> None:
        """Decode a file; `encoding` overrides detection.

        With `by_cell`, edit the cells of a notebook. With `creates`, begin a missing file.
        """
        self.current = current
        self.is_new = creates and current.data is None
        self.path = current.path
        self.revision = current.revision or ""
        self.decoded = _decoded(current._replace(data=b"") if self.is_new else current, encoding)
        self.by_cell = (
            by_cell
            and not raw
            and encoding is None
            and is_named_notebook(current.path)
            and not notebook_problem(current.data or b"")
        )
        text = self.decoded.text
        self.original: EditView = CellView(text, self.path) if self.by_cell else LfView(text)
        self.view = self.original  # of the current text
        self._limits = limits
        self._raw = raw
        self._replacements = 0

    @property
    def before(self) -> tuple[str, str]:
        """The revision and the text of the file before the edit."""
        return self.revision, self.decoded.text

    @property
    def cell_count(self) -> int | None:
        """The number of cells if a notebook is edited by cell."""
        return len(self.original.cells) if self.by_cell else None

    def begin(self, text: str) -> None:
        """Set the text of a missing file."""
        self._check_new(text)
        self.view = self.view.after(text)
        self._replacements += 1

    @property
    def text(self) -> str:
        """The current text of the file."""
        return self.view.source

    def replace(self, replacements: Iterable[Replacement]) -> None:
        """Make replacements in the view of the current text; they must be in order and not overlap."""
        text, before = StringIO(), self.view.source
        position = 0
        checked = None
        for start, end, new in replacements:
            if new != checked:
                checked = new
                self._check_new(new)
            splice = self.view.splice(start, end, new)
            text.write(before[position : splice.start])
            text.write(splice.new)
            self.check_size(text.tell())
            position = splice.end
            self._replacements += 1
            if self._replacements % _CHECK_EVERY == 0:
                call_context.check()
        text.write(before[position:])
        self.view = self.view.after(text.getvalue())

    def replace_all(self, old: str, new: str, count: int) -> None:
        """Replace all `count` occurrences of a text from left to right, without overlaps."""
        if not self.by_cell:  # else escapes in the JSON may take more characters
            # Check a lower bound of the size before making the text. Line ends may take two characters.
            self.check_size(len(self.text) + count * (len(new) - len(old) - old.count("\n")))
        self._check_new(new)
        text = self.view.replaced_everywhere(old, new)
        if text is None:
            starts, end = list[int](), -len(old)
            while (end := self.view.text.find(old, end + len(old))) >= 0:
                starts.append(end)
            self.replace(Replacement(start, start + len(old), new) for start in starts)
        else:
            self.view = self.view.after(text)
            self._replacements += count

    def _check_new(self, new: str) -> None:
        if "\x00" in new:
            raise nul_error("the new text")
        if not new.isascii():
            self._encode(new)

    def _encode(self, text: str) -> bytes:
        try:
            return self.decoded.encode(text)
        except EncodingError as error:
            hint = Joined(" ", error.hint, self.encoding_hint)
            raise EncodingError(error.message, hint=hint, details=error.details) from None

    @property
    def encoding_hint(self) -> str:
        """A sentence on how to name the encoding, if it is not known."""
        if self.decoded.encoding != UNKNOWN_8BIT:
            return ""
        read = call("read", path=self.path, encoding=likely_encoding(self.current.data or b""))
        return Advice(
            "The encoding of the file is not known. If you know it, name it first, as in ", read, "."
        )

    def finish(self, applied_via: str, lines: int | None = None) -> Edited:
        """Encode the text and return the edit. Refuse an edit that changes nothing or breaks the file."""
        path, before, text = self.path, self.current.data or b"", self.view.source
        decoded = self.decoded
        encoded = self._encode(text)
        if decoded.encoding not in _EXACT and encoded.decode(decoded.encoding) != text:
            raise EncodingError(
                f"The encoding {decoded.encoding} does not keep the new text: some characters would change.",
                hint="Use only characters that this encoding represents exactly.",
                details={"encoding": decoded.encoding},
            )
        data = decoded.bom + encoded
        self.check_size(len(data))
        if data == before and not self.is_new:
            raise NoChangeError(
                f"The change would leave {quote(path)} as it is.",
                hint="Pass the text you want as the new text.",
                details={"path": path},
            )
        if not self._raw:
            check_content(path, before, data, self._limits)
        hunks = line_changes(decoded.text, text)
        changed = changed_ranges(hunks, count_lines(text))
        return Edited(data, text, self._replacements, applied_via, hunks, changed, lines)

    def with_text(self, edited: Edited, text: str) -> Edited:
        """Return an edit with another new text; raises as `finish`, except that it may change nothing."""
        data = self.decoded.bom + self._encode(text)
        self.check_size(len(data))
        if not self._raw:
            check_content(self.path, self.current.data or b"", data, self._limits)
        hunks = line_changes(self.decoded.text, text)
        changed = changed_ranges(hunks, count_lines(text))
        return edited._replace(data=data, text=text, hunks=hunks, changed=changed)

    def revision_of(self, text: str) -> str:
        """Return the revision that the file would have with a text."""
        return revision_of(self.decoded.bom + self._encode(text))

    def shown_change(self, edited: Edited, diff: str) -> ShownChange:
        """Return the change as a model sees it."""
        if isinstance(self.original, CellView) and isinstance(self.view, CellView):
            return cell_change(self.original, self.view, self.path)
        return ShownChange(line_ranges(edited.changed), diff)

    def check_size(self, size: int) -> None:
        """Refuse a size over `Limits.file_bytes`."""
        limit = self._limits.file_bytes
        if size > limit:
            raise TooLargeError(
                f"{quote(self.path)} would grow beyond the limit of {limit} bytes.",
                hint="Make the new text smaller, or write a second file.",
                details={"path": self.path, "limit": limit},
            )


class ExternalChanges(NamedTuple):
    """The changes of a file since it was last read: a note, the lines of a diff, the hunks.

    `complete` is True if the diff has all of them.
    """

    note: str
    diff: tuple[str, ...]
    hunks: tuple[ReplacedLines, ...]
    complete: bool = False


class FileEdit(NamedTuple):
    """An edit of one file that is not yet written, and its diff as a program and as a model sees it."""

    draft: Draft
    edited: Edited
    external: ExternalChanges | None
    diff: str
    shown: ShownChange
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
            *self.shown.notes,
            *placeholder_notes(self.shown.diff),
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
    encoding = target.encoding
    encoding = encoding or tracker.encoding_of(current.real_path, current.data or b"", current.revision)
    ways = {"raw": target.raw, "by_cell": target.by_cell, "creates": target.creates}
    draft = Draft(current, limits, encoding=encoding, **ways)
    if target.expect_revision not in {None, current.revision}:
        raise _unexpected_revision(draft, tracker, target.expect_revision or "")
    edited = compute(draft)
    # Do all slow work now: once the file is being replaced, the deadline no longer ends the call.
    call_context.check()
    before = draft.decoded.text
    external = None if draft.is_new else external_changes(tracker, current, before, draft.original)
    old = None if draft.is_new else before
    diff = unified_diff(old, edited.text, current.path, changes=None if draft.is_new else edited.hunks)
    return FileEdit(draft, edited, external, diff, draft.shown_change(edited, diff))


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
    after = (changed.revision, made.edited.text)
    if format_diff:
        after = draft.revision_of(made.sent), made.sent
    if not target.preview and draft.is_new:
        tracker.record_write(changed.real_path, *after)
    elif not target.preview and tracker.knows(changed.real_path):
        hunks = line_changes(draft.decoded.text, after[1]) if format_diff else made.edited.hunks
        record_edit(
            *(tracker, changed.real_path, draft.before, after, hunks, external, draft.cell_count),
            seen=is_shown(made.shown.diff, result.text),
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
        head = f"{done} {shown.where}{count}"
        if edited.applied_via not in _PLAIN:
            found_by = map(_FOUND_BY.__getitem__, edited.applied_via.split(", "))
            head = Advice(Joined("; ", head, *found_by), ".")
        else:
            head += "."
        hides_diff = edited.replacements > 1 and not diff_if_many and not preview
        shown_diff = "" if hides_diff else shown.diff
        after = [*made.formatted, *(external.diff if external else ())]
        return with_diff(result, limits, head, shown_diff, after)

    return make_change(target, compute, render)


def changed_ranges(hunks: Sequence[ReplacedLines], total: int) -> tuple[tuple[int, int], ...]:
    """Return the first and last line of each change; for removed lines, the line now in their place."""
    ranges: list[tuple[int, int]] = []
    for hunk in hunks:
        first = min(hunk.new_start + 1, total)
        ranges.append((first, max(first, min(hunk.new_end, total))))
    return tuple(ranges)


def nul_error(name: ParameterName | str) -> InvalidArgumentError:
    """Return the error for a new text that would make a text file binary."""
    return InvalidArgumentError(
        Advice(name, " contains a NUL character, which would make the file binary."),
        hint="Pass it without \\u0000.",
        details={"parameter": str(Advice(name))},
    )


def record_edit(
    tracker: ReadTracker,
    real_path: str,
    before: tuple[str, str],
    after: tuple[str, str],
    hunks: Sequence[ReplacedLines],
    external: ExternalChanges | None,
    cells: int | None = None,
    *,
    seen: bool = False,
    seen_external: bool = False,
) -> None:
    """Record an edit in the read history. `before` and `after` are each a revision and its text.

    `cells` is the number of cells if a notebook was edited by cell. `seen` and `seen_external` are True if
    the answer shows the diff of the edit, and that of the external changes.
    """
    if external is not None:
        tracker.record_external_change(real_path, *before, external.hunks, seen=seen_external)
    tracker.record_edit(real_path, before[0], *after, hunks if cells is None else (), cells, seen=seen)


def external_changes(
    tracker: ReadTracker, current: Current, text: str, view: EditView | None = None
) -> ExternalChanges | None:
    """Compare a file with the revision that was last read; None if it is unchanged or was not read."""
    last = tracker.last(current.real_path)
    revision = current.revision or ""
    if last is None or last.revision == revision or tracker.fully_read(current.real_path, revision):
        return None
    if last.text is None:
        # The unchanged lines are unknown, so no line counts as read.
        every = ReplacedLines(0, sys.maxsize, 0, sys.maxsize)
        return ExternalChanges(f"the file had {SINCE_SHOWN}", (), (every,))
    hunks = line_changes(lf_view(last.text), lf_view(text))
    if isinstance(view, CellView) and not notebook_problem(last.text.encode()):
        where, diff = _external_cells(CellView(last.text, current.path), view)
    else:
        now = [(hunk.new_start + 1, max(hunk.new_end, hunk.new_start + 1)) for hunk in hunks]
        where = f"before this edit, {line_ranges(now)}" if hunks else "in its line ends only"
        diff = unified_diff(last.text, text, "file")
    lines = diff_lines(diff, _EXTERNAL_DIFF_LINES)
    head = [footer("changes since it was shown")] if lines else []
    note = f"the file had {SINCE_SHOWN}: {where}"
    return ExternalChanges(note, (*head, *lines), hunks, is_shown(diff, "\n".join(lines)))


def _external_cells(before: CellView, after: CellView) -> tuple[str, str]:
    """Name the change of a notebook by another program, and return its diff."""
    if len(before.texts) != len(after.texts):
        return f"it had {plural(len(before.texts), 'cell')} and has {len(after.texts)} now", ""
    if before.texts == after.texts:
        return "not the text of its cells", ""
    change = cell_change(before, after, "file")
    return f"before this edit, {change.where}", change.diff


def stale_error(current: Current, text: str | None, before: str | None, expected: str) -> StaleError:
    """Return the error for an unexpected revision, with a diff if both texts are known."""
    details: dict[str, object] = {
        "path": current.path,
        "revision": current.revision,
        "shown_revision": expected,
    }
    message = f"{quote(current.path)} has {SINCE_SHOWN}"
    read = call("read", path=current.path)
    hint = Advice("Call ", read, ", then redo the change on the present text.")
    if before is None or text is None:
        return StaleError(f"{message}.", hint=hint, details=details)
    diff = unified_diff(before, text, current.path)
    text, *notes = diff_lines(diff)
    details |= {"diff": diff, "places": [*map(styled_diff, text.split("\n")), *notes]}
    return StaleError(f"{message}; this is what changed:", hint=hint, details=details)


def _unexpected_revision(draft: Draft, tracker: ReadTracker, expected: str) -> StaleError:
    versions = tracker.versions_with_text(draft.current.real_path)
    before = next((version.text for version in versions if version.revision == expected), None)
    return stale_error(draft.current, draft.text, before, expected)


def _decoded(current: Current, encoding: str | None) -> Decoded:
    if current.data is None:
        glob = Advice(ToolName("glob"), " to find the file")
        write = Advice(ToolName("write"), f" to create {quote(current.path)}")
        raise NotFoundError(
            f"{quote(current.path)} does not exist, so there is nothing to edit.",
            hint=Advice("Call ", Joined(", or ", glob, write), "."),
            details={"path": current.path},
        )
    try:
        return decode(current.data) if encoding is None else decode_in(current.data, encoding, exact=True)
    except BinaryError as error:
        raise BinaryError(
            f"{quote(current.path)} is binary, and only text can be edited.",
            hint="Leave the file as it is, or choose another path.",
            details={**error.details, "path": current.path},
        ) from None


def _encoding_notes(before: Decoded, text: str) -> list[str]:
    """Return a warning if the new text declares an encoding that the file does not have."""
    if text.isascii() or (named := declared_encoding(text)) in {None, before.encoding}:
        return []
    if named == declared_encoding(before.text):
        return []
    kept = f"but is still in {before.encoding}; to convert it, write the whole file"
    return [f"warning: the file now names the encoding {named} {kept}"]
