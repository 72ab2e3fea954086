"""Render one page of a text: choose the lines that fit the budgets, and say how to continue.

What lies before the `next` call of a page was read.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, ClassVar, Literal, NamedTuple

from agentfs.base.advice import Advice, FirstOf, Joined, NextCall, ParameterName, Retry, plural
from agentfs.errors import must_be, past_end
from agentfs.fs import quote, revision_of
from agentfs.limits import LARGEST, Limits
from agentfs.permissions import Effect
from agentfs.reading.slices import LineSlice, slice_lines
from agentfs.results import Image, Newline, ReadResult
from agentfs.text.decoding import UNKNOWN_8BIT, Decoded
from agentfs.text.display import (
    carriage_return_note,
    continuation,
    cut_line,
    first_names,
    fitted,
    footer,
    line_ranges,
    notes_of,
    number_lines,
    visible_lines,
)
from agentfs.text.lines import count_lines, end_of, line_start, newline_of

_MAX_IMAGES = 10
_MAX_NAMED = 5  # lines that were cut and are named in the footer
_UNKNOWN = "not UTF-8, and the encoding is not known: bytes above 7F are shown as Latin-1"
_FULL = ", as many as one answer holds"
_Reason = Literal["bytes", "tokens"]


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

    def first(self, path: str, total: int) -> int:
        """Return the number of the first line; 0 if the file has none.

        Args:
            path: The displayed path, for errors.
            total: The number of lines in the file.

        Raises:
            InvalidArgumentError: `invalid_argument` for an argument that is out of range.
            PastEndError: `past_end` for an offset after the last line, or before the first one.
        """
        past = self.offset > max(total, 1) or -self.offset > (total or LARGEST)
        offsets = "a line number from 1, or a negative number to count from the end"
        wrong = [
            *([("offset", offsets)] if self.offset == 0 else []),
            *([("limit", "a number of lines from 1")] if self.limit is not None and self.limit < 1 else []),
            *([("column", "the number of a character from 1")] if self.column < 1 else []),
        ]
        if wrong:
            names = ("offset",) * past + tuple(name for name, _ in wrong)
            hint = Advice("To read as far as fits, ", Retry({}, names), ".")
            raise must_be(wrong[0][0], wrong[0][1], getattr(self, wrong[0][0]), hint)
        if past:
            details: dict[str, Any] = {"path": path, "total_lines": total}
            also = ", or a negative one to count from the end"
            has = f"{quote(path)} has {plural(total, 'line')}"
            raise past_end(has, self.offset, 1, total, also=also, **details)
        return min(self.offset % (total + 1), total) if total else 0

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
        total: The number of lines; a lower bound unless `exact`.
        encoding: The codec of a text.
        newline: The line end of a text.
        bom: The byte order mark of a text.
        exact: True if `total` was counted to the end.
        kind: The kind of the result.
    """

    path: str
    revision: str
    size: int
    total: int
    encoding: str | None = None
    newline: Newline | None = None
    bom: bytes = b""
    exact: bool = True
    kind: Literal["text", "notebook", "pdf", "image", "binary"] = "text"

    @classmethod
    def of(cls, path: str, data: bytes, decoded: Decoded) -> "FileInfo":
        """Return the facts about a loaded text."""
        text, encoding, bom = decoded
        return cls(path, revision_of(data), len(data), count_lines(text), encoding, newline_of(text), bom)

    def result(self, **shown: Any) -> ReadResult:
        """Return the result of a read of the file, with what else it has."""
        return ReadResult(
            path=self.path,
            kind=self.kind,
            total_lines=self.total,
            total_bytes=self.size,
            revision=self.revision,
            encoding=self.encoding,
            newline=self.newline,
            bom=self.bom != b"",
            total_exact=self.exact,
            **shown,
        )

    def empty(self) -> ReadResult:
        """Return the result for a file without lines."""
        return self.result(text=footer("empty file"), notes=("empty file",))


class _Page(NamedTuple):
    """The lines of a page, their text for the model, and the indexes of the lines that were cut."""

    lines: LineSlice
    formatted: Sequence[str]
    cut: Sequence[int]


