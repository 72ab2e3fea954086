"""Opening of mounts: which trees appear below a root, and what is wrong with those that cannot."""

import os
import stat
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Literal

from agentfs.errors import InvalidArgumentError, NotDirectoryError, NotFoundError, RefusedError
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


class _MatcherOfTrees(NameMatcher):
    """The protected names of a root whose mounts have their own."""

    def __init__(self, own: NameMatcher, of_trees: Mapping[str, NameMatcher]) -> None:
        self.__dict__.update(vars(own))
        self._own, self._of_trees = own, of_trees

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
        trees = Trees(root, opened.values(), only=only)
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
        own=own_directories.own_paths([(tree.path, tree.source) for tree in trees]),
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
