"""LangChain and LangGraph: tools with failed messages, images as blocks, and approval by interrupts."""

from collections.abc import Mapping
from typing import Any, cast

from agentfs.frameworks import needs
from agentfs.permission.ask import Paused, answering
from agentfs.permissions import Allow, Deny, OnAsk, PermissionAnswer, PermissionRequest
from agentfs.results import ToolResult
from agentfs.tools.toolset import Toolset

with needs("langchain", "1", tested="1"):
    from langchain_core.runnables.config import ensure_config
    from langchain_core.tools import BaseTool, ToolException
    from langgraph.errors import GraphBubbleUp
    from langgraph.types import interrupt
    from pydantic import PrivateAttr

_Output = tuple[str | list[dict[str, Any]], dict[str, Any]]


def tools(toolset: Toolset) -> list[BaseTool]:
    """Return tools as LangChain's, for `create_agent(tools=...)`, a `ToolNode` or `bind_tools`.

    A call that fails becomes a `ToolMessage` whose status is "error". With the `Policy.on_ask` `ask`, a
    call that needs approval is an interrupt like that of `HumanInTheLoopMiddleware`: its value is a
    `HITLRequest`, and a `HITLResponse` or one decision, "approve" or "reject", resumes it. The description
    shows the diff. The graph needs a checkpointer. `CallContext.context` of a tool is the `RunnableConfig`.

    Args:
        toolset: The tools. Pass their `instructions()` as the system prompt.

    Returns:
        One tool for each, in order. The artifact of a message is `ToolResult.to_dict()`.
    """
    return [_FileTool.of(toolset, schema) for schema in toolset.schemas("mcp")]


class _FileTool(BaseTool):
    _toolset: Toolset = PrivateAttr()

    @classmethod
    def of(cls, toolset: Toolset, schema: Mapping[str, Any]) -> "_FileTool":
        """Return the tool for a schema."""
        tool = cls(
            name=schema["name"],
            description=schema["description"],
            args_schema=schema["inputSchema"],
            response_format="content_and_artifact",
            handle_tool_error=True,
        )
        tool._toolset = toolset
        return tool

    # A model may send an argument of any name, also "self".
    def _run(self, /, *args: Any, **arguments: Any) -> _Output:
        del args
        with answering(_interrupts(self.name, arguments)):
            return _output(self._toolset.call(self.name, arguments, context=ensure_config()))

    async def _arun(self, /, *args: Any, **arguments: Any) -> _Output:
        del args
        with answering(_interrupts(self.name, arguments)):
            return _output(await self._toolset.acall(self.name, arguments, context=ensure_config()))


def _output(result: ToolResult) -> _Output:
    text = result.content_with_notes
    if not result.success:
        raise ToolException(text)
    images = [
        {"type": "image", "base64": image.data, "mime_type": image.media_type} for image in result.images
    ]
    return [{"type": "text", "text": text}, *images] if images else text, result.to_dict()


def _interrupts(name: str, arguments: Mapping[str, Any]) -> OnAsk:
    """Return an answer that interrupts the graph."""

    def answer(request: PermissionRequest) -> PermissionAnswer:
        shown = request.diff or f"{request.method} {' '.join(request.paths)}"
        asked = {
            "action_requests": [{"name": name, "args": dict(arguments), "description": shown}],
            "review_configs": [{"action_name": name, "allowed_decisions": ["approve", "reject"]}],
        }
        try:
            given = interrupt(asked)
        except GraphBubbleUp as reason:
            raise Paused(request, reason) from None
        return _decision(given)

    return answer


def _decision(given: Any) -> PermissionAnswer:
    """Return the decision of a `HITLResponse`, or one decision; anything else refuses."""
    decision = _members(given)
    if decisions := decision.get("decisions"):
        decision = _members(decisions[0])
    return Allow() if decision.get("type") == "approve" else Deny(str(decision.get("message") or ""))


def _members(value: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}
