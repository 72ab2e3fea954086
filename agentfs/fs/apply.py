"""`Root.apply`: make several changes, all of them or none.

New files and directories are built as temporaries first, because that is likely to fail; a directory is
built with all its entries. Then each change is one rename, unlink or rmdir. If one of them fails, those
before it are reversed. The journal begins its step before the first and ends it after the last, so a begun
step is the record of a change that a kill cut short. The lock file is the record of the temporaries.
"""

import errno
import os
import stat
import sys
import time
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from agentfs.base import call_context
from agentfs.base.advice import Advice, call
from agentfs.base.frozen_data import with_values
from agentfs.errors import AgentFSError, ConflictError, NotDirectoryError, NotFoundError
from agentfs.fs import oserrors, syscalls
from agentfs.fs.context import RootContext, is_unchanged
from agentfs.fs.file import apply_metadata, create_temporary, node_at, node_in, notes_on_replacing, read_again
from agentfs.fs.lock import file_locks, forget_temporaries, record_temporary
from agentfs.fs.node import (
    Change,
    ConcurrentChange,
    Conflict,
    DirectoryNode,
    FileNode,
    LinkNode,
    LogStep,
    Metadata,
    MovedNode,
    MovedTree,
    Node,
    NotRestoredError,
    expanded,
    moves,
)
from agentfs.fs.path import error_of, quote
from agentfs.fs.resolve import HeldPlace, Place, ResolvedPath, resolve_real
from agentfs.text.display import first_names

_NOT_EMPTY = {errno.ENOTEMPTY, errno.EEXIST}
_RETRY_SECONDS = 0.5  # how long a failed batch retries to reverse its changes
_RETRY_PAUSE = 0.001
_NOTED_PATHS = 5
_OWNER = stat.S_IRWXU
_SYNCED_TOGETHER = 16  # new files, from which on their file system is synced instead of each


class Applied(NamedTuple):
    """The outcome of `Root.apply`."""

    remaining: tuple[str, ...] = ()  # directories that were not removed because they have other entries
    notes: tuple[str, ...] = ()


@dataclass(eq=False, slots=True)
class _Step:
    """A change, and what is prepared for it."""

    change: Change
    temporary: str = ""  # the path of the new node, until it is renamed
    inside: list[Change] = field(default_factory=list[Change])  # a new directory and all that is built in it
    logged: Change | None = None  # the change for the journal, if another
    renames: bool = False  # rename the node from `change.moved_from`


class _NotRenamedError(Exception):
    """A move leads to another file system, or the system cannot rename the directory of an overlay."""


def directories_above(path: str) -> Generator[str]:
    """Yield the directories above a path, innermost first."""
    while path := path.rpartition("/")[0]:
        yield path


def _missing_parents(context: RootContext, changes: Sequence[Change]) -> list[Change]:
    """Return a change for each missing directory above a created node."""
    known = {change.path for change in changes}
    found: list[Change] = []
    for change in changes:
        if change.before is None and change.after is not None:
            for above in directories_above(change.path):
                if above in known or node_at(context, above, None) is not None:
                    break
                known.add(above)
                found.append(Change(above, None, DirectoryNode()))
    return found


def _renames(changes: Sequence[Change]) -> dict[str, str]:
    """Return the old path of each file, link and tree that moves unchanged, by its new path."""
    old = {each.path: each.before for each in changes if each.after is None}
    return {
        each.path: each.moved_from
        for each in changes
        if each.moved_from
        and each.before is None
        and not isinstance(each.after, DirectoryNode)
        and old.get(each.moved_from) == each.after
    }


def _check_entries(context: RootContext, top: str, tree: MovedTree) -> None:
    """Raise an error if an entry of a tree may not be moved from or to a path."""
    for below, _, entries in tree.listing:
        names = [name for each in entries.values() for name in each]
        for name in context.unchangeable_names(top + below, names):
            path = f"{top}{below}/{name}"
            context.check_names(path, (path,))


def _is_below(path: str, directories: Collection[str]) -> bool:
    return any(above in directories for above in directories_above(path))


