"""`StoredTree`: a tree whose files are objects of a store, with a cache on this machine."""

import os
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from dataclasses import replace
from os import PathLike
from typing import Any, TypeVar

from agentfs.fs import Root, oserrors
from agentfs.fs.own_directories import put_own_file
from agentfs.history.database import Database
from agentfs.history.report import path_notes
from agentfs.history.state_directory import StateDirectory
from agentfs.policy import Policy
from agentfs.results import PullResult, PushResult, Result, StoreStatus
from agentfs.store.objects import Objects
from agentfs.store.sync import META, Sync
from agentfs.text.display import with_text

_R = TypeVar("_R", bound=Result)


class StoredTree:
    """A tree whose files are objects of a store, with a cache in a local directory.

    Several machines may use one tree, each with a cache of its own. No change overwrites another one: an
    object is written on the condition that it is still the known one, and merged line by line if it is not.
    Each object and each file is atomic; a pull or push of several is not. One call at a time uses a cache.
    `Workspace(tree)` opens the cache.
    """

    def __init__(
        self,
        url_or_store: Any,
        cache: str | PathLike[str],
        *,
        options: Mapping[str, Any] | None = None,
        policy: Policy | None = None,
        timeout: float = 600.0,
    ) -> None:
        """Name a store and a cache. No request is sent before the first call.

        Args:
            url_or_store: A URL such as `s3://bucket/prefix`, `gs://`, `az://`, `memory://` or `file:///`, or
                a store of obstore.
            cache: The directory for the files, created if it is missing. Its `.agentfs` keeps the state.
            options: Options of `obstore.store.from_url`, such as `endpoint` or `client_options`.
            policy: Names that it protects are neither pushed nor pulled, such as `.env` and `.git/hooks`.
            timeout: Seconds after which a call starts no further requests.

        Raises:
            AgentFSError: `unsupported` if obstore is not installed; `invalid_argument` for an argument.
        """
        self.cache = os.path.abspath(cache)
        os.makedirs(self.cache, exist_ok=True)
        self.policy = policy or Policy()
        self.timeout = timeout
        self._objects = Objects(url_or_store, dict(options or {}))

    def __fspath__(self) -> str:
        """Return the directory of the cache."""
        return self.cache

    def pull(self) -> PullResult:
        """Bring what others have changed into the cache, merged with the changes there.

        Returns:
            What was changed, and what was left out.

        Raises:
            AgentFSError: `io` if the store, the network or the disk fails; `refused` for the credentials;
                `busy` if another call uses the cache; `conflict` if the store does not have the tree of
                the cache; `invalid_path` for a key that obstore does not list; `timeout` if the comparison
                takes too long. What was done stays.
        """
        return self._result_of(Sync.pull, PullResult, "pulled", "deleted", "merged", "conflicts")

    def push(self) -> PushResult:
        """Send what has changed in the cache since it was last pulled or pushed.

        An object that others have changed meanwhile is merged with the file, here too, and sent again.

        Returns:
            What was changed, and what was left out.

        Raises:
            AgentFSError: As `pull`; `read_only` for a read-only policy; `unsupported` if the store ignores
                conditions.
        """
        if self.policy.read_only:
            raise oserrors.read_only()
        return self._result_of(Sync.push, PushResult, "pushed", "deleted", "merged", "conflicts")

    def status(self) -> StoreStatus:
        """Compare the cache with the store, without downloads and changes.

        Returns:
            The paths to pull and to push. A path in both has changed on both sides.

        Raises:
            AgentFSError: As `pull`.
        """
        return self._result_of(Sync.compare, StoreStatus, "to_pull", "to_push")

    def _result_of(self, work: Callable[[Sync], None], kind: type[_R], *fields: str) -> _R:
        """Lock the cache, work on it, and return a result whose fields name the paths."""
        state = os.path.join(self.cache, META)
        with (
            closing(StateDirectory(state)) as directory,
            closing(Database(state, directory)) as database,
            Root(self.cache, replace(self.policy, read_only=False)) as root,
        ):
            with suppress(OSError):  # the disk may be full
                put_own_file(os.path.join(state, ".gitignore"), b"*\n")  # for recordings and searches
            sync = Sync(self._objects, root, database, self.timeout)
            work(sync)
        left_out = {name: tuple(sorted({*paths})) for name, paths in sorted(sync.paths.items())}
        named = {field: left_out.pop(field, ()) for field in fields}
        rows = {**named, **{f"left out ({reason})": paths for reason, paths in left_out.items()}}
        lines = path_notes(str, {f"{name.replace('_', ' ')} {len(rows[name])}": rows[name] for name in rows})
        if named.get("conflicts"):
            lines.append(f"The store's texts are in {META}/conflicts; a conflict ends when both are equal.")
        if sync.truncated:
            lines.append("There is more. Pull or push again: it continues.")
        facts: dict[str, Any] = {**named, "left_out": left_out, "truncated": sync.truncated}
        head, *below = lines or ["Nothing differs."]
        return with_text(kind(**facts), head, below=below)
