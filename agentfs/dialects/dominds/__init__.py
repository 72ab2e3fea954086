"""The dialect `dominds`: list_dir, read_file and five ripgrep_* tools, whose replies are YAML.

`docs/reference/dialects/dominds.md` compares it with the contract.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Literal

from agentfs import Limits, ToolResult, Workspace
from agentfs.dialects import toolkit as kit
from agentfs.dialects.dominds.rg_args import ALLOWED, read_arguments, vary
from agentfs.dialects.dominds.yaml_text import to_yaml
from agentfs.errors import InvalidArgumentError, NotAFileError, PastEndError, must_be
from agentfs.results import Entry, GrepResult, ListResult, Match, ReadResult, Skipped

_Case = Literal["smart", "sensitive", "insensitive"]
Document = dict[str, Any]

_MAX_LINES = 500
_MAX_CONTEXT = 100  # lines on either side of a match
_RANGE = re.compile(r"\s*([0-9]{0,9})\s*~\s*([0-9]{0,9})\s*")
_OTHER_TILDE = re.compile(r"(?<=[0-9])\s*(?:-|:|,|\.\.)\s*(?=[0-9])")  # as in 10-50
_NUMBER_CHARS = 8  # added to each line by its number and the indentation of YAML
_MAX_RULES = 3
# Parameters of the tools and of `grep` for lines around a match.
_CONTEXT_PARAMETERS = ("context_before", "context_after", "before", "after", "context")
# Line ends that a numbered text does not show.
_NEWLINES = {"\r\n": "crlf", "\r": "cr", "mixed": "mixed"}


class _Tools:
    """The tools of a workspace."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def list_dir(self, path: str = ".") -> ListResult:
        """List directory contents: directories first, then files, by name.

        Args:
            path: Directory, relative to the workspace root.
        """
        return self._workspace.ls(path, include_ignored=True)

    def read_file(
        self,
        path: str,
        max_lines: int = _MAX_LINES,
        range: str | None = None,  # noqa: A002 - the contract's name
        show_linenos: bool = True,  # noqa: ARG002 - for the renderer
    ) -> ReadResult:
        """Read file contents.

        Args:
            path: File, relative to the workspace root.
            max_lines: Most lines to show, of a range too.
            range: Lines to show, from 1: `10~50`, `300~` (to the end), `~20` (the first 20) or `~` (all).
            show_linenos: Put its number before each line.
        """
        return _read(self._workspace, path, range, max_lines)

    def ripgrep_files(
        self, pattern: str, path: str = ".", globs: list[str] | str | None = None, case: _Case = "smart"
    ) -> GrepResult:
        """Search files containing matches: their paths.

        Args:
            pattern: Regular expression; escape `( ) [ . *` to match them literally.
            path: File or directory to search, relative to the workspace root.
            globs: Only files that match one, such as `*.py` or `src/**`; `!*.md` leaves out.
            case: How letters match; smart ignores case unless the pattern has a capital.
        """
        globs = kit.globs_from_root(self._workspace, path, globs)
        return kit.grep(
            self._workspace,
            kit.GrepOptions(
                pattern, path, globs, output_mode="files_with_matches", context=0, **kit.case_options(case)
            ),
        )

    def ripgrep_snippets(
        self,
        pattern: str,
        path: str = ".",
        context_before: int = 0,
        context_after: int = 0,
        case: _Case = "smart",
    ) -> GrepResult:
        """Search and display matching snippets: one for each matching line.

        Args:
            pattern: Regular expression; escape `( ) [ . *` to match them literally.
            path: File or directory to search, relative to the workspace root.
            context_before: Lines to show before each match.
            context_after: Lines to show after each match.
            case: How letters match; smart ignores case unless the pattern has a capital.
        """
        around: dict[str, Any] = {
            "before": context_before,
            "after": context_after,
            "max_context": _MAX_CONTEXT,
        }
        return kit.grep(
            self._workspace, kit.GrepOptions(pattern, path, overlap=True, **around, **kit.case_options(case))
        )

    def ripgrep_count(self, pattern: str, path: str = ".", case: _Case = "smart") -> GrepResult:
        """Count matches in each file, and in all.

        Args:
            pattern: Regular expression; escape `( ) [ . *` to match them literally.
            path: File or directory to search, relative to the workspace root.
            case: How letters match; smart ignores case unless the pattern has a capital.
        """
        options = kit.GrepOptions(pattern, path, output_mode="count", context=0, **kit.case_options(case))
        return kit.grep(self._workspace, options)

    def ripgrep_fixed(self, literal: str, path: str = ".", case: _Case = "smart") -> GrepResult:
        """Fixed string search: the text as it is, no regular expression.

        Args:
            literal: Text to search for; it may span lines.
            path: File or directory to search, relative to the workspace root.
            case: How letters match; smart ignores case unless the text has a capital.
        """
        literal = literal.replace("\r\n", "\n")
        how: dict[str, Any] = {"multiline": "\n" in literal, "fixed_strings": True, **kit.case_options(case)}
        return kit.grep(self._workspace, kit.GrepOptions(literal, path, context=0, **how))

    def ripgrep_search(
        self, pattern: str, path: str = ".", rg_args: list[str] | str | None = None
    ) -> GrepResult:
        """Advanced rg search, with some of ripgrep's own arguments.

        Args:
            pattern: Regular expression; escape `( ) [ . *` to match them literally.
            path: File or directory to search, relative to the workspace root.
            rg_args: More rg arguments, such as `-i -C2 -g '*.py'`.
        """
        options = read_arguments(rg_args).options
        options["glob"] = kit.globs_from_root(self._workspace, path, options["glob"])
        try:
            return kit.grep(
                self._workspace,
                kit.GrepOptions(pattern, path, overlap=True, max_context=_MAX_CONTEXT, **options),
            )
        except InvalidArgumentError as error:
            if "types" in error.details:
                near = error.details["nearest"] or ("py", "js", "rust")
                hint = f"Pass -t with {' or '.join(near)}, or -g with a glob such as '*.py'."
                raise InvalidArgumentError(error.message, hint=hint, details=error.details) from None
            raise


