"""A change as a model sees it, and the changes by other programs since a file was shown."""

import re
import sys
from collections.abc import Sequence
from typing import NamedTuple

from agentfs.base.advice import Advice, call
from agentfs.editing.rendering import diff_lines, is_shown
from agentfs.errors import StaleError
from agentfs.fs import Current, quote
from agentfs.reading.notebook import CellView, notebook_problem
from agentfs.shown.read_tracker import ReadTracker
from agentfs.text import (
    EditView,
    ReplacedLines,
    count_lines,
    first_names,
    footer,
    lf_view,
    line_changes,
    line_ranges,
    plural,
    styled_diff,
    unified_diff,
)

SINCE_SHOWN = "changed since it was shown"
_EXTERNAL_DIFF_LINES = 40
_MOST_CELLS = 20  # cells that a note names
_HUNK_HEADER = re.compile(r"^@@ .*@@$", re.MULTILINE)


class ShownChange(NamedTuple):
    """A change as a model sees it: the names of the changed lines, the diff, and notes."""

    where: str
    diff: str
    notes: tuple[str, ...] = ()


def changed_ranges(hunks: Sequence[ReplacedLines], total: int) -> tuple[tuple[int, int], ...]:
    """Return the first and last line of each change; for removed lines, the line now in their place."""
    ranges: list[tuple[int, int]] = []
    for hunk in hunks:
        first = min(hunk.new_start + 1, total)
        ranges.append((first, max(first, min(hunk.new_end, total))))
    return tuple(ranges)


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


class ExternalChanges(NamedTuple):
    """The changes of a file since it was last read: a note, the lines of a diff, the hunks.

    `complete` is True if the diff has all of them.
    """

    note: str
    diff: tuple[str, ...]
    hunks: tuple[ReplacedLines, ...]
    complete: bool = False


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
