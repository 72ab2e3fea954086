"""Which lines a model means by their ids; what is wrong with its choice is said of all of it at once."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NoReturn

from agentfs.errors import InvalidArgumentError, OverlapError, StaleError, UnknownLineError
from agentfs.fs import quote
from agentfs.line_ranges import VersionWithIds
from agentfs.messages import Joined, Message, call
from agentfs.results import LineChange
from agentfs.text import cut_line, moved_lines, visible

_MOST_LISTED = 5000
_MOST_SHOWN = 20
_LINE_CHARS = 160


@dataclass(frozen=True)
class Lines:
    """The lines of a file as it stands.

    Attributes:
        path: The path as shown.
        bodies: The lines, without their ends.
        ids: Their names.
    """

    path: str
    bodies: tuple[str, ...]
    ids: tuple[str, ...]

    def shown(self, first: int, last: int) -> list[str]:
        """Show the lines from one index up to another as `read` does with ids."""
        return [
            f"{index + 1} {self.ids[index]}|{visible(cut_line(self.bodies[index], _LINE_CHARS))}"
            for index in range(max(first, 0), min(last, len(self.bodies)))
        ]

    def refused(self, changes: int) -> dict[str, object]:
        """Return what every refusal tells: the current ids."""
        return {"path": self.path, "changes": changes, "line_ids": list(self.ids[:_MOST_LISTED])}


def chosen(
    lines: Lines, versions: Sequence[VersionWithIds], changes: Sequence[LineChange]
) -> list[tuple[int, int]]:
    """Find the lines of each change, and check the changes as a whole.

    Args:
        lines: The file as it stands.
        versions: The versions whose ids were given, the latest last.
        changes: What is asked for.

    Returns:
        The indexes of the first and the last line of each change, from 0.

    Raises:
        InvalidArgumentError: `invalid_argument`: a change without ids, with too many, or backwards.
        UnknownLineError: `unknown_line`: an id was never given for this file.
        StaleError: `stale`: a line is no longer what it was, or lines have come between.
        OverlapError: `overlap`: two changes name the same line.
    """
    asked = [_ids_of(change, number) for number, change in enumerate(changes, 1)]
    index = {name: at for at, name in enumerate(lines.ids)}
    missing = list(dict.fromkeys(name for pair in asked for name in pair if name not in index))
    if missing:
        _refuse_missing(lines, versions, missing, len(changes))
    ranges = [(index[first], index[last]) for first, last in asked]
    for number, ((first, last), names) in enumerate(zip(ranges, asked, strict=True), 1):
        if first > last:
            raise InvalidArgumentError(
                f"Change {number}: {names[0]} is line {first + 1} and {names[1]} is line {last + 1}, "
                "so the range runs backwards.",
                hint="Swap start_line_id and end_line_id; nothing was written.",
                details={**lines.refused(len(changes)), "lines": [first + 1, last + 1]},
            )
        if first < last:
            _check_between(lines, versions, (first, last), number, len(changes))
    _check_apart(lines, ranges)
    return ranges


def _ids_of(change: LineChange, number: int) -> tuple[str, str]:
    one, first, last = change.line_id, change.start_line_id, change.end_line_id
    if one and not first and not last:
        return one, one
    if first and last and not one:
        return first, last
    raise InvalidArgumentError(
        f"Change {number} names {'no line' if not (one or first or last) else 'its lines in no clear way'}.",
        hint="Give line_id for one line, or start_line_id and end_line_id for several.",
        details={"parameter": "changes", "change": number},
    )


def _refuse_missing(
    lines: Lines, versions: Sequence[VersionWithIds], missing: Sequence[str], count: int
) -> NoReturn:
    details = lines.refused(count)
    unknown: list[str] = []
    gone: list[str] = []
    for name in missing:
        version = next((v for v in reversed(versions) if name in v.ids), None)
        if version is None:
            unknown.append(name)
        else:
            gone += _what_became(lines, version, name)
    if unknown:
        names = ", ".join(unknown)
        are = "is no id of a line" if len(unknown) == 1 else "are no ids of lines"
        near = _nearest(lines, unknown)
        shown = near or lines.shown(0, _MOST_SHOWN)
        more = len(lines.bodies) - len(shown)
        raise UnknownLineError(
            f"{visible(names)} {are} in {quote(lines.path)}; "
            + ("the nearest ids are:" if near else "its lines are:" if shown else "it has no lines."),
            hint=Joined(" ", _read_with_ids(lines.path), "Nothing was written."),
            details={
                **details,
                "unknown": unknown,
                "places": shown + ([f"[and {more} more]"] if more else []),
            },
        )
    raise StaleError(
        f"{quote(lines.path)} has changed since it was shown, and so "
        f"{'has a line' if len(missing) == 1 else 'have lines'} that would be replaced:",
        hint="Use the ids shown here, or read the file again; nothing was written.",
        details={**details, "stale": list(missing), "places": gone},
    )


def _read_with_ids(path: str) -> Message:
    return Message("Call ", call("read", path=path, line_ids=True), ".")


def _what_became(lines: Lines, version: VersionWithIds, name: str) -> list[str]:
    """Show what a line was, and what stands in its place."""
    at = version.ids.index(name)
    was = f"{name} was: {visible(cut_line(version.lines[at], _LINE_CHARS))}"
    for old_start, old_end, start, end in moved_lines(version.lines, lines.bodies):
        if old_start <= at < old_end:
            # As many lines stand there as before: then the line is known, otherwise all of them may be meant.
            if old_end - old_start == end - start:
                start, end = start + at - old_start, start + at - old_start + 1  # noqa: PLW2901 - narrowed
            now = lines.shown(start, min(end, start + _MOST_SHOWN))
            return [was, *(now or ["[and is gone]"])]
    return [was]


def _nearest(lines: Lines, unknown: Sequence[str]) -> list[str]:
    import difflib  # noqa: PLC0415 - loaded when first needed

    near: set[int] = set()
    for name in unknown[:5]:
        matches = difflib.get_close_matches(name, lines.ids[:_MOST_LISTED], n=3, cutoff=0.6)
        near |= {lines.ids.index(match) for match in matches}
    return [shown for at in sorted(near) for shown in lines.shown(at, at + 1)]


def _check_between(
    lines: Lines, versions: Sequence[VersionWithIds], span: tuple[int, int], number: int, count: int
) -> None:
    """Refuse a range into which lines have come, or from which lines have gone, since its ids were given."""
    first, last = lines.ids[span[0]], lines.ids[span[1]]
    now = lines.ids[span[0] : span[1] + 1]
    oldest = True
    for version in versions:
        if first not in version.ids or last not in version.ids:
            continue
        start, end = version.ids.index(first), version.ids.index(last)
        # What was shown of a later version counts too, but only where all lines of the range were shown.
        known = oldest or any(low <= start + 1 and end + 1 <= high for low, high in version.ranges)
        if known and version.ids[start : end + 1] == now:
            return
        oldest = False
    raise StaleError(
        f"Change {number}: the lines from {first} to {last} of {quote(lines.path)} "
        "are no longer those that were shown; now they are:",
        hint=Joined(
            " ",
            "If all of these are to be replaced, read them again first.",
            _read_with_ids(lines.path),
            "Nothing was written.",
        ),
        details={
            **lines.refused(count),
            "lines": [span[0] + 1, span[1] + 1],
            "places": lines.shown(span[0], min(span[1] + 1, span[0] + _MOST_SHOWN)),
        },
    )


def _check_apart(lines: Lines, ranges: Sequence[tuple[int, int]]) -> None:
    order = sorted(range(len(ranges)), key=lambda number: ranges[number])
    for before, after in pairwise(order):
        if ranges[after][0] <= ranges[before][1]:
            at = ranges[after][0]
            raise OverlapError(
                f"Changes {min(before, after) + 1} and {max(before, after) + 1} both replace "
                f"line {at + 1} ({lines.ids[at]}).",
                hint="Join them into one; nothing was written.",
                details={**lines.refused(len(ranges)), "lines": [at + 1]},
            )
