"""Read files by sections: the cells of a notebook, the pages of a PDF, or the rows of a hex view."""

import importlib
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from io import BytesIO
from typing import Any, Literal, NamedTuple

from agentfs import call_context
from agentfs.advice import Advice, Joined, NextCall, ToolName
from agentfs.errors import BinaryError, DeadlineExceededError
from agentfs.fs import quote
from agentfs.limits import Limits
from agentfs.reading.images import MEDIA_EXTRA
from agentfs.reading.page import ReadRequest
from agentfs.results import Image, ReadResult
from agentfs.text import (
    Shrink,
    continuation,
    cut_line,
    fitted,
    footer,
    lf_view,
    notes_of,
    plural,
    visible_lines,
)

_MAX_IMAGES = 10
_EDITED_BY_CELL = Advice(ToolName("edit"), " takes the text after `|`")
# Limits for one PDF page. With much more text, pypdf takes minutes and GiB, even for a file of a few kB.
_PDF_LIMITS = {
    "zlib_maximum_output_length": 8_000_000,
    "lzw_maximum_output_length": 8_000_000,
    "run_length_maximum_output_length": 8_000_000,
    "array_based_stream_maximum_output_length": 8_000_000,
    "zlib_maximum_recovery_input_length": 200_000,
}
# pypdf parses the tokens and arrays of a page without checking a deadline: 150,000 tokens a second.
_MAX_TOKENS = 200_000
_TOKENS_PER_SECOND = 100_000
_MAX_ARRAY_ELEMENTS = 20_000
_CHECK_EVERY = 256  # reads between two deadline checks, because pypdf reads byte by byte


class Section(NamedTuple):
    """One cell, page or row: its title, its lines with marks, images, and the number of dropped lines."""

    title: str
    lines: Sequence[str]
    images: Sequence[Image] = ()
    more: int = 0


class SectionedFile(NamedTuple):
    """A file that is read by sections.

    Attributes:
        kind: The kind of the result.
        path: The displayed path.
        size: Bytes in the file.
        revision: The revision of the content.
        noun: The word for one section.
        total: The number of sections.
        section: Returns the section with a number, from 1.
        usual: How many sections a read without a limit shows; 0 for as many as fit.
    """

    kind: Literal["notebook", "pdf", "binary"]
    path: str
    size: int
    revision: str
    noun: str
    total: int
    section: Callable[[int], Section]
    usual: int = 0


def read_sections(file: SectionedFile, limits: Limits, request: ReadRequest) -> ReadResult:
    """Return as many sections as fit the budgets, and at least a part of one."""
    first = request.first(file.path, file.total, file.noun)
    if not first:
        return _result(file, [], 0, request)
    sections: list[Section] = []
    used = 0
    most = min(request.limit or file.usual or file.total, file.total - first + 1)
    late = False
    while len(sections) < most:
        try:
            call_context.check()
            section = _cut(file.section(first + len(sections)), limits)
        except DeadlineExceededError:
            if not sections:
                raise
            late = True
            break
        used += sum(map(_size, (section.title, *section.lines)))
        if sections and used > limits.read_bytes:
            break
        sections.append(section)

    def fewer_sections(count: int) -> ReadResult:
        return _result(file, sections[:count], first, request, late=late and count == len(sections))

    def fewer_lines(count: int) -> ReadResult:
        only = sections[0]
        return _result(file, [only._replace(lines=_head(only.lines, count))], first, request)

    return fitted(
        limits, Shrink(len(sections), fewer_sections), Shrink(max(len(sections[0].lines), 1), fewer_lines)
    )


def _size(line: str) -> int:
    return len(line.encode("utf-8", "surrogatepass")) + 1


def _head(lines: Sequence[str], count: int, more: int = 0) -> Sequence[str]:
    left = len(lines) - min(count, len(lines)) + more
    return [*lines[:count], f"⟦+{plural(left, 'line')}⟧"] if left else lines


def _cut(section: Section, limits: Limits) -> Section:
    """Cut long lines, and a section that is too long for any result."""
    lines = [cut_line(line, limits.line_chars) for line in visible_lines(section.lines)]
    left = limits.read_bytes
    for number, line in enumerate(lines):
        left -= _size(line)
        if left < 0 and number:
            break
    else:
        number = len(lines)
    return section._replace(lines=_head(lines, number, section.more))


