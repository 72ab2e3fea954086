"""`edit_lines`: replace whole lines, named by the ids that `read` and `grep` show."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import NamedTuple

from agentfs.base import call_context
from agentfs.base.advice import Advice, ParameterName, call
from agentfs.base.visible import visible
from agentfs.editing.change_options import EditLinesOptions
from agentfs.editing.commit import SINCE_SHOWN, EditTarget
from agentfs.editing.draft import Draft, FileEdit, as_read
from agentfs.editing.edit import change_file
from agentfs.editing.explain import lines_now
from agentfs.errors import (
    AgentFSError,
    InvalidArgumentError,
    OverlapError,
    StaleError,
    UnknownLineError,
    UnreadError,
)
from agentfs.fs import Current, quote
from agentfs.results import EditResult, LineChange
from agentfs.shown.read_tracker import ReadTracker, VersionWithIds
from agentfs.text.display import cut_line, first_names, footer
from agentfs.text.lines import Replacement, bodies_of
from agentfs.text.nearest import closest

_MOST_LISTED = 5000
_MOST_SHOWN = 20
_LINE_CHARS = 160


class _Row(NamedTuple):
    number: int
    id: str
    text: str


@dataclass(frozen=True)
class _Lines:
    """The lines of a file without their ends, and the ids of the lines."""

    path: str
    bodies: Sequence[str]
    ids: Sequence[str]

    def rows(self, first: int, end: int) -> list[_Row | str]:
        """Return the number, the id and the text of the first of some lines."""
        return [
            _Row(index + 1, self.ids[index], _excerpt(self.bodies[index]))
            for index in range(first, min(end, first + _MOST_SHOWN, len(self.bodies)))
        ]

    def error(
        self, kind: type[AgentFSError], message: str, rows: Sequence[_Row | str] = (), **details: object
    ) -> AgentFSError:
        """Return an error with the ids and with lines to show: rows of the file, and other texts."""
        if rows:
            details |= {
                "places": [f"{row[0]} {row[1]}|{row[2]}" if isinstance(row, _Row) else row for row in rows],
                "rows": [row if isinstance(row, _Row) else None for row in rows],
            }
        hint = Advice("Call ", call("read", path=self.path, line_ids=True), ". Nothing was written.")
        details |= {"path": self.path, "line_ids": list(self.ids[:_MOST_LISTED])}
        return kind(message, hint=hint, details=details)


def _excerpt(line: str) -> str:
    return visible(cut_line(line, _LINE_CHARS))


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
        current, view = draft.current, draft.view
        versions = _shown_versions(tracker, current, fresh=options.fresh_ids)
        ids = tracker.line_ids(current.real_path, current.revision or "", as_read(view))
        lines = _Lines(current.path, bodies_of(view.text), ids)
        ranges = _ranges(lines, versions, changes)
        starts = [0, *accumulate(len(line) + 1 for line in lines.bodies)]
        replacements: list[Replacement] = []
        changed = 0
        for (first, last), change in sorted(zip(ranges, changes, strict=True), key=lambda each: each[0]):
            new = view.lf(change.new_content)
            changed += max(last + 1 - first, new.removesuffix("\n").count("\n") + 1 if new else 0)
            # Keep the line end of the last line, unless the lines are deleted.
            end = starts[last + 1] - 1 if new else min(starts[last + 1], len(view.text))
            replacements.append(Replacement(starts[first], end, new.removesuffix("\n")))
        draft.replace(replacements)
        return draft.finish("line_id", changed)

    return change_file(target, compute, "change")


def _shown_versions(tracker: ReadTracker, current: Current, *, fresh: bool) -> list[VersionWithIds]:
    """Return the versions whose ids were shown; with `fresh`, the last one must be the present one."""
    path = quote(current.path)
    versions, given = tracker.versions_with_ids(current.real_path), tracker.latest_ids(current.real_path)
    kind: type[AgentFSError] = UnreadError
    if not versions:
        why = f"No line ids of {path} have been shown."
    elif not fresh or given == current.revision:
        return versions
    elif given is None:
        why = f"No line ids of {path} are valid: it was not read, or this workspace has changed it since."
    else:
        kind, why = StaleError, f"{path} has {SINCE_SHOWN}, so its line ids are no longer valid."
    when = "again" if kind is StaleError else "first"
    read = call("read", path=current.path, line_ids=True)
    hint = Advice("Call ", read, f" {when}; nothing was written.")
    raise kind(why, hint=hint, details={"path": current.path})


def _ranges(
    lines: _Lines, versions: Sequence[VersionWithIds], changes: Sequence[LineChange]
) -> list[tuple[int, int]]:
    """Return the indexes of the first and the last line of each change; refuse conflicting changes."""
    named = [_ids_of(change, number) for number, change in enumerate(changes, 1)]
    index = {line_id: at for at, line_id in enumerate(lines.ids)}
    if missing := [
        line_id for line_id in dict.fromkeys(each for pair in named for each in pair) if line_id not in index
    ]:
        raise _missing(lines, versions, missing)
    ranges = [(index[first], index[last]) for first, last in named]
    for number, ((first, last), ids) in enumerate(zip(ranges, named, strict=True), 1):
        if first > last:
            where = f"{ids[0]} is line {first + 1} and {ids[1]} is line {last + 1}"
            why = (
                f"Change {number}: {where}, so the range runs backwards; swap start_line_id and end_line_id."
            )
            raise lines.error(InvalidArgumentError, why, lines=[first + 1, last + 1])
    order = sorted(range(len(ranges)), key=lambda number: ranges[number])
    for before, after in pairwise(order):
        at = ranges[after][0]
        if at <= ranges[before][1]:
            which = f"{min(before, after) + 1} and {max(before, after) + 1}"
            why = f"Changes {which} both replace line {at + 1} ({lines.ids[at]}); join them into one."
            raise lines.error(OverlapError, why, lines=[at + 1])
    _check_between(lines, versions, ranges)
    return ranges


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


def _missing(lines: _Lines, versions: Sequence[VersionWithIds], missing: Sequence[str]) -> AgentFSError:
    """Return the error for ids that the file does not have: those of changed lines, or unknown ones."""
    shown = {line_id: version for version in versions for line_id in version.ids}
    if unknown := [line_id for line_id in missing if line_id not in shown]:
        near = {at for line_id in unknown[:5] for at in _nearest(lines, line_id)}
        rows = [row for at in sorted(near) for row in lines.rows(at, at + 1)]
        listed = "the nearest ids are:" if rows else "its lines are:" if lines.ids else "it has no lines."
        rows = rows or lines.rows(0, _MOST_SHOWN)
        more = len(lines.bodies) - len(rows)
        rows += [f"[and {more} more]"] if more else []
        named = first_names([_excerpt(line_id) for line_id in unknown], _MOST_SHOWN)
        are = "is not a line id" if len(unknown) == 1 else "are not line ids"
        why = f"{named} {are} of {quote(lines.path)}; {listed}"
        return lines.error(UnknownLineError, why, rows, unknown=unknown)
    rows = list[_Row | str]()
    for line_id in missing[:_MOST_SHOWN]:
        version = shown[line_id]
        at = version.ids.index(line_id)
        now = lines.rows(*lines_now(version.lines, lines.bodies, at, at))
        rows += [f"{line_id} was: {_excerpt(version.lines[at])}", *(now or ["[and was deleted]"])]
    more = len(missing) - _MOST_SHOWN
    rows += [footer(f"{more} more")] if more > 0 else []
    what = "has a line" if len(missing) == 1 else "have lines"
    why = f"{quote(lines.path)} has {SINCE_SHOWN}, and so {what} that would be replaced:"
    return lines.error(StaleError, why, rows, stale=list(missing))


def _nearest(lines: _Lines, line_id: str) -> list[int]:
    return [lines.ids.index(each) for each in closest(line_id, lines.ids[:_MOST_LISTED], 3, 0.6)]


def _check_between(
    lines: _Lines, versions: Sequence[VersionWithIds], ranges: Sequence[tuple[int, int]]
) -> None:
    """Raise an error if the lines between two ids have changed since they were shown."""
    longer = [each for each in ranges if each[0] < each[1]]
    indexes = [{line_id: at for at, line_id in enumerate(each.ids)} for each in versions if longer]
    for start, end in longer:
        call_context.check()
        first, last, now = lines.ids[start], lines.ids[end], [*lines.ids[start : end + 1]]
        known = [
            (version, index[first], index[last])
            for version, index in zip(versions, indexes, strict=True)
            if first in index and last in index
        ]
        # A later version than the first counts only if all its lines in the range were read.
        if not any(
            version.ids[old_start : old_end + 1] == now
            and (number == 0 or any(a <= old_start + 1 and old_end + 1 <= b for a, b in version.ranges))
            for number, (version, old_start, old_end) in enumerate(known)
        ):
            why = f"The lines from {first} to {last} of {quote(lines.path)} are not those that were shown; "
            rows = lines.rows(start, end + 1)
            raise lines.error(StaleError, f"{why}they are now:", rows, lines=[start + 1, end + 1])
