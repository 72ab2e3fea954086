"""`push`: send the changes of the cache, each on the condition that nobody else has changed the object."""

import os
import random
import secrets
import time
from collections.abc import Sequence
from dataclasses import replace
from enum import Enum
from functools import partial
from itertools import chain
from typing import Any

from agentfs.errors import PathError, TooLargeError
from agentfs.fs import DirectoryNode, FileNode, display_name, revision_of
from agentfs.fs.path import is_in
from agentfs.limits import HARD_FILE_BYTES
from agentfs.store.local import admitted
from agentfs.store.remote import KEPT_DIGESTS, TREE, Changed, Tag
from agentfs.store.state import Known, entry_of, node_of_entry
from agentfs.store.sync import Manifest, Sync, Theirs

_ROUNDS = 20  # of merging with what others have pushed meanwhile
_PAUSE = 0.02  # seconds, on average, before the second round
_SAVE_EVERY = 500  # objects


class _Outcome(Enum):
    DELETED = "deleted"
    CHANGED = "somebody else has changed the object"
    MOVING = "the file changes while it is pushed"


class Outgoing:
    """What has changed in the cache since it was last pulled or pushed."""

    def __init__(self, sync: Sync, scope: Sequence[str] | None) -> None:
        local, known = sync.local, sync.known
        nodes = {
            path: node
            for path, node in local.nodes.items()
            if not isinstance(node, DirectoryNode) or local.is_empty(path)
        }
        leaves = {path: not isinstance(node, DirectoryNode) for path, node in nodes.items()}
        found, self.left_out = admitted(leaves, known, sync.root)
        self.put: dict[str, FileNode] = {}
        self.delete: dict[str, Tag] = {}
        self.entries: dict[str, tuple[str, str]] = {}  # in `TREE`: the known one and the new one
        for path in found | known.keys():
            refused = sync.is_unread(path) or (path in nodes and path not in found)
            if refused or not (scope is None or any(is_in(path, each) for each in scope)):
                continue
            was, node = known.get(path), nodes.get(path)
            tag, old = (None, "") if was is None else (was.tag, was.entry)
            if isinstance(node, FileNode):
                if was is None or tag is None or was.digest != node.digest:
                    self.put[path] = node
            elif tag is not None:
                self.delete[path] = tag
            same_mode = (
                isinstance(node, FileNode) and was is not None and tag is not None and was.mode == node.mode
            )
            entry = old if same_mode else entry_of(node, local.default_mode)
            if entry != old:
                self.entries[path] = old, entry

    @property
    def paths(self) -> set[str]:
        """All paths with a change."""
        return self.put.keys() | self.delete.keys() | self.entries.keys()