def _tools(workspace: Workspace) -> Sequence[kit.Tool]:
    tools = _Tools(workspace)
    limits = workspace.limits
    entries = f"At most {limits.list_entries:,} entries."
    page = f"At most {limits.read_bytes:,} bytes, and {limits.line_chars:,} characters of a line."
    a_line = f"{limits.grep_line_chars:,} characters of a line"
    around = f"{_MAX_CONTEXT:,} lines on either side of a match"
    rg_note = f"rg_args takes `{ALLOWED}`; `--no-ignore -.` searches ignored and hidden files."

    def tool(
        function: Callable[..., Any],
        bounds: str,
        document: Callable[[Any, kit.RenderContext, Limits], Document],
        **options: Any,
    ) -> kit.Tool:
        return kit.Tool(
            function=function,
            text=f"{kit.read_docstring(function.__doc__).description}\n{bounds}",
            effect="read",
            render=_renderer(document, workspace),
            **options,
        )

    context = {"before": "context_before", "after": "context_after"}
    return (
        tool(tools.list_dir, entries, _directory, methods={"ls": {}}),
        tool(tools.read_file, page, _file, methods={"read": {}}, follow=_follow),
        tool(tools.ripgrep_files, f"At most {limits.grep_results:,} files.", _files),
        tool(
            tools.ripgrep_snippets,
            f"At most {limits.grep_results:,} snippets, {a_line}, and {around}.",
            _snippets,
            renames=context,
        ),
        tool(
            tools.ripgrep_count,
            f"At most {limits.grep_results:,} files; `total_count` is the sum of all.",
            _counts,
        ),
        tool(tools.ripgrep_fixed, f"At most {limits.grep_results:,} matches, and {a_line}.", _snippets),
        tool(
            tools.ripgrep_search,
            f"At most {limits.grep_results:,} results, {a_line}, and {around}.\n{rg_note}",
            _search,
            methods={"grep": {}},
            retry=vary,
        ),
    )


def _read(workspace: Workspace, path: str, lines: str | None, max_lines: int) -> ReadResult:
    if max_lines < 0:
        raise must_be("max_lines", "1 or more", max_lines, f"Leave it out for {_MAX_LINES}.")
    first, last = _requested_lines(lines or "~")
    max_lines = max_lines or _MAX_LINES
    limit = max_lines if last is None else min(max_lines, last - first + 1)
    try:
        # The contract counts the lines of a file, so a notebook is shown as its JSON.
        options = kit.ReadOptions(
            path, first, limit, raw=path.lower().endswith(".ipynb"), line_overhead=_NUMBER_CHARS
        )
        found = kit.read(workspace, options)
    except PastEndError as error:
        if "total_lines" in error.details:
            raise kit.past_end_of_lines(error, f"line {first}", "a range that begins at 1 to") from None
        found = workspace.read(path)
        if found.kind != "directory":
            raise
    if found.kind == "directory":
        message = f"{kit.to_json(path)} is a directory."
        raise NotAFileError(message, hint=kit.Advice("Call ", kit.call("ls", path=path), "."))
    if found.next is None or (last is not None and found.end_line >= last):
        return found
    # The continuation ends where the requested range does.
    arguments = {name: value for name, value in found.next["arguments"].items() if name != "limit"}
    arguments |= {} if last is None else {"limit": last - found.end_line}
    arguments |= {} if max_lines == _MAX_LINES else {"max_lines": max_lines}
    following: kit.NextCall = {"name": "read", "arguments": arguments}
    return replace(found, next=following)


