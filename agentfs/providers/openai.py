"""OpenAI: tools and tool calls of chat completions and responses."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from agentfs.providers.provider import (
    KEYWORDS,
    Format,
    Message,
    Provider,
    Schema,
    SchemaRules,
    ToolCall,
    ToolDescription,
    data_url,
    field,
)
from agentfs.results import ToolResult

_STRICT = SchemaRules(every_required=True, closed_only=True, keywords=KEYWORDS - {"minLength", "maxLength"})
_FORMAT = Format(SchemaRules(), strict_rules=_STRICT)
_RESPONSES = {"function_call": "arguments", "custom_tool_call": "input"}


class OpenAI(Provider):
    """Chat completions ("openai") and responses ("openai-responses")."""

    formats: ClassVar[Mapping[str, Format]] = {"openai": _FORMAT, "openai-responses": _FORMAT}

    def schema(self, tool: ToolDescription, name: str, *, strict: bool) -> Schema:
        """Return the schema of one tool in the format with this name."""
        function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
        if name == "openai":
            return {"type": "function", "function": {**function, "strict": True} if strict else function}
        return {"type": "function", "strict": strict, **function}  # strict by default

    def read_call(self, call: Any) -> ToolCall | None:
        """Return a call of either API, or None for anything else."""
        kind = field(call, "type")
        if (function := field(call, "function")) is not None:
            return ToolCall(self, field(call, "id"), field(function, "name"), field(function, "arguments"))
        if kind == "custom" and (custom := field(call, "custom")) is not None:
            name, text = field(custom, "name"), field(custom, "input")
            return ToolCall(self, field(call, "id"), name, text, freeform=True)
        if kind in _RESPONSES:
            name, arguments = field(call, "name"), field(call, _RESPONSES[kind])
            return ToolCall(
                self, field(call, "call_id"), name, arguments, kind, freeform=kind == "custom_tool_call"
            )
        return None

    def reply(self, call: ToolCall, result: ToolResult) -> Message:
        """Return the message that answers one call."""
        text = result.content_with_notes
        if not call.type:
            text += f"\n[images: {len(result.images)} follow in the next message]" if result.images else ""
            return {"role": "tool", "tool_call_id": call.id, "content": text}
        images = [
            {"type": "input_image", "detail": "auto", "image_url": data_url(image)} for image in result.images
        ]
        output = [{"type": "input_text", "text": text}, *images] if images else text
        return {"type": f"{call.type}_output", "call_id": call.id, "output": output}

    def replies(self, answers: Sequence[tuple[ToolCall, ToolResult]]) -> list[Message]:
        """Return the messages of one turn.

        Chat completions accept images from users only, so they follow in a message of the user.
        """
        messages = super().replies(answers)
        content: list[Message] = []
        for call, result in answers:
            if not call.type and result.images:
                content.append({"type": "text", "text": f"Images from {call.name}:"})
                content += [{"type": "image_url", "image_url": {"url": data_url(i)}} for i in result.images]
        return [*messages, {"role": "user", "content": content}] if content else messages