def max_lines(limit: int | None, limits: Limits) -> int:
    """Return how many lines a page can have at most; each line takes at least a byte."""
    return min(limit or limits.read_lines, limits.read_bytes + 1)


def text_page(
    info: FileInfo,
    text: str,
    limits: Limits,
    options: ReadOptions,
    notes: Sequence[str] = (),
    ids: Sequence[str] = (),
    images: Sequence[tuple[int, Image]] = (),
) -> ReadResult:
    """Return a page of a text.

    Args:
        info: The file.
        text: Its text.
        limits: The budgets.
        options: The arguments of the call.
        notes: More notes for the footer.
        ids: The ids of all lines of the text, or ().
        images: Images that belong to the text, each with its line.
    """
    first = options.first(info.path, info.total)
    if not info.total:
        return info.empty()
    end, count = end_of(text), max_lines(options.limit, limits)
    start = line_start(text, first, end)
    texts = iter([text[start : line_start(text, count + 1, end, start)]])
    lines = slice_lines(texts, end, first, count, options.column)._replace(placed=images)
    if ids:
        lines = lines._replace(ids=ids[first - 1 : lines.last])
    return render_page(info, lines, limits, options, notes)


def render_page(
    info: FileInfo, lines: LineSlice, limits: Limits, options: ReadOptions, notes: Sequence[str] = ()
) -> ReadResult:
    """Show as many of the lines as fit the budgets, or as much of the first line as fits."""
    full = _fit_bytes(lines, limits, options)

    def fewer_lines(count: int) -> ReadResult:
        page = full if count == len(full.formatted) else _fit_bytes(lines.head(count), limits, options)
        cut: _Reason = "tokens" if count < len(full.formatted) else "bytes"
        return _result(info, page, limits, options, notes, cut)

    def fewer_characters(count: int) -> ReadResult:
        narrow = replace(limits, line_chars=count)
        page = _fit_bytes(lines.head(1), narrow, options)
        return _result(info, page, narrow, options, notes, "tokens" if len(full.formatted) > 1 else "bytes")

    return fitted(limits, (len(full.formatted), fewer_lines), (limits.line_chars, fewer_characters))


def _fit_bytes(lines: LineSlice, limits: Limits, options: ReadOptions) -> _Page:
    """Return as many lines as fit in `read_bytes` of formatted text, but at least one."""
    overhead, most = options.line_overhead, limits.line_chars
    bodies = _without_returns(lines)
    cut: list[int] = []
    if lines.not_loaded or max(map(len, bodies)) > most:
        cut = [index for index, body in enumerate(bodies) if len(body) > most or lines.not_loaded]
    # A character takes at least a byte: counting characters first saves formatting lines in vain.
    bodies = bodies[: _count_that_fit([body[:most] for body in bodies] if cut else bodies, len, limits, 0)]
    whole = bodies
    if cut:
        bodies = [cut_line(body, most, beyond=lines.not_loaded) for body in bodies]
    formatted: Sequence[str] = visible_lines(bodies)
    if options.line_numbers:
        formatted = number_lines(formatted, lines.first)
    if lines.ids:
        formatted = [
            line.replace("|", f" {line_id}|", 1) if options.line_numbers else f"{line_id}|{line}"
            for line, line_id in zip(formatted, lines.ids, strict=False)
        ]
    measured = formatted if overhead is None else [body[:most] for body in whole]
    beside = (overhead or 0) + (len(lines.ids[0]) if lines.ids and overhead is not None else 0)
    count = _count_that_fit(measured, _size, limits, beside)
    return _Page(lines.head(count), formatted[:count], [index for index in cut if index < count])


def _count_that_fit(lines: Sequence[str], size: Callable[[str], int], limits: Limits, beside: int) -> int:
    """Return how many lines fit in `read_bytes`, at least one, with line feeds and `beside` for each."""
    budget, text = limits.read_bytes, "\n".join(lines)
    if size(text) + len(lines) * beside <= budget:  # usually all fit
        return len(lines)
    ends = [*accumulate(map(len if text.isascii() else size, lines))]
    indexes = range(len(lines))  # no line feed follows the last line
    return max(bisect_right(indexes, budget - beside, key=lambda at: ends[at] + at * (1 + beside)), 1)


