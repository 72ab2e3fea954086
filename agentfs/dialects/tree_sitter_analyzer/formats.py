"""The formats of a search in `tree-sitter-analyzer`, from one number to every match. Pure.

What each is, and about how many tokens it takes, is in `docs/dialects/tree-sitter-analyzer.md`.
"""

from collections.abc import Callable, Iterable, Mapping
from itertools import takewhile
from typing import Any, Literal

from agentfs.results import GrepResult, Match
from agentfs.search.excerpts import without_marks
from agentfs.text import estimate_tokens, to_json

Format = Literal["total_only", "count_only_matches", "summary_only", "group_by_file", "full"]

# The budget of a format in tokens; `total_only` is one number, and `full` is bounded by `Limits` alone.
_BUDGETS: Mapping[Format, int] = {"count_only_matches": 200, "summary_only": 2000, "group_by_file": 10_000}
UNBOUNDED = 10**9  # tokens that no reply has
MAX_MATCHES = 2000  # of group_by_file and full
SAMPLES = 10  # of one file, where it is the only one
_TOKENS_PER_MATCH = 62  # about what a match takes in `full`, without its two paths

_MAX_SAMPLES = 30
_SAMPLE_CHARS = 160


def format_search(
    found: GrepResult, fmt: Format, absolute: Callable[[str], str], budget: int, reserved: int
) -> Any:
    """Return a search in a format, ready for JSON.

    Args:
        found: The search, made with the arguments that the format needs.
        fmt: The format.
        absolute: Makes paths absolute.
        budget: The most tokens of `full`.
        reserved: Tokens of the reply that are needed for notes and metadata.
    """
    if fmt == "total_only":
        return found.total_matches
    if fmt == "full":
        return fit([_match(each, absolute) for each in found.matches], budget)
    head = {"total_matches": found.total_matches, "total_files": found.total_files}
    least: dict[str, Any] = {**head, "base": "", "files": [], "others": {"files": 99_999, "matches": 999_999}}
    remaining = _BUDGETS[fmt] - estimate_tokens(to_json(least)) - reserved
    if fmt == "count_only_matches":
        counts = dict(fit(_by_count(found), remaining))
        return {**head, "file_counts": counts, **_others(found, len(counts), sum(counts.values()))}
    if fmt == "summary_only":
        files = fit(_summaries(found), remaining)
        shown = sum(file["matches"] for file in files)
    else:
        files = _groups(found, absolute, remaining)
        shown = sum(len(match["spans"]) for file in files for match in file["matches"])
    return {**head, "files": files, **_others(found, len(files), shown)}


def fit(items: Iterable[Any], budget: int) -> list[Any]:
    """Return the first items that fit in so many tokens as JSON, at least one where there are any."""
    if budget >= UNBOUNDED:
        return list(items)
    taken: list[Any] = []
    for item in items:
        budget -= estimate_tokens(to_json(item)) + 1
        if budget < 0 and taken:
            break
        taken.append(item)
    return taken


def _match(match: Match, absolute: Callable[[str], str]) -> dict[str, Any]:
    line, spans = without_marks(match)
    return {
        "file": match.path,
        "abs_path": absolute(match.path),
        "line_number": match.line,
        "line": line,
        "submatches": [{"start": start, "end": end, "match": line[start:end]} for start, end in spans],
        **_context(match),
        **_cut(match),
    }


def _context(match: Match) -> dict[str, Any]:
    sides = {"before": list(match.before), "after": list(match.after)}
    return {side: lines for side, lines in sides.items() if lines}


def _cut(match: Match) -> dict[str, Any]:
    before, after = match.cut
    return {"cut": {"before": before, "after": after}} if before or after else {}


def _others(found: GrepResult, files: int, matches: int) -> dict[str, Any]:
    """Return what the totals have beyond what is shown."""
    others = {"files": found.total_files - files, "matches": found.total_matches - matches}
    return {"others": others} if others["matches"] else {}


def _by_count(found: GrepResult) -> list[tuple[str, int]]:
    counts = ((path, count.matches) for path, count in found.counts.items())
    return sorted(counts, key=lambda each: (-each[1], each[0]))


