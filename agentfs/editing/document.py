"""A text file in memory: replacements in its LF view become splices of the exact text.

Old texts are found in a view in which every line end is LF. What is replaced there is spliced into the exact
text, so that all other bytes stay as they are. A draft keeps its text as segments, stretches of the file and
stretches that came in: what lies between two stretches of the file has changed.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from io import StringIO
from itertools import accumulate
from operator import itemgetter
from typing import NamedTuple

from agentfs import call_context
from agentfs.errors import EncodingError, InvalidArgumentError, NoChangeError, TooLargeError
from agentfs.fs import quote
from agentfs.limits import Limits
from agentfs.line_ranges import Hunk
from agentfs.messages import Message, ParameterName
from agentfs.reading.media import check_notebook, check_text
from agentfs.text import (
    UNKNOWN_8BIT,
    Decoded,
    common_prefix,
    common_suffix,
    decode,
    decode_as,
    end_of,
    lf_view,
    newline_of,
)

# More replacements than this are not kept one by one: together they count as one change.
_MOST_SEGMENTS = 10_000
_NEAR = 4096  # characters in which the end of a line is looked for
# What is encoded in these is the same text again; some others take a character for a similar one.
_EXACT = {UNKNOWN_8BIT, "utf-8", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"}


class Replacement(NamedTuple):
    """A range of a text, from offset `start` up to `end`, and its new text."""

    start: int
    end: int
    new: str


class Segment(NamedTuple):
    """A stretch of a draft: its length, and its offset in the file, or None where it is new."""

    length: int
    origin: int | None


def check_no_nul(text: str, name: ParameterName | str) -> None:
    """Refuse a new text that would make a text file binary; `name` is what the caller knows it as."""
    if "\x00" in text:
        raise InvalidArgumentError(
            Message(name, " holds a NUL character, which would make the file binary."),
            hint="Pass it without \\u0000.",
            details={"parameter": str(Message(name))},
        )


def to_lf(text: str, *, lone: bool) -> str:
    """Return a text of the caller with CRLF as LF, and every CR too where lines end at a lone CR."""
    if "\r" not in text:
        return text
    text = text.replace("\r\n", "\n")
    return text.replace("\r", "\n") if lone else text


class LfView:
    """A text with every line end as LF, and the way back from its offsets."""

    def __init__(self, exact: str) -> None:
        self.exact = exact
        self.text = lf_view(exact)
        self.lone = "\r" in exact and "\n" not in exact  # whether lines end at a lone CR
        self._view_offset = self._exact_offset = 0

    def offset(self, position: int) -> int:
        """Return the offset in the exact text of an offset in the view; offsets must not go back."""
        if len(self.exact) == len(self.text):
            return position
        while (ahead := position - self._view_offset) > 0:
            end = self._exact_offset + ahead
            end += self.exact.startswith("\r\n", end - 1)  # never inside a CRLF
            self._view_offset += end - self._exact_offset
            self._view_offset -= self.exact.count("\r\n", self._exact_offset, end)
            self._exact_offset = end
        return self._exact_offset

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
                inserted = inserted.replace("\n", self._newline_at(self.offset(line)))
            yield Replacement(self.offset(first), self.offset(stop), inserted)

    def _newline_at(self, offset: int) -> str:
        """Return the end of the line at an offset; where it has none, that of the line before, or LF."""
        end = self.exact.find("\n", offset)
        if end < 0:
            end = self.exact.rfind("\n", 0, offset)
        if end < 0:
            return "\r" if "\r" in self.exact else "\n"
        return "\r\n" if self.exact[end - 1 : end] == "\r" else "\n"

    def replaced_everywhere(self, old: str, new: str) -> str | None:
        """Return the exact text with every occurrence replaced; None where line ends differ by occurrence."""
        newline = newline_of(self.exact) or "\n"
        if newline == "\n":
            return self.exact.replace(old, new)
        if "\r" in old or (newline == "mixed" and "\n" in old + new):
            return None  # a CR could match a part of a line end
        return self.exact.replace(old.replace("\n", newline), new.replace("\n", newline))


def splice_segments(segments: Sequence[Segment], splices: Sequence[Replacement]) -> list[Segment]:
    """Apply splices, in order and apart by offsets in the present text, to its segments."""
    ends = list(accumulate(map(itemgetter(0), segments)))

    def kept(start: int, end: int) -> list[Segment]:
        if start >= end:
            return []
        first, last = bisect_right(ends, start), bisect_left(ends, end)
        parts = list(segments[first : last + 1])
        parts[-1] = Segment(parts[-1].length - (ends[last] - end), parts[-1].origin)
        length, origin = parts[0]
        skipped = start - (ends[first] - segments[first].length)
        parts[0] = Segment(length - skipped, None if origin is None else origin + skipped)
        return parts

    after: list[Segment] = []
    position = 0
    for splice in splices:
        after += kept(position, splice.start)
        if splice.new:
            after.append(Segment(len(splice.new), None))
        position = splice.end
    return after + kept(position, ends[-1] if ends else 0)


class LineCounter:
    """Counts lines from the start of a text on; offsets must not go back."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._end = end_of(text)
        self._offset = self._line = 0

    def at(self, offset: int) -> int:
        """Return the index of the line that an offset lies in."""
        self._line += self._text.count(self._end, self._offset, offset)
        self._offset = offset
        return self._line

    def total(self) -> int:
        """Return how many lines the text has."""
        return self.at(len(self._text)) + (not self.starts(len(self._text)))

    def starts(self, offset: int) -> bool:
        """Return whether a line starts at an offset, or would."""
        return offset == 0 or self._text[offset - 1] == self._end

    def line_after(self, offset: int) -> str:
        """Return what follows an offset in its line, with the line end; "" where that is not near."""
        return self._text[offset : self._text.find(self._end, offset, offset + _NEAR) + 1]

    def line_before(self, offset: int) -> str:
        """Return what its line has before an offset, which may be after the line end; "" where it is long."""
        start = self._text.rfind(self._end, max(offset - _NEAR, 0), max(offset - 1, 0)) + 1
        return self._text[start:offset] if start or offset <= _NEAR else ""


