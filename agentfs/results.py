"""Results of the methods, and the objects that some methods take: frozen dataclasses.

Every result has typed fields for the program, `.text` (also `str(result)`) for the model, and `.next`, the
call that continues it. The classes have no `slots`, because the MCP SDK then loses the output schema.
"""

from collections.abc import Sequence
from copy import copy
from dataclasses import KW_ONLY, dataclass, field, fields, is_dataclass
from typing import Any, Literal, Self, TypedDict, cast

from agentfs.base.advice import Advice, Names, NextCall, plural, say
from agentfs.base.lazy import resources
from agentfs.base.visible import one_line, quoted, to_json

Newline = Literal["\n", "\r\n", "\r", "mixed"]
EntryType = Literal["file", "directory", "symlink", "other"]

# Fields that repeat the data of a result as text.
TEXTS = frozenset({"text", "glob_note"})
_SCALARS = frozenset({str, int, bool, type(None)})


class Containment(TypedDict):
    """The report of `Workspace.containment`.

    Attributes:
        open: How paths are opened: "fd-walk" (name by name, on descriptors), which a process that swaps
            directories for links cannot lead astray.
        locks: "processes" if locks hold between processes, "threads" if only within this one.
        run: What confines commands: "staged" (namespaces, an overlay and a filter of system calls), "staged,
            unfiltered" (on a machine whose system calls are not known), "recorded" (nothing: they have the
            rights of the user), or None if there is no `run`.
    """

    open: Literal["fd-walk"]
    locks: Literal["processes", "threads"]
    run: Literal["staged", "staged, unfiltered", "recorded"] | None


@dataclass(frozen=True)
class WatchReport:
    """The report of `Workspace.watch`.

    Attributes:
        directories: Directories kept in memory; the system reports their changes.
        names: Names kept in these directories.
        texts: Files whose text is kept.
        text_bytes: The size of these texts.
        kept_bytes: The memory that the texts take.
        max_bytes: The bound on the memory for names and texts, `Limits.watch_bytes`.
        resets: How often everything was dropped since the workspace was opened, for example after a change
            of mounts.
        not_watched: Reasons why directories are not kept, each with their number. Searches read these
            directories from the disk. Directories below them are not counted.
    """

    directories: int
    names: int
    texts: int
    text_bytes: int
    kept_bytes: int
    max_bytes: int
    resets: int
    not_watched: dict[str, int]


@dataclass(frozen=True)
class Image:
    """An image for the model.

    Attributes:
        data: The bytes, encoded in base64.
        media_type: For example "image/png".
    """

    data: str
    media_type: str


@dataclass(frozen=True)
class Edit:
    """One replacement of `multi_edit`.

    Attributes:
        old_string: The exact text to replace, as in the file now.
        new_string: The text to put in its place.
        replace_all: Replace every occurrence instead of exactly one.
    """

    old_string: str
    new_string: str
    replace_all: bool = False


@dataclass(frozen=True)
class LineChange:
    """One change of `edit_lines`: to the line `line_id`, or to the lines `start_line_id` to `end_line_id`.

    Attributes:
        new_content: The lines to put there; empty deletes them.
        line_id: The line to replace.
        start_line_id: The first of several lines to replace.
        end_line_id: The last of several lines to replace.
    """

    _: KW_ONLY
    new_content: str
    line_id: str | None = None
    start_line_id: str | None = None
    end_line_id: str | None = None


@dataclass(frozen=True)
class Entry:
    """One name in a directory.

    Attributes:
        path: The path relative to the root, with `/`.
        name: The last part of the path.
        type: The kind of entry; a link is "symlink" whatever it leads to.
        is_dir: True for a directory, and for a link to one inside the root.
        size: Bytes of a file, or of the file inside the root that a link leads to; else None.
        mtime: Time of the last change in seconds since 1970, or None.
        ext: The extension without its dot, in lower case, or "".
        target: The target written in a link; None for a link out of the root and for other entries.
        protected: True if the contents are protected from reading.
        mount: "read-only" or "read-write" for a mount; None for other entries.
    """

    path: str
    name: str
    type: EntryType
    is_dir: bool
    size: int | None = None
    mtime: float | None = None
    ext: str = ""
    target: str | None = None
    protected: bool = False
    mount: Literal["read-only", "read-write"] | None = None


