"""Several changes applied as one: all of them, or none; and what a dead process left of one, taken back.

Everything that can fail early is done first: new contents are written beside their targets, and what will be
replaced or removed gets a second name. What is left is renames. When one of them fails, or the process dies,
the second names lead back.
"""

import errno
import os
import stat
import time
from collections.abc import Callable, Container, Generator, Iterable, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial

from agentfs import call_context
from agentfs.errors import AgentFSError, NotDirectoryError, NotFoundError
from agentfs.fs import oserrors, syscalls
from agentfs.fs.context import RootContext
from agentfs.fs.lock import ATTEMPTS, FileLock
from agentfs.fs.node import (
    Change,
    Conflict,
    DirectoryNode,
    FileNode,
    LinkNode,
    Node,
    Recorder,
    node_at,
    node_in,
)
from agentfs.fs.path import quote
from agentfs.fs.recovery_log import RepairLog, left_behind, logged
from agentfs.fs.replace import check_hard_links, check_not_protected
from agentfs.fs.resolve import resolve_real
from agentfs.fs.temporary import FileMetadata, fill, metadata_of, new_temporary, sync_directories
from agentfs.messages import Joined

_NOT_EMPTY = {errno.ENOTEMPTY, errno.EEXIST}
_RETRY_SECONDS = 0.5  # how long one batch tries again what is to be undone
_RETRY_PAUSE = 0.001
_REPAIR_BYTES = 200 * 1024 * 1024


def _staged_name() -> str:
    # Not a name that is swept as a stray: a second name has the times of its file, which may be old.
    return f".agentfs-{os.urandom(8).hex()}.part"


@dataclass
class Plan:
    """How one change is made.

    Attributes:
        change: The change.
        stage: The directory for `fresh` and `backup`, from the root on; it outlives all changes of the batch.
        fresh: The name under which the new content waits, or "".
        backup: The second name of what is there now, or "".
        source: The path that the new content is moved from, or "".
        late: Whether a file is replaced by a directory, here or above, or the other way round.
    """

    change: Change
    stage: str
    fresh: str = field(default_factory=_staged_name)
    backup: str = field(default_factory=_staged_name)
    source: str = ""
    late: bool = False

    def staged(self, name: str) -> str:
        """Return the path of `fresh` or `backup`."""
        return f"{self.stage}/{name}" if self.stage else name


def plans_of(changes: Sequence[Change]) -> list[Plan]:
    """Return how to make the changes, each its plan."""
    paths = {change.path for change in changes}
    turning = {c.path for c in changes if c.before and c.after and is_directory(c)}
    gone = {c.before: c.path for c in changes if isinstance(c.before, FileNode) and c.after is None}
    plans: list[Plan] = []
    for change in changes:
        above = [change.path[:at] for at, letter in enumerate(change.path) if letter == "/"]
        changed = [path for path in above if path in paths]
        top = changed[0] if changed else change.path
        plan = Plan(change, os.path.dirname(top))
        plan.late = change.path in turning or any(path in turning for path in above)
        if isinstance(change.after, FileNode) and change.before is None:
            plan.source = gone.get(change.after, "")
        plans.append(plan)
    return plans


def is_directory(change: Change) -> bool:
    """Tell whether a change makes or removes a directory."""
    return isinstance(change.before, DirectoryNode) or isinstance(change.after, DirectoryNode)


def apply_changes(
    context: RootContext,
    root_path: str,
    changes: Sequence[Change],
    *,
    max_bytes: int,
    conflict: Conflict,
    recorder: Recorder | None,
    keep_non_empty: bool,
) -> tuple[str, ...]:
    """Do the work of `Root.apply`."""
    paths = [change.path for change in changes if not is_directory(change)]
    # Directories have no locks: while they are looked at and changed, nothing else comes or goes in them.
    alone = nullcontext() if recorder is None else recorder.alone()
    with _lock_files(context, root_path, paths), alone:
        wanted: list[Change] = []
        for change in _with_parents(context, changes, max_bytes):
            present = node_at(context, change.path, max_bytes)
            if present == change.after and is_directory(change) and isinstance(present, DirectoryNode | None):
                continue  # a directory that has come or gone already
            if present != change.before:
                raise conflict(change, present)
            check_protected(context, change.path, change.path)
            if isinstance(change.before, FileNode) and isinstance(change.after, FileNode):
                with resolve_real(context, change.path) as resolved:
                    check_hard_links(context, change.path, resolved.stat())
            wanted.append(change)
        recording: AbstractContextManager[object] = nullcontext()
        if recorder is not None:
            recording = recorder.recording(tuple(wanted))
        plans = plans_of(wanted)
        if len(plans) < 2:
            for plan in plans:
                # A single rename or removal happens or does not, and what waits for it is swept as a stray.
                plan.backup, plan.fresh = "", new_temporary()
        rows = [(plan.change, plan.stage, plan.fresh, plan.backup) for plan in plans]
        with recording, logged(context, root_path, rows) as log:
            return Batch(context, plans, max_bytes, conflict, keep_non_empty=keep_non_empty).apply(log)


