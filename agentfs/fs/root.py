"""`Root`: the directory tree of a workspace, and the only way to read and change it."""

import errno
import os
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import fields
from functools import partial
from typing import Any, Protocol, Self, TypeVar

from agentfs.errors import (
    InvalidArgumentError,
    InvalidPathError,
    NotDirectoryError,
    NotFoundError,
    OutsideWorkspaceError,
    RefusedError,
    closed,
)
from agentfs.fs import oserrors, syscalls
from agentfs.fs.apply import Applied, Batch
from agentfs.fs.context import RootContext
from agentfs.fs.directory import Directory, entry_of
from agentfs.fs.file import OpenFile, node_at, node_in, open_regular
from agentfs.fs.lock import ATTEMPTS, file_locks, usable_directories
from agentfs.fs.node import (
    Change,
    Changed,
    ConcurrentChange,
    Conflict,
    Current,
    FileNode,
    LinkNode,
    LogStep,
    Node,
    begin_again,
    expanded,
)
from agentfs.fs.path import ParsedPath, display_name, is_alike, quote, split_path
from agentfs.fs.protect import LinkedMatcher
from agentfs.fs.resolve import ResolvedPath, resolve_real
from agentfs.policy import VIEWED, Policy
from agentfs.results import Containment, Entry, WatchReport

_MAX_ABOVE = 12  # leading names that are dropped from an absolute path to find it inside the root
_R = TypeVar("_R")


class KeptTree(Protocol):
    """A watched tree, which keeps listings and texts in memory; the package `watch` implements it."""

    texts: Any  # the `KeptTexts` of `watch.kept_texts`

    def call(self) -> AbstractContextManager[bool]:
        """Bring the tree up to date for a search in the block; give False if there is no time."""
        ...

    def open(self, context: RootContext, path: str, real_path: str) -> Directory | None:
        """Return the kept directory at a real path, displayed as `path`; None if it is not kept."""
        ...

    def close(self) -> None:
        """Free all resources."""

    def forget(self) -> None:
        """Drop all kept data."""

    @property
    def report(self) -> WatchReport:
        """Counts of kept files, and reasons why others are not kept."""
        ...


