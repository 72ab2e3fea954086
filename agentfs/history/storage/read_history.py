"""A persistent read tracker, which writes to the database of a state directory what was read in full.

On a full disk it keeps working, so a call that only reads never fails because of it. Files whose records are
lost count as unread, which is safe: `write` asks for a read.
"""

import json
import time
from collections.abc import Generator, Iterable
from contextlib import contextmanager

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
from agentfs.shown.read_tracker import Key, ReadRecord, ReadTracker

_RETRY_SECONDS = 5.0  # before the next write to a full disk


class PersistentReadTracker(ReadTracker):
    """The read tracker of a workspace with a state directory.

    After a restart it knows which revisions were read in full, but neither texts nor ids of lines.

    Attributes:
        damage: Why the stored read history could not be used; "" if it could.
    """

    def __init__(self, database: Database) -> None:
        """Load the stored read history, or start a new one; raises FileIOError (io) if both fail."""
        super().__init__()
        self._first_generation = 0  # the number of earlier processes
        self.damage = ""
        self._database = database
        self._unwritten: dict[Key, None] = {}
        self._must_rewrite = False  # the next write must replace all rows
        self._is_counted = False  # True if the database counts this process
        self._retry_at = 0.0  # earliest time for the next write after a failed one
        try:
            self._restore()
        except Damage as damage:
            for path in [*self._files]:
                self._drop_file(path)
            self.damage, self._must_rewrite = str(damage), True
            self._write()
        self._unwritten.clear()

    def forget(self) -> None:
        """Forget everything, also on the disk; raises FileIOError (io) if that fails."""
        super().forget()
        with self._lock:
            self._must_rewrite = True
            self._database.truncate_log()  # deleting needs disk space, which this may free
            self._write()

    def close(self) -> None:
        """Write the records that could not be written before."""
        with self._lock:
            self._try_to_write()

    @contextmanager
    def _updating(self) -> Generator[None]:
        with super()._updating():
            yield
            if time.monotonic() > self._retry_at:
                self._try_to_write()

    def _changed(self, path: str, revision: str) -> None:
        if not self._must_rewrite:
            self._unwritten.pop((path, revision), None)  # the last used goes to the end
            self._unwritten[path, revision] = None

    def _try_to_write(self) -> None:
        if self._unwritten or self._must_rewrite:
            try:
                self._write()
            except AgentFSError:
                self._unwritten.clear()
                self._must_rewrite = True
                self._retry_at = time.monotonic() + _RETRY_SECONDS

    def _write(self) -> None:
        """Write the records of changed revisions in one transaction."""
        statements: list[Statement] = []
        if not self._is_counted:
            statements.append(put_meta("processes", self._first_generation + 1))
        keys: Iterable[Key] = self._unwritten
        if self._must_rewrite:
            statements.append(("DELETE FROM reads", ()))
            keys = [(path, revision) for path, versions in self._files.items() for revision in versions]
        for path, revision in keys:
            key = (to_bytes(path), revision)
            record = self._get(path, revision)
            if record is not None and record.whole:
                row = (*key, stored_json(record.whole))
                insert = "INSERT OR REPLACE INTO reads (path, revision, record, checksum) VALUES (?, ?, ?, ?)"
                statements.append((insert, (*row, checksum(*row))))
            elif not self._must_rewrite:
                statements.append(("DELETE FROM reads WHERE path = ? AND revision = ?", key))
        self._database.write(statements)
        self._is_counted = True
        self._unwritten.clear()
        self._must_rewrite = False

    def _restore(self) -> None:
        query = "SELECT path, revision, record, checksum FROM reads ORDER BY number"
        try:
            (earlier,) = self._database.read("SELECT value FROM meta WHERE key = 'processes'")
            # An id of an earlier process names no line, because each process has its own salt.
            self._generation = self._first_generation = sum(int(json.loads(value)) for (value,) in earlier)
            (rows,) = self._database.read_checked(("reads",), query)
            for *row, check in rows:
                if check != checksum(*row):
                    raise Damage("a row of the read history has a wrong checksum")
                path, revision, whole = from_bytes(row[0]), row[1], json.loads(row[2])
                self._put(path, ReadRecord(revision, whole=whole, is_read=whole))
        except (ValueError, TypeError, AttributeError):
            raise Damage("a row has a form that no read history writes") from None
