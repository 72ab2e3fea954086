"""A snapshot of a tree: the status of each path, and its content by hash, which the store keeps.

It is brought up to date as git's index is. Only directories whose status has changed are listed again, and
only files whose status has changed are read again. So are those that are as young as the snapshot, because a
second change in the same tick leaves the same times. In a watched tree, only directories with events are
looked at, and those in which a file may change without an event.
"""

import json
import os
import stat
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

from agentfs.base import call_context
from agentfs.errors import AccessError, AgentFSError, PathError, ProtectedError, TooLargeError
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
    directories_above,
    display_name,
    is_temporary_name,
    node_to_json,
    syscalls,
)
from agentfs.fs.context import TIME_RESOLUTION, file_clock, is_settled
from agentfs.fs.ignore_files import OuterRules, read_outer_rules
from agentfs.fs.node import Metadata
from agentfs.history.recordings.seen_tree import Seen, SeenTree, Status
from agentfs.history.storage.contents import Contents
from agentfs.history.storage.database import Damage, Statement, checksum, from_bytes, stored_json, to_bytes
from agentfs.history.take_back import is_same_node, read_node
from agentfs.limits import Limits
from agentfs.text import plural
from agentfs.tree.ignore_sources import DECIDING, with_slash
from agentfs.tree.walk import VCS_NAMES, Walk

_IGNORED, _VCS = "ignored", "version control"
_LEFT_OUT = {_IGNORED, _VCS}  # reasons of names that the recording does not look into
_WITH_CONTENT = {stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK}
_LISTING_COSTS = 32  # paths that a full scan takes in the time in which one directory is listed alone
_CHECKED_TOGETHER = 1000  # paths between two looks at the clock
_PUT = "INSERT OR REPLACE INTO snapshot VALUES (?, ?, ?, ?, ?)"
_DELETE = "DELETE FROM snapshot WHERE path = ?"


class Basis(NamedTuple):
    """The settings and rule files that decide which paths a scan covers."""

    ignored: bool  # True if ignored files are covered
    limits: tuple[int, int]
    outer_rules: dict[str, OuterRules]  # by tree
    rule_files: dict[str, Status | None]  # None if a file does not exist
    top: Status | None  # status of the root; None if it was as young as the scan


class Difference(NamedTuple):
    """The difference between a tree and its snapshot."""

    changes: tuple[Change, ...]
    lost: tuple[str, ...]  # changed paths that undo leaves as they are
    left_out: Counter[str]  # numbers of directories that the scan did not enter, by reason
    paths: SeenTree  # all paths as they are now
    basis: Basis | None  # None if the next scan must be a full one
    again: set[str] | None  # directories in which events may not report each later change; None: all
    statements: tuple[Statement, ...]  # SQL that stores `paths`

    @property
    def not_covered(self) -> dict[str, int]:
        """Numbers of paths without kept content, by reason."""
        reasons = self.paths.reasons + self.left_out
        del reasons[_VCS]
        return dict(reasons)


