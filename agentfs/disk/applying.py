"""Several changes applied as one: all of them, or none.

Everything that can fail early is done first: the new contents are written beside their places, and what will
be replaced or removed gets a second name. What is left is renames. When one of them fails, or the process
dies, the second names lead back.
"""

import os
from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext

from agentfs.disk import failures
from agentfs.disk.base import Base
from agentfs.disk.batch import Batch
from agentfs.disk.locks import FileLock
from agentfs.disk.paths import Asked, quote
from agentfs.disk.plans import Plan, is_directory, plans_of
from agentfs.disk.repair import left_behind, logged
from agentfs.disk.replacing import new_temporary
from agentfs.disk.states import Change, Conflict, DirectoryState, Recorder, state_at, unfollowed
from agentfs.disk.trail import Trail
from agentfs.errors import NotFoundError

_REPAIR_BYTES = 200 * 1024 * 1024


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
        keys = {_key(base, change.path): change.path for change in changes if not is_directory(change)}
        for key in sorted(keys):
            held.enter_context(FileLock(key, keys[key], root_path))
        wanted: list[Change] = []
        for change in _with_parents(base, changes, max_bytes):
            present = state_at(base, change.path, max_bytes)
            if (
                present == change.after
                and is_directory(change)
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
    for rows, done, log in left_behind(base, root_path):
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
        log.keep = batch.stuck
        paths = ", ".join(map(quote, batch.paths))
        if log.keep:
            told.append(f"a change of {paths} that had not come to its end could not be taken back")
            continue
        told.append(f"a change of {paths} that had not come to its end was taken back")
        if foreign:
            left = ", ".join(map(quote, foreign))
            told.append(f"somebody else has changed {left} since, so that stays as it is")
    return told


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
