"""Turn the name and arguments that a model sent into a tool and typed values; record every coercion.

An unambiguous value is converted. All problems are collected, so that the model learns of them at once. Names
of other products' tools and parameters count for methods of a workspace. Nothing is run.
"""

from collections.abc import Mapping
from typing import Any

from agentfs.arguments.json_text import short_repr
from agentfs.arguments.parameters import ArgumentReader, describe_names, snake_case
from agentfs.base.advice import shortened
from agentfs.errors import InvalidArgumentError, UnknownToolError
from agentfs.habits.foreign_names import aliases_of, foreign_arguments, method_meant, plain_name
from agentfs.results import Coercion
from agentfs.text.nearest import nearest
from agentfs.tools.tool import Tool, is_method

_MAX_REPORTED = 12


def find_tool(tools: Mapping[str, Tool], name: Any) -> tuple[Tool, tuple[Coercion, ...]]:
    """Return the tool that a name means; raise `unknown_tool` if there is none."""
    near = None
    if isinstance(name, str):
        if (tool := tools.get(name)) is not None:
            return tool, ()
        wanted, method = plain_name(name), method_meant(plain_name(name))
        same = [each for each in tools.values() if wanted in map(snake_case, (each.name, each.own_name))]
        meant = [each for each in tools.values() if is_method(each.function) and each.own_name == method]
        for tool in (*same, *meant):
            return tool, (Coercion("tool name", f"{short_repr(name)} as {short_repr(tool.name)}"),)
        near = nearest(name.lower(), tools, 0.75)  # `TodoWrite` and `write` are less similar
    raise UnknownToolError(
        f"There is no tool {short_repr(name)}{f' (did you mean `{near}`?)' if near else ''}.",
        hint=f"The tools are {', '.join(tools)}.",
        details={"names": list(tools), "nearest": near},
    )


def bind(tool: Tool, given: Mapping[Any, Any]) -> tuple[dict[str, Any], tuple[Coercion, ...]]:
    """Read the arguments of a call under visible names; raise `invalid_argument` with all that is wrong."""
    if is_method(tool.function):
        reader = ArgumentReader(aliases_of(tool.own_name))
        given = foreign_arguments(tool.own_name, given, tool.visible_names, reader.add_coercion)
    else:
        reader = ArgumentReader({own: name for name, own in tool.renames.items()})
    values = reader.read_members(tool.parameters, given)
    if reader.problems:
        shown = shortened([each.message for each in reader.problems], _MAX_REPORTED, "problem")
        raise InvalidArgumentError(
            f"{tool.name} was not run: {'; '.join(shown)}.",
            hint=f"{tool.name} takes {describe_names(tool.parameters) or 'no arguments'}.",
            details={"problems": [each._asdict() for each in reader.problems[:_MAX_REPORTED]]},
        )
    return values, tuple(reader.coercions)
