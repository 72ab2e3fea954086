"""The workspace: one directory tree that a language model may read and change."""

import os
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing, contextmanager
from copy import copy
from os import PathLike, fspath
from types import TracebackType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, TypeAlias, TypeVar, cast

from agentfs import editing, history, search, tools
from agentfs import watch as watching
from agentfs.enforcement import check_rules, guard_methods
from agentfs.events import OnEvent
from agentfs.fs import Root
from agentfs.history import methods
from agentfs.history.recording import Recording
from agentfs.history.state import open_history
from agentfs.history.transaction import Transaction
from agentfs.limits import Limits
from agentfs.outputs import OutputStore
from agentfs.policy import Durability, Policy
from agentfs.reading import ReadRequest, read_path, read_paths
from agentfs.results import (
    ChangesResult,
    CheckpointResult,
    Containment,
    DeleteResult,
    Edit,
    EditResult,
    GlobResult,
    GrepResult,
    LineChange,
    ListResult,
    MoveResult,
    ReadManyResult,
    ReadResult,
    ReplaceResult,
    Result,
    UndoResult,
    WatchReport,
    WriteResult,
)
from agentfs.tools.declaration import ModelType, declared_tools, tool

if TYPE_CHECKING:
    from agentfs.history.state import MakeLedger
    from agentfs.tools.toolset import Toolset

# A mapping with the fields of one is as good; the methods are given the objects.
Edits: TypeAlias = Annotated[Sequence[Edit | Mapping[str, Any]], ModelType(list[Edit])]
LineChanges: TypeAlias = Annotated[Sequence[LineChange | Mapping[str, Any]], ModelType(list[LineChange])]
Path: TypeAlias = Annotated[str | os.PathLike[str], ModelType(str)]
_Spans: TypeAlias = Sequence[tuple[int, int, str]]
_OneOrMore: TypeAlias = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
Paths: TypeAlias = Annotated[_OneOrMore, ModelType(str)]
Globs: TypeAlias = Annotated[str | Sequence[str], ModelType(str)]
_Function = TypeVar("_Function", bound=Callable[..., Any])
Files: TypeAlias = Annotated[_OneOrMore, ModelType(str | list[str])]


