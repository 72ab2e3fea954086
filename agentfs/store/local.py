"""The present state of a cache, and the names that both a store and a cache can have."""

import os
import re
import stat
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import partial
from typing import NamedTuple

from agentfs.base import call_context
from agentfs.errors import AgentFSError
from agentfs.fs import (
    MAX_NAME_BYTES,
    MAX_PARTS,
    MAX_PATH_BYTES,
    Directory,
    DirectoryNode,
    DirEntry,
    FileNode,
    LinkNode,
    Node,
    Root,
    directories_above,
    display_name,
    is_temporary_name,
    syscalls,
)
from agentfs.fs.context import file_clock, is_settled
from agentfs.fs.large_files import digest_of, status_key
from agentfs.fs.node import ConcurrentChange
from agentfs.fs.own_directories import STATE_MARK
from agentfs.fs.plan import new_temporary
from agentfs.fs.protect import fold_letters
from agentfs.store.remote import META
from agentfs.store.state import LARGE, Known

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
LINK_OUT = "link out of the tree"
LeftOut = dict[str, list[str]]  # paths by reason


class LocalTree(NamedTuple):
    """The nodes of a cache."""

    nodes: dict[str, Node]
    statuses: dict[str, str]  # `status_key` of each file
    settled: set[str]  # files whose next change gives them another status
    names: Counter[str]  # the number of names in each directory
    unread: list[str]  # directories that could not be read
    left_out: LeftOut
    default_mode: int  # of a new file

    def is_empty(self, path: str) -> bool:
        """Return True for an empty directory."""
        return isinstance(self.nodes.get(path), DirectoryNode) and not self.names[path]


def scan(root: Root, known: Mapping[str, Known]) -> LocalTree:
    """Read the tree. Files with the status that a known content had are not read again."""
    with root.open_directory(META) as own:
        default_mode = syscalls.new_directory_mode(own.handle, new_temporary()) & 0o666
    tree = LocalTree({}, {}, set(), Counter(), [], {}, default_mode)
    stack = [""]
    while stack:
        path = stack.pop()
        try:
            with root.open_directory(display_name(path) or ".") as directory:
                for entry in directory.scan():
                    call_context.check()
                    _take(root, directory, entry, known, tree)
                    child = _child(path, entry.name)
                    if isinstance(tree.nodes.get(child), DirectoryNode):
                        stack.append(child)
        except AgentFSError:
            tree.nodes.pop(path, None)
            tree.unread.append(path)
            tree.left_out.setdefault("unreadable", []).append(path)
    return tree


def _child(path: str, name: str) -> str:
    return f"{path}/{name}" if path else name


def _take(
    root: Root, directory: Directory, entry: DirEntry, known: Mapping[str, Known], tree: LocalTree
) -> None:
    path = _child(directory.real_path, entry.name)
    if path == META.rstrip("/"):
        return
    tree.names[directory.real_path] += 1
    try:
        began, status = file_clock(), entry.stat(follow_symlinks=False)
        if root.is_protected(path):
            tree.unread.append(path)
            tree.left_out.setdefault("protected", []).append(path)
        elif stat.S_ISDIR(status.st_mode):
            tree.nodes[path] = DirectoryNode(stat.S_IMODE(status.st_mode))
        elif stat.S_ISLNK(status.st_mode):
            target = syscalls.readlink(directory.handle, entry.name)
            if leads_out(path, target):
                tree.left_out.setdefault(LINK_OUT, []).append(path)
            else:
                tree.nodes[path] = LinkNode(target)
        elif not stat.S_ISREG(status.st_mode):
            tree.left_out.setdefault("special file", []).append(path)
        else:
            key, seen = status_key(status), known.get(path)
            if seen is not None and seen.status == key:
                digest = seen.digest
            else:
                with directory.open_file(entry.name) as file:
                    digest = digest_of(file)
                    status = file.stat
                    if file.changed():
                        raise ConcurrentChange
                key = status_key(status)
            load = partial(_load, root, path, digest)
            tree.nodes[path] = FileNode(status.st_mode & 0o777, digest, status.st_size, load)
            tree.statuses[path] = key
            if is_settled(max(status.st_mtime_ns, status.st_ctime_ns), began):
                tree.settled.add(path)
    except (AgentFSError, OSError, ConcurrentChange):
        tree.unread.append(path)
        tree.left_out.setdefault("unreadable, or changing now", []).append(path)


def _load(root: Root, path: str, digest: str) -> bytes:
    node = root.node(path, max_bytes=LARGE)
    if not isinstance(node, FileNode) or node.digest != digest:
        raise ConcurrentChange
    return node.load()


def leads_out(path: str, target: str) -> bool:
    leads_to = os.path.normpath(os.path.join(os.path.dirname(path), target))
    return os.path.isabs(target) or leads_to.split("/")[0] == ".."


def admitted(paths: Mapping[str, bool], known: Mapping[str, Known], root: Root) -> tuple[set[str], LeftOut]:
    """Divide paths into those that both sides can have, and the others by reason.

    Args:
        paths: The paths; those of directories with False.
        known: Of paths that exclude each other, the known one is admitted.
        root: Decides which names are protected.
    """
    found, left_out = set[str](), LeftOut()
    holders: dict[str, list[str]] = {}
    for path, is_leaf in paths.items():
        call_context.check()
        if reason := _objection(path, root):
            left_out.setdefault(reason, []).append(path)
        else:
            found.add(path)
            if is_leaf:
                holders.setdefault(fold_letters(path), []).append(path)

    def refuse(path: str, reason: str) -> None:
        if path in found and path not in known:
            found.discard(path)
            left_out.setdefault(reason, []).append(path)

    for same in holders.values():
        for path in same if len(same) > 1 else ():
            refuse(path, "names that fold to one")
    above = {each for path in found for each in directories_above(path)}
    clashing = {each: held for each in above if (held := holders.get(fold_letters(each)))}
    for path in [*found] if clashing else ():
        for held in filter(None, map(clashing.get, directories_above(path))):
            for file in held:
                refuse(path if file in known else file, "a file and a directory of one name")
    return found, left_out


def _objection(path: str, root: Root) -> str:
    """Return the reason why a path cannot be on both sides, or ""."""
    parts = path.split("/")
    if not {"", ".", ".."}.isdisjoint(parts):
        return "not a path"
    try:
        sizes = [len(part.encode()) for part in parts]
    except UnicodeEncodeError:
        return "not UTF-8"
    if _CONTROL.search(path):
        return "control character"
    if max(sizes) > MAX_NAME_BYTES or sum(sizes) + len(parts) > MAX_PATH_BYTES or len(parts) > MAX_PARTS:
        return "too long"
    reserved = fold_letters(parts[0]) == META.rstrip("/") or STATE_MARK in map(fold_letters, parts)
    if reserved or any(map(is_temporary_name, parts)):
        return "reserved"
    return "protected" if root.is_protected(path) else ""
