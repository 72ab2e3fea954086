"""`write`: the whole content of a file, new or replaced, and only over what has been seen."""

import codecs
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal, get_args

from agentfs import call_context
from agentfs.editing.document import UNKNOWN_8BIT
from agentfs.editing.overwrite_guard import check_overwrite
from agentfs.editing.report import plural, with_diff
from agentfs.errors import BinaryError, EncodingError, InvalidArgumentError, TooLargeError
from agentfs.fs import ATTEMPTS, Changed, ConcurrentChange, Root, kept_changing, quote
from agentfs.limits import Limits
from agentfs.messages import Joined, Message, ParameterName, ToolName
from agentfs.policy import Overwrite
from agentfs.read_tracker import ReadTracker
from agentfs.results import WriteResult
from agentfs.text import Decoded, bom_of, codec_name, count_lines, decode, decode_as, newline_of, unified_diff

LineEnds = Literal["keep", "given", "\n", "\r\n", "\r"]
_MARKING = {"utf-8-sig": codecs.BOM_UTF8, "utf-16": codecs.BOM_UTF16_LE, "utf-32": codecs.BOM_UTF32_LE}
_LINE_END_NAMES = {"\n": "LF", "\r\n": "CRLF", "\r": "CR", "mixed": "mixed"}


@dataclass(frozen=True)
class WriteTerms:
    """On what terms a file is written.

    Attributes:
        overwrite: Whether to replace an existing file: any, none, or None for as the policy has it.
        encoding: The codec to write in, or None for that of the file, or UTF-8.
        newline: The line ends: "keep" CRLF where the file was CRLF throughout, "given" for those of the
            content, or the one that all shall be.
        preview: Whether to write nothing.
    """

    overwrite: bool | None = None
    encoding: str | None = None
    newline: LineEnds = "keep"
    preview: bool = False

    def __post_init__(self) -> None:
        if self.newline not in get_args(LineEnds):
            raise InvalidArgumentError(
                Message(
                    ParameterName("newline"),
                    f" must be one of {', '.join(map(repr, get_args(LineEnds)))}, not {self.newline!r}.",
                ),
                details={"parameter": "newline"},
            )


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


