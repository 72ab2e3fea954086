"""The schema of what a method returns as data, for the clients that check structured answers."""

import types
from dataclasses import fields, is_dataclass
from typing import Any, Literal, Union, cast, get_args, get_origin, get_type_hints, is_typeddict

from agentfs.results import TEXTS, Result

_BASIC: dict[Any, dict[str, Any]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    types.NoneType: {"type": "null"},
}


def output_schema(returns: Any) -> dict[str, Any] | None:
    """Return the JSON Schema of the data of a result, or None where there is no typed result.

    Args:
        returns: The hint of what a callable returns.
    """
    if not (isinstance(returns, type) and issubclass(returns, Result)):
        return None
    return _object(returns)


def _object(cls: type[Any]) -> dict[str, Any]:
    hints = get_type_hints(cls)
    names = list(hints) if is_typeddict(cls) else [f.name for f in fields(cls)]
    names = [name for name in names if not (name in TEXTS and issubclass(cls, Result))]
    return {"type": "object", "properties": {name: _schema(hints[name]) for name in names}, "required": names}


def _schema(hint: Any) -> dict[str, Any]:
    if hint in _BASIC:
        return dict(_BASIC[hint])
    origin, args = get_origin(hint), get_args(hint)
    if origin is Literal:
        return {"enum": list(args)}
    if origin in (Union, types.UnionType):
        return {"anyOf": [_schema(arg) for arg in args]}
    if origin is tuple:
        items = _schema(args[0])
        if args[-1] is Ellipsis:
            return {"type": "array", "items": items}
        return {"type": "array", "items": items, "minItems": len(args), "maxItems": len(args)}
    if origin is list:
        return {"type": "array", "items": _schema(args[0])}
    if origin is dict:
        return {"type": "object", "additionalProperties": _schema(args[1])}
    if is_typeddict(hint) or (isinstance(hint, type) and is_dataclass(hint)):
        return _object(cast("type[Any]", hint))
    return {}
