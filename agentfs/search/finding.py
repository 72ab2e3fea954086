"""`glob`: the files whose path matches, in order of path."""

import re
import time
from collections.abc import Sequence

from agentfs.disk import Root, show_name
from agentfs.errors import AgentFSError, OutsideWorkspaceError
from agentfs.limits import Limits
from agentfs.results import Entry, GlobResult, NextCall, Skipped
from agentfs.search.globs import Matcher, compile_globs, hidden_names
from agentfs.search.ignore import Listed
from agentfs.search.leftout import one_line, say_reached, say_skipped, why_left_out
from agentfs.search.paging import check_offset, check_page, next_page
from agentfs.search.walk import Visit, Walk
from agentfs.text import continuation, footer

SECOND_LOOK_ENTRIES = 200_000
SECOND_LOOK_SECONDS = 0.5

_LITERAL_START = re.compile(r"/+([^*?\[\]{}\\/]+)/")


def glob_files(
    root: Root,
    limits: Limits,
    pattern: str | Sequence[str],
    path: str,
    limit: int | None,
    offset: int,
    include_ignored: bool,
) -> GlobResult:
    """Find the files that match a glob.

    Args:
        root: The door to the disk.
        limits: The bounds of the answer.
        pattern: One glob or several; see `compile_globs`.
        path: The directory to search.
        limit: Files of a page, or None for the usual number.
        offset: Files before the page.
        include_ignored: Whether hidden and ignored files are searched too.

    Returns:
        The page, in order of path.

    Raises:
        AgentFSError: invalid_pattern, outside_workspace, invalid_argument, past_end, and those of the path:
            not_found, not_a_directory, …
    """
    started = time.monotonic()
    size = check_page(limit, offset, limits.glob_results)
    path = path or "."
    given = [pattern] if isinstance(pattern, str) else list(pattern)
    globs = bind_to_search(root, given, path)
    opened = hidden_names(globs)
    # A walk that opens no hidden name meets none, so the matcher need not look for one either.
    matches = compile_globs(globs, hidden=include_ignored or opened is None)
    walk = Walk(
        root,
        path,
        max_entries=limits.walk_entries,
        deadline=started + limits.timeout,
        hidden=include_ignored or opened or False,
        ignored=include_ignored,
        others=True,
    )
    found, links, special = _find(walk, matches)
    skipped = _with(walk.skipped, links, special)
    total = len(found)
    if total:
        check_offset(offset, total, "files")
    files = [entry for each in found[offset : offset + size] if (entry := _entry(root, each))]
    shown_to = min(offset + size, total)
    following: NextCall | None = None
    if shown_to < total:
        following = next_page(
            "glob",
            shown_to,
            pattern=(pattern if isinstance(pattern, str) else given, None),
            path=(path, "."),
            limit=(limit, None),
            include_ignored=(include_ignored, False),
        )
    lines = [one_line(entry.path) for entry in files]
    if not total:
        lines.append(_say_nothing(root, given, path, skipped, include_ignored=include_ignored, globs=globs))
    notes = footer(
        f"files {offset + 1}-{shown_to} of {total if skipped.reached is None else f'at least {total}'}"
        if total and (offset or following or skipped.reached)
        else "",
        continuation(following),
        say_skipped(skipped, can_open=not include_ignored),
        say_reached(skipped, limits.timeout),
    )
    return GlobResult(
        files,
        total,
        skipped,
        exact=skipped.reached is None,
        truncated=following is not None,
        elapsed_ms=int((time.monotonic() - started) * 1000),
        next=following,
        text="\n".join([*lines, *filter(None, [notes])]),
    )


