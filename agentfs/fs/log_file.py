"""A file that grows at its end, of which nothing is lost when an addition fails."""

import errno
import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from threading import RLock

from agentfs.errors import FileIOError
from agentfs.fs.temporary import read_all, write_all

FLAGS: int = (
    getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_BINARY", 0)
)

FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class LogFile:
    """A file that grows at its end. Thread-safe.

    Args:
        path: Its path.
        sync: Brings an open file to the disk; None for a file that is only read.
        write: Gives the file another content, whole or not at all.
    """

    def __init__(
        self,
        path: str,
        sync: Callable[[int], None] | None = None,
        write: Callable[[Iterable[bytes]], None] | None = None,
    ) -> None:
        self.path = path
        self._sync = sync
        self._write = write
        self._guard = RLock()
        self._ragged = False
        self._fd = -1
        self._end = 0
        self._process = os.getpid()
        self._open()

    def __del__(self) -> None:
        self.close()

    @property
    def size(self) -> int:
        """Bytes of it that count."""
        return self._end

    def append(self, content: bytes, *, sync: bool = False) -> int:
        """Put bytes at the end, all of them or none.

        Args:
            content: The bytes.
            sync: Bring them to the disk, as far as the policy asks for it.

        Returns:
            Where they begin.

        Raises:
            FileIOError: io: the disk is full, or fails; what stood there before stays.
        """
        with self._guard:
            self._check_held()
            start = self._end
            try:
                if self._ragged:
                    os.ftruncate(self._fd, start)
                self._ragged = True  # an interrupt may come at any moment
                os.lseek(self._fd, start, os.SEEK_SET)
                write_all(self._fd, content)
                if sync and self._sync is not None:
                    self._sync(self._fd)
            except BaseException as error:
                with suppress(OSError):
                    os.ftruncate(self._fd, start)
                if isinstance(error, OSError):
                    raise _failed(error) from None
                raise
            self._end = start + len(content)
            self._ragged = False
            return start

    def read(self, start: int, size: int) -> bytes:
        """Return bytes; fewer where it ends.

        Args:
            start: Where they begin.
            size: How many.

        Raises:
            FileIOError: io.
        """
        with self._guard:
            try:
                return read_all(self._fd, start, size)
            except OSError as error:
                raise _failed(error) from None

    def cut(self, size: int) -> None:
        """Drop what stands behind a place.

        Args:
            size: The bytes to keep.

        Raises:
            FileIOError: io.
        """
        with self._guard:
            self._check_held()
            try:
                os.ftruncate(self._fd, size)
                if self._sync is not None:
                    self._sync(self._fd)
            except OSError as error:
                raise _failed(error) from None
            self._end = size
            self._ragged = False

    def replace(self, parts: Iterable[bytes]) -> None:
        """Give it another content, whole or not at all.

        Args:
            parts: The content.

        Raises:
            FileIOError: io: what stood there before stays.
        """
        with self._guard:
            self._check_held()
            if self._write is not None:
                self._write(parts)
            self.close()
            self._open()

    def close(self) -> None:
        """Close it; again is harmless."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def _check_held(self) -> None:
        """Refuse to change a file that is not this process's alone, or that nobody will find again."""
        if os.getpid() != self._process:
            raise FileIOError(
                "The state directory of this workspace belongs to the process that this one is a copy of.",
                hint="Nothing was changed. Open a workspace of its own in this process.",
            )
        try:
            removed = self._fd >= 0 and not os.fstat(self._fd).st_nlink
        except OSError as error:
            raise _failed(error) from None
        if removed:
            raise FileIOError(
                "The state directory of this workspace was removed while it was in use.",
                hint="Nothing was changed. Open the workspace anew.",
            )

    def _open(self) -> None:
        try:
            changes = os.O_RDWR | os.O_CREAT if self._write is not None else os.O_RDONLY
            self._fd = os.open(self.path, changes | FLAGS, 0o600)
            self._end = os.fstat(self._fd).st_size
        except OSError as error:
            raise _failed(error) from None


def _failed(error: OSError) -> FileIOError:
    # Where it lies is not for a model to know.
    what = "make room there" if error.errno in FULL else "look at it"
    return FileIOError(
        f"The state directory of this workspace failed: {error.strerror or error}.",
        hint=f"Nothing was changed. Ask the user to {what}, then try again.",
        details={"errno": error.errno, "error": error.strerror},
    )
