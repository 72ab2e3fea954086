"""`pull`: bring what the store has into the cache."""

from typing import NamedTuple

from agentfs.fs import DirectoryNode, LinkNode
from agentfs.store.local import LINK_OUT, admitted, leads_out
from agentfs.store.remote import TREE, Listed, Tag
from agentfs.store.state import node_of_entry
from agentfs.store.sync import Sync, Theirs


class Incoming(NamedTuple):
    """What differs in the store from what is known."""

    ready: dict[str, Theirs | None]  # paths that need no download; None for those that are gone
    wanted: dict[str, tuple[str, Listed]]  # objects to download, with their entries in `TREE`


def changed_in_store(sync: Sync) -> Incoming:
    """List the store, and compare it with what is known."""
    listing = sync.remote.list()
    listed_tree = listing.pop(TREE, None)
    sync.tree = sync.read_tree(listed_tree and Tag(listed_tree.e_tag))
    entries, known = sync.tree.entries, sync.known
    nodes = {path: node_of_entry(entry) for path, entry in entries.items() if path not in listing}
    nodes = {path: node for path, node in nodes.items() if node is not None}
    leaves = {path: not isinstance(node, DirectoryNode) for path, node in nodes.items()}
    found, left_out = admitted(dict.fromkeys(listing, True) | leaves, known, sync.root)
    for path, node in nodes.items():
        if path in found and isinstance(node, LinkNode) and leads_out(path, node.target):
            found.discard(path)
            left_out.setdefault(LINK_OUT, []).append(path)
    sync.leave_out(left_out)
    incoming = Incoming({}, {})
    refused = {path for paths in left_out.values() for path in paths}
    incoming.ready.update(dict.fromkeys(known.keys() - found - refused))
    for path in found:
        was, entry, node = known.get(path), entries.get(path, ""), nodes.get(path)
        if node is not None:
            if was is None or was.tag is not None or was.entry != entry:
                incoming.ready[path] = Theirs(Tag(), (), node, entry)
            continue
        entry = "" if node_of_entry(entry) else entry
        unread = None
        if was is not None and was.tag is not None and was.e_tag == listing[path].e_tag:
            if was.entry == entry:
                continue
            unread = sync.theirs_unread(path, entry)
        if unread is None:
            incoming.wanted[path] = entry, listing[path]
        else:
            incoming.ready[path] = unread
    return incoming


def pull(sync: Sync, label: str) -> None:
    """Fetch what differs, and merge it with the cache."""
    ready, wanted = changed_in_store(sync)
    fetched = sync.remote.each(lambda path: sync.fetch(path, *wanted[path]), wanted)
    for done, (path, theirs) in enumerate(fetched, 1):
        sync.progress(done, len(wanted))
        if theirs is None and path not in sync.known:
            sync.leave_out({"gone, or not an object": [path]})
        else:
            ready[path] = theirs
    sync.keep_only_conflicts(ready)
    sync.settle(ready, label)