@dataclass(frozen=True)
class Match:
    """One matching line, or one match over several lines with `multiline`.

    Attributes:
        path: The path relative to the root, with `/`.
        line: The number of the first line, from 1.
        text: The line or lines without the last line end, cut around the match if very long.
        spans: Start and end of each match as character offsets in `text`.
        before: The lines shown before the match.
        after: The lines shown after the match.
        line_id: The id of the first line, if ids were requested.
        cut: Numbers of characters that `text` leaves out at its start and at its end. `text` marks each cut
            as `⟦+123 characters⟧`.
    """

    path: str
    line: int
    text: str
    spans: tuple[tuple[int, int], ...] = ()
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    line_id: str | None = None
    cut: tuple[int, int] = (0, 0)


@dataclass(frozen=True)
class FileCount:
    """Numbers of matches in one file.

    Attributes:
        lines: Lines with at least one match.
        matches: Matches.
    """

    lines: int
    matches: int


@dataclass(frozen=True)
class Skipped:
    """Numbers of names that a walk or a search left out, by reason.

    An ignored or hidden directory counts once; its entries are not counted.

    Attributes:
        hidden: Names that begin with a dot.
        ignored: Names that an ignore rule excludes.
        vcs: Version control directories, such as `.git`.
        protected: Files whose contents are protected from reading.
        binary: Files that are not text.
        too_large: Files over the `max_filesize` of a search.
        undecodable: Files whose text cannot be decoded.
        unreadable: Names that could not be read, or that vanished.
        symlink: Links that were not followed.
        special: FIFOs, sockets and devices.
        too_deep: Directories more than 100 levels below the start, or with paths too long for the system.
        long_lines: Files with lines that were not searched, because matching them takes too much memory.
        unread_rules: The first rule files that were too large or unreadable.
        rules: For `ignored`: each rule, as `file:line pattern`, with the number of names it excluded.
        reached: The limit that ended the walk early ("walk_entries", "timeout" or "memory"), or
            "directory_entries" if a directory has more than the walk looks at, or None.
    """

    hidden: int = 0
    ignored: int = 0
    vcs: int = 0
    protected: int = 0
    binary: int = 0
    too_large: int = 0
    undecodable: int = 0
    unreadable: int = 0
    symlink: int = 0
    special: int = 0
    too_deep: int = 0
    long_lines: int = 0
    unread_rules: tuple[str, ...] = ()
    rules: dict[str, int] = field(default_factory=dict[str, int])
    reached: str | None = None

    @property
    def total(self) -> int:
        """The number of names left out for any reason."""
        return sum(getattr(self, f.name) for f in fields(self) if f.type is int)

    def __bool__(self) -> bool:
        """Return True if anything was left out."""
        return self.total > 0 or self.reached is not None or bool(self.unread_rules)


@dataclass(frozen=True)
class FileChange:
    """The change of one path.

    Attributes:
        path: The path relative to the root, links resolved.
        action: The kind of change.
        type: The kind of entry, or its last kind if it is deleted.
        moved_from: The path from which the content was moved, or None.
        added: Lines that were added; None if they are not counted, as in a binary file.
        removed: Lines that were removed, or None.
        protected: True if the content is not shown, because it is protected or a rule denies reading it.
        label: The label of the last recording that changed it, or "".
    """

    path: str
    action: Literal["created", "changed", "deleted", "moved"]
    type: EntryType = "file"
    moved_from: str | None = None
    added: int | None = None
    removed: int | None = None
    protected: bool = False
    label: str = ""


