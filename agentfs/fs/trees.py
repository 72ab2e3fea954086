"""`Trees`: the seam where a real path becomes a tree of the disk and a path in it.

A root is one tree. `mounts.py` shows others below it. All other modules take names in an open directory from
here, so they see one tree. A real path is a path from the root, also in another tree.
"""

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from agentfs.fs import syscalls
from agentfs.fs.path import is_in
from agentfs.policy import Mount, Policy


class RootHandle:
    """The descriptor of a tree; -1 if closed. It is closed with the last reference to this object.

    If `close()` closed it at once, the number could name another directory during a call in another thread.
    """

    __slots__ = ("fd",)

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def __del__(self) -> None:
        if self.fd != -1:
            syscalls.close(self.fd)


@dataclass(eq=False)
class OpenTree:
    """An open tree. Its top is at the real path `path`, which is "" for that of the root."""

    path: str
    source: str  # its absolute path, without links
    handle: RootHandle  # of its top directory; of the parent directory if the tree is a single file
    file: str = ""  # the name of a single file
    mount: Mount | None = None
    rules: Policy | None = None  # its own rules, with paths from the root

    @property
    def is_read_only(self) -> bool:
        """True if nothing in it may be changed."""
        return self.mount is not None and self.mount.read_only

    def close(self) -> None:
        """Close the tree. Running calls finish."""
        self.handle = RootHandle(-1)


class Trees:
    """The trees of a root: its own, and none besides."""

    others: Mapping[str, OpenTree] = {}  # by real path
    above: Collection[str] = ()  # the directories that lead to others, except the root
    only_others = False  # True if nothing outside the others may be changed

    def __init__(self, root: OpenTree) -> None:
        self.root = root

    def __iter__(self) -> Iterator[OpenTree]:
        yield self.root
        yield from self.others.values()

    def of(self, real_path: str) -> OpenTree:
        """Return the tree that a real path lies in."""
        del real_path
        return self.root

    def below(self, real_path: str) -> list[OpenTree]:
        """Return the other trees below a directory."""
        return [tree for path, tree in self.others.items() if is_in(path, real_path)]

    def names(self, directory: str) -> Collection[str]:
        """Return the names in a directory that are other trees or lead to them."""
        del directory
        return ()

    def open_beneath(self, real_path: str, *, directory: bool = False) -> int:
        """Open a real path by `openat2`, in the tree that it lies in; return -1 if that fails."""
        root = self.root.handle  # a reference keeps it open
        return syscalls.open_beneath(root.fd, real_path or ".", directory=directory)

    def open(self, open_name: Callable[[int, str], int], handle: int, directory: str, name: str) -> int:
        """Open a name in an open directory with `open_name`; `directory` is its real path."""
        del directory
        return open_name(handle, name)

    def opener(
        self, open_name: Callable[[int, str], int], handle: int, directory: str
    ) -> Callable[[str], int]:
        """Return the function that opens names in a directory as `open` does."""
        del directory
        return partial(open_name, handle)

    def lstat(self, handle: int, directory: str, name: str) -> os.stat_result:
        """Return the status of a name in an open directory."""
        del directory
        return syscalls.lstat(handle, name)

    def status(self, real_path: str) -> os.stat_result:
        """Return the status of a file. A link on the way may lead outside, so it is only for comparisons."""
        root = self.root.handle
        return syscalls.lstat(root.fd, real_path or ".")

    def scan(self, handle: int, directory: str) -> AbstractContextManager[Iterator[Any]]:
        """Give the entries of an open directory, in the system's order."""
        del directory
        return os.scandir(handle)

    def typed_names(self, handle: int, directory: str) -> Iterator[tuple[str, str]]:
        """Yield the names in an open directory with their types."""
        del directory
        return syscalls.typed_names(handle)

    def is_stand_in(self, handle: int) -> bool:
        """Return True if an open directory stands for one that is not on disk."""
        del handle
        return False

    def mark(self, real_path: str) -> Literal["read-only", "read-write"] | None:
        """Return the mark of another tree's top; None for all other paths."""
        del real_path
        return None

    def temporaries_of(self, real_path: str) -> str:
        """Return the directory where the temporaries of a file are named."""
        return os.path.dirname(real_path)

    def path_on_disk(self, real_path: str) -> str:
        """Return the absolute path of a file, for programs; another program may replace it by a link."""
        tree = self.of(real_path)
        below = real_path[len(tree.path) :].lstrip("/")
        return os.path.join(tree.source, below) if below else tree.source

    def check_may_change(self, path: str, real_path: str) -> None:
        """Raise an error if the tree of a real path may not be changed there."""

    def check_removable(self, path: str, real_path: str) -> None:
        """Raise `refused` for the top of another tree."""

    def identities(self, real_paths: Iterable[str]) -> dict[str, list[int]]:
        """Return the device and inode of each other tree that one of the paths lies in, by its path."""
        del real_paths
        return {}

    @property
    def handles(self) -> list[RootHandle]:
        """The open tops of all trees that are directories."""
        return [tree.handle for tree in self if not tree.file]

    def close(self) -> None:
        """Close all trees. Running calls finish."""
        for tree in self:
            tree.close()
