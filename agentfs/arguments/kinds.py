"""Kinds of values, such as an integer or a list: the JSON Schema, the reading and the description of each.

`agentfs.arguments.hints` makes them from type hints.
"""
# ruff: noqa: D102 - `Kind` documents the methods of its subclasses

import json
import math
import os
import re
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from keyword import iskeyword
from typing import Any, ClassVar, Literal, NamedTuple, cast

from agentfs.errors import AgentFSError, InvalidArgumentError
from agentfs.limits import LARGEST
from agentfs.results import Coercion
from agentfs.text.nearest import nearest

Schema = dict[str, Any]
_INTEGER = re.compile(r"\s*([+-]?[0-9]{1,19})(\.0*)?\s*")
# `float` does not strip `\x1f`, which `\s` matches without re.ASCII.
_NUMBER = re.compile(
    r"\s*[+-]?([0-9]{1,300}(\.[0-9]{0,300})?|\.[0-9]{1,300})([eE][+-]?[0-9]{1,3})?\s*", re.ASCII
)
_MAX_PROBLEMS = 100  # reading a list stops after this many
_fspath: Callable[[Any], Any] = os.fspath


# The keywords of constraints that Gemini takes, and all of them.
GEMINI_KEYWORDS = frozenset({"minimum", "maximum", "minItems", "maxItems"})
KEYWORDS = GEMINI_KEYWORDS | {
    *("exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    *("minLength", "maxLength", "pattern"),
}


class SchemaRules(NamedTuple):
    """The rules for the schemas of a format."""

    every_required: bool = False  # optional parameters become required and nullable
    flags_required: bool = False  # boolean parameters are required
    unions: bool = True  # if False, the plainest option of a union replaces it
    closed_only: bool = False  # objects with free names and values of any type are refused
    string_enums: bool = False  # only strings can be enumerated
    formats: bool = True  # `format` is allowed; if False, the description says how to write a value
    identifiers: bool = False  # parameter names consist of letters, digits and underscores
    keywords: frozenset[str] = KEYWORDS  # of constraints; the description has the others


class ArgumentProblem(NamedTuple):
    """One problem of the arguments; the message is a clause of a sentence."""

    parameter: str
    message: str


class ArgumentReader:
    """Reads the arguments of a program strictly and collects the problems.

    `where` is a parameter or a part of one, such as `edits[0].path`. `LenientReader` reads what models send.
    """

    lenient: ClassVar[bool] = False

    def __init__(self) -> None:
        self.coercions: list[Coercion] = []
        self.problems: list[ArgumentProblem] = []

    def trial(self) -> "ArgumentReader":
        """Return a reader of the same kind, whose results `adopt` takes over or which is dropped."""
        return ArgumentReader()

    def read_members(
        self, members: Sequence["Parameter"], given: Mapping[Any, Any], prefix: str = ""
    ) -> dict[str, Any]:
        """Return the values given for parameters or members; defaults are left out."""
        named = self.assign_names(members, given, prefix)
        values: dict[str, Any] = {}
        for member in members:
            where = f"{prefix}{member.name}"
            if member.name in named:
                values[member.name] = member.kind.read(named[member.name], where, self)
            elif member.required:
                self.add_problem(where, f"`{where}` is missing ({member.value_kind.description})")
        return values

    def assign_names(
        self, members: Sequence["Parameter"], given: Mapping[Any, Any], prefix: str
    ) -> Mapping[str, Any]:
        """Return the given values under the names of the members; unknown names are problems."""
        names = {member.name for member in members}
        for name in given:
            if name not in names:
                self.add_unknown(name, prefix)
        return given

    def parse(self, kind: "Kind", value: Any, where: str) -> Any:
        """Return the value as it is; a lenient reader decodes JSON text."""
        del kind, where
        return value

    def mismatch(self, kind: "Kind", value: Any, where: str) -> None:
        """Record that a value is not of a kind."""
        message = f"`{where}` must be {kind.description}, not {short_repr(value)}{kind.advice(value)}"
        self.add_problem(where, message)

    def add_unknown(self, name: Any, prefix: str, near: str | None = None) -> None:
        """Record an unknown name of a parameter or member."""
        meant = f" (did you mean `{near}`?)" if near else ""
        lacking = f"`{prefix[:-1]}` has no member" if prefix else "there is no parameter"
        self.add_problem(f"{prefix}{str(name)[:60]}", f"{lacking} {short_repr(name)}{meant}")

    def add_coercion(self, where: str, rule: str) -> None:
        """Record that a value was converted."""
        self.coercions.append(Coercion(where, rule))

    def add_problem(self, where: str, message: str) -> None:
        """Record a problem, as a clause of a sentence."""
        self.problems.append(ArgumentProblem(where, message))

    def add_failure(self, where: str, error: Exception) -> None:
        """Record the problems of checking or making a value, each at its place in the value."""
        for place, message in _problems(error):
            self.add_problem(f"{where}{place}", f"`{where}{place}`: {message.rstrip('.')}")

    def adopt(self, trial: "ArgumentReader") -> None:
        """Add the coercions and problems of a reader that tried one alternative."""
        self.coercions += trial.coercions
        self.problems += trial.problems


class Kind:
    """One kind of value. A subclass defines at least `schema`, `description` and `fits`.

    Attributes:
        description: The completion of "must be …" in an error.
        hint: A type hint for frameworks: no union except with None.
        exact: Types whose values are always of this kind.
        parts: The kinds of the values inside a value.
        choices: The values, if there are only a few.
        opening: The characters that JSON text of a value begins with.
        noun: The name of a value decoded from JSON text, for a coercion.
    """

    description: str = "any value"
    hint: Any = Any
    exact: frozenset[type] = frozenset()
    parts: tuple["Kind", ...] = ()
    choices: tuple[Any, ...] = ()
    opening: tuple[str, ...] = ()
    noun: ClassVar[str] = ""

    @property
    def keywords(self) -> frozenset[str]:
        """The JSON Schema keywords of its constraints, except those of the members of a record."""
        return frozenset[str]().union(*(part.keywords for part in self.parts))

    def schema(self, rules: SchemaRules) -> Schema:
        """Return the JSON Schema; raise `invalid_argument` if there is none."""
        raise NotImplementedError

    def nullable(self, rules: SchemaRules) -> Schema:
        """Return the JSON Schema of a value or null."""
        schema = self.schema(rules)
        if "anyOf" in schema:
            return {"anyOf": [*schema["anyOf"], {"type": "null"}]}
        if schema and (rules.unions and schema.keys() != {"type"}):
            return {"anyOf": [schema, {"type": "null"}]}
        if "enum" in schema:  # dropped, because it would have to contain null, which is not a string
            schema = {"type": schema["type"]}
        return {**schema, "type": [schema["type"], "null"]} if schema else schema

    def advice(self, value: Any) -> str:
        """Return a suggestion to add to the error about a value."""
        del value
        return ""

    def fits(self, value: Any) -> bool:
        """Return True if a value has the outer type; the values inside are not checked."""
        del value
        return True

    def read(self, value: Any, where: str, reader: ArgumentReader) -> Any:
        """Return a value as one of this kind, or None after a problem was recorded."""
        if self.opening:
            value = reader.parse(self, value, where)
        if self.fits(value):
            return self.read_inside(value, where, reader)
        if reader.lenient and (converted := self.convert(value, where, reader)) is not None:
            return converted
        return reader.mismatch(self, value, where)

    def read_inside(self, value: Any, where: str, reader: ArgumentReader) -> Any:
        """Return a value that fits, after reading its parts."""
        del where, reader
        return value

    def convert(self, value: Any, where: str, reader: ArgumentReader) -> Any:
        """Convert an unambiguous value and record the coercion; return None for any other value."""
        del value, where, reader

    def walk(self) -> Iterator["Kind"]:
        """Yield this kind and every kind inside it."""
        yield self
        for part in self.parts:
            yield from part.walk()


class Anything(Kind):
    """Any value."""

    def schema(self, rules: SchemaRules) -> Schema:
        if rules.closed_only:
            raise InvalidArgumentError("a value of any type has no schema")
        return {}


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
        if meant is not None:
            reader.add_coercion(where, f"{short_repr(value)} as {self.name}")
        return meant

    def meant(self, value: Any) -> Any:
        """Return the only value of this kind that another value can mean, or None."""
        raise NotImplementedError


class String(Scalar):
    """A text."""

    name, description, hint, exact = "string", "a string", str, frozenset({str})

    def meant(self, value: Any) -> str | None:
        return str(value) if is_integer(value) else None


class Integer(Scalar):
    """An integer of at most 64 bits: no file has more lines."""

    name, description, hint = "integer", "an integer", int

    def fits(self, value: Any) -> bool:
        return is_integer(value)

    def meant(self, value: Any) -> int | None:
        number: int | None = None
        if isinstance(value, float) and value.is_integer():
            number = int(value)
        elif isinstance(value, str) and (found := _INTEGER.fullmatch(value)):
            number = int(found[1])
        return number if is_integer(number) else None


class Number(Scalar):
    """A finite number."""

    name, description, hint, exact = "number", "a number", float, frozenset({float})

    def fits(self, value: Any) -> bool:
        return is_integer(value) or (isinstance(value, float) and math.isfinite(value))

    def meant(self, value: Any) -> float | None:
        number = float(value) if isinstance(value, str) and _NUMBER.fullmatch(value) else math.inf
        return number if math.isfinite(number) else None


class Boolean(Scalar):
    """True or false; numbers are not accepted."""

    name, description, hint, exact = "boolean", "true or false", bool, frozenset({bool})

    def meant(self, value: Any) -> bool | None:
        return {"true": True, "false": False}.get(value.strip().lower()) if isinstance(value, str) else None


class TextOf(Scalar):
    """A value that JSON has as text; `parse` returns it, or raises ValueError."""

    name, hint = "string", str
    format: str = ""

    def __init__(self, type_: type[Any]) -> None:
        self.type = type_

    def parse(self, text: str) -> Any:
        raise NotImplementedError

    def schema(self, rules: SchemaRules) -> Schema:
        schema = super().schema(rules)
        return {**schema, "format": self.format} if self.format and rules.formats else schema

    def fits(self, value: Any) -> bool:
        return isinstance(value, (str, self.type))

    def read_inside(self, value: Any, where: str, reader: ArgumentReader) -> Any:
        try:
            return self.parse(value) if isinstance(value, str) else value
        except ValueError:
            return reader.mismatch(self, value, where)

    def meant(self, value: Any) -> None:
        del value


class PathOf(TextOf):
    """A `pathlib.Path`, as it was sent: neither resolved nor confined."""

    description = "a path"

    def parse(self, text: str) -> Any:
        if "\0" in text:
            raise ValueError("a path has no NUL")
        return self.type(text)


class TimeOf(TextOf):
    """A `date` or `datetime`, in ISO 8601."""

    def __init__(self, type_: type[Any]) -> None:
        super().__init__(type_)
        with_time = hasattr(type_, "hour")
        self.format = "date-time" if with_time else "date"
        example = "2026-01-31T09:30:00+01:00" if with_time else "2026-01-31"
        self.description = f"an ISO 8601 {'date and time' if with_time else 'date'}, such as {example}"

    def parse(self, text: str) -> Any:
        return self.type.fromisoformat(text.strip())


class IdOf(TextOf):
    """A `uuid.UUID`."""

    format = "uuid"
    description = "a UUID, such as 12345678-1234-5678-1234-567812345678"

    def parse(self, text: str) -> Any:
        return self.type(text.strip())


SCALARS: dict[Any, Kind] = {str: String(), int: Integer(), float: Number(), bool: Boolean()}


class Choice(Kind):
    """One of a few values, all of them strings or all of them integers."""

    def __init__(self, choices: tuple[Any, ...]) -> None:
        types_found = {*map(type, choices)}
        if types_found not in ({str}, {int}):
            raise InvalidArgumentError(f"the choices {choices} are neither all strings nor all integers")
        self.choices = choices
        self.description = f"one of {', '.join(map(json.dumps, choices))}"
        (self.type,) = types_found
        self.hint = Literal[choices]

    def schema(self, rules: SchemaRules) -> Schema:
        schema = SCALARS[self.type].schema(rules)
        return schema if rules.string_enums and self.type is int else {**schema, "enum": list(self.choices)}

    def fits(self, value: Any) -> bool:
        return type(value) is self.type and value in self.choices

    def convert(self, value: Any, where: str, reader: ArgumentReader) -> Any:
        plain = Integer().meant(value) if self.type is int else _plain(value)
        matching = [choice for choice in self.choices if plain in (choice, _plain(choice))]
        if plain is None or len(matching) != 1:
            return None
        reader.add_coercion(where, f"{short_repr(value)} as {short_repr(matching[0])}")
        return matching[0]

    def advice(self, value: Any) -> str:
        near = nearest(_plain(value) or "", self.choices) if self.type is str else None
        return f" (did you mean {short_repr(near)}?)" if near else ""


class MemberOf(Choice):
    """A member of an Enum: its value in JSON if all values are strings or all are integers, else its name."""

    def __init__(self, type_: type[Enum]) -> None:
        self._enum = type_
        self._names = {each.name: each for each in type_}
        simple = {type(each.value) for each in type_} in ({str}, {int})
        self._members = {each.value: each for each in type_} if simple else self._names
        super().__init__(tuple(self._members))

    def fits(self, value: Any) -> bool:
        return super().fits(value) or isinstance(value, self._enum)

    def read_inside(self, value: Any, where: str, reader: ArgumentReader) -> Any:
        del where, reader
        return value if isinstance(value, self._enum) else self._members[value]

    def convert(self, value: Any, where: str, reader: ArgumentReader) -> Any:
        if isinstance(value, str) and value in self._names:
            reader.add_coercion(where, f"{short_repr(value)} as {short_repr(self._names[value].value)}")
            return self._names[value]
        choice = super().convert(value, where, reader)
        return None if choice is None else self._members[choice]


class ListOf(Kind):
    """A list of values of one kind."""

    noun = "a list"

    def __init__(self, item: Kind) -> None:
        self.item, self.parts, self.choices = item, (item,), item.choices
        self.description = f"a list, each item {item.description}"
        self.hint = list.__class_getitem__(item.hint)
        self.opening = ("[", "{") if isinstance(item, (Record, MapOf)) else ("[",)

    def schema(self, rules: SchemaRules) -> Schema:
        return {"type": "array", "items": self.item.schema(rules)}

    def fits(self, value: Any) -> bool:
        return _is_sequence(value)

    def read_inside(self, value: Any, where: str, reader: ArgumentReader) -> Any:
        items: list[Any] = []
        for index, item in enumerate(value):
            items.append(self.item.read(item, f"{where}[{index}]", reader))
            if len(reader.problems) > _MAX_PROBLEMS:
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


class SetOf(ListOf):
    """A set or frozenset, which JSON has as a list."""

    def __init__(self, item: Kind, make: type[Any]) -> None:
        super().__init__(item)
        self._make = make

    def fits(self, value: Any) -> bool:
        return super().fits(value) or isinstance(value, (set, frozenset))

    def read_inside(self, value: Any, where: str, reader: ArgumentReader) -> Any:
        known_problems = len(reader.problems)
        items = super().read_inside(value, where, reader)
        return items if len(reader.problems) > known_problems else self._make(items)

    def convert(self, value: Any, where: str, reader: ArgumentReader) -> Any:
        items = super().convert(value, where, reader)
        return None if items is None else self._make(items)


class TupleOf(Kind):
    """A tuple of values of these kinds; with `many`, of any number of values of the first kind."""

    noun, opening, hint = "a list", ("[",), list

    def __init__(self, items: tuple[Kind, ...], *, many: bool) -> None:
        described = ", ".join(item.description for item in items)
        self.description = f"a list of {described}{', …' if many else ''}"
        self.parts, self.many = items, many

    @property
    def keywords(self) -> frozenset[str]:
        own = frozenset[str]() if self.many else frozenset({"minItems", "maxItems"})
        return super().keywords | own

    def schema(self, rules: SchemaRules) -> Schema:
        count = {} if self.many else {"minItems": len(self.parts), "maxItems": len(self.parts)}
        shown = {keyword: bound for keyword, bound in count.items() if keyword in rules.keywords}
        return {"type": "array", "items": UnionOf(self.parts).schema(rules), **shown}

    def fits(self, value: Any) -> bool:
        return _is_sequence(value) and (self.many or len(value) == len(self.parts))

    def read_inside(self, value: Any, where: str, reader: ArgumentReader) -> Any:
        kinds = self.parts * len(value) if self.many else self.parts
        pairs = enumerate(zip(kinds, value, strict=True))
        return tuple(kind.read(item, f"{where}[{index}]", reader) for index, (kind, item) in pairs)


class MapOf(Kind):
    """An object with any names, whose values are of one kind."""

    noun = description = "an object"
    opening = ("{",)

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

    noun, opening = "an object", ("{",)

    def __init__(self, make: type[Any], members: tuple["Parameter", ...]) -> None:
        self.make = self.hint = make
        self.description = f"an object with {describe_names(members)}"
        self.members, self.parts = members, tuple(member.kind for member in members)

    @property
    def keywords(self) -> frozenset[str]:
        return frozenset()

    def schema(self, rules: SchemaRules) -> Schema:
        return object_schema(self.members, rules)

    def fits(self, value: Any) -> bool:
        return isinstance(value, Mapping) or type(value) is self.make

    def read_inside(self, value: Any, where: str, reader: ArgumentReader) -> Any:
        made = type(value) is self.make
        given = {each.name: getattr(value, each.target) for each in self.members} if made else value
        known_problems = len(reader.problems)
        members = reader.read_members(self.members, given, f"{where}.")
        if made or len(reader.problems) > known_problems:
            return value
        try:
            return self.make(**members)
        except (AgentFSError, TypeError, ValueError) as error:
            return reader.add_failure(where, error)


class UnionOf(Kind):
    """A value of one of several kinds; `plainest` replaces it if a provider accepts no unions."""

    noun = "a list"

    def __init__(self, options: tuple[Kind, ...]) -> None:
        self.parts = options
        self.description = " or ".join(option.description for option in options)
        self.exact = frozenset[type]().union(*(option.exact for option in options))
        self.plainest = next((option for option in options if isinstance(option, Scalar)), options[0])
        self.hint = self.plainest.hint
        self.opening = ("[",) if any(isinstance(option, ListOf) for option in options) else ()

    def schema(self, rules: SchemaRules) -> Schema:
        if not rules.unions:
            return self.plainest.schema(rules)
        schemas = [option.schema(rules) for option in self.parts]
        unique = [schema for index, schema in enumerate(schemas) if schema not in schemas[:index]]
        return {"anyOf": unique} if len(unique) > 1 else unique[0]

    def fits(self, value: Any) -> bool:
        return any(option.fits(value) for option in self.parts)

    def read(self, value: Any, where: str, reader: ArgumentReader) -> Any:
        value = reader.parse(self, value, where) if self.opening else value
        fitting = [option for option in self.parts if option.fits(value)]
        if len(fitting) == 1:
            return fitting[0].read(value, where, reader)
        trials: list[ArgumentReader] = []
        for option in fitting or (self.parts if reader.lenient else ()):
            trials.append(reader.trial())
            read = option.read(value, where, trials[-1])
            if not trials[-1].problems:
                reader.adopt(trials[-1])
                return read
        return reader.adopt(trials[0]) if fitting else reader.mismatch(self, value, where)


class OptionalOf(Kind):
    """A value of a kind, or null."""

    def __init__(self, kind: Kind) -> None:
        self.kind, self.parts, self.choices = kind, (kind,), kind.choices
        self.description = f"{kind.description} or null"
        self.exact = kind.exact | {types.NoneType}
        self.hint = kind.hint if kind.hint is Any else kind.hint | None

    def schema(self, rules: SchemaRules) -> Schema:
        return self.kind.nullable(rules)

    def fits(self, value: Any) -> bool:
        return value is None or self.kind.fits(value)

    def read(self, value: Any, where: str, reader: ArgumentReader) -> Any:
        return None if value is None else self.kind.read(value, where, reader)


class InstanceOf(Kind):
    """An instance of a class, from a program only; a path is read as its text."""

    def __init__(self, type_: Any) -> None:
        self.type = type_
        # `isinstance` takes neither a protocol nor a hint that is not a class: any value fits those.
        checkable = isinstance(type_, type) and not getattr(cast("Any", type_), "_is_protocol", False)
        self._checked: Any = type_ if checkable else object
        self._name: str = getattr(type_, "__name__", None) or repr(type_)
        article = "an" if self._name[0] in "AEIOU" else "a"
        noun = "path" if type_ is os.PathLike else "callable" if type_ is Callable else self._name
        self.description = "bytes" if type_ is bytes else f"{article} {noun}"

    def schema(self, rules: SchemaRules) -> Schema:
        del rules
        raise _no_schema(self._name)

    def fits(self, value: Any) -> bool:
        return isinstance(value, self._checked) and (
            self.type is not os.PathLike or isinstance(_fspath(value), str)
        )

    def read_inside(self, value: Any, where: str, reader: ArgumentReader) -> Any:
        del where, reader
        return _fspath(value) if self.type is os.PathLike else value


class Parameter(NamedTuple):
    """One parameter of a tool, or one member of a record.

    Attributes:
        name: The name that a model sees.
        kind: The kind of its values.
        description: One line, without default and choices.
        required: Whether a call must pass it.
        default: The default; None if the parameter is required.
        target: The own name of the callable or the record for it.
    """

    name: str
    kind: Kind
    description: str
    required: bool
    default: Any = None
    target: str = ""

    @property
    def takes_null(self) -> bool:
        """True if null differs from leaving the parameter out."""
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

    def schema(self, rules: SchemaRules) -> Schema:
        """Return the JSON Schema, with the description."""
        null = self.takes_null or (rules.every_required and not self.required)
        schema = self.value_kind.nullable(rules) if null else self.value_kind.schema(rules)
        text = self.full_description(
            choices="enum" not in schema, formats=not rules.formats, keywords=rules.keywords
        )
        return {**schema, "description": text} if text else schema

    def full_description(
        self, *, choices: bool = False, formats: bool = False, keywords: frozenset[str] = frozenset()
    ) -> str:
        """Return the description, with default, choices and formats added unless it states them.

        Constraints are added unless the schema has the keywords for all of them.
        """
        parts = [self.description] if self.description else []
        values = self.kind.choices if choices else ()
        if values and not all(str(value) in self.description for value in values):
            parts.append(f"One of {', '.join(json.dumps(value, ensure_ascii=False) for value in values)}.")
        times = [kind for kind in self.kind.walk() if isinstance(kind, TimeOf)] if formats else []
        if times and "ISO" not in self.description:
            parts.append(f"Write {times[0].description}.")
        if not self.kind.keywords <= keywords:
            parts.append(f"Must be {self.value_kind.description}.")
        default = "" if self.required or self.default is None else _json_or_empty(self.default)
        if default and not re.search(r"\bdefault", self.description, re.IGNORECASE):
            parts.append(f"Default {default}.")
        if len(parts) > 1 and parts[0][-1] not in ".!?":
            parts[0] += "."
        return " ".join(parts)


def object_schema(members: Sequence[Parameter], rules: SchemaRules) -> Schema:
    """Return the JSON Schema of an object with these members and no others."""
    named = {member.identifier if rules.identifiers else member.name: member for member in members}
    properties = {name: member.schema(rules) for name, member in named.items()}
    schema: Schema = {"type": "object", "properties": properties}
    required = [
        name
        for name, member in named.items()
        if member.required
        or rules.every_required
        or (rules.flags_required and isinstance(member.kind, Boolean))
    ]
    if required or rules.every_required:
        schema["required"] = required
    return {**schema, "additionalProperties": False}


def _no_schema(name: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"no schema can be made from {name}; use str, int, float, bool, Literal, Enum, Path, date, datetime, "
        "UUID, list, set, tuple, dict, a dataclass, a TypedDict, a Pydantic model, or a union of them"
    )


def _json_or_empty(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, default=_as_text)
    except (TypeError, ValueError):
        return ""


def _as_text(value: Any) -> Any:
    """Return a default as JSON has it; raise TypeError if it has no short form."""
    if isinstance(value, Enum):
        return value.value if isinstance(value.value, (str, int)) else value.name
    if isinstance(value, os.PathLike):
        return _fspath(value)
    if hasattr(value, "isoformat"):
        return value.isoformat()
    raise TypeError


def _problems(error: Exception) -> list[tuple[str, str]]:
    """Return the problems of a value, each with its place in the value."""
    if isinstance(error, AgentFSError):
        return [("", error.message)]
    listed = getattr(error, "errors", None)  # of Pydantic
    if not callable(listed):
        return [("", str(error))]
    found: Any = listed(include_url=False, include_context=False, include_input=False)
    return [
        ("".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in each["loc"]), each["msg"])
        for each in found
    ]


