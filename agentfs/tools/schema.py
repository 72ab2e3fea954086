"""The JSON Schemas of tools, under the rules of each provider's format.

All formats share: a flat, closed object, definitions inline, enums from Literal, defaults in the description
only. The same tools always give the same text.
"""

from collections.abc import Sequence

from agentfs.errors import InvalidArgumentError
from agentfs.providers import FORMATS, STRICT_FORMATS
from agentfs.providers.provider import Schema, SchemaRules, ToolDescription
from agentfs.results import Result
from agentfs.tools.kinds import kind_of, object_schema
from agentfs.tools.spec import Tool

_OUTPUT = SchemaRules(output=True)


def tool_schemas(tools: Sequence[Tool], name: str, *, strict: bool = False) -> list[Schema]:
    """Return the schemas of tools in a format of `FORMATS`; raise `invalid_argument` if there is none."""
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
            parameters = object_schema(tool.parameters, rules)
        except InvalidArgumentError as error:
            raise InvalidArgumentError(
                f"{tool.name} has no strict schema: {error.message}.",
                hint="Leave `strict` out, or this tool.",
            ) from None
        output = _output_schema(tool) if form.has_output else None
        described.append(ToolDescription(tool.name, tool.description, parameters, tool.effect, output))
    return provider.schemas(described, name, strict=strict)


def _output_schema(tool: Tool) -> Schema | None:
    """Return the schema of the data of a result, or None if there is no typed result."""
    if tool.spec.render or not (isinstance(tool.returns, type) and issubclass(tool.returns, Result)):
        return None
    return kind_of(tool.returns).schema(_OUTPUT)
