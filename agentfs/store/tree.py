"""`StoredTree`: a tree whose files are objects of a store, with a cache on this machine."""

import json
import os
import re
import secrets
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from os import PathLike
from threading import Lock
from typing import Any, Self
from weakref import WeakSet

from agentfs.errors import BusyError, ClosedError, InvalidArgumentError
from agentfs.fs import Root, oserrors
from agentfs.fs.own_directories import OwnDirectory
from agentfs.history import Journal
from agentfs.history.undo import real_paths
from agentfs.policy import Policy
from agentfs.results import PullResult, PushResult, StoreStatus
from agentfs.store.pull import changed_in_store, pull
from agentfs.store.push import Outgoing, Push
from agentfs.store.remote import BRANCHES, META, Changed, Remote, open_store
from agentfs.store.report import pull_result, push_result, status_result
from agentfs.store.state import CacheState
from agentfs.store.sync import OnProgress, Sync
from agentfs.workspace import Workspace

_BRANCH = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_CLAIM = META + "branch.json"  # says that a branch is being copied, or complete


class StoredTree:
    """A tree whose files are objects of a store, with a cache in a local directory.

    Several machines may use one tree, each with a cache of its own. No change overwrites another one: each
    object is written on the condition that it is still the known one, and merged line by line if it is not.
    Every object is atomic; a push of several is not. Methods may be called from several threads.
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
            cache: The directory for the files. It is created if it is missing. Its `.agentfs` keeps the state.
            options: Options of `obstore.store.from_url`, such as `endpoint` or `client_options`.
            max_concurrency: The number of requests at the same time.
            policy: The policy of `workspace()`. Names that it protects are neither pushed nor pulled, among
                them secrets and files that run code, such as `.git/hooks`.

        Raises:
            AgentFSError: `unsupported` if obstore is not installed; `invalid_argument` for the URL or options.
        """
        if not isinstance(max_concurrency, int) or isinstance(max_concurrency, bool) or max_concurrency < 1:
            raise InvalidArgumentError(
                f"max_concurrency must be 1 or more, not {max_concurrency!r}.",
                details={"parameter": "max_concurrency"},
            )
        self.cache = os.path.abspath(cache)
        self.policy = policy or Policy()
        store = open_store(url_or_store, dict(options or {}))
        self._remote = Remote(store, "", max_concurrency)
        self._lock = Lock()
        self._workspaces = WeakSet[Workspace]()

    def __fspath__(self) -> str:
        """Return the directory of the cache."""
        return self.cache

    def __repr__(self) -> str:
        return f"StoredTree({self._remote.identity!r}, {self.cache!r})"

    @property
    def guarantees(self) -> dict[str, str]:
        """What keeps each kind of change from overwriting one by others: a condition, or only a check.

        The first push tests the conditions of the store, and is refused if the store ignores them.
        """
        return self._remote.guarantees

    def workspace(self, **options: Any) -> Workspace:
        """Open the cache.

        Args:
            **options: The options of `Workspace`; the policy is that of the tree by default.

        Returns:
            The workspace. A later `pull` is a step of its journal, which `undo` takes back.
        """
        os.makedirs(self.cache, exist_ok=True)
        workspace = Workspace(self.cache, **{"policy": self.policy, **options})
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
            pull(sync, "pull")
            return pull_result(sync)

    def push(
        self,
        paths: str | PathLike[str] | Sequence[str | PathLike[str]] | None = None,
        *,
        on_progress: OnProgress | None = None,
    ) -> PushResult:
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
            push = Push(sync, real_paths(sync.root, paths))
            push.run("merged by push")
            return push_result(sync, push.pushed, push.deleted)

    def status(self) -> StoreStatus:
        """Compare the cache with the store, without downloads and changes.

        Returns:
            The paths to pull and to push.

        Raises:
            AgentFSError: As `pull`.
        """
        with self._session(None) as sync:
            ready, wanted = changed_in_store(sync)
            outgoing = Outgoing(sync, None)
            sync.leave_out(sync.local.left_out)
            sync.leave_out(outgoing.left_out)
            return status_result(sync, [*ready, *wanted], outgoing.paths)

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
                f"{name!r} is not a name for a branch.",
                hint="Take letters, digits, `.`, `_` and `-`, at most 64.",
                details={"parameter": "name"},
            )
        other = copy(self)
        other.cache = f"{self.cache}@{name}"
        other._remote = self._remote.below(f"{BRANCHES}{name}/")
        other._lock, other._workspaces = Lock(), WeakSet[Workspace]()
        with other._session(on_progress) as sync:
            _copy_tree(self._remote, sync, name)
        return other

    @contextmanager
    def _session(self, on_progress: OnProgress | None) -> Generator[Sync]:
        """Lock the cache and open its state and root for the block."""
        with self._lock:
            os.makedirs(self.cache, exist_ok=True)
            with (
                CacheState(self.cache, self._remote.identity) as state,
                Root(self.cache, replace(self.policy, read_only=False)) as root,
            ):
                root.recorder = journal = self._journal()
                yield Sync(self._remote, state, root, journal, on_progress)

    def _journal(self) -> Journal | None:
        """Return the journal of an open workspace on the cache, which gets what is written as a step."""
        for workspace in self._workspaces:
            try:
                workspace._check_open()
            except ClosedError:
                continue
            return workspace._journal
        return None


def _copy_tree(source: Remote, sync: Sync, name: str) -> None:
    """Copy the objects of a tree to a branch, unless that was done before."""
    target, state = sync.remote, sync.state
    owner = state.meta("owner") or secrets.token_hex(16)
    state.write([("INSERT OR REPLACE INTO meta VALUES ('owner', ?)", (owner,))])
    found = target.get(_CLAIM)
    if found is None:
        claim = json.dumps({"owner": owner, "complete": False}).encode()
        try:
            tag = target.put(_CLAIM, claim, len(claim), None)
        except Changed:
            _copy_tree(source, sync, name)
            return
    else:
        known = json.loads(b"".join(found.pieces()))
        if known["complete"]:
            return
        if known["owner"] != owner:
            raise BusyError(
                f"Another worker is copying the branch {name!r}.",
                hint="Call it again when that is done. If that worker is gone for good, delete the object"
                f" {target.prefix}{_CLAIM}.",
            )
        tag = found.tag
    present = target.list()
    missing = [path for path in source.list() if path not in present]
    for done, _ in enumerate(target.each(lambda path: target.copy_from(source, path), missing), 1):
        sync.progress(done, len(missing))
    claim = json.dumps({"owner": owner, "complete": True}).encode()
    target.put(_CLAIM, claim, len(claim), tag)
