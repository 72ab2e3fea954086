"""Several changes applied as one: all of them, or none; and what a dead process left of one, taken back.

Everything that can fail early is done first: new contents are written beside their targets, and what will be
replaced or removed gets a second name. What is left is renames. When one of them fails, or the process dies,
the second names lead back.
"""

import errno
import os
import stat
import time
from collections.abc import Callable, Container, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from agentfs import call_context
from agentfs.errors import AgentFSError, NotDirectoryError, NotFoundError, ProtectedError
from agentfs.fs import oserrors, syscalls
from agentfs.fs.context import RootContext
from agentfs.fs.directory import node_at, node_in
from agentfs.fs.lock import ATTEMPTS, file_locks
from agentfs.fs.node import (
    Change,
    Conflict,
    DirectoryNode,
    FileNode,
    LinkNode,
    Metadata,
    Node,
    Recorder,
    StagedNodes,
)
from agentfs.fs.path import quote
from agentfs.fs.recovery_log import (
    PlannedChange,
    RecoveryLog,
    is_second_name,
    recovery_log,
    unfinished_batches,
)
from agentfs.fs.replace import (
    apply_metadata,
    check_hard_links,
    check_may_change,
    check_not_linked,
    create_temporary,
    new_mode,
    new_temporary,
    sync_directories,
    unicode_duplicate_notes,
)
from agentfs.fs.resolve import ResolvedPath, resolve_real
from agentfs.messages import Joined

_NOT_EMPTY = {errno.ENOTEMPTY, errno.EEXIST}
_RETRY_SECONDS = 0.5  # how long one batch tries again what is to be undone
_RETRY_PAUSE = 0.001
_REPAIR_BYTES = 200 * 1024 * 1024

_Step = tuple[Callable[[PlannedChange], list[str]], PlannedChange]
_NOTED_PATHS = 5


class Applied(NamedTuple):
    """What the caller should know of changes that were made."""

    remaining: tuple[str, ...] = ()  # the directories that stay, because something else is in them
    notes: tuple[str, ...] = ()


class _NotRenamed(Exception):  # noqa: N818 - a signal within this module
    """A directory cannot be renamed with all in it: make the changes one by one."""


def apply_changes(
    context: RootContext,
    root_path: str,
    changes: Sequence[Change],
    *,
    max_bytes: int,
    conflict: Conflict,
    recorder: Recorder | None,
    undoing: bool,
) -> Applied:
    """Do the work of `Root.apply`."""
    paths = [change.path for change in changes if not change.of_directory]
    # Directories have no locks: while they are read and changed, nothing else comes or goes in them.
    alone = nullcontext() if recorder is None else recorder.alone()
    # What is to be below a file is resolved as if that was gone already.
    gone = StagedNodes()
    for change in changes:
        if _is_file(change.before) and _is_directory(change.after):
            gone.add(Change(change.path, change.before, None))
    cleared = replace(context, staged=gone)
    with _lock_files(cleared, root_path, paths), alone:
        changes = _with_parents(cleared, changes, max_bytes)
        wanted = _checked(context, cleared, changes, max_bytes, conflict, undoing=undoing)
        recording: AbstractContextManager[object] = nullcontext()
        if recorder is not None:
            recording = recorder.recording(tuple(wanted))
        with recording:
            for rename_directories in (True, False):
                plans = plan_changes(context, wanted, rename_directories=rename_directories)
                batch = Batch(context, plans, max_bytes, conflict, undoing=undoing)
                with suppress(_NotRenamed), recovery_log(context, root_path, plans) as log:
                    return batch.apply(log)
        raise AssertionError  # without a directory to rename there is none that cannot be renamed


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
    batch = Batch(context, plans, _REPAIR_BYTES, lambda change, _: NotFoundError(change.path))
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


@contextmanager
def _lock_files(context: RootContext, root_path: str, paths: Sequence[str]) -> Generator[None]:
    for _ in range(ATTEMPTS):
        keys = {_lock_key(context, path): path for path in paths}
        with file_locks(keys, root_path):
            # A path may lead elsewhere since a lock was waited for; then these are the wrong locks.
            if keys == {_lock_key(context, path): path for path in paths}:
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
        if change.after is None:
            continue
        for above in _directories_above(change.path):
            if above in wanted or node_at(context, above, max_bytes) is not None:
                break
            wanted[above] = Change(above, None, DirectoryNode())
    return list(wanted.values())


