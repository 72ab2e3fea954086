"""The arguments of Python calls against the type hints of the methods, for all methods in one place.

A program that passes a value of a wrong type is answered as a model is, by `invalid_argument` with the name
of the parameter, before anything is done. A path may be any `os.PathLike` of text, and an object with known
fields a mapping of them; the method gets text, and the object. Nothing else is converted.
"""

import dataclasses
import functools
import inspect
import os
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

from agentfs.errors import InvalidArgumentError
from agentfs.messages import Message, ParameterName

_SHOWN = 60
_fspath: Callable[[Any], Any] = os.fspath
_LARGEST = 2**63 - 1  # no file has more lines, and much larger numbers cannot even be shown


class _MismatchError(Exception):
    """A value that a hint does not allow."""

    def __init__(self, expected: str, found: str, place: str = "") -> None:
        super().__init__(expected, found, place)
        self.expected = expected
        self.found = found
        self.place = place


class _Rule(NamedTuple):
    """What a hint allows.

    Attributes:
        expected: The same for a message.
        take: Returns a value as the method is to get it, or raises `_MismatchError`.
        exact: Types whose values need no look.
        way_out: What to do instead, or "".
    """

    expected: str
    take: Callable[[Any], Any]
    exact: frozenset[type] = frozenset()
    way_out: str = ""


