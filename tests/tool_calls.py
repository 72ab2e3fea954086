"""Checks of the calls that tools suggest, and calls that are made from schemas."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from jsonschema import Draft202012Validator

from agentfs import Toolset


def accepts(tools: Toolset, name: str, arguments: Any) -> bool:
    """Return True if a call matches the schema of a tool exactly."""
    schemas = {tool["name"]: tool["input_schema"] for tool in tools.schemas("anthropic")}
    return name in schemas and Draft202012Validator(schemas[name]).is_valid(arguments)


def kinds_of(schema: Mapping[str, Any]) -> tuple[set[str | None], dict[str, Any]]:
    """Return the types that a parameter may have, and the schema of the items of its list."""
    parts = [schema, *schema.get("anyOf", ())]
    types = [each.get("type") for each in parts]
    kinds = {kind for each in types for kind in (each if isinstance(each, list) else [each])}
    return kinds, next((each["items"] for each in parts if "items" in each), {})


def calls_for(
    schema: Mapping[str, Any], values: Callable[[str, Any], Iterable[Any]], most: int, only: str | None = None
) -> Iterator[dict[str, Any]]:
    """Yield arguments for a tool: the required ones, then each optional parameter with each value.

    Args:
        schema: The schema of the tool's parameters.
        values: Returns the values of a parameter, from its name and its schema.
        most: How many combinations of required arguments there are at most.
        only: One of the required arguments with which alone optional ones are combined.
    """
    properties, required = schema["properties"], schema.get("required", [])
    choices = [list(values(name, properties[name])) for name in required]
    for several in itertools.islice(itertools.product(*choices), most):
        given = dict(zip(required, several, strict=True))
        yield given
        if only in {None, *map(str, several)} or not required:
            for name in properties.keys() - set(required):
                yield from ({**given, name: value} for value in values(name, properties[name]))
