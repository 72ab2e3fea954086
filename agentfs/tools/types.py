"""What a type hint means to a model: one of a few kinds of value.

Everything that speaks to a model about types (schemas, the reading of arguments, plain functions) starts from
these kinds, so that all three say the same. They are named tuples, which take a tenth of the time of
dataclasses to make when the module is imported.
"""

import dataclasses
import re
import types
from collections.abc import Mapping, Sequence
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
from agentfs.tools.docstrings import read_docstring
from agentfs.tools.model_type import ShownAs


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
    """Any JSON value."""


Kind: TypeAlias = Scalar | EnumOf | ListOf | MapOf | Record | UnionOf | OptionalOf | Anything

SCALARS: dict[Any, Scalar] = {
    str: Scalar("string"),
    int: Scalar("integer"),
    float: Scalar("number"),
    bool: Scalar("boolean"),
}


class Parameter(NamedTuple):
    """One parameter of a tool, or one member of a record.

    Attributes:
        name: The name that a model sees.
        kind: What is taken.
        description: What it means, on one line, without default and choices.
        required: Whether it must be given.
        default: What holds when it is not given; None when it is required.
        target: The callable's own name for it, where the one a model sees is another.
    """

    name: str
    kind: Kind
    description: str
    required: bool
    default: Any = None
    target: str = ""

    @property
    def takes_null(self) -> bool:
        """Whether null says something that leaving the parameter out does not say."""
        return isinstance(self.kind, OptionalOf) and (self.required or self.default is not None)

    @property
    def identifier(self) -> str:
        """The name as an identifier, for those who take nothing else: `-A` as `A`, `from` as `from_`."""
        plain = re.sub(r"\W", "_", self.name.lstrip("-"), flags=re.ASCII)
        return f"{plain}_" if iskeyword(plain) else plain

    @property
    def value_kind(self) -> Kind:
        """The kind of a value other than null."""
        return self.kind.kind if isinstance(self.kind, OptionalOf) else self.kind


def kind_of(hint: Any) -> Kind:
    """Return the kind of value that a type hint asks for.

    Args:
        hint: A resolved type hint: no string, no forward reference.

    Raises:
        InvalidArgumentError: No schema can be made from the hint (`invalid_argument`).
    """
    return _kind_of(hint, ())


def _kind_of(hint: Any, within: tuple[Any, ...]) -> Kind:
    hint = getattr(hint, "__value__", hint)  # a `type` alias of Python 3.12
    if hint is Any:
        return Anything()
    if hint in SCALARS:
        return SCALARS[hint]
    origin, args = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _kind_of(next((each.hint for each in args[1:] if isinstance(each, ShownAs)), args[0]), within)
    if origin is Literal:
        return _choice(args)
    if origin in (Union, types.UnionType):
        return _union([arg for arg in args if arg is not types.NoneType], len(args), within)
    if (origin or hint) in (list, Sequence):
        return ListOf(_kind_of(args[0], within) if args else Anything())
    if (origin or hint) in (dict, Mapping):
        if args and args[0] is not str:
            raise InvalidArgumentError(f"the names in {hint} are not strings, as JSON has them")
        return MapOf(_kind_of(args[1], within) if args else Anything())
    if is_typeddict(hint) or (isinstance(hint, type) and dataclasses.is_dataclass(hint)):
        return _record(cast("type[Any]", hint), within)
    name = getattr(cast("Any", hint), "__name__", None) or repr(cast("Any", hint))
    raise InvalidArgumentError(
        f"no schema can be made from {name}; use str, int, float, bool, Literal, list, dict, a dataclass, "
        "or a union of them"
    )


def _choice(values: tuple[Any, ...]) -> EnumOf:
    if all(isinstance(value, str) for value in values):
        return EnumOf(values, "string")
    if all(isinstance(value, int) and not isinstance(value, bool) for value in values):
        return EnumOf(values, "integer")
    raise InvalidArgumentError(f"the choices {values} are neither all strings nor all integers")


def _union(hints: list[Any], size: int, within: tuple[Any, ...]) -> Kind:
    kinds = tuple(_kind_of(hint, within) for hint in hints)
    kind = kinds[0] if len(kinds) == 1 else UnionOf(kinds)
    return OptionalOf(kind) if len(hints) < size else kind


def _record(make: type[Any], within: tuple[Any, ...]) -> Record:
    if make in within:
        raise InvalidArgumentError(f"{make.__name__} contains itself, which no strict schema can say")
    hints = get_type_hints(make)
    told = read_docstring(make.__doc__).parameters
    members: list[Parameter] = []
    for name, required, default in _members(make):
        if name not in told:
            raise InvalidArgumentError(f"the docstring of {make.__name__} does not describe `{name}`")
        members.append(Parameter(name, _kind_of(hints[name], (*within, make)), told[name], required, default))
    return Record(make, tuple(members))


def _members(make: type[Any]) -> list[tuple[str, bool, Any]]:
    if is_typeddict(make):
        required_keys: frozenset[str] = make.__required_keys__
        return [(name, name in required_keys, None) for name in get_type_hints(make)]
    members: list[tuple[str, bool, Any]] = []
    for field in dataclasses.fields(make):
        if not field.init:
            continue
        if field.default is not dataclasses.MISSING:
            members.append((field.name, False, field.default))
        elif field.default_factory is not dataclasses.MISSING:
            members.append((field.name, False, field.default_factory()))
        else:
            members.append((field.name, True, None))
    return members


def plainest(kind: Kind) -> Kind:
    """Return one kind for a union: its first scalar, else its first option.

    Some readers of schemas and hints know no unions. The arguments are read with the whole kind all the
    same, so that a list still arrives where only a string was announced.
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
        case Anything():
            return Any
