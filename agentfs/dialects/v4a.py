"""V4A patches: their text read into operations, and the places of their hunks in a file. Pure.

The reading is as lenient as the reference: blanks around markers, a heredoc around the patch, a first hunk
without `@@`, blank lines between hunks and for blank context. The placing is stricter: a hunk goes where its
lines stand once, and what the hunk does not change stays as the file has it.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, takewhile
from typing import Literal, NamedTuple, NoReturn

from agentfs import call_context
from agentfs.editing.diagnostics import explain_no_match
from agentfs.editing.exact_match import occurrences
from agentfs.editing.places import explain_ambiguous
from agentfs.editing.tolerant_match import tolerated
from agentfs.errors import AgentFSError, AmbiguousError, InvalidArgumentError, NoMatchError
from agentfs.fs import quote
from agentfs.visible import literal

Span = tuple[int, int, str]

MOST_LINES = 500_000
_BEGIN, _END = "*** Begin Patch", "*** End Patch"
_HEADER = re.compile(r"\*\*\* (Add|Delete|Update) File: (.+)")
_MOVE = re.compile(r"\*\*\* Move to: (.+)")
_END_OF_FILE = "*** End of File"
_HEREDOC = re.compile(
    r"""(?:(?:cat|apply_?patch)\s*)?<<-?\s*(?P<quote>['"]?)(?P<word>[^\s'"]+)(?P=quote)\s*\n(?P<patch>.*)\n\s*(?P=word)""",
    re.DOTALL,
)


@dataclass(frozen=True)
class Hunk:
    """One change of a file.

    Attributes:
        anchors: Lines above it, in order, such as `class A` and `def f(self):`.
        lines: Its lines, each after its mark: " " (context), "-" (removed) or "+" (added).
        at_end: Whether it is at the end of the file.
    """

    anchors: tuple[str, ...]
    lines: tuple[str, ...]
    at_end: bool

    @property
    def old(self) -> tuple[str, ...]:
        """The lines before: context, and what is removed."""
        return tuple(line[1:] for line in self.lines if line[0] != "+")

    @property
    def new(self) -> tuple[str, ...]:
        """The lines after: context, and what is added."""
        return tuple(line[1:] for line in self.lines if line[0] != "-")


@dataclass(frozen=True)
class Operation:
    """What is to become of one file.

    Attributes:
        kind: "add", "delete" or "update".
        path: The file.
        content: For "add": its whole text.
        to: For "update": its new path, or None.
        hunks: For "update": the changes, from the top down.
    """

    kind: Literal["add", "delete", "update"]
    path: str
    content: str = ""
    to: str | None = None
    hunks: tuple[Hunk, ...] = ()


class Placed(NamedTuple):
    """Where the hunks of a file go.

    Attributes:
        spans: Start, end and new text of each stretch that changes.
        tolerated: For each hunk that was not found as it was given, its number and how it was found.
    """

    spans: list[Span]
    tolerated: list[str]


def read_patch(text: str) -> list[Operation]:
    """Read a patch.

    Args:
        text: From `*** Begin Patch` to `*** End Patch`.

    Raises:
        InvalidArgumentError: It is none; the line and what is expected there are named (`invalid_argument`).
    """
    if text.count("\n") > MOST_LINES:
        raise _invalid(MOST_LINES, "a patch has at most so many lines; send several")
    text = text.replace("\r\n", "\n").strip()
    heredoc = _HEREDOC.fullmatch(text)
    lines = (heredoc["patch"].strip() if heredoc else text).split("\n")
    if lines[0].strip() != _BEGIN:
        raise _invalid(1, f"the first line of the patch must be '{_BEGIN}'")
    if lines[-1].strip() != _END or len(lines) == 1:
        raise _invalid(len(lines), f"the last line of the patch must be '{_END}'")
    return _Reader(lines).operations()


def _invalid(line: int, why: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"Invalid patch, line {line}: {why}.",
        hint="Nothing was changed. Send the whole patch again.",
        details={"parameter": "input", "line": line},
    )


class _Reader:
    """The lines of a patch, read from the top down."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = lines
        self.at = 1
        self.last = len(lines) - 1  # the end marker

    def operations(self) -> list[Operation]:
        found: list[Operation] = []
        while self.at < self.last:
            line = self.lines[self.at].strip()
            if not line:
                self.at += 1
                continue
            header = _HEADER.fullmatch(line)
            if header is None:
                headers = ", ".join(f"'*** {kind} File: path'" for kind in ("Add", "Delete", "Update"))
                raise self._wrong(f"{literal(line[:80])} is no header of a file; the headers are {headers}")
            self.at += 1
            path = header[2].strip()
            if header[1] == "Add":
                found.append(Operation("add", path, content=self._added()))
            elif header[1] == "Delete":
                found.append(Operation("delete", path))
            else:
                found.append(self._update(path))
        if not found:
            raise self._wrong("the patch changes no file")
        return found

    def _added(self) -> str:
        added: list[str] = []
        while self.at < self.last and self.lines[self.at].startswith("+"):
            added.append(self.lines[self.at][1:] + "\n")
            self.at += 1
        return "".join(added)

    def _update(self, path: str) -> Operation:
        to = None
        if self.at < self.last and (moved := _MOVE.fullmatch(self.lines[self.at].strip())):
            to = moved[1].strip()
            self.at += 1
        hunks: list[Hunk] = []
        while self.at < self.last and not self.lines[self.at].lstrip().startswith("***"):
            if not self.lines[self.at].strip():
                self.at += 1
                continue
            hunks.append(self._hunk(first=not hunks))
        if not hunks and to is None:
            raise self._wrong(f"the update of {literal(path)} is empty")
        return Operation("update", path, to=to, hunks=tuple(hunks))

    def _hunk(self, *, first: bool) -> Hunk:
        anchors: list[str] = []
        begun = False
        while self.at < self.last and self.lines[self.at].startswith("@@"):
            begun = True
            # `@@ -1,2 +3,4 @@` is of another format, whose numbers say nothing certain.
            anchor = self.lines[self.at][2:].removeprefix(" ")
            if anchor.strip() and not re.fullmatch(r"-\d+(,\d+)? \+\d+(,\d+)? @@.*", anchor):
                anchors.append(anchor)
            self.at += 1
        if not begun and not first:
            raise self._wrong(f"a hunk begins with '@@', not with {literal(self.lines[self.at][:80])}")
        lines: list[str] = []
        while self.at < self.last:
            line = self.lines[self.at] or " "
            if line.strip() == _END_OF_FILE and lines:
                self.at += 1
                return Hunk(tuple(anchors), tuple(lines), at_end=True)
            if line[0] not in " +-":
                break
            lines.append(line)
            self.at += 1
        if not lines:
            raise self._wrong("a line of a hunk begins with ' ' (context), '+' (added) or '-' (removed)")
        return Hunk(tuple(anchors), tuple(lines), at_end=False)

    def _wrong(self, why: str) -> InvalidArgumentError:
        return _invalid(self.at + 1, why)


class _Found(NamedTuple):
    """Where a hunk goes in the text as whole lines.

    Attributes:
        start: The offset of its first line.
        end: The offset after its last line.
        changes: The lines that change: start, end, and what they become, each line with its end.
        via: The tolerant step that found it, or "".
    """

    start: int
    end: int
    changes: list[Span]
    via: str = ""


def place_hunks(text: str, hunks: Sequence[Hunk], path: str) -> Placed:
    """Find where hunks go.

    Args:
        text: The text of the file, every line end as one line feed.
        hunks: The hunks, from the top down.
        path: The file, for messages.

    Returns:
        The stretches that change, and what was tolerated.

    Raises:
        NoMatchError: `no_match`: the lines or an anchor of a hunk are not there.
        AmbiguousError: `ambiguous`: its lines stand at several places.
    """
    whole = text if text.endswith("\n") or not text else f"{text}\n"
    spans: list[Span] = []
    tolerated: list[str] = []
    begin = 0
    above: tuple[str, ...] = ()
    for number, hunk in enumerate(hunks, 1):
        call_context.check()
        found = _placed(whole, hunk, begin, above, (number, path))
        if found.via:
            tolerated.append(f"hunk {number} was found by {found.via.replace('_', ' ')}")
        spans += found.changes
        if hunk.old or hunk.anchors:  # lines at the end of the file leave the place where it was
            begin, above = found.end, hunk.anchors or above
    spans.sort(key=lambda span: span[:2])
    return Placed(spans if whole == text else _unended(spans, len(text)), tolerated)


def _unended(spans: list[Span], size: int) -> list[Span]:
    """Return changes of whole lines as those of a text whose last line has no end, so that none has after."""
    start, new = size + 1, ""
    while spans and spans[-1][1] == start:
        start, _, added = spans.pop()
        new = added + new
    if start > size:
        last = [(size, size, f"\n{new[:-1]}")] if new else []
    else:
        last = [(start, size, new[:-1]) if new else (max(start - 1, 0), size, "")]
    return spans + last


def _placed(text: str, hunk: Hunk, begin: int, above: tuple[str, ...], where: tuple[int, str]) -> _Found:
    """Return where a hunk goes below the one before, whose anchors (`above`) it may repeat.

    Repeated anchors name the same lines again, or lines of the same text further down; where both lead to a
    place, but not to the same one, nobody knows which is meant.
    """
    same = takewhile(lambda pair: pair[0] == pair[1], zip(above, hunk.anchors, strict=False))
    repeated = len(list(same))
    found: list[_Found] = []
    failure: AgentFSError | None = None
    for known in dict.fromkeys((0, repeated)):
        try:
            start = begin
            for anchor in hunk.anchors[known:]:
                start = _behind_anchor(text, anchor, start, where)
            found.append(_located(text, hunk, start, where))
        except (NoMatchError, AmbiguousError) as error:
            failure = error
    if not found and failure is not None:
        raise failure
    if found[0].start != found[-1].start:
        block, starts = "\n".join(hunk.old), sorted(place.start for place in found)
        _refuse(hunk, where, explain_ambiguous(text, block, starts, where[1]))
    return found[0]


def _behind_anchor(text: str, anchor: str, start: int, where: tuple[int, str]) -> int:
    """Return where the line after the next line that an anchor names begins."""
    for take in (str, str.rstrip, str.strip):
        at = start
        while at < len(text):
            end = text.index("\n", at)
            if take(text[at:end]) == take(anchor):
                return end + 1
            at = end + 1
    number, path = where
    raise NoMatchError(
        f"Hunk {number} of {quote(path)}: there is no line {quote(anchor.strip())} for '@@'.",
        hint="Nothing was changed. After '@@', write a whole line as the file has it, below the hunk before.",
        details={"path": path, "cause": "absent", "hunk": number, "anchor": anchor},
    )


def _located(text: str, hunk: Hunk, start: int, where: tuple[int, str]) -> _Found:
    """Return where the old lines of a hunk are below `start`."""
    if not hunk.old:
        at = start if hunk.anchors else len(text)
        return _Found(at, at, _changes(hunk.lines, at, [], hunk.new))
    tries = [hunk.lines]
    if hunk.lines[-1] == " " and len(hunk.old) > 1:
        tries.append(hunk.lines[:-1])  # a blank last line may stand for the end of the file
    for lines in tries:
        old, new = _sides(lines)
        block = _joined(old)
        # With the line end before it, only whole lines are found.
        places = [at + 1 for at in occurrences(text, f"\n{block}", max(start - 1, 0))]
        if start == 0 and text.startswith(block):
            places.insert(0, 0)
        if hunk.at_end:
            places = [at for at in places if at + len(block) == len(text)]
        if len(places) == 1 or (places and hunk.anchors):
            at = places[0]
            return _Found(at, at + len(block), _changes(lines, at, old, new))
        if places:
            _refuse(hunk, where, explain_ambiguous(text, "\n".join(old), places, where[1]))
    region = text[start:]
    for lines in tries:
        old, new = _sides(lines)
        steps = tolerated(region, _joined(old), _joined(new))
        fitted: list[_Found] = []
        for place in steps.places:
            real = region[place.start : place.end].split("\n")[:-1]
            made = place.new.split("\n")[:-1]
            whole = place.start == 0 or region[place.start - 1] == "\n"
            if (
                whole
                and (len(real), len(made)) == (len(old), len(new))
                and (place.end == len(region) or not hunk.at_end)
            ):
                at = start + place.start
                fitted.append(_Found(at, start + place.end, _changes(lines, at, real, made), steps.via))
        if len(fitted) == 1:
            return fitted[0]
        if fitted:
            starts = [place.start for place in fitted]
            _refuse(hunk, where, explain_ambiguous(text, "\n".join(old), starts, where[1]))
    return _refuse(hunk, where, explain_no_match(text, "\n".join(hunk.old), "\n".join(hunk.new), where[1]))


def _sides(lines: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the lines of a hunk before and after, without their marks."""
    return [line[1:] for line in lines if line[0] != "+"], [line[1:] for line in lines if line[0] != "-"]


def _joined(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _changes(lines: Sequence[str], start: int, old: Sequence[str], new: Sequence[str]) -> list[Span]:
    """Return what changes where a hunk goes; its marks say which of several equal lines goes.

    Args:
        lines: The lines of the hunk, with their marks.
        start: Where they begin in the text.
        old: The lines that the file has there.
        new: The lines of the hunk after the change, fitted to the place.
    """
    spans: list[Span] = []
    before, after = iter(old), iter(new)
    at = start
    for unchanged, group in groupby(lines, key=lambda line: line[0] == " "):
        begin = at
        added: list[str] = []
        for line in group:
            if line[0] != "+":
                at += len(next(before)) + 1
            if line[0] != "-":
                added.append(next(after))
        if not unchanged:
            spans.append((begin, at, _joined(added)))
    return spans


def _refuse(hunk: Hunk, where: tuple[int, str], error: AgentFSError) -> NoReturn:
    """Raise an error of an edit as one of a hunk."""
    number, path = where
    details = {**error.details, "hunk": number}
    if isinstance(error, AmbiguousError):
        raise AmbiguousError(
            f"Hunk {number} of {quote(path)}: its lines stand at several places.",
            hint="Nothing was changed. Add lines of context, or name the class or function above with '@@'.",
            details=details,
        )
    where_from = " below the hunk before" if number > 1 else ""
    end = " at the end" if hunk.at_end else ""
    raise NoMatchError(
        f"Hunk {number} of {quote(path)}: its lines do not stand in the file{where_from}{end}.",
        hint="Nothing was changed. Copy the lines from the file exactly, and send the whole patch again.",
        details=details,
    )
