"""The workspace: one directory tree that a language model may look at and change."""

import os
from collections.abc import Mapping, Sequence
from copy import copy
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self

from agentfs.errors import UnknownToolError
from agentfs.events import OnEvent
from agentfs.limits import Limits
from agentfs.methods.changing import Changing
from agentfs.methods.history import History
from agentfs.methods.reading import Reading
from agentfs.methods.searching import Searching
from agentfs.policy import Policy
from agentfs.results import Containment, Result
from agentfs.tools.checking import checked

if TYPE_CHECKING:  # of methods that are no tools, so no schema is made from these
    from agentfs.tools.toolset import Toolset

_FOR_PROGRAMS = ("splice",)  # its spans are offsets, which no model counts
DEFAULT_TOOLS = ("read", "write", "edit", "multi_edit", "ls", "glob", "grep")


@checked
class Workspace(Reading, Changing, Searching, History):
    """One agent's view of one directory tree.

    Guaranteed on every system: paths and links that stand still lead nowhere outside the root; links are
    followed only where they land inside. The contents of protected names (`Policy.protect`) are shown by no
    method, and what runs code is not changed, by any spelling or link. A change replaces a file by a
    rename, so that whatever fails, a kill too, leaves the old file or the new one, whole; threads that use
    agentfs lose no update. Every answer says what it left out. A workspace remembers which versions of
    which files it has shown, and `write` replaces only those. It may be used from several threads.

    Guaranteed besides, by what `containment` names as in force:

    * Linux 5.6 or newer ("openat2"): nothing outside is read, listed or changed while another process swaps
      directories for links, as the kernel confines each open. Processes of one user lose no update either.
    * Older or filtered Linux, macOS, BSD ("fd-walk"): the same, by a walk name by name on descriptors.
      Tested on Linux with openat2 taken away; on macOS and BSD it has not been run by us.

    Not on Windows, where opening a workspace is an error; importing agentfs and making schemas work there.

    Not guaranteed: it is no sandbox. A shell tool, mounts and hard links made by the same user are out of
    its reach, and a directory that is moved out of the root while it is open is followed. A program that
    does not lock may write at the very moment of the rename.

    In each method, the parameters before the `*` are what a model sees; those after it are the programmer's.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        *,
        policy: Policy | None = None,
        limits: Limits | None = None,
        engine: Literal["python", "ripgrep"] = "python",
        state: str | os.PathLike[str] | None = None,
        on_event: OnEvent | None = None,
    ) -> None:
        """Open a directory tree.

        Args:
            root: The directory; it must exist.
            policy: What may be changed, and how; by default everything inside the root that was seen.
            limits: The bounds of one answer, one file and one search.
            engine: "ripgrep" lets `rg` say which files `grep` is to look at, where that changes no answer; it
                opens paths by itself, and so may be led outside by who swaps them meanwhile.
            state: A directory outside of the tree, where the journal and what was shown outlive the process.
            on_event: What is told of each call of its tools, from the thread that runs it.

        Raises:
            AgentFSError: `not_found` or `not_a_directory` for the root; `invalid_argument` for the engine;
                `unsupported` on Windows. For the state directory `invalid_argument` (not outside, another
                tree's, another program's), `busy`, `io` (damaged).
        """
        from agentfs.cache import FileCache
        from agentfs.fs import Root
        from agentfs.output_store import OutputStore

        self.policy = policy or Policy()
        self.limits = limits or Limits()
        self.engine: Literal["python", "ripgrep"] = engine
        self.on_event = on_event
        self._root = Root(root, self.policy)
        self._begin(state)
        self._indexes: FileCache[Any] = FileCache()
        self._outputs = OutputStore()

    @property
    def root(self) -> str:
        """The absolute path of the root, without links."""
        return self._root.path

    @property
    def containment(self) -> Containment:
        """What confines calls to the root at this moment, and what keeps writers apart."""
        return {**self._root.containment, "engine": self.engine}

    @property
    def recovery_notes(self) -> tuple[str, ...]:
        """What was found and put right on opening, because a process had died in the middle of a change."""
        return self._root.recovery_notes

    def close(self) -> None:
        """Give back the descriptor on the root; every later call fails."""
        self._root.close()
        self._end()

    def __enter__(self) -> Self:
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
            expose: For a method, by its name, parameters after the `*` that the model sees too.
            prefix: What stands before the name of each tool.

        Returns:
            Their schemas for each provider, and `call`, which runs one.

        Raises:
            AgentFSError: `unknown_tool` for a name that is no tool, `invalid_argument` for a parameter to
                expose that is not there, or a dialect that is not known.
        """
        chosen = [names] if isinstance(names, str) and names != "all" else names
        if dialect != "agentfs":
            from agentfs.dialects import find

            own = None if isinstance(chosen, str) else chosen
            return find(dialect).tools(self, own, expose=expose, prefix=prefix)
        from agentfs.tools.toolset import Toolset

        there = self.tool_names()
        chosen = DEFAULT_TOOLS if chosen is None else there if isinstance(chosen, str) else chosen
        for name in chosen:
            if name not in there:
                raise UnknownToolError(
                    f"A workspace has no tool {name!r}.", hint=f"Its tools are {', '.join(there)}."
                )
        methods = [getattr(self, name) for name in chosen]
        return Toolset(
            methods, expose=expose, prefix=prefix, on_event=self.on_event, timeout=self.limits.timeout
        )

    def view(
        self,
        *,
        limits: Limits | None = None,
        policy: Policy | None = None,
        workdir: str | os.PathLike[str] | None = None,
        only: Sequence[str | os.PathLike[str]] | None = None,
    ) -> Self:
        """Return this workspace under other limits and another policy, or with paths from another directory.

        It is the same workspace: it shares the root and all that is remembered, and closing either closes
        both. What confines and protects cannot be changed.

        Args:
            limits: Its limits; by default the same.
            policy: Its policy; by default the same.
            workdir: The directory inside the root in which relative paths start, and from which paths are
                shown, with `..` where they lie elsewhere; by default the same. The boundary stays the root,
                and rules and the history keep their paths from there.
            only: Directories inside the root; nothing outside of them is read, listed, changed or named. All
                else holds as before, so that this can only narrow. By default the same as now.

        Raises:
            AgentFSError: `invalid_argument` where the policy differs in what a view may not change; for
                `workdir` `not_found`, `not_a_directory`, `outside_workspace`, …, for `only` the last.
        """
        other = copy(self)
        other.limits = limits or self.limits
        other.policy = policy or self.policy
        root = self._root.with_policy(other.policy)
        root = root if only is None else root.restricted_to([os.fspath(each) for each in only])
        other._root = root if workdir is None else root.starting_in(os.fspath(workdir))  # noqa: SLF001 - its own
        return other

    def tool_names(self) -> list[str]:
        """Return the names of the methods that can be tools: those that return a result."""
        known = (*DEFAULT_TOOLS, *_FOR_PROGRAMS)
        others = [name for name in dir(type(self)) if not name.startswith("_") and name not in known]
        return [*DEFAULT_TOOLS, *(name for name in others if _returns_result(getattr(type(self), name)))]


def _returns_result(method: object) -> bool:
    returned = getattr(method, "__annotations__", {}).get("return")
    return isinstance(returned, type) and issubclass(returned, Result)
