"""Locks: one writer at a time in each tree, among threads and among processes.

A change locks its tree exclusively and shares the locks of the directories above. So it waits for changes in
the same tree, in a tree around it and in one inside it, but not for those in other trees. The locks are
`flock` locks on files in a directory of the user, outside the workspace. The system frees them when their
process ends.

The lock file of a tree names the temporaries of its holder. If a holder was killed, the next one removes
them, or the next opening of the tree.
"""

import os
import stat
import threading
import time
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache

from agentfs.base import call_context
from agentfs.base.forks import watch_forks
from agentfs.fs import oserrors, syscalls
from agentfs.fs.node import revision_of
from agentfs.fs.path import is_temporary_name

WAIT = 5.0  # seconds
ATTEMPTS = 20  # at locking a path that keeps leading to another file
_FIRST_PAUSE, _LONGEST_PAUSE = 0.0002, 0.01
_FLAGS = syscalls.open_flags("O_RDWR", "O_APPEND", "O_NOFOLLOW", "O_CLOEXEC")
_NAME_DIGITS = 4  # hexadecimal, so that there are at most 65,536 lock files
_MOST_RECORDED = 64 * 1024 * 1024  # bytes of the names of temporaries


class _ThreadLocks(threading.local):
    """The lock files that this thread holds, each with its descriptor and True if it is shared."""

    def __init__(self) -> None:
        self.files = dict[str, tuple[int, bool]]()


class _ProcessLocks:
    """The locks of this process. A forked copy drops them, because it would never release them."""

    def __init__(self) -> None:
        self.held = set[int]()  # descriptors of locked files
        self.own = _ThreadLocks()
        self.without_directory = threading.Lock()  # keeps threads apart if no lock file can be made
        watch_forks(self)

    def after_fork(self) -> None:
        """Drop all locks in a forked process."""
        self.without_directory = threading.Lock()  # the old one may be held by another thread of the parent
        self.own = _ThreadLocks()
        while self.held:
            syscalls.close(self.held.pop())


_locks = _ProcessLocks()


# The names of the lock files for some changes in the order of locking, each with True for a shared lock.
LockKeys = dict[str, bool]


def lock_keys(exclusive: Iterable[str], shared: Iterable[str] = ()) -> LockKeys:
    """Return the locks for some keys.

    The number of lock files is bounded. Changes whose keys have one in common wait for each other.
    """
    names = dict.fromkeys(map(_lock_name, shared), True) | dict.fromkeys(map(_lock_name, exclusive), False)
    return dict(sorted(names.items()))


def _lock_name(key: str) -> str:
    return revision_of(os.fsencode(key))[:_NAME_DIGITS]


def locks_of_trees(trees: Iterable[tuple[int, str]]) -> LockKeys:
    """Return the locks for changes in trees, each given by its descriptor and its canonical path."""
    # Two paths may lead to one directory, so a key is made from the inode. For the root of the file
    # system there are no lock files.
    own, above = set[str](), set[str]()
    for handle, path in trees:
        own.add(_inode(handle))
        while len(path := os.path.dirname(path)) > 1:
            with suppress(OSError):  # it was removed just now
                above.add(_inode(path))
    return lock_keys(own, above)