def _summaries(found: GrepResult) -> Iterable[dict[str, Any]]:
    by_file: dict[str, list[Match]] = {}
    for match in found.matches:
        by_file.setdefault(match.path, []).append(match)
    counts = _by_count(found)
    samples = max(1, min(SAMPLES, _MAX_SAMPLES // max(len(counts), 1)))
    for path, count in counts:
        yield {"file": path, "matches": count, "samples": [*map(_sample, by_file[path][:samples])]}


def _sample(match: Match) -> dict[str, Any]:
    line = without_marks(match)[0].strip()
    if len(line) > _SAMPLE_CHARS:
        line = f"{line[:_SAMPLE_CHARS]}…"
    return {"line_number": match.line, "line": line, **_context(match)}


def _groups(found: GrepResult, absolute: Callable[[str], str], budget: int) -> list[dict[str, Any]]:
    files: list[dict[str, Any]] = []
    for match in found.matches:
        line, spans = without_marks(match)
        item = {"line_number": match.line, "line": line, "spans": spans, **_context(match), **_cut(match)}
        file = {"file": match.path, "abs_path": absolute(match.path), "matches": list[Any]()}
        is_new = not files or files[-1]["file"] != match.path
        budget -= estimate_tokens(to_json(item)) + 1 + (estimate_tokens(to_json(file)) + 1 if is_new else 0)
        if budget < 0 and files:
            break
        if is_new:
            files.append(file)
        files[-1]["matches"].append(item)
    return files


def shorten_paths(value: Any, fmt: Format) -> Any:
    """Return a formatted search in which the directories that all paths begin with occur once.

    In `full`, only the first match has its `abs_path`, which ends with its `file`; what precedes it there
    precedes each `file`. In the other formats, `base` precedes each path. The value is returned unchanged
    where that would not be shorter.
    """
    if fmt == "total_only" or not value:
        return value
    if fmt == "full":
        base = _common_directories([match["file"] for match in value])
        first, *others = [{**match, "file": match["file"].removeprefix(base)} for match in value]
        return [first, *map(_without_absolute, others)]
    if fmt == "count_only_matches":
        counts: dict[str, int] = value["file_counts"]
        base = _common_directories(counts)
        shortened = {path.removeprefix(base): count for path, count in counts.items()}
        short = {"base": base, **value, "file_counts": shortened}
    else:
        files: list[dict[str, Any]] = value["files"]
        base = _common_directories([file["file"] for file in files])
        shown = [{**_without_absolute(file), "file": file["file"].removeprefix(base)} for file in files]
        if files and "abs_path" in files[0]:
            base = str(files[0]["abs_path"]).removesuffix(shown[0]["file"])
        short = {"base": base, **value, "files": shown}
    return short if len(to_json(short)) < len(to_json(value)) else value


def _without_absolute(item: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in item.items() if name != "abs_path"}


def _common_directories(paths: Iterable[str]) -> str:
    """Return the directories that all paths begin with, with a `/` at the end; "" for none."""
    parts = [path.split("/")[:-1] for path in paths]
    if not parts:
        return ""
    first, last = min(parts), max(parts)
    common = takewhile(lambda pair: pair[0] == pair[1], zip(first, last, strict=False))
    return "".join(f"{part}/" for part, _ in common)


def full_tokens(found: GrepResult, fmt: Format, absolute: Callable[[str], str]) -> int:
    """Return about how many tokens the `full` format would take of a search that was made for `fmt`."""
    if fmt in ("group_by_file", "full"):  # it has all matches
        return estimate_tokens(to_json([_match(each, absolute) for each in found.matches]))
    lines = min(found.total_lines, MAX_MATCHES)
    if not found.counts:
        return lines * (_TOKENS_PER_MATCH + 2 * estimate_tokens(absolute("")))
    weights = [
        (count.lines, estimate_tokens(path) + estimate_tokens(absolute(path)))
        for path, count in found.counts.items()
    ]
    paths = sum(count * tokens for count, tokens in weights) / max(sum(count for count, _ in weights), 1)
    return round(lines * (_TOKENS_PER_MATCH + paths))
