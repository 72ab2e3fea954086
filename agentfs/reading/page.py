"""One page of a text: what was requested, the lines that the budgets hold, and the result that shows them."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any, Literal, NamedTuple

from agentfs.advice import Advice, NextCall, Retry
from agentfs.errors import InvalidArgumentError, must_be, past_end
from agentfs.fs import quote, revision_of
from agentfs.limits import Limits
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

_MAX_NAMED = 5  # of the lines that were cut
_FULL = ", as many as one answer holds"


# Named tuples in this package: a frozen dataclass takes eight times as long to import.
class ReadRequest(NamedTuple):
    """The arguments of one read.

    What else is the footer is above lines that are not `numbered`, so that none can be taken for it.
    """

    offset: int = 1
    limit: int | None = None
    encoding: str | None = None
    raw: bool = False
    column: int = 1
    line_ids: bool = False
    numbered: bool = True

    def first(self, path: str, total: int, noun: str = "line") -> int:
        """Return the number of the first line, 0 where there is none.

        InvalidArgumentError (invalid_argument) is raised for what is out of range, PastEndError for an offset
        behind the last line.
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
        """Return the call that continues at a line: for the rest of what was requested, or as much again."""
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
    """What is known of a text before a page of it is chosen; `total` is a lower bound unless `exact`."""

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
        """Return what is known of a file that is loaded."""
        text, encoding, bom = decoded
        return cls(path, revision_of(data), len(data), count_lines(text), encoding, newline_of(text), bom)


class LineSlice(NamedTuple):
    """Consecutive lines of a file, without the character that ends them.

    `ended` is whether the last one has a line end, and `not_loaded` how many characters the only line has
    beyond those that were loaded.
    """

    first: int
    bodies: Sequence[str]
    end: str
    ended: bool = True
    not_loaded: int = 0
    ids: Sequence[str] = ()

    def content(self, count: int) -> str:
        """Return the exact text of the first `count` lines."""
        last_ended = self.ended or count < len(self.bodies)
        return self.end.join(self.bodies[:count]) + (self.end if last_ended else "")

    def head(self, count: int) -> "LineSlice":
        """Return the first `count` of the lines."""
        if count >= len(self.bodies):
            return self
        return self._replace(bodies=self.bodies[:count], ended=True, not_loaded=0)


class _Page(NamedTuple):
    """The lines of a page: formatted for the model, their exact text, and the numbers of those cut short."""

    first: int
    last: int
    formatted: Sequence[str]
    content: str
    cut: Sequence[int]
    not_loaded: int
    ids: Sequence[str]


def slice_text(text: str, first: int, count: int, request: ReadRequest) -> LineSlice:
    """Return up to `count` lines of a text from line `first` on, which it has."""
    end = end_of(text)
    bodies = text[line_start(text, first, end) :].split(end, count)
    rest = bodies.pop()
    ended = len(bodies) == count or not rest
    if not ended:
        bodies.append(rest)
    if request.column > 1:
        bodies = drop_columns(bodies, request.column, end, ended=ended)
    return LineSlice(first, bodies, end, ended)


def drop_columns(bodies: Sequence[str], column: int, end: str, *, ended: bool) -> list[str]:
    r"""Return lines from a column on; the `\r` of a `\r\n` always stays."""
    start = column - 1
    rest = [body[start:] for body in bodies]
    if end == "\n":
        for index in range(len(bodies) if ended else len(bodies) - 1):
            if not rest[index] and bodies[index].endswith("\r"):
                rest[index] = "\r"
    return rest


def max_lines(limit: int | None, limits: Limits) -> int:
    """Return how many lines are looked at: each takes at least a byte of those that a page may have."""
    return min(limit or limits.read_lines, limits.read_bytes + 1)


