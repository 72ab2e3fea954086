"""`tree-sitter-analyzer`: list_files, search_content and find_and_grep, with a ladder of formats.

The contract is in `docs/dialects/tree-sitter-analyzer.md`, statement by statement. No `from __future__ import
annotations`: the hints become schemas.
"""

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal

from agentfs.dialects.dialect import Dialect
from agentfs.dialects.rendering import as_json, problem_of
from agentfs.dialects.tree_sitter_analyzer.formats import MAX_MATCHES, SAMPLES, UNBOUNDED, Format
from agentfs.dialects.tree_sitter_analyzer.messages import (
    FORMATS,
    Language,
    language_of_environment,
    own_error,
    spec_options,
    translated,
)
from agentfs.dialects.tree_sitter_analyzer.replies import ReplyOptions, list_reply, search_reply
from agentfs.errors import AgentFSError, InvalidPatternError, OutsideWorkspaceError, UnknownToolError
from agentfs.limits import HARD_FILE_BYTES
from agentfs.messages import Message, Retry
from agentfs.results import GlobResult, GrepResult, ToolResult
from agentfs.search.filters import parse_filesize, parse_types
from agentfs.tools.result import first_line
from agentfs.tools.spec import RenderContext, ToolSpec
from agentfs.tree.globs import compile_globs
from agentfs.workspace import Workspace, view_for_dialect

NAME = "tree-sitter-analyzer"

_DEFAULT_LIMIT = 2000
_MAX_LIMIT = 10_000
_DEFAULT_TIMEOUT_MS = 4000
_MAX_TIMEOUT_MS = 30_000
_SORT: dict[str, Literal["path", "modified", "size"]] = {"path": "path", "mtime": "modified", "size": "size"}
_FORMAT_OPTIONS: dict[Format, dict[str, Any]] = {
    "total_only": {"output_mode": "total"},
    "count_only_matches": {"output_mode": "count", "limit": _MAX_LIMIT},
    "summary_only": {"output_mode": "summary", "limit": _MAX_LIMIT},
    "group_by_file": {"limit": MAX_MATCHES},
    "full": {"limit": MAX_MATCHES},
}


def in_language(language: Language | None = None) -> Dialect:
    """Return the dialect.

    Args:
        language: The language of its errors; None for that of the environment, read at each error.
    """

    def specs(workspace: Workspace) -> Sequence[ToolSpec]:
        return _specs(workspace, language)

    def render(context: RenderContext) -> ToolResult:
        """Render an unknown tool as the tools render their failures."""
        if not isinstance(context.outcome, UnknownToolError):
            return context.result
        return _render_failure(context, "list_files", language)

    return Dialect(NAME, specs, limits={"grep_line_chars": 2000, "output_tokens": UNBOUNDED}, render=render)


