"""Mounts: other directories that appear below a root.

`Mounts` is the one place where a real path becomes a tree and a path in it. A real path stays a path of the
workspace: journal, rules, locks and results need to know nothing of mounts.

A mount shadows the disk, and so does each directory that leads to one: if no directory is there, or another
program puts a link in its place, an empty directory is shown. So no change on disk moves a mount.
"""

import os
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from typing import Any

from agentfs.base.frozen_data import frozen
from agentfs.base.lazy import tempfile
from agentfs.errors import InvalidArgumentError, NotDirectoryError, NotFoundError, ReadOnlyError, RefusedError
from agentfs.fs import oserrors, own_directories, syscalls
from agentfs.fs.handles import RootHandle, SharedHandle
from agentfs.fs.lock import lock_directory
from agentfs.fs.node import revision_of
from agentfs.fs.path import absolute_parts, is_in, quote, split_path
from agentfs.fs.protect import NameMatcher, name_matcher
from agentfs.permissions import rule_below
from agentfs.policy import Policy, Protect


@frozen
class Mount:
    """A directory or file outside the root that appears at a path below it.

    Attributes:
        source: The directory or file. A relative path starts in the working directory of the process.
        read_only: Refuse all changes in it.
        allow: Rules that allow calls in it, with paths relative to the mount. A mount with rules in `allow`
            or `ask` has them in place of those of the policy.
        ask: Rules that ask before calls in it.
        deny: Rules that refuse calls in it. Those of the policy hold in it too.
        protect: The names whose contents are not shown or changed; None for those of the policy.
    """

    source: str | os.PathLike[str]
    _: KW_ONLY
    read_only: bool = False
    allow: Sequence[str] = ()
    ask: Sequence[str] = ()
    deny: Sequence[str] = ()
    protect: Protect | None = None

    @property
    def place(self) -> str:
        """The source as a text."""
        return str(os.fspath(self.source))

    def __post_init__(self) -> None:
        given: dict[str, Any] = vars(self)
        named = isinstance(given["source"], (str, os.PathLike))
        protects = given["protect"] is None or isinstance(given["protect"], Protect)
        for name, fits in {"source": named, "protect": protects}.items():
            if not fits:
                raise InvalidArgumentError(f"Mount.{name} cannot be {given[name]!r}.")
        # The policy checks the other values.
        rules = Policy(read_only=self.read_only, allow=self.allow, ask=self.ask, deny=self.deny)
        for name in ("allow", "ask", "deny"):
            object.__setattr__(self, name, getattr(rules, name))


@dataclass(eq=False)
class MountedTree:
    """An open mount, at the real path `path`."""

    path: str
    mount: Mount
    source: str  # its absolute path, without links
    shared_handle: SharedHandle  # of the directory; of the directory around it for a file
    file: str  # the name of the file; "" for a directory

    @property
    def handle(self) -> RootHandle:
        """The open directory; a reference keeps it open."""
        return self.shared_handle.handle


class MountEntry:
    """A mount, or a directory that leads to one, in the form of `os.DirEntry`."""

    __slots__ = ("_at", "_is_dir", "name")

    def __init__(self, name: str, handle: SharedHandle, file: str = "") -> None:
        self.name = name
        self._at = handle, file or "."
        self._is_dir = not file

    def is_file(self, *, follow_symlinks: bool = False) -> bool:
        """Return True for the mount of a file."""
        del follow_symlinks
        return not self._is_dir

    def is_dir(self, *, follow_symlinks: bool = False) -> bool:
        """Return True for a directory."""
        del follow_symlinks
        return self._is_dir

    def is_symlink(self) -> bool:
        """Return False."""
        return False

    def stat(self, *, follow_symlinks: bool = False) -> os.stat_result:
        """Return its status."""
        del follow_symlinks
        shared, name = self._at
        return syscalls.lstat(shared.handle.fd, name)


