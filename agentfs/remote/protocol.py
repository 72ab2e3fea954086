"""Messages between the two sides: lines of ASCII JSON, with values of a closed set of types.

A value is JSON, or an object whose key `$` says what it is: a list for a tuple, else the name of a class and
its fields. Classes are those of results, policies, requests and messages; their type hints say what each
field may be, so that what is decoded has the types that the program expects, whoever sent it.
"""
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# Of what a message has, the types are known only once it is decoded.

import base64
import functools
import json
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, Literal, Union

from agentfs import errors, results
from agentfs.errors import AgentFSError
from agentfs.limits import MIB, Limits
from agentfs.messages import FirstOf, Joined, Message, NextCall, ParameterName, Retry, ToolName
from agentfs.permissions import Allow, Deny, PermissionRequest
from agentfs.policy import DialectOptions, Policy, Protect
from agentfs.results import TEXTS
from agentfs.visible import escape_controls, visible

VERSION = 1  # of the messages; both sides must have the same
MAX_LINE = 1 * MIB
MAX_MESSAGE = 256 * MIB
_MAX_DEPTH = 40
_MORE = b"+"  # begins each line of a message but the last

_RECORDS: dict[str, type[Any]] = {
    each.__name__: each
    for each in (
        *vars(results).values(), PermissionRequest, Allow, Deny, Policy, Protect, Limits, DialectOptions
    )
    if isinstance(each, type) and is_dataclass(each)
}  # fmt: skip
_TUPLES: dict[str, type[Any]] = {each.__name__: each for each in (ToolName, ParameterName, Retry)}
_MESSAGES: dict[str, type[Message]] = {each.__name__: each for each in (Message, Joined, FirstOf)}
# Exceptions besides those of agentfs that a method may raise, each with a text.
_EXCEPTIONS = (TypeError, ValueError, RuntimeError, MemoryError, RecursionError, NotImplementedError)

_Function = Callable[..., Any]
_Test = Callable[[Any], Any]  # whose result counts as true or false


class RemoteFunction:
    """A function of the other side, by the number that it has in the request under way."""

    def __init__(self, number: int) -> None:
        self.number = number


class ProtocolError(Exception):
    """The other side sent what is no message."""


def to_lines(message: Mapping[str, Any]) -> bytes:
    """Return a message, whose values are encoded, as one line or several."""
    text = json.dumps(message, separators=(",", ":")).encode()
    if len(text) < MAX_LINE:
        return text + b"\n"
    step = MAX_LINE - 2
    parts = [text[start : start + step] for start in range(0, len(text), step)]
    return b"".join(_MORE + part + b"\n" for part in parts[:-1]) + parts[-1] + b"\n"


def messages(read_line: Callable[[], bytes]) -> Iterator[dict[str, Any]]:
    """Yield the messages that come in lines, up to their end."""
    kept = bytearray()
    while line := read_line():
        if not line.endswith(b"\n"):
            raise ProtocolError("A line was cut off.")
        if line.startswith(_MORE):
            kept += line[1:-1]
            if len(kept) > MAX_MESSAGE:
                raise ProtocolError(f"A message has over {MAX_MESSAGE:,} bytes.")
            continue
        text, kept = bytes(kept) + line, bytearray()
        try:
            message: Any = json.loads(text.decode("ascii"))
        except (ValueError, RecursionError):
            raise ProtocolError("A line is no JSON in ASCII.") from None
        if not isinstance(message, dict):
            raise ProtocolError("A line is no JSON object.")
        yield message


