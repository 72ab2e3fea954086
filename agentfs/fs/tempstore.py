"""A file without a name, for what is too much to hold in memory; it is gone when it is closed."""

import os
from threading import Lock

from agentfs.fs import oserrors
from agentfs.fs.temporary import read_all, write_all


class Spool:
    """Bytes put down one after the other, in a file outside the tree that has no name. Thread-safe."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._file = -1
        self._end = 0

    @property
    def size(self) -> int:
        """Bytes put down so far."""
        return self._end

    def append(self, data: bytes) -> int:
        """Put bytes down.

        Args:
            data: The bytes.

        Returns:
            Where they begin.

        Raises:
            FileIOError: io: the disk is full, or fails; what was put down before stays.
        """
        with self._lock:
            try:
                if self._file < 0:
                    import tempfile  # noqa: PLC0415 - it loads a tenth of what an import of agentfs may take

                    with tempfile.TemporaryFile(prefix="agentfs-") as made:
                        self._file = os.dup(made.fileno())
                start = self._end
                os.lseek(self._file, start, os.SEEK_SET)
                write_all(self._file, data)
            except OSError as error:
                raise oserrors.from_oserror(error, "the journal's temporary file") from None
            self._end += len(data)
            return start

    def read(self, start: int, size: int) -> bytes:
        """Return bytes that were put down.

        Args:
            start: Where they begin.
            size: How many.

        Raises:
            FileIOError: io: the disk fails.
        """
        with self._lock:
            try:
                return read_all(self._file, start, size)
            except OSError as error:
                raise oserrors.from_oserror(error, "the journal's temporary file") from None

    def close(self) -> None:
        """Give the space back; again is harmless."""
        with self._lock:
            fd, self._file = self._file, -1
            if fd >= 0:
                os.close(fd)

    def __del__(self) -> None:
        self.close()
