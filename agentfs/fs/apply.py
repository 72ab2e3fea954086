"""`Root.apply`: make several changes, all of them or none.

New files and directories are built as temporaries first, because that is likely to fail; a directory is
built with all its entries. Then each change is one rename, unlink or rmdir. If one of them fails, those
before it are reversed. The journal begins its step before the first and ends it after the last, so a begun
step is the record of a change that a kill cut short. The lock file is the record of the temporaries.
"""

import errno
import os
import stat
import time
from collections.abc import Callable, Container, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from agentfs.base import call_context
from agentfs.base.advice import Advice, call
from agentfs.errors import AgentFSError, ConflictError, NotDirectoryError, NotFoundError
from agentfs.fs import oserrors, syscalls
from agentfs.fs.context import RootContext, is_unchanged
from agentfs.fs.file import apply_metadata, create_temporary, node_at, node_in, notes_on_replacing
from agentfs.fs.lock import file_locks, forget_temporaries, record_temporary
from agentfs.fs.node import (
    Change,
    Conflict,
    DirectoryNode,
    EntryNode,
    FileNode,
    LinkNode,
    LogStep,
    Metadata,
    MovedNode,
    MovedTree,
    Node,
    NotRestoredError,
    expanded,
    mode_of,
)
from agentfs.fs.path import quote
from agentfs.fs.resolve import ResolvedPath, resolve_real
from agentfs.text.display import first_names

_NOT_EMPTY = {errno.ENOTEMPTY, errno.EEXIST}
_RETRY_SECONDS = 0.5  # how long a failed batch retries to reverse its changes
_RETRY_PAUSE = 0.001
_NOTED_PATHS = 5
_PIECE = 1024 * 1024
_OWNER = stat.S_IRWXU
_SYNCED_TOGETHER = 16  # new files, from which on their file system is synced instead of each
_NONE: Mapping[str, str] = {}


class ApplyOptions(NamedTuple):
    """The arguments of `Root.apply`."""

    max_bytes: int
    conflict: Conflict
    # Records changes that a block makes; gives them with contents loaded from the store.
    log_step: LogStep = nullcontext
    undoing: bool = False


class Applied(NamedTuple):
    """The outcome of `Root.apply`."""

    remaining: tuple[str, ...] = ()  # directories that were not removed because they have other entries
    notes: tuple[str, ...] = ()


_Step = tuple[Callable[["_Batch", Change], None], Change]


class _NotRenamedError(Exception):
    """A move leads to another file system, or the system cannot rename the directory of an overlay."""


def directories_above(path: str) -> Generator[str]:
    """Yield the directories above a path, innermost first."""
    while path := path.rpartition("/")[0]:
        yield path


def apply_changes(context: RootContext, changes: Sequence[Change], options: ApplyOptions) -> Applied:
    """Implement `Root.apply`."""
    path = context.displayed(changes[0].path) if changes else "."
    with file_locks(context.trees.lock_keys, context.trees.root.source, path), _excluding_others(context):
        wanted = _checked(context, _with_parents(context, changes), changes, options)
        with suppress(_NotRenamedError):
            return _Batch(context, options, renames=_renames(wanted)).apply(wanted)
        return _Batch(context, options).apply(expanded(wanted))  # copy to the other file system, then remove


def apply_single(context: RootContext, held: ResolvedPath, change: Change, options: ApplyOptions) -> Applied:
    """Make one change of a file at a path that the caller has locked and checked."""
    if change.before is not None:
        return _Batch(context, options, held).apply([change])
    made = [Change(path, None, DirectoryNode()) for path in held.missing_directories]
    with _excluding_others(context):
        return _Batch(context, options, held).apply([*made, change])


def _excluding_others(context: RootContext) -> AbstractContextManager[object]:
    # Directories have no locks, so keep other threads from adding or removing entries.
    return nullcontext() if context.recorder is None else context.recorder.exclusive()


def _with_parents(context: RootContext, changes: Sequence[Change]) -> list[Change]:
    """Return the changes, plus one for each missing directory above a created node."""
    wanted = {change.path: change for change in changes}
    for change in changes:
        if change.before is not None or change.after is None:
            continue
        for above in directories_above(change.path):
            if above in wanted or node_at(context, above, None) is not None:
                break
            wanted[above] = Change(above, None, DirectoryNode())
    return list(wanted.values())


