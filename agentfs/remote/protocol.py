"""Messages of `connect` in both directions: lines of ASCII JSON, with values of a closed set of types.

A value is plain JSON, or an object with the key `$`. `{"$": [1, 2]}` is a tuple. `{"$": "Match", …}` is an
object of that class, with its fields. `{"$": "rows", "of": "Match", "names": […], "rows": […]}` is a list of
such objects. In a field whose hint is a tuple, a list is that tuple. Type hints of the class check each
field, so a decoded value has the types that the program expects, whoever sent it. Numbers are finite;
integers go from 0 to `LARGEST`.
"""
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# The types of a message's values are known only after it is decoded.

import base64
import functools
import inspect
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, is_dataclass
from operator import attrgetter
from os import PathLike, fspath
from typing import Annotated, Any, TypedDict, get_type_hints

from agentfs import errors, results
from agentfs.arguments.checks import ArgumentChecker
from agentfs.arguments.hints import default_values, kind_of
from agentfs.arguments.kinds import (
    SCALARS,
    Anything,
    ArgumentReader,
    Integer,
    Kind,
    ListOf,
    OptionalOf,
    String,
    TupleOf,
)
from agentfs.base.advice import (
    Advice,
    FirstOf,
    Footer,
    Joined,
    NextCall,
    Note,
    ParameterName,
    Part,
    Retry,
    ToolName,
)
from agentfs.base.visible import escape_controls, visible
from agentfs.errors import AgentFSError, InvalidArgumentError, TooLargeError, UnsupportedSystemError
from agentfs.limits import MIB, Limits
from agentfs.permissions import Allow, Deny, PermissionRequest, ProposedChange
from agentfs.policy import AfterChange, Mount, Policy, Protect
from agentfs.tools.tool import declared_tools
from agentfs.workspace import Workspace

PROTOCOL_VERSION = 2  # must be equal on both sides
MAX_LINE = 1 * MIB  # of a received line
_LINE = MIB // 16  # of a sent line; short, because each line is a sign of life on a slow connection
MAX_MESSAGE = 64 * MIB
MAX_MEMORY = 256 * MIB  # of a decoded message
_MAX_DEPTH = 40
# Fields with names or content of the tree, which programs need unchanged. All other texts of results and
# questions are for people and models, so their hidden characters are made visible.
_NAMES = ("path", "paths", "name", "to", "target", "moved_from", "files", "counts", "failed", "left", "next")
_CONTENT = (
    *("unread_rules", "rules", "since", "arguments"),
    *("old_path", "old_lines", "new_lines", "content", "diff", "patch", "before", "after", "data"),
)
_EXACT = frozenset((*_NAMES, *_CONTENT, "newline"))
_EXACT_OF: dict[type[Any], frozenset[str]] = {
    results.Match: _EXACT | {"text"},
    PermissionRequest: _EXACT - {"diff"},  # a person reads it
    ParameterName: frozenset(),
}
# The most bytes of memory that a token of JSON takes, by its first byte.
_MEMORY_OF = {b"{": 500, b"[": 200, b":": 70, b",": 60, b'"': 50}
_TOKENS = re.compile(rb'"[^"]*"|[{\[:,]')
_MORE, _LAST = b"+", b"="  # begin the lines of a message of several lines
_MAX_SEPARATOR = 10  # characters; a separator is repeated between all parts

