"""`write`: create a file, or replace a file that was read."""

import codecs
from typing import Literal, NamedTuple

from agentfs.base import call_context
from agentfs.base.advice import Advice, Joined, NextCall, ParameterName, ToolName, call
from agentfs.editing.change_file import EditTarget, record_format
from agentfs.editing.draft import check_notebook, nul_error
from agentfs.editing.finish import Finished, finish, new_findings
from agentfs.editing.match import shown_characters
from agentfs.editing.rendering import is_shown, with_diff
from agentfs.editing.shown_change import stale_error
from agentfs.errors import (
    AgentFSError,
    AlreadyExistsError,
    BinaryError,
    EncodingError,
    TooLargeError,
    UnreadError,
)
from agentfs.fs import Change, Current, DirectoryNode, Node, quote, revision_of
from agentfs.policy import Overwrite
from agentfs.results import DirectoryResult, WriteResult
from agentfs.shown.read_tracker import ReadTracker
from agentfs.shown.workspace_context import Context
from agentfs.text import (
    UNKNOWN_8BIT,
    Decoded,
    bom_of,
    codec_name,
    count_lines,
    declared_encoding,
    decode,
    decode_in,
    is_binary,
    line_ranges,
    newline_of,
    plural,
    unified_diff,
    with_text,
)
from agentfs.text.notebook import is_named_notebook, notebook_problem, shown_text

LineEnds = Literal["keep", "given", "\n", "\r\n", "\r"]
_CODECS_WITH_BOM = {
    "utf-8-sig": codecs.BOM_UTF8,
    "utf-16": codecs.BOM_UTF16_LE,
    "utf-32": codecs.BOM_UTF32_LE,
}
_NEWLINE_NAMES = {"\n": "LF", "\r\n": "CRLF", "\r": "CR", "mixed": "mixed"}


class _Content(NamedTuple):
    """The new bytes and their text, the replaced text, and notes on how the content was adapted."""

    data: bytes
    text: str
    before: str | None
    notes: tuple[str, ...]
    codec: Decoded

    def with_text(self, text: str) -> "_Content":
        """Return the content with another text in the same encoding."""
        return self._replace(data=self.codec.bom + self.codec.encode(text), text=text)


def write_file(
    target: EditTarget, content: str, *, overwrite: bool | None = None, newline: LineEnds = "keep"
) -> WriteResult:
    """Create a file, or replace a file whose lines were all read."""
    context, path, encoding, preview, *_, finisher = target
    finisher = None if preview else finisher
    root, tracker, limits, _ = context
    if "\x00" in content:
        raise nul_error(ParameterName("content"))
    if len(content) > limits.file_bytes:
        raise _too_large(path, limits.file_bytes)
    may_overwrite: Overwrite = root.policy.overwrite
    if overwrite is not None:
        may_overwrite = "always" if overwrite else "never"

    def check_size(path: str, size: int) -> None:
        if size > limits.file_bytes:
            raise _too_large(path, limits.file_bytes)

    def compute(current: Current) -> tuple[bytes, tuple[_Content, _Content, str, Finished]]:
        sent = _fitted(content, current.data, encoding, newline)
        check_size(current.path, len(sent.data))
        if current.data is not None and current.data != sent.data:
            _check_overwrite(current, tracker, may_overwrite)
            check_notebook(current.path, sent.before or "", sent.text)
        call_context.check()
        before = {} if sent.before is None else {current.real_path: sent.before}
        finished = finish(finisher, before, {current.real_path: sent.text})
        made = sent
        if (text := finished.texts[current.real_path]) != sent.text:
            try:
                formatted = sent.with_text(text)
                check_size(current.path, len(formatted.data))
                made = formatted
            except AgentFSError as error:
                finished = finished.without_formats(sent.text, error)
        expected = is_named_notebook(current.path) and made.data
        problem = notebook_problem(made.text) if expected else ""
        unusual = (f"warning: this is not a notebook: {problem}",) if problem else ()
        diff = unified_diff(sent.before, sent.text, current.path)
        made = made._replace(notes=(*sent.notes, *unusual))
        return made.data, (sent, made, diff, finished)

    changed, (sent, made, diff, finished) = root.update(
        path,
        compute,
        max_bytes=limits.file_bytes,
        preview=preview,
        by_others=lambda found: found[3].by_others,
    )
    text = made.text
    format_diff = finished.diff(changed.real_path, sent.text, changed.path) if text != sent.text else ""
    sent_revision = revision_of(sent.data) if format_diff else changed.revision
    if not preview:
        if encoding is not None and root.recorder is not None:
            root.recorder.name_encoding(changed.real_path, encoding)
        tracker.record_write(changed.real_path, sent_revision, shown_text(changed.path, sent.text))
    unchanged = changed.before == changed.after
    same = ("the file already has this content; nothing was written",) if unchanged else ()
    notes = (*changed.notes, *made.notes, *same, *new_findings(finisher, finished))
    done = "Created" if changed.created else "Unchanged" if unchanged else "Replaced"
    prefix = "Preview, nothing was written. " if preview else ""
    head = f"{prefix}{done}: {plural(count_lines(text), 'line')}."
    result = WriteResult(
        path=changed.path,
        created=changed.created,
        bytes_written=len(changed.after),
        diff=unified_diff(sent.before, text, changed.path) if format_diff else diff,
        revision=changed.revision,
        notes=notes,
    )
    # The model has just sent every line of a new file.
    shown = with_diff(result, limits, head, "" if changed.created else diff, finished.shown(format_diff))
    if format_diff and not preview:
        seen = is_shown(format_diff, shown.text)
        record_format(tracker, changed.real_path, (sent_revision, sent.text), (changed.revision, text), seen)
    return shown