def hunks_of(before: str, after: str, segments: Sequence[Segment]) -> list[Hunk]:
    """Return the lines replaced, in order, those that touch put together."""
    found: list[Hunk] = []
    old_lines, new_lines = LineCounter(before), LineCounter(after)
    old = new = new_end = 0
    for length, origin in (*segments, Segment(0, len(before))):
        if origin is None:
            new_end += length
            continue
        if origin > old or new_end > new:
            old_start, new_start = old_lines.at(old), new_lines.at(new)
            # Unless it ends at the start of a line, the change includes the line that it ends in.
            rest = 0 if old_lines.starts(origin) and new_lines.starts(new_end) else 1
            old_stop, new_stop = old_lines.at(origin) + rest, new_lines.at(new_end) + rest
            # The first and the last line may be as they were: "a" became "a\\nb".
            if old_stop > old_start and new_stop > new_start:
                same = old_lines.line_after(old) == new_lines.line_after(new) != ""
                old_start, new_start = old_start + same, new_start + same
            if old_stop > old_start and new_stop > new_start:
                same = old_lines.line_before(origin) == new_lines.line_before(new_end) != ""
                old_stop, new_stop = old_stop - same, new_stop - same
            if found and (old_start <= found[-1].old_end or new_start <= found[-1].new_end):
                old_start, _, new_start, _ = found.pop()
            found.append(Hunk(old_start, old_stop, new_start, new_stop))
        old = origin + length
        new = new_end = new_end + length
    if found:  # only the last one can reach beyond the last line
        old_start, old_stop, new_start, new_stop = found.pop()
        old_stop, new_stop = min(old_stop, old_lines.total()), min(new_stop, new_lines.total())
        found.append(Hunk(old_start, old_stop, new_start, new_stop))
    return found


def changed_ranges(hunks: Sequence[Hunk], total: int) -> tuple[tuple[int, int], ...]:
    """Return first and last line of each change; where lines were removed, the line that is there now."""
    firsts = [min(hunk.new_start + 1, total) for hunk in hunks]
    return tuple(
        (first, max(first, min(hunk.new_end, total))) for first, hunk in zip(firsts, hunks, strict=True)
    )


@dataclass(frozen=True)
class Document:
    """The bytes of a file, and their text with its encoding and byte order mark."""

    data: bytes
    decoded: Decoded

    @classmethod
    def of(cls, data: bytes, encoding: str | None = None) -> "Document":
        """Decode the bytes of a file, in the codec that the caller knows it to have, if any."""
        return cls(data, decode(data) if encoding is None else decode_as(data, encoding))

    @property
    def text(self) -> str:
        """The exact text."""
        return self.decoded.text

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
        return Document(bom + data, self.decoded._replace(text=text))


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
        self._segments = [Segment(len(self.text), 0)] if self.text else []
        self._replacements = 0

    def replace(self, view: LfView, replacements: Iterable[Replacement], count: int) -> None:
        """Make replacements in the view of the present text, in order and apart; they are at most `count`."""
        text = StringIO()
        splices: list[Replacement] = []
        position = made = 0
        for made, splice in enumerate(view.splices(self._checked(replacements)), 1):
            if made % 1000 == 0:
                call_context.check()
            text.write(self.text[position : splice.start])
            text.write(splice.new)
            self.check_size(text.tell())
            position = splice.end
            if count <= _MOST_SEGMENTS or not splices:
                splices.append(splice)
        text.write(self.text[position:])
        after = text.getvalue()
        if count > _MOST_SEGMENTS:
            splices = [self._whole(after, splices[0].start, position)]
        self._take(after, splices, made)

    def replace_all(self, view: LfView, old: str, new: str, count: int) -> None:
        """Replace all `count` occurrences of a text from left to right, none overlapping the one before."""
        text = None
        if count > _MOST_SEGMENTS:
            # What is known before anything so large is made: the line ends of the file may be two characters.
            self.check_size(len(self.text) + count * (len(new) - len(old) - old.count("\n")))
            text = view.replaced_everywhere(old, new)
        if text is None:
            self.replace(view, _occurrences(view.text, old, new), count)
            return
        start = view.offset(view.text.find(old))
        end = view.offset(view.text.rfind(old) + len(old))
        self._take(text, [self._whole(text, start, end)], count)

    def _checked(self, replacements: Iterable[Replacement]) -> Iterator[Replacement]:
        checked = ""
        for replacement in replacements:
            if replacement.new != checked:
                checked = replacement.new
                check_no_nul(checked, "the new text")
                self.document.decoded.encode(checked)
            yield replacement

    def _whole(self, text: str, start: int, end: int) -> Replacement:
        """Return the replacement of the range from `start` to `end` that makes the present text this one."""
        return Replacement(start, end, text[start : len(text) - (len(self.text) - end)])

    def _take(self, text: str, splices: Sequence[Replacement], count: int) -> None:
        self._segments = splice_segments(self._segments, splices)
        self.text = text
        self._replacements += count

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
        hunks = hunks_of(before.text, self.text, self._segments)
        return Edited(after, self._replacements, applied_via, tuple(hunks), lines)

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
