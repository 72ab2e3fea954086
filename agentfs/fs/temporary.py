"""Temporary files: those that replace others by a rename, with their metadata, and a spool for bytes."""

import errno
import os
import re
import time
from contextlib import suppress
from threading import Lock

from agentfs.fs import oserrors, syscalls
from agentfs.fs.context import RootContext
from agentfs.fs.node import FileMetadata

STALE = 3600.0  # seconds after which a temporary is nobody's: a change takes a fraction of one
_TEMPORARY = re.compile(r"\.agentfs-[0-9a-f]{16}\.tmp")
_MAX_CLEANED = 10_000
_ACL = "system.posix_acl_access"
_FATAL = {errno.ENOSPC, errno.EDQUOT, errno.EIO}
_SPOOL = "the journal's temporary file"


def new_temporary(suffix: str = "tmp") -> str:
    """Return a name for a temporary; `remove_stale_temporaries` recognises those that end in `.tmp`."""
    return f".agentfs-{os.urandom(8).hex()}.{suffix}"


def create_temporary(
    context: RootContext, handle: int, name: str, content: bytes, metadata: FileMetadata | None
) -> list[str]:
    """Create a temporary with the metadata of the file that it will replace, or of a new file for None.

    It returns notes on what could not be kept. Where it fails the temporary may be there.
    """
    fd = syscalls.create_file(handle, name, 0o666 if metadata is None else 0o600)
    try:
        write_all(fd, content)
        notes = [] if metadata is None else _apply_metadata(fd, metadata)
        _sync_file(context, fd)
    except BaseException:
        syscalls.close(fd)
        raise
    os.close(fd)
    return notes


def overwrite(
    context: RootContext, handle: int, name: str, content: bytes, old: bytes, status: os.stat_result
) -> None:
    """Write into a file itself, so that its other names have the content too; put the old back on failure."""
    fd = syscalls.open_writing(handle, name)
    try:
        if not os.path.samestat(os.fstat(fd), status):
            raise OSError(errno.ESTALE, os.strerror(errno.ESTALE), name)
        try:
            write_all(fd, content)
            os.ftruncate(fd, len(content))
            _sync_file(context, fd)
        except OSError:
            with suppress(OSError):
                os.lseek(fd, 0, os.SEEK_SET)
                write_all(fd, old)
                os.ftruncate(fd, len(old))
            raise
    finally:
        os.close(fd)


def write_all(fd: int, content: bytes) -> None:
    """Write a content to its last byte, however little the system takes at once."""
    view = memoryview(content)
    while view:
        view = view[os.write(fd, view) :]


def _sync_file(context: RootContext, fd: int) -> None:
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
    """Bring names to the disk where the policy wants it; a failure is only noted, as the change is done."""
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


def _apply_metadata(fd: int, metadata: FileMetadata) -> list[str]:
    """Give a new file the owner, mode and attributes of an old one; return notes on what was not kept."""
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


def new_mode(*, directory: bool = False) -> int:
    """Return the permissions that the system gives a new file or directory."""
    # The umask cannot be read without changing it, for all threads at once.
    import tempfile  # noqa: PLC0415 - as below

    try:
        with tempfile.TemporaryDirectory(prefix="agentfs-") as temporary:
            path = os.path.join(temporary, "new")
            if directory:
                os.mkdir(path)
            else:
                os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
            return os.stat(path).st_mode & 0o777
    except OSError as error:
        raise oserrors.from_oserror(error, tempfile.gettempdir()) from None


class Spool:
    """Bytes appended to a temporary file outside the tree, which is gone when it is closed. Thread-safe.

    `append` and `read` raise FileIOError (io) where the disk is full or fails; earlier bytes stay.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._fd = -1
        self._end = 0

    @property
    def size(self) -> int:
        """Bytes appended so far."""
        return self._end

    def append(self, data: bytes) -> int:
        """Append bytes, and return their offset."""
        with self._lock:
            try:
                if self._fd < 0:
                    import tempfile  # noqa: PLC0415 - it loads a tenth of what an import of agentfs may take

                    with tempfile.TemporaryFile(prefix="agentfs-") as file:
                        self._fd = os.dup(file.fileno())
                offset = self._end
                os.lseek(self._fd, offset, os.SEEK_SET)
                write_all(self._fd, data)
            except OSError as error:
                raise oserrors.from_oserror(error, _SPOOL) from None
            self._end += len(data)
            return offset

    def read(self, offset: int, size: int) -> bytes:
        """Return bytes that were appended."""
        parts: list[bytes] = []
        with self._lock:
            try:
                os.lseek(self._fd, offset, os.SEEK_SET)
                while size > 0 and (part := os.read(self._fd, size)):
                    parts.append(part)
                    size -= len(part)
            except OSError as error:
                raise oserrors.from_oserror(error, _SPOOL) from None
        return b"".join(parts)

    def close(self) -> None:
        """Free the space; calling it again does nothing."""
        with self._lock:
            fd, self._fd = self._fd, -1
            if fd >= 0:
                os.close(fd)

    def __del__(self) -> None:
        self.close()