def _requested_lines(lines: str) -> tuple[int, int | None]:
    """Return the first and last line of a `range`; None is the end of the file."""
    found = _RANGE.fullmatch(_OTHER_TILDE.sub("~", lines) if lines.strip() else "~")
    first, last = (int(found[1] or 1), int(found[2]) if found[2] else None) if found else (0, None)
    if first < 1 or (last is not None and last < first):
        raise InvalidArgumentError(
            f"`range` must be lines from 1, first to last, not {kit.literal(lines)}.",
            hint="Pass 10~50, 7~7 (one line), 300~ (to the end), ~20 (the first 20) or ~ (all).",
            details={"parameter": "range", "value": lines},
        )
    return first, last


def _follow(call: kit.NextCall) -> Mapping[str, Any] | None:
    """Return the arguments of read_file for a call of `read`."""
    arguments = call["arguments"]
    if call["name"] != "read" or "column" in arguments:
        return None
    first, last = arguments.get("offset", 1), kit.last_line(arguments)
    if first < 1:
        return None
    made: dict[str, Any] = {name: value for name, value in arguments.items() if name in ("path", "max_lines")}
    if first == 1 and last is None:
        return made
    return {**made, "range": f"{first}~{'' if last is None else last}"}


def _renderer(
    document: Callable[[Any, kit.RenderContext, Limits], Document], workspace: Workspace
) -> Callable[[kit.RenderContext], ToolResult]:
    limits = workspace.limits
    render = kit.document_renderer(
        lambda context, _: document(context.outcome, context, limits), _failure, to_yaml
    )
    return lambda context: render(context, workspace)


def _failure(_: kit.RenderContext, problem: kit.Problem) -> Document:
    return {"status": "error", **problem._asdict()}


def _directory(found: ListResult, context: kit.RenderContext, limits: Limits) -> Document:
    path = str(context.arguments.get("path") or ".")
    if found.entries:  # spell the directory as the paths of its entries do
        path = found.entries[0].path.rpartition("/")[0] or "."
    entries = [_entry(each) for each in found.entries]
    return _fitted(limits, {"path": path}, "entries", entries, found.total, _skipped(found.skipped))


def _file(found: ReadResult, context: kit.RenderContext, limits: Limits) -> Document:
    document: Document = {
        "status": "ok",
        "path": found.path,
        "total_lines": found.total_lines,
        "size_bytes": found.total_bytes,
        "content": context.result.content,
    }
    if found.kind == "text":
        document |= _lines(found, limits.line_chars, numbered=context.arguments.get("show_linenos", True))
    else:
        document["kind"] = found.kind
    _, last = _requested_lines(context.arguments.get("range") or "~")
    if found.end_line < min(last or found.total_lines, found.total_lines):
        document["truncated"] = True
        document["shown"] = f"{found.start_line}~{found.end_line}"
        document["next"] = context.result.next
    return document


def _lines(found: ReadResult, line_chars: int, *, numbered: bool) -> Document:
    """Return the lines of a file, and facts that they do not show."""
    content, cut = kit.cut_lines(found, line_chars)
    document: Document = {"content": content}
    if numbered:
        lines = [
            f"{number:4}| {line[:line_chars]}"
            for number, line in enumerate(kit.lines_of(found), found.start_line)
        ]
        ended = found.content.endswith("\r" if found.newline == "\r" else "\n")
        document["content"] = "\n".join([*lines, ""] if ended else lines)
        if found.newline in _NEWLINES:
            document["newline"] = _NEWLINES[found.newline]
    if cut:
        document |= {"cut_lines": cut, "cut_after": line_chars}
    if found.encoding != "utf-8":
        document["encoding"] = found.encoding
    return document


def _files(found: GrepResult, context: kit.RenderContext, limits: Limits) -> Document:
    head = {"pattern": context.arguments["pattern"], "files_matched": found.total_files}
    return _fitted(limits, head, "matches", _paths(found), found.total_files, _details(found))


