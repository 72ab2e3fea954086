"""A text file in memory: replacements in its LF view become splices of the exact text.

Old texts are found in a view in which every line end is LF. What is replaced there is spliced into the exact
text, so that all other bytes stay as they are.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from io import StringIO
from typing import NamedTuple

from agentfs import call_context
from agentfs.advice import Advice, ParameterName
from agentfs.errors import EncodingError, InvalidArgumentError, NoChangeError, TooLargeError
from agentfs.fs import quote
from agentfs.limits import Limits
from agentfs.read_tracker import Hunk
from agentfs.reading.media import check_notebook, check_text
from agentfs.text import (
    UNKNOWN_8BIT,
    Decoded,
    common_prefix,
    common_suffix,
    decode,
    decode_as,
    lf_view,
    line_changes,
    newline_of,
)
from agentfs.text.lines import View

_CRLF = re.compile("\r\n")
# What is encoded in these is the same text again; some others take a character for a similar one.
_EXACT = {UNKNOWN_8BIT, "utf-8", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"}


class Replacement(NamedTuple):
    """A range of a text, from offset `start` up to `end`, and its new text."""

    start: int
    end: int
    new: str


def check_no_nul(text: str, name: ParameterName | str) -> None:
    """Refuse a new text that would make a text file binary; `name` is what the caller knows it as."""
    if "\x00" in text:
        raise InvalidArgumentError(
            Advice(name, " holds a NUL character, which would make the file binary."),
            hint="Pass it without \\u0000.",
            details={"parameter": str(Advice(name))},
        )


def to_lf(text: str, *, lone: bool) -> str:
    """Return a text of the caller with CRLF as LF, and every CR too where lines end at a lone CR."""
    if "\r" not in text:
        return text
    text = text.replace("\r\n", "\n")
    return text.replace("\r", "\n") if lone else text


class LfView(View):
    """A text with every line end as LF."""

    def __init__(self, exact: str) -> None:
        super().__init__(exact, _CRLF, lambda _: "\n", lf_view(exact))
        self.lone = "\r" in exact and "\n" not in exact  # whether lines end at a lone CR

    def splices(self, replacements: Iterable[Replacement]) -> Iterator[Replacement]:
        """Yield replacements of the exact text, without what old and new text share at either end.

        Line ends that come in follow the first line replaced, or the line that whole lines are added to.
        """
        last = ("", "")
        head = tail = 0
        for start, end, new in replacements:
            old = self.text[start:end]
            if (old, new) != last:  # most replacements of one edit are the same
                last = (old, new)
                head = common_prefix(old, new)
                tail = common_suffix(old, new, min(len(old), len(new)) - head)
            inserted = new[head : len(new) - tail]
            first, stop = start + head, end - tail
            if "\n" in inserted:
                # An insertion replaces no line: it continues the one before it in the old text.
                line = first - 1 if first == stop and head else first
                inserted = inserted.replace("\n", self._newline_at(self.start(line)))
            yield Replacement(self.start(first), self.end(stop), inserted)

    def _newline_at(self, offset: int) -> str:
        """Return the end of the line at an offset; where it has none, that of the line before, or LF."""
        end = self.source.find("\n", offset)
        if end < 0:
            end = self.source.rfind("\n", 0, offset)
        if end < 0:
            return "\r" if "\r" in self.source else "\n"
        return "\r\n" if self.source[end - 1 : end] == "\r" else "\n"

    def replaced_everywhere(self, old: str, new: str) -> str | None:
        """Return the exact text with every occurrence replaced; None where line ends differ by occurrence."""
        newline = newline_of(self.source) or "\n"
        if newline == "\n":
            return self.source.replace(old, new)
        if "\r" in old or (newline == "mixed" and "\n" in old + new):
            return None  # a CR could match a part of a line end
        return self.source.replace(old.replace("\n", newline), new.replace("\n", newline))


def changed_ranges(hunks: Sequence[Hunk], total: int) -> tuple[tuple[int, int], ...]:
    """Return first and last line of each change; where lines were removed, the line that is there now."""
    firsts = [min(hunk.new_start + 1, total) for hunk in hunks]
    return tuple(
        (first, max(first, min(hunk.new_end, total))) for first, hunk in zip(firsts, hunks, strict=True)
    )


class Document(NamedTuple):
    """The bytes of a file, their exact text, and its encoding and byte order mark."""

    data: bytes
    text: str
    decoded: Decoded

    @classmethod
    def of(cls, data: bytes, encoding: str | None = None) -> "Document":
        """Decode the bytes of a file; `encoding` overrides detection."""
        decoded = decode(data) if encoding is None else decode_as(data, encoding)
        return cls(data, decoded.text, decoded)

    def changed(self, text: str) -> "Document":
        """Return the document with another text; what encodes as it did keeps its bytes."""
        encoding, bom = self.decoded.encoding, self.decoded.bom
        data = self.decoded.encode(text)
        if encoding not in _EXACT and data.decode(encoding) != text:
            raise EncodingError(
                f"In {encoding} the new text would be another one when it is read again.",
                hint="Use only characters that the encoding has of its own.",
                details={"encoding": encoding},
            )
        return Document(bom + data, text, self.decoded._replace(text=text))


class Edited(NamedTuple):
    """What a change makes of a document; `lines` sums, by change, the larger of lines named and given."""

    document: Document
    replacements: int
    applied_via: str
    hunks: tuple[Hunk, ...]
    lines: int | None = None
    notes: tuple[str, ...] = ()


class Draft:
    """The text of a document while it is changed, limited to the size that the file may reach.

    Unless it is `raw`, the outcome must be readable as the same kind of file.
    """

    def __init__(self, document: Document, path: str, limits: Limits, *, raw: bool = False) -> None:
        self.document = document
        self.path = path
        self.text = document.text
        self._limits = limits
        self._raw = raw
        self._replacements = 0

    def replace(self, view: LfView, replacements: Iterable[Replacement]) -> None:
        """Make replacements in the view of the present text, in order and apart."""
        text = StringIO()
        position = 0
        for made, splice in enumerate(view.splices(self._checked(replacements)), 1):
            if made % 1000 == 0:
                call_context.check()
            text.write(self.text[position : splice.start])
            text.write(splice.new)
            self.check_size(text.tell())
            position = splice.end
            self._replacements += 1
        text.write(self.text[position:])
        self.text = text.getvalue()

    def replace_all(self, view: LfView, old: str, new: str, count: int) -> None:
        """Replace all `count` occurrences of a text from left to right, none overlapping the one before."""
        # What is known before anything so large is made: the line ends of the file may be two characters.
        self.check_size(len(self.text) + count * (len(new) - len(old) - old.count("\n")))
        self._check_new(new)
        text = view.replaced_everywhere(old, new)
        if text is None:
            self.replace(view, _occurrences(view.text, old, new))
        else:
            self.text = text
            self._replacements += count

    def _check_new(self, new: str) -> None:
        check_no_nul(new, "the new text")
        self.document.decoded.encode(new)

    def _checked(self, replacements: Iterable[Replacement]) -> Iterator[Replacement]:
        checked = ""
        for replacement in replacements:
            if replacement.new != checked:
                checked = replacement.new
                self._check_new(checked)
            yield replacement

    def result(self, applied_via: str, lines: int | None = None) -> Edited:
        """Return what was made of the document."""
        before = self.document
        self.check_size(len(self.text))
        after = before.changed(self.text)
        self.check_size(len(after.data))
        if after.data == before.data:
            raise NoChangeError(
                f"The change would leave {quote(self.path)} as it is.",
                hint="Pass as new text the text as it shall be.",
                details={"path": self.path},
            )
        if not self._raw:
            check_text(self.path, before.data, self._limits)
            check_notebook(self.path, before.data, after.data)
        hunks = tuple(Hunk(*change) for change in line_changes(before.text, self.text))
        return Edited(after, self._replacements, applied_via, hunks, lines)

    def check_size(self, size: int) -> None:
        """Refuse a size that the file may not reach."""
        limit = self._limits.file_bytes
        if size > limit:
            raise TooLargeError(
                f"{quote(self.path)} would grow over the limit of {limit} bytes.",
                hint="Make the new text smaller, or write a second file.",
                details={"path": self.path, "limit": limit},
            )


def _occurrences(text: str, old: str, new: str) -> Iterator[Replacement]:
    end = 0
    while (start := text.find(old, end)) >= 0:
        end = start + len(old)
        yield Replacement(start, end, new)
