"""The store of a journal: an SQLite database with typed errors, and contents of files by digest in it."""

import errno
import json
import os
import zlib
from collections.abc import Collection, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import chain, count
from threading import RLock
from typing import Any, TypeVar
from weakref import finalize

from agentfs.base.forks import watch_forks
from agentfs.base.frozen_data import with_values
from agentfs.base.lazy import ctypes, sqlite3
from agentfs.errors import AgentFSError, ClosedError, FileIOError, InvalidArgumentError
from agentfs.fs import Change, FileNode, Node, quote
from agentfs.fs.node import checked_pieces
from agentfs.history.state_directory import FILE, StateDirectory, no_locks

DATABASE_VERSION = 12
_APPLICATION_ID = 0x61677466
_TIMEOUT = 5.0  # seconds to wait for another program that has locked the database
_WAL_BYTES = 4 * 1024 * 1024
_SMALLEST = 512  # bytes of a page
_CHECKSUM = 4  # bytes
# Values of "meta" and payloads are JSON with a checksum.
_SCHEMA = (
    "CREATE TABLE contents (digest BLOB, piece INTEGER, data BLOB, PRIMARY KEY (digest, piece))",
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value BLOB) WITHOUT ROWID",
    "CREATE TABLE steps (number INTEGER PRIMARY KEY, begun INTEGER, payload BLOB)",
)
# SQLite's primary result codes.
_DAMAGED, _BUSY = {11, 26}, {5, 6, 15}
_ERRNO = {13: errno.ENOSPC, 3: errno.EACCES, 8: errno.EACCES, **dict.fromkeys(_BUSY, errno.EAGAIN)}
_MEMORY_BYTES = 8 * 1024 * 1024  # bytes of contents in memory before they are written
_PIECE = 1024 * 1024  # bytes of a content that are in memory at once

Statement = tuple[str, Sequence[Any]]
_N = TypeVar("_N", bound=Node | None)
_ADD = "INSERT OR IGNORE INTO contents VALUES (?, ?, ?)"


