"""The directory outside the tree where a workspace keeps its history: creation, checks and lock."""

import errno
import os
import stat
from collections.abc import Iterable

from agentfs.base.forks import watch_forks
from agentfs.errors import AgentFSError, BusyError, FileIOError, InvalidArgumentError, RefusedError
from agentfs.fs import oserrors, quote, syscalls
from agentfs.fs.lock import hold, let_go
from agentfs.fs.own_directories import STATE_MARK, OwnDirectory, is_below

FILE = "history.db"
_ALLOWED = {STATE_MARK, "lost+found", *(FILE + end for end in ("", "-wal", "-shm", "-journal"))}
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL}


class StateDirectory:
    """A state directory, locked against other workspaces until it is closed.

    It is created if it is missing. It must lie outside all `sources`, the trees of the workspace. Only this
    user may write to it. A directory without a database must be empty.
    """

    def __init__(self, path: str | os.PathLike[str], sources: Iterable[str] = ()) -> None:
        self._lock_fd = -1
        self._process = os.getpid()
        self.path = _real_path(path)
        self._directory = OwnDirectory(self.path)
        for source in sources:
            _check_apart(self.path, source)
        watch_forks(self)
        try:
            self._create()
            self._lock_fd = hold(self._lock())
            if FILE not in self._check_owned():  # another program may have used it before the lock
                os.close(self._directory.open(FILE, os.O_EXCL))
        except BaseException as error:
            self.close()
            if isinstance(error, OSError):
                raise _failed(error, self.path) from None
            raise

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """Unlock the directory; calling it again does nothing."""
        fd, self._lock_fd = self._lock_fd, -1
        if fd >= 0:
            if self._process == os.getpid():
                syscalls.unlock(fd)  # a child that was just forked may still have a copy of the descriptor
            let_go(fd)

    def after_fork(self) -> None:
        """Close the child's copy of the lock, so that it does not outlive the parent."""
        self.close()

    def check_usable(self) -> None:
        """Raise if the directory was removed."""
        if self._lock_fd >= 0 and not os.fstat(self._lock_fd).st_nlink:
            raise FileIOError(
                "The state directory of this workspace was removed while it was in use.",
                hint="Nothing was changed. Open the workspace again.",
            )

    def _create(self) -> None:
        try:
            self._directory.make()
        except FileExistsError:
            self._check_owned()
        except NotADirectoryError:
            raise _invalid(
                f"{quote(self.path)} cannot be created: a parent of it is a file.", self.path
            ) from None

    def _check_owned(self) -> set[str]:
        """Check type and owner of the directory, and return its names; make a new one private."""
        status = self._directory.status()
        if not stat.S_ISDIR(status.st_mode):
            raise _invalid(f"{quote(self.path)} is a file.", self.path)
        names = set(self._directory.names())
        if FILE not in names and (others := sorted(names - _ALLOWED)):
            contained = ", ".join(map(quote, others[:3]))
            raise _invalid(f"{quote(self.path)} is not one of agentfs: it contains {contained}.", self.path)
        details = {"parameter": "state", "path": self.path}
        if status.st_uid != os.geteuid():
            raise RefusedError(
                f"The state directory {quote(self.path)} belongs to another user.",
                hint="Pass a directory of your own, because it holds the contents of files.",
                details=details,
            )
        if FILE not in names:
            os.chmod(self.path, 0o700)
        elif status.st_mode & 0o022:
            raise RefusedError(
                f"Other users may write to the state directory {quote(self.path)}.",
                hint=f"Check that all its files are yours, then run: chmod 700 {quote(self.path)}",
                details=details,
            )
        return names

    def _lock(self) -> int:
        fd = self._directory.open(STATE_MARK)
        try:
            if syscalls.try_lock(fd):
                os.ftruncate(fd, 0)
                os.write(fd, str(os.getpid()).encode())
                return fd
            holder = os.read(fd, 20).decode("ascii", "replace").strip()
        except BaseException as error:
            os.close(fd)
            if isinstance(error, OSError) and error.errno in _NO_LOCKS:
                raise no_locks(self.path, error.strerror or str(error)) from None
            raise
        os.close(fd)
        by = f", by process {holder}" if holder.isdigit() else ""
        raise BusyError(
            f"The state directory {quote(self.path)} is in use by another workspace{by}.",
            hint="Close that workspace first, or pass another state directory.",
            details={"path": self.path, "process": int(holder) if holder.isdigit() else None},
        )


def no_locks(path: str, reason: str) -> FileIOError:
    """Return the error for a file system on which files cannot be locked."""
    return FileIOError(
        f"Files cannot be locked in the state directory {quote(path)}: {reason}.",
        hint="Pass a directory on a local disk; some network file systems have no working locks.",
        details={"parameter": "state", "path": path, "error": reason},
    )


def _real_path(path: str | os.PathLike[str]) -> str:
    try:
        return os.path.realpath(path)
    except (ValueError, OSError) as error:  # a NUL, or on some systems a loop of links
        raise InvalidArgumentError(
            f"The path of the state directory is invalid: {error}.",
            hint="Pass another path.",
            details={"parameter": "state"},
        ) from None


def _check_apart(state: str, root: str) -> None:
    """Refuse a state directory inside or around the tree, even through links and mounts."""
    if is_below(state, root):
        where, reason = "inside the workspace", "the model could read and change it there"
    elif is_below(root, state):
        where, reason = "around the workspace", "the workspace would be a part of it"
    else:
        return
    raise _invalid(f"{quote(state)} lies {where} {quote(root)}: {reason}.", state, root=root)


def _invalid(message: str, path: str, **details: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"The state directory {message}",
        hint="Pass another directory, such as one below ~/.local/state, or one that does not exist yet.",
        details={"parameter": "state", "path": path, **details},
    )


def _failed(error: OSError, path: str) -> AgentFSError:
    if isinstance(error, AgentFSError | PermissionError):  # some AgentFSErrors are also OSErrors
        return oserrors.from_oserror(error, path)
    full = "Free disk space there, or pass another directory."
    return FileIOError(
        f"The state directory failed: {error.strerror or error} ({quote(path)}).",
        hint=full if error.errno in _FULL else "Check the disk, or pass another directory.",
        details={"errno": error.errno, "error": error.strerror, "path": path},
    )
