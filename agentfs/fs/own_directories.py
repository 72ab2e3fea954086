"""The directories of agentfs itself, for locks and states. No workspace may change them.

A model that writes in them could take a lock, or forge a history.
"""

import os
import stat
from collections.abc import Iterable
from contextlib import suppress

from agentfs.fs import syscalls
from agentfs.fs.lock import lock_directories
from agentfs.fs.path import is_in

STATE_MARK = "agentfs.lock"  # a file in every state directory
_FLAGS = syscalls.open_flags("O_RDWR", "O_NOFOLLOW", "O_CLOEXEC", "O_NONBLOCK")


def open_own_file(path: str, flags: int = 0) -> int:
    """Open a file in such a directory to read and write; create it if missing. Raises OSError."""
    return os.open(path, _FLAGS | os.O_CREAT | flags, 0o600)


def drop_own_file(path: str) -> None:
    """Remove a file, if it exists. Raises OSError."""
    with suppress(FileNotFoundError):
        os.unlink(path)


def names_in(directory: str) -> tuple[os.stat_result, set[str]]:
    """Return the status of a directory, and the names in it; {""} if it is a file. Raises OSError."""
    status = os.stat(directory)
    return status, set(os.listdir(directory)) if stat.S_ISDIR(status.st_mode) else {""}


def put_own_file(path: str, data: bytes) -> None:
    """Replace a file atomically, in directories that are created if missing. Raises OSError."""
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    temporary = f"{path}-{os.getpid()}"
    with open(temporary, "wb") as file:
        file.write(data)
    os.replace(temporary, path)


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
    names = path.split("/")
    tops = ["/".join(names[:count]) for count in range(1, len(names) + 1)]  # the path and those above it
    is_state = any(os.path.lexists(f"{top}/{STATE_MARK}") for top in tops)
    return is_state or any(is_below(path, place) for place in lock_directories(os.geteuid()))
