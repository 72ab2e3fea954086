"""Several changes applied as one: all of them, or none.

Everything that can fail early is done first: the new contents are written beside their places, and what will
be replaced or removed gets a second name. What is left is renames. When one of them fails, or the process
dies, the second names lead back.
"""

import errno
import os
import stat
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from dataclasses import dataclass, field

from agentfs.disk import failures
from agentfs.disk.backend import Handle
from agentfs.disk.locks import FileLock
from agentfs.disk.paths import Asked, quote
from agentfs.disk.repair import RepairLog, left_behind, logged
from agentfs.disk.replacing import Old, attributes_of, fill, new_temporary
from agentfs.disk.states import (
    Change,
    Conflict,
    DirectoryState,
    FileState,
    LinkState,
    Recorder,
    State,
    standing,
    state_at,
    state_in,
    unfollowed,
)
from agentfs.disk.trail import Base, Trail
from agentfs.errors import AgentFSError, NotDirectoryError, NotFoundError

_NO_LINKS = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK, errno.EXDEV}
_REPAIR_BYTES = 200 * 1024 * 1024
_NOT_EMPTY = {errno.ENOTEMPTY, errno.EEXIST}


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
        backup: The second name of what stands there now, or "".
        source: The path that the new content is moved from, or "".
        late: Whether a file makes room for a directory here or above, or the other way round.
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


def apply_changes(
    base: Base,
    root_path: str,
    changes: Sequence[Change],
    *,
    max_bytes: int,
    conflict: Conflict,
    recorder: Recorder | None,
) -> tuple[str, ...]:
    """Do the work of `Root.apply`."""
    with ExitStack() as held:
        keys = {_key(base, change.path): change.path for change in changes if not _is_directory(change)}
        for key in sorted(keys):
            held.enter_context(FileLock(key, keys[key], root_path))
        wanted: list[Change] = []
        for change in _with_parents(base, changes, max_bytes):
            present = state_at(base, change.path, max_bytes)
            if (
                present == change.after
                and _is_directory(change)
                and isinstance(present, DirectoryState | None)
            ):
                continue  # a directory that has come or gone already
            if present != change.before:
                raise conflict(change, present)
            check_protected(base, change.path, change.path)
            wanted.append(change)
        recording: AbstractContextManager[None] = nullcontext()
        if recorder is not None:
            recording = recorder.recording(tuple(wanted))
        plans = plans_of(wanted)
        if len(plans) < 2:
            for plan in plans:
                # A single rename or removal happens or does not, and what waits for it is swept as a stray.
                plan.backup, plan.fresh = "", new_temporary()
        rows = [(plan.change, plan.stage, plan.fresh, plan.backup) for plan in plans]
        with recording, logged(base, root_path, rows) as log:
            return Batch(base, plans, max_bytes, conflict).apply(log)


def repair(base: Base, root_path: str) -> list[str]:
    """Take back what processes that have died left unfinished.

    Args:
        base: Where walks start.
        root_path: The root.

    Returns:
        What was done, in words; nothing where all was well.
    """
    told: list[str] = []
    for rows, done in left_behind(base, root_path):
        plans = [Plan(change, stage, fresh, backup) for change, stage, fresh, backup in rows]
        batch = Batch(base, plans, _REPAIR_BYTES, lambda change, _: NotFoundError(change.path))
        if done:
            batch.tidy()
            continue
        with ExitStack() as held:
            keys = {_key(base, plan.change.path): plan.change.path for plan in plans}
            for key in sorted(keys):
                held.enter_context(FileLock(key, keys[key], root_path))
            foreign = batch.take_back()
        paths = ", ".join(quote(plan.change.path) for plan in plans)
        told.append(f"a change of {paths} that had not come to its end was taken back")
        if foreign:
            left = ", ".join(map(quote, foreign))
            told.append(f"somebody else has changed {left} since, so that stays as it is")
    return told


def plans_of(changes: Sequence[Change]) -> list[Plan]:
    """Return how to make the changes, each its plan.

    Args:
        changes: At most one for each path.
    """
    paths = {change.path for change in changes}
    turning = {c.path for c in changes if c.before and c.after and _is_directory(c)}
    gone = {c.before: c.path for c in changes if isinstance(c.before, FileState) and c.after is None}
    plans: list[Plan] = []
    for change in changes:
        above = [change.path[:at] for at, letter in enumerate(change.path) if letter == "/"]
        changed = [path for path in above if path in paths]
        top = changed[0] if changed else change.path
        plan = Plan(change, os.path.dirname(top))
        plan.late = change.path in turning or any(path in turning for path in above)
        if isinstance(change.after, FileState) and change.before is None:
            plan.source = gone.get(change.after, "")
        plans.append(plan)
    return plans


