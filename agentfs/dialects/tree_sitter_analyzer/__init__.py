"""The dialect `tree-sitter-analyzer`: three search tools whose output formats differ in their cost of tokens.

`docs/reference/dialects/tree-sitter-analyzer.md` compares it with the contract.
"""

import inspect
import posixpath
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import Any, Literal, get_type_hints

from agentfs import AgentFSError, ToolResult, Workspace
from agentfs.dialects import toolkit as kit
from agentfs.dialects.tree_sitter_analyzer import contract
from agentfs.errors import InvalidPatternError
from agentfs.results import Entry, GlobResult, GrepResult, Match, Skipped

_MAX_TIMEOUT_MS = 30_000
_DEFAULT_FILESIZE = "10M"
_MAX_FILESIZE = "200M"
_Search = contract.SearchContent | contract.FindAndGrep
_Item = dict[str, Any]
_Document = _Item | list[_Item] | int

_UNBOUNDED = 10**9  # more tokens than any reply has
_SAMPLES = 10  # if only one file has matches
_MAX_SAMPLES = 30
_SAMPLE_CHARS = 160
_TOKENS_PER_MATCH = 62  # of an average match in `full`, without its two paths
_WARNING_TOKENS = 10_000  # larger replies get a warning
_PATHS = ("file", "abs_path")  # fields of a match
_OTHER = ("rules", "reached")  # fields of Skipped that cannot be added


@dataclass(frozen=True)
class _AnalyzerNames(kit.Names):
    """Translates parameters of a method into those of a tool."""

    parameters: Mapping[str, str]

    def parameter(self, name: str) -> str | None:
        """Return the tool's name for a parameter."""
        return self.parameters.get(name, name)

    def retry(self, retry: kit.Retry, _: Mapping[str, Any] | None = None) -> kit.Retry | None:
        """Return changes of a method's arguments as changes of the tool's; this is a `Tool.retry` too."""
        finds_names = self.parameter("pattern") == "pattern"
        if finds_names and set(retry.arguments) == {"pattern"} and not retry.without:
            return kit.Retry({"pattern": retry.arguments["pattern"], "glob": True})
        if retry.without not in ((), ("fixed_strings",)):
            return None
        arguments = {self.parameters.get(name, name): value for name, value in retry.arguments.items()}
        if (opened := arguments.pop("include_ignored", None)) is not None:
            arguments |= {"hidden": opened, "no_ignore": opened}
        if arguments.pop("ignore_case", False):
            arguments["case"] = "insensitive"
        return kit.Retry({**arguments, "regex": True, "fixed_strings": False} if retry.without else arguments)


_FIND_NAMES = _AnalyzerNames({"path": "roots", "max_depth": "depth", "full_path": "full_path_match"})
_GREP_NAMES = _AnalyzerNames(
    {
        **_FIND_NAMES.parameters,
        "pattern": "query",
        "glob": "include_globs",
        "before": "context_before",
        "after": "context_after",
        "timeout": "timeout_ms",
    }
)
_BOTH_NAMES = _AnalyzerNames({**_GREP_NAMES.parameters, "pattern": "pattern"})


def in_language(language: contract.Language | None = None) -> kit.Dialect:
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
        problem = contract.translated(problem, details, tool, language or contract.language_of_environment())
        reply = kit.as_json(context, {"error": problem._asdict()})
        error = {"code": problem.code, "message": problem.message}
        return replace(reply, short_result=kit.first_line(problem.message), error=error)

    return kit.Dialect(
        "tree-sitter-analyzer",
        _tools,
        limits={"grep_line_chars": 2000, "output_tokens": _UNBOUNDED, "timeout": _MAX_TIMEOUT_MS / 1000},
        render=render,
    )


def _tools(workspace: Workspace) -> Sequence[kit.Tool]:
    find: dict[str, Any] = {
        "methods": {"ls": {}, "glob": {}},
        "follow": _following("ls", "roots", {"depth": 1}),
    }
    grep: dict[str, Any] = {"methods": {"grep": {}}, "follow": _following("read", "files", {"query": "^"})}
    return [
        _tool(workspace, _list_files, contract.FileFilter, _FIND_NAMES, **find),
        _tool(workspace, _search_content, contract.SearchContent, _GREP_NAMES, **grep),
        _tool(workspace, _find_and_grep, contract.FindAndGrep, _BOTH_NAMES, methods={}),
    ]


def _following(method: str, parameter: str, others: Mapping[str, Any]) -> Callable[..., Any]:
    """Return the `follow` of a tool for a call of a method with only a path."""

    def follow(call: kit.NextCall) -> Mapping[str, Any] | None:
        arguments = call["arguments"]
        follows = call["name"] == method and arguments.keys() == {"path"}
        return {parameter: [arguments["path"]], **others} if follows else None

    return follow


