"""Undo the unfinished batches of dead processes, as their recovery logs describe them."""

import os
from collections.abc import Sequence

from agentfs.errors import AgentFSError, NotDirectoryError, ProtectedError
from agentfs.fs.apply import lock_files, lock_key
from agentfs.fs.batch import UndoableBatch
from agentfs.fs.context import RootContext
from agentfs.fs.path import is_temporary_name, quote
from agentfs.fs.plan import PlannedChange
from agentfs.fs.recovery_log import RecoveryLog, unfinished_batches
from agentfs.fs.resolve import resolve_real

_REPAIR_BYTES = 200 * 1024 * 1024


def repair(context: RootContext, root_path: str) -> list[str]:
    """Undo the unfinished changes of dead processes; return notes on them."""
    notes: list[str] = []
    for plans, left, log in unfinished_batches(context, root_path):
        notes += _repair_batch(context, root_path, plans, left, log)
    return notes


def _repair_batch(
    context: RootContext, root_path: str, plans: Sequence[PlannedChange], paths: set[str], log: RecoveryLog
) -> list[str]:
    """Undo the changes of a batch at some paths, if these can be reached; return notes on them."""
    blocked: dict[str, Exception] = {}
    lockable: list[str] = []
    batch = UndoableBatch(context, plans, _REPAIR_BYTES, log)
    for plan in sorted(plans, key=lambda plan: plan.change.path):
        path, temporaries = plan.change.path, [name for name in (plan.temporary, plan.backup) if name]
        temporaries += filter(is_temporary_name, {os.path.dirname(name) for name in temporaries})
        error = _protection(context, [path, *temporaries, *filter(None, [plan.source])])
        if error is None:
            batch.staged.update(temporaries)  # the process may have created any of them
        if path not in paths:
            continue
        try:
            if error is not None:
                raise error
            lock_key(context, path)
            lockable.append(path)
        except NotDirectoryError:
            continue  # a part of the path is a file, so the path does not exist and needs no lock
        except (AgentFSError, OSError) as reason:
            blocked[path] = reason
    batch.not_undone.update(blocked)
    changed_by_others: tuple[str, ...] = ()
    try:
        with lock_files(context, root_path, lockable):
            changed_by_others = batch.undo(paths - blocked.keys())
    except (AgentFSError, OSError) as error:
        blocked |= dict.fromkeys(paths - blocked.keys(), error)
        batch.not_undone.update(paths)
    batch.keep_log_if_needed()
    left = sorted(batch.not_undone)
    reasons = {path: f": {getattr(error, 'message', str(error))}" for path, error in blocked.items()}
    notes = [f"{_unfinished(path)} could not be undone{reasons.get(path, '')}" for path in left]
    if undone := sorted(paths.difference(left)):
        notes.append(f"{_unfinished(*undone)} was undone")
    if changed_by_others:
        changed = ", ".join(map(quote, changed_by_others))
        notes.append(f"later changes of {changed} by another program were kept")
    return notes


def _protection(context: RootContext, paths: Sequence[str]) -> ProtectedError | None:
    """Return the error for the first protected path, if any."""
    for path in paths:
        try:
            with resolve_real(context, path, create_parents=True) as resolved:
                resolved.check_may_change()
        except ProtectedError as error:
            return error
        except (AgentFSError, OSError):
            continue  # unreachable: changing it fails later
    return None


def _unfinished(*paths: str) -> str:
    return f"an unfinished change of {', '.join(map(quote, paths))}"
