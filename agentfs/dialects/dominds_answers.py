"""The answers of `dominds`: the document's fields, and after them what was left out, all as YAML. Pure."""

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from agentfs.dialects.rendering import left_out, lines_of, problem_of
from agentfs.dialects.rg_args import read_arguments
from agentfs.limits import Limits
from agentfs.results import Entry, GrepResult, ListResult, Match, ReadResult, Skipped, ToolResult
from agentfs.search.excerpts import without_marks
from agentfs.text import most_that_fit
from agentfs.text.yaml_text import to_yaml
from agentfs.tools.offer import RenderContext

_Document = dict[str, Any]

_RULES_SHOWN = 3
# The arguments that ask for lines around a match: of the tools, and of grep.
_AROUND = ("context_before", "context_after", "before", "after", "context")
# How lines end, where their numbers are shown and their ends are not.
_NEWLINES = {"\r\n": "crlf", "\r": "cr", "mixed": "mixed"}


# Whose values stand on one line, whatever they hold.
_yaml = partial(to_yaml, one_line=("path", "name", "target", "pattern", "literal"))


def as_yaml(answer: RenderContext) -> ToolResult:
    """Return the result whose text is its data as YAML; a failure is told in the form of the document.

    Args:
        answer: What a renderer is given.
    """
    problem = problem_of(answer)
    document = answer.result.data if problem is None else {"status": "error", **problem._asdict()}
    return replace(answer.result, content=_yaml(document), data=document)


