"""The directory outside the tree where a workspace keeps its history: creation, checks and lock."""

import errno
import os
from collections.abc import Iterable

from agentfs.base.forks import watch_forks
from agentfs.errors import AgentFSError, BusyError, FileIOError, InvalidArgumentError, RefusedError
from agentfs.fs import quote, syscalls
from agentfs.fs.lock import hold, let_go
from agentfs.fs.own_directories import STATE_MARK, is_below, names_in, open_own_file

FILE = "history.db"
_ALLOWED = {STATE_MARK, "lost+found", *(FILE + end for end in ("", "-wal", "-shm", "-journal"))}
_NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL}


class StateDirectory:
    """A state directory, locked against other workspaces until it is closed.

    It is created if it is missing. It must lie outside all `sources`, the trees of the workspace. Only this
    user may write to it. A directory without a database must be empty.
    """

    def __init__(self, path: str | os.PathLike[str], sources: Iterable[str] = ()) -> None:
        self._lock_fd: int | None = None
        self._process = os.getpid()
        self.path = os.path.realpath(path)
        for source in sources:
            if is_below(self.path, source) or is_below(source, self.path):
                raise self._invalid("must lie outside the workspace, and not contain it")
        watch_forks(self)
        try:
            try:
                os.makedirs(self.path, mode=0o700)
            except FileExistsError:
                self._check_owned()
            self._lock_fd = hold(self._lock())
            if FILE not in self._check_owned():  # another program may have used it before the lock
                os.close(open_own_file(os.path.join(self.path, FILE), os.O_EXCL))
        except BaseException as error:
            self.close()
            if isinstance(error, OSError) and not isinstance(error, AgentFSError):
                raise self._failed(error) from None
            raise

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """Unlock the directory; calling it again does nothing."""
        fd, self._lock_fd = self._lock_fd, None
        if fd is not None:
            if self._process == os.getpid():
                syscalls.unlock(fd)  # a child that was just forked may still have a copy of the descriptor
            let_go(fd)

    def after_fork(self) -> None:
        """Close the child's copy of the lock, so that it does not outlive the parent."""
        self.close()

    def check_usable(self) -> None:
        """Raise if the directory was removed."""
        if self._lock_fd is not None and not os.fstat(self._lock_fd).st_nlink:
            raise FileIOError(
                "The state directory of this workspace was removed while it was in use.",
                hint="Nothing was changed. Open the workspace again.",
            )

    def _check_owned(self) -> set[str]:
        """Check type and owner of the directory, and return its names; make a new one private."""
        status, names = names_in(self.path)
        if FILE not in names and (others := sorted(names - _ALLOWED)):
            contained = f": it contains {', '.join(map(quote, others[:3]))}" if any(others) else ""
            raise self._invalid(f"is not a directory of agentfs{contained}")
        is_new = FILE not in names
        if status.st_uid != os.geteuid() or (status.st_mode & 0o022 and not is_new):
            raise RefusedError(
                f"The state directory {quote(self.path)} belongs to another user, or others may write to it.",
                hint=f"Pass another one; or, if all its files are yours, run: chmod 700 {quote(self.path)}",
                details={"parameter": "state", "path": self.path},
            )
        if is_new:
            os.chmod(self.path, 0o700)
        return names

    def _lock(self) -> int:
        fd = open_own_file(os.path.join(self.path, STATE_MARK))
        try:
            if syscalls.try_lock(fd):
                return fd
        except OSError as error:
            os.close(fd)
            raise (no_locks(self.path, str(error)) if error.errno in _NO_LOCKS else error) from None
        os.close(fd)
        raise BusyError(
            f"The state directory {quote(self.path)} is in use by another workspace.",
            hint="Close that workspace first, or pass another state directory.",
            details={"path": self.path},
        )

    def _invalid(self, reason: str) -> InvalidArgumentError:
        return InvalidArgumentError(
            f"The state directory {quote(self.path)} {reason}.",
            hint="Pass another directory, such as one below ~/.local/state, or one that does not exist yet.",
            details={"parameter": "state", "path": self.path},
        )

    def _failed(self, error: OSError) -> FileIOError:
        return FileIOError(
            f"The state directory {quote(self.path)} failed: {error.strerror or error}.",
            hint="Check the disk, and free space there, or pass another directory.",
            details={"errno": error.errno, "error": error.strerror, "path": self.path},
        )


def no_locks(path: str, reason: str) -> FileIOError:
    """Return the error for a file system on which files cannot be locked."""
    return FileIOError(
        f"Files cannot be locked in the state directory {quote(path)}: {reason}.",
        hint="Pass a directory on a local disk; some network file systems have no working locks.",
        details={"parameter": "state", "path": path, "error": reason},
    )
