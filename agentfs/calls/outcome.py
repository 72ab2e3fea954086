"""What a call came to, as a `ToolResult`: an answer, a refusal, or a fault of ours."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, is_dataclass
from typing import Any, cast

from agentfs.errors import AgentFSError
from agentfs.results import (
    EditResult,
    GlobResult,
    GrepResult,
    ListResult,
    NextCall,
    ReadResult,
    Result,
    ToolResult,
    WriteResult,
)
from agentfs.signatures.tools import Tool
from agentfs.text.render import continuation

_SHORT = 120


def answered(tool: Tool, values: Mapping[str, Any], returned: Any, tools: Iterable[Tool] = ()) -> ToolResult:
    """Return the result of a call that returned.

    Args:
        tool: What was called.
        values: With what.
        returned: What it returned: a `Result`, text, or anything that JSON can show.
        tools: What else may be called, for the call that continues the result.
    """
    path = _file_path(tool, values)
    if isinstance(returned, ToolResult):
        return returned
    if isinstance(returned, Result):
        following = _offered(returned.next, (tool, *tools))
        return ToolResult(
            success=True,
            content=_with_call(returned.text, returned.next, following),
            short_result=_summary(returned) or _first_line(returned.text),
            images=returned.images if isinstance(returned, ReadResult) else (),
            file_path=getattr(returned, "path", path),
            data={**returned.to_dict(), "next": following},
            next=following,
        )
    if isinstance(returned, str):
        return ToolResult(True, returned, _first_line(returned), file_path=path)
    content = json.dumps(returned, ensure_ascii=False, default=_plain)
    return ToolResult(True, content, _first_line(content), file_path=path, data=json.loads(content))


def _offered(call: NextCall | None, tools: Sequence[Tool]) -> NextCall | None:
    """Return a call of a method as a call of the tool that offers it, or None when none can make it."""
    if call is None:
        return None
    for tool in tools:
        if tool.follow is not None:
            arguments = tool.follow(call)
            if arguments is not None:
                return {"name": tool.name, "arguments": dict(arguments)}
            continue
        if getattr(tool.target, "__name__", None) != call["name"]:
            continue
        shown = {parameter.target: parameter.name for parameter in tool.parameters}
        given = call["arguments"].items()
        if all(
            name in shown or (name in tool.preset and tool.preset[name] == value) for name, value in given
        ):
            return {"name": tool.name, "arguments": {shown[n]: value for n, value in given if n in shown}}
    return None


def _with_call(text: str, own: NextCall | None, offered: NextCall | None) -> str:
    """Return a text whose footer names the call that is offered in place of the method's own."""
    if own is None or own == offered:
        return text
    before, found, after = text.rpartition(continuation(own))
    if not found:
        return text
    # Without a tool that could continue it, it is still said that there is more.
    return f"{before}{continuation(offered) or 'there is more'}{after}"


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
        short_result=_first_line(error.message),
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
    message = f"{called} failed with an error of its own, not of the arguments: {_first_line(reason)}."
    return ToolResult(
        success=False,
        content=f"{message}\nTry it another way; repeating the same call will hardly help.",
        short_result=_first_line(message),
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
            return f"Read {result.path}: lines {result.start_line}-{result.end_line} of {result.total_lines}"
        case WriteResult():
            done = "Created" if result.created else "Wrote"
            return f"{done} {result.path}, {_count(result.bytes_written, 'byte')}"
        case EditResult():
            return f"Edited {result.path}: {_count(result.replacements, 'replacement')}"
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


def _first_line(text: str) -> str:
    line = next((line.strip() for line in text[:10_000].split("\n") if line.strip()), "")
    return line if len(line) <= _SHORT else f"{line[: _SHORT - 1]}…"


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, (set, frozenset)):
        return sorted(cast("set[Any]", value), key=str)
    return str(value)
