"""`append`: add text to the end of a file, or create it.

No earlier read is required, because nothing in the file is replaced.
"""

from agentfs.base.advice import ParameterName
from agentfs.editing.change_file import EditTarget, FileEdit, make_change
from agentfs.editing.draft import Draft, Edited, nul_error
from agentfs.editing.rendering import with_diff
from agentfs.editing.write import write_file
from agentfs.errors import AlreadyExistsError, NotFoundError
from agentfs.fs import Changed
from agentfs.fs.lock import ATTEMPTS
from agentfs.fs.oserrors import kept_changing
from agentfs.results import WriteResult
from agentfs.text import Replacement, line_ranges


def append_to_file(target: EditTarget, content: str) -> WriteResult:
    """Add text as lines of its own after the last line of a file; create a missing file."""
    if "\x00" in content:
        raise nul_error(ParameterName("content"))
    for _ in range(ATTEMPTS):
        try:
            return _append(target, content)
        except NotFoundError:
            pass
        try:
            written = write_file(target, content, overwrite=False)
        except AlreadyExistsError:
            continue  # another program has just created it
        if written.created:
            return written
    raise kept_changing(target.path)


def _append(target: EditTarget, content: str) -> WriteResult:
    def compute(draft: Draft) -> Edited:
        view = draft.view
        if not view.text and not draft.is_notebook:
            draft.view = view.after(content)  # there is no line end to follow
            return draft.finish("offset")
        end = len(view.text)
        lines = view.lf(content)
        starts = lines and not view.text.endswith("\n")
        draft.replace([Replacement(end, end, f"\n{lines}" if starts else lines)])
        notes = ("the last line of the file had no line end; one was added before the text",)
        return draft.finish("offset")._replace(notes=notes if starts else ())

    def render(changed: Changed, made: FileEdit) -> WriteResult:
        result = WriteResult(
            path=changed.path,
            created=False,
            bytes_written=len(changed.after),
            diff=made.diff,
            revision=changed.revision,
            notes=(*changed.notes, *made.notes),
        )
        done = "Preview, nothing was written: would append" if target.preview else "Appended"
        # The model has just sent the lines.
        after = [*made.formatted, *(made.external.diff if made.external else ())]
        return with_diff(result, target.context.limits, f"{done} {line_ranges(made.changed)}.", "", after)

    return make_change(target, compute, render)
