"""A directory outside the tree in which one workspace at a time keeps what is to outlive its process."""

import os
import stat
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import partial
from weakref import WeakSet

from agentfs.errors import AgentFSError, BusyError, FileIOError, InvalidArgumentError, RefusedError
from agentfs.fs import oserrors
from agentfs.fs.lock import try_lock
from agentfs.fs.log_file import FLAGS, FULL, LogFile
from agentfs.fs.mounts import is_mounted_below
from agentfs.fs.path import quote
from agentfs.fs.root import Root
from agentfs.fs.temporary import sync_file, write_all

_LOCK = "lock"
_NEW = ".new"
_TEMPORARY_OF_THE_SYSTEM = {"lost+found"}
_MAX_READ = 1 << 20


class StateDirectory:
    """A directory that nobody else uses while this stands. A context manager.

    Args:
        path: The directory; made if it is not there.
        root: The tree, which it must lie outside of, and whose policy says what is brought to the disk.
        format_name: The name of the file that marks such a directory.
        names: The other files that may be in it.

    Raises:
        InvalidArgumentError: invalid_argument: it lies in the tree or around it, is no directory, or has
            something else in it.
        RefusedError: refused: it is not this user's own, or others may write in it.
        BusyError: busy: another workspace uses it.
        FileIOError: io.
    """

    def __init__(
        self, path: str | os.PathLike[str], root: Root, *, format_name: str, names: Sequence[str]
    ) -> None:
        self._lock = -1
        # They hold this, so that it goes, and its lock, as soon as they do.
        self._logs: WeakSet[LogFile] = WeakSet()
        self.path = _resolved(path)
        self._format_name = format_name
        self._names = {*names, *(name + _NEW for name in names), format_name + _NEW, _LOCK}
        self._context = root._context  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - it is a part of the disk
        _check_apart(self.path, root.path)
        try:
            self._make()
            self._lock = self._locked()
        except OSError as error:
            raise _failed(error, self.path) from None
        try:
            # Whoever made it at the same moment may have made it another program's.
            self._check_ours()
            for name in os.listdir(self.path):
                if name.endswith(_NEW):  # of a process that died before it was whole
                    os.unlink(self._place(name))
        except OSError as error:
            self.close()
            raise _failed(error, self.path) from None
        except BaseException:
            self.close()
            raise

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """Close its logs, and let others use it; again is harmless."""
        for log in self._logs:
            log.close()
        fd, self._lock = self._lock, -1
        if fd >= 0:
            os.close(fd)

    def read(self, name: str) -> bytes | None:
        """Return the content of a small file; None where it is not.

        Args:
            name: Its name.

        Raises:
            FileIOError: io.
        """
        return read_small(self._place(name))

    def write(self, name: str, parts: Iterable[bytes]) -> None:
        """Give a file a content, whole or not at all.

        Args:
            name: Its name.
            parts: The content.

        Raises:
            FileIOError: io: what stood there before stays.
        """
        place = self._place(name)
        try:
            fd = os.open(place + _NEW, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | FLAGS, 0o600)
            try:
                for part in parts:
                    write_all(fd, part)
                sync_file(self._context, fd)
            finally:
                os.close(fd)
            os.replace(place + _NEW, place)
            self._sync_names()
        except OSError as error:
            with suppress(OSError):
                os.unlink(place + _NEW)
            raise _failed(error, place) from None

    def open_log(self, name: str) -> LogFile:
        """Open a file that grows at its end; it is made if it is not there.

        Args:
            name: Its name.

        Raises:
            FileIOError: io.
        """
        log = LogFile(self._place(name), partial(sync_file, self._context), partial(self.write, name))
        self._logs.add(log)
        return log

    def has(self, name: str) -> bool:
        """Tell whether a file is there."""
        return os.path.lexists(self._place(name))

    def _place(self, name: str) -> str:
        return os.path.join(self.path, name)

    def _make(self) -> None:
        try:
            os.makedirs(self.path, mode=0o700)
        except FileExistsError:
            self._check_ours()
        except NotADirectoryError:
            raise InvalidArgumentError(
                f"The state directory {quote(self.path)} cannot be made: a file stands on the way to it.",
                hint="Give the path of a directory, or one that is not there yet.",
                details={"parameter": "state", "path": self.path},
            ) from None

    def _check_ours(self) -> None:
        found = os.stat(self.path)
        if not stat.S_ISDIR(found.st_mode):
            raise InvalidArgumentError(
                f"The state directory {quote(self.path)} is a file.",
                hint="Give the path of a directory, or one that is not there yet.",
                details={"parameter": "state", "path": self.path},
            )
        names = set(os.listdir(self.path)) - _TEMPORARY_OF_THE_SYSTEM
        if self._format_name not in names and names - self._names:
            others = ", ".join(map(quote, sorted(names - self._names)[:3]))
            raise InvalidArgumentError(
                f"{quote(self.path)} is no state directory of agentfs: {others} is in it.",
                hint="Give an empty directory, or one that is not there yet.",
                details={"parameter": "state", "path": self.path},
            )
        if found.st_uid != os.geteuid():
            raise RefusedError(
                f"The state directory {quote(self.path)} belongs to another user.",
                hint="Give a directory of your own: it holds the contents of files.",
                details={"parameter": "state", "path": self.path},
            )
        if self._format_name not in names:
            os.chmod(self.path, 0o700)
        elif found.st_mode & 0o022:
            raise RefusedError(
                f"Others may write in the state directory {quote(self.path)}.",
                hint=f"Look whether all in it is yours, then run: chmod 700 {quote(self.path)}",
                details={"parameter": "state", "path": self.path},
            )

    def _locked(self) -> int:
        fd = os.open(self._place(_LOCK), os.O_RDWR | os.O_CREAT | FLAGS, 0o600)
        try:
            if try_lock(fd):
                os.ftruncate(fd, 0)
                os.write(fd, str(os.getpid()).encode())
                return fd
            holder = os.read(fd, 20).decode("ascii", "replace").strip()
        except BaseException:
            os.close(fd)
            raise
        os.close(fd)
        by = f", by process {holder}" if holder.isdigit() else ""
        raise BusyError(
            f"The state directory {quote(self.path)} is in use by another workspace{by}.",
            hint="Close that one first, or give this one a state directory of its own.",
            details={"path": self.path, "process": int(holder) if holder.isdigit() else None},
        )

    def _sync_names(self) -> None:
        if self._context.durability == "fast":
            return
        fd = os.open(self.path, os.O_RDONLY | FLAGS)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def _resolved(path: str | os.PathLike[str]) -> str:
    try:
        return os.path.realpath(path)
    except (ValueError, OSError) as error:  # a NUL in it; on some systems a loop of links
        raise InvalidArgumentError(
            f"The state directory has no possible path: {error}.",
            hint="Give the path of a directory, or one that is not there yet.",
            details={"parameter": "state"},
        ) from None


