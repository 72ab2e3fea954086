"""What a path that does not exist was probably meant to be; every method says it in the same way."""

import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

from agentfs.errors import AgentFSError, NotFoundError
from agentfs.fs import Root, display_name, quote
from agentfs.limits import Limits
from agentfs.messages import Joined, Message, call, plural
from agentfs.search.find import glob_files
from agentfs.search.options import GlobOptions, has_wildcard
from agentfs.tree.ignore_sources import with_slash
from agentfs.tree.walk import Walk

_MAX_ENTRIES = 100_000
_SECONDS = 0.2
_MAX_SUGGESTIONS = 3
_OF_DIRECTORIES = frozenset({"ls", "glob", "find"})  # methods whose path is that of a directory


def explain_missing(root: Root, limits: Limits, method: str, error: NotFoundError) -> None:
    """Add to an error what its path may mean: a glob, other slashes, the same name in another directory."""
    path = error.details.get("path")
    if not path or "as_glob" in error.details:
        return
    if has_wildcard(path) and (files := _files_of_glob(root, limits, path)):
        error.hint = Message(
            f"As a glob it matches {files}: call ", call("glob", pattern=path), " to see them."
        )
    elif not error.details.get("similar"):
        straight = path.replace("\\", "/")
        with suppress(AgentFSError):
            is_there = root.exists(straight)
            found = [straight] if is_there else _same_name(root, straight, method)
            if found:
                error.details["similar"] = found
                meant = f"Did you mean {' or '.join(map(quote, found))}?"
                error.hint = meant if is_there else Joined(" ", meant, error.hint)


def _files_of_glob(root: Root, limits: Limits, path: str) -> str:
    """Count the files that a path matches as a glob; "" for none."""
    brief = replace(limits, timeout=_SECONDS, walk_entries=min(_MAX_ENTRIES, limits.walk_entries))
    try:
        found = glob_files(root, brief, GlobOptions(path))
    except AgentFSError:
        return ""
    return f"{'' if found.exact else 'at least '}{plural(found.total, 'file')}" if found.total else ""


def _same_name(root: Root, path: str, method: str) -> list[str]:
    """Return files of the same name, or directories whose path ends so, as far as a short walk finds them."""
    parts = [part for part in path.split("/") if part not in ("", ".", "..")]
    if not parts:
        return []
    files: list[str] = []
    directories: list[str] = []
    for found, is_dir in _named(root, parts[-1].casefold()):
        if is_dir and f"/{display_name(found)}".endswith("/" + "/".join(parts)):
            directories.append(root.display_path(found))
        elif not is_dir and method not in _OF_DIRECTORIES:
            files.append(root.display_path(found))
        if max(len(files), len(directories)) == _MAX_SUGGESTIONS:
            break
    return files or directories


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
