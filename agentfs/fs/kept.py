"""What is kept of a watched tree: its directories, the names in them, and what is known of their content."""

import errno
import os
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any, Protocol, TypeVar

from agentfs.errors import AccessError
from agentfs.fs import syscalls
from agentfs.fs.context import RootContext
from agentfs.fs.directory import Directory, DirEntry
from agentfs.fs.file import BINARY
from agentfs.fs.texts import Block, TextStore

_MAX_DERIVED = 200  # values that were derived from listings
_MAX_KNOWN = 1000  # keys of these, now or lately
Key = tuple[Hashable, ...]  # of a value that was derived from listings
UNKNOWN = -1  # the device of a directory that has not been opened

_O = TypeVar("_O")


class Tree(Protocol):
    """The kept tree, as its entries take it."""

    @property
    def texts(self) -> TextStore:
        """The kept texts."""
        ...

    def handle(self, directory: "KeptDirectory") -> int:
        """Return a descriptor of a directory, until the end of the call. Raises OSError."""
        ...

    def enter(self, directory: "KeptDirectory") -> bool:
        """Watch a directory, then list it; False where it cannot be kept. Raises OSError."""
        ...

    def read(
        self, context: RootContext, files: "Iterable[KeptFile]", read: Callable[[Any], _O | None]
    ) -> Iterator[tuple["KeptFile", _O | OSError | AccessError]]:
        """Read one file after the other, and yield each that is not passed over, or its error."""
        ...

    def load(self, file: "KeptFile", fd: int, status: os.stat_result) -> bool:
        """Keep the text of an open file; False where that is not possible now."""
        ...


class KeptEntry:
    """A name in a kept directory, as `os.DirEntry`."""

    __slots__ = ("directory", "name")

    type: str  # one of "fdlo", or "?" where the system did not tell

    def __init__(self, name: str, directory: "KeptDirectory") -> None:
        self.name = name
        self.directory = directory

    def is_file(self, **_: bool) -> bool:
        """Return whether it is a regular file."""
        return self._known_type() == "f"

    def is_dir(self, **_: bool) -> bool:
        """Return whether it is a directory."""
        return self._known_type() == "d"

    def is_symlink(self) -> bool:
        """Return whether it is a link."""
        return self._known_type() == "l"

    def stat(self, **_: bool) -> os.stat_result:
        """Return its status as it is now."""
        return syscalls.lstat(self.directory.tree.handle(self.directory), self.name)

    def _known_type(self) -> str:
        if self.type == "?":
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), self.name)
        return self.type


class KeptFile(KeptEntry):
    """A regular file, and what is kept of its content."""

    __slots__ = ("block", "content", "index", "signature", "watch")

    type = "f"

    def __init__(self, name: str, directory: "KeptDirectory") -> None:
        super().__init__(name, directory)
        self.block: Block | None = None  # where its text is
        self.index = 0
        self.content = ""  # what a search has found its text to be
        self.signature = 0  # of the status with which it was read; 0 when nothing is kept
        self.watch = -1  # the number of its own watch; -1 for none

    @property
    def is_kept(self) -> bool:
        """Whether its text is kept, or that it is binary."""
        return self.block is not None or self.content == BINARY

    def keep_as_binary(self) -> None:
        """Drop the text, and keep that it is binary."""
        self.directory.tree.texts.discard(self)
        self.content = BINARY

    @property
    def text(self) -> memoryview:
        """The kept text."""
        return self.directory.tree.texts.view(self)

    @property
    def place(self) -> tuple[bytearray, int, int]:
        """Where the kept text is: in what, from where, and to where."""
        return self.directory.tree.texts.place(self)


class KeptOther(KeptEntry):
    """A link, a special file, or a name of unknown type."""

    __slots__ = ("type",)

    def __init__(self, name: str, directory: "KeptDirectory", type_: str) -> None:
        super().__init__(name, directory)
        self.type = type_


class KeptDirectory(KeptEntry):
    """A directory, and what is in it."""

    __slots__ = ("changed", "device", "entered", "entries", "inode", "prefix", "reason", "tree", "watch")

    type = "d"

    def __init__(self, name: str, parent: "KeptDirectory | None", tree: Tree) -> None:
        super().__init__(name, parent or self)
        self.tree = tree
        self.prefix: str = f"{parent.prefix}{name}/" if parent else ""  # its real path
        self.entries: list[KeptEntry] | None = None  # in the system's order; None before it is listed
        self.watch = -1  # the number of its watch; -1 for none
        self.reason = ""  # why there is none
        self.device, self.inode = UNKNOWN, 0
        # How many listings of the tree had changed when this one was made and when it last changed.
        self.entered = self.changed = 0

    @property
    def real_path(self) -> str:
        """Its real path; "" is the root."""
        return self.prefix[:-1]

    def find(self, name: str) -> KeptEntry | None:
        """Return what has a name in it."""
        return next((entry for entry in self.entries or () if entry.name == name), None)

    def below(self) -> Iterator["KeptDirectory"]:
        """Yield the directory and all below it."""
        pending = [self]
        while pending:
            each = pending.pop()
            yield each
            pending += [entry for entry in each.entries or () if isinstance(entry, KeptDirectory)]


