"""Changing one file: opened for update under a lock, and replaced whole or not at all."""

import errno
import os
import stat
import unicodedata
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import NamedTuple

from agentfs import call_context
from agentfs.errors import AgentFSError, RefusedError
from agentfs.fs import oserrors, syscalls
from agentfs.fs.context import RootContext
from agentfs.fs.directory import metadata_of
from agentfs.fs.file import open_regular
from agentfs.fs.node import Change, DirectoryNode, FileMetadata, FileNode, Recorder, revision_of
from agentfs.fs.path import display_name, quote
from agentfs.fs.resolve import ResolvedPath
from agentfs.fs.temporary import (
    create_temporary,
    new_temporary,
    overwrite,
    remove_stale_temporaries,
    sync_directories,
)


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
    metadata: FileMetadata


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
            original = self._original
            links = 0 if original is None else original.stat.st_nlink
            in_place = links > 1 and self._context.hardlinks == "inplace"
            check_replaceable(self._context, self._resolved, self._path, in_place=in_place)
            if not preview:
                notes += self._write(after, in_place=in_place)
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

    def _write(self, after: bytes, *, in_place: bool) -> list[str]:
        resolved, original = self._resolved, self._original
        temporary = new_temporary()
        # Nobody removes the directory of a new file, or makes it too, before the file is recorded.
        alone = self._recorder.alone() if self._recorder is not None and original is None else nullcontext()
        with alone:
            try:
                resolved.make_parents()
                if original is None:
                    notes = self._create(temporary, after)
                elif in_place:
                    return self._overwrite(original, after)
                else:
                    notes = self._swap(original, temporary, after)
            except BaseException as error:
                with suppress(OSError):
                    os.unlink(temporary, dir_fd=resolved.parent)
                resolved.remove_made_parents()
                if isinstance(error, AgentFSError) or not isinstance(error, OSError):
                    raise
                if original is None and isinstance(error, FileExistsError | FileNotFoundError):
                    raise ConcurrentChange from None  # it was made meanwhile, or its directory removed
                raise resolved.error(error) from None
        return notes + sync_directories(self._context, resolved.changed_directories)

    def _create(self, temporary: str, after: bytes) -> list[str]:
        context, resolved = self._context, self._resolved
        parent, name = resolved.parent, resolved.name
        remove_stale_temporaries(context, parent)
        create_temporary(context, parent, temporary, after, None)
        with self._recording(after, syscalls.lstat(parent, temporary).st_mode):
            call_context.complete()
            syscalls.rename_new(parent, temporary, name)
        return _unicode_duplicate_notes(parent, name)

    def _swap(self, original: _Original, temporary: str, after: bytes) -> list[str]:
        context, parent = self._context, self._resolved.parent
        remove_stale_temporaries(context, parent)
        lost = create_temporary(context, parent, temporary, after, original.metadata)
        with self._recording(after, syscalls.lstat(parent, temporary).st_mode):
            self._check_unchanged(original)
            call_context.complete()
            syscalls.replace(parent, temporary, self._resolved.name)
        notes: list[str] = []
        links, mode = original.stat.st_nlink, original.stat.st_mode
        if links > 1:
            notes.append(f"the file had {links} hard links; the other names keep the old content")
        if mode & (stat.S_ISUID | stat.S_ISGID):
            notes.append("the setuid and setgid bits were dropped")
        return notes + lost

    def _overwrite(self, original: _Original, after: bytes) -> list[str]:
        self._check_unchanged(original)
        with self._recording(after, original.stat.st_mode):
            call_context.complete()
            parent, name = self._resolved.parent, self._resolved.name
            overwrite(self._context, parent, name, after, original.data, original.stat)
        return [f"written in place for all of its {original.stat.st_nlink} hard links"]

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
    if context.unwritable.covers(real_path) or resolved.passes_hard_link_to(context.unwritable):
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


def check_replaceable(
    context: RootContext, resolved: ResolvedPath, path: str, *, in_place: bool = False
) -> None:
    """Refuse to give a file, which need not exist yet, a new content where that would fail."""
    status = resolved.stat()
    if status is not None:
        _check_writable(resolved, path, status)
        check_hard_links(context, path, status)
    if in_place:
        return
    number = syscalls.creation_errno(resolved.parent)
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
    try:
        syscalls.close(syscalls.open_writing(resolved.parent, resolved.name))
    except PermissionError:
        raise oserrors.write_protected(path, status.st_mode) from None
    except OSError as error:
        if error.errno != errno.ETXTBSY:
            raise resolved.error(error) from None


def _unicode_duplicate_notes(directory: int, name: str) -> list[str]:
    """Return a note where a new name in an open directory looks like one that is there."""
    if name.isascii():
        return []
    normal = unicodedata.normalize("NFC", name)
    with suppress(OSError):
        for other in syscalls.first_names(directory):
            if other != name and unicodedata.normalize("NFC", other) == normal:
                return ["another name in its directory looks the same: it has another Unicode form"]
    return []
