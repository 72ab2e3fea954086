"""Messages between the two sides: lines of ASCII JSON, with values of a closed set of types.

A value is JSON, or an object whose key `$` says what it is: a list for a tuple, else the name of a class and
its fields. Classes are those of results, policies, requests and messages; their type hints say what each
field may be, so that what is decoded has the types that the program expects, whoever sent it.
"""
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# Of what a message has, the types are known only once it is decoded.

import base64
import functools
import inspect
import json
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from os import PathLike, fspath
from typing import Any, Literal, Union

from agentfs import errors, results
from agentfs.errors import AgentFSError, TooLargeError, UnsupportedSystemError
from agentfs.limits import MIB, Limits
from agentfs.messages import FirstOf, Joined, Message, NextCall, ParameterName, Part, Retry, ToolName
from agentfs.permissions import Allow, Deny, PermissionRequest
from agentfs.policy import DialectOptions, Policy, Protect
from agentfs.results import TEXTS
from agentfs.tools.checking import ArgumentChecker
from agentfs.tools.declaration import declared_tools
from agentfs.tools.types import SCALAR_TESTS
from agentfs.visible import escape_controls, visible
from agentfs.workspace import Workspace

VERSION = 1  # of the messages; both sides must have the same
MAX_LINE = 1 * MIB
_LINE = MIB // 16  # of what is sent: each is a sign of life on a slow way
MAX_MESSAGE = 256 * MIB
_MAX_DEPTH = 40
_TEXTS = TEXTS | {"notes", "applied_via"}  # fields of results that a model is shown
_MORE, _LAST = b"+", b"="  # begin each line of a message that has several
_MAX_SEPARATOR = 10  # characters of a separator, which is repeated for each part

_CLASSES: dict[str, type[Any]] = {
    each.__name__: each
    for each in (
        *(each for each in vars(results).values() if isinstance(each, type) and is_dataclass(each)),
        *(PermissionRequest, Allow, Deny, Policy, Protect, Limits, DialectOptions),
        *(ToolName, ParameterName, Retry, Message, Joined, FirstOf),
    )
}
_METHODS = declared_tools(Workspace)
# Exceptions besides those of agentfs that a method may raise, each with a text.
_EXCEPTIONS = (TypeError, ValueError, RuntimeError, MemoryError, RecursionError, NotImplementedError)

_Function = Callable[..., Any]
_Test = Callable[[Any], bool]


class RemoteFunction:
    """A function of the other side, by the number that it has in the request under way."""

    def __init__(self, number: int) -> None:
        self.number = number


class ProtocolError(Exception):
    """The other side sent what is no message."""


def to_lines(message: Mapping[str, Any]) -> bytes:
    """Return a message, whose values are encoded, as one line or several; `too_large` for too long a one."""
    text = json.dumps(message, separators=(",", ":")).encode()
    if len(text) > MAX_MESSAGE:
        raise TooLargeError(
            f"A call or its result has {len(text):,} bytes as a message, of at most {MAX_MESSAGE:,}.",
            hint="Ask for less at a time.",
        )
    if len(text) <= _LINE:
        return text + b"\n"
    *parts, last = (text[start : start + _LINE] for start in range(0, len(text), _LINE))
    return b"".join(_MORE + part + b"\n" for part in parts) + _LAST + last + b"\n"


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
        text, kept = bytes(kept) + line.removeprefix(_LAST), bytearray()
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
    kind: Any = type(value)
    name: str = kind.__name__
    many: Any = value
    if value is None or kind in (str, int, bool, float):
        return value
    if kind is list:
        return [encode(each, functions) for each in many]
    if kind is tuple:
        return {"$": [encode(each, functions) for each in many]}
    if _CLASSES.get(name) is kind:
        given = {"parts": [*many.parts]} if isinstance(value, Message) else _given(many, kind)
        return {"$": name, **{field: encode(each, functions) for field, each in given.items()}}
    if kind is bytes:
        return {"$": "bytes", "base64": base64.b64encode(many).decode()}
    if isinstance(value, Mapping):
        items = {key: encode(each, functions) for key, each in many.items()}
        if all(type(key) is str for key in items) and "$" not in items:
            return items
        return {"$": "dict", "items": [[encode(key), each] for key, each in items.items()]}
    if isinstance(value, str):  # such as a member of an enumeration, whose `str` may be its name
        return str.__str__(value)
    if isinstance(value, (int, float)):
        return int(value) if isinstance(value, int) else float(value)
    if isinstance(value, tuple):  # a named one
        return encode(tuple(many), functions)
    if isinstance(value, Sequence):
        return [encode(each, functions) for each in many]
    if isinstance(value, PathLike):  # in the answer of a permission callback
        return encode(fspath(many))
    if isinstance(value, RemoteFunction):
        return {"$": "function", "number": value.number}
    if callable(value) and functions is not None:
        functions.append(value)
        return {"$": "function", "number": len(functions) - 1}
    raise TypeError(f"{name} is no type of a message")


def decode(value: Any, function: Callable[[int], _Function] | None = None) -> Any:
    """Return the value that was encoded; raise ProtocolError for anything else.

    `function` returns what is called for a function of the other side; without it none is taken.
    """
    return _decode(value, function, 0)


