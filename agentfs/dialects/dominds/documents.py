"""The replies of `dominds`: the document's fields, and after them what was left out, all as YAML. Pure."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, TypeVar

from agentfs.dialects.dominds.rg_args import read_arguments
from agentfs.dialects.dominds.yaml import to_yaml
from agentfs.dialects.rendering import cut_lines, left_out, lines_of, problem_of
from agentfs.limits import Limits
from agentfs.results import Entry, GrepResult, ListResult, Match, ReadResult, Skipped, ToolResult
from agentfs.search.excerpts import without_marks
from agentfs.text import most_that_fit
from agentfs.tools.spec import RenderContext

Document = dict[str, Any]
_R = TypeVar("_R", ListResult, ReadResult, GrepResult)

_MAX_RULES = 3
# Parameters of the tools and of grep that ask for lines around a match.
_CONTEXT_PARAMETERS = ("context_before", "context_after", "before", "after", "context")
# Line ends that are named where lines are numbered, because the text does not show them.
_NEWLINES = {"\r\n": "crlf", "\r": "cr", "mixed": "mixed"}
_ONE_LINE_FIELDS = ("path", "name", "target", "pattern", "literal")


def render(context: RenderContext) -> ToolResult:
    """Return the result with its document, or that of its failure, as YAML."""
    problem = problem_of(context)
    document = context.result.data if problem is None else {"status": "error", **problem._asdict()}
    return replace(context.result, content=_yaml(document), data=document)


def renderer(
    kind: type[_R], document: Callable[[_R, RenderContext, Limits], Document], limits: Limits
) -> Callable[[RenderContext], ToolResult]:
    """Return the renderer of a tool, which makes the document of a success; failures are left to `render`."""

    def render_tool(context: RenderContext) -> ToolResult:
        found = context.outcome
        if not isinstance(found, kind):
            return context.result
        return replace(context.result, data=document(found, context, limits))

    return render_tool


def directory(found: ListResult, context: RenderContext, limits: Limits) -> Document:
    """Return the document of list_dir."""
    path = str(context.arguments.get("path") or ".")
    if found.entries:  # written as in the paths of its entries
        path = found.entries[0].path.rpartition("/")[0] or "."
    entries = [_entry(each) for each in found.entries]
    return _fitted(limits, {"path": path}, "entries", entries, found.total, _skipped(found.skipped))


def file(found: ReadResult, context: RenderContext, limits: Limits) -> Document:
    """Return the document of read_file."""
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
    last = re.search("~ *([0-9]+)", context.arguments.get("range") or "")
    if found.end_line < min(int(last[1]) if last else found.total_lines, found.total_lines):
        document["truncated"] = True
        document["shown"] = f"{found.start_line}~{found.end_line}"
        document["next"] = context.result.next
    return document


def _lines(found: ReadResult, line_chars: int, *, numbered: bool) -> Document:
    """Return the lines of a file, and what cannot be seen from them."""
    content, cut = cut_lines(found, line_chars)
    document: Document = {"content": content}
    if numbered:
        lines = [
            f"{number:4}| {line[:line_chars]}"
            for number, line in enumerate(lines_of(found), found.start_line)
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


def files(found: GrepResult, context: RenderContext, limits: Limits) -> Document:
    """Return the document of ripgrep_files."""
    head = {"pattern": context.arguments["pattern"], "files_matched": found.total_files}
    return _fitted(limits, head, "matches", _paths(found), found.total_files, _details(found, context))


def snippets(found: GrepResult, context: RenderContext, limits: Limits) -> Document:
    """Return the document of ripgrep_snippets and ripgrep_fixed."""
    return _snippets(found, context, limits, "matches")


def counts(found: GrepResult, context: RenderContext, limits: Limits) -> Document:
    """Return the document of ripgrep_count."""
    return _counts(found, context, limits, "counts", by_match=True)


def search(found: GrepResult, context: RenderContext, limits: Limits) -> Document:
    """Return the document of ripgrep_search, whose `rg_args` say what is shown."""
    arguments = read_arguments(context.arguments.get("rg_args"))
    if arguments.shows == "lines":
        return _snippets(found, context, limits, "results")
    if arguments.shows == "counts":
        by_match = arguments.only_matching and not arguments.inverted
        return _counts(found, context, limits, "results", by_match=by_match)
    head = {"pattern": context.arguments["pattern"]}
    if arguments.shows == "files":
        items, total = _paths(found), found.total_files
    else:
        items = [part for match in found.matches for part in _matched_parts(match)]
        total = found.total_matches if found.truncated else len(items)
    return _fitted(limits, head, "results", items, total, _details(found, context))


def _paths(found: GrepResult) -> list[Document]:
    return [{"path": path} for path in found.counts]


def _counts(
    found: GrepResult, context: RenderContext, limits: Limits, name: str, *, by_match: bool
) -> Document:
    head = {"pattern": context.arguments["pattern"]}
    items = [
        {"path": path, "count": count.matches if by_match else count.lines}
        for path, count in found.counts.items()
    ]
    total_count = found.total_matches if by_match else found.total_lines
    more = {"total_count": total_count, **_details(found, context)}
    return _fitted(limits, head, name, items, found.total_files, more)


def _snippets(found: GrepResult, context: RenderContext, limits: Limits, name: str) -> Document:
    items = [_snippet(match, limits.grep_line_chars) for match in found.matches]
    query = "literal" if "literal" in context.arguments else "pattern"
    # A match over several lines is one snippet, and counts each of them in `total_lines`.
    total = found.total_lines if found.truncated else len(items)
    more = _details(found, context)
    if items and _context_lines(context) > limits.context_lines:
        more["context_at_most"] = limits.context_lines
    return _fitted(limits, {query: context.arguments[query]}, name, items, total, more)


def _fitted(
    limits: Limits, head: Document, name: str, items: Sequence[Any], total: int, more: Document
) -> Document:
    """Return a document with as many items as the budget of tokens holds."""

    def document(count: int) -> Document:
        omitted = {"truncated": True, "total": total} if count < total else {}
        return {"status": "ok", **head, name: list(items[:count]), **omitted, **more}

    return document(most_that_fit(len(items), lambda count: _yaml(document(count)), limits))


def _yaml(document: Document) -> str:
    return to_yaml(document, one_line=_ONE_LINE_FIELDS)


def _entry(entry: Entry) -> Document:
    leads_to_file = entry.type == "symlink" and entry.size is not None
    return {
        "name": entry.name,
        "type": "dir" if entry.is_dir else "file" if leads_to_file else entry.type,
        "size": entry.size,
        "modified": timestamp(entry.mtime),
        **({} if entry.target is None else {"target": entry.target}),
        **({"protected": True} if entry.protected else {}),
    }


def timestamp(seconds: float | None) -> str | None:
    """Return a time in ISO 8601, in UTC; None for one outside the calendar."""
    if seconds is None:
        return None
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    except (OverflowError, OSError, ValueError):
        return None


def _snippet(match: Match, line_chars: int) -> Document:
    before, after = ([line[:line_chars] for line in side] for side in (match.before, match.after))
    content = "\n".join([*before, without_marks(match)[0], *after])
    snippet: Document = {"path": match.path, "line": match.line, "content": content}
    if before:
        snippet["start_line"] = match.line - len(before)
    if any(match.cut) or any(len(line) > line_chars for line in (*match.before, *match.after)):
        snippet["cut"] = True
    return snippet


def _matched_parts(match: Match) -> list[Document]:
    """Return each part of a line that matches; empty ones are left out."""
    text, spans = without_marks(match)
    return [
        {
            "path": match.path,
            "line": match.line + text.count("\n", 0, start),
            "content": text[start:end],
            **({"cut": True} if any(match.cut) else {}),
        }
        for start, end in spans
        if end > start
    ]


def _context_lines(context: RenderContext) -> int:
    """Return how many lines on a side of a match were asked for."""
    given = {**context.arguments, **read_arguments(context.arguments.get("rg_args")).options}
    return max(given.get(name) or 0 for name in _CONTEXT_PARAMETERS)


def _details(found: GrepResult, context: RenderContext) -> Document:
    """Return what is reported of a search beside what it found."""
    notes: list[str] = []
    if not found.total_lines:
        _, *notes = [line for line in context.result.content.split("\n") if not line.startswith("[")]
    complete = {} if found.exact else {"complete": False}
    return {**complete, **({"notes": notes} if notes else {}), **_skipped(found.skipped)}


def _skipped(skipped: Skipped) -> Document:
    reasons = left_out(skipped)
    by_count = sorted(skipped.rules.items(), key=lambda item: (-item[1], item[0]))
    rules = [rule for rule, _ in by_count[:_MAX_RULES]] if reasons else []
    return {**({"skipped": reasons} if reasons else {}), **({"ignored_by": rules} if rules else {})}
