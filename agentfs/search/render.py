"""What a model is shown of a search: matches by file, and what there is besides."""

from collections.abc import Mapping, Sequence

from agentfs.results import FileCount, GrepResult, Match
from agentfs.text import visible
from agentfs.visible import one_line


def content_lines(matches: Sequence[Match], *, numbers: bool = True) -> list[str]:
    """Show matches grouped by file: `{n}|{line}` where it matches, `{n}-{line}` around it.

    Args:
        matches: The matches in order.
        numbers: Whether lines have their numbers.

    Returns:
        The lines to show.
    """
    shown: list[str] = []
    groups: dict[str, list[Match]] = {}
    for match in matches:
        groups.setdefault(match.path, []).append(match)
    for path, group in groups.items():
        if shown:
            shown.append("")
        shown.append(one_line(path))
        shown += numbered_matches(group, numbers=numbers)
    return shown


def numbered_matches(group: Sequence[Match], *, numbers: bool = True) -> list[str]:
    """Show the matches of one file, without its path.

    Args:
        group: The matches, in order.
        numbers: Whether lines have their numbers.

    Returns:
        Numbered lines, with `--` between stretches when lines around the matches are shown.
    """
    rows: list[tuple[int, str, str]] = []
    named: dict[int, str] = {}
    for match in group:
        if match.line_id is not None:
            named[match.line] = f" {match.line_id}"
        rows += [
            (match.line - len(match.before) + place, "-", line) for place, line in enumerate(match.before)
        ]
        body = match.text.split("\n")
        rows += [(match.line + place, "|", line) for place, line in enumerate(body)]
        rows += [(match.line + len(body) + place, "-", line) for place, line in enumerate(match.after)]
    # Where each match has its whole context, a line may stand near several: it is shown once.
    once: dict[int, tuple[int, str, str]] = {}
    for each in rows:
        if each[1] == "|" or each[0] not in once:
            once[each[0]] = each
    rows = [once[number] for number in sorted(once)]
    width = len(str(rows[-1][0])) if rows else 1
    bodies = visible("\n".join(line for _, _, line in rows)).split("\n")
    apart = any(mark == "-" for _, mark, _ in rows)
    shown: list[str] = []
    last = rows[0][0] if rows else 0
    for (number, mark, _), shown_line in zip(rows, bodies, strict=True):
        if apart and number > last + 1:
            shown.append("--")
        row = f"{number:>{width}}{named.get(number, '')}{mark}{shown_line}"
        shown.append(row if numbers else shown_line)
        last = number
    return shown


def count_lines_shown(counts: Mapping[str, FileCount]) -> list[str]:
    """Show the counts of files, one a line.

    Args:
        counts: What was found, by path.

    Returns:
        `path: 3`, and the number of matches where it differs from that of lines.
    """
    return [f"{one_line(path)}: {count_shown(found)}" for path, found in counts.items()]


def count_shown(found: FileCount) -> str:
    """Show the count of one file."""
    if found.matches == found.lines:
        return str(found.lines)
    return f"{found.lines} ({_count(found.matches, 'match', 'matches')})"


def totals_shown(matches: int, lines: int, files: int, *, exact: bool) -> str:
    """Show the totals of a search.

    Args:
        matches: Matches.
        lines: Matching lines.
        files: Files with a match.
        exact: Whether that is all there is.

    Returns:
        One phrase.
    """
    least = "" if exact else "at least "
    where = f"in {_count(files, 'file', 'files')}"
    if matches == lines:
        return f"{least}{_count(lines, 'matching line', 'matching lines')} {where}"
    counted = _count(matches, "match", "matches")
    return f"{least}{counted} on {_count(lines, 'line', 'lines')} {where}"


def _count(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"


def summary_lines(result: GrepResult) -> list[str]:
    """Show the counts of each file with its first matches.

    Args:
        result: A search that was asked for a summary.
    """
    samples: dict[str, list[Match]] = {}
    for match in result.matches:
        samples.setdefault(match.path, []).append(match)
    shown: list[str] = []
    for path, count in result.counts.items():
        shown.append(f"{one_line(path)}: {count_shown(count)}")
        shown += [f"  {line}" for line in numbered_matches(samples.get(path, []))]
    return shown