@dataclass(frozen=True)
class Result:
    """The base of all results.

    Attributes:
        text: The text for the model.
        notes: The remarks in `text` that are not data, for example about names that were left out.
        next: The call that continues this result, or None if it is complete.
    """

    text: str = field(default="", kw_only=True, repr=False)
    notes: tuple[str, ...] = field(default=(), kw_only=True)
    next: NextCall | None = field(default=None, kw_only=True)

    def __str__(self) -> str:
        """Return `text`."""
        return self.text

    @property
    def summary(self) -> str:
        """One line for a person, or "" if the first line of the text serves as well."""
        return ""

    def in_names(self, names: Names) -> Self:
        """Return the result with its texts and its next call in the names of the available tools."""
        changed: dict[str, Any] = {} if self.next is None else {"next": names.call(self.next)}
        for name, value in vars(self).items():
            if isinstance(value, Advice):
                changed[name] = say(value, names)
            elif value and name in ("notes", "nothing"):
                changed[name] = tuple(filter(None, (say(note, names) for note in value)))
        if not changed:
            return self
        made = copy(self)  # takes a third of the time of `replace`
        vars(made).update(changed)
        return made

    def to_dict(self) -> dict[str, Any]:
        """Return the typed fields, ready for JSON, without the texts, which repeat them."""
        return {name: plain(value) for name, value in vars(self).items() if name not in TEXTS}


def plain(value: Any) -> Any:
    """Return a value with its dataclasses as dictionaries and its tuples as lists, ready for JSON."""
    if type(value) in _SCALARS:
        return value
    if isinstance(value, (list, tuple)):
        items = cast("list[Any]", value)
        return [item if type(item) in _SCALARS else plain(item) for item in items]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in cast("dict[str, Any]", value).items()}
    if is_dataclass(value) and not isinstance(value, type):
        return {name: plain(getattr(value, name)) for name in type(value).__dataclass_fields__}
    return value


@dataclass(frozen=True)
class ReadResult(Result):
    """The result of `read`.

    Attributes:
        path: The path relative to the root.
        kind: The kind of file.
        content: The exact text of the lines shown, their line ends included.
        start_line: The number of the first line shown, from 1; 0 if none is shown. In a notebook, cells
            are counted; in a PDF, pages; in a hex view, rows.
        end_line: The number of the last line shown; 0 if none is shown.
        total_lines: Lines in the file.
        total_exact: True if `total_lines` was counted to the end of the file.
        total_bytes: Bytes in the file.
        truncated_by: The limit that cut the result short, or None; a limit in the call does not count.
        encoding: The codec of the text, or None if the file is not text.
        newline: The line end of the file, "mixed", or None if it has none.
        bom: True if the file begins with a byte order mark.
        revision: A hash of the content, 32 hex digits; one that begins with `~` is made from size and time.
        images: Images for the model.
        line_ids: The id of each line shown, if ids were requested.
    """

    path: str
    kind: Literal["text", "image", "notebook", "pdf", "binary"]
    content: str = ""
    start_line: int = 0
    end_line: int = 0
    total_lines: int = 0
    total_bytes: int = 0
    revision: str = ""
    total_exact: bool = True
    truncated_by: Literal["lines", "bytes", "tokens", "line", "time"] | None = None
    encoding: str | None = None
    newline: Newline | None = None
    bom: bool = False
    images: tuple[Image, ...] = ()
    line_ids: tuple[str, ...] = ()

    @property
    def summary(self) -> str:
        """One line for a person."""
        return f"Read {one_line(self.path)}: lines {self.start_line}-{self.end_line} of {self.total_lines}"


@dataclass(frozen=True)
class WriteResult(Result):
    """The result of `write` and `append`.

    Attributes:
        path: The path relative to the root.
        created: True if the file is new.
        bytes_written: The size of the file now.
        diff: The change as a unified diff.
        revision: A hash of the content now.
    """

    path: str
    created: bool
    bytes_written: int
    diff: str
    revision: str

    @property
    def summary(self) -> str:
        """One line for a person."""
        done = "Created" if self.created else "Wrote"
        return f"{done} {one_line(self.path)}, {plural(self.bytes_written, 'byte')}"


@dataclass(frozen=True)
class EditResult(Result):
    """The result of `edit`, `multi_edit`, `edit_lines` and `splice`.

    Attributes:
        path: The path relative to the root.
        replacements: The number of places that were replaced.
        applied_via: How the place was found: "exact", "line_id", "offset", or the tolerant steps that the
            old text needed.
        diff: The change as a unified diff.
        changed: First and last line of each changed range, in the file as it is now.
        revision: A hash of the content now.
        lines_changed: For `edit_lines`: the sum, over its changes, of the larger number of old and new
            lines.
        newline: The line end that the file had, "mixed", or None if it had none.
        created: True if the file is new.
    """

    path: str
    replacements: int
    applied_via: str
    diff: str
    changed: tuple[tuple[int, int], ...]
    revision: str
    lines_changed: int | None = None
    newline: Newline | None = None
    created: bool = False

    @property
    def summary(self) -> str:
        """One line for a person."""
        if self.created:
            return f"Created {one_line(self.path)}"
        return f"Edited {one_line(self.path)}: {plural(self.replacements, 'replacement')}"


