"""The contents that a journal needs, in its file: each once, by its hash, before the step that names it."""

import zlib
from collections.abc import Mapping

from agentfs.errors import FileIOError
from agentfs.fs import digest_of
from agentfs.fs.log_file import LogFile
from agentfs.journal import Content, Store
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

    @property
    def bytes_on_disk(self) -> int:
        """Bytes of the file."""
        return self._log.size

    def know(self, places: Mapping[str, tuple[int, int]]) -> None:
        """Learn where the contents are that steps name.

        Args:
            places: The start and size of what holds each, by its hash.
        """
        for digest, content in list(self._contents.items()):
            content.place = places[digest]

    def read(self, content: Content) -> bytes:
        """Return the bytes of a content.

        Args:
            content: The content.

        Raises:
            FileIOError: io: it is not as it was kept.
        """
        payload = self._log.read(*content.place)
        try:
            data = payload[DIGEST_BYTES + 1 :]
            data = zlib.decompress(data) if payload[DIGEST_BYTES : DIGEST_BYTES + 1] == b"z" else data
        except zlib.error:
            data = b""
        if digest_of(data) != content.digest:
            raise FileIOError(
                "A content that the journal kept is damaged in the state directory; nothing was done.",
                hint="Undo fewer steps, or edit the file.",
                details={"digest": content.digest},
            )
        return data

    def close(self) -> None:
        """Let go of the file."""
        super().close()
        self._log.close()

    def _put(self, content: Content, data: bytes) -> None:
        packed = zlib.compress(data, 1) if len(data) > _SMALL else data
        mark = b"z" if len(packed) < len(data) else b"-"
        payload = bytes.fromhex(content.digest) + mark + (packed if mark == b"z" else data)
        # Not brought to the disk yet: the step that names it follows, and both go together.
        start = self._log.append(record(CONTENT, payload))
        content.place = (start + HEAD_BYTES, len(payload))
