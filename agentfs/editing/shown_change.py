"""A change as a model sees it, and the changes by other programs since a file was shown."""

import re
import sys
from collections.abc import Sequence
from typing import NamedTuple

from agentfs.base.advice import Advice, call
from agentfs.editing.rendering import diff_lines, is_shown
from agentfs.errors import StaleError
from agentfs.fs import Current, quote
from agentfs.shown.read_tracker import ReadTracker
from agentfs.text import ReplacedLines, footer, lf_view, line_changes, line_ranges, styled_diff, unified_diff

SINCE_SHOWN = "changed since it was shown"
_EXTERNAL_DIFF_LINES = 40
_MOST_CELLS = 20  # cells that a note names
_HUNK_HEADER = re.compile(r"^@@ .*@@$", re.MULTILINE)


def changed_ranges(hunks: Sequence[ReplacedLines], total: int) -> tuple[tuple[int, int], ...]:
    """Return the first and last line of each change; for removed lines, the line now in their place."""
    ranges: list[tuple[int, int]] = []
    for hunk in hunks:
        first = min(hunk.new_start + 1, total)
        ranges.append((first, max(first, min(hunk.new_end, total))))
    return tuple(ranges)


class ExternalChanges(NamedTuple):
    """The changes of a file since it was last read: a note, the lines of a diff, the hunks.

    `complete` is True if the diff has all of them.
    """

    note: str
    diff: tuple[str, ...]
    hunks: tuple[ReplacedLines, ...]
    complete: bool = False


def external_changes(tracker: ReadTracker, current: Current, shown: str) -> ExternalChanges | None:
    """Compare a file with the revision that was last read; None if it is unchanged or was not read.

    `shown` is the text of the file as `read` shows it.
    """
    last = tracker.last(current.real_path)
    revision = current.revision or ""
    if last is None or last.revision == revision or tracker.fully_read(current.real_path, revision):
        return None
    if last.text is None:
        # The unchanged lines are unknown, so no line counts as read.
        every = ReplacedLines(0, sys.maxsize, 0, sys.maxsize)
        return ExternalChanges(f"the file had {SINCE_SHOWN}", (), (every,))
    hunks = line_changes(lf_view(last.text), lf_view(shown))
    now = [(hunk.new_start + 1, max(hunk.new_end, hunk.new_start + 1)) for hunk in hunks]
    where = f"before this edit, {line_ranges(now)}" if hunks else "in its line ends only"
    diff = unified_diff(last.text, shown, "file")
    lines = diff_lines(diff, _EXTERNAL_DIFF_LINES)
    head = [footer("changes since it was shown")] if lines else []
    note = f"the file had {SINCE_SHOWN}: {where}"
    return ExternalChanges(note, (*head, *lines), hunks, is_shown(diff, "\n".join(lines)))


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
