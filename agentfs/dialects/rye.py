"""`rye`: read, write, edit_lines, glob, grep and ls, with line ids that hold for the version that was read.

The contract is in `docs/dialects/rye.md`, statement by statement. No `from __future__ import annotations`:
the hints become schemas.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from agentfs.dialects.dialect import Dialect
from agentfs.dialects.rendering import Problem, as_json, content_of, left_out, lines_of, problem_of
from agentfs.errors import AgentFSError, EncodingError
from agentfs.limits import Limits
from agentfs.results import (
    EditResult,
    Entry,
    GlobResult,
    GrepResult,
    LineChange,
    ListResult,
    ReadResult,
    ToolResult,
    WriteResult,
)
from agentfs.tools.offer import RenderContext, ToolOffer
from agentfs.workspace import Workspace

# The directories that glob, grep and ls leave out wherever they lie.
IGNORED = (
    *("node_modules", "__pycache__", ".git", ".venv", "venv", ".tox", ".pytest_cache", ".mypy_cache"),
    *(".ruff_cache", "dist", "build", "*.egg-info", ".eggs", ".nox", ".hg", ".svn"),
)

_EXCLUDE = [f"{name}/" for name in IGNORED]
_ROOM = len("[LID:] ")
_LINE_CHARS = 2000
_MOST_IDS = 500  # of those that a refusal lists
_PLACE = re.compile(r"^ *[0-9]+ ([0-9a-f]{6,})\|", re.MULTILINE)


def offers(workspace: Workspace) -> Sequence[ToolOffer]:
    """Make the six tools.

    Args:
        workspace: The workspace.
    """

    def edit_lines(path: str, changes: list[LineChange]) -> EditResult:
        """Replace lines named by the ids that read shows; all changes are made, or none.

        Read the file first, and again after each change of it.

        Args:
            path: Path to file.
            changes: List of change operations.
        """
        bare = [
            LineChange(
                new_content=each.new_content,
                line_id=_bare(each.line_id),
                start_line_id=_bare(each.start_line_id),
                end_line_id=_bare(each.end_line_id),
            )
            for each in changes
        ]
        return workspace.edit_lines(path, bare, fresh=True)

    def write(path: str, content: str) -> WriteResult:
        """Create or overwrite a file; parent directories are created, and the ids of its lines end.

        Args:
            path: Path to file (relative to project root or absolute).
            content: Content to write to the file.
        """
        try:
            return workspace.write(path, content)
        except EncodingError:  # the old encoding is unknown, or cannot hold the content
            return workspace.write(path, content, encoding="utf-8")

    def glob(pattern: str, path: str = ".") -> GlobResult:
        """Find files matching a glob pattern, sorted alphabetically, at most 100.

        Directories such as node_modules, .venv, dist and build are left out.

        Args:
            pattern: Glob pattern (e.g. `**/*.py`, `*.md`).
            path: Base directory to search from; by default the project root.
        """
        return workspace.glob(pattern, path, include_ignored=True, exclude=_EXCLUDE, sort="alphabetical")

    def grep(pattern: str, path: str = ".", glob: str | None = None) -> GrepResult:
        r"""Search file contents with a regex, at most 100 matches; what glob leaves out is left out here too.

        A match has its line id for edit_lines where the file has been read as it stands.

        Args:
            pattern: Regex pattern to search for; escape `( ) [ . *` to match them literally.
            path: Directory to search in, or a file; by default the project root.
            glob: File glob filter (e.g. `*.py`).
        """
        return workspace.grep(
            pattern, path, glob, context=0, include_ignored=True, exclude=_EXCLUDE, line_ids=True, fresh=True
        )

    def ls(path: str = ".") -> ListResult:
        """List directory contents: directories first, then files; common noise directories are left out.

        Args:
            path: Directory to list; by default the project root.
        """
        return workspace.ls(path, include_ignored=True, ignore=_EXCLUDE)

    file = {"path": "file_path"}
    about = {"path": "Path to file (relative to project root or absolute)."}
    made = [
        ToolOffer(
            workspace.read,
            name="read",
            description="Read a file; each line is shown as `[LID:a3f2c1] line`. The ids are for edit_lines, "
            "and hold until the file is changed.",
            parameters=file,
            descriptions={
                **about,
                "offset": "Starting line number (1-indexed); negative counts from the end.",
                "limit": "Maximum number of lines to read, by default 2000.",
            },
            preset={"line_ids": True, "room": _ROOM},
        ),
        ToolOffer(write, parameters=file),
        ToolOffer(edit_lines, parameters=file, methods={"edit_lines": {}, "edit": {}}),
        ToolOffer(glob),
        ToolOffer(grep, parameters={"glob": "include"}),
        ToolOffer(ls),
    ]
    render = partial(_render, limits=workspace.limits)
    return [
        replace(each, aliases=(f"rye/file-system/{each.name or each.target.__name__}",), render=render)
        for each in made
    ]


def _bare(line_id: str | None) -> str | None:
    """Return an id without what stands around it where it is shown."""
    return line_id if line_id is None else line_id.strip().strip("[]").removeprefix("LID:")


def _render(answer: RenderContext, *, limits: Limits) -> ToolResult:
    if not answer.result.success:
        return answer.result  # `_refused` tells of it
    shown: dict[str, Any] = {}
    match answer.outcome:
        case ReadResult() as read:
            shown = _page(answer, read, limits.line_chars)
        case WriteResult() as written:
            shown = {
                **_diff(written.diff, limits),
                "file_path": written.path,
                "bytes_written": written.bytes_written,
                "created": written.created,
                **_noted(written.notes),
            }
        case EditResult() as edited:
            shown = {
                **_diff(edited.diff, limits),
                "changes_applied": edited.replacements,
                "lines_changed": edited.lines_changed,
                **_noted(edited.notes),
            }
        case GlobResult() as globbed:
            files = [entry.path for entry in globbed.files]
            shown = {"output": "\n".join(files), "files": files, **_counted(answer, globbed, len(files))}
        case GrepResult() as found:
            shown = _matches(answer, found)
        case ListResult() as listed:
            names = [f"{entry.name}/" if entry.is_dir else entry.name for entry in listed.entries]
            shown = {"output": "\n".join(names), "entries": [_entry(entry) for entry in listed.entries]}
            if listed.truncated:
                shown |= {"truncated": True, "total": listed.total}
            shown |= _left_out(listed)
        case _:
            pass
    return as_json(answer, {"success": True, **shown})


def _refused(answer: RenderContext) -> ToolResult:
    problem = problem_of(answer)
    return as_json(answer, _failed(answer, problem)) if problem else answer.result


def _page(answer: RenderContext, read: ReadResult, line_chars: int) -> dict[str, Any]:
    output, more = answer.result.content, {}
    count = read.end_line - read.start_line + 1 if read.total_lines else 0
    truncated = read.truncated_by is not None
    if read.kind == "text":
        lines = lines_of(read)
        # Of a file too large to be remembered there are no ids.
        heads = [f"[LID:{name}] " for name in read.line_ids] or [""] * len(lines)
        output = "\n".join(head + line[:line_chars] for head, line in zip(heads, lines, strict=True))
        told = answer.result.content.split("\n")[count:]
        if truncated or not read.line_ids or read.encoding != "utf-8":
            more = _noted([note.removeprefix("[").removesuffix("]") for note in told if count])
    else:
        more = {"kind": read.kind}
    return {
        "output": output,
        "line_count": count,
        "total_lines": read.total_lines,
        "truncated": truncated,
        "offset": max(read.start_line, 1),
        **more,
    }


def _matches(answer: RenderContext, found: GrepResult) -> dict[str, Any]:
    lines: list[str] = []
    matches: list[dict[str, Any]] = []
    for match in found.matches:
        name = {} if match.line_id is None else {"line_id": match.line_id}
        head = f"[LID:{match.line_id}]:" if name else ""
        told = content_of(match)
        lines.append(f"{match.path}:{match.line}:{head}{told['content']}")
        matches.append({"file": match.path, "line": match.line, **told, **name})
    return {"output": "\n".join(lines), "matches": matches, **_counted(answer, found, len(matches))}


def _counted(answer: RenderContext, found: GlobResult | GrepResult, count: int) -> dict[str, Any]:
    """Return how much is shown; how much there is where that is more, and why where it is nothing."""
    shown: dict[str, Any] = {"count": count, "truncated": found.truncated}
    if found.truncated:
        shown["total"] = found.total if isinstance(found, GlobResult) else found.total_lines
    return {**shown, **_left_out(found), **({} if count else {"note": answer.result.content})}


def _left_out(found: GlobResult | GrepResult | ListResult) -> dict[str, Any]:
    """Return what was left out for other reasons than the directories that always are."""
    reasons = {name: count for name, count in left_out(found.skipped).items() if name != "vcs"}
    return {"left_out": reasons} if reasons else {}


def _entry(entry: Entry) -> dict[str, Any]:
    kind = "directory" if entry.is_dir else "other" if entry.type == "other" else "file"
    return {"name": entry.name, "type": kind, **({} if entry.target is None else {"target": entry.target})}


def _diff(diff: str, limits: Limits) -> dict[str, Any]:
    """Return a diff, cut at a line end where it is longer than a read may be."""
    raw = diff.encode("utf-8", "surrogatepass")
    if len(raw) <= limits.read_bytes:
        return {"output": diff}
    shown = raw[: raw.rfind(b"\n", 0, limits.read_bytes) + 1].decode("utf-8", "surrogatepass")
    return {"output": shown, "truncated": True}


def _noted(notes: Sequence[str]) -> dict[str, Any]:
    return {"notes": list(notes)} if notes else {}


def _failed(answer: RenderContext, problem: Problem) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "success": False,
        "error": _PLACE.sub(r"[LID:\1] ", problem.message),
        "code": problem.code,
        "hint": problem.hint,
    }
    error = answer.outcome
    if isinstance(error, AgentFSError) and problem.code == "unknown_line":
        shown["available_ids"] = error.details["line_ids"][:_MOST_IDS]
    return shown


DIALECT = Dialect(
    "rye",
    offers,
    limits={
        "line_chars": _LINE_CHARS,
        "glob_results": 100,
        "grep_results": 100,
        "grep_line_chars": _LINE_CHARS,
        "timeout": 30.0,
        # The document bounds a read in lines and bytes alone, and no text has more tokens than bytes.
        "output_tokens": 200_000,
    },
    policy={"overwrite": "always"},
    render=_refused,
)
