"""A call as a model sent it as a call of a tool at hand: what other tools are called and take is translated.

Only for methods of a workspace, whose meaning is known; each translation is recorded as a coercion.
"""

import inspect
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, get_type_hints

from agentfs.errors import AgentFSError, UnknownToolError
from agentfs.messages import Joined, Message
from agentfs.results import Coercion, plain
from agentfs.tools.aliases import (
    EDITORS,
    HABITS,
    REASONS,
    TOOL_NAMES,
    UNCERTAIN,
    Habits,
    nearest,
    plain_name,
    resolve_names,
    snake_case,
)
from agentfs.tools.coerce import Binder, BoundArguments, bind, parse_arguments
from agentfs.tools.declaration import declaration_of
from agentfs.tools.spec import Tool, exposable, make_tool
from agentfs.tools.types import Anything, Parameter, kind_of, short_repr


class MeantCall(NamedTuple):
    """The tool that a name means, and the arguments that are left for it."""

    tool: Tool
    arguments: Any
    coercion: Coercion


def bind_call(tools: Mapping[str, Tool], tool: Tool, given: Mapping[Any, Any]) -> tuple[Tool, BoundArguments]:
    """Read the arguments of a call; return also the tool, which may be another, or show more parameters."""
    bound = bind(tool.parameters, given)
    if not bound.problems or declaration_of(tool.spec.target) is None:
        return tool, bound
    several = _tool_for(tools, "multi_edit") if tool.own_name == "edit" else None
    if several is not None and "edits" in resolve_names(several.parameters, given).values:
        meant, bound = _bind_habits(several, given)
        bound.coercions.insert(0, _renamed(tool.name, several))
        return meant, bound
    return _bind_habits(tool, given)


def find_meant(tools: Mapping[str, Tool], name: Any, arguments: Any) -> MeantCall:
    """Return the call that an unknown name means; raise `unknown_tool` where it could mean several."""
    given: Mapping[Any, Any] = {}
    proposals: list[Message] = []
    near = None
    if isinstance(name, str):
        try:
            given = parse_arguments(arguments)
        except AgentFSError:  # which is reported once the tool is known
            given = {}
        wanted, sent = plain_name(name), arguments
        command = given.get("command")
        if wanted in EDITORS and isinstance(command, str):
            given = sent = {key: value for key, value in given.items() if key != "command"}
            wanted = command
        method = next((each for each, others in TOOL_NAMES.items() if wanted in others), wanted)
        named = (tool for tool in tools.values() if wanted == snake_case(tool.name))
        if (tool := next(named, None) or _tool_for(tools, method)) is not None:
            return MeantCall(tool, sent, _renamed(name, tool))
        near = nearest(name.lower(), tools)
        proposals = [
            _proposal(tools, tool, {**given, **more})
            for each, more in UNCERTAIN.get(wanted, ())
            if (tool := _tool_for(tools, each)) is not None
        ]
    meant = f" (did you mean `{near}`?)" if near and not proposals else ""
    raise UnknownToolError(
        f"There is no tool {short_repr(name)}{meant}.",
        hint=Joined(
            " ",
            Message("Call ", Joined(" or ", *proposals), ".") if proposals else "",
            f"The tools are {', '.join(tools)}.",
        ),
        details={"names": list(tools), "nearest": near},
    )


def _tool_for(tools: Mapping[str, Tool], method: str) -> Tool | None:
    declared = (tool for tool in tools.values() if declaration_of(tool.spec.target) is not None)
    return next((tool for tool in declared if tool.own_name == method), None)


def _renamed(name: str, tool: Tool) -> Coercion:
    return Coercion("tool name", f"{short_repr(name)} as {short_repr(tool.name)}")


def _proposal(tools: Mapping[str, Tool], tool: Tool, given: Mapping[Any, Any]) -> Message:
    """Return the call of a tool with these arguments, or its name where it does not take them."""
    meant, bound = bind_call(tools, tool, given)
    if bound.problems:
        return Message(f"`{tool.name}`")
    values = {name: plain(value) for name, value in bound.values.items()}
    pattern = values.get("pattern")
    if tool.own_name == "glob" and isinstance(pattern, str) and not any(mark in pattern for mark in "*?[{"):
        values["pattern"] = f"**/*{pattern}*" if "/" in pattern else f"*{pattern}*"
    return Message({"name": meant.name, "arguments": values})


