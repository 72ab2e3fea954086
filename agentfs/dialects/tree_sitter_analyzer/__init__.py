"""The dialect `tree-sitter-analyzer`: three search tools whose output formats differ in their cost of tokens.

`docs/reference/dialects/tree-sitter-analyzer.md` compares it with the contract.
"""

import inspect
import posixpath
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Any, Literal, TypeVar, get_type_hints

from agentfs import AgentFSError, ToolResult, Workspace
from agentfs.dialects import toolkit as kit
from agentfs.dialects.tree_sitter_analyzer.contract import (
    DEFAULT_FILESIZE,
    FIND_NAMES,
    GREP_NAMES,
    LADDER,
    MAX_FILESIZE,
    MAX_LIMIT,
    MAX_MATCHES,
    MAX_TIMEOUT_MS,
    REPLY_FORMATS,
    ContentQuery,
    FileFilter,
    FindAndGrep,
    Language,
    OutputFormat,
    SearchContent,
    language_of_environment,
    own_error,
    translated,
)
from agentfs.errors import InvalidPatternError
from agentfs.results import Entry, GlobResult, GrepResult, Match, Skipped

_Parameters = TypeVar("_Parameters", FileFilter, SearchContent, FindAndGrep)
_Item = dict[str, Any]
_Document = _Item | list[_Item] | int

_UNBOUNDED = 10**9  # more tokens than any reply has
_SAMPLES = 10  # if only one file has matches
_MAX_SAMPLES = 30
_SAMPLE_CHARS = 160
_TOKENS_PER_MATCH = 62  # of an average match in `full`, without its two paths
_WARNING_TOKENS = 10_000  # larger replies get a warning
_COUNT_TOKENS = 10  # of a bare count and its note together
_PATHS = ("file", "abs_path")  # fields of a match
_OTHER = ("rules", "reached")  # fields of Skipped that cannot be added
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
        limits={"grep_line_chars": 2000, "output_tokens": _UNBOUNDED, "timeout": MAX_TIMEOUT_MS / 1000},
        render=render,
    )


def _tools(workspace: Workspace) -> Sequence[kit.Tool]:
    find = {"renames": FIND_NAMES.parameters, "retry": _retry_in(FIND_NAMES)}
    grep = {"renames": GREP_NAMES.parameters, "retry": _retry_in(GREP_NAMES)}
    both = {"renames": {**GREP_NAMES.parameters, "pattern": "pattern"}, "retry": _retry_in(FIND_NAMES)}
    listing = partial(_follow, method="ls", parameter="roots", depth=1)
    reading = partial(_follow, method="read", parameter="files", query="^")
    return [
        _tool(workspace, _list_files, FileFilter, methods={"ls": {}, "glob": {}}, follow=listing, **find),
        _tool(workspace, _search_content, SearchContent, methods={"grep": {}}, follow=reading, **grep),
        _tool(workspace, _find_and_grep, FindAndGrep, methods={}, **both),
    ]


def _retry_in(names: kit.Names) -> Callable[[kit.Retry, Mapping[str, Any]], kit.Retry | None]:
    return lambda retry, _: names.retry(retry)


def _follow(call: kit.NextCall, *, method: str, parameter: str, **others: Any) -> Mapping[str, Any] | None:
    """Return the arguments of a tool for a call of a method with only a path."""
    arguments = call["arguments"]
    if call["name"] != method or arguments.keys() != {"path"}:
        return None
    return {parameter: [arguments["path"]], **others}


def _tool(
    workspace: Workspace,
    run: Callable[[Workspace, _Parameters], ToolResult],
    parameters: type[_Parameters],
    **options: Any,
) -> kit.Tool:
    """Make a tool from a function. Its parameters are the fields of a dataclass."""

    def tool(**arguments: Any) -> ToolResult:
        return run(workspace, parameters(**arguments))

    tool.__name__ = run.__name__.removeprefix("_")
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
    return kit.Tool(function=tool, text=text, expose=expose, effect="read", **options)


def _list_files(workspace: Workspace, given: FileFilter) -> ToolResult:
    """List files and directories by name, type, size and time: no contents are read.

    💡 An entry takes ~40 tokens; narrow with pattern, extensions, types or depth before you raise limit.
    🎯 To search contents use search_content; to search the contents of what is found here, find_and_grep.
    ⚠️ At most 2000 entries unless limit says otherwise, never over 10000.
    """
    notes = _check_numbers(given)
    found = _find(workspace, given, unique=given.follow_symlinks)
    return _list_reply(workspace, found, notes, given)


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
    return _search_reply(workspace, found, None, notes, given)


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
    return _search_reply(workspace, _grep(workspace, options), files, notes, given)


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
        "samples": _SAMPLES,
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