class Snapshot:
    """The tree as it was last seen by a recording.

    Used under the lock of the journal, except `difference`, which only one thread calls at a time.
    """

    def __init__(self, store: Contents) -> None:
        self._store = store
        self._paths: SeenTree | None = None
        self._basis: Basis | None = None
        self._left_out = Counter[str]()
        self.own_inodes: set[int] = set()  # of files that the workspace has moved or replaced
        self._is_reported = False  # only directories of `_again` may have changed without an event
        self._again: set[str] = set()

    @property
    def paths(self) -> SeenTree:
        """All paths as they were last seen."""
        if self._paths is None:
            self._paths = self._load()
        return self._paths

    def take_over(self, difference: Difference) -> None:
        """Make the tree of a difference the snapshot."""
        self._paths = difference.paths
        self._basis = difference.basis
        self._left_out = difference.left_out
        self.own_inodes = set()
        self._is_reported = difference.again is not None
        self._again = difference.again or set()

    def put(self, path: str, node: Node | None) -> tuple[Statement, ...]:
        """Record the node that the workspace itself left at a path; return the statements that store it."""
        self._again.add(os.path.dirname(path))
        known = self.paths.get(path)
        if known is not None and known.node is not None and known.status is not None:
            self.own_inodes.add(known.status.inode)
        self.paths.put(path, None if node is None else Seen(node, None))
        return self._stored([path], self.paths)

    def difference(
        self, old: SeenTree, root: Root, limits: Limits, *, ignored: bool, since: int | None = None
    ) -> Difference:
        """Scan the tree and return its difference from `old`, a copy of `paths`.

        `since` is the time of the file clock from which changes count. With None, nothing is compared: the
        difference only has the present paths.
        """
        root = root.top
        with root.watching() as current:
            touched = None if current.tree is None else current.tree.take_touched()
        if touched is None:
            self._is_reported = False
        else:
            self._again |= touched  # also for the next scan, if this one fails
        root.check_open()
        scan = _Scan(self._store, old, root.unwatched, limits, ignored=ignored)
        paths = scan.run(self._basis, self._again.copy() if self._is_reported else None)
        again = scan.directories_to_look_at_again(root)
        if scan.partial:
            scan.left_out |= self._left_out
        changed = paths.changed_since(old)
        comparison = _Comparison(scan, old, paths, self.own_inodes)
        if since is not None and changed:
            comparison.run(changed, since)
        statements = self._stored(changed, paths)
        return Difference(
            tuple(comparison.changes),
            tuple(comparison.lost),
            scan.left_out,
            paths,
            scan.basis,
            again,
            statements,
        )

    def amended(self, difference: Difference, root: Root, limits: Limits, own: Iterable[str]) -> Difference:
        """Return a difference with the present state of paths that the workspace changed during the scan."""
        own = set(own)
        changes = [each for each in difference.changes if each.path not in own]
        for path in own:
            known, now = self.paths.get(path), _present(self._store, root.top, path, limits)
            difference.paths.put(path, now)
            change = Change(path, known and known.node, now and now.node)
            if not is_same_node(change.before, change.after):
                changes.append(change)
        return difference._replace(
            changes=tuple(changes),
            lost=tuple(path for path in difference.lost if path not in own),
            again=None if difference.again is None else {*difference.again, *map(os.path.dirname, own)},
            statements=(*difference.statements, *self._stored(own, difference.paths)),
        )

    def _stored(self, changed: Iterable[str], paths: SeenTree) -> tuple[Statement, ...]:
        if self._store.database.temporary:
            return ()
        rows = ((path, paths.get(path)) for path in changed)
        return tuple(
            (_DELETE, (to_bytes(path),)) if seen is None else (_PUT, _row(path, seen)) for path, seen in rows
        )

    def _load(self) -> SeenTree:
        found = SeenTree()
        if self._store.database.temporary:
            return found
        (rows,) = self._store.database.read_checked(("snapshot",), "SELECT * FROM snapshot")
        for path, digest, node, status, check in rows:
            if check != checksum(path, node, status):
                raise Damage("a row of the snapshot is invalid")
            *facts, young = json.loads(status) or [False]
            kept = self._store.node_from_json(json.loads(node))
            if digest is not None and not (isinstance(kept, FileNode) and kept.digest == digest.hex()):
                raise Damage("a row of the snapshot is invalid")
            found.put(from_bytes(path), Seen(kept, Status(*facts) if facts else None, bool(young)))
        return found


def _row(path: str, seen: Seen) -> tuple[bytes | int | None, ...]:
    digest = bytes.fromhex(seen.node.digest) if isinstance(seen.node, FileNode) else None
    node = stored_json(node_to_json(seen.node))
    status = stored_json([*(seen.status or ()), seen.young])
    key = to_bytes(path)
    return key, digest, node, status, checksum(key, node, status)


def _present(store: Contents, root: Root, path: str, limits: Limits) -> Seen | None:
    """Return the present state of a path that a scan did not find."""
    status: Status | None = None
    with suppress(OSError):
        status = Status.of(root.trees.status(path))
    try:
        node = read_node(root, path, limits.file_bytes)
    except AgentFSError:
        return Seen(None, None)
    return None if node is None else Seen(store.keep_node(node), status, young=True)


