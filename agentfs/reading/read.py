"""`read`: one page of any file."""

import re
from collections.abc import Sequence
from dataclasses import replace

from agentfs.base.advice import Advice, ParameterName
from agentfs.errors import BinaryError, DeadlineExceededError, InvalidArgumentError, StaleError
from agentfs.fs import OpenFile, quote
from agentfs.limits import Limits
from agentfs.reading.large_file import count_large_file, read_lines
from agentfs.reading.media import binary_result, read_media, read_notebook
from agentfs.reading.page import FileInfo, ReadOptions, max_lines, render_page, text_page
from agentfs.results import ReadResult
from agentfs.shown.outputs import NO_LINE_IDS
from agentfs.shown.read_tracker import ReadTracker
from agentfs.shown.workspace_context import Context
from agentfs.text.decoding import HEAD, Decoded, decode, decode_in
from agentfs.text.lines import count_lines
from agentfs.text.notebook import NotANotebookError, Notebook, is_named_notebook

_COUNTING_SHARE = 0.5  # the share of a call's time for counting lines; the rest is for the page
# A path with lines after it, as in `a.py:10-14` or `a.py#L10-L14`.
_RANGE = re.compile(
    r"(?P<path>.+?)(?::|#L)(?P<first>[1-9][0-9]{0,9})(?:[-:,]L?(?P<last>[0-9]{1,10}))?", re.DOTALL
)
_NO_IDS = "no line ids: the file is too large to keep them"


def read_path(context: Context, options: ReadOptions) -> ReadResult:
    """Return one page of a file or of a stored result."""
    root, path = context.root, options.path
    if (ranged := _RANGE.fullmatch(path)) and not root.exists(path) and root.exists(ranged["path"]):
        path, first, last = ranged["path"], int(ranged["first"]), ranged["last"]
        if options.offset == 1 and options.limit is None:
            options = replace(options, offset=first, limit=max(int(last) - first + 1, 1) if last else None)
    return read_file(context, path, options)


def read_file(context: Context, name: str, options: ReadOptions) -> ReadResult:
    """Return one page of a file or of a kept text, and record what was read of a file.

    A binary file is described, not shown.
    """
    root, tracker, limits, outputs = context
    text, path = outputs.resolve(name, root)
    if path is None:
        return read_text(name, text, limits, options)
    with root.open_file(path) as file:
        head = file.read_at(0, HEAD)
        if (result := read_media(file, head, limits, options)) is not None:
            _record(tracker, file, result, None, options.column)
            return result
        notes = root.link_notes(file.path, file.real_path)
        try:
            if file.stat.st_size <= limits.file_bytes:
                data = head if len(head) < HEAD else file.read(limits.file_bytes + 1)
                if len(data) <= limits.file_bytes:
                    return _read_loaded(context, file, data, options, notes)
            return _read_large(context, file, head, options, notes)
        except BinaryError:  # the first bytes look like a byte order mark, but are not one
            return binary_result(file, head, limits)


def read_text(name: str, text: str, limits: Limits, options: ReadOptions) -> ReadResult:
    """Return one page of a text that is not a file."""
    if options.encoding is not None:
        raise InvalidArgumentError(
            Advice(
                ParameterName("encoding", quoted=True), f" does not apply to {quote(name)}, which is text."
            ),
            hint="Leave it out.",
            details={"parameter": "encoding"},
        )
    info = FileInfo.of(name, text.encode("utf-8", "surrogatepass"), Decoded(text, "utf-8", b""))
    return text_page(info, text, limits, options, [NO_LINE_IDS] if options.line_ids else ())


def _record(
    tracker: ReadTracker, file: OpenFile, result: ReadResult, text: str | None, column: int = 1
) -> None:
    """Record that a page was read. Its first line counts only from the first character on."""
    first = result.start_line + (column > 1)
    is_whole = first <= 1 and result.end_line == result.total_lines
    # The lines of a notebook's JSON are not those of its text, so only all of them count.
    as_json = result.kind == "text" and is_named_notebook(file.path) and not is_whole
    if as_json or not (result.end_line or result.images or result.kind == "text"):
        return
    tracker.record_read(
        file.real_path, result.revision, text, first, result.end_line, max(result.total_lines, 0)
    )


def _read_loaded(
    context: Context, file: OpenFile, data: bytes, options: ReadOptions, notes: list[str]
) -> ReadResult:
    _, tracker, limits, _ = context
    decoded = decode(data) if options.encoding is None else decode_in(data, options.encoding)
    info, text, book = FileInfo.of(file.path, data, decoded), decoded.text, None
    if is_named_notebook(file.path) and not (options.raw or options.encoding):
        try:
            book = Notebook(text)
        except NotANotebookError as error:
            notes.append(f"shown as text; not a notebook: {error}")
        else:
            text = book.text
            info = info._replace(kind="notebook", total=count_lines(text), newline="\n")
    ids: Sequence[str] = ()
    if options.line_ids and options.raw and is_named_notebook(file.path):
        notes.append("no line ids: they are those of the notebook's text")
    elif options.line_ids and options.first(file.path, info.total):
        ids = tracker.line_ids(file.real_path, info.revision, text, to_model=True)
        notes = notes if ids else [*notes, _NO_IDS]
    if book is not None:
        result = read_notebook(info, book, limits, options, notes, ids)
    else:
        result = text_page(info, text, limits, options, notes, ids)
    _record(tracker, file, result, text, options.column)
    return result


def _read_large(
    context: Context, file: OpenFile, head: bytes, options: ReadOptions, notes: list[str]
) -> ReadResult:
    _, tracker, limits, _ = context
    seconds = limits.timeout * _COUNTING_SHARE
    counted = count_large_file(file, head, options.encoding, seconds)
    if not counted.exact:
        if not 0 < options.offset <= counted.total:
            raise DeadlineExceededError(
                f"The lines of {quote(file.path)} could not all be counted in {seconds:g} seconds.",
                hint=Advice(
                    "Pass an ", ParameterName("offset"), f" up to {counted.total}, the last counted line."
                ),
                details={"path": file.path, "total_lines": counted.total},
            )
        notes = [*notes, f"counting lines stopped after {seconds:g} s"]
    info = counted._replace(size=max(counted.size, file.stat.st_size))
    first = options.first(file.path, counted.total)
    if counted.total == 0:
        return info.empty()
    count = min(max_lines(options.limit, limits), counted.total - first + 1)
    try:
        lines = read_lines(file, counted, first, count, options.column)
    except UnicodeError:
        raise StaleError(
            f"{quote(file.path)} was changed while it was read.", hint="Read it again."
        ) from None
    if not lines.bodies:
        raise StaleError(f"{quote(file.path)} became shorter while it was read.", hint="Read it again.")
    changed = file.changed()
    if changed:
        notes = [*notes, "the file changed while it was read"]
    if options.line_ids:
        notes = [*notes, _NO_IDS]
    result = render_page(info, lines, limits, options, notes)
    if not changed:
        _record(tracker, file, result, None, options.column)
    return result
