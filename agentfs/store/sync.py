"""`Sync`: one pull, push or comparison of a cache and a store. Each path is merged on its own.

The listing of the store and that of the files are temporary tables on the disk, compared by SQL, so that the
memory does not grow with the tree.
"""

import os
import re
import time
import zlib
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from itertools import chain, islice
from threading import Lock
from typing import Any, NamedTuple

from agentfs.base import call_context
from agentfs.base.lazy import futures
from agentfs.errors import AgentFSError, BusyError, ConflictError
from agentfs.fs import Change, DirectoryNode, FileNode, Node, Root, directories_above
from agentfs.fs.own_directories import STATE_MARK, drop_own_file, put_own_file
from agentfs.fs.path import display_name, is_temporary_name, quote, split_path
from agentfs.history.database import Database
from agentfs.history.step_merge import merge_nodes
from agentfs.store.objects import LARGEST_OBJECT, ConditionFailed, Objects

META = ".agentfs"  # the directory of the state; keys below it are not files of the tree
MARK = f"{META}/tree"  # an object that tells this tree from another one at the same address
MERGED_BYTES = 10 * 1024 * 1024  # larger contents are never merged, so their base is not kept
MOST_NAMES = 100_000  # in each field of a comparison
_AT_ONCE = 32  # requests
_SMALL = 1024 * 1024  # bytes; larger contents are moved one after another, so that memory is bounded
_ATTEMPTS = 20  # to send a file that others keep changing
_NEW_FILE = 0o666  # the umask restricts the mode
_Row = tuple[str, str, int]  # a path, its version and its size
_NO_PATH = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]|(^|/)\.{0,2}(/|$)")  # of a store

_TABLES = (
    """CREATE TABLE IF NOT EXISTS known
    (path TEXT PRIMARY KEY, tag TEXT, size INTEGER, digest TEXT, text BLOB)""",
    "CREATE TEMP TABLE listed (path TEXT PRIMARY KEY, version TEXT, size INTEGER) WITHOUT ROWID",
)
_INSERT = "INSERT OR REPLACE INTO listed VALUES (?, ?, ?)"
# A path that is left out counts as unchanged, with all paths below it.
_LEAVE_OUT = """INSERT OR IGNORE INTO listed SELECT path, {version}, size FROM known
    WHERE path = ? OR substr(path, 1, length(?) + 1) = ? || '/'"""
# Deleted paths, then changed ones: a file may become a directory.
_DIFFERENCES = (
    """SELECT path, tag, size, digest, 0 FROM known
    WHERE digest <> '' AND path NOT IN (SELECT path FROM listed) AND path > ? ORDER BY path LIMIT 1000""",
    """SELECT path, COALESCE(tag, ''), COALESCE(known.size, 0), COALESCE(digest, ''), listed.size
    FROM listed LEFT JOIN known USING (path)
    WHERE (known.{version} IS NOT listed.version OR known.size <> listed.size) AND path > ?
    ORDER BY path LIMIT 1000""",
)


class Known(NamedTuple):
    """A path as it was in the store when it was last equal to the file here, or merged with it."""

    path: str
    tag: str = ""  # the version of the object; "" if there was none
    size: int = 0
    digest: str = ""  # of the content; "" if the object was being deleted
    to_move: int = 0  # bytes to fetch or to send now


class _Stays(Exception):  # noqa: N818 - a signal within this module
    """A path stays as it is on both sides. The text is the reason, or `conflicts`."""


