"""The state of a cache, in its directory `.agentfs`: what the store had, and what is being pushed."""

import json
import os
import zlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, Self

from agentfs.base.lazy import shutil, sqlite3
from agentfs.errors import AgentFSError, BusyError, FileIOError, InvalidArgumentError, RefusedError
from agentfs.fs import DirectoryNode, FileNode, LinkNode, Node, oserrors, quote, syscalls
from agentfs.fs.lock import hold, let_go
from agentfs.fs.own_directories import STATE_MARK, OwnDirectory
from agentfs.limits import Limits
from agentfs.store.remote import META, Tag

LARGE = Limits().file_bytes  # files over it are neither decoded nor kept in memory
NEW_MODE = -1  # of a file that was created with the mode that the umask gave
_LINK, _DIRECTORY = "-> ", "/"
_VERSION = "1"
_SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;
CREATE TABLE known (path TEXT PRIMARY KEY, row TEXT) WITHOUT ROWID;
CREATE TABLE conflicts (path TEXT PRIMARY KEY, row TEXT) WITHOUT ROWID;
CREATE TABLE attempts (path TEXT, digest TEXT, PRIMARY KEY (path, digest)) WITHOUT ROWID;
CREATE TABLE texts (digest TEXT PRIMARY KEY, data BLOB);
"""
_DROP_TEXTS = """DELETE FROM texts WHERE digest NOT IN (
    SELECT digest FROM attempts UNION SELECT json_extract(row, '$[3]') FROM known
    UNION SELECT json_extract(row, '$[3]') FROM conflicts)"""


class Known(NamedTuple):
    """A path as it was in the store when it was last pulled or pushed."""

    e_tag: str  # "" for links and directories, which are no objects
    version: str
    size: int
    digest: str
    digests: tuple[str, ...]  # `digest`, and those of older contents that it was made from
    entry: str  # in `TREE`
    mode: int  # that the local file had then
    status: str = ""  # that the local file has with this content; "" if it must be read

    @property
    def tag(self) -> Tag | None:
        """The version of the object; None if there is no object."""
        return Tag(self.e_tag, self.version) if self.e_tag or self.version else None


def entry_of(node: Node | None, default_mode: int) -> str:
    """Return the entry of a node in `TREE`; "" for a file with the default mode."""
    match node:
        case FileNode(mode=mode) if mode != default_mode:
            return f"{mode:o}"
        case LinkNode(target=target):
            return _LINK + target
        case DirectoryNode():
            return _DIRECTORY
        case _:
            return ""


def node_of_entry(entry: str) -> Node | None:
    """Return the link or the empty directory of an entry; None for the mode of a file."""
    if entry == _DIRECTORY:
        return DirectoryNode()
    return LinkNode(entry.removeprefix(_LINK)) if entry.startswith(_LINK) else None


class CacheState:
    """The state of a cache, locked until it is closed."""

    def __init__(self, cache: str, identity: str) -> None:
        self._own = OwnDirectory(os.path.join(cache, META.rstrip("/")))
        self._fd, self._database = -1, None
        try:
            self._own.make(exist_ok=True)
            if self._own.status().st_uid != os.geteuid():
                raise RefusedError(
                    f"The cache {quote(cache)} belongs to another user.", hint="Pass a directory of your own."
                )
            self._lock(cache)
            self._own.put(".gitignore", b"*\n")  # recordings and searches leave the directory out
            self._open()
            known = self.meta("identity")
            if known is not None and known != identity:
                raise InvalidArgumentError(
                    f"The cache {quote(cache)} belongs to another store, {quote(known)}.",
                    hint="Give each store and each branch a cache of its own.",
                    details={"parameter": "cache", "path": cache},
                )
            self.write([("INSERT OR REPLACE INTO meta VALUES ('identity', ?)", (identity,))])
            shutil.rmtree(self._own.path_of("parts"), ignore_errors=True)
        except BaseException as error:
            self.close()
            if isinstance(error, OSError):
                raise oserrors.from_oserror(error, cache) from None
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Unlock the cache."""
        if self._database is not None:
            self._database.close()
        fd, self._fd = self._fd, -1
        if fd >= 0:
            let_go(fd)

    def _lock(self, cache: str) -> None:
        fd = self._own.open(STATE_MARK)
        if not syscalls.try_lock(fd):
            holder = os.read(fd, 20).decode("ascii", "replace")
            os.close(fd)
            raise BusyError(
                f"The cache {quote(cache)} is being pulled or pushed by process {holder}.",
                hint="Call it again later, or give each worker a cache of its own.",
                details={"path": cache},
            )
        self._fd = hold(fd)
        os.ftruncate(fd, 0)
        os.write(fd, str(os.getpid()).encode())

    def _open(self) -> None:
        try:
            self._database = sqlite3.connect(
                self._own.path_of("store.db"), isolation_level=None, check_same_thread=False
            )
            for setting in ("auto_vacuum=FULL", "journal_mode=WAL", "synchronous=NORMAL"):
                self._database.execute(f"PRAGMA {setting}").fetchall()
            if not self._rows("SELECT 1 FROM sqlite_master LIMIT 1"):
                self.write([(each, ()) for each in _SCHEMA.split(";")])
                self.write([("INSERT INTO meta VALUES ('format', ?)", (_VERSION,))])
        except sqlite3.Error as error:
            raise _failed(error) from None
        if self.meta("format") != _VERSION:
            raise FileIOError(
                "The state of this cache has another format.",
                hint=f"Delete the directory {quote(self._own.path)} and pull again: local files are kept and merged.",
            )

    def meta(self, key: str) -> str | None:
        """Return a value."""
        rows = self._rows("SELECT value FROM meta WHERE key = ?", key)
        return rows[0][0] if rows else None

    def load(self, table: str) -> dict[str, Known]:
        """Return the rows of the table "known" or "conflicts"."""
        rows = ((path, json.loads(row)) for path, row in self._rows(f"SELECT path, row FROM {table}"))  # noqa: S608 - one of two names
        return {path: Known(*each[:4], tuple(each[4]), *each[5:]) for path, each in rows}

    def attempts(self) -> dict[str, list[str]]:
        """Return the digests of pushed contents for which no answer has come, by path."""
        found: dict[str, list[str]] = {}
        for path, digest in self._rows("SELECT path, digest FROM attempts"):
            found.setdefault(path, []).append(digest)
        return found

    def text(self, digest: str) -> bytes:
        r"""Return the content of an earlier version; "\0", which is never merged, if it is not kept."""
        rows = self._rows("SELECT data FROM texts WHERE digest = ?", digest)
        return zlib.decompress(rows[0][0]) if rows else b"\0"

    def save(
        self,
        rows: Mapping[str, Known | None],
        acknowledged: Iterable[str],
        conflicts: Mapping[str, Known],
        meta: Mapping[str, str],
    ) -> None:
        """Write changed rows, all conflicts, and values, in one transaction."""
        kept = [(path, _to_json(known)) for path, known in rows.items() if known is not None]
        statements: list[tuple[str, Sequence[Any]]] = [
            *(("DELETE FROM known WHERE path = ?", (path,)) for path, known in rows.items() if known is None),
            *(("INSERT OR REPLACE INTO known VALUES (?, ?)", row) for row in kept),
            *(("DELETE FROM attempts WHERE path = ?", (path,)) for path in acknowledged),
            ("DELETE FROM conflicts", ()),
            *(
                ("INSERT INTO conflicts VALUES (?, ?)", (path, _to_json(each)))
                for path, each in conflicts.items()
            ),
            *(("INSERT OR REPLACE INTO meta VALUES (?, ?)", each) for each in meta.items()),
        ]
        self.write([*statements, (_DROP_TEXTS, ())] if rows else statements)

    def begin_push(self, nodes: Mapping[str, FileNode]) -> None:
        """Note the contents that will be pushed, so that a lost answer is recognised later."""
        self.keep_texts(node for node in nodes.values() if node.size <= LARGE)
        add = "INSERT OR IGNORE INTO attempts VALUES (?, ?)"
        self.write((add, (path, node.digest)) for path, node in nodes.items())

    def keep_texts(self, nodes: Iterable[FileNode]) -> None:
        """Keep the contents of files, except binary ones, which are never merged."""
        texts = ((node.digest, node.load()) for node in nodes)
        self.write(
            ("INSERT OR IGNORE INTO texts VALUES (?, ?)", (digest, zlib.compress(data, 1)))
            for digest, data in texts
            if b"\0" not in data
        )

    def _rows(self, query: str, *values: object) -> list[Any]:
        try:
            return self._database.execute(query, values).fetchall() if self._database else []
        except sqlite3.Error as error:
            raise _failed(error) from None

    def write(self, statements: Iterable[tuple[str, Sequence[Any]]]) -> None:
        """Run statements in one transaction."""
        database = self._database
        if database is None:
            return
        try:
            database.execute("BEGIN IMMEDIATE")
            for statement in statements:
                database.execute(*statement)
            database.execute("COMMIT")
        except BaseException as error:
            with suppress(sqlite3.Error):
                database.execute("ROLLBACK")
            if isinstance(error, sqlite3.Error):
                raise _failed(error) from None
            raise


def _to_json(known: Known) -> str:
    return json.dumps(known, separators=(",", ":"))


def _failed(error: Exception) -> AgentFSError:
    return FileIOError(
        f"The state of this cache failed: {error}.",
        hint="Free disk space if it is full. If it is damaged, delete the directory `.agentfs` in the cache and"
        " pull again: local files are kept and merged.",
    )
