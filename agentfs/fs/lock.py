"""Locks: one writer at a time for each device, among threads and among processes.

Threads share a `threading.Lock`. Processes use `flock` on a lock file in a directory of the user,
outside the workspace. The system frees the lock when its process ends.

The lock file names the temporaries of its holder. If a holder was killed, the next one removes them, or the
next opening of a root on the device.
"""

import os
import stat
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import lru_cache
from weakref import WeakValueDictionary

from agentfs.base import call_context
from agentfs.base.forks import watch_forks
from agentfs.fs import oserrors, syscalls
from agentfs.fs.node import revision_of
from agentfs.fs.path import is_temporary_name

WAIT = 5.0  # seconds
ATTEMPTS = 20  # at locking a path that keeps leading to another file
_FIRST_PAUSE, _LONGEST_PAUSE = 0.0002, 0.01
_CHECK_EVERY = 0.05  # seconds between two checks of the deadline
_MOST_RECORDED = 64 * 1024 * 1024  # bytes of the names of temporaries


class _OwnLocks(threading.local):
    """The descriptors of the lock files that this thread holds, by key; -1 without a lock file."""

    def __init__(self) -> None:
        self.files: dict[str, int] = {}


class _ProcessLocks:
    """The locks of this process. A forked copy drops them, because it would never release them."""

    def __init__(self) -> None:
        self.guard = threading.Lock()
        self.threads = WeakValueDictionary[str, threading.Lock]()  # each lock exists while a thread uses it
        self.held = set[int]()  # descriptors of locked files
        self.own = _OwnLocks()
        watch_forks(self)

    def after_fork(self) -> None:
        """Drop all locks in a forked process."""
        self.guard = threading.Lock()  # the old one may be held by another thread of the parent
        self.threads.clear()
        self.own = _OwnLocks()
        while self.held:
            syscalls.close(self.held.pop())


_locks = _ProcessLocks()


def hold(fd: int) -> int:
    """Record a locked descriptor, so that a forked copy of the process closes it."""
    _locks.held.add(fd)
    return fd


def let_go(fd: int) -> None:
    """Close a descriptor that `hold` recorded."""
    if fd in _locks.held:
        _locks.held.discard(fd)
        syscalls.close(fd)


@contextmanager
def file_locks(keys: Mapping[str, str], root_path: str) -> Generator[bool]:
    """Hold locks for the block; give True if it had to wait for one.

    Args:
        keys: The path to name in an error, by the key of each lock, such as a device.
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
    own = _locks.own.files
    wanted = {key: path for key, path in keys.items() if key not in own}  # a change within another one
    directory = lock_directory(root_path) if wanted else None
    try:
        for key, path in sorted(wanted.items()):
            with _locks.guard:
                lock = _locks.threads.setdefault(key, threading.Lock())
            patience = 0.0
            while not lock.acquire(timeout=patience):
                check(path)
                patience = min(max(end - time.monotonic(), 0), _CHECK_EVERY)
            locks.append(lock)
            own[key] = -1
            if directory is not None:
                own[key] = hold(_wait_for(_lock_file(directory, key), path, check))
                if os.fstat(own[key]).st_size:
                    _remove_leftovers(own[key])
        yield waited
    finally:
        for key in wanted:
            let_go(own.pop(key, -1))
        for lock in locks:
            lock.release()


def device_key(handle: int) -> str:
    """Return the key of the lock for changes in an open directory: its device."""
    return f"device {syscalls.lstat(handle, '.').st_dev}"


def _lock_file(directory: str, key: str) -> str:
    return os.path.join(directory, revision_of(os.fsencode(key))[:12])


def _wait_for(file: str, path: str, check: Callable[[str], None]) -> int:
    """Wait for a lock file; return its descriptor."""
    pause = _FIRST_PAUSE
    while (fd := open_locked(file, os.O_CREAT)) is None:
        check(path)
        time.sleep(pause)
        pause = min(pause * 2, _LONGEST_PAUSE)
    return fd


def record_temporary(path: str) -> None:
    """Name a temporary that is about to be made, by its absolute path, in a lock file of this thread."""
    if (fd := max(_locks.own.files.values(), default=-1)) >= 0:
        syscalls.write_all(fd, os.fsencode(path) + b"\0")


def forget_temporaries() -> None:
    """Take note that all recorded temporaries are gone."""
    if (fd := max(_locks.own.files.values(), default=-1)) >= 0:
        with suppress(OSError):  # a name without a temporary does no harm
            os.ftruncate(fd, 0)


def remove_leftovers(handle: int) -> None:
    """Remove the temporaries of a killed change on the device of an open directory."""
    with suppress(OSError):
        key = device_key(handle)
        for directory in filter(_is_ours, lock_directories(os.geteuid())):
            file = _lock_file(directory, key)
            if os.path.exists(file) and (fd := open_locked(file)) is not None:  # None: it is under way
                try:
                    _remove_leftovers(fd)
                finally:
                    syscalls.close(fd)


def _remove_leftovers(fd: int) -> None:
    """Remove the temporaries that a lock file names, and empty it."""
    for path in os.fsdecode(os.pread(fd, _MOST_RECORDED, 0)).split("\0"):
        directory, name = os.path.split(path)
        if is_temporary_name(name):
            with suppress(OSError):
                handle = syscalls.enter_real(directory)
                try:
                    syscalls.remove_all(handle, name)
                finally:
                    syscalls.close(handle)
    os.ftruncate(fd, 0)


def open_locked(file: str, flags: int = 0) -> int | None:
    """Open and lock a file; return None if another process holds or removed it."""
    fd = os.open(file, os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC | flags, 0o600)
    try:
        with suppress(FileNotFoundError):
            if syscalls.try_lock(fd) and os.path.samestat(os.fstat(fd), os.lstat(file)):
                return fd
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
    for directory in lock_directories(os.geteuid()):
        if _is_outside(directory, root_path):
            if not os.path.lexists(directory):
                with suppress(OSError):
                    os.makedirs(directory, mode=0o700, exist_ok=True)
            if _is_ours(directory):
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


def _is_ours(directory: str) -> bool:
    try:
        found, user = os.lstat(directory), os.geteuid()
    except OSError:
        return False
    usable = os.access(directory, os.W_OK | os.X_OK)
    return stat.S_ISDIR(found.st_mode) and found.st_uid == user and not found.st_mode & 0o022 and usable
