"""The effects of a staged command: what an overlay holds, as changes of the tree below it."""

import os
import stat
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from agentfs.base import call_context
from agentfs.base.advice import plural
from agentfs.commands.git_index import with_assumed
from agentfs.commands.git_settings import git_directory
from agentfs.commands.hidden_files import LONGEST, status_of
from agentfs.commands.masks import Mask
from agentfs.commands.stage import OPAQUE, Stage
from agentfs.commands.system import contents, entries
from agentfs.errors import AgentFSError, NameTooLongError, ProtectedError, TooLargeError
from agentfs.fs.node import Change, DirectoryNode, FileNode, LinkNode, Metadata, Node, revision_and_size
from agentfs.fs.path import display_name, error_of, quote
from agentfs.fs.root import Root

_OVERLAY = "user.overlay."  # the extended attributes of the overlay itself
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
_PIECE = 1024 * 1024
_FILE_MODE, _DIRECTORY_MODE = 0o777, 0o3777  # the bits of a mode that are applied
_TOP_MODE = 0o1777  # the kernel may drop the setgid bit of a directory for a stage


@dataclass
class Effects:
    """The changes that a command has made in its overlay.

    Attributes:
        changes: The changes, by path, directories before their entries.
        times: The time of modification that each node in the overlay has.
        touched: The paths at which the tree has another time.
        free: Paths that may change although their names are protected: they went with a directory.
        not_applied: Paths with something that the tree does not get, by what it is.
    """

    changes: dict[str, Change] = field(default_factory=dict[str, Change])
    times: dict[str, int] = field(default_factory=dict[str, int])
    touched: set[str] = field(default_factory=set[str])
    free: set[str] = field(default_factory=set[str])
    not_applied: dict[str, list[str]] = field(default_factory=dict[str, list[str]])

    def leave(self, what: str, path: str) -> None:
        """Note that something at a path is not applied."""
        self.not_applied.setdefault(what, []).append(path)


def effects_of(
    stage: Stage,
    masks: Mapping[str, Mask],
    root: Root,
    most_bytes: int,
    is_wanted: Callable[[str], bool] = lambda _: True,
) -> Effects:
    """Return the changes in the overlays of a stage whose processes have ended, by real path in `root`.

    A path that is not wanted is left out, with all below it.

    Raises:
        AgentFSError: `too_large` if the new files of a tree have more than `most_bytes`.
    """
    reader = _Reader(stage, masks, root, most_bytes)
    found, nodes = reader.found, reader.nodes(is_wanted)
    copies, moved = reader.copies_of_masks(nodes)
    for path, status in nodes:
        if path in moved:
            reader.move(moved[path], path)
        elif path in masks and path not in found.free:
            reader.note_mask(path, status, moved.values())
        elif path in copies:
            found.leave("copy of a protected file", path)
        else:
            reader.add_change(path, status)
    for tree in root.trees:
        if not tree.is_read_only:
            reader.note_top(tree.path)
    return found


