"""Leave out most files of a search by a test of their bytes, and decode the others."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from contextlib import suppress

from agentfs.errors import BinaryError, EncodingError
from agentfs.patterns.search_plan import Plan
from agentfs.text.decoding import codec_name, decode
from agentfs.text.lines import lf_view

ASCII, UTF8, NOT_SEARCHED = "ascii", "utf-8", "other"  # kinds of texts
_UTF8_BOM = b"\xef\xbb\xbf"
_ASCII = bytes(range(128))
_WIDE_BOM_STARTS = (b"\xff\xfe", b"\xfe\xff", b"\0\0\xfe\xff")
OTHER_FORMS = "\u0130\u0131\u017f\u212a"  # ignoring case, they match the ASCII letters i, s or k


class Prefilter:
    """Finds out whether the bytes of a file may have a match of one of several patterns.

    Args:
        plans: The plans of the patterns.
        encoding: As for `decode_content`.
    """

    def __init__(self, *plans: Plan, encoding: str | None = None) -> None:
        self.is_useful = encoding is None and all(plan.literals for plan in plans)  # can leave out a file
        self._folds = any(plan.ignore_case for plan in plans)
        literals = [each for plan in plans for each in plan.literals]
        folded = dict.fromkeys([*map(str.lower, literals), *OTHER_FORMS] if self._folds else literals)
        self._ascii = tuple(literal.encode() for literal in folded if literal.isascii())
        self._others = tuple(literal.encode() for literal in folded if not literal.isascii())

    def may_match(self, data: bytes | bytearray, length: int) -> bool:
        """Return False if the first bytes have no match. They may begin or end within a character."""
        if not self.is_useful or data.startswith(_WIDE_BOM_STARTS):
            return True
        searched = bytes(memoryview(data)[:length]).lower() if self._folds else data
        for each in self._ascii:
            if searched.find(each, 0, length) >= 0:
                return True
        if not self._others or (self._folds and searched.isascii()):
            return False
        return self._has_other(searched[:length])

    def texts(
        self,
        data: bytearray,
        starts: Sequence[int],
        end: int,
        kinds: Sequence[str],
        check: Callable[[], object],
    ) -> set[int]:
        """Return the indices of the texts that may match; there may be a few more.

        Args:
            data: The texts, one after the other, with a NUL behind each.
            starts: The start of each text.
            end: The end of the last text.
            kinds: The kind of each text.
            check: Called from time to time; it may raise to stop.
        """
        check()
        searched = data.lower() if self._folds else data
        found: set[int] = set()
        for each in self._ascii:
            check()
            at = searched.find(each, 0, end)
            while at >= 0:
                index = bisect_right(starts, at)
                found.add(index - 1)
                at = searched.find(each, starts[index], end) if index < len(starts) else -1
        if self._others:
            texts = zip(kinds, starts, [*starts[1:], end], strict=True)
            for index, (kind, start, stop) in enumerate(texts):
                if kind != ASCII and self._has_other(searched[start:stop]):
                    found.add(index)
        return found

    def _has_other(self, data: bytes | bytearray) -> bool:
        """Return True if a text has a literal that is not ASCII."""
        rest = data.translate(None, _ASCII)  # usually very little
        return any(each in rest for each in self._others)


def kind_of_text(text: memoryview) -> str:
    """Return `ASCII` or `UTF8` for a text without NUL whose bytes can be searched, else `NOT_SEARCHED`."""
    try:
        decoded = str(text, "utf-8")
    except UnicodeDecodeError:
        return NOT_SEARCHED
    return NOT_SEARCHED if "\0" in decoded else ASCII if decoded.isascii() else UTF8


def decode_content(content: bytes, encoding: str | None = None) -> str | None:
    r"""Return the text of a file with `\n` for every line end, or None if it cannot be decoded.

    Args:
        content: The bytes of the file.
        encoding: The codec of files without a byte order mark that are not UTF-8; None to detect it. With
            "utf-8", such files are not decoded.
    """
    is_utf8 = encoding is not None and codec_name(encoding) == "utf-8"
    if (encoding is None or is_utf8) and not content.startswith(_WIDE_BOM_STARTS):
        with suppress(UnicodeDecodeError):
            return lf_view(str(content.removeprefix(_UTF8_BOM), "utf-8"))
        if is_utf8:
            return None
    with suppress(BinaryError, EncodingError):
        return lf_view(decode(content, None if is_utf8 else encoding).text)
    return None
