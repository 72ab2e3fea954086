"""deepagents: a backend of its file tools and its shell, under the rules and undo of a workspace."""

import base64
import logging
import os
import posixpath
from collections.abc import Callable, Coroutine, Sequence
from datetime import UTC, datetime
from functools import partial, wraps
from typing import Any, TypeVar

from agentfs import errors
from agentfs.base.runner import Runner
from agentfs.errors import AgentFSError
from agentfs.frameworks import needs
from agentfs.frameworks.backends import NO_TIMEOUT, Place, directory_of, open_below
from agentfs.policy import Policy, Run
from agentfs.providers.openai import REFUSED
from agentfs.results import Entry, Skipped
from agentfs.workspace import Workspace

with needs("deepagents", "0.7", tested="0.7"):
    from deepagents.backends.protocol import (
        DeleteResult,
        EditResult,
        ExecuteResponse,
        FileDownloadResponse,
        FileInfo,
        FileUploadResponse,
        GlobResult,
        GrepMatch,
        GrepResult,
        LsResult,
        ReadResult,
        SandboxBackendProtocol,
        WriteResult,
    )
    from deepagents.backends.utils import slice_read_response

_R = TypeVar("_R")
_LOG = logging.getLogger(__name__)
_MOST_PREVIEWED = 512_000  # bytes of a file that is not text, as deepagents' own backends allow
_TIMED_OUT = 124  # the exit status of `timeout`
_TRANSFER_ERRORS: Sequence[tuple[type[AgentFSError] | tuple[type[AgentFSError], ...], str]] = (
    (errors.NotFoundError, "file_not_found"),
    (errors.NotAFileError, "is_directory"),
    ((errors.AccessError, errors.DeniedError, errors.OutsideWorkspaceError), "permission_denied"),
    (errors.InvalidPathError, "invalid_path"),
)
# The beginnings of errors that models know from deepagents' own backends.
_KNOWN_WORDS = {
    "not_found": "File not found: ",
    "no_match": "String not found in file: ",
    "ambiguous": "String appears multiple times: ",
}


def _awaitable(method: Callable[..., _R]) -> Callable[..., Coroutine[Any, Any, _R]]:
    """Return a method to await; cancelling it stops a command or search, and completes a change."""

    @wraps(method)
    async def call(self: "Backend", *args: Any, **kwargs: Any) -> _R:
        run = self._runner.run_off_loop  # pyright: ignore[reportPrivateUsage] - of the class below
        return await run(lambda: method(self, *args, **kwargs), tool=None)

    return call


