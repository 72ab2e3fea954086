"""Anthropic: tools and tool calls of the messages API."""

from collections.abc import Mapping
from typing import Any, ClassVar

from agentfs.arguments.parameters import Schema, SchemaRules
from agentfs.permissions import Effect
from agentfs.providers.provider import Format, Message, Provider, ToolCall, field, text_blocks
from agentfs.results import ToolResult

# The name of each type is fixed; a call of "bash" means `run`.
ANTHROPIC_TYPES: Mapping[str, Schema] = {
    "str_replace_based_edit_tool": {"type": "text_editor_20250728", "name": "str_replace_based_edit_tool"},
    "memory": {"type": "memory_20250818", "name": "memory"},
    "run": {"type": "bash_20250124", "name": "bash"},
}


class Anthropic(Provider):
    """The messages API."""

    formats: ClassVar[Mapping[str, Format]] = {
        "anthropic": Format(SchemaRules(), strict_rules=SchemaRules(closed_only=True, flags_required=True))
    }
    merged = "content"
    native: ClassVar[Mapping[str, Mapping[str, Schema]]] = {"anthropic": ANTHROPIC_TYPES}

    def schema(self, tool: Schema, effect: Effect, name: str, *, strict: bool) -> Schema:
        """Return the schema of one tool."""
        del effect, name
        schema = {
            "name": tool["name"],
            "description": tool["description"],
            "input_schema": tool["parameters"],
        }
        return {**schema, "strict": True} if strict else schema

    def read_call(self, call: Any) -> ToolCall | None:
        """Return a `tool_use` block, or None for anything else."""
        if field(call, "type") != "tool_use":
            return None
        return ToolCall(self, field(call, "id"), field(call, "name"), field(call, "input"))

    def reply(self, call: ToolCall, result: ToolResult) -> Message:
        """Return the message that answers one call."""
        content = text_blocks(result) if result.content else []
        for image in result.images:
            source = {"type": "base64", "media_type": image.media_type, "data": image.data}
            content.append({"type": "image", "source": source})
        block: Message = {"type": "tool_result", "tool_use_id": call.id, "content": content}
        return {"role": "user", "content": [block if result.success else {**block, "is_error": True}]}
