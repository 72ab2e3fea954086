"""Kinds of values from type hints."""

import inspect
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import partial
from types import SimpleNamespace
from typing import (
    Annotated,
    Any,
    Literal,
    NamedTuple,
    NotRequired,
    Required,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from agentfs.arguments.constraints import constrained, field_description
from agentfs.arguments.docstrings import read_docstring
from agentfs.arguments.kinds import (
    SCALARS,
    Anything,
    Choice,
    IdOf,
    InstanceOf,
    Kind,
    ListOf,
    MapOf,
    MemberOf,
    OptionalOf,
    Parameter,
    PathOf,
    Record,
    SetOf,
    TimeOf,
    TupleOf,
    UnionOf,
)
from agentfs.errors import InvalidArgumentError


class Name(NamedTuple):
    """The name of a parameter that a model sees, in an `Annotated` hint; it need not be an identifier."""

    name: str


def visible_name(hint: Any) -> str:
    """Return the `Name` in an `Annotated` hint, or ""."""
    metadata = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
    return next((each.name for each in metadata if isinstance(each, Name)), "")


class ModelType(NamedTuple):
    """The type that a model sees, in an `Annotated` hint of a parameter that accepts more from programs."""

    hint: Any


def kind_of(
    hint: Any, *, for_program: bool = False, known: Mapping[Any, Kind] = SCALARS, within: tuple[Any, ...] = ()
) -> Kind:
    """Return the kind of a type hint.

    Args:
        hint: The hint. A kind in `Annotated` replaces it; a `ModelType` replaces it for models.
        for_program: Set if the values come from a program, which passes dataclasses as instances.
        known: The kinds of some classes.
        within: The enclosing records.

    Raises:
        InvalidArgumentError: No JSON value can be of the hint (`invalid_argument`).
    """
    read = partial(kind_of, for_program=for_program, known=known, within=within)
    hint = getattr(hint, "__value__", hint)  # a `type` alias of Python 3.12
    while hasattr(hint, "__supertype__"):  # a `NewType`
        hint = hint.__supertype__
    if hint is Any:
        return Anything()
    if isinstance(hint, type) and hint in known:
        return known[hint]
    origin, args = get_origin(hint) or hint, get_args(hint)
    if origin is Annotated:
        kinds = [each for each in args[1:] if isinstance(each, Kind)]
        if kinds or for_program:
            return kinds[0] if kinds else read(args[0])
        model_hints = [each.hint for each in args[1:] if isinstance(each, ModelType)]
        return constrained(read((*model_hints, args[0])[0]), args[1:], hint)
    if origin is Literal:
        choices = tuple(each for each in args if each is not None)
        return Choice(choices) if choices == args else OptionalOf(Choice(choices))
    if origin in (Union, types.UnionType):
        records = [arg for arg in args if _is_dataclass(arg)]
        if records and any(
            get_origin(arg) is Mapping for arg in args
        ):  # a program may pass a mapping for the record
            return _record(records[0], read, within)
        kinds = [read(arg) for arg in args if arg is not types.NoneType]
        kind = kinds[0] if len(kinds) == 1 else UnionOf(tuple(kinds))
        return OptionalOf(kind) if len(kinds) < len(args) else kind
    if origin in (list, Sequence):
        return ListOf(read(args[0]) if args else Anything())
    if origin in (set, frozenset) and not for_program:
        return SetOf(read(args[0]) if args else Anything(), origin)
    if origin in (dict, Mapping):
        if args and args[0] is not str:
            raise InvalidArgumentError(f"the keys of {hint} are not strings, which JSON requires")
        return MapOf(read(args[1]) if args else Anything())
    if origin is tuple and args:
        many = args[-1] is Ellipsis
        return TupleOf(tuple(map(read, args[:1] if many else args)), many=many)
    if origin in (Required, NotRequired):
        return read(args[0])
    if is_typeddict(hint):
        return _record(hint, read, within)
    if isinstance(hint, type) and not for_program:
        cls: type[Any] = cast("Any", hint)
        if is_dataclass(cls) or _is_subclass(cls, "pydantic", "BaseModel"):
            return _record(cls, read, within)
        if issubclass(cls, Enum):
            return MemberOf(cls)
        if _is_subclass(cls, "pathlib", "PurePath"):
            return PathOf(cls)
        if _is_subclass(cls, "datetime", "date"):
            return TimeOf(cls)
        if _is_subclass(cls, "uuid", "UUID"):
            return IdOf(cls)
    return InstanceOf(types.NoneType if origin is None else origin)


def _is_dataclass(hint: Any) -> bool:
    return isinstance(hint, type) and is_dataclass(hint)


def _is_subclass(hint: type[Any], module: str, name: str) -> bool:
    """Return True for a subclass of a class whose module may not be imported."""
    base: Any = getattr(sys.modules.get(module), name, None)
    return base is not None and issubclass(hint, base)


class _Field(NamedTuple):
    name: str
    hint: Any
    default: Any
    visible: str
    description: str
    metadata: Sequence[Any] = ()  # the constraints that a Pydantic model checks


def _record(make: type[Any], read: "partial[Kind]", within: tuple[Any, ...]) -> Record:
    if make in within:
        raise InvalidArgumentError(f"{make.__name__} contains itself, which no strict schema allows")
    try:
        hints = get_type_hints(make, include_extras=True)
    except Exception as error:  # noqa: BLE001 - evaluating a string can raise anything
        raise InvalidArgumentError(f"the hints of {make.__name__} cannot be resolved ({error})") from None
    descriptions = read_docstring(make.__doc__).parameters
    members: list[Parameter] = []
    for field in _fields(make, hints):
        kind = constrained(read(field.hint, within=(*within, make)), field.metadata)
        text = descriptions.get(field.name) or field.description
        required = field.default is MISSING
        default = None if required else field.default
        members.append(Parameter(field.visible, kind, text, required, default, field.name))
    return Record(make, tuple(members))


def _fields(make: Any, hints: Mapping[str, Any]) -> list[_Field]:
    if is_typeddict(make):
        defaults = dict.fromkeys(hints) | dict.fromkeys(make.__required_keys__, MISSING)
    elif is_dataclass(make):
        defaults = default_values(make)
    else:
        return [_pydantic_field(name, field) for name, field in make.model_fields.items()]
    return [
        _Field(name, hints[name], default, name, field_description(hints[name]))
        for name, default in defaults.items()
    ]


def _pydantic_field(name: str, field: Any) -> _Field:
    default = MISSING if field.is_required() else field.default if field.default_factory is None else None
    aliases = getattr(field.validation_alias, "choices", [field.validation_alias])  # of an `AliasChoices`
    alias = next((each for each in (*aliases, field.alias) if isinstance(each, str)), name)
    return _Field(name, field.annotation, default, alias, field.description or "", field.metadata)


def default_values(cls: Any) -> dict[str, Any]:
    """Return the default of each field that makes a dataclass, MISSING for a required one."""
    return {
        each.name: each.default if each.default_factory is MISSING else each.default_factory()
        for each in fields(cls)
        if each.init
    }


def resolve_hints(function: Callable[..., Any]) -> tuple[dict[str, Any], dict[str, Exception]]:
    """Return the hints of a function that can be resolved, and the errors of the others, by parameter.

    Hints may be strings, as under `from __future__ import annotations`, with names of the function's module.
    """
    hints: dict[str, Any] = {}
    errors: dict[str, Exception] = {}
    with suppress(Exception):  # most functions: all at once
        return get_type_hints(function, include_extras=True), errors
    plain: Any = inspect.unwrap(function)
    for name, hint in getattr(plain, "__annotations__", {}).items():
        one: Any = SimpleNamespace(__annotations__={name: hint})
        try:
            hints |= get_type_hints(one, dict(getattr(plain, "__globals__", {})), include_extras=True)
        except Exception as error:  # noqa: BLE001 - evaluating a string can raise anything
            errors[name] = error
    return hints, errors
