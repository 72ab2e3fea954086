"""The arguments of Python calls against the type hints of the methods.

A value of a wrong type is `invalid_argument` with the name of the parameter, before anything is done. A path
may be any `os.PathLike` of text, and an object with known members a mapping of them; the method gets text,
and the object. Nothing else is converted. A parameter without a hint, or with one that names no type at run
time, takes any value.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from os import PathLike, fspath
from types import NoneType, SimpleNamespace
from typing import Any, NamedTuple, get_type_hints

from agentfs.errors import InvalidArgumentError
from agentfs.messages import Message, ParameterName
from agentfs.tools.types import (
    SCALAR_TESTS,
    Anything,
    EnumOf,
    InstanceOf,
    Kind,
    ListOf,
    MapOf,
    OptionalOf,
    Record,
    Scalar,
    TupleOf,
    UnionOf,
    describe_type,
    has_type,
    kind_of,
    short_repr,
)

_fspath: Callable[[Any], Any] = fspath
_EXACT_TYPES: dict[str, type] = {"string": str, "number": float, "boolean": bool}


class _Parameter(NamedTuple):
    kind: Kind
    exact_types: frozenset[type]  # values of these need no look
    hint: str


class _MismatchError(Exception):
    """A value that is none of a kind, and its place in the argument."""

    def __init__(self, expected: str, found: str, place: str) -> None:
        super().__init__(expected, found, place)
        self.expected, self.found, self.place = expected, found, place


class ArgumentChecker:
    """Checks the arguments of calls of one function or method."""

    def __init__(self, function: Callable[..., Any]) -> None:
        declared = inspect.signature(function).parameters.values()
        names = getattr(inspect.unwrap(function), "__globals__", {})
        self._parameters = {
            each.name: _parameter(each, names)
            for each in declared
            if each.name != "self" and each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
        }
        by_position = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        self._positional = [
            (each.name, self._parameters[each.name])
            for each in declared
            if each.kind in by_position and each.name != "self"
        ]

    def check(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Sequence[Any], dict[str, Any]]:
        """Return the arguments to call with, self aside; raise `invalid_argument` for a wrong type."""
        parameters = self._parameters
        for name, value in kwargs.items():
            parameter = parameters.get(name)
            if parameter is not None and type(value) not in parameter.exact_types:
                kwargs[name] = _checked(name, parameter, value)
        checked: list[Any] | None = None
        for index, ((name, parameter), value) in enumerate(zip(self._positional, args, strict=False)):
            if type(value) not in parameter.exact_types:
                checked = list(args) if checked is None else checked
                checked[index] = _checked(name, parameter, value)
        return (args if checked is None else checked), kwargs


def _parameter(declared: inspect.Parameter, names: Mapping[str, Any]) -> _Parameter:
    kind = _kind(declared, names)
    default = declared.default
    omit = "Leave it out." if default is None else f"Leave it out for {default!r}."
    hint = "" if default is declared.empty else omit
    return _Parameter(kind, _exact_types(kind), hint)


def _kind(declared: inspect.Parameter, names: Mapping[str, Any]) -> Kind:
    """Return the kind of a parameter; its hint may be a string over the names of its module."""
    if declared.annotation is declared.empty:
        return Anything()
    hints: Any = SimpleNamespace(__annotations__={declared.name: declared.annotation})
    try:
        resolved = get_type_hints(hints, dict(names), include_extras=True)
        return kind_of(resolved[declared.name], for_program=True)
    except Exception:  # noqa: BLE001 - whatever a string evaluates to
        return Anything()


def _exact_types(kind: Kind) -> frozenset[type]:
    match kind:
        case Scalar() if kind.type in _EXACT_TYPES:
            return frozenset({_EXACT_TYPES[kind.type]})
        case OptionalOf():
            return _exact_types(kind.kind) | {NoneType}
        case UnionOf():
            return frozenset[type]().union(*map(_exact_types, kind.options))
        case _:
            return frozenset()


def _checked(name: str, parameter: _Parameter, value: Any) -> Any:
    try:
        return _check(parameter.kind, value)
    except _MismatchError as error:
        raise InvalidArgumentError(
            Message("`", ParameterName(name), f"{error.place}` must be {error.expected}, not {error.found}."),
            hint=parameter.hint,
            details={"argument": name, "place": name + error.place},
        ) from None


def _check(kind: Kind, value: Any, place: str = "") -> Any:
    """Return a value, which is at a place in the argument, as the method is to get it."""
    match kind:
        case Scalar() if SCALAR_TESTS[kind.type](value):
            return value
        case OptionalOf() | UnionOf():
            return _check_options(kind, value, place)
        case InstanceOf():
            found = _fspath(value) if kind.type is PathLike and has_type(kind, value) else value
            if isinstance(found, str if kind.type is PathLike else kind.type):
                return found
        case Record() if type(value) is kind.make or _has_names(value):
            return _check_record(kind, value, place)
        case MapOf() if _has_names(value):
            return {name: _check(kind.value, each, f"{place}[{name!r}]") for name, each in value.items()}
        case ListOf() if _is_sequence(value):
            return [_check(kind.item, each, f"{place}[{index}]") for index, each in enumerate(value)]
        case TupleOf() if _is_sequence(value) and len(value) == len(kind.items):
            pairs = enumerate(zip(kind.items, value, strict=True))
            return tuple(_check(item, each, f"{place}[{index}]") for index, (item, each) in pairs)
        case EnumOf() | Anything() if has_type(kind, value):
            return value
        case _:
            pass
    raise _mismatch(kind, short_repr(value), place)


def _check_options(kind: OptionalOf | UnionOf, value: Any, place: str) -> Any:
    if value is None and isinstance(kind, OptionalOf):
        return None
    inside: _MismatchError | None = None
    for option in kind.options if isinstance(kind, UnionOf) else (kind.kind,):
        try:
            return _check(option, value, place)
        except _MismatchError as error:
            inside = error if error.place != place else inside
    raise inside or _mismatch(kind, short_repr(value), place)


def _check_record(kind: Record, value: Any, place: str) -> Any:
    own = isinstance(value, kind.make)
    given = {each.name: getattr(value, each.name) for each in kind.members} if own else value
    members = {member.name: member for member in kind.members}
    for name in given:
        if name not in members:
            raise _mismatch(kind, f"one with {short_repr(name)}", place)
    for member in kind.members:
        if member.required and member.name not in given:
            raise _mismatch(kind, f"one without {member.name}", place)
    checked = {name: _check(members[name].kind, each, f"{place}.{name}") for name, each in given.items()}
    return kind.make(**checked)


def _mismatch(kind: Kind, found: str, place: str) -> _MismatchError:
    return _MismatchError(describe_type(kind, null="None"), found, place)


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes, bytearray, memoryview))


def _has_names(value: Any) -> bool:
    names: Any = value  # which `isinstance` leaves without members of unknown type
    return isinstance(value, Mapping) and all(isinstance(name, str) for name in names)
