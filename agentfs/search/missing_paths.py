"""Hints for a missing path: a glob, other slashes, the same or a similar name elsewhere."""

import posixpath
import re
import time
from collections.abc import Sequence
from contextlib import suppress
from itertools import islice, takewhile
from operator import itemgetter

from agentfs.base.advice import Advice, FirstOf, Joined, NextCall, Retry, call, plural
from agentfs.errors import AgentFSError, NotDirectoryError, NotFoundError
from agentfs.fs import Root, quote
from agentfs.search.entries import FoundEntries
from agentfs.search.options import GlobOptions, has_wildcard
from agentfs.search.second_look import first_entries
from agentfs.shown.workspace_context import Context, watched
from agentfs.text.nearest import closest

_SECONDS = 0.2
_MAX_RANKED = 1000
_MAX_SUGGESTIONS = 3
# Characters that models add to a path: quotes, `@`, `@/` for the source directory, `file://`, a line number.
_DECORATION = re.compile(
    r"^(?:file:(?://)?)?(?:@/|[@\s\"'`]+)|^file:(?://)?|(?:[:#(]L?[0-9][-:,0-9L]*\)?)?[\s\"'`]*$"
)
_GLOB_SPECIAL = re.compile(r"[\\*?\[\]{}!]")
_WITH_GLOB = frozenset({"grep", "replace"})  # methods that have a parameter `glob`
_OF_DIRECTORIES = frozenset({"ls", "glob"})  # methods whose `path` is a directory


@watched
def explain_missing(context: Context, method: str, error: NotFoundError) -> None:
    """Add a hint to the error for a missing path: a call of `glob`, other slashes, or the name elsewhere.

    Args:
        context: The root and the limits.
        method: The name of the method.
        error: The error for the missing path.
    """
    path = error.details.get("path")
    if not path:
        return
    root = context.root
    if has_wildcard(path) and (hint := _as_glob(context, path, method)):
        error.hint = hint
        return
    straight = _DECORATION.sub("", path).replace("\\", "/")
    with suppress(AgentFSError):
        paths, has_more = _alike(context, straight, method)
        # A link that leads nowhere has the name itself.
        if not (found := [each for each in paths if each != path]):
            return
        error.details["similar"] = found
        meant = f"Did you mean {' or '.join(map(_with_spaces, found))}?"
        name, is_dir = posixpath.basename(straight), root.entry(found[0]).is_dir
        if method in _OF_DIRECTORIES and not is_dir:
            error.hint = _with_call(f"{meant} It is a file", call("read", path=found[0]))
        elif has_more:
            find = None if is_dir or has_wildcard(name) else call("glob", pattern=f"**/{name}")
            error.hint = _with_call(f"{meant} More may have this name", find)
        else:
            error.hint = Joined(" ", meant, error.hint)


def _as_glob(context: Context, path: str, method: str) -> str:
    """Return the call for the files that a path matches as a glob, or "" if there are none."""
    below = path.removeprefix(context.root.path).strip("/")
    for glob in (f"/{below}", f"/{below}/**"):
        found = first_entries(context, GlobOptions(glob), time.monotonic() + _SECONDS)
        if found is not None and found.total:
            least = "" if found.exact else "at least "
            fact = f"As a glob it matches {least}{plural(found.total, 'file')}"
            if method in _WITH_GLOB:
                return FirstOf(Advice(f"{fact}: ", Retry({"glob": glob}, ("path",)), "."), f"{fact}.")
            return _with_call(fact, call("glob", pattern=glob))
    return ""


def _with_call(text: str, advised: NextCall | None) -> str:
    return f"{text}." if advised is None else FirstOf(Advice(f"{text}: call ", advised, "."), f"{text}.")


def _with_spaces(path: str) -> str:
    """Return a path in quotes, with the numbers of spaces that look like the usual one."""
    spaces = dict.fromkeys(f"U+{ord(each):04X}" for each in path if each.isspace() and each != " ")
    return quote(path) + (f" (with the space {', '.join(spaces)})" if spaces else "")


def _alike(context: Context, path: str, method: str) -> tuple[list[str], bool]:
    """Return paths with the same name elsewhere, then with similar names; and whether there may be more."""
    root = context.root
    with suppress(AgentFSError):
        path, _ = root.resolve(path)
    parts = [part for part in path.split("/") if part not in ("", ".", "..")]
    # The first names may be those of directories above the root.
    for count in range(len(parts)):
        rest = "/".join(parts[count:])
        is_likely = count == 0 or parts[count - 1] == posixpath.basename(root.path) or "/" in rest
        if is_likely and root.exists(rest):
            return [rest], False
    if not parts:
        return [], False
    wants_directory = method in _OF_DIRECTORIES
    wanted = [part.casefold() for part in reversed(parts)]
    named = _named(context, parts[-1])
    ranked: list[tuple[int, bool, bool, str]] = []
    for entry in named.entries if named is not None else ():
        names = entry.path.casefold().split("/")[::-1]
        pairs = zip(names[1:], wanted[1:], strict=False)
        same = len(list(takewhile(lambda pair: pair[0] == pair[1], pairs)))
        if (names[: len(parts)] == wanted) if entry.is_dir else not wants_directory:
            shown = root.display_path(entry.path)
            ranked.append((-same, names[0] != wanted[0], entry.type == "symlink", shown))
    ranked.sort(key=itemgetter(0, 1, 2))
    best = sum(row[0] == ranked[0][0] for row in ranked)
    elsewhere = [shown for *_, shown in ranked[:_MAX_SUGGESTIONS]]
    spelled = [each for each in _corrected(root, parts) if each not in elsewhere]
    fitting = [each for each in spelled if root.entry(each).is_dir is wants_directory]
    if not elsewhere and not fitting and (wants_directory or not posixpath.splitext(parts[-1])[1]):
        fitting = spelled  # the other kind of entry; the name of a file is not meant for a directory
    has_more = bool(elsewhere) and (best > _MAX_SUGGESTIONS or named is None or not named.exact)
    return [*elsewhere, *fitting][:_MAX_SUGGESTIONS], has_more


def _corrected(root: Root, parts: Sequence[str]) -> list[str]:
    """Return the paths with similar names in place of the missing ones; the last name may have several."""
    found = [""]
    for name in parts:
        known = root.exists(path := posixpath.join(found[0], name))
        found = [path] if known else _similar(root, found[0], name)
        if not found:
            break
    return found


def _similar(root: Root, directory: str, name: str) -> list[str]:
    """Return the paths in a directory whose names are similar to a missing name."""
    wanted, folded = name.casefold(), dict[str, str]()
    ends = time.monotonic() + _SECONDS
    with suppress(NotDirectoryError), root.open_directory(directory) as opened:
        for part in islice(opened.scan_parts(100), 50):  # some of a huge directory, or of a slow one
            folded |= {entry.name.casefold(): opened.path_of(entry) for entry in part}
            if time.monotonic() > ends:
                break
    swapped = [other for other in folded if sorted(other) == sorted(wanted)]  # letters of a short name
    return [folded[each] for each in closest(wanted, folded, 2, 0.75) or swapped[:2]]


def _named(context: Context, name: str) -> FoundEntries | None:
    """Return the entries with this name in any case; a name without a suffix has any."""
    glob = _GLOB_SPECIAL.sub(r"\\\g<0>", name)
    globs = [glob] if "." in name else [glob, f"{glob}.*"]
    options = GlobOptions(globs, context.root.usable_directories, types=None, case="insensitive")
    ends = time.monotonic() + _SECONDS
    return first_entries(context._replace(root=context.root.top), options, ends, most=_MAX_RANKED)
