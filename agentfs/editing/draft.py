"""The text of a file during an edit: decoded, changed in memory, and encoded again."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from agentfs.base import call_context
from agentfs.base.advice import Advice, Joined, ParameterName, Retry, ToolName
from agentfs.editing.match import occurrences
from agentfs.errors import (
    BinaryError,
    EncodingError,
    InvalidArgumentError,
    InvalidContentError,
    NoChangeError,
    NotFoundError,
    TooLargeError,
)
from agentfs.fs import Change, Current, FileNode, quote
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
from agentfs.text.notebook import Notebook, NotEditableError, is_named_notebook, notebook_problem, shown_text

_CHECK_EVERY = 1000
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
        before: Its text, or None if it does not exist.
        shown_before: That text as `read` shows it: that of a notebook, or `before`.
        text: The new text.
        shown: The new text as `read` shows it.
        data: The new bytes.
        codec: The encoding and the byte order mark of the new bytes.
        raw: True if the content of a notebook, an image or a PDF may break.
        replaces_all: True if all of the file is replaced, whatever it had.
        replacements: The number of replacements.
        applied_via: The steps that found the old texts.
        lines: `EditResult.lines_changed`.
        shows_diff: False if the result leaves out the diff.
        notes: Notes for the result.
    """

    current: Current
    before: str | None
    shown_before: str
    text: str
    shown: str
    data: bytes
    codec: Decoded
    raw: bool = False
    replaces_all: bool = False
    replacements: int = 0
    applied_via: str = "exact"
    lines: int | None = None
    notes: tuple[str, ...] = ()
    shows_diff: bool = True

    @cached_property
    def hunks(self) -> tuple[ReplacedLines, ...]:
        """The lines that differ in the shown texts."""
        return line_changes(self.shown_before, self.shown)

    @property
    def changed(self) -> tuple[tuple[int, int], ...]:
        """The first and last line of each change, in the new shown text."""
        return changed_ranges(self.hunks, count_lines(self.shown))

    @cached_property
    def diff(self) -> str:
        """The change as a unified diff."""
        known = None if self.before is None or self._is_notebook else self.hunks
        return unified_diff(self.before, self.text, self.current.path, changes=known)

    @cached_property
    def shown_diff(self) -> str:
        """The diff as a model sees it: that of the text of a notebook."""
        if not self._is_notebook:
            return self.diff
        return unified_diff(self.shown_before, self.shown, self.current.path, changes=self.hunks)

    @property
    def _is_notebook(self) -> bool:
        return self.shown != self.text

    @property
    def change(self) -> Change:
        """The change of the file on disk."""
        before = self.current.node
        mode, metadata = (0o666, None) if before is None else (before.mode, before.metadata)
        return Change(self.current.real_path, before, FileNode.of(mode, self.data, metadata))

    def with_text(self, text: str, limits: Limits) -> "FileEdit":
        """Return the edit with another new text; refuse one that the file cannot hold."""
        path = self.current.path
        if not self.raw:
            check_notebook(path, self.before or "", text, ANYWAY)
        shown = shown_text(path, text) if self._is_notebook else text
        return replace(self, text=text, shown=shown, data=encoded(self.codec, text, path, limits))


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

    def _shown(self, view: EditView) -> str:
        return view.text if self.is_notebook else view.source

    @property
    def shown(self) -> str:
        """The current text as `read` shows it."""
        return self._shown(self.view)

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
            check_size(size, self.path, self._limits)
            if number % _CHECK_EVERY == 0:
                call_context.check()
            yield each

    def replace_all(self, old: str, new: str) -> None:
        """Replace all occurrences of a text that can be edited, from left to right, without overlaps."""
        self._check_new(new)
        count = self.view.text.count(old)
        # Check a lower bound of the size before making the text. Line ends may take two characters.
        if not self.is_notebook:
            least = len(self.text) + count * (len(new) - len(old) - old.count("\n"))
            check_size(least, self.path, self._limits)
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

    def _encode(self, text: str, *, whole: bool = False) -> bytes:
        """Encode a part of the new text, or all of it."""
        try:
            return (
                encoded(self.decoded, text, self.path, self._limits) if whole else self.decoded.encode(text)
            )
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

    def finish(self, applied_via: str, lines: int | None = None, notes: tuple[str, ...] = ()) -> FileEdit:
        """Return the edit. Refuse one that changes nothing or breaks the file."""
        text, before, data = self.view.source, None, self._encode(self.view.source, whole=True)
        if not self.is_new:
            before = self.decoded.text
            if data == self.current.data:
                raise NoChangeError(
                    f"The change would leave {quote(self.path)} as it is.",
                    hint="Pass the text you want as the new text.",
                    details={"path": self.path},
                )
        if not self._raw:
            check_content(self.path, self.current.data or b"")
            check_notebook(self.path, self.decoded.text, text, ANYWAY)
        texts = before, self._shown(self.original), text, self.shown
        facts = self._replacements, applied_via, lines, notes
        return FileEdit(self.current, *texts, data, self.decoded, self._raw, False, *facts)


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