@guard_methods
class Workspace:
    """One agent's view of one directory tree.

    Guaranteed on every system: paths and links that do not change meanwhile lead nowhere outside the root;
    links are followed only where they lead inside. No method shows the contents of
    protected names (`Policy.protect`) or changes what runs code, by any spelling or link. A change replaces a
    file by a rename, so that whatever fails, a kill too, leaves the old file or the new one, whole; threads
    that use agentfs lose no update. Every result says what it left out. A workspace keeps track
    of which versions of which files it has read, and `write` replaces only those. It may be used from several
    threads.

    Guaranteed besides, by what `containment` names as in force:

    * Linux 5.6 or newer ("openat2"): nothing outside is read, listed or changed while another process swaps
      directories for links, as the kernel confines each open. Processes of one user lose no update either.
    * Older or filtered Linux, macOS, BSD ("fd-walk"): the same, by a walk name by name on descriptors.
      Tested on Linux with openat2 taken away; macOS and BSD are expected to work, not run by us.

    Not on Windows, where opening a workspace is an error; importing agentfs and making schemas work there.

    Not guaranteed: it is no sandbox. A shell tool, mounts and hard links made by the same user are out of
    its reach, and a directory that is moved out of the root while it is open is followed. A program that
    does not lock may write at the very moment of the rename.

    In each method, parameters before the `*` are visible to a model; those after it are for programs.
    """

    _guarded_by = ""  # the method whose permission check this copy has passed
    _state_durability: Durability | None = None  # of the state directory, where not that of the policy
    _make_ledger: "MakeLedger | None" = None  # of what is noted beside the journal there

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        guard_methods(cls)

    def __init__(
        self,
        root: str | os.PathLike[str],
        *,
        policy: Policy | None = None,
        limits: Limits | None = None,
        state: str | os.PathLike[str] | None = None,
        on_event: OnEvent | None = None,
        watch: bool = False,
    ) -> None:
        """Open a directory tree.

        Args:
            root: The directory; it must exist.
            policy: What may be changed, and how; by default all files inside the root that were read.
            limits: The bounds of one result, one file and one search.
            state: A directory outside of the tree, where journal and read history outlive the process.
            on_event: Called with an event for each call of its tools, in the thread that runs it.
            watch: Keep names, and texts up to `Limits.watch_bytes`, in memory: searches are as exact, and
                several times faster; `Workspace.watch` reports what is kept.

        Raises:
            AgentFSError: `not_found` or `not_a_directory` for the root; `unsupported` on Windows. For the
                state directory `invalid_argument` (not outside, another tree's, another program's), `busy`,
                `io` (damaged).
        """
        self.policy = policy or Policy()
        check_rules(self.policy, type(self))
        self.limits = limits or Limits()
        self.on_event = on_event
        self._root = Root(root, self.policy)
        try:
            if watch:
                most = self.limits.watch_bytes, self.limits.file_bytes
                self._root.keep_tree(lambda context: watching.kept_tree.Watch(context, *most))
            durability = self._state_durability or self.policy.durability
            self._journal, self._read_tracker, self._state = open_history(
                state, self._root, durability, self.limits, self._make_ledger
            )
        except BaseException:
            self._root.close()
            raise
        self._outputs = OutputStore()

    @property
    def root(self) -> str:
        """The absolute path of the root, without links."""
        return self._root.path

    @property
    def containment(self) -> Containment:
        """What confines calls to the root at this moment, and what keeps writers apart."""
        self._check_open()
        return self._root.containment

    @property
    def watch(self) -> WatchReport | None:
        """What is kept of a watched tree, and why the rest is not; None without `watch=True`."""
        self._check_open()
        return None if self._root.watch is None else self._root.watch.report

    commit_notes: tuple[str, ...] = ()  # of a transaction that has ended: what it could not keep

    @property
    def recovery_notes(self) -> tuple[str, ...]:
        """What was recovered on opening, because a process had died in the middle of a change."""
        return self._root.recovery_notes

    def close(self) -> None:
        """Close the descriptor on the root; every later call fails."""
        self._root.close()
        self._journal.close()
        if self._state is not None:
            self._state.close()

    def _check_open(self) -> None:
        self._root.check_open()

    def __enter__(self) -> Self:
        self._check_open()
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Workspace({self.root!r})"

    def tools(
        self,
        names: str | Sequence[str] | None = None,
        *,
        dialect: str = "agentfs",
        expose: Mapping[str, Sequence[str]] | None = None,
        prefix: str = "",
    ) -> "Toolset":
        """Make the tools that are handed to a model.

        Args:
            names: The methods to offer: a list, one name, or "all"; by default read, write, edit, multi_edit,
                ls, glob and grep. Of a dialect, its tools; by default all.
            dialect: Whose names, arguments, defaults and output; `agentfs.dialects.names()` lists the others.
            expose: For a method, by its name, parameters after the `*` that the model sees too; with
                edit_lines also `line_ids` of read and grep.
            prefix: A prefix for the name of each tool.

        Returns:
            Their schemas for each provider, and `call`, which runs one.

        Raises:
            AgentFSError: `unknown_tool` for a name that is no tool, `invalid_argument` for a parameter to
                expose that is not there, edit_lines without read or grep, or a dialect that is not known.
        """
        return tools.toolset.toolset_of(self, names, dialect, expose or {}, prefix)

    def view(
        self,
        *,
        limits: Limits | None = None,
        policy: Policy | None = None,
        workdir: str | os.PathLike[str] | None = None,
        only: Sequence[str | os.PathLike[str]] | None = None,
    ) -> Self:
        """Return this workspace under other limits and another policy, or with paths from another directory.

        It is the same workspace: it shares root, journal and read history, and closing either closes
        both. What confines and protects cannot be changed.

        Args:
            limits: Its limits; by default the same.
            policy: Its policy; by default the same.
            workdir: The directory inside the root in which relative paths start, and from which paths are
                shown, with `..` where they lie elsewhere; by default the same. The boundary stays the root,
                and rules and the history keep their paths from there.
            only: Directories inside the root; nothing outside of them is read, listed, changed or named.
                Steps that changed anything outside are not undone; texts kept before are not there.
                All else holds as before, so that this can only narrow. By default the same as now.

        Raises:
            AgentFSError: `invalid_argument` where the policy differs in what a view may not change; for
                `workdir` `not_found`, `not_a_directory`, `outside_workspace`, …, for `only` the last.
        """
        other = copy(self)
        other._guarded_by = ""  # noqa: SLF001 - its own
        other.limits = limits or self.limits
        other.policy = policy or self.policy
        check_rules(other.policy, type(self))
        root = self._root.with_policy(other.policy)
        if only is not None:
            root = root.restricted_to([os.fspath(each) for each in only])
            root.recovery_notes = ()  # they name files of all directories
            other._outputs = OutputStore()  # noqa: SLF001 - its own
        other._root = root if workdir is None else root.starting_in(os.fspath(workdir))  # noqa: SLF001 - its own
        return other

    def tool_names(self) -> list[str]:
        """Return the names of the methods that can be tools, those offered by default first."""
        return list(declared_tools(type(self)))

    @tool(effect="read", default=True)
    def read(
        self,
        path: Path,
        offset: int = 1,
        limit: int | None = None,
        column: int = 1,
        *,
        line_ids: bool = False,
        encoding: str | None = None,
        raw: bool = False,
    ) -> ReadResult:
        """Read a file; each line of text is shown as its number, `|`, and the line.

        Args:
            path: File, relative to the workspace root.
            offset: First line, from 1; negative counts from the end (-20: the last 20).
            limit: Most lines to show; by default as many as fit.
            column: First character of each line to show, from 1.
            line_ids: Show an id before the `|` of each line, for edit_lines.
            encoding: The encoding of the text, where the bytes do not show it.
            raw: Show a notebook as its JSON, and what is no text in hexadecimal.

        Returns:
            The lines, with the facts about the file and the call that shows what follows. Images are in
            `images`; of a notebook `offset` and `limit` count cells, of a PDF pages. A directory is listed.

        Raises:
            AgentFSError: `not_found` with the nearest names, `outside_workspace`, `past_end` with the number
                of lines, `invalid_argument` for an offset of 0, `encoding`, `binary` for a broken PDF.
        """
        numbered = self.policy.line_numbers
        request = ReadRequest(offset, limit, encoding, bool(raw), column, line_ids, numbered)
        return read_path(self._root, self._read_tracker, self.limits, fspath(path), request, self._outputs)

    @tool(effect="read")
    def read_many(self, paths: Files, budget: int | None = None) -> ReadManyResult:
        """Read several files in one call, each under its path.

        Args:
            paths: Files, or globs such as `src/*.py`, relative to the workspace root.
            budget: Most tokens of the whole answer.

        Returns:
            The files as `read` shows them, and the call for those that the budget or the time left out.

        Raises:
            AgentFSError: `invalid_pattern`, `outside_workspace`, `invalid_argument` for a bad budget. What
                is wrong with one file is reported in its place in the text.
        """
        named = search.options.texts(paths)
        return read_paths(self._root, self._read_tracker, self.limits, named, budget)

    @tool(
        effect="write",
        default=True,
        advice="{write} replaces only a file that {read} has shown you to its end.",
    )
    def write(
        self,
        path: Path,
        content: str,
        *,
        overwrite: bool | None = None,
        encoding: str | None = None,
        newline: Literal["keep", "given", "\n", "\r\n", "\r"] = "keep",
        preview: bool = False,
        raw: bool = False,
    ) -> WriteResult:
        r"""Create a file, or replace one you have read whole; to change parts of a file, use edit.

        Args:
            path: File, relative to the workspace root; missing directories are made.
            content: The whole text of the file.
            overwrite: Whether an existing file is replaced, seen or not; None leaves it to the policy.
            encoding: The codec to write in; None for that of the file, or UTF-8. One that writes a byte order
                mark in Python (such as `utf-8-sig`) does so here.
            newline: The line ends: `keep` makes them CRLF where the file was CRLF throughout, `given` leaves
                the content as it is, and a line end is what all of them become. With `given` and an encoding
                nothing of the old file is kept, its byte order mark neither.
            preview: Return the result and write nothing.
            raw: Write over a notebook even if the content is not a notebook.

        Returns:
            The change as a unified diff.

        Raises:
            AgentFSError: `unread` for an existing file that this workspace has not shown whole, `stale` for
                one that has changed since, `already_exists`, `encoding`, `read_only`, `outside_workspace`,
                `not_a_file`.
        """
        return editing.write.write_file(
            self._root,
            self._read_tracker,
            self.limits,
            fspath(path),
            content,
            overwrite=overwrite,
            encoding=encoding,
            newline=newline,
            preview=preview,
            raw=raw,
        )

    @tool(
        effect="edit",
        default=True,
        advice="For a change to a part of a file use {edit}, with enough context for a unique match.",
    )
    def edit(
        self,
        path: Path,
        old_string: str,
        new_string: str,
        replace_all: bool = False,
        *,
        expect: int | None = None,
        expect_revision: str | None = None,
        match: Literal["tolerant", "exact"] | None = None,
        encoding: str | None = None,
        preview: bool = False,
        raw: bool = False,
    ) -> EditResult:
        """Replace a piece of text in a file; everything else stays as it is.

        Args:
            path: File, relative to the workspace root.
            old_string: The text to replace, as the file has it, without line numbers; it must occur exactly
                once, so include enough lines around it.
            new_string: The text to put in its place.
            replace_all: Replace every occurrence.
            expect: How many replacements to make; with any other number nothing is changed.
            expect_revision: The only version of the file to change, as `read` names it.
            match: Whether an old text that is not there exactly may be found but for white space and the
                like, at one place only; None leaves it to the policy.
            encoding: The codec of the file; None to go by its byte order mark, else UTF-8.
            preview: Return the result and write nothing.
            raw: Make the change even if it breaks a notebook, or if the file is an image or a PDF.

        Returns:
            The change as a unified diff.

        Raises:
            AgentFSError: `no_match`, `ambiguous` with each place or for another number than expected,
                `no_change`, `stale` for another version than expected, `binary`, `encoding`, `too_large`,
                `read_only`, `not_found`.
        """
        edits = [Edit(old_string, new_string, replace_all)]
        return editing.edit.edit_file(
            self._edit_target(path, encoding, expect_revision, preview, raw), edits, match, expect
        )

    @tool(effect="edit", default=True, advice="Several changes to one file go into one {multi_edit}.")
    def multi_edit(
        self,
        path: Path,
        edits: Edits,
        *,
        expect_revision: str | None = None,
        match: Literal["tolerant", "exact"] | None = None,
        encoding: str | None = None,
        preview: bool = False,
        raw: bool = False,
    ) -> EditResult:
        """Make several replacements in one file, in order, each on the outcome of the one before.

        All are made, or none.

        Args:
            path: File, relative to the workspace root.
            edits: The replacements, each as in edit.
            expect_revision: The only version of the file to change, as `read` names it.
            match: Whether an old text that is not there exactly may be found but for white space and the
                like, at one place only; None leaves it to the policy.
            encoding: The codec of the file; None to go by its byte order mark, else UTF-8.
            preview: Return the result and write nothing.
            raw: Make the change even if it breaks a notebook, or if the file is an image or a PDF.

        Returns:
            The change as a unified diff.

        Raises:
            AgentFSError: As `edit`, naming the edit that failed.
        """
        made = cast("Sequence[Edit]", edits)
        return editing.edit.edit_file(
            self._edit_target(path, encoding, expect_revision, preview, raw), made, match
        )

    @tool(effect="edit", needs={"read": ("line_ids",), "grep": ("line_ids",)})
    def edit_lines(
        self,
        path: Path,
        changes: LineChanges,
        *,
        expect_revision: str | None = None,
        encoding: str | None = None,
        preview: bool = False,
        raw: bool = False,
    ) -> EditResult:
        """Replace lines of a file, named by the ids that read and grep show; all are replaced, or none.

        Args:
            path: File, relative to the workspace root.
            changes: The lines to replace, and what to put there.
            expect_revision: The only version of the file to change, as `read` names it.
            encoding: The codec of the file; None to go by its byte order mark, else UTF-8.
            preview: Return the result and write nothing.
            raw: Make the change even if it breaks a notebook, or if the file is an image or a PDF.

        Returns:
            The change as a unified diff.

        Raises:
            AgentFSError: `unread` where no ids were given, `unknown_line` and `stale` with the current ids,
                `overlap`, `invalid_argument`, and what `edit` raises.
        """
        target = self._edit_target(path, encoding, expect_revision, preview, raw)
        made = cast("Sequence[LineChange]", changes)
        return editing.edit_lines.edit_lines_file(target, made)

    @tool(effect="edit", for_models=False)  # its spans are offsets, which no model counts
    def splice(
        self,
        path: Path,
        spans: _Spans | Callable[[str], _Spans | tuple[_Spans, Sequence[str]]],
        *,
        expect_revision: str | None = None,
        encoding: str | None = None,
        preview: bool = False,
        raw: bool = False,
    ) -> EditResult:
        r"""Replace ranges of characters; for programs, which know offsets. It is no tool for models.

        Args:
            path: File, relative to the workspace root.
            spans: Start, end and new text of each range. Offsets are those of the text with every line end as
                one `\n`, from 0, before any of the changes; they may come in any order. Or a function that
                makes them of that text, which is then not shown to anyone; alone, or in a pair with notes
                for the result.
            expect_revision: The only version of the file to change, as `read` names it.
            encoding: The codec of the file; None to go by its byte order mark, else UTF-8.
            preview: Return the result and write nothing.
            raw: Make the change even if it breaks a notebook, or if the file is an image or a PDF.

        Returns:
            The change as a unified diff.

        Raises:
            AgentFSError: `invalid_argument` for a range that does not lie in the text, `overlap`, and what
                `edit` raises.
        """
        return editing.edit.splice_file(
            self._edit_target(path, encoding, expect_revision, preview, raw), spans
        )

    @tool(effect="edit", advice="The same change in many files is one {replace}.")
    def replace(
        self,
        old_string: str,
        new_string: str,
        path: Paths = ".",
        glob: str | Sequence[str] | None = None,
        expect: int | None = None,
        *,
        word: bool = False,
        regex: bool = False,
        preview: bool = False,
        raw: bool = False,
    ) -> ReplaceResult:
        r"""Replace a text in all files that have it, such as a name; all files are changed, or none.

        Args:
            old_string: The text to replace, wherever it occurs.
            new_string: The text to put in its place.
            path: File or directory to search, relative to the workspace root.
            glob: Only files that match, such as `*.py` or `src/**`.
            expect: How many replacements to make; with any other number nothing is changed.
            word: Only where no word character is on either side.
            regex: Take `old_string` as a regular expression, as in grep, of which each line is matched alone;
                one with `\n` in it is matched in the whole text, where `.` matches line ends too. In
                `new_string`, `\1` and `\g<name>` are groups and `\\` is a backslash.
            preview: Return the result and write nothing.
            raw: Make the change even if it breaks a notebook, or if the file is an image or a PDF.

        Returns:
            How many places were replaced in each file, and what was left out, as in grep. One undo takes all
            of it back.

        Raises:
            AgentFSError: `no_match`, `ambiguous` for another number than expected, `no_change`; for files
                that cannot be changed, all of which it names, `protected`, `refused`, `read_only`, `encoding`
                or `too_large`; `stale` where somebody else changes one meanwhile, `invalid_pattern`,
                `invalid_argument`, `timeout`. Nothing is changed then.
        """
        options = editing.replace.ReplaceOptions(
            old_string, new_string, search.options.texts(path), glob, expect, word, regex, preview, raw
        )
        return editing.replace.replace_in_files(self._root, self._read_tracker, self.limits, options)

    def _edit_target(
        self, path: Path, encoding: str | None, revision: str | None, preview: bool, raw: bool
    ) -> "editing.change_file.EditTarget":
        root, tracker = self._root, self._read_tracker
        return editing.change_file.EditTarget(
            root, tracker, self.limits, fspath(path), encoding, revision, preview, raw
        )

    @tool(effect="manage")
    def delete(self, path: Path) -> DeleteResult:
        """Delete a file, a link, or an empty directory; undo brings it back.

        Args:
            path: File, link or empty directory, relative to the workspace root.

        Returns:
            What was deleted.

        Raises:
            AgentFSError: `not_a_file` for a directory with something in it, `too_large` for a file whose
                content would not be kept for undo, `refused`, `read_only`.
        """
        return editing.delete_move.delete_path(self._root, self.limits, fspath(path))

    @tool(effect="manage")
    def move(self, path: Path, to: Path) -> MoveResult:
        """Move or rename a file, a link, or a directory with all in it.

        Args:
            path: File, link or directory, relative to the workspace root.
            to: Its new path, where nothing may be yet; missing directories are made.

        Returns:
            What was moved.

        Raises:
            AgentFSError: `already_exists` where something is, `invalid_argument` for a directory into itself,
                `not_found`, `read_only`; for a file, also one in a directory, `protected`, `refused`,
                `not_regular`, `too_large`, `stale`. Nothing is moved then.
        """
        return editing.delete_move.move_path(
            self._root, self._read_tracker, self.limits, fspath(path), fspath(to)
        )

    @tool(effect="search", default=True)
    def ls(
        self,
        path: Paths = ".",
        depth: int = 1,
        limit: int | None = None,
        offset: int = 0,
        include_ignored: bool = False,
        *,
        ignore: str | Sequence[str] | None = None,
        hidden: bool | None = None,
        sort: Literal["name", "modified", "size"] = "name",
    ) -> ListResult:
        """List a directory: directories first, then files, by name.

        Args:
            path: Directory, relative to the workspace root.
            depth: Levels to descend; 0: all.
            limit: Most entries to show.
            offset: Entries to skip.
            include_ignored: Show hidden and gitignored entries too.
            ignore: Globs of entries to leave out.
            hidden: Whether hidden entries are shown; by default as `include_ignored` has it.
            sort: The order within each directory: by name, newest first or largest first.

        Returns:
            The entries, and what was left out.

        Raises:
            AgentFSError: `not_found`, `not_a_directory`, `outside_workspace`, `past_end`.
        """
        options = search.options.ListOptions(
            search.options.texts(path), depth, limit, offset, include_ignored, ignore, hidden, sort
        )
        found = search.find.list_directory(self._root, self.limits, options, self._read_tracker)
        return self._outputs.keep_full_text(found, self.policy)

    @tool(effect="search", default=True, advice="Find files by name with {glob}.")
    def glob(
        self,
        pattern: Globs,
        path: Paths = ".",
        limit: int | None = None,
        offset: int = 0,
        include_ignored: bool = False,
        *,
        sort: Literal["path", "modified", "size"] = "path",
        hidden: bool | None = None,
        exclude: str | Sequence[str] | None = None,
        anchored: bool = False,
        types: str | Sequence[str] = "f",
        timeout: float | None = None,
    ) -> GlobResult:
        """Find files by name.

        Args:
            pattern: Glob such as `*.py`, `src/**/test_*.{js,ts}`; without `/` it matches names at any depth.
            path: Directory to search, relative to the workspace root.
            limit: Most files to return.
            offset: Files to skip.
            include_ignored: Search hidden and gitignored files too.
            sort: The order: by path name by name, newest first or largest first.
            hidden: Whether hidden files are searched; by default as `include_ignored` has it.
            exclude: Globs of files and directories to leave out.
            anchored: Bind a pattern without `/` to the search directory too.
            types: Letters of what to find: f(ile), d(irectory), l(ink), (e)x(ecutable), e(mpty).
            timeout: Seconds that the search may take.

        Returns:
            The files in order of path, and what was left out.

        Raises:
            AgentFSError: `invalid_pattern`, `not_found`, `not_a_directory`, `outside_workspace`, `past_end`.
        """
        options = search.options.GlobOptions(
            pattern,
            search.options.texts(path),
            limit,
            offset,
            include_ignored,
            sort,
            hidden,
            exclude,
            anchored,
            types,
            timeout,
        )
        found = search.find.find_files(self._root, self.limits, options, self._read_tracker)
        return self._outputs.keep_full_text(found, self.policy)

    @tool(effect="search")
    def find(
        self,
        path: Paths = ".",
        pattern: str | None = None,
        glob: str | Sequence[str] | None = None,
        types: str | Sequence[str] | None = None,
        limit: int | None = None,
        offset: int = 0,
        include_ignored: bool = False,
        *,
        extensions: str | Sequence[str] | None = None,
        exclude: str | Sequence[str] | None = None,
        min_depth: int | None = None,
        max_depth: int | None = None,
        follow_symlinks: bool = False,
        hidden: bool | None = None,
        size: str | Sequence[str] | None = None,
        changed_within: str | None = None,
        changed_before: str | None = None,
        full_path: bool = False,
        case: Literal["smart", "sensitive", "insensitive"] = "smart",
        sort: Literal["path", "modified", "size"] = "path",
        timeout: float | None = None,
        unique: bool = False,
    ) -> GlobResult:
        """Find files and directories by name, type, size and time.

        Args:
            path: Directory to search, relative to the workspace root.
            pattern: Regular expression to be found in the name.
            glob: Glob that must match, such as `*.py` or `src/**`.
            types: Letters of what to find: f(ile), d(irectory), l(ink), (e)x(ecutable), e(mpty); by default
                all.
            limit: Most entries to return.
            offset: Entries to skip.
            include_ignored: Search hidden and gitignored names too.
            extensions: Extensions such as `py` or `tar.gz`.
            exclude: Globs of files and directories to leave out.
            min_depth: First level to show; 1 is what lies in `path` itself.
            max_depth: Last level to show.
            follow_symlinks: Follow links that lead inside the root.
            hidden: Whether hidden names are searched; by default as `include_ignored` has it.
            size: Size such as `+10M` (at least), `-1k` (at most); of regular files.
            changed_within: Only what was changed since: `2d`, `90min`, or a date.
            changed_before: Only what was changed before: `2weeks`, or a date.
            full_path: Look for `pattern` in the path relative to the root.
            case: How `pattern` takes letters; "smart" ignores case unless there is a capital in it.
            sort: The order: by path name by name, newest first or largest first.
            timeout: Seconds that the search may take.
            unique: Find a file that several links lead to once, by the first of its paths.

        Returns:
            The entries in order of path, and what was left out.

        Raises:
            AgentFSError: As `glob`, and `invalid_argument` for a type, size or time that is none.
        """
        options = search.options.FindOptions(
            path=search.options.texts(path),
            pattern=pattern,
            glob=glob,
            types=types,
            limit=limit,
            offset=offset,
            include_ignored=include_ignored,
            extensions=extensions,
            exclude=exclude,
            min_depth=min_depth,
            max_depth=max_depth,
            follow_symlinks=follow_symlinks,
            hidden=hidden,
            size=size,
            changed_within=changed_within,
            changed_before=changed_before,
            full_path=full_path,
            case=case,
            sort=sort,
            unique=unique,
            timeout=timeout,
        )
        found = search.find.find_files(self._root, self.limits, options, self._read_tracker)
        return self._outputs.keep_full_text(found, self.policy)

    @tool(effect="search", default=True, advice="Search contents with {grep} before you read.")
    def grep(
        self,
        pattern: str,
        path: Paths = ".",
        glob: str | Sequence[str] | None = None,
        type: str | Sequence[str] | None = None,  # noqa: A002 - the contract's name, and ripgrep's
        output_mode: Literal["content", "files_with_matches", "count", "summary", "total"] = "content",
        ignore_case: bool = False,
        context: int | None = None,
        multiline: bool = False,
        limit: int | None = None,
        offset: int = 0,
        include_ignored: bool = False,
        *,
        before: int | None = None,
        after: int | None = None,
        line_numbers: bool = True,
        fixed_strings: bool = False,
        word: bool = False,
        smart_case: bool = False,
        exclude: str | Sequence[str] | None = None,
        files: Sequence[str | PathLike[str]] | GlobResult | None = None,
        hidden: bool | None = None,
        follow_symlinks: bool = False,
        max_depth: int | None = None,
        max_count: int | None = None,
        max_filesize: int | str | None = None,
        encoding: str | None = None,
        sort: Literal["path", "modified", "oldest", "size"] = "path",
        timeout: float | None = None,
        line_ids: bool = False,
        whole_line: bool = False,
        invert: bool = False,
        dot_all: bool = True,
        samples: int = 3,
        overlap: bool = False,
        unique: bool = False,
    ) -> GrepResult:
        r"""Search the contents of files with a regular expression.

        Args:
            pattern: Regular expression; escape `( ) [ . *` to match them literally.
            path: File or directory to search, relative to the workspace root.
            glob: Only files that match, such as `*.py` or `src/**`.
            type: Only files of a type, such as `py`, `js`, `rust`.
            output_mode: Matching lines, file names, counts per file, counts with samples, or only the total.
            ignore_case: Match upper and lower case alike.
            context: Lines to show around each match; by default none.
            multiline: Let a match span lines, and `.` match line ends.
            limit: Most matches, or files, to return.
            offset: Matches, or files, to skip.
            include_ignored: Search hidden and gitignored files too.
            before: Lines to show before each match.
            after: Lines to show after each match.
            fixed_strings: Take the pattern as plain text.
            word: Only matches with no word character on either side.
            smart_case: Match upper and lower case alike unless the pattern has a capital.
            exclude: Globs of files and directories to leave out.
            files: Search these files in place of `path`: their paths, or what `find` has found.
            hidden: Whether hidden files are searched; by default as `include_ignored` has it.
            follow_symlinks: Follow links that lead inside the root.
            max_depth: Last level to search; 1 is what lies in `path` itself.
            max_count: Most matching lines of one file.
            max_filesize: Size of the largest file that is searched: bytes, or such as `500K`, `1M`.
            encoding: Codec of files that are not UTF-8 and have no byte order mark.
            sort: The order of the files: by path, newest, oldest or largest first.
            timeout: Seconds that the search may take.
            line_numbers: Whether the text numbers the lines.
            line_ids: Give each matching line an id before its `|`, for edit_lines.
            whole_line: Only matches that are a whole line.
            invert: Find the lines without a match.
            dot_all: Whether `.` matches line ends with `multiline`.
            samples: Matches of each file in a summary.
            overlap: Give each match all lines around it, even those near another match.
            unique: Search a file that several links lead to once, by the first of its paths.

        Returns:
            The matches in order of path, with totals, and what was left out.

        Raises:
            AgentFSError: `invalid_pattern` with the place of the mistake, `not_found`, `outside_workspace`,
                `invalid_argument`, `past_end`, `too_large` for a single file over `Limits.file_bytes`.
        """
        options = search.options.GrepOptions(
            pattern=pattern,
            path=search.options.texts(path),
            glob=glob,
            type=type,
            output_mode=output_mode,
            ignore_case=ignore_case,
            context=context,
            multiline=multiline,
            limit=limit,
            offset=offset,
            include_ignored=include_ignored,
            before=before,
            after=after,
            line_numbers=line_numbers,
            fixed_strings=fixed_strings,
            word=word,
            smart_case=smart_case,
            exclude=exclude,
            files=files if files is None or isinstance(files, GlobResult) else search.options.texts(files),
            hidden=hidden,
            follow_symlinks=follow_symlinks,
            max_depth=max_depth,
            max_count=max_count,
            max_filesize=max_filesize,
            encoding=encoding,
            sort=sort,
            whole_line=whole_line,
            invert=invert,
            dot_all=dot_all,
            samples=samples,
            overlap=overlap,
            unique=unique,
            timeout=timeout,
            line_ids=line_ids,
        )
        found = search.grep.grep_files(self._root, self.limits, options, self._read_tracker, self._outputs)
        return self._outputs.keep_full_text(found, self.policy)

    @tool(effect="manage")
    def undo(self, steps: int = 1, paths: Files | None = None) -> UndoResult:
        """Take back your last changes, all of them or none; what other programs changed since stays.

        Args:
            steps: How many changes to take back.
            paths: Only what changed at or below these paths.

        Returns:
            What became of each file.

        Raises:
            AgentFSError: `conflict` for a file in which another program has changed the same lines, with the
                lines and the call for the other paths; `invalid_argument` when there are fewer steps.
        """
        return methods.undo(self._journal, self._root, self._read_tracker, self.limits, steps, paths)

    @tool(effect="manage")
    def redo(self, steps: int = 1) -> UndoResult:
        """Make changes again that were undone; what other programs changed since stays.

        Args:
            steps: How many changes to make again.

        Returns:
            What became of each file.

        Raises:
            AgentFSError: `conflict` as `undo`; `invalid_argument` when fewer steps were undone.
        """
        return methods.redo(self._journal, self._root, self._read_tracker, self.limits, steps)

    @tool(effect="none")
    def checkpoint(self, name: str | None = None) -> CheckpointResult:
        """Name the present state of the files, so that rollback can return to it.

        Args:
            name: The name; by default a number. A name given again is moved here.

        Returns:
            The name.

        Raises:
            AgentFSError: `invalid_argument` for an empty name or one over 200 characters.
        """
        return methods.checkpoint(self._journal, name)

    @tool(effect="manage")
    def rollback(self, to: str, paths: Files | None = None) -> UndoResult:
        """Take the files back to a checkpoint, all of them or none; redo makes the changes again.

        Args:
            to: The name of the checkpoint.
            paths: Only what changed at or below these paths.

        Returns:
            What became of each file.

        Raises:
            AgentFSError: `not_found` for an unknown checkpoint, with those there are; `conflict` as `undo`.
        """
        return methods.rollback(self._journal, self._root, self._read_tracker, self.limits, to, paths)

    def forget(self) -> None:
        """Forget what was read, as when the loop cuts the model's history.

        `write` and `edit_lines` require a read again, and line ids are never reused. The journal stays.
        """
        self._read_tracker.forget()
        if self._root.watch is not None:
            self._root.watch.forget()

    @contextmanager
    def transaction(self) -> Generator[Self]:
        """Make several changes as one: all of them when the block ends, or none when it raises.

        What is called on the transaction sees what was changed through it before, whether it reads, lists or
        searches. Nothing is on disk before the end. What is called on the workspace meanwhile takes no part.
        All together is one step of the journal. A transaction on the transaction sees what was changed before
        it, and adds to that when it ends.

        Yields:
            The transaction, to be used as the workspace is. After the block its `commit_notes` tell what the
            replaced files had that could not be kept, such as an owner or hard links.

        Raises:
            AgentFSError: `stale` at the end, with the diff, for a file that somebody else has changed since
                the transaction first changed it; nothing is changed then.
        """
        staged = Transaction(self._root, self._journal, self._read_tracker, self.limits)
        inner = copy(self)
        inner.__dict__.update(_root=staged.root, _journal=staged.journal, _state=None, _guarded_by="")
        with closing(staged):
            yield inner
            inner.commit_notes = staged.commit()

    @contextmanager
    def recording(self, label: str, include_ignored: bool = False) -> Generator[Recording]:
        """Make one step of the journal of all that any process changes in the tree within the block.

        The step is undone, shown and rolled back as any other, and it is made even if the block raises. A
        change through the workspace meanwhile stays a step of its own.

        Args:
            label: What is recorded, such as a command; at most 200 characters.
            include_ignored: Record ignored files too, as those of a build.

        Yields:
            The recording. After the block its `result` has what changed; `result.text` is for the model.

        Raises:
            AgentFSError: `invalid_argument` for the label; `read_only`; `refused` in a transaction;
                `too_large` for a tree with more names than `Limits.walk_entries`.
        """
        given = self._journal, self._root, self.limits
        opened = methods.begin_recording(*given, label, include_ignored=include_ignored)
        recorded = Recording(label)
        try:
            yield recorded
        finally:
            recorded.result = methods.end_recording(*given, opened)

    def recorded(self, function: _Function) -> _Function:
        """Return a tool that records each of its calls, such as the shell tool of a loop.

        Its label is the name of the function with the first text argument. If the function returns a
        text, what changed is added to it.

        Args:
            function: A function, or an async function, with any parameters.

        Returns:
            A function with the same signature and documentation.
        """
        return history.recorded_calls.record_calls(function, self.recording)

    @tool(effect="read")
    def changes(self, since: str | None = None, paths: Files | None = None) -> ChangesResult:
        """Show how your files differ from before your changes, as one patch.

        Args:
            since: A checkpoint; by default everything.
            paths: Only what changed at or below these paths.

        Returns:
            The files, and the patch in git's format, from what was there before to what is there now. Files
            that another program has changed since are marked.

        Raises:
            AgentFSError: `not_found` for an unknown checkpoint, with those there are; `refused`.
        """
        return methods.changes(self._journal, self._root, since, paths, self.limits.file_bytes)

    def keep(self, kept: Result | str, *, kind: str = "out") -> str:
        """Keep the full text of a result under a short name, which `read` and `grep` take for a path.

        Args:
            kept: A text, or a result. Of a page of a file the name refers to the file and follows it.
            kind: What the name begins with, after the `@`.

        Returns:
            The name, such as `@out_1f3a`. The oldest are dropped first.
        """
        return self._outputs.keep(kept, kind)
