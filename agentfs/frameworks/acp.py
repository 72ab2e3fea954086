"""The Agent Client Protocol: permission requests of an agent, and the files and terminals of a client."""

import asyncio
import os
import shlex
from collections.abc import Awaitable
from itertools import zip_longest
from math import inf
from typing import Any, NamedTuple, TypeVar, cast
from uuid import uuid4

from acp import RequestError, schema, text_block, tool_content, tool_diff_content
from acp.interfaces import Client

from agentfs.async_workspace import AsyncWorkspace
from agentfs.commands.background import Command
from agentfs.errors import AgentFSError, NotFoundError
from agentfs.events import current_call_id
from agentfs.frameworks.backends import refusal_output, uncut
from agentfs.frameworks.versions import warn_if_newer
from agentfs.permissions import Allow, Deny, Effect, PermissionAnswer, PermissionRequest
from agentfs.providers.openai import REFUSED
from agentfs.results import RunResult
from agentfs.workspace import Workspace

warn_if_newer("agent-client-protocol", "0.12")

_R = TypeVar("_R")
_KINDS: dict[str, schema.ToolKind] = {"none": "other", "write": "edit", "manage": "edit"}
_BY_METHOD: dict[str, schema.ToolKind] = {"delete": "delete", "move": "move"}
_CHOICES: tuple[tuple[schema.PermissionOptionKind, str], ...] = (
    ("allow_once", "Allow"),
    ("allow_always", "Allow {} in this session"),
    ("reject_once", "Reject"),
    ("reject_always", "Reject {} in this session"),
)
_INVALID, _NOT_FOUND = -32602, -32002  # of JSON-RPC, and of the protocol


def tool_kind(effect: Effect | None, method: str = "") -> schema.ToolKind:
    """Return the kind under which a client shows a call.

    Args:
        effect: The effect of the tool; None for an undeclared one.
        method: The method of the workspace, if it is one.

    Returns:
        The kind.
    """
    kind = effect or "execute"
    # The other effects are kinds too.
    return cast("schema.ToolKind", _BY_METHOD.get(method, _KINDS.get(kind, kind)))


class Permissions:
    """A `Policy.on_ask` of an agent that asks the user of its client, with the old and new text of each file.

    The user may also decide for the whole session: about a method, or about one command. Await the calls
    (`acall`, `aanswer`, `AsyncWorkspace`) on the event loop of the connection.

    Attributes:
        rules: The decisions for the session: True or False for `edit`, `run(make test)` and the like.
    """

    def __init__(self, client: Client, session_id: str, root: str | os.PathLike[str]) -> None:
        """Ask in a session.

        Args:
            client: The connection to the client, as `Agent.on_connect` gets it.
            session_id: The session.
            root: The root of the workspace; a client shows absolute paths.
        """
        self._client, self._session, self._root = client, session_id, os.fspath(root)
        self.rules: dict[str, bool] = {}

    async def __call__(self, request: PermissionRequest) -> PermissionAnswer:
        """Return the user's decision about a call.

        Args:
            request: The call.

        Returns:
            The decision, or the one for the session.
        """
        rule = request.method
        if request.effect == "execute":
            rule += f"({request.arguments.get('command', dict(request.arguments))})"
        if rule not in self.rules:
            options = [
                schema.PermissionOption(option_id=kind, kind=kind, name=name.format(rule))
                for kind, name in _CHOICES
            ]
            answer = await self._client.request_permission(self._session, self._described(request), options)
            if isinstance(answer.outcome, schema.DeniedOutcome):
                return Deny("The user cancelled.")
            chosen = answer.outcome.option_id
            if not chosen.endswith("_always"):
                return Allow() if chosen == "allow_once" else Deny()
            self.rules[rule] = chosen == "allow_always"
        return Allow() if self.rules[rule] else Deny()

    def _described(self, request: PermissionRequest) -> schema.ToolCallUpdate:
        changes = {os.path.join(self._root, each.path): each for each in request.changes}
        content: list[Any] = [
            tool_diff_content(path, each.new_text or "", each.old_text)
            for path, each in changes.items()
            if (each.old_text, each.new_text) != (None, None)
        ]
        lines = {
            path: _first_changed(each.old_text or "", each.new_text or "") for path, each in changes.items()
        }
        paths = [os.path.join(self._root, path) for path in request.paths]
        return schema.ToolCallUpdate(
            tool_call_id=current_call_id() or uuid4().hex,
            title=f"{request.tool or request.method} {' '.join(request.paths)}".strip(),
            kind=tool_kind(request.effect, request.method),
            status="pending",
            content=content or [tool_content(text_block(request.diff or repr(dict(request.arguments))))],
            locations=[schema.ToolCallLocation(path=path, line=lines.get(path)) for path in paths],
            raw_input=None,
        )


def _first_changed(old: str, new: str) -> int:
    pairs = zip_longest(old.split("\n"), new.split("\n"))
    return next((number for number, (a, b) in enumerate(pairs, 1) if a != b), 1)


class _Terminal(NamedTuple):
    ended: "asyncio.Future[RunResult]"
    command: Command | None  # None if it is staged
    most: float  # bytes of output


