"""Turn the name and arguments that a model sent into a tool and typed values; record every coercion.

An unambiguous value is converted. All problems are collected, so that the model learns of them at once. Names
and parameters of other products' tools are translated if the tool is a workspace method.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

from agentfs.arguments.kinds import (
    ArgumentProblem,
    ListOf,
    Parameter,
    String,
    UnionOf,
    describe_names,
    short_repr,
)
from agentfs.base.advice import Advice, Joined
from agentfs.errors import AgentFSError, InvalidArgumentError, UnknownToolError
from agentfs.habits.lenient import LenientReader, parse_arguments
from agentfs.habits.meanings import HABITS, REASONS, Habit, Habits
from agentfs.habits.parameter_names import ALIASES, snake_case
from agentfs.habits.tool_names import AMBIGUOUS, EDITORS, plain_name
from agentfs.results import Coercion, plain
from agentfs.text.nearest import nearest
from agentfs.tools.tool import Tool, exposable, is_method

_MAX_REPORTED = 12
_ONE_OR_MORE = UnionOf((String(), ListOf(String())))


class BoundCall(NamedTuple):
    """The tool to call, and the values to pass if there are no problems; defaults are left out."""

    tool: Tool
    values: dict[str, Any]
    coercions: list[Coercion]
    problems: list[ArgumentProblem]


def resolve_unknown_tool(
    tools: Mapping[str, Tool], name: Any, arguments: Any
) -> tuple[Tool, Any, tuple[Coercion, ...]]:
    """Return the tool meant by an unknown name, and its arguments; raise `unknown_tool` if there is none."""
    near = None
    proposals: list[Advice] = []
    if isinstance(name, str):
        given: dict[Any, Any] = {}
        with suppress(AgentFSError):  # reported by the caller, once the tool is known
            given = dict(parse_arguments(arguments))
        wanted, sent = plain_name(name), arguments
        if wanted in EDITORS and isinstance(given.get("command"), str):
            wanted, sent = given.pop("command"), given
        method = next((each for each, row in HABITS.items() if wanted in row.tools.split()), wanted)
        same_name = (
            tool for tool in tools.values() if wanted in (snake_case(tool.name), snake_case(tool.own_name))
        )
        tool = next(same_name, None) or _tool_for(tools, method)
        if tool is not None:
            return tool, sent, (_renamed(name, tool),)
        near = nearest(name.lower(), tools)
        proposals = _proposals(tools, wanted, given)
    meant = f" (did you mean `{near}`?)" if near and not proposals else ""
    call = Advice("Call ", Joined(" or ", *proposals), ".") if proposals else ""
    raise UnknownToolError(
        f"There is no tool {short_repr(name)}{meant}.",
        hint=Joined(" ", call, f"The tools are {', '.join(tools)}."),
        details={"names": list(tools), "nearest": near},
    )


def _proposals(tools: Mapping[str, Tool], wanted: str, given: Mapping[Any, Any]) -> list[Advice]:
    """Return the calls that an ambiguous name may mean, or only names of tools if no call finds anything."""
    known = [(_tool_for(tools, each["name"]), each["arguments"]) for each in AMBIGUOUS.get(wanted, ())]
    meant = [(tool, _proposal(tools, tool, {**given, **more})) for tool, more in known if tool is not None]
    calls = [call for _, call in meant if call is not None]
    return calls or [Advice(f"`{tool.name}`") for tool, _ in meant]


def _proposal(tools: Mapping[str, Tool], tool: Tool, given: Mapping[Any, Any]) -> Advice | None:
    """Return a call of a tool with these arguments, or None if it does not accept them or finds nothing."""
    bound = bind_call(tools, tool, given)
    if bound.problems:
        return None
    values = {name: plain(value) for name, value in bound.values.items()}
    pattern = values.get("pattern")
    if tool.own_name == "glob" and isinstance(pattern, str) and not any(mark in pattern for mark in "*?[{"):
        values["pattern"] = f"**/*{pattern}*" if "/" in pattern else f"*{pattern}*"
    if bound.tool.effect == "read" and not _finds(bound.tool, values):
        return None
    return Advice({"name": bound.tool.name, "arguments": values})


def _finds(tool: Tool, values: Mapping[str, Any]) -> bool:
    try:
        found = tool.function(**tool.call_arguments(values))
    except AgentFSError:
        return False
    return bool(getattr(found, "total_matches", getattr(found, "total", 0)))


def bind_call(tools: Mapping[str, Tool], tool: Tool, given: Mapping[Any, Any]) -> BoundCall:
    """Read the arguments of a call. The returned tool may be another, or have more parameters."""
    bound = _bind_as_sent(tools, tool, given)
    if is_method(tool.function):
        table = HABITS.get(bound.tool.own_name, Habits()).values
        for each in bound.tool.parameters:
            value = bound.values.get(each.name)
            if isinstance(value, int) and value in (meant := table.get(each.target, {})):
                bound.values[each.name] = meant[value]
                bound.coercions.append(Coercion(each.name, f"{value} as {meant[value]}"))
    return bound


def _bind_as_sent(tools: Mapping[str, Tool], tool: Tool, given: Mapping[Any, Any]) -> BoundCall:
    has_habits = is_method(tool.function)
    methods_names = {own: name for name, own in tool.renames.items()}
    reader = LenientReader(ALIASES if has_habits else methods_names)
    values = reader.read_members(tool.parameters, given)
    if not (reader.problems and has_habits):
        return BoundCall(tool, values, reader.coercions, reader.problems)
    multi_edit = _tool_for(tools, "multi_edit") if tool.own_name == "edit" else None
    if multi_edit is not None and "edits" in LenientReader(ALIASES).assign_names(
        multi_edit.parameters, given, ""
    ):
        return _bind_foreign(multi_edit, given, [_renamed(tool.name, multi_edit)])
    return _bind_foreign(tool, given, [])


def refusal(
    tool: str, parameters: Sequence[Parameter], problems: Sequence[ArgumentProblem]
) -> InvalidArgumentError:
    """Return the error that names everything that is wrong with the arguments of a call."""
    messages = [problem.message for problem in problems[:_MAX_REPORTED]]
    if len(problems) > len(messages):
        messages.append(f"and {len(problems) - len(messages)} more problems")
    return InvalidArgumentError(
        f"{tool} was not run: {'; '.join(messages)}.",
        hint=f"{tool} takes {describe_names(parameters) or 'no arguments'}.",
        details={"problems": [problem._asdict() for problem in problems[:_MAX_REPORTED]]},
    )


def _tool_for(tools: Mapping[str, Tool], method: str) -> Tool | None:
    methods = (tool for tool in tools.values() if is_method(tool.function))
    return next((tool for tool in methods if tool.own_name == method), None)


def _renamed(name: str, tool: Tool) -> Coercion:
    return Coercion("tool name", f"{short_repr(name)} as {short_repr(tool.name)}")


def _bind_foreign(tool: Tool, given: Mapping[Any, Any], coercions: list[Coercion]) -> BoundCall:
    """Read arguments that include parameters of other products' tools."""
    habits = HABITS.get(tool.own_name, Habits())
    hidden = _hidden_parameters(tool, habits)
    names = {each.target: each.name for each in (*tool.parameters, *hidden)}
    foreign = [
        row for row in (*habits.foreign, *REASONS) if row.name in names or row.name not in names.values()
    ]
    aliases = {**ALIASES}
    for name, more in (*habits.aliases.items(), *((row.name, row.aliases) for row in foreign)):
        aliases[name] = f"{aliases.get(name, '')} {more}"
    others = [Parameter(row.name, row.kind, "", required=False) for row in foreign if row.name not in names]
    reader = LenientReader(aliases)
    reader.coercions += coercions
    values = reader.assign_names(tool.parameters, given, "", (*hidden, *others))
    _translate(foreign, names, values, reader)
    used = tuple(each for each in hidden if each.name in values)
    for each in used:
        if each.name in given:
            reader.add_coercion(each.name, "though not in the schema")
    parameters = tuple(
        each._replace(kind=_ONE_OR_MORE) if each.target in habits.lists.split() else each
        for each in (*tool.parameters, *used)
    )
    read = reader.read_members(parameters, values)
    if not reader.problems:
        tool = replace(tool, expose=(*tool.expose, *(each.target for each in used)))
    return BoundCall(tool, read, reader.coercions, [*dict.fromkeys(reader.problems)])


