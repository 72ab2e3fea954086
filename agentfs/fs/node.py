"""What is at a path: nothing, a file, a link or a directory; and a change from one to another."""

import errno
import stat
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol

from agentfs.errors import AgentFSError, NotDirectoryError, NotFoundError, RefusedError
from agentfs.fs import oserrors, syscalls
from agentfs.fs.context import RootContext
from agentfs.fs.file import digest_of, open_regular
from agentfs.fs.path import display_name, quote
from agentfs.fs.resolve import ResolvedPath, resolve_real
from agentfs.fs.temporary import FileMetadata, metadata_of
from agentfs.values import Value

_PERMISSIONS = 0o777
_MAX_ATTEMPTS = 20


@dataclass(frozen=True, eq=False, repr=False)
class FileNode(Value):
    """A regular file.

    Attributes:
        mode: Its permissions.
        digest: The hash of its content.
        size: Bytes of its content.
        load: Returns its content; it may come from where it takes no memory.
        metadata: What it has besides, to be made again with; files count as equal whatever theirs is.
    """

    mode: int
    digest: str
    size: int
    load: Callable[[], bytes] = field(compare=False, repr=False)
    metadata: FileMetadata | None = field(default=None, compare=False, repr=False)

    @classmethod
    def of(cls, mode: int, data: bytes, metadata: FileMetadata | None = None) -> "FileNode":
        """Return the state of a file with this content in memory."""
        return cls(mode & _PERMISSIONS, digest_of(data), len(data), lambda: data, metadata)


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
        before: What was there; None for nothing.
        after: What is there afterwards.
    """

    path: str
    before: Node | None
    after: Node | None

    def reversed(self) -> "Change":
        """Return the change that takes this one back."""
        return Change(self.path, self.after, self.before)


# Makes the error for a change that finds something else than `Change.before`, given what it finds.
Conflict = Callable[[Change, Node | None], AgentFSError]


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


def node_at(context: RootContext, real_path: str, max_bytes: int) -> Node | None:
    """Return what is at a path whose links are resolved, but for the last; None where nothing is."""
    try:
        with resolve_real(context, real_path) as resolved:
            return node_in(context, resolved, max_bytes)
    except (NotFoundError, NotDirectoryError):
        return None


def node_in(context: RootContext, resolved: ResolvedPath, max_bytes: int) -> Node | None:
    """Return what is at a resolved path, as `node_at`."""
    parent, name, real_path = resolved.parent, resolved.name, resolved.real_path
    for _ in range(_MAX_ATTEMPTS):
        try:
            status = syscalls.lstat(parent, name)
            if stat.S_ISLNK(status.st_mode):
                return LinkNode(syscalls.readlink(parent, name))
            if stat.S_ISDIR(status.st_mode):
                return DirectoryNode(status.st_mode & _PERMISSIONS)
            if not stat.S_ISREG(status.st_mode):
                raise oserrors.not_regular(real_path, status.st_mode)
            fd = syscalls.open_file(parent, name)
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno in {errno.ELOOP, errno.EINVAL}:
                continue  # swapped between the look and the open
            raise resolved.error(error) from None
        with open_regular(context, fd, display_name(real_path), real_path) as file:
            data = file.read_whole(max_bytes)
            return FileNode.of(file.stat.st_mode, data, metadata_of(file.fd, file.stat))
    raise RefusedError(f"{quote(real_path)} keeps changing.", details={"path": display_name(real_path)})