def render_page(
    info: TextInfo, lines: LineSlice, limits: Limits, request: ReadRequest, notes: Sequence[str] = ()
) -> ReadResult:
    """Show as many lines as the budgets hold, or as much as they hold of the first one."""
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
    """Return a page of a text; `ids` are those of all its lines."""
    first = request.first(info.path, info.total)
    if not info.total:
        return empty_result(info)
    lines = slice_text(text, first, max_lines(request.limit, limits), request)
    lines = lines._replace(ids=ids[first - 1 : first - 1 + len(lines.bodies)])
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
    """Return as many lines as `read_bytes` of formatted text hold, and always the first."""
    first, ids, overhead, numbered = lines.first, lines.ids, limits.line_overhead, request.numbered
    cut: list[int] = []
    bodies = _without_returns(lines)
    if overhead is not None:  # the caller formats them by itself
        pairs = zip_longest(bodies, ids[: len(bodies)], fillvalue="")
        shown = [line_id + body[: limits.line_chars] for body, line_id in pairs]
        bodies = bodies[: len(_fitting(shown, _size, None, limits.read_bytes, overhead))]
    if lines.not_loaded or max(map(len, bodies)) > limits.line_chars:
        most = limits.line_chars
        cut = [number for number, body in enumerate(bodies, first) if len(body) > most or lines.not_loaded]
        bodies = [cut_line(body, most, beyond=lines.not_loaded) for body in bodies]
    if overhead is None:
        # Nothing is formatted in fewer bytes than it has characters, so no more than this is made visible.
        id_width = max(map(len, ids[: len(bodies)]), default=-1) + 1
        room = (first if numbered else None, limits.read_bytes, id_width + numbered)
        bodies = _fitting(bodies, len, *room)
        formatted = _fitting(visible_lines(bodies), _size, *room)
    else:
        formatted = visible_lines(bodies)
    last = first + len(formatted) - 1
    if numbered:
        formatted = number_lines(formatted, first)
    if ids:
        formatted = [
            line.replace("|", f" {line_id}|", 1) if numbered else f"{line_id}|{line}"
            for line, line_id in zip(formatted, ids, strict=False)
        ]
    cut = [number for number in cut if number <= last]
    content = lines.content(len(formatted))
    return _Page(first, last, formatted, content, cut, lines.not_loaded, ids[: len(formatted)])


def _without_returns(lines: LineSlice) -> Sequence[str]:
    r"""Return the lines without the `\r` of their line ends."""
    if lines.end == "\r":
        return lines.bodies
    text = "\n".join(lines.bodies)
    if "\r" not in text:
        return lines.bodies
    # In a last line without a line end, a `\r` is a character of it.
    text = (text + "\n").replace("\r\n", "\n")[:-1] if lines.ended else text.replace("\r\n", "\n")
    return text.split("\n")


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def _fitting(
    lines: Sequence[str], size: Callable[[str], int], first: int | None, budget: int, beside: int
) -> Sequence[str]:
    """Return the lines that fit: each with its number, as wide as the widest, what is beside, a line feed.

    Without a `first` number they have none.
    """

    def digits(count: int) -> int:
        return 0 if first is None else count * len(str(first + count - 1))

    # Mostly all of them fit, which one check of all shows.
    if size("\n".join(lines)) + len(lines) * beside + digits(len(lines)) <= budget:
        return lines
    used = -1  # the last line has no line feed
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
    content, budget = page.content, ""
    if request.column > 1 and page.cut and page.first == page.last:
        # The caller reads along a line: what is shown is the page, and the next call continues in the line.
        content = content[: limits.line_chars]
        following = request.next_call(info.path, page.first, column=request.column + limits.line_chars)
    elif page.last < info.total:
        if by_tokens:
            truncated, budget = "tokens", _FULL
        elif len(page.formatted) < (request.limit or limits.read_lines):
            truncated, budget = "bytes", _FULL
        elif request.limit is None:
            truncated = "lines"
        following = request.next_call(info.path, page.last + 1, shown=len(page.formatted))
    rest: NextCall | None = None
    if page.cut and request.column == 1:
        rest = request._replace(limit=1).next_call(info.path, page.cut[0], column=limits.line_chars + 1)
    body = "\n".join(page.formatted)
    said = notes_of(
        _range_note(page, info, budget, request),
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
        start_line=page.first,
        end_line=page.last,
        total_lines=info.total,
        total_bytes=info.size,
        revision=info.revision,
        truncated_by=truncated,
        encoding=info.encoding,
        newline=info.newline,
        bom=info.bom != b"",
        total_exact=info.exact,
        line_ids=tuple(page.ids),
        text=Advice(*(body, "\n", note) if request.numbered else (note, "\n", body)) if note else body,
        notes=said,
        next=following,
    )


def _range_note(page: _Page, info: TextInfo, budget: str, request: ReadRequest) -> str:
    if request.numbered and page.first == 1 and page.last == info.total and info.exact:
        return ""
    lines = line_ranges([(page.first, page.last)])
    return f"{lines} of {info.total if info.exact else f'at least {info.total}'}{budget}"


def _cut_note(page: _Page, limit: int) -> str:
    if not page.cut:
        return ""
    numbers = first_names([str(number) for number in page.cut], _MAX_NAMED)
    rest = f"; the rest of line {page.first} is longer than a page can hold" if page.not_loaded else ""
    return f"cut after {limit} characters: line{'s' if len(page.cut) > 1 else ''} {numbers}{rest}"


def _encoding_note(encoding: str, request: ReadRequest) -> str:
    if encoding == "utf-8" or request.encoding is not None:
        return ""
    if encoding == UNKNOWN_8BIT:
        return "not UTF-8: each byte above 7F is shown as the Latin-1 character of that number"
    return f"encoding {encoding}"
