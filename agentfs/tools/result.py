"""The `ToolResult` of a call, and the names that its suggestions use for the offered tools."""

import json
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, cast

from agentfs.arguments.kinds import Record
from agentfs.base.advice import Names, NextCall, Retry
from agentfs.base.visible import first_line, to_json
from agentfs.errors import AgentFSError
from agentfs.results import ReadResult, Result, ToolResult, plain
from agentfs.tools.tool import Tool

AFTER_AN_EXCEPTION = "Try it another way; repeating the same call will hardly help."  # the hint


def from_value(tool: Tool, values: Mapping[str, Any], returned: Any) -> ToolResult:
    """Return the result of a call that returned a `Result`, a text, or a value for JSON."""
    path = _file_path(tool, values)
    if isinstance(returned, ToolResult):
        return returned
    if isinstance(returned, Result):
        return ToolResult(
            success=True,
            content=returned.text,
            short_result=returned.summary or first_line(returned.text),
            images=returned.images if isinstance(returned, ReadResult) else (),
            file_path=getattr(returned, "path", path),
            data=returned.to_dict(),
            next=returned.next,
        )
    content, data = returned, None
    try:
        if not isinstance(returned, str):
            content = to_json(plain(returned), default=_jsonable, allow_nan=False)
            data = json.loads(content)
    except Exception:  # noqa: BLE001 - what is not JSON is text; the tool has acted, so it has not failed
        content = _as_text(returned)
    return ToolResult(True, content, first_line(content), file_path=path, data=data)


def from_error(error: Exception, tool: Tool | None = None, values: Mapping[str, Any] = {}) -> ToolResult:
    """Return the result of a call that raised an exception."""
    if isinstance(error, AgentFSError):
        code, message, content, data = error.code, error.message, str(error), error.to_dict()
    else:  # Its text may hold a secret or an outer path. A tool that wants to tell more raises a `ToolError`.
        name, kind = tool.name if tool else "The call", type(error).__name__
        message = f"{name} failed with an internal error, {kind}, not because of the arguments."
        code, content, data = "internal", f"{message}\n{AFTER_AN_EXCEPTION}", None
    failure = {"code": code, "message": message}
    path = None if tool is None else _file_path(tool, values)
    return ToolResult(False, content, first_line(message), failure, file_path=path, data=data)


def _file_path(tool: Tool, values: Mapping[str, Any]) -> str | None:
    """Return the file that a call is about; an optional `path` is the start of a search instead."""
    own = tool.renames.get("path", "path")
    named = (values.get(each.name) for each in tool.parameters if each.target == own and each.required)
    path = next(named, None)
    return path if isinstance(path, str) else None


def _as_text(value: Any) -> str:
    try:
        return str(value)
    except Exception:  # noqa: BLE001 - of the program's own class
        return f"a {type(value).__name__}"


def _jsonable(value: Any) -> Any:
    if callable(dump := getattr(value, "model_dump", None)):  # of a Pydantic model
        return dump(mode="json")
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, (set, frozenset)):
        return sorted(cast("set[Any]", value), key=str)
    return str(value)


class ToolNames(Names):
    """The names of the offered tools, for the answer to a call.

    Args:
        tools: All offered tools.
        called: The tool that was called; it is preferred in suggestions.
        values: The arguments of the call, under visible names.
    """

    def __init__(self, tools: Sequence[Tool], called: Tool, values: Mapping[str, Any]) -> None:
        self._tools = [called, *[tool for tool in tools if tool.name != called.name]]
        self._called = called
        self._values = values

    def tool(self, method: str) -> str | None:
        """Return the name of the tool for a method, with the arguments that select the method."""
        for tool in self._tools:
            if (chosen := tool.stands_for.get(method)) is not None:
                arguments = " and ".join(f'{name}="{value}"' for name, value in chosen.items())
                return f"{tool.name} with {arguments}" if arguments else tool.name
        return None

    def parameter(self, name: str) -> str | None:
        """Return the visible name of a parameter of the called tool, or of a member of a parameter."""
        if (visible := _visible(self._called, name)) is not None:
            return visible
        kinds = (kind for each in self._called.parameters for kind in each.kind.walk())
        members = (member.name for kind in kinds if isinstance(kind, Record) for member in kind.members)
        return next((each for each in members if each == self._called.renames.get(name, name)), None)

    def call(self, call: NextCall) -> NextCall | None:
        """Return the call of a method as a call of a tool that can express it, the called tool first."""
        for tool in self._tools:
            mapped = None if tool.follow is None else tool.follow(call)
            arguments = _arguments(tool, call) if mapped is None else mapped
            if arguments is not None:
                return {"name": tool.name, "arguments": dict(arguments)}
        return self._larger_page(call)

    def _larger_page(self, call: NextCall) -> NextCall | None:
        """Return the answered search with twice the results, if its tool has `limit` but no `offset`."""
        visible, offset = self._called.visible_names, call["arguments"].get("offset")
        limit = visible.get("limit")
        if limit is None or not offset or "offset" in visible or call["name"] not in self._called.stands_for:
            return None
        # A page with fewer results than requested was cut by another limit, which a higher one does not lift.
        is_cut = (self._values.get(limit) or 0) > offset
        pages = self._called.effect == "read" and call["name"] != "read" and not is_cut
        return self.repeated(Retry({limit: 2 * offset})) if pages else None

    def retry(self, retry: Retry) -> Retry | None:
        """Return changes of a method's arguments as changes of the called tool's arguments."""
        if self._called.retry is not None:
            return self._called.retry(retry, self._values)
        arguments = {_visible(self._called, name): value for name, value in retry.arguments.items()}
        without = [_visible(self._called, name) for name in retry.without]
        if None in (*arguments, *without):
            return None
        return Retry({str(name): value for name, value in arguments.items()}, tuple(map(str, without)))

    def repeated(self, retry: Retry) -> NextCall | None:
        """Return the answered call with these changes."""
        kept = {name: plain(value) for name, value in self._values.items() if name not in retry.without}
        return {"name": self._called.name, "arguments": {**kept, **retry.arguments}}


def _visible(tool: Tool, name: str) -> str | None:
    """Return the visible name of a method's parameter, or None if the tool does not have it."""
    return tool.visible_names.get(tool.renames.get(name, name))


def _arguments(tool: Tool, call: NextCall) -> dict[str, Any] | None:
    """Return the arguments of a method as arguments of a tool, or None if it cannot express them."""
    if call["name"] not in tool.stands_for:
        return None
    given = {_visible(tool, name): value for name, value in call["arguments"].items()}
    arguments: dict[Any, Any] = {**tool.stands_for[call["name"]], **given}
    required = {each.name for each in tool.parameters if each.required}
    return arguments if None not in given and required <= arguments.keys() else None
