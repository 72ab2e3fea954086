"""`Sync`: one pull, push or comparison of a cache and a store. Each path is merged on its own."""

import os
import random
import time
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from typing import NamedTuple

from agentfs.base import call_context
from agentfs.base.lazy import futures
from agentfs.errors import AgentFSError, ConflictError
from agentfs.fs import Change, DirectoryNode, FileNode, Root, directories_above, display_name, revision_of
from agentfs.fs.node import ConcurrentChange, begin_again
from agentfs.fs.own_directories import OwnDirectory
from agentfs.store.cache import CHANGED, EDITED, GONE, META, REMOVED, Cache, Known, is_mergeable, objection
from agentfs.store.objects import LARGEST_OBJECT, ConditionFailed, Listed, Objects
from agentfs.text.merge import merge_texts

MARK = f"{META}/tree"  # an object that tells this tree from another one at the same address
CONFLICTS = "conflicts"  # texts of the store, in the directory of the state
_AT_ONCE = 32  # requests
_PART_PATHS, _PART_BYTES = 1000, LARGEST_OBJECT  # in memory at the same time
_ATTEMPTS = 20  # to merge a file that others keep changing
_PAUSE = 0.04  # seconds at most, times the attempts, so that workers do not meet again
MOST_NAMES = 100_000  # in each field of a comparison
_NEW_FILE = 0o666  # the umask restricts the mode
_CHANGING = "changing while it is merged"


class _Conflict(Exception):  # noqa: N818 - a signal within this module
    """Both sides have changed the same lines."""


class _LeftOut(Exception):  # noqa: N818 - as above
    """A path that stays as it is on both sides; the text is the reason."""


class Synced(NamedTuple):
    """The result for one path."""

    path: str
    kinds: tuple[str, ...] = ()  # fields of the result that name it
    left_out: str = ""  # the reason
    known: Known | None = None  # to note
    data: bytes | None = None  # the content that the store has


