"""`ls`: the entries of a directory, directories first, then all else, by name."""

import time

from agentfs.disk import Root, show_name
from agentfs.errors import AgentFSError, InvalidArgumentError
from agentfs.limits import Limits
from agentfs.results import Entry, ListResult, NextCall, Skipped
from agentfs.search.leftout import one_line, say_reached, say_skipped
from agentfs.search.paging import check_offset, check_page, next_page
from agentfs.search.walk import Walk
from agentfs.text import continuation, footer


def list_directory(
    root: Root, limits: Limits, path: str, depth: int, limit: int | None, offset: int, include_ignored: bool
) -> ListResult:
    """List a directory.

    Args:
        root: The door to the disk.
        limits: The bounds of the answer.
        path: The directory.
        depth: Levels to list; 0: all.
        limit: Entries of a page, or None for the usual number.
        offset: Entries before the page.
        include_ignored: Whether hidden and ignored entries are listed too.

    Returns:
        The page; each directory is followed by what lies in it.

    Raises:
        AgentFSError: invalid_argument, past_end, and those of the path: not_found, not_a_directory, …
    """
    if depth < 0:
        raise InvalidArgumentError(
            f"`depth` must be 0 or more, not {depth}.",
            hint="1 lists the directory itself, 2 what lies in its directories too, 0 all levels.",
        )
    size = check_page(limit, offset, limits.list_entries)
    path = path or "."
    walk = Walk(
        root,
        path,
        max_entries=limits.walk_entries,
        deadline=time.monotonic() + limits.timeout,
        hidden=include_ignored,
        ignored=include_ignored,
        depth=depth,
        others=True,
    )
    found = _in_order(walk)
    check_offset(offset, len(found), "entries")
    entries = [entry for each in found[offset : offset + size] if (entry := _entry(root, each))]
    shown_to = min(offset + size, len(found))
    following: NextCall | None = None
    if shown_to < len(found):
        following = next_page(
            "ls",
            shown_to,
            path=(path, "."),
            depth=(depth, 1),
            limit=(limit, None),
            include_ignored=(include_ignored, False),
        )
    skipped = walk.skipped
    notes = (
        f"entries {offset + 1}-{shown_to} of {len(found)}" if offset or following else "",
        continuation(following),
        say_skipped(skipped, can_open=not include_ignored),
        say_reached(skipped, limits.timeout),
    )
    return ListResult(
        entries,
        len(found),
        skipped,
        truncated=following is not None,
        next=following,
        text=_text(path, entries, skipped, notes),
    )


def _in_order(walk: Walk) -> list[str]:
    """Return all paths: a directory, then what lies in it; directories before files."""
    found: list[tuple[list[tuple[bool, str]], str]] = []
    for visit in walk:
        prefix = f"{visit.path}/" if visit.path else ""
        above = [(False, part) for part in visit.below.split("/")[:-1]]
        for is_file, listed in ((False, visit.directories), (True, visit.files)):
            found += [([*above, (is_file, entry.name)], prefix + show_name(entry.name)) for entry in listed]
    found.sort()
    return [path for _, path in found]


def _entry(root: Root, path: str) -> Entry | None:
    try:
        return root.entry(path)
    except AgentFSError:
        # It vanished since it was listed.
        return None


def _text(path: str, entries: list[Entry], skipped: Skipped, notes: tuple[str, ...]) -> str:
    lines = [entry_line(entry) for entry in entries]
    if not lines:
        what = "has nothing to show" if skipped else "is empty"
        lines.append(f"{one_line(path)} {what}.")
    return "\n".join([*lines, *filter(None, [footer(*notes)])])


def entry_line(entry: Entry) -> str:
    """Return how an entry is shown: a path, and a size, a target or a kind.

    Args:
        entry: The entry.
    """
    shown = one_line(entry.path)
    if entry.type == "symlink":
        where = one_line(entry.target) if entry.target is not None else "(outside the workspace)"
        return f"{shown} -> {where}"
    if entry.is_dir:
        return f"{shown}/"
    if entry.type == "other":
        return f"{shown}  (special file)"
    return f"{shown}  {_size(entry.size or 0)}"


def _size(size: int) -> str:
    amount = float(size)
    for unit in ("B", "KB", "MB", "GB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}" if unit == "B" or amount >= 10 else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.0f} TB"