class Batch:
    """The plans of one batch of changes, carried out or taken back.

    Args:
        base: Where walks start.
        plans: How each change is made.
        max_bytes: The largest file that is read.
        conflict: Makes the error for a path that has changed since it was looked at.
    """

    def __init__(self, base: Base, plans: Sequence[Plan], max_bytes: int, conflict: Conflict) -> None:
        self._base = base
        self._plans = plans
        self._max_bytes = max_bytes
        self._conflict = conflict
        self._left: list[str] = []

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
                self._prepare(plan)
            for step, plan in self._steps():
                step(plan)
        except BaseException as error:
            self.take_back()
            if isinstance(error, OSError):
                raise failures.of_system(error, self._plans[0].change.path) from None
            raise
        if log is not None:
            log.done()
        self.tidy()
        return tuple(self._left)

    def take_back(self) -> tuple[str, ...]:
        """Bring back what stood there before, as far as nobody else has changed it since.

        Returns:
            The paths that somebody else has changed, and that stay as they are.
        """
        foreign: list[str] = []
        undone: set[str] = set()
        for _, plan in reversed(self._steps()):
            if plan.change.path in undone:
                continue
            undone.add(plan.change.path)
            try:
                if not self._restore(plan):
                    foreign.append(plan.change.path)
            except (OSError, AgentFSError):
                foreign.append(plan.change.path)
        self.tidy()
        return tuple(foreign)

    def tidy(self) -> None:
        """Remove what waited beside the files."""
        for plan in self._plans:
            for name in filter(None, (plan.fresh, plan.backup)):
                with (
                    suppress(OSError, AgentFSError),
                    standing(self._base, plan.staged(name)) as (trail, last),
                ):
                    self._base.backend.remove(trail.handle, last)

    def _steps(self) -> list[tuple[Callable[[Plan], None], Plan]]:
        """Return what is to be done, in order: where possible, the new comes before the old goes."""
        steps: list[tuple[Callable[[Plan], None], Plan]] = []
        for late in (False, True):
            plans = sorted((p for p in self._plans if p.late is late), key=lambda plan: plan.change.path)
            made = [(self._make, p) for p in plans if isinstance(p.change.after, DirectoryState)]
            placed = [(self._place, p) for p in plans if isinstance(p.change.after, FileState | LinkState)]
            # What a file or link replaces is never missing; only what nothing, or a directory, follows.
            removed = [
                (self._remove, p)
                for p in reversed(plans)
                if isinstance(p.change.before, FileState | LinkState)
                and not isinstance(p.change.after, FileState | LinkState)
            ]
            unmade = [
                (self._unmake, p) for p in reversed(plans) if isinstance(p.change.before, DirectoryState)
            ]
            steps += [*removed, *unmade, *made, *placed] if late else [*made, *placed, *removed, *unmade]
        return steps

    def _prepare(self, plan: Plan) -> None:
        change, backend = plan.change, self._base.backend
        if plan.backup and isinstance(change.before, FileState | LinkState):
            with (
                standing(self._base, change.path) as (there, name),
                standing(self._base, plan.staged(plan.backup)) as (stage, backup),
            ):
                try:
                    backend.link_into(there.handle, name, stage.handle, backup)
                except OSError as error:
                    if error.errno not in _NO_LINKS:
                        raise there.failure(error, name) from None
                    self._create(stage.handle, backup, change.before, change.path)
        if isinstance(change.after, FileState | LinkState):
            with standing(self._base, plan.staged(plan.fresh)) as (stage, fresh):
                if plan.source and self._link_from(plan.source, stage.handle, fresh):
                    return
                try:
                    self._create(stage.handle, fresh, change.after, change.path if change.before else "")
                except OSError as error:
                    raise stage.failure(error, os.path.basename(change.path)) from None

    def _link_from(self, source: str, handle: Handle, name: str) -> bool:
        try:
            with standing(self._base, source) as (there, old):
                self._base.backend.link_into(there.handle, old, handle, name)
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            return False
        return True

    def _create(self, handle: Handle, name: str, state: FileState | LinkState, like: str) -> None:
        """Create a link, or a file with the owner and attributes of what stands at a path, if anything."""
        if isinstance(state, LinkState):
            self._base.backend.symlink(handle, state.target, name)
            return
        fill(self._base, handle, name, state.load(), self._old(like))
        self._base.backend.set_mode(handle, name, state.mode)

    def _old(self, path: str) -> Old | None:
        if path:
            with standing(self._base, path) as (there, name):
                if stat.S_ISREG(self._base.backend.lstat(there.handle, name).st_mode):
                    fd = self._base.backend.open_file(there.handle, name)
                    try:
                        return Old(b"", os.fstat(fd), attributes_of(fd))
                    finally:
                        os.close(fd)
        return None

    def _check(self, plan: Plan, present: State | None) -> None:
        if present != plan.change.before:
            raise self._conflict(plan.change, present)

    def _place(self, plan: Plan) -> None:
        backend, change = self._base.backend, plan.change
        with (
            standing(self._base, plan.staged(plan.fresh)) as (stage, fresh),
            standing(self._base, change.path) as (there, name),
        ):
            if isinstance(change.before, FileState | LinkState):
                # A program that does not take our lock may have written since.
                self._check(plan, state_in(self._base, there, name, self._max_bytes))
                backend.rename(stage.handle, fresh, there.handle, name)
                return
            try:
                backend.link_into(stage.handle, fresh, there.handle, name)
            except FileExistsError:
                raise self._conflict(change, state_in(self._base, there, name, self._max_bytes)) from None
            except OSError as error:
                if error.errno not in _NO_LINKS:
                    raise there.failure(error, name) from None
                # A file system without hard links: a name that appears just now could be replaced.
                backend.rename(stage.handle, fresh, there.handle, name)

    def _remove(self, plan: Plan) -> None:
        with standing(self._base, plan.change.path) as (there, name):
            self._check(plan, state_in(self._base, there, name, self._max_bytes))
            try:
                self._base.backend.remove(there.handle, name)
            except OSError as error:
                raise there.failure(error, name) from None

    def _make(self, plan: Plan) -> None:
        assert isinstance(plan.change.after, DirectoryState)  # noqa: S101 - `_steps` chose it
        with standing(self._base, plan.change.path) as (there, name):
            try:
                self._base.backend.make_directory(there.handle, name)
                if plan.change.after.mode is not None:
                    self._base.backend.set_mode(there.handle, name, plan.change.after.mode)
            except OSError as error:
                raise there.failure(error, name) from None

    def _unmake(self, plan: Plan) -> None:
        with standing(self._base, plan.change.path) as (there, name):
            try:
                self._base.backend.remove_directory(there.handle, name)
            except OSError as error:
                if error.errno not in _NOT_EMPTY or plan.change.after is not None:
                    raise there.failure(error, name) from None
                self._left.append(plan.change.path)

    def _restore(self, plan: Plan) -> bool:
        """Bring back what stood at a path; tell whether it is there."""
        change = plan.change
        if isinstance(change.before, DirectoryState):
            if state_at(self._base, change.path, self._max_bytes) == change.after:
                if change.after is not None:
                    self._drop(change.path)
                self._make(Plan(change.reversed(), plan.stage))
            return True
        if change.before is not None:
            return self._restore_from_backup(plan)
        present = state_at(self._base, change.path, self._max_bytes)
        if present is None:
            return True
        if present != change.after:
            return False
        if isinstance(present, DirectoryState):
            with standing(self._base, change.path) as (there, name), suppress(OSError):
                self._base.backend.remove_directory(there.handle, name)
        else:
            self._drop(change.path)
        return True

    def _restore_from_backup(self, plan: Plan) -> bool:
        change, backend = plan.change, self._base.backend
        if not plan.backup or state_at(self._base, change.path, self._max_bytes) == change.before:
            return True
        try:
            with standing(self._base, plan.staged(plan.backup)) as (stage, backup):
                saved = state_in(self._base, stage, backup, self._max_bytes)
                present = state_at(self._base, change.path, self._max_bytes)
                if saved != change.before or present not in (change.after, None):
                    return False
                if isinstance(present, DirectoryState):
                    with standing(self._base, change.path) as (there, name):
                        backend.remove_directory(there.handle, name)
                with standing(self._base, change.path) as (there, name):
                    backend.rename(stage.handle, backup, there.handle, name)
        except (NotFoundError, NotDirectoryError):
            return False
        return True

    def _drop(self, path: str) -> None:
        with standing(self._base, path) as (there, name):
            self._base.backend.remove(there.handle, name)


