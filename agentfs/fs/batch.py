"""The changes of one batch: `Batch` makes them, and `UndoableBatch` undoes those that were made.

The steps that are likely to fail come first: new contents are written to temporaries, and files that will be
replaced or removed get a hard link as backup. After that, only renames and removals remain. If one of them
fails, or the process dies, the backups restore the old files.
"""

import errno
import os
import stat
import time
from collections.abc import Callable, Container, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import ClassVar, NamedTuple

from agentfs.base import call_context
from agentfs.base.advice import Joined
from agentfs.errors import AgentFSError, NotDirectoryError, NotFoundError
from agentfs.fs import oserrors, syscalls
from agentfs.fs.context import RootContext
from agentfs.fs.file import apply_metadata, create_temporary, node_at, node_in, remove_stale_temporaries
from agentfs.fs.node import (
    Change,
    Conflict,
    DirectoryNode,
    EntryNode,
    FileNode,
    LinesBy,
    LinkNode,
    LogStep,
    Metadata,
    Node,
    Recorder,
)
from agentfs.fs.path import is_temporary_name, quote
from agentfs.fs.plan import PlannedChange, directories_with_changes, new_temporary, steps_of
from agentfs.fs.recovery_log import RecoveryLog
from agentfs.fs.resolve import ResolvedPath, resolve_real

_NOT_EMPTY = {errno.ENOTEMPTY, errno.EEXIST}
_RETRY_SECONDS = 0.5  # how long a failed batch retries to undo its steps
_RETRY_PAUSE = 0.001
_NOTED_PATHS = 5


class Terms(NamedTuple):
    """The arguments of `Root.apply`. `held` is the path of a single change, locked and kept open."""

    max_bytes: int
    conflict: Conflict
    recorder: Recorder | None = None
    log_step: LogStep | None = None  # in place of the recorder's `logging_step`
    undoing: bool = False
    held: ResolvedPath | None = None
    by_others: tuple[LinesBy, ...] = ()  # for the recorder

    def recording(self, changes: tuple[Change, ...]) -> AbstractContextManager[tuple[Change, ...]]:
        """Record changes that the block makes; give them with contents loaded from the store."""
        if self.log_step is not None:
            return self.log_step(changes)
        if self.recorder is None:
            return nullcontext(changes)
        return self.recorder.logging_step(changes, by_others=self.by_others)


class Applied(NamedTuple):
    """The outcome of `Root.apply`."""

    remaining: tuple[str, ...] = ()  # directories that were not removed because they have other entries
    notes: tuple[str, ...] = ()


class NotRenamed(Exception):  # noqa: N818 - caught by `apply_changes`
    """A directory cannot be renamed with its entries, so the changes must be made one by one."""


