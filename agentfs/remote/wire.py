"""Messages of `connect` in both directions: lines of ASCII JSON, with values of a closed set of types.

A value is plain JSON, or an object with the key `$`. `{"$": [1, 2]}` is a tuple. `{"$": "Match", …}` is an
object of that class, with the fields that differ from their defaults. A list in a field whose hint is a tuple
is that tuple. Type hints of the class check each field, so a decoded value has the types that the program
expects, whoever sent it.
"""
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# The types of a message's values are known only after it is decoded.

import base64
import functools
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from os import PathLike, fspath
from typing import Any, cast, get_type_hints

from agentfs import errors, limits, permissions, policy, results
from agentfs.arguments.hints import kind_of
from agentfs.arguments.kinds import InstanceOf
from agentfs.arguments.parameters import ArgumentReader, Kind
from agentfs.base import advice
from agentfs.base.advice import Advice, Joined
from agentfs.base.visible import escape_controls
from agentfs.editing import change_options
from agentfs.errors import AgentFSError, InvalidArgumentError, TooLargeError
from agentfs.limits import MIB
from agentfs.reading import page
from agentfs.search import options

MAX_LINE = 80 * MIB
MAX_MEMORY = 256 * MIB  # of a line and its values
_MAX_DEPTH = 40
_MAX_ADVICE = 1 * MIB  # characters of the parts of an advice that are copied into its text once more
# The most bytes of memory that a token of JSON takes once it is decoded, by its first byte.
_MEMORY_OF = {b"{": 500, b"[": 200, b":": 70, b",": 60, b'"': 50}
_TOKENS = re.compile(rb'"[^"]*"|[{\[:,]')
# Fields with text for people and models, in which control characters are made visible.
_SHOWN = {results.Result: ("text", "notes"), permissions.PermissionRequest: ("tool", "paths", "diff")}

CLASSES: dict[str, Any] = {
    name: each
    for module in (results, limits, policy, permissions, advice, page, change_options, options)
    for name, each in vars(module).items()
    if isinstance(each, type)
    and each.__module__ == module.__name__
    and (is_dataclass(each) or issubclass(each, Advice) or hasattr(each, "_fields"))
}
_RECORDS = {each for each in CLASSES.values() if is_dataclass(each)}
_INSTANCES = {each: InstanceOf(each) for each in (*CLASSES.values(), bytes, Callable, PathLike, type(None))}
_PLAIN = {str, int, float, bool, type(None)}
_LEAVES: dict[str, type[AgentFSError]] = {
    each.code: each
    for each in vars(errors).values()
    if isinstance(each, type) and issubclass(each, AgentFSError) and vars(each).get("code")
}

Function = Callable[..., Any]


class ProtocolError(InvalidArgumentError):
    """The other side sent an invalid message."""


def to_line(message: Mapping[str, Any]) -> bytes:
    """Return an encoded message as a line; raise `too_large` if it is over a limit."""
    line = json.dumps(message, separators=(",", ":")).encode() + b"\n"
    if len(line) > MAX_LINE or memory_of(line) > MAX_MEMORY:
        raise TooLargeError(
            f"The call or its result takes {len(line):,} B, more than a message may have.",
            hint="Ask for less at a time.",
        )
    return line


def parse_line(line: bytes) -> dict[str, Any]:
    """Return the message of a line."""
    if not line.endswith(b"\n"):
        raise ProtocolError("A line was cut off, or is too long.")
    if memory_of(line) > MAX_MEMORY:
        raise ProtocolError("A line takes too much memory.")
    try:
        message: Any = json.loads(line.decode("ascii"))
    except (ValueError, RecursionError):
        raise ProtocolError("A line is not JSON in ASCII.") from None
    if not isinstance(message, dict):
        raise ProtocolError("A line is not a JSON object.")
    return cast("dict[str, Any]", message)


