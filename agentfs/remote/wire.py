"""Messages of `connect` in both directions: lines of ASCII JSON, with values of a closed set of types.

A value is plain JSON, or an object whose key `$` names its type. `{"$": "Match", "path": …}` has the fields
that differ from their defaults. A list in a field whose hint is a tuple is that tuple. Objects are made while
a line is parsed, and each field is checked against its type hint, whoever sent it.
"""
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# The types of a message's values are known only after it is decoded.

import base64
import functools
import inspect
import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, is_dataclass
from os import PathLike, fspath
from types import ModuleType
from typing import Any, get_type_hints

from agentfs import errors, limits, permissions, policy, results
from agentfs.arguments.hints import kind_of
from agentfs.arguments.kinds import InstanceOf
from agentfs.arguments.parameters import ArgumentReader, Kind
from agentfs.base import advice
from agentfs.base.advice import Advice, Joined
from agentfs.editing import change_options
from agentfs.errors import AgentFSError, InvalidArgumentError, TooLargeError
from agentfs.limits import MIB
from agentfs.reading import page
from agentfs.search import options

MAX_LINE = 80 * MIB
MAX_MEMORY = 256 * MIB  # of a line and its values
_MAX_COPIED = 1 * MIB  # characters that the texts of a line may have twice, as a part and in the whole
# The most bytes of memory that a token of JSON takes once it is decoded, by its first byte.
_MEMORY_OF = {b"{": 500, b"[": 100, b":": 40, b",": 50, b'"': 50}

_TOKENS, _ASTRAL = re.compile(rb'"[^"]*"|[{\[:,]'), re.compile(rb"\\u[dD]")
_SCALARS = {str, int, float, bool, type(None)}

Functions = list[Callable[..., Any]]
call_function = ContextVar[Callable[[int, Sequence[Any]], Any]]("agentfs_call_function")


@dataclass(frozen=True)
class Function:
    """A function of the program at the other side, by its number."""

    number: int

    def __call__(self, *arguments: Any) -> Any:
        """Call the function as a part of the current call."""
        return call_function.get()(self.number, arguments)


def _classes(*modules: ModuleType) -> dict[str, Any]:
    return {
        name: each
        for module in modules
        for name, each in vars(module).items()
        if isinstance(each, type)
        and each.__module__ == module.__name__
        and (is_dataclass(each) or issubclass(each, Advice) or hasattr(each, "_fields"))
    }


TO_CLIENT = _classes(results, limits, policy, permissions, advice)  # the classes of messages to the client
CLASSES = {"Function": Function, **TO_CLIENT, **_classes(page, change_options, options)}
_INSTANCES = {each: InstanceOf(each) for each in (*CLASSES.values(), bytes, Callable, PathLike, type(None))}
_LEAVES: dict[str, type[AgentFSError]] = {
    each.code: each
    for each in vars(errors).values()
    if isinstance(each, type) and issubclass(each, AgentFSError) and vars(each).get("code")
}


class ProtocolError(InvalidArgumentError):
    """The other side sent an invalid message."""


def to_line(message: Mapping[str, Any], functions: Functions | None = None) -> bytes:
    """Return a message as a line; raise `too_large` if it is over a limit. For `functions` see `to_text`."""
    line = to_text(message, functions).encode() + b"\n"
    if len(line) > MAX_LINE or memory_of(line) > MAX_MEMORY:
        raise TooLargeError(
            f"The call or its result takes {len(line):,} B, more than a message may have.",
            hint="Ask for less at a time.",
        )
    return line


def to_text(value: Any, functions: Functions | None = None) -> str:
    """Return a value as JSON.

    Args:
        value: The value.
        functions: Each function in the value is appended, and sent as its index. Without it, a value cannot
            have functions.

    Raises:
        TypeError: The value, or a value inside it, has a type that no message can have.
    """
    return json.dumps(_plain(value, functions), separators=(",", ":"))


def _plain(value: Any, functions: Functions | None, *, in_field: bool = False) -> Any:
    kind: Any = value.__class__
    if kind in _SCALARS:
        return value
    name: str = kind.__name__
    inner = functools.partial(_plain, functions=functions, in_field=in_field)
    if isinstance(value, Advice):
        return {"$": name, "parts": [*map(inner, value.parts)]}
    if CLASSES.get(name) is kind:
        given = ((key, default, getattr(value, key)) for key, (default, _) in _fields(kind).items())
        changed = {key: found for key, default, found in given if found is not default and found != default}
        return {"$": name} | {key: _plain(each, functions, in_field=True) for key, each in changed.items()}
    if isinstance(value, (str, int, float)):  # JSON has the text or number of an enumeration's member
        return value
    if isinstance(value, bytes):
        return {"$": "bytes", "base64": base64.b64encode(value).decode()}
    if isinstance(value, Exception):
        return _plain_error(value)
    if isinstance(value, Mapping) and "$" not in value:
        return {str(key): inner(each) for key, each in value.items()}
    if isinstance(value, Sequence):
        items = [*map(inner, value)]
        return {"$": "tuple", "items": items} if isinstance(value, tuple) and not in_field else items
    if isinstance(value, PathLike):
        return inner(fspath(value))
    if callable(value) and functions is not None:
        functions.append(value)
        return {"$": "Function", "number": len(functions) - 1}
    raise TypeError(f"a value of type {name} cannot be sent")