def _list_reply(workspace: Workspace, found: GlobResult, notes: list[str], given: FileFilter) -> ToolResult:
    """Return the reply of list_files. Its own notes follow `notes`."""
    absolute = kit.absolute_in(workspace)
    entries = [_entry(entry, absolute(entry.path)) for entry in found.files]
    count = kit.most_that_fit(len(entries), lambda count: kit.to_json(entries[:count]), workspace.limits)
    content = kit.to_json(entries[:count])
    total = _count(found.total, "entry", "entries", exact=found.exact)
    notes = [*notes, *kit.glob_notes(found), *([] if found.total else [_nothing_found(found)])]
    if count < found.total:
        notes.append(
            f"these are the first {count:,} of {total}: narrow with pattern, extensions or "
            f"types{_or_raise('limit', given)}"
        )
    notes += _time_note(found.skipped, "depth, or fewer roots")
    notes += _skip_note(found.skipped, given)
    notes += _size_warning(content, "narrow with pattern, extensions, types or depth, or lower limit")
    facts = _facts(found.skipped, found.elapsed_ms, notes, exact=found.exact, cut=count < found.total)
    data = {"files": entries[:count], "total": found.total, **facts}
    return ToolResult(True, content, total, data=data, notes=tuple(notes))


def _search_reply(
    workspace: Workspace,
    found: GrepResult,
    files: GlobResult | None,
    notes: list[str],
    given: SearchContent | FindAndGrep,
) -> ToolResult:
    """Return the reply of search_content, or of find_and_grep if the searched `files` are given."""
    absolute, fmt = kit.absolute_in(workspace), given.format
    skipped = found.skipped if files is None else _combined(files.skipped, found.skipped)
    complete = found.exact and (files is None or (files.exact and not files.truncated))
    elapsed = found.elapsed_ms + (files.elapsed_ms if files is not None else 0)
    notes = [*notes, *_search_notes(found, files, skipped, given)]
    not_all = (
        f"not all of the {_count(found.total_lines, exact=complete)} matching lines are shown: "
        "narrow with roots, include_globs or max_count, or use summary_only=true"
    )
    items = _items(found, fmt, absolute)

    def body(count: int) -> _Document:
        plain = _body(found, fmt, items[:count])
        if not given.optimize_paths or not count:
            return plain
        short = _body(found, fmt, items[:count], _common_directories(items[:count]))
        return min(plain, short, key=lambda each: len(kit.to_json(each)))

    def document(count: int, *warning: str) -> tuple[_Document, list[str]]:
        # In the other formats `others` counts what is not shown.
        cut = found.truncated or (count < len(items) and fmt in ("full", "group_by_file"))
        said = [*notes, *([not_all] if cut else []), *warning]
        value = body(count)
        if files is not None and not isinstance(value, int):
            meta = {
                "searched_file_count": found.searched_files,
                "truncated": cut or not complete,
                "fd_elapsed_ms": files.elapsed_ms,
                "rg_elapsed_ms": found.elapsed_ms,
            }
            value = {**(value if isinstance(value, dict) else {"matches": value}), "meta": meta}
        return ({**value, "notes": said} if isinstance(value, dict) and said else value), said

    budget = REPLY_FORMATS[fmt].budget or workspace.limits.output_tokens
    limits = replace(workspace.limits, output_tokens=min(budget, workspace.limits.output_tokens))
    count = kit.most_that_fit(len(items), lambda count: kit.to_json(document(count)[0]), limits)
    advice = "summary_only=true takes ~500-2000, count_only_matches=true ~50-200"
    value, said = document(count, *_size_warning(kit.to_json(document(count)[0]), advice))
    content = kit.to_json(value)
    if fmt == "full":
        saved = kit.estimate_tokens(kit.to_json(items[:count])) - kit.estimate_tokens(
            kit.to_json(body(count))
        )
    else:
        saved = max(_full_tokens(found, absolute) - kit.estimate_tokens(content), 0)
    data = value if isinstance(value, dict) else {"matches": value}
    beside = () if isinstance(value, dict) else tuple(said)
    if fmt == "total_only":
        data, beside = {"total": value}, _notes_on_count(found.total_matches, skipped, complete=complete)
    matches = _count(found.total_matches, "match", "matches", exact=complete)
    return ToolResult(
        True,
        content,
        f"{matches} in {_count(found.total_files, 'file', 'files')}",
        data={
            **data,
            **_facts(skipped, elapsed, said, exact=complete, cut=not_all in said),
            "searched_files": found.searched_files,
            "format": f"{fmt}+optimize_paths" if given.optimize_paths else fmt,
            "tokens_saved": saved,
        },
        notes=beside,
    )


