"""Render one page of a file: choose the lines that fit the budgets, and say how to continue.

A page shows lines of a text, or sections: cells of a notebook, pages of a PDF, rows of a hex view. What lies
before its `next` call was read.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any, ClassVar, Literal, NamedTuple

from agentfs import patterns, search
from agentfs.base.advice import Advice, FirstOf, Joined, NextCall, ParameterName, Retry, Style, Styled, call
from agentfs.errors import InvalidArgumentError, must_be, past_end
from agentfs.fs import quote, revision_of
from agentfs.limits import Limits
from agentfs.permissions import Effect
from agentfs.reading.slices import LineSlice, slice_lines
from agentfs.results import Newline, ReadResult
from agentfs.text import (
    UNKNOWN_8BIT,
    Decoded,
    Shrink,
    carriage_return_note,
    continuation,
    count_lines,
    cut_line,
    end_of,
    fitted,
    footer,
    line_ranges,
    line_start,
    newline_of,
    notes_of,
    number_lines,
    plural,
    visible_lines,
)

_MAX_IMAGES = 10
_UNKNOWN = "not UTF-8, and the encoding is not known: bytes above 7F are shown as Latin-1"
_SEARCHED_CHARS = 200  # of a line that a search looks for
_FULL = ", as many as one answer holds"
_Reason = Literal["bytes", "tokens", "time"]


@dataclass(frozen=True)
class ReadOptions:
    """The options of `Workspace.read`: its parameters, then those that only dialects need.

    Attributes:
        line_numbers: Number the lines. Without numbers, the footer goes above the text so that no line can be
            mistaken for it.
        line_overhead: Bytes that `Limits.read_bytes` counts for each line in addition to its text, for
            dialects that format the lines. None counts the text of the result.
    """

    method: ClassVar[str] = "read"
    effect: ClassVar[Effect] = "read"
    path: str
    offset: int = 1
    limit: int | None = None
    column: int = 1
    encoding: str | None = None
    raw: bool = False
    line_ids: bool = False
    line_numbers: bool = True
    line_overhead: int | None = None

    def first(self, path: str, total: int, noun: str = "line") -> int:
        """Return the number of the first line; 0 if the file has none.

        Args:
            path: The displayed path, for errors.
            total: The number of lines in the file.
            noun: The word for one line.

        Raises:
            InvalidArgumentError: `invalid_argument` for an argument that is out of range.
            PastEndError: `past_end` for an offset after the last line.
        """
        past = self.offset > max(total, 1)
        if self.offset == 0 or self.column < 1 or (self.limit is not None and self.limit < 1):
            raise self._out_of_range(past=past)
        if self.offset < 0:
            return max(total + self.offset + 1, min(total, 1))
        if not past:
            return min(self.offset, total)
        details: dict[str, Any] = {"path": path, f"total_{noun}s": total}
        also = ", or a negative one to count from the end"
        has = f"{quote(path)} has {plural(total, noun)}"
        raise past_end(has, self.offset, 1, total, also=also, **details)

    def _out_of_range(self, *, past: bool) -> InvalidArgumentError:
        wrong = {
            "offset": self.offset == 0 or past,
            "limit": self.limit is not None and self.limit < 1,
            "column": self.column < 1,
        }
        names = tuple(name for name in wrong if wrong[name])
        hint = Advice("To read as far as fits, ", Retry({}, names), ".")
        if self.offset == 0:
            offsets = "a line number from 1, or a negative number to count from the end"
            return must_be("offset", offsets, self.offset, hint)
        if wrong["limit"]:
            return must_be("limit", "a number of lines from 1", self.limit, hint)
        return must_be("column", "the number of a character from 1", self.column, hint)

    def next_call(self, path: str, offset: int, *, shown: int = 0, column: int = 1) -> NextCall:
        """Return the call that continues at a line. It asks for the rest of the request, or as much again."""
        optional: dict[str, Any] = {
            "limit": self.limit and (self.limit - shown or self.limit),
            "encoding": self.encoding,
            "raw": self.raw or None,
            "line_ids": self.line_ids or None,
            "column": column if column > 1 else None,
        }
        given = {name: value for name, value in optional.items() if value is not None}
        return {"name": "read", "arguments": {"path": path, "offset": offset, **given}}


class FileInfo(NamedTuple):
    """Facts about a file that are the same for each page.

    Attributes:
        path: The displayed path.
        revision: The revision of the content.
        size: Bytes in the file.
        total: The number of lines or sections; a lower bound unless `exact`.
        encoding: The codec of a text.
        newline: The line end of a text.
        bom: The byte order mark of a text.
        exact: True if `total` was counted to the end.
        kind: The kind of the result.
        noun: The word for one line or section.
        usual: The most lines or sections of a read without a limit; 0 for `Limits.read_lines`.
    """

    path: str
    revision: str
    size: int
    total: int
    encoding: str | None = None
    newline: Newline | None = None
    bom: bytes = b""
    exact: bool = True
    kind: Literal["text", "notebook", "pdf", "binary"] = "text"
    noun: str = "line"
    usual: int = 0

    @classmethod
    def of(cls, path: str, data: bytes, decoded: Decoded) -> "FileInfo":
        """Return the facts about a loaded text."""
        text, encoding, bom = decoded
        return cls(path, revision_of(data), len(data), count_lines(text), encoding, newline_of(text), bom)


class _Page(NamedTuple):
    """The lines of a page, their text for the model, and the indexes of the lines that were cut."""

    lines: LineSlice
    formatted: Sequence[str]
    cut: Sequence[int]


def max_lines(limit: int | None, limits: Limits) -> int:
    """Return how many lines a page can have at most; each line takes at least a byte."""
    return min(limit or limits.read_lines, limits.read_bytes + 1)


def render_page(
    info: FileInfo,
    lines: LineSlice,
    limits: Limits,
    request: ReadOptions,
    notes: Sequence[str] = (),
    *,
    late: bool = False,
) -> ReadResult:
    """Show as many lines as fit the budgets, or as much of the first line as fits.

    Args:
        info: The file.
        lines: The lines that the page may show.
        limits: The budgets.
        request: The arguments of the call.
        notes: More notes for the footer.
        late: True if the time of the call did not suffice for more lines.
    """
    whole = _fit_bytes(lines, limits, request)
    reason: _Reason = "time" if late and whole.lines.items == lines.items else "bytes"

    def fewer_lines(count: int) -> ReadResult:
        page = whole if count == len(whole.formatted) else _fit_bytes(lines.head(count), limits, request)
        cut = "tokens" if count < len(whole.formatted) else reason
        return _result(info, page, limits, request, notes, cut)

    def fewer_characters(count: int) -> ReadResult:
        narrow = replace(limits, line_chars=count)
        page = _fit_bytes(lines.head(1), narrow, request)
        return _result(info, page, narrow, request, notes, "tokens" if len(whole.formatted) > 1 else reason)

    return fitted(
        limits, Shrink(len(whole.formatted), fewer_lines), Shrink(limits.line_chars, fewer_characters)
    )


def text_page(
    info: FileInfo,
    text: str,
    limits: Limits,
    request: ReadOptions,
    notes: Sequence[str] = (),
    ids: Sequence[str] = (),
) -> ReadResult:
    """Return a page of a text; `ids` are the ids of all its lines."""
    first = request.first(info.path, info.total)
    if not info.total:
        return empty_result(info, ["empty file"])
    end, count = end_of(text), max_lines(request.limit or info.usual, limits)
    start = line_start(text, first, end)
    texts = iter([text[start : line_start(text, count + 1, end, start)]])
    lines = slice_lines(texts, end, first, count, request.column)
    if ids:
        lines = lines._replace(ids=ids[first - 1 : lines.last])
    return render_page(info, lines, limits, request, notes)


def empty_result(info: FileInfo, notes: Sequence[str]) -> ReadResult:
    """Return the result for a file without lines or sections."""
    return ReadResult(
        path=info.path,
        kind=info.kind,
        total_bytes=info.size,
        revision=info.revision,
        encoding=info.encoding,
        bom=info.bom != b"",
        text=footer(*notes),
        notes=tuple(notes),
    )


def _fit_bytes(lines: LineSlice, limits: Limits, request: ReadOptions) -> _Page:
    """Return as many lines as fit in `read_bytes` of formatted text, but at least one."""
    first, ids, least = lines.first, lines.ids, lines.least
    overhead, numbered = request.line_overhead, request.line_numbers
    if lines.sections:
        overhead, numbered = None, False
    most = limits.line_chars
    bodies = _without_returns(lines)
    if overhead is not None:  # the caller formats the lines itself
        pairs = zip_longest(bodies, ids[: len(bodies)], fillvalue="")
        shown = [line_id + body[:most] for body, line_id in pairs]
        bodies = bodies[: len(_fitting(shown, _size, None, limits.read_bytes, overhead, least))]
    cut: list[int] = []
    if lines.not_loaded or max(map(len, bodies)) > most:
        cut = [index for index, body in enumerate(bodies) if len(body) > most or lines.not_loaded]
        bodies = [cut_line(body, most, beyond=lines.not_loaded) for body in bodies]
    if overhead is None:
        # A character takes at least a byte: counting characters first saves formatting lines in vain.
        id_width = max(map(len, ids[: len(bodies)]), default=-1) + 1
        room = (first if numbered else None, limits.read_bytes, id_width + numbered, least)
        bodies = _fitting(bodies, len, *room)
        formatted = _fitting(visible_lines(bodies), _size, *room)
    else:
        formatted = visible_lines(bodies)
    lines = lines.head(len(formatted))
    if len(lines.bodies) < len(formatted):
        formatted = formatted[: len(lines.bodies)]
    cut = [index for index in cut if index < len(formatted)] if cut else cut
    if numbered:
        formatted = number_lines(formatted, first)
    if ids:
        formatted = [
            line.replace("|", f" {line_id}|", 1) if numbered else f"{line_id}|{line}"
            for line, line_id in zip(formatted, ids, strict=False)
        ]
    return _Page(lines, formatted, cut)


def _without_returns(lines: LineSlice) -> Sequence[str]:
    r"""Return the lines without the `\r` of their line ends."""
    if lines.end == "\r":
        return lines.bodies
    text = "\n".join(lines.bodies)
    if "\r" not in text:
        return lines.bodies
    # If the last line has no line end, a final `\r` is part of the line.
    text = (text + "\n").replace("\r\n", "\n")[:-1] if lines.ended else text.replace("\r\n", "\n")
    return text.split("\n")


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def _fitting(
    lines: Sequence[str], size: Callable[[str], int], first: int | None, budget: int, beside: int, least: int
) -> Sequence[str]:
    """Return the lines that fit the budget, but at least `least`.

    Args:
        lines: The lines.
        size: Returns the size of a text.
        first: The number of the first line; None if the lines have no numbers.
        budget: The size that all lines may have, with numbers and line feeds.
        beside: The size of everything else in a line.
        least: The fewest lines to return.
    """

    def digits(count: int) -> int:
        return 0 if first is None else count * len(str(first + count - 1))

    # Usually all lines fit, so first measure them together.
    if size("\n".join(lines)) + len(lines) * beside + digits(len(lines)) <= budget:
        return lines
    used = -1  # no line feed follows the last line
    for index, line in enumerate(lines):
        used += size(line) + 1 + beside
        if index >= least and used + digits(index + 1) > budget:
            return lines[:index]
    return lines


def _result(
    info: FileInfo, page: _Page, limits: Limits, request: ReadOptions, notes: Sequence[str], reason: _Reason
) -> ReadResult:
    """Return a page; `reason` says why it has no more lines, unless it has as many as were requested."""
    lines, part, last = page.lines, page.lines.part, page.lines.last
    images = lines.images if lines.sections else ()
    truncated: _Reason | Literal["lines", "line"] | None = "line" if page.cut else None
    following: NextCall | None = None
    content, budget = lines.content(page.formatted), ""
    if not lines.sections and request.column > 1 and page.cut and lines.first == last:
        # The caller reads one long line in pieces, and the next call continues in it.
        content = content[: limits.line_chars]
        following = request.next_call(info.path, lines.first, column=request.column + limits.line_chars)
    elif part is not None or last < info.total:
        complete = lines.items - (part is not None)
        if part is not None or complete < (request.limit or info.usual or limits.read_lines):
            truncated, budget = reason, "" if reason == "time" else _FULL
        elif request.limit is None:
            truncated = "lines"
        place = (last + 1, 1) if part is None else (last, part.end + 1)
        following = request.next_call(info.path, place[0], shown=complete, column=place[1])
    body = "\n".join(page.formatted)
    said = notes_of(
        _range_note(lines, info, budget, request),
        *_cut_notes(page, info, limits.line_chars, request),
        _encoding_note(info.encoding, request),
        carriage_return_note(body),
        *notes,
        f"only {_MAX_IMAGES} of {len(images)} images are shown" if len(images) > _MAX_IMAGES else "",
        "there was no time for more" if truncated == "time" else "",
        continuation(following, _search_in_cell(lines, info) if part else ""),
    )
    note = footer(*said)
    # Without numbers, the footer of a text goes above it so that no line can be mistaken for it.
    below = request.line_numbers or lines.sections
    return ReadResult(
        path=info.path,
        kind=info.kind,
        content=content,
        start_line=lines.first,
        end_line=last,
        total_lines=info.total,
        total_bytes=info.size,
        revision=info.revision,
        truncated_by=truncated,
        encoding=info.encoding,
        newline=info.newline,
        bom=info.bom != b"",
        total_exact=info.exact,
        images=tuple(images[:_MAX_IMAGES]),
        line_ids=tuple(lines.ids),
        text=_with_numbers(body, last, note) if below else _below(note, body),
        notes=said,
        next=following,
    )


def _with_numbers(body: str, last: int, note: str) -> str:
    """Return numbered lines above a note."""
    width = len(str(last))

    def render(style: Style) -> str:
        return "\n".join(style("number", line[:width]) + line[width:] for line in body.split("\n"))

    styled = Styled(body, render)
    return Joined("\n", styled, note) if note else styled


def _below(note: str, body: str) -> str:
    """Return lines without numbers below a note, so that no line can be taken for it."""
    return Advice(note, "\n", body) if note else body


def _range_note(lines: LineSlice, info: FileInfo, budget: str, request: ReadOptions) -> str:
    """Name the lines or sections of a page, unless it has all of them."""
    part = lines.part
    all_shown = lines.first == 1 and lines.last == info.total and part is None and info.exact
    if all_shown and (request.line_numbers or lines.sections):
        return ""
    shown = line_ranges([(lines.first, lines.last)], noun=info.noun)
    shown += f" of {info.total if info.exact else f'at least {info.total}'}"
    if part is not None:
        shown += f": its {line_ranges([(part.skipped + 1, part.end)])} of {part.end + part.more}"
    return f"{shown}{budget}"


def _search_in_cell(lines: LineSlice, info: FileInfo) -> str:
    """Return a note with a search that shows lines of a cut cell, for a tool without `column`, or ""."""
    sources = [line[1:] for line in lines.bodies if line.startswith("|") and not line[1:].isspace()]
    if info.kind != "notebook" or lines.part is None or not sources:
        return ""
    in_json = json.dumps(sources[-1][:_SEARCHED_CHARS], ensure_ascii=False)[1:-1]
    found = call(
        "grep",
        pattern=patterns.syntax.escape(in_json),
        path=info.path,
        output_mode="content",
        after=min(lines.part.more, search.options.MAX_CONTEXT),
    )
    return Advice("more, as JSON: ", found)


def _cut_notes(page: _Page, info: FileInfo, limit: int, request: ReadOptions) -> Iterator[str]:
    """Yield notes on the characters and lines that a page does not show."""
    lines = page.lines
    if request.column > 1:
        what = (
            f"line {request.column} of the {info.noun}" if lines.sections else f"character {request.column}"
        )
        yield f"from {what} on"
    if not page.cut:
        return
    too_long = f"; the rest of line {lines.first} is longer than a page can hold" if lines.not_loaded else ""
    yield f"cut after {limit} characters: {lines.names(page.cut, info.noun)}{too_long}"
    if not lines.sections and request.column == 1:
        number = lines.first + page.cut[0]
        rest = replace(request, limit=1).next_call(info.path, number, column=limit + 1)
        yield Advice(f"the rest of line {number}: ", rest)
    elif info.kind == "notebook":
        yield Advice("the JSON has the rest: ", call("read", path=info.path, raw=True))


def _encoding_note(encoding: str | None, request: ReadOptions) -> str:
    if encoding in {None, "utf-8"} or request.encoding is not None:
        return ""
    if encoding == UNKNOWN_8BIT:
        return FirstOf(Advice(_UNKNOWN, "; if you know it, pass ", ParameterName("encoding")), _UNKNOWN)
    return f"encoding {encoding}"
