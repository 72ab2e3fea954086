"""Kinds of values, such as an integer or a list: the JSON Schema, the reading and the description of each.

`agentfs.arguments.hints` makes them from type hints.
"""
# ruff: noqa: D102 - `Kind` documents the methods of its subclasses

import json
import math
from collections.abc import Callable, Collection, Mapping
from typing import Any, ClassVar, Literal, cast

from agentfs.arguments.json_text import NotJSONError, parse_json, short_repr
from agentfs.arguments.parameters import (
    ArgumentReader,
    Kind,
    Parameter,
    Schema,
    SchemaRules,
    describe_names,
    object_schema,
    snake_case,
)
from agentfs.errors import InvalidArgumentError
from agentfs.limits import LARGEST


class Anything(Kind):
    """Any value."""

    def schema(self, rules: SchemaRules) -> Schema:
        if rules.closed_only:
            raise InvalidArgumentError("a value of any type has no schema")
        return {}


class InstanceOf(Kind):
    """An instance of a class that is not made from JSON."""

    def __init__(self, type_: Any) -> None:
        self._type = type_

    def fits(self, value: Any) -> bool:
        return isinstance(value, self._type)


class Scalar(Kind):
    """A value of one of the basic types of JSON Schema."""

    name: ClassVar[str]

    def schema(self, rules: SchemaRules) -> Schema:
        del rules
        return {"type": self.name}

    def fits(self, value: Any) -> bool:
        return isinstance(value, self.hint)

    def convert(self, value: Any, where: str, reader: ArgumentReader) -> Any:
        meant = self.meant(value)
        if not self.fits(meant):
            return None
        reader.add_coercion(where, f"{short_repr(value)} as {self.name}")
        return meant

    def meant(self, value: Any) -> Any:
        """Return what another value can mean: here, the number or the boolean in a text."""
        try:
            return parse_json(value.lower()) if isinstance(value, str) else None
        except NotJSONError:
            return None


class String(Scalar):
    """A text."""

    name, description, hint = "string", "a string", str

    def meant(self, value: Any) -> Any:
        return str(value) if is_integer(value) else None


class Integer(Scalar):
    """An integer of at most 64 bits: no file has more lines."""

    name, description, hint = "integer", "an integer", int

    def fits(self, value: Any) -> bool:
        return is_integer(value)

    def meant(self, value: Any) -> Any:
        if isinstance(value, str):
            value = None if "e" in value.lower() else super().meant(value)
        return int(value) if isinstance(value, float) and value.is_integer() else value


class Number(Scalar):
    """A finite number."""

    name, description, hint = "number", "a number", float

    def fits(self, value: Any) -> bool:
        return is_integer(value) or (isinstance(value, float) and math.isfinite(value))


class Boolean(Scalar):
    """True or false; numbers are not accepted."""

    name, description, hint = "boolean", "true or false", bool


class TextOf(Scalar):
    """A value that JSON has as text, such as a date; `parse` raises ValueError for other text."""

    name, hint, says_more = "string", str, True

    def __init__(self, type_: type[Any], parse: Callable[[str], Any], description: str) -> None:
        self.type, self.parse, self.description = type_, parse, description

    def fits(self, value: Any) -> bool:
        return isinstance(value, (str, self.type))

    def read_inside(self, value: Any, where: str, reader: ArgumentReader) -> Any:
        try:
            return self.parse(value) if isinstance(value, str) else value
        except ValueError:
            return reader.mismatch(self, value, where)


class PathOf(TextOf):
    """A `pathlib.Path`, as it was sent: neither resolved nor confined."""

    says_more = False

    def __init__(self, type_: type[Any]) -> None:
        super().__init__(type_, self._path, "a path")

    def _path(self, text: str) -> Any:
        if "\0" in text:
            raise ValueError("a path has no NUL")
        return self.type(text)


SCALARS: dict[Any, Kind] = {str: String(), int: Integer(), float: Number(), bool: Boolean(), Any: Anything()}


