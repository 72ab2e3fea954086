"""The JSON Schemas of tools, under the rules of each provider's format.

What all share: a flat, closed object, definitions inline, enums from Literal, defaults in the description
only. The same tools always give the same text.
"""

import types
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from typing import Any, Literal, Union, cast, get_args, get_origin, get_type_hints, is_typeddict

from agentfs.errors import InvalidArgumentError
from agentfs.providers import FORMATS, STRICT_FORMATS
from agentfs.providers.provider import Schema, SchemaRules, ToolDescription
from agentfs.results import TEXTS, Result
from agentfs.tools.spec import Tool
from agentfs.tools.types import (
    SCALARS,
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


def tool_schemas(tools: Sequence[Tool], name: str, *, strict: bool = False) -> list[Schema]:
    """Return the schemas of tools in a format of `FORMATS`; raise `invalid_argument` where there is none."""
    provider = FORMATS.get(name)
    if provider is None:
        raise InvalidArgumentError(f"There is no schema format {name!r}; there are {', '.join(FORMATS)}.")
    form = provider.formats[name]
    rules = form.strict_rules if strict else form.rules
    if rules is None:
        raise InvalidArgumentError(
            f"The format {name!r} has no strict mode.",
            hint=f"Leave `strict` out, or use one of {', '.join(STRICT_FORMATS)}.",
        )
    described: list[ToolDescription] = []
    for tool in tools:
        try:
            parameters = _object(tool.parameters, rules)
        except InvalidArgumentError as error:
            raise InvalidArgumentError(
                f"{tool.name} has no strict schema: {error.message}.",
                hint="Leave `strict` out, or this tool.",
            ) from None
        output = _output_schema(tool) if form.has_output else None
        described.append(ToolDescription(tool.name, tool.description, parameters, tool.effect, output))
    return provider.schemas(described, name, strict=strict)


def _object(members: Sequence[Parameter], rules: SchemaRules) -> Schema:
    names = {member.name: member.identifier if rules.identifiers else member.name for member in members}
    schema: Schema = {
        "type": "object",
        "properties": {names[member.name]: _property(member, rules) for member in members},
    }
    required = [names[member.name] for member in members if member.required or rules.every_required]
    if required or rules.every_required:
        schema["required"] = required
    return {**schema, "additionalProperties": False}


def _property(member: Parameter, rules: SchemaRules) -> Schema:
    schema = _value(member.value_kind, rules)
    if member.takes_null or (rules.every_required and not member.required):
        schema = _nullable(schema, rules)
    return {**schema, "description": member.full_description(choices="enum" not in schema)}


def _value(kind: Kind, rules: SchemaRules) -> Schema:
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


def _nullable(schema: Schema, rules: SchemaRules) -> Schema:
    if "anyOf" in schema:
        return {"anyOf": [*schema["anyOf"], {"type": "null"}]}
    if schema.keys() == {"type"}:
        return {"type": [schema["type"], "null"]}
    if not schema:
        return schema
    if rules.unions:
        return {"anyOf": [schema, {"type": "null"}]}
    if "enum" in schema:  # an enumeration would have to contain null, which is no string
        schema = {"type": schema["type"]}
    return {**schema, "type": [schema["type"], "null"]}


def _output_schema(tool: Tool) -> Schema | None:
    """Return the schema of the data of a result, or None where there is no typed result."""
    if tool.spec.render or not (isinstance(tool.returns, type) and issubclass(tool.returns, Result)):
        return None
    return _class_schema(tool.returns)


def _class_schema(cls: type[Any]) -> Schema:
    hints = get_type_hints(cls)
    names = list(hints) if is_typeddict(cls) else [each.name for each in fields(cls)]
    names = [name for name in names if not (name in TEXTS and issubclass(cls, Result))]
    properties = {name: _hint_schema(hints[name]) for name in names}
    return {"type": "object", "properties": properties, "required": names}


def _hint_schema(hint: Any) -> Schema:
    if hint in SCALARS:
        return {"type": SCALARS[hint].type}
    if hint is types.NoneType:
        return {"type": "null"}
    origin, args = get_origin(hint), get_args(hint)
    if origin is Literal:
        return {"enum": list(args)}
    if origin in (Union, types.UnionType):
        return {"anyOf": [_hint_schema(arg) for arg in args]}
    if origin is tuple and args[-1] is not Ellipsis:
        return {"type": "array", "items": _hint_schema(args[0]), "minItems": len(args), "maxItems": len(args)}
    if origin in (list, tuple):
        return {"type": "array", "items": _hint_schema(args[0])}
    if origin is dict:
        return {"type": "object", "additionalProperties": _hint_schema(args[1])}
    if is_typeddict(hint) or (isinstance(hint, type) and is_dataclass(hint)):
        return _class_schema(cast("type[Any]", hint))
    return {}
