"""The replies of `tree-sitter-analyzer`: the document's output, and beside it what was cut and left out."""

from dataclasses import asdict, dataclass, fields
from typing import Any, cast

from agentfs.dialects.rendering import absolute_in
from agentfs.dialects.tree_sitter_analyzer.formats import (
    Format,
    fit,
    format_search,
    full_tokens,
    shorten_paths,
)
from agentfs.dialects.tree_sitter_analyzer.messages import FIND_NAMES, GREP_NAMES
from agentfs.messages import say
from agentfs.results import Entry, GlobResult, GrepResult, Skipped, ToolResult
from agentfs.search.skip_report import describe_skipped
from agentfs.text import estimate_tokens, to_json
from agentfs.workspace import Workspace

WARNING_TOKENS = 10_000  # a larger reply has a warning
_COUNT_TOKENS = 10  # about what a count and the note beside it take together


@dataclass(frozen=True)
class ReplyOptions:
    """How a reply is made, and which advice it can give.

    Attributes:
        fmt: The format of a search.
        optimize_paths: Whether paths are short.
        searches_all: Whether hidden and ignored names were searched.
        can_raise_limit: Whether the number of files was below its maximum.
        can_raise_timeout: Whether the time was below its maximum.
    """

    fmt: Format = "full"
    optimize_paths: bool = False
    searches_all: bool = False
    can_raise_limit: bool = False
    can_raise_timeout: bool = False


def list_reply(
    workspace: Workspace, found: GlobResult, notes: list[str], options: ReplyOptions
) -> ToolResult:
    """Return the reply of list_files; `notes` come first among its own."""
    absolute = absolute_in(workspace)
    entries = [_entry(entry, absolute(entry.path)) for entry in found.files]
    shown = fit(entries, workspace.limits.output_tokens)
    content = to_json(shown)
    notes = [*notes]
    if not found.total:
        notes.append(_nothing_found(found))
    if len(shown) < found.total:
        total = _count(found.total, exact=found.exact)
        notes.append(
            f"these are the first {len(shown):,} of {total} entries: narrow with pattern, extensions or "
            f"types{', or raise limit (up to 10,000)' if options.can_raise_limit else ''}"
        )
    notes += _time_note(found.skipped, "depth, or fewer roots")
    notes += _skip_note(found.skipped, options)
    advice = "narrow with pattern, extensions, types or depth, or lower limit"
    notes += _size_warning(estimate_tokens(content), advice)
    return ToolResult(
        True,
        content,
        _count(found.total, "entry", "entries", exact=found.exact),
        data={
            "files": shown,
            "total": found.total,
            "exact": found.exact,
            "truncated": len(shown) < found.total or not found.exact,
            "elapsed_ms": found.elapsed_ms,
            "skipped": asdict(found.skipped),
            "notes": notes,
        },
        notes=tuple(notes),
    )


def search_reply(
    workspace: Workspace, found: GrepResult, files: GlobResult | None, notes: list[str], options: ReplyOptions
) -> ToolResult:
    """Return the reply of search_content, or of find_and_grep, which has the `files` that were searched."""
    absolute, fmt = absolute_in(workspace), options.fmt
    skipped = found.skipped if files is None else _combined(files.skipped, found.skipped)
    complete = found.exact and (files is None or (files.exact and not files.truncated))
    notes = [*notes, *_search_notes(found, files, skipped, options)]
    meta: dict[str, Any] = {}
    if files is not None and fmt != "total_only":
        meta = {
            "searched_file_count": found.searched_files,
            "truncated": not complete,
            "fd_elapsed_ms": files.elapsed_ms,
            "rg_elapsed_ms": found.elapsed_ms,
        }
    reserved = estimate_tokens(to_json([notes, meta]))
    value = format_search(found, fmt, absolute, workspace.limits.output_tokens, reserved)
    cut = found.truncated or _omits_matches(found, value, fmt)
    truncated = cut or not complete
    if cut:
        notes.append(
            f"not all of the {_count(found.total_lines, exact=complete)} matching lines are shown: narrow "
            "with roots, include_globs or max_count, or use summary_only=true"
        )
    if options.optimize_paths:
        value = shorten_paths(value, fmt)
    if meta:
        meta["truncated"] = truncated
        value = {**({"matches": value} if fmt == "full" else value), "meta": meta}
    content = to_json(value)
    tokens = estimate_tokens(content)
    notes += _size_warning(tokens, "summary_only=true takes ~500-2000, count_only_matches=true ~50-200")
    tokens_saved = 0
    if fmt != "full" or options.optimize_paths:
        tokens_saved = max(full_tokens(found, fmt, absolute) - tokens, 0)
    data: dict[str, Any] = {"matches": value}
    notes_beside: tuple[str, ...] = tuple(notes)
    if isinstance(value, dict):
        data, notes_beside = cast("dict[str, Any]", value), ()
        if notes:
            data = {**data, "notes": notes}
            content = to_json(data)
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
            "truncated": truncated,
            "searched_files": found.searched_files,
            "elapsed_ms": found.elapsed_ms + (files.elapsed_ms if files is not None else 0),
            "skipped": asdict(skipped),
            "format": f"{fmt}+optimize_paths" if options.optimize_paths else fmt,
            "tokens_saved": tokens_saved,
            "notes": notes,
        },
        notes=notes_beside,
    )


