"""A read tracker that persists: everything that it comes to record is written to a database.

It is written as far as there is disk space. What is missing counts as unread, which makes `write` ask for a
read: the safe side. So no call that only reads ever fails for it.
"""

import json
import time
from collections.abc import Generator
from contextlib import contextmanager

from agentfs.errors import AgentFSError
from agentfs.history.database import (
    Damage,
    Database,
    Statement,
    checksum,
    from_bytes,
    put_meta,
    to_bytes,
    to_json,
)
from agentfs.line_ranges import ReadRecord
from agentfs.read_tracker import ReadTracker, Table

_RETRY_SECONDS = 5.0  # until a full disk is tried again
_TABLES: tuple[Table, ...] = ("reads", "texts", "line_ids", "latest_ids")
_READ_HISTORY = (
    "SELECT path, revision, number, text, checksum FROM texts ORDER BY number",
    "SELECT path, revision, number, record, checksum FROM reads ORDER BY number",
    "SELECT path, revision, number, ids, checksum FROM line_ids ORDER BY number",
    "SELECT path, revision, checksum FROM latest_ids",
    "SELECT value FROM meta WHERE key = 'generation'",
)
_CLEAR: list[Statement] = [(f"DELETE FROM {table}", ()) for table in _TABLES]  # noqa: S608 - constants


class PersistentReadTracker(ReadTracker):
    """The read tracker of a workspace with a state directory."""

    def __init__(self, database: Database) -> None:
        super().__init__()
        self._database: Database | None = None
        self._unwritten: dict[tuple[Table, str, str], None] = {}
        self._number = 0
        self._behind_since: float | None = None
        self._restore(database)
        self._written_generation = self._cache.generation
        self._unwritten.clear()
        self._database = database

    def forget(self) -> None:
        """Forget everything, on the disk too; raises FileIOError (io) where that fails."""
        super().forget()
        with self._lock:
            self._unwritten.clear()
            if self._database is not None:
                self._behind_since = time.monotonic()  # in case that it fails
                self._database.truncate_log()  # which may free the space to delete
                self._database.write(self._all())
                self._database.truncate_log()
                self._behind_since = None
                self._written_generation = self._cache.generation

    def close(self) -> None:
        """Write what could not be written before, if there is space by now."""
        with self._lock:
            if self._behind_since is not None:
                self._try_to_write(self._all())
            self._database = None

    @contextmanager
    def _updating(self) -> Generator[None]:
        with super()._updating():
            yield
            self._write()

    def _changed(self, table: Table, path: str, revision: str) -> None:
        self._unwritten.pop((table, path, revision), None)
        self._unwritten[table, path, revision] = None

    def _set_latest_ids(self, real_path: str, revision: str | None) -> None:
        if revision != self._cache.latest_ids.get(real_path):
            super()._set_latest_ids(real_path, revision)

    def _restore(self, database: Database) -> None:
        texts, reads, line_ids, latest, generation = database.read_checked(_TABLES, *_READ_HISTORY)
        try:
            for *values, check in (*texts, *reads, *line_ids, *latest):
                if check != checksum(*values):
                    raise Damage("a row of the read history is not as it was written")
            self._number = max((number for _, _, number, *_ in (*texts, *reads, *line_ids)), default=0)
            for path, revision, _, text, _ in texts:
                self._add_text((from_bytes(path), revision), from_bytes(text))
            for path, revision, _, record, _ in reads:
                ranges, total, whole = json.loads(record)
                version = ReadRecord(revision, tuple((first, last) for first, last in ranges), total, whole)
                self._keep(from_bytes(path), version, self._cache.texts.get((from_bytes(path), revision)))
            for path, revision, _, ids, _ in line_ids:
                key = (from_bytes(path), revision)
                if key in self._cache.texts:
                    self._add_ids(key, self._cache.texts[key], ids.decode().split())
            for path, revision, _ in latest:
                if self._cache.ids_of((from_bytes(path), revision)) is not None:
                    self._set_latest_ids(from_bytes(path), revision)
            self._cache.generation = max(
                self._cache.generation, *(int(json.loads(value)) for (value,) in generation), 0
            )
        except (ValueError, TypeError, AttributeError):
            raise Damage("a row holds what no read history writes") from None

    def _write(self) -> None:
        """Write what has changed, as one transaction."""
        if self._database is None or not self._unwritten:
            return
        if self._behind_since is not None:
            self._unwritten.clear()
            if time.monotonic() - self._behind_since > _RETRY_SECONDS:
                self._try_to_write(self._all())
            return
        changes = [self._statement(*entry) for entry in self._unwritten]
        self._unwritten.clear()
        if self._cache.generation != self._written_generation:
            changes.append(put_meta("generation", self._cache.generation))
        self._try_to_write(changes)

    def _try_to_write(self, statements: list[Statement]) -> None:
        if self._database is None:
            return
        try:
            self._database.write(statements)
        except AgentFSError:
            self._behind_since = time.monotonic()
        else:
            self._behind_since = None
            self._written_generation = self._cache.generation

    def _all(self) -> list[Statement]:
        """Return what writes everything anew."""
        entries: list[tuple[Table, str, str]] = [
            *(("texts", *key) for key in self._cache.texts),
            *(("line_ids", path, revision) for path, ids in self._cache.ids.items() for revision in ids),
            *(("latest_ids", path, revision) for path, revision in self._cache.latest_ids.items()),
            *(("reads", path, revision) for path, records in self._records.items() for revision in records),
        ]
        generation = put_meta("generation", self._cache.generation)
        return [*_CLEAR, generation, *(self._statement(*entry) for entry in entries)]

    def _statement(self, table: Table, path: str, revision: str) -> Statement:
        """Return what writes an entry as it is now, or deletes it where there is none."""
        key, raw_path = (path, revision), to_bytes(path)
        if table == "latest_ids":
            latest = self._cache.latest_ids.get(path)
            if latest is None:
                return "DELETE FROM latest_ids WHERE path = ?", (raw_path,)
            values = (raw_path, latest, checksum(raw_path, latest))
            return "INSERT OR REPLACE INTO latest_ids VALUES (?, ?, ?)", values
        data: bytes | None = None
        if table == "reads" and (record := self._record(path, revision)) is not None:
            data = to_json([record.ranges, record.total, record.whole])
        elif table == "texts" and key in self._cache.texts:
            data = to_bytes(self._cache.texts[key])
        elif table == "line_ids" and (ids := self._cache.ids_of(key)) is not None:
            data = ids.encode()
        if data is None:
            return f"DELETE FROM {table} WHERE path = ? AND revision = ?", (raw_path, revision)  # noqa: S608 - constants
        self._number += 1
        row = (raw_path, revision, self._number, data, checksum(raw_path, revision, self._number, data))
        return f"INSERT OR REPLACE INTO {table} VALUES (?, ?, ?, ?, ?)", row  # noqa: S608 - constants


def clear(database: Database) -> None:
    """Delete the read history."""
    database.write(_CLEAR)
