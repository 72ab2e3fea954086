"""The names of the tools at hand, for texts that suggest calls."""

from collections.abc import Mapping, Sequence
from typing import Any

from agentfs.advice import Names, NextCall, Retry
from agentfs.results import plain
from agentfs.tools.kinds import Record
from agentfs.tools.spec import Tool


class ToolNames(Names):
    """The names of the tools at hand while `called` answers a call; `values` has its names."""

    def __init__(self, tools: Sequence[Tool], called: Tool, values: Mapping[str, Any]) -> None:
        self._tools = (called, *(tool for tool in tools if tool.name != called.name))
        self._called = called
        self._values = values

    def tool(self, method: str) -> str | None:
        """Return the name of the tool for a method, with the arguments that make it that method."""
        for tool in self._tools:
            chosen = tool.methods.get(method)
            if chosen is not None:
                arguments = " and ".join(f'{name}="{value}"' for name, value in chosen.items())
                return f"{tool.name} with {arguments}" if arguments else tool.name
        return None

    def parameter(self, name: str) -> str | None:
        """Return the name of a parameter of the tool that was called, or of a member of one."""
        own = self._called.spec.renames.get(name, name)
        if (visible := self._called.visible_names.get(own)) is not None:
            return visible
        kinds = (kind for each in self._called.parameters for kind in each.kind.walk())
        records = (kind for kind in kinds if isinstance(kind, Record))
        return next((own for record in records for member in record.members if member.name == own), None)

    def call(self, call: NextCall) -> NextCall | None:
        """Return the call of the first tool that can make a call of a method, the one called first of all."""
        for tool in self._tools:
            arguments = tool.spec.map_next_call(call) if tool.spec.map_next_call is not None else None
            if arguments is None:
                arguments = _arguments(tool, call)
            if arguments is not None:
                return {"name": tool.name, "arguments": dict(arguments)}
        return None

    def retry(self, retry: Retry) -> Retry | None:
        """Return what to change in the arguments of the tool that was called."""
        spec = self._called.spec
        if spec.map_retry is not None:
            return spec.map_retry(retry, self._values)
        visible = self._called.visible_names
        names = {
            name: visible.get(spec.renames.get(name, name)) for name in (*retry.arguments, *retry.without)
        }
        if None in names.values():
            return None
        arguments = {str(names[name]): value for name, value in retry.arguments.items()}
        return Retry(arguments, tuple(str(names[name]) for name in retry.without))

    def repeated(self, retry: Retry) -> NextCall | None:
        """Return the call that was answered, with these changes."""
        kept = {name: plain(value) for name, value in self._values.items() if name not in retry.without}
        return {"name": self._called.name, "arguments": {**kept, **retry.arguments}}


def _arguments(tool: Tool, call: NextCall) -> dict[str, Any] | None:
    """Return a call of a method as arguments of a tool, or None where its parameters cannot express it."""
    if call["name"] not in tool.methods:
        return None
    visible, preset = tool.visible_names, tool.spec.preset
    arguments: dict[str, Any] = dict(tool.methods[call["name"]])
    for name, value in call["arguments"].items():
        own = tool.spec.renames.get(name, name)
        if own in visible:
            arguments[visible[own]] = value
        elif own not in preset or preset[own] != value:
            return None
    return arguments if all(p.name in arguments for p in tool.parameters if p.required) else None
