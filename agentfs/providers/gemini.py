"""Gemini: function declarations and function calls."""

from collections.abc import Mapping
from typing import Any, ClassVar

from agentfs.arguments.parameters import Schema, SchemaRules
from agentfs.permissions import Effect
from agentfs.providers.provider import Format, Message, Provider, ToolCall, field
from agentfs.results import ToolResult


class Gemini(Provider):
    """The Gemini API and Vertex AI; the latter refuses `anyOf` beside a description."""

    formats: ClassVar[Mapping[str, Format]] = {"gemini": Format(SchemaRules(plain=True, identifiers=True))}
    merged = "parts"

    def schema(self, tool: Schema, effect: Effect, name: str, *, strict: bool) -> Schema:
        """Return the function declaration of one tool."""
        del effect, name, strict
        schema: Schema = {"name": tool["name"], "description": tool["description"]}
        if tool["parameters"]["properties"]:  # the API refuses an object without properties
            schema["parametersJsonSchema"] = tool["parameters"]
        return schema

    def read_call(self, call: Any) -> ToolCall | None:
        """Return a function call, including one inside a part; None for anything else."""
        inner = field(call, "function_call", "functionCall")
        call = call if inner is None else inner
        name = field(call, "name")
        has_args = "args" in call if isinstance(call, Mapping) else hasattr(call, "args")
        if not isinstance(name, str) or (inner is None and not has_args):
            return None
        return ToolCall(self, field(call, "id"), name, field(call, "args"))

    def reply(self, call: ToolCall, result: ToolResult) -> Message:
        """Return the message that answers one call."""
        response: Message = {
            "name": call.name,
            "response": {"output" if result.success else "error": result.content},
        }
        if result.notes:
            response["response"]["notes"] = list(result.notes)
        if call.id:
            response["id"] = call.id
        images = [{"inlineData": {"mimeType": i.media_type, "data": i.data}} for i in result.images]
        return {"role": "user", "parts": [{"functionResponse": response}, *images]}
