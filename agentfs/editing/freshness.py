"""Whether a file is still what this workspace has read: external changes, and guards against unseen loss."""

import sys
from typing import NamedTuple

from agentfs.advice import Advice, Joined, NextCall, ToolName, call
from agentfs.editing.change_text import diff_lines
from agentfs.errors import AlreadyExistsError, StaleError, UnreadError
from agentfs.fs import Current, quote
from agentfs.line_ranges import Hunk
from agentfs.policy import Overwrite
from agentfs.read_tracker import ReadTracker
from agentfs.text import decode, footer, is_binary, lf_view, line_changes, line_ranges, plural, unified_diff

_DIFF_LINES = 40


class ExternalChanges(NamedTuple):
    """How a file differs from what was read of it last: a note, its diff for a model, the lines replaced."""

    note: str
    diff: tuple[str, ...]
    hunks: tuple[Hunk, ...]


def external_changes(tracker: ReadTracker, current: Current, text: str) -> ExternalChanges | None:
    """Compare a file with the version read last; None where they are the same, or none is known."""
    last = tracker.last(current.real_path)
    revision = current.revision or ""
    if last is None or last.revision == revision or tracker.fully_read(current.real_path, revision):
        return None
    if last.text is None:
        # Which lines are still the same is not known, so none of them counts as read.
        every = Hunk(0, sys.maxsize, 0, sys.maxsize)
        return ExternalChanges("the file had changed since it was shown", (), (every,))
    hunks = tuple(Hunk(*change) for change in line_changes(lf_view(last.text), lf_view(text)))
    now = [(hunk.new_start + 1, max(hunk.new_end, hunk.new_start + 1)) for hunk in hunks]
    where = f"before this edit, {line_ranges(now)}" if hunks else "in its line ends only"
    lines = diff_lines(unified_diff(last.text, text, "file"), _DIFF_LINES)
    head = [footer("what had changed since it was shown")] if lines else []
    return ExternalChanges(f"the file had changed since it was shown: {where}", (*head, *lines), hunks)


def check_revision(current: Current, text: str, tracker: ReadTracker, expected: str | None) -> None:
    """Refuse to change a version other than the one expected."""
    if expected is None or expected == current.revision:
        return
    records = tracker.versions_with_text(current.real_path)
    before = next((record.text for record in records if record.revision == expected), None)
    raise _stale(current, text, before, expected)


def check_overwrite(current: Current, tracker: ReadTracker, overwrite: Overwrite) -> None:
    """Refuse to replace a file whose present version this workspace has not read whole."""
    if current.data is None or current.revision is None or overwrite == "always":
        return
    path, details = quote(current.path), {"path": current.path, "revision": current.revision}
    if overwrite == "never":
        edit = Advice("call ", ToolName("edit"), " to change a part of it")
        raise AlreadyExistsError(
            f"{path} exists already, and existing files are not replaced here.",
            hint=Advice(Joined(", or ", "Choose another path", edit), "."),
            details={"path": current.path},
        )
    if tracker.fully_read(current.real_path, current.revision):
        return
    last = tracker.last(current.real_path)
    read = call("read", path=current.path)
    binary = is_binary(current.data)
    if last is None and binary:
        other = Joined(", or ", "choose another path", Advice("delete it first with ", ToolName("delete")))
        raise UnreadError(
            f"{path} is a binary file that was not shown: all of it would be replaced.",
            hint=Joined(
                " ",
                Advice("Call ", read, " first if it is an image."),
                Advice("No read shows other binaries: ", other, "."),
            ),
            details=details,
        )
    if last is None:
        raise UnreadError(
            f"{path} exists already and has not been read: writing would replace all of it.",
            hint=_read_or_edit(read, "it"),
            details=details,
        )
    text = None if binary else decode(current.data).text
    if last.revision != current.revision:
        raise _stale(current, text, last.text, last.revision)
    missing = last.missing()
    count = sum(end - start + 1 for start, end in missing)
    start, end = missing[0]
    raise UnreadError(
        f"Only a part of {path} has been read: {line_ranges(missing)} "
        f"({count} of {plural(last.total, 'line')}) would be replaced unseen.",
        hint=_read_or_edit(call("read", path=current.path, offset=start, limit=end - start + 1), "the file"),
        details={**details, "unread_lines": [list(lines) for lines in missing]},
    )


def _stale(current: Current, text: str | None, before: str | None, expected: str) -> StaleError:
    """Return the error for another version than expected, with the difference where both texts are known."""
    details: dict[str, object] = {
        "path": current.path,
        "revision": current.revision,
        "shown_revision": expected,
    }
    message = f"{quote(current.path)} has changed since it was shown"
    read = call("read", path=current.path)
    hint = Advice("Call ", read, ", then make the change again with that taken in.")
    if before is None or text is None:
        return StaleError(f"{message}.", hint=hint, details=details)
    diff = unified_diff(before, text, current.path)
    details |= {"diff": diff, "places": diff_lines(diff)}
    return StaleError(f"{message}; this is what changed:", hint=hint, details=details)


def _read_or_edit(read: NextCall, what: str) -> Advice:
    ways = Joined(", or ", Advice(read, " first"), Advice(ToolName("edit"), f" to change a part of {what}"))
    return Advice("Call ", ways, ".")
