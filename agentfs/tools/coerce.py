"""A model's arguments, as JSON text or parsed, as the values that the hints ask for.

What can mean only one thing is taken as that and recorded as a coercion. Whatever else is wrong is collected,
so that the model learns of all of it at once.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, NoReturn, cast

from agentfs.errors import AgentFSError, InvalidArgumentError
from agentfs.results import Coercion
from agentfs.tools.aliases import ResolvedNames, nearest, resolve_names
from agentfs.tools.types import (
    EnumOf,
    Kind,
    ListOf,
    MapOf,
    OptionalOf,
    Parameter,
    Record,
    Scalar,
    UnionOf,
    describe_names,
    describe_type,
    has_type,
    is_integer,
    short_repr,
)

# The longest text that is parsed: the largest file that can be written, every character of it escaped.
MAX_CHARACTERS = 64 * 1024 * 1024
_INTEGER = re.compile(r"\s*([+-]?[0-9]{1,19})(\.0*)?\s*")
_NUMBER = re.compile(r"\s*[+-]?([0-9]{1,300}(\.[0-9]{0,300})?|\.[0-9]{1,300})([eE][+-]?[0-9]{1,3})?\s*")
_MAX_REPORTED = 12
# A list of a million wrong items is not looked at to its end.
_MAX_PROBLEMS = 100


class Problem(NamedTuple):
    """One thing that is wrong with the arguments; the message is a clause of a sentence."""

    parameter: str
    message: str


class BoundArguments(NamedTuple):
    """The values to call with, where there are no problems; a parameter left to its default is not in it."""

    values: dict[str, Any]
    coercions: list[Coercion]
    problems: list[Problem]


class NotJSONError(ValueError):
    """The text is no JSON that is taken; the message completes a sentence, "it is …"."""


def parse_arguments(sent: Any) -> Mapping[Any, Any]:
    """Return the arguments that a model sent: a mapping, JSON text (also twice encoded), or None."""
    value = sent
    for _ in range(2):
        if isinstance(value, str):
            try:
                value = parse_json(value) if value.strip() else None
            except NotJSONError as error:
                raise InvalidArgumentError(
                    f"The arguments are {error}.",
                    hint="Send one JSON object; inside strings, escape quotes, backslashes and line ends.",
                ) from None
    if value is None:
        return {}
    arguments: Any = value
    if not isinstance(value, Mapping):
        raise InvalidArgumentError(
            f"The arguments must be one JSON object, not {short_repr(value)}.",
            hint='Send the arguments by name, as in {"name": "value"}.',
        )
    return arguments  # type: ignore[no-any-return] # a mapping, as was just seen


def bind(parameters: Sequence[Parameter], given: Mapping[Any, Any]) -> BoundArguments:
    """Read arguments against parameters."""
    binder = Binder()
    return BoundArguments(binder.members(parameters, given), binder.coercions, binder.problems)


def refusal(tool: str, parameters: Sequence[Parameter], problems: Sequence[Problem]) -> InvalidArgumentError:
    """Return the error that names everything that is wrong with the arguments of a call."""
    messages = [problem.message for problem in problems[:_MAX_REPORTED]]
    if len(problems) > len(messages):
        messages.append(f"and {len(problems) - len(messages)} more problems")
    return InvalidArgumentError(
        f"{tool} was not run: {'; '.join(messages)}.",
        hint=f"{tool} takes {describe_names(parameters) or 'no arguments'}.",
        details={"problems": [problem._asdict() for problem in problems[:_MAX_REPORTED]]},
    )


def parse_json(text: str) -> Any:
    """Return the value of JSON text as models write it: raw line ends and tabs inside strings are taken."""
    if len(text) > MAX_CHARACTERS:
        raise NotJSONError(f"{len(text):,} characters long, where {MAX_CHARACTERS:,} are the most")
    try:
        return json.loads(text, strict=False, object_pairs_hook=_unique, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        at_end = error.pos >= len(text.rstrip())
        reason = "it ends too early" if at_end else error.msg[0].lower() + error.msg[1:]
        near = json.dumps(text[max(error.pos - 20, 0) : error.pos + 20])
        raise NotJSONError(
            f"not valid JSON: {reason} at line {error.lineno}, column {error.colno}, near {near}"
        ) from None
    except RecursionError:
        raise NotJSONError("nested too deep") from None
    except NotJSONError:
        raise
    except ValueError:  # Python's own bound on the digits of an integer
        raise NotJSONError("not taken: a number in it has too many digits") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        ((name, _),) = Counter(name for name, _ in pairs).most_common(1)
        raise NotJSONError(f"ambiguous: {json.dumps(name[:60])} is given twice in one object")
    return members


def _refuse_constant(name: str) -> NoReturn:
    raise NotJSONError(f"not valid JSON: {name} is no JSON number")


class Binder:
    """Reads values against kinds; `where` is the parameter, or a part of it such as `edits[0].path`."""

    def __init__(self) -> None:
        self.coercions: list[Coercion] = []
        self.problems: list[Problem] = []

    def members(
        self, members: Sequence[Parameter], given: Mapping[Any, Any], prefix: str = ""
    ) -> dict[str, Any]:
        """Return the values given for parameters or members, without those left to their default."""
        return self.resolved(members, resolve_names(members, given), prefix)

    def resolved(
        self, members: Sequence[Parameter], resolved: ResolvedNames, prefix: str = ""
    ) -> dict[str, Any]:
        """Return what `members` returns, of arguments under the names of the members."""
        for name, alias in resolved.aliases.items():
            self.add_coercion(f"{prefix}{name}", f"alias {short_repr(alias)}")
        for name, (first, second) in resolved.duplicates.items():
            where = f"{prefix}{name}"
            self.add_problem(
                where, f"`{where}` is given twice, as {short_repr(first)} and as {short_repr(second)}"
            )
        there_is_no = f"`{prefix[:-1]}` has no member" if prefix else "there is no parameter"
        for name, near in resolved.unknown:
            meant = f" (did you mean `{near}`?)" if near else ""
            self.add_problem(f"{prefix}{name[:60]}", f"{there_is_no} {short_repr(name)}{meant}")
        values: dict[str, Any] = {}
        for member in members:
            if member.name not in resolved.values and not member.required:
                continue
            where = f"{prefix}{member.name}"
            if member.name not in resolved.values:
                self.add_problem(where, f"`{where}` is missing ({describe_type(member.value_kind)})")
                continue
            value = resolved.values[member.name]
            if _means_omitted(member, value):
                self.add_coercion(where, f"{short_repr(value)} as not given")
            else:
                values[member.name] = self.value(member.kind, value, where)
        return values

    def value(self, kind: Kind, value: Any, where: str) -> Any:
        """Return a value as one of a kind, or None with a problem."""
        match kind:
            case Scalar():
                return value if has_type(kind, value) else self._scalar(kind, value, where)
            case EnumOf():
                return value if has_type(kind, value) else self._choice(kind, value, where)
            case ListOf():
                return self._list(kind, value, where)
            case Record() | MapOf():
                return self._object(kind, value, where)
            case UnionOf():
                return self._union(kind, value, where)
            case OptionalOf():
                return None if value is None else self.value(kind.kind, value, where)
            case _:
                return value

    def _scalar(self, kind: Scalar, value: Any, where: str) -> Any:
        coerced = _SCALAR_READERS[kind.type](value)
        if coerced is None:
            return self._mismatch(kind, value, where)
        self.add_coercion(where, f"{short_repr(value)} as {kind.type}")
        return coerced

    def _choice(self, kind: EnumOf, value: Any, where: str) -> Any:
        near: Any = None
        matching: list[Any] = []
        if kind.type == "integer":
            matching = [choice for choice in kind.values if choice == _integer(value)]
        elif isinstance(value, str):
            plain = value[:80].strip().lower().replace("-", "_").replace(" ", "_")
            matching = [choice for choice in kind.values if choice.lower().replace("-", "_") == plain]
            near = nearest(plain, kind.values)
        if len(matching) == 1:
            self.add_coercion(where, f"{short_repr(value)} as {short_repr(matching[0])}")
            return matching[0]
        return self._mismatch(kind, value, where, f" (did you mean {short_repr(near)}?)" if near else "")

    def _list(self, kind: ListOf, value: Any, where: str) -> Any:
        of_objects = isinstance(kind.item, (Record, MapOf))
        if isinstance(value, str) and value.lstrip().startswith(("[", "{") if of_objects else "["):
            try:
                value = parse_json(value)
                self.add_coercion(where, "JSON text as a list")
            except NotJSONError as error:
                if kind.item != Scalar("string"):  # "[ab]*.py" is a string to be the one item
                    return self._not_json(kind, where, error)
        if isinstance(value, (list, tuple)):
            items: list[Any] = []
            for index, item in enumerate(cast("list[Any]", value)):
                items.append(self.value(kind.item, item, f"{where}[{index}]"))
                if len(self.problems) > _MAX_PROBLEMS:
                    break
            return items
        trial = Binder()
        item = trial.value(kind.item, value, f"{where}[0]")
        if value is None or (trial.problems and not isinstance(value, Mapping)):
            return self._mismatch(kind, value, where)
        self.add_coercion(where, "one item as a list")
        self._adopt(trial)
        return [item]

    def _object(self, kind: Record | MapOf, value: Any, where: str) -> Any:
        if isinstance(value, str) and value.lstrip().startswith("{"):
            try:
                value = parse_json(value)
            except NotJSONError as error:
                return self._not_json(kind, where, error)
            self.add_coercion(where, "JSON text as an object")
        if isinstance(kind, Record) and type(value) is kind.make:
            return value  # a framework has made it; a TypedDict is never the type of its values
        given: Any = value
        if not isinstance(value, Mapping):
            return self._mismatch(kind, value, where)
        if isinstance(kind, MapOf):
            items = [(str(name), item) for name, item in given.items()]
            return {name: self.value(kind.value, item, f"{where}.{name[:60]}") for name, item in items}
        known_problems = len(self.problems)
        members = self.members(kind.members, given, f"{where}.")
        if len(self.problems) > known_problems:
            return None
        try:
            return kind.make(**members)
        except (AgentFSError, TypeError, ValueError) as error:
            message = error.message if isinstance(error, AgentFSError) else str(error)
            return self.add_problem(where, f"`{where}`: {message.rstrip('.')}")

    def _union(self, kind: UnionOf, value: Any, where: str) -> Any:
        if isinstance(value, str) and value.lstrip().startswith("["):
            for option in kind.options:
                trial = Binder()
                items = trial.value(option, value, where)
                # A string that is no JSON stays the string it is.
                if not trial.problems and trial.coercions[:1] == [Coercion(where, "JSON text as a list")]:
                    self._adopt(trial)
                    return items
        for option in kind.options:
            if has_type(option, value):
                return self.value(option, value, where)
        for option in kind.options:
            trial = Binder()
            coerced = trial.value(option, value, where)
            if not trial.problems:
                self._adopt(trial)
                return coerced
        return self._mismatch(kind, value, where)

    def _adopt(self, trial: "Binder") -> None:
        self.coercions += trial.coercions
        self.problems += trial.problems

    def add_coercion(self, where: str, rule: str) -> None:
        """Record that something was taken for what the schema has."""
        self.coercions.append(Coercion(where, rule))

    def add_problem(self, where: str, message: str) -> None:
        """Record what is wrong, as a clause of a sentence."""
        self.problems.append(Problem(where, message))

    def _mismatch(self, kind: Kind, value: Any, where: str, more: str = "") -> None:
        self.add_problem(where, f"`{where}` must be {describe_type(kind)}, not {short_repr(value)}{more}")

    def _not_json(self, kind: Kind, where: str, error: NotJSONError) -> None:
        self.add_problem(where, f"`{where}` must be {describe_type(kind)}, but is text that is {error}")


def _means_omitted(member: Parameter, value: Any) -> bool:
    if member.required or not (value is None or isinstance(value, str)) or member.takes_null:
        return False
    if value is None:
        return True
    kind = member.value_kind
    if isinstance(kind, UnionOf) or kind == Scalar("string"):
        return False
    return value.strip().lower() in ("", "null", "none")


def _string(value: Any) -> str | None:
    return str(value) if is_integer(value) else None


def _integer(value: Any) -> int | None:
    number: int | None = None
    if isinstance(value, float) and value.is_integer():
        number = int(value)
    elif isinstance(value, str) and (found := _INTEGER.fullmatch(value)):
        number = int(found[1])
    return number if is_integer(number) else None


def _number(value: Any) -> float | None:
    number = float(value) if isinstance(value, str) and _NUMBER.fullmatch(value) else math.inf
    return number if math.isfinite(number) else None


def _boolean(value: Any) -> bool | None:
    return {"true": True, "false": False}.get(value.strip().lower()) if isinstance(value, str) else None


_SCALAR_READERS = {"string": _string, "integer": _integer, "number": _number, "boolean": _boolean}
