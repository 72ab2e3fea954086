"""Kinds of values from type hints."""

import inspect
import re
import sys
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import partial
from importlib import import_module
from types import SimpleNamespace
from typing import Annotated, Any, NamedTuple, get_args, get_origin, get_type_hints, is_typeddict

from agentfs.arguments import kinds
from agentfs.arguments.docstrings import read_docstring
from agentfs.arguments.parameters import Kind, Parameter
from agentfs.errors import InvalidArgumentError


class Name(NamedTuple):
    """The name of a parameter that a model sees, in an `Annotated` hint; it need not be an identifier."""

    name: str


def visible_name(hint: Any) -> str:
    """Return the `Name` in an `Annotated` hint, or ""."""
    return next((each.name for each in _metadata(hint) if isinstance(each, Name)), "")


def _metadata(hint: Any) -> tuple[Any, ...]:
    """Return what an `Annotated` hint says besides the type, also one in a union."""
    if get_origin(hint) in (typing.Union, types.UnionType):
        return tuple(each for option in get_args(hint) for each in _metadata(option))
    return get_args(hint)[1:] if get_origin(hint) is Annotated else ()


class ModelType(NamedTuple):
    """The type that a model sees, in an `Annotated` hint of a parameter that accepts more from programs."""

    hint: Any


_BOUND = re.compile(r"(exclusive)?[mM](in|ax)\w+|multipleOf|pattern")  # keywords of JSON Schema
_ISO = "an ISO 8601 date"
# Classes whose values JSON has as text: module, name and description.
_TEXTS = (
    ("datetime", "datetime", f"{_ISO} and time, such as 2026-01-31T09:30:00+01:00"),
    ("datetime", "date", f"{_ISO}, such as 2026-01-31"),
    ("uuid", "UUID", "a UUID, such as 12345678-1234-5678-1234-567812345678"),
)


def kind_of(hint: Any, known: Mapping[Any, Kind] = {}, within: tuple[Any, ...] = ()) -> Kind:
    """Return the kind of a type hint.

    Args:
        hint: The hint. A `ModelType` in `Annotated` replaces it.
        known: The kinds of more classes.
        within: The enclosing records.

    Raises:
        InvalidArgumentError: No JSON value can be of the hint (`invalid_argument`).
    """
    read = partial(kind_of, known=known, within=within)
    hint = getattr(hint, "__value__", hint)  # a `type` alias of Python 3.12
    while hasattr(hint, "__supertype__"):  # a `NewType`
        hint = hint.__supertype__
    origin, args = get_origin(hint) or hint, get_args(hint)
    if isinstance(origin, type) and (kind := known.get(origin) or kinds.SCALARS.get(origin)):
        return kind
    if origin is Annotated:
        model_hints = [each.hint for each in args[1:] if isinstance(each, ModelType)]
        kind = read((*model_hints, args[0])[0])
        return _constrained(kind, hint) if any(map(_is_constraint, args[1:])) else kind
    if origin is typing.Literal:
        choices = tuple(each for each in args if each is not None)
        kind = kinds.Choice({each: each for each in choices})
        return kind if choices == args else kinds.OptionalOf(kind)
    if origin in (typing.Union, types.UnionType):
        options = [read(arg) for arg in args if arg is not types.NoneType]
        kind = options[0] if len(options) == 1 else kinds.UnionOf(tuple(options))
        return kinds.OptionalOf(kind) if len(options) < len(args) else kind
    if origin in (list, Sequence, set, frozenset) or (origin is tuple and Ellipsis in args):
        make: Any = None if origin in (list, Sequence) else origin
        return kinds.ListOf(read(args[0]) if args else kinds.Anything(), make)
    if origin in (dict, Mapping):
        if args and args[0] is not str:
            raise InvalidArgumentError(f"the keys of {hint} are not strings, which JSON requires")
        return kinds.MapOf(read(args[1]) if args else kinds.Anything())
    if origin is tuple and args:
        return kinds.TupleOf(tuple(map(read, args)))
    if origin in (typing.Required, typing.NotRequired):
        return read(args[0])
    return _kind_of_class(hint, read, within)


def _kind_of_class(cls: Any, read: "partial[Kind]", within: tuple[Any, ...]) -> Kind:
    is_class = inspect.isclass(cls)
    if is_typeddict(cls) or (is_class and (is_dataclass(cls) or _is_subclass(cls, "pydantic", "BaseModel"))):
        return _record(cls, read, within)
    if is_class and issubclass(cls, Enum):
        simple = {type(each.value) for each in cls} in ({str}, {int})
        return kinds.Choice({each.value if simple else each.name: each for each in cls})
    if _is_subclass(cls, "pathlib", "PurePath"):
        return kinds.PathOf(cls)
    found = next((text for text in _TEXTS if _is_subclass(cls, *text[:2])), None)
    if found is not None:
        return kinds.TextOf(cls, getattr(cls, "fromisoformat", cls), found[2])
    raise InvalidArgumentError(
        f"no schema can be made from {getattr(cls, '__name__', cls)}; use str, int, float, bool, Literal, "
        "Enum, Path, date, datetime, UUID, list, set, tuple, dict, a dataclass, a TypedDict, a Pydantic "
        "model, or a union of them"
    )


