"""A root on which changes are only staged: they see one another, and reach the disk together, later."""

import os
import stat
import tempfile
from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import Self

from agentfs.errors import AgentFSError, ReadOnlyError, RefusedError
from agentfs.fs import oserrors
from agentfs.fs.batch import check_protected
from agentfs.fs.context import Access
from agentfs.fs.file import Directory, OpenFile, revision_of
from agentfs.fs.node import Change, Conflict, DirectoryNode, FileNode, LinkNode, Node, Recorder
from agentfs.fs.path import display_name, is_absolute, quote, split_link
from agentfs.fs.replace import Changed, Current, FileUpdate
from agentfs.fs.resolve import MAX_LINKS
from agentfs.fs.root import Root
from agentfs.fs.temporary import write_all
from agentfs.results import Entry, EntryType


class _Overlay:
    """What is staged; views of one root share it.

    Attributes:
        states: What is at each path that was changed.
        below: How many staged files and links there are below each directory.
        relinked: Whether a link has come or gone: paths then lead elsewhere than they do on disk.
        open: Whether the transaction goes on.
    """

    def __init__(self) -> None:
        self.states: dict[str, Node | None] = {}
        self.below = Counter[str]()
        self.relinked = False
        self.open = True

    def set(self, change: Change) -> None:
        """Let a change be staged."""
        path: str = change.path
        added = (change.after is not None) - (self.states.get(path) is not None)
        self.states[path] = change.after
        self.relinked |= isinstance(change.before, LinkNode) or isinstance(change.after, LinkNode)
        while "/" in path:
            path = os.path.dirname(path)
            self.below[path] += added

    def close(self) -> None:
        """Drop all."""
        self.open = False
        self.states.clear()
        self.below.clear()


class StagedUpdate(FileUpdate):
    """A staged file that is open for update."""

    def __init__(self, root: "OverlayRoot", path: str, real_path: str, before: FileNode | None) -> None:
        self._root = root
        self._requested = path
        self._before = before
        data = None if before is None else before.load()
        self.current = Current(root.requested_path(path, real_path), real_path, data, None)

    def replace(self, after: bytes, *, preview: bool = False) -> Changed:
        """Stage a new content of the file."""
        path, real_path, before, _ = self.current
        if after != before:
            self._root.stage_replacement(self._requested, real_path, self._before, after, preview=preview)
        return Changed(path, real_path, before, after, before is None, revision_of(after), ())


