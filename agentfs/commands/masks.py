"""Masks: what a staged command sees in place of protected files, in the upper layers of its overlays.

A mask is an ordinary file or directory there, so a command can remove it with its directory, or move it.
Afterwards its inode and its times tell what has happened to it.
"""

import os
import re
import stat
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from itertools import accumulate
from typing import NamedTuple

from agentfs.commands.git_index import ASSUMED, index_entries, with_assumed
from agentfs.commands.git_settings import has_settings
from agentfs.commands.repository import Repository
from agentfs.commands.stage import OPAQUE, Overlay, Stage, make_alike
from agentfs.commands.system import contents
from agentfs.fs import Root
from agentfs.fs.path import is_in

_SPECIAL = re.compile(rb"[\\*?\[\]!# ]")  # in a pattern of an exclude file


class Mask(NamedTuple):
    """A mask as it was before the command."""

    inode: int
    is_directory: bool  # an empty one
    size: int
    modified: int
    accessed: int
    hides: bool  # it is empty, and what is behind it is not
    # For a file of git, which is not protected: the files in it that git takes as unchanged.
    assumed: Collection[bytes] | None = None

    def is_at(self, status: os.stat_result) -> bool:
        """Return True if this is the status of the mask with its content, under any name."""
        return status.st_ino == self.inode and self.is_copied_to(status)

    def is_unchanged(self, status: os.stat_result) -> bool:
        """Return True if the node at its path is the mask with its content."""
        return stat.S_ISDIR(status.st_mode) if self.is_directory else self.is_at(status)

    def is_copied_to(self, status: os.stat_result) -> bool:
        """Return True for the status of a copy that `mv` or `cp -p` has made."""
        facts = stat.S_ISREG(status.st_mode), status.st_size, status.st_mtime_ns
        return facts == (True, self.size, self.modified)


class Masks:
    """Creates masks in the upper directories of overlays; `found` has them by the real path in the root."""

    def __init__(self, root: Root, stage: Stage) -> None:
        self._root, self._stage = root, stage
        self.found: dict[str, Mask] = {}
        self._made: dict[str, os.stat_result] = {}  # directories above masks, with the status below

    def put(self, path: str, content: bytes = b"", assumed: Collection[bytes] | None = None) -> None:
        """Create the mask of a path in the root, with content that a command may see, if any."""
        tree = self._root.trees.of(path)
        mask = self.put_in(self._stage.overlays[tree.source], tree.below(path), content)
        if mask is not None:
            self.found[path] = mask._replace(assumed=assumed)

    def put_in(self, overlay: Overlay, below: str, content: bytes = b"") -> Mask | None:
        """Create a mask in an overlay; a link has none, but its target has."""
        # It has just vanished, or a branch has something else there.
        with suppress(FileNotFoundError, NotADirectoryError, FileExistsError):
            status = os.lstat(os.path.join(overlay.root, below))
            if stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode):
                self._make_directories(overlay, os.path.dirname(below))
                full = os.path.join(overlay.upper, below)
                _make(full, status, content)
                there, hides = os.lstat(full), status.st_size > 0 and not content
                times = there.st_mtime_ns, there.st_atime_ns
                return Mask(there.st_ino, stat.S_ISDIR(there.st_mode), there.st_size, *times, hides)
        return None

    def _make_directories(self, overlay: Overlay, below: str) -> None:
        """Create the directories of a path in an upper layer, or those of a branch; for now to write in."""
        full = os.path.join(overlay.upper, below).rstrip("/")
        if full not in self._made:
            if below:
                self._make_directories(overlay, os.path.dirname(below))
            is_there = os.path.lexists(full) and stat.S_ISDIR(os.lstat(full).st_mode)
            status = os.lstat(full if is_there else os.path.join(overlay.root, below))
            if not is_there:
                os.mkdir(full)
            self._made[full] = status
            os.chmod(full, stat.S_IRWXU)

    def hide_from_git(self, repository: Repository, above: Iterable[str], git: str = ".git") -> None:
        """Let git take the tracked files as unchanged, and ignore the others, so that it adds no mask.

        Args:
            repository: The repository.
            above: Hidden files outside the root.
            git: The directory of git in the root.
        """
        index, exclude = f"{git}/{repository.index_path}", f"{git}/info/exclude"
        hidden = [os.path.join(self._root.path, each) for each in self.found if ".git" not in each.split("/")]
        inside = [each for each in (*hidden, *above) if is_in(each, repository.top)]
        tops = {os.fsencode(os.path.relpath(each, repository.top)) for each in inside}
        data = contents(self._root.trees.path_on_disk(index)) if tops else b""
        if not data:
            return
        tracked = {each.path: data[each.flags_at] & ASSUMED for each in index_entries(data)}
        assumed = {each for each in tracked if not (tracked[each] or tops.isdisjoint(_with_above(each)))}
        if assumed:
            self.put(index, with_assumed(data, assumed, assumed=True), assumed)
        others = [each for each in sorted(tops - tracked.keys()) if b"\n" not in each]
        lines = [b"/" + _SPECIAL.sub(rb"\\\g<0>", each) for each in others]
        if lines:
            source = contents(self._root.trees.path_on_disk(exclude))
            self.put(exclude, b"\n".join([source, *lines, b""]), ())

    def restore_directories(self) -> None:
        """Give the directories above masks the modes, owners and times of those below."""
        for full, status in reversed(self._made.items()):
            make_alike(full, status)
            os.utime(full, ns=(status.st_atime_ns, status.st_mtime_ns))


def _with_above(path: bytes) -> Iterable[bytes]:
    """Return a path after the directories above it."""
    return accumulate(path.split(b"/"), lambda above, name: above + b"/" + name)


def _make(full: str, status: os.stat_result, content: bytes) -> None:
    """Create a file or an opaque directory like the one that it hides."""
    if stat.S_ISDIR(status.st_mode):
        os.mkdir(full)
        os.setxattr(full, OPAQUE, b"y")
    else:
        with open(os.open(full, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "wb") as file:
            file.write(content)
    make_alike(full, status)
    # An access time before the others is set anew by the first access, except on some mounts.
    os.utime(full, ns=(status.st_mtime_ns - 1, status.st_mtime_ns))


def read_masks(root: Root, stage: Stage, masks: Mapping[str, Mask]) -> list[str]:
    """Return the paths whose masks a command has read, except those of settings, which it may see."""
    found: list[str] = []
    for path, mask in masks.items():
        with suppress(OSError):
            status = os.lstat(stage.upper_path(root, path))
            was_read = mask.is_at(status) and status.st_atime_ns != mask.accessed
            if was_read and mask.hides and not has_settings(path):
                found.append(path)
    return found
