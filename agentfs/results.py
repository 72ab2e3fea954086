"""What the methods return and take: frozen dataclasses, ready for a program, for JSON and for a model.

Every result has its fields for the program, `.text` (also `str(result)`) for the model, and `.next`, the call
that continues it. The classes have no `slots`, because the MCP SDK then loses the output schema.
"""

from copy import copy
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, Literal, Self, TypedDict, cast

from agentfs.advice import Advice, Names, NextCall, plural, say
from agentfs.visible import one_line

Newline = Literal["\n", "\r\n", "\r", "mixed"]
EntryType = Literal["file", "directory", "symlink", "other"]

# The fields of a result that are no part of its data.
TEXTS = frozenset({"text", "whole"})


class Containment(TypedDict):
    """What `Workspace.containment` reports.

    Attributes:
        open: How paths are opened: "openat2" (by the kernel) or "fd-walk" (name by name, on descriptors).
        atomic: Whether another process that swaps directories for links can lead no call astray.
        locks: Whether "processes" or only "threads" of this one are kept from overwriting each other's work.
    """

    open: Literal["openat2", "fd-walk"]
    atomic: bool
    locks: Literal["processes", "threads"]


@dataclass(frozen=True)
class WatchReport:
    """What `Workspace.watch` reports.

    Attributes:
        directories: Directories that are kept; the system reports their changes.
        names: Names that are kept in these directories.
        texts: Files whose text is kept.
        text_bytes: The size of these texts.
        kept_bytes: The memory that they take.
        max_bytes: The bound of that memory and of that of the names, `Limits.watch_bytes`.
        resets: How often all was dropped since the workspace was opened, as after a change of mounts.
        not_watched: Why directories are not kept, so that searches read them from the disk, each with their
            number. What is below them is not counted.
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
        data: The bytes in base64.
        media_type: For example "image/png".
    """

    data: str
    media_type: str


@dataclass(frozen=True)
class Edit:
    """One replacement of `multi_edit`.

    Attributes:
        old_string: The exact text to replace, as the file has it now.
        new_string: The text to put in its place.
        replace_all: Replace every occurrence instead of exactly one.
    """

    old_string: str
    new_string: str
    replace_all: bool = False


@dataclass(frozen=True, kw_only=True)
class LineChange:
    """One change of `edit_lines`: of the line `line_id`, or of those from `start_line_id` to `end_line_id`.

    Attributes:
        new_content: The lines to put there; empty deletes them.
        line_id: The line to replace.
        start_line_id: The first line to replace, for several.
        end_line_id: The last of them.
    """

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
        type: What it is; a link is "symlink" whatever it leads to.
        is_dir: Whether it is a directory, or a link that leads to one inside the root.
        size: Bytes of a file, or of the file inside the root that a link leads to; else None.
        mtime: Time of the last change in seconds since 1970, or None.
        ext: The extension without its dot, in lower case, or "".
        target: Where a link points, as written in the link, or None; None too for a link out of the root.
        protected: Whether the contents are protected from reading.
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


@dataclass(frozen=True)
class Match:
    """One matching line, or one match over several lines with `multiline`.

    Attributes:
        path: The path relative to the root, with `/`.
        line: The number of the first line, from 1.
        text: The line or lines without the last line end, cut around the match when very long.
        spans: Start and end of each match as character offsets in `text`.
        before: The lines shown before it.
        after: The lines shown after it.
        line_id: The id of the first line, where ids were asked for.
        cut: Characters of the line or lines that `text` leaves out before what it shows, and behind it; where
            there are some, `text` says so in `⟦+123 characters⟧`.
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
    """What a search found in one file.

    Attributes:
        lines: Lines with at least one match.
        matches: Matches.
    """

    lines: int
    matches: int


@dataclass(frozen=True)
class Skipped:
    """What a walk or a search left out, counted by reason.

    An ignored or hidden directory counts once; what lies in it is not looked at.

    Attributes:
        hidden: Names that begin with a dot.
        ignored: Names that an ignore rule excludes.
        vcs: The directories of version control, such as `.git`.
        protected: Files whose contents are protected from reading.
        binary: Files that are not text.
        too_large: Files over `Limits.file_bytes`.
        undecodable: Files whose text cannot be decoded.
        unreadable: Names that could not be read, or that vanished.
        symlink: Links that were not followed.
        special: FIFOs, sockets and devices.
        too_deep: Directories so deep that no path can name what lies in them.
        long_lines: Files in which lines were not searched, as matching such long ones takes too much memory.
        unread_rules: The first of the rule files that were not read, as they are too large, or could not be.
        rules: For `ignored`: each rule, as `file:line pattern`, with the number of names it excluded.
        reached: The limit that ended the walk early ("walk_entries", "timeout" or "memory"), or None.
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
        """The number of names left out, for whatever reason."""
        return sum(getattr(self, f.name) for f in fields(self) if f.type is int)

    def __bool__(self) -> bool:
        """Return whether anything was left out."""
        return self.total > 0 or self.reached is not None or bool(self.unread_rules)


