"""Hints for a missing path: its new name, a glob, other slashes, the same or a similar name elsewhere."""

import posixpath
import re
import time
from collections.abc import Sequence
from contextlib import suppress
from itertools import takewhile
from operator import itemgetter
from typing import NamedTuple

from agentfs.base.advice import Advice, FirstOf, Joined, Retry, call
from agentfs.errors import AgentFSError, NotDirectoryError, NotFoundError
from agentfs.fs import Root, display_name, quote
from agentfs.search.options import GlobOptions, has_wildcard
from agentfs.search.second_look import count_of_glob
from agentfs.shown.read_tracker import ReadTracker
from agentfs.shown.workspace_context import Context, watched
from agentfs.tree.ignore_sources import with_slash
from agentfs.watch.kept_walk import search_walk

_MAX_ENTRIES = 100_000
_SECONDS = 0.2
_MAX_SUGGESTIONS = 3
_MAX_CORRECTIONS = 4  # wrong names of one path that are corrected
# Characters that models add to a path: quotes, `@`, `file://`, and a line number after it.
_DECORATION = re.compile(
    r"^(?:file:(?://)?)?[@\s\"'`]+|^file:(?://)?|(?:[:#(]L?[0-9][-:,0-9L]*\)?)?[\s\"'`]*$"
)
_ALIAS = re.compile(r"^@/")  # of the source directory, in JavaScript projects
_OF_DIRECTORIES = frozenset({"ls", "glob"})  # methods whose `path` is a directory


@watched
def explain_missing(context: Context, method: str, error: NotFoundError) -> None:
    """Add a hint to the error for a missing path: its new name, a glob, other slashes, the name elsewhere.

    Args:
        context: The root, the limits, and the paths that this workspace has moved.
        method: The name of the method.
        error: The error for the missing path.
    """
    path = error.details.get("path")
    if not path or "as_glob" in error.details:
        return
    root, tracker, *_ = context
    if has_wildcard(path) and (files := count_of_glob(context, GlobOptions(path), _SECONDS)):
        error.hint = Advice(
            f"As a glob it matches {files}: call ", call("glob", pattern=path), " to see them."
        )
        return
    several = re.findall(r"[^\s,]+", path)
    if len(several) > 1 and all(_is_there(root, each) for each in several):
        retries = [Advice(Retry({"path": each})) for each in several]
        error.hint = Advice("Each path needs a call of its own: ", Joined("; ", *retries), ".")
        return
    straight = _DECORATION.sub("", _ALIAS.sub("", path)).replace("\\", "/")
    given = error.details.get("similar", ())
    with suppress(AgentFSError):
        is_there = straight != path and _is_there(root, straight)
        alike = _Alike([root.entry(straight).path]) if is_there else _alike(root, tracker, straight, method)
        # A link that leads nowhere has the name itself.
        found = [each for each in alike.paths if each != path]
        has_spaces = [*map(_with_spaces, found)] != [*map(quote, found)]
        is_said = found == list(given) and not has_spaces
        if not found or (is_said and method not in _OF_DIRECTORIES):
            return
        error.details["similar"] = found
        meant = f"Did you mean {' or '.join(map(_with_spaces, found))}?"
        is_dir = root.entry(found[0]).is_dir
        if method in _OF_DIRECTORIES and not is_dir:
            read = Advice(meant, " It is a file: call ", call("read", path=found[0]), ".")
            error.hint = FirstOf(read, f"{meant} It is a file.")
        elif alike.has_more:
            name, more = posixpath.basename(straight), "More may have this name"
            hints: list[str] = [f"{meant} {more}."]
            if not is_dir and not has_wildcard(name):
                hints.insert(0, Advice(f"{meant} {more}: call ", call("glob", pattern=f"**/{name}"), "."))
            error.hint = FirstOf(*hints)
        elif not is_said:
            error.hint = meant if is_there or given else Joined(" ", meant, error.hint)


def _with_spaces(path: str) -> str:
    """Return a path in quotes, with the numbers of spaces that look like the usual one."""
    spaces = dict.fromkeys(f"U+{ord(each):04X}" for each in path if each.isspace() and each != " ")
    return quote(path) + (f" (with the space {', '.join(spaces)})" if spaces else "")


def _is_there(root: Root, path: str) -> bool:
    with suppress(AgentFSError):  # it may lead outside
        return root.exists(path)
    return False


