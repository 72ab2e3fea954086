"""Read files by sections: the cells of a notebook, the pages of a PDF, or the rows of a hex view."""

import importlib
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from io import BytesIO
from typing import Any

from agentfs.base import call_context
from agentfs.base.advice import Advice, Retry, ToolName
from agentfs.errors import BinaryError, DeadlineExceededError, must_be
from agentfs.fs import quote
from agentfs.limits import Limits
from agentfs.reading.images import MEDIA_EXTRA
from agentfs.reading.page import FileInfo, ReadOptions, empty_result, render_page
from agentfs.reading.slices import LineSlice, Section
from agentfs.results import Image, ReadResult
from agentfs.text import lf_view, line_start

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


def read_sections(
    info: FileInfo, section_at: Callable[[int, int], Section], limits: Limits, request: ReadOptions
) -> ReadResult:
    """Return as many sections as fit the budgets, and at least a part of one.

    Args:
        info: The file.
        section_at: Returns the section with a number, from 1, without some of its first lines.
        limits: The budgets.
        request: The arguments of the call; `offset` and `limit` count sections, `column` lines of the first.
    """
    notes = (f"cells of a {info.kind}", _EDITED_BY_CELL) if info.kind == "notebook" else ()
    first = request.first(info.path, info.total, info.noun)
    if not first:
        return empty_result(info, [*notes, f"no {info.noun}s"])
    sections: list[Section] = []
    used = 0
    most = min(request.limit or info.usual or limits.read_lines, info.total - first + 1)
    late = False
    while len(sections) < most and used <= limits.read_bytes:
        try:
            call_context.check()
            section = section_at(first + len(sections), 0 if sections else request.column - 1)
        except DeadlineExceededError:
            if not sections:
                raise
            late = True
            break
        used += sum(map(len, section.shown))
        sections.append(section)
    if request.column > 1 and not sections[0].lines:
        what = f"a line of {info.noun} {first}, which has {sections[0].skipped}"
        again = Advice("To begin with its first line, ", Retry({}, ("column",)), ".")
        raise must_be("column", what, request.column, again)
    return render_page(info, LineSlice.of(first, sections), limits, request, notes, late=late)


class MarkedLines:
    """Collects the lines of a section: none of the first `skipped`, and `most` of the others."""

    def __init__(self, skipped: int, most: int) -> None:
        self.lines: list[str] = []
        self._ahead, self._most = skipped, most
        self._count = 0

    def add(self, text: str, mark: str, most: int | None = None) -> int:
        """Add the lines of a text, or `most` of them, each with a mark. Return the number of the others."""
        if not text:
            return 0
        body = lf_view(text).removesuffix("\n")
        total = body.count("\n") + 1
        taken = total if most is None else min(total, most)
        start = min(max(self._ahead - self._count, 0), taken)
        room = min(taken - start, self._most - len(self.lines))
        if room > 0:
            rest = body[line_start(body, start + 1, "\n") :]
            self.lines += [mark + line for line in rest.split("\n", room)[:room]]
        self._count += taken
        return total - taken

    def section(self, title: str, images: Sequence[Image] = ()) -> Section:
        """Return the section."""
        skipped = min(self._ahead, self._count)
        more = self._count - skipped - len(self.lines)
        return Section(title, self.lines, () if more else images, skipped, more)


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

    def section(self, number: int, skipped: int) -> Section:
        """Return a page, from 1, without its first lines. If it cannot be read, its text gives the reason."""
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
        lines = MarkedLines(skipped, self._max_lines)
        lines.add(lf_view(str(text)).strip("\n") or "⟦no text⟧", "|")
        return lines.section(title)

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
