"""`ResolvedPath`: a path resolved to an open parent directory and a name, and checked for changes.

The path is walked name by name from a descriptor of the root, and each directory on the way is kept open. The
system never follows a link; links are read, and their targets are walked in the same way. So no path can lead
outside, even if another program replaces a directory by a link.
"""

import errno
import os
import posixpath
import stat
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from typing import NamedTuple, Self

from agentfs.errors import AgentFSError, LinkLoopError, NameTooLongError, RefusedError
from agentfs.fs import oserrors, syscalls
from agentfs.fs.context import RootContext
from agentfs.fs.own_directories import STATE_MARK
from agentfs.fs.path import (
    MAX_PARTS,
    ParsedPath,
    display_name,
    error_of,
    has_one_spelling,
    is_alike,
    parse_display_name,
    quote,
    split_link,
)
from agentfs.fs.protect import fold

MAX_LINKS = 40
_MAX_RETRIES = 128
# Errors that O_NOFOLLOW gives for a link on Linux, macOS, FreeBSD and NetBSD; with O_DIRECTORY, ENOTDIR.
_MAY_BE_LINK = {errno.ELOOP, errno.ENOTDIR, errno.EMLINK, getattr(errno, "EFTYPE", errno.ELOOP)}


class HeldPlace(NamedTuple):
    """A name in an open directory; a `ResolvedPath` has these attributes too."""

    parent: int
    name: str
    real_path: str
    display_path: str