class _Reader:
    """Reads the upper directories of overlays."""

    def __init__(self, stage: Stage, masks: Mapping[str, Mask], root: Root, most_bytes: int) -> None:
        self._masks, self._root, self._most_bytes = masks, root, most_bytes
        self._full = partial(stage.upper_path, root)
        self.found = Effects()
        self._links: set[tuple[int, int]] = set()
        self._new = set[str]()  # directories that the tree does not have

    def nodes(self, is_wanted: Callable[[str], bool]) -> list[tuple[str, os.stat_result]]:
        """Return all nodes, each directory before its entries; raise `too_large` before one is loaded."""
        found: list[tuple[str, os.stat_result]] = []
        stack, size = [tree.path for tree in self._root.trees if not tree.is_read_only], 0
        while stack:
            directory = stack.pop()
            with os.scandir(self._readable(directory)) as listed:
                for entry in listed:
                    call_context.check()
                    if len(os.fsencode(directory)) > LONGEST:
                        raise error_of(NameTooLongError, directory, f"{quote(directory)} is too deep.")
                    path = f"{directory}/{entry.name}" if directory else entry.name
                    if path in self._root.trees.others or not is_wanted(path):
                        continue  # the place where another tree is shown
                    status = entry.stat(follow_symlinks=False)
                    found.append((path, status))
                    if stat.S_ISDIR(status.st_mode):
                        stack.append(path)
                    elif stat.S_ISREG(status.st_mode):
                        size += status.st_size
        if size > self._most_bytes:
            raise TooLargeError(
                f"The changed files have {plural(size, 'byte')}, over the limit of {self._most_bytes};"
                " nothing was applied.",
                hint="Write less, or to /tmp, or raise Limits.snapshot_bytes.",
                details={"size": size, "limit": self._most_bytes},
            )
        return found

    def copies_of_masks(self, nodes: Sequence[tuple[str, os.stat_result]]) -> tuple[set[str], dict[str, str]]:
        """Return the other files that are masks, and the old paths of those that were moved.

        Those have another protected name. `mv` copies a directory with its entries, because the kernel cannot
        rename it.
        """
        there, copies, moved = dict(nodes), set[str](), dict[str, str]()
        gone = {old for old in self._masks if old not in there or _is_removal(there[old])}
        of_inode, of_name = dict[int, str](), defaultdict[str, list[str]](list)
        for old, mask in self._masks.items():
            of_inode[mask.inode] = old
            of_name[os.path.basename(old)].append(old)
        for path, status in nodes:
            above, name = os.path.split(path)
            found = [old for old in of_name.get(name, ()) if self._masks[old].is_copied_to(status)]
            # Files of one archive often have the same time, so the rest of the path tells them apart.
            found.sort(key=lambda old: (old in gone, len(os.path.commonpath([old[::-1], path[::-1]]))))
            if (same := of_inode.get(status.st_ino)) and self._masks[same].is_at(status):
                found.append(same)
            if not found or path in self._masks:
                continue
            in_git = (top := git_directory(path)) and path.removeprefix(os.path.dirname(top))
            may_be = self._root.unreadable_names(above, [name]) and found[-1].endswith(in_git)
            if found[-1] in gone and may_be:
                moved[path] = found[-1]
            elif found[-1] == same or self._masks[found[-1]].hides:
                copies.add(path)
        return copies, moved

    def move(self, old: str, path: str) -> None:
        """Add the changes that move the file behind a mask."""
        self.found.free.update((old, path))
        node = self._present(old)
        self.found.changes[old] = Change(old, node, None)
        self.found.changes[path] = Change(path, self._present(path), node)

    def note_mask(self, path: str, status: os.stat_result, moved: Collection[str]) -> None:
        """Note what has happened to a mask by its own name."""
        mask = self._masks[path]
        if mask.assumed is not None and not mask.is_unchanged(status):
            self.add_change(path, status)
        elif _is_removal(status):
            if path not in moved:
                self.found.leave("removal of a protected file", path)
        elif not mask.is_unchanged(status) and not self._is_restored(path, status):
            self.found.leave("change of a protected file", path)

    def _is_restored(self, path: str, status: os.stat_result) -> bool:
        """Return True for the content that the tree has, such as git writes when it resets a file."""
        below = contents(self._root.trees.path_on_disk(path))
        return stat.S_ISREG(status.st_mode) and b"".join(self._pieces(path)) == below

    def add_change(self, path: str, status: os.stat_result) -> None:
        """Add the change that a node makes."""
        call_context.check()
        found, mode = self.found, status.st_mode
        if not (stat.S_ISDIR(mode) or stat.S_ISREG(mode) or stat.S_ISLNK(mode) or _is_removal(status)):
            found.leave("special file", path)
            return
        before = None if os.path.dirname(path) in self._new else self._present(path)
        if isinstance(before, DirectoryNode) and self._hides(path, status):
            self._remove_below(path)
        if stat.S_ISDIR(mode) and not isinstance(before, DirectoryNode):
            self._new.add(path)
        # In place of its removal with the directory above, if any. A file that is as it was before stays:
        # others may have changed it alike meanwhile.
        change = found.changes[path] = Change(path, before, self._node(path, status))
        if change.changes_nothing and not isinstance(change.after, FileNode):
            del found.changes[path]
        if not _is_removal(status):
            self._note_metadata(path, status, before)

    def _hides(self, path: str, status: os.stat_result) -> bool:
        """Return True if the upper node hides the entries of the directory below it."""
        return not stat.S_ISDIR(status.st_mode) or _attributes(self._full(path)).get(OPAQUE) == b"y"

    def _remove_below(self, directory: str) -> None:
        """Add the removal of all entries of a directory of the tree; later changes replace it."""
        stack = [directory]
        while stack:
            above = stack.pop()
            for full in entries(self._root.trees.path_on_disk(above)):
                call_context.check()
                path = f"{above}/{os.path.basename(full)}"
                if not git_directory(path):
                    self.found.free.add(path)
                before = self._present(path)
                self.found.changes.setdefault(path, Change(path, before, None))
                if isinstance(before, DirectoryNode):
                    stack.append(path)

    def _present(self, path: str) -> Node | None:
        size = self._most_bytes
        try:
            return self._root.node(path, max_bytes=size, is_kept=False)
        except ProtectedError:  # whether it may change is decided later
            return self._root.view(exempt=[path]).node(path, max_bytes=size, is_kept=False)

    def note_top(self, path: str) -> None:
        """Record what has happened to the directory at the top of a tree."""
        status, below = os.lstat(self._full(path)), self._root.trees.status(path)
        if (status.st_mode ^ below.st_mode) & _TOP_MODE:
            self.found.leave("mode", path)
        if not self._root.trees.others:  # places for them may have been made in it
            self._note_time(path, status)
        self._note_attributes(path)

    def _note_time(self, path: str, status: os.stat_result) -> None:
        self.found.times[path] = status.st_mtime_ns
        below = status_of(self._root, path)
        if below is not None and below.st_mtime_ns != status.st_mtime_ns:
            self.found.touched.add(path)

    def _node(self, path: str, status: os.stat_result) -> Node | None:
        mode = status.st_mode
        if stat.S_ISDIR(mode):
            kept = stat.S_IMODE(mode) & _DIRECTORY_MODE
            return DirectoryNode(kept, Metadata(kept))
        if stat.S_ISLNK(mode):
            return LinkNode(os.readlink(self._full(path)))
        if _is_removal(status):
            return None
        kept = stat.S_IMODE(mode) & _FILE_MODE
        pieces = partial(self._pieces, path)
        return FileNode(kept, *revision_and_size(pieces()), pieces, Metadata(kept))

    def _note_metadata(self, path: str, status: os.stat_result, before: Node | None) -> None:
        """Record the metadata of a node that is not applied to the tree."""
        found, mode = self.found, status.st_mode
        there: Metadata | None = getattr(before, "metadata", None)
        owner = (there and there.owner) or (os.geteuid(), status.st_gid)
        if (status.st_uid, status.st_gid) != owner:
            found.leave("owner", path)
        if stat.S_IMODE(mode) & ~(_DIRECTORY_MODE if stat.S_ISDIR(mode) else _FILE_MODE):
            found.leave("setuid or setgid bit", path)
        if stat.S_ISREG(mode) and status.st_nlink > 1:
            if (identity := (status.st_dev, status.st_ino)) in self._links:
                found.leave("hard link", path)
            self._links.add(identity)
        self._note_time(path, status)
        self._note_attributes(path)

    def _note_attributes(self, path: str) -> None:
        above, below = (_attributes(each) for each in (self._full(path), self._root.trees.path_on_disk(path)))
        if {name: value for name, value in above.items() if not name.startswith(_OVERLAY)} != below:
            self.found.leave("extended attribute", path)

    def _pieces(self, path: str) -> Iterator[bytes]:
        mask = self._masks.get(path)
        with open(os.open(self._readable(path), _FILE), "rb", buffering=0) as file:
            if mask is not None and mask.assumed:
                yield with_assumed(file.readall(), mask.assumed, assumed=False)
            while piece := file.read(_PIECE):
                yield piece

    def _readable(self, path: str) -> str:
        """Return a path of the upper directory, which the command may have made unreadable."""
        full = self._full(path)
        if ~(mode := os.lstat(full).st_mode) & (0o500 if stat.S_ISDIR(mode) else 0o400):
            os.chmod(full, stat.S_IMODE(mode) | stat.S_IRWXU)
        return full


def _is_removal(status: os.stat_result) -> bool:
    """Return True for a node that hides the one of the tree: a character device without a number."""
    return stat.S_ISCHR(status.st_mode) and status.st_rdev == 0


def _attributes(path: str) -> dict[str, bytes]:
    """Return the extended attributes of a user at a path."""
    with suppress(OSError):
        names = [each for each in os.listxattr(path, follow_symlinks=False) if each.startswith("user.")]
        return {each: os.getxattr(path, each, follow_symlinks=False) for each in names}
    return {}


def set_times(root: Root, paths: Iterable[str], effects: Effects) -> None:
    """Give changed nodes the times of modification of the overlay."""
    for path in effects.times.keys() & paths:
        directory, _, name = path.rpartition("/")
        try:
            with root.open_directory(display_name(directory)) as opened:
                name = name or "."  # the top
                accessed = os.stat(name, dir_fd=opened.handle, follow_symlinks=False).st_atime_ns
                times = accessed, effects.times[path]
                os.utime(name, ns=times, dir_fd=opened.handle, follow_symlinks=False)
        except (AgentFSError, OSError):
            effects.leave("time", path)
