"""Constraints in `Annotated` hints, such as `Ge(1)` of annotated_types and `Field(ge=1)` of Pydantic.

Neither package is imported here, because a program that uses one has imported it.
"""
# ruff: noqa: D102 - `Kind` documents the methods of its subclasses

import math
import operator
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from typing import Annotated, Any, get_args, get_origin

from agentfs.arguments.kinds import ArgumentReader, Kind, ListOf, OptionalOf, Scalar, Schema, SchemaRules


def _left_to_pydantic(_: Any, __: Any) -> bool:
    return True


# The attributes of constraints, each with its keyword in JSON Schema, its text and its test.
_LIMITS: dict[str, tuple[str, str, Callable[[Any, Any], object]]] = {
    "ge": ("minimum", "at least {}", operator.ge),
    "gt": ("exclusiveMinimum", "more than {}", operator.gt),
    "le": ("maximum", "at most {}", operator.le),
    "lt": ("exclusiveMaximum", "less than {}", operator.lt),
    "multiple_of": ("multipleOf", "a multiple of {}", lambda value, of: value % of == 0),
    "min_length": ("minLength", "of length {} or more", lambda value, least: len(value) >= least),
    "max_length": ("maxLength", "of length {} or less", lambda value, most: len(value) <= most),
    "pattern": ("pattern", "matching {}", _left_to_pydantic),
}


class Constrained(Kind):
    """A kind with constraints; `constrained` joins this class with that of the kind without them."""

    limits: Mapping[str, Any] = {}  # by keyword; a limit that no schema can have, by its attribute
    checked: Sequence[tuple[str, Any]] = ()  # the limits that are checked here, by attribute
    validators: Sequence[Callable[[Any], Any]] = ()  # of Pydantic

    @property
    def keywords(self) -> frozenset[str]:
        return super().keywords | self.limits.keys()

    def schema(self, rules: SchemaRules) -> Schema:
        shown = {keyword: bound for keyword, bound in self.limits.items() if keyword in rules.keywords}
        return {**super().schema(rules), **shown}

    def read(self, value: Any, where: str, reader: ArgumentReader) -> Any:
        known_problems = len(reader.problems)
        read = super().read(value, where, reader)
        if len(reader.problems) > known_problems:
            return read
        if not all(_LIMITS[name][2](read, bound) for name, bound in self.checked):
            return reader.mismatch(self, value, where)
        try:
            for validate in self.validators:
                read = validate(read)
        except ValueError as error:
            return reader.add_failure(where, error)
        return read


def constrained(kind: Kind, metadata: Sequence[Any], hint: Any = None) -> Kind:
    """Return a kind with the constraints of a hint.

    Pydantic checks the constraints if one of them is its own, such as a validator.

    Args:
        kind: The kind without them.
        metadata: The metadata of the hint.
        hint: The `Annotated` hint; None for a field of a Pydantic model, whose constraints Pydantic checks.
    """
    if isinstance(kind, OptionalOf):
        return OptionalOf(constrained(kind.kind, metadata, hint))
    parts = [part for each in _known(metadata) for part in getattr(each, "metadata", [each])]
    found = [(name, getattr(part, name, None)) for part in parts for name in _LIMITS]
    bounds = [(name, getattr(bound, "pattern", bound)) for name, bound in found if bound is not None]
    by_pydantic = any(_package(part) == "pydantic" for part in parts)
    if not (bounds or (by_pydantic and hint)):
        return kind
    bases = (type(kind),) if isinstance(kind, Constrained) else (Constrained, type(kind))
    other: Any = copy(kind)
    other.__class__ = type(f"Constrained{type(kind).__name__}", bases, {})
    other.limits = {**other.limits, **{_keyword(kind, *each): each[1] for each in bounds}}
    if by_pydantic and hint:
        other.validators = (*other.validators, sys.modules["pydantic"].TypeAdapter(hint).validate_python)
    elif hint:
        other.checked = (*other.checked, *bounds)
    texts = [_LIMITS[name][1].format(bound) for name, bound in bounds]
    other.description = ", ".join(filter(None, (kind.description, " and ".join(texts))))
    return other  # type: ignore[no-any-return] # of the class that was just made


def field_description(hint: Any) -> str:
    """Return the text in an `Annotated` hint, or the description of a Pydantic `Field` in it, or ""."""
    metadata = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
    texts = (each for each in metadata if isinstance(each, str))
    described = (text for each in _known(metadata) if (text := getattr(each, "description", None)))
    return next(texts, "") or next(described, "")


def _known(metadata: Iterable[Any]) -> list[Any]:
    return [each for each in metadata if _package(each) in ("annotated_types", "pydantic")]


def _package(metadata: Any) -> str:
    return type(metadata).__module__.partition(".")[0]


def _keyword(kind: Kind, name: str, bound: Any) -> str:
    is_json = isinstance(bound, (int, float, str)) and bound not in (math.inf, -math.inf)
    if not (is_json and isinstance(kind, (Scalar, ListOf))):
        return name
    return _LIMITS[name][0].replace("Length", "Items" if isinstance(kind, ListOf) else "Length")
