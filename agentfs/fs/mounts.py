"""Mounts: other trees that appear below a root.

A mount shadows the disk, and so does each directory that leads to one: if no directory is there, or another
program puts a link in its place, an empty directory stands in for it. So no change on disk moves a mount.
"""

import os
import stat
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import Any, Literal, TypeVar

from agentfs.base.lazy import tempfile
from agentfs.errors import InvalidArgumentError, NotDirectoryError, NotFoundError, ReadOnlyError, RefusedError
from agentfs.fs import oserrors, own_directories, syscalls
from agentfs.fs.context import RootContext
from agentfs.fs.lock import lock_directory
from agentfs.fs.node import revision_of
from agentfs.fs.path import absolute_parts, is_in, quote, split_path
from agentfs.fs.protect import NameMatcher, name_matcher
from agentfs.fs.resolve import resolve_real
from agentfs.fs.trees import OpenTree, RootHandle, Trees
from agentfs.permissions import rule_below
from agentfs.policy import Mount, Policy

_R = TypeVar("_R")


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
        return self.open(syscalls.lstat)

    def open(self, open_name: Callable[[int, str], _R]) -> _R:
        """Return the outcome of a function of a descriptor and a name in it."""
        handle = self._tree.handle  # a reference keeps it open
        return open_name(handle.fd, self._tree.file or ".")