CLASSES: dict[str, type[Any]] = {
    each.__name__: each
    for each in (
        *(each for each in vars(results).values() if isinstance(each, type) and is_dataclass(each)),
        *(PermissionRequest, ProposedChange, Allow, Deny, Policy, Protect, AfterChange, Limits, Mount),
        *(ToolName, ParameterName, Retry, Advice, Joined, FirstOf, Note, Footer),
    )
}
_SETTINGS = {Policy, Protect, AfterChange, Limits, Allow, Deny, Mount}
_ANSWERS = {name: each for name, each in CLASSES.items() if each not in _SETTINGS}
# Classes whose fields, except the exact ones, are shown to people and models.
_SHOWN: set[type[Any]] = {
    *(each for each in CLASSES.values() if each.__module__ == results.__name__),
    *(PermissionRequest, ToolName, ParameterName, Retry),
} - {results.Edit, results.LineChange}
_METHODS = declared_tools(Workspace)
# Methods that are context managers, with a function that gets the outcome from what the manager returned.
BLOCKS: dict[str, Callable[[Any], Any]] = {
    "transaction": attrgetter("commit_notes"),
    "recording": attrgetter("result"),
}
# Methods of `Workspace` that are one request each. `RemoteWorkspace` defines or inherits all others.
REMOTE_METHODS = {
    name for name, each in vars(Workspace).items() if inspect.isfunction(each) and not name.startswith("_")
} - {"tools", "tool_names", "view", "recorded", "close", "start", *BLOCKS}
# Exceptions besides those of agentfs that a method may raise, each with a text.
_EXCEPTIONS = {
    each.__name__: each
    for each in (TypeError, ValueError, RuntimeError, MemoryError, RecursionError, NotImplementedError)
}

_Function = Callable[..., Any]


class _Limited(Kind):
    """The values of a kind that also pass a test."""

    def __init__(self, kind: Kind, test: Callable[[Any], bool]) -> None:
        self._kind, self._test = kind, test

    def fits(self, value: Any) -> bool:
        return self._kind.fits(value) and self._test(value)


class _NextCall(Kind):
    """A complete call of a tool, with arguments that the method takes."""

    def fits(self, value: Any) -> bool:
        if not isinstance(value, dict) or value.keys() != NextCall.__annotations__.keys():
            return False
        name, arguments = value["name"], value["arguments"]
        if not (isinstance(name, str) and isinstance(arguments, dict)) or name not in _METHODS:
            return False
        signature, checker = _parameters(name)
        try:
            signature.bind(None, **arguments)
            checker.check((), {**arguments})
        except (TypeError, AgentFSError):
            return False
        return _is_json(arguments)


_KNOWN = {
    **SCALARS,
    int: _Limited(Integer(), lambda value: type(value) is int and value >= 0),
    NextCall: _NextCall(),
}
_IDENTIFIER = _Limited(String(), lambda value: len(value) <= 64 and value.isascii() and value.isalnum())
_Identifier = Annotated[str, _IDENTIFIER]
_Short = Annotated[str, _Limited(String(), lambda value: len(value) <= 200)]
_ShortList = Annotated[list[Any], _Limited(ListOf(Anything()), lambda value: len(value) <= 200)]


class Hello(TypedDict):
    """The first message of the client. In every message, a field that may be None may be left out."""

    nonce: _Identifier
    client: _Identifier
    protocol: int
    root: str
    state: str | None
    session: str | None
    policy: dict[str, Any]
    limits: dict[str, Any]
    watch: bool
    mounts: dict[str, Any] | None
    again: bool | None
    kept: bool | None
    forget: bool | None


class Request(TypedDict):
    """A request to call a method at the remote side."""

    request: int
    method: _Short
    arguments: dict[str, Any]
    views: _ShortList | None
    block: _Identifier | None
    key: _Identifier | None
    tool: _Short | None
    progress: bool | None
    seconds: float | None
    again: bool | None


class Reply(TypedDict):
    """The client's answer to a question."""

    reply: int
    to: int
    raised: bool | None
    error: dict[str, Any] | None


class Question(TypedDict):
    """A request of the remote side to call a function of the client."""

    ask: int
    function: int
    arguments: list[Any]


def check_fields(message: Mapping[str, Any], kind: Any) -> None:
    """Raise `invalid_argument` unless each field of a message has its type and is in its range."""
    for name, hint in get_type_hints(kind, include_extras=True).items():
        if not is_instance(message.get(name), hint):
            raise InvalidArgumentError(f"The field {name!r} of a message is missing or invalid.")


