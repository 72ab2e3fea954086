"""The contents that a journal needs, in its file: each once, by its hash, before the step that names it."""

import zlib
from collections.abc import Mapping
from threading import Lock

from agentfs.disk import digest_of
from agentfs.disk.log_file import LogFile
from agentfs.errors import InputOutputError
from agentfs.journal import Store
from agentfs.state.records import HEAD_BYTES, record

CONTENT = 2
_SMALL = 512
DIGEST_BYTES = 16


class KeptContents(Store):
    """Contents in a file, none of them in memory. Thread-safe.

    Args:
        log: The file.
    """

    def __init__(self, log: LogFile) -> None:
        super().__init__()
        self._log = log
        self._adding = Lock()

    @property
    def bytes_on_disk(self) -> int:
        """Bytes of the file."""
        return self._log.size

    def know(self, places: Mapping[str, tuple[int, int]]) -> None:
        """Learn which contents are there already.

        Args:
            places: The start and size of what holds each, by its hash.
        """
        self._places = dict(places)

    def get(self, digest: str) -> bytes:
        """Return a content that was kept.

        Args:
            digest: Its hash.

        Raises:
            InputOutputError: io: it is not as it was kept.
        """
        payload = self._log.read(*self._places[digest])
        try:
            data = payload[DIGEST_BYTES + 1 :]
            data = zlib.decompress(data) if payload[DIGEST_BYTES : DIGEST_BYTES + 1] == b"z" else data
        except zlib.error:
            data = b""
        if digest_of(data) != digest:
            raise InputOutputError(
                "A content that the journal kept is damaged in the state directory; nothing was done.",
                hint="Undo fewer steps, or edit the file.",
                details={"digest": digest},
            )
        return data

    def close(self) -> None:
        """Let go of the file."""
        super().close()
        self._log.close()

    def _put(self, digest: str, data: bytes) -> None:
        packed = zlib.compress(data, 1) if len(data) > _SMALL else data
        mark = b"z" if len(packed) < len(data) else b"-"
        payload = bytes.fromhex(digest) + mark + (packed if mark == b"z" else data)
        with self._adding:
            if digest in self._places:
                return
            # Not brought to the disk yet: the step that names it follows, and both go together.
            start = self._log.append(record(CONTENT, payload))
            self._places[digest] = (start + HEAD_BYTES, len(payload))
