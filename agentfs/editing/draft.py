"""The text of a file during an edit: decoded, changed in memory, and encoded again."""

from collections.abc import Iterable
from io import StringIO
from typing import NamedTuple

from agentfs.base import call_context
from agentfs.base.advice import Advice, Joined, ParameterName, ToolName, call
from agentfs.editing.shown_change import ShownChange, cell_change, changed_ranges
from agentfs.errors import (
    BinaryError,
    EncodingError,
    InvalidArgumentError,
    NoChangeError,
    NotFoundError,
    TooLargeError,
)
from agentfs.fs import Current, quote, revision_of
from agentfs.limits import Limits
from agentfs.reading.media import check_content
from agentfs.reading.notebook import CellView, is_named_notebook, notebook_problem
from agentfs.text import (
    UNKNOWN_8BIT,
    Decoded,
    EditView,
    LfView,
    ReplacedLines,
    Replacement,
    count_lines,
    decode,
    decode_in,
    likely_encoding,
    line_changes,
    line_ranges,
)

_CHECK_EVERY = 1000
# These codecs encode every text exactly; others may replace a character by a similar one.
_EXACT = {UNKNOWN_8BIT, "utf-8", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"}


class Edited(NamedTuple):
    """The new content of a file and facts about the edit; `lines` is `EditResult.lines_changed`."""

    data: bytes
    text: str
    replacements: int
    applied_via: str
    hunks: tuple[ReplacedLines, ...]
    changed: tuple[tuple[int, int], ...]  # first and last line of each change, in the new text
    lines: int | None = None
    notes: tuple[str, ...] = ()


class Draft:
    """The text of a file during an edit; it never grows beyond `Limits.file_bytes`."""

    def __init__(
        self,
        current: Current,
        limits: Limits,
        *,
        encoding: str | None = None,
        raw: bool = False,
        by_cell: bool = False,
        creates: bool = False,
    ) -> None:
        """Decode a file; `encoding` overrides detection.

        With `by_cell`, edit the cells of a notebook. With `creates`, begin a missing file.
        """
        self.current = current
        self.is_new = creates and current.data is None
        self.path = current.path
        self.revision = current.revision or ""
        self.decoded = _decoded(current._replace(data=b"") if self.is_new else current, encoding)
        self.by_cell = (
            by_cell
            and not raw
            and encoding is None
            and is_named_notebook(current.path)
            and not notebook_problem(current.data or b"")
        )
        text = self.decoded.text
        self.original: EditView = CellView(text, self.path) if self.by_cell else LfView(text)
        self.view = self.original  # of the current text
        self._limits = limits
        self._raw = raw
        self._replacements = 0

    @property
    def before(self) -> tuple[str, str]:
        """The revision and the text of the file before the edit."""
        return self.revision, self.decoded.text

    @property
    def cell_count(self) -> int | None:
        """The number of cells if a notebook is edited by cell."""
        return len(self.original.cells) if self.by_cell else None

    def begin(self, text: str) -> None:
        """Set the text of a missing file."""
        self._check_new(text)
        self.view = self.view.after(text)
        self._replacements += 1

    @property
    def text(self) -> str:
        """The current text of the file."""
        return self.view.source

    def replace(self, replacements: Iterable[Replacement]) -> None:
        """Make replacements in the view of the current text; they must be in order and not overlap."""
        text, before = StringIO(), self.view.source
        position = 0
        checked = None
        for start, end, new in replacements:
            if new != checked:
                checked = new
                self._check_new(new)
            splice = self.view.splice(start, end, new)
            text.write(before[position : splice.start])
            text.write(splice.new)
            self.check_size(text.tell())
            position = splice.end
            self._replacements += 1
            if self._replacements % _CHECK_EVERY == 0:
                call_context.check()
        text.write(before[position:])
        self.view = self.view.after(text.getvalue())

    def replace_all(self, old: str, new: str, count: int) -> None:
        """Replace all `count` occurrences of a text from left to right, without overlaps."""
        if not self.by_cell:  # else escapes in the JSON may take more characters
            # Check a lower bound of the size before making the text. Line ends may take two characters.
            self.check_size(len(self.text) + count * (len(new) - len(old) - old.count("\n")))
        self._check_new(new)
        text = self.view.replaced_everywhere(old, new)
        if text is None:
            starts, end = list[int](), -len(old)
            while (end := self.view.text.find(old, end + len(old))) >= 0:
                starts.append(end)
            self.replace(Replacement(start, start + len(old), new) for start in starts)
        else:
            self.view = self.view.after(text)
            self._replacements += count

    def _check_new(self, new: str) -> None:
        if "\x00" in new:
            raise nul_error("the new text")
        if not new.isascii():
            self._encode(new)

    def _encode(self, text: str) -> bytes:
        try:
            return self.decoded.encode(text)
        except EncodingError as error:
            hint = Joined(" ", error.hint, self.encoding_hint)
            raise EncodingError(error.message, hint=hint, details=error.details) from None

    @property
    def encoding_hint(self) -> str:
        """A sentence on how to name the encoding, if it is not known."""
        if self.decoded.encoding != UNKNOWN_8BIT:
            return ""
        read = call("read", path=self.path, encoding=likely_encoding(self.current.data or b""))
        return Advice(
            "The encoding of the file is not known. If you know it, name it first, as in ", read, "."
        )

    def finish(self, applied_via: str, lines: int | None = None) -> Edited:
        """Return the edit. Refuse one that changes nothing or breaks the file."""
        edited = self._edited(self.view.source, applied_via, lines)
        if edited.data == (self.current.data or b"") and not self.is_new:
            raise NoChangeError(
                f"The change would leave {quote(self.path)} as it is.",
                hint="Pass the text you want as the new text.",
                details={"path": self.path},
            )
        return edited

    def with_text(self, edited: Edited, text: str) -> Edited:
        """Return an edit with another new text; raises as `finish`, except that it may change nothing."""
        return self._edited(text, edited.applied_via, edited.lines)._replace(notes=edited.notes)

    def _edited(self, text: str, applied_via: str, lines: int | None) -> Edited:
        decoded, encoded = self.decoded, self._encode(text)
        if decoded.encoding not in _EXACT and encoded.decode(decoded.encoding) != text:
            raise EncodingError(
                f"The encoding {decoded.encoding} does not keep the new text: some characters would change.",
                hint="Use only characters that this encoding represents exactly.",
                details={"encoding": decoded.encoding},
            )
        data = decoded.bom + encoded
        self.check_size(len(data))
        if not self._raw:
            check_content(self.path, self.current.data or b"", data, self._limits)
        hunks = line_changes(decoded.text, text)
        changed = changed_ranges(hunks, count_lines(text))
        return Edited(data, text, self._replacements, applied_via, hunks, changed, lines)

    def revision_of(self, text: str) -> str:
        """Return the revision that the file would have with a text."""
        return revision_of(self.decoded.bom + self._encode(text))

    def shown_change(self, edited: Edited, diff: str) -> ShownChange:
        """Return the change as a model sees it."""
        if isinstance(self.original, CellView) and isinstance(self.view, CellView):
            return cell_change(self.original, self.view, self.path)
        return ShownChange(line_ranges(edited.changed), diff)

    def check_size(self, size: int) -> None:
        """Refuse a size over `Limits.file_bytes`."""
        limit = self._limits.file_bytes
        if size > limit:
            raise TooLargeError(
                f"{quote(self.path)} would grow beyond the limit of {limit} bytes.",
                hint="Make the new text smaller, or write a second file.",
                details={"path": self.path, "limit": limit},
            )


def nul_error(name: ParameterName | str) -> InvalidArgumentError:
    """Return the error for a new text that would make a text file binary."""
    return InvalidArgumentError(
        Advice(name, " contains a NUL character, which would make the file binary."),
        hint="Pass it without \\u0000.",
        details={"parameter": str(Advice(name))},
    )


def _decoded(current: Current, encoding: str | None) -> Decoded:
    if current.data is None:
        glob = Advice(ToolName("glob"), " to find the file")
        write = Advice(ToolName("write"), f" to create {quote(current.path)}")
        raise NotFoundError(
            f"{quote(current.path)} does not exist, so there is nothing to edit.",
            hint=Advice("Call ", Joined(", or ", glob, write), "."),
            details={"path": current.path},
        )
    try:
        return decode(current.data) if encoding is None else decode_in(current.data, encoding, exact=True)
    except BinaryError as error:
        raise BinaryError(
            f"{quote(current.path)} is binary, and only text can be edited.",
            hint="Leave the file as it is, or choose another path.",
            details={**error.details, "path": current.path},
        ) from None
