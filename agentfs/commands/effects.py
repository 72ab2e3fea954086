"""The effects of a staged command: what an overlay holds, as changes of the tree below it."""

import os
import stat
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial

from agentfs.base import call_context
from agentfs.commands.stage import Overlay
from agentfs.errors import ConflictError, ProtectedError, TooLargeError
from agentfs.fs.node import Change, DirectoryNode, FileNode, LinkNode, Metadata, Node, revision_of
from agentfs.fs.path import display_name, quote
from agentfs.fs.root import Root
from agentfs.text import plural

_OPAQUE = "user.overlay.opaque"  # on a directory that hides the one below it
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass
class Effects:
    """The changes that a command has made in its overlay."""

    changes: dict[str, Change] = field(default_factory=dict[str, Change])
    refused: list[str] = field(default_factory=list[str])  # changed paths that may not even be read
    dropped: Counter[str] = field(default_factory=Counter[str])  # what cannot be applied, by reason


def effects_of(overlays: Mapping[str, Overlay], root: Root, most_bytes: int) -> Effects:
    """Return the changes in overlays whose processes have ended, each by the real path of its tree in `root`.

    Raises:
        AgentFSError: `too_large` if the new files of a tree have more than `most_bytes`.
    """
    found = Effects()
    for top, overlay in overlays.items():
        upper = _Upper(overlay.upper, root, most_bytes, top, found)
        for path, status in upper.nodes():
            upper.add_change(path, status)
    return found


