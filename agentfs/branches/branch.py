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

from agentfs.branches.branch_merge import merge_branch
from agentfs.branches.branch_sandbox import BranchSandbox, check_place
from agentfs.commands.sandbox import find_sandbox
from agentfs.commands.stage import stage_places
from agentfs.commands.system import entries
from agentfs.errors import BusyError, InvalidArgumentError, UnsupportedSystemError
from agentfs.events import reports_calls
from agentfs.fs import quote
from agentfs.history.journal import Journal
from agentfs.remote.client import Declared, RemoteWorkspace
from agentfs.results import MergeResult
from agentfs.tools.gate import check_permission
from agentfs.workspace import Workspace

_NAME = re.compile(r"(?!stage-)[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_open: WeakKeyDictionary[Journal, WeakValueDictionary[str, BranchSandbox]] = WeakKeyDictionary()


class Branch(RemoteWorkspace):
    """A branch of a workspace; see `Workspace.branch`."""

    def __init__(self, parent: Workspace, name: str, sandbox: BranchSandbox) -> None:
        policy = replace(parent.policy, run="recorded" if parent.policy.run else None)
        super().__init__(sandbox.start, parent.root, policy=policy, limits=parent.limits, state="journal")
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
        sandbox, around = self._sandbox, self._parent._surroundings
        if running := [*sandbox.running]:
            message = f"The branch {quote(self.name)} runs a command: {running[0]}"
            raise BusyError(message, hint="Merge when it has ended.")
        check_place(around.root.top)
        first: dict[str, list[bytes]] = {}
        while more := self._first_versions(len(first)):
            first |= more

        def merge(workspace: Workspace, branch: str, paths: Any, preview: bool) -> MergeResult:
            with sandbox.stopped():
                self._session.drop()
                sandbox.check()
                given = workspace._surroundings, sandbox, first, f"merge: {branch}", paths
                return merge_branch(*given, preview=preview)

        chosen = [paths] if isinstance(paths, (str, os.PathLike)) else paths and [*paths]
        checked = reports_calls(check_permission(merge, "write"))
        result: MergeResult = checked(self._parent, branch=self.name, paths=chosen, preview=preview)
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
    if place:
        os.makedirs(place, mode=0o700, exist_ok=True)
    try:
        sandbox = find_sandbox((place,) if place else stage_places(parent.root))
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
    opened = _open.get(parent._journal.main, WeakValueDictionary[str, BranchSandbox]())
    found = {name for name, each in opened.items() if each.is_open}
    return sorted(
        found | {os.path.basename(each) for each in entries(_place(parent)) if "stage-" not in each}
    )


def _place(parent: Workspace) -> str:
    """Return the directory of the kept branches in the state directory, or "" if there is none."""
    return next((os.path.join(path, "branches") for path in parent._journal.private_paths), "")


def _check(parent: Workspace, name: str) -> None:
    """Raise an error if a workspace cannot have this branch."""
    if not _NAME.fullmatch(name):
        raise InvalidArgumentError(
            f"A branch cannot be called {quote(name[:200])}.",
            hint="Give it 1 to 100 letters, digits, '.', '_' and '-', the first a letter or digit.",
            details={"parameter": "name"},
        )
    is_local = not isinstance(parent, RemoteWorkspace)
    reasons = {
        "A branch": isinstance(parent, Branch),
        "A remote workspace": not is_local,
        "A workspace with mounts": is_local and bool(parent.mounts),
        "A transaction": is_local and bool(parent._journal.groups),
        "A view of some directories": is_local and parent._root.usable_directories != ["."],
    }
    if found := next((what for what, holds in reasons.items() if holds), ""):
        raise UnsupportedSystemError(f"{found} has no branches.", hint="Open a workspace on the root itself.")
    check_place(parent._root.top)
