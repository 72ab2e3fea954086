"""The text of a search, as much of it as its budget of tokens holds, and what it says of what was skipped."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby, islice, pairwise
from operator import attrgetter

from agentfs.advice import Advice, Joined, ParameterName, Retry, plural
from agentfs.fs import display_name, quote
from agentfs.limits import Limits
from agentfs.read_tracker import ReadTracker
from agentfs.results import FileCount, GlobResult, GrepResult, Match, Skipped
from agentfs.search.collect import check_offset
from agentfs.search.options import GrepOptions, SearchOptions, next_page, paths_of, seconds_of
from agentfs.search.searcher import Finding
from agentfs.text import Shrink, continuation, first_names, fitted, footer, notes_of, visible
from agentfs.visible import one_line

OPEN_IGNORED = Retry({"include_ignored": True})  # searches hidden and ignored names in the same call
RULE_CHARS = 80
_MAX_RULES = 2
_MOST_WHOLE_PATHS = 20
_MOST_NAMED = 20
_COUNTED_AT_A_GLANCE = 5  # matches that are all shown, so that their number need not be
_CHARS_PER_TOKEN = 256  # of matches that are tried to be shown

_REASONS = (
    ("hidden", "hidden"),
    ("ignored", "ignored"),
    ("vcs", "version control"),
    ("protected", "protected"),
    ("binary", "binary"),
    ("too_large", "too large"),
    ("undecodable", "undecodable"),
    ("unreadable", "unreadable"),
    ("symlink", "links"),
    ("special", "special files"),
    ("too_deep", "too deep to name"),
    ("long_lines", "with lines too long for a pattern that repeats groups"),
)
_NEVER_SEARCHED = frozenset({"vcs", "binary"})
# What a search was to look into and could not: an incomplete answer says so every time.
_NOT_SEARCHED = frozenset({"too_large", "undecodable", "unreadable", "long_lines"})
_REACHED = {
    "walk_entries": "the most entries that one walk looks at",
    "memory": "the most memory that one call may take",
}


def skip_report(skipped: Skipped, *, can_open: bool, found: bool = False, repeated: bool = False) -> str:
    """Say what was skipped, and with `can_open` how to search what is hidden or ignored; "" for nothing.

    If something was `found`, names that are never searched are not mentioned. If the last report is
    `repeated`, only what makes the answer incomplete is.
    """
    reasons = [
        (name, words)
        for name, words in _REASONS
        if name in _NOT_SEARCHED or not (repeated or (found and name in _NEVER_SEARCHED))
    ]
    counted: list[str] = []
    for name, words in reasons:
        if count := getattr(skipped, name):
            counted.append(f"{count} {words}{_rules(skipped.rules) if name == 'ignored' else ''}")
    report = f"left out: {', '.join(counted)}" if counted else ""
    if not counted and not skipped.unread_rules:
        return ""
    if can_open and not repeated and (skipped.hidden or skipped.ignored):
        report = Joined(" ", report, Advice("(", OPEN_IGNORED, " for hidden and ignored)"))
    unread = ""
    if skipped.unread_rules:
        unread = first_names([one_line(display_name(file)) for file in skipped.unread_rules], _MAX_RULES)
        unread = f"rule files not read, as they are too large or cannot be: {unread}"
    return Joined("; ", report, unread)


def path_lines(paths: Sequence[tuple[str, str]], of: int = 0) -> list[str]:
    """Return a line for each path with what follows it, as a tree where they are many, or a part `of` many.

    In a tree a name is indented below the directory that it is in; a directory that is not listed itself
    precedes the first of several names in it.
    """
    if max(len(paths), of) <= _MOST_WHOLE_PATHS:
        return [one_line(path) + tail for path, tail in paths]
    lines: list[str] = []
    opened: list[str] = []  # the directories above, each with a `/` at its end, below which names are listed
    for (path, tail), (following, _) in pairwise([*paths, ("", "")]):
        if "/ " in f"/{path}":  # a name that would look indented
            opened.clear()
            lines.append(f"{'./' * path.startswith(' ')}{one_line(path)}{tail}")
            continue
        while opened and not path.startswith(opened[-1]):
            opened.pop()
        above, header = opened[-1] if opened else "", ""
        parent = path[: path.rfind("/") + 1]
        if parent != above and following.startswith(parent):
            header = f"{' ' * len(opened)}{one_line(parent[len(above) :])}\n"
            opened.append(parent)
        name = path[len(opened[-1] if opened else "") :]
        lines.append(f"{header}{' ' * len(opened)}{one_line(name)}{tail}")
        if tail == "/":
            opened.append(f"{path}/")
    return lines


def report_of(options: SearchOptions, skipped: Skipped, tracker: ReadTracker | None, *, found: bool) -> str:
    """Return the skip report of a search, shorter if it found something and the last report was the same."""
    report = skip_report(skipped, can_open=not options.include_ignored, found=found)
    paths = paths_of(options.path)
    if tracker is not None and tracker.was_said((options.method, *paths), str(report)) and found:
        return skip_report(skipped, can_open=False, found=True, repeated=True)
    return report


def _rules(rules: dict[str, int]) -> str:
    ordered = sorted(rules, key=lambda rule: (-rules[rule], rule))
    shown = ", ".join(one_line(rule)[:RULE_CHARS] for rule in ordered[:_MAX_RULES])
    more = f" and {len(rules) - _MAX_RULES} more rules" if len(rules) > _MAX_RULES else ""
    return f" by {shown}{more}" if rules else ""


def stop_report(skipped: Skipped, timeout: float) -> str:
    """Say which limit ended a search early; "" when it came to its end."""
    if skipped.reached is None:
        return ""
    limit = f"{timeout:g} s" if skipped.reached == "timeout" else _REACHED[skipped.reached]
    advice = Advice("search a smaller directory with ", ParameterName("path", quoted=True))
    return Joined(": ", f"stopped early after {limit}, so there may be more", advice)


def render(
    limits: Limits,
    options: GrepOptions,
    found: Finding,
    hints: Sequence[str],
    tracker: ReadTracker | None,
    elapsed_ms: int,
) -> GrepResult:
    """Return the result of a search, with as much text as the budget of tokens holds.

    If not all fits, it shows less context, then fewer matches or files, then totals.
    """
    by_line, exact, first = options.by_line, found.exact, found.page.first
    if exact and found.entries:
        check_offset(first, found.entries, "matches" if by_line else "files")
    result = GrepResult(
        matches=found.matches,
        counts=found.counts,
        total_matches=found.total_matches,
        total_lines=found.total_lines,
        total_files=found.total_files,
        skipped=found.skipped,
        exact=exact,
        searched_files=found.searched,
        elapsed_ms=elapsed_ms,
        nothing=() if found.total_lines else (_nothing(options, found), *hints),
    )
    on_page = len(found.matches if by_line else found.counts)
    most = min(_most_shown(found.matches, limits) if by_line else limits.output_tokens, on_page)
    few = exact and found.total_matches <= min(found.entries, _COUNTED_AT_A_GLANCE)
    stopped = _stop(limits, options, found) if found.skipped.reached else ""
    remarks = _context_note(limits, options), _empty_group_note(options)
    skip_report = report_of(options, found.skipped, tracker, found=found.total_lines > 0)

    def answer(count: int, context: int | None = None) -> GrepResult:
        """Show some of the matches or files, with at most so many lines of context."""
        matches, counts, end = found.matches, found.counts, found.page.end
        if count < on_page:
            end = first + count
            matches = matches[:count] if by_line else matches
            counts = counts if by_line else dict(islice(counts.items(), count))
        note = ""
        if context is not None:
            matches = [_with_context(match, context) for match in matches]
            if count == most:
                note = f"at most {context} lines of context, as {limits.output_tokens} tokens hold no more"
        following = None
        if options.output_mode != "total" and end < found.entries:
            following = next_page(options, end)
        is_part = following is not None or first > 0
        last = min(end, found.entries)
        position = f"shown: {first + 1}-{last}" if last > first else "nothing shown from this offset"
        says_totals = found.total_lines and options.output_mode != "total"
        notes = notes_of(
            _totals(found) if says_totals and not (by_line and few and not is_part) else "",
            Joined("; ", position, continuation(following)) if is_part else "",
            note,
            stopped,
            *remarks,
            skip_report,
        )
        body = _body(options, found, matches, counts) if found.total_lines else result.nothing
        text = Joined("\n", *body, footer(*notes))
        return replace(result, text=text, notes=notes, next=following, truncated=following is not None)

    whole = answer(most)

    def everything(_: int) -> GrepResult:
        return whole

    def with_context(count: int) -> GrepResult:
        return answer(most, count - 1)

    def with_entries(count: int) -> GrepResult:
        return answer(count, 0 if by_line else None)

    def only_totals(_: int) -> GrepResult:
        return replace(whole, text=_sentence(_totals(found)), notes=())

    deepest = 0
    if by_line:
        deepest = max((max(len(each.before), len(each.after)) for each in found.matches[:most]), default=0)
    steps = [Shrink(1, everything)]
    steps += [Shrink(deepest, with_context)] if deepest else []
    steps += [Shrink(most, with_entries)] if most else []
    steps += [Shrink(1, only_totals)] if found.total_lines else []
    return fitted(limits, *steps)


def _nothing(options: GrepOptions, found: Finding) -> str:
    named = None if isinstance(options.files, GlobResult) else options.listed
    where = first_names([*map(quote, named or paths_of(options.path))], _MOST_NAMED)
    pattern = one_line(json.dumps(options.pattern, ensure_ascii=False))
    return f"No matches for {pattern} in {where} ({plural(found.searched, 'file')} searched)."


def _body(
    options: GrepOptions, found: Finding, matches: Sequence[Match], counts: Mapping[str, FileCount]
) -> list[str]:
    """Return what is shown above the footer."""
    match options.output_mode:
        case "content":
            return ["\n".join(_content_lines(matches, numbers=options.line_numbers))]
        case "files_with_matches":
            return path_lines([(path, "") for path in counts], len(found.counts))
        case "count":
            return _count_lines(counts, len(found.counts))
        case "summary":
            return _summary_lines(matches, counts)
        case _:
            return [_sentence(_totals(found))]


def _most_shown(matches: Sequence[Match], limits: Limits) -> int:
    """Return how many matches are worth a try: each takes a token at least, and some characters a token."""
    characters = _CHARS_PER_TOKEN * limits.output_tokens
    for number, match in enumerate(matches):
        characters -= len(match.text) + sum(map(len, match.before)) + sum(map(len, match.after))
        if characters < 0 or number == limits.output_tokens:
            return max(number, 1)
    return len(matches)


def _with_context(match: Match, lines: int) -> Match:
    """Return a match with at most some lines around it."""
    before = match.before[max(len(match.before) - lines, 0) :]
    return replace(match, before=before, after=match.after[:lines]) if match.before or match.after else match


def _stop(limits: Limits, options: GrepOptions, found: Finding) -> str:
    report = stop_report(found.skipped, seconds_of(options.timeout, limits))
    if not found.ended_in:
        return report
    return Joined(" ", report, f"(it was searching {one_line(display_name(found.ended_in))})")


def _context_note(limits: Limits, options: GrepOptions) -> str:
    requested = max(options.context or 0, options.before or 0, options.after or 0)
    most = limits.context_lines
    return f"context is at most {most}" if requested > most and options.by_line else ""


_EMPTY_GROUP = re.compile(r"(\w)\(\)")  # no backslash can precede it


def _empty_group_note(options: GrepOptions) -> str:
    """Say that `()` matches nothing, where it follows a name and so was probably meant as it is written."""
    if options.fixed_strings or not _EMPTY_GROUP.search(options.pattern):
        return ""
    meant = _EMPTY_GROUP.sub(r"\1\\(\\)", options.pattern)
    return Advice("() in a pattern matches nothing: to match it, ", Retry({"pattern": meant}))


def _content_lines(matches: Sequence[Match], *, numbers: bool) -> list[str]:
    """Return matches by file: `{n}|{line}` where it matches, `{n}-{line}` around it."""
    lines: list[str] = []
    for path, group in _by_file(matches).items():
        lines += ["", one_line(path)] if lines else [one_line(path)]
        lines += _numbered_matches(group, numbers=numbers)
    return lines


def _summary_lines(matches: Sequence[Match], counts: Mapping[str, FileCount]) -> list[str]:
    """Return the counts of each file with its first matches."""
    samples = _by_file(matches)
    lines: list[str] = []
    for path, count in counts.items():
        lines += _count_lines({path: count})
        lines += [f"  {line}" for line in _numbered_matches(samples.get(path, []))]
    return lines


def _by_file(matches: Sequence[Match]) -> dict[str, list[Match]]:
    return {path: list(group) for path, group in groupby(matches, key=attrgetter("path"))}


def _numbered_matches(matches: Sequence[Match], *, numbers: bool = True) -> list[str]:
    """Return the numbered lines of the matches of one file, with `--` where lines between are not shown."""
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
    has_context = any(mark == "-" for mark, _ in rows.values())
    lines: list[str] = []
    last = ordered[0] if ordered else 0
    for number, line in zip(ordered, bodies, strict=bool(ordered)):
        if has_context and number > last + 1:
            lines.append("--")
        head = f"{number:>{width}}{ids.get(number, '')}{rows[number][0]}" if numbers else ""
        lines.append(head + line)
        last = number
    return lines


def _count_lines(counts: Mapping[str, FileCount], of: int = 0) -> list[str]:
    """Return `path: 3` for each file, with the number of matches where it differs from that of lines."""
    tails = [
        f": {each.lines}"
        + ("" if each.matches == each.lines else f" ({plural(each.matches, 'match', 'matches')})")
        for each in counts.values()
    ]
    return path_lines(list(zip(counts, tails, strict=True)), of)


def _totals(found: Finding) -> str:
    """Return the totals of a search in one phrase."""
    matches, lines = found.total_matches, found.total_lines
    where = f"in {plural(found.total_files, 'file')}"
    least = "" if found.exact else "at least "
    if matches == lines:
        return f"{least}{plural(lines, 'matching line')} {where}"
    return f"{least}{plural(matches, 'match', 'matches')} on {plural(lines, 'line')} {where}"


def _sentence(phrase: str) -> str:
    return f"{phrase[0].upper()}{phrase[1:]}."
