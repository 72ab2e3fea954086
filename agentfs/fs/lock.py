"""One writer at a time for each file: among the threads of this process, and among processes.

Threads meet at a `threading.Lock`, processes at an `flock` on a file in a directory of the user's, outside of
the workspace. The system frees that one when its holder ends, however it ends.
"""

import os
import re
import stat
import threading
import time
from contextlib import suppress
from types import TracebackType
from typing import Self

from agentfs.errors import BusyError
from agentfs.fs.file import revision_of
from agentfs.fs.path import display_name, quote

WAIT = 5.0
ATTEMPTS = 20  # how often a change is begun anew because its path led to another file once it was locked
STALE = 3600.0  # seconds after which the file of a lock is looked at: a change takes a fraction of one
_LOCK_NAME = re.compile("[0-9a-f]{12}")
_FIRST_PAUSE, _LONGEST_PAUSE = 0.0002, 0.01


class _ProcessLock:
    __slots__ = ("lock", "users")

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.users = 0


_guard = threading.Lock()
_held: dict[str, _ProcessLock] = {}


class FileLock:
    """The lock of one file. A context manager.

    Args:
        key: What names the file whatever path leads to it, as `key_of` makes it.
        path: The path to speak of.
        outside: The root, which the lock must not be kept in.
        wait: Seconds to wait for another writer; `WAIT` when not given.
    """

    __slots__ = ("_fd", "_file", "_key", "_path", "_wait")

    def __init__(self, key: str, path: str, outside: str, wait: float | None = None) -> None:
        self._key = key
        self._path = path
        self._wait = WAIT if wait is None else wait
        directory = lock_directory(outside)
        self._file = None if directory is None else os.path.join(directory, revision_of(os.fsencode(key)))
        self._fd = -1

    def __enter__(self) -> Self:
        end = time.monotonic() + self._wait
        with _guard:
            held = _held.setdefault(self._key, _ProcessLock())
            held.users += 1
        if not held.lock.acquire(timeout=self._wait):
            self._leave(held)
            raise self._busy()
        try:
            if self._file is not None:
                self._fd = self._lock_file(self._file, end)
        except BaseException:
            held.lock.release()
            self._leave(held)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._fd >= 0:
            # Removed while it is held: whoever waits for it sees that it has lost its name, and starts again.
            _remove(self._file or "")
            fd, self._fd = self._fd, -1
            with suppress(OSError):
                os.close(fd)
        held = _held[self._key]
        held.lock.release()
        self._leave(held)

    def _lock_file(self, file: str, end: float) -> int:
        pause = _FIRST_PAUSE
        while True:
            fd = os.open(file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            try:
                locked = try_lock(fd)
                if locked and still_named(fd, file):
                    return fd
            except BaseException:
                os.close(fd)
                raise
            os.close(fd)
            if time.monotonic() > end:
                raise self._busy()
            if not locked:
                time.sleep(pause)
                pause = min(pause * 2, _LONGEST_PAUSE)

    def _busy(self) -> BusyError:
        return BusyError(
            f"Another call has been changing {quote(self._path)} for {self._wait:g} seconds.",
            hint="Try the same call again.",
            details={"path": display_name(self._path)},
        )

    def _leave(self, held: _ProcessLock) -> None:
        with _guard:
            held.users -= 1
            if not held.users:
                del _held[self._key]


def lock_directory(outside: str) -> str | None:
    """Return the directory of the locks, made if need be.

    It does not hang on the environment, so that processes with different ones meet there.
    """
    user = os.geteuid()
    candidates = [f"/tmp/agentfs-{user}"]  # noqa: S108 - it is used only when it is the user's own and no other's
    home = _home(user)
    if home is not None:
        candidates.insert(0, os.path.join(home, ".cache", "agentfs", "locks"))
    inside = outside.rstrip("/") + "/"
    for directory in candidates:
        if not os.path.realpath(directory).startswith(inside) and _is_ours(directory, user):
            return directory
    return None


def _home(user: int) -> str | None:
    import pwd  # noqa: PLC0415 - POSIX only

    try:
        return pwd.getpwuid(user).pw_dir
    except KeyError:
        return None


def _is_ours(directory: str, user: int) -> bool:
    try:
        os.makedirs(directory, mode=0o700, exist_ok=True)
        found = os.lstat(directory)
    except OSError:
        return False
    usable = os.access(directory, os.W_OK | os.X_OK)
    return stat.S_ISDIR(found.st_mode) and found.st_uid == user and not found.st_mode & 0o022 and usable


def sweep_locks(directory: str) -> None:
    """Remove the files of locks whose holders were killed."""
    names: list[str] = []
    with suppress(OSError):
        names = [name for name in os.listdir(directory) if _LOCK_NAME.fullmatch(name)]
    for file in (os.path.join(directory, name) for name in names):
        with suppress(OSError):  # another process may have removed it just now
            if time.time() - os.lstat(file).st_mtime > STALE:
                fd = os.open(file, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
                try:
                    if try_lock(fd):
                        _remove(file)  # while it is held, as its holder would
                finally:
                    os.close(fd)


def try_lock(fd: int) -> bool:
    """Lock an open file against other processes, without waiting; tell whether it is locked now."""
    import fcntl  # noqa: PLC0415 - POSIX only

    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def still_named(fd: int, file: str) -> bool:
    """Tell whether an open file still has its name, or was removed, and made anew, meanwhile."""
    try:
        return os.path.samestat(os.fstat(fd), os.lstat(file))
    except FileNotFoundError:
        return False


def _remove(file: str) -> None:
    try:
        os.unlink(file)
    except OSError:
        return
