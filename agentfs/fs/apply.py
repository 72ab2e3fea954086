"""Several changes applied as one: all of them, or none; and what a dead process left of one, taken back."""

import errno
import os
import stat
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import replace

from agentfs.errors import AgentFSError, NotDirectoryError, NotFoundError, ProtectedError, RefusedError
from agentfs.fs import oserrors, syscalls
from agentfs.fs.batch import Applied, Batch, NotRenamed, Terms
from agentfs.fs.context import RootContext
from agentfs.fs.file import node_at
from agentfs.fs.lock import ATTEMPTS, file_locks
from agentfs.fs.node import Change, DirectoryNode, FileNode, LinkNode, Node, StagedNodes
from agentfs.fs.path import display_name, quote
from agentfs.fs.plan import PlannedChange, directories_above, is_second_name, plan_changes, plan_single
from agentfs.fs.recovery_log import RecoveryLog, recovery_log, unfinished_batches
from agentfs.fs.resolve import ResolvedPath, resolve_real

_REPAIR_BYTES = 200 * 1024 * 1024


def apply_changes(context: RootContext, root_path: str, changes: Sequence[Change], terms: Terms) -> Applied:
    """Do the work of `Root.apply`."""
    held, recorder = terms.held, terms.recorder
    cleared = context
    locked: AbstractContextManager[None] = nullcontext()
    if held is None:
        # Resolve paths below a file as if the file were already removed.
        gone = StagedNodes()
        for change in changes:
            if isinstance(change.before, FileNode | LinkNode) and isinstance(change.after, DirectoryNode):
                gone.add(Change(change.path, change.before, None))
        if gone.nodes:
            cleared = replace(context, staged=gone)
        locked = _lock_files(cleared, root_path, [each.path for each in changes if not each.of_directory])
    # Directories have no locks: while they are read and changed, nothing else comes or goes in them.
    alone: AbstractContextManager[object] = nullcontext()
    if recorder is not None and (held is None or changes[0].before is None):
        alone = recorder.alone()
    with locked, alone:
        if held is not None:
            if held.missing:
                made = [Change(path, None, DirectoryNode()) for path in held.missing_directories]
                changes = [*made, *changes]
        else:
            changes = _with_parents(cleared, changes, terms.max_bytes)
            changes = _checked(context, cleared, changes, terms)
        if (single := plan_single(changes)) is not None:
            return Batch(context, single, terms, single=True).apply(changes)
        for rename_directories in (True, False):
            plans = plan_changes(context, changes, rename_directories=rename_directories)
            with suppress(NotRenamed), recovery_log(context, root_path, plans) as log:
                return Batch(context, plans, terms).apply(changes, log)
    raise AssertionError  # without a directory to rename there is none that cannot be renamed


@contextmanager
def _lock_files(context: RootContext, root_path: str, paths: Sequence[str]) -> Generator[None]:
    for _ in range(ATTEMPTS):
        keys = {_lock_key(context, path): path for path in paths}
        with file_locks(keys, root_path) as waited:
            # A path may lead elsewhere since a lock was waited for; then these are the wrong locks.
            if not waited or keys == {_lock_key(context, path): path for path in paths}:
                yield
                return
    raise oserrors.kept_changing(paths[0])


def _lock_key(context: RootContext, path: str) -> str:
    with resolve_real(context, path, create_parents=True) as resolved:
        return resolved.lock_key


def _with_parents(context: RootContext, changes: Sequence[Change], max_bytes: int) -> list[Change]:
    """Return the changes, and one for each directory above them that has to be made."""
    wanted = {change.path: change for change in changes}
    for change in changes:
        if change.before is not None or change.after is None:
            continue
        for above in directories_above(change.path):
            if above in wanted or node_at(context, above, max_bytes) is not None:
                break
            wanted[above] = Change(above, None, DirectoryNode())
    return list(wanted.values())


def _already_made(changes: Sequence[Change], node: Callable[[str], Node | None]) -> set[str]:
    """Return the paths that are as the changes would leave them; of a moved file, both or neither."""
    present = {change.path: node(change.path) for change in changes}
    missing = {each.after for each in changes if each.before is None and present[each.path] != each.after}
    return {
        each.path
        for each in changes
        if present[each.path] == each.after and not (each.after is None and each.before in missing)
    }


def _checked(
    context: RootContext, cleared: RootContext, changes: Sequence[Change], terms: Terms
) -> list[Change]:
    """Return the changes that are still to be made, after checking that each may and can be."""
    wanted: list[Change] = []
    made: set[str] | None = None
    for change in changes:
        path, before, after = change.path, change.before, change.after
        present = node_at(cleared, path, terms.max_bytes)
        if isinstance(after, DirectoryNode) and isinstance(present, DirectoryNode):
            if not isinstance(before, DirectoryNode) or after.mode == present.mode:
                continue  # made already
        elif present is None and after is None and change.of_directory:
            continue  # removed already
        elif present != before:
            if terms.undoing and made is None:
                made = _already_made(changes, lambda path: node_at(cleared, path, terms.max_bytes))
            if made is None or path not in made:
                raise terms.conflict(change, present)
            continue
        check_may_change_at(cleared if present is None else context, path)
        if isinstance(before, FileNode) and isinstance(present, FileNode):
            if isinstance(after, FileNode):
                with resolve_real(context, path) as resolved:
                    check_hard_links(context, path, resolved.stat())
            before = replace(before, metadata=present.metadata)
        wanted.append(Change(path, present if isinstance(present, DirectoryNode) else before, after))
    return wanted