def _plain_error(error: Exception) -> dict[str, Any]:
    if not isinstance(error, AgentFSError):
        return {"$": "error", "message": f"{type(error).__name__}: {error}"}
    texts = {"message": _plain(error.message, None), "hint": _plain(error.hint, None)}
    details = json.loads(json.dumps(error.details, default=str))
    return {"$": "error", "code": error.code, **texts, "details": details}


def from_line(line: bytes, classes: Mapping[str, Any] = CLASSES) -> dict[str, Any]:
    """Return the message of a line; raise ProtocolError if it is invalid, or has objects of other classes."""
    if not line.endswith(b"\n"):
        raise ProtocolError("A line was cut off, or is too long.")
    if memory_of(line) > MAX_MEMORY:
        raise ProtocolError("A line takes too much memory.")
    message = from_text(line.decode("ascii", "replace"), classes)
    if not isinstance(message, dict):
        raise ProtocolError("A line is not a JSON object.")
    return message


def from_text(text: str, classes: Mapping[str, Any] = CLASSES) -> Any:
    """Return the value of a JSON text, like `from_line`."""
    try:
        return json.loads(text, object_hook=_Decoder(classes).made)
    except ProtocolError:
        raise
    except (AgentFSError, TypeError, ValueError, LookupError, AttributeError, RecursionError):
        raise ProtocolError(f"This is not a message of agentfs: {text[:100]!a}.") from None


def memory_of(line: bytes) -> int:
    """Return the most bytes of memory that a line and its decoded values take, if that may matter."""
    if len(line) * 200 <= MAX_MEMORY:
        return 0
    plain = line.replace(b"\\\\", b"").replace(b'\\"', b"")  # each quote begins or ends a string
    memory, has_escapes = 3 * len(line), b"\\u" in plain
    for token in _TOKENS.finditer(plain):
        text = token[0]
        memory += _MEMORY_OF[text[:1]]
        if has_escapes and b"\\u" in text:  # 2 or 4 bytes for each character of such a string
            memory += len(text) * (3 if _ASTRAL.search(text) else 1)
        if memory > MAX_MEMORY:
            break
    return memory


class _Decoder:
    """Makes the objects of one text."""

    def __init__(self, classes: Mapping[str, Any]) -> None:
        self._classes, self._left = classes, _MAX_COPIED

    def made(self, given: dict[str, Any]) -> Any:
        """Return the object of a JSON object."""
        name = given.pop("$", None)
        if name is None:
            return given
        if name == "tuple":
            return tuple(given["items"])
        if name == "bytes":
            return base64.b64decode(given["base64"], validate=True)
        if name == "error":
            return _error(**given)
        cls = self._classes[name]
        if issubclass(cls, Advice):
            return self._advice(cls, given["parts"])
        reader, known = ArgumentReader(), _fields(cls)
        read = {key: known[key][1].read(each, key, reader) for key, each in given.items()}
        if reader.problems or reader.coercions:
            raise TypeError(name)
        return cls(**read)

    def _advice(self, cls: type[Advice], parts: Any) -> Advice:
        separator = parts[0] if cls is Joined else ""
        self._left -= sum(len(each) for each in parts if isinstance(each, Advice))
        self._left -= len(separator) * len(parts)
        if self._left < 0 or not is_instance(parts, list[advice.Part]):
            raise ProtocolError("A text has invalid parts.")
        return cls(*parts)


def _error(message: str, code: str = "", hint: str = "", details: Any = None) -> Exception:
    details = {} if details is None else details
    if not (is_instance([message, hint], list[str]) and is_instance(details, dict[str, Any])):
        raise ProtocolError("An error is invalid.")
    details.pop("suggested_calls", None)  # made again from the hint
    return _LEAVES[code](message, hint=hint, details=details) if code else RuntimeError(message)


def is_instance(value: Any, hint: Any) -> bool:
    """Return True if a value fits a type hint."""
    reader = ArgumentReader()
    _kind(hint).read(value, "", reader)
    return not (reader.problems or reader.coercions)


@functools.cache
def _fields(cls: Any) -> dict[str, tuple[Any, Kind]]:
    """Return the default and the kind of each field of a dataclass or a named tuple."""
    hints, parameters = get_type_hints(cls), inspect.signature(cls).parameters
    return {name: (each.default, _kind(hints[name])) for name, each in parameters.items()}


@functools.cache
def _kind(hint: Any) -> Kind:
    return kind_of(hint or type(None), _INSTANCES)
