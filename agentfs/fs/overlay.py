"""A root on which changes are only staged: they see one another, and reach the disk together, later."""

import os
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import Any, Self

from agentfs.errors import RefusedError
from agentfs.fs import oserrors
from agentfs.fs.batch import check_may_change_at
from agentfs.fs.directory import Directory
from agentfs.fs.file import OpenFile, write_all
from agentfs.fs.node import (
    Change,
    Conflict,
    DirectoryNode,
    FileNode,
    LinkNode,
    Node,
    Recorder,
    StagedNodes,
    entry_type,
)
from agentfs.fs.path import ParsedPath, display_name, quote
from agentfs.fs.replace import Changed, Current, FileUpdate, new_mode
from agentfs.fs.root import Root
from agentfs.results import Entry


class StagedUpdate(FileUpdate):
    """A file that is open for update in a transaction."""

    def __init__(self, root: "OverlayRoot", path: str, current: Current, before: FileNode | None) -> None:
        self._root = root
        self._requested = path
        self._before = before
        self.current = current

    def replace(self, after: bytes, *, preview: bool = False) -> Changed:
        """Stage a new content of the file, or check only that it could be staged."""
        real_path, before = self.current.real_path, self._before
        if after != self.current.data:
            self._root.check_replaceable(real_path, self._requested)
            if not preview:
                mode = new_mode() if before is None else before.mode
                self._root.stage(Change(real_path, before, FileNode.of(mode, after)))
        return Changed.of(self.current, after, [])


class OverlayRoot(Root):
    """What `Root` is, with changes kept in memory on top of it; the root itself stays as it is."""

    def __init__(self, root: Root) -> None:
        self._staged = StagedNodes()
        self._disk = root.top
        self._context = replace(self._disk._context, staged=self._staged)  # noqa: SLF001 - it is a root itself
        self.path = root.path
        self.policy = root.policy
        self.recovery_notes = root.recovery_notes
        self.recorder: Recorder | None = None

    def _with(self, **settings: Any) -> Self:
        other = super()._with(**settings)
        if "access" in settings:
            other._disk = self._disk.for_call(settings["access"])  # noqa: SLF001 - its own
        return other

    def close(self) -> None:
        """Drop what was staged; no other call works afterwards."""
        self._staged.close()

    def is_staged(self, real_path: str) -> bool:
        """Return whether anything is staged at a path whose links are resolved, or below it."""
        return self._staged.contains(real_path)

    def open_file(self, path: str) -> OpenFile:
        """Open a regular file for reading, as it is staged."""
        displayed, real_path = self.resolve(path, create_parents=False)
        if not self.is_staged(real_path):
            file = self._disk.open_file(self._path_on_disk(path, real_path))
            file.path = displayed
            return file
        node = self.node(real_path, max_bytes=0)
        if node is None:
            raise oserrors.missing(path)
        if not isinstance(node, FileNode):
            raise oserrors.not_a_file(path)
        if self._context.access is not None:
            self._context.access.check_read(real_path)
        with tempfile.TemporaryFile(prefix="agentfs-") as temporary:
            fd = os.dup(temporary.fileno())
        write_all(fd, node.load())
        return OpenFile(fd, os.fstat(fd), displayed, real_path)

    def open_directory(self, path: str) -> Directory:
        """Refuse: what is staged is in no directory yet."""
        raise _directory_refused(path)

    def _real_directory(self, path: str) -> str:
        real_path = self.resolve(path or ".", create_parents=False)[1]
        with self._disk.open_directory(real_path) as directory:
            return directory.real_path

    def entry(self, path: str) -> Entry:
        """Return what a path names, as it is staged."""
        displayed, real_path = self.resolve(path or ".", create_parents=False, follow_last=False)
        if not self.is_staged(real_path):
            entry = self._disk.entry(self._path_on_disk(path, real_path))
            return replace(entry, path=displayed or ".")
        node = self.node(real_path, max_bytes=0)
        name = display_name(os.path.basename(real_path))
        if node is None:
            raise oserrors.missing(path)
        is_dir = isinstance(node, DirectoryNode)
        return Entry(
            displayed,
            name,
            entry_type(node),
            is_dir=is_dir,
            size=node.size if isinstance(node, FileNode) else None,
            ext="" if is_dir else os.path.splitext(name)[1][1:].lower(),
            target=display_name(node.target) if isinstance(node, LinkNode) else None,
        )

    def _path_on_disk(self, path: str, real_path: str) -> str:
        # Through no directory or link that is only staged; else by its own name, which an error then gives.
        return (real_path or ".") if self._staged.relinked or ".." in path else self.path_from_top(path)

    def node(self, real_path: str, *, max_bytes: int) -> Node | None:
        """Return what is at a path, as it is staged."""
        staged = self._staged.nodes.get(real_path)
        if not real_path or (staged is None and self._staged.is_directory(real_path)):
            return DirectoryNode()
        return staged if real_path in self._staged.nodes else self._disk.node(real_path, max_bytes=max_bytes)

    @contextmanager
    def open_for_update(self, path: str, *, max_bytes: int) -> Generator[StagedUpdate]:
        """Open a file, as it is staged, to read and replace it."""
        if self.policy.read_only:
            raise oserrors.read_only(path)
        displayed, real_path = self.resolve(path)
        node = self.node(real_path, max_bytes=max_bytes)
        if isinstance(node, DirectoryNode | LinkNode):
            raise oserrors.not_a_file(path)
        check_may_change_at(self._context, real_path, path)
        data = None if node is None else node.load()
        yield StagedUpdate(self, path, Current(displayed, real_path, data), node)

    def check_replaceable(self, real_path: str, path: str) -> None:
        """Refuse to give a file a new content where that would fail when the transaction ends."""
        staged = self._staged.nodes.get(real_path)
        if isinstance(staged, FileNode) and not staged.mode & 0o222:
            raise oserrors.write_protected(path, staged.mode)
        if not self.is_staged(real_path):
            self._disk.check_replaceable(real_path, path)

    def apply(
        self,
        changes: Sequence[Change],
        *,
        max_bytes: int,
        conflict: Conflict,
        recorder: Recorder | None = None,
        keep_non_empty: bool = False,  # noqa: ARG002 - no directory is staged
    ) -> tuple[str, ...]:
        """Stage several changes: all of them, or none."""
        self._check_open()
        for change in changes:
            if self.policy.read_only:
                raise oserrors.read_only(change.path)
            if change.of_directory:
                raise _directory_refused(change.path)
            check_may_change_at(self._context, change.path)
            present = self.node(change.path, max_bytes=max_bytes)
            if present != change.before:
                raise conflict(change, present)
        self.stage(*changes, recorder=recorder)
        return ()

    def stage(self, *changes: Change, recorder: Recorder | None = None) -> None:
        """Stage changes that were checked, and record them."""
        recorder = recorder or self.recorder
        with nullcontext(changes) if recorder is None else recorder.recording(changes) as recorded:
            for change in recorded:
                self._staged.add(change)

    def _split(self, path: str) -> ParsedPath:
        self._check_open()
        return super()._split(path)

    def _check_open(self) -> None:
        if self._staged.closed:
            raise RefusedError("This transaction has ended.", hint="Begin another one.")


def _directory_refused(path: str) -> RefusedError:
    return RefusedError(
        f"{quote(path)} is a directory, and changes that are made together are of files only.",
        hint="Name the files in it one by one.",
        details={"path": display_name(path)},
    )
