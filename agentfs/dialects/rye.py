"""The dialect `rye`: six file tools with line ids, which are valid until the file changes.

`docs/reference/dialects/rye.md` compares it with the contract.
"""

from collections.abc import Mapping
from dataclasses import replace
from itertools import zip_longest
from typing import Any

from agentfs import Limits, LineChange, ToolResult, Workspace
from agentfs.dialects import toolkit as kit
from agentfs.errors import AgentFSError, UnknownLineError
from agentfs.results import EditResult, Entry, GlobResult, GrepResult, ListResult, ReadResult, WriteResult

# Directories that glob, grep and ls leave out at any depth.
NOISE = (
    *("node_modules", "__pycache__", ".git", ".venv", "venv", ".tox", ".pytest_cache", ".mypy_cache"),
    *(".ruff_cache", "dist", "build", "*.egg-info", ".eggs", ".nox", ".hg", ".svn"),
)

_EXCLUDE = [f"{name}/" for name in NOISE]
_ID_CHARS = len("[LID:] ")  # added to each line around its id
_FILE = {"path": "file_path"}
_IDS = ("line_id", "start_line_id", "end_line_id")
_LINE_CHARS = 2000
_ALWAYS_SKIPPED = ("vcs",)  # not mentioned, because every call leaves it out
_MOST_SORTED = 100_000  # most paths that glob sorts
_MAX_LISTED_IDS = 500  # in the details of an error


def _follow_read(call: kit.NextCall) -> Mapping[str, Any] | None:
    """Return the arguments of `read` for its continuation; `line_ids` and `raw` are always set."""
    given = {name: value for name, value in call["arguments"].items() if name not in {"line_ids", "raw"}}
    if call["name"] != "read" or "column" in given:
        return None
    return {"file_path": given.pop("path"), **given}


class _Tools(kit.Tools):
    @kit.offer(effect="read", renames=_FILE, follow=_follow_read)
    def read(self, file_path: str, offset: int = 1, limit: int | None = None) -> ReadResult:
        """Read a file; each line is shown as `[LID:a3f2c1] line`.

        The ids are for edit_lines, and hold until the file is changed.

        Args:
            file_path: Path to file (relative to project root or absolute).
            offset: Starting line number (1-indexed); negative counts from the end.
            limit: Maximum number of lines to read, by default 2000.
        """
        options = kit.ReadOptions(file_path, offset or 1, limit, line_ids=True, line_overhead=_ID_CHARS)
        return kit.read(self.workspace, options)

    @kit.offer(effect="write", renames=_FILE)
    def write(self, file_path: str, content: str) -> WriteResult:
        """Create or overwrite a file; parent directories are created. Its line ids become invalid.

        Args:
            file_path: Path to file (relative to project root or absolute).
            content: Content to write to the file, with its line ends.
        """
        return self.workspace.write(file_path, content, encoding="utf-8", newline="given")

    @kit.offer(effect="write", renames=_FILE, methods={"edit_lines": {}, "edit": {}})
    def edit_lines(self, file_path: str, changes: list[LineChange]) -> EditResult:
        """Replace lines named by the ids that read shows; all changes are made, or none.

        Read the file first, and again after each change of it.

        Args:
            file_path: Path to file.
            changes: List of change operations.
        """
        cleaned = [_clean(change) for change in changes]
        return kit.edit(self.workspace, kit.EditLinesOptions(file_path, cleaned, fresh_ids=True))

    @kit.offer(effect="read")
    def glob(self, pattern: str, path: str = ".") -> GlobResult:
        """Find files matching a glob pattern, sorted alphabetically, at most 100.

        Directories such as node_modules, .venv, dist and build are left out.

        Args:
            pattern: Glob pattern (e.g. `**/*.py`, `*.md`).
            path: Base directory to search from; by default the project root.
        """
        found = self.workspace.glob(pattern, path, _MOST_SORTED, include_ignored=True, exclude=_EXCLUDE)
        most = self.workspace.limits.glob_results
        files = sorted(found.files, key=lambda entry: entry.path)[:most]
        return replace(found, files=files, truncated=found.truncated or found.total > most)

    @kit.offer(effect="read", renames={"glob": "include"})
    def grep(self, pattern: str, path: str = ".", include: str | None = None) -> GrepResult:
        r"""Search file contents with a regex, at most 100 matches; what glob leaves out is left out here too.

        A match has its line id for edit_lines if the file was read as it is now.

        Args:
            pattern: Regex pattern to search for; escape `( ) [ . *` to match them literally.
            path: Directory to search in, or a file; by default the project root.
            include: File glob filter (e.g. `*.py`).
        """
        globs = kit.globs_from_root(self.workspace, path, include)
        ids: dict[str, Any] = {"line_ids": True, "fresh_ids": True}
        options = kit.GrepOptions(
            pattern, path, globs, context=0, include_ignored=True, exclude=_EXCLUDE, **ids
        )
        return kit.grep(self.workspace, options)

    @kit.offer(effect="read")
    def ls(self, path: str = ".") -> ListResult:
        """List directory contents: directories first, then files; common noise directories are left out.

        Args:
            path: Directory to list; by default the project root.
        """
        return self.workspace.ls(path, include_ignored=True, ignore=_EXCLUDE)


def _clean(change: LineChange) -> LineChange:
    """Strip the brackets and the prefix with which ids are displayed."""
    given: dict[str, Any] = {name: getattr(change, name) for name in _IDS}
    ids = {name: each.strip().strip("[]").removeprefix("LID:") for name, each in given.items() if each}
    return replace(change, **ids)


