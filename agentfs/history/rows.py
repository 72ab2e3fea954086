"""The JSON values of nodes and steps, as the database of a state directory stores them."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from agentfs.fs import Change, DirectoryNode, FileNode, LinkNode, MovedNode, MovedTree, Node, expanded
from agentfs.fs.node import Metadata
from agentfs.history.database import Contents
from agentfs.history.log import LinesBy, Step, Toggle


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


def node_from_json(plain: Any, contents: Contents) -> Node | None:
    """Return the node from its JSON form; raises an error of Python for any other form."""
    match plain:
        case None:
            return None
        case ["file", mode, digest, size, *owner]:
            bytes.fromhex(digest)
            return FileNode(mode, digest, size, partial(contents.read, digest), _metadata(mode, owner))
        case ["link", target]:
            return LinkNode(target)
        case ["moved", kind]:
            return MovedNode(kind)
        case ["directory", mode, *owner]:
            return DirectoryNode(mode, _metadata(mode, owner))
        case ["tree", *listing]:
            tree: Any = tuple(
                (below, node_from_json(each, contents), names) for below, each, names in listing
            )
            return MovedTree(tree)
        case _:
            raise ValueError(plain)


def _metadata_to_json(metadata: Metadata | None) -> list[Any]:
    return [] if metadata is None else [metadata.owner]


def _metadata(mode: int, plain: list[Any]) -> Metadata | None:
    return Metadata(mode, plain[0] and (int(plain[0][0]), int(plain[0][1]))) if plain else None


def step_to_json(step: Step) -> dict[str, Any]:
    """Return a step as JSON values."""
    changes = [
        (each.path, node_to_json(each.before), node_to_json(each.after), each.moved_from)
        for each in step.changes
    ]
    return {**step._asdict(), "changes": changes}


def step_from_json(plain: Any, contents: Contents) -> Step:
    """Return the step from its JSON values; raises an error of Python if they have another form."""

    def changes() -> Iterator[Change]:
        for path, *nodes, moved_from in plain["changes"]:
            before, after = (node_from_json(each, contents) for each in nodes)
            for each in expanded([Change(path, before, after, str(moved_from))]):
                if "\0" in each.path or {"", ".", ".."} & set(each.path.split("/")):
                    raise ValueError(each.path)
                yield each

    toggles = plain["toggles"]
    return Step(
        tuple(changes()),
        float(plain["time"]),
        str(plain["label"]),
        tuple(plain["lost"]),
        tuple(plain["author"]),
        tuple(LinesBy(path, int(start), int(end), tuple(by)) for path, start, end, by in plain["by_others"]),
        tuple(plain["groups"]),
        toggles and tuple(Toggle(of, takes_back, tuple(paths)) for of, takes_back, paths in toggles),
    )
