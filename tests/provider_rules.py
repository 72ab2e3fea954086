"""The rules that each provider has for tool schemas, as checkers that name every breach.

Written from the providers' documents and measurements, not from the generator, which they judge.
"""

import re
from collections.abc import Iterator
from typing import Any

from jsonschema import Draft202012Validator

_OPENAI_STRICT_UNSUPPORTED = {
    "allOf", "oneOf", "not", "if", "then", "else", "dependentRequired", "dependentSchemas", "minLength",
    "maxLength", "patternProperties", "propertyNames", "minProperties", "maxProperties", "unevaluatedItems",
    "unevaluatedProperties", "contains", "minContains", "maxContains", "uniqueItems", "default", "$ref",
    "$defs",
}  # fmt: skip
_GEMINI_SUPPORTED = {
    "type", "format", "description", "enum", "items", "prefixItems", "minItems", "maxItems", "minimum",
    "maximum", "properties", "additionalProperties", "required",
}  # fmt: skip
_ANTHROPIC_STRICT_UNSUPPORTED = {
    "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength",
    "maxItems", "oneOf", "not", "if", "then", "else", "$ref", "patternProperties", "uniqueItems",
}  # fmt: skip


def parts(schema: Any, path: str = "$") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each schema inside a schema, with the way to it."""
    yield path, schema
    for name, inner in schema.get("properties", {}).items():
        yield from parts(inner, f"{path}.{name}")
    for index, inner in enumerate(schema.get("anyOf", [])):
        yield from parts(inner, f"{path}|{index}")
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from parts(schema[key], f"{path}/{key}")


def _objects(schema: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    return ((path, part) for path, part in parts(schema) if "properties" in part)


def _common(name: str, description: str, schema: dict[str, Any]) -> Iterator[str]:
    Draft202012Validator.check_schema(schema)
    if not re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}", name):
        yield f"name {name}"
    if not 0 < len(description) <= 1024:
        yield f"description of {len(description)} characters"
    if schema.get("type") != "object" or "anyOf" in schema:
        yield "the root is no plain object"
    for path, part in _objects(schema):
        if part.get("additionalProperties") is not False:
            yield f"{path} is open"
        for key, value in part["properties"].items():
            if not value.get("description"):
                yield f"{path}.{key} has no description"
            if not re.fullmatch(r"[a-zA-Z0-9_]{1,64}", key):
                yield f"{path}.{key} is no name"
        if not set(part.get("required", [])) <= set(part["properties"]):
            yield f"{path} requires what it does not have"
    for path, part in parts(schema):
        for key in part.keys() & {"$ref", "$defs", "title", "default"}:
            yield f"{path} has {key}"


def _openai_strict(schema: dict[str, Any]) -> Iterator[str]:
    for path, part in _objects(schema):
        if set(part.get("required", [])) != set(part["properties"]):
            yield f"{path} does not require everything"
    count = sum(len(part["properties"]) for _, part in _objects(schema))
    if count > 5000 or max(len(re.findall(r"[./|]", path)) for path, _ in parts(schema)) > 10:
        yield "too many properties or levels"
    for path, part in parts(schema):
        for key in part.keys() & _OPENAI_STRICT_UNSUPPORTED:
            yield f"{path} has {key}"
        if not part.keys() & {"type", "anyOf"}:
            yield f"{path} has no type"
        if part.get("type") == "array" and "items" not in part:
            yield f"{path} is an untyped array"


def openai(tool: dict[str, Any], *, strict: bool) -> list[str]:
    function = tool["function"]
    wrong = list(_common(function["name"], function["description"], function["parameters"]))
    if tool.keys() != {"type", "function"} or tool["type"] != "function":
        wrong.append("envelope")
    if function.get("strict", False) is not strict:
        wrong.append("strict")
    return wrong + (list(_openai_strict(function["parameters"])) if strict else [])


def openai_responses(tool: dict[str, Any], *, strict: bool) -> list[str]:
    wrong = list(_common(tool["name"], tool["description"], tool["parameters"]))
    if tool.keys() != {"type", "name", "description", "parameters", "strict"}:
        wrong.append("envelope")
    if tool["strict"] is not strict:
        wrong.append("strict must be said, because the default is true")
    return wrong + (list(_openai_strict(tool["parameters"])) if strict else [])


def anthropic(tool: dict[str, Any], *, strict: bool) -> list[str]:
    wrong = list(_common(tool["name"], tool["description"], tool["input_schema"]))
    if tool.keys() != {"name", "description", "input_schema"} | ({"strict"} if strict else set()):
        wrong.append("envelope")
    if strict:  # the limits of structured outputs; other tools take any JSON Schema
        for path, part in parts(tool["input_schema"]):
            wrong += [f"{path} has {key}" for key in part.keys() & _ANTHROPIC_STRICT_UNSUPPORTED]
    return wrong


def anthropic_request(tools: list[dict[str, Any]]) -> list[str]:
    """Check what holds for all strict tools of a request together."""
    optional = unions = 0
    for tool in tools:
        for _, part in parts(tool["input_schema"]):
            optional += len(set(part.get("properties", {})) - set(part.get("required", [])))
            unions += "anyOf" in part or isinstance(part.get("type"), list)
    over = [("tools", len(tools), 20), ("optional", optional, 24), ("unions", unions, 16)]
    return [f"{count} {what}" for what, count, most in over if count > most]


def mcp(tool: dict[str, Any], *, strict: bool = False) -> list[str]:
    wrong = list(_common(tool["name"], tool["description"], tool["inputSchema"]))
    hints = {"title", "readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"}
    if not tool.keys() <= {"name", "title", "description", "inputSchema", "annotations"}:
        wrong.append("envelope")
    if not tool["annotations"].keys() <= hints:
        wrong.append("annotations")
    if tool["annotations"].get("readOnlyHint") and tool["annotations"].get("destructiveHint"):
        wrong.append("destroys by reading")
    return wrong


def gemini(tool: dict[str, Any], *, strict: bool = False) -> list[str]:
    schema = tool.get("parametersJsonSchema")
    if schema is None:
        return [] if tool.keys() == {"name", "description"} else ["envelope"]
    wrong = list(_common(tool["name"], tool["description"], schema))
    if not schema["properties"]:
        wrong.append("an object without properties")
    for path, part in parts(schema):
        wrong += [f"{path} has {key}" for key in part.keys() - _GEMINI_SUPPORTED]
        if not all(isinstance(value, str) for value in part.get("enum", [])):
            wrong.append(f"{path} enumerates what is no string")
    return wrong


CHECKERS = {
    "openai": openai,
    "openai-responses": openai_responses,
    "anthropic": anthropic,
    "mcp": mcp,
    "gemini": gemini,
}
STRICT = ("openai", "openai-responses", "anthropic")
SCHEMA_OF = {
    "openai": lambda tool: tool["function"]["parameters"],
    "openai-responses": lambda tool: tool["parameters"],
    "anthropic": lambda tool: tool["input_schema"],
    "mcp": lambda tool: tool["inputSchema"],
    "gemini": lambda tool: tool["parametersJsonSchema"],
}
