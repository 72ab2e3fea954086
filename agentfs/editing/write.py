"""`write` and `append`: create a file, replace a file that was read, or add lines at its end.

`append` needs no earlier read, because it replaces nothing.
"""

import codecs
from typing import Literal

from agentfs.base import call_context
from agentfs.base.advice import Advice, Joined, ParameterName, ToolName, call, plural
from agentfs.editing.commit import SINCE_SHOWN, EditTarget, commit
from agentfs.editing.draft import Draft, FileEdit, as_read, check_notebook, check_size, edit_view, encoded
from agentfs.editing.match import check_line_numbers, shown_characters
from agentfs.editing.rendering import diff_lines, with_diff
from agentfs.errors import AlreadyExistsError, BinaryError, EncodingError, StaleError, UnreadError
from agentfs.fs import Change, Current, DirectoryNode, Node, quote
from agentfs.policy import Overwrite
from agentfs.results import DirectoryResult, WriteResult
from agentfs.shown.read_tracker import ReadRecord, ReadTracker
from agentfs.shown.workspace_context import Context
from agentfs.text.decoding import (
    UNKNOWN_8BIT,
    Decoded,
    bom_of,
    codec_name,
    declared_encoding,
    decode,
    decode_in,
    is_binary,
)
from agentfs.text.diff import unified_diff
from agentfs.text.display import line_ranges, with_text
from agentfs.text.lines import Replacement, count_lines, newline_of
from agentfs.text.notebook import is_named_notebook, notebook_problem, shown_text

LineEnds = Literal["keep", "given", "\n", "\r\n", "\r"]
_MARKS = {"utf-8-sig": codecs.BOM_UTF8, "utf-16": codecs.BOM_UTF16_LE, "utf-32": codecs.BOM_UTF32_LE}
_NEWLINE_NAMES = {"\n": "LF", "\r\n": "CRLF", "\r": "CR", "mixed": "mixed"}


def write_file(
    target: EditTarget, content: str, *, overwrite: bool | None = None, newline: LineEnds = "keep"
) -> WriteResult:
    """Create a file, or replace a file whose lines were all read."""
    root, tracker, limits, _ = target.context
    check_size(len(content), target.path, limits)
    asked: Overwrite = "always" if overwrite else "never"
    may_overwrite = root.policy.overwrite if overwrite is None else asked

    def compute(current: Current) -> FileEdit:
        edit = _of_content(target, current, content, newline)
        if current.data is not None and current.data != edit.data:
            _check_overwrite(current, tracker, may_overwrite)
            check_notebook(current.path, edit.before.source, edit.after.source)
        return edit

    path, edit, final, revision, notes, below = commit(target, compute)
    done = "Created" if edit.creates else "Unchanged" if edit.data == edit.current.data else "Replaced"
    prefix = "Preview, nothing was written. " if target.preview else ""
    head = f"{prefix}{done}: {plural(count_lines(final.after.source), 'line')}."
    result = WriteResult(path, edit.creates, len(final.data), final.diff, revision, notes=notes)
    # The model has just sent every line of a new file.
    return with_diff(result, limits, head, "" if edit.creates else edit.diff, below)


def _of_content(target: EditTarget, current: Current, content: str, newline: LineEnds = "keep") -> FileEdit:
    """Return the edit that gives a file a new content."""
    path = current.path
    text, codec, before, notes = _fitted(content, current.content, target.encoding, newline)
    if call_context.is_models_call():
        check_line_numbers(ParameterName("content"), content, before)
    data = encoded(codec, text, path, target.context.limits)
    if data and is_named_notebook(path) and (problem := notebook_problem(text)):
        notes.append(f"warning: this is not a notebook: {problem}")
    views = edit_view(path, before), edit_view(path, text)
    return FileEdit(current, *views, codec, data, replaces_all=True, notes=tuple(notes))


def append_to_file(target: EditTarget, content: str) -> WriteResult:
    """Add text as lines of its own after the last line of a file; create a missing file."""
    limits = target.context.limits

    def compute(current: Current) -> FileEdit:
        if current.data is None:
            return _of_content(target, current, content)
        draft = Draft(current, limits)
        view, end = draft.view, len(draft.view.text)
        lines = view.lf(content) if view.text else content  # there is no line end to follow
        starts = lines and end and not view.text.endswith("\n")
        if call_context.is_models_call():
            check_line_numbers(ParameterName("content"), lines, view.text, count_lines(view.text) + 1)
        draft.replace([Replacement(end, end, f"\n{lines}" if starts else lines)])
        note = "the last line of the file had no line end; one was added before the text"
        return draft.finish("offset", notes=(note,) if starts else ())

    path, edit, final, revision, notes, below = commit(target, compute)
    result = WriteResult(path, edit.creates, len(final.data), final.diff, revision, notes=notes)
    # The model has just sent the lines.
    if edit.creates:
        head = f"Created: {plural(count_lines(final.after.source), 'line')}."
    else:
        first, last = (count_lines(as_read(view)) for view in (edit.before, edit.after))
        head = f"Appended {line_ranges([(first + 1, last)])}."
    return with_diff(result, limits, head, "", below)


