"""Changing one file: opened for update under a lock, and replaced whole or not at all."""

import errno
import os
import stat
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import NamedTuple

from agentfs import call_context
from agentfs.errors import AgentFSError, RefusedError
from agentfs.fs import oserrors, syscalls
from agentfs.fs.context import RootContext
from agentfs.fs.entry import unicode_duplicate_notes
from agentfs.fs.file import open_regular, revision_of
from agentfs.fs.lock import ATTEMPTS, FileLock
from agentfs.fs.node import Change, DirectoryNode, FileNode, Recorder
from agentfs.fs.path import ParsedPath, display_name, quote
from agentfs.fs.resolve import ResolvedPath
from agentfs.fs.temporary import (
    Original,
    fill,
    metadata_of,
    new_temporary,
    overwrite,
    sweep,
    sync_directories,
)


class Current(NamedTuple):
    """A file before a change.

    Attributes:
        path: The path as it was requested, fit to show.
        real_path: The path of the file itself, links resolved.
        data: Its content; None when nothing is there.
        stat: Its status; None when nothing is there.
    """

    path: str
    real_path: str
    data: bytes | None
    stat: os.stat_result | None

    @property
    def revision(self) -> str | None:
        """The revision of the content; None when nothing is there."""
        return None if self.data is None else revision_of(self.data)


class Changed(NamedTuple):
    """What a change did, or would do.

    Attributes:
        path: The path as it was requested, fit to show.
        real_path: The path of the file itself, links resolved.
        before: The content before; None when nothing was there.
        after: The content after.
        created: Whether the file is new.
        revision: The revision of the content after.
        notes: What else the caller should know.
    """

    path: str
    real_path: str
    before: bytes | None
    after: bytes
    created: bool
    revision: str
    notes: tuple[str, ...]


class ConcurrentChange(Exception):  # noqa: N818 - a signal to begin again, never seen by users
    """Another program changed the file after it was read: open it for update again."""


class FileUpdate:
    """A file that is open for update; nobody else who takes its lock changes it meanwhile.

    Attributes:
        current: The file as it was read.
    """

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
        data, status = (self._original.data, self._original.stat) if self._original else (None, None)
        self.current = Current(self._path, self._real_path, data, status)

    def replace(self, after: bytes, *, preview: bool = False) -> Changed:
        """Give the file a new content, or create it with the directories above it."""
        before = self.current.data
        notes = oserrors.link_note(self._path, self._context.display_path(self._real_path))
        if after != before:
            in_place = self._check_replaceable()
            if not preview:
                notes += self._write(after, in_place=in_place)
        return Changed(
            self._path, self._real_path, before, after, before is None, revision_of(after), tuple(notes)
        )

    def _read(self) -> Original | None:
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
            if file.stat.st_nlink > 1 and context.is_hard_link_to(file.stat, context.unwritable):
                raise oserrors.protected(self._path, context.display_path(self._real_path), readable=True)
            return Original(file.read_whole(self._max_bytes), file.stat, metadata_of(fd, file.stat))

    def _check_replaceable(self) -> bool:
        """Refuse the change where it would fail; tell whether the file is to be written in place."""
        original = self._original
        if original and original.stat.st_nlink > 1 and self._context.hardlinks == "inplace":
            _check_writable(self._resolved, self._path, original.stat)
            return True
        check_replaceable(self._context, self._resolved, self._path)
        return False

    def _write(self, after: bytes, *, in_place: bool) -> list[str]:
        context, resolved, original = self._context, self._resolved, self._original
        notes: list[str] = []
        temporary = new_temporary()
        # Nobody removes the directory of a new file, or makes it too, before the file is recorded.
        alone = self._recorder.alone() if self._recorder is not None and original is None else nullcontext()
        with alone:
            try:
                resolved.make_parents()
                parent = resolved.parent
                if in_place and original is not None:
                    self._check_unchanged(original)
                    with self._recording(after, original.stat.st_mode):
                        call_context.complete()
                        overwrite(context, parent, resolved.name, after, original)
                    return [f"written in place for all of its {original.stat.st_nlink} hard links"]
                sweep(context, parent)
                notes += fill(context, parent, temporary, after, original and original.metadata)
                with self._recording(after, syscalls.lstat(parent, temporary).st_mode):
                    if original is None:
                        call_context.complete()
                        self._place_new(temporary)
                    else:
                        self._check_unchanged(original)
                        call_context.complete()
                        syscalls.replace(parent, temporary, resolved.name)
            except BaseException as error:
                with suppress(OSError):
                    syscalls.remove(resolved.parent, temporary)
                resolved.remove_made_parents()
                if isinstance(error, AgentFSError):
                    raise
                if isinstance(error, FileNotFoundError) and original is None:
                    raise ConcurrentChange from None  # its directory was removed
                if isinstance(error, OSError):
                    raise resolved.error(error) from None
                raise
        notes = [*self._notes(), *notes]
        return notes + sync_directories(context, resolved.changed_directories)

    def _recording(self, after: bytes, mode: int) -> AbstractContextManager[object]:
        if self._recorder is None:
            return nullcontext()
        original = self._original
        metadata = None if original is None else original.metadata
        before = None if original is None else FileNode.of(original.stat.st_mode, original.data, metadata)
        made = [Change(path, None, DirectoryNode()) for path in self._resolved.made_parents]
        change = Change(self._real_path, before, FileNode.of(mode, after, metadata))
        return self._recorder.recording((*made, change))

    def _place_new(self, temporary: str) -> None:
        try:
            syscalls.rename_new(self._resolved.parent, temporary, self._resolved.name)
        except FileExistsError:
            raise ConcurrentChange from None

    def _check_unchanged(self, original: Original) -> None:
        # A program that does not take our lock may have written since; its work must not be lost.
        now = self._read()
        if now is None or now.data != original.data:
            raise ConcurrentChange

    def _notes(self) -> list[str]:
        if self._original is None:
            return unicode_duplicate_notes(self._resolved.parent, self._resolved.name)
        notes: list[str] = []
        status = self._original.stat
        if status.st_nlink > 1:
            notes.append(f"the file had {status.st_nlink} hard links; the other names keep the old content")
        if status.st_mode & (stat.S_ISUID | stat.S_ISGID):
            notes.append("the setuid and setgid bits were dropped")
        return notes


