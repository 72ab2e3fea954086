"""The replies of `tree-sitter-analyzer` in each output format, with notes on what was left out. Pure."""

import posixpath
from collections.abc import Callable
from dataclasses import asdict, replace
from itertools import groupby
from typing import Any

from agentfs import ToolResult, Workspace
from agentfs.dialects import toolkit as kit
from agentfs.dialects.tree_sitter_analyzer.contract import (
    FIND_NAMES,
    GREP_NAMES,
    MAX_LIMIT,
    MAX_MATCHES,
    MAX_TIMEOUT_MS,
    REPLY_FORMATS,
    FileFilter,
    FindAndGrep,
    OutputFormat,
    SearchContent,
)
from agentfs.results import Entry, GlobResult, GrepResult, Match, Skipped

_Document = dict[str, Any] | list[dict[str, Any]] | int

UNBOUNDED = 10**9  # more tokens than any reply has
SAMPLES = 10  # if only one file has matches
_MAX_SAMPLES = 30
_SAMPLE_CHARS = 160
_TOKENS_PER_MATCH = 62  # of an average match in `full`, without its two paths
_WARNING_TOKENS = 10_000  # larger replies get a warning
_COUNT_TOKENS = 10  # of a bare count and its note together
_OTHER = ("rules", "reached")  # fields of Skipped that cannot be added


def list_reply(workspace: Workspace, found: GlobResult, notes: list[str], given: FileFilter) -> ToolResult:
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