def repair(context: RootContext, root_path: str) -> list[str]:
    """Take back what processes that have died left unfinished; return what was done, in words."""
    notes: list[str] = []
    for plans, left, log in unfinished_batches(context, root_path):
        notes += _repair_batch(context, root_path, plans, left, log)
    return notes


def _repair_batch(
    context: RootContext, root_path: str, plans: Sequence[PlannedChange], paths: set[str], log: RecoveryLog
) -> list[str]:
    """Take paths of one batch back, as far as they can be reached; return what was done, in words."""
    blocked: dict[str, Exception] = {}
    lockable: list[str] = []
    batch = Batch(context, plans, Terms(_REPAIR_BYTES, _no_conflict))
    for plan in sorted(plans, key=lambda plan: plan.change.path):
        path, second_names = plan.change.path, [name for name in (plan.temporary, plan.backup) if name]
        second_names += filter(is_second_name, {os.path.dirname(name) for name in second_names})
        error = _protection(context, [path, *second_names, *filter(None, [plan.source])])
        if error is None:
            batch.staged.update(second_names)  # the process may have made any of them
        if path not in paths:
            continue
        try:
            if error is not None:
                raise error
            _lock_key(context, path)
            lockable.append(path)
        except NotDirectoryError:
            continue  # a file is on the way: nothing can be below it, and nothing has to be locked
        except (AgentFSError, OSError) as reason:
            blocked[path] = reason
    batch.not_undone.update(blocked)
    changed_by_others: tuple[str, ...] = ()
    try:
        with _lock_files(context, root_path, lockable):
            changed_by_others = batch.undo(paths - blocked.keys())
    except (AgentFSError, OSError) as error:
        blocked |= dict.fromkeys(paths - blocked.keys(), error)
        batch.not_undone.update(paths)
    batch.keep_log_if_needed(log)
    left = sorted(batch.not_undone)
    reasons = {path: f": {getattr(error, 'message', str(error))}" for path, error in blocked.items()}
    notes = [f"{_unfinished(path)} could not be taken back{reasons.get(path, '')}" for path in left]
    if undone := sorted(paths.difference(left)):
        notes.append(f"{_unfinished(*undone)} was taken back")
    if changed_by_others:
        changed = ", ".join(map(quote, changed_by_others))
        notes.append(f"somebody else has changed {changed} since, so that stays as it is")
    return notes


def _no_conflict(change: Change, _: Node | None) -> AgentFSError:
    return NotFoundError(change.path)  # nothing is made when a batch is taken back


def _protection(context: RootContext, paths: Sequence[str]) -> ProtectedError | None:
    """Return the error if one of some paths is protected."""
    for path in paths:
        try:
            check_may_change_at(context, path)
        except ProtectedError as error:
            return error
        except (AgentFSError, OSError):
            continue  # it cannot be reached, as whoever changes it finds out
    return None


def _unfinished(*paths: str) -> str:
    return f"a change of {', '.join(map(quote, paths))} that had not come to its end"


def check_may_change_at(context: RootContext, real_path: str) -> None:
    """Refuse a real path as `check_may_change`."""
    with resolve_real(context, real_path, create_parents=True) as resolved:
        check_may_change(context, resolved, real_path)


def check_may_change(context: RootContext, resolved: ResolvedPath, path: str) -> None:
    """Refuse a path that is protected, or that the permission rules do not let the call change.

    A hard link to a protected file is protected too.
    """
    real_path = resolved.real_path
    if context.unreadable.covers(real_path):
        raise oserrors.protected(path, context.display_path(real_path))
    status = resolved.stat()
    if context.unwritable.covers(real_path) or resolved.is_write_protected(status):
        raise oserrors.protected(path, context.display_path(real_path), readable=True)
    if context.access is not None:
        context.access.check_change(real_path)
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


def check_replaceable(context: RootContext, resolved: ResolvedPath, path: str) -> None:
    """Refuse to give a file, which need not exist yet, a new content where that would fail."""
    status = resolved.stat()
    if status is not None:
        _check_writable(resolved, path, status)
        check_hard_links(context, path, status)
    number = syscalls.access_errno(resolved.parent, ".", os.W_OK | os.X_OK)
    if not number and status is not None and os.geteuid() not in {0, status.st_uid}:
        here = syscalls.lstat(resolved.parent, ".")
        if here.st_mode & stat.S_ISVTX and os.geteuid() != here.st_uid:
            number = errno.EPERM
    if number:
        raise resolved.error(OSError(number, os.strerror(number)))


def _check_writable(resolved: ResolvedPath, path: str, status: os.stat_result) -> None:
    # A rename needs no permission on the file itself, but whoever made it read-only meant it, and the
    # superuser is no exception.
    if not status.st_mode & 0o222:
        raise oserrors.write_protected(path, status.st_mode)
    number = syscalls.access_errno(resolved.parent, resolved.name, os.W_OK)
    if number == errno.EACCES:
        raise oserrors.write_protected(path, status.st_mode)
    if number:
        raise resolved.error(OSError(number, os.strerror(number)))
