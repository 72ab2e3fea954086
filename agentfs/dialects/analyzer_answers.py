"""The answers of `tree-sitter-analyzer`: the document's output, and beside it what was cut and left out."""

from dataclasses import asdict, dataclass, fields
from typing import Any

from agentfs.dialects.analyzer_formats import Format, as_text, fitting, full_tokens, shaped, with_short_paths
from agentfs.dialects.analyzer_names import FINDING, SEARCHING
from agentfs.dialects.rendering import absolute_in
from agentfs.messages import say
from agentfs.results import Entry, GlobResult, GrepResult, Skipped, ToolResult
from agentfs.search.skip_report import describe_skipped
from agentfs.text import estimate_tokens
from agentfs.workspace import Workspace

WARNING_TOKENS = 10_000  # an answer that takes more says so

# What a count alone is told with: a word or two, so that both take about ten tokens.
_PARTIAL = "partial"
_COUNT_TOKENS = 10


@dataclass(frozen=True)
class Asked:
    """How a search is to be shown.

    Attributes:
        shape: The format.
        optimize_paths: Whether paths are to be short.
    """

    shape: Format
    optimize_paths: bool


@dataclass(frozen=True)
class Raisable:
    """Which bounds of a search the caller could raise.

    Attributes:
        timeout_ms: The time of the search.
        file_limit: The number of files to search.
    """

    timeout_ms: bool = False
    file_limit: bool = False


def listed(
    workspace: Workspace, found: GlobResult, notes: list[str], *, opens: bool, raisable: bool
) -> ToolResult:
    """Return the answer of list_files.

    Args:
        workspace: The workspace.
        found: What was found.
        notes: What is to be said already.
        opens: Whether hidden and ignored names were looked at.
        raisable: Whether the caller could raise the limit.
    """
    absolute = absolute_in(workspace)
    entries = [_entry(entry, absolute(entry.path)) for entry in found.files]
    shown = fitting(entries, workspace.limits.output_tokens)
    content = as_text(shown)
    if not found.total:
        notes.append(say(found.text, FINDING).partition("\n")[0])
    if len(shown) < found.total:
        total = _count(found.total, exact=found.exact)
        notes.append(
            f"these are the first {len(shown):,} of {total} entries: narrow with pattern, extensions or "
            f"types{', or raise limit (up to 10,000)' if raisable else ''}"
        )
    notes += _said_of_time(found.skipped, "depth, or fewer roots")
    notes += _left_out(found.skipped, opens=opens)
    notes += _warning(
        estimate_tokens(content), "narrow with pattern, extensions, types or depth, or lower limit"
    )
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


def answer_of(
    workspace: Workspace,
    asked: Asked,
    found: GrepResult,
    notes: list[str],
    *,
    opens: bool,
    raisable: Raisable,
    files: GlobResult | None = None,
) -> ToolResult:
    """Return the answer of search_content or find_and_grep.

    Args:
        workspace: The workspace.
        asked: How it is to be shown.
        found: What was found.
        notes: What is to be said already.
        opens: Whether hidden and ignored names were looked at.
        raisable: Which bounds the caller could raise.
        files: Of find_and_grep, the files that were searched.
    """
    absolute, shape = absolute_in(workspace), asked.shape
    skipped = found.skipped if files is None else _together(files.skipped, found.skipped)
    complete = found.exact and (files is None or (files.exact and not files.truncated))
    notes += _said_of_absence(found, files)
    if files is not None and files.truncated:
        total = _count(files.total, exact=files.exact)
        notes.append(
            f"the first {len(files.files):,} of {total} files were searched: narrow with pattern or "
            f"extensions{', or raise file_limit (up to 10,000)' if raisable.file_limit else ''}"
        )
    notes += _said_of_time(
        skipped, "timeout_ms (up to 30000), or fewer roots" if raisable.timeout_ms else "fewer roots"
    )
    notes += _left_out(skipped, opens=opens)
    meta: dict[str, Any] = {}
    if files is not None and shape != "total_only":
        meta = {
            "searched_file_count": found.searched_files,
            "truncated": not complete,
            "fd_elapsed_ms": files.elapsed_ms,
            "rg_elapsed_ms": found.elapsed_ms,
        }
    beside = estimate_tokens(as_text([notes, meta]))
    shown = shaped(found, shape, absolute, workspace.limits.output_tokens, beside)
    truncated = not complete or found.truncated
    if found.truncated or _falls_short(found, shown, shape):
        truncated = True
        notes.append(
            f"not all of the {_count(found.total_lines, exact=complete)} matching lines are shown: narrow "
            "with roots, include_globs or max_count, or use summary_only=true"
        )
    if asked.optimize_paths:
        shown = with_short_paths(shown, shape)
    value = shown
    if meta:
        meta["truncated"] = truncated
        value = {**({"matches": shown} if shape == "full" else shown), "meta": meta}
    tokens = estimate_tokens(as_text(value))
    notes += _warning(tokens, "summary_only=true takes ~500-2000, count_only_matches=true ~50-200")
    if asked.shape == "full" and not asked.optimize_paths:
        saved = 0
    else:
        saved = max(full_tokens(found, shape, absolute) - tokens, 0)
    is_object = isinstance(value, dict)
    if is_object and notes:
        value = {**value, "notes": notes}
    key = "total" if shape == "total_only" else "matches"
    matches = _count(found.total_matches, "match", "matches", exact=complete)
    told = tuple(notes)
    if shape == "total_only":
        told = _beside_a_count(found.total_matches, skipped, complete=complete)
    return ToolResult(
        True,
        as_text(value),
        f"{matches} in {_count(found.total_files, 'file', 'files')}",
        data={
            **(value if is_object else {key: value}),
            "exact": complete,
            "truncated": truncated,
            "searched_files": found.searched_files,
            "elapsed_ms": found.elapsed_ms + (files.elapsed_ms if files is not None else 0),
            "skipped": asdict(skipped),
            "format": f"{shape}+optimize_paths" if asked.optimize_paths else shape,
            "tokens_saved": saved,
            "notes": notes,
        },
        notes=() if is_object else told,
    )