def memory_of(line: bytes) -> int:
    """Return the most bytes of memory that a line and its decoded values take, if that may matter."""
    if len(line) * 200 <= MAX_MEMORY:
        return 0
    # Each character takes as many bytes as the widest one of its string: 1, 2 or 4.
    plain = line.replace(b"\\\\", b"").replace(b'\\"', b"")
    width = 4 if re.search(rb"\\u[dD]", plain) else 2 if b"\\u" in plain else 1
    memory = 2 * len(line) + width * (len(line) - 5 * plain.count(b"\\u"))
    for token in _TOKENS.finditer(plain):
        memory += _MEMORY_OF[token[0][:1]]
        if memory > MAX_MEMORY:
            break
    return memory


def to_wire(value: Any, functions: list[Function] | None = None, *, in_field: bool = False) -> Any:
    """Return a value ready for JSON; a function is appended to `functions` and becomes its index.

    Raises:
        TypeError: The value, or a value inside it, has a type that no message can have.
    """
    kind: Any = type(value)
    name: str = kind.__name__
    if kind in _PLAIN:
        return value
    inner = functools.partial(to_wire, functions=functions, in_field=in_field)
    if in_field and kind in (tuple, list):
        kinds = {*map(type, value)} if len(value) > 1 else set()
        return _rows(value, *kinds) if len(kinds) == 1 and kinds < _RECORDS else [*map(inner, value)]
    if isinstance(value, Advice):
        return {"$": name, "parts": [*map(inner, value.parts)]}
    if CLASSES.get(name) is kind:
        given = ((key, default, getattr(value, key)) for key, default in _defaults(kind).items())
        changed = {key: found for key, default, found in given if found is not default and found != default}
        return {"$": name, **{key: to_wire(each, functions, in_field=True) for key, each in changed.items()}}
    if kind is bytes:
        return {"$": "bytes", "base64": base64.b64encode(value).decode()}
    if isinstance(value, Mapping) and "$" not in value:
        return {str(key): inner(each) for key, each in value.items()}
    if isinstance(value, (str, int, float)):  # JSON has the text or number of an enumeration's member
        return value
    if isinstance(value, Sequence):
        items = [*map(inner, value)]
        return {"$": items} if isinstance(value, tuple) and not in_field else items
    if isinstance(value, PathLike):
        return fspath(cast("PathLike[str]", value))
    if callable(value) and functions is not None:
        functions.append(value)
        return {"$": "function", "number": len(functions) - 1}
    raise TypeError(f"a value of type {name} cannot be sent")


def _rows(objects: Sequence[Any], cls: Any) -> dict[str, Any]:
    """Return many objects of a class, with the names of their fields only once."""
    names = [
        name
        for name, default in _defaults(cls).items()
        if any(getattr(each, name) != default for each in objects)
    ]
    rows = [[to_wire(getattr(each, name), in_field=True) for name in names] for each in objects]
    return {"$": "rows", "of": cls.__name__, "names": names, "rows": rows}


def from_wire(value: Any, function: Callable[[int], Function] | None = None, depth: int = 0) -> Any:
    """Return the value that was encoded; raise ProtocolError for anything else.

    Args:
        value: The encoded value.
        function: Returns the function of a number; without it, a message cannot have functions.
        depth: How many values enclose this one.
    """
    if depth > _MAX_DEPTH:
        raise ProtocolError("A message is nested too deeply.")
    if isinstance(value, list):
        return [each if type(each) in _PLAIN else from_wire(each, function, depth + 1) for each in value]
    if not isinstance(value, dict):
        return value
    name = value.get("$")
    if isinstance(name, list):
        return tuple(from_wire(each, function, depth + 1) for each in name)
    try:
        if name == "rows":
            names, rows = value["names"], value["rows"]
            for index, row in enumerate(rows):  # in place, so that each list is freed when its object is made
                given = dict(zip(names, from_wire(row, function, depth + 2), strict=True))
                rows[index] = _made(value["of"], given, function)
            return rows
        given = {key: from_wire(each, function, depth + 1) for key, each in value.items() if key != "$"}
        return given if name is None else _made(str(name), given, function)
    except AgentFSError:  # a value that a policy or a limit refuses
        raise
    except (TypeError, ValueError, LookupError, AttributeError):
        raise ProtocolError(f"A message has an invalid {str(name)[:40]!r}.") from None