@dataclass(frozen=True)
class FileChange:
    """What was done to one path.

    Attributes:
        path: The path relative to the root, links resolved.
        action: What happened to it; "moved" includes a move with changes of the content.
        type: What it is, or was.
        moved_from: The old path of a file that was moved, or None.
        added: Lines that were added; None where they are not counted, as in a binary file.
        removed: Lines that were removed, or None.
        protected: Whether its content is not shown, because it is protected or a rule denies reading it.
        others: First and last line of each range that another program has changed; None for a file that is
            as the workspace left it.
        label: The label of the last recording that changed it, or "".
    """

    path: str
    action: Literal["created", "changed", "deleted", "moved"]
    type: EntryType = "file"
    moved_from: str | None = None
    added: int | None = None
    removed: int | None = None
    protected: bool = False
    others: tuple[tuple[int, int], ...] | None = None
    label: str = ""


@dataclass(frozen=True)
class Result:
    """The base of all results.

    Attributes:
        text: What the model is shown.
        notes: What the text says besides the data, such as what was left out, and why.
        next: The call that continues this result, or None when it is complete.
        whole: The text as it was before `Limits.output_tokens` cut it, or None where it did not.
    """

    text: str = field(default="", kw_only=True, repr=False)
    notes: tuple[str, ...] = field(default=(), kw_only=True)
    next: NextCall | None = field(default=None, kw_only=True)
    whole: str | None = field(default=None, kw_only=True, repr=False, compare=False)

    def __str__(self) -> str:
        """Return `text`."""
        return self.text

    @property
    def summary(self) -> str:
        """One line for a person, or "" where the first line of the text is as good."""
        return ""

    def in_names(self, names: Names) -> Self:
        """Return the result with its texts and its next call as the tools at hand name them."""
        changed: dict[str, Any] = {} if self.next is None else {"next": names.call(self.next)}
        for name, value in vars(self).items():
            if isinstance(value, Advice):
                changed[name] = say(value, names)
            elif name in ("notes", "nothing"):
                changed[name] = tuple(filter(None, (say(note, names) for note in value)))
        if not changed:
            return self
        made = copy(self)  # which takes a third of the time of `replace`
        vars(made).update(changed)
        return made

    def to_dict(self) -> dict[str, Any]:
        """Return the typed fields, ready for JSON; the texts are left out, as they show the same again."""
        return {name: plain(value) for name, value in vars(self).items() if name not in TEXTS}


def plain(value: Any) -> Any:
    """Return a value with its dataclasses as dictionaries and its tuples as lists, ready for JSON."""
    if value is None or isinstance(value, (str, int)):  # most are
        return value
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, dict):
        return {key: plain(item) for key, item in cast("dict[str, Any]", value).items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in cast("list[Any]", value)]
    return value


