"""Edits applied to a document in memory: in order, all or nothing."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from agentfs import call_context
from agentfs.editing.change_map import Piece, cut, hunks
from agentfs.editing.diagnostics import Known, already_known, explain_no_match
from agentfs.editing.document import UNKNOWN_8BIT, Document
from agentfs.editing.exact_match import Place, all_places, occurrences, to_lf
from agentfs.editing.places import explain_ambiguous
from agentfs.editing.splicing import Splice, View, splices
from agentfs.editing.tolerant_match import tolerated
from agentfs.errors import AgentFSError, EncodingError, InvalidArgumentError, NoChangeError, TooLargeError
from agentfs.fs import quote
from agentfs.line_ranges import Hunk
from agentfs.messages import Joined, Message, ParameterName, ToolName
from agentfs.policy import Matching
from agentfs.results import Edit
from agentfs.visible import literal

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
    present = document
    pieces: list[Piece] = [Piece(len(document.decoded.text), 0)] if document.decoded.text else []
    replacements = 0
    for number, edit in enumerate(edits):
        call_context.check()
        try:
            view = View(present.decoded.text)
            places, via = _places(present, view, edit, path, matcher)
            changes = splices(view, places)
            present = spliced(present, changes, path=path, max_bytes=max_bytes)
        except AgentFSError as error:
            raise _explained(_numbered(error, number, len(edits)), document, edit, number) from None
        pieces = cut(pieces, changes)
        replacements += len(places)
        if via not in {"exact", *steps}:
            steps.append(via)
    return _applied(document, present, pieces, replacements, ", ".join(steps) or "exact", path)


def apply_places(
    document: Document, view: View, places: Sequence[Place], *, via: str, path: str, max_bytes: int
) -> Applied:
    """Replace stretches of a document that are known by their offsets.

    Args:
        document: The file.
        view: Its text in the LF view.
        places: The stretches, in order and apart.
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
    for place in places:
        check_text(place.new, "new text")
        if document.decoded.encoding == UNKNOWN_8BIT:
            _check_ascii("the new text", place.new, path)
    changes = splices(view, places)
    present = spliced(document, changes, path=path, max_bytes=max_bytes)
    length = len(document.decoded.text)
    pieces = cut([Piece(length, 0)] if length else [], changes)
    return _applied(document, present, pieces, len(places), via, path)


def spliced(document: Document, changes: Sequence[Splice], *, path: str, max_bytes: int) -> Document:
    """Make splices, and hold the outcome to a size.

    Args:
        document: The file.
        changes: The splices of its text, in order and apart.
        path: The path as shown, for messages.
        max_bytes: The size that the file may reach.

    Returns:
        The document after.

    Raises:
        TooLargeError: `too_large`: the outcome would be larger than `max_bytes`.
        EncodingError: `encoding`: the file's encoding cannot hold a new text.
    """
    growth = sum(len(change.new) - (change.end - change.start) for change in changes)
    # Characters are a lower bound of bytes that is known before anything so large is made.
    _check_size(len(document.decoded.text) + growth, path, max_bytes)
    after = document.spliced(changes)
    _check_size(len(after.data), path, max_bytes)
    return after


def _applied(
    before: Document, after: Document, pieces: Sequence[Piece], replacements: int, via: str, path: str
) -> Applied:
    if after.data == before.data:
        raise NoChangeError(
            f"The change would leave {quote(path)} as it is.",
            hint="Pass as new text the text as it shall be.",
            details={"path": path},
        )
    found = hunks(before.decoded.text, after.decoded.text, pieces)
    return Applied(after, replacements, via, tuple(found))


def _places(
    document: Document, view: View, edit: Edit, path: str, matcher: MatchOptions
) -> tuple[Sequence[Place], str]:
    """Return where an edit applies, and how that was found."""
    unknown = document.decoded.encoding == UNKNOWN_8BIT
    if unknown:
        _check_ascii("old_string", edit.old_string, path)
        _check_ascii("new_string", edit.new_string, path)
    old, new = to_lf(edit.old_string, lone=view.lone), to_lf(edit.new_string, lone=view.lone)
    if edit.replace_all:
        places = all_places(view.text, old, new)
        if places:
            return places, "exact"
    else:
        starts = occurrences(view.text, old)
        if len(starts) > 1:
            raise explain_ambiguous(view.text, old, starts, path)
        if starts:
            return [Place(starts[0], starts[0] + len(old), new)], "exact"
    if matcher.matching == "tolerant":
        found = tolerated(view.text, old, new, characters=not unknown)
        if len(found.places) == 1 and not already_known(view.text, old, new, matcher.known):
            return found.places, found.via
    raise explain_no_match(view.text, old, new, path, matcher.known)


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
    if number == 0 or error.code not in {"no_match", "explain_ambiguous"}:
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
