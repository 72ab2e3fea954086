"""One pull or push under way: what the store has is merged with the cache, and written as one step."""

import json
import os
import re
import secrets
from collections import Counter
from collections.abc import Callable, Container, Generator, Iterable, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any, NamedTuple

from agentfs.base import call_context
from agentfs.base.lazy import hashlib
from agentfs.errors import ConflictError, FileIOError
from agentfs.fs import Change, DirectoryNode, FileNode, LinkNode, Node, Root, directories_above
from agentfs.fs.lock import ATTEMPTS
from agentfs.fs.node import ConcurrentChange, Metadata, begin_again
from agentfs.fs.oserrors import kept_changing
from agentfs.fs.own_directories import OwnDirectory
from agentfs.fs.path import is_in
from agentfs.history import Journal
from agentfs.history.storage.contents import Contents
from agentfs.history.take_back import merge_nodes
from agentfs.limits import HARD_FILE_BYTES
from agentfs.store.local import LeftOut, scan
from agentfs.store.remote import META, TREE, Listed, Object, Remote, Tag
from agentfs.store.state import LARGE, NEW_MODE, CacheState, Known, node_of_entry

CONFLICTS = "conflicts/"  # texts of the store, in the directory of the state
_GONE = Known("", "", 0, "", (), "", 0)
_ENTRY = re.compile(r"[0-7]{1,3}|/|-> [^\0]+", re.DOTALL)
OnProgress = Callable[[int, int], None]


class Theirs(NamedTuple):
    """What the store has at a path."""

    tag: Tag
    digests: tuple[str, ...]
    node: Node
    entry: str
    is_new: bool = False  # True if neither side had a file, so that the umask gives the mode
    part: str = ""  # the file with the content, if it is large


class Manifest(NamedTuple):
    """The object `TREE`."""

    tag: Tag | None = None
    id: str = ""  # tells this tree from another one at the same address
    checked: dict[str, bool] = {}
    entries: dict[str, str] = {}

    def to_json(self) -> bytes:
        """Return the content of the object."""
        plain = {"format": 1, "id": self.id, "checked": self.checked, "entries": self.entries}
        return json.dumps(plain, sort_keys=True, indent=0).encode()


