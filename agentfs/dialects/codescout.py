"""The dialect `codescout`: six file tools whose replies are JSON with absolute paths.

`docs/reference/dialects/codescout.md` compares it with the contract.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

from agentfs import Limits, ToolResult, Workspace
from agentfs.dialects import toolkit as kit
from agentfs.errors import InvalidArgumentError
from agentfs.results import EditResult, GlobResult, GrepResult, ListResult, ReadResult, WriteResult

_LIMITS: Mapping[str, Any] = {
    "read_lines": 200,
    "line_chars": 51_200,
    "list_entries": 200,
    "glob_results": 100,
    "grep_results": 50,
    # The contract bounds replies in lines and entries, not in tokens.
    "output_tokens": 200_000,
}
_ALL_LEVELS = 1000
_LIMIT = {"limit": "max_results"}
_EDIT_PARAMETERS = ("path", "old_string", "new_string", "replace_all", "insert")
_TOKENS_PER_BYTE = 16  # more than any text has
_PAGE_ENTRIES = 50  # entries of a page of list_dir
_BUFFER_BYTES = 10_000  # a longer read gets a file_id for later reads and searches


def _follow_read(call: kit.NextCall) -> Mapping[str, Any] | None:
    """Return the arguments of read_file for a call of `read`."""
    arguments = call["arguments"]
    if call["name"] != "read" or "column" in arguments:
        return None
    first, limit = arguments.get("offset", 1), arguments.get("limit")
    end = {} if limit is None else {"end_line": first + limit - 1}
    return {"path": arguments["path"], "start_line": first, **end}


class _Tools(kit.Tools):
    @kit.offer(effect="read", methods={"read": {}}, renames={"offset": "start_line"}, follow=_follow_read)
    def read_file(self, path: str, start_line: int | None = None, end_line: int | None = None) -> ReadResult:
        """Read the contents of a file, optionally restricted to a line range.

        With both lines, that range; otherwise at most 200 lines. `overflow` says what is left.
        Prefer chunks with explicit start_line and end_line over reading a large file whole; to look for a
        pattern, use search_pattern.

        Args:
            path: File path relative to project root, or a file_id.
            start_line: First line to return (1-indexed).
            end_line: Last line to return (1-indexed, inclusive).
        """
        first = 1 if start_line is None else start_line
        last = first if end_line is None else end_line
        if first < 1 or last < first:
            raise InvalidArgumentError(
                f"`start_line` and `end_line` must be lines from 1, first to last, not {first} and {last}.",
                hint="Lines count from 1, and end_line is included.",
                details={"parameter": "start_line" if first < 1 else "end_line"},
            )
        limit = None if end_line is None else last - first + 1
        options = kit.ReadOptions(path, first, limit, line_overhead=0)
        workspace = self.workspace
        if end_line is not None:
            workspace = workspace.view(limits=_without_caps(workspace.limits))
        return kit.read_range(workspace, options, f"start_line {first}", "a start_line from 1 to")

    @kit.offer(effect="read", methods={"ls": {}})
    def list_dir(
        self,
        path: str,
        recursive: bool = False,
        detail_level: Literal["compact", "full"] = "compact",
        offset: int = 0,
        limit: int = _PAGE_ENTRIES,
    ) -> ListResult:
        """List files and directories under a path; hidden and ignored ones are left out.

        Start with a shallow listing, then drill into subdirectories of interest; a recursive one may be long,
        so narrow it with path.
        To find files by name pattern use find_file instead.

        Args:
            path: Directory path relative to project root.
            recursive: Descend into subdirectories.
            detail_level: "full" to page through all entries, without the cap of 200.
            offset: Skip this many entries.
            limit: Max entries per page.
        """
        paged = _is_paged({"detail_level": detail_level, "offset": offset, "limit": limit})
        return self.workspace.ls(path, _ALL_LEVELS if recursive else 1, limit if paged else None, offset)

    @kit.offer(effect="read", methods={"grep": {}}, renames=_LIMIT)
    def search_pattern(self, pattern: str, path: str = ".", max_results: int | None = None) -> GrepResult:
        r"""Search the codebase for a regex pattern; returns matching lines with file path and line number.

        Hidden and ignored files are left out, and files that are not UTF-8. Use path to narrow the search;
        there is no filter of file names. To find files by name, not content, use find_file.

        Args:
            pattern: Regular expression to search for; escape `( ) [ . *` to match them literally.
            path: Directory, file or file_id to restrict the search to; by default the project root.
            max_results: Maximum number of matching lines to return, by default 50; increase it to
                see them all.
        """
        return self.workspace.grep(pattern, path, limit=max_results, encoding="utf-8")

    @kit.offer(effect="read", methods={"glob": {}}, renames=_LIMIT)
    def find_file(self, pattern: str, path: str = ".", max_results: int | None = None) -> GlobResult:
        """Find files matching a glob pattern, hidden ones too; ignored ones are left out.

        The pattern is matched against the path relative to the search directory; `**` matches across
        directories. Use search_pattern to find files by their contents.

        Args:
            pattern: Glob pattern (e.g. `**/*.rs`, `src/**/mod.rs`, `**/Makefile`).
            path: Directory to search within; by default the project root.
            max_results: Maximum number of file paths to return, by default 100.
        """
        options = kit.GlobOptions(pattern, path, max_results, hidden=True, anchored=True)
        return kit.glob(self.workspace, options)

    @kit.offer(effect="write", methods={"write": {}})
    def create_file(self, path: str, content: str) -> WriteResult:
        """Create a new file, or overwrite an existing one without warning; parent directories are created.

        For editing existing files, use edit_file instead.

        Args:
            path: File path relative to project root.
            content: Full file content to write.
        """
        return self.workspace.write(path, content, encoding="utf-8", newline="given")

    @kit.offer(effect="write", methods={"edit": {}}, expose=_EDIT_PARAMETERS)
    def edit_file(
        self,
        *,
        path: str,
        old_string: str = "",
        new_string: str,
        replace_all: bool = False,
        insert: Literal["prepend", "append"] | None = None,
    ) -> EditResult:
        """Find-and-replace editing within an existing file: matches an exact string and replaces it.

        Use it for imports, constants, config values and small literal changes.

        Args:
            path: File path relative to project root.
            new_string: Replacement text.
            old_string: Exact text to find, including indentation; it must occur once. Empty with insert.
            replace_all: Replace every occurrence.
            insert: Add new_string at the start or the end of the file instead.
        """
        if bool(old_string) == (insert is not None):
            raise InvalidArgumentError(
                "Both `old_string` and `insert` are given."
                if old_string
                else "Neither `old_string` nor `insert` is given.",
                hint='Pass old_string, or insert="prepend" or "append".',
                details={"parameter": "old_string"},
            )
        if insert is None:
            return self.workspace.edit(path, old_string, new_string, replace_all)
        return _insert(self.workspace, path, new_string, insert)


def _without_caps(limits: Limits) -> Limits:
    """Lift the limits that bound a read, unless the programmer has set them."""
    unbounded: dict[str, Any] = {
        "read_bytes": limits.file_bytes,
        "line_chars": limits.file_bytes,
        "output_tokens": _TOKENS_PER_BYTE * limits.file_bytes,
    }
    return kit.with_preset(limits, unbounded, replace(Limits(), **_LIMITS))


def _insert(workspace: Workspace, path: str, new: str, where: Literal["prepend", "append"]) -> EditResult:
    def span(text: str) -> tuple[list[tuple[int, int, str]], list[str]]:
        offset = 0 if where == "prepend" else len(text)
        # The text is inserted exactly as given, even if two lines join.
        joined = text and not (text if offset else new).endswith("\n")
        notes = [f"there is no line end between the old text and the {where}ed text"] if joined else []
        return [(offset, offset, new)], notes

    return kit.edit(workspace, kit.SpliceOptions(path, span))


def _is_paged(arguments: Mapping[str, Any]) -> bool:
    """Return True if a call of list_dir asks for a page, by full detail, an offset or another page size."""
    full = arguments.get("detail_level") == "full"
    return full or bool(arguments.get("offset")) or arguments.get("limit", _PAGE_ENTRIES) != _PAGE_ENTRIES


def _render(context: kit.RenderContext, workspace: Workspace) -> ToolResult:
    match context.outcome:
        case WriteResult() as changed:
            own = [] if changed.created else ["an existing file was overwritten"]
            notes = (*own, *changed.notes)
        case EditResult() as changed:
            notes = (*changed.notes, *_note_on_newlines(context, changed))
        case _:
            problem = kit.problem_of(context)
            reply = {"error": problem._asdict()} if problem else _document(context, workspace)
            return kit.as_json(context, reply)
    data = {"result": "ok", "path": changed.path, "notes": list(notes)}
    return replace(context.result, content='"ok"', data=data, notes=notes)


def _document(context: kit.RenderContext, workspace: Workspace) -> dict[str, Any]:
    absolute = kit.absolute_in(workspace)
    match context.outcome:
        case ReadResult() as read:
            return _page(context, read, workspace)
        case ListResult() as listed:
            entries = [f"{absolute(entry.path)}{'/' if entry.is_dir else ''}" for entry in listed.entries]
            paging = _paging(context, listed)
            return {"entries": entries, **paging, **kit.left_out_field(listed.skipped)}
        case GrepResult() as found:
            matches = [
                {"file": absolute(match.path), "line": match.line, **kit.content_of(match)}
                for match in found.matches
            ]
            advice = "Increase max_results, or narrow the search with path"
            totals = _totals(context, found, len(matches), "matching lines", advice)
            return {"matches": matches, **totals}
        case _:
            globbed: GlobResult = context.outcome
            files = [absolute(entry.path) for entry in globbed.files]
            advice = "Increase max_results, or use a more specific pattern or path"
            totals = _totals(context, globbed, len(files), "files", advice)
            pattern = context.arguments["pattern"]
            if not files and "/" not in pattern and len(globbed.nothing) == 1:  # no other hint
                totals["note"] += (
                    f"\n`{pattern}` matches only in that directory, `**/{pattern}` also below it."
                )
            return {"files": files, **totals}


def _page(context: kit.RenderContext, read: ReadResult, workspace: Workspace) -> dict[str, Any]:
    if read.kind != "text":
        note = {} if read.content else {"note": context.result.content}
        content = read.content
        return {"content": content, "total_lines": read.total_lines, "kind": read.kind, **note}
    first, last = context.arguments.get("start_line"), context.arguments.get("end_line")
    limits = workspace.limits if last is None else _without_caps(workspace.limits)
    content, cut = kit.cut_lines(read, limits.line_chars)
    page: dict[str, Any] = {"content": content, "total_lines": read.total_lines}
    overflows = read.truncated_by not in {None, "line"}
    if overflows:
        advice = "Use start_line/end_line to read specific ranges"
        if last is not None:
            rest = f"start_line={read.end_line + 1} and end_line={min(last, read.total_lines)}"
            advice = f"For the rest pass {rest}"
        hint = f"File has {kit.plural(read.total_lines, 'line')}. {advice}"
        page["overflow"] = _overflow(read.end_line - read.start_line + 1, read.total_lines, hint)
    if cut:
        advice = "Give both start_line and end_line to read these lines whole"
        page["cut"] = {"lines": cut, **({"hint": advice} if last is None else {})}
    size = len(read.content.encode("utf-8", "surrogatepass"))
    is_range = first is not None and last is not None
    if not is_range and (size > _BUFFER_BYTES or (overflows and read.total_bytes > _BUFFER_BYTES)):
        page["file_id"] = kit.keep(workspace, read, "file")
    if read.encoding != "utf-8" and read.total_lines:
        page["encoding"] = read.encoding
    if read.bom and read.start_line == 1:
        page["note"] = "the byte order mark of the file is left out of content"
    return page


def _paging(context: kit.RenderContext, listed: ListResult) -> dict[str, Any]:
    if _is_paged(context.arguments):
        end = (context.arguments.get("offset") or 0) + len(listed.entries)
        return {"total": listed.total, **({"next_offset": end} if end < listed.total else {})}
    if not listed.truncated:
        return {}
    count = len(listed.entries)
    advice = f'Use a more specific path, or pass detail_level="full" and offset={count} to go on'
    hint = f"Directory has {kit.plural(listed.total, 'entry', 'entries')}. {advice}"
    return {"overflow": _overflow(count, listed.total, hint)}


def _totals(
    context: kit.RenderContext, found: GrepResult | GlobResult, count: int, noun: str, advice: str
) -> dict[str, Any]:
    """Return the total, how to see more, and why nothing was found."""
    total = found.total if isinstance(found, GlobResult) else found.total_lines
    totals: dict[str, Any] = {"total": total}
    if found.truncated:
        hint = f"There are {'' if found.exact else 'at least '}{total} {noun}. {advice}"
        totals["overflow"] = _overflow(count, total, hint)
    note = "; ".join(kit.glob_notes(found)) if count else context.result.content
    return {**totals, **kit.left_out_field(found.skipped), **kit.without_empty(note=note)}


def _overflow(count: int, total: int, hint: str) -> dict[str, Any]:
    return {"shown": count, "total": total, "hint": hint}


def _note_on_newlines(context: kit.RenderContext, edited: EditResult) -> tuple[str, ...]:
    """Return a note if the line ends of `old_string` differ from those of the file."""
    given = kit.newline_of(context.arguments.get("old_string") or "")
    if given is None or given == edited.newline:
        return ()
    kept = {"\n": "LF", "\r\n": "CRLF"}.get(edited.newline or "", "several")
    return (f"old_string matched with the line ends of the file ({kept}), which were kept",)


DIALECT = kit.Dialect(
    "codescout", _Tools.make, limits=_LIMITS, policy={"overwrite": "always", "match": "exact"}, render=_render
)
