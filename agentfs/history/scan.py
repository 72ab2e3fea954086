"""A scan of a tree: each path with its status and its content, which the content store keeps.

A file whose status has not changed since the last scan is not read again. A file that changed shortly before
that scan, or during it, is read: a second change in the same tick of the clock would leave the same times.
"""

import os
import stat
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from operator import attrgetter
from typing import NamedTuple, Self

from agentfs.base import call_context
from agentfs.base.advice import plural
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
    directories_above,
    display_name,
    is_temporary_name,
    syscalls,
)
from agentfs.fs.context import TIME_RESOLUTION, file_clock, is_settled
from agentfs.fs.node import Metadata
from agentfs.history.database import Contents
from agentfs.history.log import is_same_node
from agentfs.history.step_merge import read_node
from agentfs.limits import Limits
from agentfs.tree.ignore_sources import with_slash
from agentfs.tree.walk import VCS_NAMES, Walk
from agentfs.watch.inotify import without_events

_IGNORED, _VCS = "ignored", "version control"
LEFT_OUT = {_IGNORED, _VCS}  # reasons for which a scan does not read contents
UNSEEN = {"unreadable", "too deep"}  # reasons for which a scan may miss a change
_STORES = {"objects", "lfs"}  # of git; a change there goes with one elsewhere
_MOST_NAMED = 20  # changed paths of an ignored directory
_FIELDS = attrgetter("st_mode", "st_uid", "st_gid", "st_size", "st_mtime_ns", "st_ctime_ns", "st_ino")
_LARGEST_INTEGER = 2**63 - 1  # that SQLite and JSON readers store


class Status(NamedTuple):
    """The `lstat` fields of a path."""

    mode: int
    user: int
    group: int
    size: int = 0
    modified: int = 0
    changed: int = 0
    inode: int = 0

    @classmethod
    def of(cls, found: os.stat_result) -> Self:
        """Return the fields of a result of `lstat`."""
        *facts, inode = _FIELDS(found)
        return cls._make((*facts, inode & _LARGEST_INTEGER))


class Seen(NamedTuple):
    """A path as it was last seen."""

    node: Node | None  # None if its content is not kept
    status: Status | None = None  # None if it must be read again
    young: bool = False  # a later change may have left the status as it was
    reason: str = ""  # why its content is not kept

    @property
    def compared(self) -> Status | None:
        """The part of the status that tells whether a path has changed, of a directory without its times."""
        status = self.status
        return status if status is None or not stat.S_ISDIR(status.mode) else Status(*status[:3])


class Basis(NamedTuple):
    """The facts besides `Seen` that decide what a scan finds, and its `left_out`."""

    ignored: bool
    limits: Limits
    top: Status | None  # None if a later change of the root may have left it as it was
    left_out: Counter[str]


