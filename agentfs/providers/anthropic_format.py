"""Anthropic: tools and tool calls of the messages API."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from agentfs.errors import InvalidArgumentError
from agentfs.providers.provider import (
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

# The name of each type is fixed; a call of "bash" means `run`.
ANTHROPIC_TYPES: Mapping[str, Schema] = {
    "str_replace_based_edit_tool": {"type": "text_editor_20250728", "name": "str_replace_based_edit_tool"},
    "memory": {"type": "memory_20250818", "name": "memory"},
    "run": {"type": "bash_20250124", "name": "bash"},
}
# The limits of one request, summed over its strict tools. Flags are required, so that they do not count.
_STRICT_LIMITS = {"tools": 20, "optional parameters": 24, "union-typed parameters": 16}


class Anthropic(Provider):
    """The messages API."""

    formats: ClassVar[Mapping[str, Format]] = {
        "anthropic": Format(
            SchemaRules(),
            strict_rules=SchemaRules(closed_only=True, flags_required=True, keywords=frozenset()),
        )
    }
    merged = "content"
    native: ClassVar[Mapping[str, Mapping[str, Schema]]] = {"anthropic": ANTHROPIC_TYPES}

    def schemas(self, tools: Sequence[ToolDescription], name: str, *, strict: bool) -> list[Schema]:
        """Return tools; raise `invalid_argument` if they exceed the limits of one strict request."""
        if strict:
            _check_strict_limits(tools)
        return super().schemas(tools, name, strict=strict)

    def schema(self, tool: ToolDescription, name: str, *, strict: bool) -> Schema:
        """Return the schema of one tool."""
        del name
        schema = {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}
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


def _check_strict_limits(tools: Sequence[ToolDescription]) -> None:
    parts = [part for tool in tools for part in _parts(tool.parameters)]
    counts = {
        "tools": len(tools),
        "optional parameters": sum(
            len(part["properties"]) - len(part.get("required", ())) for part in parts if "properties" in part
        ),
        "union-typed parameters": sum(
            "anyOf" in part or isinstance(part.get("type"), list) for part in parts
        ),
    }
    over = [
        f"{counts[what]} {what} ({most} at most)"
        for what, most in _STRICT_LIMITS.items()
        if counts[what] > most
    ]
    if over:
        raise InvalidArgumentError(
            f"These tools exceed the limits of one strict request to Anthropic: {', '.join(over)}.",
            hint="Use fewer tools, or leave out `strict`.",
            details={"counts": counts, "limits": dict(_STRICT_LIMITS)},
        )


def _parts(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield a schema and every schema inside it; there are no references."""
    yield schema
    inner: list[Any] = [*schema.get("properties", {}).values(), *schema.get("anyOf", ())]
    inner += [schema[key] for key in ("items", "additionalProperties") if isinstance(schema.get(key), dict)]
    for part in inner:
        yield from _parts(part)