def repair(context: RootContext, root_path: str) -> list[str]:
    """Take back what processes that have died left unfinished."""
    messages: list[str] = []
    for rows, left, log in left_behind(context, root_path):
        plans = [Plan(change, stage, fresh, backup) for change, stage, fresh, backup in rows]
        messages += _repair_batch(context, root_path, plans, left, log)
    return messages


def _repair_batch(
    context: RootContext, root_path: str, plans: Sequence[Plan], paths: set[str], log: RepairLog
) -> list[str]:
    """Take paths of one batch back, as far as they can be reached; return what was done, in words."""
    blocked: dict[str, Exception] = {}
    lockable: list[str] = []
    for path in sorted(paths):
        try:
            _lock_key(context, path)
            lockable.append(path)
        except NotDirectoryError:
            continue  # a file is on the way: nothing can be below it, and nothing has to be locked
        except (AgentFSError, OSError) as error:
            blocked[path] = error
    batch = Batch(context, plans, _REPAIR_BYTES, lambda change, _: NotFoundError(change.path))
    batch.resume()
    batch.count_as_not_undone(blocked)
    changed_by_others: tuple[str, ...] = ()
    try:
        with _lock_files(context, root_path, lockable):
            changed_by_others = batch.undo(paths - blocked.keys())
    except (AgentFSError, OSError) as error:
        blocked |= dict.fromkeys(paths - blocked.keys(), error)
        batch.count_as_not_undone(paths)
    reasons = {path: getattr(error, "message", str(error)) for path, error in blocked.items()}
    left = dict.fromkeys(batch.not_undone, "") | {path: f": {reason}" for path, reason in reasons.items()}
    batch.keep_log_if_needed(log)
    messages = [f"{_unfinished(path)} could not be taken back{why}" for path, why in left.items()]
    if back := sorted(paths - left.keys()):
        messages.append(f"{_unfinished(*back)} was taken back")
    if changed_by_others:
        there = ", ".join(map(quote, changed_by_others))
        messages.append(f"somebody else has changed {there} since, so that stays as it is")
    return messages


def _unfinished(*paths: str) -> str:
    return f"a change of {', '.join(map(quote, paths))} that had not come to its end"


@contextmanager
def _lock_files(context: RootContext, root_path: str, paths: Sequence[str]) -> Generator[None]:
    """Hold the locks of several files."""
    for _ in range(ATTEMPTS):
        keys = {_lock_key(context, path): path for path in paths}
        with ExitStack() as locks:
            for key in sorted(keys):
                locks.enter_context(FileLock(key, keys[key], root_path))
            # A path may lead elsewhere since a lock was waited for; then these are the wrong locks.
            if keys == {_lock_key(context, path): path for path in paths}:
                yield
                return
    raise oserrors.kept_changing(paths[0])


def _lock_key(context: RootContext, path: str) -> str:
    with resolve_real(context, path, create_parents=True) as resolved:
        return resolved.lock_key


def check_protected(context: RootContext, real_path: str, path: str) -> None:
    """Refuse a path that is protected, or that the permission rules do not let the call change."""
    with resolve_real(context, real_path, create_parents=True) as resolved:
        check_not_protected(context, resolved, path)
        status = resolved.stat()
        if (
            status is not None
            and stat.S_ISREG(status.st_mode)
            and status.st_nlink > 1
            and context.is_hard_link_to(status, context.unwritable)
        ):
            raise oserrors.protected(path, context.display_path(real_path), readable=True)


