# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false
# The SDK is an extra, and pyright takes `mcp` for this very file; mypy checks it strictly.
"""An MCP server over one workspace, on the official SDK (the extra `mcp`): `agentfs mcp --root DIR`."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

from mcp import MCPError, types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

import agentfs
from agentfs.calls.outcome import refused
from agentfs.calls.replies import SentCall, message_for
from agentfs.errors import AgentFSError, RefusedError
from agentfs.permissions.asking import Deny, Mode, PermissionAnswer, PermissionRequest
from agentfs.policy import Policy
from agentfs.toolset import Toolset
from agentfs.workspace import Workspace

_Context = Any  # the SDK's ServerRequestContext, generic over what we do not use


class WorkspaceServer:
    """The tools of one workspace for one client.

    A client's roots may only narrow what is served: those inside the root count, the others are nothing.
    """

    def __init__(
        self,
        root: str,
        *,
        names: Sequence[str] | None = None,
        prefix: str = "",
        dialect: str = "agentfs",
        policy: Policy | None = None,
        state: str | None = None,
        structured: bool = False,
    ) -> None:
        """Open the workspace.

        Args:
            root: The directory that is served.
            names: The methods to offer, by default all seven; where nothing may change, those that read.
            prefix: What stands before the name of each tool.
            dialect: Whose names, arguments and output.
            policy: What may be changed, and how.
            state: The directory where the journal and what was shown outlive the server.
            structured: Send the typed data of each result too, and its schema. Some clients then show their
                model the data instead of the text.

        Raises:
            AgentFSError: The root is no directory, or a name is no tool; what `Workspace` says of `state`.
        """
        self._policy = policy or Policy()
        self._names = names
        self._prefix = prefix
        self._dialect = dialect
        self._format: Literal["mcp", "mcp-structured"] = "mcp-structured" if structured else "mcp"
        self._kept = state is not None
        self._served = [Workspace(root, policy=self._policy, state=state)]
        try:
            self._tools = self._offered(self._served[0])
        except AgentFSError:
            self._served[0].close()
            raise
        self._asked_for_roots = False
        self._narrowing = asyncio.Lock()
        self.server: Server[Any] = Server(
            "agentfs",
            version=agentfs.__version__,
            instructions=self._tools.instructions(),
            on_list_tools=self._list,
            on_call_tool=self._call,
        )
        # As an argument of the constructor it warns of its deprecation, though today's clients still send it.
        self.server.add_notification_handler(
            "notifications/roots/list_changed", types.NotificationParams, self._roots_changed
        )

    async def serve(self) -> None:
        """Serve one client over standard input and output, until it goes."""
        try:
            async with stdio_server() as (incoming, outgoing):
                await self.server.run(incoming, outgoing, self.server.create_initialization_options())
        finally:
            for workspace in self._served:
                workspace.close()

    def _offered(self, workspace: Workspace) -> Toolset:
        names = self._names
        if self._policy.read_only or self._policy.mode == "plan":
            # Of what only changes something a model would get nothing but refusals. A dialect whose one tool
            # does everything is offered all the same: some of its commands read.
            reads = _that_read(workspace.tools(names, dialect=self._dialect))
            if reads or _that_read(workspace.tools(dialect=self._dialect)):
                names = reads
        return workspace.tools(names, dialect=self._dialect, prefix=self._prefix)

    async def _list(self, context: _Context, params: Any) -> types.ListToolsResult:
        del context, params
        tools = [types.Tool.model_validate(tool) for tool in self._tools.schemas(self._format)]
        return types.ListToolsResult(tools=tools)

    async def _call(self, context: _Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        sent = SentCall(self._format, None, params.name, params.arguments)
        try:
            tools = await self._narrowed(context)
        except AgentFSError as error:
            return types.CallToolResult.model_validate(message_for(sent, refused(error)))
        result = await tools.acall(params.name, params.arguments, on_progress=_reporting(context))
        return types.CallToolResult.model_validate(message_for(sent, result))

    async def _roots_changed(self, context: _Context, params: Any) -> None:
        del context, params
        self._asked_for_roots = False  # asked for again with the next call

    async def _narrowed(self, context: _Context) -> Toolset:
        """Return the tools within the client's roots, asked for once and whenever they have changed."""
        async with self._narrowing:
            session = context.session
            capable = session.client_capabilities and session.client_capabilities.roots
            if self._asked_for_roots or not capable or not session.can_send_request:
                return self._tools
            try:
                listed = await session.send_request(types.ListRootsRequest(), types.ListRootsResult)
            except MCPError as error:  # it has roots and does not tell: what lies outside them is not known
                raise RefusedError(
                    "The client has roots but did not tell them, so nothing may be used.",
                    hint="Nothing was done. Try again once the client answers, or tell the user.",
                ) from error
            workspace = await asyncio.to_thread(
                _within, self._served[0], listed.roots, self._policy, kept=self._kept
            )
            self._served.append(workspace)
            self._tools = self._offered(workspace)
            self._asked_for_roots = True
            return self._tools


def _that_read(tools: Toolset) -> list[str]:
    return [tool["name"] for tool in tools.schemas("mcp") if tool["annotations"].get("readOnlyHint")]


def _within(served: Workspace, listed: Sequence[types.Root], policy: Policy, *, kept: bool) -> Workspace:
    """Open what lies both within the root and within the roots that a client has.

    Where a state directory is kept it is the same workspace, whose journal is of the whole root.
    """
    root = served.root
    within = [path for path in map(_path_of, listed) if path is not None]
    if any(os.path.commonpath([root, path]) == path for path in within):
        return served if kept else Workspace(root, policy=policy)
    inside = [path for path in within if os.path.commonpath([root, path]) == root]
    if len(inside) == 1 and os.path.isdir(inside[0]) and not kept:
        return Workspace(inside[0], policy=policy)
    places = [os.path.relpath(path, root).replace(os.sep, "/") for path in inside]
    only = _only(policy, places)
    return served.view(policy=only) if kept else Workspace(root, policy=only)


def _path_of(root: types.Root) -> str | None:
    parts = urlsplit(str(root.uri))
    if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
        return None
    path = os.path.realpath(unquote(parts.path))
    return path if os.path.isabs(path) else None


def _only(policy: Policy, places: Sequence[str]) -> Policy:
    """Return a policy that lets calls act in a few places only, and otherwise asks as before."""
    before = policy.permission

    def ask(request: PermissionRequest) -> PermissionAnswer | Awaitable[PermissionAnswer]:
        inside = [
            any(path == place or path.startswith(f"{place}/") for place in places) for path in request.paths
        ]
        if inside and all(inside):
            return True if before is None else before(request)
        named = ", ".join(places) or "nothing"
        return Deny(f"Only {named} may be used: the client has narrowed the workspace.")

    # Neither a rule nor a mode may answer in place of this question.
    mode: Mode = "plan" if policy.mode == "plan" else "default"
    return replace(policy, mode=mode, permission=ask, allow=())


def _reporting(context: _Context) -> Callable[[int], None]:
    """Return what sends a call's progress from its thread; the SDK drops it where none was asked for."""
    loop = asyncio.get_running_loop()
    pending: set[asyncio.Task[None]] = set()

    def send(entries: int) -> None:
        task = loop.create_task(context.session.report_progress(entries, None, f"{entries:,} entries"))
        pending.add(task)
        task.add_done_callback(pending.discard)

    def report(entries: int) -> None:
        loop.call_soon_threadsafe(send, entries)

    return report
