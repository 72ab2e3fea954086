"""The entries of a kept tree: directories, files and other names, with the cached facts about each."""

import errno
import os
from collections.abc import Iterator
from typing import Any, Protocol

from agentfs.fs import BINARY
from agentfs.watch.text_blocks import Block

NO_WATCH = -1  # in place of the number of a watch


class Tree(Protocol):
    """The methods of a kept tree that its entries use."""

    def handle(self, directory: "KeptDirectory") -> int:
        """Return a descriptor of a directory, valid until the end of the call. Raises OSError."""
        ...

    def status(self, directory: "KeptDirectory", name: str) -> os.stat_result:
        """Return the status of a name in a directory. Raises OSError."""
        ...

    def enter(self, directory: "KeptDirectory") -> bool:
        """Watch a directory, then list it; return False if it cannot be kept. Raises OSError."""
        ...


class KeptEntry:
    """A name in a kept directory, with the methods of `os.DirEntry`."""

    __slots__ = ("directory", "name")

    type: str  # one of "fdlo", or "?" if the system did not report it
    name: str
    directory: "KeptDirectory"

    @property
    def real_path(self) -> str:
        """Its real path."""
        return self.directory.prefix + self.name

    def is_file(self, **_: bool) -> bool:
        """Return True if it is a regular file."""
        return self.type == "f"

    def is_dir(self, **_: bool) -> bool:
        """Return True if it is a directory."""
        return self.type == "d"

    def is_symlink(self) -> bool:
        """Return True if it is a link."""
        return self.type == "l"

    def stat(self, **_: bool) -> os.stat_result:
        """Return its status as it is now."""
        return self.directory.tree.status(self.directory, self.name)


class KeptFile(KeptEntry):
    """A regular file with its kept text, or the kept fact that it is binary."""

    __slots__ = ("block", "content", "index", "last_use", "previous_use", "signature", "size", "watch")

    type = "f"

    def __init__(self, name: str, directory: "KeptDirectory") -> None:
        # `super()` would be slower, and a first walk makes one object for each name.
        self.name = name
        self.directory = directory
        self.block: Block | None = None  # the block that holds its text
        self.index = 0
        self.content = ""  # the kind of content, set by a search: "plain", "binary" or "other"
        self.size = 0  # bytes, when it was read
        self.signature = 0  # hash of the status when it was read; 0 if nothing is kept
        self.watch = NO_WATCH  # the number of its own watch
        self.last_use = self.previous_use = 0  # the last two searches that needed its text

    @property
    def is_kept(self) -> bool:
        """True if its text or the fact that it is binary is kept."""
        return self.block is not None or self.content == BINARY

    def keep_as_binary(self) -> None:
        """Drop the text, and keep the fact that the file is binary."""
        self.drop_text()
        self.content = BINARY

    def drop_text(self) -> None:
        """Drop the text and the kind of content."""
        block, self.block, self.content = self.block, None, ""
        if block is not None:
            block.drop(self.index)

    @property
    def text(self) -> memoryview:
        """The kept text."""
        return memoryview(b"") if self.block is None else self.block.text(self.index)


class KeptOther(KeptEntry):
    """A link, a special file, or a name of unknown type."""

    __slots__ = ("type",)

    def __init__(self, name: str, directory: "KeptDirectory", type_: str) -> None:
        self.name = name
        self.directory = directory
        self.type = type_

    def is_file(self, **_: bool) -> bool:
        """Return False. Raises OSError if the system did not report the type."""
        return self.is_dir()

    def is_dir(self, **_: bool) -> bool:
        """Return False. Raises OSError if the system did not report the type."""
        if self.type == "?":
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), self.name)
        return False


class KeptDirectory(KeptEntry):
    """A directory; its entries are kept once it is watched."""

    __slots__ = ("derived", "device", "entries", "inode", "opened", "prefix", "reason", "tree", "watch")

    type = "d"

    def __init__(self, name: str, parent: "KeptDirectory | None", tree: Tree) -> None:
        self.name = name
        self.directory = parent or self
        self.tree = tree
        self.prefix: str = f"{parent.prefix}{name}/" if parent else ""  # its real path
        self.entries: list[KeptEntry] | None = None  # in the system's order; None before it is listed
        self.derived: dict[Any, Any] = {}  # results that walks derived from the tree below
        self.opened: Any = None  # the `WatchedDirectory` of the last walk
        self.watch = NO_WATCH  # the number of its watch
        self.reason = ""  # why it cannot be kept
        self.device = self.inode = 0  # set when it is watched

    @property
    def real_path(self) -> str:
        """Its real path; "" is the root."""
        return self.prefix[:-1]

    def find(self, name: str) -> KeptEntry | None:
        """Return the entry with a name."""
        return next((entry for entry in self.entries or () if entry.name == name), None)

    def forget_derived(self) -> None:
        """Drop derived results, here and in the directories above."""
        each = self
        while each is not each.directory:
            each.derived.clear()
            each = each.directory
        each.derived.clear()

    def below(self) -> Iterator["KeptDirectory"]:
        """Yield the directory and all below it."""
        pending = [self]
        while pending:
            each = pending.pop()
            yield each
            pending += [entry for entry in each.entries or () if isinstance(entry, KeptDirectory)]