def _search_notes(
    found: GrepResult, files: GlobResult | None, skipped: Skipped, options: ReplyOptions
) -> list[str]:
    """Return why nothing was found, and what was not searched."""
    notes: list[str] = []
    if files is not None and not files.total:
        notes.append(_nothing_found(files))
    elif not found.total_lines:
        notes += [line for line in say(found.text, GREP_NAMES).split("\n") if not line.startswith("[")]
    if files is not None and files.truncated:
        total = _count(files.total, exact=files.exact)
        notes.append(
            f"the first {len(files.files):,} of {total} files were searched: narrow with pattern or "
            f"extensions{', or raise file_limit (up to 10,000)' if options.can_raise_limit else ''}"
        )
    advice = "timeout_ms (up to 30000), or fewer roots" if options.can_raise_timeout else "fewer roots"
    return [*notes, *_time_note(skipped, advice), *_skip_note(skipped, options)]


def _entry(entry: Entry, path: str) -> dict[str, Any]:
    return {
        "path": path,
        "is_dir": entry.is_dir,
        **({} if entry.size is None else {"size_bytes": entry.size}),
        **({} if entry.mtime is None else {"mtime": int(entry.mtime)}),
        **({"ext": entry.ext} if entry.ext else {}),
        **({"protected": True} if entry.protected else {}),
    }


def _omits_matches(found: GrepResult, value: Any, fmt: Format) -> bool:
    """Return whether matches are missing from a format that has all of them."""
    if fmt == "full":
        return len(value) < len(found.matches)
    return fmt == "group_by_file" and "others" in value


def _combined(first: Skipped, second: Skipped) -> Skipped:
    """Return what two searches skipped together."""
    counts = {name: getattr(first, name) + getattr(second, name) for name in _COUNTS}
    return Skipped(**counts, rules=first.rules, reached=first.reached or second.reached)


_COUNTS = [each.name for each in fields(Skipped) if each.type is int]


def _nothing_found(found: GlobResult) -> str:
    return say(found.text, FIND_NAMES).partition("\n")[0]


def _time_note(skipped: Skipped, advice: str) -> list[str]:
    if skipped.reached is None:
        return []
    ended = "time" if skipped.reached == "timeout" else "names that one walk looks at"
    return [f"stopped early, out of {ended}, so there may be more: use {advice}"]


def _skip_note(skipped: Skipped, options: ReplyOptions) -> list[str]:
    note = describe_skipped(skipped, can_open=False)
    if not options.searches_all and (skipped.hidden or skipped.ignored):
        note += " (hidden=true and no_ignore=true search hidden and ignored names)"
    return [note] if note else []


def _notes_on_count(total: int, skipped: Skipped, *, complete: bool) -> tuple[str, ...]:
    """Return the note beside a count alone: that it is partial, else how many names were skipped."""
    if not complete:
        return ("partial",)
    count = sum(getattr(skipped, name) for name in _COUNTS) - skipped.vcs
    if not count:
        return ()
    note = f"{count} left out"
    return (note if estimate_tokens(f"{total}\n[{note}]") <= _COUNT_TOKENS else "some left out",)


def _size_warning(tokens: int, advice: str) -> list[str]:
    return [f"⚠️ about {tokens:,} tokens: {advice}"] if tokens > WARNING_TOKENS else []


def _count(number: int, one: str = "", many: str = "", *, exact: bool = True) -> str:
    noun = one if number == 1 else many
    return f"{'' if exact else 'at least '}{number:,}{f' {noun}' if noun else ''}"
