"""`edit_lines`: whole lines replaced, named by the ids that `read` and `grep` gave them."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate

from agentfs.editing.apply_edit import EditOptions, change_text
from agentfs.editing.document import Document
from agentfs.editing.engine import Applied, apply_places
from agentfs.editing.exact_match import Place, to_lf
from agentfs.editing.line_ids import Lines, chosen
from agentfs.editing.splicing import View
from agentfs.errors import InvalidArgumentError, StaleError, UnreadError
from agentfs.fs import Current, Root, quote, revision_of
from agentfs.limits import Limits
from agentfs.messages import Joined, Message, ParameterName, ToolName, call
from agentfs.read_tracker import ReadTracker
from agentfs.results import EditResult, LineChange
from agentfs.text import bodies_of


def edit_lines_file(
    root: Root,
    shown: ReadTracker,
    limits: Limits,
    path: str,
    changes: Sequence[LineChange],
    *,
    terms: EditOptions,
    fresh: bool = False,
) -> EditResult:
    """Replace lines of a file that are named by their ids; checked as a whole, made in one write.

    Args:
        root: The confined root.
        shown: What this workspace has shown, the ids among it.
        limits: For the size of the file.
        path: The file.
        changes: What to replace.
        terms: On what terms the file is changed.
        fresh: Whether only ids count that a read has given of the present version, since it was made.

    Returns:
        What was replaced, with the diff.

    Raises:
        UnreadError: `unread`: no ids of this file have been given.
        UnknownLineError: `unknown_line`: an id is none of this file's.
        StaleError: `stale`: a line is no longer what it was, or lines have come between.
        OverlapError: `overlap`: two changes name the same line.
        InvalidArgumentError: `invalid_argument`: no changes, a range that runs backwards, a change without
            ids or with too many, a NUL in a new text.
        AgentFSError: As `edit_file`.
    """
    if not changes:
        raise InvalidArgumentError(
            Message(ParameterName("changes", quoted=True), " is empty."),
            hint="Pass at least one change.",
            details={"parameter": "changes"},
        )

    def apply(before: Document, current: Current) -> Applied:
        revision = revision_of(before.data)
        if fresh:
            _check_fresh(shown, current, revision)
        versions = shown.versions_with_ids(current.real_path)
        if not versions:
            raise UnreadError(
                f"No line ids of {quote(current.path)} have been given, so none can be meant.",
                hint=Message(
                    "Call ",
                    Joined(
                        ", or ",
                        Message(call("read", path=current.path, line_ids=True), " first"),
                        ToolName("edit"),
                    ),
                    ".",
                ),
                details={"path": current.path},
            )
        view = View(before.decoded.text)
        ids = shown.line_ids(current.real_path, revision, before.decoded.text)
        lines = Lines(current.path, tuple(bodies_of(view.text)), ids)
        ranges = chosen(lines, versions, changes)
        texts = [to_lf(change.new_content, lone=view.lone) for change in changes]
        places = _places(view, lines, ranges, texts)
        applied = apply_places(
            before, view, places, len(places), via="line_id", path=current.path, max_bytes=limits.file_bytes
        )
        given = [text.removesuffix("\n").count("\n") + 1 if text else 0 for text in texts]
        counts = zip(ranges, given, strict=True)
        return replace(applied, lines=sum(max(last + 1 - first, count) for (first, last), count in counts))

    return change_text(root, shown, limits, path, apply, terms, unit="change")


def _check_fresh(shown: ReadTracker, current: Current, revision: str) -> None:
    given = shown.latest_ids(current.real_path)
    if given == revision:
        return
    path, details = quote(current.path), {"path": current.path}
    when = "first" if given is None else "again"
    read = call("read", path=current.path, line_ids=True)
    hint = Message("Call ", read, f" {when}; nothing was written.")
    if given is None:
        raise UnreadError(
            f"No line ids of {path} hold: it has not been read, or has been changed here since.",
            hint=hint,
            details=details,
        )
    raise StaleError(
        f"{path} has changed since it was read, so the ids of its lines no longer hold.",
        hint=hint,
        details=details,
    )


def _places(view: View, lines: Lines, ranges: Sequence[tuple[int, int]], texts: Sequence[str]) -> list[Place]:
    starts = [0, *accumulate(len(line) + 1 for line in lines.bodies)]
    places: list[Place] = []
    for (first, last), new in sorted(zip(ranges, texts, strict=True)):
        if new:
            # The end of the last line is not named: it stays as it is, also where it is missing.
            places.append(Place(starts[first], starts[last + 1] - 1, new.removesuffix("\n")))
        else:
            places.append(Place(starts[first], min(starts[last + 1], len(view.text)), ""))
    return places
