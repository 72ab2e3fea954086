"""`Sync`: one pull, push or comparison of a cache and a store. Each path is merged on its own."""

import os
import random
import time
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from itertools import chain, islice

from agentfs.base import call_context
from agentfs.base.lazy import futures
from agentfs.errors import AgentFSError, ConflictError
from agentfs.fs import Change, DirectoryNode, FileNode, Root, directories_above, display_name
from agentfs.fs.node import ConcurrentChange, begin_again
from agentfs.fs.own_directories import OwnDirectory
from agentfs.history.step_merge import merge_nodes
from agentfs.store.cache import CHANGED, EDITED, GONE, MERGED_BYTES, META, REMOVED, Cache, Known, objection
from agentfs.store.objects import LARGEST_OBJECT, ConditionFailed, Listed, Objects

MARK = f"{META}/tree"  # an object that tells this tree from another one at the same address
CONFLICTS = "conflicts"  # texts of the store, in the directory of the state
_AT_ONCE = 32  # requests
_PART = 1000  # paths in memory at the same time
_SMALL = 1024 * 1024  # bytes; larger contents are fetched or sent one after another
_ATTEMPTS = 20  # to merge a file that others keep changing
_PAUSE = 0.04  # seconds at most, times the attempts, so that workers do not meet again
MOST_NAMES = 100_000  # in each field of a comparison
_NEW_FILE = 0o666  # the umask restricts the mode


class _Stays(Exception):  # noqa: N818 - a signal within this module
    """A path stays as it is on both sides; the text is the reason."""


class _Conflict(Exception):  # noqa: N818 - as above
    """Both sides have changed the same lines."""


