"""The MCP SDK: the tools for a server of one's own, with failed results, images, progress and elicitation."""

from typing import Any

from mcp import types
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.tools import Tool
from mcp.server.mcpserver.utilities.func_metadata import func_metadata
from pydantic import PrivateAttr

from agentfs.frameworks.versions import warn_if_newer
from agentfs.mcp.progress import progress_reporter
from agentfs.mcp.questions import Questions
from agentfs.providers.mcp_format import call_result
from agentfs.tools.approval import answering
from agentfs.tools.toolset import Toolset

warn_if_newer("mcp", "2")


def tools(toolset: Toolset) -> list[Tool]:
    """Return tools as those of the MCP SDK, for `MCPServer(tools=...)`.

    A call that fails is a result with `is_error`. With the `Policy.on_ask` `ask`, a call that needs
    approval is an elicitation that shows the diff; without that capability of the client it is refused.
    Long searches report progress. `CallContext.context` of a tool is the SDK's `Context`.

    Args:
        toolset: The tools. Pass their `instructions()` to the server.

    Returns:
        One tool for each, in order.
    """
    return [_FileTool.of(toolset, types.Tool.model_validate(schema)) for schema in toolset.schemas("mcp")]


class _FileTool(Tool):
    _toolset: Toolset = PrivateAttr()

    @classmethod
    def of(cls, toolset: Toolset, described: types.Tool) -> "_FileTool":
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
        tool._toolset = toolset
        return tool

    async def run(
        self, arguments: dict[str, Any], context: Context[Any, Any], convert_result: bool = False
    ) -> types.CallToolResult | types.InputRequiredResult:
        """Run a call, or return the question that its client must answer first."""
        del convert_result
        questions = Questions(context.request_context, context)
        with answering(questions.permission):
            progress = progress_reporter(context)
            result = await self._toolset.acall(self.name, arguments, on_progress=progress, context=context)
        if questions.required is not None:
            return questions.required
        return types.CallToolResult.model_validate(call_result(result))
