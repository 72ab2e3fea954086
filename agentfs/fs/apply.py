"""`Root.apply`: make several changes, all of them or none.

New contents are written to temporaries first, because that is likely to fail. Then each change is one rename,
unlink or mkdir. If one of them fails, those before it are reversed. The journal begins its step before the
first and ends it after the last, so a begun step is the record of a change that a kill cut short.
"""

import errno
import os
import stat
import time
from bisect import bisect_left
from collections.abc import Callable, Collection, Container, Generator, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from agentfs.base import call_context
from agentfs.base.advice import Advice, call
from agentfs.errors import AgentFSError, ConflictError, NotDirectoryError, NotFoundError, RefusedError
from agentfs.fs import oserrors, syscalls
from agentfs.fs.context import RootContext, is_unchanged
from agentfs.fs.file import (
    apply_metadata,
    create_temporary,
    new_temporary,
    node_at,
    node_in,
    remove_stale_temporaries,
    unread_at,
    unread_in,
)
from agentfs.fs.lock import ATTEMPTS, file_locks
from agentfs.fs.node import (
    Change,
    Conflict,
    DirectoryNode,
    EntryNode,
    FileNode,
    LinesBy,
    LinkNode,
    LogStep,
    Metadata,
    MovedNode,
    Node,
    NotRestoredError,
    Recorder,
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


class ApplyOptions(NamedTuple):
    """The arguments of `Root.apply`."""

    max_bytes: int
    conflict: Conflict
    recorder: Recorder | None = None
    log_step: LogStep | None = None  # in place of the recorder's `logging_step`
    undoing: bool = False
    by_others: tuple[LinesBy, ...] = ()  # for the recorder

    def recording(self, changes: tuple[Change, ...]) -> AbstractContextManager[tuple[Change, ...]]:
        """Record changes that the block makes; give them with contents loaded from the store."""
        if self.log_step is not None:
            return self.log_step(changes)
        if self.recorder is None:
            return nullcontext(changes)
        return self.recorder.logging_step(changes, by_others=self.by_others)


class Applied(NamedTuple):
    """The outcome of `Root.apply`."""

    remaining: tuple[str, ...] = ()  # directories that were not removed because they have other entries
    notes: tuple[str, ...] = ()


_Step = tuple[Callable[["_Batch", Change], None], Change]


class _NotRenamedError(Exception):
    """A move leads to another file system, or the system cannot rename the directory of an overlay."""


def directories_above(path: str) -> Generator[str]:
    """Yield the directories above a path, innermost first."""
    while path := os.path.dirname(path):
        yield path


def apply_changes(
    context: RootContext, root_path: str, changes: Sequence[Change], options: ApplyOptions
) -> Applied:
    """Implement `Root.apply`."""
    with _locked(context, root_path, changes), _excluding_others(options.recorder):
        wanted = _with_parents(context, changes)
        renames = _Renames.of(wanted)
        wanted = _checked(context, wanted, changes, options, renames)
        with suppress(_NotRenamedError):
            return _Batch(context, options, renames=renames).apply(wanted)
        return _Batch(context, options).apply(wanted)  # copy to the other file system, then remove


def apply_single(context: RootContext, held: ResolvedPath, change: Change, options: ApplyOptions) -> Applied:
    """Make one change of a file at a path that the caller has locked and checked."""
    made = [Change(path, None, DirectoryNode()) for path in held.missing_directories]
    with _excluding_others(options.recorder if change.before is None else None):
        return _Batch(context, options, held).apply([*made, change])


def _excluding_others(recorder: Recorder | None) -> AbstractContextManager[object]:
    # Directories have no locks, so keep other threads from adding or removing entries.
    return nullcontext() if recorder is None else recorder.exclusive()


@contextmanager
def _locked(context: RootContext, root_path: str, changes: Iterable[Change]) -> Generator[None]:
    """Lock the devices of some changes for the block."""
    directories = {os.path.dirname(change.path): change.path for change in changes}
    for _ in range(ATTEMPTS):
        keys = {_device(context, directory): path for directory, path in directories.items()}
        with file_locks(keys, root_path) as waited:
            # If a path now leads to another device, these are the wrong locks.
            if not waited or keys == {_device(context, each): path for each, path in directories.items()}:
                yield
                return
    raise oserrors.kept_changing(next(iter(directories.values())))


def _device(context: RootContext, directory: str) -> str:
    """Return the key of the lock for changes in a directory, which may be missing."""
    while True:
        try:
            with resolve_real(context, f"{directory}/." if directory else ".", create_parents=True) as at:
                return at.lock_key
        except (NotDirectoryError, RefusedError):  # a file or a link, which becomes a directory
            directory = os.path.dirname(directory)


def _with_parents(context: RootContext, changes: Sequence[Change]) -> list[Change]:
    """Return the changes, plus one for each missing directory above a created node."""
    wanted = {change.path: change for change in changes}
    for change in changes:
        if change.before is not None or change.after is None:
            continue
        for above in directories_above(change.path):
            if above in wanted or unread_at(context, above) is not None:
                break
            wanted[above] = Change(above, None, DirectoryNode())
    return list(wanted.values())


class _Renames(NamedTuple):
    """The files and whole directories that move unchanged, each by one rename."""

    sources: Mapping[str, str] = {}  # by target
    along: Collection[str] = ()  # all paths below these sources and targets

    @classmethod
    def of(cls, changes: Sequence[Change]) -> "_Renames":
        """Return the moves among some changes."""
        created = {each.path: each for each in changes if each.before is None and each.after is not None}
        new = {path: (each.after, _mode(each.after)) for path, each in created.items()}
        old = {each.path: (each.before, _mode(each.before)) for each in changes if each.after is None}
        targets, sources = sorted(new), sorted(old)
        turning = {each.path for each in changes if _turns(each)}
        found, along = dict[str, str](), set[str]()
        for path in targets:
            source = created[path].moved_from
            if source not in old or path in along:
                continue
            here, there = _at_or_below(path, targets), _at_or_below(source, sources)
            unchanged = [(each[len(path) :], new[each]) for each in here] == [
                (each[len(source) :], old[each]) for each in there
            ]
            if unchanged and not _is_below(path, turning) and not _is_below(source, turning):
                found[path] = source
                along.update(here[1:], there[1:])
        return cls(found, along)


_NO_RENAMES = _Renames()


def _at_or_below(top: str, paths: Sequence[str]) -> Sequence[str]:
    """Return a path and those below it; `paths` are in order."""
    below = paths[bisect_left(paths, f"{top}/") : bisect_left(paths, f"{top}0")]  # "0" follows "/"
    return [top, *below]


def _checked(
    context: RootContext,
    changes: Sequence[Change],
    requested: Sequence[Change],
    options: ApplyOptions,
    renames: _Renames,
) -> list[Change]:
    """Drop the changes that are made already. Raise an error if another is forbidden or in conflict."""
    named = {change.path for change in requested}
    unasked = replace(context, access=None)  # who may create a node may create the directories above it
    turning = {change.path for change in changes if _turns(change)}

    def node(change: Change) -> Node | None:
        path = change.path
        at = context if path in named else unasked
        top = next((above for above in directories_above(path) if above in turning), None)
        if top is not None and not isinstance(unread_at(at, top), DirectoryNode):
            return None  # there is a file or a link, which becomes a directory
        if isinstance(change.before or change.after, MovedNode):
            return unread_at(at, path)
        return node_at(at, path, options.max_bytes)

    wanted: list[Change] = []
    made: set[str] | None = None
    along: dict[str, list[str]] = {}  # the names that a rename takes along unread, by directory
    for change in changes:
        path, before, after = change.path, change.before, change.after
        if path in renames.along and isinstance(before or after, MovedNode):
            directory, _, name = path.rpartition("/")
            along.setdefault(directory, []).append(name)
            wanted.append(change)
            continue
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
            at.check_may_change(path, (path,))
        else:
            with resolve_real(at, path, create_parents=True) as resolved:
                resolved.check_may_change()
        if isinstance(before, FileNode) and isinstance(present, FileNode):
            before = replace(before, metadata=present.metadata)
        wanted.append(replace(change, before=present if isinstance(present, DirectoryNode) else before))
    for directory, names in along.items():
        for name in context.unchangeable_names(directory, names):
            context.check_may_change(f"{directory}/{name}", (f"{directory}/{name}",))
    return wanted


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
        renames: _Renames = _NO_RENAMES,
    ) -> None:
        """Prepare a batch.

        Args:
            context: The root and its settings.
            options: The arguments of `Root.apply`.
            held: The resolved path of a single file.
            renames: The moves that are made by renames.
        """
        self._context, self._options, self._held = context, options, held
        self._renames = renames.sources
        self._renamed = {*renames.along, *renames.sources, *renames.sources.values()}
        self._temporaries: dict[str, str] = {}  # by the path of the change
        self._copied: dict[str, tuple[str, os.stat_result]] = {}  # the target and status of each source
        self._private: dict[str, str] = {}  # a directory for temporaries, by the directory in which it lies
        # A function that reverses each change that was made; it returns False if the path has changed since.
        self._reversals: list[tuple[str, Callable[[], bool]]] = []
        self._remaining: list[str] = []
        self._notes: dict[str, list[str]] = {}  # each with the paths it is about
        self._sets_modes = False  # True if a directory gets a mode of its own
        self._closed = set[str]()  # directories whose owner may not change their entries yet
        self._retry_until = 0.0

    def apply(self, changes: Sequence[Change]) -> Applied:
        """Make the changes, or reverse those that were made."""
        try:
            if len(changes) > 1:
                self._sets_modes = any(_mode(each.after) is not None for each in changes)
                self._closed = {each.path for each in changes if _is_closed(each.before)}
            prepared = tuple(
                [each if each.path in self._renamed else self._prepare(each) for each in changes]
            )
            with self._options.recording(prepared) as recorded:
                try:
                    call_context.begin_commit()  # a call cancelled during the recording changes nothing
                    for make, change in self._steps(recorded):
                        make(self, change)
                except BaseException as error:
                    with call_context.uncounted():
                        self._remove_temporaries()
                        if isinstance(error, Exception) or not self._is_complete(recorded):
                            self._reverse(error)  # before the journal looks at the outcome
                    raise
        except BaseException as error:
            with call_context.uncounted():
                self._remove_temporaries()
            if isinstance(error, OSError) and not isinstance(error, AgentFSError):
                raise oserrors.from_oserror(error, changes[0].path if changes else ".") from None
            raise
        finally:
            self._reversals.clear()  # they refer to this object, and to contents
        self._remove_temporaries()
        if self._held is not None:
            return Applied(tuple(self._remaining), tuple(self._notes))
        notes = [f"{note}: {self._names(paths)}" for note, paths in self._notes.items()]
        return Applied(tuple(self._remaining), tuple(notes))

    def _steps(self, changes: Sequence[Change]) -> list[_Step]:
        if len(changes) == 1 and not self._renames and not changes[0].of_directory:
            return [(_Batch.put if changes[0].after else _Batch.remove, changes[0])]
        moved = [each for each in changes if each.path in self._renames]
        return _in_order([each for each in changes if each.path not in self._renamed], moved)

    def _is_complete(self, changes: Sequence[Change]) -> bool:
        """Return True if an interrupt came after the last change."""
        return bool(self._reversals) and all(self._present(each) == each.after for each in changes)

    def _present(self, change: Change) -> Node | None:
        """Return the node at the path of a change; unread if the change moves it."""
        if isinstance(change.before or change.after, MovedNode):
            return unread_at(self._context, change.path)
        return node_at(self._context, change.path, self._options.max_bytes)

    def _names(self, paths: Sequence[str]) -> str:
        shown = [quote(self._context.display_path(path)) for path in sorted(paths)]
        return first_names(shown, _NOTED_PATHS)

    def _at(self, path: str) -> AbstractContextManager[ResolvedPath]:
        open_here = None if self._held is None else self._held.other(path)
        return resolve_real(self._context, path) if open_here is None else nullcontext(open_here)

    @contextmanager
    def _changing(self, path: str) -> Generator[ResolvedPath]:
        """Resolve a path. OSErrors of the block become typed errors."""
        with self._at(path) as resolved:
            try:
                yield resolved
            except FileExistsError:
                raise
            except OSError as error:
                raise resolved.error(error) from None

    # Temporaries

    def _prepare(self, change: Change) -> Change:
        """Write the new node of a change to a temporary; return the change with the mode of a new file."""
        call_context.check()
        path, before, after = change.path, change.before, change.after
        if not isinstance(after, EntryNode):
            return change
        is_new = isinstance(after, FileNode) and after.metadata is None
        replaced: os.stat_result | None = None
        if isinstance(before, FileNode):
            with self._at(path) as target:
                replaced = target.stat()
        metadata = before.metadata if isinstance(before, FileNode) and not is_new else None
        self._temporaries[path] = temporary = self._temporary_for(path)
        with self._at(temporary) as at:
            if temporary == os.path.join(os.path.dirname(path), at.name):
                remove_stale_temporaries(self._context, at.parent)
            try:
                if isinstance(after, MovedNode):
                    self._copied[change.moved_from] = path, self._copy(change.moved_from, at)
                    return change
                for note in _create(at, after, replaced, metadata):
                    self._notes.setdefault(note, []).append(path)
                if isinstance(after, FileNode) and is_new:
                    mode = syscalls.lstat(at.parent, at.name).st_mode & 0o777
                    return replace(change, after=replace(after, mode=mode, metadata=Metadata(mode)))
            except OSError as error:
                raise at.error(error, os.path.basename(path)) from None
        return change

    def _copy(self, source: str, at: ResolvedPath) -> os.stat_result:
        """Copy a link, or a file of any size, to another file system; return the status of the source."""
        with self._at(source) as old:
            status = syscalls.lstat(old.parent, old.name)
            if stat.S_ISLNK(status.st_mode):
                os.symlink(syscalls.readlink(old.parent, old.name), at.name, dir_fd=at.parent)
                return status
            if not stat.S_ISREG(status.st_mode):
                raise oserrors.not_regular(self._context.display_path(source), status.st_mode)
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

    def _temporary_for(self, path: str) -> str:
        """Return the path of a new temporary, in the directory of a path.

        If that directory does not exist yet, the temporary lies in the nearest one that does. If the new
        directory may be closed to other users, so is a directory for the temporaries.
        """
        above = os.path.dirname(path)
        nearest = self._nearest(above) if self._held is None else self._held.parent_path
        if nearest != above and self._sets_modes:
            if nearest not in self._private:
                private = os.path.join(nearest, new_temporary("part"))
                with self._changing(private) as at:
                    os.mkdir(at.name, 0o700, dir_fd=at.parent)
                self._private[nearest] = private
            nearest = self._private[nearest]
        return os.path.join(nearest, new_temporary())

    def _nearest(self, directory: str) -> str:
        """Return the innermost existing directory at or above a path that is not closed."""
        while directory:
            if directory in self._closed:
                directory = os.path.dirname(directory)
                continue
            gone = NotFoundError, NotDirectoryError, RefusedError, FileNotFoundError
            with suppress(*gone), self._at(directory) as at:
                if not at.missing and stat.S_ISDIR(syscalls.lstat(at.parent, at.name).st_mode):
                    return directory
            directory = os.path.dirname(directory)
        return directory

    def _remove_temporaries(self) -> None:
        """Remove what is left of the temporaries and their private directories."""
        for path in (*self._temporaries.values(), *self._private.values()):
            self._retry(partial(self._remove_at, path))
        self._temporaries, self._private = {}, {}

    def _remove_at(self, path: str) -> bool:
        with suppress(NotFoundError, NotDirectoryError, FileNotFoundError), self._at(path) as at:
            if stat.S_ISDIR(syscalls.lstat(at.parent, at.name).st_mode):
                os.rmdir(at.name, dir_fd=at.parent)
            else:
                os.unlink(at.name, dir_fd=at.parent)
        return True

    # Changes

    def put(self, change: Change) -> None:
        """Rename a temporary to its path."""
        temporary = self._temporaries[change.path]
        with self._at(temporary) as source, self._changing(change.path) as target:
            if change.before is not None and not isinstance(change.before, DirectoryNode):
                self._check_unchanged(change, target)
                self._reversals.append((change.path, partial(self._restore, change)))
                syscalls.replace(source.parent, source.name, target.name, to=target.parent)
            else:
                self._reversals.append((change.path, partial(self._restore, replace(change, before=None))))
                try:
                    syscalls.rename_new(source.parent, source.name, target.name, to=target.parent)
                except FileExistsError:
                    self._reversals.pop()
                    present = node_in(self._context, target, self._options.max_bytes)
                    raise self._options.conflict(change, present) from None
        del self._temporaries[change.path]

    def move(self, change: Change) -> None:
        """Rename a file, or a directory with all its entries."""
        with self._changing(change.moved_from) as source, self._changing(change.path) as target:
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
        with self._changing(change.path) as target:
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
                    raise _occupied(self._context.display_path(change.path)) from None
                if not self._options.undoing:  # another program has added an entry
                    raise self._options.conflict(change, change.before) from None
                self._remaining.append(change.path)

    def make(self, change: Change) -> None:
        """Make a directory; one with a given mode is closed to others until `set_mode`."""
        mode = 0o777 if _mode(change.after) is None else 0o700
        with self._changing(change.path) as target:
            self._reversals.append((change.path, partial(self._unmake, change.path)))
            try:
                os.mkdir(target.name, mode, dir_fd=target.parent)
            except FileExistsError:
                self._reversals.pop()
                present = node_in(self._context, target, self._options.max_bytes)
                raise self._options.conflict(change, present) from None
        if self._held is not None and self._held.missing:
            self._held.enter_made()

    def set_mode(self, change: Change) -> None:
        """Give a directory its mode and owner."""
        after = change.after
        if not isinstance(after, DirectoryNode) or after.mode is None:  # the system has decided it
            return
        old = change.before if isinstance(change.before, DirectoryNode) else DirectoryNode(0o700)
        self._reversals.append((change.path, partial(self._set_mode, change.path, old)))
        for note in self._set_directory(change.path, after):
            self._notes.setdefault(note, []).append(change.path)

    def open_to_owner(self, change: Change) -> None:
        """Let the owner change entries of a directory that will be removed, if a step had closed it."""
        old = change.before
        if self._options.undoing and isinstance(old, DirectoryNode) and old.mode is not None:
            self._reversals.append((change.path, partial(self._set_mode, change.path, old)))
            self._set_directory(change.path, DirectoryNode(old.mode | _OWNER))

    def _check_unchanged(self, change: Change, target: ResolvedPath) -> None:
        # Other programs do not take our lock and may have written.
        if target is self._held and target.is_settled():
            return
        if change.path in self._copied:
            now, (_, copied) = target.stat(), self._copied[change.path]
            if now is None or not is_unchanged(copied, now):
                raise self._options.conflict(change, unread_in(target))
            return
        present = node_in(self._context, target, self._options.max_bytes)
        if present != change.before:
            raise self._options.conflict(change, present)

    def _set_directory(self, path: str, node: DirectoryNode) -> list[str]:
        with self._changing(path) as target:
            if node.metadata is None:
                syscalls.set_mode(target.parent, target.name, node.mode or 0)
                return []
            try:
                fd = syscalls.open_directory(target.parent, target.name)
            except PermissionError:  # its owner may not list it
                syscalls.set_mode(target.parent, target.name, node.metadata.mode)
                return []
            try:
                return apply_metadata(fd, node.metadata)
            finally:
                syscalls.close(fd)

    # Reversals

    def _reverse(self, error: BaseException) -> None:
        """Reverse what was made, the latest first. Raise `io` if that fails, for the journal to keep it."""
        failed = [path for path, reverse in reversed(self._reversals) if self._retry(reverse) is None]
        if not failed or not isinstance(error, Exception):
            return
        cause = oserrors.from_oserror(error, failed[-1]) if isinstance(error, OSError) else error
        message, details = getattr(cause, "message", repr(cause)), getattr(cause, "details", {})
        raise NotRestoredError(
            f"A change failed half way, and {self._names(failed)} could not be restored: {message}",
            hint=Advice("When nothing hinders it any more, restore it: ", call("undo"), "."),
            details={**details, "not_restored": [*map(self._context.display_path, failed)]},
        ) from None

    def _restore(self, change: Change) -> bool:
        """Put the old node of a file or link back; return False if others have changed it."""
        path, before, after = change.path, change.before, change.after
        present = self._present(change)
        if present == before:
            return True
        if present != after:
            return False
        if isinstance(before, DirectoryNode):
            return False
        if before is None:
            # The target of a copied file is removed only if the source is there.
            copied = isinstance(after, MovedNode)
            is_only = copied and unread_at(self._context, change.moved_from) is None
            return not is_only and self._remove_at(path)
        temporary = os.path.join(os.path.dirname(path), new_temporary())
        with self._at(temporary) as source, self._at(path) as target:
            try:
                if isinstance(before, MovedNode):
                    self._copy(self._copied[path][0], source)
                else:
                    _create(source, before, None, getattr(before, "metadata", None))
                if present is None:
                    syscalls.rename_new(source.parent, source.name, target.name)
                else:
                    syscalls.replace(source.parent, source.name, target.name)
            except BaseException:
                with suppress(OSError):
                    os.unlink(source.name, dir_fd=source.parent)
                raise
        return True

    def _move_back(self, path: str, source: str, inode: int) -> bool:
        with suppress(NotFoundError, FileNotFoundError), self._at(path) as target, self._at(source) as old:
            if syscalls.lstat(target.parent, target.name).st_ino != inode:
                return False
            try:
                syscalls.rename_new(target.parent, target.name, old.name, to=old.parent)
            except FileExistsError:
                return False
        return True

    def _make_again(self, change: Change) -> bool:
        with suppress(FileExistsError), self._at(change.path) as target:
            os.mkdir(target.name, 0o700, dir_fd=target.parent)
        if isinstance(change.before, DirectoryNode) and change.before.mode is not None:
            self._set_directory(change.path, change.before)
        return True

    def _unmake(self, path: str) -> bool:
        with suppress(NotFoundError, NotDirectoryError), self._at(path) as target, suppress(OSError):
            os.rmdir(target.name, dir_fd=target.parent)
        return True

    def _set_mode(self, path: str, node: DirectoryNode) -> bool:
        present = node_at(self._context, path, self._options.max_bytes)
        if isinstance(present, DirectoryNode) and present.mode != node.mode:
            self._set_directory(path, node)
        return True

    def _retry(self, act: Callable[[], bool]) -> bool | None:
        """Repeat an act that fails because of a race; return None if it keeps failing."""
        while True:
            try:
                return act()
            except (OSError, AgentFSError):
                now = time.monotonic()
                self._retry_until = self._retry_until or now + _RETRY_SECONDS
                if now > self._retry_until:
                    return None
                time.sleep(_RETRY_PAUSE)