class Backend(SandboxBackendProtocol):
    """A workspace as a backend of deepagents, for `create_deep_agent(backend=...)`.

    Paths are those of the system, as commands see them; `/` lists the root, and a path outside is an error.
    The protocol has no place for the number of files that a search left out, so the log
    `agentfs.frameworks.deepagents` gets it. Files that `grep` could not search are its `error`, beside the
    matches; `truncated` tells that a limit has cut the search.

    Attributes:
        workspace: The workspace below, for example to undo: `backend.workspace.host.undo()`.
    """

    def __init__(
        self, root_or_ws: Place, *, policy: Policy | None = None, run: Run | None = "recorded"
    ) -> None:
        """Open a workspace.

        Args:
            root_or_ws: A directory, or an open workspace, whose policy also decides about commands.
            policy: The rules for what the model causes.
            run: How commands run in a directory unless the policy says it: "recorded" in the directory
                itself, "staged" on an overlay without protected files, or None for no commands.
        """
        self._owned = isinstance(root_or_ws, (str, os.PathLike))
        self.workspace: Workspace = open_below(root_or_ws, policy, run)
        self._directory = directory_of(self.workspace)
        self._runner = Runner(64)

    def close(self) -> None:
        """Close the workspace if the backend has opened it; later operations are errors."""
        if self._owned:
            self.workspace.close()

    @property
    def id(self) -> str:
        """The directory."""
        return self._directory

    def ls(self, path: str) -> LsResult:
        """List a directory, its hidden and ignored entries too, except `.git`."""
        try:
            listed = self.workspace.ls(path, include_ignored=True, hidden=True)
        except AgentFSError as error:
            return LsResult(error=_worded(error))
        return LsResult(entries=[self._info(each) for each in listed.entries])

    def read(self, file_path: str, offset: int = 0, limit: int = 2000) -> ReadResult:
        """Return lines of a text, or other files of at most 512,000 bytes as base64."""
        try:
            read = self.workspace.read(file_path, raw=True)
            if read.kind in {"text", "notebook"}:
                return _page(read.content, offset, limit)
            if read.total_bytes > _MOST_PREVIEWED:
                limited = f"Binary file exceeds maximum preview size of {_MOST_PREVIEWED} bytes"
                return ReadResult(error=f"File '{file_path}': {limited}")
            encoded = base64.b64encode(self.workspace.read_bytes(file_path)).decode()
        except AgentFSError as error:
            return ReadResult(error=_worded(error))
        return ReadResult(file_data={"content": encoded, "encoding": "base64"})

    def grep(
        self, pattern: str, path: str | None = None, glob: str | None = None, *, max_count: int | None = None
    ) -> GrepResult:
        """Search for a literal text in files that are not ignored."""
        try:
            found = self.workspace.grep(
                pattern, path or ".", glob, limit=max_count, fixed_strings=True, context=0
            )
        except AgentFSError as error:
            return GrepResult(error=_worded(error))
        self._log_skipped("grep", found.skipped, found.notes)
        matches = [
            GrepMatch(path=self._absolute(each.path), line=each.line, text=each.text)
            for each in found.matches
        ]
        error = "; ".join(map(str, found.notes)) if _was_not_searched(found.skipped) else None
        cut = found.truncated or found.skipped.reached is not None
        return GrepResult(error, matches, cut)

    def glob(self, pattern: str, path: str | None = None) -> GlobResult:
        """Find files by a pattern; one without a slash is for names in any depth."""
        hidden = any(part.startswith(".") for part in pattern.split("/"))
        try:
            found = self.workspace.glob(pattern, path or ".", hidden=hidden or None)
        except AgentFSError as error:
            return GlobResult(error=_worded(error))
        self._log_skipped("glob", found.skipped, found.notes)
        cut = found.truncated or found.skipped.reached is not None
        reason = "budget" if cut else "unreadable" if _was_not_searched(found.skipped) else None
        matches = [self._info(each) for each in found.files]
        return GlobResult(matches=matches, truncated=reason is not None, truncation_reason=reason)

    def write(self, file_path: str, content: str) -> WriteResult:
        """Create a file, or replace its content."""
        try:
            self.workspace.write(file_path, content, overwrite=True, newline="given")
        except AgentFSError as error:
            return WriteResult(error=_worded(error))
        return WriteResult(path=file_path)

    def edit(self, file_path: str, old_string: str, new_string: str, replace_all: bool = False) -> EditResult:
        """Replace a text that occurs once, or each occurrence."""
        try:
            done = self.workspace.edit(file_path, old_string, new_string, replace_all)
        except AgentFSError as error:
            return EditResult(error=_worded(error))
        return EditResult(path=file_path, occurrences=done.replacements)

    def delete(self, file_path: str) -> DeleteResult:
        """Delete a file, or a directory with its contents."""
        try:
            self.workspace.delete(file_path, recursive=True)
        except AgentFSError as error:
            return DeleteResult(error=_worded(error))
        return DeleteResult(path=file_path)

    def upload_files(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        """Create files, or replace their bytes; each is a step of its own."""
        write = self.workspace.write_bytes
        done = [(path, _transferred(path, partial(write, path, data))[1]) for path, data in files]
        return [FileUploadResponse(path, error) for path, error in done]

    def download_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        """Return the bytes of files."""
        read = self.workspace.read_bytes
        return [FileDownloadResponse(path, *_transferred(path, partial(read, path))) for path in paths]

    def execute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        """Run a command in the directory, as the policy says; a timeout of 0 is none."""
        seconds = self.workspace.limits.run_timeout if timeout is None else timeout or NO_TIMEOUT
        try:
            done = self.workspace.run(command, seconds)
        except AgentFSError as error:
            # The command may have written something before its changes were refused.
            written = f"{error.details.get('stdout', '')}{error.details.get('stderr', '')}"
            text = f"{written}{error}\n".encode("utf-8", "surrogateescape").decode("utf-8", "replace")
            return ExecuteResponse(text, REFUSED)
        output = (done.stdout + done.stderr).decode("utf-8", "replace")
        if done.timed_out:
            return ExecuteResponse(f"{output}\nThe command was stopped after {seconds:g} s.", _TIMED_OUT)
        return ExecuteResponse(output, done.exit_status, done.truncated)

    def _absolute(self, path: str) -> str:
        return posixpath.normpath(posixpath.join(self._directory, path))

    def _info(self, entry: Entry) -> FileInfo:
        info = FileInfo(path=self._absolute(entry.path), is_dir=entry.is_dir)
        if entry.size is not None:
            info["size"] = entry.size
        if entry.mtime is not None:
            info["modified_at"] = datetime.fromtimestamp(entry.mtime, UTC).isoformat()
        return info

    def _log_skipped(self, search: str, skipped: Skipped, notes: Sequence[object]) -> None:
        if skipped:
            _LOG.info("%s in %s: %s", search, self._directory, "; ".join(map(str, notes)))


# The protocol's own asynchronous methods leave a cancelled command running.
_METHODS = ("ls", "read", "grep", "glob", "write", "edit", "delete", "execute")
for _name in (*_METHODS, "upload_files", "download_files"):
    setattr(Backend, f"a{_name}", _awaitable(getattr(Backend, _name)))


def _was_not_searched(skipped: Skipped) -> bool:
    """Return True if a search left out files against its will; a model must not take them for searched."""
    return bool(skipped.unreadable or skipped.undecodable or skipped.too_deep or skipped.long_lines)


def _page(text: str, offset: int, limit: int) -> ReadResult:
    page = slice_read_response({"content": text, "encoding": "utf-8"}, offset, limit)
    if page.file_data and page.next_offset is not None:
        # Pages are joined by newlines; only the last tells whether the file ends with one.
        page.file_data["content"] = page.file_data["content"].removesuffix("\n")
    return page


def _worded(error: AgentFSError) -> str:
    """Return the message without our own tools' calls, which the model cannot make."""
    return f"{_KNOWN_WORDS.get(error.code, '')}{error.message}"


def _transferred(path: str, transfer: Callable[[], _R]) -> tuple[_R | None, str | None]:
    """Return the result of a transfer, or the error that the protocol has for it."""
    if not path.startswith("/"):
        return None, "invalid_path"
    try:
        return transfer(), None
    except AgentFSError as error:
        codes = (code for kind, code in _TRANSFER_ERRORS if isinstance(error, kind))
        return None, next(codes, _worded(error))
