"""The replies of `dominds`: the document's fields, and after them what was left out, all as YAML. Pure.

The YAML is such that every parser reads it back exactly. A mapping has one key a line, a list of mappings is
written as `  - key: value`. A string is plain where no parser, of YAML 1.1 or of 1.2, can take it for another
type. A string of several lines is a literal block (`|`) where that gives back each of its characters.
Invisible characters, and those that could be taken for a line end, are escaped in double quotes; such a text
still has one line of YAML for each of its lines.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, cast

from agentfs import Limits, ToolResult, Workspace
from agentfs.dialects.dominds.rg_args import read_arguments
from agentfs.dialects.toolkit import (
    RenderContext,
    cut_lines,
    left_out,
    lines_of,
    most_that_fit,
    problem_of,
    visible,
    without_empty,
    without_marks,
)
from agentfs.results import Entry, GrepResult, ListResult, Match, ReadResult, Skipped

Document = dict[str, Any]

_MAX_RULES = 3
# Parameters of the tools and of grep that ask for lines around a match.
_CONTEXT_PARAMETERS = ("context_before", "context_after", "before", "after", "context")
# Line ends that are named where lines are numbered, because the text does not show them.
_NEWLINES = {"\r\n": "crlf", "\r": "cr", "mixed": "mixed"}
_ONE_LINE_FIELDS = ("path", "name", "target", "pattern", "literal")
# A plain string begins with a letter, so it is no number, date or tag; it has neither `:` nor `#`.
_PLAIN = re.compile(
    r"(?:\.?[A-Za-z]|_[A-Za-z]|[^\W\d_a-zA-Z])"
    r"(?:[\w ./\-+=()*<>@%,;!?$^&|~'\"\\\[\]{}`]*[\w./\-+()*>%!?$\]}'\"])?"
)
_WORDS = re.compile(r"y|yes|n|no|true|false|on|off|null|\.inf|\.nan", re.IGNORECASE)
_UNPRINTABLE = re.compile("[^\t\n\x20-\x7e\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")
_ESCAPES = {"\0": "\\0", "\t": "\\t", "\n": "\\n", "\r": "\\r", "\x1b": "\\e", '"': '\\"', "\\": "\\\\"}
_STEP = "  "


def with_document(
    context: RenderContext, document: Callable[[Any, RenderContext, Limits], Document], limits: Limits
) -> ToolResult:
    """Return the result of a tool with its document as its data; failures are left to `render_yaml`."""
    if not context.result.success:
        return context.result
    return replace(context.result, data=document(context.outcome, context, limits))


def render_yaml(context: RenderContext, _: Workspace) -> ToolResult:
    """Return the result with its document, or that of its failure, as YAML."""
    problem = problem_of(context)
    document = context.result.data if problem is None else {"status": "error", **problem._asdict()}
    return replace(context.result, content=to_yaml(document), data=document)


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
    return _fitted(limits, head, "matches", _paths(found), found.total_files, _details(found))


def search(found: GrepResult, context: RenderContext, limits: Limits) -> Document:
    """Return the document of ripgrep_search, whose `rg_args` say what is shown."""
    arguments = read_arguments(context.arguments.get("rg_args"))
    if arguments.shows == "lines":
        return snippets(found, context, limits, name="results")
    if arguments.shows == "counts":
        by_match = arguments.only_matching and not arguments.inverted
        return counts(found, context, limits, name="results", by_match=by_match)
    head = {"pattern": context.arguments["pattern"]}
    if arguments.shows == "files":
        items, total = _paths(found), found.total_files
    else:
        items = [part for match in found.matches for part in _matched_parts(match)]
        total = found.total_matches if found.truncated else len(items)
    return _fitted(limits, head, "results", items, total, _details(found))


def _paths(found: GrepResult) -> list[Document]:
    return [{"path": path} for path in found.counts]


def counts(
    found: GrepResult, context: RenderContext, limits: Limits, name: str = "counts", *, by_match: bool = True
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


def snippets(found: GrepResult, context: RenderContext, limits: Limits, name: str = "matches") -> Document:
    """Return the document of ripgrep_snippets and ripgrep_fixed, or of ripgrep_search with lines."""
    items = [_snippet(match, limits.grep_line_chars) for match in found.matches]
    query = "literal" if "literal" in context.arguments else "pattern"
    # A match over several lines is one snippet, and counts each of them in `total_lines`.
    total = found.total_lines if found.truncated else len(items)
    more = _details(found)
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

    return document(most_that_fit(len(items), lambda count: to_yaml(document(count)), limits))


def _entry(entry: Entry) -> Document:
    leads_to_file = entry.type == "symlink" and entry.size is not None
    return {
        "name": entry.name,
        "type": "dir" if entry.is_dir else "file" if leads_to_file else entry.type,
        "size": entry.size,
        "modified": timestamp(entry.mtime),
        **without_empty(target=entry.target, protected=entry.protected),
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
            **without_empty(cut=any(match.cut)),
        }
        for start, end in spans
        if end > start
    ]


def _context_lines(context: RenderContext) -> int:
    """Return how many lines on a side of a match were asked for."""
    given = {**context.arguments, **read_arguments(context.arguments.get("rg_args")).options}
    return max(given.get(name) or 0 for name in _CONTEXT_PARAMETERS)


def _details(found: GrepResult) -> Document:
    """Return what is reported of a search beside what it found."""
    complete = {} if found.exact else {"complete": False}
    return {**complete, **without_empty(notes=list(found.nothing[1:])), **_skipped(found.skipped)}


def _skipped(skipped: Skipped) -> Document:
    reasons = left_out(skipped)
    by_count = sorted(skipped.rules.items(), key=lambda item: (-item[1], item[0]))
    rules = [rule for rule, _ in by_count[:_MAX_RULES]] if reasons else []
    return without_empty(skipped=reasons, ignored_by=rules)


def to_yaml(value: Mapping[str, Any]) -> str:
    """Return a mapping as a YAML document."""
    return "".join(f"{line}\n" for line in _mapping(value, ""))


def _mapping(value: Mapping[str, Any], indent: str) -> Iterator[str]:
    for name, item in value.items():
        head = f"{indent}{name}:"
        if name in _ONE_LINE_FIELDS and isinstance(item, str) and "\n" in item:
            yield f'{head} "{_escaped(item)}"'
        else:
            yield from _item(head, item, indent)


def _item(head: str, value: Any, indent: str) -> Iterator[str]:
    """Yield the lines of a value after its key or `-`; `indent` is that of what contains it."""
    inner = indent + _STEP
    if isinstance(value, Mapping) and value:
        lines = _mapping(cast("Mapping[str, Any]", value), inner)
        if head.endswith("-"):  # the first key is on the line of the dash
            yield f"{head} {next(lines).removeprefix(inner)}"
        else:
            yield head
        yield from lines
    elif isinstance(value, (list, tuple)) and value:
        yield head
        for each in cast("Sequence[Any]", value):
            yield from _item(f"{inner}-", each, inner)
    elif isinstance(value, str):
        yield from _string(head, value, inner)
    else:
        yield f"{head} {json.dumps(value)}"


def _string(head: str, text: str, inner: str) -> Iterator[str]:
    printable = _is_printable(text)
    if printable and "\n" in text and text.strip(" \n\t"):
        yield from _block(head, text, inner)
    elif "\n" in text:
        yield _quoted_lines(head, text, inner)
    elif printable and "\t" not in text:
        yield f"{head} {_one_line(text)}"
    else:
        yield f'{head} "{_escaped(text)}"'


def _one_line(text: str) -> str:
    if _PLAIN.fullmatch(text) and not _WORDS.fullmatch(text):
        return text
    if '"' in text or "\\" in text:
        return "'" + text.replace("'", "''") + "'"
    return f'"{text}"'


def _block(head: str, text: str, inner: str) -> Iterator[str]:
    # The indentation must be explicit where the text begins with a blank.
    indentation = str(len(_STEP)) if text[0] in " \t\n" else ""
    chomping = "-" if not text.endswith("\n") else "+" if text.endswith("\n\n") else ""
    yield f"{head} |{indentation}{chomping}"
    for line in text.removesuffix("\n").split("\n"):
        yield f"{inner}{line}" if line else ""


def _quoted_lines(head: str, text: str, inner: str) -> str:
    """Return a text in double quotes, one line of YAML for each of its lines, with escaped line ends."""
    first, *others = map(_escaped, re.findall(r"[^\n]*\n|[^\n]+", text))
    # A blank at the start of a line would be taken for indentation.
    others = [f"\\{line}" if line.startswith(" ") else line for line in others]
    return f'{head} "' + f"\\\n{inner}".join([first, *others]) + '"'


def _is_printable(text: str) -> bool:
    return visible(text) == text and not _UNPRINTABLE.search(text)


def _escaped(text: str) -> str:
    if _is_printable(text):
        plain = text.replace("\\", "\\\\").replace('"', '\\"')
        return plain.replace("\t", "\\t").replace("\n", "\\n")
    return "".join(map(_escaped_character, text))


def _escaped_character(char: str) -> str:
    if char in _ESCAPES or _is_printable(char):
        return _ESCAPES.get(char, char)
    code = ord(char)
    return f"\\x{code:02X}" if code < 256 else f"\\u{code:04X}" if code < 65536 else f"\\U{code:08X}"