class UndoableBatch:
    """The planned changes of one batch. Changes that were made can be undone."""

    def __init__(
        self,
        context: RootContext,
        plans: Sequence[PlannedChange],
        max_bytes: int,
        log: RecoveryLog | None = None,
        held: ResolvedPath | None = None,
    ) -> None:
        """Take the plans; `held` is the resolved path of a single change."""
        self._context = context
        self._plans = sorted(plans, key=attrgetter("change.path"))
        self._with_changes = directories_with_changes(plans)
        self._max_bytes = max_bytes
        self._log = log
        self._held = held
        self._renamed: set[str] = set()  # paths whose temporary was renamed without a hard link
        self._retry_until = 0.0
        self.staged: set[str] = set()  # temporaries and backups that may exist
        self.not_undone: set[str] = set()  # paths whose old node could not be restored

    def undo(self, paths: Container[str]) -> tuple[str, ...]:
        """Restore the old nodes of some paths; return the paths that another program has changed since."""
        changed_by_others: list[str] = []
        undone: set[str] = set()
        for step, plan in reversed(steps_of(self._plans, self._with_changes)):
            path = plan.change.path
            if path not in paths or (path in undone and step != "open"):
                continue
            restored = self._retry(partial(self._UNDOING.get(step, UndoableBatch._restore), self, plan))
            if step != "close":
                undone.add(path)
            if restored is None:
                self.not_undone.add(path)
            elif not restored:
                changed_by_others.append(path)
        self._remove_staged()
        return tuple(changed_by_others)

    def keep_log_if_needed(self) -> None:
        """Keep the log if a path could not be restored, or a temporary name could not be removed."""
        if self._log is not None:
            self._log.keep = bool(self.not_undone or self.staged)
            if self._log.keep:
                self._log.note_left(self.not_undone)

    def _at(self, path: str) -> AbstractContextManager[ResolvedPath]:
        held = self._held
        open_here = None if held is None else held.other(path)
        return resolve_real(self._context, path) if open_here is None else nullcontext(open_here)

    @contextmanager
    def _changing(self, path: str, name: str | None = None) -> Generator[ResolvedPath]:
        """Resolve a path. OSErrors of the block become typed errors, with `name` as the last name."""
        with self._at(path) as resolved:
            try:
                yield resolved
            except FileExistsError:
                raise
            except OSError as error:
                raise resolved.error(error, name) from None

    def _node_at(self, path: str) -> Node | None:
        return node_at(self._context, path, self._max_bytes)

    def _create(
        self, at: ResolvedPath, node: EntryNode, replaced: os.stat_result | None, metadata: Metadata | None
    ) -> list[str]:
        """Create a link or a file. Without `metadata`, a file gets that of its node."""
        if isinstance(node, LinkNode):
            os.symlink(node.target, at.name, dir_fd=at.parent)
            return []
        return create_temporary(at.parent, at.name, node, replaced, metadata or node.metadata)

    def _open_to_owner(self, path: str) -> None:
        with self._changing(path) as target:
            syscalls.open_to_owner(target.parent, target.name)

    def _while_changing(self, path: str, node: DirectoryNode) -> DirectoryNode:
        """Return the node of a directory while entries in it are changed: its owner may do that."""
        if path in self._with_changes and node.mode is not None:
            return replace(node, mode=node.mode | stat.S_IRWXU)
        return node

    def _set_directory(self, path: str, present: Node | None, wanted: Node | None) -> list[str]:
        with self._changing(path) as target:
            mode = wanted.mode if isinstance(wanted, DirectoryNode) else None
            if not isinstance(present, DirectoryNode):
                # Keep other users out until it has its owner and access control list.
                os.mkdir(target.name, 0o777 if mode is None else 0o700, dir_fd=target.parent)
            elif mode is None:
                mode = syscalls.new_directory_mode(target.parent, new_temporary("part"))
            if mode is None:
                return []
            metadata = wanted.metadata if isinstance(wanted, DirectoryNode) else None
            try:
                fd = syscalls.open_directory(target.parent, target.name)
            except PermissionError:  # its mode does not even let its owner list it
                syscalls.open_to_owner(target.parent, target.name)
                fd = syscalls.open_directory(target.parent, target.name)
            try:
                return apply_metadata(fd, (metadata or Metadata(mode))._replace(mode=mode))
            finally:
                syscalls.close(fd)

    def _restore(self, plan: PlannedChange) -> bool:
        """Restore the old node of a path; return False if another program has changed the path."""
        path, before, after = plan.change.path, plan.change.before, plan.change.after
        if plan.inode:
            return self._rename_back(plan)
        if isinstance(before, EntryNode):
            return self._restore_from_backup(plan)
        if before is None and isinstance(after, DirectoryNode):
            return self._remove_made_directory(path)
        present = self._node_at(path)
        made = self._is_made(plan, present)
        if isinstance(present, EntryNode) and not (made and self._created(plan)):
            return False
        if isinstance(before, DirectoryNode):
            before = self._while_changing(path, before)
            if isinstance(present, DirectoryNode) and present.mode == before.mode:
                return True  # changing the mode has failed
            if made or present is None:
                if isinstance(present, EntryNode):
                    self._remove_at(path)
                self._set_directory(path, present, before)
            return True
        if present is None or not made:
            return present is None
        self._remove_at(path)
        return True

    def _restore_open(self, plan: PlannedChange) -> bool:
        """Open a directory whose entries will be restored."""
        if isinstance(self._node_at(plan.change.path), DirectoryNode):
            self._open_to_owner(plan.change.path)
        return True

    def _restore_closed(self, plan: PlannedChange) -> bool:
        """Restore the mode of a directory whose entries are restored."""
        present = self._node_at(plan.change.path)
        if isinstance(present, DirectoryNode):
            self._set_directory(plan.change.path, present, plan.change.before)
        return True

    def _is_made(self, plan: PlannedChange, present: Node | None) -> bool:
        after = plan.change.after
        if isinstance(after, FileNode) and isinstance(present, FileNode) and after.metadata is None:
            return present.digest == after.digest  # the umask decided the mode
        return present == after

    def _remove_made_directory(self, path: str) -> bool:
        """Remove a directory unless it has entries. This takes few descriptors, in case they ran out."""
        with suppress(NotFoundError, NotDirectoryError, FileNotFoundError), self._at(path) as target:
            if not stat.S_ISDIR(syscalls.lstat(target.parent, target.name).st_mode):
                return False
            with suppress(OSError):
                os.rmdir(target.name, dir_fd=target.parent)
        return True

    def _rename_back(self, plan: PlannedChange) -> bool:
        if self._inode_at(plan.source) == plan.inode:
            return True
        if self._inode_at(plan.change.path) != plan.inode:
            return False
        with self._at(plan.change.path) as target, self._at(plan.source) as source:
            try:
                syscalls.rename_directory(target.parent, target.name, source.parent, source.name)
            except FileExistsError:
                return False
        return True

    def _inode_at(self, path: str) -> int:
        with suppress(NotFoundError, NotDirectoryError, FileNotFoundError), self._at(path) as resolved:
            return syscalls.lstat(resolved.parent, resolved.name).st_ino
        return 0

    def _created(self, plan: PlannedChange) -> bool:
        """Return True if this batch created the file or link at a path: its temporary has the same inode."""
        path = plan.change.path
        if path in self._renamed:
            return True
        inode = self._inode_at(path)
        return inode != 0 and inode == self._inode_at(plan.temporary)

    def _restore_from_backup(self, plan: PlannedChange) -> bool:
        path, before, after = plan.change.path, plan.change.before, plan.change.after
        if not plan.backup or self._node_at(path) == before:
            return True
        saved, present = self._node_at(plan.backup), self._node_at(path)
        if not isinstance(saved, EntryNode) or saved != before or present not in (after, None):
            return False
        if isinstance(present, DirectoryNode):
            self._remove_at(path, directory=True)
        # If the directory of the path is missing, this fails, so that the only copy of the content is kept.
        with self._at(plan.backup) as backup, self._at(path) as target:
            try:
                syscalls.replace(backup.parent, backup.name, target.name, to=target.parent)
            except OSError as error:  # another file system: copy; the backup is removed later
                if error.errno != errno.EXDEV:
                    raise
                self._create(target, saved, None, None)
        return True

    def _remove_at(self, path: str, *, directory: bool = False) -> None:
        with self._at(path) as target:
            (os.rmdir if directory else os.unlink)(target.name, dir_fd=target.parent)

    def _remove_staged(self) -> None:
        """Remove the temporary names, except those that are needed to restore a path."""
        plans = [plan for plan in self._plans if plan.change.path in self.not_undone]
        needed = {name for plan in plans for name in (plan.temporary, plan.backup)}
        needed |= set(map(os.path.dirname, needed))
        # Longest first: the entries of a private directory are removed before it.
        self.staged = {
            path
            for path in sorted(self.staged, key=len, reverse=True)
            if path in needed or not self._retry(partial(self._remove_staged_name, path))
        }

    def _remove_staged_name(self, path: str) -> bool:
        with suppress(NotFoundError, NotDirectoryError, FileNotFoundError), self._at(path) as target:
            directory = stat.S_ISDIR(syscalls.lstat(target.parent, target.name).st_mode)
            (os.rmdir if directory else os.unlink)(target.name, dir_fd=target.parent)
        return True

    def _retry(self, act: Callable[[], bool]) -> bool | None:
        """Repeat a step that fails because of a race; return None if it keeps failing."""
        while True:
            try:
                return act()
            except (OSError, AgentFSError):
                now = time.monotonic()
                self._retry_until = self._retry_until or now + _RETRY_SECONDS
                if now > self._retry_until:
                    return None
                time.sleep(_RETRY_PAUSE)

    # Unbound, because bound methods would keep the contents of each batch in a reference cycle.
    _UNDOING: ClassVar[dict[str, Callable[["UndoableBatch", PlannedChange], bool]]] = {
        "open": _restore_closed,
        "close": _restore_open,
    }


