"""The replies of `tree-sitter-analyzer` in each output format, with notes on what was left out. Pure."""

import posixpath
from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import Any, cast

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
    entries = _fit(
        [_entry(entry, absolute(entry.path)) for entry in found.files], workspace.limits.output_tokens
    )
    content = kit.to_json(entries)
    notes = [*notes, *kit.glob_notes(found)]
    notes += [] if found.total else [_nothing_found(found)]
    if len(entries) < found.total:
        total = _count(found.total, "entry", "entries", exact=found.exact)
        notes.append(
            f"these are the first {len(entries):,} of {total}: narrow with pattern, extensions or "
            f"types{_or_raise('limit', given)}"
        )
    notes += _time_note(found.skipped, "depth, or fewer roots")
    notes += _skip_note(found.skipped, given)
    notes += _size_warning(content, "narrow with pattern, extensions, types or depth, or lower limit")
    return ToolResult(
        True,
        content,
        _count(found.total, "entry", "entries", exact=found.exact),
        data={
            "files": entries,
            "total": found.total,
            "exact": found.exact,
            "truncated": len(entries) < found.total or not found.exact,
            "elapsed_ms": found.elapsed_ms,
            "skipped": asdict(found.skipped),
            "notes": notes,
        },
        notes=tuple(notes),
    )


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
    notes = [*notes, *_search_notes(found, files, skipped, given)]
    meta: dict[str, Any] = {}
    if files is not None and fmt != "total_only":
        meta = {
            "searched_file_count": found.searched_files,
            "truncated": not complete,
            "fd_elapsed_ms": files.elapsed_ms,
            "rg_elapsed_ms": found.elapsed_ms,
        }
    reserved = kit.estimate_tokens(kit.to_json([notes, meta]))
    value = _formatted(found, fmt, absolute, workspace.limits.output_tokens, reserved)
    cut = found.truncated
    cut |= len(value) < len(found.matches) if fmt == "full" else fmt == "group_by_file" and "others" in value
    if cut:
        notes.append(
            f"not all of the {_count(found.total_lines, exact=complete)} matching lines are shown: narrow "
            "with roots, include_globs or max_count, or use summary_only=true"
        )
    tokens_saved = 0
    if given.optimize_paths:
        plain, value = value, _with_short_paths(value, fmt)
        tokens_saved = kit.estimate_tokens(kit.to_json(plain)) - kit.estimate_tokens(kit.to_json(value))
    if meta:
        meta["truncated"] = cut or not complete
        value = {**({"matches": value} if fmt == "full" else value), "meta": meta}
    content = kit.to_json(value)
    if fmt != "full":
        tokens_saved = max(_full_tokens(found, absolute) - kit.estimate_tokens(content), 0)
    notes += _size_warning(content, "summary_only=true takes ~500-2000, count_only_matches=true ~50-200")
    data: dict[str, Any] = {"matches": value}
    notes_beside: tuple[str, ...] = tuple(notes)
    if isinstance(value, dict):
        data, notes_beside = cast("dict[str, Any]", value), ()
        if notes:
            data = {**data, "notes": notes}
            content = kit.to_json(data)
    elif fmt == "total_only":
        data = {"total": value}
        notes_beside = _notes_on_count(found.total_matches, skipped, complete=complete)
    matches = _count(found.total_matches, "match", "matches", exact=complete)
    return ToolResult(
        True,
        content,
        f"{matches} in {_count(found.total_files, 'file', 'files')}",
        data={
            **data,
            "exact": complete,
            "truncated": cut or not complete,
            "searched_files": found.searched_files,
            "elapsed_ms": found.elapsed_ms + (files.elapsed_ms if files is not None else 0),
            "skipped": asdict(skipped),
            "format": f"{fmt}+optimize_paths" if given.optimize_paths else fmt,
            "tokens_saved": tokens_saved,
            "notes": notes,
        },
        notes=notes_beside,
    )


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


def _formatted(
    found: GrepResult, fmt: OutputFormat, absolute: Callable[[str], str], budget: int, reserved: int
) -> Any:
    """Return the search result in a format. Notes and metadata take `reserved` tokens of its budget."""
    if fmt == "total_only":
        return found.total_matches
    if fmt == "full":
        return _fit([_match(each, absolute) for each in found.matches], budget)
    head = {"total_matches": found.total_matches, "total_files": found.total_files}
    least: dict[str, Any] = {**head, "base": "", "files": [], "others": {"files": 99_999, "matches": 999_999}}
    remaining = REPLY_FORMATS[fmt].budget - kit.estimate_tokens(kit.to_json(least)) - reserved
    if fmt == "count_only_matches":
        counts = dict(_fit(_by_count(found), remaining))
        return {**head, "file_counts": counts, **_others(found, len(counts), sum(counts.values()))}
    if fmt == "summary_only":
        files = _fit(_summaries(found), remaining)
        included = sum(file["matches"] for file in files)
    else:
        files = _groups(found, absolute, remaining)
        included = sum(len(match["spans"]) for file in files for match in file["matches"])
    return {**head, "files": files, **_others(found, len(files), included)}