class Mounts:
    """The mounts of one root."""

    def __init__(self, trees: Iterable[MountedTree], *, only: bool = False) -> None:
        """Take the open trees. With `only`, nothing outside of them may be changed."""
        self.trees = {tree.path: tree for tree in trees}
        self.only = only
        self.rules = {path: _rules_of(path, tree.mount) for path, tree in self.trees.items()}
        self.has_rules = any(each.allow or each.ask or each.deny for each in self.rules.values())
        self._empty = SharedHandle(RootHandle(_removed_directory()))
        self._entries: dict[str, dict[str, MountEntry]] = {}  # by directory
        self.above: set[str] = {""}  # the directories that lead to mounts
        for tree in self.trees.values():
            directory, _, name = tree.path.rpartition("/")
            entry = MountEntry(name, tree.shared_handle, tree.file)
            while self._entries.setdefault(directory, {}).setdefault(name, entry) is entry and directory:
                self.above.add(directory)
                directory, _, name = directory.rpartition("/")
                entry = MountEntry(name, self._empty)

    def tree_of(self, real_path: str) -> MountedTree | None:
        """Return the tree that a real path lies in; None for that of the root."""
        return next((tree for path, tree in self.trees.items() if is_in(real_path, path)), None)

    def locate(self, real_path: str, root: RootHandle) -> tuple[RootHandle, str] | None:
        """Return an open directory and the path from there; None if the path must be walked."""
        tree = self.tree_of(real_path)
        if tree is None:
            return None if real_path in self.above and real_path else (root, real_path)
        if tree.file:
            return (tree.handle, tree.file) if real_path == tree.path else None
        return tree.handle, real_path[len(tree.path) + 1 :]

    def open(self, open_name: Callable[[int, str], int], handle: int, real_path: str, name: str) -> int:
        """Open a name in a directory with `open_name`, where a mount shadows the disk."""
        tree = self.trees.get(real_path)
        if tree is not None:
            return open_name(tree.handle.fd, tree.file or ".")
        if real_path not in self.above:
            return open_name(handle, name)
        try:
            found = syscalls.enter(handle, name)  # a link or a file in its place must not be opened
        except OSError:
            return open_name(self._empty.handle.fd, ".")
        try:
            return open_name(found, ".")
        finally:
            syscalls.close(found)

    def lstat(self, handle: int, directory: str, name: str) -> os.stat_result:
        """Return the status of a name in an open directory, where a mount shadows the disk."""
        entry = self._entries.get(directory, {}).get(name)
        if entry is None:
            return syscalls.lstat(handle, name)
        if f"{directory}/{name}".lstrip("/") in self.above:
            with suppress(OSError):
                status = syscalls.lstat(handle, name)
                return status if stat.S_ISDIR(status.st_mode) else entry.stat()
        return entry.stat()

    def is_empty(self, handle: int) -> bool:
        """Return True if a directory stands for one that is not on disk."""
        return os.path.samestat(syscalls.lstat(handle, "."), syscalls.lstat(self._empty.handle.fd, "."))

    def names(self, directory: str) -> Collection[str]:
        """Return the names in a directory that are mounts or lead to mounts."""
        return self._entries.get(directory, ())

    def listed(self, directory: str, entries: Iterator[Any]) -> Iterator[Any]:
        """Yield the entries of a directory as the mounts shadow them."""
        mounted = self._entries[directory]
        base = f"{directory}/" if directory else ""
        kept = set[str]()  # directories on disk that lead to mounts
        with suppress(FileNotFoundError, NotFoundError):  # it is not on disk
            for entry in entries:
                name = entry.name
                if name in mounted:
                    if base + name not in self.above or not entry.is_dir(follow_symlinks=False):
                        continue
                    kept.add(name)
                yield entry
        yield from (entry for name, entry in mounted.items() if name not in kept)

    def typed_names(self, directory: str, names: Iterator[tuple[str, str]]) -> Iterator[tuple[str, str]]:
        """Yield the names of a directory with their types, as the mounts shadow them."""
        entries = self._entries.get(directory, {})
        with suppress(FileNotFoundError):
            yield from (each for each in names if each[0] not in entries)
        yield from ((name, "d" if entry.is_dir() else "f") for name, entry in entries.items())

    def check_may_change(self, path: str, real_path: str) -> None:
        """Raise `read_only` or `refused` if a path may not be changed because of a mount."""
        tree = self.tree_of(real_path)
        if tree is None and self.only:
            raise ReadOnlyError(
                f"{quote(path)} lies in no mount, and this workspace has nothing but mounts.",
                hint=f"Use a path below {' or '.join(map(quote, self.trees))}.",
                details={"path": path},
            )
        if tree is not None and tree.mount.read_only:
            raise ReadOnlyError(
                f"{quote(path)} cannot be changed: the mount {quote(tree.path)} is read-only.",
                hint="Change a file outside of it.",
                details={"path": path},
            )
        if tree is not None and not os.fstat(tree.handle.fd).st_nlink:
            raise NotFoundError(
                f"{quote(path)} cannot be changed: the directory of the mount {quote(tree.path)} is gone.",
                hint="Tell the user, or go on without it.",
                details={"path": path},
            )
        if tree is not None and real_path == tree.path and not tree.file:
            raise _is_mount_point(path)

    def check_removable(self, path: str, real_path: str) -> None:
        """Raise `refused` for a mounted file, which can be changed but not removed."""
        if real_path in self.trees:
            raise _is_mount_point(path)

    def matcher(self, own: NameMatcher, kind: str) -> NameMatcher:
        """Return a matcher of protected names that asks each tree for its own."""
        found = {
            path: name_matcher(tuple(getattr(tree.mount.protect, kind)), backups=kind == "read")
            for path, tree in self.trees.items()
            if tree.mount.protect is not None
        }
        return _MatcherOfTrees(own, found) if found else own

    def close(self) -> None:
        """Close all trees. Running calls finish."""
        for shared in (self._empty, *(tree.shared_handle for tree in self.trees.values())):
            shared.handle = RootHandle(-1)


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


