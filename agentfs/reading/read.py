"""`read`: one page of any file."""

import re
from collections.abc import Sequence
from dataclasses import replace

from agentfs import search
from agentfs.base.advice import Advice, ParameterName
from agentfs.errors import (
    BinaryError,
    DeadlineExceededError,
    EncodingError,
    InvalidArgumentError,
    NotAFileError,
    StaleError,
)
from agentfs.fs import OpenFile, quote, revision_of, revision_of_stat
from agentfs.limits import Limits
from agentfs.reading.large_file import count_large_file, read_lines
from agentfs.reading.media import Media, binary_result, read_media
from agentfs.reading.page import FileInfo, ReadOptions, empty_result, max_lines, render_page, text_page
from agentfs.results import ReadResult
from agentfs.shown.outputs import NO_LINE_IDS
from agentfs.shown.read_tracker import ReadTracker
from agentfs.shown.workspace_context import Context
from agentfs.text import HEAD, Decoded, decode, decode_in

_COUNTING_SHARE = 0.5  # the share of a call's time for counting lines; the rest is for the page
# A path with lines after it, as in `a.py:10-14` or `a.py#L10-L14`.
_RANGE = re.compile(
    r"(?P<path>.+?)(?::|#L)(?P<first>[1-9][0-9]{0,9})(?:[-:,]L?(?P<last>[0-9]{1,10}))?", re.DOTALL
)
# Files that a program writes. Few of their lines are ever needed.
_LOCKFILE = re.compile(
    r".*[-.]lock(?:\.json|\.ya?ml|\.hcl|file)?|npm-shrinkwrap\.json|go\.sum", re.IGNORECASE
)
_LOCKFILE_LINES = 200
_UNITS = {"notebook": "cell", "pdf": "page", "binary": "row"}
_NO_IDS = "no line ids: the file is too large to keep them"


def read_path(context: Context, request: ReadOptions) -> ReadResult:
    """Return one page of a file or of a stored result, or the list of a directory."""
    root, outputs, path = context.root, context.outputs, request.path
    if (ranged := _RANGE.fullmatch(path)) and not root.exists(path) and root.exists(ranged["path"]):
        path, first, last = ranged["path"], int(ranged["first"]), ranged["last"]
        if request.offset == 1 and request.limit is None:
            request = replace(request, offset=first, limit=max(int(last) - first + 1, 1) if last else None)
    try:
        return read_file(context, path, request)
    except NotAFileError:
        path = outputs.resolve(path, root).path or path
        options = search.options.ListOptions(path, limit=request.limit, offset=max(request.offset - 1, 0))
        found = search.listing.list_directory(_without_history(context), options)
        return ReadResult(
            path=path,
            kind="directory",
            total_lines=found.total,
            truncated_by="lines" if found.truncated and request.limit is None else None,
            text=found.text,
            notes=found.notes,
            next=found.next,
        )


def read_file(context: Context, name: str, request: ReadOptions) -> ReadResult:
    """Return one page of a file or of a kept text, and record what was read of a file.

    A binary file is described, not shown.
    """
    root, tracker, limits, outputs = context
    if (kept := outputs.get(name, root)) is not None:
        if kept.path is None:
            return read_text(name, kept.text, limits, request)
        name = kept.path
    with root.open_file(name) as file:
        head = file.read_at(0, HEAD)
        known = None if request.encoding is not None else _named_encoding(file, head, tracker, limits)
        media = Media() if known is not None else read_media(file, head, limits, request)
        if media.result is not None:
            _record(tracker, file, media.result, media.text, request.column)
            return media.result
        notes = [*root.link_notes(file.path, file.real_path), *filter(None, [media.note])]
        if file.stat.st_size <= limits.file_bytes:
            data = head if len(head) < HEAD else file.read(limits.file_bytes + 1)
            if len(data) <= limits.file_bytes:
                return _read_loaded(context, file, data, request, notes, known)
        return _read_large(context, file, head, request, notes, known)


def _named_encoding(file: OpenFile, head: bytes, tracker: ReadTracker, limits: Limits) -> str | None:
    """Return the encoding that an earlier read has named for a file, or None."""
    named = tracker.encodings().get(file.real_path)
    if named is None:
        return None
    if file.stat.st_size > limits.file_bytes:
        data, revision = head[: head.rfind(b"\n") + 1] or head, revision_of_stat(file.stat)
    else:
        data = file.read(limits.file_bytes)
        revision = revision_of(data)
    return named.name if named.applies_to(data, revision) else None


