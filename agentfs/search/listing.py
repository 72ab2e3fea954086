"""`ls` and `glob`: the results and their text."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TypeVar

from agentfs.base.advice import Joined, Style, Styled, StyleKind, plural
from agentfs.base.visible import one_line
from agentfs.errors import NotFoundError
from agentfs.results import Entry, GlobResult, ListResult
from agentfs.search.entries import FoundEntries, Noun, check_offset, find_entries
from agentfs.search.glob_readings import reinterpret_globs
from agentfs.search.left_out import report_of, stop_report
from agentfs.search.options import GlobOptions, ListOptions, as_list, next_page, parse_types, paths_of
from agentfs.search.other_readings import count_left_out, explain_glob_path, explain_no_entries
from agentfs.shown.workspace_context import Context, watched
from agentfs.text import Shrink, continuation, fitted, footer, notes_of

_LEAST_SIZE = 100 * 1024  # bytes from which on a listing shows the size of a file
_MOST_WHOLE_PATHS = 20  # more are shown as a tree
_HEADER_CHARS = 2  # of a line for a directory, besides its path
_ENTRY = ("entry", "entries")
_R = TypeVar("_R", ListResult, GlobResult)
ShownPath = tuple[str, str, StyleKind]  # a path, the text that follows it in its line, and its kind


@watched
def list_directory(context: Context, options: ListOptions) -> ListResult:
    """List directories; with several levels, each directory is followed by its entries."""
    meant, glob_note = reinterpret_globs(context, options)
    found = find_entries(context, meant)
    least = 0 if options.sort == "size" else _LEAST_SIZE
    shown: list[ShownPath] = [
        (entry.path, _entry_tail(entry, least, found.unlisted), entry.type) for entry in found.entries
    ]
    nothing = "" if found.entries else _nothing_listed(context, meant, found)
    result = ListResult(found.entries, found.total, found.skipped)
    skipped = report_of(options, found.skipped, context.tracker, found=found.total > 0)
    return _fitted_page(context, options, found, result, shown, nothing, _ENTRY, skipped, glob_note)


def _nothing_listed(context: Context, options: ListOptions, found: FoundEntries) -> str:
    paths = paths_of(options.path)
    has, is_ = ("has", "is") if len(paths) == 1 else ("have", "are")
    left_out = count_left_out(context, options) if options.ignore and not found.total else ""
    state = f"{has} nothing to show" if found.skipped or left_out else f"{is_} empty"
    return f"{', '.join(map(one_line, paths))} {state}{left_out}."


def _entry_tail(entry: Entry, least_size: int, unlisted: Mapping[str, int]) -> str:
    """Return the text of `ls` after the path of an entry: a size, a target or a kind."""
    if count := unlisted.get(entry.path):
        return f"/  ({plural(count, *_ENTRY)})"
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
    meant, glob_note = reinterpret_globs(context, options)
    try:
        found = find_entries(context, meant)
    except NotFoundError as error:
        explain_glob_path(context, options, error)
        raise
    nothing = hint = ""
    can_open = True
    if not found.total:
        paths = paths_of(options.path)
        nothing = f"0 {noun[1]} match"
        patterns = [*options.globs, *as_list(options.regex)]
        nothing += f" {', '.join(map(one_line, patterns))}" if patterns else ""
        nothing += "" if paths == ["."] else f" in {', '.join(map(one_line, paths))}"
        hint, can_open = explain_no_entries(context, meant, found)
        nothing += "" if hint else "."
    shown: list[ShownPath] = [
        (each.path, "/" if each.type == "directory" else "", each.type) for each in found.entries
    ]
    result = GlobResult(
        found.entries,
        found.total,
        found.skipped,
        exact=found.exact,
        elapsed_ms=int((time.monotonic() - began) * 1000),
        nothing=() if found.total else (nothing, hint) if hint else (nothing,),
        glob_note=glob_note,
    )
    nothing = Joined("; ", nothing, hint)
    skipped = report_of(options, found.skipped, context.tracker, found=found.total > 0, can_open=can_open)
    return _fitted_page(context, options, found, result, shown, nothing, noun, skipped, glob_note)


def _fitted_page(
    context: Context,
    options: ListOptions | GlobOptions,
    found: FoundEntries,
    result: _R,
    shown: Sequence[ShownPath],
    nothing: str,
    noun: Noun,
    skip_report: str,
    *remarks: str,
) -> _R:
    """Return the result with as many entries as fit into the token budget, and the call for the rest."""
    limits = context.limits
    total, skipped, first = found.total, found.skipped, found.page.first
    lines = path_lines(shown)
    if found.exact and (total or options.method == "ls"):
        check_offset(first, total, noun)
    counted = f"{total}" if found.exact else f"at least {total}"
    names_page = bool(total) and (first > 0 or not found.exact)

    def answer(count: int) -> _R:
        end = min(found.page.end, total) if count >= len(lines) else first + count
        following = next_page(options, end) if end < total else None
        notes = notes_of(
            f"{noun[1]} {first + 1}-{end} of {counted}" if names_page or following else "",
            continuation(following),
            skip_report,
            stop_report(skipped, options, limits),
            *remarks,
        )
        body = Styled(
            "\n".join(lines[:count]), lambda style: "\n".join(path_lines(shown, style=style)[:count])
        )
        text = Joined("\n", body or nothing, footer(*notes))
        return replace(result, truncated=following is not None, next=following, text=text, notes=notes)

    return fitted(limits, Shrink(max(min(len(lines), limits.output_tokens), 1), answer))


def path_lines(paths: Sequence[ShownPath], of: int = 0, style: Style | None = None) -> list[str]:
    """Return a line for each path, or a tree if there are many.

    In a tree, a name is indented below its directory. A directory that is not listed precedes the first of
    several paths below it, if that makes the text shorter.

    Args:
        paths: Each path, with the text that follows it in its line, and its kind.
        of: The number of paths in the full list, if `paths` is a part of it.
        style: Shows the paths.
    """
    is_flat = not any("/" in path or path.startswith(" ") for path, _, _ in paths)
    if is_flat or max(len(paths), of) <= _MOST_WHOLE_PATHS:
        return [_shown(path, kind, style) + tail for path, tail, kind in paths]
    full = [f"{path}/" if tail == "/" else path for path, tail, _ in paths]
    # A name that begins with a space would look indented further.
    indentable = ["/ " not in f"/{path}" for path in full]
    shared = [
        _shared_directory(*pair) if both == (True, True) else 0
        for pair, both in zip(pairwise(full), pairwise(indentable), strict=True)
    ]
    shared.append(0)
    lines: list[str] = []
    opened: list[str] = []  # the current directories, each with a trailing `/`
    for number, (path, tail, kind) in enumerate(paths):
        while opened and not (indentable[number] and path.startswith(opened[-1])):
            opened.pop()
        text, inside = "", len(opened[-1]) if opened else 0
        for end in _headers(shared, number, inside, path.rfind("/") + 1) if shared[number] > inside else ():
            above: StyleKind = "path" if kind == "path" else "directory"
            text += _indented(path[: end - 1], opened, above, style) + "/\n"
            opened.append(path[:end])
        lines.append(f"{text}{_indented(path, opened, kind, style)}{tail}")
        if tail == "/":
            opened.append(f"{path}/")
    return lines


def _shown(path: str, kind: StyleKind, style: Style | None) -> str:
    return one_line(path) if style is None else style(kind, one_line(path))


def _indented(path: str, opened: Sequence[str], kind: StyleKind, style: Style | None) -> str:
    """Return a path below the directory that was opened last; a leading space does not look like one."""
    name = path[len(opened[-1]) if opened else 0 :]
    return f"{' ' * len(opened)}{'./' * path.startswith(' ')}{_shown(name, kind, style)}"


def _shared_directory(path: str, following: str) -> int:
    """Return the length of the directory that two paths share, with its trailing `/`."""
    end = path.rfind("/") + 1
    while end and not following.startswith(path[:end]):
        end = path.rfind("/", 0, end - 1) + 1
    return end


def _headers(shared: Sequence[int], number: int, above: int, most: int) -> list[int]:
    """Return the lengths of the directories to show ahead of a path, the outermost first.

    Each is longer than `above`, at most as long as `most`, and saves more text below it than it takes.
    """
    ends: list[tuple[int, int]] = []  # with the number of paths below each
    least, at = most, number
    while (least := min(least, shared[at])) > above:
        at += 1
        if ends and ends[-1][0] == least:
            ends.pop()
        ends.append((least, at - number + 1))
    chosen: list[int] = []
    for end, count in reversed(ends):
        if (count - 1) * (end - above) > count + _HEADER_CHARS:
            chosen.append(end)
            above = end
    return chosen
