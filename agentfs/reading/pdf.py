"""The text of PDFs, by pypdf, where the `media` extra is installed."""

import importlib
import sys
import time
from functools import partial
from io import BytesIO
from typing import Any

from agentfs import call_context
from agentfs.errors import BinaryError, DeadlineExceededError
from agentfs.fs import quote
from agentfs.reading.images import MEDIA_EXTRA
from agentfs.reading.sections import Section, mark_lines
from agentfs.text import lf_view

# What one page may hold: text of many times this takes pypdf minutes and GiB, from a file of some kB.
_LIMITS = {
    "zlib_maximum_output_length": 8_000_000,
    "lzw_maximum_output_length": 8_000_000,
    "run_length_maximum_output_length": 8_000_000,
    "array_based_stream_maximum_output_length": 8_000_000,
    "zlib_maximum_recovery_input_length": 200_000,
}
# Tokens of one page, which are parsed without a look at the clock; a second takes more than 150,000.
_MAX_TOKENS = 200_000
_TOKENS_PER_SECOND = 100_000
_MAX_ARRAY_ELEMENTS = 20_000  # in the content of a page: arrays are read without a look at the clock
_CHECK_EVERY = 256  # reads between two looks at the clock: pypdf reads byte by byte


class _TimedBytes(BytesIO):
    """Bytes that can be read no longer than the call may take."""

    reads = 0

    def read(self, size: int | None = -1, /) -> bytes:
        self.reads += 1
        if self.reads % _CHECK_EVERY == 0:
            call_context.check()
        return super().read(size)


def _check_time(*_: object) -> None:
    call_context.check()


class Pdf:
    """An open PDF of `total` pages."""

    def __init__(self, data: bytes, path: str, max_lines: int) -> None:
        """Open a PDF; BinaryError (binary) without pypdf, or for one that is encrypted or broken."""
        self._path = path
        self._max_lines = max_lines
        try:
            pypdf = importlib.import_module("pypdf")
        except ImportError:
            raise BinaryError(
                f"{quote(path)} is a PDF; reading its text takes the extra `media`.",
                hint=f"Whoever runs this can install it: {MEDIA_EXTRA}.",
                details={"path": path, "extra": "media"},
            ) from None
        # It logs each irregularity of a file, which is of no use to a caller who wants the text.
        logging = sys.modules["logging"]  # imported by pypdf; few calls need it
        logging.getLogger("pypdf").setLevel(logging.CRITICAL)
        self._limited = partial(pypdf.apply_configuration, **_LIMITS)
        try:
            with self._limited():
                self._reader: Any = pypdf.PdfReader(_TimedBytes(data))
                locked = self._reader.is_encrypted and not self._reader.decrypt("")
                self.total = 0 if locked else len(self._reader.pages)
        except DeadlineExceededError:
            raise
        except Exception as error:  # noqa: BLE001 - hostile bytes end in any exception
            raise self._broken(error) from None
        if locked:
            raise BinaryError(
                f"{quote(path)} is a PDF that is encrypted with a password.",
                hint="Ask for a copy without one.",
                details={"path": path, "encrypted": True},
            )

    def section(self, number: int) -> Section:
        """Return a page, from 1; the lines of a broken one say what is wrong with it."""
        in_time = (call_context.deadline() - time.monotonic()) * _TOKENS_PER_SECOND
        max_tokens = max(1, int(min(_MAX_TOKENS, in_time)))
        try:
            with self._limited():
                page = self._reader.pages[number - 1]
            with self._limited(
                array_maximum_element_count=_MAX_ARRAY_ELEMENTS, stream_parsing_work_maximum_count=max_tokens
            ):
                text = lf_view(str(page.extract_text(visitor_operand_before=_check_time))).strip("\n")
        except DeadlineExceededError:
            raise
        except Exception as error:  # noqa: BLE001 - as above
            if max_tokens < _MAX_TOKENS and "maximum number of tokens" in str(error):
                raise DeadlineExceededError(
                    f"Page {number} of {quote(self._path)} cannot be read in the time that is left.",
                    hint="Read fewer pages at once.",
                ) from None
            return Section(f"page {number}", [f"|⟦not readable: {_reason(error)}⟧"])
        if not text:
            return Section(f"page {number}", ["|⟦no text⟧"])
        lines, more = mark_lines(text, "|", self._max_lines)
        return Section(f"page {number}", lines, more=more)

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
