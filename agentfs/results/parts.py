"""What results are made of: entries, matches, counts, changes."""

from dataclasses import dataclass, field, fields
from typing import Literal, TypedDict

from agentfs.values import Value

Newline = Literal["\n", "\r\n", "\r", "mixed"]
EntryType = Literal["file", "directory", "symlink", "other"]


class Containment(TypedDict):
    """What `Workspace.containment` tells.

    Attributes:
        open: How paths are opened: "openat2" (by the kernel) or "fd-walk" (name by name, on descriptors).
        atomic: Whether another process that swaps directories for links can lead no call astray.
        locks: Whether "processes" or only "threads" of this one are kept from overwriting each other's work.
        engine: "ripgrep" where `rg` reads files for `grep`: it opens paths by itself, so that a swap can lead
            it outside. What it reads is shown by nothing, as each file is read again like all others.
    """

    open: Literal["openat2", "fd-walk"]
    atomic: bool
    locks: Literal["processes", "threads"]
    engine: Literal["python", "ripgrep"]


@dataclass(frozen=True, eq=False, repr=False)
class Image(Value):
    """An image for the model.

    Attributes:
        data: The bytes in base64.
        media_type: For example "image/png".
    """

    data: str
    media_type: str


@dataclass(frozen=True, eq=False, repr=False)
class Edit(Value):
    """One replacement of `multi_edit`.

    Attributes:
        old_string: The exact text to replace, as the file has it now.
        new_string: The text to put in its place.
        replace_all: Replace every occurrence instead of exactly one.
    """

    old_string: str
    new_string: str
    replace_all: bool = False


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class LineChange(Value):
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


@dataclass(frozen=True, eq=False, repr=False)
class Entry(Value):
    """One name in a directory.

    Attributes:
        path: The path relative to the root, with `/`.
        name: The last part of the path.
        type: What stands there; a link is "symlink" whatever it leads to.
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


@dataclass(frozen=True, eq=False, repr=False)
class Match(Value):
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


@dataclass(frozen=True, eq=False, repr=False)
class FileCount(Value):
    """What a search found in one file.

    Attributes:
        lines: Lines with at least one match.
        matches: Matches.
    """

    lines: int
    matches: int


@dataclass(frozen=True, eq=False, repr=False)
class Skipped(Value):
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
        unreadable: Names that the system did not let us read, or that vanished.
        symlink: Links that were not followed.
        special: FIFOs, sockets and devices.
        too_deep: Directories so deep that no path can name what lies in them.
        long_lines: Files in which lines were not searched, as matching such long ones takes too much memory.
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
    rules: dict[str, int] = field(default_factory=dict[str, int])
    reached: str | None = None

    @property
    def total(self) -> int:
        """The number of names left out, for whatever reason."""
        return sum(getattr(self, f.name) for f in fields(self) if f.type is int)

    def __bool__(self) -> bool:
        """Tell whether anything was left out."""
        return self.total > 0 or self.reached is not None


@dataclass(frozen=True, eq=False, repr=False)
class FileChange(Value):
    """What became of one path.

    Attributes:
        path: The path relative to the root, links resolved.
        action: What happened to it.
        type: What stands there, or stood.
        moved_from: The path that the same content was taken from, or None.
        added: Lines that were added; None where they are not counted, as in a binary file.
        removed: Lines that were removed, or None.
        protected: Whether its content is not shown, because it is protected or a rule denies reading it.
    """

    path: str
    action: Literal["created", "changed", "deleted"]
    type: EntryType = "file"
    moved_from: str | None = None
    added: int | None = None
    removed: int | None = None
    protected: bool = False
