"""What is at a path: nothing, a file, a link or a directory; and changes from one to another. Pure."""

import os
import stat
import time
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from typing import Any, NamedTuple, Protocol

from agentfs.errors import AgentFSError, FileIOError
from agentfs.results import EntryType

_PERMISSIONS = 0o777
_DIRECTORY = 0o755


class Metadata(NamedTuple):
    """What a file or directory has besides its content; None leaves a thing to the system."""

    mode: int  # permissions only; of a directory also the setgid and sticky bits
    owner: tuple[int, int] | None = None  # the numbers of its user and its group
    attributes: dict[str, bytes] | None = None  # the extended ones, access control lists among them


@dataclass(frozen=True)
class FileNode:
    """A regular file; those of equal mode and content are equal.

    Without metadata it is a new one, which gets at most this mode: the system decides.
    """

    mode: int
    digest: str
    size: int
    # Returns the content, which may come from where it takes no memory.
    load: Callable[[], bytes] = field(compare=False, repr=False)
    metadata: Metadata | None = field(default=None, compare=False, repr=False)

    @classmethod
    def of(cls, mode: int, data: bytes, metadata: Metadata | None = None) -> "FileNode":
        """Return the node of a file with this content in memory."""
        return cls(mode & _PERMISSIONS, revision_of(data), len(data), partial(bytes, data), metadata)


@dataclass(frozen=True)
class LinkNode:
    """A symbolic link, with its target as written in it."""

    target: str


@dataclass(frozen=True)
class DirectoryNode:
    """A directory, without what is in it; all are equal. The mode None is what the system gives a new one."""

    mode: int | None = field(default=None, compare=False)
    metadata: Metadata | None = field(default=None, compare=False, repr=False)


Node = FileNode | LinkNode | DirectoryNode


@dataclass(frozen=True)
class Change:
    """What happens, or happened, at one real path; None is nothing."""

    path: str
    before: Node | None
    after: Node | None

    @property
    def of_directory(self) -> bool:
        """Whether it makes, removes or changes a directory."""
        return isinstance(self.before, DirectoryNode) or isinstance(self.after, DirectoryNode)

    @property
    def changes_nothing(self) -> bool:
        """Whether it leaves what was there, the mode of a directory included."""
        before, after = self.before, self.after
        if isinstance(before, DirectoryNode) and isinstance(after, DirectoryNode):
            return before.mode == after.mode
        return before == after

    def reversed(self) -> "Change":
        """Return the change that takes this one back."""
        return Change(self.path, self.after, self.before)


class Current(NamedTuple):
    """A file before a change, with its path as it is displayed; the data None is no file."""

    path: str
    real_path: str
    data: bytes | None
    revision: str | None  # None when nothing is there


class Changed(NamedTuple):
    """What a change did, or would do, with the path as it is displayed and the revision afterwards."""

    path: str
    real_path: str
    before: bytes | None
    after: bytes
    created: bool
    revision: str
    notes: tuple[str, ...]


class ConcurrentChange(Exception):  # noqa: N818 - a signal to begin again, never seen by users
    """Another program changed the file after it was read: open it for update again."""


# Makes the error for a change that finds something else than `Change.before`, given what it finds.
Conflict = Callable[[Change, Node | None], AgentFSError | ConcurrentChange]


class Recorder(Protocol):
    """Records every change."""

    def recording(self, changes: tuple[Change, ...]) -> AbstractContextManager[tuple[Change, ...]]:
        """Return what is entered just before changes are made, and left when they are, or have failed.

        It gives the changes as they are recorded: with contents that take no memory.
        """
        ...

    def alone(self) -> AbstractContextManager[object]:
        """Return what keeps other recorded changes out while it is entered, in the same thread again too."""
        ...

    def origin(self, path: str, node: Node | None) -> str:
        """Return who left a node at a path: "another program", or another call of this workspace."""
        ...