class _Alike(NamedTuple):
    """Existing paths that a missing path may mean, the most similar first."""

    paths: list[str]
    has_more: bool = False  # more paths have the same name, or there was no time to look for them


def _alike(root: Root, tracker: ReadTracker, path: str, method: str) -> _Alike:
    """Return paths with the same name elsewhere, then paths with similar names."""
    parts = [part for part in path.removeprefix(root.path).split("/") if part not in ("", ".", "..")]
    if not parts:
        return _Alike([])
    wants_directory = method in _OF_DIRECTORIES
    if found := _without_prefix(root, parts):
        return _Alike(found)
    wanted = [part.casefold() for part in reversed(parts)]
    named, is_complete = _named(root, wanted[0])
    ranked: list[tuple[int, bool, bool, bool, str]] = []
    for real_path, is_directory, is_link in named:
        name, *above = reversed(display_name(real_path).casefold().split("/"))
        pairs = zip(above, wanted[1:], strict=False)
        same = 1 + len(list(takewhile(lambda pair: pair[0] == pair[1], pairs)))
        if (same == len(parts) and name == wanted[0]) if is_directory else not wants_directory:
            shown = root.display_path(real_path)
            ranked.append((-same, name != wanted[0], not tracker.knows(real_path), is_link, shown))
    ranked.sort(key=itemgetter(0, 1, 2, 3))
    best = sum(same == ranked[0][0] for same, *_ in ranked)
    elsewhere = [path for *_, path in ranked[:_MAX_SUGGESTIONS]]
    spelled = [each for each in _corrected(root, parts, _MAX_CORRECTIONS) if each not in elsewhere]
    fitting = [each for each in spelled if root.entry(each).is_dir is wants_directory]
    if not elsewhere and not fitting and (wants_directory or not posixpath.splitext(parts[-1])[1]):
        fitting = spelled  # the other kind of entry; the name of a file is not meant for a directory
    has_more = bool(elsewhere) and (best > _MAX_SUGGESTIONS or not is_complete)
    return _Alike([*elsewhere, *fitting][:_MAX_SUGGESTIONS], has_more)


def _without_prefix(root: Root, parts: Sequence[str]) -> list[str]:
    """Return the path, or without its first names, such as that of the project, if it exists."""
    if root.exists("/".join(parts)):
        return ["/".join(parts)]
    for count, name in enumerate(parts[:-1], 1):
        rest = "/".join(parts[count:])
        if (name == posixpath.basename(root.path) or "/" in rest) and root.exists(rest):
            return [rest]
    return []


def _corrected(root: Root, parts: Sequence[str], most: int) -> list[str]:
    """Return the path if it exists, else existing paths in which similar names replace the missing ones.

    At most `most` names are replaced by others, besides those that differ only in case.
    """
    path = "/".join(parts)
    try:
        root.entry(path)
    except NotDirectoryError:
        return []
    except NotFoundError as error:
        similar = error.details.get("similar", ())
        for near in similar:
            end = near.count("/") + 1
            given = "/".join(parts[:end])
            if near != given and near.casefold() == given.casefold():
                return _corrected(root, [*near.split("/"), *parts[end:]], most)
        others = [[*near.split("/"), *parts[near.count("/") + 1 :]] for near in similar if most]
        return [found for other in others for found in _corrected(root, other, most - 1)]
    return [path]


def _has_name(name: str, wanted: str) -> bool:
    """Return True if a name is the wanted one in any case; a wanted name without a suffix has any."""
    folded = name.casefold()
    return folded == wanted or ("." not in wanted and posixpath.splitext(folded)[0] == wanted)


def _named(root: Root, name: str) -> tuple[list[tuple[str, bool, bool]], bool]:
    """Return the entries with this name, and False if there was no time for all.

    Each entry is its real path, is_directory, and is_link.
    """
    walk = search_walk(root)(
        root.top,
        root.usable_directories,
        max_entries=_MAX_ENTRIES,
        deadline=time.monotonic() + _SECONDS,
        directories=True,
        others=True,
    )
    found: list[tuple[str, bool, bool]] = []
    for visit in walk:
        prefix = with_slash(visit.directory.real_path)
        found += [
            (prefix + listed.name, listed is visit.child, listed.is_symlink())
            for listed in (*visit.files, *filter(None, [visit.child]))
            if _has_name(listed.name, name)
        ]
    return found, walk.skipped.reached is None