def _entry(entry: Entry, path: str) -> dict[str, Any]:
    shown: dict[str, Any] = {"path": path, "is_dir": entry.is_dir}
    if entry.size is not None:
        shown["size_bytes"] = entry.size
    if entry.mtime is not None:
        shown["mtime"] = int(entry.mtime)
    if entry.ext:
        shown["ext"] = entry.ext
    return {**shown, "protected": True} if entry.protected else shown


def _falls_short(found: GrepResult, shown: Any, shape: Format) -> bool:
    """Tell whether matches are missing where all were asked for."""
    if shape == "full":
        return len(shown) < len(found.matches)
    return shape == "group_by_file" and "others" in shown


def _together(first: Skipped, second: Skipped) -> Skipped:
    """Return what two looks have left out."""
    counts = {
        field.name: getattr(first, field.name) + getattr(second, field.name)
        for field in fields(Skipped)
        if field.type is int
    }
    return Skipped(**counts, rules=first.rules, reached=first.reached or second.reached)


def _said_of_absence(found: GrepResult, files: GlobResult | None) -> list[str]:
    if files is not None and not files.total:
        return [say(files.text, FINDING).partition("\n")[0]]
    if found.total_lines:
        return []
    return [line for line in say(found.text, SEARCHING).split("\n") if not line.startswith("[")]


def _said_of_time(skipped: Skipped, way: str) -> list[str]:
    if skipped.reached is None:
        return []
    ended = "time" if skipped.reached == "timeout" else "names that one walk looks at"
    return [f"stopped early, out of {ended}, so there may be more: use {way}"]


def _left_out(skipped: Skipped, *, opens: bool) -> list[str]:
    said = describe_skipped(skipped, can_open=False)
    if not opens and (skipped.hidden or skipped.ignored):
        said += " (hidden=true and no_ignore=true search hidden and ignored names)"
    return [said] if said else []


def _beside_a_count(total: int, skipped: Skipped, *, complete: bool) -> tuple[str, ...]:
    """Return what is told with a count alone: whether it is of a part, else how many names were left out."""
    if not complete:
        return (_PARTIAL,)
    left = sum(getattr(skipped, each.name) for each in fields(Skipped) if each.type is int) - skipped.vcs
    if not left:
        return ()
    told = f"{left} left out"
    return (told if estimate_tokens(f"{total}\n[{told}]") <= _COUNT_TOKENS else "some left out",)


def _warning(tokens: int, way: str) -> list[str]:
    return [f"⚠️ about {tokens:,} tokens: {way}"] if tokens > WARNING_TOKENS else []


def _count(number: int, one: str = "", many: str = "", *, exact: bool = True) -> str:
    noun = one if number == 1 else many
    return f"{'' if exact else 'at least '}{number:,}{f' {noun}' if noun else ''}"
