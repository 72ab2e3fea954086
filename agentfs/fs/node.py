"""Nodes (files, links and directories), and changes from one node to another."""

import os
import stat
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple, Protocol, Self

from agentfs.base.lazy import hashlib
from agentfs.errors import AgentFSError, FileIOError
from agentfs.results import EntryType


class Metadata(NamedTuple):
    """Mode and owner of a file or directory. Without an owner the system decides."""

    mode: int  # the permissions; for directories also the setgid and sticky bits
    owner: tuple[int, int] | None = None  # the user and group ids


@dataclass(frozen=True)
class FileNode:
    """A regular file. Two are equal if they have the same mode and content.

    A node without metadata is a new file, whose mode the umask may restrict.
    """

    mode: int
    digest: str
    size: int
    # Returns the content in pieces, perhaps from a store.
    pieces: Callable[[], Iterator[bytes]] = field(compare=False, repr=False)
    metadata: Metadata | None = field(default=None, compare=False, repr=False)
    seen: os.stat_result | None = field(default=None, compare=False, repr=False)  # when it was read
    is_settled: bool = field(default=False, compare=False, repr=False)  # any later change shows in its status

    @classmethod
    def of(cls, mode: int, data: bytes, metadata: Metadata | None = None) -> "FileNode":
        """Return the node of a file whose content is in memory."""
        return cls(mode & 0o777, revision_of(data), len(data), partial(iter, (data,)), metadata)

    def load(self) -> bytes:
        """Return the content."""
        return b"".join(self.pieces())


@dataclass(frozen=True)
class LinkNode:
    """A symbolic link with its target as written."""

    target: str


@dataclass(frozen=True)
class DirectoryNode:
    """A directory without its entries. Any two are equal. With the mode None the system decides the mode."""

    mode: int | None = field(default=None, compare=False)
    metadata: Metadata | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class MovedNode:
    """A file, link or special file that a move takes along unread."""

    kind: EntryType


@dataclass(frozen=True)
class MovedTree:
    """A directory that a move takes along unread, with all that is in it.

    Each item of `listing` is a directory, from the top down: its path below the moved one, its node, and the
    names in it by type.
    """

    listing: tuple[tuple[str, DirectoryNode, Mapping[EntryType, list[str]]], ...]

    def nodes(self) -> Iterator[tuple[str, "Node"]]:
        """Yield the path below the moved directory, and the node, of the directory and of each entry."""
        for below, directory, entries in self.listing:
            yield below, directory
            for kind, names in entries.items():
                node = MovedNode(kind)
                for name in names if kind != "directory" else ():
                    yield f"{below}/{name}", node

    @classmethod
    def of(cls, nodes: Iterable[tuple[str, "Node | None"]]) -> Self:
        """Return the tree of some nodes with their paths below the moved directory, in order."""
        found: dict[str, tuple[DirectoryNode, dict[EntryType, list[str]]]] = {}
        for path, node in nodes:
            above, slash, name = path.rpartition("/")
            if slash:
                found[above][1].setdefault(entry_type(node), []).append(name)
            if isinstance(node, DirectoryNode):
                found[path] = node, {}
        return cls(tuple((below, *each) for below, each in found.items()))


EntryNode = FileNode | LinkNode | MovedNode  # one name, without entries below it
Node = EntryNode | DirectoryNode | MovedTree


@dataclass(frozen=True)
class Change:
    """A change of the node at a real path; None means that no node exists."""

    path: str
    before: Node | None
    after: Node | None
    moved_from: str = ""  # the path whose node a move brings here; another change removes it there

    @property
    def of_directory(self) -> bool:
        """True if the change creates, removes or changes a directory."""
        return isinstance(self.before, DirectoryNode) or isinstance(self.after, DirectoryNode)

    @property
    def turns(self) -> bool:
        """True if a file or link becomes a directory, or the reverse."""
        before, after = self.before, self.after
        if before is None or after is None:
            return False
        return isinstance(before, DirectoryNode) is not isinstance(after, DirectoryNode)

    @property
    def changes_nothing(self) -> bool:
        """True if before and after are equal, including the mode of a directory."""
        modes = [getattr(each, "mode", None) for each in (self.before, self.after)]
        return self.before == self.after and modes[0] == modes[1]


def expanded(changes: Sequence[Change]) -> tuple[Change, ...]:
    """Return changes with one for each entry of a moved tree in place of one for the tree."""
    found: list[Change] = []
    for each in changes:
        if isinstance(each.before, MovedTree):
            found += [Change(each.path + below, node, None) for below, node in each.before.nodes()]
        elif isinstance(each.after, MovedTree):
            path, old = each.path, each.moved_from
            found += [Change(path + below, None, node, old + below) for below, node in each.after.nodes()]
        else:
            found.append(each)
    return tuple(found)


def collapsed(changes: Sequence[Change]) -> Sequence[Change]:
    """Return changes with one for each tree that moves unchanged, in place of one for each of its entries."""
    created = [each for each in changes if each.before is None]
    tops = {each.path: each.moved_from for each in created if isinstance(each.after, DirectoryNode)}
    if not any(tops.values()) or any(each.turns for each in changes):
        return changes
    new = {each.path: each.after for each in created}
    old = {each.path: each.before for each in changes if each.after is None}
    targets, sources = sorted(new), sorted(old)
    left, trees = {each.path: each for each in changes}, list[Change]()
    for path, source in sorted(tops.items()):
        if not source or path not in left:
            continue
        entries = _at_or_below(path, targets, new)
        if entries == _at_or_below(source, sources, old):
            tree = MovedTree.of((below, node) for below, node, _ in entries)
            trees += Change(source, tree, None), Change(path, None, tree, source)
            for below, _, _ in entries:
                del left[path + below], left[source + below]
    return [*left.values(), *trees]


