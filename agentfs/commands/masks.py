"""Masks: what a staged command sees in place of protected files, in the upper layers of its overlays.

A mask is an ordinary file or directory there, so a command can remove it with its directory, or move it.
Afterwards its inode and its times tell what has happened to it.
"""

import os
import re
import stat
import struct
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

from agentfs.commands.git_index import IndexEntry, index_entries, with_assumed
from agentfs.commands.git_settings import has_settings, shown_settings
from agentfs.commands.repository import Repository
from agentfs.commands.stage import OPAQUE, Overlay
from agentfs.commands.system import contents
from agentfs.fs import Root

_SPECIAL = re.compile(rb"[\\*?\[\]!# ]")  # in a pattern of an exclude file


class Mask(NamedTuple):
    """A mask with its status before the command."""

    status: os.stat_result
    content: bytes
    hides: bool  # the file behind it is not empty
    is_shown: bool = False  # it holds what a command may see, such as settings
    # For a file of git, which is not protected: the files in it that git takes as unchanged.
    assumed: Collection[bytes] | None = None

    @property
    def is_directory(self) -> bool:
        """True for an empty directory."""
        return stat.S_ISDIR(self.status.st_mode)

    def is_at(self, status: os.stat_result) -> bool:
        """Return True for the status of this mask with its content, also under another name."""
        return status.st_ino == self.status.st_ino and self.is_copied_to(status)

    def is_unchanged(self, status: os.stat_result) -> bool:
        """Return True if the node at its path is the mask with its content."""
        if self.is_directory:
            return stat.S_ISDIR(status.st_mode)
        return self.is_at(status)

    def is_copied_to(self, status: os.stat_result) -> bool:
        """Return True for the status of a copy that `mv` or `cp -p` has made."""
        facts = stat.S_IFMT(status.st_mode), status.st_size, status.st_mtime_ns
        return facts == (stat.S_IFREG, self.status.st_size, self.status.st_mtime_ns)


def put_masks(
    root: Root,
    overlays: Mapping[str, Overlay],
    hidden: Iterable[str],
    repository: Repository | None = None,
    above: Iterable[str] = (),
) -> dict[str, Mask]:
    """Create a mask for each hidden path, and return them by path; a link has none, but its target has.

    Args:
        root: The tree.
        overlays: Its overlays, by the real path of their tree.
        hidden: The hidden paths.
        repository: Its repository; git takes hidden files in it as unchanged or ignored.
        above: The absolute paths of more masks in the work tree of the repository.
    """
    masks = _Masks(root, overlays)
    for path in sorted(hidden):
        source = root.trees.path_on_disk(path)
        masks.put(path, shown_settings(contents(source)) if has_settings(path) else None)
    if repository is not None:
        masks.hide_from_git(repository, above)
    masks.restore_times()
    return masks.found


class _Masks:
    """Creates masks in the upper directories of overlays."""

    def __init__(self, root: Root, overlays: Mapping[str, Overlay]) -> None:
        self._root, self._overlays = root, overlays
        self.found: dict[str, Mask] = {}
        self._made: dict[str, os.stat_result] = {}  # directories above masks, with the status below

    def put(self, path: str, content: bytes | None, assumed: Collection[bytes] | None = None) -> None:
        """Create the mask of a path, with content that a command may see, if any."""
        tree = self._root.trees.of(path)
        source, upper, below = tree.source, self._overlays[tree.path].upper, tree.below(path)
        with suppress(OSError):  # it has just vanished
            status = os.lstat(os.path.join(source, below))
            if stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode):
                make_directories(source, upper, os.path.dirname(below), self._made)
                full = os.path.join(upper, below)
                _make(full, status, content or b"")
                told = status.st_size > 0 and assumed is None, content is not None, assumed
                self.found[path] = Mask(os.lstat(full), content or b"", *told)

    def hide_from_git(self, repository: Repository, above: Iterable[str]) -> None:
        """Let git take the tracked files as unchanged, and ignore the others, so that it adds no mask."""
        index, exclude = f".git/{repository.index_path}", ".git/info/exclude"
        hidden = [os.path.join(self._root.path, each) for each in self.found if ".git" not in each.split("/")]
        tops = {os.fsencode(os.path.relpath(each, repository.top)) for each in (*hidden, *above)}
        data = contents(self._root.trees.path_on_disk(index)) if tops else b""
        if not data:
            return
        tracked = {each.path: each.is_assumed for each in _entries(data)}
        assumed = {each for each in tracked if not (tracked[each] or tops.isdisjoint(_with_above(each)))}
        if assumed:
            self.put(index, with_assumed(data, assumed, assumed=True), assumed)
        others = [each for each in sorted(tops - tracked.keys()) if b"\n" not in each]
        lines = [b"/" + _SPECIAL.sub(rb"\\\g<0>", each) for each in others]
        if lines:
            source = contents(self._root.trees.path_on_disk(exclude))
            self.put(exclude, b"\n".join([source, *lines, b""]), ())

    def restore_times(self) -> None:
        """Give the directories above masks the times of those below."""
        for full, status in reversed(self._made.items()):
            os.utime(full, ns=(status.st_atime_ns, status.st_mtime_ns))


def _with_above(path: bytes) -> Iterable[bytes]:
    """Return a path after the directories above it."""
    return accumulate(path.split(b"/"), lambda above, name: above + b"/" + name)


@lru_cache(maxsize=2)
def _entries(index: bytes) -> Collection[IndexEntry]:
    with suppress(struct.error, LookupError, ValueError):  # git cannot read it either
        return [*index_entries(index)]
    return ()


def _make(full: str, status: os.stat_result, content: bytes) -> None:
    """Create a file or an opaque directory like the one that it hides."""
    if stat.S_ISDIR(status.st_mode):
        os.mkdir(full)
        os.setxattr(full, OPAQUE, b"y")
    else:
        with open(os.open(full, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "wb") as file:
            file.write(content)
    _make_alike(full, status)
    # An access time before the others is set anew by the first access, except on some mounts.
    os.utime(full, ns=(status.st_mtime_ns - 1, status.st_mtime_ns))


def make_directories(source: str, upper: str, below: str, made: dict[str, os.stat_result]) -> None:
    """Create the directories of a path in an upper layer, with the modes that they have below it."""
    full = os.path.join(upper, below)
    if below and full not in made:
        make_directories(source, upper, os.path.dirname(below), made)
        if os.path.lexists(full) and stat.S_ISDIR(os.lstat(full).st_mode):
            return  # of a layer that was used before
        made[full] = os.lstat(os.path.join(source, below))
        os.mkdir(full)
        _make_alike(full, made[full])


def _make_alike(full: str, status: os.stat_result) -> None:
    with suppress(PermissionError):
        os.chown(full, status.st_uid, status.st_gid)
    os.chmod(full, stat.S_IMODE(status.st_mode))


def read_masks(root: Root, overlays: Mapping[str, Overlay], masks: Mapping[str, Mask]) -> list[str]:
    """Return the paths whose masks a command has read, except those that it may see."""
    found: list[str] = []
    for path, mask in masks.items():
        tree = root.trees.of(path)
        with suppress(OSError):
            status = os.lstat(os.path.join(overlays[tree.path].upper, tree.below(path)))
            was_read = mask.is_at(status) and status.st_atime_ns != mask.status.st_atime_ns
            if was_read and not mask.is_shown:
                found.append(path)
    return found
