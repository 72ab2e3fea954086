"""Moved files: as the changes say, or guessed from deleted and created files with equal content."""

from collections.abc import Collection, Sequence
from dataclasses import replace

from agentfs.fs import Change, DirectoryNode, Node, directories_above
from agentfs.fs.node import moves


def renames(changes: Collection[Change]) -> dict[str, str]:
    """Return the old path of each moved file and link, by its new path."""
    return moves([each for each in changes if not each.of_directory])


def with_moves(changes: Sequence[Change]) -> list[Change]:
    """Return changes by another program with `moved_from`, which is guessed.

    Files with equal content are paired in the order of their paths.
    """
    ordered = sorted(changes, key=lambda change: change.path)
    created = {each.path: each for each in ordered if each.before is None}
    deleted = {each.path: each for each in ordered if each.after is None}
    new = [each for each in created.values() if _is_file(each.after)]
    old = [each for each in deleted.values() if _is_file(each.before)]
    sources: dict[Node | None, list[str]] = {}
    for each in reversed(old):
        sources.setdefault(each.before, []).append(each.path)
    found = {each.path: sources[each.after].pop() for each in new if sources.get(each.after)}
    for to, origin in list(found.items()):
        for target, source in zip(directories_above(to), directories_above(origin), strict=False):
            if target not in created or source not in deleted:
                break
            found.setdefault(target, source)
    return [replace(each, moved_from=found[each.path]) if each.path in found else each for each in changes]


def _is_file(node: Node | None) -> bool:
    return node is not None and not isinstance(node, DirectoryNode)
