"""What a call came to, as a `ToolResult`: an answer, a refusal, or a fault of ours."""

import json
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from typing import Any, cast

from agentfs.errors import AgentFSError
from agentfs.results import (
    EditResult,
    GlobResult,
    GrepResult,
    ListResult,
    ReadResult,
    Result,
    ToolResult,
    WriteResult,
)
from agentfs.tools.spec import Tool
from agentfs.visible import one_line, quoted, to_json

_SHORT = 120


def answered(tool: Tool, values: Mapping[str, Any], returned: Any) -> ToolResult:
    """Return the result of a call that returned.

    Args:
        tool: What was called.
        values: With what.
        returned: What it returned: a `Result` in the names of the tools, text, or what JSON can show.
    """
    path = _file_path(tool, values)
    if isinstance(returned, ToolResult):
        return returned
    if isinstance(returned, Result):
        return ToolResult(
            success=True,
            content=returned.text,
            short_result=_summary(returned) or first_line(returned.text),
            images=returned.images if isinstance(returned, ReadResult) else (),
            file_path=getattr(returned, "path", path),
            data=returned.to_dict(),
            next=returned.next,
        )
    if isinstance(returned, str):
        return ToolResult(True, returned, first_line(returned), file_path=path)
    content = to_json(returned, default=_plain)
    return ToolResult(True, content, first_line(content), file_path=path, data=json.loads(content))


def refused(
    error: AgentFSError, tool: Tool | None = None, values: Mapping[str, Any] | None = None
) -> ToolResult:
    """Return the result of a call that agentfs refused or failed to do.

    Args:
        error: Why.
        tool: What was called, if there is such a tool.
        values: With what, if that was understood.
    """
    return ToolResult(
        success=False,
        content=str(error),
        short_result=first_line(error.message),
        error={"code": error.code, "message": error.message},
        file_path=_file_path(tool, values or {}),
        data=error.to_dict(),
    )


def broken(error: Exception, tool: Tool | None, values: Mapping[str, Any]) -> ToolResult:
    """Return the result of a call that ended in an exception nobody foresaw.

    Args:
        error: The exception.
        tool: What was called, if there is such a tool.
        values: With what, if that was understood.
    """
    # The text of an OSError holds absolute paths, which may lie outside of the workspace.
    told = error.strerror if isinstance(error, OSError) else str(error)
    reason = f"{type(error).__name__}: {told}" if told else type(error).__name__
    called = tool.name if tool else "The call"
    message = f"{called} failed with an error of its own, not of the arguments: {first_line(reason)}."
    return ToolResult(
        success=False,
        content=f"{message}\nTry it another way; repeating the same call will hardly help.",
        short_result=first_line(message),
        error={"code": "internal", "message": message},
        file_path=_file_path(tool, values),
    )


def _file_path(tool: Tool | None, values: Mapping[str, Any]) -> str | None:
    """Return the file of a tool that needs one; a `path` that may be left out names a place to search."""
    for parameter in tool.parameters if tool else ():
        if parameter.target == "path" and parameter.required:
            path = values.get(parameter.name)
            return path if isinstance(path, str) else None
    return None


def _summary(result: Result) -> str:
    match result:
        case ReadResult():
            shown = f"lines {result.start_line}-{result.end_line} of {result.total_lines}"
            return f"Read {one_line(result.path)}: {shown}"
        case WriteResult():
            done = "Created" if result.created else "Wrote"
            return f"{done} {one_line(result.path)}, {_count(result.bytes_written, 'byte')}"
        case EditResult():
            return f"Edited {one_line(result.path)}: {_count(result.replacements, 'replacement')}"
        case ListResult():
            return _count(result.total, "entry", "entries")
        case GlobResult():
            return _count(result.total, "file")
        case GrepResult():
            matches = _count(result.total_matches, "match", "matches")
            return f"{matches} in {_count(result.total_files, 'file')}"
        case _:
            return ""


def _count(number: int, one: str, several: str = "") -> str:
    return f"{number:,} {one if number == 1 else several or one + 's'}"


def first_line(text: str) -> str:
    """Return the first line of a text that holds anything, short and on one line, for a person.

    Args:
        text: The text.
    """
    line = quoted(next((line.strip() for line in text[:10_000].split("\n") if line.strip()), ""))
    return line if len(line) <= _SHORT else f"{line[: _SHORT - 1]}…"


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, (set, frozenset)):
        return sorted(cast("set[Any]", value), key=str)
    return str(value)