def write_bytes(context: Context, path: str, data: bytes) -> WriteResult:
    """Create a file, or replace all of its bytes, without a view of them as text."""
    root, tracker, limits, _ = context
    check_size(len(data), path, limits)

    def compute(current: Current) -> tuple[bytes, None]:
        if current.data not in {None, data} and root.policy.overwrite == "never":
            _check_overwrite(current, tracker, "never")
        return data, None

    changed, _ = root.update(path, compute, max_bytes=limits.file_bytes)
    tracker.record_write(changed.real_path, changed.revision, None if is_binary(data) else decode(data).text)
    facts = changed.path, changed.before is None, len(data), "", changed.revision
    done = "Created" if changed.before is None else "Replaced"
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
    text = f"{quote(shown)} exists." if exists else f"Created the directory {quote(shown)}."
    return with_text(DirectoryResult(shown, created=not exists), text)


def _fitted(
    content: str, data: bytes, encoding: str | None, newline: LineEnds
) -> tuple[str, Decoded, str, list[str]]:
    """Adapt the content to the file that it replaces: its encoding, byte order mark and CRLF.

    Returns the new text, its codec, the text of the file before, and notes.
    """
    present, notes = _present(data, encoding)
    before, target = present.text, present
    if encoding is not None:
        mark, marked = bom_of(data)
        if newline == "given" or marked != codec_name(encoding):
            known = encoding != UNKNOWN_8BIT
            mark = _MARKS.get(codecs.lookup(encoding).name, b"") if known else b""
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
    if call_context.is_models_call() and (restored := shown_characters(text, before)) != text:
        text = restored
        notes.append("⟦U+…⟧ was written as the character that it stands for in the file")
    text, more = _with_newlines(text, before, newline)
    return text, target, before, [*notes, *more]


def _present(data: bytes, encoding: str | None) -> tuple[Decoded, list[str]]:
    """Decode the file that is replaced; return a note if it is not text in the encoding."""
    try:
        return (decode(data) if encoding is None else decode_in(data, encoding, exact=True)), []
    except EncodingError:
        note = f"the file was in another encoding and is {codec_name(encoding or 'utf-8')} now"
        return decode(b"" if b"\x00" in data else data), [note]
    except BinaryError:
        return decode(b""), ["the file was binary and is text now"]


def _with_newlines(text: str, before: str, newline: LineEnds) -> tuple[str, list[str]]:
    """Return the text with its line ends as requested, and a note."""
    old, new = newline_of(before), newline_of(text)
    if newline == "keep":
        if old != "\r\n" or new not in {"\n", "mixed"}:
            return text, []
        return text.replace("\r\n", "\n").replace("\n", "\r\n"), ["the line ends of the file were kept: CRLF"]
    if newline == "given":
        if not old or not new or old == new:
            return text, []
        note = f"the line ends are {_NEWLINE_NAMES[new]}, as given; the file had {_NEWLINE_NAMES[old]}"
        return text, [note]
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\n", newline), []


def _check_overwrite(current: Current, tracker: ReadTracker, overwrite: Overwrite) -> None:
    """Raise an error if not every line of the present revision was read."""
    if current.data is None or current.revision is None or overwrite == "always":
        return
    path = quote(current.path)
    details: dict[str, object] = {"path": current.path, "revision": current.revision}
    edit = Advice(ToolName("edit"), " to change a part of it")
    if overwrite == "never":
        raise AlreadyExistsError(
            f"{path} already exists, and this workspace does not replace existing files.",
            hint=Advice(Joined(", or ", "Choose another path", Advice("call ", edit)), "."),
            details={"path": current.path},
        )
    if tracker.fully_read(current.real_path, current.revision):
        return
    last, read = tracker.last(current.real_path), call("read", path=current.path)
    if last is not None and last.revision != current.revision:
        raise _stale(current, last)
    if last is not None:
        missing = last.missing()
        count = sum(end - start + 1 for start, end in missing)
        unread = f"{line_ranges(missing)} ({count} of {plural(last.total, 'line')})"
        why = f"Only a part of {path} has been read: {unread} would be replaced unseen."
        # One read of all gaps, because a model would follow a call for each.
        start, end = missing[0][0], missing[-1][1]
        read = call("read", path=current.path, offset=start, limit=end - start + 1)
        details["unread_lines"] = [list(lines) for lines in missing]
    else:
        why = f"{path} already exists and has not been read; writing would replace all of it."
    ways = Advice(read, " first"), edit
    if is_binary(current.data):  # `read` shows only images
        ways = Advice(read, " first if it is an image"), Advice(ToolName("delete"), " it first")
    raise UnreadError(why, hint=Advice("Call ", Joined(", or ", *ways), "."), details=details)


def _stale(current: Current, last: ReadRecord) -> StaleError:
    """Return the error for another revision than the last one read, with a diff if both texts are known."""
    path, data = current.path, current.content
    details: dict[str, object] = {"path": path, "revision": current.revision, "shown_revision": last.revision}
    why, diff = f"{quote(path)} has {SINCE_SHOWN}", ""
    if last.text is not None and not is_binary(data):
        diff = unified_diff(last.text, shown_text(path, decode(data).text), path)
    if diff:
        text, *notes = diff_lines(diff)
        details |= {"diff": diff, "places": [*text.split("\n"), *notes]}
    hint = Advice("Call ", call("read", path=path), ", then redo the change on the present text.")
    return StaleError(f"{why}{'; this is what changed:' if diff else '.'}", hint=hint, details=details)