class Sync:
    """A call on an open cache."""

    def __init__(self, objects: Objects, cache: Cache, root: Root) -> None:
        self._objects, self._cache, self._root = objects, cache, root
        self._conflicts = OwnDirectory(os.path.join(cache.state_path, CONFLICTS))
        self.paths = defaultdict[str, list[str]](list)  # by field of the result
        self.left_out: dict[str, str] = {}  # the reason for each path
        self.truncated = False

    def compare(self) -> None:
        """List what differs between the cache and the store."""
        self._list_store()
        self.left_out |= self._cache.scan(self._root)
        for field, queries in (("to_pull", (GONE, CHANGED)), ("to_push", (REMOVED, EDITED))):
            for query in queries:
                self.paths[field] += [known.path for known in islice(self._cache.paths(query), MOST_NAMES)]
                self.truncated |= len(self.paths[field]) >= MOST_NAMES

    def pull(self) -> None:
        """Merge what has changed in the store with the files here."""
        self._list_store()
        for query in (GONE, CHANGED):  # in this order: a file may become a directory
            self._each(self._take, query)

    def push(self) -> None:
        """Send what has changed here."""
        if mark := self._cache.fact("mark"):
            _check_mark(mark, self._objects.head(MARK))
        else:
            self._cache.set_fact("mark", self._objects.check_conditions(MARK))
        self.left_out |= self._cache.scan(self._root)
        for query in (REMOVED, EDITED):
            self._each(self._send, query)

    def _list_store(self) -> None:
        """List the store; raise `conflict` if it does not have the tree of this cache."""
        mark = ""

        def files() -> Iterator[Listed]:
            nonlocal mark
            for listed in self._objects.list():
                if listed.path == MARK:
                    mark = listed.tag
                if not listed.path.startswith(f"{META}/"):
                    reason = objection(listed.path, self._root)
                    reason = reason or ("too large" if listed.size > LARGEST_OBJECT else "")
                    if reason:
                        self.left_out[listed.path] = reason
                    yield listed._replace(left_out=reason)

        any_left = self._cache.list_store(files())
        _check_mark(self._cache.fact("mark") or (mark if any_left else "lost"), mark)
        self._cache.set_fact("mark", mark)

    def _each(self, work: Callable[[Known], Synced], query: str) -> None:
        """Do the work for each path of a query, in threads, until the time is up; note the outcomes."""
        with futures.ThreadPoolExecutor(_AT_ONCE, "agentfs-store") as pool:
            for part in _parts(self._cache.paths(query)):
                call_context.check()
                if self._cache.is_late:
                    self.truncated = True
                    return
                for outcome in pool.map(work, part):
                    for kind in outcome.kinds:
                        self.paths[kind].append(outcome.path)
                    if outcome.left_out:
                        self.left_out[outcome.path] = outcome.left_out
                    if outcome.known is not None:
                        self._cache.note(outcome.known, outcome.data)

    def _send(self, known: Known) -> Synced:
        """Send a file, or its deletion. What others have changed meanwhile is merged with it before."""
        path, merged = known.path, False
        try:
            for attempt in range(_ATTEMPTS):
                try:
                    return self._sent(known, merged=merged)
                except ConditionFailed:
                    outcome = self._take(known)
                    if outcome.known is None or _digest(self._file(path)) == outcome.known.digest:
                        brought = outcome.known and outcome.kinds  # from others
                        return outcome._replace(kinds=("merged",)) if brought else outcome
                    known, merged = outcome.known, True
                    self._cache.note(known, outcome.data)  # the base, if others are faster once more
                    time.sleep(random.uniform(0, _PAUSE) * attempt)  # noqa: S311 - so that workers part
        except _LeftOut as reason:
            return Synced(path, left_out=str(reason))
        return Synced(path, left_out=_CHANGING)

    def _sent(self, known: Known, *, merged: bool) -> Synced:
        path, node = known.path, self._file(known.path)
        if node is None:
            if known.tag:
                self._objects.delete(path, known.tag)
            return Synced(path, ("deleted",), known=Known(path))
        data = node.load()
        tag = self._objects.put(path, data, known.tag)
        kinds = ("pushed", "merged") if merged else ("pushed",)
        return Synced(path, kinds, "", Known(path, tag, len(data), node.digest), data)

    def _take(self, known: Known) -> Synced:
        """Fetch what the store has at a path, and merge it with the file here."""
        path, found = known.path, self._objects.get(known.path)
        if found is None and not known.tag:
            return Synced(path, left_out="no object of this name")
        theirs = found.data if found else None
        size, digest = (0, "") if theirs is None else (len(theirs), revision_of(theirs))
        new = Known(path, found.tag if found else "", size, digest)
        try:
            for _ in range(_ATTEMPTS):
                ours = self._file(path)
                if ours is not None and not known.tag and not self._is_listed(path):
                    return Synced(path, left_out="another name with the same letters is here")
                merged = self._merged(known, ours, theirs)
                with suppress(ConcurrentChange):
                    self._write(path, ours, merged)
                    self._keep_conflict(path, None)
                    return Synced(path, _kinds(ours, digest, merged), "", new, theirs)
        except _Conflict:
            self._keep_conflict(path, theirs)
            return Synced(path, ("conflicts",))
        except _LeftOut as reason:
            return Synced(path, left_out=str(reason))
        return Synced(path, left_out=_CHANGING)

    def _file(self, path: str) -> FileNode | None:
        """Return the file here; None if there is none."""
        with _here():
            node = self._root.node(path, max_bytes=LARGEST_OBJECT)
        if node is not None and not isinstance(node, FileNode | DirectoryNode):
            raise _LeftOut("link")
        return node if isinstance(node, FileNode) else None

    def _is_listed(self, path: str) -> bool:
        """Return False if a file is found by a name that is not its own, as on disks that ignore case."""
        top, name = os.path.split(path)
        with _here(), self._root.open_directory(display_name(top) or ".") as directory:
            return any(entry.name == name for entry in directory.scan())

    def _merged(self, known: Known, ours: FileNode | None, theirs: bytes | None) -> FileNode | None:
        """Return the file with the changes of both sides since they were equal, or raise _Conflict."""
        digest = "" if theirs is None else revision_of(theirs)
        if digest in (known.digest, _digest(ours)):
            return ours
        if _digest(ours) == known.digest:
            mode, metadata = (ours.mode, ours.metadata) if ours else (_NEW_FILE, None)
            return None if theirs is None else FileNode.of(mode, theirs, metadata)
        base = self._cache.text(known.digest)
        if base is None or ours is None or theirs is None:
            raise _Conflict
        texts = base, ours.load(), theirs
        if not all(map(is_mergeable, texts)):
            raise _Conflict
        merged = merge_texts(*(text.decode("latin-1") for text in texts)).text
        if merged is None:
            raise _Conflict
        return FileNode.of(ours.mode, merged.encode("latin-1"), ours.metadata)

    def _write(self, path: str, ours: FileNode | None, merged: FileNode | None) -> None:
        """Replace a file; raise ConcurrentChange if it is not `ours` any more."""
        if merged == ours:
            return
        with _here():
            if merged is not None and os.path.isdir(os.path.join(self._root.path, path)):
                raise _LeftOut("a directory of this name is here")
            self._apply(Change(path, ours, merged))
        if merged is None:
            self._remove_emptied(path)

    def _remove_emptied(self, path: str) -> None:
        """Remove the directories above a deleted file that have no other entry."""
        with suppress(AgentFSError, ConcurrentChange):  # another thread may be faster
            for top in directories_above(path):
                with self._root.open_directory(display_name(top)) as directory:
                    if directory.scan():
                        return
                self._apply(Change(top, DirectoryNode(), None))

    def _apply(self, change: Change) -> None:
        self._root.apply([change], max_bytes=LARGEST_OBJECT, conflict=begin_again)

    def _keep_conflict(self, path: str, theirs: bytes | None) -> None:
        """Keep the text of the store beside the state, or remove an earlier one."""
        with suppress(OSError):  # the name of another conflict may be in the way; the store has the text too
            if theirs is None:
                self._conflicts.drop(path)
            else:
                self._conflicts.put(path, theirs)