def _with_parents(context: RootContext, changes: Sequence[Change], max_bytes: int) -> list[Change]:
    """Return the changes, and one for each directory above them that has to be made."""
    given = {change.path: change for change in changes}
    wanted = dict(given)
    for change in changes:
        if change.after is None:
            continue
        above = os.path.dirname(change.path)
        while above and above not in wanted and node_at(context, above, max_bytes) is None:
            wanted[above] = Change(above, None, DirectoryNode())
            above = os.path.dirname(above)
    return list(wanted.values())


class Batch:
    """The plans of one batch of changes, carried out or taken back.

    Args:
        context: The root.
        plans: How each change is made.
        max_bytes: The largest file that is read.
        conflict: Makes the error for a path that has changed since it was looked at.
        keep_non_empty: Whether a directory that is to go may stay, when something else is in it.
    """

    def __init__(
        self,
        context: RootContext,
        plans: Sequence[Plan],
        max_bytes: int,
        conflict: Conflict,
        *,
        keep_non_empty: bool = False,
    ) -> None:
        self._context = context
        self._plans = plans
        self._max_bytes = max_bytes
        self._conflict = conflict
        self._keep_non_empty = keep_non_empty
        self._kept_directories: list[str] = []
        # The paths whose change may have been made, and the second names that may be there.
        self._begun: set[str] = set()
        self._staged_names: list[str] = []
        self._not_undone: set[str] = set()
        self._retry_until = 0.0

    def apply(self, log: RepairLog | None = None) -> tuple[str, ...]:
        """Make the changes.

        Args:
            log: The recovery log of the batch.

        Returns:
            The directories that were to be removed and stay, because something else is in them.

        Raises:
            AgentFSError: what prevented it; everything is as it was before.
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
                self.undo(self._begun)
                self.keep_log_if_needed(log)
            known = oserrors.from_oserror(error, self.paths[0]) if isinstance(error, OSError) else error
            if self._not_undone and isinstance(known, AgentFSError):
                paths = ", ".join(map(quote, sorted(self._not_undone)))
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
        self._remove_staged()
        self.keep_log_if_needed(log)
        return tuple(self._kept_directories)

    def resume(self) -> None:
        """Go on with the batch of another process, which may have made any of the second names."""
        self._staged_names = [
            plan.staged(name) for plan in self._plans for name in (plan.fresh, plan.backup) if name
        ]

    def count_as_not_undone(self, paths: Iterable[str]) -> None:
        """Count paths as not brought back, so that what is needed for that stays."""
        self._not_undone.update(paths)

    def undo(self, paths: Container[str]) -> tuple[str, ...]:
        """Bring back what was there before, as far as nobody else has changed it since."""
        changed_by_others: list[str] = []
        undone: set[str] = set()
        for _, plan in reversed(self._steps()):
            path = plan.change.path
            if path in undone or path not in paths:
                continue
            undone.add(path)
            restored = self._retry(partial(self._restore, plan))
            if restored is None:
                self._not_undone.add(path)
            elif not restored:
                changed_by_others.append(path)
        self._remove_staged()
        return tuple(changed_by_others)

    def keep_log_if_needed(self, log: RepairLog | None) -> None:
        """Keep the log for what could not be brought back or removed, if there is any."""
        if log is not None and (self._not_undone or self._staged_names):
            log.keep = True
            log.note_left(self._not_undone)

    @property
    def paths(self) -> list[str]:
        """The paths of all changes."""
        return [plan.change.path for plan in self._plans]

    @property
    def not_undone(self) -> Sequence[str]:
        """The paths that could be brought back and were not, as the system kept failing."""
        return sorted(self._not_undone)

    def _remove_staged(self) -> None:
        """Remove the second names, but for those that are still needed to bring something back."""
        needed = {plan.staged(plan.backup) for plan in self._plans if plan.change.path in self._not_undone}
        self._staged_names = [
            name
            for name in self._staged_names
            if name in needed or not self._retry(partial(self._remove_staged_name, name))
        ]

    def _retry(self, act: Callable[[], bool]) -> bool | None:
        """Do something again while it fails: the cause may be a link that comes and goes."""
        while True:
            try:
                return act()
            except (OSError, AgentFSError):
                now = time.monotonic()
                self._retry_until = self._retry_until or now + _RETRY_SECONDS
                if now > self._retry_until:
                    return None
                time.sleep(_RETRY_PAUSE)

    def _remove_staged_name(self, path: str) -> bool:
        with suppress(NotFoundError, FileNotFoundError), resolve_real(self._context, path) as resolved:
            syscalls.remove(resolved.parent, resolved.name)
        return True

    def _sync(self) -> None:
        """Bring the names to the disk where the policy asks for it; a failure is only logged: all is done."""
        if self._context.durability != "full":
            return
        failed: list[str] = []
        # One path of each directory leads there; one that is gone has its own name in the directory above.
        for path in {os.path.dirname(plan.change.path): plan.change.path for plan in self._plans}.values():
            with suppress(NotFoundError, NotDirectoryError), resolve_real(self._context, path) as target:
                failed += sync_directories(self._context, [target.parent])
        if failed:
            import logging  # noqa: PLC0415 - hardly ever needed

            logging.getLogger("agentfs").warning(failed[0])

    def _steps(self) -> list[tuple[Callable[[Plan], None], Plan]]:
        """Return what is to be done, in order: where possible, the new comes before the old goes."""
        steps: list[tuple[Callable[[Plan], None], Plan]] = []
        for late in (False, True):
            plans = sorted((p for p in self._plans if p.late is late), key=lambda plan: plan.change.path)
            made = [(self._make_directory, p) for p in plans if isinstance(p.change.after, DirectoryNode)]
            placed = [(self._put, p) for p in plans if isinstance(p.change.after, FileNode | LinkNode)]
            # What a file or link replaces is never missing; only what nothing, or a directory, follows.
            removed = [
                (self._remove, p)
                for p in reversed(plans)
                if isinstance(p.change.before, FileNode | LinkNode)
                and not isinstance(p.change.after, FileNode | LinkNode)
            ]
            unmade = [
                (self._remove_directory, p)
                for p in reversed(plans)
                if isinstance(p.change.before, DirectoryNode)
            ]
            steps += [*removed, *unmade, *made, *placed] if late else [*made, *placed, *removed, *unmade]
        return steps

    def _prepare(self, plan: Plan) -> None:
        change = plan.change
        if plan.backup and isinstance(change.before, FileNode | LinkNode):
            with (
                resolve_real(self._context, change.path) as target,
                resolve_real(self._context, plan.staged(plan.backup)) as staged,
            ):
                self._staged_names.append(plan.staged(plan.backup))
                try:
                    syscalls.link_into(target.parent, target.name, staged.parent, staged.name)
                except OSError as error:
                    if error.errno not in syscalls.NO_HARD_LINKS:
                        raise target.error(error) from None
                    self._create(staged.parent, staged.name, change.before, change.path)
        if isinstance(change.after, FileNode | LinkNode):
            with resolve_real(self._context, plan.staged(plan.fresh)) as staged:
                self._staged_names.append(plan.staged(plan.fresh))
                if plan.source and self._link_from(plan.source, staged.parent, staged.name):
                    return
                try:
                    self._create(
                        staged.parent, staged.name, change.after, change.path if change.before else ""
                    )
                except OSError as error:
                    raise staged.error(error, os.path.basename(change.path)) from None

    def _link_from(self, source: str, handle: int, name: str) -> bool:
        try:
            with resolve_real(self._context, source) as target:
                syscalls.link_into(target.parent, target.name, handle, name)
        except OSError as error:
            if error.errno not in syscalls.NO_HARD_LINKS:
                raise
            return False
        return True

    def _create(self, handle: int, name: str, state: FileNode | LinkNode, like: str) -> None:
        """Create a link, or a file with the owner and attributes of what is at a path, or else was."""
        if isinstance(state, LinkNode):
            syscalls.symlink(handle, state.target, name)
            return
        metadata = self._metadata(like) or state.metadata or FileMetadata(state.mode)
        fill(self._context, handle, name, state.load(), metadata._replace(mode=state.mode))

    def _metadata(self, path: str) -> FileMetadata | None:
        if path:
            with resolve_real(self._context, path) as target:
                if stat.S_ISREG(syscalls.lstat(target.parent, target.name).st_mode):
                    fd = syscalls.open_file(target.parent, target.name)
                    try:
                        return metadata_of(fd, os.fstat(fd))
                    finally:
                        os.close(fd)
        return None

    def _check(self, plan: Plan, present: Node | None) -> None:
        if present != plan.change.before:
            raise self._conflict(plan.change, present)

    def _put(self, plan: Plan) -> None:
        change = plan.change
        with (
            resolve_real(self._context, plan.staged(plan.fresh)) as staged,
            resolve_real(self._context, change.path) as target,
        ):
            if isinstance(change.before, FileNode | LinkNode):
                # A program that does not take our lock may have written since.
                self._check(plan, node_in(self._context, target, self._max_bytes))
                self._begun.add(change.path)
                syscalls.rename(staged.parent, staged.name, target.parent, target.name)
                return
            self._begun.add(change.path)
            try:
                syscalls.link_into(staged.parent, staged.name, target.parent, target.name)
            except FileExistsError:
                raise self._conflict(change, node_in(self._context, target, self._max_bytes)) from None
            except OSError as error:
                if error.errno not in syscalls.NO_HARD_LINKS:
                    raise target.error(error) from None
                # A file system without hard links: a name that appears just now could be replaced.
                syscalls.rename(staged.parent, staged.name, target.parent, target.name)

    def _remove(self, plan: Plan) -> None:
        with resolve_real(self._context, plan.change.path) as target:
            self._check(plan, node_in(self._context, target, self._max_bytes))
            self._begun.add(plan.change.path)
            try:
                syscalls.remove(target.parent, target.name)
            except OSError as error:
                raise target.error(error) from None

    def _make_directory(self, plan: Plan) -> None:
        assert isinstance(plan.change.after, DirectoryNode)  # noqa: S101 - `_steps` chose it
        with resolve_real(self._context, plan.change.path) as target:
            self._begun.add(plan.change.path)
            try:
                syscalls.make_directory(target.parent, target.name)
                if plan.change.after.mode is not None:
                    syscalls.set_mode(target.parent, target.name, plan.change.after.mode)
            except OSError as error:
                raise target.error(error) from None

    def _remove_directory(self, plan: Plan) -> None:
        with resolve_real(self._context, plan.change.path) as target:
            self._begun.add(plan.change.path)
            try:
                syscalls.remove_directory(target.parent, target.name)
            except OSError as error:
                if error.errno not in _NOT_EMPTY or plan.change.after is not None or not self._keep_non_empty:
                    raise target.error(error) from None
                self._kept_directories.append(plan.change.path)

    def _restore(self, plan: Plan) -> bool:
        """Bring back what was at a path; tell whether it is there."""
        change = plan.change
        if isinstance(change.before, DirectoryNode):
            if node_at(self._context, change.path, self._max_bytes) == change.after:
                if change.after is not None:
                    self._remove_name(change.path)
                self._make_directory(Plan(change.reversed(), plan.stage))
            return True
        if change.before is not None:
            return self._restore_from_backup(plan)
        present = node_at(self._context, change.path, self._max_bytes)
        if present is None:
            return True
        if present != change.after:
            return False
        if isinstance(present, DirectoryNode):
            with resolve_real(self._context, change.path) as target, suppress(OSError):
                syscalls.remove_directory(target.parent, target.name)
        else:
            self._remove_name(change.path)
        return True

    def _restore_from_backup(self, plan: Plan) -> bool:
        change = plan.change
        if not plan.backup or node_at(self._context, change.path, self._max_bytes) == change.before:
            return True
        try:
            with resolve_real(self._context, plan.staged(plan.backup)) as staged:
                saved = node_in(self._context, staged, self._max_bytes)
                present = node_at(self._context, change.path, self._max_bytes)
                if saved != change.before or present not in (change.after, None):
                    return False
                if isinstance(present, DirectoryNode):
                    with resolve_real(self._context, change.path) as target:
                        syscalls.remove_directory(target.parent, target.name)
                with resolve_real(self._context, change.path) as target:
                    syscalls.rename(staged.parent, staged.name, target.parent, target.name)
        except (NotFoundError, NotDirectoryError):
            return False
        return True

    def _remove_name(self, path: str) -> None:
        with resolve_real(self._context, path) as target:
            syscalls.remove(target.parent, target.name)
