"""Taking back what a batch of changes has made, at once or after its process died."""

import errno
import os
import stat
import time
from collections.abc import Callable, Container, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from operator import attrgetter
from typing import NamedTuple

from agentfs.errors import AgentFSError, NotDirectoryError, NotFoundError
from agentfs.fs import syscalls
from agentfs.fs.context import RootContext
from agentfs.fs.directory import node_at, node_in
from agentfs.fs.node import Conflict, DirectoryNode, FileNode, LinkNode, Metadata, Node, Recorder
from agentfs.fs.plan import PlannedChange, new_temporary, steps_of
from agentfs.fs.recovery_log import RecoveryLog
from agentfs.fs.resolve import ResolvedPath, resolve_real
from agentfs.fs.temporary import apply_metadata, create_temporary

_NOT_EMPTY = {errno.ENOTEMPTY, errno.EEXIST}
_RETRY_SECONDS = 0.5  # how long one batch tries again what is to be undone
_RETRY_PAUSE = 0.001
_NOTED_PATHS = 5

_Step = tuple[Callable[[PlannedChange], list[str]], PlannedChange]


class Terms(NamedTuple):
    """On what terms changes are made: see `Root.apply`."""

    max_bytes: int
    conflict: Conflict
    recorder: Recorder | None = None
    undoing: bool = False
    held: ResolvedPath | None = None


