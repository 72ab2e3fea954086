"""What a path that does not exist was probably meant to be; every method says it in the same way."""

import re
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import takewhile
from operator import itemgetter

from agentfs.errors import AgentFSError, NotFoundError
from agentfs.fs import Root, display_name, quote, watched
from agentfs.limits import Limits
from agentfs.messages import Joined, Message, call
from agentfs.search.diagnose import Probe, count_of_glob
from agentfs.search.options import GlobOptions, has_wildcard
from agentfs.tree.ignore_sources import with_slash
from agentfs.tree.walk import Walk

_MAX_ENTRIES = 100_000
_SECONDS = 0.2
_MAX_SUGGESTIONS = 3
_MAX_CORRECTIONS = 4  # names of one path
# What models put around a path: quotes, `@`, `file://`, and a line behind it.
_DECORATION = re.compile(r"^(?:file://)?[@\s\"'`]+|^file://|(?:[:#(]L?[0-9][-:,0-9L]*\)?)?[\s\"'`]*$")
_OF_DIRECTORIES = frozenset({"ls", "glob", "find"})  # methods whose path is that of a directory


@watched
def explain_missing(root: Root, limits: Limits, method: str, error: NotFoundError) -> None:
    """Add to an error what its path may mean: a glob, other slashes, the same name in another directory."""
    path = error.details.get("path")
    if not path or "as_glob" in error.details:
        return
    if has_wildcard(path) and (files := count_of_glob(Probe(root, limits, _SECONDS), GlobOptions(path))):
        error.hint = Message(
            f"As a glob it matches {files}: call ", call("glob", pattern=path), " to see them."
        )
        return
    straight = _DECORATION.sub("", path).replace("\\", "/")
    given = error.details.get("similar", ())
    with suppress(AgentFSError):
        is_there = root.exists(straight)
        found = [straight] if is_there else _alike(root, straight, method)
        if found and found != list(given):
            error.details["similar"] = found
            meant = f"Did you mean {' or '.join(map(quote, found))}?"
            error.hint = meant if is_there or given else Joined(" ", meant, error.hint)


def _alike(root: Root, path: str, method: str) -> list[str]:
    """Return paths with names spelled alike, or else the same name elsewhere, the most alike path first."""
    began = time.monotonic()
    parts = [part for part in path.removeprefix(root.path).split("/") if part not in ("", ".", "..")]
    found = _corrected(root, parts, _MAX_CORRECTIONS)
    # Where names come slowly, no walk would end in time.
    if found or not parts or time.monotonic() - began > _SECONDS / 2:
        return found
    wanted = [part.casefold() for part in reversed(parts)]
    ranked: list[tuple[int, str]] = []
    for real_path, is_directory in _named(root, wanted[0]):
        names = reversed(display_name(real_path).casefold().split("/"))
        same = len(list(takewhile(lambda pair: pair[0] == pair[1], zip(names, wanted, strict=False))))
        if same == len(parts) if is_directory else method not in _OF_DIRECTORIES:
            ranked.append((-same, root.display_path(real_path)))
    ranked.sort(key=itemgetter(0))
    return [each for _, each in ranked[:_MAX_SUGGESTIONS]]


def _corrected(root: Root, parts: Sequence[str], most: int) -> list[str]:
    """Return the path if it is there, or those with names in it replaced by similar ones that are."""
    path = "/".join(parts)
    try:
        root.entry(path)
    except NotFoundError as error:
        similar = error.details.get("similar", ()) if most else ()
        others = [[*near.split("/"), *parts[near.count("/") + 1 :]] for near in similar]
        return [found for other in others for found in _corrected(root, other, most - 1)]
    return [path]


def _named(root: Root, name: str) -> Iterator[tuple[str, bool]]:
    """Yield the real paths of files and directories with a name in either case, and which it is."""
    walk = Walk(
        root.top,
        root.usable_directories,
        max_entries=_MAX_ENTRIES,
        deadline=time.monotonic() + _SECONDS,
        directories=True,
        others=True,
    )
    for visit in walk:
        prefix = with_slash(visit.directory.real_path)
        for listed in (*visit.files, *filter(None, [visit.child])):
            if listed.name.casefold() == name:
                yield prefix + listed.name, listed is visit.child
