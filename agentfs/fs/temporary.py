"""Temporary files that replace others by a rename, with their metadata; and syncing to the disk."""

import errno
import os
import re
import time
from contextlib import suppress
from typing import NamedTuple

from agentfs.fs import syscalls
from agentfs.fs.context import RootContext

STALE = 3600.0  # seconds after which a temporary is nobody's: a change takes a fraction of one
_TEMPORARY = re.compile(r"\.agentfs-[0-9a-f]{16}\.tmp")
_MAX_SWEPT = 10_000
_ACL = "system.posix_acl_access"
# Attributes that speak for the old content, or that give it power: they go as the setuid bit does.
_DROPPED = {"security.capability", "security.ima", "security.evm"}
_FATAL = {errno.ENOSPC, errno.EDQUOT, errno.EIO}


class FileMetadata(NamedTuple):
    """What a file has besides its content.

    Attributes:
        mode: Its permissions.
        owner: The numbers of its user and its group; None to leave them to the system.
        attributes: Its extended attributes, access control lists among them; None to leave them too.
    """

    mode: int
    owner: tuple[int, int] | None = None
    attributes: dict[str, bytes] | None = None


class Original(NamedTuple):
    """The file that is replaced.

    Attributes:
        data: Its content.
        stat: What the system says of it.
        metadata: What its replacement is to have too.
    """

    data: bytes
    stat: os.stat_result
    metadata: FileMetadata


def new_temporary() -> str:
    """Return a name for a temporary, which `sweep` knows again."""
    return f".agentfs-{os.urandom(8).hex()}.tmp"


def metadata_of(fd: int, found: os.stat_result) -> FileMetadata:
    """Return what a replacement of an open file is to have too; of its mode only the permissions."""
    return FileMetadata(found.st_mode & 0o777, (found.st_uid, found.st_gid), _attributes_of(fd))


def _attributes_of(fd: int) -> dict[str, bytes]:
    if not hasattr(os, "listxattr"):
        return {}
    try:
        return {name: os.getxattr(fd, name) for name in os.listxattr(fd) if name not in _DROPPED}
    except OSError:
        return {}


def fill(
    context: RootContext, handle: int, temporary: str, content: bytes, metadata: FileMetadata | None
) -> list[str]:
    """Make a temporary that has the content, and the metadata of the file that it will replace.

    Args:
        context: The root.
        handle: The directory.
        temporary: Its name.
        content: Its content.
        metadata: What it has besides; None for what the system gives a new file.

    Returns:
        What could not be kept, in words.

    Raises:
        OSError: The system fails; the temporary may be there.
    """
    fd = syscalls.create_file(handle, temporary, 0o666 if metadata is None else 0o600)
    try:
        write_all(fd, content)
        notes = [] if metadata is None else _apply_metadata(fd, metadata)
        sync_file(context, fd)
    except BaseException:
        with suppress(OSError):
            os.close(fd)
        raise
    os.close(fd)
    return notes


def overwrite(context: RootContext, handle: int, name: str, content: bytes, old: Original) -> None:
    """Write a content into a file itself, so that its other names have it too; no step of one.

    Args:
        context: The root.
        handle: The directory.
        name: The file.
        content: Its new content.
        old: The file as it was read, which is put back when the system fails.

    Raises:
        OSError: The system fails.
    """
    fd = syscalls.open_writing(handle, name)
    try:
        if not os.path.samestat(os.fstat(fd), old.stat):
            raise OSError(errno.ESTALE, os.strerror(errno.ESTALE), name)
        try:
            write_all(fd, content)
            os.ftruncate(fd, len(content))
            sync_file(context, fd)
        except OSError:
            with suppress(OSError):
                os.lseek(fd, 0, os.SEEK_SET)
                write_all(fd, old.data)
                os.ftruncate(fd, len(old.data))
            raise
    finally:
        os.close(fd)


def write_all(fd: int, content: bytes) -> None:
    """Write a content to its last byte, however little the system takes at once."""
    view = memoryview(content)
    while view:
        view = view[os.write(fd, view) :]


def read_all(fd: int, start: int, size: int) -> bytes:
    """Read from an offset on, however little the system gives at once; less only where the file ends."""
    os.lseek(fd, start, os.SEEK_SET)
    parts: list[bytes] = []
    while size > 0 and (part := os.read(fd, size)):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def sync_file(context: RootContext, fd: int) -> None:
    """Bring a file to the disk, as far as the policy asks for it."""
    if context.durability == "fast":
        return
    if context.durability == "full":
        import fcntl  # noqa: PLC0415 - not on Windows, where agentfs can be imported too

        command: int | None = getattr(fcntl, "F_FULLFSYNC", None)
        if command is not None:  # macOS, where fsync stops at the drive's cache
            fcntl.fcntl(fd, command)
            return
    # Never tried again: after one failure the system takes the pages for written.
    os.fsync(fd)


def sync_directories(context: RootContext, handles: list[int]) -> list[str]:
    """Bring names to the disk where the policy asks for it; a failure is only noted, as all is done."""
    if context.durability != "full":
        return []
    try:
        for handle in handles:
            opened = syscalls.open_directory(handle, ".")
            try:
                os.fsync(opened)
            finally:
                syscalls.close(opened)
    except OSError as error:
        return [f"durability_unconfirmed: the directory could not be brought to the disk ({error.strerror})"]
    return []


def sweep(context: RootContext, handle: int) -> None:
    """Remove temporaries that a killed process has left in a directory, when it is first changed."""
    names: list[str] = []
    with suppress(OSError):
        here = syscalls.lstat(handle, ".")
        if (here.st_dev, here.st_ino) in context.swept:
            return
        if len(context.swept) >= _MAX_SWEPT:
            context.swept.clear()
        context.swept.add((here.st_dev, here.st_ino))
        names = [name for name in syscalls.first_names(handle) if _TEMPORARY.fullmatch(name)]
    for name in names:
        with suppress(OSError):  # another process may have removed it just now
            if time.time() - syscalls.lstat(handle, name).st_mtime > STALE:
                syscalls.remove(handle, name)


def _apply_metadata(fd: int, metadata: FileMetadata) -> list[str]:
    """Give a new file the owner, mode and attributes of an old one."""
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
        if _ACL not in attributes and _ACL in os.listxattr(fd):
            os.removexattr(fd, _ACL)  # inherited from the directory
    lost: list[str] = []
    for name, value in attributes.items():
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
            return [*notes, f"the group could not be kept: it was {group}"], mode & ~0o070
        return notes, mode
    return [], mode
