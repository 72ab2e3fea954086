"""The answers of `codescout`: the document's output as JSON, and beside it what was cut and left out."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from agentfs.dialects.rendering import absolute_in, as_json, content_of, left_out, lines_of, problem_of
from agentfs.messages import NextCall
from agentfs.results import (
    EditResult,
    GlobResult,
    GrepResult,
    ListResult,
    ReadResult,
    ToolResult,
    WriteResult,
)
from agentfs.text import newline_of
from agentfs.tools.offer import RenderContext
from agentfs.workspace import Workspace

PAGE = 50  # entries of a page of list_dir
_BUFFER_BYTES = 10_000  # a longer read is given a name, under which it can be read and searched


def is_paged(arguments: Mapping[str, Any]) -> bool:
    """Tell whether a listing is paged: in full, or from some entry on, or with another size of its page.

    Args:
        arguments: What it was asked with.
    """
    full = arguments.get("detail_level") == "full"
    return full or bool(arguments.get("offset")) or arguments.get("limit", PAGE) != PAGE


def answered(answer: RenderContext, *, workspace: Workspace, unbounded: Workspace) -> ToolResult:
    """Return an answer in the form of the document.

    Args:
        answer: What a renderer is given.
        workspace: The workspace.
        unbounded: The same as it reads what ends where it was told to.
    """
    if not answer.result.success:
        return answer.result  # `refused` tells of it
    absolute = absolute_in(workspace)
    match answer.outcome:
        case ReadResult() as read:
            paged = as_json(answer, _page(answer, read, workspace, unbounded))
            return replace(paged, next=_rest(paged.next, read, answer.arguments.get("end_line")))
        case ListResult() as listed:
            return as_json(answer, _listing(answer, listed, absolute))
        case GrepResult() as found:
            matches = [
                {"file": absolute(match.path), "line": match.line, **content_of(match)}
                for match in found.matches
            ]
            way = "Increase max_results, or narrow the search with path"
            told = _counted(answer, found, len(matches), found.total_lines, "matching lines", way)
            return as_json(answer, {"matches": matches, **told})
        case GlobResult() as globbed:
            files = [absolute(entry.path) for entry in globbed.files]
            way = "Increase max_results, or use a more specific pattern or path"
            told = _counted(answer, globbed, len(files), globbed.total, "files", way)
            pattern = answer.arguments["pattern"]
            if not files and "/" not in pattern:
                told["note"] += (
                    f"\n{pattern} is bound to the directory searched; **/{pattern} matches below it."
                )
            return as_json(answer, {"files": files, **told})
        case WriteResult() as written:
            replaced = () if written.created else ("an existing file was overwritten",)
            return _done(answer, written, (*replaced, *written.notes))
        case EditResult() as edited:
            return _done(answer, edited, (*edited.notes, *_line_ends(answer, edited)))
        case _:
            return answer.result


def refused(answer: RenderContext) -> ToolResult:
    """Return a failure in the form of the document.

    Args:
        answer: What a renderer is given.
    """
    problem = problem_of(answer)
    return as_json(answer, {"error": problem._asdict()}) if problem else answer.result


def _page(
    answer: RenderContext, read: ReadResult, workspace: Workspace, unbounded: Workspace
) -> dict[str, Any]:
    if read.kind != "text":
        shown = {"content": read.content, "total_lines": read.total_lines, "kind": read.kind}
        return {**shown, "note": answer.result.content} if not read.content else shown
    content, told = read.content, dict[str, Any]()
    asked = [answer.arguments.get(name) is not None for name in ("start_line", "end_line")]
    lines, most = lines_of(read), (unbounded if asked[1] else workspace).limits.line_chars
    cut = [n for n, line in enumerate(lines, read.start_line) if len(line) > most]
    if cut:
        content = _cut(content, lines, most)
    overflows = read.truncated_by not in {None, "line"}
    if overflows:
        way = "Use start_line/end_line to read specific ranges"
        if asked[1]:
            last = min(answer.arguments["end_line"], read.total_lines)
            way = f"For the rest pass start_line={read.end_line + 1} and end_line={last}"
        told["overflow"] = {
            "shown": read.end_line - read.start_line + 1,
            "total": read.total_lines,
            "hint": f"File has {read.total_lines} lines. {way}",
        }
    if cut:
        way = "" if asked[1] else "Give both start_line and end_line to read these lines whole"
        told["cut"] = {"lines": cut, **({"hint": way} if way else {})}
    size = len(read.content.encode("utf-8", "surrogatepass"))
    if not all(asked) and (size > _BUFFER_BYTES or (overflows and read.total_bytes > _BUFFER_BYTES)):
        told["file_id"] = workspace.keep(read, kind="file")
    if read.encoding != "utf-8" and read.total_lines:
        told["encoding"] = read.encoding
    return {"content": content, "total_lines": read.total_lines, **told}


def _rest(following: NextCall | None, read: ReadResult, end_line: int | None) -> NextCall | None:
    """Return the call that goes on; for the rest of a range it ends where the range does."""
    if following is None or read.kind == "directory" or end_line is None or read.end_line >= end_line:
        return following
    return {"name": following["name"], "arguments": {**following["arguments"], "end_line": end_line}}


def _cut(content: str, lines: Sequence[str], most: int) -> str:
    """Return a text without what its lines have beyond so many characters; their ends stay."""
    parts: list[str] = []
    at = 0
    for line in lines:
        stop = at + len(line)
        at = stop + (2 if content.startswith("\r\n", stop) else 1)
        parts += [line[:most], content[stop:at]]
    return "".join(parts)


def _listing(answer: RenderContext, listed: ListResult, absolute: Callable[[str], str]) -> dict[str, Any]:
    entries = [f"{absolute(entry.path)}{'/' if entry.is_dir else ''}" for entry in listed.entries]
    told: dict[str, Any] = {}
    if is_paged(answer.arguments):
        told["total"] = listed.total
        if listed.next:
            told["next_offset"] = listed.next["arguments"]["offset"]
    elif listed.truncated:
        told["overflow"] = {
            "shown": len(entries),
            "total": listed.total,
            "hint": f"Directory has {listed.total} entries. Use a more specific path, or "
            f'detail_level="full" with offset={len(entries)} to go on',
        }
    return {"entries": entries, **told, **_left_out(listed)}


def _line_ends(answer: RenderContext, edited: EditResult) -> tuple[str, ...]:
    """Say where an old text counted as found although its line ends are not those of the file."""
    given = newline_of(answer.arguments.get("old_string") or "")
    if given is None or given == edited.newline:
        return ()
    had = {"\n": "LF", "\r\n": "CRLF"}.get(edited.newline or "", "several")
    return (f"old_string was found with its line ends taken for those of the file ({had}), which were kept",)


def _counted(
    answer: RenderContext, found: GrepResult | GlobResult, shown: int, total: int, noun: str, way: str
) -> dict[str, Any]:
    """Return how much there is, how to see more of it, and why nothing was found."""
    told: dict[str, Any] = {"total": total}
    if found.truncated:
        least = "" if found.exact else "at least "
        told["overflow"] = {"shown": shown, "total": total, "hint": f"There are {least}{total} {noun}. {way}"}
    return {**told, **_left_out(found), **({} if shown else {"note": answer.result.content})}


def _left_out(found: GlobResult | GrepResult | ListResult) -> dict[str, Any]:
    reasons = left_out(found.skipped)
    return {"left_out": reasons} if reasons else {}


def _done(answer: RenderContext, made: WriteResult | EditResult, notes: tuple[str, ...]) -> ToolResult:
    """Say that it is done, and in the notes what else there is to say of it."""
    done = as_json(answer, "ok")
    return replace(done, data={"result": "ok", "path": made.path, "notes": list(notes)}, notes=notes)
