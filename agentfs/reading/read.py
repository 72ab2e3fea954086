"""`read`: one page of a file, whatever it holds."""

from dataclasses import replace

from agentfs.cache import FileCache
from agentfs.errors import BinaryError, DeadlineExceededError, EncodingError, InvalidArgumentError, StaleError
from agentfs.fs import OpenFile, Root, link_note, quote, revision_of, revision_of_stat
from agentfs.limits import Limits
from agentfs.messages import Message, ParameterName
from agentfs.read_tracker import ReadTracker
from agentfs.reading import stream
from agentfs.reading.line_index import LineIndex, build_index
from agentfs.reading.media import binary_answer, media_of
from agentfs.reading.page import LineSlice, from_column, stretch_of
from agentfs.reading.repeat_reads import shorten_repeat
from agentfs.reading.request import ReadRequest, asked_of
from agentfs.reading.result import TextInfo, empty_answer, page_answer, whole_ranges
from agentfs.results import ReadResult
from agentfs.text import HEAD, count_lines, decode, decode_in, newline_of

_COUNTING = 0.5  # of the time of a call, for the lines of a file that goes on; the rest is for the page
_NO_IDS = "no line ids: the file is too large to be remembered"


def read_file(
    root: Root,
    shown: ReadTracker,
    limits: Limits,
    path: str,
    offset: int = 1,
    limit: int | None = None,
    *,
    encoding: str | None = None,
    raw: bool = False,
    column: int = 1,
    line_ids: bool = False,
    room: int | None = None,
    indexes: FileCache[LineIndex | None] | None = None,
) -> ReadResult:
    """Read one page of a file.

    Args:
        root: The confined root.
        shown: Where it is remembered what was shown.
        limits: What bounds the page; a `limit` that is given stands in for `read_lines`.
        path: The file.
        offset: The first line, from 1; a negative one counts from the end.
        limit: How many lines at most.
        encoding: The encoding of the text, or None to tell it from the bytes.
        raw: Whether to show a notebook as its JSON, and what is no text in hexadecimal.
        column: The first character of each line to show.
        line_ids: Whether to give each line an id, for `edit_lines`.
        room: Bytes that the caller needs beside each line and its id, if it lays them out by itself; the
            byte budget then counts the lines as they are.
        indexes: Where the places of lines in large files are remembered.

    Returns:
        The page; a binary file is told of as such and not shown.

    Raises:
        AgentFSError: `not_found` with the nearest names, `not_a_file`, `past_end` with the number of lines,
            `invalid_argument` for an offset of 0 or a limit below 1, `encoding` for text that is not in the
            encoding that was named, `stale` for a file that shrinks meanwhile, `timeout` for an offset so far
            on that no count comes there, or what the path rules refuse.
    """
    asked = asked_of(offset, limit, encoding, raw=raw, column=column)._replace(line_ids=line_ids, room=room)
    with root.open_file(path) as file:
        head = file.read_at(0, HEAD)
        answer, note = media_of(file, head, limits, asked)
        if answer is not None:
            return _told(shown, file, answer)
        notes = [*link_note(file.path, root.display_path(file.real_path)), *filter(None, [note])]
        if file.stat.st_size <= limits.file_bytes:
            data = file.read(limits.file_bytes + 1)
            if len(data) <= limits.file_bytes:
                economy = root.policy.reread == "diff"
                return _read_held(file, data, shown, limits, asked, notes, economy=economy)
        return _read_streamed(file, head, shown, limits, asked, indexes or FileCache(), notes)


def read_kept(
    name: str,
    text: str,
    limits: Limits,
    offset: int,
    limit: int | None,
    *,
    encoding: str | None = None,
    raw: bool = False,
    column: int = 1,
    line_ids: bool = False,
    room: int | None = None,
) -> ReadResult:
    """Read one page of a text that is no file.

    Args:
        name: What it is called.
        text: The text.
        limits: What bounds the page.
        offset: The first line, from 1; a negative one counts from the end.
        limit: How many lines at most.
        encoding: None: the text is not decoded from bytes.
        raw: Of no effect: the text is shown as it is.
        column: The first character of each line to show.
        line_ids: Whether ids are asked for; there are none, which is noted.
        room: As `read_file` has it.

    Returns:
        The page.

    Raises:
        AgentFSError: `past_end`, `invalid_argument`.
    """
    if encoding is not None:
        raise InvalidArgumentError(
            Message(
                ParameterName("encoding", quoted=True), f" does not apply to {quote(name)}, which is text."
            ),
            hint="Leave it out.",
            details={"argument": "encoding"},
        )
    asked = asked_of(offset, limit, None, raw=raw, column=column)._replace(line_ids=line_ids, room=room)
    data = text.encode("utf-8", "surrogatepass")
    total = count_lines(text)
    known = TextInfo(name, revision_of(data), len(data), total, "utf-8", newline_of(text), b"")
    first = asked.first(name, total)
    if not total:
        return empty_answer(known)
    notes = ["no line ids: this is no file, and cannot be edited"] if line_ids else []
    return page_answer(known, _slice(text, first, total, limits, asked), limits, asked, notes)[1]


