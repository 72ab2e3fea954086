"""`edit` and `multi_edit`: the old text is the proof, so no read is asked for."""

from collections.abc import Sequence

from agentfs.disk import Current, Root, quote, revision_of
from agentfs.editing.applying import Applied, apply_edits, check_edits
from agentfs.editing.document import Document
from agentfs.editing.pieces import changed_ranges
from agentfs.editing.report import line_ranges, plural, shown_diff
from agentfs.errors import BinaryError, NotFoundError
from agentfs.limits import Limits
from agentfs.results import Edit, EditResult
from agentfs.shown import Shown
from agentfs.text import count_lines, unified_diff


def edit_file(
    root: Root, shown: Shown, limits: Limits, path: str, edits: Sequence[Edit], *, tool: str
) -> EditResult:
    """Replace texts in a file, in order, all or nothing, in one write.

    Args:
        root: The door to the disk.
        shown: What this workspace has shown; an edit keeps "seen" as it was.
        limits: For the size of the file.
        path: The file.
        edits: What to replace.
        tool: The name of the call, for messages.

    Returns:
        What was replaced, with the diff.

    Raises:
        NotFoundError: `not_found`: there is no such file.
        NoMatchError: `no_match`: an old text is not there.
        AmbiguousError: `ambiguous`: it is there more than once.
        NoChangeError: `no_change`: nothing would change.
        InvalidArgumentError: `invalid_argument`: no edits, an empty old text, a NUL in a new one.
        BinaryError: `binary`: the file is no text.
        EncodingError: `encoding`: the encoding is unknown, or cannot hold a new text.
        TooLargeError: `too_large`: the file is, or would be, larger than `Limits.file_bytes`.
    """
    check_edits(edits, tool=tool)
    outcome: list[tuple[Document, Applied]] = []

    def compute(current: Current) -> bytes:
        if current.data is None:
            raise NotFoundError(
                f"{quote(current.path)} does not exist, so there is nothing to edit.",
                hint=f"Call glob to find the file, or write to create {quote(current.path)}.",
                details={"path": current.path},
            )
        before = _document(current.data, current.path)
        applied = apply_edits(before, edits, path=current.path, max_bytes=limits.file_bytes)
        outcome[:] = [(before, applied)]
        return applied.document.data

    changed = root.change(path, compute, max_bytes=limits.file_bytes)
    before, applied = outcome[0]
    after = applied.document.decoded.text
    total = count_lines(after)
    if changed.before is not None:
        shown.record_edit(
            changed.real_path,
            revision_of(changed.before),
            changed.revision,
            after,
            hunks=applied.hunks,
            total=total,
        )
    ranges = changed_ranges(applied.hunks, total)
    diff = unified_diff(before.decoded.text, after, changed.path)
    done = plural(applied.replacements, "replacement")
    head = f"Edited {quote(changed.path)}: {done}, now {line_ranges(ranges)}."
    return EditResult(
        path=changed.path,
        replacements=applied.replacements,
        applied_via=applied.via,
        diff=diff,
        changed=ranges,
        revision=changed.revision,
        notes=changed.notes,
        text="\n".join([head, *changed.notes, *shown_diff(diff)]),
    )


def _document(data: bytes, path: str) -> Document:
    try:
        return Document.of(data)
    except BinaryError as error:
        raise BinaryError(
            f"{quote(path)} is binary, and only text can be edited.",
            hint="Leave the file as it is, or choose another path.",
            details={**error.details, "path": path},
        ) from None