def _birth_time(handle: int, path: str) -> int | None:
    """Return when a file was created; None on a file system that copies old files."""
    return None if syscalls.file_system(handle) == syscalls.OVERLAY else syscalls.birth_time(handle, path)


class _Comparison:
    """The comparison of two states of a tree, which decides what undo may take back.

    Undo deletes what a step has created, and overwrites what it has changed. A file whose content may come
    from a place that the recording does not cover could be the only copy of that content. Such files, and
    those whose content is not kept, are `lost`: undo leaves them as they are.
    """

    def __init__(self, scan: "_Scan", old: SeenTree, paths: SeenTree, own_inodes: set[int]) -> None:
        self._scan, self._old, self._paths = scan, old, paths
        self._own_inodes = own_inodes
        self.changes: list[Change] = []
        self.lost: list[str] = []

    def run(self, changed: Sequence[str], since: int) -> None:
        """Compare the changed paths, which are sorted; `since` is the time at which the recording began."""
        now: dict[str, Seen | None] = {}
        for path in changed:
            call_context.check()
            now[path] = self._present(path)
        vanished = self._has_vanished(now)
        rules_changed = not DECIDING.isdisjoint(map(os.path.basename, changed))
        arrived = ""  # a directory that may have existed before
        for path in changed:
            call_context.check()
            before, after = self._old.get(path), now[path]
            if any(seen is not None and seen.node is None for seen in (before, after)):
                if after is None or (
                    after.reason not in _LEFT_OUT and (before is None or before.status != after.status)
                ):
                    self.lost.append(path)
                continue
            change = Change(path, before and before.node, after and after.node)
            if is_same_node(change.before, change.after):
                continue
            status = None if after is None or _have_same_content(change) else after.status
            old_status = None if before is None else before.status
            if status is not None and (old_status is None or old_status.inode != status.inode):
                if arrived and path.startswith(arrived) and status.inode not in self._known_inodes:
                    continue
                is_directory = isinstance(change.after, DirectoryNode)
                is_new = self._scan.is_newer(path, status, since, trust_times=not rules_changed)
                may_be_old = not is_new or (vanished and before is None and not is_directory)
                if may_be_old and status.inode not in self._known_inodes:
                    self.lost.append(path)
                    arrived = f"{path}/" if is_directory else arrived
                    continue
            self.changes.append(change)

    @cached_property
    def _known_inodes(self) -> set[int]:
        """The inodes of all files whose content is kept; rarely needed, because this takes a look at each."""
        kept = (seen.status for _, seen in self._old.items() if seen.node is not None)
        return {status.inode for status in kept if status is not None} | self._own_inodes

    def _present(self, path: str) -> Seen | None:
        """Return the present state of a changed path, also if the scan left it out."""
        before, now = self._old.get(path), self._paths.get(path)
        if before is None or (now is not None and now.reason not in _LEFT_OUT):
            return now
        if before.node is not None:
            return self._scan.look_at(path)  # it may still exist, and be ignored now
        if now is None and self._scan.status_of(path) is not None:
            return Seen(None, before.status, reason=_IGNORED)
        return now

    def _has_vanished(self, now: dict[str, Seen | None]) -> bool:
        """Return True if content that was not kept is at no path any more that is not kept."""
        for path, after in now.items():
            before = self._old.get(path)
            if before is None or before.node is not None or before.status is None:
                continue
            if after is not None and after.reason in _LEFT_OUT:
                continue
            inode, size = before.status.inode, self._unkept_sizes.get(before.status.inode, -1)
            if after is not None and after.status is not None and after.status.inode == inode:
                size = after.status.size
            if size < before.status.size and stat.S_IFMT(before.status.mode) in _WITH_CONTENT:
                return True
        return False

    @cached_property
    def _unkept_sizes(self) -> dict[int, int]:
        """The sizes of all present files whose content is not kept, by inode."""
        others = (seen.status for _, seen in self._paths.items() if seen.node is None)
        return {status.inode: status.size for status in others if status is not None}