class Documents:
    """Makes the document of each answer; failures are left to `as_yaml`.

    Args:
        limits: What bounds a document.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits

    def list_dir(self, answer: RenderContext) -> ToolResult:
        """Return the result whose data is the document of a directory."""
        found = answer.outcome
        if not isinstance(found, ListResult):
            return answer.result
        head = {"path": _directory(found, str(answer.arguments.get("path") or "."))}
        entries = [_entry(each) for each in found.entries]
        return self._fitted(answer, head, "entries", entries, found.total, _left_out(found.skipped))

    def read_file(self, answer: RenderContext) -> ToolResult:
        """Return the result whose data is the document of a file."""
        found = answer.outcome
        if not isinstance(found, ReadResult):
            return answer.result
        document: _Document = {
            "status": "ok",
            "path": found.path,
            "total_lines": found.total_lines,
            "size_bytes": found.total_bytes,
            "content": answer.result.content,
        }
        if found.kind == "text":
            numbered = answer.arguments.get("show_linenos", True)
            document |= self._lines(found, numbered=numbered)
        else:
            document["kind"] = found.kind
        asked = re.search("~ *([0-9]+)", answer.arguments.get("range") or "")
        if found.end_line < min(int(asked[1]) if asked else found.total_lines, found.total_lines):
            document["truncated"] = True
            document["shown"] = f"{found.start_line}~{found.end_line}"
            document["next"] = answer.result.next
        return replace(answer.result, data=document)

    def _lines(self, found: ReadResult, *, numbered: bool) -> _Document:
        """Return the lines of a file, and what cannot be seen from them."""
        most = self._limits.line_chars
        bodies = lines_of(found)
        cut = [number for number, body in enumerate(bodies, found.start_line) if len(body) > most]
        lines: _Document = {}
        if numbered:
            shown = [f"{number:4}| {body[:most]}" for number, body in enumerate(bodies, found.start_line)]
            ended = found.content.endswith("\r" if found.newline == "\r" else "\n")
            lines["content"] = "\n".join([*shown, ""] if ended else shown)
            if found.newline in _NEWLINES:
                lines["newline"] = _NEWLINES[found.newline]
        else:
            end = "\r" if found.newline == "\r" else "\n"
            too_long = f"([^{end}]{{{most}}})[^{end}]*?(\r?{end}|\\Z)"
            lines["content"] = re.sub(too_long, r"\1\2", found.content) if cut else found.content
        if cut:
            lines |= {"cut_lines": cut, "cut_after": most}
        if found.encoding != "utf-8":
            lines["encoding"] = found.encoding
        return lines

    def ripgrep_files(self, answer: RenderContext) -> ToolResult:
        """Return the result whose data is the document of the files with a match."""
        found = answer.outcome
        if not isinstance(found, GrepResult):
            return answer.result
        head = {"pattern": answer.arguments["pattern"], "files_matched": found.total_files}
        files = [{"path": path} for path in found.counts]
        return self._fitted(answer, head, "matches", files, found.total_files, _beside(found, answer))

    def ripgrep_snippets(self, answer: RenderContext) -> ToolResult:
        """Return the result whose data is the document of snippets under `matches`."""
        return self._snippets(answer, "pattern", "matches")

    def ripgrep_count(self, answer: RenderContext) -> ToolResult:
        """Return the result whose data is the document of counts."""
        found = answer.outcome
        if not isinstance(found, GrepResult):
            return answer.result
        head = {"pattern": answer.arguments["pattern"]}
        counts = [{"path": path, "count": count.matches} for path, count in found.counts.items()]
        more = {"total_count": found.total_matches, **_beside(found, answer)}
        return self._fitted(answer, head, "counts", counts, found.total_files, more)

    def ripgrep_fixed(self, answer: RenderContext) -> ToolResult:
        """Return the result whose data is the document of a fixed string."""
        return self._snippets(answer, "literal", "matches")

    def ripgrep_search(self, answer: RenderContext) -> ToolResult:
        """Return the result whose data is the document of what `rg_args` asks for, under `results`."""
        found = answer.outcome
        if not isinstance(found, GrepResult):
            return answer.result
        asked = read_arguments(answer.arguments.get("rg_args"))
        if asked.shows == "lines":
            return self._snippets(answer, "pattern", "results")
        head, more = {"pattern": answer.arguments["pattern"]}, _beside(found, answer)
        if asked.shows == "matches":
            parts = [part for match in found.matches for part in _parts(match)]
            total = found.total_matches if found.truncated else len(parts)
            return self._fitted(answer, head, "results", parts, total, more)
        if asked.shows == "files":
            files = [{"path": path} for path in found.counts]
            return self._fitted(answer, head, "results", files, found.total_files, more)
        by_match = asked.only and not asked.inverted
        counts = [
            {"path": path, "count": count.matches if by_match else count.lines}
            for path, count in found.counts.items()
        ]
        more = {"total_count": found.total_matches if by_match else found.total_lines, **more}
        return self._fitted(answer, head, "results", counts, found.total_files, more)

    def _snippets(self, answer: RenderContext, asked: str, name: str) -> ToolResult:
        found = answer.outcome
        if not isinstance(found, GrepResult):
            return answer.result
        snippets = [_snippet(match, self._limits.grep_line_chars) for match in found.matches]
        head = {asked: answer.arguments[asked]}
        # A match over several lines is one snippet, and counts each of them in `total_lines`.
        total = found.total_lines if found.truncated else len(snippets)
        more = _beside(found, answer)
        if snippets and _lines_asked(answer) > self._limits.context_lines:
            more["context_at_most"] = self._limits.context_lines
        return self._fitted(answer, head, name, snippets, total, more)

    def _fitted(
        self,
        answer: RenderContext,
        head: _Document,
        name: str,
        items: Sequence[Any],
        total: int,
        more: _Document,
    ) -> ToolResult:
        """Return the result with as many items as the budget holds, and what there is besides."""

        def document(count: int) -> _Document:
            left = {"truncated": True, "total": total} if count < total else {}
            return {"status": "ok", **head, name: list(items[:count]), **left, **more}

        count = most_that_fit(len(items), lambda some: _yaml(document(some)), self._limits)
        return replace(answer.result, data=document(count))


def _directory(found: ListResult, asked: str) -> str:
    """Return the path of a directory as the paths of what is in it have it."""
    if found.entries:
        return found.entries[0].path.rpartition("/")[0] or "."
    return asked


def _entry(entry: Entry) -> _Document:
    leads_to_file = entry.type == "symlink" and entry.size is not None
    kind = "dir" if entry.is_dir else "file" if leads_to_file else entry.type
    shown: _Document = {
        "name": entry.name,
        "type": kind,
        "size": entry.size,
        "modified": _moment(entry.mtime),
    }
    if entry.target is not None:
        shown["target"] = entry.target
    if entry.protected:
        shown["protected"] = True
    return shown


def _moment(seconds: float | None) -> str | None:
    if seconds is None:
        return None
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    except (OverflowError, OSError, ValueError):  # a year that no calendar has
        return None


def _snippet(match: Match, line_chars: int) -> _Document:
    text, _ = without_marks(match)
    around = [*match.before, *match.after]
    lines = (
        [line[:line_chars] for line in match.before] + [text] + [line[:line_chars] for line in match.after]
    )
    shown: _Document = {"path": match.path, "line": match.line, "content": "\n".join(lines)}
    if match.before:
        shown["start_line"] = match.line - len(match.before)
    if any(match.cut) or any(len(line) > line_chars for line in around):
        shown["cut"] = True
    return shown


def _parts(match: Match) -> list[_Document]:
    """Return the parts of a line that match, each by itself; what is empty is left out."""
    text, spans = without_marks(match)
    cut = {"cut": True} if any(match.cut) else {}
    return [
        {
            "path": match.path,
            "line": match.line + text.count("\n", 0, start),
            "content": text[start:end],
            **cut,
        }
        for start, end in spans
        if end > start
    ]


def _lines_asked(answer: RenderContext) -> int:
    """Return how many lines on a side of a match were asked for."""
    asked = {**answer.arguments, **read_arguments(answer.arguments.get("rg_args")).others}
    return max(asked.get(name) or 0 for name in _AROUND)


def _beside(found: GrepResult, answer: RenderContext) -> _Document:
    """Return what a search has to say besides what it found."""
    notes: list[str] = []
    if not found.total_lines:
        _, *notes = [line for line in answer.result.content.split("\n") if not line.startswith("[")]
    complete = {} if found.exact else {"complete": False}
    return {**complete, **({"notes": notes} if notes else {}), **_left_out(found.skipped)}


def _left_out(skipped: Skipped) -> _Document:
    told = left_out(skipped)
    if not told:
        return {}
    by_number = sorted(skipped.rules.items(), key=lambda item: (-item[1], item[0]))
    rules = [rule for rule, _ in by_number[:_RULES_SHOWN]]
    return {"skipped": told, "ignored_by": rules} if rules else {"skipped": told}
