"""`Cache`: the local files of a stored tree, and a database of what the store had when they were equal."""

import os
import re
import time
import zlib
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from threading import Lock
from typing import Any, NamedTuple

from agentfs.base import call_context
from agentfs.base.lazy import sqlite3
from agentfs.errors import AgentFSError, DeadlineExceededError
from agentfs.fs import (
    MAX_NAME_BYTES,
    MAX_PARTS,
    MAX_PATH_BYTES,
    DirEntry,
    Root,
    display_name,
    is_temporary_name,
    revision_of,
)
from agentfs.fs.own_directories import STATE_MARK, OwnDirectory
from agentfs.history.state_directory import FILE, StateDirectory
from agentfs.store.objects import LARGEST_OBJECT, Listed

META = ".agentfs"  # the directory of the state; keys below it are not files of the tree
MERGED_BYTES = 10 * 1024 * 1024  # larger contents are never merged, so their base is not kept
_UNSETTLED = 2_000_000_000  # ns; a file changed so recently may change again with the same times
_TABLES = """
PRAGMA journal_mode = WAL;
PRAGMA synchronous = NORMAL;  -- if the system fails, the last notes are lost: their paths are compared again
PRAGMA temp_store = FILE;
CREATE TABLE IF NOT EXISTS known
    (path TEXT PRIMARY KEY, tag TEXT, size INTEGER, digest TEXT, text BLOB, status TEXT);
CREATE TEMP TABLE listed (path TEXT PRIMARY KEY, tag TEXT, size INTEGER, left_out TEXT) WITHOUT ROWID;
CREATE TEMP TABLE here (path TEXT PRIMARY KEY, size INTEGER, digest TEXT, status TEXT) WITHOUT ROWID;
"""
# The names of tables and columns are constants; values are parameters.
# ruff: noqa: S608
_KNOWN = "path, COALESCE(known.tag, ''), COALESCE(known.size, 0), COALESCE(known.digest, '')"
# The paths that were deleted in the store, changed there, deleted here, or changed here.
GONE = f"SELECT {_KNOWN}, 0 FROM known WHERE path NOT IN (SELECT path FROM listed) ORDER BY path"
CHANGED = f"""SELECT {_KNOWN}, listed.size FROM listed LEFT JOIN known USING (path)
    WHERE left_out = '' AND (known.tag IS NOT listed.tag OR known.size <> listed.size) ORDER BY path"""
REMOVED = f"""SELECT {_KNOWN}, 0 FROM known
    WHERE digest <> '' AND path NOT IN (SELECT path FROM here) ORDER BY path"""
EDITED = f"""SELECT {_KNOWN}, here.size FROM here LEFT JOIN known USING (path)
    WHERE known.digest IS NOT here.digest ORDER BY path"""
_STATUSES = """UPDATE known SET status = here.status FROM here
    WHERE here.path = known.path AND here.digest = known.digest AND here.status <> known.status"""
_CONTROL, _NOT_UTF8 = re.compile(r"[\x00-\x1f\x7f]"), re.compile(r"[\ud800-\udfff]")


class Known(NamedTuple):
    """A path as it was in the store when it was last equal to the file here, or merged with it."""

    path: str
    tag: str = ""  # the version of the object; "" if there was none
    size: int = 0
    digest: str = ""  # of the content; "" if the object was being deleted
    to_move: int = 0  # bytes to fetch or to send now


