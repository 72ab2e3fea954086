"""What stands at a path: nothing, a file, a link or a directory; and a change from one to another."""

import errno
import os
import stat
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from copy import copy
from dataclasses import dataclass, field
from typing import Protocol

from agentfs.disk import failures
from agentfs.disk.base import Base
from agentfs.disk.opened import open_regular
from agentfs.disk.paths import Asked, quote, show_name
from agentfs.disk.replacing import Looks, looks_of
from agentfs.disk.trail import Trail
from agentfs.errors import AgentFSError, NotDirectoryError, NotFoundError, RefusedError, TooLargeError
from agentfs.values import Value

_PERMISSIONS = 0o777


@dataclass(frozen=True, eq=False, repr=False)
class FileState(Value):
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
    looks: Looks | None = field(default=None, compare=False, repr=False)

    @classmethod
    def of(cls, mode: int, data: bytes, looks: Looks | None = None) -> "FileState":
        """Return the state of a file with this content in memory.

        Args:
            mode: Its permissions; other bits are dropped.
            data: Its content.
            looks: What it has besides.
        """
        return cls(mode & _PERMISSIONS, digest_of(data), len(data), lambda: data, looks)


@dataclass(frozen=True, eq=False, repr=False)
class LinkState(Value):
    """A symbolic link.

    Attributes:
        target: Where it points, as written in it.
    """

    target: str


@dataclass(frozen=True, eq=False, repr=False)
class DirectoryState(Value):
    """A directory, without what is in it.

    Attributes:
        mode: Its permissions, None for what the system gives a new one; directories count as equal whatever
            theirs are.
    """

    mode: int | None = field(default=None, compare=False)


State = FileState | LinkState | DirectoryState


@dataclass(frozen=True, eq=False, repr=False)
class Change(Value):
    """What happens, or happened, at one path.

    Attributes:
        path: The path from the root on, links resolved, as the system spells it.
        before: What stood there; None for nothing.
        after: What stands there afterwards.
    """

    path: str
    before: State | None
    after: State | None

    def reversed(self) -> "Change":
        """Return the change that takes this one back."""
        return Change(self.path, self.after, self.before)


# What a change is refused with where something else stands than `Change.before`, given that.
Conflict = Callable[[Change, State | None], AgentFSError]


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


def unfollowed(base: Base) -> Base:
    """Return the same base, where a link on the way is an error; for paths whose links are resolved."""
    other = copy(base)
    other.follow = False
    return other


@contextmanager
def standing(base: Base, real_path: str, *, creating: bool = False) -> Generator[tuple[Trail, str]]:
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
    trail = Trail(unfollowed(base), real_path, Asked(tuple(real_path.split("/"))), creating=creating)
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


def state_at(base: Base, real_path: str, max_bytes: int) -> State | None:
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
        with standing(base, real_path) as (trail, name):
            return state_in(base, trail, name, max_bytes)
    except (NotFoundError, NotDirectoryError):
        return None


def state_in(base: Base, trail: Trail, name: str, max_bytes: int) -> State | None:
    """Return what stands at a name in the directory where a walk is; as `state_at`."""
    backend, place = base.backend, trail.place(name)
    for _ in range(20):
        try:
            found = backend.lstat(trail.handle, name)
            if stat.S_ISLNK(found.st_mode):
                return LinkState(backend.readlink(trail.handle, name))
            if stat.S_ISDIR(found.st_mode):
                return DirectoryState(found.st_mode & _PERMISSIONS)
            if not stat.S_ISREG(found.st_mode):
                raise failures.not_regular(place, found.st_mode)
            fd = backend.open_file(trail.handle, name)
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno in {errno.ELOOP, errno.EINVAL}:
                continue  # swapped between the look and the open
            raise trail.failure(error, name) from None
        return _file_state(base, fd, place, max_bytes)
    raise RefusedError(f"{quote(place)} keeps changing.", details={"path": show_name(place)})


def _file_state(base: Base, fd: int, place: str, max_bytes: int) -> FileState:
    with open_regular(base, fd, show_name(place), place) as file:
        size = file.stat.st_size
        data = file.read(max_bytes + 1) if size <= max_bytes else b""
        if max(size, len(data)) > max_bytes:
            raise TooLargeError(
                f"{quote(place)} has {max(size, len(data))} bytes, and {max_bytes} is the most that a file to"
                " be changed may have.",
                details={"path": show_name(place), "size": max(size, len(data)), "limit": max_bytes},
            )
        mode = file.stat.st_mode if os.name != "nt" else 0o644
        return FileState.of(mode, data, looks_of(file.fd, file.stat))