class WatchedDirectory(Directory):
    """A directory whose listing and texts are taken from a kept tree, during one call."""

    __slots__ = ("_files", "kept")

    def __init__(self, context: RootContext, path: str, kept: KeptDirectory) -> None:
        super().__init__(context, -1, path, kept.real_path)
        self.kept = kept
        self._files: dict[str, KeptFile] = {}  # once they are read

    @property
    def is_watched(self) -> bool:
        """Whether every change of the listing is noticed."""
        return self.kept.watch >= 0

    @property
    def handle(self) -> int:
        """A descriptor of the directory, which the tree closes."""
        return self.kept.tree.handle(self.kept)

    def scan_parts(self, size: int) -> Iterator[list[Any]]:
        """Yield what is in the directory in parts."""
        entries = self.kept.entries or []
        for first in range(0, len(entries), size):
            yield entries[first : first + size]

    def enter(self, listed: DirEntry) -> Directory:
        """Open a directory in this one to walk through it; a link is not followed."""
        if isinstance(listed, KeptDirectory) and listed.tree.enter(listed):
            return WatchedDirectory(self._context, self._child(listed.name), listed)
        return self.open_directory(listed.name)

    def read_files(
        self, names: Sequence[str], read: Callable[[Any], _O | None], *, linked: bool = True
    ) -> Iterator[tuple[str, _O | OSError | AccessError]]:
        """Read one regular file after the other, as `Directory`; `read` is given a kept file, or an fd."""
        if not self._files:
            entries = self.kept.entries or ()
            self._files = {entry.name: entry for entry in entries if isinstance(entry, KeptFile)}
        files = [self._files[name] for name in names if name in self._files]
        if len(files) < len(names):  # the descriptor of the tree may be closed meanwhile
            with Directory(self._context, os.dup(self.handle), self.path, self.real_path) as directory:
                yield from directory.read_files(names, read, linked=linked)
            return
        for file, outcome in self.kept.tree.read(self._context, files, read):
            yield file.name, outcome

    def read_new(self, file: KeptFile, read: Callable[[Any], _O | None]) -> _O | None:
        """Read a file of which nothing is kept, and keep its text if that is possible."""
        name = file.name
        if self._context.unreadable.covers(self._real_child(name)):
            raise self._protected(name)
        if self._context.access is not None:
            self._context.access.check_read(self._real_child(name))
        fd = syscalls.open_file(self.handle, name)
        try:
            status = self._check_readable(fd, name)
            outcome = read(file if self.kept.tree.load(file, fd, status) else fd)
            if outcome is not None:
                self._check_readable(fd, name)
        finally:
            syscalls.close(fd)
        return outcome

    def close(self) -> None:
        """Leave the directory open for the rest of the call."""


class Memo:
    """The newest of what was derived from listings, until one changes; its size is in names."""

    def __init__(self) -> None:
        self._values: dict[Key, tuple[Any, int]] = {}
        self._size = 0
        self._known: set[Key] = set()

    def had(self, key: Key) -> bool:
        """Return whether something was kept under a key, now or lately."""
        return key in self._known

    def get(self, key: Key) -> Any:
        """Return what is kept under a key; None for nothing."""
        found = self._values.pop(key, None)
        if found is None:
            return None
        self._values[key] = found  # now the newest
        return found[0]

    def keep(self, key: Key, value: Any, size: int, most: int) -> None:
        """Keep something of a size, and drop the oldest until no more than `most` is kept, but for this."""
        self.drop(key)
        self._values[key] = value, size
        self._size += size
        if len(self._known) > _MAX_KNOWN:
            self._known.clear()
        self._known.add(key)
        while (self._size > most or len(self._values) > _MAX_DERIVED) and len(self._values) > 1:
            self.drop(next(iter(self._values)))

    def drop(self, key: Key) -> None:
        """Drop what is kept under a key."""
        self._size -= self._values.pop(key, (None, 0))[1]

    def drop_made_of(self, key: Key) -> None:
        """Drop the values whose keys begin with a key."""
        for each in [each for each in self._values if each[0] == key]:
            self.drop(each)

    def clear(self) -> None:
        """Drop all."""
        self._values.clear()
        self._size = 0
