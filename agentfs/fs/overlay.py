"""`OverlayRoot`: the root that a transaction sees. Its changes stay in memory until the commit."""

import os
import stat
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from itertools import chain, islice
from typing import cast

from agentfs.base.lazy import tempfile
from agentfs.errors import ClosedError, NotFoundError
from agentfs.fs import oserrors, syscalls
from agentfs.fs.apply import Applied, ApplyOptions
from agentfs.fs.context import RootContext
from agentfs.fs.directory import Directory, DirEntry
from agentfs.fs.file import OpenFile, node_at, open_regular, write_all
from agentfs.fs.node import Change, DirectoryNode, FileNode, Recorder, StagedNodes
from agentfs.fs.path import ParsedPath
from agentfs.fs.resolve import ResolvedPath, resolve_real
from agentfs.fs.root import Root


class StagedEntry:
    """A staged node in the form of `os.DirEntry`."""

    __slots__ = ("_status", "name")

    def __init__(self, name: str, status: os.stat_result) -> None:
        self.name = name
        self._status = status

    def is_file(self, *, follow_symlinks: bool = False) -> bool:
        """Return True for a regular file; links are not followed."""
        del follow_symlinks
        return stat.S_ISREG(self._status.st_mode)

    def is_dir(self, *, follow_symlinks: bool = False) -> bool:
        """Return True for a directory; links are not followed."""
        del follow_symlinks
        return stat.S_ISDIR(self._status.st_mode)

    def is_symlink(self) -> bool:
        """Return True for a link."""
        return stat.S_ISLNK(self._status.st_mode)

    def stat(self, *, follow_symlinks: bool = False) -> os.stat_result:
        """Return its status; links are not followed."""
        del follow_symlinks
        return self._status


class OverlayDirectory(Directory):
    """A directory with staged entries. Its handle is -1 if it is not on disk."""

    __slots__ = ("_staged",)

    def __init__(self, context: RootContext, handle: int, path: str, real_path: str) -> None:
        super().__init__(context, handle, path, real_path)
        self._staged = cast("StagedNodes", context.staged)

    def scan_parts(self, size: int) -> Iterator[list[DirEntry]]:
        """Yield lists of up to `size` entries, staged ones first."""
        entries = chain.from_iterable(self._entries(size))
        while part := list(islice(entries, size)):
            yield part

    def _entries(self, size: int) -> Iterator[list[DirEntry]]:
        staged: dict[str, StagedEntry | None] = {}
        for name in self._staged.names(self.real_path):
            path = self._real_child(name)
            if path in self._staged.nodes or not super().has(name):
                status = self._staged.status(path)
                staged[name] = None if status is None else StagedEntry(name, status)
        yield [entry for entry in staged.values() if entry is not None]
        if self.handle != -1:
            for part in super().scan_parts(size):
                yield [entry for entry in part if entry.name not in staged]

    def has(self, name: str) -> bool:
        """Return True if a name exists in the directory."""
        path = self._real_child(name)
        if path in self._staged.nodes:
            return self._staged.status(path) is not None
        return super().has(name) or self._staged.is_directory(path)

    def open_directory(self, name: str) -> "OverlayDirectory":
        """Open a directory in this one; links are not followed."""
        path, real_path = self._child(name), self._real_child(name)
        handle = -1
        try:
            if real_path not in self._staged.nodes and self.handle != -1:
                handle = self._open(syscalls.open_directory, name)
            else:
                check_directory(self._staged, path, real_path)
        except NotFoundError:
            check_directory(self._staged, path, real_path)
        return OverlayDirectory(self._context, handle, path, real_path)

    def open_file(self, name: str) -> OpenFile:
        """Open a regular file such as a rule file; links are not followed."""
        path, real_path = self._child(name), self._real_child(name)
        if real_path in self._staged.nodes:
            if not self._context.may_read(real_path):
                raise oserrors.protected(path, real_path)
            return open_staged(self._staged, path, real_path)
        if self.handle == -1:
            raise oserrors.missing(path)
        return super().open_file(name)

    def _opener(self) -> Callable[[str], int]:
        on_disk = super()._opener()

        def open_name(name: str) -> int:
            real_path = self._real_child(name)
            if real_path not in self._staged.nodes:
                return on_disk(name)
            return open_staged(self._staged, self._child(name), real_path).fd

        return open_name


def check_directory(staged: StagedNodes, path: str, real_path: str) -> None:
    """Raise an error if the node staged at a path is not a directory."""
    if not staged.is_directory(real_path):
        raise (
            oserrors.missing(path) if staged.nodes.get(real_path) is None else oserrors.not_a_directory(path)
        )


def open_staged(staged: StagedNodes, path: str, real_path: str) -> OpenFile:
    """Open a staged file for reading."""
    node = staged.nodes.get(real_path)
    if not isinstance(node, FileNode):
        raise oserrors.not_a_file(path) if staged.is_directory(real_path) else oserrors.missing(path)
    with tempfile.TemporaryFile(prefix="agentfs-", buffering=0) as temporary:
        write_all(temporary.fileno(), node.load())
        fd = os.dup(temporary.fileno())
    return OpenFile(fd, os.fstat(fd), path, real_path)


