"""A pull: what the store has is merged with the cache, and written as one step. A push does that too."""

import json
import os
import re
import secrets
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, cast

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
from agentfs.store.local import UNSETTLED, LeftOut, not_loaded, refused, scan
from agentfs.store.remote import META, TREE, Object, Remote, Tag
from agentfs.store.state import LARGE, CacheState, Known, node_of

CONFLICTS = "conflicts/"  # texts of the store, below `META`
_ENTRY = re.compile(r"[0-7]{1,3}|/|-> [^\0]+", re.DOTALL)
OnProgress = Callable[[int, int], object]


class Manifest(NamedTuple):
    """The object `TREE`."""

    tag: Tag
    id: str  # tells this tree from another one at the same address
    entries: Mapping[str, str]

    def to_json(self) -> bytes:
        """Return the content of the object."""
        return json.dumps({"id": self.id, "entries": self.entries}, sort_keys=True, indent=0).encode()


class Theirs(NamedTuple):
    """What the store has at a path; `known` is the note on it."""

    node: Node
    known: Known
    part: str = ""  # the path of a file with the content, if it is large


_Incoming = Mapping[str, Theirs | None]


class Sync:
    """A pull or push of one cache."""

    def __init__(self, remote: Remote, state: CacheState, root: Root, report: OnProgress | None) -> None:
        self.remote, self.state, self.root, self._report = remote, state, root, report
        self._contents = Contents()
        self._own = OwnDirectory(os.path.join(root.path, META))
        self.known = state.known()
        self.tree = Manifest(*state.value("tree", ({}, "", {})))
        # For each conflict, the version in the store and its digests; its text is below `CONFLICTS`.
        self.clashes: dict[str, tuple[Tag, list[str]]] = state.value("conflicts", {})
        self._dirty, self._acknowledged = set[str](), set[str]()
        self.conflicts, self.pulled = set[str](), set[str]()
        self.deleted, self.merged = set[str](), set[str]()
        self.left_out: LeftOut = {}
        self.rescan()

    def rescan(self) -> None:
        """Read the cache, and note the status of files that need not be read again."""
        self.local = scan(self.root, self.known)
        for path, status in self.local.statuses.items():
            known, node = self.known.get(path), self.local.nodes[path]
            if known is not None and isinstance(node, FileNode) and node.digest == known.digest:
                if status != known.status:
                    self.known[path] = known._replace(status=status)
                    self._dirty.add(path)

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
        self._dirty.add(path)
        self._acknowledged.add(path)
        self.end_conflict(path)
        self.known.pop(path, None)
        if known is not None:
            self.known[path] = known

    def end_conflict(self, path: str) -> None:
        """Forget a conflict, if there was one."""
        self.conflicts.discard(path)
        if self.clashes.pop(path, None) is not None:
            self._own.drop(CONFLICTS + path)

    def save(self) -> None:
        """Write the notes to the state."""
        rows = {path: self.known.get(path) for path in self._dirty}
        self.state.save(rows, self._acknowledged, conflicts=self.clashes, tree=self.tree)
        self._dirty, self._acknowledged = set(), set()

    def read_tree(self, e_tag: str | None) -> None:
        """Read `TREE`, which has this ETag in the store; raise `conflict` if it belongs to another tree."""
        if self.tree.tag.get("e_tag") == e_tag:
            return
        found, known = None if e_tag is None else self.remote.get(TREE), self.tree.id
        self.tree = Manifest({}, "", {}) if found is None else _manifest(found)
        if known not in ("", self.tree.id):
            raise errors.ConflictError(
                f"The store does not have the tree of this cache: its {TREE} is another one, or gone.",
                hint="Check the URL. To begin with the store as it is, pull it to an empty directory.",
            )

    def entry_at(self, path: str) -> str:
        """Return the entry of an object in `TREE`."""
        entry = self.tree.entries.get(path, "")
        return "" if node_of(entry) else entry  # an object takes precedence over a link

    def incoming(self) -> tuple[dict[str, Theirs | None], dict[str, str]]:
        """List the store. Return what differs from what is known, and the ETags of what to download."""
        listing = self.remote.list()
        self.read_tree(listing.pop(TREE, None))
        entries = ((path, node_of(entry)) for path, entry in self.tree.entries.items())
        nodes = {path: node for path, node in entries if node is not None} | dict.fromkeys(listing)
        left_out = refused(nodes, self.known, self.root)
        self.left_out |= left_out
        ready: dict[str, Theirs | None] = dict.fromkeys(self.known.keys() - nodes.keys())
        wanted: dict[str, str] = {}
        for path in nodes.keys() - left_out.keys():
            node, known, ours = nodes[path], self.known.get(path, Known()), self.local.nodes.get(path)
            if node is not None:
                entry = self.tree.entries[path]
                if known.tag or known.entry != entry:
                    ready[path] = Theirs(node, Known(entry=entry))
            elif known.tag.get("e_tag") != listing[path]:
                wanted[path] = listing[path]
            elif known.entry != self.entry_at(path):
                if known.size > LARGE:
                    wanted[path] = listing[path]
                    continue
                load = ours.load if isinstance(ours, FileNode) else not_loaded
                content = FileNode(0, known.digest, known.size, load)
                ready[path] = self._theirs(path, known.tag, known.digests, content)
        return ready, wanted

    def fetch(self, path: str, e_tag: str = "") -> Theirs | None:
        """Return what the store has at a path, and download it unless it is here from a conflict."""
        tag, held = self.clashes.get(path, ({}, []))
        if e_tag and tag.get("e_tag") == e_tag:
            kept = self.root.node(META + CONFLICTS + path, max_bytes=LARGE)
            if isinstance(kept, FileNode) and kept.digest == held[0]:
                return self._theirs(path, tag, (*held,), kept)
        found, part = self.remote.get(path), ""
        if found is None:
            return None
        ours = self.local.nodes.get(path)
        if max(found.size, ours.size if isinstance(ours, FileNode) else 0) > LARGE:
            part = self._own.path_of(f"parts/{secrets.token_hex(8)}")
            node = FileNode(0, self._download(found, part), found.size, not_loaded)
        else:
            node = cast("FileNode", self._contents.keep_node(FileNode.of(0, b"".join(found.pieces))))
        digests = found.digests if node.digest in found.digests[:1] else (node.digest,)
        return self._theirs(path, found.tag, digests, node, part)

    def _download(self, found: Object, part: str) -> str:
        digest = hashlib.blake2b(digest_size=16)
        os.makedirs(os.path.dirname(part), exist_ok=True)
        with os.fdopen(self._own.open(os.path.relpath(part, self._own.path)), "wb") as file:
            for piece in found.pieces:
                file.write(piece)
                digest.update(piece)
            os.fsync(file.fileno())
        return digest.hexdigest()

    def _theirs(
        self, path: str, tag: Tag, digests: tuple[str, ...], node: FileNode, part: str = ""
    ) -> Theirs:
        known, ours, entry = self.known.get(path, Known()), self.local.nodes.get(path), self.entry_at(path)
        changed = self.local.default_mode if known.entry else self._mode_of(known, ours)
        mode = int(entry, 8) if entry else changed
        return Theirs(replace(node, mode=mode), Known(tag, node.size, digests, entry, mode), part)

    def _mode_of(self, known: Known, ours: Node | None) -> int:
        if known.tag:
            return known.mode
        return ours.mode if isinstance(ours, FileNode) else self.local.default_mode

    def settle(self, incoming: _Incoming) -> None:
        """Merge what the store has with the cache, write it as one step, and note it."""
        for _ in range(ATTEMPTS):
            final = self._merged(incoming)
            try:
                self._write(incoming, final)
                break
            except ConcurrentChange:
                self.rescan()
        else:
            raise oserrors.kept_changing(min(incoming))
        nodes = {path: theirs.node for path, theirs in incoming.items() if theirs is not None}
        files = {
            path: node for path, node in nodes.items() if isinstance(node, FileNode) and node.size <= LARGE
        }
        self.state.keep(files)
        for path, theirs in incoming.items():
            if path in final:
                self.note(path, theirs and theirs.known)
                continue
            self.end_conflict(path)
            self.conflicts.add(path)
            self.clashes[path] = (theirs.known.tag, [*theirs.known.digests]) if theirs else ({}, [])
            with suppress(OSError, KeyError):  # the name of another conflict may be in the way
                self._own.put(CONFLICTS + path, files[path].load())
        self.save()

    def _merged(self, incoming: _Incoming) -> dict[str, Node | None]:
        """Return the nodes of all paths except conflicts."""
        final: dict[str, Node | None] = {}
        for path, theirs in incoming.items():
            call_context.check()
            ours = self.local.nodes.get(path)
            merged = merge_nodes(path, self._base_of(path, ours, theirs), ours, theirs and theirs.node)
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

    def _base_of(self, path: str, ours: Node | None, theirs: Theirs | None) -> Node | None:
        """Return the version that both sides were made from.

        It is newer than the known one if the version in the store was made from the one here, or from one
        whose push had no answer.
        """
        known, digests = self.known.get(path, Known()), theirs.known.digests if theirs else ()
        if known.entry and not known.tag:
            return node_of(known.entry)
        newer = digests[: digests.index(known.digest)] if known.digest in digests else digests
        own = self.state.attempts(path, newer) | {ours.digest if isinstance(ours, FileNode) else ""}
        digest = next((each for each in newer if each in own), known.digest)
        size = known.size if digest == known.digest else -1
        if isinstance(ours, FileNode) and ours.digest == digest:
            return replace(ours, mode=self._mode_of(known, ours))
        load = partial(self.state.text, digest)
        return FileNode(self._mode_of(known, ours), digest, size, load) if digest else None

    def _write(self, incoming: _Incoming, final: Mapping[str, Node | None]) -> None:
        directories, changes = self.local.directories, list[Change]()
        left = set[str]()  # directories with fewer entries
        there = [path for path, node in final.items() if node is not None]
        above = {each for path in there for each in directories_above(path)}
        kept = {*there, *above}
        kept |= {path for path, known in self.known.items() if known.entry == "/" and path not in final}
        for path, node in final.items():
            ours = self.local.nodes.get(path)
            before = ours or directories.get(path)
            if node is None and ours is not None:
                left.update([path, *directories_above(path)])
            if path in above and isinstance(before, FileNode | LinkNode) and node is None:
                node = DirectoryNode()  # noqa: PLW2901
            if isinstance(node, FileNode):
                node = replace(node, metadata=Metadata(node.mode))  # noqa: PLW2901
            change = Change(path, before, node)
            if not change.changes_nothing and not (node is None and isinstance(before, DirectoryNode)):
                changes.append(change)
        large = [each for each in changes if _is_large(each)]
        small = [each for each in changes if not _is_large(each)]
        made = {
            above: Change(above, None, DirectoryNode())
            for each in large
            for above in directories_above(each.path)
            if above not in directories
        }
        emptied = [Change(path, directories[path], None) for path in left - kept if path in directories]
        batch = [*small, *emptied, *made.values()]
        if batch:
            self.root.apply(batch, max_bytes=HARD_FILE_BYTES, conflict=begin_again, undoing=True)
            self._count(incoming, final, [*small, *(each for each in emptied if each.path in final)])
        for change in large:
            theirs, after = incoming[change.path], change.after
            part, mode = (theirs.part, after.mode) if theirs and isinstance(after, FileNode) else ("", 0)
            if after is not None and not part:
                raise ConcurrentChange  # the file has just become large
            status = self.local.statuses.get(change.path, "").removesuffix(UNSETTLED)
            self.root.exchange(change.path, part, mode, status)
            self._count(incoming, final, [change])

    def _count(
        self, incoming: _Incoming, final: Mapping[str, Node | None], changes: Iterable[Change]
    ) -> None:
        for path, node in ((each.path, final[each.path]) for each in changes):
            theirs = incoming[path]
            is_merged = (
                isinstance(node, FileNode) and theirs is not None and node.digest != theirs.known.digest
            )
            (self.deleted if node is None else self.merged if is_merged else self.pulled).add(path)


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
