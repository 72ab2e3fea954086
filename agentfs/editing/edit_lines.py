"""`edit_lines`: replace whole lines, named by the ids that `read` and `grep` show."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, pairwise
from typing import NamedTuple, NoReturn, TypeAlias

from agentfs.base import call_context
from agentfs.base.advice import Advice, Joined, ParameterName, ToolName, call
from agentfs.editing.change_options import EditLinesOptions
from agentfs.editing.commit import SINCE_SHOWN, EditTarget
from agentfs.editing.draft import Draft, FileEdit, as_read
from agentfs.editing.edit import change_file
from agentfs.editing.explain import lines_now
from agentfs.errors import InvalidArgumentError, OverlapError, StaleError, UnknownLineError, UnreadError
from agentfs.fs import Current, quote
from agentfs.results import EditResult, LineChange
from agentfs.shown.read_tracker import ReadTracker, VersionWithIds
from agentfs.text import EditView, Replacement, bodies_of, cut_line, first_names, footer, visible
from agentfs.text.nearest import closest

_MOST_LISTED = 5000
_MOST_SHOWN = 20
_LINE_CHARS = 160


_Indexed: TypeAlias = Sequence[tuple[VersionWithIds, dict[str, int]]]


class _Row(NamedTuple):
    number: int
    id: str
    text: str


@dataclass(frozen=True)
class _Lines:
    """The lines of a file without their ends, the ids of the lines, and the number of requested changes."""

    path: str
    bodies: Sequence[str]
    ids: Sequence[str]
    changes: int

    def excerpt(self, first: int, end: int) -> list[_Row]:
        """Return the number, the id and the text of lines."""
        return [
            _Row(index + 1, self.ids[index], visible(cut_line(self.bodies[index], _LINE_CHARS)))
            for index in range(first, min(end, len(self.bodies)))
        ]

    def details(self, places: Sequence[_Row | str] = (), **more: object) -> dict[str, object]:
        """Return the details of an error; `rows` has the number, id and text of each of `places`, or None."""
        if places:
            more["places"] = [
                f"{each.number} {each.id}|{each.text}" if isinstance(each, _Row) else each for each in places
            ]
            more["rows"] = [each if isinstance(each, _Row) else None for each in places]
        ids = list(self.ids[:_MOST_LISTED])
        return {"path": self.path, "changes": self.changes, "line_ids": ids, **more}


def edit_lines_file(target: EditTarget, options: EditLinesOptions) -> EditResult:
    """Replace lines named by their ids, all or none."""
    tracker, changes = target.context.tracker, options.changes
    if not changes:
        raise InvalidArgumentError(
            Advice(ParameterName("changes", quoted=True), " is empty."),
            hint="Pass at least one change.",
            details={"parameter": "changes"},
        )

    def compute(draft: Draft) -> FileEdit:
        current, revision = draft.current, draft.current.revision or ""
        if options.fresh_ids:
            _check_fresh(tracker, current, revision)
        versions = tracker.versions_with_ids(current.real_path)
        if not versions:
            raise UnreadError(
                f"No line ids of {quote(current.path)} have been shown.",
                hint=Advice(
                    "Call ",
                    Joined(
                        ", or ",
                        Advice(call("read", path=current.path, line_ids=True), " first"),
                        ToolName("edit"),
                    ),
                    ".",
                ),
                details={"path": current.path},
            )
        view = draft.view
        ids = tracker.line_ids(current.real_path, revision, as_read(draft.view))
        lines = _Lines(current.path, bodies_of(view.text), ids, len(changes))
        ranges = _ranges(lines, versions, changes)
        texts = [view.lf(change.new_content) for change in changes]
        draft.replace(_replacements(view, lines, ranges, texts))
        given = [text.removesuffix("\n").count("\n") + 1 if text else 0 for text in texts]
        counts = zip(ranges, given, strict=True)
        return draft.finish("line_id", sum(max(last + 1 - first, count) for (first, last), count in counts))

    return change_file(target, compute, "change")


def _check_fresh(tracker: ReadTracker, current: Current, revision: str) -> None:
    """Raise an error unless the model was last shown the ids of the current revision."""
    given = tracker.latest_ids(current.real_path)
    if given == revision:
        return
    path, details = quote(current.path), {"path": current.path}
    read = call("read", path=current.path, line_ids=True)
    if given is None:
        message = f"No line ids of {path} are valid: it was not read, or this workspace has changed it since."
        raise UnreadError(
            message, hint=Advice("Call ", read, " first; nothing was written."), details=details
        )
    message = f"{path} has {SINCE_SHOWN}, so its line ids are no longer valid."
    raise StaleError(message, hint=Advice("Call ", read, " again; nothing was written."), details=details)


def _replacements(
    view: EditView, lines: _Lines, ranges: Sequence[tuple[int, int]], texts: Sequence[str]
) -> list[Replacement]:
    starts = [0, *accumulate(len(line) + 1 for line in lines.bodies)]
    replacements: list[Replacement] = []
    for (first, last), new in sorted(zip(ranges, texts, strict=True)):
        # Keep the line end of the last line, unless the lines are deleted.
        end = starts[last + 1] - 1 if new else min(starts[last + 1], len(view.text))
        replacements.append(Replacement(starts[first], end, new.removesuffix("\n")))
    return replacements


def _ranges(
    lines: _Lines, versions: Sequence[VersionWithIds], changes: Sequence[LineChange]
) -> list[tuple[int, int]]:
    """Return the indexes of the first and the last line of each change; refuse conflicting changes."""
    named = [_ids_of(change, number) for number, change in enumerate(changes, 1)]
    index = {line_id: at for at, line_id in enumerate(lines.ids)}
    missing = list(dict.fromkeys(line_id for pair in named for line_id in pair if line_id not in index))
    if missing:
        _refuse_missing(lines, versions, missing)
    ranges = [(index[first], index[last]) for first, last in named]
    for number, ((first, last), ids) in enumerate(zip(ranges, named, strict=True), 1):
        if first > last:
            raise InvalidArgumentError(
                f"Change {number}: {ids[0]} is line {first + 1} and {ids[1]} is line {last + 1}, "
                "so the range runs backwards.",
                hint="Swap start_line_id and end_line_id; nothing was written.",
                details=lines.details(lines=[first + 1, last + 1]),
            )
    order = sorted(range(len(ranges)), key=lambda number: ranges[number])
    for before, after in pairwise(order):
        at = ranges[after][0]
        if at <= ranges[before][1]:
            raise OverlapError(
                f"Changes {min(before, after) + 1} and {max(before, after) + 1} both replace "
                f"line {at + 1} ({lines.ids[at]}).",
                hint="Join them into one; nothing was written.",
                details=lines.details(lines=[at + 1]),
            )
    indexed: _Indexed = _indexed(versions) if any(first < last for first, last in ranges) else []
    for number, (first, last) in enumerate(ranges, 1):
        if first < last:
            _check_between(lines, indexed, first, last, number)
    return ranges


def _indexed(versions: Sequence[VersionWithIds]) -> _Indexed:
    """Return each version with a map from the ids of its lines to their indexes."""
    call_context.check()
    return [(version, {line_id: at for at, line_id in enumerate(version.ids)}) for version in versions]


def _ids_of(change: LineChange, number: int) -> tuple[str, str]:
    # An id may be given as it is shown, with its number and its line: `12 5fa51c|x = 1`.
    given = (change.line_id, change.start_line_id, change.end_line_id)
    one, first, last = (each and each.partition("|")[0].rpartition(" ")[2] for each in given)
    if one and not first and not last:
        return one, one
    if first and last and not one:
        return first, last
    fault = "name either one line or a range" if one or first or last else "no line is named"
    raise InvalidArgumentError(
        f"Change {number}: {fault}.",
        hint="Give line_id for one line, or start_line_id and end_line_id for several.",
        details={"parameter": "changes", "change": number},
    )


def _refuse_missing(lines: _Lines, versions: Sequence[VersionWithIds], missing: Sequence[str]) -> NoReturn:
    indexed = _indexed(versions)[::-1]
    unknown: list[str] = []
    lost: dict[int, list[int]] = {}  # by the number of a version: indexes of its lines
    for line_id in missing:
        number = next((n for n, (_, index) in enumerate(indexed) if line_id in index), None)
        if number is None:
            unknown.append(line_id)
        else:
            lost.setdefault(number, []).append(indexed[number][1][line_id])
    if not unknown:
        one = len(missing) == 1
        became = (_what_became(lines, indexed[number][0], sorted(at)) for number, at in lost.items())
        raise StaleError(
            f"{quote(lines.path)} has {SINCE_SHOWN}, and so "
            f"{'has a line' if one else 'have lines'} that would be replaced:",
            hint="Use the ids shown here, or read the file again; nothing was written.",
            details=lines.details([*chain.from_iterable(became)], stale=list(missing)),
        )
    near = _nearest(lines, unknown)
    excerpt = near or lines.excerpt(0, _MOST_SHOWN)
    more = len(lines.bodies) - len(excerpt)
    are = "is not a line id" if len(unknown) == 1 else "are not line ids"
    listed = "the nearest ids are:" if near else "its lines are:" if excerpt else "it has no lines."
    places: list[_Row | str] = [*excerpt, *([f"[and {more} more]"] if more else [])]
    named = first_names([cut_line(visible(line_id), _LINE_CHARS) for line_id in unknown], _MOST_SHOWN)
    raise UnknownLineError(
        f"{named} {are} of {quote(lines.path)}; {listed}",
        hint=Joined(" ", _read_with_ids(lines.path), "Nothing was written."),
        details=lines.details(places, unknown=unknown),
    )


def _read_with_ids(path: str) -> Advice:
    return Advice("Call ", call("read", path=path, line_ids=True), ".")


def _what_became(lines: _Lines, version: VersionWithIds, lost: Sequence[int]) -> list[_Row | str]:
    """Show the given lines of an earlier version, each with the lines now in its place."""
    places: list[_Row | str] = []
    for at in lost[:_MOST_SHOWN]:
        places.append(f"{version.ids[at]} was: {visible(cut_line(version.lines[at], _LINE_CHARS))}")
        start, end = lines_now(version.lines, lines.bodies, at, at)
        places += lines.excerpt(start, min(end, start + _MOST_SHOWN)) or ["[and was deleted]"]
    more = len(lost) - _MOST_SHOWN
    return [*places, footer(f"{more} more")] if more > 0 else places


def _nearest(lines: _Lines, unknown: Sequence[str]) -> list[_Row]:
    near: set[int] = set()
    for line_id in unknown[:5]:
        matches = closest(line_id, lines.ids[:_MOST_LISTED], 3, 0.6)
        near |= {lines.ids.index(match) for match in matches}
    return [line for at in sorted(near) for line in lines.excerpt(at, at + 1)]


def _check_between(lines: _Lines, versions: _Indexed, start: int, end: int, number: int) -> None:
    """Raise an error if the lines between two ids have changed since they were shown."""
    first, last = lines.ids[start], lines.ids[end]
    now = [*lines.ids[start : end + 1]]
    known = [(version, at) for version, at in versions if first in at and last in at]
    for version, index in known:
        old_start, old_end = index[first], index[last]
        # A later version counts only if all its lines in the range were read.
        read = any(low <= old_start + 1 and old_end + 1 <= high for low, high in version.ranges)
        if (read or version is known[0][0]) and version.ids[old_start : old_end + 1] == now:
            return
    raise StaleError(
        f"Change {number}: the lines from {first} to {last} of {quote(lines.path)} "
        "are not those that were shown; they are now:",
        hint=Joined(
            " ", "To replace them, read them first.", _read_with_ids(lines.path), "Nothing was written."
        ),
        details=lines.details(
            lines.excerpt(start, min(end + 1, start + _MOST_SHOWN)), lines=[start + 1, end + 1]
        ),
    )
