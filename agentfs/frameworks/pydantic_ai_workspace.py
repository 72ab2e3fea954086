"""pydantic-ai: a backend of its workspaces, with files and commands under the rules of a workspace."""

import math
import os
import posixpath
import shlex
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from threading import Lock
from typing import TypeVar

from pydantic_ai import workspaces as api

from agentfs import errors
from agentfs.base.runner import Runner
from agentfs.frameworks.backends import NO_TIMEOUT, Place, directory_of, open_below
from agentfs.policy import Policy, Run
from agentfs.results import Entry
from agentfs.workspace import Workspace

_R = TypeVar("_R")
_PROVIDER = "agentfs"
_MOST_LINKS = 40  # that one path leads through
_GONE = (errors.ClosedError, errors.DisconnectedError, errors.RootGoneError)


class WorkspaceBackend:
    """A workspace as a backend of pydantic-ai, for `Agent(...).run(workspace=...)`.

    Files, commands and their changes are under the policy and undo of the workspace. Nothing is opened
    before the first operation. Each path is absolute, or relative to the working directory.

    Args:
        root_or_ws: A directory, or an open workspace, whose policy also decides about commands. None makes a
            new directory at the first operation; whoever holds the ref deletes it.
        ref: The ref of an earlier backend, to attach to its directory.
        policy: The rules for what the model causes.
        run: How commands run in a directory unless the policy says it: "recorded" in the directory itself,
            "staged" on an overlay without protected files, or None for no commands.
    """

    def __init__(
        self,
        root_or_ws: Place | None = None,
        *,
        ref: api.WorkspaceRef | None = None,
        policy: Policy | None = None,
        run: Run | None = "recorded",
    ) -> None:
        if ref is not None and (root_or_ws is not None or ref.provider != _PROVIDER):
            raise ValueError("Pass either a root or a ref of an earlier backend of agentfs.")
        self._place = ref.id if ref is not None else root_or_ws
        self._policy = policy
        self._run_mode: Run | None = run
        self._ref = ref
        self._workspace: Workspace | None = None
        self._closed = False
        self._lock = Lock()
        self._runner = Runner(64)

    @property
    def ref(self) -> api.WorkspaceRef | None:
        """The ref of the directory; None before it exists."""
        return self._ref

    @property
    def workspace(self) -> Workspace:
        """The workspace, opened if it was not yet, for example to undo: `backend.workspace.host.undo()`."""
        with self._lock:
            if self._closed:
                raise api.WorkspaceUnavailableError("This backend is closed.")
            if self._workspace is None:
                if self._place is None:
                    self._place = os.path.realpath(tempfile.mkdtemp(prefix="agentfs-"))
                    self._ref = api.WorkspaceRef(provider=_PROVIDER, id=self._place)
                try:
                    self._workspace = open_below(self._place, self._policy, self._run_mode)
                except (errors.NotFoundError, errors.NotDirectoryError, *_GONE) as error:
                    raise api.WorkspaceUnavailableError(str(error.message)) from error
                if self._ref is None:
                    self._ref = api.WorkspaceRef(provider=_PROVIDER, id=self._directory)
            return self._workspace

    @property
    def _directory(self) -> str:
        assert self._workspace is not None  # noqa: S101 - the callers have opened it
        return directory_of(self._workspace)

    def close(self) -> None:
        """Close the backend, and the workspace if the backend has opened it; the directory stays."""
        with self._lock:
            self._closed = True
            if self._workspace is not None and isinstance(self._place, (str, os.PathLike)):
                self._workspace.close()

    async def _call(self, work: Callable[[Workspace], _R]) -> _R:
        """Run a function of the workspace in a thread."""
        try:
            return await self._runner.run_off_loop(lambda: work(self.workspace), tool=None)
        except _GONE as error:
            raise api.WorkspaceUnavailableError(str(error.message)) from error

    async def working_dir(self) -> str:
        """Return the directory where commands start."""

        def directory(workspace: Workspace) -> str:
            workspace.stat(".")  # raises if the root is gone
            return self._directory

        return await self._call(directory)

    async def run(
        self,
        command: api.WorkspaceCommand,
        *,
        shell: bool = False,
        env: Mapping[str, str] | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - the protocol's
    ) -> api.CommandResult:
        """Run a command in the working directory, as the policy says."""
        if isinstance(command, str) is not shell:
            raise TypeError("A text needs shell=True, and a list of arguments shell=False.")
        if not command:
            raise ValueError("The command is empty.")
        if timeout is not None and not 0 < timeout < math.inf:
            raise ValueError("timeout must be a positive finite number or None")
        line = command if isinstance(command, str) else shlex.join(command)

        def act(workspace: Workspace) -> api.CommandResult:
            try:
                done = workspace.run(line, timeout or NO_TIMEOUT, env=env)
            finally:
                workspace.stat(".")  # raises if the root was removed meanwhile
            stdout, stderr = (each.decode("utf-8", "replace") for each in (done.stdout, done.stderr))
            if done.timed_out:
                raise api.WorkspaceTimeoutError(
                    f"The command was stopped after {timeout:g} s.", stdout=stdout, stderr=stderr
                )
            if done.truncated:
                limit = workspace.limits.file_bytes
                raise api.WorkspaceOutputLimitError(
                    f"The output has more than {limit} bytes.", limit=limit, stdout=stdout, stderr=stderr
                )
            return api.CommandResult(exit_code=done.exit_status or 0, stdout=stdout, stderr=stderr)

        return await self._call(act)

    async def read_bytes(self, path: str) -> bytes:
        """Return the bytes of a file."""
        return await self._call(lambda workspace: workspace.read_bytes(path))

    async def write_bytes(self, path: str, data: bytes) -> None:
        """Create a file, or replace its bytes."""
        await self._call(lambda workspace: workspace.write_bytes(path, data))

    async def stat(self, path: str) -> api.FileEntry:
        """Return facts about a file or directory; a link is followed."""
        return await self._call(lambda workspace: _stat(workspace, path))

    async def list_dir(self, path: str) -> Sequence[api.FileEntry]:
        """Return the entries of a directory, except `.git`."""

        def entries(workspace: Workspace) -> list[api.FileEntry]:
            listed = workspace.ls(path, include_ignored=True).entries
            found = [_entry(each, posixpath.join(path, each.name)) for each in listed]
            return sorted(found, key=lambda entry: entry.path)

        return await self._call(entries)

    async def make_dir(self, path: str) -> None:
        """Make a directory and those above it."""
        await self._call(lambda workspace: workspace.mkdir(path))

    async def remove(self, path: str) -> None:
        """Delete a file, a link, or a directory with its contents."""

        def delete(workspace: Workspace) -> None:
            directory = self._directory
            target = posixpath.normpath(posixpath.join(directory, path))
            if f"{directory}/".startswith(f"{target.rstrip('/')}/"):
                raise ValueError("The working directory and those above it cannot be removed.")
            try:
                workspace.delete(path, recursive=True)
            except errors.SpecialFileError:  # a command made a FIFO, and only a command removes it
                if workspace.policy.run != "recorded":
                    raise
                workspace.run(shlex.join(["rm", "-r", "--", target]))

        await self._call(delete)

    async def exists(self, path: str) -> bool:
        """Return True if a path leads to a file or directory."""

        def exists(workspace: Workspace) -> bool:
            try:
                _stat(workspace, path)
            except (errors.NotFoundError, errors.NotDirectoryError, errors.LinkLoopError):
                return False
            return True

        return await self._call(exists)

    async def realpath(self, path: str) -> str:
        """Return a path with all links resolved; it need not exist."""
        return await self._call(
            lambda workspace: _real_path(workspace, posixpath.join(self._directory, path))
        )


