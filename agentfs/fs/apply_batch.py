"""Several changes applied as one: all of them, or none.

Everything that can fail early is done first: the new contents are written beside their places, and what will
be replaced or removed gets a second name. What is left is renames. When one of them fails, or the process
dies, the second names lead back.
"""

import os
import stat
from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext

from agentfs.errors import AgentFSError, NotDirectoryError, NotFoundError
from agentfs.fs import oserrors
from agentfs.fs.batch import Batch
from agentfs.fs.context import RootContext
from agentfs.fs.lock import ATTEMPTS, FileLock
from agentfs.fs.node import Change, Conflict, DirectoryNode, FileNode, Recorder, node_at, open_parent
from agentfs.fs.path import quote
from agentfs.fs.plans import Plan, is_directory, plans_of
from agentfs.fs.recovery_log import RepairLog, left_behind, logged
from agentfs.fs.temporary import new_temporary
from agentfs.fs.writable import check_hard_links

_REPAIR_BYTES = 200 * 1024 * 1024


def apply_changes(
    base: RootContext,
    root_path: str,
    changes: Sequence[Change],
    *,
    max_bytes: int,
    conflict: Conflict,
    recorder: Recorder | None,
    leaving: bool,
) -> tuple[str, ...]:
    """Do the work of `Root.apply`."""
    paths = [change.path for change in changes if not is_directory(change)]
    # Directories have no locks: while they are looked at and changed, nothing else comes or goes in them.
    alone = nullcontext() if recorder is None else recorder.alone()
    with _locked(base, root_path, paths), alone:
        wanted: list[Change] = []
        for change in _with_parents(base, changes, max_bytes):
            present = node_at(base, change.path, max_bytes)
            if present == change.after and is_directory(change) and isinstance(present, DirectoryNode | None):
                continue  # a directory that has come or gone already
            if present != change.before:
                raise conflict(change, present)
            check_protected(base, change.path, change.path)
            if isinstance(change.before, FileNode) and isinstance(change.after, FileNode):
                with open_parent(base, change.path) as (trail, name):
                    check_hard_links(base, change.path, trail.look(name))
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
            return Batch(base, plans, max_bytes, conflict, leaving=leaving).apply(log)


def repair(base: RootContext, root_path: str) -> list[str]:
    """Take back what processes that have died left unfinished.

    Args:
        base: Where walks start.
        root_path: The root.

    Returns:
        What was done, in words; nothing where all was well.
    """
    told: list[str] = []
    for rows, left, log in left_behind(base, root_path):
        plans = [Plan(change, stage, fresh, backup) for change, stage, fresh, backup in rows]
        told += _taken_back(base, root_path, plans, left, log)
    return told


def _taken_back(
    base: RootContext, root_path: str, plans: Sequence[Plan], paths: set[str], log: RepairLog
) -> list[str]:
    """Take paths of one batch back, as far as they can be reached; return what was done, in words."""
    blocked: dict[str, Exception] = {}
    lockable: list[str] = []
    for path in sorted(paths):
        try:
            _key(base, path)
            lockable.append(path)
        except NotDirectoryError:
            continue  # a file stands on the way: nothing can be there, and nothing has to be locked
        except (AgentFSError, OSError) as error:
            blocked[path] = error
    batch = Batch(base, plans, _REPAIR_BYTES, lambda change, _: NotFoundError(change.path))
    batch.resume()
    batch.leave(blocked)
    foreign: tuple[str, ...] = ()
    try:
        with _locked(base, root_path, lockable):
            foreign = batch.take_back(paths - blocked.keys())
    except (AgentFSError, OSError) as error:
        blocked |= dict.fromkeys(paths - blocked.keys(), error)
        batch.leave(paths)
    reasons = {path: getattr(error, "message", str(error)) for path, error in blocked.items()}
    left = dict.fromkeys(batch.stuck, "") | {path: f": {reason}" for path, reason in reasons.items()}
    batch.settle(log)
    told = [f"{_unfinished(path)} could not be taken back{why}" for path, why in left.items()]
    if back := sorted(paths - left.keys()):
        told.append(f"{_unfinished(*back)} was taken back")
    if foreign:
        there = ", ".join(map(quote, foreign))
        told.append(f"somebody else has changed {there} since, so that stays as it is")
    return told


def _unfinished(*paths: str) -> str:
    return f"a change of {', '.join(map(quote, paths))} that had not come to its end"


@contextmanager
def _locked(base: RootContext, root_path: str, paths: Sequence[str]) -> Generator[None]:
    """Hold the locks of several files.

    Args:
        base: Where walks start.
        root_path: The root.
        paths: The files, links resolved.

    Raises:
        AgentFSError: busy; refused, not_a_directory for a path that leads nowhere.
    """
    for _ in range(ATTEMPTS):
        keys = {_key(base, path): path for path in paths}
        with ExitStack() as held:
            for key in sorted(keys):
                held.enter_context(FileLock(key, keys[key], root_path))
            # The way may have changed while a lock was waited for; then these are the locks of other files.
            if keys == {_key(base, path): path for path in paths}:
                yield
                return
    raise oserrors.kept_changing(paths[0])


def _key(base: RootContext, path: str) -> str:
    """Return what names the file at a path for its lock."""
    with open_parent(base, path, creating=True) as (trail, name):
        return trail.key(name)


def check_protected(base: RootContext, path: str, asked: str) -> None:
    """Refuse a path that is protected, or that the permission rules do not let the call change.

    Args:
        base: Where walks start.
        path: The path, links resolved.
        asked: The path as it was asked for.
    """
    if base.unreadable.covers(path):
        raise oserrors.protected(asked, path)
    if base.access is not None:
        base.access.check_change(path)
    with open_parent(base, path, creating=True) as (trail, name):
        found = trail.look(name)
        file = found if found is not None and stat.S_ISREG(found.st_mode) else None
        twin = file is not None and file.st_nlink > 1 and base.is_twin(file, base.unwritable)
        if twin or base.unwritable.covers(path) or trail.passes_twin(base.unwritable):
            raise oserrors.protected(asked, path, shown=True)


def _with_parents(base: RootContext, changes: Sequence[Change], max_bytes: int) -> list[Change]:
    """Return the changes, and one for each directory above them that has to be made."""
    given = {change.path: change for change in changes}
    wanted = dict(given)
    for change in changes:
        if change.after is None:
            continue
        above = os.path.dirname(change.path)
        while above and above not in wanted and node_at(base, above, max_bytes) is None:
            wanted[above] = Change(above, None, DirectoryNode())
            above = os.path.dirname(above)
    return list(wanted.values())
