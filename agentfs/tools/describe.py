"""How values and kinds are worded in a message to a model."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from agentfs.tools.types import EnumOf, Kind, ListOf, MapOf, OptionalOf, Parameter, Record, Scalar, UnionOf

LARGEST = 2**63 - 1
_SCALARS = {"string": "a string", "integer": "an integer", "number": "a number", "boolean": "true or false"}


def shown(value: Any) -> str:
    """Return a value as an error may quote it: short, on one line, ASCII.

    Args:
        value: Whatever was sent.
    """
    match value:
        case None | bool():
            return json.dumps(value)
        case str():
            return json.dumps(value if len(value) <= 60 else f"{value[:57]}...")
        case int() if abs(value) > LARGEST:
            return "an integer of more than 64 bits"
        case int() | float():
            return repr(value)
        case Mapping():
            return "an object"
        case list() | tuple():
            return "a list"
        case _:
            return f"a {type(value).__name__}"


def expected(kind: Kind) -> str:
    """Return what a kind takes, as an error says it.

    Args:
        kind: The kind.
    """
    match kind:
        case Scalar():
            return _SCALARS[kind.type]
        case EnumOf():
            return f"one of {', '.join(json.dumps(value) for value in kind.values)}"
        case ListOf():
            return f"a list, each item {expected(kind.item)}"
        case Record():
            return f"an object with {names_of(kind.members)}"
        case MapOf():
            return "an object"
        case UnionOf():
            return " or ".join(expected(option) for option in kind.options)
        case OptionalOf():
            return f"{expected(kind.kind)} or null"
        case _:
            return "a JSON value"


def names_of(members: Sequence[Parameter]) -> str:
    """Return the names of parameters or members, the required ones marked.

    Args:
        members: The parameters or members.
    """
    return ", ".join(f"{member.name} (required)" if member.required else member.name for member in members)
