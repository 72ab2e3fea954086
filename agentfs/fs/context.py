"""The open root, and the settings by which paths in it are resolved."""

import os
import stat
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal, Protocol

from agentfs.fs import oserrors, syscalls
from agentfs.fs.node import StagedNodes
from agentfs.fs.own_directories import OwnDirectories
from agentfs.fs.path import display_name, path_from
from agentfs.fs.protect import NameMatcher

TIME_RESOLUTION = 3_000_000_000  # nanoseconds after which a file system gives a change another time
_Identities = dict[tuple[int, int], str]  # names by device and inode


class RootHandle:
    """An open root, closed when the last call that uses it has released it.

    So `close()` in one thread cannot take the descriptor away from a call in another, where its number may
    by then belong to another directory. A closed one has the descriptor -1.
    """

    __slots__ = ("fd",)

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def __del__(self) -> None:
        if self.fd != -1:
            syscalls.close(self.fd)


@dataclass(slots=True)
class SharedHandle:
    """The root handle of a context and its copies, which are closed together.

    It stays open for as long as a caller keeps it.
    """

    handle: RootHandle


class FileAccess(Protocol):
    """The permission rules as they apply to the files of one call, by the real path of each."""

    def denies_reading(self, real_path: str) -> bool:
        """Return whether a rule keeps the content of a file from the call."""
        ...

    def check_read(self, real_path: str) -> None:
        """Raise RefusedError where the call may not show a file."""

    def check_change(self, real_path: str) -> None:
        """Raise RefusedError where the call may not change a file."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RootContext:
    """The open root, and the settings by which paths in it are resolved; paths are real ones."""

    shared_handle: SharedHandle
    roots: tuple[tuple[str, ...], ...]  # the absolute spellings of the root, in parts
    unreadable: NameMatcher
    unwritable: NameMatcher
    follow: bool  # whether links are followed
    hardlinks: Literal["break", "refuse"]
    durability: Literal["fast", "data", "full"]
    own: OwnDirectories  # those of agentfs, which are not changed
    workdir: str = ""  # where relative paths start
    only: tuple[str, ...] | None = None  # the directories outside of which nothing may be used or named
    access: FileAccess | None = None
    staged: StagedNodes | None = None  # by the transaction under way
    # The directories where stray temporaries were looked for.
    cleaned: set[tuple[int, int]] = field(default_factory=set[tuple[int, int]])
    _identities: dict[NameMatcher, tuple[tuple[int, int], _Identities]] = field(
        default_factory=dict[NameMatcher, tuple[tuple[int, int], _Identities]]
    )

    def display_path(self, real_path: str) -> str:
        """Return a path as it is displayed: relative to the directory in which relative paths start."""
        if not self.workdir and real_path.isascii():
            return real_path
        return display_name(path_from(self.workdir, real_path))

    def is_usable(self, real_path: str) -> bool:
        """Return whether a path lies where things may be used."""
        return self.only is None or any(_is_in(real_path, top) for top in self.only)

    def contains_usable(self, real_path: str) -> bool:
        """Return whether a directory lies above one that may be used."""
        return self.only is not None and any(_is_in(top, real_path) for top in self.only)

    def may_read(self, real_path: str) -> bool:
        """Return whether the content of a file may be shown, by protected names and permission rules."""
        denied = self.access is not None and self.access.denies_reading(real_path)
        return not denied and not self.unreadable.covers(real_path)

    def check_readable(self, status: os.stat_result, path: str, real_path: str) -> None:
        """Raise for what is no regular file, is protected, or is a protected one under another name."""
        if not stat.S_ISREG(status.st_mode):
            raise oserrors.not_regular(path, status.st_mode)
        if self.unreadable.covers(real_path) or self.is_hard_link_to(status, self.unreadable):
            raise oserrors.protected(path, self.display_path(real_path))

    def is_hard_link_to(self, status: os.stat_result, matcher: NameMatcher) -> bool:
        """Return True if a regular file is, under another name, a protected one in the root."""
        if status.st_nlink < 2 or not stat.S_ISREG(status.st_mode):
            return False
        return (status.st_dev, status.st_ino) in self.protected_identities(matcher)

    def has_hard_link_to(self, matcher: NameMatcher) -> bool:
        """Return whether a protected file in the root has a second name."""
        handle = self.shared_handle.handle
        for name in self.protected_identities(matcher).values():
            with suppress(OSError):
                status = syscalls.lstat(handle.fd, name)
                if status.st_nlink > 1 and stat.S_ISREG(status.st_mode):
                    return True
        return False

    def protected_identities(self, matcher: NameMatcher) -> dict[tuple[int, int], str]:
        """Return the protected names that exist in the root.

        They are cached until the times of the root change. These are coarse: what has only just changed is
        read again each time.
        """
        handle = self.shared_handle.handle  # kept, so that it stays open
        try:
            root = syscalls.lstat(handle.fd, ".")
        except OSError:
            return {}
        times = root.st_mtime_ns, root.st_ctime_ns
        cached = self._identities.get(matcher)
        if cached is not None and cached[0] == times:
            return cached[1]
        found: _Identities = {}
        for name in matcher.literals:
            with suppress(OSError):
                status = os.stat(name, dir_fd=handle.fd, follow_symlinks=False)
                found[status.st_dev, status.st_ino] = name
        if time.time_ns() - max(times) > TIME_RESOLUTION:
            self._identities[matcher] = times, found
        return found


def _is_in(real_path: str, directory: str) -> bool:
    return not directory or real_path == directory or real_path.startswith(f"{directory}/")