def _renames(changes: Sequence[Change]) -> dict[str, str]:
    """Return the old path of each file, link and tree that moves unchanged, by its new path."""
    moved = [each for each in changes if each.moved_from and each.before is None]
    if not moved:
        return {}
    old = {each.path: each.before for each in changes if each.after is None}
    turning = {each.path for each in changes if each.turns}
    return {
        each.path: each.moved_from
        for each in moved
        if not isinstance(each.after, DirectoryNode)
        and old.get(each.moved_from) == each.after
        and not _is_below(each.path, turning)
        and not _is_below(each.moved_from, turning)
    }


def _checked(
    context: RootContext, changes: Sequence[Change], requested: Sequence[Change], options: ApplyOptions
) -> list[Change]:
    """Drop the changes that are made already. Raise an error if another is forbidden or in conflict."""
    named = {change.path for change in requested}
    unasked = context.view(access=None)  # who may create a node may create the directories above it
    turning = {change.path for change in changes if change.turns}

    def node(change: Change) -> Node | None:
        at = context if change.path in named else unasked
        top = next((above for above in directories_above(change.path) if above in turning), None)
        if top is not None and not isinstance(node_at(at, top, None), DirectoryNode):
            return None  # there is a file or a link, which becomes a directory
        return _present(at, change, options.max_bytes)

    wanted: list[Change] = []
    made: set[str] | None = None
    for change in changes:
        path, before, after = change.path, change.before, change.after
        present = node(change)
        if isinstance(after, DirectoryNode) and isinstance(present, DirectoryNode):
            if not isinstance(before, DirectoryNode) or after.mode == present.mode:
                continue  # created already
        elif present is None and after is None and change.of_directory:
            continue  # removed already
        elif present != before:
            if options.undoing and made is None:
                made = _already_made(changes, node)
            if made is None or path not in made:
                raise options.conflict(change, present)
            continue
        at = context if path in named else unasked
        if present is None and _is_below(path, turning):
            at.check_names(path, (path,))
        else:
            with resolve_real(at, path, create_parents=True) as resolved:
                resolved.check_may_change()
        if isinstance(tree := before or after, MovedTree):
            _check_entries(context, path, tree)
        if isinstance(before, FileNode) and isinstance(present, FileNode):
            before = replace(before, metadata=present.metadata)
        wanted.append(replace(change, before=present if isinstance(present, DirectoryNode) else before))
    return wanted


def _check_entries(context: RootContext, top: str, tree: MovedTree) -> None:
    """Raise an error if an entry of a tree may not be moved from or to a path."""
    for below, _, entries in tree.listing:
        names = [name for each in entries.values() for name in each]
        for name in context.unchangeable_names(top + below, names):
            path = f"{top}{below}/{name}"
            context.check_names(path, (path,))


def _present(context: RootContext, change: Change, max_bytes: int) -> Node | None:
    """Return the node at the path of a change; unread if the change moves it."""
    moved = change.before or change.after
    is_unread = isinstance(moved, MovedNode | MovedTree)
    present = node_at(context, change.path, None if is_unread else max_bytes, is_kept=False)
    return moved if isinstance(moved, MovedTree) and isinstance(present, DirectoryNode) else present


def _is_below(path: str, directories: Container[str]) -> bool:
    return any(above in directories for above in directories_above(path))


def _already_made(changes: Sequence[Change], node: Callable[[Change], Node | None]) -> set[str]:
    """Return the paths that already have the wanted node. Of a moved file, return both paths or neither."""
    present = {change.path: node(change) for change in changes}
    missing = {each.after for each in changes if each.before is None and present[each.path] != each.after}
    return {
        each.path
        for each in changes
        if present[each.path] == each.after and not (each.after is None and each.before in missing)
    }


