"""Whether a file may be replaced: only what has been seen, unless the policy says otherwise."""

from agentfs.editing.external_changes import stale
from agentfs.editing.report import line_ranges, plural
from agentfs.errors import AlreadyExistsError, UnreadError
from agentfs.fs import Current, quote
from agentfs.limits import Limits
from agentfs.line_ranges import ReadRecord
from agentfs.messages import Joined, Message, NextCall, Retry, ToolName, call
from agentfs.policy import Overwrite
from agentfs.read_tracker import ReadTracker
from agentfs.text import MOST_LINES, bodies_of, decode, fits, is_binary


def check_overwrite(current: Current, shown: ReadTracker, overwrite: Overwrite, limits: Limits) -> None:
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
            hint=Message(
                Joined(
                    ", or ",
                    "Choose another path",
                    Message("call ", ToolName("edit"), " to change a part of it"),
                ),
                ".",
            ),
            details={"path": current.path},
        )
    if shown.fully_read(current.real_path, current.revision):
        return
    last = shown.last(current.real_path)
    if last is None and is_binary(current.data):
        raise UnreadError(
            f"{quote(current.path)} is a binary file that was not shown: all of it would be replaced.",
            hint=Joined(
                " ",
                Message("Call ", call("read", path=current.path), " first if it is an image."),
                Message(
                    "No read shows other binaries: ",
                    Joined(
                        ", or ", "choose another path", Message("delete it first with ", ToolName("delete"))
                    ),
                    ".",
                ),
            ),
            details={"path": current.path, "revision": current.revision},
        )
    if last is None:
        raise UnreadError(
            f"{quote(current.path)} exists already and has not been read: writing would replace all of it.",
            hint=_read_or_edit(call("read", path=current.path), "it"),
            details={"path": current.path, "revision": current.revision},
        )
    text = None if is_binary(current.data) else decode(current.data).text
    if last.revision == current.revision:
        raise _part_unread(current.path, last, _too_long(last, text or "", limits))
    raise stale(current, text, last.text, last.revision)


def _part_unread(path: str, last: ReadRecord, too_long: list[tuple[int, int]]) -> UnreadError:
    missing = last.missing()
    count = sum(end - start + 1 for start, end in missing)
    start, end = missing[0]
    hint = _read_or_edit(call("read", path=path, offset=start, limit=end - start + 1), "the file")
    if too_long:
        hint = Joined(
            " ",
            f"Reading again does not help: {line_ranges(too_long)} cannot be shown whole.",
            Message("Call ", ToolName("edit"), " to change a part of the file."),
            Message("To replace it unseen, ", Retry({"overwrite": True}), "."),
        )
    return UnreadError(
        f"Only a part of {quote(path)} has been read: {line_ranges(missing)} "
        f"({count} of {plural(last.total, 'line')}) would be replaced unseen.",
        hint=hint,
        details={"path": path, "revision": last.revision, "unread_lines": [list(lines) for lines in missing]},
    )


def _read_or_edit(read: NextCall, what: str) -> Message:
    ways = Joined(", or ", Message(read, " first"), Message(ToolName("edit"), f" to change a part of {what}"))
    return Message("Call ", ways, ".")


def _too_long(last: ReadRecord, text: str, limits: Limits) -> list[tuple[int, int]]:
    """Return those of the lines not shown that no read shows whole."""
    if text.count("\n") > MOST_LINES:
        return []
    lines = bodies_of(text)
    return [
        (number, number)
        for start, end in last.missing()
        for number, line in enumerate(lines[start - 1 : end], start)
        if len(line) > limits.line_chars or not fits(line, limits)
    ]