class RemoteFunction:
    """A function of the other side, identified by its number in the current request."""

    def __init__(self, number: int) -> None:
        self.number = number


class ProtocolError(Exception):
    """The other side sent an invalid message."""


def to_lines(message: Mapping[str, Any]) -> bytes:
    """Return an encoded message as one line or several; raise `too_large` if it is over a limit."""
    text = json.dumps(message, separators=(",", ":")).encode()
    for size, most, unit in (
        (len(text), MAX_MESSAGE, "bytes"),
        (_memory(text), MAX_MEMORY, "bytes of memory"),
    ):
        if size > most:
            raise TooLargeError(
                f"The request or its answer takes {size:,} {unit}; the limit is {most:,}.",
                hint="Ask for less at a time.",
            )
    if len(text) <= _LINE:
        return text + b"\n"
    *parts, last = (text[start : start + _LINE] for start in range(0, len(text), _LINE))
    return b"".join(_MORE + part + b"\n" for part in parts) + _LAST + last + b"\n"


def messages(read_line: Callable[[], bytes]) -> Iterator[dict[str, Any]]:
    """Yield the messages of a stream until it ends."""
    kept = bytearray()
    while line := read_line():
        if not line.endswith(b"\n"):
            raise ProtocolError("A line was cut off.")
        is_part = line.startswith(_MORE)
        kept += line[1:-1] if is_part else line.removeprefix(_LAST)
        if len(kept) > MAX_MESSAGE:
            raise ProtocolError(f"A message is over {MAX_MESSAGE:,} bytes.")
        if is_part:
            continue
        if _memory(kept) > MAX_MEMORY:
            raise ProtocolError(f"A message takes over {MAX_MEMORY:,} bytes of memory.")
        try:
            text = kept.decode("ascii")
            kept.clear()
            message: Any = json.loads(text)
        except (ValueError, RecursionError):
            raise ProtocolError("A line is not JSON in ASCII.") from None
        del text
        if not isinstance(message, dict):
            raise ProtocolError("A line is not a JSON object.")
        yield message
        del message


def _memory(text: bytes | bytearray) -> int:
    """Return the most bytes of memory that a message takes, while it is read and after it is decoded."""
    if len(text) * 200 <= MAX_MEMORY:
        return 0
    # Each character takes as many bytes as the widest one of its string: 1, 2 or 4.
    plain = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    width = 4 if b"\\ud" in plain or b"\\uD" in plain else 2 if b"\\u" in plain else 1
    memory = 2 * len(text) + width * (len(text) - 5 * plain.count(b"\\u"))
    for token in _TOKENS.finditer(plain):
        memory += _MEMORY_OF[token[0][:1]]
        if memory > MAX_MEMORY:
            break
    return memory


def to_wire(value: Any, functions: list[_Function] | None = None) -> Any:
    """Return a value ready for JSON; a function is appended to `functions` and becomes its index.

    Raises:
        TypeError: The value, or a value inside it, has a type that no message can have.
    """
    kind: Any = type(value)
    name: str = kind.__name__
    many: Any = value
    if value is None or kind in (str, int, bool, float):
        return value
    if CLASSES.get(name) is kind:
        if isinstance(value, Advice):
            return {"$": name, "parts": to_wire([*many.parts], functions)}
        cls: Any = kind
        fields = _kinds(cls)
        given = _given(many, cls)
        return {
            "$": name,
            **{key: _encode_field(fields[key], each, functions) for key, each in given.items()},
        }
    if kind is bytes:
        return {"$": "bytes", "base64": base64.b64encode(many).decode()}
    if isinstance(value, Mapping):
        items = {key: to_wire(each, functions) for key, each in many.items()}
        if all(type(key) is str for key in items) and "$" not in items:
            return items
        return {"$": "dict", "items": [[to_wire(key), each] for key, each in items.items()]}
    if isinstance(value, (str, int, float)):  # JSON has the text or number of an enumeration's member
        return value
    if isinstance(value, tuple):
        return {"$": [to_wire(each, functions) for each in many]}
    if isinstance(value, Sequence):
        return [to_wire(each, functions) for each in many]
    if isinstance(value, PathLike):  # in the answer of a permission callback
        return to_wire(fspath(many))
    if isinstance(value, RemoteFunction):
        return {"$": "function", "number": value.number}
    if callable(value) and functions is not None:
        functions.append(value)
        return {"$": "function", "number": len(functions) - 1}
    raise TypeError(f"a value of type {name} cannot be sent")