class _Batch:
    """Changes that are made together."""

    def __init__(
        self,
        context: RootContext,
        options: ApplyOptions,
        held: ResolvedPath | None = None,
        renames: Mapping[str, str] = _NONE,
    ) -> None:
        """Prepare a batch.

        Args:
            context: The root and its settings.
            options: The arguments of `Root.apply`.
            held: The resolved path of a single file.
            renames: The old path of each new one that is renamed.
        """
        self._context, self._options, self._held = context, options, held
        self._renames = renames
        self._renamed = {*renames, *renames.values()}
        self._new: dict[str, str] = {}  # the path of each new node as a temporary, by its final path
        self._tops: dict[str, str] = {}  # the outermost new directory that each new directory lies in
        self._inside: dict[str, list[Change]] = {}  # the changes in and below these, from the top down
        self._temporaries: set[str] = set()  # those that may exist
        self._copied: dict[str, tuple[str, os.stat_result]] = {}  # the target and status of each source
        # A function that reverses each change that was made, unless the path has changed since.
        self._reversals: list[tuple[str, Callable[[], object]]] = []
        self._remaining: list[str] = []
        self._notes: dict[str, list[str]] = {}  # each with the paths it is about
        self._closed: set[str] = set()  # directories whose owner may not change their entries yet
        self._retry_until = 0.0
        self._is_synced = True  # each new file by itself

    def apply(self, changes: Sequence[Change]) -> Applied:
        """Make the changes, or reverse those that were made."""
        try:
            with self._options.log_step(self._prepared(changes)) as recorded:
                try:
                    call_context.begin_commit()  # a call cancelled during the recording changes nothing
                    for make, change in self._steps(recorded):
                        make(self, change)
                except BaseException as error:
                    self._remove_temporaries()  # reversals may need their space
                    if isinstance(error, Exception) or not self._is_complete(recorded):
                        with call_context.uncounted():
                            self._reverse(error)  # before the journal looks at the outcome
                    raise
        except OSError as error:
            raise oserrors.from_oserror(error, changes[0].path if changes else ".") from None
        finally:
            self._remove_temporaries()
            self._reversals.clear()  # they refer to this object, and to contents
        if self._held is not None:
            return Applied(tuple(self._remaining), tuple(self._notes))
        notes = [f"{note}: {self._names(paths)}" for note, paths in self._notes.items()]
        return Applied(tuple(self._remaining), tuple(notes))

    def _steps(self, changes: Sequence[Change]) -> list[_Step]:
        """Return the steps in order. If possible, all new nodes are made before old ones are removed."""
        if len(changes) == 1 and not changes[0].of_directory:
            return [(_Batch.put if changes[0].after else _Batch.remove, changes[0])]
        moved = [each for each in changes if each.path in self._renames]
        others = [each for each in changes if each.path not in self._renamed]
        others.sort(key=lambda change: change.path)
        turning = {each.path for each in others if each.turns}

        def is_early(change: Change) -> bool:
            return change.path in turning or (bool(turning) and _is_below(change.path, turning))

        new = [each for each in others if each.path in self._new and self._top(each) in (None, each.path)]
        removed = [each for each in reversed(others) if each.before and (each.after is None or each.turns)]
        directories = [each for each in others if isinstance(each.after, DirectoryNode)]
        kept = [each for each in directories if each.path not in self._tops]
        return [
            *((_Batch.open_to_owner, each) for each in removed if _is_closed(each.before)),
            *((_Batch.set_mode, each) for each in kept if not _is_closed(each.after)),
            *((_Batch.remove, each) for each in removed if is_early(each)),
            *((_Batch.put, each) for each in new if each.path in self._tops),
            *((_Batch.move, each) for each in moved),
            *((_Batch.put, each) for each in new if each.path not in self._tops),
            *((_Batch.remove, each) for each in removed if not is_early(each)),
            *((_Batch.set_mode, each) for each in reversed(directories) if _is_closed(each.after)),
        ]

    def _top(self, change: Change) -> str | None:
        """Return the outermost new directory that a change lies in or makes."""
        return self._tops.get(change.path) or self._tops.get(os.path.dirname(change.path))

    def _is_complete(self, changes: Sequence[Change]) -> bool:
        """Return True if an interrupt came after the last change."""
        return bool(self._reversals) and all(self._present(each) == each.after for each in changes)

    def _present(self, change: Change) -> Node | None:
        return _present(self._context, change, self._options.max_bytes)

    def _names(self, paths: Sequence[str]) -> str:
        shown = [quote(self._context.displayed(path)) for path in sorted(paths)]
        return first_names(shown, _NOTED_PATHS)

    def _at(self, path: str) -> AbstractContextManager[ResolvedPath]:
        open_here = None if self._held is None else self._held.other(path)
        return resolve_real(self._context, path) if open_here is None else nullcontext(open_here)

    # Temporaries

    def _prepared(self, changes: Sequence[Change]) -> tuple[Change, ...]:
        """Build the new nodes; return the changes with the modes of new files."""
        if len(changes) == 1 and not changes[0].of_directory:
            return (self._prepare(changes[0]),)
        others = [each for each in changes if each.path not in self._renamed]
        self._closed = {each.path for each in others if _is_closed(each.before)}
        others.sort(key=lambda change: change.path)
        self._is_synced = sum(isinstance(each.after, FileNode) for each in others) < _SYNCED_TOGETHER
        prepared = {each.path: self._prepare(each) for each in others}
        if not self._is_synced:
            self._sync_file_systems()
        for path in reversed(self._tops):  # a directory gets its mode after its entries
            node = prepared[path].after
            if isinstance(node, DirectoryNode) and not _is_closed(node):
                self._give_mode(path, node, at=self._new[path])
        return tuple([prepared.get(each.path, each) for each in changes])

    def _sync_file_systems(self) -> None:
        """Write the data of all new files to the disk."""
        synced: set[int] = set()
        for path in {os.path.dirname(each): each for each in self._temporaries}.values():
            with self._at(path) as at:
                device = os.fstat(at.parent).st_dev
                if device not in synced:
                    syscalls.sync_file_system(at.parent)
                synced.add(device)

    def _prepare(self, change: Change) -> Change:
        """Build the new node of a change; return the change with the mode of a new file."""
        call_context.check()
        path, before, after = change.path, change.before, change.after
        above = os.path.dirname(path)
        if isinstance(after, DirectoryNode) and not isinstance(before, DirectoryNode):
            self._tops[path] = self._tops.get(above, path)
        elif not isinstance(after, EntryNode):
            return change
        top = self._tops.get(path) or self._tops.get(above)
        if top in (None, path):
            self._new[path] = self._new_temporary(above)
        else:
            self._new[path] = self._new[top] + path[len(top) :]
        try:
            change = self._build(change)
        except OSError as error:
            raise oserrors.from_oserror(error, self._context.displayed(path)) from None
        if top is not None:
            self._inside.setdefault(top, []).append(change)
        return change

    def _build(self, change: Change) -> Change:
        path, before, after = change.path, change.before, change.after
        with self._at(self._new[path]) as at:
            if isinstance(after, DirectoryNode):
                os.mkdir(at.name, 0o777 if after.mode is None else 0o700, dir_fd=at.parent)
                if self._held is not None:
                    self._held.enter(at.name)
            elif isinstance(after, MovedNode):
                self._copied[change.moved_from] = path, self._copy(change.moved_from, at)
            elif isinstance(after, LinkNode):
                os.symlink(after.target, at.name, dir_fd=at.parent)
            elif isinstance(after, FileNode):
                return self._build_file(change, after, before if isinstance(before, FileNode) else None, at)
        return change

    def _build_file(self, change: Change, node: FileNode, old: FileNode | None, at: ResolvedPath) -> Change:
        """Write a temporary with the metadata of its node, or of the file that it will replace."""
        metadata, notes = node.metadata, list[str]()
        if old is not None:
            metadata = metadata and (old.metadata or metadata)
            with self._at(change.path) as target:
                replaced = target.stat()
                notes += [] if replaced is None else notes_on_replacing(replaced)
        notes += create_temporary(at.parent, at.name, node, metadata, is_synced=self._is_synced)
        for note in notes:
            self._notes.setdefault(note, []).append(change.path)
        if node.metadata is not None:
            return change
        mode = syscalls.lstat(at.parent, at.name).st_mode & 0o777
        return replace(change, after=replace(node, mode=mode, metadata=Metadata(mode)))

    def _copy(self, source: str, at: ResolvedPath) -> os.stat_result:
        """Copy a link, or a file of any size, to another file system; return the status of the source."""
        with self._at(source) as old:
            status = syscalls.lstat(old.parent, old.name)
            if stat.S_ISLNK(status.st_mode):
                os.symlink(syscalls.readlink(old.parent, old.name), at.name, dir_fd=at.parent)
                return status
            if not stat.S_ISREG(status.st_mode):
                raise oserrors.not_regular(self._context.displayed(source), status.st_mode)
            fd = syscalls.open_file(old.parent, old.name)
        with open(fd, "rb") as file, open(syscalls.create_file(at.parent, at.name, 0o600), "wb") as copy:
            status = os.fstat(fd)
            while piece := file.read(_PIECE):
                call_context.check()
                copy.write(piece)
            copy.flush()
            mode = status.st_mode & 0o777
            apply_metadata(copy.fileno(), Metadata(mode, (status.st_uid, status.st_gid)))
            os.fsync(copy.fileno())
        return status

    def _new_temporary(self, directory: str) -> str:
        """Return the path of a new temporary in a directory.

        If its owner may not change the directory yet, the temporary lies in a private one outside.
        """
        outside: str = directory
        while outside in self._closed:
            outside = os.path.dirname(outside)
        temporary = os.path.join(outside, f".agentfs-{os.urandom(8).hex()}.tmp")
        record_temporary(self._context.trees.path_on_disk(temporary))
        self._temporaries.add(temporary)
        if outside == directory:
            return temporary
        with self._at(temporary) as at:
            os.mkdir(at.name, 0o700, dir_fd=at.parent)
        return f"{temporary}/new"

    def _remove_temporaries(self) -> None:
        """Remove what is left of the temporaries. The lock file keeps the names of those that stay."""
        if self._temporaries:
            with call_context.uncounted():
                removed = [self._retry(partial(self._remove_temporary, path)) for path in self._temporaries]
            if not all(removed):
                return
        forget_temporaries()

    def _remove_temporary(self, path: str) -> None:
        with suppress(FileNotFoundError), self._at(path) as at:
            syscalls.remove_all(at.parent, at.name)

    # Changes

    def put(self, change: Change) -> None:
        """Rename a temporary to its path."""
        path, reversals = change.path, len(self._reversals)
        with self._at(self._new[path]) as source, self._at(path) as target:
            if change.before is not None and not change.turns:
                self._check_unchanged(change, target)
                self._reversals.append((path, partial(self._restore, change)))
                syscalls.replace(source.parent, source.name, target.name, to=target.parent)
                self._temporaries.discard(self._new[path])
            else:
                for each in self._inside.get(path, [change]):
                    reverse = partial(self._unmake, each.path)
                    if not isinstance(each.after, DirectoryNode):
                        reverse = partial(self._restore, replace(each, before=None))
                    self._reversals.append((each.path, reverse))
                try:
                    syscalls.rename_new(source.parent, source.name, target.name, to=target.parent)
                except FileExistsError:
                    del self._reversals[reversals:]
                    present = node_in(self._context, target, self._options.max_bytes)
                    raise self._options.conflict(change, present) from None

    def move(self, change: Change) -> None:
        """Rename a file, or a directory with all its entries."""
        with self._at(change.moved_from) as source, self._at(change.path) as target:
            inode = syscalls.lstat(source.parent, source.name).st_ino
            reverse = partial(self._move_back, change.path, change.moved_from, inode)
            self._reversals.append((change.moved_from, reverse))
            try:
                syscalls.rename_new(source.parent, source.name, target.name, to=target.parent)
            except FileExistsError:
                present = node_in(self._context, target, self._options.max_bytes)
                raise self._options.conflict(change, present) from None
            except OSError as error:
                # The owner of a read-only directory may not rename it, but undo may open it.
                if error.errno == errno.EXDEV or (error.errno == errno.EACCES and self._options.undoing):
                    raise _NotRenamedError from None
                raise

    def remove(self, change: Change) -> None:
        """Remove a file, a link or a directory."""
        with self._at(change.path) as target:
            if not isinstance(change.before, DirectoryNode):
                self._check_unchanged(change, target)
                self._reversals.append((change.path, partial(self._restore, replace(change, after=None))))
                os.unlink(target.name, dir_fd=target.parent)
                return
            self._reversals.append((change.path, partial(self._make_again, change)))
            try:
                os.rmdir(target.name, dir_fd=target.parent)
            except OSError as error:
                if error.errno not in _NOT_EMPTY:
                    raise
                if change.after is not None and self._options.undoing:
                    raise _occupied(self._context.displayed(change.path)) from None
                if not self._options.undoing:  # another program has added an entry
                    raise self._options.conflict(change, change.before) from None
                self._remaining.append(change.path)

    def set_mode(self, change: Change) -> None:
        """Give a directory its mode and owner."""
        path, after = change.path, change.after
        if isinstance(after, DirectoryNode):
            old = change.before if isinstance(change.before, DirectoryNode) else DirectoryNode(0o700)
            self._reversals.append((path, partial(self._restore_directory, path, old)))
            self._give_mode(path, after, at=path)

    def _give_mode(self, path: str, node: DirectoryNode, *, at: str) -> None:
        if node.mode is not None:  # otherwise the system has decided it
            for note in self._set_directory(at, node):
                self._notes.setdefault(note, []).append(path)

    def open_to_owner(self, change: Change) -> None:
        """Let the owner change entries of a directory that will be removed, if a step had closed it."""
        old = change.before
        if self._options.undoing and isinstance(old, DirectoryNode) and old.mode is not None:
            self._reversals.append((change.path, partial(self._set_directory, change.path, old)))
            self._set_directory(change.path, DirectoryNode(old.mode | _OWNER))

    def _check_unchanged(self, change: Change, target: ResolvedPath) -> None:
        # Other programs do not take our lock and may have written.
        if target is self._held and target.is_settled():
            return
        if change.path in self._copied:
            now, (_, copied) = target.stat(), self._copied[change.path]
            if now is not None and is_unchanged(copied, now):
                return
            raise self._options.conflict(change, node_in(self._context, target, None))
        present = node_in(self._context, target, self._options.max_bytes, is_kept=False)
        if present != change.before:
            raise self._options.conflict(change, present)

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

    def _restore_directory(self, path: str, old: DirectoryNode) -> None:
        """Give a directory its old mode and owner back, if it has others."""
        now = node_at(self._context, path, None)
        is_old = isinstance(now, DirectoryNode) and now.mode == old.mode
        if not is_old or old.metadata not in (None, getattr(now, "metadata", None)):
            self._set_directory(path, old)

    def _reverse(self, error: BaseException) -> None:
        """Reverse what was made, the latest first. Raise `io` if that fails, for the journal to keep it."""
        failed = [path for path, reverse in reversed(self._reversals) if not self._retry(reverse)]
        if not failed or not isinstance(error, Exception):
            return
        cause = oserrors.from_oserror(error, failed[-1]) if isinstance(error, OSError) else error
        message, details = getattr(cause, "message", repr(cause)), getattr(cause, "details", {})
        raise NotRestoredError(
            f"A change failed half way, and {self._names(failed)} could not be restored: {message}",
            hint=Advice("When nothing hinders it any more, restore it: ", call("undo"), "."),
            details={**details, "not_restored": [*map(self._context.displayed, failed)]},
        ) from None

    def _restore(self, change: Change) -> None:
        """Put the old node of a file or link back, unless others have changed it."""
        path, before, after = change.path, change.before, change.after
        present = self._present(change)
        if present == before or present != after:
            return
        if before is None:
            # The target of a copied file is removed only if the source is there.
            is_copy = isinstance(after, MovedNode)
            if not is_copy or node_at(self._context, change.moved_from, None) is not None:
                with self._at(path) as target:
                    os.unlink(target.name, dir_fd=target.parent)
            return
        temporary = self._new_temporary(os.path.dirname(path))
        with self._at(temporary) as source, self._at(path) as target:
            if isinstance(before, MovedNode):
                self._copy(self._copied[path][0], source)
            elif isinstance(before, LinkNode):
                os.symlink(before.target, source.name, dir_fd=source.parent)
            elif isinstance(before, FileNode):
                create_temporary(source.parent, source.name, before, before.metadata)
            if present is None:
                syscalls.rename_new(source.parent, source.name, target.name, to=target.parent)
            else:
                syscalls.replace(source.parent, source.name, target.name, to=target.parent)

    def _move_back(self, path: str, source: str, inode: int) -> None:
        with suppress(FileNotFoundError, FileExistsError), self._at(path) as target, self._at(source) as old:
            if syscalls.lstat(target.parent, target.name).st_ino == inode:
                syscalls.rename_new(target.parent, target.name, old.name, to=old.parent)

    def _make_again(self, change: Change) -> None:
        with suppress(FileExistsError), self._at(change.path) as target:
            os.mkdir(target.name, 0o700, dir_fd=target.parent)
        if isinstance(change.before, DirectoryNode) and change.before.mode is not None:
            self._set_directory(change.path, change.before)

    def _unmake(self, path: str) -> None:
        with suppress(NotFoundError, NotDirectoryError), self._at(path) as target, suppress(OSError):
            os.rmdir(target.name, dir_fd=target.parent)

    def _retry(self, act: Callable[[], object]) -> bool:
        """Repeat an act that fails because of a race; return False if it keeps failing."""
        while True:
            try:
                act()
            except (OSError, AgentFSError):
                now = time.monotonic()
                self._retry_until = self._retry_until or now + _RETRY_SECONDS
                if now > self._retry_until:
                    return False
                time.sleep(_RETRY_PAUSE)
            else:
                return True


def _occupied(path: str) -> ConflictError:
    return ConflictError(
        f"{quote(path)} cannot become what it was: another program has created entries in the directory.",
        hint="Move them elsewhere, or undo other paths.",
        details={"path": path},
    )


def _is_closed(node: Node | None) -> bool:
    """Return True for a directory whose owner may not change its entries."""
    mode = mode_of(node)
    return mode is not None and ~mode & _OWNER != 0
