"""What the tools of a toolset are called, for the texts that advise to call them. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agentfs.messages import Names, NextCall, Retry
from agentfs.results import plain
from agentfs.tools.spec import Tool
from agentfs.tools.types import Kind, ListOf, MapOf, OptionalOf, Record, UnionOf


class ToolNames(Names):
    """The names of the tools at hand, while one of them answers a call."""

    def __init__(self, tools: Sequence[Tool], tool: Tool, values: Mapping[str, Any]) -> None:
        """Keep what names are made from.

        Args:
            tools: The tools at hand.
            tool: The one that was called.
            values: Its arguments, by the names that a model sees.
        """
        self._tools = (tool, *(each for each in tools if each is not tool))
        self._tool = tool
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
        own = self._tool.renames.get(name, name)
        members = (member for each in self._tool.parameters for member in _members(each.kind))
        return _visible(self._tool).get(own) or next((each for each in members if each == own), None)

    def call(self, call: NextCall) -> NextCall | None:
        """Return the call of the first tool that can make a call of a method, the one called first of all."""
        for tool in self._tools:
            arguments = tool.follow(call) if tool.follow is not None else None
            if arguments is None:
                arguments = _arguments(tool, call)
            if arguments is not None:
                return {"name": tool.name, "arguments": dict(arguments)}
        return None

    def retry(self, retry: Retry) -> Retry | None:
        """Return what to change in the arguments of the tool that was called."""
        if self._tool.vary is not None:
            return self._tool.vary(retry, self._values)
        shown = {name: self._top(name) for name in (*retry.arguments, *retry.without)}
        if None in shown.values():
            return None
        arguments = {str(shown[name]): value for name, value in retry.arguments.items()}
        return Retry(arguments, tuple(str(shown[name]) for name in retry.without))

    def repeated(self, retry: Retry) -> NextCall | None:
        """Return the call that was answered, with these changes."""
        kept = {name: plain(value) for name, value in self._values.items() if name not in retry.without}
        return {"name": self._tool.name, "arguments": {**kept, **retry.arguments}}

    def _top(self, name: str) -> str | None:
        return _visible(self._tool).get(self._tool.renames.get(name, name))


def _visible(tool: Tool) -> dict[str, str]:
    return {parameter.target: parameter.name for parameter in tool.parameters}


def _arguments(tool: Tool, call: NextCall) -> dict[str, Any] | None:
    """Return a call of a method as arguments of a tool that takes the same, or None."""
    if call["name"] not in tool.methods:
        return None
    shown = _visible(tool)
    arguments: dict[str, Any] = dict(tool.methods[call["name"]])
    for name, value in call["arguments"].items():
        own = tool.renames.get(name, name)
        if own in shown:
            arguments[shown[own]] = value
        elif own not in tool.preset or tool.preset[own] != value:
            return None
    return arguments if all(p.name in arguments for p in tool.parameters if p.required) else None


def _members(kind: Kind) -> Iterator[str]:
    match kind:
        case Record():
            for member in kind.members:
                yield member.name
                yield from _members(member.kind)
        case ListOf():
            yield from _members(kind.item)
        case MapOf():
            yield from _members(kind.value)
        case OptionalOf():
            yield from _members(kind.kind)
        case UnionOf():
            for option in kind.options:
                yield from _members(option)
        case _:
            pass
