"""The text of PDFs, by pypdf, where the `media` extra is installed."""

import importlib
import logging
from io import BytesIO
from typing import Any

from agentfs.errors import BinaryError
from agentfs.fs import quote
from agentfs.reading.sections import Section
from agentfs.text import lf_view

EXTRA = "pip install 'agentfs-workspace[media]'"


class Pdf:
    """An open PDF.

    Attributes:
        total: Pages in it.
    """

    def __init__(self, data: bytes, path: str) -> None:
        """Open a PDF.

        Args:
            data: Its bytes.
            path: The path as shown, for messages.

        Raises:
            BinaryError: `binary`: pypdf is not installed, or the PDF is encrypted or broken.
        """
        self._path = path
        try:
            pypdf = importlib.import_module("pypdf")
        except ImportError:
            raise BinaryError(
                f"{quote(path)} is a PDF; reading its text takes the extra `media`.",
                hint=f"Whoever runs this can install it: {EXTRA}.",
                details={"path": path, "extra": "media"},
            ) from None
        # It tells of each oddity of a file on its logger, which is of no use to who asked for the text.
        logging.getLogger("pypdf").setLevel(logging.CRITICAL)
        try:
            self._reader: Any = pypdf.PdfReader(BytesIO(data))
            locked = self._reader.is_encrypted and not self._reader.decrypt("")
            self.total = 0 if locked else len(self._reader.pages)
        except Exception as error:  # noqa: BLE001 - hostile bytes end in any exception
            raise self._broken(error) from None
        if locked:
            raise BinaryError(
                f"{quote(path)} is a PDF that is encrypted with a password.",
                hint="Ask for a copy without one.",
                details={"path": path},
            )

    def section(self, number: int) -> Section:
        """Return the text of one page.

        Args:
            number: The page, from 1.

        Returns:
            Its lines; those of a broken page say what is wrong with it.
        """
        try:
            text = lf_view(str(self._reader.pages[number - 1].extract_text())).strip("\n")
        except Exception as error:  # noqa: BLE001 - as above
            return Section(f"page {number}", [f"|⟦not readable: {_reason(error)}⟧"])
        return Section(
            f"page {number}", [f"|{line}" for line in text.split("\n")] if text else ["|⟦no text⟧"]
        )

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
    told = str(error).split("\n")[0][:100].rstrip(".")
    return f"{type(error).__name__}: {told}" if told else type(error).__name__
