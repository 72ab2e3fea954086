"""The JSON form of nodes in the journal."""

from collections.abc import Iterator
from typing import Any

from agentfs.errors import FileIOError
from agentfs.fs import DirectoryNode, FileNode, LinkNode, MovedNode, MovedTree, Node
from agentfs.fs.node import Metadata


def node_to_json(node: Node | None) -> list[Any] | None:
    """Return the JSON form of a node, without the content of a file."""
    match node:
        case None:
            return None
        case FileNode():
            return ["file", node.mode, node.digest, node.size, *_metadata_to_json(node.metadata)]
        case LinkNode():
            return ["link", node.target]
        case MovedNode():
            return ["moved", node.kind]
        case DirectoryNode():
            return ["directory", node.mode, *_metadata_to_json(node.metadata)]
        case MovedTree():
            return ["tree", *[[below, node_to_json(each), names] for below, each, names in node.listing]]


def node_from_json(plain: list[Any] | None) -> Node | None:
    """Return the node from its JSON form. A file node comes without content: `load` raises an error."""
    match plain or []:
        case ["file", mode, digest, size, *metadata]:
            return FileNode(mode, digest, size, _content_missing, _metadata_from_json(mode, metadata))
        case ["link", target]:
            return LinkNode(target)
        case ["moved", kind]:
            return MovedNode(kind)
        case ["directory", mode, *metadata]:
            return DirectoryNode(mode, _metadata_from_json(mode, metadata))
        case ["tree", *listing]:
            found: Any = tuple((below, node_from_json(each), names) for below, each, names in listing)
            return MovedTree(found)
        case _:
            return None


def _metadata_to_json(metadata: Metadata | None) -> list[Any]:
    return [] if metadata is None else [metadata.owner]


def _metadata_from_json(mode: int, plain: list[Any]) -> Metadata | None:
    try:
        (owner,) = plain
        return Metadata(mode, owner and (int(owner[0]), int(owner[1])))
    except (ValueError, TypeError):  # absent, or written by another version
        return None


def _content_missing() -> Iterator[bytes]:
    raise FileIOError("The content of this file was not kept.")
