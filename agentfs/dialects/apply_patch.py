"""The dialect `apply-patch`: OpenAI's V4A patches, which are applied as a whole or not at all.

Parsing is as lenient as OpenAI's own: it takes blanks around markers, a heredoc around the patch, a first
hunk without `@@`, and blank lines between hunks or as blank context. It also takes a code fence. Locating is
stricter: the lines of a hunk must occur exactly once. `docs/reference/dialects/apply-patch.md` compares it
with the contract.
"""

import inspect
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, takewhile
from typing import Annotated, Literal, NamedTuple

from agentfs import AgentFSError, ToolResult, Workspace
from agentfs.dialects import toolkit as kit
from agentfs.errors import AlreadyExistsError, AmbiguousError, InvalidArgumentError, NoMatchError

_Span = tuple[int, int, str]

MAX_LINES = 500_000
_BEGIN, _END = "*** Begin Patch", "*** End Patch"
_HEADER = re.compile(r"\*\*\* (Add|Delete|Update) File: (.+)")
_MOVE = re.compile(r"\*\*\* Move to: (.+)")
_END_OF_FILE = "*** End of File"
_LINE_NUMBERS = re.compile(r"-\d+(,\d+)? \+\d+(,\d+)? @@.*")
_HEREDOC = re.compile(
    r"""(?:(?:cat|apply_?patch)\s*)?<<-?\s*(?P<quote>['"]?)(?P<word>[^\s'"]+)(?P=quote)"""
    r"(?:\s*\|\s*apply_?patch)?\s*\n(?P<patch>.*)\n\s*(?P=word)",
    re.DOTALL,
)
_UNCHANGED = "Nothing was changed."
_FENCE = re.compile(r"(?P<fence>`{3,}|~{3,})\w*\n(?P<patch>.*)\n(?P=fence)", re.DOTALL)


@dataclass(frozen=True)
class PatchHunk:
    """One change of a file, somewhere below the lines of `anchors`. Each line begins with " ", "-" or "+"."""

    anchors: tuple[str, ...]
    lines: tuple[str, ...]
    at_end: bool  # of the file

    @property
    def old(self) -> tuple[str, ...]:
        """The lines before the change: context and removed lines."""
        return tuple(line[1:] for line in self.lines if line[0] != "+")

    @property
    def new(self) -> tuple[str, ...]:
        """The lines after the change: context and added lines."""
        return tuple(line[1:] for line in self.lines if line[0] != "-")


@dataclass(frozen=True)
class Operation:
    """The change of one file. "add" has `content`, "update" has `hunks` and `to`, the new path."""

    kind: Literal["add", "delete", "update"]
    path: str
    content: str = ""
    to: str | None = None
    hunks: tuple[PatchHunk, ...] = ()


def read_patch(text: str) -> list[Operation]:
    """Parse a patch; an error names the line and what is expected there."""
    if text.count("\n") > MAX_LINES:
        raise _invalid(MAX_LINES, "the patch is too long here; send several patches")
    text = text.replace("\r\n", "\n").strip()
    for around in (_FENCE, _HEREDOC):
        found = around.fullmatch(text)
        text = found["patch"].strip() if found else text
    lines = text.split("\n")
    if lines[0].strip() != _BEGIN:
        raise _invalid(1, f"the first line of the patch must be '{_BEGIN}'")
    if lines[-1].strip() != _END or len(lines) == 1:
        raise _invalid(len(lines), f"the last line of the patch must be '{_END}'")
    return _Parser([*lines[:-1], _END]).operations()


def _invalid(line: int, why: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"Invalid patch, line {line}: {why}.",
        hint="Send the whole patch again.",
        details={"parameter": "input", "line": line},
    )