def read_text(name: str, text: str, limits: Limits, request: ReadOptions) -> ReadResult:
    """Return one page of a text that is not a file."""
    if request.encoding is not None:
        raise InvalidArgumentError(
            Advice(
                ParameterName("encoding", quoted=True), f" does not apply to {quote(name)}, which is text."
            ),
            hint="Leave it out.",
            details={"parameter": "encoding"},
        )
    info = FileInfo.of(name, text.encode("utf-8", "surrogatepass"), Decoded(text, "utf-8", b""))
    return text_page(info, text, limits, request, [NO_LINE_IDS] if request.line_ids else ())


def _without_history(context: Context) -> Context:
    """Return a context in which a skip report does not count as one that `ls` or `glob` has shown."""
    return context._replace(tracker=ReadTracker())


def _record(
    tracker: ReadTracker, file: OpenFile, result: ReadResult, text: str | None, column: int = 1
) -> None:
    """Record that a page was read: what lies between the request and the `next` call, or an image."""
    is_text = result.kind == "text"
    if column > 1 if is_text else not (result.end_line or result.images):
        return
    stop = 0
    if result.next is not None and result.next["arguments"]["offset"] == result.end_line:
        stop = result.next["arguments"]["column"] - 1
    unit = _UNITS.get(result.kind, "line")
    lines = (result.start_line, result.end_line, result.total_lines)
    tracker.record_read(file.real_path, result.revision, text, *lines, unit, part=(column, stop))


def _read_loaded(
    context: Context, file: OpenFile, data: bytes, request: ReadOptions, notes: list[str], known: str | None
) -> ReadResult:
    _, tracker, limits, _ = context
    named = request.encoding or known
    try:
        decoded = decode(data) if named is None else decode_in(data, named)
    except BinaryError:  # the first bytes look like a byte order mark, but are not one
        return binary_result(file, data[:HEAD], limits)
    info, text = FileInfo.of(file.path, data, decoded), decoded.text
    bare = request.offset == 1 and request.limit is None and request.line_overhead is None
    if bare and _LOCKFILE.fullmatch(file.path.rpartition("/")[2]):
        info = info._replace(usual=min(_LOCKFILE_LINES, limits.read_lines))
    ids: Sequence[str] = ()
    if request.line_ids and request.first(file.path, info.total):
        ids = tracker.line_ids(file.real_path, info.revision, text, to_model=True)
        notes = notes if ids else [*notes, _NO_IDS]
    result = text_page(info, text, limits, request, notes, ids)
    if request.column > 1 and info.total:
        return result
    _record(tracker, file, result, text)
    if named is not None:
        tracker.name_encoding(file.real_path, info.revision, decoded.encoding, data)
    return result


def _read_large(
    context: Context, file: OpenFile, head: bytes, request: ReadOptions, notes: list[str], known: str | None
) -> ReadResult:
    _, tracker, limits, _ = context
    seconds = limits.timeout * _COUNTING_SHARE
    named = request.encoding or known
    counted = count_large_file(file, head, named, seconds)
    if counted is None and named is None:
        return binary_result(file, head, limits)
    if counted is None:
        raise EncodingError(f"{quote(file.path)} is not text in {named}.")
    if not counted.exact:
        if not 0 < request.offset <= counted.total:
            raise DeadlineExceededError(
                f"The lines of {quote(file.path)} could not all be counted in {seconds:g} seconds.",
                hint=Advice(
                    "Pass an ", ParameterName("offset"), f" up to {counted.total}, the last counted line."
                ),
                details={"path": file.path, "total_lines": counted.total},
            )
        notes = [*notes, f"counting lines stopped after {seconds:g} s"]
    info = counted._replace(size=max(counted.size, file.stat.st_size))
    first = request.first(file.path, counted.total)
    if counted.total == 0:
        return empty_result(info, ["empty file"])
    count = min(max_lines(request.limit, limits), counted.total - first + 1)
    try:
        lines = read_lines(file, counted, first, count, request.column)
    except UnicodeError:
        raise StaleError(
            f"{quote(file.path)} was changed while it was read.", hint="Read it again."
        ) from None
    if not lines.bodies:
        raise StaleError(f"{quote(file.path)} became shorter while it was read.", hint="Read it again.")
    changed = file.changed()
    if changed:
        notes = [*notes, "the file changed while it was read"]
    if request.line_ids:
        notes = [*notes, _NO_IDS]
    result = render_page(info, lines, limits, request, notes)
    if request.column == 1 and not changed:
        _record(tracker, file, result, None)
        if named is not None:
            tracker.name_encoding(file.real_path, info.revision, info.encoding or "", head)
    return result
