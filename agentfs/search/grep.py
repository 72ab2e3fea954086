"""`grep`: the search, hints if nothing was found, and the text of the result."""

import json
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby, islice
from operator import attrgetter

from agentfs.base.advice import Advice, Joined, Retry, Style, Styled, plural
from agentfs.base.visible import one_line
from agentfs.errors import AgentFSError, InvalidPatternError, NotFoundError
from agentfs.fs import Root, display_name, quote, revision_of
from agentfs.limits import Limits
from agentfs.results import FileCount, GlobResult, GrepResult, Match
from agentfs.search.entries import check_offset
from agentfs.search.glob_readings import reinterpret_globs
from agentfs.search.left_out import report_of, stop_report
from agentfs.search.listing import path_lines
from agentfs.search.options import GrepOptions, next_page, paths_of
from agentfs.search.other_readings import explain_glob_path, explain_pattern, other_reading, rooted_glob_hint
from agentfs.search.searcher import Finding, search
from agentfs.shown.outputs import NO_LINE_IDS, OutputStore
from agentfs.shown.read_tracker import ReadTracker
from agentfs.shown.workspace_context import Context, watched
from agentfs.text import (
    Shrink,
    bodies_of,
    continuation,
    decode,
    first_names,
    fitted,
    footer,
    most_characters,
    most_that_fit,
    notes_of,
    visible,
    with_note,
)
from agentfs.text.notebook import shown_text

_IN_NO_FILE = "\ue000\uf8ff\ue000\uf8ff"  # private characters
_MOST_NAMED = 20
_COUNTED_AT_A_GLANCE = 5  # if no more matches than this are all shown, the answer does not count them


@watched
def grep_files(context: Context, options: GrepOptions) -> GrepResult:
    """Search the contents of files and kept outputs with a regular expression.

    Args:
        context: The root, the limits, the kept outputs, which can be searched by name, and the read history,
            which has the line ids and remembers the last skip report.
        options: The arguments of the call.

    Returns:
        The matches of one page, the totals and the text for the model.

    Raises:
        AgentFSError: As `Workspace.grep`.
    """
    began = time.monotonic()
    options, texts = _resolve_names(options, context.outputs, context.root)
    if options.encoding is not None:  # kept texts were read without it
        context = context._replace(root=context.root.unwatched)
    meant, glob_note = (options, "") if texts else reinterpret_globs(context, options)
    try:
        found = search(context, meant, texts=texts)
    except NotFoundError as error:
        explain_glob_path(context, options, error)
        raise
    except InvalidPatternError as error:
        explain_pattern(context, meant, error)
        raise
    if options.line_ids:
        found.matches = _with_line_ids(context, found.matches, fresh=options.fresh_ids)
    hints: list[str] = []
    can_open = True
    if not found.total_lines and found.skipped.reached is None and not texts:
        reading, can_open = other_reading(context, meant, found)
        hints = [] if reading is None else [reading.hint(meant)]
        if not found.searched and (rooted := rooted_glob_hint(meant)):
            hints.append(_sentence(rooted))
    if found.exact and found.entries:
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
        nothing=() if found.total_lines else (_nothing(options, found), *hints),
        glob_note=glob_note,
    )
    remarks = glob_note, _context_note(options), _empty_group_note(options)
    skipped = report_of(
        options, found.skipped, context.tracker, found=found.total_lines > 0, can_open=can_open
    )
    result = _Answer(context.limits, options, found, result, remarks, skipped).fitted()
    if options.line_ids and texts:
        return with_note(result, NO_LINE_IDS)
    return result