def _at_or_below(
    top: str, paths: Sequence[str], nodes: Mapping[str, Node | None]
) -> list[tuple[str, Node | None, int | None]]:
    """Return a directory and its entries, in order: the path below it, the node and its mode."""
    below = paths[bisect_left(paths, f"{top}/") : bisect_left(paths, f"{top}0")]  # "0" follows "/"
    found = ((path[len(top) :], nodes.get(path)) for path in (top, *below))
    return [(path, node, node.mode if isinstance(node, DirectoryNode) else None) for path, node in found]


def moves(changes: Collection[Change]) -> dict[str, str]:
    """Return the old path of each node that some changes move, by its new path."""
    found: dict[str, str] = {}
    gone = {each.path for each in changes if each.before is not None and each.after is None}
    for each in changes:
        if each.moved_from in gone and each.before is None and each.after is not None:
            gone.discard(each.moved_from)
            found[each.path] = each.moved_from
    return found


def reverse(changes: Sequence[Change]) -> tuple[Change, ...]:
    """Return the changes that undo other ones."""
    moved_to = {old: new for new, old in moves(changes).items()}
    return tuple(Change(each.path, each.after, each.before, moved_to.get(each.path, "")) for each in changes)


class Current(NamedTuple):
    """A file before its change; `data`, `revision` and `node` are None if it does not exist."""

    path: str
    real_path: str
    data: bytes | None
    revision: str | None
    node: FileNode | None = None

    @property
    def content(self) -> bytes:
        """Its bytes, or none if it does not exist."""
        return self.data or b""

    def node_with(self, data: bytes) -> FileNode:
        """Return the file with another content, and the same mode and owner."""
        mode, metadata = (0o666, None) if self.node is None else (self.node.mode, self.node.metadata)
        return FileNode.of(mode, data, metadata)


class Changed(NamedTuple):
    """The outcome of a change, or of a preview, with the displayed path and the new revision."""

    path: str
    real_path: str
    before: bytes | None
    revision: str
    notes: tuple[str, ...]


class ConcurrentChange(Exception):  # noqa: N818 - caught by `Root.update`
    """The file was changed after it was read, so the update must start again."""


class NotRestoredError(FileIOError):
    """A change failed half way, and could not be reversed; a journal keeps what is left of it."""


# Makes the error if the node at a path is not the `before` of its change.
Conflict = Callable[[Change, Node | None], AgentFSError | ConcurrentChange]


def begin_again(_change: Change, _found: Node | None) -> ConcurrentChange:
    """Return the signal that a change must be computed again."""
    return ConcurrentChange()


# Records changes that a block will make; gives the same changes, with contents loaded from the store.
LogStep = Callable[[tuple[Change, ...]], AbstractContextManager[tuple[Change, ...]]]


class Recorder(Protocol):
    """Records changes before they are made."""

    @property
    def logging_step(self) -> Callable[..., AbstractContextManager[tuple[Change, ...]]]:
        """The `LogStep` of the recorder, with options."""
        ...

    def name_encoding(self, path: str, encoding: str) -> None:
        """Take note of the encoding that a call has named for the file at a path."""
        ...

    def origin(self, path: str, node: Node | None) -> str:
        """Return who made the node at a path: "another program" or "another call of this workspace"."""
        ...


def revision_of(data: bytes) -> str:
    """Return the revision of a content: 32 hex digits of its hash.

    The hash is cryptographic, because an edit approved for one content must not apply to another.
    """
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def revision_and_size(pieces: Iterable[bytes]) -> tuple[str, int]:
    """Return the revision of a content in pieces, and its size."""
    found, size = hashlib.blake2b(digest_size=16), 0
    for piece in pieces:
        found.update(piece)
        size += len(piece)
    return found.hexdigest(), size


def checked_pieces(
    pieces: Iterable[bytes], revision: str, error_for: Callable[[str], AgentFSError]
) -> Iterator[bytes]:
    """Yield the pieces of a content; raise an error at its end if it has another revision."""
    found = hashlib.blake2b(digest_size=16)
    for piece in pieces:
        found.update(piece)
        yield piece
    if found.hexdigest() != revision:
        raise error_for(revision)


def revision_of_stat(status: os.stat_result) -> str:
    """Return the revision of a file that is too large to hash. It is made from the status."""
    facts = f"{status.st_dev}:{status.st_ino}:{status.st_size}:{status.st_mtime_ns}:{status.st_ctime_ns}"
    return "~" + revision_of(facts.encode())


def type_of(mode: int) -> EntryType:
    """Return the type of an entry from its mode."""
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "directory"
    return "symlink" if stat.S_ISLNK(mode) else "other"


def entry_type(node: Node | None) -> EntryType:
    """Return the type of a node in results; "file" for None."""
    if isinstance(node, MovedNode):
        return node.kind
    if isinstance(node, LinkNode):
        return "symlink"
    return "directory" if isinstance(node, DirectoryNode | MovedTree) else "file"