def _facts(skipped: Skipped, elapsed: float, notes: list[str], *, exact: bool, cut: bool) -> dict[str, Any]:
    """Return the fields of `data` that every reply has."""
    return {
        "exact": exact,
        "truncated": cut or not exact,
        "elapsed_ms": elapsed,
        "skipped": asdict(skipped),
        "notes": notes,
    }


def _search_notes(
    found: GrepResult, files: GlobResult | None, skipped: Skipped, given: SearchContent | FindAndGrep
) -> list[str]:
    """Return notes on why nothing was found and what was not searched."""
    notes = [*kit.glob_notes(found), *([] if files is None else kit.glob_notes(files))]
    if files is not None and not files.total:
        notes.append(_nothing_found(files))
    elif not found.total_lines:
        notes += filter(None, (kit.say(each, GREP_NAMES) for each in found.nothing))
    if isinstance(given, FindAndGrep) and files is not None and files.truncated:
        total = _count(files.total, "file", "files", exact=files.exact)
        notes.append(
            f"the first {len(files.files):,} of {total} were searched: narrow with pattern or "
            f"extensions{_or_raise('file_limit', given)}"
        )
    longer = f"timeout_ms (up to {MAX_TIMEOUT_MS}), or " if given.timeout_ms < MAX_TIMEOUT_MS else ""
    return [*notes, *_time_note(skipped, f"{longer}fewer roots"), *_skip_note(skipped, given)]


def _entry(entry: Entry, path: str) -> dict[str, Any]:
    times = {"size_bytes": entry.size, "mtime": None if entry.mtime is None else int(entry.mtime)}
    known = {name: value for name, value in times.items() if value is not None}
    more = kit.without_empty(ext=entry.ext, protected=entry.protected)
    return {"path": path, "is_dir": entry.is_dir, **known, **more}


def _nothing_found(found: GlobResult) -> str:
    return kit.say(kit.Joined("; ", *found.nothing), FIND_NAMES)


def _or_raise(name: str, given: FileFilter) -> str:
    return f", or raise {name} (up to {MAX_LIMIT:,})" if given.limit < MAX_LIMIT else ""


def _combined(first: Skipped, second: Skipped) -> Skipped:
    both = {name: value + getattr(second, name) for name, value in vars(first).items() if name not in _OTHER}
    return Skipped(**both, rules=first.rules, reached=first.reached or second.reached)


def _time_note(skipped: Skipped, advice: str) -> list[str]:
    if skipped.reached is None:
        return []
    ended = "time" if skipped.reached == "timeout" else "names for one walk"
    return [f"stopped early, out of {ended}, so there may be more: use {advice}"]


def _skip_note(skipped: Skipped, given: FileFilter | SearchContent) -> list[str]:
    note = kit.skip_report(skipped, can_open=False)
    if not (given.hidden and given.no_ignore) and (skipped.hidden or skipped.ignored):
        note += " (hidden=true and no_ignore=true search hidden and ignored names)"
    return [note] if note else []


def _notes_on_count(total: int, skipped: Skipped, *, complete: bool) -> tuple[str, ...]:
    """Return the note beside a bare count: "partial", or how many names were left out."""
    if not complete:
        return ("partial",)
    count = skipped.total - skipped.vcs
    note = f"{count} left out"
    short = note if kit.estimate_tokens(f"{total}\n[{note}]") <= _COUNT_TOKENS else "some left out"
    return (short,) if count else ()


def _size_warning(content: str, advice: str) -> list[str]:
    tokens = kit.estimate_tokens(content)
    return [f"⚠️ about {tokens:,} tokens: {advice}"] if tokens > _WARNING_TOKENS else []


def _count(number: int, one: str = "", many: str = "", *, exact: bool = True) -> str:
    noun = one if number == 1 else many
    return f"{'' if exact else 'at least '}{number:,}{f' {noun}' if noun else ''}"


