"""The MCP server of one workspace's tools and files, narrowed by the client's roots."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from mcp import MCPError, types
from mcp.server.lowlevel import Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity

import agentfs
from agentfs.async_workspace import AsyncWorkspace
from agentfs.errors import AgentFSError
from agentfs.limits import MIB, Limits
from agentfs.mcp import resources
from agentfs.mcp.progress import progress_reporter
from agentfs.mcp.questions import InputRequired, Questions
from agentfs.mcp.roots import ClientRoots, ClientView
from agentfs.mcp.stdio import stdio
from agentfs.mcp.streamable_http import HttpAddress
from agentfs.policy import Mount, Policy
from agentfs.providers.mcp_format import call_result
from agentfs.tools.approval import answering, ask
from agentfs.tools.result import from_error
from agentfs.tools.toolset import Toolset
from agentfs.workspace import Workspace

# Offered besides the default tools, because clients often have no shell.
_MORE_TOOLS = ("delete", "move", "undo", "replace")
LIMITS = Limits(watch_bytes=128 * MIB)

_LIST = "resources/list"  # from 2026-07-28 on, it cannot end with a question
_Context = Any  # the SDK's ServerRequestContext, a generic type


class WorkspaceServer:
    """The tools and files of one workspace for its clients.

    A client's roots only narrow the tree: roots outside it are ignored. The workspace stays the same, so read
    history and journal outlive a change of roots. Clients of one server share them.
    """

    def __init__(
        self,
        root: str | None,
        *,
        mounts: Mapping[str, Mount] | None = None,
        names: Sequence[str] | None = None,
        prefix: str = "",
        dialect: str = "agentfs",
        policy: Policy | None = None,
        state: str | None = None,
        command: Sequence[str] | None = None,
        limits: Limits = LIMITS,
        watch: bool = True,
    ) -> None:
        """Open the workspace.

        Args:
            root: The directory to serve.
            mounts: Other directories, by name.
            names: The methods to offer. By default the default tools, delete, move, undo and replace, or only
                those that read if the policy forbids changes.
            prefix: A prefix for the name of each tool.
            dialect: The dialect of names, arguments and output.
            policy: The policy of the workspace. Without a callback, the client asks its user about the calls
                that `ask` rules cover.
            state: A directory where journal and read history outlive the server.
            command: A command prefix as for `connect`, if the root is on another machine. The client's roots
                are then ignored, because they name local directories.
            limits: The limits of the workspace.
            watch: Keep names and texts, up to `Limits.watch_bytes`, in memory for searches.
        """
        policy = policy or Policy()
        if policy.ask and policy.on_ask is None:
            policy = replace(policy, on_ask=ask)
        self._policy = policy
        self._names = names
        self._prefix = prefix
        self._dialect = dialect
        self._is_remote = command is not None
        given: dict[str, Any] = {"policy": policy, "limits": limits, "state": state}
        self._workspace: Workspace
        if command is None:
            self._workspace = Workspace(root or ".", mounts=mounts, watch=watch, **given)
        else:
            self._workspace = agentfs.connect(command, root or ".", **given)
        try:
            self._whole = ClientView(self._workspace, self._workspace.root, self._toolset(self._workspace))
        except AgentFSError:
            self._workspace.close()
            raise
        self._files = AsyncWorkspace(self._workspace)
        self.server: Server[Any] = Server(
            "agentfs",
            version=agentfs.__version__,
            instructions=self._whole.tools.instructions(),
            on_list_tools=self._list,
            on_call_tool=self._call,
            on_list_resources=partial(self._answer, function=resources.list_page),
            on_list_resource_templates=self._list_templates,
            on_read_resource=partial(self._answer, function=resources.read),
        )
        # A client that sends a request again must send the server's own state, unchanged.
        security = RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience="agentfs")
        self.server.middleware.append(security)
        # The constructor's argument for this handler is deprecated, but clients still send the notification.
        self.server.add_notification_handler(
            "notifications/roots/list_changed", types.NotificationParams, self._roots_changed
        )

    def run(self, address: HttpAddress | None = None) -> None:
        """Run `serve` on its own event loop."""
        asyncio.run(self.serve(address))

    async def serve(self, address: HttpAddress | None = None) -> None:
        """Serve one client over standard input and output, or several over HTTP.

        Args:
            address: The address for HTTP. By default, standard input and output are used until the client
                leaves.
        """
        try:
            if address is not None:
                await address.serve(self.server)
                return
            async with stdio() as (incoming, outgoing):
                await self.server.run(incoming, outgoing, self.server.create_initialization_options())
        except* BrokenPipeError:
            pass  # the client has gone
        finally:
            self._workspace.close()

    def _toolset(self, workspace: Workspace) -> Toolset:
        names = self._names
        if names is None and self._dialect == "agentfs":
            commands = [name for name in ("run", "output", "stop") if name in workspace.tool_names()]
            names = [*workspace.tools().names, *_MORE_TOOLS, *commands]
        if self._policy.read_only or self._policy.mode == "plan":
            # Tools that only change files would always be refused. A dialect whose one tool does everything
            # keeps it, because some of its commands read.
            reads = _read_only_tools(workspace.tools(names, dialect=self._dialect))
            if reads or _read_only_tools(workspace.tools(dialect=self._dialect)):
                names = reads
        return workspace.tools(names, dialect=self._dialect, prefix=self._prefix)

    async def _list(self, context: _Context, params: Any) -> types.ListToolsResult:
        del context, params
        schemas = self._whole.tools.schemas("mcp")
        return types.ListToolsResult(tools=[types.Tool.model_validate(schema) for schema in schemas])

    async def _call(
        self, context: _Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        questions = Questions(context, params)
        with answering(questions.permission):
            try:
                tools = (await self._view_of(context, questions)).tools
                progress = progress_reporter(context)
                result = await tools.acall(params.name, params.arguments, on_progress=progress)
            except InputRequired as question:
                return question.result
            except AgentFSError as error:
                result = from_error(error)
        if questions.required is not None:
            return questions.required
        return types.CallToolResult.model_validate(call_result(result))

    async def _list_templates(self, context: _Context, params: Any) -> types.ListResourceTemplatesResult:
        del context, params
        return types.ListResourceTemplatesResult(resource_templates=[resources.TEMPLATE])

    async def _answer(
        self, context: _Context, params: Any, *, function: Callable[[ClientView, Any], Any]
    ) -> Any:
        """Return what a function of `resources` returns for the client's view, or a question."""
        questions = Questions(context, params)
        question: types.InputRequiredResult | None = None
        with answering(questions.permission):
            try:
                view = await self._view_of(context, questions)
                return await self._files.call(function, view, params)
            except InputRequired as required:
                question = required.result
            except AgentFSError as error:
                question = questions.required
                if question is None:
                    raise resources.protocol_error(error) from None
        if context.method == _LIST:
            reason = "The user must be asked before this list, and the protocol cannot do that here"
            raise MCPError(code=types.INVALID_PARAMS, message=f"{reason}: use the tools or the template.")
        return question

    async def _roots_changed(self, context: _Context, params: Any) -> None:
        del params
        self._roots_of(context).changed()

    async def _view_of(self, context: _Context, questions: Questions) -> ClientView:
        """Return the view of the workspace inside the client's roots."""
        cannot_ask = questions.resends and context.method == _LIST
        if self._is_remote or cannot_ask or not questions.has_roots:
            return self._whole
        return await self._roots_of(context).view(questions)

    def _roots_of(self, context: _Context) -> ClientRoots:
        # The SDK keeps this dictionary for each connection, but gives no public access to it.
        state: dict[str, Any] = context.session._connection.state  # noqa: SLF001 - as above
        roots: ClientRoots = state.setdefault("agentfs", ClientRoots(self._whole, self._toolset))
        return roots


def _read_only_tools(tools: Toolset) -> list[str]:
    return [tool["name"] for tool in tools.schemas("mcp") if tool["annotations"].get("readOnlyHint")]