class MountedTrees(Trees):
    """The trees of a root with mounts."""

    def __init__(self, root: OpenTree, mounted: Iterable[OpenTree], *, only: bool) -> None:
        """Take open trees. With `only`, nothing outside the mounts may be changed."""
        super().__init__(root)
        self.others = {tree.path: tree for tree in mounted}
        self.only_others = only
        self._stand_in = OpenTree("", "", RootHandle(_removed_directory()))
        self._entries: dict[str, dict[str, MountEntry]] = {}  # by directory
        for tree in self.others.values():
            directory, _, name = tree.path.rpartition("/")
            entry = MountEntry(name, tree)
            while self._entries.setdefault(directory, {}).setdefault(name, entry) is entry and directory:
                directory, _, name = directory.rpartition("/")
                entry = MountEntry(name, self._stand_in, leads=True)
        self.above = self._entries.keys() - {""}

    def of(self, real_path: str) -> OpenTree:
        """Return the tree that a real path lies in."""
        for path, tree in self.others.items():
            if is_in(real_path, path):
                return tree
        return self.root

    def names(self, directory: str) -> Collection[str]:
        """Return the names in a directory that are mounts or lead to mounts."""
        return self._entries.get(directory, ())

    def _entry(self, directory: str, name: str) -> MountEntry | None:
        return self._entries.get(directory, {}).get(name)

    def _locate(self, real_path: str) -> tuple[RootHandle, str] | None:
        """Return an open directory and the path from there; None if the path must be walked."""
        tree = self.of(real_path)
        if tree is self.root:
            return None if real_path in self.above else (tree.handle, real_path)
        if tree.file:
            return (tree.handle, tree.file) if real_path == tree.path else None
        return tree.handle, real_path[len(tree.path) + 1 :]

    def open_beneath(self, real_path: str, *, directory: bool = False) -> int:
        """Open a real path by `openat2`, in the tree that it lies in; return -1 if that fails."""
        found = self._locate(real_path)
        if found is None:
            return -1
        handle, path = found
        return syscalls.open_beneath(handle.fd, path or ".", directory=directory)

    def open(self, open_name: Callable[[int, str], int], handle: int, directory: str, name: str) -> int:
        """Open a name in an open directory with `open_name`, where a mount shadows the disk."""
        entry = self._entry(directory, name)
        if entry is None:
            return open_name(handle, name)
        if not entry.leads:
            return entry.open(open_name)
        try:
            found = syscalls.enter(handle, name)  # a link or a file in its place must not be opened
        except OSError:
            return entry.open(open_name)
        try:
            return open_name(found, ".")
        finally:
            syscalls.close(found)

    def opener(
        self, open_name: Callable[[int, str], int], handle: int, directory: str
    ) -> Callable[[str], int]:
        """Return the function that opens names in a directory as `open` does."""
        if directory not in self._entries:
            return super().opener(open_name, handle, directory)
        return partial(self.open, open_name, handle, directory)

    def lstat(self, handle: int, directory: str, name: str) -> os.stat_result:
        """Return the status of a name in an open directory, where a mount shadows the disk."""
        entry = self._entry(directory, name)
        if entry is None:
            return syscalls.lstat(handle, name)
        if entry.leads:
            with suppress(OSError):
                status = syscalls.lstat(handle, name)
                return status if stat.S_ISDIR(status.st_mode) else entry.stat()
        return entry.stat()

    def status(self, real_path: str) -> os.stat_result:
        """Return the status of a file. A link on the way may lead outside, so it is only for comparisons."""
        handle, path = self._locate(real_path) or (self.root.handle, real_path)
        return syscalls.lstat(handle.fd, path or ".")

    def scan(self, handle: int, directory: str) -> AbstractContextManager[Iterator[Any]]:
        """Give the entries of an open directory as the mounts shadow them."""
        mounted = self._entries.get(directory)
        return super().scan(handle, directory) if mounted is None else _shadowed(handle, mounted)

    def typed_names(self, handle: int, directory: str) -> Iterator[tuple[str, str]]:
        """Yield the names in an open directory with their types, as the mounts shadow them."""
        mounted = self._entries.get(directory, {})
        with suppress(FileNotFoundError):  # a stand-in
            yield from (each for each in syscalls.typed_names(handle) if each[0] not in mounted)
        yield from ((name, "d" if entry.is_dir() else "f") for name, entry in mounted.items())

    def is_stand_in(self, handle: int) -> bool:
        """Return True if an open directory stands for one that is not on disk."""
        status = syscalls.lstat(self._stand_in.handle.fd, ".")
        return os.path.samestat(syscalls.lstat(handle, "."), status)

    def mark(self, real_path: str) -> Literal["read-only", "read-write"] | None:
        """Return the mark of a mount; None for all other paths."""
        tree = self.others.get(real_path)
        return None if tree is None else "read-only" if tree.is_read_only else "read-write"

    def temporaries_of(self, real_path: str) -> str:
        """Return the directory where temporaries are named: those of a mounted file lie below it."""
        return real_path if real_path in self.others else super().temporaries_of(real_path)

    def check_may_change(self, path: str, real_path: str) -> None:
        """Raise `read_only` or `refused` if a path may not be changed because of a mount."""
        tree = self.of(real_path)
        if tree is self.root:
            if self.only_others:
                raise ReadOnlyError(
                    f"{quote(path)} lies in no mount, and this workspace has nothing but mounts.",
                    hint=f"Use a path below {' or '.join(map(quote, self.others))}.",
                    details={"path": path},
                )
            return
        if tree.is_read_only:
            raise ReadOnlyError(
                f"{quote(path)} cannot be changed: the mount {quote(tree.path)} is read-only.",
                hint="Change a file outside of it.",
                details={"path": path},
            )
        if syscalls.was_removed(tree.handle.fd):
            raise NotFoundError(
                f"{quote(path)} cannot be changed: the directory of the mount {quote(tree.path)} is gone.",
                hint="Tell the user, or go on without it.",
                details={"path": path},
            )
        if not tree.file:
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
            status = syscalls.lstat(tree.handle.fd, tree.file or ".")
            found[tree.path] = [status.st_dev, 0 if tree.file else status.st_ino]
        return found

    def close(self) -> None:
        """Close all trees. Running calls finish."""
        super().close()
        self._stand_in.close()