def _made(name: str, given: dict[str, Any], function: Callable[[int], Function] | None) -> Any:
    if name == "bytes":
        return base64.b64decode(given["base64"], validate=True)
    if name == "function" and function is not None and type(given["number"]) is int:
        return function(given["number"])
    cls: Any = CLASSES[name]
    if issubclass(cls, Advice):
        parts = given["parts"]
        inner = sum(len(each) for each in parts if isinstance(each, Advice))
        separator = parts[0] if cls is Joined else ""
        if not is_instance(parts, list[advice.Part]) or inner + len(separator) * len(parts) > _MAX_ADVICE:
            raise TypeError(name)
        made = cls(*map(shown, parts))
        if shown(str(made)) != made:
            raise TypeError(name)
        return made
    reader, kinds = ArgumentReader(), _kinds(cls)
    read = {key: kinds[key].read(each, key, reader) for key, each in given.items()}
    if reader.problems or reader.coercions:
        raise TypeError(name)
    texts = next((names for base, names in _SHOWN.items() if issubclass(cls, base)), ())
    return cls(**{key: shown(each) if key in texts else each for key, each in read.items()})


def shown(value: Any) -> Any:
    """Return a value with the control characters of its texts made visible."""
    if type(value) is str:
        return value if value.isascii() and value.isprintable() else escape_controls(value)
    if type(value) in (tuple, list):
        return type(value)(map(shown, value))
    return value


@functools.cache
def _defaults(cls: Any) -> dict[str, Any]:
    """Return the default of each field of a dataclass or a named tuple; MISSING for none."""
    if not is_dataclass(cls):
        return {name: cls._field_defaults.get(name, MISSING) for name in cls._fields}
    made = {each.name: each.default_factory for each in fields(cls) if each.default_factory is not MISSING}
    return {each.name: made[each.name]() if each.name in made else each.default for each in fields(cls)}


@functools.cache
def _kinds(cls: Any) -> dict[str, Kind]:
    """Return the kinds of the fields of a dataclass or a named tuple."""
    hints = get_type_hints(cls)
    return {name: kind_of(hints[name], _INSTANCES) for name in _defaults(cls)}


def is_instance(value: Any, hint: Any) -> bool:
    """Return True if a value fits a type hint."""
    reader = ArgumentReader()
    kind_of(hint or type(None), _INSTANCES).read(value, "", reader)
    return not (reader.problems or reader.coercions)


def error_to_wire(error: Exception) -> dict[str, Any]:
    """Return an error ready for JSON."""
    if not isinstance(error, AgentFSError):
        return {"message": f"{type(error).__name__}: {error}"}
    details = json.loads(json.dumps(error.details, default=str))
    texts = {"message": to_wire(error.message), "hint": to_wire(error.hint)}
    return {"code": error.code, **texts, "details": details}


def error_from_wire(value: Any) -> Exception:
    """Return the error that was encoded; raise ProtocolError for anything else."""
    found: dict[str, Any] = value if isinstance(value, dict) else {}
    message, hint = shown(from_wire(found.get("message"))), shown(from_wire(found.get("hint", "")))
    details = found.get("details", {})
    if not (
        isinstance(message, str)
        and isinstance(hint, str)
        and is_instance(details, dict[str, Any])
        and is_instance(details.get("places", []), list[str])
    ):
        raise ProtocolError("A message has an invalid error.")
    details.pop("suggested_calls", None)  # made again from the hint
    details |= {name: shown(details[name]) for name in {"places"} & details.keys()}
    leaf = _LEAVES.get(str(found.get("code")))
    return RuntimeError(message) if leaf is None else leaf(message, hint=hint, details=details)
