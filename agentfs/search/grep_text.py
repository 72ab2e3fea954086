"""The answer of `grep`: hints if nothing was found, line ids, and the text of the result."""

import json
import time
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate, groupby, islice
from operator import attrgetter

from agentfs.base.advice import Joined, plural
from agentfs.base.visible import one_line, visible
from agentfs.errors import AgentFSError
from agentfs.fs import Root, quote, revision_of
from agentfs.limits import Limits
from agentfs.results import FileCount, GlobResult, GrepResult, Match
from agentfs.search.entries import check_offset
from agentfs.search.excerpts import without_marks
from agentfs.search.grep import SearchResult, search
from agentfs.search.left_out import skip_report, stop_report
from agentfs.search.listing import path_lines
from agentfs.search.options import GrepOptions, next_page, paths_of
from agentfs.search.other_globs import search_with_meant_globs
from agentfs.search.second_look import plain_text_reading, second_look
from agentfs.shown.outputs import OutputStore
from agentfs.shown.read_tracker import ReadTracker
from agentfs.shown.workspace_context import Context, watched
from agentfs.text.decoding import decode
from agentfs.text.display import continuation, first_names, fitted, footer, most_characters, notes_of
from agentfs.text.lines import bodies_of
from agentfs.text.notebook import shown_text

_IN_NO_FILE = "\ue000\uf8ff\ue000\uf8ff"  # private characters
_MOST_NAMED = 20
_COUNTED_AT_A_GLANCE = 5  # if no more matches than this are all shown, the answer does not count them


@watched
def grep_files(context: Context, options: GrepOptions) -> GrepResult:
    """Search the contents of files and kept outputs with a regular expression.

    Args:
        context: The root, the limits, the kept outputs, which can be searched by name, and the read history,
            which has the line ids.
        options: The arguments of the call.

    Returns:
        The matches of one page, the totals and the text for the model.

    Raises:
        AgentFSError: As `Workspace.grep`.
    """
    began = time.monotonic()
    if options.encoding is not None:  # the kept texts were decoded without this encoding
        context = context._replace(root=context.root.view(tree=None))
    meant, found, glob_note = search_for(context, options)
    if options.line_ids:
        found.matches = _with_line_ids(context, found.matches, fresh=options.fresh_ids)
    nothing: list[str] = []
    can_open = not options.include_ignored
    if not found.total_lines:
        nothing.append(_nothing(options, found))
        if found.skipped.reached is None:
            reading, may_have_more = second_look(context, meant, found.excluded, searched=found.searched)
            nothing += [] if reading is None else [reading.hint(meant)]
            can_open = can_open and may_have_more
    elif (plain := plain_text_reading(context, meant)) is not None:
        nothing.append(plain.hint(meant))
    if found.page.first and found.entries and found.skipped.reached is None and not found.is_full:
        noun = ("match", "matches") if options.by_line else ("file", "files")
        check_offset(found.page.first, found.entries, noun)
    result = GrepResult(
        matches=found.matches,
        counts=found.counts,
        total_matches=found.total_matches,
        total_lines=found.total_lines,
        total_files=found.total_files,
        skipped=found.skipped,
        exact=found.exact,
        searched_files=found.searched,
        elapsed_ms=round((time.monotonic() - began) * 1000),
        nothing=tuple(nothing),
        glob_note=glob_note,
    )
    most = _most_shown(found, options, context.limits)
    shown = partial(_shown, context.limits, options, found, result, can_open)
    return fitted(context.limits, (max(most, 1), shown), *[(0, shown)][:most])


def _most_shown(found: SearchResult, options: GrepOptions, limits: Limits) -> int:
    """Return an upper bound for the number of matches or files that fit into the token budget."""
    if not options.by_line:
        return len(found.counts)
    ends = list(accumulate([len(match.text) + 1 for match in found.matches]))
    return max(bisect_right(ends, most_characters(limits)), bool(ends))