def _occupied(path: str) -> ConflictError:
    return ConflictError(
        f"{quote(path)} cannot become what it was: another program has created entries in the directory.",
        hint="Move them elsewhere, or undo other paths.",
        details={"path": path},
    )


def _create(
    at: ResolvedPath, node: FileNode | LinkNode, replaced: os.stat_result | None, metadata: Metadata | None
) -> list[str]:
    """Create a link or a file. Without `metadata`, a file gets that of its node."""
    if isinstance(node, LinkNode):
        os.symlink(node.target, at.name, dir_fd=at.parent)
        return []
    return create_temporary(at.parent, at.name, node, replaced, metadata or node.metadata)


def _in_order(changes: Sequence[Change], moved: Sequence[Change]) -> list[_Step]:
    """Return the steps in order. If possible, all new nodes are made before old ones are removed.

    `moved` are the targets of renames.
    """
    changes = sorted(changes, key=lambda change: change.path)
    turning = {change.path for change in changes if _turns(change)}

    def is_early(change: Change) -> bool:
        return change.path in turning or (bool(turning) and _is_below(change.path, turning))

    removed = [each for each in reversed(changes) if each.before and (each.after is None or _turns(each))]
    directories = [each for each in changes if isinstance(each.after, DirectoryNode)]
    made = [each for each in directories if not isinstance(each.before, DirectoryNode)]
    kept = [each for each in directories if isinstance(each.before, DirectoryNode)]
    files = [each for each in changes if isinstance(each.after, EntryNode)]
    return [
        *((_Batch.open_to_owner, each) for each in removed if _is_closed(each.before)),
        *((_Batch.set_mode, each) for each in kept if not _is_closed(each.after)),
        *((_Batch.remove, each) for each in removed if is_early(each)),
        *((_Batch.make, each) for each in made),
        *((_Batch.move, each) for each in moved),
        *((_Batch.put, each) for each in files),
        *((_Batch.remove, each) for each in removed if not is_early(each)),
        *((_Batch.set_mode, each) for each in reversed(kept) if _is_closed(each.after)),
        *((_Batch.set_mode, each) for each in reversed(made)),
    ]


def _turns(change: Change) -> bool:
    """Return True if a file or link becomes a directory, or the reverse."""
    before, after = change.before, change.after
    return bool(before and after) and isinstance(before, DirectoryNode) is not isinstance(
        after, DirectoryNode
    )


def _mode(node: Node | None) -> int | None:
    return node.mode if isinstance(node, DirectoryNode) else None


def _is_closed(node: Node | None) -> bool:
    """Return True for a directory whose owner may not change its entries."""
    mode = _mode(node)
    return mode is not None and ~mode & _OWNER != 0
