"""The ladder of `tree-sitter-analyzer`: one search in six formats, from a number to every match. Pure.

What each is, and about how many tokens it takes, is in `docs/dialects/tree-sitter-analyzer.md`.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

from agentfs.results import GrepResult, Match
from agentfs.search.excerpts import without_marks
from agentfs.text import estimate_tokens, to_json

Format = Literal["total_only", "count_only_matches", "summary_only", "group_by_file", "full"]

# What a format takes at most, in tokens; `total_only` is one number, and the full results have no such bound.
ROOM: Mapping[Format, int] = {"count_only_matches": 200, "summary_only": 2000, "group_by_file": 10_000}
UNBOUNDED = 10**9  # tokens that no answer has
MOST_MATCHES = 2000  # of the two formats that show all of them
SAMPLES = 10  # of one file, where it is the only one
# About what a match takes in the full results, beside its two paths: for what is saved by not showing it.
MATCH_TOKENS = 62

_ALL_SAMPLES = 30
_SAMPLE_CHARS = 160


def as_text(value: Any) -> str:
    """Return a value as the JSON that is shown.

    Args:
        value: What JSON can show.
    """
    return to_json(value)


def shaped(result: GrepResult, shape: Format, absolute: Callable[[str], str], room: int, beside: int) -> Any:
    """Return a search in a format.

    Args:
        result: The search; what it was asked for is what the format needs.
        shape: The format.
        absolute: Makes the path of a file absolute.
        room: The most tokens of the full results.
        beside: Tokens of what stands beside the search in its answer.

    Returns:
        A number, a list or an object, ready for JSON.
    """
    if shape == "total_only":
        return result.total_matches
    if shape == "count_only_matches":
        return _counts(result, beside)
    if shape == "summary_only":
        return _summary(result, beside)
    if shape == "group_by_file":
        return _groups(result, absolute, beside)
    return fitting([_match(each, absolute) for each in result.matches], room)


def fitting(pieces: Iterable[Any], room: int) -> list[Any]:
    """Return the first pieces that fit, at least one of them where there are any.

    Args:
        pieces: What JSON can show.
        room: Tokens that there are for them.
    """
    taken: list[Any] = []
    if room >= UNBOUNDED:
        return list(pieces)
    for piece in pieces:
        room -= estimate_tokens(as_text(piece)) + 1
        if room < 0 and taken:
            break
        taken.append(piece)
    return taken


def _match(match: Match, absolute: Callable[[str], str]) -> dict[str, Any]:
    line, spans = without_marks(match)
    shown: dict[str, Any] = {
        "file": match.path,
        "abs_path": absolute(match.path),
        "line_number": match.line,
        "line": line,
        "submatches": [{"start": start, "end": end, "match": line[start:end]} for start, end in spans],
    }
    return {**shown, **_around(match), **_cut(match)}


def _around(match: Match) -> dict[str, Any]:
    sides = {"before": list(match.before), "after": list(match.after)}
    return {side: lines for side, lines in sides.items() if lines}


def _cut(match: Match) -> dict[str, Any]:
    before, after = match.cut
    return {"cut": {"before": before, "after": after}} if before or after else {}


def _head(result: GrepResult) -> dict[str, Any]:
    return {"total_matches": result.total_matches, "total_files": result.total_files}


def _others(result: GrepResult, files: int, matches: int) -> dict[str, Any]:
    """Say what the totals have beyond what is shown."""
    left = {"files": result.total_files - files, "matches": result.total_matches - matches}
    return {"others": left} if left["matches"] else {}


def _most_first(result: GrepResult) -> list[tuple[str, int]]:
    counted = ((path, count.matches) for path, count in result.counts.items())
    return sorted(counted, key=lambda each: (-each[1], each[0]))


def _room(shape: Format, head: dict[str, Any], beside: int) -> int:
    """Return the tokens that are left for files, when what else there is is written."""
    least: dict[str, Any] = {**head, "base": "", "files": [], "others": {"files": 99_999, "matches": 999_999}}
    return ROOM[shape] - estimate_tokens(as_text(least)) - beside


def _counts(result: GrepResult, beside: int) -> dict[str, Any]:
    head = _head(result)
    room = _room("count_only_matches", head, beside)
    counts = dict(fitting(_most_first(result), room))
    return {**head, "file_counts": counts, **_others(result, len(counts), sum(counts.values()))}


def _summary(result: GrepResult, beside: int) -> dict[str, Any]:
    head = _head(result)
    of_file: dict[str, list[Match]] = {}
    for match in result.matches:
        of_file.setdefault(match.path, []).append(match)
    ordered = _most_first(result)
    each = max(1, min(SAMPLES, _ALL_SAMPLES // max(len(ordered), 1)))
    files = fitting(
        (
            {"file": path, "matches": count, "samples": [_sample(match) for match in of_file[path][:each]]}
            for path, count in ordered
        ),
        _room("summary_only", head, beside),
    )
    return {**head, "files": files, **_others(result, len(files), sum(file["matches"] for file in files))}


def _sample(match: Match) -> dict[str, Any]:
    line, _ = without_marks(match)
    shown = line.strip()
    if len(shown) > _SAMPLE_CHARS:
        shown = f"{shown[:_SAMPLE_CHARS]}…"
    return {"line_number": match.line, "line": shown, **_around(match)}


def _groups(result: GrepResult, absolute: Callable[[str], str], beside: int) -> dict[str, Any]:
    head = _head(result)
    room = _room("group_by_file", head, beside)
    files: list[dict[str, Any]] = []
    shown = 0
    for match in result.matches:
        line, spans = without_marks(match)
        found = {"line_number": match.line, "line": line, "spans": spans, **_around(match), **_cut(match)}
        file = {"file": match.path, "abs_path": absolute(match.path), "matches": list[Any]()}
        opens = not files or files[-1]["file"] != match.path
        room -= estimate_tokens(as_text(found)) + 1 + (estimate_tokens(as_text(file)) + 1 if opens else 0)
        if room < 0 and files:
            break
        if opens:
            files.append(file)
        files[-1]["matches"].append(found)
        shown += len(match.spans)
    return {**head, "files": files, **_others(result, len(files), shown)}


def with_short_paths(value: Any, shape: Format) -> Any:
    """Return a search whose paths are short: what all begin with is said once. Nothing is lost.

    In the full results `abs_path` stands on the first match alone, and what it has before `file` is what
    stands before each `file`. Elsewhere `base` is what stands before each path.

    Args:
        value: The search as `shaped` returned it.
        shape: Its format.

    Returns:
        The same with short paths, or as it was where that would not be shorter.
    """
    if shape == "total_only" or not value:
        return value
    if shape == "full":
        base = _base([match["file"] for match in value])
        first, *others = [{**match, "file": match["file"][len(base) :]} for match in value]
        return [first, *map(_without_absolute, others)]
    if shape == "count_only_matches":
        counts: dict[str, int] = value["file_counts"]
        base = _base(counts)
        short = {"base": base, **value, "file_counts": {path[len(base) :]: counts[path] for path in counts}}
    else:
        files: list[dict[str, Any]] = value["files"]
        base = _base([file["file"] for file in files])
        shown = [{**_without_absolute(file), "file": file["file"][len(base) :]} for file in files]
        if files and "abs_path" in files[0]:
            base = str(files[0]["abs_path"]).removesuffix(shown[0]["file"])
        short = {"base": base, **value, "files": shown}
    return short if len(as_text(short)) < len(as_text(value)) else value


def _without_absolute(shown: dict[str, Any]) -> dict[str, Any]:
    return {name: shown[name] for name in shown if name != "abs_path"}


def _base(paths: Iterable[str]) -> str:
    """Return the directories that all paths begin with, with a `/` at the end; "" for none."""
    parted = [path.split("/")[:-1] for path in paths]
    if not parted:
        return ""
    least, most = min(parted), max(parted)
    same = 0
    while same < min(len(least), len(most)) and least[same] == most[same]:
        same += 1
    return "".join(f"{part}/" for part in least[:same])


def full_tokens(result: GrepResult, shape: Format, absolute: Callable[[str], str]) -> int:
    """Return about how many tokens the full results would take.

    Args:
        result: The search.
        shape: The format it was made for.
        absolute: Makes the path of a file absolute.
    """
    if shape in ("group_by_file", "full"):  # all matches are at hand
        return estimate_tokens(as_text([_match(each, absolute) for each in result.matches]))
    lines = min(result.total_lines, MOST_MATCHES)
    if not result.counts:
        return lines * (MATCH_TOKENS + 2 * estimate_tokens(absolute("")))
    weights = [
        (count.lines, estimate_tokens(path) + estimate_tokens(absolute(path)))
        for path, count in result.counts.items()
    ]
    paths = sum(count * tokens for count, tokens in weights) / max(sum(count for count, _ in weights), 1)
    return round(lines * (MATCH_TOKENS + paths))