def _already_made(changes: Sequence[Change], present: Mapping[str, Node | None]) -> set[str]:
    """Return the paths that already have the wanted node. Of a moved file, return both paths or neither."""
    left = [each for each in changes if present[each.path] != each.after]
    sources = {each.moved_from for each in left}
    return {each.path for each in changes} - {each.path for each in left} - sources


def _steps(context: RootContext, changes: Sequence[Change], renames: Mapping[str, str]) -> list[_Step]:
    """Return a step for each change. A file that moves and is not renamed is copied, and then removed."""
    renamed = {*renames, *renames.values()}
    rows = [each for one in changes for each in ((one,) if one.path in renamed else expanded((one,)))]
    steps = [_Step(each, renames=each.path in renamed) for each in rows]
    left = {each.change.path: each for each in steps if not each.renames}
    for path, source in moves([each.change for each in left.values()]).items():
        new, old = left[path], left[source]
        if isinstance(new.change.after, MovedNode):
            new.logged, old.logged = new.change, old.change
            node = node_at(context, source, sys.maxsize, is_kept=False)
            new.change = with_values(new.change, after=node)
            if isinstance(node, FileNode):  # once the source is removed, its content is at the target
                node = with_values(node, pieces=read_again(context, path, sys.maxsize, node.digest))
            old.change = with_values(old.change, before=node)
    return steps


