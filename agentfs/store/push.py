"""A push: each change is sent on the condition that nobody else has changed the object."""

import os
import random
import secrets
import time
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any

from agentfs.errors import PathError, TooLargeError
from agentfs.fs import FileNode, display_name, revision_of
from agentfs.fs.path import is_in
from agentfs.store.cache_state import Known, entry_node, tree_entry
from agentfs.store.local_tree import not_loaded, refused
from agentfs.store.objects import IN_ONE_REQUEST, TREE, ConditionFailed, Tag
from agentfs.store.sync import Manifest, Sync

_KEPT_DIGESTS = 16  # of earlier contents, in the metadata of an object
_ROUNDS = 20  # of merging with what others have pushed meanwhile
_PAUSE = 0.02  # seconds, on average, after the second round; so that workers do not meet again
_CHANGED, _MOVING = "changed by others", "changing while it is pushed"


class Push:
    """The changes of the cache since it was last pulled or pushed."""

    def __init__(self, sync: Sync, scope: Sequence[str] | None) -> None:
        self._sync, self._scope = sync, scope
        self._moving = set[str]()  # files that change while they are pushed
        self._entries: dict[str, tuple[str, str]] = {}  # in `TREE`: the known one and the new one
        self.pushed, self.deleted = set[str](), set[str]()
        self._compare()

    @property
    def paths(self) -> set[str]:
        """All paths with a change."""
        return {*self._put, *self._delete, *self._entries}

    def _compare(self) -> None:
        sync, self._put, self._delete = self._sync, dict[str, FileNode](), dict[str, Tag]()
        nodes, known = sync.local.nodes, sync.known
        left_out = refused(nodes, known, sync.root)
        sync.left_out |= sync.local.left_out | left_out
        for path in (nodes.keys() | known.keys()) - left_out.keys() - sync.conflicts - self._moving:
            inside = self._scope is None or any(is_in(path, each) for each in self._scope)
            if sync.is_unread(path) or not inside:
                continue
            was, node = known.get(path, Known()), nodes.get(path)
            entry = tree_entry(node, sync.local.default_mode)
            if not isinstance(node, FileNode):
                self._delete |= {path: was.tag} if was.tag else {}
            elif not was.tag or was.digest != node.digest:
                self._put[path] = node
            if isinstance(node, FileNode) and was.tag and was.mode == node.mode:
                entry = was.entry
            if entry != was.entry:
                self._entries[path] = was.entry, entry

    def run(self) -> None:
        """Push until nothing is left except conflicts."""
        sync, changed = self._sync, list[str]()
        if self.paths and not sync.state.value("checked"):
            sync.objects.check_conditions()
            sync.state.set("checked", True)
        for round_ in range(_ROUNDS):
            changed = self._send()
            if not changed:
                break
            sync.settle(dict(sync.objects.each(sync.fetch, changed)))
            sync.rescan()
            time.sleep(random.uniform(0, 2 * _PAUSE * round_))  # noqa: S311 - no secret
            self._compare()
        self._moving.update(changed)
        if self._entries or (self.pushed and not sync.tree.tag):
            self._send_entries()
        sync.left_out |= dict.fromkeys(self._moving, _MOVING)
        sync.save()

    def _send(self) -> list[str]:
        """Send the changes of objects; return those that others have changed."""
        sync, changed, put = self._sync, list[str](), self._put
        # Create a moved file before deleting it, unless the old one may be in its way in a local directory.
        steps: list[tuple[Callable[[str], Known | str | None], Iterable[str]]]
        steps = [(self._put_object, put), (self._delete_object, self._delete)]
        steps.sort(key=lambda step: step[0] == self._put_object and sync.objects.is_local)
        sent = chain.from_iterable(sync.objects.each(send, paths) for send, paths in steps)
        for done, (path, outcome) in enumerate(sent, 1):
            if isinstance(outcome, str):
                (self._moving.add if outcome == _MOVING else changed.append)(path)
            else:
                sync.note(path, outcome)
                (self.pushed if outcome else self.deleted).add(path)
            sync.progress(done, len(put) + len(self._delete))
        sync.save()
        return changed

    def _put_object(self, path: str) -> Known | str:
        sync, node, was = self._sync, self._put[path], self._sync.known.get(path, Known())
        known = Known(None, node.size, (node.digest, *was.digests)[:_KEPT_DIGESTS], was.entry, was.mode)
        if not was.tag:
            known = known._replace(entry="", mode=sync.local.default_mode)
        try:
            with sync.root.open_file(display_name(path)) as file:
                if node.size <= IN_ONE_REQUEST:
                    body: Any = file.read_whole(node.size)
                    if revision_of(body) != node.digest:
                        return _MOVING
                    sync.state.begin_push(path, node.digest, body)
                    return known._replace(tag=sync.objects.put(path, body, node.size, was.tag, known.digests))
                sync.state.begin_push(path, node.digest, not_loaded())
                with os.fdopen(os.dup(file.fd), "rb") as body:
                    tag = sync.objects.put(path, body, node.size, was.tag, known.digests)
                # If the file has changed, the object has neither the old content nor the new one.
                return known._replace(tag=tag, digests=() if file.changed() else known.digests)
        except ConditionFailed:
            return _CHANGED
        except (PathError, TooLargeError):
            return _MOVING

    def _delete_object(self, path: str) -> str | None:
        try:
            self._sync.objects.delete(path, self._delete[path])
        except ConditionFailed:
            return _CHANGED
        return None

    def _send_entries(self) -> None:
        """Send the modes, links and empty directories that have changed."""
        sync, skipped = self._sync, self._sync.conflicts | self._moving
        todo = {path: entry for path, entry in self._entries.items() if path not in skipped}
        for _ in range(_ROUNDS):
            tree = sync.tree
            clashing = {path for path, pair in todo.items() if tree.entries.get(path, "") not in pair}
            new = {path: pair[1] for path, pair in todo.items() if path not in clashing}
            entries = {path: entry for path, entry in {**tree.entries, **new}.items() if entry}
            made = Manifest(tree.tag, tree.id or secrets.token_hex(16), entries)
            try:
                if made != tree:
                    body = made.to_json()
                    sync.tree = made._replace(tag=sync.objects.put(TREE, body, len(body), tree.tag))
                break
            except ConditionFailed:
                sync.read_tree(sync.objects.head(TREE))
        else:
            self._moving.update(todo)
            return
        sync.conflicts.update(clashing)
        for path in todo.keys() - clashing:
            entry, node, known = todo[path][1], sync.local.nodes.get(path), sync.known.get(path, Known())
            if known.tag or entry_node(entry):
                mode = node.mode if isinstance(node, FileNode) else 0
                sync.note(path, known._replace(entry=entry, mode=mode))
                self.pushed.add(path)
            else:
                sync.note(path, None)
                self.deleted |= {path} - sync.local.directories.keys()
