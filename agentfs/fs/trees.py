"""`Trees`: the seam where a real path becomes a tree of the disk and a path in it.

All other modules take names in an open directory from here, so they see one tree. A real path is a path from
the root, also in a mount.

A mount shadows the disk, and so does each directory that leads to one: if no directory is there, or another
program puts a link in its place, an empty directory is shown instead. So no change on disk moves a mount.
"""

import os
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeVar

from agentfs.base.lazy import tempfile
from agentfs.errors import NotFoundError, ReadOnlyError, RefusedError
from agentfs.fs import syscalls
from agentfs.fs.path import is_in, quote
from agentfs.policy import Mount, Policy

_R = TypeVar("_R")
_Function = Callable[[int, str], _R]  # of an open directory and a name in it


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

    def below(self, real_path: str) -> str:
        """Return the path of a file in it from `handle`."""
        below = real_path[len(self.path) :]
        return self.file + below if self.file else below.lstrip("/") or "."

    def status(self) -> os.stat_result:
        """Return the status of its top."""
        handle = self.handle
        return syscalls.lstat(handle.fd, self.file or ".")

    def close(self) -> None:
        """Close the tree. Running calls finish."""
        self.handle = RootHandle(-1)


class MountEntry:
    """The top of a mount, or the stand-in of a directory that leads to one, in the form of `os.DirEntry`."""

    __slots__ = ("_tree", "leads", "name")

    def __init__(self, name: str, tree: OpenTree, *, leads: bool = False) -> None:
        self.name = name
        self.leads = leads
        self._tree = tree

    def is_file(self, *, follow_symlinks: bool = False) -> bool:
        """Return True for a mounted file."""
        del follow_symlinks
        return bool(self._tree.file)

    def is_dir(self, *, follow_symlinks: bool = False) -> bool:
        """Return True for a directory."""
        del follow_symlinks
        return not self._tree.file

    def is_symlink(self) -> bool:
        """Return False."""
        return False

    def stat(self, *, follow_symlinks: bool = False) -> os.stat_result:
        """Return its status."""
        del follow_symlinks
        return self.call(syscalls.lstat)

    def call(self, function: _Function[_R]) -> _R:
        """Return the outcome of a function of a descriptor and a name in it."""
        handle = self._tree.handle  # a reference keeps it open
        return function(handle.fd, self._tree.file or ".")


