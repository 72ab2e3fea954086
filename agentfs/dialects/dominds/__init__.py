"""The dialect `dominds`: list_dir, read_file and five ripgrep_* tools, whose replies are YAML.

`docs/reference/dialects/dominds.md` compares it with the contract.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from typing import Any, Literal

from agentfs import Limits, ToolResult, Workspace
from agentfs.dialects import toolkit as kit
from agentfs.dialects.dominds.rg_args import ALLOWED, read_arguments, vary
from agentfs.dialects.dominds.yaml_text import to_yaml
from agentfs.errors import InvalidArgumentError, must_be
from agentfs.results import Entry, GrepResult, ListResult, Match, ReadResult, Skipped

_Case = Literal["smart", "sensitive", "insensitive"]
_Document = dict[str, Any]

_MAX_LINES = 500
_MAX_CONTEXT = 100  # lines on either side of a match
_RANGE = re.compile(r"\s*([0-9]{0,9})\s*~\s*([0-9]{0,9})\s*")
_OTHER_TILDE = re.compile(r"(?<=[0-9])\s*(?:-|:|,|\.\.)\s*(?=[0-9])")  # as in 10-50
_NUMBER_CHARS = 8  # added to each line by its number and the indentation of YAML
_MAX_RULES = 3
# Line ends that a numbered text does not show.
_NEWLINES = {"\r\n": "crlf", "\r": "cr", "mixed": "mixed"}
# The results of each tool, and their field; ripgrep_search shows what its arguments say, as `results`.
_SHOWN = {
    "ripgrep_files": ("files", "matches"),
    "ripgrep_count": ("counts", "counts"),
    "ripgrep_snippets": ("lines", "matches"),
    "ripgrep_fixed": ("lines", "matches"),
}


class _Tools(kit.Tools):
    """The tools. The braces in their descriptions hold the limits of the workspace."""

    @classmethod
    def make(cls, workspace: Workspace) -> list[kit.Tool]:
        values = {**vars(workspace.limits), "allowed": ALLOWED}
        return [replace(tool, text=tool.description.format(**values)) for tool in super().make(workspace)]

    @kit.offer(effect="read", methods={"ls": {}})
    def list_dir(self, path: str = ".") -> ListResult:
        """List directory contents: directories first, then files, by name.

        At most {list_entries:,} entries.

        Args:
            path: Directory, relative to the workspace root.
        """
        return self.workspace.ls(path, include_ignored=True)

    @kit.offer(effect="read", methods={"read": {}})
    def read_file(
        self,
        path: str,
        max_lines: int = _MAX_LINES,
        range: str | None = None,  # noqa: A002 - the contract's name
        show_linenos: bool = True,  # noqa: ARG002 - for the renderer
    ) -> ReadResult:
        """Read file contents.

        At most {read_bytes:,} bytes, and {line_chars:,} characters of a line.

        Args:
            path: File, relative to the workspace root.
            max_lines: Most lines to show, of a range too.
            range: Lines to show, from 1: `10~50`, `300~` (to the end), `~20` (the first 20) or `~` (all).
            show_linenos: Put its number before each line.
        """
        if max_lines < 0:
            raise must_be("max_lines", "1 or more", max_lines, f"Leave it out for {_MAX_LINES}.")
        first, last = _requested_lines(range)
        limit = max_lines or _MAX_LINES
        limit = limit if last is None else min(limit, last - first + 1)
        # The contract counts the lines of a file, so a notebook is shown as its JSON.
        raw = path.lower().endswith(".ipynb")
        options = kit.ReadOptions(path, first, limit, raw=raw, line_overhead=_NUMBER_CHARS)
        return kit.read_range(self.workspace, options, f"line {first}", "a range that begins at 1 to")

    @kit.offer(effect="read")
    def ripgrep_files(
        self, pattern: str, path: str = ".", globs: list[str] | str | None = None, case: _Case = "smart"
    ) -> GrepResult:
        """Search files containing matches: their paths.

        At most {grep_results:,} files.

        Args:
            pattern: Regular expression; escape `( ) [ . *` to match them literally.
            path: File or directory to search, relative to the workspace root.
            globs: Only files that match one, such as `*.py` or `src/**`; `!*.md` leaves out.
            case: How letters match; smart ignores case unless the pattern has a capital.
        """
        globs = kit.globs_from_root(self.workspace, path, globs)
        return self._grep(pattern, path, case, glob=globs, output_mode="files_with_matches")

    @kit.offer(effect="read", renames={"before": "context_before", "after": "context_after"})
    def ripgrep_snippets(
        self,
        pattern: str,
        path: str = ".",
        context_before: int = 0,
        context_after: int = 0,
        case: _Case = "smart",
    ) -> GrepResult:
        """Search and display matching snippets: one for each matching line.

        At most {grep_results:,} snippets, {grep_line_chars:,} characters of a line, and 100 lines on either
        side of a match.

        Args:
            pattern: Regular expression; escape `( ) [ . *` to match them literally.
            path: File or directory to search, relative to the workspace root.
            context_before: Lines to show before each match.
            context_after: Lines to show after each match.
            case: How letters match; smart ignores case unless the pattern has a capital.
        """
        return self._grep(pattern, path, case, before=context_before, after=context_after)

    @kit.offer(effect="read")
    def ripgrep_count(self, pattern: str, path: str = ".", case: _Case = "smart") -> GrepResult:
        """Count matches in each file, and in all.

        At most {grep_results:,} files; `total_count` is the sum of all.

        Args:
            pattern: Regular expression; escape `( ) [ . *` to match them literally.
            path: File or directory to search, relative to the workspace root.
            case: How letters match; smart ignores case unless the pattern has a capital.
        """
        return self._grep(pattern, path, case, output_mode="count")

    @kit.offer(effect="read")
    def ripgrep_fixed(self, literal: str, path: str = ".", case: _Case = "smart") -> GrepResult:
        """Fixed string search: the text as it is, no regular expression.

        At most {grep_results:,} matches, and {grep_line_chars:,} characters of a line.

        Args:
            literal: Text to search for; it may span lines.
            path: File or directory to search, relative to the workspace root.
            case: How letters match; smart ignores case unless the text has a capital.
        """
        literal = literal.replace("\r\n", "\n")
        return self._grep(literal, path, case, fixed_strings=True, multiline="\n" in literal)

    @kit.offer(effect="read", methods={"grep": {}}, retry=vary)
    def ripgrep_search(
        self, pattern: str, path: str = ".", rg_args: list[str] | str | None = None
    ) -> GrepResult:
        """Advanced rg search, with some of ripgrep's own arguments.

        At most {grep_results:,} results, {grep_line_chars:,} characters of a line, and 100 lines on either
        side of a match.

        rg_args takes `{allowed}`; `--no-ignore -.` searches ignored and hidden files.

        Args:
            pattern: Regular expression; escape `( ) [ . *` to match them literally.
            path: File or directory to search, relative to the workspace root.
            rg_args: More rg arguments, such as `-i -C2 -g '*.py'`.
        """
        options = read_arguments(rg_args).options
        options["glob"] = kit.globs_from_root(self.workspace, path, options["glob"])
        try:
            return self._grep(pattern, path, "sensitive", **options)
        except InvalidArgumentError as error:
            if "types" in error.details:
                near = error.details["nearest"] or ("py", "js", "rust")
                error.hint = f"Pass -t with {' or '.join(near)}, or -g with a glob such as '*.py'."
            raise

    def _grep(self, pattern: str, path: str, case: _Case, **options: Any) -> GrepResult:
        options = {"context": 0, **kit.case_options(case), **options}
        return kit.grep(self.workspace, kit.GrepOptions(pattern, path, max_context=_MAX_CONTEXT, **options))


def _requested_lines(lines: str | None) -> tuple[int, int | None]:
    """Return the first and last line of a `range`; None is the end of the file."""
    found = _RANGE.fullmatch(_OTHER_TILDE.sub("~", lines) if lines and lines.strip() else "~")
    first, last = (int(found[1] or 1), int(found[2]) if found[2] else None) if found else (0, None)
    if first < 1 or (last is not None and last < first):
        raise InvalidArgumentError(
            f"`range` must be lines from 1, first to last, not {kit.literal(lines or '')}.",
            hint="Pass 10~50, 7~7 (one line), 300~ (to the end), ~20 (the first 20) or ~ (all).",
            details={"parameter": "range", "value": lines},
        )
    return first, last


def _render(context: kit.RenderContext, workspace: Workspace) -> ToolResult:
    problem, limits = kit.problem_of(context), workspace.limits
    match context.outcome:
        case _ if problem is not None:
            document: _Document = {"status": "error", **problem._asdict()}
            text = to_yaml(document)
        case ListResult() as listed:
            path = kit.relative_in(workspace, str(context.arguments.get("path") or "."))
            if listed.entries:  # spell the directory as the paths of its entries do
                path = listed.entries[0].path.rpartition("/")[0] or "."
            entries, skipped = [_entry(each) for each in listed.entries], _skipped(listed.skipped)
            document, text = _fitted(limits, {"path": path}, "entries", entries, listed.total, skipped)
        case ReadResult() as read:
            document = _file(read, context, limits)
            text = to_yaml(document)
        case found:
            document, text = _search(found, context, limits)
    following = document.get("next", context.result.next)
    return replace(context.result, content=text, data=document, next=following)


def _file(found: ReadResult, context: kit.RenderContext, limits: Limits) -> _Document:
    document: _Document = {
        "status": "ok",
        "path": found.path,
        "total_lines": found.total_lines,
        "size_bytes": found.total_bytes,
        "content": context.result.content,
    }
    given = context.arguments
    if found.kind == "text":
        document |= _lines(found, limits.line_chars, numbered=given.get("show_linenos", True))
    else:
        document["kind"] = found.kind
    _, last = _requested_lines(given.get("range"))
    if found.end_line < min(last or found.total_lines, found.total_lines):
        following = {**given, "path": found.path, "range": f"{found.end_line + 1}~{last or ''}"}
        document["truncated"] = True
        document["shown"] = f"{found.start_line}~{found.end_line}"
        document["next"] = {"name": context.tool.name if context.tool else "", "arguments": following}
    return document


def _lines(found: ReadResult, line_chars: int, *, numbered: bool) -> _Document:
    """Return the lines of a file, and facts that they do not show."""
    content, cut = kit.cut_lines(found, line_chars)
    document: _Document = {"content": content}
    if numbered:
        lines = [
            f"{number:4}| {line[:line_chars]}"
            for number, line in enumerate(kit.lines_of(found), found.start_line)
        ]
        ended = found.content.endswith("\r" if found.newline == "\r" else "\n")
        document["content"] = "\n".join([*lines, ""] if ended else lines)
        document |= kit.without_empty(newline=_NEWLINES.get(found.newline or ""))
    if cut:
        document |= {"cut_lines": cut, "cut_after": line_chars}
    if found.encoding != "utf-8":
        document["encoding"] = found.encoding
    return document


def _search(found: GrepResult, context: kit.RenderContext, limits: Limits) -> tuple[_Document, str]:
    """Return what a search found. `rg_args` select what ripgrep_search shows."""
    given, tool = context.arguments, context.tool.own_name if context.tool else ""
    rg = read_arguments(given.get("rg_args"))
    shows, name = _SHOWN.get(tool, (rg.shows, "results"))
    query = "literal" if tool == "ripgrep_fixed" else "pattern"
    head, more = {query: given[query]}, _details(found)
    total = found.total_files
    if shows == "files":
        items: list[Any] = [{"path": path} for path in found.counts]
        head |= {"files_matched": total} if tool == "ripgrep_files" else {}
    elif shows == "counts":
        by_match = tool == "ripgrep_count" or rg.only_matching
        kept = found.counts.items()
        items = [{"path": path, "count": each.matches if by_match else each.lines} for path, each in kept]
        more = {"total_count": found.total_matches if by_match else found.total_lines, **more}
    elif shows == "matches":
        items = [part for match in found.matches for part in _matched_parts(match)]
        total = found.total_matches if found.truncated else len(items)
    else:
        items = [_snippet(match, limits.grep_line_chars) for match in found.matches]
        # A match over several lines is one snippet, and counts each of them in `total_lines`.
        total = found.total_lines if found.truncated else len(items)
        asked = {**given, **rg.options}
        around = ("context_before", "context_after", "before", "after", "context")
        if items and max(asked.get(each) or 0 for each in around) > _MAX_CONTEXT:
            more["context_at_most"] = _MAX_CONTEXT
    return _fitted(limits, head, name, items, total, more)


def _fitted(
    limits: Limits, head: _Document, name: str, items: Sequence[Any], total: int, more: _Document
) -> tuple[_Document, str]:
    """Return a document with as many items as fit into `Limits.output_tokens`, and its text."""

    @cache
    def made(count: int) -> tuple[_Document, str]:
        omitted = {"truncated": True, "total": total} if count < total else {}
        document = {"status": "ok", **head, name: list(items[:count]), **omitted, **more}
        return document, to_yaml(document)

    return made(kit.most_that_fit(len(items), lambda count: made(count)[1], limits))


def _entry(entry: Entry) -> _Document:
    leads_to_file = entry.type == "symlink" and entry.size is not None
    return {
        "name": entry.name,
        "type": "dir" if entry.is_dir else "file" if leads_to_file else entry.type,
        "size": entry.size,
        "modified": timestamp(entry.mtime),
        **kit.without_empty(target=entry.target, protected=entry.protected),
    }


def timestamp(seconds: float | None) -> str | None:
    """Return a time in ISO 8601, in UTC, or None if the calendar does not have it."""
    if seconds is None:
        return None
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    except (OverflowError, OSError, ValueError):
        return None


def _snippet(match: Match, line_chars: int) -> _Document:
    before, after = ([line[:line_chars] for line in side] for side in (match.before, match.after))
    content = "\n".join([*before, kit.without_marks(match)[0], *after])
    snippet: _Document = {"path": match.path, "line": match.line, "content": content}
    if before:
        snippet["start_line"] = match.line - len(before)
    if any(match.cut) or any(len(line) > line_chars for line in (*match.before, *match.after)):
        snippet["cut"] = True
    return snippet


def _matched_parts(match: Match) -> list[_Document]:
    """Return each part of a line that matches and is not empty."""
    text, spans = kit.without_marks(match)
    return [
        {
            "path": match.path,
            "line": match.line + text.count("\n", 0, start),
            "content": text[start:end],
            **kit.without_empty(cut=any(match.cut)),
        }
        for start, end in spans
        if end > start
    ]


def _details(found: GrepResult) -> _Document:
    """Return the fields that say how complete a search is."""
    complete = {} if found.exact else {"complete": False}
    notes = [*found.nothing[1:], *kit.glob_notes(found)]
    return {**complete, **kit.without_empty(notes=notes), **_skipped(found.skipped)}


def _skipped(skipped: Skipped) -> _Document:
    reasons = kit.left_out(skipped)
    by_count = sorted(skipped.rules.items(), key=lambda item: (-item[1], item[0]))
    rules = [rule for rule, _ in by_count[:_MAX_RULES]] if reasons else []
    return kit.without_empty(skipped=reasons, ignored_by=rules)


DIALECT = kit.Dialect(
    "dominds",
    _Tools.make,
    # `max_lines` bounds the lines of a read.
    limits={"read_lines": 1_000_000, "read_bytes": 100_000, "output_tokens": 40_000},
    render=_render,
)
