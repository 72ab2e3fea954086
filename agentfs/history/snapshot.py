"""A snapshot of a tree: the status of each path, and its content by hash, which the store keeps.

It is brought up to date as git's index is. Only directories whose status has changed are listed again, and
only files whose status has changed are read again. So are those that are as young as the snapshot, because a
second change in the same tick leaves the same times.
"""

import json
import os
import stat
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

from agentfs import call_context
from agentfs.errors import AgentFSError, ProtectedError, TooLargeError
from agentfs.fs import (
    Change,
    Directory,
    DirectoryNode,
    DirEntry,
    FileNode,
    LinkNode,
    Node,
    ReadBuffer,
    Root,
    display_name,
    is_second_name,
    node_to_json,
    syscalls,
)
from agentfs.fs.context import TIME_RESOLUTION
from agentfs.fs.ignore_files import OuterRules, read_outer_rules
from agentfs.fs.node import Metadata
from agentfs.history.database import Damage, Statement, checksum, from_bytes, to_bytes, to_json
from agentfs.history.store import Store
from agentfs.history.take_back import is_same_node, read_node
from agentfs.limits import Limits
from agentfs.results import Skipped
from agentfs.text import plural
from agentfs.tree.ignore_sources import DECIDING, with_slash
from agentfs.tree.walk import Walk

_TICK = 20_000_000  # nanoseconds after which a local file system gives a change another time
_LARGEST_INTEGER = 2**63 - 1  # that SQLite stores
_LISTING_COSTS = 32  # paths that a full scan takes in the time in which one directory is listed alone
_CHECKED_TOGETHER = 1000  # paths between two looks at the clock
_PUT = "INSERT OR REPLACE INTO snapshot VALUES (?, ?, ?, ?, ?)"
_DELETE = "DELETE FROM snapshot WHERE path = ?"


class Status(NamedTuple):
    """The `lstat` fields of a path."""

    mode: int
    user: int
    group: int
    size: int = 0
    modified: int = 0
    changed: int = 0
    inode: int = 0
    links: int = 1


class Seen(NamedTuple):
    """A path as it was last seen."""

    node: Node | None  # None if its content is not kept
    status: Status | None  # None if it must be read again
    young: bool = False  # a later change may have left the status as it was
    reason: str = ""  # why its content is not kept


class Basis(NamedTuple):
    """The settings and rule files that decide which paths a scan covers."""

    ignored: bool  # True if ignored files are covered
    limits: tuple[int, int]
    outer_rules: OuterRules
    rule_files: dict[str, Status | None]  # None if a file does not exist
    top: Status | None  # status of the root; None if it was as young as the scan


class Difference(NamedTuple):
    """The difference between a tree and its snapshot."""

    changes: tuple[Change, ...]
    lost: tuple[str, ...]  # changed paths whose content is not kept
    not_covered: dict[str, int]  # numbers of paths without kept content, by reason
    paths: dict[str, Seen]  # all paths as they are now
    is_watched: bool  # events will report later changes
    basis: Basis | None  # None if the next scan must be a full one
    statements: tuple[Statement, ...]  # SQL that stores `paths`