@dataclass(frozen=True)
class ReplaceResult(Result):
    """The result of `replace`.

    Attributes:
        files: The number of places that were replaced in each changed file, by its path.
        replacements: The number of places in all files.
        diff: The full change as a unified diff.
        skipped: Numbers of files that were not searched.
    """

    files: dict[str, int]
    replacements: int
    diff: str
    skipped: Skipped

    @property
    def summary(self) -> str:
        """One line for a person."""
        return f"{plural(self.replacements, 'replacement')} in {plural(len(self.files), 'file')}"


@dataclass(frozen=True)
class DeleteResult(Result):
    """The result of `delete`.

    Attributes:
        path: The deleted path, relative to the root.
        type: The kind of entry that was deleted.
        files: The number of files and links that were deleted.
    """

    path: str
    type: EntryType
    files: int = 1


@dataclass(frozen=True)
class DirectoryResult(Result):
    """The result of `mkdir`.

    Attributes:
        path: The directory, relative to the root.
        created: False if it existed.
    """

    path: str
    created: bool


@dataclass(frozen=True)
class MoveResult(Result):
    """The result of `move`.

    Attributes:
        path: The old path, relative to the root.
        to: The new path.
        type: The kind of entry that was moved.
        files: The number of files and links that were moved.
    """

    path: str
    to: str
    type: EntryType
    files: int = 1


@dataclass(frozen=True)
class ChangesResult(Result):
    """The result of `changes`.

    Attributes:
        files: The changed paths, in order.
        patch: The changes in git's format, for `git apply`; without directories, as git does not track them.
        since: The checkpoint that the tree is compared with, or None for the beginning.
    """

    files: tuple[FileChange, ...]
    patch: bytes
    since: str | None = None

    def to_dict(self) -> dict[str, Any]:
        r"""Return the typed fields, ready for JSON: the patch as text, bytes that are not UTF-8 as `\xe9`."""
        return {**super().to_dict(), "patch": self.patch.decode("utf-8", "backslashreplace")}


@dataclass(frozen=True)
class RecordedResult(ChangesResult):
    """The result of a recording: the changes in the tree while the block ran.

    Attributes:
        label: The label of the recording.
        lost: Changed paths that undo leaves as they are, because their old or new content is not kept, or
            because they may have existed before the recording at a place that it does not cover.
        not_covered: Numbers of paths that the recording only watches or leaves out, by reason, such as
            "ignored", "protected" or "too large".
    """

    label: str = ""
    lost: tuple[str, ...] = ()
    not_covered: dict[str, int] = field(default_factory=dict[str, int])


@dataclass(frozen=True)
class MergeResult(RecordedResult):
    """The result of `Branch.merge`: the changes of the parent.

    Attributes:
        merged: The paths whose texts hold the changes of both.
        equal: The paths that both have changed in the same way.
    """

    merged: tuple[str, ...] = ()
    equal: tuple[str, ...] = ()


@dataclass(frozen=True)
class RunResult(Result):
    """The result of `run`.

    Attributes:
        exit_status: The exit status of the command, 128 and more for a signal; None if it has not ended, or
            was stopped at the timeout.
        stdout: The bytes of its standard output, up to `Limits.file_bytes`.
        stderr: The bytes of its standard error, likewise.
        changes: What it has changed, as `changes` returns it.
        duration: The seconds that it ran.
        timed_out: True if it was stopped at the timeout.
        confinement: "staged" or "recorded", as `Policy.run`.
        network: True if it had the network of the system.
        truncated: True if `stdout` or `stderr` was longer.
        id: The id to pass to `output` and `stop`, of a command in the background.
    """

    exit_status: int | None
    stdout: bytes
    stderr: bytes
    changes: RecordedResult
    duration: float
    timed_out: bool
    confinement: Literal["staged", "recorded"]
    network: bool = False
    truncated: bool = False
    id: str | None = None

    def to_dict(self) -> dict[str, Any]:
        r"""Return the typed fields, ready for JSON; bytes as text, those that are not UTF-8 as `\xe9`."""
        texts = {name: vars(self)[name].decode("utf-8", "backslashreplace") for name in ("stdout", "stderr")}
        return {**super().to_dict(), **texts, "changes": self.changes.to_dict()}


