"""One batch of changes, carried out as a whole or taken back."""

import errno
import os
import stat
import time
from collections.abc import Callable, Container, Iterable, Sequence
from contextlib import suppress
from functools import partial

from agentfs import call_context
from agentfs.errors import AgentFSError, NotDirectoryError, NotFoundError
from agentfs.fs import oserrors, syscalls
from agentfs.fs.context import RootContext
from agentfs.fs.node import Conflict, DirectoryNode, FileNode, LinkNode, Node, node_at, node_in, open_parent
from agentfs.fs.path import quote
from agentfs.fs.plans import Plan
from agentfs.fs.recovery_log import RepairLog
from agentfs.fs.temporary import FileMetadata, fill, metadata_of, sync_directories
from agentfs.messages import Joined

_NO_LINKS = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK, errno.EXDEV}
_NOT_EMPTY = {errno.ENOTEMPTY, errno.EEXIST}

_PATIENCE = 0.5  # seconds that one batch tries again what is to be undone
_PAUSE = 0.001


class Batch:
    """The plans of one batch of changes, carried out or taken back.

    Args:
        base: Where walks start.
        plans: How each change is made.
        max_bytes: The largest file that is read.
        conflict: Makes the error for a path that has changed since it was looked at.
        leaving: Whether a directory that is to go may stay, when something else is in it.
    """

    def __init__(
        self,
        base: RootContext,
        plans: Sequence[Plan],
        max_bytes: int,
        conflict: Conflict,
        *,
        leaving: bool = False,
    ) -> None:
        self._base = base
        self._plans = plans
        self._max_bytes = max_bytes
        self._conflict = conflict
        self._leaving = leaving
        self._left: list[str] = []
        # The paths whose change may have been made, and the second names that may be there.
        self._touched: set[str] = set()
        self._waiting: list[str] = []
        self._stuck: set[str] = set()
        self._patient_until = 0.0

    def apply(self, log: RepairLog | None = None) -> tuple[str, ...]:
        """Make the changes.

        Args:
            log: What to tell when they are made.

        Returns:
            The directories that were to be removed and stay, because something else is in them.

        Raises:
            AgentFSError: what stood in the way; everything is as it was before.
        """
        try:
            for plan in self._plans:
                call_context.check()
                self._prepare(plan)
            call_context.complete()
            for step, plan in self._steps():
                step(plan)
        except BaseException as error:
            with call_context.uncounted():
                self.take_back(self._touched)
                self.settle(log)
            known = oserrors.from_oserror(error, self.paths[0]) if isinstance(error, OSError) else error
            if self._stuck and isinstance(known, AgentFSError):
                paths = ", ".join(map(quote, sorted(self._stuck)))
                known.hint = Joined(
                    " ",
                    known.hint,
                    f"{paths} could not be brought back; opening the workspace again tries it anew.",
                )
            if known is error:
                raise
            raise known from None
        self._sync()
        if log is not None:
            log.note_left(())
        self._tidy()
        self.settle(log)
        return tuple(self._left)

    def resume(self) -> None:
        """Go on with the batch of another process, which may have made any of the second names."""
        self._waiting = [
            plan.staged(name) for plan in self._plans for name in (plan.fresh, plan.backup) if name
        ]

    def leave(self, paths: Iterable[str]) -> None:
        """Count paths as not brought back, so that what is needed for that stays."""
        self._stuck.update(paths)

    def take_back(self, paths: Container[str]) -> tuple[str, ...]:
        """Bring back what was there before, as far as nobody else has changed it since.

        Args:
            paths: The paths to bring back.

        Returns:
            The paths that somebody else has changed, and that stay as they are.
        """
        foreign: list[str] = []
        undone: set[str] = set()
        for _, plan in reversed(self._steps()):
            path = plan.change.path
            if path in undone or path not in paths:
                continue
            undone.add(path)
            restored = self._insist(partial(self._restore, plan))
            if restored is None:
                self._stuck.add(path)
            elif not restored:
                foreign.append(path)
        self._tidy()
        return tuple(foreign)

    def settle(self, log: RepairLog | None) -> None:
        """Keep the log for what could not be brought back or removed, if there is any."""
        if log is not None and (self._stuck or self._waiting):
            log.keep = True
            log.note_left(self._stuck)

    @property
    def paths(self) -> list[str]:
        """The paths of all changes."""
        return [plan.change.path for plan in self._plans]

    @property
    def stuck(self) -> Sequence[str]:
        """The paths that could be brought back and were not, as the system kept failing."""
        return sorted(self._stuck)

    def _tidy(self) -> None:
        """Remove the second names, but for those that are still needed to bring something back."""
        needed = {plan.staged(plan.backup) for plan in self._plans if plan.change.path in self._stuck}
        self._waiting = [
            name for name in self._waiting if name in needed or not self._insist(partial(self._clear, name))
        ]

    def _insist(self, act: Callable[[], bool]) -> bool | None:
        """Do something again while it fails: what stands in the way may be a link that comes and goes.

        Returns:
            What it returns; None where it keeps failing.
        """
        while True:
            try:
                return act()
            except (OSError, AgentFSError):
                now = time.monotonic()
                self._patient_until = self._patient_until or now + _PATIENCE
                if now > self._patient_until:
                    return None
                time.sleep(_PAUSE)

    def _clear(self, path: str) -> bool:
        with suppress(NotFoundError, FileNotFoundError), open_parent(self._base, path) as (trail, name):
            syscalls.remove(trail.handle, name)
        return True

    def _sync(self) -> None:
        """Bring the names to the disk where the policy asks for it; a failure is only told: all is done."""
        if self._base.durability != "full":
            return
        failed: list[str] = []
        # One path of each directory leads there; one that is gone has its own name in the directory above.
        for path in {os.path.dirname(plan.change.path): plan.change.path for plan in self._plans}.values():
            with suppress(NotFoundError, NotDirectoryError), open_parent(self._base, path) as (there, _):
                failed += sync_directories(self._base, [there.handle])
        if failed:
            import logging  # noqa: PLC0415 - hardly ever needed

            logging.getLogger("agentfs").warning(failed[0])

    def _steps(self) -> list[tuple[Callable[[Plan], None], Plan]]:
        """Return what is to be done, in order: where possible, the new comes before the old goes."""
        steps: list[tuple[Callable[[Plan], None], Plan]] = []
        for late in (False, True):
            plans = sorted((p for p in self._plans if p.late is late), key=lambda plan: plan.change.path)
            made = [(self._make, p) for p in plans if isinstance(p.change.after, DirectoryNode)]
            placed = [(self._place, p) for p in plans if isinstance(p.change.after, FileNode | LinkNode)]
            # What a file or link replaces is never missing; only what nothing, or a directory, follows.
            removed = [
                (self._remove, p)
                for p in reversed(plans)
                if isinstance(p.change.before, FileNode | LinkNode)
                and not isinstance(p.change.after, FileNode | LinkNode)
            ]
            unmade = [
                (self._unmake, p) for p in reversed(plans) if isinstance(p.change.before, DirectoryNode)
            ]
            steps += [*removed, *unmade, *made, *placed] if late else [*made, *placed, *removed, *unmade]
        return steps

    def _prepare(self, plan: Plan) -> None:
        change = plan.change
        if plan.backup and isinstance(change.before, FileNode | LinkNode):
            with (
                open_parent(self._base, change.path) as (there, name),
                open_parent(self._base, plan.staged(plan.backup)) as (stage, backup),
            ):
                self._waiting.append(plan.staged(plan.backup))
                try:
                    syscalls.link_into(there.handle, name, stage.handle, backup)
                except OSError as error:
                    if error.errno not in _NO_LINKS:
                        raise there.failure(error, name) from None
                    self._create(stage.handle, backup, change.before, change.path)
        if isinstance(change.after, FileNode | LinkNode):
            with open_parent(self._base, plan.staged(plan.fresh)) as (stage, fresh):
                self._waiting.append(plan.staged(plan.fresh))
                if plan.source and self._link_from(plan.source, stage.handle, fresh):
                    return
                try:
                    self._create(stage.handle, fresh, change.after, change.path if change.before else "")
                except OSError as error:
                    raise stage.failure(error, os.path.basename(change.path)) from None

    def _link_from(self, source: str, handle: int, name: str) -> bool:
        try:
            with open_parent(self._base, source) as (there, old):
                syscalls.link_into(there.handle, old, handle, name)
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            return False
        return True

    def _create(self, handle: int, name: str, state: FileNode | LinkNode, like: str) -> None:
        """Create a link, or a file with the owner and attributes of what stands at a path, or else stood."""
        if isinstance(state, LinkNode):
            syscalls.symlink(handle, state.target, name)
            return
        looks = self._looks(like) or state.looks or FileMetadata(state.mode)
        fill(self._base, handle, name, state.load(), looks._replace(mode=state.mode))

    def _looks(self, path: str) -> FileMetadata | None:
        if path:
            with open_parent(self._base, path) as (there, name):
                if stat.S_ISREG(syscalls.lstat(there.handle, name).st_mode):
                    fd = syscalls.open_file(there.handle, name)
                    try:
                        return metadata_of(fd, os.fstat(fd))
                    finally:
                        os.close(fd)
        return None

    def _check(self, plan: Plan, present: Node | None) -> None:
        if present != plan.change.before:
            raise self._conflict(plan.change, present)

    def _place(self, plan: Plan) -> None:
        change = plan.change
        with (
            open_parent(self._base, plan.staged(plan.fresh)) as (stage, fresh),
            open_parent(self._base, change.path) as (there, name),
        ):
            if isinstance(change.before, FileNode | LinkNode):
                # A program that does not take our lock may have written since.
                self._check(plan, node_in(self._base, there, name, self._max_bytes))
                self._touched.add(change.path)
                syscalls.rename(stage.handle, fresh, there.handle, name)
                return
            self._touched.add(change.path)
            try:
                syscalls.link_into(stage.handle, fresh, there.handle, name)
            except FileExistsError:
                raise self._conflict(change, node_in(self._base, there, name, self._max_bytes)) from None
            except OSError as error:
                if error.errno not in _NO_LINKS:
                    raise there.failure(error, name) from None
                # A file system without hard links: a name that appears just now could be replaced.
                syscalls.rename(stage.handle, fresh, there.handle, name)

    def _remove(self, plan: Plan) -> None:
        with open_parent(self._base, plan.change.path) as (there, name):
            self._check(plan, node_in(self._base, there, name, self._max_bytes))
            self._touched.add(plan.change.path)
            try:
                syscalls.remove(there.handle, name)
            except OSError as error:
                raise there.failure(error, name) from None

    def _make(self, plan: Plan) -> None:
        assert isinstance(plan.change.after, DirectoryNode)  # noqa: S101 - `_steps` chose it
        with open_parent(self._base, plan.change.path) as (there, name):
            self._touched.add(plan.change.path)
            try:
                syscalls.make_directory(there.handle, name)
                if plan.change.after.mode is not None:
                    syscalls.set_mode(there.handle, name, plan.change.after.mode)
            except OSError as error:
                raise there.failure(error, name) from None

    def _unmake(self, plan: Plan) -> None:
        with open_parent(self._base, plan.change.path) as (there, name):
            self._touched.add(plan.change.path)
            try:
                syscalls.remove_directory(there.handle, name)
            except OSError as error:
                if error.errno not in _NOT_EMPTY or plan.change.after is not None or not self._leaving:
                    raise there.failure(error, name) from None
                self._left.append(plan.change.path)

    def _restore(self, plan: Plan) -> bool:
        """Bring back what stood at a path; tell whether it is there."""
        change = plan.change
        if isinstance(change.before, DirectoryNode):
            if node_at(self._base, change.path, self._max_bytes) == change.after:
                if change.after is not None:
                    self._drop(change.path)
                self._make(Plan(change.reversed(), plan.stage))
            return True
        if change.before is not None:
            return self._restore_from_backup(plan)
        present = node_at(self._base, change.path, self._max_bytes)
        if present is None:
            return True
        if present != change.after:
            return False
        if isinstance(present, DirectoryNode):
            with open_parent(self._base, change.path) as (there, name), suppress(OSError):
                syscalls.remove_directory(there.handle, name)
        else:
            self._drop(change.path)
        return True

    def _restore_from_backup(self, plan: Plan) -> bool:
        change = plan.change
        if not plan.backup or node_at(self._base, change.path, self._max_bytes) == change.before:
            return True
        try:
            with open_parent(self._base, plan.staged(plan.backup)) as (stage, backup):
                saved = node_in(self._base, stage, backup, self._max_bytes)
                present = node_at(self._base, change.path, self._max_bytes)
                if saved != change.before or present not in (change.after, None):
                    return False
                if isinstance(present, DirectoryNode):
                    with open_parent(self._base, change.path) as (there, name):
                        syscalls.remove_directory(there.handle, name)
                with open_parent(self._base, change.path) as (there, name):
                    syscalls.rename(stage.handle, backup, there.handle, name)
        except (NotFoundError, NotDirectoryError):
            return False
        return True

    def _drop(self, path: str) -> None:
        with open_parent(self._base, path) as (there, name):
            syscalls.remove(there.handle, name)
