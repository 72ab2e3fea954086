"""The typed entry of a name: what stands there, and where a link leads."""

import os
import stat
from typing import NamedTuple

from agentfs.errors import AgentFSError, LinkLoopError, NotFoundError
from agentfs.fs import oserrors, syscalls
from agentfs.fs.context import RootContext
from agentfs.fs.path import ParsedPath, display_name
from agentfs.fs.resolve import PathResolver
from agentfs.results import Entry, EntryType


def entry_of(base: RootContext, path: str, real_path: str, name: str, status: os.stat_result) -> Entry:
    """Return the entry of a name.

    Args:
        base: Where walks start.
        path: Its path as shown.
        real_path: Its path with the links above it resolved.
        name: Its name, as the system spells it.
        status: What stands there, links not followed.

    Returns:
        The entry.
    """
    mode = status.st_mode
    kind = type_of(mode)
    is_dir, target = kind == "directory", None
    size = status.st_size if kind == "file" else None
    protected = base.unreadable.covers(real_path)
    if kind == "symlink":
        target, found, leads_to = where_it_leads(base, real_path)
        if base.follow and found is not None:
            is_dir = stat.S_ISDIR(found.st_mode)
            size = found.st_size if stat.S_ISREG(found.st_mode) else None
        protected = protected or base.unreadable.covers(leads_to)
    elif status.st_nlink > 1 and kind == "file":
        protected = protected or base.is_twin(status, base.unreadable)
    shown = display_name(name)
    return Entry(
        path=path,
        name=shown,
        type=kind,
        is_dir=is_dir,
        size=size,
        mtime=status.st_mtime,
        ext=os.path.splitext(shown)[1][1:].lower(),
        target=target,
        protected=protected,
    )


def type_of(mode: int) -> EntryType:
    """Return the type that a mode tells."""
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "directory"
    return "symlink" if stat.S_ISLNK(mode) else "other"


class Led(NamedTuple):
    """Where a link leads.

    Attributes:
        target: Its target as written, or None when that lies outside.
        found: What stands at its end, or None.
        real_path: The path of its end, as far as it leads inside.
    """

    target: str | None
    found: os.stat_result | None = None
    real_path: str = ""


def where_it_leads(base: RootContext, real_path: str) -> Led:
    """Follow a link as far as it leads inside.

    Args:
        base: Where walks start.
        real_path: The path of the link, with the links above it resolved.

    Returns:
        Its target and its end.
    """
    trail = PathResolver(base.following(), real_path, ParsedPath(tuple(real_path.split("/"))))
    target: str | None = None
    name: str | None = None
    try:
        while (name := trail.advance()) is not None:
            if target is None:
                target = display_name(syscalls.readlink(trail.handle, name))
            if not trail.follow_link(name):
                return Led(target, syscalls.lstat(trail.handle, name), trail.place(name))
        return Led(target, syscalls.lstat(trail.handle, "."), trail.place())
    except (NotFoundError, LinkLoopError):
        return Led(target)
    except AgentFSError:
        return Led(None)
    except OSError as error:
        gone = isinstance(oserrors.from_oserror(error, real_path), NotFoundError)
        return Led(target if gone else None, None, trail.place(name))
    finally:
        trail.let_go()
