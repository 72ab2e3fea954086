"""`RootContext`: the open root with the settings that decide which paths may be read and changed."""

import os
import stat
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal, Protocol

from agentfs.fs import oserrors, syscalls
from agentfs.fs.node import Change, StagedNodes
from agentfs.fs.own_directories import OwnDirectories
from agentfs.fs.path import display_name, is_in, path_from
from agentfs.fs.protect import NameMatcher
from agentfs.fs.trees import Trees

TIME_RESOLUTION = 3_000_000_000  # nanoseconds: two changes this far apart get different file times
_TICK = 20_000_000  # nanoseconds, longer than one step of the clock below
_COARSE_CLOCK = 5  # Linux's CLOCK_REALTIME_COARSE, the clock of file times
_Identities = dict[tuple[int, int], str]  # names by device and inode


def file_clock() -> int:
    """Return the time that a local file system gives to a change that is made now."""
    return time.clock_gettime_ns(_COARSE_CLOCK) if sys.platform == "linux" else time.time_ns()


def is_settled(changed: int, now: int) -> bool:
    """Return True if changes after `now` get a later time than `changed`, the latest time of a file."""
    fine = changed % 1_000_000  # the file system stores times finer than milliseconds
    return now - changed >= (min(_TICK, TIME_RESOLUTION) if fine else TIME_RESOLUTION)


class FileAccess(Protocol):
    """The permission rules of one call. Files are given by their real paths."""

    def denies_reading(self, real_path: str) -> bool:
        """Return True if a rule forbids the call to read a file."""
        ...

    def check_read(self, real_path: str) -> None:
        """Raise RefusedError if the call may not show a file."""

    def check_change(self, real_path: str) -> None:
        """Raise RefusedError if the call may not change a file."""

    def begin(self, changes: Sequence[Change]) -> None:
        """Called with all changes before the first is made. An exception prevents them."""


@dataclass(frozen=True, eq=False, repr=False)
class RootContext:
    """The open root with the settings that decide which paths may be read and changed."""

    trees: Trees
    # The absolute spellings of the trees, in parts, each with the parts of its real path.
    roots: Mapping[tuple[str, ...], tuple[str, ...]]
    unreadable: NameMatcher
    unwritable: NameMatcher
    follow: bool  # True if links are followed
    hardlinks: Literal["break", "refuse"]
    durability: Literal["fast", "data", "full"]
    own: OwnDirectories  # the directories of agentfs itself, which no call may change
    workdir: str = ""  # the real path of the directory where relative paths start
    only: tuple[str, ...] | None = None  # the directories that the call may use and name; None if all
    access: FileAccess | None = None
    staged: StagedNodes | None = None  # the changes of the current transaction
    # Directories already searched for stale temporaries.
    cleaned: set[tuple[int, int]] = field(default_factory=set[tuple[int, int]])
    _identities: dict[NameMatcher, tuple[tuple[int, ...], _Identities]] = field(
        default_factory=dict[NameMatcher, tuple[tuple[int, ...], _Identities]]
    )

    def display_path(self, real_path: str) -> str:
        """Return a path to display, relative to `workdir`."""
        if not self.workdir and real_path.isascii():
            return real_path
        return display_name(path_from(self.workdir, real_path))

    def is_usable(self, real_path: str) -> bool:
        """Return True if the call may use a path."""
        return self.only is None or any(is_in(real_path, top) for top in self.only)

    def contains_usable(self, real_path: str) -> bool:
        """Return True if a directory that the call may use lies below a path."""
        return self.only is not None and any(is_in(top, real_path) for top in self.only)

    def may_read(self, real_path: str) -> bool:
        """Return True if protected names and permission rules allow reading a file."""
        denied = self.access is not None and self.access.denies_reading(real_path)
        return not denied and not self.unreadable.covers(real_path)

    def check_readable(self, status: os.stat_result, path: str, real_path: str) -> None:
        """Raise an error unless an open file is a regular file that is not protected under any name."""
        if not stat.S_ISREG(status.st_mode):
            raise oserrors.not_regular(path, status.st_mode)
        if self.unreadable.covers(real_path) or self.is_hard_link_to(status, self.unreadable):
            raise oserrors.protected(path, self.display_path(real_path))

    def is_hard_link_to(self, status: os.stat_result, matcher: NameMatcher) -> bool:
        """Return True if a regular file is a hard link to a protected file in the root."""
        if status.st_nlink < 2 or not stat.S_ISREG(status.st_mode):
            return False
        return (status.st_dev, status.st_ino) in self.protected_identities(matcher)

    def has_hard_link_to(self, matcher: NameMatcher) -> bool:
        """Return True if a protected file in the root has a hard link."""
        for (device, inode), name in self.protected_identities(matcher).items():
            for handle in self.trees.handles:
                with suppress(OSError):
                    status = syscalls.lstat(handle.fd, name)
                    is_it = (status.st_dev, status.st_ino) == (device, inode)
                    if is_it and status.st_nlink > 1 and stat.S_ISREG(status.st_mode):
                        return True
        return False

    def protected_identities(self, matcher: NameMatcher) -> dict[tuple[int, int], str]:
        """Return the protected names that exist in the root, by device and inode.

        They are cached until the times of the root change. Times are coarse, so the names of a root that
        changed in the last seconds are not cached.
        """
        handles = self.trees.handles  # the references keep them open
        try:
            tops = [syscalls.lstat(handle.fd, ".") for handle in handles]
        except OSError:
            return {}
        times = tuple(each for top in tops for each in (top.st_mtime_ns, top.st_ctime_ns))
        cached = self._identities.get(matcher)
        if cached is not None and cached[0] == times:
            return cached[1]
        found: _Identities = {}
        for handle in handles:
            for name in matcher.literals:
                with suppress(OSError):
                    status = os.stat(name, dir_fd=handle.fd, follow_symlinks=False)
                    found[status.st_dev, status.st_ino] = name
        if time.time_ns() - max(times) > TIME_RESOLUTION:
            self._identities[matcher] = times, found
        return found