@contextmanager
def _shadowed(handle: int, mounted: Mapping[str, MountEntry]) -> Generator[Iterator[Any]]:
    """Give the entries of an open directory as mounts shadow them."""

    def on_disk() -> Iterator[Any]:
        with suppress(FileNotFoundError), os.scandir(handle) as entries:  # not found: a stand-in
            yield from entries

    def shadowed() -> Iterator[Any]:
        kept = set[str]()  # directories on disk that lead to mounts
        for entry in on_disk():
            shadow = mounted.get(entry.name)
            if shadow is not None:
                if not shadow.leads or not entry.is_dir(follow_symlinks=False):
                    continue
                kept.add(entry.name)
            yield entry
        yield from (entry for name, entry in mounted.items() if name not in kept)

    yield shadowed()


class _MatcherOfTrees(NameMatcher):
    """The protected names of a root whose mounts have their own."""

    def __init__(self, own: NameMatcher, of_trees: Mapping[str, NameMatcher]) -> None:
        self.__dict__.update(vars(own))
        self._own, self._of_trees = own, of_trees
        self.literals = tuple({name: None for each in (own, *of_trees.values()) for name in each.literals})

    def covers(self, real_path: str) -> bool:
        """Return True if a path is protected."""
        for top, matcher in self._of_trees.items():
            if is_in(real_path, top):
                return matcher.covers(real_path)
        return self._own.covers(real_path)

    def covered(self, directory: str, names: Sequence[str]) -> Collection[str]:
        """Return which names in a directory are protected."""
        prefix = f"{directory}/" if directory else ""
        return [name for name in names if self.covers(prefix + name)]


def with_mounts(
    context: RootContext, mounts: Mapping[str, Mount], *, read_only: bool, only: bool
) -> RootContext:
    """Return a context with mounts, or raise an error that names the wrong one.

    Args:
        context: The context of a root without mounts.
        mounts: The mounts by path.
        read_only: True if nothing in the workspace is changed.
        only: Refuse changes outside the mounts.
    """
    root, opened = context.trees.root, dict[str, OpenTree]()
    try:
        for path, mount in mounts.items():
            real_path = _checked_path(path, [*opened])
            kind = _kind_on_disk(context, real_path)
            tree = opened[real_path] = _opened(real_path, mount, read_only=read_only)
            _check_place(tree, root.source, kind)
        trees = MountedTrees(root, opened.values(), only=only)
    except BaseException:
        for tree in opened.values():
            tree.close()
        raise
    return replace(
        context,
        trees=trees,
        roots={**context.roots, **_absolute_places(trees)},
        unreadable=_matcher(trees, context.unreadable, "read"),
        unwritable=_matcher(trees, context.unwritable, "write"),
        own=own_directories.OwnDirectories(*(tree.source for tree in trees)),
    )


def place_of_mounts(mounts: Mapping[str, Mount]) -> str:
    """Return an empty directory that stands for the root of a workspace that has only mounts.

    The same mounts have the same directory in each process, so that a state directory knows its workspace.
    """
    places = {path: os.path.realpath(mount.place) for path, mount in mounts.items()}
    directory = lock_directory("/proc")
    if not places or directory is None:
        raise InvalidArgumentError("A workspace without a root needs mounts.", hint="Pass root or mounts.")
    name = f"mounts-{revision_of(repr(sorted(places.items())).encode('utf-8', 'surrogateescape'))}"
    os.makedirs(os.path.join(directory, name), mode=0o700, exist_ok=True)
    return os.path.join(directory, name)


def _absolute_places(trees: Trees) -> dict[tuple[str, ...], tuple[str, ...]]:
    """Return the absolute spellings of each mount, in parts, with those of its path; the longest first."""
    found: dict[tuple[str, ...], tuple[str, ...]] = {}
    for tree in trees.others.values():
        shown = tuple(tree.path.split("/"))
        given = [] if tree.mount is None else [os.path.abspath(tree.mount.place)]
        for spelling in (tree.source, *given):
            found.setdefault(absolute_parts(spelling), shown)
    return dict(sorted(found.items(), key=lambda item: -len(item[0])))


