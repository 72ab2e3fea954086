"""`read`: one page of a file."""

import os
from dataclasses import replace
from typing import Any, Literal, NamedTuple

from agentfs.disk import OpenFile, Root, quote, revision_of, revision_of_stat
from agentfs.disk.failures import of_system
from agentfs.errors import BinaryError, InvalidArgumentError, PastEndError, StaleError
from agentfs.limits import Limits
from agentfs.reading import stream
from agentfs.reading.page import Page, Stretch, page_of, stretch_of
from agentfs.results import Newline, NextCall, ReadResult
from agentfs.shown import Shown
from agentfs.text import (
    HEAD,
    UNKNOWN_8BIT,
    Step,
    continuation,
    count_lines,
    decode,
    fitted,
    footer,
    is_binary,
    newline_of,
)

Truncated = Literal["lines", "bytes", "tokens", "line"]
_MOST_NAMED = 5
_NO_IDS = "no line ids: the file is too large to be remembered"


class _File(NamedTuple):
    """What is known of a text file before a page of it is chosen."""

    path: str
    revision: str
    size: int
    total: int
    encoding: str
    newline: Newline | None
    bom: bytes


class _Asked(NamedTuple):
    """The page that was asked for."""

    offset: int
    limit: int | None
    line_ids: bool = False

    def first(self, path: str, total: int) -> int:
        """Return the number of the first line, 0 in an empty file."""
        if self.offset < 0:
            return max(total + self.offset + 1, min(total, 1))
        if self.offset <= total or (self.offset == 1 and total == 0):
            return min(self.offset, total)
        lines = f"{total} line{'s' if total != 1 else ''}"
        hint = f"Pass an offset from 1 to {total}, or a negative one to count from the end."
        raise PastEndError(
            f"{quote(path)} has {lines}; offset {self.offset} is past its end.",
            hint=hint if total else "It is empty: there is nothing to read.",
            details={"offset": self.offset, "total_lines": total},
        )


def read_file(
    root: Root,
    shown: Shown,
    limits: Limits,
    path: str,
    offset: int = 1,
    limit: int | None = None,
    *,
    line_ids: bool = False,
) -> ReadResult:
    """Read one page of a file.

    Args:
        root: The door to the disk.
        shown: Where it is remembered what was shown.
        limits: What bounds the page; a `limit` that is given stands in for `read_lines`.
        path: The file.
        offset: The first line, from 1; a negative one counts from the end.
        limit: How many lines at most.
        line_ids: Whether to give each line an id, for `edit_lines`.

    Returns:
        The page; a binary file is told of as such and not shown.

    Raises:
        AgentFSError: `not_found` with the nearest names, `not_a_file`, `past_end` with the number of lines,
            `invalid_argument` for an offset of 0 or a limit below 1, or what the path rules refuse.
    """
    if type(offset) is not int or offset == 0:
        raise _wrong("offset", "a line number from 1, or a negative number to count from the end", offset)
    if limit is not None and (type(limit) is not int or limit < 1):
        raise _wrong("limit", "a number of lines from 1", limit)
    asked = _Asked(offset, limit, line_ids)
    with root.open_file(path) as file:
        if file.stat.st_size <= limits.file_bytes:
            data = file.read(limits.file_bytes + 1)
            if len(data) <= limits.file_bytes:
                return _read_held(file, data, shown, limits, asked)
        try:
            return _read_streamed(file, shown, limits, asked)
        except OSError as error:
            raise of_system(error, path) from None


def _wrong(name: str, wanted: str, value: object) -> InvalidArgumentError:
    details = {"argument": name, "value": repr(value)}
    return InvalidArgumentError(
        f"`{name}` must be {wanted}, not {value!r}.",
        hint="Leave it out to read from the start as far as fits.",
        details=details,
    )


def _read_held(file: OpenFile, data: bytes, shown: Shown, limits: Limits, asked: _Asked) -> ReadResult:
    revision = revision_of(data)
    if is_binary(data):
        return _binary(file.path, len(data), revision)
    try:
        decoded = decode(data)
    except BinaryError:  # a byte order mark that lies
        return _binary(file.path, len(data), revision)
    text = decoded.text
    total = count_lines(text)
    known = _File(file.path, revision, len(data), total, decoded.encoding, newline_of(text), decoded.bom)
    first = asked.first(file.path, total)
    if total == 0:
        shown.record_read(file.real_path, revision, text, 0, 0, 0)
        return _empty(known)
    count = min(asked.limit or limits.read_lines, total - first + 1)
    stretch = stretch_of(text, first, count)
    notes: tuple[str, ...] = ()
    if asked.line_ids:
        ids = shown.line_ids(file.real_path, revision, text)
        stretch = stretch._replace(ids=ids[first - 1 : first - 1 + count])
        notes = () if ids else (_NO_IDS,)
    page, result = _fitted(known, stretch, limits, asked, *notes)
    for start, last in _whole_ranges(page):
        shown.record_read(file.real_path, revision, text, start, last, total)
    shown_ids = tuple(stretch.ids[: len(page.shown)])
    return replace(result, line_ids=shown_ids) if shown_ids else result