def _is_sequence(value: Any) -> bool:
    return isinstance(value, (list, tuple)) or (
        isinstance(value, Sequence) and not isinstance(value, (str, bytes, bytearray, memoryview))
    )


def _plain(value: Any) -> str | None:
    """Return a choice in lower case, with underscores for spaces and dashes; None for another type."""
    if not isinstance(value, str):
        return None
    return value[:80].strip().lower().replace("-", "_").replace(" ", "_")


def is_integer(value: Any) -> bool:
    """Return True if a value is an integer of at most 64 bits."""
    # Comparing the type is faster than `isinstance`.
    integer = type(value) is int or (isinstance(value, int) and not isinstance(value, bool))
    return integer and -LARGEST <= value <= LARGEST


def as_text(value: Any) -> Any:
    """Return a path as text, also in a list; return any other value as it is."""
    if isinstance(value, os.PathLike):
        return _fspath(value)
    items: Any = value
    return [*map(as_text, items)] if type(value) is list else value


def describe_names(members: Sequence[Parameter]) -> str:
    """Return the names of parameters or members, with the required ones marked."""
    return ", ".join(f"{member.name} (required)" if member.required else member.name for member in members)


def short_repr(value: Any) -> str:
    """Return a value for an error message: short, on one line, ASCII."""
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
