"""Writing a second name of a file: its content, owner, mode and attributes, and when they are on the disk."""

import errno
import os
import re
import stat
import time
import unicodedata
from contextlib import suppress

from agentfs.fs import syscalls
from agentfs.fs.context import RootContext
from agentfs.fs.file import write_all
from agentfs.fs.node import FileNode, Metadata

STALE = 3600.0  # seconds after which a temporary is nobody's: a change takes a fraction of one
_TEMPORARY = re.compile(r"\.agentfs-[0-9a-f]{16}\.tmp")
_MAX_CLEANED = 10_000
_ACLS = {"system.posix_acl_access", "system.posix_acl_default"}
_FATAL = {errno.ENOSPC, errno.EDQUOT, errno.EIO}


def create_temporary(
    context: RootContext,
    handle: int,
    name: str,
    node: FileNode,
    replaced: os.stat_result | None,
    metadata: Metadata | None,
) -> list[str]:
    """Create a temporary; return notes on what it does not have of the file that it replaces.

    Without `metadata` the system decides which permissions of the node it gets. After a failure the
    temporary may be there.
    """
    fd = syscalls.create_file(handle, name, node.mode if metadata is None else 0o600)
    try:
        write_all(fd, node.load())
        notes = [] if replaced is None else _notes_on(replaced)
        notes += [] if metadata is None else apply_metadata(fd, metadata._replace(mode=node.mode))
        if context.durability != "fast":
            syscalls.sync(fd, to_medium=context.durability == "full")
    except BaseException:
        syscalls.close(fd)
        raise
    os.close(fd)
    return notes


def _notes_on(replaced: os.stat_result) -> list[str]:
    """Return notes on what a replacement does not have of the file that it replaces."""
    notes: list[str] = []
    if replaced.st_nlink > 1:
        notes.append(f"the file had {replaced.st_nlink} hard links; the other names keep the old content")
    if replaced.st_mode & (stat.S_ISUID | stat.S_ISGID):
        notes.append("the setuid and setgid bits were dropped")
    return notes


def unicode_duplicate_notes(directory: int, name: str) -> list[str]:
    """Return a note if a new name in an open directory looks like another one there."""
    if name.isascii():
        return []
    normal = unicodedata.normalize("NFC", name)
    with suppress(OSError):
        for other in syscalls.first_names(directory):
            if other != name and unicodedata.normalize("NFC", other) == normal:
                return ["another name in its directory looks the same: it has another Unicode form"]
    return []


def sync_directory(handle: int) -> list[str]:
    """Bring the names in a directory to the disk; a failure is only noted, as the change is done."""
    try:
        opened = syscalls.open_directory(handle, ".")
        try:
            os.fsync(opened)
        finally:
            syscalls.close(opened)
    except OSError as error:
        return [f"durability_unconfirmed: the directory could not be brought to the disk ({error.strerror})"]
    return []


def remove_stale_temporaries(context: RootContext, handle: int) -> None:
    """Remove temporaries that a killed process has left in a directory, when it is first changed."""
    names: list[str] = []
    with suppress(OSError):
        here = syscalls.lstat(handle, ".")
        if (here.st_dev, here.st_ino) in context.cleaned:
            return
        if len(context.cleaned) >= _MAX_CLEANED:
            context.cleaned.clear()
        context.cleaned.add((here.st_dev, here.st_ino))
        names = [name for name in syscalls.first_names(handle) if _TEMPORARY.fullmatch(name)]
    for name in names:
        with suppress(OSError):  # another process may have removed it just now
            if time.time() - syscalls.lstat(handle, name).st_mtime > STALE:
                os.unlink(name, dir_fd=handle)


def apply_metadata(fd: int, metadata: Metadata) -> list[str]:
    """Give a file or directory an owner, mode and attributes; return notes on what could not be kept."""
    notes: list[str] = []
    mode, owner, attributes = metadata
    if owner is not None:
        now = os.fstat(fd)
        if (now.st_uid, now.st_gid) != owner:
            notes, mode = _change_owner(fd, owner, mode)
    os.fchmod(fd, mode)
    if attributes is None or not hasattr(os, "setxattr"):
        return notes
    with suppress(OSError):
        for name in _ACLS.intersection(os.listxattr(fd)) - attributes.keys():
            os.removexattr(fd, name)  # inherited from the directory
    lost: list[str] = []
    for name, value in attributes.items():
        if name in _ACLS and mode != metadata.mode:  # it would give the rights to another group
            lost.append(name)
            continue
        try:
            os.setxattr(fd, name, value)
        except OSError as error:
            if error.errno in _FATAL:
                raise
            lost.append(name)
    if lost:
        notes.append(f"extended attributes could not be kept: {', '.join(lost)}")
    return notes


def _change_owner(fd: int, owner: tuple[int, int], mode: int) -> tuple[list[str], int]:
    user, group = owner
    try:
        os.fchown(fd, user, group)
    except PermissionError:
        notes = [f"the owner could not be kept: it was {user}"]
        try:
            os.fchown(fd, -1, group)
        except PermissionError:
            # What one group was allowed is not for another.
            return [*notes, f"the group could not be kept: it was {group}"], mode & ~(stat.S_ISGID | 0o070)
        return notes, mode
    return [], mode
