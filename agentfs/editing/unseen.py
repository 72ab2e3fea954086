"""Whether a file may be replaced: only what has been seen, unless the policy says otherwise."""

from agentfs.disk import Current, quote
from agentfs.editing.drift import stale
from agentfs.editing.report import line_ranges, plural
from agentfs.errors import AlreadyExistsError, UnreadError
from agentfs.limits import Limits
from agentfs.policy import Overwrite
from agentfs.shown import Shown
from agentfs.text import bodies_of, decode, fits, is_binary
from agentfs.versions import ShownVersion


def check_overwrite(current: Current, shown: Shown, overwrite: Overwrite, limits: Limits) -> None:
    """Refuse to replace a file whose present version this workspace has not seen.

    Args:
        current: The file as it stands.
        shown: What this workspace has shown.
        overwrite: The policy.
        limits: What a read can show of a line.

    Raises:
        AlreadyExistsError: `already_exists`: the policy replaces none.
        UnreadError: `unread`: the file, or a part of it, has not been shown.
        StaleError: `stale`: it has changed since it was shown.
    """
    if current.data is None or current.revision is None or overwrite == "always":
        return
    if overwrite == "never":
        raise AlreadyExistsError(
            f"{quote(current.path)} exists already, and existing files are not replaced here.",
            hint="Write to another path, or call edit to change a part of it.",
            details={"path": current.path},
        )
    if shown.seen(current.real_path, current.revision):
        return
    last = shown.last(current.real_path)
    if last is None and is_binary(current.data):
        raise UnreadError(
            f"{quote(current.path)} is a binary file that was not shown: all of it would be replaced.",
            hint=f"Call read(path={quote(current.path)}) first if it is an image. No read shows other "
            "binaries: write to another path, or delete it first.",
            details={"path": current.path, "revision": current.revision},
        )
    if last is None:
        raise UnreadError(
            f"{quote(current.path)} exists already and has not been read: writing would replace all of it.",
            hint=f"Call read(path={quote(current.path)}) first, or edit to change a part of it.",
            details={"path": current.path, "revision": current.revision},
        )
    text = None if is_binary(current.data) else decode(current.data).text
    if last.revision == current.revision:
        raise _part_unread(current.path, last, _too_long(last, text or "", limits))
    raise stale(current, text, last.text, last.revision)


def _part_unread(path: str, last: ShownVersion, too_long: list[tuple[int, int]]) -> UnreadError:
    missing = last.missing()
    count = sum(end - start + 1 for start, end in missing)
    start, end = missing[0]
    hint = f"Call read(path={quote(path)}, offset={start}, limit={end - start + 1}) first, "
    hint += "or edit to change a part of the file."
    if too_long:
        hint = (
            f"Reading again does not help: {line_ranges(too_long)} cannot be shown whole. Call edit to "
            "change a part of the file; a program can replace it with write(…, overwrite=True)."
        )
    return UnreadError(
        f"Only a part of {quote(path)} has been read: {line_ranges(missing)} "
        f"({count} of {plural(last.total, 'line')}) would be replaced unseen.",
        hint=hint,
        details={"path": path, "revision": last.revision, "unread_lines": [list(lines) for lines in missing]},
    )


def _too_long(last: ShownVersion, text: str, limits: Limits) -> list[tuple[int, int]]:
    """Return those of the lines not shown that no read shows whole."""
    lines = bodies_of(text)
    return [
        (number, number)
        for start, end in last.missing()
        for number, line in enumerate(lines[start - 1 : end], start)
        if len(line) > limits.line_chars or not fits(line, limits)
    ]