def _resolve_names(
    options: GrepOptions, outputs: OutputStore, root: Root
) -> tuple[GrepOptions, dict[str, str]]:
    """Replace names of outputs that are files by their paths; return the texts of the others by name."""
    texts = dict[str, str]()

    def path_of(name: str) -> str:
        text, path = outputs.resolve(name, root)
        if path is None:
            texts[name] = text
        return name if path is None else path

    path, files = options.path, options.files
    path = path_of(path) if isinstance(path, str) else [*map(path_of, path)]
    if files is not None and not isinstance(files, GlobResult):
        files = [*map(path_of, files)]
    if (path, files) == (options.path, options.files):
        return options, texts
    return replace(options, path=path, files=files), texts


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
    for path, group in groupby(matches, key=lambda match: match.path):
        lines = _lines_with_ids(context, path, fresh=fresh)
        for match in group:
            line, line_id = lines[match.line - 1] if match.line <= len(lines) else ("", None)
            has_id = line_id is not None and _is_of(match, line)
            found.append(replace(match, line_id=line_id) if has_id else match)
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


def _is_of(match: Match, line: str) -> bool:
    """Return True if the text of a match is this line, or parts of it if the match was cut."""
    first = match.text.partition("\n")[0]
    if first == line:
        return True
    kept = [part.partition("⟧")[2] or part for part in first.split("⟦+")]
    return "⟦+" in first and all(part in line for part in kept)


class _Answer:
    """The result of a search, with as much text as `Limits.output_tokens` allow.

    A result that is too long shows less context, then fewer matches or files, then totals.
    """

    def __init__(
        self,
        limits: Limits,
        options: GrepOptions,
        found: Finding,
        result: GrepResult,
        remarks: Sequence[str],
        skip_report: str,
    ) -> None:
        self._limits = limits
        self._options = options
        self._found = found
        self._result = result
        self._remarks = remarks
        self._on_page = len(found.matches if options.by_line else found.counts)
        most = _most_rendered(found.matches, limits) if options.by_line else limits.output_tokens
        self._rendered = self._most = min(most, self._on_page)
        if options.by_line and self._rendered:  # joined lines are counted faster than complete results
            lines = [
                f"{match.line}|{match.text}" if options.line_numbers else match.text
                for match in found.matches[: self._rendered]
            ]
            fitting = most_that_fit(self._rendered, lambda count: "\n".join(lines[:count]), limits)
            self._most = max(fitting, 1)
        self._stopped = _stop(limits, options, found) if found.skipped.reached else ""
        self._skip_report = skip_report

    def fitted(self) -> GrepResult:
        """Return the result."""
        by_line, found, most = self._options.by_line, self._found, self._most
        whole = self._show(self._rendered)
        around = [max(len(each.before), len(each.after)) for each in found.matches[:most]] if by_line else []

        def everything(_: int) -> GrepResult:
            return whole

        def with_context(count: int) -> GrepResult:
            return self._show(most, count - 1)

        def with_entries(count: int) -> GrepResult:
            return self._show(count, 0 if by_line else None)

        def only_totals(_: int) -> GrepResult:
            return self._totals_of(whole)

        steps = [
            Shrink(1, everything),
            Shrink(max(around, default=0), with_context),
            Shrink(most, with_entries),
            Shrink(min(1, found.total_lines), only_totals),
        ]
        return fitted(self._limits, *(step for step in steps if step.most))

    def _show(self, count: int, context: int | None = None) -> GrepResult:
        """Show the first `count` matches or files, with at most `context` lines around each match."""
        options, found, limits = self._options, self._found, self._limits
        first, by_line = found.page.first, options.by_line
        matches, counts, end = found.matches, found.counts, found.page.end
        if count < self._on_page:
            end = first + count
            matches = matches[:count] if by_line else matches
            counts = counts if by_line else dict(islice(counts.items(), count))
        note = ""
        if context is not None:
            matches = [_with_context(match, context) for match in matches]
            if count == self._most:
                lines = plural(context, "line")
                note = f"at most {lines} of context, as {limits.output_tokens} tokens hold no more"
        following = None
        if options.output_mode != "total" and end < found.entries:
            following = next_page(options, end)
        is_part = following is not None or first > 0
        last = min(end, found.entries)
        position = f"shown: {first + 1}-{last}" if last > first else "nothing shown from this offset"
        few = found.exact and found.total_matches <= min(found.entries, _COUNTED_AT_A_GLANCE)
        says_totals = found.total_lines and options.output_mode != "total"
        notes = notes_of(
            _totals(found) if says_totals and not (by_line and few and not is_part) else "",
            Joined("; ", position, continuation(following)) if is_part else "",
            note,
            self._stopped,
            *self._remarks,
            self._skip_report,
        )
        body: Sequence[str] = self._result.nothing
        if found.total_lines:
            shown = partial(_body, options, found, matches, counts)
            body = [Styled(shown(None), shown)]
        text = Joined("\n", *body, footer(*notes))
        return replace(self._result, text=text, notes=notes, next=following, truncated=following is not None)

    def _totals_of(self, whole: GrepResult) -> GrepResult:
        notes = notes_of(self._stopped, self._skip_report)
        return replace(whole, text=Joined("\n", _sentence(_totals(self._found)), footer(*notes)), notes=notes)