class Sync:
    """A pull or push of one cache."""

    def __init__(
        self,
        remote: Remote,
        state: CacheState,
        root: Root,
        journal: Journal | None,
        report: OnProgress | None,
    ) -> None:
        self.remote, self.state, self.root = remote, state, root
        self._journal, self._report = journal, report
        self._contents = Contents()
        self._own = OwnDirectory(os.path.join(root.path, META.rstrip("/")))
        self.known, self.recorded_conflicts = state.load("known"), state.load("conflicts")
        self._attempts = state.attempts()
        self._dirty = set[str]()
        self._acknowledged = set[str]()
        self.rescan()
        self.left_out: LeftOut = {}
        self.conflicts, self.pulled = set[str](), set[str]()
        self.deleted, self.merged = set[str](), set[str]()
        stored, tag = state.meta("tree"), state.meta("tree_tag")
        self.tree = Manifest() if stored is None else _manifest(stored, Tag(*json.loads(tag or "[]")))

    def rescan(self) -> None:
        """Read the cache again."""
        self.local = scan(self.root, self.known)
        self._note_statuses()

    def leave_out(self, left_out: Mapping[str, Iterable[str]]) -> None:
        """Count paths that are left out, by reason."""
        for reason, paths in left_out.items():
            self.left_out[reason] = [*self.left_out.get(reason, ()), *paths]

    def is_unread(self, path: str) -> bool:
        """Return True if the present state of a path is not known."""
        return any(is_in(path, each) for each in self.local.unread)

    def note(self, path: str, known: Known | None) -> None:
        """Note what the store has at a path; it is merged with what is here."""
        self._dirty.add(path)
        self._acknowledged.add(path)
        self._attempts.pop(path, None)
        self._end_conflict(path)
        if known is None:
            self.known.pop(path, None)
        else:
            self.known[path] = known

    def save(self) -> None:
        """Write the notes to the state."""
        rows = {path: self.known.get(path) for path in self._dirty}
        self.state.save(rows, self._acknowledged, self.recorded_conflicts, self._meta())
        self._dirty, self._acknowledged = set(), set()

    def _meta(self) -> dict[str, str]:
        if self.tree.tag is None:
            return {}
        return {"tree": self.tree.to_json().decode(), "tree_tag": json.dumps(self.tree.tag)}

    def keep_only_conflicts(self, paths: Container[str]) -> None:
        """End all other conflicts."""
        for path in [path for path in self.recorded_conflicts if path not in paths]:
            self._end_conflict(path)

    def _begin_conflict(self, path: str, theirs: Theirs | None) -> None:
        """Note a conflict, and keep the text of the store beside the one of the cache."""
        self.conflicts.add(path)
        known = self.recorded_conflicts.get(path)
        self.recorded_conflicts[path] = row = _row(theirs) if theirs else _GONE
        if known is not None and known.digest == row.digest:
            return
        with suppress(OSError):  # a name in the directory may be in the way; the store has the text too
            if theirs is not None and isinstance(theirs.node, FileNode) and not theirs.part:
                self._own.put(CONFLICTS + path, theirs.node.load())
            else:
                self._own.drop(CONFLICTS + path)

    def _end_conflict(self, path: str) -> None:
        self.conflicts.discard(path)
        if self.recorded_conflicts.pop(path, None) is not None:
            with suppress(OSError):
                self._own.drop(CONFLICTS + path)

    def _note_statuses(self) -> None:
        """Note the status of files that have the content in the store, so that they need not be read again."""
        for path, key in self.local.statuses.items():
            known, node = self.known.get(path), self.local.nodes[path]
            if known is None or not isinstance(node, FileNode) or node.digest != known.digest:
                continue
            mode = node.mode if known.mode == NEW_MODE else known.mode
            status = key if path in self.local.settled else ""
            if (mode, status) != (known.mode, known.status):
                self.known[path] = known._replace(mode=mode, status=status)
                self._dirty.add(path)

    def read_tree(self, tag: Tag | None) -> Manifest:
        """Return `TREE`, which has a version in the store; raise `conflict` if it belongs to another tree."""
        known = self.tree
        if known.tag is None or tag is None or tag.e_tag != known.tag.e_tag:
            found = self.remote.get(TREE)
            now = Manifest() if found is None else _manifest(b"".join(found.pieces()), found.tag)
            if known.id and now.id != known.id:
                raise ConflictError(
                    "The store does not have the tree that this cache was pulled from: "
                    + ("it has another one." if now.id else f"its object {TREE} is gone.")
                    + " Nothing was changed.",
                    hint="Check the URL. To begin with the store as it is, pull it to an empty directory.",
                )
            return now
        return known

    def fetch(self, path: str, entry: str, listed: Listed | None = None) -> Theirs | None:
        """Return what the store has at a path, and download it unless it is here."""
        held = self.recorded_conflicts.get(path)
        if held is not None and listed is not None and held.e_tag == listed.e_tag:
            data = self.state.text(held.digest)
            if data != b"\0":
                node = self._contents.keep_node(FileNode.of(0, data))
                return self._theirs(path, entry, held.tag or Tag(), held.digests, node)
        found = self.remote.get(path)
        if found is None:
            return None
        ours, part = self.local.nodes.get(path), ""
        if isinstance(ours, FileNode) and _is_md5(ours, found):
            node: Node = ours
        elif found.size > LARGE:
            part = self._own.path_of(f"parts/{secrets.token_hex(8)}")
            node = FileNode(0, self._download(found, part), found.size, _not_loaded)
        else:
            node = self._contents.keep_node(FileNode.of(0, b"".join(found.pieces())))
        digest = node.digest if isinstance(node, FileNode) else ""
        digests = found.digests if found.digests[:1] == (digest,) else (digest,)
        return self._theirs(path, entry, found.tag, digests, node, part)

    def theirs_unread(self, path: str, entry: str) -> Theirs | None:
        """Return what the store has at a path whose object is known; None if it must be downloaded."""
        known, ours = self.known[path], self.local.nodes.get(path)
        if not isinstance(ours, FileNode) or ours.digest != known.digest:
            return None
        return self._theirs(path, entry, known.tag or Tag(), known.digests, ours)

    def _theirs(
        self, path: str, entry: str, tag: Tag, digests: tuple[str, ...], node: Node, part: str = ""
    ) -> Theirs:
        known, ours = self.known.get(path), self.local.nodes.get(path)
        mode, is_new = self.local.default_mode, False
        if entry:
            mode = int(entry, 8)
        elif known is not None and known.tag is not None and (known.entry or known.mode != NEW_MODE):
            mode = mode if known.entry else known.mode
        elif isinstance(ours, FileNode):
            mode = ours.mode
        else:
            is_new = True
        node = replace(node, mode=mode) if isinstance(node, FileNode) else node
        return Theirs(tag, digests, node, entry, is_new, part)

    def _download(self, found: Object, part: str) -> str:
        digest = hashlib.blake2b(digest_size=16)
        os.makedirs(os.path.dirname(part), exist_ok=True)
        with os.fdopen(self._own.open(os.path.relpath(part, self._own.path)), "wb") as file:
            for piece in found.pieces():
                file.write(piece)
                digest.update(piece)
            os.fsync(file.fileno())
        return digest.hexdigest()

    def progress(self, done: int, total: int) -> None:
        """Report progress."""
        call_context.check()
        if self._report is not None:
            self._report(done, total)

    def settle(self, incoming: Mapping[str, Theirs | None], label: str) -> None:
        """Merge what the store has with the cache, write it as one step, and note it."""
        for _ in range(ATTEMPTS):
            outcome = _Outcome(self, incoming)
            try:
                self._apply(outcome, label)
                break
            except ConcurrentChange:
                self.local = scan(self.root, self.known)
        else:
            raise kept_changing(next(iter(incoming), "."))
        texts = [theirs.node for theirs in incoming.values() if theirs and not theirs.part]
        self.state.keep_texts(node for node in texts if isinstance(node, FileNode) and node.size <= LARGE)
        for path, theirs in incoming.items():
            if path in outcome.conflicts:
                self._begin_conflict(path, theirs)
            else:
                self.note(path, theirs and _row(theirs))
        self.save()

    def _apply(self, outcome: "_Outcome", label: str) -> None:
        large = [each for each in outcome.changes if outcome.is_large(each)]
        changes = [each for each in outcome.changes if not outcome.is_large(each)]
        lost = tuple(each.path for each in large)
        journal = self._journal

        @contextmanager
        def log_step(made: tuple[Change, ...]) -> Generator[tuple[Change, ...]]:
            if journal is None:
                yield made
                return
            journal.prepare(made)
            with journal.logging_step(made, label=label, lost=lost):
                yield made

        if changes:
            self.root.apply(changes, max_bytes=HARD_FILE_BYTES, conflict=begin_again, log_step=log_step)
            self._count(outcome, changes)
        for change in large:
            source = self._part(change.after, outcome.parts.get(change.path, ""))
            self.root.exchange(change.path, source, self.local.statuses.get(change.path, ""))
            self._count(outcome, [change])

    def _count(self, outcome: "_Outcome", changes: Iterable[Change]) -> None:
        for path, after in ((each.path, each.after) for each in changes):
            if path in outcome.emptied:
                continue
            if after is None:
                self.deleted.add(path)
            else:
                (self.pulled if outcome.is_theirs(path) else self.merged).add(path)

    def _part(self, node: Node | None, part: str) -> str:
        """Return a file with the content of a node; "" to remove the path."""
        if not isinstance(node, FileNode):
            return ""
        if not part:
            name = f"parts/{secrets.token_hex(8)}"
            self._own.put(name, node.load())
            part = self._own.path_of(name)
        os.chmod(part, node.mode)
        return part

    def base_of(self, path: str, theirs: Theirs | None) -> Node | None:
        """Return the version that both sides were made from.

        It is newer than the known one if what the store has was made from what is here, or from a push whose
        answer was lost.
        """
        known, ours = self.known.get(path), self.local.nodes.get(path)
        own = {*self._attempts.get(path, ()), ours.digest if isinstance(ours, FileNode) else ""}
        for digest in theirs.digests if theirs is not None else ():
            if known is not None and digest == known.digest:
                break
            if digest in own:
                mode = self._known_mode(known, ours, theirs)
                if isinstance(ours, FileNode) and ours.digest == digest:
                    return replace(ours, mode=mode)
                return self._kept(digest, mode)
        if known is None:
            return None
        if (node := node_of_entry(known.entry)) is not None and known.tag is None:
            return node
        kept = self._kept(known.digest, self._known_mode(known, ours, theirs))
        return replace(kept, size=known.size)

    def _known_mode(self, known: Known | None, ours: Node | None, theirs: Theirs | None) -> int:
        if known is not None and known.mode != NEW_MODE:
            return known.mode
        node = ours if isinstance(ours, FileNode) else theirs and theirs.node
        return node.mode if isinstance(node, FileNode) else self.local.default_mode

    def _kept(self, digest: str, mode: int) -> FileNode:
        return FileNode(mode, digest, 0, lambda: self.state.text(digest))


