"""The directories of agentfs itself, for locks and states. No workspace may change them.

A model that writes in them could take a lock, or forge a history.
"""

import os
from collections.abc import Iterable
from contextlib import suppress

from agentfs.fs import syscalls
from agentfs.fs.lock import lock_directories
from agentfs.fs.path import is_in

STATE_MARK = "agentfs.lock"  # a file in every state directory
_FLAGS = syscalls.open_flags("O_RDWR", "O_NOFOLLOW", "O_CLOEXEC", "O_NONBLOCK")


class OwnDirectory:
    """A directory of agentfs. Only the user may open its files. All methods may raise OSError."""

    def __init__(self, path: str) -> None:
        self.path = path

    def status(self) -> os.stat_result:
        """Return the status of the directory."""
        return os.stat(self.path)

    def names(self) -> list[str]:
        """Return the names in the directory."""
        return os.listdir(self.path)

    def path_of(self, name: str) -> str:
        """Return the path of a file in the directory."""
        return os.path.join(self.path, name)

    def open(self, name: str, flags: int = 0) -> int:
        """Open a file to read and write; create it if missing."""
        return os.open(self.path_of(name), _FLAGS | os.O_CREAT | flags, 0o600)

    def put(self, name: str, data: bytes) -> None:
        """Replace a file atomically, in directories that are created if missing."""
        path = self.path_of(name)
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        temporary = f"{path}-{os.getpid()}"
        with open(temporary, "wb") as file:
            file.write(data)
        os.replace(temporary, path)

    def drop(self, name: str) -> None:
        """Remove a file, if it exists."""
        with suppress(FileNotFoundError):
            os.unlink(self.path_of(name))


def is_below(path: str, top: str) -> bool:
    """Return True if a path lies in a directory, even through a link."""
    return is_in(os.path.realpath(path), os.path.realpath(top).rstrip("/"))


def own_paths(trees: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Return the real paths of the directories for locks, given the path and the source of each tree."""
    places = [*map(os.path.realpath, lock_directories(os.geteuid()))]
    return tuple(
        os.path.join(path, os.path.relpath(place, source))
        for path, source in trees
        for place in places
        if is_in(place, source.rstrip("/"))
    )


def contains(path: str) -> bool:
    """Return True if a real path is a directory of agentfs or lies in one."""
    if any(is_below(path, place) for place in lock_directories(os.geteuid())):
        return True
    while not os.path.lexists(os.path.join(path, STATE_MARK)):
        if path == "/":
            return False
        path = os.path.dirname(path)
    return True
