"""The way of every edit of a text file: read, compute, run the functions of the policy, write, record."""

import sys
from collections.abc import Callable
from typing import NamedTuple

from agentfs.base import call_context
from agentfs.editing.after_change import finish, warnings_of
from agentfs.editing.draft import FileEdit, as_read
from agentfs.editing.new_names import check_new_name
from agentfs.editing.rendering import is_shown_whole
from agentfs.fs import Current, revision_of
from agentfs.fs.lock import ATTEMPTS
from agentfs.fs.node import ConcurrentChange, begin_again
from agentfs.fs.oserrors import kept_changing
from agentfs.shown.workspace_context import Context
from agentfs.text.diff import ReplacedLines, line_changes
from agentfs.text.display import line_ranges
from agentfs.text.lines import lf_view

SINCE_SHOWN = "changed since it was shown"


class EditTarget(NamedTuple):
    """The file to change, and the terms of the change.

    Attributes:
        context: The root, the read history and the limits.
        path: The file.
        encoding: Its codec, or None to detect it.
        preview: Write nothing.
        raw: Edit a notebook as its JSON. Allow a change that breaks a notebook, an image or a PDF.
    """

    context: Context
    path: str
    encoding: str | None = None
    preview: bool = False
    raw: bool = False


class AppliedEdit(NamedTuple):
    """An edit of one file that was written, or would be.

    Attributes:
        path: The file as it is displayed.
        edit: The edit as it was asked for.
        final: The edit with what the functions of the policy have made of it.
        revision: The new revision of the file.
        notes: Notes for the result.
        below: Lines for the end of the result: what formatters have changed.
    """

    path: str
    edit: FileEdit
    final: FileEdit
    revision: str
    notes: tuple[str, ...]
    below: tuple[str, ...]


class ExternalChanges(NamedTuple):
    """The changes of a file since it was last read."""

    note: str
    hunks: tuple[ReplacedLines, ...]


def commit(target: EditTarget, compute: Callable[[Current], FileEdit]) -> AppliedEdit:
    """Edit one file and record the edit in the read history.

    Args:
        target: The file and the terms.
        compute: Returns the edit. It is called again if another program changes the file meanwhile.
    """
    root, _, limits, _ = target.context
    rules = () if target.preview else root.policy.after_change

    def change(current: Current) -> tuple[bytes, tuple[FileEdit, ExternalChanges | None]]:
        edit = compute(current)
        if edit.creates:
            check_new_name(root, target.path)
        # Do all slow work now: once the file is being replaced, the deadline no longer ends the call.
        external = external_changes(target.context, edit)
        _ = edit.hunks, edit.shown_diff
        call_context.check()
        return edit.data, (edit, external)

    for _ in range(ATTEMPTS):
        preview = target.preview or bool(rules)
        written, (edit, external) = root.update(
            target.path, change, max_bytes=limits.file_bytes, preview=preview, judges=not rules
        )
        final, by_others, findings, formatted = finish(rules, edit, limits)
        notes = written.notes
        if rules and final.data != written.before:
            _ = final.hunks, final.shown_diff
            log_step = root.log_step(by_others=by_others)
            try:
                notes += root.apply(
                    [final.change], max_bytes=limits.file_bytes, conflict=begin_again, log_step=log_step
                ).notes
            except ConcurrentChange:
                continue
        revision = written.revision if final is edit else revision_of(final.data)
        if not target.preview:
            if target.encoding is not None and root.recorder is not None:
                root.recorder.name_encoding(written.real_path, target.encoding)
            record(target.context, final, revision, external)
        notes += (*edit.notes, *warnings_of(final), *([external.note] if external else ()), *findings)
        return AppliedEdit(written.path, edit, final, revision, notes, formatted)
    raise kept_changing(target.path)


def record(context: Context, edit: FileEdit, revision: str, external: ExternalChanges | None) -> None:
    """Record an edit in the read history: lines that were read, and are still there, stay read.

    The lines in a diff that the result shows count as read.
    """
    _, tracker, limits, _ = context
    path = edit.current.real_path
    if edit.creates or edit.replaces_all:
        tracker.record_write(path, revision, as_read(edit.after))
    elif tracker.knows(path):
        before = edit.current.revision or ""
        if external is not None:
            old = as_read(edit.before)
            tracker.record_external_change(path, before, old, external.hunks)
        seen = edit.shows_diff and is_shown_whole(edit.shown_diff, limits)
        tracker.record_edit(path, before, revision, as_read(edit.after), edit.hunks, seen=seen)


def external_changes(context: Context, edit: FileEdit) -> ExternalChanges | None:
    """Compare a file with the revision that was last read; None if it is unchanged or was not read."""
    tracker, path, revision = context.tracker, edit.current.real_path, edit.current.revision
    if edit.replaces_all or revision is None or (last := tracker.last(path)) is None:
        return None
    if last.revision == revision or tracker.fully_read(path, revision):
        return None
    if last.text is None:
        # The unchanged lines are unknown, so no line counts as read.
        every = ReplacedLines(0, sys.maxsize, 0, sys.maxsize)
        return ExternalChanges(f"the file had {SINCE_SHOWN}", (every,))
    present = as_read(edit.before)
    hunks = line_changes(lf_view(last.text), lf_view(present))
    now = [(hunk.new_start + 1, max(hunk.new_end, hunk.new_start + 1)) for hunk in hunks]
    where = f"before this edit, {line_ranges(now)}" if hunks else "in its line ends only"
    return ExternalChanges(f"the file had {SINCE_SHOWN}: {where}", hunks)