@dataclass(frozen=True)
class CommandOutput(Result):
    """The result of `output`: what a command in the background has written.

    Attributes:
        id: The id of the command.
        offset: The offset of the next byte, to pass to `output` for what comes later.
        running: True if the command has not ended.
        exit_status: Its exit status; None while it runs.
    """

    id: str
    offset: int
    running: bool
    exit_status: int | None


@dataclass(frozen=True)
class UndoResult(Result):
    """The result of `undo`, `redo` and `rollback`.

    Attributes:
        steps: The number of steps that were undone, or redone.
        files: The change of each path.
        undoable: The number of steps that can still be undone.
        redoable: The number of steps that can be redone.
    """

    steps: int
    files: tuple[FileChange, ...]
    undoable: int
    redoable: int


@dataclass(frozen=True)
class Origin:
    """The author of a line.

    Attributes:
        kind: "tool", "command" (recorded or run), "formatter" (of `Policy.after_change`), "program" (by
            `Workspace.host` or a review), or "other" for another program.
        name: The name of the tool or of the program's method, the label of the command, the formatter's
            command, or "".
    """

    kind: Literal["tool", "command", "formatter", "program", "other"]
    name: str = ""

    def __str__(self) -> str:
        """Return the kind and the name, such as "tool edit"."""
        return "another program" if self.kind == "other" else f"{self.kind} {self.name}".rstrip()


@dataclass(frozen=True)
class Hunk:
    """Lines that changed together. A change that is not of lines, such as of the mode, has none.

    Attributes:
        id: A short name, the same in every review while the hunk is.
        path: The path of its file, relative to the root.
        old_start: The number of the first old line, from 1; if there is none, of the line before.
        old_lines: The old lines with their ends. Only a rename has unchanged lines between its changes.
        new_start: The number of the first new line, likewise.
        new_lines: The new lines.
        origins: The author of each new line; of a deletion, or if there are no lines, one author.
        note: What changed, if it is not lines, such as "mode 644 to 755"; else "".
    """

    id: str
    path: str
    old_start: int
    old_lines: tuple[str, ...]
    new_start: int
    new_lines: tuple[str, ...]
    origins: tuple[Origin, ...]
    note: str = ""

    @property
    def where(self) -> str:
        """The new lines as a text, or the place of a deletion, or the note."""
        if self.note:
            return self.note
        if not self.new_lines:
            return f"after line {self.new_start}"
        last = self.new_start + len(self.new_lines) - 1
        return f"line {last}" if last == self.new_start else f"lines {self.new_start}-{last}"

    @property
    def by(self) -> str:
        """The authors of its lines, joined by commas."""
        return ", ".join(dict.fromkeys(map(str, self.origins)))


@dataclass(frozen=True)
class FileReview:
    """The changes of one file.

    Attributes:
        path: The path relative to the root.
        kind: The kind of change; "mode" if nothing else changed, "binary" for a change of binary content.
        hunks: Its hunks, in order; none if the content may not be shown.
        old_path: The old path of a renamed file.
    """

    path: str
    kind: Literal["created", "changed", "deleted", "renamed", "mode", "binary"]
    hunks: tuple[Hunk, ...]
    old_path: str | None = None


@dataclass(frozen=True)
class ReviewedPlace:
    """A place where a review has changed a file.

    Attributes:
        path: The path of the file.
        line: The number of its first line now, from 1; 0 if it is not about lines.
        lines: How many lines are there now.
        before: How many lines were there before.
        action: What was done with the hunk.
        note: What was done, if it is not about lines; else "".
    """

    path: str
    line: int
    lines: int
    before: int
    action: Literal["taken back", "edited"]
    note: str = ""

    @property
    def where(self) -> str:
        """The place as a text."""
        last = self.line + self.lines - 1
        lines = f"line {last}" if self.lines == 1 else f"lines {self.line}-{last}"
        place = self.note or (lines if self.lines else f"lines removed after line {self.line - 1}")
        return f'"{quoted(self.path)}" ({place})'


