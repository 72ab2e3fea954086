"""A pull: what the store has is merged with the cache, and written as one step. A push does that too."""

import json
import os
import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from agentfs import errors
from agentfs.base import call_context
from agentfs.base.lazy import hashlib
from agentfs.fs import Change, DirectoryNode, FileNode, LinkNode, Node, Root, directories_above, oserrors
from agentfs.fs.lock import ATTEMPTS
from agentfs.fs.node import ConcurrentChange, Metadata, begin_again
from agentfs.fs.own_directories import OwnDirectory
from agentfs.history.storage.contents import Contents
from agentfs.history.take_back import merge_nodes
from agentfs.limits import HARD_FILE_BYTES
from agentfs.store.cache_state import LARGE, CacheState, Known, entry_node
from agentfs.store.local_tree import UNSETTLED, LocalTree, Reasons, not_loaded, refused
from agentfs.store.objects import META, TREE, Listed, Object, Objects, Tag

CONFLICTS = "conflicts/"  # texts of the store, below `META`
_ENTRY = re.compile(r"[0-7]{1,3}|/|-> [^\0]+", re.DOTALL)
OnProgress = Callable[[int, int], object]


class Manifest(NamedTuple):
    """The object `TREE`."""

    tag: Tag | None = None
    id: str = ""  # tells this tree from another one at the same address
    entries: Mapping[str, str] = {}

    def to_json(self) -> bytes:
        """Return the content of the object."""
        return json.dumps({"id": self.id, "entries": self.entries}, sort_keys=True, indent=0).encode()


class Theirs(NamedTuple):
    """The node that the store has at a path, and the note on it."""

    node: Node
    known: Known
    part: str = ""  # the path of a file with the content, if it or the local file is large


_Incoming = Mapping[str, Theirs | None]


