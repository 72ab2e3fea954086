"""What renderers share: a failure in three parts, an answer as JSON, lines as they are. Pure."""

import os
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any, NamedTuple

from agentfs.errors import AgentFSError, PastEndError
from agentfs.fs import quote
from agentfs.results import Match, ReadResult, Skipped, ToolResult
from agentfs.search.excerpts import without_marks
from agentfs.tools.offer import RenderContext
from agentfs.visible import to_json
from agentfs.workspace import Workspace


class Problem(NamedTuple):
    """Why a call failed, for a contract that has its own form for failures.

    Attributes:
        code: A stable name; "internal" for what nobody foresaw.
        message: What was wrong, and the places that it names, one a line.
        hint: What to do or call next, or "".
    """

    code: str
    message: str
    hint: str


def problem_of(answer: RenderContext) -> Problem | None:
    """Return why a call failed, or None for one that succeeded.

    Args:
        answer: What a renderer is given.
    """
    error = answer.outcome
    if isinstance(error, AgentFSError):
        return Problem(error.code, "\n".join([error.message, *error.places()]), error.hint)
    if answer.result.error is None:
        return None
    message, _, hint = answer.result.content.partition("\n")
    return Problem(answer.result.error["code"], message, hint)


def past_end(error: PastEndError, place: str, way: str) -> PastEndError:
    """Return the error for lines behind the last one of a file, in a dialect's own terms.

    Args:
        error: As `read` raises it for a file.
        place: What was asked for.
        way: What to pass, before the number of lines.
    """
    total = error.details["total_lines"]
    lines = f"{total} line{'' if total == 1 else 's'}"
    return PastEndError(
        f"{quote(error.details['path'])} has {lines}; {place} is past its end.",
        hint=f"Pass {way} {total}." if total else "It is empty: there is nothing to read.",
        details=error.details,
    )


def as_json(answer: RenderContext, value: Any) -> ToolResult:
    """Return a result whose text is a value as JSON, and whose data is that value.

    Args:
        answer: What a renderer is given.
        value: What JSON can show.
    """
    return replace(answer.result, content=to_json(value), data=value)


def absolute_in(workspace: Workspace) -> Callable[[str], str]:
    """Return what makes an absolute path, as the system writes it, of one as it is shown.

    Args:
        workspace: The workspace.
    """
    root = workspace.root.rstrip("/\\")
    return lambda path: f"{root}{os.sep}{path.replace('/', os.sep)}"


def left_out(skipped: Skipped) -> dict[str, Any]:
    """Return what a walk left out: a count for each reason there was, and `reached` where it ended early.

    Args:
        skipped: What it counted.
    """
    told = {each.name: getattr(skipped, each.name) for each in fields(skipped) if each.name != "rules"}
    return {name: value for name, value in told.items() if value}


def lines_of(read: ReadResult) -> list[str]:
    """Return the lines of a page exactly as they are, without their ends.

    Args:
        read: A page of a text.
    """
    end = "\r" if read.newline == "\r" else "\n"
    *ended, rest = read.content.split(end)
    lines = [line.removesuffix("\r") for line in ended] if end == "\n" else ended
    return [*lines, rest] if rest else lines


def content_of(match: Match) -> dict[str, Any]:
    """Return the line of a match exactly as it is, as `content`, and as `cut` what is left out at either end.

    Args:
        match: As a search returns it.
    """
    return {"content": without_marks(match)[0], **({"cut": list(match.cut)} if any(match.cut) else {})}
