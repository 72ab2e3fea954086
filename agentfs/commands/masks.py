"""Masks: what a staged command sees in place of protected files, in the upper layers of its overlays.

A mask is an ordinary file or directory there, so a command can remove it with its directory, or move it.
Afterwards its inode and its times tell what has happened to it.
"""

import os
import stat
import struct
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import NamedTuple

from agentfs.commands.git_index import index_entries
from agentfs.commands.git_settings import has_settings, shown_settings
from agentfs.commands.stage import OPAQUE, Overlay
from agentfs.commands.system import contents
from agentfs.fs import Root

# With these settings, git compares a tracked file with its index by size and time alone.
SETTINGS_OF_GIT = (("core.checkStat", "minimal"), ("core.trustctime", "false"))


class Mask(NamedTuple):
    """A mask with its status before the command."""

    status: os.stat_result
    content: bytes
    is_tracked: bool

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


def put_masks(root: Root, overlays: Mapping[str, Overlay], hidden: Iterable[str]) -> dict[str, Mask]:
    """Create a mask for each hidden path, and return them by path; a link has none, but its target has.

    The overlays are given by the real path of their tree.
    """
    found: dict[str, Mask] = {}
    made: dict[str, os.stat_result] = {}  # directories above masks, with the status below
    tracked = _tracked(root, hidden)
    for path in sorted(hidden):
        tree = root.trees.of(path)
        source, upper, below = tree.source, overlays[tree.path].upper, tree.below(path)
        with suppress(OSError):  # it has just vanished
            status = os.lstat(os.path.join(source, below))
            if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
                continue
            _make_directories(source, upper, os.path.dirname(below), made)
            content = b""
            if has_settings(path):
                content = shown_settings(contents(os.path.join(source, below)))
            elif path in tracked:
                content = b"\n" * status.st_size
            full = os.path.join(upper, below)
            _make(full, status, content)
            found[path] = Mask(os.lstat(full), content, path in tracked)
    for full, status in reversed(made.items()):
        os.utime(full, ns=(status.st_atime_ns, status.st_mtime_ns))
    return found


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


def _make_directories(source: str, upper: str, below: str, made: dict[str, os.stat_result]) -> None:
    full = os.path.join(upper, below)
    if below and full not in made:
        _make_directories(source, upper, os.path.dirname(below), made)
        made[full] = os.lstat(os.path.join(source, below))
        os.mkdir(full)
        _make_alike(full, made[full])


def _make_alike(full: str, status: os.stat_result) -> None:
    with suppress(PermissionError):
        os.chown(full, status.st_uid, status.st_gid)
    os.chmod(full, stat.S_IMODE(status.st_mode))


def _tracked(root: Root, hidden: Iterable[str]) -> Collection[str]:
    """Return the files that git tracks, if some are hidden. Masks of the same size do not look changed."""
    index = os.path.join(root.path, ".git", "index")
    if all(".git" in path.split("/") for path in hidden) or not os.path.isfile(index):
        return ()
    status = os.lstat(index)
    return _tracked_by(index, (status.st_ino, status.st_size, status.st_mtime_ns))


@lru_cache(maxsize=4)
def _tracked_by(index: str, _state: tuple[int, ...]) -> Collection[str]:
    with suppress(struct.error, LookupError, ValueError):  # git cannot read it either
        return {os.fsdecode(path) for path, _ in index_entries(contents(index))}
    return ()


def read_masks(root: Root, overlays: Mapping[str, Overlay], masks: Mapping[str, Mask]) -> list[str]:
    """Return the paths whose masks a command has read, except settings that it may see."""
    found: list[str] = []
    for path, mask in masks.items():
        tree = root.trees.of(path)
        with suppress(OSError):
            status = os.lstat(os.path.join(overlays[tree.path].upper, tree.below(path)))
            if (
                mask.is_at(status)
                and status.st_atime_ns != mask.status.st_atime_ns
                and not has_settings(path)
            ):
                found.append(path)
    return found