class OverlayRoot(Root):
    """What `Root` is, with changes kept in memory on top of it.

    Args:
        under: The root. It stays as it is.
    """

    def __init__(self, under: Root) -> None:
        self._under = under.top
        self._context = under._context  # noqa: SLF001 - it is a root itself
        self.path = under.path
        self.policy = under.policy
        self.recovery_notes = under.recovery_notes
        self.recorder: Recorder | None = None
        self._overlay = _Overlay()

    def for_call(self, access: Access) -> Self:
        """Return the same staged root for one call."""
        other = super().for_call(access)
        other._under = self._under.for_call(access)  # noqa: SLF001 - its own
        return other

    def close(self) -> None:
        """Drop what was staged; no other call works afterwards."""
        self._overlay.close()

    def open_file(self, path: str) -> OpenFile:
        """Open a regular file for reading, as it is staged."""
        real_path = self._resolve(path, creating=False)
        if not self.is_staged(real_path):
            # By its own name where it leads there on disk too: that is what an error then speaks of.
            there = real_path or "." if self._overlay.relinked else self.path_from_top(path)
            file = self._under.open_file(there)
            file.path = self.requested_path(path, real_path)
            return file
        state = self.node(real_path, max_bytes=0)
        if state is None:
            raise oserrors.missing(path)
        if not isinstance(state, FileNode):
            raise oserrors.not_a_file(path)
        if self._context.access is not None:
            self._context.access.check_read(real_path)
        with tempfile.TemporaryFile(prefix="agentfs-") as made:
            fd = os.dup(made.fileno())
        write_all(fd, state.load())
        return OpenFile(fd, os.fstat(fd), self.requested_path(path, real_path), real_path)

    def open_directory(self, path: str) -> Directory:
        """Refuse: what is staged is in no directory yet."""
        raise _directory(path)

    def find_directory(self, path: str) -> Directory:
        """Open a directory to learn where it is: directories are never staged."""
        path = path or "."
        real_path = self._resolve(path, creating=False)
        directory = self._under.find_directory(real_path)
        directory.path = self.requested_path(path, real_path)
        return directory

    def entry(self, path: str) -> Entry:
        """Return what a path names, as it is staged."""
        real_path = self.real_path(path)
        if not self.is_staged(real_path):
            entry = self._under.entry(real_path if self._overlay.relinked else self.path_from_top(path))
            return replace(entry, path=self.requested_path(path, real_path) or ".")
        state = self.node(real_path, max_bytes=0)
        if state is None:
            raise oserrors.missing(path)
        name = display_name(os.path.basename(real_path))
        directory = isinstance(state, DirectoryNode)
        kind: EntryType = "directory" if directory else "symlink" if isinstance(state, LinkNode) else "file"
        size = state.size if isinstance(state, FileNode) else None
        target = display_name(state.target) if isinstance(state, LinkNode) else None
        ext = "" if directory else os.path.splitext(name)[1][1:].lower()
        displayed = self.requested_path(path, real_path)
        return Entry(displayed, name, kind, is_dir=directory, size=size, ext=ext, target=target)

    def real_path(self, path: str, *, creating: bool = False) -> str:
        """Return where a path leads, links resolved but for the last."""
        return self._resolve(path, follow=False, creating=creating)

    def is_staged(self, real_path: str) -> bool:
        """Tell whether anything is staged at a path whose links are resolved, or below it."""
        return real_path in self._overlay.states or self._overlay.below[real_path] > 0

    def node(self, real_path: str, *, max_bytes: int) -> Node | None:
        """Return what is at a path, as it is staged."""
        staged = self._overlay.states.get(real_path)
        if staged is None and self._overlay.below[real_path]:
            return DirectoryNode()
        if real_path in self._overlay.states:
            return staged
        return self._under.node(real_path, max_bytes=max_bytes) if real_path else DirectoryNode()

    @contextmanager
    def open_for_update(self, path: str, *, max_bytes: int) -> Generator[StagedUpdate]:
        """Open a file, as it is staged, to read and replace it."""
        self._check_may_change(path)
        real_path = self._resolve(path)
        node = self.node(real_path, max_bytes=max_bytes)
        if isinstance(node, DirectoryNode | LinkNode):
            raise oserrors.not_a_file(path)
        check_protected(self._context, real_path, path)
        yield StagedUpdate(self, path, real_path, node)

    def stage_replacement(
        self, path: str, real_path: str, before: FileNode | None, after: bytes, *, preview: bool
    ) -> None:
        """Stage a new content of a file, or check only that it could be staged."""
        if before is not None and not before.mode & 0o222:
            raise oserrors.write_protected(path, before.mode)
        if not self.is_staged(real_path):
            self._under.check_replaceable(real_path, path)
        if not preview:
            mode = _new_mode(path) if before is None else before.mode
            self._stage((Change(real_path, before, FileNode.of(mode, after)),), self.recorder)

    def requested_path(self, path: str, real_path: str) -> str:
        """Return the path as it was requested, normalised and fit to show; resolved where it has a `..`."""
        parsed = self._split(path)
        return self._context.display_path(real_path if parsed.climbs else "/".join(parsed.parts))

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
        for change in changes:
            self._check_may_change(change.path)
            if isinstance(change.before, DirectoryNode) or isinstance(change.after, DirectoryNode):
                raise _directory(change.path)
            check_protected(self._context, change.path, change.path)
            present = self.node(change.path, max_bytes=max_bytes)
            if present != change.before:
                raise conflict(change, present)
        self._stage(tuple(changes), recorder or self.recorder)
        return ()

    def _stage(self, changes: tuple[Change, ...], recorder: Recorder | None) -> None:
        with nullcontext(changes) if recorder is None else recorder.recording(changes) as recorded:
            for change in recorded:
                self._overlay.set(change)

    def _resolve(self, path: str, *, follow: bool = True, creating: bool = True) -> str:
        """Walk along a path, on disk and over what is staged."""
        self._check_open()
        parsed = self._split(path)
        pending = list(reversed(parsed.parts))
        real: list[str] = []
        links, missing = 0, False
        while pending:
            name = pending.pop()
            if name == ".." and missing:
                raise oserrors.missing(path, self.display_path("/".join(real)))
            if name == "..":
                if not real:
                    raise oserrors.outside(path)
                real.pop()
                continue
            here = "/".join([*real, name])
            real_path = here if missing else self._under.top.real_path(here, creating=True)
            state = None if missing else self._kind_at(real_path)
            last = not pending and not parsed.directory
            if isinstance(state, LinkNode) and (follow or not last):
                if not self._context.follow:
                    raise oserrors.link_refused(path, self.display_path(real_path))
                led = split_link(state.target, self._context.roots)
                if led is None:
                    raise oserrors.outside(path, self.display_path(real_path))
                links += 1
                if links > MAX_LINKS:
                    raise oserrors.link_loop(path, MAX_LINKS)
                real = [] if is_absolute(state.target) else real
                pending += reversed(led.parts)
                continue
            if isinstance(state, FileNode) and not last:
                raise oserrors.not_a_directory(path, self.display_path(real_path))
            if state is None and not last and not creating:
                raise oserrors.missing(path, self.display_path(real_path))
            if state is None and not last and real_path in self._overlay.states:
                raise RefusedError(
                    f"{quote(self.display_path(real_path))} was removed in this transaction,"
                    " and becomes no directory in it.",
                    hint="End the transaction first.",
                    details={"path": display_name(path)},
                )
            missing = state is None
            real = real_path.split("/")
        return "/".join(real)

    def _kind_at(self, real_path: str) -> Node | None:
        """Return what is at a path, without the content of a file."""
        try:
            return self.node(real_path, max_bytes=0)
        except AgentFSError:  # a file, and too large to be read; or one that whoever opens it is refused
            return FileNode.of(0, b"")

    def _check_may_change(self, path: str) -> None:
        self._check_open()
        if self.policy.read_only:
            raise ReadOnlyError(
                f"{quote(path)} cannot be changed: this workspace may only be read.",
                details={"path": display_name(path)},
            )

    def _check_open(self) -> None:
        if not self._overlay.open:
            raise RefusedError("This transaction has ended.", hint="Begin another one.")


def _directory(path: str) -> RefusedError:
    """Return the error for a directory: what is staged is in none yet."""
    return RefusedError(
        f"{quote(path)} is a directory, and changes that are made together are of files only.",
        hint="Name the files in it one by one.",
        details={"path": display_name(path)},
    )


def _new_mode(path: str) -> int:
    """Return the permissions that the system gives a new file, read from one that is made for that.

    The umask cannot be read without changing it, for all threads at once.
    """
    try:
        with tempfile.TemporaryDirectory(prefix="agentfs-") as directory:
            fd = os.open(os.path.join(directory, "new"), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
            try:
                return stat.S_IMODE(os.fstat(fd).st_mode)
            finally:
                os.close(fd)
    except OSError as error:
        raise oserrors.from_oserror(error, path) from None