def _bind_habits(tool: Tool, given: Mapping[Any, Any]) -> tuple[Tool, BoundArguments]:
    """Read arguments of which some are another tool's."""
    habits = HABITS.get(tool.own_name, Habits())
    visible = tool.visible_names
    foreign, shared = _foreign_parameters(habits, visible)
    hidden = _hidden_parameters(tool, habits)
    taken = {each.name for each in foreign}
    more = (*foreign, *(each for each in hidden if each.name not in taken))
    resolved = resolve_names(tool.parameters, given, more, habits.aliases)
    binder = Binder()
    present = {each: resolved.values.pop(each.name) for each in foreign if each.name in resolved.values}
    left_out = [each.name for each, value in present.items() if value is None or each.name in REASONS]
    sent = {
        each.name: binder.value(each.kind, value, each.name)
        for each, value in present.items()
        if each.name not in left_out
    }
    if left_out:
        binder.add_coercion(", ".join(left_out), "left out")
    own = {name: resolved.values[visible[name]] for name in shared if visible[name] in resolved.values}
    names = {each.target: each.name for each in hidden} | visible
    converted: Mapping[str, Any] = {}
    if not binder.problems:
        converted = _converted(habits, binder, sent, own, names)
    for target, value in converted.items():
        name = names.get(target)
        if name is None:  # the program has hidden it
            resolved.unknown += [(each, None) for each in sent]
        elif target not in shared and name in resolved.values and resolved.values[name] != value:
            resolved.duplicates[name] = (resolved.aliases.get(name, name), next(iter(sent), name))
        else:
            resolved.values[name] = value
    used = [each for each in hidden if each.name in resolved.values]
    for each in used:
        if each.name not in resolved.aliases and each.target not in converted:
            binder.add_coercion(each.name, "though the schema has it not")
    values = binder.resolved((*tool.parameters, *used), resolved)
    if not binder.problems:
        tool = tool._replace(parameters=(*tool.parameters, *used))
    return tool, BoundArguments(values, binder.coercions, binder.problems)


def _converted(
    habits: Habits, binder: Binder, sent: Mapping[str, Any], own: Mapping[str, Any], names: Mapping[str, str]
) -> Mapping[str, Any]:
    """Return the arguments of the method that another tool's, and those that both have, are."""
    try:
        converted = habits.convert(**sent, **own)
    except AgentFSError:
        raise
    except ValueError as error:
        binder.add_problem(next(iter(sent)), f"`{'`, `'.join(sent)}` cannot be taken: {error}")
        return {}
    if translated := [*sent] or [*converted][:1]:
        rule = ", ".join(f"{names.get(each, each)}={short_repr(value)}" for each, value in converted.items())
        binder.add_coercion(", ".join(translated), f"as {rule}" if rule else "left out")
    return converted


def _foreign_parameters(habits: Habits, names: Mapping[str, str]) -> tuple[list[Parameter], Sequence[str]]:
    """Return the parameters that only other tools have, and those that `convert` shares with the method."""
    hints, declared = get_type_hints(habits.convert), inspect.signature(habits.convert).parameters
    foreign = [
        Parameter(name, kind_of(hints[name]), "", required=False, default=each.default)
        for name, each in declared.items()
        if name not in names
    ]
    foreign += [Parameter(name, Anything(), "", required=False) for name in REASONS if name not in names]
    return foreign, [name for name in declared if name in names]


def _hidden_parameters(tool: Tool, habits: Habits) -> list[Parameter]:
    """Return the parameters that are taken though no schema shows them, but for those that are preset."""
    spec = tool.spec
    kept = {*spec.preset, *spec.hide, *tool.visible_names}
    names = [name for name in exposable(spec.target) if name in habits.hidden and name not in kept]
    return [each for each in make_tool(spec.target, expose=names).parameters if each.target in names]