class Push:
    """A push under way."""

    def __init__(self, sync: Sync, scope: Sequence[str] | None) -> None:
        self._sync, self._scope = sync, scope
        self._entries: dict[str, tuple[str, str]] = {}
        self._moving = set[str]()  # files that change while they are pushed
        self.pushed, self.deleted = set[str](), set[str]()

    def run(self, label: str) -> None:
        """Push until nothing is left except conflicts."""
        sync = self._sync
        sync.tree = sync.read_tree(sync.remote.head(TREE))
        outgoing = Outgoing(sync, self._scope)
        sync.leave_out(sync.local.left_out)
        sync.leave_out(outgoing.left_out)
        if not outgoing.paths:
            sync.save()
            return
        if not sync.tree.checked:
            sync.remote.check_conditions()
        else:
            sync.remote.deletes_checked |= not sync.tree.checked.get("delete", False)
        changed: list[str] = []
        for round_ in range(_ROUNDS):
            changed = self._send(outgoing)
            if not changed:
                break
            sync.settle(dict(sync.remote.each(self._fetch, changed)), label)
            sync.rescan()
            time.sleep(random.uniform(0, 2 * _PAUSE * round_))  # noqa: S311 - so that workers do not meet again
            outgoing = Outgoing(sync, self._scope)
        else:
            self._moving.update(changed)
        sync.leave_out({"kept changing": sorted(self._moving)} if self._moving else {})
        self._send_entries()

    def _fetch(self, path: str) -> Theirs | None:
        entry = self._sync.tree.entries.get(path, "")
        return self._sync.fetch(path, "" if node_of_entry(entry) else entry)

    def _send(self, outgoing: Outgoing) -> list[str]:
        """Send the changes of objects; return those that somebody else has changed."""
        sync = self._sync
        done = self._moving | sync.conflicts
        put = {path: node for path, node in outgoing.put.items() if path not in done}
        delete = {path: tag for path, tag in outgoing.delete.items() if path not in done}
        self._entries |= outgoing.entries
        sync.state.begin_push(put)
        changed: list[str] = []
        total = len(put) + len(delete)
        work = partial(self._put, outgoing)
        try:
            # What is moved is created before it is deleted.
            sent = chain(sync.remote.each(work, put), sync.remote.each(self._delete, delete.items()))
            for done, (item, outcome) in enumerate(sent, 1):
                path = item if isinstance(item, str) else item[0]
                if isinstance(outcome, Known):
                    sync.note(path, outcome)
                    self.pushed.add(path)
                elif outcome is _Outcome.DELETED:
                    sync.note(path, None)
                    self.deleted.add(path)
                elif outcome is _Outcome.CHANGED:
                    changed.append(path)
                else:
                    self._moving.add(path)
                sync.progress(done, total)
                if done % _SAVE_EVERY == 0:
                    sync.save()
        finally:
            sync.save()
        return changed

    def _put(self, outgoing: Outgoing, path: str) -> Known | _Outcome:
        sync, node, was = self._sync, outgoing.put[path], self._sync.known.get(path)
        tag = None if was is None else was.tag
        digests = (node.digest, *(was.digests if was is not None and tag is not None else ()))[:KEPT_DIGESTS]
        try:
            with sync.root.open_file(display_name(path)) as file:
                if node.size <= HARD_FILE_BYTES:
                    body: Any = file.read_whole(node.size)
                    if revision_of(body) != node.digest:
                        return _Outcome.MOVING
                    made = sync.remote.put(path, body, node.size, tag, digests)
                else:
                    with os.fdopen(os.dup(file.fd), "rb") as body:
                        made = sync.remote.put(path, body, node.size, tag, digests)
                    if file.changed():  # the object has neither the old content nor the new one
                        node = replace(node, digest="")
        except Changed:
            return _Outcome.CHANGED
        except (PathError, TooLargeError):
            return _Outcome.MOVING
        mode, entry = sync.local.default_mode, ""
        if was is not None and tag is not None:
            mode, entry = was.mode, was.entry
        elif path not in outgoing.entries:
            mode = node.mode
        status = sync.local.statuses[path] if path in sync.local.settled else ""
        return Known(*made, node.size, node.digest, digests, entry, mode, status)

    def _delete(self, item: tuple[str, Tag]) -> _Outcome:
        try:
            self._sync.remote.delete(*item)
        except Changed:
            return _Outcome.CHANGED
        return _Outcome.DELETED

    def _send_entries(self) -> None:
        """Send the modes, links and empty directories that have changed."""
        sync = self._sync
        skipped = sync.conflicts | self._moving
        todo = {path: entry for path, entry in self._entries.items() if path not in skipped}
        for round_ in range(_ROUNDS):
            tree, refused = sync.tree, set[str]()
            entries = dict(tree.entries)
            for path, (old, new) in todo.items():
                if entries.get(path, "") not in {old, new}:
                    refused.add(path)
                elif new:
                    entries[path] = new
                else:
                    entries.pop(path, None)
            if entries == tree.entries and tree.tag is not None:
                break
            checked = {"create": True, "update": True, "delete": not sync.remote.deletes_checked}
            new_tree = Manifest(None, tree.id or secrets.token_hex(16), tree.checked or checked, entries)
            body = new_tree.to_json()
            try:
                tag = sync.remote.put(TREE, body, len(body), tree.tag)
                sync.tree = new_tree._replace(tag=tag)
                break
            except Changed:
                time.sleep(random.uniform(0, 2 * _PAUSE * round_))  # noqa: S311 - as above
                sync.tree = sync.read_tree(sync.remote.head(TREE))
        else:
            sync.leave_out({"kept changing": [TREE]})
            return
        for path, (old, new) in todo.items():
            known, node = sync.known.get(path), sync.local.nodes.get(path)
            if path in refused:
                sync.conflicts.add(path)
            elif known is not None and known.tag is not None and isinstance(node, FileNode):
                sync.note(path, known._replace(entry=new, mode=node.mode))
                self.pushed.add(path)
            elif node_of_entry(new) is not None:
                sync.note(path, Known("", "", 0, "", (), new, 0))
                self.pushed.add(path)
            elif node_of_entry(old) is not None and known is not None and known.tag is None:
                sync.note(path, None)
                self.deleted.add(path)
        sync.save()
