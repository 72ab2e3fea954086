"""`write`: the whole content of a file, new or replaced, and only over what has been seen."""

from dataclasses import dataclass

from agentfs.disk import Current, Root, quote
from agentfs.editing.document import UNKNOWN_8BIT
from agentfs.editing.report import plural, shown_diff
from agentfs.editing.unseen import check_overwrite
from agentfs.errors import BinaryError, EncodingError, InvalidArgumentError, TooLargeError
from agentfs.limits import Limits
from agentfs.results import WriteResult
from agentfs.shown import Shown
from agentfs.text import Decoded, count_lines, decode, newline_of, unified_diff


@dataclass(frozen=True)
class Content:
    """What a file is to hold.

    Attributes:
        data: The bytes.
        text: The text of these bytes.
        before: The text that they replace; None where there was none.
        notes: How it differs from what was given, and why.
    """

    data: bytes
    text: str
    before: str | None
    notes: tuple[str, ...]


def write_file(root: Root, shown: Shown, limits: Limits, path: str, content: str) -> WriteResult:
    """Create a file, or replace the whole content of one that has been seen.

    Args:
        root: The door to the disk; its policy says what may be replaced.
        shown: What this workspace has shown; the new content counts as seen.
        limits: For the size of the file.
        path: The file.
        content: The whole text.

    Returns:
        What was written, with the diff.

    Raises:
        UnreadError: `unread`: the file exists and has not been seen whole.
        StaleError: `stale`: it has changed since it was seen.
        AlreadyExistsError: `already_exists`: it exists, and the policy replaces none.
        InvalidArgumentError: `invalid_argument`: a NUL in the content.
        EncodingError: `encoding`: the file's encoding cannot hold the content, or is unknown.
        TooLargeError: `too_large`: the file or the content is larger than `Limits.file_bytes`.
    """
    if "\x00" in content:
        raise InvalidArgumentError(
            "content holds a NUL character, which would make the file binary.",
            hint="Pass content without \\u0000.",
            details={"parameter": "content"},
        )
    if len(content) > limits.file_bytes:
        raise _too_large(path, limits.file_bytes)
    outcome: list[Content] = []

    def compute(current: Current) -> bytes:
        outcome[:] = [fitted(content, current.data, current.path)]
        if len(outcome[0].data) > limits.file_bytes:
            raise _too_large(current.path, limits.file_bytes)
        if current.data is not None and current.data != outcome[0].data:
            check_overwrite(current, shown, root.policy.overwrite)
        return outcome[0].data

    changed = root.change(path, compute, max_bytes=limits.file_bytes)
    written = outcome[0]
    shown.record_write(changed.real_path, changed.revision, written.text)
    unchanged = changed.before == changed.after
    notes = (*changed.notes, *written.notes)
    if unchanged:
        notes = (*notes, "the file held this content already; nothing was written")
    diff = unified_diff(written.before, written.text, changed.path)
    size = f"{plural(count_lines(written.text), 'line')}, {plural(len(changed.after), 'byte')}"
    done = "Created" if changed.created else "Unchanged:" if unchanged else "Replaced"
    # Of a new file the model knows every line: it has just sent them.
    lines = [] if changed.created else shown_diff(diff)
    return WriteResult(
        path=changed.path,
        created=changed.created,
        bytes_written=len(changed.after),
        diff=diff,
        revision=changed.revision,
        notes=notes,
        text="\n".join([f"{done} {quote(changed.path)} ({size}).", *notes, *lines]),
    )


def fitted(content: str, data: bytes | None, path: str) -> Content:
    """Fit a content to the file that it replaces: its encoding, byte order mark, and CRLF throughout.

    Args:
        content: The whole text as given.
        data: The bytes of the file, or None where there is none.
        path: The path as shown, for messages.

    Returns:
        What the file is to hold.

    Raises:
        EncodingError: `encoding`: the file's encoding cannot hold the content, or is unknown.
    """
    notes: list[str] = []
    old = Decoded("", "utf-8", b"")
    before: str | None = None
    if data is not None:
        before = ""
        try:
            old = decode(data)
            before = old.text
        except BinaryError:
            notes.append("the file was binary and is text now")
    if old.encoding == UNKNOWN_8BIT and not content.isascii():
        raise EncodingError(
            f"{quote(path)} is in an unknown 8-bit encoding, so only ASCII text can be written to it.",
            hint="Call edit to change the ASCII parts of it and keep the rest, or write to another path.",
            details={"path": path, "encoding": UNKNOWN_8BIT},
        )
    text = content
    if old.bom:
        text = text.removeprefix("\ufeff")
        notes.append(f"the byte order mark of the file was kept ({old.encoding})")
    elif old.encoding != "utf-8":
        notes.append(f"the encoding of the file was kept ({old.encoding})")
    if before is not None and newline_of(before) == "\r\n" and newline_of(text) in {"\n", "mixed"}:
        text = text.replace("\r\n", "\n").replace("\n", "\r\n")
        notes.append("the line ends of the file were kept: CRLF")
    return Content(old.bom + old.encode(text), text, before, tuple(notes))


def _too_large(path: str, limit: int) -> TooLargeError:
    return TooLargeError(
        f"The content for {quote(path)} is over the limit of {limit} bytes.",
        hint="Write it in smaller files.",
        details={"path": path, "limit": limit},
    )
