"""The tools as a server of the MCP SDK, and as tools of a server of one's own."""

import asyncio
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mcp import types
from mcp.server.lowlevel import Server
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.tools import Tool
from mcp.server.mcpserver.utilities.func_metadata import func_metadata
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.stdio import stdio_server
from pydantic import PrivateAttr

import agentfs
from agentfs.base.advice import plural
from agentfs.errors import FileIOError
from agentfs.mcp.questions import Questions
from agentfs.permission.ask import answering
from agentfs.providers.mcp_format import call_result
from agentfs.tools.toolset import Toolset
from agentfs.workspace import Workspace

# Offered besides the default tools, because clients often have no shell.
_MORE_TOOLS = ("delete", "move", "undo", "replace")


def offered(
    workspace: Workspace, names: Sequence[str] | None = None, *, dialect: str = "agentfs", prefix: str = ""
) -> Toolset:
    """Return the tools that a server offers.

    Args:
        workspace: The workspace.
        names: The tools; by default the default ones, delete, move, undo and replace, and those for commands
            if the policy has `run`.
        dialect: The dialect of names, arguments and output.
        prefix: A prefix for each name.

    Returns:
        The tools. If the policy forbids changes, only those that read.
    """
    policy = workspace.policy
    if names is None and dialect == "agentfs":
        commands = [name for name in ("run", "output", "stop") if name in workspace.tools("all").names]
        names = [*workspace.tools().names, *_MORE_TOOLS, *commands]
    if policy.read_only or policy.mode == "plan":
        # A dialect whose one tool does everything keeps it, because some of its commands read.
        reads = _read_only(workspace.tools(names, dialect=dialect))
        if reads or _read_only(workspace.tools(dialect=dialect)):
            names = reads
    return workspace.tools(names, dialect=dialect, prefix=prefix)


def tool_server(tools: Toolset) -> Server[Any]:
    """Return a server of the SDK that offers some tools.

    A call that fails is a result with `is_error`. With the `Policy.on_ask` `ask`, a call that needs
    approval is an elicitation that shows the diff; without that capability of the client it is refused.

    Args:
        tools: The tools.

    Returns:
        The server.
    """

    async def list_tools(_context: Any, _params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=_described(tools))

    async def call_tool(context: Any, params: types.CallToolRequestParams) -> Any:
        return await _call(tools, params.name, params.arguments or {}, context, params)

    made: Server[Any] = Server(
        "agentfs",
        version=agentfs.__version__,
        instructions=tools.instructions(),
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )
    # A client that sends a request again must send the server's own state, unchanged.
    made.middleware.append(RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience="agentfs"))
    return made


def serve_stdio(tools: Toolset) -> None:
    """Serve one client on standard input and output until it leaves; SIGINT ends the process at once."""
    if sys.stdin is None or sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison] - None if it is closed
        raise FileIOError("The server needs standard input and output, and one of them is closed.")

    async def serve() -> None:
        made = tool_server(tools)
        async with stdio_server() as (incoming, outgoing):
            await made.run(incoming, outgoing, made.create_initialization_options())

    report = sys.unraisablehook
    # The SDK's stream may hold output for a client that has gone, which Python 3.13 reports.
    sys.unraisablehook = lambda each: None if isinstance(each.exc_value, BrokenPipeError) else report(each)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # the SDK's reader waits for input in a thread
    try:
        asyncio.run(serve())
    except* BrokenPipeError:
        pass  # the client has gone


def sdk_tools(tools: Toolset) -> list[Tool]:
    """Return tools as those of the SDK, for a server of one's own: `MCPServer(tools=...)`.

    `CallContext.context` of a tool is the SDK's `Context`; else as `tool_server`.

    Args:
        tools: The tools. Pass their `instructions()` to the server.

    Returns:
        One tool for each, in order.
    """
    return [_SdkTool.of(tools, described) for described in _described(tools)]


class _SdkTool(Tool):
    _tools: Toolset = PrivateAttr()

    @classmethod
    def of(cls, tools: Toolset, described: types.Tool) -> "_SdkTool":
        """Return the tool for a description; `run` replaces the function."""

        def function() -> None: ...

        tool = cls(
            fn=function,
            name=described.name,
            title=described.title,
            description=described.description or "",
            parameters=described.input_schema,
            fn_metadata=func_metadata(function, structured_output=False),
            is_async=False,
            context_kwarg=None,
            annotations=described.annotations,
        )
        tool._tools = tools
        return tool

    async def run(
        self, arguments: dict[str, Any], context: Context[Any, Any], convert_result: bool = False
    ) -> types.CallToolResult | types.InputRequiredResult:
        """Run a call, or return the question that its client must answer first."""
        del convert_result
        return await _call(
            self._tools, self.name, arguments, context.request_context, context, context=context
        )


async def _call(
    tools: Toolset, name: str, arguments: Mapping[str, Any], request: Any, answers: Any, **more: Any
) -> types.CallToolResult | types.InputRequiredResult:
    questions = Questions(request, answers)
    with answering(questions.permission):
        progress = _progress_to(request.session)
        result = await tools.acall(name, dict(arguments), on_progress=progress, **more)
    if questions.required is not None:
        return questions.required
    return types.CallToolResult.model_validate(call_result(result))


def _progress_to(session: Any) -> Callable[[int], None]:
    """Return a callback that sends progress from a call's thread; the SDK drops progress nobody requested."""
    loop = asyncio.get_running_loop()

    def report(entries: int) -> None:
        message = session.report_progress(entries, None, plural(entries, "entry", "entries"))
        asyncio.run_coroutine_threadsafe(message, loop)

    return report


def _described(tools: Toolset) -> list[types.Tool]:
    return [types.Tool.model_validate(schema) for schema in tools.schemas("mcp")]


def _read_only(tools: Toolset) -> list[str]:
    return [tool["name"] for tool in tools.schemas("mcp") if tool["annotations"].get("readOnlyHint")]