def _without_returns(lines: LineSlice) -> Sequence[str]:
    r"""Return the lines without the `\r` of their line ends."""
    if lines.end == "\r" or "\r" not in "".join(lines.bodies):
        return lines.bodies
    # If the last line has no line end, a final `\r` is part of the line.
    ended = [body.removesuffix("\r") for body in lines.bodies]
    return ended if lines.ended else [*ended[:-1], lines.bodies[-1]]


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def _result(
    info: FileInfo, page: _Page, limits: Limits, options: ReadOptions, notes: Sequence[str], reason: _Reason
) -> ReadResult:
    """Return a page; `reason` says why it has no more lines, unless it has as many as were requested."""
    lines, last = page.lines, page.lines.last
    images: Sequence[Image] = lines.images
    truncated: _Reason | Literal["lines", "line"] | None = "line" if page.cut else None
    following: NextCall | None = None
    content, budget = lines.content, ""
    if options.column > 1 and page.cut and lines.first == last:
        # The caller reads one long line in pieces, and the next call continues in it.
        content = content[: limits.line_chars]
        following = options.next_call(info.path, lines.first, column=options.column + limits.line_chars)
    elif last < info.total or not info.exact:
        shown = len(lines.bodies)
        if shown < (options.limit or limits.read_lines):
            truncated, budget = reason, _FULL
        elif options.limit is None:
            truncated = "lines"
        following = options.next_call(info.path, last + 1, shown=shown)
    body = "\n".join(page.formatted)
    said = notes_of(
        _range_note(lines, info, budget, options),
        *_cut_notes(page, info, limits.line_chars, options),
        _encoding_note(info.encoding, options),
        carriage_return_note(body),
        *notes,
        f"only {_MAX_IMAGES} of {len(images)} images are shown" if len(images) > _MAX_IMAGES else "",
        continuation(following),
    )
    # Without numbers, the footer goes above the text so that no line can be mistaken for it.
    note = footer(*said)
    text = Joined("\n", body, note) if options.line_numbers else Advice(note, "\n", body)
    return info.result(
        content=content,
        start_line=lines.first,
        end_line=last,
        truncated_by=truncated,
        images=tuple(images[:_MAX_IMAGES]),
        line_ids=tuple(lines.ids),
        text=text if said else body,
        notes=said,
        next=following,
    )


def _range_note(lines: LineSlice, info: FileInfo, budget: str, options: ReadOptions) -> str:
    """Name the lines of a page, unless it has all of them."""
    if options.line_numbers and lines.first == 1 and lines.last == info.total and info.exact:
        return ""
    total = info.total if info.exact else f"at least {info.total}"
    return f"{line_ranges([(lines.first, lines.last)])} of {total}{budget}"


def _cut_notes(page: _Page, info: FileInfo, limit: int, options: ReadOptions) -> Iterator[str]:
    """Yield notes on the characters that a page does not show."""
    lines = page.lines
    if options.column > 1:
        yield f"line {lines.first} from character {options.column} on"
    if not page.cut:
        return
    numbers = first_names([str(lines.first + index) for index in page.cut], _MAX_NAMED)
    too_long = f"; the rest of line {lines.first} is longer than a page can hold" if lines.not_loaded else ""
    yield f"cut after {limit} characters: line{'s' if len(page.cut) > 1 else ''} {numbers}{too_long}"
    if options.column == 1:
        number = lines.first + page.cut[0]
        rest = replace(options, limit=1).next_call(info.path, number, column=limit + 1)
        yield Advice(f"the rest of line {number}: ", rest)


def _encoding_note(encoding: str | None, options: ReadOptions) -> str:
    if encoding in {None, "utf-8"} or options.encoding is not None:
        return ""
    if encoding == UNKNOWN_8BIT:
        return FirstOf(Advice(_UNKNOWN, "; if you know it, pass ", ParameterName("encoding")), _UNKNOWN)
    return f"encoding {encoding}"
