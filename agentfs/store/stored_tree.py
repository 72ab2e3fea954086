"""`StoredTree`: a tree whose files are objects of a store, with a cache on this machine."""

import os
import re
import secrets
from collections.abc import Collection, Generator, Iterable, Mapping
from contextlib import contextmanager, suppress
from copy import copy
from dataclasses import replace
from os import PathLike
from threading import Lock
from typing import Any, TypeVar
from weakref import WeakSet

from agentfs.errors import BusyError, ClosedError, InvalidArgumentError
from agentfs.fs import Root, oserrors
from agentfs.history import Journal
from agentfs.history.report import name_paths
from agentfs.history.undo import RequestedPaths, real_paths
from agentfs.policy import Policy
from agentfs.results import PullResult, PushResult, Result, StoreStatus
from agentfs.store.cache_state import CacheState
from agentfs.store.objects import BRANCHES, META, TREE, ConditionFailed, Objects, open_store
from agentfs.store.push import Push
from agentfs.store.sync import CONFLICTS, Manifest, OnProgress, Sync
from agentfs.text import plural, with_text
from agentfs.workspace import Workspace

_BRANCH = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_CLAIM = f"{META}branch"  # names the cache that copies a branch
_R = TypeVar("_R", bound=Result)


class StoredTree:
    """A tree whose files are objects of a store, with a cache in a local directory.

    Several machines may use one tree, each with a cache of its own. No change overwrites another one: an
    object is written on the condition that it is still the known one, and merged line by line if it is not.
    Each object is atomic; a push of several is not. Methods may be called from several threads.
    """

    def __init__(
        self,
        url_or_store: Any,
        cache: str | PathLike[str],
        *,
        options: Mapping[str, Any] | None = None,
        max_concurrency: int = 32,
        policy: Policy | None = None,
    ) -> None:
        """Name a store and a cache. Neither is used before the first call.

        Args:
            url_or_store: A URL such as `s3://bucket/prefix`, `gs://`, `az://`, `memory://` or `file:///`, or
                a store of obstore.
            cache: The directory for the files, created if it is missing. Its `.agentfs` keeps the state.
            options: Options of `obstore.store.from_url`, such as `endpoint` or `client_options`.
            max_concurrency: The number of requests at the same time.
            policy: The policy of `workspace()`. Names that it protects are neither pushed nor pulled, such as
                `.env` and `.git/hooks`.

        Raises:
            AgentFSError: `unsupported` if obstore is not installed; `invalid_argument` for an argument.
        """
        if max_concurrency < 1:
            raise InvalidArgumentError(f"max_concurrency must be 1 or more, not {max_concurrency!r}.")
        self.cache = os.path.abspath(cache)
        self.policy = policy or Policy()
        self._objects = Objects(open_store(url_or_store, dict(options or {})), "", max_concurrency)
        self._lock, self._workspaces = Lock(), WeakSet[Workspace]()

    def __fspath__(self) -> str:
        """Return the directory of the cache."""
        return self.cache

    def __repr__(self) -> str:
        return f"StoredTree({self._objects.identity!r}, {self.cache!r})"

    @property
    def guarantees(self) -> dict[str, str]:
        """For each kind of change: the condition or the check that keeps it from overwriting one by others.

        The first push tests the conditions, and is refused if the store ignores them.
        """
        return self._objects.guarantees

    def workspace(self, **options: Any) -> Workspace:
        """Open the cache.

        Args:
            **options: The options of `Workspace`; the policy is that of the tree by default.

        Returns:
            The workspace. A later `pull` is a step of its journal, which `undo` takes back.
        """
        os.makedirs(self.cache, exist_ok=True)
        options.setdefault("policy", self.policy)
        workspace = Workspace(self.cache, **options)
        self._workspaces.add(workspace)
        return workspace

    def pull(self, *, on_progress: OnProgress | None = None) -> PullResult:
        """Bring what others have changed into the cache, merged with the changes there, as one step.

        Args:
            on_progress: Called with the number of downloaded objects, and of those to download.

        Returns:
            What was changed, and what was left out.

        Raises:
            AgentFSError: `io` if the store, the network or the disk fails; `refused` for the credentials;
                `busy` if another process uses the cache; `invalid_argument` if the cache belongs to another
                store; `conflict` if the store has another tree now; `invalid_path` for a key that obstore
                does not list. Nothing is changed then.
        """
        with self._session(on_progress) as sync:
            ready, wanted = sync.incoming()
            fetched = sync.objects.each(lambda path: sync.fetch(path, wanted[path]), wanted)
            for done, (path, theirs) in enumerate(fetched, 1):
                sync.progress(done, len(wanted))
                ready[path] = theirs
                if theirs is None and path not in sync.known:
                    sync.left_out[path] = "no object of this name"
            for path in sync.clashes.keys() - ready.keys():
                sync.end_conflict(path)
            sync.settle(ready)
            parts = {"pulled": sync.pulled, "deleted": sync.deleted, "merged": sync.merged}
            return _result(sync, PullResult, **parts, conflicts=sync.conflicts)

    def push(self, paths: RequestedPaths = None, *, on_progress: OnProgress | None = None) -> PushResult:
        """Send what has changed in the cache since it was last pulled or pushed.

        An object that others have changed meanwhile is merged with the file, here too, and sent again.

        Args:
            paths: Files and directories to send; by default all.
            on_progress: Called with the number of objects that were sent, and of those to send.

        Returns:
            What was changed, and what was left out.

        Raises:
            AgentFSError: As `pull`; `read_only` for a read-only policy; `unsupported` if the store ignores
                conditions. What was sent stays, and the next call continues.
        """
        if self.policy.read_only:
            raise oserrors.read_only()
        with self._session(on_progress) as sync:
            sync.read_tree(sync.objects.head(TREE))
            push = Push(sync, real_paths(sync.root, paths))
            push.run()
            parts = {"pushed": push.pushed, "deleted": push.deleted, "merged": sync.merged | sync.pulled}
            return _result(sync, PushResult, **parts, conflicts=sync.conflicts)

    def status(self) -> StoreStatus:
        """Compare the cache with the store, without downloads and changes.

        Returns:
            The paths to pull and to push.

        Raises:
            AgentFSError: As `pull`.
        """
        with self._session(None) as sync:
            ready, wanted = sync.incoming()
            to_pull, to_push = {*ready, *wanted}, Push(sync, None).paths
            return _result(sync, StoreStatus, to_pull=to_pull, to_push=to_push, conflicts=sync.clashes)

    def branch(self, name: str, *, on_progress: OnProgress | None = None) -> "StoredTree":
        """Open a branch. If it does not exist, the store copies all objects of this tree.

        Args:
            name: Its name, of letters, digits, `.`, `_` and `-`. Its objects are below `.agentfs/branches/`.
            on_progress: Called with the number of copied objects, and of those to copy.

        Returns:
            The tree of the branch. Its cache is the directory `CACHE@NAME` beside this one.

        Raises:
            AgentFSError: `invalid_argument` for the name; `busy` while another worker copies; else as `pull`.
        """
        if not _BRANCH.fullmatch(name):
            raise InvalidArgumentError(
                f"{name!r} is not a name for a branch.", hint="Take letters and digits."
            )
        other = copy(self)
        other.cache = f"{self.cache}@{name}"
        other._objects = self._objects.below(f"{BRANCHES}{name}/")  # noqa: SLF001 - its own class
        other._lock, other._workspaces = Lock(), WeakSet[Workspace]()  # noqa: SLF001 - as above
        with other._session(on_progress) as sync:  # noqa: SLF001 - as above
            if sync.objects.head(TREE) is None:
                _copy_tree(self._objects, sync, name)
        return other

    @contextmanager
    def _session(self, on_progress: OnProgress | None) -> Generator[Sync]:
        """Lock the cache, and open its state and root, for the block."""
        with self._lock:
            os.makedirs(self.cache, exist_ok=True)
            policy, identity = replace(self.policy, read_only=False), self._objects.identity
            with CacheState(self.cache, identity) as state, Root(self.cache, policy) as root:
                root.recorder = self._journal()
                yield Sync(self._objects, state, root, on_progress)

    def _journal(self) -> Journal | None:
        """Return the journal of a workspace that is open here, in which a pull is a step."""
        for workspace in self._workspaces:
            with suppress(ClosedError):
                workspace._check_open()  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - it is ours
                return workspace._journal  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - as above
        return None