def _matcher(trees: Trees, own: NameMatcher, kind: str) -> NameMatcher:
    """Return a matcher of protected names that asks each tree for its own."""
    found = {
        tree.path: name_matcher(tuple(getattr(tree.mount.protect, kind)), backups=kind == "read")
        for tree in trees
        if tree.mount is not None and tree.mount.protect is not None
    }
    return _MatcherOfTrees(own, found) if found else own


def _checked_path(path: str, others: Sequence[str]) -> str:
    parsed = split_path(path, {})
    real_path = "/".join(parsed.parts)
    if not real_path or parsed.climbs:
        raise InvalidArgumentError(f"A mount cannot be at {quote(path)}.", hint="Name a path below the root.")
    for other in others:
        if is_in(real_path, other) or is_in(other, real_path):
            raise InvalidArgumentError(
                f"The mounts {quote(other)} and {quote(real_path)} lie one in the other.",
                hint="Mount each at a path of its own.",
            )
    return real_path


def _kind_on_disk(context: RootContext, real_path: str) -> Literal["", "directory", "file"]:
    """Return what lies at a path of the root. A link on the way is an error."""
    with resolve_real(context, real_path, create_parents=True) as resolved:
        status = resolved.stat()
    return "" if status is None else "directory" if stat.S_ISDIR(status.st_mode) else "file"


def _check_place(tree: OpenTree, root_path: str, kind: str) -> None:
    if kind == "file" or (kind and tree.file):
        raise InvalidArgumentError(
            f"The mount {quote(tree.path)} would hide a {kind} of the root.", hint="Mount it at another path."
        )
    if is_in(root_path, tree.source) or os.path.join(root_path, tree.path) == tree.source:
        raise InvalidArgumentError(
            f"The mount {quote(tree.path)} has its own place as its source, {quote(tree.source)}.",
            hint="Mount a directory that does not contain the root.",
        )


def _opened(real_path: str, mount: Mount, *, read_only: bool) -> OpenTree:
    source = os.path.realpath(mount.place)
    what = f"The source {quote(mount.place)} of the mount {quote(real_path)}"
    try:
        status = os.stat(source)
        is_directory = stat.S_ISDIR(status.st_mode)
        if not is_directory and not stat.S_ISREG(status.st_mode):
            raise NotDirectoryError(f"{what} is neither a directory nor a file.", details={"path": source})
        directory = source if is_directory else os.path.dirname(source)
        handle = RootHandle(syscalls.open_root(directory))
        os.close(os.open(source, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC))  # may it be read?
    except FileNotFoundError:
        raise NotFoundError(f"{what} does not exist.", details={"path": source}) from None
    except OSError as error:
        raise oserrors.from_oserror(error, source) from None
    if not (read_only or mount.read_only) and own_directories.contains(directory):
        raise RefusedError(
            f"{what} lies in a directory that agentfs uses itself.",
            hint="Mount it with read_only=True.",
            details={"path": source},
        )
    name = "" if is_directory else os.path.basename(source)
    return OpenTree(real_path, source, handle, name, mount, _rules_below(mount, real_path))


def _rules_below(mount: Mount, real_path: str) -> Policy | None:
    """Return the rules of a mount with paths from the root; None if it has none."""
    if not (mount.allow or mount.ask or mount.deny):
        return None
    given = mount.allow, mount.ask, mount.deny
    allow, ask, deny = ([rule_below(text, real_path) for text in each] for each in given)
    return Policy(allow=allow, ask=ask, deny=deny)


def _removed_directory() -> int:
    """Return a descriptor of an empty directory that nobody can fill."""
    path = tempfile.mkdtemp(prefix="agentfs-")
    try:
        return syscalls.open_root(path)
    finally:
        os.rmdir(path)