class Cache:
    """The state of a cache. Lookups and notes are thread-safe.

    The listing of the store and that of the files are temporary tables on the disk, compared by SQL, so that
    the memory does not grow with the tree.
    """

    def __init__(self, state_path: str, database: sqlite3.Connection, seconds: float) -> None:
        self.state_path, self._database = state_path, database
        self._seconds, self._end = seconds, time.monotonic() + seconds
        self._lock = Lock()  # threads of one connection would share its cached statements

    def tag(self, table: str, path: str) -> str:
        """Return the version of an object that is known, or in the last listing; "" for none."""
        return self._found(f"SELECT tag FROM {table} WHERE path = ?", path) or ""

    def note(self, known: Known, data: bytes | None) -> None:
        """Keep what the store has at a path, and the content if it is a text that may be merged later."""
        text = zlib.compress(data, 1) if data is not None and len(data) <= MERGED_BYTES else None
        with self._lock:
            if known.tag:
                values = *known[:4], text
                self._database.execute("INSERT OR REPLACE INTO known VALUES (?, ?, ?, ?, ?, '')", values)
            else:
                self._database.execute("DELETE FROM known WHERE path = ?", (known.path,))

    def text(self, path: str) -> bytes | None:
        """Return the content that was noted last for a path, if it is kept."""
        found = self._found("SELECT text FROM known WHERE path = ?", path)
        return None if found is None else zlib.decompress(found)

    def _found(self, query: str, path: str) -> Any:
        with self._lock:
            row = self._database.execute(query, (path,)).fetchone()
        return row[0] if row else None

    @property
    def is_late(self) -> bool:
        """True if the time of the call has passed."""
        return time.monotonic() > self._end

    def list_store(self, objects: Iterable[Listed]) -> None:
        """Keep a listing of the store."""
        self._fill("listed", objects)

    def paths(self, query: str) -> Iterator[Known]:
        """Yield what one of the queries above finds now; what is noted meanwhile does not matter."""
        self._database.execute("DROP TABLE IF EXISTS temp.found")
        self._database.execute(f"CREATE TEMP TABLE found AS {query}")
        yield from map(Known._make, self._database.execute("SELECT * FROM found"))

    def scan(self, root: Root) -> dict[str, str]:
        """List the files here; return the reason for each path that is left out.

        A file whose status is that of a known content is not read again.
        """
        left_out: dict[str, str] = {}
        self._fill("here", self._files(root, left_out))
        for top in left_out:  # a path whose state is not known was not deleted
            below = "SELECT path, size, digest, '' FROM known WHERE path = ? OR substr(path, 1, ?) = ?"
            given = top, len(top) + 1, f"{top}/"
            self._database.execute(f"INSERT OR IGNORE INTO here {below}", given)
        self._database.execute(_STATUSES)
        return left_out

    def _files(self, root: Root, left_out: dict[str, str]) -> Iterator[tuple[str, int, str, str]]:
        tops = [""]
        while tops:
            top = tops.pop()
            with _leaving_out(top, left_out), root.open_directory(display_name(top) or ".") as directory:
                for entry in directory.scan():
                    path = os.path.join(top, entry.name)
                    with _leaving_out(path, left_out):
                        if path == META:
                            continue
                        if reason := objection(path, root) or _kind_objection(entry):
                            left_out[display_name(path)] = reason
                        elif entry.is_dir(follow_symlinks=False):
                            tops.append(path)
                        else:
                            yield self._file(root, path, entry.stat(follow_symlinks=False))

    def _file(self, root: Root, path: str, found: os.stat_result) -> tuple[str, int, str, str]:
        """Return the row of a file."""
        status = f"{found.st_ino} {found.st_size} {found.st_mtime_ns} {found.st_ctime_ns}"
        query = "SELECT digest FROM known WHERE path = ? AND status = ?"
        if known := self._database.execute(query, (path, status)).fetchone():
            return path, found.st_size, known[0], status
        with root.open_file(display_name(path)) as file:
            digest = revision_of(file.read_whole(LARGEST_OBJECT))
        settled = time.time_ns() - max(found.st_mtime_ns, found.st_ctime_ns) > _UNSETTLED
        return path, found.st_size, digest, status if settled else ""

    def _fill(self, table: str, rows: Iterable[Sequence[Any]]) -> None:
        """Replace the rows of a temporary table."""
        self._database.execute(f"DELETE FROM {table}")
        for row in rows:
            call_context.check()
            if self.is_late:
                raise DeadlineExceededError(
                    f"Listing the store and the cache took more than {self._seconds:g} seconds.",
                    hint="Nothing was changed. Raise `timeout`, or use a URL with fewer objects.",
                    details={"seconds": self._seconds},
                )
            values = ", ".join("?" * len(row))
            self._database.execute(f"INSERT OR REPLACE INTO {table} VALUES ({values})", row)


@contextmanager
def open_cache(path: str, seconds: float) -> Generator[Cache]:
    """Open the state of a cache for the block, locked against other processes."""
    state_path = os.path.join(path, META)
    file = os.path.join(state_path, FILE)
    with (
        closing(StateDirectory(state_path)),
        closing(sqlite3.connect(file, isolation_level=None, check_same_thread=False)) as database,
    ):
        database.executescript(_TABLES)
        OwnDirectory(state_path).put(".gitignore", b"*\n")  # for recordings and searches
        yield Cache(state_path, database, seconds)


@contextmanager
def _leaving_out(path: str, left_out: dict[str, str]) -> Generator[None]:
    """Leave a path out if it cannot be read in the block; the root must be readable."""
    try:
        yield
    except (AgentFSError, OSError):
        if not path:
            raise
        left_out[path] = "unreadable"


def _kind_objection(entry: DirEntry) -> str:
    if entry.is_dir(follow_symlinks=False):
        return ""
    if not entry.is_file(follow_symlinks=False):
        return "link" if entry.is_symlink() else "special file"
    return "too large" if entry.stat(follow_symlinks=False).st_size > LARGEST_OBJECT else ""


def objection(path: str, root: Root) -> str:
    """Return the reason why a path stays where it is, or ""."""
    parts = path.split("/")
    if _NOT_UTF8.search(path):
        return "not UTF-8"
    if not {"", ".", ".."}.isdisjoint(parts) or _CONTROL.search(path):
        return "not a path in a store"
    longest = max(len(part.encode()) for part in parts)
    if longest > MAX_NAME_BYTES or len(path.encode()) > MAX_PATH_BYTES or len(parts) > MAX_PARTS:
        return "too long"
    if parts[0].casefold() == META or STATE_MARK in map(str.casefold, parts) or is_temporary_name(path):
        return "reserved"
    return "protected" if root.is_protected(path) else ""
