"""The Model Context Protocol: the tools of `tools/list`, and calls and results of `tools/call`."""

from collections.abc import Mapping
from typing import Any, ClassVar

from agentfs.arguments.parameters import Schema, SchemaRules
from agentfs.permissions import READING, Effect
from agentfs.providers.provider import Format, Message, Provider, ToolCall, field, text_blocks
from agentfs.results import ToolResult

# A client may pass a schema on to Gemini on Vertex.
_RULES = SchemaRules(plain=True)


class MCP(Provider):
    """The tools of `tools/list`."""

    formats: ClassVar[Mapping[str, Format]] = {"mcp": Format(_RULES)}

    def schema(self, tool: Schema, effect: Effect, name: str, *, strict: bool) -> Schema:
        """Return one tool of `tools/list`."""
        del name, strict
        return {
            "name": tool["name"],
            "description": tool["description"],
            "inputSchema": tool["parameters"],
            "annotations": _annotations(effect),
        }

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


def call_result(result: ToolResult) -> Message:
    """Return the result of `tools/call`. With `structuredContent`, some clients withhold the text."""
    images = [{"type": "image", "data": i.data, "mimeType": i.media_type} for i in result.images]
    return {"content": [*text_blocks(result), *images], "isError": not result.success}


def _annotations(effect: Effect) -> dict[str, bool]:
    """Return the annotations that differ from the default of MCP, and whether the tool only reads."""
    hints = {"readOnlyHint": effect in READING}
    return hints if effect == "execute" else {**hints, "openWorldHint": False}  # a command may use a network