class UndoableBatch:
    """The planned changes of one batch, as far as they may have been made."""

    def __init__(self, context: RootContext, plans: Sequence[PlannedChange], terms: Terms) -> None:
        self._context = context
        self._plans = sorted(plans, key=attrgetter("change.path"))
        self._max_bytes = terms.max_bytes
        self._held = terms.held
        self._renamed: set[str] = set()  # those whose temporary was renamed, as there are no hard links
        self._retry_until = 0.0
        self.staged: set[str] = set()  # the temporaries and backups that may exist
        self.not_undone: set[str] = set()  # the paths that were not brought back, as the system kept failing

    def undo(self, paths: Container[str]) -> tuple[str, ...]:
        """Bring back what was at paths before; return those that stay, as somebody else has changed them."""
        changed_by_others: list[str] = []
        undone: set[str] = set()
        for _, plan in reversed(steps_of(self._plans)):
            path = plan.change.path
            if path in undone or path not in paths:
                continue
            undone.add(path)
            restored = self._retry(partial(self._restore, plan))
            if restored is None:
                self.not_undone.add(path)
            elif not restored:
                changed_by_others.append(path)
        self._remove_staged()
        return tuple(changed_by_others)

    def keep_log_if_needed(self, log: RecoveryLog | None) -> None:
        """Keep the log for what could not be brought back or removed, if there is any."""
        if log is not None:
            log.keep = bool(self.not_undone or self.staged)
            if log.keep:
                log.note_left(self.not_undone)

    def _at(self, path: str) -> AbstractContextManager[ResolvedPath]:
        open_here = None if self._held is None else self._held.other(path)
        return resolve_real(self._context, path) if open_here is None else nullcontext(open_here)

    def _node_at(self, path: str) -> Node | None:
        return node_at(self._context, path, self._max_bytes)

    def _create(
        self,
        at: ResolvedPath,
        node: FileNode | LinkNode,
        replaced: os.stat_result | None,
        metadata: Metadata | None,
    ) -> list[str]:
        """Create a link, or a file with the owner and attributes of the one it replaces, or else its own."""
        if isinstance(node, LinkNode):
            os.symlink(node.target, at.name, dir_fd=at.parent)
            return []
        return create_temporary(self._context, at.parent, at.name, node, replaced, metadata or node.metadata)

    def _set_directory(self, path: str, present: Node | None, wanted: Node | None) -> list[str]:
        with self._at(path) as target:
            try:
                mode = wanted.mode if isinstance(wanted, DirectoryNode) else None
                if not isinstance(present, DirectoryNode):
                    # Nobody else enters it before it has its owner and access control list.
                    os.mkdir(target.name, 0o777 if mode is None else 0o700, dir_fd=target.parent)
                elif mode is None:
                    mode = syscalls.new_directory_mode(target.parent, new_temporary("part"))
                if mode is None:
                    return []
                metadata = wanted.metadata if isinstance(wanted, DirectoryNode) else None
                fd = syscalls.open_directory(target.parent, target.name)
                try:
                    return apply_metadata(fd, (metadata or Metadata(mode))._replace(mode=mode))
                finally:
                    syscalls.close(fd)
            except FileExistsError:
                raise
            except OSError as error:
                raise target.error(error) from None

    def _restore(self, plan: PlannedChange) -> bool:
        """Bring back what was at a path; return whether it is there."""
        path, before, after = plan.change.path, plan.change.before, plan.change.after
        if plan.inode:
            return self._rename_back(plan)
        if isinstance(before, FileNode | LinkNode):
            return self._restore_from_backup(plan)
        if before is None and isinstance(after, DirectoryNode):
            return self._remove_made_directory(path)
        present = self._node_at(path)
        made = self._is_made(plan, present)
        if isinstance(present, FileNode | LinkNode) and not (made and self._created(plan)):
            return False
        if isinstance(before, DirectoryNode):
            if made:
                if isinstance(after, FileNode | LinkNode):
                    self._remove_at(path)
                self._set_directory(path, present, before)
            return True
        if present is None or not made:
            return present is None
        self._remove_at(path)
        return True

    def _is_made(self, plan: PlannedChange, present: Node | None) -> bool:
        after = plan.change.after
        if isinstance(after, FileNode) and isinstance(present, FileNode) and after.metadata is None:
            return present.digest == after.digest  # the system has decided on the mode
        return present == after

    def _remove_made_directory(self, path: str) -> bool:
        """Remove a directory unless something is in it; this takes fewer descriptors than making it."""
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
        """Return True if this batch created the file or link at a path: its temporary is the same file."""
        path = plan.change.path
        if path in self._renamed:
            return True
        inode = self._inode_at(path)
        return inode != 0 and inode == self._inode_at(plan.temporary)

    def _restore_from_backup(self, plan: PlannedChange) -> bool:
        path, before, after = plan.change.path, plan.change.before, plan.change.after
        if not plan.backup or self._node_at(path) == before:
            return True
        try:
            with self._at(plan.backup) as backup:
                saved = node_in(self._context, backup, self._max_bytes)
                present = self._node_at(path)
                if (
                    not isinstance(saved, FileNode | LinkNode)
                    or saved != before
                    or present not in (after, None)
                ):
                    return False
                if isinstance(present, DirectoryNode):
                    self._remove_at(path, directory=True)
                with self._at(path) as target:
                    try:
                        syscalls.replace(backup.parent, backup.name, target.name, to=target.parent)
                    except OSError as error:  # it is on another file system, and is removed with the others
                        if error.errno != errno.EXDEV:
                            raise
                        self._create(target, saved, None, None)
        except (NotFoundError, NotDirectoryError):
            return False
        return True

    def _remove_at(self, path: str, *, directory: bool = False) -> None:
        with self._at(path) as target:
            (os.rmdir if directory else os.unlink)(target.name, dir_fd=target.parent)

    def _remove_staged(self) -> None:
        """Remove the second names, except those that are still needed to bring something back."""
        plans = [plan for plan in self._plans if plan.change.path in self.not_undone]
        needed = {name for plan in plans for name in (plan.temporary, plan.backup)}
        needed |= set(map(os.path.dirname, needed))
        # The longest first: a private directory goes after the names in it.
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
        """Do something again while it fails, as the cause may be a link that comes and goes; None at last."""
        while True:
            try:
                return act()
            except (OSError, AgentFSError):
                now = time.monotonic()
                self._retry_until = self._retry_until or now + _RETRY_SECONDS
                if now > self._retry_until:
                    return None
                time.sleep(_RETRY_PAUSE)