def read_small(path: str) -> bytes | None:
    """Return the content of a small file outside of the tree; None where it is not.

    Args:
        path: Its path.

    Raises:
        FileIOError: io.
    """
    try:
        fd = os.open(path, os.O_RDONLY | FLAGS)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise _failed(error, path) from None
    try:
        return os.read(fd, _MAX_READ)
    except OSError as error:
        raise _failed(error, path) from None
    finally:
        os.close(fd)


def _check_apart(state: str, root: str) -> None:
    """Refuse a state directory in the tree, or around it, under whatever name."""
    if _is_below(state, root) or is_mounted_below(state, root):
        where, what = "inside of the workspace", "the model could read and change it there"
    elif _is_below(root, state) or is_mounted_below(root, state):
        where, what = "around the workspace", "the workspace would be a part of it"
    else:
        return
    raise InvalidArgumentError(
        f"The state directory {quote(state)} lies {where} {quote(root)}: {what}.",
        hint="Give a directory beside it, such as one below ~/.local/state.",
        details={"parameter": "state", "path": state, "root": root},
    )


def _is_below(path: str, top: str) -> bool:
    """Tell whether a path is that of a directory or lies below it; names may differ, as of a second mount."""
    while True:
        with suppress(OSError):
            if os.path.samestat(os.stat(path), os.stat(top)):
                return True
        above = os.path.dirname(path)
        if above == path:
            return False
        path = above


def _failed(error: OSError, path: str) -> AgentFSError:
    if isinstance(error, AgentFSError):  # several of them are also an OSError
        return error
    if isinstance(error, PermissionError):
        return oserrors.from_oserror(error, path)
    return FileIOError(
        f"The state directory failed: {error.strerror or error} ({quote(path)}).",
        hint="Make room there, or give another one."
        if error.errno in FULL
        else "Look at it, or give another one.",
        details={"errno": error.errno, "error": error.strerror, "path": path},
    )