@dataclass(frozen=True)
class ReviewedResult(Result):
    """The result of `apply_review`.

    Attributes:
        accepted: The number of hunks that were accepted.
        places: The places of the hunks that were taken back or edited.
    """

    accepted: int
    places: tuple[ReviewedPlace, ...]


@dataclass(frozen=True)
class Review(Result):
    """The result of `review`: what has changed, in hunks that can be accepted or taken back.

    Attributes:
        files: The changed files, in order of path.
        since: The checkpoint after which a step has written in each hunk; None for all hunks.
    """

    files: tuple[FileReview, ...]
    since: str | None = None

    @property
    def hunks(self) -> tuple[Hunk, ...]:
        """All hunks, in order."""
        return tuple(hunk for file in self.files for hunk in file.hunks)

    @property
    def summary(self) -> str:
        """One line for a person."""
        return f"{plural(len(self.files), 'file')}, {plural(len(self.hunks), 'hunk')}"

    def to_json(self) -> str:
        """Return the review as JSON text."""
        return to_json(self.to_dict())

    def to_html(self) -> str:
        """Return the review as one HTML page for a browser, which needs no network.

        Its marks are downloaded as JSON, which `apply_review` and `agentfs review --apply` take.
        """
        page = resources.files("agentfs").joinpath("review.html").read_text("utf-8")
        # The script of the page shows the data as text, and never as HTML.
        data = self.to_json().replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
        return page.replace('"REVIEW"', data, 1)


def reviewed_text(places: Sequence[ReviewedPlace]) -> str:
    """Return a text that tells a model what a review took back or edited."""
    if not places:
        return "The user reviewed your changes and took none of them back."
    parts = [
        f"{action.capitalize()}: {', '.join(each.where for each in places if each.action == action)}."
        for action in dict.fromkeys(each.action for each in places)
    ]
    return " ".join(
        ["The user reviewed your changes.", *parts, "Do not make these changes again unless asked."]
    )


@dataclass(frozen=True)
class CheckpointResult(Result):
    """The result of `checkpoint`.

    Attributes:
        name: The name to pass to `rollback` and `changes`.
        steps: The number of steps made before the checkpoint.
    """

    name: str
    steps: int


@dataclass(frozen=True)
class ListResult(Result):
    """The result of `ls`.

    Attributes:
        entries: The entries of this page: directories first, then files, by name.
        total: Entries on all pages.
        skipped: Numbers of entries that were left out.
        truncated: True if entries follow after this page.
    """

    entries: list[Entry]
    total: int
    skipped: Skipped
    truncated: bool = False

    @property
    def summary(self) -> str:
        """One line for a person."""
        return plural(self.total, "entry", "entries")


@dataclass(frozen=True)
class GlobResult(Result):
    """The result of `glob` and `find`.

    Attributes:
        files: The files of this page.
        total: Files on all pages.
        exact: True if `total` is exact; otherwise it is a lower bound.
        skipped: Numbers of names that were left out.
        truncated: True if files follow after this page.
        elapsed_ms: Milliseconds that the search took.
        nothing: If nothing was found: a text about the search, and a hint where a file would be found.
        glob_note: The one of the notes that says how globs were read, if not literally; else "".
    """

    files: list[Entry]
    total: int
    skipped: Skipped
    exact: bool = True
    truncated: bool = False
    elapsed_ms: int = 0
    nothing: tuple[str, ...] = ()
    glob_note: str = field(default="", repr=False, compare=False)

    @property
    def summary(self) -> str:
        """One line for a person."""
        return plural(self.total, "file")