def search_for(context: Context, options: GrepOptions) -> tuple[GrepOptions, SearchResult, str]:
    """Search with the globs as they are meant; also return these options, and a note on the globs."""

    def has_files(found: SearchResult) -> bool:
        skipped = found.skipped
        unsearched = skipped.binary + skipped.too_large + skipped.undecodable + skipped.protected
        return bool(found.searched or unsearched or skipped.reached)

    return search_with_meant_globs(context.root, options, partial(search, context), has_files)


def keep_files(root: Root, limits: Limits) -> bool:
    """Search a watched tree for a text that no file has, so that it keeps all it can.

    Returns:
        True if nothing is left to keep.
    """
    with root.watching() as watched_root:
        texts = watched_root.texts
        if texts is None:
            return False
        context = Context(watched_root, ReadTracker(), limits, OutputStore())
        found = search(context, GrepOptions(_IN_NO_FILE, max_filesize=texts.max_file))
        return found.skipped.reached is None and texts.budget > 0


def _with_line_ids(context: Context, matches: Sequence[Match], *, fresh: bool) -> list[Match]:
    """Give matches the id of their first line, except in files that have changed or are too large."""
    found: list[Match] = []
    for path, group in groupby(matches, key=attrgetter("path")):
        lines = dict(enumerate(_lines_with_ids(context, path, fresh=fresh), 1))
        for match in group:
            line, line_id = lines.get(match.line, ("", None))
            is_there = without_marks(match)[0].partition("\n")[0] in line
            found.append(replace(match, line_id=line_id) if is_there else match)
    return found


def _lines_with_ids(context: Context, path: str, *, fresh: bool) -> list[tuple[str, str]]:
    """Return the lines of a file, each with its id; empty if the file has no valid ids."""
    root, tracker, limits, _ = context
    try:
        with root.open_file(path) as file:
            data = file.read(limits.file_bytes + 1)
            real_path = file.real_path
        revision = revision_of(data)
        text = shown_text(path, decode(data).text) if len(data) <= limits.file_bytes else None
    except AgentFSError:
        return []
    if text is None or (fresh and tracker.latest_ids(real_path) != revision):
        return []
    return list(zip(bodies_of(text), tracker.line_ids(real_path, revision, text), strict=False))


def _shown(
    limits: Limits, options: GrepOptions, found: SearchResult, result: GrepResult, can_open: bool, count: int
) -> GrepResult:
    """Show the first `count` matches or files of a page; 0 shows the totals, because not even one fits."""
    body_of = options if count else replace(options, output_mode="total")
    first, by_line, count = found.page.first, options.by_line, max(count, 1)
    matches, counts, end = found.matches, found.counts, found.page.end
    if count < len(matches if by_line else counts):
        end = first + count
        matches = matches[:count] if by_line else matches
        counts = counts if by_line else dict(islice(counts.items(), count))
    has_more = options.output_mode != "total" and end < found.entries
    following = next_page(options, end) if has_more else None
    is_part = body_of is options and (has_more or first > 0)
    last = min(end, found.entries)
    position = f"shown: {first + 1}-{last}" if last > first else "nothing shown from this offset"
    few = found.exact and found.total_matches <= min(found.entries, _COUNTED_AT_A_GLANCE)
    says_totals = found.total_lines and body_of.output_mode != "total"
    notes = notes_of(
        _totals(found) if says_totals and not (by_line and few and not is_part) else "",
        Joined("; ", position, continuation(following)) if is_part else "",
        stop_report(found.skipped, options, limits, found.ended_in),
        result.glob_note,
        _context_note(body_of),
        skip_report(found.skipped, can_open=can_open, found=found.total_lines > 0),
    )
    body: Sequence[str] = result.nothing
    if found.total_lines:
        body, notes = [_body(body_of, found, matches, counts)], (*result.nothing, *notes)
    text = Joined("\n", *body, footer(*notes))
    return replace(result, text=text, notes=notes, next=following, truncated=has_more)


def _nothing(options: GrepOptions, found: SearchResult) -> str:
    named = None if isinstance(options.files, GlobResult) else options.listed
    where = first_names([*map(quote, named or paths_of(options.path))], _MOST_NAMED)
    pattern = one_line(json.dumps(options.pattern, ensure_ascii=False))
    return f"No matches for {pattern} in {where} ({plural(found.searched, 'file')} searched)."