class OverlayRoot(Root):
    """A root with staged changes in memory on top of another root, which stays unchanged."""

    def __init__(self, root: Root) -> None:
        context = root._context  # noqa: SLF001 - a root itself
        self._staged = StagedNodes() if context.staged is None else context.staged.copy()
        self._context = replace(context, staged=self._staged)
        self.path = root.path
        self.policy = root.policy
        self.recovery_notes, self.ignores_case = root.recovery_notes, root.ignores_case
        self.recorder: Recorder | None = None

    def close(self) -> None:
        """Drop the staged changes and refuse later calls."""
        self._staged.close()

    def open_file(self, path: str) -> OpenFile:
        """Open a regular file for reading."""
        context = self._context
        with ResolvedPath(context, path, self._split(path), follow_last=True) as resolved:
            displayed, real_path = resolved.display_path, resolved.real_path
            if resolved.name == "." and not resolved.missing:
                raise oserrors.not_a_file(path)
            if not self._staged.contains(real_path):
                fd = resolved.open(syscalls.open_file)
                return open_regular(context, fd, displayed, real_path, links=resolved.through_links)
        if context.access is not None:
            context.access.check_read(real_path)
        return open_staged(self._staged, displayed, real_path)

    def open_directory(self, path: str) -> OverlayDirectory:
        """Open a directory."""
        resolved = ResolvedPath(self._context, path, self._split(path or "."), follow_last=True)
        return self._opened(resolved, path)

    def _opened(self, path: ResolvedPath, requested: str) -> OverlayDirectory:
        handle = -1
        with path as resolved:
            try:
                if resolved.real_path not in self._staged.nodes:
                    handle = resolved.open(syscalls.open_directory)
                else:
                    check_directory(self._staged, requested, resolved.real_path)
            except NotFoundError:
                if not self._staged.is_directory(resolved.real_path):
                    raise
            return OverlayDirectory(self._context, handle, resolved.display_path, resolved.real_path)

    @contextmanager
    def _locked(self, path: str, parsed: ParsedPath) -> Generator[ResolvedPath]:
        with (
            self._excluding_others(),
            ResolvedPath(self._context, path, parsed, follow_last=True, create_parents=True) as resolved,
        ):
            yield resolved

    def _apply(
        self, changes: Sequence[Change], terms: ApplyOptions, held: ResolvedPath | None = None
    ) -> Applied:
        """Stage several changes, all of them or none; the commit writes them to the disk."""
        del held
        self.check_open()
        with self._excluding_others():
            removed = {change.path for change in changes if change.after is None}
            wanted: list[Change] = []
            kept: list[str] = []
            for change in sorted(changes, key=lambda change: change.path, reverse=True):
                with resolve_real(self._context, change.path, create_parents=True) as resolved:
                    resolved.check_may_change()
                present = self.node(change.path, max_bytes=terms.max_bytes)
                if change.of_directory and present == change.after:
                    continue  # made or removed already
                if present != change.before:
                    raise terms.conflict(change, present)
                if isinstance(present, DirectoryNode) and self._has_others(change.path, removed):
                    if not terms.undoing:
                        raise terms.conflict(change, present)
                    removed.discard(change.path)
                    kept.append(change.path)
                    continue
                wanted.append(change)
            self._stage(tuple(reversed(wanted)), terms)
            return Applied(tuple(kept))

    def _has_others(self, directory: str, removed: set[str]) -> bool:
        """Return True if a directory has an entry that is not about to be removed."""
        with self._opened(resolve_real(self._context, directory), directory) as opened:
            paths = [f"{directory}/{entry.name}" for entry in opened.scan()]
        return any(
            not self._is_implied(path) or self._has_others(path, removed)
            for path in paths
            if path not in removed
        )

    def _is_implied(self, path: str) -> bool:
        """Return True if a directory exists only because a node below it is staged."""
        staged = self._staged
        unknown = path not in staged.nodes and staged.is_directory(path)
        return unknown and node_at(replace(self._context, staged=None), path, max_bytes=0) is None

    def _excluding_others(self) -> AbstractContextManager[object]:
        return nullcontext() if self.recorder is None else self.recorder.exclusive()

    def _stage(self, changes: tuple[Change, ...], terms: ApplyOptions) -> None:
        made = dict.fromkeys(change.path for change in changes)
        for change in changes:
            above = change.path if change.after is not None else ""
            while above := os.path.dirname(above):  # create removed directories above it again
                if above not in made and self._staged.nodes.get(above, change) is None:
                    made[above] = None
                    changes = (*changes, Change(above, None, DirectoryNode()))
        with terms.recording(changes) as recorded:
            for change in recorded:
                self._staged.add(change)

    def _split(self, path: str) -> ParsedPath:
        self.check_open()
        return super()._split(path)

    def check_open(self) -> None:
        """Raise `closed` if the transaction has ended, or the workspace is closed."""
        super().check_open()
        if self._staged.closed:
            raise ClosedError("This transaction has ended.", hint="Begin another one.")