def _fit(items: Iterable[Any], budget: int) -> list[Any]:
    """Return the first items whose JSON fits into a number of tokens, but at least one."""
    if budget >= UNBOUNDED:
        return list(items)
    taken: list[Any] = []
    for item in items:
        budget -= kit.estimate_tokens(kit.to_json(item)) + 1
        if budget < 0 and taken:
            break
        taken.append(item)
    return taken


def _match(match: Match, absolute: Callable[[str], str]) -> dict[str, Any]:
    line, spans = kit.without_marks(match)
    return {
        "file": match.path,
        "abs_path": absolute(match.path),
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


def _others(found: GrepResult, files: int, matches: int) -> dict[str, Any]:
    """Return the number of files and matches that are not shown."""
    others = {"files": found.total_files - files, "matches": found.total_matches - matches}
    return {"others": others} if others["matches"] else {}


def _by_count(found: GrepResult) -> list[tuple[str, int]]:
    counts = ((path, count.matches) for path, count in found.counts.items())
    return sorted(counts, key=lambda each: (-each[1], each[0]))


def _summaries(found: GrepResult) -> Iterable[dict[str, Any]]:
    by_file: dict[str, list[Match]] = {}
    for match in found.matches:
        by_file.setdefault(match.path, []).append(match)
    counts = _by_count(found)
    samples = max(1, min(SAMPLES, _MAX_SAMPLES // max(len(counts), 1)))
    for path, count in counts:
        yield {"file": path, "matches": count, "samples": [*map(_sample, by_file[path][:samples])]}


def _sample(match: Match) -> dict[str, Any]:
    line = kit.without_marks(match)[0].strip()
    if len(line) > _SAMPLE_CHARS:
        line = f"{line[:_SAMPLE_CHARS]}…"
    return {"line_number": match.line, "line": line, **_context(match)}


def _groups(found: GrepResult, absolute: Callable[[str], str], budget: int) -> list[dict[str, Any]]:
    files: list[dict[str, Any]] = []
    for match in found.matches:
        line, spans = kit.without_marks(match)
        item = {"line_number": match.line, "line": line, "spans": spans, **_context(match), **_cut(match)}
        file = {"file": match.path, "abs_path": absolute(match.path), "matches": list[Any]()}
        is_new = not files or files[-1]["file"] != match.path
        budget -= (
            kit.estimate_tokens(kit.to_json(item))
            + 1
            + (kit.estimate_tokens(kit.to_json(file)) + 1 if is_new else 0)
        )
        if budget < 0 and files:
            break
        if is_new:
            files.append(file)
        files[-1]["matches"].append(item)
    return files


def _with_short_paths(value: Any, fmt: OutputFormat) -> Any:
    """Say the directories that all paths share only once, if that is shorter."""
    if fmt == "total_only" or not value:
        return value
    if fmt == "full":  # `abs_path` of the first match shows what to put before each `file`
        base = _common_directories([match["file"] for match in value])
        first, *others = [{**match, "file": match["file"].removeprefix(base)} for match in value]
        return [first, *map(_without_absolute, others)]
    if fmt == "count_only_matches":
        counts: dict[str, int] = value["file_counts"]
        base = _common_directories(counts)
        by_path = {path.removeprefix(base): count for path, count in counts.items()}
        short = {"base": base, **value, "file_counts": by_path}
    else:
        files: list[dict[str, Any]] = value["files"]
        base = _common_directories([file["file"] for file in files])
        shortened = [{**_without_absolute(file), "file": file["file"].removeprefix(base)} for file in files]
        if files and "abs_path" in files[0]:
            base = str(files[0]["abs_path"]).removesuffix(shortened[0]["file"])
        short = {"base": base, **value, "files": shortened}
    return short if len(kit.to_json(short)) < len(kit.to_json(value)) else value


def _without_absolute(item: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in item.items() if name != "abs_path"}


def _common_directories(paths: Iterable[str]) -> str:
    """Return the directories that all paths begin with, ending in `/`, or ""."""
    common = posixpath.commonpath([posixpath.dirname(path) for path in paths] or [""])
    return f"{common}/" if common else ""


def _full_tokens(found: GrepResult, absolute: Callable[[str], str]) -> int:
    """Estimate how many tokens the `full` format would take."""
    paths = [kit.estimate_tokens(path + absolute(path)) for path in found.counts]
    paths = paths or [2 * kit.estimate_tokens(absolute(""))]
    return round(min(found.total_lines, MAX_MATCHES) * (_TOKENS_PER_MATCH + sum(paths) / len(paths)))
