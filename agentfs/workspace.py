"""The workspace: one directory tree that a language model may read and change."""

import os
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from functools import partial
from os import fspath
from types import TracebackType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, TypeAlias, TypeVar, cast, get_args

from agentfs import commands, editing, history, reading, results, search
from agentfs import watch as watching
from agentfs.arguments.hints import ModelType
from agentfs.arguments.kinds import TextOrList
from agentfs.base.lazy import above, import_before_writes
from agentfs.base.runner import Runner
from agentfs.commands.hidden_files import HiddenFiles
from agentfs.errors import InvalidArgumentError, UnknownToolError, must_be
from agentfs.events import OnEvent
from agentfs.fs import Root
from agentfs.history.log import Recording
from agentfs.history.state import open_history
from agentfs.limits import Limits
from agentfs.permission.method_call import may_show_recorded
from agentfs.policy import Mount, Policy, host_policy
from agentfs.shown.outputs import OutputStore
from agentfs.shown.read_tracker import ReadTracker
from agentfs.shown.workspace_context import Context
from agentfs.tools.gate import check_rules, guard_methods, guard_options
from agentfs.tools.tool import Tool, declarations, tool

if TYPE_CHECKING:
    from agentfs.commands import run as run  # noqa: PLC0414 - makes the lazy submodule known
    from agentfs.commands.request import Surroundings
    from agentfs.tools.toolset import Toolset

# Callers may pass mappings.
Edits: TypeAlias = Annotated[Sequence[results.Edit | Mapping[str, Any]], ModelType(list[results.Edit])]
LineChanges: TypeAlias = Annotated[
    Sequence[results.LineChange | Mapping[str, Any]], ModelType(list[results.LineChange])
]
Path: TypeAlias = Annotated[str | os.PathLike[str], ModelType(str)]
_OneOrMore: TypeAlias = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
Paths: TypeAlias = Annotated[_OneOrMore, ModelType(TextOrList)]
Globs: TypeAlias = Annotated[str | Sequence[str], ModelType(TextOrList)]
_LARGE_KEPT = 8  # a watched workspace keeps a file up to one part in so many of its memory for texts
_MOST_RECORDED = 8  # async calls of one recorded function that begin or end at the same time
_Function = TypeVar("_Function", bound=Callable[..., Any])
_Options = TypeVar("_Options")
Files: TypeAlias = Annotated[_OneOrMore, ModelType(str | list[str])]


def _advice_on_write(workspace: "Workspace") -> str:
    return {
        "seen": "{write} replaces only a file that {read} has shown you to its end.",
        "never": "{write} only creates files.",
        "always": "",
    }[workspace.policy.overwrite]


def _options(kind: Callable[..., _Options], arguments: dict[str, Any]) -> _Options:
    """Return the options of a method; `arguments` are `self` and its parameters."""
    del arguments["self"]
    arguments["path"] = search.options.texts(arguments["path"])
    return kind(**arguments)


