"""Changing a file: read, compute, and replace as one step that happens whole or not at all."""

import errno
import os
import stat
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import NamedTuple, Self

from agentfs import call_context
from agentfs.errors import TooLargeError
from agentfs.fs import oserrors, syscalls
from agentfs.fs.context import RootContext
from agentfs.fs.file import open_regular
from agentfs.fs.lock import ATTEMPTS, FileLock
from agentfs.fs.node import Change, DirectoryNode, FileNode, Recorder
from agentfs.fs.path import ParsedPath, quote
from agentfs.fs.resolve import PathResolver
from agentfs.fs.revision import revision_of
from agentfs.fs.temporary import (
    Original,
    fill,
    metadata_of,
    new_temporary,
    overwrite,
    sweep,
    sync_directories,
)
from agentfs.fs.unicode_duplicates import unicode_duplicate_notes
from agentfs.fs.writable import check_replaceable, check_writable


class Current(NamedTuple):
    """A file as it stands, before a change.

    Attributes:
        path: The path as it was asked for, fit to show.
        real_path: The path of the file itself, links resolved.
        data: Its content; None when nothing is there.
        stat: What the system says of it; None when nothing is there.
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
        path: The path as it was asked for, fit to show.
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


class _ChangedMeanwhile(Exception):  # noqa: N818 - a signal within this module
    """Another program got in between the read and the replace."""


def change_file(
    base: RootContext,
    root_path: str,
    path: str,
    asked: ParsedPath,
    compute: Callable[[Current], bytes],
    *,
    max_bytes: int,
    preview: bool,
    recorder: Recorder | None = None,
) -> Changed:
    """Do the work of `Root.change`.

    Args:
        base: Where walks start.
        root_path: The absolute path of the root.
        path: The path as it was asked for.
        asked: The same in parts.
        compute: Returns the new content for the present one.
        max_bytes: The largest file that is read.
        preview: Write nothing.
        recorder: Who is told of the change.

    Returns:
        What was done.

    Raises:
        AgentFSError: as `Root.change` says.
    """
    try:
        for _ in range(ATTEMPTS):
            with _Target(base, path, asked) as target:
                key = target.key
            with FileLock(key, path, root_path), _Target(base, path, asked) as target:
                # The way may have changed while the lock was waited for; then it is the lock of another file.
                if target.key != key:
                    continue
                try:
                    return target.change(compute, max_bytes, preview=preview, recorder=recorder)
                except _ChangedMeanwhile:
                    continue
    except OSError as error:
        raise oserrors.from_oserror(error, path) from None
    raise oserrors.kept_changing(path)


class _Target:
    """The place that a change is for: an open directory and a name in it that is no link."""

    def __init__(self, base: RootContext, path: str, asked: ParsedPath) -> None:
        self._base = base
        self._asked_path = path
        self._trail = PathResolver(base, path, asked, creating=True)
        try:
            self._name = self._find()
        except BaseException:
            self._trail.let_go()
            raise
        self.path = self._trail.shown(self._name)
        self.real_path = self._trail.place(self._name)
        try:
            self._check_protected()
        except BaseException:
            self._trail.let_go()
            raise

    @property
    def key(self) -> str:
        """What names the file for its lock."""
        return self._trail.key(self._name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._trail.let_go()

    def _check_protected(self) -> None:
        base, real_path = self._base, self.real_path
        if base.unreadable.covers(real_path):
            raise oserrors.protected(self._asked_path, base.shown(real_path))
        if base.unwritable.covers(real_path) or self._trail.passes_twin(base.unwritable):
            raise oserrors.protected(self._asked_path, base.shown(real_path), shown=True)
        if base.access is not None:
            base.access.check_change(real_path)

    def _find(self) -> str:
        trail = self._trail
        while (name := trail.advance()) is not None:
            if trail.missing or not trail.follow_link(name):
                return name
        raise oserrors.not_a_file(self._asked_path)

    def change(
        self, compute: Callable[[Current], bytes], max_bytes: int, *, preview: bool, recorder: Recorder | None
    ) -> Changed:
        """Do one attempt."""
        old = self._read(max_bytes)
        data = None if old is None else old.data
        after = compute(Current(self.path, self.real_path, data, None if old is None else old.stat))
        notes = oserrors.link_note(self.path, self._base.shown(self.real_path))
        if after != data:
            in_place = self._check_replaceable(old)
            if not preview:
                notes += self._write(after, old, max_bytes, recorder, in_place=in_place)
        return Changed(self.path, self.real_path, data, after, data is None, revision_of(after), tuple(notes))

    def _read(self, max_bytes: int) -> Original | None:
        trail = self._trail
        if trail.missing:
            return None
        try:
            fd = syscalls.open_file(trail.handle, self._name)
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise _ChangedMeanwhile from None
            raise trail.failure(error, self._name) from None
        with open_regular(self._base, fd, self.path, self.real_path) as file:
            if file.stat.st_nlink > 1 and self._base.is_twin(file.stat, self._base.unwritable):
                raise oserrors.protected(self.path, self._base.shown(self.real_path), shown=True)
            size = file.stat.st_size
            data = file.read(max_bytes + 1) if size <= max_bytes else b""
            if size > max_bytes or len(data) > max_bytes:
                raise TooLargeError(
                    f"{quote(self.path)} has {max(size, len(data))} bytes, and {max_bytes} is the most that"
                    " a file to be changed may have.",
                    details={"path": self.path, "size": max(size, len(data)), "limit": max_bytes},
                )
            return Original(data, file.stat, metadata_of(fd, file.stat))

    def _check_replaceable(self, old: Original | None) -> bool:
        """Refuse the change where it would fail; tell whether the file is to be written in place."""
        base, trail = self._base, self._trail
        if old is not None and old.stat.st_nlink > 1 and base.hardlinks == "inplace":
            check_writable(trail, self._name, self.path, old.stat)
            return True
        check_replaceable(base, trail, self._name, self.path)
        return False

    def _write(
        self, after: bytes, old: Original | None, max_bytes: int, recorder: Recorder | None, *, in_place: bool
    ) -> list[str]:
        base, trail = self._base, self._trail
        notes: list[str] = []
        temporary = new_temporary()
        # Nobody takes the directory of a new file away, or makes it too, before the file is recorded.
        alone = recorder.alone() if recorder is not None and old is None else nullcontext()
        with alone:
            try:
                trail.make_missing()
                handle = trail.handle
                if in_place and old is not None:
                    self._check_unchanged(old.data, max_bytes)
                    with self._recording(recorder, old, after, old.stat.st_mode):
                        call_context.complete()
                        overwrite(base, handle, self._name, after, old)
                    return [f"written in place for all of its {old.stat.st_nlink} hard links"]
                sweep(base, handle)
                looks = None if old is None else old.looks
                notes += fill(base, handle, temporary, after, looks)
                with self._recording(recorder, old, after, syscalls.lstat(handle, temporary).st_mode):
                    if old is None:
                        call_context.complete()
                        self._place_new(handle, temporary)
                    else:
                        self._check_unchanged(old.data, max_bytes)
                        call_context.complete()
                        syscalls.replace(handle, temporary, self._name)
            except BaseException as error:
                self._discard(temporary)
                trail.unmake()
                if isinstance(error, FileNotFoundError) and old is None:
                    raise _ChangedMeanwhile from None  # its directory was taken away
                if isinstance(error, OSError):
                    raise trail.failure(error, self._name) from None
                raise
        notes = [*(unicode_duplicate_notes(handle, self._name) if old is None else _notes(old.stat)), *notes]
        return notes + sync_directories(base, trail.changed)

    def _recording(
        self, recorder: Recorder | None, old: Original | None, after: bytes, mode: int
    ) -> AbstractContextManager[None]:
        if recorder is None:
            return nullcontext()
        looks = None if old is None else old.looks
        before = None if old is None else FileNode.of(old.stat.st_mode, old.data, looks)
        made = [Change(path, None, DirectoryNode()) for path in self._trail.made()]
        return recorder.recording((*made, Change(self.real_path, before, FileNode.of(mode, after, looks))))

    def _place_new(self, handle: int, temporary: str) -> None:
        try:
            syscalls.place(handle, temporary, self._name)
        except FileExistsError:
            raise _ChangedMeanwhile from None

    def _check_unchanged(self, before: bytes, max_bytes: int) -> None:
        # A program that does not take our lock may have written since; its work must not be lost.
        now = self._read(max_bytes)
        if now is None or now.data != before:
            raise _ChangedMeanwhile

    def _discard(self, temporary: str) -> None:
        with suppress(OSError):
            syscalls.remove(self._trail.handle, temporary)


def _notes(found: os.stat_result) -> list[str]:
    notes: list[str] = []
    if found.st_nlink > 1:
        notes.append(f"the file had {found.st_nlink} hard links; the other names keep the old content")
    if found.st_mode & (stat.S_ISUID | stat.S_ISGID):
        notes.append("the setuid and setgid bits were dropped")
    return notes
