"""`HiddenFiles`: the files of a tree that a staged command sees as empty, and the names that it sees.

They are found before and after each command. After the first time, only directories with events are listed
again. The whole tree is, after a directory was moved or removed, or if the system reports no events.
"""

import os
import stat
from collections.abc import Collection, Mapping
from contextlib import suppress
from threading import Lock
from typing import NamedTuple

from agentfs.base import call_context
from agentfs.base.forks import watch_forks
from agentfs.fs import syscalls
from agentfs.fs.directory import Directory
from agentfs.fs.root import Root
from agentfs.policy import Policy
from agentfs.watch import inotify
from agentfs.watch.inotify import DELETE, ENDS, IS_DIRECTORY, MOVED_FROM, RENAMES

_WATCHES_SHARE = 4  # of the watches of the user, at most one part in so many is used here
# Bytes of a path; its mask needs a longer one, and the system takes 4,096. What is below is not shown.
LONGEST = 3_000
_NOT_SEEN = (FileNotFoundError, NotADirectoryError, PermissionError)
# Directories of a repository without settings, which may have many entries.
_NOT_LOOKED_INTO = ("/.git/objects", "/.git/logs", "/.git/refs", "/.git/lfs")


class Sweep(NamedTuple):
    """The names in a tree at one moment.

    Attributes:
        hidden: The real paths whose contents are not shown; a directory stands for everything below it.
            Those in the work tree of git that the root is a part of are absolute.
        names: The names in each directory that was looked into, by its real path.
    """

    hidden: set[str]
    names: Mapping[str, Collection[str]]


class HiddenFiles:
    """The paths in one root whose contents are not shown. Thread-safe."""

    def __init__(self) -> None:
        self._hidden: dict[str, list[str]] = {}  # by directory
        self._listed: dict[str, Collection[str]] = {}  # all names, by directory
        self._directories: dict[int, str] = {}  # by watch
        self._trees: Collection[str] = ()  # the names of the other trees
        self._above: tuple[HiddenFiles, Root] | None = None
        self.after_fork()
        watch_forks(self)

    def after_fork(self) -> None:
        """Start anew, because the parent takes the events."""
        self._lock = Lock()
        self._inotify: inotify.Inotify | None = None

    def find(self, root: Root, top: str) -> Sweep:
        """Look at the tree, and at the work tree with the path `top` that it is a part of."""
        if top != root.path:
            if self._above is None or self._above[1].path != top:
                policy = Policy(read_only=True, protect=root.policy.protect)
                self._above = HiddenFiles(), Root(top, policy)
            other, above = self._above
            there = {os.path.join(top, each) for each in other.find(above, top).hidden}
            hidden, names = self.find(root, root.path)
            return Sweep(hidden | there, names)
        with self._lock:
            trees = root.trees.others.keys()
            # Rules may differ from call to call.
            changed = None if root.access is not None else self._changed()
            if changed is None or trees != self._trees:
                self._trees = trees
                changed = [""]
                self._begin(root)
            for directory in changed:
                self._list(root, directory)
            found = {path for paths in self._hidden.values() for path in paths}
            return Sweep(found | self._other_names(root, found), {**self._listed})

    def _begin(self, root: Root) -> None:
        self._hidden, self._listed, self._directories, self._inotify = {}, {}, {}, None
        if root.access is None and not inotify.without_events(root.trees.root.handle.fd):
            with suppress(OSError):
                self._inotify = inotify.Inotify()

    def _changed(self) -> list[str] | None:
        """Return the directories to list again; None if all must be."""
        if self._inotify is None:
            return None
        changes, lost = self._inotify.drain()
        found: list[str] = []
        for watch, names in changes.items():
            masks = [*names.values()]
            if any(mask & ENDS or (mask & IS_DIRECTORY and mask & (MOVED_FROM | DELETE)) for mask in masks):
                return None
            if watch in self._directories and any(mask & RENAMES for mask in masks):
                found.append(self._directories[watch])
        return None if lost else found

    def _list(self, root: Root, directory: str) -> None:
        """List a directory, from now on with events, and all below it that are new."""
        stack = [directory]
        while stack:
            call_context.step()
            path, types = stack.pop(), dict[str, str]()
            base = f"{path}/" if path else ""
            at = root.trees.root.handle.fd, root.trees.path_on_disk(path)
            if len(os.fsencode(path)) > LONGEST:
                self._hidden[path] = [path]
                continue
            # The command cannot open it either, or it has just vanished.
            with suppress(*_NOT_SEEN), Directory(root, syscalls.open_directory(*at), "", path) as opened:
                self._watch(opened.handle, path)
                types = dict(opened.typed_names())
            self._listed[path] = types.keys()
            hidden = root.unreadable_names(path, [*types])
            self._hidden[path] = [base + name for name in hidden]
            below = {base + name for name, type_ in types.items() if type_ == "d" and name not in hidden}
            new = below - self._hidden.keys()
            stack += [each for each in new if not f"/{each}".endswith(_NOT_LOOKED_INTO)]

    def _other_names(self, root: Root, hidden: Collection[str]) -> set[str]:
        """Return the hard links to hidden files."""
        linked = {_linked(root, path) for path in hidden} - {None}
        found = (f"{top}/{name}".lstrip("/") for top, names in self._listed.items() for name in names)
        return {path for path in found if _linked(root, path) in linked} if linked else set()

    def _watch(self, handle: int, path: str) -> None:
        """Watch a directory before it is listed."""
        events, self._inotify = self._inotify, None
        with suppress(OSError):
            if events is not None and len(self._directories) * _WATCHES_SHARE <= inotify.watch_limit():
                self._directories[events.add(handle)] = path
                self._inotify = events


def status_of(root: Root, path: str) -> os.stat_result | None:
    """Return the status of the node at a real path, or None if it is gone."""
    with suppress(OSError):
        return root.trees.status(path)
    return None


def _linked(root: Root, path: str) -> tuple[int, int] | None:
    """Return device and inode of a regular file with several names; None for others."""
    status = status_of(root, path)
    is_linked = status is not None and stat.S_ISREG(status.st_mode) and status.st_nlink > 1
    return (status.st_dev, status.st_ino) if status is not None and is_linked else None
