"""`HiddenFiles`: the files of a tree that a staged command sees as empty.

They are found before and after each command. After the first time, only directories with events are listed
again. The whole tree is, after a directory was moved or removed, or if the system reports no events.
"""

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from threading import Lock

from agentfs.base import call_context
from agentfs.base.forks import watch_forks
from agentfs.errors import AgentFSError
from agentfs.fs import syscalls
from agentfs.fs.inotify import DELETE, ENDS, IS_DIRECTORY, MOVED_FROM, RENAMES, Inotify, watch_limit
from agentfs.fs.path import display_name
from agentfs.fs.root import Root
from agentfs.fs.trees import OpenTree

_WATCHES_SHARE = 4  # of the watches of the user, at most one part in so many is used here
# Directories of a repository without settings, which may have many entries.
_NOT_LOOKED_INTO = ("/.git/objects", "/.git/logs", "/.git/refs", "/.git/lfs")
_DIRECTORY = syscalls.open_flags("O_RDONLY", "O_DIRECTORY", "O_NOFOLLOW", "O_CLOEXEC")


class HiddenFiles:
    """The paths in one root whose contents are not shown. Thread-safe."""

    def __init__(self) -> None:
        self._hidden: dict[str, list[str]] = {}  # by directory
        self._directories: dict[int, str] = {}  # by watch
        self.after_fork()
        watch_forks(self)

    def after_fork(self) -> None:
        """Start anew, because the parent takes the events."""
        self._lock = Lock()
        self._inotify: Inotify | None = None

    def find(self, root: Root) -> set[str]:
        """Return the real paths; a directory stands for everything below it."""
        with self._lock:
            changed = None if root.has_rules else self._changed()  # rules may differ from call to call
            if changed is None:
                changed = [""]
                self._begin(root)
            for directory in changed:
                self._list(root, directory)
            found = {path for paths in self._hidden.values() for path in paths}
        return found | _other_names(root, found)

    def _begin(self, root: Root) -> None:
        self._hidden, self._directories, self._inotify = {}, {}, None
        handle = os.open(root.path, _DIRECTORY)
        try:
            if not root.has_rules and not syscalls.without_events(handle):
                with suppress(OSError):
                    self._inotify = Inotify()
        finally:
            syscalls.close(handle)

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
        """List a directory, and all below it that are new."""
        stack, top = [directory], root.unrestricted
        while stack:
            call_context.step()
            path = stack.pop()
            names: list[tuple[str, str]] = []
            # An error means that the command cannot open it either, or that it has just vanished.
            with suppress(OSError, AgentFSError), top.open_directory(display_name(path)) as opened:
                self._watch(opened.handle, path)
                names = opened.typed_names()
            hidden = root.unreadable_names(path, [name for name, _ in names])
            base = f"{path}/" if path else ""
            self._hidden[path] = [base + name for name in hidden]
            below = (base + name for name, type_ in names if type_ == "d" and name not in hidden)
            stack += [
                each
                for each in below
                if each not in self._hidden and not f"/{each}".endswith(_NOT_LOOKED_INTO)
            ]

    def _watch(self, handle: int, path: str) -> None:
        """Watch a directory before it is listed."""
        if self._inotify is not None:
            try:
                self._directories[self._inotify.add(handle)] = path
                if len(self._directories) * _WATCHES_SHARE > watch_limit():
                    self._inotify = None
            except OSError:
                self._inotify = None


def _other_names(root: Root, hidden: Iterable[str]) -> set[str]:
    """Return the hard links to hidden files."""
    inodes: set[tuple[int, int]] = set()
    for path in hidden:
        with suppress(OSError):
            status = root.trees.status(path)
            if status.st_nlink > 1 and stat.S_ISREG(status.st_mode):
                inodes.add((status.st_dev, status.st_ino))
    found: set[str] = set()
    for tree in root.trees if inodes else ():
        for path in _files_of(tree):
            with suppress(OSError):
                status = os.lstat(path)
                if (status.st_dev, status.st_ino) in inodes:
                    below = os.path.relpath(path, tree.source)
                    found.add(os.path.normpath(os.path.join(tree.path, below)))
    return found


def _files_of(tree: OpenTree) -> Iterator[str]:
    """Yield the absolute paths of the files in a tree."""
    if tree.file:
        yield tree.source
    for top, _, names in os.walk(tree.source):
        yield from (os.path.join(top, name) for name in names)