def encode(value: Any, functions: list[_Function] | None = None) -> Any:
    """Return a value ready for JSON; a function becomes its place in `functions`, to which it is added.

    Raises:
        TypeError: It, or something in it, has no type of the closed set.
    """
    kind = _type_of(value)
    many: Any = value
    name: str = kind.__name__
    if value is None or kind is str or kind is int or kind is bool or kind is float:
        return value
    if kind is list:
        return [encode(each, functions) for each in value]
    if kind is tuple:
        return {"$": [encode(each, functions) for each in value]}
    if isinstance(value, Message) and name in _MESSAGES:
        return {"$": name, "parts": [encode(each, functions) for each in value.parts]}
    record: Any = _RECORDS.get(name)
    if record is not None and kind is record:
        named: dict[str, Any] = {"$": name}
        for field, default in _defaults(record):
            found = getattr(value, field)
            if found is not default and found != default:
                named[field] = encode(found, functions)
        return named
    if _TUPLES.get(name) is kind:
        return {"$": name, **encode(many._asdict(), functions)}
    if kind is bytes:
        return {"$": "bytes", "base64": base64.b64encode(many).decode()}
    if isinstance(value, Mapping):
        items = {key: encode(each, functions) for key, each in many.items()}
        if all(type(key) is str for key in items) and "$" not in items:
            return items
        return {"$": "dict", "items": [[encode(key), each] for key, each in items.items()]}
    if isinstance(value, str):
        return str(value)
    if isinstance(value, tuple):  # a named one
        return encode(tuple(many), functions)
    if isinstance(value, Sequence):
        return [encode(each, functions) for each in many]
    if isinstance(value, RemoteFunction):
        return {"$": "function", "number": value.number}
    if callable(value) and functions is not None:
        functions.append(value)
        return {"$": "function", "number": len(functions) - 1}
    raise TypeError(f"{name} is no type of a message")


def _type_of(value: Any) -> Any:
    return type(value)


def decode(value: Any, function: Callable[[int], _Function] | None = None) -> Any:
    """Return the value that was encoded; raise ProtocolError for anything else.

    `function` returns what is called for a function of the other side; without it none is taken.
    """
    return _decode(value, function, 0)


def _decode(value: Any, function: Callable[[int], _Function] | None, depth: int) -> Any:
    if depth > _MAX_DEPTH:
        raise ProtocolError("A message is nested too deeply.")
    given: Any = value  # as above
    if isinstance(value, list):
        return [_decode(each, function, depth + 1) for each in given]
    if not isinstance(value, dict):
        return value
    name: Any = given.get("$")
    if name is None:
        return {key: _decode(each, function, depth + 1) for key, each in given.items()}
    if isinstance(name, list):
        return tuple(_decode(each, function, depth + 1) for each in name)
    made = {key: _decode(each, function, depth + 1) for key, each in given.items() if key != "$"}
    try:
        return _make(str(name), made, function)
    except (TypeError, ValueError, LookupError, AttributeError) as error:
        if isinstance(error, AgentFSError):  # what a policy or a limit does not take
            raise
        raise ProtocolError(f"A message has a wrong {str(name)[:40]!r}.") from None


def _shown(text: Any) -> Any:
    """Return a text for a model with hidden characters visible, as this side makes them."""
    return escape_controls(text) if type(text) is str and visible(text) != text else text


def _make(name: str, given: dict[str, Any], function: Callable[[int], _Function] | None) -> Any:
    cls: Any = _RECORDS.get(name) or _TUPLES.get(name)
    if cls is not None:
        tests = _tests(cls)
        if not all(tests[key](each) for key, each in given.items()):
            raise TypeError(name)
        return cls(**{key: _shown(each) if key in TEXTS else each for key, each in given.items()})
    if name in _MESSAGES:
        parts = given["parts"]
        if not all(map(_is_part, parts)) or (name == "Joined" and type(parts[0]) is not str):
            raise TypeError(name)
        return _MESSAGES[name](*map(_shown, parts))
    if name == "bytes":
        return base64.b64decode(given["base64"], validate=True)
    if name == "dict":
        return dict(given["items"])
    if name == "function" and function is not None and type(given["number"]) is int:
        return function(given["number"])
    raise TypeError(name)


@functools.cache
def _defaults(cls: Any) -> tuple[tuple[str, Any], ...]:
    """Return the fields that make a record, each with the value that is left out."""

    def default(field: Any) -> Any:
        if field.default_factory is not MISSING:
            return field.default_factory()
        return field.default

    return tuple((field.name, default(field)) for field in fields(cls) if field.init)


