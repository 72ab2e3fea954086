"""The text of a PDF, by pypdf of the `media` extra: each page under a header line."""

import importlib
import sys
import time
from functools import partial
from io import BytesIO
from typing import Any

from agentfs.base import call_context
from agentfs.errors import BinaryError, DeadlineExceededError
from agentfs.fs import quote
from agentfs.reading.images import MEDIA_EXTRA
from agentfs.text.lines import lf_view

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
    """An open PDF; `total` is its number of pages."""

    def __init__(self, data: bytes, path: str) -> None:
        """Open a PDF. Raises `binary` if pypdf is missing, or if the PDF is encrypted or broken."""
        self._path = path
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
            raise BinaryError(
                f"{quote(path)} is a PDF that cannot be read: {_reason(error)}.",
                hint="It may be damaged or cut off.",
                details={"path": path},
            ) from None
        if locked:
            raise BinaryError(
                f"{quote(path)} is a PDF that is encrypted with a password.",
                hint="Ask for a copy without one.",
                details={"path": path, "encrypted": True},
            )

    def text(self, lines: float) -> tuple[str, bool]:
        """Return the text of the first pages, and True if it has all of them.

        It ends with the page on which `lines` is reached, or before one for which there is no time.
        """
        pages: list[str] = []
        count = 0
        while len(pages) < self.total and count < lines:
            number = len(pages) + 1
            try:
                page = f"=== page {number}\n{self._page(number)}\n"
            except DeadlineExceededError:
                if not pages:
                    raise
                break
            pages.append(page)
            count += page.count("\n")
        return "".join(pages), len(pages) == self.total

    def _page(self, number: int) -> str:
        """Return the text of a page, from 1. If it cannot be read, its text gives the reason."""
        call_context.check()
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
                    f"There is no time to read page {number} of {quote(self._path)}."
                ) from None
            return f"⟦not readable: {_reason(error)}⟧"
        return lf_view(str(text)).strip("\n") or "⟦no text⟧"


def _reason(error: Exception) -> str:
    text = str(error).split("\n")[0][:100].rstrip(".")
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