def write_bytes(context: Context, path: str, data: bytes) -> WriteResult:
    """Create a file, or replace all of its bytes, without a view of them as text."""
    root, tracker, limits, _ = context
    if len(data) > limits.file_bytes:
        raise _too_large(path, limits.file_bytes)

    def compute(current: Current) -> tuple[bytes, None]:
        if current.data not in {None, data} and root.policy.overwrite == "never":
            _check_overwrite(current, tracker, "never")
        return data, None

    changed, _ = root.update(path, compute, max_bytes=limits.file_bytes)
    tracker.record_write(changed.real_path, changed.revision, None if is_binary(data) else decode(data).text)
    facts = changed.path, changed.created, len(data), "", changed.revision
    done = "Created" if changed.created else "Replaced"
    return with_text(WriteResult(*facts, notes=changed.notes), f"{done}: {plural(len(data), 'byte')}.")


def make_directory(context: Context, path: str) -> DirectoryResult:
    """Make a directory and those above it, unless it exists."""
    root, _, limits, _ = context
    real_path = root.real_path(path, creating=True)

    def conflict(_change: Change, _found: Node | None) -> AlreadyExistsError:
        return AlreadyExistsError(f"{quote(path)} exists and is not a directory.", details={"path": path})

    exists = root.exists(path) and root.entry(path).is_dir
    if not exists:
        change = Change(real_path, None, DirectoryNode())
        root.apply([change], max_bytes=limits.file_bytes, conflict=conflict)
    shown = root.entry(path).path
    result = DirectoryResult(shown, created=not exists)
    return with_text(
        result, f"{quote(shown)} exists." if exists else f"Created the directory {quote(shown)}."
    )


def _fitted(content: str, data: bytes | None, encoding: str | None, newline: LineEnds) -> _Content:
    """Adapt the content to the file that it replaces: its encoding, byte order mark and CRLF."""
    present, notes = _present(data or b"", encoding)
    before = None if data is None else present.text
    target = present
    if encoding is not None:
        mark, marked = bom_of(data or b"")
        if newline == "given" or marked != codec_name(encoding):
            known = encoding != UNKNOWN_8BIT
            mark = _CODECS_WITH_BOM.get(codecs.lookup(encoding).name, b"") if known else b""
        target = Decoded(content, codec_name(encoding), mark)
        if marked and not notes and not (mark or content.startswith("\ufeff")):
            notes.append("the byte order mark of the file was removed")
    elif present.bom:
        notes.append(f"the byte order mark of the file was kept ({present.encoding})")
    elif (declared := declared_encoding(content)) not in {None, present.encoding}:
        target = Decoded("", declared or "", b"")
        notes += [] if content.isascii() else [f"the file is in the encoding that it names ({declared})"]
    elif present.encoding != "utf-8":
        notes.append(f"the encoding of the file was kept ({present.encoding})")
    text = content.removeprefix("\ufeff") if target.bom else content
    if (restored := shown_characters(text, before or "")) != text:
        text = restored
        notes.append("⟦U+…⟧ was written as the character that it stands for in the file")
    text, note = _with_newlines(text, before, newline)
    return _Content(target.bom + target.encode(text), text, before, (*notes, *note), target)


