"""The text of a file during an edit: decoded, changed in memory, and encoded again."""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from agentfs.base import call_context
from agentfs.base.advice import Advice, Joined, ParameterName, Retry, ToolName
from agentfs.editing.match import occurrences
from agentfs.editing.shown_change import changed_ranges
from agentfs.errors import (
    BinaryError,
    EncodingError,
    InvalidArgumentError,
    InvalidContentError,
    NoChangeError,
    NotFoundError,
    TooLargeError,
)
from agentfs.fs import Current, quote, revision_of
from agentfs.limits import Limits
from agentfs.reading.media import check_content
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
    unified_diff,
)
from agentfs.text.notebook import Notebook, NotEditableError, is_named_notebook, notebook_problem

_CHECK_EVERY = 1000
# To change anything of a notebook except the sources of its cells.
_ANYWAY = Advice("To change it anyway, ", Retry({"raw": True}), ".")
AS_JSON = Advice("To edit the JSON of the notebook instead, ", Retry({"raw": True}), ".")
# These codecs encode every text exactly; others may replace a character by a similar one.
_EXACT = {UNKNOWN_8BIT, "utf-8", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"}


class Edited(NamedTuple):
    """The new content of a file and facts about the edit.

    Attributes:
        data: The new bytes.
        text: The new text.
        shown: The new text as `read` shows it: that of a notebook, or `text`.
        replacements: The number of replacements.
        applied_via: The steps that found the old texts.
        hunks: The lines that differ in the shown texts.
        changed: The first and last line of each change, in the new shown text.
        lines: `EditResult.lines_changed`.
        notes: Notes for the result.
    """

    data: bytes
    text: str
    shown: str
    replacements: int
    applied_via: str
    hunks: tuple[ReplacedLines, ...]
    changed: tuple[tuple[int, int], ...]
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
        creates: bool = False,
    ) -> None:
        """Decode a file; `encoding` overrides detection. With `creates`, begin a missing file."""
        self.current = current
        self.is_new = creates and current.data is None
        self.path = current.path
        self.revision = current.revision or ""
        self.decoded = _decoded(current._replace(data=b"") if self.is_new else current, encoding)
        text = self.decoded.text
        self.is_notebook = (
            not raw and encoding is None and is_named_notebook(self.path) and not notebook_problem(text)
        )
        self.original: EditView = Notebook(text) if self.is_notebook else LfView(text)
        self.view = self.original  # of the current text
        self._limits = limits
        self._raw = raw
        self._replacements = 0

    @property
    def before(self) -> tuple[str, str]:
        """The revision of the file before the edit, and its text as `read` shows it."""
        return self.revision, self._shown(self.original)

    def _shown(self, view: EditView) -> str:
        return view.text if self.is_notebook else view.source

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
        made = list(self._checked(replacements))
        try:
            source = self.view.replaced(made)
        except NotEditableError as error:
            raise _not_editable(self.path, error) from None
        self.view = self.view.after(source)
        self._replacements += len(made)

    def _checked(self, replacements: Iterable[Replacement]) -> Iterator[Replacement]:
        """Yield replacements while their new texts can be encoded and the file does not grow too large."""
        size, checked = 0, None
        for number, each in enumerate(replacements):
            if each.new != checked:
                checked = each.new
                self._check_new(checked)
            size += len(each.new)
            self.check_size(size)
            if number % _CHECK_EVERY == 0:
                call_context.check()
            yield each

    def replace_all(self, old: str, new: str) -> None:
        """Replace all occurrences of a text that can be edited, from left to right, without overlaps."""
        self._check_new(new)
        count = self.view.text.count(old)
        # Check a lower bound of the size before making the text. Line ends may take two characters.
        if not self.is_notebook:
            self.check_size(len(self.text) + count * (len(new) - len(old) - old.count("\n")))
        text = self.view.replaced_everywhere(old, new)
        if text is None:
            found = [Replacement(at, at + len(old), new) for at in self.places(old, overlapping=False)]
            self.replace(found)
        else:
            self.view = self.view.after(text)
            self._replacements += count

    def places(self, old: str, *, overlapping: bool = True) -> list[int]:
        """Return where a text occurs in the view and can be edited."""
        if overlapping:
            starts = occurrences(self.view.text, old)
        else:
            starts = [found.start() for found in re.finditer(re.escape(old), self.view.text)]
        return [start for start in starts if self.view.is_editable(start, start + len(old))]

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
        named = Retry({"encoding": likely_encoding(self.current.data or b"")})
        return Advice("The encoding of the file is not known. If you know it, ", named, ", for example.")

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
            check_content(self.path, self.current.data or b"")
            check_notebook(self.path, decoded.text, text, _ANYWAY)
        shown = self._shown(self.view) if text == self.view.source else self._shown(self.view.after(text))
        hunks = line_changes(self._shown(self.original), shown)
        changed = changed_ranges(hunks, count_lines(shown))
        return Edited(data, text, shown, self._replacements, applied_via, hunks, changed, lines)

    def revision_of(self, text: str) -> str:
        """Return the revision that the file would have with a text."""
        return revision_of(self.decoded.bom + self._encode(text))

    def shown_diff(self, edited: Edited, diff: str) -> str:
        """Return the diff of an edit as a model sees it: that of the text of a notebook."""
        if not self.is_notebook:
            return diff
        return unified_diff(self.original.text, edited.shown, self.path, changes=edited.hunks)

    def check_size(self, size: int) -> None:
        """Refuse a size over `Limits.file_bytes`."""
        limit = self._limits.file_bytes
        if size > limit:
            raise TooLargeError(
                f"{quote(self.path)} would grow beyond the limit of {limit} bytes.",
                hint="Make the new text smaller, or write a second file.",
                details={"path": self.path, "limit": limit},
            )


def check_notebook(path: str, before: str, after: str, *hints: Advice) -> None:
    """Raise an error if a change would break a notebook. A notebook that is already broken may be changed."""
    if not is_named_notebook(path) or notebook_problem(before) or not (problem := notebook_problem(after)):
        return
    raise InvalidContentError(
        f"The change would break the notebook {quote(path)}: {problem}.",
        hint=Joined(" ", Advice("To change the text of a cell, call ", ToolName("edit"), "."), *hints),
        details={"path": path},
    )


def _not_editable(path: str, error: NotEditableError) -> InvalidContentError:
    return InvalidContentError(
        f"The notebook {quote(path)} cannot be edited by its text: {error}.",
        hint=AS_JSON,
        details={"path": path},
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