class StagedNodes:
    """The nodes that the changes of a transaction leave, as long as they are not on disk."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node | None] = {}  # None where something was removed
        self.began = time.time()
        self.closed = False
        self._below = Counter[str]()  # how many staged nodes there are below each directory
        self._names: dict[str, set[str]] = {}  # of what is or was staged in each directory, or below it

    def copy(self) -> "StagedNodes":
        """Return the same nodes for a transaction within this one."""
        other = StagedNodes()
        other.nodes, other.began = self.nodes.copy(), self.began
        other._below = self._below.copy()
        other._names = {directory: names.copy() for directory, names in self._names.items()}
        return other

    def add(self, change: Change) -> None:
        """Stage a change."""
        added = (change.after is not None) - (self.nodes.get(change.path) is not None)
        self.nodes[change.path] = change.after
        directory = change.path
        while directory:
            directory, _, name = directory.rpartition("/")
            self._names.setdefault(directory, set()).add(name)
            self._below[directory] += added

    def is_directory(self, path: str) -> bool:
        """Return whether a directory is staged at a path, or has to be there for what is staged below it."""
        return self._below[path] > 0 or isinstance(self.nodes.get(path), DirectoryNode)

    def contains(self, path: str) -> bool:
        """Return whether anything is staged at a path or below it."""
        return path in self.nodes or self.is_directory(path)

    def names(self, directory: str) -> list[str]:
        """Return the names in a directory of which one is, or was, staged at it or below it."""
        return sorted(self._names.get(directory, ()))

    def status(self, path: str) -> os.stat_result | None:
        """Return the status of what is staged at a path; None for nothing."""
        match self.nodes.get(path):
            case FileNode(mode=mode, size=size):
                return _status(stat.S_IFREG | mode, size, self.began)
            case LinkNode(target=target):
                return _status(stat.S_IFLNK | _PERMISSIONS, len(os.fsencode(target)), self.began)
            case _:
                return _status(stat.S_IFDIR | _DIRECTORY, 0, self.began) if self.is_directory(path) else None

    def close(self) -> None:
        """Drop all."""
        self.closed = True
        self.nodes.clear()
        self._below.clear()
        self._names.clear()


def _status(mode: int, size: int, time: float) -> os.stat_result:
    return os.stat_result((mode, 0, 0, 1, os.geteuid(), os.getegid(), size, time, time, time))


def revision_of(data: bytes) -> str:
    """Return the revision of a content: 32 hex digits of its hash.

    An edit that was allowed for one content must not fit another, so nobody may find two with one revision.
    """
    return blake2b(data, digest_size=16).hexdigest()


def revision_of_stat(status: os.stat_result) -> str:
    """Return the revision of a file too large to hash, made from its status."""
    facts = f"{status.st_dev}:{status.st_ino}:{status.st_size}:{status.st_mtime_ns}:{status.st_ctime_ns}"
    return "~" + revision_of(facts.encode())


def entry_type(node: Node | None) -> EntryType:
    """Return the type of a node as results name it; "file" for nothing."""
    if isinstance(node, LinkNode):
        return "symlink"
    return "directory" if isinstance(node, DirectoryNode) else "file"


def node_to_json(node: Node | None) -> list[Any] | None:
    """Return a node as JSON has it, without the content of a file."""
    match node:
        case None:
            return None
        case FileNode():
            return ["file", node.mode, node.digest, node.size, *_metadata_to_json(node.metadata)]
        case LinkNode():
            return ["link", node.target]
        case DirectoryNode():
            return ["directory", node.mode, *_metadata_to_json(node.metadata)]


def node_from_json(plain: list[Any] | None) -> Node | None:
    """Return the node that `node_to_json` made this of; the content of a file cannot be loaded."""
    match plain or []:
        case ["file", mode, digest, size, *metadata]:
            return FileNode(mode, digest, size, _content_missing, _metadata_from_json(mode, metadata))
        case ["link", target]:
            return LinkNode(target)
        case ["directory", mode, *metadata]:
            return DirectoryNode(mode, _metadata_from_json(mode, metadata))
        case _:
            return None


def _metadata_to_json(metadata: Metadata | None) -> list[Any]:
    if metadata is None:
        return []
    attributes = metadata.attributes
    return [metadata.owner, attributes and {name: value.hex() for name, value in attributes.items()}]


def _metadata_from_json(mode: int, plain: list[Any]) -> Metadata | None:
    try:
        owner, attributes = plain
        kept = attributes and {str(name): bytes.fromhex(value) for name, value in attributes.items()}
        return Metadata(mode, owner and (int(owner[0]), int(owner[1])), kept)
    except (ValueError, TypeError, AttributeError):  # none were written, or not by this version
        return None


def _content_missing() -> bytes:
    raise FileIOError("The content of this file was not kept.")
