"""A file that has changed since it was shown: how it differs, and what is said of that."""

import sys
from dataclasses import dataclass

from agentfs.editing.report import line_ranges, shown_diff
from agentfs.errors import StaleError
from agentfs.fs import Current, quote
from agentfs.line_ranges import Hunk
from agentfs.messages import Message, call
from agentfs.read_tracker import ReadTracker
from agentfs.text import MOST_LINES, bodies_of, footer, moved_lines, unified_diff

_MOST_SHOWN = 40


@dataclass(frozen=True)
class ExternalChanges:
    """How a file differs from what was shown of it last.

    Attributes:
        note: The same in a sentence.
        shown: The lines of the difference for the model, bounded.
        hunks: Which lines differ.
    """

    note: str
    shown: tuple[str, ...]
    hunks: tuple[Hunk, ...]


def external_changes_since(
    shown: ReadTracker, real_path: str, revision: str, text: str
) -> ExternalChanges | None:
    """Compare a file with the version shown last.

    Args:
        shown: What this workspace has shown.
        real_path: The file.
        revision: Its version before the change at hand.
        text: The text of that version.

    Returns:
        How they differ; None where they do not, and where nothing is known of a version shown.
    """
    last = shown.last(real_path)
    if last is None or last.revision == revision or shown.fully_read(real_path, revision):
        return None
    if last.text is None or last.text.count("\n") + text.count("\n") > MOST_LINES:
        # Which lines are still the same is not known, so none of them counts as shown.
        every = Hunk(0, sys.maxsize, 0, sys.maxsize)
        return ExternalChanges("the file had changed since it was shown", (), (every,))
    changes = moved_lines(bodies_of(last.text), bodies_of(text))
    now = [(start + 1, max(end, start + 1)) for _, _, start, end in changes]
    note = f"the file had changed since it was shown: before this edit, {line_ranges(now)}"
    if not changes:
        note = "the file had changed since it was shown: in its line ends only"
    lines = shown_diff(unified_diff(last.text, text, "file"), most=_MOST_SHOWN)
    head = [footer("what had changed since it was shown")] if lines else []
    return ExternalChanges(note, (*head, *lines), tuple(Hunk(*change) for change in changes))


def check_revision(current: Current, text: str, shown: ReadTracker, expected: str | None) -> None:
    """Refuse to change a version other than the one expected.

    Args:
        current: The file as it stands.
        text: Its text.
        shown: What this workspace has shown.
        expected: The revision that the caller expects, or None for any.

    Raises:
        StaleError: `stale`: another version stands there.
    """
    if expected is None or expected == current.revision:
        return
    known = next((v for v in shown.versions_with_text(current.real_path) if v.revision == expected), None)
    raise stale(current, text, known.text if known is not None else None, expected)


def stale(current: Current, text: str | None, before: str | None, expected: str) -> StaleError:
    """Say that a file is not the version that a change was made for.

    Args:
        current: The file as it stands.
        text: Its text, or None when it is none.
        before: The text of the version meant, or None when it is not at hand.
        expected: The revision of that version.

    Returns:
        The error, with the difference where it is known.
    """
    details: dict[str, object] = {
        "path": current.path,
        "revision": current.revision,
        "shown_revision": expected,
    }
    message = f"{quote(current.path)} has changed since it was shown"
    hint = Message(
        "Call ", call("read", path=current.path), ", then make the change again with that taken in."
    )
    if before is None or text is None:
        return StaleError(f"{message}.", hint=hint, details=details)
    diff = unified_diff(before, text, current.path)
    details["diff"] = diff
    details["places"] = shown_diff(diff)
    return StaleError(f"{message}; this is what changed:", hint=hint, details=details)
