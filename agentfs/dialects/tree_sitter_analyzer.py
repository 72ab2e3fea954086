"""`tree-sitter-analyzer`: list_files, search_content and find_and_grep, with the ladder of token costs.

The contract is in `docs/dialects/tree-sitter-analyzer.md`, statement by statement. No `from __future__ import
annotations`: the hints become schemas.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from agentfs.dialects.analyzer_answers import Asked, Raisable, answer_of, listed
from agentfs.dialects.analyzer_formats import MOST_MATCHES, SAMPLES, UNBOUNDED, Format
from agentfs.dialects.analyzer_messages import (
    FORMATS,
    Language,
    describe,
    language_of_environment,
    told,
    wrong,
)
from agentfs.dialects.analyzer_names import stands_for
from agentfs.dialects.dialect import Dialect
from agentfs.dialects.rendering import as_json, problem_of
from agentfs.errors import AgentFSError, InvalidPatternError, OutsideWorkspaceError, UnknownToolError
from agentfs.limits import HARD_FILE_BYTES
from agentfs.messages import Message, Retry
from agentfs.results import GlobResult, GrepResult, ToolResult
from agentfs.search.filters import parse_filesize, parse_types
from agentfs.tools.offer import RenderContext, ToolOffer
from agentfs.tools.result import first_line
from agentfs.tree.globs import compile_globs
from agentfs.workspace import Workspace

NAME = "tree-sitter-analyzer"

_USUAL = 2000
_MOST = 10_000
_USUAL_MS = 4000
_MOST_MS = 30_000
_SORT: dict[str, Literal["path", "modified", "size"]] = {"path": "path", "mtime": "modified", "size": "size"}
_MODES: dict[Format, dict[str, Any]] = {
    "total_only": {"output_mode": "total"},
    "count_only_matches": {"output_mode": "count", "limit": _MOST},
    "summary_only": {"output_mode": "summary", "limit": _MOST, "samples": SAMPLES},
    "group_by_file": {"limit": MOST_MATCHES},
    "full": {"limit": MOST_MATCHES},
}


def in_language(language: Language | None = None) -> Dialect:
    """Return the dialect.

    Args:
        language: The language of its errors; None for that of the environment, asked at each error.
    """

    def offers(workspace: Workspace) -> Sequence[ToolOffer]:
        return _offers(workspace, language)

    def refused(answer: RenderContext) -> ToolResult:
        """Tell of a tool that is not there as any of those that are would."""
        if not isinstance(answer.outcome, UnknownToolError):
            return answer.result
        return _render(answer, "list_files", language or language_of_environment())

    return Dialect(NAME, offers, limits={"grep_line_chars": 2000, "output_tokens": UNBOUNDED}, render=refused)


@dataclass(frozen=True)
class _Search(Asked):
    """What the two tools that search were asked for alike."""

    query: str
    regex: bool
    fixed_strings: bool
    word: bool
    case: str
    multiline: bool
    max_filesize: str | None
    context_before: int | None
    context_after: int | None
    encoding: str | None
    max_count: int | None
    timeout_ms: int

    def arguments(self, workspace: Workspace, notes: list[str]) -> dict[str, Any]:
        """Return what `grep` is called with, but for where it searches."""
        if not self.query:
            raise wrong("no_query", "query")
        for name in ("context_before", "context_after", "max_count"):
            _check(name, getattr(self, name), 1 if name == "max_count" else 0)
        most = workspace.limits.context_lines
        if max(self.context_before or 0, self.context_after or 0) > most:
            notes.append(f"context was lowered to {most} lines on either side")
        return {
            "pattern": self.query,
            "fixed_strings": self.fixed_strings or not self.regex,
            "word": self.word,
            "ignore_case": self.case == "insensitive",
            "smart_case": self.case == "smart",
            "multiline": self.multiline,
            "dot_all": False,
            "context": 0,
            "before": self.context_before,
            "after": self.context_after,
            "max_count": self.max_count,
            "max_filesize": _file_bytes(self.max_filesize, notes),
            "encoding": self.encoding,
            "timeout": _clamped("timeout_ms", self.timeout_ms, _MOST_MS, notes) / 1000,
            **_MODES[self.shape],
        }


def _offers(workspace: Workspace, language: Language | None) -> Sequence[ToolOffer]:
    """Make the three tools."""

    def list_files(
        roots: list[str],
        pattern: str | None = None,
        glob: bool = False,
        types: list[str] | None = None,
        extensions: list[str] | None = None,
        exclude: list[str] | None = None,
        depth: int | None = None,
        follow_symlinks: bool = False,
        hidden: bool = False,
        no_ignore: bool = False,
        size: list[str] | None = None,
        changed_within: str | None = None,
        changed_before: str | None = None,
        full_path_match: bool = False,
        absolute: bool = True,
        limit: int = _USUAL,
    ) -> ToolResult:
        """List files."""
        del absolute
        notes: list[str] = []
        found = _found(
            workspace, roots, pattern, glob=glob, types=types, extensions=extensions, exclude=exclude,
            depth=depth, follow_symlinks=follow_symlinks, hidden=hidden, no_ignore=no_ignore, size=size,
            changed_within=changed_within, changed_before=changed_before, full_path_match=full_path_match,
            limit=_clamped("limit", limit, _MOST, notes), once=follow_symlinks,
        )  # fmt: skip
        return listed(workspace, found, notes, opens=hidden and no_ignore, raisable=limit < _MOST)

    def search_content(
        query: str,
        roots: list[str] | None = None,
        files: list[str] | None = None,
        regex: bool = True,
        fixed_strings: bool = False,
        word: bool = False,
        case: Literal["smart", "insensitive", "sensitive"] = "smart",
        multiline: bool = False,
        include_globs: list[str] | None = None,
        exclude_globs: list[str] | None = None,
        follow_symlinks: bool = False,
        hidden: bool = False,
        no_ignore: bool = False,
        max_filesize: str | None = None,
        context_before: int | None = None,
        context_after: int | None = None,
        encoding: str | None = None,
        max_count: int | None = None,
        timeout_ms: int = _USUAL_MS,
        total_only: bool = False,
        count_only_matches: bool = False,
        summary_only: bool = False,
        group_by_file: bool = False,
        optimize_paths: bool = False,
    ) -> ToolResult:
        """Search contents."""
        if not roots and not files:
            raise wrong("no_place", "roots")
        if roots and files:
            raise wrong("two_places", "roots")
        notes: list[str] = []
        asked = _Search(
            _format(total_only, count_only_matches, summary_only, group_by_file), optimize_paths,
            query, regex, fixed_strings, word, case, multiline, max_filesize, context_before, context_after,
            encoding, max_count, timeout_ms,
        )  # fmt: skip
        found = _grep(
            workspace,
            {"include_globs": include_globs, "exclude_globs": exclude_globs},
            **asked.arguments(workspace, notes),
            path=roots or ["."],
            files=files or None,
            glob=include_globs,
            exclude=_excluding(exclude_globs),
            once=follow_symlinks or bool(files),
            follow_symlinks=follow_symlinks,
            hidden=hidden,
            include_ignored=no_ignore,
        )
        raisable = Raisable(timeout_ms=timeout_ms < _MOST_MS)
        return answer_of(workspace, asked, found, notes, opens=hidden and no_ignore, raisable=raisable)

    def find_and_grep(
        roots: list[str],
        query: str,
        pattern: str | None = None,
        glob: bool = False,
        types: list[str] | None = None,
        extensions: list[str] | None = None,
        exclude: list[str] | None = None,
        depth: int | None = None,
        follow_symlinks: bool = False,
        hidden: bool = False,
        no_ignore: bool = False,
        size: list[str] | None = None,
        changed_within: str | None = None,
        changed_before: str | None = None,
        full_path_match: bool = False,
        absolute: bool = True,
        limit: int = _USUAL,
        sort: Literal["path", "mtime", "size"] = "path",
        regex: bool = True,
        fixed_strings: bool = False,
        word: bool = False,
        case: Literal["smart", "insensitive", "sensitive"] = "smart",
        multiline: bool = False,
        include_globs: list[str] | None = None,
        exclude_globs: list[str] | None = None,
        max_filesize: str | None = None,
        context_before: int | None = None,
        context_after: int | None = None,
        encoding: str | None = None,
        max_count: int | None = None,
        timeout_ms: int = _USUAL_MS,
        total_only: bool = False,
        count_only_matches: bool = False,
        summary_only: bool = False,
        group_by_file: bool = False,
        optimize_paths: bool = False,
    ) -> ToolResult:
        """Find files and search them."""
        del absolute
        notes: list[str] = []
        asked = _Search(
            _format(total_only, count_only_matches, summary_only, group_by_file), optimize_paths,
            query, regex, fixed_strings, word, case, multiline, max_filesize, context_before, context_after,
            encoding, max_count, timeout_ms,
        )  # fmt: skip
        arguments = asked.arguments(workspace, notes)
        files = _found(
            workspace, roots, pattern, glob=glob, types=_with_contents(types), extensions=extensions,
            exclude=exclude, exclude_globs=exclude_globs, depth=depth,
            follow_symlinks=follow_symlinks, hidden=hidden, no_ignore=no_ignore, size=size,
            changed_within=changed_within, changed_before=changed_before, full_path_match=full_path_match,
            include_globs=include_globs, sort=_SORT[sort], limit=_clamped("file_limit", limit, _MOST, notes),
            once=True,
        )  # fmt: skip
        found = _grep(workspace, {}, **arguments, path=roots, files=files)
        raisable = Raisable(timeout_ms=timeout_ms < _MOST_MS, file_limit=limit < _MOST)
        return answer_of(
            workspace, asked, found, notes, opens=hidden and no_ignore, raisable=raisable, files=files
        )

    def render(tool: str) -> Callable[[RenderContext], ToolResult]:
        return lambda answer: _render(answer, tool, language or language_of_environment())

    return [
        ToolOffer(
            tool,
            **describe(tool.__name__, inspect.signature(tool).parameters),
            parameters={"limit": "file_limit"} if tool is find_and_grep else {},
            effect="read",
            render=render(tool.__name__),
            **stands_for(tool.__name__),
        )
        for tool in (list_files, search_content, find_and_grep)
    ]


def _format(*asked: bool) -> Format:
    """Return the one format that was asked for, of those in order of the ladder."""
    given: list[Format] = [name for name, wanted in zip(FORMATS, asked, strict=True) if wanted]
    if len(given) > 1:
        raise wrong("formats", given[0], given=", ".join(given))
    return given[0] if given else "full"


def _check(name: str, value: int | None, least: int) -> None:
    if value is not None and value < least:
        raise wrong("least", name, name=name, least=str(least), value=str(value))


def _clamped(name: str, value: int, most: int, notes: list[str]) -> int:
    _check(name, value, 1)
    if value > most:
        notes.append(f"{name} was lowered from {value:,} to {most:,}, the most there is")
    return min(value, most)


def _file_bytes(size: str | None, notes: list[str]) -> int | None:
    """Return the size of the largest file to search, in the units of rg."""
    if size is None:
        return None
    given = parse_filesize(size)
    if given > HARD_FILE_BYTES:
        notes.append(f"max_filesize was lowered from {size} to 200M, the most there is")
    return min(given, HARD_FILE_BYTES)


def _excluding(globs: list[str] | None) -> list[str] | None:
    """Return globs of what to leave out; the `!` that rg has before them may stand there."""
    return None if globs is None else [glob.removeprefix("!") for glob in globs]


def _with_contents(types: list[str] | None) -> list[str]:
    """Return the types of what can be searched."""
    given = parse_types(types or ["f"])
    kinds = given - {"d"}
    if not kinds - {"e"} and "d" in given:
        raise wrong("no_files", "types")
    return sorted(kinds if kinds - {"e"} else kinds | {"f"})


def _found(
    workspace: Workspace,
    roots: list[str],
    pattern: str | None,
    *,
    glob: bool,
    depth: int | None,
    no_ignore: bool,
    full_path_match: bool,
    exclude: list[str] | None,
    include_globs: list[str] | None = None,
    exclude_globs: list[str] | None = None,
    **filters: Any,
) -> GlobResult:
    _check("depth", depth, 1)
    globs = {"exclude": exclude, "include_globs": include_globs, "exclude_globs": exclude_globs}
    try:
        return workspace.find(
            roots,
            pattern=None if glob else pattern,
            glob=pattern if glob else None,
            also=include_globs or None,
            exclude=[*(exclude or ()), *(_excluding(exclude_globs) or ())] or None,
            max_depth=depth,
            include_ignored=no_ignore,
            full_path=full_path_match,
            **{name: value for name, value in filters.items() if value not in (None, [])},
        )
    except InvalidPatternError as error:
        error.details["argument"] = _argument(globs, "pattern")
        raise


def _grep(workspace: Workspace, globs: Mapping[str, list[str] | None], **arguments: Any) -> GrepResult:
    try:
        return workspace.grep(**arguments)
    except InvalidPatternError as error:
        # Where files are found too, `pattern` is another parameter.
        suggestion = error.details.get("suggestion")
        literally = Message("To match it literally, ", Retry({"query": suggestion}), ".")
        raise InvalidPatternError(
            error.message,
            hint=literally if suggestion else error.hint,
            details={**error.details, "argument": _argument(globs, "query")},
        ) from None


def _argument(globs: Mapping[str, list[str] | None], otherwise: str) -> str:
    """Return which argument a pattern error is about: one whose globs are none, or another."""
    return next((name for name, given in globs.items() if given and not _are_globs(given)), otherwise)


def _are_globs(given: list[str]) -> bool:
    try:
        compile_globs(given)
    except (InvalidPatternError, OutsideWorkspaceError):
        return False
    return True


def _render(answer: RenderContext, tool: str, language: Language) -> ToolResult:
    problem = problem_of(answer)
    if problem is None:
        return answer.result
    details = answer.outcome.details if isinstance(answer.outcome, AgentFSError) else {}
    said = told(problem, details, tool, language, answer.names)
    error = {"code": said.code, "message": said.message}
    failed = answer._replace(
        result=replace(answer.result, short_result=first_line(said.message), error=error)
    )
    return as_json(failed, {"error": said._asdict()})


DIALECT = in_language()