class Choice(Kind):
    """One of a few values, all of them strings or all of them integers.

    `values` are the values that they become. An Enum has the values of its members if they are strings or
    integers, else their names.
    """

    def __init__(self, values: Mapping[Any, Any]) -> None:
        self.choices, self._values = tuple(values), values
        types_found = {*map(type, values)}
        if types_found not in ({str}, {int}):
            raise InvalidArgumentError(f"the choices {self.choices} are neither all strings nor all integers")
        (self.type,) = types_found
        self.description = f"one of {', '.join(map(json.dumps, values))}"
        self.hint = Literal[self.choices]
        self.check = lambda read: values.get(read, read)

    def schema(self, rules: SchemaRules) -> Schema:
        schema = SCALARS[self.type].schema(rules)
        return schema if rules.plain and self.type is int else {**schema, "enum": [*self.choices]}

    def fits(self, value: Any) -> bool:
        is_choice = type(value) is self.type and value in self.choices
        return is_choice or any(value is each for each in self._values.values())

    def convert(self, value: Any, where: str, reader: ArgumentReader) -> Any:
        number = Integer().meant(value)
        matching = [choice for choice in self.choices if is_integer(number) and number == choice]
        if isinstance(value, str) and not matching:
            named = [each for each, made in self._values.items() if getattr(made, "name", None) == value]
            texts = [each for each in self.choices if isinstance(each, str)]
            matching = named or [each for each in texts if snake_case(each) == snake_case(value)]
        if len(matching) != 1:
            return None
        reader.add_coercion(where, f"{short_repr(value)} as {short_repr(matching[0])}")
        return matching[0]


class ListOf(Kind):
    """A list of values of one kind; `make` turns it into a set or a tuple."""

    def __init__(self, item: Kind, make: Callable[[list[Any]], Any] | None = None) -> None:
        self.item, self.parts, self.choices, self.check = item, (item,), item.choices, make
        self.description = f"a list, each item {item.description}"
        self.hint = list.__class_getitem__(item.hint)
        self.opening = ("[", "{") if isinstance(item, (Record, MapOf)) else ("[",)

    def schema(self, rules: SchemaRules) -> Schema:
        return {"type": "array", "items": self.item.schema(rules)}

    def fits(self, value: Any) -> bool:
        return has_items(value)

    def read_inside(self, value: Any, where: str, reader: ArgumentReader) -> Any:
        items: list[Any] = []
        for index, item in enumerate(value):
            items.append(self.item.read(item, f"{where}[{index}]", reader))
            if reader.is_full:
                break
        return items

    def convert(self, value: Any, where: str, reader: ArgumentReader) -> Any:
        trial = reader.trial()
        item = self.item.read(value, f"{where}[0]", trial)
        if value is None or (trial.problems and not isinstance(value, Mapping)):
            return None
        reader.add_coercion(where, "one item as a list")
        reader.adopt(trial)
        return [item]


class TupleOf(Kind):
    """A tuple of values of these kinds; one of any length is a `ListOf`."""

    opening, hint, says_more = ("[",), list, True

    def __init__(self, items: tuple[Kind, ...]) -> None:
        self.description = f"a list of {', '.join(item.description for item in items)}"
        self.parts = items

    def schema(self, rules: SchemaRules) -> Schema:
        return {"type": "array", "items": UnionOf(self.parts).schema(rules)}

    def fits(self, value: Any) -> bool:
        return has_items(value) and len(value) == len(self.parts)

    def read_inside(self, value: Any, where: str, reader: ArgumentReader) -> Any:
        pairs = enumerate(zip(self.parts, value, strict=True))
        return tuple(kind.read(item, f"{where}[{index}]", reader) for index, (kind, item) in pairs)


class MapOf(Kind):
    """An object with any names, whose values are of one kind."""

    description, opening = "an object", ("{",)

    def __init__(self, value: Kind) -> None:
        self.value, self.parts = value, (value,)
        self.hint = dict.__class_getitem__((str, value.hint))

    def schema(self, rules: SchemaRules) -> Schema:
        if rules.closed_only:
            raise InvalidArgumentError("an object with free names cannot be closed")
        return {"type": "object", "additionalProperties": self.value.schema(rules)}

    def fits(self, value: Any) -> bool:
        return isinstance(value, Mapping) and all(isinstance(name, str) for name in cast("Any", value))

    def read_inside(self, value: Any, where: str, reader: ArgumentReader) -> Any:
        return {name: self.value.read(each, f"{where}.{name[:60]}", reader) for name, each in value.items()}