def _copy_tree(source: Objects, sync: Sync, name: str) -> None:
    """Copy the objects of a tree to a branch; `TREE` is the last, and tells that the branch is complete."""
    target, owner = sync.objects, sync.state.value("owner", secrets.token_hex(16)).encode()
    sync.state.set("owner", owner.decode())
    sync.state.save()
    with suppress(ConditionFailed):
        target.put(_CLAIM, owner, len(owner), None)
    claim = target.get(_CLAIM)
    if claim is None or b"".join(claim.pieces) != owner:
        raise BusyError(
            f"Another worker is copying the branch {name!r}.",
            hint=f"Wait. If that worker is gone, delete the object {target.prefix}{_CLAIM}.",
        )
    missing = source.list().keys() - target.list().keys() - {TREE}
    for done, _ in enumerate(target.each(lambda path: target.copy_from(source, path), missing), 1):
        sync.progress(done, len(missing))
    tree = source.get(TREE)
    body = Manifest(id=secrets.token_hex(16)).to_json() if tree is None else b"".join(tree.pieces)
    with suppress(ConditionFailed):
        target.put(TREE, body, len(body), None)


def _result(sync: Sync, kind: type[_R], **parts: Collection[str]) -> _R:
    """Return a result with these paths and a text."""

    def shown(paths: Iterable[str]) -> tuple[str, ...]:
        return tuple(sorted(map(sync.root.display_path, paths)))

    fields = {name: shown(paths) for name, paths in parts.items()}
    reasons = sorted({*sync.left_out.values()})
    left_out = {each: shown(path for path, why in sync.left_out.items() if why == each) for each in reasons}
    rows = {**fields, **{f"left out ({reason})": paths for reason, paths in left_out.items()}}
    first = next(iter(parts))
    size = sum(known.size for path in parts[first] if (known := sync.known.get(path)))
    lines: list[str] = []
    for name, paths in rows.items():
        amount = f" ({plural(size, 'byte')})" if name == first else ""
        if paths or amount:
            names = f": {name_paths(paths)}" if paths else ""
            lines.append(f"{name.replace('_', ' ')} {len(paths)}{amount}{names}")
    if parts["conflicts"]:
        lines.append(
            f"The texts of the store are below {META}{CONFLICTS}; a conflict ends when both are equal."
        )
    facts: dict[str, Any] = {**fields, "left_out": left_out}
    return with_text(kind(**facts), lines[0], below=lines[1:])
