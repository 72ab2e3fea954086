"""A model's JSON values as the kinds that the hints ask for: taken leniently, checked strictly.

What can mean only one thing is taken as that and recorded as a coercion. Whatever else is wrong is
collected, so that the model hears of all of it at once.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from agentfs.errors import AgentFSError
from agentfs.events import Coercion
from agentfs.tools.aliases import Resolved, nearest, resolve
from agentfs.tools.json_text import NotJSONError, read_json
from agentfs.tools.types import (
    LARGEST,
    EnumOf,
    Kind,
    ListOf,
    MapOf,
    OptionalOf,
    Parameter,
    Record,
    Scalar,
    UnionOf,
    describe_type,
    short_repr,
)

_INTEGER = re.compile(r"\s*([+-]?[0-9]{1,19})(\.0*)?\s*")
_NUMBER = re.compile(r"\s*[+-]?([0-9]{1,300}(\.[0-9]{0,300})?|\.[0-9]{1,300})([eE][+-]?[0-9]{1,3})?\s*")
# The model is told of a dozen; a list of a million wrong items is not looked at to its end.
_ENOUGH_PROBLEMS = 100


class Problem(NamedTuple):
    """One thing that is wrong with the arguments, as a clause of a sentence."""

    parameter: str
    message: str


@dataclass
class BoundArguments:
    """Arguments read against the parameters.

    Attributes:
        values: What to call with; a parameter left to its default is not in it.
        coercions: What was taken otherwise than it was sent.
        problems: What is wrong; with any, `values` is not to be used.
    """

    values: dict[str, Any] = field(default_factory=dict[str, Any])
    coercions: list[Coercion] = field(default_factory=list[Coercion])
    problems: list[Problem] = field(default_factory=list[Problem])

    def took(self, where: str, rule: str) -> None:
        """Record a coercion."""
        self.coercions.append(Coercion(where, rule))

    def wrong(self, where: str, message: str) -> None:
        """Record a problem."""
        self.problems.append(Problem(where, message))

    def misfit(self, kind: Kind, value: Any, where: str, more: str = "") -> None:
        """Record that a value is not of its kind."""
        self.wrong(where, f"`{where}` must be {describe_type(kind)}, not {short_repr(value)}{more}")

    def adopt(self, trial: "BoundArguments") -> None:
        """Take over what a trial recorded."""
        self.coercions += trial.coercions
        self.problems += trial.problems


def take_members(
    bound: BoundArguments, members: Sequence[Parameter], given: Mapping[Any, Any], within: str = ""
) -> dict[str, Any]:
    """Return the values given for parameters or members; those left to their default are not among them.

    Args:
        bound: Where coercions and problems go.
        members: What there is to give.
        given: What was given.
        within: What stands before a name in messages, such as "edits[0].".
    """
    found = resolve(members, given)
    _note_names(bound, found, within)
    values: dict[str, Any] = {}
    for member in members:
        where = f"{within}{member.name}"
        if member.name not in found.values:
            if member.required:
                bound.wrong(where, f"`{where}` is missing ({describe_type(member.value_kind)})")
            continue
        value = found.values[member.name]
        if _left_out(member, value):
            bound.took(where, f"{short_repr(value)} as not given")
        elif value is None and isinstance(member.kind, OptionalOf):
            values[member.name] = None
        else:
            values[member.name] = _value(bound, member.value_kind, value, where)
    return values


def _note_names(bound: BoundArguments, found: Resolved, within: str) -> None:
    for name, other in found.renamed.items():
        bound.took(f"{within}{name}", f"alias {short_repr(other)}")
    for name, (first, second) in found.doubled.items():
        where = f"{within}{name}"
        bound.wrong(where, f"`{where}` is given twice, as {short_repr(first)} and as {short_repr(second)}")
    there_is_no = f"`{within[:-1]}` has no member" if within else "there is no parameter"
    for name, near in found.unknown:
        meant = f" (did you mean `{near}`?)" if near else ""
        bound.wrong(f"{within}{name[:60]}", f"{there_is_no} {short_repr(name)}{meant}")


def _left_out(member: Parameter, value: Any) -> bool:
    if member.required or member.takes_null:
        return False
    if value is None:
        return True
    kind = member.value_kind
    if isinstance(kind, UnionOf) or (isinstance(kind, Scalar) and kind.type == "string"):
        return False
    return isinstance(value, str) and value.strip().lower() in ("", "null", "none")


def _value(bound: BoundArguments, kind: Kind, value: Any, where: str) -> Any:
    match kind:
        case Scalar():
            return _scalar(bound, kind, value, where)
        case EnumOf():
            return _choice(bound, kind, value, where)
        case ListOf():
            return _list(bound, kind, value, where)
        case Record() | MapOf():
            return _mapping(bound, kind, value, where)
        case UnionOf():
            return _either(bound, kind, value, where)
        case OptionalOf():
            return None if value is None else _value(bound, kind.kind, value, where)
        case _:
            return value


def _scalar(bound: BoundArguments, kind: Scalar, value: Any, where: str) -> Any:
    if _is_of(kind, value):
        return value
    taken = _SCALAR_READERS[kind.type](value)
    if taken is None:
        bound.misfit(kind, value, where)
    else:
        bound.took(where, f"{short_repr(value)} as {kind.type}")
    return taken


def _string(value: Any) -> str | None:
    return str(value) if _whole(value) else None


def _integer(value: Any) -> int | None:
    taken: int | None = None
    if isinstance(value, float) and value.is_integer():
        taken = int(value)
    elif isinstance(value, str) and (found := _INTEGER.fullmatch(value)):
        taken = int(found[1])
    return taken if _whole(taken) else None


def _number(value: Any) -> float | None:
    taken = float(value) if isinstance(value, str) and _NUMBER.fullmatch(value) else math.inf
    return taken if math.isfinite(taken) else None


def _boolean(value: Any) -> bool | None:
    return {"true": True, "false": False}.get(value.strip().lower()) if isinstance(value, str) else None


_SCALAR_READERS = {"string": _string, "integer": _integer, "number": _number, "boolean": _boolean}


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= LARGEST


def _choice(bound: BoundArguments, kind: EnumOf, value: Any, where: str) -> Any:
    if _is_of(kind, value):
        return value
    near: Any = None
    if kind.type == "integer":
        fitting = [choice for choice in kind.values if choice == _integer(value)]
    elif isinstance(value, str):
        said = value[:80].strip().lower().replace("-", "_").replace(" ", "_")
        fitting = [choice for choice in kind.values if choice.lower().replace("-", "_") == said]
        near = nearest(said, kind.values)
    else:
        fitting = []
    if len(fitting) == 1:
        bound.took(where, f"{short_repr(value)} as {short_repr(fitting[0])}")
        return fitting[0]
    return bound.misfit(kind, value, where, f" (did you mean {short_repr(near)}?)" if near else "")


def _list(bound: BoundArguments, kind: ListOf, value: Any, where: str) -> Any:
    objects = isinstance(kind.item, (Record, MapOf))
    strings = kind.item == Scalar("string")
    if isinstance(value, str) and value.lstrip().startswith(("[", "{") if objects else "["):
        try:
            parsed = read_json(value)
        except NotJSONError as error:
            if not strings:  # "[ab]*.py" is a string to be the one item
                return bound.wrong(
                    where, f"`{where}` must be {describe_type(kind)}, but is text that is {error}"
                )
        else:
            bound.took(where, "JSON text as a list")
            value = parsed
    items: Any = value
    if isinstance(value, (list, tuple)):
        taken: list[Any] = []
        for index, item in enumerate(items):
            taken.append(_value(bound, kind.item, item, f"{where}[{index}]"))
            if len(bound.problems) > _ENOUGH_PROBLEMS:
                break
        return taken
    trial = BoundArguments()
    item = _value(trial, kind.item, value, f"{where}[0]")
    if value is None or (trial.problems and not isinstance(value, Mapping)):
        return bound.misfit(kind, value, where)
    bound.took(where, "one item as a list")
    bound.adopt(trial)
    return [item]


def _mapping(bound: BoundArguments, kind: Record | MapOf, value: Any, where: str) -> Any:
    if isinstance(value, str) and value.lstrip().startswith("{"):
        try:
            value = read_json(value)
        except NotJSONError as error:
            return bound.wrong(where, f"`{where}` must be {describe_type(kind)}, but is text that is {error}")
        bound.took(where, "JSON text as an object")
    if isinstance(kind, Record) and type(value) is kind.make:
        return value  # a framework has made it; a TypedDict is never the type of its values
    given: Any = value
    if not isinstance(value, Mapping):
        return bound.misfit(kind, value, where)
    if isinstance(kind, MapOf):
        items = [(str(name), item) for name, item in given.items()]
        return {name: _value(bound, kind.value, item, f"{where}.{name[:60]}") for name, item in items}
    before = len(bound.problems)
    members = take_members(bound, kind.members, given, f"{where}.")
    if len(bound.problems) > before:
        return None
    try:
        return kind.make(**members)
    except (AgentFSError, TypeError, ValueError) as error:
        told = error.message if isinstance(error, AgentFSError) else str(error)
        return bound.wrong(where, f"`{where}`: {told.rstrip('.')}")


def _either(bound: BoundArguments, kind: UnionOf, value: Any, where: str) -> Any:
    if isinstance(value, str) and value.lstrip().startswith("["):
        for wanted in [option for option in kind.options if isinstance(option, ListOf)]:
            trial = BoundArguments()
            taken = _list(trial, wanted, value, where)
            # A string that is no JSON stays the string it is.
            if not trial.problems and trial.coercions[:1] == [Coercion(where, "JSON text as a list")]:
                bound.adopt(trial)
                return taken
    for option in kind.options:
        if _is_of(option, value):
            return _value(bound, option, value, where)
    for option in kind.options:
        trial = BoundArguments()
        taken = _value(trial, option, value, where)
        if not trial.problems:
            bound.adopt(trial)
            return taken
    return bound.misfit(kind, value, where)


def _is_of(kind: Kind, value: Any) -> bool:
    """Tell whether a value has the JSON type of a kind, whatever is inside it."""
    match kind:
        case Scalar(type="string"):
            return isinstance(value, str)
        case Scalar(type="boolean"):
            return isinstance(value, bool)
        case Scalar(type="integer"):
            return _whole(value)
        case Scalar():
            return _whole(value) or (isinstance(value, float) and math.isfinite(value))
        case EnumOf():
            return any(type(choice) is type(value) and choice == value for choice in kind.values)
        case ListOf():
            return isinstance(value, (list, tuple))
        case Record() | MapOf():
            return isinstance(value, Mapping)
        case _:
            return False
