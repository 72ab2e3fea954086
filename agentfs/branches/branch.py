"""`Branch`: a workspace whose tools run in a sandbox, on an overlay of its parent's tree."""
# ruff: noqa: SLF001 - a branch works with the parts of its parent
# pyright: reportPrivateUsage=false

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary

from agentfs.branches.branch_merge import BranchMerge
from agentfs.branches.branch_sandbox import BranchSandbox, check_place
from agentfs.branches.inside import JOURNAL, run_of
from agentfs.commands.sandbox import find_sandbox
from agentfs.commands.stage import stage_places
from agentfs.errors import BusyError, InvalidArgumentError, UnsupportedSystemError
from agentfs.events import reports_calls
from agentfs.fs import quote
from agentfs.fs.own_directories import OwnDirectory
from agentfs.history.journal import Journal
from agentfs.remote.client import Declared, RemoteWorkspace
from agentfs.results import MergeResult
from agentfs.tools.gate import check_permission
from agentfs.workspace import Workspace

_NAME = re.compile(r"(?!stage-)[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_DIRECTORY = "branches"  # in the state directory
_open: WeakKeyDictionary[Journal, WeakValueDictionary[str, BranchSandbox]] = WeakKeyDictionary()


class Branch(RemoteWorkspace):
    """A branch of a workspace; see `Workspace.branch`."""

    def __init__(self, parent: Workspace, name: str, sandbox: BranchSandbox) -> None:
        policy = replace(parent.policy, run=run_of(parent.policy))  # type: ignore[arg-type] # one of its values
        super().__init__(sandbox.start, parent.root, policy=policy, limits=parent.limits, state=JOURNAL)
        self.name = name
        self._parent, self._sandbox = parent, sandbox
        self.on_event = parent.on_event

    def merge(
        self,
        paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None = None,
        preview: bool = False,
    ) -> MergeResult:
        """Apply what the branch has written to the parent, as one step that `undo` takes back.

        Texts that the parent has changed too are merged by lines. Commands of the branch in the background
        end. Changes in `.git` stay in the branch.

        Args:
            paths: Only what the branch has written at or below these paths; by default everything.
            preview: Apply nothing.

        Returns:
            The changes of the parent; `merged` and `equal` name the paths that the parent had changed too.

        Raises:
            AgentFSError: `conflict`, with the paths and both texts, if both have changed the same lines;
                `refused`, `protected` and `too_large` as for a staged command. Nothing is applied then.
                `busy` while a command runs.
        """
        if self._sandbox.running:
            raise BusyError(
                f"The branch {quote(self.name)} runs a command: {self._sandbox.running[0]}",
                hint="Merge when it has ended.",
            )
        check_place(self._parent._root.top)
        merge = BranchMerge(self, self._parent, self._sandbox)
        given = [paths] if isinstance(paths, (str, os.PathLike)) else paths
        chosen = None if given is None else [os.fspath(each) for each in given]
        result: MergeResult = reports_calls(check_permission(merge.merge, "write"))(
            self._parent, branch=self.name, paths=chosen, preview=preview
        )
        return result

    def discard(self) -> None:
        """Close the branch and remove all that it has written."""
        self._end(discard=True)

    def close(self) -> None:
        """Close the branch. With the `state` of its parent, it is kept until it is discarded."""
        self._end()

    def _end(self, *, discard: bool = False) -> None:
        self._session.closed = True
        self._sandbox.end(discard=discard)
        super().close()

    def _call(self, method: str, arguments: Mapping[str, Any], declared: Declared, given: Any = None) -> Any:
        sandbox = self._sandbox
        sandbox.check_exposed()
        is_command = method == "run"
        if is_command and sandbox.check():
            self._session.drop()  # the next connection hides them
        self._session.connection()  # so that the command cannot see what the next one hides
        try:
            with sandbox.command(arguments["command"]) if is_command else nullcontext():
                return super()._call(method, arguments, declared, given)
        finally:
            if sandbox.is_busy:
                sandbox.check()


def open_branch(parent: Workspace, name: str) -> Branch:
    """Open a branch of a workspace; see `Workspace.branch`."""
    _check(parent, name)
    place = _place(parent)
    opened = _open.setdefault(parent._journal.main, WeakValueDictionary())
    if name in opened and opened[name].is_open:
        raise BusyError(f"The branch {quote(name)} is open already.", hint="Use that one, or close it first.")
    if not place:
        sandbox = find_sandbox(stage_places(parent.root))
    else:
        OwnDirectory(place).make(exist_ok=True)
        try:
            sandbox = find_sandbox((place,))
        except UnsupportedSystemError as error:
            error.hint = f"{error.hint} Or give a state directory on a volume or a tmpfs."
            raise
    opened[name] = kept = BranchSandbox(parent._surroundings, sandbox, name if place else "")
    try:
        return Branch(parent, name, kept)
    except BaseException:
        kept.end()
        raise


def names_of(parent: Workspace) -> list[str]:
    """Return the names of the branches that are kept or open."""
    opened = _open.setdefault(parent._journal.main, WeakValueDictionary())
    found = {name for name, each in opened.items() if each.is_open}
    if os.path.isdir(place := _place(parent)):
        found |= {each for each in OwnDirectory(place).names() if not each.startswith("stage-")}
    return sorted(found)


def _place(parent: Workspace) -> str:
    """Return the directory of the kept branches in the state directory, or "" if there is none."""
    return next((os.path.join(path, _DIRECTORY) for path in parent._journal.private_paths), "")


def _check(parent: Workspace, name: str) -> None:
    if isinstance(parent, Branch):
        raise UnsupportedSystemError("A branch has no branches.", hint="Make it of the workspace itself.")
    if isinstance(parent, RemoteWorkspace):
        raise UnsupportedSystemError(
            "A remote workspace has no branches.",
            hint="Call `branch` where the files are, and serve that root.",
        )
    if not _NAME.fullmatch(name):
        raise InvalidArgumentError(
            f"A branch cannot be called {quote(name[:200])}.",
            hint="Give it 1 to 100 letters, digits, '.', '_' and '-', the first a letter or digit.",
            details={"parameter": "name"},
        )
    if parent.mounts:
        raise UnsupportedSystemError(
            "A workspace with mounts has no branches.", hint="Open one on the same root without mounts."
        )
    if parent._journal.groups or parent._root.usable_directories != ["."]:
        raise UnsupportedSystemError(
            "A branch is of a whole workspace, not of a transaction or of some directories.",
            hint="Make it of the workspace itself.",
        )
    check_place(parent._root.top)
