"""pydantic-ai: a toolset with instructions, images and deferred approval; a backend of its workspaces."""

import base64
from typing import Any

from agentfs.frameworks import needs
from agentfs.permission.ask import Paused, answering
from agentfs.permissions import READING, Allow, PermissionAnswer, PermissionRequest
from agentfs.tools.toolset import Toolset

with needs("pydantic-ai-slim", "2.62", tested="2.68"):
    from pydantic_ai import (
        AbstractToolset,
        ApprovalRequired,
        BinaryContent,
        RunContext,
        ToolDefinition,
        ToolFailed,
        ToolReturn,
        ToolsetTool,
    )
    from pydantic_ai.messages import InstructionPart
    from pydantic_core import SchemaValidator, core_schema

    from agentfs.frameworks.pydantic_ai_workspace import WorkspaceBackend

__all__ = ["WorkspaceBackend", "toolset"]

_ANY_OBJECT = SchemaValidator(core_schema.dict_schema(core_schema.str_schema()))


def toolset(tools: Toolset, *, id: str | None = None) -> AbstractToolset[Any]:  # noqa: A002 - pydantic-ai's name
    """Return tools as a toolset of pydantic-ai, for `Agent(toolsets=[...])`.

    It adds the instructions of the tools. A call that fails returns `ToolFailed`'s result, and does not count
    as a retry. With the `Policy.on_ask` `ask`, a call that needs approval becomes an approval of
    `DeferredToolRequests`, with the method, the paths and the diff as its metadata. `CallContext.context`
    of a tool is the `RunContext`.

    Args:
        tools: The tools.
        id: The id of the toolset, which durable execution needs.

    Returns:
        The toolset. The metadata of a result is `ToolResult.to_dict()`.
    """
    return _FileToolset(tools, id)


class _FileToolset(AbstractToolset[Any]):
    def __init__(self, tools: Toolset, identifier: str | None) -> None:
        self._tools = tools
        self._id = identifier
        effects = {tool.name: tool.effect for tool in tools}
        self._definitions = [
            ToolDefinition(
                name=schema["name"],
                description=schema["description"],
                parameters_json_schema=schema["inputSchema"],
                sequential=effects[schema["name"]] not in READING,
            )
            for schema in tools.schemas("mcp")
        ]

    @property
    def id(self) -> str | None:
        return self._id

    async def get_instructions(self, ctx: RunContext[Any]) -> InstructionPart:
        del ctx
        return InstructionPart(self._tools.instructions())

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        del ctx
        return {
            each.name: ToolsetTool(toolset=self, tool_def=each, max_retries=1, args_validator=_ANY_OBJECT)
            for each in self._definitions
        }

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> ToolReturn[Any]:
        del tool

        def answer(request: PermissionRequest) -> PermissionAnswer:
            if ctx.tool_call_approved:
                return Allow()
            shown = {"method": request.method, "paths": list(request.paths), "diff": request.diff}
            raise Paused(request, ApprovalRequired(shown))

        with answering(answer):
            result = await self._tools.acall(name, tool_args, context=ctx)
        text = result.content_with_notes
        if not result.success:
            raise ToolFailed(text)
        images = [BinaryContent(base64.b64decode(i.data), media_type=i.media_type) for i in result.images]
        return ToolReturn([text, *images] if images else text, metadata=result.to_dict())