def search_reply(
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
    items = _items(found, fmt)

    def notes_on(count: int) -> list[str]:
        # In the other formats `others` counts what is not shown.
        shows_all = count == len(items) or fmt not in ("full", "group_by_file")
        if shows_all and not found.truncated:
            return notes
        total = _count(found.total_lines, exact=complete)
        advice = "narrow with roots, include_globs or max_count, or use summary_only=true"
        return [*notes, f"not all of the {total} matching lines are shown: {advice}"]

    def body(count: int) -> _Document:
        plain = _body(found, fmt, absolute, items[:count])
        if not given.optimize_paths or not count:
            return plain
        short = _body(found, fmt, absolute, items[:count], _common_directories(items[:count]))
        return short if len(kit.to_json(short)) < len(kit.to_json(plain)) else plain

    def document(count: int, *more_notes: str) -> _Document:
        value = body(count)
        if files is not None and not isinstance(value, int):
            meta = {
                "searched_file_count": found.searched_files,
                "truncated": not complete or notes_on(count) != notes,
                "fd_elapsed_ms": files.elapsed_ms,
                "rg_elapsed_ms": found.elapsed_ms,
            }
            value = {**(value if isinstance(value, dict) else {"matches": value}), "meta": meta}
        said = [*notes_on(count), *more_notes]
        return {**value, "notes": said} if isinstance(value, dict) and said else value

    budget = REPLY_FORMATS[fmt].budget or workspace.limits.output_tokens
    limits = replace(workspace.limits, output_tokens=min(budget, workspace.limits.output_tokens))
    count = kit.most_that_fit(len(items), lambda count: kit.to_json(document(count)), limits)
    cut = notes_on(count) != notes
    advice = "summary_only=true takes ~500-2000, count_only_matches=true ~50-200"
    warning = _size_warning(kit.to_json(document(count)), advice)
    value, notes_of_all = document(count, *warning), [*notes_on(count), *warning]
    content = kit.to_json(value)
    if fmt == "full":
        plain = kit.to_json(_body(found, fmt, absolute, items[:count]))
        saved = kit.estimate_tokens(plain) - kit.estimate_tokens(kit.to_json(body(count)))
    else:
        saved = max(_full_tokens(found, absolute) - kit.estimate_tokens(content), 0)
    data = value if isinstance(value, dict) else {"matches": value}
    beside = () if isinstance(value, dict) else tuple(notes_of_all)
    if fmt == "total_only":
        data, beside = {"total": value}, _notes_on_count(found.total_matches, skipped, complete=complete)
    matches = _count(found.total_matches, "match", "matches", exact=complete)
    return ToolResult(
        True,
        content,
        f"{matches} in {_count(found.total_files, 'file', 'files')}",
        data={
            **data,
            **_facts(skipped, elapsed, notes_of_all, exact=complete, cut=cut),
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


def _items(found: GrepResult, fmt: OutputFormat) -> list[Any]:
    """Return the parts of a reply, matches or files with counts; as many are shown as fit."""
    if fmt in ("full", "group_by_file"):
        return list(found.matches)
    counts = {} if fmt == "total_only" else found.counts
    by_count = sorted(counts.items(), key=lambda each: (-each[1].matches, each[0]))
    items: list[dict[str, Any]] = [{"file": path, "matches": count.matches} for path, count in by_count]
    return items if fmt == "count_only_matches" else _with_samples(items, found)


def _body(
    found: GrepResult,
    fmt: OutputFormat,
    absolute: Callable[[str], str],
    items: list[Any],
    base: str | None = None,
) -> _Document:
    """Return some of the items in a format. If `base` is given, it is omitted from paths and said once."""
    if fmt == "total_only":
        return found.total_matches
    if fmt == "full":  # `abs_path` of the first match shows what to put before each `file`
        return [
            _match(each, base, absolute if base is None or not position else None)
            for position, each in enumerate(items)
        ]
    head: dict[str, Any] = {} if base is None else {"base": base}
    head |= {"total_matches": found.total_matches, "total_files": found.total_files}
    if fmt in ("count_only_matches", "summary_only"):
        named = [{**each, "file": each["file"].removeprefix(base or "")} for each in items]
        files, matches = len(items), sum(each["matches"] for each in items)
        shown: dict[str, Any] = {"files": named}
        if fmt == "count_only_matches":
            shown = {"file_counts": {each["file"]: each["matches"] for each in named}}
    else:
        groups = [list(group) for _, group in groupby(items, key=lambda match: match.path)]
        shown = {"files": [_group(group, base, absolute if base is None else None) for group in groups]}
        files, matches = len(groups), sum(len(match.spans) for match in items)
        head |= {} if base is None else {"base": f"{absolute(base)}/"}
    others = {"files": found.total_files - files, "matches": found.total_matches - matches}
    return {**head, **shown, **({"others": others} if others["matches"] else {})}


def _path(path: str, base: str | None, absolute: Callable[[str], str] | None) -> dict[str, str]:
    return {
        "file": path.removeprefix(base or ""),
        **({} if absolute is None else {"abs_path": absolute(path)}),
    }


def _match(match: Match, base: str | None, absolute: Callable[[str], str] | None) -> dict[str, Any]:
    line, spans = kit.without_marks(match)
    return {
        **_path(match.path, base, absolute),
        "line_number": match.line,
        "line": line,
        "submatches": [{"start": start, "end": end, "match": line[start:end]} for start, end in spans],
        **_context(match),
        **_cut(match),
    }


def _context(match: Match) -> dict[str, Any]:
    return kit.without_empty(before=list(match.before), after=list(match.after))


def _cut(match: Match) -> dict[str, Any]:
    return {"cut": dict(zip(("before", "after"), match.cut, strict=True))} if any(match.cut) else {}


def _with_samples(files: list[dict[str, Any]], found: GrepResult) -> list[dict[str, Any]]:
    by_file: dict[str, list[Match]] = {}
    for match in found.matches:
        by_file.setdefault(match.path, []).append(match)
    samples = max(1, min(SAMPLES, _MAX_SAMPLES // max(len(files), 1)))
    return [{**each, "samples": [*map(_sample, by_file[each["file"]][:samples])]} for each in files]


def _sample(match: Match) -> dict[str, Any]:
    line = kit.without_marks(match)[0].strip()
    if len(line) > _SAMPLE_CHARS:
        line = f"{line[:_SAMPLE_CHARS]}…"
    return {"line_number": match.line, "line": line, **_context(match)}


def _group(matches: list[Match], base: str | None, absolute: Callable[[str], str] | None) -> dict[str, Any]:
    shown: list[dict[str, Any]] = []
    for match in matches:
        line, spans = kit.without_marks(match)
        item = {"line_number": match.line, "line": line, "spans": spans}
        shown.append({**item, **_context(match), **_cut(match)})
    return {**_path(matches[0].path, base, absolute), "matches": shown}


def _common_directories(items: list[Any]) -> str:
    """Return the directories that the paths of all items begin with, ending in `/`, or ""."""
    paths: list[str] = [each.path if isinstance(each, Match) else each["file"] for each in items]
    common = posixpath.commonpath([posixpath.dirname(path) for path in paths])
    return f"{common}/" if common else ""


def _full_tokens(found: GrepResult, absolute: Callable[[str], str]) -> int:
    """Estimate how many tokens the `full` format would take."""
    paths = [kit.estimate_tokens(path + absolute(path)) for path in found.counts]
    paths = paths or [2 * kit.estimate_tokens(absolute(""))]
    return round(min(found.total_lines, MAX_MATCHES) * (_TOKENS_PER_MATCH + sum(paths) / len(paths)))