def _stat(workspace: Workspace, path: str) -> api.FileEntry:
    entry = workspace.stat(path)
    if entry.type == "symlink":
        place = posixpath.join(workspace.root, workspace.workdir, path)
        entry = workspace.stat(_real_path(workspace, place))
    return _entry(entry, path)


def _real_path(workspace: Workspace, path: str) -> str:
    """Return an absolute path with all links resolved; it need not exist."""
    left = path.split("/")
    real, links = "/", 0
    while left:
        real = posixpath.normpath(posixpath.join(real, left.pop(0)))
        if not real.startswith(f"{workspace.root.rstrip('/')}/"):
            continue
        with suppress(errors.NotFoundError):
            entry = workspace.stat(real)
            if entry.type == "symlink":
                if links == _MOST_LINKS or entry.target is None:
                    workspace.read(real)  # raises, because the link leads outside or in a circle
                links += 1
                left = [*str(entry.target).split("/"), *left]
                real = "/" if str(entry.target).startswith("/") else posixpath.dirname(real)
    return real


def _entry(entry: Entry, path: str) -> api.FileEntry:
    name = posixpath.basename(posixpath.normpath(path))
    return api.FileEntry(name=name, path=path, is_dir=entry.is_dir, size=None if entry.is_dir else entry.size)