@dataclass(frozen=True)
class ReadResult(Result):
    """What `read` returns.

    Attributes:
        path: The path relative to the root.
        kind: What the file is.
        content: The exact text of the lines shown, their line ends included.
        start_line: The number of the first line shown, from 1; 0 when none is. Of a notebook cells are
            counted, of a PDF pages, of a hex view rows.
        end_line: The number of the last line shown; 0 when none is.
        total_lines: Lines in the file.
        total_exact: Whether `total_lines` was counted to the end.
        total_bytes: Bytes in the file.
        truncated_by: What cut the result short, or None; a limit in the call does not count.
        encoding: The codec of the text, or None when it is not text.
        newline: The line end of the file, "mixed", or None when it has none.
        bom: Whether the file begins with a byte order mark.
        revision: A hash of the content, 32 hex digits; one that begins with `~` is made from size and time.
        images: Images for the model.
        line_ids: The id of each line shown, where ids were asked for.
        since_shown: What became of lines that were shown before, if the text says only that, as with
            `Policy(reread="diff")`.
    """

    path: str
    kind: Literal["text", "image", "notebook", "pdf", "binary", "directory"]
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
    since_shown: Literal["unchanged", "changed"] | None = None

    @property
    def summary(self) -> str:
        """One line for a person."""
        return f"Read {one_line(self.path)}: lines {self.start_line}-{self.end_line} of {self.total_lines}"


@dataclass(frozen=True)
class ReadManyResult(Result):
    """What `read_many` returns.

    Attributes:
        files: The result for each file that was read, in order.
        failed: The code of the error of each file that could not be.
        left: The files that did not fit into the budget.
    """

    files: tuple[ReadResult, ...]
    failed: dict[str, str] = field(default_factory=dict[str, str])
    left: tuple[str, ...] = ()


@dataclass(frozen=True)
class WriteResult(Result):
    """What `write` returns.

    Attributes:
        path: The path relative to the root.
        created: Whether the file is new.
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
    """What `edit`, `multi_edit`, `edit_lines` and `splice` return.

    Attributes:
        path: The path relative to the root.
        replacements: How many places were replaced.
        applied_via: How the place was found: "exact" for the old text as it was given, or the tolerant steps
            that were needed; "line_id"; "offset".
        diff: The change as a unified diff.
        changed: First and last line of each changed range, in the file as it is now.
        revision: A hash of the content now.
        lines_changed: By `edit_lines`: for each change the larger of the number of lines named and the number
            of lines given, summed.
        newline: The line end that the file had, "mixed", or None when it had none.
    """

    path: str
    replacements: int
    applied_via: str
    diff: str
    changed: tuple[tuple[int, int], ...]
    revision: str
    lines_changed: int | None = None
    newline: Newline | None = None

    @property
    def summary(self) -> str:
        """One line for a person."""
        return f"Edited {one_line(self.path)}: {plural(self.replacements, 'replacement')}"


@dataclass(frozen=True)
class ReplaceResult(Result):
    """What `replace` returns.

    Attributes:
        files: How many places were replaced, by the path of each file that was changed.
        replacements: How many they are in all.
        diff: The whole change as a unified diff.
        skipped: What was not searched.
        searched_files: Files whose content was searched.
    """

    files: dict[str, int]
    replacements: int
    diff: str
    skipped: Skipped
    searched_files: int = 0

    @property
    def summary(self) -> str:
        """One line for a person."""
        return f"{plural(self.replacements, 'replacement')} in {plural(len(self.files), 'file')}"


@dataclass(frozen=True)
class DeleteResult(Result):
    """What `delete` returns.

    Attributes:
        path: The path that is gone, relative to the root.
        type: What it was.
    """

    path: str
    type: EntryType


@dataclass(frozen=True)
class MoveResult(Result):
    """What `move` returns.

    Attributes:
        path: The path that is gone, relative to the root.
        to: The path where it is now.
        type: What was moved.
        files: How many files and links were moved.
    """

    path: str
    to: str
    type: EntryType
    files: int = 1


@dataclass(frozen=True)
class ChangesResult(Result):
    """What `changes` returns.

    Attributes:
        files: What differs, in order of path.
        patch: The same in git's format; `git apply` takes it. Directories are not in it, as git knows none.
        since: The checkpoint since which, or None for the beginning.
    """

    files: tuple[FileChange, ...]
    patch: bytes
    since: str | None = None

    def to_dict(self) -> dict[str, Any]:
        r"""Return the typed fields, ready for JSON: the patch as text, bytes that are not UTF-8 as `\xe9`."""
        return {**super().to_dict(), "patch": self.patch.decode("utf-8", "backslashreplace")}


@dataclass(frozen=True)
class RecordedResult(ChangesResult):
    """What the `result` of a recording is: what changed in the tree while the block ran.

    Attributes:
        label: The label of the recording.
        lost: Paths that changed, and that undo cannot restore, because their old or new content is not kept.
        not_covered: How many paths a recording only watches or leaves out, by reason, such as "ignored",
            "protected" or "too large".
    """

    label: str = ""
    lost: tuple[str, ...] = ()
    not_covered: dict[str, int] = field(default_factory=dict[str, int])


@dataclass(frozen=True)
class UndoResult(Result):
    """What `undo`, `redo` and `rollback` return.

    Attributes:
        steps: How many steps were undone, or redone.
        files: What was done to each path.
        undoable: How many steps can still be undone.
        redoable: How many steps can be redone.
    """

    steps: int
    files: tuple[FileChange, ...]
    undoable: int
    redoable: int


@dataclass(frozen=True)
class CheckpointResult(Result):
    """What `checkpoint` returns.

    Attributes:
        name: The name to give to `rollback` and `changes`.
        steps: How many steps had been made.
    """

    name: str
    steps: int


@dataclass(frozen=True)
class ListResult(Result):
    """What `ls` returns.

    Attributes:
        entries: The entries of this page: directories first, then files, by name.
        total: Entries there are on all pages.
        skipped: What was left out.
        truncated: Whether entries follow after this page.
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
    """What `glob` returns.

    Attributes:
        files: The files of this page.
        total: Files there are on all pages.
        exact: Whether `total` is exact; otherwise it is a lower bound.
        skipped: What was left out.
        truncated: Whether files follow after this page.
        elapsed_ms: Milliseconds that it took.
        nothing: If nothing was found, what was searched, and where something would have been.
    """

    files: list[Entry]
    total: int
    skipped: Skipped
    exact: bool = True
    truncated: bool = False
    elapsed_ms: int = 0
    nothing: tuple[str, ...] = ()

    @property
    def summary(self) -> str:
        """One line for a person."""
        return plural(self.total, "file")


