"""Function schemas for each provider, made from tools alone.

The providers' rules conflict, so every format has its own `Rules`. What all share: a flat, closed object,
definitions inline, enums from Literal, defaults in the description only. Output is deterministic.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from agentfs.errors import InvalidArgumentError
from agentfs.permissions import Effect
from agentfs.tools.output_schema import output_schema
from agentfs.tools.spec import Tool
from agentfs.tools.types import (
    EnumOf,
    Kind,
    ListOf,
    MapOf,
    OptionalOf,
    Parameter,
    Record,
    Scalar,
    UnionOf,
    plainest,
)

Schema = dict[str, Any]

FORMATS = ("openai", "openai-responses", "anthropic", "mcp", "mcp-structured", "gemini")
STRICT_FORMATS = ("openai", "openai-responses", "anthropic")

# What Anthropic takes in one request, summed over its strict tools.
ANTHROPIC_STRICT_LIMITS = {"tools": 20, "optional parameters": 24, "union-typed parameters": 16}


class Rules(NamedTuple):
    """What the schemas of one format may say.

    Attributes:
        every_required: Every parameter is required; those that are not become nullable.
        unions: `anyOf` may stand beside a description. Gemini on Vertex refuses that, and an MCP client may
            pass a schema on to it, so for both a union is shown as its plainest option.
        closed_only: Objects with free names and values of any type cannot be said.
        string_enums: Only strings may be enumerated.
        identifiers: A parameter is named by letters, digits and underscores alone.
    """

    every_required: bool = False
    unions: bool = True
    closed_only: bool = False
    string_enums: bool = False
    identifiers: bool = False


_OPENAI_STRICT = Rules(every_required=True, closed_only=True)
_ANTHROPIC_STRICT = Rules(closed_only=True)
_GEMINI = Rules(unions=False, string_enums=True, identifiers=True)
_MCP = Rules(unions=False)

_READS = {"readOnlyHint": True, "destructiveHint": False, "idempotentHint": True, "openWorldHint": False}
_WRITES = {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": True, "openWorldHint": False}
_EDITS = {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": False, "openWorldHint": False}

# Of a tool whose effect is not known nothing is claimed, and MCP then assumes the worst.
_MCP_HINTS: dict[Effect | None, dict[str, bool]] = {
    "none": _READS,
    "read": _READS,
    "search": _READS,
    "write": _WRITES,
    "edit": _EDITS,
    "change": _EDITS,
}


def tool_schemas(tools: Sequence[Tool], format: str, *, strict: bool = False) -> list[Schema]:  # noqa: A002 - the published name
    """Return the schemas of tools in a provider's format.

    Args:
        tools: The tools, in the order of the result.
        format: One of `FORMATS`.
        strict: Ask the provider to hold the model to the schema; only for `STRICT_FORMATS`.

    Raises:
        InvalidArgumentError: The format is unknown, knows no strict mode, or cannot say one of the types in
            strict mode, or the tools exceed the provider's limits (`invalid_argument`).
    """
    if format not in FORMATS:
        named = ", ".join(FORMATS)
        raise InvalidArgumentError(f"There is no schema format {format!r}; there are {named}.")
    if strict and format not in STRICT_FORMATS:
        raise InvalidArgumentError(
            f"The format {format!r} has no strict mode.",
            hint=f"Leave `strict` out, or use one of {', '.join(STRICT_FORMATS)}.",
        )
    match format:
        case "openai":
            return [{"type": "function", "function": _openai(tool, strict)} for tool in tools]
        case "openai-responses":
            # This API is strict unless told otherwise.
            return [{"type": "function", "strict": False, **_openai(tool, strict)} for tool in tools]
        case "anthropic":
            return _anthropic(tools, strict)
        case "mcp":
            return [_mcp(tool) for tool in tools]
        case "mcp-structured":
            return [_mcp(tool) | _mcp_output(tool) for tool in tools]
        case _:
            return [_gemini(tool) for tool in tools]


def parameters_schema(tool: Tool, rules: Rules) -> Schema:
    """Return the JSON Schema of a tool's parameters under the rules of a format.

    Args:
        tool: The tool.
        rules: What may be said.

    Raises:
        InvalidArgumentError: The rules cannot say one of the types (`invalid_argument`).
    """
    try:
        return _object(tool.parameters, rules)
    except InvalidArgumentError as error:
        raise InvalidArgumentError(
            f"{tool.name} has no strict schema: {error.message}.", hint="Leave `strict` out, or this tool."
        ) from None


def _openai(tool: Tool, strict: bool) -> Schema:
    schema: Schema = {"name": tool.name, "description": tool.description}
    schema["parameters"] = parameters_schema(tool, _OPENAI_STRICT if strict else Rules())
    return schema | ({"strict": True} if strict else {})


def _anthropic(tools: Sequence[Tool], strict: bool) -> list[Schema]:
    rules = _ANTHROPIC_STRICT if strict else Rules()
    schemas: list[Schema] = [
        {"name": tool.name, "description": tool.description, "input_schema": parameters_schema(tool, rules)}
        for tool in tools
    ]
    if not strict:
        return schemas
    objects = [part for schema in schemas for part in subschemas(schema["input_schema"])]
    counts = {
        "tools": len(schemas),
        "optional parameters": sum(
            len(part["properties"]) - len(part.get("required", ()))
            for part in objects
            if "properties" in part
        ),
        "union-typed parameters": sum(
            "anyOf" in part or isinstance(part.get("type"), list) for part in objects
        ),
    }
    over = [f"{counts[what]} {what} ({most} at most)" for what, most in ANTHROPIC_STRICT_LIMITS.items()
            if counts[what] > most]  # fmt: skip
    if over:
        raise InvalidArgumentError(
            f"These tools are too many for one strict request to Anthropic: {', '.join(over)}.",
            hint="Use fewer tools, or leave `strict` out.",
            details={"counts": counts, "limits": dict(ANTHROPIC_STRICT_LIMITS)},
        )
    return [{**schema, "strict": True} for schema in schemas]


def _mcp(tool: Tool) -> Schema:
    title = tool.name.replace("_", " ").strip().capitalize()
    return {
        "name": tool.name,
        "title": title,
        "description": tool.description,
        "inputSchema": parameters_schema(tool, _MCP),
        "annotations": {"title": title, **_MCP_HINTS.get(tool.effect, {})},
    }


def _mcp_output(tool: Tool) -> Schema:
    output = None if tool.spec.render else output_schema(tool.returns)
    return {"outputSchema": output} if output else {}


def _gemini(tool: Tool) -> Schema:
    schema: Schema = {"name": tool.name, "description": tool.description}
    if tool.parameters:  # an object without properties is refused
        schema["parametersJsonSchema"] = parameters_schema(tool, _GEMINI)
    return schema


def _object(members: Sequence[Parameter], rules: Rules) -> Schema:
    names = {member.name: member.identifier if rules.identifiers else member.name for member in members}
    schema: Schema = {
        "type": "object",
        "properties": {names[member.name]: _property(member, rules) for member in members},
    }
    required = [names[member.name] for member in members if member.required or rules.every_required]
    if required or rules.every_required:
        schema["required"] = required
    return {**schema, "additionalProperties": False}


def _property(member: Parameter, rules: Rules) -> Schema:
    kind = member.value_kind
    schema = _value(kind, rules)
    if member.takes_null or (rules.every_required and not member.required):
        schema = _nullable(schema, rules)
    return {**schema, "description": member.full_description(choices="enum" not in schema)}


def _value(kind: Kind, rules: Rules) -> Schema:
    match kind:
        case Scalar():
            return {"type": kind.type}
        case EnumOf():
            if rules.string_enums and kind.type != "string":
                return {"type": kind.type}
            return {"type": kind.type, "enum": list(kind.values)}
        case ListOf():
            return {"type": "array", "items": _value(kind.item, rules)}
        case Record():
            return _object(kind.members, rules)
        case UnionOf():
            if not rules.unions:
                return _value(plainest(kind), rules)
            return {"anyOf": [_value(option, rules) for option in kind.options]}
        case OptionalOf():
            return _nullable(_value(kind.kind, rules), rules)
        case MapOf():
            if rules.closed_only:
                raise InvalidArgumentError("an object with free names cannot be closed")
            return {"type": "object", "additionalProperties": _value(kind.value, rules)}
        case _:
            if rules.closed_only:
                raise InvalidArgumentError("a value of any type has no schema")
            return {}


def _nullable(schema: Schema, rules: Rules) -> Schema:
    if "anyOf" in schema:
        return {"anyOf": [*schema["anyOf"], {"type": "null"}]}
    if schema.keys() == {"type"}:
        return {"type": [schema["type"], "null"]}
    if not schema:
        return schema
    if rules.unions:
        return {"anyOf": [schema, {"type": "null"}]}
    if "enum" in schema:  # an enumeration would have to name null, which is no string
        schema = {"type": schema["type"]}
    return {**schema, "type": [schema["type"], "null"]}


def subschemas(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield a schema and every schema inside it.

    Args:
        schema: A schema as this module makes them: without references.
    """
    yield schema
    inner: list[Any] = [*schema.get("properties", {}).values(), *schema.get("anyOf", ())]
    inner += [schema[key] for key in ("items", "additionalProperties") if isinstance(schema.get(key), dict)]
    for part in inner:
        yield from subschemas(part)