class Database:
    """The database of a state directory, or a temporary one for contents if there is no path. Thread-safe.

    The directory holds the lock: without it, the database is only read. A temporary database is opened on
    first use. It lives in memory and in an unnamed file, which disappears when the database is closed.
    """

    def __init__(self, path: str = "", directory: StateDirectory | None = None) -> None:
        self.path = path
        self.temporary = not path
        self._directory = directory
        self._lock = RLock()
        self.is_opening = True  # errors then name the directory, which a model must not see
        self._closed = False
        self._forked = False
        self._deferred: list[Statement] = []
        self._connection: sqlite3.Connection | None = None
        if path:
            try:
                with self._typed_errors():
                    self._open(os.path.join(path, FILE))
            except BaseException:
                self.close()
                raise

    def after_fork(self) -> None:
        """Refuse every use in a forked child: SQLite does not even allow to close a connection there."""
        connection, self._connection = self._connection, None
        self._lock = RLock()
        self._forked = True
        if connection is not None:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))  # prevents the close
            self._finalizer.detach()

    def read(self, *queries: str | Statement) -> list[list[Any]]:
        """Return the rows of each query, all from one transaction."""
        statements = [(query, ()) if isinstance(query, str) else query for query in queries]
        with self._lock, self._typed_errors():
            connection = self._usable()
            connection.execute("BEGIN")
            try:
                return [connection.execute(*statement).fetchall() for statement in statements]
            finally:
                _roll_back(connection)

    def defer(self, statements: Iterable[Statement]) -> None:
        """Add statements to the next transaction; `flush` runs it at the latest."""
        with self._lock:
            self._deferred += statements

    def flush(self) -> None:
        """Run the deferred statements; if that fails, the next transaction includes them."""
        if self._deferred:
            with suppress(AgentFSError):
                self.write(())

    def write(self, statements: Iterable[Statement]) -> None:
        """Run the deferred statements and these in one transaction; raises FileIOError (io)."""
        with self._lock, self._typed_errors():
            connection = self._usable()
            try:
                connection.execute("BEGIN IMMEDIATE")
                for statement in chain(self._deferred, statements):
                    connection.execute(*statement)
                connection.execute("COMMIT")
                self._deferred.clear()
            except BaseException:
                _roll_back(connection)
                raise

    def close(self) -> None:
        """Close the database; calling it again does nothing."""
        self._closed = True
        if self._connection is not None:
            self._connection = None
            self._finalizer()

    def damaged(self, what: str) -> FileIOError:
        """Return the error for a damaged database."""
        error = self._failed(f"is damaged: {what}")
        if self.is_opening:
            error.hint = "Move the directory away and begin a new one: the files of the workspace stay."
        return error

    def _failed(self, what: str, number: int = errno.EIO) -> FileIOError:
        where = f"The state directory {quote(self.path) if self.is_opening else 'of this workspace'}"
        if self.temporary:
            where = "The temporary file with the history of this workspace"
        return FileIOError(
            f"{where} {what}.",
            hint="Nothing was changed. Ask the user to look at it, or to free space there; then try again.",
            details={"errno": number, "error": what},
        )

    def _usable(self) -> "sqlite3.Connection":
        if self._forked:
            raise FileIOError(
                "The history of this workspace belongs to the process from which this one was forked.",
                hint="Nothing was changed. Open another workspace in this process.",
            )
        if self._directory is not None:
            self._directory.check_usable()
        if self._closed:
            raise ClosedError("The history of this workspace is closed.")
        connection = self._connection
        if connection is None:
            connection = self._connect("")
            self._create(connection, "MEMORY")
        _roll_back(connection)  # an interrupt may have prevented it
        return connection

    def _open(self, file: str) -> None:
        size, log_size = (
            os.path.getsize(name) if os.path.exists(name) else 0 for name in (file, file + "-wal")
        )
        if 0 < size < _SMALLEST or (not size and log_size):  # SQLite would treat it as a new database
            raise self.damaged("its content is missing")
        mode = "ro" if self._directory is None else "rw"
        name = f"file:{''.join(f'%{byte:02x}' for byte in os.fsencode(file))}?mode={mode}"
        connection = self._connect(name)
        self._check_identity(connection)
        if self._directory is not None:
            connection.execute("PRAGMA synchronous=NORMAL")
            connection.execute(f"PRAGMA journal_size_limit={_WAL_BYTES}")

    def _connect(self, name: str) -> "sqlite3.Connection":
        self._connection = connection = sqlite3.connect(
            name, uri=bool(name), isolation_level=None, check_same_thread=False, timeout=_TIMEOUT
        )
        # Without `replace`, the error for a damaged text would quote the text.
        connection.text_factory = partial(str, encoding="utf-8", errors="replace")
        # A finalizer in Python can swallow an interrupt, so only an open database has one.
        self._finalizer = finalize(self, _close, connection)
        watch_forks(self)
        return connection

    def _check_identity(self, connection: Any) -> None:
        """Check that the database is ours and of this version; create the tables of a new one."""
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if (application, version, tables) == (0, 0, 0) and self._directory is not None:
            self._create(connection, "WAL")
        elif (application, version) != (_APPLICATION_ID, DATABASE_VERSION):
            raise InvalidArgumentError(
                f"The file {quote(FILE)} in the state directory {quote(self.path)} is not of this version of"
                f" agentfs, or belongs to another program: it has version {version}, not {DATABASE_VERSION}.",
                hint="Use the program that wrote it, or give a directory that does not exist yet.",
                details={"parameter": "state", "path": self.path, "version": version},
            )

    def _create(self, connection: "sqlite3.Connection", journal_mode: str) -> None:
        connection.execute("PRAGMA auto_vacuum=FULL")
        (mode,) = connection.execute(f"PRAGMA journal_mode={journal_mode}").fetchone()
        if mode.upper() != journal_mode:
            raise no_locks(self.path, f"SQLite cannot use a write-ahead log there, only {mode!r}")
        connection.execute("BEGIN IMMEDIATE")
        for statement in _SCHEMA:
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id={_APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version={DATABASE_VERSION}")
        connection.execute("COMMIT")

    @contextmanager
    def _typed_errors(self) -> Generator[None]:
        try:
            yield
        except AgentFSError:  # some of its subclasses are also OSErrors
            raise
        except sqlite3.Error as error:
            code = int(getattr(error, "sqlite_errorcode", 0)) & 0xFF
            if code in _DAMAGED:
                raise self.damaged(str(error)) from None
            if code in _BUSY and self.is_opening and self._directory is not None:
                raise no_locks(self.path, f"{error}, though no other workspace uses it") from None
            raise self._failed(f"failed: {error}", _ERRNO.get(code, errno.EIO)) from None
        except OSError as error:
            raise self._failed(f"failed: {error.strerror or error}", error.errno or errno.EIO) from None


def _close(connection: "sqlite3.Connection") -> None:
    with suppress(sqlite3.Error):
        connection.close()


def _roll_back(connection: "sqlite3.Connection") -> None:
    if connection.in_transaction:
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")


def put_meta(key: str, value: Any) -> Statement:
    """Return the statement that writes a row of the table "meta"."""
    return "INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, stored_json(value))


def stored_json(value: Any) -> bytes:
    """Return the stored form of a value, with a checksum, because SQLite has none."""
    data = json.dumps(value, separators=(",", ":")).encode()
    return zlib.crc32(data).to_bytes(_CHECKSUM) + data


def from_stored(stored: bytes) -> Any:
    """Return the value of a stored form; raises ValueError if it is damaged."""
    data = stored[_CHECKSUM:]
    if zlib.crc32(data).to_bytes(_CHECKSUM) != stored[:_CHECKSUM]:
        raise ValueError("The checksum is wrong.")
    return json.loads(data)


class Contents:
    """Keeps contents until `collect` drops those that are not needed. Thread-safe.

    Without the database of a state directory, many contents go to a temporary one.
    """

    def __init__(self, database: Database | None = None) -> None:
        self.database = database or Database()
        self._lock = RLock()
        self._unwritten: dict[str, Iterable[bytes]] = {}  # in pieces
        self._sizes: dict[str, int] = {}  # of all contents, as they are stored, by digest
        if database is not None:
            (rows,) = database.read("SELECT digest, sum(length(data)) FROM contents GROUP BY digest")
            self._sizes = {bytes(digest).hex(): size for digest, size in rows}
        self.total_bytes = sum(self._sizes.values())
        self._memory_bytes = 0

    def keep(self, change: Change) -> Change:
        """Keep the contents of a change, and return the change with contents that load from here."""
        return with_values(change, before=self.keep_node(change.before), after=self.keep_node(change.after))

    def keep_node(self, node: _N) -> _N:
        """Keep the content of a node, and return the node with content that loads from here."""
        if not isinstance(node, FileNode):
            return node
        digest = node.digest
        with self._lock:
            if digest not in self._sizes:
                self._sizes[digest] = node.size
                self.total_bytes += node.size
                self._memory_bytes += node.size
                try:
                    is_large = node.size > _MEMORY_BYTES
                    self._unwritten[digest] = node.pieces() if is_large else (node.load(),)
                    if self._memory_bytes > _MEMORY_BYTES:
                        self.write()
                except BaseException:
                    self._forget(digest)
                    raise
        return with_values(node, pieces=partial(self.read, digest))

    def read(self, digest: str) -> Iterator[bytes]:
        """Yield the pieces of a content; raises FileIOError if it is damaged."""
        if (pieces := self._unwritten.get(digest)) is None:
            pieces = checked_pieces(self._stored_pieces(digest), digest, self._damaged)
        yield from pieces

    def _damaged(self, digest: str) -> FileIOError:
        where = "temporary file" if self.database.temporary else "state directory"
        return FileIOError(
            f"A content of the journal in the {where} is damaged; nothing was done.",
            hint="Undo fewer steps, or edit the file.",
            details={"digest": digest},
        )

    def _stored_pieces(self, digest: str) -> Iterator[bytes]:
        query = "SELECT data FROM contents WHERE digest = ? AND piece = ?"
        with suppress(IndexError, TypeError, ValueError):  # for a damaged or missing piece
            for number in count():
                (rows,) = self.database.read((query, (bytes.fromhex(digest), number)))
                piece = bytes(rows[0][0])
                yield piece
                if len(piece) < _PIECE:
                    return

    def write(self, statements: Sequence[Statement] = ()) -> None:
        """Write the contents in memory, then run the statements, in one transaction."""
        with self._lock:
            rows = (
                (_ADD, (bytes.fromhex(digest), number, piece))
                for digest, pieces in self._unwritten.items()
                for number, piece in enumerate(_in_pieces(pieces))
            )
            self.database.write(chain(rows, statements))
            self._unwritten.clear()
            self._memory_bytes = 0

    def collect(self, needed: Collection[str]) -> None:
        """Drop all contents that are not needed; those on disk with the next transaction."""
        with self._lock:
            for digest in [each for each in self._sizes if each not in needed]:
                if digest not in self._unwritten:
                    drop = "DELETE FROM contents WHERE digest = ?"
                    self.database.defer([(drop, (bytes.fromhex(digest),))])
                self._forget(digest)

    def _forget(self, digest: str) -> None:
        size = self._sizes.pop(digest)
        self.total_bytes -= size
        if self._unwritten.pop(digest, None) is not None:
            self._memory_bytes -= size

    def close(self) -> None:
        """Run the deferred statements, and close the database; a temporary one is deleted."""
        self.database.flush()
        self.database.close()
        self._unwritten.clear()


def _in_pieces(data: Iterable[bytes]) -> Iterator[bytes]:
    """Yield a content in pieces of one size; only the last is shorter, perhaps empty."""
    kept = b""
    for each in data:
        kept += each
        while len(kept) >= _PIECE:
            yield kept[:_PIECE]
            kept = kept[_PIECE:]
    yield kept