def _specs(workspace: Workspace, language: Language | None) -> Sequence[ToolSpec]:
    """Return the three tools."""
    workspace = view_for_dialect(workspace, dot_all=False, summary_samples=SAMPLES)
    unique = view_for_dialect(workspace, unique_files=True)

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
        limit: int = _DEFAULT_LIMIT,
    ) -> ToolResult:
        """List files."""
        del absolute
        notes: list[str] = []
        found = _find(
            unique if follow_symlinks else workspace, roots, pattern, glob=glob, types=types,
            extensions=extensions, exclude=exclude, depth=depth, follow_symlinks=follow_symlinks,
            hidden=hidden, no_ignore=no_ignore, size=size,
            changed_within=changed_within, changed_before=changed_before, full_path_match=full_path_match,
            limit=_clamped("limit", limit, _MAX_LIMIT, notes),
        )  # fmt: skip
        options = ReplyOptions(searches_all=hidden and no_ignore, can_raise_limit=limit < _MAX_LIMIT)
        return list_reply(workspace, found, notes, options)

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
        timeout_ms: int = _DEFAULT_TIMEOUT_MS,
        total_only: bool = False,
        count_only_matches: bool = False,
        summary_only: bool = False,
        group_by_file: bool = False,
        optimize_paths: bool = False,
    ) -> ToolResult:
        """Search contents."""
        if not roots and not files:
            raise own_error("no_place", "roots")
        if roots and files:
            raise own_error("two_places", "roots")
        notes: list[str] = []
        fmt = _format(total_only, count_only_matches, summary_only, group_by_file)
        search = _grep_options(
            workspace, notes, fmt,
            query=query, regex=regex, fixed_strings=fixed_strings, word=word, case=case, multiline=multiline,
            max_filesize=max_filesize, before=context_before, after=context_after, encoding=encoding,
            max_count=max_count, timeout_ms=timeout_ms, path=roots or ["."], files=files or None,
            glob=include_globs, exclude=_excluded(exclude_globs) or None,
            follow_symlinks=follow_symlinks, hidden=hidden,
            include_ignored=no_ignore,
        )  # fmt: skip
        globs = {"include_globs": include_globs, "exclude_globs": exclude_globs}
        found = _grep(unique if follow_symlinks or files else workspace, globs, search)
        options = ReplyOptions(
            fmt,
            optimize_paths,
            searches_all=hidden and no_ignore,
            can_raise_timeout=timeout_ms < _MAX_TIMEOUT_MS,
        )
        return search_reply(workspace, found, None, notes, options)

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
        limit: int = _DEFAULT_LIMIT,
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
        timeout_ms: int = _DEFAULT_TIMEOUT_MS,
        total_only: bool = False,
        count_only_matches: bool = False,
        summary_only: bool = False,
        group_by_file: bool = False,
        optimize_paths: bool = False,
    ) -> ToolResult:
        """Find files and search them."""
        del absolute
        notes: list[str] = []
        fmt = _format(total_only, count_only_matches, summary_only, group_by_file)
        search = _grep_options(
            workspace, notes, fmt,
            query=query, regex=regex, fixed_strings=fixed_strings, word=word, case=case, multiline=multiline,
            max_filesize=max_filesize, before=context_before, after=context_after, encoding=encoding,
            max_count=max_count, timeout_ms=timeout_ms,
        )  # fmt: skip
        files = _find(
            unique, roots, pattern, glob=glob, types=_searchable_types(types), extensions=extensions,
            exclude=exclude, exclude_globs=exclude_globs, depth=depth,
            follow_symlinks=follow_symlinks, hidden=hidden, no_ignore=no_ignore, size=size,
            changed_within=changed_within, changed_before=changed_before, full_path_match=full_path_match,
            include_globs=include_globs, sort=_SORT[sort],
            limit=_clamped("file_limit", limit, _MAX_LIMIT, notes),
        )  # fmt: skip
        # `find` takes one list of globs: where `pattern` is a glob, the search takes the others.
        globs = include_globs if glob and pattern else None
        found = _grep(
            workspace, {"include_globs": globs}, {**search, "path": roots, "files": files, "glob": globs}
        )
        options = ReplyOptions(
            fmt,
            optimize_paths,
            searches_all=hidden and no_ignore,
            can_raise_limit=limit < _MAX_LIMIT,
            can_raise_timeout=timeout_ms < _MAX_TIMEOUT_MS,
        )
        return search_reply(workspace, found, files, notes, options)

    return [
        ToolSpec(
            tool,
            **spec_options(tool.__name__, inspect.signature(tool).parameters),
            effect="read",
            render=partial(_render_failure, tool=tool.__name__, language=language),
        )
        for tool in (list_files, search_content, find_and_grep)
    ]


def _format(*flags: bool) -> Format:
    """Return the one format whose flag is set, of those in the order of `FORMATS`."""
    given: list[Format] = [fmt for fmt, flag in zip(FORMATS, flags, strict=True) if flag]
    if len(given) > 1:
        raise own_error("formats", given[0], given=", ".join(given))
    return given[0] if given else "full"


def _check(name: str, value: int | None, least: int) -> None:
    if value is not None and value < least:
        raise own_error("least", name, name=name, least=str(least), value=str(value))


def _clamped(name: str, value: int, most: int, notes: list[str]) -> int:
    _check(name, value, 1)
    if value > most:
        notes.append(f"{name} was lowered from {value:,} to {most:,}, the most there is")
    return min(value, most)