def _is_subclass(hint: Any, module: str, name: str) -> bool:
    """Return True for a subclass of a class whose module may not be imported."""
    base: Any = getattr(sys.modules.get(module), name, None)
    return base is not None and inspect.isclass(hint) and issubclass(hint, base)


def _is_constraint(metadata: Any) -> bool:
    package = type(metadata).__module__.partition(".")[0]
    return package == "annotated_types" or (package == "pydantic" and getattr(metadata, "metadata", True))


def _constrained(kind: Kind, hint: Any) -> Kind:
    """Return a kind with the constraints of an `Annotated` hint, which Pydantic reads and checks."""
    if isinstance(kind, kinds.OptionalOf):
        some = next(each for each in get_args(get_args(hint)[0]) if each is not types.NoneType)
        return kinds.OptionalOf(_constrained(kind.kind, Annotated[(some, *_metadata(hint))]))
    try:
        adapter = import_module("pydantic").TypeAdapter(hint)
        schema: dict[str, Any] = adapter.json_schema()
    except Exception as error:  # noqa: BLE001 - without Pydantic, or for what it does not take
        raise InvalidArgumentError(f"Pydantic cannot read its constraints ({error})") from None
    limited = copy(kind)
    limited.check = adapter.validate_python
    if bounds := ", ".join(f"{name} {bound}" for name, bound in schema.items() if _BOUND.fullmatch(name)):
        limited.description, limited.says_more = f"{kind.description} ({bounds})", True
    return limited


def field_description(hint: Any) -> str:
    """Return the text in an `Annotated` hint, or the description of a Pydantic `Field` in it, or ""."""
    texts = (each if isinstance(each, str) else getattr(each, "description", "") for each in _metadata(hint))
    return next((each for each in texts if isinstance(each, str) and each), "")


def _record(make: Any, read: "partial[Kind]", within: tuple[Any, ...]) -> kinds.Record:
    if make in within:
        raise InvalidArgumentError(f"{make.__name__} contains itself, which no strict schema allows")
    try:
        hints = get_type_hints(make, include_extras=True)
    except Exception as error:  # noqa: BLE001 - evaluating a string can raise anything
        raise InvalidArgumentError(f"the hints of {make.__name__} cannot be resolved ({error})") from None
    descriptions = read_docstring(make.__doc__).parameters
    members: list[Parameter] = []
    for name, shown, hint, default in _members(make, hints):
        text, required = descriptions.get(name) or field_description(hint), default is MISSING
        kind = read(hint, within=(*within, make))
        members.append(Parameter(shown, kind, text, required, None if required else default, name))
    return kinds.Record(make, tuple(members))


def _members(make: Any, hints: Mapping[str, Any]) -> Iterator[tuple[str, str, Any, Any]]:
    """Yield the name, the visible name, the hint and the default of each member of a record."""
    if is_typeddict(make):
        for name, hint in hints.items():
            yield name, name, hint, None if name in make.__optional_keys__ else MISSING
    elif is_dataclass(make):
        for each in (each for each in fields(make) if each.init):
            made = each.default if each.default_factory is MISSING else each.default_factory()
            yield each.name, each.name, hints[each.name], made
    else:
        for name, field in make.model_fields.items():
            hint = Annotated[(field.annotation, *field.metadata, field.description)]
            default = None if field.default_factory else field.default
            aliases = getattr(field.validation_alias, "choices", [field.validation_alias])
            shown = next((each for each in (*aliases, field.alias) if isinstance(each, str)), name)
            yield name, shown, hint, MISSING if field.is_required() else default


def resolve_hints(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the hints of a function by parameter; an exception is in place of one that cannot be resolved.

    Hints may be strings, as under `from __future__ import annotations`, with names of the function's module.
    """
    with suppress(Exception):  # most functions: all at once
        return get_type_hints(function, include_extras=True)
    plain: Any = inspect.unwrap(function)
    hints: dict[str, Any] = {}
    for name, hint in getattr(plain, "__annotations__", {}).items():
        one: Any = SimpleNamespace(__annotations__={name: hint})
        try:
            hints |= get_type_hints(one, dict(getattr(plain, "__globals__", {})), include_extras=True)
        except Exception as error:  # noqa: BLE001 - evaluating a string can raise anything
            hints[name] = error
    return hints