def _encode_field(kind: Kind, value: Any, functions: list[_Function] | None) -> Any:
    """Return the value of a field, ready for JSON: a tuple as a list, and many objects of a class as rows."""
    of: Any = kind.parts[0] if isinstance(kind, OptionalOf) else kind
    is_tuple = isinstance(of, TupleOf) and isinstance(value, tuple)
    if not (is_tuple or isinstance(value, list)):
        return to_wire(value, functions)
    items: Sequence[Any] = value
    cls: Any = type(items[0]) if len(items) > 1 else None
    if cls in _SHOWN and all(type(each) is cls for each in items):
        names = [
            name
            for name, default in _defaults(cls).items()
            if any(getattr(each, name) != default for each in items)
        ]
        rows = [
            [_encode_field(_kinds(cls)[name], getattr(each, name), functions) for name in names]
            for each in items
        ]
        return {"$": "rows", "of": cls.__name__, "names": names, "rows": rows}
    if is_tuple:
        kinds = of.parts * len(items) if of.many else of.parts
        return [_encode_field(each, item, functions) for each, item in zip(kinds, items, strict=True)]
    return to_wire(value, functions)


def from_wire(
    value: Any,
    function: Callable[[int], _Function] | None = None,
    classes: Mapping[str, type[Any]] = _ANSWERS,
    depth: int = 0,
) -> Any:
    """Return the value that was encoded; raise ProtocolError for anything else.

    Args:
        value: The encoded value.
        function: Returns the function of a number; without it, a message cannot have functions.
        classes: The classes that the message may have, by name.
        depth: How many values enclose this one.
    """
    if depth > _MAX_DEPTH:
        raise ProtocolError("A message is nested too deeply.")
    given: Any = value
    if isinstance(value, list):
        return [from_wire(each, function, classes, depth + 1) for each in given]
    if not isinstance(value, dict):
        # The arguments of a method may be any numbers: the method checks them.
        if function is None and type(value) in (int, float) and not SCALARS[float].fits(value):
            raise ProtocolError("A message has a number that is not finite or over 64 bits.")
        return value
    name: Any = given.get("$")
    if isinstance(name, list):
        return tuple(from_wire(each, function, classes, depth + 1) for each in name)
    try:
        if name == "rows":
            rows, names, of = given["rows"], given["names"], given["of"]
            for index, row in enumerate(rows):  # in place, so that each list is freed when its object is made
                fields = {
                    key: from_wire(each, function, classes, depth + 2)
                    for key, each in zip(names, row, strict=True)
                }
                rows[index] = _make(classes[of], of, fields, function)
            return rows
        fields = {
            key: from_wire(each, function, classes, depth + 1) for key, each in given.items() if key != "$"
        }
        if name is None:
            return fields
        return _make(classes.get(str(name)), str(name), fields, function)
    except (TypeError, ValueError, LookupError, AttributeError) as error:
        if isinstance(error, AgentFSError):  # a value that a policy or a limit refuses
            raise
        raise ProtocolError(f"A message has an invalid {str(name)[:40]!r}.") from None


