"""What stands at a path: nothing, a file, a link or a directory; and a change from one to another."""

import errno
import stat
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from copy import copy
from dataclasses import dataclass, field
from typing import Protocol

from agentfs.errors import AgentFSError, NotDirectoryError, NotFoundError, RefusedError, TooLargeError
from agentfs.fs import oserrors, syscalls
from agentfs.fs.context import RootContext
from agentfs.fs.file import open_regular
from agentfs.fs.path import ParsedPath, display_name, quote
from agentfs.fs.resolve import PathResolver
from agentfs.fs.temporary import FileMetadata, metadata_of
from agentfs.values import Value

_PERMISSIONS = 0o777


@dataclass(frozen=True, eq=False, repr=False)
class FileNode(Value):
    """A regular file.

    Attributes:
        mode: Its permissions.
        digest: The hash of its content.
        size: Bytes of its content.
        load: Returns its content; it may come from where it takes no memory.
        looks: What it has besides, to be made again with; files count as equal whatever theirs is.
    """

    mode: int
    digest: str
    size: int
    load: Callable[[], bytes] = field(compare=False, repr=False)
    looks: FileMetadata | None = field(default=None, compare=False, repr=False)

    @classmethod
    def of(cls, mode: int, data: bytes, looks: FileMetadata | None = None) -> "FileNode":
        """Return the state of a file with this content in memory.

        Args:
            mode: Its permissions; other bits are dropped.
            data: Its content.
            looks: What it has besides.
        """
        return cls(mode & _PERMISSIONS, digest_of(data), len(data), lambda: data, looks)


@dataclass(frozen=True, eq=False, repr=False)
class LinkNode(Value):
    """A symbolic link.

    Attributes:
        target: Where it points, as written in it.
    """

    target: str


@dataclass(frozen=True, eq=False, repr=False)
class DirectoryNode(Value):
    """A directory, without what is in it.

    Attributes:
        mode: Its permissions, None for what the system gives a new one; directories count as equal whatever
            theirs are.
    """

    mode: int | None = field(default=None, compare=False)


Node = FileNode | LinkNode | DirectoryNode


@dataclass(frozen=True, eq=False, repr=False)
class Change(Value):
    """What happens, or happened, at one path.

    Attributes:
        path: The path from the root on, links resolved, as the system spells it.
        before: What stood there; None for nothing.
        after: What stands there afterwards.
    """

    path: str
    before: Node | None
    after: Node | None

    def reversed(self) -> "Change":
        """Return the change that takes this one back."""
        return Change(self.path, self.after, self.before)


# What a change is refused with where something else stands than `Change.before`, given that.
Conflict = Callable[[Change, Node | None], AgentFSError]


class Recorder(Protocol):
    """Who is told of every change."""

    def recording(self, changes: tuple[Change, ...]) -> AbstractContextManager[None]:
        """Return what is entered just before changes are made, and left when they are, or have failed."""
        ...

    def alone(self) -> AbstractContextManager[object]:
        """Return what keeps other recorded changes out while it is entered, in the same thread again too."""
        ...


def digest_of(data: bytes) -> str:
    """Return the name of a content: 32 hex digits of its hash."""
    from hashlib import blake2b  # noqa: PLC0415 - it loads OpenSSL, which an import of agentfs should not

    return blake2b(data, digest_size=16).hexdigest()


def unfollowed(base: RootContext) -> RootContext:
    """Return the same base, where a link on the way is an error; for paths whose links are resolved."""
    other = copy(base)
    other.follow = False
    return other


@contextmanager
def open_parent(
    base: RootContext, real_path: str, *, creating: bool = False
) -> Generator[tuple[PathResolver, str]]:
    """Walk to the directory of a path whose links are resolved.

    Args:
        base: Where the walk starts.
        real_path: The path; names in it are taken as they are.
        creating: Whether directories on the way may be missing.

    Yields:
        The walk, in the directory, and the name in it.

    Raises:
        AgentFSError: not_found, not_a_directory, refused (a link stands on the way), io.
    """
    trail = PathResolver(
        unfollowed(base), real_path, ParsedPath(tuple(real_path.split("/"))), creating=creating
    )
    try:
        try:
            name = trail.advance()
        except RefusedError as error:
            link = str(error.details.get("link", real_path))
            raise RefusedError(
                f"{quote(link)} has become a symbolic link, which is not followed here.",
                details=error.details,
            ) from None
        assert name is not None  # noqa: S101 - the root itself is never changed
        yield trail, name
    finally:
        trail.let_go()


def node_at(base: RootContext, real_path: str, max_bytes: int) -> Node | None:
    """Return what stands at a path.

    Args:
        base: Where walks start.
        real_path: The path, links resolved but for the last.
        max_bytes: The largest file that is read.

    Returns:
        The state; None where nothing is.

    Raises:
        AgentFSError: not_regular, too_large, refused (a link stands on the way), io.
    """
    try:
        with open_parent(base, real_path) as (trail, name):
            return node_in(base, trail, name, max_bytes)
    except (NotFoundError, NotDirectoryError):
        return None


def node_in(base: RootContext, trail: PathResolver, name: str, max_bytes: int) -> Node | None:
    """Return what stands at a name in the directory where a walk is; as `state_at`."""
    place = trail.place(name)
    for _ in range(20):
        try:
            found = syscalls.lstat(trail.handle, name)
            if stat.S_ISLNK(found.st_mode):
                return LinkNode(syscalls.readlink(trail.handle, name))
            if stat.S_ISDIR(found.st_mode):
                return DirectoryNode(found.st_mode & _PERMISSIONS)
            if not stat.S_ISREG(found.st_mode):
                raise oserrors.not_regular(place, found.st_mode)
            fd = syscalls.open_file(trail.handle, name)
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno in {errno.ELOOP, errno.EINVAL}:
                continue  # swapped between the look and the open
            raise trail.failure(error, name) from None
        return _file_state(base, fd, place, max_bytes)
    raise RefusedError(f"{quote(place)} keeps changing.", details={"path": display_name(place)})


def _file_state(base: RootContext, fd: int, place: str, max_bytes: int) -> FileNode:
    with open_regular(base, fd, display_name(place), place) as file:
        size = file.stat.st_size
        data = file.read(max_bytes + 1) if size <= max_bytes else b""
        if max(size, len(data)) > max_bytes:
            raise TooLargeError(
                f"{quote(place)} has {max(size, len(data))} bytes, and {max_bytes} is the most that a file to"
                " be changed may have.",
                details={"path": display_name(place), "size": max(size, len(data)), "limit": max_bytes},
            )
        return FileNode.of(file.stat.st_mode, data, metadata_of(file.fd, file.stat))