@dataclass(frozen=True)
class GrepResult(Result):
    """The result of `grep`.

    Attributes:
        matches: The matches of this page ("content"), or a few samples ("summary").
        counts: Numbers of matches in each file of this page, by its path; none in mode "total".
        total_matches: Matches on all pages.
        total_lines: Matching lines on all pages.
        total_files: Files with a match on all pages.
        exact: True if the totals are exact; otherwise they are lower bounds.
        truncated: True if matches or files follow after this page.
        skipped: Numbers of files that were left out.
        searched_files: Files whose content was searched.
        elapsed_ms: Milliseconds that the search took.
        nothing: If nothing was found: a sentence about the search, and hints where a match would be found.
        glob_note: As in `GlobResult`.
    """

    matches: list[Match]
    counts: dict[str, FileCount]
    total_matches: int
    total_lines: int
    total_files: int
    skipped: Skipped
    exact: bool = True
    truncated: bool = False
    searched_files: int = 0
    elapsed_ms: int = 0
    nothing: tuple[str, ...] = ()
    glob_note: str = field(default="", repr=False, compare=False)

    @property
    def summary(self) -> str:
        """One line for a person."""
        return f"{plural(self.total_matches, 'match', 'matches')} in {plural(self.total_files, 'file')}"


@dataclass(frozen=True)
class PullResult(Result):
    """The result of `StoredTree.pull`, with sorted paths.

    Attributes:
        pulled: Paths that now have what the store has.
        deleted: Paths that were deleted in the store, and now here.
        merged: Paths that now have the changes of both.
        conflicts: Paths that stay as they are here, because both have changed the same lines. The text of the
            store is at the same path below `.agentfs/conflicts/`.
        left_out: Paths of the store that were not pulled, by reason.
        truncated: True if the time was up; the next pull continues.
    """

    pulled: tuple[str, ...]
    deleted: tuple[str, ...]
    merged: tuple[str, ...]
    conflicts: tuple[str, ...]
    left_out: dict[str, tuple[str, ...]]
    truncated: bool


@dataclass(frozen=True)
class PushResult(Result):
    """The result of `StoredTree.push`, with sorted paths.

    Attributes:
        pushed: Paths whose present state is now in the store.
        deleted: Paths that were deleted in the store.
        merged: Paths that now have, here too, what others have pushed meanwhile.
        conflicts: Paths that were not pushed, because others have changed the same lines. The text of the
            store is at the same path below `.agentfs/conflicts/`.
        left_out: Paths that were not pushed for another reason, by reason.
        truncated: True if the time was up; the next push continues.
    """

    pushed: tuple[str, ...]
    deleted: tuple[str, ...]
    merged: tuple[str, ...]
    conflicts: tuple[str, ...]
    left_out: dict[str, tuple[str, ...]]
    truncated: bool


@dataclass(frozen=True)
class StoreStatus(Result):
    """The result of `StoredTree.status`, with sorted paths.

    Attributes:
        to_pull: Paths that have changed in the store since the last pull or push.
        to_push: Paths that have changed here. A path that is in both has changed on both sides.
        left_out: Paths that are neither pulled nor pushed, by reason.
        truncated: True if there are more paths than are named.
    """

    to_pull: tuple[str, ...]
    to_push: tuple[str, ...]
    left_out: dict[str, tuple[str, ...]]
    truncated: bool


@dataclass(frozen=True)
class Coercion:
    """An argument that did not fit the schema and was converted.

    Attributes:
        parameter: The argument, such as `limit` or `edits[0].old_string`.
        rule: The conversion: `"10" as integer`, `alias "file_path"`, `JSON text as a list`.
    """

    parameter: str
    rule: str


@dataclass(frozen=True)
class ToolResult:
    """The result of a tool call. Nothing that a model can send raises an exception instead.

    Attributes:
        success: True if the call succeeded.
        content: The text for the model.
        short_result: One short line for a person.
        error: `code` and `message` of the failure, or None.
        images: Images for the model.
        file_path: The file of the call, or None.
        data: The typed result, ready for JSON.
        next: The call that continues this result, or None.
        coercions: The arguments that did not fit the schema and were converted.
        notes: More text for the model, if `content` has the exact form of another contract.
    """

    success: bool
    content: str
    short_result: str = ""
    error: dict[str, Any] | None = None
    images: tuple[Image, ...] = ()
    file_path: str | None = None
    data: Any = None
    next: NextCall | None = None
    coercions: tuple[Coercion, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def content_with_notes(self) -> str:
        """`content`, and each note in brackets on its own line."""
        return "\n".join([self.content, *(f"[{note}]" for note in self.notes)])

    def __str__(self) -> str:
        """Return `content`."""
        return self.content

    def to_dict(self) -> dict[str, Any]:
        """Return all fields, ready for JSON."""
        return {name: plain(value) for name, value in vars(self).items()}
