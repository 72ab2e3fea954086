"""The directories of agentfs itself, for locks, states and packages. No workspace may change them.

They are recognised by device and inode, or by the file that marks a state directory, so that every path to
them is refused. A model that writes in them could plant a recovery log, or code that `connect` runs.
"""

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain

from agentfs.base.lazy import shutil
from agentfs.fs import syscalls
from agentfs.fs.lock import lock_directories

STATE_MARK = "agentfs.lock"  # a file in every state directory
_PACKAGES = "agentfs-packages"  # the same name as in `remote.bootstrap_far`
_FLAGS = syscalls.open_flags("O_RDWR", "O_NOFOLLOW", "O_CLOEXEC", "O_NONBLOCK")


class OwnDirectories:
    """Finds the directories of agentfs that belong to this user, for the checks of one root."""

    def __init__(self, *tops: str) -> None:
        """Take the directories that calls may change."""
        self._paths = list(_paths())
        inside = tuple(top.rstrip("/") + "/" for top in tops)
        self._made_if_missing = {path for path in self._paths if os.path.realpath(path).startswith(inside)}

    def identities(self) -> set[tuple[int, int]]:
        """Return the device and inode of each directory. Those inside the root are created if missing."""
        found: set[tuple[int, int]] = set()
        for path in self._paths:
            try:  # `suppress` would take longer than the calls
                if path in self._made_if_missing and not os.path.exists(path):
                    os.makedirs(path, mode=0o700)
                status = os.stat(path)
            except OSError:
                continue
            found.add((status.st_dev, status.st_ino))
        return found


class OwnDirectory:
    """A directory of agentfs. Only the user may open its files. All methods may raise OSError."""

    def __init__(self, path: str) -> None:
        self.path = path

    def make(self, *, exist_ok: bool = False) -> None:
        """Create the directory and its parents."""
        os.makedirs(self.path, mode=0o700, exist_ok=exist_ok)

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

    def read(self, name: str) -> str:
        """Return the text of a file, or "" if it is missing."""
        with suppress(FileNotFoundError), open(self.path_of(name), encoding="ascii") as file:
            return file.read()
        return ""

    def write(self, name: str, text: str) -> None:
        """Replace a file atomically."""
        self.put(name, text.encode("ascii"))

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

    def is_unused_for(self, seconds: float) -> bool:
        """Return True if nothing in the directory has changed for some seconds."""
        files = (os.path.join(top, name) for top, _, names in os.walk(self.path) for name in names)
        return all(time.time() - os.lstat(each).st_mtime > seconds for each in chain([self.path], files))

    def remove(self) -> None:
        """Remove the directory. Rename it first, so that no process uses it meanwhile."""
        old = f"{self.path}-{os.getpid()}"
        os.rename(self.path, old)
        shutil.rmtree(old, ignore_errors=True)


def boot_id() -> str:
    """Return the boot id, or "" if the system has none."""
    with suppress(OSError), open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return file.read()
    return ""


def is_below(path: str, top: str) -> bool:
    """Return True if a path lies in a directory, even through a link or, on Linux, a mount."""
    over = path
    while True:
        with suppress(OSError):
            if os.path.samestat(os.stat(over), os.stat(top)):
                return True
        if over == os.path.dirname(over):
            return _is_mounted_below(path, top)
        over = os.path.dirname(over)


def _is_mounted_below(path: str, top: str) -> bool:
    try:
        mounts = syscalls.mount_table()
    except OSError:
        return False

    def locate(path: str) -> tuple[str, str] | None:
        """Return the device of a path and the path on that device."""
        over = [mount for mount in mounts if _starts_with(path, mount.point)]
        if not over:
            return None
        found = max(reversed(over), key=lambda mount: len(mount.point))  # a later mount hides an earlier one
        return found.device, found.part.rstrip("/") + path[len(found.point.rstrip("/")) :] or "/"

    target = locate(path)
    trees = [locate(top), *((each.device, each.part) for each in mounts if _starts_with(each.point, top))]
    return target is not None and any(
        tree is not None and target[0] == tree[0] and _starts_with(target[1], tree[1]) for tree in trees
    )


def _starts_with(path: str, top: str) -> bool:
    return path == top or path.startswith(top.rstrip("/") + "/")


def is_own(status: os.stat_result, own: set[tuple[int, int]], handle: int) -> bool:
    """Return True if an open directory is one of `own`, or a state directory."""
    if (status.st_dev, status.st_ino) in own:
        return True
    try:
        syscalls.lstat(handle, STATE_MARK)
    except OSError:
        return False
    return True


def contains(path: str) -> bool:
    """Return True if a real path is a directory of agentfs or lies in one."""
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
    for shared in ("/tmp", "/dev/shm"):  # noqa: S108 - the names are only compared
        if os.path.isdir(shared):
            yield os.path.join(shared, f"{_PACKAGES}-{user}")
