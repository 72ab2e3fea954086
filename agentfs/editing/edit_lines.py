"""`edit_lines`: replace whole lines, named by the ids that `read` and `grep` show."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import NamedTuple

from agentfs.base import call_context
from agentfs.base.advice import Advice, call
from agentfs.editing.change_options import EditLinesOptions
from agentfs.editing.commit import SINCE_SHOWN, EditTarget
from agentfs.editing.draft import Draft, FileEdit, as_read
from agentfs.editing.edit import change_file, check_any
from agentfs.editing.explain import excerpt, lines_now
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
from agentfs.text.display import first_names
from agentfs.text.lines import Replacement, bodies_of
from agentfs.text.nearest import closest

_MOST_LISTED = 5000
_MOST_SHOWN = 20


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
            _Row(index + 1, self.ids[index], excerpt(self.bodies[index]))
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


def edit_lines_file(target: EditTarget, options: EditLinesOptions) -> EditResult:
    """Replace lines named by their ids, all or none."""
    tracker, changes = target.context.tracker, options.changes
    check_any("changes", changes)

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
    if versions and (not fresh or given == current.revision):
        return versions
    if not current.content:
        why = f"{path} is empty, so it has no line ids; nothing was written."
        raise UnreadError(why, hint="Write its text as a whole.", details={"path": current.path})
    kind: type[AgentFSError] = UnreadError
    why = f"No line ids of {path} are valid: it was not read, or this workspace has changed it since."
    if versions and given is not None:
        kind = StaleError
        why = f"{path} has {SINCE_SHOWN}, so its line ids are no longer valid."
    read = call("read", path=current.path, line_ids=True)
    raise kind(why, hint=Advice("Call ", read, "; nothing was written."), details={"path": current.path})


def _ranges(
    lines: _Lines, versions: Sequence[VersionWithIds], changes: Sequence[LineChange]
) -> list[tuple[int, int]]:
    """Return the indexes of the first and the last line of each change; refuse conflicting changes."""
    index, *indexes = (
        {name: at for at, name in enumerate(ids)} for ids in (lines.ids, *(v.ids for v in versions))
    )
    named = [_ids_of(change, number) for number, change in enumerate(changes, 1)]
    ids = dict.fromkeys(each for pair in named for each in pair)
    if unknown := [each for each in ids if each not in index and not any(each in known for known in indexes)]:
        raise _unknown(lines, unknown)
    ranges, stale, rows = list[tuple[int, int]](), list[str](), list[_Row | str]()
    for number, (first, last) in enumerate(named, 1):
        call_context.check()
        start, end = index.get(first, -1), index.get(last, -1)
        if start > end >= 0:
            where = f"{first} is line {start + 1} and {last} is line {end + 1}"
            why = (
                f"Change {number}: {where}, so the range runs backwards; swap start_line_id and end_line_id."
            )
            raise lines.error(InvalidArgumentError, why, lines=[start + 1, end + 1])
        shown = [
            (version, known[first], known[last] + 1)
            for version, known in zip(versions, indexes, strict=True)
            if first in known and last in known
        ]
        now = lines.ids[start : end + 1] if min(start, end) >= 0 else ()
        if not now or not any(
            [*version.ids[old_start:old_end]] == [*now]
            # A later version than the first counts only if all its lines in the range were read.
            and (count == 0 or any(a <= old_start + 1 and old_end <= b for a, b in version.ranges))
            for count, (version, old_start, old_end) in enumerate(shown)
        ):
            stale += [first] if first == last else [first, last]
            if shown and len(rows) < 2 * _MOST_SHOWN:
                rows += _became(lines, index, *shown[-1])
        ranges.append((start, end))
    if stale:
        what = "has a line" if len(stale) == 1 else "have lines"
        why = f"{quote(lines.path)} has {SINCE_SHOWN}, and so {what} that would be replaced:"
        raise lines.error(StaleError, why, rows, stale=stale)
    order = sorted(range(len(ranges)), key=lambda number: ranges[number])
    for before, after in pairwise(order):
        at = ranges[after][0]
        if at <= ranges[before][1]:
            which = f"{min(before, after) + 1} and {max(before, after) + 1}"
            why = f"Changes {which} both replace line {at + 1} ({lines.ids[at]}); join them into one."
            raise lines.error(OverlapError, why, lines=[at + 1])
    return ranges


def _became(
    lines: _Lines, index: Mapping[str, int], version: VersionWithIds, start: int, end: int
) -> list[_Row | str]:
    """Show the lines of an earlier version that have changed, and the lines that are in place of all."""
    gone = [at for at in range(start, end) if version.ids[at] not in index]
    was = [f"{version.ids[at]} was: {excerpt(version.lines[at])}" for at in gone[:_MOST_SHOWN]]
    now = lines.rows(*lines_now(version.lines, lines.bodies, start, end - 1))
    return [*was, *(now or ["[and was deleted]"])]


def _ids_of(change: LineChange, number: int) -> tuple[str, str]:
    # An id may be given as it is shown, with its number and its line: `12 5fa51c|x = 1`.
    given = (change.line_id, change.start_line_id, change.end_line_id)
    one, first, last = (each and each.partition("|")[0].rpartition(" ")[2] for each in given)
    if one and not first and not last:
        return one, one
    if first and last and not one:
        return first, last
    raise InvalidArgumentError(
        f"Change {number}: pass either one line or a range.",
        hint="Give line_id for one line, or start_line_id and end_line_id for several.",
        details={"parameter": "changes", "change": number},
    )


def _unknown(lines: _Lines, unknown: Sequence[str]) -> AgentFSError:
    """Return the error for ids that were never shown, with the lines that have the most similar ids."""
    listed = lines.ids[:_MOST_LISTED]
    near = {lines.ids.index(each) for line_id in unknown[:5] for each in closest(line_id, listed, 3, 0.6)}
    rows = [row for at in sorted(near) for row in lines.rows(at, at + 1)] or lines.rows(0, _MOST_SHOWN)
    are = "is not a line id" if len(unknown) == 1 else "are not line ids"
    named = first_names([excerpt(line_id) for line_id in unknown], _MOST_SHOWN)
    why = f"{named} {are} of {quote(lines.path)}, which has {'these:' if rows else 'no lines.'}"
    if more := len(lines.ids) - len(rows):
        rows.append(f"[and {more} more]")
    return lines.error(UnknownLineError, why, rows, unknown=unknown)
