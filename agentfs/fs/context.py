"""`RootContext`: the open root with the settings that decide which paths may be read and changed."""

import os
import stat
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from copy import copy
from operator import attrgetter
from typing import Any, Protocol, Self

from agentfs.errors import InvalidPathError, UnsupportedSystemError
from agentfs.fs import oserrors, own_directories, syscalls
from agentfs.fs.lock import remove_leftovers
from agentfs.fs.node import Change, Recorder
from agentfs.fs.own_directories import STATE_MARK
from agentfs.fs.path import absolute_parts, display_name, is_in, path_from, quote
from agentfs.fs.protect import name_matcher
from agentfs.fs.trees import OpenTree, Trees, open_top
from agentfs.policy import Mount, Policy

TIME_RESOLUTION = 3_000_000_000  # nanoseconds: two changes this far apart get different file times
_TICK = 20_000_000  # nanoseconds, longer than one step of the clock below
_COARSE_CLOCK = 5  # Linux's CLOCK_REALTIME_COARSE, the clock of file times


def file_clock() -> int:
    """Return the time that a local file system gives to a change that is made now."""
    return time.clock_gettime_ns(_COARSE_CLOCK) if sys.platform == "linux" else time.time_ns()


def is_settled(changed: int, now: int) -> bool:
    """Return True if changes after `now` get a later time than `changed`, the latest time of a file."""
    fine = changed % 1_000_000  # the file system stores times finer than milliseconds
    return now - changed >= (min(_TICK, TIME_RESOLUTION) if fine else TIME_RESOLUTION)


_facts = attrgetter("st_ino", "st_size", "st_mtime_ns", "st_ctime_ns")


def is_unchanged(seen: os.stat_result, now: os.stat_result) -> bool:
    """Return True if two statuses are those of one file, with the same size and times."""
    return _facts(seen) == _facts(now)


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


_settings_of = attrgetter("trees", "unreadable", "follow", "start", "only", "access", "exempt")


class RootContext:
    """The open trees with the settings that decide which paths may be read and changed."""

    start: str = ""  # the real path of the directory where relative paths start
    only: tuple[str, ...] | None = None  # the directories that the call may use and name; None if all
    access: FileAccess | None = None
    exempt: Collection[str] = ()  # real paths whose protected names may be read and changed
    recorder: Recorder | None = None

    def __init__(
        self, path: str | os.PathLike[str], policy: Policy, mounts: Mapping[str, Mount] | None = None
    ) -> None:
        """Open a root with its mounts."""
        if sys.platform == "win32":
            why = "A workspace cannot be opened on Windows: it opens no files relative to a directory."
            raise UnsupportedSystemError(why, hint="Run it on Linux, for example in WSL or a container.")
        given = os.path.abspath(path)
        if "\0" in given:
            raise InvalidPathError(f"The workspace root {quote(given)} contains a NUL character.")
        self.path = os.path.realpath(given)
        self.policy = policy
        what, advice = f"The workspace root {quote(given)}", "Choose another root or open this one with"
        advice = "" if policy.read_only else f"{advice} Policy(read_only=True)."
        root = OpenTree("", self.path, open_top(self.path, what, advice))
        self.ignores_case = _ignores_case(root.handle.fd)  # True if the file system of the root ignores case
        self.trees = trees = Trees(root, mounts or {}, read_only=policy.read_only)
        # The model may use either spelling of the root.
        self.roots = {**trees.absolute_places, absolute_parts(self.path): (), absolute_parts(given): ()}
        self.unreadable = name_matcher(tuple(policy.protect.read), backups=True)
        self.unwritable = name_matcher(tuple(policy.protect.write))
        self.follow = policy.symlinks == "inside"
        self.own = own_directories.own_paths([(tree.path, tree.source) for tree in trees])
        self.recovery_notes: tuple[str, ...] = ()  # on changes that a kill cut short
        if not policy.read_only:
            remove_leftovers(trees.lock_keys)

    def view(self, **settings: Any) -> Self:
        """Return a view with other settings. Closing one closes both."""
        other = copy(self)
        vars(other).update(settings)
        return other

    def is_like(self, other: "RootContext") -> bool:
        """Return True if another view reads and names each path alike."""
        return _settings_of(self) == _settings_of(other)

    def displayed(self, real_path: str) -> str:
        """Return a path to display, relative to `start`; "" for the directory itself."""
        if not self.start and real_path.isascii():
            return real_path
        return display_name(path_from(self.start, real_path))

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

    def check_readable(self, status: os.stat_result, path: str, names: Sequence[str]) -> None:
        """Raise an error unless an open file is a regular file, and none of its real paths is protected."""
        if not stat.S_ISREG(status.st_mode):
            raise oserrors.not_regular(path, status.st_mode)
        if any(map(self.unreadable.covers, names)) and names[0] not in self.exempt:
            raise oserrors.protected(path, self.displayed(names[0]))

    def unchangeable_names(self, directory: str, names: Sequence[str]) -> Collection[str]:
        """Return the names in a directory that may be protected, or that rules may forbid to change."""
        if self.access is not None or self.own or STATE_MARK in names:
            return names
        return {*self.unreadable.covered(directory, names), *self.unwritable.covered(directory, names)}

    def check_names(self, path: str, names: Sequence[str]) -> None:
        """Raise ProtectedError, or RefusedError for a permission rule, if a path may not be changed.

        `names` are its real path and the paths of the links that lead to it.
        """
        real_path = names[0]
        is_exempt = real_path in self.exempt
        if any(map(self.unreadable.covers, names)) and not is_exempt:
            raise oserrors.protected(path, self.displayed(real_path))
        if self.trees.others:
            self.trees.check_may_change(path, real_path)
        is_own = self.own and any(is_in(real_path, own) for own in self.own)
        if is_own or (any(map(self.unwritable.covers, names)) and not is_exempt):
            raise oserrors.protected(path, self.displayed(real_path), readable=True)
        if self.access is not None:
            self.access.check_change(real_path)


def _ignores_case(root: int) -> bool:
    """Return True if the first name with letters in the root is found in another case."""
    with suppress(OSError):
        name = next((name for name in syscalls.names_in_time(root) if name != name.swapcase()), "")
        return os.path.samestat(syscalls.lstat(root, name), syscalls.lstat(root, name.swapcase()))
    return False