def _slice(text: str, first: int, total: int, limits: Limits, asked: ReadRequest) -> LineSlice:
    """Return the lines of a text that a read asks for."""
    count = min(_most_lines(asked.limit, limits), total - first + 1)
    stretch = stretch_of(text, first, count)._replace(room=asked.room)
    if asked.column == 1:
        return stretch
    cut = from_column(stretch.parts, asked.column, stretch.end, ended=stretch.ended)
    return stretch._replace(parts=cut)


def _most_lines(limit: int | None, limits: Limits) -> int:
    """Return how many lines are looked at: each takes at least a byte of those that a page may show."""
    return min(limit or limits.read_lines, limits.read_bytes + 1)


def _told(shown: ReadTracker, file: OpenFile, answer: ReadResult) -> ReadResult:
    """Remember what was shown of a file that is no text: cells, pages, rows, or the image."""
    if answer.end_line or answer.images:
        lines = (answer.start_line, answer.end_line, answer.total_lines)
        shown.record_read(file.real_path, answer.revision, None, *lines)
    return answer


def _read_held(
    file: OpenFile,
    data: bytes,
    shown: ReadTracker,
    limits: Limits,
    asked: ReadRequest,
    notes: list[str],
    *,
    economy: bool,
) -> ReadResult:
    revision = revision_of(data)
    try:
        decoded = decode(data) if asked.encoding is None else decode_in(data, asked.encoding)
    except BinaryError:  # a byte order mark that lies
        return _told(shown, file, binary_answer(file, data[:HEAD], limits))
    text = decoded.text
    total = count_lines(text)
    known = TextInfo(file.path, revision, len(data), total, decoded.encoding, newline_of(text), decoded.bom)
    first = asked.first(file.path, total)
    if total == 0:
        shown.record_read(file.real_path, revision, text, 0, 0, 0)
        return empty_answer(known)
    stretch = _slice(text, first, total, limits, asked)
    if asked.line_ids:
        ids = shown.line_ids(file.real_path, revision, text, to_model=True)
        stretch = stretch._replace(ids=ids[first - 1 : first - 1 + len(stretch.parts)])
        notes = notes if ids else [*notes, _NO_IDS]
    page, result = page_answer(known, stretch, limits, asked, notes)
    if economy:
        result = shorten_repeat(shown, file.real_path, result, asked)
    for start, last in whole_ranges(page) if asked.column == 1 else ():
        shown.record_read(file.real_path, revision, text, start, last, total)
    shown_ids = tuple(stretch.ids[: len(page.shown)])
    return replace(result, line_ids=shown_ids) if shown_ids else result


def _read_streamed(
    file: OpenFile,
    head: bytes,
    shown: ReadTracker,
    limits: Limits,
    asked: ReadRequest,
    indexes: FileCache[LineIndex | None],
    notes: list[str],
) -> ReadResult:
    revision = revision_of_stat(file.stat)
    key = (file.real_path, asked.encoding)
    seconds = limits.timeout * _COUNTING
    index = indexes.get(key, revision, lambda: build_index(file, head, asked.encoding, seconds))
    if index is None and asked.encoding is None:
        return _told(shown, file, binary_answer(file, head, limits))
    if index is None:
        raise EncodingError(f"{quote(file.path)} is not text in {asked.encoding}.")
    known = TextInfo(
        file.path,
        revision,
        max(index.size, file.stat.st_size),
        index.total,
        index.encoding,
        index.newline,
        index.bom,
        exact=index.exact,
    )
    if not index.exact:
        indexes.drop(key)  # another time may get further
        if not 0 < asked.offset <= index.total:
            raise _too_long(file, index.total, seconds)
        notes = [*notes, f"no more was counted in {seconds:g} s, and the file goes on"]
    first = asked.first(file.path, index.total)
    if index.total == 0:
        return empty_answer(known)
    count = min(_most_lines(asked.limit, limits), index.total - first + 1)
    stretch = _taken(file, index, first, count, limits, asked)._replace(room=asked.room)
    changed = file.changed()
    if changed:
        indexes.drop(key)
        notes = [*notes, "the file changed while it was read"]
    if asked.line_ids:
        notes = [*notes, _NO_IDS]
    page, result = page_answer(known, stretch, limits, asked, notes)
    for start, last in whole_ranges(page) if asked.column == 1 and not changed else ():
        shown.record_read(file.real_path, revision, None, start, last, index.total)
    return result


def _too_long(file: OpenFile, total: int, seconds: float) -> DeadlineExceededError:
    return DeadlineExceededError(
        f"{quote(file.path)} could not be counted to its end in {seconds:g} seconds.",
        hint=Message("Pass an ", ParameterName("offset"), f" from 1 to {total}: so far it was counted."),
        details={"path": file.path, "total_lines": total},
    )


def _taken(
    file: OpenFile, index: LineIndex, first: int, count: int, limits: Limits, asked: ReadRequest
) -> LineSlice:
    try:
        stretch = stream.take(file, index, first, count, limits, asked.column)
    except UnicodeError:
        raise StaleError(
            f"{quote(file.path)} was changed while it was read.", hint="Read it again."
        ) from None
    if not stretch.parts:
        raise StaleError(f"{quote(file.path)} was made shorter while it was read.", hint="Read it again.")
    return stretch