def _present(data: bytes, encoding: str | None) -> tuple[Decoded, list[str]]:
    """Decode the file that is replaced; return a note if it is not text in the encoding."""
    try:
        return (decode(data) if encoding is None else decode_in(data, encoding, exact=True)), []
    except EncodingError:
        note = f"the file was in another encoding and is {codec_name(encoding or 'utf-8')} now"
        return decode(b"" if b"\x00" in data else data), [note]
    except BinaryError:
        return decode(b""), ["the file was binary and is text now"]


def _with_newlines(text: str, before: str | None, newline: LineEnds) -> tuple[str, list[str]]:
    if newline == "keep" and before is not None and newline_of(before) == "\r\n":
        if newline_of(text) not in {"\n", "mixed"}:
            return text, []
        kept = text.replace("\r\n", "\n").replace("\n", "\r\n")
        return kept, ["the line ends of the file were kept: CRLF"]
    if newline == "keep":
        return text, []
    if newline == "given":
        old, new = newline_of(before or ""), newline_of(text)
        if not old or not new or old == new:
            return text, []
        names = _NEWLINE_NAMES[new], _NEWLINE_NAMES[old]
        return text, [f"the line ends are {names[0]}, as given; the file had {names[1]}"]
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\n", newline), []


def _too_large(path: str, limit: int) -> TooLargeError:
    return TooLargeError(
        f"The content for {quote(path)} exceeds the limit of {limit} bytes.",
        hint="Write it in smaller files.",
        details={"path": path, "limit": limit},
    )


def _check_overwrite(current: Current, tracker: ReadTracker, overwrite: Overwrite) -> None:
    """Raise an error if not every line of the present revision was read."""
    if current.data is None or current.revision is None or overwrite == "always":
        return
    path, details = quote(current.path), {"path": current.path, "revision": current.revision}
    if overwrite == "never":
        edit = Advice("call ", ToolName("edit"), " to change a part of it")
        raise AlreadyExistsError(
            f"{path} already exists, and this workspace does not replace existing files.",
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
            f"{path} is a binary file that was not shown; writing would replace all of it.",
            hint=Joined(
                " ",
                Advice("Call ", read, " first if it is an image."),
                Advice("A read does not show other binary files: ", other, "."),
            ),
            details=details,
        )
    if last is None:
        raise UnreadError(
            f"{path} already exists and has not been read; writing would replace all of it.",
            hint=_read_or_edit(read, "it"),
            details=details,
        )
    text = None if binary else shown_text(current.path, decode(current.data).text)
    if last.revision != current.revision:
        raise stale_error(current, text, last.text, last.revision)
    missing = last.missing()
    count = sum(end - start + 1 for start, end in missing)
    # One read of all gaps, because a model would follow a call for each.
    start, end = missing[0][0], missing[-1][1]
    raise UnreadError(
        f"Only a part of {path} has been read: {line_ranges(missing)} "
        f"({count} of {plural(last.total, 'line')}) would be replaced unseen.",
        hint=_read_or_edit(call("read", path=current.path, offset=start, limit=end - start + 1), "the file"),
        details={**details, "unread_lines": [list(lines) for lines in missing]},
    )


def _read_or_edit(read: NextCall, what: str) -> Advice:
    ways = Joined(", or ", Advice(read, " first"), Advice(ToolName("edit"), f" to change a part of {what}"))
    return Advice("Call ", ways, ".")