def _parts(paths: Iterable[Known]) -> Iterator[list[Known]]:
    """Yield the paths in lists whose contents fit in memory."""
    part: list[Known] = []
    size = 0
    for known in paths:
        if part and (len(part) == _PART_PATHS or size + known.to_move > _PART_BYTES):
            yield part
            part, size = [], 0
        part.append(known)
        size += known.to_move
    if part:
        yield part


@contextmanager
def _here() -> Generator[None]:
    """Leave a path out if the cache refuses it in the block; a failure of the disk ends the call."""
    try:
        yield
    except AgentFSError as error:
        if error.code in {"io", "timeout", "closed"}:
            raise
        raise _LeftOut(error.code.replace("_", " ")) from None


def _digest(node: FileNode | None) -> str:
    return node.digest if node else ""


def _kinds(ours: FileNode | None, theirs: str, merged: FileNode | None) -> tuple[str, ...]:
    """Return the field of the result that names a path."""
    if _digest(merged) == _digest(ours):
        return ()
    return ("deleted" if merged is None else "pulled" if merged.digest == theirs else "merged",)


def _check_mark(expected: str, found: str) -> None:
    """Raise `conflict` if a store does not have the tree of this cache."""
    if expected not in ("", found):
        raise ConflictError(
            f"The store does not have the tree of this cache: its {MARK} is another one, or gone.",
            hint="Check the URL. To begin with the store as it is, pull it to an empty directory.",
        )
