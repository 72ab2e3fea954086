"""Edits applied to a document in memory: in order, all or nothing."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from io import StringIO

from agentfs import call_context
from agentfs.editing.change_map import Piece, cut, hunks
from agentfs.editing.diagnostics import Known, already_known, explain_no_match
from agentfs.editing.document import UNKNOWN_8BIT, Document
from agentfs.editing.exact_match import Place, all_places, occurrences, to_lf
from agentfs.editing.places import explain_ambiguous
from agentfs.editing.splicing import Splice, View, replaced_everywhere, splices
from agentfs.editing.tolerant_match import tolerated
from agentfs.errors import AgentFSError, EncodingError, InvalidArgumentError, NoChangeError, TooLargeError
from agentfs.fs import quote
from agentfs.line_ranges import Hunk
from agentfs.messages import Joined, Message, ParameterName, ToolName
from agentfs.policy import Matching
from agentfs.results import Edit
from agentfs.visible import literal

# Of more places than this no object is kept: together they count as one stretch that was replaced.
MOST_KEPT = 10_000
_OLD, _NEW = ParameterName("old_string"), ParameterName("new_string")


@dataclass(frozen=True)
class Applied:
    """What edits made of a document.

    Attributes:
        document: The document after.
        replacements: How many places were replaced.
        via: How the old texts were found.
        hunks: The lines replaced, from the document before to the one after.
        notes: What else the caller should know.
        lines: Where lines are named: for each change the larger of lines named and lines given, summed.
    """

    document: Document
    replacements: int
    via: str
    hunks: tuple[Hunk, ...]
    notes: tuple[str, ...] = ()
    lines: int | None = None


def check_edits(edits: Sequence[Edit]) -> None:
    """Refuse what no file could make right.

    Args:
        edits: The edits of one call.

    Raises:
        InvalidArgumentError: `invalid_argument`: no edits, an empty old text, or a NUL in a new one.
        NoChangeError: `no_change`: old and new text are the same.
    """
    if not edits:
        raise InvalidArgumentError(
            Message(ParameterName("edits", quoted=True), " is empty."),
            hint="Pass at least one edit.",
            details={"parameter": "edits"},
        )
    for number, edit in enumerate(edits):
        try:
            _check(edit)
        except AgentFSError as error:
            raise _numbered(error, number, len(edits)) from None


def _check(edit: Edit) -> None:
    if not edit.old_string:
        raise InvalidArgumentError(
            Message(_OLD, " is empty."),
            hint=Joined(
                " ",
                Message(
                    *("To insert, pass as ", _OLD, " a line next to the place, and as ", _NEW),
                    " that line and the new text.",
                ),
                Message("To create a file or replace its whole content, call ", ToolName("write"), "."),
            ),
            details={"parameter": "old_string"},
        )
    check_text(edit.new_string, "new_string")
    if to_lf(edit.old_string, lone=False) == to_lf(edit.new_string, lone=False):
        raise NoChangeError(
            Message(
                *(_OLD, " and ", _NEW),
                " are the same."
                if edit.old_string == edit.new_string
                else " differ only in line ends, and an edit keeps those of the file.",
            ),
            hint=Message("Pass as ", _NEW, " the text as it shall be."),
        )


def check_text(text: str, name: str) -> None:
    """Refuse a new text that no text file can hold.

    Args:
        text: The text.
        name: What the caller knows it as.

    Raises:
        InvalidArgumentError: `invalid_argument`: it holds a NUL.
    """
    if "\x00" in text:
        raise InvalidArgumentError(
            Message(ParameterName(name), " holds a NUL character, which would make the file binary."),
            hint="Pass it without \\u0000.",
            details={"parameter": name},
        )


@dataclass(frozen=True)
class MatchOptions:
    """How old texts are found, and how a miss is explained.

    Attributes:
        matching: Whether the tolerant steps are tried.
        known: What this workspace has shown.
    """

    matching: Matching = "tolerant"
    known: Known = field(default_factory=Known)


def apply_edits(
    document: Document,
    edits: Sequence[Edit],
    *,
    path: str,
    max_bytes: int,
    matcher: MatchOptions | None = None,
) -> Applied:
    """Apply edits in order, each to the outcome of the one before.

    Args:
        document: The file.
        edits: The edits, as `check_edits` passed them.
        path: The path as shown, for messages.
        max_bytes: The size that the file may reach.
        matcher: How old texts are found.

    Returns:
        The outcome.

    Raises:
        NoMatchError: `no_match`: an old text is not there.
        AmbiguousError: `ambiguous`: it is there more than once.
        NoChangeError: `no_change`: the edits together leave the file as it is.
        EncodingError: `encoding`: the file's encoding cannot hold a new text, or is unknown.
        TooLargeError: `too_large`: the outcome would be larger than `max_bytes`.
    """
    matcher = matcher or MatchOptions()
    steps: list[str] = []
    draft = _Draft(document, path, max_bytes)
    for number, edit in enumerate(edits):
        call_context.check()
        try:
            via = draft.apply(edit, matcher)
        except AgentFSError as error:
            raise _explained(_numbered(error, number, len(edits)), document, edit, number) from None
        if via not in {"exact", *steps}:
            steps.append(via)
    return draft.applied(", ".join(steps) or "exact")


def apply_places(
    document: Document,
    view: View,
    places: Iterable[Place],
    count: int,
    *,
    via: str,
    path: str,
    max_bytes: int,
) -> Applied:
    """Replace stretches of a document that are known by their offsets.

    Args:
        document: The file.
        view: Its text in the LF view.
        places: The stretches, in order and apart.
        count: How many they are.
        via: How they were found.
        path: The path as shown, for messages.
        max_bytes: The size that the file may reach.

    Returns:
        The outcome.

    Raises:
        NoChangeError: `no_change`: the file would stay as it is.
        EncodingError: `encoding`: the file's encoding cannot hold a new text, or is unknown.
        TooLargeError: `too_large`: the outcome would be larger than `max_bytes`.
    """

    def checked() -> Iterator[Place]:
        for place in places:
            check_text(place.new, "new text")
            if document.decoded.encoding == UNKNOWN_8BIT:
                _check_ascii("the new text", place.new, path)
            yield place

    draft = _Draft(document, path, max_bytes)
    draft.replace(view, checked(), count)
    return draft.applied(via)


class _Draft:
    """The text of a file while edits are made, and which stretches of it are still those of the file."""

    def __init__(self, document: Document, path: str, max_bytes: int) -> None:
        self._document = document
        self._path = path
        self._max_bytes = max_bytes
        self._text = document.decoded.text
        self._pieces = [Piece(len(self._text), 0)] if self._text else []
        self._replacements = 0

    def apply(self, edit: Edit, matcher: MatchOptions) -> str:
        """Make one edit, and return how its old text was found."""
        view = View(self._text)
        unknown = self._document.decoded.encoding == UNKNOWN_8BIT
        if unknown:
            _check_ascii("old_string", edit.old_string, self._path)
            _check_ascii("new_string", edit.new_string, self._path)
        old, new = to_lf(edit.old_string, lone=view.lone), to_lf(edit.new_string, lone=view.lone)
        self._document.decoded.encode(new)
        if edit.replace_all:
            if count := view.text.count(old):
                self._replace_all(view, old, new, count)
                return "exact"
        else:
            starts = occurrences(view.text, old)
            if len(starts) > 1:
                raise explain_ambiguous(view.text, old, starts, self._path)
            if starts:
                self.replace(view, [Place(starts[0], starts[0] + len(old), new)], 1)
                return "exact"
        if matcher.matching == "tolerant":
            found = tolerated(view.text, old, new, characters=not unknown)
            if len(found.places) == 1 and not already_known(view.text, old, new, matcher.known):
                self.replace(view, found.places, 1)
                return found.via
        raise explain_no_match(view.text, old, new, self._path, matcher.known)

    def _replace_all(self, view: View, old: str, new: str, count: int) -> None:
        text = None
        if count > MOST_KEPT:
            # What is known before anything so large is made: the line ends of the file may be two characters.
            least = len(self._text) + count * (len(new) - len(old) - old.count("\n"))
            _check_size(least, self._path, self._max_bytes)
            text = replaced_everywhere(view, old, new)
        if text is None:
            self.replace(view, all_places(view.text, old, new), count)
            return
        start = view.offset(view.text.find(old))
        end = view.offset(view.text.rfind(old) + len(old))
        self._replace_stretch(text, start, end, count)

    def replace(self, view: View, places: Iterable[Place], count: int) -> None:
        """Replace stretches of the text, and hold the outcome to the size that the file may reach."""
        if count <= MOST_KEPT:
            changes = list(splices(view, places))
            growth = sum(len(change.new) - (change.end - change.start) for change in changes)
            _check_size(len(self._text) + growth, self._path, self._max_bytes)
            self._text = "".join(self._parts(changes))
            self._pieces = cut(self._pieces, changes)
            self._replacements += len(changes)
            return
        written = StringIO()
        number = 0
        first = last = None
        for number, change in enumerate(splices(view, places), 1):
            if number % 1000 == 0:
                call_context.check()
                _check_size(written.tell(), self._path, self._max_bytes)
            first = change.start if first is None else first
            written.write(self._text[last or 0 : change.start])
            written.write(change.new)
            last = change.end
        written.write(self._text[last or 0 :])
        self._replace_stretch(written.getvalue(), first or 0, last or 0, number)

    def _replace_stretch(self, text: str, start: int, end: int, count: int) -> None:
        """Take a new text of which one stretch counts as replaced as a whole."""
        new = text[start : len(text) - (len(self._text) - end)]
        self._pieces = cut(self._pieces, [Splice(start, end, new)])
        self._text = text
        self._replacements += count

    def _parts(self, changes: Sequence[Splice]) -> Iterator[str]:
        position = 0
        for change in changes:
            yield self._text[position : change.start]
            yield change.new
            position = change.end
        yield self._text[position:]

    def applied(self, via: str) -> Applied:
        """Return what was made of the file."""
        before = self._document
        _check_size(len(self._text), self._path, self._max_bytes)
        after = before.changed(self._text, self._pieces)
        _check_size(len(after.data), self._path, self._max_bytes)
        if after.data == before.data:
            raise NoChangeError(
                f"The change would leave {quote(self._path)} as it is.",
                hint="Pass as new text the text as it shall be.",
                details={"path": self._path},
            )
        found = hunks(before.decoded.text, self._text, self._pieces)
        return Applied(after, self._replacements, via, tuple(found))


def _check_ascii(name: str, text: str, path: str) -> None:
    if not text.isascii():
        character = next(c for c in text if not c.isascii())
        raise EncodingError(
            Message(
                f"{quote(path)} is in an unknown 8-bit encoding, and ",
                ParameterName(name),
                f" holds {literal(character)}.",
            ),
            hint=Message(
                "Choose ",
                ParameterName(name),
                " from the ASCII parts of the text; the other bytes around them are kept.",
            ),
            details={"path": path, "encoding": UNKNOWN_8BIT, "parameter": name, "character": character},
        )


def _check_size(size: int, path: str, max_bytes: int) -> None:
    if size > max_bytes:
        raise TooLargeError(
            f"{quote(path)} would grow over the limit of {max_bytes} bytes.",
            hint="Make the new text smaller, or write a second file.",
            details={"path": path, "limit": max_bytes},
        )


def _numbered(error: AgentFSError, number: int, total: int) -> AgentFSError:
    """Say which edit of several it was, and that none was applied."""
    if total == 1:
        return error
    # The file on disk still has other numbers, and the model may go and look.
    counted = (
        "Line numbers count the edits before it as applied." if number and "lines" in error.details else ""
    )
    return type(error)(
        Message(f"Edit {number + 1} of {total}: ", error.message),
        hint=Joined(" ", error.hint, counted, "None of the edits was applied; pass them all again."),
        details={**error.details, "edit": number + 1, "edits": total},
    )


def _explained(error: AgentFSError, document: Document, edit: Edit, number: int) -> AgentFSError:
    """Say so where an earlier edit of the same call took the old text away, or made it ambiguous."""
    if number == 0 or error.code not in {"no_match", "ambiguous"}:
        return error
    view = View(document.decoded.text)
    times = len(occurrences(view.text, to_lf(edit.old_string, lone=view.lone)))
    if times != 1:
        return error
    return type(error)(
        error.message,
        hint=Joined(
            " ",
            "In the file as it is, it is there once: an earlier edit of this call changed that.",
            error.hint,
        ),
        details={**error.details, "caused_by_earlier_edit": True},
    )
