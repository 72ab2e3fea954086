"""Render one page of a text: choose the lines that fit the budgets, and say how to continue."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any, Literal, NamedTuple

from agentfs.advice import Advice, FirstOf, Joined, NextCall, ParameterName, Retry, Style, Styled
from agentfs.errors import InvalidArgumentError, must_be, past_end
from agentfs.fs import quote, revision_of
from agentfs.limits import Limits
from agentfs.reading.large_file import LineSlice, slice_lines
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
    first_names,
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

_MAX_NAMED = 5  # lines that were cut and are named in the footer
_UNKNOWN = "not UTF-8, and the encoding is not known: bytes above 7F are shown as Latin-1"
_FULL = ", as many as one answer holds"


# A named tuple, as elsewhere in this package, because defining a frozen dataclass takes eight times as long.
class ReadRequest(NamedTuple):
    """The arguments of one read.

    Without `numbered`, the footer goes above the text so that no line can be mistaken for it.
    """

    offset: int = 1
    limit: int | None = None
    encoding: str | None = None
    raw: bool = False
    column: int = 1
    line_ids: bool = False
    numbered: bool = True

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


class TextInfo(NamedTuple):
    """Facts about a text that are the same for each page. Unless `exact`, `total` is a lower bound."""

    path: str
    revision: str
    size: int
    total: int
    encoding: str
    newline: Newline | None
    bom: bytes
    exact: bool = True

    @classmethod
    def of(cls, path: str, data: bytes, decoded: Decoded) -> "TextInfo":
        """Return the facts about a loaded file."""
        text, encoding, bom = decoded
        return cls(path, revision_of(data), len(data), count_lines(text), encoding, newline_of(text), bom)


class _Page(NamedTuple):
    """The lines of a page, their text for the model, and the numbers of the lines that were cut."""

    lines: LineSlice
    formatted: Sequence[str]
    cut: Sequence[int]


def max_lines(limit: int | None, limits: Limits) -> int:
    """Return how many lines a page can have at most; each line takes at least a byte."""
    return min(limit or limits.read_lines, limits.read_bytes + 1)


def render_page(
    info: TextInfo, lines: LineSlice, limits: Limits, request: ReadRequest, notes: Sequence[str] = ()
) -> ReadResult:
    """Show as many lines as fit the budgets, or as much of the first line as fits."""
    whole = _fit_bytes(lines, limits, request)

    def fewer_lines(count: int) -> ReadResult:
        page = whole if count == len(whole.formatted) else _fit_bytes(lines.head(count), limits, request)
        return _result(info, page, limits, request, notes, by_tokens=count < len(whole.formatted))

    def fewer_characters(count: int) -> ReadResult:
        narrow = replace(limits, line_chars=count)
        page = _fit_bytes(lines.head(1), narrow, request)
        return _result(info, page, narrow, request, notes, by_tokens=len(whole.formatted) > 1)

    return fitted(
        limits, Shrink(len(whole.formatted), fewer_lines), Shrink(limits.line_chars, fewer_characters)
    )


def text_page(
    info: TextInfo,
    text: str,
    limits: Limits,
    request: ReadRequest,
    notes: Sequence[str] = (),
    ids: Sequence[str] = (),
) -> ReadResult:
    """Return a page of a text; `ids` are the ids of all its lines."""
    first = request.first(info.path, info.total)
    if not info.total:
        return empty_result(info)
    end, count = end_of(text), max_lines(request.limit, limits)
    start = line_start(text, first, end)
    texts = iter([text[start : line_start(text, count + 1, end, start)]])
    lines = slice_lines(texts, end, first, count, request.column)
    if ids:
        lines = lines._replace(ids=ids[first - 1 : lines.last])
    return render_page(info, lines, limits, request, notes)


def empty_result(info: TextInfo) -> ReadResult:
    """Return the result for a file without lines."""
    return ReadResult(
        path=info.path,
        kind="text",
        total_bytes=info.size,
        revision=info.revision,
        encoding=info.encoding,
        bom=info.bom != b"",
        text=footer("empty file"),
        notes=("empty file",),
    )


def _fit_bytes(lines: LineSlice, limits: Limits, request: ReadRequest) -> _Page:
    """Return as many lines as fit in `read_bytes` of formatted text, but at least one."""
    first, ids, overhead, numbered = lines.first, lines.ids, limits.line_overhead, request.numbered
    most = limits.line_chars
    bodies = _without_returns(lines)
    if overhead is not None:  # the caller formats the lines itself
        pairs = zip_longest(bodies, ids[: len(bodies)], fillvalue="")
        shown = [line_id + body[:most] for body, line_id in pairs]
        bodies = bodies[: len(_fitting(shown, _size, None, limits.read_bytes, overhead))]
    cut: list[int] = []
    if lines.not_loaded or max(map(len, bodies)) > most:
        cut = [number for number, body in enumerate(bodies, first) if len(body) > most or lines.not_loaded]
        bodies = [cut_line(body, most, beyond=lines.not_loaded) for body in bodies]
    if overhead is None:
        # A character takes at least a byte: counting characters first saves formatting lines in vain.
        id_width = max(map(len, ids[: len(bodies)]), default=-1) + 1
        room = (first if numbered else None, limits.read_bytes, id_width + numbered)
        bodies = _fitting(bodies, len, *room)
        formatted = _fitting(visible_lines(bodies), _size, *room)
    else:
        formatted = visible_lines(bodies)
    lines = lines.head(len(formatted))
    if numbered:
        formatted = number_lines(formatted, first)
    if ids:
        formatted = [
            line.replace("|", f" {line_id}|", 1) if numbered else f"{line_id}|{line}"
            for line, line_id in zip(formatted, ids, strict=False)
        ]
    return _Page(lines, formatted, [number for number in cut if number <= lines.last])


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
    lines: Sequence[str], size: Callable[[str], int], first: int | None, budget: int, beside: int
) -> Sequence[str]:
    """Return the lines that fit the budget, but at least one.

    Args:
        lines: The lines.
        size: Returns the size of a text.
        first: The number of the first line; None if the lines have no numbers.
        budget: The size that all lines may have, with numbers and line feeds.
        beside: The size of everything else in a line.
    """

    def digits(count: int) -> int:
        return 0 if first is None else count * len(str(first + count - 1))

    # Usually all lines fit, so first measure them together.
    if size("\n".join(lines)) + len(lines) * beside + digits(len(lines)) <= budget:
        return lines
    used = -1  # no line feed follows the last line
    for index, line in enumerate(lines):
        used += size(line) + 1 + beside
        if index and used + digits(index + 1) > budget:
            return lines[:index]
    return lines


def _result(
    info: TextInfo,
    page: _Page,
    limits: Limits,
    request: ReadRequest,
    notes: Sequence[str],
    *,
    by_tokens: bool,
) -> ReadResult:
    truncated: Literal["lines", "bytes", "tokens", "line"] | None = "line" if page.cut else None
    following: NextCall | None = None
    lines, budget = page.lines, ""
    content = lines.content
    if request.column > 1 and page.cut and lines.first == lines.last:
        # The caller reads one long line in pieces, and the next call continues in it.
        content = content[: limits.line_chars]
        following = request.next_call(info.path, lines.first, column=request.column + limits.line_chars)
    elif lines.last < info.total:
        if by_tokens:
            truncated, budget = "tokens", _FULL
        elif len(page.formatted) < (request.limit or limits.read_lines):
            truncated, budget = "bytes", _FULL
        elif request.limit is None:
            truncated = "lines"
        following = request.next_call(info.path, lines.last + 1, shown=len(page.formatted))
    rest: NextCall | None = None
    if page.cut and request.column == 1:
        rest = request._replace(limit=1).next_call(info.path, page.cut[0], column=limits.line_chars + 1)
    body = "\n".join(page.formatted)
    said = notes_of(
        _range_note(lines, info, budget, request),
        f"from character {request.column} on" if request.column > 1 else "",
        _cut_note(page, limits.line_chars),
        "" if rest is None else Advice(f"the rest of line {page.cut[0]}: ", rest),
        _encoding_note(info.encoding, request),
        carriage_return_note(body),
        *notes,
        continuation(following),
    )
    note = footer(*said)
    return ReadResult(
        path=info.path,
        kind="text",
        content=content,
        start_line=lines.first,
        end_line=lines.last,
        total_lines=info.total,
        total_bytes=info.size,
        revision=info.revision,
        truncated_by=truncated,
        encoding=info.encoding,
        newline=info.newline,
        bom=info.bom != b"",
        total_exact=info.exact,
        line_ids=tuple(lines.ids),
        text=_with_numbers(body, lines.last, note) if request.numbered else _below(note, body),
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


def _range_note(lines: LineSlice, info: TextInfo, budget: str, request: ReadRequest) -> str:
    if request.numbered and lines.first == 1 and lines.last == info.total and info.exact:
        return ""
    shown = line_ranges([(lines.first, lines.last)])
    return f"{shown} of {info.total if info.exact else f'at least {info.total}'}{budget}"


def _cut_note(page: _Page, limit: int) -> str:
    if not page.cut:
        return ""
    numbers = first_names([str(number) for number in page.cut], _MAX_NAMED)
    too_long = f"; the rest of line {page.lines.first} is longer than a page can hold"
    rest = too_long if page.lines.not_loaded else ""
    return f"cut after {limit} characters: line{'s' if len(page.cut) > 1 else ''} {numbers}{rest}"


def _encoding_note(encoding: str, request: ReadRequest) -> str:
    if encoding == "utf-8" or request.encoding is not None:
        return ""
    if encoding == UNKNOWN_8BIT:
        return FirstOf(Advice(_UNKNOWN, "; if you know it, pass ", ParameterName("encoding")), _UNKNOWN)
    return f"encoding {encoding}"
