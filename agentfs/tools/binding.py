"""Turn the name and arguments that a model sent into a tool and typed values; record every coercion.

An unambiguous value is converted. All problems are collected, so that the model learns of them at once. Names
of other products' tools and parameters count for methods of a workspace. Nothing is run.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from agentfs.arguments.json_text import short_repr
from agentfs.arguments.kinds import ListOf, String, UnionOf
from agentfs.arguments.parameters import ArgumentReader, Parameter, describe_names, snake_case
from agentfs.errors import InvalidArgumentError, UnknownToolError
from agentfs.habits.foreign_names import (
    ALIASES,
    EXPLAINING,
    HABITS,
    Habit,
    method_meant,
    plain_name,
    shell_arguments,
)
from agentfs.results import Coercion
from agentfs.text.nearest import nearest
from agentfs.tools.tool import Tool, is_method

_MAX_REPORTED = 12
_ONE_OR_MORE = UnionOf((String(), ListOf(String())))
_ONE_OR_MORE.opening = ('["',)  # a glob may begin with `[`


class BoundCall(NamedTuple):
    """The values to pass to a tool, under visible names; defaults are left out."""

    values: dict[str, Any]
    coercions: tuple[Coercion, ...]


def find_tool(tools: Mapping[str, Tool], name: Any) -> tuple[Tool, tuple[Coercion, ...]]:
    """Return the tool that a name means; raise `unknown_tool` if there is none."""
    if isinstance(name, str):
        if (tool := tools.get(name)) is not None:
            return tool, ()
        wanted = plain_name(name)
        same = (
            each for each in tools.values() if wanted in (snake_case(each.name), snake_case(each.own_name))
        )
        method = method_meant(wanted)
        meant = (each for each in tools.values() if is_method(each.function) and each.own_name == method)
        if (tool := next(same, None) or next(meant, None)) is not None:
            return tool, (Coercion("tool name", f"{short_repr(name)} as {short_repr(tool.name)}"),)
    near = nearest(name.lower(), tools) if isinstance(name, str) else None
    raise UnknownToolError(
        f"There is no tool {short_repr(name)}{f' (did you mean `{near}`?)' if near else ''}.",
        hint=f"The tools are {', '.join(tools)}.",
        details={"names": list(tools), "nearest": near},
    )


@cache
def _aliases_of(method: str) -> Mapping[str, str]:
    own = HABITS.get(method, Habit()).aliases
    return {name: f"{ALIASES.get(name, '')} {own.get(name, '')}" for name in (*ALIASES, *own)}


def bind(tool: Tool, given: Mapping[Any, Any]) -> BoundCall:
    """Read the arguments of a call; raise `invalid_argument` with everything that is wrong with them."""
    habit = HABITS.get(tool.own_name, Habit()) if is_method(tool.function) else None
    converted: list[tuple[str, str]] = []
    parameters: Sequence[Parameter] = tool.parameters
    aliases: Mapping[str, str] = {own: name for name, own in tool.renames.items()}
    if habit is not None:
        known = {*tool.visible_names, *tool.visible_names.values()}
        if tool.own_name == "run":
            given, converted = shell_arguments(given)
        explaining = [name for name in given if name in EXPLAINING and name not in known]
        converted += [(name, "left out") for name in explaining]
        given = {name: value for name, value in given.items() if name not in explaining}
        aliases = _aliases_of(tool.own_name)
        lists = habit.lists.split()
        parameters = [
            each._replace(kind=_ONE_OR_MORE) if each.target in lists else each for each in tool.parameters
        ]
    reader = ArgumentReader(aliases)
    for where, rule in converted:
        reader.add_coercion(where, rule)
    values = reader.read_members(parameters, given)
    if reader.problems:
        messages = [problem.message for problem in reader.problems[:_MAX_REPORTED]]
        if len(reader.problems) > len(messages):
            messages.append(f"and {len(reader.problems) - len(messages)} more problems")
        raise InvalidArgumentError(
            f"{tool.name} was not run: {'; '.join(messages)}.",
            hint=f"{tool.name} takes {describe_names(tool.parameters) or 'no arguments'}.",
            details={"problems": [problem._asdict() for problem in reader.problems[:_MAX_REPORTED]]},
        )
    for each in tool.parameters if habit is not None else ():
        value = values.get(each.name)
        meant: Mapping[int, Any] = habit.values.get(each.target, {}) if habit is not None else {}
        if isinstance(value, int) and value in meant:
            values[each.name] = meant[value]
            reader.add_coercion(each.name, f"{value} as {meant[value]}")
    return BoundCall(values, tuple(reader.coercions))