@functools.cache
def _tests(cls: Any) -> dict[str, _Test]:
    """Return for each field what tells whether a value is of its type."""
    hints = typing.get_type_hints(cls)
    names = [field.name for field in fields(cls)] if is_dataclass(cls) else list(cls._fields)
    return {name: _test(hints[name]) for name in names}


def _test(hint: Any) -> _Test:
    """Return what tells whether a value is of a type hint."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return lambda _: True
    if origin is Literal:
        return lambda value: type(value) in (str, int, bool) and value in arguments
    if origin in (Union, types.UnionType):
        options = [_test(each) for each in arguments]
        return lambda value: any(option(value) for option in options)
    if (origin is tuple and arguments[1:] == (...,)) or origin in (list, Sequence):
        item = _test(arguments[0])
        kinds = (origin,) if origin in (tuple, list) else (list, tuple)
        return lambda value: isinstance(value, kinds) and all(map(item, value))
    if origin is tuple:
        items = [_test(each) for each in arguments]
        return lambda value: (
            isinstance(value, tuple) and len(value) == len(items) and all(map(_holds, items, value))
        )
    if origin in (dict, Mapping):
        key, item = map(_test, arguments)
        return lambda value: (
            isinstance(value, dict) and all(map(key, value)) and all(map(item, value.values()))
        )
    if origin is Callable:
        return callable
    if typing.is_typeddict(hint):
        members = {name: _test(each) for name, each in typing.get_type_hints(hint).items()}
        return lambda value: (
            isinstance(value, dict)
            and value.keys() == members.keys()
            and all(test(value[name]) for name, test in members.items())
        )
    if hint is None or hint is type(None):
        return lambda value: value is None
    if hint is float:
        return lambda value: type(value) in (int, float)
    if hint in (int, bool, bytes):
        return lambda value: type(value) is hint
    return lambda value: isinstance(value, hint)  # a text may be a Message


def _holds(test: _Test, value: Any) -> Any:
    return test(value)


_is_call = _test(NextCall)


def _is_part(value: Any) -> bool:
    return isinstance(value, (str, ToolName, ParameterName, Retry)) or bool(_is_call(value))


def is_instance(value: Any, hint: Any) -> bool:
    """Return whether a value is of a type hint."""
    return bool(_cached_test(hint)(value))


@functools.cache
def _cached_test(hint: Any) -> _Test:
    return _test(hint)


def encode_error(error: Exception) -> dict[str, Any]:
    """Return an error ready for JSON."""
    if isinstance(error, AgentFSError):
        details = {name: each for name, each in error.details.items() if _is_encodable(each)}
        return {
            "code": error.code,
            "message": encode(error.message),
            "hint": encode(error.hint),
            "details": encode(details),
        }
    known = next((each for each in _EXCEPTIONS if type(error) is each), RuntimeError)
    text = str(error) if type(error) is known else f"{type(error).__name__}: {error}"
    return {"exception": known.__name__, "message": text}


def decode_error(value: Any) -> Exception:
    """Return the error that was encoded; raise ProtocolError for anything else."""
    found: Any = decode(value)
    if not isinstance(found, dict):
        raise ProtocolError("An answer has no error.")
    message, hint, details = found.get("message"), found.get("hint", ""), found.get("details", {})
    leaf = _leaves().get(str(found.get("code")))
    if not isinstance(message, str) or not isinstance(hint, str) or not _is_details(details):
        raise ProtocolError("An answer has a wrong error.")
    if leaf is not None:
        return leaf(_shown(message), hint=_shown(hint), details=details)
    return next((each for each in _EXCEPTIONS if each.__name__ == found.get("exception")), RuntimeError)(
        _shown(str(message))
    )


def _is_details(details: Any) -> bool:
    return is_instance(details, dict[str, Any]) and is_instance(details.get("places", []), Sequence[str])


def _is_encodable(value: Any) -> bool:
    try:
        encode(value)
    except TypeError:
        return False
    return True


@functools.cache
def _leaves() -> dict[str, type[AgentFSError]]:
    classes: list[Any] = [each for each in vars(errors).values() if isinstance(each, type)]
    return {each.code: each for each in classes if issubclass(each, AgentFSError) and each.code}