class Record(Kind):
    """An object with known members; `make` is the dataclass, TypedDict or Pydantic model that it becomes."""

    opening = ("{",)

    def __init__(self, make: type[Any], members: tuple[Parameter, ...]) -> None:
        self.make = self.hint = make
        self.members, self.check = members, self._made
        self.description = f"an object with {describe_names(members)}"

    def schema(self, rules: SchemaRules) -> Schema:
        return object_schema(self.members, rules)

    def fits(self, value: Any) -> bool:
        return isinstance(value, Mapping) or type(value) is self.make

    def read_inside(self, value: Any, where: str, reader: ArgumentReader) -> Any:
        return value if type(value) is self.make else reader.read_members(self.members, value, f"{where}.")

    def _made(self, read: Any) -> Any:
        return read if type(read) is self.make else self.make(**read)


class UnionOf(Kind):
    """A value of one of several kinds; `plainest` replaces it if a provider accepts no unions."""

    def __init__(self, options: tuple[Kind, ...]) -> None:
        self.parts = options
        self.description = " or ".join(option.description for option in options)
        self.plainest = next((option for option in options if isinstance(option, Scalar)), options[0])
        self.hint = self.plainest.hint
        lists = [option for option in options if isinstance(option, ListOf)]
        self.opening = tuple(
            '["' if isinstance(each.item, String) else "[" for each in lists
        )  # `[a]` is a glob

    def schema(self, rules: SchemaRules) -> Schema:
        if rules.plain:
            return self.plainest.schema(rules)
        schemas = [option.schema(rules) for option in self.parts]
        unique = [schema for index, schema in enumerate(schemas) if schema not in schemas[:index]]
        return {"anyOf": unique} if len(unique) > 1 else unique[0]

    def fits(self, value: Any) -> bool:
        return any(option.fits(value) for option in self.parts)

    def read_plain(self, value: Any, where: str, reader: ArgumentReader) -> Any:
        value = reader.parse(self, value, where) if self.opening else value
        fitting = [option for option in self.parts if option.fits(value)]
        trials: list[ArgumentReader] = []
        for option in fitting or self.parts:
            trials.append(reader.trial())
            read = option.read(value, where, trials[-1])
            if not trials[-1].problems:
                reader.adopt(trials[-1])
                return read
        return reader.adopt(trials[0]) if fitting else reader.mismatch(self, value, where)


class TextOrList(UnionOf):
    """A text, or a list of texts, which models of other products send; the schema shows one text."""

    def __init__(self) -> None:
        super().__init__((String(), ListOf(String())))

    def schema(self, rules: SchemaRules) -> Schema:
        return self.plainest.schema(rules)


SCALARS[TextOrList] = TextOrList()


class OptionalOf(Kind):
    """A value of a kind, or null."""

    takes_null = True

    def __init__(self, kind: Kind) -> None:
        self.kind, self.parts, self.choices = kind, (kind,), kind.choices
        self.description = f"{kind.description} or null"
        self.hint = kind.hint if kind.hint is Any else kind.hint | None

    def schema(self, rules: SchemaRules) -> Schema:
        return self.kind.nullable(rules)

    def fits(self, value: Any) -> bool:
        return value is None or self.kind.fits(value)

    def read_plain(self, value: Any, where: str, reader: ArgumentReader) -> Any:
        return None if value is None else self.kind.read(value, where, reader)


def has_items(value: Any) -> bool:
    """Return True for a collection of items: neither a text nor an object."""
    return isinstance(value, Collection) and not isinstance(value, (str, bytes, bytearray, Mapping))


def is_integer(value: Any) -> bool:
    """Return True if a value is an integer of at most 64 bits."""
    return isinstance(value, int) and not isinstance(value, bool) and -LARGEST <= value <= LARGEST


def as_text(value: Any) -> Any:
    """Return a path as text, also in a list; return any other value as it is."""
    items: Any = value
    if type(value) is list:
        return [*map(as_text, items)]
    return items.__fspath__() if hasattr(items, "__fspath__") else value  # faster than `isinstance`