class ResolvedPath:
    """An open parent directory and a name in it. This is a context manager; entering it walks the path."""

    def __init__(
        self,
        context: RootContext,
        path: str,
        parsed: ParsedPath,
        *,
        follow: bool | None = None,
        follow_last: bool = False,
        create_parents: bool = False,
    ) -> None:
        """Prepare the walk.

        Args:
            context: The root and its settings.
            path: The path for error messages.
            parsed: The path to walk.
            follow: Follow links; None takes the setting of the policy.
            follow_last: Follow a link at the last name too.
            create_parents: Allow missing directories in the path.
        """
        self._context, self._path, self._parsed = context, path, parsed
        self._follow = context.follow if follow is None else follow
        self._follow_last, self._create_parents = follow_last, create_parents
        self._root = context.trees.root.handle  # a reference keeps it open
        self._pending = [*reversed(parsed.parts)]
        self._directory_meant = parsed.directory
        self._directories: list[int] = []
        self._real: list[str] = []
        self._last_link: str | None = None
        self._retries = 0
        self.parent = self._root.fd  # the parent directory, or the last existing directory above it
        self.name = "."  # the last name, not followed; "." if the path is `parent` itself
        self.real_path = ""  # relative to the root, with all links resolved except the last; "" is the root
        self.through_links: list[str] = []  # the path of each followed link, with the rest of the path
        self.missing: list[str] = []  # names of missing directories between `parent` and `name`

    def __enter__(self) -> Self:
        try:
            self._walk()
            if self._follow_last:
                self.follow_last_link()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        """Close it. An OSError of the block becomes a typed error, except `FileExistsError`."""
        self.close()
        if isinstance(error, OSError) and not isinstance(error, AgentFSError | FileExistsError):
            raise self.error(error) from None

    def close(self) -> None:
        """Close all directories that were opened, and release the root."""
        self._leave()
        vars(self).pop("_root", None)

    def _leave(self) -> None:
        while self._directories:
            syscalls.close(self._directories.pop())

    def open(self, open_name: Callable[[int, str], int]) -> int:
        """Return the descriptor from `open_name(parent, name)`, following links that it refuses."""
        while True:
            if self.missing:
                raise self.error_of(errno.ENOENT)
            try:
                return open_name(self.parent, self.name)
            except OSError as error:
                if self.name == "." or not self._follow_refused(error, self.name):
                    raise self.error(error) from None
            self._walk()

    def follow_last_link(self) -> None:
        """If the last name is a link, follow it and any further links."""
        while self.name != "." and (target := self.target()) is not None:
            self._expand_link(self.name, target)
            self._walk()

    def target(self) -> str | None:
        """Return the target as written if the last name is a link; otherwise None."""
        try:
            return None if self.missing else syscalls.readlink(self.parent, self.name)
        except OSError:
            return None

    @cached_property
    def display_path(self) -> str:
        """The requested path, normalised for display; the real path if the requested one has a `..`."""
        parsed = self._parsed
        return self._context.displayed(self.real_path if parsed.climbs else "/".join(parsed.parts))

    def stat(self) -> os.stat_result | None:
        """Return the status of the last name, or None if it does not exist. A link is not followed."""
        try:
            return None if self.missing else syscalls.lstat(self.parent, self.name)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self.error(error) from None

    def check_may_change(self) -> None:
        """Raise ProtectedError, or RefusedError for a permission rule, if the path may not be changed."""
        self._context.check_names(self._path, (self.real_path, *self.through_links))
        if self._is_state():
            raise oserrors.protected(self._path, self._context.displayed(self.real_path), readable=True)

    def _is_state(self) -> bool:
        """Return True for the mark of a state directory, and for all beside it."""
        if STATE_MARK in map(fold, [*self.missing, self.name]):
            return True
        with suppress(OSError):
            syscalls.lstat(self.parent, STATE_MARK)
            return True
        return False

    def check_replaceable(self, mode: int) -> None:
        """Raise the error for a file that its mode protects from changes.

        A rename needs no permission on the file itself, so the system would not refuse it.
        """
        if not syscalls.may_write(self.parent, self.name, mode):
            raise oserrors.write_protected(self._path, mode)

    def error_of(self, number: int, name: str | None = None) -> AgentFSError:
        """Return the typed error for an errno. It is about a name in the parent, by default the last name."""
        return self.error(OSError(number, os.strerror(number)), name)

    def error(self, error: OSError, name: str | None = None) -> AgentFSError:
        """Return the typed form of an error. It is about a name in the parent, by default the last name."""
        name = self.name if name is None else name
        at = self._real_path(None if name == "." else name)
        failed_at = self._context.displayed(at) or "."
        if error.errno == errno.ENOTDIR and name != ".":
            return oserrors.not_a_directory(self._path, failed_at, readable=self._is_readable(name))
        return oserrors.from_oserror(error, self._path, failed_at)

    def _walk(self) -> None:
        """Enter one directory after the other, until only the last name is left."""
        pending = self._pending
        while pending:
            name = pending.pop()
            if name == "..":
                self._go_up()
                continue
            if self._parsed.escaped or not has_one_spelling(name):
                name = self._spelling(name)
            last = not pending and not self._directory_meant
            if self._context.only is not None:
                self._check_usable(name, on_the_way=not last)
            if not (self._real or self.missing) and (tree := self._context.trees.others.get(name)):
                mounted = tree.handle  # a reference keeps it open
                self._push(syscalls.enter(mounted.fd, "."), name)
                continue
            if last:
                self.name = name
                self.real_path = self._real_path(name)
                return
            try:
                if not self.missing:
                    self._push(syscalls.enter(self.parent, name), name)
                    continue
            except OSError as error:
                if self._follow_refused(error, name):
                    continue
                if error.errno != errno.ENOENT:
                    raise self.error(error, name) from None
            if not self._create_parents:
                raise self.error_of(errno.ENOENT, name)
            self.missing.append(name)
        if self._context.only is not None:
            self._check_usable()
        self.name = "."
        self.real_path = self._real_path()

    def _push(self, directory: int, name: str) -> None:
        self._directories.append(directory)
        self._real.append(name)
        self.parent = directory

    def _go_up(self) -> None:
        if self.missing:
            raise oserrors.missing(self._path, self._context.displayed(self._real_path()) or ".")
        if not self._directories:
            raise oserrors.outside(self._path, self._last_link)
        syscalls.close(self._directories.pop())
        self._real.pop()
        self.parent = self._directories[-1] if self._directories else self._root.fd

    def _follow_refused(self, error: OSError, name: str) -> bool:
        """Follow the link that made an open call fail. Return False if a link was not the cause."""
        if error.errno not in _MAY_BE_LINK:
            return False
        try:
            target = syscalls.readlink(self.parent, name)
        except OSError:
            # Another program may have replaced a link by a directory, or the reverse: try the name again.
            with suppress(OSError):
                mode = syscalls.lstat(self.parent, name).st_mode
                self._retries += 1
                may_enter = error.errno != errno.ENOTDIR or stat.S_ISDIR(mode) or stat.S_ISLNK(mode)
                if may_enter and self._retries <= _MAX_RETRIES:
                    self._pending.append(name)
                    return True
            return False
        self._expand_link(name, target)
        return True

    def _expand_link(self, name: str, target: str) -> None:
        link = self._context.displayed(self._real_path(name)) or "."
        if not self._follow:
            message = f"{quote(link)} is a symbolic link, which is not followed here."
            hint = "Name the file itself."
            raise error_of(RefusedError, self._path, message, hint, link=display_name(link))
        left = "/".join([self._real_path(name), *reversed(self._pending)])
        self.through_links.append(posixpath.normpath(left))
        if len(self.through_links) > MAX_LINKS:
            message = f"{quote(self._path)} goes through more than {MAX_LINKS} symbolic links."
            hint = "Links that lead to each other have no end; name the file itself."
            raise error_of(LinkLoopError, self._path, message, hint)
        parsed = split_link(target, self._context.roots)
        if parsed is None:
            raise oserrors.outside(self._path, link)
        if target.startswith("/"):
            self._leave()
            self._real.clear()
            self.missing.clear()
            self.parent = self._root.fd
        if not self._pending:
            self._directory_meant = self._directory_meant or parsed.directory
        self._last_link = link
        self._pending.extend(reversed(parsed.parts))
        if len(self._pending) + len(self._real) > MAX_PARTS:
            message = f"With links resolved, the path has more than {MAX_PARTS} parts."
            raise error_of(NameTooLongError, self._path, message, "Name the file itself.")

    def _check_usable(self, name: str | None = None, *, on_the_way: bool = False) -> None:
        context, real_path = self._context, self._real_path(name)
        if not (context.is_usable(real_path) or (on_the_way and context.contains_usable(real_path))):
            tops = [context.displayed(top) or "." for top in context.only or ()]
            raise oserrors.not_usable(self._path, tops)

    def _real_path(self, name: str | None = None) -> str:
        parts = [*self._real, *self.missing]
        return "/".join(parts if name is None else [*parts, name])

    def _is_readable(self, name: str) -> bool:
        """Return True if a name in the parent is a regular file whose content may be shown."""
        with suppress(OSError):
            is_regular = stat.S_ISREG(syscalls.lstat(self.parent, name).st_mode)
            return is_regular and self._context.may_read(self._real_path(name))
        return False

    def _spelling(self, written: str) -> str:
        """Return the name in the parent that a written name stands for; the name itself if there is none.

        A missing name stands for the only entry that differs just in its Unicode form or the kind of its
        spaces.
        """
        if self.missing:
            return written
        unescaped = parse_display_name(written) if self._parsed.escaped else written
        for spelling in dict.fromkeys((written, unescaped)):
            with suppress(OSError):
                syscalls.lstat(self.parent, spelling)
                if spelling != written:
                    parts = tuple(spelling if part == written else part for part in self._parsed.parts)
                    self._parsed = self._parsed._replace(parts=parts)
                return spelling
        found: list[str] = []
        with suppress(OSError):
            found = [name for name in syscalls.names_in_time(self.parent) if is_alike(name, unescaped)]
        return found[0] if len(found) == 1 else written


Place = HeldPlace | ResolvedPath


def resolve_real(
    context: RootContext, real_path: str, *, create_parents: bool = False, requested: str | None = None
) -> ResolvedPath:
    """Resolve a real path. A link in it is an error. Errors name `requested` if it is given."""
    parsed = ParsedPath(tuple(real_path.split("/")) if real_path else ())
    path = (real_path or ".") if requested is None else requested
    return ResolvedPath(context, path, parsed, follow=False, create_parents=create_parents)