def bind_to_search(root: Root, globs: Sequence[str], path: str) -> list[str]:
    """Make absolute globs inside the root relative to the search directory, and refuse those outside.

    Args:
        root: The door to the disk.
        globs: Globs as they were given.
        path: The search directory as it was given.

    Raises:
        OutsideWorkspaceError: A glob begins with `/` and a directory that is neither under the root nor in
            the search directory (outside_workspace).
    """
    bound: list[str] = []
    for glob in globs:
        negation = "!" if glob.startswith("!") else ""
        rest = glob.removeprefix("!")
        if rest.startswith(f"{root.path.rstrip('/')}/"):
            bound.append(negation + _relative(root, rest, path))
            continue
        start = _LITERAL_START.match(rest)
        if start and start[1] != ".." and not _exists(root, path, start[1]):
            raise OutsideWorkspaceError(
                f"The glob {glob!r} begins with '/', which means the search directory, "
                f"and there is no {start[1]!r} in it.",
                hint="Only the workspace can be searched: leave out the '/', and put a directory in `path`.",
                details={"pattern": glob},
            )
        bound.append(glob)
    return bound


def _relative(root: Root, glob: str, path: str) -> str:
    below = glob[len(root.path.rstrip("/")) :]
    with root.open_directory(path) as directory:
        base = f"/{directory.path}/" if directory.path else "/"
    if not below.startswith(base):
        raise OutsideWorkspaceError(
            f"The glob {glob!r} does not lie in the search directory {path!r}.",
            hint="Leave out `path`, or make the glob relative to it.",
            details={"pattern": glob},
        )
    return below[len(base) - 1 :]


def _exists(root: Root, path: str, name: str) -> bool:
    try:
        return root.exists(f"{path}/{name}")
    except AgentFSError:
        return False


def _find(walk: Walk, matches: Matcher) -> tuple[list[str], int, int]:
    """Return the paths that match; and how many links to directories and special files matched too."""
    found: list[str] = []
    links = special = 0
    for visit in walk:
        prefix = f"{visit.path}/" if visit.path else ""
        for listed in visit.files:
            if not matches(visit.below + listed.name):
                continue
            if listed.is_file(follow_symlinks=False) or _is_link_to_file(visit, listed):
                found.append(prefix + show_name(listed.name))
            elif listed.is_symlink():
                links += 1
            else:
                special += 1
    return found, links, special


def _is_link_to_file(visit: Visit, listed: Listed) -> bool:
    """Tell whether it is a link that leads to no directory inside; where else it leads is not asked."""
    try:
        return listed.is_symlink() and not visit.directory.entry(listed).is_dir
    except AgentFSError:
        return False


def _entry(root: Root, path: str) -> Entry | None:
    try:
        return root.entry(path)
    except AgentFSError:
        # It vanished since it was found.
        return None


def _with(skipped: Skipped, links: int, special: int) -> Skipped:
    return Skipped(
        hidden=skipped.hidden,
        ignored=skipped.ignored,
        vcs=skipped.vcs,
        unreadable=skipped.unreadable,
        symlink=skipped.symlink + links,
        special=skipped.special + special,
        rules=skipped.rules,
        reached=skipped.reached,
    )


def _say_nothing(
    root: Root,
    given: Sequence[str],
    path: str,
    skipped: Skipped,
    *,
    include_ignored: bool,
    globs: Sequence[str],
) -> str:
    """Say that nothing matched, and where something would have."""
    pattern = ", ".join(one_line(each) for each in given)
    where = "" if path == "." else f" in {one_line(path)}"
    said = f"0 files match {pattern}{where}"
    if not include_ignored and (skipped.hidden or skipped.ignored):
        walk = Walk(
            root,
            path,
            max_entries=SECOND_LOOK_ENTRIES,
            deadline=time.monotonic() + SECOND_LOOK_SECONDS,
            hidden=True,
            ignored=True,
        )
        found, _, _ = _find(walk, compile_globs(globs, hidden=True))
        if found:
            count = f"{len(found)}{'' if walk.skipped.reached is None else ' or more'}"
            why = why_left_out(root, found[0])
            among = f"{count} among hidden and ignored{f', as in {why}' if why else ''}"
            return f"{said}; {among}: pass include_ignored=true"
    if any("[" in each.replace("\\[", "") for each in given):
        return f"{said}; [ ] stands for one character of a set: write \\[ for the bracket itself"
    return f"{said}."
