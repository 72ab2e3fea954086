"""Changing one file: opened for update under a lock, and replaced whole or not at all."""

import errno
import os
import re
import stat
import time
import unicodedata
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import NamedTuple

from agentfs import call_context
from agentfs.errors import AgentFSError, RefusedError
from agentfs.fs import oserrors, syscalls
from agentfs.fs.context import RootContext
from agentfs.fs.directory import metadata_of
from agentfs.fs.file import open_regular, write_all
from agentfs.fs.node import Change, DirectoryNode, FileNode, Metadata, Recorder, revision_of
from agentfs.fs.path import display_name, quote
from agentfs.fs.resolve import ResolvedPath

STALE = 3600.0  # seconds after which a temporary is nobody's: a change takes a fraction of one
_TEMPORARY = re.compile(r"\.agentfs-[0-9a-f]{16}\.tmp")
_MAX_CLEANED = 10_000
_ACLS = {"system.posix_acl_access", "system.posix_acl_default"}
_FATAL = {errno.ENOSPC, errno.EDQUOT, errno.EIO}


class Current(NamedTuple):
    """A file before a change, with its path as it is displayed; the data None is no file."""

    path: str
    real_path: str
    data: bytes | None

    @property
    def revision(self) -> str | None:
        """The revision of the content; None when nothing is there."""
        return None if self.data is None else revision_of(self.data)


class Changed(NamedTuple):
    """What a change did, or would do, with the path as it is displayed and the revision afterwards."""

    path: str
    real_path: str
    before: bytes | None
    after: bytes
    created: bool
    revision: str
    notes: tuple[str, ...]

    @classmethod
    def of(cls, current: Current, after: bytes, notes: list[str]) -> "Changed":
        """Return what a change of a file to a new content did."""
        path, real_path, before = current
        return cls(path, real_path, before, after, before is None, revision_of(after), tuple(notes))


class ConcurrentChange(Exception):  # noqa: N818 - a signal to begin again, never seen by users
    """Another program changed the file after it was read: open it for update again."""


class _Original(NamedTuple):
    data: bytes
    stat: os.stat_result
    metadata: Metadata


class FileUpdate:
    """A file that is open for update; nobody else who takes its lock changes it meanwhile."""

    def __init__(
        self, context: RootContext, resolved: ResolvedPath, max_bytes: int, recorder: Recorder | None
    ) -> None:
        self._context = context
        self._resolved = resolved
        self._max_bytes = max_bytes
        self._recorder = recorder
        self._path = resolved.display_path
        self._real_path = resolved.real_path
        self._original = self._read()
        self.current = Current(self._path, self._real_path, self._original and self._original.data)

    def replace(self, after: bytes, *, preview: bool = False) -> Changed:
        """Give the file a new content, or create it with the directories above it."""
        notes = oserrors.link_note(self._path, self._context.display_path(self._real_path))
        if after != self.current.data:
            check_replaceable(self._context, self._resolved, self._path)
            if not preview:
                notes += self._write(after)
        return Changed.of(self.current, after, notes)

    def _read(self) -> _Original | None:
        context, resolved = self._context, self._resolved
        if resolved.missing:
            return None
        try:
            fd = syscalls.open_file(resolved.parent, resolved.name)
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise ConcurrentChange from None
            raise resolved.error(error) from None
        with open_regular(context, fd, self._path, self._real_path) as file:
            check_not_linked(context, self._path, self._real_path, file.stat)
            return _Original(file.read_whole(self._max_bytes), file.stat, metadata_of(fd, file.stat))

    def _write(self, after: bytes) -> list[str]:
        context, resolved, original = self._context, self._resolved, self._original
        temporary = new_temporary()
        # Nobody removes the directory of a new file, or makes it too, before the file is recorded.
        alone = self._recorder.alone() if self._recorder is not None and original is None else nullcontext()
        with alone:
            try:
                resolved.make_parents()
                parent, name = resolved.parent, resolved.name
                remove_stale_temporaries(context, parent)
                _, status, metadata = original or (None, None, None)
                notes = create_temporary(context, parent, temporary, after, status, metadata)
                with self._recording(after, syscalls.lstat(parent, temporary).st_mode):
                    if original is not None:
                        self._check_unchanged(original)
                    call_context.complete()
                    (syscalls.rename_new if original is None else syscalls.replace)(parent, temporary, name)
            except BaseException as error:
                with suppress(OSError):
                    os.unlink(temporary, dir_fd=resolved.parent)
                resolved.remove_made_parents()
                if isinstance(error, AgentFSError) or not isinstance(error, OSError):
                    raise
                if original is None and isinstance(error, FileExistsError | FileNotFoundError):
                    raise ConcurrentChange from None  # it was made meanwhile, or its directory removed
                raise resolved.error(error) from None
        if original is None:
            notes += unicode_duplicate_notes(parent, name)
        return notes + sync_directories(context, resolved.changed_directories)

    def _recording(self, after: bytes, mode: int) -> AbstractContextManager[object]:
        if self._recorder is None:
            return nullcontext()
        made = [Change(path, None, DirectoryNode()) for path in self._resolved.made_parents]
        before, metadata = None, None
        if self._original is not None:
            data, status, metadata = self._original
            before = FileNode.of(status.st_mode, data, metadata)
        change = Change(self._real_path, before, FileNode.of(mode, after, metadata))
        return self._recorder.recording((*made, change))

    def _check_unchanged(self, original: _Original) -> None:
        # A program that does not take our lock may have written since; its work must not be lost.
        now = self._read()
        if now is None or now.data != original.data:
            raise ConcurrentChange