def _directories_above(path: str) -> Iterator[str]:
    while path := os.path.dirname(path):
        yield path


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
    context: RootContext,
    cleared: RootContext,
    changes: Sequence[Change],
    max_bytes: int,
    conflict: Conflict,
    *,
    undoing: bool,
) -> list[Change]:
    """Return the changes that are still to be made, after checking that each may and can be."""
    wanted: list[Change] = []
    made: set[str] | None = None
    for change in changes:
        path, before, after = change.path, change.before, change.after
        present = node_at(cleared, path, max_bytes)
        if isinstance(after, DirectoryNode) and isinstance(present, DirectoryNode):
            if not isinstance(before, DirectoryNode) or after.mode == present.mode:
                continue  # made already
        elif present is None and after is None and change.of_directory:
            continue  # removed already
        elif present != before:
            if undoing and made is None:
                made = _already_made(changes, lambda path: node_at(cleared, path, max_bytes))
            if made is None or path not in made:
                raise conflict(change, present)
            continue
        check_may_change_at(cleared if present is None else context, path)
        if isinstance(before, FileNode) and isinstance(present, FileNode):
            if isinstance(after, FileNode):
                with resolve_real(context, path) as resolved:
                    check_hard_links(context, path, resolved.stat())
            before = replace(before, metadata=present.metadata)
        wanted.append(Change(path, present if isinstance(present, DirectoryNode) else before, after))
    return wanted


def check_may_change_at(context: RootContext, real_path: str, path: str | None = None) -> None:
    """Refuse a path that is protected, or that the permission rules do not let the call change."""
    path = real_path if path is None else path
    with resolve_real(context, real_path, create_parents=True) as resolved:
        check_may_change(context, resolved, path)
        check_not_linked(context, path, real_path, resolved.stat())


def plan_changes(
    context: RootContext, changes: Sequence[Change], *, rename_directories: bool
) -> list[PlannedChange]:
    """Return how to make each of the changes."""
    paths = {change.path for change in changes}
    turning = {
        change.path
        for change in changes
        if change.before and change.after and _is_directory(change.before) is not _is_directory(change.after)
    }
    plans = _plan_renames(context, changes, turning) if rename_directories else []
    moved = {path for plan in plans for path in (plan.change.path, plan.source)}
    changes = [each for each in changes if moved.isdisjoint([each.path, *_directories_above(each.path)])]
    # Each removed file is moved to one path only; of equal ones, those whose paths come in the same order.
    removed: dict[FileNode, list[str]] = {}
    for change in sorted(changes, key=lambda change: change.path, reverse=True):
        if isinstance(change.before, FileNode) and change.after is None:
            removed.setdefault(change.before, []).append(change.path)
    single = len(changes) + len(plans) == 1
    places: dict[str, str] = {}
    for change in sorted(changes, key=lambda change: change.path):
        above = list(_directories_above(change.path))
        # Second names are in a directory that outlives all changes of the batch. If that is not the file's
        # own, which others may be unable to enter, they are in a private one.
        outermost = next((path for path in reversed(above) if path in paths), change.path)
        directory = os.path.dirname(outermost)
        if outermost != change.path:
            place = os.path.join(directory, new_temporary("part"))
            directory = places.setdefault(directory, place)
        plan = PlannedChange(change, late=not turning.isdisjoint([change.path, *above]))
        # A single rename or removal happens or does not, and what waits for it is removed as a stray.
        # The second names of several are not: such a name has the times of its file, maybe old ones.
        plan.temporary = os.path.join(directory, new_temporary("tmp" if single else "part"))
        if not single:
            plan.backup = os.path.join(directory, new_temporary("part"))
        if isinstance(change.after, FileNode) and change.before is None:
            plan.source = removed[change.after].pop() if removed.get(change.after) else ""
        plans.append(plan)
    return plans


def _plan_renames(context: RootContext, changes: Sequence[Change], turning: set[str]) -> list[PlannedChange]:
    """Return plans that rename removed directories to created ones with equal content, outermost first."""
    steady = [each for each in changes if turning.isdisjoint([each.path, *_directories_above(each.path)])]
    removed = _contents_of({each.path: each.before for each in steady if each.after is None})
    created = _contents_of({each.path: each.after for each in steady if each.before is None})
    sources: dict[tuple[object, ...], list[str]] = {}
    for path in sorted(removed, reverse=True):
        sources.setdefault(tuple(removed[path]), []).append(path)
    plans: list[PlannedChange] = []
    renamed, above_renamed = set[str](), set[str]()
    for path in sorted(created):
        candidates = sources.get(tuple(created[path]), [])
        while candidates and renamed.isdisjoint(_directories_above(path)):
            source = candidates.pop()
            if source in above_renamed or not renamed.isdisjoint(_directories_above(source)):
                continue
            renamed |= {path, source}
            above_renamed.update(_directories_above(source))
            entries = frozenset(below for below, *_ in created[path] if below)
            with resolve_real(context, source) as resolved:
                inode = syscalls.lstat(resolved.parent, resolved.name).st_ino
            change = Change(path, None, created[path][0][1])
            plans.append(PlannedChange(change, source=source, inode=inode, entries=entries))
            break
    return plans


