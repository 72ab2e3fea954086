"""V4A patches: their text read into operations, and the places of their hunks in a file. Pure.

The reading is as lenient as the reference: blanks around markers, a heredoc around the patch, a first hunk
without `@@`, blank lines between hunks and for blank context. The placing is stricter: a hunk goes where its
lines stand once, and what the hunk does not change stays as the file has it.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, NoReturn

from agentfs.disk import quote
from agentfs.editing.matching import occurrences
from agentfs.editing.miss import miss
from agentfs.editing.places import ambiguous
from agentfs.editing.tolerance import tolerated
from agentfs.errors import AgentFSError, AmbiguousError, InvalidArgumentError, NoMatchError
from agentfs.text import moved_lines

Span = tuple[int, int, str]

_BEGIN, _END = "*** Begin Patch", "*** End Patch"
_HEADER = re.compile(r"\*\*\* (Add|Delete|Update) File: (.+)")
_MOVE = re.compile(r"\*\*\* Move to: (.+)")
_END_OF_FILE = "*** End of File"
_HEREDOC = re.compile(r"<<\s*(['\"]?)(\w+)\1\n(.*)\n\2", re.DOTALL)


@dataclass(frozen=True)
class Hunk:
    """One change of a file.

    Attributes:
        anchors: Lines above it, in order, such as `class A` and `def f(self):`.
        old: The lines that stand there: context, and what is removed.
        new: The lines that are to stand there: context, and what is added.
        at_end: Whether it is at the end of the file.
    """

    anchors: tuple[str, ...]
    old: tuple[str, ...]
    new: tuple[str, ...]
    at_end: bool


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
    text = text.replace("\r\n", "\n").strip()
    heredoc = _HEREDOC.fullmatch(text)
    lines = (heredoc[3].strip() if heredoc else text).split("\n")
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
                raise self._wrong(f"{line[:80]!r} is no header of a file; the headers are {headers}")
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
            raise self._wrong(f"the update of {path!r} is empty")
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
            raise self._wrong(f"a hunk begins with '@@', not with {self.lines[self.at][:80]!r}")
        old: list[str] = []
        new: list[str] = []
        start = self.at
        while self.at < self.last:
            line = self.lines[self.at]
            if line.strip() == _END_OF_FILE and self.at > start:
                self.at += 1
                return Hunk(tuple(anchors), tuple(old), tuple(new), at_end=True)
            mark = line[:1] or " "
            if mark not in " +-":
                break
            if mark != "+":
                old.append(line[1:])
            if mark != "-":
                new.append(line[1:])
            self.at += 1
        if self.at == start:
            raise self._wrong("a line of a hunk begins with ' ' (context), '+' (added) or '-' (removed)")
        return Hunk(tuple(anchors), tuple(old), tuple(new), at_end=False)

    def _wrong(self, why: str) -> InvalidArgumentError:
        return _invalid(self.at + 1, why)


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
    placed = Placed([], [])
    begin = 0
    for number, hunk in enumerate(hunks, 1):
        start = begin
        for anchor in hunk.anchors:
            start = _behind_anchor(text, anchor, start, (number, path))
        if not hunk.old:
            at = start if hunk.anchors else len(text)
            placed.spans.append(_inserted(text, at, hunk.new))
            begin = at
            continue
        found, new, via = _found(text, hunk, start, (number, path))
        if via:
            placed.tolerated.append(f"hunk {number} was found by {via.replace('_', ' ')}")
        old = text[found[0] : found[1]].split("\n")
        placed.spans.extend(_changed(text, found[0], old, new))
        begin = min(found[1] + 1, len(text))
    return placed


def _behind_anchor(text: str, anchor: str, start: int, where: tuple[int, str]) -> int:
    """Return where the line after the next line that an anchor names begins."""
    for take in (str, str.rstrip, str.strip):
        at = start
        while at < len(text):
            end = text.find("\n", at)
            end = len(text) if end < 0 else end
            if take(text[at:end]) == take(anchor):
                return min(end + 1, len(text))
            at = end + 1
    number, path = where
    raise NoMatchError(
        f"Hunk {number} of {quote(path)}: there is no line {quote(anchor.strip())} for '@@'.",
        hint="Nothing was changed. After '@@', write a whole line as the file has it, below the hunk before.",
        details={"path": path, "cause": "absent", "hunk": number, "anchor": anchor},
    )


def _found(
    text: str, hunk: Hunk, start: int, where: tuple[int, str]
) -> tuple[tuple[int, int], list[str], str]:
    """Return where the old lines of a hunk stand, its new lines fitted to the place, and how it was found."""
    region = text[start:]
    tries = [(hunk.old, hunk.new)]
    if len(hunk.old) > 1 and not hunk.old[-1] and hunk.new[-1:] == ("",):
        tries.append((hunk.old[:-1], hunk.new[:-1]))  # a blank last line may stand for the end of the file
    for old, new in tries:
        block = "\n".join(old)
        places = [(at, at + len(block)) for at in occurrences(region, block)]
        places = [place for place in places if _whole_lines(region, place, at_end=hunk.at_end)]
        if len(places) == 1 or (places and hunk.anchors):
            at, end = places[0]
            return (start + at, start + end), list(new), ""
        if places:
            _refuse(hunk, where, ambiguous(text, block, [start + at for at, _ in places], where[1]))
    for old, new in tries:
        steps = tolerated(region, "\n".join(old), "\n".join(new))
        fitted = [
            (place.start, place.end, place.new)
            for place in steps.places
            if _whole_lines(region, (place.start, place.end), at_end=hunk.at_end)
        ]
        if len(fitted) == 1:
            at, end, made = fitted[0]
            return (start + at, start + end), made.split("\n") if new else [], steps.via
        if fitted:
            _refuse(
                hunk, where, ambiguous(text, "\n".join(old), [start + at for at, _, _ in fitted], where[1])
            )
    return _refuse(hunk, where, miss(text, "\n".join(hunk.old), "\n".join(hunk.new), where[1]))


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


def _whole_lines(text: str, place: tuple[int, int], *, at_end: bool) -> bool:
    start, end = place
    begins = start == 0 or text[start - 1] == "\n"
    ends = end == len(text) or text[end] == "\n"
    return begins and ends and (not at_end or text[end:] in {"", "\n"})


def _inserted(text: str, at: int, lines: Sequence[str]) -> Span:
    body = "\n".join(lines)
    if at == len(text) and text and not text.endswith("\n"):
        return at, at, f"\n{body}"
    return at, at, f"{body}\n"


def _changed(text: str, start: int, old: Sequence[str], new: Sequence[str]) -> list[Span]:
    """Return the stretches of some lines that change."""
    starts = [start]
    for line in old:
        starts.append(starts[-1] + len(line) + 1)
    spans: list[Span] = []
    for old_start, old_end, new_start, new_end in moved_lines(old, new):
        lines = new[new_start:new_end]
        begin, end = starts[old_start], starts[old_end]
        if old_start == old_end:
            spans.append(_inserted(text, min(begin, len(text)), lines))
        elif lines:
            spans.append((begin, end - 1, "\n".join(lines)))
        elif end > len(text):  # the last line, which nothing ends: the line end before it goes instead
            spans.append((max(begin - 1, 0), len(text), ""))
        else:
            spans.append((begin, end, ""))
    return spans