def write_file(
    root: Root, shown: ReadTracker, limits: Limits, path: str, content: str, terms: WriteTerms | None = None
) -> WriteResult:
    """Create a file, or replace the whole content of one that has been seen.

    Args:
        root: The confined root; its policy says what may be replaced.
        shown: What this workspace has shown; the new content counts as seen.
        limits: For the size of the file.
        path: The file.
        content: The whole text.
        terms: On what terms it is written.

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
            Message(ParameterName("content"), " holds a NUL character, which would make the file binary."),
            hint="Pass it without \\u0000.",
            details={"parameter": "content"},
        )
    if len(content) > limits.file_bytes:
        raise _too_large(path, limits.file_bytes)
    terms = terms or WriteTerms()
    overwrite: Overwrite = root.policy.overwrite
    if terms.overwrite is not None:
        overwrite = "always" if terms.overwrite else "never"
    changed, written, diff = _replace(root, shown, limits, path, content, terms, overwrite)
    if not terms.preview:
        shown.record_write(changed.real_path, changed.revision, written.text)
    unchanged = changed.before == changed.after
    notes = (*changed.notes, *written.notes)
    if unchanged:
        notes = (*notes, "the file held this content already; nothing was written")
    size = f"{plural(count_lines(written.text), 'line')}, {plural(len(changed.after), 'byte')}"
    done = "Created" if changed.created else "Unchanged:" if unchanged else "Replaced"
    if terms.preview:
        done = f"Preview, nothing was written. {done}"
    # Of a new file the model knows every line: it has just sent them.
    told = "" if changed.created else diff
    head = f"{done} {quote(changed.path)} ({size})."
    made = WriteResult(
        path=changed.path,
        created=changed.created,
        bytes_written=len(changed.after),
        diff=diff,
        revision=changed.revision,
        notes=notes,
    )
    return with_diff(made, limits, told, lambda lines: [head, *notes, *lines])


def fitted(content: str, data: bytes | None, path: str, terms: WriteTerms) -> Content:
    """Fit a content to the file that it replaces: its encoding, byte order mark, and CRLF throughout.

    Args:
        content: The whole text as given.
        data: The bytes of the file, or None where there is none.
        path: The path as shown, for messages.
        terms: What stands above that.

    Returns:
        What the file is to hold.

    Raises:
        EncodingError: `encoding`: the encoding cannot hold the content, or is unknown.
        InvalidArgumentError: `invalid_argument`: no codec has the name given.
    """
    notes: list[str] = []
    before = None if data is None else _text_of(data, terms.encoding, notes)
    kept = _kept(data, terms.encoding, exact=terms.newline == "given")
    if kept.encoding == UNKNOWN_8BIT and not content.isascii():
        raise EncodingError(
            f"{quote(path)} is in an unknown 8-bit encoding, so only ASCII text can be written to it.",
            hint=Joined(
                " ",
                Message("Call ", ToolName("edit"), " to change the ASCII parts of it and keep the rest."),
                "Another path can be written to.",
            ),
            details={"path": path, "encoding": UNKNOWN_8BIT},
        )
    text = content.removeprefix("\ufeff") if kept.bom else content
    if terms.encoding is None and kept.bom:
        notes.append(f"the byte order mark of the file was kept ({kept.encoding})")
    elif terms.encoding is None and kept.encoding != "utf-8":
        notes.append(f"the encoding of the file was kept ({kept.encoding})")
    text = _with_line_ends(text, before, terms.newline, notes)
    return Content(kept.bom + kept.encode(text), text, before, tuple(notes))


def _text_of(data: bytes, encoding: str | None, notes: list[str]) -> str:
    """Return the text that is replaced, for the diff and its line ends."""
    try:
        return (decode(data) if encoding is None else decode_as(data, encoding)).text
    except EncodingError:
        notes.append(f"the file was in another encoding and is {codec_name(encoding or 'utf-8')} now")
        return decode(data).text if b"\x00" not in data else ""
    except BinaryError:
        notes.append("the file was binary and is text now")
        return ""


def _kept(data: bytes | None, encoding: str | None, *, exact: bool) -> Decoded:
    """Return the encoding to write, and the mark of the file; with `exact` the codec's own."""
    if encoding is None:
        try:
            return Decoded("", "utf-8", b"") if data is None else decode(data)
        except BinaryError:
            return Decoded("", "utf-8", b"")
    name = codec_name(encoding)
    bom, marked = bom_of(data or b"")
    if marked != name or exact:
        bom = _MARKING.get(codecs.lookup(encoding).name, b"")
    return Decoded("", name, bom)


def _with_line_ends(text: str, before: str | None, newline: LineEnds, notes: list[str]) -> str:
    if newline == "keep" and before is not None and newline_of(before) == "\r\n":
        if newline_of(text) not in {"\n", "mixed"}:
            return text
        notes.append("the line ends of the file were kept: CRLF")
        return text.replace("\r\n", "\n").replace("\n", "\r\n")
    old, new = newline_of(before or ""), newline_of(text)
    if newline == "given" and old and new and old != new:
        given, had = _LINE_END_NAMES[new], _LINE_END_NAMES[old]
        notes.append(f"the line ends are those given, {given}; the file had {had}")
    if newline in {"keep", "given"}:
        return text
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\n", newline)


def _too_large(path: str, limit: int) -> TooLargeError:
    return TooLargeError(
        f"The content for {quote(path)} is over the limit of {limit} bytes.",
        hint="Write it in smaller files.",
        details={"path": path, "limit": limit},
    )


def _replace(
    root: Root,
    shown: ReadTracker,
    limits: Limits,
    path: str,
    content: str,
    terms: WriteTerms,
    overwrite: Overwrite,
) -> tuple[Changed, Content, str]:
    """Fit the content to the file and replace it; again when another program writes in between."""
    for _ in range(ATTEMPTS):
        with suppress(ConcurrentChange), root.open_for_update(path, max_bytes=limits.file_bytes) as update:
            current = update.current
            fit = fitted(content, current.data, current.path, terms)
            if len(fit.data) > limits.file_bytes:
                raise _too_large(current.path, limits.file_bytes)
            if current.data is not None and current.data != fit.data:
                check_overwrite(current, shown, overwrite, limits)
            call_context.check()
            diff = unified_diff(fit.before, fit.text, current.path)
            call_context.check()
            return update.replace(fit.data, preview=terms.preview), fit, diff
    raise kept_changing(path)