def check_may_change(context: RootContext, resolved: ResolvedPath, path: str) -> None:
    """Refuse a path that is protected, or that the permission rules do not let the call change."""
    real_path = resolved.real_path
    if context.unreadable.covers(real_path):
        raise oserrors.protected(path, context.display_path(real_path))
    if context.unwritable.covers(real_path) or resolved.is_write_protected():
        raise oserrors.protected(path, context.display_path(real_path), readable=True)
    if context.access is not None:
        context.access.check_change(real_path)


def check_not_linked(context: RootContext, path: str, real_path: str, status: os.stat_result | None) -> None:
    """Refuse a file that is, under another name, one that may not be changed."""
    if status is None or status.st_nlink < 2 or not stat.S_ISREG(status.st_mode):
        return
    if context.is_hard_link_to(status, context.unwritable):
        raise oserrors.protected(path, context.display_path(real_path), readable=True)


def check_hard_links(context: RootContext, path: str, status: os.stat_result | None) -> None:
    """Refuse to change a file of several names where the policy changes none."""
    if status is not None and status.st_nlink > 1 and context.hardlinks == "refuse":
        raise RefusedError(
            f"{quote(path)} has {status.st_nlink} hard links; this workspace changes no such file.",
            hint="Ask the user whether the other names shall change too.",
            details={"path": display_name(path), "links": status.st_nlink},
        )


def check_replaceable(context: RootContext, resolved: ResolvedPath, path: str) -> None:
    """Refuse to give a file, which need not exist yet, a new content where that would fail."""
    status = resolved.stat()
    if status is not None:
        _check_writable(resolved, path, status)
        check_hard_links(context, path, status)
    number = syscalls.access_errno(resolved.parent, ".", os.W_OK | os.X_OK)
    if not number and status is not None:
        here = syscalls.lstat(resolved.parent, ".")
        if here.st_mode & stat.S_ISVTX and os.geteuid() not in {0, status.st_uid, here.st_uid}:
            number = errno.EPERM
    if number:
        raise resolved.error(OSError(number, os.strerror(number)))


def _check_writable(resolved: ResolvedPath, path: str, status: os.stat_result) -> None:
    # A rename needs no permission on the file itself, but whoever made it read-only meant it, and the
    # superuser is no exception.
    if not status.st_mode & 0o222:
        raise oserrors.write_protected(path, status.st_mode)
    number = syscalls.access_errno(resolved.parent, resolved.name, os.W_OK)
    if number == errno.EACCES:
        raise oserrors.write_protected(path, status.st_mode)
    if number:
        raise resolved.error(OSError(number, os.strerror(number)))


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


def new_temporary(suffix: str = "tmp") -> str:
    """Return a name for a temporary; `remove_stale_temporaries` recognises those that end in `.tmp`."""
    return f".agentfs-{os.urandom(8).hex()}.{suffix}"


def create_temporary(
    context: RootContext,
    handle: int,
    name: str,
    content: bytes,
    replaced: os.stat_result | None,
    metadata: Metadata | None,
) -> list[str]:
    """Create a temporary; return notes on what it does not have of the file that it replaces.

    Without `metadata` it is as the system makes a new file. After a failure the temporary may be there.
    """
    fd = syscalls.create_file(handle, name, 0o666 if metadata is None else 0o600)
    try:
        write_all(fd, content)
        notes = [] if replaced is None else _notes_on(replaced)
        notes += [] if metadata is None else apply_metadata(fd, metadata)
        _sync_file(context, fd)
    except BaseException:
        syscalls.close(fd)
        raise
    os.close(fd)
    return notes


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
