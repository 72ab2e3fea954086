"""The `ToolResult` of a call: of a value, of an `AgentFSError`, of any other exception."""

import json
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from typing import Any, cast

from agentfs.errors import AgentFSError
from agentfs.results import ReadResult, Result, ToolResult
from agentfs.tools.spec import Tool
from agentfs.visible import quoted, to_json

_MAX_LINE = 120


def from_value(tool: Tool, values: Mapping[str, Any], returned: Any) -> ToolResult:
    """Return the result of a call that returned a `Result`, text, or what JSON can show."""
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
    if isinstance(returned, str):
        return ToolResult(True, returned, first_line(returned), file_path=path)
    content = to_json(returned, default=_plain)
    return ToolResult(True, content, first_line(content), file_path=path, data=json.loads(content))


def from_error(
    error: AgentFSError, tool: Tool | None = None, values: Mapping[str, Any] | None = None
) -> ToolResult:
    """Return the result of a call that agentfs refused or failed to do."""
    return ToolResult(
        success=False,
        content=str(error),
        short_result=first_line(error.message),
        error={"code": error.code, "message": error.message},
        file_path=_file_path(tool, values or {}),
        data=error.to_dict(),
    )


def from_exception(error: Exception, tool: Tool | None, values: Mapping[str, Any]) -> ToolResult:
    """Return the result of a call that ended in an unexpected exception."""
    # The text of an OSError holds absolute paths, which may lie outside of the workspace.
    text = error.strerror if isinstance(error, OSError) else str(error)
    reason = f"{type(error).__name__}: {text}" if text else type(error).__name__
    name = tool.name if tool else "The call"
    message = f"{name} failed with an error of its own, not of the arguments: {first_line(reason)}."
    return ToolResult(
        success=False,
        content=f"{message}\nTry it another way; repeating the same call will hardly help.",
        short_result=first_line(message),
        error={"code": "internal", "message": message},
        file_path=_file_path(tool, values),
    )


def first_line(text: str) -> str:
    """Return the first line of a text that is not blank, short and on one line, for a person."""
    line = quoted(next((line.strip() for line in text[:10_000].split("\n") if line.strip()), ""))
    return line if len(line) <= _MAX_LINE else f"{line[: _MAX_LINE - 1]}…"


def _file_path(tool: Tool | None, values: Mapping[str, Any]) -> str | None:
    """Return the file of a tool that needs one; a `path` that may be left out is where a search starts."""
    for parameter in tool.parameters if tool else ():
        if parameter.target == "path" and parameter.required:
            path = values.get(parameter.name)
            return path if isinstance(path, str) else None
    return None


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, (set, frozenset)):
        return sorted(cast("set[Any]", value), key=str)
    return str(value)