class _Outcome:
    """The changes of the cache that follow from changes in the store."""

    def __init__(self, sync: Sync, incoming: Mapping[str, Theirs | None]) -> None:
        self._sync, self._ours = sync, sync.local.nodes
        self.conflicts: set[str] = set()
        self.parts = {path: theirs.part for path, theirs in incoming.items() if theirs and theirs.part}
        self._incoming = incoming
        self._final: dict[str, Node | None] = {}
        for path, theirs in incoming.items():
            call_context.check()
            self._merge(path, theirs)
        self.emptied = self._order(sync.local.names.copy())
        self.changes = [*self._changes()]

    def is_theirs(self, path: str) -> bool:
        """Return True if the cache gets what the store has, and not a merged text."""
        theirs = self._incoming[path]
        return theirs is not None and self._final[path] == theirs.node

    def is_large(self, change: Change) -> bool:
        """Return True if either content does not fit in memory."""
        return any(isinstance(node, FileNode) and node.size > LARGE for node in (change.before, change.after))

    def _merge(self, path: str, theirs: Theirs | None) -> None:
        ours = self._ours.get(path)
        if self._sync.is_unread(path):
            self.conflicts.add(path)
            return
        node = None if theirs is None else theirs.node
        if isinstance(ours, DirectoryNode) and isinstance(node, FileNode | LinkNode):
            self._final[path] = node  # `_order` looks if the directory will be empty
            return
        base = self._sync.base_of(path, theirs)
        if isinstance(ours, DirectoryNode) and node is None and not isinstance(base, DirectoryNode):
            self._final[path] = ours  # a directory has taken the place of a file that is gone
            return
        merged = merge_nodes(path, base, ours, node)
        if merged.clash is not None:
            self.conflicts.add(path)
        else:
            self._final[path] = merged.node

    def _order(self, names: Counter[str]) -> list[str]:
        """Drop what a file or directory is in the way of; return the directories that will be empty.

        `names` has the number of names in each directory.
        """
        ours, final = self._ours, self._final
        left = set[str]()  # directories with fewer entries
        for path, node in final.items():
            before = ours.get(path)
            if isinstance(before, DirectoryNode):
                left.update([path] if node is None else [])
            elif before is not None and node is None:
                names[os.path.dirname(path)] -= 1
                left.update(directories_above(path))
            elif before is None and node is not None:
                names.update(directories_above(path))
        emptied: list[str] = []
        for path in sorted(left, key=len, reverse=True):
            is_kept = final[path] is not None if path in final else path in self._sync.known
            if isinstance(ours.get(path), DirectoryNode) and names[path] <= 0 and not is_kept:
                names[os.path.dirname(path)] -= 1
                emptied.append(path)
        for path, node in [*final.items()]:
            before = ours.get(path)
            blocked = False
            if isinstance(before, DirectoryNode):
                blocked = isinstance(node, FileNode | LinkNode) and names[path] > 0
            elif before is None and node is not None:
                above = (final.get(each, ours.get(each)) for each in directories_above(path))
                blocked = any(isinstance(each, FileNode | LinkNode) for each in above)
            if blocked:
                self.conflicts.add(path)
                del final[path]
        return emptied

    def _changes(self) -> Iterable[Change]:
        for path, node in self._final.items():
            before = self._ours.get(path)
            if isinstance(before, DirectoryNode) and not isinstance(node, FileNode | LinkNode):
                continue  # emptied directories follow
            theirs = self._incoming[path]
            if isinstance(node, FileNode) and not (theirs is not None and theirs.is_new and before is None):
                node = replace(node, metadata=Metadata(node.mode))  # noqa: PLW2901 - the same node
            elif isinstance(node, FileNode):
                node = replace(node, mode=0o666, metadata=None)  # noqa: PLW2901 - as above
            change = Change(path, before, node)
            if not change.changes_nothing:
                yield change
        for path in self.emptied:
            yield Change(path, self._ours[path], None)


