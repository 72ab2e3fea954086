"""`Root`: one directory tree; every byte that is read or written in it goes through here."""

import os
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from copy import copy
from dataclasses import fields
from types import TracebackType
from typing import Self

from agentfs.errors import (
    AgentFSError,
    InvalidArgumentError,
    NotDirectoryError,
    NotFoundError,
    OutsideWorkspaceError,
    ReadOnlyError,
    UnsupportedSystemError,
)
from agentfs.fs import oserrors, syscalls
from agentfs.fs.context import Access, RootContext, RootHandle
from agentfs.fs.entry import entry_of
from agentfs.fs.file import Directory, OpenFile, open_regular
from agentfs.fs.lock import lock_directory
from agentfs.fs.node import Change, Conflict, Node, Recorder, node_at
from agentfs.fs.path import (
    ParsedPath,
    absolute_parts,
    display_name,
    is_absolute,
    is_simple,
    quote,
    split_path,
)
from agentfs.fs.replace import FileUpdate, check_replaceable, open_for_update
from agentfs.fs.resolve import ResolvedPath, resolve_real
from agentfs.policy import VIEWED, Policy
from agentfs.results import Containment, Entry


class Root:
    """One directory tree, and the only way into it.

    Every path is walked one name at a time from a descriptor on the root, each directory kept open and no
    link followed by the system, so that what is swapped meanwhile cannot lead outside. It may be used by
    several threads. A context manager.

    Attributes:
        path: The root's absolute path, links resolved.
        policy: What may be done.
        recorder: Records every change, or None.
        recovery_notes: What had to be done after a process died in the middle of several changes, in words.
    """

    def __init__(self, path: str | os.PathLike[str], policy: Policy) -> None:
        if sys.platform == "win32":
            raise UnsupportedSystemError(
                "A workspace cannot be opened on Windows: it does not open files relative to a directory.",
                hint="Run it on Linux (WSL or a container too), macOS or BSD.",
            )
        given = os.path.abspath(path)
        self.path = os.path.realpath(given)
        self.policy = policy
        self.recorder: Recorder | None = None
        try:
            handle = syscalls.open_root(self.path)
        except FileNotFoundError:
            raise NotFoundError(
                f"The workspace root {quote(given)} does not exist.", details={"path": given}
            ) from None
        except NotADirectoryError:
            raise NotDirectoryError(
                f"The workspace root {quote(given)} is not a directory.", details={"path": given}
            ) from None
        except OSError as error:
            raise oserrors.from_oserror(error, given) from None
        # The root may be known to the model by either spelling.
        roots = tuple(dict.fromkeys((absolute_parts(self.path), absolute_parts(given))))
        self._context = RootContext(RootHandle(handle), roots, policy)
        # Nobody may write through a root that is only read, repairs neither.
        self.recovery_notes = () if policy.read_only else self._repaired()

    def _repaired(self) -> tuple[str, ...]:
        from agentfs.fs.batch import repair  # noqa: PLC0415 - it loads when a tree is opened

        return tuple(repair(self._context, self.path))

    def with_policy(self, policy: Policy) -> "Root":
        """Return the same root under another policy; they are closed together."""
        for field in fields(policy):
            if field.name not in VIEWED and getattr(policy, field.name) != getattr(self.policy, field.name):
                raise InvalidArgumentError(
                    f"A view of a workspace cannot have another Policy.{field.name}.",
                    hint="Open a second workspace on the root.",
                )
        other = copy(self)
        other.policy = policy
        return other

    def starting_in(self, workdir: str) -> "Root":
        """Return the same root, where relative paths start in a directory and are displayed from there."""
        with self.find_directory(workdir) as directory:
            real_path = directory.real_path
        return self._from(real_path)

    @property
    def top(self) -> "Root":
        """The same root, where relative paths start at the root itself."""
        return self._from("") if self._context.workdir else self

    @property
    def unrestricted(self) -> "Root":
        """The same root, where all of it may be used: for ignore rules, which lie above what they ignore."""
        return self._on(self._context.starting_in("").restricted_to(None))

    @property
    def usable_directories(self) -> list[str]:
        """The directories from which everything that may be used is reached, as `top` takes them."""
        return (
            ["."]
            if self._context.only is None
            else [display_name(place) or "." for place in self._context.only]
        )

    def _from(self, workdir: str) -> "Root":
        return self._on(self._context.starting_in(workdir))

    def _on(self, context: RootContext) -> "Root":
        other = copy(self)
        other._context = context  # noqa: SLF001 - its own
        return other

    def restricted_to(self, only: Sequence[str]) -> "Root":
        """Return the same root, where nothing outside of some directories may be used or is named."""
        return self._on(self._context.restricted_to(tuple(self.resolve(path)[1] for path in only)))

    def path_from_top(self, path: str) -> str:
        """Return a path as it is requested at `top`."""
        start = self._context.workdir
        return path if not start or is_absolute(path) else f"{display_name(start)}/{path}"

    def display_path(self, real_path: str) -> str:
        """Return a path as it is displayed here."""
        return self._context.display_path(real_path) or "."

    def is_usable(self, real_path: str) -> bool:
        """Tell whether a path lies where things may be used and named."""
        return self._context.is_usable(real_path)

    def display_path_if_usable(self, real_path: str) -> str | None:
        """Return a path as it is shown here; None where it may not be named."""
        return self.display_path(real_path) if self.is_usable(real_path) else None

    def for_call(self, access: Access) -> Self:
        """Return the same root for one call; they are closed together."""
        other = copy(self)
        other._context = self._context.for_call(access)  # noqa: SLF001 - its own
        return other

    def may_show(self, real_path: str) -> bool:
        """Tell whether a file may be shown, by protected names and permission rules."""
        access = self._context.access
        denied = access is not None and access.denies_reading(real_path)
        return not denied and self.is_usable(real_path) and not self._context.unreadable.covers(real_path)

    def may_show_recorded(self, real_path: str) -> bool:
        """Tell whether recorded content of a file, which may be gone, may be shown now."""
        if not self.may_show(real_path):
            return False
        try:
            with resolve_real(self._context, real_path) as resolved:
                found = syscalls.lstat(resolved.parent, resolved.name)
        except (AgentFSError, OSError):
            return True
        return found.st_nlink == 1 or not self._context.is_hard_link_to(found, self._context.unreadable)

    def close(self) -> None:
        """Close the root; again is harmless, calls under way end in peace, and no later one works."""
        self._context.shared_handle.handle = RootHandle(-1)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def containment(self) -> Containment:
        """What confines calls to the root, and what keeps writers apart, as it works at this moment."""
        handle = self._context.handle
        mechanism = syscalls.mechanism(handle.fd)
        return {
            "open": mechanism,
            "atomic": True,
            "locks": "threads" if lock_directory(self.path) is None else "processes",
            "engine": "python",
        }

    def open_file(self, path: str) -> OpenFile:
        """Open a regular file for reading."""
        context = self._context
        plain = not context.workdir and is_simple(path)
        parsed = None if plain else self._split(path)
        direct = path if parsed is None else parsed.direct
        if direct and context.is_usable(direct):
            root = context.handle
            fd = syscalls.open_beneath(root.fd, direct)
            del root  # an exception that is kept must not keep the root open
            if fd >= 0:
                return open_regular(context, fd, direct if plain else context.display_path(direct), direct)
        with ResolvedPath(context, path, parsed or self._split(path)) as resolved:
            fd = resolved.open(syscalls.open_file)
            if resolved.name == ".":
                syscalls.close(fd)
                raise oserrors.not_a_file(path)
            return open_regular(context, fd, resolved.display_path, resolved.real_path)

    def open_directory(self, path: str) -> Directory:
        """Open a directory."""
        context, parsed = self._context, self._split_directory(path)
        direct = "/".join(parsed.parts)
        if direct and not parsed.climbs and not parsed.escaped and context.is_usable(direct):
            root = context.handle
            handle = syscalls.open_beneath(root.fd, direct, directory=True)
            del root
            if handle != -1:
                return Directory(context, handle, context.display_path(direct), direct)
        with ResolvedPath(context, path, parsed) as resolved:
            handle = resolved.open(syscalls.open_directory)
            return Directory(context, handle, resolved.display_path, resolved.real_path)

    def find_directory(self, path: str) -> Directory:
        """Open a directory for its path only; nothing in it is read."""
        return self.open_directory(path)

    def entry(self, path: str) -> Entry:
        """Return what a path names."""
        with ResolvedPath(self._context, path, self._split_directory(path)) as resolved:
            try:
                if resolved.name == ".":
                    syscalls.close(syscalls.open_directory(resolved.parent, "."))
                status = syscalls.lstat(resolved.parent, resolved.name)
            except OSError as error:
                raise resolved.error(error) from None
            path, real_path = resolved.display_path or ".", resolved.real_path
            name = os.path.basename(path) if resolved.name == "." else resolved.name
            return entry_of(self._context, path, real_path, name, status)

    def has_linked_secrets(self) -> bool:
        """Tell whether a protected file of the root has a second name; see `Directory.read_files`."""
        return self._context.has_hard_link_to(self._context.unreadable)

    def exists(self, path: str) -> bool:
        """Tell whether a path names something; a link at the end counts, wherever it leads."""
        try:
            self.entry(path)
        except (NotFoundError, NotDirectoryError):
            return False
        return True

    @contextmanager
    def open_for_update(self, path: str, *, max_bytes: int) -> Generator[FileUpdate]:
        """Open a file, or the name of a new one, to read and replace it under its lock.

        A link at the end is kept: what it leads to is opened, and created when it is not there. The mode is
        kept, setuid and setgid are not.

            for _ in range(ATTEMPTS):
                with suppress(ConcurrentChange), root.open_for_update(path, max_bytes=limit) as update:
                    return update.replace(compute(update.current))

        Args:
            path: Relative to the root, or absolute inside it.
            max_bytes: The largest file that is read.

        Raises:
            ConcurrentChange: Another program changed the file meanwhile; nothing was written.
            AgentFSError: read_only, outside_workspace, not_a_file, not_a_directory, not_regular, link_loop,
                invalid_path, name_too_long, protected, too_large, refused, busy, io.
        """
        parsed = self._split(path)
        if self.policy.read_only:
            raise ReadOnlyError(
                f"{quote(path)} cannot be changed: this workspace may only be read.",
                details={"path": display_name(path)},
            )
        with open_for_update(
            self._context, self.path, path, parsed, max_bytes=max_bytes, recorder=self.recorder
        ) as update:
            yield update

    def apply(
        self,
        changes: Sequence[Change],
        *,
        max_bytes: int,
        conflict: Conflict,
        recorder: Recorder | None = None,
        keep_non_empty: bool = False,
    ) -> tuple[str, ...]:
        """Make several changes as one: all of them, or none.

        Missing directories above what is created are made.

        Args:
            changes: At most one for each path; what is there must be what each has as `before`.
            max_bytes: The largest file that is read.
            conflict: Makes the error for a change that finds something else; it is given what is there.
            recorder: Records the changes; by default the recorder of the root.
            keep_non_empty: Whether a directory that is to go may stay, when something else is in it.

        Returns:
            The directories that stay.

        Raises:
            AgentFSError: read_only, busy, refused (a link is on the way), io, and what `conflict` makes.
        """
        if self.policy.read_only:
            raise ReadOnlyError("Nothing can be changed: this workspace may only be read.")
        from agentfs.fs.batch import apply_changes  # noqa: PLC0415 - as in `_repaired`

        try:
            return apply_changes(
                self._context,
                self.path,
                changes,
                max_bytes=max_bytes,
                conflict=conflict,
                recorder=recorder or self.recorder,
                keep_non_empty=keep_non_empty,
            )
        except OSError as error:
            raise oserrors.from_oserror(error, changes[0].path if changes else ".") from None

    def resolve(self, path: str) -> tuple[str, str]:
        """Return where a path leads, whether or not anything is there yet; the last link is followed too."""
        parsed = self._split(path)
        with ResolvedPath(self._context, path, parsed, follow_last=True, create_parents=True) as resolved:
            return resolved.display_path, resolved.real_path

    def ignores_case(self, real_path: str) -> bool:
        """Tell whether the file system takes a path in other case for the same file."""
        parts = real_path.split("/")
        for count in range(len(parts), 0, -1):
            name, other = parts[count - 1], parts[count - 1].swapcase()
            if name == other:
                continue
            try:
                with resolve_real(self._context, "/".join(parts[:count])) as resolved:
                    found = syscalls.lstat(resolved.parent, name)
                    with suppress(OSError):
                        return os.path.samestat(found, syscalls.lstat(resolved.parent, other))
                    return False
            except (AgentFSError, OSError):
                continue  # nothing is there: the directory above decides
        with suppress(OSError):
            return os.path.samefile(self.path, self.path.swapcase())
        return False

    def real_path(self, path: str, *, creating: bool = False) -> str:
        """Return where a path leads: from the root on, links resolved but for the last."""
        with ResolvedPath(self._context, path, self._split(path), create_parents=creating) as resolved:
            return resolved.real_path

    def node(self, real_path: str, *, max_bytes: int) -> Node | None:
        """Return what is at a path whose links are resolved, but for the last."""
        return node_at(self._context, real_path, max_bytes)

    def check_replaceable(self, real_path: str, path: str) -> None:
        """Refuse to give a file a new content where that would fail now.

        Args:
            real_path: The file, from the root on, links resolved; it need not be there yet.
            path: The path to speak of.

        Raises:
            AgentFSError: refused: it is write-protected, or has hard links that the policy does not change;
                io: the system lets no name be made in its directory.
        """
        with resolve_real(self._context, real_path, create_parents=True) as resolved:
            check_replaceable(self._context, resolved, path)

    def _split_directory(self, path: str) -> ParsedPath:
        return self._split(path or ".")

    def _split(self, path: str) -> ParsedPath:
        try:
            parsed = split_path(path, self._context.roots)
        except OutsideWorkspaceError as error:
            inside = path.lstrip("/")
            if inside and inside != path and self._is_there(inside):
                error.hint = f"Did you mean {quote(inside)}? Without a leading `/` a path is relative."
            raise
        start = self._context.workdir
        if not start or is_absolute(path):
            return parsed
        return parsed._replace(parts=(*start.split("/"), *parsed.parts))

    def _is_there(self, path: str) -> bool:
        try:
            return self.exists(path)
        except Exception:  # noqa: BLE001 - it serves a hint only
            return False