class Sync:
    """A call on an open cache.

    Attributes:
        paths: The paths that a field of the result names, by field; and those left out, by reason.
        truncated: True if paths are missing.
    """

    def __init__(self, objects: Objects, root: Root, database: Database, seconds: float) -> None:
        self._objects, self._root, self._database = objects, root, database
        self._seconds, self._end = seconds, time.monotonic() + seconds
        self._lock = Lock()  # held to change a file: the locks of a root have no queue
        self.paths = defaultdict[str, list[str]](list)
        self._left_out: list[str] = []  # paths that the listing lacks
        self.truncated = False
        database.write((statement, ()) for statement in _TABLES)

    def compare(self) -> None:
        """List what differs between the cache and the store."""
        for field, version in (("to_pull", "tag"), ("to_push", "digest")):
            self._list(version)
            found = chain.from_iterable(self._differences(version))
            self.paths[field] = [known.path for known in islice(found, MOST_NAMES)]
            self.truncated |= len(self.paths[field]) == MOST_NAMES

    def pull(self) -> None:
        """Merge what has changed in the store with the files here."""
        self._list("tag")
        self._each("tag", lambda known: self._take(known)[0])

    def push(self) -> None:
        """Send what has changed here."""
        if not self._is_known(self._objects.get(MARK)[0]):
            self.note(Known(MARK, self._objects.check_conditions(MARK)), None)
        self._list("digest")
        self._each("digest", self._send)

    def note(self, known: Known, data: bytes | None) -> None:
        """Keep what the store has at a path, and the content if it may be merged later."""
        text = zlib.compress(data, 1) if data is not None and len(data) <= MERGED_BYTES else None
        if known.tag:
            self._execute("INSERT OR REPLACE INTO known VALUES (?, ?, ?, ?, ?)", *known[:4], text)
        else:
            self._execute("DELETE FROM known WHERE path = ?", known.path)

    def text(self, path: str) -> bytes | None:
        """Return the content that was noted last for a path, if it is kept."""
        found = self._query("SELECT text FROM known WHERE path = ? AND text IS NOT NULL", path)
        return zlib.decompress(found[0][0]) if found else None

    def _query(self, query: str, *values: Any) -> list[Any]:
        return self._database.read((query, values))[0]

    def _execute(self, statement: str, *values: Any) -> None:
        self._database.write([(statement, values)])

    def _is_known(self, mark: str) -> bool:
        """Return False if this cache is new; raise `conflict` if the store does not have its tree."""
        known = self._query("SELECT tag FROM known WHERE path = ?", MARK)
        if known and known != [(mark,)]:
            raise ConflictError(
                f"The store does not have the tree of this cache: its {MARK} is another one, or gone.",
                hint="Check the URL. To begin with the store as it is, pull it to an empty directory.",
            )
        self.note(Known(MARK, mark), None)
        return bool(known)

    def _list(self, version: str) -> None:
        """List the versions of the objects in the store, or the digests of the files here."""
        rows = self._there() if version == "tag" else self._here()
        self._left_out.clear()
        with call_context.limited(self._seconds):
            self._database.write(chain([("DELETE FROM listed", ())], ((_INSERT, row) for row in rows)))
        leave_out = _LEAVE_OUT.format(version=version)
        self._database.write((leave_out, [path] * 3) for path in self._left_out)
        if version == "tag":
            mark = self._query("SELECT version FROM listed WHERE path = ?", MARK)
            self._is_known(mark[0][0] if mark else "")

    def _there(self) -> Iterator[_Row]:
        for path, tag, size in self._objects.list():
            call_context.check()
            if path == MARK:
                yield path, tag, 0
            elif not path.startswith(f"{META}/"):
                with self._leaving_out(path):
                    self._check(path, size)
                    yield path, tag, size

    def _here(self) -> Iterator[_Row]:
        tops = [""]
        while tops:
            top = tops.pop()
            with self._leaving_out(top), self._root.open_directory(display_name(top) or ".") as directory:
                for entry in directory.scan():
                    path = os.path.join(top, entry.name)
                    with self._leaving_out(path):
                        call_context.check()
                        if path == META:
                            continue
                        self._check(path)
                        if node := self._file(path):
                            yield path, node.digest, node.size
                        else:
                            tops.append(path)

    @contextmanager
    def _leaving_out(self, path: str) -> Generator[None]:
        """Leave a path out of the listing if the block fails because of it; the root must be readable."""
        try:
            with _staying("timeout", "closed", *(() if path else ("io",))):
                yield
        except _Stays as reason:
            self.paths[str(reason)].append(display_name(path))
            self._left_out.append(display_name(path))

    def _check(self, path: str, size: int = 0) -> None:
        """Raise _Stays if a path or an object is neither pulled nor pushed."""
        names = path.split("/")
        if _NO_PATH.search(path):
            raise _Stays("not a path in a store")
        if names[0].casefold() == META or STATE_MARK in map(str.casefold, names) or is_temporary_name(path):
            raise _Stays("reserved")
        if self._root.is_protected(path):
            raise _Stays("protected")
        if size > LARGEST_OBJECT:
            raise _Stays("too large")
        split_path(path, {})  # raises if it is too long for a path here

    def _differences(self, version: str) -> Iterator[list[Known]]:
        """Yield the deleted and the changed paths in parts."""
        for query in _DIFFERENCES:
            last = ""
            while part := [Known(*row) for row in self._query(query.format(version=version), last)]:
                yield part
                last = part[-1].path

    def _each(self, version: str, work: Callable[[Known], tuple[str, ...]]) -> None:
        """Do the work for each path that differs, in threads, until the time is up."""

        def outcome(known: Known) -> tuple[str, ...] | None:
            try:
                return None if time.monotonic() > self._end else work(known)
            except _Stays as reason:
                return (str(reason),)

        with futures.ThreadPoolExecutor(_AT_ONCE, "agentfs-store") as pool:
            for part in self._differences(version):
                small = [known for known in part if known.to_move <= _SMALL]
                large = [known for known in part if known.to_move > _SMALL]
                # Large ones in this thread: malloc keeps some memory for each thread that frees much.
                done = chain(pool.map(outcome, small), map(outcome, large))
                for known, fields in zip(small + large, done, strict=True):
                    call_context.check()
                    self.truncated |= fields is None
                    for field in fields or ():
                        self.paths[field].append(known.path)
                if self.truncated:
                    return

    def _send(self, known: Known) -> tuple[str, ...]:
        """Send a file, or its deletion; what others have changed meanwhile is merged with it before."""
        merged = tuple[str, ...]()
        for _ in range(_ATTEMPTS):
            node = self._file(known.path)
            data, tag = node.load() if node else None, ""
            try:
                if data is not None:
                    tag = self._objects.put(known.path, data, known.tag)
                elif known.tag:
                    self._objects.delete(known.path, known.tag)
            except ConditionFailed:
                taken, known = self._take(known)
                merged = ("merged",) if taken or merged else ()
                if _digest(self._file(known.path)) == known.digest:
                    return merged
            else:
                self.note(Known(known.path, tag, len(data or b""), _digest(node)), data)
                return ("deleted" if data is None else "pushed", *merged)
        raise _Stays("busy")

    def _take(self, known: Known) -> tuple[tuple[str, ...], Known]:
        """Fetch what the store has at a path, and merge it with the file here.

        Returns:
            The fields of the result that name the path, and what the store has.
        """
        path = known.path
        tag, data = self._objects.get(path)
        if not tag and not known.tag:
            raise _Stays("no object of this name")
        ours = self._file(path)
        if ours is not None and not known.tag and not self._is_listed(path):
            raise _Stays("another name with the same letters is here")
        mode, metadata = (ours.mode, ours.metadata) if ours else (_NEW_FILE, None)
        theirs = None if data is None else FileNode.of(mode, data, metadata)
        text = self.text(path)
        if text is None or any(node is not None and node.size > MERGED_BYTES for node in (ours, theirs)):
            text = b"\0"  # it cannot be merged, like a binary file
        base = FileNode(mode, known.digest, known.size, partial(iter, (text,))) if known.digest else None
        merged, clash = merge_nodes(path, base, ours, theirs)
        if clash is not None:
            self._keep_conflict(path, data)
            raise _Stays("conflicts")
        self._write(path, ours, merged)
        self._keep_conflict(path, None)
        found = Known(path, tag, len(data or b""), _digest(theirs))
        self.note(found, data)
        if merged == ours:
            return (), found
        return ("deleted" if merged is None else "pulled" if merged == theirs else "merged",), found

    def _file(self, path: str) -> FileNode | None:
        """Return the file here; None if there is none."""
        with _staying():
            node = self._root.node(path, max_bytes=LARGEST_OBJECT)
        if node is not None and not isinstance(node, FileNode | DirectoryNode):
            raise _Stays("link")
        return node if isinstance(node, FileNode) else None

    def _is_listed(self, path: str) -> bool:
        """Return False if a file is found by a name that is not its own, as on disks that ignore case."""
        top, name = os.path.split(path)
        with _staying(), self._root.open_directory(display_name(top) or ".") as directory:
            return any(entry.name == name for entry in directory.scan())

    def _write(self, path: str, ours: FileNode | None, merged: Node | None) -> None:
        """Replace a file, unless it is not `ours` any more. Directories that become empty go too."""
        if merged == ours:
            return
        apply = partial(self._root.apply, max_bytes=LARGEST_OBJECT, conflict=_taken)
        with self._lock:
            with _staying():
                apply([Change(path, ours, merged)])
            with suppress(AgentFSError):  # a directory is not empty
                for top in directories_above(path) if merged is None else ():
                    apply([Change(top, DirectoryNode(), None)])

    def _keep_conflict(self, path: str, theirs: bytes | None) -> None:
        """Keep the text of the store beside the state, or remove an earlier one."""
        place = os.path.join(self._root.path, META, "conflicts", path)
        with suppress(OSError):  # the name of another conflict may be in the way; the store has the text too
            drop_own_file(place)
            if theirs is not None:
                put_own_file(place, theirs)


@contextmanager
def _staying(*ending: str) -> Generator[None]:
    """Leave a path as it is if the cache refuses it in the block, except by some codes of errors."""
    try:
        yield
    except (AgentFSError, OSError) as error:
        code = error.code if isinstance(error, AgentFSError) else "io"
        if code in (ending or ("io", "timeout", "closed")):
            raise
        raise _Stays(code.replace("_", " ")) from None


def _digest(node: FileNode | None) -> str:
    return node.digest if node else ""


def _taken(change: Change, _: Node | None) -> AgentFSError:
    """Return the error for a path whose node is not the expected one."""
    return BusyError(f"{quote(change.path)} was changed meanwhile.")
