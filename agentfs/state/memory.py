"""What was shown, kept in a file: each thing that comes to be remembered is written at its end.

It is written as far as there is room for it. What is missing counts as never shown, which makes `write` ask
for a read: the safe side. So nothing that only looks ever fails for it.
"""

import json
import time
from collections.abc import Iterator, Sequence
from typing import Any

from agentfs.errors import AgentFSError
from agentfs.fs.log_file import LogFile
from agentfs.line_ranges import ReadRecord
from agentfs.read_tracker import ReadTracker
from agentfs.state.records import Damage, Record, record, records

MEMORY_HEADER = b"agentfs shown 1"
_HEADER, _TEXT, _VERSION, _NAMES, _GENERATION, _GIVEN = 1, 2, 3, 4, 5, 6
_SLACK = 4 * 1024 * 1024
_PAUSE = 5.0  # seconds until a full disk is tried again

Key = tuple[str, str]


class KeptShown(ReadTracker):
    """The memory of one workspace, which outlives its process.

    Args:
        log: The file.

    Raises:
        Damage: The file does not fit together.
    """

    def __init__(self, log: LogFile) -> None:
        super().__init__()
        self._log: LogFile | None = None
        self._written_generation = 0
        self._behind_since: float | None = None
        end = 0
        for found in records(log.read, log.size):
            if (found.place == 0) != (found.kind == _HEADER):
                raise Damage(found.place, "it does not begin as it should")
            try:
                self._recall(found)
            except (ValueError, TypeError, KeyError):
                raise Damage(found.place, "a record says what nobody writes there") from None
            end = found.end
        if end < log.size:
            log.cut(end)
        self._written_generation = self._generation
        self._log = log
        if not end:
            self._write(record(_HEADER, MEMORY_HEADER))

    def forget(self) -> None:
        """Forget everything, on the disk too."""
        super().forget()
        with self._lock:
            self._rewrite()

    def close(self) -> None:
        """Write what could not be written before, if there is room by now, and let go of the file."""
        with self._lock:
            if self._log is not None:
                if self._behind_since is not None:
                    self._rewrite()
                self._log.close()
                self._log = None

    def _keep(self, real_path: str, version: ReadRecord, text: str | None) -> None:
        key = (real_path, version.revision)
        new = text is not None and key not in self._texts
        super()._keep(real_path, version, text)
        if self._log is not None:
            held = text is not None and key in self._texts
            content = record(_VERSION, _version_payload(real_path, version, held=held))
            self._write((record(_TEXT, _payload(key, text or "")) if new and held else b"") + content)

    def _keep_ids(self, key: Key, text: str, ids: Sequence[str]) -> None:
        new = key not in self._texts
        super()._keep_ids(key, text, ids)
        if self._log is not None and key in self._ids:
            content = record(_NAMES, _payload(key, self._ids[key]))
            self._write((record(_TEXT, _payload(key, text)) if new else b"") + content)

    def _give(self, real_path: str, revision: str | None) -> None:
        before = self._given.get(real_path)
        super()._give(real_path, revision)
        if revision != before:
            self._write(record(_GIVEN, _payload((real_path, revision or ""), "")))

    def _recall(self, found: Record) -> None:
        payload = found.payload
        if found.kind == _HEADER:
            if payload != MEMORY_HEADER:
                raise ValueError
        elif found.kind == _TEXT:
            key, text = _parted(payload)
            super()._keep_text(key, text)
        elif found.kind == _VERSION:
            path, revision, ranges, total, whole, held = json.loads(payload)
            version = ReadRecord(revision, tuple((first, last) for first, last in ranges), total, whole)
            super()._keep(path, version, self._texts.get((path, revision)) if held else None)
        elif found.kind == _NAMES:
            key, names = _parted(payload)
            if key in self._texts and key not in self._ids:
                super()._keep_ids(key, self._texts[key], names.split())
        elif found.kind == _GIVEN:
            key, _ = _parted(payload)
            super()._give(key[0], key[1] if key in self._ids else None)
        elif found.kind == _GENERATION:
            self._generation = max(self._generation, int(payload))
        else:
            raise ValueError

    def _write(self, content: bytes) -> None:
        if self._log is None:
            return
        if self._behind_since is not None:
            if time.monotonic() - self._behind_since > _PAUSE:
                self._rewrite()
            return
        if self._generation != self._written_generation:
            content += record(_GENERATION, str(self._generation).encode())
        try:
            self._log.append(content)
        except AgentFSError:
            self._behind_since = time.monotonic()
            return
        self._written_generation = self._generation
        if self._log.size > 2 * self._text_bytes + _SLACK:
            self._rewrite()

    def _rewrite(self) -> None:
        if self._log is None:
            return
        try:
            if self._files or self._texts:
                self._log.replace(self._all())
            else:  # which takes no room, however full the disk is
                self._log.cut(0)
                self._log.append(b"".join(self._all()), sync=True)
        except AgentFSError:
            self._behind_since = time.monotonic()
        else:
            self._behind_since = None
            self._written_generation = self._generation

    def _all(self) -> Iterator[bytes]:
        yield record(_HEADER, MEMORY_HEADER)
        yield record(_GENERATION, str(self._generation).encode())
        for key, text in self._texts.items():
            yield record(_TEXT, _payload(key, text))
        for path, revisions in self._named.items():
            for revision in revisions:
                yield record(_NAMES, _payload((path, revision), self._ids[path, revision]))
        for key in self._given.items():
            yield record(_GIVEN, _payload(key, ""))
        for path, versions in self._files.items():
            for version in versions.values():
                yield record(_VERSION, _version_payload(path, version, held=False))


def _version_payload(path: str, version: ReadRecord, *, held: bool) -> bytes:
    plain = [path, version.revision, version.ranges, version.total, version.whole, held]
    return json.dumps(plain, separators=(",", ":")).encode()


def _payload(key: Key, text: str) -> bytes:
    return json.dumps(key).encode() + b"\n" + text.encode("utf-8", "surrogatepass")


def _parted(payload: bytes) -> tuple[Key, str]:
    head, _, text = payload.partition(b"\n")
    plain: Any = json.loads(head)
    path, revision = plain
    return (path, revision), text.decode("utf-8", "surrogatepass")
