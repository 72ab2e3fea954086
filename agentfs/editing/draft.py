"""The text of a file during an edit: decoded, changed in memory, and encoded again."""

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property

from agentfs.base import call_context
from agentfs.base.advice import Advice, Joined, Retry, ToolName
from agentfs.editing.match import occurrences
from agentfs.errors import (
    BinaryError,
    EncodingError,
    InvalidArgumentError,
    InvalidContentError,
    NoChangeError,
    TooLargeError,
)
from agentfs.fs import Change, Current, quote
from agentfs.limits import Limits
from agentfs.reading.media import check_content
from agentfs.text.decoding import UNKNOWN_8BIT, Decoded, decode, decode_in, likely_encoding
from agentfs.text.diff import ReplacedLines, line_changes, unified_diff
from agentfs.text.lines import EditView, LfView, Replacement, count_lines
from agentfs.text.notebook import (
    NotANotebookError,
    Notebook,
    NotEditableError,
    is_named_notebook,
    notebook_problem,
)

# To change anything of a notebook except the sources of its cells.
ANYWAY = Advice("To change it anyway, ", Retry({"raw": True}), ".")
AS_JSON = Advice("To edit the JSON of the notebook instead, ", Retry({"raw": True}), ".")
# These codecs encode every text exactly; others may replace a character by a similar one.
_EXACT = {UNKNOWN_8BIT, "utf-8", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"}


@dataclass(frozen=True)
class FileEdit:
    """The content of a file before and after an edit that is not yet written.

    Attributes:
        current: The file before the edit.
        before: Its text; empty if it does not exist.
        after: The new text.
        codec: The encoding and the byte order mark of the new bytes.
        data: The new bytes.
        raw: True if the content of a notebook, an image or a PDF may break.
        replaces_all: True if all of the file is replaced, whatever it had.
        replacements: The number of replacements.
        applied_via: The steps that found the old texts.
        lines: `EditResult.lines_changed`.
        notes: Notes for the result.
        shows_diff: False if the result leaves out the diff.
    """

    current: Current
    before: EditView
    after: EditView
    codec: Decoded
    data: bytes
    raw: bool = False
    replaces_all: bool = False
    replacements: int = 0
    applied_via: str = "exact"
    lines: int | None = None
    notes: tuple[str, ...] = ()
    shows_diff: bool = True

    def __post_init__(self) -> None:
        if "\x00" in self.after.source and "\x00" not in self.before.source:
            raise InvalidArgumentError(
                "The new text contains a NUL character, which would make the file binary.",
                hint="Pass it without \\u0000.",
                details={"path": self.current.path},
            )

    @property
    def creates(self) -> bool:
        """True if the file does not exist."""
        return self.current.data is None

    @cached_property
    def hunks(self) -> tuple[ReplacedLines, ...]:
        """The lines that differ in the shown texts."""
        return line_changes(as_read(self.before), as_read(self.after))

    @cached_property
    def changed(self) -> tuple[tuple[int, int], ...]:
        """The first and last line of each change, in the new shown text."""
        return changed_ranges(self.hunks, count_lines(as_read(self.after)))

    @cached_property
    def diff(self) -> str:
        """The change as a unified diff."""
        before = None if self.creates else self.before.source
        known = None if isinstance(self.after, Notebook) else self.hunks
        return unified_diff(before, self.after.source, self.current.path, changes=known)

    @cached_property
    def shown_diff(self) -> str:
        """The diff as a model sees it: that of the text of a notebook."""
        if not isinstance(self.after, Notebook):
            return self.diff
        return unified_diff(as_read(self.before), as_read(self.after), self.current.path, changes=self.hunks)

    @property
    def change(self) -> Change:
        """The change of the file on disk."""
        return Change(self.current.real_path, self.current.node, self.current.node_with(self.data))

    def with_text(self, text: str, limits: Limits) -> "FileEdit":
        """Return the edit with another new text; refuse one that the file cannot hold."""
        if not self.raw:
            check_notebook(self.current.path, self.before.source, text, ANYWAY)
        data = encoded(self.codec, text, self.current.path, limits)
        return replace(self, after=self.after.after(text), data=data)


def as_read(view: EditView) -> str:
    """Return a text as `read` shows it."""
    return view.text if isinstance(view, Notebook) else view.source


def edit_view(path: str, text: str) -> EditView:
    """Return the text of a file as it is edited: that of a notebook, or with LF line ends."""
    if is_named_notebook(path):
        with suppress(NotANotebookError):
            return Notebook(text)
    return LfView(text)


def encoded(codec: Decoded, text: str, path: str, limits: Limits) -> bytes:
    """Encode the new text of a file, with the byte order mark.

    Refuse a text that the codec changes, or that is larger than `Limits.file_bytes`.
    """
    data = codec.encode(text)
    if codec.encoding not in _EXACT and data.decode(codec.encoding) != text:
        raise EncodingError(
            f"The encoding {codec.encoding} does not keep the new text: some characters would change.",
            hint="Use only characters that this encoding represents exactly.",
            details={"encoding": codec.encoding},
        )
    check_size(len(codec.bom) + len(data), path, limits)
    return codec.bom + data


def check_size(size: int, path: str, limits: Limits) -> None:
    """Refuse a new size over `Limits.file_bytes`."""
    if size > limits.file_bytes:
        raise TooLargeError(
            f"The new content of {quote(path)} exceeds the limit of {limits.file_bytes} bytes.",
            hint="Make the new text smaller, or write a second file.",
            details={"path": path, "limit": limits.file_bytes},
        )


def changed_ranges(hunks: Sequence[ReplacedLines], total: int) -> tuple[tuple[int, int], ...]:
    """Return the first and last line of each change; for removed lines, the line now in their place."""
    ranges: list[tuple[int, int]] = []
    for hunk in hunks:
        first = min(hunk.new_start + 1, total)
        ranges.append((first, max(first, min(hunk.new_end, total))))
    return tuple(ranges)


class Draft:
    """The text of a file during an edit; it never grows beyond `Limits.file_bytes`.

    Attributes:
        view: The current text.
        before: The text of the file.
    """

    def __init__(
        self, current: Current, limits: Limits, encoding: str | None = None, *, raw: bool = False
    ) -> None:
        """Decode a file; `encoding` overrides detection."""
        self.current, self.path = current, current.path
        self.decoded = _decoded(current, encoding)
        text = self.decoded.text
        self.before = self.view = LfView(text) if raw or encoding else edit_view(self.path, text)
        self._limits, self._raw = limits, raw
        self._replacements = 0

    def replace(self, replacements: Iterable[Replacement]) -> None:
        """Make replacements in the view of the current text; they must be in order and not overlap."""
        made: list[Replacement] = []
        size = 0
        for each in replacements:
            call_context.check()
            size += len(each.new)
            check_size(size, self.path, self._limits)
            made.append(each)
        try:
            self.view = self.view.after(self.view.replaced(made))
        except NotEditableError as error:
            raise InvalidContentError(
                f"The notebook {quote(self.path)} cannot be edited by its text: {error}.",
                hint=AS_JSON,
                details={"path": self.path},
            ) from None
        self._replacements += len(made)

    def replace_all(self, old: str, new: str) -> None:
        """Replace all occurrences of a text that can be edited, from left to right, without overlaps."""
        count = self.view.text.count(old)
        check_size(count * len(new), self.path, self._limits)
        text = self.view.replaced_everywhere(old, new)
        if text is None:
            found = [each.start() for each in re.finditer(re.escape(old), self.view.text)]
            self.replace(Replacement(at, at + len(old), new) for at in self._editable(found, old))
        else:
            self.view = self.view.after(text)
            self._replacements += count

    def places(self, old: str) -> list[int]:
        """Return where a text occurs in the view and can be edited, with overlaps."""
        return self._editable(occurrences(self.view.text, old), old)

    def _editable(self, starts: Sequence[int], old: str) -> list[int]:
        return [start for start in starts if self.view.is_editable(start, start + len(old))]

    @property
    def encoding_hint(self) -> str:
        """A sentence on how to name the encoding, if it is not known."""
        if self.decoded.encoding != UNKNOWN_8BIT:
            return ""
        named = Retry({"encoding": likely_encoding(self.current.content)})
        return Advice("The encoding of the file is not known. If you know it, ", named, ", for example.")

    def finish(self, applied_via: str, lines: int | None = None, notes: tuple[str, ...] = ()) -> FileEdit:
        """Return the edit. Refuse one that changes nothing or breaks the file."""
        text = self.view.source
        try:
            data = encoded(self.decoded, text, self.path, self._limits)
        except EncodingError as error:
            hint = Joined(" ", error.hint, self.encoding_hint)
            raise EncodingError(error.message, hint=hint, details=error.details) from None
        if data == self.current.data:
            raise NoChangeError(
                f"The change would leave {quote(self.path)} as it is.",
                hint="Pass the text you want as the new text.",
                details={"path": self.path},
            )
        if not self._raw:
            check_content(self.path, self.current.content)
            check_notebook(self.path, self.decoded.text, text, ANYWAY)
        facts = self._replacements, applied_via, lines, notes
        return FileEdit(self.current, self.before, self.view, self.decoded, data, self._raw, False, *facts)


def check_notebook(path: str, before: str, after: str, *hints: Advice) -> None:
    """Raise an error if a change would break a notebook. A notebook that is already broken may be changed."""
    if not is_named_notebook(path) or notebook_problem(before) or not (problem := notebook_problem(after)):
        return
    raise InvalidContentError(
        f"The change would break the notebook {quote(path)}: {problem}.",
        hint=Joined(" ", Advice("To change the text of a cell, call ", ToolName("edit"), "."), *hints),
        details={"path": path},
    )


def _decoded(current: Current, encoding: str | None) -> Decoded:
    data = current.content
    try:
        return decode(data) if encoding is None else decode_in(data, encoding, exact=True)
    except BinaryError as error:
        raise BinaryError(
            f"{quote(current.path)} is binary, and only text can be edited.",
            hint="Leave the file as it is, or choose another path.",
            details={**error.details, "path": current.path},
        ) from None
