"""The walk along a path: one name at a time, each directory held open, links read and walked alike."""

import errno
import os
import stat
import time
import unicodedata
from collections.abc import Callable
from contextlib import suppress
from copy import copy

from agentfs.disk import failures
from agentfs.disk.backend import Backend, Handle
from agentfs.disk.paths import MAX_PARTS, Asked, is_absolute, show_name, split_link, unshow_name
from agentfs.disk.protected import Guard, fold, guard_of
from agentfs.errors import AgentFSError, NameTooLongError
from agentfs.policy import Policy

MAX_LINKS = 40
SETTLED = 3_000_000_000  # nanoseconds after which a file system gives a change another time
_MAX_RETRIES = 128
_SIMILAR_NAMES = 5000
# What systems say when O_NOFOLLOW meets a link: Linux and macOS, FreeBSD, NetBSD; ENOTDIR with O_DIRECTORY.
_MAY_BE_LINK = {errno.ELOOP, errno.ENOTDIR, errno.EMLINK, getattr(errno, "EFTYPE", errno.ELOOP)}


class Held:
    """An open root, closed when the last call that uses it lets go of it.

    So `close()` in one thread cannot take the descriptor away from a call in another, where its number may
    by then stand for another directory.

    Attributes:
        handle: The root, open; -1 for a root that is closed.
    """

    __slots__ = ("_close", "handle")

    def __init__(self, close: Callable[[Handle], None], handle: Handle) -> None:
        self._close = close
        self.handle = handle

    def __del__(self) -> None:
        if self.handle != -1:
            self._close(self.handle)


class Base:
    """Where every walk starts.

    Attributes:
        backend: The calls of this system.
        held: The root, open.
        roots: The absolute spellings of the root, in parts.
        unreadable: The names whose contents are not shown.
        unwritable: The names that are not changed.
        hardlinks: What a change does to a file of several names.
        durability: What is brought to the disk before a change is done.
        swept: The directories where stray temporaries were looked for.
        follow: Whether links are followed.
    """

    __slots__ = (
        "_twins",
        "backend",
        "durability",
        "follow",
        "hardlinks",
        "held",
        "roots",
        "swept",
        "unreadable",
        "unwritable",
    )

    def __init__(
        self, backend: Backend, held: Held, roots: tuple[tuple[str, ...], ...], policy: Policy
    ) -> None:
        self.backend = backend
        self.held = held
        self.roots = roots
        self.unreadable = guard_of(tuple(policy.protect.read))
        self.unwritable = guard_of(tuple(policy.protect.write))
        self.follow = policy.symlinks == "inside"
        self.hardlinks = policy.hardlinks
        self.durability = policy.durability
        self.swept: set[tuple[int, int]] = set()
        self._twins: dict[Guard, tuple[tuple[int, int], frozenset[tuple[int, int]]]] = {}

    def following(self) -> "Base":
        """Return the same base, where links are followed."""
        other = copy(self)
        other.follow = True
        return other

    def is_twin(self, found: os.stat_result, guard: Guard) -> bool:
        """Tell whether a file or directory is, under another name, a protected one that stands in the root.

        Args:
            found: What the system says of it.
            guard: The names that are protected.
        """
        return (found.st_dev, found.st_ino) in self._identities(guard)

    def _identities(self, guard: Guard) -> frozenset[tuple[int, int]]:
        """Return the identities of the protected names that stand in the root.

        They are remembered until a name in the root changes, which its times tell. These are coarse, so that
        what has only just changed is asked for again each time.
        """
        held = self.held  # by this name it stays open for as long as it is used
        lstat = self.backend.lstat
        try:
            root = lstat(held.handle, ".")
        except OSError:
            return frozenset()
        stamp = root.st_mtime_ns, root.st_ctime_ns
        known = self._twins.get(guard)
        if known is not None and known[0] == stamp:
            return known[1]
        identities: set[tuple[int, int]] = set()
        for name in guard.literals:
            with suppress(OSError):
                status = lstat(held.handle, name)
                identities.add((status.st_dev, status.st_ino))
        found = frozenset(identities)
        # On Windows there is no time that nobody can set.
        if isinstance(held.handle, int) and time.time_ns() - max(stamp) > SETTLED:
            self._twins[guard] = stamp, found
        return found