class WorkspaceClient:
    """The methods of a client that touch files and run commands: `class MyClient(WorkspaceClient, Client)`.

    Terminals need `Policy.run`. A staged command has no output before it ends.
    """

    def __init__(self, workspace: Workspace) -> None:
        """Serve a workspace.

        Args:
            workspace: The workspace; its rules hold for all that an agent asks for.
        """
        self._workspace = AsyncWorkspace(workspace.view(limits=uncut(workspace.limits)))
        self._terminals: dict[tuple[str, str], _Terminal] = {}

    async def read_text_file(
        self, session_id: str, path: str, line: int | None = None, limit: int | None = None, **_: Any
    ) -> schema.ReadTextFileResponse:
        """Return the exact text of a file, or of some of its lines."""
        del session_id
        if limit == 0:
            return schema.ReadTextFileResponse(content="")
        read = await _answer(self._workspace.read(path, line or 1, limit, raw=True))
        if read.kind != "text":
            raise RequestError(_INVALID, f"{path} is not text but: {read.kind}.")
        return schema.ReadTextFileResponse(content=read.content)

    async def write_text_file(
        self, session_id: str, path: str, content: str, **_: Any
    ) -> schema.WriteTextFileResponse:
        """Create or replace a file."""
        del session_id
        await _answer(self._workspace.write(path, content, overwrite=True, raw=True))
        return schema.WriteTextFileResponse()

    async def create_terminal(
        self,
        session_id: str,
        command: str,
        args: list[str] | None = None,
        env: list[schema.EnvVariable] | None = None,
        cwd: str | None = None,
        output_byte_limit: int | None = None,
        **_: Any,
    ) -> schema.CreateTerminalResponse:
        """Start a command; without `args`, it is a line for the shell."""
        line = shlex.join([command, *args]) if args else command
        variables = {each.name: each.value for each in env or ()}
        place, started = cwd or ".", list[Command]()

        def start() -> None:
            started.append(self._workspace.workspace.start(line, place, env=variables))

        if self._workspace.policy.run == "recorded":
            try:
                await _answer(self._workspace.call(start))
            except asyncio.CancelledError:  # nobody gets the id of the terminal
                for each in started:
                    await asyncio.to_thread(each.stop)
                raise
            ended = asyncio.ensure_future(asyncio.to_thread(started[0].wait))
        else:
            timeout = self._workspace.limits.run_timeout
            ended = asyncio.ensure_future(self._workspace.run(line, timeout, place, env=variables))
        terminal_id = uuid4().hex
        most = inf if output_byte_limit is None else output_byte_limit
        self._terminals[session_id, terminal_id] = _Terminal(ended, started[0] if started else None, most)
        return schema.CreateTerminalResponse(terminal_id=terminal_id)

    async def terminal_output(
        self, session_id: str, terminal_id: str, **_: Any
    ) -> schema.TerminalOutputResponse:
        """Return the end of what a command has written so far."""
        terminal = self._terminal(session_id, terminal_id)
        written = terminal.command.written() if terminal.command else b""
        status: schema.TerminalExitStatus | None = None
        if terminal.ended.done():
            output, status = _outcome(terminal.ended)
            written = written or output
        shown = written[-int(min(terminal.most, len(written))) :] if terminal.most else b""
        text = shown.decode("utf-8", "ignore" if len(shown) < len(written) else "backslashreplace")
        truncated = len(shown) < len(written)
        return schema.TerminalOutputResponse(output=text, truncated=truncated, exit_status=status)

    async def wait_for_terminal_exit(
        self, session_id: str, terminal_id: str, **_: Any
    ) -> schema.WaitForTerminalExitResponse:
        """Wait until a command has ended."""
        ended = self._terminal(session_id, terminal_id).ended
        await asyncio.wait([ended])
        status = _outcome(ended)[1]
        return schema.WaitForTerminalExitResponse(exit_code=status.exit_code, signal=status.signal)

    async def kill_terminal(self, session_id: str, terminal_id: str, **_: Any) -> schema.KillTerminalResponse:
        """End a command; its output stays."""
        terminal = self._terminal(session_id, terminal_id)
        if terminal.command:
            await asyncio.to_thread(terminal.command.stop)
        terminal.ended.cancel()
        await asyncio.wait([terminal.ended])
        return schema.KillTerminalResponse()

    async def release_terminal(
        self, session_id: str, terminal_id: str, **_: Any
    ) -> schema.ReleaseTerminalResponse:
        """End a command and forget it."""
        await self.kill_terminal(session_id, terminal_id)
        del self._terminals[session_id, terminal_id]
        return schema.ReleaseTerminalResponse()

    def _terminal(self, session_id: str, terminal_id: str) -> _Terminal:
        if (terminal := self._terminals.get((session_id, terminal_id))) is None:
            raise RequestError.resource_not_found(terminal_id)
        return terminal


def _outcome(ended: "asyncio.Future[RunResult]") -> tuple[bytes, schema.TerminalExitStatus]:
    """Return the output of a command that has ended, and how it ended."""
    if ended.cancelled():
        return b"", schema.TerminalExitStatus(signal="SIGKILL")
    error = ended.exception()
    if isinstance(error, AgentFSError):
        return b"".join(refusal_output(error)), schema.TerminalExitStatus(exit_code=REFUSED)
    result = ended.result()
    if result.exit_status is None:
        return result.stdout + result.stderr, schema.TerminalExitStatus(signal="SIGKILL")
    return result.stdout + result.stderr, schema.TerminalExitStatus(exit_code=result.exit_status)


async def _answer(call: Awaitable[_R]) -> _R:
    """Await a call; its error becomes one of the protocol."""
    try:
        return await call
    except AgentFSError as error:
        code = _NOT_FOUND if isinstance(error, NotFoundError) else _INVALID
        raise RequestError(code, str(error), {"code": error.code}) from error
