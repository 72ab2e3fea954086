"""The present state of a cache, and the names that both a store and a cache can have."""

import os
import re
import stat
from collections.abc import Mapping
from functools import partial

from agentfs import fs
from agentfs.base import call_context
from agentfs.errors import AgentFSError
from agentfs.fs import DirectoryNode, FileNode, LinkNode, Node, Root, directories_above, syscalls
from agentfs.fs.context import file_clock, is_settled
from agentfs.fs.large_files import digest_of, status_key
from agentfs.fs.node import ConcurrentChange
from agentfs.fs.own_directories import STATE_MARK
from agentfs.fs.plan import new_temporary
from agentfs.fs.protect import fold_letters
from agentfs.store.cache_state import LARGE, Known
from agentfs.store.objects import META

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
UNSETTLED = "?"  # ends the status of a file that may change again without another status
Reasons = dict[str, str]  # the reason for each path


class LocalTree:
    """The nodes of a cache. Files with the status that a known content had are not read again."""

    def __init__(self, root: Root, known: Mapping[str, Known]) -> None:
        self._root, self._known = root, known
        self.nodes: dict[str, Node] = {}  # without directories that have entries
        self.directories: dict[str, DirectoryNode] = {}
        self.statuses: dict[str, str] = {}  # `status_key` of each file
        self.left_out: Reasons = {}  # paths whose state is not known
        with root.open_directory(META) as own:  # the mode of a new file
            self.default_mode = syscalls.new_directory_mode(own.handle, new_temporary()) & 0o666
        stack = [""]
        while stack:
            path = stack.pop()
            try:
                with root.open_directory(fs.display_name(path) or ".") as directory:
                    stack += self._scan(directory, path)
            except AgentFSError:
                if not path:
                    raise
                self.left_out[path] = "unreadable"

    def _scan(self, directory: fs.Directory, path: str) -> list[str]:
        """Read a directory, and return those in it."""
        entries = {os.path.join(path, each.name): each for each in directory.scan()}
        entries.pop(META[:-1], None)
        if path and not entries:
            self.nodes[path] = self.directories[path]
        for child, entry in entries.items():
            call_context.check()
            try:
                self._take(directory, entry, child)
            except (AgentFSError, OSError):
                self.left_out[child] = "unreadable"
        return [child for child in entries if child in self.directories]

    def _take(self, directory: fs.Directory, entry: fs.DirEntry, path: str) -> None:
        status, known = entry.stat(follow_symlinks=False), self._known.get(path, Known())
        if self._root.is_protected(path):
            self.left_out[path] = "protected"
        elif stat.S_ISDIR(status.st_mode):
            self.directories[path] = DirectoryNode(stat.S_IMODE(status.st_mode))
        elif stat.S_ISLNK(status.st_mode):
            self.nodes[path] = LinkNode(syscalls.readlink(directory.handle, entry.name))
        elif not stat.S_ISREG(status.st_mode):
            self.left_out[path] = "special file"
        else:
            digest, key = known.digest, status_key(status)
            if known.status != key:
                now = file_clock()
                with directory.open_file(entry.name) as file:
                    digest, status, changed = digest_of(file), file.stat, file.changed()
                settled = is_settled(max(status.st_mtime_ns, status.st_ctime_ns), now) and not changed
                key = status_key(status) + ("" if settled else UNSETTLED)
            load = not_loaded if status.st_size > LARGE else partial(_load, self._root, path, digest)
            self.nodes[path] = FileNode(status.st_mode & 0o777, digest, status.st_size, load)
            self.statuses[path] = key


def _load(root: Root, path: str, digest: str) -> bytes:
    node = root.node(path, max_bytes=LARGE)
    if not isinstance(node, FileNode) or node.digest != digest:
        raise ConcurrentChange
    return node.load()


def not_loaded() -> bytes:
    """Stand for a content that is never merged."""
    return b"\0"


def refused(nodes: Mapping[str, Node | None], known: Mapping[str, Known], root: Root) -> Reasons:
    """Return the paths that one of the sides cannot have. A node is None if it is some file.

    Of paths that exclude each other, a known one is not refused.
    """
    found: Reasons = {}
    holders: dict[str, list[str]] = {}
    for path, node in nodes.items():
        call_context.check()
        if reason := _objection(path, node, root):
            found[path] = reason
        elif not isinstance(node, DirectoryNode):
            holders.setdefault(fold_letters(path), []).append(path)
    for paths in holders.values():
        twins = paths if len(paths) > 1 else []
        found.update((path, "names that fold to one") for path in twins if path not in known)
    for directory in {above for path in nodes.keys() - found.keys() for above in directories_above(path)}:
        for file in holders.get(fold_letters(directory), ()):
            is_below = (path for path in nodes if path.startswith(f"{directory}/"))
            for path in is_below if file in known else [file]:
                found.setdefault(path, "a file and a directory of one name")
    return found


def _objection(path: str, node: Node | None, root: Root) -> str:
    """Return the reason why a path cannot be on both sides, or ""."""
    parts = path.split("/")
    try:
        sizes = [len(part.encode()) for part in parts]
    except UnicodeEncodeError:
        return "not UTF-8"
    if not {"", ".", ".."}.isdisjoint(parts) or _CONTROL.search(path):
        return "not a path in a store"
    if max(sizes) > fs.MAX_NAME_BYTES or len(path.encode()) > fs.MAX_PATH_BYTES or len(parts) > fs.MAX_PARTS:
        return "too long"
    if (
        fold_letters(parts[0]) == META[:-1]
        or STATE_MARK in map(fold_letters, parts)
        or fs.is_temporary_name(path)
    ):
        return "reserved"
    if isinstance(node, LinkNode):
        to = os.path.normpath(os.path.join(os.path.dirname(path), node.target))
        if os.path.isabs(to) or to.split("/")[0] == "..":
            return "link out of the tree"
    return "protected" if root.is_protected(path) else ""