class _Parser:
    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = lines
        self._position = 1

    def operations(self) -> list[Operation]:
        found: list[Operation] = []
        while self._skip_blank_lines():
            line = self._lines[self._position].strip()
            header = _HEADER.fullmatch(line)
            if header is None:
                headers = ", ".join(f"'*** {kind} File: path'" for kind in ("Add", "Delete", "Update"))
                raise self._wrong(f"{kit.literal(line[:80])} is not the header of a file; use {headers}")
            self._position += 1
            path = header[2].strip()
            if header[1] == "Add":
                added = self._take_while(lambda line: line.startswith("+"))
                found.append(Operation("add", path, content=_joined([line[1:] for line in added])))
            elif header[1] == "Delete":
                found.append(Operation("delete", path))
            else:
                found.append(self._update(path))
        if not found:
            raise self._wrong("the patch changes no file")
        return found

    def _update(self, path: str) -> Operation:
        to = None
        if moved := _MOVE.fullmatch(self._lines[self._position].strip()):
            to = moved[1].strip()
            self._position += 1
        hunks: list[PatchHunk] = []
        while self._skip_blank_lines() and not self._at_header():
            hunks.append(self._hunk(first=not hunks))
        if not hunks and to is None:
            raise self._wrong(f"the update of {kit.literal(path)} is empty")
        return Operation("update", path, to=to, hunks=tuple(hunks))

    def _at_header(self) -> bool:
        """Return True if a line is not of a hunk; ` *** x` is context, unless it is the header of a file."""
        line = self._lines[self._position]
        return line.startswith("***") or _HEADER.fullmatch(line.strip()) is not None

    def _hunk(self, *, first: bool) -> PatchHunk:
        headers = self._take_while(lambda line: line.startswith("@@"))
        if not headers and not first:
            raise self._wrong(
                f"a hunk begins with '@@', not with {kit.literal(self._lines[self._position][:80])}"
            )
        names = [line[2:].removeprefix(" ") for line in headers]
        # `@@ -1,2 +3,4 @@` belongs to another format, and models get its numbers wrong.
        anchors = [name for name in names if name.strip() and not _LINE_NUMBERS.fullmatch(name)]
        lines = self._take_while(lambda line: line[:1] in {"", *" +-"} and line.strip() != _END_OF_FILE)
        at_end = bool(lines) and self._lines[self._position].strip() == _END_OF_FILE
        self._position += at_end
        if not lines:
            raise self._wrong("a line of a hunk begins with ' ' (context), '+' (added) or '-' (removed)")
        return PatchHunk(tuple(anchors), tuple(line or " " for line in lines), at_end=at_end)

    def _take_while(self, condition: Callable[[str], bool]) -> list[str]:
        start = self._position
        while condition(self._lines[self._position]):
            self._position += 1
        return list(self._lines[start : self._position])

    def _skip_blank_lines(self) -> bool:
        """Skip blank lines; return True if another line follows before the end marker."""
        self._take_while(lambda line: not line.strip())
        return self._position < len(self._lines) - 1

    def _wrong(self, why: str) -> InvalidArgumentError:
        return _invalid(self._position + 1, why)


class _Location(NamedTuple):
    """The range of a hunk's old lines in a text, the changes in it, and the tolerant step used, or ""."""

    start: int
    end: int
    changes: list[_Span]
    via: str = ""


def locate_hunks(text: str, hunks: Sequence[PatchHunk], path: str) -> tuple[list[_Span], list[str]]:
    """Return the changes that hunks make to a text, and notes on hunks that only a tolerant step found."""
    file = _File(text if text.endswith("\n") or not text else f"{text}\n", path)
    spans: list[_Span] = []
    notes: list[str] = []
    begin = 0
    previous_anchors: tuple[str, ...] = ()
    for number, hunk in enumerate(hunks, 1):
        kit.check()
        try:
            location = file.locate(hunk, begin, previous_anchors)
        except (NoMatchError, AmbiguousError) as error:
            message = f"Hunk {number} of {kit.quote(path)}: {error.message}"
            raise type(error)(message, hint=error.hint, details={**error.details, "hunk": number}) from None
        if location.via:
            notes.append(f"hunk {number} was found by {location.via.replace('_', ' ')}")
        spans += location.changes
        if hunk.old or hunk.anchors:  # other hunks only add lines at the end of the file
            begin, previous_anchors = location.end, hunk.anchors or previous_anchors
    spans.sort(key=lambda span: span[:2])
    return spans if file.text == text else _without_final_newline(spans, len(text)), notes


def _without_final_newline(spans: list[_Span], size: int) -> list[_Span]:
    """Adapt changes of whole lines to a text without a final line end, and add none."""
    start, new = size + 1, ""
    while spans and spans[-1][1] == start:
        start, _, added = spans.pop()
        new = added + new
    if start > size:
        last = [(size, size, f"\n{new[:-1]}")] if new else []
    else:
        last = [(start, size, new[:-1]) if new else (max(start - 1, 0), size, "")]
    return spans + last