class Sync:
    """A call on an open cache.

    Attributes:
        paths: The paths that a field of the result names, by field; and those left out, by reason.
        truncated: True if paths are missing.
    """

    def __init__(self, objects: Objects, cache: Cache, root: Root) -> None:
        self._objects, self._cache, self._root = objects, cache, root
        self._conflicts = OwnDirectory(os.path.join(cache.state_path, CONFLICTS))
        self.paths = defaultdict[str, list[str]](list)
        self.truncated = False

    def compare(self) -> None:
        """List what differs between the cache and the store."""
        self._list_store()
        self._scan()
        for field, queries in (("to_pull", (GONE, CHANGED)), ("to_push", (REMOVED, EDITED))):
            for query in queries:
                self.paths[field] += [known.path for known in islice(self._cache.paths(query), MOST_NAMES)]
                self.truncated |= len(self.paths[field]) >= MOST_NAMES

    def pull(self) -> None:
        """Merge what has changed in the store with the files here."""
        self._list_store()
        for query in (GONE, CHANGED):  # in this order: a file may become a directory
            self._each(query, lambda known: self._take(known)[0])

    def push(self) -> None:
        """Send what has changed here."""
        if mark := self._cache.tag("known", MARK):
            _check_mark(mark, self._objects.head(MARK))
        else:
            self._cache.note(Known(MARK, self._objects.check_conditions(MARK)), None)
        self._scan()
        for query in (REMOVED, EDITED):
            self._each(query, self._send)

    def _list_store(self) -> None:
        """List the store; raise `conflict` if it does not have the tree of this cache."""

        def rows() -> Iterator[Listed]:
            for listed in self._objects.list():
                reason = objection(listed.path, self._root)
                reason = reason or ("too large" if listed.size > LARGEST_OBJECT else "")
                if reason and not listed.path.startswith(f"{META}/"):
                    self.paths[reason].append(listed.path)
                yield listed._replace(left_out=reason)

        self._cache.list_store(rows())
        mark = self._cache.tag("listed", MARK)
        _check_mark(self._cache.tag("known", MARK), mark)
        self._cache.note(Known(MARK, mark), None)

    def _scan(self) -> None:
        for path, reason in self._cache.scan(self._root).items():
            self.paths[reason].append(path)

    def _each(self, query: str, work: Callable[[Known], tuple[str, ...]]) -> None:
        """Do the work for each path of a query, in threads, until the time is up."""

        def outcome(known: Known) -> tuple[str, ...] | None:
            try:
                return None if self._cache.is_late else work(known)
            except _Stays as reason:
                return (str(reason),)

        paths = self._cache.paths(query)
        with futures.ThreadPoolExecutor(_AT_ONCE, "agentfs-store") as pool:
            while not self.truncated and (part := [*islice(paths, _PART)]):
                part.sort(key=lambda known: known.to_move > _SMALL)
                small = [known for known in part if known.to_move <= _SMALL]
                outcomes = chain(pool.map(outcome, small), map(outcome, part[len(small) :]))
                for known, fields in zip(part, outcomes, strict=True):
                    call_context.check()
                    self.truncated |= fields is None
                    for field in fields or ():
                        self.paths[field].append(known.path)

    def _send(self, known: Known) -> tuple[str, ...]:
        """Send a file, or its deletion; what others have changed meanwhile is merged with it before."""
        merged = tuple[str, ...]()
        for attempt in range(_ATTEMPTS):
            node = self._file(known.path)
            try:
                return (self._sent(known, node), *merged)
            except ConditionFailed:
                taken, known = self._take(known)
                merged = ("merged",) if taken or merged else ()
                if _digest(self._file(known.path)) == known.digest:
                    return merged
                time.sleep(random.uniform(0, _PAUSE) * attempt)  # noqa: S311 - so that workers part
        raise _Stays("changing while it is merged")

    def _sent(self, known: Known, node: FileNode | None) -> str:
        if node is None:
            if known.tag:
                self._objects.delete(known.path, known.tag)
            self._cache.note(Known(known.path), None)
            return "deleted"
        data = node.load()
        tag = self._objects.put(known.path, data, known.tag)
        self._cache.note(Known(known.path, tag, len(data), node.digest), data)
        return "pushed"

    def _take(self, known: Known) -> tuple[tuple[str, ...], Known]:
        """Fetch what the store has at a path, and merge it with the file here.

        Returns:
            The fields of the result that name the path, and what the store has.
        """
        path = known.path
        tag, data = self._objects.get(path)
        if not tag and not known.tag:
            raise _Stays("no object of this name")
        for _ in range(_ATTEMPTS):
            ours = self._file(path)
            if ours is not None and not known.tag and not self._is_listed(path):
                raise _Stays("another name with the same letters is here")
            mode, metadata = (ours.mode, ours.metadata) if ours else (_NEW_FILE, None)
            theirs = None if data is None else FileNode.of(mode, data, metadata)
            found = Known(path, tag, len(data or b""), _digest(theirs))
            try:
                merged = self._merged(known, ours, theirs)
                self._write(path, ours, merged)
            except _Conflict:
                self._keep_conflict(path, data)
                raise _Stays("conflicts") from None
            except ConcurrentChange:
                continue
            self._keep_conflict(path, None)
            self._cache.note(found, data)
            if merged == ours:
                return (), found
            return ("deleted" if merged is None else "pulled" if merged == theirs else "merged",), found
        raise _Stays("changing while it is merged")

    def _merged(self, known: Known, ours: FileNode | None, theirs: FileNode | None) -> FileNode | None:
        """Return the file with the changes of both sides since they were equal, or raise _Conflict."""

        def load() -> bytes:
            text = self._cache.text(known.path)
            if text is None or any(node is None or node.size > MERGED_BYTES for node in (ours, theirs)):
                raise _Conflict
            return text

        mode = ours.mode if ours else _NEW_FILE
        base = FileNode(mode, known.digest, known.size, load) if known.digest else None
        merged, clash = merge_nodes(known.path, base, ours, theirs)
        if clash is not None:
            raise _Conflict
        return merged if isinstance(merged, FileNode) else None

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

    def _write(self, path: str, ours: FileNode | None, merged: FileNode | None) -> None:
        """Replace a file; raise ConcurrentChange if it is not `ours` any more."""
        if merged == ours:
            return
        if merged is not None and os.path.isdir(os.path.join(self._root.path, path)):
            raise _Stays("a directory of this name is here")
        with _staying():
            self._apply(Change(path, ours, merged))
        if merged is None:
            with suppress(AgentFSError, ConcurrentChange):  # another thread may be faster
                for top in directories_above(path):
                    self._apply(Change(top, DirectoryNode(), None))  # fails if it is not empty

    def _apply(self, change: Change) -> None:
        self._root.apply([change], max_bytes=LARGEST_OBJECT, conflict=begin_again)

    def _keep_conflict(self, path: str, theirs: bytes | None) -> None:
        """Keep the text of the store beside the state, or remove an earlier one."""
        with suppress(OSError):  # the name of another conflict may be in the way; the store has the text too
            if theirs is None:
                self._conflicts.drop(path)
            else:
                self._conflicts.put(path, theirs)


@contextmanager
def _staying() -> Generator[None]:
    """Leave a path as it is if the cache refuses it in the block; a failure of the disk ends the call."""
    try:
        yield
    except AgentFSError as error:
        if error.code in {"io", "timeout", "closed"}:
            raise
        raise _Stays(error.code.replace("_", " ")) from None


def _digest(node: FileNode | None) -> str:
    return node.digest if node else ""


def _check_mark(expected: str, found: str) -> None:
    """Raise `conflict` if a store does not have the tree of this cache."""
    if expected not in ("", found):
        raise ConflictError(
            f"The store does not have the tree of this cache: its {MARK} is another one, or gone.",
            hint="Check the URL. To begin with the store as it is, pull it to an empty directory.",
        )