def open_mounts(
    mounts: Mapping[str, Mount], root_path: str, kind_of: Callable[[str], str], *, read_only: bool, only: bool
) -> Mounts:
    """Open the mounts of a root, or raise an error that names the wrong one.

    Args:
        mounts: The mounts by path.
        root_path: The root.
        kind_of: Returns "file" or "directory", or "" if nothing is at a path of the root. Links are an error.
        read_only: True if nothing in the workspace is changed.
        only: Refuse changes outside the mounts.
    """
    trees: dict[str, MountedTree] = {}
    try:
        for path, mount in mounts.items():
            real_path = _checked_path(path, [*trees])
            kind = kind_of(real_path)
            tree = _opened(real_path, mount, read_only=read_only)
            trees[real_path] = tree
            _check_place(tree, root_path, kind)
        return Mounts(trees.values(), only=only)
    except BaseException:
        for tree in trees.values():
            tree.shared_handle.handle = RootHandle(-1)
        raise


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


def absolute_places(mounts: Mounts, given: Mapping[str, Mount]) -> dict[tuple[str, ...], tuple[str, ...]]:
    """Return the absolute spellings of each mount, in parts, with those of its path; the longest first."""
    found: dict[tuple[str, ...], tuple[str, ...]] = {}
    for tree, mount in zip(mounts.trees.values(), given.values(), strict=True):
        shown = tuple(tree.path.split("/"))
        for spelling in (tree.source, os.path.abspath(mount.place)):
            found.setdefault(absolute_parts(spelling), shown)
    return dict(sorted(found.items(), key=lambda item: -len(item[0])))


def _check_place(tree: MountedTree, root_path: str, kind: str) -> None:
    if kind == "file" or (kind and tree.file):
        raise InvalidArgumentError(
            f"The mount {quote(tree.path)} would hide a {kind} of the root.", hint="Mount it at another path."
        )
    if is_in(root_path, tree.source) or os.path.join(root_path, tree.path) == tree.source:
        raise InvalidArgumentError(
            f"The mount {quote(tree.path)} has its own place as its source, {quote(tree.source)}.",
            hint="Mount a directory that does not contain the root.",
        )


def _rules_of(path: str, mount: Mount) -> Policy:
    """Return the rules of a mount with paths from the root."""
    allow, ask, deny = (
        [rule_below(text, path) for text in each] for each in (mount.allow, mount.ask, mount.deny)
    )
    return Policy(allow=allow, ask=ask, deny=deny)


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


def _opened(real_path: str, mount: Mount, *, read_only: bool) -> MountedTree:
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
    return MountedTree(real_path, mount, source, SharedHandle(handle), name)


def _removed_directory() -> int:
    """Return a descriptor of an empty directory that nobody can fill."""
    path = tempfile.mkdtemp(prefix="agentfs-")
    try:
        return syscalls.open_root(path)
    finally:
        os.rmdir(path)


def _is_mount_point(path: str) -> RefusedError:
    return RefusedError(
        f"{quote(path)} is a mount and stays where it is.",
        hint="Change its files instead.",
        details={"path": path},
    )
