"""`Trees`: the one place where a real path becomes a tree of the disk and a path in it.

All other modules take names in an open directory from here, so they see one tree. A mount is another
directory with one name directly below the root, where it shadows what another program may put there later.
"""

import os
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal, TypeVar

from agentfs.errors import InvalidArgumentError, NotDirectoryError, NotFoundError, ReadOnlyError, RefusedError
from agentfs.fs import oserrors, own_directories, syscalls
from agentfs.fs.lock import locks_of_trees
from agentfs.fs.path import absolute_parts, is_in, quote, split_path
from agentfs.policy import Mount

_R = TypeVar("_R")


class RootHandle:
    """The descriptor of a tree. It is closed with the last reference to this object.

    If `close()` closed it at once, the number could name another directory during a call in another thread.
    """

    __slots__ = ("fd",)

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def __del__(self) -> None:
        syscalls.close(self.fd)


@dataclass(eq=False)
class OpenTree:
    """An open tree. `path` is its name below the root, or "" for the root itself."""

    path: str
    source: str  # its absolute path, without links
    handle: RootHandle
    mount: Mount | None = None

    @property
    def is_read_only(self) -> bool:
        """True if nothing in it may be changed."""
        return self.mount is not None and self.mount.read_only

    def below(self, real_path: str) -> str:
        """Return the path of a file in it from `handle`."""
        return real_path[len(self.path) :].lstrip("/") or "."

    def close(self) -> None:
        """Close the tree. Running calls finish."""
        self.handle = RootHandle(syscalls.CLOSED)


class MountEntry:
    """The top of a mount, in the form of `os.DirEntry`."""

    __slots__ = ("_tree", "name")

    def __init__(self, tree: OpenTree) -> None:
        self.name = tree.path
        self._tree = tree

    def is_file(self, **_: bool) -> bool:
        """Return False."""
        return False

    def is_dir(self, **_: bool) -> bool:
        """Return True."""
        return True

    is_symlink = is_file

    def stat(self, **_: bool) -> os.stat_result:
        """Return its status."""
        handle = self._tree.handle  # a reference keeps it open
        return syscalls.lstat(handle.fd, ".")


class Trees:
    """The trees of a root: its own, and those that are mounted directly below it."""

    def __init__(self, root: OpenTree, mounts: Mapping[str, Mount], *, read_only: bool) -> None:
        """Open the mounts. With `read_only`, nothing in the workspace is changed."""
        self.root = root
        self.others = {name: _opened(root, name, each, read_only=read_only) for name, each in mounts.items()}
        changed = [] if read_only else [each for each in self if not each.is_read_only]
        try:
            self.lock_keys = locks_of_trees((each.handle.fd, each.source) for each in changed)
        except OSError as error:
            raise oserrors.from_oserror(error, root.source) from None

    def __iter__(self) -> Iterator[OpenTree]:
        yield self.root
        yield from self.others.values()

    def of(self, real_path: str) -> OpenTree:
        """Return the tree that a real path lies in."""
        return self.others.get(real_path.partition("/")[0], self.root) if self.others else self.root

    @property
    def absolute_places(self) -> dict[tuple[str, ...], tuple[str, ...]]:
        """The absolute spellings of each mount, in parts, with its name; the longest first."""
        found: dict[tuple[str, ...], tuple[str, ...]] = {}
        for tree in self.others.values():
            given = [] if tree.mount is None else [os.path.abspath(tree.mount.place)]
            for spelling in (tree.source, *given):
                found.setdefault(absolute_parts(spelling), (tree.path,))
        return dict(sorted(found.items(), key=lambda item: -len(item[0])))

    def status(self, real_path: str) -> os.stat_result:
        """Return the status of a file. A link on the way may lead outside, so use it only for comparisons."""
        tree = self.of(real_path)
        handle = tree.handle  # a reference keeps it open
        return syscalls.lstat(handle.fd, tree.below(real_path))

    def call(self, function: Callable[[int, str], _R], handle: int, directory: str, name: str) -> _R:
        """Call a function with an open directory and a name in it; in the root, a mount shadows the disk."""
        tree = None if directory else self.others.get(name)
        if tree is None:
            return function(handle, name)
        mounted = tree.handle  # a reference keeps it open
        return function(mounted.fd, ".")

    @contextmanager
    def scan(self, handle: int, directory: str) -> Generator[Iterator[Any]]:
        """Give the entries of an open directory as the mounts shadow them, in the system's order."""
        with os.scandir(handle) as entries:
            if directory or not self.others:
                yield entries
            else:
                left = (entry for entry in entries if entry.name not in self.others)
                yield chain(left, map(MountEntry, self.others.values()))

    def typed_names(self, handle: int, directory: str) -> Iterator[tuple[str, str]]:
        """Yield the names in an open directory with their types: one of "fdlo", or "?" if unknown."""
        with self.scan(handle, directory) as entries:
            for entry in entries:
                yield entry.name, _letter(entry)

    def mark(self, real_path: str) -> Literal["read-only", "read-write"] | None:
        """Return the mark of a mount; None for all other paths."""
        tree = self.others.get(real_path)
        return None if tree is None else "read-only" if tree.is_read_only else "read-write"

    def path_on_disk(self, real_path: str) -> str:
        """Return the absolute path of a file, for programs; another program may replace it by a link."""
        tree = self.of(real_path)
        return os.path.normpath(os.path.join(tree.source, tree.below(real_path)))

    def check_may_change(self, path: str, real_path: str) -> None:
        """Raise an error if a path may not be changed because of a mount."""
        if (tree := self.of(real_path)) is self.root:
            return
        mount, details = f"the mount {quote(tree.path)}", {"path": path}
        if tree.is_read_only:
            message = f"{quote(path)} cannot be changed: {mount} is read-only."
            raise ReadOnlyError(message, hint="Change a file outside of it.", details=details)
        if real_path == tree.path:
            message = f"{quote(path)} is a mount and stays where it is."
            raise RefusedError(message, hint="Change its files instead.", details=details)
        if syscalls.was_removed(tree.handle.fd):
            message = f"{quote(path)} cannot be changed: the directory of {mount} is gone."
            raise NotFoundError(message, hint="Tell the user, or go on without it.", details=details)

    def close(self) -> None:
        """Close all trees. Running calls finish."""
        for tree in self:
            tree.close()