def _search(found: GrepResult, context: kit.RenderContext, limits: Limits) -> Document:
    """Return the document of ripgrep_search, whose `rg_args` select what is shown."""
    arguments = read_arguments(context.arguments.get("rg_args"))
    if arguments.shows == "lines":
        return _snippets(found, context, limits, name="results")
    if arguments.shows == "counts":
        return _counts(found, context, limits, name="results", by_match=arguments.only_matching)
    head = {"pattern": context.arguments["pattern"]}
    if arguments.shows == "files":
        items, total = _paths(found), found.total_files
    else:
        items = [part for match in found.matches for part in _matched_parts(match)]
        total = found.total_matches if found.truncated else len(items)
    return _fitted(limits, head, "results", items, total, _details(found))


def _paths(found: GrepResult) -> list[Document]:
    return [{"path": path} for path in found.counts]


def _counts(
    found: GrepResult,
    context: kit.RenderContext,
    limits: Limits,
    name: str = "counts",
    *,
    by_match: bool = True,
) -> Document:
    """Return the document of ripgrep_count, or of ripgrep_search with counts."""
    head = {"pattern": context.arguments["pattern"]}
    items = [
        {"path": path, "count": count.matches if by_match else count.lines}
        for path, count in found.counts.items()
    ]
    total_count = found.total_matches if by_match else found.total_lines
    more = {"total_count": total_count, **_details(found)}
    return _fitted(limits, head, name, items, found.total_files, more)


def _snippets(
    found: GrepResult, context: kit.RenderContext, limits: Limits, name: str = "matches"
) -> Document:
    """Return the document of ripgrep_snippets and ripgrep_fixed, or of ripgrep_search with lines."""
    items = [_snippet(match, limits.grep_line_chars) for match in found.matches]
    query = "literal" if "literal" in context.arguments else "pattern"
    # A match over several lines is one snippet, and counts each of them in `total_lines`.
    total = found.total_lines if found.truncated else len(items)
    more = _details(found)
    if items and _context_lines(context) > _MAX_CONTEXT:
        more["context_at_most"] = _MAX_CONTEXT
    return _fitted(limits, {query: context.arguments[query]}, name, items, total, more)


def _fitted(
    limits: Limits, head: Document, name: str, items: Sequence[Any], total: int, more: Document
) -> Document:
    """Return a document with as many items as fit into `Limits.output_tokens`."""

    def document(count: int) -> Document:
        omitted = {"truncated": True, "total": total} if count < total else {}
        return {"status": "ok", **head, name: list(items[:count]), **omitted, **more}

    return document(kit.most_that_fit(len(items), lambda count: to_yaml(document(count)), limits))


def _entry(entry: Entry) -> Document:
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


def _snippet(match: Match, line_chars: int) -> Document:
    before, after = ([line[:line_chars] for line in side] for side in (match.before, match.after))
    content = "\n".join([*before, kit.without_marks(match)[0], *after])
    snippet: Document = {"path": match.path, "line": match.line, "content": content}
    if before:
        snippet["start_line"] = match.line - len(before)
    if any(match.cut) or any(len(line) > line_chars for line in (*match.before, *match.after)):
        snippet["cut"] = True
    return snippet


def _matched_parts(match: Match) -> list[Document]:
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


def _context_lines(context: kit.RenderContext) -> int:
    """Return the number of context lines that the call requests, the larger of before and after."""
    given = {**context.arguments, **read_arguments(context.arguments.get("rg_args")).options}
    return max(given.get(name) or 0 for name in _CONTEXT_PARAMETERS)


def _details(found: GrepResult) -> Document:
    """Return the fields that say how complete a search is."""
    complete = {} if found.exact else {"complete": False}
    notes = [*found.nothing[1:], *kit.glob_notes(found)]
    return {**complete, **kit.without_empty(notes=notes), **_skipped(found.skipped)}


def _skipped(skipped: Skipped) -> Document:
    reasons = kit.left_out(skipped)
    by_count = sorted(skipped.rules.items(), key=lambda item: (-item[1], item[0]))
    rules = [rule for rule, _ in by_count[:_MAX_RULES]] if reasons else []
    return kit.without_empty(skipped=reasons, ignored_by=rules)


DIALECT = kit.Dialect(
    "dominds",
    _tools,
    # `max_lines` bounds the lines of a read.
    limits={"read_lines": 1_000_000, "read_bytes": 100_000, "output_tokens": 40_000},
    render=kit.document_renderer(
        lambda context, _: context.result.data, _failure, to_yaml
    ),  # of unknown tools
)
