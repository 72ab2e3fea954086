"""What each method returns, and what a tool call does."""

from dataclasses import dataclass, field, fields
from typing import Any, Literal

from agentfs.events import Coercion
from agentfs.messages import NextCall
from agentfs.results.base import Result, plain
from agentfs.results.parts import Entry, EntryType, FileChange, FileCount, Image, Match, Newline, Skipped
from agentfs.values import Value


@dataclass(frozen=True, eq=False, repr=False)
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
        truncated_by: What cut the answer, or None; a limit that was asked for cuts nothing.
        encoding: The codec of the text, or None when it is not text.
        newline: The line end of the file, "mixed", or None when it has none.
        bom: Whether the file begins with a byte order mark.
        revision: A short hash of the content; one that begins with `~` is made from size and time.
        images: Images for the model.
        line_ids: The id of each line shown, where ids were asked for.
    """

    path: str
    kind: Literal["text", "image", "notebook", "pdf", "binary", "directory"]
    content: str
    start_line: int
    end_line: int
    total_lines: int
    total_bytes: int
    revision: str
    total_exact: bool = True
    truncated_by: Literal["lines", "bytes", "tokens", "line"] | None = None
    encoding: str | None = None
    newline: Newline | None = None
    bom: bool = False
    images: tuple[Image, ...] = ()
    line_ids: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False, repr=False)
class ReadManyResult(Result):
    """What `read_many` returns.

    Attributes:
        files: The page of each file that was read, in order.
        failed: The code of the error of each file that could not be.
        left: The files that the budget left to the next call.
    """

    files: tuple[ReadResult, ...]
    failed: dict[str, str] = field(default_factory=dict[str, str])
    left: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False, repr=False)
class WriteResult(Result):
    """What `write` returns.

    Attributes:
        path: The path relative to the root.
        created: Whether the file is new.
        bytes_written: The size of the file now.
        diff: The change as a unified diff.
        revision: A short hash of the content now.
        notes: What else the caller should know.
    """

    path: str
    created: bool
    bytes_written: int
    diff: str
    revision: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False, repr=False)
class EditResult(Result):
    """What `edit`, `multi_edit`, `edit_lines` and `splice` return.

    Attributes:
        path: The path relative to the root.
        replacements: How many places were replaced.
        applied_via: How the place was found: "exact" for the old text as it was given, or the tolerant steps
            that it took; "line_id"; "offset".
        diff: The change as a unified diff.
        changed: First and last line of each changed range, in the file as it is now.
        revision: A short hash of the content now.
        notes: What else the caller should know.
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
    notes: tuple[str, ...] = ()
    lines_changed: int | None = None
    newline: Newline | None = None


@dataclass(frozen=True, eq=False, repr=False)
class DeleteResult(Result):
    """What `delete` returns.

    Attributes:
        path: The path that is gone, relative to the root.
        type: What stood there.
    """

    path: str
    type: EntryType


@dataclass(frozen=True, eq=False, repr=False)
class MoveResult(Result):
    """What `move` returns.

    Attributes:
        path: The path that is gone, relative to the root.
        to: The path where it is now.
        type: What was moved.
    """

    path: str
    to: str
    type: EntryType


@dataclass(frozen=True, eq=False, repr=False)
class ChangesResult(Result):
    """What `changes` returns.

    Attributes:
        files: What is not as it was, in order of path.
        patch: The same in git's format; `git apply` takes it. Directories are not in it, as git knows none.
        since: The checkpoint that it is told from, or None for the beginning.
        notes: What else the caller should know.
    """

    files: tuple[FileChange, ...]
    patch: bytes
    since: str | None = None
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        r"""Return the typed fields, ready for JSON: the patch as text, bytes that are not UTF-8 as `\xe9`."""
        return {**super().to_dict(), "patch": self.patch.decode("utf-8", "backslashreplace")}


@dataclass(frozen=True, eq=False, repr=False)
class UndoResult(Result):
    """What `undo`, `redo` and `rollback` return.

    Attributes:
        steps: How many steps were undone, or redone.
        files: What became of each path.
        undoable: How many steps can still be undone.
        redoable: How many steps can be redone.
        notes: What else the caller should know.
    """

    steps: int
    files: tuple[FileChange, ...]
    undoable: int
    redoable: int
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False, repr=False)
class CheckpointResult(Result):
    """What `checkpoint` returns.

    Attributes:
        name: The name to give to `rollback` and `changes`.
        steps: How many steps stand at this place.
    """

    name: str
    steps: int


@dataclass(frozen=True, eq=False, repr=False)
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


@dataclass(frozen=True, eq=False, repr=False)
class GlobResult(Result):
    """What `glob` returns.

    Attributes:
        files: The files of this page.
        total: Files there are on all pages.
        exact: Whether `total` is the whole truth; otherwise there are at least as many.
        skipped: What was left out.
        truncated: Whether files follow after this page.
        elapsed_ms: Milliseconds that it took.
    """

    files: list[Entry]
    total: int
    skipped: Skipped
    exact: bool = True
    truncated: bool = False
    elapsed_ms: int = 0


@dataclass(frozen=True, eq=False, repr=False)
class GrepResult(Result):
    """What `grep` returns.

    Attributes:
        matches: The matches of this page ("content"), or a few samples ("summary").
        counts: For each file of this page, its path and what was found in it.
        total_matches: Matches there are on all pages.
        total_lines: Matching lines there are on all pages.
        total_files: Files with a match there are on all pages.
        exact: Whether the totals are the whole truth; otherwise there is at least as much.
        truncated: Whether something follows after this page.
        skipped: What was left out.
        searched_files: Files whose content was searched.
        engine: What searched.
        elapsed_ms: Milliseconds that it took.
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
    engine: str = "python"
    elapsed_ms: int = 0


@dataclass(frozen=True, eq=False, repr=False)
class ToolResult(Value):
    """What a tool call returns: never an exception for anything that a model can send.

    Attributes:
        success: Whether the tool did what was asked.
        content: What the model is shown.
        short_result: One short line for a person.
        error: `code` and `message` of the failure, or None.
        images: Images for the model.
        file_path: The file that the call was about, or None.
        data: The typed result, ready for JSON.
        next: The call that continues this result, or None.
        coercions: What was not sent as the schema has it, and taken all the same.
        notes: What a model is to be told besides, where `content` is held to another contract's form.
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
    def told(self) -> str:
        """`content`, and each note in brackets on a line of its own."""
        return "\n".join([self.content, *(f"[{note}]" for note in self.notes)])

    def __str__(self) -> str:
        """Return `content`."""
        return self.content

    def to_dict(self) -> dict[str, Any]:
        """Return all fields, ready for JSON."""
        return {f.name: plain(getattr(self, f.name)) for f in fields(self)}