def _max_file_bytes(size: str | None, notes: list[str]) -> int | None:
    """Return the size of the largest file to search, given in the units of rg."""
    if size is None:
        return None
    given = parse_filesize(size)
    if given > HARD_FILE_BYTES:
        notes.append(f"max_filesize was lowered from {size} to 200M, the most there is")
    return min(given, HARD_FILE_BYTES)


def _excluded(globs: list[str] | None) -> list[str]:
    """Return globs of what to leave out, without the `!` that rg has before them."""
    return [glob.removeprefix("!") for glob in globs or ()]


def _searchable_types(types: list[str] | None) -> list[str]:
    """Return the types of files whose contents can be searched."""
    given = parse_types(types or ["f"])
    searchable = given - {"d"}
    if not searchable - {"e"} and "d" in given:
        raise own_error("no_files", "types")
    return sorted(searchable if searchable - {"e"} else searchable | {"f"})


def _find(
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
    try:
        return workspace.find(
            roots,
            pattern=None if glob else pattern,
            glob=pattern if glob and pattern else include_globs or None,
            exclude=[*(exclude or ()), *_excluded(exclude_globs)] or None,
            max_depth=depth,
            include_ignored=no_ignore,
            full_path=full_path_match,
            **{name: value for name, value in filters.items() if value not in (None, [])},
        )
    except InvalidPatternError as error:
        globs = {"exclude": exclude, "include_globs": include_globs, "exclude_globs": exclude_globs}
        error.details["argument"] = _invalid_globs(globs) or "pattern"
        raise


def _grep_options(
    workspace: Workspace,
    notes: list[str],
    fmt: Format,
    *,
    query: str,
    regex: bool,
    fixed_strings: bool,
    case: str,
    max_filesize: str | None,
    before: int | None,
    after: int | None,
    max_count: int | None,
    timeout_ms: int,
    **others: Any,
) -> dict[str, Any]:
    """Return arguments of `grep` for those of the tools, and note those that were lowered."""
    if not query:
        raise own_error("no_query", "query")
    _check("context_before", before, 0)
    _check("context_after", after, 0)
    _check("max_count", max_count, 1)
    most = workspace.limits.context_lines
    if max(before or 0, after or 0) > most:
        notes.append(f"context was lowered to {most} lines on either side")
    return {
        "pattern": query,
        "fixed_strings": fixed_strings or not regex,
        "ignore_case": case == "insensitive",
        "smart_case": case == "smart",
        "context": 0,
        "before": before,
        "after": after,
        "max_count": max_count,
        "max_filesize": _max_file_bytes(max_filesize, notes),
        "timeout": _clamped("timeout_ms", timeout_ms, _MAX_TIMEOUT_MS, notes) / 1000,
        **others,
        **_FORMAT_OPTIONS[fmt],
    }


def _grep(
    workspace: Workspace, globs: Mapping[str, list[str] | None], arguments: Mapping[str, Any]
) -> GrepResult:
    try:
        return workspace.grep(**arguments)
    except InvalidPatternError as error:
        # find_and_grep has another parameter `pattern`, so the suggestion names `query`.
        suggestion = error.details.get("suggestion")
        advice = Message("To match it literally, ", Retry({"query": suggestion}), ".")
        raise InvalidPatternError(
            error.message,
            hint=advice if suggestion else error.hint,
            details={**error.details, "argument": _invalid_globs(globs) or "query"},
        ) from None


def _invalid_globs(globs: Mapping[str, list[str] | None]) -> str | None:
    """Return the name of the first argument whose globs are invalid."""
    for name, given in globs.items():
        try:
            if given:
                compile_globs(given)
        except (InvalidPatternError, OutsideWorkspaceError):
            return name
    return None


def _render_failure(context: RenderContext, tool: str, language: Language | None) -> ToolResult:
    problem = problem_of(context)
    if problem is None:
        return context.result
    details = context.outcome.details if isinstance(context.outcome, AgentFSError) else {}
    problem = translated(problem, details, tool, language or language_of_environment(), context.names)
    error = {"code": problem.code, "message": problem.message}
    reply = as_json(context, {"error": problem._asdict()})
    return replace(reply, short_result=first_line(problem.message), error=error)


DIALECT = in_language()
