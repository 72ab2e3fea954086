"""Translate calls that use the names and parameters of other tools into calls of the tools at hand.

Only calls of workspace methods are translated, because their meaning is known. Each translation is recorded
as a coercion.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from agentfs.advice import Advice, Joined
from agentfs.errors import AgentFSError, UnknownToolError
from agentfs.nearest import nearest
from agentfs.results import Coercion, plain
from agentfs.tools.aliases import (
    EDITORS,
    HABITS,
    REASONS,
    TOOL_NAMES,
    UNCERTAIN,
    Habits,
    plain_name,
    snake_case,
)
from agentfs.tools.coerce import LenientReader, parse_arguments
from agentfs.tools.declaration import declaration_of
from agentfs.tools.kinds import ArgumentProblem, Parameter, short_repr
from agentfs.tools.spec import Tool, exposable, make_tool


class BoundArguments(NamedTuple):
    """The tool to call, and the values to call it with if there are no problems.

    A parameter left to its default is not among the values.
    """

    tool: Tool
    values: dict[str, Any]
    coercions: list[Coercion]
    problems: list[ArgumentProblem]


def bind_call(tools: Mapping[str, Tool], tool: Tool, given: Mapping[Any, Any]) -> BoundArguments:
    """Read the arguments of a call. The tool may become another, or show more parameters."""
    reader = LenientReader()
    values = reader.read_members(tool.parameters, given)
    if not reader.problems or declaration_of(tool.spec.target) is None:
        return BoundArguments(tool, values, reader.coercions, reader.problems)
    several = _tool_for(tools, "multi_edit") if tool.own_name == "edit" else None
    if several is not None and "edits" in LenientReader().assign_names(several.parameters, given, ""):
        return _bind_foreign(several, given, [_renamed(tool.name, several)])
    return _bind_foreign(tool, given, [])


def find_meant(tools: Mapping[str, Tool], name: Any, arguments: Any) -> tuple[Tool, Any, Coercion]:
    """Return the tool that an unknown name means, with its arguments; raise `unknown_tool` without one."""
    near = None
    proposals: list[Advice] = []
    if isinstance(name, str):
        given: dict[Any, Any] = {}
        with suppress(AgentFSError):  # which is reported once the tool is known
            given = dict(parse_arguments(arguments))
        wanted, sent = plain_name(name), arguments
        if wanted in EDITORS and isinstance(given.get("command"), str):
            wanted, sent = given.pop("command"), given
        method = next((each for each, others in TOOL_NAMES.items() if wanted in others), wanted)
        named = (tool for tool in tools.values() if wanted == snake_case(tool.name))
        if (tool := next(named, None) or _tool_for(tools, method)) is not None:
            return tool, sent, _renamed(name, tool)
        near = nearest(name.lower(), tools)
        proposals = [
            _proposal(tools, tool, {**given, **more})
            for each, more in UNCERTAIN.get(wanted, ())
            if (tool := _tool_for(tools, each)) is not None
        ]
    meant = f" (did you mean `{near}`?)" if near and not proposals else ""
    call = Advice("Call ", Joined(" or ", *proposals), ".") if proposals else ""
    raise UnknownToolError(
        f"There is no tool {short_repr(name)}{meant}.",
        hint=Joined(" ", call, f"The tools are {', '.join(tools)}."),
        details={"names": list(tools), "nearest": near},
    )


def _proposal(tools: Mapping[str, Tool], tool: Tool, given: Mapping[Any, Any]) -> Advice:
    """Return the call of a tool with these arguments, or its name if it does not take them."""
    bound = bind_call(tools, tool, given)
    if bound.problems:
        return Advice(f"`{tool.name}`")
    values = {name: plain(value) for name, value in bound.values.items()}
    pattern = values.get("pattern")
    if tool.own_name == "glob" and isinstance(pattern, str) and not any(mark in pattern for mark in "*?[{"):
        values["pattern"] = f"**/*{pattern}*" if "/" in pattern else f"*{pattern}*"
    return Advice({"name": bound.tool.name, "arguments": values})


def _tool_for(tools: Mapping[str, Tool], method: str) -> Tool | None:
    declared = (tool for tool in tools.values() if declaration_of(tool.spec.target) is not None)
    return next((tool for tool in declared if tool.own_name == method), None)


def _renamed(name: str, tool: Tool) -> Coercion:
    return Coercion("tool name", f"{short_repr(name)} as {short_repr(tool.name)}")


def _bind_foreign(tool: Tool, given: Mapping[Any, Any], coercions: list[Coercion]) -> BoundArguments:
    """Read arguments, some of which are parameters of other tools."""
    habits = HABITS.get(tool.own_name, Habits())
    hidden = _hidden_parameters(tool, habits)
    names = {each.target: each.name for each in (*tool.parameters, *hidden)}
    foreign = [
        row for row in (*habits.foreign, *REASONS) if row.name in names or row.name not in names.values()
    ]
    aliases = {**habits.aliases, **{row.name: row.aliases for row in foreign if row.aliases}}
    others = [Parameter(row.name, row.kind, "", required=False) for row in foreign if row.name not in names]
    reader = LenientReader()
    reader.coercions += coercions
    values = reader.assign_names(tool.parameters, given, "", (*hidden, *others), aliases)
    own = {target: values[name] for target, name in names.items() if name in values}
    sent: dict[str, Any] = {}
    for row in foreign:
        name = names.get(row.name, row.name)
        if name not in values:
            continue
        value = values[name] if row.name in names else values.pop(name)
        if value is not None:
            sent[row.name] = row.kind.read(value, name, reader)
    for row in foreign if not reader.problems else ():
        if row.name not in sent:
            continue
        try:
            meant = row.meaning(sent[row.name], {**own, **sent})
        except AgentFSError:
            raise
        except ValueError as error:
            reader.add_problem(row.name, f"`{row.name}` cannot be taken: {error}")
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
    used = tuple(each for each in hidden if each.name in values)
    for each in used:
        if each.name in given:
            reader.add_coercion(each.name, "though the schema has it not")
    parameters = (*tool.parameters, *used)
    read = reader.read_members(parameters, values)
    if not reader.problems:
        tool = tool._replace(parameters=parameters)
    return BoundArguments(tool, read, reader.coercions, [*dict.fromkeys(reader.problems)])


def _hidden_parameters(tool: Tool, habits: Habits) -> list[Parameter]:
    """Return the parameters that are taken though no schema shows them, except preset ones."""
    spec = tool.spec
    kept = {*spec.preset, *spec.hide, *tool.visible_names}
    names = [name for name in exposable(spec.target) if name in habits.hidden and name not in kept]
    return [each for each in make_tool(spec.target, expose=names).parameters if each.target in names]