def _translate(
    foreign: Sequence[Habit], names: Mapping[str, str], values: dict[str, Any], reader: LenientReader
) -> None:
    """Replace the values of foreign parameters by what they mean.

    Args:
        foreign: The foreign parameters that the tool takes.
        names: The visible name of each of the method's own parameters.
        values: The values by visible name, or by the name of the foreign parameter; changed in place.
        reader: Records coercions and problems.
    """
    own = {target: values[name] for target, name in names.items() if name in values}
    sent: dict[str, Any] = {}
    for row in foreign:
        name = names.get(row.name, row.name)
        value = values.get(name) if row.name in names else values.pop(name, None)
        if value is not None:
            sent[row.name] = row.kind.read(value, name, reader)
    if reader.problems:
        return
    for row in foreign:
        if row.name not in sent:
            continue
        try:
            meant = row.meaning(sent[row.name], {**own, **sent})
        except AgentFSError:
            raise
        except ValueError as error:
            reader.add_problem(row.name, f"`{row.name}` is not accepted: {error}")
            continue
        if row.name in names:
            del values[names[row.name]]
        if meant != {row.name: own.get(row.name)}:
            rule = ", ".join(f"{names.get(each, each)}={short_repr(value)}" for each, value in meant.items())
            reader.add_coercion(row.name, f"as {rule}" if rule else "left out")
        for target, value in meant.items():
            if target not in names:  # the program has hidden it
                reader.add_unknown(row.name, "")
            elif values.setdefault(name := names[target], value) != value:
                reader.add_problem(name, f"`{name}` is given twice, also by {short_repr(row.name)}")


def _hidden_parameters(tool: Tool, habits: Habits) -> list[Parameter]:
    """Return the parameters that are accepted although no schema shows them."""
    visible = tool.visible_names
    names = [
        name for name in exposable(tool.function) if name in habits.hidden.split() and name not in visible
    ]
    exposing = replace(tool, expose=(*tool.expose, *names))
    return [each for each in exposing.parameters if each.target in names]
