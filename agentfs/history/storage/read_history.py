"""A persistent read tracker, which writes its records to the database of a state directory.

On a full disk it keeps working, so a call that only reads never fails because of it. Files whose records are
lost count as unread, which is safe: `write` asks for a read.
"""

import json
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from agentfs.errors import AgentFSError
from agentfs.history.storage.database import (
    Damage,
    Database,
    Statement,
    checksum,
    from_bytes,
    put_meta,
    stored_json,
    to_bytes,
)
from agentfs.shown.read_tracker import Key, NamedEncoding, ReadRecord, ReadTracker

_RETRY_SECONDS = 5.0  # before the next write to a full disk
_MOST_UNWRITTEN = 10_000  # versions; if more are unwritten, the tables are written again in full
_READ_HISTORY = """
    SELECT path, revision, number, record, reads.checksum, text, texts.checksum
    FROM reads LEFT JOIN texts USING (path, revision) ORDER BY number
"""
_CLEAR: list[Statement] = [("DELETE FROM reads", ()), ("DELETE FROM texts", ())]
_PUT_READ = "INSERT OR REPLACE INTO reads VALUES (?, ?, ?, ?, ?)"
_PUT_TEXT = "INSERT OR REPLACE INTO texts VALUES (?, ?, ?, ?)"
_DROP_READ = "DELETE FROM reads WHERE path = ? AND revision = ?"
_DROP_TEXT = "DELETE FROM texts WHERE path = ? AND revision = ?"


class PersistentReadTracker(ReadTracker):
    """The read tracker of a workspace with a state directory.

    `damage` says why the stored read history could not be used; "" if it could.
    """

    def __init__(self, database: Database) -> None:
        """Load the stored read history, or start a new one; raises FileIOError (io) if both fail."""
        super().__init__()
        self.damage = ""
        self._database: Database | None = None
        self._unwritten: dict[Key, None] = {}
        self._must_clear = False  # the next write must first empty the tables
        self._retry_at = 0.0  # earliest time for the next write after a failed one
        self._stored: set[Key] = set()  # keys of the texts in the database
        self._number = 0
        try:
            self._restore(database)
        except Damage as damage:
            generation = self._generation  # so that no line id is used for another line
            super().__init__()
            self._generation = generation
            self.damage, self._must_clear = str(damage), True
        self._written_generation = self._generation
        self._unwritten.clear()
        if self._must_clear:
            self._write(database)
        self._database = database

    def forget(self) -> None:
        """Forget everything, also on the disk; raises FileIOError (io) if that fails."""
        super().forget()
        with self._lock:
            self._unwritten.clear()
            if self._database is not None:
                self._must_clear = True
                self._database.truncate_log()  # deleting needs disk space, which this may free
                self._write(self._database)
                self._database.truncate_log()

    def close(self) -> None:
        """Write the records that could not be written before."""
        with self._lock:
            self._try_to_write()
            self._database = None

    @contextmanager
    def _updating(self) -> Generator[None]:
        with super()._updating():
            yield
            if time.monotonic() > self._retry_at:
                self._try_to_write()

    def _changed(self, path: str, revision: str) -> None:
        self._unwritten.pop((path, revision), None)
        self._unwritten[path, revision] = None
        if self._database is not None and len(self._unwritten) > _MOST_UNWRITTEN:
            self._unwritten.clear()
            self._must_clear = True

    def _restore(self, database: Database) -> None:
        (generation,) = database.read("SELECT value FROM meta WHERE key = 'generation'")
        try:
            self._generation = max([int(json.loads(value)) for (value,) in generation], default=0)
            (rows,) = database.read_checked(("reads", "texts"), _READ_HISTORY)
            for raw_path, revision, number, record, check, raw_text, text_check in rows:
                if check != checksum(raw_path, revision, number, record) or (
                    raw_text is not None and text_check != checksum(raw_path, revision, raw_text)
                ):
                    raise Damage("a row of the read history has a wrong checksum")
                self._number = number
                path, text = from_bytes(raw_path), None
                if raw_text is not None:
                    text = from_bytes(raw_text)
                    self._stored.add((path, revision))
                self._restore_version(path, revision, json.loads(record), text)
        except (ValueError, TypeError, KeyError, AttributeError):
            raise Damage("a row has a form that no read history writes") from None

    def _restore_version(self, path: str, revision: str, plain: dict[str, Any], text: str | None) -> None:
        record = ReadRecord(revision, is_read=False)
        if "ranges" in plain:
            ranges = tuple((first, last) for first, last in plain["ranges"])
            unit = plain.get("unit", "line")
            record = ReadRecord(revision, ranges, plain["total"], plain["whole"], unit=unit)
        named = plain.get("encoding")
        self._set_encoding(path, None if named is None else NamedEncoding(*named))
        ids = plain.get("ids") if text is not None else None
        self._put(path, record._replace(text=text, ids=ids))
        if ids is not None and plain["latest"]:
            self._set_latest_ids(path, revision)

    def _try_to_write(self) -> None:
        if self._database is not None and (self._unwritten or self._must_clear):
            try:
                self._write(self._database)
            except AgentFSError:
                self._retry_at = time.monotonic() + _RETRY_SECONDS

    def _write(self, database: Database) -> None:
        """Write the records of changed versions in one transaction."""
        statements = [*_CLEAR] if self._must_clear else []
        keys = self._known() if self._must_clear else self._unwritten
        for key in keys:
            path, revision = to_bytes(key[0]), key[1]
            record = self._get(*key)
            if record is not None:
                plain = self._plain(key[0], record)
                self._number += 1
                row = (path, revision, self._number, stored_json(plain))
                statements.append((_PUT_READ, (*row, checksum(*row))))
            else:
                statements.append((_DROP_READ, (path, revision)))
            if record is None or record.text is None:
                statements.append((_DROP_TEXT, (path, revision)))
            elif self._must_clear or key not in self._stored:
                text = to_bytes(record.text)
                statements.append((_PUT_TEXT, (path, revision, text, checksum(path, revision, text))))
        if self._generation != self._written_generation:
            statements.append(put_meta("generation", self._generation))
        database.write(statements)
        if self._must_clear:
            self._stored.clear()
        for key in keys:
            (self._stored.add if key in self._texts else self._stored.discard)(key)
        self._written_generation = self._generation
        self._unwritten.clear()
        self._must_clear = False

    def _known(self) -> list[Key]:
        """Return the keys of all versions in memory, the last used at the end."""
        return [(path, revision) for path, versions in self._files.items() for revision in versions]

    def _plain(self, path: str, record: ReadRecord) -> dict[str, Any]:
        """Return the record and the line ids of a version as JSON values."""
        plain: dict[str, Any] = {}
        if (named := self._encodings.get(path)) is not None:
            plain["encoding"] = named
        if record.is_read:
            plain |= {"ranges": record.ranges, "total": record.total, "whole": record.whole}
            plain |= {"unit": record.unit}
        if record.ids is not None:
            plain |= {"ids": record.ids, "latest": self._latest_ids.get(path) == record.revision}
        return plain