def _failure(context: kit.RenderContext, problem: kit.Problem) -> dict[str, Any]:
    error, said = context.outcome, problem.message
    if isinstance(error, AgentFSError) and (rows := error.details.get("rows")):
        places = zip_longest(error.places(), rows)
        lines = (place if row is None else "[LID:{1}] {2}".format(*row) for place, row in places)
        said = "\n".join([error.message, *lines])
    reply = {"success": False, "error": said, "code": problem.code, "hint": problem.hint}
    if isinstance(error, UnknownLineError):
        reply["available_ids"] = error.details["line_ids"][:_MAX_LISTED_IDS]
    return reply


def _render(context: kit.RenderContext, workspace: Workspace) -> ToolResult:
    if problem := kit.problem_of(context):
        return kit.as_json(context, _failure(context, problem))
    return kit.as_json(context, {"success": True, **_fields(context, workspace.limits)})


def _fields(context: kit.RenderContext, limits: Limits) -> dict[str, Any]:
    match context.outcome:
        case ReadResult() as read:
            return _page(context, read, limits.line_chars)
        case WriteResult() as written:
            size = {"bytes_written": written.bytes_written, "created": written.created}
            return _changed(written, limits.read_bytes, file_path=written.path, **size)
        case EditResult() as edited:
            counts = {"changes_applied": edited.replacements, "lines_changed": edited.lines_changed}
            return _changed(edited, limits.read_bytes, **counts)
        case GlobResult() as found:
            files = [entry.path for entry in found.files]
            return {"output": "\n".join(files), "files": files, **_totals(context, found, found.total)}
        case GrepResult() as found:
            return {**_matches(found), **_totals(context, found, found.total_lines)}
        case _:
            listed: ListResult = context.outcome
            names = [f"{entry.name}/" if entry.is_dir else entry.name for entry in listed.entries]
            cut = {"total": listed.total} if listed.truncated else {}
            cut |= {"truncated": True} if cut or listed.skipped.reached else {}
            entries = [_entry(entry) for entry in listed.entries]
            skipped = kit.left_out_field(listed.skipped, without=_ALWAYS_SKIPPED)
            return {"output": "\n".join(names), "entries": entries, **cut, **skipped}


def _page(context: kit.RenderContext, read: ReadResult, line_chars: int) -> dict[str, Any]:
    page = {"output": context.result.content, "line_count": 0, "total_lines": 0, "offset": 1}
    truncated = read.truncated_by is not None
    if read.kind not in {"text", "notebook"}:
        count = kit.count_lines(context.result.content) if read.total_lines else 0
        page |= {"line_count": count, "total_lines": max(count, read.total_lines)}
        return {**page, "truncated": truncated, "kind": read.kind}
    lines = kit.lines_of(read)
    # A file that is too large to be kept has no ids.
    heads = [f"[LID:{name}] " for name in read.line_ids] or [""] * len(lines)
    page["output"] = "\n".join(head + line[:line_chars] for head, line in zip(heads, lines, strict=True))
    page |= {"line_count": len(lines), "total_lines": read.total_lines, "offset": max(read.start_line, 1)}
    says_more = lines and (truncated or not read.line_ids or read.encoding != "utf-8")
    notes = ["; ".join(read.notes)] if says_more and read.notes else []
    return {**page, "truncated": truncated, **kit.without_empty(notes=notes)}


def _matches(found: GrepResult) -> dict[str, Any]:
    lines: list[str] = []
    matches: list[dict[str, Any]] = []
    for match in found.matches:
        line_id = {} if match.line_id is None else {"line_id": match.line_id}
        prefix = f"[LID:{match.line_id}]:" if line_id else ""
        content = kit.content_of(match)
        lines.append(f"{match.path}:{match.line}:{prefix}{content['content']}")
        matches.append({"file": match.path, "line": match.line, **content, **line_id})
    return {"output": "\n".join(lines), "matches": matches}


def _totals(context: kit.RenderContext, found: GlobResult | GrepResult, total: int) -> dict[str, Any]:
    """Return how many results are shown, the total if it is larger, and why nothing was found."""
    count = len(found.files if isinstance(found, GlobResult) else found.matches)
    totals: dict[str, Any] = {"count": count, "truncated": found.truncated or not found.exact}
    totals |= {"total": total} if found.truncated else {}
    note = {} if count else {"note": context.result.content}
    notes = kit.without_empty(notes=kit.glob_notes(found))
    return {**totals, **kit.left_out_field(found.skipped, without=_ALWAYS_SKIPPED), **notes, **note}


def _entry(entry: Entry) -> dict[str, Any]:
    kind = "directory" if entry.is_dir else "other" if entry.type == "other" else "file"
    return {"name": entry.name, "type": kind, **({} if entry.target is None else {"target": entry.target})}


def _changed(result: WriteResult | EditResult, most_bytes: int, **done: Any) -> dict[str, Any]:
    """Return the fields of a change. A diff longer than a read may be is cut at a line end."""
    output, cut = result.diff, {}
    raw = output.encode("utf-8", "surrogatepass")
    if len(raw) > most_bytes:
        output = raw[: raw.rfind(b"\n", 0, most_bytes) + 1].decode("utf-8", "surrogatepass")
        cut = {"truncated": True}
    return {"output": output, **cut, **done, **kit.without_empty(notes=list(result.notes))}


DIALECT = kit.Dialect(
    "rye",
    _Tools.make,
    limits={
        "line_chars": _LINE_CHARS,
        "glob_results": 100,
        "grep_results": 100,
        "grep_line_chars": _LINE_CHARS,
        "timeout": 30.0,
        # The contract bounds a read in lines and bytes, not in tokens.
        "output_tokens": 200_000,
    },
    policy={"overwrite": "always"},
    render=_render,
)