def _nothing(options: GrepOptions, found: Finding) -> str:
    named = None if isinstance(options.files, GlobResult) else options.listed
    where = first_names([*map(quote, named or paths_of(options.path))], _MOST_NAMED)
    pattern = one_line(json.dumps(options.pattern, ensure_ascii=False))
    return f"No matches for {pattern} in {where} ({plural(found.searched, 'file')} searched)."


def _body(
    options: GrepOptions,
    found: Finding,
    matches: Sequence[Match],
    counts: Mapping[str, FileCount],
    style: Style | None,
) -> str:
    """Return the text above the footer."""
    match options.output_mode:
        case "content":
            lines = _content_lines(matches, style, numbers=options.line_numbers)
        case "files_with_matches":
            lines = path_lines([(path, "", "path") for path in counts], len(found.counts), style)
        case "count":
            lines = _count_lines(counts, style, len(found.counts))
        case "summary":
            lines = _summary_lines(matches, counts, style, len(found.counts))
        case _:
            lines = [_sentence(_totals(found))]
    return "\n".join(lines)


def _most_rendered(matches: Sequence[Match], limits: Limits) -> int:
    """Return an upper bound for the number of matches that fit into the token budget without context."""
    characters = most_characters(limits)
    for number, match in enumerate(matches):
        characters -= len(match.text) + 1
        if characters < 0 or number == limits.output_tokens:
            return max(number, 1)
    return len(matches)


def _with_context(match: Match, lines: int) -> Match:
    """Return a match with at most `lines` lines on either side."""
    before = match.before[max(len(match.before) - lines, 0) :]
    return replace(match, before=before, after=match.after[:lines]) if match.before or match.after else match


def _stop(limits: Limits, options: GrepOptions, found: Finding) -> str:
    report = stop_report(found.skipped, options, limits)
    if not found.ended_in:
        return report
    return Joined(" ", report, f"(it was searching {one_line(display_name(found.ended_in))})")


def _context_note(options: GrepOptions) -> str:
    requested = max(options.context or 0, options.before or 0, options.after or 0)
    most = options.max_context
    return f"context is at most {most}" if requested > most and options.by_line else ""


_EMPTY_GROUP = re.compile(r"(\w)\(\)")  # `\w` before it excludes a backslash


def _empty_group_note(options: GrepOptions) -> str:
    """Explain that `()` matches nothing, if it follows a name and was probably meant literally."""
    if options.fixed_strings or not _EMPTY_GROUP.search(options.pattern):
        return ""
    meant = _EMPTY_GROUP.sub(r"\1\\(\\)", options.pattern)
    return Advice("() in a pattern matches nothing: to match it, ", Retry({"pattern": meant}))


def _content_lines(matches: Sequence[Match], style: Style | None, *, numbers: bool) -> list[str]:
    """Return matches by file: `{n}|{line}` for a matching line, `{n}-{line}` for one around it."""
    lines: list[str] = []
    for path, group in _by_file(matches).items():
        lines += [""] * bool(lines) + path_lines([(path, "", "path")], style=style)
        lines += _numbered_matches(group, style, numbers=numbers)
    return lines