@guard_methods
class Workspace:
    """One agent's view of one directory tree.

    Guarantees on every system:

    * Calls stay inside the root, unless another process swaps directories and links during a call. Links are
      followed only if they lead inside.
    * No method shows the contents of protected names (`Policy.protect`) or changes files that run code, by
      any spelling or link.
    * A change replaces a file by a rename. After any failure, even a kill, the file has its complete old or
      its complete new content. Threads that use agentfs lose no update.
    * Every result says what it left out.
    * The workspace records which versions of files it has read, and `write` replaces only those.

    It may be used from several threads.

    Each path is opened name by name, on descriptors. Nothing outside is read, listed or changed, even while
    another process swaps directories for links. Processes of one user lose no update, if `containment` says
    so. macOS and BSD are expected to work, not run by us.

    Windows is not supported: opening a workspace there is an error, but importing agentfs and making schemas
    work.

    A workspace is not a sandbox. It does not control shell tools, nor mounts and hard links made by the same
    user. If a directory is moved out of the root while it is open, it is followed. A program that does not
    lock files may write at the moment of the rename.

    In each method, parameters before the `*` are visible to a model; those after it are for programs.
    """

    _is_host = False
    _guarded_by = ""  # the method whose permission check this copy has passed

    def __init__(
        self,
        root: str | os.PathLike[str],
        *,
        policy: Policy | None = None,
        limits: Limits | None = None,
        state: str | os.PathLike[str] | None = None,
        watch: bool | Literal["calls"] = False,
        on_event: OnEvent | None = None,
        mounts: Mapping[str, str | os.PathLike[str] | Mount] | None = None,
    ) -> None:
        """Open a directory tree.

        Args:
            root: The directory; it must exist.
            policy: The rules for changes; by default, any file inside the root that was read may change.
            limits: The bounds of one result, one file and one search.
            state: A directory outside the tree that keeps the journal across processes.
            watch: Keep names, and texts up to `Limits.watch_bytes`, in memory. Searches give the same
                results, several times faster. After a first search, a thread keeps the rest of the tree
                between calls, on at most half of one core; with "calls", only calls keep it.
                `Workspace.watch` reports what is kept.
            on_event: Called with the events of each call, of tools and of methods, in the thread of the call.
            mounts: Other directories, by the name below the root where each appears.

        Raises:
            AgentFSError: `not_found` or `not_a_directory` for the root or a mount; `invalid_argument` for a
                mount that is not one free name, or overlaps the root; `unsupported` on Windows, or if the
                policy stages commands and the system cannot. For the state directory: `invalid_argument`
                if it is not outside the tree, or belongs to another tree or program; `busy`; `io` if it is
                damaged.
        """
        self.policy = policy or Policy()
        self.limits = limits or Limits()
        self.on_event = on_event
        made = {
            path: each if isinstance(each, Mount) else Mount(each) for path, each in (mounts or {}).items()
        }
        check_rules(type(self), self.policy)
        self._root = Root(root, self.policy, made)
        import_before_writes(self._root.path)
        try:
            if self.policy.run == "staged":
                commands.sandbox.find_sandbox(commands.stage.stage_places(self._root.path))
            if watch:
                watch_bytes = self.limits.watch_bytes
                most = watch_bytes, max(self.limits.file_bytes, watch_bytes // _LARGE_KEPT)
                keep = partial(search.grep_text.keep_files, self._root, self.limits)
                keeper = None if watch == "calls" else watching.keeper.Keeper(keep)
                self._root.keep_tree(lambda context: watching.kept_tree.WatchedTree(context, *most, keeper))
            self._journal = open_history(state, self._root, self.limits)
            # An agent that goes on after a restart may send line ids that it saw before.
            self._read_tracker = ReadTracker("" if state is None else os.urandom(4).hex())
        except BaseException:
            self._root.close()
            raise
        self._outputs = OutputStore()
        self._hidden_files = HiddenFiles()
        self._background = commands.background.BackgroundCommands()

    @property
    def root(self) -> str:
        """The absolute path of the root, without links."""
        return self._root.path

    @property
    def mounts(self) -> Mapping[str, Mount]:
        """The mounts, by name."""
        return {tree.path: tree.mount for tree in self._root.trees if tree.mount is not None}

    @property
    def workdir(self) -> str:
        """The directory, relative to the root, where relative paths start; "." is the root."""
        return self._root.workdir

    @property
    def containment(self) -> results.Containment:
        """The mechanisms that now confine calls to the root and keep writers apart."""
        self._check_open()
        return {**self._root.containment, "run": commands.system_calls.named_way(self.policy.run)}

    @property
    def host(self) -> Self:
        """This workspace for the program itself, for example for an Undo button.

        It has the same root, journal and read history, but no mode, rules and callback, and `write` needs no
        read before. The boundary, the protected names and the limits stay. Never give its tools to a model.
        """
        policy = host_policy(self.policy)
        return self._copied(policy=policy, _root=self._root.view(policy=policy, access=None), _is_host=True)

    @property
    def watch(self) -> results.WatchReport | None:
        """A report on the tree in memory: sizes, and why parts are missing. None without `watch=True`."""
        self._check_open()
        return None if self._root.watch is None else self._root.watch.report

    @property
    def recovery_notes(self) -> tuple[str, ...]:
        """Notes on the recovery at opening, if a process had died during a change."""
        return self._root.recovery_notes

    def close(self) -> None:
        """Close the workspace, and stop its commands; every later call fails."""
        self._background.close()
        self._root.close()
        self._journal.close()

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
        """Make tools for a model from the methods of this workspace.

        Args:
            names: The methods to offer: a list, one name, or "all"; by default read, write, edit, multi_edit,
                ls, glob and grep. With a dialect: the names of its tools; by default all.
            dialect: The tool set to imitate: its names, arguments, defaults and output.
                `agentfs.dialects.names()` lists the dialects.
            expose: For each method name, the parameters after the `*` that the model also sees. For
                edit_lines, `line_ids` of read and grep are exposed too.
            prefix: A prefix for the name of each tool.

        Returns:
            The tools, with `schemas` for each provider and `call` to run one.

        Raises:
            AgentFSError: `unknown_tool` if a name is not a tool. `invalid_argument` for an unknown dialect,
                an unknown parameter in `expose`, or edit_lines without read or grep.
        """
        from agentfs.tools.toolset import Toolset

        if isinstance(names, str) and names != "all":
            names = [names]
        if dialect != "agentfs":
            own = None if isinstance(names, str) else names
            made: Toolset = above["dialects"]().find(dialect).tools(self, own, expose=expose, prefix=prefix)
            return made
        offered = self._offered_tools()
        defaults = [name for name, each in offered.items() if each.default]
        chosen = defaults if names is None else [*offered] if isinstance(names, str) else names
        for name in chosen:
            if name not in offered:
                hint = f"Its tools are {', '.join(offered)}."
                raise UnknownToolError(f"A workspace has no tool {name!r}.", hint=hint)
        exposed = {name: tuple(parameters) for name, parameters in (expose or {}).items()}
        for name in chosen:
            needs = offered[name].needs
            if needs and needs.keys().isdisjoint(chosen):
                raise InvalidArgumentError(
                    f"The tool {name} needs values that only {' and '.join(needs)} show.",
                    hint="Offer one of them too.",
                )
            for other in needs.keys() & {*chosen}:
                exposed[other] = (*exposed.get(other, ()), *needs[other])
        methods = [getattr(self, name) for name in chosen]
        return Toolset(methods, expose=exposed, prefix=prefix, workspace=self)

    def _offered_tools(self) -> dict[str, Tool]:
        """Return the methods that the policy offers to a model, default tools first."""
        offered = {
            name: each
            for name, each in declarations(type(self)).items()
            if each.for_models and (not each.ways or self.policy.run in each.ways)
        }
        return dict(sorted(offered.items(), key=lambda item: not item[1].default))

    def view(
        self,
        *,
        limits: Limits | None = None,
        policy: Policy | None = None,
        workdir: str | os.PathLike[str] | None = None,
        only: Sequence[str | os.PathLike[str]] | None = None,
    ) -> Self:
        """Return a view of this workspace with other limits, another policy or a working directory.

        The view shares the root, journal and read history with this workspace. Closing one closes both. A
        view cannot change the rules that confine and protect.

        Args:
            limits: The limits of the view; by default the same.
            policy: The policy of the view; by default the same.
            workdir: The directory inside the root where relative paths start; by default the same. Paths are
                shown relative to it, with `..` if they lie elsewhere. The boundary stays the root. Rules and
                the history keep their paths relative to the root.
            only: Directories inside the root. Nothing outside them is read, listed, changed or named. Steps
                that changed anything outside them cannot be undone, and texts kept before are not
                available. A view of a view can only narrow this further. By default the same.

        Returns:
            The view.

        Raises:
            AgentFSError: `invalid_argument` if the policy changes rules that a view may not change. For
                `workdir`: `not_found`, `not_a_directory`, `outside_workspace`. For `only`:
                `outside_workspace`.
        """
        policy = policy or self.policy
        check_rules(type(self), policy)
        root, outputs = self._root.with_policy(policy), self._outputs
        if only is not None:
            root, outputs = root.restricted_to([fspath(each) for each in only]), OutputStore()
            root.recovery_notes = ()  # they name files of all directories
        if workdir is not None:
            root = root.starting_in(fspath(workdir))
        return self._copied(limits=limits or self.limits, policy=policy, _root=root, _outputs=outputs)

    def _copied(self, **changed: Any) -> Self:
        """Return a copy with other attributes, whose calls are checked."""
        other = copy(self)
        vars(other).update(changed, _guarded_by="")
        return other

    def branch(self, name: str) -> Any:
        """Open a branch: a workspace whose tools and commands change a copy of this tree, until it is merged.

        Its tools run in the sandbox of a staged command, on an overlay that is kept. Files that it has not
        changed show this tree at some moment since the opening. Git's references and index are its own, and
        what it changes in `.git` stays in it. It has the policy and the limits of this workspace.

        Args:
            name: A name, also for the directory that keeps the branch in the `state` of this workspace.
                Without `state`, closing the branch discards it.

        Returns:
            The branch, an `agentfs.branches.Branch`, with `merge`, `discard` and `close`.

        Raises:
            AgentFSError: `unsupported` if the system cannot stage commands, if the state directory lies on an
                overlay, or if this workspace has mounts, is remote or itself a branch; `invalid_argument`
                for the name; `busy` if the branch is open already.
        """
        return above["branches"]().open_branch(self, name)

    def branches(self) -> list[str]:
        """Return the names of the branches that are kept or open."""
        names: list[str] = above["branches"]().names_of(self)
        return names

    @tool(effect="read", default=True)
    def read(
        self,
        path: Path,
        offset: int = 1,
        limit: int | None = None,
        column: int = 1,
        encoding: str | None = None,
        raw: bool = False,
        *,
        line_ids: bool = False,
    ) -> results.ReadResult:
        """Read a file; each line of text is shown as its number, `|`, and the line.

        Args:
            path: File, relative to the workspace root.
            offset: First line, from 1; negative counts from the end (-20: the last 20).
            limit: Most lines; by default as many as fit.
            column: First character of each line, from 1.
            encoding: The codec of the text, if the bytes do not show it.
            raw: Show a notebook as JSON.
            line_ids: Show an id before the `|` of each line, for edit_lines.

        Returns:
            The lines, the facts about the file, and the call that shows the following lines. Images are in
            `images`. In a notebook, `offset` and `limit` count cells; in a PDF, pages; and `column` the
            lines of the first. A directory is listed.

        Raises:
            AgentFSError: `not_found` with the nearest names, `outside_workspace`, `past_end` with the number
                of lines, `invalid_argument` for an offset of 0, `encoding`, `binary` for a broken PDF.
        """
        return cast("results.ReadResult", self._carry_out(_options(reading.page.ReadOptions, locals())))

    @tool(effect="write", default=True, advice=_advice_on_write)
    def write(
        self,
        path: Path,
        content: str,
        *,
        overwrite: bool | None = None,
        encoding: str | None = None,
        newline: Literal["keep", "given", "\n", "\r\n", "\r"] = "keep",
        preview: bool = False,
    ) -> results.WriteResult:
        r"""Create a file, or replace one you have read in full; to change parts of a file, use edit.

        Args:
            path: File, as in read; missing directories are made.
            content: The full text of the file.
            overwrite: True replaces even a file that was not read, False never replaces one; None leaves it
                to the policy.
            encoding: The codec to write with; None for that of the file, or UTF-8. A codec that writes a byte
                order mark in Python (such as `utf-8-sig`) does so here.
            newline: The line ends: `keep` writes CRLF if the file was CRLF throughout, `given` leaves the
                content as it is, and a line end replaces all others. With `given` and an encoding, nothing
                of the old file is kept, not even its byte order mark.
            preview: Return the result and write nothing.

        Returns:
            The change as a unified diff.

        Raises:
            AgentFSError: `unread` for an existing file that this workspace has not shown in full, `stale`
                for one that has changed since, `already_exists`, `encoding`, `read_only`,
                `outside_workspace`, `not_a_file`.
        """
        if newline not in (known := get_args(editing.write.LineEnds)):
            raise must_be("newline", f"one of {', '.join(map(repr, known))}", repr(newline), "")
        target = self._edit_target(path, encoding, preview=preview)
        return editing.write.write_file(target, content, overwrite=overwrite, newline=newline)

    @tool(effect="write")
    def append(self, path: Path, content: str) -> results.WriteResult:
        """Add lines to the end of a file, or create it; no earlier read is needed.

        Args:
            path: File, relative to the workspace root; missing directories are made.
            content: The lines to add.

        Returns:
            The lines that were added, and the change as a unified diff in `diff`.

        Raises:
            AgentFSError: `no_change` for an empty text, `binary`, `encoding`, `too_large`, `not_a_file`,
                `protected`, `read_only`, `outside_workspace`.
        """
        return editing.write.append_to_file(self._edit_target(path), content)

    @tool(
        effect="write",
        default=True,
        advice="For a change to a part of a file use {edit}, with enough context for a unique match.",
    )
    def edit(
        self,
        path: Path,
        old_string: str,
        new_string: str,
        replace_all: bool = False,
        encoding: str | None = None,
        raw: bool = False,
        *,
        expect: int | None = None,
        preview: bool = False,
    ) -> results.EditResult:
        """Replace a piece of text in a file; the rest stays as it is.

        Args:
            path: File, as in read.
            old_string: The text to replace, as the file has it, without line numbers; it must occur exactly
                once, so include enough lines around it.
            new_string: The text to put in its place.
            replace_all: Replace every occurrence.
            encoding: As in read.
            raw: Edit a notebook as JSON, not by its cells.
            expect: How many replacements to make; with any other number nothing is changed.
            preview: Return the result and write nothing.

        Returns:
            The change as a unified diff.

        Raises:
            AgentFSError: `no_match`; `ambiguous`, with each place, or if the number of replacements is not
                `expect`; `no_change`; `binary`, `encoding`, `too_large`, `read_only`, `not_found`.
        """
        edits = [results.Edit(old_string, new_string, replace_all)]
        target = self._edit_target(path, encoding, preview=preview, raw=raw)
        return editing.edit.edit_file(target, edits, expect)

    @tool(effect="write", default=True, advice="Several changes to one file go into one {multi_edit}.")
    def multi_edit(
        self,
        path: Path,
        edits: Edits,
        encoding: str | None = None,
        raw: bool = False,
        *,
        preview: bool = False,
    ) -> results.EditResult:
        """Make several replacements in one file, in order, each on the result of the previous one.

        All are made, or none.

        Args:
            path: File, as in read.
            edits: The replacements, each as in edit.
            encoding: As in read.
            raw: As in edit.
            preview: Return the result and write nothing.

        Returns:
            The change as a unified diff.

        Raises:
            AgentFSError: As `edit`, naming the edit that failed.
        """
        target = self._edit_target(path, encoding, preview=preview, raw=raw)
        made = [results.Edit(**each) if isinstance(each, Mapping) else each for each in edits]
        return editing.edit.edit_file(target, made)

    @tool(effect="write", needs={"read": ("line_ids",), "grep": ("line_ids",)})
    def edit_lines(self, path: Path, changes: LineChanges, *, preview: bool = False) -> results.EditResult:
        """Replace lines of a file, named by the ids that read and grep show; all are replaced, or none.

        Args:
            path: File, relative to the workspace root.
            changes: The lines to replace, and what to put there.
            preview: Return the result and write nothing.

        Returns:
            The change as a unified diff.

        Raises:
            AgentFSError: `unread` if no ids were shown, `unknown_line` and `stale` with the current ids,
                `overlap`, `invalid_argument`, and what `edit` raises.
        """
        changes = [results.LineChange(**each) if isinstance(each, Mapping) else each for each in changes]
        options = _options(editing.change_options.EditLinesOptions, locals())
        return cast("results.EditResult", self._carry_out(options))

    @tool(effect="write", advice="The same change in many files is one {replace}.")
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
    ) -> results.ReplaceResult:
        r"""Replace a text in all files that have it, such as a name; all files are changed, or none.

        Args:
            old_string: The text to replace, wherever it occurs.
            new_string: The text to put in its place.
            path: File or directory to search, relative to the workspace root.
            glob: Only files that match, such as `*.py` or `src/**`.
            expect: How many replacements to make; with any other number nothing is changed.
            word: Only matches with no word character on either side.
            regex: Take `old_string` as a regular expression, as in grep. It is matched in each line alone, or
                in the full text if it has a `\n`; then `.` also matches line ends. In `new_string`, `\1`
                and `\g<name>` are groups and `\\` is a backslash.
            preview: Return the result and write nothing.

        Returns:
            The number of replacements in each file, and what was left out, as in grep. One undo takes all
            replacements back.

        Raises:
            AgentFSError: `no_match`; `ambiguous` if the number of replacements is not `expect`; `no_change`;
                `protected`, `refused`, `read_only`, `encoding` or `too_large`, with all files that cannot be
                changed; `stale` if a file is changed during the call; `invalid_pattern`,
                `invalid_argument`, `timeout`. Nothing is changed then.
        """
        options = editing.replace.ReplaceOptions(
            old_string, new_string, search.options.texts(path), glob, expect, word, regex, preview
        )
        return editing.replace.replace_in_files(self._context, options)

    def _edit_target(
        self, path: Path, encoding: str | None = None, *, preview: bool = False, raw: bool = False
    ) -> "editing.commit.EditTarget":
        return editing.commit.EditTarget(self._context, fspath(path), encoding, preview, raw)

    @property
    def _context(self) -> Context:
        return Context(self._root, self._read_tracker, self.limits, self._outputs)

    @tool(effect="write")
    def delete(self, path: Path, recursive: bool = False) -> results.DeleteResult:
        """Delete a file, a link, or a directory; undo brings it back.

        Args:
            path: File, link or directory, relative to the workspace root.
            recursive: Delete a directory with its contents, even hidden and ignored files.

        Returns:
            What was deleted, with the number of files.

        Raises:
            AgentFSError: `not_a_file` for a directory that is not empty, without `recursive`; `too_large` for
                contents that are too large or too many to keep for undo; `protected`, `refused`, `read_only`.
                Nothing is deleted then.
        """
        return editing.delete_move.delete_path(self._context, fspath(path), recursive=recursive)

    @tool(effect="write")
    def move(self, path: Path, to: Path) -> results.MoveResult:
        """Move or rename a file, a link, or a directory with its contents.

        Args:
            path: File, link or directory, relative to the workspace root.
            to: Its new path, which must be free; missing directories are made.

        Returns:
            What was moved.

        Raises:
            AgentFSError: `already_exists` if the new path exists, `invalid_argument` if a directory would be
                moved into itself, `too_large` for one with very many entries, `not_found`, `read_only`.
                For a file, even inside a moved directory: `protected`, `refused`. Nothing is moved then.
        """
        return editing.delete_move.move_path(self._context, fspath(path), fspath(to))

    @tool(effect="read", for_models=False)
    def stat(self, path: Path) -> results.Entry:
        """Return the kind, size and time of a file or directory, as `ls` lists it; for programs.

        Args:
            path: File, link or directory, relative to the workspace root. A link is not followed.

        Returns:
            The entry.

        Raises:
            AgentFSError: `not_found`, `outside_workspace`, `invalid_path`, `refused`.
        """
        return self._root.entry(fspath(path))

    @tool(effect="read", for_models=False)
    def read_bytes(self, path: Path) -> bytes:
        """Return the bytes of a file; for programs. The file does not count as shown to the model.

        Args:
            path: File, relative to the workspace root.

        Returns:
            All bytes, as they are.

        Raises:
            AgentFSError: `too_large` for more than `Limits.file_bytes`; `not_found`, `not_a_file`,
                `not_regular`, `protected`, `refused`, `outside_workspace`; `io`, also a PermissionError,
                if the system denies the access.
        """
        with self._root.open_file(fspath(path)) as file:
            return file.read_whole(self.limits.file_bytes)

    @tool(effect="write", for_models=False)
    def write_bytes(self, path: Path, data: bytes) -> results.WriteResult:
        """Create a file, or replace all of its bytes; for programs. A link inside the root is followed.

        The file need not have been read, and its mode stays. `undo` takes the change back.

        Args:
            path: File, relative to the workspace root; missing directories are made.
            data: The bytes, of any kind.

        Returns:
            What was written. The diff is empty.

        Raises:
            AgentFSError: `too_large` for more than `Limits.file_bytes`; `already_exists` for another content
                if `Policy.overwrite` is "never"; `not_a_file`, `not_a_directory`, `not_regular`, `protected`,
                `refused`, `read_only`, `outside_workspace`; `io`, also a PermissionError, if the system
                denies the access.
        """
        return editing.write.write_bytes(self._context, fspath(path), memoryview(data).tobytes())

    @tool(effect="write", for_models=False)
    def mkdir(self, path: Path) -> results.DirectoryResult:
        """Make a directory, and those above it, as one step; for programs. One that exists is left as it is.

        Args:
            path: Directory, relative to the workspace root.

        Returns:
            The directory, and whether it was made.

        Raises:
            AgentFSError: `already_exists` for anything else at the path; `not_a_directory`, `protected`,
                `refused`, `read_only`, `outside_workspace`; `io`, also a PermissionError, if the system
                denies the access.
        """
        return editing.write.make_directory(self._context, fspath(path))

    @tool(effect="read", default=True)
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
    ) -> results.ListResult:
        """List a directory: directories first, then files, by name.

        Args:
            path: Directory to list.
            depth: Levels to descend; 0: all.
            limit: Most entries to show.
            offset: Entries to skip.
            include_ignored: Show hidden and gitignored entries too.
            ignore: Globs of entries to leave out.
            hidden: Show hidden entries; by default, as `include_ignored`.
            sort: The order within each directory: by name, newest first or largest first.

        Returns:
            The entries, and what was left out.

        Raises:
            AgentFSError: `not_found`, `not_a_directory`, `outside_workspace`, `past_end`.
        """
        return cast("results.ListResult", self._carry_out(_options(search.options.ListOptions, locals())))

    @tool(effect="read", default=True, advice="Find files by name with {glob}.")
    def glob(
        self,
        pattern: Globs,
        path: Paths = ".",
        limit: int | None = None,
        offset: int = 0,
        include_ignored: bool = False,
        *,
        exclude: str | Sequence[str] | None = None,
        types: str | Sequence[str] = "f",
        max_depth: int | None = None,
        hidden: bool | None = None,
        sort: Literal["path", "modified", "size"] = "path",
        timeout: float | None = None,
    ) -> results.GlobResult:
        """Find files by name.

        Args:
            pattern: Glob such as `*.py`, `src/**/test_*.{js,ts}`; without `/` it matches names at any depth.
            path: Directory to search.
            limit: Most files.
            offset: Files to skip.
            include_ignored: Search hidden and gitignored files too.
            exclude: Globs of files and directories to leave out.
            types: Letters of the types to find: f(ile), d(irectory), l(ink), (e)x(ecutable), e(mpty).
            max_depth: Last level to search; 1 is the entries of `path` itself.
            hidden: Search hidden files too; by default, as `include_ignored`.
            sort: The order: by path, newest first or largest first.
            timeout: Seconds that the search may take.

        Returns:
            The files in order of path, and what was left out.

        Raises:
            AgentFSError: `invalid_pattern`, `not_found`, `not_a_directory`, `outside_workspace`, `past_end`.
        """
        return cast("results.GlobResult", self._carry_out(_options(search.options.GlobOptions, locals())))

    @tool(effect="read", default=True, advice="Search contents with {grep} before you read.")
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
        fixed_strings: bool = False,
        word: bool = False,
        exclude: str | Sequence[str] | None = None,
        hidden: bool | None = None,
        encoding: str | None = None,
        line_ids: bool = False,
        sort: Literal["path", "modified", "size"] = "path",
        timeout: float | None = None,
    ) -> results.GrepResult:
        r"""Search the contents of files with a regular expression.

        Args:
            pattern: Regular expression; escape `( ) [ . *` to match them literally.
            path: File or directory to search.
            glob: Only files that match, such as `*.py` or `src/**`.
            type: Only files of a type, such as `py`, `js`, `rust`.
            output_mode: Matching lines, file names, counts per file, counts with samples, or only the total.
            ignore_case: Match upper and lower case alike.
            context: Lines to show around each match; by default none.
            multiline: Let a match span lines, and `.` match line ends.
            limit: Most matches, or files.
            offset: Matches, or files, to skip.
            include_ignored: As in glob.
            before: Lines to show before each match.
            after: Lines to show after each match.
            fixed_strings: Take the pattern as plain text.
            word: Only matches without a word character on either side.
            exclude: Globs of files and directories to leave out.
            hidden: Search hidden files too; by default, as `include_ignored`.
            encoding: Codec of files that are not UTF-8 and have no byte order mark.
            line_ids: Give each matching line an id before its `|`, for edit_lines.
            sort: The order of the files: by path, newest first or largest first.
            timeout: Seconds that the search may take.

        Returns:
            The matches in order of path, with totals, and what was left out.

        Raises:
            AgentFSError: `invalid_pattern` with the place of the mistake, `not_found`, `outside_workspace`,
                `invalid_argument`, `past_end`.
        """
        return cast("results.GrepResult", self._carry_out(_options(search.options.GrepOptions, locals())))

    @guard_options
    def _carry_out(self, options: Any) -> Any:
        """Carry out the options of a method, which a dialect may have set beyond its parameters."""
        context = self._context
        match type(options).__name__:
            case "ReadOptions":
                return reading.read.read_path(context, options)
            case "EditLinesOptions":
                target = self._edit_target(options.path, preview=options.preview)
                return editing.edit_lines.edit_lines_file(target, options)
            case "InsertOptions":
                return editing.edit.insert_lines(self._edit_target(options.path), options.line, options.text)
            case "SpliceOptions":
                return editing.edit.splice_file(self._edit_target(options.path), options.spans)
            case "ListOptions":
                return search.listing.list_directory(context, options)
            case "GlobOptions":
                return search.listing.find_files(context, options)
            case _:
                return search.grep_text.grep_files(context, options)

    def _keep(self, kept: results.Result | str, kind: str = "out") -> str:
        """Keep the full text of a result under a short name, which `read` and `grep` accept as a path."""
        return self._outputs.keep(kept, self._root, kind)

    @tool(effect="write")
    def undo(self, steps: int = 1, paths: Files | None = None) -> results.UndoResult:
        """Take back your last changes, all of them or none; what other programs changed since stays.

        Args:
            steps: How many changes to take back.
            paths: Only what changed at or below these paths.

        Returns:
            The outcome for each file.

        Raises:
            AgentFSError: `conflict` if another program has changed the same lines of a file, with the lines
                and the call for the other paths; `invalid_argument` if there are fewer steps.
        """
        return history.undo.undo(self._journal, self._context, steps, paths)

    @tool(effect="write")
    def redo(self, steps: int = 1) -> results.UndoResult:
        """Make changes again that were undone; what other programs changed since stays.

        Args:
            steps: How many changes to make again.

        Returns:
            The outcome for each file.

        Raises:
            AgentFSError: `conflict` as `undo`; `invalid_argument` if fewer steps were undone.
        """
        return history.undo.redo(self._journal, self._context, steps)

    @tool(effect="none")
    def checkpoint(self, name: str | None = None) -> results.CheckpointResult:
        """Name the present state of the files, so that rollback can return to it.

        Args:
            name: The name; by default a number. A name that exists is moved here.

        Returns:
            The name.

        Raises:
            AgentFSError: `invalid_argument` for an empty name or one over 200 characters.
        """
        return history.operations.checkpoint(self._journal, name)

    @tool(effect="write")
    def rollback(self, to: str, paths: Files | None = None) -> results.UndoResult:
        """Take the files back to a checkpoint, all of them or none; redo makes the changes again.

        Args:
            to: The name of the checkpoint.
            paths: Only what changed at or below these paths.

        Returns:
            The outcome for each file.

        Raises:
            AgentFSError: `not_found` for an unknown checkpoint, with the known ones; `conflict` as `undo`.
        """
        return history.undo.rollback(self._journal, self._context, to, paths)

    def forget(self) -> None:
        """Forget which files were read, for example after the loop has cut the model's history.

        `write` and `edit_lines` require a new read, and line ids are never reused. The journal stays.
        """
        self._read_tracker.forget()
        if self._root.watch is not None:
            self._root.watch.forget()

    @contextmanager
    def transaction(self) -> Generator[Self]:
        """Make several changes as one step: they are made at once, and taken back if the block raises.

        Others see the changes as they are made. For `undo` and `redo`, all of them are one step. What others
        change meanwhile is kept. If they change the same lines, a note on the exception names the files.
        A transaction can be nested: if it raises, only its own changes are taken back.

        Yields:
            The transaction, a `Workspace` to use within the block.
        """
        with history.operations.transaction(self._journal, self._context) as (root, journal):
            yield self._copied(_root=root, _journal=journal)

    @contextmanager
    def recording(self, label: str, include_ignored: bool = False) -> Generator[Recording]:
        """Record all changes that any process makes in the tree during the block, as one step of the journal.

        The step can be shown, undone and rolled back like any other. It is made even if the block raises.
        A change through the workspace during the block is still a step of its own. If it follows a change of
        the same file by a command, the changes of commands so far become a step before it.

        Args:
            label: A name for the step, such as a command; at most 200 characters.
            include_ignored: Record ignored files too, for example those of a build.

        Yields:
            The recording. After the block, its `result` tells what changed; `result.text` is for the model.

        Raises:
            AgentFSError: `invalid_argument` for the label; `read_only`; `refused` in a transaction;
                `too_large` for a tree with more names than `Limits.walk_entries`.
        """
        given = self._journal, self._root, self.limits
        opened = history.recording.begin_recording(*given, label, include_ignored=include_ignored)
        recorded = Recording(label)
        try:
            yield recorded
        finally:
            recorded.result = history.recording.end_recording(opened, may_show_recorded(self))

    def recorded(self, function: _Function) -> _Function:
        """Return a function that records each of its calls; wrap the shell tool of a loop with it.

        The label is the name of the function with its first text argument. If the function returns a text,
        a list of the changes is added to the text. If it returns an awaitable, the recording lasts until that
        has ended.

        Args:
            function: A function or callable object with any parameters, async or not.

        Returns:
            A function with the same signature and documentation.

        Raises:
            InvalidArgumentError: `invalid_argument`: it is a generator; read it in a block of `recording`.
        """
        return history.recorded_calls.record_calls(function, self.recording, Runner(_MOST_RECORDED).entered)

    @tool(effect="read")
    def changes(self, since: str | None = None, paths: Files | None = None) -> results.ChangesResult:
        """Show how your files differ from before your changes, as one patch.

        Args:
            since: A checkpoint; by default everything.
            paths: Only what changed at or below these paths.

        Returns:
            The files, and the patch in git's format, from the state before to the state now. Files that
            another program has changed since are marked.

        Raises:
            AgentFSError: `not_found` for an unknown checkpoint, with the known ones; `refused`.
        """
        return history.operations.changes(self._journal, self._context, since, paths)

    @tool(effect="read", for_models=False)
    def review(self, since: str | None = None, paths: Files | None = None) -> results.Review:
        """Show what has changed, hunk by hunk, with the author of each line, to accept it or take it back.

        Args:
            since: A checkpoint: only hunks with lines of later steps, or of other programs; by default all.
            paths: Only what changed at or below these paths.

        Returns:
            The files and hunks that are not accepted yet, for `apply_review`. It can be rendered as text,
            JSON and HTML.

        Raises:
            AgentFSError: `not_found` for an unknown checkpoint, with the known ones; `timeout`.
        """
        return history.review.review(self._journal, self._context, since, paths)

    def _first_versions(self, skip: int) -> dict[str, list[bytes]]:
        """Return the first versions in the journal, without the first `skip`; see `history.operations`."""
        return history.operations.first_versions(self._journal, skip)

    @tool(effect="write", for_models=False)
    def apply_review(
        self, accept: Sequence[str] = (), reject: Sequence[str] = (), edit: Mapping[str, str] | None = None
    ) -> results.ReviewedResult:
        """Decide about hunks of a review, all of them or none, as one step that `undo` takes back.

        Args:
            accept: Ids of hunks that leave the next review.
            reject: Ids of hunks to take back on disk; what other programs have changed stays.
            edit: New texts in place of the new lines of hunks, by id.

        Returns:
            What was done. Its text is for the model.

        Raises:
            AgentFSError: `invalid_argument` for an id that is given twice, or a part of a rename; `conflict`
                if a hunk has changed since, or if others have changed the same lines; `encoding` if the file
                cannot hold a text; `read_only`, `protected`. Nothing is done then.
        """
        given = self._journal, self._context, accept, reject, edit or {}
        return history.review.apply_review(*given)

    @tool(
        effect="execute",
        rule="command",
        ways=("staged", "recorded"),
        advice="Run commands with {run}; prefer the other tools for reading, searching and editing.",
    )
    def run(
        self,
        command: str,
        timeout: float = 120,
        cwd: Path = ".",
        *,
        network: bool = False,
        env: Mapping[str, str] | None = None,
        stdin: bytes | str | None = None,
        background: bool = False,
        preview: bool = False,
    ) -> results.RunResult:
        """Run a shell command; its changes are under the same rules and undo as those of the other tools.

        A staged command has no network, a `/tmp` of its own, and sees protected files empty.

        Args:
            command: The command, for bash.
            timeout: Seconds until it is stopped, at most 600.
            cwd: Directory in which it starts, relative to the workspace root.
            network: Give a staged command the network of the system as it is.
            env: Variables to add to its environment.
            stdin: Its standard input; by default empty.
            background: Return at once, with the id to pass to `output` and `stop`. Only if `Policy.run` is
                "recorded".
            preview: Show the changes of a staged command, and apply none.

        Returns:
            Its output, its exit status, and what it has changed.

        Raises:
            AgentFSError: `unsupported` if the policy has no `run`, or the system cannot stage commands;
                `invalid_argument`, `not_a_directory`, `not_found` or `outside_workspace` for the arguments.
                For what a staged command has changed: `protected`, `refused`, `conflict` and `too_large`.
        """
        data = stdin.encode("utf-8", "surrogatepass") if isinstance(stdin, str) else stdin
        asked = commands.request.CommandRequest(command, timeout, fspath(cwd), network, env, data, preview)
        if background:
            return commands.run.start_in_background(self._surroundings, asked, self._background)
        return commands.run.run(self._surroundings, asked)

    @tool(effect="none", needs={"run": ("background",)}, ways=("recorded",))
    def output(self, id: str, offset: int = 0) -> results.CommandOutput:  # noqa: A002 - the contract's name
        """Show what a command in the background has written.

        Args:
            id: The id that `run` has returned.
            offset: Bytes of its output to skip, such as the `offset` of the last answer.

        Returns:
            The output from there on, and the offset of what comes later.

        Raises:
            AgentFSError: `not_found` for an unknown id, with the known ones.
        """
        return self._background.find(id).output(offset)

    @tool(effect="none", needs={"run": ("background",)}, ways=("recorded",))
    def stop(self, id: str) -> results.RunResult:  # noqa: A002 - as above
        """Stop a command in the background, with all its processes.

        Args:
            id: The id that `run` has returned.

        Returns:
            Its output, its exit status, and what it has changed.

        Raises:
            AgentFSError: `not_found` for an unknown id, with the known ones.
        """
        return self._background.find(id).stop()

    @property
    def _surroundings(self) -> "Surroundings":
        private = self._journal.private_paths
        given = self._root, self._journal, self.limits, self._outputs, self._hidden_files, private
        return commands.request.Surroundings(*given, may_show_recorded(self))