class Batch:
    """Changes that are made together."""

    def __init__(
        self,
        context: RootContext,
        max_bytes: int,
        conflict: Conflict,
        log_step: LogStep = nullcontext,
        *,
        undoing: bool = False,
    ) -> None:
        """Prepare a batch, with the arguments of `Root.apply`."""
        self._context, self._max_bytes, self._conflict = context, max_bytes, conflict
        self._log_step, self._undoing = log_step, undoing
        self._held: ResolvedPath | None = None  # the open path of a single file
        self._lock_file = syscalls.CLOSED
        # Temporaries may lie above the directories of a view.
        self._anywhere = context if context.only is None else context.view(only=None)
        self._made: list[tuple[Change, int]] = []  # each change that may be made, and the inode that it moved
        self._temporaries: set[str] = set()  # those that may exist
        self._remaining: list[str] = []
        self._notes: dict[str, list[str]] = {}  # each with the paths it is about
        self._closed: set[str] = set()  # directories whose owner may not change their entries yet
        self._retry_until = 0.0

    def apply(self, changes: Sequence[Change]) -> Applied:
        """Check the changes and make them."""
        context = self._context
        path = context.displayed(changes[0].path) if changes else "."
        with file_locks(context.trees.lock_keys, context.path, path) as self._lock_file:
            turning = {change.path for change in changes if change.turns}
            wanted = self._checked(context, changes, turning)
            if missing := _missing_parents(context, changes):
                # Who may create a node may create the directories above it.
                wanted += self._checked(context.view(access=None), missing, turning)
            self._max_bytes = sys.maxsize  # a file that moves to another file system may have any size
            with suppress(_NotRenamedError):
                return self._carry_out(_steps(context, wanted, {} if turning else _renames(wanted)))
            return self._carry_out(_steps(context, wanted, {}))

    def replace(self, change: Change, place: ResolvedPath, lock_file: int) -> Applied:
        """Make one change of a file at a place that the caller has locked and checked."""
        self._lock_file = lock_file
        self._held = None if place.missing else place
        parents = _missing_parents(self._context, [change]) if place.missing else ()
        return self._carry_out([_Step(each) for each in (*parents, change)])

    def _checked(
        self, context: RootContext, changes: Sequence[Change], turning: Collection[str]
    ) -> list[Change]:
        """Drop the changes that are made already. Raise an error if another is forbidden or in conflict."""
        present = {each.path: self._present(each, turning) for each in changes}
        made = _already_made(changes, present) if self._undoing else ()
        wanted: list[Change] = []
        for change in changes:
            path, before, after, found = change.path, change.before, change.after, present[change.path]
            if isinstance(after, DirectoryNode) and isinstance(found, DirectoryNode):
                if not isinstance(before, DirectoryNode) or after.mode == found.mode:
                    continue  # created already
            elif found is None and after is None and change.of_directory:
                continue  # removed already
            elif found != before:
                if path in made:
                    continue
                raise self._conflict(change, found)
            if found is None and _is_below(path, turning):
                context.check_names(path, (path,))
            else:
                with resolve_real(context, path, create_parents=True) as resolved:
                    resolved.check_may_change()
            if isinstance(tree := before or after, MovedTree):
                _check_entries(context, path, tree)
            if isinstance(before, FileNode) and isinstance(found, FileNode):
                seen, is_settled = found.seen, found.is_settled
                before = with_values(before, metadata=found.metadata, seen=seen, is_settled=is_settled)
            if not (isinstance(after, FileNode) and change.changes_nothing):
                old = found if isinstance(found, DirectoryNode) else before
                wanted.append(with_values(change, before=old))
        return wanted

    def _carry_out(self, steps: Sequence[_Step]) -> Applied:
        """Make the changes, or reverse those that were made."""
        self._made.clear()
        self._notes.clear()
        try:
            with self._log_step(self._build_all(steps)) as recorded:
                for step, change in zip(steps, recorded, strict=True):
                    if step.logged is None:
                        step.change = change
                try:
                    call_context.begin_commit()  # a call cancelled during the recording changes nothing
                    for step in self._ordered(steps):
                        self._make(step)
                except BaseException as error:
                    self._remove_temporaries()  # reversals may need their space
                    # An interrupt may come after the last change.
                    may_be_made = self._made and not isinstance(error, Exception)
                    if not (may_be_made and all(self._present(each) == each.after for each in recorded)):
                        with call_context.uncounted() if self._temporaries else nullcontext():
                            self._reverse(error)  # before the journal looks at the outcome
                    raise
        except OSError as error:
            raise oserrors.from_oserror(error, steps[0].change.path if steps else ".") from None
        finally:
            self._remove_temporaries()
        one = len(steps) == 1
        notes = [note if one else f"{note}: {self._names(paths)}" for note, paths in self._notes.items()]
        return Applied(tuple(self._remaining), tuple(notes))

    def _present(self, change: Change, turning: Collection[str] = ()) -> Node | None:
        """Return the node at the path of a change; unread if the change moves it."""
        context, path, moved = self._context, change.path, change.before or change.after
        top = next((each for each in directories_above(path) if each in turning), None)
        if top is not None and not isinstance(node_at(context, top, None), DirectoryNode):
            return None  # there is a file or a link, which becomes a directory
        is_unread = isinstance(moved, MovedNode | MovedTree)
        present = node_at(context, path, None if is_unread else self._max_bytes, is_kept=False)
        return moved if isinstance(moved, MovedTree) and isinstance(present, DirectoryNode) else present

    def _names(self, paths: Sequence[str]) -> str:
        return first_names([quote(self._context.displayed(path)) for path in sorted(paths)], _NOTED_PATHS)

    def _at(self, path: str, near: Place | None = None) -> AbstractContextManager[Place]:
        """Open the place of a path; if it is beside `near`, nothing is resolved again."""
        directory, _, name = path.rpartition("/")
        held = near or self._held
        if held is not None and directory == held.real_path.rpartition("/")[0]:
            return nullcontext(HeldPlace(held.parent, name, path, path))
        return resolve_real(self._anywhere, path)

    # Temporaries

    def _build_all(self, steps: Sequence[_Step]) -> tuple[Change, ...]:
        """Build the new nodes; return the changes for the journal, with the modes of new files."""
        left = _in_order(steps)
        self._closed.update(each.change.path for each in left if _is_closed(each.change.before))
        is_synced = sum(isinstance(each.change.after, FileNode) for each in left) < _SYNCED_TOGETHER
        top: _Step | None = None  # the outermost new directory
        for step in left:
            call_context.check()
            path, before, after = step.change.path, step.change.before, step.change.after
            is_directory = isinstance(after, DirectoryNode)
            if after is None or (is_directory and isinstance(before, DirectoryNode)):
                continue
            if top is not None and path.startswith(f"{top.change.path}/"):
                temporary = top.temporary + path[len(top.change.path) :]
            else:
                temporary = step.temporary = self._new_temporary(os.path.dirname(path))
                top = step if is_directory else None
            with self._at(temporary) as at:
                try:
                    self._build(step, at, is_synced=is_synced)
                except OSError as error:  # it would name the temporary
                    raise oserrors.from_oserror(error, self._context.displayed(path)) from None
            if top is not None:
                top.inside.append(step.change)
        if not is_synced:
            self._sync_file_systems()
        return tuple([each.logged or each.change for each in steps])

    def _build(self, step: _Step, at: Place, *, is_synced: bool) -> None:
        change, before, after = step.change, step.change.before, step.change.after
        if isinstance(after, DirectoryNode):
            os.mkdir(at.name, 0o777 if after.mode is None else 0o700, dir_fd=at.parent)
            if after.mode is not None and not _is_closed(after):
                self._note(self._set_directory(at.real_path, after), change.path)
        elif isinstance(after, LinkNode):
            os.symlink(after.target, at.name, dir_fd=at.parent)
        elif isinstance(after, FileNode):
            metadata, notes = after.metadata, list[str]()
            if isinstance(before, FileNode):
                metadata = metadata and (before.metadata or metadata)
                notes += [] if before.seen is None else notes_on_replacing(before.seen)
            notes += create_temporary(at.parent, at.name, after, metadata, is_synced=is_synced)
            self._note(notes, change.path)
            if after.metadata is None:
                mode = syscalls.lstat(at.parent, at.name).st_mode & 0o777
                after = with_values(after, mode=mode, metadata=Metadata(mode))
                step.change = with_values(change, after=after)

    def _note(self, notes: Sequence[str], path: str) -> None:
        for note in notes:
            self._notes.setdefault(note, []).append(path)

    def _sync_file_systems(self) -> None:
        """Write the data of all new files to the disk."""
        synced: set[int] = set()
        for path in {os.path.dirname(each): each for each in self._temporaries}.values():
            with self._at(path) as at:
                if (device := os.fstat(at.parent).st_dev) not in synced:
                    syscalls.sync_file_system(at.parent)
                    synced.add(device)

    def _new_temporary(self, directory: str) -> str:
        """Return the path of a new temporary in a directory.

        If its owner may not change the directory yet, the temporary lies in a private one outside.
        """
        outside: str = directory
        while outside in self._closed:
            outside = os.path.dirname(outside)
        temporary = f"{outside}/.agentfs-{os.urandom(8).hex()}.tmp".lstrip("/")
        record_temporary(self._lock_file, self._context.trees.path_on_disk(temporary))
        self._temporaries.add(temporary)
        if outside == directory:
            return temporary
        with self._at(temporary) as at:
            os.mkdir(at.name, 0o700, dir_fd=at.parent)
        return f"{temporary}/new"

    def _remove_temporaries(self) -> None:
        """Remove what is left of the temporaries. The lock file keeps the names of those that stay."""
        with call_context.uncounted() if self._temporaries else nullcontext():
            removed = [self._retry(partial(self._remove_temporary, path)) for path in self._temporaries]
        if all(removed):
            forget_temporaries(self._lock_file)

    def _remove_temporary(self, path: str) -> None:
        with suppress(FileNotFoundError), self._at(path) as at:
            syscalls.remove_all(at.parent, at.name)

    # Changes

    def _ordered(self, steps: Sequence[_Step]) -> Sequence[_Step]:
        """Return the steps in order. If possible, all new nodes are made before old ones are removed."""
        if len(steps) == 1 and not steps[0].change.of_directory:
            return steps
        left = _in_order(steps)
        turning = {each.change.path for each in left if each.change.turns}
        opened, early, new, late, last = (list[_Step]() for _ in range(5))
        for step in left:
            change, path = step.change, step.change.path
            before, after = change.before, change.after
            may_open = self._undoing or after is not None
            if isinstance(before, DirectoryNode) and _is_closed(before) and may_open:
                # Its owner must be able to change the entries.
                opened.append(_Step(Change(path, before, DirectoryNode((before.mode or 0) | _OWNER))))
            if before is not None and (after is None or change.turns):
                is_early = path in turning or _is_below(path, turning)
                (early if is_early else late).append(_Step(with_values(change, after=None)))
                step.change = with_values(change, before=None)
            if isinstance(after, DirectoryNode) and after.mode is not None:
                old = before if isinstance(before, DirectoryNode) else DirectoryNode(0o700)
                if old is before or _is_closed(after):
                    last.append(_Step(Change(path, old, after)))
            if step.temporary:
                new.append(step)
        directories = [each for each in new if each.inside]
        others = [each for each in new if not each.inside]
        moved = [each for each in steps if each.renames and each.change.after is not None]
        return [*opened, *early[::-1], *directories, *moved, *others, *late[::-1], *last[::-1]]

    def _make(self, step: _Step) -> None:
        change = step.change
        if step.renames:
            self._move(change)
        elif step.temporary:
            self._put(step)
        elif not isinstance(change.before, DirectoryNode):
            with self._at(change.path) as target:
                self._check_unchanged(change, target)
                self._made.append((change, 0))
                os.unlink(target.name, dir_fd=target.parent)
        elif isinstance(change.after, DirectoryNode):
            self._made.append((change, 0))
            self._note(self._set_directory(change.path, change.after), change.path)
        else:
            self._remove_directory(change)

    def _put(self, step: _Step) -> None:
        """Rename a temporary to its path."""
        change = step.change
        with self._at(change.path) as target, self._at(step.temporary, target) as source:
            if change.before is not None:
                self._check_unchanged(change, target)
                self._made.append((change, 0))
                syscalls.replace(source.parent, source.name, target.name, to=target.parent)
            else:
                made = [(with_values(each, before=None), 0) for each in step.inside or [change]]
                self._rename_new(source, target, change, made)
            self._temporaries.discard(step.temporary)

    def _move(self, change: Change) -> None:
        """Rename a file, or a directory with all its entries."""
        with self._at(change.moved_from) as source, self._at(change.path) as target:
            inode = syscalls.lstat(source.parent, source.name).st_ino
            try:
                self._rename_new(source, target, change, [(change, inode)])
            except OSError as error:
                # The owner of a read-only directory may not rename it, but undo may open it.
                if error.errno == errno.EXDEV or (error.errno == errno.EACCES and self._undoing):
                    raise _NotRenamedError from None
                raise

    def _rename_new(
        self, source: Place, target: Place, change: Change, made: Sequence[tuple[Change, int]]
    ) -> None:
        """Rename to the path of a new node; raise a conflict if it is taken."""
        count = len(self._made)
        self._made += made
        try:
            syscalls.rename_new(source.parent, source.name, target.name, to=target.parent)
        except FileExistsError:
            del self._made[count:]
            if change.path in self._remaining:
                raise _occupied(self._context.displayed(change.path)) from None
            raise self._conflict(change, node_in(self._context, target, self._max_bytes)) from None

    def _remove_directory(self, change: Change) -> None:
        self._made.append((change, 0))
        with self._at(change.path) as target:
            try:
                os.rmdir(target.name, dir_fd=target.parent)
            except OSError as error:
                if error.errno not in _NOT_EMPTY:
                    raise
                if not self._undoing:  # another program has added an entry
                    raise self._conflict(change, change.before) from None
                self._remaining.append(change.path)

    def _check_unchanged(self, change: Change, target: Place) -> None:
        # Other programs do not take our lock and may have written.
        old = change.before
        if isinstance(old, FileNode) and old.seen is not None and old.is_settled:
            with suppress(OSError):
                if is_unchanged(old.seen, syscalls.lstat(target.parent, target.name)):
                    return
        present = node_in(self._context, target, self._max_bytes, is_kept=False)
        if present != old:
            raise self._conflict(change, present)

    def _set_directory(self, path: str, node: DirectoryNode) -> list[str]:
        mode = node.mode or 0
        with self._at(path) as target:
            try:
                fd = syscalls.open_directory(target.parent, target.name)
            except PermissionError:  # its owner may not list it
                syscalls.set_mode(target.parent, target.name, mode)
                return []
            try:
                return apply_metadata(fd, (node.metadata or Metadata(mode))._replace(mode=mode))
            finally:
                syscalls.close(fd)

    # Reversals

    def _reverse(self, error: BaseException) -> None:
        """Reverse what was made, the latest first. Raise `io` if that fails, for the journal to keep it."""
        made = self._made[::-1]
        failed = [each.path for each, moved in made if not self._retry(partial(self._restore, each, moved))]
        if not failed or not isinstance(error, Exception):
            return
        cause = oserrors.from_oserror(error, failed[-1]) if isinstance(error, OSError) else error
        message, details = getattr(cause, "message", repr(cause)), getattr(cause, "details", {})
        raise NotRestoredError(
            f"A change failed half way, and {self._names(failed)} could not be restored: {message}",
            hint=Advice("When nothing hinders it any more, restore it: ", call("undo"), "."),
            details={**details, "not_restored": [*map(self._context.displayed, failed)]},
        ) from None

    def _restore(self, change: Change, moved: int) -> None:
        """Put the old node of a change back, unless others have changed it."""
        path, before, after = change.path, change.before, change.after
        if moved:
            self._move_back(change, moved)
        elif isinstance(before, DirectoryNode):
            if after is None:
                with suppress(FileExistsError), self._at(path) as target:
                    os.mkdir(target.name, 0o700, dir_fd=target.parent)
            now, mode = node_at(self._context, path, None), before.mode
            is_same = isinstance(now, DirectoryNode) and now.mode == mode
            is_same = is_same and before.metadata in (None, getattr(now, "metadata", None))
            if mode is not None and not is_same:
                self._set_directory(path, before)
        elif isinstance(after, DirectoryNode):
            with suppress(NotFoundError, NotDirectoryError), self._at(path) as target:
                try:
                    os.rmdir(target.name, dir_fd=target.parent)
                except OSError as error:
                    if error.errno not in _NOT_EMPTY:  # others have put entries into it
                        raise
        elif self._present(change) == after and self._has_source(change):
            step = _Step(Change(path, after, before))
            if before is not None:
                step.temporary = self._new_temporary(os.path.dirname(path))
                with self._at(step.temporary) as at:
                    self._build(step, at, is_synced=True)
            self._make(step)

    def _has_source(self, change: Change) -> bool:
        """Return False for the copy of a file whose source is gone: the copy is the only one."""
        return not change.moved_from or node_at(self._context, change.moved_from, None) is not None

    def _move_back(self, change: Change, inode: int) -> None:
        to, back = self._at(change.path), self._at(change.moved_from)
        with suppress(FileNotFoundError, FileExistsError), to as target, back as source:
            if syscalls.lstat(target.parent, target.name).st_ino == inode:
                syscalls.rename_new(target.parent, target.name, source.name, to=source.parent)

    def _retry(self, act: Callable[[], object]) -> bool:
        """Repeat an act that fails because of a race; return False if it keeps failing."""
        while True:
            try:
                act()
            except (OSError, AgentFSError, ConcurrentChange):
                now = time.monotonic()
                self._retry_until = self._retry_until or now + _RETRY_SECONDS
                if now > self._retry_until:
                    return False
                time.sleep(_RETRY_PAUSE)
            else:
                return True


def _occupied(path: str) -> ConflictError:
    message = f"{quote(path)} cannot become what it was: another program has created entries in it."
    return error_of(ConflictError, path, message, "Move them elsewhere, or undo other paths.")


def _in_order(steps: Sequence[_Step]) -> Sequence[_Step]:
    """Return the steps other than renames, each directory before its entries."""
    left = [each for each in steps if not each.renames]
    return sorted(left, key=lambda step: step.change.path.replace("/", "\0"))


def _is_closed(node: Node | None) -> bool:
    """Return True for a directory whose owner may not change its entries."""
    return isinstance(node, DirectoryNode) and node.mode is not None and ~node.mode & _OWNER != 0