@dataclass(frozen=True)
class _File:
    """The text of a file, whose last line is ended, and its path."""

    text: str
    path: str

    def locate(self, hunk: PatchHunk, begin: int, previous_anchors: tuple[str, ...]) -> _Location:
        """Locate a hunk below the previous one, whose anchors it may repeat.

        Repeated anchors name the previous hunk's lines, or equal lines further down. If the two readings
        lead to different places, the hunk is ambiguous.
        """
        pairs = zip(previous_anchors, hunk.anchors, strict=False)
        repeated = len(list(takewhile(lambda pair: pair[0] == pair[1], pairs)))
        locations: list[_Location] = []
        failure: AgentFSError | None = None
        for skipped in dict.fromkeys((0, repeated)):
            try:
                start = begin
                for anchor in hunk.anchors[skipped:]:
                    start = self._after_anchor(anchor, start)
                locations.append(self._locate_lines(hunk, start, below=begin > 0))
            except (NoMatchError, AmbiguousError) as error:
                failure = error
        if not locations and failure is not None:
            raise failure
        return self._only(hunk, locations)

    def _after_anchor(self, anchor: str, start: int) -> int:
        """Return the offset after the next line that equals an anchor."""
        for normalize in (str, str.rstrip, str.strip):
            kit.check()
            position = start
            while position < len(self.text):
                end = self.text.index("\n", position)
                if normalize(self.text[position:end]) == normalize(anchor):
                    return end + 1
                position = end + 1
        raise NoMatchError(
            f"the line {kit.quote(anchor.strip())} after '@@' is not in the file.",
            hint="After '@@', write a whole line of the file, below the previous hunk.",
            details={"path": self.path, "cause": "absent", "anchor": anchor},
        )

    def _locate_lines(self, hunk: PatchHunk, start: int, *, below: bool) -> _Location:
        """Locate the old lines of a hunk after an offset."""
        if not hunk.old:
            at = start if hunk.anchors else len(self.text)
            return _Location(at, at, _changes(hunk.lines, at, [], hunk.new))
        variants = [hunk]
        if hunk.lines[-1] == " " and len(hunk.old) > 1:  # a blank last line may mean the end of the file
            variants.append(replace(hunk, lines=hunk.lines[:-1]))
        for find in (self._exact, self._tolerant):
            for variant in variants:
                if locations := find(variant, start):
                    return self._only(variant, locations)
        where = f"{' below the previous hunk' if below else ''}{' at the end' if hunk.at_end else ''}"
        old, new = "\n".join(hunk.old), "\n".join(hunk.new)
        raise NoMatchError(
            f"its lines are not in the file{where}.",
            hint="Copy the lines from the file exactly, and send the whole patch again.",
            details=kit.explain_no_match(self.text, old, new, self.path).details,
        )

    def _exact(self, hunk: PatchHunk, start: int) -> list[_Location]:
        """Return the places where the old lines occur exactly; below anchors, only the first."""
        block = _joined(hunk.old)
        # With the line end before it, only whole lines are found.
        places = [at + 1 for at in kit.occurrences(self.text, f"\n{block}", max(start - 1, 0))]
        if start == 0 and self.text.startswith(block):
            places.insert(0, 0)
        if hunk.at_end:
            places = [at for at in places if at + len(block) == len(self.text)]
        return [
            _Location(at, at + len(block), _changes(hunk.lines, at, hunk.old, hunk.new))
            for at in (places[:1] if hunk.anchors else places)
        ]

    def _tolerant(self, hunk: PatchHunk, start: int) -> list[_Location]:
        """Return the places of lines that differ a little from the old ones."""
        region = self.text[start:]
        via, found = kit.tolerant_matches(region, _joined(hunk.old), _joined(hunk.new))
        locations: list[_Location] = []
        for match in found:
            actual = region[match.start : match.end].split("\n")[:-1]
            adapted = match.new.split("\n")[:-1]
            whole_lines = match.start == 0 or region[match.start - 1] == "\n"
            same_count = (len(actual), len(adapted)) == (len(hunk.old), len(hunk.new))
            if whole_lines and same_count and (match.end == len(region) or not hunk.at_end):
                at = start + match.start
                changes = _changes(hunk.lines, at, actual, adapted)
                locations.append(_Location(at, start + match.end, changes, via))
        return locations

    def _only(self, hunk: PatchHunk, locations: Sequence[_Location]) -> _Location:
        """Return the location, or raise an error if they differ."""
        starts = sorted({location.start for location in locations})
        if len(starts) > 1:
            raise AmbiguousError(
                "its lines occur at several places.",
                hint="Add lines of context, or name the class or function above with '@@'.",
                details=kit.explain_ambiguous(self.text, "\n".join(hunk.old), starts, self.path).details,
            )
        return locations[0]