def checked(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method that checks its arguments against its type hints first."""
    rules: dict[str, _Rule] | None = None  # in the order of the parameters, once the method is called

    @functools.wraps(method)
    def call(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        nonlocal rules
        if rules is None:
            rules = _rules_of(method)
        for name, value in kwargs.items():
            rule = rules.get(name)
            if rule is not None and type(value) not in rule.exact:
                kwargs[name] = _taken(name, rule, value)
        given: list[Any] | None = None
        for at, (name, value) in enumerate(zip(rules, args, strict=False)):
            if type(value) not in rules[name].exact:
                given = list(args) if given is None else given
                given[at] = _taken(name, rules[name], value)
        return method(self, *(args if given is None else given), **kwargs)

    return call


def _rules_of(method: Callable[..., Any]) -> dict[str, _Rule]:
    _, *parameters = inspect.signature(method).parameters.values()
    return {each.name: _rule_of(each.annotation)._replace(way_out=_way_out(each)) for each in parameters}


def _way_out(parameter: inspect.Parameter) -> str:
    if parameter.default is parameter.empty:
        return ""
    return f"Leave it out{'' if parameter.default is None else f' for {parameter.default!r}'}."


def _taken(name: str, rule: _Rule, value: Any) -> Any:
    try:
        return rule.take(value)
    except _MismatchError as error:
        raise InvalidArgumentError(
            Message("`", ParameterName(name), f"{error.place}` must be {error.expected}, not {error.found}."),
            hint=rule.way_out,
            details={"argument": name, "place": name + error.place},
        ) from None


def _rule_of(hint: Any) -> _Rule:
    origin, args = get_origin(hint), get_args(hint)
    if hint is Any:
        return _Rule("any value", _as_it_is)
    if hint in _SCALARS:
        return _SCALARS[hint]
    if origin is Annotated:
        return _rule_of(args[0])
    if origin is Literal:
        return _literal(args)
    if origin in (Union, types.UnionType):
        records = [arg for arg in args if isinstance(arg, type) and dataclasses.is_dataclass(arg)]
        if records and any(get_origin(arg) is Mapping for arg in args):
            return _record(records[0])
        return _union([_rule_of(arg) for arg in args])
    kind = origin or hint
    if kind is os.PathLike:
        return _Rule("a path", _path_text)
    if kind is tuple:
        return _tuple([_rule_of(arg) for arg in args])
    if kind in (list, Sequence):
        return _list(_rule_of(args[0]))
    if kind is Mapping:
        return _mapping(_rule_of(args[1]))
    if kind is Callable:
        return _instance("a callable", callable)
    return _instance(_named(kind.__name__), lambda value: isinstance(value, kind))


def _as_it_is(value: Any) -> Any:
    return value


def _instance(expected: str, allows: Callable[[Any], bool], *exact: type) -> _Rule:
    def take(value: Any) -> Any:
        if not allows(value):
            raise _MismatchError(expected, _shown(value))
        return value

    return _Rule(expected, take, frozenset(exact))


def _is_integer(value: Any) -> bool:
    # A type is compared faster than found among the subclasses.
    whole = type(value) is int or (isinstance(value, int) and not isinstance(value, bool))
    return whole and -_LARGEST <= value <= _LARGEST


_SCALARS: dict[Any, _Rule] = {
    str: _instance("a string", lambda value: isinstance(value, str), str),
    int: _instance("an integer of at most 64 bits", _is_integer),
    float: _instance("a number", lambda value: isinstance(value, float) or _is_integer(value), float),
    bool: _instance("True or False", lambda value: isinstance(value, bool), bool),
    types.NoneType: _instance("None", lambda value: value is None, types.NoneType),
}


def _literal(choices: tuple[Any, ...]) -> _Rule:
    def allows(value: Any) -> bool:
        return any(type(value) is type(choice) and value == choice for choice in choices)

    plain = all(str(choice).isidentifier() for choice in choices)
    return _instance(f"one of {', '.join(map(str if plain else repr, choices))}", allows)


def _path_text(value: Any) -> str:
    path = _fspath(value) if _is(value, os.PathLike) else None
    if not isinstance(path, str):
        raise _MismatchError("a path", _shown(value))
    return path


def _union(options: Sequence[_Rule]) -> _Rule:
    expected = " or ".join(option.expected for option in options)

    def take(value: Any) -> Any:
        deepest: _MismatchError | None = None
        for option in options:
            try:
                return option.take(value)
            except _MismatchError as error:
                deepest = error if error.place else deepest
        raise deepest or _MismatchError(expected, _shown(value))

    return _Rule(expected, take, frozenset[type]().union(*(option.exact for option in options)))


def _each(rules: Iterable[_Rule], values: Iterable[Any]) -> list[Any]:
    taken: list[Any] = []
    for at, (rule, value) in enumerate(zip(rules, values, strict=False)):
        taken.append(_inside(f"[{at}]", rule, value))
    return taken


def _inside(place: str, rule: _Rule, value: Any) -> Any:
    if type(value) in rule.exact:
        return value
    try:
        return rule.take(value)
    except _MismatchError as error:
        raise _MismatchError(error.expected, error.found, place + error.place) from None


def _is(value: Any, kind: type[Any]) -> bool:
    """Do what `isinstance` does, which would leave a type checker with parameters that nobody knows."""
    return isinstance(value, kind)


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes, bytearray, memoryview))


def _list(item: _Rule) -> _Rule:
    expected = f"a list, each item {item.expected}"

    def take(value: Any) -> list[Any]:
        if not _is_sequence(value):
            raise _MismatchError(expected, _shown(value))
        return _each([item] * len(value), value)

    return _Rule(expected, take)


def _tuple(items: Sequence[_Rule]) -> _Rule:
    expected = f"a tuple of {', '.join(item.expected for item in items)}"

    def take(value: Any) -> tuple[Any, ...]:
        if not _is_sequence(value) or len(value) != len(items):
            raise _MismatchError(expected, _shown(value))
        return tuple(_each(items, value))

    return _Rule(expected, take)


def _mapping(member: _Rule) -> _Rule:
    expected = f"a mapping of names, each to {member.expected}"

    def take(value: Any) -> dict[str, Any]:
        given = _members_of(value)
        if given is None:
            raise _MismatchError(expected, _shown(value))
        return {name: _inside(f"[{name!r}]", member, each) for name, each in given.items()}

    return _Rule(expected, take)


def _members_of(value: Any) -> Mapping[str, Any] | None:
    if not _is(value, Mapping) or not all(_is(name, str) for name in value):
        return None
    return value  # type: ignore[no-any-return] # a mapping, as was just seen


def _record(make: type[Any]) -> _Rule:
    hints = get_type_hints(make)
    members = {field.name: _rule_of(hints[field.name]) for field in dataclasses.fields(make)}
    needed = [each.name for each in dataclasses.fields(make) if each.default is dataclasses.MISSING]
    expected = f"{_named(make.__name__)} or a mapping with {', '.join(members)}"

    def take(value: Any) -> Any:
        own = isinstance(value, make)
        given = {name: getattr(value, name) for name in members} if own else _members_of(value)
        if given is None:
            raise _MismatchError(expected, _shown(value))
        if unknown := [name for name in given if name not in members]:
            raise _MismatchError(expected, f"one with {_shown(unknown[0])}")
        if missing := [name for name in needed if name not in given]:
            raise _MismatchError(expected, f"one without {missing[0]}")
        return make(**{name: _inside(f".{name}", members[name], each) for name, each in given.items()})

    return _Rule(expected, take)


def _named(name: str) -> str:
    return f"{'an' if name[0] in 'AEIOU' else 'a'} {name}"


def _shown(value: Any) -> str:
    if type(value) is str and len(value) > _SHOWN:
        return f"{value[:_SHOWN]!r}…"
    if type(value) is int and abs(value) > _LARGEST:
        return "a larger one"
    plain = value is None or type(value) in (bool, int, float, str)
    return repr(value) if plain else f"a value of type {type(value).__name__}"
