"""`append`: add text to the end of a file, or create it.

No earlier read is required, because nothing in the file is replaced.
"""

from agentfs.advice import ParameterName
from agentfs.editing.change_file import Draft, Edited, EditTarget, make_change, nul_error
from agentfs.editing.rendering import with_diff
from agentfs.editing.write import write_file
from agentfs.errors import AlreadyExistsError, NotFoundError
from agentfs.fs.lock import ATTEMPTS
from agentfs.fs.oserrors import kept_changing
from agentfs.results import WriteResult
from agentfs.text import Replacement


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
            written = write_file(
                *(target.root, target.tracker, target.limits, target.path, content),
                overwrite=False,
                encoding=target.encoding,
                preview=target.preview,
                raw=target.raw,
            )
        except AlreadyExistsError:
            continue  # another program has just created it
        if written.created:
            return written
    raise kept_changing(target.path)


def _append(target: EditTarget, content: str) -> WriteResult:
    def compute(draft: Draft) -> Edited:
        view = draft.view
        if not view.text:
            draft.view = view.after(content)  # there is no line end to follow
            return draft.edited("offset")
        end = len(view.text)
        lines = view.lf(content)
        starts = lines and not view.text.endswith("\n")
        draft.replace([Replacement(end, end, f"\n{lines}" if starts else lines)])
        notes = ("the last line of the file had no line end; one was added before the text",)
        return draft.edited("offset")._replace(notes=notes if starts else ())

    changed, _, edited, external, diff, shown = make_change(target, compute)
    result = WriteResult(
        path=changed.path,
        created=False,
        bytes_written=len(changed.after),
        diff=diff,
        revision=changed.revision,
        notes=(*changed.notes, *edited.notes),
    )
    done = "Preview, nothing was written: would append" if target.preview else "Appended"
    head = f"{done} {shown.where}."
    # The model has just sent the lines.
    return with_diff(result, target.limits, head, "", external.diff if external else ())