class Sync:
    """A pull or push of one cache."""

    def __init__(self, objects: Objects, state: CacheState, root: Root, report: OnProgress | None) -> None:
        self.objects, self.state, self.root, self._report = objects, state, root, report
        self.known, self._contents = state.known, Contents()
        self._own = OwnDirectory(os.path.join(root.path, META))
        self.tree = Manifest(*state.value("tree", ()))
        # For each conflict, the version in the store and its digests; its text is below `CONFLICTS`.
        self.clashes: dict[str, tuple[Tag, list[str]]] = state.value("conflicts", {})
        self.conflicts, self.pulled, self.deleted, self.merged = (set[str]() for _ in range(4))
        self.left_out: Reasons = {}
        self.rescan()

    def rescan(self) -> None:
        """Read the cache, and note the status of files that need not be read again."""
        self.local = LocalTree(self.root, self.known)
        for path, status in self.local.statuses.items():
            known = self.known.get(path)
            if known and known.status != status and known.digest == self._digest(path):
                self.state.note(path, known._replace(status=status))

    def _digest(self, path: str) -> str:
        """Return the digest of the file here, or ""."""
        node = self.local.nodes.get(path)
        return node.digest if isinstance(node, FileNode) else ""

    def is_unread(self, path: str) -> bool:
        """Return True if the present state of a path is not known."""
        return any(each in self.local.left_out for each in (path, *directories_above(path)))

    def progress(self, done: int, total: int) -> None:
        """Report progress."""
        call_context.check()
        if self._report is not None:
            self._report(done, total)

    def note(self, path: str, known: Known | None) -> None:
        """Note what the store has at a path, which is merged with what is here."""
        self.state.note(path, known)
        self.state.end_push(path)
        self.end_conflict(path)

    def end_conflict(self, path: str) -> None:
        """Forget a conflict, if there was one."""
        self.conflicts.discard(path)
        if self.clashes.pop(path, None) is not None:
            self._own.drop(CONFLICTS + path)

    def save(self) -> None:
        """Write the notes to the state."""
        self.state.set("conflicts", self.clashes)
        self.state.set("tree", self.tree)
        self.state.save()

    def read_tree(self, tag: Tag | None) -> None:
        """Read `TREE`, which has this version in the store; raise `conflict` if it is of another tree."""
        if (tag and tag.get("e_tag")) == (self.tree.tag and self.tree.tag.get("e_tag")):
            return
        found, known = self.objects.get(TREE) if tag else None, self.tree.id
        self.tree = _manifest(found) if found else Manifest()
        if known not in ("", self.tree.id):
            raise errors.ConflictError(
                f"The store does not have the tree of this cache: its {TREE} is another one, or gone.",
                hint="Check the URL. To begin with the store as it is, pull it to an empty directory.",
            )

    def incoming(self) -> tuple[dict[str, Theirs | None], dict[str, Listed]]:
        """List the store. Return what differs from what is known, and what to download."""
        listing = self.objects.list()
        tree = listing.pop(TREE, None)
        self.read_tree({"e_tag": tree[0]} if tree else None)
        links = {path: node for path, entry in self.tree.entries.items() if (node := entry_node(entry))}
        nodes: dict[str, Node | None] = links | dict.fromkeys(listing)
        left_out = refused(nodes, self.known, self.root)
        self.left_out |= left_out
        ready: dict[str, Theirs | None] = dict.fromkeys(self.known.keys() - nodes.keys())
        wanted: dict[str, Listed] = {}
        for path in nodes.keys() - left_out.keys():
            node, known = nodes[path], self.known.get(path, Known())
            if node is None and (known.listed, known.entry) != (listing[path], self._mode_entry(path)):
                wanted[path] = listing[path]
            elif node is not None and (known.tag or known.entry != self.tree.entries[path]):
                ready[path] = Theirs(node, Known(entry=self.tree.entries[path]))
        return ready, wanted

    def _mode_entry(self, path: str) -> str:
        entry = self.tree.entries.get(path, "")
        return "" if entry_node(entry) else entry  # an object takes precedence over a link

    def fetch(self, path: str, listed: Listed | None = None) -> Theirs | None:
        """Return what the store has at a path, and download it unless it is here."""
        known, ours = self.known.get(path, Known()), self.local.nodes.get(path)
        tag, digests = self.clashes.get(path, ({}, []))
        if listed and known.listed == listed and known.size <= LARGE:  # only the mode has changed
            load = ours.load if isinstance(ours, FileNode) else not_loaded
            return self._theirs(path, known.tag, known.digests, FileNode(0, known.digest, known.size, load))
        if listed and tag.get("e_tag") == listed[0]:
            kept = self.root.node(META + CONFLICTS + path, max_bytes=LARGE)
            if isinstance(kept, FileNode) and (kept.digest, kept.size) == (digests[0], listed[1]):
                return self._theirs(path, tag, digests, kept)
        return self._download(path)

    def _download(self, path: str) -> Theirs | None:
        found, ours, part = self.objects.get(path), self.local.nodes.get(path), ""
        if found is None:
            return None
        if max(found.size, ours.size if isinstance(ours, FileNode) else 0) > LARGE:
            part = self._own.path_of(f"parts/{secrets.token_hex(8)}")
            node = FileNode(0, self._write_part(found, part), found.size, not_loaded)
        else:
            node = self._contents.keep_file(FileNode.of(0, b"".join(found.pieces)))
        digests = found.digests if node.digest in found.digests[:1] else (node.digest,)
        return self._theirs(path, found.tag, digests, node, part)

    def _write_part(self, found: Object, part: str) -> str:
        digest = hashlib.blake2b(digest_size=16)
        os.makedirs(os.path.dirname(part), exist_ok=True)
        with os.fdopen(self._own.open(os.path.relpath(part, self._own.path)), "wb") as file:
            for piece in found.pieces:
                file.write(piece)
                digest.update(piece)
            os.fsync(file.fileno())
        return digest.hexdigest()

    def _theirs(
        self, path: str, tag: Tag | None, digests: Sequence[str], node: FileNode, part: str = ""
    ) -> Theirs:
        known, entry = self.known.get(path, Known()), self._mode_entry(path)
        mode = self.local.default_mode if known.entry else self._known_mode(path)
        node = replace(node, mode=int(entry, 8) if entry else mode)
        return Theirs(node, Known(tag, node.size, digests, entry, node.mode), part)

    def _known_mode(self, path: str) -> int:
        known, ours = self.known.get(path, Known()), self.local.nodes.get(path)
        if known.tag:
            return known.mode
        return ours.mode if isinstance(ours, FileNode) else self.local.default_mode

    def settle(self, incoming: _Incoming) -> None:
        """Merge what the store has with the cache, write it as one step, and note it."""
        before = self.local.nodes
        for _ in range(ATTEMPTS):
            try:
                final = self._merged(incoming)
                there = {path for path, node in final.items() if node is not None}
                above = {each for path in there for each in directories_above(path)}
                self._write(incoming, final, there | above)
                break
            except ConcurrentChange:
                self.rescan()
        else:
            raise oserrors.kept_changing(min(incoming))
        nodes = {path: theirs.node for path, theirs in incoming.items() if theirs}
        files = (node for node in nodes.values() if isinstance(node, FileNode) and node.size <= LARGE)
        self.state.keep((node.digest, node.load()) for node in files)
        for path, theirs in incoming.items():
            if path not in final:
                self._begin_conflict(path, theirs)
                continue
            self.note(path, theirs and theirs.known)
            if (node := final[path]) != before.get(path) and path not in above:
                arrived = self.pulled if node == nodes.get(path) else self.merged
                (arrived if node else self.deleted).add(path)
        self.save()

    def _begin_conflict(self, path: str, theirs: Theirs | None) -> None:
        self.end_conflict(path)
        self.conflicts.add(path)
        tag, digests = (theirs.known.tag, theirs.known.digests) if theirs else (None, ())
        self.clashes[path] = tag or {}, [*digests]
        if theirs and isinstance(theirs.node, FileNode) and theirs.node.size <= LARGE and not theirs.part:
            with suppress(OSError):  # the name of another conflict may be in the way
                self._own.put(CONFLICTS + path, theirs.node.load())

    def _merged(self, incoming: _Incoming) -> dict[str, Node | None]:
        """Return the nodes of all paths except conflicts."""
        final: dict[str, Node | None] = {}
        for path, theirs in incoming.items():
            call_context.check()
            ours = self.local.nodes.get(path)
            merged = merge_nodes(path, self._base_of(path, theirs), ours, theirs and theirs.node)
            if merged.clash is None and not self.is_unread(path):
                final[path] = merged.node
        # A file that stays, or is new, may be in the way of another one.
        leaves = {path: node for path, node in {**self.local.nodes, **final}.items() if node is not None}
        for path in leaves:
            for above in directories_above(path):
                if isinstance(leaves.get(above), FileNode | LinkNode):
                    final.pop(path, None)
                    final.pop(above, None)
        return final

    def _base_of(self, path: str, theirs: Theirs | None) -> Node | None:
        """Return the version that both sides were made from.

        It is newer than the known one if the version in the store was made from the one here, or from one
        whose push had no answer.
        """
        known, ours = self.known.get(path, Known()), self.local.nodes.get(path)
        digests = theirs.known.digests if theirs else ()
        if known.entry and not known.tag:
            return entry_node(known.entry)
        newer = digests[: digests.index(known.digest)] if known.digest in digests else digests
        own = {*self.state.tried(path), self._digest(path)}
        digest = next((each for each in newer if each in own), known.digest)
        if isinstance(ours, FileNode) and ours.digest == digest:
            return replace(ours, mode=self._known_mode(path))
        size, load = known.size if digest == known.digest else -1, partial(self.state.text, digest)
        return FileNode(self._known_mode(path), digest, size, load) if digest else None

    def _write(self, incoming: _Incoming, final: Mapping[str, Node | None], kept: set[str]) -> None:
        changes = list[Change]()
        left = set[str]()  # directories with fewer entries
        for path, node in final.items():
            ours = self.local.nodes.get(path)
            before = ours or self.local.directories.get(path)
            after = DirectoryNode() if node is None and path in kept else node
            if isinstance(after, FileNode):
                after = replace(after, metadata=Metadata(after.mode))
            elif ours and not after:
                left.update([path, *directories_above(path)])
            change = Change(path, before, after)
            if not change.changes_nothing and (node or isinstance(before, FileNode | LinkNode)):
                changes.append(change)
        kept |= {path for path, known in self.known.items() if known.entry == "/" and path not in final}
        emptied = [
            Change(path, self.local.directories[path], None)
            for path in left - kept
            if path in self.local.directories
        ]
        small = [*emptied, *(each for each in changes if not _is_large(each))]
        if small:
            self.root.apply(small, max_bytes=HARD_FILE_BYTES, conflict=begin_again, undoing=True)
        for path, after in ((each.path, each.after) for each in changes if _is_large(each)):
            theirs, status = incoming[path], self.local.statuses.get(path, "").removesuffix(UNSETTLED)
            part, mode = (theirs.part, after.mode) if theirs and isinstance(after, FileNode) else ("", 0)
            if after is not None and not part:
                raise ConcurrentChange  # the file has just become large
            self.root.exchange(path, part, mode, status)


def _is_large(change: Change) -> bool:
    return any(isinstance(node, FileNode) and node.size > LARGE for node in (change.before, change.after))


def _manifest(found: Object) -> Manifest:
    try:
        plain: Any = json.loads(b"".join(found.pieces))
        entries = {path: entry for path, entry in plain["entries"].items() if _ENTRY.fullmatch(entry)}
        return Manifest(found.tag, str(plain["id"]), entries)
    except (ValueError, LookupError, TypeError, AttributeError):
        raise errors.FileIOError(
            f"The object {TREE} in the store is damaged.",
            hint="Restore an earlier version. If you delete it, modes, links and empty directories are lost.",
        ) from None