def _tool(
    workspace: Workspace,
    run: Callable[[Workspace, Any], ToolResult],
    parameters: type[Any],
    names: _AnalyzerNames,
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
    text = (inspect.getdoc(run) or "").format(ladder=contract.LADDER)
    options |= {"renames": names.parameters, "retry": names.retry}
    return kit.Tool(function=tool, text=text, expose=expose, effect="read", **options)


def _list_files(workspace: Workspace, given: contract.FileFilter) -> ToolResult:
    """List files and directories by name, type, size and time: no contents are read.

    💡 An entry takes ~40 tokens; narrow with pattern, extensions, types or depth before you raise limit.
    🎯 To search contents use search_content; to search the contents of what is found here, find_and_grep.
    ⚠️ At most 2000 entries unless limit says otherwise, never over 10000.
    """
    found = _find(workspace, given, unique=given.follow_symlinks)
    absolute = kit.absolute_in(workspace)
    entries = [_entry(entry, absolute(entry.path)) for entry in found.files]
    count = kit.most_that_fit(len(entries), lambda count: kit.to_json(entries[:count]), workspace.limits)
    content = kit.to_json(entries[:count])
    total = _count(found.total, "entry", "entries", exact=found.exact)
    notes = [*_lowered(given), *kit.glob_notes(found), *([] if found.total else [_nothing_found(found)])]
    if count < found.total:
        narrow = "narrow with pattern, extensions or types"
        notes.append(f"these are the first {count:,} of {total}: {narrow}{_or_raise('limit', given)}")
    notes += _notes_on_skipped(found.skipped, given, "depth, or fewer roots")
    notes += _size_warning(content, "narrow with pattern, extensions, types or depth, or lower limit")
    facts = _facts(found.skipped, found.elapsed_ms, notes, exact=found.exact, cut=count < found.total)
    data = {"files": entries[:count], "total": found.total, **facts}
    return ToolResult(True, content, total, data=data, notes=tuple(notes))


def _search_content(workspace: Workspace, given: contract.SearchContent) -> ToolResult:
    """Search the contents of files, with a regular expression unless told otherwise.

    {ladder}
    ⚠️ Give roots or files, not both.
    """
    if not given.roots and not given.files:
        raise contract.own_error("no_place", "roots")
    if given.roots and given.files:
        raise contract.own_error("two_places", "roots")
    options = _grep_options(given) | {
        "path": given.roots or ["."],
        "files": given.files or None,
        "glob": _from_root(workspace, given.roots, given.include_globs),
        "exclude": _excluded(workspace, given) or None,
        "follow_symlinks": given.follow_symlinks,
        "unique": given.follow_symlinks or bool(given.files),
        "hidden": given.hidden,
        "include_ignored": given.no_ignore,
    }
    return _search_reply(workspace, _grep(workspace, options), None, given)


def _find_and_grep(workspace: Workspace, given: contract.FindAndGrep) -> ToolResult:
    """Find files by name, type, size and time, then search their contents.

    It is list_files and search_content in one.
    💡 Narrow the files first: what is not found is not searched.
    {ladder}
    """
    options = _grep_options(given)
    sort = "modified" if given.sort == "mtime" else given.sort
    filtered = replace(given, types=_searchable_types(given.types))
    files = _find(workspace, filtered, sort=sort, unique=True)
    # A search for names takes one list of globs. If `pattern` is one, the search takes `include_globs`.
    globs = given.include_globs if given.glob and given.pattern else None
    options |= {"path": given.roots, "files": files, "glob": globs}
    return _search_reply(workspace, _grep(workspace, options), files, given)


def _lowered(given: contract.FileFilter | contract.ContentQuery) -> list[str]:
    """Return a note for each number that is lowered to its maximum."""
    limit = "file_limit" if isinstance(given, contract.FindAndGrep) else "limit"
    numbers = ((limit, "limit", contract.MAX_LIMIT), ("timeout_ms", "timeout_ms", _MAX_TIMEOUT_MS))
    notes = [
        f"{name} was lowered from {value:,} to {most:,}, the maximum"
        for name, field, most in numbers
        if (value := getattr(given, field, 0)) > most
    ]
    if isinstance(given, contract.ContentQuery):
        if max(given.context_before or 0, given.context_after or 0) > kit.MAX_CONTEXT:
            notes.append(f"context was lowered to {kit.plural(kit.MAX_CONTEXT, 'line')} on either side")
        size = given.max_filesize or _DEFAULT_FILESIZE
        if kit.parse_filesize(size) > kit.parse_filesize(_MAX_FILESIZE):
            notes.append(f"max_filesize was lowered from {size} to {_MAX_FILESIZE}, the maximum")
    return notes


def _find(workspace: Workspace, given: contract.FileFilter, **more: Any) -> GlobResult:
    glob, includes, excludes = given.pattern if given.glob else None, None, list[str]()
    case: Literal["smart", "sensitive", "insensitive"] = "smart"
    if glob:  # smart case, as in fd
        case = "sensitive" if any(map(str.isupper, glob)) else "insensitive"
    if isinstance(given, contract.FindAndGrep):
        includes = _from_root(workspace, given.roots, given.include_globs)
        excludes = _excluded(workspace, given)
    options = kit.GlobOptions(
        glob or includes or None,
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
        limit=min(given.limit, contract.MAX_LIMIT),
        **more,
    )
    return kit.glob(workspace, options)


def _grep_options(given: contract.ContentQuery) -> dict[str, Any]:
    if not given.query:
        raise contract.own_error("no_query", "query")
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
        "max_filesize": min(given.max_filesize or _DEFAULT_FILESIZE, _MAX_FILESIZE, key=kit.parse_filesize),
        "timeout": min(given.timeout_ms, _MAX_TIMEOUT_MS) / 1000,
        **contract.REPLY_FORMATS[given.format].options,
    }


