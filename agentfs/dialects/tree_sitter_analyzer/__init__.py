"""The dialect `tree-sitter-analyzer`: three search tools whose output formats differ in their cost of tokens.

`docs/reference/dialects/tree-sitter-analyzer.md` compares it with the contract.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, TypeVar, get_type_hints

from agentfs import AgentFSError, ToolResult, Workspace
from agentfs.dialects import toolkit as kit
from agentfs.dialects.tree_sitter_analyzer.contract import (
    DEFAULT_FILESIZE,
    LADDER,
    MAX_FILESIZE,
    MAX_LIMIT,
    MAX_TIMEOUT_MS,
    REPLY_FORMATS,
    TOOL_OPTIONS,
    ContentQuery,
    FileFilter,
    FindAndGrep,
    Language,
    SearchContent,
    language_of_environment,
    own_error,
    translated,
)
from agentfs.dialects.tree_sitter_analyzer.replies import SAMPLES, UNBOUNDED, list_reply, search_reply
from agentfs.errors import InvalidPatternError
from agentfs.results import GlobResult, GrepResult

_Parameters = TypeVar("_Parameters", FileFilter, SearchContent, FindAndGrep)
_SORT: dict[str, Literal["path", "modified", "size"]] = {"path": "path", "mtime": "modified", "size": "size"}
# The smallest and the largest value of each number.
_BOUNDS: dict[str, tuple[int, int | None]] = {
    "depth": (1, None),
    "limit": (1, MAX_LIMIT),
    "context_before": (0, None),
    "context_after": (0, None),
    "max_count": (1, None),
    "timeout_ms": (1, MAX_TIMEOUT_MS),
}


def in_language(language: Language | None = None) -> kit.Dialect:
    """Return the dialect with its errors in a language.

    Args:
        language: "en", "ja", or None for the language of the environment when an error occurs.

    Returns:
        The dialect.
    """

    def render(context: kit.RenderContext, _: Workspace) -> ToolResult:
        problem = kit.problem_of(context)
        if problem is None:  # the tools make their own replies
            return context.result
        details = context.outcome.details if isinstance(context.outcome, AgentFSError) else {}
        tool = context.tool.own_name if context.tool else "list_files"
        problem = translated(problem, details, tool, language or language_of_environment())
        reply = kit.as_json(context, {"error": problem._asdict()})
        error = {"code": problem.code, "message": problem.message}
        return replace(reply, short_result=kit.first_line(problem.message), error=error)

    return kit.Dialect(
        "tree-sitter-analyzer",
        _tools,
        limits={"grep_line_chars": 2000, "output_tokens": UNBOUNDED, "timeout": MAX_TIMEOUT_MS / 1000},
        render=render,
    )


def _tools(workspace: Workspace) -> Sequence[kit.Tool]:
    return [
        _tool(workspace, _list_files, FileFilter),
        _tool(workspace, _search_content, SearchContent),
        _tool(workspace, _find_and_grep, FindAndGrep),
    ]


def _tool(
    workspace: Workspace, run: Callable[[Workspace, _Parameters], ToolResult], parameters: type[_Parameters]
) -> kit.Tool:
    """Make a tool from a function. Its parameters are the fields of a dataclass."""

    def tool(**arguments: Any) -> ToolResult:
        return run(workspace, parameters(**arguments))

    tool.__name__ = name = run.__name__.removeprefix("_")
    tool.__annotations__ = {**get_type_hints(parameters, include_extras=True), "return": ToolResult}
    fields = inspect.signature(parameters).parameters.values()
    required_first = sorted(fields, key=lambda each: each.default is not each.empty)
    vars(tool)["__signature__"] = inspect.Signature(required_first)
    texts: dict[str, str] = {}
    for base in reversed(parameters.__mro__):
        texts |= kit.read_docstring(base.__doc__).parameters
    items: list[str] = [f"    {parameter}: {text}" for parameter, text in texts.items()]
    tool.__doc__ = "\n".join(["Search.", "", "Args:", *items])
    expose = tuple(each.name for each in required_first)
    text = (inspect.getdoc(run) or "").format(ladder=LADDER)
    return kit.Tool(function=tool, text=text, expose=expose, effect="read", **TOOL_OPTIONS[name])


def _list_files(workspace: Workspace, given: FileFilter) -> ToolResult:
    """List files and directories by name, type, size and time: no contents are read.

    💡 An entry takes ~40 tokens; narrow with pattern, extensions, types or depth before you raise limit.
    🎯 To search contents use search_content; to search the contents of what is found here, find_and_grep.
    ⚠️ At most 2000 entries unless limit says otherwise, never over 10000.
    """
    notes = _check_numbers(given)
    found = _find(workspace, given, unique=given.follow_symlinks)
    return list_reply(workspace, found, notes, given)


def _search_content(workspace: Workspace, given: SearchContent) -> ToolResult:
    """Search the contents of files, with a regular expression unless told otherwise.

    {ladder}
    ⚠️ Give roots or files, not both.
    """
    if not given.roots and not given.files:
        raise own_error("no_place", "roots")
    if given.roots and given.files:
        raise own_error("two_places", "roots")
    options = _grep_options(given)
    notes = _check_numbers(given)
    options |= {
        "path": given.roots or ["."],
        "files": given.files or None,
        "glob": _from_root(workspace, given.roots, given.include_globs),
        "exclude": _excluded(workspace, given) or None,
        "follow_symlinks": given.follow_symlinks,
        "unique": given.follow_symlinks or bool(given.files),
        "hidden": given.hidden,
        "include_ignored": given.no_ignore,
    }
    found = _grep(workspace, options)
    return search_reply(workspace, found, None, notes, given)


def _find_and_grep(workspace: Workspace, given: FindAndGrep) -> ToolResult:
    """Find files by name, type, size and time, then search their contents.

    It is list_files and search_content in one.
    💡 Narrow the files first: what is not found is not searched.
    {ladder}
    """
    options = _grep_options(given)
    notes = _check_numbers(given)
    filtered = replace(given, types=_searchable_types(given.types))
    files = _find(workspace, filtered, sort=_SORT[given.sort], unique=True)
    # A search for names takes one list of globs. If `pattern` is one, the search takes `include_globs`.
    globs = given.include_globs if given.glob and given.pattern else None
    options |= {"path": given.roots, "files": files, "glob": globs}
    return search_reply(workspace, _grep(workspace, options), files, notes, given)


def _check_numbers(given: FileFilter | ContentQuery) -> list[str]:
    """Check the numbers and globs of a call; return a note for each number that is lowered to its maximum."""
    notes: list[str] = []
    for field, (least, most) in _BOUNDS.items():
        value = getattr(given, field, None)
        name = "file_limit" if field == "limit" and isinstance(given, FindAndGrep) else field
        if value is not None and value < least:
            raise own_error("least", name, name=name, least=str(least), value=str(value))
        if value is not None and most is not None and value > most:
            notes.append(f"{name} was lowered from {value:,} to {most:,}, the maximum")
    if isinstance(given, ContentQuery):
        if max(given.context_before or 0, given.context_after or 0) > kit.MAX_CONTEXT:
            notes.append(f"context was lowered to {kit.plural(kit.MAX_CONTEXT, 'line')} on either side")
        if kit.parse_filesize(given.max_filesize or MAX_FILESIZE) > kit.parse_filesize(MAX_FILESIZE):
            notes.append(f"max_filesize was lowered from {given.max_filesize} to {MAX_FILESIZE}, the maximum")
    return notes


def _find(workspace: Workspace, given: FileFilter, **more: Any) -> GlobResult:
    includes, excludes = None, list[str]()
    case: Literal["smart", "sensitive", "insensitive"] = "smart"
    if given.glob and given.pattern:  # smart case, as in fd
        case = "sensitive" if any(map(str.isupper, given.pattern)) else "insensitive"
    if isinstance(given, FindAndGrep):
        includes = _from_root(workspace, given.roots, given.include_globs)
        excludes = _excluded(workspace, given)
    options = kit.GlobOptions(
        given.pattern if given.glob and given.pattern else includes or None,
        given.roots,
        regex=None if given.glob else given.pattern,
        types=given.types or None,
        links_as_files=False,
        extensions=given.extensions or None,
        exclude=[*(given.exclude or ()), *excludes] or None,
        max_depth=given.depth,
        follow_symlinks=given.follow_symlinks,
        hidden=given.hidden,
        include_ignored=given.no_ignore,
        size=given.size or None,
        changed_within=given.changed_within,
        changed_before=given.changed_before,
        full_path=given.full_path_match,
        case=case,
        limit=min(given.limit, MAX_LIMIT),
        **more,
    )
    return kit.glob(workspace, options)


def _grep_options(given: ContentQuery) -> dict[str, Any]:
    if not given.query:
        raise own_error("no_query", "query")
    return {
        "pattern": given.query,
        "fixed_strings": given.fixed_strings or not given.regex,
        "word": given.word,
        **kit.case_options(given.case),
        "multiline": given.multiline,
        "dot_all": False,
        "samples": SAMPLES,
        "context": 0,
        "before": given.context_before,
        "after": given.context_after,
        "encoding": given.encoding,
        "max_count": given.max_count,
        "max_filesize": min(given.max_filesize or DEFAULT_FILESIZE, MAX_FILESIZE, key=kit.parse_filesize),
        "timeout": min(given.timeout_ms, MAX_TIMEOUT_MS) / 1000,
        **REPLY_FORMATS[given.format].options,
    }


def _grep(workspace: Workspace, arguments: Mapping[str, Any]) -> GrepResult:
    try:
        return kit.grep(workspace, kit.GrepOptions(**arguments))
    except InvalidPatternError as error:
        # The advice of `grep` is about `pattern`, which means something else in find_and_grep.
        suggestion = error.details.get("suggestion")
        advice = kit.Advice("To search for what was probably meant, ", kit.Retry({"query": suggestion}), ".")
        raise InvalidPatternError(
            error.message,
            hint=advice if suggestion else error.hint,
            details={**error.details, "parameter": "query"},
        ) from None


def _excluded(workspace: Workspace, given: SearchContent | FindAndGrep) -> list[str]:
    """Return the globs to leave out, without the `!` of ripgrep."""
    globs = [glob.removeprefix("!") for glob in given.exclude_globs or ()]
    return _from_root(workspace, given.roots, globs) or []


def _from_root(workspace: Workspace, roots: list[str] | None, globs: list[str] | None) -> list[str] | None:
    """Return globs of ripgrep for a search of one root; with several, they start at each."""
    return kit.globs_from_root(workspace, roots[0], globs) if roots and len(roots) == 1 else globs


def _searchable_types(types: list[str] | None) -> list[str]:
    """Return the requested types of files that have contents."""
    given = kit.parse_types(types or ["f"])
    searchable = given - {"d"}
    if not searchable - {"e"} and "d" in given:
        raise own_error("no_files", "types")
    return sorted(searchable if searchable - {"e"} else searchable | {"f"})


DIALECT = in_language()
