"""A read tracker that persists: everything that it comes to record is written to a database.

It is written as far as there is room for it. What is missing counts as unread, which makes `write` ask for a
read: the safe side. So no call that only reads ever fails for it.
"""

import json
import time
from collections.abc import Sequence
from typing import Any

from agentfs.errors import AgentFSError
from agentfs.history.database import Damage, Database, Statement, checksum
from agentfs.line_ranges import ReadRecord
from agentfs.read_tracker import ReadTracker

_RETRY_SECONDS = 5.0  # until a full disk is tried again
_TABLES = ("reads", "texts", "line_ids", "latest_ids")
_READ_HISTORY = (
    *(f"PRAGMA quick_check({table})" for table in _TABLES),
    "SELECT path, revision, number, text, checksum FROM texts ORDER BY number",
    "SELECT path, revision, number, record, checksum FROM reads ORDER BY number",
    "SELECT path, revision, number, ids, checksum FROM line_ids ORDER BY number",
    "SELECT path, revision, checksum FROM latest_ids",
    "SELECT value FROM meta WHERE key = 'generation'",
)
_CLEAR: list[Statement] = [(f"DELETE FROM {table}", ()) for table in _TABLES]  # noqa: S608 - constants

Key = tuple[str, str]


class PersistentReadTracker(ReadTracker):
    """The read tracker of a workspace with a state directory."""

    def __init__(self, database: Database) -> None:
        super().__init__()
        self._database: Database | None = None
        self._changes: list[Statement] = []  # not written yet
        self._number = 0
        self._written_generation = 0
        self._behind_since: float | None = None
        self._restore(database)
        self._written_generation = self._generation
        self._changes.clear()
        self._database = database

    def forget(self) -> None:
        """Forget everything, on the disk too; raises FileIOError (io) where that fails."""
        super().forget()
        with self._lock:
            self._changes.clear()
            if self._database is not None:
                self._behind_since = time.monotonic()  # in case that it fails
                self._database.truncate_log()  # which may make the room to delete
                self._database.write(self._all())
                self._database.truncate_log()
                self._behind_since = None
                self._written_generation = self._generation

    def close(self) -> None:
        """Write what could not be written before, if there is room by now."""
        with self._lock:
            if self._behind_since is not None:
                self._rewrite()
            self._database = None

    def _keep(self, real_path: str, version: ReadRecord, text: str | None) -> None:
        oldest_file = next(iter(self._files), real_path)
        oldest_version = next(iter(self._files.get(real_path, ())), version.revision)
        super()._keep(real_path, version, text)
        self._changes.append(self._read_row(real_path, version))
        if oldest_file not in self._files:
            self._changes.append(("DELETE FROM reads WHERE path = ?", (_encoded(oldest_file),)))
        if oldest_version not in self._files[real_path]:
            values = (_encoded(real_path), oldest_version)
            self._changes.append(("DELETE FROM reads WHERE path = ? AND revision = ?", values))
        self._write()

    def _keep_text(self, key: Key, text: str) -> None:
        known = key in self._texts
        super()._keep_text(key, text)
        if not known and key in self._texts:
            self._changes.append(self._row("texts", key, text.encode("utf-8", "surrogatepass")))

    def _keep_ids(self, key: Key, text: str, ids: Sequence[str]) -> None:
        super()._keep_ids(key, text, ids)
        if key in self._ids:
            self._changes.append(self._row("line_ids", key, self._ids[key].encode()))
        self._write()

    def _drop_text(self, key: Key) -> None:
        super()._drop_text(key)
        values = (_encoded(key[0]), key[1])
        for table in ("texts", "line_ids"):
            self._changes.append((f"DELETE FROM {table} WHERE path = ? AND revision = ?", values))  # noqa: S608 - constants

    def _give(self, real_path: str, revision: str | None) -> None:
        before = self._given.get(real_path)
        super()._give(real_path, revision)
        if revision != before:
            self._changes.append(_latest_row(real_path, revision))
            self._write()

    def _restore(self, database: Database) -> None:
        *checks, texts, reads, line_ids, latest, generation = database.read(*_READ_HISTORY)
        for result, *_ in (row for rows in checks for row in rows):
            if result != "ok":
                raise Damage(str(result))
        try:
            for path, revision, number, text, check in texts:
                _check(check, path, revision, number, text)
                super()._keep_text((_decoded(path), revision), text.decode("utf-8", "surrogatepass"))
                self._number = max(self._number, number)
            for path, revision, number, record, check in reads:
                _check(check, path, revision, number, record)
                ranges, total, whole = json.loads(record)
                version = ReadRecord(revision, tuple((first, last) for first, last in ranges), total, whole)
                super()._keep(_decoded(path), version, self._texts.get((_decoded(path), revision)))
                self._number = max(self._number, number)
            for path, revision, number, ids, check in line_ids:
                _check(check, path, revision, number, ids)
                key = (_decoded(path), revision)
                if key in self._texts:
                    super()._keep_ids(key, self._texts[key], ids.decode().split())
                self._number = max(self._number, number)
            for path, revision, check in latest:
                _check(check, path, revision)
                if (_decoded(path), revision) in self._ids:
                    super()._give(_decoded(path), revision)
            self._generation = max(self._generation, *(int(json.loads(value)) for (value,) in generation), 0)
        except (ValueError, TypeError, AttributeError):
            raise Damage("a row holds what no read history writes") from None

    def _write(self) -> None:
        """Write the changes, as one transaction."""
        changes, self._changes = self._changes, []
        if self._database is None or not changes:
            return
        if self._behind_since is not None:
            if time.monotonic() - self._behind_since > _RETRY_SECONDS:
                self._rewrite()
            return
        if self._generation != self._written_generation:
            changes.append(self._generation_row())
        try:
            self._database.write(changes)
        except AgentFSError:
            self._behind_since = time.monotonic()
        else:
            self._written_generation = self._generation

    def _rewrite(self) -> None:
        if self._database is None:
            return
        try:
            self._database.write(self._all())
        except AgentFSError:
            self._behind_since = time.monotonic()
        else:
            self._behind_since = None
            self._written_generation = self._generation

    def _all(self) -> list[Statement]:
        """Return what writes everything anew."""
        return [
            *_CLEAR,
            self._generation_row(),
            *(
                self._row("texts", key, text.encode("utf-8", "surrogatepass"))
                for key, text in self._texts.items()
            ),
            *(
                self._row("line_ids", (path, revision), self._ids[path, revision].encode())
                for path, revisions in self._named.items()
                for revision in revisions
            ),
            *(_latest_row(path, revision) for path, revision in self._given.items()),
            *(
                self._read_row(path, version)
                for path, versions in self._files.items()
                for version in versions.values()
            ),
        ]

    def _read_row(self, path: str, version: ReadRecord) -> Statement:
        record = json.dumps([version.ranges, version.total, version.whole], separators=(",", ":")).encode()
        return self._row("reads", (path, version.revision), record)

    def _row(self, table: str, key: Key, data: bytes) -> Statement:
        self._number += 1
        path = _encoded(key[0])
        check = checksum(path, key[1], self._number, data)
        sql = f"INSERT OR REPLACE INTO {table} VALUES (?, ?, ?, ?, ?)"  # noqa: S608 - constants
        return sql, (path, key[1], self._number, data, check)

    def _generation_row(self) -> Statement:
        data = str(self._generation).encode()
        values = ("generation", data, checksum("generation", data))
        return "INSERT OR REPLACE INTO meta VALUES (?, ?, ?)", values


def clear(database: Database) -> None:
    """Delete the read history."""
    database.write(_CLEAR)


def _latest_row(real_path: str, revision: str | None) -> Statement:
    path = _encoded(real_path)
    if revision is None:
        return "DELETE FROM latest_ids WHERE path = ?", (path,)
    return "INSERT OR REPLACE INTO latest_ids VALUES (?, ?, ?)", (path, revision, checksum(path, revision))


def _check(check: Any, *values: Any) -> None:
    if check != checksum(*values):
        raise Damage("a row of the read history is not as it was written")


def _encoded(path: str) -> bytes:
    return path.encode("utf-8", "surrogatepass")


def _decoded(path: bytes) -> str:
    return path.decode("utf-8", "surrogatepass")