def _body(
    options: GrepOptions, found: SearchResult, matches: Sequence[Match], counts: Mapping[str, FileCount]
) -> str:
    """Return the text above the footer."""
    of = len(found.counts)
    match options.output_mode:
        case "content":
            lines = _content_lines(matches, numbers=options.line_numbers)
        case "files_with_matches":
            return path_lines([(one_line(path), "") for path in counts], of=of)
        case "count":
            return path_lines(_count_texts(counts), of=of)
        case "summary":
            lines = _summary_lines(matches, counts)
        case _:
            totals = _totals(found)
            lines = [f"{totals[0].upper()}{totals[1:]}."]
    return "\n".join(lines)


def _context_note(options: GrepOptions) -> str:
    requested = max(options.context or 0, options.before or 0, options.after or 0)
    most = options.max_context
    return f"context is at most {most}" if requested > most and options.by_line else ""


def _content_lines(matches: Sequence[Match], *, numbers: bool) -> list[str]:
    """Return matches by file: `{n}|{line}` for a matching line, `{n}-{line}` for one around it."""
    lines: list[str] = []
    for path, group in _by_file(matches).items():
        lines += [""] * bool(lines) + [one_line(path)]
        lines += _numbered_matches(group, numbers=numbers)
    return lines


def _summary_lines(matches: Sequence[Match], counts: Mapping[str, FileCount]) -> list[str]:
    """Return the counts of each file with its first matches."""
    samples = _by_file(matches)
    lines: list[str] = []
    for path, head in zip(counts, _count_texts(counts), strict=True):
        lines += ["".join(head), *(f"  {line}" for line in _numbered_matches(samples.get(path, [])))]
    return lines


def _by_file(matches: Sequence[Match]) -> dict[str, list[Match]]:
    return {path: list(group) for path, group in groupby(matches, key=attrgetter("path"))}


def _numbered_matches(matches: Sequence[Match], *, numbers: bool = True) -> list[str]:
    """Return the numbered lines of the matches of one file, with `--` between lines that are not adjacent."""
    rows: dict[int, tuple[str, str]] = {}  # a line near several matches is shown once
    for match in matches:
        end = match.line + match.text.count("\n")
        lines = [*match.before, *match.text.split("\n"), *match.after]
        for number, line in enumerate(lines, match.line - len(match.before)):
            if match.line <= number <= end:
                line_id = f" {match.line_id}" if match.line_id and number == match.line else ""
                rows[number] = (f"{line_id}|", line)
            elif number not in rows:
                rows[number] = ("-", line)
    ordered = sorted(rows)
    width = len(str(ordered[-1])) if ordered else 1
    bodies = visible("\n".join([rows[number][1] for number in ordered])).split("\n")
    has_context = any(mark == "-" for mark, _ in rows.values())
    shown: list[str] = []
    for number, before, line in zip(ordered, [0, *ordered], bodies, strict=False):
        if has_context and number - 1 != before and shown:
            shown.append("--")
        shown.append(f"{number:>{width}}{rows[number][0]}{line}" if numbers else line)
    return shown


def _count_texts(counts: Mapping[str, FileCount]) -> list[tuple[str, str]]:
    """Return each path with its count, such as `: 3` lines, or `: 3 (5 matches)` if the numbers differ."""
    return [
        (
            one_line(path),
            f": {each.lines}"
            + ("" if each.matches == each.lines else f" ({plural(each.matches, 'match', 'matches')})"),
        )
        for path, each in counts.items()
    ]


def _totals(found: SearchResult) -> str:
    matches, lines = found.total_matches, found.total_lines
    where = f"in {plural(found.total_files, 'file')}"
    least = "" if found.exact else "at least "
    if matches == lines:
        return f"{least}{plural(lines, 'matching line')} {where}"
    return f"{least}{plural(matches, 'match', 'matches')} on {plural(lines, 'line')} {where}"