@contextmanager
def open_for_update(
    context: RootContext,
    root_path: str,
    path: str,
    parsed: ParsedPath,
    *,
    max_bytes: int,
    recorder: Recorder | None,
) -> Generator[FileUpdate]:
    """Do the work of `Root.open_for_update`."""
    try:
        for _ in range(ATTEMPTS):
            with _resolve_target(context, path, parsed) as resolved:
                _check_target(context, resolved, path)
                key = resolved.lock_key
            with FileLock(key, path, root_path), _resolve_target(context, path, parsed) as resolved:
                _check_target(context, resolved, path)
                # The path may lead elsewhere since the lock was waited for; then it is the wrong lock.
                if resolved.lock_key == key:
                    yield FileUpdate(context, resolved, max_bytes, recorder)
                    return
    except OSError as error:
        raise oserrors.from_oserror(error, path) from None
    raise oserrors.kept_changing(path)


def _resolve_target(context: RootContext, path: str, parsed: ParsedPath) -> ResolvedPath:
    return ResolvedPath(context, path, parsed, follow_last=True, create_parents=True)


def _check_target(context: RootContext, resolved: ResolvedPath, path: str) -> None:
    if resolved.name == ".":
        raise oserrors.not_a_file(path)
    check_not_protected(context, resolved, path)


def check_not_protected(context: RootContext, resolved: ResolvedPath, path: str) -> None:
    """Refuse a path that is protected, or that the permission rules do not let the call change."""
    real_path = resolved.real_path
    if context.unreadable.covers(real_path):
        raise oserrors.protected(path, context.display_path(real_path))
    if context.unwritable.covers(real_path) or resolved.passes_hard_link_to(context.unwritable):
        raise oserrors.protected(path, context.display_path(real_path), readable=True)
    if context.access is not None:
        context.access.check_change(real_path)


def check_replaceable(context: RootContext, resolved: ResolvedPath, path: str) -> None:
    """Refuse to give a file a new content by a rename where that would fail, as a preview does too.

    Args:
        context: The root.
        resolved: The file; it need not exist yet.
        path: The path to name in the error.

    Raises:
        AgentFSError: refused: the file is write-protected, or the policy changes none with hard links; io:
            the system lets no name be made in the directory.
    """
    status = resolved.stat()
    if status is not None:
        _check_writable(resolved, path, status)
        check_hard_links(context, path, status)
    number = syscalls.names_refused(resolved.parent)
    if not number and status is not None:
        here = syscalls.lstat(resolved.parent, ".")
        if here.st_mode & stat.S_ISVTX and os.geteuid() not in {0, status.st_uid, here.st_uid}:
            number = errno.EPERM
    if number:
        raise resolved.error(OSError(number, os.strerror(number)))


def check_hard_links(context: RootContext, path: str, status: os.stat_result | None) -> None:
    """Refuse to change a file of several names where the policy changes none."""
    if status is not None and status.st_nlink > 1 and context.hardlinks == "refuse":
        raise RefusedError(
            f"{quote(path)} has {status.st_nlink} hard links; this workspace changes no such file.",
            hint="Ask the user whether the other names shall change too.",
            details={"path": display_name(path), "links": status.st_nlink},
        )


def _check_writable(resolved: ResolvedPath, path: str, status: os.stat_result) -> None:
    # A rename needs no permission on the file itself, but whoever made it read-only meant it, and the
    # superuser is no exception.
    if not status.st_mode & 0o222:
        raise oserrors.write_protected(path, status.st_mode)
    try:
        syscalls.check_writable(resolved.parent, resolved.name)
    except PermissionError:
        raise oserrors.write_protected(path, status.st_mode) from None
    except OSError as error:
        if error.errno != errno.ETXTBSY:
            raise resolved.error(error) from None
