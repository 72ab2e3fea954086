"""Directories of a kept tree, in the form that searches use."""

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Any, Self, TypeVar

from agentfs.errors import AccessError
from agentfs.fs import Directory, display_name, syscalls
from agentfs.fs.context import RootContext
from agentfs.fs.directory import regular_status
from agentfs.watch.kept_entries import NO_WATCH, KeptDirectory, KeptFile
from agentfs.watch.kept_texts import KeptTexts

_O = TypeVar("_O")


class WatchedDirectory(Directory):
    """A directory whose listing and texts are taken from a kept tree, during one call."""

    __slots__ = ("_kept", "_parent", "_texts", "derived")

    def __init__(
        self,
        context: RootContext,
        path: str,
        kept: KeptDirectory,
        texts: KeptTexts,
        parent: "WatchedDirectory | None" = None,
    ) -> None:
        # `super()` would be slower, and a search makes one object for each directory.
        self._context = context
        self._handle = syscalls.CLOSED
        self.path = path
        self.real_path = kept.prefix[:-1]
        self.derived = kept.derived
        self._kept = kept
        self._texts = texts
        self._parent = parent

    @classmethod
    def at_start(cls, context: RootContext, path: str, kept: KeptDirectory, texts: KeptTexts) -> Self:
        """Return the directory where a walk starts. A walk from the same path reuses it."""
        opened: Self | None = kept.opened
        if opened is None or opened.path != path or not context.is_like(opened._context):  # noqa: SLF001 - same class
            opened = kept.opened = cls(context, path, kept, texts)
        return opened

    @property
    def handle(self) -> int:
        """A descriptor of the directory; the tree closes it."""
        return self._kept.tree.handle(self._kept)

    def scan_parts(self, size: int) -> Iterator[list[Any]]:
        """Yield the entries of the directory, in parts of at most `size`."""
        entries = self._kept.entries or []
        for first in range(0, len(entries), size):
            yield entries[first : first + size]

    def enter(self, listed: Any) -> Directory:
        """Open a directory in this one to walk through it; a link is not followed."""
        if isinstance(listed, KeptDirectory) and (listed.watch != NO_WATCH or listed.tree.enter(listed)):
            # Reuse the object of the last walk: with the same parent, it has the same path.
            opened: WatchedDirectory | None = listed.opened
            if opened is None or opened._parent is not self:  # noqa: SLF001 - same class
                name = display_name(listed.name)
                path = f"{self.path}/{name}" if self.path else name
                opened = WatchedDirectory(self._context, path, listed, self._texts, self)
                listed.opened = opened
            return opened
        return self.open_directory(listed.name)

    def read_files(
        self, entries: Sequence[Any], read: Callable[[Any], _O | None]
    ) -> Iterator[tuple[Any, _O | OSError | AccessError]]:
        """Read one regular file after the other; `read` gets a kept text or a descriptor."""
        for kept, files in groupby(entries, self._texts.is_kept_or_wanted):
            if not kept:
                others = list(files)
                for file in others:
                    self._texts.discard(file)  # its text may be dropped, but not its watch
                yield from super().read_files(others, read)
                continue
            # No protected file is kept, and other files are identified when they are read.
            for file in files:
                try:
                    outcome = self._read_file(file, read)
                except (OSError, AccessError) as error:
                    yield file, error
                else:
                    if outcome is not None:
                        yield file, outcome

    def _read_file(self, file: KeptFile, read: Callable[[Any], _O | None]) -> _O | None:
        """Read a file; a match in a kept text counts only if the status of the file is still the same."""
        access, texts = self._context.access, self._texts
        if file.is_kept:
            if access is not None:
                access.check_read(file.real_path)
            outcome = read(file)
            if outcome is None or file.block is None or texts.is_current(file):
                return outcome
        texts.discard(file)
        if self._context.unreadable.covers(file.real_path):
            raise self._protected(file.name)
        if access is not None:
            access.check_read(file.real_path)
        fd = self._call(syscalls.open_file, file.name)  # the tree may close and reopen the handle
        try:
            status = regular_status(fd, file.name)
            outcome = read(file if texts.load(file, fd, status) else fd)
            if outcome is not None:
                regular_status(fd, file.name)
        finally:
            syscalls.close(fd)
        return outcome

    def close(self) -> None:
        """Leave the directory open for the rest of the call."""