class _Scan:
    """A scan of the tree, which keeps the content of changed files."""

    def __init__(self, store: Contents, old: SeenTree, root: Root, limits: Limits, *, ignored: bool) -> None:
        self._store, self._old, self._root, self._limits = store, old, root, limits
        self._ignored = ignored
        self._buffer = ReadBuffer(limits.file_bytes)
        self._paths = SeenTree()
        self._rule_files: set[str] = set()
        self._is_local = not any(syscalls.without_events(tree.handle.fd) for tree in root.trees)
        # A change after this time may be missed unless the times before it are settled.
        self._began = file_clock() - (0 if self._is_local else TIME_RESOLUTION)
        self.left_out = Counter[str]()
        self.partial = False  # True if only directories that had changed were scanned
        self.basis: Basis | None = None
        self._touched: set[str] | None = None  # directories that events tell to look at; None: all

    def run(self, basis: Basis | None, again: set[str] | None) -> SeenTree:
        """Return the present state of all paths that a search with hidden files covers.

        With the basis of the last scan, only directories that have changed since are listed. They are found
        in `again` by events. With None, the status of every path is compared.
        """
        again = None if again is None else {path for path in again if self._may_list(path)}
        now = self._present_basis(() if basis is None else basis.rule_files)
        touched: set[str] | None = None
        if basis is not None and basis[:-1] == now[:-1]:
            touched = self._directories_to_list(again)
            if now.top != basis.top:
                touched.add("")
            if self._is_too_much(touched):
                touched = None
        if self._is_young(now.top):
            now = now._replace(top=None)
        with suppress(PathError, AccessError):  # if a directory has just vanished, scan the whole tree
            self.partial = touched is not None and (not touched or self._look_into(touched, now))
        if self.partial:
            self.basis = now
            if not touched:
                self._paths = self._old
            if touched is not None and again is not None and again <= touched:
                self._touched = touched
            return self._paths
        self._paths = SeenTree()
        self._paths.changed |= self._old.directories.keys()
        self._rule_files.clear()
        self.left_out.clear()
        self._take_below(["."])
        after = self._present_basis(self._rule_files)
        is_final = not any(map(self._is_young, after.rule_files.values()))
        self.basis = after._replace(top=now.top) if is_final else None
        return self._paths

    def look_at(self, path: str) -> Seen | None:
        """Return the present state of a path that the scan did not find."""
        return _present(self._store, self._root, path, self._limits)

    def is_newer(self, path: str, status: Status, since: int, *, trust_times: bool) -> bool:
        """Return True if a file was certainly created after a time of the file clock.

        Without a birth time, its other times decide. They are wrong if it was moved after it was changed, so
        `trust_times` is False if it may have come into view in another way.
        """
        birth: int | None = None
        if self._is_local:
            with suppress(OSError):
                birth = self._root.trees.at(_birth_time, path)
        if birth is not None:
            return birth > since
        return trust_times and min(status.modified, status.changed) > since

    def _present_basis(self, rule_files: Iterable[str]) -> Basis:
        return Basis(
            self._ignored,
            (self._limits.file_bytes, self._limits.snapshot_bytes),
            read_outer_rules(self._root.trees),
            {path: self._status_of_rule_file(path) for path in rule_files},
            self.status_of("."),
        )

    def status_of(self, path: str) -> Status | None:
        try:
            return Status.of(self._root.trees.status(path))
        except OSError:
            return None

    def _status_of_rule_file(self, path: str) -> Status | None:
        status = self.status_of(path)
        if status is not None and stat.S_ISDIR(status.mode):  # `.git`, whose times each call of git changes
            return Status(status.mode, status.user, status.group)
        return status

    def _is_young(self, status: Status | None) -> bool:
        return status is not None and not is_settled(max(status.modified, status.changed), self._began)

    def directories_to_look_at_again(self, root: Root) -> set[str] | None:
        """Watch the scanned directories; return those in which a path may change without an event.

        Return None if the tree is not watched.
        """
        if root.watch is None:
            return None
        paths, touched = self._paths, self._touched
        if touched == set():
            return touched
        if touched is None:
            entries = [*paths.items()]
        else:
            own = ((path, paths.get(path)) for path in touched)
            entries = [*paths.items(paths.changed), *((path, seen) for path, seen in own if seen is not None)]
        directories = {"", *(path for path, seen in entries if _is_directory(seen))}
        if touched is not None:
            directories.update(above for path, _ in entries for above in directories_above(path))
        with root.watching() as current:
            if current.tree is None:
                return None
            again = directories - current.tree.watched(directories)
        return again.union(os.path.dirname(path) for path, seen in entries if _may_change_unseen(seen))

    def _directories_to_list(self, again: set[str] | None) -> set[str]:
        """Return `again`, and the directories with another status than the one last seen, or such a path.

        Only the status of the directories in `again` is compared, unless it is None.
        """
        if again is not None and self._is_too_much(again):
            again = None
        touched: set[str] = set() if again is None else again.copy()
        gone: set[str] = set()
        listed = self._old.items() if again is None else ((path, self._old.get(path)) for path in again)
        for count, (path, seen) in enumerate(listed):
            if count % _CHECKED_TOGETHER == 0:
                call_context.check()
            if seen is None or seen.reason in _LEFT_OUT:
                continue
            # A directory above may have been replaced by a link that leads out of the root. Then it has
            # another status too, and is read through the confined walk.
            status = self.status_of(path)
            if status is None or status != seen.status or seen.young:
                touched.add(path.rpartition("/")[0])
                if status is None or not stat.S_ISDIR(status.mode):
                    gone.add(path)
                else:
                    touched.add(path)
        return touched - gone

    def _is_too_much(self, directories: set[str]) -> bool:
        """Return True if a scan of these directories takes longer than a full one."""
        return len(directories) * _LISTING_COSTS > self._old.count

    def _may_list(self, path: str) -> bool:
        return not path or _is_directory(self._old.get(path))

    def _look_into(self, touched: set[str], basis: Basis) -> bool:
        """Scan only some directories; return False if a full scan is necessary."""
        old = self._old
        touched = {path for path in touched if self._may_list(path)}
        self._paths = old.copy()
        for directory in touched:
            self._paths.clear(directory)
        self._take_below([display_name(directory) or "." for directory in sorted(touched)], depth=1)
        created: list[str] = []
        for directory in touched:
            before, now = old.entries(directory), self._paths.entries(directory)
            for name in before.keys() | now.keys():
                was, is_now = _is_directory(before.get(name)), _is_directory(now.get(name))
                if was and not is_now:
                    return False
                if is_now and not was:
                    created.append(display_name(with_slash(directory) + name))
        self._take_below(created)
        return all(self._status_of_rule_file(path) == basis.rule_files.get(path) for path in self._rule_files)

    def _take_below(self, paths: Sequence[str], depth: int = 0) -> None:
        """Take the entries below some directories."""
        walk = Walk(
            self._root,
            paths,
            max_entries=self._limits.walk_entries,
            deadline=call_context.deadline(),
            hidden=True,
            ignored=self._ignored,
            others=True,
            directories=True,
            depth=depth,
            on_left_out=self._take_left_out,
        )
        for visit in walk:
            call_context.check()
            base = with_slash(visit.directory.real_path)
            if visit.child is not None:
                self._take_directory(base + visit.child.name, visit.child)
            self._take(visit.directory, base, visit.files)
        self._rule_files |= walk.rule_files
        skipped = walk.skipped
        self.left_out += Counter({"unreadable": skipped.unreadable, "too deep": skipped.too_deep})
        if skipped.reached is not None:
            call_context.check()
            raise TooLargeError(
                f"The tree has more than {plural(self._limits.walk_entries, 'name')}, or a directory with too"
                " many, so its changes cannot be recorded.",
                hint="Open the workspace on a smaller directory, or raise Limits.walk_entries.",
                details={"limit": self._limits.walk_entries},
            )

    def _take_left_out(self, directory: Directory, entries: Sequence[DirEntry]) -> None:
        """Take names that the recording does not cover, to notice if one of them vanishes."""
        base = with_slash(directory.real_path)
        for entry in entries:
            if (status := _status_of_entry(entry)) is not None:
                # Changes of these files and directories do not count, except that they vanish.
                identity = Status(stat.S_IFMT(status.mode), 0, 0, inode=status.inode)
                reason = _VCS if entry.name.lower() in VCS_NAMES else _IGNORED
                path, seen = base + entry.name, Seen(None, identity, reason=reason)
                known = self._old.get(path)
                self._paths.put(path, seen if known is None or known != seen else known)

    def _take_directory(self, path: str, entry: DirEntry) -> None:
        status = _status_of_entry(entry)
        if status is None:
            return
        known = self._old.get(path)
        if known is None or known.status != status or known.young:
            mode = stat.S_IMODE(status.mode)
            node = DirectoryNode(mode, Metadata(mode, (status.user, status.group)))
            known = Seen(node, status, self._is_young(status))
        self._paths.put(path, known)

    def _take(self, directory: Directory, base: str, entries: Iterable[DirEntry]) -> None:
        """Take the files of a directory; read those that may have changed."""
        to_read: dict[DirEntry, Status] = {}
        for entry in entries:
            path = base + entry.name
            status = None if is_temporary_name(entry.name) else _status_of_entry(entry)
            if status is None:
                continue
            known = self._old.get(path)
            if known is not None and known.node is not None and known.status == status and not known.young:
                self._paths.put(path, known)
            elif stat.S_ISREG(status.mode):
                to_read[entry] = status
            elif stat.S_ISLNK(status.mode):
                try:
                    node = LinkNode(syscalls.readlink(directory.handle, entry.name))
                    self._paths.put(path, Seen(node, status, self._is_young(status)))
                except OSError:
                    self._leave_out(path, status, "special")
            else:
                self._leave_out(path, status, "special")
        if not to_read:
            return
        for entry, outcome in directory.read_files([*to_read], self._read):
            call_context.check()
            path = base + entry.name
            if isinstance(outcome, tuple):
                self._keep(path, *outcome)
            elif not isinstance(outcome, FileNotFoundError):
                reason = "protected" if isinstance(outcome, ProtectedError) else "unreadable"
                self._leave_out(path, to_read[entry], reason)

    def _read(self, fd: int) -> tuple[os.stat_result, bytes | None]:
        """Return the status and content of a file, or no content if the file is too large."""
        status = os.fstat(fd)
        large = self._buffer.fill(fd) < 0
        return status, None if large else self._buffer.copy()

    def _keep(self, path: str, found: os.stat_result, data: bytes | None) -> None:
        status = Status.of(found)
        if data is None:
            self._leave_out(path, status, "too large")
            return
        if self._paths.size + len(data) > self._limits.snapshot_bytes:
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
        self._paths.put(path, Seen(kept, status, young))

    def _leave_out(self, path: str, status: Status, reason: str) -> None:
        self._paths.put(path, Seen(None, status, reason=reason))


def _have_same_content(change: Change) -> bool:
    before, after = change.before, change.after
    return isinstance(before, FileNode) and isinstance(after, FileNode) and before.digest == after.digest


def _status_of_entry(entry: DirEntry) -> Status | None:
    """Return the status of a listed name; None if it has just vanished."""
    try:
        return Status.of(entry.stat(follow_symlinks=False))
    except OSError:
        return None


def _may_change_unseen(seen: Seen) -> bool:
    """Return True if a path may change without an event in its directory, or has changed before it began."""
    return seen.young or seen.status is None or (seen.status.links > 1 and not _is_directory(seen))


def _is_directory(seen: Seen | None) -> bool:
    return seen is not None and isinstance(seen.node, DirectoryNode)
