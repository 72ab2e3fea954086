"""The Model Context Protocol: the tools of `tools/list`, and calls and results of `tools/call`."""

from collections.abc import Mapping
from typing import Any, ClassVar

from agentfs.permissions import READING, Effect
from agentfs.providers.provider import (
    GEMINI_KEYWORDS,
    Format,
    Message,
    Provider,
    Schema,
    SchemaRules,
    ToolCall,
    ToolDescription,
    field,
    text_blocks,
)
from agentfs.results import ToolResult

# A client may pass a schema on to Gemini on Vertex.
_RULES = SchemaRules(unions=False, formats=False, keywords=GEMINI_KEYWORDS)


class MCP(Provider):
    """Tools without output schemas ("mcp") or with them ("mcp-structured")."""

    formats: ClassVar[Mapping[str, Format]] = {
        "mcp": Format(_RULES),
        "mcp-structured": Format(_RULES, has_output=True),
    }

    def schema(self, tool: ToolDescription, name: str, *, strict: bool) -> Schema:
        """Return one tool of `tools/list`."""
        del name, strict
        title = tool.name.replace("_", " ").strip().capitalize()
        schema: Schema = {
            "name": tool.name,
            "title": title,
            "description": tool.description,
            "inputSchema": tool.parameters,
            "annotations": {"title": title, **_annotations(tool.effect)},
        }
        return schema | ({"outputSchema": tool.output} if tool.output else {})

    def read_call(self, call: Any) -> ToolCall | None:
        """Return the parameters of `tools/call`, or None for anything else."""
        name, arguments = field(call, "name"), field(call, "arguments")
        if isinstance(name, str) and (arguments is None or isinstance(arguments, Mapping)):
            return ToolCall(self, None, name, arguments)
        return None

    def reply(self, call: ToolCall, result: ToolResult) -> Message:
        """Return the result of `tools/call`, without the data."""
        del call
        return call_result(result)


def call_result(result: ToolResult, *, structured: bool = False) -> Message:
    """Return the result of `tools/call`.

    Args:
        result: The result of the call.
        structured: Add the data. Some clients then withhold the text from the model.
    """
    images = [{"type": "image", "data": i.data, "mimeType": i.media_type} for i in result.images]
    answer: Message = {"content": [*text_blocks(result), *images], "isError": not result.success}
    data: Any = result.data
    if structured and result.success and isinstance(data, dict):
        answer["structuredContent"] = data
    return answer


def _annotations(effect: Effect | None) -> dict[str, bool]:
    if effect is None:  # without annotations a client assumes the worst
        return {}
    reads = effect in READING
    hints = {"readOnlyHint": reads, "destructiveHint": not reads}
    return {**hints, "idempotentHint": reads or effect == "write", "openWorldHint": False}