def _items(found: GrepResult, fmt: OutputFormat, absolute: Callable[[str], str]) -> list[_Item]:
    """Return the parts of a reply, matches or files with counts; as many are shown as fit."""
    if fmt in ("full", "group_by_file"):
        return [_match(match, absolute, grouped=fmt == "group_by_file") for match in found.matches]
    counts = {} if fmt == "total_only" else found.counts
    by_count = sorted(counts.items(), key=lambda each: (-each[1].matches, each[0]))
    items: list[_Item] = [{"file": path, "matches": count.matches} for path, count in by_count]
    return items if fmt == "count_only_matches" else _with_samples(items, found)


def _match(match: Match, absolute: Callable[[str], str], *, grouped: bool) -> _Item:
    line, spans = kit.without_marks(match)
    found = [{"start": start, "end": end, "match": line[start:end]} for start, end in spans]
    return {
        "file": match.path,
        "abs_path": absolute(match.path),
        "line_number": match.line,
        "line": line,
        **({"spans": spans} if grouped else {"submatches": found}),
        **_context(match),
        **({"cut": dict(zip(("before", "after"), match.cut, strict=True))} if any(match.cut) else {}),
    }


def _context(match: Match) -> _Item:
    return kit.without_empty(before=list(match.before), after=list(match.after))


def _with_samples(files: list[_Item], found: GrepResult) -> list[_Item]:
    by_file: dict[str, list[Match]] = {}
    for match in found.matches:
        by_file.setdefault(match.path, []).append(match)
    samples = max(1, min(_SAMPLES, _MAX_SAMPLES // max(len(files), 1)))
    return [{**each, "samples": [*map(_sample, by_file[each["file"]][:samples])]} for each in files]


def _sample(match: Match) -> _Item:
    line = kit.without_marks(match)[0].strip()
    if len(line) > _SAMPLE_CHARS:
        line = f"{line[:_SAMPLE_CHARS]}…"
    return {"line_number": match.line, "line": line, **_context(match)}


def _body(found: GrepResult, fmt: OutputFormat, items: list[_Item], base: str | None = None) -> _Document:
    """Return some of the items in a format. If `base` is given, it is omitted from paths and said once."""
    if fmt == "total_only":
        return found.total_matches
    if base is not None:
        items = [{**each, "file": each["file"].removeprefix(base)} for each in items]
    if fmt == "full":  # `abs_path` of the first match shows what to put before each `file`
        return items if base is None else [*items[:1], *(_without(each, "abs_path") for each in items[1:])]
    head: _Item = {} if base is None else {"base": base}
    files, matches = len(items), sum(each["matches"] for each in items if "matches" in each)
    if fmt == "count_only_matches":
        shown: _Item = {"file_counts": {each["file"]: each["matches"] for each in items}}
    elif fmt == "summary_only":
        shown = {"files": items}
    else:
        groups = [list(group) for _, group in groupby(items, key=itemgetter("file"))]
        files, matches = len(groups), sum(len(each["spans"]) for each in items)
        if base is not None:
            path = items[0]["abs_path"]
            head["base"] = path[: len(path) - len(items[0]["file"])]
        shown = {"files": [_group(group, ("file",) if base is not None else _PATHS) for group in groups]}
    head |= {"total_matches": found.total_matches, "total_files": found.total_files}
    others = {"files": found.total_files - files, "matches": found.total_matches - matches}
    return {**head, **shown, **({"others": others} if others["matches"] else {})}


def _group(matches: list[_Item], paths: Sequence[str]) -> _Item:
    return {
        **{name: matches[0][name] for name in paths},
        "matches": [_without(each, *_PATHS) for each in matches],
    }


def _without(item: _Item, *names: str) -> _Item:
    return {name: value for name, value in item.items() if name not in names}


def _common_directories(items: list[_Item]) -> str:
    """Return the directories that the paths of all items begin with, ending in `/`, or ""."""
    common = posixpath.commonpath([posixpath.dirname(each["file"]) for each in items])
    return f"{common}/" if common else ""


def _full_tokens(found: GrepResult, absolute: Callable[[str], str]) -> int:
    """Estimate how many tokens the `full` format would take."""
    paths = [kit.estimate_tokens(path + absolute(path)) for path in found.counts]
    paths = paths or [2 * kit.estimate_tokens(absolute(""))]
    return round(min(found.total_lines, MAX_MATCHES) * (_TOKENS_PER_MATCH + sum(paths) / len(paths)))


DIALECT = in_language()
