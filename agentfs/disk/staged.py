"""A root on which changes are only staged: they see one another, and reach the disk together, later."""

import os
import tempfile
from collections.abc import Callable, Sequence
from typing import NoReturn

from agentfs.disk import failures
from agentfs.disk.applying import check_protected
from agentfs.disk.changing import Changed, Current
from agentfs.disk.opened import Directory, OpenFile
from agentfs.disk.paths import quote, show_name, split_path
from agentfs.disk.replacing import write_all
from agentfs.disk.revisions import revision_of
from agentfs.disk.root import Root
from agentfs.disk.states import Change, Conflict, DirectoryState, FileState, LinkState, Recorder, State
from agentfs.disk.trail import MAX_LINKS
from agentfs.errors import ReadOnlyError, RefusedError, TooLargeError
from agentfs.results import Entry, EntryType


class Staged(Root):
    """What `Root` is, with changes kept in memory on top of it.

    Args:
        under: The root. It stays as it is.
    """

    def __init__(self, under: Root) -> None:
        self._under = under
        self._base = under._base  # noqa: SLF001 - it is a root itself
        self.path = under.path
        self.policy = under.policy
        self.repaired = under.repaired
        self.recorder: Recorder | None = None
        self._states: dict[str, State | None] = {}
        self._open = True

    def close(self) -> None:
        """Drop what was staged; no other call works afterwards."""
        self._open = False
        self._states.clear()

    def open_file(self, path: str) -> OpenFile:
        """Open a regular file for reading, as it is staged."""
        self._check_open()
        real_path = self._follow(path)
        state = self._states.get(real_path)
        if real_path not in self._states:
            return self._under.open_file(path)
        if state is None:
            raise failures.missing(path)
        if not isinstance(state, FileState):
            raise failures.not_a_file(path)
        with tempfile.TemporaryFile(prefix="agentfs-") as made:
            fd = os.dup(made.fileno())
        write_all(fd, state.load())
        return OpenFile(fd, os.fstat(fd), self._shown(path), real_path)

    def open_directory(self, path: str) -> Directory:
        """Refuse: what is staged is in no directory yet."""
        self._refuse(path)

    def find_directory(self, path: str) -> Directory:
        """Open a directory to learn where it stands: directories are never staged."""
        self._check_open()
        return self._under.find_directory(path)

    def entry(self, path: str) -> Entry:
        """Return what a path names, as it is staged."""
        self._check_open()
        real_path = self.place(path, creating=True)
        if real_path not in self._states:
            return self._under.entry(path)
        state = self._states[real_path]
        if state is None:
            raise failures.missing(path)
        name = show_name(os.path.basename(real_path))
        link = isinstance(state, LinkState)
        kind: EntryType = "symlink" if link else "file"
        size = state.size if isinstance(state, FileState) else None
        target = show_name(state.target) if isinstance(state, LinkState) else None
        ext = os.path.splitext(name)[1][1:].lower()
        return Entry(self._shown(path), name, kind, is_dir=False, size=size, ext=ext, target=target)

    def place(self, path: str, *, creating: bool = False) -> str:
        """Return where a path leads, links resolved but for the last."""
        self._check_open()
        return self._under.place(path, creating=creating or bool(self._states))

    def state(self, real_path: str, *, max_bytes: int) -> State | None:
        """Return what stands at a path, as it is staged."""
        if real_path in self._states:
            return self._states[real_path]
        return self._under.state(real_path, max_bytes=max_bytes)

    def change(
        self, path: str, compute: Callable[[Current], bytes], *, max_bytes: int, preview: bool = False
    ) -> Changed:
        """Stage a change of a file."""
        self._check_may_change(path)
        real_path = self._follow(path)
        state = self.state(real_path, max_bytes=max_bytes) if real_path else DirectoryState()
        if isinstance(state, DirectoryState | LinkState):
            raise failures.not_a_file(path)
        check_protected(self._base, real_path, path)
        before = None if state is None else state.load()
        after = compute(Current(self._shown(path), real_path, before, None))
        if after != before and not preview:
            if state is not None and not state.mode & 0o222:
                raise RefusedError(
                    f"{quote(path)} is write-protected on disk (mode {state.mode:04o}).",
                    hint="Ask the user to make it writable.",
                    details={"path": show_name(path)},
                )
            mode = _new_mode() if state is None else state.mode
            self._stage((Change(real_path, state, FileState.of(mode, after)),), self.recorder)
        shown = self._shown(path)
        return Changed(shown, real_path, before, after, before is None, revision_of(after), ())

    def apply(
        self,
        changes: Sequence[Change],
        *,
        max_bytes: int,
        conflict: Conflict,
        recorder: Recorder | None = None,
    ) -> tuple[str, ...]:
        """Stage several changes: all of them, or none."""
        for change in changes:
            self._check_may_change(change.path)
            if isinstance(change.before, DirectoryState) or isinstance(change.after, DirectoryState):
                self._refuse(change.path)
            check_protected(self._base, change.path, change.path)
            present = self.state(change.path, max_bytes=max_bytes)
            if present != change.before:
                raise conflict(change, present)
        self._stage(tuple(changes), recorder or self.recorder)
        return ()

    def _stage(self, changes: tuple[Change, ...], recorder: Recorder | None) -> None:
        if recorder is None:
            self._states.update((change.path, change.after) for change in changes)
            return
        with recorder.recording(changes):
            self._states.update((change.path, change.after) for change in changes)

    def _follow(self, path: str) -> str:
        """Return where a path leads, links resolved, staged ones too."""
        for _ in range(MAX_LINKS):
            real_path = self.place(path, creating=True)
            try:
                state = self.state(real_path, max_bytes=0) if real_path else None
            except TooLargeError:
                return real_path  # a file, of whatever size
            if not isinstance(state, LinkState):
                return real_path
            path = os.path.join(os.path.dirname(real_path), state.target)
        raise failures.link_loop(path, MAX_LINKS)

    def _shown(self, path: str) -> str:
        asked = split_path(path, self._base.roots)
        return show_name("/".join(asked.parts))

    def _check_may_change(self, path: str) -> None:
        self._check_open()
        if self.policy.read_only:
            raise ReadOnlyError(
                f"{quote(path)} cannot be changed: this workspace may only be read.",
                details={"path": show_name(path)},
            )

    def _check_open(self) -> None:
        if not self._open:
            raise RefusedError("This transaction has ended.", hint="Begin another one.")

    def _refuse(self, path: str) -> NoReturn:
        raise RefusedError(
            "A transaction neither lists nor searches, and leaves directories alone:"
            " what it changes is not on disk yet.",
            hint="Call the method of the workspace.",
            details={"path": show_name(path)},
        )


def _new_mode() -> int:
    # There is no other way to learn it; whoever creates a file just now gets a safe one.
    mask = os.umask(0o077)
    os.umask(mask)
    return 0o666 & ~mask
