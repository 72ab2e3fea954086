"""Messages of `connect` in both directions: lines of ASCII JSON, with values of a closed set of types.

A value is plain JSON, or an object whose key `$` names its type. `{"$": "Match", "path": …}` has the fields
that differ from their defaults. A list becomes a tuple if the type hint is one. Objects are made while a line
is parsed, and each field is checked against its type hint, whoever sent it.
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
_MAX_COPIED = 1 * MIB  # characters in the nested texts of a line, each copied into the text around it
# The most bytes of memory that a token of JSON takes once it is decoded, by its first byte.
_MEMORY_OF = {b"{": 500, b"[": 100, b":": 40, b",": 50, b'"': 50}

_TOKEN, _ASTRAL = re.compile(rb'"[^"]*"|[{\[:,]'), re.compile(rb"\\u[dD]")
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


# The classes of messages to the client. A question about a `SpliceOptions` has its function as an argument.
TO_CLIENT = {"Function": Function, **_classes(results, limits, policy, permissions, advice)}
CLASSES = {**TO_CLIENT, **_classes(page, change_options, options)}
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

    def plain(value: Any) -> Any:
        kind: Any = value.__class__
        if kind in _SCALARS:
            return value
        name: str = kind.__name__
        if isinstance(value, Advice):
            return {"$": name, "parts": [*map(plain, value.parts)]}
        if CLASSES.get(name) is kind:
            given = ((key, default, getattr(value, key)) for key, (default, _) in _fields(kind).items())
            changed = {
                key: found for key, default, found in given if found is not default and found != default
            }
            return {"$": name} | {key: plain(each) for key, each in changed.items()}
        if isinstance(value, (str, int, float)):  # JSON has the text or number of an enumeration's member
            return value
        if isinstance(value, bytes | bytearray | memoryview):
            return {"$": "bytes", "base64": base64.b64encode(value).decode()}
        if isinstance(value, AgentFSError):
            details = json.loads(json.dumps(value.details, default=str))
            texts = {"message": plain(value.message), "hint": plain(value.hint)}
            return {"$": "error", "code": value.code, **texts, "details": details}
        if isinstance(value, Exception):
            return {"$": "error", "message": f"{name}: {value}"}
        if isinstance(value, Mapping) and "$" not in value:
            return {str(key): plain(each) for key, each in value.items()}
        if isinstance(value, Sequence):
            return [*map(plain, value)]
        if isinstance(value, PathLike):
            return fspath(value)
        if callable(value) and functions is not None:
            functions.append(value)
            return plain(Function(len(functions) - 1))
        raise TypeError(f"a value of type {name} cannot be sent")

    return json.dumps(plain(value), separators=(",", ":"))


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
    copied = 0

    def made(given: dict[str, Any]) -> Any:
        """Return the object of a JSON object."""
        nonlocal copied
        name = given.pop("$", None)
        if name is None:
            return given
        if name == "bytes":
            return base64.b64decode(given["base64"], validate=True)
        if name == "error":
            return _error(**given)
        cls = classes[name]
        if not issubclass(cls, Advice):
            known = _fields(cls)
            return cls(**{key: _read(each, known[key][1]) for key, each in given.items()})
        parts = _read(given["parts"], _kind(list[advice.Part]))
        copied += sum(len(each) for each in parts if isinstance(each, Advice))
        copied += len(parts[0]) * len(parts) if cls is Joined else 0
        if copied > _MAX_COPIED:
            raise ProtocolError("A text has too many parts.")
        return cls(*parts)

    try:
        return json.loads(text, object_hook=made)
    except ProtocolError:
        raise
    except (AgentFSError, TypeError, ValueError, LookupError, AttributeError, RecursionError):
        raise ProtocolError(f"This is not a message of agentfs: {text[:100]!a}.") from None


def memory_of(line: bytes) -> int:
    """Return the most bytes of memory that a line and its decoded values take, if that may matter."""
    if len(line) * 200 <= MAX_MEMORY:
        return 0
    memory = 3 * len(line)
    plain = line.replace(b"\\\\", b"").replace(b'\\"', b"")  # each quote begins or ends a string
    for token in _TOKEN.finditer(plain):
        text = token[0]
        memory += _MEMORY_OF[text[:1]]
        if b"\\u" in text:  # each character of this string takes 2 or 4 bytes
            memory += len(text) * (3 if _ASTRAL.search(text) else 1)
        if memory > MAX_MEMORY:
            break
    return memory


def _error(message: str, code: str = "", hint: str = "", details: Any = None) -> Exception:
    details = _read(details or {}, _kind(dict[str, Any]))
    details.pop("suggested_calls", None)  # this side makes them again from the hint
    message, hint = (_read(each, _kind(str)) for each in (message, hint))
    return _LEAVES[code](message, hint=hint, details=details) if code else RuntimeError(message)


def typed_value(value: Any, hint: Any) -> Any:
    """Return a value as one that fits a type hint; raise ProtocolError if it does not."""
    try:
        return _read(value, _kind(hint))
    except TypeError:
        raise ProtocolError(f"The other side did not send {hint}.") from None


def _read(value: Any, kind: Kind) -> Any:
    reader = ArgumentReader()
    found = kind.read(value, "", reader)
    if reader.problems or reader.coercions:
        raise TypeError
    return found


@functools.cache
def _fields(cls: Any) -> dict[str, tuple[Any, Kind]]:
    """Return the default and the kind of each field of a dataclass or a named tuple."""
    hints, parameters = get_type_hints(cls), inspect.signature(cls).parameters
    return {name: (each.default, _kind(hints[name])) for name, each in parameters.items()}


@functools.cache
def _kind(hint: Any) -> Kind:
    return kind_of(hint or type(None), _INSTANCES)