def _summary_lines(
    matches: Sequence[Match], counts: Mapping[str, FileCount], style: Style | None, of: int
) -> list[str]:
    """Return the counts of each file with its first matches."""
    samples = _by_file(matches)
    lines: list[str] = []
    for path, head in zip(counts, _count_lines(counts, style, of), strict=True):
        name = head.rpartition("\n")[2]
        indent = " " * (len(name) - len(name.lstrip(" ")) + 2)
        lines += [head, *(indent + line for line in _numbered_matches(samples.get(path, []), style))]
    return lines


def _by_file(matches: Sequence[Match]) -> dict[str, list[Match]]:
    return {path: list(group) for path, group in groupby(matches, key=attrgetter("path"))}


def _numbered_matches(
    matches: Sequence[Match], style: Style | None = None, *, numbers: bool = True
) -> list[str]:
    """Return the numbered lines of the matches of one file, with `--` between lines that are not adjacent."""
    rows: dict[int, tuple[str, str]] = {}  # a line near several matches is shown once
    ids: dict[int, str] = {}
    for match in matches:
        body = match.text.split("\n")
        if match.line_id is not None:
            ids[match.line] = f" {match.line_id}"
        for number, line in enumerate(match.before, match.line - len(match.before)):
            rows.setdefault(number, ("-", line))
        rows.update({number: ("|", line) for number, line in enumerate(body, match.line)})
        for number, line in enumerate(match.after, match.line + len(body)):
            rows.setdefault(number, ("-", line))
    ordered = sorted(rows)
    width = len(str(ordered[-1])) if ordered else 1
    bodies = visible("\n".join(rows[number][1] for number in ordered)).split("\n")
    if style is not None:
        bodies = _with_spans(bodies, ordered, matches, style)
    has_context = any(mark == "-" for mark, _ in rows.values())
    lines: list[str] = []
    last = ordered[0] if ordered else 0
    for number, line in zip(ordered, bodies, strict=bool(ordered)):
        if has_context and number > last + 1:
            lines.append("--")
        head = ""
        if numbers:
            head = f"{number:>{width}}" if style is None else style("number", f"{number:>{width}}")
            head += f"{ids.get(number, '')}{rows[number][0]}"
        lines.append(head + line)
        last = number
    return lines


def _with_spans(
    shown: Sequence[str], numbers: Sequence[int], matches: Sequence[Match], style: Style
) -> list[str]:
    """Show the matches in visible lines in a style."""
    styled = dict(zip(numbers, shown, strict=False))
    for match in matches:
        at = 0
        for number, line in enumerate(match.text.split("\n"), match.line):
            plain = made = ""
            done = 0
            for start, end in [*match.spans, (at + len(line), at + len(line))]:
                first, last = (min(max(each - at, 0), len(line)) for each in (start, end))
                between, found = visible(line[done:first]), visible(line[first:last])
                plain += between + found
                made += between + (style("match", found) if found else "")
                done = last
            if plain == styled[number]:  # a match may divide an emoji
                styled[number] = made
            at += len(line) + 1
    return list(styled.values())


def _count_lines(counts: Mapping[str, FileCount], style: Style | None, of: int) -> list[str]:
    """Return `path: 3` for each file, with the number of matches if it differs from that of lines."""
    tails = [
        f": {each.lines}"
        + ("" if each.matches == each.lines else f" ({plural(each.matches, 'match', 'matches')})")
        for each in counts.values()
    ]
    return path_lines([(path, tail, "path") for path, tail in zip(counts, tails, strict=True)], of, style)


def _totals(found: Finding) -> str:
    matches, lines = found.total_matches, found.total_lines
    where = f"in {plural(found.total_files, 'file')}"
    least = "" if found.exact else "at least "
    if matches == lines:
        return f"{least}{plural(lines, 'matching line')} {where}"
    return f"{least}{plural(matches, 'match', 'matches')} on {plural(lines, 'line')} {where}"


def _sentence(phrase: str) -> str:
    return f"{phrase[0].upper()}{phrase[1:]}."
