"""The MCP server of one workspace's tools, narrowed by the client's roots."""

import asyncio
import os
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import unquote, urlsplit

from mcp import MCPError, types
from mcp.server.lowlevel import Server
from pydantic import ValidationError

import agentfs
from agentfs.advice import plural
from agentfs.errors import AgentFSError, RefusedError
from agentfs.limits import MIB, Limits
from agentfs.mcp.stdio import stdio
from agentfs.policy import Policy
from agentfs.providers.mcp_format import call_result
from agentfs.tools.result import from_error
from agentfs.tools.toolset import Toolset
from agentfs.workspace import Workspace

# Offered besides the default tools, because clients often have no shell.
_MORE_TOOLS = ("delete", "move", "undo", "replace")
WATCH_BYTES = 128 * MIB
_ROOTS_SECONDS = 10.0  # for a client to list its roots

_Context = Any  # the SDK's ServerRequestContext, a generic type


class WorkspaceServer:
    """The tools of one workspace for one client.

    A client's roots only narrow the tree: roots outside it are ignored. The workspace stays the same, so read
    history and journal outlive a change of roots.
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
        command: Sequence[str] | None = None,
        structured: bool = False,
        watch_bytes: int | None = WATCH_BYTES,
    ) -> None:
        """Open the workspace.

        Args:
            root: The directory to serve.
            names: The methods to offer. By default the default tools, delete, move, undo and replace, or only
                those that read if the policy forbids changes.
            prefix: A prefix for the name of each tool.
            dialect: The dialect of names, arguments and output.
            policy: The policy of the workspace.
            state: A directory where journal and read history outlive the server.
            command: A command prefix as for `connect`, if the root is on another machine. The client's roots
                are then ignored, because they name local directories.
            structured: Also send the typed data of each result, and its schema. Some clients then show their
                model the data instead of the text.
            watch_bytes: Bytes of names and texts to keep in memory for searches; None to watch nothing.
        """
        self._policy = policy or Policy()
        self._names = names
        self._prefix = prefix
        self._dialect = dialect
        self._structured = structured
        limits = Limits() if watch_bytes is None else Limits(watch_bytes=watch_bytes)
        watch = watch_bytes is not None
        self._is_remote = command is not None
        self._workspace: Workspace
        if command is None:
            self._workspace = Workspace(root, policy=self._policy, limits=limits, state=state, watch=watch)
        else:
            self._workspace = agentfs.connect(
                command, root, policy=self._policy, limits=limits, state=state, watch=watch
            )
        try:
            self._tools = self._toolset(self._workspace)
        except AgentFSError:
            self._workspace.close()
            raise
        self._only: list[str] | None = None
        self._roots_announced, self._roots_known = 1, 0
        self._roots_request: asyncio.Task[None] | None = None
        self.server: Server[Any] = Server(
            "agentfs",
            version=agentfs.__version__,
            instructions=self._tools.instructions(),
            on_list_tools=self._list,
            on_call_tool=self._call,
        )
        # The constructor's argument for this handler is deprecated, but clients still send the notification.
        self.server.add_notification_handler(
            "notifications/roots/list_changed", types.NotificationParams, self._roots_changed
        )

    def run(self) -> None:
        """Run `serve` on its own event loop."""
        asyncio.run(self.serve())

    async def serve(self) -> None:
        """Serve one client over standard input and output until it leaves."""
        try:
            async with stdio() as (incoming, outgoing):
                await self.server.run(incoming, outgoing, self.server.create_initialization_options())
        except* BrokenPipeError:
            pass  # the client has gone
        finally:
            self._workspace.close()

    def _toolset(self, workspace: Workspace) -> Toolset:
        names = self._names
        if names is None and self._dialect == "agentfs":
            names = [*workspace.tools().names, *_MORE_TOOLS]
        if self._policy.read_only or self._policy.mode == "plan":
            # Tools that only change files would always be refused. A dialect whose one tool does everything
            # keeps it, because some of its commands read.
            reads = _read_only_tools(workspace.tools(names, dialect=self._dialect))
            if reads or _read_only_tools(workspace.tools(dialect=self._dialect)):
                names = reads
        return workspace.tools(names, dialect=self._dialect, prefix=self._prefix)

    async def _list(self, context: _Context, params: Any) -> types.ListToolsResult:
        del context, params
        schemas = self._tools.schemas("mcp-structured" if self._structured else "mcp")
        return types.ListToolsResult(tools=[types.Tool.model_validate(schema) for schema in schemas])

    async def _call(self, context: _Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        try:
            tools = await self._narrowed(context)
        except AgentFSError as error:
            result = from_error(error)
        else:
            progress = _progress_reporter(context)
            result = await tools.acall(params.name, params.arguments, on_progress=progress)
        return types.CallToolResult.model_validate(call_result(result, structured=self._structured))

    async def _roots_changed(self, context: _Context, params: Any) -> None:
        del context, params
        self._roots_announced += 1  # the next call asks for them again

    async def _narrowed(self, context: _Context) -> Toolset:
        """Return the tools within the client's roots, which are requested once and after each change."""
        session = context.session
        capable = session.client_capabilities and session.client_capabilities.roots
        if self._is_remote or not capable or not session.can_send_request:
            return self._tools
        if self._roots_known != self._roots_announced:
            # Concurrent calls wait for the same answer.
            if self._roots_request is None or self._roots_request.done():
                self._roots_request = asyncio.create_task(self._ask_for_roots(session))
                # Waiting calls raise its error. If no call waits, asyncio must not log it.
                self._roots_request.add_done_callback(lambda task: task.cancelled() or task.exception())
            await asyncio.shield(self._roots_request)
        return self._tools

    async def _ask_for_roots(self, session: Any) -> None:
        """Narrow the tools to the client's roots; ask again if they change before the reply."""
        while self._roots_known != self._roots_announced:
            announced = self._roots_announced
            try:
                async with asyncio.timeout(_ROOTS_SECONDS):
                    listed = await session.send_request(types.ListRootsRequest(), types.ListRootsResult)
            except (MCPError, TimeoutError, ValidationError) as error:
                raise RefusedError(
                    "The client has roots but did not list them, so no tool may be used.",
                    hint="Nothing was changed. Try again, or tell the user.",
                ) from error
            only = await asyncio.to_thread(_inside, self._workspace.root, listed.roots)
            if only != self._only:
                self._tools = self._toolset(await asyncio.to_thread(_view_of, self._workspace, only))
                self._only = only
            self._roots_known = announced