def _decode(value: Any, function: Callable[[int], _Function] | None, depth: int) -> Any:
    if depth > _MAX_DEPTH:
        raise ProtocolError("A message is nested too deeply.")
    given: Any = value
    if isinstance(value, list):
        return [_decode(each, function, depth + 1) for each in given]
    if not isinstance(value, dict):
        # A method checks its arguments itself.
        if function is None and type(value) in (int, float) and not SCALAR_TESTS["number"](value):
            raise ProtocolError("A message has a number that is not finite, or of more than 64 bits.")
        return value
    name: Any = given.get("$")
    if isinstance(name, list):
        return tuple(_decode(each, function, depth + 1) for each in name)
    made = {key: _decode(each, function, depth + 1) for key, each in given.items() if key != "$"}
    if name is None:
        return made
    try:
        return _make(str(name), made, function)
    except (TypeError, ValueError, LookupError, AttributeError) as error:
        if isinstance(error, AgentFSError):  # what a policy or a limit does not take
            raise
        raise ProtocolError(f"A message has a wrong {str(name)[:40]!r}.") from None


def shown(text: Any) -> Any:
    """Return a text for a model, or a tuple of them, with its hidden characters visible."""
    if type(text) is tuple:
        return tuple(map(shown, text))
    return escape_controls(text) if type(text) is str and visible(text) != text else text


def _make(name: str, given: dict[str, Any], function: Callable[[int], _Function] | None) -> Any:
    cls: Any = _CLASSES.get(name)
    if cls is None:
        if name == "bytes":
            return base64.b64decode(given["base64"], validate=True)
        if name == "dict":
            return dict(given["items"])
        if name == "function" and function is not None and type(given["number"]) is int:
            return function(given["number"])
        raise TypeError(name)
    if issubclass(cls, Message):
        parts = given["parts"]
        separator = parts[0] if cls is Joined else ""
        if not (
            is_instance(parts, list[Part]) and type(separator) is str and len(separator) <= _MAX_SEPARATOR
        ):
            raise TypeError(name)
        return cls(*map(shown, parts))
    tests = _tests(cls)
    if not all(tests[key](each) for key, each in given.items()) or (cls is Retry and not _is_json(given)):
        raise TypeError(name)
    texts = _TEXTS if issubclass(cls, results.Result) else ()
    return cls(**{key: shown(each) if key in texts else each for key, each in given.items()})


def _given(value: Any, cls: Any) -> dict[str, Any]:
    """Return the fields that make a dataclass or a named tuple, but those that are as by default."""
    given: dict[str, Any] = {}
    for name, default in _defaults(cls).items():
        found = getattr(value, name)
        if found is not default and found != default:
            given[name] = found
    return given


@functools.cache
def _defaults(cls: Any) -> dict[str, Any]:
    if not is_dataclass(cls):
        return {name: cls._field_defaults.get(name, MISSING) for name in cls._fields}
    return {
        each.name: each.default if each.default_factory is MISSING else each.default_factory()
        for each in fields(cls)
        if each.init
    }


@functools.cache
def _tests(cls: Any) -> dict[str, _Test]:
    hints = typing.get_type_hints(cls)
    return {name: _test(hints[name]) for name in _defaults(cls)}


def is_instance(value: Any, hint: Any) -> bool:
    """Return whether a value is of a type hint."""
    return _test(hint)(value)


@functools.cache
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
            isinstance(value, tuple)
            and len(value) == len(items)
            and all(test(each) for test, each in zip(items, value, strict=True))
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
            and (hint is not NextCall or _can_be_made(**value))
        )
    if hint is float:
        return lambda value: type(value) in (int, float)
    if hint in (int, bool, bytes):
        return lambda value: type(value) is hint
    kind = type(None) if hint is None else hint
    return lambda value: isinstance(value, kind)  # a text may be a Message


def _can_be_made(name: str, arguments: dict[str, Any]) -> bool:
    """Return whether a call of a method is one that the tools at hand can be asked for."""
    if name not in _METHODS or not _is_json(arguments):
        return False
    signature, checker = _parameters(name)
    try:
        signature.bind(None, **arguments)
        checker.check((), {**arguments})
    except (TypeError, AgentFSError):
        return False
    return True


@functools.cache
def _parameters(name: str) -> tuple[inspect.Signature, ArgumentChecker]:
    method = getattr(Workspace, name)
    return inspect.signature(method), ArgumentChecker(method)


def _is_json(value: Any) -> bool:
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        return False
    return True


def encode_error(error: Exception) -> dict[str, Any]:
    """Return an error ready for JSON."""
    if isinstance(error, AgentFSError):
        details = {name: each for name, each in error.details.items() if _is_json(each)}
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
    if not isinstance(message, str) or not isinstance(hint, str) or not _is_details(details):
        raise ProtocolError("An answer has a wrong error.")
    message, hint, code = shown(message), shown(hint), found.get("code")
    if isinstance(code, str):  # an unknown one is that of a newer version
        leaf = _leaves().get(code)
        return (
            UnsupportedSystemError(message, hint=hint, details={**details, "code": code})
            if leaf is None
            else leaf(message, hint=hint, details=details)
        )
    known = (each for each in _EXCEPTIONS if each.__name__ == found.get("exception"))
    return next(known, RuntimeError)(message)


def _is_details(details: Any) -> bool:
    places = details.get("places", []) if isinstance(details, dict) else None
    return is_instance(details, dict[str, Any]) and is_instance(places, Sequence[str]) and _is_json(details)


@functools.cache
def _leaves() -> dict[str, type[AgentFSError]]:
    classes: list[Any] = [each for each in vars(errors).values() if isinstance(each, type)]
    return {each.code: each for each in classes if issubclass(each, AgentFSError) and each.code}
