"""From type hints to kinds of value, on which schemas, the reading of arguments and plain functions agree.

The kinds are named tuples, which take a tenth of the time of dataclasses to make when the module is imported.
"""

import dataclasses
import json
import math
import os
import re
import types
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from keyword import iskeyword
from typing import (
    Annotated,
    Any,
    Literal,
    NamedTuple,
    TypeAlias,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from agentfs.errors import InvalidArgumentError
from agentfs.limits import LARGEST
from agentfs.tools.declaration import ModelType
from agentfs.tools.docstrings import read_docstring


class Scalar(NamedTuple):
    """A value of one of the basic types of JSON Schema."""

    type: Literal["string", "integer", "number", "boolean"]


class EnumOf(NamedTuple):
    """One of a few values, all of them strings or all of them integers."""

    values: tuple[Any, ...]
    type: Literal["string", "integer"]


class ListOf(NamedTuple):
    """A list of values of one kind."""

    item: "Kind"


class MapOf(NamedTuple):
    """An object with any names, whose values are of one kind."""

    value: "Kind"


class Record(NamedTuple):
    """An object with known members; `make` is the dataclass or TypedDict that it becomes."""

    make: type[Any]
    members: tuple["Parameter", ...]


class UnionOf(NamedTuple):
    """A value of one of several kinds, the plainest first in the hint."""

    options: tuple["Kind", ...]


class OptionalOf(NamedTuple):
    """A value of a kind, or null."""

    kind: "Kind"


class Anything(NamedTuple):
    """Any value."""


class TupleOf(NamedTuple):
    """A sequence of values of these kinds, from a program only."""

    items: tuple["Kind", ...]


class InstanceOf(NamedTuple):
    """An instance of a class, from a program only."""

    type: Any


Kind: TypeAlias = (
    Scalar | EnumOf | ListOf | MapOf | Record | UnionOf | OptionalOf | Anything | TupleOf | InstanceOf
)

SCALARS: dict[Any, Scalar] = {
    str: Scalar("string"),
    int: Scalar("integer"),
    float: Scalar("number"),
    bool: Scalar("boolean"),
}
_SCALAR_TEXTS = {
    "string": "a string", "integer": "an integer", "number": "a number", "boolean": "true or false"
}  # fmt: skip


class Parameter(NamedTuple):
    """One parameter of a tool, or one member of a record.

    `name` is what a model sees, `target` the callable's own name where that differs; `description` is one
    line without default and choices, `default` None where the parameter is required.
    """

    name: str
    kind: Kind
    description: str
    required: bool
    default: Any = None
    target: str = ""

    @property
    def takes_null(self) -> bool:
        """Whether null differs from leaving the parameter out."""
        return isinstance(self.kind, OptionalOf) and (self.required or self.default is not None)

    @property
    def identifier(self) -> str:
        """The name as an identifier: `-A` as `A`, `from` as `from_`."""
        plain = re.sub(r"\W", "_", self.name.lstrip("-"), flags=re.ASCII)
        return f"{plain}_" if iskeyword(plain) else plain

    @property
    def value_kind(self) -> Kind:
        """The kind of a value other than null."""
        return self.kind.kind if isinstance(self.kind, OptionalOf) else self.kind

    def full_description(self, *, choices: bool = False) -> str:
        """Return the description with the default, and the choices, that it does not state itself."""
        parts = [self.description]
        values = _choices(self.kind) if choices else ()
        if values and not all(str(value) in self.description for value in values):
            parts.append(f"One of {', '.join(json.dumps(value, ensure_ascii=False) for value in values)}.")
        default = "" if self.required or self.default is None else _json_or_empty(self.default)
        if default and not re.search(r"\bdefault", self.description, re.IGNORECASE):
            parts.append(f"Default {default}.")
        if len(parts) > 1 and parts[0][-1] not in ".!?":
            parts[0] += "."
        return " ".join(parts)


def kind_of(hint: Any, *, for_program: bool = False, within: tuple[Any, ...] = ()) -> Kind:
    """Return the kind of a hint, for a program or a model; `within` are the records around it."""
    inner = partial(kind_of, for_program=for_program, within=within)
    hint = getattr(hint, "__value__", hint)  # a `type` alias of Python 3.12
    if hint is Any:
        return Anything()
    if isinstance(hint, type) and hint in SCALARS:
        return SCALARS[hint]
    origin, args = get_origin(hint) or hint, get_args(hint)
    if origin is Annotated:
        model_types = [each.hint for each in args[1:] if isinstance(each, ModelType)]
        return inner(model_types[0] if model_types and not for_program else args[0])
    if origin is Literal:
        return _enum(args)
    if origin in (Union, types.UnionType):
        records = [arg for arg in args if isinstance(arg, type) and dataclasses.is_dataclass(arg)]
        if records and any(get_origin(arg) is Mapping for arg in args):  # a mapping is as good as the record
            return _record(records[0], within, for_program=for_program)
        kinds = tuple(inner(arg) for arg in args if arg is not types.NoneType)
        kind = kinds[0] if len(kinds) == 1 else UnionOf(kinds)
        return OptionalOf(kind) if len(kinds) < len(args) else kind
    if origin in (list, Sequence):
        return ListOf(inner(args[0]) if args else Anything())
    if origin in (dict, Mapping):
        if args and args[0] is not str:
            raise InvalidArgumentError(f"the names in {hint} are not strings, as JSON has them")
        return MapOf(inner(args[1]) if args else Anything())
    if for_program:
        if origin is tuple and Ellipsis not in args:
            return TupleOf(tuple(map(inner, args)))
        checkable = isinstance(origin, type) and not getattr(cast("Any", origin), "_is_protocol", False)
        return InstanceOf(origin) if checkable else Anything()
    if is_typeddict(hint) or (isinstance(hint, type) and dataclasses.is_dataclass(hint)):
        return _record(cast("type[Any]", hint), within, for_program=False)
    name = getattr(cast("Any", hint), "__name__", None) or repr(cast("Any", hint))
    raise InvalidArgumentError(
        f"no schema can be made from {name}; use str, int, float, bool, Literal, list, dict, a dataclass, "
        "or a union of them"
    )


def _enum(values: tuple[Any, ...]) -> EnumOf:
    if all(isinstance(value, str) for value in values):
        return EnumOf(values, "string")
    if all(isinstance(value, int) and not isinstance(value, bool) for value in values):
        return EnumOf(values, "integer")
    raise InvalidArgumentError(f"the choices {values} are neither all strings nor all integers")


def _record(make: type[Any], within: tuple[Any, ...], *, for_program: bool) -> Record:
    if make in within:
        raise InvalidArgumentError(f"{make.__name__} contains itself, which no strict schema allows")
    hints = get_type_hints(make)
    descriptions = read_docstring(make.__doc__).parameters
    members: list[Parameter] = []
    for name, required, default in _members(make, hints):
        if name not in descriptions:
            raise InvalidArgumentError(f"the docstring of {make.__name__} does not describe `{name}`")
        kind = kind_of(hints[name], for_program=for_program, within=(*within, make))
        members.append(Parameter(name, kind, descriptions[name], required, default))
    return Record(make, tuple(members))


def _members(make: type[Any], hints: Mapping[str, Any]) -> list[tuple[str, bool, Any]]:
    """Return the name, whether it is required, and the default of each member."""
    if is_typeddict(make):
        required_keys: frozenset[str] = make.__required_keys__
        return [(name, name in required_keys, None) for name in hints]
    members: list[tuple[str, bool, Any]] = []
    for field in (each for each in dataclasses.fields(make) if each.init):
        made = field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
        required = made is dataclasses.MISSING
        members.append((field.name, required, None if required else made))
    return members


def _choices(kind: Kind) -> tuple[Any, ...]:
    match kind:
        case OptionalOf():
            return _choices(kind.kind)
        case ListOf():
            return _choices(kind.item)
        case EnumOf():
            return kind.values
        case _:
            return ()


def _json_or_empty(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError):
        return ""


def plainest(kind: Kind) -> Kind:
    """Return one kind for a union: its first scalar, else its first option.

    It is for readers of schemas and hints that know no unions; arguments are read with the whole kind.
    """
    if not isinstance(kind, UnionOf):
        return kind
    return next((option for option in kind.options if isinstance(option, Scalar)), kind.options[0])


def plain_hint(kind: Kind) -> Any:
    """Return a type hint for the kind that every framework takes: no Literal, no union but with None."""
    match kind:
        case Scalar():
            return next(hint for hint, scalar in SCALARS.items() if scalar == kind)
        case EnumOf():
            return str if kind.type == "string" else int
        case ListOf():
            return list[plain_hint(kind.item)]  # type: ignore[misc] # a hint made at run time
        case MapOf():
            return dict[str, plain_hint(kind.value)]  # type: ignore[misc] # as above
        case Record():
            return kind.make
        case UnionOf():
            return plain_hint(plainest(kind))
        case OptionalOf():
            return plain_hint(kind.kind) | None
        case _:
            return Any


def has_type(kind: Kind, value: Any) -> bool:
    """Return whether a value has the outer type of a kind, whatever is inside it; of a union none has."""
    match kind:
        case Scalar():
            return SCALAR_TESTS[kind.type](value)
        case EnumOf():
            return any(type(choice) is type(value) and choice == value for choice in kind.values)
        case ListOf() | TupleOf():
            return isinstance(value, (list, tuple))
        case Record() | MapOf():
            return isinstance(value, Mapping)
        case InstanceOf():
            return isinstance(value, kind.type)
        case _:
            return isinstance(kind, Anything)


def is_integer(value: Any) -> bool:
    """Return whether a value is an integer of at most 64 bits: no file has more lines."""
    # A type is compared faster than found among the subclasses.
    integer = type(value) is int or (isinstance(value, int) and not isinstance(value, bool))
    return integer and -LARGEST <= value <= LARGEST


SCALAR_TESTS: dict[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "integer": is_integer,
    "number": lambda value: is_integer(value) or (isinstance(value, float) and math.isfinite(value)),
    "boolean": lambda value: isinstance(value, bool),
}


def describe_type(kind: Kind, *, null: str = "null") -> str:
    """Return what a kind takes, for an error."""
    match kind:
        case Scalar():
            return _SCALAR_TEXTS[kind.type]
        case EnumOf():
            return f"one of {', '.join(json.dumps(value) for value in kind.values)}"
        case ListOf():
            return f"a list, each item {describe_type(kind.item)}"
        case Record():
            return f"an object with {describe_names(kind.members)}"
        case MapOf():
            return "an object"
        case UnionOf():
            return " or ".join(map(describe_type, kind.options))
        case OptionalOf():
            return f"{describe_type(kind.kind)} or {null}"
        case TupleOf():
            return f"a tuple of {', '.join(map(describe_type, kind.items))}"
        case InstanceOf():
            if kind.type in (os.PathLike, Callable):
                return "a path" if kind.type is os.PathLike else "a callable"
            return f"{'an' if kind.type.__name__[0] in 'AEIOU' else 'a'} {kind.type.__name__}"
        case Anything():
            return "any value"


def describe_names(members: Sequence[Parameter]) -> str:
    """Return the names of parameters or members, the required ones marked."""
    return ", ".join(f"{member.name} (required)" if member.required else member.name for member in members)


def short_repr(value: Any) -> str:
    """Return a value as an error quotes it: short, on one line, ASCII."""
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
