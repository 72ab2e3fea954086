"""Parameters of tools: their kinds of values, their schemas, and the reading of the arguments for them."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from enum import Enum
from keyword import iskeyword
from typing import Any, NamedTuple

from agentfs.arguments.json_text import NotJSONError, parse_json, short_repr
from agentfs.errors import AgentFSError
from agentfs.results import Coercion
from agentfs.text.nearest import nearest

Schema = dict[str, Any]
_MAX_PROBLEMS = 100  # reading stops after this many


class SchemaRules(NamedTuple):
    """The rules for the schemas of a format."""

    every_required: bool = False  # optional parameters become required and nullable
    flags_required: bool = False  # boolean parameters are required
    plain: bool = False  # the plainest option of a union replaces it, and only strings are enumerated
    closed_only: bool = False  # objects with free names and values of any type are refused
    identifiers: bool = False  # parameter names consist of letters, digits and underscores


class Kind:
    """One kind of value. A subclass defines at least `schema`, `description` and `fits`.

    Attributes:
        description: The completion of "must be …" in an error.
        hint: A type hint for frameworks: no union except with None.
        parts: The kinds of the values inside a value, except those of the members of a record.
        choices: The values, if there are only a few.
        takes_null: True if null is a value; all others are of the kind in `parts`.
        opening: The characters that JSON text of a value begins with.
        says_more: True if `description` says more than the schema, such as a bound or how to write a date.
        check: Returns the final value of one that was read, or raises an error.
    """

    description: str = "any value"
    hint: Any = Any
    parts: tuple["Kind", ...] = ()
    choices: tuple[Any, ...] = ()
    takes_null = False
    opening: tuple[str, ...] = ()
    says_more = False
    check: Callable[[Any], Any] | None = None

    def schema(self, rules: SchemaRules) -> Schema:
        """Return the JSON Schema; raise `invalid_argument` if there is none."""
        raise NotImplementedError

    def nullable(self, rules: SchemaRules) -> Schema:
        """Return the JSON Schema of a value or null."""
        schema = self.schema(rules)
        if not schema:
            return schema
        if not rules.plain and schema.keys() != {"type"}:
            return {"anyOf": [*schema.get("anyOf", [schema]), {"type": "null"}]}
        schema.pop("enum", None)  # it would have to contain null, which is not a string
        return {**schema, "type": [schema["type"], "null"]}

    def fits(self, value: Any) -> bool:
        """Return True if a value has the outer type; the values inside are not checked."""
        del value
        return True

    def read(self, value: Any, where: str, reader: "ArgumentReader") -> Any:
        """Return a value as one of this kind, or None after a problem was recorded."""
        known_problems = len(reader.problems)
        read = self.read_plain(value, where, reader)
        if self.check is None or len(reader.problems) > known_problems:
            return read
        try:
            return self.check(read)
        except (AgentFSError, TypeError, ValueError) as error:
            return reader.add_failure(where, error)

    def read_plain(self, value: Any, where: str, reader: "ArgumentReader") -> Any:
        """Return a value as one of this kind, without `check`."""
        if self.opening:
            value = reader.parse(self, value, where)
        if self.fits(value):
            return self.read_inside(value, where, reader)
        converted = self.convert(value, where, reader)
        return reader.mismatch(self, value, where) if converted is None else converted

    def read_inside(self, value: Any, where: str, reader: "ArgumentReader") -> Any:
        """Return a value that fits, after reading its parts."""
        del where, reader
        return value

    def convert(self, value: Any, where: str, reader: "ArgumentReader") -> Any:
        """Convert an unambiguous value and record the coercion; return None for any other value."""
        del value, where, reader

    def walk(self) -> Iterator["Kind"]:
        """Yield this kind and every kind inside it."""
        yield self
        for part in self.parts:
            yield from part.walk()


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
        return self.kind.takes_null and (self.required or self.default is not None)

    @property
    def identifier(self) -> str:
        """The name as an identifier: `-A` as `A`, `from` as `from_`."""
        plain = re.sub(r"\W", "_", self.name.lstrip("-"), flags=re.ASCII)
        return f"{plain}_" if iskeyword(plain) else plain

    @property
    def value_kind(self) -> Kind:
        """The kind of a value other than null."""
        return self.kind.parts[0] if self.kind.takes_null else self.kind

    def schema(self, rules: SchemaRules) -> Schema:
        """Return the JSON Schema, with the description."""
        null = self.takes_null or (rules.every_required and not self.required)
        schema = self.value_kind.nullable(rules) if null else self.value_kind.schema(rules)
        text = self.full_description(choices="enum" not in schema)
        return {**schema, "description": text} if text else schema

    def full_description(self, *, choices: bool = False) -> str:
        """Return the description, with default and choices added unless it states them.

        The kind of a value is added if the schema does not say all of it.
        """
        parts = [self.description] if self.description else []
        values = self.kind.choices if choices else ()
        if values and not all(str(value) in self.description for value in values):
            parts.append(f"One of {', '.join(json.dumps(value, ensure_ascii=False) for value in values)}.")
        if any(each.says_more for each in self.kind.walk()):
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
        if member.required or rules.every_required or (rules.flags_required and member.kind.hint is bool)
    ]
    if required or rules.every_required:
        schema["required"] = required
    return {**schema, "additionalProperties": False}


class ArgumentProblem(NamedTuple):
    """One problem of the arguments; the message is a clause of a sentence."""

    parameter: str
    message: str


class ArgumentReader:
    """Reads arguments, and collects the problems and the coercions.

    `where` is a parameter or a part of one, such as `edits[0].path`. `aliases` are other names of parameters
    and members, separated by spaces.
    """

    def __init__(self, aliases: Mapping[str, str] = {}) -> None:
        self._aliases = aliases
        self.coercions: list[Coercion] = []
        self.problems: list[ArgumentProblem] = []

    @property
    def is_full(self) -> bool:
        """True if there are so many problems that reading more would help nobody."""
        return len(self.problems) > _MAX_PROBLEMS

    def trial(self) -> "ArgumentReader":
        """Return a reader with the same aliases, whose results `adopt` takes over or which is dropped."""
        return ArgumentReader(self._aliases)

    def adopt(self, trial: "ArgumentReader") -> None:
        """Add the coercions and problems of a reader that tried one alternative."""
        self.coercions += trial.coercions
        self.problems += trial.problems

    def read_members(
        self, members: Sequence[Parameter], given: Mapping[Any, Any], prefix: str = ""
    ) -> dict[str, Any]:
        """Return the values given for parameters or members; defaults are left out."""
        named = self._named(members, given, prefix)
        values: dict[str, Any] = {}
        for member in members:
            where = f"{prefix}{member.name}"
            if member.name in named:
                values[member.name] = member.kind.read(named[member.name], where, self)
            elif member.required:
                self.add_problem(where, f"`{where}` is missing ({member.value_kind.description})")
        return values

    def _named(
        self, members: Sequence[Parameter], given: Mapping[Any, Any], prefix: str
    ) -> Mapping[str, Any]:
        """Return the given values under the names of the members; unknown names are problems."""
        by_name = {member.name: member for member in members}
        values = {name: given[name] for name in given if name in by_name}
        sent_as = {name: name for name in values}
        spellings = _spellings(members, self._aliases) if len(values) < len(given) else {}
        for key in (key for key in given if key not in by_name):
            text = key if isinstance(key, str) else repr(key)
            name = spellings.get(text) or spellings.get(snake_case(text))
            if name is None:
                near = nearest(snake_case(text), by_name, 0.65)  # `end_line` is not `encoding`
                meant = f" (did you mean `{near}`?)" if near else ""
                lacking = f"`{prefix[:-1]}` has no member" if prefix else "there is no parameter"
                self.add_problem(f"{prefix}{text[:60]}", f"{lacking} {short_repr(text)}{meant}")
                if self.is_full:
                    break
            elif name not in values:
                values[name], sent_as[name] = given[key], text
                self.add_coercion(f"{prefix}{name}", f"alias {short_repr(text)}")
            elif values[name] != given[key]:
                where, first = f"{prefix}{name}", short_repr(sent_as[name])
                self.add_problem(where, f"`{where}` is given twice, as {first} and as {short_repr(text)}")
        for name in [name for name in values if _is_null_text(by_name[name], values[name])]:
            self.add_coercion(f"{prefix}{name}", f"{short_repr(values.pop(name))} as not given")
        return values

    def parse(self, kind: Kind, value: Any, where: str) -> Any:
        """Return the value of JSON text for a list or an object; other text stays text."""
        if _looks_like_json(kind, value):
            with suppress(NotJSONError):
                value = parse_json(value)
                self.add_coercion(where, f"JSON text as {short_repr(value)}")
        return value

    def mismatch(self, kind: Kind, value: Any, where: str) -> None:
        """Record that a value is not of a kind; point at the nearest choice, or the mistake in JSON text."""
        texts = [choice for choice in kind.choices if isinstance(choice, str)]
        near = nearest(snake_case(value), texts) if isinstance(value, str) else None
        found = f", not {short_repr(value)}" + (f" (did you mean {short_repr(near)}?)" if near else "")
        if _looks_like_json(kind, value):
            try:
                parse_json(value)
            except NotJSONError as error:
                found = f", but is text that is {error}"
        self.add_problem(where, f"`{where}` must be {kind.description}{found}")

    def add_coercion(self, where: str, rule: str) -> None:
        """Record that a value was converted."""
        self.coercions.append(Coercion(where, rule))

    def add_problem(self, where: str, message: str) -> None:
        """Record a problem, as a clause of a sentence."""
        self.problems.append(ArgumentProblem(where, message))

    def add_failure(self, where: str, error: Exception) -> None:
        """Record the problems of checking or making a value, each at its place in the value."""
        listed: Any = getattr(error, "errors", None)  # of Pydantic
        if not callable(listed):
            message = error.message if isinstance(error, AgentFSError) else str(error)
            self.add_problem(where, f"`{where}`: {message.rstrip('.')}")
            return
        found: Any = listed(include_url=False, include_context=False, include_input=False)
        for each in found:
            parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in each["loc"])
            place = "".join((where, *parts))
            self.add_problem(place, f"`{place}`: {each['msg'].rstrip('.')}")


def snake_case(name: str) -> str:
    """Return a name in lower snake case: `filePath`, `file path` and `-C` as `file_path` and `c`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|[ -]", "_", name[:80]).strip("_").lower()