def _result(
    file: SectionedFile, sections: Sequence[Section], first: int, request: ReadRequest, *, late: bool = False
) -> ReadResult:
    last = first + len(sections) - 1 if sections else 0
    following: NextCall | None = None
    if last < file.total:
        following = request.next_call(file.path, last + 1, shown=len(sections))
    cut: Literal["time", "lines", "bytes"] = "time" if late else "lines" if file.usual else "bytes"
    images = [image for section in sections for image in section.images]
    body = [line for section in sections for line in (section.title, *section.lines) if line]
    noun = file.noun
    shown = f"{noun} {first}" if first == last else f"{noun}s {first}-{last}"
    notes = notes_of(
        f"{shown} of {file.total}" if sections and (first > 1 or following) else "",
        *((f"{noun}s of a {file.kind}", _EDITED_BY_CELL) if file.kind == "notebook" else ()),
        f"only the first {_MAX_IMAGES} of {len(images)} images are shown"
        if len(images) > _MAX_IMAGES
        else "",
        "" if sections else f"no {noun}s",
        "there was no time for more" if late else "",
        continuation(following),
    )
    return ReadResult(
        path=file.path,
        kind=file.kind,
        content="".join(f"{line}\n" for section in sections for line in section.lines),
        start_line=first,
        end_line=last,
        total_lines=file.total,
        total_bytes=file.size,
        revision=file.revision,
        truncated_by=cut if late or (following is not None and request.limit is None) else None,
        images=tuple(images[:_MAX_IMAGES]),
        text=Joined("\n", "\n".join(body), footer(*notes)),
        notes=notes,
        next=following,
    )


def mark_lines(text: str, mark: str, most: int) -> tuple[list[str], int]:
    """Put a mark before each of the first `most` lines of a text; also return the number of other lines."""
    if not text:
        return [], 0
    body = lf_view(text).removesuffix("\n")
    lines = body.split("\n", most)[:most]
    return [mark + line for line in lines], body.count("\n") + 1 - len(lines)


class _TimedBytes(BytesIO):
    """Bytes in memory. Reading them checks the deadline of the call."""

    reads = 0

    def read(self, size: int | None = -1, /) -> bytes:
        self.reads += 1
        if self.reads % _CHECK_EVERY == 0:
            call_context.check()
        return super().read(size)


def _check_time(*_: object) -> None:
    call_context.check()


class Pdf:
    """A PDF, opened with pypdf of the `media` extra; `total` is its number of pages."""

    def __init__(self, data: bytes, path: str, max_lines: int) -> None:
        """Open a PDF. Raises `binary` if pypdf is missing, or if the PDF is encrypted or broken."""
        self._path = path
        self._max_lines = max_lines
        try:
            pypdf = importlib.import_module("pypdf")
        except ImportError:
            raise BinaryError(
                f"{quote(path)} is a PDF; reading its text needs the extra `media`.",
                hint=f"Ask the user to install it: {MEDIA_EXTRA}.",
                details={"path": path, "extra": "media"},
            ) from None
        # Otherwise pypdf logs every irregularity of a file.
        logging = sys.modules["logging"]  # pypdf has imported it
        logging.getLogger("pypdf").setLevel(logging.CRITICAL)
        self._limited = partial(pypdf.apply_configuration, **_PDF_LIMITS)
        try:
            with self._limited():
                self._reader: Any = pypdf.PdfReader(_TimedBytes(data))
                locked = self._reader.is_encrypted and not self._reader.decrypt("")
                self.total = 0 if locked else len(self._reader.pages)
        except DeadlineExceededError:
            raise
        except Exception as error:  # noqa: BLE001 - hostile bytes cause any exception
            raise self._broken(error) from None
        if locked:
            raise BinaryError(
                f"{quote(path)} is a PDF that is encrypted with a password.",
                hint="Ask for a copy without one.",
                details={"path": path, "encrypted": True},
            )

    def section(self, number: int) -> Section:
        """Return a page, from 1. If it cannot be read, its text gives the reason."""
        title = f"page {number}"
        in_time = (call_context.deadline() - time.monotonic()) * _TOKENS_PER_SECOND
        max_tokens = max(1, int(min(_MAX_TOKENS, in_time)))
        try:
            with self._limited():
                page = self._reader.pages[number - 1]
            with self._limited(
                array_maximum_element_count=_MAX_ARRAY_ELEMENTS, stream_parsing_work_maximum_count=max_tokens
            ):
                text = page.extract_text(visitor_operand_before=_check_time)
        except DeadlineExceededError:
            raise
        except Exception as error:  # noqa: BLE001 - as above
            if max_tokens < _MAX_TOKENS and "maximum number of tokens" in str(error):
                raise DeadlineExceededError(
                    f"There is no time to read page {number} of {quote(self._path)}.",
                    hint="Read fewer pages at once.",
                ) from None
            return Section(title, [f"|⟦not readable: {_reason(error)}⟧"])
        lines, more = mark_lines(lf_view(str(text)).strip("\n"), "|", self._max_lines)
        return Section(title, lines or ["|⟦no text⟧"], more=more)

    def _broken(self, error: Exception) -> BinaryError:
        if type(error).__name__ == "DependencyError":
            return BinaryError(
                f"{quote(self._path)} is a PDF that is encrypted.", details={"path": self._path}
            )
        return BinaryError(
            f"{quote(self._path)} is a PDF that cannot be read: {_reason(error)}.",
            hint="It may be damaged or cut off.",
            details={"path": self._path},
        )


def _reason(error: Exception) -> str:
    text = str(error).split("\n")[0][:100].rstrip(".")
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
