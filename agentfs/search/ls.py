"""`ls`: the entries of a directory, directories first, then all else, by name."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any, Literal, get_args

from agentfs import call_context
from agentfs.errors import InvalidArgumentError
from agentfs.fs import Directory, Root, unicode_duplicates_among
from agentfs.limits import Limits
from agentfs.messages import Joined, Message, NextCall, ParameterName
from agentfs.results import Entry, ListResult, Skipped
from agentfs.search.collect import add_entries
from agentfs.search.find import bind_to_search
from agentfs.search.paging import Page, as_list, check_choice, check_offset, next_page, page_of, paths_of
from agentfs.search.skip_report import describe_skipped, describe_stop
from agentfs.search.suggestions import suggesting
from agentfs.text import Step, continuation, fitted, footer
from agentfs.tree.gitignore import Listed
from agentfs.tree.globs import compile_exclude
from agentfs.tree.ignore_sources import slashed
from agentfs.tree.walk import Walk
from agentfs.visible import one_line

Sort = Literal["name", "modified", "size"]


def list_directory(
    root: Root,
    limits: Limits,
    path: str | Sequence[str] = ".",
    depth: int = 1,
    limit: int | None = None,
    offset: int = 0,
    include_ignored: bool = False,
    *,
    ignore: str | Sequence[str] | None = None,
    hidden: bool | None = None,
    sort: Sort = "name",
) -> ListResult:
    """List a directory.

    Args:
        root: The confined root.
        limits: The bounds of the answer.
        path: The directory, or several.
        depth: Levels to list; 0: all.
        limit: Entries of a page, or None for the usual number.
        offset: Entries before the page.
        include_ignored: Whether hidden and ignored entries are listed too.
        ignore: Globs of what is left out.
        hidden: Whether hidden entries are listed; None: as `include_ignored`.
        sort: The order within each directory; directories come first in each.

    Returns:
        The page; each directory is followed by what lies in it.

    Raises:
        AgentFSError: invalid_argument, past_end, and those of the path: not_found, not_a_directory, …
    """
    if depth < 0:
        raise InvalidArgumentError(
            Message(ParameterName("depth", quoted=True), f" must be 0 or more, not {depth}."),
            hint="1 lists the directory itself, 2 what lies in its directories too, 0 all levels.",
        )
    page = page_of(limit, offset, limits.list_entries, limits)
    check_choice("sort", sort, get_args(Sort))
    paths = paths_of(path)
    globs = as_list(ignore)
    deadline = call_context.deadline(limits.timeout)
    walk = Walk(
        root,
        paths,
        max_entries=limits.walk_entries,
        deadline=deadline,
        hidden=include_ignored if hidden is None else hidden,
        ignored=include_ignored,
        depth=depth,
        others=True,
        directories=True,
        listing=True,
        exclude=compile_exclude(bind_to_search(root, globs, paths[0])) if globs else None,
        keep=page.end if len(paths) == 1 else None,
        key=_KEYS[sort],
    )
    with suggesting(root):
        entries, total, vanished = _listed(walk, page, deadline, several=len(paths) > 1)
    skipped = walk.skipped
    if skipped.reached is None:
        check_offset(offset, total, "entries")
    if vanished:
        skipped = replace(skipped, unreadable=skipped.unreadable + vanished)
    end = min(page.end, total)
    least = "" if skipped.reached is None else "at least "
    alike = ", ".join(one_line(path) for path in unicode_duplicates_among(entry.path for entry in entries))
    if alike:
        alike = f"names that look the same, in two Unicode forms: {alike}"

    def answer(count: int) -> ListResult:
        shown_to = end if count >= len(entries) else offset + count
        following: NextCall | None = None
        if shown_to < total:
            following = next_page(
                "ls",
                shown_to,
                path=(path or ".", "."),
                depth=(depth, 1),
                limit=(limit, None),
                include_ignored=(include_ignored, False),
                ignore=(ignore, None),
                hidden=(hidden, None),
                sort=(sort, "name"),
            )
        notes = (
            f"entries {offset + 1}-{shown_to} of {least}{total}" if offset or following or least else "",
            continuation(following),
            describe_skipped(skipped, can_open=not include_ignored),
            describe_stop(skipped, limits.timeout),
            alike,
        )
        text = _text(paths, entries[:count], skipped, notes)
        truncated = following is not None
        return ListResult(entries, total, skipped, truncated=truncated, next=following, text=text)

    return fitted(limits, Step(max(min(len(entries), limits.output_tokens), 1), answer))


def _listed(walk: Walk, page: Page, deadline: float, *, several: bool) -> tuple[list[Entry], int, int]:
    """Return the entries of the page, how many there are in all, and how many of the page have vanished."""
    entries: list[Entry] = []
    seen: set[str] = set()
    total = vanished = 0
    for visit in walk:
        names = visit.files if visit.child is None else [visit.child, *visit.files]
        if several:
            names = _new(visit.directory, names, seen)
        vanished += add_entries(entries, page, visit.directory, names, total, deadline)
        total += len(names) + visit.more
    return entries, total, vanished


def _new(directory: Directory, names: list[Listed], seen: set[str]) -> list[Listed]:
    """Return those that were not seen from another of several paths."""
    real = slashed(directory.real_path)
    new = [listed for listed in names if real + listed.name not in seen]
    seen.update(real + listed.name for listed in new)
    return new


def _by_change(listed: Listed) -> Any:
    try:
        return -listed.stat(follow_symlinks=False).st_mtime, listed.name
    except OSError:
        return 0.0, listed.name


def _by_size(listed: Listed) -> Any:
    try:
        size = 0 if listed.is_dir(follow_symlinks=False) else listed.stat(follow_symlinks=False).st_size
    except OSError:
        size = 0
    return -size, listed.name


_KEYS: dict[str, Callable[[Listed], Any]] = {
    "name": attrgetter("name"),
    "modified": _by_change,
    "size": _by_size,
}


def _text(paths: list[str], entries: list[Entry], skipped: Skipped, notes: tuple[str, ...]) -> str:
    lines = [entry_line(entry) for entry in entries]
    if not lines:
        one = len(paths) == 1
        what = (
            ("has" if one else "have") + " nothing to show" if skipped else "is empty" if one else "are empty"
        )
        lines.append(f"{', '.join(one_line(path) for path in paths)} {what}.")
    return Joined("\n", "\n".join(lines), footer(*notes))


def entry_line(entry: Entry) -> str:
    """Return how an entry is shown: a path, and a size, a target or a kind.

    Args:
        entry: The entry.
    """
    shown = one_line(entry.path)
    if entry.protected and not entry.is_dir:
        shown += "  (protected)"
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