def _read_streamed(file: OpenFile, shown: Shown, limits: Limits, asked: _Asked) -> ReadResult:
    head = file.read(HEAD)
    revision = revision_of_stat(file.stat)
    size = file.stat.st_size
    told = None if is_binary(head) else stream.survey(file.fd, head)
    if told is None:
        return _binary(file.path, size, revision)
    known = _File(file.path, revision, size, told.total, told.encoding, told.newline, told.bom)
    first = asked.first(file.path, told.total)
    if told.total == 0:
        return _empty(known)
    # A file that grows meanwhile gives no more lines than were counted.
    count = min(asked.limit or limits.read_lines, told.total - first + 1)
    stretch = stream.take(file.fd, told, first, count)
    if not stretch.parts:
        raise StaleError(f"{quote(file.path)} was made shorter while it was read.", hint="Read it again.")
    changed = revision_of_stat(os.fstat(file.fd)) != revision
    notes = ("the file changed while it was read",) if changed else ()
    if asked.line_ids:
        notes = (*notes, _NO_IDS)
    page, result = _fitted(known, stretch, limits, asked, *notes)
    for start, last in () if changed else _whole_ranges(page):
        shown.record_read(file.real_path, revision, None, start, last, told.total)
    return result


def _whole_ranges(page: Page) -> list[tuple[int, int]]:
    """Return the ranges between the lines that were cut: only these were shown in full."""
    ranges: list[tuple[int, int]] = []
    start = page.first
    for number in (*page.cut, page.last + 1):
        if number > start:
            ranges.append((start, number - 1))
        start = number + 1
    return ranges


def _fitted(
    known: _File, stretch: Stretch, limits: Limits, asked: _Asked, *notes: str
) -> tuple[Page, ReadResult]:
    """Show as much as the budget of tokens holds too: fewer lines, then less of the only one."""
    page = page_of(stretch, limits)

    def lines(count: int) -> ReadResult:
        nonlocal page
        if count < len(page.shown) or page.first + count - 1 > page.last:
            page = page_of(stretch.head(count), limits)
        return _result(known, page, limits, asked, *notes, by_tokens=count < most)

    def characters(count: int) -> ReadResult:
        nonlocal page
        fewer = replace(limits, line_chars=count)
        page = page_of(stretch.head(1), fewer)
        return _result(known, page, fewer, asked, *notes, by_tokens=most > 1)

    most = len(page.shown)
    result = fitted(limits, Step(most, lines), Step(limits.line_chars, characters))
    if result.end_line != page.last:
        page = page_of(stretch.head(result.end_line - page.first + 1), limits)
    return page, result


def _result(
    known: _File, page: Page, limits: Limits, asked: _Asked, *notes: str, by_tokens: bool = False
) -> ReadResult:
    more = page.last < known.total
    truncated: Truncated | None = "line" if page.cut else None
    following: NextCall | None = None
    if more:
        if by_tokens:
            truncated = "tokens"
        elif len(page.shown) < (asked.limit or limits.read_lines):
            truncated = "bytes"
        elif asked.limit is None:
            truncated = "lines"
        arguments: dict[str, Any] = {"path": known.path, "offset": page.last + 1}
        if asked.limit is not None:
            arguments["limit"] = asked.limit
        following = {"name": "read", "arguments": arguments}
    below = footer(
        _range(page, known.total, _bounds(truncated, limits)),
        _cut(page, limits.line_chars),
        _encoding(known.encoding),
        *notes,
        continuation(following),
    )
    return ReadResult(
        path=known.path,
        kind="text",
        content=page.content,
        start_line=page.first,
        end_line=page.last,
        total_lines=known.total,
        total_bytes=known.size,
        revision=known.revision,
        truncated_by=truncated,
        encoding=known.encoding,
        newline=known.newline,
        bom=known.bom != b"",
        text="\n".join([*page.shown, below] if below else page.shown),
        next=following,
    )


def _empty(known: _File) -> ReadResult:
    return ReadResult(
        path=known.path,
        kind="text",
        content="",
        start_line=0,
        end_line=0,
        total_lines=0,
        total_bytes=known.size,
        revision=known.revision,
        encoding=known.encoding,
        bom=known.bom != b"",
        text=footer("empty file"),
    )


def _binary(path: str, size: int, revision: str) -> ReadResult:
    return ReadResult(
        path=path,
        kind="binary",
        content="",
        start_line=0,
        end_line=0,
        total_lines=0,
        total_exact=False,
        total_bytes=size,
        revision=revision,
        text=footer(f"{quote(path)} is a binary file of {size} bytes; its content is not shown"),
    )


def _bounds(truncated: Truncated | None, limits: Limits) -> str:
    if truncated == "bytes":
        return f"{limits.read_bytes} bytes"
    return f"{limits.output_tokens} tokens" if truncated == "tokens" else ""


def _range(page: Page, total: int, budget: str) -> str:
    if page.first == 1 and page.last == total:
        return ""
    lines = f"line {page.first}" if page.first == page.last else f"lines {page.first}-{page.last}"
    return f"{lines} of {total}" + (f", as many as {budget} hold" if budget else "")


def _cut(page: Page, limit: int) -> str:
    if not page.cut:
        return ""
    named = ", ".join(map(str, page.cut[:_MOST_NAMED]))
    others = f" and {len(page.cut) - _MOST_NAMED} more" if len(page.cut) > _MOST_NAMED else ""
    held = f"; the rest of line {page.first} is longer than a page can hold" if page.unheld else ""
    return f"cut after {limit} characters: line{'s' if len(page.cut) > 1 else ''} {named}{others}{held}"


def _encoding(encoding: str) -> str:
    if encoding == "utf-8":
        return ""
    if encoding == UNKNOWN_8BIT:
        return "not UTF-8: each byte above 7F is shown as the Latin-1 character of that number"
    return f"encoding {encoding}"
