"""What the renderers of several dialects share. Pure."""

import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import fields, replace
from typing import Any, Literal, NamedTuple

from agentfs.errors import AgentFSError, PastEndError
from agentfs.fs import quote
from agentfs.results import Match, ReadResult, Skipped, ToolResult
from agentfs.search.searcher import without_marks
from agentfs.text import plural
from agentfs.tools.spec import RenderContext
from agentfs.visible import to_json
from agentfs.workspace import Workspace


class Problem(NamedTuple):
    """Why a call failed.

    Attributes:
        code: A stable name; "internal" for an unexpected exception.
        message: What was wrong, and the places that it names, one a line.
        hint: What to do or call next, or "".
    """

    code: str
    message: str
    hint: str


def problem_of(context: RenderContext) -> Problem | None:
    """Return why a call failed, or None for one that succeeded."""
    error = context.outcome
    if isinstance(error, AgentFSError):
        return Problem(error.code, "\n".join([error.message, *error.places()]), error.hint)
    if context.result.error is None:
        return None
    message, _, hint = context.result.content.partition("\n")
    return Problem(context.result.error["code"], message, hint)


def as_json(context: RenderContext, value: Any) -> ToolResult:
    """Return the result of a call with a value as its data, and as JSON for its text."""
    return replace(context.result, content=to_json(value), data=value)


def absolute_in(workspace: Workspace) -> Callable[[str], str]:
    """Return a function that makes displayed paths absolute, with the separator of the system."""
    root = workspace.root.rstrip("/\\")
    return lambda path: f"{root}{os.sep}{path.replace('/', os.sep)}"


def left_out(skipped: Skipped, *, without: Collection[str] = ()) -> dict[str, Any]:
    """Return what a search left out: a count for each reason, and `reached` where it ended early."""
    counts = {each.name: getattr(skipped, each.name) for each in fields(skipped)}
    return {
        name: value for name, value in counts.items() if value and name != "rules" and name not in without
    }


def left_out_field(skipped: Skipped, *, without: Collection[str] = ()) -> dict[str, Any]:
    """Return the field `left_out` of a JSON reply; no field where nothing was left out."""
    return without_empty(left_out=left_out(skipped, without=without))


def lines_of(read: ReadResult) -> list[str]:
    """Return the lines of a page exactly as they are, without their ends."""
    end = "\r" if read.newline == "\r" else "\n"
    *ended, rest = read.content.split(end)
    lines = [line.removesuffix("\r") for line in ended] if end == "\n" else ended
    return [*lines, rest] if rest else lines


def cut_lines(read: ReadResult, line_chars: int) -> tuple[str, list[int]]:
    """Return the text of a page with long lines cut after `line_chars`, and the numbers of the lines cut."""
    content, parts, position = read.content, list[str](), 0
    lines = lines_of(read)
    numbers = [number for number, line in enumerate(lines, read.start_line) if len(line) > line_chars]
    if not numbers:
        return content, numbers
    for line in lines:
        end = position + len(line)
        position = end + (2 if content.startswith("\r\n", end) else 1)
        parts += [line[:line_chars], content[end:position]]
    return "".join(parts), numbers


def content_of(match: Match) -> dict[str, Any]:
    """Return as `content` the line of a match as it is, and as `cut` how much is omitted at either end."""
    return {"content": without_marks(match)[0], **({"cut": list(match.cut)} if any(match.cut) else {})}


def case_options(case: Literal["sensitive", "insensitive", "smart"]) -> dict[str, Any]:
    """Return the arguments of `grep` for how letters match."""
    return {"ignore_case": case == "insensitive", "smart_case": case == "smart"}


def last_line(arguments: Mapping[str, Any]) -> int | None:
    """Return the last line that a call of `read` asks for; None for all."""
    limit = arguments.get("limit")
    return None if limit is None else arguments.get("offset", 1) + limit - 1


def past_end_of_lines(error: PastEndError, requested: str, valid: str) -> PastEndError:
    """Return a `past_end` of a read in the terms of a tool; one about a directory is returned unchanged."""
    total = error.details.get("total_lines")
    if total is None:
        return error
    return PastEndError(
        f"{quote(error.details['path'])} has {plural(total, 'line')}; {requested} is past its end.",
        hint=f"Pass {valid} {total}." if total else "It is empty: there is nothing to read.",
        details=error.details,
    )


def without_empty(**fields: Any) -> dict[str, Any]:
    """Return the fields of a reply that have a value: neither None nor empty nor false."""
    return {name: value for name, value in fields.items() if value}
