"""An unlinked temporary file for bytes that are too many to keep in memory."""

import os
from threading import Lock

from agentfs.fs import oserrors
from agentfs.fs.temporary import read_all, write_all

_NAME = "the journal's temporary file"


class Spool:
    """Bytes appended to a temporary file outside the tree, which is gone when it is closed. Thread-safe.

    `append` and `read` raise FileIOError (io) where the disk is full or fails; earlier bytes stay.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._fd = -1
        self._end = 0

    @property
    def size(self) -> int:
        """Bytes appended so far."""
        return self._end

    def append(self, data: bytes) -> int:
        """Append bytes, and return their offset."""
        with self._lock:
            try:
                if self._fd < 0:
                    import tempfile  # noqa: PLC0415 - it loads a tenth of what an import of agentfs may take

                    with tempfile.TemporaryFile(prefix="agentfs-") as file:
                        self._fd = os.dup(file.fileno())
                offset = self._end
                os.lseek(self._fd, offset, os.SEEK_SET)
                write_all(self._fd, data)
            except OSError as error:
                raise oserrors.from_oserror(error, _NAME) from None
            self._end += len(data)
            return offset

    def read(self, offset: int, size: int) -> bytes:
        """Return bytes that were appended."""
        with self._lock:
            try:
                return read_all(self._fd, offset, size)
            except OSError as error:
                raise oserrors.from_oserror(error, _NAME) from None

    def close(self) -> None:
        """Free the space; calling it again does nothing."""
        with self._lock:
            fd, self._fd = self._fd, -1
            if fd >= 0:
                os.close(fd)

    def __del__(self) -> None:
        self.close()