def _is_directory(change: Change) -> bool:
    return isinstance(change.before, DirectoryState) or isinstance(change.after, DirectoryState)


def _key(base: Base, path: str) -> str:
    """Return what names the file at a path for its lock."""
    trail = Trail(unfollowed(base), path, Asked(tuple(path.split("/"))), creating=True)
    try:
        return trail.key(trail.advance() or "")
    finally:
        trail.let_go()


def check_protected(base: Base, path: str, asked: str) -> None:
    """Refuse a path that is protected.

    Args:
        base: Where walks start.
        path: The path, links resolved.
        asked: The path as it was asked for.
    """
    if base.unreadable.covers(path):
        raise failures.protected(asked, path)
    trail = Trail(unfollowed(base), path, Asked(tuple(path.split("/"))), creating=True)
    try:
        trail.advance()
        if base.unwritable.covers(path) or trail.passes_twin(base.unwritable):
            raise failures.protected(asked, path, shown=True)
    finally:
        trail.let_go()


def _with_parents(base: Base, changes: Sequence[Change], max_bytes: int) -> list[Change]:
    """Return the changes, and one for each directory above them that has to be made."""
    given = {change.path: change for change in changes}
    wanted = dict(given)
    for change in changes:
        if change.after is None:
            continue
        above = os.path.dirname(change.path)
        while above and above not in wanted and state_at(base, above, max_bytes) is None:
            wanted[above] = Change(above, None, DirectoryState())
            above = os.path.dirname(above)
    return list(wanted.values())