def _grep(workspace: Workspace, arguments: Mapping[str, Any]) -> GrepResult:
    try:
        return kit.grep(workspace, kit.GrepOptions(**arguments))
    except InvalidPatternError as error:
        # The advice of `grep` is about `pattern`, which means something else in find_and_grep.
        error.details["parameter"] = "query"
        if suggestion := error.details.get("suggestion"):
            meant = kit.Retry({"query": suggestion})
            error.hint = kit.Advice("To search for what was probably meant, ", meant, ".")
        raise


def _excluded(workspace: Workspace, given: _Search) -> list[str]:
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
        raise contract.own_error("no_files", "types")
    return sorted(searchable if searchable - {"e"} else searchable | {"f"})


def _search_reply(
    workspace: Workspace, found: GrepResult, files: GlobResult | None, given: _Search
) -> ToolResult:
    """Return the reply of search_content, or of find_and_grep if the searched `files` are given."""
    absolute, fmt = kit.absolute_in(workspace), given.format
    skipped = found.skipped if files is None else _combined(files.skipped, found.skipped)
    complete = found.exact and (files is None or (files.exact and not files.truncated))
    elapsed = found.elapsed_ms + (files.elapsed_ms if files is not None else 0)
    notes = _search_notes(found, files, skipped, given)
    not_all = (
        f"not all of the {_count(found.total_lines, exact=complete)} matching lines are shown: "
        "narrow with roots, include_globs or max_count, or use summary_only=true"
    )
    items = _items(found, fmt, absolute)

    def body(count: int) -> _Document:
        plain = _body(found, fmt, items[:count])
        if not given.optimize_paths or not count:
            return plain
        common = posixpath.commonpath([posixpath.dirname(each["file"]) for each in items[:count]])
        short = _body(found, fmt, items[:count], common and f"{common}/")
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

    budget = contract.REPLY_FORMATS[fmt].budget or workspace.limits.output_tokens
    limits = replace(workspace.limits, output_tokens=min(budget, workspace.limits.output_tokens))
    count = kit.most_that_fit(len(items), lambda count: kit.to_json(document(count)[0]), limits)
    advice = "summary_only=true takes ~500-2000, count_only_matches=true ~50-200"
    value, said = document(count, *_size_warning(kit.to_json(document(count)[0]), advice))
    content = kit.to_json(value)
    whole, counted = _full_tokens(found, absolute), content
    if fmt == "full":
        whole, counted = kit.estimate_tokens(kit.to_json(items[:count])), kit.to_json(body(count))
    saved = max(whole - kit.estimate_tokens(counted), 0)
    data = value if isinstance(value, dict) else {"matches": value}
    beside = () if isinstance(value, dict) else tuple(said)
    if fmt == "total_only":
        data, beside = {"total": value}, _notes_on_count(skipped, complete=complete)
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


def _search_notes(found: GrepResult, files: GlobResult | None, skipped: Skipped, given: _Search) -> list[str]:
    """Return notes on numbers that were lowered, why nothing was found and what was not searched."""
    notes = [*_lowered(given), *kit.glob_notes(found), *([] if files is None else kit.glob_notes(files))]
    if files is not None and not files.total:
        notes.append(_nothing_found(files))
    elif not found.total_lines:
        notes += filter(None, (kit.say(each, _GREP_NAMES) for each in found.nothing))
    if isinstance(given, contract.FindAndGrep) and files is not None and files.truncated:
        total = _count(files.total, "file", "files", exact=files.exact)
        notes.append(
            f"the first {len(files.files):,} of {total} were searched: narrow with pattern or "
            f"extensions{_or_raise('file_limit', given)}"
        )
    longer = f"timeout_ms (up to {_MAX_TIMEOUT_MS}), or " if given.timeout_ms < _MAX_TIMEOUT_MS else ""
    return [*notes, *_notes_on_skipped(skipped, given, f"{longer}fewer roots")]