def _row(theirs: Theirs) -> Known:
    node = theirs.node
    size, digest, mode = 0, "", 0
    if isinstance(node, FileNode):
        size, digest, mode = node.size, node.digest, NEW_MODE if theirs.is_new else node.mode
    return Known(*theirs.tag, size, digest, theirs.digests, theirs.entry, mode)


def _manifest(body: str | bytes, tag: Tag) -> Manifest:
    try:
        plain: Any = json.loads(body)
        entries = {path: entry for path, entry in plain["entries"].items() if _ENTRY.fullmatch(entry)}
        return Manifest(tag, str(plain["id"]), dict(plain["checked"]), entries)
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise FileIOError(
            f"The object {TREE} in the store is damaged: {error}.",
            hint="Restore an earlier version of it, or delete it: modes, links and empty directories are lost then.",
        ) from None


def _is_md5(node: FileNode, found: Object) -> bool:
    """Return True if the version of an object is the MD5 of a local file, so that it has the same content."""
    e_tag = found.tag.e_tag.strip('"')
    if node.size != found.size or node.size > LARGE or len(e_tag) != 32:
        return False
    return hashlib.md5(node.load(), usedforsecurity=False).hexdigest() == e_tag


def _not_loaded() -> bytes:
    """Stand for a large content, which is never merged."""
    return b"\0"