class Trees:
    """The trees of a root: its own, and those that are mounted below it."""

    def __init__(self, root: OpenTree, mounted: Iterable[OpenTree] = (), *, only: bool = False) -> None:
        """Take open trees. With `only`, nothing outside the mounts may be changed."""
        self.root = root
        self.others = {tree.path: tree for tree in mounted}
        self.only_others = only
        self.have_rules = any(tree.rules for tree in self)  # rules of their own
        self._stand_in = OpenTree("", "", RootHandle(_removed_directory() if self.others else -1))
        self._entries: dict[str, dict[str, MountEntry]] = {}  # by directory
        for tree in self.others.values():
            directory, _, name = tree.path.rpartition("/")
            entry = MountEntry(name, tree)
            while self._entries.setdefault(directory, {}).setdefault(name, entry) is entry and directory:
                directory, _, name = directory.rpartition("/")
                entry = MountEntry(name, self._stand_in, leads=True)
        self.leading = self._entries.keys()  # the directories that have mounts or lead to them

    def __iter__(self) -> Iterator[OpenTree]:
        yield self.root
        yield from self.others.values()

    def of(self, real_path: str) -> OpenTree:
        """Return the tree that a real path lies in."""
        for path, tree in self.others.items():
            if is_in(real_path, path):
                return tree
        return self.root

    def below(self, real_path: str) -> list[OpenTree]:
        """Return the mounts below a directory."""
        return [tree for path, tree in self.others.items() if is_in(path, real_path)]

    def names(self, directory: str) -> Collection[str]:
        """Return the names in a directory that are mounts or lead to mounts."""
        return self._entries.get(directory, ())

    def open_beneath(self, real_path: str, *, directory: bool = False) -> int:
        """Open a real path by `openat2`, in the tree that it lies in; return -1 if it must be walked."""
        if real_path and real_path in self.leading:
            return -1
        tree = self.of(real_path)
        handle = tree.handle  # a reference keeps it open
        return syscalls.open_beneath(handle.fd, tree.below(real_path), directory=directory)

    def at(self, function: _Function[_R], real_path: str) -> _R:
        """Return the outcome of a function of an open tree and the path in it.

        A link on the way may lead outside, so the outcome is only for comparisons.
        """
        tree = self.of(real_path)
        handle = tree.handle  # a reference keeps it open
        return function(handle.fd, tree.below(real_path))

    def status(self, real_path: str) -> os.stat_result:
        """Return the status of a file; see `at`."""
        return self.at(syscalls.lstat, real_path)

    def inside(self, function: _Function[_R], handle: int, directory: str) -> Callable[[str], _R]:
        """Return a function that calls another with an open directory and a name in it.

        A mount shadows the disk. `directory` is the real path of the directory.
        """
        mounted = self._entries.get(directory)
        return partial(function, handle) if mounted is None else partial(_call, function, handle, mounted)

    def scan(self, handle: int, directory: str) -> AbstractContextManager[Iterator[Any]]:
        """Give the entries of an open directory as the mounts shadow them, in the system's order."""
        mounted = self._entries.get(directory)
        return os.scandir(handle) if mounted is None else closing(_shadowed(handle, mounted))

    def typed_names(self, handle: int, directory: str) -> Iterator[tuple[str, str]]:
        """Yield the names in an open directory with their types, as the mounts shadow them."""
        with self.scan(handle, directory) as entries:
            yield from syscalls.typed_names(entries)

    def is_stand_in(self, handle: int) -> bool:
        """Return True if an open directory stands for one that is not on disk."""
        return os.path.samestat(syscalls.lstat(handle, "."), syscalls.lstat(self._stand_in.handle.fd, "."))

    def mark(self, real_path: str) -> Literal["read-only", "read-write"] | None:
        """Return the mark of a mount; None for all other paths."""
        tree = self.others.get(real_path)
        return None if tree is None else "read-only" if tree.is_read_only else "read-write"

    def temporaries_of(self, real_path: str) -> str:
        """Return the directory where temporaries are named: those of a mounted file lie below it."""
        return real_path if real_path in self.others else os.path.dirname(real_path)

    def path_on_disk(self, real_path: str) -> str:
        """Return the absolute path of a file, for programs; another program may replace it by a link."""
        tree = self.of(real_path)
        below = real_path[len(tree.path) :].lstrip("/")
        return os.path.join(tree.source, below) if below else tree.source

    def check_may_change(self, path: str, real_path: str) -> None:
        """Raise an error if a path may not be changed because of a mount."""
        tree, details = self.of(real_path), {"path": path}
        if tree is self.root:
            if self.only_others:
                raise ReadOnlyError(
                    f"{quote(path)} lies in no mount, and this workspace has nothing but mounts.",
                    hint=f"Use a path below {' or '.join(map(quote, self.others))}.",
                    details=details,
                )
        elif tree.is_read_only:
            raise ReadOnlyError(
                f"{quote(path)} cannot be changed: the mount {quote(tree.path)} is read-only.",
                hint="Change a file outside of it.",
                details=details,
            )
        elif syscalls.was_removed(tree.handle.fd):
            raise NotFoundError(
                f"{quote(path)} cannot be changed: the directory of the mount {quote(tree.path)} is gone.",
                hint="Tell the user, or go on without it.",
                details=details,
            )
        elif not tree.file:
            self.check_removable(path, real_path)

    def check_removable(self, path: str, real_path: str) -> None:
        """Raise `refused` for a mount. A mounted file can be changed, but not removed."""
        if real_path in self.others:
            raise RefusedError(
                f"{quote(path)} is a mount and stays where it is.",
                hint="Change its files instead.",
                details={"path": path},
            )

    def identities(self, real_paths: Iterable[str]) -> dict[str, list[int]]:
        """Return the device and inode of each mount that one of the paths lies in, by its path."""
        found: dict[str, list[int]] = {}
        for tree in {self.of(path) for path in real_paths} - {self.root}:
            status = tree.status()
            found[tree.path] = [status.st_dev, 0 if tree.file else status.st_ino]
        return found

    @property
    def handles(self) -> list[RootHandle]:
        """The open tops of all trees that are directories."""
        return [tree.handle for tree in self if not tree.file]

    def close(self) -> None:
        """Close all trees. Running calls finish."""
        for tree in (*self, self._stand_in):
            tree.close()


def _call(function: _Function[_R], handle: int, mounted: Mapping[str, MountEntry], name: str) -> _R:
    """Call a function of a descriptor and a name in it, where a mount shadows the disk."""
    entry = mounted.get(name)
    if entry is None:
        return function(handle, name)
    if not entry.leads:
        return entry.call(function)
    try:
        found = syscalls.enter(handle, name)  # a link or a file in its place must not be opened
    except OSError:
        return entry.call(function)
    try:
        return function(found, ".")
    finally:
        syscalls.close(found)


def _shadowed(handle: int, mounted: Mapping[str, MountEntry]) -> Generator[Any]:
    """Yield the entries of an open directory as mounts shadow them."""
    missing = {**mounted}
    with suppress(FileNotFoundError), os.scandir(handle) as entries:  # not found: a stand-in
        for entry in entries:
            shadow = mounted.get(entry.name)
            if shadow is None:
                yield entry
            elif shadow.leads and entry.is_dir(follow_symlinks=False):
                del missing[entry.name]
                yield entry
    yield from missing.values()


def _removed_directory() -> int:
    """Return a descriptor of an empty directory that nobody can fill."""
    path = tempfile.mkdtemp(prefix="agentfs-")
    try:
        return syscalls.open_root(path)
    finally:
        os.rmdir(path)