def _joined(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _changes(lines: Sequence[str], start: int, old: Sequence[str], new: Sequence[str]) -> list[_Span]:
    """Return the changes of a hunk whose old lines are at `start`: the file's lines `old` become `new`."""
    spans: list[_Span] = []
    before, after = iter(old), iter(new)
    position = start
    for unchanged, group in groupby(lines, key=lambda line: line[0] == " "):
        begin = position
        added: list[str] = []
        for line in group:
            if line[0] != "+":
                position += len(next(before)) + 1
            if line[0] != "-":
                added.append(next(after))
        if not unchanged:
            spans.append((begin, position, _joined(added)))
    return spans


def _tools(workspace: Workspace) -> Sequence[kit.Tool]:
    # A call with the parameter `patch`, as other products have it, works too.
    def apply_patch(patch: Annotated[str, kit.Name("input")]) -> ToolResult:
        """Change files by a patch: it is made as a whole, or not at all.

        A patch looks like this:
        *** Begin Patch
        *** Add File: hello.txt
        +Hello world
        *** Update File: src/app.py
        *** Move to: src/main.py
        @@ def greet():
        -print("Hi")
        +print("Hello, world!")
        *** Delete File: obsolete.txt
        *** End Patch
        Each file has a header: Add (each line begins with +), Delete (nothing follows) or Update (a line
        *** Move to may follow). A line of an update begins with a space (context), - (removed) or + (added).
        Show 3 lines of context above and below each change; if they do not name one place, put the line of
        the class or function above it after @@, if need be in several @@ lines. *** End of File after a
        change says that it is at the end of the file. Paths are relative to the workspace root.

        Args:
            patch: The whole patch, from `*** Begin Patch` to `*** End Patch`.
        """
        try:
            operations = read_patch(patch)
            with workspace.transaction() as changes:
                notes = [note for operation in operations for note in _apply(changes, operation)]
        except AgentFSError as error:
            if error.details.get("applied", False) is False:  # None if a connection was lost
                # Notes name what could not be taken back.
                error.hint = kit.Joined(" ", *getattr(error, "__notes__", [_UNCHANGED]), error.hint)
            raise
        return _result(operations, notes)

    text = (inspect.getdoc(apply_patch) or "").partition("\n\nArgs:")[0]  # with its lines apart
    return [kit.Tool(function=apply_patch, text=text, effect="write")]


def _apply(workspace: Workspace, operation: Operation) -> list[str]:
    """Carry an operation out and return notes on it."""
    path, to = operation.path, operation.to
    notes: Sequence[str] = ()
    if operation.kind == "add":
        notes = workspace.write(path, operation.content).notes
    elif operation.kind == "delete":
        workspace.delete(path)
    elif operation.hunks:
        hunks = kit.SpliceOptions(path, lambda text: locate_hunks(text, operation.hunks, path))
        notes = kit.edit(workspace, hunks).notes
    if to is not None:
        try:
            workspace.move(path, to)
        except AlreadyExistsError as error:
            if not error.details.get("same"):
                workspace.write(to, "", preview=True)  # raises an error unless it may be replaced
                workspace.delete(to)
                workspace.move(path, to)
    return [f"[{kit.one_line(path)}: {note}]" for note in notes]


def _result(operations: Sequence[Operation], notes: Sequence[str]) -> ToolResult:
    letters = {"add": "A", "delete": "D", "update": "M"}
    lines = [f"{letters[each.kind]} {kit.one_line(each.to or each.path)}" for each in operations]
    files = [{"kind": each.kind, "path": each.path, "to": each.to} for each in operations]
    return ToolResult(
        True,
        "\n".join(["Success. Updated the following files:", *lines, *notes]),
        f"Patched {kit.plural(len(files), 'file')}",
        file_path=files[0]["path"] if len(files) == 1 else None,
        data={"files": files, "notes": notes},
    )


DIALECT = kit.Dialect("apply-patch", _tools)