def _opened(root: OpenTree, name: str, mount: Mount, *, read_only: bool) -> OpenTree:
    """Open a mount, or raise an error that says what is wrong with it."""
    source = os.path.realpath(mount.place)
    what = f"The source {quote(mount.place)} of the mount {quote(name)}"
    parsed, wrong, hint = split_path(name, {}), "", ""
    if parsed.parts != (name,) or parsed.climbs:
        wrong, hint = f"A mount cannot be at {quote(name)}", "Give it one name, directly below the root."
    elif os.path.lexists(os.path.join(root.source, name)):
        wrong, hint = f"The mount {quote(name)} would hide an entry of the root", "Give it another name."
    elif is_in(source, root.source.rstrip("/")) or is_in(root.source, source.rstrip("/")):
        wrong, hint = f"{what} lies inside the root or contains it", "Mount a directory beside the root."
    if wrong:
        raise InvalidArgumentError(f"{wrong}.", hint=hint)
    advice = "" if read_only or mount.read_only else "Mount it with read_only=True."
    return OpenTree(name, source, open_top(source, what, advice), mount)


def open_top(path: str, what: str, advice: str) -> RootHandle:
    """Open the top of a tree, or raise an error about `what`.

    With `advice`, the tree may be changed, so it must not lie in a directory of agentfs itself.
    """
    details = {"path": path}
    try:
        handle = RootHandle(syscalls.open_root(path))
    except FileNotFoundError:
        raise NotFoundError(f"{what} does not exist.", details=details) from None
    except NotADirectoryError:
        raise NotDirectoryError(f"{what} is not a directory.", details=details) from None
    except OSError as error:
        raise oserrors.from_oserror(error, path) from None
    if advice and own_directories.contains(os.path.realpath(path)):
        message = f"{what} lies in a directory that agentfs uses itself."
        raise RefusedError(message, hint=advice, details=details)
    return handle


def _letter(entry: Any) -> str:
    try:
        if entry.is_file(follow_symlinks=False):
            return "f"
        if entry.is_dir(follow_symlinks=False):
            return "d"
        return "l" if entry.is_symlink() else "o"
    except OSError:
        return "?"
