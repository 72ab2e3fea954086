"""One change of one text file: read, checked, applied, written, remembered and told."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

from agentfs import call_context
from agentfs.editing.change_map import changed_ranges
from agentfs.editing.document import Document
from agentfs.editing.engine import Applied
from agentfs.editing.external_changes import ExternalChanges, check_revision, external_changes_since
from agentfs.editing.report import line_ranges, plural, with_diff
from agentfs.errors import BinaryError, NotFoundError
from agentfs.fs import ATTEMPTS, Changed, ConcurrentChange, Current, Root, kept_changing, quote, revision_of
from agentfs.limits import Limits
from agentfs.messages import Joined, Message, ParameterName, ToolName
from agentfs.read_tracker import ReadTracker
from agentfs.results import EditResult
from agentfs.text import count_lines, newline_of, unified_diff

_OLD, _NEW = ParameterName("old_string"), ParameterName("new_string")
_TOLD = {
    "trailing_whitespace": Message(_OLD, " was found with white space at line ends ignored"),
    "indentation": Message(_OLD, " was found at another indentation, and ", _NEW, " shifted to it"),
    "typography": Message(_OLD, " was found with typographic characters taken for plain ones"),
    "visible_escapes": Message(_OLD, " was found with ⟦U+…⟧ taken for the character shown so"),
}
Apply = Callable[[Document, Current], Applied]


@dataclass(frozen=True)
class EditOptions:
    """On what terms a file is changed.

    Attributes:
        encoding: The codec that the caller knows the file to have, or None.
        expect_revision: The only version that may be changed, or None for whichever stands there.
        preview: Whether to write nothing.
    """

    encoding: str | None = None
    expect_revision: str | None = None
    preview: bool = False


def change_text(
    root: Root, shown: ReadTracker, limits: Limits, path: str, apply: Apply, terms: EditOptions, *, unit: str
) -> EditResult:
    """Change a text file.

    Args:
        root: The confined root.
        shown: What this workspace has shown; a change keeps "seen" as it was.
        limits: For the size of the file.
        path: The file.
        apply: Makes the new document from the present one, or raises to leave the file as it is.
        terms: On what terms.
        unit: What is counted: "replacement".

    Returns:
        What was changed, with the diff.

    Raises:
        NotFoundError: `not_found`: there is no such file.
        StaleError: `stale`: it is not the version that was expected.
        BinaryError: `binary`: the file is no text.
        EncodingError: `encoding`: it is not text in the codec given.
        AgentFSError: What `apply` and the root raise.
    """
    changed, computed = _replace(root, shown, limits, path, apply, terms)
    before, applied, drift, diff = computed
    text, after = before.decoded.text, applied.document.decoded.text
    if not terms.preview and shown.knows(changed.real_path):
        _remember(shown, changed, applied, drift, text)
    ranges = changed_ranges(applied.hunks, count_lines(after))
    notes = (*changed.notes, *applied.notes, *([drift.note] if drift else ()))
    done = "Would edit (preview: nothing was written)" if terms.preview else "Edited"
    count = plural(applied.replacements, unit)
    found = [_TOLD[step] for step in applied.via.split(", ") if step in _TOLD]
    how = Joined("; ", f"{done} {quote(changed.path)}: {count}", *found)
    head = Message(how, f", now {line_ranges(ranges)}.")
    made = EditResult(
        path=changed.path,
        replacements=applied.replacements,
        applied_via=applied.via,
        diff=diff,
        changed=ranges,
        revision=changed.revision,
        newline=newline_of(text),
        notes=notes,
        lines_changed=applied.lines,
    )
    drifted = drift.shown if drift else ()
    return with_diff(made, limits, diff, lambda lines: [head, *notes, *lines, *drifted])


class _Computed(NamedTuple):
    before: Document
    applied: Applied
    external: ExternalChanges | None
    diff: str


def _replace(
    root: Root, shown: ReadTracker, limits: Limits, path: str, apply: Apply, terms: EditOptions
) -> tuple[Changed, _Computed]:
    """Compute and replace; from the beginning again when another program writes in between."""
    for _ in range(ATTEMPTS):
        with suppress(ConcurrentChange), root.open_for_update(path, max_bytes=limits.file_bytes) as update:
            computed = _compute(update.current, shown, apply, terms)
            return update.replace(computed.applied.document.data, preview=terms.preview), computed
    raise kept_changing(path)


def _compute(current: Current, shown: ReadTracker, apply: Apply, terms: EditOptions) -> _Computed:
    if current.data is None:
        raise NotFoundError(
            f"{quote(current.path)} does not exist, so there is nothing to edit.",
            hint=Message(
                "Call ",
                Joined(
                    ", or ",
                    Message(ToolName("glob"), " to find the file"),
                    Message(ToolName("write"), f" to create {quote(current.path)}"),
                ),
                ".",
            ),
            details={"path": current.path},
        )
    before = _document(current.data, current.path, terms.encoding)
    check_revision(current, before.decoded.text, shown, terms.expect_revision)
    applied = apply(before, current)
    # What takes time is done before the file is replaced: from then on nothing ends the call.
    text, after = before.decoded.text, applied.document.decoded.text
    external = None
    if shown.knows(current.real_path):
        external = external_changes_since(shown, current.real_path, current.revision or "", text)
    call_context.check()
    diff = unified_diff(text, after, current.path, changes=applied.hunks)
    call_context.check()
    return _Computed(before, applied, external, diff)


def _remember(
    shown: ReadTracker, changed: Changed, applied: Applied, drift: ExternalChanges | None, text: str
) -> None:
    revision = revision_of(changed.before or b"")
    if drift is not None:
        shown.record_external_change(changed.real_path, revision, text, drift.hunks)
    after = applied.document.decoded.text
    shown.record_edit(
        changed.real_path, revision, changed.revision, after, hunks=applied.hunks, total=count_lines(after)
    )


def _document(data: bytes, path: str, encoding: str | None) -> Document:
    try:
        return Document.of(data, encoding)
    except BinaryError as error:
        raise BinaryError(
            f"{quote(path)} is binary, and only text can be edited.",
            hint="Leave the file as it is, or choose another path.",
            details={**error.details, "path": path},
        ) from None
