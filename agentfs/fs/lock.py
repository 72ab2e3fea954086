"""File locks: one writer at a time for each file, among threads and among processes.

Threads share a `threading.Lock`. Processes use `flock` on a lock file in a directory of the user,
outside the workspace. The system frees the lock when its process ends.
"""

import os
import re
import stat
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import lru_cache, partial
from weakref import WeakValueDictionary

from agentfs.base import call_context
from agentfs.base.forks import watch_forks
from agentfs.fs import oserrors, syscalls
from agentfs.fs.node import revision_of

WAIT = 5.0  # seconds
ATTEMPTS = 20  # at locking a path that keeps leading to another file
STALE = 3600.0  # seconds after which a lock or temporary belongs to a dead process; a change takes far less
_LOCK_NAME = re.compile("[0-9a-f]{12}")
_FIRST_PAUSE, _LONGEST_PAUSE = 0.0002, 0.01
_CHECK_EVERY = 0.05  # seconds between two checks of the deadline


class _ProcessLocks:
    """The locks of this process. A forked copy drops them, because it would never release them."""

    def __init__(self) -> None:
        self.guard = threading.Lock()
        self.threads = WeakValueDictionary[str, threading.Lock]()  # each lock exists while a thread uses it
        self.held = set[int]()  # descriptors of locked files
        watch_forks(self)

    def after_fork(self) -> None:
        """Drop all locks in a forked process."""
        self.guard = threading.Lock()  # the old one may be held by another thread of the parent
        self.threads.clear()
        while self.held:
            syscalls.close(self.held.pop())


_locks = _ProcessLocks()


def hold(fd: int) -> int:
    """Record a locked descriptor, so that a forked copy of the process closes it."""
    _locks.held.add(fd)
    return fd


def is_held(fd: int) -> bool:
    """Return True if this process holds the lock. A forked copy does not."""
    return fd in _locks.held


def let_go(fd: int) -> None:
    """Close a descriptor that `hold` recorded."""
    if fd in _locks.held:
        _locks.held.discard(fd)
        syscalls.close(fd)


@contextmanager
def file_locks(paths: Mapping[str, str], root_path: str) -> Generator[bool]:
    """Lock files for the block; give True if it had to wait.

    Args:
        paths: The path of each file for messages, by its `ResolvedPath.lock_key`.
        root_path: The root, which cannot hold the lock files.

    Raises:
        BusyError: `WAIT` seconds, or the deadline of the call, passed before all were locked.
    """
    began = time.monotonic()
    end = call_context.deadline(WAIT)
    waited = False

    def check(path: str) -> None:
        nonlocal waited
        waited = True
        call_context.step(0)
        if (now := time.monotonic()) > end:
            raise oserrors.locked(path, round(now - began, 1))

    locks: list[threading.Lock] = []
    files: dict[str, int] = {}  # the descriptor of each lock file; 0 if it is a hard link to the first one
    try:
        for key in sorted(paths):
            with _locks.guard:
                lock = _locks.threads.setdefault(key, threading.Lock())
            patience = 0.0
            while not lock.acquire(timeout=patience):
                check(paths[key])
                patience = min(max(end - time.monotonic(), 0), _CHECK_EVERY)
            locks.append(lock)
        directory = lock_directory(root_path) if paths else None
        if directory is not None:
            names = {os.path.join(directory, revision_of(os.fsencode(key))[:12]): paths[key] for key in paths}
            for file in sorted(names):
                files[file] = _wait_for(file, next(iter(files), None), partial(check, names[file]))
        yield waited
    finally:
        # Remove the files while they are locked: waiters notice the missing name and start again.
        descriptors = [*filter(None, files.values())]
        if all(map(is_held, descriptors)):
            for file in files:
                with suppress(OSError):
                    os.unlink(file)
        for fd in descriptors:
            let_go(fd)
        for lock in locks:
            lock.release()


def _wait_for(file: str, first: str | None, check: Callable[[], None]) -> int:
    """Wait for a lock file; return its descriptor, or 0 if it became a hard link to the first lock file."""
    pause = _FIRST_PAUSE
    while True:
        fd = open_locked(file, os.O_CREAT) if first is None else _link_or_open_locked(first, file)
        if fd is not None:
            return hold(fd) if fd else 0
        check()
        time.sleep(pause)
        pause = min(pause * 2, _LONGEST_PAUSE)


def _link_or_open_locked(locked: str, file: str) -> int | None:
    """Link a lock file to a locked one and return 0. Without hard links, lock it; return its descriptor."""
    try:
        os.link(locked, file)
    except FileExistsError:
        with suppress(FileNotFoundError):
            fd = open_locked(file)
            if fd is not None:  # its process has died
                os.unlink(file)
                os.close(fd)
        return None
    except OSError as error:
        if error.errno not in syscalls.NO_HARD_LINKS:
            raise
        return open_locked(file, os.O_CREAT)
    return 0


def open_locked(file: str, flags: int = 0) -> int | None:
    """Open and lock a file; return None if another process holds or removed it."""
    fd = os.open(file, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | flags, 0o600)
    try:
        with suppress(FileNotFoundError):
            if syscalls.try_lock(fd) and os.path.samestat(status := os.fstat(fd), os.lstat(file)):
                if status.st_nlink == 1:
                    return fd
                # A batch whose process died has left hard links to this lock file. None of them may block.
                os.unlink(file)
    except BaseException:
        os.close(fd)
        raise
    os.close(fd)
    return None


def lock_directory(root_path: str) -> str | None:
    """Return the directory of the locks, created if missing; None if no place outside the root is usable.

    It does not depend on environment variables, so that all processes of a user share it.
    """
    return next(usable_directories(root_path), None)


def usable_directories(root_path: str) -> Iterator[str]:
    """Yield the directories for locks outside the root that are usable, created if missing."""
    user = os.geteuid()
    for directory in lock_directories(user):
        if _is_outside(directory, root_path) and _is_ours(directory, user):
            yield directory


@lru_cache  # finding the real path would take longer than the lock
def _is_outside(directory: str, root_path: str) -> bool:
    return not os.path.realpath(directory).startswith(root_path.rstrip("/") + "/")


def lock_directories(user: int) -> Iterator[str]:
    """Yield the candidates for the directory of a user's locks."""
    home = syscalls.home_of(user)
    if home is not None:
        yield os.path.join(home, ".cache", "agentfs", "locks")
    yield f"/tmp/agentfs-{user}"  # noqa: S108 - used only if the user owns it
    if os.path.isdir("/dev/shm"):  # noqa: S108 - as above
        yield f"/dev/shm/agentfs-{user}"  # noqa: S108 - as above


def _is_ours(directory: str, user: int) -> bool:
    try:
        if not os.path.lexists(directory):
            os.makedirs(directory, mode=0o700, exist_ok=True)
        found = os.lstat(directory)
    except OSError:
        return False
    usable = os.access(directory, os.W_OK | os.X_OK)
    return stat.S_ISDIR(found.st_mode) and found.st_uid == user and not found.st_mode & 0o022 and usable


def remove_stale_locks(directory: str) -> None:
    """Remove the lock files of killed processes."""
    names: list[str] = []
    with suppress(OSError):
        names = [name for name in os.listdir(directory) if _LOCK_NAME.fullmatch(name)]
    for file in (os.path.join(directory, name) for name in names):
        with suppress(OSError):  # another process may remove it too
            if time.time() - os.lstat(file).st_mtime > STALE and (fd := open_locked(file)) is not None:
                try:
                    os.unlink(file)
                finally:
                    os.close(fd)