class _Upper:
    """The upper directory of an overlay on the tree with the real path `top`."""

    def __init__(self, path: str, root: Root, most_bytes: int, top: str, found: Effects) -> None:
        self._path, self._root, self._top, self._found = path, root, top, found
        self._most_bytes = most_bytes
        self._links: set[tuple[int, int]] = set()

    def nodes(self) -> list[tuple[str, os.stat_result]]:
        """Return all nodes, each directory before its entries; raise `too_large` before one is loaded."""
        found: list[tuple[str, os.stat_result]] = []
        stack, size = [self._top], 0
        while stack:
            directory = stack.pop()
            with os.scandir(self._readable(directory)) as entries:
                for entry in entries:
                    call_context.check()
                    path = f"{directory}/{entry.name}" if directory else entry.name
                    if self._root.trees.of(path).path != self._top:
                        continue  # the place where another tree is shown
                    status = entry.stat(follow_symlinks=False)
                    found.append((path, status))
                    if stat.S_ISDIR(status.st_mode):
                        stack.append(path)
                    elif stat.S_ISREG(status.st_mode):
                        size += status.st_size
        if size > self._most_bytes:
            raise TooLargeError(
                f"The command has written {plural(size, 'byte')}, over the limit of {self._most_bytes};"
                " nothing was applied.",
                hint="Let it write less or to /tmp, or raise Limits.snapshot_bytes.",
                details={"size": size, "limit": self._most_bytes},
            )
        return found

    def add_change(self, path: str, status: os.stat_result) -> None:
        """Add the change that a node makes."""
        found, is_directory = self._found, stat.S_ISDIR(status.st_mode)
        if not is_directory and not _can_be_applied(status):
            found.dropped["special file"] += 1
            return
        try:
            before = self._present(path)
        except ProtectedError:
            found.refused.append(path)
            return
        if isinstance(before, DirectoryNode) and self._hides(path, status):
            self._remove_below(path)
        self._note_owner(status, before)
        change = Change(path, before, self._node(path, status))
        found.changes[path] = change  # in place of its removal with the directory above, if any
        # A file that is as it was before stays: others may have changed it alike meanwhile.
        if change.changes_nothing and not isinstance(change.after, FileNode):
            del found.changes[path]

    def _hides(self, path: str, status: os.stat_result) -> bool:
        """Return True if the upper node hides the entries of the directory below it."""
        if not stat.S_ISDIR(status.st_mode):
            return True
        try:
            return os.getxattr(self._full(path), _OPAQUE, follow_symlinks=False) == b"y"
        except OSError:
            return False

    def _remove_below(self, directory: str) -> None:
        """Add the removal of all entries of a directory of the tree; later changes replace it."""
        stack = [directory]
        while stack:
            with self._root.open_directory(display_name(stack.pop())) as opened:
                paths = [f"{opened.real_path}/{entry.name}" for entry in opened.scan()]
            for path in paths:
                call_context.check()
                try:
                    before = self._present(path)
                except ProtectedError:
                    self._found.refused.append(path)
                    continue
                self._found.changes.setdefault(path, Change(path, before, None))
                if isinstance(before, DirectoryNode):
                    stack.append(path)

    def _present(self, path: str) -> Node | None:
        """Return the node of the tree, with content that is loaded again when it is needed."""
        node = self._root.node(path, max_bytes=self._most_bytes)
        if not isinstance(node, FileNode):
            return node
        return replace(node, load=partial(_load_again, self._root, path, node.digest, self._most_bytes))

    def _node(self, path: str, status: os.stat_result) -> Node | None:
        mode = status.st_mode
        if stat.S_ISDIR(mode):
            kept = stat.S_IMODE(mode) & 0o3777
            return DirectoryNode(kept, Metadata(kept))
        if stat.S_ISLNK(mode):
            return LinkNode(os.readlink(self._full(path)))
        if _is_removal(status):
            return None
        if status.st_nlink > 1:
            identity = status.st_dev, status.st_ino
            self._found.dropped["hard link"] += identity in self._links
            self._links.add(identity)
        data = self._load(path)
        kept = stat.S_IMODE(mode) & 0o777
        return FileNode(kept, revision_of(data), len(data), partial(self._load, path), Metadata(kept))

    def _note_owner(self, status: os.stat_result, before: Node | None) -> None:
        owner = os.geteuid()
        if isinstance(before, (FileNode, DirectoryNode)) and before.metadata and before.metadata.owner:
            owner = before.metadata.owner[0]
        self._found.dropped["owner"] += status.st_uid != owner and not _is_removal(status)

    def _load(self, path: str) -> bytes:
        fd = os.open(self._readable(path), _FILE)
        with open(fd, "rb", buffering=0) as file:
            return file.readall()

    def _readable(self, path: str) -> str:
        """Return a path of the upper directory, which the command may have made unreadable."""
        full = self._full(path)
        if not os.access(full, os.R_OK | (os.X_OK if os.path.isdir(full) else 0)):
            os.chmod(full, os.lstat(full).st_mode & 0o7777 | 0o700)
        return full

    def _full(self, path: str) -> str:
        below = path[len(self._top) :].lstrip("/")
        return os.path.join(self._path, below) if below else self._path


def _is_removal(status: os.stat_result) -> bool:
    """Return True for a node that hides the one of the tree: a character device without a number."""
    return stat.S_ISCHR(status.st_mode) and status.st_rdev == 0


def _can_be_applied(status: os.stat_result) -> bool:
    return stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode) or _is_removal(status)


def _load_again(root: Root, path: str, digest: str, most_bytes: int) -> bytes:
    """Return the content of a file of the tree, which no other program may have changed meanwhile."""
    node = root.node(path, max_bytes=most_bytes)
    if not isinstance(node, FileNode) or node.digest != digest:
        raise ConflictError(
            f"{quote(root.display_path(path))} was changed while the changes of the command were applied;"
            " nothing was applied.",
            hint="Run the command again.",
            details={"path": root.display_path(path)},
        )
    return node.load()


def is_changed_since(root: Root, path: str, time: int) -> bool:
    """Return True if the file at a real path may have changed after a time of the file clock."""
    with suppress(OSError):
        status = root.trees.status(path)
        return max(status.st_mtime_ns, status.st_ctime_ns) > time
    return True


def size_of(root: Root, path: str) -> int:
    """Return the size of the node at a real path, or 0 if it is gone."""
    with suppress(OSError):
        return root.trees.status(path).st_size
    return 0