class Snapshot:
    """The tree as it was last seen by a recording. Used under the lock of the journal."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._paths: dict[str, Seen] | None = None
        self._is_watched = False  # events report changes since `_paths` was read
        self._unseen: frozenset[str] | None = (
            None  # directories with paths whose changes events may not report
        )
        self._basis: Basis | None = None
        self._not_covered: dict[str, int] = {}

    @property
    def paths(self) -> dict[str, Seen]:
        """All paths as they were last seen."""
        if self._paths is None:
            self._paths = self._load()
        return self._paths

    def take_over(self, difference: Difference) -> None:
        """Make the tree of a difference the snapshot."""
        if difference.paths is not self._paths:
            self._paths, self._unseen = difference.paths, None
        self._is_watched = difference.is_watched
        self._basis = difference.basis
        self._not_covered = difference.not_covered

    def put(self, path: str, node: Node | None) -> tuple[Statement, ...]:
        """Record the node that the workspace itself left at a path; return the statements that store it."""
        self._unseen = None
        if node is None:
            self.paths.pop(path, None)
        else:
            self.paths[path] = Seen(node, None)
        return self._stored([path], self.paths)

    def difference(
        self, root: Root, limits: Limits, *, ignored: bool, since: int | None = None
    ) -> Difference:
        """Scan the tree and return its difference from the snapshot.

        `since` is the time in nanoseconds from which changes count. With None, nothing is compared: the
        difference only has the present paths.
        """
        old = self.paths
        scan = _Scan(self._store, old, root, limits, ignored=ignored)
        # The events that this scan takes are lost for the next one if this one fails.
        by_events, self._is_watched = self._is_watched, False
        if by_events and self._unseen is None:
            unseen = (path for path, seen in old.items() if _may_change_unseen(seen))
            self._unseen = frozenset(path.rpartition("/")[0] for path in unseen)
        paths = scan.run(self._basis, self._unseen if by_events else None)
        if paths is old:
            return Difference((), (), self._not_covered, old, scan.is_watched, scan.basis, ())
        if scan.partial:
            scan.not_covered["ignored"] += self._not_covered.get("ignored", 0)
        compared = scan.looked_at if scan.partial else {*paths, *old}
        changed = [path for path in compared if old.get(path) is not paths.get(path)]
        changes: list[Change] = []
        lost: list[str] = []
        if since is not None:
            shown = self._came_into_view(changed, paths, since)
            for path in sorted({*changed} - shown):
                before, now = old.get(path), paths.get(path)
                if now is None:
                    now = scan.look_at(path)  # it may still exist, and be ignored now
                if any(seen is not None and seen.node is None for seen in (before, now)):
                    if before is None or now is None or before.status != now.status:
                        lost.append(path)
                    continue
                change = Change(path, before and before.node, now and now.node)
                if not is_same_node(change.before, change.after):
                    changes.append(change)
        return Difference(
            tuple(changes),
            tuple(lost),
            dict(scan.not_covered),
            paths,
            scan.is_watched,
            scan.basis,
            self._stored(changed, paths),
        )

    def _came_into_view(self, changed: list[str], paths: dict[str, Seen], since: int) -> set[str]:
        """Return paths that are not new, but were hidden from earlier scans by ignore rules."""
        if DECIDING.isdisjoint(map(os.path.basename, changed)):
            return set()
        known = {seen.status.inode for seen in self.paths.values() if seen.status is not None}
        found: set[str] = set()
        for path in changed:
            status = paths[path].status if path in paths and path not in self.paths else None
            if status is not None and 0 < status.changed < since - _TICK and status.inode not in known:
                found.add(path)
        return found

    def _stored(self, changed: Iterable[str], paths: dict[str, Seen]) -> tuple[Statement, ...]:
        if self._store.database.temporary:
            return ()
        return tuple(
            (_PUT, _row(path, paths[path])) if path in paths else (_DELETE, (to_bytes(path),))
            for path in changed
        )

    def _load(self) -> dict[str, Seen]:
        if self._store.database.temporary:
            return {}
        found: dict[str, Seen] = {}
        (rows,) = self._store.database.read_checked(("snapshot",), "SELECT * FROM snapshot")
        for path, digest, node, status, check in rows:
            if check != checksum(path, node, status):
                raise Damage("a row of the snapshot is invalid")
            *facts, young = json.loads(status) or [False]
            kept = self._store.node_from_json(json.loads(node))
            if digest is not None and not (isinstance(kept, FileNode) and kept.digest == digest.hex()):
                raise Damage("a row of the snapshot is invalid")
            found[from_bytes(path)] = Seen(kept, Status(*facts) if facts else None, bool(young))
        return found


def _row(path: str, seen: Seen) -> tuple[bytes | int | None, ...]:
    digest = bytes.fromhex(seen.node.digest) if isinstance(seen.node, FileNode) else None
    node = to_json(node_to_json(seen.node))
    status = to_json([*(seen.status or ()), seen.young])
    key = to_bytes(path)
    return key, digest, node, status, checksum(key, node, status)


class _Scan:
    """A scan of the tree, which keeps the content of changed files."""

    def __init__(
        self, store: Store, old: dict[str, Seen], root: Root, limits: Limits, *, ignored: bool
    ) -> None:
        self._store, self._old, self._root, self._limits = store, old, root, limits
        self._ignored = ignored
        self._bytes = 0  # size of the kept contents
        self._buffer = ReadBuffer(limits.file_bytes)
        self._young_after = 0
        self._paths: dict[str, Seen] = {}
        self._rule_files: set[str] = set()
        self._top = -1  # descriptor of the root
        self.not_covered = Counter[str]()
        self.partial = False  # True if only directories that had changed were scanned
        self.looked_at: set[str] = set()  # the paths that a partial scan has compared
        self.is_watched = False  # events will report later changes
        self.basis: Basis | None = None

    def run(self, basis: Basis | None, unseen: frozenset[str] | None) -> dict[str, Seen]:
        """Return the present state of all paths that a search with hidden files covers.

        With the basis of the last scan, only directories that have changed since are read: those with events
        and the `unseen` ones, whose changes events may not report. If `unseen` is None, no events are known,
        and directories with another status are read.
        """
        root = self._root.top
        with root.open_directory(".") as top, root.watching() as current:
            self._top = top.handle
            local = not syscalls.without_events(top.handle)
            self._young_after = time.time_ns() - (_TICK if local else TIME_RESOLUTION)
            now = self._present_basis(root, () if basis is None else basis.rule_files)
            tree = None if current.tree is None else root.watch
            events = None if tree is None else tree.take_touched()
            if basis is None or basis[:-1] != now[:-1]:
                touched = None
            elif unseen is not None and events is not None:
                touched = events | unseen
            else:
                if tree is not None:
                    self._watch(current, ["."])
                touched = self._directories_with_another_status()
                if now.top != basis.top:
                    touched.add("")
            if touched is not None and len(touched) * _LISTING_COSTS > len(self._old):
                touched = None
            if self._is_young(now.top):
                now = now._replace(top=None)
            if touched is not None and (not touched or self._look_into(current, touched, now)):
                self.partial, self.basis = True, now
            else:
                if tree is not None:
                    self._watch(current, ["."])
                self._take_all(root.unwatched)
                after = self._present_basis(root, self._rule_files)
                is_final = not any(map(self._is_young, after.rule_files.values()))
                self.basis = after._replace(top=now.top) if is_final else None
            unchanged = touched is not None and not touched
            # The report looks at every directory. Without a change, events still report what they did.
            self.is_watched = tree is not None and (
                (unchanged and unseen is not None) or not tree.report.not_watched
            )
            if unchanged:
                return self._old
        self.not_covered.update(seen.reason for seen in self._paths.values() if seen.reason)
        return self._paths

    def _present_basis(self, root: Root, rule_files: Iterable[str]) -> Basis:
        return Basis(
            self._ignored,
            (self._limits.file_bytes, self._limits.snapshot_bytes),
            read_outer_rules(root.path),
            {path: self._status_of_rule_file(path) for path in rule_files},
            self._status_of("."),
        )

    def _status_of(self, path: str) -> Status | None:
        try:
            return _status(syscalls.lstat(self._top, path))
        except OSError:
            return None

    def _status_of_rule_file(self, path: str) -> Status | None:
        status = self._status_of(path)
        if status is not None and stat.S_ISDIR(status.mode):  # `.git`, whose times each call of git changes
            return Status(status.mode, status.user, status.group)
        return status

    def _is_young(self, status: Status | None) -> bool:
        return status is not None and max(status.modified, status.changed) >= self._young_after

    def _directories_with_another_status(self) -> set[str]:
        """Return the directories whose status, or the status of a path in them, is not the one last seen."""
        touched: set[str] = set()
        gone: set[str] = set()
        for count, (path, seen) in enumerate(self._old.items()):
            if count % _CHECKED_TOGETHER == 0:
                call_context.check()
            # A directory above may have been replaced by a link that leads out of the root. Then it has
            # another status too, and is read through the confined walk.
            status = self._status_of(path)
            if status is None or status != seen.status or seen.young:
                touched.add(path.rpartition("/")[0])
                if status is None or not stat.S_ISDIR(status.mode):
                    gone.add(path)
                else:
                    touched.add(path)
        return touched - gone

    def _take_all(self, root: Root) -> None:
        self._paths.clear()
        self._rule_files.clear()
        self._bytes = 0
        skipped = self._take_below(root, ["."])
        self.not_covered.update(ignored=skipped.ignored, unreadable=skipped.unreadable)

    def _watch(self, current: Root, paths: Sequence[str]) -> None:
        """Watch directories and all below them."""
        for _ in self._walk(current, paths):
            pass

    def _look_into(self, current: Root, touched: set[str], basis: Basis) -> bool:
        """Scan only some directories; return False if a full scan is necessary."""
        old, plain = self._old, current.unwatched
        touched = {path for path in touched if not path or _is_directory(old.get(path))}
        if any(self._status_of(path or ".") is None for path in touched):
            return False
        children = [path for path in old if path.rpartition("/")[0] in touched]
        self._paths = old.copy()
        for path in children:
            del self._paths[path]
        left = len(self._paths)
        self._bytes = sum(seen.node.size for seen in self._paths.values() if isinstance(seen.node, FileNode))
        self._take_below(plain, [display_name(directory) or "." for directory in sorted(touched)], depth=1)
        if any(_is_directory(old[path]) and not _is_directory(self._paths.get(path)) for path in children):
            return False
        for path in [*islice(self._paths, left, None)]:
            if _is_directory(self._paths[path]) and not _is_directory(old.get(path)):
                if current.tree is not None:
                    self._watch(current, [display_name(path)])
                self._take_below(plain, [display_name(path)])
        self.looked_at = {*children, *islice(self._paths, left, None)}
        return all(self._status_of_rule_file(path) == basis.rule_files.get(path) for path in self._rule_files)

    def _walk(self, root: Root, paths: Sequence[str], depth: int = 0) -> Walk:
        return Walk(
            root,
            paths,
            max_entries=self._limits.walk_entries,
            hidden=True,
            ignored=self._ignored,
            others=True,
            directories=True,
            depth=depth,
        )

    def _take_below(self, root: Root, paths: Sequence[str], depth: int = 0) -> Skipped:
        """Take the entries below some directories, and return what was left out."""
        walk = self._walk(root, paths, depth)
        for visit in walk:
            base = with_slash(visit.directory.real_path)
            if visit.child is not None:
                self._take_directory(base + visit.child.name, visit.child)
            self._take(visit.directory, base, visit.files)
        self._rule_files |= walk.rule_files
        skipped = walk.skipped
        if skipped.reached is not None:
            raise TooLargeError(
                f"The tree has more than {plural(self._limits.walk_entries, 'name')}, or a directory with too"
                " many, so its changes cannot be recorded.",
                hint="Open the workspace on a smaller directory, or raise Limits.walk_entries.",
                details={"limit": self._limits.walk_entries},
            )
        return skipped

    def look_at(self, path: str) -> Seen | None:
        """Return the present state of a path that the scan did not find."""
        try:
            node = read_node(self._root, path, self._limits.file_bytes)
        except AgentFSError:
            return Seen(None, None)
        return None if node is None else Seen(self._store.keep_node(node), None)

    def _take_directory(self, path: str, entry: DirEntry) -> None:
        status = _status(entry.stat(follow_symlinks=False))
        known = self._old.get(path)
        if known is None or known.status != status or known.young:
            mode = stat.S_IMODE(status.mode)
            node = DirectoryNode(mode, Metadata(mode, (status.user, status.group)))
            known = Seen(node, status, self._is_young(status))
        self._paths[path] = known

    def _take(self, directory: Directory, base: str, entries: Iterable[DirEntry]) -> None:
        """Take the files of a directory; read those that may have changed."""
        to_read: list[DirEntry] = []
        for entry in entries:
            path = base + entry.name
            if is_second_name(entry.name):
                continue
            try:
                status = _status(entry.stat(follow_symlinks=False))
            except OSError:
                continue  # the file was just removed
            known = self._old.get(path)
            if known is not None and known.node is not None and known.status == status and not known.young:
                self._paths[path] = known
                self._count(known)
            elif stat.S_ISREG(status.mode):
                to_read.append(entry)
            elif stat.S_ISLNK(status.mode):
                try:
                    self._paths[path] = Seen(
                        LinkNode(syscalls.readlink(directory.handle, entry.name)), status
                    )
                except OSError:
                    self._leave_out(path, status, "special")
            else:
                self._leave_out(path, status, "special")
        if not to_read:
            return
        for entry, outcome in directory.read_files(to_read, self._read):
            path = base + entry.name
            if isinstance(outcome, tuple):
                self._keep(path, *outcome)
            elif not isinstance(outcome, FileNotFoundError):
                reason = "protected" if isinstance(outcome, ProtectedError) else "unreadable"
                self._leave_out(path, _status(entry.stat(follow_symlinks=False)), reason)

    def _read(self, fd: int) -> tuple[os.stat_result, bytes | None]:
        """Return the status and content of a file, or no content if the file is too large."""
        status = os.fstat(fd)
        large = self._buffer.fill(fd) < 0
        return status, None if large else self._buffer.copy()

    def _keep(self, path: str, found: os.stat_result, data: bytes | None) -> None:
        status = _status(found)
        if data is None:
            self._leave_out(path, status, "too large")
            return
        if self._bytes + len(data) > self._limits.snapshot_bytes:
            self._leave_out(path, status, "over Limits.snapshot_bytes")
            return
        node = FileNode.of(status.mode, data, Metadata(status.mode & 0o777, (status.user, status.group)))
        known = self._old.get(path)
        if known is not None and isinstance(known.node, FileNode) and known.node == node:
            kept: Node = replace(known.node, metadata=node.metadata)
        else:
            kept = self._store.keep_node(node, compressed=True)
        # A file that has grown since `fstat` is young too, so the next scan reads it again.
        young = self._is_young(status) or len(data) != status.size
        self._paths[path] = seen = Seen(kept, status, young)
        self._count(seen)

    def _leave_out(self, path: str, status: Status, reason: str) -> None:
        self._paths[path] = Seen(None, status, reason=reason)

    def _count(self, seen: Seen) -> None:
        if isinstance(seen.node, FileNode):
            self._bytes += seen.node.size


def _status(found: os.stat_result) -> Status:
    return Status(
        found.st_mode,
        found.st_uid,
        found.st_gid,
        found.st_size,
        found.st_mtime_ns,
        found.st_ctime_ns,
        found.st_ino & _LARGEST_INTEGER,
        found.st_nlink,
    )


def _is_directory(seen: Seen | None) -> bool:
    return seen is not None and isinstance(seen.node, DirectoryNode)


def _may_change_unseen(seen: Seen) -> bool:
    """Return True if no event may tell of a change: of a hard link, or before the events began."""
    return seen.young or seen.status is None or (seen.status.links > 1 and not _is_directory(seen))