def _read_only_tools(tools: Toolset) -> list[str]:
    return [tool["name"] for tool in tools.schemas("mcp") if tool["annotations"].get("readOnlyHint")]


def _inside(root: str, listed: Sequence[types.Root]) -> list[str] | None:
    """Return the part of the root in a client's roots, as relative directories; None for all of it."""
    paths = [path for path in map(_path_of, listed) if path is not None]
    if any(os.path.commonpath([root, path]) == path for path in paths):
        return None
    return [os.path.relpath(path, root) for path in paths if os.path.commonpath([root, path]) == root]


def _view_of(workspace: Workspace, only: list[str] | None) -> Workspace:
    """Return a view on some directories; with a single one, paths are relative to it."""
    if only is None:
        return workspace
    single = len(only) == 1 and os.path.isdir(os.path.join(workspace.root, only[0]))
    return workspace.view(only=only, workdir=only[0] if single else None)


def _path_of(root: types.Root) -> str | None:
    try:
        parts = urlsplit(str(root.uri))
        path = unquote(parts.path)
        if parts.scheme != "file" or parts.netloc not in ("", "localhost") or not os.path.isabs(path):
            return None
        return os.path.realpath(path)
    except ValueError:  # not a URL, or not a path
        return None


def _progress_reporter(context: _Context) -> Callable[[int], None]:
    """Return a callback that sends progress from a call's thread; the SDK drops progress nobody requested."""
    loop = asyncio.get_running_loop()

    def report(entries: int) -> None:
        message = context.session.report_progress(entries, None, plural(entries, "entry", "entries"))
        asyncio.run_coroutine_threadsafe(message, loop)

    return report