def _looks_like_json(kind: Kind, value: Any) -> bool:
    return isinstance(value, str) and "".join(value[:60].split()).startswith(kind.opening or "\0")


def _spellings(members: Sequence[Parameter], aliases: Mapping[str, str]) -> dict[str, str | None]:
    """Return the name that each spelling in lower snake case means, or None if it is ambiguous.

    The name as an identifier comes first, then the visible name in another case, the callable's own name, and
    aliases.
    """
    by_precedence: tuple[Callable[[Parameter], Sequence[str]], ...] = (
        lambda each: [each.identifier],
        lambda each: [snake_case(each.name)],
        lambda each: [snake_case(each.target)] if each.target else [],
        lambda each: f"{aliases.get(each.name, '')} {aliases.get(each.target, '')}".split(),
    )
    known: dict[str, str | None] = {}
    for spellings_of in by_precedence:
        found: dict[str, str | None] = {}
        for each in members:
            for spelling in spellings_of(each):
                found[spelling] = each.name if found.get(spelling, each.name) == each.name else None
        known = found | known
    return known


def _is_null_text(member: Parameter, value: Any) -> bool:
    """Return True for null, and text that means null, if the member may be left out."""
    if member.required or member.takes_null:
        return False
    if not isinstance(value, str):
        return value is None
    if value.strip().lower() not in ("", "null", "none"):
        return False
    reader = ArgumentReader()
    member.value_kind.read(value, "", reader)
    # A choice may have such a name; a list of texts is not meant.
    return bool(reader.problems or (reader.coercions and not member.kind.choices))


def _json_or_empty(value: Any) -> str:
    """Return a default as JSON, or "" if it has no short form."""

    def plain(each: Any) -> Any:
        if isinstance(each, Enum):
            return each.value if isinstance(each.value, (str, int)) else each.name
        return each.__fspath__() if hasattr(each, "__fspath__") else each.isoformat()

    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, default=plain)
    except (AttributeError, TypeError, ValueError):
        return ""


def describe_names(members: Sequence[Parameter]) -> str:
    """Return the names of parameters or members, with the required ones marked."""
    return ", ".join(f"{member.name} (required)" if member.required else member.name for member in members)