@dataclass(frozen=True)
class GrepResult(Result):
    """What `grep` returns.

    Attributes:
        matches: The matches of this page ("content"), or a few samples ("summary").
        counts: For each file of this page, its path and what was found in it.
        total_matches: Matches there are on all pages.
        total_lines: Matching lines there are on all pages.
        total_files: Files with a match there are on all pages.
        exact: Whether the totals are exact; otherwise they are lower bounds.
        truncated: Whether something follows after this page.
        skipped: What was left out.
        searched_files: Files whose content was searched.
        elapsed_ms: Milliseconds that it took.
        nothing: If nothing was found, what was searched, and hints where something would have been.
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

    @property
    def summary(self) -> str:
        """One line for a person."""
        return f"{plural(self.total_matches, 'match', 'matches')} in {plural(self.total_files, 'file')}"


@dataclass(frozen=True)
class Coercion:
    """One thing that a model did not send as the schema has it, and that was taken all the same.

    Attributes:
        parameter: Which argument, such as `limit` or `edits[0].old_string`.
        rule: What was done: `"10" as integer`, `alias "file_path"`, `JSON text as a list`.
    """

    parameter: str
    rule: str


@dataclass(frozen=True)
class ToolResult:
    """What a tool call returns: never an exception for anything that a model can send.

    Attributes:
        success: Whether the call succeeded.
        content: What the model is shown.
        short_result: One short line for a person.
        error: `code` and `message` of the failure, or None.
        images: Images for the model.
        file_path: The file that the call was about, or None.
        data: The typed result, ready for JSON.
        next: The call that continues this result, or None.
        coercions: What was not as the schema has it, and was converted.
        notes: More for the model, where `content` has the exact form of another contract.
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