def _contents_of(nodes: Mapping[str, Node | None]) -> dict[str, list[tuple[str, Node | None, int | None]]]:
    """Return for each directory everything in it, itself first: relative path, node, mode of a directory."""
    contents: dict[str, list[tuple[str, Node | None, int | None]]] = {}
    for path, node in sorted(nodes.items()):
        mode = node.mode if isinstance(node, DirectoryNode) else None
        if isinstance(node, DirectoryNode):
            contents[path] = [("", node, mode)]
        for above in _directories_above(path):
            if above in contents:
                contents[above].append((path[len(above) + 1 :], node, mode))
    return contents


def _is_directory(node: Node | None) -> bool:
    return isinstance(node, DirectoryNode)


def _is_file(node: Node | None) -> bool:
    return isinstance(node, FileNode | LinkNode)


class Batch:
    """The planned changes of one batch, carried out or taken back."""

    def __init__(
        self,
        context: RootContext,
        plans: Sequence[PlannedChange],
        max_bytes: int,
        conflict: Conflict,
        *,
        undoing: bool = False,
    ) -> None:
        self._context = context
        self._plans = plans
        self._max_bytes = max_bytes
        self._conflict = conflict
        self._undoing = undoing
        self._kept_directories: list[str] = []
        self._begun: set[str] = set()  # the paths whose change may have been made
        self._renamed: set[str] = set()  # those whose temporary was renamed, as there are no hard links
        self._retry_until = 0.0
        self.staged: set[str] = set()  # the temporaries and backups that may exist
        self.not_undone: set[str] = set()  # the paths that were not brought back, as the system kept failing

    def apply(self, log: RecoveryLog | None) -> Applied:
        """Make the changes, or bring everything back."""
        notes: dict[str, list[str]] = {}  # with the paths that each is about
        try:
            for plan in self._plans:
                call_context.check()
                for note in self._prepare(plan):
                    notes.setdefault(note, []).append(plan.change.path)
            call_context.complete()
            for step, plan in self._steps():
                for note in step(plan):
                    notes.setdefault(note, []).append(plan.change.path)
        except BaseException as error:
            with call_context.uncounted():
                self.undo(self._begun)
                self.keep_log_if_needed(log)
            if isinstance(error, _NotRenamed) and self.not_undone and error.__cause__ is not None:
                error = error.__cause__
            path = self._plans[0].change.path if self._plans else "."
            known = oserrors.from_oserror(error, path) if isinstance(error, OSError) else error
            if self.not_undone and isinstance(known, AgentFSError):
                paths = ", ".join(map(quote, sorted(self.not_undone)))
                hint = f"{paths} could not be brought back; opening the workspace again tries it anew."
                known.hint = Joined(" ", known.hint, hint)
            if known is error:
                raise
            raise known from None
        unsynced = self._sync()
        if log is not None:
            log.note_left(())
        self._remove_staged()
        self.keep_log_if_needed(log)
        about = [f"{note}: {self._names(paths)}" for note, paths in notes.items()]
        return Applied(tuple(self._kept_directories), (*about, *unsynced))

    def _names(self, paths: Sequence[str]) -> str:
        names = ", ".join(quote(self._context.display_path(path)) for path in sorted(paths)[:_NOTED_PATHS])
        more = len(paths) - _NOTED_PATHS
        return f"{names} and {more} more" if more > 0 else names

    def undo(self, paths: Container[str]) -> tuple[str, ...]:
        """Bring back what was at paths before; return those that stay, as somebody else has changed them."""
        changed_by_others: list[str] = []
        undone: set[str] = set()
        for _, plan in reversed(self._steps()):
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

    def _at(self, path: str) -> ResolvedPath:
        return resolve_real(self._context, path)

    def _node_at(self, path: str) -> Node | None:
        return node_at(self._context, path, self._max_bytes)

    def _steps(self) -> list[_Step]:
        """Return what is to be done, in order: where possible, the new comes before the old goes."""
        steps: list[_Step] = []
        for late in (False, True):
            plans = sorted((p for p in self._plans if p.late is late), key=lambda plan: plan.change.path)
            made = [
                (self._rename_directory if p.inode else self._make_directory, p)
                for p in plans
                if _is_directory(p.change.after)
            ]
            put = [(self._put, p) for p in plans if _is_file(p.change.after)]
            plans.reverse()
            # What a file or link replaces is never missing; only what nothing, or a directory, follows.
            gone = [p for p in plans if not _is_file(p.change.after)]
            removed = [(self._remove, p) for p in gone if _is_file(p.change.before)]
            gone = [p for p in plans if not _is_directory(p.change.after)]
            unmade = [(self._remove_directory, p) for p in gone if _is_directory(p.change.before)]
            steps += [*removed, *unmade, *made, *put] if late else [*made, *put, *removed, *unmade]
        return steps

    def _prepare(self, plan: PlannedChange) -> list[str]:
        """Give the present content a second name, and write the new one; return notes on what it lacks."""
        path, before, after = plan.change.path, plan.change.before, plan.change.after
        if plan.inode:
            self._check_entries(plan)
            return []
        metadata = before.metadata if isinstance(before, FileNode) else None
        replaced: os.stat_result | None = None
        if metadata is not None:
            with self._at(path) as target:
                replaced = target.stat()  # before its second name is counted as a hard link
        if plan.backup and isinstance(before, FileNode | LinkNode):
            self._make_place(plan)
            with self._at(path) as target, self._at(plan.backup) as backup:
                self.staged.add(plan.backup)
                try:
                    linked = syscalls.link_into(target.parent, target.name, backup.parent, backup.name)
                except OSError as error:
                    raise target.error(error) from None
                if not linked:
                    self._create(backup, before, None, metadata)
        if not isinstance(after, FileNode | LinkNode):
            return []
        self._make_place(plan)
        with self._at(plan.temporary) as temporary:
            self.staged.add(plan.temporary)
            if plan.source:
                with self._at(plan.source) as source:
                    if syscalls.link_into(source.parent, source.name, temporary.parent, temporary.name):
                        return []
                    replaced = source.stat()
            try:
                return self._create(temporary, after, replaced, metadata)
            except OSError as error:
                raise temporary.error(error, os.path.basename(path)) from None

    def _check_entries(self, plan: PlannedChange) -> None:
        """Raise `_NotRenamed` if anything else is in a directory, or another file system is mounted there."""
        directories = [""]
        with self._at(plan.source) as source:
            device = syscalls.lstat(source.parent, source.name).st_dev
        with resolve_real(self._context, plan.change.path, create_parents=True) as target:
            if syscalls.lstat(target.parent, ".").st_dev != device:
                raise _NotRenamed
        while directories:
            below = directories.pop()
            with self._at(f"{plan.source}/{below}" if below else plan.source) as directory:
                fd = syscalls.open_directory(directory.parent, directory.name)
            try:
                if os.fstat(fd).st_dev != device:
                    raise _NotRenamed
                with os.scandir(fd) as entries:
                    for entry in entries:
                        path = f"{below}/{entry.name}" if below else entry.name
                        if path not in plan.entries:
                            raise _NotRenamed
                        if entry.is_dir(follow_symlinks=False):
                            directories.append(path)
            finally:
                syscalls.close(fd)

    def _make_place(self, plan: PlannedChange) -> None:
        """Make the private directory of second names, if they need one."""
        place = os.path.dirname(plan.temporary)
        if is_second_name(place) and place not in self.staged:
            with self._at(place) as target:
                self.staged.add(place)
                try:
                    os.mkdir(target.name, 0o700, dir_fd=target.parent)
                except OSError as error:
                    raise target.error(error, os.path.basename(plan.change.path)) from None

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
        metadata = (metadata or node.metadata or Metadata(node.mode))._replace(mode=node.mode)
        return create_temporary(self._context, at.parent, at.name, node.load(), replaced, metadata)

    def _put(self, plan: PlannedChange) -> list[str]:
        change = plan.change
        with self._at(plan.temporary) as temporary, self._at(change.path) as target:
            if isinstance(change.before, FileNode | LinkNode):
                self._check_unchanged(change, target)
                self._begun.add(change.path)
                syscalls.replace(temporary.parent, temporary.name, target.name, to=target.parent)
                return []
            self._begun.add(change.path)
            try:
                linked = syscalls.link_into(temporary.parent, temporary.name, target.parent, target.name)
            except FileExistsError:
                raise self._conflict(change, node_in(self._context, target, self._max_bytes)) from None
            except OSError as error:
                raise target.error(error) from None
            if not linked:  # then a name that appears just now could be replaced
                self._renamed.add(change.path)
                syscalls.replace(temporary.parent, temporary.name, target.name, to=target.parent)
            return [] if plan.source else unicode_duplicate_notes(target.parent, target.name)

    def _remove(self, plan: PlannedChange) -> list[str]:
        with self._at(plan.change.path) as target:
            self._check_unchanged(plan.change, target)
            self._begun.add(plan.change.path)
            try:
                os.unlink(target.name, dir_fd=target.parent)
            except OSError as error:
                raise target.error(error) from None
        return []

    def _check_unchanged(self, change: Change, target: ResolvedPath) -> None:
        # A program that does not take our lock may have written since.
        present = node_in(self._context, target, self._max_bytes)
        if present != change.before:
            raise self._conflict(change, present)

    def _rename_directory(self, plan: PlannedChange) -> list[str]:
        """Rename a directory with all in it."""
        with self._at(plan.source) as source, self._at(plan.change.path) as target:
            if self._inode_at(plan.source) != plan.inode:
                raise self._conflict(Change(plan.source, plan.change.after, None), None)
            self._begun.add(plan.change.path)
            try:
                syscalls.rename_directory(source.parent, source.name, target.parent, target.name)
            except FileExistsError:
                raise self._conflict(plan.change, self._node_at(plan.change.path)) from None
            except OSError as error:
                # Between mounts or overlays it cannot be renamed; other causes fail again, one by one.
                raise _NotRenamed from error
        return []

    def _make_directory(self, plan: PlannedChange) -> list[str]:
        """Make a directory, or give one that is there another mode."""
        self._begun.add(plan.change.path)
        return self._set_directory(plan.change.path, plan.change.before, plan.change.after)

    def _set_directory(self, path: str, present: Node | None, wanted: Node | None) -> list[str]:
        with self._at(path) as target:
            try:
                mode = wanted.mode if isinstance(wanted, DirectoryNode) else None
                if not isinstance(present, DirectoryNode):
                    # Nobody else enters it before it has its owner and access control list.
                    os.mkdir(target.name, 0o777 if mode is None else 0o700, dir_fd=target.parent)
                elif mode is None:
                    mode = new_mode(directory=True)
                if mode is None:
                    return []
                metadata = wanted.metadata if isinstance(wanted, DirectoryNode) else None
                fd = syscalls.open_directory(target.parent, target.name)
                try:
                    return apply_metadata(fd, (metadata or Metadata(mode))._replace(mode=mode))
                finally:
                    syscalls.close(fd)
            except OSError as error:
                raise target.error(error) from None

    def _remove_directory(self, plan: PlannedChange) -> list[str]:
        with self._at(plan.change.path) as target:
            self._begun.add(plan.change.path)
            try:
                os.rmdir(target.name, dir_fd=target.parent)
            except OSError as error:
                if error.errno not in _NOT_EMPTY:
                    raise target.error(error) from None
                if plan.change.after is not None or not self._undoing:
                    raise self._conflict(plan.change, plan.change.before) from None  # an entry has been added
                self._kept_directories.append(plan.change.path)
        return []

    def _restore(self, plan: PlannedChange) -> bool:
        """Bring back what was at a path; return whether it is there."""
        path, before, after = plan.change.path, plan.change.before, plan.change.after
        if plan.inode:
            return self._rename_back(plan)
        if isinstance(before, FileNode | LinkNode):
            return self._restore_from_backup(plan)
        if before is None and _is_directory(after):
            return self._remove_made_directory(path)
        present = self._node_at(path)
        if _is_file(present) and (present != after or not self._created(plan)):
            return False
        if isinstance(before, DirectoryNode):
            if present == after:
                if _is_file(after):
                    self._remove_at(path)
                self._set_directory(path, present, before)
            return True
        if present is None or present != after:
            return present is None
        self._remove_at(path)
        return True

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

    def _sync(self) -> list[str]:
        """Bring the names to the disk if the policy wants it; return a note if that fails: all is done."""
        if self._context.durability != "full":
            return []
        notes: list[str] = []
        paths = [path for plan in self._plans for path in (plan.change.path, plan.source) if path]
        # One path of each directory leads there; one that is gone has its own name in the directory above.
        for path in {os.path.dirname(path): path for path in paths}.values():
            with suppress(NotFoundError, NotDirectoryError), self._at(path) as target:
                notes += sync_directories(self._context, [target.parent])
        return notes[:1]
