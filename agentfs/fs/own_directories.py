"""The directories that agentfs keeps for itself, which no workspace changes: locks, states, packages.

They are told by device and inode, or by the file that marks a state directory, so it does not matter which
path leads there. Whoever could write in them could plant a recovery log or the code of the next `connect`.
"""

import os
from collections.abc import Iterator
from contextlib import suppress

from agentfs.fs import syscalls
from agentfs.fs.lock import lock_directories
from agentfs.fs.protect import fold

STATE_MARK = "agentfs.lock"  # in every state directory
_PACKAGES = "agentfs-packages"  # as `remote.install` names it


class OwnDirectories:
    """The directories of this user, as they concern the workspaces on one root."""

    def __init__(self, root_path: str) -> None:
        self._paths = list(_paths())
        inside = root_path.rstrip("/") + "/"
        self._made_if_missing = {path for path in self._paths if os.path.realpath(path).startswith(inside)}

    def identities(self) -> set[tuple[int, int]]:
        """Return the device and inode of each directory; one that belongs in the root is made if missing."""
        found: set[tuple[int, int]] = set()
        for path in self._paths:
            with suppress(OSError):
                if path in self._made_if_missing and not os.path.exists(path):
                    os.makedirs(path, mode=0o700)
                status = os.stat(path)
                found.add((status.st_dev, status.st_ino))
        return found


def is_own(status: os.stat_result, own: set[tuple[int, int]], handle: int) -> bool:
    """Return True if an open directory is one of `own`, or a state directory."""
    if (status.st_dev, status.st_ino) in own:
        return True
    try:
        syscalls.lstat(handle, STATE_MARK)
    except OSError:
        return False
    return True


def is_mark(name: str) -> bool:
    """Return True if a file of this name would mark its directory as a state directory."""
    return fold(name) == STATE_MARK


def contains(path: str) -> bool:
    """Return True if a directory, given its path without links, is one of agentfs' own or lies in one."""
    own = OwnDirectories(path).identities()
    while True:
        with suppress(OSError):
            handle = syscalls.open_root(path)
            try:
                if is_own(os.fstat(handle), own, handle):
                    return True
            finally:
                syscalls.close(handle)
        parent = os.path.dirname(path)
        if parent == path:
            return False
        path = parent


def _paths() -> Iterator[str]:
    user = os.geteuid()
    yield from lock_directories(user)
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    if os.path.isabs(cache):
        yield os.path.join(cache, _PACKAGES)
    for shared in ("/tmp", "/dev/shm"):  # noqa: S108 - their names are compared only
        if os.path.isdir(shared):
            yield os.path.join(shared, f"{_PACKAGES}-{user}")