def _entry(entry: Entry, path: str) -> dict[str, Any]:
    times = {"size_bytes": entry.size, "mtime": None if entry.mtime is None else int(entry.mtime)}
    known = {name: value for name, value in times.items() if value is not None}
    more = kit.without_empty(ext=entry.ext, protected=entry.protected)
    return {"path": path, "is_dir": entry.is_dir, **known, **more}


def _nothing_found(found: GlobResult) -> str:
    return kit.say(kit.Joined("; ", *found.nothing), _FIND_NAMES)


def _or_raise(name: str, given: contract.FileFilter) -> str:
    return f", or raise {name} (up to {contract.MAX_LIMIT:,})" if given.limit < contract.MAX_LIMIT else ""


def _combined(first: Skipped, second: Skipped) -> Skipped:
    both = {name: value + getattr(second, name) for name, value in vars(first).items() if name not in _OTHER}
    return Skipped(**both, rules=first.rules, reached=first.reached or second.reached)


def _notes_on_skipped(skipped: Skipped, given: contract.FileFilter | _Search, advice: str) -> list[str]:
    """Return notes on a search that stopped early, for which there is advice, and on skipped names."""
    notes: list[str] = []
    if skipped.reached is not None:
        ended = "time" if skipped.reached == "timeout" else "names for one walk"
        notes.append(f"stopped early, out of {ended}, so there may be more: use {advice}")
    note = kit.skip_report(skipped, can_open=False)
    if not (given.hidden and given.no_ignore) and (skipped.hidden or skipped.ignored):
        note += " (hidden=true and no_ignore=true search hidden and ignored names)"
    return [*notes, note] if note else notes


def _notes_on_count(skipped: Skipped, *, complete: bool) -> tuple[str, ...]:
    """Return the note beside a bare count: "partial", or how many names were left out."""
    if not complete:
        return ("partial",)
    count = skipped.total - skipped.vcs
    return (f"{count} left out",) if count else ()


def _size_warning(content: str, advice: str) -> list[str]:
    tokens = kit.estimate_tokens(content)
    return [f"⚠️ about {tokens:,} tokens: {advice}"] if tokens > _WARNING_TOKENS else []


def _count(number: int, one: str = "", many: str = "", *, exact: bool = True) -> str:
    noun = one if number == 1 else many
    return f"{'' if exact else 'at least '}{number:,}{f' {noun}' if noun else ''}"


def _items(found: GrepResult, fmt: str, absolute: Callable[[str], str]) -> list[_Item]:
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
        **kit.without_empty(before=list(match.before), after=list(match.after)),
        **({"cut": dict(zip(("before", "after"), match.cut, strict=True))} if any(match.cut) else {}),
    }


def _with_samples(files: list[_Item], found: GrepResult) -> list[_Item]:
    by_file = {path: [*group] for path, group in groupby(found.matches, key=attrgetter("path"))}
    samples = max(1, min(_SAMPLES, _MAX_SAMPLES // max(len(files), 1)))
    return [{**each, "samples": [*map(_sample, by_file[each["file"]][:samples])]} for each in files]


def _sample(match: Match) -> _Item:
    line = kit.without_marks(match)[0].strip()
    if len(line) > _SAMPLE_CHARS:
        line = f"{line[:_SAMPLE_CHARS]}…"
    context = kit.without_empty(before=list(match.before), after=list(match.after))
    return {"line_number": match.line, "line": line, **context}


def _body(found: GrepResult, fmt: str, items: list[_Item], base: str | None = None) -> _Document:
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
    head = {name: matches[0][name] for name in paths}
    return {**head, "matches": [_without(each, *_PATHS) for each in matches]}


def _without(item: _Item, *names: str) -> _Item:
    return {name: value for name, value in item.items() if name not in names}


def _full_tokens(found: GrepResult, absolute: Callable[[str], str]) -> int:
    """Estimate how many tokens the `full` format would take."""
    paths = [kit.estimate_tokens(path + absolute(path)) for path in found.counts]
    paths = paths or [2 * kit.estimate_tokens(absolute(""))]
    return round(min(found.total_lines, contract.MAX_MATCHES) * (_TOKENS_PER_MATCH + sum(paths) / len(paths)))


DIALECT = in_language()
