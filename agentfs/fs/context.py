"""The open root, and the settings by which paths in it are resolved."""

import os
import stat
import time
from contextlib import suppress
from copy import copy
from typing import Protocol

from agentfs.fs import syscalls
from agentfs.fs.path import display_name, path_from
from agentfs.fs.protect import NameMatcher, name_matcher
from agentfs.policy import Policy

TIME_RESOLUTION = 3_000_000_000  # nanoseconds after which a file system gives a change another time


class RootHandle:
    """An open root, closed when the last call that uses it has released it.

    So `close()` in one thread cannot take the descriptor away from a call in another, where its number may
    by then belong to another directory.

    Attributes:
        fd: The descriptor of the root; -1 when it is closed.
    """

    __slots__ = ("fd",)

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def __del__(self) -> None:
        if self.fd != -1:
            syscalls.close(self.fd)


class SharedHandle:
    """The root handle of a context and its copies, which are closed together."""

    __slots__ = ("handle",)

    def __init__(self, handle: RootHandle) -> None:
        self.handle = handle


class Access(Protocol):
    """The permission rules as they apply to the files of one call, by the real path of each."""

    def denies_reading(self, real_path: str) -> bool:
        """Tell whether a rule keeps the content of a file from the call."""
        ...

    def check_read(self, real_path: str) -> None:
        """Raise RefusedError where the call may not show a file."""

    def check_change(self, real_path: str) -> None:
        """Raise RefusedError where the call may not change a file."""


class RootContext:
    """The open root, and the settings by which paths in it are resolved.

    Attributes:
        shared_handle: The handle of the root, shared with every copy.
        roots: The absolute spellings of the root, in parts.
        unreadable: The names whose contents are not shown.
        unwritable: The names that are not changed.
        hardlinks: What a change does to a file of several names.
        durability: What is brought to the disk before a change is done.
        swept: The directories where stray temporaries were looked for.
        follow: Whether links are followed.
        workdir: The directory where relative paths start, from the root on, links resolved; "" is the root.
        only: The directories outside of which nothing may be used or named, from the root on, links resolved;
            None for the whole root.
        access: What the permission rules say of the files of the call under way; None where there are none.
    """

    __slots__ = (
        "_protected_identities",
        "access",
        "durability",
        "follow",
        "hardlinks",
        "only",
        "roots",
        "shared_handle",
        "swept",
        "unreadable",
        "unwritable",
        "workdir",
    )

    def __init__(self, handle: RootHandle, roots: tuple[tuple[str, ...], ...], policy: Policy) -> None:
        self.shared_handle = SharedHandle(handle)
        self.roots = roots
        self.unreadable = name_matcher(tuple(policy.protect.read), backups=True)
        self.unwritable = name_matcher(tuple(policy.protect.write))
        self.follow = policy.symlinks == "inside"
        self.workdir = ""
        self.only: tuple[str, ...] | None = None
        self.access: Access | None = None
        self.hardlinks = policy.hardlinks
        self.durability = policy.durability
        self.swept: set[tuple[int, int]] = set()
        self._protected_identities: dict[NameMatcher, tuple[tuple[int, int], dict[tuple[int, int], str]]] = {}

    @property
    def handle(self) -> RootHandle:
        """The handle of the root; it stays open for as long as the caller keeps it."""
        return self.shared_handle.handle

    def display_path(self, real_path: str) -> str:
        """Return a path as it is displayed: relative to the directory in which relative paths start."""
        return display_name(path_from(self.workdir, real_path))

    def starting_in(self, workdir: str) -> "RootContext":
        """Return the same context, where relative paths start in a directory."""
        other = copy(self)
        other.workdir = workdir
        return other

    def restricted_to(self, only: tuple[str, ...] | None) -> "RootContext":
        """Return the same context, where nothing outside of some directories may be used."""
        other = copy(self)
        other.only = only
        return other

    def is_usable(self, real_path: str) -> bool:
        """Tell whether a path lies where things may be used."""
        return self.only is None or any(_is_in(real_path, top) for top in self.only)

    def contains_usable(self, real_path: str) -> bool:
        """Tell whether a directory lies above one that may be used."""
        return self.only is not None and any(_is_in(top, real_path) for top in self.only)

    def for_call(self, access: Access) -> "RootContext":
        """Return the same context for one call."""
        other = copy(self)
        other.access = access
        return other

    def is_hard_link_to(self, found: os.stat_result, guard: NameMatcher) -> bool:
        """Tell whether a file or directory is, under another name, a protected one in the root."""
        return (found.st_dev, found.st_ino) in self._identities(guard)

    def has_hard_link_to(self, guard: NameMatcher) -> bool:
        """Tell whether a protected file in the root has a second name."""
        handle = self.handle
        for name in self._identities(guard).values():
            with suppress(OSError):
                status = syscalls.lstat(handle.fd, name)
                if status.st_nlink > 1 and stat.S_ISREG(status.st_mode):
                    return True
        return False

    def _identities(self, guard: NameMatcher) -> dict[tuple[int, int], str]:
        """Return the protected names that exist in the root, by device and inode.

        They are cached until the times of the root change. These are coarse: what has only just changed is
        read again each time.
        """
        handle = self.handle  # kept, so that it stays open
        lstat = syscalls.lstat
        try:
            root = lstat(handle.fd, ".")
        except OSError:
            return {}
        stamp = root.st_mtime_ns, root.st_ctime_ns
        known = self._protected_identities.get(guard)
        if known is not None and known[0] == stamp:
            return known[1]
        found: dict[tuple[int, int], str] = {}
        for name in guard.literals:
            with suppress(OSError):
                status = lstat(handle.fd, name)
                found[status.st_dev, status.st_ino] = name
        if time.time_ns() - max(stamp) > TIME_RESOLUTION:
            self._protected_identities[guard] = stamp, found
        return found


def _is_in(real_path: str, directory: str) -> bool:
    return not directory or real_path == directory or real_path.startswith(f"{directory}/")