def _inode(directory: str | int) -> str:
    status = os.stat(directory)
    return f"{status.st_dev}:{status.st_ino}"


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
def file_locks(keys: LockKeys, root_path: str, path: str) -> Generator[int]:
    """Hold locks for the block; give the lock file that names its temporaries, or -1.

    Args:
        keys: The keys of the locks.
        root_path: The root, which cannot hold the lock files.
        path: The path to name in an error.

    Raises:
        BusyError: `WAIT` seconds, or the deadline of the call, passed before all were locked, as in the
            middle of a change of a tree inside.
    """
    began = time.monotonic()
    end = call_context.deadline(WAIT)
    own, taken = _locks.own.files, list[str]()
    directory = next(usable_directories(root_path), None)
    names = {"": False} if directory is None else keys
    try:
        for name, shared in names.items():
            file = f"{directory}/{name}" if name else ""
            if file in own and (shared or not own[file][1]):  # a change within another one
                continue
            pause = _FIRST_PAUSE
            while (fd := open_locked(file, os.O_CREAT, shared=shared) if file else _lock_threads()) is None:
                call_context.step(0)
                if (now := time.monotonic()) > end:
                    raise oserrors.locked(path, round(now - began, 1))
                time.sleep(pause)
                pause = min(pause * 2, _LONGEST_PAUSE)
            own[file] = fd, shared
            _locks.held.add(fd)
            taken.append(file)
            if file and not shared and os.fstat(fd).st_size:
                _remove_leftovers(fd)
        yield next((fd for fd, shared in reversed(own.values()) if not shared), syscalls.CLOSED)
    finally:
        if own is _locks.own.files:  # otherwise this is a forked copy, which holds nothing
            for file in taken:
                fd, _ = own.pop(file)
                _locks.held.discard(fd)
                syscalls.close(fd)
                if not file:
                    _locks.without_directory.release()


def _lock_threads() -> int | None:
    """Lock out the other threads of this process; return None if one of them is ahead."""
    return syscalls.CLOSED if _locks.without_directory.acquire(blocking=False) else None


def record_temporary(fd: int, path: str) -> None:
    """Name a temporary that is about to be made, by its absolute path, in a lock file if there is one."""
    if fd != syscalls.CLOSED:
        syscalls.write_all(fd, os.fsencode(path) + b"\0")


def forget_temporaries(fd: int) -> None:
    """Take note that all temporaries recorded in a lock file are gone."""
    with suppress(OSError):  # a name without a temporary does no harm
        os.ftruncate(fd, 0)


def remove_leftovers(keys: LockKeys) -> None:
    """Remove the temporaries of killed changes in trees with these keys."""
    for directory in filter(_is_ours, lock_directories(os.geteuid())):
        for name in [name for name, shared in keys.items() if not shared]:
            with suppress(OSError):
                # A file that is locked belongs to a change under way.
                if (fd := open_locked(os.path.join(directory, name))) is not None:
                    try:
                        _remove_leftovers(fd)
                    finally:
                        syscalls.close(fd)


def _remove_leftovers(fd: int) -> None:
    """Remove the temporaries that a lock file names, and empty it."""
    for path in os.fsdecode(os.pread(fd, _MOST_RECORDED, 0)).split("\0"):
        directory, name = os.path.split(path)
        if is_temporary_name(name) and os.path.realpath(directory) == directory:
            with suppress(OSError):
                handle = syscalls.open_root(directory)
                try:
                    syscalls.remove_all(handle, name)
                finally:
                    syscalls.close(handle)
    os.ftruncate(fd, 0)


def open_locked(file: str, flags: int = 0, *, shared: bool = False) -> int | None:
    """Open and lock a file; return None if it is locked, or was removed meanwhile."""
    fd, locked = os.open(file, _FLAGS | flags, 0o600), False
    try:
        with suppress(FileNotFoundError):
            locked = syscalls.try_lock(fd, shared=shared) and os.path.samestat(os.fstat(fd), os.lstat(file))
    finally:
        if not locked:
            os.close(fd)
    return fd if locked else None


def usable_directories(root_path: str) -> Iterator[str]:
    """Yield the directories for locks outside the root that are usable, created if missing.

    They do not depend on environment variables, so that all processes of a user share the first.
    """
    for directory in _directories_outside(root_path, os.geteuid()):
        if not os.path.lexists(directory):
            with suppress(OSError):
                os.makedirs(directory, mode=0o700, exist_ok=True)
        if _is_ours(directory):
            yield directory


@lru_cache  # finding the real paths would take longer than the lock
def _directories_outside(root_path: str, user: int) -> list[str]:
    top = root_path.rstrip("/") + "/"
    return [each for each in lock_directories(user) if not os.path.realpath(each).startswith(top)]


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
