"""`ls` and `glob`: the results and their text."""

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

from agentfs.base.advice import Joined, plural
from agentfs.base.visible import one_line
from agentfs.results import Entry, GlobResult, ListResult
from agentfs.search.entries import FoundEntries, Noun, check_offset, find_entries
from agentfs.search.left_out import skip_report, stop_report
from agentfs.search.options import GlobOptions, ListOptions, as_list, next_page, parse_types, paths_of
from agentfs.search.other_globs import search_with_meant_globs, with_relative_globs
from agentfs.search.second_look import explain_no_entries
from agentfs.shown.workspace_context import Context, watched
from agentfs.text.display import Shrink, continuation, fitted, footer, notes_of

_LEAST_SIZE = 100 * 1024  # bytes from which on a listing shows the size of a file
_ENTRY = ("entry", "entries")
_R = TypeVar("_R", ListResult, GlobResult)


@watched
def list_directory(context: Context, options: ListOptions) -> ListResult:
    """List directories; with several levels, each directory is followed by its entries."""
    found = find_entries(context, with_relative_globs(context.root, options))
    least = 0 if options.sort == "size" else _LEAST_SIZE
    lines = [one_line(entry.path) + _entry_tail(entry, least) for entry in found.entries]
    nothing = [] if found.entries else [_nothing_listed(options, found)]
    result = ListResult(found.entries, found.total, found.skipped)
    depth = f"{plural(found.depth, 'level')} shown, as more do not fit one page" if found.depth else ""
    can_open = not options.include_ignored
    return _fitted_page(context, options, found, result, lines, nothing, _ENTRY, can_open, depth)


def _nothing_listed(options: ListOptions, found: FoundEntries) -> str:
    paths = paths_of(options.path)
    has, is_ = ("has", "is") if len(paths) == 1 else ("have", "are")
    state = f"{has} nothing to show" if found.skipped else f"{is_} empty"
    if options.ignore and not found.total:
        state = f"{has} nothing to show with this ignore"
    return f"{', '.join(map(one_line, paths))} {state}."


def _entry_tail(entry: Entry, least_size: int) -> str:
    """Return the text of `ls` after the path of an entry: a size, a target or a kind."""
    tail = "  (protected)" if entry.protected and not entry.is_dir else ""
    if entry.type == "symlink":
        return f"{tail} -> {'(outside the workspace)' if entry.target is None else one_line(entry.target)}"
    if entry.is_dir:
        return f"{tail}/" if entry.mount is None else f"{tail}/  ({entry.mount} mount)"
    if entry.type == "other":
        return f"{tail}  (special file)"
    size = entry.size or 0
    return f"{tail}  {_size_text(size)}" if size >= least_size else tail


def _size_text(size: int) -> str:
    amount = float(size)
    for unit in ("B", "KB", "MB", "GB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}" if unit == "B" or amount >= 10 else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.0f} TB"


@watched
def find_files(context: Context, options: GlobOptions) -> GlobResult:
    """Find the entries that match the arguments of `glob`."""
    began = time.monotonic()
    types = parse_types(options.types)
    noun = ("file", "files") if types and "d" not in types else _ENTRY
    meant, found, glob_note = search_with_meant_globs(
        context.root, options, partial(find_entries, context), lambda found: found.total > 0
    )
    nothing: tuple[str, ...] = ()
    can_open = not options.include_ignored
    if not found.total:
        hint, may_have_more = explain_no_entries(context, meant, found)
        where = ", ".join(path for path in map(one_line, paths_of(options.path)) if path != ".")
        patterns = ", ".join(map(one_line, [*options.globs, *as_list(options.regex)]))
        said = " ".join(filter(None, (f"0 {noun[1]} match", patterns, where and f"in {where}")))
        nothing = (said, hint) if hint else (f"{said}.",)
        can_open = can_open and may_have_more
    lines = [one_line(each.path) + "/" * (each.type == "directory") for each in found.entries]
    result = GlobResult(
        found.entries,
        found.total,
        found.skipped,
        exact=found.exact,
        elapsed_ms=int((time.monotonic() - began) * 1000),
        nothing=nothing,
        glob_note=glob_note,
    )
    return _fitted_page(context, options, found, result, lines, nothing, noun, can_open, glob_note)


def _fitted_page(
    context: Context,
    options: ListOptions | GlobOptions,
    found: FoundEntries,
    result: _R,
    lines: Sequence[str],
    nothing: Sequence[str],
    noun: Noun,
    can_open: bool,
    note: str,
) -> _R:
    """Return the result with as many entries as fit into the token budget, and the call for the rest."""
    limits = context.limits
    total, skipped, first = found.total, found.skipped, found.page.first
    if found.exact and (total or options.method == "ls"):
        check_offset(first, total, noun)
    skipped_names = skip_report(skipped, can_open=can_open, found=total > 0)
    counted = f"{total}" if found.exact else f"at least {total}"
    names_page = bool(total) and (first > 0 or not found.exact)

    def answer(count: int) -> _R:
        end = min(found.page.end, total) if count >= len(lines) else first + count
        following = next_page(options, end) if end < total else None
        notes = notes_of(
            f"{noun[1]} {first + 1}-{end} of {counted}" if names_page or following else "",
            continuation(following),
            skipped_names,
            stop_report(skipped, options, limits),
            note,
        )
        text = Joined("\n", "\n".join(lines[:count]) or Joined("; ", *nothing), footer(*notes))
        return replace(result, truncated=following is not None, next=following, text=text, notes=notes)

    return fitted(limits, Shrink(max(min(len(lines), limits.output_tokens), 1), answer))