class Trail:
    """One walk: how far it has come, and what is still to go. Close it.

    `advance` enters directories until one name is left, for the caller to act on in `handle`. When that fails
    because a link stands there, `follow` takes the link into the walk, and the caller advances again.
    """

    __slots__ = (
        "_after_link",
        "_asked",
        "_base",
        "_creating",
        "_directory",
        "_handles",
        "_held",
        "_link",
        "_links",
        "_made",
        "_path",
        "_pending",
        "_retries",
        "handle",
        "missing",
        "real",
    )

    def __init__(self, base: Base, path: str, asked: Asked, *, creating: bool = False) -> None:
        self._base = base
        self._held = held = base.held
        self._path = path
        self._asked = asked
        self._pending = list(reversed(asked.parts))
        self._directory = asked.directory
        self._creating = creating
        self._handles: list[Handle] = []
        self._links = 0
        self._retries = 0
        self._made: list[tuple[int, str]] = []
        self._link = ""
        self._after_link = 0
        self.handle = held.handle
        self.real: list[str] = []
        self.missing: list[str] = []

    def close(self) -> None:
        """Close the directories that were entered."""
        close = self._base.backend.close
        while self._handles:
            close(self._handles.pop())

    def let_go(self) -> None:
        """Close the directories that were entered, and let go of the root: the walk is over."""
        self.close()
        self._held = Held(self._base.backend.close, -1)

    @property
    def directory_meant(self) -> bool:
        """Whether the path ends as only a directory may."""
        return self._directory

    def advance(self) -> str | None:
        """Enter directories until one name is left.

        Returns:
            That name, in the directory `handle`; None when the path ends in the directory `handle` itself.
            With `creating`, `missing` holds the directories before that name that do not exist yet.

        Raises:
            AgentFSError: whatever stands in the way, typed.
        """
        pending = self._pending
        while pending:
            name = pending.pop()
            if name == "..":
                self._climb()
                continue
            if self._asked.escaped and "\\x" in name:
                name = self._spelling(name)
            if not pending and not self._directory:
                return name
            if self.missing:
                self.missing.append(name)
            else:
                self._enter(name)
        return None

    def follow(self, error: OSError, name: str) -> bool:
        """Take the link at a name into the walk, after the system refused to open it.

        Args:
            error: What the system said.
            name: The name that it said it of.

        Returns:
            Whether to advance again; False when no link is to blame.

        Raises:
            AgentFSError: outside_workspace, link_loop, refused, name_too_long.
        """
        if error.errno not in _MAY_BE_LINK:
            return False
        backend = self._base.backend
        try:
            target = backend.readlink(self.handle, name)
        except OSError:
            return self._swapped(error, name)
        self._expand(name, target)
        return True

    def follow_link(self, name: str) -> bool:
        """Take a link at a name into the walk, if one is there; tell whether it was."""
        try:
            target = self._base.backend.readlink(self.handle, name)
        except OSError:
            return False
        self._expand(name, target)
        return True

    def make_missing(self) -> None:
        """Make the directories of `missing` and enter them."""
        backend = self._base.backend
        missing, self.missing = self.missing, []
        for name in missing:
            try:
                try:
                    backend.make_directory(self.handle, name)
                    self._made.append((len(self._handles), name))
                except FileExistsError:
                    pass
                handle = backend.enter(self.handle, name)
            except OSError as error:
                raise self.failure(error, name) from None
            self._push(handle, name)

    def made(self) -> list[str]:
        """Return the paths of the directories that `make_missing` made, from the root on."""
        return ["/".join([*self.real[:depth], name]) for depth, name in self._made]

    def unmake(self) -> None:
        """Remove again the directories that were made, as far as they are empty."""
        for depth, name in reversed(self._made):
            handle = self._handles[depth - 1] if depth else self._held.handle
            try:
                self._base.backend.remove_directory(handle, name)
            except OSError:
                return

    def place(self, name: str | None = None) -> str:
        """Return the path from the root on, links resolved, of a name here (or of this directory)."""
        parts = [*self.real, *self.missing]
        return "/".join(parts if name is None else [*parts, name])

    def shown(self, name: str | None = None) -> str:
        """Return the path as it was asked for, normalised and fit to show; resolved where it climbs."""
        if self._asked.climbs:
            return show_name(self.place(name))
        return show_name("/".join(self._asked.parts))

    @property
    def changed(self) -> list[Handle]:
        """The directories in which names have changed: this one, and those above one that was made."""
        made = [self._handles[depth - 1] if depth else self._held.handle for depth, _ in self._made]
        return [self.handle, *made]

    def key(self, name: str) -> str:
        """Return what names a file here for its lock, whatever path leads to it."""
        here = self._base.backend.lstat(self.handle, ".")
        return f"{here.st_dev}:{here.st_ino}:{'/'.join(fold(part) for part in [*self.missing, name])}"

    def passes_twin(self, guard: Guard) -> bool:
        """Tell whether a directory on the way is, under another name, a protected one in the root."""
        lstat = self._base.backend.lstat
        return any(self._base.is_twin(lstat(handle, "."), guard) for handle in self._handles)

    def failure(self, error: OSError, name: str | None = None) -> AgentFSError:
        """Return the typed form of an error at a name here."""
        if error.errno == errno.ENOENT and name is not None:
            return failures.missing(self._path, self.place(name), self._similar(name))
        return failures.of_system(error, self._path, self.place(name))

    def _push(self, handle: Handle, name: str) -> None:
        self._handles.append(handle)
        self.real.append(name)
        self.handle = handle

    def _climb(self) -> None:
        if self.missing:
            raise failures.missing(self._path, self.place())
        if not self._handles:
            raise failures.outside(self._path, self._link if self._in_link() else None)
        self._base.backend.close(self._handles.pop())
        self.real.pop()
        self.handle = self._handles[-1] if self._handles else self._held.handle

    def _in_link(self) -> bool:
        return self._links > 0 and len(self._pending) >= self._after_link

    def _enter(self, name: str) -> None:
        try:
            handle = self._base.backend.enter(self.handle, name)
        except OSError as error:
            if self.follow(error, name):
                return
            if self._creating and error.errno == errno.ENOENT:
                self.missing.append(name)
                return
            raise self.failure(error, name) from None
        self._push(handle, name)

    def _expand(self, name: str, target: str) -> None:
        link = self.place(name)
        if not self._base.follow:
            raise failures.link_refused(self._path, link)
        self._links += 1
        if self._links > MAX_LINKS:
            raise failures.link_loop(self._path, MAX_LINKS)
        led = split_link(target, self._base.roots)
        if led is None:
            raise failures.outside(self._path, link)
        if is_absolute(target):
            self.close()
            self.real.clear()
            self.handle = self._held.handle
        if not self._pending:
            self._directory = self._directory or led.directory
        self._link, self._after_link = link, len(self._pending)
        self._pending.extend(reversed(led.parts))
        if len(self._pending) + len(self.real) > MAX_PARTS:
            raise NameTooLongError(
                f"With its links resolved the path has more than {MAX_PARTS} parts.",
                hint="Name the file itself.",
                details={"path": show_name(self._path)},
            )

    def _swapped(self, error: OSError, name: str) -> bool:
        # What stood there was a link when it was opened and is none now, or the other way round: look again.
        try:
            mode = self._base.backend.lstat(self.handle, name).st_mode
        except OSError:
            return False
        if error.errno == errno.ENOTDIR and not (stat.S_ISDIR(mode) or stat.S_ISLNK(mode)):
            return False
        self._retries += 1
        if self._retries > _MAX_RETRIES:
            return False
        self._pending.append(name)
        return True

    def _spelling(self, name: str) -> str:
        other = unshow_name(name)
        if other == name or self.missing:
            return name
        for spelling in (name, other):
            try:
                self._base.backend.lstat(self.handle, spelling)
            except OSError:
                continue
            return spelling
        return name

    def _similar(self, name: str) -> tuple[str, ...]:
        import difflib  # noqa: PLC0415 - only a miss needs it
        from itertools import islice  # noqa: PLC0415 - as above

        backend = self._base.backend
        try:
            handle = backend.open_directory(self.handle, ".")
        except OSError:
            return ()
        try:
            with os.scandir(handle) as found:
                names = [entry.name for entry in islice(found, _SIMILAR_NAMES)]
        except OSError:
            return ()
        finally:
            backend.close(handle)
        folded = {unicodedata.normalize("NFC", other).casefold(): other for other in names}
        wanted = unicodedata.normalize("NFC", name).casefold()
        close = difflib.get_close_matches(wanted, folded, n=2, cutoff=0.75)
        return tuple(self.place(folded[key]) for key in close)
