"""One page of a text, as the answer that a model and a program are given."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

from agentfs.limits import Limits
from agentfs.messages import Joined, NextCall
from agentfs.reading.page import LineSlice, Page, page_of
from agentfs.reading.request import ReadRequest
from agentfs.results import ListResult, Newline, ReadResult
from agentfs.text import UNKNOWN_8BIT, Step, continuation, fitted, footer

Truncated = Literal["lines", "bytes", "tokens", "line"]
_MOST_NAMED = 5


class TextInfo(NamedTuple):
    """What is known of a text file before a page of it is chosen."""

    path: str
    revision: str
    size: int
    total: int
    encoding: str
    newline: Newline | None
    bom: bytes
    exact: bool = True


def page_answer(
    known: TextInfo, stretch: LineSlice, limits: Limits, asked: ReadRequest, notes: Sequence[str] = ()
) -> tuple[Page, ReadResult]:
    """Show as much of some lines as the budgets hold: fewer lines, then less of the only one.

    Args:
        known: The file.
        stretch: The lines; there is at least one.
        limits: The budgets.
        asked: What was asked for.
        notes: What else is said.

    Returns:
        What is shown, and the answer.
    """
    whole = page_of(stretch, limits)
    pages: dict[int, Page] = {}

    def lines(count: int) -> ReadResult:
        page = pages[count] = whole if count == len(whole.shown) else page_of(stretch.head(count), limits)
        return _answer(known, page, limits, asked, notes, by_tokens=count < len(whole.shown))

    def characters(count: int) -> ReadResult:
        fewer = replace(limits, line_chars=count)
        page = pages[1] = page_of(stretch.head(1), fewer)
        return _answer(known, page, fewer, asked, notes, by_tokens=len(whole.shown) > 1)

    result = fitted(limits, Step(len(whole.shown), lines), Step(limits.line_chars, characters))
    return pages[result.end_line - result.start_line + 1], result


def empty_answer(known: TextInfo) -> ReadResult:
    """Return the answer for a file without lines."""
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


def directory_answer(path: str, listing: ListResult) -> ReadResult:
    """Return the answer for a directory: what is in it.

    Args:
        path: The directory as it was given.
        listing: What is in it.
    """
    return ReadResult(
        path=path,
        kind="directory",
        content="",
        start_line=0,
        end_line=0,
        total_lines=listing.total,
        total_bytes=0,
        revision="",
        text=listing.text,
        next=listing.next,
        whole=listing.whole,
    )


def whole_ranges(page: Page) -> list[tuple[int, int]]:
    """Return the ranges between the lines that were cut: only these were shown in full."""
    ranges: list[tuple[int, int]] = []
    start = page.first
    for number in (*page.cut, page.last + 1):
        if number > start:
            ranges.append((start, number - 1))
        start = number + 1
    return ranges


def _answer(
    known: TextInfo, page: Page, limits: Limits, asked: ReadRequest, notes: Sequence[str], *, by_tokens: bool
) -> ReadResult:
    truncated: Truncated | None = "line" if page.cut else None
    following: NextCall | None = None
    content = page.content
    if asked.column > 1 and page.cut and page.first == page.last:
        # The caller looks along a line: what is shown is the page, and the next goes on in the same line.
        content = content[: limits.line_chars]
        following = asked.going_on(known.path, page.first, column=asked.column + limits.line_chars)
    elif page.last < known.total:
        if by_tokens:
            truncated = "tokens"
        elif len(page.shown) < (asked.limit or limits.read_lines):
            truncated = "bytes"
        elif asked.limit is None:
            truncated = "lines"
        following = asked.going_on(known.path, page.last + 1)
    below = footer(
        _range(page, known, _bounds(truncated, limits)),
        f"from character {asked.column} on" if asked.column > 1 else "",
        _cut(page, limits.line_chars),
        _encoding(known.encoding, asked),
        *notes,
        continuation(following),
    )
    return ReadResult(
        path=known.path,
        kind="text",
        content=content,
        start_line=page.first,
        end_line=page.last,
        total_lines=known.total,
        total_bytes=known.size,
        revision=known.revision,
        truncated_by=truncated,
        encoding=known.encoding,
        newline=known.newline,
        bom=known.bom != b"",
        total_exact=known.exact,
        text=Joined("\n", "\n".join(page.shown), below),
        next=following,
    )


def _bounds(truncated: Truncated | None, limits: Limits) -> str:
    if truncated == "bytes":
        return f"{limits.read_bytes} bytes"
    return f"{limits.output_tokens} tokens" if truncated == "tokens" else ""


def _range(page: Page, known: TextInfo, budget: str) -> str:
    if page.first == 1 and page.last == known.total and known.exact:
        return ""
    lines = f"line {page.first}" if page.first == page.last else f"lines {page.first}-{page.last}"
    total = known.total if known.exact else f"at least {known.total}"
    return f"{lines} of {total}" + (f", as many as {budget} hold" if budget else "")


def _cut(page: Page, limit: int) -> str:
    if not page.cut:
        return ""
    named = ", ".join(map(str, page.cut[:_MOST_NAMED]))
    others = f" and {len(page.cut) - _MOST_NAMED} more" if len(page.cut) > _MOST_NAMED else ""
    held = f"; the rest of line {page.first} is longer than a page can hold" if page.unheld else ""
    return f"cut after {limit} characters: line{'s' if len(page.cut) > 1 else ''} {named}{others}{held}"


def _encoding(encoding: str, asked: ReadRequest) -> str:
    if encoding == "utf-8" or asked.encoding is not None:
        return ""
    if encoding == UNKNOWN_8BIT:
        return "not UTF-8: each byte above 7F is shown as the Latin-1 character of that number"
    return f"encoding {encoding}"
