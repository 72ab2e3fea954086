"""`write`: the whole content of a file, new or replaced, and only over what has been read."""

import codecs
from typing import Literal, NamedTuple

from agentfs import call_context
from agentfs.advice import ParameterName
from agentfs.editing.change_file import check_overwrite, placeholder_notes, with_diff
from agentfs.editing.document import check_no_nul
from agentfs.editing.match import shown_characters
from agentfs.errors import BinaryError, EncodingError, TooLargeError
from agentfs.fs import Current, Root, quote
from agentfs.limits import Limits
from agentfs.policy import Overwrite
from agentfs.read_tracker import ReadTracker
from agentfs.reading.media import check_notebook
from agentfs.results import WriteResult
from agentfs.text import (
    UNKNOWN_8BIT,
    Decoded,
    bom_of,
    codec_name,
    count_lines,
    declared_encoding,
    decode,
    decode_as,
    newline_of,
    plural,
    unified_diff,
)

LineEnds = Literal["keep", "given", "\n", "\r\n", "\r"]
_CODECS_WITH_BOM = {
    "utf-8-sig": codecs.BOM_UTF8,
    "utf-16": codecs.BOM_UTF16_LE,
    "utf-32": codecs.BOM_UTF32_LE,
}
_NEWLINE_NAMES = {"\n": "LF", "\r\n": "CRLF", "\r": "CR", "mixed": "mixed"}


class _Content(NamedTuple):
    """The new bytes and their text, the text replaced, and what was adapted."""

    data: bytes
    text: str
    before: str | None
    notes: tuple[str, ...]


def write_file(
    root: Root,
    tracker: ReadTracker,
    limits: Limits,
    path: str,
    content: str,
    *,
    overwrite: bool | None = None,
    encoding: str | None = None,
    newline: LineEnds = "keep",
    preview: bool = False,
    raw: bool = False,
) -> WriteResult:
    """Create a file, or replace the whole content of one that has been read."""
    check_no_nul(content, ParameterName("content"))
    if len(content) > limits.file_bytes:
        raise _too_large(path, limits.file_bytes)
    replaced: Overwrite = root.policy.overwrite
    if overwrite is not None:
        replaced = "always" if overwrite else "never"

    def compute(current: Current) -> tuple[bytes, tuple[str, tuple[str, ...], str]]:
        data, text, before, notes = _fitted(content, current.data, encoding, newline)
        if len(data) > limits.file_bytes:
            raise _too_large(current.path, limits.file_bytes)
        if current.data is not None and current.data != data:
            check_overwrite(current, tracker, replaced)
            if not raw:
                check_notebook(current.path, current.data, data)
        call_context.check()
        diff = unified_diff(before, text, current.path)
        call_context.check()
        return data, (text, (*notes, *placeholder_notes(diff)), diff)

    changed, (text, notes, diff) = root.update(path, compute, max_bytes=limits.file_bytes, preview=preview)
    if not preview:
        tracker.record_write(changed.real_path, changed.revision, text)
    unchanged = changed.before == changed.after
    same = ("the file held this content already; nothing was written",) if unchanged else ()
    notes = (*changed.notes, *notes, *same)
    size = f"{plural(count_lines(text), 'line')}, {plural(len(changed.after), 'byte')}"
    done = "Created" if changed.created else "Unchanged:" if unchanged else "Replaced"
    prefix = "Preview, nothing was written. " if preview else ""
    head = f"{prefix}{done} {quote(changed.path)} ({size})."
    result = WriteResult(
        path=changed.path,
        created=changed.created,
        bytes_written=len(changed.after),
        diff=diff,
        revision=changed.revision,
        notes=notes,
    )
    # Of a new file the model knows every line: it has just sent them.
    return with_diff(result, limits, "" if changed.created else diff, [head, *notes])


def _fitted(content: str, data: bytes | None, encoding: str | None, newline: LineEnds) -> _Content:
    """Fit a content to the file that it replaces: its encoding, byte order mark, and CRLF throughout."""
    present, notes = _present(data or b"", encoding)
    before = None if data is None else present.text
    target = present
    if encoding is not None:
        mark, marked = bom_of(data or b"")
        if newline == "given" or marked != codec_name(encoding):
            known = encoding != UNKNOWN_8BIT
            mark = _CODECS_WITH_BOM.get(codecs.lookup(encoding).name, b"") if known else b""
        target = Decoded(content, codec_name(encoding), mark)
    elif present.bom:
        notes.append(f"the byte order mark of the file was kept ({present.encoding})")
    elif (named := declared_encoding(content)) not in {None, present.encoding}:
        target = Decoded("", named or "", b"")
        notes += [] if content.isascii() else [f"it is written in the encoding that it names ({named})"]
    elif present.encoding != "utf-8":
        notes.append(f"the encoding of the file was kept ({present.encoding})")
    text = content.removeprefix("\ufeff") if target.bom else content
    if (restored := shown_characters(text, before or "")) != text:
        text = restored
        notes.append("⟦U+…⟧ was taken for the character of the file that is shown so")
    text, note = _with_newlines(text, before, newline)
    return _Content(target.bom + target.encode(text), text, before, (*notes, *note))


def _present(data: bytes, encoding: str | None) -> tuple[Decoded, list[str]]:
    """Decode what is replaced, for the diff and its line ends; with a note where that is not possible."""
    try:
        return (decode(data) if encoding is None else decode_as(data, encoding)), []
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
        return text, [f"the line ends are those given, {names[0]}; the file had {names[1]}"]
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\n", newline), []


def _too_large(path: str, limit: int) -> TooLargeError:
    return TooLargeError(
        f"The content for {quote(path)} is over the limit of {limit} bytes.",
        hint="Write it in smaller files.",
        details={"path": path, "limit": limit},
    )
