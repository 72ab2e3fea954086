"""The walk along a path: one name at a time, each directory held open, links read and walked alike."""

import errno
import os
import stat
import unicodedata

from agentfs.errors import AgentFSError, NameTooLongError
from agentfs.fs import oserrors, syscalls
from agentfs.fs.context import RootContext, RootHandle
from agentfs.fs.names import first_names
from agentfs.fs.path import MAX_PARTS, ParsedPath, display_name, is_absolute, parse_display_name, split_link
from agentfs.fs.protect import NameMatcher, fold

MAX_LINKS = 40
_MAX_RETRIES = 128
_SIMILAR_NAMES = 5000
# What systems say when O_NOFOLLOW meets a link: Linux and macOS, FreeBSD, NetBSD; ENOTDIR with O_DIRECTORY.
_MAY_BE_LINK = {errno.ELOOP, errno.ENOTDIR, errno.EMLINK, getattr(errno, "EFTYPE", errno.ELOOP)}


class PathResolver:
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

    def __init__(self, base: RootContext, path: str, asked: ParsedPath, *, creating: bool = False) -> None:
        self._base = base
        self._held = held = base.held
        self._path = path
        self._asked = asked
        self._pending = list(reversed(asked.parts))
        self._directory = asked.directory
        self._creating = creating
        self._handles: list[int] = []
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
        close = syscalls.close
        while self._handles:
            close(self._handles.pop())

    def let_go(self) -> None:
        """Close the directories that were entered, and let go of the root: the walk is over."""
        self.close()
        self._held = RootHandle(-1)

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
            if self._asked.escaped:
                written, name = name, self._spelling(name)
                parts = tuple(name if part == written else part for part in self._asked.parts)
                self._asked = self._asked._replace(parts=parts)
            last = not pending and not self._directory
            self._check_usable(name, on_the_way=not last)
            if last:
                return name
            if self.missing:
                self.missing.append(name)
            else:
                self._enter(name)
        self._check_usable()
        return None

    def _check_usable(self, name: str | None = None, *, on_the_way: bool = False) -> None:
        base, place = self._base, self.place(name)
        if not (base.usable(place) or (on_the_way and base.leads_to_usable(place))):
            raise oserrors.not_usable(self._path, [base.shown(top) or "." for top in base.only or ()])

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
        try:
            target = syscalls.readlink(self.handle, name)
        except OSError:
            return self._swapped(error, name)
        self._expand(name, target)
        return True

    def follow_link(self, name: str) -> bool:
        """Take a link at a name into the walk, if one is there; tell whether it was."""
        try:
            target = syscalls.readlink(self.handle, name)
        except OSError:
            return False
        self._expand(name, target)
        return True

    def make_missing(self) -> None:
        """Make the directories of `missing` and enter them."""
        missing, self.missing = self.missing, []
        for name in missing:
            try:
                try:
                    syscalls.make_directory(self.handle, name)
                    self._made.append((len(self._handles), name))
                except FileExistsError:
                    pass
                handle = syscalls.enter(self.handle, name)
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
                syscalls.remove_directory(handle, name)
            except OSError:
                return

    def place(self, name: str | None = None) -> str:
        """Return the path from the root on, links resolved, of a name here (or of this directory)."""
        parts = [*self.real, *self.missing]
        return "/".join(parts if name is None else [*parts, name])

    def shown(self, name: str | None = None) -> str:
        """Return the path as it was asked for, normalised and fit to show; resolved where it climbs."""
        return self._base.shown(self.place(name) if self._asked.climbs else "/".join(self._asked.parts))

    @property
    def changed(self) -> list[int]:
        """The directories in which names have changed: this one, and those above one that was made."""
        made = [self._handles[depth - 1] if depth else self._held.handle for depth, _ in self._made]
        return [self.handle, *made]

    def key(self, name: str) -> str:
        """Return what names a file here for its lock, whatever path leads to it."""
        here = syscalls.lstat(self.handle, ".")
        return f"{here.st_dev}:{here.st_ino}:{'/'.join(fold(part) for part in [*self.missing, name])}"

    def look(self, name: str) -> os.stat_result | None:
        """Return what the system says of a name here; None where nothing is."""
        try:
            return None if self.missing else syscalls.lstat(self.handle, name)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self.failure(error, name) from None

    def passes_twin(self, guard: NameMatcher) -> bool:
        """Tell whether a directory on the way is, under another name, a protected one in the root."""
        lstat = syscalls.lstat
        return any(self._base.is_twin(lstat(handle, "."), guard) for handle in self._handles)

    def failure(self, error: OSError, name: str | None = None) -> AgentFSError:
        """Return the typed form of an error at a name here."""
        if isinstance(error, AgentFSError):
            return error
        if error.errno == errno.ENOENT and name is not None:
            return oserrors.missing(self._path, self._shown_place(name), self._similar(name))
        if error.errno == errno.ENOTDIR and name is not None:
            place, readable = self._shown_place(name), self._is_readable(name)
            return oserrors.not_a_directory(self._path, place, readable=readable)
        return oserrors.from_oserror(error, self._path, self._shown_place(name))

    def _is_readable(self, name: str) -> bool:
        """Tell whether a name here is of a regular file whose content may be shown."""
        place, access = self.place(name), self._base.access
        if self._base.unreadable.covers(place) or (access is not None and access.denies_reading(place)):
            return False
        try:
            return stat.S_ISREG(syscalls.lstat(self.handle, name).st_mode)
        except OSError:
            return False

    def _shown_place(self, name: str | None = None) -> str:
        return self._base.shown(self.place(name)) or "."

    def _push(self, handle: int, name: str) -> None:
        self._handles.append(handle)
        self.real.append(name)
        self.handle = handle

    def _climb(self) -> None:
        if self.missing:
            raise oserrors.missing(self._path, self._shown_place())
        if not self._handles:
            raise oserrors.outside(self._path, self._link if self._in_link() else None)
        syscalls.close(self._handles.pop())
        self.real.pop()
        self.handle = self._handles[-1] if self._handles else self._held.handle

    def _in_link(self) -> bool:
        return self._links > 0 and len(self._pending) >= self._after_link

    def _enter(self, name: str) -> None:
        try:
            handle = syscalls.enter(self.handle, name)
        except OSError as error:
            if self.follow(error, name):
                return
            if self._creating and error.errno == errno.ENOENT:
                self.missing.append(name)
                return
            raise self.failure(error, name) from None
        self._push(handle, name)

    def _expand(self, name: str, target: str) -> None:
        link = self._shown_place(name)
        if not self._base.follow:
            raise oserrors.link_refused(self._path, link)
        self._links += 1
        if self._links > MAX_LINKS:
            raise oserrors.link_loop(self._path, MAX_LINKS)
        led = split_link(target, self._base.roots)
        if led is None:
            raise oserrors.outside(self._path, link)
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
                details={"path": display_name(self._path)},
            )

    def _swapped(self, error: OSError, name: str) -> bool:
        # What stood there was a link when it was opened and is none now, or the other way round: look again.
        try:
            mode = syscalls.lstat(self.handle, name).st_mode
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
        other = parse_display_name(name)
        if other == name or self.missing:
            return name
        for spelling in (name, other):
            try:
                syscalls.lstat(self.handle, spelling)
            except OSError:
                continue
            return spelling
        return name

    def _similar(self, name: str) -> tuple[str, ...]:
        import difflib  # noqa: PLC0415 - only a miss needs it
        from itertools import islice  # noqa: PLC0415 - as above

        try:
            names = list(islice(first_names(self.handle), _SIMILAR_NAMES))
        except OSError:
            return ()
        folded = {unicodedata.normalize("NFC", other).casefold(): other for other in names}
        wanted = unicodedata.normalize("NFC", name).casefold()
        close = difflib.get_close_matches(wanted, folded, n=2, cutoff=0.75)
        names = [folded[key] for key in close]
        return tuple(self._shown_place(near) for near in names if self._base.usable(self.place(near)))
