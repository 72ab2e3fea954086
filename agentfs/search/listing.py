"""`ls` and `glob`: the results and their text."""

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from posixpath import commonprefix
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
from agentfs.text.display import continuation, fitted, footer, notes_of

_LEAST_SIZE = 100 * 1024  # bytes from which on a listing shows the size of a file
_MOST_WHOLE_PATHS = 20  # of more paths, shared directories are shown once
_ENTRY = ("entry", "entries")
_R = TypeVar("_R", ListResult, GlobResult)


@watched
def list_directory(context: Context, options: ListOptions) -> ListResult:
    """List directories; with several levels, each directory is followed by its entries."""
    found = find_entries(context, with_relative_globs(context.root, options))
    least = 0 if options.sort == "size" else _LEAST_SIZE
    paths = [_path_text(entry, least) for entry in found.entries]
    nothing = [] if found.entries else [_nothing_listed(options, found)]
    result = ListResult(found.entries, found.total, found.skipped)
    depth = f"{plural(found.depth, 'level')} shown, as more do not fit one page" if found.depth else ""
    can_open = not options.include_ignored
    return _fitted_page(context, options, found, result, paths, nothing, _ENTRY, can_open, depth)


def _nothing_listed(options: ListOptions, found: FoundEntries) -> str:
    ignored = " with this ignore" * bool(options.ignore)
    state = f"nothing to show{ignored}" if found.skipped or ignored else "empty"
    return f"{', '.join(map(one_line, paths_of(options.path)))}: {state}."


def _path_text(entry: Entry, least_size: int) -> tuple[str, str]:
    """Return the path of an entry, with `/` after a directory, and what `ls` shows after it."""
    path = one_line(entry.path)
    tail = "  (protected)" if entry.protected and not entry.is_dir else ""
    if entry.type == "symlink":
        target = "(outside the workspace)" if entry.target is None else one_line(entry.target)
        return path, f"{tail} -> {target}"
    if entry.is_dir:
        return f"{path}/", "" if entry.mount is None else f"  ({entry.mount} mount)"
    if entry.type == "other":
        return path, f"{tail}  (special file)"
    size = entry.size or 0
    return path, f"{tail}  {_size_text(size)}" if size >= least_size else tail


def _size_text(size: int) -> str:
    amount = float(size)
    for unit in ("B", "KB", "MB", "GB"):
        if amount < 1023.5:  # it is not rounded to 1024
            return f"{amount:.0f} {unit}" if unit == "B" or amount >= 9.95 else f"{amount:.1f} {unit}"
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
    paths = [(one_line(each.path) + "/" * (each.type == "directory"), "") for each in found.entries]
    result = GlobResult(
        found.entries,
        found.total,
        found.skipped,
        exact=found.exact,
        elapsed_ms=int((time.monotonic() - began) * 1000),
        nothing=nothing,
        glob_note=glob_note,
    )
    return _fitted_page(context, options, found, result, paths, nothing, noun, can_open, glob_note)


def _fitted_page(
    context: Context,
    options: ListOptions | GlobOptions,
    found: FoundEntries,
    result: _R,
    paths: Sequence[tuple[str, str]],
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
        end = min(found.page.end, total) if count >= len(paths) else first + count
        following = next_page(options, end) if end < total else None
        notes = notes_of(
            f"{noun[1]} {first + 1}-{end} of {counted}" if names_page or following else "",
            continuation(following),
            skipped_names,
            stop_report(skipped, options, limits),
            note,
        )
        text = Joined(
            "\n", path_lines(paths[:count], of=len(paths)) or Joined("; ", *nothing), footer(*notes)
        )
        return replace(result, truncated=following is not None, next=following, text=text, notes=notes)

    return fitted(limits, (max(min(len(paths), limits.output_tokens), 1), answer))


def path_lines(paths: Sequence[tuple[str, str]], *, of: int) -> str:
    """Return a line for each path with the text after it; `of` is the number of paths before any were cut.

    If there are many, a directory that neighbours share is shown once, above their indented names. It ends
    with `:` if it could be taken for one of the paths.
    """
    names = "\n".join([f"/{path.rstrip('/')}" for path, _ in paths])
    is_flat = names.count("/") == len(paths)
    # A name that begins with a space would look indented.
    if of <= _MOST_WHOLE_PATHS or is_flat or "/ " in names:
        return "\n".join(path + tail for path, tail in paths)
    return "\n".join(_indented(paths, 0, ":" * any(path.endswith("/") for path, _ in paths)))


def _indented(paths: Sequence[tuple[str, str]], above: int, mark: str) -> list[str]:
    """Return the lines of paths that share their first `above` characters, which are not shown."""
    lines: list[str] = []
    start = 0
    while start < len(paths):
        path, tail = paths[start]
        directory = path[: path.find("/", above) + 1]
        end = start + 1
        while directory and end < len(paths) and paths[end][0].startswith(directory):
            end += 1
        if end - start == 1:
            lines.append(path[above:] + tail)
        else:
            shared = commonprefix([path for path, _ in paths[start:end]])
            shared = shared[: shared.rfind("/") + 1]
            is_listed = path == shared
            lines.append(shared[above:] + (tail if is_listed else mark))
            lines += [f" {line}" for line in _indented(paths[start + is_listed : end], len(shared), mark)]
        start = end
    return lines