class Batch(UndoableBatch):
    """A batch to apply."""

    def __init__(
        self,
        context: RootContext,
        plans: Sequence[PlannedChange],
        terms: Terms,
        log: RecoveryLog | None = None,
    ) -> None:
        """Prepare a batch. If its path is held, its plans come from `plan_single`."""
        super().__init__(context, plans, terms.max_bytes, log, terms.held)
        self._terms = terms
        self._kept_directories: list[str] = []
        self._begun: set[str] = set()  # paths whose change may have been made
        self._settled: dict[str, Change] = {}  # changes that create files, with their actual modes

    def apply(self, changes: Sequence[Change]) -> Applied:
        """Make the changes, or undo those that were made."""
        notes: dict[str, list[str]] = {}  # each with the paths it is about
        recorder = self._terms.recorder
        try:
            if recorder is not None and self._terms.log_step is None:
                recorder.prepare(changes)
            # Only a directory that was closed later than its entries were changed may be opened for that.
            steps = [
                each
                for each in steps_of(self._plans, self._with_changes)
                if each[0] != "open" or self._terms.undoing
            ]
            # The temporary of a single file lies in the directory of the file, which is created first.
            first = steps[:-1] if self._held is not None else []
            for step, plan in first:
                self._METHODS[step](self, plan)
            for plan in self._plans:
                call_context.check()
                for note in self._prepare(plan):
                    notes.setdefault(note, []).append(plan.change.path)
            if self._settled:
                changes = [self._settled.get(change.path, change) for change in changes]
            with self._terms.recording(tuple(changes)):
                try:
                    call_context.begin_commit()  # a call cancelled during the recording changes nothing
                    for step, plan in steps[len(first) :]:
                        for note in self._METHODS[step](self, plan):
                            notes.setdefault(note, []).append(plan.change.path)
                except BaseException:
                    self._undo_begun()  # before the journal looks at the outcome
                    raise
        except BaseException as error:
            self._undo_begun()
            typed = self._typed(error)
            if typed is error:
                raise
            raise typed from None
        if self._log is not None:
            self._log.note_left(())
        if self.staged:
            self._remove_staged()
        self.keep_log_if_needed()
        if self._held is not None:
            return Applied(tuple(self._kept_directories), tuple(notes))
        about = [f"{note}: {self._names(paths)}" for note, paths in notes.items()]
        return Applied(tuple(self._kept_directories), tuple(about))

    def _undo_begun(self) -> None:
        with call_context.uncounted():
            if self._held is not None:
                self._remove_staged()  # it may lie in a directory that `undo` removes
            self.undo(self._begun)
            self.keep_log_if_needed()

    def _typed(self, error: BaseException) -> BaseException:
        if isinstance(error, NotRenamed) and self.not_undone and error.__cause__ is not None:
            error = error.__cause__
        path = self._plans[0].change.path if self._plans else "."
        known = oserrors.from_oserror(error, path) if isinstance(error, OSError) else error
        if self.not_undone and isinstance(known, AgentFSError):
            paths = ", ".join(map(quote, sorted(self.not_undone)))
            hint = f"{paths} could not be restored; opening the workspace again retries it."
            known.hint = Joined(" ", known.hint, hint)
        return known

    def _names(self, paths: Sequence[str]) -> str:
        names = ", ".join(quote(self._context.display_path(path)) for path in sorted(paths)[:_NOTED_PATHS])
        more = len(paths) - _NOTED_PATHS
        return f"{names} and {more} more" if more > 0 else names

    def _prepare(self, plan: PlannedChange) -> list[str]:
        """Back up the old file and write the new one to its temporary; return notes on lost metadata."""
        path, before, after = plan.change.path, plan.change.before, plan.change.after
        if plan.inode:
            self._check_entries(plan)
            return []
        is_new = isinstance(after, FileNode) and after.metadata is None
        metadata = before.metadata if isinstance(before, FileNode) and not is_new else None
        replaced: os.stat_result | None = None
        if isinstance(before, FileNode) and after is not None:
            with self._at(path) as target:
                replaced = target.stat()  # before the backup adds a hard link
        if plan.backup and isinstance(before, EntryNode):
            self._make_place(plan)
            with self._at(plan.backup) as backup, self._changing(path) as target:
                self.staged.add(plan.backup)
                if not syscalls.link_into(target.parent, target.name, backup.parent, backup.name):
                    self._create(backup, before, None, None)
        if not isinstance(after, EntryNode):
            return []
        if plan.backup:
            self._make_place(plan)
        with self._changing(plan.temporary, os.path.basename(path)) as temporary:
            self.staged.add(plan.temporary)
            if plan.source:
                with self._at(plan.source) as source:
                    if syscalls.link_into(source.parent, source.name, temporary.parent, temporary.name):
                        return []
                    moved = source.stat()  # its backup is a hard link, and a move keeps its other names
                    replaced = moved and os.stat_result((*moved[:3], 1, *moved[4:10]))
            if self._held is not None:
                remove_stale_temporaries(self._context, temporary.parent)
            notes = self._create(temporary, after, replaced, metadata)
            if is_new and isinstance(after, FileNode):
                mode = syscalls.lstat(temporary.parent, temporary.name).st_mode & 0o777
                settled = replace(after, mode=mode, metadata=Metadata(mode))
                plan.change = self._settled[path] = Change(path, before, settled)
        return notes

    def _check_entries(self, plan: PlannedChange) -> None:
        """Raise NotRenamed if the directory has an unplanned entry, or a part of it is on another device."""
        with resolve_real(self._context, plan.change.path, create_parents=True) as target:
            device = syscalls.lstat(target.parent, ".").st_dev
        directories = [""]
        while directories:
            below = directories.pop()
            with self._at(f"{plan.source}/{below}" if below else plan.source) as directory:
                fd = syscalls.open_directory(directory.parent, directory.name)
            try:
                with os.scandir(fd) as listed:
                    types = dict(syscalls.typed_names(listed))
                entries = {os.path.join(below, name): type_ for name, type_ in types.items()}
                if os.fstat(fd).st_dev != device or not entries.keys() <= plan.entries:
                    raise NotRenamed
            finally:
                syscalls.close(fd)
            directories += [path for path, type_ in entries.items() if type_ == "d"]

    def _make_place(self, plan: PlannedChange) -> None:
        """Create the private directory for temporary names, if the plan has one."""
        place = os.path.dirname(plan.temporary)
        if is_temporary_name(place) and place not in self.staged:
            with self._changing(place, os.path.basename(plan.change.path)) as target:
                self.staged.add(place)
                os.mkdir(target.name, 0o700, dir_fd=target.parent)

    def _put(self, plan: PlannedChange) -> list[str]:
        change = plan.change
        with self._at(plan.temporary) as temporary, self._changing(change.path) as target:
            if isinstance(change.before, EntryNode):
                self._check_unchanged(change, target)
                self._begun.add(change.path)
                syscalls.replace(temporary.parent, temporary.name, target.name, to=target.parent)
                self.staged.discard(plan.temporary)
                return []
            self._begun.add(change.path)
            try:
                if self._held is not None:
                    syscalls.rename_new(temporary.parent, temporary.name, target.name)
                    self.staged.discard(plan.temporary)
                elif not syscalls.link_into(temporary.parent, temporary.name, target.parent, target.name):
                    # Without hard links, this may replace a file that was created just now.
                    self._renamed.add(change.path)
                    syscalls.replace(temporary.parent, temporary.name, target.name, to=target.parent)
            except FileExistsError:
                raise self._terms.conflict(change, node_in(self._context, target, self._max_bytes)) from None
            return []

    def _remove(self, plan: PlannedChange) -> list[str]:
        with self._changing(plan.change.path) as target:
            self._check_unchanged(plan.change, target)
            self._begun.add(plan.change.path)
            os.unlink(target.name, dir_fd=target.parent)
        return []

    def _check_unchanged(self, change: Change, target: ResolvedPath) -> None:
        # Other programs do not take our lock and may have written.
        present = node_in(self._context, target, self._max_bytes)
        if present != change.before:
            raise self._terms.conflict(change, present)

    def _rename_directory(self, plan: PlannedChange) -> list[str]:
        with self._at(plan.source) as source, self._at(plan.change.path) as target:
            if self._inode_at(plan.source) != plan.inode:
                raise self._terms.conflict(Change(plan.source, plan.change.after, None), None)
            self._begun.add(plan.change.path)
            try:
                syscalls.rename_directory(source.parent, source.name, target.parent, target.name)
            except FileExistsError:
                raise self._terms.conflict(plan.change, self._node_at(plan.change.path)) from None
            except OSError as error:
                # A mount or overlay prevents the rename. After any other cause, single changes fail too.
                raise NotRenamed from error
        return []

    def _open_directory(self, plan: PlannedChange) -> list[str]:
        self._begun.add(plan.change.path)
        self._open_to_owner(plan.change.path)
        return []

    def _close_directory(self, plan: PlannedChange) -> list[str]:
        return self._set_directory(plan.change.path, plan.change.after, plan.change.after)

    def _make_directory(self, plan: PlannedChange) -> list[str]:
        """Create a directory, or change the mode of an existing one."""
        path, before, after = plan.change.path, plan.change.before, plan.change.after
        self._begun.add(path)
        try:
            if isinstance(after, DirectoryNode):
                after = self._while_changing(path, after)
            notes = self._set_directory(path, before, after)
        except FileExistsError:
            self._begun.discard(path)
            raise self._terms.conflict(plan.change, self._node_at(path)) from None
        if self._held is not None and self._held.missing:
            self._held.enter_made()
        return notes

    def _remove_directory(self, plan: PlannedChange) -> list[str]:
        with self._changing(plan.change.path) as target:
            self._begun.add(plan.change.path)
            try:
                os.rmdir(target.name, dir_fd=target.parent)
            except OSError as error:
                if error.errno not in _NOT_EMPTY:
                    raise
                if plan.change.after is not None or not self._terms.undoing:
                    # Another program has added an entry.
                    raise self._terms.conflict(plan.change, plan.change.before) from None
                self._kept_directories.append(plan.change.path)
        return []

    _METHODS: ClassVar[dict[str, Callable[["Batch", PlannedChange], list[str]]]] = {
        "open": _open_directory,
        "make": _make_directory,
        "rename": _rename_directory,
        "put": _put,
        "remove": _remove,
        "unmake": _remove_directory,
        "close": _close_directory,
    }
