"""OpenAI Agents: function tools with images and approval."""

from typing import Any
from weakref import WeakKeyDictionary

from agentfs.frameworks import needs
from agentfs.permission.ask import answering
from agentfs.permissions import Allow, Deny, PermissionAnswer, PermissionRequest
from agentfs.providers.provider import data_url
from agentfs.results import ToolResult
from agentfs.tools.tool import Tool
from agentfs.tools.toolset import Toolset, needs_approval

with needs("openai-agents", "0.24", tested="0.24"):
    from agents import FunctionTool, RunContextWrapper, SpanError, get_current_span
    from agents.tool import FunctionToolCustomDataContext, ToolOutputImageDict, ToolOutputTextDict
    from agents.tool_context import ToolContext


def tools(toolset: Toolset, *, strict: bool = False, approval: bool = False) -> list[FunctionTool]:
    """Return tools as those of the OpenAI Agents SDK, for `Agent(tools=...)`.

    The SDK shows a model a failure as text. It is also an error of the call's span, and the item's
    `custom_data` has `success` and the `code` of the error. With `approval` and the `Policy.on_ask`
    `ask`, a call that needs approval is an interruption of the run, which `RunState.approve` or
    `RunState.reject` answers. `CallContext.context` of a tool is the `ToolContext`.

    Args:
        toolset: The tools. Pass their `instructions()` to the agent.
        strict: Ask the provider to enforce the schemas.
        approval: Find out before each call whether the rules may ask the user about it. Nothing is run for
            that. The SDK then also asks about calls whose arguments are not JSON.

    Returns:
        One tool for each, in order.
    """
    schemas: list[Any] = toolset.schemas("openai-responses", strict=strict)
    return [_tool(toolset, tool, schema, approval) for tool, schema in zip(toolset, schemas, strict=True)]


def _tool(toolset: Toolset, tool: Tool, schema: dict[str, Any], approval: bool) -> FunctionTool:
    results: WeakKeyDictionary[ToolContext[Any], ToolResult] = WeakKeyDictionary()

    async def invoke(context: ToolContext[Any], arguments: str) -> Any:
        def answer(_: PermissionRequest) -> PermissionAnswer:
            if context.is_tool_approved(tool.name, context.tool_call_id):
                return Allow()
            return Deny("The user must be asked before this call, and was not.")

        with answering(answer):
            result = results[context] = await toolset.acall(tool.name, arguments, context=context)
        return _output(result)

    async def may_ask(_: RunContextWrapper[Any], arguments: dict[str, Any], call_id: str) -> bool:
        del call_id
        return needs_approval(toolset, tool.name, arguments)

    def custom_data(context: FunctionToolCustomDataContext) -> dict[str, Any] | None:
        result = results.get(context.tool_context)
        return None if result is None else {"success": result.success, "code": _code(result)}

    return FunctionTool(
        name=tool.name,
        description=schema["description"],
        params_json_schema=schema["parameters"],
        on_invoke_tool=invoke,
        strict_json_schema=schema["strict"],
        needs_approval=may_ask if approval else False,
        custom_data_extractor=custom_data,
    )


def _code(result: ToolResult) -> str | None:
    return None if result.error is None else result.error["code"]


def _output(result: ToolResult) -> str | list[ToolOutputTextDict | ToolOutputImageDict]:
    text = result.content_with_notes
    if not result.success and (span := get_current_span()) is not None:
        span.set_error(SpanError(message=result.short_result, data={"code": _code(result)}))
    if not result.images:
        return text
    images = [ToolOutputImageDict(type="image", image_url=data_url(image)) for image in result.images]
    return [ToolOutputTextDict(type="text", text=text), *images]
