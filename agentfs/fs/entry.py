"""The typed entry of a name: what it is, where a link leads, and which names differ by Unicode form only."""

import os
import stat
import unicodedata
from collections.abc import Iterable
from typing import NamedTuple

from agentfs.errors import AgentFSError, LinkLoopError, NotFoundError
from agentfs.fs import syscalls
from agentfs.fs.context import RootContext
from agentfs.fs.path import ParsedPath, display_name
from agentfs.fs.resolve import ResolvedPath
from agentfs.results import Entry, EntryType


def entry_of(context: RootContext, path: str, real_path: str, name: str, status: os.stat_result) -> Entry:
    """Return the entry of a name."""
    kind = type_of(status.st_mode)
    is_dir, target = kind == "directory", None
    size = status.st_size if kind == "file" else None
    protected = context.unreadable.covers(real_path)
    if kind == "symlink":
        target, found, leads_to = link_target(context, real_path)
        if context.follow and found is not None:
            is_dir = stat.S_ISDIR(found.st_mode)
            size = found.st_size if stat.S_ISREG(found.st_mode) else None
        protected = protected or context.unreadable.covers(leads_to)
    elif status.st_nlink > 1 and kind == "file":
        protected = protected or context.is_hard_link_to(status, context.unreadable)
    displayed = display_name(name)
    return Entry(
        path=path,
        name=displayed,
        type=kind,
        is_dir=is_dir,
        size=size,
        mtime=status.st_mtime,
        ext=os.path.splitext(displayed)[1][1:].lower(),
        target=target,
        protected=protected,
    )


def type_of(mode: int) -> EntryType:
    """Return the type that a mode says."""
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "directory"
    return "symlink" if stat.S_ISLNK(mode) else "other"


class LinkTarget(NamedTuple):
    """Where a link leads.

    Attributes:
        target: Its target as written, or None when that lies outside.
        status: The status of what is at its end, or None.
        real_path: The path of its end, as far as it leads inside.
    """

    target: str | None
    status: os.stat_result | None = None
    real_path: str = ""


def link_target(context: RootContext, real_path: str) -> LinkTarget:
    """Follow a link, whose own path has no other, as far as it leads inside."""
    target: str | None = None
    parsed = ParsedPath(tuple(real_path.split("/")))
    resolved = ResolvedPath(context, real_path, parsed, follow=True)
    try:
        with resolved:
            target = display_name(syscalls.readlink(resolved.parent, resolved.name))
            resolved.follow_last_link()
            try:
                status = syscalls.lstat(resolved.parent, resolved.name)
            except FileNotFoundError:
                return LinkTarget(target, None, resolved.real_path)
            return LinkTarget(target, status, resolved.real_path)
    except (NotFoundError, LinkLoopError):
        return LinkTarget(target)
    except (AgentFSError, OSError):
        return LinkTarget(None)


def unicode_duplicates_among(names: Iterable[str]) -> list[str]:
    """Return those names or paths that look like another one of them in another Unicode form, each once."""
    seen: dict[str, str] = {}
    duplicates: dict[str, None] = {}
    for name in names:
        if not name.isascii():
            first = seen.setdefault(unicodedata.normalize("NFC", name), name)
            if first != name:
                duplicates[first] = None
    return list(duplicates)


def unicode_duplicate_notes(directory: int, name: str) -> list[str]:
    """Return a note where a new name in an open directory looks like one that is there."""
    if name.isascii():
        return []
    normal = unicodedata.normalize("NFC", name)
    try:
        duplicate = any(
            other != name and unicodedata.normalize("NFC", other) == normal
            for other in syscalls.first_names(directory)
        )
    except OSError:
        return []
    return ["another name in its directory looks the same: it has another Unicode form"] if duplicate else []