def shown(value: Any) -> Any:
    """Return a value with the hidden characters of all its texts made visible."""
    if type(value) is str:
        return escape_controls(value) if visible(value) != value else value
    if type(value) in (tuple, list):
        return type(value)(map(shown, value))
    if type(value) is dict:
        return {shown(name): shown(each) for name, each in value.items()}
    return value


def _make(cls: Any, name: str, given: dict[str, Any], function: Callable[[int], _Function] | None) -> Any:
    if cls is None:
        if name == "bytes":
            return base64.b64decode(given["base64"], validate=True)
        if name == "dict":
            return dict(given["items"])
        if name == "function" and function is not None and type(given["number"]) is int:
            return function(given["number"])
        raise TypeError(name)
    if issubclass(cls, Advice):
        parts = given["parts"]
        separator = parts[0] if cls is Joined else ""
        if not (
            is_instance(parts, list[Part]) and type(separator) is str and len(separator) <= _MAX_SEPARATOR
        ):
            raise TypeError(name)
        return cls(*map(shown, parts))
    reader, kinds = ArgumentReader(), _kinds(cls)
    given = {key: kinds[key].read(each, key, reader) for key, each in given.items()}
    if reader.problems:
        raise TypeError(name)
    if cls is Retry and not (_is_json(given) and all(map(str.isidentifier, given["arguments"]))):
        raise TypeError(name)
    if cls in _SHOWN:
        exact = _EXACT_OF.get(cls, _EXACT)
        given = {key: each if key in exact else shown(each) for key, each in given.items()}
    return cls(**given)


def _given(value: Any, cls: Any) -> dict[str, Any]:
    """Return the fields of a dataclass or a named tuple that differ from their defaults."""
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
    return default_values(cls)


@functools.cache
def _kinds(cls: Any) -> dict[str, Kind]:
    """Return the kinds of the fields of a dataclass or a named tuple."""
    return {name: _kind(hint) for name, hint in get_type_hints(cls).items() if name in _defaults(cls)}


def is_instance(value: Any, hint: Any) -> bool:
    """Return True if a value fits a type hint."""
    reader = ArgumentReader()
    _kind(hint).read(value, "", reader)
    return not reader.problems


@functools.cache
def _kind(hint: Any) -> Kind:
    return kind_of(hint, for_program=True, known=_KNOWN)


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
            "message": to_wire(error.message),
            "hint": to_wire(error.hint),
            "details": to_wire(details),
        }
    name = type(error).__name__
    if _EXCEPTIONS.get(name) is type(error):
        return {"exception": name, "message": str(error)}
    return {"exception": "RuntimeError", "message": f"{name}: {error}"}


def decode_error(value: Any) -> Exception:
    """Return the error that was encoded; raise ProtocolError for anything else."""
    found: Any = from_wire(value)
    found = found if isinstance(found, dict) else {}
    message, hint, details = found.get("message"), found.get("hint", ""), found.get("details", {})
    if not (
        isinstance(message, str)
        and isinstance(hint, str)
        and is_instance(details, dict[str, Any])
        and is_instance(details.get("places", []), Sequence[str])
        and is_instance(details.get("rows", []), Sequence[tuple[int, str, str] | None])
        and _is_json(details)
    ):
        raise ProtocolError("An answer has an invalid error.")
    details.pop("suggested_calls", None)  # made again from the hint
    message, hint, details, code = map(shown, (message, hint, details, found.get("code")))
    if not isinstance(code, str):
        return _EXCEPTIONS.get(str(found.get("exception")), RuntimeError)(message)
    leaf = _leaves().get(code)
    if leaf is None:  # an error of a newer version
        return UnsupportedSystemError(message, hint=hint, details={**details, "code": code})
    return leaf(message, hint=hint, details=details)


@functools.cache
def _leaves() -> dict[str, type[AgentFSError]]:
    classes: list[Any] = [each for each in vars(errors).values() if isinstance(each, type)]
    return {each.code: each for each in classes if issubclass(each, AgentFSError) and vars(each).get("code")}