class Root(RootContext):
    """A directory tree. All reads and changes in it go through this class.

    `resolve.py` explains how it confines them. Methods may be called from several threads.
    """

    watch: KeptTree | None = None  # set by `keep_tree`
    tree: KeptTree | None = None  # during a search: `watch`, brought up to date

    def with_policy(self, policy: Policy) -> Self:
        """Return a view of this root with another policy. Closing one closes both."""
        for field in fields(policy):
            name, ours, theirs = field.name, getattr(self.policy, field.name), getattr(policy, field.name)
            if name not in VIEWED and ours != theirs and not (name == "ask" and set(ours) < set(theirs)):
                message = f"A view of a workspace cannot have another Policy.{name}."
                raise InvalidArgumentError(message, hint="Open a second workspace on the root.")
        return self.view(policy=policy)

    def starting_in(self, workdir: str) -> Self:
        """Return a view in which relative paths start in a directory and are displayed from there."""
        with self.open_directory(workdir) as directory:
            return self.view(start=directory.real_path)

    @property
    def top(self) -> Self:
        """The view in which relative paths start at the root."""
        return self.view(start="") if self.start else self

    @property
    def unrestricted(self) -> Self:
        """The view in which all paths may be used. Ignore files above the allowed directories need it."""
        return self.view(start="", only=None) if self.start or self.only is not None else self

    def restricted_to(self, only: Sequence[str]) -> Self:
        """Return a view that neither uses nor names paths outside the given directories."""
        return self.view(only=tuple(self.resolve(path)[1] for path in only))

    def is_protected(self, real_path: str) -> bool:
        """Return True if the name of a path is protected from reading or from changes."""
        return self.unreadable.covers(real_path) or self.unwritable.covers(real_path)

    def unreadable_names(self, directory: str, names: Sequence[str]) -> set[str]:
        """Return the names in a directory that may not be read."""
        access, found = self.access, set(self.unreadable.covered(directory, names))
        if access is not None:
            found.update(name for name in names if access.denies_reading(os.path.join(directory, name)))
        return found

    def keep_tree(self, make: Callable[[RootContext], KeptTree]) -> None:
        """Keep listings and texts in the tree that `make` returns; see `watching`."""
        self.watch = make(self.unrestricted.view(recorder=None))

    @contextmanager
    def watching(self) -> Generator[Self]:
        """Give a view with an up-to-date tree for one search. Other searches wait until it ends."""
        with nullcontext() if self.watch is None else self.watch.call() as ready:
            yield self.view(tree=self.watch if ready else None)

    @property
    def workdir(self) -> str:
        """The directory where relative paths start, as a path of `top`."""
        return display_name(self.start) or "."

    @property
    def usable_directories(self) -> list[str]:
        """The directories that may be used, as paths of `top`."""
        only = self.only
        return ["."] if only is None else [display_name(directory) or "." for directory in only]

    def path_from_top(self, path: str) -> str:
        """Convert a path of this view to a path of `top`."""
        return path if self.workdir == "." or path.startswith("/") else f"{self.workdir}/{path}"

    def display_path(self, real_path: str) -> str:
        """Return a path to display in this view."""
        return self.displayed(real_path) or "."

    def link_notes(self, path: str, real_path: str) -> list[str]:
        """Return a note that names the real file, unless the displayed path is its path."""
        named = self.displayed(real_path)
        if path == named:
            return []
        if is_alike(path, named):
            return [f"the name is {quote(named)}, in another Unicode form or with other spaces"]
        return [f"through a link to {quote(named)}"]

    def display_path_if_usable(self, real_path: str) -> str | None:
        """Return a path to display in this view, or None if it may not be named."""
        return self.display_path(real_path) if self.is_usable(real_path) else None

    def may_show(self, real_path: str) -> bool:
        """Return True if a file may be used, and protected names and permission rules allow showing it."""
        return self.is_usable(real_path) and self.may_read(real_path)

    def close(self) -> None:
        """Close the root. Running calls finish; later calls fail. It may be closed twice."""
        self.trees.close()
        if self.watch is not None:
            self.watch.close()

    def check_open(self) -> None:
        """Raise `closed` if the root is closed, and `root_gone` if it was removed."""
        handle = self.trees.root.handle  # a reference keeps it open
        if handle.fd == syscalls.CLOSED:
            raise closed()
        if syscalls.was_removed(handle.fd):
            raise oserrors.root_gone(self.path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def containment(self) -> Containment:
        """The mechanisms that currently confine calls and keep writers apart."""
        excludes = any(usable_directories(self.path))
        return {"open": "fd-walk", "locks": "processes" if excludes else "threads", "run": self.policy.run}

    def open_file(self, path: str) -> OpenFile:
        """Open a regular file for reading."""
        with self._resolved(path) as resolved:
            fd = resolved.open(syscalls.open_file)
        shown, links = resolved.display_path or ".", resolved.through_links
        return open_regular(self, fd, shown, resolved.real_path, links=links)

    def open_directory(self, path: str) -> Directory:
        """Open a directory."""
        with self._resolved(path or ".") as resolved:
            handle = resolved.open(syscalls.open_directory)
        links = [each for each in resolved.through_links if not self.unreadable.are_ordinary(each.split("/"))]
        view = self
        if links:
            view = self.view(unreadable=LinkedMatcher(self.unreadable, resolved.real_path, links))
        return Directory(view, handle, resolved.display_path, resolved.real_path)

    def enter_directory(self, path: str) -> Directory:
        """Open a directory for a walk. A search of a watched tree gets the kept directory."""
        opened = self.open_directory(path)
        tree = self.tree if opened.is_in_view(self) else None  # kept texts are judged by their real paths
        kept = None if tree is None else tree.open(self, opened.path, opened.real_path)
        if kept is None:
            return opened
        opened.close()
        return kept

    @property
    def texts(self) -> Any:
        """The kept texts; None if the tree is not watched or the call has permission rules."""
        return None if self.tree is None or self.access is not None else self.tree.texts

    def entry(self, path: str) -> Entry:
        """Return the `Entry` at a path."""
        with self._resolved(path or ".") as resolved:
            status = resolved.stat()
            if status is None:
                raise resolved.error_of(errno.ENOENT)
            path, real_path = resolved.display_path or ".", resolved.real_path
            name = os.path.basename(path) if resolved.name == "." else resolved.name
            return entry_of(self, path, real_path, name, status)

    def exists(self, path: str) -> bool:
        """Return True if a path exists. A link exists even if its target is missing."""
        with suppress(NotFoundError, NotDirectoryError):
            self.entry(path)
            return True
        return False

    def update(
        self,
        path: str,
        compute: Callable[[Current], tuple[bytes, _R]],
        *,
        max_bytes: int,
        preview: bool = False,
        judges: bool = True,
    ) -> tuple[Changed, _R]:
        """Lock and read a file, then replace or create it with new content.

        If the path is a link, its target is changed. The mode is kept, except setuid and setgid.

        Args:
            path: The file. Missing directories above it are created.
            compute: Gets the file and returns its new content and a second value. It is called again if
                another program changes the file meanwhile.
            max_bytes: The limit for the old content.
            preview: Check everything and change nothing.
            judges: Judge the change by the rules; False for a preview of a change that `apply` will make.

        Returns:
            The outcome and the second value of `compute`.
        """
        parsed = self._split(path)
        if self.policy.read_only:
            raise oserrors.read_only(path)
        try:
            for _ in range(ATTEMPTS):
                with (
                    suppress(ConcurrentChange),
                    file_locks(self.trees.lock_keys, self.path, path) as lock_file,
                    ResolvedPath(self, path, parsed, follow_last=True, create_parents=True) as resolved,
                ):
                    current = self._current(resolved, max_bytes)
                    shown, real_path, before, _, old = current
                    after, found = compute(current)
                    node, notes = current.node_with(after), self.link_notes(shown, real_path)
                    if after != before:
                        if old is not None:
                            resolved.check_replaceable(old.mode)
                        change = Change(real_path, old, node)
                        if judges:
                            self.judge([change])
                        if not preview:
                            notes += self._put(change, resolved, lock_file, max_bytes)
                    return Changed(shown, real_path, before, node.digest, tuple(notes)), found
        except OSError as error:
            raise oserrors.from_oserror(error, path) from None
        raise oserrors.kept_changing(path)

    def _current(self, resolved: ResolvedPath, max_bytes: int) -> Current:
        """Return the file at a locked path; raise an error if it may not be replaced."""
        if resolved.name == ".":
            shown = resolved.display_path or "."
            raise oserrors.not_a_file(shown) if resolved.stat() else oserrors.ends_with_slash(shown)
        resolved.check_may_change()
        node = None if resolved.missing else node_in(self, resolved, max_bytes)
        if isinstance(node, LinkNode):  # links were already followed, so this one was created just now
            raise ConcurrentChange
        if not (node is None or isinstance(node, FileNode)):
            raise oserrors.not_a_file(resolved.display_path)
        data, revision = (None, None) if node is None else (node.load(), node.digest)
        return Current(resolved.display_path, resolved.real_path, data, revision, node)

    def _put(self, change: Change, place: ResolvedPath, lock_file: int, max_bytes: int) -> Sequence[str]:
        """Replace or create a locked file; return notes."""
        batch = Batch(self, max_bytes, begin_again, self.log_step())
        try:
            return batch.replace(change, place, lock_file).notes
        except (NotFoundError, RefusedError):
            if change.before is not None:
                raise
            raise ConcurrentChange from None  # another program removed or replaced the directory

    def log_step(self, **options: Any) -> LogStep:
        """Return what records changes as a step; `options` are those of `Journal.logging_step`."""
        recorder = self.recorder
        return nullcontext if recorder is None else partial(recorder.logging_step, **options)

    def apply(
        self,
        changes: Sequence[Change],
        *,
        max_bytes: int,
        conflict: Conflict,
        log_step: LogStep | None = None,
        undoing: bool = False,
    ) -> Applied:
        """Make several changes, all of them or none.

        If possible, a directory that is removed here and created there with equal entries is renamed.

        Args:
            changes: At most one for each path. Missing directories above created nodes are created too.
            max_bytes: The limit for the content of a file.
            conflict: Makes the error if the node at a path differs from `before`.
            log_step: Records the changes in place of a step of `self.recorder`.
            undoing: Skip changes that are already made. Do not remove directories that have other entries.
        """
        if self.policy.read_only:
            raise oserrors.read_only()
        try:
            self.judge(changes)
            batch = Batch(self, max_bytes, conflict, log_step or self.log_step(), undoing=undoing)
            return batch.apply(changes)
        except OSError as error:
            raise oserrors.from_oserror(error, changes[0].path if changes else ".") from None

    def judge(self, changes: Sequence[Change]) -> None:
        """Raise an error if the permission rules refuse changes that are about to be made or previewed."""
        if self.access is not None:
            self.access.begin(expanded(changes))

    def _resolved(self, path: str, *, follow: bool | None = None, **options: bool) -> ResolvedPath:
        return ResolvedPath(self, path, self._split(path), follow=follow, **options)

    def resolve(self, path: str, *, create_parents: bool = True, follow_last: bool = True) -> tuple[str, str]:
        """Return the displayed path and the real path. The path need not exist."""
        with self._resolved(path, follow_last=follow_last, create_parents=create_parents) as resolved:
            return resolved.display_path, resolved.real_path

    def spellings(self, path: str, *, follow: bool | None = None) -> list[str]:
        """Return the requested path, the path of each link that it leads through, and the real path.

        With `follow`, links are followed even if the policy forbids it.
        """
        with self._resolved(path, follow=follow, follow_last=True, create_parents=True) as resolved:
            return [resolved.display_path, *resolved.through_links, resolved.real_path]

    def real_path(self, path: str, *, creating: bool = False) -> str:
        """Return the real path of a file to change: links on the way are resolved, one at the end is not.

        Raises `protected` if a link on the way has a protected name.
        """
        with self._resolved(path, create_parents=creating) as resolved:
            if resolved.through_links:
                resolved.check_may_change()
            return resolved.real_path

    def node(
        self, real_path: str, *, max_bytes: int, unread: bool = False, is_kept: bool = True
    ) -> Node | None:
        """Return the node at a real path, or None. A link at the end is not followed.

        With `unread`, a file of any size or type becomes a `MovedNode`. A content that is not kept is read
        again when it is needed.
        """
        return node_at(self, real_path, None if unread else max_bytes, is_kept=is_kept)

    def check_may_change(self, real_path: str) -> None:
        """Raise `protected`, or `refused` for a permission rule, if a path may not be changed."""
        with resolve_real(self, real_path, create_parents=True) as resolved:
            resolved.check_may_change()

    def check_may_move(self, real_path: str) -> None:
        """Raise an error if a path may not be changed, or if a rule forbids to read it."""
        self.check_may_change(real_path)
        if self.access is not None:
            self.access.check_read(real_path)

    def check_replaceable(self, real_path: str, path: str, mode: int) -> None:
        """Raise the error that replacing a file would raise. It names `path`."""
        with resolve_real(self, real_path, create_parents=True, requested=path) as resolved:
            resolved.check_may_change()
            resolved.check_replaceable(mode)

    def _split(self, path: str) -> ParsedPath:
        try:
            parsed = split_path(path, self.roots)
        except (OutsideWorkspaceError, InvalidPathError) as error:
            parts = path.replace("\\", "/").split("/")
            inner = ("/".join(parts[above:]).strip("/") for above in range(1, _MAX_ABOVE))
            with suppress(Exception):  # only for a hint
                if inside := next((each for each in inner if each and self.exists(each)), None):
                    error.details["similar"] = [inside]
                    error.hint = f"Did you mean {quote(inside)}? Without a leading `/` a path is relative."
            raise
        if not self.start or path.startswith("/"):
            return parsed
        return parsed._replace(parts=(*self.start.split("/"), *parsed.parts))