class Scan:
    """One scan of the tree.

    Attributes:
        paths: What was found; the root has the path "".
        left_out: Counts of what was not entered.
        touched: After `difference`, the files whose time alone differs.
    """

    def __init__(
        self,
        store: Contents,
        old: dict[str, Seen],
        root: Root,
        limits: Limits,
        last: "Basis | None" = None,
        *,
        ignored: bool,
    ) -> None:
        """Look at all paths. With `ignored`, ignored names are not left out.

        If each path has the status that the last scan found, the tree is not walked.
        """
        self._store, self._old, self._root, self._limits = store, old, root.top.view(tree=None), limits
        self._buffer = ReadBuffer(limits.file_bytes)
        self._bytes = 0
        is_local = not any(without_events(tree.handle.fd) for tree in self._root.trees)
        # A change after this time may be missed unless the times before it are settled.
        self._began = file_clock() - (0 if is_local else TIME_RESOLUTION)
        top = Status.of(self._root.trees.status(""))
        self.paths, self.left_out = {"": Seen(None, top)}, Counter[str]()
        self.touched = list[str]()
        if last is not None and last[:-1] == (ignored, limits, top) and self._is_as_before():
            self.paths, self.left_out = old, last.left_out
        else:
            self._take_all(ignored=ignored)
        self.basis = Basis(ignored, limits, None if self._is_young(top) else top, self.left_out)

    def _is_as_before(self) -> bool:
        """Return True if each path has the status with which it was seen, so that a walk finds no other."""
        with suppress(OSError):  # a path is gone
            for path, seen in self._old.items():
                call_context.check()
                # The kept inode number has 63 bits. A larger one differs, and the tree is walked.
                if seen.young or seen.status != _FIELDS(self._root.trees.status(path)):
                    return False
            return True
        return False

    @property
    def not_covered(self) -> dict[str, int]:
        """Numbers of paths without kept content, by reason."""
        reasons = [seen.reason for seen in self.paths.values() if seen.reason]
        return dict(Counter(each for each in reasons if each not in LEFT_OUT) + self.left_out)

    def difference(self) -> tuple[list[Change], list[str]]:
        """Return the changes since the last scan, and the changed paths whose content is not kept."""
        changes: list[Change] = []
        lost: list[str] = []
        if self.paths is self._old:
            return changes, lost
        paths = self._old.keys() | self.paths.keys()
        # A file that was renamed to a new path may be the only copy of a content that was not kept.
        moved = {
            seen.status.inode
            for path, seen in self._old.items()
            if seen.node is None and seen.status is not None and path not in self.paths
        }
        for path in sorted(paths):
            before, after = self._old.get(path), self.paths.get(path)
            if before is after:
                continue
            call_context.check()
            if before is not None and (after is None or after.reason in LEFT_OUT):
                after = after if after is not None and before.node is None else self._present(path, before)
            if any(seen is not None and seen.node is None for seen in (before, after)):
                if (before and before.compared) != (after and after.compared):
                    lost.append(path)
                continue
            is_moved = after is not None and after.status is not None and after.status.inode in moved
            if before is None and (is_moved or self._may_be_older(path)):
                lost.append(path)
                continue
            change = Change(path, before and before.node, after and after.node)
            if not is_same_node(change.before, change.after):
                changes.append(change)
            elif before and after and before.status and after.status:
                if before.status[:3] != after.status[:3]:
                    lost.append(path)
                elif _is_file(after.node) and before.status.modified != after.status.modified:
                    self.touched.append(path)
        return changes, self._summed_up(lost)

    def _summed_up(self, paths: Sequence[str]) -> list[str]:
        """Return changed paths; those of version control, and many of an ignored directory, as one."""
        tops = {path: self._left_out_top(path) for path in paths}
        counts = Counter(top for top in tops.values() if top)
        version_control = {top for top in counts if os.path.basename(top).lower() in VCS_NAMES}
        whole = version_control.union(top for top, count in counts.items() if count > _MOST_NAMED)
        return [*dict.fromkeys(top if top in whole else path for path, top in tops.items())]

    def _left_out_top(self, path: str) -> str:
        """Return the outermost directory above a path whose contents are not read, or ""."""
        above = reversed([*directories_above(path)])
        found = ((each, self.paths.get(each) or self._old.get(each)) for each in above)
        return next((each for each, seen in found if seen is not None and seen.reason in LEFT_OUT), "")

    def _may_be_older(self, path: str) -> bool:
        """Return True if the last scan did not look into a directory above a path that is new now."""
        seen = map(self._old.get, directories_above(path))
        return any(each is not None and each.reason in LEFT_OUT for each in seen)

    def _present(self, path: str, before: Seen) -> Seen | None:
        """Return the present state of a path that was seen before and is gone, or is ignored now."""
        try:
            status = Status.of(self._root.trees.status(path))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError:
            return Seen(None)
        if before.node is None:
            return Seen(None, status, reason=_IGNORED)
        try:
            node = read_node(self._root, path, self._limits.file_bytes)
        except AgentFSError:
            return Seen(None, status)
        return None if node is None else Seen(self._store.keep_node(node), status)

    def _is_young(self, status: Status) -> bool:
        return not is_settled(max(status.modified, status.changed), self._began)

    def _take_all(self, *, ignored: bool) -> None:
        walk = Walk(
            self._root,
            ["."],
            max_entries=self._limits.walk_entries,
            deadline=call_context.deadline(),
            hidden=True,
            ignored=ignored,
            others=True,
            directories=True,
            exclude=lambda path, _: is_temporary_name(path),
            on_left_out=self._take_left_out,
        )
        for visit in walk:
            call_context.check()
            base = with_slash(visit.directory.real_path)
            if visit.child is not None:
                self._take_directory(base + visit.child.name, visit.child)
            self._take(visit.directory, base, visit.files)
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
        """Take names whose contents are not kept, and all below them, to notice if one of them changes."""
        base = with_slash(directory.real_path)
        for entry in entries:
            reason = _VCS if entry.name.lower() in VCS_NAMES else _IGNORED
            self.left_out[reason] += reason == _IGNORED
            stack = self._take_unread(base, [entry], reason)
            while stack:
                with suppress(AgentFSError), self._root.open_directory(display_name(stack.pop())) as opened:
                    stack += self._take_unread(f"{opened.real_path}/", opened.scan(), reason)

    def _take_unread(self, base: str, entries: Iterable[DirEntry], reason: str) -> list[str]:
        """Take names by their status; return the directories to look into."""
        found: list[str] = []
        for entry in entries:
            call_context.check()
            if (status := _status_of(entry)) is not None:
                self.paths[base + entry.name] = Seen(None, status, reason=reason)
                if stat.S_ISDIR(status.mode) and not (reason == _VCS and entry.name in _STORES):
                    found.append(base + entry.name)
        return found

    def _take_directory(self, path: str, entry: DirEntry) -> None:
        status = _status_of(entry)
        if status is not None and not self._take_known(path, status):
            mode = stat.S_IMODE(status.mode)
            node = DirectoryNode(mode, Metadata(mode, (status.user, status.group)))
            self.paths[path] = Seen(node, status, self._is_young(status))

    def _take_known(self, path: str, status: Status) -> bool:
        known = self._old.get(path)
        if known is None or known.node is None or known.status != status or known.young:
            return False
        self.paths[path] = known
        self._bytes += known.node.size if isinstance(known.node, FileNode) else 0
        return True

    def _take(self, directory: Directory, base: str, entries: Iterable[DirEntry]) -> None:
        """Take the files of a directory; read those that may have changed."""
        to_read: dict[DirEntry, Status] = {}
        for entry in entries:
            path = base + entry.name
            if (status := _status_of(entry)) is None or self._take_known(path, status):
                continue
            if stat.S_ISREG(status.mode):
                to_read[entry] = status
                continue
            self.paths[path] = Seen(None, status, reason="special")
            if stat.S_ISLNK(status.mode):
                with suppress(OSError):
                    node = LinkNode(syscalls.readlink(directory.handle, entry.name))
                    self.paths[path] = Seen(node, status, self._is_young(status))
        for entry, outcome in directory.read_files([*to_read], self._read) if to_read else ():
            call_context.check()
            path = base + entry.name
            if isinstance(outcome, tuple):
                self._keep(path, *outcome)
            elif not isinstance(outcome, FileNotFoundError):
                reason = "protected" if isinstance(outcome, ProtectedError) else "unreadable"
                self.paths[path] = Seen(None, to_read[entry], reason=reason)

    def _read(self, fd: int) -> tuple[os.stat_result, bytes | None]:
        """Return the status and content of a file, or no content if the file is too large."""
        return os.fstat(fd), None if self._buffer.fill(fd) < 0 else self._buffer.copy()

    def _keep(self, path: str, found: os.stat_result, data: bytes | None) -> None:
        status = Status.of(found)
        if data is None or self._bytes + len(data) > self._limits.snapshot_bytes:
            reason = "too large" if data is None else "over Limits.snapshot_bytes"
            self.paths[path] = Seen(None, status, reason=reason)
            return
        self._bytes += len(data)
        node = FileNode.of(status.mode, data, Metadata(status.mode & 0o777, (status.user, status.group)))
        node = self._store.keep_node(node)
        # A file that has grown since `fstat` is young too, so the next scan reads it again.
        self.paths[path] = Seen(node, status, self._is_young(status) or len(data) != status.size)


def _status_of(entry: DirEntry) -> Status | None:
    """Return the status of a listed name; None if it has just vanished."""
    try:
        return Status.of(entry.stat(follow_symlinks=False))
    except OSError:
        return None


def with_moves(changes: Sequence[Change]) -> list[Change]:
    """Return changes by another program with `moved_from`, which is guessed.

    Files with equal content are paired in the order of their paths.
    """
    ordered = sorted(changes, key=lambda change: change.path)
    new = [each for each in ordered if each.before is None and _is_file(each.after)]
    old = [each for each in ordered if each.after is None and _is_file(each.before)]
    sources: dict[Node | None, list[str]] = {}
    for each in reversed(old):
        sources.setdefault(each.before, []).append(each.path)
    found = {each.path: sources[each.after].pop() for each in new if sources.get(each.after)}
    return [replace(each, moved_from=found[each.path]) if each.path in found else each for each in changes]


def _is_file(node: Node | None) -> bool:
    return node is not None and not isinstance(node, DirectoryNode)
